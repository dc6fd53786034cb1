//! The access point's side: answers open authentication and association (IEEE 802.11-2016, 11.3).

use frame::element::Elements;
use frame::mac::{Aid, Header, Kind};
use frame::mgmt::{AssociationResponse, Authentication, Capability, MgmtHeader, StatusCode};
use frame::{MacAddr, Rate, Wire};
use radio::{Event, Indication, Instant, Protocol, Queue, Radio, Token, TxHow};

/// Answers that may be without confirm at a time.
const OPEN: usize = 16;

/// Lets every station in; everything else passes to the protocol above.
#[derive(Clone, Debug)]
pub struct Gate<P> {
    above: P,
    me: MacAddr,
    rate: Rate,
    open: [Option<Token>; OPEN],
    admitted: u64,
    next_aid: u16,
}

impl<P: Protocol> Gate<P> {
    /// `me` is the BSSID; answers go at `rate`.
    pub const fn new(me: MacAddr, rate: Rate, above: P) -> Gate<P> {
        Gate {
            above,
            me,
            rate,
            open: [None; OPEN],
            admitted: 0,
            next_aid: 1,
        }
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        &self.above
    }

    /// Associations granted.
    pub fn admitted(&self) -> u64 {
        self.admitted
    }

    /// Answers a frame that asks for something here; false if it does not.
    fn answer(&mut self, i: &Indication<'_>, radio: &mut dyn Radio) -> bool {
        let frame = i.frame;
        let Ok(header) = Header::parse(frame) else {
            return false;
        };
        let Some(station) = header.transmitter().filter(|_| header.receiver() == self.me) else {
            return false;
        };
        let to = MgmtHeader::new(station, self.me, self.me);
        let mut out = [0; 64];
        let n = match header.kind() {
            Kind::AUTHENTICATION => {
                let open = Authentication::parse(frame).is_ok_and(|a| a.algorithm == 0 && a.transaction == 1);
                let answer = Authentication {
                    header: to,
                    algorithm: 0,
                    transaction: 2,
                    status: if open {
                        StatusCode::SUCCESS
                    } else {
                        StatusCode::UNSPECIFIED
                    },
                    elements: Elements::new(&[]),
                };
                answer.emit(&mut out)
            }
            Kind::ASSOCIATION_REQUEST => {
                self.admitted += 1;
                let aid = Aid(self.next_aid | 0xc000);
                self.next_aid = self.next_aid % 2_007 + 1;
                let answer = AssociationResponse {
                    header: to,
                    capability: Capability::ESS,
                    status: StatusCode::SUCCESS,
                    aid,
                    elements: Elements::new(&[]),
                };
                answer.emit(&mut out)
            }
            _ => return false,
        };
        let free = self.open.iter_mut().find(|t| t.is_none());
        if let (Ok(n), Some(place)) = (n, free) {
            let token = radio.token();
            *place = Some(token);
            let how = TxHow::multi_shot(self.rate, 4)
                .queue(Queue::Voice)
                .adapter(i.adapter);
            radio.request(token, &out[..n], &how);
        }
        true
    }
}

impl<P: Protocol> Protocol for Gate<P> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Confirm(c) => match self.open.iter_mut().find(|t| **t == Some(c.token)) {
                Some(place) => *place = None,
                None => self.above.handle(now, event, radio),
            },
            Event::Indication(i) if self.answer(&i, radio) => {}
            _ => self.above.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.above.deadline()
    }
}
