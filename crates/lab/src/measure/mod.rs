//! From measurements to profiles and tables: what `sdmac measure` writes.

pub mod adapter;
pub mod confirm;
pub mod host;
