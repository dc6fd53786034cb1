//! Datagrams over several hops: forwarding along static routes, and the delay of each hop for ATP.
//!
//! | module | what it is |
//! |---|---|
//! | [`header`] | where a datagram comes from and where it goes |
//! | [`forward`] | innermost protocol: queues datagrams, sends them to the next hop, forwards those of others |
//!
//! Routes are set by hand; a routing protocol (OLSR) will be an overlay beside these that sets them.

pub mod forward;
pub mod header;

pub use forward::{Forwarder, ForwarderConfig};
pub use header::Header;
