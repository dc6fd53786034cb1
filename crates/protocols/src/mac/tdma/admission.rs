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

mod worst;

use super::schedule::{BeaconSlot, Flow, PlanError, SlotCosts, TdmaPlan};
use crate::mac::edf::feasible::retries_for;
use frame::MacAddr;
use radio::Duration;
use worst::{exchange, judge, known_phase, waiting};

/// What a flow wants.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demand {
    /// Who sends how much to whom.
    pub flow: Flow,
    /// Shortest time between two messages.
    pub period: Duration,
    /// By when a message has to be there, after it was handed down. [`ANY_TIME`]: there is no hurry.
    pub deadline: Duration,
    /// Messages of it that wait at any time, whatever its slots are: of a source that never runs dry; else 0.
    pub backlog: u32,
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
    /// All can be in time, but until then more messages of a node wait than it holds, however many slots they have.
    TooMany {
        /// Index of the flow of this node of which most wait.
        flow: usize,
        /// Messages of the node that may wait at once, ...
        waiting: u64,
        /// ... and how many it holds.
        held: usize,
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
            | Denied::TooMany { flow, .. }
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
            Denied::TooMany { waiting, held, .. } => {
                write!(
                    f,
                    "too many: up to {waiting} messages of its node wait at once, and it holds {held}"
                )
            }
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

/// The schedule, if all flows get what they want, and no node has more messages at once than it holds. `confirm` is the time from the
/// end of an exchange until its outcome is known: an earlier slot is of no use to a retry.
///
/// # Errors
/// [`Denied`] with the first flow that does not.
pub fn admit<const S: usize>(
    demands: &[Demand],
    cycle: Duration,
    beacon: Option<BeaconSlot>,
    costs: &SlotCosts,
    confirm: Duration,
    held: usize,
) -> Result<TdmaPlan<S>, Denied> {
    if demands.len() > S {
        let needed = demands.len() + usize::from(beacon.is_some());
        return Err(Denied::Plan(PlanError::TooManySlots { needed }));
    }
    let flows = flows_of::<S>(demands);
    let plan = TdmaPlan::<S>::new(&flows[..demands.len()], cycle, beacon, costs).map_err(Denied::Plan)?;
    fit(&plan, demands, confirm, held)
}

/// The same for a cycle that there is already: `like` is any plan with its beacon and its slot to ask in.
///
/// # Errors
/// As [`admit`].
pub fn fit<const S: usize>(
    like: &TdmaPlan<S>,
    demands: &[Demand],
    confirm: Duration,
    held: usize,
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
    let attempts = &attempts[..demands.len()];
    let terms = Terms {
        demands,
        attempts,
        confirm,
        held,
    };
    let Err(denied) = terms.judge_all(&plan, |_| ()) else {
        return Ok(plan);
    };
    let mut slots = [1; S];
    for (i, d) in demands.iter().enumerate() {
        slots[i] = least(&plan, i, d, attempts[i], confirm)?;
    }
    let slots = &mut slots[..demands.len()];
    let mut last = denied;
    loop {
        let flow = last.flow().unwrap_or(0);
        let n = slots[flow];
        let Ok(plan) = like.with_slots(flows, slots) else {
            return Err(match last {
                Denied::TooMany { .. } => last,
                _ => Denied::NoRoom { flow, slots: n },
            });
        };
        match terms.judge_all(&plan, |i| slots[i] += 1) {
            Ok(()) => return Ok(plan),
            Err(denied) => last = denied,
        }
    }
}

/// What a plan is held against.
struct Terms<'a> {
    demands: &'a [Demand],
    /// That each flow needs.
    attempts: &'a [u32],
    confirm: Duration,
    /// Messages that a node holds.
    held: usize,
}

impl Terms<'_> {
    /// Judges a plan, and tells the flows for which another slot is wanted.
    ///
    /// # Errors
    /// For the first of them.
    fn judge_all<const S: usize>(
        &self,
        plan: &TdmaPlan<S>,
        mut wants: impl FnMut(usize),
    ) -> Result<(), Denied> {
        let mut first = Ok(());
        for (i, d) in self.demands.iter().enumerate() {
            if let Err(denied) = judge(plan, i, d, self.attempts[i], self.confirm) {
                wants(i);
                first = first.and(Err(denied));
            }
        }
        first?;
        for (i, d) in self.demands.iter().enumerate() {
            // each node once
            if self.demands[..i].iter().any(|o| o.flow.from == d.flow.from) {
                continue;
            }
            let (waiting, flow) = self.most_waiting(plan, d.flow.from);
            if waiting > self.held as u64 {
                wants(flow);
                let held = self.held;
                first = first.and(Err(Denied::TooMany { flow, waiting, held }));
            }
        }
        first
    }

    /// The most messages of a node that wait at once, and the flow of which most do then. It is so just ahead of a slot.
    fn most_waiting<const S: usize>(&self, plan: &TdmaPlan<S>, node: MacAddr) -> (u64, usize) {
        let at = |t: Duration| {
            let flows = self.demands.iter().enumerate();
            let mine = flows.filter(|(_, d)| d.flow.from == node);
            let waiting = |(i, d): (usize, &Demand)| {
                let come = waiting(plan, i, d.period, self.attempts[i], t);
                (come.max(d.backlog.into()), i)
            };
            let all = || mine.clone().map(waiting);
            let sum = all().map(|(n, _)| n).sum::<u64>();
            (sum, all().max().map_or(0, |(_, i)| i))
        };
        plan.slots().map(|s| at(s.start)).max().unwrap_or_default()
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

#[cfg(test)]
mod tests;
