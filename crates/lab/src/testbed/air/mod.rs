//! The air of a scenario between the simulated radios of a kernel.
//!
//! ```text
//! stations -> mac80211 -> mac80211_hwsim -- Medium --> Daemon --> Air: a World of puppets
//!          <-          <-                <-- receptions, tries and ACKs as the simulator has them
//! ```
//!
//! Adapter k of the scenario, node by node, is the k-th radio. Positions, losses, interference, channel access and retries are the
//! scenario's; what is sent, when, and at which rates is the affair of the stations in the kernel.

pub mod count;
mod daemon;
pub mod rates;
mod wish;
pub mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use linux::hwsim::{self, Switchboard, Switches};
use serde::Serialize;

use crate::scenario::Scenario;
pub use count::Counts;
use daemon::Daemon;

/// Why a scenario cannot be the air of these radios, or why it ended.
#[derive(Debug, thiserror::Error)]
pub enum AirError {
    /// The kernel's side.
    #[error(transparent)]
    Kernel(#[from] hwsim::Error),
    /// No way for switches.
    #[error("cannot make an eventfd: {0}")]
    Switches(std::io::Error),
    /// There is no radio at all.
    #[error(
        "mac80211_hwsim has no radio in this network namespace: load it with `modprobe mac80211_hwsim radios={radios}`, \
         or run `sdmac lab run --radios {radios}`"
    )]
    NoRadios {
        /// Adapters of the scenario.
        radios: u32,
    },
    /// The module went while this was the air.
    #[error(
        "the radios are gone: mac80211_hwsim was unloaded, and this is nobody's air any more; load it and start `sdmac air` again"
    )]
    Gone,
}

/// Which radio a node is, or one of its adapters.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Seat {
    /// Name of the node.
    pub node: String,
    /// Number of its adapter, from 0 on.
    pub adapter: u8,
    /// Name of the radio, `phy0`; `None`: there are too few.
    pub radio: Option<String>,
    /// Permanent address of the radio.
    pub address: Option<String>,
}

impl std::fmt::Display for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.adapter {
            0 => f.write_str(&self.node),
            n => write!(f, "{} (adapter {n})", self.node),
        }
    }
}

/// Who is where.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Seating {
    /// Each node of the scenario in its order, with each of its adapters.
    pub nodes: Vec<Seat>,
    /// Radios without a node: nobody hears them, and they hear nothing.
    pub spare: Vec<String>,
}

/// A node with what it has carried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NodeSummary {
    /// Where it is.
    #[serde(flatten)]
    pub seat: Seat,
    /// Its counts.
    pub counts: Counts,
}

/// What an air has carried, and how well.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The seed.
    pub seed: u64,
    /// How long it was the air, s.
    pub seconds: f64,
    /// All nodes together.
    pub total: Counts,
    /// Each node.
    pub nodes: Vec<NodeSummary>,
    /// Frames of radios without a node.
    pub strange_frames: u64,
    /// The longest time by which the kernel was told of something late, us: how exact this air was.
    pub latest_us: f64,
    /// Share of what the kernel was told that was more than 100 us late.
    pub late_ratio: f64,
    /// Times that the kernel left frames out because this program was too slow.
    pub overflows: u64,
}

/// When the time of a scenario begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begins {
    /// With the air: what is due later is so whoever is there by then.
    WithAir,
    /// When the hosts say so ([`Switches::begin_at`]), so that theirs is the same.
    WithHosts,
}

/// Is the air of the kernel's radios until `stop` is set, which is seen within 100 ms. `ready` is told once who is
/// where, when it is the air.
///
/// # Errors
/// See [`AirError`].
pub fn run(
    scenario: &Scenario,
    seed: u64,
    stop: &AtomicBool,
    ready: impl FnOnce(&Seating),
) -> Result<Summary, AirError> {
    serve(scenario, seed, None, Begins::WithAir, stop, ready)
}

fn serve(
    scenario: &Scenario,
    seed: u64,
    board: Option<Switchboard>,
    begins: Begins,
    stop: &AtomicBool,
    ready: impl FnOnce(&Seating),
) -> Result<Summary, AirError> {
    let mut daemon = Daemon::open(scenario, seed, board)?;
    ready(&daemon.seating);
    daemon.serve(begins, stop)?;
    Ok(daemon.summary(seed))
}

/// Does something while a scenario is the air, and tells what the air has carried, too. `body` is told who is where, and is given
/// switches of the radios, by the number of the adapter among all of the scenario.
///
/// # Errors
/// That of the air if there is one, else that of `body`.
///
/// # Panics
/// If a thread panics.
pub fn beside<T, E: From<AirError>>(
    scenario: &Scenario,
    seed: u64,
    begins: Begins,
    body: impl FnOnce(&Seating, &Switches) -> Result<T, E>,
) -> Result<(T, Summary), E> {
    let (switches, board) = hwsim::switchboard().map_err(AirError::Switches)?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (tell, seated) = mpsc::channel();
        let over = &over;
        let air = scope.spawn(move || {
            serve(scenario, seed, Some(board), begins, over, |seating| {
                drop(tell.send(seating.clone()))
            })
        });
        let done = seated.recv().map(|seating| body(&seating, &switches));
        over.store(true, Ordering::Relaxed);
        let summary = air.join().expect("no panic")?;
        let done = done.expect("an air that has not begun is an error");
        Ok((done?, summary))
    })
}
