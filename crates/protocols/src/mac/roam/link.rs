//! One adapter of a roaming station, and the access points that have been heard.

use frame::MacAddr;
use radio::{AdapterId, Duration, Instant, Token};

/// Access points that are remembered.
pub(super) const CANDIDATES: usize = 8;
/// A new beacon counts 1/4 of the average strength.
const NEW: i32 = 4;

/// What an adapter is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nothing.
    Idle,
    /// Listens for beacons on the channel of this index until then.
    Listening { channel: usize, until: Instant },
    /// Has asked this access point to let it in: `step` 0 authentication, 1 association.
    Asking {
        ap: MacAddr,
        step: u8,
        tries: u8,
        until: Instant,
    },
    /// Is let in.
    Joined { ap: MacAddr, since: Instant },
}

/// A few tokens whose answers are awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens([Option<Token>; 4]);

impl Tokens {
    pub const NONE: Tokens = Tokens([None; 4]);

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    pub fn has_room(&self) -> bool {
        self.0.iter().any(Option::is_none)
    }

    pub fn add(&mut self, token: Token) {
        if let Some(place) = self.0.iter_mut().find(|t| t.is_none()) {
            *place = Some(token);
        }
    }

    /// True if it was one of them.
    pub fn take(&mut self, token: Token) -> bool {
        let place = self.0.iter_mut().find(|t| **t == Some(token));
        place.map(Option::take).is_some()
    }
}

/// One adapter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub adapter: AdapterId,
    pub state: State,
    /// Changes of channel that have no answer yet.
    pub tuning: Tokens,
    /// Requests of its own that have no confirm yet.
    pub asked: Tokens,
    /// Requests of the protocol above that have no confirm yet, copies counted.
    pub flying: usize,
    /// ACKs in a row since it was let in.
    pub acks: u16,
    /// Frames that asked for an ACK since it was let in, the last one lowest: 1 for those that had none.
    failures: u32,
}

impl Link {
    pub const fn new(adapter: AdapterId) -> Link {
        Link {
            adapter,
            state: State::Idle,
            tuning: Tokens::NONE,
            asked: Tokens::NONE,
            flying: 0,
            acks: 0,
            failures: 0,
        }
    }

    /// It is let in, and nothing has been sent there.
    pub fn join(&mut self, ap: MacAddr, since: Instant) {
        self.state = State::Joined { ap, since };
        (self.acks, self.failures) = (0, 0);
    }

    /// A frame that asked for an ACK had one or had none.
    pub fn sent(&mut self, acked: bool) {
        self.acks = if acked { self.acks.saturating_add(1) } else { 0 };
        self.failures = self.failures << 1 | u32::from(!acked);
    }

    /// Whether `k` of the last `n` of them had none.
    pub fn fails(&self, (k, n): (u8, u8)) -> bool {
        let last = self.failures & u32::MAX.checked_shr(32 - u32::from(n.min(32))).unwrap_or(0);
        k > 0 && last.count_ones() >= u32::from(k)
    }

    pub fn joined(&self) -> Option<MacAddr> {
        match self.state {
            State::Joined { ap, .. } => Some(ap),
            _ => None,
        }
    }

    pub fn until(&self) -> Option<Instant> {
        match self.state {
            State::Listening { until, .. } | State::Asking { until, .. } => Some(until),
            _ => None,
        }
    }
}

/// An access point that has been heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub ap: MacAddr,
    /// Index of its channel.
    pub channel: usize,
    /// Average strength, 1/16 dBm.
    level: i32,
    pub heard: Instant,
    /// Since when it has been better than the present one by the hysteresis.
    pub better_since: Option<Instant>,
}

impl Candidate {
    /// Average strength, dBm.
    pub fn dbm(&self) -> i8 {
        (self.level / 16) as i8
    }
}

/// Those that have been heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidates([Option<Candidate>; CANDIDATES]);

impl Candidates {
    pub const NONE: Candidates = Candidates([None; CANDIDATES]);

    pub fn get(&self, ap: MacAddr) -> Option<&Candidate> {
        self.0.iter().flatten().find(|c| c.ap == ap)
    }

    /// A beacon; the one that was heard longest ago makes room.
    pub fn heard(&mut self, ap: MacAddr, channel: usize, dbm: i8, now: Instant) {
        let level = i32::from(dbm) * 16;
        if let Some(c) = self.0.iter_mut().flatten().find(|c| c.ap == ap) {
            c.level += (level - c.level) / NEW;
            c.heard = now;
            c.channel = channel;
            return;
        }
        if let Some(place) = self.0.iter_mut().min_by_key(|c| c.map(|c| c.heard)) {
            *place = Some(Candidate {
                ap,
                channel,
                level,
                heard: now,
                better_since: None,
            });
        }
    }

    /// Notes who is better than `present` by `by_db`. What has not been heard for `fresh` does not count, nor does `not`.
    pub fn compare(
        &mut self,
        (present, not): (Option<MacAddr>, Option<MacAddr>),
        by_db: u8,
        fresh: Duration,
        now: Instant,
    ) {
        let bar = present
            .and_then(|ap| self.get(ap))
            .map(|c| c.level + i32::from(by_db) * 16);
        for c in self.0.iter_mut().flatten() {
            let better = ![present, not].contains(&Some(c.ap))
                && now.since(c.heard) <= fresh
                && bar.is_none_or(|bar| c.level >= bar);
            match (better, c.better_since) {
                (false, _) => c.better_since = None,
                (true, None) => c.better_since = Some(now),
                _ => {}
            }
        }
    }

    /// The strongest but `not` that was heard within `fresh`; `last` only if there is no other.
    pub fn strongest(
        &self,
        (not, last): (Option<MacAddr>, Option<MacAddr>),
        fresh: Duration,
        now: Instant,
    ) -> Option<Candidate> {
        let all = self.0.iter().flatten();
        let fit = all.filter(|c| Some(c.ap) != not && now.since(c.heard) <= fresh);
        fit.max_by_key(|c| (Some(c.ap) != last, c.level)).copied()
    }

    /// It did not answer: as if it had not been heard.
    pub fn forget(&mut self, ap: MacAddr) {
        for c in self.0.iter_mut().filter(|c| c.is_some_and(|c| c.ap == ap)) {
            *c = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One beacon that is much stronger than those before it, or weaker, moves the strength by a quarter of that.
    #[test]
    fn a_single_beacon_counts_a_quarter() {
        let ap = MacAddr::local(1);
        let mut all = Candidates::NONE;
        let dbm = |all: &mut Candidates, dbm| {
            all.heard(ap, 0, dbm, Instant::ZERO);
            all.get(ap).unwrap().dbm()
        };
        assert_eq!([-70, -50, -85].map(|x| dbm(&mut all, x)), [-70, -65, -70]);
    }
}
