//! The protocols of this project on the 802.11 stack of Linux, unchanged: on radios of mac80211_hwsim, in the lab, where
//! SDMAC_LAB is set. Each runs under the law checker, and its tape replays on a fresh instance, action for action.
//! Elsewhere each test says that it is skipped; a radio of the user's is never touched.

mod conformance;
mod edf;
mod ibss;
mod oneshot;
mod tdma;

use std::sync::atomic::AtomicBool;

use frame::{AccessCategory, MacAddr, Rate};
use linux::wifi::{
    Adapter, AdapterConfig, Host, HostConfig, HostCounters, SimulatedRadios, simulated_radios,
};
use radio::{Application, Checked, Duration, Instant, MAX_FRAME_OCTETS, Msdu, Protocol, Submission};

const CHANNEL: u16 = 5180;
const RATE: Rate = Rate::OFDM_54;

/// The radios of the lab, for one test at a time; `None` where there is no lab.
fn lab() -> Option<(SimulatedRadios, Vec<String>)> {
    let radios = simulated_radios(4)?;
    let names = radios.names.clone();
    Some((radios, names))
}

fn open(radio: &str) -> Adapter {
    Adapter::open(AdapterConfig::new(radio, CHANNEL)).unwrap()
}

/// An application: what it submits and when, and what was delivered to it.
#[derive(Default)]
struct App {
    /// When, to whom, what, and how long it is of use; in the order of time.
    plan: Vec<(Instant, MacAddr, Vec<u8>, Duration)>,
    next: usize,
    delivered: Vec<(MacAddr, Vec<u8>)>,
}

impl Application for App {
    fn due(&self) -> Option<Instant> {
        self.plan.get(self.next).map(|p| p.0)
    }

    fn take(&mut self, now: Instant, payload: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission> {
        let (at, peer, octets, life) = self.plan.get(self.next).filter(|p| p.0 <= now)?;
        self.next += 1;
        payload[..octets.len()].copy_from_slice(octets);
        Some(Submission {
            peer: *peer,
            category: AccessCategory::Voice,
            deadline: Some(*at + *life),
            octets: octets.len(),
        })
    }

    fn deliver(&mut self, _: Instant, msdu: Msdu<'_>) {
        self.delivered.push((msdu.peer, msdu.payload.to_vec()));
    }
}

/// What is left of a node after its run.
struct Done<P> {
    protocol: P,
    app: App,
    counters: HostCounters,
    tape: Vec<u8>,
}

/// Runs a protocol under the law checker and with a tape until `until`, and then until nothing is owed.
fn drive<P: Protocol>(adapter: Adapter, protocol: P, mut app: App, until: Instant) -> Done<P> {
    let mut host = Host::new(vec![adapter], HostConfig::default()).unwrap();
    let mut tape = Vec::new();
    let recorder = radio::tape::Tape::new(protocol, |octets: &[u8]| tape.extend_from_slice(octets));
    let mut node: Checked<_> = Checked::strict(recorder);
    host.run(&mut node, &mut app, Some(until), &AtomicBool::new(false))
        .unwrap();
    host.finish(&mut node, &mut app).unwrap();
    node.finish();
    let (protocol, _) = node.into_inner().into_parts();
    Done {
        protocol,
        app,
        counters: *host.counters(),
        tape,
    }
}

/// The tape of a run, played to a fresh protocol.
fn assert_replays<P>(done: &Done<P>, mut fresh: impl Protocol) {
    let found = radio::tape::replay(&done.tape, &mut fresh).unwrap();
    assert!(found.events > 1 && found.actions > 0, "{found:?}");
}
