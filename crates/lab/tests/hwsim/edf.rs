//! Earliest deadline first over one-shots.

use super::*;
use protocols::mac::data::Identity;
use protocols::mac::edf::cost::CostEstimate;
use protocols::mac::edf::{Edf, EdfConfig};
use protocols::mac::sender::{Sender, SenderConfig};

const MS: fn(u64) -> Duration = Duration::from_ms;

/// A station that sends nothing before `from`.
fn edf(me: MacAddr, ap: MacAddr, from: Instant) -> Edf<Sender> {
    let config = EdfConfig {
        gap: MS(1),
        ..EdfConfig::new(CostEstimate::fixed(Duration::from_us(100)), MS(10))
    };
    let mut sender = SenderConfig::new(Identity::station(me, ap), RATE);
    sender.how = sender.how.not_before(from);
    Edf::new(config, Sender::new(sender))
}

/// Five payloads wait for the same moment, and go by their deadlines.
#[test]
fn the_earliest_deadline_goes_first() {
    let Some((_lab, radios)) = lab() else { return };
    let (ap_adapter, adapter) = (open(&radios[0]), open(&radios[1]));
    let (ap, me) = (ap_adapter.address(), adapter.address());
    let start = Host::now() + MS(20);
    let station = || edf(me, ap, start + MS(5));
    let plan = |(name, life): (u8, u64)| (start, ap, vec![name; 50], MS(life));
    let app = App {
        plan: [(b'a', 90), (b'b', 30), (b'c', 10), (b'd', 11), (b'e', 8)]
            .map(plan)
            .into(),
        ..App::default()
    };
    let until = start + MS(200);
    let (ap, sta) = std::thread::scope(|scope| {
        let sender = Sender::<32>::new(SenderConfig::new(Identity::access_point(ap), RATE));
        let ap = scope.spawn(move || drive(ap_adapter, sender, App::default(), until));
        let sta = drive(adapter, station(), app, until);
        (ap.join().unwrap(), sta)
    });
    let order: Vec<u8> = ap.app.delivered.iter().map(|(_, payload)| payload[0]).collect();
    assert_eq!(order, b"ecdba");
    let confirms = sta.protocol.protocol().counters().confirms;
    assert_eq!((sta.protocol.counters().acked, confirms.acked), (5, 5));
    assert_replays(&sta, station());
}

/// Nobody acknowledges: one-shots are repeated until the tries are used up. What cannot be there in time is not sent.
#[test]
fn what_is_not_acked_is_repeated_and_what_is_too_late_expires() {
    let Some((_lab, radios)) = lab() else { return };
    let adapter = open(&radios[1]);
    let (me, nobody) = (adapter.address(), MacAddr::local(0xabad));
    let start = Host::now() + MS(20);
    let plan = vec![
        (start, nobody, vec![1; 50], MS(500)), // Seven tries, 1 ms apart.
        (start + MS(50), nobody, vec![2; 50], Duration::from_us(50)), // An attempt takes 100 us.
    ];
    let app = App {
        plan,
        ..App::default()
    };
    let done = drive(adapter, edf(me, nobody, start), app, start + MS(200));
    let tally = done.protocol.protocol().counters().confirms;
    assert_eq!((tally.not_acked, tally.expired, tally.total()), (1, 1, 2));
    let c = done.protocol.counters();
    assert_eq!((c.attempts, c.exhausted, c.dropped, c.acked), (7, 1, 1, 0));
    assert_eq!(done.counters.sent, 7, "each attempt is one packet");
    assert_replays(&done, edf(me, nobody, start));
}
