//! Slotted ALOHA (Roberts 1975) over one-shots: what comes during a slot is sent at the start of the next one,
//! whatever the others do, and nobody answers.

use frame::mac::Data;
use frame::{MacAddr, Rate, Wire};
use radio::{Duration, Event, Instant, Msdu, Protocol, Radio, TxHow};

/// Frames that a station holds at most; more are dropped.
const BACKLOG: usize = 8;

/// One station.
pub struct Aloha {
    me: MacAddr,
    slot: Duration,
    how: TxHow,
    /// Frames that wait for the next slot, and their lengths.
    waiting: [([u8; 256], usize); BACKLOG],
    count: usize,
    next: Option<Instant>,
}

impl Aloha {
    /// A station that sends at `rate` in slots of length `slot`.
    pub fn new(me: MacAddr, slot: Duration, rate: Rate) -> Aloha {
        let how = TxHow::one_shot(rate).no_ack();
        Aloha {
            me,
            slot,
            how,
            waiting: [([0; 256], 0); BACKLOG],
            count: 0,
            next: None,
        }
    }

    /// The first slot boundary after `now`.
    fn boundary(&self, now: Instant) -> Instant {
        Instant::from_ns((now.as_ns() / self.slot.as_ns() + 1) * self.slot.as_ns())
    }

    fn take_in(&mut self, now: Instant, msdu: &Msdu<'_>) {
        let Some((frame, length)) = self.waiting.get_mut(self.count) else {
            return;
        };
        let data = Data::direct(msdu.peer, self.me, MacAddr::ZERO, msdu.payload);
        if let Ok(n) = data.emit(frame) {
            *length = n;
            self.count += 1;
            let boundary = self.boundary(now);
            self.next.get_or_insert(boundary);
        }
    }

    fn send(&mut self, now: Instant, radio: &mut dyn Radio) {
        let (frame, length) = self.waiting[0];
        let token = radio.token();
        radio.request(token, &frame[..length], &self.how);
        self.waiting.rotate_left(1);
        self.count -= 1;
        self.next = (self.count > 0).then(|| self.boundary(now));
    }
}

impl Protocol for Aloha {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Submit(msdu) => self.take_in(now, &msdu),
            Event::Timer => self.send(now, radio),
            Event::Indication(i) => {
                if let Ok(data) = Data::parse(i.frame) {
                    radio.deliver(Msdu::new(data.source(), data.body));
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }
}
