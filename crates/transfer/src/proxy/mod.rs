//! TCP connections carried over ATP between two points: what `sdmac atp proxy` does. Programs need not know of it.
//!
//! ```text
//! program - TCP -> enter ======= ATP, one flow for each connection ======= leave - TCP -> program
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`link`](self) | one connection: octets from TCP to ATP and back, each direction with its own end |
//! | [`pending`](self) | octets between the two |
//! | [`tcp`](self) | its TCP side: which address answers |
//! | [`watch`](self) | whether the computer at the other end of it is still there |
//! | [`enter`] | the end that accepts TCP and calls over ATP |
//! | [`leave`] | the end that is called over ATP and connects by TCP |
//!
//! A name may have several addresses: they are tried one after the other, all but the last for five seconds at most, until one
//! answers.
//!
//! An end of one direction is passed on (half close); a reset at one end is a reset at the other; a direction whose reader is
//! slow stops its writer, because nothing is taken that there is no room for.

mod enter;
mod leave;
mod link;
mod pending;
mod tcp;
mod watch;

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use radio::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::TransferError;
use crate::flow::FlowConfig;
pub use enter::enter;
pub use leave::leave;
use link::Link;

/// Connections at once, where the process may have descriptors for them; more have to wait, or are not answered.
pub const MAX_CONNECTIONS: usize = 1_000;
/// Descriptors for all that is no connection.
const OTHER_DESCRIPTORS: u64 = 32;
/// Octets of each of the four buffers of a connection.
pub const BUFFER_OCTETS: usize = 1 << 18;
/// Between two looks at Ctrl-C.
const LOOK: radio::Duration = radio::Duration::from_ms(100);
/// Datagrams of one connection taken between two looks at the others.
const BATCH: usize = 32;
/// How long an address may take to answer while there is another one to try: some calls, each lost on the air or not.
const TRY: radio::Duration = radio::Duration::from_ms(5_000);

/// The same, where patience is shorter than that.
fn try_for(config: &FlowConfig) -> radio::Duration {
    TRY.min(radio::Duration::from_ns(config.patience.as_ns() / 2))
}

/// A connection has ended.
#[derive(Debug)]
pub struct Ended {
    /// Who called: by TCP where connections enter, by ATP where they leave.
    pub peer: SocketAddr,
    /// Octets from TCP to ATP, and from ATP to TCP.
    pub octets: (u64, u64),
    /// How.
    pub result: Result<(), TransferError>,
}

impl Ended {
    /// Whoever carries it was stopped.
    fn stopped(peer: SocketAddr, octets: (u64, u64)) -> Ended {
        Ended {
            peer,
            octets,
            result: Err(TransferError::Stopped),
        }
    }
}

/// How many connections there may be at once, each with so many descriptors. The limit of this process is raised for them, as far as it may be.
fn most_connections(each: u64) -> usize {
    let wanted = MAX_CONNECTIONS as u64 * each + OTHER_DESCRIPTORS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // without a number there is no limit
    let (mut descriptors, may) = (current.unwrap_or(u64::MAX), maximum.unwrap_or(u64::MAX));
    let more = Rlimit {
        current: Some(wanted.min(may)),
        maximum,
    };
    if descriptors < wanted && setrlimit(Resource::Nofile, more).is_ok() {
        descriptors = wanted.min(may);
    }
    let most = descriptors.saturating_sub(OTHER_DESCRIPTORS) / each;
    usize::try_from(most).map_or(MAX_CONNECTIONS, |most| most.clamp(1, MAX_CONNECTIONS))
}

/// Calls the first address, from the one at `from` on, that can be called; tells which one that is.
fn first<T>(
    to: &[SocketAddr],
    from: usize,
    call: impl Fn(SocketAddr) -> io::Result<T>,
) -> Result<(usize, T), TransferError> {
    let mut why = TransferError::io("there is no address to call", io::ErrorKind::NotFound.into());
    for (at, to) in to.iter().enumerate().skip(from) {
        match call(*to) {
            Ok(called) => return Ok((at, called)),
            Err(e) => why = TransferError::io(to, e),
        }
    }
    Err(why)
}

/// What a loop waits for.
struct Wait<'a> {
    fds: Vec<PollFd<'a>>,
    until: Option<Instant>,
}

impl<'a> Wait<'a> {
    fn new() -> Self {
        Wait {
            fds: Vec::new(),
            until: None,
        }
    }

    fn readable(&mut self, fd: &'a impl AsFd) {
        self.fds.push(PollFd::new(fd, PollFlags::IN));
    }

    /// The TCP side of a link, and its timers.
    fn link(&mut self, link: &'a Link) {
        if let Some((fd, flags)) = link.interest() {
            self.fds.push(PollFd::from_borrowed_fd(fd, flags));
        }
        self.until = [self.until, link.deadline()].into_iter().flatten().min();
    }

    fn wait(mut self, now: Instant) {
        let wait = self.until.map_or(LOOK, |t| t.since(now)).min(LOOK);
        let timeout = Timespec {
            tv_sec: (wait.as_ns() / 1_000_000_000) as _,
            tv_nsec: (wait.as_ns() % 1_000_000_000) as _,
        };
        // a signal ends the wait early, which does no harm
        let _ = poll(&mut self.fds, Some(&timeout));
    }
}
