//! From measurements to profiles and tables: what `sdmac measure` and `sdmac timers` write.

pub mod adapter;
pub mod confirm;
pub mod host;
pub mod timers;
