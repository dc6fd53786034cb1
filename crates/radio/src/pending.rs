//! A fixed table for overlays that hold requests back: it keeps the frames, remembers which attempt belongs to
//! which request, and pays the confirms that the overlay owes to the protocol above (law 1).
//!
//! The life of a request in the table: [`hold`](Pending::hold) → waiting → [`launch`](Pending::launch) → in flight
//! → [`landed`](Pending::landed) → either [`wait_again`](Pending::wait_again) (a retry) or
//! [`finish`](Pending::finish). What ends without the air (no room, expiry, abort) becomes an owed confirm too.
//! After every `handle` of the protocol above, the overlay takes [`next_owed`](Pending::next_owed) until there is
//! nothing left and hands each to that protocol as an event; never inside a `Radio` call (law 2).

use crate::Radio;
use crate::checked::MAX_ACTIONS;
use crate::event::{Confirm, Outcome, Refusal, Token};
use crate::time::Instant;
use crate::tx::TxHow;

/// One held request.
#[derive(Clone, Copy, Debug)]
pub struct Held<const L: usize> {
    /// The token of the protocol above.
    pub token: Token,
    /// What it asked for.
    pub how: TxHow,
    /// When it came.
    pub since: Instant,
    /// Attempts on the air so far, all launches together.
    pub attempts: u16,
    /// A number that the overlay may use as it likes (a slot, a stream, a priority).
    pub tag: u64,
    order: u64,
    unwanted: bool,
    state: State,
    len: u16,
    frame: [u8; L],
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    Waiting,
    Flying(Token),
    Owed(Confirm),
}

impl<const L: usize> Held<L> {
    /// The frame.
    pub fn frame(&self) -> &[u8] {
        &self.frame[..usize::from(self.len)]
    }

    /// The frame, to set its retry bit or sequence number.
    pub fn frame_mut(&mut self) -> &mut [u8] {
        &mut self.frame[..usize::from(self.len)]
    }

    /// True while it waits to be launched.
    pub fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    /// True while an attempt is below.
    pub fn is_flying(&self) -> bool {
        matches!(self.state, State::Flying(_))
    }

    /// True if the protocol above asked for it back while an attempt was below: no other attempt is wanted.
    pub fn is_unwanted(&self) -> bool {
        self.unwanted
    }

    /// Order of arrival: smaller came first.
    pub fn order(&self) -> u64 {
        self.order
    }
}

/// Up to `N` held requests with frames of up to `L` octets.
#[derive(Clone, Debug)]
pub struct Pending<const N: usize, const L: usize> {
    slots: [Option<Held<L>>; N],
    /// From here on all slots are free: who looks for something among a few frames does not touch the memory of many.
    end: usize,
    refused: [Option<Confirm>; MAX_ACTIONS],
    arrivals: u64,
}

impl<const N: usize, const L: usize> Default for Pending<N, L> {
    fn default() -> Self {
        Pending {
            slots: [None; N],
            end: 0,
            refused: [None; MAX_ACTIONS],
            arrivals: 0,
        }
    }
}

impl<const N: usize, const L: usize> Pending<N, L> {
    /// Takes a request in and tells its index; or refuses it (no room, too long) and owes that confirm.
    ///
    /// [`MAX_ACTIONS`] refusals can be owed, which is what a protocol can ask for in one event. One that keeps
    /// asking for more than it gets confirms would need a table without end; its further requests go down to
    /// `radio` with their own token and without their octets. Whatever is below refuses a frame that is no frame,
    /// and that confirm goes up through the overlay like every other one that is not for it. So each token still
    /// gets its one confirm, and nothing is sent.
    pub fn hold(
        &mut self,
        now: Instant,
        token: Token,
        frame: &[u8],
        how: &TxHow,
        radio: &mut dyn Radio,
    ) -> Option<usize> {
        if frame.len() > L || frame.len() > usize::from(u16::MAX) {
            self.refuse(token, how, Refusal::BadFrame, radio);
            return None;
        }
        let free = self.used().iter().position(Option::is_none);
        let Some(index) = free.or((self.end < N).then_some(self.end)) else {
            self.refuse(token, how, Refusal::QueueFull, radio);
            return None;
        };
        let mut held = Held {
            token,
            how: *how,
            since: now,
            attempts: 0,
            tag: 0,
            order: self.arrivals,
            unwanted: false,
            state: State::Waiting,
            len: frame.len() as u16,
            frame: [0; L],
        };
        held.frame[..frame.len()].copy_from_slice(frame);
        self.arrivals += 1;
        self.slots[index] = Some(held);
        self.end = self.end.max(index + 1);
        Some(index)
    }

    /// The slots up to the last one that is taken.
    fn used(&self) -> &[Option<Held<L>>] {
        &self.slots[..self.end]
    }

    fn refuse(&mut self, token: Token, how: &TxHow, why: Refusal, radio: &mut dyn Radio) {
        let rate = how.series.as_slice()[0].rate;
        match self.refused.iter_mut().find(|s| s.is_none()) {
            Some(slot) => *slot = Some(Confirm::without_air(token, Outcome::Refused(why), rate)),
            None => radio.request(token, &[], how),
        }
    }

    /// The request at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<&Held<L>> {
        self.used().get(index)?.as_ref()
    }

    /// The request at `index`, if there is one.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Held<L>> {
        self.slots[..self.end].get_mut(index)?.as_mut()
    }

    /// All requests that wait, with their indices, in no particular order.
    pub fn waiting(&self) -> impl Iterator<Item = (usize, &Held<L>)> {
        let all = self.used().iter().enumerate();
        let all = all.filter_map(|(i, s)| s.as_ref().map(|h| (i, h)));
        all.filter(|(_, h)| h.is_waiting())
    }

    /// The waiting request with the smallest `key`; the earlier one of equals.
    pub fn first_by<K: Ord>(&self, mut key: impl FnMut(&Held<L>) -> K) -> Option<usize> {
        self.waiting()
            .min_by_key(|(_, h)| (key(h), h.order))
            .map(|(i, _)| i)
    }

    /// Number of requests in the table, owed ones included.
    pub fn len(&self) -> usize {
        self.used().iter().flatten().count()
    }

    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends the waiting request `index` down as `how` says, under a token of its own, which is returned.
    ///
    /// # Panics
    /// If `index` is not a waiting request.
    pub fn launch(&mut self, index: usize, how: &TxHow, radio: &mut dyn Radio) -> Token {
        let lower = self.take_off(index, radio);
        let held = self.slots[index].as_ref().expect("it flies");
        radio.request(lower, held.frame(), how);
        lower
    }

    /// As [`launch`](Pending::launch), with `frame` on the air in its place: one that has the held frame in it, or what
    /// stands for it.
    ///
    /// # Panics
    /// If `index` is not a waiting request.
    pub fn launch_as(&mut self, index: usize, frame: &[u8], how: &TxHow, radio: &mut dyn Radio) -> Token {
        let lower = self.take_off(index, radio);
        radio.request(lower, frame, how);
        lower
    }

    fn take_off(&mut self, index: usize, radio: &mut dyn Radio) -> Token {
        let held = self.slots[index].as_mut().expect("a held request");
        assert!(held.is_waiting(), "launched twice");
        let lower = radio.token();
        held.state = State::Flying(lower);
        lower
    }

    /// Which request the confirm of a launch belongs to. It stays in flight until
    /// [`wait_again`](Pending::wait_again) or [`finish`](Pending::finish). `None`: the confirm is for somebody else.
    pub fn landed(&mut self, confirm: &Confirm) -> Option<usize> {
        let flying = State::Flying(confirm.token);
        let index = self
            .used()
            .iter()
            .position(|s| s.as_ref().is_some_and(|h| h.state == flying))?;
        let held = self.slots[index].as_mut().expect("just found");
        held.attempts = held.attempts.saturating_add(confirm.attempts);
        Some(index)
    }

    /// Puts a request that has landed back among those that wait.
    ///
    /// # Panics
    /// If `index` is not in flight.
    pub fn wait_again(&mut self, index: usize) {
        let held = self.slots[index].as_mut().expect("a held request");
        assert!(held.is_flying(), "not in flight");
        held.state = State::Waiting;
    }

    /// Ends a request with the confirm of its last launch: the attempts of all launches are added up and the
    /// token becomes that of the protocol above.
    ///
    /// # Panics
    /// If there is no request at `index`.
    pub fn finish(&mut self, index: usize, last: &Confirm) {
        let held = self.slots[index].as_mut().expect("a held request");
        held.state = State::Owed(Confirm {
            token: held.token,
            attempts: held.attempts,
            ..*last
        });
    }

    /// Ends a request that is not in flight with `outcome` and nothing on the air since its last launch.
    ///
    /// # Panics
    /// If there is no request at `index`.
    pub fn end(&mut self, index: usize, outcome: Outcome) {
        let held = self.slots[index].as_mut().expect("a held request");
        let confirm = Confirm::without_air(held.token, outcome, held.how.series.as_slice()[0].rate);
        held.state = State::Owed(Confirm {
            attempts: held.attempts,
            ..confirm
        });
    }

    /// Ends all waiting requests whose `expires` is before `now`, as expired. Tells how many.
    pub fn expire(&mut self, now: Instant) -> usize {
        let mut n = 0;
        for i in 0..self.end {
            let over = |h: &Held<L>| h.is_waiting() && h.how.expires.is_some_and(|t| t < now);
            if self.get(i).is_some_and(over) {
                self.end(i, Outcome::Expired);
                n += 1;
            }
        }
        n
    }

    /// The earliest `expires` of the requests that wait.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.waiting().filter_map(|(_, h)| h.how.expires).min()
    }

    /// Takes back the request that the protocol above calls `token`: one that waits ends as aborted; for one in
    /// flight the abort goes down, and the confirm of the launch decides. False if it is not in the table.
    pub fn abort(&mut self, token: Token, radio: &mut dyn Radio) -> bool {
        let mine = |h: &Held<L>| h.token == token && !matches!(h.state, State::Owed(_));
        let Some(i) = self.used().iter().position(|s| s.as_ref().is_some_and(mine)) else {
            return false;
        };
        let held = self.slots[i].as_mut().expect("just found");
        match held.state {
            State::Flying(lower) => {
                held.unwanted = true;
                radio.abort(lower);
            }
            _ => self.end(i, Outcome::Aborted),
        }
        true
    }

    /// Whether confirms are owed to the protocol above.
    pub fn owes(&self) -> bool {
        let owed = |h: &Held<L>| matches!(h.state, State::Owed(_));
        self.refused.iter().any(Option::is_some) || self.used().iter().flatten().any(owed)
    }

    /// The next confirm that is owed to the protocol above; its slot is free from now on.
    pub fn next_owed(&mut self) -> Option<Confirm> {
        if let Some(c) = self.refused.iter_mut().find_map(Option::take) {
            return Some(c);
        }
        let owed = |s: &Option<Held<L>>| s.as_ref().is_some_and(|h| matches!(h.state, State::Owed(_)));
        let slot = self.slots[..self.end].iter_mut().find(|s| owed(s))?;
        let State::Owed(confirm) = slot.take()?.state else {
            return None;
        };
        let last = self.used().iter().rposition(Option::is_some);
        self.end = last.map_or(0, |last| last + 1);
        Some(confirm)
    }
}

#[cfg(test)]
mod tests;
