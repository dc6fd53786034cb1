//! Measures this computer: how late its timers fire, how long frames take into and out of the kernel, and how
//! long a blocked thread takes to wake, each idle and under load, without and with real-time scheduling.
//!
//! [`measure`] carries out a [`Plan`] and returns every sample, in the order taken. Each measurement runs in threads
//! of its own, so nothing of the calling thread is changed. A `SCHED_FIFO` thread leaves its CPU to others for
//! 10 ms in every 110 ms at least, so that it cannot freeze the computer.
//!
//! What a user may not do is not done, and listed in [`Measurement::left_out`].
//!
//! One measurement at a time: two at once measure each other.

mod counters;
pub(crate) mod environment;
mod etf;
mod kind;
mod link;
mod load;
mod pace;
mod packet;
mod plan;
mod session;
mod thread;
mod timers;
mod veth;
mod wake;
mod workers;

use std::sync::atomic::AtomicBool;

pub use counters::Rates;
pub use environment::{EMULATED, Environment, Preemption, environment};
use kind::Run;
pub use kind::{Load, Mechanism, Sched, SeriesKind};
pub use link::PacketPath;
pub use load::{LoadReport, Work};
use pace::{Halt, monotonic_ns};
pub use plan::{Cpus, Plan, PlanError};
pub(crate) use thread::bind_to;

/// All that was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The computer, read before the measurement.
    pub environment: Environment,
    /// The CPUs that the measuring threads were bound to.
    pub cpus: Cpus,
    /// What frames were measured over; `None` if none were.
    pub packet_path: Option<PacketPath>,
    /// The samples.
    pub results: Vec<Series>,
    /// What each load did, and what the kernel counted meanwhile; also for [`Load::Idle`].
    pub load_reports: Vec<LoadReport>,
    /// What is missing, and why.
    pub left_out: Vec<LeftOut>,
}

/// The samples of one kind under one load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    /// What was measured.
    pub what: SeriesKind,
    /// Under which load.
    pub load: Load,
    /// How the measuring threads were scheduled.
    pub sched: Sched,
    /// The samples in the order taken, ns. In the three packet series of one load and `sched` the same index is the
    /// same frame.
    pub samples_ns: Vec<u64>,
    /// Of timers: indices of samples that do not follow the one before by one period, since the thread had to rest or a
    /// frame was lost between. The first sample is not among them.
    pub gaps: Vec<usize>,
    /// Of timers: deadlines without a sample, as etf had dropped the frame.
    pub lost: usize,
    /// Whether there are fewer than the plan asked for: stopped, out of time, or too many frames lost.
    pub interrupted: bool,
}

/// One thing that was not measured, or not as well as it could be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// What.
    pub part: Part,
    /// Why, as the kernel puts it.
    pub why: String,
    /// The capability (capabilities(7)) or kernel feature that was missing, if it was one.
    pub missing: Option<&'static str>,
    /// What the user can do about it; may be empty.
    pub remedy: String,
}

/// What a [`LeftOut`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All series with `SCHED_FIFO`.
    Realtime,
    /// All series with locked memory.
    MemoryLock,
    /// The veth pair; frames were measured over something lesser, see [`Measurement::packet_path`].
    Veth,
    /// Packet sockets; frames were measured with UDP sockets.
    PacketSocket,
    /// All packet series.
    Packets,
    /// All series under one load; if it failed midway, those after that.
    Load(Load),
    /// One series.
    Series(SeriesKind, Load, Sched),
    /// All series of the plan that are not in [`Measurement::results`] and not named elsewhere in the list.
    Rest,
}

impl Part {
    /// Whether the series of this kind, load and scheduling can be missing because of it.
    pub fn covers(self, kind: SeriesKind, load: Load, sched: Sched) -> bool {
        match self {
            Self::Realtime => sched.fifo,
            Self::MemoryLock => sched.locked,
            Self::Veth | Self::PacketSocket => false,
            Self::Packets => kind.run() == Run::Packet,
            Self::Load(of) => of == load,
            Self::Series(of, under, with) => (of, under, with) == (kind, load, sched),
            Self::Rest => true,
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Realtime => f.write_str("everything with SCHED_FIFO"),
            Self::MemoryLock => f.write_str("everything with locked memory"),
            Self::Veth => f.write_str("frames over a veth pair"),
            Self::PacketSocket => f.write_str("frames through packet sockets"),
            Self::Packets => f.write_str("frames"),
            Self::Load(load) => write!(f, "everything under {load} load"),
            Self::Series(kind, load, sched) => write!(f, "{kind} under {load} load, {sched}"),
            Self::Rest => f.write_str("the rest of the plan"),
        }
    }
}

/// Is told how far a measurement is. Called from the thread that called [`measure`], never while samples are taken.
pub trait Progress {
    /// Step `step` of `total`, counted from 0, begins; `label` says what it is. At the end once with
    /// `step == total`.
    fn step(&self, step: usize, total: usize, label: &str);
}

impl<F: Fn(usize, usize, &str)> Progress for F {
    fn step(&self, step: usize, total: usize, label: &str) {
        self(step, total, label);
    }
}

/// Carries out a plan. Takes [`Plan::duration`] and a little more; returns early, with what there is so far, when
/// `stop` is set or the plan's budget is spent. That may take two periods of the plan.
///
/// # Errors
/// Only if the plan is impossible. What cannot be measured is in [`Measurement::left_out`].
pub fn measure(plan: &Plan, progress: &dyn Progress, stop: &AtomicBool) -> Result<Measurement, PlanError> {
    let cpus = plan.check()?;
    let budget_ns = u64::try_from(plan.budget.as_nanos()).unwrap_or(u64::MAX);
    let halt = Halt {
        stop,
        until_ns: monotonic_ns().saturating_add(budget_ns),
    };
    Ok(session::carry_out(plan, cpus, halt, progress))
}

/// Does something while a load runs beside, which ends with it. The load's threads are started by the calling thread and
/// may run where it may.
///
/// # Errors
/// If the load cannot be started; nothing was done then.
pub fn under_load<T>(
    load: Load,
    stop: &AtomicBool,
    body: impl FnOnce() -> T,
) -> std::io::Result<(T, LoadReport)> {
    let halt = Halt {
        stop,
        until_ns: u64::MAX,
    };
    let running = load::Running::start(load, &Plan::default(), halt)?;
    let done = body();
    Ok((done, running.finish()))
}

/// The samples of one series as a measuring thread returns them.
#[derive(Debug)]
struct Samples {
    ns: Vec<u64>,
    gaps: Vec<usize>,
    lost: usize,
    interrupted: bool,
}

impl Samples {
    /// Of `wanted` samples these.
    fn of(ns: Vec<u64>, wanted: usize) -> Self {
        Self {
            interrupted: ns.len() < wanted,
            ns,
            gaps: Vec::new(),
            lost: 0,
        }
    }
}
