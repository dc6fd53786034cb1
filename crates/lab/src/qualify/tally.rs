//! Sums over a run, and over runs: joined in a fixed order, so that the number of workers does not show.

use super::own::Counts;
use crate::stats::{Batches, CcdfPoint, Online, Running};

/// Stretches between neighbouring planes, the air among them.
pub(super) const PLANES: usize = 10;
/// Their names.
pub(super) const PLANE_NAMES: [&str; PLANES] = [
    "t1-t2", "t2-t3", "t3-t4", "t4-air", "air", "air-t5", "t5-t6", "t6-t7", "t7-t8", "t8-t9",
];
/// Longest latency that is told apart, ns.
const LONGEST_NS: u64 = 20_000_000_000;

/// Number of [`Cause`]s.
pub(super) const CAUSES: usize = 8;

/// Why a message missed its deadline: what became of its first frame that did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its frame was not on the air before the deadline: the cycle was full.
    NoTime,
    /// The controller had not polled its node before the deadline: so many others were polled first, or again.
    NotPolled,
    /// The frame met another frame of the loop.
    Collisions,
    /// The frame was lost on the link.
    Losses,
    /// The frame met a foreign frame or noise; or, in schemes without backoff, somebody else held the channel: the frame
    /// was not sent in its turn, or one that had waited was sent at the same time.
    Interference,
    /// The frame arrived in time, the application had it too late.
    Host,
    /// The frame arrived in time, and the protocol there never handed it up.
    NotHandedUp,
    /// Its node was on the way from one access point to the other: all its messages from this one to the moment in which it was
    /// let in missed, or from that moment to this one.
    HandOver,
}

impl Cause {
    /// All, in the order of `Tally::causes`.
    pub const ALL: [Cause; CAUSES] = [
        Cause::NoTime,
        Cause::NotPolled,
        Cause::Collisions,
        Cause::Losses,
        Cause::Interference,
        Cause::Host,
        Cause::NotHandedUp,
        Cause::HandOver,
    ];
}

/// Time on the air, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Air {
    pub data_ns: u64,
    pub ack_ns: u64,
    pub overhead_ns: u64,
    pub foreign_ns: u64,
}

/// Tries on the air by what became of them. Each frame to one receiver is a try, polls and repetitions included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Tries {
    /// A: acknowledged.
    pub acked: u64,
    /// L_D: the data frame did not arrive, for whatever reason.
    pub data_lost: u64,
    /// L_A: it arrived, and its ACK did not.
    pub ack_lost: u64,
    /// It arrived, and asked for no ACK.
    pub unasked: u64,
}

impl Tries {
    /// All of them.
    pub fn count(&self) -> u64 {
        self.acked + self.data_lost + self.ack_lost + self.unasked
    }
}

/// A distribution in constant memory. Values that never came are kept as such: a quantile that falls among them
/// is none.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    seen: Online,
    moments: Running,
    lost: u64,
}

impl Default for Spread {
    fn default() -> Self {
        Spread {
            seen: Online::new(LONGEST_NS).expect("above 2"),
            moments: Running::default(),
            lost: 0,
        }
    }
}

impl Spread {
    pub(super) fn push(&mut self, ns: impl Into<Option<u64>>) {
        match ns.into() {
            Some(ns) => {
                self.seen.record(ns);
                self.moments.push(ns as f64);
            }
            None => self.lost += 1,
        }
    }

    pub(super) fn merge(&mut self, other: &Spread) {
        self.seen.merge(&other.seen);
        self.moments.merge(&other.moments);
        self.lost += other.lost;
    }

    /// Values that never came.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// All values, those that never came included.
    pub(super) fn count(&self) -> u64 {
        self.seen.count() + self.lost
    }

    /// Mean of those that came.
    pub(super) fn mean_ns(&self) -> Option<f64> {
        self.moments.mean()
    }

    /// Nearest rank over all; `None` if it falls among those that never came, or without values.
    pub(super) fn quantile_ns(&self, p: f64) -> Option<u64> {
        let came = self.seen.count();
        let all = self.count();
        if came == 0 || p * all as f64 > came as f64 {
            return None;
        }
        let ns = self.seen.quantile((p * all as f64 / came as f64).min(1.0))?;
        // the histogram rounds up
        Some(ns.min(self.moments.max()? as u64))
    }

    /// Largest; `None` if one never came.
    pub(super) fn max_ns(&self) -> Option<u64> {
        if self.lost > 0 {
            return None;
        }
        self.moments.max().map(|ns| ns as u64)
    }

    /// P(X > x) over all values; nothing without values.
    pub(super) fn ccdf(&self) -> Vec<CcdfPoint> {
        if self.seen.count() == 0 {
            return Vec::new();
        }
        let (came, all) = (self.seen.count() as f64, self.count() as f64);
        let scale = |c: CcdfPoint| CcdfPoint {
            x: c.x,
            p: (c.p * came + self.lost as f64) / all,
        };
        self.seen.ccdf().into_iter().map(scale).collect()
    }
}

/// What runs have come to.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Misses, clustered.
    pub batches: Batches,
    /// Cycles that counted.
    pub cycles: u64,
    /// Their time, ns.
    pub span_ns: u64,
    /// Misses of messages that were delivered after all.
    pub late: u64,
    /// Misses by [`Cause`].
    pub causes: [u64; CAUSES],
    /// From controller to node.
    pub down: Spread,
    /// From node to controller.
    pub up: Spread,
    /// Time on the air.
    pub air: Air,
    /// Frames of the loop, ACKs not counted.
    pub attempts: u64,
    /// Of these, started while another frame of the loop was on the air.
    pub collided: u64,
    /// Of these, started while somebody else was on the air.
    pub disturbed: u64,
    /// Frames that are to be acknowledged and met nobody on the air.
    pub alone: u64,
    /// Of these, those that did not arrive.
    pub alone_lost: u64,
    /// Repetitions of messages that missed.
    pub repeats: u64,
    /// Of these, those that met another frame of the loop.
    pub repeats_collided: u64,
    /// All tries by outcome.
    pub tries: Tries,
    /// What overlays counted.
    pub own: Counts,
    /// Requests that were acknowledged.
    pub acked: u64,
    /// How long each hand-over cut its node off, 0 where nothing missed.
    pub cut_off: Spread,
    /// Hand-overs in which nothing missed.
    pub unharmed: u64,
    /// Where the time of an acknowledged request goes.
    pub planes: [Spread; PLANES],
}

impl Tally {
    /// Latencies of both directions.
    pub(super) fn both(&self) -> Spread {
        let mut both = self.down.clone();
        both.merge(&self.up);
        both
    }

    pub(super) fn merge(&mut self, other: &Tally) {
        self.batches.merge(&other.batches);
        self.cycles += other.cycles;
        self.span_ns += other.span_ns;
        self.late += other.late;
        self.causes
            .iter_mut()
            .zip(other.causes)
            .for_each(|(a, b)| *a += b);
        self.down.merge(&other.down);
        self.up.merge(&other.up);
        self.air.data_ns += other.air.data_ns;
        self.air.ack_ns += other.air.ack_ns;
        self.air.overhead_ns += other.air.overhead_ns;
        self.air.foreign_ns += other.air.foreign_ns;
        self.attempts += other.attempts;
        self.collided += other.collided;
        self.disturbed += other.disturbed;
        self.alone += other.alone;
        self.alone_lost += other.alone_lost;
        self.repeats += other.repeats;
        self.repeats_collided += other.repeats_collided;
        self.tries.acked += other.tries.acked;
        self.tries.data_lost += other.tries.data_lost;
        self.tries.ack_lost += other.tries.ack_lost;
        self.tries.unasked += other.tries.unasked;
        self.own.merge(&other.own);
        self.acked += other.acked;
        self.cut_off.merge(&other.cut_off);
        self.unharmed += other.unharmed;
        self.planes
            .iter_mut()
            .zip(&other.planes)
            .for_each(|(a, b)| a.merge(b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_came_is_at_the_far_end() {
        let mut s = Spread::default();
        assert_eq!((s.quantile_ns(0.5), s.max_ns()), (None, None));
        (1..=90u64).for_each(|x| s.push(x));
        assert_eq!(s.max_ns(), Some(90));
        (0..10).for_each(|_| s.push(None));
        assert_eq!(
            (s.quantile_ns(0.5), s.quantile_ns(0.9), s.quantile_ns(0.91)),
            (Some(50), Some(90), None)
        );
        assert_eq!(s.ccdf().last().map(|c| (c.x, c.p)), Some((90.0, 0.1)));
        let mut twice = s.clone();
        twice.merge(&s);
        assert_eq!(
            (twice.count(), twice.lost(), twice.quantile_ns(0.5)),
            (200, 20, Some(50))
        );
    }
}
