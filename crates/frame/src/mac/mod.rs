//! What all frames share: frame control, sequence control, QoS control, and quick access to the MAC header.

pub mod control;
pub mod header;

pub use control::{AckPolicy, Flags, FrameControl, FrameType, Kind, QosControl, SequenceControl};
pub use header::{Header, Response};
