//! Signs of life of the other end.

use radio::{Duration, Instant};

/// When the other end was heard, and when to ask whether it is still there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    patience: Duration,
    heard_at: Instant,
    ask_at: Instant,
    /// From one question to the next.
    again: Duration,
}

impl Life {
    /// Parts of the patience after which one asks for the first time ...
    const FIRST: u64 = 2;
    /// ... and each further time.
    const AGAIN: u64 = 8;

    /// Nothing has been heard yet, and nobody asks.
    pub(super) const fn new(patience: Duration) -> Life {
        Life {
            patience,
            heard_at: Instant::ZERO,
            ask_at: Instant::MAX,
            again: patience,
        }
    }

    fn part(&self, part: u64) -> Duration {
        Duration::from_ns(self.patience.as_ns() / part)
    }

    /// Something came.
    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
        self.ask_at = now + self.part(Self::FIRST);
        self.again = self.part(Self::AGAIN);
    }

    /// A call was answered, and there is nothing to send that would tell the other end that the answer has come. What tells it may get lost, so one
    /// asks each `wait` until something else comes.
    pub(super) fn answered(&mut self, now: Instant, wait: Duration) {
        self.heard(now);
        self.ask_at = now + wait;
        self.again = wait;
    }

    /// Something goes that the other end answers by itself.
    pub(super) fn spoken(&mut self) {
        if self.again != self.part(Self::AGAIN) {
            self.heard(self.heard_at);
        }
    }

    /// It is time to ask.
    pub(super) fn wants_to_ask(&self, now: Instant) -> bool {
        now >= self.ask_at
    }

    /// One has asked.
    pub(super) fn asked(&mut self, now: Instant) {
        self.ask_at = now + self.again;
    }

    /// When patience is at its end.
    pub(super) fn over_at(&self) -> Instant {
        self.heard_at + self.patience
    }

    /// When to ask, or patience is at its end.
    pub(super) fn deadline(&self) -> Instant {
        self.over_at().min(self.ask_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_asked_about_and_then_the_end() {
        let at = |ms: u64| Instant::from_ns(ms * 1_000_000);
        let mut life = Life::new(Duration::from_ms(800));
        assert!(!life.wants_to_ask(at(100_000)), "before anything was heard");
        life.heard(at(1_000));
        assert_eq!((life.deadline(), life.over_at()), (at(1_400), at(1_800)));
        let mut asked = 0;
        while life.deadline() < life.over_at() {
            assert!(life.wants_to_ask(life.deadline()));
            life.asked(life.deadline());
            asked += 1;
        }
        assert_eq!(asked, 4);
        life.heard(at(1_700));
        assert_eq!(life.deadline(), at(2_100));
        life.answered(at(2_200), Duration::from_ms(50));
        for ms in [2_250, 2_300, 2_350] {
            assert_eq!(life.deadline(), at(ms));
            life.asked(at(ms));
        }
        assert_eq!(life.over_at(), at(3_000));
        life.heard(at(2_360));
        assert_eq!(life.deadline(), at(2_760), "there is no more doubt");
        life.answered(at(2_400), Duration::from_ms(50));
        life.asked(at(2_450));
        life.spoken();
        assert_eq!(life.deadline(), at(2_800));
        life.asked(at(2_800));
        life.spoken();
        assert_eq!(life.deadline(), at(2_900));
    }
}
