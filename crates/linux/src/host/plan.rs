//! How much to measure, where, and within which limits.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::kind::{Load, Run, Sched, SeriesKind};
use super::thread;

/// What to measure, and how much of it.
///
/// Every combination of `what`, `loads` and `sched` is measured for `samples` periods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Samples of each series; 1 to [`Plan::MAX_SAMPLES`].
    pub samples: usize,
    /// Mean time between two samples, µs; 100 to 1,000,000.
    pub period_us: u32,
    /// Deadlines of timers are exactly one period apart, as the slots of a MAC are; else one lies anywhere in each period.
    pub steady: bool,
    /// The series.
    pub what: Vec<SeriesKind>,
    /// The loads, in this order.
    pub loads: Vec<Load>,
    /// How the measuring threads are scheduled.
    pub sched: Vec<Sched>,
    /// Priority of `SCHED_FIFO`, 1 to 99. On a PREEMPT_RT kernel interrupt threads have 50.
    pub priority: u8,
    /// How long before its deadline [`Mechanism::Hybrid`](super::Mechanism::Hybrid) starts to spin, µs.
    pub spin_us: u32,
    /// Octets of a measured frame, Ethernet header included; 60 to 1500.
    pub frame_octets: usize,
    /// The CPUs of the measuring threads; `None` lets [`measure`](super::measure) choose.
    pub cpus: Option<Cpus>,
    /// Folder for the file of [`Load::Io`]; it should be on a disk.
    pub folder: PathBuf,
    /// Size of that file, octets; 1 MiB to 1 GiB. It is written over and over, at 256 MB/s at most.
    pub file_octets: u64,
    /// Limit on everything together. What is not done by then is cut short or left out.
    pub budget: Duration,
}

/// The CPUs that measuring threads are bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpus {
    /// Where the measured thread runs: timers, the receiver of frames, the thread that is woken.
    pub measured: usize,
    /// Where the other one runs: the sender of frames (so [`SeriesKind::PacketSend`] is of this CPU), the thread
    /// that wakes. Both may be the same.
    pub helper: usize,
}

impl Default for Plan {
    /// What tells one computer from another, 400 samples each: about 50 s.
    fn default() -> Self {
        let disk = PathBuf::from("/var/tmp"); // /tmp is often memory.
        Self {
            samples: 400,
            period_us: 1000,
            steady: false,
            what: SeriesKind::COMPUTER.to_vec(),
            loads: Load::COMPUTER.to_vec(),
            sched: Sched::ALL.to_vec(),
            priority: 50,
            spin_us: 200,
            frame_octets: 100,
            cpus: None,
            folder: if disk.is_dir() { disk } else { std::env::temp_dir() },
            file_octets: 64 << 20,
            budget: Duration::from_secs(180),
        }
    }
}

impl Plan {
    /// Largest number of samples of a series (8 octets each).
    pub const MAX_SAMPLES: usize = 1_000_000;

    /// The same, 40 samples each: about 6 s. Enough to see that it works, too little for percentiles.
    pub fn quick() -> Self {
        Self {
            samples: 40,
            budget: Duration::from_secs(30),
            ..Self::default()
        }
    }

    /// How long the plan takes if nothing is left out, without starting the loads (up to 1 s each).
    pub fn duration(&self) -> Duration {
        let periods = (self.runs().len() * self.samples) as u64;
        Duration::from_micros(periods * u64::from(self.period_us))
    }

    /// One run for each step of progress, grouped by load.
    pub(super) fn runs(&self) -> Vec<(Load, Run, Sched)> {
        let mut runs = Vec::new();
        for &load in &self.loads {
            for kind in SeriesKind::ALL
                .into_iter()
                .filter(|kind| self.what.contains(kind))
            {
                for &sched in &self.sched {
                    let run = (load, kind.run(), sched);
                    if !runs.contains(&run) {
                        runs.push(run);
                    }
                }
            }
        }
        runs
    }

    /// Checks every limit and chooses the CPUs.
    pub(super) fn check(&self) -> Result<Cpus, PlanError> {
        within("samples", self.samples as u64, 1..=Self::MAX_SAMPLES as u64)?;
        within("period_us", self.period_us.into(), 100..=1_000_000)?;
        within("priority", self.priority.into(), 1..=99)?;
        within("spin_us", self.spin_us.into(), 0..=1_000_000)?;
        within("frame_octets", self.frame_octets as u64, 60..=1500)?;
        within("file_octets", self.file_octets, 1 << 20..=1 << 30)?;
        within("budget (in seconds)", self.budget.as_secs(), 0..=2_592_000)?;
        let allowed = thread::allowed_cpus().map_err(|errno| PlanError::Affinity(errno.into()))?;
        let cpus = self
            .cpus
            .unwrap_or_else(|| choose(&allowed, &super::environment::isolated_cpus()));
        for cpu in [cpus.measured, cpus.helper] {
            if !allowed.contains(&cpu) {
                return Err(PlanError::Cpu { cpu, allowed });
            }
        }
        Ok(cpus)
    }
}

fn within(what: &'static str, value: u64, range: RangeInclusive<u64>) -> Result<(), PlanError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(PlanError::Range { what, value, range })
    }
}

/// An isolated CPU if there is one, else the last (CPU 0 has most of the interrupts); and for the helper another.
fn choose(allowed: &[usize], isolated: &[usize]) -> Cpus {
    let best = |not: Option<usize>| {
        let free = || allowed.iter().copied().filter(move |&cpu| Some(cpu) != not);
        free()
            .rfind(|cpu| isolated.contains(cpu))
            .or_else(|| free().next_back())
    };
    let measured = best(None).unwrap_or(0);
    Cpus {
        measured,
        helper: best(Some(measured)).unwrap_or(measured),
    }
}

/// Why a plan cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A number is outside its range.
    #[error("{what} is {value}, but must be {} to {}", range.start(), range.end())]
    Range {
        /// The field of [`Plan`].
        what: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        range: RangeInclusive<u64>,
    },
    /// A CPU is offline, does not exist, or is closed to this process.
    #[error("CPU {cpu} is not open to this process; choose from {allowed:?}")]
    Cpu {
        /// The CPU asked for.
        cpu: usize,
        /// The CPUs that this process may use.
        allowed: Vec<usize>,
    },
    /// The kernel does not say which CPUs this process may use.
    #[error("cannot read the CPU affinity of this process: {0}")]
    Affinity(std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_takes_about_45_seconds_and_quick_about_4_5() {
        assert_eq!(Plan::default().runs().len(), 4 * 4 * 7);
        assert_eq!(Plan::default().duration(), Duration::from_micros(44_800_000));
        assert_eq!(Plan::quick().duration(), Duration::from_micros(4_480_000));
        Plan::default().check().unwrap();
        Plan::quick().check().unwrap();
    }

    #[test]
    fn packet_series_share_one_run_and_doubles_count_once() {
        let plan = Plan {
            what: vec![
                SeriesKind::PacketReceive,
                SeriesKind::PacketSend,
                SeriesKind::PacketSend,
            ],
            loads: vec![Load::Io],
            sched: vec![Sched::FIFO_LOCKED; 2],
            ..Plan::default()
        };
        assert_eq!(plan.runs(), [(Load::Io, Run::Packet, Sched::FIFO_LOCKED)]);
    }

    #[test]
    fn numbers_out_of_range_are_refused_by_name() {
        let cases = [
            (
                Plan {
                    samples: 0,
                    ..Plan::default()
                },
                "samples is 0, but must be 1 to 1000000",
            ),
            (
                Plan {
                    samples: 1_000_001,
                    ..Plan::default()
                },
                "samples is 1000001",
            ),
            (
                Plan {
                    period_us: 99,
                    ..Plan::default()
                },
                "period_us is 99",
            ),
            (
                Plan {
                    priority: 0,
                    ..Plan::default()
                },
                "priority is 0",
            ),
            (
                Plan {
                    priority: 100,
                    ..Plan::default()
                },
                "priority is 100",
            ),
            (
                Plan {
                    frame_octets: 59,
                    ..Plan::default()
                },
                "frame_octets is 59",
            ),
            (
                Plan {
                    file_octets: 5,
                    ..Plan::default()
                },
                "file_octets is 5",
            ),
            (
                Plan {
                    budget: Duration::MAX,
                    ..Plan::default()
                },
                "budget (in seconds)",
            ),
            (
                Plan {
                    cpus: Some(Cpus {
                        measured: 5000,
                        helper: 0,
                    }),
                    ..Plan::default()
                },
                "CPU 5000 is not open",
            ),
        ];
        for (plan, wanted) in cases {
            let message = plan.check().unwrap_err().to_string();
            assert!(message.starts_with(wanted), "{message}");
        }
    }

    #[test]
    fn isolated_cpus_come_first_and_two_cpus_are_better_than_one() {
        assert_eq!(
            choose(&[0, 1, 2, 3], &[]),
            Cpus {
                measured: 3,
                helper: 2
            }
        );
        assert_eq!(
            choose(&[0, 1, 2, 3], &[1]),
            Cpus {
                measured: 1,
                helper: 3
            }
        );
        assert_eq!(
            choose(&[0, 1, 2, 3], &[1, 2]),
            Cpus {
                measured: 2,
                helper: 1
            }
        );
        assert_eq!(
            choose(&[5], &[9]),
            Cpus {
                measured: 5,
                helper: 5
            }
        );
    }
}
