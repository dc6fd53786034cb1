//! Power save over several hops (MH-PSM; Vukadinovic, Glaropoulos, Mangold 2014, as published in the source of Contiki80211): an ATIM says
//! in address 3 whom its frames are for in the end, and who receives one for somebody else asks the next hop in the same
//! window. So the whole way is awake behind it, and a packet crosses it within one beacon interval.
//!
//! ```text
//! in the window:  A --ATIM, for D--> B --ATIM, for D--> C --ATIM, for D--> D
//! behind it:      A --data---------> B --data---------> C --data---------> D
//! ```
//!
//! - The standard has the BSSID in address 3. Such an ATIM is not handed on, and stations that know nothing of this do not take those
//!   that name somebody else: all stations of a network have it switched on, or none.
//! - Data frames are as ever. Who hands them on is the layer above, which also knows the ways: [`Routing`].
//! - A station that was asked counts on the next one to ask on. If the window ends before that, the packet waits on the way
//!   for the next interval.

use super::Ibss;
use frame::MacAddr;
use radio::Outcome;

/// What became of a payload from above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// Its number: how many payloads were taken before it. Those without room have none.
    pub number: u64,
    /// The station that it was for, or a group.
    pub to: MacAddr,
    /// As the last request of it ended; [`Outcome::Expired`] when its lifetime was over, [`Outcome::Aborted`] when the network was
    /// left, [`Outcome::Refused`] when it could not be protected. What is for a group has no ACK.
    pub outcome: Outcome,
    /// Frames of the last request that were on the air.
    pub attempts: u16,
}

/// The layer above: what multi-hop power save has to know of it, and what it is told.
pub trait Routing {
    /// Whom `payload` is for in the end; `next` is the neighbour that it goes to first.
    fn destination(&self, next: MacAddr, payload: &[u8]) -> MacAddr;

    /// The neighbour over which `destination` is reached. `None`: there is no way.
    fn next_hop(&self, destination: MacAddr) -> Option<MacAddr>;

    /// A payload from above has come to its end: each one once.
    fn ended(&mut self, _: Ended) {}
}

/// Every receiver is a neighbour, and nothing is handed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Direct;

impl Routing for Direct {
    fn destination(&self, next: MacAddr, _: &[u8]) -> MacAddr {
        next
    }

    fn next_hop(&self, _: MacAddr) -> Option<MacAddr> {
        None
    }
}

/// An ATIM that is to be sent: to whom, and whom its frames are for in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Announced {
    pub to: MacAddr,
    pub destination: MacAddr,
}

impl<const Q: usize, const L: usize, W: Routing> Ibss<Q, L, W> {
    /// An ATIM said that frames for `destination` are coming: it is asked on, unless its way is awake.
    pub(super) fn ask_on(&mut self, destination: MacAddr) {
        match self.routing.next_hop(destination) {
            Some(next) if self.is_due(next, destination) => self.neighbours.is_to_be_told(destination),
            Some(_) => {}
            None => self.counters.atims_unrouted += 1,
        }
    }

    /// Whether `to` has to be asked before frames for `destination` go over it.
    pub(super) fn is_due(&self, to: MacAddr, destination: MacAddr) -> bool {
        !self.neighbours.is_awake(to) || to != destination && !self.neighbours.is_told(destination)
    }

    /// The next ATIM that others wait for.
    pub(super) fn next_asked_on(&mut self) -> Option<Announced> {
        while let Some(destination) = self.neighbours.take_to_be_told() {
            let to = self.routing.next_hop(destination);
            // meanwhile the way may be awake, or gone
            if let Some(to) = to.filter(|to| self.is_due(*to, destination)) {
                self.counters.atims_asked_on += 1;
                return Some(Announced { to, destination });
            }
        }
        None
    }
}
