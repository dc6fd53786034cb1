//! Which neighbours relay for a node: multipoint relays (RFC 3626, 8.3.1). Sets of nodes are bit masks over the indices
//! of the tables.

/// The willingness of a neighbour that always relays.
pub const ALWAYS: u8 = 7;
/// The willingness of one that never does.
pub const NEVER: u8 = 0;

/// The bits of a set, from the lowest.
pub fn bits(set: u64) -> impl Iterator<Item = usize> {
    let mut left = set;
    core::iter::from_fn(move || {
        let bit = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

/// A set of `neighbours` that together reach all that any of them reaches. `reach` says which nodes each of them reaches: strict
/// two-hop neighbours, no neighbours and not the node itself. Neighbours with willingness 0 are never chosen.
pub fn relays(neighbours: u64, willingness: &[u8], reach: &[u64]) -> u64 {
    let willing = bits(neighbours).filter(|&n| willingness[n] != NEVER);
    let willing = willing.fold(0, |set, n| set | 1 << n);
    let all = bits(willing).fold(0, |set, n| set | reach[n]);
    let covered = |chosen: u64| bits(chosen).fold(0, |set, n| set | reach[n]);
    let always = bits(willing).filter(|&n| willingness[n] == ALWAYS);
    let mut chosen: u64 = always.fold(0, |set, n| set | 1 << n);
    for node in bits(all) {
        // the only way to it
        let mut ways = bits(willing).filter(|&n| reach[n] & 1 << node != 0);
        if let (Some(n), None) = (ways.next(), ways.next()) {
            chosen |= 1 << n;
        }
    }
    while covered(chosen) != all {
        let open = all & !covered(chosen);
        let best = bits(willing & !chosen)
            .filter(|&n| reach[n] & open != 0)
            .max_by_key(|&n| {
                let new = (reach[n] & open).count_ones();
                // of equals the first one
                (willingness[n], new, reach[n].count_ones(), core::cmp::Reverse(n))
            });
        chosen |= 1 << best.expect("what is open is in somebody's reach");
    }
    // the least willing first: those without whom all are reached still
    for level in 1..ALWAYS {
        for n in bits(chosen).filter(|&n| willingness[n] == level) {
            if covered(chosen & !(1 << n)) == all {
                chosen &= !(1 << n);
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEFAULT: u8 = 3;

    #[test]
    fn the_only_way_is_taken_and_the_redundant_one_dropped() {
        // 1 reaches 4 and 5, 2 reaches 5 and 6, 3 reaches 6 and 7: 1 and 3 are the only ways to 4 and 7
        let reach = [0, 0b11_0000, 0b110_0000, 0b1100_0000, 0, 0, 0, 0];
        let mut willingness = [DEFAULT; 8];
        assert_eq!(relays(0b1110, &willingness, &reach), 0b1010);
        willingness[2] = ALWAYS;
        assert_eq!(relays(0b1110, &willingness, &reach), 0b1110);
        willingness[1] = NEVER;
        assert_eq!(relays(0b1110, &willingness, &reach), 0b1100, "4 is given up");
    }

    #[test]
    fn the_one_that_reaches_most_is_taken() {
        let reach = [0, 0b0011 << 4, 0b1111 << 4, 0b1100 << 4];
        assert_eq!(relays(0b1110, &[DEFAULT; 4], &reach), 0b100);
        assert_eq!(relays(0b1110, &[3, 4, 3, 4], &reach), 0b1010, "willingness first");
        assert_eq!(relays(0, &[], &[]), 0);
    }

    proptest! {
        #[test]
        fn all_are_reached_and_none_is_redundant(reach in proptest::collection::vec(any::<u16>(), 12), willingness in proptest::collection::vec(0u8..8, 12)) {
            let reach: std::vec::Vec<u64> = reach.iter().map(|r| u64::from(*r) << 12).collect();
            let chosen = relays(0xfff, &willingness, &reach);
            let covered = |set| bits(set).fold(0, |c, n| c | reach[n]);
            let willing = bits(0xfff).filter(|&n| willingness[n] != NEVER).fold(0, |s, n| s | 1 << n);
            prop_assert_eq!(covered(chosen), covered(willing));
            prop_assert_eq!(chosen & !willing, 0);
            for n in bits(chosen).filter(|&n| willingness[n] != ALWAYS) {
                prop_assert_ne!(covered(chosen & !(1 << n)), covered(willing), "{} is redundant", n);
            }
        }
    }
}
