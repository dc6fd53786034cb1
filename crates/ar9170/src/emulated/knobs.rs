//! What can be turned on a stick and its USB.

/// Times are in nanoseconds of virtual time, chances from 0 (never) to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Knobs {
    /// What is random follows from this.
    pub seed: u64,
    /// From the call of a transfer until it is with the stick, or with the host.
    pub transfer_ns: u64,
    /// From the order to start the image until the firmware says so.
    pub boot_ns: u64,
    /// From a reset until the loader is there.
    pub reset_ns: u64,
    /// What the host takes for one turn of the driver; 0: nothing, and it does all there is.
    pub turn_ns: u64,
    /// What the host takes longer for a turn in which the protocol is told of a received frame.
    pub frame_ns: u64,
    /// Units of one transfer to the host at most, 1 to 4.
    pub units: usize,
    /// A completion is lost.
    pub lost_completion: f64,
    /// What the stick says comes late ...
    pub late_interrupt: f64,
    /// ... by this much.
    pub late_ns: u64,
    /// A sequence number is skipped: a response is lost.
    pub skipped_sequence: f64,
    /// The number of this response is skipped, once: counted from 1, since the stick was made.
    pub skip_response: Option<u64>,
    /// The status of a frame is lost, without a trace.
    pub lost_status: f64,
}

impl Default for Knobs {
    /// All goes well. A transfer takes a microframe of 125 us (USB 2.0, 8.4.3.1), the others are round numbers of ours.
    fn default() -> Self {
        Knobs {
            seed: 1,
            transfer_ns: 125_000,
            boot_ns: 1_000_000,
            reset_ns: 10_000_000,
            turn_ns: 0,
            frame_ns: 0,
            units: 4,
            lost_completion: 0.0,
            late_interrupt: 0.0,
            late_ns: 1_000_000,
            skipped_sequence: 0.0,
            skip_response: None,
            lost_status: 0.0,
        }
    }
}

/// What has gone wrong since a stick was made, because its knobs say so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Sequence numbers that were skipped.
    pub skipped_sequences: u64,
    /// Statuses of frames that were lost.
    pub lost_statuses: u64,
    /// Transfers to the host of more than one unit.
    pub grouped_transfers: u64,
    /// Completions that were lost.
    pub lost_completions: u64,
    /// Transfers that came to the host late.
    pub late_interrupts: u64,
}

impl Faults {
    /// Those of a stick and those of its bus.
    pub(super) const fn with(self, bus: &Faults) -> Faults {
        Faults {
            lost_completions: bus.lost_completions,
            late_interrupts: bus.late_interrupts,
            ..self
        }
    }
}

/// Random numbers that are the same in every run (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From 0 to `n` - 1; 0 for none.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// True with this chance. Without one no number is drawn.
    pub fn chance(&mut self, chance: f64) -> bool {
        chance > 0.0 && (self.bits() >> 11) as f64 / ((1_u64 << 53) as f64) < chance
    }
}
