//! A study of timers leaves nothing running behind. A test program of its own, since it looks at all threads of the process.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::measure::timers::Study;
use linux::host::{Load, Mechanism, Sched};

/// One study at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Threads that measure or disturb.
fn ours() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("sdmac-")).collect()
}

/// A thread that has ended can stay listed for a moment.
fn wait_until_none_is_left() {
    let start = Instant::now();
    while !ours().is_empty() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "still there: {:?}",
            ours()
        );
        sleep(Duration::from_millis(1));
    }
}

fn study(load: Load) -> Study {
    Study {
        samples: 20,
        intervals_us: vec![1_000],
        sources: vec![Mechanism::Sleep, Mechanism::Spin],
        loads: vec![load],
        sched: vec![Sched::OTHER],
    }
}

#[test]
fn what_disturbs_runs_as_long_as_the_study_and_no_longer() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    for load in [Load::Timers, Load::Network, Load::Io] {
        let most = Mutex::new(0);
        let see = |_| {
            let mut most = most.lock().unwrap();
            *most = ours()
                .iter()
                .filter(|name| name.starts_with("sdmac-load"))
                .count()
                .max(*most);
        };
        let studied = study(load).run(&AtomicBool::new(false), &see).unwrap();
        let disturbing = most.into_inner().unwrap();
        let left_out = studied.rows.is_empty() && !studied.left_out.is_empty();
        assert!(left_out || disturbing > 0, "{load}: {:?}", studied.left_out);
        assert!(
            load != Load::Timers || disturbing == 10,
            "{disturbing} of ten timers"
        );
        wait_until_none_is_left();
    }
}

/// Also where it is stopped after the first series.
#[test]
fn a_study_that_is_stopped_leaves_nothing_behind() {
    let _alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
    let stop = AtomicBool::new(false);
    let after_one = |done| stop.store(done >= 1, Ordering::Relaxed);
    let studied = study(Load::Timers).run(&stop, &after_one).unwrap();
    assert!(!studied.complete);
    wait_until_none_is_left();
}
