//! Requests that are not confirmed yet: held back, or in the kernel. A fixed pool, with room for each frame.
//!
//! A status comes back as the frame itself, so it is matched by its octets, all but the Duration field of 802.11, which the
//! kernel fills in; an Ethernet frame comes back as it was. Of equal frames the one that was sent first is meant. Frames whose status did not come in time
//! stay known for as long again: a status that fits one of them is *late*, and belongs to nobody. It could be that
//! of an equal frame sent since, whose status then counts as lost; better unknown than wrong.

use super::confirm::HEAD;
use radio::{Confirm, Instant, MAX_FRAME_OCTETS, Outcome, Plane, Stamps, Token, TxHow};

/// Octets of the longest radiotap header that is put before a frame.
pub(super) const MAX_RADIOTAP_OCTETS: usize = 16;
const ROOM: usize = MAX_RADIOTAP_OCTETS + MAX_FRAME_OCTETS;
/// Octets that come back otherwise than they were sent.
type Gap = std::ops::Range<usize>;
/// The Duration/ID field (IEEE 802.11-2016, 9.2.4.2).
const DURATION: Gap = 2..4;
/// Of an Ethernet frame there are none.
const NONE: Gap = 0..0;

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// With us, until `not_before`.
    Held,
    /// With the kernel.
    Sent,
}

/// One request.
#[derive(Debug)]
pub(super) struct Flight {
    pub state: State,
    pub token: Token,
    pub how: TxHow,
    /// Whether its receiver was asked for an ACK.
    pub expects_ack: bool,
    /// Its traffic identifier; 0 if it has none.
    pub tid: u8,
    /// When something is due: its release if it is held, its end as unknown if it is sent.
    pub due: Instant,
    pub stamps: Stamps,
    /// Order of arrival.
    order: u64,
    radiotap: usize,
    length: usize,
    octets: Box<[u8; ROOM]>,
}

impl Flight {
    /// What goes to the socket: radiotap header and frame, or an Ethernet frame alone.
    pub fn packet(&self) -> &[u8] {
        &self.octets[..self.length]
    }

    /// The frame.
    pub fn frame_mut(&mut self) -> &mut [u8] {
        &mut self.octets[self.radiotap..self.length]
    }

    fn frame(&self) -> &[u8] {
        &self.octets[self.radiotap..self.length]
    }

    /// An Ethernet frame has no radiotap header.
    fn gap(&self) -> Gap {
        if self.radiotap == 0 { NONE } else { DURATION }
    }

    /// Its confirm, with the outcome alone.
    pub fn ends(&self, outcome: Outcome) -> Confirm {
        let rate = self.how.series.as_slice()[0].rate;
        Confirm {
            stamps: self.stamps,
            ..Confirm::without_air(self.token, outcome, rate)
        }
    }
}

/// A request that ended as unknown, as long as its status may still come.
#[derive(Debug, Clone, Copy)]
struct Overdue {
    adapter: u8,
    length: usize,
    hash: u64,
    /// The same of its head alone.
    head: u64,
    until: Instant,
}

/// What came back of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen<'a> {
    /// All of it.
    Frame(&'a [u8]),
    /// Its first octets, zeroes behind a shorter one, and its length.
    Head(&'a [u8; HEAD], usize),
    /// All of an Ethernet frame.
    Ethernet(&'a [u8]),
}

/// All of them.
#[derive(Debug)]
pub(super) struct Flights {
    pool: Vec<Flight>,
    overdue: Vec<Overdue>,
    used: usize,
    arrivals: u64,
}

/// What a status belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// The request with this index.
    Flight(usize),
    /// One that has ended as unknown.
    Late,
    /// Nothing of ours.
    None,
}

impl Flights {
    pub fn new(room: u16) -> Flights {
        let blank = || Flight {
            state: State::Free,
            token: Token(0),
            how: TxHow::one_shot(frame::Rate::OFDM_6),
            expects_ack: false,
            tid: 0,
            due: Instant::MAX,
            stamps: Stamps::NONE,
            order: 0,
            radiotap: 0,
            length: 0,
            octets: Box::new([0; ROOM]),
        };
        Flights {
            pool: (0..room).map(|_| blank()).collect(),
            overdue: Vec::with_capacity(room.into()),
            used: 0,
            arrivals: 0,
        }
    }

    /// Takes a request in and gives its index; `None` if there is no room. `write` writes radiotap header and frame
    /// and tells the octets of the header and of both.
    pub fn take(
        &mut self,
        token: Token,
        how: &TxHow,
        t1: Instant,
        write: impl FnOnce(&mut [u8]) -> Option<(usize, usize)>,
    ) -> Option<usize> {
        let index = self.pool.iter().position(|f| f.state == State::Free)?;
        let f = &mut self.pool[index];
        let (radiotap, length) = write(&mut f.octets[..])?;
        f.state = State::Held;
        f.token = token;
        f.how = *how;
        f.due = how.not_before.unwrap_or(Instant::ZERO);
        f.stamps = Stamps::NONE;
        f.stamps.host(Plane::T1, t1);
        f.order = self.arrivals;
        f.radiotap = radiotap;
        f.length = length;
        self.arrivals += 1;
        self.used += 1;
        Some(index)
    }

    pub fn get(&self, index: usize) -> &Flight {
        &self.pool[index]
    }

    pub fn get_mut(&mut self, index: usize) -> &mut Flight {
        &mut self.pool[index]
    }

    /// Ends a request.
    pub fn release(&mut self, index: usize) {
        let f = &mut self.pool[index];
        debug_assert!(f.state != State::Free);
        f.state = State::Free;
        self.used -= 1;
    }

    /// Ends a request whose status did not come; until `until` it may still.
    pub fn overdue(&mut self, index: usize, until: Instant) {
        let f = &self.pool[index];
        if self.overdue.len() == self.overdue.capacity() {
            self.overdue.remove(0);
        }
        self.overdue.push(Overdue {
            adapter: f.how.adapter.0,
            length: f.frame().len(),
            hash: hash(f.frame(), f.gap()),
            head: hash(&head(f.frame()), f.gap()),
            until,
        });
        self.release(index);
    }

    /// Requests that are not confirmed.
    #[cfg(test)]
    pub fn open(&self) -> usize {
        self.used
    }

    /// The open request with this token.
    pub fn find(&self, token: Token) -> Option<usize> {
        self.position(|f| f.token == token)
    }

    /// Any open one for which this holds, the first to come first.
    pub fn position(&self, holds: impl Fn(&Flight) -> bool) -> Option<usize> {
        if self.used == 0 {
            return None;
        }
        let open = self.pool.iter().enumerate();
        open.filter(|(_, f)| f.state != State::Free && holds(f))
            .min_by_key(|(_, f)| f.order)
            .map(|(i, _)| i)
    }

    /// How many open ones there are for which this holds.
    pub fn count(&self, holds: impl Fn(&Flight) -> bool) -> usize {
        self.pool
            .iter()
            .filter(|f| f.state != State::Free && holds(f))
            .count()
    }

    /// When something is due next of those for which this holds.
    pub fn next_due(&self, holds: impl Fn(&Flight) -> bool) -> Option<Instant> {
        if self.used == 0 {
            return None;
        }
        let open = self.pool.iter().filter(|f| f.state != State::Free && holds(f));
        open.map(|f| f.due).min()
    }

    /// What a frame that came back from `adapter` at `now` belongs to.
    pub fn match_seen(&mut self, adapter: u8, seen: Seen<'_>, now: Instant) -> Match {
        self.overdue.retain(|o| o.until > now);
        if !self.overdue.is_empty() {
            // Once for all of them.
            let (length, seen_hash) = match seen {
                Seen::Frame(frame) => (frame.len(), hash(frame, DURATION)),
                Seen::Head(head, length) => (length, hash(head, DURATION)),
                Seen::Ethernet(frame) => (frame.len(), hash(frame, NONE)),
            };
            let known = |o: &Overdue| match seen {
                Seen::Frame(_) | Seen::Ethernet(_) => o.hash,
                Seen::Head(..) => o.head,
            };
            let late = |o: &Overdue| (o.adapter, o.length, known(o)) == (adapter, length, seen_hash);
            if let Some(i) = self.overdue.iter().position(late) {
                self.overdue.remove(i);
                return Match::Late;
            }
        }
        let is_it = |f: &Flight| match seen {
            Seen::Frame(frame) => is_same(f.frame(), frame),
            Seen::Ethernet(frame) => f.frame() == frame,
            Seen::Head(octets, length) => f.frame().len() == length && is_same(&head(f.frame()), octets),
        };
        let ours = |f: &Flight| f.state == State::Sent && f.how.adapter.0 == adapter && is_it(f);
        self.position(ours).map_or(Match::None, Match::Flight)
    }
}

/// The first octets of a frame, and zeroes behind a shorter one.
fn head(frame: &[u8]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    let length = frame.len().min(HEAD);
    head[..length].copy_from_slice(&frame[..length]);
    head
}

/// Whether two frames differ in nothing but their duration.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    let [head_a, head_b] = [a, b].map(|f| f.get(..DURATION.start));
    let [tail_a, tail_b] = [a, b].map(|f| f.get(DURATION.end..));
    head_a == head_b && tail_a == tail_b && tail_a.is_some()
}

/// FNV-1a over a frame without the octets that come back otherwise.
fn hash(frame: &[u8], gap: Gap) -> u64 {
    let parts = [
        frame.get(..gap.start).unwrap_or(frame),
        frame.get(gap.end..).unwrap_or(&[]),
    ];
    parts
        .iter()
        .flat_map(|p| p.iter())
        .fold(0xcbf2_9ce4_8422_2325, |h, octet| {
            (h ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Rate;

    const HOW: TxHow = TxHow::one_shot(Rate::OFDM_6);
    const US: fn(u64) -> Instant = Instant::from_us;

    fn frame(sequence: u8, duration: u8) -> [u8; 28] {
        let mut f = [7; 28];
        f[2] = duration;
        f[22] = sequence;
        f
    }

    fn sent(flights: &mut Flights, token: u64, frame: &[u8]) -> usize {
        let write = |out: &mut [u8]| {
            out[..8].fill(0);
            out[8..8 + frame.len()].copy_from_slice(frame);
            Some((8, 8 + frame.len()))
        };
        let index = flights.take(Token(token), &HOW, US(1), write).unwrap();
        flights.get_mut(index).state = State::Sent;
        flights.get_mut(index).due = US(1_000);
        index
    }

    impl Flights {
        fn match_status(&mut self, adapter: u8, frame: &[u8], now: Instant) -> Match {
            self.match_seen(adapter, Seen::Frame(frame), now)
        }
    }

    #[test]
    fn a_head_is_that_of_its_frame_if_the_length_is() {
        let mut flights = Flights::new(4);
        let a = sent(&mut flights, 1, &frame(1, 0));
        let b = sent(&mut flights, 2, &frame(2, 0));
        let short = sent(&mut flights, 3, &[9; 10]);
        let of = |frame: &[u8]| head(frame);
        let mut find = |head: [u8; HEAD], length| flights.match_seen(0, Seen::Head(&head, length), US(2));
        assert_eq!(find(of(&frame(2, 44)), 28), Match::Flight(b));
        assert_eq!(find(of(&frame(1, 44)), 28), Match::Flight(a));
        assert_eq!(find(of(&frame(1, 44)), 27), Match::None);
        assert_eq!(find(of(&[9; 10]), 10), Match::Flight(short));
        flights.overdue(a, US(2_000));
        let late = flights.match_seen(0, Seen::Head(&of(&frame(1, 9)), 28), US(1_500));
        assert_eq!(late, Match::Late);
    }

    #[test]
    fn a_status_is_that_of_its_frame_whatever_the_duration() {
        let mut flights = Flights::new(4);
        let a = sent(&mut flights, 1, &frame(1, 0));
        let b = sent(&mut flights, 2, &frame(2, 0));
        assert_eq!(flights.match_status(0, &frame(2, 44), US(2)), Match::Flight(b));
        assert_eq!(flights.match_status(0, &frame(1, 44), US(2)), Match::Flight(a));
        assert_eq!(
            flights.match_status(1, &frame(1, 44), US(2)),
            Match::None,
            "another adapter"
        );
        assert_eq!(flights.match_status(0, &frame(3, 44), US(2)), Match::None);
        assert_eq!(flights.match_status(0, &frame(1, 44)[..27], US(2)), Match::None);
        for short in 0..5 {
            assert_eq!(flights.match_status(0, &[7; 28][..short], US(2)), Match::None);
        }
    }

    #[test]
    fn of_equal_frames_the_first_is_meant() {
        let mut flights = Flights::new(4);
        let first = sent(&mut flights, 1, &frame(1, 0));
        let second = sent(&mut flights, 2, &frame(1, 0));
        assert_eq!(flights.match_status(0, &frame(1, 1), US(2)), Match::Flight(first));
        flights.release(first);
        // The place is taken again, but the order counts and not the place.
        let third = sent(&mut flights, 3, &frame(1, 0));
        assert_eq!((third, flights.open()), (first, 2));
        assert_eq!(
            flights.match_status(0, &frame(1, 1), US(2)),
            Match::Flight(second)
        );
    }

    #[test]
    fn a_late_status_belongs_to_nobody() {
        let mut flights = Flights::new(4);
        let lost = sent(&mut flights, 1, &frame(1, 0));
        flights.overdue(lost, US(2_000));
        let again = sent(&mut flights, 2, &frame(1, 0));
        assert_eq!(flights.match_status(0, &frame(1, 9), US(1_500)), Match::Late);
        assert_eq!(
            flights.match_status(0, &frame(1, 9), US(1_500)),
            Match::Flight(again)
        );
        // After its time it is forgotten.
        flights.overdue(again, US(3_000));
        let last = sent(&mut flights, 3, &frame(1, 0));
        assert_eq!(
            flights.match_status(0, &frame(1, 9), US(3_000)),
            Match::Flight(last)
        );
    }

    #[test]
    fn the_pool_is_full_and_has_room_again() {
        let mut flights = Flights::new(2);
        let a = sent(&mut flights, 1, &frame(1, 0));
        sent(&mut flights, 2, &frame(2, 0));
        let full = flights.take(Token(3), &HOW, US(1), |_| Some((8, 36)));
        assert_eq!((full, flights.open()), (None, 2));
        assert_eq!(flights.next_due(|_| true), Some(US(1_000)));
        assert_eq!(
            flights.next_due(|f| f.token != Token(1) && f.token != Token(2)),
            None
        );
        flights.release(a);
        assert_eq!((flights.find(Token(1)), flights.find(Token(2))), (None, Some(1)));
        for i in 0..100 {
            let index = sent(&mut flights, 10 + i, &frame(1, 0));
            flights.overdue(index, US(9_000));
        }
        assert_eq!(
            (flights.overdue.len(), flights.overdue.capacity() >= 2),
            (flights.overdue.capacity(), true)
        );
    }

    /// Of an Ethernet frame every octet counts, also where an 802.11 frame has its duration.
    #[test]
    fn an_ethernet_frame_is_known_by_all_its_octets() {
        let mut flights = Flights::new(4);
        let [one, other] = [1, 2].map(|duration| frame(1, duration));
        let mut tokens = 0;
        let mut send = |flights: &mut Flights, f: &[u8]| {
            tokens += 1;
            let write = |out: &mut [u8]| {
                out[..f.len()].copy_from_slice(f);
                Some((0, f.len()))
            };
            let index = flights.take(Token(tokens), &HOW, US(1), write).unwrap();
            flights.get_mut(index).state = State::Sent;
            index
        };
        let all = [one, other, other].map(|f| send(&mut flights, &f));
        let find = |flights: &mut Flights, f: &[u8]| flights.match_seen(0, Seen::Ethernet(f), US(2));
        assert_eq!(
            find(&mut flights, &other),
            Match::Flight(all[1]),
            "the first of two"
        );
        assert_eq!(find(&mut flights, &one), Match::Flight(all[0]));
        assert_eq!(find(&mut flights, &frame(1, 3)), Match::None);
        // What comes too late is not taken for another one that is still out.
        flights.overdue(all[1], US(10));
        assert_eq!(find(&mut flights, &one), Match::Flight(all[0]));
        assert_eq!(find(&mut flights, &other), Match::Late);
        assert_eq!(find(&mut flights, &other), Match::Flight(all[2]));
    }
}
