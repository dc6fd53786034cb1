//! Which experiments are run, how large they are, and running them on all processors.

use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use sim::host::{HostModel, Outcome, Profile};
use sim::rng::mix3;

use super::bed::{self, Conditions, Sets};
use super::convolve::Computed;
use super::retry::{Repeats, throughput_hz};
use super::sync::{Differences, differences};

/// Beacon periods in a day, at 50 ms.
pub const DAY: u64 = 1_728_000;
/// Beacon periods in seven days.
pub const WEEK: u64 = 7 * DAY;
/// Beacon periods of one piece of work.
const PIECE: u64 = 17_280;

/// Samples in set L_D of Table V.
pub const DATA_LOST: u64 = 529;
/// Samples in set L_A of Table V.
pub const ACK_LOST: u64 = 1_938;
/// All samples of Table V.
const SAMPLES: u64 = 12_093_656;
/// Probability that a data frame is lost.
const DATA_LOSS: f64 = DATA_LOST as f64 / SAMPLES as f64;
/// Probability that the ACK of a frame that arrived is lost.
const ACK_LOSS: f64 = ACK_LOST as f64 / (SAMPLES - DATA_LOST) as f64;
/// Share of the lost ACKs that were heard and corrupt: from the deviation of L_A in Table V, and the only input to
/// its two modes.
const HEARD: f64 = 0.013;
/// Foreign transmissions per second. Table V has 12,093,656 samples of 12,096,000, so 1.94e-4 were discarded, each
/// foreign transmission in a window of 20.4 ms.
const FOREIGN_HZ: f64 = 0.0095;

/// The four conditions of Table IV, in its order.
pub const TABLE_IV: [&str; 4] = [
    "table4-baseline-idle",
    "table4-baseline-io",
    "table4-optimised-idle",
    "table4-optimised-io",
];

/// What to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Everything random follows from it.
    pub seed: u64,
    /// A part of each experiment instead of all of it.
    pub quick: bool,
}

/// One bed with its conditions and its length in beacon periods.
struct Experiment {
    profile: &'static str,
    conditions: Conditions,
    periods: u64,
}

/// A piece of work.
#[derive(Clone, Copy)]
enum Work {
    Bed { experiment: usize, piece: u64 },
    Sync,
    Retry(usize),
    Sum(usize),
}

/// The sums that are computed beside the simulation: the conditions of Table IV, then A and L_D of Table V.
const SUMS: [(&str, Outcome); 6] = [
    (TABLE_IV[0], Outcome::Acked),
    (TABLE_IV[1], Outcome::Acked),
    (TABLE_IV[2], Outcome::Acked),
    (TABLE_IV[3], Outcome::Acked),
    ("table5", Outcome::Acked),
    ("table5", Outcome::Timeout),
];

/// The four ways of [`super::retry`]: who repeats, and whether anybody backs off.
const RETRIES: [(Repeats, bool); 4] = [
    (Repeats::Adapter, true),
    (Repeats::Host, true),
    (Repeats::Adapter, false),
    (Repeats::Host, false),
];

impl Plan {
    /// All periods, or one part in `part` of them.
    fn share(&self, periods: u64, part: u64) -> u64 {
        if self.quick { periods / part } else { periods }
    }

    fn experiments(&self) -> Vec<Experiment> {
        let clean = Conditions::clean(50);
        let table5 = |periods, data_loss, ack_loss, heard, foreign_hz| Experiment {
            profile: "table5",
            conditions: Conditions {
                data_loss,
                ack_loss,
                heard,
                foreign_hz,
                ..clean
            },
            periods,
        };
        let mut all = vec![
            table5(self.share(WEEK, 50), DATA_LOSS, ACK_LOSS, HEARD, FOREIGN_HZ),
            table5(self.share(DAY, 50), 1.0, 0.0, 0.0, 0.0),
            table5(self.share(DAY, 20), 0.0, 1.0, HEARD, 0.0),
        ];
        all.extend(TABLE_IV.map(|profile| Experiment {
            profile,
            conditions: clean,
            periods: self.share(DAY, 10),
        }));
        all.extend(payloads().map(|octets| Experiment {
            profile: TABLE_IV[2],
            conditions: Conditions::clean(octets),
            periods: self.share(DAY / 24, 5),
        }));
        all
    }

    /// Beacons that the two listeners hear.
    fn beacons(&self) -> u64 {
        self.share(DAY, 20)
    }

    /// Seconds of saturation for each way of repeating.
    fn seconds(&self) -> u64 {
        self.share(100, 20)
    }

    /// Measurement frames of the whole plan.
    pub fn transmissions(&self) -> u64 {
        self.experiments().iter().map(|e| e.periods).sum()
    }

    /// Runs everything on `jobs` threads (0: as many as there are processors); the numbers do not depend on how
    /// many. `progress` is told the measurement frames done so far. When `stop` is set, what is there is returned.
    pub fn run(&self, jobs: usize, stop: &AtomicBool, progress: &(dyn Fn(u64) + Sync)) -> Measured {
        self.run_all(&self.experiments(), jobs, stop, progress)
    }

    fn run_all(
        &self,
        experiments: &[Experiment],
        jobs: usize,
        stop: &AtomicBool,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Measured {
        let models = Models::new();
        let done = AtomicU64::new(0);
        let measured = Measured {
            beds: vec![Sets::default(); experiments.len()],
            retries: vec![None; RETRIES.len()],
            sums: vec![None; SUMS.len()],
            sync: None,
            complete: false,
        };
        let measured = Mutex::new(measured);
        let one = |work: &Work| {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            match *work {
                Work::Bed { experiment, piece } => {
                    let e = &experiments[experiment];
                    let periods = (e.periods - piece * PIECE).min(PIECE);
                    let seed = mix3(self.seed, experiment as u64, piece);
                    let sets = bed::run(&e.conditions, &models.get(e.profile), seed, periods, stop);
                    progress(done.fetch_add(periods, Ordering::Relaxed) + periods);
                    lock(&measured).beds[experiment].merge(&sets);
                }
                Work::Sync => {
                    let seed = mix3(self.seed, u64::MAX, 0);
                    let found = differences(&models.get("table5"), seed, self.beacons());
                    lock(&measured).sync = Some(found);
                }
                Work::Sum(index) => {
                    let (profile, outcome) = SUMS[index];
                    let sum = Computed::new(&models.get(profile), outcome);
                    lock(&measured).sums[index] = Some(sum);
                }
                Work::Retry(way) => {
                    let (repeats, backoff) = RETRIES[way];
                    let seed = mix3(self.seed, u64::MAX, 1);
                    let hz = throughput_hz(&models.get("table5"), repeats, backoff, seed, self.seconds());
                    lock(&measured).retries[way] = Some(hz);
                }
            }
        };
        let mut works = vec![Work::Sync];
        works.extend((0..RETRIES.len()).map(Work::Retry));
        works.extend((0..SUMS.len()).map(Work::Sum));
        for (experiment, e) in experiments.iter().enumerate() {
            let pieces = e.periods.div_ceil(PIECE);
            works.extend((0..pieces).map(|piece| Work::Bed { experiment, piece }));
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
        match pool {
            Ok(pool) => pool.install(|| works.par_iter().with_max_len(1).for_each(one)),
            // threads cannot be had: one after the other
            Err(_) => works.iter().for_each(one),
        }
        let mut measured = measured.into_inner().unwrap_or_else(|e| e.into_inner());
        measured.complete = !stop.load(Ordering::Relaxed);
        measured
    }
}

/// Payloads of Fig. 5, octets.
pub fn payloads() -> impl Iterator<Item = u16> {
    (1..=30).map(|step| step * 50)
}

/// A thread that panicked ends the program anyway.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// The host models in use, each solved once.
struct Models(Vec<(&'static str, HostModel)>);

impl Models {
    fn new() -> Models {
        let solve = |name| {
            let profile = Profile::built_in(name).expect("a built-in profile");
            (
                name,
                HostModel::new(&profile).expect("built-in profiles can be solved"),
            )
        };
        let names = TABLE_IV.into_iter().chain(["table5"]);
        Models(names.map(solve).collect())
    }

    fn get(&self, name: &str) -> Rc<HostModel> {
        let found = self.0.iter().find(|(n, _)| *n == name);
        Rc::new(found.expect("all in use are there").1.clone())
    }
}

/// What all experiments have measured.
pub struct Measured {
    beds: Vec<Sets>,
    retries: Vec<Option<f64>>,
    sums: Vec<Option<Computed>>,
    /// Two listeners of the same beacons.
    pub(super) sync: Option<Differences>,
    /// False if it was stopped early.
    pub complete: bool,
}

impl Measured {
    /// The seven days of Table V.
    pub fn week(&self) -> &Sets {
        &self.beds[0]
    }

    /// The same, with every data frame lost.
    pub fn data_lost(&self) -> &Sets {
        &self.beds[1]
    }

    /// The same, with every ACK lost.
    pub fn ack_lost(&self) -> &Sets {
        &self.beds[2]
    }

    /// One day in each of the conditions `TABLE_IV`.
    pub fn table_iv(&self) -> &[Sets] {
        &self.beds[3..7]
    }

    /// The sums of Table IV, in its order, computed; `None` if it was stopped before.
    pub fn computed_iv(&self) -> &[Option<Computed>] {
        &self.sums[..TABLE_IV.len()]
    }

    /// The sums of Table V, A and L_D, likewise.
    pub fn computed_v(&self) -> [Option<&Computed>; 2] {
        [4, 5].map(|index| self.sums[index].as_ref())
    }

    /// One hour for each payload of Fig. 5.
    pub fn by_payload(&self) -> impl Iterator<Item = (u16, &Sets)> {
        payloads().zip(&self.beds[7..])
    }

    /// Frames acknowledged per second when `repeats` repeats; `None` if it was stopped before.
    pub fn acknowledged_hz(&self, repeats: Repeats, backoff: bool) -> Option<f64> {
        let way = RETRIES.iter().position(|w| *w == (repeats, backoff))?;
        self.retries[way]
    }

    /// Measurement frames sent.
    pub fn transmissions(&self) -> u64 {
        self.beds.iter().map(|b| b.periods).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let full = Plan {
            seed: 1,
            quick: false,
        };
        assert_eq!(full.experiments()[0].periods, 12_096_000);
        assert_eq!(DAY * bed::PERIOD_NS, 86_400_000_000_000);
        assert_eq!(full.transmissions(), 12_096_000 + 6 * DAY + 30 * 72_000);
        let quick = Plan { quick: true, ..full };
        assert!(quick.transmissions() * 15 < full.transmissions());
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let plan = Plan { seed: 3, quick: true };
        let lossy = || Experiment {
            periods: 2 * PIECE + 1_000,
            ..plan.experiments().swap_remove(2)
        };
        let run = |jobs| {
            let done = AtomicU64::new(0);
            let note = |n| {
                done.fetch_max(n, Ordering::Relaxed);
            };
            let measured = plan.run_all(&[lossy()], jobs, &AtomicBool::new(false), &note);
            assert_eq!(done.load(Ordering::Relaxed), 2 * PIECE + 1_000);
            (measured.beds, measured.retries)
        };
        let one = run(1);
        assert_eq!(one.0[0].samples(), 2 * PIECE + 1_000);
        assert!(one == run(3), "the same samples");
        let other = Plan { seed: 4, ..plan };
        let measured = other.run_all(&[lossy()], 1, &AtomicBool::new(false), &|_| {});
        assert!(one.0 != measured.beds, "another seed gives other samples");
    }

    #[test]
    fn stopped_before_it_began() {
        let plan = Plan { seed: 1, quick: true };
        let measured = plan.run(1, &AtomicBool::new(true), &|_| {});
        assert!(!measured.complete && measured.transmissions() == 0 && measured.sync.is_none());
    }
}
