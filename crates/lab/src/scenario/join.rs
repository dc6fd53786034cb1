//! Schedules that stations join on the air: what they ask for follows from their traffic.

use std::collections::BTreeMap;
use std::ops::Range;

use protocols::mac::tdma::join::wire::Wish;
use protocols::mac::tdma::join::{self, Membership, Rules};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::check::Check;
use super::node::duration;
use super::protocol::Protocol;
use super::schedule::{MAX_HELD, Planned, Schedule};
use super::source::ScenarioError;
use super::units::*;
use super::world::Pattern;
use super::{FlowPlan, To};

/// LLC/SNAP in the octets of an MSDU.
const LLC_SNAP_OCTETS: u32 = 8;
/// Cycles after a refusal until a station asks again.
const ASK_AGAIN: u32 = 1_000;

/// How stations come into a schedule, and out of it.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Join {
    /// Cycles from a beacon until a change may begin, and so long a station goes on without hearing beacons.
    pub lease: Small,
    /// A member that was not heard for so many cycles is dropped.
    pub silent: Small,
    /// From the end of an exchange until its outcome is known.
    pub confirm: Time,
}

impl Default for Join {
    fn default() -> Join {
        Join {
            lease: Small(50),
            silent: Small(500),
            confirm: Time(100_000),
        }
    }
}

/// When a node is in a schedule that stations join, and what it says of its link.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stay {
    /// It begins to ask so long after its start.
    pub join_after: Time,
    /// It leaves so long after its start; never by default.
    #[schemars(with = "Option<Time>")]
    pub leave_after: Option<Spanned<Time>>,
    /// By when its messages have to be there; their `lifetime` by default, or two cycles.
    pub deadline: Option<Time>,
    /// Share of attempts that fail.
    pub per: Share,
    /// Share of messages that may miss.
    pub miss: Share,
}

impl Default for Stay {
    fn default() -> Stay {
        Stay {
            join_after: Time(0),
            leave_after: None,
            deadline: None,
            per: Share(0.0),
            miss: Share(1e-6),
        }
    }
}

/// Nodes of the groups, flows, and for each group its peer and its access point.
type World<'a> = (&'a [Range<u32>], &'a [FlowPlan], &'a [(Option<u32>, Option<u32>)]);

impl Check<'_> {
    /// What each station asks for.
    pub(super) fn wishes(
        &self,
        schedule: &Schedule,
        join: &Join,
        members: &[usize],
        (groups, flows, peers): World<'_>,
        master: u32,
    ) -> Result<BTreeMap<u32, Wish>, ScenarioError> {
        let every = schedule.beacon.as_ref().map_or(1, |b| b.every.0);
        if join.lease.0 < every.saturating_mul(2) {
            let what = format!(
                "a lease is at least two beacons, {} cycles here: one that is lost would silence all",
                2 * u32::from(every)
            );
            return Err(self.source.at(schedule.name.span(), what));
        }
        let cycle = schedule.cycle.get_ref().0;
        let mut wishes = BTreeMap::new();
        for g in members {
            let stay = self.stay(*g)?;
            let us = |ns: u64| (ns / 1_000).min(u32::MAX.into()) as u32;
            for node in groups[*g].clone().filter(|n| *n != master) {
                let wish = Wish {
                    up_octets: 0,
                    down_octets: 0,
                    period_us: us(stay.deadline.map_or(2 * cycle, |d| d.0)),
                    deadline_us: us(stay.deadline.map_or(2 * cycle, |d| d.0)),
                    per_ppm: (stay.per.0 * 1e6) as u32,
                    target_ppb: (stay.miss.0 * 1e9) as u32,
                };
                wishes.insert(node, wish);
            }
        }
        let mut seen = BTreeMap::new();
        for (t, flow) in self.file.traffic.iter().zip(flows) {
            let Some(g) = members.iter().find(|g| groups[**g].contains(&flow.from.start)) else {
                continue;
            };
            let period = match &t.pattern {
                Pattern::Periodic { period, .. } => period.get_ref().0,
                Pattern::Poisson { mean } => mean.get_ref().0,
                Pattern::Saturated { .. } => cycle,
            };
            let octets = (t.octets.0 - LLC_SNAP_OCTETS) as u16;
            for (from, to) in flow.pairs() {
                let to = match (peers[*g].1, to) {
                    (Some(ap), _) => Some(ap),
                    (None, To::Node(node)) => Some(node),
                    _ => None,
                };
                let (station, up) = match to {
                    Some(to) if to == master && from != master => (from, true),
                    Some(to) if from == master => (to, false),
                    _ => {
                        let what =
                            "in a schedule that stations join, frames go to its coordinator or come from it";
                        return Err(self.source.at(t.to.span(), what));
                    }
                };
                let Some(wish) = wishes.get_mut(&station) else {
                    let what = format!(
                        "{:?} does not run the schedule of its coordinator",
                        t.to.get_ref()
                    );
                    return Err(self.source.at(t.to.span(), what));
                };
                let octets_of = if up {
                    &mut wish.up_octets
                } else {
                    &mut wish.down_octets
                };
                *octets_of = octets.max(*octets_of);
                let first = seen.insert(station, ()).is_none();
                let us = (period / 1_000).min(u32::MAX.into()) as u32;
                wish.period_us = if first { us } else { wish.period_us.min(us) };
                let own = self.group_of(groups, station).and_then(|g| self.stay(g).ok());
                if let (Some(life), None) = (t.lifetime, own.and_then(|s| s.deadline)) {
                    let us = (life.0 / 1_000).min(u32::MAX.into()) as u32;
                    wish.deadline_us = if first { us } else { wish.deadline_us.min(us) };
                }
            }
        }
        Ok(wishes)
    }

    fn group_of(&self, groups: &[Range<u32>], node: u32) -> Option<usize> {
        groups.iter().position(|g| g.contains(&node))
    }

    /// The stay of a group, which must not end before it begins.
    fn stay(&self, g: usize) -> Result<Stay, ScenarioError> {
        let Protocol::Tdma(p) = &self.file.group[g].protocol else {
            return Ok(Stay::default());
        };
        let stay = p.stay.clone().unwrap_or_default();
        if let Some(leave) = stay
            .leave_after
            .as_ref()
            .filter(|l| l.get_ref().0 <= stay.join_after.0)
        {
            let what = format!("{leave} is before it joins, after {}", stay.join_after);
            return Err(self.source.at(leave.span(), what));
        }
        Ok(stay)
    }

    /// In a schedule with `join` the stations say themselves what they reckon with.
    pub(super) fn only_stays<'t>(
        &self,
        schedule: &Schedule,
        mut traffic: impl Iterator<Item = &'t super::world::Traffic>,
    ) -> Result<(), ScenarioError> {
        let name = schedule.name.get_ref();
        if let Some(t) = traffic.find(|t| t.per.is_some() || t.miss.is_some()) {
            let what =
                format!("stations join {name:?}, so their `stay` says per and miss: leave them out here");
            return Err(self.source.at(t.from.span(), what));
        }
        if schedule.admission.is_some() {
            let what =
                format!("stations join {name:?}, so its coordinator admits them: leave out `admission`");
            return Err(self.source.at(schedule.name.span(), what));
        }
        Ok(())
    }

    /// Only in a schedule with `join` there is something to stay in.
    pub(super) fn has_no_stays(&self, schedule: &Schedule, members: &[usize]) -> Result<(), ScenarioError> {
        for g in members {
            let group = &self.file.group[*g];
            if matches!(&group.protocol, Protocol::Tdma(p) if p.stay.is_some()) {
                let what = format!(
                    "{:?} has a stay, but nobody joins {:?}: give that one join = {{}}",
                    group.name.get_ref(),
                    schedule.name.get_ref()
                );
                return Err(self.source.at(group.name.span(), what));
            }
        }
        Ok(())
    }
}

/// How a node comes into its schedule.
pub(super) fn membership(
    schedule: &Schedule,
    planned: &Planned,
    node: u32,
    stay: Option<&Stay>,
) -> Membership {
    let Some(join) = &schedule.join else {
        return Membership::Fixed;
    };
    if planned.master == Some(node) {
        return Membership::Coordinator(Rules {
            lease: join.lease.0.into(),
            silent: join.silent.0.into(),
            confirm: duration(join.confirm),
            held: MAX_HELD,
        });
    }
    let stay = stay.cloned().unwrap_or_default();
    Membership::Station(join::Stay {
        wish: planned.wishes[&node],
        join_after: duration(stay.join_after),
        leave_after: stay.leave_after.map(|l| duration(*l.get_ref())),
        sign: (u32::from(join.silent.0) / 4).max(1),
        ask_again: ASK_AGAIN,
    })
}
