//! The packet path: from user space into the kernel, across, and out to a waiting thread.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Samples;
use super::link::{Frame, Link};
use super::pace::{Halt, Pace, monotonic_ns, realtime_ns, sleep_until, touched_buffer};
use super::thread::{Partner, Seat, join};

/// The three series of one run. The same index is the same frame in all three.
#[derive(Debug)]
pub(super) struct Exchange {
    pub send: Samples,
    pub transit: Samples,
    pub receive: Samples,
}

/// Sends frames of `frame_octets` from `sender`, one in each period, to a thread blocked at `receiver`, until `samples`
/// have arrived; gives up after twice as many. Arrival stamps must be on.
pub(super) fn exchange(
    link: &Link,
    receiver: Seat,
    sender: Seat,
    frame_octets: usize,
    samples: usize,
    period_ns: u64,
    halt: Halt<'_>,
) -> io::Result<Exchange> {
    link.drain();
    let mut frame = Frame::new(frame_octets);
    let run = frame.run();
    let mut buffer = vec![0; frame_octets];
    // By number of the frame; of what was sent, and of what arrived, in order.
    let attempts = 2 * samples + 100;
    let mut send = touched_buffer(attempts);
    let [mut arrivals, mut transit, mut receive] = [(); 3].map(|()| touched_buffer(samples));
    let arrived = AtomicUsize::new(0);
    let (receiving, sending) = (Partner::new(), Partner::new());
    let (receiving, sending, arrived) = (&receiving, &sending, &arrived);
    let clock_before = ClockOffset::read();

    let (send, (arrivals, transit, receive)) = std::thread::scope(|scope| {
        let (receiver_leaves, sender_leaves) = (receiving.leaves_on_drop(), sending.leaves_on_drop());
        let receiver = receiver.spawn(scope, move || {
            let _leaves = receiver_leaves;
            receiving.is_ready();
            while receive.len() < samples {
                let received = match link.receive(&mut buffer) {
                    Ok(received) => received,
                    Err(error) if is_passing(&error) && !sending.has_left() => continue,
                    Err(error) if is_passing(&error) => break,
                    Err(error) => return Err(error),
                };
                let now_ns = realtime_ns();
                let Some((number, sent_ns)) = Frame::parse(&buffer[..received.length], run) else {
                    continue;
                };
                let stamp_ns = received
                    .stamp_ns
                    .ok_or_else(|| io::Error::other("a frame without its stamp"))?;
                arrivals.push(number);
                transit.push(stamp_ns.checked_sub(sent_ns).ok_or_else(clock_was_set)?);
                receive.push(now_ns.checked_sub(stamp_ns).ok_or_else(clock_was_set)?);
                arrived.store(receive.len(), Ordering::Relaxed);
            }
            Ok((arrivals, transit, receive))
        });
        let sender = sender.spawn(scope, move || {
            let _leaves = sender_leaves;
            if !receiving.wait(halt) {
                return Ok(send);
            }
            let mut pace = Pace::new(monotonic_ns(), period_ns);
            while send.len() < attempts {
                let deadline_ns = pace.next_deadline();
                let now_ns = monotonic_ns();
                if arrived.load(Ordering::Relaxed) == samples || receiving.has_left() || halt.reached(now_ns)
                {
                    break;
                }
                if let Some(end_ns) = pace.rest(now_ns, deadline_ns) {
                    sleep_until(end_ns);
                    continue;
                }
                sleep_until(deadline_ns);
                let octets = frame.numbered(send.len() as u64, realtime_ns());
                let before_ns = monotonic_ns();
                link.send(octets)?; // What finds the queue full is lost, like any other lost frame.
                send.push(monotonic_ns() - before_ns);
            }
            Ok(send)
        });
        io::Result::Ok((join(sender?)?, join(receiver?)?))
    })?;

    if clock_before.was_set_since() {
        return Err(clock_was_set());
    }
    let send = arrivals
        .iter()
        .filter_map(|&number| send.get(number as usize).copied())
        .collect();
    let cut = |ns: Vec<u64>| Samples::of(ns, samples);
    Ok(Exchange {
        send: cut(send),
        transit: cut(transit),
        receive: cut(receive),
    })
}

/// A timeout or a signal.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

pub(super) fn clock_was_set() -> io::Error {
    io::Error::other("the wall clock was set during the measurement; packet stamps use that clock")
}

/// The difference of the two clocks at a time.
pub(super) struct ClockOffset {
    /// `CLOCK_REALTIME` less `CLOCK_MONOTONIC`.
    pub offset_ns: i64,
    read_ns: u64,
}

impl ClockOffset {
    pub fn read() -> Self {
        // Of several readings the quickest was least disturbed.
        let readings = (0..8).map(|_| {
            let before_ns = monotonic_ns();
            let wall_ns = realtime_ns();
            let after_ns = monotonic_ns();
            (
                after_ns - before_ns,
                Self {
                    offset_ns: wall_ns as i64 - before_ns as i64,
                    read_ns: before_ns,
                },
            )
        });
        readings
            .min_by_key(|(took_ns, _)| *took_ns)
            .expect("eight readings")
            .1
    }

    /// Whether the wall clock has jumped. Slewing moves it by 0.05 % at most (adjtimex(2)), twice is allowed.
    pub fn was_set_since(&self) -> bool {
        let now = Self::read();
        let slewed_ns = (now.read_ns - self.read_ns) / 1000;
        now.offset_ns.abs_diff(self.offset_ns) > 1_000_000 + slewed_ns
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
    fn all_three_series_are_whole_and_their_sum_covers_the_way() {
        let stop = AtomicBool::new(false);
        let halt = Halt {
            stop: &stop,
            until_ns: u64::MAX,
        };
        let link = Link::open(&mut Vec::new()).unwrap();
        link.stamp_arrivals(halt).unwrap();
        let (receiver, sender) = seats();
        let exchange = exchange(&link, receiver, sender, 100, 50, 500_000, halt).unwrap();
        for samples in [&exchange.send, &exchange.transit, &exchange.receive] {
            assert_eq!((samples.ns.len(), samples.interrupted), (50, false));
        }
        assert!(
            exchange.send.ns.iter().all(|&ns| ns > 0),
            "a system call takes time"
        );
        let way = exchange
            .transit
            .ns
            .iter()
            .zip(&exchange.receive.ns)
            .map(|(a, b)| a + b);
        assert!(way.min().unwrap() > 0, "a frame takes time");
    }

    #[test]
    fn a_stop_and_a_bad_seat_end_both_threads() {
        let stop = AtomicBool::new(true);
        let halt = Halt {
            stop: &stop,
            until_ns: u64::MAX,
        };
        let link = Link::open(&mut Vec::new()).unwrap();
        let (receiver, sender) = seats();
        let none = exchange(&link, receiver, sender, 100, 50, 500_000, halt).unwrap();
        assert_eq!((none.send.ns.len(), none.send.interrupted), (0, true));
        assert_eq!((none.receive.ns.len(), none.receive.interrupted), (0, true));
        let bad = Seat {
            fifo: Some(200),
            locked: false,
            ..receiver
        }; // No such priority.
        assert!(exchange(&link, bad, sender, 100, 50, 500_000, halt).is_err());
        assert!(exchange(&link, receiver, bad, 100, 50, 500_000, halt).is_err());
    }

    #[test]
    fn a_wall_clock_left_alone_was_not_set() {
        let before = ClockOffset::read();
        sleep_until(monotonic_ns() + 5_000_000);
        assert!(!before.was_set_since());
        let other = ClockOffset {
            offset_ns: before.offset_ns - 3_000_000,
            ..before
        };
        assert!(other.was_set_since());
    }
}
