//! A socket that frames come up from, with the one that has come and is not told yet.

use std::io;
use std::os::fd::BorrowedFd;

use radio::{Instant, MAX_FRAME_OCTETS};

use super::ordinary::receive_outcome;
use crate::clock::{monotonic_ns, realtime_ns};
use crate::sys::packet::{Received, receive_now};

/// Room for a packet: the longest frame, its FCS, and a radiotap header.
const PACKET_OCTETS: usize = MAX_FRAME_OCTETS + 4 + 512;
/// Two readings of one clock with one of the other between them: when they are further apart than this, the thread
/// was interrupted.
const UNDISTURBED_NS: u64 = 10_000;

/// What a socket shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shows {
    /// What the radio has received.
    Received,
    /// What it has sent, with its status.
    Sent,
    /// What the socket itself has sent, with its outcome, in the error queue ([`super::ordinary`]).
    Outcomes,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Source {
    pub adapter: u8,
    pub shows: Shows,
    /// There may be a packet to fetch.
    pub is_ready: bool,
    waiting: Option<Waiting>,
    lost: u32,
    octets: Box<[u8; PACKET_OCTETS]>,
}

/// A packet that has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    length: usize,
    /// When the kernel had it, on the host's clock; where it said so, and the clocks could be compared.
    pub t8: Option<Instant>,
    /// When we had it.
    pub t9: Instant,
    /// From the error queue: whether an ACK came.
    pub acked: Option<bool>,
}

impl Source {
    pub fn new(adapter: u8, shows: Shows) -> Source {
        Source {
            adapter,
            shows,
            is_ready: false,
            waiting: None,
            lost: 0,
            octets: Box::new([0; PACKET_OCTETS]),
        }
    }

    /// Fetches a packet if none is waiting; tells how many were lost before it.
    pub fn fetch(&mut self, socket: BorrowedFd<'_>) -> u32 {
        if self.waiting.is_some() {
            return 0;
        }
        let mut went_down = false;
        let received = loop {
            let received = match self.shows {
                Shows::Received | Shows::Sent => receive_now(socket, &mut self.octets[..]),
                Shows::Outcomes => receive_outcome(socket, &mut self.octets[..]),
            };
            match received {
                Ok(received) => break received,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                // The interface went down at some time, which is told elsewhere; packets may wait behind that.
                Err(e) if e.kind() != io::ErrorKind::WouldBlock && !went_down => went_down = true,
                Err(_) => return 0,
            }
        };
        let Received {
            length,
            stamp_ns,
            lost,
            wifi_acked: acked,
        } = received;
        let (t8, t9) = times(stamp_ns);
        self.waiting = Some(Waiting {
            length,
            t8,
            t9,
            acked,
        });
        let lost = lost.unwrap_or(self.lost);
        let more = lost.wrapping_sub(self.lost);
        self.lost = lost;
        more
    }

    /// When the packet came that waits.
    pub fn came(&self) -> Option<Instant> {
        self.waiting.map(|w| w.t8.unwrap_or(w.t9))
    }

    /// The packet that waits, which then waits no more.
    pub fn take(&mut self) -> Option<(Waiting, &[u8])> {
        let waiting = self.waiting.take()?;
        Some((waiting, &self.octets[..waiting.length.min(PACKET_OCTETS)]))
    }
}

/// A stamp of the kernel, which is on the wall clock, on the host's clock; and the time now.
pub(super) fn times(stamp_ns: Option<u64>) -> (Option<Instant>, Instant) {
    let mut t9 = monotonic_ns();
    let Some(stamp_ns) = stamp_ns else {
        return (None, Instant::from_ns(t9));
    };
    for _ in 0..3 {
        let (before, wall, after) = (t9, realtime_ns(), monotonic_ns());
        if after - before <= UNDISTURBED_NS {
            let age = wall.checked_sub(stamp_ns);
            let then = before + (after - before) / 2; // The best guess of when the wall clock was read.
            let t8 = age.and_then(|age| then.checked_sub(age)).map(Instant::from_ns);
            // As close as that, the guess may lie behind the first reading.
            let t9 = Instant::from_ns(before).max(t8.unwrap_or(Instant::ZERO));
            return (t8, t9);
        }
        t9 = after;
    }
    (None, Instant::from_ns(t9))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;
    use crate::sys::packet::enable_receive_stamps;

    #[test]
    fn a_packet_waits_until_it_is_taken_and_keeps_its_time() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        enable_receive_stamps(socket.as_fd()).unwrap();
        let mut source = Source::new(0, Shows::Received);
        source.fetch(socket.as_fd());
        assert!(source.came().is_none() && source.take().is_none());
        let before = Instant::from_ns(monotonic_ns());
        for payload in [b"1", b"2"] {
            socket.send_to(payload, socket.local_addr().unwrap()).unwrap();
        }
        source.fetch(socket.as_fd());
        source.fetch(socket.as_fd());
        let came = source.came().unwrap();
        let (first, octets) = source.take().unwrap();
        assert_eq!((octets, came), (&b"1"[..], first.t8.unwrap_or(first.t9)));
        assert!(first.t9 >= before && first.t8.is_none_or(|t8| t8 <= first.t9));
        assert!(source.take().is_none());
        source.fetch(socket.as_fd());
        assert_eq!(source.take().unwrap().1, b"2");
    }

    #[test]
    fn a_stamp_of_the_wall_clock_is_found_on_ours() {
        let (before, wall) = (monotonic_ns(), realtime_ns());
        let (t8, t9) = times(Some(wall));
        if let Some(t8) = t8 {
            // Not before the reading of the clock before, save for what the two readings are apart.
            assert!(
                t8.as_ns() + 1_000_000 >= before && t8 <= t9,
                "{before} {t8:?} {t9:?}"
            );
        }
        assert_eq!(times(Some(u64::MAX)).0, None, "of the future: the clock was set");
        assert_eq!(times(None).0, None);
    }
}
