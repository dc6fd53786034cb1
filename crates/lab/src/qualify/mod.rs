//! Will my control loop hold on Wi-Fi? The engine behind `sdmac qualify`.
//!
//! N nodes send one payload to a controller in every cycle and get one back. Each access scheme runs in the simulator
//! on the same hosts, clocks and links, until its deadline-miss probability is known well enough for a verdict.
//!
//! | module | what it is |
//! |---|---|
//! | [`question`] | what is asked, read from text and checked |
//! | `facts` | what one exchange costs, before anything is simulated |
//! | `bench` | the worlds in which the schemes are tried |
//! | `others` | who else is on the channel |
//! | `ground` | what the host profile rests on |
//! | `clocks` | how well the clocks of TDMA agree, measured |
//! | [`own`] | what overlays count of their own |
//! | `layers` | nodes by their scheme: EDCA, TBMAC, slots of one node, EDF within a node, redundancy and rate control |
//! | [`admission`] | what can be said of EDF and TDMA without a run |
//! | [`roaming`] | two access points, and nodes that walk from one to the other |
//! | [`tdma`] | the schedule, its guard and its clock |
//! | `watch` | watches a run: which messages missed, and why |
//! | `tally` | sums over runs |
//! | [`engine`] | replications on several workers, until the question is decided |
//! | [`shortest`] | the shortest cycle that a scheme would hold |
//! | `air` | what was on the air, as shares |
//! | [`answer`] | the result, as it is written to JSON |
//! | `reason` | why, and what would help, in sentences |
//! | [`table`] | the result for the terminal |
//! | [`page`] | the result as a page |
//! | [`folder`] | the output folder |

pub mod admission;
mod air;
pub mod answer;
mod assumptions;
mod bench;
mod clocks;
pub mod engine;
mod facts;
pub mod folder;
mod ground;
pub mod joining;
mod layers;
mod others;
pub mod own;
pub mod page;
pub mod question;
mod reason;
pub mod roaming;
pub mod shortest;
pub mod table;
mod tally;
pub mod tdma;
pub(crate) mod text;
mod watch;

pub use answer::{Answer, Result, qualify};
pub use bench::DRIFT_PPB;
pub use engine::{Progress, Setting, Stage};
pub use ground::warning;
pub use question::{Interference, Link, Offsets, Question, QuestionError, Rule, Scheme, Turn};
pub use tally::Cause;
pub use text::count;

/// The built-in host profile of that name; failing that, the one in the file of that name.
///
/// # Errors
/// One sentence: what is wrong with the file.
pub fn host(name_or_path: &str) -> std::result::Result<sim::host::Profile, sim::host::ProfileError> {
    sim::host::Profile::open(name_or_path)
}
