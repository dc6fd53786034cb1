//! The air of a scenario between the radios of a real kernel, against the simulator with the same scenario: in the lab,
//! in virtual time, where SDMAC_LAB is set. Elsewhere each test says that it is skipped.
//!
//! ```sh
//! export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='sdmac lab run --radios 8 --'
//! cargo test -p sdmac-lab --test air -- --nocapture
//! ```

mod access;
mod exchange;
mod rate;
mod scenarios;
mod stations;
mod tdma;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use frame::MacAddr;
use lab::scenario::Scenario;
use lab::testbed::air::{self, AirError, Begins, Summary};
use linux::hwsim::Switches;
use linux::wifi::{Adapter, AdapterConfig, Host, HostConfig, HostCounters};
use radio::{Application, Instant, Protocol};

const CHANNEL: u16 = 5180;

/// The lab, for one test at a time; `None` where there is none, or one with fewer radios.
fn lab(radios: usize) -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    if std::env::var("SDMAC_LAB").as_deref() != Ok("virtual") {
        eprintln!("skipped: not in the lab in virtual time (SDMAC_LAB is not `virtual`)");
        return None;
    }
    let have = std::fs::read_dir("/sys/class/ieee80211").map_or(0, Iterator::count);
    if have < radios {
        eprintln!(
            "skipped: {radios} radios are needed, and there are {have} (sdmac lab run --radios {radios})"
        );
        return None;
    }
    Some(ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(Path::new("test.toml"), text, &[]).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs something while `scenario` is the air, and gives what the air has counted, too.
fn under<T>(scenario: &Scenario, seed: u64, stations: impl FnOnce(&Switches) -> T) -> (T, Summary) {
    let done = air::beside(scenario, seed, Begins::WithAir, |_, switches| {
        // a world begins with an interframe space, like a medium that has just become idle
        std::thread::sleep(std::time::Duration::from_millis(1));
        Ok::<_, AirError>(stations(switches))
    });
    done.unwrap_or_else(|e| panic!("{e}"))
}

/// The first radios, with their interfaces.
fn radios(count: usize) -> Vec<Adapter> {
    let open = |i| Adapter::open(AdapterConfig::new(&format!("phy{i}"), CHANNEL)).unwrap();
    (0..count).map(open).collect()
}

/// A station after its run.
struct Done<P, A> {
    protocol: P,
    app: A,
    counters: HostCounters,
}

/// Each adapter with its protocol and its application, all until `until`, and then until nothing is owed.
fn all<P: Protocol + Send, A: Application + Send>(
    stations: Vec<(Adapter, P, A)>,
    until: Instant,
) -> Vec<Done<P, A>> {
    let one = |(adapter, mut protocol, mut app): (Adapter, P, A)| {
        let mut host = Host::new(vec![adapter], HostConfig::default()).unwrap();
        host.run(&mut protocol, &mut app, Some(until), &AtomicBool::new(false))
            .unwrap();
        host.finish(&mut protocol, &mut app).unwrap();
        let counters = *host.counters();
        Done {
            protocol,
            app,
            counters,
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = stations
            .into_iter()
            .map(|s| scope.spawn(move || one(s)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn addresses(adapters: &[Adapter]) -> Vec<MacAddr> {
    adapters.iter().map(Adapter::address).collect()
}
