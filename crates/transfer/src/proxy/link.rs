//! One connection: a flow of ATP and a connection of TCP, with what is on its way between them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use protocols::transport::{Event, Failure, Path, State, Transport};
use radio::{Duration, Instant};
use rustix::event::PollFlags;

use super::pending::Pending;
use super::tcp::Tcp;
use super::try_for;
use super::watch::{Watch, ask};
use crate::TransferError;
use crate::door::{Called, half_open};
use crate::flow::{Flow, FlowConfig};
use crate::secure::{Guard, OVERHEAD_OCTETS};
use crate::socket::{Ends, Here, Socket};

/// Rounds of one link between two looks at the others.
const ROUNDS: usize = 8;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Link {
    /// Which of our addresses was called; `None`: it calls.
    here: Option<Here>,
    flow: Flow,
    guard: Option<Guard>,
    tcp: Tcp,
    watch: Watch,
    /// From TCP to ATP.
    up: Pending,
    /// From ATP to TCP.
    down: Pending,
    /// TCP has ended its direction, and ATP has been told.
    finished: bool,
    /// ATP has ended its direction, and TCP has been told.
    shut: bool,
    /// Why nothing comes back from a program that had ended its direction.
    gone: Option<io::Error>,
    pub octets: (u64, u64),
    /// Since when it is there, or its latest call.
    since: Instant,
    /// When its last packet came.
    heard: Instant,
    /// Its flow was called, not calling.
    called: bool,
    config: FlowConfig,
    /// The flow has been a connection.
    was_open: bool,
    told: bool,
}

impl Called for Link {
    fn state(&self) -> State {
        self.flow.state()
    }

    fn since(&self) -> Instant {
        self.since
    }

    fn heard(&self) -> Instant {
        self.heard
    }

    fn repeats_within(&self) -> Duration {
        self.flow.repeats_within()
    }

    fn is_told(&self) -> bool {
        self.told
    }

    fn guard(&mut self) -> Option<&mut Guard> {
        self.guard.as_mut()
    }

    fn agreed(&mut self, now: Instant, socket: &mut Socket, ends: Ends) {
        self.since = now;
        let path = &mut socket.path(ends, self.guard.as_mut());
        self.flow.handle(now, Event::Start, path);
    }

    fn packet(&mut self, now: Instant, socket: &mut Socket, ends: Ends, packet: &[u8]) {
        self.heard = now;
        self.here = ends.here;
        socket.heard();
        let path = &mut socket.path(ends, self.guard.as_mut());
        match self.flow.refusal(packet) {
            Some(reset) => path.request(&reset),
            None => self.flow.handle(now, Event::Indication(packet), path),
        }
        // it may end with the next one
        self.was_open |= self.flow.state() == State::Open;
    }
}

impl Link {
    /// From a connection that was accepted: calls `peer`.
    pub fn entering(
        tcp: TcpStream,
        peer: SocketAddr,
        config: &FlowConfig,
        now: Instant,
    ) -> Result<Link, TransferError> {
        let guard = config.guard()?;
        ask(&tcp, config.patience).map_err(wrong)?;
        let flow = Flow::caller(config, peer);
        Ok(Link::new(flow, guard, Tcp::Open(tcp), config, now))
    }

    /// From a call of `peer`: connects when that has become a connection.
    pub fn leaving(
        peer: SocketAddr,
        to: Arc<[SocketAddr]>,
        guard: Option<Guard>,
        config: &FlowConfig,
        now: Instant,
    ) -> Link {
        Link {
            called: true,
            ..Link::new(Flow::listener(config, peer), guard, Tcp::Wanted(to), config, now)
        }
    }

    fn new(flow: Flow, guard: Option<Guard>, tcp: Tcp, config: &FlowConfig, now: Instant) -> Link {
        Link {
            here: None,
            flow,
            guard,
            tcp,
            watch: Watch::default(),
            up: Pending::new(),
            down: Pending::new(),
            finished: false,
            shut: false,
            gone: None,
            octets: (0, 0),
            since: now,
            heard: now,
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

    /// Whether the peer that is called does not answer, or says no.
    pub fn is_in_vain(&self, now: Instant, socket: &Socket) -> bool {
        let late = now.since(self.since) >= try_for(&self.config);
        let in_vain = match self.flow.state() {
            State::Opening => late || socket.is_refused(),
            State::Failed(_) => true,
            _ => false,
        };
        in_vain && !self.was_open && !self.told
    }

    /// Begins anew, to call another address, `peer`: nothing of TCP has gone into the flow yet.
    pub fn anew(&mut self, now: Instant, peer: SocketAddr) {
        // without random numbers the old handshake is as good as any, and fails as it would
        if let Ok(guard) = self.config.guard() {
            self.guard = guard;
        }
        self.flow = Flow::caller(&self.config, peer);
        self.since = now;
    }

    /// When to be called again, if nothing comes before.
    pub fn deadline(&self) -> Option<Instant> {
        let calls = self.guard.as_ref().and_then(Guard::deadline);
        [self.flow.deadline(), calls].into_iter().flatten().min()
    }

    /// What of TCP has to be waited for.
    pub fn interest(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let (stream, flags) = match &self.tcp {
            Tcp::Calling(calling) => (calling.stream(), PollFlags::OUT),
            Tcp::Open(stream) => {
                let mut flags = PollFlags::empty();
                let takes = self.was_open && self.up.is_empty() && !self.finished;
                flags.set(PollFlags::IN, takes);
                flags.set(PollFlags::OUT, !self.down.is_empty());
                (stream, flags)
            }
            _ => return None,
        };
        (!flags.is_empty()).then(|| (stream.as_fd(), flags))
    }

    /// Whether it can be forgotten.
    pub fn is_over(&self, now: Instant) -> bool {
        self.called && self.is_late(now) || self.told && self.flow.state().is_over()
    }

    /// Ends it at once, both ways. What it has carried, if it was a connection until now.
    pub fn abort(&mut self, now: Instant, socket: &mut Socket, peer: SocketAddr) -> Option<(u64, u64)> {
        let was_one = !self.told && (self.was_open || !self.called);
        self.told = true;
        self.tcp.reset();
        // to a call a reset would say that it is one of another transport
        if !half_open(self.flow.state()) {
            self.flow.abort(now);
            self.timer(now, socket, peer);
        }
        was_one.then_some(self.octets)
    }

    fn timer(&mut self, now: Instant, socket: &mut Socket, peer: SocketAddr) {
        if self.flow.deadline().is_some_and(|t| t <= now) {
            let here = self.here;
            let path = &mut socket.path(Ends { peer, here }, self.guard.as_mut());
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
                    self.tcp.reset();
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
        let waits = half_open(self.flow.state());
        let calls = waits && !matches!(self.tcp, Tcp::Wanted(_));
        if calls
            && self.guard.as_ref().is_none_or(Guard::is_open)
            && now.since(self.since) >= self.config.patience
        {
            return Err(Failure::NoAnswer.into());
        }
        if let State::Failed(why) = self.flow.state() {
            if why == Failure::PeerSilent && socket.was_refused() {
                return Err(TransferError::FarGone(peer));
            }
            let overhead = self.config.key.map_or(0, |_| OVERHEAD_OCTETS);
            // only a call can be refused
            let was_open = self.was_open || self.called;
            return Err(TransferError::of(why, peer, was_open, overhead));
        }
        self.was_open |= !waits;
        if calls && socket.is_refused() {
            return Err(TransferError::NobodyListens(peer));
        }
        // of a socket with many peers the network says nothing like that
        if self.flow.state() == State::Open && socket.is_gone(now) {
            return Err(TransferError::FarGone(peer));
        }
        self.look(now).map_err(wrong)?;
        if waits {
            return Ok(None);
        }
        self.tcp.connect(now, &self.config)?;
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

    /// Whether the program is still there: it is not always read or written, and not waited for then. What has come from it goes on to the other one first.
    fn look(&mut self, now: Instant) -> io::Result<()> {
        if let Tcp::Open(stream) = &self.tcp
            && !(self.finished && self.shut)
            && let Err(why) = self.watch.look(now, stream, self.config.patience)
        {
            let has_closed = matches!(
                why.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
            );
            match self.finished {
                // its kernel does not know it any more, and does not have to; what is sent to it fails by itself
                true if has_closed => {}
                true => self.gone = Some(why),
                false => return Err(why),
            }
        }
        let has_gone_on = self.flow.acknowledged_octets() >= self.octets.0;
        self.gone.take_if(|_| has_gone_on).map_or(Ok(()), Err)
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
}

fn wrong(why: io::Error) -> TransferError {
    TransferError::io("the connection of TCP", why)
}

/// What does not block.
fn ready(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(n) => Ok(Some(n)),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(e) => Err(e),
    }
}
