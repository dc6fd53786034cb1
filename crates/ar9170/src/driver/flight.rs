//! Requests that are not confirmed yet: a fixed pool, with room for each frame.

use super::bus::TransferId;
use super::chain::Chain;
use crate::codec::tx::DESCRIPTOR_OCTETS;
use radio::{Confirm, Instant, Outcome, Stamps, Token, TxHow};

/// Where a request is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum State {
    Free,
    /// Here, until its time has come and the stick has room.
    Held,
    /// On its way to the stick.
    Sending(TransferId),
    /// On the stick.
    OnStick,
    /// Over; its confirm is to be told.
    Over(Confirm),
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight<const L: usize> {
    pub state: State,
    pub token: Token,
    pub how: TxHow,
    pub chain: Chain,
    pub expects_ack: bool,
    /// The hardware writes a timestamp into it.
    pub stamped: bool,
    /// When it was handed to the stick.
    pub since: Instant,
    pub stamps: Stamps,
    /// Order of arrival; of its end, when it is over.
    pub order: u64,
    len: u16,
    /// Descriptors and frame, as they go to the stick.
    octets: [u8; L],
}

impl<const L: usize> Flight<L> {
    pub(super) fn frame(&self) -> &[u8] {
        &self.octets[DESCRIPTOR_OCTETS..][..self.len.into()]
    }

    /// The whole transfer, with these descriptors.
    pub(super) fn transfer(&mut self, descriptors: &[u8; DESCRIPTOR_OCTETS]) -> &[u8] {
        self.octets[..DESCRIPTOR_OCTETS].copy_from_slice(descriptors);
        &self.octets[..DESCRIPTOR_OCTETS + usize::from(self.len)]
    }

    /// True from the moment it has left us until its status comes.
    pub(super) fn is_away(&self) -> bool {
        matches!(self.state, State::Sending(_) | State::OnStick)
    }

    pub(super) fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    pub(super) fn is_held(&self) -> bool {
        self.state == State::Held
    }

    /// Neither free nor over.
    pub(super) fn is_open(&self) -> bool {
        self.is_held() || self.is_away()
    }

    /// When it may leave.
    pub(super) fn ready_at(&self) -> Instant {
        self.how.not_before.unwrap_or(Instant::ZERO)
    }
}

/// Up to `N` requests with frames of up to `L` octets, their descriptors included.
#[derive(Clone, Debug)]
pub(super) struct Flights<const N: usize, const L: usize> {
    pool: [Flight<L>; N],
}

impl<const N: usize, const L: usize> Flights<N, L> {
    pub(super) const fn new() -> Flights<N, L> {
        let how = TxHow::one_shot(frame::Rate::OFDM_6);
        let blank = Flight {
            state: State::Free,
            token: Token(0),
            how,
            chain: Chain::none(),
            expects_ack: false,
            stamped: false,
            since: Instant::ZERO,
            stamps: Stamps::NONE,
            order: 0,
            len: 0,
            octets: [0; L],
        };
        Flights { pool: [blank; N] }
    }

    /// A free place among the first `limit`, its frame written; `None` if there is none.
    pub(super) fn take(
        &mut self,
        limit: usize,
        token: Token,
        how: &TxHow,
        frame: &[u8],
    ) -> Option<&mut Flight<L>> {
        let mut places = self.pool.iter_mut().take(limit);
        let flight = places.find(|f| f.state == State::Free)?;
        let place = flight.octets.get_mut(DESCRIPTOR_OCTETS..)?;
        place.get_mut(..frame.len())?.copy_from_slice(frame);
        flight.len = frame.len() as u16;
        (flight.state, flight.token, flight.how) = (State::Held, token, *how);
        flight.stamps = Stamps::NONE;
        Some(flight)
    }

    pub(super) fn get(&self, index: usize) -> Option<&Flight<L>> {
        self.pool.get(index)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> Option<&mut Flight<L>> {
        self.pool.get_mut(index)
    }

    /// All of them with their indices.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Flight<L>)> {
        self.pool.iter().enumerate()
    }

    /// The one that is neither free nor over and has this token.
    pub(super) fn find(&self, token: Token) -> Option<usize> {
        self.pool.iter().position(|f| f.is_open() && f.token == token)
    }

    /// Ends one, as `outcome` and without a word of the air; `order` says when.
    pub(super) fn end(&mut self, index: usize, outcome: Outcome, order: u64) {
        if let Some(f) = self.pool.get_mut(index) {
            let rate = f.how.series.as_slice()[0].rate;
            let stamps = f.stamps;
            let confirm = Confirm::without_air(f.token, outcome, rate);
            f.state = State::Over(Confirm { stamps, ..confirm });
            f.order = order;
        }
    }

    /// Order of the first that is over.
    pub(super) fn first_over(&self) -> Option<(u64, usize)> {
        let over = self.iter().filter(|(_, f)| matches!(f.state, State::Over(_)));
        over.map(|(i, f)| (f.order, i)).min()
    }

    /// Its confirm; the place is free from now on.
    pub(super) fn tell(&mut self, index: usize) -> Option<Confirm> {
        let flight = self.pool.get_mut(index)?;
        let State::Over(confirm) = flight.state else {
            return None;
        };
        flight.state = State::Free;
        Some(confirm)
    }
}
