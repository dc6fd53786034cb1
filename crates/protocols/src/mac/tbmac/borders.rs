//! Frames from cell to cell. Of the members near a border the one with the smallest address is the gateway there. In the
//! slot of the border the gateways of both cells meet on the channel of one of them, in turns; the visitor sends, the
//! host of the channel listens, and takes what it heard into its own slot.
//!
//! A gateway keeps every frame of its cell whose receiver is no member of it for the neighbour, and drops what comes from
//! there for somebody who is no member here: one border is crossed, not several. Frames to groups stay in their cell.

use super::cell::{BORDERS, Cell};
use super::table::SILENT_ROUNDS;
use frame::MacAddr;
use frame::mac::Header;

/// Frames that wait for a border, and frames that wait for the own slot, at most.
const WAITING: usize = 2;

/// A member, as its last report had it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    host: MacAddr,
    near: u8,
    silent: u8,
}

/// A frame that waits.
#[derive(Clone, Copy, Debug)]
struct Frame<const L: usize> {
    octets: [u8; L],
    len: usize,
    /// The border that it is for.
    border: u8,
}

impl<const L: usize> Frame<L> {
    fn new(octets: &[u8], border: u8) -> Option<Frame<L>> {
        let mut frame = Frame {
            octets: [0; L],
            len: octets.len(),
            border,
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

    fn first(&self, border: Option<u8>) -> Option<usize> {
        let fits = |f: &Option<Frame<L>>| f.is_some_and(|f| border.is_none_or(|b| b == f.border));
        self.0.iter().position(fits)
    }

    fn remove(&mut self, index: usize) {
        self.0[index] = None;
        self.0[index..].rotate_left(1);
    }
}

/// What a host knows and holds of borders, in a cell with `S` slots; frames have `L` octets at most.
#[derive(Clone, Debug)]
pub(super) struct Borders<const S: usize, const L: usize> {
    near: u8,
    members: [Option<Seen>; S],
    out: Line<L>,
    relayed: Line<L>,
}

impl<const S: usize, const L: usize> Borders<S, L> {
    /// In a new cell, near these borders.
    pub(super) const fn new(near: u8) -> Self {
        Borders {
            near,
            members: [None; S],
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
    pub(super) fn heard(&mut self, slot: u8, host: MacAddr, near: u8, leave: bool) {
        for seen in &mut self.members {
            *seen = seen.filter(|s| s.host != host);
        }
        if let Some(place) = self.members.get_mut(usize::from(slot)) {
            let seen = Seen {
                host,
                near,
                silent: 0,
            };
            *place = (!leave).then_some(seen);
        }
    }

    /// A round is over.
    pub(super) fn age(&mut self) {
        for seen in &mut self.members {
            if let Some(s) = seen {
                s.silent += 1;
            }
            *seen = seen.filter(|s| s.silent <= SILENT_ROUNDS);
        }
    }

    fn is_member(&self, host: MacAddr) -> bool {
        self.members.iter().flatten().any(|s| s.host == host)
    }

    /// Whether `me`, which owns a slot, is the gateway at a border.
    pub(super) fn is_gateway(&self, me: MacAddr, border: u8) -> bool {
        let bit = 1 << border;
        let mut members = self.members.iter().flatten();
        self.near & bit != 0 && !members.any(|s| s.near & bit != 0 && s.host < me)
    }

    /// A frame of a member, or of `me`: if its receiver is not in this cell it waits at all borders where `me` is the
    /// gateway. Tells how many had no room for it.
    pub(super) fn keep(&mut self, me: MacAddr, frame: &[u8]) -> u64 {
        let Ok(header) = Header::parse(frame) else {
            return 0;
        };
        let to = header.receiver();
        if to.is_group() || to == me || self.is_member(to) {
            return 0;
        }
        let mut lost = 0;
        for border in 0..BORDERS {
            if self.is_gateway(me, border) {
                lost += u64::from(!self.out.push(Frame::new(frame, border)));
            }
        }
        lost
    }

    /// The border whose meeting is the first from slot `from` on to which `me` goes in `round` with a frame, and its slot.
    pub(super) fn next_visit(&self, me: MacAddr, cell: Cell, round: u64, from: u8) -> Option<(u8, u8)> {
        let visits = (0..BORDERS).filter_map(|border| {
            let meeting = cell.meeting(border);
            let away = meeting.first == (round % 2 == 1);
            let goes = away && meeting.slot >= from && self.out.first(Some(border)).is_some();
            (goes && self.is_gateway(me, border)).then_some((meeting.slot, border))
        });
        visits.min()
    }

    /// The frame for a border.
    pub(super) fn crossing(&self, border: u8) -> &[u8] {
        let frame = self.out.first(Some(border)).and_then(|i| self.out.0[i].as_ref());
        frame.map_or(&[], Frame::octets)
    }

    /// It was sent.
    pub(super) fn crossed(&mut self, border: u8) {
        if let Some(i) = self.out.first(Some(border)) {
            self.out.remove(i);
        }
    }

    /// Takes in a frame from a neighbour: whether it is for a member, and there was room for it.
    pub(super) fn arrived(&mut self, frame: &[u8]) -> bool {
        let member = Header::parse(frame).is_ok_and(|h| self.is_member(h.receiver()));
        member && self.relayed.push(Frame::new(frame, 0))
    }

    /// What goes in its own slot for a neighbour.
    pub(super) fn relay(&self) -> Option<&[u8]> {
        self.relayed
            .first(None)
            .and_then(|i| self.relayed.0[i].as_ref())
            .map(Frame::octets)
    }

    /// It was sent.
    pub(super) fn relayed(&mut self) {
        self.relayed.remove(0);
    }
}
