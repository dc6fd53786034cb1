//! `protocol` of a group: what runs on its nodes.

use frame::{Phy, Rate};
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::ad_hoc::AdHoc;
use super::admission::Pool;
use super::cells::{Slotted, Tbmac};
use super::file::QueueName;
use super::join::Stay;
use super::overlay::Order;
use super::units::*;

/// What runs on a node.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Protocol {
    /// Sends each MSDU at once: plain CSMA or EDCA. Receives too.
    Sender(Sending),
    /// Only receives.
    Sink,
    /// The measurement task of SDMAC (Cena et al. 2018, section V): confirmed one-shots, one after the other.
    Oneshot(Oneshot),
    /// An access point: sends beacons, and is a `sender` otherwise.
    Beaconer(Beaconer),
    /// Earliest deadline first over one-shots of its own.
    Edf(Edf),
    /// Polls responders, earliest deadline first.
    Coordinator(Coordinator),
    /// Answers the polls of a coordinator.
    Responder(Responder),
    /// Sends in its slots of a `[[schedule]]`.
    Tdma(Tdma),
    /// Agrees on slots with the other hosts of its cell.
    Tbmac(Tbmac),
    /// One frame at the start of each slot; all slots are its own.
    Slotted(Slotted),
    /// A station of an ad hoc network.
    Ibss(AdHoc),
}

/// How frames are sent.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sending {
    /// Rate.
    #[schemars(with = "RateText")]
    pub rate: Spanned<RateText>,
    /// Tries of each frame.
    #[serde(default = "seven")]
    pub tries: Tries,
    /// Rate of frames to all; the slowest of the PHY by default.
    #[schemars(with = "Option<RateText>")]
    pub broadcast_rate: Option<Spanned<RateText>>,
    /// Queue for everything; by the access category of the traffic by default.
    pub queue: Option<QueueName>,
    /// QoS data (two octets more of header, and the category on the air).
    #[serde(default)]
    pub qos: bool,
    /// Whether ACKs are expected.
    #[serde(default = "yes")]
    pub ack: bool,
    /// RTS before every frame.
    #[serde(default)]
    pub rts: bool,
    /// Number of the adapter, from 0 on.
    #[serde(default = "first")]
    #[schemars(with = "AdapterNumber")]
    pub adapter: Spanned<AdapterNumber>,
}

impl Sending {
    /// Rate of frames to all.
    pub fn group_rate(&self, phy: &Phy) -> Rate {
        self.broadcast_rate
            .as_ref()
            .map_or(phy.lowest, |rate| rate.get_ref().0)
    }
}

fn first() -> Spanned<AdapterNumber> {
    Spanned::new(0..0, AdapterNumber(0))
}

fn seven() -> Tries {
    Tries(7)
}
fn yes() -> bool {
    true
}

/// Parameters of the measurement task.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Oneshot {
    /// Who receives the frames.
    #[schemars(with = "String")]
    pub to: Spanned<String>,
    /// Payload without LLC/SNAP; the paper has 50.
    #[serde(default = "fifty")]
    pub payload_octets: Small,
    /// When to measure.
    pub pace: Pace,
    /// How many times; without end by default.
    pub measurements: Option<u32>,
    /// How the frames are sent; one-shots have `tries = 1`.
    pub send: Sending,
}

fn fifty() -> Small {
    Small(50)
}

/// When the task measures.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pace {
    /// This long after each beacon of the access point.
    #[schemars(with = "Time")]
    AfterBeacon(Spanned<Time>),
    /// Once in this period.
    #[schemars(with = "Time")]
    Every(Spanned<Time>),
}

/// Parameters of an access point.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Beaconer {
    /// From one TBTT to the next.
    #[schemars(with = "Time")]
    pub interval: Spanned<Time>,
    /// First TBTT.
    #[serde(default)]
    pub first: Time,
    /// Rate of the beacons.
    #[schemars(with = "RateText")]
    pub rate: Spanned<RateText>,
    /// How data frames are sent.
    pub send: Sending,
}

/// Parameters of EDF on one node.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edf {
    /// What an attempt costs, from request to confirm: what the longest frame and its ACK take at least.
    #[schemars(with = "Time")]
    pub cost: Spanned<Time>,
    /// Learn the cost: the largest of the last attempts counts.
    #[serde(default)]
    pub learn: bool,
    /// Deadline of MSDUs without `lifetime`.
    pub deadline: Time,
    /// A frame that failed goes at once again, instead of by its deadline.
    #[serde(default)]
    pub immediate: bool,
    /// Attempts of each frame; the smaller of this and `tries` counts.
    pub attempts: Option<Small>,
    /// Pause of a frame that failed.
    #[serde(default)]
    pub gap: Time,
    /// Time for retries that all its frames share; otherwise retries compete with first attempts without a limit.
    pub pool: Option<Pool>,
    /// AIFSN with a contention window of 0, for nodes that are alone on the channel.
    pub no_backoff_aifsn: Option<Aifsn>,
    /// How frames are sent.
    pub send: Sending,
}

/// Parameters of a polling coordinator.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Coordinator {
    /// What an attempt costs, from request to confirm: what the longest frame and its ACK take at least.
    #[schemars(with = "Time")]
    pub attempt: Spanned<Time>,
    /// How long it waits for an answer, from the confirm of the poll.
    #[schemars(with = "Time")]
    pub answer: Spanned<Time>,
    /// Deadline of MSDUs without `lifetime`.
    pub deadline: Time,
    /// Attempts of each exchange.
    #[serde(default = "three")]
    pub attempts: Small,
    /// Pause of a node whose attempt failed.
    #[serde(default)]
    pub gap: Time,
    /// Poll again this long after an empty answer.
    pub poll_again: Option<Time>,
    /// AIFSN with a contention window of 0.
    pub no_backoff_aifsn: Option<Aifsn>,
    /// How frames are sent; should have `tries = 1`.
    pub send: Sending,
}

fn three() -> Small {
    Small(3)
}

/// Parameters of a responder.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Responder {
    /// Whose polls it answers.
    #[schemars(with = "String")]
    pub coordinator: Spanned<String>,
    /// Later answers are not sent.
    pub within: Time,
    /// AIFSN with a contention window of 0.
    pub no_backoff_aifsn: Option<Aifsn>,
    /// How frames are sent; should have `tries = 1`.
    pub send: Sending,
}

/// Parameters of a node with slots.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tdma {
    /// Name of its `[[schedule]]`, which also says how frames are sent.
    #[schemars(with = "String")]
    pub schedule: Spanned<String>,
    /// Hand frames down early: the adapter holds them back until their slot.
    #[serde(default)]
    pub hold_back: bool,
    /// One frame at a time, that with the earliest deadline; otherwise each slot takes the oldest that fits it.
    pub edf: Option<Order>,
    /// When it is in a schedule that stations join, and what it tells about its link.
    pub stay: Option<Stay>,
}

impl Protocol {
    /// How it sends data, if it says so itself: [`File::sending`](super::file::File::sending) looks further.
    pub(super) fn sending(&self) -> Option<&Sending> {
        match self {
            Protocol::Sender(s) => Some(s),
            Protocol::Sink | Protocol::Tdma(_) => None,
            Protocol::Oneshot(p) => Some(&p.send),
            Protocol::Beaconer(p) => Some(&p.send),
            Protocol::Edf(p) => Some(&p.send),
            Protocol::Coordinator(p) => Some(&p.send),
            Protocol::Responder(p) => Some(&p.send),
            Protocol::Tbmac(p) => Some(&p.send),
            Protocol::Slotted(p) => Some(&p.send),
            Protocol::Ibss(p) => Some(&p.send),
        }
    }
}
