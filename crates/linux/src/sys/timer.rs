//! POSIX timers that send a signal to one thread, or kill the process (timer_create(2)), and epoll's timeouts in nanoseconds.
#![allow(unsafe_code)] // The kernel interface itself; see the SAFETY reason at each block.

use std::io;
use std::marker::PhantomData;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{null, null_mut};
use std::time::Duration;

/// A timer of the kernel on `CLOCK_MONOTONIC`, as long as this lives.
#[derive(Debug)]
struct Timer(libc::timer_t);

impl Timer {
    /// One that does this at its time, not armed.
    fn new(mut event: libc::sigevent) -> io::Result<Self> {
        let mut id: libc::timer_t = null_mut();
        // SAFETY: `event` is live and only read, `id` is live and written.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut id) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(id))
    }

    /// Arms it for once, in place of an earlier time. `flags`: 0, or `TIMER_ABSTIME`.
    fn arm(&self, flags: libc::c_int, ns: u64) -> io::Result<()> {
        let once = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: (ns / 1_000_000_000) as _,
                tv_nsec: (ns % 1_000_000_000) as _,
            },
        };
        // SAFETY: the timer is live until it is dropped; `once` is live and only read; the old value is not asked for.
        if unsafe { libc::timer_settime(self.0, flags, &raw const once, null_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is live, and used no more.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// How a timer says that its time has come, with this signal.
fn event(notify: libc::c_int, signal: libc::c_int) -> libc::sigevent {
    // SAFETY: `sigevent` is integers and a pointer, for which all-zero octets are a valid value.
    let mut event: libc::sigevent = unsafe { zeroed() };
    event.sigev_notify = notify;
    event.sigev_signo = signal;
    event
}

/// A timer on `CLOCK_MONOTONIC` whose signal goes to the thread that made it, which keeps that signal blocked from then
/// on and waits for it.
#[derive(Debug)]
pub struct PosixTimer {
    timer: Timer,
    /// The signal was blocked in this thread, and no other may wait for it.
    _thread: PhantomData<*const ()>,
}

/// The first real-time signal that the C library leaves to programs: unlike others it is queued, not merged.
fn signal() -> libc::c_int {
    libc::SIGRTMIN()
}

fn only_it() -> libc::sigset_t {
    // SAFETY: a signal set is plain integers; sigemptyset then makes it an empty one in any case.
    let mut set: libc::sigset_t = unsafe { zeroed() };
    // SAFETY: `set` is live, and the signal is one that exists.
    unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal());
    }
    set
}

impl PosixTimer {
    /// A timer for the calling thread, not armed.
    ///
    /// # Errors
    /// `EAGAIN` if there are too many, `ENOSYS` of a kernel without CONFIG_POSIX_TIMERS.
    pub fn new() -> io::Result<Self> {
        let set = only_it();
        // SAFETY: `set` is live and only read; the old mask is not asked for.
        let refused = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, null_mut()) };
        if refused != 0 {
            return Err(io::Error::from_raw_os_error(refused));
        }
        let mut event = event(libc::SIGEV_THREAD_ID, signal());
        // SAFETY: always sound.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        Ok(Self {
            timer: Timer::new(event)?,
            _thread: PhantomData,
        })
    }

    /// Arms the timer for an absolute time and waits for its signal, or for any other that has a handler. The signal
    /// of an earlier time may end the wait, too: look at the clock.
    ///
    /// # Errors
    /// None that a live timer has.
    pub fn wait(&self, deadline_ns: u64) -> io::Result<()> {
        self.timer.arm(libc::TIMER_ABSTIME, deadline_ns)?;
        let set = only_it();
        // SAFETY: `set` is live and only read; what the signal says is not asked for.
        if unsafe { libc::sigtimedwait(&raw const set, null_mut(), null()) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// A timer on `CLOCK_MONOTONIC` whose signal is SIGKILL. The kernel sends it without any help of this process, which may be
/// stopped.
#[derive(Debug)]
pub struct Fuse(Timer);

impl Fuse {
    /// Of this process, not yet wound up.
    ///
    /// # Errors
    /// As [`PosixTimer::new`].
    pub fn new() -> io::Result<Self> {
        Timer::new(event(libc::SIGEV_SIGNAL, libc::SIGKILL)).map(Self)
    }

    /// From now on the process has so long to live, unless this is called again.
    ///
    /// # Errors
    /// None that a live timer has.
    pub fn wind(&self, rest: Duration) -> io::Result<()> {
        self.0.arm(0, rest.as_nanos() as u64)
    }
}

/// Waits so long for an epoll that watches nothing, or until a signal comes (epoll_pwait2(2)). rustix would round the
/// timeout up to whole milliseconds.
///
/// # Errors
/// `ENOSYS` before Linux 5.11.
pub fn epoll_nothing(epoll: BorrowedFd<'_>, ns: u64) -> io::Result<()> {
    // The kernel's own form of a time, 64 bits each on every machine.
    let timeout = [(ns / 1_000_000_000) as i64, (ns % 1_000_000_000) as i64];
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: `event` is live and has room for the one event that is asked for; `timeout` is live and only read; the mask
    // of signals is not given.
    let rc = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll.as_raw_fd(),
            &raw mut event,
            1,
            timeout.as_ptr(),
            null::<libc::sigset_t>(),
            0,
        )
    };
    match io::Error::last_os_error() {
        error if rc < 0 && error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}
