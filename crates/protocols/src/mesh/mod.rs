//! Datagrams over several hops: forwarding along routes, and the delay of each hop for ATP.
//!
//! | module | what it is |
//! |---|---|
//! | [`header`] | where a datagram comes from and where it goes |
//! | [`forward`] | innermost protocol: queues datagrams, sends them to the next hop, forwards those of others |
//! | [`olsr`] | finds routes (RFC 3626) |
//! | [`router`] | both together; without it routes are set by hand |
//! | [`relay`] | datagrams over an ad hoc network with power save |

pub mod forward;
pub mod header;
pub mod olsr;
pub mod relay;
pub mod router;
mod unheard;

pub use forward::{Forwarder, ForwarderConfig};
pub use header::Header;
pub use olsr::{Olsr, OlsrConfig};
pub use relay::{Relay, RelayCounters, RouteTable};
pub use router::Router;
