//! Flows over a mesh: nodes with one radio each that forward datagrams, and transports at their ends.
//!
//! What belongs here: a node with its flows ([`station`]), the worlds they run in ([`chain`]), and what is measured
//! of them. What does not: protocols, and what a paper claims.

pub mod chain;
pub mod metrics;
pub mod station;

pub use chain::{Chain, Ended};
pub use station::{Kind, Trace};
