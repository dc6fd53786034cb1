//! Facts about this computer that decide what its latencies are: kernel, CPU, timers, power management.

use crate::machine::Tree;
use std::fs;
use std::path::Path;

/// What was found. `None` where the kernel does not say, or not to this user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Kernel build, as `uname -v`; names the preemption model of many kernels.
    pub kernel_version: String,
    /// Instruction set, as `uname -m`.
    pub machine: String,
    /// How the kernel can be preempted.
    pub preemption: Preemption,
    /// CPU model, or the board's where the CPU has no name.
    pub cpu_model: Option<String>,
    /// Number of CPUs online.
    pub cpus_online: usize,
    /// Number of CPUs that this process may use.
    pub cpus_allowed: usize,
    /// CPUs that the scheduler leaves alone (`isolcpus=`).
    pub cpus_isolated: Vec<usize>,
    /// CPUs without a tick while one thread runs (`nohz_full=`).
    pub cpus_without_tick: Vec<usize>,
    /// Frequency governor of CPU 0; `None` also where the frequency is not Linux's to choose.
    pub governor: Option<String>,
    /// Driver of the CPU's sleep states; deep states take long to leave.
    pub idle_driver: Option<String>,
    /// The clock behind all time stamps; anything but `tsc` or `arch_sys_counter` is slow to read.
    pub clocksource: Option<String>,
    /// Whether a hypervisor is underneath; `None` where the CPU does not say.
    pub virtual_machine: Option<bool>,
    /// Real-time threads together may run this long ...
    pub rt_runtime_us: Option<i64>,
    /// ... in each of these periods; a runtime of -1 is no limit.
    pub rt_period_us: Option<i64>,
    /// Load average over the last minute, in hundredths: how idle "idle" was to begin with.
    pub load_average_percent: Option<u32>,
}

/// What a reader must know of times that were taken where [`Environment::is_emulated`].
pub const EMULATED: &str = "this processor is emulated, or its time is virtual: the numbers are good for order and for \
                            ratios within one run, and are no times of a computer";

impl Environment {
    /// Whether the processor is emulated (QEMU without KVM), or its time virtual (User-Mode Linux), as far as it says so
    /// itself. See [`EMULATED`].
    pub fn is_emulated(&self) -> bool {
        let model = self.cpu_model.as_deref().unwrap_or_default();
        ["TCG", "QEMU", "User Mode Linux", "UML"]
            .iter()
            .any(|word| model.contains(word))
    }
}

/// The preemption models of Linux.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Preemption {
    /// PREEMPT_RT: nearly everything can be preempted, also interrupt handlers.
    Realtime,
    /// The kernel can be preempted except in critical sections.
    Full,
    /// As `Full` for real-time threads, as `None` for the others up to the next tick.
    Lazy,
    /// Preemption at chosen points.
    Voluntary,
    /// No preemption inside the kernel.
    None,
    /// Chosen at boot (`PREEMPT_DYNAMIC`), and not readable by this user.
    Dynamic,
    /// Nothing says.
    #[default]
    Unknown,
}

/// Reads all of it. What cannot be read stays empty.
pub fn environment() -> Environment {
    let tree = Tree::default();
    let read = |path: &str| tree.read(path);
    let uname = rustix::system::uname();
    let version = uname.version().to_string_lossy().into_owned();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Environment {
        kernel: uname.release().to_string_lossy().into_owned(),
        preemption: preemption(
            read("/sys/kernel/realtime").as_deref(),
            read("/sys/kernel/debug/sched/preempt").as_deref(),
            &version,
        ),
        kernel_version: version,
        machine: uname.machine().to_string_lossy().into_owned(),
        cpu_model: cpu_model(&cpuinfo).or_else(|| read("/proc/device-tree/model")),
        cpus_online: tree.cpus("/sys/devices/system/cpu/online").len(),
        cpus_allowed: super::thread::allowed_cpus().map_or(0, |cpus| cpus.len()),
        cpus_isolated: isolated_cpus(),
        cpus_without_tick: tree.cpus("/sys/devices/system/cpu/nohz_full"),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        idle_driver: read("/sys/devices/system/cpu/cpuidle/current_driver"),
        clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        virtual_machine: virtual_machine(&cpuinfo, Path::new("/sys/hypervisor/type").exists()),
        rt_runtime_us: tree.number("/proc/sys/kernel/sched_rt_runtime_us"),
        rt_period_us: tree.number("/proc/sys/kernel/sched_rt_period_us"),
        load_average_percent: read("/proc/loadavg").and_then(|text| load_average_percent(&text)),
    }
}

/// CPUs that the scheduler leaves alone.
pub(super) fn isolated_cpus() -> Vec<usize> {
    Tree::default().cpus("/sys/devices/system/cpu/isolated")
}

/// `realtime` is 1 on PREEMPT_RT; `preempt` is like `none voluntary (full) lazy`; `version` is `uname -v`.
pub(crate) fn preemption(realtime: Option<&str>, preempt: Option<&str>, version: &str) -> Preemption {
    let words = || version.split_ascii_whitespace();
    if realtime == Some("1") || words().any(|word| word == "PREEMPT_RT") {
        return Preemption::Realtime;
    }
    let chosen = preempt.and_then(|modes| Some(modes.split_once('(')?.1.split_once(')')?.0));
    match chosen {
        Some("full") => Preemption::Full,
        Some("lazy") => Preemption::Lazy,
        Some("voluntary") => Preemption::Voluntary,
        Some("none") => Preemption::None,
        _ if words().any(|word| word == "PREEMPT_DYNAMIC") => Preemption::Dynamic,
        _ if words().any(|word| word == "PREEMPT_LAZY") => Preemption::Lazy,
        _ if words().any(|word| word == "PREEMPT") => Preemption::Full,
        _ => Preemption::Unknown,
    }
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let line = cpuinfo
            .lines()
            .find(|line| line.split(':').next().is_some_and(|key| key.trim() == name))?;
        Some(line.split_once(':')?.1.trim().to_owned()).filter(|value| !value.is_empty())
    };
    field("model name").or_else(|| field("Model"))
}

/// Only x86 CPUs tell (CPUID leaf 1, the flag `hypervisor`); Xen tells by itself.
pub(crate) fn virtual_machine(cpuinfo: &str, hypervisor_known: bool) -> Option<bool> {
    if hypervisor_known {
        return Some(true);
    }
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

fn load_average_percent(text: &str) -> Option<u32> {
    let average: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (0.0..1e6)
        .contains(&average)
        .then(|| (average * 100.0).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_computer_has_a_kernel_and_cpus() {
        let here = environment();
        assert!(here.kernel.starts_with(|c: char| c.is_ascii_digit()), "{here:?}");
        assert!(!here.machine.is_empty());
        assert!(here.cpus_online >= 1 && here.cpus_allowed >= 1, "{here:?}");
    }

    #[test]
    fn preemption_models() {
        let case = |realtime, preempt, version| preemption(realtime, preempt, version);
        assert_eq!(case(Some("1"), None, "#1 SMP"), Preemption::Realtime);
        assert_eq!(
            case(None, None, "#1 SMP PREEMPT_RT Debian 6.1.153-1"),
            Preemption::Realtime
        );
        assert_eq!(
            case(None, Some("none (voluntary) full"), "#1 SMP PREEMPT_DYNAMIC"),
            Preemption::Voluntary
        );
        assert_eq!(
            case(None, Some("none voluntary full (lazy)"), "#1 SMP PREEMPT_DYNAMIC"),
            Preemption::Lazy
        );
        assert_eq!(
            case(None, None, "#1 SMP PREEMPT_DYNAMIC Wed"),
            Preemption::Dynamic
        );
        assert_eq!(case(Some("0"), None, "#1 SMP PREEMPT Wed"), Preemption::Full);
        assert_eq!(case(None, None, "#1 SMP"), Preemption::Unknown);
    }

    #[test]
    fn cpu_facts_of_x86_and_arm() {
        let x86 = "processor\t: 0\nmodel\t\t: 2\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor lahf_lm\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("AMD EPYC"));
        assert_eq!(virtual_machine(x86, false), Some(true));
        assert_eq!(virtual_machine("flags\t: fpu\n", false), Some(false));
        let arm = "processor\t: 0\nFeatures\t: fp asimd\n\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n";
        assert_eq!(cpu_model(arm).as_deref(), Some("Raspberry Pi 4 Model B Rev 1.4"));
        assert_eq!(
            (virtual_machine(arm, false), virtual_machine(arm, true)),
            (None, Some(true))
        );
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn emulated_processors_are_known_by_their_names() {
        let of = |model: &str| {
            let environment = Environment {
                cpu_model: Some(model.to_owned()),
                ..Environment::default()
            };
            environment.is_emulated()
        };
        assert!(of("QEMU TCG CPU version 2.5+") && of("QEMU Virtual CPU version 2.5+"));
        assert!(of("User Mode Linux") && of("UML"));
        assert!(!of("Intel(R) Core(TM) i3-4150 CPU @ 3.50GHz") && !Environment::default().is_emulated());
    }

    #[test]
    fn load_averages() {
        assert_eq!(load_average_percent("2.55 1.33 0.63 4/124 14479"), Some(255));
        assert_eq!(load_average_percent("NaN"), None);
        assert_eq!(load_average_percent(""), None);
    }
}
