//! The 802.11 stack of Linux as a radio: the protocols that run in the simulator drive unpatched mac80211.
//!
//! ```text
//! protocol  <-events-  Host  <- monitor interface: what the radio receives
//!           -actions->       <- cook monitor: what it has sent, with outcome and tries
//!                            -> packet socket: radiotap header and frame
//!                            <> clerk, an ordinary thread <> nl80211: interfaces, channel, power, rules
//! ```
//!
//! Or through an interface of the user's ([`Carrier::Ordinary`]): Ethernet frames go down, and come back in the error queue.
//!
//! [`Control`] finds the radios of this computer, [`Adapter`] opens one, [`Host`] drives a protocol over any number of
//! them in one thread. No association, no hostapd: frames leave through a monitor interface of ours, with the rate and
//! the number of tries that each asks for. The book's page on Linux says what such a host can do and what it cannot.
//!
//! What belongs here: the way of a frame through the kernel and back. What does not: protocols; how a computer is made
//! fit for real time; measuring (that is [`crate::host`]).

mod ad_hoc;
mod adapter;
pub mod certify;
mod changes;
mod channel;
mod clerk;
mod config;
pub mod confirm;
mod desk;
mod drive;
mod error;
mod ethernet;
mod filter;
mod flight;
mod host;
mod keeper;
mod monitor;
mod nl80211;
mod ordinary;
mod packet;
mod reports;
mod seat;
mod simulated;
mod socket;
mod softmac;
mod source;
mod survey;
pub(crate) mod wait;
mod watch;
mod wiphy;

pub use ad_hoc::AdHoc;
pub use adapter::Adapter;
pub use config::{AdapterConfig, Carrier, TsfSource};
pub use error::Error;
pub use host::{Host, HostConfig, HostCounters};
pub use nl80211::{Control, Interface, Monitor};
pub use ordinary::{OrdinarySocket, OrdinaryStatus};
pub use reports::Reports;
pub use seat::Seat;
pub use simulated::{SimulatedRadios, clock_counts_instructions, simulated_radios};
pub use softmac::SoftMac;
pub use wait::Wait;
pub use wiphy::{Channel, RadioBand, Wiphy};
