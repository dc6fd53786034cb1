//! What the hosts of a cell send each other behind LLC/SNAP with the EtherType
//! [`ETHERTYPE_PROTOCOL`](crate::mac::data::ETHERTYPE_PROTOCOL); numbers have their low octet first.
//!
//! ```text
//! octet  0      1      2 3   4 5   6..10   10
//!      | 0x02 | what | q   | r   | round | slot |
//! what, bit 1 clear: bit 0: leave, bits 2..7: near the borders 0..5 of the cell
//!                                 | view 4 | n | n x (host 6, slot 1) | between cells | a whole MPDU, or nothing
//! what = 2, a request             |
//! what = 3, a claim               | age 1 |
//! what = 6, a visit from a cell   | q 2, r 2
//! what = 7, over a border         | q 2, r 2 | way | a whole MPDU
//! between cells, with bit 7 of n  | open 1   | with bit 6 of n: way, over 1
//! way                             | origin q 2, r 2 | to q 2, r 2 | born 1 | left 1 | lifetime 2
//! ```
//!
//! The first version knew neither "between cells" nor 7; its frames over borders were 6 with an MPDU, which is ignored.

use super::cell::Cell;
use super::table::{MAX_REQUESTS, Promises, View};
use super::way::{Onward, Way};
use frame::MacAddr;

const PROTOCOL: u8 = 2;
const COMMON: usize = 11;
/// What it is.
const VISIT: u8 = 6;
const CROSSING: u8 = 7;
/// Bits beside the number of promises: it says what is open, and there is a way.
const BETWEEN: u8 = 0x80;
const ONWARD: u8 = 0x40;
const WAY_OCTETS: usize = 12;
/// Octets that a report has more where there are slots between cells.
pub const BETWEEN_OCTETS: usize = 1 + WAY_OCTETS + 1;
/// Octets of the longest report in front of a frame.
pub const MAX_REPORT_OCTETS: usize = report_octets(MAX_REQUESTS) + BETWEEN_OCTETS;

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
    /// What only cells with slots between them have.
    pub between: Option<Between>,
}

/// What a report says where there are slots between cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Between {
    /// Borders across which somebody was heard lately, as bits 0 to 5.
    pub open: u8,
    /// The way of the frame behind it, if it goes to another cell or comes from one.
    pub onward: Option<Onward>,
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
    /// In a slot between cells, by the gateway of `from`; the message is about the other cell.
    Crossing {
        /// The slot, 0 to 5.
        slot: u8,
        /// Where it comes from.
        from: Cell,
        /// The way of the frame behind it; `None` if there is none, and the gateway just shows itself.
        way: Option<Way>,
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
            Body::Crossing { slot, way, .. } => (if way.is_some() { CROSSING } else { VISIT }, *slot),
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
                let onward = r.between.and_then(|b| b.onward);
                let bits =
                    if r.between.is_some() { BETWEEN } else { 0 } | if onward.is_some() { ONWARD } else { 0 };
                put(&[promises.len() as u8 | bits]);
                for (host, slot) in promises {
                    put(&host.0);
                    put(&[*slot]);
                }
                r.between.iter().for_each(|b| put(&[b.open]));
                if let Some(Onward { way, over }) = onward {
                    put(&way_octets(&way));
                    put(&[over]);
                }
            }
            Body::Request(r) => r.claim.iter().for_each(|age| put(&[*age])),
            Body::Crossing { from, way, .. } => {
                put(&from.q.to_le_bytes());
                put(&from.r.to_le_bytes());
                way.iter().for_each(|way| put(&way_octets(way)));
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
                let promised = usize::from(count & !(BETWEEN | ONWARD));
                let (list, inner) = list.split_at_checked(7 * promised)?;
                let mut promises = Promises::default();
                for promise in list.as_chunks::<7>().0 {
                    let [a, b, c, d, e, f, slot] = *promise;
                    promises.push(MacAddr([a, b, c, d, e, f]), slot);
                }
                let (between, inner) = between(count & (BETWEEN | ONWARD), inner)?;
                rest = inner;
                Body::Report(Report {
                    slot: *slot,
                    leave: what & 1 == 1,
                    near: what >> 2,
                    view: View(u32::from_le_bytes([*v0, *v1, *v2, *v3])),
                    promises,
                    between,
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
            &VISIT | &CROSSING => {
                let (from, after) = cell(rest)?;
                let (way, after) = match *what {
                    CROSSING => way(after).map(|(way, after)| (Some(way), after))?,
                    // of the first version, or nothing
                    _ => (None, &[][..]),
                };
                rest = after;
                Body::Crossing {
                    slot: *slot,
                    from,
                    way,
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

fn way_octets(way: &Way) -> [u8; WAY_OCTETS] {
    let ([a, b], [c, d]) = (way.origin.q.to_le_bytes(), way.origin.r.to_le_bytes());
    let ([e, f], [g, h]) = (way.to.q.to_le_bytes(), way.to.r.to_le_bytes());
    let [i, j] = way.lifetime.to_le_bytes();
    [a, b, c, d, e, f, g, h, way.born, way.left, i, j]
}

fn cell(octets: &[u8]) -> Option<(Cell, &[u8])> {
    let ([q0, q1, r0, r1], rest) = octets.split_first_chunk::<4>()?;
    let cell = Cell {
        q: i16::from_le_bytes([*q0, *q1]),
        r: i16::from_le_bytes([*r0, *r1]),
    };
    Some((cell, rest))
}

fn way(octets: &[u8]) -> Option<(Way, &[u8])> {
    let (origin, rest) = cell(octets)?;
    let (to, rest) = cell(rest)?;
    let ([born, left, l0, l1], rest) = rest.split_first_chunk::<4>()?;
    let way = Way {
        origin,
        to,
        born: *born,
        left: *left,
        lifetime: u16::from_le_bytes([*l0, *l1]),
    };
    Some((way, rest))
}

/// What `bits` say is there, and what follows it.
fn between(bits: u8, octets: &[u8]) -> Option<(Option<Between>, &[u8])> {
    if bits & BETWEEN == 0 {
        return (bits & ONWARD == 0).then_some((None, octets));
    }
    let (open, mut rest) = octets.split_first()?;
    let mut onward = None;
    if bits & ONWARD != 0 {
        let (way, after) = way(rest)?;
        let (over, after) = after.split_first()?;
        (onward, rest) = (Some(Onward { way, over: *over }), after);
    }
    Some((Some(Between { open: *open, onward }), rest))
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
            between: None,
        }));
        let tail = [5, 1, 2, 3, 4, 1, 1, 2, 3, 4, 5, 6, 7];
        let octets = [&[2, 0x85][..], &head, &tail].concat();
        assert_eq!(report.emit(&mut out), octets);
        assert_eq!(octets.len(), report_octets(1));
        let whole = [&octets[..], b"inside"].concat();
        assert_eq!(Message::parse(&whole), Some((report, &b"inside"[..])));
    }

    const WAY: Way = Way {
        origin: Cell { q: -1, r: 3 },
        to: Cell { q: 260, r: -2 },
        born: 9,
        left: 14,
        lifetime: 0x0102,
    };
    const WAY_SAYS: [u8; WAY_OCTETS] = [0xff, 0xff, 3, 0, 4, 1, 0xfe, 0xff, 9, 14, 2, 1];

    #[test]
    fn over_a_border() {
        let mut out = [0; MAX_REPORT_OCTETS];
        let from = Cell { q: -1, r: 3 };
        let way = Some(WAY);
        let crossing = message(Body::Crossing { slot: 4, from, way });
        let head = [2, 7, 0xfe, 0xff, 3, 0, 4, 3, 2, 1, 4, 0xff, 0xff, 3, 0];
        let octets = [&head[..], &WAY_SAYS].concat();
        assert_eq!(crossing.emit(&mut out), octets);
        let whole = [&octets[..], b"inside"].concat();
        assert_eq!(Message::parse(&whole), Some((crossing, &b"inside"[..])));
        assert_eq!(Message::parse(&octets[..26]), None);
    }

    /// A frame of the first version is a visit: what is in it does not go on.
    #[test]
    fn a_visit() {
        let mut out = [0; MAX_REPORT_OCTETS];
        let from = Cell { q: -1, r: 3 };
        let visit = message(Body::Crossing {
            slot: 4,
            from,
            way: None,
        });
        let octets = [2, 6, 0xfe, 0xff, 3, 0, 4, 3, 2, 1, 4, 0xff, 0xff, 3, 0];
        assert_eq!(visit.emit(&mut out), octets);
        let whole = [&octets[..], b"inside"].concat();
        assert_eq!(Message::parse(&whole), Some((visit, &[][..])));
        assert_eq!(Message::parse(&octets[..14]), None);
    }

    #[test]
    fn a_report_of_a_frame_on_its_way() {
        let mut out = [0; MAX_REPORT_OCTETS];
        let mut promises = Promises::default();
        promises.push(MacAddr([1, 2, 3, 4, 5, 6]), 7);
        let report = |onward| {
            message(Body::Report(Report {
                slot: 5,
                leave: false,
                near: 1,
                view: View(0),
                promises,
                between: Some(Between { open: 0b11, onward }),
            }))
        };
        let head = [2, 4, 0xfe, 0xff, 3, 0, 4, 3, 2, 1, 5, 0, 0, 0, 0];
        let promise = [1, 2, 3, 4, 5, 6, 7];
        let short = [&head[..], &[0x81], &promise, &[3]].concat();
        assert_eq!(report(None).emit(&mut out), short);
        assert_eq!(Message::parse(&short), Some((report(None), &[][..])));
        let onward = Some(Onward {
            way: WAY,
            over: 0b100,
        });
        let long = [&head[..], &[0xc1], &promise, &[3], &WAY_SAYS, &[4]].concat();
        assert_eq!(report(onward).emit(&mut out), long);
        assert_eq!(long.len(), report_octets(1) + BETWEEN_OCTETS);
        let whole = [&long[..], b"inside"].concat();
        assert_eq!(Message::parse(&whole), Some((report(onward), &b"inside"[..])));
        for cut in 0..long.len() {
            assert_eq!(Message::parse(&long[..cut]), None, "{cut}");
        }
        // a way, and nothing of what is open
        let odd = [&head[..], &[0x40], &WAY_SAYS, &[4]].concat();
        assert_eq!(Message::parse(&odd), None);
    }

    proptest! {
        #[test]
        fn any_octets(octets in proptest::collection::vec(0u8..9, 0..60), bits in 0u8..4) {
            let mut octets = octets;
            if let Some(count) = octets.get_mut(15) {
                *count |= bits << 6;
            }
            if let Some(first) = octets.first_mut() {
                *first = PROTOCOL;
            }
            if let Some((message, rest)) = Message::parse(&octets) {
                let mut out = [0; MAX_REPORT_OCTETS];
                let again = message.emit(&mut out);
                // of more promises than there can be, the first count
                let report = octets[1] & 2 == 0;
                if octets[1] != VISIT && (!report || usize::from(octets[15] & 0x3f) <= MAX_REQUESTS) {
                    prop_assert_eq!([again, rest].concat(), octets);
                }
                prop_assert_eq!(Message::parse(again), Some((message, &[][..])));
            }
        }
    }
}
