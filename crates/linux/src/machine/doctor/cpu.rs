//! What is said about the processors.

use super::super::partition;
use super::super::tree::{Tree, show_cpus};
use super::{Finding, SHALLOW_US, State, found, good};
use crate::host::environment;

pub(super) fn isolated(tree: &Tree) -> Finding {
    let name = "isolated-cpus";
    let online = tree.cpus("/sys/devices/system/cpu/online");
    // at the boot, or by `tune`
    let mut isolated = tree.cpus("/sys/devices/system/cpu/isolated");
    isolated.extend(partition::cpus(tree));
    let cost = "other threads run where the application runs, and it waits for them or for their caches";
    if isolated.len() >= 2 {
        return good(
            name,
            format!("{} of {}", show_cpus(&isolated), show_cpus(&online)),
        );
    }
    if online.len() < 2 {
        return found(
            name,
            State::Costs,
            "one CPU",
            cost,
            "Take a computer with two or more.",
        );
    }
    let last = online[online.len() - 1];
    let wanted = if online.len() > 2 {
        format!("{},{last}", online[online.len() - 2])
    } else {
        last.to_string()
    };
    let seen = match &isolated[..] {
        [] => format!("none of {}", show_cpus(&online)),
        some => format!("only {}", show_cpus(some)),
    };
    let advice = format!(
        "Boot with isolcpus={wanted} nohz_full={wanted} rcu_nocbs={wanted}: one for the application, one for the driver."
    );
    found(name, State::Costs, seen, cost, advice)
}

pub(super) fn governor(tree: &Tree) -> Finding {
    let name = "governor";
    let of = |cpu: usize| {
        tree.read(&format!(
            "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
        ))
    };
    let online = tree.cpus("/sys/devices/system/cpu/online");
    let mut all: Vec<String> = online.into_iter().filter_map(of).collect();
    all.sort_unstable();
    all.dedup();
    let seen = all.join(", ");
    match &all[..] {
        [] => found(
            name,
            State::Unknown,
            "the frequency is not Linux's to choose",
            "a CPU that slows down when it is idle takes longer for the first frame afterwards",
            "Look into the firmware's settings, or those of the hypervisor.",
        ),
        [one] if one == "performance" => good(name, seen),
        _ => found(
            name,
            State::Costs,
            seen,
            "a CPU that slows down when it is idle takes longer for the first frame afterwards",
            "sdmac tune sets `performance`.",
        ),
    }
}

/// Sleep states of a CPU that are in use: name and time to leave it, us.
pub(in crate::machine) fn deep_states(tree: &Tree, cpu: usize) -> Vec<(String, String, i64)> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let states = tree.names(&folder).into_iter().filter(|n| n.starts_with("state"));
    states
        .filter_map(|state| {
            let path = format!("{folder}/{state}");
            let latency = tree.number(&format!("{path}/latency"))?;
            let off = tree.number(&format!("{path}/disable")) == Some(1);
            let label = tree.read(&format!("{path}/name")).unwrap_or(state);
            (latency > SHALLOW_US && !off).then_some((path, label, latency))
        })
        .collect()
}

pub(super) fn sleep_states(tree: &Tree) -> Finding {
    let name = "sleep-states";
    let online = tree.cpus("/sys/devices/system/cpu/online");
    let cost = "a CPU that sleeps deeply takes its time to wake up for a timer or an interrupt";
    let any = (online.iter()).any(|cpu| {
        !tree
            .names(&format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle"))
            .is_empty()
    });
    if !any {
        return found(
            name,
            State::Unknown,
            "no sleep states are Linux's to choose",
            cost,
            "On a virtual machine the hypervisor decides; else look into the firmware's settings.",
        );
    }
    let deepest = online
        .iter()
        .flat_map(|&cpu| deep_states(tree, cpu))
        .max_by_key(|(_, _, latency)| *latency);
    match deepest {
        None => good(
            name,
            format!("none that takes longer than {SHALLOW_US} us to leave"),
        ),
        Some((_, label, latency)) => found(
            name,
            State::Costs,
            format!("{label}, {latency} us to leave as the kernel has it"),
            cost,
            "sdmac tune switches the deep ones off on the CPUs that count.",
        ),
    }
}

pub(super) fn siblings(tree: &Tree) -> Finding {
    let name = "smt";
    match tree.number("/sys/devices/system/cpu/smt/active") {
        Some(0) => good(name, "off"),
        Some(_) => found(
            name,
            State::Costs,
            "two threads on each core",
            "what runs on the other thread of the core takes from this one",
            "Leave the sibling of the application's CPU idle, or echo off > /sys/devices/system/cpu/smt/control.",
        ),
        None => good(name, "this computer has none"),
    }
}

pub(super) fn hypervisor(tree: &Tree) -> Finding {
    let name = "virtual-machine";
    let cpuinfo = tree.read("/proc/cpuinfo").unwrap_or_default();
    let xen = tree.place("/sys/hypervisor/type").exists();
    match environment::virtual_machine(&cpuinfo, xen) {
        Some(false) => good(name, "no"),
        None => found(name, State::Unknown, "the CPU does not say", "", ""),
        Some(true) => found(
            name,
            State::Costs,
            "yes",
            "the hypervisor takes the CPU away whenever it likes, and no setting in here changes that",
            "Measure and run on the computer itself.",
        ),
    }
}
