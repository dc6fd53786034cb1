//! What hosts set of their simulated radios and the kernel has no words for: it goes to the medium in the same process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use frame::EdcaParams;
use radio::{Attribute, Queue, SetError, Settable};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::write;

use crate::clock::monotonic_ns;
use crate::wifi::SoftMac;

/// Changes that are on their way at most; more are refused.
const ROOM: usize = 1024;

/// A radio is to be switched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// When it was asked for, on `CLOCK_MONOTONIC`, ns.
    pub at_ns: u64,
    /// Which radio, by the number that was given to [`Switches::of`].
    pub radio: u32,
    /// To what.
    pub attribute: Attribute,
}

/// The medium's end.
#[derive(Debug)]
pub struct Switchboard {
    changes: Receiver<Change>,
    begins_ns: Arc<AtomicU64>,
    bell: Arc<OwnedFd>,
}

/// The hosts' end.
#[derive(Debug, Clone)]
pub struct Switches {
    changes: SyncSender<Change>,
    begins_ns: Arc<AtomicU64>,
    bell: Arc<OwnedFd>,
}

/// Both ends.
///
/// # Errors
/// If there can be no more descriptors.
pub fn switchboard() -> io::Result<(Switches, Switchboard)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = sync_channel(ROOM);
    let begins_ns = Arc::new(AtomicU64::new(u64::MAX));
    let switches = Switches {
        changes: sender,
        begins_ns: Arc::clone(&begins_ns),
        bell: Arc::clone(&bell),
    };
    Ok((
        switches,
        Switchboard {
            changes: receiver,
            begins_ns,
            bell,
        },
    ))
}

impl Switchboard {
    /// The next change, in the order in which they were asked for.
    pub fn next(&self) -> Option<Change> {
        self.changes.try_recv().ok()
    }

    /// When the hosts begin, on `CLOCK_MONOTONIC`, ns, if they have said so.
    pub fn begins_ns(&self) -> Option<u64> {
        Some(self.begins_ns.load(Ordering::Acquire)).filter(|ns| *ns < u64::MAX)
    }
}

impl AsFd for Switchboard {
    /// Becomes readable with each change, and stays so: watch it for edges.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Switches {
    /// All hosts begin at this time, on `CLOCK_MONOTONIC`, ns: for a medium whose own time is to begin with them.
    pub fn begin_at(&self, ns: u64) {
        self.begins_ns.store(ns, Ordering::Release);
        let _ = write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Those of the radio with this number: channel access (EDCA parameters, carrier sense, physical and virtual) and
    /// reception; and it hears of new channels. A change is on its way when `set` returns, and refused with [`SetError::NotFound`] when there is no room, or no
    /// medium any more.
    pub fn of(&self, radio: u32) -> SoftMac {
        const ANY: EdcaParams = EdcaParams::dcf(&frame::Phy::A);
        let all = Settable::NONE
            .with(&Attribute::CarrierSense(true))
            .with(&Attribute::VirtualCarrierSense(true))
            .with(&Attribute::Reception(true))
            .with(&Attribute::Edca(Queue::Voice, ANY));
        let its = self.clone();
        SoftMac::new(all, move |attribute| {
            let change = Change {
                at_ns: monotonic_ns(),
                radio,
                attribute,
            };
            its.changes.try_send(change).map_err(|_| SetError::NotFound)?;
            let _ = write(&its.bell, &1_u64.to_ne_bytes()); // full: it rings already
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::Wait;
    use crate::wifi::wait::Waiter;

    #[test]
    fn changes_arrive_in_order_and_wake_the_medium_once_each() {
        let (switches, board) = switchboard().unwrap();
        let mut waiter = Waiter::new(Wait::Timerfd).unwrap();
        waiter.add_edges(board.as_fd()).unwrap();
        let rings = |waiter: &Waiter| {
            let mut rings = 0;
            waiter.look(|_| rings += 1).unwrap();
            rings
        };
        assert_eq!((rings(&waiter), board.next()), (0, None));
        let before = monotonic_ns();
        switches.of(3).set(Attribute::Reception(false)).unwrap();
        switches.of(1).set(Attribute::CarrierSense(false)).unwrap();
        waiter.wait(u64::MAX).unwrap(); // Comes back.
        assert_eq!((rings(&waiter), rings(&waiter)), (1, 0));
        let [a, b] = [board.next().unwrap(), board.next().unwrap()];
        assert!(before <= a.at_ns && a.at_ns <= b.at_ns);
        assert_eq!((a.radio, a.attribute), (3, Attribute::Reception(false)));
        assert_eq!((b.radio, b.attribute), (1, Attribute::CarrierSense(false)));
        switches.of(0).set(Attribute::Reception(true)).unwrap();
        assert_eq!(rings(&waiter), 1, "without having read it");
    }

    #[test]
    fn the_medium_learns_when_hosts_begin() {
        let (switches, board) = switchboard().unwrap();
        let mut waiter = Waiter::new(Wait::Timerfd).unwrap();
        waiter.add_edges(board.as_fd()).unwrap();
        assert_eq!(board.begins_ns(), None);
        switches.clone().begin_at(7_000);
        waiter.wait(u64::MAX).unwrap(); // Comes back.
        assert_eq!(board.begins_ns(), Some(7_000));
    }

    #[test]
    fn what_is_no_switch_or_finds_no_room_is_refused() {
        let (switches, board) = switchboard().unwrap();
        let mine = switches.of(0);
        assert_eq!(mine.set(Attribute::Channel(2412)), Err(SetError::NotSupported));
        let taken = (0..ROOM + 5)
            .filter(|_| mine.set(Attribute::Reception(true)).is_ok())
            .count();
        assert_eq!(taken, ROOM);
        drop(board);
        assert_eq!(mine.set(Attribute::Reception(true)), Err(SetError::NotFound));
    }
}
