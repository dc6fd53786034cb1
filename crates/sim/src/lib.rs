//! A deterministic simulator of the air, the adapter and the host.
pub mod host;
