//! Two senders and what they share, records as they are written and as strangers would write them, and the folder.

use std::os::unix::fs::symlink;

use protocols::transport::Buffers;
use protocols::transport::atp::Config;
use protocols::transport::wire::Header;

use super::*;

fn peer(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[derive(Default)]
struct Sheet(Vec<Vec<u8>>);

impl Path for Sheet {
    fn request(&mut self, datagram: &[u8]) {
        self.0.push(datagram.to_vec());
    }
}

/// A sender and its receiver, behind a hop that tells a delay.
struct Pair {
    ends: [Atp; 2],
    sheets: [Sheet; 2],
    delay_us: u32,
    /// Steps from one read to the next, of 4 kB.
    reads: Option<u64>,
    /// Packets of the sender; every other one of them is lost, if any is.
    packets: u64,
    loses: bool,
    companions: Companions,
}

impl Pair {
    fn new(delay_us: u32, shared: Option<Shared>) -> Pair {
        let buffers = || Buffers {
            send: Memory::new(1 << 17),
            receive: Memory::new(1 << 17),
            sent: vec![Sent::default(); 512],
        };
        let config = Config::sdmac();
        let mut pair = Pair {
            ends: [Atp::caller(&config, buffers()), Atp::listener(&config, buffers())],
            sheets: Default::default(),
            delay_us,
            reads: None,
            packets: 0,
            loses: false,
            companions: Companions {
                peer: peer("192.0.2.1:7800"),
                state: shared.map_or(State::Alone, |shared| State::Among(Box::new(shared))),
            },
        };
        pair.ends[0].handle(Instant::ZERO, Event::Start, &mut pair.sheets[0]);
        pair
    }

    fn step(&mut self, now: Instant) {
        self.ends[0].write(now, &[7; 4_096]);
        match self.reads {
            None => while self.ends[1].read(now, &mut [0; 4_096]) > 0 {},
            Some(us) if (now.as_ns() / 1_000).is_multiple_of(us) => {
                let _ = self.ends[1].read(now, &mut [0; 4_096]);
            }
            Some(_) => {}
        }
        for end in [0, 1] {
            if self.ends[end].deadline().is_some_and(|at| at <= now) {
                self.tell(now, end, Event::Timer);
            }
            for packet in std::mem::take(&mut self.sheets[end].0) {
                let (mut header, body) = Header::parse(&packet).unwrap();
                if end == 0 && !header.is_feedback() {
                    (header.hops, header.delay_us) = (1, self.delay_us);
                }
                self.packets += u64::from(end == 0);
                if end == 0 && self.loses && self.packets.is_multiple_of(2) {
                    continue;
                }
                let passed = [&header.octets(), body].concat();
                self.tell(now, 1 - end, Event::Indication(&passed));
            }
        }
    }

    fn tell(&mut self, now: Instant, end: usize, event: Event<'_>) {
        let (flow, path) = (&mut self.ends[end], &mut self.sheets[end]);
        match end {
            0 => self.companions.handle(now, event, path, flow),
            _ => flow.handle(now, event, path),
        }
    }
}

/// Two that take the same place at the same time.
#[test]
fn who_was_overwritten_takes_another_place() {
    let folder = tempfile::tempdir().unwrap();
    let shared = || Shared::within(folder.path(), peer("192.0.2.1:1")).unwrap();
    let (mut one, mut other) = (shared(), shared());
    let clock = Clock::at(Instant::from_us(1_000_000));
    let take = |shared: &mut Shared| {
        let place = shared.macroflow.members.iter().position(Option::is_none).unwrap();
        shared.macroflow.members[place] = Some(Member {
            id: shared.id,
            until: Instant::from_us(2_000_000),
            goodput: None,
        });
        shared.tell(&clock);
        place
    };
    one.read(&clock);
    other.read(&clock);
    assert_eq!((take(&mut one), take(&mut other)), (0, 0));
    one.read(&clock);
    assert_eq!(one.macroflow.members[0].unwrap().id, other.id);
    assert_eq!(take(&mut one), 1);
    other.read(&clock);
    let ids = other.macroflow.members.iter().flatten().map(|m| m.id);
    assert_eq!(ids.collect::<Vec<_>>(), [other.id, one.id]);
}

/// Spacings of two senders, us, whose hops tell 5 and 15 ms, after five seconds.
fn spacings(shared: [Option<Shared>; 2]) -> [u32; 2] {
    let [one, other] = shared;
    let mut pairs = [Pair::new(5_000, one), Pair::new(15_000, other)];
    for step in 0..50_000 {
        let now = Instant::from_us(step * 100);
        pairs.iter_mut().for_each(|pair| pair.step(now));
    }
    pairs.map(|pair| pair.ends[0].spacing_us())
}

#[test]
fn flows_to_the_same_computer_have_one_rate() {
    let folder = tempfile::tempdir().unwrap();
    let shared = |to| Some(Shared::within(folder.path(), peer(to)).unwrap());
    let [one, other] = spacings([None, None]);
    assert!(one * 2 < other, "alone: {one} {other} us");
    // the port does not matter, nor how the address is written
    let [one, other] = spacings([shared("192.0.2.1:7800"), shared("[::ffff:192.0.2.1]:9")]);
    assert!(one.abs_diff(other) * 10 < one, "together: {one} {other} us");
    let left = || fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left(), 0, "who is the last removes the file");
    let [one, other] = spacings([shared("192.0.2.1:7800"), shared("192.0.2.2:7800")]);
    assert!(one * 2 < other, "to two computers: {one} {other} us");
    assert_eq!(left(), 0);
}

/// Who is ahead sends less than the common rate, and its receiver speaks less often by that.
#[test]
fn a_share_makes_no_feedback_late() {
    let folder = tempfile::tempdir().unwrap();
    let shared = || Shared::within(folder.path(), peer("192.0.2.1:1"));
    let mut pairs = [Pair::new(40_000, shared()), Pair::new(40_000, shared())];
    pairs[1].loses = true;
    for step in 0..150_000 {
        let now = Instant::from_us(step * 200);
        pairs.iter_mut().for_each(|pair| pair.step(now));
    }
    let [ahead, behind] = pairs.map(|pair| {
        let octets = pair.ends[0].acknowledged_octets();
        let counters = *pair.ends[0].counters();
        (octets, counters.missed, counters.sent + counters.resent)
    });
    assert!(ahead.2 * 10 < behind.2 * 9, "more goes of the one that loses");
    assert!(ahead.0 * 4 < behind.0 * 10, "and not much less arrives of it");
    assert!(ahead.1 <= 2, "{} missed", ahead.1);
}

/// Its rate says nothing of the path.
#[test]
fn a_slow_reader_slows_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let shared = || Shared::within(folder.path(), peer("192.0.2.1:1"));
    let mut pairs = [Pair::new(5_000, shared()), Pair::new(5_000, shared())];
    // 40 kB/s, where the path lets 500 packets of 1,448 octets pass in a second
    pairs[0].reads = Some(100_000);
    for step in 0..100_000 {
        let now = Instant::from_us(step * 100);
        pairs.iter_mut().for_each(|pair| pair.step(now));
    }
    let [slow, fast] = pairs.map(|pair| pair.ends[0].spacing_us());
    assert!(slow > 20_000 && fast < 3_000, "{slow} {fast} us");
}

#[test]
fn a_relay_on_this_computer_is_no_path() {
    let is_alone = |text| matches!(Companions::to(peer(text)).state, State::Alone);
    let alone = ["127.0.0.1:1", "[::1]:1", "[::ffff:127.9.9.9]:1", "192.0.2.1:1"].map(is_alone);
    assert_eq!(alone, [true, true, true, false]);
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut all: Vec<Shared> = (0..3)
        .map(|_| Shared::within(folder.path(), peer("[fe80::1%3]:1")).unwrap())
        .collect();
    // each counts from another instant
    let clocks = [5, 70, 900].map(|s| Clock::at(Instant::from_us(s * 1_000_000)));
    for ((n, shared), clock) in all.iter_mut().enumerate().zip(&clocks) {
        shared.read(clock);
        assert_eq!(shared.macroflow.members.iter().flatten().count(), n);
        let place = shared.macroflow.members.iter().position(Option::is_none).unwrap();
        shared.macroflow.members[place] = Some(Member {
            id: shared.id,
            until: Instant::from_ns(clock.own + 2_000_000_000),
            goodput: (n > 0).then_some(n as f64),
        });
        shared.tell(clock);
    }
    let (first, rest) = all.split_at_mut(1);
    first[0].read(&clocks[0]);
    let members = first[0].macroflow.members;
    for (n, other) in (1..).zip(rest.iter()) {
        let member = members[n].unwrap();
        assert_eq!((member.id, member.goodput), (other.id, Some(n as f64)));
        let left = member.until.as_ns() - clocks[0].own;
        assert!((1_000_000_000..=2_100_000_000).contains(&left), "{left} ns");
    }
    // one that goes takes its record with it; the file stays for the others
    all.pop();
    let shared = &mut all[0];
    shared.read(&clocks[0]);
    assert_eq!(shared.macroflow.members.iter().flatten().count(), 2);
}

#[test]
fn what_is_no_record_is_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut shared = Shared::within(folder.path(), peer("192.0.2.1:1")).unwrap();
    let clock = Clock::at(Instant::ZERO);
    let mut read = |octets: &[u8]| {
        fs::write(&shared.name, octets).unwrap();
        shared.read(&clock);
        (
            shared.macroflow.hz,
            shared.macroflow.members.iter().flatten().count(),
        )
    };
    let rate = octets(&[FORM, 40_f64.to_bits(), 0]);
    let soon = clock.common + 3_000_000_000;
    let good = octets(&[7, soon, 1_f64.to_bits()]);
    assert_eq!(read(&[rate, good].concat()), (40.0, 1));
    let mut torn = good;
    torn[8..16].copy_from_slice(&3_u64.to_ne_bytes());
    let old = octets(&[7, 1, 1_f64.to_bits()]);
    let nobody = octets(&[0, soon, 0]);
    let of_another_start = octets(&[7, soon + 60_000_000_000, 0]);
    let none = [rate, torn, old, nobody, of_another_start, [0; 32]];
    assert_eq!(read(&none.concat()), (40.0, 0));
    assert_eq!(
        read(&octets(&[FORM + 1, 40_f64.to_bits(), 0])),
        (0.0, 0),
        "of another form"
    );
    assert_eq!(read(&octets(&[FORM, f64::NAN.to_bits(), 0])), (0.0, 0));
    for hz in [-4.0, 1e300, f64::INFINITY] {
        assert_eq!(read(&octets(&[FORM, hz.to_bits(), 0])), (0.0, 0), "{hz}");
    }
    for length in [0, 1, 31, 33, 70_000] {
        assert_eq!(read(&vec![0xa5; length]), (0.0, 0), "{length} octets of anything");
    }
}

#[test]
fn only_a_folder_of_ones_own_will_do() {
    let place = tempfile::tempdir().unwrap();
    let of = |name: &str| own_folder(place.path().join(name));
    let made = of("new").unwrap();
    assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
    assert_eq!(of("new"), Some(made.clone()), "it is there by now");
    symlink(&made, place.path().join("link")).unwrap();
    assert_eq!(of("link"), None);
    fs::write(place.path().join("file"), []).unwrap();
    assert_eq!(of("file"), None);
    DirBuilder::new()
        .mode(0o755)
        .create(place.path().join("open"))
        .unwrap();
    assert_eq!(of("open"), None, "others may read it");
    assert_eq!(of("no/such"), None);
    // nor is a file that is a link followed
    symlink("/dev/null", made.join("target")).unwrap();
    let mut shared = Shared::within(&made, peer("192.0.2.1:1")).unwrap();
    let name = std::mem::take(&mut shared.name);
    fs::remove_file(&name).unwrap();
    symlink("/dev/null", &name).unwrap();
    assert!(Shared::within(&made, peer("192.0.2.1:1")).is_none());
}
