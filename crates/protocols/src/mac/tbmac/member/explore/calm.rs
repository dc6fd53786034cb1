//! How long hosts need to come to slots of their own once nothing is lost any more, over every path: all that they may draw and all
//! that may be captured.
//!
//! Requests may meet for ever, so over all that can be drawn there is no bound, but a [probability](super::allocation). There is one if
//! in each round in which hosts want to ask one of them is alone in its slot, and that one is the worst to be so: the longest path
//! through the states. Equal states of a round are gone through once.

use super::*;

impl<const H: usize, const S: usize> State<H, S> {
    /// Each host has a slot of its own.
    pub(super) fn all_have_slots(&self) -> bool {
        let slots: BTreeSet<_> = self.hosts.iter().flatten().filter_map(Member::slot).collect();
        slots.len() == self.hosts.iter().flatten().count()
    }

    /// Some host would ask at the end of this contention-free period, if it is lucky.
    fn wants_to_ask(&self) -> bool {
        let asks = |mut m: Member<S>| m.cfp_over(Chance { slot: 0, luck: 0 }).is_some();
        self.hosts.iter().flatten().any(|m| asks(*m))
    }

    /// One of those that ask is alone in its slot.
    fn one_is_alone(&self) -> bool {
        let in_slot = |slot| self.asks.iter().flatten().filter(|a| a.0 == slot).count();
        self.asks.iter().flatten().any(|a| in_slot(a.0) == 1)
    }
}

impl<const H: usize, const S: usize> Explorer<H, S> {
    /// From the worst of these states the most rounds after which all hosts have slots of their own, and keep them; `None` if some do
    /// not within `most`. Nobody comes, fails, or decides to leave any more.
    pub(super) fn longest(&self, states: &Set<H, S>, first_round: u32, most: u32) -> Option<u32> {
        let calm = Explorer {
            losses: Losses::Counted,
            rounds: 1,
            ..*self
        };
        let (mut front, mut longest) = (Set::new(), 0);
        front.extend(states.iter().map(|s| State {
            budget: Budget::default(),
            ..*s
        }));
        for round in 0..=most {
            if front.iter().any(|s| !s.all_have_slots()) {
                longest = round + 1;
            }
            let mut next = Set::new();
            for state in &front {
                let ends = calm.after_a_round(*state, first_round + round);
                // where nothing changes any more all have slots, or will never have
                if ends.len() > 1 || !ends.contains(state) || !state.all_have_slots() {
                    next.extend(ends);
                }
            }
            if next.is_empty() {
                return Some(longest);
            }
            front = next;
        }
        None
    }

    /// All that can follow in this round.
    fn after_a_round(&self, state: State<H, S>, round: u32) -> Set<H, S> {
        let mut states = Set::from([state]);
        for (_, phase) in self.phases().filter(|(_, phase)| *phase != Phase::Events) {
            let mut next = Set::new();
            for state in &states {
                let must = phase == Phase::Chances && state.wants_to_ask();
                let choices = self.choices(state, round, phase).into_iter().flatten();
                let ends = choices
                    .map(|(end, _)| end)
                    .filter(|end| !must || end.one_is_alone());
                next.extend(ends);
            }
            states = next;
        }
        states
    }
}
