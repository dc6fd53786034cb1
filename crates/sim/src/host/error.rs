//! What can be wrong with a profile, in sentences that say where and what to do.

use super::knots::KnotsError;
use super::profile::{Profile, VERSION};
use super::statistics::StatisticsError;

/// Why a profile cannot be used. Every message is one sentence: file, what is wrong, what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file cannot be read.
    #[error(
        "{file}: cannot be read ({cause}); check the path, or name a built-in profile: {}",
        Profile::names()
    )]
    Read {
        /// The path.
        file: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is longer than any profile.
    #[error("{file}: longer than 16 MiB, so it is not a host profile; write one with `sdmac measure --host`")]
    TooLong {
        /// The path.
        file: String,
    },
    /// The file is a TOML file of another kind.
    #[error(
        "{file}: not a host profile, because format = \"sdmac-host-profile\" is missing; write one with `sdmac measure --host`"
    )]
    Format {
        /// The path.
        file: String,
    },
    /// The file is a profile of another version of the format.
    #[error(
        "{file}: host profile of version {found}, and this program reads version {VERSION}; measure again with `sdmac measure --host` of this program"
    )]
    Version {
        /// The path.
        file: String,
        /// The version in the file, or "unknown".
        found: String,
    },
    /// The text is not TOML, or not of the profile's shape.
    #[error("{file}:{line}:{column}: {what}; correct this line")]
    Syntax {
        /// The path.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// A number is impossible, alone or beside the others.
    #[error("{file}: {component}: {problem}; correct the numbers there")]
    Component {
        /// The path.
        file: String,
        /// The component, as a TOML key such as `request.api`.
        component: String,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with a component.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The statistics contradict each other.
    #[error(transparent)]
    Statistics(#[from] StatisticsError),
    /// The knots are broken.
    #[error(transparent)]
    Knots(#[from] KnotsError),
    /// A number outside its range.
    #[error("{value} is outside {min} to {max}")]
    OutOfRange {
        /// The number.
        value: f64,
        /// The smallest allowed.
        min: f64,
        /// The largest allowed.
        max: f64,
    },
    /// `share` where the path has no total, or another source where it has one.
    #[error("parts are given as share exactly when the path has a total")]
    Share,
    /// The shares of a path do not add up to 1.
    #[error("the shares add up to {0} instead of 1")]
    Shares(f64),
    /// `acked_plus_us` in the acked case, or outside hardware and confirm path.
    #[error("acked_plus_us can only stand where there is an acked case to refer to")]
    NothingToShift,
    /// The standard deviation of a path's total that no correlation of its parts gives.
    #[error("total_sd_us is {stated_us}, but these parts allow {least_us:.3} to {most_us:.3}")]
    TotalSd {
        /// The stated one.
        stated_us: f64,
        /// With independent parts.
        least_us: f64,
        /// With fully dependent parts.
        most_us: f64,
    },
    /// A correlation of request and confirm path that the model cannot reach.
    #[error("request_confirm is {stated}, but these paths allow at most {most:.3}")]
    Correlation {
        /// The stated one.
        stated: f64,
        /// The largest possible.
        most: f64,
    },
}
