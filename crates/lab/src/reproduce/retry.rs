//! Who repeats a frame that got no ACK: the adapter, or the host after each confirm (SDMAC, section II.B).
//!
//! One station sends one frame after the other, the next one when the last one is confirmed, over a channel that
//! loses data frames. Both ways send a frame at most `TRIES` times.

use std::rc::Rc;

use frame::{AccessCategory, EdcaParams, MacAddr, Phy, Rate};
use protocols::mac::data::{ETHERTYPE_PAYLOAD, Framer, Identity, MAX_DATA_OCTETS};
use protocols::mac::sink::Sink;
use radio::{Event, Instant, Protocol, Radio, TxHow};
use sim::host::HostModel;
use sim::{LinkLoss, NodeConfig, Position, Process, World};

use super::bed::{adapter, medium};

/// Most transmissions of one frame.
const TRIES: u8 = 7;
/// Share of the data frames that are lost.
const LOSS: f64 = 0.1;
const RECEIVER: MacAddr = MacAddr::local(1);
const SENDER: MacAddr = MacAddr::local(2);

/// Who repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Repeats {
    /// The adapter, by its retry count.
    Adapter,
    /// The host: each attempt is a confirmed one-shot.
    Host,
}

/// Always has a frame to send.
struct Saturated {
    framer: Framer,
    repeats: Repeats,
    tries: u8,
    number: u32,
    delivered: u64,
}

impl Saturated {
    fn send(&mut self, radio: &mut dyn Radio) {
        let tries = if self.repeats == Repeats::Adapter {
            TRIES
        } else {
            1
        };
        let (mut out, number) = ([0; MAX_DATA_OCTETS], self.number.to_be_bytes());
        let category = AccessCategory::BestEffort;
        let frame = self
            .framer
            .frame(RECEIVER, category, false, &number, &[0; 46], &mut out);
        let token = radio.token();
        let how = TxHow::multi_shot(Rate::OFDM_54, tries);
        radio.request(token, frame.expect("50 octets fit"), &how);
    }
}

impl Protocol for Saturated {
    fn handle(&mut self, _now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.send(radio),
            Event::Confirm(c) => {
                self.tries += 1;
                let over = self.repeats == Repeats::Adapter || self.tries == TRIES;
                if c.outcome.is_acked() || over {
                    self.delivered += u64::from(c.outcome.is_acked());
                    self.number += 1;
                    self.tries = 0;
                }
                self.send(radio);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

enum Role {
    Sender(Saturated),
    Receiver(Box<Sink>),
}

impl Protocol for Role {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Role::Sender(p) => p.handle(now, event, radio),
            Role::Receiver(p) => p.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Frames acknowledged per second over `seconds`; without `backoff` the contention window is 0 throughout.
pub fn throughput_hz(host: &Rc<HostModel>, repeats: Repeats, backoff: bool, seed: u64, seconds: u64) -> f64 {
    let mut world = World::new(&medium(), seed);
    let at = Position::default();
    let sink = Sink::new(Identity::access_point(RECEIVER));
    let receiver = NodeConfig::ideal(at, adapter(RECEIVER));
    world.add_node(receiver, Role::Receiver(Box::new(sink)));
    let mut sending = adapter(SENDER);
    if !backoff {
        let at_once = EdcaParams {
            cw_min: 0,
            cw_max: 0,
            ..EdcaParams::dcf(&Phy::A)
        };
        sending.edca[radio::Queue::BestEffort.index()] = at_once;
    }
    let sender = Saturated {
        framer: Framer::new(Identity::station(SENDER, RECEIVER), false, ETHERTYPE_PAYLOAD),
        repeats,
        tries: 0,
        number: 0,
        delivered: 0,
    };
    let node = NodeConfig {
        host: Some(Rc::clone(host)),
        ..NodeConfig::ideal(at, sending)
    };
    let node = world.add_node(node, Role::Sender(sender));
    let lossy = LinkLoss {
        data: Some(Process::Fixed(LOSS)),
        ..LinkLoss::default()
    };
    world.set_link_loss(node, 0, lossy);
    world.run_until(seconds * 1_000_000_000);
    match world.protocol(node) {
        Role::Sender(s) => s.delivered as f64 / seconds as f64,
        Role::Receiver(_) => unreachable!("the sender was added second"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::host::Profile;

    /// On an ideal host both ways take the same time if nobody backs off, and only what is lost is missing.
    #[test]
    fn without_latency_the_host_repeats_as_fast_as_the_adapter() {
        let host = Rc::new(HostModel::new(&Profile::built_in("ideal").unwrap()).unwrap());
        let [adapter, host] = [Repeats::Adapter, Repeats::Host].map(|r| throughput_hz(&host, r, false, 3, 1));
        assert!((host / adapter - 1.0).abs() < 0.02, "{host} {adapter}");
        assert!((6_000.0..8_000.0).contains(&adapter), "{adapter}");
    }
}
