//! The protocol of the book's first chapter: stop and wait. One frame at a time, tried again until it is acknowledged
//! or too late.

// ANCHOR: state
use frame::mac::{Data, header};
use frame::{MacAddr, Rate, Wire};
use radio::{Duration, Event, Instant, Msdu, Outcome, Protocol, Radio, TxHow};

/// Sends one MSDU at a time, in one-shots, and decides by itself about each further attempt.
pub struct StopAndWait {
    me: MacAddr,
    rate: Rate,
    patience: Duration,
    frame: [u8; 512],
    /// Length of the frame in hand, when it is given up, and its attempts so far.
    in_hand: Option<(usize, Instant, u32)>,
    sequence: u16,
    /// Attempts that the delivered MSDUs took in all.
    pub attempts: u64,
}
// ANCHOR_END: state

// ANCHOR: new
impl StopAndWait {
    /// A node with address `me` that gives an MSDU up after `patience`.
    pub fn new(me: MacAddr, rate: Rate, patience: Duration) -> StopAndWait {
        StopAndWait {
            me,
            rate,
            patience,
            frame: [0; 512],
            in_hand: None,
            sequence: 0,
            attempts: 0,
        }
    }

    fn attempt(&mut self, radio: &mut dyn Radio) {
        let Some((length, _, attempts)) = &mut self.in_hand else {
            return;
        };
        let _ = header::set_retry(&mut self.frame[..*length], *attempts > 0);
        *attempts += 1;
        let token = radio.token();
        radio.request(token, &self.frame[..*length], &TxHow::one_shot(self.rate));
    }
}
// ANCHOR_END: new

// ANCHOR: protocol
impl Protocol for StopAndWait {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Submit(msdu) if self.in_hand.is_none() => {
                let mut data = Data::direct(msdu.peer, self.me, MacAddr::ZERO, msdu.payload);
                data.sequence = frame::mac::SequenceControl::new(self.sequence & 0xfff, 0);
                self.sequence = self.sequence.wrapping_add(1);
                if let Ok(length) = data.emit(&mut self.frame) {
                    self.in_hand = Some((length, now + self.patience, 0));
                    self.attempt(radio);
                }
            }
            Event::Confirm(confirm) => {
                let Some((_, give_up, attempts)) = self.in_hand else {
                    return;
                };
                match confirm.outcome {
                    Outcome::Acked => {
                        self.attempts += u64::from(attempts);
                        self.in_hand = None;
                    }
                    _ if now < give_up => self.attempt(radio),
                    _ => self.in_hand = None,
                }
            }
            Event::Indication(i) => {
                if let Ok(data) = Data::parse(i.frame) {
                    radio.deliver(Msdu::new(data.source(), data.body));
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
// ANCHOR_END: protocol

#[cfg(test)]
mod tests {
    use super::*;
    // ANCHOR: world
    use frame::{AccessCategory, Phy};
    use radio::Checked;
    use sim::adapter::AdapterConfig;
    use sim::{LinkLoss, MediumConfig, NodeConfig, Pattern, Position, Process, Traffic, World};

    /// Two nodes five metres apart; every third data frame is lost.
    fn world(seed: u64) -> World<Checked<StopAndWait>> {
        let mut world = World::new(&MediumConfig::default(), seed);
        for i in 0..2 {
            let me = MacAddr::local(i);
            let make = || StopAndWait::new(me, Rate::OFDM_54, Duration::from_ms(4));
            let adapter = AdapterConfig::station(me, Phy::A, 5180, false);
            let place = Position::new(5.0 * f64::from(i), 0.0);
            world.add_node(
                NodeConfig::ideal(place, adapter),
                Checked::strict(make()).with_twin(make()),
            );
        }
        let data = Some(Process::Fixed(1.0 / 3.0));
        world.set_link_loss(
            0,
            1,
            LinkLoss {
                data,
                response: None,
                heard: 1.0,
            },
        );
        world.add_traffic(
            0,
            Traffic {
                to: MacAddr::local(1),
                category: AccessCategory::BestEffort,
                octets: 50,
                pattern: Pattern::Periodic {
                    period_ns: 10_000_000,
                    phase_ns: 0,
                },
                lifetime_ns: None,
                count: Some(1_000),
            },
        );
        world
    }

    #[test]
    fn every_msdu_arrives_in_one_and_a_half_attempts() {
        let mut w = world(1);
        w.run_until(11_000_000_000);
        assert_eq!((w.flow(0).submitted, w.flow(0).delivered), (1_000, 1_000));
        let attempts = w.protocol(0).inner().attempts as f64 / 1_000.0;
        assert!((attempts - 1.5).abs() < 0.1, "{attempts}");
    }
    // ANCHOR_END: world
}
