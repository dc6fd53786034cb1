//! What every overlay keeps in random worlds.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use lab::scenario::Program;
use lab::scenario::program::Celled;
use protocols::mac::redundancy::RedundancyCounters;
use protocols::mac::tbmac::cell::Cell;
use protocols::mac::tbmac::member::Member;
use radio::{Checked, Confirm, Msdu, Token};
use sim::World;
use sim::trace::{Observer, Transmission};
use sim::traffic::parse_header;

use crate::meetings::{Air, may_meet};
use crate::own::Own;
use crate::progress::Progress;

/// What was seen of one world.
pub struct Seen {
    /// What only some overlays have to keep.
    pub own: Own,
    /// What those have to keep that decide attempt by attempt.
    pub progress: Option<Progress>,
    /// The first time that they did not.
    pub wrong: Option<String>,
    /// Lifetime of the messages of a flow, ns.
    pub lifetimes: HashMap<u32, u64>,
    /// Flow, number and receiver of what was handed up.
    up: HashSet<(u32, u32, u32)>,
    /// Messages that a receiver got twice.
    pub twice: u64,
    /// How long after its end of life the latest message was handed up, ns.
    pub stale_ns: u64,
    /// The hub and the leaves.
    pub nodes: Vec<u32>,
    /// Their frames.
    pub air: Air,
    /// When a node may be in slots of others, ns.
    pub astray: Vec<Range<u64>>,
    /// Frames that met while nobody was astray, but for requests for slots, and what goes in shared slots.
    pub overlaps: u64,
    /// The most rounds in a row in which two hosts of TBMAC that hear each other owned one slot, not both on probation.
    pub shared: u64,
    /// Of such hosts the last round in which they did, and the rounds in a row until then.
    sharing: HashMap<[u32; 2], (u64, u64)>,
    /// The last round in which a host owned a slot that hears the others badly, and may own what is theirs, by cell and slot.
    strange: HashMap<(Cell, u8), u64>,
}

/// Rounds for which what such a host did to a slot may be felt: who hears nothing else for three rounds claims it.
const STRANGE_ROUNDS: u64 = 4;

impl Seen {
    /// Nothing yet, in a world of these nodes.
    pub fn new(own: Own, progress: Option<Progress>, nodes: Vec<u32>, astray: Vec<Range<u64>>) -> Seen {
        Seen {
            own,
            progress,
            wrong: None,
            lifetimes: HashMap::new(),
            up: HashSet::new(),
            twice: 0,
            stale_ns: 0,
            nodes,
            air: Air::default(),
            astray,
            overlaps: 0,
            shared: 0,
            sharing: HashMap::new(),
            strange: HashMap::new(),
        }
    }

    /// Keeps the first that is wrong.
    fn note(&mut self, wrong: Option<String>) {
        self.wrong = self.wrong.take().or(wrong);
    }
}

/// Writes what it sees where others can read it.
pub struct Eye(pub Rc<RefCell<Seen>>);

impl Observer for Eye {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let seen = &mut *self.0.borrow_mut();
        if seen.nodes.contains(&t.node) {
            seen.air.note(t);
        }
        let wrong = seen.own.transmission(t);
        seen.note(wrong);
    }

    fn submitted(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        let seen = &mut *self.0.borrow_mut();
        seen.own.submitted(now_ns, node, msdu);
        if let Some(progress) = &mut seen.progress {
            progress.submitted(now_ns, node, msdu);
        }
    }

    fn requested(&mut self, now_ns: u64, node: u32, token: Token, frame: &[u8]) {
        let seen = &mut *self.0.borrow_mut();
        seen.own.requested(now_ns, node, token, frame);
        if let Some(progress) = &mut seen.progress {
            progress.requested(now_ns, node, token, frame);
        }
    }

    fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm, _: Option<(u64, u64)>) {
        let seen = &mut *self.0.borrow_mut();
        if let Some(progress) = &mut seen.progress {
            progress.confirmed(now_ns, node, confirm);
        }
        let wrong = seen.own.confirmed(now_ns, node, confirm);
        seen.note(wrong);
    }

    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        let Some((flow, number, born_ns)) = parse_header(msdu.payload) else {
            return;
        };
        let seen = &mut *self.0.borrow_mut();
        seen.twice += u64::from(!seen.up.insert((flow, number, node)));
        if let Some(lifetime) = seen.lifetimes.get(&flow) {
            seen.stale_ns = seen.stale_ns.max(now_ns.saturating_sub(born_ns + lifetime));
        }
    }
}

impl Seen {
    /// A look at a world after each millisecond. `together` are nodes that hear each other all the time.
    pub fn look<const N: usize>(&mut self, world: &mut World<Checked<Program, N>>, together: &[u32]) {
        let wrong = self.own.look(world);
        self.note(wrong);
        let wrong = self.progress.as_mut().and_then(|p| p.look(world));
        self.note(wrong);
        for met in std::mem::take(&mut self.air.met) {
            let fair = may_meet(world, &met, |node| Some(node.inner()));
            let astray = self.astray.iter().any(|time| time.contains(&met[1].start_ns));
            self.overlaps += u64::from(!fair && !astray);
        }
        let mut owners = Vec::new();
        for node in &self.nodes {
            let Some((host, (round, slot))) =
                in_cell(world.protocol(*node).inner()).and_then(|h| Some((h, h.owns()?)))
            else {
                continue;
            };
            let place = (host.cell(), slot);
            if together.contains(node) {
                let probation = host.member().is_some_and(Member::is_on_probation);
                owners.push((*node, place, round, probation));
            } else {
                self.strange.insert(place, round);
            }
        }
        for (i, a) in owners.iter().enumerate() {
            let (node, place, round, probation) = *a;
            let lately = |last: &u64| last + STRANGE_ROUNDS > round;
            if self.strange.get(&place).is_some_and(lately) {
                continue;
            }
            for b in &owners[..i] {
                if (b.1, b.2) == (place, round) && !(b.3 && probation) {
                    let (last, rounds) = self.sharing.entry([b.0, node]).or_default();
                    match round - *last {
                        0 => {}
                        1 => *rounds += 1,
                        _ => *rounds = 1,
                    }
                    *last = round;
                    self.shared = self.shared.max(*rounds);
                }
            }
        }
    }
}

/// The host in a cell that a program is.
fn in_cell(program: &Program) -> Option<&Celled> {
    match program {
        Program::Tbmac(walking) => Some(walking.host()),
        Program::Redundant(pair) => in_cell(pair.protocol()),
        _ => None,
    }
}

/// What the pairs of adapters of all nodes have counted: copies sent, acknowledged, and arrived, first and later ones.
pub fn copies<'a>(programs: impl Iterator<Item = &'a Program>) -> [u64; 4] {
    let mut sums = [0; 4];
    for program in programs {
        if let Program::Redundant(pair) = program {
            let RedundancyCounters {
                copies,
                acked,
                first,
                dropped,
                ..
            } = *pair.counters();
            let new = [copies, acked, first].map(|by| by.iter().sum());
            for (sum, new) in sums.iter_mut().zip(new.into_iter().chain([dropped])) {
                *sum += new;
            }
        }
    }
    sums
}
