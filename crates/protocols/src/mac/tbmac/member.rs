//! How the hosts of one cell agree on who owns which slot: one host's part, as a state machine of rounds without
//! times. The driver tells it what was heard and asks it what to send; the tests explore all that can happen to it.
//!
//! The rules:
//!
//! 1. A host that asked for a slot in the contention period of round k owns the slot i from round k + 2 on if in the
//!    contention-free period of round k + 1 it heard at least one frame, every frame that it heard promised it the
//!    slot i (*unanimity*), and it has not heard anybody else there lately itself.
//! 2. An owner that hears a request promises the slot that the host had, else the lowest free one. All take over promises that
//!    they hear. A promise is kept for the host even if it was not unanimous: it will ask again. Who asks itself promises nothing: it
//!    does not know which slot will be its own.
//! 3. A slot that anybody is heard to believe owned is not free (*merge*).
//! 4. A slot becomes free when its owner says so, or after [`SILENT_ROUNDS`] without a frame in it if by then all
//!    views that are heard agree.
//! 5. Two hosts heard in one slot, or promised one slot: conflict, told to all in the view. An owner that is told so
//!    about its slot, or that hears its slot promised to another, or all of whose hearers take it for free, gives it up
//!    and asks again.
//! 6. In a cell that was silent for [`LISTEN_ROUNDS`] hosts claim slot 0; of claims that hear each other that of the
//!    longer listener wins, then that of the smaller address. Claims that collided hear nothing of each other, so a
//!    founder is on probation: in each pair of its first [`PROBATION_ROUNDS`] rounds it sends in one and listens in
//!    the other, and after them it listens now and then until somebody is heard.
//! 7. An owner that was not on the air for [`SILENT_ROUNDS`], since it came too late for its slot, counts as gone for the others. It
//!    gives its slot up by then, too. So does a founder as soon as it has heard somebody since it was last on the air; until then its
//!    probation begins anew.

mod hearing;
mod probation;

use super::message::{Report, Request};
use super::table::{Entry, MAX_REQUESTS, Promises, SILENT_ROUNDS, View};
use frame::MacAddr;

/// Silent rounds after which a cell counts as empty. A founder on probation is never silent for as long.
pub const LISTEN_ROUNDS: u8 = 3;
/// Failures after which a host asks in every second round only, and as many more after which it does so half as often again: up to
/// eight hosts that come at once are served as soon as if they always asked, and more of them sooner.
pub const PATIENCE: u8 = 5;
/// So often it halves how often it asks: down to every eighth round.
const HALVINGS: u8 = 3;
/// Rounds of a founder's probation, at least.
pub const PROBATION_ROUNDS: u8 = 32;

/// Where a host stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// New in the cell, with this many silent rounds behind it.
    Listening(u8),
    /// In an empty cell, for this many rounds: claims slot 0.
    Claiming(u8),
    /// Asks for a slot: failures so far, and silent rounds in a row.
    Requesting(u8, u8),
    /// Owns a slot, and is on probation for this many rounds: at 1 until somebody is heard.
    Owner(u8, u8),
}

/// A chance, drawn by the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chance {
    /// A slot of the contention period, all equally likely.
    pub slot: u8,
    /// 0 to 255, all equally likely.
    pub luck: u8,
}

/// What the frames of this round have promised to this host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Promised {
    Unheard,
    Slot(u8),
    Differently,
}

/// The rules that a test may break to see that it notices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Rule {
    Unanimity,
    Merge,
    Probation,
    /// Of what it knows itself of a slot that it was promised.
    Knowledge,
    /// Of owners that are silent for too long.
    Silence,
}

/// One host in one cell with `S` slots.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Member<const S: usize> {
    me: MacAddr,
    phase: Phase,
    table: [Entry; S],
    /// Each time it has asked in vain so often it asks half as often, down to every eighth round; 0: never.
    patience: u8,
    /// It asked in the last contention period.
    asked: bool,
    promised: Promised,
    /// It owned a slot and was not on the air in this round, and rounds in a row in which that was so.
    silent: bool,
    silent_rounds: u8,
    /// Somebody was heard in these rounds.
    company: bool,
    /// Slots in which a frame was heard in this round, as bits.
    heard: u16,
    /// Slots of others that were not only promised to them: it has heard them there lately.
    known: u16,
    /// Slots that a view of this round did not show as free.
    shown: u16,
    /// Heard in this contention period, by slot.
    requests: [Option<(MacAddr, Option<u8>)>; MAX_REQUESTS],
    #[cfg(test)]
    pub(super) broken: Option<Rule>,
}

impl<const S: usize> Member<S> {
    /// New in a cell. It asks in every round until it has done so in vain `patience` times, then with a chance of one half, and after as
    /// many more failures each with one of a quarter and of an eighth (0: it always asks).
    pub const fn new(me: MacAddr, patience: u8) -> Member<S> {
        const { assert!(S > 0 && S <= super::table::MAX_SLOTS) };
        Member {
            me,
            phase: Phase::Listening(0),
            table: [Entry::Free; S],
            patience,
            asked: false,
            promised: Promised::Unheard,
            silent: false,
            silent_rounds: 0,
            company: false,
            heard: 0,
            known: 0,
            shown: 0,
            requests: [None; MAX_REQUESTS],
            #[cfg(test)]
            broken: None,
        }
    }

    fn keeps(&self, rule: Rule) -> bool {
        #[cfg(test)]
        if self.broken == Some(rule) {
            return false;
        }
        let _ = rule;
        true
    }

    /// Where it stands.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// What it believes.
    pub const fn table(&self) -> &[Entry; S] {
        &self.table
    }

    /// The slot that it owns.
    pub const fn slot(&self) -> Option<u8> {
        match self.phase {
            Phase::Owner(slot, _) => Some(slot),
            _ => None,
        }
    }

    /// Whether the slot that it owns is not sure yet.
    pub const fn is_on_probation(&self) -> bool {
        matches!(self.phase, Phase::Owner(_, left) if left > 0)
    }

    /// The slot that it sends in in `round`; `None`: it owns none, or listens.
    pub fn sends(&self, round: u32) -> Option<u8> {
        let Phase::Owner(slot, probation) = self.phase else {
            return None;
        };
        let listens = probation::listens(self.me, round, probation);
        (!listens || !self.keeps(Rule::Probation)).then_some(slot)
    }

    /// What goes in front of its frame; `None` if it owns no slot.
    pub fn report(&self, leave: bool) -> Option<Report> {
        let slot = self.slot()?;
        let mut promises = Promises::default();
        for (i, entry) in self.table.iter().enumerate() {
            if let Entry::Pending(host) = entry {
                promises.push(*host, i as u8);
            }
        }
        let view = View::of(&self.table);
        Some(Report {
            slot,
            leave,
            near: 0,
            view,
            promises,
            between: None,
        })
    }

    fn give_up(&mut self) {
        if let Phase::Owner(slot, _) = self.phase {
            self.table[usize::from(slot)] = Entry::HEARSAY;
            self.phase = Phase::Requesting(0, 0);
        }
    }

    /// In this round it was not on the air in the slot that it owns: it listened, or came too late.
    pub fn was_silent(&mut self) {
        self.silent = self.slot().is_some();
    }

    /// The contention-free period is over. Tells what it sends in the contention period that follows.
    pub fn cfp_over(&mut self, chance: Chance) -> Option<Request> {
        let silent = core::mem::take(&mut self.silent);
        self.silent_rounds = if silent {
            (self.silent_rounds + 1).min(SILENT_ROUNDS)
        } else {
            0
        };
        self.company = silent && (self.company || self.heard != 0);
        if self.silent_rounds >= SILENT_ROUNDS && self.keeps(Rule::Silence) {
            match self.phase {
                Phase::Owner(slot, 1..) if !self.company => {
                    self.phase = Phase::Owner(slot, PROBATION_ROUNDS);
                }
                _ => {
                    self.silent_rounds = 0;
                    self.give_up();
                }
            }
        }
        if let Phase::Owner(slot, _) = self.phase
            && self.heard != 0
            && self.shown & 1 << slot == 0
            && self.keeps(Rule::Merge)
        {
            self.give_up();
        }
        self.age();
        let asked = core::mem::take(&mut self.asked);
        let heard = self.heard != 0;
        let ask = Request {
            slot: chance.slot,
            claim: None,
        };
        match self.phase {
            Phase::Listening(_) | Phase::Owner(..) => None,
            Phase::Claiming(age) if !heard => Some(ask.claimed(age)),
            Phase::Claiming(_) => {
                self.phase = Phase::Requesting(0, 0);
                self.asked = true;
                Some(ask)
            }
            Phase::Requesting(failures, quiet) => {
                if let (true, Promised::Slot(slot)) = (asked && heard, self.promised)
                    && (self.known & 1 << slot == 0 || !self.keeps(Rule::Knowledge))
                {
                    self.table[usize::from(slot)] = Entry::of(self.me);
                    self.phase = Phase::Owner(slot, 0);
                    return None;
                }
                let most = self.patience.saturating_mul(HALVINGS);
                let failures = failures.saturating_add(u8::from(asked)).min(most);
                let quiet = if heard { 0 } else { quiet + 1 };
                if quiet >= LISTEN_ROUNDS {
                    self.phase = Phase::Claiming(quiet);
                    return Some(ask.claimed(quiet));
                }
                self.phase = Phase::Requesting(failures, quiet);
                let halvings = failures.checked_div(self.patience).unwrap_or(0);
                self.asked = heard && u16::from(chance.luck) < 256 >> halvings;
                self.asked.then_some(ask)
            }
        }
    }

    fn age(&mut self) {
        let mine = self.slot();
        for (i, entry) in self.table.iter_mut().enumerate() {
            let (heard, shown) = (self.heard & 1 << i != 0, self.shown & 1 << i != 0);
            *entry = match *entry {
                _ if mine == Some(i as u8) => Entry::of(self.me),
                Entry::Pending(host) => Entry::of(host),
                Entry::Owned { host, silent } if !heard => {
                    let silent = silent.saturating_add(1).min(SILENT_ROUNDS);
                    match silent >= SILENT_ROUNDS && !shown {
                        true => Entry::Free,
                        false => Entry::Owned { host, silent },
                    }
                }
                Entry::Conflict { told: false } => Entry::Conflict { told: true },
                Entry::Conflict { told: true } => Entry::HEARSAY,
                kept => kept,
            };
            let other = matches!(*entry, Entry::Owned { host: Some(host), silent } if host != self.me && silent < SILENT_ROUNDS);
            let known = other && (heard || self.known & 1 << i != 0);
            self.known = self.known & !(1 << i) | u16::from(known) << i;
        }
    }

    /// A frame of `from` in the contention period of this round.
    pub fn requested(&mut self, from: MacAddr, request: &Request) {
        if let Some(place) = self.requests.get_mut(usize::from(request.slot))
            && from != self.me
        {
            *place = Some((from, request.claim));
            self.company |= self.silent_rounds > 0;
        }
    }

    /// The round is over.
    pub fn round_over(&mut self) {
        let requests = core::mem::take(&mut self.requests);
        let nobody = self.heard == 0 && requests.iter().all(Option::is_none);
        self.phase = match self.phase {
            Phase::Listening(_) if self.heard != 0 => Phase::Requesting(0, 0),
            Phase::Listening(quiet) if quiet + 1 >= LISTEN_ROUNDS => Phase::Claiming(quiet + 1),
            Phase::Listening(quiet) => Phase::Listening(quiet + 1),
            Phase::Claiming(age) => self.settle_claim(age, &requests),
            Phase::Owner(slot, 1) if nobody && self.keeps(Rule::Probation) => Phase::Owner(slot, 1),
            Phase::Owner(slot, left) => Phase::Owner(slot, left.saturating_sub(1)),
            same => same,
        };
        if self.slot().is_some() {
            for (host, _) in requests.into_iter().flatten() {
                self.promise(host);
            }
        }
        (self.heard, self.shown, self.promised) = (0, 0, Promised::Unheard);
    }

    fn settle_claim(&mut self, age: u8, requests: &[Option<(MacAddr, Option<u8>)>]) -> Phase {
        let loses = |(host, claim): &(MacAddr, Option<u8>)| match claim {
            Some(theirs) => (*theirs, self.me) > (age, *host),
            // somebody knows members
            None => true,
        };
        if let Some((winner, claim)) = requests.iter().flatten().find(|r| loses(r)) {
            if claim.is_some() {
                self.table[0] = Entry::of(*winner);
            }
            return Phase::Requesting(0, 0);
        }
        self.table[0] = Entry::of(self.me);
        Phase::Owner(0, PROBATION_ROUNDS)
    }

    fn promise(&mut self, host: MacAddr) {
        let had = self.table.iter().position(|e| e.host() == Some(host));
        let free = || self.table.iter().position(|e| *e == Entry::Free);
        if let Some(i) = had.or_else(free) {
            self.table[i] = Entry::Pending(host);
        }
    }
}

#[cfg(test)]
mod explore;
#[cfg(test)]
mod tests;
