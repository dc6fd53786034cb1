//! Where explorations begin.

use super::*;

impl<const H: usize, const S: usize> Explorer<H, S> {
    /// Hosts of which the first `owners` own their slots and know of each other.
    pub(super) fn settled(&self, owners: usize, there: usize) -> State<H, S> {
        let member = |h: usize| {
            let mut m = self.member(h);
            m.phase = super::super::Phase::Requesting(0, 0);
            for o in 0..owners {
                m.table[o] = super::super::Entry::of(address(o));
            }
            if h < owners {
                m.phase = super::super::Phase::Owner(h as u8, 0);
            }
            m
        };
        State {
            hosts: core::array::from_fn(|h| (h < there).then(|| member(h))),
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
