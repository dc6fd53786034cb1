//! After its start a host does not allocate, and with its memory locked it takes no page fault: not for a thousand requests,
//! their confirms and what is heard of them.
//! Runs in the lab, where SDMAC_LAB is set; elsewhere it says that it is skipped.
#![allow(unsafe_code)] // A global allocator is an unsafe trait; this one only counts and passes on.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::{MacAddr, Rate};
use linux::probe::Way;
use linux::wifi::{Adapter, AdapterConfig, Host, HostConfig, SimulatedRadios, simulated_radios};
use radio::{Confirm, Duration, Event, Instant, Outcome, Protocol, Radio, TxHow};
use rustix::mm::{MlockAllFlags, mlockall};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator with its arguments unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps to the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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

/// Sends the next frame when the last one is confirmed; every other one is held back for 100 us.
struct Chain {
    frame: [u8; 100],
    left: u32,
    acked: u32,
    heard: u32,
}

impl Chain {
    fn send(&mut self, now: Instant, radio: &mut dyn Radio) {
        let sequence = ((self.left & 0xfff) << 4) as u16;
        self.frame[22..24].copy_from_slice(&sequence.to_le_bytes());
        let mut how = TxHow::one_shot(Rate::OFDM_6);
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
                if self.left > 0 {
                    self.send(now, radio);
                }
            }
            Event::Indication(_) => self.heard += 1,
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
    let Some(radios) = simulated_radios(2) else { return };
    // With both kinds of probes, where the kernel has them.
    let has = |path| std::path::Path::new(path).exists();
    let kprobe = has("/sys/bus/event_source/devices/kprobe").then_some(Way::Kprobe);
    let fentry = has("/sys/kernel/btf/mac80211_hwsim").then_some(Way::Fentry);
    for way in [Some(None), kprobe.map(Some), fentry.map(Some)]
        .into_iter()
        .flatten()
    {
        eprintln!("probes: {way:?}");
        once(&radios, way);
    }
}

fn once(radios: &SimulatedRadios, way: Option<Way>) {
    let adapters = radios.names[..2]
        .iter()
        .map(|name| Adapter::open(AdapterConfig::new(name, 2412)).unwrap());
    // Both radios in one host: the first sends, and the second hears it.
    let adapters: Vec<Adapter> = adapters.collect();
    let mut frame = [0; 100];
    frame[0] = 0x08;
    frame[4..10].copy_from_slice(&adapters[1].address().0);
    frame[10..16].copy_from_slice(&adapters[0].address().0);
    frame[16..22].copy_from_slice(&MacAddr::local(9).0);
    let config = HostConfig {
        probes: way,
        ..HostConfig::default()
    };
    let mut host = Host::new(adapters, config).unwrap();
    let mut chain = Chain {
        frame,
        left: 1_100,
        acked: 0,
        heard: 0,
    };
    let stop = AtomicBool::new(false);
    mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE).unwrap();
    let mut buffer = [0; 1024];
    let mut run = |for_ms| {
        let faulted = faults(&mut buffer);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        let until = Host::now() + Duration::from_ms(for_ms);
        host.run(&mut chain, &mut (), Some(until), &stop).unwrap();
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
        (
            allocations,
            faults(&mut buffer) - faulted,
            chain.left,
            chain.acked,
            chain.heard,
        )
    };
    let (_, _, left, ..) = run(1);
    assert!(left > 1_000, "the start alone: {left}");
    let (allocations, faults, left, acked, heard) = run(10_000);
    assert_eq!((left, acked, heard), (0, 1_100, 1_100));
    assert_eq!(allocations, 0);
    // User-Mode Linux maps pages into its processes when they are touched, locked or not: nine were seen
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    match cpu.contains("User Mode Linux") {
        true => eprintln!("{faults} page faults, not judged on User-Mode Linux"),
        false => assert_eq!(faults, 0),
    }
}
