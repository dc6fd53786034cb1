//! Nodes that do what a list says, under the law checker, and a log of what was on the air.

use frame::{MacAddr, Phy, Rate};
use radio::{
    AdapterId, Attribute, Checked, Confirm, Event, Instant, Outcome, Protocol, Radio, SetError, Token, TxHow,
};
use sim::adapter::AdapterConfig;
use sim::medium::{LossModel, MediumConfig, Position};
use sim::trace::{Observer, OnAir, ReceptionEnd, Transmission};
use sim::{NodeConfig, World};
use std::cell::RefCell;
use std::rc::Rc;

/// What a node does.
#[derive(Clone)]
pub enum Act {
    Send(Vec<u8>, TxHow),
    Set(Attribute),
    /// Takes back its n-th request.
    Abort(usize),
}

/// What a node has seen.
#[derive(Clone, PartialEq, Debug)]
pub enum Seen {
    Confirm(Confirm),
    Frame(Vec<u8>, u64),
    Beacon(u64),
    Set(Result<(), SetError>),
}

/// Acts at given times of its host clock, and notes with their times what it is told.
#[derive(Clone, Default)]
pub struct Script {
    plan: Vec<(u64, Act)>,
    next: usize,
    tokens: Vec<Token>,
    pub seen: Vec<(u64, Seen)>,
}

impl Script {
    pub fn new(plan: Vec<(u64, Act)>) -> Script {
        Script {
            plan,
            ..Script::default()
        }
    }
    pub fn confirms(&self) -> Vec<(u64, Confirm)> {
        let pick = |(t, s): &(u64, Seen)| match s {
            Seen::Confirm(c) => Some((*t, *c)),
            _ => None,
        };
        self.seen.iter().filter_map(pick).collect()
    }
    pub fn outcomes(&self) -> Vec<Outcome> {
        self.confirms().iter().map(|c| c.1.outcome).collect()
    }
    pub fn frames(&self) -> usize {
        self.seen
            .iter()
            .filter(|s| matches!(s.1, Seen::Frame(..)))
            .count()
    }
}

impl Protocol for Script {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let t = now.as_ns();
        match event {
            Event::Confirm(c) => self.seen.push((t, Seen::Confirm(c))),
            Event::Indication(i) => {
                let tsf = i.tsf.map_or(0, |t| t.0);
                self.seen.push((t, Seen::Frame(i.frame.to_vec(), tsf)));
            }
            Event::Beacon(b) => self.seen.push((t, Seen::Beacon(b.timestamp.0))),
            Event::Set(s) => self.seen.push((t, Seen::Set(s.result))),
            Event::Start | Event::Timer | Event::Submit(_) => {}
        }
        while self.plan.get(self.next).is_some_and(|a| a.0 <= t) {
            let act = self.plan[self.next].1.clone();
            self.next += 1;
            match act {
                Act::Send(frame, how) => {
                    let token = radio.token();
                    self.tokens.push(token);
                    radio.request(token, &frame, &how);
                }
                Act::Set(a) => {
                    let token = radio.token();
                    radio.set(token, AdapterId::FIRST, a);
                }
                Act::Abort(n) => radio.abort(self.tokens[n]),
            }
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.plan.get(self.next).map(|a| Instant::from_ns(a.0))
    }
}

/// One transmission.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub what: OnAir,
    pub node: u32,
    pub start: u64,
    pub end: u64,
    pub attempt: u16,
    pub rate: Rate,
    pub frame: Vec<u8>,
}

impl Sent {
    pub fn is_retry(&self) -> bool {
        self.frame[1] & 0x08 != 0
    }
    pub fn duration_us(&self) -> u16 {
        u16::from_le_bytes([self.frame[2], self.frame[3]])
    }
}

/// What was on the air and what was received.
#[derive(Default)]
pub struct AirLog {
    pub sent: Vec<Sent>,
    /// (adapter, what, right?)
    pub received: Vec<(u32, OnAir, bool)>,
}

struct Watch(Rc<RefCell<AirLog>>);

impl Observer for Watch {
    fn transmission(&mut self, t: &Transmission<'_>) {
        self.0.borrow_mut().sent.push(Sent {
            what: t.what,
            node: t.node,
            start: t.start_ns,
            end: t.end_ns,
            attempt: t.attempt,
            rate: t.rate,
            frame: t.frame.to_vec(),
        });
    }
    fn reception(&mut self, r: &ReceptionEnd) {
        self.0.borrow_mut().received.push((r.adapter, r.what, r.ok));
    }
}

/// A world of scripted nodes.
pub struct Lab {
    pub w: World<Checked<Script>>,
    pub air: Rc<RefCell<AirLog>>,
}

impl Lab {
    pub fn new(medium: &MediumConfig, seed: u64) -> Lab {
        let mut w = World::new(medium, seed);
        let air = Rc::default();
        w.set_observer(Box::new(Watch(Rc::clone(&air))));
        Lab { w, air }
    }

    /// All in one place, every pair at -50 dBm.
    pub fn near(seed: u64) -> Lab {
        let medium = MediumConfig {
            loss: LossModel::FixedPower(-50.0),
            ..MediumConfig::default()
        };
        Lab::new(&medium, seed)
    }

    pub fn node(&mut self, plan: Vec<(u64, Act)>) -> u32 {
        let me = MacAddr::local(self.w.nodes());
        self.adapter(AdapterConfig::station(me, Phy::A, 5180, false), plan)
    }

    pub fn adapter(&mut self, adapter: AdapterConfig, plan: Vec<(u64, Act)>) -> u32 {
        self.config(NodeConfig::ideal(Position::default(), adapter), plan)
    }

    pub fn config(&mut self, config: NodeConfig, plan: Vec<(u64, Act)>) -> u32 {
        let script = Script::new(plan);
        let checked = Checked::strict(script.clone()).with_twin(script);
        self.w.add_node(config, checked)
    }

    /// Runs to the end of `ms`, by which every request must have been confirmed.
    pub fn run(&mut self, ms: u64) {
        self.w.run_until(ms * 1_000_000);
        for n in 0..self.w.nodes() {
            self.w.protocol_mut(n).finish();
        }
    }

    pub fn script(&self, node: u32) -> &Script {
        self.w.protocol(node).inner()
    }

    /// Starts of the frames of a node, ns.
    pub fn starts(&self, node: u32) -> Vec<u64> {
        self.of(node, OnAir::Frame).iter().map(|s| s.start).collect()
    }

    pub fn of(&self, node: u32, what: OnAir) -> Vec<Sent> {
        let air = self.air.borrow();
        let mine = air.sent.iter().filter(|s| s.node == node && s.what == what);
        mine.cloned().collect()
    }
}

/// A data frame from node `from` with `octets` of body; `to` of `None` is everybody.
pub fn data(to: Option<u32>, from: u32, sequence: u16, octets: usize) -> Vec<u8> {
    let mut f = vec![0x08, 0, 0, 0];
    f.extend_from_slice(&to.map_or(MacAddr::BROADCAST, MacAddr::local).0);
    f.extend_from_slice(&MacAddr::local(from).0);
    f.extend_from_slice(&MacAddr::ZERO.0);
    f.extend_from_slice(&(sequence << 4).to_le_bytes());
    f.resize(24 + octets, 0xa5);
    f
}

/// `Act::Send` of a data frame of 50 octets.
pub fn send(to: u32, from: u32, sequence: u16, how: TxHow) -> Act {
    Act::Send(data(Some(to), from, sequence, 50), how)
}

pub fn one_shot() -> TxHow {
    TxHow::one_shot(Rate::OFDM_54)
}
