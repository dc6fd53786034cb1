//! Whether the sender has a rate, and how it looks for one: probes, after silences and, of several flows of a macroflow, beside the data.

use super::Rate;
use radio::Instant;

/// What the sender is doing about its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Looks for it: data are held, and a probe is due at this instant. `told`: because a notice said that the path has failed.
    QuickStart { probe_at: Option<Instant>, told: bool },
    /// Has one.
    Running,
    /// Has one that it doubts, and that other flows of its macroflow go on at: so does it, and looks for another one meanwhile. A probe is due at
    /// this instant.
    Asking { probe_at: Instant },
}

impl Rate {
    /// True while data are held.
    pub fn is_searching(&self) -> bool {
        matches!(self.phase, Phase::QuickStart { .. })
    }

    /// True while the answer to a probe, with this delay, is a rate to go on at. One without a delay says no more to those that have a rate than that the path holds.
    pub fn wants(&self, delay_us: u32) -> bool {
        match self.phase {
            Phase::QuickStart { .. } => true,
            Phase::Asking { .. } => delay_us > 0,
            Phase::Running => false,
        }
    }

    /// When a probe is due.
    pub fn probe_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::QuickStart { probe_at, .. } => Some(probe_at.unwrap_or(Instant::ZERO)),
            Phase::Asking { probe_at } => Some(probe_at),
            Phase::Running => None,
        }
    }

    /// A probe was sent; the next one follows after an epoch, or after a silence if a notice was the reason.
    pub fn probed(&mut self, now: Instant) {
        let next = now + self.epoch();
        match self.phase {
            Phase::QuickStart { told: true, .. } => {
                self.silence.end();
                let silent = now + self.silence.draw();
                self.hold(next.max(silent), true);
            }
            Phase::QuickStart { .. } => self.hold(next, false),
            Phase::Asking { .. } => self.phase = Phase::Asking { probe_at: next },
            Phase::Running => {}
        }
    }

    /// The rate is not to be trusted: data are held until a probe comes back. Where others of a macroflow have it, too, they are held
    /// when that is so for the second time.
    pub(super) fn search(&mut self, now: Instant) {
        if self.phase == Phase::Running && self.flows > 1.0 {
            self.phase = Phase::Asking { probe_at: now };
            return;
        }
        if !self.is_searching() {
            self.hold(now, false);
        }
        self.expect_at = None;
    }

    /// No others have the rate any more.
    pub(super) fn alone(&mut self) {
        if let Phase::Asking { probe_at } = self.phase {
            self.hold(probe_at, false);
            self.expect_at = None;
        }
        (self.share, self.flows) = (1.0, 1.0);
    }

    /// A node on the way says that the path has failed: data are held until a probe comes back. A sender whose epoch adjusts itself is
    /// silent before each, the first one included, whether or not it was looking for a rate already; not one that sends beside others of a
    /// macroflow, for these would not be.
    pub fn path_failed(&mut self, now: Instant) {
        let is_silent = matches!(self.phase, Phase::QuickStart { told: true, .. });
        if self.config.adjusting && !is_silent && self.flows <= 1.0 {
            let silence = self.silence.draw();
            self.hold(now + silence, true);
        }
        self.search(now);
    }

    /// A feedback was about data that have come, so that the path holds.
    pub fn came_through(&mut self) {
        if !self.is_searching() {
            self.silence.heard();
        }
    }

    fn hold(&mut self, probe_at: Instant, told: bool) {
        self.phase = Phase::QuickStart {
            probe_at: Some(probe_at),
            told,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::atp::macroflow::{Macroflow, Member, Was};
    use crate::transport::atp::{Config, rate::MISSES};
    use radio::Duration;

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    const fn member(id: u64) -> Member {
        Member {
            id,
            until: Instant::MAX,
            goodput: None,
        }
    }

    /// Flow 1 of two at 100 packets/s; the other one goes on.
    fn one_of_two() -> (Rate, Macroflow) {
        let mut rate = Rate::new(&Config::sdmac());
        rate.quick_start(at(0), 10_000, 1, true);
        let mut flows = Macroflow::default();
        flows.note(at(0), member(2), rate.hz(), Was::Found).unwrap();
        rate.join(at(0), member(1), &mut flows);
        rate.sent(at(0), false);
        (rate, flows)
    }

    fn miss_all(rate: &mut Rate, now: Instant) {
        (0..MISSES).for_each(|_| _ = rate.miss(now));
    }

    #[test]
    fn one_of_several_asks_beside_its_data() {
        let (mut r, mut flows) = one_of_two();
        miss_all(&mut r, at(500));
        r.join(at(500), member(1), &mut flows);
        assert!(!r.is_searching() && r.send_at().is_some() && r.expect_at().is_some());
        assert_eq!(r.probe_at(), Some(at(500)));
        r.probed(at(500));
        let wait = r.probe_at().unwrap().since(at(500));
        assert!(wait >= Duration::from_ms(20) && r.wants(4_000), "{wait:?}");
        // the answer brings its rate into the mean
        let common = r.hz();
        r.quick_start(at(510), 4_000, 1, true);
        let found = r.hz();
        r.join(at(510), member(1), &mut flows);
        assert!(!r.wants(4_000) && found > 1.5 * common);
        assert!(
            (r.hz() - (common + found) / 2.0).abs() < 1e-6,
            "{} {}",
            r.hz(),
            found
        );
    }

    #[test]
    fn feedback_says_as_much() {
        let (mut r, _) = one_of_two();
        miss_all(&mut r, at(500));
        let common = r.hz();
        assert!(!r.wants(0), "an answer without a delay is no more than that");
        r.feedback(at(510), 0, 1, true);
        assert_eq!((r.hz(), r.wants(4_000), r.probe_at()), (common, false, None));
    }

    #[test]
    fn nobody_asks_for_ever() {
        // three more are missed
        let (mut held, _) = one_of_two();
        miss_all(&mut held, at(500));
        miss_all(&mut held, at(900));
        // the other one is gone
        let (mut alone, mut flows) = one_of_two();
        miss_all(&mut alone, at(500));
        flows.leave(2);
        alone.join(at(500), member(1), &mut flows);
        // it has no part in it itself
        let (mut left, _) = one_of_two();
        miss_all(&mut left, at(500));
        left.leave();
        for r in [held, alone, left] {
            assert!(
                r.is_searching() && r.send_at().is_none() && r.expect_at().is_none(),
                "{r:?}"
            );
        }
    }

    #[test]
    fn who_was_held_brings_in_what_it_finds() {
        let (mut r, mut flows) = one_of_two();
        (0..2).for_each(|_| miss_all(&mut r, at(500)));
        flows.leave(1);
        r.leave();
        let common = flows.hz;
        r.quick_start(at(900), 4_000, 1, true);
        let found = r.hz();
        r.join(at(900), member(1), &mut flows);
        assert!(found > 1.5 * common);
        assert!(
            (r.hz() - f64::midpoint(common, found)).abs() < 1e-6,
            "{} {}",
            r.hz(),
            found
        );
    }

    /// The others would send all the same.
    #[test]
    fn a_notice_silences_none_of_several() {
        let (mut r, _) = one_of_two();
        r.path_failed(at(500));
        assert!(!r.is_searching());
        assert_eq!(r.probe_at(), Some(at(500)));
        r.path_failed(at(501));
        assert!(r.is_searching(), "told twice");
        r.probed(at(502));
        assert_eq!(r.probe_at(), Some(at(502) + r.epoch()), "no silence");
    }
}
