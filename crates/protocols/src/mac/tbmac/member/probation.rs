//! In which rounds a founder sends, and in which it listens for others who founded the cell, too.
//!
//! In each pair of its first rounds it sends in one and listens in the other; a hash of its address draws which one. In
//! half of the pairs both are as likely: of two founders in one slot one hears the other as soon as they draw
//! differently. In the others it sends first with a chance of one in eight: of many founders one is alone there soon, and
//! all others hear it. Who hears nobody in all that time goes on listening in every fourth round, until somebody is
//! heard, but in one of 2, 4, 8 or 16 of these, which a hash draws.

use crate::mac::tdma::mix;
use frame::MacAddr;

/// Whether `me` listens in its slot in `round`, with so many rounds of probation left: 1 until somebody is heard, 0 for an
/// owner.
pub(super) fn listens(me: MacAddr, round: u32, left: u8) -> bool {
    match left {
        0 => false,
        1 => round % 4 == 3 && !mix(round.into(), me, 1).is_multiple_of(2 << (round / 4 % 4)),
        _ => {
            let pair = round / 2 % 16;
            let draws = match pair & 2 {
                0 => mix(0, me, 0) >> pair & 1 == 1,
                _ => mix(pair.into(), me, 0).is_multiple_of(8),
            };
            draws == (round % 2 == 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of probation in which one of these founders is alone on the air.
    fn alone(founders: core::ops::Range<u32>) -> usize {
        let sends = |round| {
            founders
                .clone()
                .filter(move |i| !listens(MacAddr::local(*i), round, 9))
        };
        (0..32).filter(|round| sends(*round).count() == 1).count()
    }

    #[test]
    fn a_founder_sends_once_in_each_pair() {
        for i in 0..50 {
            for pair in 0..16 {
                let heard = |round| listens(MacAddr::local(i), round, 9);
                assert_ne!(heard(2 * pair), heard(2 * pair + 1), "{i} {pair}");
            }
        }
    }

    /// If in all pairs both were as likely, 28 of 100 groups of ten and 2 of 100 of sixteen would have such a round.
    #[test]
    fn of_few_and_of_many_founders_one_is_alone() {
        for n in [2, 5, 10, 16] {
            let found = (0..100).filter(|i| alone(n * i..n * (i + 1)) > 0).count();
            assert!(found >= 90, "{n} founders: {found} of 100");
        }
    }
}
