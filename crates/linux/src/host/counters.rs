//! What the kernel counts: interrupts, soft interrupts, context switches and CPU time (proc_stat(5)).

use std::{fs, io};

use super::pace::monotonic_ns;

/// One reading of the counters since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counters {
    read_ns: u64,
    interrupts: u64,
    soft_interrupts: u64,
    context_switches: u64,
    busy_ticks: u64,
    stolen_ticks: u64,
    all_ticks: u64,
    interrupts_by_cpu: Vec<(usize, u64)>,
}

/// What happened per second between two readings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    /// Time between the readings, s.
    pub seconds: f64,
    /// Interrupts of all CPUs per second, timer and inter-processor interrupts included.
    pub interrupts_per_s: f64,
    /// The same for each online CPU: number of the CPU, interrupts per second. Empty without `/proc/interrupts`.
    pub interrupts_by_cpu_per_s: Vec<(usize, f64)>,
    /// Soft interrupts per second.
    pub soft_interrupts_per_s: f64,
    /// Context switches per second.
    pub context_switches_per_s: f64,
    /// Share of the time of all CPUs that was not idle, 0 to 1.
    pub cpu_busy: f64,
    /// Share of the time of all CPUs that the hypervisor gave to others, 0 to 1.
    pub cpu_stolen: f64,
}

impl Counters {
    /// Reads them now. `/proc/interrupts` may be missing, `/proc/stat` not.
    pub fn read() -> io::Result<Self> {
        let mut counters = Self {
            read_ns: monotonic_ns(),
            ..Self::default()
        };
        counters.parse_stat(&fs::read_to_string("/proc/stat")?);
        counters.interrupts_by_cpu = fs::read_to_string("/proc/interrupts")
            .map(|text| by_cpu(&text))
            .unwrap_or_default();
        Ok(counters)
    }

    fn parse_stat(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(name) = words.next() else { continue };
            let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(0_u64);
            match name {
                "cpu" => {
                    // user nice system idle iowait irq softirq steal; the guest times are within user and nice.
                    let ticks = [(); 8].map(|()| number());
                    self.all_ticks = ticks.iter().sum();
                    self.stolen_ticks = ticks[7];
                    self.busy_ticks = self.all_ticks - ticks[3] - ticks[4] - ticks[7];
                }
                "intr" => self.interrupts = number(),
                "softirq" => self.soft_interrupts = number(),
                "ctxt" => self.context_switches = number(),
                _ => {}
            }
        }
    }

    /// What happened since `earlier`.
    pub fn since(&self, earlier: &Self) -> Rates {
        let seconds = self.read_ns.saturating_sub(earlier.read_ns).max(1) as f64 / 1e9;
        let grown = |now: u64, then: u64| now.saturating_sub(then) as f64;
        let ticks = grown(self.all_ticks, earlier.all_ticks).max(1.0);
        Rates {
            seconds,
            interrupts_per_s: grown(self.interrupts, earlier.interrupts) / seconds,
            interrupts_by_cpu_per_s: self
                .interrupts_by_cpu
                .iter()
                .filter_map(|&(cpu, now)| {
                    let then = earlier
                        .interrupts_by_cpu
                        .iter()
                        .find(|(other, _)| *other == cpu)?
                        .1;
                    Some((cpu, grown(now, then) / seconds))
                })
                .collect(),
            soft_interrupts_per_s: grown(self.soft_interrupts, earlier.soft_interrupts) / seconds,
            context_switches_per_s: grown(self.context_switches, earlier.context_switches) / seconds,
            cpu_busy: (grown(self.busy_ticks, earlier.busy_ticks) / ticks).min(1.0),
            cpu_stolen: (grown(self.stolen_ticks, earlier.stolen_ticks) / ticks).min(1.0),
        }
    }
}

/// Sums the columns of `/proc/interrupts`. Its first line names the CPUs; `ERR` and `MIS` belong to none.
fn by_cpu(text: &str) -> Vec<(usize, u64)> {
    let mut lines = text.lines();
    let mut sums: Vec<(usize, u64)> = lines
        .next()
        .unwrap_or("")
        .split_ascii_whitespace()
        .filter_map(|word| Some((word.strip_prefix("CPU")?.parse().ok()?, 0)))
        .collect();
    for line in lines {
        let mut words = line.split_ascii_whitespace();
        if matches!(words.next(), Some("ERR:" | "MIS:")) {
            continue;
        }
        for (sum, count) in sums
            .iter_mut()
            .zip(words.map_while(|word| word.parse::<u64>().ok()))
        {
            sum.1 = sum.1.saturating_add(count);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  100 20 30 400 50 6 7 8 0 0\ncpu0 1 1 1 1\nintr 4851 0 13\nctxt 686494\nsoftirq 316 0 3\n";

    #[test]
    fn stat_is_read_by_name() {
        let mut counters = Counters::default();
        counters.parse_stat(STAT);
        let wanted = Counters {
            interrupts: 4851,
            soft_interrupts: 316,
            context_switches: 686_494,
            busy_ticks: 163,
            stolen_ticks: 8,
            all_ticks: 621,
            ..Counters::default()
        };
        assert_eq!(counters, wanted);
    }

    #[test]
    fn interrupts_are_summed_by_cpu_also_where_one_is_offline() {
        let text = "           CPU0       CPU2\n 24:    1    0  IO-APIC   5-edge      ACPI:Ged\n\
                    LOC:    91144     101813   Local timer interrupts\nERR:          7\n";
        assert_eq!(by_cpu(text), [(0, 91145), (2, 101_813)]);
        assert_eq!(by_cpu(""), []);
        assert_eq!(by_cpu("CPU0\n 1: nonsense\n\n"), [(0, 0)]);
    }

    #[test]
    fn rates_are_differences_over_time() {
        let then = Counters {
            read_ns: 0,
            interrupts: 100,
            all_ticks: 1000,
            busy_ticks: 500,
            ..Counters::default()
        };
        let now = Counters {
            read_ns: 2_000_000_000,
            interrupts: 300,
            all_ticks: 1400,
            busy_ticks: 600,
            stolen_ticks: 40,
            ..Counters::default()
        };
        let rates = now.since(&then);
        assert_eq!((rates.seconds, rates.interrupts_per_s), (2.0, 100.0));
        assert_eq!((rates.cpu_busy, rates.cpu_stolen), (0.25, 0.1));
    }

    #[test]
    fn this_computer_switches_between_threads() {
        let before = Counters::read().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30));
        let rates = Counters::read().unwrap().since(&before);
        assert!(rates.seconds >= 0.03);
        assert!(rates.context_switches_per_s > 0.0);
    }
}
