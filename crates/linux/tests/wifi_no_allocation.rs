//! After its start the thread of a host does not allocate, and with its memory locked it takes no page fault: not for a thousand
//! requests, their confirms and what is heard of them, while a tape records it all, attributes are read and set, and there is
//! news of the radio. That is done by another thread, which may allocate.
//! Runs in the lab, where SDMAC_LAB is set; elsewhere it says that it is skipped.
#![allow(unsafe_code)] // A global allocator is an unsafe trait; this one only counts and passes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::{MacAddr, Rate};
use linux::probe::Way;
use linux::wifi::confirm::Path;
use linux::wifi::{
    AdHoc, Adapter, AdapterConfig, Carrier, Control, Host, HostConfig, Interface, simulated_radios,
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

/// Sends the next frame when the last one is confirmed; every other one is held back for 100 us.
struct Chain {
    frame: [u8; 100],
    how: TxHow,
    left: u32,
    acked: u32,
    heard: u32,
    set: u32,
    answered: u32,
    got: u32,
}

impl Chain {
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
        let sequence = ((self.left & 0xfff) << 4) as u16;
        self.frame[22..24].copy_from_slice(&sequence.to_le_bytes());
        // Both are best effort.
        self.frame[24] = if self.left.is_multiple_of(3) { 3 } else { 0 };
        let mut how = self.how;
        if self.left.is_multiple_of(2) {
            how = how.not_before(now + Duration::from_us(100));
        }
        let token = radio.token();
        radio.request(token, &self.frame, &how);
    }
}

impl Protocol for Chain {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.send(now, radio),
            Event::Confirm(Confirm { outcome, .. }) => {
                self.acked += u32::from(outcome == Outcome::Acked);
                self.left = self.left.saturating_sub(1);
                if self.left.is_multiple_of(20) {
                    self.ask(radio);
                }
                if self.left > 0 {
                    self.send(now, radio);
                }
            }
            Event::Indication(_) => self.heard += 1,
            Event::Set(_) => self.answered += 1,
            _ => {}
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
        once(monitors, config, TxHow::one_shot(Rate::OFDM_6), news);
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
    once(configs, config, TxHow::multi_shot(rate, 4), news);
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
/// turn until the end.
fn once(configs: [AdapterConfig; 2], config: HostConfig, how: TxHow, news: (String, [&str; 2])) {
    eprintln!("{config:?}");
    let adapters = configs.map(|config| Adapter::open(config).unwrap());
    let adapters = Vec::from(adapters);
    let mut frame = [0; 100];
    frame[0] = 0x88;
    frame[4..10].copy_from_slice(&adapters[1].address().0);
    frame[10..16].copy_from_slice(&adapters[0].address().0);
    frame[16..22].copy_from_slice(&MacAddr::local(9).0);
    let mut host = Host::new(adapters, config).unwrap();
    let chain = Chain {
        frame,
        how,
        left: 1_100,
        acked: 0,
        heard: 0,
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
    let stop = AtomicBool::new(false);
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).unwrap();
    let mut buffer = [0; 1024];
    let mut run = |for_ms| {
        let faulted = faults(&mut buffer);
        let before = ALLOCATIONS.get();
        let until = Host::now() + Duration::from_ms(for_ms);
        host.run(&mut tape, &mut (), Some(until), &stop).unwrap();
        let allocations = ALLOCATIONS.get() - before;
        (allocations, faults(&mut buffer) - faulted)
    };
    run(1);
    let end = AtomicBool::new(false);
    let (allocations, faults) = std::thread::scope(|scope| {
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
        let found = run(10_000);
        end.store(true, Ordering::Relaxed);
        news.join().unwrap();
        found
    });
    let counters = *host.counters();
    let chain = tape.into_parts().0;
    assert_eq!(
        (chain.left, chain.acked, chain.heard),
        (0, 1_100, 1_100),
        "{counters:?}"
    );
    assert_eq!((chain.set, chain.answered, chain.got), (55, 55, 5 * 55));
    assert!(counters.news > 10, "{counters:?}");
    assert!(used > 100_000, "{used} octets of tape");
    assert_eq!(allocations, 0);
    // User-Mode Linux maps pages into its processes when they are touched, locked or not: nine were seen
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    match cpu.contains("User Mode Linux") {
        true => eprintln!("{faults} page faults, not judged on User-Mode Linux"),
        false => assert_eq!(faults, 0),
    }
}
