//! The shortest cycle that a scheme would hold.

use super::bench::Bench;
use super::engine::{Progress, Setting, Stage, cycles_per_replication, replications};
use super::question::{MAX_CYCLE_NS, Scheme, Turn};
use super::text::round_up;
use crate::stats::Batches;

/// The answer, and where it comes from.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Shortest {
    /// The cycle, ns, rounded up to two digits.
    pub cycle_ns: u64,
    /// How it was found. In both cases a short run at this cycle met the target.
    pub found_by: FoundBy,
}

/// How a shortest cycle was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FoundBy {
    /// Computed from the cost of an exchange.
    Analysis,
    /// Longer and longer cycles were tried, from the computed one on.
    Growth,
    /// Halving between a cycle that failed and one that passed.
    Bisection,
}

/// Looks for it; `None` if no cycle helps, when stopped, and for nodes that roam: hand-overs do not depend on the cycle.
pub(super) fn shortest(
    bench: &Bench,
    pool: &rayon::ThreadPool,
    setting: &Setting<'_>,
    scheme: Scheme,
) -> Option<Shortest> {
    let q = &bench.question;
    if scheme.walks() {
        return None;
    }
    let fits = |cycle_ns| fits(bench, pool, setting, scheme, cycle_ns);
    let computed = match scheme.turn {
        Turn::Edca | Turn::Slotted => {
            return bisect(round_up(bench.facts.least_cycle_ns(q.nodes)), setting, &fits);
        }
        Turn::Edf => bench.facts.edf_cycle_ns(q.nodes, q.miss),
        Turn::Tdma => bench.tdma_cycle_ns(scheme),
        Turn::Tbmac => u64::from(q.nodes + 1) * bench.rounds(scheme).length().as_ns(),
    };
    grow(round_up(computed), setting, &fits)
}

/// The first of a row of cycles, each an eighth longer, that fits.
fn grow(computed: u64, setting: &Setting<'_>, fits: &dyn Fn(u64) -> bool) -> Option<Shortest> {
    let mut cycle_ns = computed;
    for found_by in [FoundBy::Analysis].into_iter().chain([FoundBy::Growth; 16]) {
        if cycle_ns > MAX_CYCLE_NS || setting.is_stopped() {
            return None;
        }
        if fits(cycle_ns) {
            return Some(Shortest { cycle_ns, found_by });
        }
        cycle_ns = round_up(cycle_ns + cycle_ns / 8);
    }
    None
}

/// Doubles from `least` until a cycle fits, at most 64-fold, then halves the gap down to 3 %.
fn bisect(least: u64, setting: &Setting<'_>, fits: &dyn Fn(u64) -> bool) -> Option<Shortest> {
    let (mut low, mut high) = (least, least);
    while !fits(high) {
        low = high;
        high *= 2;
        if high > 64 * least || high > MAX_CYCLE_NS || setting.is_stopped() {
            return None;
        }
    }
    while high - low > high / 32 && !setting.is_stopped() {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    (!setting.is_stopped()).then(|| Shortest {
        cycle_ns: round_up(high),
        found_by: FoundBy::Bisection,
    })
}

/// A short run, ten times as many messages as the target needs for one miss (20,000 to 200,000): at most half as many
/// misses as the target allows.
fn fits(
    bench: &Bench,
    pool: &rayon::ThreadPool,
    setting: &Setting<'_>,
    scheme: Scheme,
    cycle_ns: u64,
) -> bool {
    let q = &bench.question;
    if scheme.turn == Turn::Tdma && !bench.slots(scheme, cycle_ns).are_enough() {
        return false;
    }
    let most = if q.quick { 40_000.0 } else { 200_000.0 };
    let messages = (10.0 / q.miss).clamp(20_000.0, most);
    let allowed = (messages * q.miss / 2.0) as u64;
    let per = cycles_per_replication(scheme, q.nodes, cycle_ns);
    let wanted = ((messages / f64::from(2 * q.nodes * per)).ceil() as u64).max(1);
    let mut seen = Batches::default();
    let mut done = 0;
    while done < wanted {
        let next = (done + 2).min(wanted);
        let tell = |cycles: u64| {
            (setting.progress)(Progress {
                scheme,
                stage: Stage::Searching,
                cycles: done * u64::from(per) + cycles,
                expected: wanted * u64::from(per),
                misses: seen.misses(),
            });
        };
        // seeds of their own: the verdict's cycles are not looked at twice
        let seed = q.seed ^ 0x5ea2_c4ed;
        let tallies = replications(
            bench,
            pool,
            setting,
            scheme,
            seed,
            cycle_ns,
            (per, 1),
            done..next,
            &tell,
        );
        tallies.iter().for_each(|t| seen.merge(&t.batches));
        if seen.misses() > allowed || setting.is_stopped() {
            return false;
        }
        done = next;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;

    fn setting(stop: &AtomicBool) -> Setting<'_> {
        Setting {
            jobs: 1,
            stop,
            progress: &|_| {},
        }
    }

    #[test]
    fn bisection_comes_within_five_percent_in_few_steps() {
        let stop = AtomicBool::new(false);
        for edge in [1_000, 1_700, 9_000, 60_000] {
            let tries = Cell::new(0);
            let found = bisect(1_000, &setting(&stop), &|c| {
                tries.set(tries.get() + 1);
                c >= edge
            })
            .unwrap();
            assert!(
                found.cycle_ns >= edge && found.cycle_ns <= edge + edge / 10,
                "{edge}: {found:?}"
            );
            assert!(tries.get() <= 13, "{}", tries.get());
        }
        assert_eq!(bisect(1_000, &setting(&stop), &|_| false), None);
    }

    #[test]
    fn growth_starts_with_what_was_computed() {
        let stop = AtomicBool::new(false);
        let at = |edge| grow(1_000_000, &setting(&stop), &|c| c >= edge);
        assert_eq!(at(900_000).map(|s| s.found_by), Some(FoundBy::Analysis));
        let grown = at(1_500_000).unwrap();
        assert_eq!(grown.found_by, FoundBy::Growth);
        assert!((1_500_000..1_800_000).contains(&grown.cycle_ns));
        assert_eq!(at(u64::MAX), None);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(at(900_000), None);
    }
}
