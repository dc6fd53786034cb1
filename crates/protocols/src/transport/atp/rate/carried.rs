//! What the path carries, as rounds of packets show: where no hop tells a delay the rate goes by that alone, and where they do it is a brake.

use super::super::super::stream::Tally;
use super::brake::Brake;
use super::round::Round;
use super::rounds::Rounds;
use super::trip::Trip;
use radio::{Duration, Instant};

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Carried {
    round: Round,
    /// Hops told a delay when they were last heard of.
    hops_tell: bool,
    rounds: Rounds,
    brake: Brake,
}

impl Carried {
    pub const NEW: Carried = Carried {
        round: Round::NEW,
        hops_tell: false,
        rounds: Rounds::NEW,
        brake: Brake::NEW,
    };

    /// A packet goes out.
    pub fn sent(&mut self, now: Instant) {
        self.round.sent(now);
    }

    /// What feedback has told of packets, and how long the way was of what has come.
    pub fn told(&mut self, told: Tally, trip: Trip) {
        self.round.told(told, trip);
    }

    /// A round trip took so much longer than the shortest.
    pub fn took(&mut self, longer: Duration) {
        self.brake.took(longer);
    }

    /// What is known of this round says nothing.
    pub fn rest(&mut self) {
        self.round = Round::NEW;
        self.rounds.rest();
        self.brake.rest();
    }

    /// The rate is looked for anew, maybe over `another` path. `hops_tell` a delay.
    pub fn anew(&mut self, another: bool, hops_tell: bool) {
        self.hops_tell |= hops_tell;
        self.brake.release(another);
        if another {
            self.rounds.release();
        }
        if self.hops_tell {
            self.round = Round::NEW;
        }
    }

    /// Feedback has come, and hops tell a delay or do not. What was seen of a round while the other one decided is not of it.
    pub fn turn(&mut self, hops_tell: bool) {
        if core::mem::replace(&mut self.hops_tell, hops_tell) != hops_tell {
            self.rest();
        }
    }

    /// The rate to go on with where no hop tells a delay, if what is carried says that `hz` is not the one. As [`Rounds::end`] has it.
    pub fn alone(&mut self, now: Instant, hz: f64, least_hz: f64) -> Option<f64> {
        self.rounds.end(now, self.round.end(now, None)?, hz, least_hz)
    }

    /// The rate to begin with there, if the path carries less than it was begun with at first.
    pub fn narrow(&self) -> Option<f64> {
        self.rounds.narrow()
    }

    /// The rate to go with instead of the `told_hz` that the hops allow, as [`Brake::rate`] has it. After `known` a packet has arrived or is lost.
    pub fn slowed(
        &mut self,
        now: Instant,
        hz: f64,
        told_hz: f64,
        hops_take: Duration,
        known: Duration,
    ) -> Option<f64> {
        // while nothing but what was lost goes it is not known when what has arrived was sent, and who is slow must not stay slow for that
        let most = self.brake.is_on().then_some(known);
        self.brake.rate(self.round.end(now, most), hz, told_hz, hops_take)
    }
}
