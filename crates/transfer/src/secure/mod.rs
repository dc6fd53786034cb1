//! Datagrams that strangers can neither read nor forge: a layer between a transport and its socket, for two ends that share a
//! key of 32 octets (Noise, `NNpsk0`, revision 34: both ends have fresh keys for each connection).
//!
//! A datagram is the transport's header in clear, for the hops, and behind it the whole packet, sealed:
//!
//! ```text
//! header as the hops see and change it (24) | counter (8) | sealed: header as it was sent (24), body | tag (16)
//! ```
//!
//! What the other end believes is the sealed header, but for the two fields that hops may change: the delay, which they may
//! raise, and up to [`MOST_DELAY_US`]; and the number of hops, which they may count up, by [`MOST_HOPS`] at most. In a feedback
//! hops change nothing, and all is as it was sealed. A counter is taken once. Notices of path failure come from hops, which have no key: they are dropped.
//!
//! The first two datagrams are the handshake, told apart by their first octet:
//!
//! ```text
//! 0x53 'S' | version 1 | 1: call, 2: answer | message of Noise
//! ```
//!
//! Both ends have keys then, and the one that was called may have lost its own before the first packet came, for want of room. So
//! the end that calls goes on calling, each time with new keys, until a packet of the other end has come: which of the keys that
//! one is sealed with counts from then on, and until then it seals by turns with the last two that it has.

mod calling;
mod key;
mod window;

use std::fmt;

use protocols::transport::Failure;
use protocols::transport::wire::{HEADER_OCTETS, Header, MAX_PACKET_OCTETS};
use radio::{Duration, Instant};
use snow::{Builder, HandshakeState, StatelessTransportState};

use calling::Calling;
pub use key::{KEY_OCTETS, Key};
use window::Window;

/// Octets that a datagram gets longer by.
pub const OVERHEAD_OCTETS: usize = HEADER_OCTETS + COUNTER_OCTETS + TAG_OCTETS;
/// The longest delay that hops are believed, us: that of the slowest rate.
pub const MOST_DELAY_US: u32 = 1_000_000;
/// The largest number of hops that they are believed.
pub const MOST_HOPS: u8 = 64;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const COUNTER_OCTETS: usize = 8;
const TAG_OCTETS: usize = 16;
const MARK: [u8; 2] = [0x53, 1];
const CALL: u8 = 1;
const ANSWER: u8 = 2;
const HOPS_AT: usize = 6;
const OPTIONS_AT: usize = 7;
/// In the clear header alone: what follows is sealed. For readers of captures; nobody's belief rests on it.
const OPTION_SEALED: u8 = 2;
const DELAY_AT: usize = 16;
/// Keys that the end that calls has agreed on at once: more than two are of no use, since it calls anew after a second.
const MOST_SESSIONS: usize = 2;

/// The message of Noise in a call, by whomever.
fn called(datagram: &[u8]) -> Option<&[u8]> {
    datagram.strip_prefix(&[MARK[0], MARK[1], CALL])
}

/// Whether this is the call of somebody with a key, be it ours or not.
pub fn calls(datagram: &[u8]) -> bool {
    called(datagram).is_some()
}

/// Whether the header in clear of a datagram says that a sealed packet follows.
pub fn is_sealed(datagram: &[u8]) -> bool {
    datagram
        .get(OPTIONS_AT)
        .is_some_and(|options| options & OPTION_SEALED != 0)
}

/// What a datagram turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Opened {
    /// A packet for the transport; so many octets of the buffer.
    Packet(usize),
    /// A part of the handshake; what is to be sent in answer, if anything.
    Handshake(Option<Vec<u8>>),
    /// New keys, since nothing has come that was sealed with the former ones; the transport need not know.
    Anew,
    /// Forged, old, or damaged.
    Nothing,
}

/// One end.
pub struct Guard {
    /// At the end that calls, until a packet of the other end has come.
    calling: Option<Calling>,
    /// Keys that are agreed on. While nothing has come that is sealed with any of them, the other end may have lost all but one: packets are sealed with them by turns, with
    /// the last ones first.
    sessions: Vec<Session>,
    turn: usize,
    /// The answer to a call, to be repeated if that call is.
    answered: Option<(Vec<u8>, Vec<u8>)>,
    /// The latest sealed datagram: its memory is used again.
    sealed: Vec<u8>,
    /// Datagrams that were not what they should be.
    pub refused: u64,
}

/// Keys, and which counters of theirs have gone and come.
struct Session {
    noise: Box<StatelessTransportState>,
    counter: u64,
    window: Window,
}

impl Session {
    fn new(noise: StatelessTransportState) -> Session {
        Session {
            noise: Box::new(noise),
            counter: 0,
            window: Window::default(),
        }
    }

    /// Opens what is sealed; tells its length.
    fn open(&mut self, counter: u64, sealed: &[u8], out: &mut [u8]) -> Option<usize> {
        if !self.window.is_new(counter) {
            return None;
        }
        let n = self.noise.read_message(counter, sealed, out).ok()?;
        self.window.note(counter);
        Some(n)
    }
}

/// A call by somebody with the key. To find that out takes a few hashes; to answer it takes the arithmetic of curves.
pub struct Heard<'a> {
    noise: Box<HandshakeState>,
    datagram: &'a [u8],
}

impl<'a> Heard<'a> {
    /// `None`: it is none.
    pub fn call(key: &Key, datagram: &'a [u8]) -> Option<Heard<'a>> {
        let message = called(datagram)?;
        let mut noise = Box::new(builder(key).ok()?.build_responder().ok()?);
        noise.read_message(message, &mut [0; 256]).ok()?;
        Some(Heard { noise, datagram })
    }

    /// The end that was called, and its answer.
    pub fn answer(mut self) -> Option<(Guard, Vec<u8>)> {
        let mut out = [0; 256];
        let n = self.noise.write_message(&[], &mut out).ok()?;
        let answer = handshake(ANSWER, &out[..n]);
        let session = Session::new(self.noise.into_stateless_transport_mode().ok()?);
        let guard = Guard {
            answered: Some((self.datagram.to_vec(), answer.clone())),
            ..Guard::with(vec![session])
        };
        Some((guard, answer))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Guard {{ open: {}, refused: {} }}",
            self.is_open(),
            self.refused
        )
    }
}

fn handshake(kind: u8, message: &[u8]) -> Vec<u8> {
    [&MARK[..], &[kind], message].concat()
}

fn builder<'a>(key: &'a Key) -> Result<Builder<'a>, snow::Error> {
    let params = PATTERN.parse()?;
    Builder::new(params).psk(0, &key.0)
}

impl Guard {
    /// The end that calls, for as long as `patience` says.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn caller(key: &Key, patience: Duration) -> Result<Guard, snow::Error> {
        Ok(Guard {
            calling: Some(Calling::new(key, patience)?),
            ..Guard::with(Vec::new())
        })
    }

    /// The end that is called, if this datagram is a call by somebody with the key; and the answer to it.
    pub fn listener(key: &Key, datagram: &[u8]) -> Option<(Guard, Vec<u8>)> {
        Heard::call(key, datagram)?.answer()
    }

    fn with(sessions: Vec<Session>) -> Guard {
        Guard {
            calling: None,
            sessions,
            turn: 0,
            answered: None,
            sealed: Vec::new(),
            refused: 0,
        }
    }

    /// Whether packets can be sent.
    pub fn is_open(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// The call that it has answered; nothing at the end that calls.
    pub(crate) fn called(&self) -> &[u8] {
        self.answered.as_ref().map_or(&[], |(call, _)| call)
    }

    /// The call, when it is due.
    ///
    /// # Errors
    /// Nobody has answered any of them: there is nobody, or nobody with this key.
    pub fn call(&mut self, now: Instant) -> Result<Option<&[u8]>, Failure> {
        self.calling
            .as_mut()
            .map_or(Ok(None), |calling| calling.call(now))
    }

    /// When the next call is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.calling.as_ref().map(Calling::deadline)
    }

    /// The datagram of a packet; `None` before the handshake is over, and for what is no packet.
    pub fn seal(&mut self, packet: &[u8]) -> Option<&[u8]> {
        let header = packet.get(..HEADER_OCTETS)?;
        let all = self.sessions.len();
        let session = self.sessions.iter_mut().rev().nth(self.turn % all.max(1))?;
        self.turn = self.turn.wrapping_add(usize::from(all > 1));
        let out = &mut self.sealed;
        out.clear();
        out.extend_from_slice(header);
        out[OPTIONS_AT] |= OPTION_SEALED;
        out.extend_from_slice(&session.counter.to_be_bytes());
        let head = out.len();
        out.resize(head + packet.len() + TAG_OCTETS, 0);
        let counter = session.counter;
        session
            .noise
            .write_message(counter, packet, &mut out[head..])
            .ok()?;
        session.counter += 1;
        Some(out)
    }

    /// Opens a datagram into `out`.
    pub fn open(&mut self, datagram: &[u8], out: &mut [u8; MAX_PACKET_OCTETS + 1]) -> Opened {
        let opened = self.open_any(datagram, out);
        self.refused += u64::from(opened == Opened::Nothing);
        opened
    }

    fn open_any(&mut self, datagram: &[u8], out: &mut [u8; MAX_PACKET_OCTETS + 1]) -> Opened {
        if datagram.starts_with(&MARK) {
            return self.shake_hands(datagram, out);
        }
        let Some((clear, rest)) = datagram.split_at_checked(HEADER_OCTETS) else {
            return Opened::Nothing;
        };
        let Some((counter, sealed)) = rest.split_first_chunk::<COUNTER_OCTETS>() else {
            return Opened::Nothing;
        };
        let counter = u64::from_be_bytes(*counter);
        // the last counter is not ours to give (Noise reserves it)
        if counter == u64::MAX || sealed.len() > out.len() + TAG_OCTETS - 1 {
            return Opened::Nothing;
        }
        let sessions = self.sessions.iter_mut().enumerate();
        let Some((at, n)) = sessions
            .rev()
            .find_map(|(at, session)| Some((at, session.open(counter, sealed, &mut out[..])?)))
        else {
            return Opened::Nothing;
        };
        // these keys the other end has, too
        self.calling = None;
        if self.sessions.len() > 1 {
            self.sessions.swap(0, at);
            self.sessions.truncate(1);
        }
        self.turn = 0;
        if n < HEADER_OCTETS {
            return Opened::Nothing;
        }
        // hops leave feedback alone, so its delay is what was sealed
        if Header::parse(&out[..n]).is_ok_and(|(header, _)| header.is_feedback()) {
            return Opened::Packet(n);
        }
        let delay = |octets: &[u8]| u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]);
        let sent = delay(&out[DELAY_AT..]);
        let raised = delay(&clear[DELAY_AT..]).clamp(sent, sent.max(MOST_DELAY_US));
        out[DELAY_AT..DELAY_AT + 4].copy_from_slice(&raised.to_be_bytes());
        let most = out[HOPS_AT].saturating_add(MOST_HOPS);
        out[HOPS_AT] = clear[HOPS_AT].clamp(out[HOPS_AT], most);
        Opened::Packet(n)
    }

    fn shake_hands(&mut self, datagram: &[u8], out: &mut [u8; MAX_PACKET_OCTETS + 1]) -> Opened {
        match datagram[MARK.len()..].split_first() {
            Some((&CALL, _)) => match &self.answered {
                // the answer got lost
                Some((call, answer)) if call == datagram && self.has_heard_nothing() => {
                    Opened::Handshake(Some(answer.clone()))
                }
                _ => Opened::Nothing,
            },
            Some((&ANSWER, message)) => {
                let noise = self.calling.as_mut().and_then(|c| c.answered(message, out));
                let Some(Ok(noise)) = noise.map(|noise| noise.into_stateless_transport_mode()) else {
                    return Opened::Nothing;
                };
                let is_first = self.sessions.is_empty();
                if self.sessions.len() >= MOST_SESSIONS {
                    self.sessions.remove(0);
                }
                self.sessions.push(Session::new(noise));
                self.turn = 0;
                if is_first {
                    Opened::Handshake(None)
                } else {
                    Opened::Anew
                }
            }
            _ => Opened::Nothing,
        }
    }

    fn has_heard_nothing(&self) -> bool {
        self.sessions.iter().all(|session| session.window.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use protocols::transport::wire::{Control, ProtocolId};

    const PATIENCE: Duration = Duration::from_ms(20_000);

    fn key(n: u8) -> Key {
        Key([n; KEY_OCTETS])
    }

    /// Both ends after the handshake.
    fn pair() -> (Guard, Guard) {
        let mut a = Guard::caller(&key(1), PATIENCE).unwrap();
        let call = a.call(Instant::ZERO).unwrap().unwrap().to_vec();
        let (b, answer) = Guard::listener(&key(1), &call).unwrap();
        let mut out = [0; MAX_PACKET_OCTETS + 1];
        assert_eq!(a.open(&answer, &mut out), Opened::Handshake(None));
        assert!(a.is_open() && b.is_open());
        (a, b)
    }

    fn packet(delay_us: u32, hops: u8, body: &[u8]) -> Vec<u8> {
        let header = Header {
            delay_us,
            hops,
            ..Header::new(ProtocolId::Atp, Control::ACK)
        };
        [&header.octets()[..], body].concat()
    }

    fn sealed(guard: &mut Guard, packet: &[u8]) -> Vec<u8> {
        guard.seal(packet).unwrap().to_vec()
    }

    fn opened(guard: &mut Guard, datagram: &[u8]) -> Option<Vec<u8>> {
        let mut out = [0; MAX_PACKET_OCTETS + 1];
        match guard.open(datagram, &mut out) {
            Opened::Packet(n) => Some(out[..n].to_vec()),
            _ => None,
        }
    }

    /// Its header tells of blocks that are not there in clear.
    #[test]
    fn a_feedback_with_blocks() {
        let (mut a, mut b) = pair();
        let header = Header {
            size: 16,
            ..Header::new(ProtocolId::Atp, Control::ACK.with(Control::SACK_OPT))
        };
        let p = [&header.octets()[..], &[7; 16]].concat();
        let d = sealed(&mut a, &p);
        assert_eq!(opened(&mut b, &d), Some(p));
    }

    #[test]
    fn there_and_back_and_unreadable_between() {
        let (mut a, mut b) = pair();
        let p = packet(0, 0, b"a secret body");
        let d = sealed(&mut a, &p);
        assert_eq!(d.len(), p.len() + OVERHEAD_OCTETS);
        assert!(!d.windows(6).any(|w| w == b"secret"));
        assert_eq!(opened(&mut b, &d), Some(p.clone()));
        let back = sealed(&mut b, &p);
        assert_eq!(opened(&mut a, &back), Some(p));
    }

    #[test]
    fn nobody_without_the_key_gets_an_answer() {
        let mut a = Guard::caller(&key(1), PATIENCE).unwrap();
        let call = a.call(Instant::ZERO).unwrap().unwrap().to_vec();
        assert!(Guard::listener(&key(2), &call).is_none());
        // nor does a forged answer end the call
        let mut other = Guard::caller(&key(2), PATIENCE).unwrap();
        let theirs = other.call(Instant::ZERO).unwrap().unwrap().to_vec();
        let (_, forged) = Guard::listener(&key(2), &theirs).unwrap();
        let mut out = [0; MAX_PACKET_OCTETS + 1];
        assert_eq!(a.open(&forged, &mut out), Opened::Nothing);
        let (_, answer) = Guard::listener(&key(1), &call).unwrap();
        assert_eq!(a.open(&answer, &mut out), Opened::Handshake(None));
    }

    #[test]
    fn a_datagram_counts_once_and_its_answer_is_repeated() {
        let (mut a, mut b) = pair();
        let (call, answer) = b.answered.clone().unwrap();
        let mut out = [0; MAX_PACKET_OCTETS + 1];
        assert_eq!(b.open(&call, &mut out), Opened::Handshake(Some(answer)));
        let d: Vec<_> = (0..3).map(|i| sealed(&mut a, &packet(0, 0, &[i]))).collect();
        for i in [1, 0, 2] {
            assert!(opened(&mut b, &d[i]).is_some());
            assert!(opened(&mut b, &d[i]).is_none(), "once");
        }
        assert_eq!(
            b.open(&call, &mut out),
            Opened::Nothing,
            "the connection has begun"
        );
    }

    #[test]
    fn calls_are_repeated_and_end() {
        let mut a = Guard::caller(&key(1), PATIENCE).unwrap();
        let mut at = Vec::new();
        let end = loop {
            let now = a.deadline().unwrap();
            match a.call(now) {
                Ok(call) => at.push((now.as_ns() / 1_000_000, call.map(<[u8]>::to_vec))),
                Err(_) => break now.as_ns() / 1_000_000_000,
            }
        };
        let waits: Vec<u64> = at.windows(2).map(|w| w[1].0 - w[0].0).collect();
        assert!(waits.iter().all(|ms| (750..=1_250).contains(ms)), "{at:?}");
        assert!(waits.iter().max() > waits.iter().min(), "drawn");
        assert!(at.iter().all(|call| call.1.is_some() && call.1 == at[0].1));
        assert_eq!(end, 20);
    }

    /// The end that was called has lost its keys before the first packet came.
    #[test]
    fn who_was_forgotten_calls_anew() {
        let mut out = [0; MAX_PACKET_OCTETS + 1];
        let mut a = Guard::caller(&key(1), PATIENCE).unwrap();
        let first = a.call(Instant::ZERO).unwrap().unwrap().to_vec();
        let (mut b, answer) = Guard::listener(&key(1), &first).unwrap();
        assert_eq!(a.open(&answer, &mut out), Opened::Handshake(None));
        assert_eq!(a.open(&answer, &mut out), Opened::Nothing, "it counts once");
        assert_eq!(a.call(Instant::ZERO.after(Duration::from_ms(749))), Ok(None));
        let mut anew = |a: &mut Guard| {
            let now = a.deadline().unwrap();
            let call = a.call(now).unwrap().unwrap().to_vec();
            assert_ne!(call, first);
            let (c, answer) = Guard::listener(&key(1), &call).unwrap();
            assert_eq!(a.open(&answer, &mut out), Opened::Anew);
            c
        };
        let mut c = anew(&mut a);
        let p = packet(0, 0, b"x");
        let d = sealed(&mut a, &p);
        assert_eq!(opened(&mut b, &d), None);
        assert_eq!(opened(&mut c, &d), Some(p.clone()));
        let d = sealed(&mut a, &p);
        assert_eq!(opened(&mut b, &d), Some(p.clone()), "by turns");
        // but what the other end seals with counts, and it may not have lost its keys
        let d = sealed(&mut b, &p);
        assert_eq!(opened(&mut a, &d), Some(p.clone()));
        assert_eq!((a.deadline(), a.call(Instant::MAX)), (None, Ok(None)));
        let d = sealed(&mut a, &p);
        assert_eq!(opened(&mut b, &d), Some(p.clone()));
        assert_eq!(opened(&mut c, &d), None);
        // who answers and says nothing more is called until the transport gives up
        let mut a = Guard::caller(&key(1), PATIENCE).unwrap();
        for _ in 0..40 {
            let now = a.deadline().unwrap();
            let call = a.call(now).unwrap().unwrap().to_vec();
            let (_, answer) = Guard::listener(&key(1), &call).unwrap();
            assert_ne!(a.open(&answer, &mut out), Opened::Nothing);
            assert!(a.sessions.len() <= MOST_SESSIONS);
        }
        assert!(a.deadline() > Some(Instant::ZERO.after(PATIENCE)));
    }

    #[test]
    fn hops_may_raise_what_was_sealed_and_nothing_else() {
        let (mut a, mut b) = pair();
        let p = packet(1_000, 2, b"x");
        let changed = |a: &mut Guard, b: &mut Guard, delay: u32, hops: u8| {
            let mut d = sealed(a, &p);
            d[DELAY_AT..DELAY_AT + 4].copy_from_slice(&delay.to_be_bytes());
            d[HOPS_AT] = hops;
            let got = opened(b, &d).unwrap();
            let (header, _) = Header::parse(&got).unwrap();
            (header.delay_us, header.hops)
        };
        assert_eq!(changed(&mut a, &mut b, 3_000, 4), (3_000, 4));
        assert_eq!(changed(&mut a, &mut b, 10, 0), (1_000, 2), "not lowered");
        assert_eq!(
            changed(&mut a, &mut b, u32::MAX, 255),
            (MOST_DELAY_US, 2 + MOST_HOPS),
            "within limits"
        );
        // no hop has the key: what one has told, the next one can take away again, down to what was sealed
        let p = packet(0, 0, b"x");
        let mut d = sealed(&mut a, &p);
        d[DELAY_AT..DELAY_AT + 4].copy_from_slice(&30_000_u32.to_be_bytes());
        d[DELAY_AT..DELAY_AT + 4].fill(0);
        assert_eq!(
            opened(&mut b, &d),
            Some(p.clone()),
            "the receiver hears of no delay"
        );
        let p = packet(1_000, 2, b"x");
        // what the receiver feeds back is no hop's to change
        let told = Header {
            delay_us: 2_000,
            hops: 3,
            ..Header::new(ProtocolId::Atp, Control::ACK.with(Control::SACK_OPT))
        };
        let told = told.octets().to_vec();
        let mut d = sealed(&mut a, &told);
        d[DELAY_AT..DELAY_AT + 4].copy_from_slice(&MOST_DELAY_US.to_be_bytes());
        d[HOPS_AT] = 60;
        assert_eq!(opened(&mut b, &d), Some(told));
        // any other field of the clear header has no say
        let mut d = sealed(&mut a, &p);
        d[8] ^= 0xff;
        assert_eq!(opened(&mut b, &d), Some(p));
    }

    proptest! {
        #[test]
        fn what_is_changed_is_refused(at in 0usize..200, bit in 0u8..8, body in proptest::collection::vec(any::<u8>(), 0..100)) {
            let (mut a, mut b) = pair();
            let p = packet(7, 1, &body);
            let mut d = sealed(&mut a, &p);
            let at = HEADER_OCTETS + at % (d.len() - HEADER_OCTETS);
            d[at] ^= 1 << bit;
            prop_assert_eq!(opened(&mut b, &d), None);
        }

        #[test]
        fn anything(datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..20)) {
            let (_, mut b) = pair();
            let mut a = Guard::caller(&key(1), PATIENCE).unwrap();
            let mut out = [0; MAX_PACKET_OCTETS + 1];
            for d in &datagrams {
                prop_assert_eq!(b.open(d, &mut out), Opened::Nothing);
                a.open(d, &mut out);
                let _ = Guard::listener(&key(1), d);
            }
            prop_assert!(!a.is_open());
        }
    }
}
