//! How long a message takes at worst in the slots of its flow, and how many wait meanwhile.

use super::super::schedule::{Slot, SlotUse, TdmaPlan};
use super::{Demand, Denied};
use radio::Duration;

pub(super) fn own<const S: usize>(plan: &TdmaPlan<S>, flow: usize) -> impl Iterator<Item = (usize, &Slot)> {
    let mine = move |s: &Slot| matches!(s.owner, SlotUse::Flow { flow: f, .. } if usize::from(f) == flow);
    plan.slots().enumerate().filter(move |(_, s)| mine(s))
}

pub(super) fn exchange<const S: usize>(plan: &TdmaPlan<S>, flow: usize) -> Duration {
    own(plan, flow)
        .map(|(_, s)| s.exchange)
        .next()
        .unwrap_or_default()
}

/// When in the cycle messages come, if the period keeps to that.
pub(super) fn known_phase<const S: usize>(plan: &TdmaPlan<S>, demand: &Demand) -> Option<Duration> {
    let (period, cycle) = (demand.period.as_ns(), plan.cycle().as_ns());
    demand
        .phase
        .filter(|_| period > 0 && cycle > 0 && period.is_multiple_of(cycle))
}

/// Whether a flow gets what it wants in a plan.
pub(super) fn judge<const S: usize>(
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

/// Messages of a flow that may wait `at` into a cycle, whenever they come: those of a stretch that began just after one of its slots, less
/// those that went in the slots since.
pub(super) fn waiting<const S: usize>(
    plan: &TdmaPlan<S>,
    flow: usize,
    period: Duration,
    attempts: u32,
    at: Duration,
) -> u64 {
    let period = period.as_ns().max(1);
    // how long ago its slots of this cycle and of the two before were, the earliest first
    let ago = || {
        (0..3).rev().flat_map(|n| {
            let end = at + plan.cycle().times(n);
            let before = own(plan, flow).filter(move |(_, s)| s.start < end);
            before.map(move |(_, s)| end.less(s.start))
        })
    };
    let slots = ago().count() as u64;
    let of_stretch = |(i, ago): (u64, Duration)| {
        let went = (slots - i) / u64::from(attempts.max(1));
        ago.as_ns().div_ceil(period).saturating_sub(went)
    };
    (1..).zip(ago()).map(of_stretch).max().unwrap_or(0).max(1)
}
