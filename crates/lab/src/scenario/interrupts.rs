//! `interrupts` of a group: what comes between the timers of its hosts and their programs, beyond what `host` says of waking up.

use schemars::JsonSchema;
use serde::Deserialize;
use sim::host::{self, InterruptConfig, WheelConfig};
use toml::Spanned;

use super::check::Check;
use super::file::Group;
use super::source::ScenarioError;
use super::units::*;

/// Interrupts of a host. They are served one after the other, by one processor.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Interrupts {
    /// Times to wait are rounded up to whole multiples of this: 128 us with the beacon timer of Atheros adapters.
    pub granularity: Time,
    /// How late a timer is by itself; what is left of 1 is on time.
    #[schemars(with = "Vec<Late>")]
    pub late: Vec<Spanned<Late>>,
    /// Interrupts of other devices, and whatever else nothing may disturb.
    #[schemars(with = "Vec<Other>")]
    pub others: Vec<Spanned<Other>>,
    /// Timers expire with the tick of the kernel, as in Linux 2.6 and 3.
    pub wheel: Option<Wheel>,
}

/// A class of lateness, all of which are equally likely.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Late {
    /// How often.
    pub probability: Share,
    /// Least and most.
    pub within: [Time; 2],
}

/// What else takes the processor.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Other {
    /// From one to the next.
    pub every: Time,
    /// At random, with this mean.
    #[serde(default)]
    pub random: bool,
    /// Least and most that one takes.
    pub takes: [Time; 2],
}

/// The tick of the kernel, and the timers of others.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Wheel {
    /// Ticks in a second.
    pub hz: Hertz,
    /// Timers of others.
    #[serde(default = "none")]
    pub timers: Timers,
    /// They are set for up to so many ticks.
    #[serde(default = "a_thousand")]
    pub within: Small,
    /// What a tick takes.
    #[serde(default)]
    pub tick: Time,
    /// And each timer in it.
    #[serde(default)]
    pub timer: Time,
}

fn none() -> Timers {
    Timers(0)
}
fn a_thousand() -> Small {
    Small(1_000)
}

impl From<&Interrupts> for InterruptConfig {
    fn from(all: &Interrupts) -> InterruptConfig {
        InterruptConfig {
            granularity_ns: all.granularity.0,
            late: (all.late.iter().map(Spanned::get_ref))
                .map(|l| host::Late {
                    probability: l.probability.0,
                    from_ns: l.within[0].0,
                    to_ns: l.within[1].0,
                })
                .collect(),
            others: (all.others.iter().map(Spanned::get_ref))
                .map(|o| host::Other {
                    every_ns: o.every.0,
                    random: o.random,
                    from_ns: o.takes[0].0,
                    to_ns: o.takes[1].0,
                })
                .collect(),
            wheel: all.wheel.map(|w| WheelConfig {
                hz: w.hz.0,
                timers: w.timers.0,
                within: w.within.0.into(),
                tick_ns: w.tick.0,
                timer_ns: w.timer.0,
            }),
        }
    }
}

impl Check<'_> {
    /// Ranges are ranges, and a processor has time left.
    pub(super) fn interrupts(&self, group: &Group) -> Result<(), ScenarioError> {
        let Some(all) = &group.interrupts else {
            return Ok(());
        };
        let backwards = |[from, to]: [Time; 2]| (to < from).then(|| format!("{to} is less than {from}"));
        let mut sum = 0.0;
        for late in &all.late {
            if let Some(what) = backwards(late.get_ref().within) {
                let what = format!("{what}: `within` is the least and the most");
                return Err(self.source.at(late.span(), what));
            }
            sum += late.get_ref().probability.0;
            if sum > 1.0 + 1e-9 {
                let what = format!("with this one the probabilities of `late` add up to {sum}: at most 1");
                return Err(self.source.at(late.span(), what));
            }
        }
        let mut busy = 0.0;
        for other in &all.others {
            let Other { every, takes, .. } = *other.get_ref();
            if let Some(what) = backwards(takes) {
                let what = format!("{what}: `takes` is the least and the most");
                return Err(self.source.at(other.span(), what));
            }
            if every.0 < 1_000 {
                let what = "interrupts come every 1us or less often";
                return Err(self.source.at(other.span(), what));
            }
            busy += (takes[0].0 as f64 + takes[1].0 as f64) / 2.0 / every.0 as f64;
            if busy >= 1.0 {
                let what = "with this one interrupts take the whole processor: let them come less often, or take less";
                return Err(self.source.at(other.span(), what));
            }
        }
        let Some(wheel) = all.wheel else {
            return Ok(());
        };
        let each = f64::from(wheel.hz.0) * wheel.tick.0 as f64 / 1e9;
        // a timer of others is set again for half of `within` on average, and is moved a few times on its way
        let timers = f64::from(wheel.timers.0) * 2.0 / f64::from(wheel.within.0);
        let moved = f64::from(wheel.hz.0) * timers * wheel.timer.0 as f64 / 1e9;
        if busy + each + moved >= 1.0 {
            let what = "with its `wheel` interrupts take the whole processor: fewer ticks or timers, or such that take less";
            return Err(self.source.at(group.name.span(), what));
        }
        Ok(())
    }
}
