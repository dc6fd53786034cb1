//! A grid of values and seeds: which runs, run by several workers, and what came out on average.
//!
//! A run depends on its scenario and seed alone, so the results are the same with any number of workers.

pub mod page;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use crate::run::{RunResult, run};
use crate::scenario::{Change, Scenario, ScenarioError};
use crate::stats::Running;

/// Runs of a plan at most.
pub const MAX_RUNS: usize = 100_000;

/// Why there is no plan. The text is one sentence for the command line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// A change without `=`.
    #[error("--set {0}: write KEY=VALUE or KEY=VALUE,VALUE,... for example --set nodes=1,2,5")]
    Change(String),
    /// No list of seeds.
    #[error("--seeds {0}: write a range like 1..10 (both included) or a list like 1,2,5")]
    Seeds(String),
    /// Too much to do.
    #[error("this makes {0} runs, at most {MAX_RUNS} are possible: give fewer values or seeds")]
    TooMany(u128),
    /// A point of the grid is no scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The workers cannot be started.
    #[error("cannot start the workers: {0}")]
    Workers(String),
}

/// One point of the grid: the values that are changed.
pub type Point = Vec<Change>;

/// All points, in the order in which their values were given, the last one changing fastest.
///
/// # Errors
/// If an argument is no change, or there are too many points.
pub fn grid(set: &[String]) -> Result<Vec<Point>, PlanError> {
    let mut points: Vec<Point> = vec![Vec::new()];
    for text in set {
        let change = Change::parse(text).ok_or_else(|| PlanError::Change(text.clone()))?;
        let values = values(&change.value).ok_or_else(|| PlanError::Change(text.clone()))?;
        let count = points.len() as u128 * values.len() as u128;
        if count > MAX_RUNS as u128 {
            return Err(PlanError::TooMany(count));
        }
        let with = |point: &Point, value: &str| {
            let mut point = point.clone();
            point.push(Change {
                key: change.key.clone(),
                value: value.to_owned(),
            });
            point
        };
        points = (points.iter())
            .flat_map(|point| values.iter().map(|v| with(point, v)).collect::<Vec<_>>())
            .collect();
    }
    Ok(points)
}

/// The values of a list; arrays, tables and quoted text are single values.
fn values(text: &str) -> Option<Vec<&str>> {
    if text.starts_with(['[', '{', '"', '\'']) {
        return Some(vec![text]);
    }
    let list: Vec<&str> = text.split(',').map(str::trim).collect();
    list.iter().all(|v| !v.is_empty()).then_some(list)
}

/// Reads `1..10` (both included) or `1,2,5`.
///
/// # Errors
/// If it is neither, if a seed is above 2^53, or if there are too many.
pub fn seeds(text: &str) -> Result<Vec<u64>, PlanError> {
    let wrong = || PlanError::Seeds(text.to_owned());
    let seed = |t: &str| {
        t.trim()
            .parse()
            .ok()
            .filter(|s: &u64| *s <= 1 << 53)
            .ok_or_else(wrong)
    };
    let Some((first, last)) = text.split_once("..") else {
        return text.split(',').map(seed).collect();
    };
    let (first, last) = (seed(first)?, seed(last)?);
    if first > last {
        return Err(wrong());
    }
    if last - first >= MAX_RUNS as u64 {
        return Err(PlanError::TooMany(u128::from(last - first) + 1));
    }
    Ok((first..=last).collect())
}

/// A metric over the seeds of a point.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Average {
    /// Mean.
    pub mean: f64,
    /// Half the width of the 95 % interval of the mean (Student's t); absent with a single run.
    pub plus_minus: Option<f64>,
}

/// What a point of the grid has come to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PointResult {
    /// The values that were changed.
    pub set: BTreeMap<String, String>,
    /// Metrics over all seeds.
    pub metrics: BTreeMap<&'static str, Average>,
    /// Each run, by seed.
    pub runs: Vec<RunResult>,
}

/// Runs every point with every seed on `jobs` workers (0: one for each processor). Without seeds each point runs
/// with the seed of its scenario. All points are read before the first run. `done` is told the number of finished
/// runs, by any thread, and each result as soon as there is one. Runs that `stop` prevented are left out.
///
/// # Errors
/// If a point is no scenario, there are too many runs, or the workers cannot be started.
pub fn execute(
    path: &Path,
    points: &[Point],
    seeds: &[u64],
    jobs: usize,
    stop: &AtomicBool,
    done: impl Fn(u64, &Point, &RunResult) + Sync,
) -> Result<Vec<PointResult>, PlanError> {
    let mut tasks = Vec::new();
    let count = points.len() as u128 * seeds.len().max(1) as u128;
    if count > MAX_RUNS as u128 {
        return Err(PlanError::TooMany(count));
    }
    for (n, point) in points.iter().enumerate() {
        let scenario = Scenario::open(path, point)?;
        if seeds.is_empty() {
            tasks.push((n, scenario.seed()));
        }
        tasks.extend(seeds.iter().map(|s| (n, *s)));
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    let pool = pool.map_err(|e| PlanError::Workers(e.to_string()))?;
    let finished = AtomicU64::new(0);
    let one = |&(n, seed): &(usize, u64)| -> Result<Option<RunResult>, PlanError> {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        // read again: a scenario with its tables should not wait in memory for its turn
        let scenario = Scenario::open(path, &points[n])?;
        let run = run(&scenario, seed, None, stop, |_| {}).expect("a run without a folder writes nothing");
        if run.result.interrupted {
            return Ok(None);
        }
        done(
            1 + finished.fetch_add(1, Ordering::Relaxed),
            &points[n],
            &run.result,
        );
        Ok(Some(run.result))
    };
    let results: Vec<_> = pool.install(|| tasks.par_iter().map(one).collect::<Result<_, _>>())?;
    let mut runs: Vec<Vec<RunResult>> = vec![Vec::new(); points.len()];
    for ((n, _), result) in tasks.iter().zip(results) {
        runs[*n].extend(result);
    }
    Ok(points.iter().zip(runs).map(|(p, r)| summary(p, r)).collect())
}

fn summary(point: &Point, runs: Vec<RunResult>) -> PointResult {
    let mut running: BTreeMap<&'static str, Running> = BTreeMap::new();
    for result in &runs {
        for (name, value) in &result.metrics {
            running.entry(name).or_default().push(*value);
        }
    }
    let average = |r: &Running| {
        Some(Average {
            mean: r.mean()?,
            plus_minus: r.mean_interval().map(|i| (i.high - i.low) / 2.0),
        })
    };
    PointResult {
        set: point.iter().map(|c| (c.key.clone(), c.value.clone())).collect(),
        metrics: running
            .iter()
            .filter_map(|(name, r)| Some((*name, average(r)?)))
            .collect(),
        runs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    #[test]
    fn grids() {
        let points = grid(&text(&["a=1,2", "b=x", "c=5ms, 6ms,7ms"])).unwrap();
        let values: Vec<String> = points
            .iter()
            .map(|p| p.iter().map(|c| c.value.as_str()).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            values,
            ["1 x 5ms", "1 x 6ms", "1 x 7ms", "2 x 5ms", "2 x 6ms", "2 x 7ms"]
        );
        assert_eq!(grid(&[]).unwrap(), [Vec::<Change>::new()]);
        assert_eq!(grid(&text(&["a=[1,2]"])).unwrap().len(), 1);
        for bad in ["a", "=1", "a=", "a=1,,2"] {
            assert_eq!(grid(&text(&[bad])), Err(PlanError::Change(bad.into())));
        }
        let thousand: String = (0..1_000).map(|n| format!("{n},")).collect();
        let many = format!("a={}", thousand.trim_end_matches(','));
        let set = [many.clone(), many.clone(), many];
        assert_eq!(grid(&set), Err(PlanError::TooMany(1_000_000)));
    }

    #[test]
    fn seed_lists() {
        assert_eq!(seeds("1..4").unwrap(), [1, 2, 3, 4]);
        assert_eq!(seeds("7").unwrap(), [7]);
        assert_eq!(seeds("3, 1").unwrap(), [3, 1]);
        for bad in ["", "a", "4..1", "1..", "-1", "1,,2", "9999999999999999999"] {
            assert!(matches!(seeds(bad), Err(PlanError::Seeds(_))), "{bad}");
        }
        assert!(matches!(seeds("0..9007199254740992"), Err(PlanError::TooMany(_))));
    }

    #[test]
    fn any_number_of_workers_gives_the_same() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/ns3-saturation.toml");
        let points = grid(&text(&["duration=20ms", "nodes=1,4"])).unwrap();
        let stop = AtomicBool::new(false);
        let go = |jobs| execute(&path, &points, &[1, 2, 3], jobs, &stop, |_, _, _| {}).unwrap();
        let (one, two) = (go(1), go(2));
        assert_eq!(one, two);
        assert_eq!(one[1].runs.len(), 3);
        let throughput = one[1].metrics["throughput_mbps"];
        assert!(throughput.mean > 10.0 && throughput.plus_minus.unwrap() > 0.0);
        stop.store(true, Ordering::Relaxed);
        assert!(
            go(1).iter().all(|p| p.runs.is_empty()),
            "stopped before the first run"
        );
    }
}
