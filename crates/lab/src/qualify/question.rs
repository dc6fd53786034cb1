//! The question: what the user asks, checked. `parse` reads its parts from text.

mod parse;
mod rates;
mod scheme;

use frame::{MacAddr, ppdu_us};
pub use frame::{Phy, Rate};
pub use parse::{parse_interference, parse_offsets, parse_per, parse_phy, parse_rate, parse_snr, parse_time};
use protocols::mac::data::QOS_OVERHEAD_OCTETS;
use protocols::mac::tdma::join::MAX_MEMBERS;
pub use rates::default_rate;
use rates::{phy_letter, rates_of};
pub use scheme::{Copies, Roams, Rule, Scheme, Turn};
use sim::host::Profile;
use sim::rng::{Cause, Stream};

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

/// When in the cycle the messages of a node are released: both its own and the controller's to it. The deadline of a
/// message is one cycle after its release.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Offsets {
    /// All nodes at the start of the cycle: the critical instant (Liu and Layland 1973), the hardest case for EDCA.
    #[default]
    None,
    /// Node i of N at (i - 1) / N of the cycle.
    Even,
    /// Each node at an instant of its own, drawn once from the seed and kept: one plant whose nodes were switched on
    /// at any time.
    Random,
}

impl Offsets {
    /// What is assumed, as the end of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Offsets::None => "all nodes release at once",
            Offsets::Even => "releases spread evenly over the cycle",
            Offsets::Random => "each node releases at a random instant of the cycle, the same in all cycles",
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
    /// When in the cycle messages are released.
    pub offsets: Offsets,
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
    /// Probability with which the guard of a slot covers the release of a frame, and the clocks at either end: 0.5 to 0.99999.
    pub guard_probability: f64,
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
    /// Too many for a cell.
    #[error("--scheme tbmac: the controller and {0} nodes share 16 slots: give --nodes 15 or fewer")]
    Cell(u32),
    /// Too many for a list of members.
    #[error("--scheme tdma+join: the list in a beacon has room for {MAX_MEMBERS} nodes, these are {0}")]
    Members(u32),
    /// Too many to be watched all the way.
    #[error("--scheme roam: {messages} messages in one walk of {}, more than {}: give a longer cycle or fewer nodes", super::text::time(super::roaming::WALK_NS as f64), super::roaming::MAX_MESSAGES)]
    Walk {
        /// Messages of all nodes in one walk.
        messages: u64,
    },
    /// Not a probability, or one that nobody can compute.
    #[error(
        "--guard-probability {0}: give 0.5 to 0.99999, the share of frames that the guard of a slot is to cover"
    )]
    Guard(f64),
    /// Nothing to compare.
    #[error("--scheme: give one or more, edca for example")]
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
            offsets: Offsets::None,
            payload_octets: 50,
            miss: 1e-4,
            link: per_split(PAPER_PER),
            interference: Interference::default(),
            phy: Phy::A,
            rate: default_rate(&Phy::A),
            host: Profile::built_in("table5").expect("it is built in"),
            seed: 1,
            guard_probability: crate::guard::USUAL,
            schemes: Scheme::USUAL.to_vec(),
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
        if !crate::guard::PROBABILITIES.contains(&self.guard_probability) {
            return Err(QuestionError::Guard(self.guard_probability));
        }
        if self.cycle_ns > MAX_CYCLE_NS {
            return Err(QuestionError::LongCycle(self.cycle_ns));
        }
        if self.schemes.is_empty() {
            return Err(QuestionError::NoScheme);
        }
        if self.nodes > 15 && self.schemes.iter().any(|s| s.turn == Turn::Tbmac) {
            return Err(QuestionError::Cell(self.nodes));
        }
        if self.nodes > MAX_MEMBERS as u32 && self.schemes.iter().any(|s| s.joins) {
            return Err(QuestionError::Members(self.nodes));
        }
        let messages = super::roaming::messages(self.nodes, self.cycle_ns);
        if messages > super::roaming::MAX_MESSAGES && self.schemes.iter().any(|s| s.walks()) {
            return Err(QuestionError::Walk { messages });
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

    /// Release of the messages of `node` after the start of a cycle of `cycle_ns`, ns; less than the cycle.
    pub(super) fn offset_ns(&self, node: u32, cycle_ns: u64) -> u64 {
        match self.offsets {
            Offsets::None => 0,
            Offsets::Even => cycle_ns * u64::from(node.saturating_sub(1)) / u64::from(self.nodes),
            Offsets::Random => {
                // a share of the cycle, so that the search for a shorter one keeps the pattern
                const PARTS: u64 = 1 << 20;
                let share = Stream::new(self.seed, u64::from(node), Cause::Traffic).below(PARTS);
                cycle_ns * share / PARTS
            }
        }
    }

    /// Cycles per scheme at most: as given, or as many as make 8 million messages, 400,000 at most.
    pub fn budget(&self) -> u64 {
        let messages = if self.quick { 800_000 } else { 8_000_000 };
        let most = if self.quick { 40_000 } else { 400_000 };
        self.max_cycles
            .unwrap_or_else(|| (messages / (2 * u64::from(self.nodes))).clamp(100, most))
    }

    /// Address of a node: 0 is the controller, and the one behind the last its second access point where nodes roam.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_lie_in_the_cycle() {
        let of = |offsets, seed| {
            let q = Question {
                offsets,
                seed,
                ..Question::example()
            };
            (1..=q.nodes)
                .map(|n| q.offset_ns(n, 4_000_000))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(Offsets::None, 1), [0; 8]);
        let even: Vec<_> = (0..8).map(|i| i * 500_000).collect();
        assert_eq!(of(Offsets::Even, 1), even);
        let random = of(Offsets::Random, 1);
        assert!(random.iter().all(|ns| *ns < 4_000_000) && random.iter().any(|ns| *ns > 1_000_000));
        assert_ne!(random, of(Offsets::Random, 2), "they follow from the seed");
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
        let bad: [(Change, &str); 14] = [
            (|q| q.nodes = 0, "--nodes 0: give 1 to 250 nodes"),
            (|q| q.nodes = 1_000_000_000, "--nodes 1000000000"),
            (|q| q.payload_octets = 0, "--payload 0"),
            (|q| q.payload_octets = 1_501, "1 to 1500 octets"),
            (|q| q.miss = 0.0, "--miss 0"),
            (|q| q.miss = 1.0, "--miss 1"),
            (|q| q.miss = f64::NAN, "--miss NaN"),
            (|q| q.guard_probability = 0.4, "--guard-probability 0.4: give 0.5"),
            (|q| q.guard_probability = 1.0, "--guard-probability 1: give 0.5"),
            (
                |q| q.cycle_ns = 60_000,
                "--cycle 60.0 us: one message of 50 octets at 54M takes 80.0 us",
            ),
            (|q| q.cycle_ns = MAX_CYCLE_NS + 1, "give at most 10s"),
            (|q| q.rate = Rate::DSSS_1, "--rate 1M: 802.11a has 6M, 9M"),
            (|q| q.schemes.clear(), "--scheme"),
            (
                |q| {
                    q.nodes = 250;
                    q.schemes = vec![Scheme::parse("roam").unwrap()];
                },
                "5625000 messages in one walk of 45.0 s",
            ),
        ];
        for (change, expected) in bad {
            let message = ask(&change).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
