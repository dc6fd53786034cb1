//! The timers of this computer: how evenly and how late each source of time that user space has fires, at the intervals of
//! slots, quiet and disturbed, and which of them to take. The measuring is [`linux::host`]'s; here are the plan, the
//! statistics, the choice ([`choose`]) and the page ([`page`]).
//!
//! A series is reduced to numbers and figures as soon as it is there: half a million samples of each would be too many to keep.

pub mod choose;
pub mod page;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linux::host::{
    Cpus, Environment, Load, LoadReport, Measurement, Mechanism, Part, Plan, PlanError, Sched, Series,
    SeriesKind, measure,
};

use super::host::SAMPLES_FOR_P999;
use crate::report::plot::Figure;
use crate::stats::Sorted;
pub use choose::Choice;

/// What to study: every source under every load at every interval.
#[derive(Clone, Debug)]
pub struct Study {
    /// Samples of each series, 1 to [`Plan::MAX_SAMPLES`].
    pub samples: usize,
    /// Intervals, us, 100 to 1,000,000.
    pub intervals_us: Vec<u32>,
    /// Sources.
    pub sources: Vec<Mechanism>,
    /// Loads beside.
    pub loads: Vec<Load>,
    /// How the measuring threads are scheduled.
    pub sched: Vec<Sched>,
}

impl Default for Study {
    /// All sources at 1000 and 250 us, quiet and under three loads, with the least and the most determinate scheduling; half a
    /// million samples of each.
    fn default() -> Self {
        Study {
            samples: 500_000,
            intervals_us: vec![1_000, 250],
            sources: Mechanism::ALL.to_vec(),
            loads: vec![Load::Idle, Load::Timers, Load::Network, Load::Io],
            sched: vec![Sched::OTHER, Sched::FIFO_LOCKED],
        }
    }
}

impl Study {
    /// Number of series.
    pub fn series(&self) -> usize {
        self.intervals_us.len() * self.loads.len() * self.of_a_plan()
    }

    /// Series at one interval under one load.
    fn of_a_plan(&self) -> usize {
        self.sources.len() * self.sched.len()
    }

    /// How long it takes if nothing is left out, without starting loads.
    pub fn duration(&self) -> Duration {
        let plans = self
            .intervals_us
            .iter()
            .flat_map(|us| self.loads.iter().map(|load| self.plan(*us, *load)));
        plans.map(|plan| plan.duration()).sum()
    }

    fn plan(&self, interval_us: u32, load: Load) -> Plan {
        let plan = Plan {
            samples: self.samples,
            period_us: interval_us,
            steady: true,
            what: self.sources.iter().map(|m| SeriesKind::Timer(*m)).collect(),
            loads: vec![load],
            sched: self.sched.clone(),
            ..Plan::default()
        };
        Plan {
            budget: plan.budget.max(plan.duration() * 4),
            ..plan
        }
    }

    /// Carries the study out. `progress` is told how many series are done; when `stop` is set, what there is so far is
    /// returned.
    ///
    /// # Errors
    /// If the study is impossible: a number out of range, or no CPU.
    pub fn run(&self, stop: &AtomicBool, progress: &dyn Fn(usize)) -> Result<Studied, PlanError> {
        let mut studied = Studied::default();
        let mut done = 0;
        for &interval_us in &self.intervals_us {
            for &load in &self.loads {
                if !stop.load(Ordering::Relaxed) {
                    let plan = self.plan(interval_us, load);
                    let measurement = measure(&plan, &|step, _: usize, _: &str| progress(done + step), stop)?;
                    studied.take(interval_us, measurement);
                }
                done += self.of_a_plan();
                progress(done);
            }
        }
        studied.complete = !stop.load(Ordering::Relaxed);
        Ok(studied)
    }
}

/// What came of a study.
#[derive(Clone, Debug, Default)]
pub struct Studied {
    /// The computer.
    pub environment: Environment,
    /// The CPUs of the measuring threads.
    pub cpus: Option<Cpus>,
    /// Its numbers.
    pub rows: Vec<Row>,
    /// Its pictures, each with the name of its file.
    pub figures: Vec<(String, Figure)>,
    /// What the loads did, each with its interval.
    pub loads: Vec<(u32, LoadReport)>,
    /// What is missing: what, why, and what to do about it.
    pub left_out: Vec<[String; 3]>,
    /// False if it was stopped early.
    pub complete: bool,
}

/// The numbers of one series.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Row {
    /// The source, such as `sleep`.
    pub source: &'static str,
    /// Interval that was asked for, us.
    pub interval_us: u32,
    /// Load beside.
    pub load: &'static str,
    /// `other`, `other+mlock`, `fifo` or `fifo+mlock`.
    pub sched: &'static str,
    /// Deadlines that were waited for.
    pub deadlines: usize,
    /// Of these, how many had passed, when the thread came to run, by an interval or more, or whose frame was dropped.
    pub missed: usize,
    /// Times that a thread that never sleeps left its CPU to others, for up to 10 ms. No deadline falls into these.
    pub rests: usize,
    /// True if it was cut short.
    pub interrupted: bool,
    /// From each deadline to the moment when the thread runs.
    pub lateness: Option<Statistics>,
    /// From one such moment to the next.
    pub interval: Option<Statistics>,
}

/// Statistics of a body of samples, us.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Statistics {
    /// Samples.
    pub count: usize,
    /// Smallest.
    pub min_us: f64,
    /// Median.
    pub p50_us: f64,
    /// Mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub sd_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile; absent if there are too few samples to tell.
    pub p999_us: Option<f64>,
    /// Largest.
    pub max_us: f64,
}

impl Statistics {
    /// `None` of none.
    fn of(samples_ns: &Sorted<u64>) -> Option<Statistics> {
        let s = samples_ns.summary()?;
        Some(Statistics {
            count: samples_ns.len(),
            min_us: s.min / 1e3,
            p50_us: s.p50 / 1e3,
            mean_us: s.mean / 1e3,
            sd_us: s.sd / 1e3,
            p99_us: s.p99 / 1e3,
            p999_us: (samples_ns.len() >= SAMPLES_FOR_P999).then_some(s.p99_9 / 1e3),
            max_us: s.max / 1e3,
        })
    }

    /// The 99.9th percentile, or the 99th where there are too few samples.
    pub fn tail_us(&self) -> f64 {
        self.p999_us.unwrap_or(self.p99_us)
    }
}

impl Studied {
    fn take(&mut self, interval_us: u32, m: Measurement) {
        let mut bodies = Vec::new();
        for series in m.results {
            let SeriesKind::Timer(source) = series.what else {
                continue;
            };
            let intervals = Sorted::new(intervals_ns(&series, interval_us));
            let missed_ns = u64::from(interval_us) * 1_000;
            let lateness = Sorted::new(series.samples_ns);
            let late = lateness.len() - lateness.as_slice().partition_point(|ns| *ns < missed_ns);
            self.rows.push(Row {
                source: word(source),
                interval_us,
                load: series.load.name(),
                sched: series.sched.name(),
                deadlines: lateness.len() + series.lost,
                missed: late + series.lost,
                rests: series.gaps.len(),
                interrupted: series.interrupted,
                lateness: Statistics::of(&lateness),
                interval: Statistics::of(&intervals),
            });
            bodies.push((series.load, series.sched, word(source), lateness, intervals));
        }
        self.figures.extend(page::figures(interval_us, &bodies));
        self.loads
            .extend(m.load_reports.into_iter().map(|report| (interval_us, report)));
        for left in m.left_out {
            let part = match left.part {
                Part::Series(SeriesKind::Timer(source), ..) => word(source).to_owned(),
                Part::Rest => continue, // Whether something is missing at the end is said once.
                part => part.to_string(),
            };
            let entry = [part, left.why, left.remedy];
            if !self.left_out.contains(&entry) {
                self.left_out.push(entry);
            }
        }
        self.environment = m.environment;
        self.cpus = Some(m.cpus);
    }

    /// The source to take at each interval, as far as there is one.
    pub fn choices(&self) -> Vec<Choice> {
        choose::choices(&self.rows)
    }
}

/// The name of a source.
pub fn word(source: Mechanism) -> &'static str {
    let name = SeriesKind::Timer(source).name();
    name.strip_prefix("timer.").unwrap_or(name)
}

/// From one moment when the thread ran to the next, where nothing lies between; ns. A thread that was late for several
/// deadlines works them off at once: one interval is long then, and those after it are short.
fn intervals_ns(series: &Series, interval_us: u32) -> Vec<u64> {
    let mut gaps = series.gaps.iter().peekable();
    let mut intervals = Vec::with_capacity(series.samples_ns.len());
    for (i, pair) in series.samples_ns.windows(2).enumerate() {
        if gaps.next_if(|gap| **gap == i + 1).is_none() {
            intervals.push((u64::from(interval_us) * 1_000 + pair[1]).saturating_sub(pair[0]));
        }
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(samples_ns: Vec<u64>, gaps: Vec<usize>, lost: usize) -> Series {
        Series {
            what: SeriesKind::Timer(Mechanism::Spin),
            load: Load::Idle,
            sched: Sched::OTHER,
            samples_ns,
            gaps,
            lost,
            interrupted: false,
        }
    }

    #[test]
    fn an_interval_lies_between_neighbours_and_over_no_gap() {
        let s = series(
            vec![0, 2_000, 500, 700, 2_200_000, 1_200_000, 200_000],
            vec![2],
            0,
        );
        assert_eq!(intervals_ns(&s, 1_000), [1_002_000, 1_000_200, 3_199_300, 0, 0]);
    }

    #[test]
    fn what_is_late_by_an_interval_or_lost_is_missed() {
        let mut studied = Studied::default();
        studied.take(
            250,
            Measurement {
                environment: Environment::default(),
                cpus: Cpus {
                    measured: 0,
                    helper: 0,
                },
                packet_path: None,
                results: vec![series(vec![10, 249_999, 250_000, 900_000], Vec::new(), 3)],
                load_reports: Vec::new(),
                left_out: Vec::new(),
            },
        );
        let row = &studied.rows[0];
        assert_eq!((row.deadlines, row.missed, row.source), (7, 5, "spin"));
        let lateness = row.lateness.unwrap();
        assert_eq!(
            (lateness.min_us, lateness.max_us, lateness.p999_us),
            (0.01, 900.0, None)
        );
        assert_eq!(row.interval.unwrap().count, 3);
    }

    #[test]
    fn the_whole_study_takes_nine_hours_and_says_so() {
        let study = Study::default();
        assert_eq!(study.series(), 2 * 4 * 2 * 7);
        assert_eq!(study.duration(), Duration::from_secs(35_000));
    }

    /// A short study of this computer: every series is there, or it is said why not.
    #[test]
    fn every_series_is_there_or_accounted_for() {
        let study = Study {
            samples: 20,
            loads: vec![Load::Idle, Load::Timers],
            sched: vec![Sched::OTHER],
            ..Study::default()
        };
        let studied = study.run(&AtomicBool::new(false), &|_| {}).unwrap();
        for source in Mechanism::ALL.map(word) {
            let rows = studied.rows.iter().filter(|r| r.source == source).count();
            let missing = studied.left_out.iter().any(|[part, ..]| part == source);
            assert!(rows == 4 || missing && rows == 0, "{source}: {rows}");
        }
        assert!(studied.complete && studied.choices().len() == 2);
        let html = page::page(&study, &studied, "a test").html();
        assert!(html.contains("sleep") && html.contains("<svg"));
    }

    #[test]
    fn an_emulated_processor_is_told() {
        let mut studied = Studied::default();
        let told = |studied: &Studied| page::text(studied).contains("no times of a computer");
        assert!(!told(&studied));
        studied.environment.cpu_model = Some("QEMU TCG CPU version 2.5+".into());
        let html = page::page(&Study::default(), &studied, "a test").html();
        assert!(told(&studied) && html.contains("no times of a computer"));
    }

    #[test]
    fn a_stop_keeps_what_there_is() {
        let studied = Study::default().run(&AtomicBool::new(true), &|_| {}).unwrap();
        assert!(!studied.complete && studied.rows.is_empty() && studied.choices().is_empty());
    }
}
