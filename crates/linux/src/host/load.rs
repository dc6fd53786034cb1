//! Loads: what keeps the computer busy while it is measured.
//!
//! A load is a handful of threads that count what they do. It is measured under only once every thread's
//! count has grown, and its threads are stopped and joined when it is dropped, also by a panic.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};

use super::counters::{Counters, Rates};
use super::kind::Load;
use super::link::{Link, PacketPath};
use super::pace::{Halt, monotonic_ns, sleep_until};
use super::plan::Plan;
use super::thread::allowed_cpus;
use super::workers::{compute, drain_frames, file_system, flood, wake_and_sleep, write_and_sync};
use crate::sys;

/// How long the threads of a load may take until each has done something.
const START_LIMIT_NS: u64 = 10_000_000_000;

/// What a load did while it ran, and what the kernel counted meanwhile.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadReport {
    /// The load.
    pub load: Load,
    /// Its own work.
    pub work: Work,
    /// What the kernel counted, the measuring itself included.
    pub rates: Rates,
    /// Why a thread of the load ended early, if one did. What was measured after that is not in the results.
    pub failed: Option<String>,
}

/// The work of a load.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// [`Load::Idle`].
    Nothing,
    /// [`Load::Cpu`].
    Computed {
        /// CPU time used, in CPUs: 1.5 is one and a half CPU all the time.
        cpus: f64,
    },
    /// [`Load::Io`].
    Written {
        /// Octets written and synced per second.
        octets_per_s: f64,
        /// Name or number of the file system; on `tmpfs` no device is involved.
        file_system: String,
    },
    /// [`Load::Network`].
    Sent {
        /// Frames sent per second.
        sent_per_s: f64,
        /// Frames that the receiving thread got per second; the rest found its queue full.
        received_per_s: f64,
        /// What they were sent over.
        path: PacketPath,
    },
    /// [`Load::Timers`].
    Woken {
        /// Timers that fired per second.
        per_s: f64,
    },
}

/// A load that is running.
#[derive(Debug)]
pub(super) struct Running {
    load: Load,
    stop: Arc<AtomicBool>,
    workers: Vec<Worker>,
    file_system: String,
    path: PacketPath,
    started: Counters,
}

#[derive(Debug)]
struct Worker {
    done: Arc<AtomicU64>,
    done_at_start: u64,
    thread: JoinHandle<io::Result<()>>,
}

impl Running {
    /// Starts a load and waits until all of it runs.
    pub fn start(load: Load, plan: &Plan, halt: Halt<'_>) -> io::Result<Self> {
        let mut running = Self {
            load,
            stop: Arc::new(AtomicBool::new(false)),
            workers: Vec::new(),
            file_system: String::new(),
            path: PacketPath::Veth,
            started: Counters::default(),
        };
        match load {
            Load::Idle => {}
            Load::Cpu => {
                for cpu in allowed_cpus()? {
                    running.spawn(move |stop, done| compute(cpu, stop, done))?;
                }
            }
            Load::Io => {
                let file = tempfile::tempfile_in(&plan.folder).map_err(|error| {
                    io::Error::new(error.kind(), format!("{}: {error}", plan.folder.display()))
                })?;
                running.file_system = file_system(&plan.folder);
                let octets = plan.file_octets;
                running.spawn(move |stop, done| write_and_sync(&file, octets, stop, done))?;
            }
            Load::Network => {
                // Which better links were refused has been told for the link that is measured.
                let link = Arc::new(Link::open(&mut Vec::new())?);
                running.path = link.path;
                let receiving = Arc::clone(&link);
                running.spawn(move |stop, done| drain_frames(&receiving, stop, done))?;
                for cpu in allowed_cpus()? {
                    let link = Arc::clone(&link);
                    running.spawn(move |stop, done| flood(cpu, &link, stop, done))?;
                }
            }
            Load::Timers => {
                let last = allowed_cpus()?.last().copied().unwrap_or(0);
                let cpu = plan.cpus.map_or(last, |cpus| cpus.measured);
                for period_us in (100..=1000).step_by(100) {
                    running.spawn(move |stop, done| wake_and_sleep(cpu, period_us * 1000, stop, done))?;
                }
            }
        }
        running.wait_for_work(halt)?;
        running.started = Counters::read()?;
        for worker in &mut running.workers {
            worker.done_at_start = worker.done.load(Ordering::Relaxed);
        }
        Ok(running)
    }

    fn spawn(
        &mut self,
        work: impl FnOnce(&AtomicBool, &AtomicU64) -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let done = Arc::new(AtomicU64::new(0));
        let thread = Builder::new().name("sdmac-load".into()).spawn({
            let (stop, done) = (Arc::clone(&self.stop), Arc::clone(&done));
            move || {
                sys::set_scheduler(None)?; // Whatever the starter has.
                work(&stop, &done)
            }
        })?;
        self.workers.push(Worker {
            done,
            done_at_start: 0,
            thread,
        });
        Ok(())
    }

    fn wait_for_work(&mut self, halt: Halt<'_>) -> io::Result<()> {
        let start_ns = monotonic_ns();
        while self
            .workers
            .iter()
            .any(|worker| worker.done.load(Ordering::Relaxed) == 0)
        {
            let now_ns = monotonic_ns();
            if halt.reached(now_ns) {
                break; // The caller will find out by itself.
            }
            if self.is_broken() {
                self.stop();
                return Err(self
                    .join()
                    .unwrap_or_else(|| io::Error::other("a thread of the load ended")));
            }
            if now_ns - start_ns > START_LIMIT_NS {
                return Err(io::Error::other("a thread of the load did nothing for 10 s"));
            }
            sleep_until(now_ns + 1_000_000);
        }
        Ok(())
    }

    /// Whether a thread of the load has ended early.
    pub fn is_broken(&self) -> bool {
        self.workers.iter().any(|worker| worker.thread.is_finished())
    }

    /// Stops the load and tells what it did since it started.
    pub fn finish(mut self) -> LoadReport {
        let done: Vec<u64> = self
            .workers
            .iter()
            .map(|worker| {
                worker
                    .done
                    .load(Ordering::Relaxed)
                    .saturating_sub(worker.done_at_start)
            })
            .collect();
        // Reading the counters worked a moment ago.
        let rates = Counters::read()
            .map(|now| now.since(&self.started))
            .unwrap_or_default();
        let per_s = |counts: &[u64]| counts.iter().sum::<u64>() as f64 / rates.seconds.max(1e-9);
        let work = match (self.load, &done[..]) {
            (Load::Cpu, all) => Work::Computed {
                cpus: per_s(all) / 1e9,
            },
            (Load::Io, all) => Work::Written {
                octets_per_s: per_s(all),
                file_system: std::mem::take(&mut self.file_system),
            },
            (Load::Network, [received, sent @ ..]) => Work::Sent {
                sent_per_s: per_s(sent),
                received_per_s: per_s(&[*received]),
                path: self.path,
            },
            (Load::Timers, all) => Work::Woken { per_s: per_s(all) },
            _ => Work::Nothing,
        };
        self.stop();
        let failed = self.join().map(|error| error.to_string());
        LoadReport {
            load: self.load,
            work,
            rates,
            failed,
        }
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Joins all threads; gives the first error. A panic in a load is a bug of ours, but not worth losing samples.
    fn join(&mut self) -> Option<io::Error> {
        let results = self.workers.drain(..).map(|worker| worker.thread.join());
        let errors = results.filter_map(|result| match result {
            Ok(result) => result.err(),
            Err(_) => Some(io::Error::other("a thread of the load panicked")),
        });
        errors.reduce(|first, _| first)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        self.join();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn plan(folder: &Path) -> Plan {
        Plan {
            folder: folder.into(),
            file_octets: 2 << 20,
            ..Plan::default()
        }
    }

    fn run_for_a_while(load: Load, plan: &Plan) -> LoadReport {
        let stop = AtomicBool::new(false);
        let running = Running::start(
            load,
            plan,
            Halt {
                stop: &stop,
                until_ns: u64::MAX,
            },
        )
        .unwrap();
        sleep_until(monotonic_ns() + 300_000_000);
        running.finish()
    }

    #[test]
    fn each_load_works_and_says_how_much() {
        let folder = tempfile::tempdir().unwrap();
        for load in Load::ALL {
            let report = run_for_a_while(load, &plan(folder.path()));
            assert_eq!(report.failed, None, "{load}");
            let worked = match report.work {
                Work::Nothing => load == Load::Idle,
                Work::Computed { cpus } => cpus > 0.0 && cpus < allowed_cpus().unwrap().len() as f64 + 0.5,
                Work::Written { octets_per_s, .. } => octets_per_s > 0.0,
                Work::Sent {
                    sent_per_s,
                    received_per_s,
                    ..
                } => sent_per_s > 0.0 && received_per_s > 0.0,
                Work::Woken { per_s } => per_s > 100.0 && per_s < 40_000.0,
            };
            assert!(worked, "{report:?}");
        }
    }

    #[test]
    fn the_file_has_no_name_and_does_not_outgrow_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let stop = AtomicBool::new(false);
        let halt = Halt {
            stop: &stop,
            until_ns: u64::MAX,
        };
        let running = Running::start(Load::Io, &plan(folder.path()), halt).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(running);
        let file = Arc::new(tempfile::tempfile_in(folder.path()).unwrap());
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let writer = std::thread::spawn({
            let (file, stop, written) = (Arc::clone(&file), Arc::clone(&stop), Arc::clone(&written));
            move || write_and_sync(&file, 2 << 20, &stop, &written)
        });
        while written.load(Ordering::Relaxed) < 5 << 20 && !writer.is_finished() {
            sleep_until(monotonic_ns() + 1_000_000);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap().unwrap();
        assert_eq!(file.metadata().unwrap().len(), 2 << 20);
    }

    #[test]
    fn a_panic_stops_and_joins_every_thread() {
        let folder = tempfile::tempdir().unwrap();
        for load in Load::ALL {
            let (stop, plan) = (AtomicBool::new(false), plan(folder.path()));
            let mut held_by_threads = std::sync::Weak::new();
            let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let running = Running::start(
                    load,
                    &plan,
                    Halt {
                        stop: &stop,
                        until_ns: u64::MAX,
                    },
                )
                .unwrap();
                held_by_threads = Arc::downgrade(&running.stop);
                std::panic::resume_unwind(Box::new("a bug elsewhere")); // Without the message of panic!.
            }));
            assert!(unwound.is_err());
            assert!(
                held_by_threads.upgrade().is_none(),
                "{load}: a thread still has the flag"
            );
        }
    }

    #[test]
    fn a_thread_that_fails_later_breaks_the_load() {
        let stop = AtomicBool::new(false);
        let mut running = Running::start(
            Load::Idle,
            &Plan::default(),
            Halt {
                stop: &stop,
                until_ns: u64::MAX,
            },
        )
        .unwrap();
        assert!(!running.is_broken());
        running
            .spawn(|_, _| Err(io::Error::other("the disk is full")))
            .unwrap();
        while !running.is_broken() {
            sleep_until(monotonic_ns() + 1_000_000);
        }
        assert_eq!(running.finish().failed.as_deref(), Some("the disk is full"));
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let stop = AtomicBool::new(false);
        let plan = plan(Path::new("/no/such/folder"));
        let error = Running::start(
            Load::Io,
            &plan,
            Halt {
                stop: &stop,
                until_ns: u64::MAX,
            },
        )
        .unwrap_err();
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    }
}
