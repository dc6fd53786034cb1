//! Flows over a mesh: nodes with one radio each that forward datagrams, and transports at their ends.
//!
//! What belongs here: flows ([`flow`]), nodes with their ends ([`station`]), the worlds they run in ([`net`], [`chain`]), and what is measured
//! of them. What does not: protocols, and what a paper claims.

pub mod chain;
pub mod flow;
pub mod metrics;
pub mod net;
pub mod station;

pub use chain::Chain;
pub use flow::{Kind, Trace};
pub use net::{Demand, Ended, Net, Outage, Ran, Routing};
