//! The air: who hears whom, how strongly, and what is received.
//!
//! What belongs here: powers, path loss, lists of neighbours, error models, losses of links. What happens on the
//! air in time (signals that start and end) is in `air`, because it touches the adapters.

pub mod error;
pub mod fate;
pub mod links;
pub mod loss;
pub mod power;
mod steps;

pub use error::{ErrorModel, PerTable};
pub use fate::{LinkLoss, Process};
pub use loss::{LossModel, Position};
pub use steps::{OUT_OF_REACH_DB, PathLossTrace};

/// What happens when a frame starts while another one is being received.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Capture {
    /// The first frame goes on being received; whether it survives is decided by the error model with the other one
    /// as noise. The later frame is never received.
    #[default]
    Sinr,
    /// Any overlap destroys the frame that is being received.
    None,
    /// The frame that is being received survives if and only if it is this many dB stronger than all the others
    /// together, for as long as they overlap.
    FirstWins(f64),
    /// Message in message: as `Sinr`, and the receiver turns to a later frame that is stronger by `by_db` if it
    /// arrives at most `window_us` after the first one.
    MessageInMessage {
        /// 5 dB in ns-3.
        by_db: f64,
        /// 16 us in ns-3; very large for chips that do it at any time.
        window_us: u32,
    },
}

/// The medium of a world.
#[derive(Clone, PartialEq, Debug)]
pub struct MediumConfig {
    /// Path loss.
    pub loss: LossModel,
    /// Error model.
    pub error: ErrorModel,
    /// Capture rule.
    pub capture: Capture,
    /// Noise figure of the receivers in dB.
    pub noise_figure_db: f64,
    /// Signals weaker than this many dBm are left out altogether.
    pub floor_dbm: f64,
    /// Weakest signal in dBm whose preamble can be detected.
    pub preamble_dbm: f64,
    /// Least ratio in dB at which a preamble is detected.
    pub preamble_sinr_db: f64,
    /// False: every frame locks a receiver that is free, whatever its ratio (a receiver without preamble detection).
    pub preamble_detection: bool,
    /// Sum of all signals in dBm from which the medium counts as busy although no preamble was detected.
    pub energy_dbm: f64,
}

impl Default for MediumConfig {
    /// Indoors at 5 GHz: log-distance with exponent 3, noise figure 7 dB, preambles from -82 dBm and 4 dB on, energy
    /// from -62 dBm on (IEEE 802.11-2016, 17.3.10.6).
    fn default() -> Self {
        MediumConfig {
            loss: LossModel::LogDistance {
                at_1m_db: 46.6777,
                exponent: 3.0,
                shadowing_db: 0.0,
            },
            error: ErrorModel::Nist,
            capture: Capture::Sinr,
            noise_figure_db: 7.0,
            floor_dbm: -101.0,
            preamble_dbm: -82.0,
            preamble_sinr_db: 4.0,
            preamble_detection: true,
            energy_dbm: -62.0,
        }
    }
}
