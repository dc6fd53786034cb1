//! Who holds the rules: a process of its own, which the kernel kills when it is told nothing.
//!
//! The rules belong to a socket, and go when nobody has that socket any more. A program that hangs (stopped, frozen, stuck in a
//! call) keeps what it has open. So it has given this socket away, to a small process that does nothing but have it, with a timer
//! whose signal is SIGKILL. The kernel sends that without the help of any process; one that is stopped dies of it, too, and so does
//! one in a frozen control group (version 2).
//!
//! ```text
//! program            holder
//!   | packets move  -> |    ten times a second; winds up its timer again
//!   | dies: end of line|    it ends, and the rules are gone
//!   | hangs: silence   |    the timer kills it, and the rules are gone
//!   | goes on          |    nobody hears it: it makes the rules anew, with a new holder
//! ```

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::time::Duration;

use radio::Instant;
use rustix::thread::CapabilitySet;

use super::give_up_rights_but;
use crate::sys::timer::Fuse;

/// Name of the command that runs [`hold`]. The program that opens a [`Queue`](super::Queue) must have it, as its first argument.
pub const COMMAND: &str = "hop-rules";
/// The rules live for so long without a word: long for a flow, and longer than what a program waits for a processor that many others
/// want, since what the queue holds when they go is lost.
pub const HOLD: Duration = Duration::from_secs(1);
/// From one word to the next.
const TELL: radio::Duration = radio::Duration::from_ms(50);
/// Until the first word. To make rules takes the kernel seconds where it has much to do.
const START: Duration = Duration::from_secs(30);
/// Both ends say the same: one that it has begun, the other that it goes on.
const WORD: u8 = b'.';

/// The near end. The rules are gone when this is.
#[derive(Debug)]
pub(super) struct Holder {
    process: Child,
    line: UnixStream,
    told: Instant,
}

impl Holder {
    /// Gives a socket to a new process, whose timer runs then.
    pub fn start(socket: OwnedFd) -> io::Result<Holder> {
        let (line, theirs) = UnixStream::pair()?;
        // Ctrl-C and Ctrl-Z are for the program, not for its group.
        let process = Command::new("/proc/self/exe")
            .arg0("sdmac")
            .arg(COMMAND)
            .current_dir("/")
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(socket)
            .spawn()?;
        let mut holder = Holder {
            process,
            line,
            told: Instant::ZERO,
        };
        holder.line.set_read_timeout(Some(START))?;
        holder.line.read_exact(&mut [0])?;
        holder.line.set_nonblocking(true)?;
        Ok(holder)
    }

    /// Says that packets move, if it is time for that. False if nobody hears it any more: then the rules are gone, or will be in a
    /// moment.
    pub fn tell(&mut self, now: Instant) -> bool {
        if now.since(self.told) < TELL {
            return true;
        }
        self.told = now;
        self.say()
    }

    /// The same, at once. The first time, the rules have been made.
    pub fn say(&mut self) -> bool {
        match self.line.write_all(&[WORD]) {
            Ok(()) => true,
            // It has much to read, and time until its timer ends.
            Err(e) => e.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // One that has ended is fine. When it has been waited for, the rules are gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs in the holder's process: has what it was given as stdout until its stdin says nothing for [`HOLD`], or ends.
///
/// # Errors
/// It cannot have a timer, or give up its rights.
pub fn hold() -> io::Result<()> {
    let fuse = Fuse::new()?;
    fuse.wind(START)?;
    give_up_rights_but(CapabilitySet::empty())?;
    let stdin = io::stdin();
    let line = stdin.as_fd();
    rustix::io::write(line, &[WORD])?;
    let mut words = [0; 64];
    while rustix::io::retry_on_intr(|| rustix::io::read(line, &mut words))? > 0 {
        fuse.wind(HOLD)?;
    }
    Ok(())
}
