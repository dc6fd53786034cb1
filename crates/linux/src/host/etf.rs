//! Lateness of frames that the kernel sends at a time of departure (`SO_TXTIME`), by the queueing discipline etf of a
//! veth pair. The deadline is when etf is to let the frame go; the sample is the kernel's stamp when the driver of the pair takes it. (At the
//! other end Linux 6.1 takes the time of departure for the stamp, which a frame keeps through the pair.)

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::link::Frame;
use super::pace::{Halt, Pace, monotonic_ns, sleep_until, touched_buffer};
use super::packet::{ClockOffset, clock_was_set};
use super::thread::Seat;
use super::{Samples, veth};
use crate::clock::tai_offset_ns;
use crate::sys::packet;

/// How long before its time of departure etf lets a frame go. A frame that is later than this is dropped.
const LEAD_NS: u64 = 200_000;
/// How long before its deadline a frame is handed over.
const AHEAD_NS: u64 = 3_000_000;
/// How long the last frames may take.
const PATIENCE_NS: u64 = 100_000_000;
/// How long the kernel may take to switch stamps on and the pair to come up.
const SETTLING_NS: u64 = 50_000_000;

/// Hands over `samples` frames, one in each period, and tells how late those that went were let go.
pub(super) fn lateness(
    seat: Seat,
    samples: usize,
    pace: impl Fn(u64) -> Pace + Send,
    halt: Halt<'_>,
) -> io::Result<Samples> {
    let [tx, _other] = veth::pair_with_etf(LEAD_NS as u32).map_err(io::Error::other)?;
    packet::bind_packet(tx.as_fd(), veth::ENDS[0], 0)?;
    packet::enable_departure_times(tx.as_fd())?;
    packet::enable_transmit_stamps(tx.as_fd())?;
    let clock = ClockOffset::read();
    let mut taken = Taken {
        frame: Frame::new(60),
        tx,
        realtime_ns: clock.offset_ns,
        deadlines: touched_buffer(samples),
        ns: touched_buffer(samples),
        numbers: touched_buffer(samples),
    };
    let tai_ns = clock.offset_ns + tai_offset_ns() as i64;
    let taken = seat.run(move || {
        let mut pace = pace(monotonic_ns() + SETTLING_NS + AHEAD_NS);
        while taken.deadlines.len() < samples {
            if halt.reached(monotonic_ns()) {
                break;
            }
            let deadline_ns = pace.next_deadline();
            sleep_until(deadline_ns - AHEAD_NS);
            taken.receive(false)?;
            let frame = taken.frame.numbered(taken.deadlines.len() as u64, 0);
            let departure_ns = (deadline_ns + LEAD_NS).saturating_add_signed(tai_ns);
            match packet::send_at(taken.tx.as_fd(), frame, departure_ns) {
                // What the queue refuses is lost.
                Err(error) if error.raw_os_error() != Some(libc::ENOBUFS) => return Err(error),
                _ => taken.deadlines.push(deadline_ns),
            }
        }
        taken.receive(true)?;
        Ok(taken)
    })?;
    if clock.was_set_since() {
        return Err(clock_was_set());
    }
    let sent = taken.deadlines.len();
    if sent > 0 && taken.ns.is_empty() {
        return Err(io::Error::other(
            "etf let no frame go: its clock and ours are not the same",
        ));
    }
    let follows = |pair: &[u64]| pair[1] == pair[0] + 1;
    let gaps = taken
        .numbers
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| !follows(pair));
    Ok(Samples {
        gaps: gaps.map(|(at, _)| at + 1).collect(),
        lost: sent - taken.ns.len(),
        interrupted: sent < samples,
        ns: taken.ns,
    })
}

/// What has been sent and what has gone.
struct Taken {
    frame: Frame,
    tx: OwnedFd,
    /// `CLOCK_REALTIME` less `CLOCK_MONOTONIC`.
    realtime_ns: i64,
    deadlines: Vec<u64>,
    ns: Vec<u64>,
    numbers: Vec<u64>,
}

impl Taken {
    /// Takes what has gone; to the end, or as long as it is worth waiting for, if `all`.
    fn receive(&mut self, all: bool) -> io::Result<()> {
        let until_ns = monotonic_ns() + PATIENCE_NS;
        let mut buffer = [0; 60];
        loop {
            let received = match packet::receive_status(self.tx.as_fd(), &mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(_) if all && self.ns.len() < self.deadlines.len() && monotonic_ns() < until_ns => {
                    sleep_until(monotonic_ns() + 1_000_000);
                    continue;
                }
                Err(_) => return Ok(()),
            };
            let Some((number, _)) = Frame::parse(&buffer[..received.length], self.frame.run()) else {
                continue;
            };
            let (Some(stamp_ns), Some(deadline_ns)) =
                (received.stamp_ns, self.deadlines.get(number as usize))
            else {
                continue;
            };
            let at_ns = stamp_ns.saturating_add_signed(-self.realtime_ns);
            self.ns.push(at_ns.saturating_sub(*deadline_ns));
            self.numbers.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Users of etf, if it is a module of this kernel and loaded.
    fn users() -> Option<u32> {
        let modules = std::fs::read_to_string("/proc/modules").ok()?;
        let line = modules.lines().find_map(|line| line.strip_prefix("sch_etf "))?;
        line.split(' ').nth(1)?.parse().ok()
    }

    /// Here or in the lab: all frames are accounted for, and their stamps are stamps. Else the reason is told. Where the module is
    /// loaded there are numbers, and nobody uses it afterwards.
    #[test]
    fn frames_leave_in_time_or_the_reason_is_told() {
        let stop = AtomicBool::new(false);
        let halt = Halt {
            stop: &stop,
            until_ns: u64::MAX,
        };
        let seat = Seat {
            cpu: super::super::thread::allowed_cpus().unwrap()[0],
            fifo: None,
            locked: false,
        };
        let before = users();
        let over = AtomicBool::new(false);
        let (answer, most) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut most = users();
                while !over.load(Ordering::Relaxed) {
                    most = most.max(users());
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
                most
            });
            let answer = lateness(seat, 200, |now_ns| Pace::steady(now_ns, 1_000_000), halt);
            over.store(true, Ordering::Relaxed);
            (answer, watch.join().unwrap())
        });
        println!("users of sch_etf: {before:?}, then {most:?}");
        let why = match answer {
            Ok(samples) => {
                assert_eq!(samples.ns.len() + samples.lost, 200);
                assert!(!samples.interrupted);
                assert!(samples.ns.iter().any(|ns| *ns != samples.ns[0]), "stamps differ");
                println!("{:?}", samples.ns);
                None
            }
            Err(error) => Some(error.to_string()),
        };
        println!("{why:?}");
        if let Some(why) = &why {
            assert!(why.contains("etf") || why.contains("namespace"), "{why}");
        }
        if let Some(before) = before {
            assert_eq!(why, None, "the kernel has etf");
            assert!(most > Some(before), "it was used");
            // the kernel clears namespaces up in its own time
            let gone = (0..200).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(50));
                users() == Some(before)
            });
            assert!(gone, "a queueing discipline is left behind: {:?} users", users());
        }
    }
}
