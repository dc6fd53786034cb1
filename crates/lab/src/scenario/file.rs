//! The shape of a scenario file, key by key. `docs/src/scenarios.md` is its reference, `sdmac schema` its schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::adapter::Adapter;
use super::interrupts::Interrupts;
use super::overlay::{Pair as Redundant, RateRule};
use super::protocol::Protocol;
use super::roam::Roaming;
use super::schedule::Schedule;
use super::units::*;
use super::world::{Foreign, Incident, Link, Noise, Output, Traffic};

/// A whole file.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// One line about what it shows.
    #[serde(default)]
    pub title: String,
    /// Short names for `--set`: each stands for the key with this dotted path.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// How long, and from which seed.
    pub run: Run,
    /// The air.
    #[serde(default)]
    pub medium: Medium,
    /// Nodes that are alike.
    pub group: Vec<Group>,
    /// Who sends when, for groups that run `tdma`.
    #[serde(default)]
    pub schedule: Vec<Schedule>,
    /// What the applications hand down.
    #[serde(default)]
    pub traffic: Vec<Traffic>,
    /// Losses of links.
    #[serde(default)]
    pub link: Vec<Link>,
    /// Sources of energy that is no frame.
    #[serde(default)]
    pub noise: Vec<Noise>,
    /// Wi-Fi of other people.
    #[serde(default)]
    pub foreign: Vec<Foreign>,
    /// What happens at a given time.
    #[serde(default)]
    pub incident: Vec<Incident>,
    /// What is measured and kept.
    #[serde(default)]
    pub output: Output,
}

/// `[run]`
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Simulated time in all.
    #[schemars(with = "Time")]
    pub duration: Spanned<Time>,
    /// Results count from here on.
    #[serde(default)]
    pub warm_up: Time,
    /// Everything random follows from it.
    #[serde(default = "one")]
    pub seed: Seed,
}

fn one() -> Seed {
    Seed(1)
}

/// Which rules apply where implementations differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// What the standard says.
    #[default]
    Standard,
    /// What ns-3.37 does: access rules, ACK timeout of 45 us with 802.11a, energy detection from -82 dBm.
    Ns3,
}

/// `[medium]`
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Medium {
    /// Rules; also the default of all groups.
    pub preset: Preset,
    /// Path loss; by default log-distance with exponent 3.
    pub loss: Option<Loss>,
    /// Error model; `nist` by default.
    pub error: Option<ErrorModel>,
    /// Capture; `sinr` by default.
    pub capture: Option<Capture>,
    /// Noise figure of the receivers, dB.
    pub noise_figure_db: Option<Decibel>,
    /// Signals weaker than this do not exist.
    pub floor_dbm: Option<Decibel>,
    /// Weakest preamble that can be detected.
    pub preamble_dbm: Option<Decibel>,
    /// Least ratio at which a preamble is detected.
    pub preamble_sinr_db: Option<Decibel>,
    /// The medium is busy from this sum of signals on, whatever they are.
    pub energy_dbm: Option<Decibel>,
}

/// Path loss.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// Friis.
    FreeSpace,
    /// `at_1m_db + 10 exponent log10(d)`.
    LogDistance {
        /// Loss at one metre.
        #[serde(default = "at_1m")]
        at_1m_db: Decibel,
        /// 2 in free space, 3 indoors.
        exponent: Exponent,
        /// Standard deviation, drawn once for each pair.
        #[serde(default = "zero_db")]
        shadowing_db: Decibel,
    },
    /// The same received power everywhere.
    FixedPowerDbm(Decibel),
    /// Losses in dB of listed pairs, in both directions; the others do not hear each other.
    Pairs(Vec<Pair>),
}

fn at_1m() -> Decibel {
    Decibel(46.6777)
}
fn zero_db() -> Decibel {
    Decibel(0.0)
}

/// Two nodes that hear each other.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// One node.
    #[schemars(with = "String")]
    pub a: Spanned<String>,
    /// The other one.
    #[schemars(with = "String")]
    pub b: Spanned<String>,
    /// Loss between them.
    pub db: Decibel,
}

/// Error model.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ErrorModel {
    /// Modulation and code over white noise.
    Nist,
    /// Nothing is lost to noise.
    Perfect,
    /// Received from this ratio on.
    ThresholdDb(Decibel),
    /// Packet error rates of a CSV file with lines `rate,snr_db,per`.
    Table {
        /// The file, relative to the scenario.
        #[schemars(with = "String")]
        csv: Spanned<String>,
        /// Octets of the frames that were measured.
        octets: Small,
    },
}

/// Capture rule.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Capture {
    /// The first frame goes on; the others are noise to it.
    Sinr,
    /// Any overlap destroys it.
    None,
    /// It survives if it is this much stronger than all others.
    FirstWinsDb(Decibel),
    /// A later frame that is stronger takes over.
    MessageInMessage {
        /// This much stronger.
        by_db: Decibel,
        /// Within this time.
        window: Time,
    },
}

/// `[[group]]`
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Name; the nodes of a group of several are called `name.0`, `name.1`...
    #[schemars(with = "String")]
    pub name: Spanned<String>,
    /// Number of nodes.
    #[serde(default = "single")]
    pub count: Count,
    /// Where they are; all at the origin by default.
    #[serde(default)]
    pub placement: Placement,
    /// PHY and timing.
    #[serde(default)]
    pub phy: PhyName,
    /// Number of the channel; 36 at 5 GHz, 1 at 2.4 GHz by default.
    #[schemars(with = "Option<ChannelNumber>")]
    pub channel: Option<Spanned<ChannelNumber>>,
    /// Transmit power.
    pub tx_dbm: Option<Decibel>,
    /// Basic rates, which decide the rate of its ACKs; those of the PHY by default.
    #[schemars(with = "Option<Vec<RateText>>")]
    pub basic_rates: Option<Spanned<Vec<Spanned<RateText>>>>,
    /// Rules of channel access, if not those of the medium.
    pub rules: Option<Preset>,
    /// ACK timeout, from the end of the frame.
    pub ack_timeout: Option<Time>,
    /// EDCA defaults in the four queues instead of DCF.
    #[serde(default)]
    pub edca: bool,
    /// Access parameters of single queues.
    #[serde(default)]
    pub queue: BTreeMap<QueueName, QueueEntry>,
    /// Longer frames are preceded by RTS.
    pub rts_octets: Option<Small>,
    /// Frames a queue holds.
    pub queue_limit: Option<Small>,
    /// The end of a lifetime, or an abort, takes back what its adapters have; true by default. Linux cannot.
    pub takes_back: Option<bool>,
    /// Its adapters tell how strong the ACK of a frame was; true by default. On Linux, and with an AR9170, nobody does.
    pub ack_signal: Option<bool>,
    /// Further adapters: the keys above are those of the first.
    #[serde(default)]
    pub adapter: Vec<Adapter>,
    /// Host profile: a name, or a file relative to the scenario. Without it the host takes no time.
    #[schemars(with = "Option<String>")]
    pub host: Option<Spanned<String>>,
    /// How the protocol waits for its timers.
    #[serde(default)]
    pub wait: WaitName,
    /// Clock of the host.
    #[serde(default)]
    pub clock: ClockEntry,
    /// The access point that these nodes talk through; without it they talk to each other directly.
    #[schemars(with = "Option<String>")]
    pub ap: Option<Spanned<String>>,
    /// When the protocol starts.
    #[serde(default)]
    pub start: Time,
    /// Two adapters as one.
    pub redundancy: Option<Redundant>,
    /// From one access point to the next.
    pub roam: Option<Roaming>,
    /// Who chooses the rates.
    pub rate_control: Option<RateRule>,
    /// What runs on the nodes.
    pub protocol: Protocol,
    /// What goes wrong at the hosts.
    #[serde(default)]
    pub faults: Faults,
    /// What their timers wait for.
    pub interrupts: Option<Interrupts>,
}

fn single() -> Count {
    Count(1)
}

/// Where the nodes of a group are, in metres.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Placement {
    /// All in one place.
    At(Point),
    /// Row by row from the south-west on.
    Grid {
        /// Between neighbours.
        spacing_m: Distance,
        /// Nodes of a row; as in a square by default.
        columns: Option<Count>,
    },
    /// Evenly, from the east counter-clockwise.
    Circle {
        /// Radius.
        radius_m: Distance,
    },
    /// From the origin eastwards.
    Line {
        /// Between neighbours.
        spacing_m: Distance,
    },
    /// Each in its own place.
    #[schemars(with = "Vec<Point>")]
    Positions(Spanned<Vec<Point>>),
}

impl Default for Placement {
    fn default() -> Self {
        Placement::At(Point([Metres(0.0); 2]))
    }
}

/// PHY.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
pub enum PhyName {
    /// 802.11a.
    #[default]
    #[serde(rename = "a")]
    A,
    /// 802.11b.
    #[serde(rename = "b")]
    B,
    /// 802.11g, short slot.
    #[serde(rename = "g")]
    G,
    /// 802.11g beside 802.11b.
    #[serde(rename = "g-long")]
    GLong,
    /// 802.11n at 2.4 GHz.
    #[serde(rename = "n2.4")]
    N24,
    /// 802.11n at 5 GHz.
    #[serde(rename = "n5")]
    N5,
}

/// A queue of the adapter, by access category.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueName {
    /// AC_BK.
    Background,
    /// AC_BE.
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

/// Access parameters that differ from the default.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct QueueEntry {
    /// AIFSN.
    pub aifsn: Option<Aifsn>,
    /// Least contention window.
    pub cw_min: Option<Window>,
    /// Largest contention window.
    pub cw_max: Option<Window>,
    /// TXOP limit.
    pub txop: Option<Time>,
}

/// How a program waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitName {
    /// `clock_nanosleep`.
    #[default]
    Sleep,
    /// A timerfd.
    Timerfd,
    /// A busy loop.
    Spin,
}

/// Clocks.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClockEntry {
    /// What it shows at the start.
    pub offset: Time,
    /// How much it is fast.
    pub drift_ppm: Option<Ppm>,
    /// The drift of each node is drawn evenly between minus this and this.
    pub drift_within_ppm: Option<Ppm>,
}

/// What goes wrong at a host.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Probability that the status of a transmission is lost.
    pub lost_confirm: Option<Share>,
    /// Probability that a timer is late.
    pub late_timer: Option<Share>,
    /// How late.
    pub late_by: Time,
}
