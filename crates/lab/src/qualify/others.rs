//! Who else is on the channel: a foreign network, passing telephones, bursts of noise.

use super::bench::{Bench, Seat, place};
use super::question::{Question, Scheme};
use frame::mgmt::{MgmtHeader, ProbeRequest};
use frame::{AccessCategory, MacAddr, Rate, Wire, ppdu_us};
use protocols::mac::data::Identity;
use protocols::mac::sender::{Sender, SenderConfig};
use radio::{Event, Instant, Protocol, Radio, TxHow};
use sim::{AdapterConfig, NodeConfig, NoiseConfig, Pattern, Position, Traffic, World};

/// Payload of a foreign network's frames.
const FOREIGN_OCTETS: usize = 1_500;
/// Length of a noise burst, ns.
const BURST_NS: u64 = 250_000;

impl Bench {
    /// Longer when others send too: a poll or an answer may have to wait for a foreign frame.
    pub(super) fn foreign_wait_ns(&self) -> u64 {
        let i = &self.question.interference;
        let load = if i.load > 0.0 {
            self.foreign_exchange_ns()
        } else {
            0
        };
        let probe = if i.probes_per_s > 0.0 { self.probe_ns() } else { 0 };
        let noise = if i.noise > 0.0 { BURST_NS } else { 0 };
        load.max(probe).max(noise)
    }

    fn foreign_rate(&self) -> Rate {
        match self.question.phy.name {
            "b" => Rate::DSSS_11,
            _ => Rate::OFDM_24,
        }
    }

    fn foreign_exchange_ns(&self) -> u64 {
        let phy = &self.question.phy;
        let octets = (FOREIGN_OCTETS + protocols::mac::data::QOS_OVERHEAD_OCTETS) as u32;
        let us = ppdu_us(self.foreign_rate(), octets, phy.band)
            + phy.sifs_us
            + phy.ack_us(self.foreign_rate(), phy.basic);
        u64::from(us) * 1_000
    }

    fn probe_ns(&self) -> u64 {
        let phy = &self.question.phy;
        u64::from(ppdu_us(phy.lowest, PROBE_OCTETS as u32 + 4, phy.band)) * 1_000
    }

    /// Adds all of them.
    pub(super) fn disturb(&self, world: &mut World<Seat>, scheme: Scheme) {
        let q = &self.question;
        let i = &q.interference;
        let first = world.nodes();
        let add = |world: &mut World<Seat>, n: u32, seat: Seat| {
            let mut adapter = AdapterConfig::station(Question::address(n), q.phy, self.mhz(), true);
            if scheme.walks() {
                adapter.tx_dbm = self.cell_dbm();
            }
            world.add_node(NodeConfig::ideal(place(n, q.nodes), adapter), seat)
        };
        let poisson = |to, octets, per_s: f64| Traffic {
            to,
            category: AccessCategory::BestEffort,
            octets,
            pattern: Pattern::Poisson {
                mean_ns: (1e9 / per_s) as u64,
            },
            lifetime_ns: None,
            count: None,
        };
        if i.load > 0.0 {
            let bssid = Question::address(first + 1);
            let from = Identity::station(Question::address(first), bssid);
            let sender = |identity| {
                let config = SenderConfig::new(identity, self.foreign_rate());
                Seat(Box::new(Sender::<1>::new(config)))
            };
            let node = add(world, first, sender(from));
            add(world, first + 1, sender(Identity::access_point(bssid)));
            let per_s = i.load * 1e9 / self.foreign_exchange_ns() as f64;
            world.add_traffic(node, poisson(bssid, FOREIGN_OCTETS, per_s));
        }
        if i.probes_per_s > 0.0 {
            let n = world.nodes();
            let prober = Prober {
                me: Question::address(n),
                rate: q.phy.lowest,
            };
            let node = add(world, n, Seat(Box::new(prober)));
            world.add_traffic(node, poisson(MacAddr::BROADCAST, 16, i.probes_per_s));
        }
        if i.noise > 0.0 {
            let burst = BURST_NS as f64;
            world.add_noise(&NoiseConfig {
                position: Position::default(),
                mhz: self.mhz(),
                tx_dbm: 16.0,
                on_ns: BURST_NS,
                off_ns: (burst / i.noise - burst) as u64,
                random: true,
                start_ns: 0,
            });
        }
    }
}

/// Octets of a probe request without FCS: header, SSID, rates, and what phones add.
const PROBE_OCTETS: usize = 24 + 2 + 10 + 74;

/// Sends a probe request for every MSDU, as a passing telephone does.
struct Prober {
    me: MacAddr,
    rate: Rate,
}

impl Protocol for Prober {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let Event::Submit(_) = event else { return };
        let mut elements = [0; PROBE_OCTETS - 24];
        elements[2..12].copy_from_slice(&[1, 8, 0x82, 0x84, 0x8b, 0x96, 12, 18, 24, 36]);
        elements[12..14].copy_from_slice(&[221, 72]);
        let probe = ProbeRequest {
            header: MgmtHeader::new(MacAddr::BROADCAST, self.me, MacAddr::BROADCAST),
            elements: frame::element::Elements::new(&elements),
        };
        let mut out = [0; PROBE_OCTETS];
        let octets = probe.emit(&mut out).expect("it fits");
        let token = radio.token();
        radio.request(token, &out[..octets], &TxHow::one_shot(self.rate));
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::{Scheme, parse_interference};
    use super::*;

    #[test]
    fn interferers_take_the_air_they_ask_for() {
        let q = Question {
            interference: parse_interference("load=30%,probes=100/s").unwrap(),
            nodes: 1,
            cycle_ns: 1_000_000_000,
            ..Question::example()
        };
        let bench = Bench::new(&q).unwrap();
        let mut ready = bench.world(Scheme::EDCA, 3, q.cycle_ns, 20);
        ready.world.run_until(20_000_000_000);
        let air_us = |node| ready.world.counters(node, 0).tx_time_us as f64;
        let load = (air_us(2) + air_us(3)) / 20e6;
        assert!((0.27..0.32).contains(&load), "{load}");
        let probes = air_us(4) / (bench.probe_ns() as f64 / 1e3) / 20.0;
        assert!((80.0..120.0).contains(&probes), "{probes}");
    }
}
