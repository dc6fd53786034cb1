//! The radios of mac80211_hwsim, for tests: where they are found, and how tests take turns on them.
//!
//! Tests that open radios run in the lab (`sdmac lab run`), which sets
//! SDMAC_LAB. Elsewhere they are skipped: a radio that carries somebody's network is never touched.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::nl80211::Control;
use crate::sys::driver_of;

/// Driver of the simulated radios.
const DRIVER: &str = "mac80211_hwsim";
/// Set in the lab.
const LAB: &str = "SDMAC_LAB";
/// Set in a lab whose clock is not that of any computer: what it counts.
const CLOCK: &str = "SDMAC_LAB_CLOCK";

/// Simulated radios, for one test of a process at a time.
#[derive(Debug)]
pub struct SimulatedRadios {
    /// Their names, in the order of their numbers.
    pub names: Vec<String>,
    _turn: MutexGuard<'static, ()>,
}

/// Waits for its turn and gives the simulated radios; `None`, with a word on stderr, where there is no lab.
///
/// # Panics
/// In a lab with fewer than `at_least` radios, or without an 802.11 stack: the tests could show nothing there.
pub fn simulated_radios(at_least: usize) -> Option<SimulatedRadios> {
    static TURN: Mutex<()> = Mutex::new(());
    if std::env::var_os(LAB).is_none() {
        eprintln!("skipped: not in the lab ({LAB} is not set)");
        return None;
    }
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let radios = Control::open().and_then(|mut control| control.wiphys());
    let names = radios.unwrap_or_else(|error| panic!("{error}"));
    let names = names.into_iter().map(|radio| radio.name);
    let names: Vec<String> = names
        .filter(|name| driver(name).as_deref() == Some(DRIVER))
        .collect();
    assert!(
        names.len() >= at_least,
        "this needs {at_least} radios of {DRIVER}, and there are {names:?}: `sdmac lab run --radios {at_least}`"
    );
    Some(SimulatedRadios { names, _turn: turn })
}

/// Whether this is a lab whose clock counts instructions (`sdmac lab run --qemu` on one emulated processor), so that ratios of
/// times are ratios of instructions, which tests may judge.
pub fn clock_counts_instructions() -> bool {
    std::env::var_os(CLOCK).is_some_and(|what| what == "instructions")
}

/// Name of the driver of a radio, where the kernel tells. /sys may show another network namespace; then an interface of the
/// radio is asked.
pub(super) fn driver(radio: &str) -> Option<String> {
    driver_by_sys(radio).or_else(|| {
        let mut control = Control::open().ok()?;
        let index = control.wiphy(radio).ok()?.index;
        let all = control.interfaces().ok()?;
        let one = all.iter().find(|i| i.wiphy == index)?;
        driver_of(&one.name).ok().filter(|name| !name.is_empty())
    })
}

fn driver_by_sys(radio: &str) -> Option<String> {
    let link = std::fs::read_link(
        Path::new("/sys/class/ieee80211")
            .join(radio)
            .join("device/driver"),
    )
    .ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}
