//! The loop of the end that is called: one socket, a connection for each caller.

mod told;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use protocols::transport::{Event, Path, State, Transport};
use radio::{Duration, Instant};

use crate::TransferError;
use crate::claims::Claims;
use crate::door::{Called, Door, half_open};
use crate::flow::{Flow, FlowConfig};
use crate::receive::Receiving;
use crate::secure::Guard;
use crate::sink::Place;
use crate::socket::{Clock, Ends, Octets, Socket, new_octets, without_timer_slack};
pub use told::{Told, Until};

/// Connections at once; the calls of others are not answered. Each has two buffers of 4 MiB.
pub const MAX_CONNECTIONS: usize = 64;
const LOOK: Duration = Duration::from_ms(2);
const SHOW: Duration = Duration::from_ms(100);
/// How long the last guests are answered after their transfers have ended.
const FAREWELL: Duration = Duration::from_ms(500);
/// Datagrams taken between two looks at timers, when nobody new is taken in any more.
const BATCH: usize = 32;

struct Guest {
    /// Who it is, and which of our addresses he has called.
    ends: Ends,
    flow: Flow,
    guard: Option<Guard>,
    /// When its first datagram came.
    since: Instant,
    /// When its last datagram came.
    heard: Instant,
    receiving: Receiving,
    over: bool,
}

/// Receives for as long as `until` says, or until a transfer to standard output has ended in the middle. What goes wrong with a
/// transfer is told. When there are enough, nobody else is taken in or waited for: who still sends is reset, and who has sent
/// everything hears the rest.
///
/// # Errors
/// [`TransferError::Stopped`] if it was stopped before, with what had arrived kept.
pub fn serve(
    mut socket: Socket,
    config: &FlowConfig,
    place: &Place,
    until: Until,
    stop: &AtomicBool,
    mut tell: impl FnMut(Told<'_>),
) -> Result<(), TransferError> {
    without_timer_slack();
    let clock = Clock::default();
    let mut door = Door::new(config, MAX_CONNECTIONS);
    let mut rooms = [new_octets(), new_octets()];
    let mut guests: BTreeMap<SocketAddr, Guest> = BTreeMap::new();
    let mut claims = Claims::new(config.patience);
    let (mut good, mut bad, mut spoilt) = (0, 0, false);
    let mut show_at = Instant::ZERO;
    loop {
        door.take(
            &clock,
            &mut socket,
            &mut guests,
            &mut rooms,
            |peer, guard, now| Guest {
                ends: peer.into(),
                flow: Flow::listener(config, peer),
                guard,
                receiving: Receiving::new(place, peer),
                since: now,
                heard: now,
                over: false,
            },
        );
        if let Some((peer, stranger)) = door.stranger() {
            let why = TransferError::Stranger(stranger);
            tell(Told::TurnedAway { peer, why });
        }
        let now = clock.now();
        let shows = now >= show_at;
        if shows {
            show_at = now.after(SHOW);
        }
        let mut declined = 0;
        for guest in guests.values_mut() {
            let told = guest.turn(now, &mut socket, shows, &mut claims, &mut tell);
            match told {
                Some(true) => good += 1,
                Some(false) if guest.receiving.was_declined() => declined += 1,
                Some(false) => bad += 1,
                None => {}
            }
            // what another one would write behind a part of something else is of no use to anybody
            let written = *place == Place::Stdout && guest.receiving.has_given();
            spoilt |= told == Some(false) && written;
            if until.is_reached(good, bad) {
                break;
            }
        }
        // who is declined while another one sends must not end that one
        if !guests.values().any(Guest::is_under_way) {
            bad += declined;
        }
        let enough = until.is_reached(good, bad);
        guests.retain(|_, g| !(g.over && g.flow.state().is_over() || g.is_late(now)));
        if enough {
            tell(Told::Enough);
            part(
                &clock,
                &mut socket,
                &mut guests,
                &mut rooms,
                stop,
                &mut claims,
                &mut tell,
            );
            return Ok(());
        }
        let stopped = stop.load(Ordering::Relaxed);
        if stopped || spoilt {
            for guest in guests.values_mut() {
                guest.stop(now, &mut socket, &mut tell);
            }
            return if stopped {
                Err(TransferError::Stopped)
            } else {
                Ok(())
            };
        }
        let due = guests.values().filter_map(|g| g.flow.deadline()).min();
        let looks = guests.values().any(|g| !g.over && g.receiving.waits_for_sink());
        socket.wait(clock.now(), due, if looks { LOOK } else { SHOW });
    }
}

/// Goes on with those who have sent everything, and with nobody else, until they have parted or it takes too long. What is all here is
/// verified to the end, however long that takes.
fn part(
    clock: &Clock,
    socket: &mut Socket,
    guests: &mut BTreeMap<SocketAddr, Guest>,
    [octets, room]: &mut [Octets; 2],
    stop: &AtomicBool,
    claims: &mut Claims,
    tell: &mut impl FnMut(Told<'_>),
) {
    let mut end = clock.now().after(FAREWELL);
    loop {
        let now = clock.now();
        guests.retain(|_, g| g.stays(now, socket, tell));
        for guest in guests.values_mut() {
            guest.turn(now, socket, false, claims, tell);
        }
        guests.retain(|_, g| !(g.over && g.flow.state().is_over()));
        let verifies = guests.values().any(|g| !g.over && g.receiving.is_verified());
        if verifies {
            end = now.after(FAREWELL);
        }
        if guests.is_empty() || now >= end || stop.load(Ordering::Relaxed) {
            break;
        }
        let due = guests.values().filter_map(|g| g.flow.deadline()).min();
        let most = if verifies { LOOK } else { SHOW };
        socket.wait(now, due.map(|due| due.min(end)), most);
        for _ in 0..BATCH {
            let Some((datagram, ends)) = socket.receive(octets) else {
                break;
            };
            if let Some(guest) = guests.get_mut(&ends.peer) {
                guest.datagram(clock.now(), socket, ends, datagram, room);
            }
        }
    }
    for guest in guests
        .values_mut()
        .filter(|g| !g.over && g.receiving.is_offered())
    {
        guest.stop(clock.now(), socket, tell);
    }
}

impl Called for Guest {
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
        self.over
    }

    fn guard(&mut self) -> Option<&mut Guard> {
        self.guard.as_mut()
    }

    fn is_idle(&self) -> bool {
        half_open(self.flow.state()) || !self.over && !self.receiving.is_offered()
    }

    fn packet(&mut self, now: Instant, socket: &mut Socket, ends: Ends, packet: &[u8]) {
        self.heard = now;
        self.ends = ends;
        let path = &mut socket.path(ends, self.guard.as_mut());
        match self.flow.refusal(packet) {
            Some(reset) => {
                path.request(&reset);
                // it stays to be told again, should that have been lost, and nobody waits for it
                self.over = true;
            }
            None => self.flow.handle(now, Event::Indication(packet), path),
        }
    }
}

impl Guest {
    /// Whether it is a transfer that was taken, or may be, and has not ended.
    fn is_under_way(&self) -> bool {
        self.receiving.is_offered() && !self.receiving.was_declined() && !self.over
    }

    /// Goes on. Tells `Some` once, when the transfer has ended: true if it ended well. One that another has taken over has not.
    fn turn(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        shows: bool,
        claims: &mut Claims,
        tell: &mut impl FnMut(Told<'_>),
    ) -> Option<bool> {
        let peer = self.ends.peer;
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
            let path = &mut socket.path(self.ends, self.guard.as_mut());
            self.flow.handle(now, Event::Timer, path);
        }
        match ended {
            Some(Err(why)) if !self.receiving.is_offered() => {
                self.over = true;
                tell(Told::NoOffer { peer, why });
                None
            }
            Some(result) => {
                let taken_over = matches!(result, Err(TransferError::Replaced(_)));
                let good = result.is_ok();
                self.end(now, result, tell);
                (!taken_over).then_some(good)
            }
            None => {
                if shows && !self.over && self.receiving.is_offered() {
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
    fn stop(&mut self, now: Instant, socket: &mut Socket, tell: &mut impl FnMut(Told<'_>)) {
        self.reset(now, socket);
        // the sender may know it already
        self.tell_verdict(now, tell);
        if self.receiving.is_offered() && !self.over {
            self.end(now, Err(TransferError::Stopped), tell);
        }
    }

    /// There are enough transfers: whether this one has ended, too, so that only its sender has to hear so. Others are reset, and who
    /// has called is when he says something.
    fn stays(&mut self, now: Instant, socket: &mut Socket, tell: &mut impl FnMut(Told<'_>)) -> bool {
        if self.over || self.receiving.is_done() || half_open(self.flow.state()) {
            return true;
        }
        self.reset(now, socket);
        if self.receiving.is_offered() {
            self.end(now, Err(TransferError::Enough), tell);
        }
        false
    }

    /// Ends the connection at once; what was taken is written.
    fn reset(&mut self, now: Instant, socket: &mut Socket) {
        // to a call a reset would say that it is one of another transport
        if !half_open(self.flow.state()) {
            self.flow.abort(now);
            let path = &mut socket.path(self.ends, self.guard.as_mut());
            self.flow.handle(now, Event::Timer, path);
        }
        self.receiving.close();
    }

    /// Tells what the sender was told, if that has not been told.
    fn tell_verdict(&mut self, now: Instant, tell: &mut impl FnMut(Told<'_>)) {
        if !self.over
            && let Some(verdict) = self.receiving.verdict()
        {
            self.end(now, verdict, tell);
        }
    }

    fn end(&mut self, now: Instant, result: Result<(), TransferError>, tell: &mut impl FnMut(Told<'_>)) {
        self.over = true;
        tell(Told::Ended {
            peer: self.ends.peer,
            name: &self.receiving.name,
            elapsed: now.since(self.since),
            progress: self.receiving.progress(&self.flow),
            result,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::flow::Variant;
    use crate::sink::Sink;

    const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

    /// How a transfer ends that is being verified when others were enough, and until somebody says that it is whole.
    fn ends_while_it_is_verified(verified: mpsc::Receiver<()>, stop: bool) -> Vec<Result<(), TransferError>> {
        let peer = SocketAddr::from(([127, 0, 0, 1], 9));
        let guest = Guest {
            ends: peer.into(),
            flow: Flow::listener(&FlowConfig::default(), peer),
            guard: None,
            since: Instant::ZERO,
            heard: Instant::ZERO,
            receiving: Receiving::verifying(peer, Sink::verified_when(verified)),
            over: false,
        };
        let mut ended = Vec::new();
        part(
            &Clock::default(),
            &mut Socket::bind(LOCAL.into(), Variant::Sdmac).unwrap(),
            &mut BTreeMap::from([(peer, guest)]),
            &mut [new_octets(), new_octets()],
            &AtomicBool::new(stop),
            &mut Claims::new(FlowConfig::default().patience),
            &mut |told| {
                if let Told::Ended { result, .. } = told {
                    ended.push(result);
                }
            },
        );
        ended
    }

    /// A long file takes long to verify.
    #[test]
    fn what_is_being_verified_is_waited_for() {
        let (tell, verified) = mpsc::channel();
        let verifies = thread::spawn(move || {
            thread::sleep(std::time::Duration::from_nanos(3 * FAREWELL.as_ns()));
            let _ = tell.send(());
        });
        let ended = ends_while_it_is_verified(verified, false);
        assert!(matches!(ended[..], [Ok(())]), "{ended:?}");
        verifies.join().unwrap();
    }

    #[test]
    fn who_is_stopped_waits_for_nothing_and_tells_so() {
        let (_tell, verified) = mpsc::channel();
        let ended = ends_while_it_is_verified(verified, true);
        assert!(matches!(ended[..], [Err(TransferError::Stopped)]), "{ended:?}");
    }
}
