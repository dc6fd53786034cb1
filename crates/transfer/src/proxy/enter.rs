//! Where connections enter: TCP is accepted, ATP calls.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

use radio::Instant;

use super::link::Link;
use super::{BATCH, Ended, Wait, first, most_connections};
use crate::TransferError;
use crate::door::Called;
use crate::flow::FlowConfig;
use crate::socket::{Clock, Octets, Socket, new_octets, without_timer_slack};

struct Guest {
    peer: SocketAddr,
    /// Which address is called, and which is the next.
    at: usize,
    next: usize,
    socket: Socket,
    link: Link,
}

impl Guest {
    /// Calls the next address if there is one and this one is called in vain.
    fn call_on(&mut self, now: Instant, to: &[SocketAddr], config: &FlowConfig) {
        if self.next < to.len() && self.link.is_in_vain(now, &self.socket) {
            // where none of the others can be called, this one goes on
            let Ok((at, socket)) = first(to, self.next, |to| Socket::connect(to, config.variant)) else {
                self.next = to.len();
                return;
            };
            (self.at, self.next, self.socket) = (at, at + 1, socket);
            self.link.anew(now, to[at]);
            self.link.start(now, &mut self.socket, to[at]);
        }
    }
}

/// Carries every connection that `listener` accepts to the first of `to` that answers, until it is stopped. How
/// each has ended is told.
///
/// # Errors
/// The listener is broken.
pub fn enter(
    listener: &TcpListener,
    to: &[SocketAddr],
    config: &FlowConfig,
    stop: &AtomicBool,
    mut tell: impl FnMut(Ended),
) -> Result<(), TransferError> {
    without_timer_slack();
    let broken = |e| TransferError::io("cannot accept connections", e);
    listener.set_nonblocking(true).map_err(broken)?;
    let clock = Clock::default();
    let (mut octets, mut room): (Octets, Octets) = (new_octets(), new_octets());
    let mut guests: Vec<Guest> = Vec::new();
    let most = most_connections(3);
    while !stop.load(Ordering::Relaxed) {
        make_room(&mut guests, most, clock.now());
        // where none can be accepted now, the listener would be ready again and again
        let mut takes = true;
        while guests.len() < most {
            let (tcp, peer) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(e) if passes(&e) => {
                    takes = e.kind() == io::ErrorKind::WouldBlock;
                    break;
                }
                Err(e) => return Err(broken(e)),
            };
            let now = clock.now();
            let socket = first(to, 0, |to| Socket::connect(to, config.variant));
            let ready = tcp.set_nonblocking(true).and_then(|()| tcp.set_nodelay(true));
            let made = ready
                .map_err(|e| TransferError::io("it cannot be used", e))
                .and(socket)
                .and_then(|(at, socket)| Ok((at, socket, Link::entering(tcp, to[at], config, now)?)));
            match made {
                Ok((at, mut socket, mut link)) => {
                    link.start(now, &mut socket, to[at]);
                    guests.push(Guest {
                        peer,
                        at,
                        next: at + 1,
                        socket,
                        link,
                    });
                }
                Err(why) => tell(Ended {
                    peer,
                    octets: (0, 0),
                    result: Err(why),
                }),
            }
        }
        for guest in &mut guests {
            for _ in 0..BATCH {
                let Some((datagram, _)) = guest.socket.receive(&mut octets) else {
                    break;
                };
                let (link, to) = (&mut guest.link, to[guest.at]);
                link.datagram(clock.now(), &mut guest.socket, to.into(), datagram, &mut room);
            }
            guest.call_on(clock.now(), to, config);
            let to = to[guest.at];
            if let Some(result) = guest.link.turn(clock.now(), &mut guest.socket, to) {
                tell(Ended {
                    peer: guest.peer,
                    octets: guest.link.octets,
                    result,
                });
            }
        }
        let now = clock.now();
        guests.retain(|g| !g.link.is_over(now));
        let mut wait = Wait::new();
        if takes && guests.len() < most {
            wait.readable(listener);
        }
        for guest in &guests {
            wait.readable(&guest.socket);
            wait.link(&guest.link);
        }
        wait.wait(clock.now());
    }
    for guest in &mut guests {
        let (peer, to) = (guest.peer, to[guest.at]);
        if let Some(octets) = guest.link.abort(clock.now(), &mut guest.socket, to) {
            tell(Ended::stopped(peer, octets));
        }
    }
    Ok(())
}

/// Where all places are taken, those give theirs up that have ended and need not be told once more.
fn make_room(guests: &mut Vec<Guest>, most: usize, now: Instant) {
    if guests.len() >= most {
        guests.retain(|g| !g.link.is_done(now));
    }
}

/// No connection now, or one that has gone before it was accepted; or no descriptors left until one ends.
fn passes(e: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(e.kind(), ConnectionAborted | Interrupted | WouldBlock)
        || [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
            .iter()
            .any(|n| e.raw_os_error() == Some(n.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpStream, UdpSocket};

    use protocols::transport::wire::{Control, Header};

    use super::*;

    const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

    /// A connection that is open, from somebody at `listener`.
    fn guest(listener: &TcpListener) -> Guest {
        let config = FlowConfig {
            buffer_octets: super::super::BUFFER_OCTETS,
            ..FlowConfig::default()
        };
        let far = UdpSocket::bind(SocketAddr::from(LOCAL)).unwrap();
        let to = far.local_addr().unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (tcp, peer) = listener.accept().unwrap();
        let mut link = Link::entering(tcp, to, &config, Instant::ZERO).unwrap();
        let mut socket = Socket::connect(to, config.variant).unwrap();
        link.start(Instant::ZERO, &mut socket, to);
        let mut octets = new_octets();
        let n = far.recv(&mut octets).unwrap();
        let (call, _) = Header::parse(&octets[..n]).unwrap();
        let kinds = [Control::SYN, Control::ACK, Control::SACK_OPT, Control::SACK_REQ];
        let answer = Header {
            acknowledgement: call.sequence.wrapping_add(1),
            ..Header::new(call.protocol, kinds.into_iter().reduce(Control::with).unwrap())
        };
        link.packet(Instant::ZERO, &mut socket, to.into(), &answer.octets());
        Guest {
            peer,
            at: 0,
            next: 1,
            socket,
            link,
        }
    }

    #[test]
    fn what_has_ended_gives_way_where_all_places_are_taken() {
        let listener = TcpListener::bind(SocketAddr::from(LOCAL)).unwrap();
        let mut guests = vec![guest(&listener), guest(&listener)];
        let Guest { socket, link, .. } = &mut guests[0];
        assert_eq!(link.abort(Instant::ZERO, socket, LOCAL.into()), Some((0, 0)));
        let stays = guests[1].peer;
        for (most, ms, left) in [(3, 60_000, 2), (2, 999, 2), (2, 60_000, 1), (1, 60_000, 1)] {
            make_room(&mut guests, most, Instant::from_us(ms * 1_000));
            assert_eq!(guests.len(), left, "at {ms}, of {most}");
        }
        assert_eq!(guests[0].peer, stays);
    }
}
