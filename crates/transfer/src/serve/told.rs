//! What a server waits for, and what it tells.

use std::net::SocketAddr;

use radio::Duration;

use crate::{Progress, TransferError};

/// When a server ends by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// Never.
    Stopped,
    /// When so many transfers have ended well.
    Whole(u64),
    /// When one has ended, well or not. One that went on from another port is no other one.
    One,
}

impl Until {
    /// Whether these are enough.
    pub(super) const fn is_reached(self, good: u64, bad: u64) -> bool {
        match self {
            Until::Stopped => false,
            Until::Whole(n) => good >= n,
            Until::One => good + bad > 0,
        }
    }
}

/// What a server tells.
#[derive(Debug)]
pub enum Told<'a> {
    /// Somebody called who is not answered, once a minute of one host for the same reason.
    TurnedAway {
        /// Who.
        peer: SocketAddr,
        /// Why.
        why: TransferError,
    },
    /// How far a transfer is, ten times a second.
    Progress {
        /// Whose.
        peer: SocketAddr,
        /// Its name.
        name: &'a str,
        /// Since its first datagram came.
        elapsed: Duration,
        /// How far.
        progress: Progress,
    },
    /// A connection has ended on which nothing was offered: it was no transfer.
    NoOffer {
        /// Whose.
        peer: SocketAddr,
        /// Why.
        why: TransferError,
    },
    /// A transfer has ended.
    Ended {
        /// Whose.
        peer: SocketAddr,
        /// Its name.
        name: &'a str,
        /// Since its first datagram came.
        elapsed: Duration,
        /// How far it came.
        progress: Progress,
        /// How.
        result: Result<(), TransferError>,
    },
    /// There are as many transfers as were to be waited for. What ends from now on is none of them.
    Enough,
}
