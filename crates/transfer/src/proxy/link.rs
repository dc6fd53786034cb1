//! One connection: a flow of ATP and a connection of TCP, with what is on its way between them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use protocols::transport::{Event, Failure, Path, State, Transport};
use radio::Instant;
use rustix::event::PollFlags;
use rustix::net::sockopt::{set_socket_linger, socket_error};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::TransferError;
use crate::door::is_late;
use crate::flow::{Flow, FlowConfig};
use crate::secure::{Guard, OVERHEAD_OCTETS, Opened};
use crate::socket::Socket;

/// Octets that wait between the two, each way.
const ROOM: usize = 1 << 14;
/// Rounds of one link between two looks at the others.
const ROUNDS: usize = 8;

/// Octets taken from one side that the other has no room for yet.
#[derive(Debug)]
struct Pending {
    octets: Box<[u8]>,
    from: usize,
    to: usize,
}

impl Pending {
    fn new() -> Self {
        Pending {
            octets: vec![0; ROOM].into(),
            from: 0,
            to: 0,
        }
    }
    fn is_empty(&self) -> bool {
        self.from == self.to
    }
    fn filled(&mut self, n: usize) {
        (self.from, self.to) = (0, n);
    }
    fn rest(&self) -> &[u8] {
        &self.octets[self.from..self.to]
    }
}

/// The TCP side.
#[derive(Debug)]
enum Tcp {
    /// Not called yet: where it leads.
    Wanted(SocketAddr),
    Calling(TcpStream, SocketAddr),
    Open(TcpStream),
    Gone,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Link {
    flow: Flow,
    guard: Option<Guard>,
    tcp: Tcp,
    /// From TCP to ATP.
    up: Pending,
    /// From ATP to TCP.
    down: Pending,
    /// TCP has ended its direction, and ATP has been told.
    finished: bool,
    /// ATP has ended its direction, and TCP has been told.
    shut: bool,
    pub octets: (u64, u64),
    /// Since when it is there.
    pub since: Instant,
    /// Its flow was called, not calling.
    called: bool,
    config: FlowConfig,
    /// The flow has been a connection.
    was_open: bool,
    told: bool,
}

impl Link {
    /// From a connection that was accepted: calls.
    pub fn entering(tcp: TcpStream, config: &FlowConfig, now: Instant) -> Result<Link, TransferError> {
        let guard = config.guard()?;
        let tcp = Tcp::Open(tcp);
        Ok(Link::new(Flow::caller(config), guard, tcp, config, now))
    }

    /// From a call: connects when that has become a connection.
    pub fn leaving(to: SocketAddr, guard: Option<Guard>, config: &FlowConfig, now: Instant) -> Link {
        Link {
            called: true,
            ..Link::new(Flow::listener(config), guard, Tcp::Wanted(to), config, now)
        }
    }

    fn new(flow: Flow, guard: Option<Guard>, tcp: Tcp, config: &FlowConfig, now: Instant) -> Link {
        Link {
            flow,
            guard,
            tcp,
            up: Pending::new(),
            down: Pending::new(),
            finished: false,
            shut: false,
            octets: (0, 0),
            since: now,
            called: false,
            config: *config,
            was_open: false,
            told: false,
        }
    }

    /// The flow calls, or, with a key, the handshake begins.
    pub fn start(&mut self, now: Instant, socket: &mut Socket, peer: SocketAddr) {
        if self.guard.is_none() {
            self.flow.handle(now, Event::Start, &mut socket.path(peer, None));
        }
    }

    /// A datagram of the peer.
    pub fn datagram(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        peer: SocketAddr,
        datagram: &[u8],
        room: &mut crate::socket::Octets,
    ) {
        let packet = match &mut self.guard {
            None => datagram,
            Some(guard) => match guard.open(datagram, room) {
                Opened::Packet(n) => &room[..n],
                Opened::Handshake(Some(answer)) => return socket.send(peer, &answer),
                Opened::Handshake(None) => {
                    self.since = now;
                    let path = &mut socket.path(peer, Some(guard));
                    return self.flow.handle(now, Event::Start, path);
                }
                Opened::Nothing => return,
            },
        };
        self.packet(now, socket, peer, packet);
    }

    /// A packet of the peer, opened.
    pub fn packet(&mut self, now: Instant, socket: &mut Socket, peer: SocketAddr, packet: &[u8]) {
        let path = &mut socket.path(peer, self.guard.as_mut());
        match self.config.variant.refusal(packet) {
            Some(reset) => path.request(&reset),
            None => self.flow.handle(now, Event::Indication(packet), path),
        }
    }

    /// How far the flow is.
    pub fn state(&self) -> State {
        self.flow.state()
    }

    /// When to be called again, if nothing comes before.
    pub fn deadline(&self) -> Option<Instant> {
        let calls = self.guard.as_ref().and_then(Guard::deadline);
        [self.flow.deadline(), calls].into_iter().flatten().min()
    }

    /// What of TCP has to be waited for.
    pub fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let (stream, flags) = match &self.tcp {
            Tcp::Calling(stream, _) => (stream, PollFlags::OUT),
            Tcp::Open(stream) => {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, self.up.is_empty() && !self.finished);
                flags.set(PollFlags::OUT, !self.down.is_empty());
                (stream, flags)
            }
            _ => return None,
        };
        (!flags.is_empty()).then(|| (stream.as_fd(), flags))
    }

    /// Whether it can be forgotten.
    pub fn is_over(&self, now: Instant) -> bool {
        let late = self.called && is_late(self.flow.state(), self.since, now);
        late || self.told && self.flow.state().is_over()
    }

    /// Ends it at once, both ways.
    pub fn abort(&mut self, now: Instant, socket: &mut Socket, peer: SocketAddr) {
        self.reset_tcp();
        self.flow.abort(now);
        self.timer(now, socket, peer);
    }

    fn timer(&mut self, now: Instant, socket: &mut Socket, peer: SocketAddr) {
        if self.flow.deadline().is_some_and(|t| t <= now) {
            let path = &mut socket.path(peer, self.guard.as_mut());
            self.flow.handle(now, Event::Timer, path);
        }
    }

    /// Goes on as far as it can. Tells once how it has ended.
    pub fn turn(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        peer: SocketAddr,
    ) -> Option<Result<(), TransferError>> {
        let ended = if self.told {
            None
        } else {
            self.move_on(now, socket, peer).transpose()
        };
        if let Some(result) = &ended {
            self.told = true;
            match result {
                Ok(()) => self.tcp = Tcp::Gone,
                Err(_) => {
                    self.reset_tcp();
                    self.flow.abort(now);
                }
            }
        }
        self.timer(now, socket, peer);
        ended
    }

    /// `Some` when both directions have ended well.
    fn move_on(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        peer: SocketAddr,
    ) -> Result<Option<()>, TransferError> {
        if let Some(guard) = &mut self.guard
            && let Some(call) = guard.call(now).map_err(|_| TransferError::Unanswered(peer))?
        {
            socket.send(peer, call);
        }
        let waits = matches!(self.flow.state(), State::Opening | State::Listening);
        let calls = waits && !matches!(self.tcp, Tcp::Wanted(_));
        if calls
            && self.guard.as_ref().is_none_or(Guard::is_open)
            && now.since(self.since) >= self.config.patience
        {
            return Err(Failure::NoAnswer.into());
        }
        if let State::Failed(why) = self.flow.state() {
            let overhead = self.config.key.map_or(0, |_| OVERHEAD_OCTETS);
            return Err(TransferError::of(why, peer, self.was_open, overhead));
        }
        self.was_open |= !waits;
        let refused = |e: &io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
        if calls && socket.complaint.as_ref().is_some_and(refused) {
            return Err(TransferError::NobodyListens(peer));
        }
        self.connect()?;
        let wrong = |e: io::Error| TransferError::io("the connection of TCP", e);
        for _ in 0..ROUNDS {
            let up = self.take_up(now).map_err(wrong)?;
            let down = self.take_down(now).map_err(wrong)?;
            if !up && !down {
                break;
            }
        }
        let done = matches!(self.flow.state(), State::Lingering | State::Closed);
        Ok((done && self.finished && self.shut).then_some(()))
    }

    /// Calls by TCP when the flow is a connection, and looks how that went.
    fn connect(&mut self) -> Result<(), TransferError> {
        let is_open = !matches!(self.flow.state(), State::Listening | State::Opening);
        match &self.tcp {
            Tcp::Wanted(to) if is_open => {
                let to = *to;
                let stream = call(to).map_err(|e| TransferError::io(to, e))?;
                self.tcp = Tcp::Calling(stream, to);
            }
            Tcp::Calling(stream, to) => {
                let to = *to;
                let failed = |e: io::Error| TransferError::io(to, e);
                match socket_error(stream) {
                    Ok(Ok(())) => {}
                    Ok(Err(e)) | Err(e) => return Err(failed(e.into())),
                }
                if stream.peer_addr().is_ok()
                    && let Tcp::Calling(stream, _) = std::mem::replace(&mut self.tcp, Tcp::Gone)
                {
                    self.tcp = Tcp::Open(stream);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// From TCP to ATP; true if something has moved.
    fn take_up(&mut self, now: Instant) -> io::Result<bool> {
        let Tcp::Open(stream) = &mut self.tcp else {
            return Ok(false);
        };
        if self.up.is_empty() && !self.finished {
            match ready(stream.read(&mut self.up.octets))? {
                None => return Ok(false),
                Some(0) => {
                    self.finished = true;
                    self.flow.finish(now);
                    return Ok(true);
                }
                Some(n) => {
                    self.octets.0 += n as u64;
                    self.up.filled(n);
                }
            }
        }
        let n = self.flow.write(now, self.up.rest());
        self.up.from += n;
        Ok(n > 0)
    }

    /// From ATP to TCP; true if something has moved.
    fn take_down(&mut self, now: Instant) -> io::Result<bool> {
        let Tcp::Open(stream) = &mut self.tcp else {
            return Ok(false);
        };
        if self.down.is_empty() {
            let n = self.flow.read(now, &mut self.down.octets);
            self.down.filled(n);
            if n == 0 {
                if self.flow.is_exhausted() && !self.shut {
                    self.shut = true;
                    // a peer that is gone already has heard enough
                    match stream.shutdown(Shutdown::Write) {
                        Err(e) if e.kind() != io::ErrorKind::NotConnected => return Err(e),
                        _ => {}
                    }
                }
                return Ok(false);
            }
        }
        match ready(stream.write(self.down.rest()))? {
            None => Ok(false),
            Some(n) => {
                self.down.from += n;
                self.octets.1 += n as u64;
                Ok(n > 0)
            }
        }
    }

    /// The program at the other end of TCP learns that this is no good end.
    fn reset_tcp(&mut self) {
        if let Tcp::Open(stream) = std::mem::replace(&mut self.tcp, Tcp::Gone) {
            // without it the end would look like that of a stream that is whole
            let _ = set_socket_linger(&stream, Some(std::time::Duration::ZERO));
        }
    }
}

/// What does not block.
fn ready(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Begins to connect, without waiting for the answer.
fn call(to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&fd, &to) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
        Err(e) => return Err(e.into()),
    }
    let stream = TcpStream::from(fd);
    stream.set_nodelay(true)?;
    Ok(stream)
}
