//! What goes between the protocol of a group and its adapters: `redundancy` and `rate_control`; and `edf` of a `tdma`.
//!
//! From the adapters upwards: redundancy, then rate control, then the protocol.

use frame::{Phy, Rate};
use protocols::mac::edf::cost::CostEstimate;
use protocols::mac::edf::{AtOnce, Edf, EdfConfig};
use protocols::mac::overlay::{Access, DEFAULT_HELD_OCTETS};
use protocols::mac::rate::RateControl;
use protocols::mac::rate::minstrel::Minstrel;
use protocols::mac::rate::rsin::Rsin;
use protocols::mac::redundancy::{Redundancy, RedundancyConfig};
use protocols::mac::sender::Sender;
use radio::{AdapterId, Queue};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::build::LLC_SNAP_OCTETS;
use super::check::Check;
use super::file::{Group, QueueName};
use super::node::{boxed, category, duration};
use super::program::Program;
use super::protocol::{Protocol, Sending};
use super::schedule::MAX_HELD;
use super::source::ScenarioError;
use super::units::*;
use super::world::{Pattern, Traffic};

/// MSDU with LLC/SNAP that an overlay holds at most, behind the header of QoS data, octets.
const HELD_MSDU: u32 = DEFAULT_HELD_OCTETS as u32 - 26;
/// The same in a poll or an answer: those of `Coordinator` and `Responder` hold payloads of 1,500 octets.
const POLLED_MSDU: u32 = LLC_SNAP_OCTETS + 1_500;

/// `redundancy` of a group: two of its adapters as one. Who sends to such a node, or hears from it, has it as well.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Numbers of the two adapters.
    #[serde(default = "both")]
    #[schemars(with = "[AdapterNumber; 2]")]
    pub adapters: Spanned<[AdapterNumber; 2]>,
    /// When the copies are sent.
    #[serde(default)]
    pub copies: Copies,
    /// AIFSN with a contention window of 0, on both adapters; a `tdma` takes that of its schedule.
    pub no_backoff_aifsn: Option<Aifsn>,
}

fn both() -> Spanned<[AdapterNumber; 2]> {
    Spanned::new(0..0, [AdapterNumber(0), AdapterNumber(1)])
}

/// When the two copies of a frame are sent.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Copies {
    /// Both at once, and none is taken back.
    #[default]
    Parallel,
    /// Both at once; the ACK of one takes the other back.
    Reactive,
    /// The second when the first has failed, or after this time.
    Proactive(Time),
}

/// `rate_control` of a group: who chooses the rates of frames to one receiver, among those like the rate of the protocol: the legacy
/// ones, or the MCS of its width, guard interval and number of streams.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RateRule {
    /// As Linux has it for 802.11a/b/g, and in the same way for n.
    Minstrel,
    /// The chain with the least loss before the deadline, from the strength of ACKs.
    Rsin {
        /// Noise of the receivers in 20 MHz.
        #[serde(default = "noise")]
        noise_dbm: Decibel,
        /// Taken off the ratio of signal to noise.
        #[serde(default = "margin")]
        margin_db: Decibel,
    },
}

fn noise() -> Decibel {
    Decibel(-94.0)
}
fn margin() -> Decibel {
    Decibel(3.0)
}

/// `edf` of a `tdma`: which of the held frames for a receiver goes into its next slot.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// What an attempt costs at least, from the start of the slot to the confirm: frames with less time left are dropped.
    pub cost: Time,
    /// Deadline of MSDUs without `lifetime`.
    pub deadline: Time,
}

impl Group {
    /// The first of the two adapters that its redundancy joins and the other one.
    pub(super) fn pair(&self) -> Option<(&Pair, [AdapterId; 2])> {
        let pair = self.redundancy.as_ref()?;
        Some((pair, pair.adapters.get_ref().map(|n| AdapterId(n.0))))
    }
}

impl Check<'_> {
    /// What holds the frames of a group has room for them.
    pub(super) fn fits_held(&self, group: &Group, t: &Traffic) -> Result<(), ScenarioError> {
        let (who, room) = match &group.protocol {
            Protocol::Coordinator(_) => ("coordinator", POLLED_MSDU),
            Protocol::Responder(_) => ("responder", POLLED_MSDU),
            Protocol::Edf(_) => ("edf", HELD_MSDU),
            Protocol::Tdma(_) => ("a slot", HELD_MSDU),
            _ if group.redundancy.is_some() => ("redundancy", HELD_MSDU),
            _ if group.roam.is_some() => ("roam", HELD_MSDU),
            _ => return Ok(()),
        };
        if t.octets.0 <= room {
            return Ok(());
        }
        let what = format!(
            "{who} holds MSDUs of at most {room} octets, these have {}",
            t.octets.0
        );
        Err(self.source.at(t.from.span(), what))
    }

    /// A saturated source hands down a message when one has ended at the adapter: with what is dropped ahead of that it runs dry.
    pub(super) fn stays_full(&self, group: &Group, t: &Traffic) -> Result<(), ScenarioError> {
        let late = t.lifetime.map(|_| "its messages have a lifetime");
        let why = match &group.protocol {
            Protocol::Edf(_) => Some("edf drops what is late"),
            Protocol::Tdma(p) if p.edf.is_some() => Some("edf drops what is late"),
            Protocol::Coordinator(_) | Protocol::Responder(_) => Some("a newer message takes its place"),
            Protocol::Tdma(_) | Protocol::Tbmac(_) | Protocol::Slotted(_) => late,
            _ => None,
        };
        match why.filter(|_| matches!(t.pattern, Pattern::Saturated { .. })) {
            None => Ok(()),
            Some(why) => {
                let what = format!(
                    "a saturated source waits for the end of each message, and some would never reach the adapter, since {why}: give \
                     {:?} pattern.periodic",
                    t.from.get_ref()
                );
                Err(self.source.at(t.from.span(), what))
            }
        }
    }

    /// The layers of a group fit each other, its protocol and its adapters.
    pub(super) fn layers(&self, group: &Group) -> Result<(), ScenarioError> {
        let wrong = |span, what: String| Err(self.source.at(span, what));
        if let Some((pair, [a, b])) = group.pair() {
            let have = group.adapter_count();
            if a == b || usize::from(a.0.max(b.0)) >= have {
                let what = format!(
                    "redundancy joins two adapters of a node, these are {} and {} of {have}: add one with [[group.adapter]]",
                    a.0, b.0
                );
                let span = match pair.adapters.span() {
                    s if s.is_empty() => group.name.span(),
                    s => s,
                };
                return wrong(span, what);
            }
            let goes_with = match &group.protocol {
                Protocol::Oneshot(_) | Protocol::Slotted(_) | Protocol::Ibss(_) => false,
                Protocol::Tbmac(p) => p.cells.is_none(),
                _ => true,
            };
            if !goes_with {
                let what = format!(
                    "{:?} has redundancy, which goes with sender, sink, beaconer, edf, coordinator, responder, tdma, and tbmac in one cell",
                    group.name.get_ref()
                );
                return wrong(group.name.span(), what);
            }
            if let (Protocol::Tdma(_) | Protocol::Tbmac(_), Copies::Proactive(_)) =
                (&group.protocol, &pair.copies)
            {
                let what = format!(
                    "{:?} sends its second copies later, and by then their slot is over: with tdma and tbmac, copies are \"parallel\" or \"reactive\"",
                    group.name.get_ref()
                );
                return wrong(group.name.span(), what);
            }
        }
        let free = matches!(
            group.protocol,
            Protocol::Sender(_) | Protocol::Beaconer(_) | Protocol::Edf(_) | Protocol::Sink
        );
        if group.rate_control.is_some() && !free {
            let what = format!(
                "{:?} has rate_control, which goes with sender, sink, beaconer and edf: slots and polls are as long as frames at one rate",
                group.name.get_ref()
            );
            return wrong(group.name.span(), what);
        }
        Ok(())
    }

    /// Two groups between which frames go have redundancy both or neither.
    pub(super) fn joined_alike(
        &self,
        from: &Group,
        to: &Group,
        at: std::ops::Range<usize>,
    ) -> Result<(), ScenarioError> {
        if from.redundancy.is_some() == to.redundancy.is_some() {
            return Ok(());
        }
        let (with, without) = match from.redundancy.is_some() {
            true => (from, to),
            false => (to, from),
        };
        let what = format!(
            "{:?} has redundancy and {:?} has not: give it to both, who receives twice must know",
            with.name.get_ref(),
            without.name.get_ref()
        );
        Err(self.source.at(at, what))
    }
}

/// EDF above the slots.
pub(super) fn ordered(order: Order, inner: Sender<64>) -> Edf<Sender<64>, MAX_HELD> {
    let cost = CostEstimate::fixed(duration(order.cost));
    let config = EdfConfig {
        at_once: AtOnce::EachReceiver,
        ..EdfConfig::new(cost, duration(order.deadline))
    };
    Edf::new(config, inner)
}

/// The loss of a frame over white noise, by the ratio in the width of its rate.
pub(crate) fn loss(rate: Rate, ratio_db: f64, octets: u32) -> f64 {
    let errors = sim::medium::error::bit_error_rate(rate, 10_f64.powf(ratio_db / 10.0));
    1.0 - (1.0 - errors).powf(8.0 * f64::from(octets))
}

/// The protocol of a group with the layers below it.
pub(super) fn layered(
    group: &Group,
    node: u32,
    send: Option<&Sending>,
    phy: &Phy,
    program: Program,
) -> Program {
    let program = match group.rate_control {
        None => program,
        Some(RateRule::Minstrel) => {
            let fresh = Minstrel::new(phy, node.into());
            Program::Minstrel(boxed(|| RateControl::new(fresh, program)))
        }
        Some(RateRule::Rsin { noise_dbm, margin_db }) => {
            let fresh = Rsin::new(phy, noise_dbm.0 as i8, margin_db.0 as u8, loss);
            Program::Rsin(boxed(|| RateControl::new(fresh, program)))
        }
    };
    let Some((pair, [first, second])) = group.pair() else {
        return program;
    };
    let queue: Queue = category(send.and_then(|s| s.queue).unwrap_or(QueueName::Voice)).into();
    let config = RedundancyConfig {
        access: pair.no_backoff_aifsn.map(|n| Access::without_backoff(queue, n.0)),
        ..match pair.copies {
            Copies::Parallel => RedundancyConfig::parallel(first, second),
            Copies::Reactive => RedundancyConfig::reactive(first, second),
            Copies::Proactive(defer) => RedundancyConfig::proactive(first, second, duration(defer)),
        }
    };
    Program::Redundant(boxed(|| Redundancy::new(config, program)))
}
