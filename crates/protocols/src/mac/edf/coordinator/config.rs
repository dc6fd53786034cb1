//! What a coordinator is told, and what it tells.

use crate::mac::data::Identity;
use crate::mac::overlay::Access;
use crate::mac::tally::Tally;
use radio::{Duration, TxHow};

/// How a [`Coordinator`](super::Coordinator) schedules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoordinatorConfig {
    /// Who it is.
    pub identity: Identity,
    /// How frames are sent; should be one-shots.
    pub how: TxHow,
    /// QoS data instead of plain data.
    pub qos: bool,
    /// What an acknowledged attempt costs, from request to confirm. Data are given up when less than this is left.
    pub attempt: Duration,
    /// From the confirm of a poll, acknowledged or not, to the indication of the answer, at most: so long it waits. An uplink
    /// is given up when less than `attempt + answer` is left.
    pub answer: Duration,
    /// Relative deadline of MSDUs without one.
    pub default_deadline: Duration,
    /// Attempts per exchange at most.
    pub max_attempts: u16,
    /// After a failed attempt the node's exchange lets others go first for so long, since losses come in bursts; if there is time.
    pub gap: Duration,
    /// After an empty answer, poll again after this time; `None`: an empty answer is an answer.
    pub poll_again: Option<Duration>,
    /// So many times `attempt` it waits for the confirm of a frame; then it goes on as if the host had lost track of it: a poll may have
    /// been heard, so its answer is awaited. Usual is [`PATIENCE`](crate::mac::edf::PATIENCE).
    pub patience: u32,
    /// Channel access to be set at the start. A request often comes while the ACK of an answer is on the air, so
    /// without a backoff of zero it waits longer than `attempt`: see [`Access::without_backoff`].
    pub access: Option<Access>,
}

/// What a [`Coordinator`](super::Coordinator) has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CoordinatorCounters {
    /// Exchanges opened.
    pub exchanges: u64,
    /// MSDUs that were not taken: too long, or no room for another node.
    pub rejected: u64,
    /// Outcomes of all attempts.
    pub confirms: Tally,
    /// Data acknowledged, or proved to have arrived by an answer.
    pub down_done: u64,
    /// Data given up.
    pub down_missed: u64,
    /// Answers with an MSDU to an open exchange.
    pub up_done: u64,
    /// Exchanges that ended with an empty answer.
    pub up_empty: u64,
    /// Answers given up.
    pub up_missed: u64,
    /// Polls whose answer did not come in time.
    pub timeouts: u64,
    /// Frames whose confirm did not come in time. They count as [`Outcome::Unknown`](radio::Outcome::Unknown) in `confirms`, whatever comes later.
    pub silent: u64,
    /// MSDUs that came again, or after their exchange had ended.
    pub late_or_again: u64,
}
