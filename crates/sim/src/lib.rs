//! A deterministic simulator of the air, the adapter and the host.
//!
//! What belongs here: the event queue, the medium, the adapter's channel access, the host's latencies, faults. What
//! does not: protocols (they come in through [`radio::Protocol`]) and experiments.
#![forbid(unsafe_code)]

pub mod adapter;
mod air;
pub mod clock;
mod core;
pub mod fault;
pub mod host;
pub mod medium;
mod node;
mod outside;
mod plan;
mod pool;
pub mod queue;
pub mod rng;
mod scene;
pub mod text;
pub mod trace;
pub mod traffic;
pub mod world;

pub use adapter::{AccessRules, AdapterConfig};
pub use medium::{Capture, ErrorModel, LinkLoss, LossModel, MediumConfig, Position, Process};
pub use scene::{NodeConfig, NoiseConfig};
pub use trace::Observer;
pub use traffic::{Pattern, Traffic};
pub use world::World;
