//! What is above a protocol on a host that runs in the time of this computer: payloads down, payloads up.

use crate::{Instant, MAX_FRAME_OCTETS, Msdu};
use frame::{AccessCategory, MacAddr};

/// An MSDU of an application, without its octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submission {
    /// Destination.
    pub peer: MacAddr,
    /// Access category.
    pub category: AccessCategory,
    /// When it is of no use any more; `None` if never.
    pub deadline: Option<Instant>,
    /// Octets of its payload.
    pub octets: usize,
}

/// What is above the protocol.
pub trait Application {
    /// When [`take`](Application::take) is to be called next, on the host's clock; `None`: not until something was
    /// delivered.
    fn due(&self) -> Option<Instant>;

    /// The next MSDU that is due at `now`, if there is one; its octets are written into `payload`.
    fn take(&mut self, now: Instant, payload: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission>;

    /// An MSDU from the protocol.
    fn deliver(&mut self, now: Instant, msdu: Msdu<'_>);
}

/// Nothing to send, and nobody to receive.
impl Application for () {
    fn due(&self) -> Option<Instant> {
        None
    }

    fn take(&mut self, _: Instant, _: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission> {
        None
    }

    fn deliver(&mut self, _: Instant, _: Msdu<'_>) {}
}
