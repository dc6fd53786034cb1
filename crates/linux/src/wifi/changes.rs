//! Changes of attributes: asked for by the protocol, carried out by the clerk or at once, and answered in their order; and what
//! the clerk tells of the radios.

use std::collections::VecDeque;

use radio::{AdapterId, Attribute, Instant, SetAnswer, SetError, Token};

use super::adapter::Adapter;
use super::clerk::{Change, Clerk};
use super::desk::{Desk, Owed};
use super::flight::{Flight, State};

/// Changes that wait for the clerk without allocating; more are kept, too.
const WAITING: usize = 4 * radio::checked::MAX_ACTIONS;

/// The changes that are not answered.
#[derive(Debug)]
pub(super) struct Changes {
    /// Those that are not begun.
    waiting: VecDeque<Change>,
    /// Those of channels, in their order.
    retunes: VecDeque<(Token, AdapterId)>,
    /// Who carries them out.
    pub clerk: Clerk,
}

impl Changes {
    pub fn new(clerk: Clerk) -> Changes {
        Changes {
            waiting: VecDeque::with_capacity(WAITING),
            retunes: VecDeque::with_capacity(WAITING),
            clerk,
        }
    }

    /// Whether there are some that the clerk could not be told of.
    pub fn wait(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether there are some that are not answered.
    pub fn are_open(&self) -> bool {
        self.wait() || self.clerk.open() > 0
    }
}

impl Desk {
    /// A change is asked for.
    pub fn ask(&mut self, token: Token, id: AdapterId, attribute: Attribute) {
        let adapter = self.adapters.get_mut(usize::from(id.0));
        let by_the_clerk = adapter.filter(|adapter| !adapter.sets_here(&attribute));
        if let (Attribute::Channel(_), Some(adapter)) = (attribute, by_the_clerk) {
            adapter.retunes += 1;
            self.changes.retunes.push_back((token, id));
        }
        self.changes.waiting.push_back((token, id, attribute));
    }

    /// Carries out the changes that were asked for, or hands them to the clerk. Does not wait.
    pub fn do_changes(&mut self) {
        let changes = &mut self.changes;
        while let Some(&(token, id, attribute)) = changes.waiting.front() {
            let adapter = self.adapters.get_mut(usize::from(id.0));
            match adapter {
                Some(adapter) if !adapter.sets_here(&attribute) => {
                    if !changes.clerk.order((token, id, attribute)) {
                        return;
                    }
                }
                // What was asked for before it is answered before it.
                _ if changes.clerk.open() > 0 => return,
                adapter => {
                    let result = adapter.and_then(|a| a.set_here(attribute));
                    let result = result.unwrap_or(Err(SetError::NotFound));
                    self.owed.push_back(Owed::Set(SetAnswer { token, result }));
                }
            }
            changes.waiting.pop_front();
        }
    }

    /// Takes what the clerk has done: the radios as they are now, answers, and counts. Whether there was something; `None` if
    /// it cannot be had just now. Does not wait.
    pub fn take_done(&mut self) -> Option<bool> {
        let (adapters, owed, counters) = (&mut self.adapters, &mut self.owed, &mut self.counters);
        let Changes { clerk, retunes, .. } = &mut self.changes;
        let mut any = false;
        let taken = clerk.take(|done| {
            for (adapter, view) in adapters.iter_mut().zip(&done.views) {
                if let Some(view) = view {
                    adapter.see(*view);
                }
            }
            any = done.news > 0 || !done.answers.is_empty();
            for answer in &done.answers {
                let is_it = |(token, _): &mut (Token, AdapterId)| *token == answer.token;
                if let Some((_, id)) = retunes.pop_front_if(is_it) {
                    adapters[usize::from(id.0)].retunes -= 1;
                }
                owed.push_back(Owed::Set(*answer));
            }
            counters.news += done.news;
            counters.netlink_overflows += done.overflows;
        });
        taken.then_some(any)
    }

    /// When something of the requests is due next.
    pub fn next_due(&self) -> Option<Instant> {
        self.flights.next_due(|f| !waits(&self.adapters, f))
    }
}

/// Whether a request is held back until its radio is on the channel that was asked for: what is sent on the way there gets no
/// status.
pub(super) fn waits(adapters: &[Adapter], flight: &Flight) -> bool {
    let adapter = adapters.get(usize::from(flight.how.adapter.0));
    flight.state == State::Held && adapter.is_some_and(|a| a.retunes > 0)
}
