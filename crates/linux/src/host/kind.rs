//! What can be measured, and under which loads.

use std::fmt;

/// How a thread waits for a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mechanism {
    /// `clock_nanosleep` to an absolute time on `CLOCK_MONOTONIC`, with a timer slack of 1 ns.
    Sleep,
    /// Blocking read of a timerfd armed with an absolute time on `CLOCK_MONOTONIC`.
    Timerfd,
    /// A POSIX timer (timer_create(2)) that sends this thread a signal at an absolute time on `CLOCK_MONOTONIC`, and
    /// `sigwaitinfo` for it.
    Posix,
    /// `epoll_pwait2` on nothing, with the time that is left as its timeout (ns, relative).
    Epoll,
    /// Reading the clock in a loop.
    Spin,
    /// `Sleep` until [`Plan::spin_us`](super::Plan::spin_us) before the time, then `Spin`.
    Hybrid,
    /// A frame with its time of departure (`SO_TXTIME`), held by the queueing discipline etf (tc-etf(8)) of a veth pair:
    /// no thread wakes, the kernel sends.
    Etf,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: [Self; 7] = [
        Self::Sleep,
        Self::Timerfd,
        Self::Posix,
        Self::Epoll,
        Self::Spin,
        Self::Hybrid,
        Self::Etf,
    ];
}

/// What the samples of a series are. All are durations in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SeriesKind {
    /// From the time asked for to the first clock reading after the wait; with [`Mechanism::Etf`] to the stamp of the
    /// frame's arrival at the other end.
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
    pub const ALL: [Self; 12] = [
        Self::Timer(Mechanism::Sleep),
        Self::Timer(Mechanism::Timerfd),
        Self::Timer(Mechanism::Posix),
        Self::Timer(Mechanism::Epoll),
        Self::Timer(Mechanism::Spin),
        Self::Timer(Mechanism::Hybrid),
        Self::Timer(Mechanism::Etf),
        Self::PacketSend,
        Self::PacketTransit,
        Self::PacketReceive,
        Self::WakeEventfd,
        Self::WakePipe,
    ];
    /// What tells one computer from another; the other timers are for a study of timers.
    pub const COMPUTER: [Self; 9] = [
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
            Self::Timer(Mechanism::Posix) => "timer.posix",
            Self::Timer(Mechanism::Epoll) => "timer.epoll",
            Self::Timer(Mechanism::Spin) => "timer.spin",
            Self::Timer(Mechanism::Hybrid) => "timer.hybrid",
            Self::Timer(Mechanism::Etf) => "timer.etf",
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

/// How a measuring thread is scheduled, and whether the memory of the process is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sched {
    /// `SCHED_FIFO` with [`Plan::priority`](super::Plan::priority); else `SCHED_OTHER`.
    pub fifo: bool,
    /// mlockall(2) on all that is mapped when the measuring thread starts.
    pub locked: bool,
}

impl Sched {
    /// All four, from the least to the most determinate.
    pub const ALL: [Self; 4] = [
        Self::OTHER,
        Self {
            fifo: false,
            locked: true,
        },
        Self {
            fifo: true,
            locked: false,
        },
        Self::FIFO_LOCKED,
    ];
    /// Ordinary scheduling, nothing locked.
    pub const OTHER: Self = Self {
        fifo: false,
        locked: false,
    };
    /// Both.
    pub const FIFO_LOCKED: Self = Self {
        fifo: true,
        locked: true,
    };

    /// A name for tables and options; never changes.
    pub const fn name(self) -> &'static str {
        match (self.fifo, self.locked) {
            (false, false) => "other",
            (false, true) => "other+mlock",
            (true, false) => "fifo",
            (true, true) => "fifo+mlock",
        }
    }
}

impl fmt::Display for Sched {
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
    /// Ten threads on the CPU of the measured thread, woken every 100, 200, ... 1000 us: 29,290 timers a second.
    Timers,
}

impl Load {
    /// All loads.
    pub const ALL: [Self; 5] = [Self::Idle, Self::Cpu, Self::Io, Self::Network, Self::Timers];
    /// Those under which computers are compared; the other is for a study of timers.
    pub const COMPUTER: [Self; 4] = [Self::Idle, Self::Cpu, Self::Io, Self::Network];

    /// A name for files and options; never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Cpu => "cpu",
            Self::Io => "io",
            Self::Network => "network",
            Self::Timers => "timers",
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
    fn names_are_distinct() {
        let mut names: Vec<_> = SeriesKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SeriesKind::ALL.len());
        assert_eq!(
            Sched::ALL.map(Sched::name),
            ["other", "other+mlock", "fifo", "fifo+mlock"]
        );
    }
}
