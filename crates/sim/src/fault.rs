//! Faults of hosts and adapters. Losses on the air are links' business: [`LinkLoss`](crate::medium::LinkLoss).

/// What goes wrong at a host, besides its latencies.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct HostFaults {
    /// Probability that the status of a transmission is lost: its confirm is `Unknown`, after the host's timeout.
    pub lost_confirm: f64,
    /// Probability that a timer fires late by `late_timer_ns` on top of the host's lateness.
    pub late_timer: f64,
    /// How late, ns.
    pub late_timer_ns: u64,
}

/// Something that happens to a node at a given time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Incident {
    /// Adapter `adapter` of the node resets: queued frames are aborted, its TSF starts at 0.
    AdapterReset {
        /// Number of the adapter on its node.
        adapter: u8,
    },
    /// Adapter `adapter` of the node is pulled out: what is queued is aborted, it hears nothing more, and further
    /// requests are refused.
    AdapterGone {
        /// Number of the adapter on its node.
        adapter: u8,
    },
    /// The host's clock jumps ahead by this many ns. It never jumps back: the contract forbids it.
    ClockJump {
        /// ns.
        ahead_ns: u64,
    },
    /// The TSF of an adapter jumps to a value in us.
    TsfJump {
        /// Number of the adapter on its node.
        adapter: u8,
        /// us.
        to_us: u64,
    },
}
