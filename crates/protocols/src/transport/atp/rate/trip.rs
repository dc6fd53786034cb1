//! Whether packets wait in a queue on their way: it takes longer there and back than it must.

use super::lately::Lately;
use radio::{Duration, Instant};

/// For so long the shortest way is remembered. A queue that stays full for longer looks like a longer path.
const STRETCH: Duration = Duration::from_ms(60_000);
/// What takes longer by one of so many parts of the shortest way has not waited in a queue.
const BEARS: u64 = 8;
/// Nor has what takes longer by this: it may have waited for a processor.
const NOISE: Duration = Duration::from_ms(1);

/// The shortest way there and back, of packets that have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trip {
    /// As it was, if that is known.
    pub sure: Option<Duration>,
    /// It was that long at least.
    pub least: Option<Duration>,
}

impl Trip {
    /// None has told.
    pub const UNKNOWN: Trip = Trip {
        sure: None,
        least: None,
    };

    /// One that took so long; if it is not `sure` which packet came last, it may have taken less by `less`.
    pub fn new(took: Duration, sure: bool, less: Duration) -> Trip {
        Trip {
            sure: sure.then_some(took),
            least: Some(if sure { took } else { took.less(less) }),
        }
    }

    /// The shorter of both, as far as either is known.
    pub fn or_shorter(self, other: Trip) -> Trip {
        let shorter = |a: Option<Duration>, b: Option<Duration>| [a, b].into_iter().flatten().min();
        Trip {
            sure: shorter(self.sure, other.sure),
            least: shorter(self.least, other.least),
        }
    }
}

/// The shortest way there and back of late.
#[derive(Clone, Debug)]
pub(super) struct Least {
    trips: Lately<Duration>,
    /// As the last round that told has it.
    fills: Option<bool>,
}

impl Least {
    pub const NONE: Least = Least {
        trips: Lately::NONE,
        fills: None,
    };

    /// Whether the queue of the path fills: even the shortest way of a round is longer than it must be. Where a round does not tell, it is as before.
    pub fn fills(&mut self, now: Instant, trip: Trip) -> Option<bool> {
        self.trips.note(now, trip.sure, STRETCH);
        if let (Some(least), Some(took)) = (self.trips.least(), trip.least) {
            let bears = Duration::from_ns(least.as_ns() / BEARS).max(NOISE);
            self.fills = Some(took.less(least) > bears);
        }
        self.fills
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn trip(ms: u64, sure: bool) -> Trip {
        Trip::new(Duration::from_ms(ms), sure, Duration::from_ms(30))
    }

    #[test]
    fn a_way_that_is_longer_than_the_shortest_has_a_queue() {
        let mut least = Least::NONE;
        let mut fills = |ms, trip| least.fills(at(ms), trip);
        assert_eq!(fills(0, trip(40, false)), None, "the shortest is not known");
        assert_eq!(fills(0, trip(40, true)), Some(false));
        assert_eq!(fills(0, trip(45, true)), Some(false), "an eighth");
        assert_eq!(fills(0, trip(46, true)), Some(true));
        assert_eq!(fills(0, Trip::UNKNOWN), Some(true), "as before");
        assert_eq!(fills(0, trip(75, false)), Some(false), "it may have taken 45");
        assert_eq!(fills(0, trip(76, false)), Some(true));
        assert_eq!(fills(0, trip(1, false)), Some(false));
        assert_eq!(
            fills(0, trip(45, true)),
            Some(false),
            "what is not sure is no shortest one"
        );
        // it is remembered for one to two minutes
        assert_eq!(fills(60_000, trip(80, true)), Some(true));
        assert_eq!(fills(119_999, trip(80, true)), Some(true));
        assert_eq!(fills(120_000, trip(80, true)), Some(false));
    }

    #[test]
    fn a_millisecond_is_no_queue() {
        let mut least = Least::NONE;
        let us = |us| Trip::new(Duration::from_us(us), true, Duration::ZERO);
        assert_eq!(least.fills(at(0), us(100)), Some(false));
        assert_eq!(least.fills(at(0), us(1_100)), Some(false));
        assert_eq!(least.fills(at(0), us(1_101)), Some(true));
    }

    #[test]
    fn of_a_round_the_shortest_counts() {
        let both = trip(40, true)
            .or_shorter(trip(50, false))
            .or_shorter(Trip::UNKNOWN);
        assert_eq!(both.sure, Some(Duration::from_ms(40)));
        assert_eq!(both.least, Some(Duration::from_ms(20)));
    }
}
