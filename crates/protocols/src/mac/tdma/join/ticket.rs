//! A station's side: what it knows of the lists, and what it asks.

use super::wire::{Ask, List, Word};
use super::{JoinCounters, Reason, Stay};
use crate::mac::tdma::mix;
use frame::MacAddr;
use radio::Instant;

use super::registrar::REFUSED;

/// After a failed ask the next one comes within 2, 4, 8 ... cycles, at most 2 to the power of this.
const MAX_SPREAD: u8 = 8;

/// Where a station stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// It wants no slots.
    Away,
    /// It wants slots and has no answer.
    Asking,
    /// It has slots, as the newest list says.
    In,
    /// It wants its slots no more.
    Leaving,
    /// It was refused, and asks again in this cycle.
    Refused(Reason, u64),
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(in crate::mac::tdma) struct Ticket {
    stay: Stay,
    me: MacAddr,
    phase: Phase,
    started: Option<Instant>,
    /// What it was told to want since, whatever its stay says.
    told: Option<bool>,
    /// The list that holds, and the one that comes after it.
    current: Option<List>,
    next: Option<List>,
    /// It asks in no earlier cycle.
    ask_at: u64,
    spread: u8,
    /// The next sign of life is due in this cycle.
    sign_at: u64,
    counters: JoinCounters,
}

impl Ticket {
    pub(in crate::mac::tdma) const fn new(stay: Stay, me: MacAddr) -> Ticket {
        Ticket {
            stay,
            me,
            phase: Phase::Away,
            started: None,
            told: None,
            current: None,
            next: None,
            ask_at: 0,
            spread: 1,
            sign_at: 0,
            counters: JoinCounters {
                asked: 0,
                joined: 0,
                refused: 0,
                left: 0,
                lapsed: 0,
                changes: 0,
            },
        }
    }

    pub(in crate::mac::tdma) fn counters(&self) -> &JoinCounters {
        &self.counters
    }

    /// Why it was refused, if that was the last answer.
    pub(in crate::mac::tdma) fn refused(&self) -> Option<Reason> {
        match self.phase {
            Phase::Refused(reason, _) => Some(reason),
            _ => None,
        }
    }

    /// Whether requests may wait for slots to come.
    pub(in crate::mac::tdma) fn hopes(&self) -> bool {
        matches!(self.phase, Phase::Asking | Phase::In)
    }

    pub(in crate::mac::tdma) fn want(&mut self, slots: bool) {
        self.told = Some(slots);
    }

    pub(in crate::mac::tdma) fn start(&mut self, now: Instant) {
        self.started = Some(now);
    }

    /// When its stay begins or ends, if that lies ahead.
    pub(in crate::mac::tdma) fn next_wish(&self, now: Instant) -> Option<Instant> {
        let started = self.started?;
        let times = [Some(self.stay.join_after), self.stay.leave_after];
        let times = times.into_iter().flatten().map(|d| started + d);
        times.filter(|t| *t > now && self.told.is_none()).min()
    }

    fn wants(&self, now: Instant) -> bool {
        let by_stay = self.started.is_some_and(|s| {
            now >= s + self.stay.join_after && self.stay.leave_after.is_none_or(|l| now < s + l)
        });
        self.told.unwrap_or(by_stay)
    }

    /// What it wants may have changed, and cycles have passed.
    pub(in crate::mac::tdma) fn tick(&mut self, now: Instant, cycle: u64) {
        let wants = self.wants(now);
        match self.phase {
            Phase::Away if wants => self.ask_soon(Phase::Asking, cycle),
            Phase::Refused(_, until) if wants && cycle >= until => self.ask_soon(Phase::Asking, cycle),
            Phase::Refused(..) if !wants => self.phase = Phase::Away,
            // what it asked for may have been granted without its knowing
            Phase::In | Phase::Asking if !wants => self.ask_soon(Phase::Leaving, cycle),
            Phase::Leaving if wants => self.ask_soon(Phase::Asking, cycle),
            _ => {}
        }
        if self.next.is_some_and(|n| n.starts <= cycle) {
            self.current = self.next.take();
        }
        if self.current.is_some_and(|c| c.until <= cycle) {
            self.current = None;
            self.counters.lapsed += u64::from(self.phase == Phase::In);
        }
    }

    fn ask_soon(&mut self, phase: Phase, cycle: u64) {
        self.phase = phase;
        self.spread = 1;
        self.put_off(cycle);
    }

    fn put_off(&mut self, cycle: u64) {
        let within = 1u64 << self.spread;
        self.ask_at = cycle + 1 + mix(cycle, self.me, 2) % within;
    }

    /// A beacon of the coordinator was heard in `cycle`; `every`: cycles from beacon to beacon.
    pub(in crate::mac::tdma) fn hear(&mut self, word: &Word, cycle: u64, every: u64) {
        let Some(list) = word.list else {
            return;
        };
        let same = |l: &List| l.version == list.version && l.starts == list.starts;
        if let Some(current) = self.current.as_mut().filter(|c| same(c)) {
            current.until = current.until.max(list.until);
            self.next = None;
        } else if list.starts <= cycle {
            self.current = Some(list);
            self.next = None;
            self.counters.changes += 1;
        } else if let Some(next) = self.next.as_mut().filter(|n| same(n)) {
            next.until = next.until.max(list.until);
        } else {
            if let Some(current) = &mut self.current {
                current.until = current.until.min(list.starts);
            }
            self.next = Some(list);
            self.counters.changes += 1;
        }
        let wish = &self.stay.wish;
        let listed =
            list.roster.iter().flatten().any(|m| {
                (m.address, m.up_octets, m.down_octets) == (self.me, wish.up_octets, wish.down_octets)
            });
        let refused = word.refusals.iter().flatten().find(|r| r.0 == self.me);
        match (self.phase, listed, refused) {
            (Phase::Asking, true, _) => {
                self.phase = Phase::In;
                self.counters.joined += 1;
                self.sign_at = list.starts.max(cycle);
            }
            (Phase::Asking, false, Some((_, reason))) => {
                // an old refusal must be gone by then
                let pause = u64::from(self.stay.ask_again).max((u64::from(REFUSED) + 1) * every);
                self.phase = Phase::Refused(*reason, cycle + pause);
                self.counters.refused += 1;
            }
            (Phase::In, false, _) => self.ask_soon(Phase::Asking, cycle),
            (Phase::Leaving, false, _) => {
                self.phase = Phase::Away;
                self.counters.left += 1;
            }
            _ => {}
        }
    }

    /// What it asks in the slot for that in `cycle`.
    pub(in crate::mac::tdma) fn asks(&self, cycle: u64) -> Option<Ask> {
        let ask = match self.phase {
            Phase::Asking => Ask::Join(self.stay.wish),
            Phase::Leaving => Ask::Leave,
            _ => return None,
        };
        (cycle >= self.ask_at).then_some(ask)
    }

    /// Its ask was on the air, or was not.
    pub(in crate::mac::tdma) fn asked(&mut self, sent: bool, acked: bool, cycle: u64, every: u64) {
        self.counters.asked += u64::from(sent);
        if acked {
            // a change waits for the last one to begin, and then for the promises to end
            let lease = self
                .next
                .or(self.current)
                .map_or(0, |l| l.until.saturating_sub(cycle));
            self.ask_at = cycle + 2 * lease + 4 * every;
            self.spread = 1;
        } else {
            self.spread = (self.spread + 1).min(MAX_SPREAD);
            self.put_off(cycle);
        }
    }

    /// Whether it has to be heard in one of its slots in `cycle`.
    pub(in crate::mac::tdma) fn owes_sign(&self, cycle: u64) -> bool {
        self.phase == Phase::In && cycle >= self.sign_at
    }

    /// The coordinator has acknowledged a frame in `cycle`.
    pub(in crate::mac::tdma) fn was_heard(&mut self, cycle: u64) {
        self.sign_at = self.sign_at.max(cycle + u64::from(self.stay.sign.max(1)));
    }

    /// The first cycle after `cycle` in which it may have to act of its own.
    pub(in crate::mac::tdma) fn next_errand(&self, cycle: u64) -> Option<u64> {
        let errand = match self.phase {
            Phase::Asking | Phase::Leaving => Some(self.ask_at),
            Phase::In => Some(self.sign_at),
            Phase::Refused(_, until) => Some(until),
            Phase::Away => None,
        };
        let change = self.next.map(|n| n.starts);
        [errand, change]
            .into_iter()
            .flatten()
            .filter(|c| *c > cycle)
            .min()
    }

    /// The list that holds.
    pub(in crate::mac::tdma) fn current(&self) -> Option<&List> {
        self.current.as_ref()
    }

    /// The first cycle in which the list that holds now may not hold any more.
    pub(in crate::mac::tdma) fn until(&self) -> u64 {
        let until = self.current.map_or(0, |c| c.until);
        self.next.map_or(until, |n| until.min(n.starts))
    }
}
