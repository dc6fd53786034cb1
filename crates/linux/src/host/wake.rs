//! Wake-up of a blocked thread by another one: how long from the write to the return of the read?

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use super::Samples;
use super::pace::{Halt, Pace, monotonic_ns, sleep_until, touched_buffer};
use super::thread::{Partner, Seat, join};

/// The written time that tells the reader to end; no clock reading is 0.
const END: u64 = 0;

/// Measures `samples` wake-ups of a reader at `reader` by a writer at `writer`, through an eventfd.
pub(super) fn by_eventfd(
    reader: Seat,
    writer: Seat,
    samples: usize,
    period_ns: u64,
    halt: Halt<'_>,
) -> io::Result<Samples> {
    // As a semaphore, each read takes one write, in order, so a late reader still meets every write.
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE)?;
    let channel = Eventfd {
        fd,
        written_ns: (0..samples).map(|_| AtomicU64::new(END)).collect(),
    };
    wake_ups(&channel, reader, writer, samples, period_ns, halt)
}

/// The same through a pipe, whose octets carry the time of the write.
pub(super) fn by_pipe(
    reader: Seat,
    writer: Seat,
    samples: usize,
    period_ns: u64,
    halt: Halt<'_>,
) -> io::Result<Samples> {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    wake_ups(&Pipe { from, to }, reader, writer, samples, period_ns, halt)
}

/// Something that a thread can block on, and that another thread can write a time to.
trait Channel: Sync {
    /// Wakes the reader, telling it that this is write number `index` and was made at `now_ns`.
    fn write(&self, index: usize, now_ns: u64) -> io::Result<()>;
    /// Blocks for write number `index` and returns its time.
    fn read(&self, index: usize) -> io::Result<u64>;
}

struct Eventfd {
    fd: OwnedFd,
    /// Time of each write. A write past the last slot can only be [`END`], which needs none.
    written_ns: Vec<AtomicU64>,
}

impl Channel for Eventfd {
    fn write(&self, index: usize, now_ns: u64) -> io::Result<()> {
        if let Some(slot) = self.written_ns.get(index) {
            slot.store(now_ns, Ordering::Release);
        }
        retry_on_intr(|| write(&self.fd, &1_u64.to_ne_bytes()))?;
        Ok(())
    }

    fn read(&self, index: usize) -> io::Result<u64> {
        retry_on_intr(|| read(&self.fd, &mut [0; 8]))?;
        Ok(self
            .written_ns
            .get(index)
            .map_or(END, |slot| slot.load(Ordering::Acquire)))
    }
}

struct Pipe {
    from: OwnedFd,
    to: OwnedFd,
}

impl Channel for Pipe {
    fn write(&self, _index: usize, now_ns: u64) -> io::Result<()> {
        retry_on_intr(|| write(&self.to, &now_ns.to_ne_bytes()))?;
        Ok(())
    }

    fn read(&self, _index: usize) -> io::Result<u64> {
        let mut octets = [0; 8]; // Writes of up to PIPE_BUF octets are not split (pipe(7)).
        retry_on_intr(|| read(&self.from, &mut octets))?;
        Ok(u64::from_ne_bytes(octets))
    }
}

fn wake_ups(
    channel: &impl Channel,
    reader: Seat,
    writer: Seat,
    samples: usize,
    period_ns: u64,
    halt: Halt<'_>,
) -> io::Result<Samples> {
    let mut ns = touched_buffer(samples);
    let partner = Partner::new();
    let ns = std::thread::scope(|scope| {
        // Both guards act even if their thread cannot start or panics: then neither waits for the other for ever.
        let leaving = partner.leaves_on_drop();
        let end = EndMark { channel, index: 0 };
        let reader = reader.spawn(scope, {
            let partner = &partner;
            move || {
                let _leaving = leaving;
                partner.is_ready();
                while ns.len() < samples {
                    let written_ns = channel.read(ns.len())?;
                    let now_ns = monotonic_ns();
                    if written_ns == END {
                        break;
                    }
                    ns.push(now_ns.saturating_sub(written_ns));
                }
                Ok(ns)
            }
        });
        let writer = writer.spawn(scope, {
            let partner = &partner;
            move || {
                let mut end = end; // All of it, so that it is dropped here; else only its fields move in.
                if !partner.wait(halt) {
                    return Ok(());
                }
                let mut pace = Pace::new(monotonic_ns(), period_ns);
                while end.index < samples && !partner.has_left() {
                    let deadline_ns = pace.next_deadline();
                    let now_ns = monotonic_ns();
                    if halt.reached(now_ns) {
                        break;
                    }
                    if let Some(end_ns) = pace.rest(now_ns, deadline_ns) {
                        sleep_until(end_ns);
                        continue;
                    }
                    sleep_until(deadline_ns);
                    channel.write(end.index, monotonic_ns())?;
                    end.index += 1;
                }
                Ok(())
            }
        });
        join(writer?)?;
        join(reader?)
    })?;
    Ok(Samples::of(ns, samples))
}

/// Tells the reader to end when the writer does, however it ends.
struct EndMark<'a, C: Channel> {
    channel: &'a C,
    index: usize,
}

impl<C: Channel> Drop for EndMark<'_, C> {
    fn drop(&mut self) {
        let _ = self.channel.write(self.index, END); // The descriptors outlive both threads.
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::super::thread::allowed_cpus;
    use super::*;

    fn seats() -> (Seat, Seat) {
        let cpus = allowed_cpus().unwrap();
        let seat = |cpu| Seat {
            cpu,
            fifo: None,
            locked: false,
        };
        (seat(cpus[0]), seat(cpus[cpus.len() - 1]))
    }

    #[test]
    fn both_ways_give_all_samples_and_none_is_free() {
        let stop = AtomicBool::new(false);
        let halt = Halt {
            stop: &stop,
            until_ns: u64::MAX,
        };
        let (reader, writer) = seats();
        for measure in [by_eventfd, by_pipe] {
            let samples = measure(reader, writer, 50, 200_000, halt).unwrap();
            assert_eq!((samples.ns.len(), samples.interrupted), (50, false));
            assert!(
                samples.ns.iter().all(|&ns| ns > 0),
                "a write and a read take time: {:?}",
                samples.ns
            );
            // On one CPU for both threads it works too.
            assert_eq!(measure(reader, reader, 5, 200_000, halt).unwrap().ns.len(), 5);
        }
    }

    #[test]
    fn a_stop_ends_both_threads() {
        let stop = AtomicBool::new(true);
        let halt = Halt {
            stop: &stop,
            until_ns: u64::MAX,
        };
        let (reader, writer) = seats();
        for measure in [by_eventfd, by_pipe] {
            let samples = measure(reader, writer, 50, 200_000, halt).unwrap();
            assert_eq!((samples.ns.len(), samples.interrupted), (0, true));
        }
    }

    #[test]
    fn a_seat_that_cannot_be_taken_is_an_error_and_not_a_deadlock() {
        let stop = AtomicBool::new(false);
        let halt = Halt {
            stop: &stop,
            until_ns: u64::MAX,
        };
        let (good, _) = seats();
        let bad = Seat {
            cpu: good.cpu,
            fifo: Some(200),
            locked: false,
        }; // No such priority.
        for measure in [by_eventfd, by_pipe] {
            assert!(measure(bad, good, 50, 200_000, halt).is_err());
            assert!(measure(good, bad, 50, 200_000, halt).is_err());
        }
    }
}
