//! A pool of channel time that all streams share for their retries: the soft guarantee.
//!
//! A number of retries budgeted for each frame ([`feasible::retries_for`](super::feasible::retries_for)) reserves
//! time for the case that all frames fail as often, and little is admitted. The pool reserves what the streams need
//! together: a share of the channel that is saved up to a depth. A retry that the pool pays for is scheduled by its
//! deadline like a first attempt. One that it cannot pay for goes when nothing else is ready. So retries of one
//! stream never cost another its first attempt, whatever the losses are; how many frames are lost is a matter of
//! probability. [`feasible::pooled`](super::feasible::pooled) is the test that goes with it.

use radio::{Duration, Instant};

/// Parts of a whole channel in [`RetryPool::share_ppm`].
pub const WHOLE_PPM: u32 = 1_000_000;

/// How much time for retries there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryPool {
    /// Share of the channel in millionths, at most [`WHOLE_PPM`].
    pub share_ppm: u32,
    /// Most that is saved, and what there is at the start. Less than one attempt pays for no retry.
    pub depth: Duration,
}

/// What is left in the pool.
#[derive(Clone, Copy, Debug)]
pub struct RetryAccount {
    pool: RetryPool,
    /// In millionths of a nanosecond, so that nothing is lost by rounding.
    saved: u64,
    since: Instant,
}

impl RetryAccount {
    /// A full pool.
    pub fn new(pool: RetryPool) -> RetryAccount {
        RetryAccount {
            pool,
            saved: in_parts(pool.depth),
            since: Instant::ZERO,
        }
    }

    /// Whether it can pay `cost` at `now`.
    pub fn covers(&self, now: Instant, cost: Duration) -> bool {
        self.saved_at(now) >= in_parts(cost)
    }

    /// Pays `cost` at `now`, or all that is left.
    pub fn pay(&mut self, now: Instant, cost: Duration) {
        self.saved = self.saved_at(now).saturating_sub(in_parts(cost));
        self.since = self.since.max(now);
    }

    fn saved_at(&self, now: Instant) -> u64 {
        let came = now.since(self.since).as_ns();
        let came = came.saturating_mul(self.pool.share_ppm.min(WHOLE_PPM).into());
        self.saved.saturating_add(came).min(in_parts(self.pool.depth))
    }
}

fn in_parts(time: Duration) -> u64 {
    time.as_ns().saturating_mul(WHOLE_PPM.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Duration = Duration::from_us;

    #[test]
    fn it_fills_up_to_its_depth() {
        let mut account = RetryAccount::new(RetryPool {
            share_ppm: 100_000,
            depth: US(300),
        });
        let at = Instant::from_us;
        assert!(account.covers(at(0), US(300)) && !account.covers(at(0), US(301)));
        account.pay(at(0), US(200));
        assert!(account.covers(at(0), US(100)) && !account.covers(at(999), US(200)));
        assert!(
            account.covers(at(1_000), US(200)),
            "a tenth of the time that has passed"
        );
        assert!(!account.covers(at(1_000_000), US(301)));
        account.pay(at(1_000), US(500));
        assert!(
            !account.covers(at(1_000), Duration::from_ns(1)),
            "it has no debts"
        );
        assert!(account.covers(at(2_000), US(100)));
    }

    #[test]
    fn it_never_pays_more_than_depth_and_share() {
        let pool = RetryPool {
            share_ppm: 70_000,
            depth: US(250),
        };
        let mut account = RetryAccount::new(pool);
        let (mut paid, cost) = (0, Duration::from_ns(137_501));
        for us in 0..50_000 {
            let now = Instant::from_us(us);
            if account.covers(now, cost) {
                account.pay(now, cost);
                paid += cost.as_ns();
            }
            assert!(paid <= 250_000 + us * 70);
        }
        // at the end less than one attempt is left
        assert!(paid + cost.as_ns() > 250_000 + 49_999 * 70);
    }
}
