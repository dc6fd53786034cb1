//! How well two hosts agree on the time of one beacon by the stamps of their interrupt routines (SDMAC, section V.D.1,
//! after Cena et al. 2015): receivers of one broadcast share its moment, and differ by the jitter of their stamps.

use std::rc::Rc;

use frame::{MacAddr, Rate};
use protocols::mac::beacon::{Beaconer, BeaconerConfig};
use protocols::mac::data::Identity;
use protocols::mac::sink::Sink;
use radio::{Duration, Event, Instant, Plane, Protocol, Radio};
use sim::host::HostModel;
use sim::{NodeConfig, Position, World};

use super::bed::{PERIOD_NS, adapter, medium};
use super::counts::Counts;

const AP: MacAddr = MacAddr::local(1);

enum Role {
    AccessPoint(Box<Beaconer<Sink>>),
    /// Notes (t6, t9) of every beacon.
    Listener(Vec<(u64, u64)>),
}

impl Protocol for Role {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Role::AccessPoint(p) => p.handle(now, event, radio),
            Role::Listener(seen) => {
                if let Event::Beacon(b) = event {
                    let t6 = b.received.stamps.get_host(Plane::T6).unwrap_or(now);
                    seen.push((t6.as_ns(), now.as_ns()));
                }
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Role::AccessPoint(p) => p.deadline(),
            Role::Listener(_) => None,
        }
    }
}

/// How far two hosts differ about each of `beacons` beacons, in ns.
pub struct Differences {
    /// By the stamps of the interrupt routine at its end, t6: with the jitter that Table V has of it.
    pub interrupt: Counts,
    /// By the time at which the application learns of it, t9.
    pub application: Counts,
}

/// Simulates two listeners with hosts of the same kind.
pub fn differences(host: &Rc<HostModel>, seed: u64, beacons: u64) -> Differences {
    let mut world = World::new(&medium(), seed);
    let place = Position::default();
    let config = BeaconerConfig::new(AP, Duration::from_ns(PERIOD_NS), Rate::OFDM_6);
    let ap = Beaconer::new(config, Sink::new(Identity::access_point(AP)));
    world.add_node(
        NodeConfig::ideal(place, adapter(AP)),
        Role::AccessPoint(Box::new(ap)),
    );
    let listeners = [2, 3].map(|i| {
        let node = NodeConfig {
            host: Some(Rc::clone(host)),
            ..NodeConfig::ideal(place, adapter(MacAddr::local(i)))
        };
        world.add_node(node, Role::Listener(Vec::new()))
    });
    world.run_until(beacons * PERIOD_NS - 1);
    let seen = listeners.map(|node| match world.protocol(node) {
        Role::Listener(seen) => seen,
        Role::AccessPoint(_) => unreachable!("it was added first"),
    });
    let mut differences = Differences {
        interrupt: Counts::default(),
        application: Counts::default(),
    };
    for (a, b) in seen[0].iter().zip(seen[1]) {
        differences.interrupt.push(a.0.abs_diff(b.0));
        differences.application.push(a.1.abs_diff(b.1));
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::host::Profile;

    #[test]
    fn ideal_hosts_agree_and_real_ones_differ() {
        let of = |name| {
            let host = HostModel::new(&Profile::built_in(name).unwrap()).unwrap();
            differences(&Rc::new(host), 5, 2_000)
        };
        let ideal = of("ideal");
        assert_eq!(ideal.interrupt.iter().collect::<Vec<_>>(), [(0, 2_000)]);
        let real = of("table5");
        // two independent confirm paths of 0.39 us deviation: E|X - Y| is about 0.4 us
        let mean = real.application.mean().unwrap().value;
        assert!((0.2..0.6).contains(&mean), "{mean}");
        let p99_9 = |c: &Counts| c.quantile(0.999).unwrap().value;
        assert!(
            p99_9(&real.interrupt) < p99_9(&real.application),
            "software adds to it"
        );
    }
}
