//! The question: what the user asks, read from text and checked.

use frame::{MacAddr, ppdu_us};
pub use frame::{Phy, Rate};
use protocols::mac::data::QOS_OVERHEAD_OCTETS;
use sim::host::Profile;

/// Nodes at most, besides the controller.
pub const MAX_NODES: u32 = 250;
/// Octets of payload at most: what an Ethernet frame carries.
pub const MAX_PAYLOAD_OCTETS: u32 = 1_500;
/// Longest cycle, ns.
pub const MAX_CYCLE_NS: u64 = 10_000_000_000;
/// Share of a lost exchange's probability that is the data frame's, the rest being the ACK's: 529 of 2,467 losses
/// (SDMAC, Cena et al. 2018, Table V).
pub const DATA_SHARE_OF_LOSSES: f64 = 529.0 / 2_467.0;
/// Probability that an exchange is lost, if nothing else is said: 2,467 of 12,093,656 (the same table).
pub const PAPER_PER: f64 = 2.04e-4;

/// A way to share the channel.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Voice queue, random backoff, retries by the adapter.
    Edca,
    /// The controller polls, earliest deadline first, one-shots.
    Edf,
    /// Static slots over one-shots.
    Tdma,
}

impl Scheme {
    /// All, in the order of reports.
    pub const ALL: [Scheme; 3] = [Scheme::Edca, Scheme::Edf, Scheme::Tdma];

    /// "EDCA", "EDF", "TDMA".
    pub fn word(self) -> &'static str {
        match self {
            Scheme::Edca => "EDCA",
            Scheme::Edf => "EDF",
            Scheme::Tdma => "TDMA",
        }
    }
}

/// How frames are lost on the links.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// Each frame on its own with these probabilities.
    Per {
        /// Of a data frame.
        data: f64,
        /// Of an ACK.
        ack: f64,
    },
    /// Signal-to-noise ratio at every receiver in dB; losses follow from rate and length.
    SnrDb(f64),
}

/// Who else is on the channel.
#[derive(Clone, Copy, PartialEq, Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Interference {
    /// Share of airtime that a foreign network asks for, 0 to 0.95.
    pub load: f64,
    /// Probe requests per second.
    pub probes_per_s: f64,
    /// Share of time with noise bursts, 0 to 0.95.
    pub noise: f64,
}

impl Interference {
    /// Whether there is any.
    pub fn is_some(&self) -> bool {
        *self != Interference::default()
    }
}

/// The question.
#[derive(Clone, Debug)]
pub struct Question {
    /// Nodes besides the controller, 1 to [`MAX_NODES`].
    pub nodes: u32,
    /// Cycle, ns, to [`MAX_CYCLE_NS`].
    pub cycle_ns: u64,
    /// Octets of each payload, 1 to [`MAX_PAYLOAD_OCTETS`].
    pub payload_octets: u32,
    /// Largest acceptable share of messages that miss their deadline, between 0 and 1.
    pub miss: f64,
    /// Losses.
    pub link: Link,
    /// Interference.
    pub interference: Interference,
    /// PHY.
    pub phy: Phy,
    /// Rate of data frames.
    pub rate: Rate,
    /// Latencies of all hosts.
    pub host: Profile,
    /// Everything random follows from it.
    pub seed: u64,
    /// What to compare, without repetition.
    pub schemes: Vec<Scheme>,
    /// Cycles per scheme at most; `None`: [`Question::budget`] decides.
    pub max_cycles: Option<u64>,
    /// A tenth of the budget, and no search for the shortest cycle beyond what a failure asks for.
    pub quick: bool,
}

/// Why a question makes no sense. The text is one sentence for the command line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum QuestionError {
    /// Too few or too many.
    #[error("--nodes {0}: give 1 to {MAX_NODES} nodes")]
    Nodes(u64),
    /// No payload, or too much.
    #[error("--payload {0}: a message has 1 to {MAX_PAYLOAD_OCTETS} octets")]
    Payload(u64),
    /// Not a probability.
    #[error("--miss {0}: give a probability between 0 and 1, for example 1e-4")]
    Miss(f64),
    /// Too long.
    #[error("--cycle {}: give at most 10s", super::text::time(*.0 as f64))]
    LongCycle(u64),
    /// Too short for anything.
    #[error(
        "--cycle {}: one message of {payload} octets at {rate} takes {} on the air with its ACK: give a longer cycle",
        super::text::time(*.cycle_ns as f64), super::text::time(*.exchange_ns as f64)
    )]
    ShortCycle {
        /// The cycle.
        cycle_ns: u64,
        /// Data, SIFS, ACK.
        exchange_ns: u64,
        /// Octets.
        payload: u32,
        /// Rate.
        rate: Rate,
    },
    /// A rate of another PHY.
    #[error("--rate {rate}: 802.11{phy} has {known}")]
    Rate {
        /// The rate.
        rate: Rate,
        /// The PHY.
        phy: &'static str,
        /// What it has.
        known: &'static str,
    },
    /// Nothing to compare.
    #[error("--scheme: give one or more of edca, edf, tdma")]
    NoScheme,
    /// Nothing to run.
    #[error("--max-cycles 0: give at least 1")]
    NoCycles,
}

impl Question {
    /// The example of the manual with the default for everything else. The profile is that of the paper's Table V.
    ///
    /// # Panics
    /// Never: the built-in profile is part of this program.
    pub fn example() -> Question {
        Question {
            nodes: 8,
            cycle_ns: 4_000_000,
            payload_octets: 50,
            miss: 1e-4,
            link: per_split(PAPER_PER),
            interference: Interference::default(),
            phy: Phy::A,
            rate: default_rate(&Phy::A),
            host: Profile::built_in("table5").expect("it is built in"),
            seed: 1,
            schemes: Scheme::ALL.to_vec(),
            max_cycles: None,
            quick: false,
        }
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), QuestionError> {
        if self.nodes == 0 || self.nodes > MAX_NODES {
            return Err(QuestionError::Nodes(self.nodes.into()));
        }
        if self.payload_octets == 0 || self.payload_octets > MAX_PAYLOAD_OCTETS {
            return Err(QuestionError::Payload(self.payload_octets.into()));
        }
        if !(self.miss > 0.0 && self.miss < 1.0) {
            return Err(QuestionError::Miss(self.miss));
        }
        if self.cycle_ns > MAX_CYCLE_NS {
            return Err(QuestionError::LongCycle(self.cycle_ns));
        }
        if self.schemes.is_empty() {
            return Err(QuestionError::NoScheme);
        }
        if self.max_cycles == Some(0) {
            return Err(QuestionError::NoCycles);
        }
        let (fits, known) = rates_of(&self.phy);
        if !fits(self.rate) {
            return Err(QuestionError::Rate {
                rate: self.rate,
                phy: phy_letter(&self.phy),
                known,
            });
        }
        let exchange_ns = self.exchange_ns();
        if self.cycle_ns < exchange_ns {
            return Err(QuestionError::ShortCycle {
                cycle_ns: self.cycle_ns,
                exchange_ns,
                payload: self.payload_octets,
                rate: self.rate,
            });
        }
        Ok(())
    }

    /// Octets that are simulated: payloads carry 16 octets that tell them apart.
    pub fn simulated_octets(&self) -> usize {
        (self.payload_octets as usize).max(sim::traffic::HEADER_OCTETS)
    }

    /// Airtime of a data frame with `head` octets before the payload, ns.
    pub fn data_ns(&self, head: usize) -> u64 {
        let octets = (self.simulated_octets() + head + QOS_OVERHEAD_OCTETS) as u32;
        u64::from(ppdu_us(self.rate, octets, self.phy.band)) * 1_000
    }

    /// SIFS and ACK, ns.
    pub fn ack_ns(&self) -> u64 {
        u64::from(self.phy.sifs_us + self.phy.ack_us(self.rate, self.phy.basic)) * 1_000
    }

    /// Data, SIFS, ACK, ns.
    pub fn exchange_ns(&self) -> u64 {
        self.data_ns(0) + self.ack_ns()
    }

    /// Cycles per scheme at most: as given, or as many as make 8 million messages, 400,000 at most.
    pub fn budget(&self) -> u64 {
        let messages = if self.quick { 800_000 } else { 8_000_000 };
        let most = if self.quick { 40_000 } else { 400_000 };
        self.max_cycles
            .unwrap_or_else(|| (messages / (2 * u64::from(self.nodes))).clamp(100, most))
    }

    /// Address of a node: 0 is the controller.
    pub(super) fn address(node: u32) -> MacAddr {
        MacAddr::local(node + 1)
    }
}

/// Splits the loss of an exchange into that of data and ACK as in the paper's measurement.
pub fn per_split(per: f64) -> Link {
    Link::Per {
        data: per * DATA_SHARE_OF_LOSSES,
        ack: per * (1.0 - DATA_SHARE_OF_LOSSES),
    }
}

/// The rate of data frames if nothing else is said: the highest of a and g, 11 Mb/s of b, MCS 7 of n.
pub fn default_rate(phy: &Phy) -> Rate {
    let text = match phy.name {
        "b" => "11M",
        "n2.4" | "n5" => "mcs7/20",
        _ => "54M",
    };
    Rate::parse(text).expect("a rate")
}

fn phy_letter(phy: &Phy) -> &'static str {
    match phy.name {
        "n5" | "n2.4" => "n",
        name => name,
    }
}

type Fits = fn(Rate) -> bool;

fn rates_of(phy: &Phy) -> (Fits, &'static str) {
    match phy.name {
        "b" => (
            |r| matches!(r, Rate::Dsss(..)),
            "1M, 2M, 5.5M, 11M, and 2Ms, 5.5Ms, 11Ms with short preamble",
        ),
        "n5" | "n2.4" => (
            |r| matches!(r, Rate::Ht(..) | Rate::Ofdm(_)),
            "mcs0/20 to mcs31/40s, and 6M to 54M",
        ),
        _ => (
            |r| matches!(r, Rate::Ofdm(_)),
            "6M, 9M, 12M, 18M, 24M, 36M, 48M, 54M",
        ),
    }
}

/// Reads `4ms`, `500us`, `1.5s`, `2000000ns` as ns.
///
/// # Errors
/// One sentence.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a time: write for example 4ms, 500us or 1s");
    let text = text.trim();
    let digits = text
        .find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E')
        .ok_or_else(wrong)?;
    let unit = match &text[digits..] {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        _ => return Err(wrong()),
    };
    let value: f64 = text[..digits].trim().parse().map_err(|_| wrong())?;
    let ns = value * unit;
    if !(1.0..=1e18).contains(&ns) {
        return Err(format!(
            "'{text}' is not a time above zero: write for example 4ms"
        ));
    }
    Ok(ns.round() as u64)
}

/// Reads `a`, `b`, `g`, `n` (5 GHz) or `n2.4`.
///
/// # Errors
/// One sentence.
pub fn parse_phy(text: &str) -> Result<Phy, String> {
    match text {
        "a" => Ok(Phy::A),
        "b" => Ok(Phy::B),
        "g" => Ok(Phy::G),
        "n" | "n5" => Ok(Phy::N5),
        "n2.4" => Ok(Phy::N2_4),
        _ => Err(format!(
            "'{text}' is not a PHY: choose a, b, g, n (5 GHz) or n2.4"
        )),
    }
}

/// Reads a rate as reports write it.
///
/// # Errors
/// One sentence.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).ok_or_else(|| format!("'{text}' is not a rate: write for example 54M, 11M or mcs7/20"))
}

/// Reads `2e-4` (split as in the paper) or `1e-3,1e-4` (data, ACK).
///
/// # Errors
/// One sentence.
pub fn parse_per(text: &str) -> Result<Link, String> {
    let wrong = || {
        format!("'{text}' is not a loss probability: write for example 2e-4, or 1e-3,1e-4 for data and ACK")
    };
    let number = |t: &str| {
        let x = t.trim().parse::<f64>().ok();
        x.filter(|x| (0.0..1.0).contains(x)).ok_or_else(wrong)
    };
    match text.split_once(',') {
        None => Ok(per_split(number(text)?)),
        Some((data, ack)) => Ok(Link::Per {
            data: number(data)?,
            ack: number(ack)?,
        }),
    }
}

/// Reads a ratio in dB, 0 to 60.
///
/// # Errors
/// One sentence.
pub fn parse_snr(text: &str) -> Result<Link, String> {
    let db = text.trim_end_matches("dB").trim().parse::<f64>().ok();
    match db.filter(|x| (0.0..=60.0).contains(x)) {
        Some(db) => Ok(Link::SnrDb(db)),
        None => Err(format!(
            "'{text}' is not a signal-to-noise ratio: write 0 to 60, in dB"
        )),
    }
}

/// Reads `none`, or one or more of `load=20%`, `probes=50/s`, `noise=5%`, separated by commas.
///
/// # Errors
/// One sentence.
pub fn parse_interference(text: &str) -> Result<Interference, String> {
    let mut all = Interference::default();
    if text == "none" {
        return Ok(all);
    }
    for part in text.split(',') {
        let wrong = || {
            format!(
                "'{part}' is not an interference: write none, load=20%, probes=50/s or noise=5%, several with commas"
            )
        };
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let number = |t: &str| {
            t.trim()
                .parse::<f64>()
                .ok()
                .filter(|x| x.is_finite() && *x >= 0.0)
        };
        let percent = || -> Result<f64, String> {
            let share = number(value.trim_end_matches('%')).ok_or_else(wrong)? / 100.0;
            if share > 0.95 {
                return Err(format!("'{part}': at most 95% can be taken by others"));
            }
            Ok(share)
        };
        match name.trim() {
            "load" => all.load = percent()?,
            "noise" => all.noise = percent()?,
            "probes" => {
                let rate = number(value.trim_end_matches("/s")).ok_or_else(wrong)?;
                if rate > 10_000.0 {
                    return Err(format!("'{part}': at most 10000 probe requests per second"));
                }
                all.probes_per_s = rate;
            }
            _ => return Err(wrong()),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times() {
        for (text, ns) in [
            ("4ms", 4_000_000),
            ("500us", 500_000),
            ("1.5s", 1_500_000_000),
            ("7 ns", 7),
            ("1e3us", 1_000_000),
        ] {
            assert_eq!(parse_time(text), Ok(ns));
        }
        for bad in ["", "4", "ms", "-4ms", "0ms", "4 min", "1e30s", "nanms", "infs"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn links_and_interference() {
        let Link::Per { data, ack } = parse_per("2.04e-4").unwrap() else {
            panic!("a PER")
        };
        // Table V: 4.37e-5 and 1.60e-4
        assert!((data - 4.37e-5).abs() < 1e-7 && (ack - 1.60e-4).abs() < 1e-6);
        assert_eq!(parse_per("0.1,0"), Ok(Link::Per { data: 0.1, ack: 0.0 }));
        assert_eq!(parse_snr("20dB"), Ok(Link::SnrDb(20.0)));
        for bad in ["1", "-1", "x", "0.1,2", ""] {
            assert!(parse_per(bad).is_err(), "{bad}");
        }
        assert!(parse_snr("61").is_err() && parse_snr("nan").is_err());
        let i = parse_interference("load=20%,probes=50/s,noise=5%").unwrap();
        assert_eq!((i.load, i.probes_per_s, i.noise), (0.2, 50.0, 0.05));
        assert!(!parse_interference("none").unwrap().is_some());
        for bad in [
            "",
            "load",
            "load=x%",
            "load=99%",
            "probes=1e9/s",
            "rain=3",
            "noise=-1%",
        ] {
            assert!(parse_interference(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn questions_that_make_no_sense() {
        let ask = |change: &dyn Fn(&mut Question)| {
            let mut q = Question::example();
            change(&mut q);
            q.check().map_err(|e| e.to_string())
        };
        assert_eq!(ask(&|_| ()), Ok(()));
        type Change = fn(&mut Question);
        let bad: [(Change, &str); 11] = [
            (|q| q.nodes = 0, "--nodes 0: give 1 to 250 nodes"),
            (|q| q.nodes = 1_000_000_000, "--nodes 1000000000"),
            (|q| q.payload_octets = 0, "--payload 0"),
            (|q| q.payload_octets = 1_501, "1 to 1500 octets"),
            (|q| q.miss = 0.0, "--miss 0"),
            (|q| q.miss = 1.0, "--miss 1"),
            (|q| q.miss = f64::NAN, "--miss NaN"),
            (
                |q| q.cycle_ns = 60_000,
                "--cycle 60.0 us: one message of 50 octets at 54M takes 80.0 us",
            ),
            (|q| q.cycle_ns = MAX_CYCLE_NS + 1, "give at most 10s"),
            (|q| q.rate = Rate::DSSS_1, "--rate 1M: 802.11a has 6M, 9M"),
            (|q| q.schemes.clear(), "--scheme"),
        ];
        for (change, expected) in bad {
            let message = ask(&change).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_text(text in "\\PC{0,12}") {
            let _ = (parse_time(&text), parse_per(&text), parse_snr(&text), parse_interference(&text));
            let _ = (parse_rate(&text), parse_phy(&text));
        }
    }
}
