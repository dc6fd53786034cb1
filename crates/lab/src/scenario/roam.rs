//! Stations that go from one access point to the next: `roam` of a group, and the walks of incidents.

use std::ops::Range;

use frame::{MacAddr, Rate};
use protocols::mac::roam::{MAX_CHANNELS, Roam, RoamConfig, RoamCounters};
use radio::AdapterId;
use schemars::JsonSchema;
use serde::Deserialize;
use sim::Position;
use toml::Spanned;

use super::Scenario;
use super::build::{place, position};
use super::check::Check;
use super::file::Group;
use super::names::Names;
use super::node::{boxed, duration};
use super::program::Program;
use super::protocol::Protocol;
use super::source::ScenarioError;
use super::units::*;
use super::world::What;

/// From one place of a walk to the next, but at most...
const STEP_NS: u64 = 100_000_000;
/// ...so many places in a walk.
const STEPS: u64 = 10_000;
/// Below that no access point answers.
const LEAST_ANSWER: Time = Time(1_000_000);
/// `lost` where nothing is said.
const LOST: Time = Time(350_000_000);
/// Steps of all walks together.
const MAX_STEPS: u64 = 1_000_000;

/// `roam` of a group: its nodes begin at their `ap`, and go to another one of the same network when that is better. With
/// two adapters they make before they break.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Roaming {
    /// Nodes that run `beaconer`, `ap` among them.
    #[schemars(with = "Vec<String>")]
    pub access_points: Spanned<Vec<Spanned<String>>>,
    /// Rate of authentication and association; the lowest one of the PHY by default.
    #[schemars(with = "Option<RateText>")]
    pub rate: Option<Spanned<RateText>>,
    /// Another one is better from so many dB on.
    pub better_db: Option<Small>,
    /// For so long it must have been better.
    pub hold: Option<Time>,
    /// The present one is lost after so long without a beacon: more than the interval of all access points.
    #[schemars(with = "Option<Time>")]
    pub lost: Option<Spanned<Time>>,
    /// The present one is left when the first number of the last frames to it, as many as the second says, had no ACK, although its
    /// beacons are heard: 32 at most; `[0, 0]`: never.
    #[schemars(with = "Option<(u8, u8)>")]
    pub failed: Option<Spanned<(u8, u8)>>,
    /// Who was left for that is gone to only if nobody else is heard for so long, and nobody is left for that in this time.
    pub rest: Option<Time>,
    /// How long a node listens on a channel: more than the interval of all access points.
    #[schemars(with = "Option<Time>")]
    pub dwell: Option<Spanned<Time>>,
    /// How long it waits for an answer: 1 ms at least.
    #[schemars(with = "Option<Time>")]
    pub answer: Option<Spanned<Time>>,
    /// The old link ends this long after the new one began.
    pub overlap: Option<Time>,
    /// While both links serve, each frame that asks for an ACK goes on both: needs a second adapter.
    #[schemars(with = "Option<bool>")]
    pub copies: Option<Spanned<bool>>,
}

/// `walk` of an incident: the node goes on foot.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Walk {
    /// Where to.
    pub to: Point,
    /// Metres per second.
    pub m_per_s: Speed,
}

impl Check<'_> {
    /// The walks of all nodes together have a bound.
    pub(super) fn walks(&self, incidents: &[(Range<u32>, Option<u32>)]) -> Result<(), ScenarioError> {
        let mut steps = 0;
        for (incident, (nodes, _)) in self.file.incident.iter().zip(incidents) {
            if let What::Walk(_) = incident.what {
                let end = self.file.run.duration.get_ref().0;
                let time = end.saturating_sub(incident.at.get_ref().0);
                steps += nodes.len() as u64 * (time / STEP_NS + 1).min(STEPS);
            }
            if steps > MAX_STEPS {
                let what = format!(
                    "walks have {MAX_STEPS} steps of 100ms at most, all nodes together: let fewer walk, or a shorter time"
                );
                return Err(self.source.at(incident.at.span(), what));
            }
        }
        Ok(())
    }

    /// Whether a group can roam, and where to: channels of its access points.
    pub(super) fn roaming(&self, names: &Names<'_>, group: &Group) -> Result<Vec<u16>, ScenarioError> {
        let Some(roam) = &group.roam else {
            return Ok(Vec::new());
        };
        let list = &roam.access_points;
        let wrong = |span, what: String| Err(self.source.at(span, what));
        let name = group.name.get_ref();
        if !matches!(
            group.protocol,
            Protocol::Sender(_) | Protocol::Sink | Protocol::Edf(_)
        ) {
            let what = format!("{name:?} has roam, which goes with sender, sink and edf");
            return wrong(group.name.span(), what);
        }
        if group.redundancy.is_some() {
            let what =
                format!("{name:?} has redundancy and roam, and both want its adapters: keep one of them");
            return wrong(group.name.span(), what);
        }
        if group.adapter_count() > 2 {
            let what = format!(
                "{name:?} roams with one adapter or two, and has {}",
                group.adapter_count()
            );
            return wrong(group.name.span(), what);
        }
        if let Some(copies) = roam.copies.as_ref().filter(|c| *c.get_ref())
            && group.adapter_count() < 2
        {
            let what = format!(
                "{name:?} has one adapter, and copies go on two links: give it a [[group.adapter]] or leave copies out"
            );
            return wrong(copies.span(), what);
        }
        if let Some(answer) = roam.answer.as_ref().filter(|a| a.get_ref().0 < LEAST_ANSWER.0) {
            let answers = answer.get_ref();
            let what = format!("no access point answers within {answers}: give {LEAST_ANSWER} or more");
            return wrong(answer.span(), what);
        }
        let home = group.ap.as_ref().map(|ap| names.node(ap)).transpose()?;
        let (mut channels, mut found) = (Vec::new(), false);
        let (lost, at) = match &roam.lost {
            Some(lost) => (*lost.get_ref(), lost.span()),
            None => (LOST, list.span()),
        };
        for ap in list.get_ref() {
            let node = names.node(ap)?;
            found |= home == Some(node);
            let of = ap.get_ref().split('.').next().unwrap_or_default();
            let other = self.file.group.iter().find(|g| g.name.get_ref() == of);
            let beacons = other.and_then(|g| match &g.protocol {
                Protocol::Beaconer(b) => Some((g, *b.interval.get_ref())),
                _ => None,
            });
            let Some((other, interval)) = beacons else {
                let what = format!(
                    "{ap:?} sends no beacons: access points run beaconer",
                    ap = ap.get_ref()
                );
                return wrong(ap.span(), what);
            };
            if lost.0 <= interval.0 {
                let what = format!(
                    "{name:?} takes an access point for lost after {lost}, and {ap:?} sends a beacon each {interval}: between two \
                     of them it would be lost; give it a `lost` of three intervals or more",
                    ap = ap.get_ref()
                );
                return wrong(at, what);
            }
            if let Some(dwell) = roam.dwell.as_ref().filter(|d| d.get_ref().0 <= interval.0) {
                let what = format!(
                    "{name:?} listens on a channel for {}, and {ap:?} sends a beacon each {interval}: it would miss most of them; give \
                     it a longer `dwell`",
                    dwell.get_ref(),
                    ap = ap.get_ref()
                );
                return wrong(dwell.span(), what);
            }
            let mhz = other.adapters().next().expect("a node has a first adapter").mhz();
            if !channels.contains(&mhz) {
                channels.push(mhz);
            }
        }
        if !found {
            let what = format!(
                "{name:?} begins at its access point: give it an `ap` and name that among the access points"
            );
            return wrong(list.span(), what);
        }
        if channels.len() > MAX_CHANNELS {
            let what = format!(
                "access points are on {MAX_CHANNELS} channels at most, these on {}",
                channels.len()
            );
            return wrong(list.span(), what);
        }
        if let Some(failed) = &roam.failed {
            let (k, n) = *failed.get_ref();
            if k > n || n > 32 {
                let what = format!(
                    "failed says how many of how many frames, the first not above the second and that at most 32: [8, 10], not [{k}, {n}]"
                );
                return wrong(failed.span(), what);
            }
        }
        if let Some(rate) = &roam.rate {
            self.rate(rate, &super::node::phy(group.phy))?;
        }
        Ok(channels)
    }
}

/// The protocol of a group above the layer that roams.
pub(super) fn roaming(
    roam: &Roaming,
    channels: &[u16],
    (me, home): (u32, u32),
    adapters: usize,
    lowest: Rate,
    program: Program,
) -> Program {
    let second = (adapters > 1).then_some(AdapterId(1));
    let rate = roam.rate.as_ref().map_or(lowest, |r| r.get_ref().0);
    let mut config = RoamConfig::new(
        MacAddr::local(me),
        MacAddr::local(home),
        channels,
        (AdapterId(0), second),
        rate,
    );
    config.better_db = roam.better_db.map_or(config.better_db, |db| db.0.min(255) as u8);
    config.failed = roam.failed.as_ref().map_or(config.failed, |f| *f.get_ref());
    config.copies = roam.copies.as_ref().map_or(config.copies, |c| *c.get_ref());
    let told = |time: &Option<Spanned<Time>>| time.as_ref().map(|t| *t.get_ref());
    let times = [
        (roam.hold, &mut config.hold),
        (told(&roam.lost).or(Some(LOST)), &mut config.lost),
        (roam.rest, &mut config.rest),
        (told(&roam.dwell), &mut config.dwell),
        (told(&roam.answer), &mut config.answer),
        (roam.overlap, &mut config.overlap),
    ];
    for (time, field) in times {
        *field = time.map_or(*field, duration);
    }
    let deadlines = program.deadlines().is_some();
    let mut roam = boxed(|| Roam::new(config, program));
    if deadlines {
        roam.count_by(given_up);
    }
    Program::Roaming(roam)
}

/// Messages that a program with deadlines has given up.
fn given_up(program: &Program) -> u64 {
    program.deadlines().map_or(0, |c| c.dropped + c.exhausted)
}

/// A leg of the way of a node.
#[derive(Clone, Copy)]
struct Leg {
    start_ns: u64,
    from: Position,
    to: Position,
    m_per_s: f64,
}

impl Leg {
    fn length(&self) -> f64 {
        libm::hypot(self.to.x - self.from.x, self.to.y - self.from.y)
    }

    fn at(&self, now_ns: u64) -> Position {
        let gone = now_ns.saturating_sub(self.start_ns) as f64 / 1e9 * self.m_per_s;
        let share = match self.length() {
            0.0 => 1.0,
            length => (gone / length).min(1.0),
        };
        let between = |a: f64, b: f64| a + share * (b - a);
        Position::new(between(self.from.x, self.to.x), between(self.from.y, self.to.y))
    }

    /// When it is there.
    fn end_ns(&self) -> u64 {
        let ns = self.length() / self.m_per_s * 1e9;
        self.start_ns.saturating_add(ns.ceil() as u64)
    }
}

/// Where all nodes go, and when: an incident that moves a node ends its walk.
pub(super) fn moves(s: &Scenario) -> Vec<(u64, u32, Position)> {
    let mut all = Vec::new();
    for (g, nodes) in s.groups.iter().enumerate() {
        for node in nodes.clone() {
            let first = position(&s.file.group[g], node - nodes.start);
            all.extend(way(s, node, first).into_iter().map(|(at, to)| (at, node, to)));
        }
    }
    all
}

/// Where a node goes, and when.
pub(super) fn way(s: &Scenario, node: u32, first: Position) -> Vec<(u64, Position)> {
    let own = s.file.incident.iter().zip(&s.incidents);
    let own = own.filter(|(_, (nodes, _))| nodes.contains(&node));
    let mut own: Vec<_> = own
        .filter_map(|(i, _)| {
            let to = match i.what {
                What::MoveTo(to) => (to, f64::INFINITY),
                What::Walk(walk) => (walk.to, walk.m_per_s.0),
                _ => return None,
            };
            Some((i.at.get_ref().0, to))
        })
        .collect();
    own.sort_by_key(|(at, _)| *at);
    let mut places = Vec::new();
    let mut here = first;
    for (n, (start_ns, (to, m_per_s))) in own.iter().enumerate() {
        let leg = Leg {
            start_ns: *start_ns,
            from: here,
            to: place(*to),
            m_per_s: *m_per_s,
        };
        let next = own.get(n + 1).map_or(s.duration_ns(), |(at, _)| *at);
        let until = leg.end_ns().min(next);
        let step = STEP_NS.max((until - leg.start_ns.min(until)).div_ceil(STEPS));
        let mut now = leg.start_ns;
        while now < until {
            now = until.min(now + step);
            places.push((now, leg.at(now)));
        }
        if m_per_s.is_infinite() {
            places.push((leg.start_ns, leg.to));
        }
        here = if m_per_s.is_infinite() {
            leg.to
        } else {
            leg.at(until)
        };
    }
    places
}

impl Program {
    /// What a node that roams has counted.
    pub fn roamed(&self) -> Option<RoamCounters> {
        match self {
            Program::Roaming(p) => Some(p.counters()),
            _ => self.above()?.roamed(),
        }
    }
}
