//! The driver is unloaded while frames are pending: every token has a confirm, and the host refuses from then on. Takes all
//! simulated radios away, so it runs in a guest of its own; where the driver is no module it says that it is skipped.
#![allow(unsafe_code)] // A system call that only tests need; see the SAFETY reason.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;

use frame::{MacAddr, Rate};
use linux::hwsim::Medium;
use linux::wifi::confirm::Path;
use linux::wifi::{Adapter, AdapterConfig, Host, HostConfig, simulated_radios};
use radio::{Confirm, Duration, Event, Instant, Outcome, Protocol, Radio, Refusal, TxHow};

/// Frames that are pending when the driver goes.
const PENDING: u16 = 10;

/// Sends that many at its start, and one whenever its time comes.
struct Few {
    me: MacAddr,
    next: u16,
    due: Option<Instant>,
    confirms: Vec<Confirm>,
}

impl Few {
    fn send(&mut self, radio: &mut dyn Radio) {
        let mut frame = [0; 60];
        frame[0] = 0x08;
        frame[4..10].copy_from_slice(&MacAddr::local(0xabad).0);
        frame[10..16].copy_from_slice(&self.me.0);
        frame[22..24].copy_from_slice(&(self.next << 4).to_le_bytes());
        self.next += 1;
        let token = radio.token();
        radio.request(token, &frame, &TxHow::one_shot(Rate::OFDM_6));
    }
}

impl Protocol for Few {
    fn handle(&mut self, _: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => (0..PENDING).for_each(|_| self.send(radio)),
            Event::Timer => {
                self.due = None;
                self.send(radio);
            }
            Event::Confirm(confirm) => self.confirms.push(confirm),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

/// Unloads a module; false if it is not loaded, or built in.
fn unload(module: &std::ffi::CStr) -> bool {
    // SAFETY: the name ends with a zero and lives; the kernel only reads it.
    let done = unsafe { libc::syscall(libc::SYS_delete_module, module.as_ptr(), libc::O_NONBLOCK) };
    let error = std::io::Error::last_os_error();
    assert!(
        done == 0 || matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOSYS)),
        "{error}"
    );
    done == 0
}

/// Our kernel module, which may have been loaded when the driver went, says that it is of no use without mac80211.
fn a_module_without_mac80211() {
    let Some(file) = std::env::var_os("SDMAC_LAB_MODULE") else {
        return eprintln!("skipped: no module of ours was built here");
    };
    assert!(
        unload(c"sdmac_confirm"),
        "it was loaded, and stands the driver's end"
    );
    let load = || rustix::system::finit_module(std::fs::File::open(&file).unwrap(), c"", 0);
    load().unwrap();
    assert!(unload(c"sdmac_confirm"), "without the driver");
    // Other drivers of the guest use mac80211, too.
    for module in [c"carl9170", c"ath9k", c"ath9k_common", c"ath9k_hw", c"ath"] {
        unload(module);
    }
    assert!(unload(c"mac80211"));
    assert_eq!(load(), Err(rustix::io::Errno::NOENT));
    assert!(!std::path::Path::new("/dev/sdmac").exists());
}

/// A host on one radio, with its protocol.
struct Bench {
    host: Host,
    few: Few,
}

impl Bench {
    fn on(radio: &str, confirm: Path) -> Bench {
        let adapter = Adapter::open(AdapterConfig::new(radio, 2412)).unwrap();
        let few = Few {
            me: adapter.address(),
            next: 0,
            due: None,
            confirms: Vec::new(),
        };
        let config = HostConfig {
            confirm_timeout: Duration::from_ms(50),
            confirm,
            ..HostConfig::default()
        };
        let host = Host::new(vec![adapter], config).unwrap();
        Bench { host, few }
    }

    fn run(&mut self, for_ms: u64) {
        let until = Host::now() + Duration::from_ms(for_ms);
        let stop = AtomicBool::new(false);
        self.host.run(&mut self.few, &mut (), Some(until), &stop).unwrap();
    }
}

/// Outcomes come up by the monitor, and on a second radio by our module's device, where it is loaded.
#[test]
fn a_driver_that_is_unloaded_with_frames_pending() {
    let device = std::env::var_os("SDMAC_LAB_MODULE").map(|_| Path::Device);
    let ways: Vec<Path> = [Some(Path::Monitor), device].into_iter().flatten().collect();
    let Some(radios) = simulated_radios(ways.len()) else {
        return;
    };
    let benches = radios.names.iter().zip(&ways);
    let mut benches: Vec<Bench> = benches.map(|(radio, way)| Bench::on(radio, *way)).collect();
    eprintln!("by {ways:?}");
    // A medium that holds every frame.
    let mut medium = Medium::open().unwrap();
    medium.register().unwrap();
    for bench in &mut benches {
        bench.run(10);
        assert!(bench.few.confirms.is_empty(), "all are pending");
    }
    if !unload(c"mac80211_hwsim") {
        return eprintln!("skipped: this kernel has the driver built in");
    }
    for bench in &mut benches {
        bench.run(100);
        let confirms = &bench.few.confirms;
        assert_eq!(confirms.len(), usize::from(PENDING), "{confirms:?}");
        let ended = |c: &Confirm| matches!(c.outcome, Outcome::Unknown | Outcome::NotAcked);
        assert!(confirms.iter().all(ended), "{confirms:?}");
        let tokens: HashSet<_> = confirms.iter().map(|c| c.token).collect();
        assert_eq!(tokens.len(), confirms.len(), "each has one: {confirms:?}");
        bench.few.due = Some(Instant::ZERO);
        bench.run(20);
        let last = bench.few.confirms.last().map(|c| c.outcome);
        assert_eq!(last, Some(Outcome::Refused(Refusal::NoAdapter)));
        bench.host.finish(&mut bench.few, &mut ()).unwrap();
        assert_eq!(bench.few.confirms.len(), usize::from(PENDING) + 1);
    }
    drop(benches);
    // And it can go on: nobody holds what is gone.
    let error = Adapter::open(AdapterConfig::new("phy0", 2412)).unwrap_err();
    assert!(error.to_string().contains("no radio"), "{error}");
    a_module_without_mac80211();
}
