//! Where explorations begin.

use super::*;
use crate::mac::tbmac::member;
use crate::mac::tbmac::table::Entry;

impl<const H: usize, const S: usize> Explorer<H, S> {
    /// Hosts of which the first `owners` own their slots and know of each other.
    pub(super) fn settled(&self, owners: usize, there: usize) -> State<H, S> {
        let new = |h: usize| {
            let mut m = self.member(h);
            m.phase = member::Phase::Requesting(0, 0);
            for o in 0..owners {
                m.table[o] = Entry::of(address(o));
            }
            if h < owners {
                m.phase = member::Phase::Owner(h as u8, 0);
            }
            m
        };
        State {
            hosts: core::array::from_fn(|h| (h < there).then(|| new(h))),
            ..Self::NOBODY
        }
    }

    pub(super) const NOBODY: State<H, S> = State {
        hosts: [None; H],
        gone: 0,
        leaving: 0,
        farewell: 0,
        late: 0,
        told: 0,
        asks: [None; H],
        budget: Budget {
            failures: 0,
            leaves: 0,
            losses: 0,
            pauses: 0,
        },
    };
}
