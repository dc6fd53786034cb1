//! The loop of the end that is called: one socket, a connection for each caller.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use protocols::transport::wire::{HEADER_OCTETS, MAX_PACKET_OCTETS};
use protocols::transport::{Event, Path, State, Transport};
use radio::{Duration, Instant};

use crate::claims::Claims;
use crate::door::{Door, is_late, make_room};
use crate::flow::{Flow, FlowConfig};
use crate::receive::Receiving;
use crate::secure::{Guard, Opened};
use crate::sink::Place;
use crate::socket::{Clock, Socket, without_timer_slack};
use crate::{Progress, TransferError};

/// Connections at once; the calls of others are not answered. Each has two buffers of 4 MiB.
pub const MAX_CONNECTIONS: usize = 64;
const LOOK: Duration = Duration::from_ms(2);
const SHOW: Duration = Duration::from_ms(100);
const BATCH: usize = 32;
/// How long the last guests are answered after their transfers have ended.
const FAREWELL: Duration = Duration::from_ms(500);

/// What a server tells.
#[derive(Debug)]
pub enum Told<'a> {
    /// How far a transfer is, ten times a second.
    Progress {
        /// Whose.
        peer: SocketAddr,
        /// Its name, empty while that is not known.
        name: &'a str,
        /// Since its first datagram came.
        elapsed: Duration,
        /// How far.
        progress: Progress,
    },
    /// A transfer has ended.
    Ended {
        /// Whose.
        peer: SocketAddr,
        /// Its name.
        name: &'a str,
        /// Since its first datagram came.
        elapsed: Duration,
        /// How far it came.
        progress: Progress,
        /// How.
        result: Result<(), TransferError>,
    },
}

struct Guest {
    flow: Flow,
    guard: Option<Guard>,
    /// When its first datagram came.
    since: Instant,
    /// When its last datagram came.
    heard: Instant,
    receiving: Receiving,
    over: bool,
}

/// Receives until `count` transfers have ended well (`None`: until it is stopped), or one to standard output has ended in the
/// middle. What goes wrong with a transfer is told.
///
/// # Errors
/// [`TransferError::Stopped`] if it was stopped before `count` was reached, with what had arrived kept.
pub fn serve(
    mut socket: Socket,
    config: &FlowConfig,
    place: &Place,
    count: Option<u64>,
    stop: &AtomicBool,
    mut tell: impl FnMut(Told<'_>),
) -> Result<(), TransferError> {
    without_timer_slack();
    let clock = Clock::default();
    let mut door = Door::new(config);
    let mut octets = [0; MAX_PACKET_OCTETS + 1];
    let mut opened = [0; MAX_PACKET_OCTETS + 1];
    let mut guests: BTreeMap<SocketAddr, Guest> = BTreeMap::new();
    let mut claims = Claims::new(config.patience);
    let (mut good, mut spoilt, mut show_at, mut leave_at) = (0, false, Instant::ZERO, None);
    loop {
        for _ in 0..BATCH {
            let Some((datagram, peer)) = socket.receive(&mut octets) else {
                break;
            };
            if !guests.contains_key(&peer) {
                let now = clock.now();
                let Some((guard, packet)) = door.admit(now, &mut socket, peer, datagram, &mut opened) else {
                    continue;
                };
                if !make_room(&mut guests, MAX_CONNECTIONS, now, |g| (g.flow.state(), g.since)) {
                    door.turn_away(now, peer, guard);
                    continue;
                }
                let guest = guests.entry(peer).or_insert(Guest {
                    flow: Flow::listener(config),
                    guard,
                    receiving: Receiving::new(place, peer),
                    since: now,
                    heard: now,
                    over: false,
                });
                let refusal = config.variant.refusal(packet);
                guest.packet(now, &mut socket, peer, packet, refusal.as_ref());
                continue;
            }
            let Some(guest) = guests.get_mut(&peer) else {
                continue;
            };
            let packet = match &mut guest.guard {
                None => datagram,
                Some(guard) => match guard.open(datagram, &mut opened) {
                    Opened::Packet(n) => &opened[..n],
                    Opened::Handshake(answer) => {
                        if let Some(answer) = answer {
                            socket.send(peer, &answer);
                        }
                        continue;
                    }
                    Opened::Nothing => continue,
                },
            };
            let refusal = config.variant.refusal(packet);
            guest.packet(clock.now(), &mut socket, peer, packet, refusal.as_ref());
        }
        let now = clock.now();
        let shows = now >= show_at;
        if shows {
            show_at = now.after(SHOW);
        }
        for (peer, guest) in &mut guests {
            let told = guest.turn(now, &mut socket, *peer, shows, &mut claims, &mut tell);
            good += u64::from(told == Some(true));
            // what another one would write behind a part of something else is of no use to anybody
            let written = *place == Place::Stdout && guest.receiving.progress(&guest.flow).done > 0;
            spoilt |= told == Some(false) && written;
        }
        let late = |g: &Guest| is_late(g.flow.state(), g.since, now);
        guests.retain(|_, g| !(g.over && g.flow.state().is_over() || late(g)));
        if count.is_some_and(|n| good >= n) && guests.values().all(|g| g.over) {
            let end = *leave_at.get_or_insert(now.after(FAREWELL));
            if now >= end || guests.is_empty() {
                return Ok(());
            }
        }
        let stopped = stop.load(Ordering::Relaxed);
        if stopped || spoilt {
            for (peer, guest) in &mut guests {
                guest.stop(now, &mut socket, *peer, &mut tell);
            }
            return if stopped {
                Err(TransferError::Stopped)
            } else {
                Ok(())
            };
        }
        let until = guests.values().filter_map(|g| g.flow.deadline()).min();
        let looks = guests.values().any(|g| !g.over && g.receiving.waits_for_sink());
        socket.wait(clock.now(), until, if looks { LOOK } else { SHOW });
    }
}

impl Guest {
    /// A packet of the peer, opened; `refusal` if it is of another transport.
    fn packet(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        peer: SocketAddr,
        packet: &[u8],
        refusal: Option<&[u8; HEADER_OCTETS]>,
    ) {
        self.heard = now;
        let path = &mut socket.path(peer, self.guard.as_mut());
        match refusal {
            None => self.flow.handle(now, Event::Indication(packet), path),
            Some(reset) => {
                path.request(reset);
                // it stays to be told again, should that have been lost, and nobody waits for it
                self.over = true;
            }
        }
    }

    /// Goes on. Tells `Some` once, when the transfer has ended: true if it ended well.
    fn turn(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        peer: SocketAddr,
        shows: bool,
        claims: &mut Claims,
        tell: &mut impl FnMut(Told<'_>),
    ) -> Option<bool> {
        let mut ended = None;
        if !self.over {
            ended = match self.receiving.turn(now, &mut self.flow, self.heard, claims) {
                Ok(true) => Some(Ok(())),
                Ok(false) => None,
                Err(why) => {
                    self.flow.abort(now);
                    Some(Err(why))
                }
            };
        }
        if self.flow.deadline().is_some_and(|t| t <= now) {
            let path = &mut socket.path(peer, self.guard.as_mut());
            self.flow.handle(now, Event::Timer, path);
        }
        match ended {
            Some(result) => {
                let good = result.is_ok();
                self.end(now, peer, result, tell);
                Some(good)
            }
            None => {
                if shows && !self.over {
                    tell(Told::Progress {
                        peer,
                        name: &self.receiving.name,
                        elapsed: now.since(self.since),
                        progress: self.receiving.progress(&self.flow),
                    });
                }
                None
            }
        }
    }

    /// The server stops.
    fn stop(&mut self, now: Instant, socket: &mut Socket, peer: SocketAddr, tell: &mut impl FnMut(Told<'_>)) {
        let has_called = self.flow.state() != State::Listening;
        self.flow.abort(now);
        self.flow
            .handle(now, Event::Timer, &mut socket.path(peer, self.guard.as_mut()));
        self.receiving.close();
        if has_called && !self.over {
            self.end(now, peer, Err(TransferError::Stopped), tell);
        }
    }

    fn end(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        result: Result<(), TransferError>,
        tell: &mut impl FnMut(Told<'_>),
    ) {
        self.over = true;
        tell(Told::Ended {
            peer,
            name: &self.receiving.name,
            elapsed: now.since(self.since),
            progress: self.receiving.progress(&self.flow),
            result,
        });
    }
}
