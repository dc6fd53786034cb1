//! After its start the thread of a host does not allocate, and with its memory locked it takes no page fault: not for three
//! thousand requests that end in every way there is, their confirms and what is heard of them, while a tape records it all,
//! attributes are read and set, and there is news of the radio. That is done by another thread, which may allocate.
//! Runs in the lab, where SDMAC_LAB is set; elsewhere it says that it is skipped.
#![allow(unsafe_code)] // A global allocator is an unsafe trait; this one only counts and passes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::{MacAddr, Rate};
use linux::hwsim::{self, Medium, Series, Status};
use linux::probe::Way;
use linux::wifi::confirm::Path;
use linux::wifi::{
    AdHoc, Adapter, AdapterConfig, Carrier, Control, Host, HostConfig, HostCounters, Interface,
    simulated_radios,
};
use radio::tape::Tape;
use radio::{
    AdapterId, Attribute, AttributeName, Confirm, Duration, Event, Instant, Outcome, Protocol, Queue, Radio,
    TxHow,
};
use rustix::mm::{MlockAllFlags, mlockall};

struct Counting;

thread_local! {
    /// Of this thread.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has none any more.
    let _ = ALLOCATIONS.try_with(|all| all.set(all.get() + 1));
}

// SAFETY: every call goes to the system's allocator with its arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps to the contract of `realloc`, and `alloc` above is the system's.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract of `dealloc`, and `alloc` above is the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What is set, in turn, one with every twentieth frame. The channel is the one where they are.
const SETS: [Attribute; 5] = [
    Attribute::Channel(CHANNEL),
    Attribute::TxPower(10),
    Attribute::Bssid(MacAddr::local(9)),
    Attribute::Promiscuous(true),
    Attribute::SlotTime(9), // It cannot.
];
const CHANNEL: u16 = 2412;
/// What is read then.
const GETS: [AttributeName; 6] = [
    AttributeName::Capabilities,
    AttributeName::Channel,
    AttributeName::TxPower,
    AttributeName::Promiscuous,
    AttributeName::Counters,
    AttributeName::QueueLength(Queue::BestEffort),
];

/// One request of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// To the second radio, which acknowledges it.
    Peer,
    /// To an address that nobody has.
    Nobody,
    /// To all.
    Group,
    /// A beacon.
    Beacon,
    /// At a rate that the adapter does not have.
    ForeignRate,
    /// With more tries than there are.
    TooManyTries,
    /// Held back for ten seconds, and aborted at once.
    Aborted,
    /// Held back until its time is over.
    Expired,
}

/// What a chain asks for, again and again.
const TURNS: [Turn; 11] = [
    Turn::Peer,
    Turn::Nobody,
    Turn::Group,
    Turn::ForeignRate,
    Turn::Peer,
    Turn::TooManyTries,
    Turn::Aborted,
    Turn::Peer,
    Turn::Expired,
    Turn::Beacon,
    Turn::Peer,
];
/// So often.
const ROUNDS: u32 = 275;
/// Requests of a chain.
const REQUESTS: u32 = ROUNDS * TURNS.len() as u32;
/// The same through an ordinary interface, which carries data alone, and is told nothing of what goes to a group.
const ORDINARY_TURNS: [Turn; 11] = [
    Turn::Peer,
    Turn::Peer,
    Turn::Peer,
    Turn::ForeignRate,
    Turn::Peer,
    Turn::Beacon,
    Turn::Aborted,
    Turn::Peer,
    Turn::Expired,
    Turn::Peer,
    Turn::Peer,
];

/// What is counted of a chain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    acked: u32,
    not_acked: u32,
    refused: u32,
    aborted: u32,
    expired: u32,
    unknown: u32,
    /// Frames of data for the one that hears them, ...
    heard: u32,
    /// ... and for others.
    of_others: u32,
}

/// Sends the next frame when the last one is confirmed; every other one is held back for 100 us. When all is answered it stops
/// its host.
struct Chain<'a> {
    stop: &'a AtomicBool,
    turns: [Turn; TURNS.len()],
    frame: [u8; 100],
    how: TxHow,
    left: u32,
    counted: Counted,
    beacons: u32,
    set: u32,
    answered: u32,
    got: u32,
}

impl Chain<'_> {
    fn ask(&mut self, radio: &mut dyn Radio) {
        let attribute = SETS[self.set as usize % SETS.len()];
        self.set += 1;
        let token = radio.token();
        radio.set(token, AdapterId::FIRST, attribute);
        let got = GETS
            .iter()
            .filter(|name| radio.get(AdapterId::FIRST, **name).is_some());
        self.got += got.count() as u32;
    }

    fn send(&mut self, now: Instant, radio: &mut dyn Radio) {
        let turn = self.turns[self.left as usize % TURNS.len()];
        let mut frame = self.frame;
        let sequence = ((self.left & 0xfff) << 4) as u16;
        frame[22..24].copy_from_slice(&sequence.to_le_bytes());
        // Both are best effort.
        frame[24] = if self.left.is_multiple_of(3) { 3 } else { 0 };
        let mut how = self.how;
        if self.left.is_multiple_of(2) {
            how = how.not_before(now + Duration::from_us(100));
        }
        match turn {
            Turn::Peer => {}
            Turn::Nobody => frame[4..10].copy_from_slice(&NOBODY.0),
            Turn::Group => frame[4..10].copy_from_slice(&MacAddr::BROADCAST.0),
            Turn::Beacon => {
                frame[0] = 0x80;
                frame[4..10].copy_from_slice(&MacAddr::BROADCAST.0);
                frame[24..].fill(0);
                how = how.queue(Queue::Beacon);
            }
            Turn::ForeignRate => how = TxHow::multi_shot(Rate::parse("mcs7/40").unwrap(), 4),
            Turn::TooManyTries => how = TxHow::multi_shot(Rate::OFDM_6, 11),
            Turn::Aborted => how = how.not_before(now + Duration::from_ms(10_000)),
            Turn::Expired => {
                let over = now + Duration::from_us(100);
                how = how.not_before(over + Duration::from_us(1)).expires(over);
            }
        }
        let token = radio.token();
        radio.request(token, &frame, &how);
        if turn == Turn::Aborted {
            radio.abort(token);
        }
    }

    fn confirm(&mut self, outcome: Outcome) {
        let counted = &mut self.counted;
        *match outcome {
            Outcome::Acked => &mut counted.acked,
            Outcome::NotAcked => &mut counted.not_acked,
            Outcome::Refused(_) => &mut counted.refused,
            Outcome::Aborted => &mut counted.aborted,
            Outcome::Expired => &mut counted.expired,
            Outcome::Unknown => &mut counted.unknown,
        } += 1;
    }
}

/// An address that nobody has.
const NOBODY: MacAddr = MacAddr::local(0xabad);

impl Protocol for Chain<'_> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            // The second radio is to hear all. It begins when that is so.
            Event::Start => {
                let token = radio.token();
                radio.set(token, AdapterId(1), Attribute::Promiscuous(true));
            }
            Event::Confirm(Confirm { outcome, .. }) => {
                self.confirm(outcome);
                self.left = self.left.saturating_sub(1);
                if self.left.is_multiple_of(20) {
                    self.ask(radio);
                }
                if self.left > 0 {
                    self.send(now, radio);
                }
            }
            Event::Indication(i) if i.frame[4..10] == NOBODY.0 => self.counted.of_others += 1,
            Event::Indication(_) => self.counted.heard += 1,
            Event::Beacon(_) => self.beacons += 1,
            Event::Set(_) => {
                self.answered += 1;
                if self.answered == 1 {
                    self.send(now, radio);
                }
            }
            _ => {}
        }
        if self.left == 0 && self.answered == 1 + self.set {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Page faults of the calling thread so far: minor and major ones, fields 10 and 12 of proc_pid_stat(5). Itself it takes
/// none after the first call: the buffer is there.
fn faults(buffer: &mut [u8; 1024]) -> u64 {
    let mut file = std::fs::File::open("/proc/thread-self/stat").unwrap();
    let length = std::io::Read::read(&mut file, buffer).unwrap();
    let text = std::str::from_utf8(&buffer[..length]).unwrap();
    let fields = text.rsplit_once(')').unwrap().1.split_ascii_whitespace();
    let wanted = fields.enumerate().filter(|(n, _)| [7, 9].contains(n));
    wanted.map(|(_, value)| value.parse::<u64>().unwrap()).sum()
}

#[test]
fn nothing_is_allocated_and_no_page_is_missing_after_the_start() {
    let Some(radios) = simulated_radios(2) else {
        return;
    };
    // With both kinds of probes, where the kernel has them.
    let has = |path| std::path::Path::new(path).exists();
    let kprobe = has("/sys/bus/event_source/devices/kprobe").then_some(Way::Kprobe);
    let fentry = has("/sys/kernel/btf/mac80211_hwsim").then_some(Way::Fentry);
    // An ordinary interface of the radio goes up and down.
    let first = ordinary(&mut Control::open().unwrap(), &radios.names[0]);
    let once = |config| {
        let news = (format!("/sys/class/net/{}/flags", first.name), ["0x1", "0x0"]);
        let monitors = [0, 1].map(|i: usize| AdapterConfig::new(&radios.names[i], CHANNEL));
        let counted = Counted {
            acked: 4 * ROUNDS,
            not_acked: 3 * ROUNDS,
            refused: 2 * ROUNDS,
            aborted: ROUNDS,
            expired: ROUNDS,
            unknown: 0,
            heard: 5 * ROUNDS,
            of_others: ROUNDS,
        };
        let how = TxHow::one_shot(Rate::OFDM_6);
        once(monitors, config, how, TURNS, news, counted, ROUNDS..=ROUNDS);
    };
    for probes in [Some(None), kprobe.map(Some), fentry.map(Some)]
        .into_iter()
        .flatten()
    {
        once(HostConfig {
            probes,
            ..HostConfig::default()
        });
    }
    if std::env::var_os("SDMAC_LAB_MODULE").is_some() {
        once(HostConfig {
            confirm: Path::Device,
            ..HostConfig::default()
        });
    }
}

/// Through ordinary interfaces, in an ad hoc network.
#[test]
fn nothing_is_allocated_on_an_ordinary_interface_after_the_start() {
    let Some(radios) = simulated_radios(2) else {
        return;
    };
    let mut control = Control::open().unwrap();
    let all = [0, 1].map(|i: usize| ordinary(&mut control, &radios.names[i]));
    let network = AdHoc {
        ssid: "sdmac",
        mhz: CHANNEL,
        bssid: Some(MacAddr::local(9)),
    };
    for one in &all {
        // Nothing but ours is to be heard.
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", one.name), "1");
        control.join_ad_hoc(one, &network).unwrap();
    }
    // They begin the network, and know each other when they have heard a beacon.
    std::thread::sleep(std::time::Duration::from_secs(20));
    let rate = Rate::DSSS_11;
    let configs = all.each_ref().map(|one| AdapterConfig {
        carrier: Carrier::Ordinary(rate),
        ..AdapterConfig::new(&one.name, CHANNEL)
    });
    let config = HostConfig {
        confirm: Path::Status,
        ..HostConfig::default()
    };
    // It is to stay in its network.
    let news = (format!("/sys/class/net/{}/mtu", all[0].name), ["1499", "1500"]);
    let counted = Counted {
        acked: 7 * ROUNDS,
        not_acked: 0,
        refused: 2 * ROUNDS,
        aborted: ROUNDS,
        expired: ROUNDS,
        unknown: 0,
        heard: 7 * ROUNDS,
        of_others: 0,
    };
    let how = TxHow::multi_shot(rate, 4);
    // Two stations take turns at the beacons of the network, ten a second.
    once(configs, config, how, ORDINARY_TURNS, news, counted, 1..=u32::MAX);
    for one in &all {
        control.set_down(one).unwrap();
    }
}

/// The ordinary interface of a radio.
fn ordinary(control: &mut Control, radio: &str) -> Interface {
    let wiphy = control.wiphy(radio).unwrap();
    let all = control.interfaces().unwrap();
    let is_it = |i: &Interface| i.wiphy == wiphy.index && i.name.starts_with("wlan");
    all.into_iter().find(is_it).unwrap()
}

/// Both radios in one host: the first sends, and the second hears it. `news`: a file of an interface, and what is written to it in
/// turn until the end. `expected`: what is counted then, and `beacons` how many of them were heard.
fn once(
    configs: [AdapterConfig; 2],
    config: HostConfig,
    how: TxHow,
    turns: [Turn; TURNS.len()],
    news: (String, [&str; 2]),
    expected: Counted,
    beacons: RangeInclusive<u32>,
) {
    eprintln!("{config:?}");
    let adapters = configs.map(|config| Adapter::open(config).unwrap());
    let adapters = Vec::from(adapters);
    let frame = data(adapters[1].address(), adapters[0].address());
    let mut host = Host::new(adapters, config).unwrap();
    let stop = AtomicBool::new(false);
    let chain = Chain {
        stop: &stop,
        turns,
        frame,
        how,
        left: REQUESTS,
        counted: Counted::default(),
        beacons: 0,
        set: 0,
        answered: 0,
        got: 0,
    };
    let mut octets = vec![0_u8; 8 << 20];
    let mut used = 0;
    let mut tape = Tape::new(chain, |more: &[u8]| {
        octets[used..used + more.len()].copy_from_slice(more);
        used += more.len();
    });
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).unwrap();
    let mut run = |for_ms| {
        watched(|| {
            let until = Host::now() + Duration::from_ms(for_ms);
            host.run(&mut tape, &mut (), Some(until), &stop).unwrap();
        })
    };
    run(0);
    let end = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        let news = scope.spawn(|| {
            let (file, turns) = &news;
            // The last value is what stays.
            while !end.load(Ordering::Relaxed) {
                for value in turns {
                    std::fs::write(file, value).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        });
        let found = run(60_000);
        end.store(true, Ordering::Relaxed);
        news.join().unwrap();
        found
    });
    let counters = *host.counters();
    let chain = tape.into_parts().0;
    assert_eq!((chain.left, chain.counted), (0, expected), "{counters:?}");
    assert!(beacons.contains(&chain.beacons), "{} beacons", chain.beacons);
    assert_eq!(told(&counters), told_by(&expected), "{counters:?}");
    let sets = REQUESTS.div_ceil(20);
    assert_eq!((chain.set, chain.answered, chain.got), (sets, 1 + sets, 5 * sets));
    assert!(counters.news > 10, "{counters:?}");
    assert!(used > 100_000, "{used} octets of tape");
    judge(found);
}

/// Requests by outcome, as the host counts them.
fn told(c: &HostCounters) -> [u64; 6] {
    [c.acked, c.not_acked, c.refused, c.aborted, c.expired, c.unknown]
}

/// The same as the protocol does.
fn told_by(c: &Counted) -> [u64; 6] {
    [c.acked, c.not_acked, c.refused, c.aborted, c.expired, c.unknown].map(u64::from)
}

/// A frame of data with a TID.
fn data(to: MacAddr, from: MacAddr) -> [u8; 100] {
    let mut frame = [0; 100];
    frame[0] = 0x88;
    frame[4..10].copy_from_slice(&to.0);
    frame[10..16].copy_from_slice(&from.0);
    frame[16..22].copy_from_slice(&MacAddr::local(9).0);
    frame
}

/// Allocations and page faults of this thread while it does something.
fn watched(body: impl FnOnce()) -> (u64, u64) {
    let mut buffer = [0; 1024];
    let faulted = faults(&mut buffer);
    let before = ALLOCATIONS.get();
    body();
    let allocations = ALLOCATIONS.get() - before;
    (allocations, faults(&mut buffer) - faulted)
}

/// There is to be none.
fn judge((allocations, faults): (u64, u64)) {
    assert_eq!(allocations, 0);
    // User-Mode Linux maps pages into its processes when they are touched, locked or not: nine were seen
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    match cpu.contains("User Mode Linux") {
        true => eprintln!("{faults} page faults, not judged on User-Mode Linux"),
        false => assert_eq!(faults, 0),
    }
}

/// Frames that a medium holds.
const HELD: u32 = 60;

/// Sends that many frames at its start, and counts what becomes of them.
struct Burst {
    frame: [u8; 100],
    unknown: u32,
}

impl Protocol for Burst {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => {
                for n in 0..HELD as u16 {
                    self.frame[22..24].copy_from_slice(&(n << 4).to_le_bytes());
                    let token = radio.token();
                    radio.request(token, &self.frame, &TxHow::one_shot(Rate::OFDM_6));
                }
            }
            Event::Confirm(Confirm { outcome, .. }) => self.unknown += u32::from(outcome == Outcome::Unknown),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// A medium answers when the host has given up: each request is unknown, and each status is late.
#[test]
fn nothing_is_allocated_for_what_is_unknown_and_told_too_late() {
    let Some(radios) = simulated_radios(1) else {
        return;
    };
    let by_the_device = std::env::var_os("SDMAC_LAB_MODULE").map(|_| Path::Device);
    for confirm in [Some(Path::Monitor), by_the_device].into_iter().flatten() {
        let config = HostConfig {
            confirm,
            ..HostConfig::default()
        };
        eprintln!("{config:?}");
        let adapter = Adapter::open(AdapterConfig::new(&radios.names[0], CHANNEL)).unwrap();
        let mut burst = Burst {
            frame: data(NOBODY, adapter.address()),
            unknown: 0,
        };
        let mut host = Host::new(vec![adapter], config).unwrap();
        let mut medium = Medium::open().unwrap();
        medium.register().unwrap();
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).unwrap();
        let stop = AtomicBool::new(false);
        let mut run = |for_ms| {
            watched(|| {
                let until = Host::now() + Duration::from_ms(for_ms);
                host.run(&mut burst, &mut (), Some(until), &stop).unwrap();
            })
        };
        run(0); // The start.
        let all = [run(1_100), {
            acknowledge_all(&mut medium);
            run(100)
        }];
        let counters = *host.counters();
        assert_eq!(
            (burst.unknown, counters.unknown, counters.late_statuses),
            (HELD, HELD.into(), HELD.into()),
            "{counters:?}"
        );
        assert_eq!(counters.acked, 0, "{counters:?}");
        all.into_iter().for_each(judge);
    }
}

/// Answers each frame that a medium holds, which allocates, while nothing is counted.
fn acknowledge_all(medium: &mut Medium) {
    while let Some(event) = medium.receive().unwrap() {
        let hwsim::Event::Sent(sent) = event else { continue };
        let mut done = [Series::NONE; hwsim::MAX_SERIES];
        done[0] = Series {
            tries: 1,
            ..sent.plan[0]
        };
        let status = Status {
            radio: sent.radio,
            cookie: sent.cookie,
            flags: sent.flags,
            acked: true,
            signal_dbm: -50,
            done,
        };
        assert!(medium.report(&status).unwrap(), "the kernel knows it");
    }
}
