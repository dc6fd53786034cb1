//! Whether a schedule keeps the promises that its flows want: asked before a node joins, and again without one that
//! has left.
//!
//! A flow needs as many attempts as its packet error ratio asks for. A message that came just too late for a slot waits for
//! the next ones of its flow; the last attempt that it needs must be over by its deadline, and before the next message
//! comes. Shared slots do not count, since nobody can rely on them.

use super::schedule::{BeaconSlot, Flow, PlanError, Slot, SlotCosts, SlotUse, TdmaPlan};
use crate::mac::edf::feasible::retries_for;
use radio::Duration;

/// What a flow wants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demand {
    /// Who sends how much to whom.
    pub flow: Flow,
    /// Shortest time between two messages.
    pub period: Duration,
    /// By when a message has to be there, after it was handed down.
    pub deadline: Duration,
    /// Share of attempts that fail, 0 to 1, independently.
    pub per: f64,
    /// Share of messages that may miss, above 0 to 1.
    pub target: f64,
}

/// Why a set of flows is not admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// There is no schedule at all.
    Plan(PlanError),
    /// 65 attempts do not reach the target.
    TooLossy {
        /// Index of the flow.
        flow: usize,
    },
    /// The attempts that a flow needs take longer than its deadline or period.
    TooSlow {
        /// Index of the flow.
        flow: usize,
        /// How long they take at worst.
        worst: Duration,
    },
}

/// The schedule, if all flows get what they want. `confirm` is the time from the end of an exchange until its
/// outcome is known: an earlier slot is of no use to a retry.
///
/// # Errors
/// [`Denied`] with the first flow that does not.
pub fn admit<const S: usize>(
    demands: &[Demand],
    cycle: Duration,
    beacon: Option<BeaconSlot>,
    costs: &SlotCosts,
    confirm: Duration,
) -> Result<TdmaPlan<S>, Denied> {
    let mut flows = [Flow {
        from: frame::MacAddr::BROADCAST,
        to: frame::MacAddr::BROADCAST,
        payload_octets: 0,
    }; S];
    if demands.len() > S {
        let needed = demands.len() + usize::from(beacon.is_some());
        return Err(Denied::Plan(PlanError::TooManySlots { needed }));
    }
    for (flow, demand) in flows.iter_mut().zip(demands) {
        *flow = demand.flow;
    }
    let plan = TdmaPlan::<S>::new(&flows[..demands.len()], cycle, beacon, costs).map_err(Denied::Plan)?;
    for (flow, demand) in demands.iter().enumerate() {
        let retries = retries_for(demand.per, demand.target).ok_or(Denied::TooLossy { flow })?;
        let worst = worst(&plan, flow, retries + 1, confirm);
        if worst > demand.deadline.min(demand.period) {
            return Err(Denied::TooSlow { flow, worst });
        }
    }
    Ok(plan)
}

/// From the submission of a message to the end of its n-th attempt, at worst: it comes when a slot has just been
/// given up, a release ahead of its start.
fn worst<const S: usize>(plan: &TdmaPlan<S>, index: usize, attempts: u32, confirm: Duration) -> Duration {
    let mine = |s: &&Slot| matches!(s.owner, SlotUse::Flow { flow, .. } if usize::from(flow) == index);
    let (release, guard) = (plan.costs().release.high, plan.costs().guard());
    let from = |first: &Slot| {
        let came = first.start;
        let mut ready = first.start + Duration::from_ns(1);
        let mut made = 0;
        // a flow has a slot in each cycle, so this ends
        for cycle in 0.. {
            for s in plan.slots().filter(mine) {
                let start = s.start + plan.cycle().times(cycle);
                if start < ready {
                    continue;
                }
                made += 1;
                let end = start + guard + s.exchange;
                if made == attempts {
                    return (end + release).less(came);
                }
                ready = end + confirm + release;
            }
        }
        unreachable!("a flow has a slot in each cycle")
    };
    plan.slots().filter(mine).map(from).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Release;
    use super::*;
    use frame::{MacAddr, Phy, Rate};

    const MS: fn(u64) -> Duration = Duration::from_ms;
    const US: fn(u64) -> Duration = Duration::from_us;

    fn costs() -> SlotCosts {
        let (min, high) = (US(10), US(30));
        SlotCosts::new(Phy::A, Rate::OFDM_24, Release { min, high }, US(5))
    }

    fn demand(node: u32) -> Demand {
        Demand {
            flow: Flow {
                from: MacAddr::local(node),
                to: MacAddr::local(0),
                payload_octets: 50,
            },
            period: MS(5),
            deadline: MS(5),
            per: 0.0,
            target: 1e-6,
        }
    }

    fn ask(demands: &[Demand], cycle: Duration) -> Result<TdmaPlan<16>, Denied> {
        admit(demands, cycle, None, &costs(), US(50))
    }

    /// Without losses a message waits for a cycle at most, and then for its slot.
    #[test]
    fn one_attempt_takes_a_cycle_and_an_exchange() {
        // so long that no second round fits
        let demands = [demand(1), demand(2)];
        let shortest = TdmaPlan::<16>::shortest_cycle(&demands.map(|d| d.flow), None, &costs(), 0);
        let plan = ask(&demands, shortest).unwrap();
        let exchange = plan.slot(0).unwrap().exchange;
        let worst = shortest + costs().guard() + exchange + costs().release.high;
        let tight = demands.map(|d| Demand { deadline: worst, ..d });
        assert!(ask(&tight, shortest).is_ok());
        let late = Demand {
            deadline: worst.less(Duration::from_ns(1)),
            ..demands[1]
        };
        let denied = ask(&[demands[0], late], shortest).unwrap_err();
        assert_eq!(denied, Denied::TooSlow { flow: 1, worst });
        // who comes more often than it is served is not admitted either
        let often = Demand {
            period: worst.less(Duration::from_ns(1)),
            ..demands[0]
        };
        assert_eq!(
            ask(&[often], shortest).map(|p| p.rounds()).map_err(|_| ()),
            Ok(2),
            "alone it has two slots"
        );
        assert_eq!(
            ask(&[often, demands[1]], shortest).unwrap_err(),
            Denied::TooSlow { flow: 0, worst }
        );
    }

    /// Losses ask for more attempts, and these for time.
    #[test]
    fn losses_cost_time() {
        let lossy = |per, target| Demand {
            per,
            target,
            ..demand(1)
        };
        let cycle = US(160);
        let worst = |per, target| {
            let short = Demand {
                deadline: US(1),
                ..lossy(per, target)
            };
            match ask(&[short], cycle).unwrap_err() {
                Denied::TooSlow { worst, .. } => worst,
                other => panic!("{other:?}"),
            }
        };
        // one slot in a cycle, and in the next one the outcome is not known yet: every second one
        assert_eq!(worst(0.1, 0.02).less(worst(0.0, 0.02)), cycle.times(2));
        assert_eq!(worst(0.1, 0.002).less(worst(0.1, 0.02)), cycle.times(2));
        assert_eq!(
            ask(&[lossy(1.0, 0.5)], cycle).unwrap_err(),
            Denied::TooLossy { flow: 0 }
        );
    }

    /// Nodes join until no slot is left; when one leaves, there is room for another.
    #[test]
    fn joining_and_leaving() {
        let mut set = std::vec::Vec::new();
        while ask(&[&set[..], &[demand(set.len() as u32)]].concat(), MS(2)).is_ok() {
            set.push(demand(set.len() as u32));
        }
        assert!(set.len() > 4);
        let more = demand(99);
        let denied = ask(&[&set[..], &[more]].concat(), MS(2)).unwrap_err();
        assert!(matches!(denied, Denied::Plan(_)), "{denied:?}");
        set.remove(0);
        set.push(more);
        assert!(ask(&set, MS(2)).is_ok());
    }
}
