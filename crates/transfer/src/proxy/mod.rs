//! TCP connections carried over ATP between two points: what `sdmac atp proxy` does. Programs need not know of it.
//!
//! ```text
//! program - TCP -> enter ======= ATP, one flow for each connection ======= leave - TCP -> program
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`link`](self) | one connection: octets from TCP to ATP and back, each direction with its own end |
//! | [`enter`] | the end that accepts TCP and calls over ATP |
//! | [`leave`] | the end that is called over ATP and connects by TCP |
//!
//! An end of one direction is passed on (half close); a reset at one end is a reset at the other; a direction whose reader is
//! slow stops its writer, because nothing is taken that there is no room for.

mod enter;
mod leave;
mod link;

use std::net::SocketAddr;
use std::os::fd::AsFd;

use radio::Instant;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::TransferError;
pub use enter::enter;
pub use leave::leave;
use link::Link;

/// Connections at once; more have to wait, or are not answered.
pub const MAX_CONNECTIONS: usize = 1_000;
/// Octets of each of the four buffers of a connection.
pub const BUFFER_OCTETS: usize = 1 << 18;
/// Between two looks at Ctrl-C.
const LOOK: radio::Duration = radio::Duration::from_ms(100);
/// Datagrams of one connection taken between two looks at the others.
const BATCH: usize = 32;

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
