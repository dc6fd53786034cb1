//! Frames from cell to cell. A frame that a host sends in its slot says over which border of the cell it goes on if its receiver
//! is no member ([`Onward`]): its sender knows from the reports of the gateways which ones are open. The gateway there takes it
//! over, and the one on the other side either is the receiver, or sends it on in its own slot for a member or for the
//! gateway of the next border, or is that one itself. Frames to groups stay in their cell.
//!
//! From what crosses, all who hear it learn in which cell its sender is ([`super::places`]). A host of which nobody heard lately is
//! searched for, and found if a shortest way through the map leads to it.

use super::Tbmac;
use super::cell::Cell;
use super::drive::Inner;
use super::member::Member;
use super::message::Body;
use super::way::{LIFETIME, Onward, Way};
use frame::MacAddr;
use frame::mac::Header;
use radio::{Duration, Event, Indication, Instant, Protocol, Radio};

/// Who it is from.
fn sender(frame: &[u8]) -> Option<MacAddr> {
    Header::parse(frame).ok()?.transmitter()
}

impl<P: Protocol, const S: usize, const N: usize, const L: usize> Tbmac<P, S, N, L> {
    fn is_owner(&self) -> bool {
        self.member.as_ref().and_then(Member::slot).is_some()
    }

    /// The way of its own request `index`, which is sent now; `None` if it stays in the cell.
    pub(super) fn set_off(&mut self, index: usize) -> Option<Onward> {
        self.config.rounds.retune()?;
        let frame = self.above.held.get(index)?.frame();
        let to = Header::parse(frame).ok()?.receiver();
        let (me, cell) = (self.config.me, self.config.cell);
        if to.is_group() || to == me || self.borders.is_member(to) {
            return None;
        }
        let mut way = Way::new(cell, self.places.find(to, self.round), self.round);
        way.lifetime = self.lifetime(index);
        let over = way.over(cell, self.borders.open(me));
        if over == 0 {
            self.counters.uncrossed += 1;
            return None;
        }
        self.counters.searched += u64::from(way.is_search());
        let mine = over & self.borders.gateways(me);
        if mine != 0 {
            self.part();
            self.parting = Some((index, Onward { way, over: mine }));
        }
        Some(Onward { way, over })
    }

    /// How long its own request `index` may be on its way: as long as it may wait here.
    fn lifetime(&self, index: usize) -> u16 {
        let rounds = &self.config.rounds;
        let expires = self.above.held.get(index).and_then(|h| h.how.expires);
        let network = expires.and_then(|t| self.config.sync.to_network(t));
        let start = self.round.saturating_mul(rounds.length().as_ns());
        let parts = network.map(|t| rounds.parts(Duration::from_ns(t.0.saturating_sub(start))));
        parts.map_or(LIFETIME, |parts| parts.min(LIFETIME.into()) as u16)
    }

    /// Drops what waits here on its way and may not be sent any more, `since` the start of the round.
    pub(super) fn expire_ways(&mut self, since: Duration) {
        let parts = self.config.rounds.parts(since);
        self.counters.uncrossed += self.borders.expire(self.round, parts);
    }

    /// The request that goes over a border of its own has been on the air: now it waits for that border.
    pub(super) fn part(&mut self) {
        let Some((index, onward)) = self.parting.take() else {
            return;
        };
        let kept = (self.above.held.get(index)).is_some_and(|held| self.borders.keep(held.frame(), onward));
        self.counters.uncrossed += u64::from(!kept);
    }

    /// Sends a frame to the gateway of a neighbour, or shows itself there.
    pub(super) fn cross(&mut self, slot: u8, border: u8, radio: &mut dyn Radio) {
        let from = self.config.cell;
        let rounds = &self.config.rounds;
        self.expire_ways(rounds.border(slot) + rounds.retune().unwrap_or_default());
        let way = self.borders.crossing(border).map(|(_, way)| way.crossed());
        self.counters.crossed += u64::from(way.is_some());
        self.send(Body::Crossing { slot, from, way }, Inner::Crossing(border), radio);
        self.borders.crossed(border);
    }

    /// The gateway of a neighbour was heard, with a frame or without.
    pub(super) fn cross_in(
        &mut self,
        from: Cell,
        way: Option<Way>,
        inner: &[u8],
        now: Instant,
        heard: &Indication<'_>,
        radio: &mut dyn Radio,
    ) {
        let (me, cell) = (self.config.me, self.config.cell);
        let Some(border) = cell.border_to(from) else {
            return;
        };
        self.borders.heard_across(border);
        let goes = way.filter(|way| way.leads(from, cell));
        let Some((way, header)) = goes.zip(Header::parse(inner).ok()) else {
            return;
        };
        if !self.is_owner() || !self.borders.is_gateway(me, border) || !self.is_new(way, inner) {
            return;
        }
        let to = header.receiver();
        if to == me {
            let inner = Indication {
                frame: inner,
                ..*heard
            };
            return self.above.tell(now, Event::Indication(inner), radio);
        }
        let member = self.borders.is_member(to);
        let over = if member {
            0
        } else {
            way.over(cell, self.borders.open(me))
        };
        if over == 0 && !member {
            // a search ends at many places
            self.counters.uncrossed += u64::from(!way.is_search());
            return;
        }
        let mine = over & self.borders.gateways(me);
        let others = Onward {
            way,
            over: over & !mine,
        };
        let lost_here = mine != 0 && !self.borders.keep(inner, Onward { way, over: mine });
        let lost_there = (member || others.over != 0) && !self.borders.arrived(inner, others);
        self.counters.uncrossed += u64::from(lost_here) + u64::from(lost_there);
    }

    /// A frame was heard in the slot of a member, with its way if it has one. Tells whether it is the first copy.
    pub(super) fn passes(&mut self, onward: Option<Onward>, inner: &[u8]) -> bool {
        let Some(Onward { way, over }) = onward else {
            return true;
        };
        if !self.is_new(way, inner) {
            let from = sender(inner);
            self.borders
                .spare(|frame, other| other.born == way.born && sender(frame) == from);
            return false;
        }
        let mine = over & self.borders.gateways(self.config.me);
        if mine != 0 && self.is_owner() && !self.borders.keep(inner, Onward { way, over: mine }) {
            self.counters.uncrossed += 1;
        }
        true
    }

    /// Learns from a frame that comes from another cell or goes there. False if it had it before.
    fn is_new(&mut self, way: Way, inner: &[u8]) -> bool {
        let Some(from) = sender(inner).filter(|from| *from != self.config.me) else {
            return false;
        };
        let new = self.places.is_new(from, way.born, self.round);
        if new && way.origin != self.config.cell {
            self.places.learn(from, way.origin, self.round);
        }
        new
    }

    /// It leaves for another cell: who was a member of the old one is there.
    pub(super) fn look_back(&mut self) {
        for host in self.borders.members() {
            self.places.learn(host, self.config.cell, self.round);
        }
    }
}
