//! 802.11 frames, elements, radiotap, rates and exact airtime, without allocation.
//!
//! What belongs here: everything that is a fact of the 802.11 (and radiotap) texts about bits and durations.
//! What does not: state, time, policy.
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
pub mod rate;
mod wire;

pub use addr::MacAddr;
pub use airtime::ppdu_us;
pub use any::Frame;
pub use edca::{AccessCategory, EdcaParams, edca_default, edca_default_ap};
pub use error::{EmitError, ParseError};
pub use phy::{Band, Phy};
pub use rate::{Rate, RateSet, response_rate};
pub use wire::Wire;
