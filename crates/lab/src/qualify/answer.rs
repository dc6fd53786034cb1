//! The answer: what was asked, what came out for each scheme, and what to do. Written to JSON as it stands here; the
//! names of the members are documented in the manual and do not change their meaning.

use super::admission::Admission;
pub use super::air::AirUse;
use super::air::share;
use super::bench::Bench;
use super::engine::{Run, Setting, decide};
use super::own::Overlay;
use super::question::{Interference, Link, Offsets, Question, Scheme, Turn};
use super::roaming::HandOvers;
use super::shortest::{Shortest, shortest};
use super::tally::{PLANE_NAMES, Spread, Tally, Tries};
use super::tdma::Slots;
use super::{assumptions, reason};
use crate::stats::{CcdfPoint, Interval, Verdict};
use serde::Serialize;

/// The result of a run.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Answer {
    /// What was asked.
    pub question: Asked,
    /// One sentence: which scheme to take, or that none holds.
    pub recommendation: String,
    /// Stopped before the end: what is there is true, but there may be no verdict.
    pub interrupted: bool,
    /// Each scheme that was asked for, in the order EDCA, EDF, TDMA, TBMAC, slotted, those with more layers after those with fewer.
    pub schemes: Vec<Result>,
    /// What the numbers rest on, one sentence each.
    pub assumptions: Vec<String>,
}

/// The question as it was understood.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Asked {
    /// Nodes besides the controller.
    pub nodes: u32,
    /// Cycle, ns.
    pub cycle_ns: u64,
    /// When in the cycle messages are released.
    pub offsets: Offsets,
    /// Octets of each payload.
    pub payload_octets: u32,
    /// Acceptable miss probability.
    pub miss: f64,
    /// PHY: `a`, `b`, `g`, `n5`, `n2.4`.
    pub phy: String,
    /// Rate of data frames.
    pub rate: String,
    /// Losses.
    pub link: Link,
    /// Interference.
    pub interference: Interference,
    /// Name of the host profile.
    pub host: String,
    /// Its times are those of an emulated processor, or of virtual time: no verdict is one on a computer.
    pub host_emulated: bool,
    /// Seed.
    pub seed: u64,
    /// Probability with which the guard of a slot covers the release of a frame.
    pub guard_probability: f64,
    /// Cycles per scheme at most.
    pub max_cycles: u64,
}

/// What came out for one scheme.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Result {
    /// Which.
    pub scheme: Scheme,
    /// Whether the miss probability is at most what is acceptable.
    pub verdict: Verdict,
    /// Misses per message; `null` if nothing was run.
    pub miss_probability: Option<f64>,
    /// Covers the miss probability with 95 %, over all looks of the run together; `null` if nothing was run.
    pub interval: Option<Interval>,
    /// Messages that counted.
    pub messages: u64,
    /// Of these, missed.
    pub misses: u64,
    /// Of the misses, delivered after the deadline; the others never were.
    pub late: u64,
    /// Misses by cause.
    pub causes: Causes,
    /// Cycles that counted.
    pub cycles: u64,
    /// Times that the interval was looked at.
    pub looks: u32,
    /// Cycles that would still be needed for a verdict if things go on like this; 0 if there is one, `null` if nobody
    /// can tell.
    pub cycles_missing: Option<u64>,
    /// Latency from controller to node.
    pub down: Latency,
    /// Latency from node to controller.
    pub up: Latency,
    /// Tries on the air by outcome: A, L_D, L_A, and those that arrived without being asked for an ACK.
    pub tries: Tries,
    /// What was on the air.
    pub air: AirUse,
    /// Where the time of an acknowledged request goes, in order.
    pub waterfall: Vec<Stretch>,
    /// The shortest cycle that it would hold; `null` if none was found, or nobody looked.
    pub shortest: Option<Shortest>,
    /// The schedule; of TDMA only.
    pub slots: Option<Slots>,
    /// What overlays counted of their own.
    pub overlay: Overlay,
    /// What hand-overs cost; of nodes that roam only.
    pub hand_overs: Option<HandOvers>,
    /// What can be said without a run; of EDF and of TDMA whose nodes do not join.
    pub admission: Option<Admission>,
    /// Why, in a sentence or two.
    pub why: String,
    /// What would help, one sentence each.
    pub advice: Vec<String>,
    /// Latency of both directions together, for plots.
    #[serde(skip)]
    pub ccdf: Vec<CcdfPoint>,
}

/// Misses by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct Causes {
    /// Not on the air before the deadline: the cycle was full.
    pub no_time: u64,
    /// Not polled by the controller before the deadline; EDF only.
    pub not_polled: u64,
    /// The first frame that failed met another one of the loop.
    pub collisions: u64,
    /// The first frame that failed was lost on the link.
    pub losses: u64,
    /// The first frame that failed met a foreign frame or noise, or somebody else held the channel in its turn.
    pub interference: u64,
    /// Arrived in time, but the application had it too late.
    pub host: u64,
    /// Arrived in time, but the protocol there never handed it up.
    pub not_handed_up: u64,
    /// Its node was being handed over: all its messages this way missed from this one until it was let in, or from then to this one.
    pub hand_over: u64,
}

/// Latency from the hand-over at one application to the delivery at the other, ns. All messages count; a number that
/// falls among those that were never delivered is `null`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Latency {
    /// Messages that were never delivered.
    pub lost: u64,
    /// Mean of those that were.
    pub mean_ns: Option<f64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_ns: Option<u64>,
    /// 99.99th percentile.
    pub p99_99_ns: Option<u64>,
    /// Largest.
    pub max_ns: Option<u64>,
}

impl Latency {
    fn of(s: &Spread) -> Latency {
        Latency {
            lost: s.lost(),
            mean_ns: s.mean_ns(),
            p50_ns: s.quantile_ns(0.5),
            p99_ns: s.quantile_ns(0.99),
            p99_9_ns: s.quantile_ns(0.999),
            p99_99_ns: s.quantile_ns(0.9999),
            max_ns: s.max_ns(),
        }
    }
}

/// Time between two neighbouring planes.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Stretch {
    /// `t1-t2` to `t8-t9`; `t4-air` includes waiting for the channel, `air` is the last exchange.
    pub name: String,
    /// Mean, ns.
    pub mean_ns: Option<f64>,
    /// 99.9th percentile, ns.
    pub p99_9_ns: Option<u64>,
}

/// Why there is no answer. The text is one sentence for the command line.
#[derive(Debug, thiserror::Error)]
pub enum QualifyError {
    /// The question makes no sense.
    #[error(transparent)]
    Question(#[from] super::QuestionError),
    /// No model can be made of the host profile.
    #[error(transparent)]
    Profile(#[from] sim::host::ProfileError),
    /// The operating system gives no threads.
    #[error("--jobs {jobs}: cannot start the workers: {source}")]
    Workers {
        /// Workers asked for.
        jobs: usize,
        /// What the system said.
        source: rayon::ThreadPoolBuildError,
    },
}

/// Answers the question. The same question gives the same answer for any number of workers, unless it is stopped.
///
/// # Errors
/// [`QualifyError`]: nothing was run.
pub fn qualify(question: &Question, setting: &Setting<'_>) -> std::result::Result<Answer, QualifyError> {
    question.check()?;
    let bench = Bench::new(question)?;
    let jobs = setting.jobs.max(1);
    // worlds of many nodes are built on the stack
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .stack_size(64 << 20)
        .build()
        .map_err(|source| QualifyError::Workers { jobs, source })?;
    let mut schemes: Vec<_> = question.schemes.clone();
    schemes.sort_unstable();
    schemes.dedup();
    let schemes: Vec<_> = schemes
        .into_iter()
        .map(|scheme| one(&bench, &pool, setting, scheme))
        .collect();
    Ok(Answer {
        question: Asked::of(question),
        recommendation: reason::recommend(question, &schemes),
        interrupted: setting.is_stopped(),
        assumptions: assumptions::of(&bench),
        schemes,
    })
}

fn one(bench: &Bench, pool: &rayon::ThreadPool, setting: &Setting<'_>, scheme: Scheme) -> Result {
    let q = &bench.question;
    let slots = (scheme.turn == Turn::Tdma).then(|| bench.slots(scheme, q.cycle_ns));
    let fits = slots.is_none_or(|s| s.rounds > 0);
    let run = fits.then(|| match decide(bench, pool, setting, scheme) {
        run if slots.is_some_and(|s| !s.are_enough()) => run.refused(),
        run => run,
    });
    let passed = run.as_ref().is_some_and(|r| r.verdict == Verdict::Pass);
    let shortest = if setting.is_stopped() || q.quick && passed {
        None
    } else {
        shortest(bench, pool, setting, scheme)
    };
    result(bench, scheme, run, slots, shortest)
}

fn result(
    bench: &Bench,
    scheme: Scheme,
    run: Option<Run>,
    slots: Option<Slots>,
    shortest: Option<Shortest>,
) -> Result {
    let nothing = Tally::default();
    let t = run.as_ref().map_or(&nothing, |r| &r.tally);
    let verdict = run.as_ref().map_or(Verdict::Fail, |r| r.verdict);
    let [
        no_time,
        not_polled,
        collisions,
        losses,
        interference,
        host,
        not_handed_up,
        hand_over,
    ] = t.causes;
    let missing = |r: &Run| {
        let more = r.more?;
        let clusters = [more.to_pass, more.at_this_rate].into_iter().flatten().min()?;
        Some(clusters * u64::from(r.cluster))
    };
    let mut result = Result {
        scheme,
        verdict,
        miss_probability: t.batches.estimate(),
        interval: run.as_ref().map(|r| r.interval),
        messages: t.batches.trials(),
        misses: t.batches.misses(),
        late: t.late,
        causes: Causes {
            no_time,
            not_polled,
            collisions,
            losses,
            interference,
            host,
            not_handed_up,
            hand_over,
        },
        cycles: t.cycles,
        looks: run.as_ref().map_or(0, |r| r.looks),
        cycles_missing: match verdict {
            Verdict::Undecided => run.as_ref().and_then(missing),
            _ => Some(0),
        },
        down: Latency::of(&t.down),
        up: Latency::of(&t.up),
        tries: t.tries,
        air: AirUse::of(t),
        waterfall: PLANE_NAMES
            .iter()
            .zip(&t.planes)
            .map(|(name, s)| Stretch {
                name: (*name).to_owned(),
                mean_ns: s.mean_ns(),
                p99_9_ns: s.quantile_ns(0.999),
            })
            .collect(),
        shortest,
        slots: slots.map(|s| Slots {
            late_share: (t.own.due > 0).then(|| share(t.own.late, t.own.due)),
            ..s
        }),
        overlay: Overlay::of(bench, scheme, t),
        hand_overs: scheme.walks().then(|| HandOvers::of(t, hand_over)),
        admission: bench.admission(scheme),
        why: String::new(),
        advice: Vec::new(),
        ccdf: t.both().ccdf(),
    };
    (result.why, result.advice) = reason::explain(bench, &result, run.is_some_and(|r| r.interrupted));
    result
}

impl Causes {
    /// Each with the words of reports.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("cycle full", self.no_time),
            ("not polled", self.not_polled),
            ("collisions", self.collisions),
            ("losses", self.losses),
            ("interference", self.interference),
            ("host", self.host),
            ("not handed up", self.not_handed_up),
            ("hand-over", self.hand_over),
        ]
    }
}

impl Asked {
    fn of(q: &Question) -> Asked {
        Asked {
            nodes: q.nodes,
            cycle_ns: q.cycle_ns,
            offsets: q.offsets,
            payload_octets: q.payload_octets,
            miss: q.miss,
            phy: q.phy.name.to_owned(),
            rate: q.rate.to_string(),
            link: q.link,
            interference: q.interference,
            host: q.host.name.clone(),
            host_emulated: q.host.emulated,
            seed: q.seed,
            guard_probability: q.guard_probability,
            max_cycles: q.budget(),
        }
    }
}
