//! What a test says to the room, and what the room tells it.

use frame::MacAddr;
use radio::{AdapterId, Refusal, TxHow};
use std::ops::RangeInclusive;
use std::vec::Vec;

/// How long the paths between protocol and air take, in nanoseconds: drawn evenly from these ranges.
#[derive(Clone, Debug)]
pub struct Delays {
    /// From the request to the first bit on the air.
    pub request_ns: RangeInclusive<u64>,
    /// From the end of the exchange to the confirm.
    pub confirm_ns: RangeInclusive<u64>,
    /// From the end of a frame to its indication.
    pub indicate_ns: RangeInclusive<u64>,
    /// From a deadline to the timer event.
    pub timer_ns: RangeInclusive<u64>,
    /// From the end of an exchange whose status is lost until the host gives up.
    pub patience_ns: u64,
}

impl Delays {
    /// The same every time: 10 us down, 20 us up, timers on time.
    pub const STEADY: Delays = Delays {
        request_ns: 10_000..=10_000,
        confirm_ns: 20_000..=20_000,
        indicate_ns: 20_000..=20_000,
        timer_ns: 0..=0,
        patience_ns: 1_000_000,
    };
}

/// What the script decides about one attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Data and ACK arrive.
    Arrives,
    /// Nobody hears it.
    DataLost,
    /// It arrives, the ACK does not.
    AckLost,
    /// It arrives, but its confirm is lost: the host gives up after its patience.
    ConfirmLost,
    /// The host refuses; nothing goes on the air.
    Refused(Refusal),
    /// The adapter is reset; nothing goes on the air.
    Reset,
    /// It arrives, and the adapter is reset before it has told so.
    ArrivesBeforeReset,
    /// The adapter is dead: nothing goes on the air, and the host gives up after its patience.
    Silent,
}

/// One attempt, before its fate is known.
#[derive(Debug)]
pub struct Attempt<'a> {
    /// True time of its first bit in nanoseconds.
    pub at_ns: u64,
    /// Index of the node.
    pub node: usize,
    /// The MPDU without FCS.
    pub frame: &'a [u8],
    /// As it was requested.
    pub how: &'a TxHow,
    /// Attempts of the same request before it.
    pub before: u16,
}

/// One frame on the air.
#[derive(Clone, Debug)]
pub struct Flight {
    /// True time of its first bit in nanoseconds.
    pub start_ns: u64,
    /// True time of the end of the exchange, ACK included if one comes, in nanoseconds.
    pub end_ns: u64,
    /// Index of the node.
    pub node: usize,
    /// Which of its adapters; those of equal number are on one channel.
    pub adapter: AdapterId,
    /// The MPDU without FCS.
    pub frame: Vec<u8>,
    /// What became of it; `DataLost` if it collided.
    pub fate: Fate,
    /// Another frame was on the air at the same time.
    pub collided: bool,
}

/// An MSDU that a node handed up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// True time in nanoseconds.
    pub at_ns: u64,
    /// Index of the node.
    pub node: usize,
    /// Source.
    pub peer: MacAddr,
    /// Payload.
    pub payload: Vec<u8>,
}
