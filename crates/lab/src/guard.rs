//! The guard of a slot: how much later than usual a frame may be on the air, so that it is still in its slot with a chosen
//! probability.

use std::ops::RangeInclusive;

use sim::host::{HostModel, Wait};
use sim::rng::{Cause, Stream};

use crate::stats::Sorted;

/// The probability if nothing is said.
pub const USUAL: f64 = 0.9999;
/// Those that can be chosen: beyond, draws of a host model say nothing.
pub const PROBABILITIES: RangeInclusive<f64> = 0.5..=0.99999;

/// What clocks are reckoned to be apart where no beacon was heard, ns: adapters tell time in steps of 1 us, at both ends.
pub(crate) const RESOLUTION_NS: u64 = 2_000;

/// Times that clocks are compared between two beacons.
pub(crate) const LOOKS: usize = 8;
/// Beacons until all clocks are trusted: three, and one that may get lost.
pub(crate) const SETTLING_BEACONS: u64 = 5;
/// Simulated time of a world in which clocks are compared, ns, as far as the limits of [`beacons`] allow.
const WORLD_NS: u64 = 12_500_000_000;

/// Draws behind a quantile ...
const DRAWS: usize = 50_000;
/// ... and beyond it, at least.
const BEYOND: f64 = 5.0;
const SEED: u64 = 0x9a2d;

/// Draws of a host for a quantile of `probability`, all from this seed: a way to compute it, and no part of any run.
pub(crate) fn draws(seed: u64, probability: f64, mut draw: impl FnMut(&mut Stream) -> u64) -> Sorted<u64> {
    let count = DRAWS.max((BEYOND / (1.0 - probability)) as usize);
    let mut random = Stream::new(seed, 0, Cause::Host);
    Sorted::new((0..count).map(|_| draw(&mut random)).collect())
}

/// From the moment for which a program set its timer to the first bit on an idle medium, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Release {
    /// Smallest of the draws.
    pub min_ns: u64,
    /// The quantile.
    pub high_ns: u64,
}

impl Release {
    /// Of a host that waits like this and sends frames with payloads of `octets`: `high_ns` is passed with 1 - `probability`.
    pub(crate) fn of(host: &HostModel, wait: Wait, octets: usize, probability: f64) -> Release {
        let draws = draws(SEED, probability, |random| {
            let late_ns = host.sample_lateness_ns(random, wait);
            late_ns + host.sample_request(random, octets).total_ns()
        });
        let quantile = |p| draws.quantile(p).unwrap_or(0);
        Release {
            min_ns: quantile(0.0),
            high_ns: quantile(probability),
        }
    }

    /// What covers both hosts.
    pub(crate) fn or(self, other: Release) -> Release {
        Release {
            min_ns: self.min_ns.min(other.min_ns),
            high_ns: self.high_ns.max(other.high_ns),
        }
    }
}

/// Beacons of a world in which clocks are compared, `interval_ns` apart.
pub(crate) fn beacons(interval_ns: u64) -> u64 {
    (WORLD_NS / interval_ns).clamp(20, 250)
}

/// From the slowest to the fastest of clocks with these differences from one that all follow, and of that one, ns: between the two quantiles that
/// leave out 1 - `probability` at either end. `None` without differences.
pub(crate) fn spread_ns(mut differences: Vec<i64>, probability: f64) -> Option<u64> {
    differences.sort_unstable();
    let last = differences.len().checked_sub(1)?;
    // 1 - 0.9999 is a little less than 1e-4
    let beyond = ((1.0 - probability) * differences.len() as f64 + 1e-6) as usize;
    let (low, high) = (differences[beyond], differences[last - beyond]);
    Some(high.max(0).abs_diff(low.min(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::host::Profile;

    #[test]
    fn what_clocks_are_apart_is_between_quantiles_at_both_ends() {
        let all = (-10_000..10_000).collect::<Vec<_>>();
        assert_eq!(spread_ns(all.clone(), 0.9999), Some(19_999 - 2 * 2));
        assert_eq!(spread_ns(all, 0.75), Some(9_999));
        assert_eq!(spread_ns(vec![4, -3], 0.9999), Some(7));
        assert_eq!(
            spread_ns(vec![-7, -4], 0.9999),
            Some(7),
            "the clock that all follow is one of them"
        );
        assert_eq!(spread_ns(vec![900; 10], 0.5), Some(900));
        assert_eq!(spread_ns(Vec::new(), 0.9999), None);
    }

    #[test]
    fn a_lower_probability_takes_less_time() {
        let host = HostModel::new(&Profile::built_in("table5").unwrap()).unwrap();
        let of = |p| Release::of(&host, Wait::Sleep, 50, p);
        let (low, usual, high) = (of(0.9), of(USUAL), of(0.99999));
        assert!(
            low.high_ns < usual.high_ns && usual.high_ns < high.high_ns,
            "{low:?} {usual:?} {high:?}"
        );
        assert_eq!((low.min_ns, low), (usual.min_ns, of(0.9)), "the same draws");
        let both = low.or(Release {
            min_ns: 1,
            high_ns: 2,
        });
        assert_eq!(
            both,
            Release {
                min_ns: 1,
                high_ns: low.high_ns
            }
        );
        let ideal = HostModel::new(&Profile::built_in("ideal").unwrap()).unwrap();
        assert_eq!(Release::of(&ideal, Wait::Sleep, 50, USUAL), Release::default());
    }
}
