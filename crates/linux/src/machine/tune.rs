//! Changes what can be changed while the system runs, and takes it back. See the [module above](super) for the recipe.

use super::Tree;
use super::doctor::cpu::deep_states;
use super::journal::{Before, Journal};
use super::network::Network;
use super::partition;
use super::tree::{mask, of_mask, show_cpus};
use crate::sys;
use std::io;

/// Priority of the threads that handle the adapter's interrupts; that of the paper's driver.
pub const DRIVER_PRIORITY: u8 = 98;

/// Who gets what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipe {
    /// CPU of the application.
    pub application: usize,
    /// CPU of the driver and of the adapter's interrupts; that of the application on a computer with one.
    pub driver: usize,
    /// CPUs for everything else; all where there are no others.
    pub rest: Vec<usize>,
    online: Vec<usize>,
    network: Option<Network>,
}

/// Why there is no recipe.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecipeError {
    /// A CPU that was asked for is not there.
    #[error("there is no CPU {cpu}: those online are {online}")]
    NoCpu {
        /// Asked for.
        cpu: usize,
        /// Those that are there.
        online: String,
    },
    /// The kernel does not say which CPUs there are.
    #[error("the kernel does not say which CPUs there are: /sys/devices/system/cpu/online cannot be read")]
    Blind,
}

impl Recipe {
    /// With these CPUs, or those that suit best: isolated ones first, the last ones otherwise.
    ///
    /// # Errors
    /// [`RecipeError`].
    pub fn new(
        tree: &Tree,
        application: Option<usize>,
        driver: Option<usize>,
        network: Option<Network>,
    ) -> Result<Recipe, RecipeError> {
        let online = tree.cpus("/sys/devices/system/cpu/online");
        for cpu in [application, driver].into_iter().flatten() {
            if !online.contains(&cpu) {
                let online = show_cpus(&online);
                return Err(RecipeError::NoCpu { cpu, online });
            }
        }
        let isolated = tree.cpus("/sys/devices/system/cpu/isolated");
        let by_worth = || isolated.iter().rev().chain(online.iter().rev()).copied();
        let application = application
            .or_else(|| by_worth().find(|cpu| Some(*cpu) != driver && online.contains(cpu)))
            .or(driver)
            .ok_or(RecipeError::Blind)?;
        let driver = driver
            .or_else(|| by_worth().find(|cpu| *cpu != application && online.contains(cpu)))
            .unwrap_or(application);
        let mut rest = online.clone();
        rest.retain(|cpu| *cpu != application && *cpu != driver);
        if rest.is_empty() {
            rest = online.clone();
            rest.retain(|cpu| *cpu != application || online.len() == 1);
        }
        Ok(Recipe {
            application,
            driver,
            rest,
            online,
            network,
        })
    }
}

/// One thing to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// What for.
    pub why: &'static str,
    /// File or thread.
    pub what: String,
    /// How it is.
    pub from: String,
    /// How it is to be.
    pub to: String,
    change: Change,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Change {
    File,
    Thread(u32),
    Partition(Vec<usize>),
}

/// What has to be changed so that the computer is as the recipe has it. Nothing is changed yet.
pub fn plan(tree: &Tree, recipe: &Recipe) -> Vec<Step> {
    // First: what the kernel moves away then does not go back where an interrupt was sent afterwards.
    let mut steps: Vec<Step> = partition(tree, recipe).into_iter().collect();
    let mut file = |why, path: String, to: String, is_so: &dyn Fn(&str) -> bool| {
        if let Some(from) = tree.read(&path).filter(|from| !is_so(from)) {
            let change = Change::File;
            steps.push(Step {
                why,
                what: path,
                from,
                to,
                change,
            });
        }
    };
    let mut set = |why, path: String, to: &str| file(why, path, to.to_owned(), &|from| from == to);
    for cpu in &recipe.online {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        set("the frequency stays", path, "performance");
    }
    let mut ours = vec![recipe.application, recipe.driver];
    ours.dedup();
    for &cpu in &ours {
        for (path, ..) in deep_states(tree, cpu) {
            set("no deep sleep", format!("{path}/disable"), "1");
        }
    }
    for (why, name, to) in [
        ("real-time threads are not stopped", "sched_rt_runtime_us", "-1"),
        ("timers stay on their CPU", "timer_migration", "0"),
        ("no watchdog threads", "watchdog", "0"),
    ] {
        set(why, format!("/proc/sys/kernel/{name}"), to);
    }
    let rest = |from: &str| {
        !of_mask(from)
            .iter()
            .any(|cpu| ours.contains(cpu) && !recipe.rest.contains(cpu))
    };
    let others = mask(&recipe.rest);
    let masks = [
        (
            "interrupts to come go elsewhere",
            "/proc/irq/default_smp_affinity",
        ),
        (
            "work of the kernel goes elsewhere",
            "/sys/devices/virtual/workqueue/cpumask",
        ),
    ];
    for (why, path) in masks {
        file(why, path.to_owned(), others.clone(), &rest);
    }
    let adapter: &[u32] = recipe.network.as_ref().map_or(&[], |n| &n.irqs);
    for irq in tree.numbers("/proc/irq") {
        let path = format!("/proc/irq/{irq}/smp_affinity_list");
        if adapter.contains(&irq) {
            let to = recipe.driver.to_string();
            let so = |from: &str| from == to;
            file("the adapter's interrupt has its CPU", path, to.clone(), &so);
            continue;
        }
        let free = |from: &str| {
            let there = super::tree::cpu_list(from);
            !there
                .iter()
                .any(|cpu| ours.contains(cpu) && !recipe.rest.contains(cpu))
        };
        file(
            "other interrupts go elsewhere",
            path,
            show_cpus(&recipe.rest),
            &free,
        );
    }
    steps.extend(threads(tree, recipe));
    steps
}

/// The CPUs that nobody else is to have, unless they were isolated at the boot.
fn partition(tree: &Tree, recipe: &Recipe) -> Option<Step> {
    let mut cpus = vec![recipe.application, recipe.driver];
    let isolated = tree.cpus("/sys/devices/system/cpu/isolated");
    cpus.retain(|cpu| !recipe.rest.contains(cpu) && !isolated.contains(cpu));
    cpus.sort_unstable();
    cpus.dedup();
    let now = partition::cpus(tree);
    let is_needed = !cpus.is_empty() && now != cpus && partition::is_possible(tree);
    is_needed.then(|| Step {
        why: "ordinary threads go elsewhere",
        what: partition::GROUP.to_owned(),
        from: partition::show(&now),
        to: partition::show(&cpus),
        change: Change::Partition(cpus),
    })
}

/// The threads of the adapter's interrupts, as far as they do not have their priority yet.
fn threads(tree: &Tree, recipe: &Recipe) -> Vec<Step> {
    let Some(network) = recipe.network.as_ref().filter(|_| tree.is_real()) else {
        return Vec::new();
    };
    let wanted = (libc::SCHED_FIFO, i32::from(DRIVER_PRIORITY));
    let step = |pid: u32| {
        let (policy, priority) = sys::scheduler_of(pid).ok()?;
        let name = tree.read(&format!("/proc/{pid}/comm")).unwrap_or_default();
        ((policy, priority) != wanted).then(|| Step {
            why: "the driver goes before the application",
            what: format!("thread {pid} ({name})"),
            from: show_policy(policy, priority),
            to: show_policy(wanted.0, wanted.1),
            change: Change::Thread(pid),
        })
    };
    network.irq_threads(tree).into_iter().filter_map(step).collect()
}

/// A policy of sched(7) with its priority.
pub(super) fn show_policy(policy: i32, priority: i32) -> String {
    let name = match policy {
        libc::SCHED_FIFO => "FIFO",
        libc::SCHED_RR => "RR",
        libc::SCHED_OTHER => return "ordinary".into(),
        other => return format!("policy {other}"),
    };
    format!("{name} {priority}")
}

/// Whether this process may write to the files of the kernel.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What became of a step, or of its undoing.
#[derive(Debug)]
pub struct Done {
    /// File or thread.
    pub what: String,
    /// How it is now, or should be.
    pub to: String,
    /// Why the kernel did not take it.
    pub refused: Option<io::Error>,
}

/// Carries the steps out, as far as the kernel lets it, and notes in the journal what was there.
///
/// # Errors
/// The journal cannot be written: then that step and those after it were not begun.
pub fn apply(tree: &Tree, steps: &[Step], journal: &mut Journal) -> io::Result<Vec<Done>> {
    let mut all = Vec::new();
    for step in steps {
        let before = match &step.change {
            Change::File => Before::File {
                path: step.what.clone(),
                text: step.from.clone(),
            },
            Change::Thread(pid) => {
                let (policy, priority) = sys::scheduler_of(*pid)?;
                Before::Thread {
                    pid: *pid,
                    started: started(tree, *pid).unwrap_or(0),
                    policy,
                    priority,
                }
            }
            Change::Partition(_) => Before::NoPartition {
                delegated: partition::is_delegated(tree),
            },
        };
        journal.note(before)?;
        let done = match &step.change {
            Change::File => tree.write(&step.what, &step.to),
            Change::Thread(pid) => sys::set_scheduler_of(*pid, libc::SCHED_FIFO, i32::from(DRIVER_PRIORITY)),
            Change::Partition(cpus) => partition::make(tree, cpus),
        };
        all.push(Done {
            what: step.what.clone(),
            to: step.to.clone(),
            refused: done.err(),
        });
    }
    Ok(all)
}

/// Makes everything as the journal says that it was, the last change first. What the kernel refuses stays in the
/// journal; threads that are gone do not.
///
/// # Errors
/// The journal cannot be written.
pub fn revert(tree: &Tree, journal: &mut Journal) -> io::Result<Vec<Done>> {
    let (mut all, mut left) = (Vec::new(), Vec::new());
    for before in journal.entries().iter().rev() {
        let done = match before {
            Before::File { path, text } => Done {
                what: path.clone(),
                to: text.clone(),
                // what it is already needs no write, which the kernel might refuse
                refused: match tree.read(path) {
                    Some(now) if now == *text => None,
                    _ => tree.write(path, text).err(),
                },
            },
            Before::Thread {
                pid,
                started: then,
                policy,
                priority,
            } => {
                if started(tree, *pid) != Some(*then) {
                    continue;
                }
                Done {
                    what: format!("thread {pid}"),
                    to: show_policy(*policy, *priority),
                    refused: sys::set_scheduler_of(*pid, *policy, *priority).err(),
                }
            }
            Before::NoPartition { delegated } => Done {
                what: partition::GROUP.to_owned(),
                to: "none".to_owned(),
                refused: partition::remove(tree, *delegated).err(),
            },
        };
        let gone = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
        if done.refused.as_ref().is_some_and(|e| !gone(e)) {
            left.push(before.clone());
        }
        all.push(done);
    }
    left.reverse();
    journal.keep(left)?;
    Ok(all)
}

/// When a thread was started: field 22 of proc_pid_stat(5).
fn started(tree: &Tree, pid: u32) -> Option<u64> {
    let stat = tree.read(&format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(')')?.1;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests;
