//! What was on the air, as shares.

use super::tally::Tally;
use serde::Serialize;

/// Shares of time. Frames that overlap count each.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct AirUse {
    /// Data frames with a message, repetitions included.
    pub data: f64,
    /// ACKs.
    pub ack: f64,
    /// Polls and answers without a message, beacons.
    pub overhead: f64,
    /// Others.
    pub foreign: f64,
    /// Of the loop's frames, those that began while another one of the loop was on the air.
    pub collided_frames: f64,
    /// Of the loop's frames, those that began while somebody else was on the air.
    pub disturbed_frames: f64,
    /// Of the loop's frames that met nobody, those that did not arrive: the link's own losses.
    pub lost_alone: f64,
    /// Of the repetitions of messages that missed, those that met another frame of the loop.
    pub repeats_collided: f64,
    /// Data frames per message.
    pub frames_per_message: f64,
}

/// A part of a whole; 0 of nothing.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

impl AirUse {
    pub(super) fn of(t: &Tally) -> AirUse {
        AirUse {
            data: share(t.air.data_ns, t.span_ns),
            ack: share(t.air.ack_ns, t.span_ns),
            overhead: share(t.air.overhead_ns, t.span_ns),
            foreign: share(t.air.foreign_ns, t.span_ns),
            collided_frames: share(t.collided, t.attempts),
            disturbed_frames: share(t.disturbed, t.attempts),
            lost_alone: share(t.alone_lost, t.alone),
            repeats_collided: share(t.repeats_collided, t.repeats),
            frames_per_message: share(t.attempts, t.batches.trials()),
        }
    }
}
