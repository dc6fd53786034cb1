//! Answers of a medium that come before the kernel waits for them: which may be such.

use std::time::Duration;

use frame::MacAddr;

use super::{Sent, Status};

/// Between two answers: the other CPU has a few instructions to go, but may be held up meanwhile.
pub(super) const PAUSE: Duration = Duration::from_micros(50);
/// And for so long, ns.
pub(super) const WAIT_NS: u64 = 20_000_000;
/// Only of the last so many frames of a radio: fewer than the kernel keeps (`MAX_QUEUE` is 100).
const FRAMES: u64 = 32;

/// The last frame of each radio, and whether it is worth a wait.
#[derive(Debug, Default)]
pub(super) struct Newest(Vec<(MacAddr, u64, bool)>);

impl Newest {
    /// The kernel has told of a frame.
    pub fn note(&mut self, sent: &Sent) {
        match self.0.iter_mut().find(|(radio, ..)| *radio == sent.radio) {
            Some(of) => *of = (sent.radio, sent.cookie, true),
            None => self.0.push((sent.radio, sent.cookie, true)),
        }
    }

    /// Whether the kernel may not wait for this frame yet. The last that it has told of are none that it gave up for want of
    /// room, since there the oldest go first.
    pub fn may_be_early(&self, status: &Status) -> bool {
        let of = self.0.iter().find(|(radio, ..)| *radio == status.radio);
        of.is_some_and(|(_, newest, patient)| *patient && newest.wrapping_sub(status.cookie) < FRAMES)
    }

    /// It was no haste: nothing that the radio has sent up to now is worth another wait.
    pub fn give_up(&mut self, radio: MacAddr) {
        for of in self.0.iter_mut().filter(|(r, ..)| *r == radio) {
            of.2 = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hwsim::{MAX_SERIES, Series};

    fn sent(cookie: u64) -> Sent {
        Sent {
            radio: MacAddr::local(1),
            frame: Vec::new(),
            mhz: None,
            cookie,
            flags: 0,
            plan: [Series::NONE; MAX_SERIES],
        }
    }

    fn status(radio: u32, cookie: u64) -> Status {
        Status {
            radio: MacAddr::local(radio),
            cookie,
            flags: 0,
            acked: true,
            signal_dbm: -50,
            done: [Series::NONE; MAX_SERIES],
        }
    }

    #[test]
    fn the_last_frames_of_a_radio_are_worth_one_wait() {
        let mut newest = Newest::default();
        assert!(!newest.may_be_early(&status(1, 5)), "nothing was told of");
        newest.note(&sent(4));
        newest.note(&sent(100));
        for (cookie, early) in [(100, true), (69, true), (68, false), (101, false)] {
            assert_eq!(newest.may_be_early(&status(1, cookie)), early, "{cookie}");
        }
        assert!(!newest.may_be_early(&status(2, 100)), "another radio");
        newest.give_up(MacAddr::local(1));
        assert!(!newest.may_be_early(&status(1, 100)));
        newest.note(&sent(101));
        assert!(newest.may_be_early(&status(1, 101)), "of a frame since");
    }
}
