//! The measurement task of the SDMAC paper: one confirmed one-shot after each beacon.

use super::*;
use linux::wifi::TsfSource;
use protocols::mac::beacon::{Beaconer, BeaconerConfig};
use protocols::mac::data::Identity;
use protocols::mac::oneshot::{Oneshot, OneshotConfig, Pace};
use protocols::mac::sink::Sink;
use radio::{Outcome, Plane};

const BEACON: Duration = Duration::from_ms(50);

fn access_point(radio: &str) -> (Adapter, MacAddr) {
    let tsf = TsfSource::Computer;
    let config = AdapterConfig {
        tsf,
        ..AdapterConfig::new(radio, CHANNEL)
    };
    let adapter = Adapter::open(config).unwrap();
    let address = adapter.address();
    (adapter, address)
}

fn beaconer(ap: MacAddr) -> Beaconer<Sink> {
    Beaconer::new(
        BeaconerConfig::new(ap, BEACON, Rate::OFDM_6),
        Sink::new(Identity::access_point(ap)),
    )
}

#[test]
fn one_confirmed_one_shot_after_each_beacon() {
    let Some((_lab, radios)) = lab() else { return };
    let (ap_adapter, ap) = access_point(&radios[0]);
    let adapter = open(&radios[1]);
    let config = OneshotConfig {
        measurements: 20,
        ..OneshotConfig::paper(Identity::station(adapter.address(), ap))
    };
    let until = Host::now() + Duration::from_ms(1_500);
    let (ap, sta) = std::thread::scope(|scope| {
        let ap = scope.spawn(move || drive(ap_adapter, beaconer(ap), App::default(), until));
        let sta = drive(adapter, Oneshot::<20>::new(config), App::default(), until);
        (ap.join().unwrap(), sta)
    });
    let tally = sta.protocol.confirms();
    assert_eq!((tally.acked, tally.total(), tally.attempts), (20, 20, 20));
    assert_eq!(ap.protocol.inner().frames(), 20);
    assert!(
        (29..=30).contains(&ap.counters.not_acked),
        "beacons: {:?}",
        ap.counters
    );
    for m in sta.protocol.recent() {
        assert_eq!(m.confirm.outcome, Outcome::Acked);
        let at = [Plane::T1, Plane::T8, Plane::T9].map(|p| m.confirm.stamps.get_host(p).unwrap());
        assert!(m.requested <= at[0] && at.is_sorted(), "{m:?}");
        assert_eq!(ap.protocol.inner().received(m.sequence), Some(true));
    }
    assert_replays(&sta, Oneshot::<20>::new(config));
    let address = config.peer;
    assert_replays(&ap, beaconer(address));
}

#[test]
fn nobody_there_to_acknowledge() {
    let Some((_lab, radios)) = lab() else { return };
    let adapter = open(&radios[0]);
    let config = OneshotConfig {
        pace: Pace::Every {
            period: Duration::from_ms(1),
        },
        measurements: 30,
        ..OneshotConfig::paper(Identity::station(adapter.address(), MacAddr::local(0xabad)))
    };
    let until = Host::now() + Duration::from_ms(100);
    let done = drive(adapter, Oneshot::<4>::new(config), App::default(), until);
    let tally = done.protocol.confirms();
    assert_eq!((tally.not_acked, tally.total(), tally.attempts), (30, 30, 30));
    assert_eq!(done.counters.more_tries_than_asked, 0);
    assert_replays(&done, Oneshot::<4>::new(config));
}
