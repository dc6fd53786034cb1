//! The pair of sockets that frames are measured over, as close to a radio's path as the rights at hand allow.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, send, socket_with};

use super::pace::{Halt, monotonic_ns, realtime_ns, sleep_until};
use super::{LeftOut, Part, veth};
use crate::sys::packet::{self, Received};

/// Local experimental EtherType 1 (IEEE 802-2014, 9.2.4).
pub(super) const ETHERTYPE: u16 = 0x88B5;
/// Interface number of `lo` in every network namespace.
const LOOPBACK: u32 = 1;
/// How long a blocked receiver sleeps before it looks whether the sender is still there.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(50);

/// What frames were measured over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketPath {
    /// Packet sockets (AF_PACKET) at the two ends of a veth pair in a network namespace of their own.
    Veth,
    /// Packet sockets on the loopback interface.
    Loopback,
    /// UDP sockets on the loopback interface: every frame also passes IP and UDP, twice.
    UdpLoopback,
}

/// Two sockets: what is sent on one arrives at the other.
#[derive(Debug)]
pub(super) struct Link {
    tx: OwnedFd,
    rx: OwnedFd,
    pub path: PacketPath,
}

impl Link {
    /// Opens the best link there is, and says in `left_out` which better ones were refused.
    pub fn open(left_out: &mut Vec<LeftOut>) -> io::Result<Self> {
        match Self::veth() {
            Ok(link) => return Ok(link),
            Err(error) => left_out.push(LeftOut {
                part: Part::Veth,
                why: error.to_string(),
                missing: Some("CAP_SYS_ADMIN and CAP_NET_RAW, or user namespaces"),
                remedy:
                    "run as root, or allow unprivileged user namespaces (sysctl user.max_user_namespaces, \
                         kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns)"
                        .into(),
            }),
        }
        match Self::loopback() {
            Ok(link) => return Ok(link),
            Err(error) => left_out.push(LeftOut {
                part: Part::PacketSocket,
                why: format!("no packet socket: {error}"),
                missing: Some("CAP_NET_RAW"),
                remedy: "run as root, or give the program the capability: setcap cap_net_raw+ep".into(),
            }),
        }
        Self::udp()
    }

    fn veth() -> Result<Self, veth::VethError> {
        let [tx, rx] = veth::pair()?;
        Self::bound([tx, rx], veth::ENDS, PacketPath::Veth).map_err(veth::VethError::Interfaces)
    }

    fn loopback() -> io::Result<Self> {
        let open = || socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None);
        Self::bound([open()?, open()?], [LOOPBACK; 2], PacketPath::Loopback)
    }

    fn bound([tx, rx]: [OwnedFd; 2], interfaces: [u32; 2], path: PacketPath) -> io::Result<Self> {
        packet::bind_packet(tx.as_fd(), interfaces[0], 0)?; // Only sends.
        packet::bind_packet(rx.as_fd(), interfaces[1], ETHERTYPE)?;
        Self::with_timeout(tx, rx, path)
    }

    /// Two UDP sockets, which takes no right at all. The frame becomes the payload.
    fn udp() -> io::Result<Self> {
        let (tx, rx) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
        tx.connect(rx.local_addr()?)?;
        rx.connect(tx.local_addr()?)?;
        Self::with_timeout(tx.into(), rx.into(), PacketPath::UdpLoopback)
    }

    fn with_timeout(tx: OwnedFd, rx: OwnedFd, path: PacketPath) -> io::Result<Self> {
        set_socket_timeout(&rx, Timeout::Recv, Some(RECEIVE_TIMEOUT))?;
        Ok(Self { tx, rx, path })
    }

    /// Turns on arrival stamps and waits until they are real. The kernel switches them on a little later than
    /// asked, and until then invents a stamp when the frame is read; so a frame is left lying for a while,
    /// and its stamp must be older than that.
    pub fn stamp_arrivals(&self, halt: Halt<'_>) -> io::Result<()> {
        const LYING_NS: u64 = 2_000_000;
        packet::enable_receive_stamps(self.rx.as_fd())?;
        let mut frame = Frame::new(60);
        // it does so on a worker of its own, which a loaded computer lets wait for seconds
        for _ in 0..2_500 {
            if halt.reached(monotonic_ns()) {
                return Ok(());
            }
            self.drain();
            let _ = self.send(frame.numbered(0, 0)); // A pair that is still coming up drops frames.
            sleep_until(monotonic_ns() + LYING_NS);
            let read_ns = realtime_ns();
            let mut buffer = [0; 60];
            if let Ok(Received {
                stamp_ns: Some(stamp_ns),
                ..
            }) = self.receive(&mut buffer)
                && read_ns.saturating_sub(stamp_ns) >= LYING_NS / 2
            {
                return Ok(());
            }
        }
        Err(io::Error::other("the kernel does not stamp arriving frames"))
    }

    /// Sends one frame. `Ok(false)`: the queue is full and the frame is gone.
    pub fn send(&self, frame: &[u8]) -> io::Result<bool> {
        match send(&self.tx, frame, SendFlags::empty()) {
            Ok(_) => Ok(true),
            Err(Errno::NOBUFS | Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Receives one frame with its arrival stamp; blocks for 50 ms at most.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        packet::receive_stamped(self.rx.as_fd(), buffer)
    }

    /// Throws away what lies in the receiving socket.
    pub fn drain(&self) {
        for _ in 0..100_000 {
            if rustix::net::recv(&self.rx, &mut [0; 64][..], RecvFlags::DONTWAIT).is_err() {
                break;
            }
        }
    }
}

/// A frame of ours: Ethernet header, the number of the run, the number of the frame, the time of sending.
#[derive(Debug)]
pub(super) struct Frame {
    octets: Vec<u8>,
    run: u64,
}

impl Frame {
    /// A frame of that many octets; at least 60, as in Ethernet.
    pub fn new(octets: usize) -> Self {
        let run = monotonic_ns(); // Distinct enough to know frames of an earlier run.
        let mut frame = vec![0; octets.max(60)];
        frame[..6].fill(0xFF); // To everyone,
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]); // from a locally administered address.
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        frame[14..22].copy_from_slice(&run.to_le_bytes());
        Self { octets: frame, run }
    }

    /// The number of the run.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The frame with its number and the time of sending in it, on `CLOCK_REALTIME`.
    pub fn numbered(&mut self, number: u64, sent_ns: u64) -> &[u8] {
        self.octets[22..30].copy_from_slice(&number.to_le_bytes());
        self.octets[30..38].copy_from_slice(&sent_ns.to_le_bytes());
        &self.octets
    }

    /// The number and the time of sending in a received frame; `None` if it is not a frame of this run.
    pub fn parse(received: &[u8], run: u64) -> Option<(u64, u64)> {
        let number = |at: usize| Some(u64::from_le_bytes(received.get(at..at + 8)?.try_into().ok()?));
        (number(14)? == run).then_some((number(22)?, number(30)?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Every path that this user may open.
    fn links() -> Vec<Link> {
        let links: Vec<Link> = [Link::veth().ok(), Link::loopback().ok(), Link::udp().ok()]
            .into_iter()
            .flatten()
            .collect();
        assert!(!links.is_empty());
        links
    }

    #[test]
    fn there_is_always_a_link_and_each_refusal_of_a_better_one_is_told() {
        let mut left_out = Vec::new();
        let link = Link::open(&mut left_out).unwrap();
        let refused = match link.path {
            PacketPath::Veth => 0,
            PacketPath::Loopback => 1,
            PacketPath::UdpLoopback => 2,
        };
        assert_eq!(left_out.len(), refused, "{left_out:?}");
    }

    #[test]
    fn on_every_path_a_frame_arrives_whole_and_with_a_real_stamp() {
        let stop = AtomicBool::new(false);
        for link in links() {
            link.stamp_arrivals(Halt {
                stop: &stop,
                until_ns: u64::MAX,
            })
            .unwrap();
            link.drain();
            let mut frame = Frame::new(100);
            let run = frame.run();
            let sent_ns = realtime_ns();
            assert!(link.send(frame.numbered(7, sent_ns)).unwrap());
            let mut buffer = [0; 200];
            let received = (0..1000)
                .find_map(|_| link.receive(&mut buffer).ok())
                .expect("the frame arrives");
            assert_eq!(received.length, 100, "{:?}", link.path);
            assert_eq!(Frame::parse(&buffer[..received.length], run), Some((7, sent_ns)));
            assert_eq!(Frame::parse(&buffer[..received.length], run + 1), None);
            assert!(received.stamp_ns.unwrap() >= sent_ns);
        }
    }

    #[test]
    fn foreign_and_short_frames_are_not_ours() {
        let mut frame = Frame::new(0);
        let run = frame.run();
        let whole = frame.numbered(5, 77).to_vec();
        assert_eq!(Frame::parse(&whole, run), Some((5, 77)));
        for length in 0..38 {
            assert_eq!(Frame::parse(&whole[..length], run), None);
        }
    }
}
