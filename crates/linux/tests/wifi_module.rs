//! The driver is unloaded while frames are pending: every token has a confirm, and the host refuses from then on. Takes all
//! simulated radios away, so it runs in a guest of its own; where the driver is no module it says that it is skipped.
#![allow(unsafe_code)] // A system call that only tests need; see the SAFETY reason.

use std::sync::atomic::AtomicBool;

use frame::{MacAddr, Rate};
use linux::hwsim::Medium;
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

#[test]
fn a_driver_that_is_unloaded_with_frames_pending() {
    let Some(radios) = simulated_radios(1) else { return };
    let adapter = Adapter::open(AdapterConfig::new(&radios.names[0], 2412)).unwrap();
    let mut few = Few {
        me: adapter.address(),
        next: 0,
        due: None,
        confirms: Vec::new(),
    };
    let config = HostConfig {
        confirm_timeout: Duration::from_ms(50),
        ..HostConfig::default()
    };
    let mut host = Host::new(vec![adapter], config).unwrap();
    let stop = AtomicBool::new(false);
    // A medium that holds every frame.
    let mut medium = Medium::open().unwrap();
    medium.register().unwrap();
    host.run(
        &mut few,
        &mut (),
        Some(Host::now() + Duration::from_ms(10)),
        &stop,
    )
    .unwrap();
    assert!(few.confirms.is_empty(), "all are pending");
    if !unload(c"mac80211_hwsim") {
        return eprintln!("skipped: this kernel has the driver built in");
    }
    host.run(
        &mut few,
        &mut (),
        Some(Host::now() + Duration::from_ms(100)),
        &stop,
    )
    .unwrap();
    assert_eq!(few.confirms.len(), usize::from(PENDING), "{:?}", few.confirms);
    let ended = |c: &Confirm| matches!(c.outcome, Outcome::Unknown | Outcome::NotAcked);
    assert!(few.confirms.iter().all(ended), "{:?}", few.confirms);
    few.due = Some(Instant::ZERO);
    host.run(
        &mut few,
        &mut (),
        Some(Host::now() + Duration::from_ms(20)),
        &stop,
    )
    .unwrap();
    let last = few.confirms.last().map(|c| c.outcome);
    assert_eq!(last, Some(Outcome::Refused(Refusal::NoAdapter)));
    host.finish(&mut few, &mut ()).unwrap();
    drop(host);
    // And it can go on: nobody holds what is gone.
    let error = Adapter::open(AdapterConfig::new("phy0", 2412)).unwrap_err();
    assert!(error.to_string().contains("no radio"), "{error}");
    a_module_without_mac80211();
}
