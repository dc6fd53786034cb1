//! The AR9170 USB radio with the open firmware, as a host of the [contract](radio).
//!
//! ```text
//! Protocol <- Driver -> Bus: ep 0 firmware, ep 4 commands, ep 1 frames
//!                    <- BusEvent: completions, and what ep 2 brings
//! ```
//!
//! - [`codec`]: the octets on the USB, both ways.
//! - [`driver`]: a state machine without I/O: uploads the firmware, brings the stick up, and drives any
//!   [`radio::Protocol`] over it.
//! - [`pipe`]: that USB over a pipe of octets, for a driver in another computer than the stick.
//! - `emulated` (feature of the same name, needs `std`): the stick as a model in virtual time.
//! - `usbredir` (with it): the packets by which QEMU plugs it in.
//! - `usb` (feature of the same name, needs `std`): the driver as a host, with sticks at this computer.
//!
//! What belongs here: this device. What does not: protocols, the air.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "emulated", feature = "usb"))]
extern crate std;

pub mod codec;
pub mod driver;
#[cfg(feature = "emulated")]
pub mod emulated;
pub mod pipe;
#[cfg(feature = "usb")]
pub mod usb;
#[cfg(feature = "emulated")]
pub mod usbredir;
