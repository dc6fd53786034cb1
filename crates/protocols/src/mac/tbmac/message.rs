//! What the hosts of a cell send each other behind LLC/SNAP with the EtherType
//! [`ETHERTYPE_PROTOCOL`](crate::mac::data::ETHERTYPE_PROTOCOL); numbers have their low octet first.
//!
//! ```text
//! octet  0      1      2 3   4 5   6..10   10
//!      | 0x02 | what | q   | r   | round | slot |
//! what, bit 1 clear: bit 0: leave, bits 2..7: near the borders 0..5 of the cell
//!                                 | view 4 | n | n x (host 6, slot 1) | a whole MPDU of the host, or nothing
//! what = 2, a request             |
//! what = 3, a claim               | age 1 |
//! what = 6, over a border         | from q 2, r 2 | a whole MPDU of a host of that cell
//! ```

use super::cell::Cell;
use super::table::{MAX_REQUESTS, Promises, View};
use frame::MacAddr;

const PROTOCOL: u8 = 2;
const COMMON: usize = 11;
/// What it is.
const CROSSING: u8 = 6;
/// Octets of the longest report in front of a frame.
pub const MAX_REPORT_OCTETS: usize = report_octets(MAX_REQUESTS);

/// Octets of a report with `promises` promises.
pub const fn report_octets(promises: usize) -> usize {
    COMMON + 4 + 1 + 7 * promises
}

/// What goes in front of every frame in the contention-free period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report {
    /// The slot it is sent in.
    pub slot: u8,
    /// It is the last one: the slot is free from now on.
    pub leave: bool,
    /// Borders of the cell that the sender is near, as bits 0 to 5: it can be the gateway there.
    pub near: u8,
    /// What the sender believes.
    pub view: View,
    /// What it promises.
    pub promises: Promises,
}

/// A frame of the contention period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The slot of the contention period.
    pub slot: u8,
    /// A claim of slot 0 in an empty cell, by a host that has listened for so many rounds.
    pub claim: Option<u8>,
}

impl Request {
    /// The same, as a claim.
    pub(super) const fn claimed(self, age: u8) -> Request {
        Request {
            claim: Some(age),
            ..self
        }
    }
}

/// What it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// In front of every frame of the contention-free period.
    Report(Report),
    /// In the contention period.
    Request(Request),
    /// In a slot between cells, in front of a frame of a host of `from`; the message is about the other cell.
    Crossing {
        /// The slot, 0 to 5.
        slot: u8,
        /// Where it comes from.
        from: Cell,
    },
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The cell that it is about.
    pub cell: Cell,
    /// The round that it was sent in, modulo 2^32.
    pub round: u32,
    /// The rest.
    pub body: Body,
}

impl Message {
    /// Writes it and returns its octets.
    pub fn emit<'o>(&self, out: &'o mut [u8; MAX_REPORT_OCTETS]) -> &'o [u8] {
        let mut len = 0;
        let mut put = |octets: &[u8]| {
            out[len..len + octets.len()].copy_from_slice(octets);
            len += octets.len();
        };
        let (what, slot) = match &self.body {
            Body::Report(r) => (u8::from(r.leave) | r.near << 2, r.slot),
            Body::Request(r) => (2 + u8::from(r.claim.is_some()), r.slot),
            Body::Crossing { slot, .. } => (CROSSING, *slot),
        };
        put(&[PROTOCOL, what]);
        put(&self.cell.q.to_le_bytes());
        put(&self.cell.r.to_le_bytes());
        put(&self.round.to_le_bytes());
        put(&[slot]);
        match &self.body {
            Body::Report(r) => {
                put(&r.view.0.to_le_bytes());
                let promises = r.promises.as_slice();
                put(&[promises.len() as u8]);
                for (host, slot) in promises {
                    put(&host.0);
                    put(&[*slot]);
                }
            }
            Body::Request(r) => r.claim.iter().for_each(|age| put(&[*age])),
            Body::Crossing { from, .. } => {
                put(&from.q.to_le_bytes());
                put(&from.r.to_le_bytes());
            }
        }
        &out[..len]
    }

    /// The message and what follows it; `None` if it is another protocol, unknown, or cut off.
    pub fn parse(octets: &[u8]) -> Option<(Message, &[u8])> {
        let ([protocol, what, q0, q1, r0, r1, k0, k1, k2, k3, slot], mut rest) =
            octets.split_first_chunk::<COMMON>()?;
        if *protocol != PROTOCOL {
            return None;
        }
        let body = match what {
            what if what & 2 == 0 => {
                let ([v0, v1, v2, v3, count], list) = rest.split_first_chunk::<5>()?;
                let (list, inner) = list.split_at_checked(7 * usize::from(*count))?;
                let mut promises = Promises::default();
                for promise in list.as_chunks::<7>().0 {
                    let [a, b, c, d, e, f, slot] = *promise;
                    promises.push(MacAddr([a, b, c, d, e, f]), slot);
                }
                rest = inner;
                Body::Report(Report {
                    slot: *slot,
                    leave: what & 1 == 1,
                    near: what >> 2,
                    view: View(u32::from_le_bytes([*v0, *v1, *v2, *v3])),
                    promises,
                })
            }
            2 | 3 => {
                let claim = match (what, rest.split_first()) {
                    (3, Some((age, after))) => {
                        rest = after;
                        Some(*age)
                    }
                    (3, None) => return None,
                    _ => None,
                };
                Body::Request(Request { slot: *slot, claim })
            }
            &CROSSING => {
                let ([q0, q1, r0, r1], inner) = rest.split_first_chunk::<4>()?;
                rest = inner;
                Body::Crossing {
                    slot: *slot,
                    from: Cell {
                        q: i16::from_le_bytes([*q0, *q1]),
                        r: i16::from_le_bytes([*r0, *r1]),
                    },
                }
            }
            _ => return None,
        };
        let message = Message {
            cell: Cell {
                q: i16::from_le_bytes([*q0, *q1]),
                r: i16::from_le_bytes([*r0, *r1]),
            },
            round: u32::from_le_bytes([*k0, *k1, *k2, *k3]),
            body,
        };
        Some((message, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(body: Body) -> Message {
        Message {
            cell: Cell { q: -2, r: 3 },
            round: 0x0102_0304,
            body,
        }
    }

    #[test]
    fn octets() {
        let mut out = [0; MAX_REPORT_OCTETS];
        let claim = message(Body::Request(Request {
            slot: 1,
            claim: Some(9),
        }));
        let head = [0xfe, 0xff, 3, 0, 4, 3, 2, 1];
        assert_eq!(claim.emit(&mut out), [&[2, 3][..], &head, &[1, 9]].concat());
        let mut promises = Promises::default();
        promises.push(MacAddr([1, 2, 3, 4, 5, 6]), 7);
        let report = message(Body::Report(Report {
            slot: 5,
            leave: true,
            near: 0b10_0001,
            view: View(0x0403_0201),
            promises,
        }));
        let tail = [5, 1, 2, 3, 4, 1, 1, 2, 3, 4, 5, 6, 7];
        let octets = [&[2, 0x85][..], &head, &tail].concat();
        assert_eq!(report.emit(&mut out), octets);
        assert_eq!(octets.len(), report_octets(1));
        let whole = [&octets[..], b"inside"].concat();
        assert_eq!(Message::parse(&whole), Some((report, &b"inside"[..])));
    }

    #[test]
    fn over_a_border() {
        let mut out = [0; MAX_REPORT_OCTETS];
        let from = Cell { q: -1, r: 3 };
        let crossing = message(Body::Crossing { slot: 4, from });
        let head = [2, 6, 0xfe, 0xff, 3, 0, 4, 3, 2, 1];
        let octets = [&head[..], &[4, 0xff, 0xff, 3, 0]].concat();
        assert_eq!(crossing.emit(&mut out), octets);
        let whole = [&octets[..], b"inside"].concat();
        assert_eq!(Message::parse(&whole), Some((crossing, &b"inside"[..])));
        assert_eq!(Message::parse(&octets[..14]), None);
    }

    proptest! {
        #[test]
        fn any_octets(octets in proptest::collection::vec(0u8..9, 0..60)) {
            let mut octets = octets;
            if let Some(first) = octets.first_mut() {
                *first = PROTOCOL;
            }
            if let Some((message, rest)) = Message::parse(&octets) {
                let mut out = [0; MAX_REPORT_OCTETS];
                let again = message.emit(&mut out);
                // of more promises than there can be, the first count
                if octets.get(15).is_none_or(|n| usize::from(*n) <= MAX_REQUESTS) {
                    prop_assert_eq!([again, rest].concat(), octets);
                }
                prop_assert_eq!(Message::parse(again), Some((message, &[][..])));
            }
        }
    }
}
