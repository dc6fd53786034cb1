//! What becomes of the packets of a round.

use super::super::super::stream::Tally;
use super::trip::Trip;
use radio::{Duration, Instant};

/// Packets whose fate must be known before a round tells anything.
const TELLING: u32 = 8;
/// One of so many may be lost.
const BEARABLE: u32 = 16;

/// A round is over when something has arrived that was sent since it began, so that what it tells is of the rate that it was sent with.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// When it began; `None`: with the next packet.
    pub(super) since: Option<Instant>,
    sent: u32,
    told: Tally,
    trip: Trip,
    /// Packets per second that were sent in the one before, and that have arrived.
    sent_hz: Option<f64>,
    arrived_hz: f64,
}

/// See [`Round`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Packets per second that have arrived, those that were sent, and those that were sent in the round before.
    pub arrived_hz: f64,
    pub sent_hz: f64,
    pub before_hz: Option<f64>,
    /// The same of those of which it is known whether they have.
    pub told_hz: f64,
    /// Those that have arrived in this round or in the one before, whichever are more: a feedback tells of so many holes, and nothing of what has come behind the last of
    /// them, so that a round in which much is missing may show a small part.
    pub carries_hz: f64,
    /// More got lost than what may.
    pub lossy: bool,
    /// So much of them got lost, 0 to 1.
    pub lost: f64,
    pub trip: Trip,
}

impl Round {
    pub const NEW: Round = Round {
        since: None,
        sent: 0,
        told: Tally::NONE,
        trip: Trip::UNKNOWN,
        sent_hz: None,
        arrived_hz: 0.0,
    };

    /// A packet goes out.
    pub fn sent(&mut self, now: Instant) {
        self.since.get_or_insert(now);
        self.sent = self.sent.saturating_add(1);
    }

    /// What feedback has told, and how long the way was of what has come.
    pub fn told(&mut self, told: Tally, trip: Trip) {
        self.told.add(told);
        self.trip = self.trip.or_shorter(trip);
    }

    /// What there is to see, if it is over. The next one begins. `most`: it takes no longer, since after so long a packet has arrived or is lost.
    pub fn end(&mut self, now: Instant, most: Option<Duration>) -> Option<Seen> {
        let since = self.since?;
        let Tally {
            arrived, lost, came, ..
        } = self.told;
        let is_over = came >= since || most.is_some_and(|most| now.since(since) >= most);
        if !is_over || arrived + lost < TELLING {
            return None;
        }
        let elapsed = now.since(since).max(Duration::from_us(1));
        let rate = |packets: u32| f64::from(packets) * 1e9 / elapsed.as_ns() as f64;
        let arrived_hz = rate(arrived);
        let seen = Seen {
            arrived_hz,
            carries_hz: arrived_hz.max(self.arrived_hz),
            sent_hz: rate(self.sent),
            before_hz: self.sent_hz,
            told_hz: rate(arrived + lost),
            lossy: lost * BEARABLE > arrived + lost,
            lost: f64::from(lost) / f64::from(arrived + lost),
            trip: self.trip,
        };
        *self = Round {
            since: Some(now),
            sent_hz: Some(seen.sent_hz),
            arrived_hz,
            ..Round::NEW
        };
        Some(seen)
    }
}

/// For tests of what is made of rounds.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// A round that goes on, and what is made of it.
    #[derive(Clone)]
    pub struct Course<P> {
        pub round: Round,
        pub policy: P,
    }

    impl<P> Course<P> {
        pub fn new(policy: P) -> Course<P> {
            Course {
                round: Round::NEW,
                policy,
            }
        }

        /// So many packets go, and of so many it becomes known that they have arrived, and are lost.
        pub fn pass(&mut self, now: Instant, packets: (u32, u32, u32)) {
            self.pass_in(now, packets, Trip::UNKNOWN);
        }

        /// The same, and how long their way was.
        pub fn pass_in(&mut self, now: Instant, (sent, arrived, lost): (u32, u32, u32), trip: Trip) {
            (0..sent).for_each(|_| self.round.sent(now));
            self.round.told(Tally::new(arrived, lost, now), trip);
        }
    }
}
