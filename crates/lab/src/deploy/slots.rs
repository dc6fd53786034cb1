//! What the layers of a node have counted: of its slots, those of a schedule or one that it has agreed on with others, and of its
//! hand-overs.

use protocols::mac::roam::RoamCounters;
use protocols::mac::sync::Sync;
use protocols::mac::tdma::TdmaCounters;
use serde::Serialize;

use crate::scenario::program;

/// What became of the slots of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Slots {
    /// Frames released in slots.
    pub released: u64,
    /// Of these, without an ACK, a status, or too late.
    pub failed: u64,
    /// Of these, not on the air by the end of the guard.
    pub late: u64,
    /// Slots that were over, or nearly, when the node woke up for them.
    pub overruns: u64,
    /// Acknowledged frames that were on the air behind the guard of their slots, where the node watches: an adapter that cannot take them back
    /// sends them when the medium is free.
    pub overran: u64,
    /// Frames of others that it heard outside of their slots, where it watches.
    pub outside: u64,
    /// Frames dropped at their deadline.
    pub expired: u64,
    /// Frames for which the schedule has no slot.
    pub no_slot: u64,
}

impl From<&TdmaCounters> for Slots {
    fn from(c: &TdmaCounters) -> Slots {
        Slots {
            released: c.released,
            failed: c.failed,
            late: c.late,
            overruns: c.overruns,
            overran: c.overran,
            outside: c.outside,
            expired: c.expired,
            no_slot: c.no_slot,
        }
    }
}

/// How the clock of a node in a schedule has followed the beacons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Clock {
    /// It sends the beacons: it follows the time of its own adapter.
    pub own: bool,
    /// Beacons, or looks at its own adapter's time, that were taken, ...
    pub samples: u64,
    /// ... and refused, since they were too far off.
    pub refused: u64,
    /// Times that it started again, after several of these.
    pub restarts: u64,
    /// It was to be trusted at some time. If not, the node sent nothing in slots.
    pub trusted: bool,
}

impl Clock {
    pub(super) fn new(sync: &Sync, own: bool) -> Clock {
        let c = sync.counters();
        Clock {
            own,
            samples: c.samples,
            refused: c.refused,
            restarts: c.restarts,
            trusted: sync.was_good(),
        }
    }
}

/// What became of a host of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Celled {
    /// The slot that it owned at the end.
    pub slot: Option<u8>,
    /// Times that it asked for one, ...
    pub asked: u64,
    /// ... that it came to own one, ...
    pub granted: u64,
    /// ... and that it gave one up because others had it too or did not hear it.
    pub lost: u64,
    /// Frames released in slots of its own.
    pub released: u64,
    /// Of these, too late for the slot.
    pub late: u64,
    /// Slots that were over, or nearly, when the host woke up for them.
    pub overruns: u64,
    /// Frames dropped at their deadline.
    pub expired: u64,
    /// Frames sent over a border of the cell, ...
    pub crossed: u64,
    /// ... sent on behind one, ...
    pub relayed: u64,
    /// ... and those that ended on the way, for want of room or of a border that leads on.
    pub uncrossed: u64,
    /// Its own frames that went in search of a receiver.
    pub searched: u64,
}

impl From<&program::Celled> for Celled {
    fn from(host: &program::Celled) -> Celled {
        let c = host.counters();
        Celled {
            slot: host.member().and_then(|m| m.slot()),
            asked: c.asked,
            granted: c.granted,
            lost: c.lost,
            released: c.released,
            late: c.late,
            overruns: c.overruns,
            expired: c.expired,
            crossed: c.crossed,
            relayed: c.relayed,
            uncrossed: c.uncrossed,
            searched: c.searched,
        }
    }
}

/// What a node that roams has counted since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Roamed {
    /// Access points that it went to, the first one included.
    pub joined: u64,
    /// Of these, hand-overs from another one.
    pub handovers: u64,
    /// Frames that went again on the other link.
    pub second_chances: u64,
    /// Frames that went on both links at once, ...
    pub copies: u64,
    /// ... and those of them that both access points acknowledged.
    pub duplicates: u64,
    /// Frames that had come through another access point before, and were dropped.
    pub repeated: u64,
    /// Requests without an ACK while a hand-over was under way, ...
    pub missed_in_handover: u64,
    /// ... and others without one.
    pub missed_else: u64,
    /// The longest time from the last ACK before a hand-over to the first one after it, ns.
    pub longest_gap_ns: u64,
}

impl From<RoamCounters> for Roamed {
    fn from(c: RoamCounters) -> Roamed {
        Roamed {
            joined: c.joined,
            handovers: c.handovers,
            second_chances: c.second_chances,
            copies: c.copies,
            duplicates: c.duplicates,
            repeated: c.repeated,
            missed_in_handover: c.missed_in_handover,
            missed_else: c.missed_else,
            longest_gap_ns: c.longest_gap_ns,
        }
    }
}
