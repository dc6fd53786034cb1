//! Can all deadlines be met? Schedulability of non-preemptive EDF, in integer nanoseconds, before anything is
//! sent.
//!
//! A stream needs the channel for `cost_ns` (all its attempts) at most once per `period_ns`, by `deadline_ns`
//! after its release. The channel cannot be taken from a running attempt, so each stream can be blocked by one
//! attempt of a stream with a later deadline, the length of which is `attempt_ns`.

use super::pool::{RetryPool, WHOLE_PPM};
use radio::Duration;

/// Points in time at which a test compares supply and demand, at most.
pub const MAX_POINTS: u64 = 4_000_000;

/// A stream of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    /// Shortest time between two releases, T.
    pub period_ns: u64,
    /// Relative deadline D, at most T.
    pub deadline_ns: u64,
    /// Time on the channel of one frame with all the retries that are budgeted, C.
    pub cost_ns: u64,
    /// The longest stretch that is not preempted: one attempt if failed frames are queued again
    /// ([`Strategy::Queued`](super::Strategy::Queued)), C if they go again at once.
    pub attempt_ns: u64,
}

impl Stream {
    /// A stream with deadline = period and `retries` retries of attempts that cost `attempt_ns` each, queued
    /// again after a failure.
    pub const fn new(period_ns: u64, attempt_ns: u64, retries: u32) -> Stream {
        Stream {
            period_ns,
            deadline_ns: period_ns,
            cost_ns: attempt_ns.saturating_mul(retries as u64 + 1),
            attempt_ns,
        }
    }
}

/// Why a set of streams is not (or cannot be shown to be) schedulable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Infeasible {
    /// A period of 0, a deadline of 0 or beyond the period, or an attempt longer than the cost.
    BadStream {
        /// Index of the stream.
        stream: usize,
    },
    /// The streams ask for more than the whole channel.
    Overload,
    /// In some interval of this length the streams may ask for more than fits.
    Demand {
        /// Length of the interval.
        interval_ns: u64,
        /// What may be asked for in it, blocking included.
        demand_ns: u64,
    },
    /// More than [`MAX_POINTS`] points would have to be looked at.
    TooManyPoints,
}

impl core::fmt::Display for Infeasible {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Infeasible::BadStream { stream } => {
                write!(
                    f,
                    "stream {stream} has no period or deadline, or a deadline beyond its period"
                )
            }
            Infeasible::Overload => write!(f, "the streams ask for more than the whole channel"),
            Infeasible::Demand {
                interval_ns,
                demand_ns,
            } => write!(
                f,
                "in some {} us up to {} us may be asked for",
                interval_ns / 1_000,
                demand_ns.div_ceil(1_000)
            ),
            Infeasible::TooManyPoints => {
                write!(
                    f,
                    "the periods differ too much: more than {MAX_POINTS} instants to look at"
                )
            }
        }
    }
}

impl core::error::Error for Infeasible {}

/// Smallest number of retries with which a frame is lost at most with probability `target`, if each attempt fails
/// with probability `per`, independently; `None` if 64 do not suffice.
pub fn retries_for(per: f64, target: f64) -> Option<u32> {
    let mut lost = per;
    (0..=64).find(|_| {
        let enough = lost <= target;
        lost *= per;
        enough
    })
}

/// The test of Jeffay, Stanat and Martel (1991) for sporadic streams with deadline = period:
/// `sum C/T <= 1`, and for each stream i and all L with `min T < L < T_i`:
/// `L >= A_i + sum floor((L - 1) / T_j) C_j` over the streams j with a period below T_i.
/// Necessary and sufficient where attempt = cost for all streams (A = C); sufficient otherwise. Deadlines are
/// taken to be the periods.
///
/// # Errors
/// [`Infeasible`] with the first interval that is found. The utilisation is compared to within 2^-50.
pub fn sporadic(streams: &[Stream]) -> Result<(), Infeasible> {
    check(streams, 0)?;
    let mut points = 0;
    for i in streams {
        // demand only steps up at L = k T_j + 1
        for j in streams.iter().filter(|j| j.period_ns < i.period_ns) {
            for k in 1.. {
                let l = k * j.period_ns + 1;
                if l >= i.period_ns {
                    break;
                }
                points += 1;
                if points > MAX_POINTS {
                    return Err(Infeasible::TooManyPoints);
                }
                let shorter = streams.iter().filter(|s| s.period_ns < i.period_ns);
                let others = shorter.map(|s| ((l - 1) / s.period_ns).saturating_mul(s.cost_ns));
                let demand_ns = others.fold(i.attempt_ns, u64::saturating_add);
                if demand_ns > l {
                    return Err(Infeasible::Demand {
                        interval_ns: l,
                        demand_ns,
                    });
                }
            }
        }
    }
    Ok(())
}

/// The test of George, Rivierre and Spuri (1996) for sporadic streams with deadline <= period: for all
/// absolute deadlines t up to the last relative deadline and the end of the synchronous busy period,
/// `max (A_i - 1) over D_i > t, + sum (1 + floor((t - D_j) / T_j)) C_j over D_j <= t, <= t`.
/// Sufficient; also necessary where attempt = cost for all streams.
///
/// # Errors
/// [`Infeasible`] with the first interval that is found. The utilisation is compared to within 2^-50.
pub fn constrained(streams: &[Stream]) -> Result<(), Infeasible> {
    let none = RetryPool {
        share_ppm: 0,
        depth: Duration::ZERO,
    };
    demand(streams, &none, |s, t| s.deadline_ns > t)
}

/// The share of the channel, in millionths, that streams need for retries on average, times `factor`:
/// `factor * sum PER_i A_i / T_i` for pairs of a stream and its packet error ratio. A factor of 1 is the mean of
/// the first retries; the repeated failure of a retry and the fluctuation need more. At most the whole channel.
pub fn retry_share_ppm(streams: &[(Stream, f64)], factor: f64) -> u32 {
    let of = |(s, per): &(Stream, f64)| per * s.attempt_ns as f64 / s.period_ns as f64;
    let share = factor * streams.iter().map(of).sum::<f64>() * f64::from(WHOLE_PPM);
    // rounded up, within [0, 1]; what is not a number reserves everything
    let whole = share as u32;
    let up = whole.saturating_add(u32::from(share > f64::from(whole)));
    if share.is_nan() {
        WHOLE_PPM
    } else {
        up.min(WHOLE_PPM)
    }
}

/// The test for retries from a pool ([`pool`](super::pool)) with the strategy
/// [`Queued`](super::Strategy::Queued): `cost_ns` of the streams is their first attempt alone. As
/// [`constrained`], with what the pool may pay in an interval of length t, `depth + share t`, added to the demand,
/// and with blocking by any stream: a retry that the pool does not pay for may be on the air, whatever its
/// deadline is. Sufficient: every first attempt ends by its deadline, and every retry that is paid for as soon
/// as the attempt before it has failed.
///
/// # Errors
/// [`Infeasible`] with the first interval that is found.
pub fn pooled(streams: &[Stream], pool: &RetryPool) -> Result<(), Infeasible> {
    demand(streams, pool, |_, _| true)
}

/// Compares supply and demand at all absolute deadlines t; `blocks` says which streams may be blocking then.
fn demand(
    streams: &[Stream],
    pool: &RetryPool,
    blocks: impl Fn(&Stream, u64) -> bool,
) -> Result<(), Infeasible> {
    check(streams, pool.share_ppm)?;
    let end = horizon(streams, pool)?;
    let mut points = 0;
    for i in streams {
        let mut t = i.deadline_ns;
        while t <= end {
            points += 1;
            if points > MAX_POINTS {
                return Err(Infeasible::TooManyPoints);
            }
            let blocking = streams.iter().filter(|s| blocks(s, t));
            let blocking = blocking
                .map(|s| s.attempt_ns.saturating_sub(1))
                .max()
                .unwrap_or(0);
            let due = streams.iter().filter(|s| s.deadline_ns <= t);
            let due = due.map(|s| (1 + (t - s.deadline_ns) / s.period_ns).saturating_mul(s.cost_ns));
            let first = blocking.saturating_add(retries_in(pool, t));
            let demand_ns = due.fold(first, u64::saturating_add);
            if demand_ns > t {
                return Err(Infeasible::Demand {
                    interval_ns: t,
                    demand_ns,
                });
            }
            t = t.saturating_add(i.period_ns);
        }
    }
    Ok(())
}

/// Time on the channel that the pool pays for in an interval of length `t`, at most, rounded up.
fn retries_in(pool: &RetryPool, t: u64) -> u64 {
    let share = (u128::from(t) * u128::from(pool.share_ppm)).div_ceil(u128::from(WHOLE_PPM));
    let share = u64::try_from(share).unwrap_or(u64::MAX);
    pool.depth.as_ns().saturating_add(share)
}

fn check(streams: &[Stream], share_ppm: u32) -> Result<(), Infeasible> {
    let bad = |s: &Stream| {
        s.period_ns == 0 || s.deadline_ns == 0 || s.deadline_ns > s.period_ns || s.attempt_ns > s.cost_ns
    };
    if let Some(stream) = streams.iter().position(bad) {
        return Err(Infeasible::BadStream { stream });
    }
    // in units of 2^-60
    let shares = streams
        .iter()
        .map(|s| (u128::from(s.cost_ns) << 60) / u128::from(s.period_ns));
    let pool = (u128::from(share_ppm) << 60) / u128::from(WHOLE_PPM);
    let utilisation = shares.fold(pool, u128::saturating_add);
    if utilisation > (1 << 60) + (1 << 10) {
        return Err(Infeasible::Overload);
    }
    Ok(())
}

/// How far the demand has to be looked at: to the last relative deadline, because of blocking, and to the end of
/// the longest busy period, which starts with a release of all streams.
fn horizon(streams: &[Stream], pool: &RetryPool) -> Result<u64, Infeasible> {
    let last = streams.iter().map(|s| s.deadline_ns).max().unwrap_or(0);
    // without a pool, a blocking attempt is one of these streams' own and does not make it longer
    let longest = streams.iter().map(|s| s.attempt_ns).max().unwrap_or(0);
    let blocking = if retries_in(pool, 1) > 0 { longest } else { 0 };
    let mut length = streams
        .iter()
        .fold(blocking, |sum: u64, s| sum.saturating_add(s.cost_ns));
    for _ in 0..MAX_POINTS {
        let demand = streams
            .iter()
            .map(|s| length.div_ceil(s.period_ns).saturating_mul(s.cost_ns));
        let first = blocking.saturating_add(retries_in(pool, length));
        let next = demand.fold(first, u64::saturating_add);
        if next == length {
            return Ok(length.max(last));
        }
        length = next;
    }
    Err(Infeasible::TooManyPoints)
}

#[cfg(test)]
mod tests;
