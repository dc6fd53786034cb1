//! UDP, the clock, and waiting for both.

mod ends;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::{thread, time};

use protocols::transport::Path;
use protocols::transport::wire::MAX_PACKET_OCTETS;
use radio::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use crate::flow::Variant;
use crate::secure::Guard;
use ends::Asked;
pub use ends::{Ends, Here};

/// Octets of the kernel's buffers that are asked for; it may give less.
const KERNEL_BUFFER: usize = 4 << 20;
/// Octets of the longest packets of IP that are sent: those that Ethernet takes.
const MOST_MTU: usize = 1_500;
/// Octets of packets that every host takes (RFC 1122, section 3.3.2). Who says less is not believed.
const LEAST_MTU: usize = 576;
const IPV4_OCTETS: usize = 20;
const IPV6_OCTETS: usize = 40;
const UDP_OCTETS: usize = 8;
/// Shorter waits are not slept: to fall asleep and be woken takes about as much of the processor.
const SHORT: Duration = Duration::from_us(10);
/// After so long it is believed that nobody listens there any more.
const GONE: Duration = Duration::from_ms(3_000);

/// Room for one datagram, and one octet more, by which those that are too long are known.
pub type Octets = [u8; MAX_PACKET_OCTETS + 1];

/// Empty room.
pub const fn new_octets() -> Octets {
    [0; MAX_PACKET_OCTETS + 1]
}

/// Time since the program began to count, as the contract has it.
#[derive(Clone, Copy, Debug)]
pub struct Clock(time::Instant);

impl Default for Clock {
    fn default() -> Self {
        Clock(time::Instant::now())
    }
}

impl Clock {
    /// Now.
    pub fn now(&self) -> Instant {
        Instant::from_ns(u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// A socket that never blocks, and what went wrong with it.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    /// Whether the kernel knows the peer.
    connected: bool,
    /// It has all our addresses, and is told which one a datagram came to.
    asked: Option<Asked>,
    /// The last thing that the kernel had to say about the path, such as that no route leads there.
    pub complaint: Option<io::Error>,
    /// Since when it says that nobody listens there; nothing has come since.
    refused: Option<Instant>,
    /// Whether anything was sent since a packet has come, or since the network has said so: else it has nothing to answer.
    expects: bool,
}

impl Socket {
    /// Bound to `address`, for packets of this variant; port 0 means any.
    ///
    /// # Errors
    /// The address is taken, forbidden, or not ours.
    pub fn bind(address: SocketAddr, variant: Variant) -> io::Result<Socket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // a short buffer costs packets when this thread is late, and nothing else
        let _ = sockopt::set_socket_recv_buffer_size(&socket, KERNEL_BUFFER);
        let _ = sockopt::set_socket_send_buffer_size(&socket, KERNEL_BUFFER);
        if variant.finds_length() {
            forbid_fragments(&socket, address);
        }
        Ok(Socket {
            asked: Asked::of(&socket, address),
            socket,
            connected: false,
            complaint: None,
            refused: None,
            expects: false,
        })
    }

    /// Bound to any port and connected: only datagrams of `peer` come in, and the network's answers to ours are heard of.
    ///
    /// # Errors
    /// No route leads there.
    pub fn connect(peer: SocketAddr, variant: Variant) -> io::Result<Socket> {
        let mut socket = Socket::bind(any_like(peer), variant)?;
        socket.socket.connect(peer)?;
        (socket.connected, socket.asked) = (true, None);
        Ok(socket)
    }

    /// Where it is bound.
    ///
    /// # Errors
    /// Never, for a socket that is bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether the other computer says that nobody listens there.
    pub fn is_refused(&self) -> bool {
        let complaint = self.complaint.as_ref();
        complaint.is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
    }

    /// Whether to believe that nobody listens there any more. Said once that may be forged, or of a moment; said again three seconds later, of
    /// something else that was sent, while nothing comes, it is so.
    pub fn is_gone(&mut self, now: Instant) -> bool {
        if !self.is_refused() {
            return false;
        }
        (self.complaint, self.expects) = (None, false);
        now.since(*self.refused.get_or_insert(now)) >= GONE
    }

    /// Whether it has said so since anything came.
    pub fn was_refused(&self) -> bool {
        self.refused.is_some() || self.is_refused()
    }

    /// A packet of the peer has come: what the network had to say is over.
    pub fn heard(&mut self) {
        (self.complaint, self.refused, self.expects) = (None, None, false);
    }

    /// The next datagram, if there is one, who sent it, and where to. Longer ones than any of ours are cut off, and refused by
    /// the transport.
    pub fn receive<'a>(&mut self, octets: &'a mut [u8; MAX_PACKET_OCTETS + 1]) -> Option<(&'a [u8], Ends)> {
        loop {
            let received = match &mut self.asked {
                Some(asked) => asked.receive(&self.socket, octets),
                None => self.socket.recv_from(octets).map(|(n, peer)| (n, peer.into())),
            };
            match received {
                Ok((n, ends)) => return Some((&octets[..n], ends)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
                // an answer of the network to an earlier datagram (ICMP): the transport notices by itself
                Err(e) if e.kind() != io::ErrorKind::Interrupted => self.complain(e),
                Err(_) => {}
            }
        }
    }

    /// A packet that is too long for an interface or for a link further on is lost, which is the transport's affair, and no reason
    /// for a silence. Where nothing was sent nobody can have refused it: who says so has forged it.
    fn complain(&mut self, why: io::Error) {
        let forged = why.kind() == io::ErrorKind::ConnectionRefused && !self.expects;
        if !forged && why.raw_os_error() != Some(rustix::io::Errno::MSGSIZE.raw_os_error()) {
            self.complaint = Some(why);
        }
    }

    /// The way to one peer; packets are sealed by the guard, if there is one.
    pub fn path<'a>(&'a mut self, to: impl Into<Ends>, guard: Option<&'a mut Guard>) -> impl Path + 'a {
        Way {
            socket: self,
            to: to.into(),
            guard,
        }
    }

    /// Sends one datagram as it is. One that is too long for the interface is lost.
    pub fn send(&mut self, to: impl Into<Ends>, datagram: &[u8]) {
        let to = to.into();
        // an answer of the network to an earlier datagram (ICMP) is told in place of sending, once (udp(7))
        for _ in 0..2 {
            let sent = if self.connected {
                self.socket.send(datagram)
            } else {
                ends::send(&self.socket, to, datagram)
            };
            match sent {
                Ok(_) => {
                    self.expects = true;
                    return;
                }
                Err(e) => self.complain(e),
            }
        }
    }

    /// Waits for a datagram until `until`, and no longer than `most`. In less than 10 us it does not look for one.
    pub fn wait(&self, now: Instant, until: Option<Instant>, most: Duration) {
        let wait = until.map_or(most, |t| t.since(now)).min(most);
        if wait == Duration::default() {
            return;
        }
        if wait < SHORT {
            let begin = time::Instant::now();
            while begin.elapsed().as_nanos() < wait.as_ns().into() {
                thread::yield_now();
            }
            return;
        }
        let timeout = Timespec {
            tv_sec: (wait.as_ns() / 1_000_000_000) as _,
            tv_nsec: (wait.as_ns() % 1_000_000_000) as _,
        };
        // a signal ends the wait early, which does no harm
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout));
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

struct Way<'a> {
    socket: &'a mut Socket,
    to: Ends,
    guard: Option<&'a mut Guard>,
}

impl Path for Way<'_> {
    fn request(&mut self, packet: &[u8]) {
        match &mut self.guard {
            None => self.socket.send(self.to, packet),
            Some(guard) => {
                if let Some(sealed) = guard.seal(packet) {
                    self.socket.send(self.to, sealed);
                }
            }
        }
    }
}

/// Makes timers of this thread precise: the kernel may else add 50 us to every wait (PR_SET_TIMERSLACK).
pub fn without_timer_slack() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// The addresses that a name with a port stands for, to listen at; at least one.
///
/// # Errors
/// One sentence.
pub fn addresses(place: &str) -> Result<Vec<SocketAddr>, String> {
    if !place.contains(':') {
        return Err(format!(
            "'{place}' has no port: write HOST:PORT, 192.0.2.1:7800 for example"
        ));
    }
    // an interface by its name is understood without brackets only
    let bracketed = place.strip_prefix('[').and_then(|rest| rest.split_once("]:"));
    let found = match bracketed.filter(|(host, _)| host.contains('%')) {
        Some((host, port)) => format!("{host}:{port}").to_socket_addrs(),
        None => place.to_socket_addrs(),
    };
    let found = found.map_err(|e| format!("'{place}': {e}"))?;
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return Err(format!("'{place}' has no address"));
    }
    Ok(found)
}

/// The same, to call.
///
/// # Errors
/// One sentence.
pub fn resolve(peer: &str) -> Result<Vec<SocketAddr>, String> {
    let found = addresses(peer)?;
    if found.iter().any(|a| a.port() == 0) {
        return Err(format!(
            "'{peer}' has port 0, where nobody can be called: give the one that the other end says"
        ));
    }
    Ok(found)
}

/// Octets of the longest packet of a transport that goes to `peer` as one: those of an Ethernet without the headers of IP and UDP,
/// or fewer, 576 with all headers at least, where the kernel knows that an interface or a link on the way takes no more.
pub fn longest_packet(peer: SocketAddr) -> usize {
    let peer = match peer.ip().to_canonical() {
        // a socket of IPv6 reaches it as well, with packets of IPv4
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, peer.port()),
        IpAddr::V6(_) => peer,
    };
    let known = mtu(peer).map_or(MOST_MTU, |octets| octets as usize);
    let ip = if peer.is_ipv4() { IPV4_OCTETS } else { IPV6_OCTETS };
    known.clamp(LEAST_MTU, MOST_MTU) - ip - UDP_OCTETS
}

/// What the kernel knows of the way to `peer`.
fn mtu(peer: SocketAddr) -> io::Result<u32> {
    let socket = UdpSocket::bind(any_like(peer))?;
    socket.connect(peer)?;
    Ok(if peer.is_ipv4() {
        sockopt::ip_mtu(&socket)?
    } else {
        sockopt::ipv6_mtu(&socket)?
    })
}

/// Packets that are too long for the way are lost, and do not go on in fragments, which no hop can mark: in IPv4 they say so
/// (Don't Fragment), and the kernel cuts none, whatever it has heard of the way (`IP_PMTUDISC_PROBE`, ip(7)).
fn forbid_fragments(socket: &UdpSocket, address: SocketAddr) {
    // where the kernel does not know it, packets go in fragments, as before
    let _ = sockopt::set_ip_mtu_discover(socket, sockopt::Ipv4PathMtuDiscovery::PROBE);
    if address.is_ipv6() {
        let _ = sockopt::set_ipv6_mtu_discover(socket, sockopt::Ipv6PathMtuDiscovery::PROBE);
    }
}

/// An address of the same family as `peer`, any port.
fn any_like(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => ([0; 4], 0).into(),
        SocketAddr::V6(_) => ([0_u16; 8], 0).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_waits_take_their_time() {
        let a = Socket::bind(([127, 0, 0, 1], 0).into(), Variant::Sdmac).unwrap();
        let clock = Clock::default();
        for wait in [SHORT.as_ns() - 1, SHORT.as_ns()].map(Duration::from_ns) {
            let now = clock.now();
            a.wait(now, Some(now.after(wait)), GONE);
            assert!(clock.now().since(now) >= wait);
        }
    }

    #[test]
    fn it_takes_two_complaints_for_nobody_to_be_there() {
        let at = |ms: u64| Instant::from_us(ms * 1_000);
        let refusal = || Some(io::ErrorKind::ConnectionRefused.into());
        let mut a = Socket::bind(([127, 0, 0, 1], 0).into(), Variant::Sdmac).unwrap();
        for (ms, says, gone) in [(0, true, false), (5_000, false, false), (5_001, true, true)] {
            a.complaint = refusal().filter(|_| says);
            assert_eq!(a.is_gone(at(ms)), gone, "at {ms}");
        }
        a.heard();
        for (ms, gone) in [(6_000, false), (8_999, false), (9_000, true)] {
            a.complaint = refusal();
            assert_eq!(a.is_gone(at(ms)), gone, "at {ms}");
        }
    }

    /// As long as nothing was sent nobody can complain of it: what comes then is forged. Nor does one question have two answers.
    #[test]
    fn a_complaint_of_nothing_is_forged() {
        let at = |ms: u64| Instant::from_us(ms * 1_000);
        let peer = Socket::bind(([127, 0, 0, 1], 0).into(), Variant::Sdmac).unwrap();
        let to = peer.address().unwrap();
        let mut a = Socket::connect(to, Variant::Sdmac).unwrap();
        for (ms, asks, gone) in [
            (0, false, false),
            (4_000, false, false),
            (5_000, true, false),
            (9_000, false, false),
            (10_000, true, true),
        ] {
            if asks {
                a.send(to, b"are you there?");
            }
            a.complain(io::ErrorKind::ConnectionRefused.into());
            assert_eq!(a.is_gone(at(ms)), gone, "at {ms}");
            assert!(!a.is_gone(at(ms + 500)), "it has not said so again");
        }
        a.send(to, b"are you there?");
        a.heard();
        a.complain(io::ErrorKind::ConnectionRefused.into());
        assert!(!a.is_refused(), "it was there");
    }

    #[test]
    fn names_and_ports() {
        assert_eq!(
            resolve("127.0.0.1:7800").unwrap(),
            [([127, 0, 0, 1], 7800).into()]
        );
        assert!(resolve("127.0.0.1:0").unwrap_err().contains("port 0"));
        assert!(resolve("[::1]:0").unwrap_err().contains("port 0"));
        assert!(resolve("127.0.0.1").unwrap_err().contains("HOST:PORT"));
        assert!(addresses("127.0.0.1:0").is_ok());
        assert!(resolve("127.0.0.1:70000").is_err());
    }

    /// As the tools of Linux write an address that is one of a link only.
    #[test]
    fn an_interface_may_be_named() {
        let resolved = resolve("[fe80::1%lo]:7800").unwrap();
        assert_eq!(resolved, resolve("[fe80::1%1]:7800").unwrap());
        assert!(matches!(resolved[..], [SocketAddr::V6(to)] if to.scope_id() == 1 && to.port() == 7_800));
        assert!(resolve("[fe80::1%no-such]:7800").is_err());
    }

    #[test]
    fn there_and_back() {
        let here = ([127, 0, 0, 1], 0).into();
        let bind = || Socket::bind(here, Variant::Sdmac).unwrap();
        let (mut a, mut b) = (bind(), bind());
        let to = b.address().unwrap();
        a.path(to, None).request(b"hello");
        let clock = Clock::default();
        b.wait(clock.now(), None, Duration::from_ms(10_000));
        let mut octets = [0; MAX_PACKET_OCTETS + 1];
        let (got, from) = b.receive(&mut octets).unwrap();
        assert_eq!(
            (got, from.peer.port()),
            (&b"hello"[..], a.address().unwrap().port())
        );
        assert!(b.receive(&mut octets).is_none());
    }

    /// It is lost like one that the path drops: nothing is left of it, and the next one goes.
    #[test]
    fn a_datagram_that_is_too_long_for_the_interface() {
        for here in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(mut b) = Socket::bind(here.parse().unwrap(), Variant::Sdmac) else {
                eprintln!("skipped: no {here} here");
                continue;
            };
            let to = b.address().unwrap();
            let connected = Socket::connect(to, Variant::Sdmac).unwrap();
            let unconnected = Socket::bind(any_like(to), Variant::Sdmac).unwrap();
            for mut a in [connected, unconnected] {
                a.send(to, &[0; 70_000]);
                assert!(a.complaint.is_none(), "{:?}", a.complaint);
                a.send(to, b"short");
                b.wait(Clock::default().now(), None, Duration::from_ms(10_000));
                let mut octets = new_octets();
                assert_eq!(b.receive(&mut octets).unwrap().0, b"short");
                assert!(a.receive(&mut octets).is_none() && a.complaint.is_none());
            }
        }
    }

    /// What the network says of an earlier datagram does not cost the next one, which finds its peer come back.
    #[test]
    fn an_old_answer_of_the_network_costs_no_datagram() {
        let peer = Socket::bind(([127, 0, 0, 1], 0).into(), Variant::Sdmac).unwrap();
        let to = peer.address().unwrap();
        let mut a = Socket::connect(to, Variant::Sdmac).unwrap();
        drop(peer);
        a.send(to, b"in vain");
        let mut peer = Socket::bind(to, Variant::Sdmac).unwrap();
        a.send(to, b"again");
        assert!(a.is_refused());
        peer.wait(Clock::default().now(), None, Duration::from_ms(10_000));
        assert_eq!(peer.receive(&mut new_octets()).unwrap().0, b"again");
    }

    #[test]
    fn no_packet_is_cut_in_either_family() {
        let bind = |here: &str, variant| Socket::bind(here.parse().unwrap(), variant).ok();
        for (variant, probes) in [(Variant::Sdmac, true), (Variant::NewReno, false)] {
            let four = bind("127.0.0.1:0", variant).unwrap();
            let found = sockopt::ip_mtu_discover(&four).unwrap();
            assert_eq!(found == sockopt::Ipv4PathMtuDiscovery::PROBE, probes);
            let Some(six) = bind("[::1]:0", variant) else {
                eprintln!("skipped: no [::1] here");
                continue;
            };
            let found = sockopt::ipv6_mtu_discover(&six).unwrap();
            assert_eq!(found == sockopt::Ipv6PathMtuDiscovery::PROBE, probes);
        }
    }

    #[test]
    fn packets_are_as_long_as_their_family_lets_them_be() {
        let of = |peer: &str| longest_packet(peer.parse().unwrap());
        assert_eq!(of("127.0.0.1:7800"), MAX_PACKET_OCTETS);
        assert_eq!(of("[::1]:7800"), MAX_PACKET_OCTETS - 20);
        assert_eq!(of("[::ffff:127.0.0.1]:7800"), MAX_PACKET_OCTETS);
    }
}
