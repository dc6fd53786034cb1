//! The world of a scenario whose nodes do what somebody outside tells them: the physics without any kernel.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use frame::{MacAddr, Rate, airtime};
use radio::{
    AdapterId, Attribute, AttributeName, Confirm, Event, Instant, Msdu, Protocol, Radio, Token, Tsf, TxHow,
};
use sim::World;
use sim::clock::Clock;
use sim::fault::HostFaults;

use super::count::{Tries, Watch};
use crate::scenario::{Program, Scenario};

/// What happens at a node.
#[derive(Debug)]
pub enum Happening {
    /// It receives a frame, for whomever it is.
    Heard {
        /// The MPDU without FCS as it was on the air.
        frame: Vec<u8>,
        /// Its rate.
        rate: Rate,
        /// Its strength.
        signal_dbm: i8,
        /// Which of the node's adapters.
        adapter: AdapterId,
    },
    /// A frame of its own has ended.
    Done(Confirm),
}

/// Number of an adapter among all of the scenario, node by node: 0 is the first one of the first node. In the kernel it is a
/// radio.
pub type Port = u32;

/// The nodes and what has happened at them.
type Outbox = Rc<RefCell<VecDeque<(u32, Happening)>>>;

/// What is on a node: a puppet, or a stranger of the scenario who lives on.
enum Resident {
    Puppet {
        node: u32,
        /// How many adapters it has.
        adapters: u8,
        outbox: Outbox,
        /// What the scenario would have run here.
        program: Box<Program>,
    },
    Stranger(Box<Program>),
}

impl Protocol for Resident {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let (node, adapters, outbox, program) = match self {
            Resident::Stranger(program) => return program.handle(now, event, radio),
            Resident::Puppet {
                node,
                adapters,
                outbox,
                program,
            } => (*node, *adapters, outbox, program),
        };
        let happening = match event {
            Event::Start => {
                for adapter in 0..adapters {
                    set(radio, AdapterId(adapter), Attribute::Promiscuous(true));
                }
                // That is all it ever does.
                return program.handle(now, event, &mut AccessOnly(radio));
            }
            Event::Confirm(confirm) => Happening::Done(confirm),
            Event::Indication(i) | Event::Beacon(radio::Beacon { received: i, .. }) => Happening::Heard {
                frame: i.frame.to_vec(),
                rate: i.rate,
                signal_dbm: i.signal_dbm.unwrap_or_default(),
                adapter: i.adapter,
            },
            _ => return,
        };
        outbox.borrow_mut().push_back((node, happening));
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Resident::Puppet { .. } => None,
            Resident::Stranger(program) => program.deadline(),
        }
    }
}

/// A radio that does nothing but take what decides when an adapter gets on the air, which Linux has no way to set for a monitor.
struct AccessOnly<'a>(&'a mut dyn Radio);

impl Radio for AccessOnly<'_> {
    fn token(&mut self) -> Token {
        self.0.token()
    }

    fn request(&mut self, _: Token, _: &[u8], _: &TxHow) {}

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        let access = matches!(
            attribute,
            Attribute::Edca(..)
                | Attribute::CarrierSense(_)
                | Attribute::VirtualCarrierSense(_)
                | Attribute::Reception(_)
        );
        if access {
            self.0.set(token, adapter, attribute);
        }
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.0.get(adapter, name)
    }

    fn abort(&mut self, _: Token) {}

    fn deliver(&mut self, _: Msdu<'_>) {}
}

fn set(radio: &mut dyn Radio, adapter: AdapterId, attribute: Attribute) {
    let token = radio.token();
    radio.set(token, adapter, attribute);
}

/// The air of a scenario.
pub struct Air {
    world: World<Resident>,
    outbox: Outbox,
    tries: Rc<RefCell<Tries>>,
    /// Node and adapter of each port, and the first port of each node.
    ports: Vec<(u32, u8)>,
    first: Vec<Port>,
    /// Channel of each port.
    mhz: Vec<u16>,
    /// Through which port what is on its way was sent.
    open: HashMap<(u32, Token), Port>,
}

impl Air {
    /// The air at time 0. Nodes have no latencies and exact clocks, whatever the scenario says: those of the stations
    /// that use this air are their own. Channel access is that of the scenario, with what its protocols set at their start.
    pub fn new(scenario: &Scenario, seed: u64) -> Air {
        let outbox = Outbox::default();
        let nodes = scenario.nodes();
        let (mut ports, mut first, mut mhz) = (Vec::new(), Vec::new(), Vec::new());
        let mut world = scenario.build_with(seed, |node, mut config, program| {
            if node >= nodes {
                return (config, Resident::Stranger(Box::new(program)));
            }
            (config.host, config.clock) = (None, Clock::default());
            (config.faults, config.start_ns) = (HostFaults::default(), 0);
            first.push(ports.len() as Port);
            ports.extend((0..config.adapters.len()).map(|a| (node, a as u8)));
            mhz.extend(config.adapters.iter().map(|a| a.mhz));
            let (adapters, outbox) = (config.adapters.len() as u8, Rc::clone(&outbox));
            let program = Box::new(program);
            (
                config,
                Resident::Puppet {
                    node,
                    adapters,
                    outbox,
                    program,
                },
            )
        });
        // the kernel tells repetitions apart itself, and must take each of them for an ACK
        for (node, adapter) in &ports {
            world.show_repetitions(*node, *adapter);
        }
        let tries = Rc::new(RefCell::new(Tries::of_adapters(ports.len())));
        world.set_observer(Box::new(Watch(Rc::clone(&tries))));
        Air {
            world,
            outbox,
            tries,
            ports,
            first,
            mhz,
            open: HashMap::new(),
        }
    }

    /// Its time, ns.
    pub fn now_ns(&self) -> u64 {
        self.world.now_ns()
    }

    /// When the next thing happens in it, ns.
    pub fn next_ns(&mut self) -> Option<u64> {
        self.world.next_ns()
    }

    /// Channel of a port, MHz.
    pub fn mhz(&self, port: Port) -> u16 {
        self.mhz[port as usize]
    }

    /// Puts a port on a channel.
    pub fn tune(&mut self, port: Port, mhz: u16) {
        if std::mem::replace(&mut self.mhz[port as usize], mhz) != mhz {
            self.set(port, Attribute::Channel(mhz));
        }
    }

    /// Gives a port its address.
    pub fn set_address(&mut self, port: Port, address: MacAddr) {
        self.set(port, Attribute::Address(address));
    }

    /// Gives a port a further address.
    pub fn add_address(&mut self, port: Port, address: MacAddr) {
        let (node, adapter) = self.ports[port as usize];
        self.world.add_address(node, adapter, address);
    }

    /// Takes a further address from a port.
    pub fn remove_address(&mut self, port: Port, address: MacAddr) {
        let (node, adapter) = self.ports[port as usize];
        self.world.remove_address(node, adapter, address);
    }

    /// Switches what decides when a port gets on the air, and whether it listens.
    pub fn switch(&mut self, port: Port, attribute: Attribute) {
        self.set(port, attribute);
    }

    fn set(&mut self, port: Port, attribute: Attribute) {
        let (node, adapter) = self.ports[port as usize];
        self.world
            .act(node, |_, _, radio| set(radio, AdapterId(adapter), attribute));
    }

    /// A port sends a frame from now on; the token names it in [`Happening::Done`].
    pub fn send(&mut self, port: Port, frame: &[u8], how: &TxHow) -> Token {
        // a timestamp is right for a frame that sets out now; until it does, the TSF of its sender goes on
        let stamped = matches!(frame.first(), Some(0x80 | 0x50));
        let stamp = frame
            .get(24..32)
            .and_then(|s| s.first_chunk())
            .filter(|_| stamped);
        if let Some(stamp) = stamp {
            let ahead_us = airtime::timestamp_ns(how.series.as_slice()[0].rate) / 1_000;
            let tsf = u64::from_le_bytes(*stamp).saturating_sub(ahead_us);
            self.set(port, Attribute::Tsf(Tsf(tsf)));
        }
        let (node, adapter) = self.ports[port as usize];
        let token = self.world.act(node, |_, _, radio| {
            let token = radio.token();
            radio.request(token, frame, &how.adapter(AdapterId(adapter)));
            token
        });
        self.open.insert((node, token), port);
        token
    }

    /// Plays until `until_ns`, that time included. `told` is shown when and at which port what happens; if it answers false
    /// to a frame that was heard, nobody there takes that frame, and no ACK follows.
    ///
    /// # Errors
    /// That of `told`, which ends it there.
    pub fn advance<E>(
        &mut self,
        until_ns: u64,
        mut told: impl FnMut(u64, Port, Happening) -> Result<bool, E>,
    ) -> Result<(), E> {
        while let Some(next) = self.world.next_ns().filter(|next| *next <= until_ns) {
            self.world.run_until(next);
            loop {
                let Some((node, happening)) = self.outbox.borrow_mut().pop_front() else {
                    break;
                };
                let first = self.first[node as usize];
                let port = match &happening {
                    Happening::Heard { adapter, .. } => first + Port::from(adapter.0),
                    Happening::Done(confirm) => self.open.remove(&(node, confirm.token)).unwrap_or(first),
                };
                if !told(next, port, happening)? {
                    self.set(port, Attribute::AckGeneration(false));
                    self.set(port, Attribute::AckGeneration(true));
                }
            }
        }
        self.world.run_until(until_ns);
        Ok(())
    }

    /// Tries of a port so far, and those among them that overlapped another frame.
    pub fn tries(&self, port: Port) -> (u64, u64) {
        self.tries.borrow().of[port as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radio::Outcome;
    use std::path::Path;

    const PAIR: &str = r#"
[run]
duration = "1s"

[medium]
loss.fixed_power_dbm = -50

[[group]]
name = "sta"
count = 3
host = "table5"
protocol.sender = { rate = "54M" }

[[link]]
from = "sta.2"
to = "sta.0"
data.fixed = 1

[[traffic]]
from = "sta"
to = "broadcast"
octets = 100
pattern.periodic = { period = "1ms" }
"#;

    fn air() -> Air {
        let scenario = Scenario::parse(Path::new("air.toml"), PAIR, &[]).unwrap_or_else(|e| panic!("{e}"));
        Air::new(&scenario, 1)
    }

    fn data(to: u32, from: u32) -> Vec<u8> {
        let mut frame = vec![0x08, 0, 0, 0];
        for address in [MacAddr::local(to), MacAddr::local(from), MacAddr::ZERO] {
            frame.extend(address.0);
        }
        frame.extend([0; 60]);
        frame
    }

    /// What happens until a time, with the takers of a frame among the nodes.
    fn play(air: &mut Air, until_ns: u64, taken: impl Fn(u32) -> bool) -> Vec<(u64, u32, Happening)> {
        let mut all = Vec::new();
        let told = |at, node, happening| {
            let heard = matches!(happening, Happening::Heard { .. });
            all.push((at, node, happening));
            Ok::<_, ()>(!heard || taken(node))
        };
        air.advance(until_ns, told).unwrap();
        all
    }

    fn done(all: &[(u64, u32, Happening)]) -> Vec<(u64, u32, Outcome, u16)> {
        let done = all.iter().filter_map(|(at, node, h)| match h {
            Happening::Done(c) => Some((*at, *node, c.outcome, c.attempts)),
            Happening::Heard { .. } => None,
        });
        done.collect()
    }

    /// The scenario's traffic and hosts are not there; the frame takes 36 + 16 + 28 us, and all hear it.
    #[test]
    fn one_shot_in_an_empty_air() {
        let mut air = air();
        assert!(play(&mut air, 5_000_000, |_| true).is_empty());
        air.send(0, &data(1, 0), &TxHow::one_shot(Rate::OFDM_54));
        let all = play(&mut air, 6_000_000, |_| true);
        let heard: Vec<_> = all
            .iter()
            .filter(|a| matches!(a.2, Happening::Heard { .. }))
            .collect();
        assert_eq!(
            heard.iter().map(|h| (h.0, h.1)).collect::<Vec<_>>(),
            [(5_036_000, 1), (5_036_000, 2)]
        );
        assert_eq!(done(&all), [(5_080_000, 0, Outcome::Acked, 1)]);
        assert_eq!((air.tries(0), air.tries(1)), ((1, 0), (0, 0)));
    }

    /// After its slot a node of the schedule does not back off: its next frame follows DIFS (34 us) after the ACK.
    #[test]
    fn channel_access_is_what_the_protocol_of_the_scenario_sets() {
        let between = |protocol: &str| {
            let schedule = "[[schedule]]\nname = \"s\"\ncycle = \"9ms\"\nsend = { rate = \"24M\", qos = true }\n\
                            beacon = { from = \"a\", rate = \"6M\" }\n";
            let group = |name: &str| format!("[[group]]\nname = \"{name}\"\n{protocol}\n");
            let flow = "[[traffic]]\nfrom = \"a\"\nto = \"b\"\noctets = 58\npattern.periodic = { period = \"9ms\" }\n";
            let text = format!(
                "[run]\nduration = \"1s\"\n[medium]\nloss.fixed_power_dbm = -50\n{}{}{}{flow}",
                if protocol.contains("tdma") { schedule } else { "" },
                group("a"),
                group("b")
            );
            let scenario = Scenario::parse(Path::new("a.toml"), &text, &[]).unwrap_or_else(|e| panic!("{e}"));
            let mut air = Air::new(&scenario, 1);
            play(&mut air, 5_000_000, |_| true);
            let how = TxHow::one_shot(Rate::OFDM_54).queue(radio::Queue::Voice);
            for _ in 0..20 {
                let mut frame = data(1, 0);
                frame[0] = 0x88; // QoS data
                air.send(0, &frame, &how);
            }
            let ends = done(&play(&mut air, 20_000_000, |_| true));
            assert_eq!(ends.len(), 20);
            ends.windows(2).map(|w| w[1].0 - w[0].0).collect::<Vec<_>>()
        };
        assert_eq!(between("protocol.tdma.schedule = \"s\""), [114_000; 19]);
        let backoff = between("protocol.sender = { rate = \"54M\" }");
        assert!(backoff.iter().any(|ns| *ns > 114_000), "{backoff:?}");
    }

    #[test]
    fn lost_frames_are_tried_again_and_given_up() {
        let mut air = air();
        air.send(2, &data(0, 2), &TxHow::multi_shot(Rate::OFDM_54, 4));
        let all = play(&mut air, 50_000_000, |_| true);
        assert!(matches!(done(&all)[..], [(_, 2, Outcome::NotAcked, 4)]));
        assert!(!all.iter().any(|a| a.1 == 0), "the link loses everything");
        assert_eq!(air.tries(2), (4, 0));
    }

    #[test]
    fn what_nobody_takes_is_not_acknowledged() {
        let mut air = air();
        air.send(0, &data(1, 0), &TxHow::multi_shot(Rate::OFDM_54, 2));
        let all = play(&mut air, 50_000_000, |node| node != 1);
        assert!(matches!(done(&all)[..], [(_, 0, Outcome::NotAcked, 2)]));
        air.send(0, &data(1, 0), &TxHow::multi_shot(Rate::OFDM_54, 2));
        let all = play(&mut air, 90_000_000, |_| true);
        assert!(
            matches!(done(&all)[..], [(_, 0, Outcome::Acked, 1)]),
            "next time it is"
        );
    }

    #[test]
    fn channels_and_addresses_are_those_of_the_user() {
        let mut air = air();
        let other = MacAddr::local(0x77);
        air.add_address(1, other);
        let mut frame = data(1, 0);
        frame[4..10].copy_from_slice(&other.0);
        air.tune(0, 5200);
        air.send(0, &frame, &TxHow::one_shot(Rate::OFDM_54));
        let all = play(&mut air, 10_000_000, |_| true);
        assert!(matches!(done(&all)[..], [(_, 0, Outcome::NotAcked, 1)]) && all.len() == 1);
        air.tune(1, 5200);
        air.send(0, &frame, &TxHow::one_shot(Rate::OFDM_54));
        let all = play(&mut air, 20_000_000, |_| true);
        assert!(matches!(done(&all)[..], [(_, 0, Outcome::Acked, 1)]) && all.len() == 2);
        assert_eq!((air.mhz(0), air.mhz(2)), (5200, 5180));
    }

    /// A beacon that sets out at once says what its sender said, which has reckoned with its preamble and header; after a frame
    /// before it what it waited comes on top.
    #[test]
    fn timestamps_go_on_until_the_air() {
        let mut air = air();
        let mut beacon = vec![0; 36];
        beacon[0] = 0x80;
        beacon[4..10].fill(0xff);
        beacon[24..32].copy_from_slice(&7_000_000_u64.to_le_bytes());
        let stamp = |all: &[(u64, u32, Happening)]| {
            let frames = all.iter().filter_map(|a| match &a.2 {
                Happening::Heard { frame, .. } if frame[0] == 0x80 => frame[24..32].first_chunk(),
                _ => None,
            });
            frames.map(|s| u64::from_le_bytes(*s)).next().unwrap()
        };
        play(&mut air, 1_000_000, |_| true);
        air.send(0, &beacon, &TxHow::one_shot(Rate::OFDM_6));
        let all = play(&mut air, 2_000_000, |_| true);
        assert_eq!(stamp(&all), 7_000_000);
        // the medium is busy for 36 us, SIFS, an ACK of 28 us and an interframe space
        air.send(1, &data(2, 1), &TxHow::one_shot(Rate::OFDM_54));
        play(&mut air, 2_010_000, |_| true);
        air.send(0, &beacon, &TxHow::one_shot(Rate::OFDM_6));
        let all = play(&mut air, 4_000_000, |_| true);
        let waited = stamp(&all) - 7_000_000;
        assert!(waited >= 80 - 10 + 34, "{waited}");
    }
}
