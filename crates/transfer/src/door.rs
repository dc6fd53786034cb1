//! Who may come in: callers, once they have shown that they hear the answer.
//!
//! Anybody can send a call again that he has recorded, from as many ports as he likes. With a key such a call costs a handshake
//! and a place among [`MOST_WAITING`], of which the oldest gives way; a connection begins with the first packet that is sealed, and
//! who has not made the call cannot seal one. Without a key a call is all there is to go by: a connection that does not come about
//! within [`HALF_OPEN`] is forgotten, and within a second if there is no room for others.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use protocols::transport::State;
use protocols::transport::wire::{Control, Header};
use radio::{Duration, Instant};

use crate::flow::{FlowConfig, Variant};
use crate::secure::{Guard, Key, Opened};
use crate::socket::{Octets, Socket};

/// Callers with a key who have not sent a packet yet.
pub const MOST_WAITING: usize = 1_024;
/// How long a caller may take to show that he is there.
pub const HALF_OPEN: Duration = Duration::from_ms(10_000);
/// For so long he does not give way to others.
const LEAST: Duration = Duration::from_ms(1_000);

/// What becomes of a datagram of somebody who is not in.
enum Knock<'a> {
    /// Nothing.
    Unheard,
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
    waiting: BTreeMap<SocketAddr, (Box<Guard>, Instant)>,
}

impl Door {
    /// Opens to those with the key, or to anybody.
    pub fn new(config: &FlowConfig) -> Door {
        Door {
            key: config.key,
            variant: config.variant,
            waiting: BTreeMap::new(),
        }
    }

    /// Answers a datagram of somebody who is not in. `Some`: a connection begins, with this packet.
    pub fn admit<'a>(
        &mut self,
        now: Instant,
        socket: &mut Socket,
        peer: SocketAddr,
        datagram: &'a [u8],
        room: &'a mut Octets,
    ) -> Option<(Option<Guard>, &'a [u8])> {
        match self.knock(now, peer, datagram, room) {
            Knock::Unheard => None,
            Knock::Answer(answer) => {
                socket.send(peer, &answer);
                None
            }
            Knock::In(guard, packet) => Some((guard.map(|guard| *guard), packet)),
        }
    }

    /// There is no room for a caller who was let in: he stays before the door, and may come in with a packet that he repeats.
    pub fn turn_away(&mut self, now: Instant, peer: SocketAddr, guard: Option<Guard>) {
        if let Some(guard) = guard.filter(|_| self.waiting.len() < MOST_WAITING) {
            self.waiting.insert(peer, (Box::new(guard), now));
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
                None => Knock::Unheard,
            };
        };
        match self
            .waiting
            .get_mut(&peer)
            .map(|(guard, _)| guard.open(datagram, room))
        {
            Some(Opened::Packet(n)) => {
                let guard = self.waiting.remove(&peer).map(|(guard, _)| guard);
                return Knock::In(guard, &room[..n]);
            }
            Some(Opened::Handshake(answer)) => return answer.map_or(Knock::Unheard, Knock::Answer),
            Some(Opened::Nothing) | None => {}
        }
        let Some((guard, answer)) = Guard::listener(key, datagram) else {
            return Knock::Unheard;
        };
        self.waiting.retain(|_, (_, since)| now.since(*since) < HALF_OPEN);
        if self.waiting.len() >= MOST_WAITING
            && let Some((oldest, _)) = self.waiting.iter().min_by_key(|(_, (_, since))| *since)
        {
            let oldest = *oldest;
            self.waiting.remove(&oldest);
        }
        self.waiting.insert(peer, (Box::new(guard), now));
        Knock::Answer(answer)
    }
}

/// Whether a connection of this state that was begun at `since` has taken too long to come about.
pub fn is_late(state: State, since: Instant, now: Instant) -> bool {
    half_open(state) && now.since(since) > HALF_OPEN
}

fn half_open(state: State) -> bool {
    matches!(state, State::Listening | State::Opening)
}

/// Makes room for one more among `all`, of which there may be `most`; `how` tells the state of each, and since when it is there. False: nobody
/// gives way.
pub fn make_room<T>(
    all: &mut BTreeMap<SocketAddr, T>,
    most: usize,
    now: Instant,
    how: impl Fn(&T) -> (State, Instant),
) -> bool {
    if all.len() < most {
        return true;
    }
    let late = all.iter().map(|(peer, one)| (*peer, how(one)));
    let late = late.filter(|(_, (state, since))| half_open(*state) && now.since(*since) >= LEAST);
    let oldest = late.min_by_key(|(_, (_, since))| *since);
    oldest.is_some_and(|(peer, _)| all.remove(&peer).is_some())
}

/// Whether a datagram is a call in clear.
fn calls(datagram: &[u8]) -> bool {
    Header::parse(datagram).is_ok_and(|(h, _)| h.control.has(Control::SYN))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secure::KEY_OCTETS;
    use crate::socket::new_octets;
    use protocols::transport::wire::{Control, Header, ProtocolId};

    const KEY: Key = Key([7; KEY_OCTETS]);
    fn door(key: Option<Key>) -> Door {
        Door::new(&FlowConfig {
            key,
            ..FlowConfig::default()
        })
    }

    const PATIENCE: Duration = Duration::from_ms(20_000);

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    /// A recorded call from thousands of ports keeps nobody with the key from coming in.
    #[test]
    fn replayed_calls_take_no_place() {
        let mut door = door(Some(KEY));
        let mut room = new_octets();
        let mut recorded = Guard::caller(&KEY, PATIENCE).unwrap();
        let call = recorded.call(at(0)).unwrap().unwrap().to_vec();
        let mut owner = Guard::caller(&KEY, PATIENCE).unwrap();
        let own = owner.call(at(0)).unwrap().unwrap().to_vec();
        let replay = |door: &mut Door, ports: std::ops::Range<u16>| {
            let mut room = new_octets();
            for port in ports {
                let knock = door.knock(at(1), peer(port), &call, &mut room);
                assert!(matches!(knock, Knock::Answer(_)));
                // and whatever else he says is not sealed
                let knock = door.knock(at(1), peer(port), &[0; 80], &mut room);
                assert!(matches!(knock, Knock::Unheard));
            }
        };
        replay(&mut door, 1..3_000);
        assert!(door.waiting.len() <= MOST_WAITING);
        let Knock::Answer(answer) = door.knock(at(2), peer(9), &own, &mut room) else {
            panic!("no answer")
        };
        owner.open(&answer, &mut new_octets());
        replay(&mut door, 3_000..3_500);
        let header = Header::new(ProtocolId::Atp, Control::SYN).octets();
        let sealed = owner.seal(&header).unwrap().to_vec();
        let Knock::In(Some(_), packet) = door.knock(at(3), peer(9), &sealed, &mut room) else {
            panic!("not let in")
        };
        assert_eq!(packet, header);
        assert!(!door.waiting.contains_key(&peer(9)));
        // those who do not go on are forgotten
        door.knock(at(10_002), peer(9), &own, &mut room);
        assert_eq!(door.waiting.len(), 1);
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
            door.turn_away(at(ms), peer(1), Some(*guard));
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
        assert!(matches!(
            door.knock(at(0), peer(1), &data, &mut room),
            Knock::Unheard
        ));
    }

    #[test]
    fn who_is_not_there_gives_way() {
        let all = || {
            BTreeMap::from([
                (peer(1), (State::Open, at(0))),
                (peer(2), (State::Opening, at(500))),
                (peer(3), (State::Listening, at(100))),
            ])
        };
        // who has left
        let way = |most, ms| {
            let mut left = all();
            let room = make_room(&mut left, most, at(ms), |one| *one);
            let gone = all().into_keys().find(|peer| !left.contains_key(peer));
            (room, gone)
        };
        assert_eq!(way(4, 5_000), (true, None));
        assert_eq!(way(3, 5_000), (true, Some(peer(3))));
        assert_eq!(way(3, 1_099), (false, None), "not within the first second");
        assert!(is_late(State::Opening, at(0), at(10_001)) && !is_late(State::Open, at(0), at(90_000)));
    }
}
