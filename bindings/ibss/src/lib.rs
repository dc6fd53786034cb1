//! The link layer of ad hoc networks ([`protocols::mac::ibss`]) as a static library for C firmware: no heap, no operating
//! system, one static amount of memory for each station.
//!
//! What belongs here: the border to C. The header `sdmac_ibss.h` says how it is used.
#![no_std]

mod border;
mod radio_of_c;
mod types;

pub use border::*;
pub use radio_of_c::{How, Radio};
pub use types::{Config, Counters, Outcome};
