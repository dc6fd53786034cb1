//! How the host waits for whatever comes first: a packet or a time.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use crate::clock::{monotonic_ns, timespec};

/// What [`Waiter::look`] tells of at once, at most.
const AT_ONCE: usize = 32;
/// The name of what has none: the timer, and what only ends a rest.
const UNNAMED: u64 = u64::MAX;

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Not at all: ask again and again. Needs a CPU for itself; in a virtual machine whose time stands still
    /// while its CPU is busy, time would never come.
    Spin,
    /// `ppoll` with a timeout. Linux may be late by the timer slack of the thread, 50 us unless it was changed or
    /// the thread is `SCHED_FIFO` (timerslack in prctl(2)). By more than that it would be: to a timeout of an ordinary thread it adds a
    /// thousandth, so a thousandth less is asked for.
    Sleep,
    /// `ppoll` with a timerfd among its descriptors, which has no slack.
    #[default]
    Timerfd,
}

/// What waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    wait: Wait,
    /// Ready when one of the descriptors is.
    any: OwnedFd,
    timer: Option<OwnedFd>,
    /// What the timer is set to, ns.
    armed_ns: Option<u64>,
}

impl Waiter {
    pub fn new(wait: Wait) -> io::Result<Waiter> {
        let mut waiter = Waiter {
            wait,
            any: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            timer: None,
            armed_ns: None,
        };
        if wait == Wait::Timerfd {
            let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
            waiter.add(timer.as_fd())?;
            waiter.timer = Some(timer);
        }
        Ok(waiter)
    }

    /// Looks at this descriptor, too, for as long as it is open.
    pub fn add(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.add_as(descriptor, UNNAMED)
    }

    /// The same, with the name by which [`Waiter::look`] tells of it.
    pub fn add_as(&self, descriptor: BorrowedFd<'_>, name: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(name);
        Ok(epoll::add(&self.any, descriptor, data, epoll::EventFlags::IN)?)
    }

    /// The same without a name, for a descriptor that stays readable: what counts is each time that something comes. A
    /// [`look`](Self::look) after a rest takes note of it.
    pub fn add_edges(&self, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        let data = epoll::EventData::new_u64(UNNAMED);
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        Ok(epoll::add(&self.any, descriptor, data, edges)?)
    }

    /// Tells the names of the descriptors that have something to read, an error or a hangup, without waiting; of
    /// more than [`AT_ONCE`] only some. One call for all of them, where reading each to find out would be one call
    /// for each; and a read that finds nothing costs a microsecond of time in User-Mode Linux, where all stations
    /// share it. Does not allocate.
    pub fn look(&self, mut told: impl FnMut(u64)) -> io::Result<()> {
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; AT_ONCE];
        let (ready, _) = match epoll::wait(&self.any, &mut events[..], Some(&timespec(0))) {
            Ok(found) => found,
            Err(Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        };
        ready.iter().for_each(|event| told(event.data.u64()));
        Ok(())
    }

    /// Waits until `until_ns` on `CLOCK_MONOTONIC` or until one of the descriptors has something to read, an error
    /// or a hangup; or less long, after a signal. Does not allocate.
    pub fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        match (self.wait, &self.timer) {
            (Wait::Spin, _) => {
                std::hint::spin_loop();
                return Ok(());
            }
            (_, None) => return self.sleep(until_ns),
            (_, Some(timer)) => {
                if self.armed_ns != Some(until_ns) {
                    let setting = Itimerspec {
                        it_interval: timespec(0),
                        it_value: timespec(until_ns.max(1)), // Zero would switch it off.
                    };
                    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &setting)?;
                    self.armed_ns = Some(until_ns);
                }
            }
        }
        self.poll(None)?;
        Ok(())
    }

    fn sleep(&self, until_ns: u64) -> io::Result<()> {
        loop {
            let left = until_ns.saturating_sub(monotonic_ns());
            // Without a thousandth of it this is what is left (select_estimate_accuracy in fs/select.c); a thread whose timeouts are
            // exact comes back a few times.
            let timeout = u128::from(left) * 1_000 / 1_001;
            if self.poll(Some(timeout as u64))? || left == 0 {
                return Ok(());
            }
        }
    }

    /// Whether a descriptor is ready, or a signal came, within a time.
    fn poll(&self, timeout_ns: Option<u64>) -> io::Result<bool> {
        let timeout = timeout_ns.map(timespec);
        match poll(&mut [PollFd::new(&self.any, PollFlags::IN)], timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn no_way_of_waiting_ends_before_its_time() {
        for wait in [Wait::Sleep, Wait::Timerfd] {
            let mut waiter = Waiter::new(wait).unwrap();
            let quiet = UdpSocket::bind("127.0.0.1:0").unwrap();
            for after_ns in [0, 300_000, 2_000_000] {
                let until = monotonic_ns() + after_ns;
                waiter.wait(until).unwrap();
                assert!(monotonic_ns() >= until, "{wait:?}");
            }
            waiter.add(quiet.as_fd()).unwrap();
            let until = monotonic_ns() + 300_000;
            waiter.wait(until).unwrap();
            assert!(monotonic_ns() >= until, "{wait:?} with a descriptor");
        }
    }

    /// In the lab's virtual time, where it is always the same: as late as a timerfd and a microsecond at most, however long it waits.
    #[test]
    fn a_sleep_is_as_punctual_as_a_timer() {
        if std::env::var("SDMAC_LAB").as_deref() != Ok("virtual") {
            return eprintln!("skipped: not in the lab in virtual time");
        }
        let seat = crate::wifi::Seat::default();
        std::thread::spawn(move || {
            seat.take().unwrap(); // Without slack, as a host has it.
            for after_ns in [1_000_000, 10_000_000, 1_000_000_000] {
                let late = |wait| {
                    let mut waiter = Waiter::new(wait).unwrap();
                    let until = monotonic_ns() + after_ns;
                    waiter.wait(until).unwrap();
                    monotonic_ns() - until
                };
                let [sleep, timer] = [Wait::Sleep, Wait::Timerfd].map(late);
                assert!(sleep <= timer + 1_024, "{after_ns}: {sleep} {timer}");
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_look_names_those_that_have_something() {
        let waiter = Waiter::new(Wait::Timerfd).unwrap();
        let sockets = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        for (name, socket) in (7..).zip(&sockets) {
            waiter.add_as(socket.as_fd(), name).unwrap();
        }
        let look = || {
            let mut names = Vec::new();
            waiter.look(|name| names.push(name)).unwrap();
            names.sort_unstable();
            names
        };
        assert!(look().is_empty());
        for to in [0, 2] {
            sockets[1]
                .send_to(b"x", sockets[to].local_addr().unwrap())
                .unwrap();
        }
        assert_eq!(look(), [7, 9]);
        assert_eq!(look(), [7, 9], "until it is read");
        sockets[0].recv(&mut [0]).unwrap();
        assert_eq!(look(), [9]);
    }

    #[test]
    fn a_packet_ends_it_at_once() {
        for wait in [Wait::Spin, Wait::Sleep, Wait::Timerfd] {
            let mut waiter = Waiter::new(wait).unwrap();
            let [quiet, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            waiter.add(quiet.as_fd()).unwrap();
            waiter.add(other.as_fd()).unwrap();
            other.send_to(b"x", other.local_addr().unwrap()).unwrap();
            waiter.wait(u64::MAX >> 2).unwrap(); // Without the packet this would take centuries.
            other.recv(&mut [0]).unwrap();
            let until = monotonic_ns() + 1_000;
            while monotonic_ns() < until {
                waiter.wait(until).unwrap();
            }
        }
    }
}
