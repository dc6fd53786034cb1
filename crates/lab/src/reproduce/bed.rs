//! The measurement bed of SDMAC (Cena et al. 2018, section IV), simulated: an access point that sends beacons, and
//! one station that sends a confirmed one-shot some time after each of them and stamps its way at t1 to t9.
//!
//! A day of measurements is cut into pieces, each a world of its own with its own seed, so that they can run on any
//! number of processors and give the same numbers.

mod sets;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::{MacAddr, Phy, Rate, RateSet};
use protocols::mac::beacon::{Beaconer, BeaconerConfig};
use protocols::mac::data::Identity;
use protocols::mac::oneshot::{Oneshot, OneshotConfig};
use protocols::mac::sink::Sink;
use radio::{Duration, Event, Instant, Protocol, Radio};
use sim::host::HostModel;
use sim::rng::{Cause, Stream};
use sim::world::NoiseConfig;
use sim::{AdapterConfig, LinkLoss, LossModel, MediumConfig, NodeConfig, Position, Process, World};

use sets::{Recorder, Shared};
pub use sets::{Set, Sets, Span};

/// From one beacon to the next: what the numbers of samples in Table V fit (Table III says 51.2 ms).
pub const PERIOD_NS: u64 = 50_000_000;
/// Channel 165.
const MHZ: u16 = 5_825;
const AP: MacAddr = MacAddr::local(1);
const STATION: MacAddr = MacAddr::local(2);
/// Numbers of the nodes in the order in which they are added.
const AP_NODE: u32 = 0;
const STATION_NODE: u32 = 1;

/// Time on the air of the exchange that the paper takes off, in ns: by Table III, for `octets` of payload.
pub fn air_ns(acked: bool, octets: u16) -> u64 {
    let (phy, rate) = (Phy::A, Rate::OFDM_54);
    // MAC header, LLC/SNAP and FCS
    let data_us = frame::ppdu_us(rate, u32::from(octets) + 24 + 8 + 4, phy.band);
    let rest_us = if acked {
        phy.sifs_us + phy.ack_us(rate, RateSet::OFDM_6_ONLY)
    } else {
        phy.ath9k_ack_timeout_us
    };
    u64::from(data_us + rest_us) * 1_000
}

/// The conditions of a measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Octets of payload.
    pub octets: u16,
    /// Probability that a data frame is lost without a trace at the receiver.
    pub data_loss: f64,
    /// Probability that an ACK is lost.
    pub ack_loss: f64,
    /// Share of the lost ACKs that were heard and corrupt.
    pub heard: f64,
    /// Foreign transmissions per second.
    pub foreign_hz: f64,
}

impl Conditions {
    /// A channel without any loss or foreigner.
    pub const fn clean(octets: u16) -> Conditions {
        Conditions {
            octets,
            data_loss: 0.0,
            ack_loss: 0.0,
            heard: 0.0,
            foreign_hz: 0.0,
        }
    }
}

/// An adapter of the testbed: 802.11a, ACKs at 6 Mb/s, the ACK timeout of ath9k.
pub fn adapter(address: MacAddr) -> AdapterConfig {
    AdapterConfig {
        basic: RateSet::OFDM_6_ONLY,
        ack_timeout_us: Phy::A.ath9k_ack_timeout_us,
        ..AdapterConfig::station(address, Phy::A, MHZ, false)
    }
}

/// The medium of the testbed: all close together, so that nothing is lost to noise.
pub fn medium() -> MediumConfig {
    MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    }
}

/// A node of the bed.
// a handful of nodes for each world
#[allow(clippy::large_enum_variant)]
enum Role {
    AccessPoint(Beaconer<Sink>),
    Station(Oneshot<0>),
}

impl Protocol for Role {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Role::AccessPoint(p) => p.handle(now, event, radio),
            Role::Station(p) => p.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Role::AccessPoint(p) => p.deadline(),
            Role::Station(p) => p.deadline(),
        }
    }
}

/// Runs one piece of `periods` beacon periods. What it has measured when `stop` is set is returned as well.
pub fn run(
    conditions: &Conditions,
    host: &Rc<HostModel>,
    seed: u64,
    periods: u64,
    stop: &AtomicBool,
) -> Sets {
    let mut world = World::new(&medium(), seed);
    let sink = Sink::new(Identity::access_point(AP));
    let beacons = BeaconerConfig::new(AP, Duration::from_ns(PERIOD_NS), Rate::OFDM_6);
    let place = Position::default();
    world.add_node(
        NodeConfig::ideal(place, adapter(AP)),
        Role::AccessPoint(Beaconer::new(beacons, sink)),
    );
    let task = OneshotConfig {
        payload_octets: conditions.octets,
        ..OneshotConfig::paper(Identity::station(STATION, AP))
    };
    let node = NodeConfig {
        host: Some(Rc::clone(host)),
        ..NodeConfig::ideal(place, adapter(STATION))
    };
    world.add_node(node, Role::Station(Oneshot::new(task)));
    let fixed = |p: f64| (p > 0.0).then_some(Process::Fixed(p));
    let data = LinkLoss {
        data: fixed(conditions.data_loss),
        ..LinkLoss::default()
    };
    world.set_link_loss(STATION_NODE, AP_NODE, data);
    let response = LinkLoss {
        response: fixed(conditions.ack_loss),
        heard: conditions.heard,
        ..LinkLoss::default()
    };
    world.set_link_loss(AP_NODE, STATION_NODE, response);
    if conditions.foreign_hz > 0.0 {
        world.add_noise(&foreigner(conditions.foreign_hz, seed));
    }
    let recorder = Rc::new(RefCell::new(Recorder::new(conditions.octets)));
    world.set_observer(Box::new(Shared(Rc::clone(&recorder))));
    let mut done = 0;
    while done < periods && !stop.load(Ordering::Relaxed) {
        done = (done + 1_000).min(periods);
        // the last sample is over long before the next beacon, which belongs to the next step
        world.run_until(done * PERIOD_NS - 1);
    }
    let mut recorder = recorder.borrow_mut();
    recorder.settle();
    let mut sets = std::mem::take(&mut recorder.sets);
    sets.periods = done;
    sets
}

/// Something foreign on the channel, now and then: 300 us on the air, about as long as a probe request at 6 Mb/s.
fn foreigner(hz: f64, seed: u64) -> NoiseConfig {
    let off_ns = 1e9 / hz;
    let first = Stream::new(seed, 0, Cause::Protocol).exponential(off_ns);
    NoiseConfig {
        position: Position::default(),
        mhz: MHZ,
        tx_dbm: 16.0,
        on_ns: 300_000,
        off_ns: off_ns as u64,
        random: true,
        start_ns: first as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::host::Profile;

    fn measure(conditions: Conditions, periods: u64) -> Sets {
        let host = HostModel::new(&Profile::built_in("table5").unwrap()).unwrap();
        run(&conditions, &Rc::new(host), 11, periods, &AtomicBool::new(false))
    }

    #[test]
    fn every_beacon_gives_a_sample_and_every_exchange_lasts_as_long_as_the_standard_says() {
        let sets = measure(Conditions::clean(50), 2_000);
        assert_eq!(
            (sets.acked.count(), sets.samples(), sets.periods),
            (2_000, 2_000, 2_000)
        );
        let exchange: Vec<_> = sets.acked.of(Span::Exchange).iter().collect();
        assert_eq!(exchange, [(96_000, 2_000)]);
        assert_eq!(sets.sifs_deviation_ns, 0);
    }

    #[test]
    fn losses_fall_into_the_right_set() {
        let clean = Conditions::clean(50);
        let lost = Conditions {
            data_loss: 1.0,
            ..clean
        };
        let sets = measure(lost, 500);
        assert_eq!((sets.data_lost.count(), sets.samples()), (500, 500));
        assert_eq!(
            sets.data_lost.of(Span::Exchange).iter().collect::<Vec<_>>(),
            [(61_000, 500)]
        );
        // of the ACKs, those that were heard end the exchange later
        let lost = Conditions {
            ack_loss: 1.0,
            heard: 0.25,
            ..clean
        };
        let sets = measure(lost, 2_000);
        assert_eq!((sets.ack_lost.count(), sets.samples()), (2_000, 2_000));
        let exchange: Vec<_> = sets.ack_lost.of(Span::Exchange).iter().collect();
        let [(61_000, timeouts), (96_000, corrupt)] = exchange[..] else {
            panic!("{exchange:?}")
        };
        assert!(timeouts + corrupt == 2_000 && (400..600).contains(&corrupt));
    }

    #[test]
    fn samples_near_foreign_frames_are_discarded() {
        let busy = Conditions {
            foreign_hz: 10.0,
            ..Conditions::clean(50)
        };
        let sets = measure(busy, 5_000);
        // a beacon that is disturbed starts no measurement
        let taken = sets.samples() + sets.discarded;
        assert!((4_950..=5_000).contains(&taken), "{taken}");
        // 20 ms and the two durations around each, at random: 1 - exp(-10 / s * 20.4 ms)
        let share = sets.discarded as f64 / 5_000.0;
        assert!((share - 0.184).abs() < 0.03, "{share}");
        assert_eq!(
            sets.acked.count(),
            sets.samples(),
            "what was disturbed is not among the samples"
        );
    }

    #[test]
    fn stopped_at_once() {
        let host = HostModel::new(&Profile::built_in("table5").unwrap()).unwrap();
        let sets = run(
            &Conditions::clean(50),
            &Rc::new(host),
            1,
            5_000,
            &AtomicBool::new(true),
        );
        assert_eq!((sets.samples(), sets.periods), (0, 0));
    }
}
