//! Checks that run inside the lab, on four radios in virtual time: `cargo xtask lab` starts them there.
//!
//! Times in here are those of the guest. They depend on nothing but the kernel, so they may be asserted.

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

/// What `cargo xtask lab` asks for.
const RADIOS: usize = 4;
/// The clock has steps of 256 ns, each reading costs one, and a timer is at least 500 ns away
/// (arch/um/include/linux/time-internal.h, TIMER_MULTIPLIER and TIMER_MIN_DELTA): twice each.
const ROUNDING: Duration = Duration::from_nanos(1_512);

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
#[ignore = "runs inside the lab: cargo xtask lab"]
fn this_is_the_lab() {
    assert_eq!(std::env::var("SDMAC_LAB").as_deref(), Ok("virtual"));
    assert!(read("/proc/cpuinfo").contains("User Mode Linux"));
}

#[test]
#[ignore = "runs inside the lab: cargo xtask lab"]
fn the_radios_are_there_and_each_has_an_interface() {
    let count = std::fs::read_dir("/sys/class/ieee80211").unwrap().count();
    assert_eq!(count, RADIOS);
    for radio in 0..RADIOS {
        let phy = format!("/sys/class/net/wlan{radio}/phy80211/name");
        assert_eq!(read(&phy).trim(), format!("phy{radio}"));
    }
}

/// A thousand times a tenth of a second. A computer in real time has other threads and other work.
#[test]
#[ignore = "runs inside the lab: cargo xtask lab"]
fn every_sleep_of_a_hundred_seconds_ends_on_time() {
    const PERIOD: Duration = Duration::from_millis(100);
    let begun = Instant::now();
    let mut late = 0;
    for _ in 0..1_000 {
        let before = Instant::now();
        std::thread::sleep(PERIOD);
        if before.elapsed() - PERIOD > ROUNDING {
            late += 1;
        }
    }
    assert_eq!(late, 0);
    assert!(begun.elapsed() - 1_000 * PERIOD < 2_000 * ROUNDING);
}

#[test]
#[ignore = "runs inside the lab: cargo xtask lab"]
fn computing_takes_no_time() {
    let before = Instant::now();
    let sum = (0..10_000_000_u64).fold(0, |sum: u64, n| std::hint::black_box(sum.wrapping_mul(31) + n));
    let took = before.elapsed();
    assert!(sum > 0 && took < ROUNDING, "{took:?}");
}

/// Channel 14 is Japan's alone: without the table of countries in the kernel it would not be disabled.
#[test]
#[ignore = "runs inside the lab: cargo xtask lab"]
fn the_country_is_in_force() {
    let map = read("/sys/kernel/debug/ieee80211/phy0/ht40allow_map");
    let disabled = |mhz: &str| {
        let line = map.lines().find(|line| line.starts_with(mhz));
        line.unwrap_or_else(|| panic!("no {mhz} in {map}"))
            .contains("Disabled")
    };
    assert!(disabled("2484"), "{map}");
    assert!(!disabled("2412") && !disabled("5180"), "{map}");
}

#[test]
#[ignore = "runs inside the lab: cargo xtask lab"]
fn the_network_within_the_guest_works() {
    let [a, b] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut buffer = [0; 4];
    for number in 0_u32..100 {
        a.send_to(&number.to_be_bytes(), b.local_addr().unwrap()).unwrap();
        b.recv_from(&mut buffer).unwrap();
        assert_eq!(u32::from_be_bytes(buffer), number);
    }
}

#[test]
#[ignore = "runs inside the lab: cargo xtask lab"]
fn files_are_those_of_the_host_and_writing_stays_in_memory() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    assert!(read(manifest.to_str().unwrap()).contains("sdmac-lab"));
    let new = manifest.with_file_name("written-in-the-guest");
    std::fs::write(&new, "x").unwrap();
    assert_eq!(read(new.to_str().unwrap()), "x");
    for folder in ["/tmp", "/dev/shm", "/run"] {
        std::fs::write(Path::new(folder).join("x"), "x").unwrap();
    }
}
