//! Can all deadlines be met? Schedulability of non-preemptive EDF, in integer nanoseconds, before anything is
//! sent.
//!
//! A stream needs the channel for `cost_ns` (all its attempts) at most once per `period_ns`, by `deadline_ns`
//! after its release. The channel cannot be taken from a running attempt, so each stream can be blocked by one
//! attempt of a stream with a later deadline, the length of which is `attempt_ns`.

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
    check(streams)?;
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
    check(streams)?;
    let end = horizon(streams)?;
    let mut points = 0;
    for i in streams {
        let mut t = i.deadline_ns;
        while t <= end {
            points += 1;
            if points > MAX_POINTS {
                return Err(Infeasible::TooManyPoints);
            }
            let late = streams.iter().filter(|s| s.deadline_ns > t);
            let blocking = late.map(|s| s.attempt_ns.saturating_sub(1)).max().unwrap_or(0);
            let due = streams.iter().filter(|s| s.deadline_ns <= t);
            let due = due.map(|s| (1 + (t - s.deadline_ns) / s.period_ns).saturating_mul(s.cost_ns));
            let demand_ns = due.fold(blocking, u64::saturating_add);
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

fn check(streams: &[Stream]) -> Result<(), Infeasible> {
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
    let utilisation = shares.fold(0u128, u128::saturating_add);
    if utilisation > (1 << 60) + (1 << 10) {
        return Err(Infeasible::Overload);
    }
    Ok(())
}

/// How far the demand has to be looked at: to the last relative deadline, because of blocking, and to the end of
/// the busy period that starts with a release of all streams.
fn horizon(streams: &[Stream]) -> Result<u64, Infeasible> {
    let last = streams.iter().map(|s| s.deadline_ns).max().unwrap_or(0);
    let mut length = streams
        .iter()
        .fold(0, |sum: u64, s| sum.saturating_add(s.cost_ns));
    for _ in 0..MAX_POINTS {
        let demand = streams
            .iter()
            .map(|s| length.div_ceil(s.period_ns).saturating_mul(s.cost_ns));
        let next = demand.fold(0, u64::saturating_add);
        if next == length {
            return Ok(length.max(last));
        }
        length = next;
    }
    Err(Infeasible::TooManyPoints)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn whole(period: u64, cost: u64) -> Stream {
        Stream {
            period_ns: period,
            deadline_ns: period,
            cost_ns: cost,
            attempt_ns: cost,
        }
    }

    /// Non-preemptive EDF in unit steps: does every job of `releases` (stream, time) meet its deadline?
    fn all_met(streams: &[Stream], releases: &[(usize, u64)]) -> bool {
        let mut open: Vec<(u64, usize, u64)> = Vec::new();
        let mut left: Vec<_> = releases.to_vec();
        left.sort_by_key(|r| r.1);
        left.reverse();
        let mut now = 0;
        loop {
            while left.last().is_some_and(|r| r.1 <= now) {
                let (s, t) = left.pop().unwrap();
                open.push((t + streams[s].deadline_ns, s, streams[s].cost_ns));
            }
            let Some(next) = (0..open.len()).min_by_key(|i| open[*i]) else {
                match left.last() {
                    Some(r) => now = r.1,
                    None => return true,
                }
                continue;
            };
            let (deadline, _, cost) = open.swap_remove(next);
            now += cost;
            if now > deadline {
                return false;
            }
        }
    }

    /// Stream `first` at time 0, all others at time 1 and then as often as they may.
    fn worst_case(streams: &[Stream], first: usize, until: u64) -> Vec<(usize, u64)> {
        let mut all = std::vec![(first, 0)];
        for (i, s) in streams.iter().enumerate().filter(|(i, _)| *i != first) {
            all.extend(
                (0..)
                    .map(|k| 1 + k * s.period_ns)
                    .take_while(|t| *t < until)
                    .map(|t| (i, t)),
            );
        }
        all
    }

    #[test]
    fn known_cases() {
        assert_eq!(sporadic(&[whole(3, 1), whole(3, 1), whole(3, 1)]), Ok(()));
        assert_eq!(sporadic(&[whole(3, 2), whole(4, 2)]), Err(Infeasible::Overload));
        // little load, but one frame takes longer than another may wait
        let blocked = [whole(4, 1), whole(100, 5)];
        assert_eq!(
            sporadic(&blocked),
            Err(Infeasible::Demand {
                interval_ns: 5,
                demand_ns: 6
            })
        );
        assert!(!all_met(&blocked, &worst_case(&blocked, 1, 100)));
        // in attempts of 1 the same load blocks for 1 only
        let split = [
            whole(4, 1),
            Stream {
                attempt_ns: 1,
                ..whole(100, 5)
            },
        ];
        assert_eq!((sporadic(&split), constrained(&split)), (Ok(()), Ok(())));
        assert_eq!(sporadic(&[]), Ok(()));
        assert_eq!(
            constrained(&[whole(0, 0)]),
            Err(Infeasible::BadStream { stream: 0 })
        );
        assert_eq!(
            sporadic(&[whole(1, 0), whole(u64::MAX, 1)]),
            Err(Infeasible::TooManyPoints)
        );
    }

    /// Eight nodes, one downlink and one uplink exchange each per cycle, at 143.5 us and two retries.
    #[test]
    fn eight_nodes() {
        let set = |cycle_us: u64| [Stream::new(cycle_us * 1_000, 143_500, 2); 16];
        assert_eq!(sporadic(&set(4_000)), Err(Infeasible::Overload));
        assert_eq!(sporadic(&set(6_888)), Ok(()));
        assert_eq!(constrained(&set(6_888)), Ok(()));
        assert_eq!(sporadic(&set(6_887)), Err(Infeasible::Overload));
    }

    #[test]
    fn retries() {
        assert_eq!(retries_for(0.01, 1e-4), Some(1));
        assert_eq!(retries_for(0.1, 9.9e-4), Some(3));
        assert_eq!(retries_for(0.0, 0.0), Some(0));
        assert_eq!(retries_for(1.0, 0.5), None);
        assert_eq!(retries_for(f64::NAN, 0.5), None);
    }

    fn streams(constrained: bool) -> impl Strategy<Value = Vec<Stream>> {
        let one = (2u64..24, 1u64..6, 0u64..12);
        proptest::collection::vec(one, 1..5).prop_map(move |v| {
            let stream = |(period, cost, less): (u64, u64, u64)| Stream {
                deadline_ns: if constrained {
                    (period - less.min(period - 1)).max(1)
                } else {
                    period
                },
                ..whole(period, cost)
            };
            v.into_iter().map(stream).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]
        /// The test against schedules: what is refused misses in its worst case, what is accepted misses in
        /// none of the patterns tried.
        #[test]
        fn jeffay(set in streams(false), gaps in proptest::collection::vec((0usize..5, 0u64..9), 0..40)) {
            match sporadic(&set) {
                Err(Infeasible::Demand { .. }) => {
                    prop_assert!((0..set.len()).any(|i| !all_met(&set, &worst_case(&set, i, 200))));
                }
                Err(_) => {}
                Ok(()) => {
                    for i in 0..set.len() {
                        prop_assert!(all_met(&set, &worst_case(&set, i, 200)));
                    }
                    prop_assert!(all_met(&set, &random_releases(&set, &gaps)));
                }
            }
            prop_assert_eq!(sporadic(&set).is_ok(), constrained(&set).is_ok(), "the two tests agree at D = T");
        }

        #[test]
        fn george(set in streams(true), gaps in proptest::collection::vec((0usize..5, 0u64..9), 0..40)) {
            match constrained(&set) {
                Err(Infeasible::Demand { .. }) => {
                    let misses = (0..set.len()).any(|i| !all_met(&set, &worst_case(&set, i, 200)));
                    prop_assert!(misses || !all_met(&set, &synchronous(&set)));
                }
                Err(_) => {}
                Ok(()) => {
                    for i in 0..set.len() {
                        prop_assert!(all_met(&set, &worst_case(&set, i, 200)));
                    }
                    prop_assert!(all_met(&set, &synchronous(&set)));
                    prop_assert!(all_met(&set, &random_releases(&set, &gaps)));
                }
            }
        }
    }

    fn synchronous(set: &[Stream]) -> Vec<(usize, u64)> {
        let of = |(i, s): (usize, &Stream)| {
            let period = s.period_ns;
            (0..).map(move |k| (i, k * period)).take_while(|r| r.1 < 200)
        };
        set.iter().enumerate().flat_map(of).collect()
    }

    /// Releases as `gaps` say, never closer than the period.
    fn random_releases(set: &[Stream], gaps: &[(usize, u64)]) -> Vec<(usize, u64)> {
        let mut next = std::vec![0; set.len()];
        let mut all = Vec::new();
        for (i, gap) in gaps {
            let i = i % set.len();
            let at = next[i] + gap;
            all.push((i, at));
            next[i] = at + set[i].period_ns;
        }
        all
    }
}
