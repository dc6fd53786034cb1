//! What to measure: series, loads, sizes and limits.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::thread;

/// How a thread waits for a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// `clock_nanosleep` to an absolute time on `CLOCK_MONOTONIC`, with a timer slack of 1 ns.
    Sleep,
    /// Blocking read of a timerfd armed with an absolute time on `CLOCK_MONOTONIC`.
    Timerfd,
    /// Reading the clock in a loop.
    Spin,
    /// `Sleep` until [`Plan::spin_us`] before the time, then `Spin`.
    Hybrid,
}

/// What the samples of a series are. All are durations in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeriesKind {
    /// From the time asked for to the first clock reading after the wait.
    Timer(Mechanism),
    /// Duration of the `send` call that hands one frame to the kernel (planes t1 to t4 of SDMAC, section III). On a
    /// veth pair and on loopback the call also carries the frame to the receiving socket, which a radio's
    /// driver does not.
    PacketSend,
    /// From just before `send` to the kernel's stamp of the frame's arrival at the other end.
    PacketTransit,
    /// From the kernel's stamp of an arriving frame to the return of the blocking `recvmsg` that waited for it.
    PacketReceive,
    /// From just before a write to an eventfd to the return of another thread's blocking read (planes t8 to t9:
    /// the wake-up of a thread that waits at a character device).
    WakeEventfd,
    /// The same through a pipe.
    WakePipe,
}

impl SeriesKind {
    /// All kinds, in the order in which they are measured.
    pub const ALL: [Self; 9] = [
        Self::Timer(Mechanism::Sleep),
        Self::Timer(Mechanism::Timerfd),
        Self::Timer(Mechanism::Spin),
        Self::Timer(Mechanism::Hybrid),
        Self::PacketSend,
        Self::PacketTransit,
        Self::PacketReceive,
        Self::WakeEventfd,
        Self::WakePipe,
    ];

    /// A name for files and options, such as `timer.sleep`; never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Timer(Mechanism::Sleep) => "timer.sleep",
            Self::Timer(Mechanism::Timerfd) => "timer.timerfd",
            Self::Timer(Mechanism::Spin) => "timer.spin",
            Self::Timer(Mechanism::Hybrid) => "timer.hybrid",
            Self::PacketSend => "packet.send",
            Self::PacketTransit => "packet.transit",
            Self::PacketReceive => "packet.receive",
            Self::WakeEventfd => "wake.eventfd",
            Self::WakePipe => "wake.pipe",
        }
    }

    /// Which run of the computer measures it; the three packet series come from one run.
    pub(super) const fn run(self) -> Run {
        match self {
            Self::Timer(mechanism) => Run::Timer(mechanism),
            Self::PacketSend | Self::PacketTransit | Self::PacketReceive => Run::Packet,
            Self::WakeEventfd => Run::WakeEventfd,
            Self::WakePipe => Run::WakePipe,
        }
    }
}

impl fmt::Display for SeriesKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What else the computer does while it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Load {
    /// Nothing of ours.
    Idle,
    /// One thread on each CPU that only computes.
    Cpu,
    /// One thread that writes 1 MiB blocks to an unnamed file and syncs each to the device.
    Io,
    /// One thread on each CPU that sends frames over a second pair of interfaces, and one that receives them:
    /// soft interrupts, wake-ups and interrupts between CPUs.
    Network,
}

impl Load {
    /// All loads.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Cpu, Self::Io, Self::Network];

    /// A name for files and options; never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Cpu => "cpu",
            Self::Io => "io",
            Self::Network => "network",
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What to measure, and how much of it.
///
/// Every combination of `what`, `loads` and `realtime` is measured for `samples` periods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Samples of each series; 1 to [`Plan::MAX_SAMPLES`].
    pub samples: usize,
    /// Mean time between two samples, µs; 100 to 1,000,000.
    pub period_us: u32,
    /// The series.
    pub what: Vec<SeriesKind>,
    /// The loads, in this order.
    pub loads: Vec<Load>,
    /// Whether without (`false`) and with (`true`) `SCHED_FIFO` and locked memory.
    pub realtime: Vec<bool>,
    /// Priority of `SCHED_FIFO`, 1 to 99. On a PREEMPT_RT kernel interrupt threads have 50.
    pub priority: u8,
    /// How long before its deadline [`Mechanism::Hybrid`] starts to spin, µs.
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
    /// Everything, 400 samples each: about 25 s.
    fn default() -> Self {
        let disk = PathBuf::from("/var/tmp"); // /tmp is often memory.
        Self {
            samples: 400,
            period_us: 1000,
            what: SeriesKind::ALL.to_vec(),
            loads: Load::ALL.to_vec(),
            realtime: vec![false, true],
            priority: 50,
            spin_us: 200,
            frame_octets: 100,
            cpus: None,
            folder: if disk.is_dir() { disk } else { std::env::temp_dir() },
            file_octets: 64 << 20,
            budget: Duration::from_secs(90),
        }
    }
}

impl Plan {
    /// Largest number of samples of a series (8 octets each).
    pub const MAX_SAMPLES: usize = 1_000_000;

    /// Everything, 40 samples each: about 3 s. Enough to see that it works, too little for percentiles.
    pub fn quick() -> Self {
        Self {
            samples: 40,
            budget: Duration::from_secs(20),
            ..Self::default()
        }
    }

    /// How long the plan takes if nothing is left out, without starting the loads (up to 1 s each).
    pub fn duration(&self) -> Duration {
        let periods = (self.runs().len() * self.samples) as u64;
        Duration::from_micros(periods * u64::from(self.period_us))
    }

    /// One run for each step of progress, grouped by load.
    pub(super) fn runs(&self) -> Vec<(Load, Run, bool)> {
        let mut runs = Vec::new();
        for &load in &self.loads {
            for kind in SeriesKind::ALL
                .into_iter()
                .filter(|kind| self.what.contains(kind))
            {
                for &realtime in &self.realtime {
                    let run = (load, kind.run(), realtime);
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
        within("budget (in seconds)", self.budget.as_secs(), 0..=86_400)?;
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

/// One go of the machinery; gives one series or, for packets, three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    Timer(Mechanism),
    Packet,
    WakeEventfd,
    WakePipe,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_takes_about_25_seconds_and_quick_about_3() {
        assert_eq!(Plan::default().runs().len(), 4 * 2 * 7);
        assert_eq!(Plan::default().duration(), Duration::from_micros(22_400_000));
        assert_eq!(Plan::quick().duration(), Duration::from_micros(2_240_000));
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
            realtime: vec![true, true],
            ..Plan::default()
        };
        assert_eq!(plan.runs(), [(Load::Io, Run::Packet, true)]);
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

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = SeriesKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SeriesKind::ALL.len());
    }
}
