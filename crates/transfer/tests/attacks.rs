//! Transfers that somebody attacks: on their path, and from elsewhere.

mod common;

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use common::*;
use protocols::transport::Failure;
use protocols::transport::wire::{Control, HEADER_OCTETS, Header, ProtocolId};
use radio::Duration;
use transfer::flow::{FlowConfig, Variant};
use transfer::secure::{Guard, Key};
use transfer::send::Content;
use transfer::serve::MAX_CONNECTIONS;

fn never() -> Arc<AtomicBool> {
    Arc::default()
}

/// What the handshake begins with, and the numbers of its two datagrams behind that.
const MARK: [u8; 2] = [0x53, 1];
const CALL: u8 = 1;
const ANSWER: u8 = 2;

fn is_handshake(datagram: &[u8], kind: u8) -> bool {
    datagram.starts_with(&MARK) && datagram.get(2) == Some(&kind)
}

/// What somebody on the path makes of a datagram that passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attack {
    /// Resets, with the number of the datagram and of the next one.
    Reset,
    /// The same in front of what the datagram holds.
    ResetBefore,
    /// The datagram once more, or an earlier one.
    Replay,
    /// It goes back to who has sent it.
    Reflect,
    /// One bit is another one.
    Flip,
    /// A hop says, both ways, that it could not pass the datagram on.
    Broken,
    /// A feedback that tells of a long delay.
    Slow,
    /// Every kind of packet, of either transport and both ways, from somebody who knows the addresses and none of the numbers.
    Blind,
}

impl Attack {
    const ALL: [Attack; 8] = [
        Attack::Reset,
        Attack::ResetBefore,
        Attack::Replay,
        Attack::Reflect,
        Attack::Flip,
        Attack::Broken,
        Attack::Slow,
        Attack::Blind,
    ];

    /// What is sent without a look at the path.
    fn guesses(n: u32) -> impl Iterator<Item = [u8; HEADER_OCTETS]> {
        const KINDS: [Control; 8] = [
            Control::SYN,
            Control::SYN.with(Control::SACK_REQ),
            Control::SYN.with(Control::ACK).with(Control::SACK_OPT),
            Control::RST,
            Control::RST.with(Control::ACK),
            Control::FIN.with(Control::ACK),
            Control::ACK.with(Control::SACK_OPT).with(Control::SACK_MORE),
            Control::PATH_FAILURE,
        ];
        let all = [ProtocolId::Tcp, ProtocolId::Atp].map(|protocol| KINDS.map(|control| (protocol, control)));
        let guess = move |(k, (protocol, control)): (u32, (ProtocolId, Control))| Header {
            sequence: (n * 16 + k).wrapping_mul(0x9e37_79b1),
            acknowledgement: (n * 16 + k).wrapping_mul(0x85eb_ca77),
            ..Header::new(protocol, control)
        };
        let numbered = (0..).zip(all.into_iter().flatten());
        numbered.map(move |which| guess(which).octets())
    }

    fn run(self, n: u32, way: Way, datagram: &[u8], old: &[u8], send: &dyn Fn(Way, &[u8])) {
        let Some((clear, body)) = datagram.split_first_chunk::<HEADER_OCTETS>() else {
            return;
        };
        // the lengths of blocks are of what is sealed
        let mut clear = *clear;
        clear[4..6].fill(0);
        let with = |control: Control, delay_us: u32| {
            let mut header = clear;
            header[2..4].copy_from_slice(&control.0.to_be_bytes());
            header[16..20].copy_from_slice(&delay_us.to_be_bytes());
            header
        };
        let reset = with(Control::RST.with(Control::ACK), 0);
        match self {
            Attack::Reset => {
                send(way, &reset);
                // the datagram has gone ahead, so what is expected now is what comes behind it
                let mut next = reset;
                let number = u32::from_be_bytes([reset[8], reset[9], reset[10], reset[11]]);
                next[8..12].copy_from_slice(&number.wrapping_add(body.len() as u32).to_be_bytes());
                send(way, &next);
            }
            Attack::ResetBefore => send(way, &[&reset[..], body].concat()),
            Attack::Replay => {
                send(way, datagram);
                send(way, old);
            }
            Attack::Reflect => send(way.back(), datagram),
            Attack::Flip => {
                let mut flipped = datagram.to_vec();
                let at = n as usize * 31 % flipped.len();
                flipped[at] ^= 1 << (n % 8);
                send(way, &flipped);
            }
            Attack::Broken => {
                send(way, &with(Control::PATH_FAILURE, 0));
                send(way.back(), &with(Control::PATH_FAILURE, 0));
            }
            // some are answered, and the answers pass here, too
            Attack::Blind if n > 600 => {}
            Attack::Blind => Attack::guesses(n).for_each(|guess| {
                send(way, &guess);
                send(way.back(), &guess);
            }),
            Attack::Slow => send(way, &with(Control::SACK_OPT.with(Control::ACK), 9_000_000)),
        }
    }
}

struct Outcome {
    /// What the sender said, or the receiver, if it had not worked for it.
    failures: Vec<String>,
    whole: bool,
    attacks: u32,
}

/// Sends 300 kB over a path on which somebody does this to every third datagram once the connection has begun; tells how it went at the
/// sender, whether everything arrived, and how often there was an attack.
fn attacked(attacks: &'static [Attack], config: FlowConfig) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let octets = noise(300_000, 6);
    let s = server_with(folder(dir.path()), Some(1), config);
    let (stop, attacked) = (never(), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&attacked);
    let mut old: Vec<Vec<u8>> = Vec::new();
    let to = middle(s.address, &stop, move |n, way, datagram, send| {
        // some attacks are ahead of what they are made of, some behind it
        let ahead = n.is_multiple_of(2);
        if !ahead {
            send(way, datagram);
        }
        if n > 10 && n.is_multiple_of(3) {
            old.push(datagram.to_vec());
            let earlier = &old[n as usize * 7 % old.len()];
            for attack in attacks {
                attack.run(n, way, datagram, earlier, send);
            }
            count.fetch_add(1, Ordering::Relaxed);
        }
        if ahead {
            send(way, datagram);
        }
    });
    let content = Content::File(file_with(dir.path(), &octets));
    let ended = caller(to, "content", content, &config, &never());
    let (result, _) = ended.recv_timeout(HANGS).expect("it ends");
    s.stop.store(result.is_err(), Ordering::Relaxed);
    let (_, ends) = s.thread.join().unwrap();
    stop.store(true, Ordering::Relaxed);
    let said = ends.into_iter().filter_map(|(_, end)| end.err());
    let failures = result.err().map(|why| why.to_string()).into_iter().chain(said);
    let whole = fs::read(dir.path().join("content")).is_ok_and(|there| there == octets);
    Outcome {
        failures: failures.collect(),
        whole,
        attacks: attacked.load(Ordering::Relaxed),
    }
}

/// Every variant gets through many of these, and nobody hears of a failure.
fn does_no_harm(attacks: &'static [Attack], key: Option<Key>) {
    for variant in [Variant::Sdmac, Variant::Default, Variant::NewReno] {
        let config = FlowConfig {
            key,
            patience: Duration::from_ms(20_000),
            ..config(variant)
        };
        let Outcome {
            failures,
            whole,
            attacks,
        } = attacked(attacks, config);
        assert!(failures.is_empty() && whole, "{variant}: {failures:?}");
        assert!(attacks > 50, "{variant}: {attacks}");
    }
}

#[test]
fn with_a_key_nobody_on_the_path_can_do_more_than_drop() {
    does_no_harm(&Attack::ALL, Some(Key::random().unwrap()));
}

/// The same without a key: what the test above says is due to the key. (The other attacks do no lasting harm without one, either.)
#[test]
fn without_a_key_forgeries_end_it() {
    let reset = Failure::Reset.to_string();
    let attacks: [(&[Attack], &str); 3] = [
        (&[Attack::Reset], &reset),
        (&[Attack::ResetBefore], &reset),
        (&[Attack::Flip], "its checksum differs"),
    ];
    for variant in [Variant::Sdmac, Variant::Default, Variant::NewReno] {
        for (attack, says) in attacks {
            let config = FlowConfig {
                patience: Duration::from_ms(2_000),
                ..config(variant)
            };
            let Outcome { failures, whole, .. } = attacked(attack, config);
            assert!(
                !whole && failures.iter().any(|why| why.contains(says)),
                "{variant}, {attack:?}: {failures:?}"
            );
        }
    }
}

/// Nor does it take a key against who guesses: all he does is to be answered.
#[test]
fn who_knows_no_numbers_does_nothing_even_without_a_key() {
    does_no_harm(&[Attack::Blind], None);
}

/// A recorded call comes again while the answer to another one is on its way: from the address of its caller, and from so many others
/// that all places are taken.
#[test]
fn a_recorded_call_keeps_nobody_out() {
    const REPLAYS: u32 = 1_200;
    let config = FlowConfig {
        key: Some(Key::random().unwrap()),
        ..config(Variant::Sdmac)
    };
    let dir = tempfile::tempdir().unwrap();
    let s = server_with(folder(dir.path()), Some(2), config);
    let (stop, address) = (never(), s.address);
    let recorded: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
    let record = Arc::clone(&recorded);
    let listens = middle(address, &stop, move |_, way, datagram, send| {
        if is_handshake(datagram, CALL) {
            *record.lock().unwrap() = Some(datagram.to_vec());
        }
        send(way, datagram);
    });
    let sent = |name, to| {
        let content = Content::File(file_with(dir.path(), b"content"));
        let ended = caller(to, name, content, &config, &never());
        ended.recv_timeout(HANGS).expect("it ends").0
    };
    sent("first", listens).unwrap();
    let call = recorded.lock().unwrap().take().unwrap();
    // once: on a busy computer that takes longer than the caller waits before he calls anew
    let mut to_come = true;
    let attacks = middle(address, &stop, move |_, way, datagram, send| {
        if is_handshake(datagram, ANSWER) && std::mem::take(&mut to_come) {
            send(Way::ToReceiver, &call);
            for n in 0..REPLAYS {
                // each from another port of one of some hosts
                let from = SocketAddr::from(([127, 0, 1, 1 + (n % 8) as u8], 0));
                UdpSocket::bind(from).unwrap().send_to(&call, address).unwrap();
                if n % 20 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        send(way, datagram);
    });
    sent("second", attacks).unwrap();
    s.thread.join().unwrap().0.unwrap();
    stop.store(true, Ordering::Relaxed);
    assert_eq!(fs::read(dir.path().join("second")).unwrap(), b"content");
}

/// More calls than may wait come from the caller's own address, before his first packet: the keys that he has agreed on are gone, and he
/// calls anew.
#[test]
fn who_was_pushed_out_calls_anew() {
    const MORE: usize = 8;
    let key = Key::random().unwrap();
    let config = FlowConfig {
        key: Some(key),
        ..config(Variant::Sdmac)
    };
    let mut recorded: Vec<_> = (0..MORE)
        .map(|_| Guard::caller(&key, config.patience).unwrap())
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let s = server_with(folder(dir.path()), Some(1), config);
    let (stop, calls) = (never(), Arc::new(AtomicU32::new(0)));
    let count = Arc::clone(&calls);
    let to = middle(s.address, &stop, move |_, way, datagram, send| {
        count.fetch_add(u32::from(is_handshake(datagram, CALL)), Ordering::Relaxed);
        if is_handshake(datagram, ANSWER) && !recorded.is_empty() {
            for mut guard in recorded.drain(..) {
                let call = guard.call(radio::Instant::ZERO).unwrap().unwrap();
                send(Way::ToReceiver, call);
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        send(way, datagram);
    });
    let content = Content::File(file_with(dir.path(), b"content"));
    let ended = caller(to, "content", content, &config, &never());
    ended.recv_timeout(HANGS).expect("it ends").0.unwrap();
    s.thread.join().unwrap().0.unwrap();
    stop.store(true, Ordering::Relaxed);
    assert_eq!(fs::read(dir.path().join("content")).unwrap(), b"content");
    assert!(calls.load(Ordering::Relaxed) >= 2);
}

/// Strangers that bring a connection about and say nothing on it take no place from those who want to send something.
#[test]
fn who_says_nothing_keeps_nobody_out() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(Variant::Sdmac);
    let s = server_with(folder(dir.path()), Some(1), config);
    let mute: Vec<_> = (0..MAX_CONNECTIONS)
        .map(|_| open_and_say_nothing(s.address))
        .collect();
    let content = Content::File(file_with(dir.path(), b"content"));
    let ended = caller(s.address, "content", content, &config, &never());
    ended.recv_timeout(HANGS).expect("it ends").0.unwrap();
    s.thread.join().unwrap().0.unwrap();
    assert_eq!(fs::read(dir.path().join("content")).unwrap(), b"content");
    drop(mute);
}
