//! The thesis on ATP in mesh networks: its chains (sections 5.1 to 5.3), its
//! stack (5.4) and its random flows (5.5), with the claims of `papers/atp/claims.toml`.
//!
//! Testbed A is a chain at 24 Mb/s and 10 dBm with links that lose packets, testbed B one at 6 Mb/s and 17 dBm with
//! links that do not. What the thesis does not print is assumed once, here ([`Bed`]), and no value of it follows from
//! a claim, but for one: its curve of Tahoe is a figure without numbers, and what its text implies of that curve is what
//! the loss of [`Bed::CalibratedA`] is calibrated on. [`Plan`] also runs testbed A with other losses, and both testbeds with
//! adapters that try again, and shows what comes of that.

mod constants;
mod feedback;
mod field;
mod field_values;
mod figures;
mod ours;
mod plan;
mod recovery;
mod room;
mod summary;
mod teeth;
#[cfg(test)]
mod tests;
mod values;

use frame::Rate;
use protocols::mac::sender::DEFAULT_TRIES;

use super::claims::{self, Claim};
use super::rows::{Reproduction, Totals};
use super::values::Values;
use crate::mesh::{Chain, Kind};
use crate::report::html::{Report, Section};
pub use field::{Outcome, Scene, What};
pub use figures::figures;
pub use ours::{Aim, Beside, beside};
pub use plan::{Measured, Plan};
pub use teeth::Teeth;

/// The transports of the thesis.
pub const THESIS: [Kind; 4] = [Kind::Tahoe, Kind::Default, Kind::Aggressive, Kind::Adaptive];
/// What the figures show: those of the thesis, and ours.
pub const KINDS: [Kind; 5] = [
    Kind::Tahoe,
    Kind::Default,
    Kind::Aggressive,
    Kind::Adaptive,
    Kind::Sdmac,
];
/// What is run: ours also over hops that do not help it.
const ALL: [Kind; 6] = [
    Kind::Tahoe,
    Kind::Default,
    Kind::Aggressive,
    Kind::Adaptive,
    Kind::Sdmac,
    Kind::Unaided,
];

/// A testbed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bed {
    /// 24 Mb/s, 10 dBm; each link loses so many of 1000 frames.
    A(u16),
    /// 6 Mb/s, 17 dBm, no losses but those of the air.
    B,
    /// A with the usual loss, but its adapters try seven times.
    RetryingA,
    /// A whose adapters try seven times, with the loss at which Tahoe stands to default ATP as in the thesis.
    CalibratedA,
    /// B, but its adapters try seven times.
    RetryingB,
}

/// The radios of a testbed, and how they stand.
struct BedRadio {
    rate: Rate,
    tries: u8,
    tx_dbm: f64,
    spacing_m: f64,
    loss: f64,
}

impl Bed {
    /// Nodes stand so far apart that a neighbour is received well, the next but one is sensed and the third is hidden:
    /// 14 m in A. B is sparser, and by as much as 7 dB more power allow.
    fn radio(self) -> BedRadio {
        let a = |loss: u16, tries| BedRadio {
            rate: Rate::OFDM_24,
            tries,
            tx_dbm: 10.0,
            spacing_m: 14.0,
            loss: f64::from(loss) / 1e3,
        };
        let b = |tries| BedRadio {
            rate: Rate::OFDM_6,
            tries,
            tx_dbm: 17.0,
            spacing_m: 24.0,
            loss: 0.0,
        };
        match self {
            Bed::A(loss) => a(loss, 1),
            Bed::B => b(1),
            Bed::RetryingA => a(LOSS, DEFAULT_TRIES),
            Bed::CalibratedA => a(CALIBRATED_LOSS, DEFAULT_TRIES),
            Bed::RetryingB => b(DEFAULT_TRIES),
        }
    }
}

/// Of 1000 frames, what a link of testbed A loses unless said otherwise. Assumed.
pub const LOSS: u16 = 50;

/// The same where adapters try seven times, calibrated on one flow of Tahoe: the thesis has adaptive ATP 64 % above default ATP and 100 % above
/// Tahoe, so default ATP 22 % above Tahoe. Without retries no loss brings Tahoe so close.
pub const CALIBRATED_LOSS: u16 = 320;

/// One point of a figure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Case {
    /// The testbed.
    pub bed: Bed,
    /// Hops, 1 to 6.
    pub hops: u32,
    /// Flows at once: 1, 2 or 5.
    pub flows: u32,
    /// What they run over.
    pub kind: Kind,
}

impl Case {
    /// What figures 5.2 and 5.3 of the thesis show: one flow of ATP over three hops of testbed A.
    pub fn shown(kind: Kind) -> Case {
        Case {
            bed: Bed::A(LOSS),
            hops: 3,
            flows: 1,
            kind,
        }
    }

    fn is_shown(&self) -> bool {
        let kinds = [Kind::Default, Kind::Aggressive, Kind::Adaptive];
        kinds.map(Case::shown).contains(self)
    }

    /// The chain to be run.
    fn chain(&self, octets: u64, most_seconds: u64) -> Chain {
        let radio = self.bed.radio();
        Chain {
            hops: self.hops,
            flows: self.flows,
            kind: self.kind,
            rate: radio.rate,
            tries: radio.tries,
            tx_dbm: radio.tx_dbm,
            spacing_m: radio.spacing_m,
            loss: radio.loss,
            octets,
            most_seconds,
        }
    }
}

/// The claims of the thesis.
///
/// # Panics
/// Never: the file is part of the program, and its form is tested.
pub fn atp_claims() -> Vec<Claim> {
    let text = include_str!("../../../../../papers/atp/claims.toml");
    claims::parse(text).expect("the file is part of the program")
}

/// What `sdmac-atp` was to reach; no claim of the thesis.
///
/// # Panics
/// Never: the file is part of the program, and its form is tested.
pub fn aims() -> Vec<Claim> {
    let text = include_str!("../../../../../papers/atp/ours.toml");
    claims::parse(text).expect("the file is part of the program")
}

/// Judges what was measured: the claims, and behind them our own aims.
pub fn judge(plan: &Plan, measured: &Measured) -> Reproduction {
    let totals = Totals {
        paper: "atp",
        complete: measured.complete,
        quick: plan.quick,
        seed: plan.seed,
        transmissions: measured.frames,
    };
    let all = [atp_claims(), aims()].concat();
    Reproduction::judged(totals, &all, &Values::of_atp(measured))
}

/// The page of a reproduction, with its figures.
pub fn page(measured: &Measured, reproduction: &Reproduction, time: &str) -> Report {
    let plots = figures(measured)
        .into_iter()
        .fold(Section::new("Figures"), |plots, (_, figure)| plots.figure(figure))
        .table(ours::table(&beside(measured, Kind::Sdmac), "sdmac-atp"))
        .table(ours::table(
            &beside(measured, Kind::Unaided),
            "sdmac-atp over hops as in the thesis",
        ));
    let title = "Does the thesis on ATP come out again?";
    reproduction.page_of(title, "ATP in a wireless mesh network", Some(plots), time)
}
