//! Files over a chain of nodes: on real kernels, each with a radio and a network namespace of its own in an ad hoc network of
//! Linux's, with a scenario as their air; and on the nodes of the simulator in the same scenario.
//!
//! ```text
//! sdmac atp send -> node 0 -> node 1 -> ... -> node n -> sdmac atp recv      or the kernel's TCP at both ends
//!                   each forwards by static routes, and `sdmac hop` tells its delay
//! ```
//!
//! What belongs here: the network (`place`), what is carried over it (`ends`), and the same numbers of both. What does
//! not: how a guest is started.

mod ends;
mod line;
mod place;
mod table;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

use frame::Rate;
use serde::{Deserialize, Serialize};
use sim::rng::mix3;

use crate::mesh::metrics::unfairness;
use crate::mesh::{Chain, Ended, Kind, Net};
use crate::scenario::Scenario;
use crate::scenario::protocol::Protocol;
use crate::testbed::air::AirError;

pub use line::real;
pub use table::{Row, Side, Spread, TOLERANCE, table};

/// Nodes at most: one of them has a route to each of the others, and there are 32 places for routes.
const MOST_NODES: u32 = 33;
/// A transfer that takes longer, in the time of the chain, has failed.
const MOST_SECONDS: u64 = 600;
/// From one flow to the next.
const STAGGER_NS: u64 = 1_000_000;

/// What carries a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// ATP as its authors set it.
    Default,
    /// Aggressive ATP.
    Aggressive,
    /// Adaptive ATP.
    Adaptive,
    /// Ours.
    Sdmac,
    /// TCP NewReno behind the header of ATP: one program in both worlds, for comparison.
    NewReno,
    /// The kernel's TCP with CUBIC.
    Cubic,
    /// The kernel's TCP with BBR.
    Bbr,
}

impl Transport {
    /// All of them.
    pub const ALL: [Transport; 7] = [
        Transport::Default,
        Transport::Aggressive,
        Transport::Adaptive,
        Transport::Sdmac,
        Transport::NewReno,
        Transport::Cubic,
        Transport::Bbr,
    ];

    /// Its name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Default => "default",
            Transport::Aggressive => "aggressive",
            Transport::Adaptive => "adaptive",
            Transport::Sdmac => "sdmac",
            Transport::NewReno => "newreno",
            Transport::Cubic => "cubic",
            Transport::Bbr => "bbr",
        }
    }

    /// The same in the simulator, which has none of the kernel's.
    pub const fn simulated(self) -> Option<Kind> {
        match self {
            Transport::Default => Some(Kind::Default),
            Transport::Aggressive => Some(Kind::Aggressive),
            Transport::Adaptive => Some(Kind::Adaptive),
            Transport::Sdmac => Some(Kind::Sdmac),
            Transport::NewReno => Some(Kind::NewReno),
            Transport::Cubic | Transport::Bbr => None,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Transport {
    type Err = String;
    fn from_str(text: &str) -> Result<Transport, String> {
        let names = || Transport::ALL.map(Transport::name).join(", ");
        let found = Transport::ALL.into_iter().find(|t| t.name() == text);
        found.ok_or_else(|| format!("'{text}' is no transport: they are {}", names()))
    }
}

/// One run: files from the first to the last node, at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Case {
    /// By what.
    pub transport: Transport,
    /// How many files.
    pub flows: u32,
    /// Octets of each.
    pub octets: u64,
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Of each flow, from its call to its last octet, kb/s of content; 0 if that has not arrived as it was sent.
    pub goodputs_kbps: Vec<f64>,
    /// Packets, or segments of the kernel's TCP, that the senders have sent again.
    pub resent: u64,
    /// What each sender was told, where the transport was ATP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Vec<Feedback>>,
}

/// A feedback at a sender of ATP.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Feedback {
    /// From its call, in s.
    pub seconds: f64,
    /// The delay that it tells, us; 0 if nobody knows it.
    pub delay_us: u32,
    /// Time between two packets from then on, us.
    pub spacing_us: u32,
}

impl Outcome {
    /// Mean of the flows.
    pub fn goodput_kbps(&self) -> f64 {
        self.goodputs_kbps.iter().sum::<f64>() / self.goodputs_kbps.len().max(1) as f64
    }

    /// Standard deviation of the flows over their mean.
    pub fn unfairness(&self) -> f64 {
        unfairness(&self.goodputs_kbps)
    }

    /// Flows whose content arrived as it was sent.
    pub fn whole(&self) -> usize {
        self.goodputs_kbps.iter().filter(|g| **g > 0.0).count()
    }
}

/// What `sdmac hop` said of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Hop {
    /// Packets of ATP that left it.
    pub packets: u64,
    /// Of these, marked with its delay.
    pub marked: u64,
    /// Packets that went by because the program was too slow.
    pub missed: u64,
    /// Reports of the radio that its delay rests on.
    pub samples: u64,
    /// Its delay in the end, us.
    pub delay_us: u32,
}

/// A run on real kernels.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Real {
    /// The numbers.
    pub outcome: Outcome,
    /// Each node, where the transport was ATP.
    pub hops: Vec<Hop>,
    /// Sentences about files that did not arrive.
    pub failures: Vec<String>,
    /// Frames on the air, and of these, frames that overlapped another.
    pub tries: u64,
    /// See there.
    pub overlapping: u64,
    /// Frames of the kernel that were never acknowledged.
    pub not_acked: u64,
    /// Frames that found the queue of an adapter full.
    pub refused: u64,
    /// The longest time by which the kernel was told of something late, us.
    pub latest_us: f64,
}

/// Why a scenario is no chain, or did not become one.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// The scenario.
    #[error("the scenario is no chain for files: {0}")]
    Scenario(&'static str),
    /// The air.
    #[error(transparent)]
    Air(#[from] AirError),
    /// Fewer radios than nodes.
    #[error("the scenario has {nodes} nodes, and this kernel has {radios} radios of mac80211_hwsim")]
    Radios {
        /// What is needed.
        nodes: u32,
        /// What is there.
        radios: usize,
    },
    /// A radio.
    #[error("node {node}: {error}")]
    Radio {
        /// Which.
        node: u32,
        /// Why.
        error: linux::wifi::Error,
    },
    /// Something else of a node.
    #[error("node {node}: cannot {what}: {error}")]
    Node {
        /// Which.
        node: u32,
        /// What was tried.
        what: &'static str,
        /// Why.
        error: io::Error,
    },
    /// Nothing comes through.
    #[error(
        "nothing of node {from} arrives at node {to}: each node has to hear its neighbours in the scenario"
    )]
    Silent {
        /// From where.
        from: u32,
        /// To where.
        to: u32,
    },
    /// A program.
    #[error("{program} at node {node}: {why}")]
    Program {
        /// Which.
        program: &'static str,
        /// Where.
        node: u32,
        /// Its last words.
        why: String,
    },
    /// The user has stopped it.
    #[error("stopped")]
    Stopped,
}

/// How frames are sent in a chain: the rate and the tries of its scenario.
///
/// # Errors
/// [`ChainError::Scenario`] if it is no chain.
pub fn sending(scenario: &Scenario) -> Result<(Rate, u8), ChainError> {
    let file = scenario.file();
    let [group] = &file.group[..] else {
        return Err(ChainError::Scenario(
            "it takes one [[group]], in which each node is a neighbour of the next",
        ));
    };
    let Protocol::Sender(send) = &group.protocol else {
        return Err(ChainError::Scenario(
            "its nodes take protocol.sender, with rate and tries of data",
        ));
    };
    if !(2..=MOST_NODES).contains(&scenario.nodes()) {
        return Err(ChainError::Scenario("it takes 2 to 33 nodes"));
    }
    if scenario.adapters(0) != 1 || !file.foreign.is_empty() {
        return Err(ChainError::Scenario(
            "its nodes have one adapter, and there are no [[foreign]] ones",
        ));
    }
    Ok((send.rate.get_ref().0, send.tries.0))
}

/// One run of the simulator; `None` for a transport that it does not have.
///
/// # Errors
/// [`ChainError::Scenario`] if it is no chain.
pub fn simulated(
    scenario: &Scenario,
    case: &Case,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<Outcome>, ChainError> {
    let (rate, tries) = sending(scenario)?;
    let Some(kind) = case.transport.simulated() else {
        return Ok(None);
    };
    let chain = Chain {
        hops: scenario.nodes() - 1,
        flows: case.flows,
        kind,
        rate,
        tries,
        // places, powers and losses are the scenario's
        tx_dbm: 0.0,
        spacing_m: 0.0,
        loss: 0.0,
        octets: case.octets,
        most_seconds: MOST_SECONDS,
    };
    let net = Net {
        // the hops are Linux, which gives no notices
        gone_after: None,
        ..chain.net()
    };
    let ran = net.run_in(scenario, seed, stop);
    let goodput = |e: &Ended| if e.done { e.goodput_kbps() } else { 0.0 };
    let feedback = |(flow, e): (u64, &Ended)| {
        let called_ns = Chain::START_NS + flow * STAGGER_NS;
        let both = e.sent.feedback_us.iter().zip(&e.sent.spacings_us);
        both.map(|((at, delay_us), (_, spacing_us))| Feedback {
            seconds: at.saturating_sub(called_ns) as f64 / 1e9,
            delay_us: *delay_us,
            spacing_us: *spacing_us,
        })
        .collect()
    };
    let is_atp = kind.atp().is_some();
    Ok(Some(Outcome {
        goodputs_kbps: ran.flows.iter().map(goodput).collect(),
        resent: ran.flows.iter().map(|e| e.resent).sum(),
        feedback: (0..)
            .zip(ran.flows.iter().filter(|_| is_atp))
            .map(feedback)
            .collect(),
    }))
}

/// What a file holds: nothing that can be mistaken for another file of another run.
fn content(seed: u64, flow: u32, octets: u64) -> Vec<u8> {
    let words = (0..octets.div_ceil(8)).flat_map(|at| mix3(seed, flow.into(), at).to_le_bytes());
    words.take(octets as usize).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const CHAIN: &str = "[run]\nduration = \"1s\"\n[[group]]\nname = \"nodes\"\ncount = 3\nplacement.line = { spacing_m = 14 }\n\
        tx_dbm = 10\nbasic_rates = [\"6M\"]\nprotocol.sender = { rate = \"24M\", tries = 12 }\n\
        [[link]]\nfrom = \"nodes\"\nto = \"nodes\"\ndata.fixed = 0.1\n";

    fn scenario(text: &str) -> Scenario {
        Scenario::parse(Path::new("chain.toml"), text, &[]).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn names() {
        for t in Transport::ALL {
            assert_eq!(t.name().parse(), Ok(t));
        }
        assert!("reno".parse::<Transport>().unwrap_err().contains("newreno"));
    }

    #[test]
    fn what_is_no_chain_is_told() {
        assert_eq!(sending(&scenario(CHAIN)).unwrap(), (Rate::OFDM_24, 12));
        let wrong = [
            CHAIN.replace("count = 3\n", "count = 1\n").replace(
                "[[link]]\nfrom = \"nodes\"\nto = \"nodes\"\ndata.fixed = 0.1\n",
                "",
            ),
            CHAIN.replace(
                "protocol.sender = { rate = \"24M\", tries = 12 }",
                "protocol = \"sink\"",
            ),
            CHAIN.to_owned() + "[[group]]\nname = \"b\"\nprotocol = \"sink\"\n",
        ];
        for text in wrong {
            let said = sending(&scenario(&text)).unwrap_err().to_string();
            assert!(said.contains("is no chain"), "{said}");
        }
    }

    /// The losses and the places are those of the scenario: more of the first is slower, and a seed gives its run again.
    #[test]
    fn the_simulator_runs_a_chain_in_its_scenario() {
        let stop = AtomicBool::new(false);
        let case = Case {
            transport: Transport::Adaptive,
            flows: 2,
            octets: 100_000,
        };
        let run = |text: &str, seed| simulated(&scenario(text), &case, seed, &stop).unwrap().unwrap();
        let few = run(CHAIN, 1);
        assert_eq!((few.whole(), &few), (2, &run(CHAIN, 1)));
        let told = |flow: &Vec<Feedback>| !flow.is_empty() && flow.iter().all(|f| f.spacing_us > 0);
        assert!(
            few.feedback.len() == 2 && few.feedback.iter().all(told),
            "{few:?}"
        );
        assert_ne!(few, run(CHAIN, 2));
        let many = run(&CHAIN.replace("data.fixed = 0.1", "data.fixed = 0.6"), 1);
        assert!(many.goodput_kbps() < 0.7 * few.goodput_kbps(), "{many:?} {few:?}");
        let kernels = Case {
            transport: Transport::Bbr,
            ..case
        };
        assert_eq!(simulated(&scenario(CHAIN), &kernels, 1, &stop).unwrap(), None);
    }

    #[test]
    fn files_differ() {
        assert_eq!(content(1, 0, 13).len(), 13);
        assert_ne!(content(1, 0, 64), content(1, 1, 64));
        assert_ne!(content(1, 0, 64), content(2, 0, 64));
    }
}
