//! Every way in which a few hosts can come to their slots: all losses and all chances, explored round by round. Equal
//! states are explored once.

use super::{Chance, Member, Request, Rule, mix};
use frame::MacAddr;
use std::collections::BTreeSet;
use std::vec;
use std::vec::Vec;

/// Slots of the contention period.
const ASKS: u8 = 2;

/// What may be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Losses {
    /// As many frames as [`State::losses`] says, each at one host.
    Counted,
    /// Any request, and any frames of a round but the last one that is left for a host.
    AllButOne,
    /// Anything.
    Any,
}

/// All hosts between two rounds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State<const H: usize, const S: usize> {
    /// `None`: not there.
    hosts: [Option<Member<S>>; H],
    /// Hosts to which a frame was sent in this round, as bits: what could be heard.
    told: u8,
    /// Restarts that are left.
    restarts: u8,
    /// Losses that are left, where they are counted.
    losses: u8,
}

#[derive(Debug, Default)]
struct Found {
    /// Different states at the ends of rounds.
    states: usize,
    steps: usize,
    /// States in which two hosts, not both founders on probation, sent in one slot.
    shared: usize,
}

struct Explorer<const H: usize, const S: usize> {
    losses: Losses,
    broken: Option<Rule>,
    /// Hosts that are not there come in one of so many first rounds.
    arrivals: u32,
    rounds: u32,
    /// Stop at the first shared slot.
    first: bool,
}

type Set<const H: usize, const S: usize> = BTreeSet<State<H, S>>;

impl<const H: usize, const S: usize> Explorer<H, S> {
    fn new(losses: Losses, arrivals: u32, rounds: u32) -> Self {
        Explorer {
            losses,
            broken: None,
            arrivals,
            rounds,
            first: false,
        }
    }

    fn broken(self, rule: Rule) -> Self {
        Explorer {
            broken: Some(rule),
            first: true,
            ..self
        }
    }

    fn member(&self, host: usize) -> Member<S> {
        Member {
            broken: self.broken,
            ..Member::new(MacAddr::local(host as u32 + 1), 0)
        }
    }

    /// Explores from `start`; the last states come back.
    fn run(&self, start: State<H, S>) -> (Found, Set<H, S>) {
        let mut found = Found::default();
        let mut states = Set::from([start]);
        for round in 0..self.rounds {
            states = self.events(&states, round);
            for slot in 0..S {
                states = self.slot(&states, round, slot, &mut found);
                if self.first && found.shared > 0 {
                    return (found, states);
                }
            }
            states = self.contend(&states, &mut found);
            found.states += states.len();
        }
        (found, states)
    }

    /// Hosts come, or start again.
    fn events(&self, states: &Set<H, S>, round: u32) -> Set<H, S> {
        let mut all = states.clone();
        for host in 0..H {
            for state in all.clone() {
                let mut with = state;
                match &state.hosts[host] {
                    None if round < self.arrivals => with.hosts[host] = Some(self.member(host)),
                    Some(m) if state.restarts > 0 && m.slot().is_some() => {
                        with.restarts -= 1;
                        with.hosts[host] = Some(self.member(host));
                    }
                    _ => continue,
                }
                if round + 1 == self.arrivals && state.hosts[host].is_none() {
                    // the last chance to come is taken
                    all.remove(&state);
                }
                all.insert(with);
            }
        }
        all
    }

    fn slot(&self, states: &Set<H, S>, round: u32, slot: usize, found: &mut Found) -> Set<H, S> {
        let mut next = Set::new();
        for state in states {
            let sends = |h: &usize| {
                state.hosts[*h]
                    .as_ref()
                    .is_some_and(|m| m.sends(round) == Some(slot as u8))
            };
            let senders: Vec<usize> = (0..H).filter(sends).collect();
            if senders.is_empty() {
                next.insert(*state);
                continue;
            }
            let founders = |h: &usize| state.hosts[*h].as_ref().is_some_and(Member::is_on_probation);
            found.shared += usize::from(senders.len() > 1 && !senders.iter().all(founders));
            let mut after = *state;
            if let [one] = senders[..] {
                let others = (0..H).filter(|h| *h != one && state.hosts[*h].is_some());
                after.told |= others.fold(0, |told, h| told | 1 << h);
            }
            self.air(after, &senders, found, &mut next, |to, from, state| {
                let sender = state.hosts[from].as_ref().expect("it sends");
                to.heard(
                    MacAddr::local(from as u32 + 1),
                    &sender.report(false).expect("it owns a slot"),
                );
            });
        }
        next
    }

    /// What each of the others may have heard of frames in one slot: one of them, or none where a loss is possible.
    fn air(
        &self,
        state: State<H, S>,
        senders: &[usize],
        found: &mut Found,
        next: &mut Set<H, S>,
        hears: impl Fn(&mut Member<S>, usize, &State<H, S>),
    ) {
        let mut all = vec![state];
        for to in (0..H).filter(|h| !senders.contains(h) && state.hosts[*h].is_some()) {
            let mut more = Vec::new();
            for before in &all {
                // what collides may be captured, or not
                let mut lost = *before;
                if senders.len() > 1 || self.losses != Losses::Counted {
                    more.push(lost);
                } else if lost.losses > 0 {
                    lost.losses -= 1;
                    more.push(lost);
                }
                for from in senders {
                    let mut after = *before;
                    hears(after.hosts[to].as_mut().expect("it is there"), *from, &state);
                    more.push(after);
                }
            }
            all = more;
        }
        found.steps += all.len();
        next.extend(all);
    }

    fn contend(&self, states: &Set<H, S>, found: &mut Found) -> Set<H, S> {
        let mut next = Set::new();
        for state in states {
            let heard = |h: usize| state.hosts[h].as_ref().is_none_or(|m| m.heard != 0);
            let some_heard = |told: u8| (0..H).all(|h| told & 1 << h == 0 || heard(h));
            if self.losses == Losses::AllButOne && !some_heard(state.told) {
                continue;
            }
            self.ask(State { told: 0, ..*state }, 0, [None; H], found, &mut next);
        }
        next
    }

    /// Host by host, every choice of a slot of the contention period.
    fn ask(
        &self,
        state: State<H, S>,
        host: usize,
        asks: [Option<Request>; H],
        found: &mut Found,
        next: &mut Set<H, S>,
    ) {
        if host == H {
            return self.requests(state, asks, found, next);
        }
        for slot in 0..ASKS {
            let (mut state, mut asks) = (state, asks);
            let chance = Chance { slot, luck: 0 };
            asks[host] = state.hosts[host].as_mut().and_then(|m| m.cfp_over(chance));
            self.ask(state, host + 1, asks, found, next);
            if asks[host].is_none() {
                break;
            }
        }
    }

    fn requests(
        &self,
        state: State<H, S>,
        asks: [Option<Request>; H],
        found: &mut Found,
        next: &mut Set<H, S>,
    ) {
        let mut states = Set::from([state]);
        for slot in 0..ASKS {
            let senders: Vec<usize> = (0..H)
                .filter(|h| asks[*h].is_some_and(|a| a.slot == slot))
                .collect();
            if senders.is_empty() {
                continue;
            }
            let mut after = Set::new();
            for state in states {
                self.air(state, &senders, found, &mut after, |to, from, _| {
                    let ask = asks[from].expect("it asks");
                    to.requested(MacAddr::local(from as u32 + 1), &ask);
                });
            }
            states = after;
        }
        for mut state in states {
            state.hosts.iter_mut().flatten().for_each(Member::round_over);
            next.insert(state);
        }
    }

    /// Hosts of which the first `owners` own their slots and know of each other.
    fn settled(&self, owners: usize, there: usize) -> State<H, S> {
        let member = |h: usize| {
            let mut m = self.member(h);
            m.phase = super::Phase::Requesting(0, 0);
            for o in 0..owners {
                m.table[o] = super::Entry::of(MacAddr::local(o as u32 + 1));
            }
            if h < owners {
                m.phase = super::Phase::Owner(h as u8, 0);
            }
            m
        };
        State {
            hosts: core::array::from_fn(|h| (h < there).then(|| member(h))),
            told: 0,
            restarts: 0,
            losses: 0,
        }
    }

    const NOBODY: State<H, S> = State {
        hosts: [None; H],
        told: 0,
        restarts: 0,
        losses: 0,
    };
}

mod tests;
