//! What happened in a run: a running hash, so that two runs can be compared at a glance, and an observer that is
//! shown every step.

use crate::rng::mix;
use frame::Rate;
use radio::{Confirm, Msdu, Token};

/// What is on the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnAir {
    /// A frame that was requested.
    Frame,
    /// An ACK.
    Ack,
    /// A CTS.
    Cts,
    /// An RTS.
    Rts,
    /// Energy that is no frame.
    Noise,
}

/// A transmission, shown when it starts.
#[derive(Clone, Copy, Debug)]
pub struct Transmission<'a> {
    /// Start, ns of true time.
    pub start_ns: u64,
    /// End, ns.
    pub end_ns: u64,
    /// Transmitting adapter.
    pub adapter: u32,
    /// Its node.
    pub node: u32,
    /// What it is.
    pub what: OnAir,
    /// Rate.
    pub rate: Rate,
    /// Centre frequency in MHz.
    pub mhz: u16,
    /// The MPDU without FCS; empty for noise.
    pub frame: &'a [u8],
    /// Attempt of this request, counted from 1; 0 for responses.
    pub attempt: u16,
    /// Octets with FCS.
    pub octets: u32,
}

/// How a reception ended, shown when it ends. Frames whose preamble is not detected are not shown.
#[derive(Clone, Copy, Debug)]
pub struct ReceptionEnd {
    /// When, ns of true time.
    pub at_ns: u64,
    /// Receiving adapter.
    pub adapter: u32,
    /// Transmitting adapter.
    pub from: u32,
    /// What it was.
    pub what: OnAir,
    /// Whether its checksum is right.
    pub ok: bool,
    /// Strength in dBm.
    pub signal_dbm: i8,
}

/// Is shown what happens, in the order of true time. All methods do nothing by default.
pub trait Observer {
    /// A transmission starts.
    fn transmission(&mut self, _t: &Transmission<'_>) {}
    /// A reception ends.
    fn reception(&mut self, _r: &ReceptionEnd) {}
    /// An application hands an MSDU down at a node.
    fn submitted(&mut self, _now_ns: u64, _node: u32, _msdu: &Msdu<'_>) {}
    /// A node requests a frame, and it is not refused.
    fn requested(&mut self, _now_ns: u64, _node: u32, _token: Token, _frame: &[u8]) {}
    /// A protocol hands an MSDU up at a node.
    fn delivered(&mut self, _now_ns: u64, _node: u32, _msdu: &Msdu<'_>) {}
    /// A request of a node ends; stamps are on the node's clock. `exchange_ns` is when its last exchange began and
    /// ended on the air, true time, if there was one.
    fn confirmed(&mut self, _now_ns: u64, _node: u32, _confirm: &Confirm, _exchange_ns: Option<(u64, u64)>) {}
}

/// The running hash of a run and its observer.
#[derive(Default)]
pub struct Trace {
    hash: u64,
    steps: u64,
    /// Shown every step.
    pub observer: Option<Box<dyn Observer>>,
}

impl Trace {
    /// Takes a step into the hash.
    #[inline]
    pub fn step(&mut self, time_ns: u64, kind: u64, a: u64, b: u64) {
        let x = time_ns ^ kind.rotate_left(56) ^ a.rotate_left(32) ^ b.rotate_left(8);
        self.hash = (self.hash.rotate_left(5) ^ x).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.steps += 1;
    }

    /// The hash of all steps so far: equal for equal runs.
    pub fn hash(&self) -> u64 {
        mix(self.hash ^ self.steps)
    }

    /// Number of steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_content_matter() {
        let hash = |steps: &[(u64, u64, u64, u64)]| {
            let mut t = Trace::default();
            steps.iter().for_each(|s| t.step(s.0, s.1, s.2, s.3));
            t.hash()
        };
        let (a, b) = ((1, 2, 3, 4), (1, 2, 4, 3));
        assert_eq!(hash(&[a, b]), hash(&[a, b]));
        assert_ne!(hash(&[a, b]), hash(&[b, a]));
        assert_ne!(hash(&[a]), hash(&[b]));
        assert_ne!(hash(&[a]), hash(&[]));
    }
}
