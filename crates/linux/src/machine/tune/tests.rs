//! A computer in a folder, tuned and taken back.

use super::*;
use std::fs;
use std::process::Command;

const FILES: &[(&str, &str)] = &[
    ("/sys/devices/system/cpu/online", "0-3\n"),
    (
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "powersave\n",
    ),
    (
        "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor",
        "performance\n",
    ),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state3/latency", "133\n"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state3/disable", "0\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state1/latency", "2\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state1/disable", "0\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state3/latency", "133\n"),
    ("/sys/devices/system/cpu/cpu3/cpuidle/state3/disable", "0\n"),
    ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
    ("/proc/sys/kernel/timer_migration", "0\n"),
    ("/proc/irq/default_smp_affinity", "f\n"),
    ("/sys/devices/virtual/workqueue/cpumask", "3\n"),
    ("/proc/irq/9/smp_affinity_list", "0-3\n"),
    ("/proc/irq/10/smp_affinity_list", "0-1\n"),
    ("/proc/irq/17/smp_affinity_list", "0-3\n"),
    ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu memory\n"),
    ("/sys/fs/cgroup/cgroup.subtree_control", "cpuset memory\n"),
    ("/sys/fs/cgroup/cgroup.procs", "1\n"),
];

fn computer() -> (tempfile::TempDir, Tree) {
    let dir = tempfile::tempdir().unwrap();
    let tree = Tree::at(dir.path());
    for (path, text) in FILES {
        let place = tree.place(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    (dir, tree)
}

fn adapter() -> Option<Network> {
    Some(Network {
        iface: "wlan1".into(),
        driver: None,
        bus: None,
        irqs: vec![17],
        shared: false,
    })
}

#[test]
fn the_recipe_of_the_paper() {
    let (_dir, tree) = computer();
    let recipe = Recipe::new(&tree, None, None, adapter()).unwrap();
    assert_eq!(
        (recipe.application, recipe.driver, &recipe.rest[..]),
        (3, 2, &[0, 1][..])
    );
    let steps = plan(&tree, &recipe);
    let short: Vec<_> = steps
        .iter()
        .map(|s| (&s.what[..], &s.from[..], &s.to[..]))
        .collect();
    assert_eq!(
        short,
        [
            ("/sys/fs/cgroup/sdmac", "none", "a partition with CPUs 2-3"),
            (
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "powersave",
                "performance"
            ),
            ("/sys/devices/system/cpu/cpu3/cpuidle/state3/disable", "0", "1"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000", "-1"),
            ("/proc/irq/default_smp_affinity", "f", "00000003"),
            ("/proc/irq/9/smp_affinity_list", "0-3", "0-1"),
            ("/proc/irq/17/smp_affinity_list", "0-3", "2"),
        ]
    );
}

#[test]
fn what_was_applied_can_be_taken_back_even_after_twice() {
    let (dir, tree) = computer();
    let recipe = Recipe::new(&tree, Some(1), Some(3), adapter()).unwrap();
    assert_eq!(recipe.rest, [0, 2]);
    let mut journal = Journal::open(dir.path().join("journal")).unwrap();
    let done = apply(&tree, &plan(&tree, &recipe), &mut journal).unwrap();
    assert!(
        !done.is_empty() && done.iter().all(|d| d.refused.is_none()),
        "{done:?}"
    );
    assert!(plan(&tree, &recipe).is_empty(), "nothing is left to do");
    // other CPUs, with the journal read again
    let other = Recipe::new(&tree, Some(0), Some(1), adapter()).unwrap();
    let mut journal = Journal::open(dir.path().join("journal")).unwrap();
    assert_eq!(partition::cpus(&tree), [1, 3]);
    apply(&tree, &plan(&tree, &other), &mut journal).unwrap();
    assert_eq!(partition::cpus(&tree), [0, 1]);
    assert_eq!(tree.read("/proc/irq/17/smp_affinity_list").as_deref(), Some("1"));
    revert(&tree, &mut journal).unwrap();
    for (path, text) in FILES {
        assert_eq!(tree.read(path).as_deref(), Some(text.trim()), "{path}");
    }
    assert!(!journal.path().exists() && !tree.place(partition::GROUP).exists());
}

/// Isolated at the boot, or without cgroup-v2, or with one CPU: no partition.
#[test]
fn a_partition_only_where_it_is_needed_and_possible() {
    let (_dir, tree) = computer();
    let partitions = || {
        let steps = plan(&tree, &Recipe::new(&tree, None, None, None).unwrap());
        let found = steps.into_iter().find(|s| s.what == partition::GROUP);
        found.map(|s| s.to)
    };
    assert_eq!(partitions().as_deref(), Some("a partition with CPUs 2-3"));
    let set = |path: &str, text: &str| fs::write(tree.place(path), text).unwrap();
    set("/sys/devices/system/cpu/isolated", "3\n");
    assert_eq!(partitions().as_deref(), Some("a partition with CPU 2"));
    set("/sys/devices/system/cpu/isolated", "2-3\n");
    assert_eq!(partitions(), None);
    set("/sys/devices/system/cpu/isolated", "\n");
    set("/sys/devices/system/cpu/online", "0-1\n");
    assert_eq!(
        partitions().as_deref(),
        Some("a partition with CPU 1"),
        "the driver shares with the rest"
    );
    set("/sys/devices/system/cpu/online", "0\n");
    assert_eq!(partitions(), None);
    set("/sys/devices/system/cpu/online", "0-3\n");
    set("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    assert_eq!(partitions(), None);
}

#[test]
fn what_is_refused_stays_in_the_journal_and_what_is_gone_does_not() {
    let (dir, tree) = computer();
    let mut journal = Journal::open(dir.path().join("journal")).unwrap();
    let gone = Before::File {
        path: "/proc/irq/99/smp_affinity_list".into(),
        text: "0".into(),
    };
    // a folder cannot be written
    let refused = Before::File {
        path: "/proc/irq/9".into(),
        text: "0".into(),
    };
    journal.note(gone).unwrap();
    journal.note(refused.clone()).unwrap();
    let thread = Before::Thread {
        pid: u32::MAX,
        started: 1,
        policy: 0,
        priority: 0,
    };
    journal.note(thread).unwrap();
    let done = revert(&tree, &mut journal).unwrap();
    assert_eq!(done.iter().filter(|d| d.refused.is_some()).count(), 2);
    assert_eq!(
        Journal::open(dir.path().join("journal")).unwrap().entries(),
        [refused]
    );
}

#[test]
fn cpus_are_chosen_or_refused() {
    let (_dir, tree) = computer();
    let of = |a, d| Recipe::new(&tree, a, d, None).map(|r| (r.application, r.driver));
    assert_eq!(of(Some(0), None), Ok((0, 3)));
    assert_eq!(of(None, Some(3)), Ok((2, 3)));
    assert_eq!(of(Some(2), Some(2)), Ok((2, 2)));
    let no = RecipeError::NoCpu {
        cpu: 4,
        online: "0-3".into(),
    };
    assert_eq!((of(Some(4), None), of(None, Some(4))), (Err(no.clone()), Err(no)));
    fs::write(tree.place("/sys/devices/system/cpu/isolated"), "1,3\n").unwrap();
    assert_eq!(of(None, None), Ok((3, 1)));
    // few CPUs: the driver and everything else share, but nobody is left without any
    for (online, rest) in [("0-1", vec![0]), ("0", vec![0])] {
        fs::write(tree.place("/sys/devices/system/cpu/isolated"), "\n").unwrap();
        fs::write(tree.place("/sys/devices/system/cpu/online"), online).unwrap();
        assert_eq!(
            Recipe::new(&tree, None, None, None).unwrap().rest,
            rest,
            "{online}"
        );
    }
    fs::write(tree.place("/sys/devices/system/cpu/online"), "").unwrap();
    assert_eq!(of(None, None), Err(RecipeError::Blind));
}

/// In a guest with two processors: what may run anywhere runs on the first one, until that is taken back.
#[test]
fn ordinary_threads_leave_a_cpu_of_this_kernel() {
    let tree = Tree::default();
    let online = tree.cpus("/sys/devices/system/cpu/online");
    if std::env::var_os("SDMAC_LAB").is_none() || online != [0, 1] {
        eprintln!("skipped: not in a guest with two processors (sdmac lab run --qemu standard --cpus 2)");
        return;
    }
    if !partition::is_possible(&tree) {
        let mount = ["-t", "cgroup2", "none", "/sys/fs/cgroup"];
        assert!(Command::new("mount").args(mount).status().unwrap().success());
    }
    let mut other = Command::new("sleep").arg("600").spawn().unwrap();
    let allowed = |pid: u32| {
        let status = tree.read(&format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    assert_eq!(allowed(other.id()), "0-1");
    let mut steps = plan(&tree, &Recipe::new(&tree, None, None, None).unwrap());
    steps.retain(|step| step.what == partition::GROUP);
    let dir = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(dir.path().join("journal")).unwrap();
    let done = apply(&tree, &steps, &mut journal).unwrap();
    assert!(done.len() == 1 && done[0].refused.is_none(), "{done:?}");
    assert_eq!(partition::cpus(&tree), [1]);
    assert_eq!(
        (allowed(other.id()), allowed(1)),
        ("0".to_owned(), "0".to_owned())
    );
    assert!(partition::join(&tree, 1).unwrap());
    assert_eq!(allowed(std::process::id()), "1");
    let done = revert(&tree, &mut journal).unwrap();
    assert!(done.iter().all(|d| d.refused.is_none()), "{done:?}");
    assert_eq!(
        [other.id(), std::process::id()].map(allowed),
        ["0-1", "0-1"],
        "as before"
    );
    assert!(!tree.place(partition::GROUP).exists());
    other.kill().unwrap();
    other.wait().unwrap();
}
