//! Joining and leaving on the air, for stations that are not in the schedule beforehand.
//!
//! The cycle has one slot more, behind the beacon's, in which anybody may ask. Who wants slots says there what it
//! wants ([`Wish`]); after an ask without an ACK it waits for a random number of cycles, twice as many each time. The
//! coordinator asks [`admission`](super::admission) and answers in its beacons: there the asker is among the members,
//! or it is refused with a [`Reason`].
//!
//! All compute the same slots from the same list of members and their numbers of slots, so the list is all that beacons say, with the cycle from
//! which on it holds and the cycle until which the coordinator has promised to change nothing (the *lease*; the idea
//! is Gray and Cheriton's, 1989). A change begins when the last promise has ended, not earlier. A station that has
//! heard of it switches with all others in that cycle, and one that has not is silent from then on, because its lease
//! is over. So two stations never use two lists at the same time, whatever beacons get lost; the price is that a change
//! takes a lease, and that a station stops after a lease without beacons.
//!
//! A member that has nothing to send sends a Null frame in its slot now and then. One that was not heard for a number of
//! cycles is dropped. A coordinator that starts lets a lease pass before its first list holds: the promises
//! of its former life are over then.

pub mod wire;

mod drive;
mod registrar;
mod ticket;

pub use wire::Wish;

pub(super) use drive::Side;

use registrar::Registrar;
use ticket::Ticket;

use super::admission::Denied;
use super::schedule::PlanError;
use radio::Duration;

/// Members that fit in a beacon.
pub const MAX_MEMBERS: usize = 16;

/// Why somebody may not join.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Reason {
    /// The cycle has no room for its slots.
    NoRoom = 1,
    /// There are [`MAX_MEMBERS`] members, or as many slots as the coordinator can hold.
    Full = 2,
    /// Its losses are too high for what it wants.
    TooLossy = 3,
    /// The attempts that it needs take longer than its deadline or period.
    TooSlow = 4,
    /// With it, somebody else would be too late.
    OthersTooSlow = 5,
}

impl Reason {
    /// The reason with a number, as it is on the air.
    pub const fn from_code(code: u8) -> Option<Reason> {
        Some(match code {
            1 => Reason::NoRoom,
            2 => Reason::Full,
            3 => Reason::TooLossy,
            4 => Reason::TooSlow,
            5 => Reason::OthersTooSlow,
            _ => return None,
        })
    }

    /// What an asker is told when its flows are `own` among those that were looked at.
    fn of(denied: Denied, own: core::ops::Range<usize>) -> Reason {
        match denied {
            Denied::Plan(PlanError::TooManySlots { .. }) => Reason::Full,
            Denied::Plan(_) => Reason::NoRoom,
            Denied::TooLossy { .. } => Reason::TooLossy,
            Denied::TooSlow { flow, .. } | Denied::TooOften { flow } if own.contains(&flow) => {
                Reason::TooSlow
            }
            // that it is one too many for who sends to it is no fault of others
            Denied::TooMany { .. } => Reason::NoRoom,
            Denied::NoRoom { flow, .. } if own.contains(&flow) => Reason::NoRoom,
            Denied::TooSlow { .. } | Denied::TooOften { .. } | Denied::NoRoom { .. } => Reason::OthersTooSlow,
        }
    }
}

impl core::fmt::Display for Reason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Reason::NoRoom => "the cycle has no room for its slots",
            Reason::Full => "the schedule has no room for more members",
            Reason::TooLossy => "its losses are too high for what it wants",
            Reason::TooSlow => "the attempts that it needs take longer than its deadline or period",
            Reason::OthersTooSlow => "with it somebody else would be too late",
        })
    }
}

/// Who is in a schedule, and who decides.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Membership {
    /// The plan is fixed, and the same everywhere.
    #[default]
    Fixed,
    /// It decides. The plan is that of [`TdmaPlan::open`](super::schedule::TdmaPlan::open).
    Coordinator(Rules),
    /// It asks. The plan is that of [`TdmaPlan::open`](super::schedule::TdmaPlan::open).
    Station(Stay),
}

/// What a coordinator keeps to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Cycles from a beacon until a change may begin: at least twice those from beacon to beacon, or a lost beacon
    /// silences everybody.
    pub lease: u32,
    /// A member that was not heard for so many cycles is dropped.
    pub silent: u32,
    /// From the end of an exchange until its outcome is known: see [`admit`](super::admission::admit).
    pub confirm: Duration,
    /// Messages that a node holds.
    pub held: usize,
}

/// When and as what a station is in the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stay {
    /// What it wants.
    pub wish: Wish,
    /// When it begins to ask, after its start.
    pub join_after: Duration,
    /// When it says that it leaves, after its start.
    pub leave_after: Option<Duration>,
    /// It is heard at least once in so many cycles: well below the coordinator's [`Rules::silent`].
    pub sign: u32,
    /// Cycles after a refusal until it asks again.
    pub ask_again: u32,
}

/// What either side has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JoinCounters {
    /// A station: times that it asked, on the air.
    pub asked: u64,
    /// A station: times that it found itself in a list that holds. The coordinator: stations let in.
    pub joined: u64,
    /// A station: times that it was refused. The coordinator: askers refused.
    pub refused: u64,
    /// A station: times that it left because it wanted to. The coordinator: members that said so.
    pub left: u64,
    /// A station: times that its lease ran out. The coordinator: members dropped because nobody heard them.
    pub lapsed: u64,
    /// Changes of the list that it has taken part in.
    pub changes: u64,
}

#[cfg(test)]
mod tests;
