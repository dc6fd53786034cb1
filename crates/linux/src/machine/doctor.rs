//! Reads the computer and says what costs determinism, and what to do about it. Nothing is changed.
//!
//! The doctor judges by what the kernel says of itself. How large the cost is on this computer only a measurement
//! tells: `sdmac measure --host`.

mod adapter;
pub(super) mod cpu;

use super::network::Network;
use super::tree::Tree;
use crate::host::{Preemption, environment};

/// Whether something costs determinism.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// It costs.
    Costs,
    /// The kernel does not say, or not to this user.
    Unknown,
    /// It does not.
    Good,
}

impl State {
    /// `costs`, `unknown`, `good`.
    pub const fn name(self) -> &'static str {
        match self {
            State::Costs => "costs",
            State::Unknown => "unknown",
            State::Good => "good",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What: `preemption`, `isolated-cpus`, ... The same in all versions.
    pub name: &'static str,
    /// Judgement.
    pub state: State,
    /// What is there.
    pub seen: String,
    /// What it costs, or would cost; empty if it is good.
    pub cost: &'static str,
    /// What to do; empty if nothing.
    pub advice: String,
}

/// A sleep state that takes longer than this to leave costs, microseconds. The paper's whole path from request to
/// confirm has a deviation of a microsecond or less.
pub const SHALLOW_US: i64 = 2;

/// Looks at everything; `iface` is the adapter that counts, if there is one.
pub fn examine(tree: &Tree, iface: Option<&Network>) -> Vec<Finding> {
    let mut all = vec![
        preemption(tree),
        cpu::isolated(tree),
        cpu::governor(tree),
        cpu::sleep_states(tree),
        throttling(tree),
        clock_source(tree),
        cpu::siblings(tree),
        cpu::hypervisor(tree),
        balancer(tree),
        migration(tree),
        watchdog(tree),
        adapter::rights(tree),
    ];
    if let Some(network) = iface {
        all.push(adapter::interrupts(tree, network));
        all.push(adapter::bus(network));
    }
    all
}

fn good(name: &'static str, seen: impl Into<String>) -> Finding {
    Finding {
        name,
        state: State::Good,
        seen: seen.into(),
        cost: "",
        advice: String::new(),
    }
}

fn found(
    name: &'static str,
    state: State,
    seen: impl Into<String>,
    cost: &'static str,
    advice: impl Into<String>,
) -> Finding {
    Finding {
        name,
        state,
        seen: seen.into(),
        cost,
        advice: advice.into(),
    }
}

fn preemption(tree: &Tree) -> Finding {
    let name = "preemption";
    let version = tree.read("/proc/version").unwrap_or_default();
    let model = environment::preemption(
        tree.read("/sys/kernel/realtime").as_deref(),
        tree.read("/sys/kernel/debug/sched/preempt").as_deref(),
        &version,
    );
    let cost = "work that the kernel does for others, interrupts above all, is finished before a real-time thread runs";
    match model {
        Preemption::Realtime => good(name, "PREEMPT_RT"),
        Preemption::Unknown => found(
            name,
            State::Unknown,
            "the kernel does not say",
            cost,
            "Boot a PREEMPT_RT kernel (linux-image-rt-amd64 in Debian) to be sure.",
        ),
        other => found(
            name,
            State::Costs,
            format!("{other:?}").to_lowercase(),
            cost,
            "Boot a PREEMPT_RT kernel (linux-image-rt-amd64 in Debian); without one, boot with threadirqs.",
        ),
    }
}

fn throttling(tree: &Tree) -> Finding {
    let name = "rt-throttling";
    let cost = "a real-time thread that spins is stopped for the rest of each period";
    let (runtime, period) = (
        tree.number("/proc/sys/kernel/sched_rt_runtime_us"),
        tree.number("/proc/sys/kernel/sched_rt_period_us"),
    );
    match (runtime, period) {
        (Some(-1), _) => good(name, "off"),
        (Some(r), Some(p)) if r >= p => good(name, format!("{r} of {p} us")),
        (Some(r), Some(p)) => found(
            name,
            State::Costs,
            format!("{r} of {p} us"),
            cost,
            "sdmac tune switches it off; a thread that never sleeps then starves its CPU.",
        ),
        _ => found(name, State::Unknown, "the kernel does not say", cost, ""),
    }
}

fn clock_source(tree: &Tree) -> Finding {
    let name = "clock-source";
    let cost = "each time stamp is a system call or a read of a slow device";
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let Some(current) = tree.read(&format!("{folder}/current_clocksource")) else {
        return found(name, State::Unknown, "the kernel does not say", cost, "");
    };
    let fast = [
        "tsc",
        "arch_sys_counter",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
    ];
    if fast.contains(&current.as_str()) {
        return good(name, current);
    }
    let available = tree
        .read(&format!("{folder}/available_clocksource"))
        .unwrap_or_default();
    let better = available.split_ascii_whitespace().find(|c| fast.contains(c));
    let advice = match better {
        Some(better) => {
            format!("Boot with clocksource={better}, if the kernel did not reject it for a reason (dmesg).")
        }
        None => "This computer offers no better one.".to_owned(),
    };
    found(name, State::Costs, current, cost, advice)
}

fn balancer(tree: &Tree) -> Finding {
    let name = "irqbalance";
    let runs = |pid: &u32| tree.read(&format!("/proc/{pid}/comm")).as_deref() == Some("irqbalance");
    match tree.numbers("/proc").iter().find(|pid| runs(pid)) {
        None => good(name, "does not run"),
        Some(pid) => found(
            name,
            State::Costs,
            format!("runs, process {pid}"),
            "it moves the interrupts of all devices about, the adapter's and others to the application's CPU",
            "systemctl stop irqbalance, or ban the CPUs that count in its configuration.",
        ),
    }
}

fn migration(tree: &Tree) -> Finding {
    let name = "timer-migration";
    match tree.number("/proc/sys/kernel/timer_migration") {
        Some(0) => good(name, "off"),
        Some(_) => found(
            name,
            State::Costs,
            "on",
            "a timer may expire on another CPU than the one that set it",
            "sdmac tune switches it off.",
        ),
        None => good(name, "this kernel has none"),
    }
}

fn watchdog(tree: &Tree) -> Finding {
    let name = "watchdog";
    match tree.number("/proc/sys/kernel/watchdog") {
        Some(0) | None => good(name, "off"),
        Some(_) => found(
            name,
            State::Costs,
            "on",
            "a thread above all real-time threads wakes up on each CPU every few seconds",
            "sdmac tune switches it off.",
        ),
    }
}

#[cfg(test)]
mod tests;
