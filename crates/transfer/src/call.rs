//! The loop of the end that calls: one connection, one transfer.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use protocols::transport::wire::MAX_PACKET_OCTETS;
use protocols::transport::{Event, State, Transport};
use radio::{Duration, Instant};

use crate::flow::{Flow, FlowConfig};
use crate::secure::{Guard, Opened};
use crate::send::Sending;
use crate::socket::{Clock, Socket, without_timer_slack};
use crate::{Progress, TransferError};

/// Between two looks at things that do not wake the loop: a source, Ctrl-C.
const LOOK: Duration = Duration::from_ms(2);
/// Between two calls of `shown`.
const SHOW: Duration = Duration::from_ms(100);
/// How long the end of a transfer that is done is waited for.
const FAREWELL: Duration = Duration::from_ms(1_000);
/// Datagrams taken between two looks at timers.
const BATCH: usize = 32;

/// Sends to `peer`, and shows how far it is ten times a second.
///
/// # Errors
/// Why it did not work.
pub fn send(
    peer: SocketAddr,
    config: &FlowConfig,
    mut sending: Sending,
    stop: &AtomicBool,
    mut shown: impl FnMut(&Progress),
) -> Result<Progress, TransferError> {
    without_timer_slack();
    let mut socket = Socket::connect(peer).map_err(|e| TransferError::io(peer, e))?;
    let mut flow = Flow::caller(config);
    let clock = Clock::default();
    let mut guard = match &config.key {
        None => None,
        Some(key) => {
            Some(Guard::caller(key, config.patience).map_err(|e| TransferError::Key(e.to_string()))?)
        }
    };
    let mut octets = [0; MAX_PACKET_OCTETS + 1];
    let mut opened = [0; MAX_PACKET_OCTETS + 1];
    if guard.is_none() {
        flow.handle(clock.now(), Event::Start, &mut socket.path(peer, None));
    }
    let mut show_at = Instant::ZERO;
    let mut done_at: Option<Instant> = None;
    loop {
        for _ in 0..BATCH {
            let Some((datagram, _)) = socket.receive(&mut octets) else {
                break;
            };
            let packet = match &mut guard {
                None => datagram,
                Some(guard) => match guard.open(datagram, &mut opened) {
                    Opened::Packet(n) => &opened[..n],
                    Opened::Handshake(_) => {
                        flow.handle(clock.now(), Event::Start, &mut socket.path(peer, Some(guard)));
                        continue;
                    }
                    Opened::Nothing => continue,
                },
            };
            let path = &mut socket.path(peer, guard.as_mut());
            flow.handle(clock.now(), Event::Indication(packet), path);
        }
        if let Some(guard) = &mut guard
            && let Some(call) = guard
                .call(clock.now())
                .map_err(|_| TransferError::Unanswered(peer))?
        {
            socket.send(peer, call);
        }
        let now = clock.now();
        let refused = |e: &io::Error| e.kind() == io::ErrorKind::ConnectionRefused;
        if flow.state() == State::Opening && socket.complaint.as_ref().is_some_and(refused) {
            return Err(TransferError::NobodyListens(peer));
        }
        if done_at.is_none() {
            match sending.turn(now, &mut flow) {
                Ok(done) => done_at = done.then_some(now),
                Err(why) => {
                    flow.abort(now);
                    flow.handle(now, Event::Timer, &mut socket.path(peer, guard.as_mut()));
                    return Err(explained(why, &mut socket, peer));
                }
            }
        }
        if stop.load(Ordering::Relaxed) && done_at.is_none() {
            flow.abort(now);
            flow.handle(now, Event::Timer, &mut socket.path(peer, guard.as_mut()));
            return Err(TransferError::Stopped);
        }
        if flow.deadline().is_some_and(|t| t <= now) {
            flow.handle(now, Event::Timer, &mut socket.path(peer, guard.as_mut()));
        }
        if now >= show_at {
            shown(&sending.progress(&flow));
            show_at = now.after(SHOW);
        }
        let farewell = done_at.is_some_and(|at| now > at.after(FAREWELL));
        if done_at.is_some() && (farewell || flow.state() == State::Lingering || flow.state().is_over()) {
            return Ok(sending.progress(&flow));
        }
        let most = if sending.waits_for_source() { LOOK } else { SHOW };
        let calls = guard.as_ref().and_then(Guard::deadline);
        let until = [flow.deadline(), calls].into_iter().flatten().min();
        socket.wait(clock.now(), until, most);
    }
}

/// A connection that failed because the network said so says what the network said.
fn explained(why: TransferError, socket: &mut Socket, peer: SocketAddr) -> TransferError {
    match (why, socket.complaint.take()) {
        (TransferError::Connection(_), Some(cause)) => TransferError::io(peer, cause),
        (why, _) => why,
    }
}
