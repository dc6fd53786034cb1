//! The schedule for flows with a period, a deadline, a payload and losses: how many slots each needs, and whether all get
//! what they want. Asked before a schedule is used and before a node joins one.
//!
//! A flow needs as many attempts as its packet error ratio asks for. A message that came just too late for a slot waits for
//! the next ones of its flow; the last attempt that it needs must be over by its deadline, and messages must not queue up
//! without end. Shared slots do not count, since nobody can rely on them.
//!
//! If one slot per flow and cycle, with the second chances that the cycle has room for, does all this, that is the schedule.
//! Otherwise a flow with period T, deadline D and a attempts gets n slots in a cycle of length Z, where n is at least a Z / T,
//! or its messages would queue up, and a Z / (D - X), since a of its slots have to begin within D but for X, the time from
//! being ready for a slot to the end of the exchange. The slots are spread over the cycle; as they push each other about,
//! flows that are still too slow get one more until all are in time or the cycle is full. The answer is sufficient: another
//! layout may do with fewer slots.
//!
//! A node has several flows to one receiver: a message may go in a slot of another one of them. Those that no shorter slot has room for go
//! first, and of these the earliest deadline, which does with any slots with which some order does; so each flow is judged by its own slots, with
//! as many attempts as the flow of its link that needs most.

use super::schedule::{BeaconSlot, Flow, PlanError, Slot, SlotCosts, SlotUse, TdmaPlan};
use crate::mac::edf::feasible::retries_for;
use frame::MacAddr;
use radio::Duration;

/// What a flow wants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demand {
    /// Who sends how much to whom.
    pub flow: Flow,
    /// Shortest time between two messages.
    pub period: Duration,
    /// By when a message has to be there, after it was handed down. [`ANY_TIME`]: there is no hurry.
    pub deadline: Duration,
    /// When in the cycle messages are handed down, if that is always at the same time and the period is a multiple of the cycle.
    /// `None`: at any time.
    pub phase: Option<Duration>,
    /// Share of attempts that fail, 0 to 1, independently.
    pub per: f64,
    /// Share of messages that may miss, above 0 to 1.
    pub target: f64,
}

/// The deadline of messages that have none.
pub const ANY_TIME: Duration = Duration::from_ns(u64::MAX);

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
    /// The attempts that a flow needs take longer than its deadline, however many slots it has.
    TooSlow {
        /// Index of the flow.
        flow: usize,
        /// How long they take at least.
        worst: Duration,
    },
    /// Messages of a flow come faster than its slots can carry them.
    TooOften {
        /// Index of the flow.
        flow: usize,
    },
    /// One slot in a cycle is not enough for a flow, and as many as it needs do not fit beside those of the others.
    NoRoom {
        /// Index of the flow.
        flow: usize,
        /// How many it needs, at least.
        slots: u16,
    },
}

impl Denied {
    /// Which flow it is about, if it is one.
    pub const fn flow(&self) -> Option<usize> {
        match *self {
            Denied::Plan(_) => None,
            Denied::TooLossy { flow }
            | Denied::TooSlow { flow, .. }
            | Denied::TooOften { flow }
            | Denied::NoRoom { flow, .. } => Some(flow),
        }
    }
}

impl core::fmt::Display for Denied {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Denied::Plan(e) => write!(f, "{e}"),
            Denied::TooLossy { .. } => write!(f, "too lossy: 65 attempts do not reach the wanted share"),
            Denied::TooSlow { worst, .. } => {
                let us = worst.as_ns().div_ceil(1_000);
                write!(
                    f,
                    "too slow: its attempts take {us} us, whatever its slots are, and its deadline is shorter"
                )
            }
            Denied::TooOften { .. } => write!(f, "too often: messages come faster than its slots"),
            Denied::NoRoom { slots, .. } => {
                write!(
                    f,
                    "no room: it needs {slots} slots or more in a cycle to be in time, and beside those of the others they do not fit"
                )
            }
        }
    }
}

impl core::error::Error for Denied {}

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
    if demands.len() > S {
        let needed = demands.len() + usize::from(beacon.is_some());
        return Err(Denied::Plan(PlanError::TooManySlots { needed }));
    }
    let flows = flows_of::<S>(demands);
    let plan = TdmaPlan::<S>::new(&flows[..demands.len()], cycle, beacon, costs).map_err(Denied::Plan)?;
    fit(&plan, demands, confirm)
}

/// The same for a cycle that there is already: `like` is any plan with its beacon and its slot to ask in.
///
/// # Errors
/// As [`admit`].
pub fn fit<const S: usize>(
    like: &TdmaPlan<S>,
    demands: &[Demand],
    confirm: Duration,
) -> Result<TdmaPlan<S>, Denied> {
    if demands.len() > S {
        return Err(Denied::Plan(PlanError::TooManySlots {
            needed: demands.len(),
        }));
    }
    let flows = flows_of::<S>(demands);
    let flows = &flows[..demands.len()];
    let mut attempts = [0; S];
    for (flow, d) in demands.iter().enumerate() {
        attempts[flow] = 1 + retries_for(d.per, d.target).ok_or(Denied::TooLossy { flow })?;
    }
    // the slots of a link are there for all its frames, so each flow has as many attempts as that of them that needs most
    for (i, d) in demands.iter().enumerate() {
        let link = |d: &Demand| (d.flow.from, d.flow.to);
        let of_link = demands.iter().zip(&attempts).filter(|(o, _)| link(o) == link(d));
        attempts[i] = of_link.map(|(_, n)| *n).max().unwrap_or(attempts[i]);
    }
    let plan = like.with_flows(flows).map_err(Denied::Plan)?;
    let plain = (0..demands.len()).try_for_each(|i| judge(&plan, i, &demands[i], attempts[i], confirm));
    let Err(denied) = plain else {
        return Ok(plan);
    };
    let mut slots = [1; S];
    for (i, d) in demands.iter().enumerate() {
        slots[i] = least(&plan, i, d, attempts[i], confirm)?;
    }
    let slots = &mut slots[..demands.len()];
    let mut flow = denied.flow().unwrap_or(0);
    loop {
        let n = slots[flow];
        let Ok(plan) = like.with_slots(flows, slots) else {
            return Err(Denied::NoRoom { flow, slots: n });
        };
        let mut denied = None;
        for (i, d) in demands.iter().enumerate() {
            if judge(&plan, i, d, attempts[i], confirm).is_err() {
                slots[i] += 1;
                denied = denied.or(Some(i));
            }
        }
        match denied {
            None => return Ok(plan),
            Some(first) => flow = first,
        }
    }
}

fn flows_of<const S: usize>(demands: &[Demand]) -> [Flow; S] {
    let nothing = Flow {
        from: MacAddr::BROADCAST,
        to: MacAddr::BROADCAST,
        payload_octets: 0,
    };
    core::array::from_fn(|i| demands.get(i).map_or(nothing, |d| d.flow))
}

/// The least number of slots in a cycle with which a flow can be in time, whatever the layout is.
fn least<const S: usize>(
    plan: &TdmaPlan<S>,
    flow: usize,
    demand: &Demand,
    attempts: u32,
    confirm: Duration,
) -> Result<u16, Denied> {
    let costs = plan.costs();
    let one = costs.release.high + costs.guard() + exchange(plan, flow);
    let all = one + (one + confirm).times(u64::from(attempts) - 1);
    if all > demand.deadline {
        return Err(Denied::TooSlow { flow, worst: all });
    }
    if demand.period == Duration::ZERO {
        return Err(Denied::TooOften { flow });
    }
    let needed = plan.cycle().as_ns().saturating_mul(attempts.into());
    let often = needed.div_ceil(demand.period.as_ns());
    let soon = match known_phase(plan, demand) {
        Some(_) => 1,
        // to be ready for a slot just then is not to be reckoned with
        None if all == demand.deadline => return Err(Denied::TooSlow { flow, worst: all }),
        None => needed.div_ceil(demand.deadline.less(one).as_ns()),
    };
    // more than a plan can have is as good as any such number
    Ok(often.max(soon).clamp(1, S as u64 + 1) as u16)
}

fn own<const S: usize>(plan: &TdmaPlan<S>, flow: usize) -> impl Iterator<Item = (usize, &Slot)> {
    let mine = move |s: &Slot| matches!(s.owner, SlotUse::Flow { flow: f, .. } if usize::from(f) == flow);
    plan.slots().enumerate().filter(move |(_, s)| mine(s))
}

fn exchange<const S: usize>(plan: &TdmaPlan<S>, flow: usize) -> Duration {
    own(plan, flow)
        .map(|(_, s)| s.exchange)
        .next()
        .unwrap_or_default()
}

/// When in the cycle messages come, if the period keeps to that.
fn known_phase<const S: usize>(plan: &TdmaPlan<S>, demand: &Demand) -> Option<Duration> {
    let (period, cycle) = (demand.period.as_ns(), plan.cycle().as_ns());
    demand
        .phase
        .filter(|_| period > 0 && cycle > 0 && period.is_multiple_of(cycle))
}

/// Whether a flow gets what it wants in a plan.
fn judge<const S: usize>(
    plan: &TdmaPlan<S>,
    flow: usize,
    demand: &Demand,
    attempts: u32,
    confirm: Duration,
) -> Result<(), Denied> {
    let mut worst = Duration::ZERO;
    let mut from = |came, ready| {
        let took = busy(plan, flow, demand.period, attempts, confirm, came, ready);
        worst = worst.max(took.ok_or(Denied::TooOften { flow })?);
        Ok(())
    };
    match known_phase(plan, demand) {
        Some(phase) => {
            let came = phase + plan.costs().release.high;
            from(came, came)?;
        }
        // a slot has just been given up, a release ahead of its start
        None => {
            for (_, s) in own(plan, flow) {
                from(s.start, s.start + Duration::from_ns(1))?;
            }
        }
    }
    match worst > demand.deadline {
        true => Err(Denied::TooSlow { flow, worst }),
        false => Ok(()),
    }
}

/// The longest time from the submission of a message to the end of its last attempt, of messages that come a period apart
/// until none is left waiting. The first came a release ahead of `came` and may use slots from `ready` on. `None`: there is
/// no such time, they queue up without end.
fn busy<const S: usize>(
    plan: &TdmaPlan<S>,
    flow: usize,
    period: Duration,
    attempts: u32,
    confirm: Duration,
    mut came: Duration,
    mut ready: Duration,
) -> Option<Duration> {
    let (release, guard) = (plan.costs().release.high, plan.costs().guard());
    let slots = own(plan, flow).count() as u64;
    if slots == 0 {
        return None;
    }
    let cycles = (0..).flat_map(|n| own(plan, flow).map(move |(i, s)| (i, s, plan.cycle().times(n))));
    let (mut made, mut messages, mut longest) = (0, 0, Duration::ZERO);
    let mut known: Option<(usize, Duration)> = None;
    for (i, s, since) in cycles {
        if since + s.start < ready {
            continue;
        }
        let end = since + s.start + guard + s.exchange;
        made += 1;
        if made < attempts {
            ready = end + confirm + release;
            continue;
        }
        // the next message need not wait for the confirm of this one
        ready = end;
        longest = longest.max((end + release).less(came));
        came += period;
        made = 0;
        messages += 1;
        if ready <= came {
            break;
        }
        // with so many messages behind each other, the last slots of some were the same; from there on all repeats itself
        match known {
            None if messages >= slots => known = Some((i, ready.less(came))),
            Some((at, late)) if at == i => match ready.less(came) > late {
                true => return None,
                false => break,
            },
            _ => {}
        }
    }
    Some(longest)
}

#[cfg(test)]
mod tests {
    use super::super::schedule::Release;
    use super::*;
    use frame::{MacAddr, Phy, Rate};
    use proptest::prelude::*;

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
            phase: None,
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
        assert_eq!(denied, Denied::NoRoom { flow: 1, slots: 2 });
        // no number of slots makes an exchange shorter
        let hopeless = Demand {
            deadline: exchange,
            ..demands[1]
        };
        let denied = ask(&[demands[0], hopeless], shortest).unwrap_err();
        let worst = costs().release.high + costs().guard() + exchange;
        assert_eq!(denied, Denied::TooSlow { flow: 1, worst });
        // messages may wait for each other if their deadline allows, but must not queue up without end
        let often = |period| Demand { period, ..demands[0] };
        assert!(ask(&[often(shortest), demands[1]], shortest).is_ok());
        let quicker = shortest.less(Duration::from_ns(1));
        assert_eq!(
            ask(&[often(quicker)], shortest).map(|p| p.rounds()),
            Ok(2),
            "alone it has two slots"
        );
        let denied = ask(&[often(quicker), demands[1]], shortest).unwrap_err();
        assert_eq!(denied, Denied::NoRoom { flow: 0, slots: 2 });
        let denied = ask(&[often(Duration::ZERO), demands[1]], shortest).unwrap_err();
        assert_eq!(denied, Denied::TooOften { flow: 0 });
    }

    /// Losses ask for more attempts, and these for time.
    #[test]
    fn losses_cost_time() {
        let lossy = |per, target| Demand {
            per,
            target,
            ..demand(1)
        };
        let cycle = US(175);
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
        // a release, a guard and an exchange for each, and its outcome before the next one
        let one = worst(0.0, 0.02);
        assert_eq!(worst(0.1, 0.02).less(one), one + US(50));
        assert_eq!(worst(0.1, 0.002).less(worst(0.1, 0.02)), one + US(50));
        // one slot in a cycle, and in the next one the outcome is not known yet: every second one
        let in_time = |deadline| {
            ask(
                &[Demand {
                    deadline,
                    ..lossy(0.1, 0.02)
                }],
                cycle,
            )
            .is_ok()
        };
        assert!(in_time(one + cycle.times(3)) && !in_time(one + cycle.times(3).less(Duration::from_ns(1))));
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

    /// One flow that comes ten times in a cycle among 39 that come once: it has its slots, spread so that each message meets one
    /// in time. One slot each, in rounds, would not do.
    #[test]
    fn a_fast_flow_has_more_slots() {
        let slow = |n| Demand {
            period: MS(20),
            deadline: MS(20),
            ..demand(n)
        };
        let fast = Demand {
            period: MS(2),
            deadline: MS(2),
            ..demand(40)
        };
        let mut demands: std::vec::Vec<_> = (1..40).map(slow).collect();
        demands.push(fast);
        let plan = admit::<128>(&demands, MS(20), None, &costs(), US(50)).unwrap();
        let starts: std::vec::Vec<_> = own(&plan, 39).map(|(_, s)| s.start).collect();
        assert!((11..=13).contains(&starts.len()), "{}", starts.len());
        let airtime = own(&plan, 39).next().unwrap().1.exchange;
        let next = starts.iter().skip(1).copied().chain([starts[0] + MS(20)]);
        for (a, b) in starts.iter().copied().zip(next) {
            assert!(b.less(a) + airtime <= fast.deadline, "{a:?} {b:?}");
        }
        // all the others have what a deadline of one cycle needs, too
        assert!((0..39).all(|i| plan.slots_of(i) == 2));
        // twice as often does not fit beside them any more, and it is said who that is
        let faster = Demand {
            period: US(250),
            deadline: US(250),
            ..fast
        };
        demands[39] = faster;
        let denied = admit::<128>(&demands, MS(20), None, &costs(), US(50)).unwrap_err();
        assert!(matches!(denied, Denied::NoRoom { .. }), "{denied:?}");
    }

    /// Of flows that are alike but for their losses, the lossy ones have the slots for their second chances.
    #[test]
    fn a_lossy_flow_has_more_slots() {
        let lossy = |node, per| Demand {
            period: MS(10),
            deadline: MS(10),
            per,
            target: 1e-4,
            ..demand(node)
        };
        let demands = [lossy(1, 0.1), lossy(2, 1e-4), lossy(3, 0.0)];
        // no room for a third round
        let cycle = US(1_210);
        let plan = |demands: &[Demand]| ask(demands, cycle).unwrap();
        let of = |plan: &TdmaPlan<16>| [0, 1, 2].map(|f| plan.slots_of(f));
        assert_eq!(of(&plan(&demands)), [2, 2, 2], "rounds, as there is time");
        let hurried = demands.map(|d| Demand {
            deadline: US(2_200),
            ..d
        });
        let got = of(&plan(&hurried));
        assert!(got[0] > got[1] && got[1] >= got[2], "{got:?}");
        // of one link all have what the lossy one needs: each other's slots may be taken
        let of_one = hurried.map(|d| Demand {
            flow: demand(1).flow,
            ..d
        });
        let denied = ask(&of_one, cycle).unwrap_err();
        assert!(matches!(denied, Denied::NoRoom { slots: 3.., .. }), "{denied:?}");
    }

    /// Messages that always come at the start of the cycle need no more than their slots in it.
    #[test]
    fn a_phase_that_is_known_saves_slots() {
        let demands = [demand(1), demand(2)];
        let shortest = TdmaPlan::<16>::shortest_cycle(&demands.map(|d| d.flow), None, &costs(), 0);
        let cycle = shortest + costs().release.high;
        let loops = |phase| {
            demands.map(|d| Demand {
                period: cycle,
                deadline: cycle + costs().release.high,
                phase,
                ..d
            })
        };
        assert!(ask(&loops(None), cycle).is_err());
        // the first slot begins before the message is ready for it
        assert!(ask(&loops(Some(Duration::ZERO)), cycle).is_err());
        let before = cycle.less(costs().release.high);
        assert!(ask(&loops(Some(before)), cycle).is_ok());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        /// What is admitted holds: messages with all the losses that were reckoned with, from any instant on, meet their deadline.
        #[test]
        fn what_is_admitted_is_in_time(
            wants in proptest::collection::vec((1u64..20, 1u64..40, 0u16..600, 0usize..3), 1..6),
            cycle in 1u64..16,
            at in any::<u32>(),
        ) {
            let (cycle, confirm) = (US(cycle * 500), US(50));
            let demands: std::vec::Vec<_> = (1..).zip(&wants).map(|(n, (period, deadline, octets, losses))| {
                let mut d = demand(n);
                d.flow.payload_octets = *octets;
                (d.period, d.deadline) = (US(period * 400), US(deadline * 400));
                (d.per, d.target) = [(0.0, 1e-6), (0.01, 1e-3), (0.1, 2e-3)][*losses];
                d
            }).collect();
            if let Ok(plan) = admit::<64>(&demands, cycle, None, &costs(), confirm) {
                let end = plan.slots().last().map(|s| s.start + s.length);
                prop_assert!(end.unwrap() <= cycle);
                for (a, b) in plan.slots().zip(plan.slots().skip(1)) {
                    prop_assert!(a.start + a.length <= b.start);
                }
                for (i, d) in demands.iter().enumerate() {
                    let attempts = [1, 2, 3][wants[i].3];
                    let late = latest(&plan, i, d, attempts, confirm, Duration::from_ns(u64::from(at) % cycle.as_ns()));
                    prop_assert!(late <= d.deadline, "{i}: {late:?} {d:?}");
                }
            }
        }
    }

    /// The longest latency of 200 messages from `at` on, slot by slot: each fails in all attempts but the last.
    fn latest(
        plan: &TdmaPlan<64>,
        flow: usize,
        d: &Demand,
        attempts: u32,
        confirm: Duration,
        at: Duration,
    ) -> Duration {
        let (release, guard) = (costs().release.high, costs().guard());
        let (mut free, mut longest) = (Duration::ZERO, Duration::ZERO);
        for n in 0..200 {
            let came = at + d.period.times(n);
            let mut ready = free.max(came + release);
            for _ in 0..attempts {
                let starts = (0..)
                    .flat_map(|c| own(plan, flow).map(move |(_, s)| (plan.cycle().times(c) + s.start, s)));
                let (start, slot) = { starts }.find(|(start, _)| *start >= ready).unwrap();
                free = start + guard + slot.exchange;
                ready = free + confirm + release;
            }
            longest = longest.max(free.less(came));
        }
        longest
    }
}
