//! UDP, the clock, and waiting for both.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::time;

use protocols::transport::Path;
use protocols::transport::wire::MAX_PACKET_OCTETS;
use radio::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::secure::Guard;

/// Octets of the kernel's buffers that are asked for; it may give less.
const KERNEL_BUFFER: usize = 4 << 20;

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
    /// The last thing that the kernel had to say about the path, such as that no route leads there.
    pub complaint: Option<io::Error>,
}

impl Socket {
    /// Bound to `address`; port 0 means any.
    ///
    /// # Errors
    /// The address is taken, forbidden, or not ours.
    pub fn bind(address: SocketAddr) -> io::Result<Socket> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        // a short buffer costs packets when this thread is late, and nothing else
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, KERNEL_BUFFER);
        let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, KERNEL_BUFFER);
        Ok(Socket {
            socket,
            connected: false,
            complaint: None,
        })
    }

    /// Bound to any port and connected: only datagrams of `peer` come in, and the network's answers to ours are heard of.
    ///
    /// # Errors
    /// No route leads there.
    pub fn connect(peer: SocketAddr) -> io::Result<Socket> {
        let mut socket = Socket::bind(any_like(peer))?;
        socket.socket.connect(peer)?;
        socket.connected = true;
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

    /// The next datagram, if there is one, and who sent it. Longer ones than any of ours are cut off, and refused by
    /// the transport.
    pub fn receive<'a>(
        &mut self,
        octets: &'a mut [u8; MAX_PACKET_OCTETS + 1],
    ) -> Option<(&'a [u8], SocketAddr)> {
        loop {
            match self.socket.recv_from(octets) {
                Ok((n, from)) => return Some((&octets[..n], from)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return None,
                // an answer of the network to an earlier datagram (ICMP): the transport notices by itself
                Err(e) if e.kind() != io::ErrorKind::Interrupted => self.complaint = Some(e),
                Err(_) => {}
            }
        }
    }

    /// The way to one peer; packets are sealed by the guard, if there is one.
    pub fn path<'a>(&'a mut self, to: SocketAddr, guard: Option<&'a mut Guard>) -> impl Path + 'a {
        Way {
            socket: self,
            to,
            guard,
        }
    }

    /// Sends one datagram as it is.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let sent = if self.connected {
            self.socket.send(datagram)
        } else {
            self.socket.send_to(datagram, to)
        };
        if let Err(e) = sent {
            self.complaint = Some(e);
        }
    }

    /// Waits for a datagram until `until`, and no longer than `most`.
    pub fn wait(&self, now: Instant, until: Option<Instant>, most: Duration) {
        let wait = until.map_or(most, |t| t.since(now)).min(most);
        if wait == Duration::default() {
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
    to: SocketAddr,
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
    let found = place.to_socket_addrs().map_err(|e| format!("'{place}': {e}"))?;
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

    #[test]
    fn there_and_back() {
        let here = ([127, 0, 0, 1], 0).into();
        let (mut a, mut b) = (Socket::bind(here).unwrap(), Socket::bind(here).unwrap());
        let to = b.address().unwrap();
        a.path(to, None).request(b"hello");
        let clock = Clock::default();
        b.wait(clock.now(), None, Duration::from_ms(10_000));
        let mut octets = [0; MAX_PACKET_OCTETS + 1];
        let (got, from) = b.receive(&mut octets).unwrap();
        assert_eq!((got, from.port()), (&b"hello"[..], a.address().unwrap().port()));
        assert!(b.receive(&mut octets).is_none());
    }
}
