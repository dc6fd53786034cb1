//! What a host knows of the borders of its cell, and the frames that it holds for them. Of the members near a border the one with
//! the smallest address is the gateway there. In the slot of the border the gateways of both cells meet on the channel of
//! one of them, in turns; the visitor sends, or shows itself if it has nothing to send, and the host of the channel listens.
//! A border is open if its gateway heard that of the other cell lately. What it hears it takes into its own slot, if it is
//! for a member or goes on over a border of another gateway ([`super::crossing`]).

use super::cell::{BORDERS, Cell};
use super::message::Report;
use super::table::SILENT_ROUNDS;
use super::way::{Onward, Way};
use frame::MacAddr;

/// Frames that wait for borders, and frames that wait for the own slot, at most.
const WAITING: usize = 4;
/// Rounds after which a border is not open any more, if nobody was heard across it: a gateway comes in every other round.
const OPEN_ROUNDS: u8 = 2 * SILENT_ROUNDS;
/// Of so many turns a gateway goes in one to a border that is not open.
const KNOCK_TURNS: u64 = 4;

/// A member, as its last report had it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    host: MacAddr,
    near: u8,
    open: u8,
    silent: u8,
}

/// A frame that waits.
#[derive(Clone, Copy, Debug)]
struct Frame<const L: usize> {
    octets: [u8; L],
    len: usize,
    way: Way,
    /// The borders that it is for, as bits.
    over: u8,
}

impl<const L: usize> Frame<L> {
    fn new(octets: &[u8], onward: Onward) -> Option<Frame<L>> {
        let mut frame = Frame {
            octets: [0; L],
            len: octets.len(),
            way: onward.way,
            over: onward.over,
        };
        frame.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(frame)
    }

    fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }
}

/// Frames that wait, in the order in which they came.
#[derive(Clone, Debug)]
struct Line<const L: usize>([Option<Frame<L>>; WAITING]);

impl<const L: usize> Line<L> {
    const EMPTY: Line<L> = Line([None; WAITING]);

    /// False if there is no room.
    fn push(&mut self, frame: Option<Frame<L>>) -> bool {
        let place = self.0.iter_mut().find(|p| p.is_none());
        match (place, frame) {
            (Some(place), Some(frame)) => {
                *place = Some(frame);
                true
            }
            _ => false,
        }
    }

    /// The first one for one of these borders.
    fn first(&self, over: u8) -> Option<usize> {
        self.0.iter().position(|f| f.is_some_and(|f| f.over & over != 0))
    }

    fn remove(&mut self, index: usize) {
        self.0[index] = None;
        self.0[index..].rotate_left(1);
    }

    /// Drops those whose way is over, and tells how many these are.
    fn expire(&mut self, is_over: impl Fn(&Way) -> bool) -> u64 {
        let mut count = 0;
        while let Some(i) = self.0.iter().position(|f| f.is_some_and(|f| is_over(&f.way))) {
            self.remove(i);
            count += 1;
        }
        count
    }
}

/// What a host knows and holds of borders, in a cell with `S` slots; frames have `L` octets at most.
#[derive(Clone, Debug)]
pub(super) struct Borders<const S: usize, const L: usize> {
    near: u8,
    members: [Option<Seen>; S],
    /// Rounds since somebody was heard across each border.
    across: [u8; BORDERS as usize],
    out: Line<L>,
    relayed: Line<L>,
}

impl<const S: usize, const L: usize> Borders<S, L> {
    /// In a new cell, near these borders.
    pub(super) const fn new(near: u8) -> Self {
        Borders {
            near,
            members: [None; S],
            across: [u8::MAX; BORDERS as usize],
            out: Line::EMPTY,
            relayed: Line::EMPTY,
        }
    }

    /// Borders that it is near, as bits.
    pub(super) const fn near(&self) -> u8 {
        self.near
    }

    pub(super) fn set_near(&mut self, near: u8) {
        self.near = near;
    }

    /// A member was heard in its slot.
    pub(super) fn heard(&mut self, host: MacAddr, report: &Report) {
        for seen in &mut self.members {
            *seen = seen.filter(|s| s.host != host);
        }
        if let Some(place) = self.members.get_mut(usize::from(report.slot)) {
            let seen = Seen {
                host,
                near: report.near,
                open: report.between.map_or(0, |b| b.open),
                silent: 0,
            };
            *place = (!report.leave).then_some(seen);
        }
    }

    /// Somebody was heard across a border.
    pub(super) fn heard_across(&mut self, border: u8) {
        self.across[usize::from(border)] = 0;
    }

    /// A round is over.
    pub(super) fn age(&mut self) {
        for seen in &mut self.members {
            if let Some(s) = seen {
                s.silent += 1;
            }
            *seen = seen.filter(|s| s.silent <= SILENT_ROUNDS);
        }
        for rounds in &mut self.across {
            *rounds = rounds.saturating_add(1);
        }
    }

    /// All members that it hears.
    pub(super) fn members(&self) -> impl Iterator<Item = MacAddr> {
        self.members.iter().flatten().map(|s| s.host)
    }

    /// Borders across which it heard somebody lately, as bits.
    pub(super) fn heard_lately(&self) -> u8 {
        let open = |b: &u8| self.across[usize::from(*b)] <= OPEN_ROUNDS;
        (0..BORDERS).filter(open).fold(0, |bits, b| bits | 1 << b)
    }

    pub(super) fn is_member(&self, host: MacAddr) -> bool {
        self.members.iter().flatten().any(|s| s.host == host)
    }

    /// Whether `me`, which owns a slot, is the gateway at a border.
    pub(super) fn is_gateway(&self, me: MacAddr, border: u8) -> bool {
        let bit = 1 << border;
        let mut members = self.members.iter().flatten();
        self.near & bit != 0 && !members.any(|s| s.near & bit != 0 && s.host < me)
    }

    /// The borders where `me`, which owns a slot, is the gateway, as bits.
    pub(super) fn gateways(&self, me: MacAddr) -> u8 {
        let mine = |b: &u8| self.is_gateway(me, *b);
        (0..BORDERS).filter(mine).fold(0, |bits, b| bits | 1 << b)
    }

    /// The borders with gateways that heard each other lately, as `me` knows it, as bits.
    pub(super) fn open(&self, me: MacAddr) -> u8 {
        let open = |border: &u8| {
            let bit = 1 << border;
            let near = self.members.iter().flatten().filter(|s| s.near & bit != 0);
            match near
                .min_by_key(|s| s.host)
                .filter(|_| !self.is_gateway(me, *border))
            {
                Some(gateway) => gateway.open & bit != 0,
                None => self.near & self.heard_lately() & bit != 0,
            }
        };
        (0..BORDERS).filter(open).fold(0, |bits, b| bits | 1 << b)
    }

    /// Takes in a frame that goes over borders of its own; false if there is no room.
    pub(super) fn keep(&mut self, frame: &[u8], onward: Onward) -> bool {
        self.out.push(Frame::new(frame, onward))
    }

    /// The border whose meeting is the first from slot `from` on to which `me` goes in `round`, and its slot. It knocks at
    /// borders that are not open, too, but not as often.
    pub(super) fn next_visit(&self, me: MacAddr, cell: Cell, round: u64, from: u8) -> Option<(u8, u8)> {
        let open = self.heard_lately();
        let knocks = (round / 2 + u64::from(me.0[5])).is_multiple_of(KNOCK_TURNS);
        let visits = (0..BORDERS).filter_map(|border| {
            let meeting = cell.meeting(border);
            let away = meeting.first == (round % 2 == 1);
            let wants = knocks || open & 1 << border != 0;
            let goes = away && wants && meeting.slot >= from && self.is_gateway(me, border);
            goes.then_some((meeting.slot, border))
        });
        visits.min()
    }

    /// The frame for a border, and its way.
    pub(super) fn crossing(&self, border: u8) -> Option<(&[u8], Way)> {
        let frame = self.out.first(1 << border).and_then(|i| self.out.0[i].as_ref());
        frame.map(|f| (f.octets(), f.way))
    }

    /// It was sent over this border.
    pub(super) fn crossed(&mut self, border: u8) {
        if let Some(i) = self.out.first(1 << border) {
            let over = self.out.0[i].as_mut().map(|f| {
                f.over &= !(1 << border);
                f.over
            });
            if over == Some(0) {
                self.out.remove(i);
            }
        }
    }

    /// Takes in a frame that goes into its own slot; false if there is no room.
    pub(super) fn arrived(&mut self, frame: &[u8], onward: Onward) -> bool {
        self.relayed.push(Frame::new(frame, onward))
    }

    /// What goes in its own slot for a neighbour.
    pub(super) fn relay(&self) -> Option<(&[u8], Onward)> {
        let frame = self.relayed.0[0].as_ref();
        frame.map(|f| {
            let onward = Onward {
                way: f.way,
                over: f.over,
            };
            (f.octets(), onward)
        })
    }

    /// It was sent.
    pub(super) fn relayed(&mut self) {
        self.relayed.remove(0);
    }

    /// Drops what may not be sent any more, so many `parts` after the start of `round`, and tells how many these are.
    pub(super) fn expire(&mut self, round: u64, parts: u64) -> u64 {
        let is_over = |way: &Way| way.is_over(round, parts);
        self.out.expire(is_over) + self.relayed.expire(is_over)
    }

    /// Somebody else has sent it on in this cell, so that it does not have to: the frame that `is_it` knows.
    pub(super) fn spare(&mut self, is_it: impl Fn(&[u8], &Way) -> bool) {
        let found = |f: &Option<Frame<L>>| f.as_ref().is_some_and(|f| is_it(f.octets(), &f.way));
        if let Some(i) = self.relayed.0.iter().position(found) {
            self.relayed.remove(i);
        }
    }
}
