//! A protocol that runs in the simulator and in the kernel alike: frames to one peer, so many of them at a time.

use frame::MacAddr;
use radio::{Confirm, Event, Instant, Outcome, Protocol, Radio, TxHow};

/// See the [module](self).
pub struct Shots {
    pub me: MacAddr,
    pub to: MacAddr,
    pub how: TxHow,
    /// Octets behind the header.
    pub octets: usize,
    /// Frames that are open at a time.
    pub window: u32,
    /// Frames in all.
    pub count: u32,
    requested: Vec<(u64, Instant)>,
    /// From request to confirm, and the confirm.
    pub ends: Vec<(u64, Confirm)>,
}

impl Shots {
    pub fn new(me: MacAddr, to: MacAddr, how: TxHow, window: u32, count: u32) -> Shots {
        Shots {
            me,
            to,
            how,
            octets: 100,
            window,
            count,
            requested: Vec::new(),
            ends: Vec::new(),
        }
    }

    pub fn attempts(&self) -> u64 {
        self.ends.iter().map(|(_, c)| u64::from(c.attempts)).sum()
    }

    pub fn acked(&self) -> u64 {
        self.ends.iter().filter(|(_, c)| c.outcome.is_acked()).count() as u64
    }

    fn next(&mut self, now: Instant, radio: &mut dyn Radio) {
        let number = (self.ends.len() + self.requested.len()) as u32;
        if number >= self.count {
            return;
        }
        let mut frame = vec![0x08, 0, 0, 0];
        for address in [self.to, self.me, MacAddr::ZERO] {
            frame.extend(address.0);
        }
        frame.extend(((number << 4) as u16).to_le_bytes());
        frame.resize(frame.len() + self.octets, 0);
        let token = radio.token();
        self.requested.push((token.0, now));
        radio.request(token, &frame, &self.how);
    }
}

impl Protocol for Shots {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => (0..self.window).for_each(|_| self.next(now, radio)),
            Event::Confirm(c) => {
                let at = self.requested.iter().position(|r| r.0 == c.token.0).unwrap();
                let (_, since) = self.requested.swap_remove(at);
                self.ends.push((now.since(since).as_ns(), c));
                // a host that is about to end refuses all that is new
                if !matches!(c.outcome, Outcome::Refused(_)) {
                    self.next(now, radio);
                }
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
