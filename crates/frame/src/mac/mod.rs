//! The MAC header and the frames that consist of little else: data, null and control frames.
//!
//! [`header`] answers questions about raw octets without reading the whole frame.

mod control;
mod data;
mod fields;
pub mod header;
mod opaque;

pub use control::{Ack, Cts, PsPoll, Rts};
pub use data::Data;
pub use fields::{AckPolicy, Aid, Flags, FrameControl, FrameType, Kind, QosControl, SequenceControl};
pub use header::{Header, Response};
pub use opaque::Opaque;
