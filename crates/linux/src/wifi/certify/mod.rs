//! What an adapter and its driver do with a request: tried, and not believed.
//!
//! ```text
//! radio under test   monitor interfaces, as the host has them; for some questions an access point beside them
//!        | frames at odd rates, with odd numbers of tries, to an address where nobody is
//! second radio       of the same computer, hears everything: copies, retry bits, rates; and acknowledges
//! ```
//!
//! [`certify`] asks, and writes down what was asked, what was seen, and a [`Verdict`]. What one radio cannot see of
//! itself is not guessed: a driver that says it made one try may have made two, and only a second radio knows. The
//! [`Certificate`] goes into [`AdapterConfig`](super::AdapterConfig), and the host then refuses what does not hold.

mod abort;
mod bench;
mod carrier;
mod certificate;
mod inspector;
mod judge;
mod known;
mod requests;
mod station;
mod time;

#[cfg(test)]
mod medium;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

use frame::MacAddr;

pub(super) use station::AccessPoint;

pub use certificate::{Certificate, Proven, Row, Verdict, identity};

use super::error::Error;

/// The other end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A second radio of this computer, by its name or that of one of its interfaces.
    Radio(String),
    /// A station that acknowledges frames for this address; nothing is heard through it.
    Station(MacAddr),
}

/// What is to be certified, and how thoroughly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertifyPlan {
    /// The radio, by its name (`phy0`) or that of one of its interfaces.
    pub radio: String,
    /// The other end; without it less can be seen.
    pub peer: Option<Peer>,
    /// Centre frequency, MHz; `None`: where the radio is, or else the first channel on which one may send.
    pub channel_mhz: Option<u16>,
    /// Frames for the question whether each gets its status, 1 to 1,000,000.
    pub frames: u32,
    /// Frames for each of the other questions, 1 to 10,000.
    pub each: u32,
}

impl CertifyPlan {
    /// 10,000 statuses, and 50 frames for each other question.
    pub fn new(radio: &str) -> CertifyPlan {
        CertifyPlan {
            radio: radio.into(),
            peer: None,
            channel_mhz: None,
            frames: 10_000,
            each: 50,
        }
    }
}

/// Certifies a radio. Sends on its channel for some seconds; nothing stays behind.
///
/// `step` is told how many questions of how many are done, and what the next one is about. When `stop` is set, the
/// certificate has the rows up to then, and says that it is partial.
///
/// # Errors
/// [`Error`] if the radio, or the second one, cannot be opened.
pub fn certify(
    plan: &CertifyPlan,
    step: &dyn Fn(usize, usize, &'static str),
    stop: &AtomicBool,
) -> Result<Certificate, Error> {
    inspector::Inspector::new(plan, step, stop)?.inspect()
}
