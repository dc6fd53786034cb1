//! How soon a host comes to a slot of TBMAC: one that goes into a cell again and again while others there ask for a slot in every
//! round, on the simulated air of 802.11b.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use frame::{AccessCategory, MacAddr, Phy, Rate};
use protocols::mac::data::{ETHERTYPE_PROTOCOL, Framer, Identity, Role};
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::tbmac::cell::Cell;
use protocols::mac::tbmac::message::{Body, MAX_REPORT_OCTETS, Message, Request};
use protocols::mac::tbmac::rounds::{RoundCosts, Rounds};
use protocols::mac::tbmac::{Tbmac, TbmacConfig};
use protocols::mac::tdma::schedule::Release;
use radio::{Duration, Event, Instant, Protocol, Radio, TxHow};
use sim::rng::{Cause, Stream};
use sim::trace::Transmission;
use sim::{AdapterConfig, LossModel, MediumConfig, NodeConfig, Observer, Position, World};

use super::super::estimate::Estimate;

const HERE: Cell = Cell { q: 0, r: 0 };
/// Nobody is there.
const THERE: Cell = Cell { q: 1, r: 0 };
const CHANNELS: [u16; 3] = [2_412, 2_437, 2_462];
const SLOTS: usize = 16;
/// Founds the cell, and owns a slot there.
const OWNER: u32 = 0;
const TESTED: u32 = 1;

/// Hosts that ask for a slot in the same rounds, and the slots of the contention period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contention {
    /// Hosts, 2 to 14.
    pub hosts: u32,
    /// Slots to ask in, 1 to 8.
    pub asks: u8,
}

impl Contention {
    /// Those that are looked at.
    pub const ALL: [Contention; 4] = [
        Contention { hosts: 2, asks: 4 },
        Contention { hosts: 4, asks: 4 },
        Contention { hosts: 8, asks: 4 },
        Contention { hosts: 4, asks: 8 },
    ];

    /// Probability that a host is alone in the slot that it asks in: `(1 - 1/m)^(n - 1)`.
    pub fn alone(self) -> f64 {
        (1.0 - 1.0 / f64::from(self.asks)).powi(self.hosts as i32 - 1)
    }

    /// Rounds of asking, as a real number, after which the share `rest` has no slot yet: `(1 - alone)^rounds = rest`.
    pub fn rounds_until(self, rest: f64) -> f64 {
        rest.ln() / (1.0 - self.alone()).ln()
    }

    /// One host goes into the cell so many times; all others ask in every round and never take a slot.
    pub fn run(self, seed: u64, tries: u64) -> Acquired {
        let rounds = rounds(self.asks);
        let last_slot_over = rounds.ask(0).as_ns() - 1;
        let own = Rc::new(RefCell::new(None));
        let mut world = self.world(seed);
        world.set_observer(Box::new(OwnSlot {
            rounds,
            last: Rc::clone(&own),
        }));
        let mut found = Acquired::default();
        let (mut entered, mut before) = (None, *host(&world, TESTED).counters());
        // it is in the other cell meanwhile
        go(&mut world, THERE);
        for round in 1.. {
            world.run_until(round * rounds.length().as_ns() + last_slot_over);
            // who founds a cell among hosts that ask already needs some tries
            let owner = host(&world, OWNER).member();
            if !owner.is_some_and(|m| m.slot().is_some() && !m.is_on_probation()) {
                continue;
            }
            let tested = host(&world, TESTED);
            let counters = *tested.counters();
            if tested.cell() == THERE {
                (entered, before) = (None, counters);
                go(&mut world, HERE);
                continue;
            }
            let entered = *entered.get_or_insert(round);
            if counters.granted == before.granted {
                continue;
            }
            let asked = counters.asked - before.asked;
            before = counters;
            let used = own.borrow_mut().take().unwrap_or(u64::MAX);
            found.note(asked, used.saturating_sub(entered));
            if found.tries() >= tries {
                break;
            }
            go(&mut world, THERE);
        }
        found
    }

    fn world(self, seed: u64) -> World<Node> {
        let medium = MediumConfig {
            loss: LossModel::FixedPower(-50.0),
            ..MediumConfig::default()
        };
        let mut world = World::new(&medium, seed);
        // what a host draws follows from its address
        let address = |i: u32| MacAddr::local((seed as u32) << 4 | i);
        for i in 0..=self.hosts {
            let me = address(i);
            let node = match i {
                OWNER | TESTED => Node::Host(member(me, self.asks)),
                _ => Node::Asker(Asker {
                    me,
                    rounds: rounds(self.asks),
                    dice: Stream::new(seed, u64::from(i), Cause::Protocol),
                    round: 0,
                    slot: 0,
                }),
            };
            let adapter = AdapterConfig::station(me, Phy::B, CHANNELS[0], false);
            world.add_node(NodeConfig::ideal(Position::default(), adapter), node);
        }
        world
    }
}

/// How long it took.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Acquired {
    /// By rounds of asking: how often it took so many.
    asked: BTreeMap<u64, u64>,
    /// Moves after which the first frame in its own slot was not on the air in the round that is due: one to listen, those in which
    /// the host asked, and one in which the others agreed are over.
    pub undue: u64,
}

impl Acquired {
    fn note(&mut self, asked: u64, rounds: u64) {
        *self.asked.entry(asked).or_default() += 1;
        self.undue += u64::from(rounds != 1 + asked + 1);
    }

    /// Takes in another run.
    pub fn merge(&mut self, other: Acquired) {
        for (asked, times) in other.asked {
            *self.asked.entry(asked).or_default() += times;
        }
        self.undue += other.undue;
    }

    /// Moves into the cell.
    pub fn tries(&self) -> u64 {
        self.asked.values().sum()
    }

    /// Moves after which more than so many rounds of asking passed.
    pub fn longer(&self, rounds: u64) -> u64 {
        self.asked.range(rounds + 1..).map(|(_, times)| times).sum()
    }

    /// Rounds of asking, on average; `None` of nothing.
    pub fn mean(&self) -> Option<f64> {
        let all: u64 = self.asked.iter().map(|(asked, times)| asked * times).sum();
        (self.tries() > 0).then(|| all as f64 / self.tries() as f64)
    }

    /// Rounds of asking, as a real number, after which the share `rest` has no slot yet. Between whole rounds the logarithm of the
    /// share is interpolated: where each round has the same chance, that is exact. `None` of nothing.
    pub fn rounds_until(&self, rest: f64) -> Option<Estimate> {
        let all = self.tries() as f64;
        // with half a try more the mean of the logarithm is right, and of none there is one
        let share = |rounds: u64| ((self.longer(rounds) as f64 + 0.5) / (all + 0.5)).ln();
        let most = *self.asked.keys().next_back()?;
        let after = (1..=most).find(|rounds| share(*rounds) <= rest.ln())?;
        let (before, at) = (share(after - 1), share(after));
        let rounds = after as f64 - (rest.ln() - at) / (before - at);
        let error = rounds / -rest.ln() / (all * rest).sqrt();
        Some(Estimate::with_error(rounds, error))
    }
}

fn rounds(asks: u8) -> Rounds {
    let costs = RoundCosts {
        phy: Phy::B,
        eifs: false,
        rate: Rate::DSSS_2,
        octets: 160,
        asks,
        release: Release {
            min: Duration::ZERO,
            high: Duration::from_us(80),
        },
        sync_error: Duration::ZERO,
        heard: Duration::ZERO,
    };
    Rounds::new(&costs, SLOTS as u8).expect("the slots hold a report")
}

fn identity(me: MacAddr) -> Identity {
    let role = Role::Direct {
        bssid: MacAddr::BROADCAST,
    };
    Identity { me, role }
}

type Host = Tbmac<Sender<16>, SLOTS, 4, 128>;

/// It asks in every round.
fn member(me: MacAddr, asks: u8) -> Host {
    let config = TbmacConfig {
        patience: 0,
        channels: Some(CHANNELS),
        ..TbmacConfig::new(me, HERE, rounds(asks))
    };
    Tbmac::new(config, Sender::new(SenderConfig::new(identity(me), Rate::DSSS_2)))
}

/// Asks for a slot in every round and never takes one.
struct Asker {
    me: MacAddr,
    rounds: Rounds,
    dice: Stream,
    round: u64,
    slot: u8,
}

impl Protocol for Asker {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if event != Event::Timer {
            return;
        }
        let message = Message {
            cell: HERE,
            round: self.round as u32,
            body: Body::Request(Request {
                slot: self.slot,
                claim: None,
            }),
        };
        let (mut head, mut out) = ([0; MAX_REPORT_OCTETS], [0; 128]);
        let mut framer = Framer::new(identity(self.me), false, ETHERTYPE_PROTOCOL);
        let (to, head) = (MacAddr::BROADCAST, message.emit(&mut head));
        let framed = framer.frame(to, AccessCategory::Voice, true, head, &[], &mut out);
        let mpdu = framed.expect("a request is short");
        let token = radio.token();
        let how = TxHow::one_shot(Rate::DSSS_2).queue(radio::Queue::Beacon);
        radio.request(token, mpdu, &how);
        self.round += 1;
        self.slot = self.dice.below(u64::from(self.rounds.asks())) as u8;
    }

    fn deadline(&self) -> Option<Instant> {
        let start = self.rounds.length().times(self.round);
        Some(Instant::ZERO + start + self.rounds.ask(self.slot))
    }
}

#[allow(clippy::large_enum_variant, reason = "a handful of nodes")]
enum Node {
    Host(Host),
    Asker(Asker),
}

impl Protocol for Node {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Node::Host(p) => p.handle(now, event, radio),
            Node::Asker(p) => p.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Node::Host(p) => p.deadline(),
            Node::Asker(p) => p.deadline(),
        }
    }
}

fn host(world: &World<Node>, node: u32) -> &Host {
    match world.protocol(node) {
        Node::Host(host) => host,
        Node::Asker(_) => unreachable!("the first two are hosts"),
    }
}

fn go(world: &mut World<Node>, cell: Cell) {
    world.act(TESTED, |node, _, _| {
        if let Node::Host(host) = node {
            host.go_to(cell);
        }
    });
}

/// Notes the round in which the tested host last sent in a slot of its own.
struct OwnSlot {
    rounds: Rounds,
    last: Rc<RefCell<Option<u64>>>,
}

impl Observer for OwnSlot {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let length = self.rounds.length().as_ns();
        let in_a_slot = t.start_ns % length < self.rounds.ask(0).as_ns();
        if t.node == TESTED && in_a_slot && t.mhz == CHANNELS[HERE.colour()] {
            *self.last.borrow_mut() = Some(t.start_ns / length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In whole rounds: 5, 13, 49 and 7.
    #[test]
    fn computed_rounds() {
        let all = Contention::ALL.map(|c| c.rounds_until(0.001));
        for (found, expected) in all.into_iter().zip([4.983, 12.606, 48.213, 6.232]) {
            assert!((found - expected).abs() < 0.001, "{all:?}");
        }
    }

    /// Where each round has the same chance the quantile of the shares is the computed one, between whole rounds, too.
    #[test]
    fn a_quantile_lies_between_whole_rounds() {
        let tries = 1_000_000_000_u64;
        for contention in Contention::ALL {
            let p = contention.alone();
            let share = |k: i32| tries as f64 * p * (1.0 - p).powi(k - 1);
            let asked = (1..400).map(|k| (k as u64, share(k).round() as u64));
            let found = Acquired {
                asked: asked.collect(),
                undue: 0,
            };
            let (rounds, computed) = (found.rounds_until(0.001).unwrap(), contention.rounds_until(0.001));
            assert!(
                (rounds.value / computed - 1.0).abs() < 1e-4,
                "{rounds:?}, {computed}"
            );
            // a share of 0.001 is known to 0.1 %, and a round takes away the share 1 - p
            let error = 0.001 / -(1.0 - p).ln();
            assert!(
                ((rounds.high - rounds.value) / 3.29 / error - 1.0).abs() < 0.01,
                "{rounds:?}"
            );
        }
        assert_eq!(Acquired::default().rounds_until(0.001), None);
    }

    #[test]
    fn nobody_uses_a_slot_before_or_after_it_is_due() {
        let mut found = Contention { hosts: 4, asks: 4 }.run(1, 150);
        assert_eq!((found.tries(), found.undue), (150, 0));
        let mean = found.mean().unwrap();
        // 2.37 on average, with a deviation of 1.8
        assert!((1.9..2.9).contains(&mean), "{mean}");
        found.merge(Contention { hosts: 4, asks: 4 }.run(2, 50));
        assert_eq!((found.tries(), found.longer(0)), (200, 200));
    }
}
