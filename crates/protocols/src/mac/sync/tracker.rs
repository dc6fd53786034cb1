//! The samples of a clock: a window for each adapter whose beacons it follows, one of which leads.

use super::fit::{Fit, ONE};
use super::{SyncConfig, SyncCounters, WINDOW};
use radio::{AdapterId, Duration, Instant};

/// Jumps from the line that tell a TSF that was set anew from a host that stamps badly: 10 ms, if a jump is 100 us.
const APART: u64 = 100;

/// The samples of one adapter.
#[derive(Clone, Debug)]
pub(super) struct Track {
    /// Host clock, and network time less host clock; in nanoseconds, oldest first.
    samples: [(u64, i64); WINDOW],
    count: usize,
    pub(super) fit: Option<Fit>,
    strikes: u32,
    /// The samples from which on it is trusted are further from their line than a jump: a host that stamps badly, or a small jump among them.
    rough: bool,
    /// Network time less the adapter's TSF at `since`, ns, and what it gains from then on, parts of [`ONE`]. Samples of a node's
    /// own are made by it.
    shift: i64,
    gain: i64,
    since: Instant,
}

impl Track {
    const EMPTY: Track = Track {
        samples: [(0, 0); WINDOW],
        count: 0,
        fit: None,
        strikes: 0,
        rough: false,
        shift: 0,
        gain: 0,
        since: Instant::ZERO,
    };

    pub(super) fn last(&self) -> Option<Instant> {
        let (local, _) = self.samples[..self.count].last()?;
        Some(Instant::from_ns(*local))
    }

    /// Where it says that the host clock is.
    fn ahead(&self, local: Instant) -> Option<i64> {
        self.fit.as_ref().map(|f| f.ahead(local.as_ns()))
    }

    /// Takes a sample, the newest of all.
    fn push(&mut self, local: u64, ahead: i64) {
        if self.count == WINDOW {
            self.drop_oldest();
        }
        self.samples[self.count] = (local, ahead);
        self.count += 1;
        self.fit = Fit::through(&self.samples[..self.count]);
    }

    /// Whether no sample is further from the line.
    fn agrees_within(&self, ns: u64) -> bool {
        let near = |fit: &Fit| self.samples[..self.count].iter().all(|s| fit.is_near(s, ns));
        self.fit.as_ref().is_none_or(near)
    }

    fn drop_oldest(&mut self) {
        self.samples.rotate_left(1);
        self.count -= 1;
    }

    /// Goes on without its oldest sample.
    fn forget_oldest(&mut self) {
        self.drop_oldest();
        self.fit = Fit::through(&self.samples[..self.count]);
    }

    /// Network time less the adapter's TSF when the host clock shows `local`.
    fn shift_at(&self, local: Instant) -> i64 {
        self.shift
            .wrapping_add(gained(self.gain, self.since, local.as_ns()))
    }

    /// All of it is further ahead by `by` now, and by `gain` more from now on.
    fn lean(&mut self, now: Instant, by: i64, gain: i64) {
        (self.shift, self.since) = (self.shift_at(now).wrapping_add(by), now);
        self.gain = self.gain.saturating_add(gain);
        for (local, ahead) in &mut self.samples[..self.count] {
            *ahead = ahead.wrapping_add(by).wrapping_add(gained(gain, now, *local));
        }
        self.fit = Fit::through(&self.samples[..self.count]);
    }
}

/// What a slope makes of the time from `since` to `local`, ns.
fn gained(gain: i64, since: Instant, local: u64) -> i64 {
    let passed = i128::from(local) - i128::from(since.as_ns());
    (passed * i128::from(gain) / ONE) as i64
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Tracker {
    pub(super) config: SyncConfig,
    tracks: [Track; 2],
    /// Index of the one that says what network time is.
    lead: usize,
}

impl Tracker {
    pub(super) const fn new(config: SyncConfig) -> Tracker {
        Tracker {
            config,
            tracks: [Track::EMPTY, Track::EMPTY],
            lead: 0,
        }
    }

    pub(super) fn lead(&self) -> &Track {
        &self.tracks[self.lead]
    }

    /// Network time less the TSF of adapter `k`, of a node's own, by which its samples are made.
    pub(super) fn shift(&self, k: usize, local: Instant) -> i64 {
        self.tracks[k].shift_at(local)
    }

    /// The adapters that it follows.
    pub(super) fn adapters(&self) -> [Option<AdapterId>; 2] {
        [Some(self.config.adapter), self.config.second]
    }

    /// So much of the holdover is over that the window would not reach back further than that.
    pub(super) fn is_late(&self, k: usize, now: Instant) -> bool {
        let fresh = Duration::from_ns(self.config.holdover.as_ns() / WINDOW as u64);
        self.tracks[k].last().is_none_or(|last| now.since(last) > fresh)
    }

    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.is_late(self.lead, now)
    }

    pub(super) fn is_good(&self, now: Instant) -> bool {
        let recent = |last| now.since(last) <= self.config.holdover;
        self.is_settled(self.lead) && self.lead().last().is_some_and(recent)
    }

    fn is_settled(&self, k: usize) -> bool {
        self.tracks[k].count >= self.needed()
    }

    /// Samples from which on a track is trusted.
    fn needed(&self) -> usize {
        self.config.min_samples.clamp(1, WINDOW)
    }

    fn is_usable(&self, k: usize, now: Instant) -> bool {
        self.is_settled(k) && !self.is_late(k, now)
    }

    /// Takes a sample of adapter `k`: `network` when the host clock showed `local`. One that is far off is refused; after three
    /// of them the TSF has jumped, and its track begins anew.
    pub(super) fn take(
        &mut self,
        k: usize,
        local: Instant,
        network: u64,
        own: bool,
        counters: &mut SyncCounters,
    ) {
        let track = &self.tracks[k];
        if track.last().is_some_and(|last| local <= last) {
            return;
        }
        let ahead = network.wrapping_sub(local.as_ns()) as i64;
        let settled = self.is_settled(k) && !track.rough;
        let off = |fit: &Fit| fit.ahead(local.as_ns()).abs_diff(ahead) > self.config.jump.as_ns();
        if settled && track.fit.as_ref().is_some_and(off) {
            self.tracks[k].strikes += 1;
            counters.refused += 1;
            if self.tracks[k].strikes < 3 {
                return;
            }
            counters.restarts += 1;
            if k == self.lead && self.is_usable(1 - k, local) {
                self.turn_to(1 - k, local, own, counters);
            }
            self.tracks[k].count = 0;
        }
        let (needed, jump) = (self.needed(), self.config.jump.as_ns());
        let track = &mut self.tracks[k];
        track.strikes = 0;
        track.push(local.as_ns(), ahead);
        counters.samples += 1;
        if track.rough && track.count > needed {
            // of samples that do not go together the last ones are as good as the first
            track.forget_oldest();
        }
        if track.count == needed {
            track.rough = !track.agrees_within(jump);
            // no host stamps so badly: the samples are from before and after a jump
            if !track.agrees_within(jump.saturating_mul(APART)) {
                track.forget_oldest();
                counters.refused += 1;
            }
        }
        let other = 1 - self.lead;
        if !self.is_usable(self.lead, local) && self.is_usable(other, local) {
            self.turn_to(other, local, own, counters);
        }
        counters.trusted += u64::from(self.is_settled(self.lead));
    }

    /// From `now` on adapter `k` says what network time is. Of a node's own clocks none was network time but the one that led:
    /// the other goes on from there, and at its pace, if that is known of both from a whole window. For all others both tell
    /// the same.
    fn turn_to(&mut self, k: usize, now: Instant, own: bool, counters: &mut SyncCounters) {
        let (is, would) = (self.lead(), &self.tracks[k]);
        if let (true, Some(was), Some(will)) = (own, &is.fit, &would.fit) {
            let by = was.ahead(now.as_ns()).wrapping_sub(will.ahead(now.as_ns()));
            let known = is.count == WINDOW && would.count == WINDOW;
            let gain = if known { was.slope() - will.slope() } else { 0 };
            self.tracks[k].lean(now, by, gain);
        }
        self.lead = k;
        counters.switched += 1;
    }

    /// Network time less the TSF of adapter `k`, of a node's own, if it was looked at lately.
    pub(super) fn shift_now(&self, k: usize, now: Instant) -> Option<i64> {
        if k == self.lead {
            return Some(self.shift(k, now));
        }
        let (is, other) = (self.lead().ahead(now)?, self.tracks[k].ahead(now)?);
        let apart = is.wrapping_sub(other);
        self.is_usable(k, now)
            .then(|| apart.wrapping_add(self.shift(k, now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::sync::{NetworkTime, Sync};
    use frame::Band;

    const MS: u64 = 1_000_000;

    /// Two TSFs of a node that sends beacons, one 20 ppm fast and one 20 ppm slow, from different beginnings, in steps of 1 us.
    fn tsf(k: usize, local: u64) -> u64 {
        let us = match k {
            0 => 5_000_000_000 + local + local / 50_000,
            _ => 900_000_000_000 + local - local / 50_000,
        };
        us / 1_000 * 1_000
    }

    fn own() -> Tracker {
        let config = SyncConfig::own(Band::Ghz5, Duration::from_ms(500));
        Tracker::new(SyncConfig {
            second: Some(AdapterId(1)),
            ..config
        })
    }

    fn look(t: &mut Tracker, k: usize, ms: u64, counters: &mut SyncCounters) {
        let local = Instant::from_ns(ms * MS);
        let network = tsf(k, local.as_ns()).wrapping_add_signed(t.shift(k, local));
        t.take(k, local, network, true, counters);
    }

    /// When the first adapter falls silent network time goes on as it was, and what is told of the second one is right.
    #[test]
    fn the_second_goes_on_where_the_first_was() {
        let (mut t, mut counters) = (own(), SyncCounters::default());
        for i in 1..=20 {
            for k in 0..2 {
                look(&mut t, k, i * 50, &mut counters);
            }
        }
        assert_eq!(counters.switched, 0);
        for i in 21..=60 {
            look(&mut t, 1, i * 50, &mut counters);
            let at = Instant::from_ns(i * 50 * MS);
            let is = t.lead().fit.as_ref().unwrap().ahead(at.as_ns());
            let was = 5_000_000_000 + i as i64 * 50 * MS as i64 / 50_000;
            // two seconds on, a pace that is known to 1 us in 350 ms
            assert!((is - was).abs() < 6_000, "{} ns at {} ms", is - was, i * 50);
            let told = t.shift_now(1, at).unwrap();
            let says = tsf(1, at.as_ns()).wrapping_add_signed(told);
            let network = at.as_ns().wrapping_add_signed(is);
            assert!(says.abs_diff(network) < 2_000, "{says} {network}");
        }
        assert_eq!(counters.switched, 1);
        assert_eq!(t.shift_now(0, Instant::from_ns(3_000 * MS)), None);
    }

    /// Who follows takes what it hears of either adapter as the same time.
    #[test]
    fn a_follower_turns_to_the_other_and_back() {
        let config = SyncConfig::new(Band::Ghz5, Duration::from_ms(500));
        let mut t = Tracker::new(SyncConfig {
            second: Some(AdapterId(1)),
            ..config
        });
        let mut counters = SyncCounters::default();
        for i in 1..=60u64 {
            let local = Instant::from_ns(i * 50 * MS);
            let network = 7_000_000_000 + local.as_ns() + 40 * (i % 2);
            for k in [0, 1] {
                let silent = [20..30, 35..50][k].contains(&i);
                if !silent {
                    t.take(k, local, network, false, &mut counters);
                }
            }
            if i >= 3 {
                assert!(t.is_good(local));
                let ahead = t.lead().fit.as_ref().unwrap().ahead(local.as_ns());
                assert!((ahead - 7_000_000_000).abs() < 200, "{ahead} after {i}");
            }
        }
        assert_eq!(counters.switched, 2);
    }

    #[test]
    fn one_adapter_is_as_before() {
        let mut s = Sync::tracking(SyncConfig::new(Band::Ghz5, Duration::from_ms(500)));
        for i in 1..5 {
            s.sample(Instant::from_ns(i * 100 * MS), NetworkTime(i * 100 * MS + 77));
        }
        let at = Instant::from_ns(410 * MS);
        assert_eq!(s.to_network(at), Some(NetworkTime(410 * MS + 77)));
        assert_eq!((s.shifts(at), s.counters().switched), (None, 0));
    }
}
