//! Who is about: stations that were heard, and those that are awake in this beacon interval.

use frame::MacAddr;
use radio::Instant;

/// Stations that are remembered.
const NEIGHBOURS: usize = 32;
/// Stations that are known to be awake: the length of Contiki80211's list.
const AWAKE: usize = 32;

/// A station of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Its address.
    pub address: MacAddr,
    /// When it was heard last.
    pub heard: Instant,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    known: [Option<Neighbour>; NEIGHBOURS],
    awake: [MacAddr; AWAKE],
    awake_len: usize,
}

impl Neighbours {
    pub(super) const fn new() -> Neighbours {
        Neighbours {
            known: [None; NEIGHBOURS],
            awake: [MacAddr::ZERO; AWAKE],
            awake_len: 0,
        }
    }

    /// A station was heard. Without room it takes the place of the one that was not heard for longest.
    pub(super) fn heard(&mut self, address: MacAddr, now: Instant) {
        let known = self.known.iter_mut();
        let place = known.min_by_key(|n| match n {
            Some(n) if n.address == address => (0, Instant::ZERO),
            None => (1, Instant::ZERO),
            Some(n) => (2, n.heard),
        });
        if let Some(place) = place {
            *place = Some(Neighbour { address, heard: now });
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.known.iter().flatten()
    }

    /// Forgets who was not heard since `limit`.
    pub(super) fn forget(&mut self, limit: Instant) {
        for place in &mut self.known {
            place.take_if(|n| n.heard < limit);
        }
    }

    /// A station stays awake for this interval. Without room it does not count as awake.
    pub(super) fn is_awake_now(&mut self, address: MacAddr) {
        if !self.is_awake(address)
            && let Some(place) = self.awake.get_mut(self.awake_len)
        {
            *place = address;
            self.awake_len += 1;
        }
    }

    pub(super) fn is_awake(&self, address: MacAddr) -> bool {
        self.awake[..self.awake_len].contains(&address)
    }

    /// A new interval.
    pub(super) fn erase_awake(&mut self) {
        self.awake_len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let mut n = Neighbours::new();
        (0..32).for_each(|i| n.heard(MacAddr::local(i), Instant::from_us(i.into())));
        n.heard(MacAddr::local(0), Instant::from_us(50));
        n.heard(MacAddr::local(99), Instant::from_us(60));
        assert_eq!(n.iter().count(), 32);
        let has = |n: &Neighbours, i| n.iter().any(|x| x.address == MacAddr::local(i));
        assert!(has(&n, 0) && has(&n, 99) && !has(&n, 1));
        n.forget(Instant::from_us(50));
        assert_eq!(n.iter().count(), 2);
    }

    #[test]
    fn awake_until_the_next_interval() {
        let mut n = Neighbours::new();
        (0..40).for_each(|i| n.is_awake_now(MacAddr::local(i % 35)));
        assert!(n.is_awake(MacAddr::local(31)) && !n.is_awake(MacAddr::local(33)));
        n.erase_awake();
        assert!(!n.is_awake(MacAddr::local(0)));
    }
}
