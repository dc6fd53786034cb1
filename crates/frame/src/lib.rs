//! 802.11 frames, elements, radiotap, rates and exact airtime, without allocation.
//!
//! What belongs here: everything that is a fact of the 802.11 (and radiotap) texts about bits and durations.
//! What does not: state, time, policy.
//!
//! # One pattern
//! Every frame, element and header is a plain struct that implements [`Wire`]: [`parse`](Wire::parse) makes it from
//! octets, [`emit`](Wire::emit) writes it, [`Display`](core::fmt::Display) says it in one line, and what was
//! emitted parses to the same value. The struct is view and value at once: numbers and addresses are copied,
//! variable parts (bodies, elements, names) stay borrowed slices. Fields that depend on flags are `Option`s, and
//! `emit` refuses a value that contradicts itself.
//!
//! Nothing panics, whatever the octets are. Unknown elements and kinds of frames are kept as they are.
//!
//! - [`Frame`]: any frame. [`mac`]: data and control frames, and [`mac::Header`], quick access to raw octets.
//!   [`mgmt`]: management frames. [`element`]: their elements.
//! - [`llc`], [`amsdu`]: what a data frame carries. [`fcs`]: its check sequence. [`radiotap`]: what a driver adds.
//! - [`rate`], [`phy`], [`airtime`], [`edca`]: rates, timing, durations, channel access parameters.
//!
//! ```
//! use frame::mac::{Ack, Flags};
//! use frame::{Frame, MacAddr, Wire};
//!
//! let ack = Ack { flags: Flags::NONE, duration_us: 0, receiver: MacAddr::local(1) };
//! let mut mpdu = [0; 10];
//! ack.emit(&mut mpdu)?;
//! match Frame::parse(&mpdu) {
//!     Ok(Frame::Ack(ack)) => assert_eq!(ack.to_string(), "-> 02:00:00:00:00:01 ACK, Flags=........, NAV=0 us"),
//!     other => panic!("{other:?}"),
//! }
//! # Ok::<(), frame::EmitError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

pub mod addr;
pub mod airtime;
pub mod amsdu;
mod any;
pub mod edca;
pub mod element;
pub mod error;
pub mod fcs;
pub mod llc;
pub mod mac;
pub mod mgmt;
pub mod phy;
pub mod radiotap;
pub mod rate;
pub mod response;
mod wire;

pub use addr::MacAddr;
pub use airtime::ppdu_us;
pub use any::Frame;
pub use edca::{AccessCategory, EdcaParams, edca_default, edca_default_ap};
pub use error::{EmitError, ParseError};
pub use phy::{Band, Phy};
pub use rate::{GuardInterval, Rate, Width};
pub use response::{RateSet, response_rate};
pub use wire::Wire;
