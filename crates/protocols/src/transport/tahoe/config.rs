//! Constants and counters of a connection.

use crate::transport::wire::MAX_DATA_OCTETS;
use radio::Duration;

/// What follows from three duplicate acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recovery {
    /// A window of one segment and slow start, from the oldest segment on.
    Tahoe,
    /// Half of the window, and only what is missing is sent again.
    NewReno,
}

/// The constants of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// What follows from loss.
    pub recovery: Recovery,
    /// Octets of data in a segment, 1 to [`MAX_DATA_OCTETS`].
    pub segment_octets: u16,
    /// Calls before giving up; 3 s after the first, then twice as long each time.
    pub calls: u8,
    /// How long nothing may be heard.
    pub patience: Duration,
    /// How long an ended connection repeats its last acknowledgement.
    pub linger: Duration,
    /// Number of the call on the wire.
    pub initial_number: u32,
}

impl Config {
    /// With the longest segments.
    pub const fn new(recovery: Recovery) -> Config {
        Config {
            recovery,
            segment_octets: MAX_DATA_OCTETS as u16,
            calls: 6,
            patience: Duration::from_ms(120_000),
            linger: Duration::from_ms(3_000),
            initial_number: 0,
        }
    }
}

/// What a connection has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Segments with data, or the end, sent for the first time.
    pub sent: u64,
    /// Sent again.
    pub resent: u64,
    /// Expired timers of retransmission.
    pub timeouts: u64,
    /// Losses seen by three duplicates.
    pub fast: u64,
    /// Datagrams that are no segments of this connection.
    pub foreign: u64,
}
