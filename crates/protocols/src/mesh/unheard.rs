//! Neighbours that do not acknowledge.

use frame::MacAddr;

/// Datagrams in a row that neighbours have not heard. Those with the fewest give way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unheard([(MacAddr, u8); 8]);

impl Unheard {
    /// One more, and tells how many there are.
    pub fn missed(&mut self, neighbour: MacAddr) -> u8 {
        let known = self.0.iter().position(|u| u.0 == neighbour && u.1 > 0);
        let fewest = || (0..self.0.len()).min_by_key(|i| self.0[*i].1).unwrap_or(0);
        let place = known.unwrap_or_else(fewest);
        let place = &mut self.0[place];
        let before = if known.is_some() { place.1 } else { 0 };
        *place = (neighbour, before.saturating_add(1));
        place.1
    }

    /// It has heard one.
    pub fn heard(&mut self, neighbour: MacAddr) {
        let of_it = |u: &&mut (MacAddr, u8)| u.0 == neighbour;
        self.0.iter_mut().filter(of_it).for_each(|u| u.1 = 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_that_were_unheard() {
        let mut u = Unheard::default();
        let node = MacAddr::local;
        let missed = |u: &mut Unheard, n: u32| u.missed(node(n));
        assert_eq!([1, 1, 2, 1].map(|n| missed(&mut u, n)), [1, 2, 1, 3]);
        u.heard(node(1));
        assert_eq!(missed(&mut u, 1), 1);
        for n in 3..12 {
            missed(&mut u, n);
        }
        assert_eq!(missed(&mut u, 11), 2, "nine neighbours, and the newest is there");
    }
}
