//! What of the adapter is switched off, and reception in between: with it off the adapter listens only in the slots in
//! which something may come for this node.
//!
//! A foreign frame that is being received keeps the adapter from sending until it is over, even with carrier sense off.
//! So reception is off in all other slots, those in which the node sends among them; ACKs to its own frames are
//! heard all the same. From one such slot to the next it stays on, though nothing is due between the two: switching takes the host's time. Ahead of
//! a shared one it does not, since what is being received would keep the node from sending in it.
//!
//! Without a clock that is to be trusted it listens all the time, or it would never hear a beacon; so it does after ten beacons in
//! a row that did not come or told another time, since then a jump may have taken its slots to where no beacon is. With
//! a [reference](super::TdmaConfig::reference), whose beacons come outside of slots, it is never to be off.

use super::Tdma;
use super::join::Side;
use super::schedule::LinkKind;
use crate::mac::slotted::LeftOn;
use crate::mac::sync::{NetworkTime, SyncCounters};
use radio::{Attribute, Duration, Instant, Protocol, Radio, SetAnswer, Token};

/// What is left on unless something else is said: all but RTS and the contention window.
pub const USUAL: LeftOn = LeftOn {
    rts: false,
    backoff: false,
    ..LeftOn::ALL
};

/// Changes of attributes without an answer so far, at most; answers to others go up.
const OPEN: usize = 8;

/// Beacons in a row that may be missed before a node doubts where its slots are. Where strangers take every third of them, fewer are missed all
/// the time, and a node that listens is held up.
const MISSED: u64 = 10;

/// Switches that were turned.
#[derive(Clone, Debug, Default)]
pub(super) struct Switches {
    open: [Option<Token>; OPEN],
    /// Reception, as it was set last.
    listening: Option<bool>,
    /// When it changes next.
    pub(super) change: Option<Instant>,
    /// What the clock had counted when that was found.
    as_of: SyncCounters,
}

impl Switches {
    /// Whether an answer is to one of its own, and what the host made of it.
    pub(super) fn is_answered_by(&mut self, answer: &SetAnswer) -> bool {
        let mine = self.open.iter_mut().find(|t| **t == Some(answer.token));
        mine.map(Option::take).is_some()
    }
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Tdma<P, N, L, S> {
    pub(super) fn switch_off(&mut self, radio: &mut dyn Radio) {
        let on = self.config.left_on;
        let all = [
            (on.acks, Attribute::AckGeneration(false)),
            (on.virtual_carrier_sense, Attribute::VirtualCarrierSense(false)),
            (on.carrier_sense, Attribute::CarrierSense(false)),
        ];
        for (_, attribute) in all.into_iter().filter(|(stays, _)| !stays) {
            self.switch(attribute, radio);
        }
    }

    fn switch(&mut self, attribute: Attribute, radio: &mut dyn Radio) {
        let token = radio.token();
        if let Some(place) = self.switches.open.iter_mut().find(|t| t.is_none()) {
            *place = Some(token);
        }
        radio.set(token, self.config.adapter, attribute);
    }

    /// Turns reception on or off, as the present slot asks for.
    pub(super) fn listen(&mut self, now: Instant, radio: &mut dyn Radio) {
        if self.config.left_on.reception {
            return;
        }
        // until then it stays as it is, as long as clock and slots do
        let as_of = *self.config.sync.counters();
        let settled = self.switches.change.is_some_and(|at| now < at) && self.switches.as_of == as_of;
        if settled && matches!(self.side, Side::Fixed) {
            return;
        }
        let (listening, change) = self.listening(now).unwrap_or((true, None));
        (self.switches.change, self.switches.as_of) = (change, as_of);
        // it is on when the node starts
        if self.switches.listening.unwrap_or(true) != listening {
            self.switches.listening = Some(listening);
            self.switch(Attribute::Reception(listening), radio);
        }
    }

    /// Whether it listens now, and until when that stays so. `None` without a clock. A change takes the way of a request through
    /// the host, which takes `release.high` at worst.
    pub(super) fn listening(&self, now: Instant) -> Option<(bool, Option<Instant>)> {
        let plan = &self.config.plan;
        let (costs, cycle_ns) = (plan.costs(), plan.cycle().as_ns());
        let sync = &self.config.sync;
        let at = sync.to_network(now).filter(|_| sync.is_good(now))?;
        let every = plan.beacon().map_or(1, |b| u64::from(b.every.max(1)));
        // half of an interval more: a beacon may be late in its slot, and clocks run apart
        let interval = every.saturating_mul(cycle_ns);
        let doubted = Duration::from_ns(interval.saturating_mul(MISSED).saturating_add(interval / 2));
        if !self.is_master() && sync.since_sample(now).is_some_and(|ago| ago > doubted) {
            return None;
        }
        let first = at.0 / cycle_ns;
        let (early, late) = (
            costs.sync_error + costs.release.high,
            costs.guard() + costs.sync_error,
        );
        // the end of a cycle is as good as a slot in between
        let slots = 1 + plan.slots().count();
        // the slot that was last, counted through all cycles, and until when it listens
        let (mut last, mut until) = (None, None);
        for cycle in first.saturating_sub(1)..=first + every {
            for (index, link) in plan.links(self.config.me) {
                let hears = match link {
                    LinkKind::HearBeacon => cycle.is_multiple_of(every),
                    LinkKind::Ask => self.is_master(),
                    LinkKind::Receive(_) | LinkKind::Shared => self.holds_in(cycle),
                    LinkKind::Transmit(_) | LinkKind::SendBeacon => false,
                };
                let Some(slot) = plan.slot(index).filter(|_| hears) else {
                    continue;
                };
                let start = NetworkTime(cycle * cycle_ns + slot.start.as_ns());
                let end = NetworkTime(start.0 + (late + slot.exchange).as_ns());
                let number = cycle * slots as u64 + index as u64;
                let follows =
                    last.replace(number).is_some_and(|n| n + 1 == number) && link != LinkKind::Shared;
                if end <= at {
                    continue;
                }
                let (end, begin) = (sync.to_local(end)?, sync.to_local(start)? - early);
                match until {
                    None if begin <= now || follows => until = Some(end),
                    Some(end_so_far) if begin <= end_so_far || follows => until = Some(end),
                    Some(end_so_far) => return Some((true, Some(end_so_far))),
                    None => return Some((false, Some(begin))),
                }
            }
        }
        Some((until.is_some(), until))
    }
}
