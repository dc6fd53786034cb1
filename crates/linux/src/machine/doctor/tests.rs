//! Computers in folders: the worst, a tuned one, and one that does not say.

use super::*;
use std::fs;

/// A computer in a folder.
fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::at(dir.path());
    for (path, text) in files {
        let place = tree.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    (dir, tree)
}

fn state(all: &[Finding], name: &str) -> State {
    let of: Vec<_> = all.iter().filter(|f| f.name == name).collect();
    assert_eq!(of.len(), 1, "{name}");
    of[0].state
}

const WORST: &[(&str, &str)] = &[
    (
        "/proc/version",
        "Linux version 6.1.0 #1 SMP PREEMPT_DYNAMIC Debian",
    ),
    ("/sys/devices/system/cpu/online", "0-3\n"),
    (
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "schedutil\n",
    ),
    (
        "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
        "performance\n",
    ),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state0/latency", "0\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state3/latency", "133\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state3/name", "C6\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state3/disable", "0\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
    (
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "hpet\n",
    ),
    (
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "hpet tsc acpi_pm\n",
    ),
    ("/sys/devices/system/cpu/smt/active", "1\n"),
    ("/proc/cpuinfo", "flags\t: fpu hypervisor\n"),
    ("/proc/77/comm", "irqbalance\n"),
    ("/proc/sys/kernel/timer_migration", "1\n"),
    ("/proc/sys/kernel/watchdog", "1\n"),
    ("/proc/irq/17/smp_affinity_list", "0-3\n"),
];

fn adapter(irqs: &[u32], bus: &str) -> Network {
    Network {
        iface: "wlan1".into(),
        driver: Some("ath9k_htc".into()),
        bus: Some(bus.into()),
        irqs: irqs.to_vec(),
        shared: false,
    }
}

#[test]
fn everything_that_costs_is_told_with_what_to_do() {
    let (_dir, tree) = tree(WORST);
    let all = examine(&tree, Some(&adapter(&[17], "usb")));
    for f in all.iter().filter(|f| f.name != "rights") {
        assert_eq!(f.state, State::Costs, "{f:?}");
        assert!(
            !f.seen.is_empty() && !f.cost.is_empty() && !f.advice.is_empty(),
            "{f:?}"
        );
    }
    let of = |name: &str| all.iter().find(|f| f.name == name).unwrap();
    assert!(of("isolated-cpus").advice.contains("isolcpus=2,3 nohz_full=2,3"));
    assert!(of("sleep-states").seen.contains("C6, 133 us"));
    assert!(of("clock-source").advice.contains("clocksource=tsc"));
    assert_eq!(of("governor").seen, "performance, schedutil");
}

#[test]
fn a_tuned_computer_has_nothing_to_tell() {
    let (_dir, tree) = tree(&[
        ("/sys/kernel/realtime", "1\n"),
        ("/sys/devices/system/cpu/online", "0-3\n"),
        ("/sys/devices/system/cpu/isolated", "2-3\n"),
        (
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            "performance\n",
        ),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state3/latency", "133\n"),
        ("/sys/devices/system/cpu/cpu0/cpuidle/state3/disable", "1\n"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "-1\n"),
        (
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc\n",
        ),
        ("/proc/cpuinfo", "flags\t: fpu\n"),
        ("/proc/sys/kernel/timer_migration", "0\n"),
        ("/proc/irq/17/smp_affinity_list", "3\n"),
    ]);
    let all = examine(&tree, Some(&adapter(&[17], "pci")));
    assert!(all.iter().all(|f| f.state == State::Good), "{all:?}");
}

#[test]
fn what_cannot_be_read_is_unknown_and_not_good() {
    let (_dir, tree) = tree(&[]);
    let all = examine(&tree, Some(&adapter(&[], "pci")));
    for name in [
        "preemption",
        "governor",
        "sleep-states",
        "rt-throttling",
        "clock-source",
        "adapter-interrupts",
    ] {
        assert_eq!(state(&all, name), State::Unknown, "{name}");
    }
    // this computer, whatever it is
    let here = examine(&Tree::default(), None);
    assert!(here.iter().all(|f| f.state == State::Good || !f.seen.is_empty()));
}
