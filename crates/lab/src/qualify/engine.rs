//! Runs a scheme until the question is decided.
//!
//! A run is a number of replications: worlds with seeds of their own. Rounds of replications go to the workers;
//! their sums are joined in the order of the replications, and whether to go on is decided between rounds, so
//! neither the number of workers nor their speed shows in the result.

use super::bench::Bench;
use super::question::{Offsets, Question, Scheme, Turn};
use super::roaming;
use super::tally::Tally;
use super::watch::{About, Shared, Watch};
use crate::stats::{CONFIDENCE, Interval, More, Sequential, Verdict};
use rayon::prelude::*;
use sim::rng::mix3;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Messages that one replication aims at.
const MESSAGES_PER_REPLICATION: u64 = 16_000;
/// Cycles after which the interval is looked at first, about.
const FIRST_LOOK: u64 = 1_000;
/// Cycles that suffer together under interference span this much time at least, ns.
const INTERFERENCE_CLUSTER_NS: u64 = 5_000_000;

/// What a run is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Running cycles until the verdict.
    Deciding,
    /// Looking for the shortest cycle.
    Searching,
}

/// How far it has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Which scheme.
    pub scheme: Scheme,
    /// What it does.
    pub stage: Stage,
    /// Cycles so far in this stage.
    pub cycles: u64,
    /// Cycles after which it is done, as far as can be told.
    pub expected: u64,
    /// Misses so far, as of the last look.
    pub misses: u64,
}

/// Who runs it, who is told, who may stop it.
pub struct Setting<'a> {
    /// Worker threads, at least 1.
    pub jobs: usize,
    /// Set: stop soon and tell what there is.
    pub stop: &'a AtomicBool,
    /// Told now and then, from any worker.
    pub progress: &'a (dyn Fn(Progress) + Sync),
}

impl Setting<'_> {
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A run that has ended.
pub(super) struct Run {
    pub tally: Tally,
    pub verdict: Verdict,
    /// Covers the true probability with 95 % over all looks together.
    pub interval: Interval,
    pub looks: u32,
    /// What would decide it, in clusters.
    pub more: Option<More>,
    /// It was stopped before it was decided.
    pub interrupted: bool,
    /// Cycles that are taken to suffer together.
    pub cluster: u32,
}

impl Run {
    /// The same, of a network that does not come about.
    pub fn refused(self) -> Run {
        Run {
            verdict: Verdict::Fail,
            ..self
        }
    }
}

/// Cycles of one replication; where nodes roam it is a whole walk.
pub(super) fn cycles_per_replication(scheme: Scheme, nodes: u32, cycle_ns: u64) -> u32 {
    if scheme.walks() {
        return roaming::cycles(cycle_ns);
    }
    (MESSAGES_PER_REPLICATION / (2 * u64::from(nodes))).clamp(50, 2_000) as u32
}

/// Seed of replication `i`.
pub(super) fn seed_of(seed: u64, i: u64) -> u64 {
    mix3(seed, i, 0x9a11f)
}

/// One world, start to end.
pub(super) fn replicate(
    bench: &Bench,
    scheme: Scheme,
    seed: u64,
    cycle_ns: u64,
    cycles: u32,
    cluster: u32,
) -> Tally {
    let mut ready = bench.world(scheme, seed, cycle_ns, cycles);
    let last_offset_ns = ready.offsets_ns.iter().max().copied().unwrap_or(0);
    let watch = Rc::new(RefCell::new(Watch::new(About {
        nodes: bench.question.nodes,
        owners: bench.owners(scheme),
        roams: scheme.walks(),
        span: ready.span,
        clocks: ready.clocks,
        offsets_ns: ready.offsets_ns,
        polled: scheme.turn == Turn::Edf,
        phy: bench.question.phy,
        wait_ns: bench.wait_ns(scheme),
    })));
    ready.world.set_observer(Box::new(Shared(watch.clone())));
    // one more cycle, so that late deliveries are told from lost ones
    ready
        .world
        .run_until(ready.span.end_ns() + last_offset_ns + cycle_ns);
    drop(ready.world);
    let watch = Rc::into_inner(watch).expect("the world is gone");
    let mut tally = watch.into_inner().finish(cluster);
    tally.own.merge(&ready.own.borrow());
    tally
}

/// Runs replications `from..to`; those that were not begun when the run was stopped are missing at the end.
#[expect(clippy::too_many_arguments, reason = "all of them change from call to call")]
pub(super) fn replications(
    bench: &Bench,
    pool: &rayon::ThreadPool,
    setting: &Setting<'_>,
    scheme: Scheme,
    seed: u64,
    cycle_ns: u64,
    (cycles, cluster): (u32, u32),
    range: std::ops::Range<u64>,
    tell: &(dyn Fn(u64) + Sync),
) -> Vec<Tally> {
    let done = AtomicU64::new(0);
    let one = |i: u64| {
        if setting.is_stopped() {
            return None;
        }
        let tally = replicate(bench, scheme, seed_of(seed, i), cycle_ns, cycles, cluster);
        tell(done.fetch_add(u64::from(cycles), Ordering::Relaxed) + u64::from(cycles));
        Some(tally)
    };
    let all: Vec<_> = pool.install(|| range.into_par_iter().map(one).collect());
    all.into_iter().flatten().collect()
}

/// Cycles in a row that are taken to suffer together. With offsets a message may meet those of the next cycle.
fn cluster(q: &Question, scheme: Scheme) -> u32 {
    let overlap = if q.offsets == Offsets::None { 1 } else { 2 };
    if scheme.walks() {
        return overlap.max(roaming::CLUSTER_NS.div_ceil(q.cycle_ns) as u32);
    }
    match q.interference.is_some() {
        true => overlap.max(INTERFERENCE_CLUSTER_NS.div_ceil(q.cycle_ns) as u32),
        false => overlap,
    }
}

/// Runs `scheme` until the interval lies on one side of the target, or the budget is spent.
pub(super) fn decide(bench: &Bench, pool: &rayon::ThreadPool, setting: &Setting<'_>, scheme: Scheme) -> Run {
    let q = &bench.question;
    let budget = q.budget();
    let per = u64::from(cycles_per_replication(scheme, q.nodes, q.cycle_ns));
    // half a walk is not half of what happens on it
    let per = if scheme.walks() { per } else { per.min(budget) };
    let most = budget.div_ceil(per);
    let cluster = cluster(q, scheme);
    let mut sequential = Sequential::new(q.miss, CONFIDENCE);
    let mut run = Run {
        tally: Tally::default(),
        verdict: Verdict::Undecided,
        interval: Interval { low: 0.0, high: 1.0 },
        looks: 0,
        more: None,
        interrupted: false,
        cluster,
    };
    let (mut done, mut wanted) = (0, FIRST_LOOK.div_ceil(per).clamp(2.min(most), most));
    while done < wanted {
        let tell = |cycles: u64| {
            (setting.progress)(Progress {
                scheme,
                stage: Stage::Deciding,
                cycles: done * per + cycles,
                expected: wanted * per,
                misses: run.tally.batches.misses(),
            });
        };
        let size = (per as u32, cluster);
        let tallies = replications(
            bench,
            pool,
            setting,
            scheme,
            q.seed,
            q.cycle_ns,
            size,
            done..wanted,
            &tell,
        );
        let complete = tallies.len() as u64 == wanted - done;
        tallies.iter().for_each(|t| run.tally.merge(t));
        done += tallies.len() as u64;
        let look = sequential.look(&run.tally.batches);
        run.interval = look.interval;
        run.looks = sequential.looks();
        run.more = Some(look.more);
        if !complete || setting.is_stopped() && look.verdict == Verdict::Undecided {
            run.interrupted = true;
            break;
        }
        run.verdict = look.verdict;
        if run.verdict != Verdict::Undecided {
            break;
        }
        wanted = next_look(done, look.more, (per / u64::from(cluster)).max(1)).min(most);
    }
    run
}

/// Replications after which to look again: when a verdict can be expected, but at least twice as many as now, and
/// at most eight times, because expectations from few misses are poor.
fn next_look(done: u64, more: More, clusters_per_replication: u64) -> u64 {
    let soonest = [more.to_pass, more.at_this_rate].into_iter().flatten().min();
    let missing = soonest.map_or(done, |c| (c + c / 50).div_ceil(clusters_per_replication));
    // with no miss at all the number needed is known exactly
    let limit = if more.to_pass == soonest {
        u64::MAX
    } else {
        done * 8
    };
    (done + missing).clamp(done * 2, limit.max(done * 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qualify::question::Link;

    fn pool(jobs: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(jobs).build().unwrap()
    }

    fn quiet(stop: &AtomicBool, jobs: usize) -> Setting<'_> {
        Setting {
            jobs,
            stop,
            progress: &|_| {},
        }
    }

    #[test]
    fn looks_come_when_a_verdict_can_be_expected() {
        let more = |to_pass, at_this_rate| More {
            to_pass,
            at_this_rate,
        };
        assert_eq!(next_look(4, more(Some(46_000), Some(46_000)), 1_000), 4 + 47);
        assert_eq!(next_look(4, more(Some(100), Some(100)), 1_000), 8);
        assert_eq!(next_look(4, more(None, Some(1_000_000)), 1_000), 32);
        assert_eq!(next_look(4, more(None, None), 1_000), 8);
    }

    #[test]
    fn a_loop_with_time_to_spare_passes_and_a_crowded_one_fails() {
        let stop = AtomicBool::new(false);
        let mut q = Question {
            nodes: 2,
            cycle_ns: 20_000_000,
            miss: 1e-2,
            link: Link::Per { data: 0.0, ack: 0.0 },
            ..Question::example()
        };
        let bench = Bench::new(&q).unwrap();
        let run = decide(&bench, &pool(2), &quiet(&stop, 2), Scheme::EDF);
        assert_eq!(
            (run.verdict, run.interrupted),
            (Verdict::Pass, false),
            "{:?} {:?}",
            run.tally.causes,
            run.tally.batches
        );
        assert_eq!(run.tally.batches.misses(), 0);
        q.nodes = 60;
        q.cycle_ns = 2_000_000;
        let bench = Bench::new(&q).unwrap();
        for scheme in [Scheme::EDCA, Scheme::EDF] {
            let run = decide(&bench, &pool(2), &quiet(&stop, 2), scheme);
            assert_eq!(run.verdict, Verdict::Fail, "{scheme:?}");
            assert!(run.interval.low > q.miss && run.tally.batches.misses() > 0);
        }
    }

    #[test]
    fn a_stopped_run_has_no_verdict() {
        let bench = Bench::new(&Question::example()).unwrap();
        let stop = AtomicBool::new(true);
        let run = decide(&bench, &pool(1), &quiet(&stop, 1), Scheme::EDCA);
        assert!(run.interrupted);
        assert_eq!((run.verdict, run.tally.cycles), (Verdict::Undecided, 0));
        assert_eq!((run.interval.low, run.interval.high), (0.0, 1.0));
    }
}
