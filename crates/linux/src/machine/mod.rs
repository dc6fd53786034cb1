//! What of this computer costs determinism: [`doctor`] reads it, [`tune`] changes what can be changed while the system
//! runs, and takes it back.
//!
//! The recipe is that of the SDMAC paper (Cena et al. 2018, the optimised configuration of Table IV: isolated cores, the driver and the adapter
//! interrupt on one, the application on another, frequency scaling and power management off), as far as it can be
//! applied without a new boot. Its reasons are those of RT-WLAN (Hughes and Cahill).

pub mod doctor;
pub mod journal;
pub mod network;
pub mod partition;
mod tree;
pub mod tune;

pub use tree::Tree;
