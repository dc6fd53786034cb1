//! Callers, recorded calls, and who gives way.

use super::*;
use crate::secure::KEY_OCTETS;
use crate::socket::new_octets;
use crate::waiting::{MOST_ALIKE, MOST_WAITING};
use protocols::transport::wire::{Control, Header, ProtocolId};

const KEY: Key = Key([7; KEY_OCTETS]);
fn new_door(key: Option<Key>) -> Door {
    let config = FlowConfig {
        key,
        ..FlowConfig::default()
    };
    Door::new(&config, 64)
}

fn door(key: Option<Key>) -> Door {
    let mut door = new_door(key);
    // what attacks do to the places
    door.handshakes.iter_mut().for_each(|a| a.left = u32::MAX);
    door
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

/// Ten thousand in a second take the time of three hundred, and none of another caller's.
#[test]
fn a_call_that_is_replayed_by_the_thousand_costs_little() {
    let mut door = new_door(Some(KEY));
    let mut room = new_octets();
    let recorded = caller().1;
    let mut answers = 0;
    for n in 0..10_000u16 {
        let now = at(u64::from(n) / 10);
        let knock = door.knock(now, from(1, n), &recorded, &mut room);
        answers += u32::from(matches!(knock, Knock::Answer(_)));
        if n % 500 == 0 {
            let new = caller().1;
            let knock = door.knock(now, from(2, n), &new, &mut room);
            assert!(matches!(knock, Knock::Answer(_)), "of a new call");
        }
    }
    assert!((250..=320).contains(&answers), "{answers}");
}

/// And what is no call of somebody with the key takes nobody's either.
#[test]
fn what_begins_like_a_call_takes_no_handshake() {
    let mut door = new_door(Some(KEY));
    let mut room = new_octets();
    let mut junk = caller().1;
    *junk.last_mut().unwrap() ^= 1;
    for ms in 0..2_000 {
        for _ in 0..5 {
            let knock = door.knock(at(ms), peer(9), &junk, &mut room);
            assert!(matches!(knock, Knock::Stranger(Stranger::OtherKey)));
        }
        if ms % 100 == 0 {
            let call = caller().1;
            let knock = door.knock(at(ms), peer(1), &call, &mut room);
            assert!(matches!(knock, Knock::Answer(_)), "at {ms}");
        }
    }
}

/// Who calls again and again gives way as before to one who has just come.
#[test]
fn who_calls_again_is_no_younger() {
    let mut door = door(Some(KEY));
    let mut room = new_octets();
    let recorded: Vec<_> = (0..MOST_WAITING).map(|_| caller().1).collect();
    for (n, call) in recorded.iter().enumerate() {
        door.knock(at(0), from(1, n as u16), call, &mut room);
    }
    let last = comes_in(&mut door, from(1, 9_999), |door, _| {
        // he has taken the place of the first one
        for (n, call) in recorded.iter().enumerate().skip(1) {
            door.knock(at(3), from(1, n as u16), call, &mut new_octets());
        }
        let new = caller().1;
        door.knock(at(3), from(1, 9_998), &new, &mut new_octets());
    });
    assert_eq!(last, MOST_WAITING);
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
            drawn =
                u64::wrapping_mul(drawn, 6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
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

/// A port from which nothing has been said.
const MUTE: u16 = 77;

impl Called for (State, Instant, bool) {
    fn state(&self) -> State {
        self.0
    }
    fn since(&self) -> Instant {
        self.1
    }
    fn heard(&self) -> Instant {
        self.1
    }
    fn is_told(&self) -> bool {
        !self.2
    }
    fn repeats_within(&self) -> Duration {
        Duration::from_ms(1_000)
    }
    fn guard(&mut self) -> Option<&mut Guard> {
        None
    }
    fn is_idle(&self) -> bool {
        half_open(self.0) || self.2
    }
    fn packet(&mut self, _: Instant, _: &mut Socket, _: Ends, _: &[u8]) {}
}

fn from(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}

/// Whether there is room for one from host `newcomer` among three, and who has left.
fn way(all: &[(SocketAddr, State, u64)], most: usize, newcomer: u8, ms: u64) -> (bool, Option<SocketAddr>) {
    let mut left: BTreeMap<_, _> = all
        .iter()
        .map(|(p, state, ms)| (*p, (*state, at(*ms), p.port() == MUTE)))
        .collect();
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
    assert!((State::Opening, at(0), false).is_late(at(10_001)));
    assert!(!(State::Open, at(0), true).is_late(at(90_000)));
}

/// It stays for as long as it may have to repeat its last word.
#[test]
fn what_has_ended_gives_way() {
    let all = [
        (from(1, 1), State::Open, 0),
        (from(2, 1), State::Lingering, 500),
        (from(3, 1), State::Lingering, 400),
        (from(4, MUTE), State::Lingering, 0),
    ];
    assert_eq!(way(&all[..3], 3, 1, 1_399), (false, None));
    assert_eq!(way(&all[..3], 3, 1, 1_400), (true, Some(from(3, 1))));
    // who has been silent for longest
    assert_eq!(way(&all[..3], 3, 1, 9_000), (true, Some(from(3, 1))));
    assert_eq!(way(&all, 4, 1, 1_400), (true, Some(from(3, 1))));
    assert_eq!(way(&all, 5, 1, 1_400), (true, None));
}

/// What he says may get lost, and he says it again.
#[test]
fn who_is_there_and_has_said_nothing_gives_way_later() {
    let all = [(from(1, MUTE), State::Open, 0), (from(2, 1), State::Open, 0)];
    assert_eq!(way(&all, 2, 3, 3_999), (false, None));
    assert_eq!(way(&all, 2, 3, 4_000), (true, Some(from(1, MUTE))));
    let many = [(from(1, MUTE), State::Open, 0), (from(1, 1), State::Opening, 0)];
    assert_eq!(way(&many, 2, 3, 2), (true, Some(from(1, 1))));
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
