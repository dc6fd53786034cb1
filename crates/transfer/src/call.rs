//! The loop of the end that calls: one connection, one transfer.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use protocols::transport::wire::Header;
use protocols::transport::{Event, Failure, State, Transport};
use radio::{Duration, Instant};

use crate::flow::{Flow, FlowConfig};
use crate::secure::{Guard, OVERHEAD_OCTETS, Opened};
use crate::send::Sending;
use crate::socket::{Clock, Octets, Socket, new_octets, without_timer_slack};
use crate::{Progress, TransferError};

/// Between two looks at things that do not wake the loop: a source, Ctrl-C.
const LOOK: Duration = Duration::from_ms(2);
/// Between two calls of `shown`.
const SHOW: Duration = Duration::from_ms(100);
/// How long the end of a transfer that is done is waited for.
const FAREWELL: Duration = Duration::from_ms(1_000);
/// Datagrams taken between two looks at timers.
const BATCH: usize = 32;

/// A transfer that went well.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Done {
    /// How far it came: all of it.
    pub progress: Progress,
    /// From the call to the verdict of the other end, without the farewell.
    pub took: Duration,
}

/// A feedback of the other end, and what this end has made of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Feedback {
    /// From the call to its arrival.
    pub after: Duration,
    /// The delay that it tells, us; 0 if nobody on the way knows it.
    pub delay_us: u32,
    /// Hops that data have passed.
    pub hops: u8,
    /// Time between two packets from now on, us.
    pub spacing_us: u32,
    /// Packets that were sent again until now.
    pub resent: u64,
}

/// What is shown of a transfer under way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Seen {
    /// How far it is: ten times a second, and in the end.
    Progress(Progress),
    /// Each feedback, as it comes.
    Feedback(Feedback),
}

/// Sends to `peer`, and shows how far it is. As long as `sending` has not begun, it can be sent to
/// another peer.
///
/// # Errors
/// Why it did not work.
pub fn send(
    peer: SocketAddr,
    config: &FlowConfig,
    sending: &mut Sending,
    stop: &AtomicBool,
    mut shown: impl FnMut(Seen),
) -> Result<Done, TransferError> {
    without_timer_slack();
    let mut call = Call::new(peer, config)?;
    let begun = call.clock.now();
    let result = call.run(sending, stop, &mut shown);
    let progress = sending.progress(&call.flow);
    shown(Seen::Progress(progress));
    match result {
        Ok(done_at) => Ok(Done {
            progress,
            took: done_at.since(begun),
        }),
        Err(why) => {
            let now = call.clock.now();
            call.flow.abort(now);
            call.handle(Event::Timer);
            Err(call.explained(why))
        }
    }
}

struct Call {
    peer: SocketAddr,
    patience: Duration,
    /// Octets that a datagram has more than a packet.
    overhead: usize,
    clock: Clock,
    socket: Socket,
    guard: Option<Guard>,
    flow: Flow,
    /// When the flow has called.
    called: Instant,
    was_open: bool,
}

impl Call {
    fn new(peer: SocketAddr, config: &FlowConfig) -> Result<Call, TransferError> {
        Ok(Call {
            peer,
            patience: config.patience,
            overhead: config.key.map_or(0, |_| OVERHEAD_OCTETS),
            clock: Clock::default(),
            socket: Socket::connect(peer, config.variant)
                .map_err(|e| TransferError::io("it cannot be called", e))?,
            guard: config.guard()?,
            flow: Flow::caller(config, peer),
            called: Instant::MAX,
            was_open: false,
        })
    }

    fn handle(&mut self, event: Event<'_>) {
        let path = &mut self.socket.path(self.peer, self.guard.as_mut());
        self.flow.handle(self.clock.now(), event, path);
    }

    fn start(&mut self) {
        self.called = self.clock.now();
        self.handle(Event::Start);
    }

    /// Tells when it was done.
    fn run(
        &mut self,
        sending: &mut Sending,
        stop: &AtomicBool,
        shown: &mut impl FnMut(Seen),
    ) -> Result<Instant, TransferError> {
        if self.guard.is_none() {
            self.start();
        }
        let (mut octets, mut opened) = (new_octets(), new_octets());
        let mut show_at = Instant::ZERO;
        let mut done_at: Option<Instant> = None;
        loop {
            self.receive(&mut octets, &mut opened, shown);
            if let Some(guard) = &mut self.guard
                && let Some(call) = guard
                    .call(self.clock.now())
                    .map_err(|_| TransferError::Unanswered(self.peer))?
            {
                self.socket.send(self.peer, call);
            }
            let now = self.clock.now();
            if self.flow.state() == State::Opening {
                self.is_called(now)?;
            } else if done_at.is_none() {
                self.was_open |= !self.flow.state().is_over();
                done_at = sending.turn(now, &mut self.flow)?.then_some(now);
                if done_at.is_none() && self.socket.is_gone(now) {
                    return Err(TransferError::Gone(self.peer));
                }
            }
            if stop.load(Ordering::Relaxed) && done_at.is_none() {
                return Err(TransferError::Stopped);
            }
            if self.flow.deadline().is_some_and(|t| t <= now) {
                self.handle(Event::Timer);
            }
            if now >= show_at {
                shown(Seen::Progress(sending.progress(&self.flow)));
                show_at = now.after(SHOW);
            }
            let state = self.flow.state();
            let parted = state == State::Lingering || state.is_over();
            if let Some(at) = done_at.filter(|at| parted || now > at.after(FAREWELL)) {
                return Ok(at);
            }
            let most = if sending.waits_for_source() { LOOK } else { SHOW };
            let calls = self.guard.as_ref().and_then(Guard::deadline);
            let until = [self.flow.deadline(), calls].into_iter().flatten().min();
            self.socket.wait(self.clock.now(), until, most);
        }
    }

    /// Takes what has come.
    fn receive(&mut self, octets: &mut Octets, opened: &mut Octets, shown: &mut impl FnMut(Seen)) {
        for _ in 0..BATCH {
            let Some((datagram, _)) = self.socket.receive(octets) else {
                break;
            };
            let packet = match &mut self.guard {
                None => datagram,
                Some(guard) => match guard.open(datagram, opened) {
                    Opened::Packet(n) => &opened[..n],
                    Opened::Handshake(_) => {
                        self.start();
                        continue;
                    }
                    Opened::Anew | Opened::Nothing => continue,
                },
            };
            self.socket.heard();
            self.handle(Event::Indication(packet));
            // it may end with the next one
            self.was_open |= self.flow.state() == State::Open;
            if let Some(feedback) = self.feedback(packet) {
                shown(Seen::Feedback(feedback));
            }
        }
    }

    /// What a packet has fed back, if it is a feedback.
    fn feedback(&self, packet: &[u8]) -> Option<Feedback> {
        let (header, _) = Header::parse(packet).ok()?;
        let Progress {
            spacing_us, resent, ..
        } = self.flow.progress();
        header.is_feedback().then(|| Feedback {
            after: self.clock.now().since(self.called),
            delay_us: header.delay_us,
            hops: header.hops,
            spacing_us,
            resent,
        })
    }

    /// Whether the call may still be answered.
    fn is_called(&self, now: Instant) -> Result<(), TransferError> {
        if self.socket.is_refused() {
            return Err(TransferError::NobodyListens(self.peer));
        }
        if now.since(self.called) >= self.patience {
            return Err(Failure::NoAnswer.into());
        }
        Ok(())
    }

    /// Of a silence the network may know more.
    fn explained(&mut self, why: TransferError) -> TransferError {
        let was_refused = self.socket.was_refused();
        let complaint = self.socket.complaint.take();
        match (why, complaint) {
            (TransferError::Connection(Failure::PeerSilent), _) if was_refused => {
                TransferError::Gone(self.peer)
            }
            (TransferError::Connection(why @ (Failure::NoAnswer | Failure::PeerSilent)), Some(cause)) => {
                TransferError::Network(why, cause)
            }
            (TransferError::Connection(why), _) => {
                TransferError::of(why, self.peer, self.was_open, self.overhead)
            }
            (why, _) => why,
        }
    }
}
