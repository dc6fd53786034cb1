//! What is on the air: the element in the beacons, and the frame that asks.
//!
//! Both are marked as a vendor's, with an organisation whose local bit is set, so that it is nobody's. All numbers are
//! little endian, as those of 802.11.

use super::{MAX_MEMBERS, Reason};
use crate::mac::tdma::watch::Report;
use frame::element::{Element, Elements};
use frame::mac::SequenceControl;
use frame::mgmt::{Action, MgmtHeader};
use frame::{MacAddr, Wire};

/// Organisation of elements and frames; the local bit is set.
pub const OUI: [u8; 3] = [0x02, 0x73, 0x64];
/// Action category of vendors (IEEE 802.11-2016, Table 9-47).
const VENDOR_SPECIFIC: u8 = 127;
/// Types behind the organisation.
const LIST: u8 = 1;
const REPORTS: u8 = 2;
const ASK: u8 = 3;

/// Refusals in one beacon.
pub const MAX_REFUSALS: usize = 4;
/// Reports of overruns in one beacon with a list.
pub const MAX_REPORTS: usize = 4;

const MEMBER_OCTETS: usize = 6 + 2 + 2;
const REFUSAL_OCTETS: usize = 6 + 1;
const REPORT_OCTETS: usize = 6 + 1 + 2;
const FIXED_OCTETS: usize = 1 + 2 + 8 + 8 + 3;
const MAX_BODY: usize =
    FIXED_OCTETS + MAX_MEMBERS * MEMBER_OCTETS + MAX_REFUSALS * REFUSAL_OCTETS + MAX_REPORTS * REPORT_OCTETS;

/// Octets of the longest element with a list, id and length included.
pub const MAX_LIST_OCTETS: usize = 5 + MAX_BODY;
/// Octets of the element with one report and no list.
pub const ONE_REPORT_OCTETS: usize = 5 + 2 + REPORT_OCTETS;
/// Octets of a frame that asks, with FCS.
pub const ASK_OCTETS: usize = 24 + 1 + ASK_BODY + 4;

const ASK_BODY: usize = 3 + 1 + 1 + 2 + 2 + 4 * 4;

// an element has at most 252 octets behind its organisation
const _: () = assert!(MAX_BODY <= 252);

/// Octets of a payload at most, in a list.
pub const MAX_OCTETS: u16 = 0x0fff;
/// Slots of a flow in a cycle at most, in a list.
pub const MAX_SLOTS_EACH: u8 = 16;

/// A member as the list has it: all that slots follow from. On the air a flow is 16 bits, its octets in the lower twelve and
/// its slots less one in the upper four.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its address.
    pub address: MacAddr,
    /// Octets of its payload to the coordinator, at most [`MAX_OCTETS`].
    pub up_octets: u16,
    /// Octets of the coordinator's payload to it, at most [`MAX_OCTETS`]; 0: it has no slot for that.
    pub down_octets: u16,
    /// Slots in a cycle for the one, 1 to [`MAX_SLOTS_EACH`]; spread over it if there is a number above 1 in the list.
    pub up_slots: u8,
    /// Slots in a cycle for the other.
    pub down_slots: u8,
}

fn flow(octets: u16, slots: u8) -> [u8; 2] {
    let more = u16::from(slots.clamp(1, MAX_SLOTS_EACH) - 1);
    (octets.min(MAX_OCTETS) | more << 12).to_le_bytes()
}

fn octets_and_slots(flow: u16) -> (u16, u8) {
    (flow & MAX_OCTETS, (flow >> 12) as u8 + 1)
}

/// The members, in the order of their slots.
pub type Roster = [Option<Entry>; MAX_MEMBERS];

/// The list of members, and when it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct List {
    /// Counts changes, modulo 2^16.
    pub version: u16,
    /// The first cycle in which it holds.
    pub starts: u64,
    /// The first cycle in which another list may hold.
    pub until: u64,
    /// Who is in it.
    pub roster: Roster,
}

/// Everything in a beacon beyond its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Word {
    /// The newest list.
    pub list: Option<List>,
    /// Who was refused, and why.
    pub refusals: [Option<(MacAddr, Reason)>; MAX_REFUSALS],
    /// Who was heard outside of its slots.
    pub reports: [Option<Report>; MAX_REPORTS],
}

impl Word {
    /// Nothing.
    pub const EMPTY: Word = Word {
        list: None,
        refusals: [None; MAX_REFUSALS],
        reports: [None; MAX_REPORTS],
    };

    /// Finds the word in the elements of a beacon.
    pub fn find(elements: Elements<'_>) -> Option<Word> {
        elements.iter().find_map(|e| match e {
            // the same organisation says something of clocks, too
            Element::Vendor(v) if v.oui == OUI => Word::parse(v.body),
            _ => None,
        })
    }

    /// Reads the body of the element.
    pub fn parse(body: &[u8]) -> Option<Word> {
        let mut r = Cursor(body);
        let mut word = Word::EMPTY;
        let reports = match r.u8()? {
            LIST => {
                let (version, starts, until) = (r.u16()?, r.u64()?, r.u64()?);
                let [members, refusals, reports] = r.array()?.map(usize::from);
                if members > MAX_MEMBERS || refusals > MAX_REFUSALS {
                    return None;
                }
                let mut roster = [None; MAX_MEMBERS];
                for place in &mut roster[..members] {
                    let address = MacAddr(r.array()?);
                    let (up_octets, up_slots) = octets_and_slots(r.u16()?);
                    let (down_octets, down_slots) = octets_and_slots(r.u16()?);
                    *place = Some(Entry {
                        address,
                        up_octets,
                        down_octets,
                        up_slots,
                        down_slots,
                    });
                }
                for place in &mut word.refusals[..refusals] {
                    *place = Some((MacAddr(r.array()?), Reason::from_code(r.u8()?)?));
                }
                word.list = Some(List {
                    version,
                    starts,
                    until,
                    roster,
                });
                reports
            }
            REPORTS => usize::from(r.u8()?),
            _ => return None,
        };
        if reports > MAX_REPORTS {
            return None;
        }
        for place in &mut word.reports[..reports] {
            *place = Some(Report {
                address: MacAddr(r.array()?),
                count: r.u8()?,
                off_us: r.u16()? as i16,
            });
        }
        Some(word)
    }

    /// Writes the body of the element, and tells its octets. Without a list there is one report at most.
    pub fn emit(&self, out: &mut [u8; MAX_BODY_OCTETS]) -> usize {
        let mut w = Writer { out, at: 0 };
        let reports = self.reports.iter().flatten();
        let Some(list) = &self.list else {
            w.put(&[REPORTS, reports.clone().take(1).count() as u8]);
            reports.take(1).for_each(|report| w.report(report));
            return w.at;
        };
        w.put(&[LIST]);
        w.put(&list.version.to_le_bytes());
        w.put(&list.starts.to_le_bytes());
        w.put(&list.until.to_le_bytes());
        let members = list.roster.iter().flatten();
        let refusals = self.refusals.iter().flatten();
        let counts = [
            members.clone().count(),
            refusals.clone().count(),
            reports.clone().count(),
        ];
        w.put(&counts.map(|n| n as u8));
        for m in members {
            w.put(&m.address.0);
            w.put(&flow(m.up_octets, m.up_slots));
            w.put(&flow(m.down_octets, m.down_slots));
        }
        for (address, reason) in refusals {
            w.put(&address.0);
            w.put(&[*reason as u8]);
        }
        reports.for_each(|report| w.report(report));
        w.at
    }
}

/// Octets of the longest body of the element.
pub const MAX_BODY_OCTETS: usize = MAX_BODY;

/// What a station asks for. A message each way in each period; attempts fail independently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    /// Octets of its payload to the coordinator.
    pub up_octets: u16,
    /// Octets of the coordinator's payload to it; 0: none.
    pub down_octets: u16,
    /// Shortest time between two messages of one direction, in microseconds.
    pub period_us: u32,
    /// By when a message has to be there, in microseconds.
    pub deadline_us: u32,
    /// Attempts out of 10^6 that fail.
    pub per_ppm: u32,
    /// Messages out of 10^9 that may miss, above 0.
    pub target_ppb: u32,
}

/// What is in a frame that asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// It wants slots.
    Join(Wish),
    /// It does not want them any more.
    Leave,
}

impl Ask {
    /// Writes the frame and returns its octets, without FCS.
    pub fn emit(self, me: MacAddr, to: MacAddr, sequence: u16, out: &mut [u8; ASK_OCTETS]) -> &[u8] {
        let mut body = [0; ASK_BODY];
        let mut w = Writer {
            out: &mut body,
            at: 0,
        };
        let (join, wish) = match self {
            Ask::Join(wish) => (1, wish),
            Ask::Leave => (0, Wish::NOTHING),
        };
        w.put(&OUI);
        w.put(&[ASK, join]);
        w.put(&wish.up_octets.to_le_bytes());
        w.put(&wish.down_octets.to_le_bytes());
        for number in [wish.period_us, wish.deadline_us, wish.per_ppm, wish.target_ppb] {
            w.put(&number.to_le_bytes());
        }
        let mut header = MgmtHeader::new(to, me, to);
        header.sequence = SequenceControl::new(sequence & 0xfff, 0);
        let action = Action {
            header,
            category: VENDOR_SPECIFIC,
            body: &body,
        };
        let n = action.emit(out).expect("the buffer is for it");
        &out[..n]
    }

    /// Reads a frame: who asks for what.
    pub fn parse(mpdu: &[u8]) -> Option<(MacAddr, Ask)> {
        let action = Action::parse(mpdu).ok()?;
        let mut r = Cursor(action.body);
        if action.category != VENDOR_SPECIFIC || r.array()? != OUI || r.u8()? != ASK {
            return None;
        }
        let join = r.u8()?;
        let wish = Wish {
            up_octets: r.u16()?,
            down_octets: r.u16()?,
            period_us: r.u32()?,
            deadline_us: r.u32()?,
            per_ppm: r.u32()?,
            target_ppb: r.u32()?,
        };
        let ask = match join {
            0 => Ask::Leave,
            _ => Ask::Join(wish),
        };
        Some((action.header.source, ask))
    }
}

impl Wish {
    const NOTHING: Wish = Wish {
        up_octets: 0,
        down_octets: 0,
        period_us: 0,
        deadline_us: 0,
        per_ppm: 0,
        target_ppb: 0,
    };
}

/// Takes octets from the front.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

struct Writer<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, octets: &[u8]) {
        self.out[self.at..][..octets.len()].copy_from_slice(octets);
        self.at += octets.len();
    }

    fn report(&mut self, report: &Report) {
        self.put(&report.address.0);
        self.put(&[report.count]);
        self.put(&report.off_us.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::element::Vendor;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn entry() -> impl Strategy<Value = Entry> {
        let flow = || (0..=MAX_OCTETS, 1..=MAX_SLOTS_EACH);
        (any::<[u8; 6]>(), flow(), flow()).prop_map(|(a, up, down)| Entry {
            address: MacAddr(a),
            up_octets: up.0,
            down_octets: down.0,
            up_slots: up.1,
            down_slots: down.1,
        })
    }

    fn report() -> impl Strategy<Value = Report> {
        (any::<[u8; 6]>(), any::<u8>(), any::<i16>()).prop_map(|(a, count, off_us)| Report {
            address: MacAddr(a),
            count,
            off_us,
        })
    }

    /// The first values, and then nothing.
    fn first<T: Copy, const N: usize>(values: &[T]) -> [Option<T>; N] {
        core::array::from_fn(|i| values.get(i).copied())
    }

    proptest! {
        #[test]
        fn there_and_back(
            head: (u16, u64, u64),
            members in proptest::collection::vec(entry(), 0..=MAX_MEMBERS),
            refused in proptest::collection::vec((any::<[u8; 6]>(), 1u8..=5), 0..=MAX_REFUSALS),
            reports in proptest::collection::vec(report(), 0..=MAX_REPORTS),
        ) {
            let refusals: Vec<_> = refused.iter().map(|(a, r)| (MacAddr(*a), Reason::from_code(*r).unwrap())).collect();
            let (version, starts, until) = head;
            let list = Some(List { version, starts, until, roster: first(&members) });
            let word = Word { list, refusals: first(&refusals), reports: first(&reports) };
            let mut body = [0; MAX_BODY_OCTETS];
            let n = word.emit(&mut body);
            prop_assert_eq!(Word::parse(&body[..n]), Some(word));
            for cut in 0..n {
                prop_assert_eq!(Word::parse(&body[..cut]), None, "cut at {}", cut);
            }
            // without a list one report fits, as it is counted in the slot
            let short = Word { list: None, refusals: first(&[]), ..word };
            let n = short.emit(&mut body);
            prop_assert!(5 + n <= ONE_REPORT_OCTETS);
            let read = Word::parse(&body[..n]).unwrap();
            prop_assert_eq!(read.reports, first(&reports[..reports.len().min(1)]));
        }

        #[test]
        fn an_ask_there_and_back(me: [u8; 6], number: u16, octets: (u16, u16), rest: [u32; 4]) {
            let [period_us, deadline_us, per_ppm, target_ppb] = rest;
            let (up_octets, down_octets) = octets;
            let wish = Wish { up_octets, down_octets, period_us, deadline_us, per_ppm, target_ppb };
            for ask in [Ask::Join(wish), Ask::Leave] {
                let mut out = [0; ASK_OCTETS];
                let mpdu = ask.emit(MacAddr(me), MacAddr::local(1), number, &mut out);
                prop_assert_eq!(mpdu.len() + 4, ASK_OCTETS);
                prop_assert_eq!(Ask::parse(mpdu), Some((MacAddr(me), ask)));
            }
        }

        #[test]
        fn any_octets(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = (Word::parse(&body), Ask::parse(&body), Word::find(Elements::new(&body)));
        }
    }

    #[test]
    fn others_are_not_ours() {
        let foreign = Vendor {
            oui: [0, 0x50, 0xf2],
            body: &[2, 0],
        };
        let mut octets = [0; 16];
        let n = foreign.emit(&mut octets).unwrap();
        assert_eq!(Word::find(Elements::new(&octets[..n])), None);
        let ours = Vendor {
            oui: OUI,
            body: &[2, 0],
        };
        let m = ours.emit(&mut octets[n..]).unwrap();
        assert_eq!(Word::find(Elements::new(&octets[..n + m])), Some(Word::EMPTY));
    }
}
