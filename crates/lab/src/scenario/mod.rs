//! Scenarios: from a file to a world.
//!
//! [`Scenario::open`] reads a file with the changes of `--set` and either gives a scenario that can be run or one
//! sentence that says what is wrong, where, and what is allowed. [`Scenario::build`] makes the world for a seed.

mod ad_hoc;
mod adapter;
mod admission;
mod attempt;
mod beacons;
pub mod build;
mod cells;
mod check;
mod describe;
pub mod file;
mod files;
mod flows;
mod interrupts;
mod join;
mod names;
mod node;
pub(crate) mod overlay;
mod polled;
pub mod program;
pub mod protocol;
mod release;
mod roam;
mod schedule;
mod source;
pub(crate) mod sync_error;
pub mod units;
mod walking;
pub mod world;

pub use admission::Admission;
pub use describe::{Description, Parameter};
pub use program::Program;
pub(crate) use schedule::Plan;
pub use schedule::Timekeepers;
pub use source::{Change, MAX_CHANGES, MAX_OCTETS, ScenarioError};

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use frame::rate::Width;
use frame::{MacAddr, Rate};
use protocols::mac::ibss::PowerProfile;
use sim::host::HostModel;
use sim::medium::PathLossTrace;
use sim::{ErrorModel, LinkLoss, Pattern};
use toml::Spanned;

use crate::record::{Limits, NodeAbout};
use flows::{FlowPlan, To};
use source::Source;
use units::RateText;

/// Nodes at most, those of others included.
pub const MAX_NODES: u32 = 10_000;
/// Flows at most.
pub const MAX_FLOWS: usize = 100_000;

/// A scenario in which everything fits together.
#[derive(Clone, Debug)]
pub struct Scenario {
    file: file::File,
    /// Numbers of the nodes of each group.
    groups: Vec<Range<u32>>,
    /// For each group the model of its host.
    hosts: Vec<Option<Arc<HostModel>>>,
    error: Option<ErrorModel>,
    /// Losses in dB of ordered pairs, if the medium lists them.
    pairs: Vec<(u32, u32, f64)>,
    flows: Vec<FlowPlan>,
    links: Vec<(u32, u32, LinkLoss)>,
    /// Losses of paths over time.
    traces: Vec<(u32, u32, Arc<PathLossTrace>)>,
    /// Each entry of `[[schedule]]`.
    schedules: Vec<schedule::Planned>,
    /// What can be said before a run, of schedules and groups.
    admission: Vec<Admission>,
    /// For each group the node that its protocol talks to, and its access point.
    peers: Vec<(Option<u32>, Option<u32>)>,
    /// For each group the channels on which its nodes roam, MHz.
    channels: Vec<Vec<u16>>,
    /// For each incident the nodes it happens to, and the other node of a link.
    incidents: Vec<(Range<u32>, Option<u32>)>,
}

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// The first thing that is wrong with it, and where.
    pub fn open(path: &Path, changes: &[Change]) -> Result<Scenario, ScenarioError> {
        check::scenario(&Source::open(path, changes)?)
    }

    /// Reads a scenario from a text; `path` names it in errors and is where its files are.
    ///
    /// # Errors
    /// As [`Scenario::open`].
    pub fn parse(path: &Path, text: &str, changes: &[Change]) -> Result<Scenario, ScenarioError> {
        check::scenario(&Source::new(path, text.to_owned(), changes)?)
    }

    /// The same nodes without what is a model of Linux and of this computer: hosts take no time and have no faults, clocks are exact, and what an
    /// adapter has nobody takes back, as in Linux's stack, and nobody tells how strong an ACK was. What runs over a real stack has
    /// the real thing in their place.
    #[must_use]
    pub fn without_hosts(mut self) -> Scenario {
        self.hosts.fill(None);
        for group in &mut self.file.group {
            (group.clock, group.faults, group.interrupts) = Default::default();
            (group.takes_back, group.ack_signal) = (Some(false), Some(false));
        }
        self
    }

    /// The file it comes from.
    pub fn file(&self) -> &file::File {
        &self.file
    }

    /// Simulated time, ns.
    pub fn duration_ns(&self) -> u64 {
        self.file.run.duration.get_ref().0
    }

    /// Results count from here on, ns.
    pub fn warm_up_ns(&self) -> u64 {
        self.file.run.warm_up.0
    }

    /// The seed of the file.
    pub fn seed(&self) -> u64 {
        self.file.run.seed.0
    }

    /// Number of nodes, without those of others.
    pub fn nodes(&self) -> u32 {
        self.groups.last().map_or(0, |g| g.end)
    }

    /// Number of flows, without those of others.
    pub fn flows(&self) -> usize {
        self.flows.iter().map(FlowPlan::count).sum()
    }

    /// For each entry of `[[traffic]]`, one more than the number of its last flow.
    pub fn flow_ends(&self) -> Vec<u32> {
        let mut end = 0;
        let ends = self.flows.iter().map(|f| {
            end += f.count() as u32;
            end
        });
        ends.collect()
    }

    /// Which node each flow comes from, in the order of their numbers.
    pub fn flow_sources(&self, seed: u64) -> Vec<u32> {
        build::traffic(self, seed)
            .into_iter()
            .map(|(from, _)| from)
            .collect()
    }

    /// The group of a node whose confirms are measured: not those of strangers, and not those of access points,
    /// among which are beacons.
    pub fn confirming_group(&self, node: u32) -> Option<usize> {
        let of = self.group_of(node)?;
        (!matches!(self.file.group[of].protocol, protocol::Protocol::Beaconer(_))).then_some(of)
    }

    /// What the radio of a station of an ad hoc network draws.
    pub fn power(&self, node: u32) -> Option<PowerProfile> {
        match &self.file.group[self.group_of(node)?].protocol {
            protocol::Protocol::Ibss(p) => Some(p.power()),
            _ => None,
        }
    }

    /// Whether a node asks for no ACKs.
    pub fn is_silent(&self, node: u32) -> bool {
        let group = self.group_of(node).map(|g| &self.file.group[g]);
        group.is_some_and(|g| self.file.sending(g).is_some_and(|s| !s.ack))
    }

    /// Nodes of each group.
    pub fn group_nodes(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.groups.iter().cloned()
    }

    /// Number of adapters of a node.
    pub fn adapters(&self, node: u32) -> u8 {
        let group = self.group_of(node).map(|g| &self.file.group[g]);
        group.map_or(1, |g| g.adapter_count() as u8)
    }

    /// Number of adapters of all nodes together: the radios that they need in a kernel.
    pub fn radios(&self) -> u32 {
        self.first_adapter(self.nodes())
    }

    /// How wide a channel is: 40 MHz if somebody there sends at a rate that takes it.
    pub fn width(&self, mhz: u16) -> Width {
        let wide = |rate: &Spanned<RateText>| matches!(rate.get_ref().0, Rate::Ht(_, Width::Mhz40, _));
        let is_wide = self.file.group.iter().any(|group| {
            let send = self.file.sending(group);
            let here =
                send.filter(|send| group.sending_adapter(send).mhz() == mhz || group.redundancy.is_some());
            here.is_some_and(|send| {
                [Some(&send.rate), send.broadcast_rate.as_ref()]
                    .into_iter()
                    .flatten()
                    .any(wide)
            })
        });
        if is_wide { Width::Mhz40 } else { Width::Mhz20 }
    }

    /// Number in the world of the first adapter of a node.
    fn first_adapter(&self, node: u32) -> u32 {
        (0..node).map(|n| u32::from(self.adapters(n))).sum()
    }

    /// Centre frequency of the first group, on which strangers and noise are.
    pub fn first_mhz(&self) -> u16 {
        let mut adapters = self.file.group[0].adapters();
        adapters.next().expect("a node has a first adapter").mhz()
    }

    fn group_of(&self, node: u32) -> Option<usize> {
        names::group_of(&self.groups, node)
    }

    /// Whether the flow of this number is for all.
    pub fn flow_is_broadcast(&self, flow: usize) -> bool {
        let mut before = 0;
        let of = self.flows.iter().find(|f| {
            before += f.count();
            flow < before
        });
        of.is_some_and(|f| f.to == To::Broadcast)
    }

    /// Whether all payloads of `[[traffic]]` are long enough to tell their flow.
    pub fn flows_are_told(&self) -> bool {
        let all = &self.file().traffic;
        let least = sim::traffic::HEADER_OCTETS as u32 + build::LLC_SNAP_OCTETS;
        all.iter().all(|t| t.octets.0 >= least)
    }

    /// Whether some node sends frames that ask for no ACK.
    pub fn sends_without_ack(&self) -> bool {
        let silent = |g: &file::Group| {
            // frames in the slots of a cell are for all its hosts
            let to_all = matches!(
                g.protocol,
                protocol::Protocol::Beaconer(_) | protocol::Protocol::Tbmac(_) | protocol::Protocol::Ibss(_)
            );
            to_all || self.file.sending(g).is_some_and(|s| !s.ack)
        };
        let slots = self.file.schedule.iter().any(|s| s.beacon.is_some());
        slots || self.flows.iter().any(|f| f.to == To::Broadcast) || self.file.group.iter().any(silent)
    }

    /// How much a recorder keeps.
    pub fn limits(&self) -> Limits {
        let o = &self.file.output;
        Limits {
            air_ns: o.air.0,
            air_mib: o.air_mib.0,
            timeline_ns: o.timeline.0,
            ..Limits::default()
        }
    }

    /// Name of a node: that of its group, with its number there if it is not alone.
    pub fn node_name(&self, node: u32) -> String {
        let name = names::of_node(&self.file, &self.groups, node);
        name.unwrap_or_else(|| format!("foreign.{}", node - self.nodes()))
    }

    /// One node of the scenario, by its name, as it is for this seed: for a host that is not the simulator's.
    pub fn station(&self, name: &str, seed: u64) -> Option<Station> {
        let node = (0..self.nodes()).find(|node| self.node_name(*node) == name)?;
        let (config, mut program) = build::all_nodes(self, seed).nth(node as usize)?;
        let group = &self.file.group[self.group_of(node)?];
        if let protocol::Protocol::Ibss(p) = &group.protocol
            && let Some(slot) = ad_hoc::slot_on_radios(p, &node::phy(group.sending_adapter(&p.send).phy))
        {
            program.set_beacon_slot(slot);
        }
        let keeps_time = match group.protocol {
            protocol::Protocol::Beaconer(_) | protocol::Protocol::Ibss(_) => true,
            protocol::Protocol::Tdma(_) => group.ap.is_none(),
            _ => false,
        };
        let traffic = build::traffic(self, seed);
        let comes_here =
            |from: u32, to: MacAddr| to == MacAddr::local(node) || to.is_group() || self.roams_to(from, node);
        let room = |(from, t): &(u32, sim::Traffic)| match comes_here(*from, t.to) {
            true => most(t, self.duration_ns()),
            false => 0,
        };
        let room = traffic.iter().map(room).collect();
        let own = (0..).zip(traffic).filter(|(_, (from, _))| *from == node);
        Some(Station {
            config,
            program,
            sends_beacons: self.schedules.iter().any(|s| s.master == Some(node)),
            watches_by_adapter: self
                .file
                .schedule_of(group)
                .is_some_and(|s| s.watch && s.seen_within.is_none()),
            rate: self.file.sending(group).map(|send| send.rate.get_ref().0),
            keeps_time,
            flows: own.map(|(flow, (_, traffic))| (flow, traffic)).collect(),
            room,
        })
    }

    /// Whether `node` is an access point that `from` roams to: what goes to any of them may arrive at each.
    fn roams_to(&self, from: u32, node: u32) -> bool {
        let group = self.group_of(from).map(|g| &self.file.group[g]);
        let list = group
            .and_then(|g| g.roam.as_ref())
            .map(|roam| roam.access_points.get_ref());
        let names = names::all_of_node(&self.file, &self.groups, node);
        list.is_some_and(|list| list.iter().any(|ap| names.contains(ap.get_ref())))
    }

    /// What a recorder must know of the nodes, for the clocks of a seed.
    pub fn about(&self, seed: u64) -> Vec<NodeAbout> {
        let config = build::all_nodes(self, seed);
        let mut about = Vec::new();
        for (n, (node, _)) in config.enumerate() {
            about.push(NodeAbout {
                name: self.node_name(n as u32),
                addresses: node.adapters.iter().map(|a| a.address).collect(),
                clock: node.clock,
            });
        }
        about
    }
}

/// One node: what it is, what runs on it, and what it sends.
pub struct Station {
    /// Its adapters, and how it waits.
    pub config: sim::NodeConfig,
    /// Its protocol.
    pub program: Program,
    /// Rate of its frames to single stations, unless it chooses by itself; `None`: it sends none.
    pub rate: Option<Rate>,
    /// It sends the beacons of its schedule.
    pub sends_beacons: bool,
    /// It is to hold what it hears against its schedule, by the adapter's time alone.
    pub watches_by_adapter: bool,
    /// Others follow its clock, so that its beacons need a timestamp.
    pub keeps_time: bool,
    /// Its traffic, with the numbers of the flows.
    pub flows: Vec<(u32, sim::Traffic)>,
    /// For each flow of the scenario how many MSDUs of it may come here: 0 for those to others.
    pub room: Vec<u32>,
}

/// The most MSDUs that a flow submits within a time, or that are kept of it.
fn most(traffic: &sim::Traffic, duration_ns: u64) -> u32 {
    /// 2 MiB of bits.
    const MOST: u64 = 1 << 24;
    /// No frame is on the air for less.
    const SHORTEST_NS: u64 = 10_000;
    let submitted = match traffic.pattern {
        Pattern::Periodic { period_ns, .. } => duration_ns / period_ns.max(1) + 1,
        // Twelve standard deviations more than the mean, and some where the mean is small.
        Pattern::Poisson { mean_ns } => {
            let mean = duration_ns / mean_ns.max(1);
            mean + 12 * mean.isqrt() + 64
        }
        Pattern::Saturated { .. } => duration_ns / SHORTEST_NS + 1,
    };
    let asked = traffic.count.map_or(MOST, u64::from);
    submitted.min(asked).min(MOST) as u32
}

/// The JSON Schema of scenario files.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(file::File).to_value()
}

#[cfg(test)]
mod tests;
