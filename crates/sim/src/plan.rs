//! What is planned from outside: incidents, noise bursts, changes of links and places.

use crate::core::{Core, Decoding, Ev, NONE, Signal};
use crate::fault::Incident;
use crate::medium::Position;
use crate::rng::Stream;
use crate::trace::OnAir;
use frame::Rate;
use std::rc::Rc;

/// Something that happens at a time, perhaps again and again.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    /// A fault of a node.
    Incident { node: u32, incident: Incident },
    /// A source of energy that is no frame: on for `on_ns`, then off for a time with mean `off_ns` (exactly that long
    /// unless `random`).
    Noise {
        adapter: u32,
        on_ns: u64,
        off_ns: u64,
        random: bool,
        stream: Stream,
    },
    /// The loss of a link changes.
    Loss { from: u32, to: u32, db: f64 },
    /// A node moves.
    Move { node: u32, position: Position },
}

impl Core {
    /// Does what was planned. If a node's clock has jumped, it is that node whose deadline must be armed anew.
    pub(crate) fn plan(&mut self, index: u32) -> Option<u32> {
        let now = self.now;
        match &mut self.plans[index as usize] {
            Plan::Noise {
                adapter,
                on_ns,
                off_ns,
                random,
                stream,
            } => {
                let pause = if *random {
                    stream.exponential(*off_ns as f64) as u64
                } else {
                    *off_ns
                };
                let (adapter, end) = (*adapter, now + *on_ns);
                self.at(end + pause.max(1), Ev::Plan(index));
                let links = Rc::clone(&self.no_links);
                self.emit(Signal {
                    what: OnAir::Noise,
                    tx: adapter,
                    frame: NONE,
                    rate: Rate::OFDM_6,
                    channel: 0,
                    start: now,
                    end,
                    ra: 0,
                    duration_us: 0,
                    octets: 0,
                    retry: false,
                    solicits: false,
                    awaits: false,
                    tsf_us: 0,
                    decoding: Decoding::default(),
                    links,
                });
            }
            Plan::Incident { node, incident } => {
                let (node, incident) = (*node, *incident);
                self.incident(node, incident);
                return matches!(incident, Incident::ClockJump { .. }).then_some(node);
            }
            Plan::Loss { from, to, db } => {
                let (from, to, db) = (*from, *to, *db);
                self.links.set_loss_db(from, to, db);
            }
            Plan::Move { node, position } => {
                let (node, position) = (*node, *position);
                let (first, count) = self.nodes[node as usize].adapters;
                for a in first..first + u32::from(count) {
                    self.antennas[a as usize].position = position;
                }
                self.links.touch();
            }
        }
        None
    }

    fn incident(&mut self, node: u32, incident: Incident) {
        let (now, (first, count)) = (self.now, self.nodes[node as usize].adapters);
        let adapter = |n: u8| (n < count).then_some(first as usize + usize::from(n));
        match incident {
            Incident::AdapterReset { adapter: n } => {
                if let Some(a) = adapter(n) {
                    self.reset(a);
                }
            }
            Incident::AdapterGone { adapter: n } => {
                if let Some(a) = adapter(n) {
                    self.reset(a);
                    self.switch_reception(a, false);
                    let a = &mut self.adapters[a];
                    (a.gone, a.ack_generation) = (true, false);
                }
            }
            Incident::ClockJump { ahead_ns } => {
                let clock = &mut self.nodes[node as usize].clock;
                clock.offset_ns = clock.offset_ns.saturating_add(ahead_ns);
            }
            Incident::TsfJump { adapter: n, to_us } => {
                if let Some(a) = adapter(n) {
                    self.adapters[a].set_tsf(now, to_us);
                }
            }
        }
    }
}
