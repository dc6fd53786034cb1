//! Who may come in: callers, once they have shown that they hear the answer.
//!
//! Anybody can send a call again that he has recorded, from as many ports as he likes. With a key such a call costs a handshake
//! and a place among those who are [`waiting`](crate::waiting); a connection begins with the first packet that is sealed, and
//! who has not made the call cannot seal one. Without a key a call is all there is to go by: a connection that does not come about
//! within [`HALF_OPEN`] is forgotten, and within a second if there is no room for others; so does one on which nothing has been said,
//! for then it is worth no more than a call. A host with several of these gives way at once to one with fewer, so that nobody keeps
//! others out from one address; who can forge addresses still can.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use protocols::transport::State;
use protocols::transport::wire::{Control, Header};
use radio::{Duration, Instant};

use crate::flow::{FlowConfig, Variant};
use crate::secure::{self, Guard, Key, Opened};
use crate::socket::{Clock, Octets, Socket};
use crate::waiting::Waiting;

/// How long a caller may take to show that he is there.
pub const HALF_OPEN: Duration = Duration::from_ms(10_000);
/// For so long he does not give way to others, if his host has no more such than theirs.
const LEAST: Duration = Duration::from_ms(1_000);
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

    /// What opens its datagrams; `None`: they are its packets.
    fn guard(&mut self) -> Option<&mut Guard>;

    /// The handshake has come to its end.
    fn agreed(&mut self, _now: Instant, _socket: &mut Socket, _peer: SocketAddr) {}

    /// A datagram of the peer.
    fn datagram(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        peer: SocketAddr,
        datagram: &[u8],
        room: &mut Octets,
    ) {
        let packet = match self.guard() {
            None => datagram,
            Some(guard) => match guard.open(datagram, room) {
                Opened::Packet(n) => &room[..n],
                Opened::Handshake(Some(answer)) => return socket.send(peer, &answer),
                Opened::Handshake(None) => return self.agreed(now, socket, peer),
                Opened::Anew | Opened::Nothing => return,
            },
        };
        self.packet(now, socket, peer, packet);
    }

    /// A packet of the peer, opened.
    fn packet(&mut self, now: Instant, socket: &mut Socket, peer: SocketAddr, packet: &[u8]);

    /// Whether it has done no more than call, so that it gives way to others when there is no room for them.
    fn is_idle(&self) -> bool {
        half_open(self.state())
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
            let Some((datagram, peer)) = socket.receive(octets) else {
                break;
            };
            let now = clock.now();
            if let Some(guest) = guests.get_mut(&peer) {
                guest.datagram(now, socket, peer, datagram, room);
                continue;
            }
            match self.knock(now, peer, datagram, room) {
                Knock::Unheard => {}
                Knock::Stranger(stranger) => self.note_stranger(now, peer, stranger),
                Knock::Answer(answer) => socket.send(peer, &answer),
                Knock::In(guard, packet) if make_room(guests, self.most, peer, now) => {
                    let guest = make(peer, guard.map(|guard| *guard), now);
                    let guest = guests.entry(peer).or_insert(guest);
                    guest.packet(now, socket, peer, packet);
                }
                Knock::In(guard, _) => self.turn_away(now, peer, guard),
            }
        }
    }

    /// There is no room for a caller who was let in: he stays before the door, and may come in with a packet that he repeats.
    fn turn_away(&mut self, now: Instant, peer: SocketAddr, guard: Option<Box<Guard>>) {
        if let Some(guard) = guard.filter(|_| self.waiting.has_room()) {
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
        let Some((guard, answer)) = Guard::listener(key, datagram) else {
            return if secure::calls(datagram) {
                Knock::Stranger(Stranger::OtherKey)
            } else if calls(datagram) {
                Knock::Stranger(Stranger::NoKey)
            } else {
                Knock::Unheard
            };
        };
        self.waiting.add(now, peer, Box::new(guard), HALF_OPEN);
        Knock::Answer(answer)
    }
}

fn half_open(state: State) -> bool {
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
    let half: Vec<_> = all
        .iter()
        .filter(|(_, guest)| guest.is_idle())
        .map(|(peer, guest)| (*peer, guest.since()))
        .collect();
    let mut hosts: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for (peer, _) in &half {
        *hosts.entry(peer.ip()).or_default() += 1;
    }
    let of = |host: IpAddr| hosts.get(&host).copied().unwrap_or(0);
    let mine = of(newcomer.ip());
    let gives_way =
        |(peer, since): &(SocketAddr, Instant)| now.since(*since) >= LEAST || of(peer.ip()) > mine + 1;
    let first = half
        .into_iter()
        .filter(gives_way)
        .min_by_key(|(peer, since)| (Reverse(of(peer.ip())), *since));
    first.is_some_and(|(peer, _)| all.remove(&peer).is_some())
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
mod tests {
    use super::*;
    use crate::secure::KEY_OCTETS;
    use crate::socket::new_octets;
    use crate::waiting::{MOST_ALIKE, MOST_WAITING};
    use protocols::transport::wire::{Control, Header, ProtocolId};

    const KEY: Key = Key([7; KEY_OCTETS]);
    fn door(key: Option<Key>) -> Door {
        let config = FlowConfig {
            key,
            ..FlowConfig::default()
        };
        Door::new(&config, 64)
    }

    const PATIENCE: Duration = Duration::from_ms(20_000);

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    /// A call as somebody with the key makes it.
    fn caller() -> (Guard, Vec<u8>) {
        let mut guard = Guard::caller(&KEY, PATIENCE).unwrap();
        let call = guard.call(at(0)).unwrap().unwrap().to_vec();
        (guard, call)
    }

    /// Somebody calls from `here`, others replay calls as `attack` does while the answer is on its way, and he seals his first
    /// packet: he is let in. Tells how many waited before that.
    fn comes_in(door: &mut Door, here: SocketAddr, attack: impl Fn(&mut Door, &[u8])) -> usize {
        let (mut owner, own) = caller();
        let mut room = new_octets();
        let Knock::Answer(answer) = door.knock(at(2), here, &own, &mut room) else {
            panic!("no answer")
        };
        assert_eq!(owner.open(&answer, &mut new_octets()), Opened::Handshake(None));
        attack(door, &own);
        let waited = door.waiting.len();
        assert!(waited <= MOST_WAITING);
        let header = Header::new(ProtocolId::Atp, Control::SYN).octets();
        let sealed = owner.seal(&header).unwrap().to_vec();
        let Knock::In(Some(_), packet) = door.knock(at(3), here, &sealed, &mut room) else {
            panic!("not let in")
        };
        assert_eq!(packet, header);
        assert_eq!(door.waiting.at(here), 0);
        waited
    }

    /// Replays a call from there; whatever else he says is not sealed.
    fn replay(door: &mut Door, from: SocketAddr, call: &[u8]) {
        let mut room = new_octets();
        assert!(matches!(
            door.knock(at(2), from, call, &mut room),
            Knock::Answer(_)
        ));
        assert!(matches!(
            door.knock(at(2), from, &[0; 80], &mut room),
            Knock::Unheard
        ));
    }

    /// Who has another key than this end, or only one of them has one, is told of, and not for each call that is repeated.
    #[test]
    fn strangers_are_told_of() {
        let (_, sealed) = caller();
        let clear = Header::new(ProtocolId::Atp, Control::SYN).octets();
        let mut room = new_octets();
        let mut knocks = |door: &mut Door, ms, port, call: &[u8]| {
            if let Knock::Stranger(why) = door.knock(at(ms), peer(port), call, &mut room) {
                door.note_stranger(at(ms), peer(port), why);
            }
            door.stranger()
        };
        let other = &mut door(Some(Key([8; KEY_OCTETS])));
        assert_eq!(knocks(other, 0, 1, &[0; 80]), None, "no call");
        assert_eq!(knocks(other, 0, 1, &sealed), Some((peer(1), Stranger::OtherKey)));
        assert_eq!(knocks(other, 59_999, 2, &sealed), None, "of the same host");
        assert_eq!(knocks(other, 59_999, 2, &clear), Some((peer(2), Stranger::NoKey)));
        assert_eq!(knocks(other, 60_998, 2, &sealed), None, "within a second");
        assert_eq!(
            knocks(other, 60_999, 2, &sealed),
            Some((peer(2), Stranger::OtherKey))
        );
        let none = &mut door(None);
        assert_eq!(knocks(none, 0, 1, &sealed), Some((peer(1), Stranger::Key)));
        assert_eq!(knocks(&mut door(Some(KEY)), 0, 1, &sealed), None, "answered");
    }

    /// A recorded call from thousands of ports of the owner's own computer, or from thousands of forged addresses, keeps nobody
    /// with the key from coming in, and nor does his own.
    #[test]
    fn replayed_calls_push_nobody_out() {
        let ports = |n: u16| from(1, n);
        let hosts = |n: u16| SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 5));
        let (_, recorded) = caller();
        for elsewhere in [&ports as &dyn Fn(u16) -> SocketAddr, &hosts] {
            let mut door = door(Some(KEY));
            let before = 0..MOST_WAITING as u16 + 500;
            let after = before.end..2 * before.end;
            for n in before {
                replay(&mut door, elsewhere(n), &recorded);
            }
            let waited = comes_in(&mut door, from(1, 9_999), |door, _| {
                after.clone().for_each(|n| replay(door, elsewhere(n), &recorded));
            });
            assert_eq!(waited, MOST_WAITING, "all places were taken");
        }
        let mut door = door(Some(KEY));
        let waited = comes_in(&mut door, from(2, 9_999), |door, own| {
            (0..2_000).for_each(|n| replay(door, ports(n), own));
        });
        assert_eq!(waited, MOST_WAITING);
        // those who do not go on are forgotten
        let (_, call) = caller();
        door.knock(at(10_002), from(1, 1), &call, &mut new_octets());
        assert_eq!(door.waiting.len(), 1);
    }

    /// Many recorded calls, each of them once, from one computer.
    #[test]
    fn a_host_with_many_recorded_calls_pushes_out_its_own() {
        let recorded: Vec<_> = (0..MOST_WAITING + 100).map(|_| caller().1).collect();
        let waited = comes_in(&mut door(Some(KEY)), from(2, 9_999), |door, _| {
            for (n, call) in recorded.iter().enumerate() {
                replay(door, from(1, n as u16), call);
            }
        });
        assert_eq!(waited, MOST_WAITING);
    }

    /// Who forges the owner's address takes a place beside him, and not his.
    #[test]
    fn calls_that_are_replayed_from_the_owners_address_push_nobody_out() {
        let recorded: Vec<_> = (1..MOST_ALIKE).map(|_| caller().1).collect();
        let waited = comes_in(&mut door(Some(KEY)), peer(9), |door, own| {
            for call in recorded.iter().cycle().take(3 * MOST_WAITING) {
                replay(door, peer(9), call);
                replay(door, peer(9), own);
            }
        });
        assert_eq!(waited, MOST_ALIKE);
        let mut door = door(Some(KEY));
        for _ in 0..3 * MOST_ALIKE {
            replay(&mut door, peer(9), &caller().1);
        }
        assert_eq!(door.waiting.at(peer(9)), MOST_ALIKE);
    }

    /// His handshake is over, so he would never make another.
    #[test]
    fn who_finds_no_room_may_knock_again() {
        let mut door = door(Some(KEY));
        let mut room = new_octets();
        let mut caller = Guard::caller(&KEY, PATIENCE).unwrap();
        let call = caller.call(at(0)).unwrap().unwrap().to_vec();
        let Knock::Answer(answer) = door.knock(at(0), peer(1), &call, &mut room) else {
            panic!("no answer")
        };
        caller.open(&answer, &mut new_octets());
        let header = Header::new(ProtocolId::Atp, Control::SYN).octets();
        for ms in [1, 1_001, 2_001] {
            let sealed = caller.seal(&header).unwrap().to_vec();
            let Knock::In(Some(guard), _) = door.knock(at(ms), peer(1), &sealed, &mut room) else {
                panic!("not let in at {ms}")
            };
            door.turn_away(at(ms), peer(1), Some(guard));
        }
    }

    /// Who calls again waits anew, and who has sealed his call has a key.
    #[test]
    fn who_calls_again_is_not_forgotten() {
        let mut door = door(Some(KEY));
        let mut room = new_octets();
        let (mut owner, call) = caller();
        for ms in [0, 9_000] {
            let Knock::Answer(answer) = door.knock(at(ms), peer(1), &call, &mut room) else {
                panic!("no answer at {ms}")
            };
            owner.open(&answer, &mut new_octets());
        }
        door.knock(at(18_000), peer(2), &caller().1, &mut room);
        let header = Header::new(ProtocolId::Atp, Control::SYN).octets();
        let sealed = owner.seal(&header).unwrap().to_vec();
        let mut elsewhere = self::door(Some(Key([8; KEY_OCTETS])));
        let knock = elsewhere.knock(at(0), peer(1), &sealed, &mut room);
        assert!(matches!(knock, Knock::Unheard));
        let knock = door.knock(at(18_001), peer(1), &sealed, &mut room);
        assert!(matches!(knock, Knock::In(Some(_), _)));
    }

    /// Two of five datagrams get lost each way.
    #[test]
    fn with_a_key_who_calls_comes_in_through_losses() {
        let mut room = new_octets();
        for seed in 0..300 {
            let mut door = door(Some(KEY));
            let mut drawn = seed;
            let mut comes = move || {
                drawn = u64::wrapping_mul(drawn, 6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (drawn >> 33) % 5 > 1
            };
            let mut owner = Guard::caller(&KEY, PATIENCE.times(3)).unwrap();
            let header = Header::new(ProtocolId::Atp, Control::SYN).octets();
            let comes_in = (0..60_000).step_by(50).find(|&ms| {
                if let Some(call) = owner.call(at(ms)).unwrap().map(<[u8]>::to_vec)
                    && comes()
                    && let Knock::Answer(answer) = door.knock(at(ms), peer(1), &call, &mut room)
                    && comes()
                {
                    owner.open(&answer, &mut new_octets());
                }
                // the transport calls once a second, too
                let sealed = owner.seal(&header).filter(|_| ms % 1_000 == 0 && comes());
                let knock = sealed.map(|sealed| door.knock(at(ms), peer(1), sealed, &mut room));
                matches!(knock, Some(Knock::In(..)))
            });
            assert!(comes_in.is_some_and(|ms| ms < 40_000), "{seed}: {comes_in:?}");
        }
    }

    #[test]
    fn without_a_key_calls_are_let_in() {
        let mut door = door(None);
        let mut room = new_octets();
        let call = Header::new(ProtocolId::Atp, Control::SYN).octets();
        let data = Header::new(ProtocolId::Atp, Control::ACK).octets();
        assert!(matches!(
            door.knock(at(0), peer(1), &call, &mut room),
            Knock::In(None, _)
        ));
        let mut reset = |packet: &[u8]| match door.knock(at(0), peer(1), packet, &mut room) {
            Knock::Answer(answer) => Header::parse(&answer).ok().map(|(h, _)| h.control),
            _ => None,
        };
        // who keeps on sending hears that the connection is no more; two who have none do not tell each other so for ever
        let is_no_more = Control::RST.with(Control::ACK);
        assert_eq!(reset(&data), Some(is_no_more));
        assert_eq!(reset(&Header::new(ProtocolId::Atp, is_no_more).octets()), None);
        assert_eq!(reset(b"something else"), None);
    }

    impl Called for (State, Instant) {
        fn state(&self) -> State {
            self.0
        }
        fn since(&self) -> Instant {
            self.1
        }
        fn guard(&mut self) -> Option<&mut Guard> {
            None
        }
        fn packet(&mut self, _: Instant, _: &mut Socket, _: SocketAddr, _: &[u8]) {}
    }

    fn from(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }

    /// Whether there is room for one from host `newcomer` among three, and who has left.
    fn way(
        all: &[(SocketAddr, State, u64)],
        most: usize,
        newcomer: u8,
        ms: u64,
    ) -> (bool, Option<SocketAddr>) {
        let mut left: BTreeMap<_, _> = all.iter().map(|(p, state, ms)| (*p, (*state, at(*ms)))).collect();
        let room = make_room(&mut left, most, from(newcomer, 9), at(ms));
        let gone = all.iter().map(|g| g.0).find(|peer| !left.contains_key(peer));
        (room, gone)
    }

    #[test]
    fn who_is_not_there_gives_way() {
        let all = [
            (from(1, 1), State::Open, 0),
            (from(2, 1), State::Opening, 500),
            (from(3, 1), State::Listening, 100),
        ];
        assert_eq!(way(&all, 4, 4, 5_000), (true, None));
        assert_eq!(way(&all, 3, 4, 5_000), (true, Some(from(3, 1))));
        assert_eq!(
            way(&all, 3, 4, 1_099),
            (false, None),
            "not within the first second"
        );
        assert!((State::Opening, at(0)).is_late(at(10_001)));
        assert!(!(State::Open, at(0)).is_late(at(90_000)));
    }

    /// Calls from one address take no place from those of another.
    #[test]
    fn a_host_with_many_calls_gives_way_at_once() {
        let all = [
            (from(1, 1), State::Opening, 0),
            (from(1, 2), State::Opening, 1),
            (from(2, 1), State::Opening, 0),
            (from(3, 1), State::Open, 0),
        ];
        assert_eq!(way(&all, 4, 4, 2), (true, Some(from(1, 1))));
        assert_eq!(
            way(&all, 4, 2, 2),
            (false, None),
            "it has one, and would have two"
        );
        assert_eq!(way(&all, 4, 1, 2), (false, None));
    }
}
