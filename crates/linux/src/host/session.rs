//! A plan being carried out: what the user may do, then load by load, run by run.

use std::io;
use std::sync::atomic::Ordering;

use super::kind::{Load, Mechanism, Run, Sched, SeriesKind};
use super::link::Link;
use super::load::Running;
use super::pace::{Halt, Pace, monotonic_ns};
use super::thread::{MemoryLock, Seat};
use super::{
    Cpus, LeftOut, Measurement, Part, Plan, Progress, Samples, Series, environment, etf, packet, timers, wake,
};
use crate::sys;

/// Carries out a plan that has been checked.
pub(super) fn carry_out(plan: &Plan, cpus: Cpus, halt: Halt<'_>, progress: &dyn Progress) -> Measurement {
    let measurement = Measurement {
        environment: environment(),
        cpus,
        packet_path: None,
        results: Vec::new(),
        load_reports: Vec::new(),
        left_out: Vec::new(),
    };
    // The load of timers goes where the measured thread is.
    let plan = &Plan {
        cpus: Some(cpus),
        ..plan.clone()
    };
    let mut session = Session {
        plan,
        halt,
        measurement,
        link: None,
    };
    session.carry_out(progress);
    session.measurement
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
        if runs.iter().any(|&(.., sched)| sched.fifo) && !self.may_be_realtime() {
            runs.retain(|&(.., sched)| !sched.fifo);
        }
        if runs.iter().any(|&(.., sched)| sched.locked) && !self.may_lock() {
            runs.retain(|&(.., sched)| !sched.locked);
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
                    let mut broken = false;
                    for (index, &(_, run, sched)) in of_one_load.iter().enumerate() {
                        if self.out_of_time() {
                            break;
                        }
                        progress.step(step + index, total, &label(run, load, sched));
                        let before = self.measurement.results.len();
                        self.run(load, run, sched);
                        broken = running.is_broken();
                        if broken {
                            self.measurement.results.truncate(before); // Measured without the load, at least in part.
                            break;
                        }
                    }
                    let report = running.finish();
                    if broken {
                        let why = report.failed.as_deref().unwrap_or("a thread of the load ended");
                        self.leave_out(Part::Load(load), &format!("the load failed: {why}"), None, "");
                    }
                    self.measurement.load_reports.push(report);
                }
                Err(error) => self.leave_out(Part::Load(load), &error, None, ""),
            }
            step += of_one_load.len();
        }
        progress.step(total, total, "done");
        self.account_for_the_rest();
    }

    /// One run, its series added to the results.
    fn run(&mut self, load: Load, run: Run, sched: Sched) {
        let Plan {
            samples,
            period_us,
            spin_us,
            frame_octets,
            ..
        } = *self.plan;
        let (period_ns, halt) = (u64::from(period_us) * 1000, self.halt);
        let _unlock = sched.locked.then(MemoryLock::new);
        let seat = |cpu| Seat {
            cpu,
            fifo: sched.fifo.then_some(self.plan.priority),
            locked: sched.locked,
        };
        let measured = seat(self.measurement.cpus.measured);
        let helper = seat(self.measurement.cpus.helper);
        let one = |result: io::Result<Samples>, kind| result.map(|samples| vec![(kind, samples)]);
        let spin_ns = u64::from(spin_us) * 1000;
        let pace = |now_ns| match self.plan.steady {
            true => Pace::steady(now_ns, period_ns),
            false => Pace::new(now_ns, period_ns),
        };
        let result = match run {
            Run::Timer(Mechanism::Etf) => one(
                etf::lateness(measured, samples, pace, halt),
                SeriesKind::Timer(Mechanism::Etf),
            ),
            Run::Timer(how) => one(
                timers::lateness(measured, how, samples, spin_ns, pace, halt),
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
                        sched,
                        samples_ns: samples.ns,
                        gaps: samples.gaps,
                        lost: samples.lost,
                        interrupted: samples.interrupted,
                    }));
            }
            Err(error) => {
                for kind in SeriesKind::ALL.into_iter().filter(|kind| kind.run() == run) {
                    if self.plan.what.contains(&kind) {
                        self.leave_out(Part::Series(kind, load, sched), &error, None, "");
                    }
                }
            }
        }
    }

    /// Whether `SCHED_FIFO` is to be had.
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
        true
    }

    /// Whether memory can be locked.
    fn may_lock(&mut self) -> bool {
        if let Err(error) = MemoryLock::probe() {
            self.leave_out(
                Part::MemoryLock,
                &error,
                Some("CAP_IPC_LOCK"),
                "run as root, give the program the capability (setcap cap_ipc_lock+ep), or raise memlock in \
                 /etc/security/limits.conf",
            );
            return false;
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
        let known = |kind, load, sched| {
            results
                .iter()
                .any(|series| (series.what, series.load, series.sched) == (kind, load, sched))
                || left_out.iter().any(|left| left.part.covers(kind, load, sched))
        };
        let Plan {
            what, loads, sched, ..
        } = self.plan;
        let missing = loads.iter().any(|&load| {
            what.iter()
                .any(|&kind| sched.iter().any(|&sched| !known(kind, load, sched)))
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

fn label(run: Run, load: Load, sched: Sched) -> String {
    let what = match run {
        Run::Timer(how) => SeriesKind::Timer(how).name(),
        Run::Packet => "packet",
        Run::WakeEventfd => SeriesKind::WakeEventfd.name(),
        Run::WakePipe => SeriesKind::WakePipe.name(),
    };
    format!("{what}, {load}, {sched}")
}
