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
mod environment;
mod link;
mod load;
mod pace;
mod packet;
mod plan;
mod thread;
mod timers;
mod veth;
mod wake;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

pub use counters::Rates;
pub use environment::{Environment, Preemption, environment};
use link::Link;
pub use link::PacketPath;
use load::Running;
pub use load::{LoadReport, Work};
use pace::{Halt, monotonic_ns};
use plan::Run;
pub use plan::{Cpus, Load, Mechanism, Plan, PlanError, SeriesKind};
use thread::{MemoryLock, Seat};

use crate::sys;

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
    /// Whether with `SCHED_FIFO`, and with locked memory unless [`Part::MemoryLock`] was left out.
    pub realtime: bool,
    /// The samples in the order taken, ns. In the three packet series of one load and `realtime` the same index is the
    /// same frame.
    pub samples_ns: Vec<u64>,
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
    /// All series with `realtime`.
    Realtime,
    /// Locking memory in the series with `realtime`; they were measured without.
    MemoryLock,
    /// The veth pair; frames were measured over something lesser, see [`Measurement::packet_path`].
    Veth,
    /// Packet sockets; frames were measured with UDP sockets.
    PacketSocket,
    /// All packet series.
    Packets,
    /// All series under one load.
    Load(Load),
    /// One series.
    Series(SeriesKind, Load, bool),
    /// All series of the plan that are not in [`Measurement::results`] and not named elsewhere in the list.
    Rest,
}

impl Part {
    /// Whether the series of this kind, load and `realtime` can be missing because of it.
    pub fn covers(self, kind: SeriesKind, load: Load, realtime: bool) -> bool {
        match self {
            Self::Realtime => realtime,
            Self::MemoryLock | Self::Veth | Self::PacketSocket => false,
            Self::Packets => kind.run() == Run::Packet,
            Self::Load(of) => of == load,
            Self::Series(of, under, with) => (of, under, with) == (kind, load, realtime),
            Self::Rest => true,
        }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Realtime => f.write_str("everything with SCHED_FIFO"),
            Self::MemoryLock => f.write_str("locked memory"),
            Self::Veth => f.write_str("frames over a veth pair"),
            Self::PacketSocket => f.write_str("frames through packet sockets"),
            Self::Packets => f.write_str("frames"),
            Self::Load(load) => write!(f, "everything under {load} load"),
            Self::Series(kind, load, realtime) => {
                write!(
                    f,
                    "{kind} under {load} load{}",
                    if *realtime { " with SCHED_FIFO" } else { "" }
                )
            }
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
    let measurement = Measurement {
        environment: environment(),
        cpus,
        packet_path: None,
        results: Vec::new(),
        load_reports: Vec::new(),
        left_out: Vec::new(),
    };
    let mut session = Session {
        plan,
        halt,
        measurement,
        link: None,
    };
    session.carry_out(progress);
    Ok(session.measurement)
}

/// A plan being carried out.
struct Session<'a> {
    plan: &'a Plan,
    halt: Halt<'a>,
    measurement: Measurement,
    link: Option<Link>,
}

impl Session<'_> {
    fn carry_out(&mut self, progress: &dyn Progress) {
        let mut runs = self.plan.runs();
        if runs.iter().any(|&(.., realtime)| realtime) && !self.may_be_realtime() {
            runs.retain(|&(.., realtime)| !realtime);
        }
        if runs.iter().any(|&(_, run, _)| run == Run::Packet) && !self.open_link() {
            runs.retain(|&(_, run, _)| run != Run::Packet);
        }
        let (total, mut step) = (runs.len(), 0);
        for of_one_load in runs.chunk_by(|a, b| a.0 == b.0) {
            let load = of_one_load[0].0;
            if self.out_of_time() {
                break;
            }
            progress.step(step, total, &format!("starting {load} load"));
            match Running::start(load, self.plan, self.halt) {
                Ok(running) => {
                    for (index, &(_, run, realtime)) in of_one_load.iter().enumerate() {
                        if self.out_of_time() {
                            break;
                        }
                        progress.step(step + index, total, &label(run, load, realtime));
                        self.run(load, run, realtime);
                    }
                    self.measurement.load_reports.push(running.finish());
                }
                Err(error) => self.leave_out(Part::Load(load), &error, None, ""),
            }
            step += of_one_load.len();
        }
        progress.step(total, total, "done");
        self.account_for_the_rest();
    }

    /// One run, its series added to the results.
    fn run(&mut self, load: Load, run: Run, realtime: bool) {
        let Plan {
            samples,
            period_us,
            spin_us,
            frame_octets,
            ..
        } = *self.plan;
        let (period_ns, halt) = (u64::from(period_us) * 1000, self.halt);
        let _unlock = realtime.then(MemoryLock::new);
        let seat = |cpu| Seat {
            cpu,
            fifo: realtime.then_some(self.plan.priority),
        };
        let measured = seat(self.measurement.cpus.measured);
        let helper = seat(self.measurement.cpus.helper);
        let one = |result: io::Result<Samples>, kind| result.map(|samples| vec![(kind, samples)]);
        let result = match run {
            Run::Timer(how) => one(
                timers::lateness(measured, how, samples, period_ns, u64::from(spin_us) * 1000, halt),
                SeriesKind::Timer(how),
            ),
            Run::WakeEventfd => one(
                wake::by_eventfd(measured, helper, samples, period_ns, halt),
                SeriesKind::WakeEventfd,
            ),
            Run::WakePipe => one(
                wake::by_pipe(measured, helper, samples, period_ns, halt),
                SeriesKind::WakePipe,
            ),
            Run::Packet => {
                let Some(link) = &self.link else { return };
                packet::exchange(link, measured, helper, frame_octets, samples, period_ns, halt).map(
                    |exchange| {
                        vec![
                            (SeriesKind::PacketSend, exchange.send),
                            (SeriesKind::PacketTransit, exchange.transit),
                            (SeriesKind::PacketReceive, exchange.receive),
                        ]
                    },
                )
            }
        };
        match result {
            Ok(series) => {
                let wanted = series
                    .into_iter()
                    .filter(|(kind, _)| self.plan.what.contains(kind));
                self.measurement
                    .results
                    .extend(wanted.map(|(what, samples)| Series {
                        what,
                        load,
                        realtime,
                        samples_ns: samples.ns,
                        interrupted: samples.interrupted,
                    }));
            }
            Err(error) => {
                for kind in SeriesKind::ALL.into_iter().filter(|kind| kind.run() == run) {
                    if self.plan.what.contains(&kind) {
                        self.leave_out(Part::Series(kind, load, realtime), &error, None, "");
                    }
                }
            }
        }
    }

    /// Whether `SCHED_FIFO` is to be had. Also tells whether memory can be locked.
    fn may_be_realtime(&mut self) -> bool {
        let priority = self.plan.priority;
        let tried = std::thread::scope(|scope| {
            scope
                .spawn(|| sys::set_scheduler(Some(priority)))
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        if let Err(error) = tried {
            self.leave_out(
                Part::Realtime,
                &error,
                Some("CAP_SYS_NICE"),
                "run as root, give the program the capability (setcap cap_sys_nice+ep), or raise rtprio in \
                 /etc/security/limits.conf; in a control group, give it a real-time budget (cpu.rt_runtime_us)",
            );
            return false;
        }
        if let Err(error) = MemoryLock::probe() {
            self.leave_out(
                Part::MemoryLock,
                &error,
                Some("CAP_IPC_LOCK"),
                "run as root, give the program the capability (setcap cap_ipc_lock+ep), or raise memlock in \
                 /etc/security/limits.conf",
            );
        }
        true
    }

    /// Opens what frames are measured over; false if there is nothing.
    fn open_link(&mut self) -> bool {
        let opened = Link::open(&mut self.measurement.left_out).and_then(|link| {
            link.stamp_arrivals(self.halt)?;
            Ok(link)
        });
        match opened {
            Ok(link) => {
                self.measurement.packet_path = Some(link.path);
                self.link = Some(link);
                true
            }
            Err(error) => {
                self.leave_out(Part::Packets, &error, None, "");
                false
            }
        }
    }

    fn out_of_time(&self) -> bool {
        self.halt.reached(monotonic_ns())
    }

    /// Names what a stop or the end of the budget has cost.
    fn account_for_the_rest(&mut self) {
        let Measurement {
            results, left_out, ..
        } = &self.measurement;
        let known = |kind, load, realtime| {
            results
                .iter()
                .any(|series| (series.what, series.load, series.realtime) == (kind, load, realtime))
                || left_out.iter().any(|left| left.part.covers(kind, load, realtime))
        };
        let Plan {
            what,
            loads,
            realtime,
            ..
        } = self.plan;
        let missing = loads.iter().any(|&load| {
            what.iter()
                .any(|&kind| realtime.iter().any(|&with| !known(kind, load, with)))
        });
        if missing && self.halt.stop.load(Ordering::Relaxed) {
            self.leave_out(Part::Rest, &"stopped", None, "");
        } else if missing {
            let why = format!(
                "the time budget of {} s was spent",
                self.plan.budget.as_secs_f32()
            );
            self.leave_out(
                Part::Rest,
                &why,
                None,
                "allow more time, or ask for fewer samples",
            );
        }
    }

    fn leave_out(
        &mut self,
        part: Part,
        why: &dyn std::fmt::Display,
        missing: Option<&'static str>,
        remedy: &str,
    ) {
        self.measurement.left_out.push(LeftOut {
            part,
            why: why.to_string(),
            missing,
            remedy: remedy.into(),
        });
    }
}

fn label(run: Run, load: Load, realtime: bool) -> String {
    let what = match run {
        Run::Timer(how) => SeriesKind::Timer(how).name(),
        Run::Packet => "packet",
        Run::WakeEventfd => SeriesKind::WakeEventfd.name(),
        Run::WakePipe => SeriesKind::WakePipe.name(),
    };
    format!("{what}, {load}{}", if realtime { ", SCHED_FIFO" } else { "" })
}

/// The samples of one series as a measuring thread returns them.
#[derive(Debug)]
struct Samples {
    ns: Vec<u64>,
    interrupted: bool,
}
