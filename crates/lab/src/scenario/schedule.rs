//! `[[schedule]]`: who sends when, for the groups whose protocol is `tdma`.

mod member;
mod order;
mod switches;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use frame::{MacAddr, response_rate};
use protocols::mac::data::QOS_OVERHEAD_OCTETS;
use protocols::mac::redundancy::trailer;
use protocols::mac::tdma::join::wire::Wish;
use protocols::mac::tdma::schedule as slots;
use radio::Duration;
use schemars::JsonSchema;
use serde::Deserialize;
use sim::host::HostModel;
use toml::Spanned;

use super::admission::{self, Admission, Frame, Terms};
use super::attempt::{Nodes, share_a_channel};
use super::beacons::{BeaconSlot, Beacons};
use super::check::Check;
use super::file::{File, Group, Loss};
use super::join::Join;
use super::names::{self, Names};
use super::node::{duration, phy};
use super::protocol::Sending;
use super::release::Release;
use super::source::{ScenarioError, nearest};
use super::units::*;
use super::{FlowPlan, To};
pub use member::Timekeepers;
pub(super) use member::scheduled;
pub use switches::SlotSwitches;

/// Slots of a cycle at most.
pub const MAX_SLOTS: usize = slots::DEFAULT_SLOTS;
/// Flows of one node at most: it holds a frame of each.
pub const MAX_HELD: usize = 64;
/// A QoS header has two octets more.
const QOS_OCTETS: usize = 2;

/// `[[schedule]]`: each flow of `[[traffic]]` from groups that run it has as many slots in a cycle as its period, lifetime and
/// losses need. If that is one each, they are in the order of the file, and there are more rounds as the cycle has room for.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Name.
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Length of the cycle.
    #[schemars(with = "Time")]
    pub cycle: Spanned<Time>,
    /// Beacons, which the clocks follow. Without them every host clock counts as network time and must be exact.
    pub beacon: Option<BeaconSlot>,
    /// From waking up for a slot to the first bit on the air, as the host takes it. Without it, as the hosts of the groups that run it take it
    /// with `guard_probability`.
    pub release: Option<Release>,
    /// Probability with which the guard of a slot covers a release, and the error of the clocks, 0.9999 if nothing is said. Not where both are told.
    #[schemars(with = "Option<GuardProbability>")]
    pub guard_probability: Option<Spanned<GuardProbability>>,
    /// How far the clocks of two nodes may be apart. Without it, as they follow the `beacon` with `guard_probability`; 2 us
    /// without a `beacon`.
    pub sync_error: Option<Time>,
    /// AIFSN between slots; the contention window is 0. With `left_on.backoff` both are those of the queue at the adapters.
    #[serde(default = "two")]
    pub aifsn: Aifsn,
    /// What is not switched off at the adapters.
    #[serde(default)]
    pub left_on: SlotSwitches,
    /// Hold every frame that is heard against the schedule; beacons tell who was outside of its slot.
    #[serde(default)]
    pub watch: bool,
    /// How long after its end a host has seen a frame at the latest: what `watch` goes by on Linux.
    #[schemars(with = "Option<Time>")]
    pub seen_within: Option<Spanned<Time>>,
    /// Nobody has slots from the beginning: stations ask for them on the air.
    pub join: Option<Join>,
    /// What the answer rests on whether all messages can be in time.
    pub admission: Option<Terms>,
    /// How data frames are sent; the queue is `voice` by default.
    pub send: Sending,
}

fn two() -> Aifsn {
    Aifsn(2)
}

/// The slots of a schedule.
pub(crate) type Plan = slots::TdmaPlan<MAX_SLOTS>;

/// A schedule in which everything fits.
#[derive(Clone, Debug)]
pub(super) struct Planned {
    plan: Plan,
    /// Whether all messages can be in time; with `join` the coordinator says so of each station.
    pub(super) admission: Option<Admission>,
    /// Who sends the beacons.
    pub(super) master: Option<u32>,
    /// Whose beacons the clocks are compared by.
    pub(super) reference: Option<u32>,
    /// What stations ask for, by node.
    pub(super) wishes: BTreeMap<u32, Wish>,
}

impl Check<'_> {
    /// The schedule that a group names.
    pub(super) fn schedule(&self, name: &Spanned<String>) -> Result<&Schedule, ScenarioError> {
        let all = &self.file.schedule;
        if let Some(found) = all.iter().find(|s| s.name.get_ref() == name.get_ref()) {
            return Ok(found);
        }
        let names: Vec<&str> = all.iter().map(|s| s.name.get_ref().as_str()).collect();
        let what = match nearest(name.get_ref(), names.iter().copied()) {
            _ if names.is_empty() => "the scenario has none, add a [[schedule]]".to_owned(),
            Some(near) => format!("the schedules are {}; did you mean {near:?}?", names.join(", ")),
            None => format!("the schedules are {}", names.join(", ")),
        };
        let what = format!("there is no schedule {:?}: {what}", name.get_ref());
        Err(self.source.at(name.span(), what))
    }

    pub(super) fn schedules(
        &self,
        names: &Names<'_>,
        groups: &[Range<u32>],
        flows: &[FlowPlan],
        peers: &[(Option<u32>, Option<u32>)],
        hosts: &[Option<Arc<HostModel>>],
        errors: &[Duration],
    ) -> Result<Vec<Planned>, ScenarioError> {
        let mut done: Vec<Planned> = Vec::new();
        for (n, schedule) in self.file.schedule.iter().enumerate() {
            let name = schedule.name.get_ref();
            if self.file.schedule[..n].iter().any(|s| s.name.get_ref() == name) {
                let what = format!("there is another schedule {name:?}: names must differ");
                return Err(self.source.at(schedule.name.span(), what));
            }
            let runs_it = |g: &&usize| self.file.group[**g].schedule() == Some(name);
            let all: Vec<usize> = (0..groups.len()).collect();
            let members: Vec<usize> = all.iter().filter(runs_it).copied().collect();
            let nodes = Nodes {
                groups,
                flows,
                peers,
                hosts,
            };
            let error = errors.get(n).copied().or_else(|| schedule.told_sync_error());
            // clocks that are yet to be measured need no guard
            done.push(self.one(names, schedule, &members, &nodes, error.unwrap_or_default())?);
            for other in &self.file.schedule[..n] {
                self.apart(names, groups, schedule, other)?;
            }
        }
        Ok(done)
    }

    /// Nobody of two schedules hears the other one, since they do not know of each other's slots: they are on different channels, or the
    /// medium lists no pair of them.
    fn apart(
        &self,
        names: &Names<'_>,
        groups: &[Range<u32>],
        one: &Schedule,
        other: &Schedule,
    ) -> Result<(), ScenarioError> {
        let all = self.file.group.iter().zip(groups);
        let of = |s: &Schedule| -> Vec<(&Group, &Range<u32>)> {
            let runs_it = |(g, _): &(&Group, _)| g.schedule() == Some(s.name.get_ref());
            all.clone().filter(runs_it).collect()
        };
        let hears = |(a, a_nodes): (&Group, &Range<u32>), (b, b_nodes): (&Group, &Range<u32>)| {
            let listed = match &self.file.medium.loss {
                Some(Loss::Pairs(list)) => list.iter().any(|pair| {
                    let (Ok(x), Ok(y)) = (names.node(&pair.a), names.node(&pair.b)) else {
                        return true;
                    };
                    (a_nodes.contains(&x) && b_nodes.contains(&y))
                        || (a_nodes.contains(&y) && b_nodes.contains(&x))
                }),
                _ => true,
            };
            share_a_channel(a, b) && listed
        };
        let (ours, theirs) = (of(one), of(other));
        if !ours.iter().any(|a| theirs.iter().any(|b| hears(*a, *b))) {
            return Ok(());
        }
        let (span, name) = (one.name.span(), one.name.get_ref());
        let what = format!(
            "{name:?} is on a channel of {:?} (line {}), and neither knows of the other's slots: give its groups another channel, or \
             all of them one schedule",
            other.name.get_ref(),
            self.source.line(&other.name.span()),
        );
        Err(self.source.at(span, what))
    }

    fn one(
        &self,
        names: &Names<'_>,
        schedule: &Schedule,
        members: &[usize],
        nodes: &Nodes<'_>,
        sync_error: Duration,
    ) -> Result<Planned, ScenarioError> {
        let Nodes {
            groups,
            flows,
            peers,
            hosts,
        } = *nodes;
        let wrong = |span, what: String| Err(self.source.at(span, what));
        let name = schedule.name.get_ref();
        let Some(first) = members.first().map(|g| &self.file.group[*g]) else {
            let what = format!("no group runs {name:?}: give one protocol.tdma = {{ schedule = {name:?} }}");
            return wrong(schedule.name.span(), what);
        };
        let send = &schedule.send;
        let adapter = first.sending_adapter(send);
        let timing = phy(adapter.phy);
        let alike = |g: &usize| self.file.group[*g].sending_adapter(send).phy == adapter.phy;
        if !members.iter().all(alike) {
            let what = format!("the groups of {name:?} have different PHYs, so they cannot share its slots");
            return wrong(schedule.name.span(), what);
        }
        self.positive(&schedule.cycle, "a cycle")?;
        let octets = self.longest(members, groups, flows);
        let release = self.release(schedule, members, hosts, octets)?;
        let Beacons {
            master,
            slot: beacon,
            reference,
        } = self.beacons(names, schedule, members, groups, &timing)?;
        let cycle = duration(*schedule.cycle.get_ref());
        let (mut demands, mut whose) = (Vec::new(), Vec::new());
        for (t, flow) in self.file.traffic.iter().zip(flows) {
            let Some(g) = members.iter().find(|g| groups[**g].contains(&flow.from.start)) else {
                continue;
            };
            if flow.count() > MAX_SLOTS {
                let what = format!(
                    "a schedule has at most {MAX_SLOTS} slots, this makes {}",
                    flow.count()
                );
                return wrong(t.from.span(), what);
            }
            for (from, to) in flow.pairs() {
                let to = match (peers[*g].1, to) {
                    (Some(ap), _) => MacAddr::local(ap),
                    (None, To::Node(node)) => MacAddr::local(node),
                    (None, To::Broadcast) => MacAddr::BROADCAST,
                    _ => {
                        let what = "a schedule has no slots to neighbours: name the receiver".to_owned();
                        return wrong(t.to.span(), what);
                    }
                };
                let flow = slots::Flow {
                    from: MacAddr::local(from),
                    to,
                    payload_octets: (t.octets.0 - 8) as u16,
                };
                let order = self.file.group[*g].order();
                demands.push(order::ordered(admission::demand(t, flow, cycle), order));
                whose.push((from, t, order));
            }
            let own = |w: &&(u32, _, _)| w.0 == flow.from.start;
            if whose.iter().filter(own).count() > MAX_HELD {
                let what =
                    format!("a node holds at most {MAX_HELD} frames for its slots, this makes more flows");
                return wrong(t.from.span(), what);
            }
        }
        // the slowest ACK decides the length of the slots
        let rate = send.rate.get_ref().0;
        let basic = members
            .iter()
            .map(|g| self.file.group[*g].sending_adapter(send).basic());
        let slowest = basic
            .max_by_key(|b| timing.ack_us(rate, *b))
            .unwrap_or(timing.basic);
        debug_assert!(
            timing.has(response_rate(rate, slowest)),
            "a basic rate is a rate of the PHY"
        );
        let twice = members.iter().any(|g| self.file.group[*g].redundancy.is_some());
        let trailers = if twice { trailer::OCTETS } else { 0 };
        let usual = slots::SlotCosts::new(timing, rate, release, sync_error);
        let costs = slots::SlotCosts {
            group_rate: send.group_rate(&timing),
            basic: slowest,
            acked: send.ack && schedule.left_on.acks,
            rts_threshold: self.rts_threshold(schedule, members)?,
            overhead_octets: (QOS_OVERHEAD_OCTETS - if send.qos { 0 } else { QOS_OCTETS } + trailers) as u16,
            carrier_sense: schedule.left_on.carrier_sense,
            ..self.access(schedule, members, usual)
        };
        let mut wishes = BTreeMap::new();
        let open = match (&schedule.join, master) {
            (Some(join), Some(master)) => {
                wishes = self.wishes(schedule, join, members, (groups, flows, peers), master)?;
                self.only_stays(schedule, whose.iter().map(|(_, t, _)| *t))?;
                beacon
            }
            (Some(_), None) => {
                let what = format!("stations join {name:?} by its beacons: add beacon = {{ from, rate }}");
                return wrong(schedule.name.span(), what);
            }
            (None, _) => {
                self.has_no_stays(schedule, members)?;
                None
            }
        };
        let terms = schedule.admission.unwrap_or_default();
        let (plan, denied) = match open {
            Some(beacon) => (slots::TdmaPlan::open(cycle, beacon, &costs), None),
            None => admission::plan(
                &demands,
                &Frame {
                    cycle,
                    beacon,
                    costs: &costs,
                    confirm: duration(terms.confirm),
                    tries: send.tries.0.into(),
                },
            ),
        };
        let admitted = denied.is_none();
        let doubt = || order::doubt(&demands, |n| whose[n].2, plan.as_ref().ok()?);
        let random = || order::at_random(whose.iter().map(|(from, t, _)| (*from, *t)));
        let strangers = || Some((0, self.strangers(members, nodes).filter(|_| !whose.is_empty())?));
        let reason = denied
            .or_else(doubt)
            .or_else(random)
            .or_else(strangers)
            .map(|(flow, why)| {
                let (from, t, _) = whose[flow];
                let from = names::of_node(self.file, groups, from).expect("every node is in a group");
                (t.from.span(), format!("{from} to {}: {why}", t.to.get_ref()))
            });
        if let Some((span, why)) = reason.as_ref().filter(|_| terms.must_hold) {
            let does = if admitted { "may not" } else { "does not" };
            return wrong(span.clone(), format!("{name:?} must hold, and {does}: {why}"));
        }
        let plan = plan.map_err(|e| {
            let (span, what) = match e {
                slots::PlanError::NoFlows => (
                    schedule.name.span(),
                    "there is no [[traffic]] from the groups that run it".to_owned(),
                ),
                slots::PlanError::DoesNotFit { .. } => (schedule.cycle.span(), format!("{e}")),
                slots::PlanError::TooManySlots { .. } => {
                    (schedule.name.span(), format!("{e}, which is for {MAX_SLOTS}"))
                }
            };
            self.source.at(span, what)
        })?;
        Ok(Planned {
            plan,
            admission: schedule.join.is_none().then(|| Admission {
                of: name.clone(),
                test: "slots",
                admitted: (reason.is_none() || !admitted).then_some(admitted),
                reason: reason.map(|r| r.1),
            }),
            master,
            reference,
            wishes,
        })
    }
}

impl File {
    /// How the nodes of a group send data, if they do.
    pub fn sending<'f>(&'f self, group: &'f Group) -> Option<&'f Sending> {
        match group.schedule() {
            Some(_) => self.schedule_of(group).map(|s| &s.send),
            None => group.protocol.sending(),
        }
    }

    /// The schedule that the nodes of a group run.
    pub fn schedule_of(&self, group: &Group) -> Option<&Schedule> {
        let name = group.schedule()?;
        self.schedule.iter().find(|s| s.name.get_ref() == name)
    }
}
