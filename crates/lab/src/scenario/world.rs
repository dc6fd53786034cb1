//! What happens among the nodes: traffic, losses of links, noise, Wi-Fi of others, incidents; and what is kept.

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::file::QueueName;
use super::roam::Walk;
use super::units::*;

/// `[[traffic]]`: one flow from each node of `from`.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// A group or a node.
    #[schemars(with = "String")]
    pub from: Spanned<String>,
    /// A node, `broadcast`, or `neighbour:SALT`: one of the up to four neighbours in the grid, by a hash of seed,
    /// node and salt.
    #[schemars(with = "String")]
    pub to: Spanned<String>,
    /// MSDU with LLC/SNAP.
    pub octets: Octets,
    /// When.
    pub pattern: Pattern,
    /// Access category.
    #[serde(default = "best_effort")]
    pub category: QueueName,
    /// It is of no use any more after this time.
    pub lifetime: Option<Time>,
    /// Share of its attempts that fail, for the slots or the time on the channel that it gets; none by default.
    pub per: Option<Share>,
    /// Share of its messages that may miss, above 0; 1e-6 by default.
    pub miss: Option<Share>,
    /// MSDUs of each flow; without end by default.
    pub count: Option<u32>,
}

fn best_effort() -> QueueName {
    QueueName::BestEffort
}

/// When MSDUs are handed down.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Pattern {
    /// Once in each period.
    Periodic {
        /// Period.
        #[schemars(with = "Time")]
        period: Spanned<Time>,
        /// First one.
        #[serde(default)]
        phase: Phase,
    },
    /// At random with exponential pauses.
    Poisson {
        /// Mean pause.
        #[schemars(with = "Time")]
        mean: Spanned<Time>,
    },
    /// Always some are waiting.
    Saturated {
        /// How many.
        backlog: Small,
        /// First ones.
        #[serde(default)]
        phase: Phase,
    },
}

/// When a flow begins.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Phase {
    /// All flows at this time.
    Fixed(Time),
    /// Each flow at random before this time.
    Random(Time),
    /// Flow i at (Mix3(seed, i, salt) mod (within / step)) times step; Mix3 is in the chapter about ns-3.
    Mix3 {
        /// Salt.
        salt: u64,
        /// Before this time.
        #[schemars(with = "Time")]
        within: Spanned<Time>,
        /// A multiple of this.
        step: Time,
    },
}

impl Default for Phase {
    fn default() -> Self {
        Phase::Fixed(Time(0))
    }
}

/// `[[link]]`: losses on the way from one node to another.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// A group or a node.
    #[schemars(with = "String")]
    pub from: Spanned<String>,
    /// A group or a node.
    #[schemars(with = "String")]
    pub to: Spanned<String>,
    /// The way back too, with losses of its own.
    #[serde(default)]
    pub both_ways: bool,
    /// Losses of data and management frames.
    pub data: Option<Process>,
    /// Losses of ACKs and CTSs.
    pub ack: Option<Process>,
    /// Share of the lost frames whose header was heard.
    #[serde(default = "nothing")]
    pub heard: Share,
    /// Loss of the path over time in place of the medium's: a CSV file with lines `time_us,db`.
    #[schemars(with = "Option<String>")]
    pub path_loss: Option<Spanned<String>>,
}

fn nothing() -> Share {
    Share(0.0)
}

/// How frames are lost.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Process {
    /// Each with this probability.
    Fixed(Share),
    /// In bursts.
    GilbertElliott {
        /// Mean time in the good state.
        #[schemars(with = "Time")]
        good: Spanned<Time>,
        /// Mean time in the bad state.
        #[schemars(with = "Time")]
        bad: Spanned<Time>,
        /// Loss in the good state.
        #[serde(default = "nothing")]
        good_loss: Share,
        /// Loss in the bad state.
        #[serde(default = "all")]
        bad_loss: Share,
    },
    /// As a CSV file says, with lines `time_us,per`.
    #[schemars(with = "String")]
    Trace(Spanned<String>),
}

fn all() -> Share {
    Share(1.0)
}

/// `[[noise]]`: bursts of energy.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Where.
    pub at: Point,
    /// Power.
    pub tx_dbm: Decibel,
    /// Length of a burst.
    #[schemars(with = "Time")]
    pub on: Spanned<Time>,
    /// Pause between bursts.
    pub off: Time,
    /// Pauses are exponential with this mean.
    #[serde(default)]
    pub random: bool,
    /// First burst.
    #[serde(default)]
    pub start: Time,
}

/// `[[foreign]]`: Wi-Fi of other people, on the channel of the first group.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// Where.
    pub at: Point,
    /// Transmit power.
    pub tx_dbm: Option<Decibel>,
    /// What they send.
    pub what: ForeignWhat,
}

/// What others send.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ForeignWhat {
    /// A station that sends data to another one, 1 m east of it, at random times.
    Load {
        /// MSDU with LLC/SNAP.
        octets: Octets,
        /// Mean pause between MSDUs.
        #[schemars(with = "Time")]
        mean: Spanned<Time>,
        /// Rate.
        #[schemars(with = "RateText")]
        rate: Spanned<RateText>,
    },
    /// A station that looks for networks: bursts of probe requests to all.
    Probes {
        /// From one burst to the next.
        #[schemars(with = "Time")]
        every: Spanned<Time>,
        /// Frames of a burst.
        burst: Small,
        /// Rate.
        #[schemars(with = "RateText")]
        rate: Spanned<RateText>,
    },
}

/// `[[incident]]`: something that happens to a node.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incident {
    /// When.
    #[schemars(with = "Time")]
    pub at: Spanned<Time>,
    /// To which node or group.
    #[schemars(with = "String")]
    pub node: Spanned<String>,
    /// What.
    pub what: What,
}

/// What happens.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum What {
    /// The adapter resets: queued frames are aborted, its TSF starts at 0.
    AdapterReset,
    /// The adapter with this number is pulled out, for good.
    AdapterGone(AdapterNumber),
    /// The host's clock jumps ahead.
    ClockJump(Time),
    /// The TSF jumps to a value.
    TsfJump(Time),
    /// The node is somewhere else at once.
    MoveTo(Point),
    /// The node goes somewhere else.
    Walk(Walk),
    /// The path loss between the node and another one becomes this, in both directions.
    PathLoss {
        /// The other node.
        #[schemars(with = "String")]
        to: Spanned<String>,
        /// Loss; 300 means that they do not hear each other.
        db: Decibel,
    },
}

/// `[output]`
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Output {
    /// Measure latencies of deliveries and confirms. Costs time; without it only counters are read.
    pub latency: bool,
    /// The capture keeps the air up to this time...
    pub air: Time,
    /// ...and up to this size.
    pub air_mib: Mebibytes,
    /// The timeline keeps this much time.
    pub timeline: Time,
}

impl Default for Output {
    fn default() -> Self {
        Output {
            latency: true,
            air: Time(60_000_000_000),
            air_mib: Mebibytes(64),
            timeline: Time(10_000_000_000),
        }
    }
}
