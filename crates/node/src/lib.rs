//! A small node of an ad hoc network, above its link layer: IPv6 and UDP, routes over several hops, a CoAP server and a
//! CoAP client. No heap, no clock, no I/O.
//!
//! ```text
//! CoAP server, client | routes
//! UDP, IPv6 (smoltcp) | forwarding       Net
//! Ibss                                   Station: both, as one protocol of the contract
//! a host of the contract
//! ```
//!
//! - [`address`]: the IPv6 addresses of a node hold its MAC address, so nobody has to ask for it.
//! - [`routes`]: who reaches whom over whom, told to neighbours every few seconds (DSDV).
//! - [`coap`]: requests and responses (RFC 7252); the messages themselves are those of `coap-message-implementations`.
//! - [`net`]: these on smoltcp. [`station`]: that over [`protocols::mac::ibss`], wherever protocols run.
//!
//! What belongs here: what a small node runs above the contract. What does not: the link layer, boards, pipes.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod address;
pub mod coap;
pub mod net;
mod resources;
pub mod routes;
pub mod setup;
pub mod station;
mod ways;

pub use net::{Answer, Board, Memory, Net, Stick, Storage};
pub use setup::Setup;
pub use station::{Link, Station};
pub use ways::Ways;
