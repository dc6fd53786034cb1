//! Slotted ALOHA over confirmed one-shots (Abramson 1970; Roberts 1975): time is cut into slots, and whoever has a
//! frame sends it in the next slot with a fixed probability, until an ACK comes.

use frame::Rate;
use protocols::mac::data::{ETHERTYPE_PAYLOAD, Framer, Identity, Received};
use protocols::mac::overlay::Access;
use radio::Attribute::{CarrierSense, Edca, VirtualCarrierSense};
use radio::{AdapterId, Duration, Event, Instant, Msdu, Protocol, Queue, Radio, Token, TxHow};

/// One station. It keeps one MSDU; what is submitted before that one is through is lost.
pub struct SlottedAloha {
    framer: Framer,
    slot: Duration,
    /// Probability of sending in a slot, in units of 1/65536.
    chance: u64,
    dice: u64,
    next_slot: Option<Instant>,
    frame: [u8; 256],
    octets: usize,
    sending: Option<Token>,
}

impl SlottedAloha {
    /// Slots of length `slot` on the host's clock; stations need different `seed`s.
    pub fn new(identity: Identity, slot: Duration, chance: u16, seed: u64) -> Self {
        SlottedAloha {
            framer: Framer::new(identity, false, ETHERTYPE_PAYLOAD),
            slot,
            chance: chance.into(),
            dice: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            next_slot: None,
            frame: [0; 256],
            octets: 0,
            sending: None,
        }
    }

    /// Whether a frame waits or is on its way.
    pub fn is_backlogged(&self) -> bool {
        self.octets > 0
    }

    /// True with the probability `chance` (xorshift; Marsaglia 2003).
    fn dares(&mut self) -> bool {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice >> 48 < self.chance
    }

    fn slot_begins(&mut self, now: Instant, radio: &mut dyn Radio) {
        let next = Instant::ZERO + self.slot.times(now.as_ns() / self.slot.as_ns() + 1);
        self.next_slot = Some(next);
        if self.is_backlogged() && self.sending.is_none() && self.dares() {
            let token = *self.sending.insert(radio.token());
            let how = TxHow::one_shot(Rate::OFDM_6).expires(next);
            radio.request(token, &self.frame[..self.octets], &how);
        }
    }
}

impl Protocol for SlottedAloha {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                // ALOHA does not listen before it talks
                let access = Access::without_backoff(Queue::BestEffort, 1);
                let edca = Edca(access.queue, access.params);
                for attribute in [CarrierSense(false), VirtualCarrierSense(false), edca] {
                    let token = radio.token();
                    radio.set(token, AdapterId::FIRST, attribute);
                }
                self.next_slot = Some(now);
            }
            Event::Timer => self.slot_begins(now, radio),
            Event::Submit(m) if !self.is_backlogged() => {
                let mpdu = &mut self.frame;
                let framed = self.framer.frame(m.peer, m.category, false, &[], m.payload, mpdu);
                self.octets = framed.map_or(0, |mpdu| mpdu.len());
            }
            Event::Confirm(c) if self.sending == Some(c.token) => {
                self.sending = None;
                if c.outcome.is_acked() {
                    self.octets = 0;
                }
            }
            Event::Indication(i) => match Received::parse(i.frame) {
                Some(r) if r.is_for(self.framer.identity().me) => {
                    radio.deliver(Msdu::new(r.source, r.payload))
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_slot
    }
}
