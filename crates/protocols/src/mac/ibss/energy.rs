//! The energy ledger: how long the radio was in which state, and what that costs.

use radio::{Duration, Instant};

/// Power of a radio by state, in milliwatts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PowerProfile {
    /// While it sends.
    pub transmit_mw: u32,
    /// While it receives a frame.
    pub receive_mw: u32,
    /// While it listens.
    pub listen_mw: u32,
    /// While it dozes.
    pub doze_mw: u32,
}

impl PowerProfile {
    /// Round numbers of ours, of the size that such adapters have: 1500, 800, 800 and 10 mW. Take your own.
    pub const TYPICAL: PowerProfile = PowerProfile {
        transmit_mw: 1_500,
        receive_mw: 800,
        listen_mw: 800,
        doze_mw: 10,
    };
}

/// How long a radio was in which state. What it received for others counts as listening: nobody is told of it. Spaces within an exchange
/// and backoff are listening, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Energy {
    /// Frames of its own on the air, all tries of them, and the ACKs to those that it was told of, by their airtime.
    pub transmit: Duration,
    /// Frames that it was told of, and the ACKs to its own, by their airtime.
    pub receive: Duration,
    /// Awake, and neither.
    pub listen: Duration,
    /// Dozing.
    pub doze: Duration,
}

impl Energy {
    /// Energy in microjoules.
    pub fn microjoules(&self, profile: &PowerProfile) -> u64 {
        let part = |time: Duration, mw: u32| u128::from(time.as_ns()) * u128::from(mw);
        let all = part(self.transmit, profile.transmit_mw)
            + part(self.receive, profile.receive_mw)
            + part(self.listen, profile.listen_mw)
            + part(self.doze, profile.doze_mw);
        // ns times mW are picojoules
        (all / 1_000_000) as u64
    }
}

/// The book that it is kept in.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    start: Option<Instant>,
    transmit: Duration,
    receive: Duration,
    doze: Duration,
    dozes_since: Option<Instant>,
}

impl Ledger {
    pub(super) fn start(&mut self, now: Instant) {
        self.start = Some(now);
    }

    pub(super) fn sent(&mut self, time: Duration) {
        self.transmit += time;
    }

    pub(super) fn received(&mut self, time: Duration) {
        self.receive += time;
    }

    pub(super) fn dozes(&mut self, now: Instant) {
        self.dozes_since.get_or_insert(now);
    }

    pub(super) fn wakes(&mut self, now: Instant) {
        if let Some(since) = self.dozes_since.take() {
            self.doze += now.since(since);
        }
    }

    /// The doze that has begun was none.
    pub(super) fn did_not_doze(&mut self) {
        self.dozes_since = None;
    }

    /// As of `now`.
    pub(super) fn close(&self, now: Instant) -> Energy {
        let all = now.since(self.start.unwrap_or(now));
        let doze = self.doze + self.dozes_since.map_or(Duration::ZERO, |t| now.since(t));
        Energy {
            transmit: self.transmit,
            receive: self.receive,
            listen: all.less(doze).less(self.transmit).less(self.receive),
            doze,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_time_is_in_one_state() {
        let ms = |n: u64| Instant::from_us(1_000 * n);
        let mut book = Ledger::default();
        book.start(ms(10));
        book.sent(Duration::from_ms(2));
        book.received(Duration::from_ms(3));
        book.dozes(ms(20));
        book.dozes(ms(25));
        book.wakes(ms(60));
        book.wakes(ms(65));
        book.dozes(ms(100));
        let e = book.close(ms(110));
        assert_eq!(
            [e.transmit, e.receive, e.listen, e.doze],
            [2, 3, 45, 50].map(Duration::from_ms)
        );
        // 2 ms at 1.5 W, 48 ms at 0.8 W, 50 ms at 10 mW
        assert_eq!(e.microjoules(&PowerProfile::TYPICAL), 3_000 + 38_400 + 500);
    }
}
