//! What can be said before a run: whether the slots of a `[[schedule]]`, or the channel of an `edf` or a `coordinator`, are
//! enough for the messages of `[[traffic]]` to be in time.

use protocols::mac::edf::feasible::{self, Stream, retries_for};
use protocols::mac::edf::pool::{RetryPool, WHOLE_PPM};
use protocols::mac::overlay::DEFAULT_HELD;
use protocols::mac::tdma::admission::{ANY_TIME, Demand, Denied, admit};
use protocols::mac::tdma::schedule as slots;
use radio::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scenario;
use super::attempt::Nodes;
use super::check::Check;
use super::node::duration;
use super::protocol::Protocol;
use super::schedule::{MAX_HELD, Plan, Planned};
use super::units::*;
use super::world::{Pattern, Traffic};

/// Share of the messages of a flow that may miss, if nothing is said.
const USUAL_MISS: f64 = 1e-6;

/// `admission` of a schedule: what its answer rests on.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Terms {
    /// From the end of an exchange until its outcome is known: an earlier slot is of no use to a second chance.
    pub confirm: Time,
    /// A flow that is not admitted is an error.
    pub must_hold: bool,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            confirm: Time(100_000),
            must_hold: false,
        }
    }
}

/// `pool` of an `edf`: time for retries that all its frames share.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    /// Share of the channel that is saved for retries.
    pub share: Share,
    /// Most that is saved, and what there is at the start.
    pub depth: Time,
}

impl From<Pool> for RetryPool {
    fn from(p: Pool) -> RetryPool {
        RetryPool {
            share_ppm: (p.share.0 * f64::from(WHOLE_PPM)).round() as u32,
            depth: duration(p.depth),
        }
    }
}

/// Whether all messages of a schedule or a group can be in time, by a test that looks at no run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Admission {
    /// The `[[schedule]]` or `[[group]]`, by its name.
    pub of: String,
    /// The test: `slots`, `release` (hosts of a schedule that do not keep what it is told of them), `rounds` (those of a cell), `sporadic`
    /// (deadlines are periods), `constrained` (some are shorter) or `pooled` (retries from a pool).
    pub test: &'static str,
    /// All messages with no more losses than were reckoned with are in time; `null` if that cannot be told, because the test is
    /// for nodes that are alone on their channel, at rates that are known.
    pub admitted: Option<bool>,
    /// If not: for which flow, and why.
    pub reason: Option<String>,
}

impl std::fmt::Display for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Admission { of, test, .. } = self;
        match (&self.reason, self.admitted) {
            (None, _) if *test == "pooled" => {
                write!(f, "{of:?}: all first attempts can be in time (test: {test})")
            }
            (None, _) => write!(
                f,
                "{of:?}: all messages can be in time if no more attempts fail than their per (test: {test})"
            ),
            (Some(why), Some(_)) => write!(f, "{of:?}: not all messages can be in time: {why}"),
            (Some(why), None) => write!(
                f,
                "{of:?}: it cannot be told whether all messages can be in time: {why}"
            ),
        }
    }
}

impl Traffic {
    /// Share of attempts that fail, and of messages that may miss.
    fn losses(&self) -> (f64, f64) {
        (
            self.per.map_or(0.0, |p| p.0),
            self.miss.map_or(USUAL_MISS, |m| m.0),
        )
    }
}

/// What a flow of `[[traffic]]` wants of its slots. What has no shortest time between two messages counts as if its mean were
/// that, or the cycle where some always wait.
pub(super) fn demand(t: &Traffic, flow: slots::Flow, cycle: Duration) -> Demand {
    let lifetime = t.lifetime.map_or(ANY_TIME, duration);
    let (period, deadline) = match &t.pattern {
        Pattern::Periodic { period, .. } => (duration(*period.get_ref()), lifetime),
        Pattern::Poisson { mean } => (duration(*mean.get_ref()), lifetime),
        Pattern::Saturated { .. } => (cycle, ANY_TIME),
    };
    let (per, target) = t.losses();
    let backlog = match &t.pattern {
        Pattern::Saturated { backlog, .. } => u32::from(backlog.0),
        _ => 0,
    };
    Demand {
        flow,
        period,
        deadline,
        backlog,
        phase: None,
        per,
        target,
    }
}

/// What a schedule rests on besides its flows.
pub(super) struct Frame<'a> {
    pub(super) cycle: Duration,
    pub(super) beacon: Option<slots::BeaconSlot>,
    pub(super) costs: &'a slots::SlotCosts,
    pub(super) confirm: Duration,
    /// Attempts of a frame at most.
    pub(super) tries: u32,
}

/// A schedule for demands, and for which it does not do, and why, if there is one: it has then the slots that their periods
/// need, or if not even these fit, one for those that ask for most.
pub(super) fn plan(
    demands: &[Demand],
    frame: &Frame<'_>,
) -> (Result<Plan, slots::PlanError>, Option<(usize, String)>) {
    let Frame {
        cycle,
        beacon,
        costs,
        confirm,
        tries,
    } = *frame;
    let denied = match admit(demands, cycle, beacon, costs, confirm, MAX_HELD) {
        Ok(plan) => {
            let lossy = demands.iter().position(|d| {
                // what nobody acknowledges is not repeated
                let tries = if costs.acked && !d.flow.to.is_group() {
                    tries
                } else {
                    1
                };
                retries_for(d.per, d.target).is_none_or(|n| n >= tries)
            });
            let what = "too lossy: the tries of a frame do not reach the wanted share of misses";
            return (Ok(plan), lossy.map(|flow| (flow, what.to_owned())));
        }
        Err(Denied::Plan(e)) => return (Err(e), None),
        Err(denied) => denied,
    };
    let mut unhurried: Vec<_> = (demands.iter())
        .map(|d| Demand {
            deadline: ANY_TIME,
            per: 0.0,
            ..*d
        })
        .collect();
    // those that ask for most have one slot in a cycle, until the others have what they need
    let mut hopeless = None;
    let plan = loop {
        let ask = |held| admit(&unhurried, cycle, beacon, costs, confirm, held);
        if let Ok(plan) = ask(MAX_HELD).or_else(|_| ask(usize::MAX)) {
            break Ok(plan);
        }
        let often = unhurried.iter().enumerate().filter(|(_, d)| d.period < cycle);
        let Some((flow, _)) = often.min_by_key(|(_, d)| d.period) else {
            let flows: Vec<_> = demands.iter().map(|d| d.flow).collect();
            break slots::TdmaPlan::new(&flows, cycle, beacon, costs);
        };
        hopeless = hopeless.or(Some(flow));
        unhurried[flow].period = cycle;
    };
    let denied = match hopeless {
        Some(flow) => Denied::NoRoom {
            flow,
            slots: cycle
                .as_ns()
                .div_ceil(demands[flow].period.as_ns().max(1))
                .min(u16::MAX.into()) as u16,
        },
        None => denied,
    };
    (plan, denied.flow().map(|flow| (flow, denied.to_string())))
}

/// What one node that schedules by deadlines reckons with.
struct Budget {
    /// What an attempt takes.
    attempt: Duration,
    /// Attempts of a frame at most, if somebody acknowledges it.
    attempts: u32,
    /// Whether frames to one node are repeated when they fail.
    repeats: bool,
    /// Deadline of messages without a lifetime.
    deadline: Time,
    /// A frame that failed goes again at once.
    immediate: bool,
    pool: Option<RetryPool>,
    /// Empty answers are followed by polls that nobody reckons with.
    again: bool,
}

impl Budget {
    /// `attempt`: see [`Check::attempt`].
    fn of(protocol: &Protocol, attempt: Duration) -> Option<Budget> {
        match protocol {
            Protocol::Edf(p) => Some(Budget {
                attempt,
                attempts: u32::from(p.attempts.map_or(u16::MAX, |n| n.0)).min(u32::from(p.send.tries.0)),
                repeats: p.send.ack,
                deadline: p.deadline,
                immediate: p.immediate,
                pool: p.pool.map(RetryPool::from),
                again: false,
            }),
            // an exchange is over when the answer is there
            Protocol::Coordinator(p) => Some(Budget {
                attempt,
                attempts: p.attempts.0.into(),
                repeats: true,
                deadline: p.deadline,
                immediate: false,
                pool: None,
                again: p.poll_again.is_some(),
            }),
            _ => None,
        }
    }

    /// The time on the channel that a flow asks for, which is one to a group or not.
    fn stream(&self, t: &Traffic, to_group: bool) -> Result<Stream, String> {
        let Pattern::Periodic { period, .. } = &t.pattern else {
            return Err("there is no shortest time between its messages, only periodic ones have one".into());
        };
        let period_ns = period.get_ref().0;
        let (per, miss) = t.losses();
        let repeats = self.repeats && !to_group;
        let retries = match (self.pool, retries_for(per, miss)) {
            (_, Some(0)) => 0,
            _ if !repeats => {
                return Err("too lossy: nobody acknowledges it, so it goes once, and that does not reach the wanted share of misses".into());
            }
            (Some(_), _) => 0,
            (None, Some(n)) if n < self.attempts => n,
            (None, _) => {
                return Err(format!(
                    "too lossy: {} attempts do not reach the wanted share of misses",
                    self.attempts.min(65)
                ));
            }
        };
        let stream = Stream::new(period_ns, self.attempt.as_ns(), retries);
        Ok(Stream {
            deadline_ns: t.lifetime.unwrap_or(self.deadline).0.min(period_ns),
            attempt_ns: if self.immediate {
                stream.cost_ns
            } else {
                stream.attempt_ns
            },
            ..stream
        })
    }

    /// The name of the test for some streams, and what it says.
    fn test(&self, streams: &[Stream]) -> (&'static str, Result<(), feasible::Infeasible>) {
        let short = streams.iter().any(|s| s.deadline_ns < s.period_ns);
        match (&self.pool, short) {
            (Some(pool), _) => ("pooled", feasible::pooled(streams, pool)),
            (None, true) => ("constrained", feasible::constrained(streams)),
            (None, false) => ("sporadic", feasible::sporadic(streams)),
        }
    }
}

impl Scenario {
    /// Whether all messages can be in time, for each schedule and each group that schedules by deadlines.
    pub fn admission(&self) -> &[Admission] {
        &self.admission
    }
}

/// Flows of an entry, for sentences.
pub(super) fn flow_name(t: &Traffic) -> String {
    format!("{} to {}", t.from.get_ref(), t.to.get_ref())
}

/// What a test says: its name, and whether the messages are in time, or why not.
type Says = (&'static str, Result<(), String>);

impl Check<'_> {
    /// The answers for schedules, and for each group whose nodes schedule by deadlines.
    pub(super) fn admission(&self, schedules: &[Planned], nodes: &Nodes<'_>) -> Vec<Admission> {
        let by_slots = schedules.iter().filter_map(|s| s.admission.clone());
        let by_deadline = (0..self.file.group.len()).filter_map(|g| self.by_deadline(g, nodes));
        let by_rounds = (0..self.file.group.len()).filter_map(|g| self.by_rounds(g, nodes));
        let by_release = (self.file.schedule.iter()).filter_map(|s| self.by_release(s, nodes));
        let by_release = by_release.chain(by_rounds);
        by_slots.chain(by_release).chain(by_deadline).collect()
    }

    /// The answer for a group whose nodes schedule by deadlines; `None` for others, and if they send nothing.
    fn by_deadline(&self, g: usize, nodes: &Nodes<'_>) -> Option<Admission> {
        let group = &self.file.group[g];
        let budget = Budget::of(&group.protocol, self.attempt(g, nodes)?)?;
        let all = nodes.groups[g].clone();
        let says: Vec<Says> = all.filter_map(|node| self.node(node, &budget, nodes)).collect();
        let (test, says) = says.iter().find(|s| s.1.is_err()).or(says.last())?.clone();
        let rates = "its rates are chosen during the run".to_owned();
        let again = "it polls again after an empty answer, as often as there is none".to_owned();
        let open = self
            .others(g, nodes)
            .or_else(|| group.rate_control.map(|_| rates))
            .or_else(|| budget.again.then_some(again));
        // too much for a node that is alone is too much for one among others
        let (admitted, reason) = match (says, open) {
            (Err(why), _) => (Some(false), Some(why)),
            (Ok(()), Some(why)) => (None, Some(why)),
            (Ok(()), None) => (Some(true), None),
        };
        Some(Admission {
            of: group.name.get_ref().clone(),
            test,
            admitted,
            reason,
        })
    }

    /// What the test says of one node; `None` if it sends nothing.
    fn node(&self, node: u32, budget: &Budget, nodes: &Nodes<'_>) -> Option<Says> {
        let mut streams = Vec::new();
        for (t, plan) in self.file.traffic.iter().zip(nodes.flows) {
            let own = plan.pairs().filter(|(from, _)| *from == node).count();
            if own == 0 {
                continue;
            }
            let of = super::names::group_of(nodes.groups, node);
            let to_group = of.is_some_and(|g| nodes.goes_to_all(plan, g));
            match budget.stream(t, to_group) {
                Ok(stream) => streams.extend(std::iter::repeat_n(stream, own)),
                Err(e) => return Some((budget.test(&[]).0, Err(format!("{}: {e}", flow_name(t))))),
            }
        }
        if streams.is_empty() {
            return None;
        }
        let (test, says) = budget.test(&streams);
        let says = says.map_err(|e| {
            let attempt = Time(budget.attempt.as_ns());
            format!("{e}, with {attempt} for an attempt (test: {test})")
        });
        let coordinates = |g: &usize| matches!(self.file.group[*g].protocol, Protocol::Coordinator(_));
        let of = super::names::group_of(nodes.groups, node).filter(coordinates);
        let says = says.and_then(|()| match of {
            Some(_) => self.polled(node, budget.deadline, nodes),
            None if streams.len() > DEFAULT_HELD => Err(format!(
                "it holds {DEFAULT_HELD} frames, and has {} flows",
                streams.len()
            )),
            None => Ok(()),
        });
        Some((test, says))
    }
}
