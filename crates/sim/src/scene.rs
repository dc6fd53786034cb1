//! What a world is made of: nodes and sources of noise.

use crate::adapter::AdapterConfig;
use crate::clock::Clock;
use crate::fault::HostFaults;
use crate::host::{HostModel, InterruptConfig, Wait};
use crate::medium::Position;
use std::rc::Rc;

/// A node to be added to a world.
#[derive(Clone)]
pub struct NodeConfig {
    /// Where it is.
    pub position: Position,
    /// Its adapters, one or more.
    pub adapters: Vec<AdapterConfig>,
    /// Latencies of its host; `None`: an ideal host.
    pub host: Option<Rc<HostModel>>,
    /// How its protocol waits for timers.
    pub wait: Wait,
    /// What its timers share the processor with; `None`: nothing.
    pub interrupts: Option<InterruptConfig>,
    /// Its host clock.
    pub clock: Clock,
    /// What goes wrong.
    pub faults: HostFaults,
    /// How long the host waits for a lost status before it says `Unknown`, ns.
    pub confirm_timeout_ns: u64,
    /// Whether the adapter can hold frames back (`not_before`).
    pub honours_not_before: bool,
    /// When the protocol gets its first event, ns. Frames that arrive before are acknowledged and lost; its traffic
    /// begins no earlier.
    pub start_ns: u64,
}

impl NodeConfig {
    /// A node with one adapter, an ideal host and a perfect clock.
    pub fn ideal(position: Position, adapter: AdapterConfig) -> NodeConfig {
        NodeConfig {
            position,
            adapters: vec![adapter],
            host: None,
            wait: Wait::Sleep,
            interrupts: None,
            clock: Clock::default(),
            faults: HostFaults::default(),
            confirm_timeout_ns: 100_000_000,
            honours_not_before: true,
            start_ns: 0,
        }
    }
}

/// A source of energy that is no frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NoiseConfig {
    /// Where it is.
    pub position: Position,
    /// Frequency in MHz.
    pub mhz: u16,
    /// Power in dBm.
    pub tx_dbm: f64,
    /// Length of a burst, ns.
    pub on_ns: u64,
    /// Pause between bursts, ns: the mean if `random`.
    pub off_ns: u64,
    /// Exponential pauses.
    pub random: bool,
    /// First burst, ns.
    pub start_ns: u64,
}
