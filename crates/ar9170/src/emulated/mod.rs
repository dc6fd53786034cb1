//! The stick with the open firmware, as a model in virtual time; and a computer with one plugged in.
//!
//! ```text
//! protocol <-> Driver <-> Usb <-> Stick <-> the air
//! ```
//!
//! Towards the air [`Stick`] is a user of the contract like any other: frames that its firmware sends are requests, and
//! what the air tells comes as events. So whatever carries the contract can be its air; channel access, ACKs and retries
//! are the air's. [`Plugged`] puts driver, USB and stick together, and is a [`radio::Protocol`] itself: it goes wherever
//! a protocol goes. [`Redirected`] is a stick that another computer has plugged in, over [`usbredir`](crate::usbredir).
//!
//! Not modelled: keys, wake on WLAN, writes to memory, frames that wait behind a beacon, and the counters (`TALLY` answers
//! zeros). What the model does with the firmware's code: nothing. It behaves as firmware 1.9.6 does, by its published source and
//! its interface to Linux; [`Knobs`] make it behave badly.

mod beacon;
mod descriptors;
mod knobs;
mod plugged;
mod redirected;
mod registers;
mod remote;
mod reports;
mod stick;
mod usb;

pub use knobs::{Faults, Knobs, Random};
pub use plugged::Plugged;
pub use redirected::Redirected;
pub use remote::{Far, Remote};
pub use stick::Stick;
