//! Every way in which a few hosts can come to their slots: all losses and all chances, explored phase by phase. Equal
//! states are explored once. What can happen in a phase is a list of [`Choice`]s: where hosts come and go, and what is captured
//! of frames that collide, all of them are possible; where losses and slots of the contention period are drawn, one choice has
//! several ends with their probabilities.

use super::{Chance, Member, Rule};
use crate::mac::tbmac::message::Request;
use frame::MacAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::{vec, vec::Vec};

/// What may be lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Losses {
    /// As many frames as [`Budget::losses`] says, each at one host.
    Counted,
    /// Any request, and any frames of a round but the last one that is left for a host.
    AllButOne,
    /// Anything.
    Any,
}

/// What may still happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Budget {
    /// Hosts may fail so often, and say nothing.
    failures: u8,
    /// Hosts may leave so often.
    leaves: u8,
    /// Losses, where they are counted.
    losses: u8,
    /// Owners may come too late for their slot so often.
    pauses: u8,
}

/// All hosts between two phases.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct State<const H: usize, const S: usize> {
    /// `None`: not there.
    hosts: [Option<Member<S>>; H],
    /// Hosts that were there, as bits: they may come back at any time.
    gone: u8,
    /// Hosts that leave as soon as they have said so, and those that said so in this round.
    leaving: u8,
    farewell: u8,
    /// Hosts that come too late for their slot in this round.
    late: u8,
    /// Hosts to which a frame was sent in this round: what could be heard.
    told: u8,
    /// What is sent in the contention period: its slot, and the age of a claim.
    asks: [Option<(u8, Option<u8>)>; H],
    budget: Budget,
}

/// How probable one end of a choice is.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Share {
    /// By the draws of the hosts.
    chance: f64,
    /// Frames lost and heard, each at one host.
    lost: u8,
    heard: u8,
}

impl Share {
    const ALL: Share = Share {
        chance: 1.0,
        lost: 0,
        heard: 0,
    };
}

/// One of the things that can happen, with its ends.
type Choice<const H: usize, const S: usize> = Vec<(State<H, S>, Share)>;
type Set<const H: usize, const S: usize> = BTreeSet<State<H, S>>;

/// The parts of a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Hosts come, fail, and decide to leave.
    Events,
    /// A slot of the contention-free period.
    Slot(usize),
    /// The contention-free period is over; chance says who asks where.
    Chances,
    /// A slot of the contention period.
    Ask(u8),
}

#[derive(Debug, Default)]
struct Found {
    /// Different states at the ends of rounds.
    states: usize,
    steps: usize,
    /// States in which two hosts, not both founders on probation, sent in one slot.
    shared: usize,
    /// Of these, with a founder on probation.
    claimed: usize,
    /// Steps in which an owner gave its slot up.
    given_up: usize,
}

#[derive(Clone, Copy)]
struct Explorer<const H: usize, const S: usize> {
    losses: Losses,
    broken: Option<Rule>,
    /// Slots of the contention period.
    asks: u8,
    /// Failures after which hosts ask less often.
    patience: u8,
    /// Hosts that are not there come in one of so many first rounds.
    arrivals: u32,
    rounds: u32,
    /// Stop at the first shared slot.
    first: bool,
}

fn address(host: usize) -> MacAddr {
    MacAddr::local(host as u32 + 1)
}

impl<const H: usize, const S: usize> Explorer<H, S> {
    fn new(losses: Losses, arrivals: u32, rounds: u32) -> Self {
        Explorer {
            losses,
            broken: None,
            asks: 2,
            patience: 0,
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
            ..Member::new(address(host), self.patience)
        }
    }

    fn phases(&self) -> impl Iterator<Item = (u32, Phase)> {
        (0..self.rounds).flat_map(|round| {
            let slots = (0..S).map(Phase::Slot);
            let asks = (0..self.asks).map(Phase::Ask);
            let all = [Phase::Events].into_iter().chain(slots);
            all.chain([Phase::Chances])
                .chain(asks)
                .map(move |phase| (round, phase))
        })
    }

    /// Explores from `start`; the last states come back.
    fn run(&self, start: State<H, S>) -> (Found, Set<H, S>) {
        let mut found = Found::default();
        let mut states = Set::from([start]);
        for (round, phase) in self.phases() {
            let mut next = Set::new();
            for state in &states {
                let shared = self.shared(state, round, phase);
                found.shared += usize::from(shared.is_some());
                found.claimed += usize::from(shared == Some(true));
                for choice in self.choices(state, round, phase) {
                    found.steps += choice.len();
                    let losers = choice.iter().filter(|(end, _)| gives_up(state, end));
                    found.given_up += losers.count();
                    next.extend(choice.into_iter().map(|(end, _)| end));
                }
            }
            if self.first && found.shared > 0 {
                return (found, next);
            }
            states = next;
            found.states += usize::from(phase == Phase::Ask(self.asks - 1)) * states.len();
        }
        (found, states)
    }

    fn senders(state: &State<H, S>, round: u32, slot: usize) -> Vec<usize> {
        let sends = |m: &Member<S>| m.sends(round) == Some(slot as u8);
        (0..H)
            .filter(|h| state.late & 1 << h == 0 && state.hosts[*h].as_ref().is_some_and(sends))
            .collect()
    }

    /// Two hosts send in this slot, not both of them founders on probation; whether one of them is.
    fn shared(&self, state: &State<H, S>, round: u32, phase: Phase) -> Option<bool> {
        let Phase::Slot(slot) = phase else { return None };
        let senders = Self::senders(state, round, slot);
        let founder = |h: &&usize| state.hosts[**h].as_ref().is_some_and(Member::is_on_probation);
        let founders = senders.iter().filter(founder).count();
        (senders.len() > 1 && founders < senders.len()).then_some(founders > 0)
    }

    /// All that can happen to `state`.
    fn choices(&self, state: &State<H, S>, round: u32, phase: Phase) -> Vec<Choice<H, S>> {
        match phase {
            Phase::Events => self.events(state, round),
            Phase::Slot(slot) => self.slot(*state, round, slot),
            Phase::Chances => self.chances(state, round),
            Phase::Ask(slot) => {
                let mut all = self.requests(state, slot);
                if slot == self.asks - 1 {
                    all.iter_mut().flatten().for_each(|(end, _)| round_over(end));
                }
                all
            }
        }
    }

    fn events(&self, state: &State<H, S>, round: u32) -> Vec<Choice<H, S>> {
        let mut all = vec![*state];
        for host in 0..H {
            let bit = 1 << host;
            for before in core::mem::take(&mut all) {
                let with = |member, gone| {
                    let mut after = before;
                    after.hosts[host] = member;
                    after.gone = if gone { after.gone | bit } else { after.gone & !bit };
                    after
                };
                let (new, gone) = (Some(self.member(host)), before.gone & bit != 0);
                let owner = before.hosts[host].is_some_and(|m| m.slot().is_some());
                let away = before.hosts[host].is_none();
                // the last chance to come is taken
                if !away || gone || round + 1 != self.arrivals {
                    all.push(before);
                }
                if away && (gone || round < self.arrivals) {
                    all.push(with(new, false));
                }
                if owner && before.budget.failures > 0 {
                    for mut after in [with(None, true), with(new, false)] {
                        after.budget.failures -= 1;
                        after.leaving &= !bit;
                        all.push(after);
                    }
                }
                if owner && before.budget.pauses > 0 {
                    let mut after = before;
                    after.budget.pauses -= 1;
                    after.late |= bit;
                    all.push(after);
                }
                if owner && before.budget.leaves > 0 && before.leaving & bit == 0 {
                    let mut after = before;
                    after.budget.leaves -= 1;
                    after.leaving |= bit;
                    all.push(after);
                }
            }
        }
        all.into_iter().map(|after| vec![(after, Share::ALL)]).collect()
    }

    fn slot(&self, mut state: State<H, S>, round: u32, slot: usize) -> Vec<Choice<H, S>> {
        let senders = Self::senders(&state, round, slot);
        if let [one] = senders[..] {
            let others = (0..H).filter(|h| *h != one && state.hosts[*h].is_some());
            state.told |= others.fold(0, |told, h| told | 1 << h);
        }
        state.farewell |= senders.iter().fold(0, |all, h| all | state.leaving & 1 << h);
        self.air(state, &senders, |to, from| {
            let leaves = state.leaving & 1 << from != 0;
            let sender = state.hosts[from].as_ref().expect("it sends");
            to.heard(address(from), &sender.report(leaves).expect("it owns a slot"));
        })
    }

    /// What each of the others may hear of frames in one slot: one of them, or none where a loss is possible.
    fn air(
        &self,
        state: State<H, S>,
        senders: &[usize],
        hears: impl Fn(&mut Member<S>, usize),
    ) -> Vec<Choice<H, S>> {
        let mut all: Vec<Choice<H, S>> = vec![vec![(state, Share::ALL)]];
        let others = (0..H).filter(|h| !senders.contains(h) && state.hosts[*h].is_some());
        for to in others.filter(|_| !senders.is_empty()) {
            let heard = |mut after: State<H, S>, from: usize| {
                hears(after.hosts[to].as_mut().expect("it is there"), from);
                after
            };
            for choice in core::mem::take(&mut all) {
                if let [one] = senders[..] {
                    let mut ends = Vec::new();
                    for (before, share) in choice {
                        let (lost, got) = (share.lost + 1, share.heard + 1);
                        ends.extend(self.lost(before).map(|after| (after, Share { lost, ..share })));
                        ends.push((heard(before, one), Share { heard: got, ..share }));
                    }
                    all.push(ends);
                } else {
                    // what collides may be captured, or not
                    let captured = |from| choice.iter().map(move |(s, share)| (heard(*s, from), *share));
                    all.extend(senders.iter().map(|from| captured(*from).collect()));
                    all.push(choice);
                }
            }
        }
        all
    }

    /// After the loss of a frame at one host, if it is possible.
    fn lost(&self, mut state: State<H, S>) -> Option<State<H, S>> {
        if self.losses == Losses::Counted {
            state.budget.losses = state.budget.losses.checked_sub(1)?;
        }
        Some(state)
    }

    /// Each host draws its slot of the contention period and its luck.
    fn chances(&self, state: &State<H, S>, round: u32) -> Vec<Choice<H, S>> {
        let deaf = |h: &usize| state.told & 1 << h != 0 && state.hosts[*h].is_some_and(|m| m.heard == 0);
        if self.losses == Losses::AllButOne && (0..H).any(|h| deaf(&h)) {
            return Vec::new();
        }
        // the least number of each interval between two limits of luck
        let lucks: &[(u8, f64)] = match self.patience {
            0 => &[(0, 1.0)],
            _ => &[(0, 0.125), (32, 0.125), (64, 0.25), (128, 0.5)],
        };
        let mut state = State { told: 0, ..*state };
        for (host, member) in state.hosts.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            if member.sends(round).is_none() || state.late & 1 << host != 0 {
                member.was_silent();
            }
        }
        state.late = 0;
        let mut all = BTreeMap::from([(state, 1.0)]);
        for host in (0..H).filter(|h| state.hosts[*h].is_some()) {
            let mut next = BTreeMap::new();
            for (before, share) in &all {
                for (slot, (luck, part)) in (0..self.asks).flat_map(|s| lucks.iter().map(move |l| (s, *l))) {
                    let mut after = *before;
                    let member = after.hosts[host].as_mut().expect("it is there");
                    let ask = member.cfp_over(Chance { slot, luck });
                    after.asks[host] = ask.map(|a| (a.slot, a.claim));
                    *next.entry(after).or_default() += share * part / f64::from(self.asks);
                }
            }
            all = next;
        }
        let share = |(state, chance)| (state, Share { chance, ..Share::ALL });
        vec![all.into_iter().map(share).collect()]
    }

    fn requests(&self, state: &State<H, S>, slot: u8) -> Vec<Choice<H, S>> {
        let asks = |h: &usize| state.asks[*h].is_some_and(|a| a.0 == slot);
        let senders: Vec<usize> = (0..H).filter(asks).collect();
        self.air(*state, &senders, |to, from| {
            let claim = state.asks[from].expect("it asks").1;
            to.requested(address(from), &Request { slot, claim });
        })
    }
}

/// Some host owns a slot before, and none after.
fn gives_up<const H: usize, const S: usize>(before: &State<H, S>, after: &State<H, S>) -> bool {
    let slot = |host: &Option<Member<S>>| host.map(|m| m.slot());
    let mut hosts = before.hosts.iter().zip(&after.hosts);
    hosts.any(|(b, a)| matches!((slot(b), slot(a)), (Some(Some(_)), Some(None))))
}

fn round_over<const H: usize, const S: usize>(state: &mut State<H, S>) {
    state.asks = [None; H];
    for (host, place) in state.hosts.iter_mut().enumerate() {
        let Some(member) = place else { continue };
        member.round_over();
        let bit = 1 << host;
        if state.leaving & bit != 0 && (member.slot().is_none() || state.farewell & bit != 0) {
            *place = None;
            (state.leaving, state.gone) = (state.leaving & !bit, state.gone | bit);
        }
    }
    state.farewell = 0;
}

mod allocation;
mod calm;
mod odds;
mod start;
mod tests;
