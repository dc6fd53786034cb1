//! Who may come in: callers, once they have shown that they hear the answer.
//!
//! Anybody can send a call again that he has recorded, from as many ports as he likes. With a key such a call costs a handshake
//! and a place among those who are [`waiting`](crate::waiting); a connection begins with the first packet that is sealed, and
//! who has not made the call cannot seal one. There are so many [handshakes](allowance) in a second, and as many for calls that somebody waits with
//! already: who sends one recorded call by the thousand takes no other caller's. Without a key a call is all there is to go by: a connection that does not come about
//! within [`HALF_OPEN`] is forgotten, and within a second if there is no room for others; one on which nothing has been said
//! gives way to others after four seconds. A host with several of these gives way at once to one with fewer, so that nobody keeps
//! others out from one address; who can forge addresses still can.

mod allowance;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use protocols::transport::State;
use protocols::transport::wire::{Control, Header};
use radio::{Duration, Instant};

use crate::flow::{FlowConfig, Variant};
use crate::secure::{self, Guard, Heard, Key, Opened};
use crate::socket::{Clock, Ends, Octets, Socket};
use crate::waiting::Waiting;
use allowance::Allowance;

/// How long a caller may take to show that he is there.
pub const HALF_OPEN: Duration = Duration::from_ms(10_000);
/// For so long he does not give way to others, if his host has no more such than theirs.
const LEAST: Duration = Duration::from_ms(1_000);
/// For so long one does not who has shown that he hears the answer, and has said nothing yet: what he says may get lost several times.
const LEAST_OPEN: Duration = Duration::from_ms(4_000);
/// Datagrams taken between two looks at timers.
const BATCH: usize = 32;

/// That a host's calls are not answered is told again after this, or for another reason.
const TOLD_AGAIN: Duration = Duration::from_ms(60_000);
/// Nobody's is told within this of another one's.
const TOLD_NEXT: Duration = Duration::from_ms(1_000);

/// Why a call is not answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stranger {
    /// It is made with another key.
    OtherKey,
    /// It is made without a key, and this end has one.
    NoKey,
    /// It is made with a key, and this end has none.
    Key,
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stranger::OtherKey => "it calls with another key",
            Stranger::NoKey => "it calls without a key",
            Stranger::Key => "it calls with a key, and this end has none",
        })
    }
}

/// A connection that was called.
pub trait Called {
    /// How far it is.
    fn state(&self) -> State;

    /// Since when it is there.
    fn since(&self) -> Instant;

    /// When its last packet came.
    fn heard(&self) -> Instant;

    /// Whether nothing more is done with what it has brought.
    fn is_told(&self) -> bool;

    /// What opens its datagrams; `None`: they are its packets.
    fn guard(&mut self) -> Option<&mut Guard>;

    /// The handshake has come to its end.
    fn agreed(&mut self, _now: Instant, _socket: &mut Socket, _ends: Ends) {}

    /// A datagram of the peer.
    fn datagram(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        ends: Ends,
        datagram: &[u8],
        room: &mut Octets,
    ) {
        let packet = match self.guard() {
            None => datagram,
            Some(guard) => match guard.open(datagram, room) {
                Opened::Packet(n) => &room[..n],
                Opened::Handshake(Some(answer)) => return socket.send(ends, &answer),
                Opened::Handshake(None) => return self.agreed(now, socket, ends),
                Opened::Anew | Opened::Nothing => return,
            },
        };
        self.packet(now, socket, ends, packet);
    }

    /// A packet of the peer, opened. What is sent to him goes from where this one came to.
    fn packet(&mut self, now: Instant, socket: &mut Socket, ends: Ends, packet: &[u8]);

    /// Whether it has done no more than call, so that it gives way to others when there is no room for them.
    fn is_idle(&self) -> bool {
        half_open(self.state())
    }

    /// In this time the other end repeats what it still wants to hear.
    fn repeats_within(&self) -> Duration;

    /// Whether it has ended, and the other end has been silent since, so that it need not be told once more. Then it gives way to others.
    fn is_done(&self, now: Instant) -> bool {
        let over = self.state().is_over() || self.state() == State::Lingering;
        over && self.is_told() && now.since(self.heard()) >= self.repeats_within()
    }

    /// Whether it has taken too long to come about.
    fn is_late(&self, now: Instant) -> bool {
        half_open(self.state()) && now.since(self.since()) > HALF_OPEN
    }
}

/// What becomes of a datagram of somebody who is not in.
enum Knock<'a> {
    /// Nothing.
    Unheard,
    /// Nothing, and this is why.
    Stranger(Stranger),
    /// This is to be sent back.
    Answer(Vec<u8>),
    /// A connection begins, with this packet.
    In(Option<Box<Guard>>, &'a [u8]),
}

/// See the [module](self).
#[derive(Debug)]
pub struct Door {
    key: Option<Key>,
    variant: Variant,
    /// Connections at once.
    most: usize,
    waiting: Waiting,
    /// Handshakes for new calls, and for those that somebody waits with already.
    handshakes: [Allowance; 2],
    /// Who was not answered, until somebody asks.
    stranger: Option<(SocketAddr, Stranger)>,
    /// Of which host that was last told, why, and when.
    told: Option<(IpAddr, Stranger, Instant)>,
}

impl Door {
    /// Opens to those with the key, or to anybody, until `most` are in.
    pub fn new(config: &FlowConfig, most: usize) -> Door {
        Door {
            key: config.key,
            variant: config.variant,
            most,
            waiting: Waiting::default(),
            handshakes: Default::default(),
            stranger: None,
            told: None,
        }
    }

    /// Somebody who called lately and was not answered, for the user to know: a host is named once a minute for the same reason, and
    /// nobody within a second of another one.
    pub fn stranger(&mut self) -> Option<(SocketAddr, Stranger)> {
        self.stranger.take()
    }

    fn note_stranger(&mut self, now: Instant, peer: SocketAddr, stranger: Stranger) {
        let again = |(host, why, at)| {
            let same = (host, why) == (peer.ip(), stranger);
            now.since(at) >= if same { TOLD_AGAIN } else { TOLD_NEXT }
        };
        if self.told.is_none_or(again) {
            self.told = Some((peer.ip(), stranger, now));
            self.stranger = Some((peer, stranger));
        }
    }

    /// Takes the datagrams that have come, [`BATCH`] at most: those of guests go to them, and who may come in becomes one, as
    /// `make` makes it.
    pub fn take<G: Called>(
        &mut self,
        clock: &Clock,
        socket: &mut Socket,
        guests: &mut BTreeMap<SocketAddr, G>,
        [octets, room]: &mut [Octets; 2],
        mut make: impl FnMut(SocketAddr, Option<Guard>, Instant) -> G,
    ) {
        for _ in 0..BATCH {
            let Some((datagram, ends)) = socket.receive(octets) else {
                break;
            };
            let peer = ends.peer;
            let now = clock.now();
            if let Some(guest) = guests.get_mut(&peer) {
                guest.datagram(now, socket, ends, datagram, room);
                continue;
            }
            match self.knock(now, peer, datagram, room) {
                Knock::Unheard => {}
                Knock::Stranger(stranger) => self.note_stranger(now, peer, stranger),
                Knock::Answer(answer) => socket.send(ends, &answer),
                Knock::In(guard, packet) if make_room(guests, self.most, peer, now) => {
                    let guest = make(peer, guard.map(|guard| *guard), now);
                    let guest = guests.entry(peer).or_insert(guest);
                    guest.packet(now, socket, ends, packet);
                }
                Knock::In(guard, _) => self.turn_away(now, peer, guard),
            }
        }
    }

    /// There is no room for a caller who was let in: he stays before the door, and may come in with a packet that he repeats.
    fn turn_away(&mut self, now: Instant, peer: SocketAddr, guard: Option<Box<Guard>>) {
        // he has just left his place there
        if let Some(guard) = guard {
            self.waiting.add(now, peer, guard, HALF_OPEN);
        }
    }

    fn knock<'a>(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        datagram: &'a [u8],
        room: &'a mut Octets,
    ) -> Knock<'a> {
        let Some(key) = &self.key else {
            return match self.variant.refusal(datagram) {
                Some(reset) => Knock::Answer(reset.to_vec()),
                None if calls(datagram) => Knock::In(None, datagram),
                None if secure::calls(datagram) => Knock::Stranger(Stranger::Key),
                // of a connection that was there before this program
                None => gone(datagram).map_or(Knock::Unheard, Knock::Answer),
            };
        };
        match self.waiting.open(now, peer, datagram, room) {
            (Opened::Packet(n), guard) => return Knock::In(guard, &room[..n]),
            (Opened::Handshake(answer), _) => return answer.map_or(Knock::Unheard, Knock::Answer),
            (Opened::Anew | Opened::Nothing, _) => {}
        }
        let Some(heard) = Heard::call(key, datagram) else {
            return if secure::calls(datagram) {
                Knock::Stranger(Stranger::OtherKey)
            } else if calls(datagram) {
                Knock::Stranger(Stranger::NoKey)
            } else {
                Knock::Unheard
            };
        };
        let waits = usize::from(self.waiting.has(datagram));
        if !self.handshakes[waits].take(now) {
            return Knock::Unheard;
        }
        let Some((guard, answer)) = heard.answer() else {
            return Knock::Unheard;
        };
        self.waiting.add(now, peer, Box::new(guard), HALF_OPEN);
        Knock::Answer(answer)
    }
}

/// Whether it is a call still, and no connection.
pub fn half_open(state: State) -> bool {
    matches!(state, State::Listening | State::Opening)
}

/// Makes room for a newcomer among `all`, of whom there may be `most`. False: nobody gives way.
fn make_room<G: Called>(
    all: &mut BTreeMap<SocketAddr, G>,
    most: usize,
    newcomer: SocketAddr,
    now: Instant,
) -> bool {
    if all.len() < most {
        return true;
    }
    let done = all.iter().filter(|(_, guest)| guest.is_done(now));
    if let Some(peer) = done.min_by_key(|(_, guest)| guest.heard()).map(|(peer, _)| *peer) {
        return all.remove(&peer).is_some();
    }
    let half: Vec<_> = all
        .iter()
        .filter(|(_, guest)| guest.is_idle())
        .map(|(peer, guest)| {
            let least = if half_open(guest.state()) {
                LEAST
            } else {
                LEAST_OPEN
            };
            (*peer, guest.since(), now.since(guest.since()) >= least)
        })
        .collect();
    let mut hosts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for (peer, ..) in &half {
        *hosts.entry(peer.ip()).or_default() += 1;
    }
    let of = |host: IpAddr| hosts.get(&host).copied().unwrap_or(0);
    let mine = of(newcomer.ip());
    let gives_way = |(peer, _, long): &(SocketAddr, Instant, bool)| *long || of(peer.ip()) > mine + 1;
    let first = half
        .into_iter()
        .filter(gives_way)
        .min_by_key(|(peer, since, _)| (Reverse(of(peer.ip())), *since));
    first.is_some_and(|(peer, ..)| all.remove(&peer).is_some())
}

/// What says to the other end of a connection that it is no more.
fn gone(datagram: &[u8]) -> Option<Vec<u8>> {
    let (header, body) = Header::parse(datagram).ok()?;
    Some(header.refusal(body)?.octets().to_vec())
}

/// Whether a datagram is a call in clear.
fn calls(datagram: &[u8]) -> bool {
    let is_call = Header::parse(datagram).is_ok_and(|(h, _)| h.control.has(Control::SYN));
    is_call && !secure::is_sealed(datagram)
}

#[cfg(test)]
mod tests;
