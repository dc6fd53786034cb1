//! MAC protocols and overlays as sans-IO state machines: no clock, no randomness, no I/O, no allocation.
//!
//! Each of them is a [`radio::Protocol`]. An *innermost* protocol ([`mac::sender`], [`mac::oneshot`]) turns MSDUs
//! into requests. An *overlay* (`Edf<P>`, `Tdma<P>`, `Beaconer<P>`) is a protocol towards the host and the host
//! of the protocol `P` inside it, so overlays nest: `Tdma<Edf<Sender>>`. [`mac`] says how to add one. [`mesh`] carries
//! datagrams over several hops, and the ends of a [`transport`] talk by datagrams.
//!
//! What belongs here: protocols, and what several of them share. What does not: hosts, scenarios, measurements.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "testing"))]
extern crate std;

mod dice;
pub mod mac;
pub mod mesh;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transport;
