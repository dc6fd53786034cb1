//! How well the clocks of TDMA agree: what following the beacons leaves as error, measured in the simulator before
//! the schedule is made, since the guard must cover it.
//!
//! The same overlay as in the schedule runs on the same hosts, clocks and links, with interference if there is any,
//! but without messages. Between two beacons the network time of every node is compared with the TSF that it follows.

use super::bench::{Bench, Seat};
use super::question::{Question, Scheme};
use super::tdma::{beacon_interval_ns, holdover};
use crate::guard::{self, LOOKS, SETTLING_BEACONS, beacons};
use protocols::mac::sink::Sink;
use protocols::mac::sync::{Sync, SyncConfig};
use protocols::mac::tdma::schedule::{Flow, TdmaPlan};
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{Duration, Event, Instant, Protocol, Queue, Radio};
use sim::rng::{Cause, Stream};
use std::cell::RefCell;
use std::rc::Rc;

/// Worlds, each with other drifts.
const WORLDS: u64 = 8;
/// Nodes in each at most: nodes do not know of each other.
const NODES: u32 = 8;

/// What was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ClockError {
    /// Beacons sent while the clocks were compared.
    pub beacons: u64,
    /// Comparisons of one clock with the TSF; clocks that were not trusted at that moment are left out.
    pub comparisons: u64,
    /// From the slowest to the fastest clock, ns: between the two quantiles that leave out 1 - [`Question::guard_probability`] at
    /// either end.
    pub spread_ns: u64,
}

impl ClockError {
    /// Of the differences between a clock and the TSF, ns.
    fn of(beacons: u64, differences: Vec<i64>, probability: f64) -> ClockError {
        ClockError {
            beacons,
            comparisons: differences.len() as u64,
            spread_ns: guard::spread_ns(differences, probability).unwrap_or(guard::RESOLUTION_NS),
        }
    }
}

type Follower = Tdma<Sink<1>, 1, 400, 2>;

/// A protocol that runs in a world while somebody else looks at its clock.
struct Open(Rc<RefCell<Follower>>);

impl Protocol for Open {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.0.borrow_mut().handle(now, event, radio);
    }
    fn deadline(&self) -> Option<Instant> {
        self.0.borrow().deadline()
    }
}

impl Bench {
    /// Measures it, with beacons as far apart as the schedule for the question's cycle has them at most.
    pub(super) fn measure_clocks(&self) -> ClockError {
        let interval_ns = beacon_interval_ns(self.question.cycle_ns);
        let beacons = beacons(interval_ns);
        let mut differences = Vec::new();
        for world in 0..WORLDS {
            self.compare(world, interval_ns, beacons, &mut differences);
        }
        ClockError::of(WORLDS * beacons, differences, self.question.guard_probability)
    }

    fn compare(&self, number: u64, interval_ns: u64, beacons: u64, differences: &mut Vec<i64>) {
        let seed = sim::rng::mix3(self.question.seed, number, 0xc10c);
        let nodes = self.question.nodes.min(NODES);
        let followers: Vec<_> = (0..=nodes)
            .map(|n| Rc::new(RefCell::new(self.follower(n, interval_ns))))
            .collect();
        let seat = |n: u32| Seat(Box::new(Open(followers[n as usize].clone())));
        let (mut world, clocks) = self.nodes(seed, Scheme::TDMA, nodes, &seat);
        self.disturb(&mut world, Scheme::TDMA);
        let mut random = Stream::new(seed, 0, Cause::Protocol);
        for beacon in SETTLING_BEACONS..SETTLING_BEACONS + beacons {
            let mut looks: [u64; LOOKS] = std::array::from_fn(|_| random.below(interval_ns));
            looks.sort_unstable();
            for look in looks {
                let true_ns = beacon * interval_ns + look;
                world.run_until(true_ns);
                for (follower, clock) in followers.iter().zip(&clocks) {
                    let local = Instant::from_ns(clock.show(true_ns));
                    let follower = follower.borrow();
                    let sync = follower.sync();
                    // the controller's adapter, which all follow, shows true time
                    let network = sync.to_network(local).filter(|_| sync.is_good(local));
                    differences.extend(network.map(|n| n.0.wrapping_sub(true_ns) as i64));
                }
            }
        }
    }

    /// The overlay of a node, with a schedule of little more than the beacon's slot.
    fn follower(&self, node: u32, interval_ns: u64) -> Follower {
        let (me, controller) = (Question::address(node), Question::address(0));
        let flow = Flow {
            from: controller,
            to: Question::address(1),
            payload_octets: 16,
        };
        let cycle = Duration::from_ns(interval_ns);
        let beacon = self.beacon(Scheme::TDMA, interval_ns);
        let plan = TdmaPlan::new(&[flow], cycle, Some(beacon), &self.costs(0)).expect("two slots in 50 ms");
        let band = self.question.phy.band;
        // a beacon that is lost does not end the measurement
        let holdover = holdover(self.question.cycle_ns);
        let sync = match node {
            0 => SyncConfig::own(band, holdover),
            _ => SyncConfig::new(band, holdover),
        };
        let config = TdmaConfig::new(me, plan, Sync::tracking(sync), controller, Queue::Voice);
        Tdma::new(config, Sink::new(self.identity(node)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(change: impl Fn(&mut Question)) -> ClockError {
        let mut q = Question {
            schemes: vec![Scheme::TDMA],
            ..Question::example()
        };
        change(&mut q);
        Bench::new(&q).unwrap().clock_error.unwrap()
    }

    /// Adapter time has steps of 1 us. The clocks drift by up to 1 us from beacon to beacon; were their rates not
    /// tracked, hundreds of beacons later they would be apart by hundreds of microseconds.
    #[test]
    fn what_is_left_is_about_the_resolution_of_adapter_time() {
        let e = measured(|_| ());
        assert_eq!((e.beacons, e.comparisons), (8 * 250, 8 * 250 * 8 * 9));
        assert!((500..4_000).contains(&e.spread_ns), "{e:?}");
        assert_eq!(e, measured(|_| ()), "the same seed, the same error");
    }

    /// A foreign network makes beacons collide, so that clocks run on by themselves for longer.
    #[test]
    fn lost_beacons_make_it_worse() {
        let disturbed = measured(|q| q.interference.load = 0.2);
        assert!(disturbed.spread_ns > measured(|_| ()).spread_ns, "{disturbed:?}");
    }

    #[test]
    fn the_resolution_stands_in_where_nobody_heard_a_beacon() {
        assert_eq!(ClockError::of(1, Vec::new(), 0.9999).spread_ns, 2_000);
    }
}
