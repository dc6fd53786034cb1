//! Measures the computer the tests run on, as whoever runs them, however busy it is. No time has an upper bound.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use linux::host::{Load, Measurement, Mechanism, Part, Plan, Sched, SeriesKind, Work, measure};

/// One measurement at a time: the tests look at the threads and locks of the whole process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn small(folder: &Path) -> Plan {
    Plan {
        samples: 10,
        folder: folder.into(),
        file_octets: 4 << 20,
        budget: Duration::from_secs(3600),
        ..Plan::default()
    }
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

/// What a measurement could leave changed: policy and priority (fields 41 and 40 of proc_pid_stat(5)), CPUs, locked
/// memory, namespaces, children.
fn state() -> Vec<String> {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .unwrap()
        .1
        .split_ascii_whitespace()
        .collect();
    let mut state = vec![fields[37].to_owned(), fields[38].to_owned()];
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let kept = ["Cpus_allowed_list", "VmLck"];
    state.extend(
        status
            .lines()
            .filter(|line| kept.iter().any(|key| line.starts_with(key)))
            .map(String::from),
    );
    for namespace in ["net", "user"] {
        state.push(
            fs::read_link(format!("/proc/thread-self/ns/{namespace}"))
                .unwrap()
                .display()
                .to_string(),
        );
    }
    let children = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
    state.push(format!("children: {:?}", children.map(|child| child.is_some())));
    state
}

/// Waits until no thread of ours is left. A joined thread can stay listed in /proc for a moment.
fn wait_until_no_thread_is_left() {
    let start = Instant::now();
    loop {
        let names = fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        let ours: Vec<String> = names.filter(|name| name.starts_with("sdmac-")).collect();
        if ours.is_empty() {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "still there: {ours:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Every series of the plan is there once and whole, or is said to be missing, and not both.
fn assert_accounted_for(plan: &Plan, measurement: &Measurement) {
    for &load in &plan.loads {
        for &sched in &plan.sched {
            for &what in &plan.what {
                let found: Vec<_> = measurement
                    .results
                    .iter()
                    .filter(|series| (series.what, series.load, series.sched) == (what, load, sched))
                    .collect();
                let missing = measurement
                    .left_out
                    .iter()
                    .any(|left| left.part.covers(what, load, sched));
                assert_eq!(found.len(), usize::from(!missing), "{what} {load} {sched}");
                for series in found {
                    assert_eq!(series.samples_ns.len(), plan.samples, "{what} {load} {sched}");
                    assert!(!series.interrupted);
                }
            }
        }
    }
}

#[test]
fn everything_is_measured_or_said_to_be_missing_and_nothing_stays_behind() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let plan = small(folder.path());
    let before = state();
    let steps = Mutex::new(Vec::new());
    let progress = |step, total, _: &str| steps.lock().unwrap().push((step, total));
    let started = Instant::now();
    let measurement = measure(&plan, &progress, &never()).unwrap();
    let took = started.elapsed();

    assert_accounted_for(&plan, &measurement);
    for left in &measurement.left_out {
        assert!(
            !left.why.is_empty() && !left.part.to_string().is_empty(),
            "{left:?}"
        );
        assert!(
            left.missing.is_some(),
            "only rights can be missing here: {left:?}"
        );
        assert!(!left.remedy.is_empty(), "{left:?}");
    }
    for (report, load) in measurement.load_reports.iter().zip(&plan.loads) {
        assert_eq!((report.load, &report.failed), (*load, &None));
        assert!(match report.work {
            Work::Nothing => *load == Load::Idle,
            Work::Computed { cpus } => cpus > 0.0,
            Work::Written { octets_per_s, .. } => octets_per_s > 0.0,
            Work::Sent {
                sent_per_s,
                received_per_s,
                ..
            } => sent_per_s > 0.0 && received_per_s > 0.0,
            Work::Woken { per_s } => per_s > 0.0,
        });
    }
    assert_eq!(measurement.load_reports.len(), plan.loads.len());

    // Three packet series come from one run.
    let runs = measurement
        .results
        .iter()
        .filter(|series| !matches!(series.what, SeriesKind::PacketSend | SeriesKind::PacketTransit));
    let runs = runs.count() as u32;
    assert!(
        took >= runs * 10 * Duration::from_micros(900),
        "{runs} runs of 10 ms took {took:?}"
    );
    let steps = steps.into_inner().unwrap();
    assert!(
        steps.is_sorted() && steps.iter().all(|&(_, total)| total == runs as usize),
        "{steps:?}"
    );
    assert_eq!(steps.last(), Some(&(runs as usize, runs as usize)));

    wait_until_no_thread_is_left();
    assert_eq!(state(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_stop_between_series_keeps_what_is_there() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        sched: vec![Sched::OTHER],
        ..small(folder.path())
    };
    let stop = never();
    let progress = |step, _, _: &str| stop.store(step >= 2, Ordering::Relaxed);
    let measurement = measure(&plan, &progress, &stop).unwrap();
    let whole = measurement
        .results
        .iter()
        .filter(|series| !series.interrupted)
        .count();
    assert_eq!(whole, 2);
    assert!(measurement.results.len() <= 3);
    let rest: Vec<_> = measurement
        .left_out
        .iter()
        .filter(|left| left.part == Part::Rest)
        .collect();
    assert!(rest.len() == 1 && rest[0].why == "stopped", "{rest:?}");
    assert_eq!(measurement.load_reports.len(), 1);
    wait_until_no_thread_is_left();
}

#[test]
fn a_stop_in_the_middle_of_any_series_cuts_it_short() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for load in Load::ALL {
        for kind in [
            SeriesKind::Timer(Mechanism::Sleep),
            SeriesKind::Timer(Mechanism::Spin),
            SeriesKind::PacketReceive,
            SeriesKind::WakeEventfd,
            SeriesKind::WakePipe,
        ] {
            let plan = Plan {
                samples: Plan::MAX_SAMPLES,
                period_us: 100_000,
                what: vec![kind],
                loads: vec![load],
                sched: vec![Sched::OTHER],
                ..small(folder.path())
            };
            let stop = never();
            let measurement = std::thread::scope(|scope| {
                let progress = |_, _, label: &str| {
                    if !label.starts_with("starting") {
                        scope.spawn(|| {
                            std::thread::sleep(Duration::from_millis(20));
                            stop.store(true, Ordering::Relaxed);
                        });
                    }
                };
                measure(&plan, &progress, &stop).unwrap()
            });
            assert_eq!(
                measurement.results.len(),
                1,
                "{kind} {load}: {:?}",
                measurement.left_out
            );
            let series = &measurement.results[0];
            assert!(series.interrupted && series.samples_ns.len() < Plan::MAX_SAMPLES);
            wait_until_no_thread_is_left();
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_spent_budget_is_told() {
    let _alone = alone();
    let plan = Plan {
        budget: Duration::ZERO,
        ..Plan::quick()
    };
    let measurement = measure(&plan, &|_, _, _: &str| (), &never()).unwrap();
    assert!(measurement.results.is_empty());
    let rest = measurement
        .left_out
        .iter()
        .find(|left| left.part == Part::Rest)
        .unwrap();
    assert!(rest.why.contains("time budget"), "{rest:?}");
}

#[test]
fn a_load_that_cannot_start_costs_only_its_own_series() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        folder: folder.path().join("missing"),
        loads: vec![Load::Io, Load::Idle],
        what: vec![SeriesKind::Timer(Mechanism::Sleep)],
        ..small(folder.path())
    };
    let measurement = measure(&plan, &|_, _, _: &str| (), &never()).unwrap();
    assert_accounted_for(&plan, &measurement);
    assert!(measurement.results.iter().all(|series| series.load == Load::Idle));
    let left = measurement
        .left_out
        .iter()
        .find(|left| left.part == Part::Load(Load::Io))
        .unwrap();
    assert!(left.why.contains("missing"), "{left:?}");
}
