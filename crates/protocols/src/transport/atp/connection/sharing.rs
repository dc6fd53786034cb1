//! A connection among the other flows of its node to the same other one.

use super::Connection;
use crate::transport::atp::macroflow::{Macroflow, Member};
use crate::transport::stream::Sent;
use crate::transport::{Event, Path, State, Transport};
use radio::Instant;

impl<O, R, const H: usize> Connection<O, R, H>
where
    O: AsRef<[u8]> + AsMut<[u8]>,
    R: AsRef<[Sent]> + AsMut<[Sent]>,
{
    /// As [`handle`](Transport::handle), for a flow that shares its rate with the other ones of this node to the same other node, if its epoch adjusts itself: it
    /// is `id` among `flows`. Those of the thesis share nothing.
    pub fn handle_among(
        &mut self,
        now: Instant,
        event: Event<'_>,
        path: &mut dyn Path,
        id: u64,
        flows: &mut Macroflow,
    ) {
        // what an event changes, it changes about the rate that there is now
        self.join(now, id, flows);
        self.handle(now, event, path);
        self.join(now, id, flows);
    }

    /// Whether the sender needs a rate.
    pub(super) fn has_work(&self) -> bool {
        self.outbox.has_more() || self.outbox.is_waiting()
    }

    /// Whether it has a rate that tells of the path, and data to send.
    pub fn shares(&self) -> bool {
        let sends = self.state == State::Open && !self.rate.is_searching() && self.has_work();
        self.config.adjusting && sends && !self.reader_is_slow
    }

    fn join(&mut self, now: Instant, id: u64, flows: &mut Macroflow) {
        if !self.shares() {
            return self.leave(id, flows);
        }
        let octets = self.outbox.acknowledged();
        let member = Member {
            id,
            until: now + self.rate.unheard(),
            goodput: self.arrived.note(now, octets),
        };
        self.rate.join(now, member, flows);
    }

    /// It shares its rate no longer: as [`handle_among`](Connection::handle_among) does while that tells nothing of the path.
    pub fn leave(&mut self, id: u64, flows: &mut Macroflow) {
        flows.leave(id);
        self.rate.leave();
    }
}
