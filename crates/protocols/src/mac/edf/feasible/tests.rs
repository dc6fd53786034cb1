//! The tests against schedules made step by step.

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

/// A pool of nothing is the test without one, but for blocking by streams with earlier deadlines.
#[test]
fn pools() {
    let pool = |share_ppm, depth_ns| RetryPool {
        share_ppm,
        depth: Duration::from_ns(depth_ns),
    };
    let set = [whole(1_000, 100); 4];
    assert_eq!(pooled(&set, &pool(0, 0)), Ok(()));
    // 99 of blocking, 400 of demand
    assert_eq!(pooled(&set, &pool(0, 501)), Ok(()));
    let demand = |demand_ns| {
        Err(Infeasible::Demand {
            interval_ns: 1_000,
            demand_ns,
        })
    };
    assert_eq!(pooled(&set, &pool(0, 502)), demand(1_001));
    assert_eq!(pooled(&set, &pool(401_000, 101)), demand(1_001));
    assert_eq!(pooled(&set, &pool(401_000, 100)), Ok(()));
    assert_eq!(pooled(&set, &pool(600_001, 0)), Err(Infeasible::Overload));
    assert_eq!(pooled(&set, &pool(u32::MAX, 0)), Err(Infeasible::Overload));

    let share = |per, factor| retry_share_ppm(&[(whole(1_000, 100), per), (whole(500, 100), per)], factor);
    assert_eq!(share(0.1, 1.0), 30_000);
    assert!(matches!(share(0.01, 1.5), 4_500 | 4_501), "rounded up");
    assert_eq!((share(0.0, 1.0), share(-1.0, 1.0)), (0, 0));
    assert_eq!((share(1.0, 9.0), share(f64::NAN, 1.0)), (WHOLE_PPM, WHOLE_PPM));
}

/// Eight nodes, one exchange each way per 4 ms at 143.5 us: two retries for each are refused (see above), a pool
/// for three times the average of 1 % lost and three retries at once are admitted.
#[test]
fn a_pool_admits_more_than_retries_for_each() {
    let first = Stream::new(4_000_000, 143_500, 0);
    let pool = RetryPool {
        share_ppm: retry_share_ppm(&[(first, 0.01); 16], 3.0),
        depth: Duration::from_ns(3 * 143_500),
    };
    assert_eq!(pooled(&[first; 16], &pool), Ok(()));
}

/// A retry that the pool does not pay for is on the air beside all that is due: the time that is looked at is longer by that, too.
#[test]
fn what_blocks_a_pool_makes_the_busy_period_longer() {
    let early = Stream {
        deadline_ns: 5,
        ..whole(6, 2)
    };
    let pool = RetryPool {
        share_ppm: 200_000,
        depth: Duration::ZERO,
    };
    // without the blocking of 1 all is over at 5, where all fits: 1 + 1 + 2 and 1 of retries
    let (interval_ns, demand_ns) = (6, 7);
    assert_eq!(
        pooled(&[whole(3, 1), early], &pool),
        Err(Infeasible::Demand {
            interval_ns,
            demand_ns
        })
    );
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
