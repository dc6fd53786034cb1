//! Callers with a key who were answered, and have not sent a packet yet.
//!
//! Who replays a recorded call is one of these, until he is forgotten: he cannot seal a packet. He must not push out whom he is not,
//! so none takes the place of another at the same address, and each is tried on what comes from there. When all places are
//! taken, the call that waits most often gives way, since nobody but a replay sends one twice from different addresses; and of
//! different calls those from the host that has most.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use radio::{Duration, Instant};

use crate::secure::{Guard, Opened};
use crate::socket::Octets;

/// All of them at once.
pub const MOST_WAITING: usize = 1_024;
/// Of them at one address: a datagram from there may have to be opened as often.
pub const MOST_ALIKE: usize = 4;

#[derive(Debug)]
struct Caller {
    peer: SocketAddr,
    guard: Box<Guard>,
    /// Since when, or since he has called again.
    since: Instant,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub struct Waiting {
    /// The oldest is the first.
    callers: Vec<Caller>,
}

impl Waiting {
    /// Opens a datagram as one of those at this address. With its first packet, a caller has waited long enough, and is handed
    /// over; the others at its address have not made the call.
    pub fn open(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        datagram: &[u8],
        room: &mut Octets,
    ) -> (Opened, Option<Box<Guard>>) {
        let mut opened = Opened::Nothing;
        let at = self.callers.iter_mut().position(|caller| {
            if caller.peer == peer {
                opened = caller.guard.open(datagram, room);
            }
            opened != Opened::Nothing
        });
        let Some(at) = at else {
            return (opened, None);
        };
        if !matches!(opened, Opened::Packet(_)) {
            // he has called again, and waits anew, but is no younger than he was
            self.callers[at].since = now;
            return (opened, None);
        }
        let caller = self.callers.remove(at);
        self.callers.retain(|other| other.peer != peer);
        (opened, Some(caller.guard))
    }

    /// One more waits, for as long as `patience` says.
    pub fn add(&mut self, now: Instant, peer: SocketAddr, guard: Box<Guard>, patience: Duration) {
        self.callers.retain(|c| now.since(c.since) < patience);
        let here = self.callers.iter().filter(|c| c.peer == peer).count();
        let gives_way = if here >= MOST_ALIKE {
            self.callers.iter().position(|c| c.peer == peer)
        } else if self.callers.len() >= MOST_WAITING {
            self.least_wanted()
        } else {
            None
        };
        if let Some(at) = gives_way {
            self.callers.remove(at);
        }
        let since = now;
        self.callers.push(Caller { peer, guard, since });
    }

    /// Whether somebody waits who has made this call, or replays it.
    pub fn has(&self, call: &[u8]) -> bool {
        self.callers.iter().any(|c| c.guard.called() == call)
    }

    /// The oldest of those whose call waits most often, and whose host has most among these.
    fn least_wanted(&self) -> Option<usize> {
        let mut calls: BTreeMap<&[u8], usize> = BTreeMap::new();
        let mut hosts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for c in &self.callers {
            *calls.entry(c.guard.called()).or_default() += 1;
            *hosts.entry(c.peer.ip()).or_default() += 1;
        }
        let weight = |c: &Caller| {
            let call = calls.get(c.guard.called()).copied().unwrap_or(0);
            (call, hosts.get(&c.peer.ip()).copied().unwrap_or(0))
        };
        let callers = self.callers.iter().enumerate();
        callers.min_by_key(|(_, c)| Reverse(weight(c))).map(|(at, _)| at)
    }

    #[cfg(test)]
    pub fn at(&self, peer: SocketAddr) -> usize {
        self.callers.iter().filter(|c| c.peer == peer).count()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.callers.len()
    }
}
