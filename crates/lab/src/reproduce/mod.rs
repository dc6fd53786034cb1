//! The experiments of published papers, done again: what a paper states, what comes out here, and a verdict on each
//! row. Here: SDMAC (Cena et al. 2018), with its claims in `papers/sdmac/claims.toml`. Other papers have folders of
//! their own: [`tdma`], [`atp`], [`rtwlan`], [`contiki80211`].
//!
//! Every value of ours comes from the simulated measurement bed ([`bed`]), from the arithmetic of the standard
//! ([`frame`]), or, where a row checks the paper's own arithmetic, from other numbers of the paper; such rows say so.
//! Sums of latencies are also computed, exactly for means and by numerical convolution for the rest ([`convolve`]);
//! there the computed value is the one that is judged, and the simulated one must agree with it.

pub mod atp;
pub mod bed;
pub mod claims;
pub mod contiki80211;
pub mod convolve;
pub mod counts;
pub mod estimate;
mod figures;
mod plan;
pub mod retry;
mod rows;
pub mod rtwlan;
mod sync;
mod table;
pub mod tdma;
#[cfg(test)]
mod tests;
mod values;

pub use figures::figures;
pub use plan::{Measured, Plan};
pub use rows::{Number, Reproduction, Row, Tallies, Tally, Verdict};

/// The claims of the SDMAC paper.
///
/// # Panics
/// Never: the file is part of the program, and its form is tested.
pub fn sdmac_claims() -> Vec<claims::Claim> {
    let text = include_str!("../../../../papers/sdmac/claims.toml");
    claims::parse(text).expect("the file is part of the program")
}
