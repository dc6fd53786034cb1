//! `release` and `guard_probability` of a schedule: how long its hosts take from waking up to the first bit on the air.

use std::ops::Range;
use std::sync::Arc;

use protocols::mac::tdma::schedule as slots;
use radio::Duration;
use schemars::JsonSchema;
use serde::Deserialize;
use sim::host::{HostModel, Wait};
use toml::Spanned;

use super::FlowPlan;
use super::admission::Admission;
use super::attempt::Nodes;
use super::build::LLC_SNAP_OCTETS;
use super::check::Check;
use super::file::WaitName;
use super::node::duration;
use super::protocol::Protocol;
use super::schedule::Schedule;
use super::source::ScenarioError;
use super::units::*;
use crate::guard;

/// Times are shown to a tenth of a microsecond.
const SHOWN_NS: u64 = 100;

/// The release path as it is told. Its jitter, `high - min`, and `sync_error` are the guard of every slot.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Release {
    /// Its smallest value: nodes wake up this much earlier.
    pub min: Time,
    /// The quantile that decides how often a slot is missed.
    #[schemars(with = "Time")]
    pub high: Option<Spanned<Time>>,
}

impl Release {
    /// From the smallest value to the quantile; the same if only one is told.
    pub(super) fn ends(&self) -> (Time, Time) {
        (
            self.min,
            self.high.as_ref().map_or(self.min, |high| *high.get_ref()),
        )
    }

    /// As slots have it.
    pub(super) fn of_slots(&self) -> slots::Release {
        let (min, high) = self.ends();
        slots::Release {
            min: duration(min),
            high: duration(high),
        }
    }
}

impl From<WaitName> for Wait {
    fn from(name: WaitName) -> Wait {
        match name {
            WaitName::Sleep => Wait::Sleep,
            WaitName::Timerfd => Wait::Timerfd,
            WaitName::Spin => Wait::Spin,
        }
    }
}

impl Check<'_> {
    /// The release path of a schedule: as it is told, or what all hosts of its groups keep with the probability of the guard. Hosts that take no
    /// time, and groups whose protocol is of an ideal host, add nothing.
    pub(super) fn release(
        &self,
        schedule: &Schedule,
        members: &[usize],
        hosts: &[Option<Arc<HostModel>>],
        octets: usize,
    ) -> Result<slots::Release, ScenarioError> {
        if let Some(told) = &schedule.release {
            let unused = schedule
                .guard_probability
                .as_ref()
                .filter(|_| schedule.told_sync_error().is_some());
            if let Some(p) = unused {
                let what = "the release is told, and what clocks may be apart is not measured: there is nothing to compute with guard_probability, leave it out";
                return Err(self.source.at(p.span(), what));
            }
            self.release_told(told)?;
            return Ok(told.of_slots());
        }
        let all = self.hosts_take(schedule, members, hosts, octets);
        Ok(slots::Release {
            min: Duration::from_ns(all.min_ns),
            high: Duration::from_ns(all.high_ns),
        })
    }

    /// What all hosts of a schedule keep with the probability of its guard.
    fn hosts_take(
        &self,
        schedule: &Schedule,
        members: &[usize],
        hosts: &[Option<Arc<HostModel>>],
        octets: usize,
    ) -> guard::Release {
        let probability = schedule.probability();
        let one = |g: &usize| match &hosts[*g] {
            None => guard::Release::default(),
            Some(host) => guard::Release::of(host, self.file.group[*g].wait.into(), octets, probability),
        };
        members
            .iter()
            .map(one)
            .reduce(guard::Release::or)
            .unwrap_or_default()
    }

    /// The hosts of a schedule that do not keep the release that it is told; `None` if they do, or it is told none.
    pub(super) fn by_release(&self, schedule: &Schedule, nodes: &Nodes<'_>) -> Option<Admission> {
        let told = schedule.release.as_ref()?;
        let name = schedule.name.get_ref();
        let runs_it = |g: &usize| self.file.group[*g].schedule() == Some(name);
        let all: Vec<usize> = (0..self.file.group.len()).filter(runs_it).collect();
        let octets = self.longest(&all, nodes.groups, nodes.flows);
        // what a host takes of which there is no model only its user knows
        let members: Vec<usize> = all.into_iter().filter(|g| nodes.hosts[*g].is_some()).collect();
        if members.is_empty() {
            return None;
        }
        let takes = self.hosts_take(schedule, &members, nodes.hosts, octets);
        broken(name, "release", told, takes)
    }

    /// A release that is told ends no earlier than it begins.
    pub(super) fn release_told(&self, told: &Release) -> Result<(), ScenarioError> {
        let min = told.min;
        match told.high.as_ref().filter(|h| h.get_ref().0 < min.0) {
            None => Ok(()),
            Some(high) => {
                let what = format!("{high} is less than the smallest release, {min}");
                Err(self.source.at(high.span(), what))
            }
        }
    }

    /// The hosts of a group with `tbmac` that do not keep the release that it is told; `None` for those that do, and for all others.
    pub(super) fn by_rounds(&self, g: usize, nodes: &Nodes<'_>) -> Option<Admission> {
        let group = &self.file.group[g];
        let Protocol::Tbmac(p) = &group.protocol else {
            return None;
        };
        let host = nodes.hosts[g].as_deref()?;
        let octets = p.payload_octets.get_ref().0 as usize;
        let takes = guard::Release::of(host, group.wait.into(), octets, guard::USUAL);
        broken(group.name.get_ref(), "rounds", &p.release, takes)
    }

    /// Octets of the longest payload that these groups send.
    pub(super) fn longest(&self, members: &[usize], groups: &[Range<u32>], flows: &[FlowPlan]) -> usize {
        let theirs = |f: &FlowPlan| members.iter().any(|g| groups[*g].contains(&f.from.start));
        let octets = (self.file.traffic.iter().zip(flows)).filter(|(_, f)| theirs(f));
        let octets = octets.map(|(t, _)| t.octets.0.saturating_sub(LLC_SNAP_OCTETS) as usize);
        octets.max().unwrap_or(0)
    }
}

/// The sentence about hosts of `of` that take longer than they are told, or less; `None` if the difference is less than one tenth of a
/// microsecond, as far as times are shown.
fn broken(of: &str, test: &'static str, told: &Release, takes: guard::Release) -> Option<Admission> {
    let (min, high) = told.ends();
    if min.0 < takes.min_ns + SHOWN_NS && takes.high_ns < high.0 + SHOWN_NS {
        return None;
    }
    let (least, most) = (Time(takes.min_ns), Time(takes.high_ns));
    Some(Admission {
        of: of.to_owned(),
        test,
        admitted: Some(false),
        reason: Some(format!(
            "its hosts take {least} to {most} from waking up to the first bit, and its release is {min} to {high}: slots are missed, \
             or begun too early; give release = {{ min = \"{least}\", high = \"{most}\" }}"
        )),
    })
}
