//! One body of tests of the contract, written once and run on every host.
//!
//! ```text
//! body(subject)  ->  cases: laws, outcomes, requests, attributes
//!                       |  two scripts, for two nodes in reach of each other
//!                    Subject: the simulator, the 802.11 stack of Linux, whatever comes next
//! ```
//!
//! A case asks for nothing that the contract does not promise. What a host cannot produce it says itself: either in its
//! [`Capabilities`](radio::Capabilities), or by [`Subject::cannot`]. That is part of the [`Report`], next to what
//! holds; nothing is left out without a word.

mod attributes;
mod laws;
mod linux;
mod outcomes;
mod packets;
mod script;
mod simulator;
mod stick;
mod table;
mod usb;

use std::fmt;

use frame::{MacAddr, Rate};
use radio::{Checked, Duration, TxHow};

pub use linux::{Air, LinuxWifi};
pub use script::{Act, Log, Script};
pub use simulator::Simulator;
pub use stick::Ar9170;
pub use usb::UsbSticks;

/// What a host may be unable to produce. Everything else it owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Point {
    /// A frame with an ACK.
    Acked,
    /// A frame without one.
    NotAcked,
    /// A request that is not taken.
    Refused,
    /// A request that is taken back.
    Aborted,
    /// A request whose time is over.
    Expired,
    /// A request of which the host loses track.
    Unknown,
    /// As many tries as were asked for, where no ACK comes.
    AllTries,
    /// A beacon of one node, told as such to the other.
    Beacon,
    /// A frame with the header that was asked for, at any rate.
    Header,
    /// A frame for which nobody is asked for an ACK.
    NoAck,
}

/// Nobody has this address.
const ABSENT: MacAddr = MacAddr::local(0x00ab_5e47);

/// Under what conditions two nodes meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scene {
    /// The host learns of no status in time.
    pub loses_statuses: bool,
    /// Requests that may be open at once; `None`: what the host has by itself.
    pub outstanding: Option<u16>,
}

/// A script under the law checker, with a twin.
pub type Node = Checked<Script>;

/// A host under test.
pub trait Subject {
    /// Its name.
    fn name(&self) -> String;

    /// Why it cannot produce something; `None` if it can.
    fn cannot(&self, point: Point) -> Option<&'static str>;

    /// Addresses of the two nodes.
    fn addresses(&self) -> [MacAddr; 2];

    /// How a frame is sent where that does not matter: one shot, unless the host has none.
    fn how(&self) -> TxHow {
        TxHow::one_shot(Rate::OFDM_6)
    }

    /// An address to which nobody answers.
    fn absent(&self) -> MacAddr {
        ABSENT
    }

    /// Runs two nodes for `time` from their start, then lets end what is open.
    ///
    /// # Errors
    /// In one sentence, if the host does not come up.
    fn run(&mut self, scene: Scene, nodes: [Node; 2], time: Duration) -> Result<[Node; 2], String>;
}

/// What became of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It is as the contract has it; with what the host said it cannot do on the way, if anything.
    Holds(Vec<String>),
    /// It is not.
    Fails(String),
    /// The host says that it cannot produce this.
    Declared(&'static str),
}

/// All cases on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Which host.
    pub host: String,
    /// Case by case.
    pub findings: Vec<(&'static str, Finding)>,
}

impl Report {
    /// Cases that failed, each with its sentence.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.findings.iter().filter_map(|(name, finding)| match finding {
            Finding::Fails(why) => Some((*name, why.as_str())),
            _ => None,
        })
    }

    /// Cases that the host said it cannot produce.
    pub fn declared(&self) -> impl Iterator<Item = &'static str> {
        let declared = |(name, finding): &(&'static str, Finding)| {
            matches!(finding, Finding::Declared(_)).then_some(*name)
        };
        self.findings.iter().filter_map(declared)
    }

    /// Where the table of attributes in `page` (Markdown) has in the column `host` something else than what was seen: the
    /// attribute, what was seen, and what is written. Empty if it tells the truth.
    pub fn differences(&self, page: &str, host: &str) -> Vec<(String, &'static str, String)> {
        let written = table::documented(page, host);
        let seen = table::seen(self).into_iter();
        let with = seen.map(|(name, cell)| {
            let text = written.get(&name).map_or("", |text| *text).to_owned();
            (name, cell, text)
        });
        with.filter(|(_, cell, text)| cell != text).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.host)?;
        for (name, finding) in &self.findings {
            match finding {
                Finding::Holds(notes) if notes.is_empty() => writeln!(f, "  holds     {name}")?,
                Finding::Holds(notes) => writeln!(f, "  holds     {name}; cannot: {}", notes.join(", "))?,
                Finding::Fails(why) => writeln!(f, "  FAILS     {name}: {why}")?,
                Finding::Declared(why) => writeln!(f, "  declared  {name}: {why}")?,
            }
        }
        Ok(())
    }
}

/// Runs every case on a host.
pub fn body(subject: &mut dyn Subject) -> Report {
    let all = laws::ALL
        .iter()
        .chain(outcomes::ALL)
        .chain(attributes::ALL)
        .chain(packets::ALL);
    let findings = all.map(|case| {
        let cannot = case.needs.iter().find_map(|point| subject.cannot(*point));
        let finding = match cannot {
            Some(why) => Finding::Declared(why),
            None => match (case.run)(subject) {
                Ok(notes) => Finding::Holds(notes),
                Err(why) => Finding::Fails(why),
            },
        };
        (case.name, finding)
    });
    Report {
        findings: findings.collect(),
        host: subject.name(),
    }
}

/// One case. What the host says it cannot do on the way is given back.
struct Case {
    name: &'static str,
    needs: &'static [Point],
    run: fn(&mut dyn Subject) -> Result<Vec<String>, String>,
}

/// Runs two scripts under the law checker; an error names the law that was broken, and by whom.
fn meet(subject: &mut dyn Subject, scene: Scene, scripts: [Script; 2]) -> Result<[Log; 2], String> {
    const TIME: Duration = Duration::from_ms(300);
    let nodes = scripts.map(|script| Node::new(script.clone()).with_twin(script));
    let mut nodes = subject.run(scene, nodes, TIME)?;
    for node in &mut nodes {
        node.finish();
        if let Some(violation) = node.violation() {
            return Err(violation.to_string());
        }
    }
    let logs = nodes.map(|node| node.into_inner().into_log());
    match logs.iter().all(|log| log.started) {
        true => Ok(logs),
        false => Err("a node was never started".into()),
    }
}

/// One script, beside a node that does nothing.
fn alone(subject: &mut dyn Subject, plan: Vec<(Duration, Act)>) -> Result<Log, String> {
    let [log, _] = meet(subject, Scene::default(), [Script::new(plan), Script::default()])?;
    Ok(log)
}

/// An error unless this holds.
fn ensure(holds: bool, otherwise: impl Into<String>) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

#[cfg(test)]
mod tests;
