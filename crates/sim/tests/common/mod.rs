//! What the tests share: a sender without frills, and the scenarios that other simulators are compared with.
#![allow(dead_code)]

pub mod script;

use frame::{MacAddr, Phy, Rate, RateSet};
use radio::{Event, Instant, Msdu, Protocol, Queue, Radio, TxHow};
use sim::adapter::{AccessRules, AdapterConfig};
use sim::medium::{ErrorModel, LossModel, MediumConfig, Position};
use sim::rng::mix3;
use sim::traffic::{Pattern, Traffic};
use sim::{NodeConfig, World};

/// Sends each MSDU in a plain data frame and hands up what it hears.
pub struct Plain {
    pub me: MacAddr,
    pub how: TxHow,
    sequence: u16,
    frame: Vec<u8>,
    pub confirms: u64,
    pub acked: u64,
    pub attempts: u64,
}

impl Plain {
    pub fn new(me: MacAddr, how: TxHow) -> Plain {
        Plain {
            me,
            how,
            sequence: 0,
            frame: Vec::new(),
            confirms: 0,
            acked: 0,
            attempts: 0,
        }
    }
}

impl Protocol for Plain {
    fn handle(&mut self, _now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Submit(msdu) => {
                self.frame.clear();
                self.frame.extend_from_slice(&[0x08, 0, 0, 0]);
                self.frame.extend_from_slice(&msdu.peer.0);
                self.frame.extend_from_slice(&self.me.0);
                self.frame.extend_from_slice(&MacAddr::ZERO.0);
                self.frame.extend_from_slice(&(self.sequence << 4).to_le_bytes());
                self.sequence = (self.sequence + 1) & 0xfff;
                self.frame.extend_from_slice(msdu.payload);
                let token = radio.token();
                radio.request(token, &self.frame, &self.how);
            }
            Event::Confirm(c) => {
                self.confirms += 1;
                self.acked += u64::from(c.outcome.is_acked());
                self.attempts += u64::from(c.attempts);
            }
            Event::Indication(i) if i.frame.len() >= 24 => {
                let peer = MacAddr(i.frame[10..16].try_into().unwrap());
                radio.deliver(Msdu::new(peer, &i.frame[24..]));
            }
            _ => {}
        }
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

pub fn station(index: u32, rules: AccessRules) -> AdapterConfig {
    AdapterConfig {
        rules,
        ..AdapterConfig::station(MacAddr::local(index), Phy::A, 5180, false)
    }
}

/// `n` saturated stations on a circle of 1 m around a receiver, every pair at -50 dBm.
pub fn saturation(
    n: u32,
    run: u64,
    rules: AccessRules,
    ack_timeout_us: u32,
    energy_dbm: f64,
) -> World<Plain> {
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        energy_dbm,
        ..MediumConfig::default()
    };
    let mut w = World::new(&medium, run);
    let how = TxHow::multi_shot(Rate::OFDM_54, 7).queue(Queue::BestEffort);
    for i in 0..=n {
        let angle = std::f64::consts::TAU * f64::from(i.saturating_sub(1)) / f64::from(n);
        let at = if i == 0 {
            Position::default()
        } else {
            Position::new(angle.cos(), angle.sin())
        };
        let adapter = AdapterConfig {
            ack_timeout_us,
            ..station(i, rules)
        };
        w.add_node(NodeConfig::ideal(at, adapter), Plain::new(MacAddr::local(i), how));
    }
    for i in 1..=n {
        let phase_ns = mix3(run, u64::from(i - 1), 1) % 10_000_000;
        let pattern = Pattern::Saturated { backlog: 4, phase_ns };
        let traffic = Traffic {
            to: MacAddr::local(0),
            category: frame::AccessCategory::BestEffort,
            octets: 1500,
            pattern,
            lifetime_ns: None,
            count: None,
        };
        w.add_traffic(i, traffic);
    }
    w
}

/// Throughput in Mb/s and collision probability of a saturated world.
pub fn saturation_result(w: &World<Plain>) -> (f64, f64) {
    let octets: u64 = (0..w.flows()).map(|f| w.flow(f).arrived_octets).sum();
    let (mut sent, mut acked) = (0, 0);
    for node in 1..w.nodes() {
        let c = w.counters(node, 0);
        sent += c.tx_frames;
        acked += c.tx_acked;
    }
    (
        octets as f64 * 8e3 / w.now_ns() as f64,
        1.0 - acked as f64 / sent as f64,
    )
}

/// A square grid of `m` nodes 30 m apart; each sends 228 octets to one neighbour every 20 ms at 6 Mb/s.
pub fn grid(m: u32, run: u64, error: ErrorModel) -> World<Plain> {
    let medium = MediumConfig {
        energy_dbm: -82.0,
        error,
        ..MediumConfig::default()
    };
    let mut w = World::new(&medium, run);
    let side = (f64::from(m)).sqrt().ceil() as u32;
    let how = TxHow::multi_shot(Rate::OFDM_6, 7);
    for i in 0..m {
        let at = Position::new(f64::from(i % side) * 30.0, f64::from(i / side) * 30.0);
        let adapter = AdapterConfig {
            ack_timeout_us: 45,
            basic: RateSet::OFDM_MANDATORY,
            ..station(i, AccessRules::ns3())
        };
        w.add_node(NodeConfig::ideal(at, adapter), Plain::new(MacAddr::local(i), how));
    }
    for i in 0..m {
        let mut list = Vec::new();
        if i % side > 0 {
            list.push(i - 1);
        }
        if i % side + 1 < side && i + 1 < m {
            list.push(i + 1);
        }
        if i >= side {
            list.push(i - side);
        }
        if i + side < m {
            list.push(i + side);
        }
        let to = list[(mix3(run, u64::from(i), 2) % list.len() as u64) as usize];
        let phase_ns = mix3(run, u64::from(i), 3) % 20_000 * 1_000;
        let traffic = Traffic {
            to: MacAddr::local(to),
            category: frame::AccessCategory::BestEffort,
            octets: 236,
            pattern: Pattern::Periodic {
                period_ns: 20_000_000,
                phase_ns,
            },
            lifetime_ns: None,
            count: None,
        };
        w.add_traffic(i, traffic);
    }
    w
}

/// Delivered over submitted, of all flows.
pub fn delivered_ratio(w: &World<Plain>) -> f64 {
    let (mut s, mut d) = (0, 0);
    for f in 0..w.flows() {
        s += w.flow(f).submitted;
        d += w.flow(f).delivered;
    }
    d as f64 / s as f64
}
