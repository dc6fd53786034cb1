//! `beacon` of a schedule: what keeps its clocks together, its own beacons or those of somebody else; and who measures after beacons.

use std::ops::Range;

use frame::{Band, MacAddr, Phy};
use protocols::mac::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use protocols::mac::sync::reference::FOLLOW_UP_OCTETS;
use protocols::mac::sync::{SHIFTS_OCTETS, Sync, SyncConfig};
use protocols::mac::tdma::join::wire::{MAX_LIST_OCTETS, ONE_REPORT_OCTETS};
use protocols::mac::tdma::schedule as slots;
use radio::AdapterId;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::check::Check;
use super::file::Group;
use super::names::Names;
use super::node::duration;
use super::protocol::Protocol;
use super::schedule::{Planned, Schedule};
use super::source::ScenarioError;
use super::units::*;

/// The slot of the beacon, the first of the cycle.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeaconSlot {
    /// Who sends it; its TSF is network time.
    #[schemars(with = "String")]
    pub from: Spanned<String>,
    /// Its rate.
    #[schemars(with = "RateText")]
    pub rate: Spanned<RateText>,
    /// It is sent in every n-th cycle.
    #[serde(default = "one")]
    pub every: Small,
    /// A clock is trusted for this long after a beacon; without a trusted clock a node is silent.
    #[serde(default = "second")]
    pub holdover: Time,
    /// An access point outside of the schedule, by whose beacons the clocks are compared: the host clock of `from` is network
    /// time then, and it tells in this slot what that showed.
    #[schemars(with = "Option<String>")]
    pub reference: Option<Spanned<String>>,
}

fn one() -> Small {
    Small(1)
}
fn second() -> Time {
    Time(1_000_000_000)
}

/// What the beacons of a schedule come to.
#[derive(Default)]
pub(super) struct Beacons {
    /// Who sends them.
    pub(super) master: Option<u32>,
    pub(super) slot: Option<slots::BeaconSlot>,
    /// Whose beacons the clocks are compared by.
    pub(super) reference: Option<u32>,
}

impl Check<'_> {
    /// Beacons come from a node that sends some, and before the run ends.
    pub(super) fn after_beacon(&self, wait: &Spanned<Time>, group: &Group) -> Result<(), ScenarioError> {
        let Some(ap) = &group.ap else {
            let what = "a pace of `after_beacon` needs an access point: name it with `ap`";
            return Err(self.source.at(wait.span(), what));
        };
        let name = ap.get_ref().split('.').next().unwrap_or_default();
        let sends = |g: &Group| {
            let beacons = matches!(g.protocol, Protocol::Beaconer(_) | Protocol::Tdma(_));
            beacons && g.name.get_ref() == name
        };
        if !self.file.group.iter().any(sends) {
            let what =
                format!("{name:?} sends no beacons, so nothing is sent after them: name a group that does");
            return Err(self.source.at(ap.span(), what));
        }
        let end = &self.file.run.duration;
        if wait.get_ref() >= end.get_ref() {
            let what = format!("nothing is sent: {wait} after a beacon is after the end of the run, {end}");
            return Err(self.source.at(wait.span(), what));
        }
        Ok(())
    }

    /// Who keeps the time of a schedule.
    pub(super) fn beacons(
        &self,
        names: &Names<'_>,
        schedule: &Schedule,
        members: &[usize],
        groups: &[Range<u32>],
        phy: &Phy,
    ) -> Result<Beacons, ScenarioError> {
        let Some(b) = &schedule.beacon else {
            return Ok(Beacons::default());
        };
        let wrong = |at: &Spanned<String>, what: String| Err(self.source.at(at.span(), what));
        self.rate(&b.rate, phy)?;
        let name = schedule.name.get_ref();
        let master = names.node(&b.from)?;
        let runs_it = |node: u32| members.iter().any(|g| groups[*g].contains(&node));
        if !runs_it(master) {
            let from = b.from.get_ref();
            let what = format!("{from:?} does not run {name:?}, so it cannot send its beacons");
            return wrong(&b.from, what);
        }
        if let (Some(within), false) = (&schedule.seen_within, schedule.watch) {
            let what = format!("nobody holds frames against the slots of {name:?}: add watch = true");
            return Err(self.source.at(within.span(), what));
        }
        let interval = Time(schedule.cycle.get_ref().0.saturating_mul(b.every.0.max(1).into()));
        if b.reference.is_none() && b.holdover.0 < interval.0.saturating_mul(2) {
            let what = format!(
                "a beacon each {interval}, and holdover is {}: it is at least two of these, since without one that is lost all are silent",
                b.holdover
            );
            return wrong(&b.from, what);
        }
        let reference = b.reference.as_ref().map(|r| names.node(r)).transpose()?;
        if let (Some(at), Some(node)) = (&b.reference, reference) {
            let of = groups.iter().position(|g| g.contains(&node));
            let group = &self.file.group[of.expect("every node is in a group")];
            if !matches!(group.protocol, Protocol::Beaconer(_)) {
                let what = format!(
                    "{:?} sends no beacons of its own: a reference runs beaconer",
                    at.get_ref()
                );
                return wrong(at, what);
            }
            if schedule.join.is_some() {
                let what = format!(
                    "{name:?} has join, which is told in beacons, and with a reference it sends none: keep one of them"
                );
                return wrong(at, what);
            }
            if !schedule.left_on.reception {
                let what = format!(
                    "{name:?} has left_on.reception = false, so nobody hears the reference, whose beacons come outside of slots: keep one of them"
                );
                return wrong(at, what);
            }
        }
        Ok(Beacons {
            master: Some(master),
            slot: Some(slot(
                b,
                master,
                schedule,
                members.iter().any(|g| self.file.group[*g].redundancy.is_some()),
            )),
            reference,
        })
    }
}

/// The slot of the beacons, with room for all that they say.
fn slot(b: &BeaconSlot, node: u32, schedule: &Schedule, twice: bool) -> slots::BeaconSlot {
    let more = match (&schedule.join, schedule.watch) {
        (Some(_), _) => MAX_LIST_OCTETS,
        (None, true) => ONE_REPORT_OCTETS,
        (None, false) => 0,
    };
    let clocks = if twice { SHIFTS_OCTETS } else { 0 };
    let frame = BeaconFrame {
        bssid: MacAddr::local(node),
        interval_tu: 100,
        ssid: b"sdmac",
        basic: BeaconFrame::basic_for(b.rate.get_ref().0),
        sequence: 0,
    };
    let octets = match b.reference {
        Some(_) => FOLLOW_UP_OCTETS + more,
        None => frame.emit(&mut [0; MAX_BEACON_OCTETS]).len() + 4 + more + clocks,
    };
    slots::BeaconSlot {
        from: MacAddr::local(node),
        octets: octets as u16,
        rate: b.rate.get_ref().0,
        every: b.every.0.into(),
    }
}

/// The clock of a node of a schedule, on one adapter or on two.
pub(super) fn clock(
    schedule: &Schedule,
    planned: &Planned,
    node: u32,
    band: Band,
    (adapter, second): (AdapterId, Option<AdapterId>),
) -> Sync {
    let spread = schedule.seen_within.as_ref().map(|t| duration(*t.get_ref()));
    let perfect = Sync::perfect(0).seeing_within(spread);
    let (Some(b), Some(master)) = (&schedule.beacon, planned.master) else {
        return perfect;
    };
    let holdover = duration(b.holdover);
    let config = match (master == node, planned.reference) {
        (true, Some(_)) => return perfect,
        (true, None) => SyncConfig::own(band, holdover),
        (false, _) => SyncConfig::new(band, holdover),
    };
    Sync::tracking(SyncConfig {
        adapter,
        second,
        latency_spread: spread,
        ..config
    })
}
