//! Who is about: stations that were heard, and those that are awake in this beacon interval.

use frame::MacAddr;
use radio::Instant;

/// Stations that are remembered.
const NEIGHBOURS: usize = 32;
/// Stations that are known to be awake: the length of Contiki80211's list, and the bits of a number.
const AWAKE: usize = 32;

/// A station of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Its address.
    pub address: MacAddr,
    /// When it was heard last.
    pub heard: Instant,
}

/// A free place.
const NOBODY: Neighbour = Neighbour {
    address: MacAddr::ZERO,
    heard: Instant::ZERO,
};

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    /// Free places have the address of nobody.
    known: [Neighbour; NEIGHBOURS],
    /// Stations of this interval, and what is known of them: one bit for each.
    awake: [MacAddr; AWAKE],
    awake_len: u8,
    listens: u32,
    told: u32,
    to_be_told: u32,
}

impl Neighbours {
    pub(super) const fn new() -> Neighbours {
        Neighbours {
            known: [NOBODY; NEIGHBOURS],
            awake: [MacAddr::ZERO; AWAKE],
            awake_len: 0,
            listens: 0,
            told: 0,
            to_be_told: 0,
        }
    }

    /// A station was heard. Without room it takes the place of the one that was not heard for longest.
    pub(super) fn heard(&mut self, address: MacAddr, now: Instant) {
        let known = self.known.iter_mut();
        let place = known.min_by_key(|n| match n.address {
            known if known == address => (0, Instant::ZERO),
            MacAddr::ZERO => (1, Instant::ZERO),
            _ => (2, n.heard),
        });
        if let Some(place) = place {
            *place = Neighbour { address, heard: now };
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.known.iter().filter(|n| n.address != MacAddr::ZERO)
    }

    /// Forgets who was not heard since `limit`.
    pub(super) fn forget(&mut self, limit: Instant) {
        let old = self.known.iter_mut().filter(|n| n.heard < limit);
        old.for_each(|place| *place = NOBODY);
    }

    /// The bit of a station; 0 without room for it.
    fn bit(&mut self, address: MacAddr) -> u32 {
        let known = self.find(address);
        if known > 0 {
            return known;
        }
        let Some(place) = self.awake.get_mut(usize::from(self.awake_len)) else {
            return 0;
        };
        *place = address;
        self.awake_len += 1;
        1 << (self.awake_len - 1)
    }

    /// The bit of a station; 0 if there is none.
    fn find(&self, address: MacAddr) -> u32 {
        let all = &self.awake[..self.awake_len.into()];
        all.iter().position(|a| *a == address).map_or(0, |i| 1 << i)
    }

    /// A station stays awake for this interval. Without room it does not count as awake.
    pub(super) fn is_awake_now(&mut self, address: MacAddr) {
        self.listens |= self.bit(address);
    }

    pub(super) fn is_awake(&self, address: MacAddr) -> bool {
        self.find(address) & self.listens > 0
    }

    /// The next hop on the way to a station knows that it is to be asked.
    pub(super) fn is_told_now(&mut self, address: MacAddr) {
        self.told |= self.bit(address);
    }

    /// It is awake, or somebody on the way to it was told.
    pub(super) fn is_told(&self, address: MacAddr) -> bool {
        self.find(address) & (self.listens | self.told) > 0
    }

    /// The next hop on the way to a station has to be told. Without room nobody is.
    pub(super) fn is_to_be_told(&mut self, address: MacAddr) {
        self.to_be_told |= self.bit(address);
    }

    /// The first of those, which is none of them any more.
    pub(super) fn take_to_be_told(&mut self) -> Option<MacAddr> {
        let first = self.to_be_told.trailing_zeros() as usize;
        let address = *self.awake.get(first)?;
        self.to_be_told &= self.to_be_told - 1;
        Some(address)
    }

    /// A new interval.
    pub(super) fn erase_awake(&mut self) {
        (self.awake_len, self.listens, self.told, self.to_be_told) = (0, 0, 0, 0);
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

    #[test]
    fn told_is_not_awake() {
        let [a, b, c] = [1, 2, 3].map(MacAddr::local);
        let mut n = Neighbours::new();
        n.is_told_now(a);
        n.is_awake_now(b);
        assert!(n.is_told(a) && !n.is_awake(a));
        assert!(n.is_told(b) && n.is_awake(b) && !n.is_told(c));
        for address in [c, a, c] {
            n.is_to_be_told(address);
        }
        let taken = [0; 3].map(|_| n.take_to_be_told());
        assert_eq!(taken, [Some(a), Some(c), None]);
        (10..50).for_each(|i| n.is_to_be_told(MacAddr::local(i)));
        let taken = core::iter::from_fn(|| n.take_to_be_told()).count();
        assert_eq!(taken, 32 - 3, "there is room for 32 in all");
        n.is_to_be_told(c);
        n.erase_awake();
        assert_eq!(n.take_to_be_told(), None);
    }
}
