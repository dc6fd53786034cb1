//! From a scenario and a seed to a world.

use std::rc::Rc;

use frame::{AccessCategory, MacAddr};
use protocols::mac::sender::{Sender, SenderConfig};
use radio::Protocol;
use sim::fault::{HostFaults, Incident};
use sim::medium::OUT_OF_REACH_DB;
use sim::rng::{Cause, Stream, mix3};
use sim::{AdapterConfig, Capture, LossModel, MediumConfig, NodeConfig, NoiseConfig};
use sim::{Pattern, Position, Traffic, World};

use super::file::{self, Group, Placement, Preset};
use super::node::{category, clock, duration, identity, phy, program};
use super::program::{Prober, Program};
use super::units::{Metres, Point};
use super::world::{self, ForeignWhat, Phase, What};
use super::{Scenario, To};

/// Octets of LLC/SNAP, which scenarios count to the MSDU.
pub(super) const LLC_SNAP_OCTETS: u32 = 8;
/// Streams of phases are named apart from those of nodes.
const PHASES: u64 = 1 << 41;

/// Columns of the smallest square that holds `count` nodes.
pub(super) fn square(count: u32) -> u32 {
    let root = count.isqrt();
    if root * root < count { root + 1 } else { root }
}

impl Scenario {
    /// The world of this scenario, before its first event.
    pub fn build(&self, seed: u64) -> World<Program> {
        let mut world = self.place(seed, |_, config, program| (config, program));
        add_traffic(self, seed, &mut world);
        add_foreign_traffic(self, &mut world);
        plan(self, &mut world);
        world
    }

    /// The same world with other protocols, and without the traffic among its own nodes: `seat` is shown each node
    /// with the protocol of the scenario, those of others included.
    pub fn build_with<P: Protocol>(
        &self,
        seed: u64,
        seat: impl FnMut(u32, NodeConfig, Program) -> (NodeConfig, P),
    ) -> World<P> {
        let mut world = self.place(seed, seat);
        add_foreign_traffic(self, &mut world);
        plan(self, &mut world);
        world
    }

    /// The same world in which none of its own nodes has anything to send and nothing happens to them.
    pub(super) fn build_without_messages(&self, seed: u64) -> World<Program> {
        let mut world = self.place(seed, |_, config, program| (config, program));
        add_foreign_traffic(self, &mut world);
        world
    }

    /// Nodes, noise and links.
    fn place<P: Protocol>(
        &self,
        seed: u64,
        mut seat: impl FnMut(u32, NodeConfig, Program) -> (NodeConfig, P),
    ) -> World<P> {
        let mut world = World::new(&medium(self), seed);
        world.reserve(self.nodes() as usize + 2 * self.file.foreign.len());
        for (node, (config, program)) in (0..).zip(all_nodes(self, seed)) {
            let (config, protocol) = seat(node, config, program);
            world.add_node(config, protocol);
        }
        let mhz = self.first_mhz();
        for noise in &self.file.noise {
            world.add_noise(&NoiseConfig {
                position: place(noise.at),
                mhz,
                tx_dbm: noise.tx_dbm.0,
                on_ns: noise.on.get_ref().0,
                off_ns: noise.off.0,
                random: noise.random,
                start_ns: noise.start.0,
            });
        }
        for (from, to, loss) in &self.links {
            world.set_link_loss(*from, *to, loss.clone());
        }
        for (from, to, trace) in &self.traces {
            world.plan_losses(*from, *to, trace);
        }
        world
    }
}

fn medium(s: &Scenario) -> MediumConfig {
    let m = &s.file.medium;
    let mut config = MediumConfig::default();
    if m.preset == Preset::Ns3 {
        config.energy_dbm = -82.0;
    }
    match &m.loss {
        None => {}
        Some(file::Loss::FreeSpace) => config.loss = LossModel::FreeSpace,
        Some(file::Loss::LogDistance {
            at_1m_db,
            exponent,
            shadowing_db,
        }) => {
            config.loss = LossModel::LogDistance {
                at_1m_db: at_1m_db.0,
                exponent: exponent.0,
                shadowing_db: shadowing_db.0,
            };
        }
        Some(file::Loss::FixedPowerDbm(dbm)) => config.loss = LossModel::FixedPower(dbm.0),
        Some(file::Loss::Pairs(_)) => config.loss = LossModel::Matrix(adapter_pairs(s)),
    }
    if let Some(error) = &s.error {
        config.error = error.clone();
    }
    if let Some(capture) = m.capture {
        config.capture = match capture {
            file::Capture::Sinr => Capture::Sinr,
            file::Capture::None => Capture::None,
            file::Capture::FirstWinsDb(db) => Capture::FirstWins(db.0),
            file::Capture::MessageInMessage { by_db, window } => Capture::MessageInMessage {
                by_db: by_db.0,
                window_us: (window.0 / 1_000).min(u32::MAX.into()) as u32,
            },
        };
    }
    let set = |value: Option<super::units::Decibel>, target: &mut f64| {
        if let Some(db) = value {
            *target = db.0;
        }
    };
    set(m.noise_figure_db, &mut config.noise_figure_db);
    set(m.floor_dbm, &mut config.floor_dbm);
    set(m.preamble_dbm, &mut config.preamble_dbm);
    set(m.preamble_sinr_db, &mut config.preamble_sinr_db);
    set(m.energy_dbm, &mut config.energy_dbm);
    config
}

/// The listed losses between all adapters of their nodes; those on different channels do not hear each other anyway.
fn adapter_pairs(s: &Scenario) -> Vec<(u32, u32, f64)> {
    let of = |node: u32| {
        let first = s.first_adapter(node);
        first..first + u32::from(s.adapters(node))
    };
    let pairs = s.pairs.iter();
    let pairs = pairs.flat_map(|(a, b, db)| of(*a).flat_map(move |a| of(*b).map(move |b| (a, b, *db))));
    pairs.collect()
}

/// All nodes in the order of their numbers: those of the groups, then those of others.
pub(super) fn all_nodes(s: &Scenario, seed: u64) -> impl Iterator<Item = (NodeConfig, Program)> + '_ {
    let groups = s.file.group.iter().enumerate().flat_map(move |(g, group)| {
        let host = s.hosts[g].as_deref().map(|model| Rc::new(model.clone()));
        let first = s.groups[g].start;
        (0..group.count.0).map(move |i| {
            let node = first + i;
            let preset = s.file.medium.preset;
            let mut adapters = group.adapters().map(|a| a.config(preset, node));
            let first = adapters.next().expect("a node has a first adapter");
            let mut config = NodeConfig::ideal(position(group, i), first);
            config.adapters.extend(adapters);
            config.host.clone_from(&host);
            config.wait = group.wait.into();
            config.clock = clock(group, seed, node);
            config.faults = HostFaults {
                lost_confirm: group.faults.lost_confirm.map_or(0.0, |p| p.0),
                late_timer: group.faults.late_timer.map_or(0.0, |p| p.0),
                late_timer_ns: group.faults.late_by.0,
            };
            config.interrupts = group.interrupts.as_ref().map(Into::into);
            config.start_ns = group.start.0;
            (config, program(s, g, node, seed))
        })
    });
    let foreign = s.file.foreign.iter().flat_map(|f| match f.what {
        ForeignWhat::Load { .. } => vec![(f, 0), (f, 1)],
        ForeignWhat::Probes { .. } => vec![(f, 0)],
    });
    groups.chain(
        (s.nodes()..)
            .zip(foreign)
            .map(|(node, (f, i))| stranger(s, f, i, node)),
    )
}

fn stranger(s: &Scenario, f: &world::Foreign, i: u32, node: u32) -> (NodeConfig, Program) {
    let group = &s.file.group[0];
    let phy = phy(group.phy);
    let me = MacAddr::local(node);
    let mut adapter = AdapterConfig::station(me, phy, s.first_mhz(), false);
    if let Some(dbm) = f.tx_dbm {
        adapter.tx_dbm = dbm.0;
    }
    let Point([x, y]) = f.at;
    let at = place(Point([Metres(x.0 + f64::from(i)), y]));
    let program = match &f.what {
        ForeignWhat::Load { rate, .. } => {
            let mut config = SenderConfig::new(identity(me, None), rate.get_ref().0);
            config.qos = false;
            Program::Sender(Sender::new(config))
        }
        ForeignWhat::Probes { every, burst, rate } => Program::Prober(Prober::new(
            me,
            duration(*every.get_ref()),
            burst.0,
            rate.get_ref().0,
        )),
    };
    (NodeConfig::ideal(at, adapter), program)
}

pub(super) fn place(Point(at): Point) -> Position {
    Position::new(at[0].0, at[1].0)
}

pub(super) fn position(group: &Group, i: u32) -> Position {
    match &group.placement {
        Placement::At(at) => place(*at),
        Placement::Grid { spacing_m, columns } => {
            let columns = columns.map_or_else(|| square(group.count.0), |c| c.0);
            Position::new(
                f64::from(i % columns) * spacing_m.0,
                f64::from(i / columns) * spacing_m.0,
            )
        }
        Placement::Circle { radius_m } => {
            let angle = std::f64::consts::TAU * f64::from(i) / f64::from(group.count.0);
            Position::new(radius_m.0 * libm::cos(angle), radius_m.0 * libm::sin(angle))
        }
        Placement::Line { spacing_m } => Position::new(f64::from(i) * spacing_m.0, 0.0),
        Placement::Positions(list) => place(list.get_ref()[i as usize]),
    }
}

fn add_traffic(s: &Scenario, seed: u64, world: &mut World<Program>) {
    for (node, traffic) in traffic(s, seed) {
        world.add_traffic(node, traffic);
    }
}

/// The traffic among the nodes of the scenario, each with who sends, in the order of the flows.
pub(super) fn traffic(s: &Scenario, seed: u64) -> Vec<(u32, Traffic)> {
    let mut all = Vec::new();
    for (t, flow) in s.file.traffic.iter().zip(&s.flows) {
        let count = flow.count() as u32;
        for (i, (node, to)) in (0..).zip(flow.pairs()) {
            let to = match to {
                To::Node(to) => MacAddr::local(to),
                To::Broadcast => MacAddr::BROADCAST,
                To::Neighbour { salt, columns } => {
                    MacAddr::local(flow.from.start + neighbour(i, count, columns, mix3(seed, i.into(), salt)))
                }
                To::Each(_) => unreachable!("pairs have one receiver"),
            };
            let phase = |phase: &Phase| match phase {
                Phase::Fixed(at) => at.0,
                Phase::Random(within) => {
                    let flow = all.len() as u64;
                    Stream::new(seed, PHASES | flow, Cause::Traffic).below(within.0.max(1))
                }
                Phase::Mix3 { salt, within, step } => {
                    mix3(seed, u64::from(i), *salt) % (within.get_ref().0 / step.0) * step.0
                }
            };
            let pattern = match &t.pattern {
                world::Pattern::Periodic { period, phase: p } => Pattern::Periodic {
                    period_ns: period.get_ref().0,
                    phase_ns: phase(p),
                },
                world::Pattern::Poisson { mean } => Pattern::Poisson {
                    mean_ns: mean.get_ref().0,
                },
                world::Pattern::Saturated { backlog, phase: p } => Pattern::Saturated {
                    backlog: backlog.0.into(),
                    phase_ns: phase(p),
                },
            };
            let traffic = Traffic {
                to,
                category: category(t.category),
                octets: (t.octets.0 - LLC_SNAP_OCTETS) as usize,
                pattern,
                lifetime_ns: t.lifetime.map(|l| l.0),
                count: t.count,
            };
            all.push((node, traffic));
        }
    }
    all
}

fn add_foreign_traffic<P: Protocol>(s: &Scenario, world: &mut World<P>) {
    let mut node = s.nodes();
    for f in &s.file.foreign {
        let ForeignWhat::Load { octets, mean, .. } = &f.what else {
            node += 1;
            continue;
        };
        world.add_traffic(
            node,
            Traffic {
                to: MacAddr::local(node + 1),
                category: AccessCategory::BestEffort,
                octets: (octets.0 - LLC_SNAP_OCTETS) as usize,
                pattern: Pattern::Poisson {
                    mean_ns: mean.get_ref().0,
                },
                lifetime_ns: None,
                count: None,
            },
        );
        node += 2;
    }
}

/// One of the neighbours of `i` in a grid: west, east, north, south, as far as they exist.
fn neighbour(i: u32, count: u32, columns: u32, hash: u64) -> u32 {
    let mut list = Vec::with_capacity(4);
    if !i.is_multiple_of(columns) {
        list.push(i - 1);
    }
    if i % columns + 1 < columns && i + 1 < count {
        list.push(i + 1);
    }
    if i >= columns {
        list.push(i - columns);
    }
    if i + columns < count {
        list.push(i + columns);
    }
    list[(hash % list.len() as u64) as usize]
}

fn plan<P: Protocol>(s: &Scenario, world: &mut World<P>) {
    for (incident, (nodes, other)) in s.file.incident.iter().zip(&s.incidents) {
        let at = incident.at.get_ref().0;
        for node in nodes.clone() {
            match &incident.what {
                What::AdapterReset => world.plan_incident(at, node, Incident::AdapterReset { adapter: 0 }),
                What::AdapterGone(n) => {
                    world.plan_incident(at, node, Incident::AdapterGone { adapter: n.0 });
                }
                What::ClockJump(by) => world.plan_incident(at, node, Incident::ClockJump { ahead_ns: by.0 }),
                What::TsfJump(to) => {
                    let to_us = to.0 / 1_000;
                    world.plan_incident(at, node, Incident::TsfJump { adapter: 0, to_us });
                }
                // below
                What::MoveTo(_) | What::Walk(_) => {}
                What::PathLoss { db, .. } => {
                    let db = if db.0 >= OUT_OF_REACH_DB {
                        f64::INFINITY
                    } else {
                        db.0
                    };
                    let other = other.expect("a path loss has another node");
                    world.plan_loss(at, node, other, db);
                    world.plan_loss(at, other, node, db);
                }
            }
        }
    }
    for (at, node, to) in super::roam::moves(s) {
        world.plan_move(at, node, to);
    }
}
