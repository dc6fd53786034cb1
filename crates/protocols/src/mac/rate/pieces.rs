//! Retry chains on hosts that take one rate for each request, as Linux does from monitors: a chain goes down as one request
//! for each of its series, the next one when the one before has failed. The protocol above sees one request.

use super::MAX_SERIES;
use crate::mac::data::MAX_DATA_OCTETS;
use frame::mac::header::set_retry;
use radio::{AdapterId, Attribute, AttributeName, Confirm, Outcome, Radio, Series, SeriesList, Token, TxHow};

/// Frames that wait for the rest of their chain; those beyond have one rate.
const HELD: usize = 4;

#[derive(Clone, Debug)]
struct Piece {
    above: Token,
    below: Token,
    chain: SeriesList,
    /// Series that is below.
    step: usize,
    /// Frames on the air before that.
    attempts: u16,
    unwanted: bool,
    how: TxHow,
    octets: usize,
    frame: [u8; MAX_DATA_OCTETS],
}

/// What goes down in pieces.
#[derive(Clone, Debug)]
pub(super) struct Pieces {
    /// Whether the host takes one rate only, once it was asked.
    single: Option<bool>,
    held: [Option<Piece>; HELD],
}

impl Pieces {
    pub(super) fn new() -> Pieces {
        Pieces {
            single: None,
            held: [const { None }; HELD],
        }
    }

    /// The part of a chain that the host can take now; the rest follows. What cannot be held has one rate: that with the most
    /// tries, and all of them.
    pub(super) fn first(
        &mut self,
        token: Token,
        frame: &[u8],
        how: &TxHow,
        chain: SeriesList,
        radio: &dyn Radio,
    ) -> First {
        let single = *self.single.get_or_insert_with(|| takes_one(how.adapter, radio));
        let series = chain.as_slice();
        if !single || series.len() < 2 {
            return First::Whole(chain);
        }
        let place = self.held.iter_mut().find(|p| p.is_none());
        let Some(place) = place.filter(|_| frame.len() <= MAX_DATA_OCTETS) else {
            let most = series.iter().rev().max_by_key(|s| s.tries).unwrap_or(&series[0]);
            let tries = chain.attempts().min(u8::MAX.into()) as u8;
            return First::Whole(SeriesList::one(most.rate, tries));
        };
        let mut octets = [0; MAX_DATA_OCTETS];
        octets[..frame.len()].copy_from_slice(frame);
        *place = Some(Piece {
            above: token,
            below: token,
            chain,
            step: 0,
            attempts: 0,
            unwanted: false,
            how: *how,
            octets: frame.len(),
            frame: octets,
        });
        First::Part(one(&series[0]))
    }

    /// A confirm from below: what of it the protocol above is told. `None`: the frame goes on with its next series.
    pub(super) fn ended(&mut self, confirm: &Confirm, radio: &mut dyn Radio) -> Option<Confirm> {
        let mine = |p: &&mut Option<Piece>| p.as_ref().is_some_and(|p| p.below == confirm.token);
        let Some(place) = self.held.iter_mut().find(mine) else {
            return Some(*confirm);
        };
        let piece = place.as_mut()?;
        piece.attempts = piece.attempts.saturating_add(confirm.attempts);
        let next = piece.chain.as_slice().get(piece.step + 1);
        if let Some(next) = next.filter(|_| confirm.outcome == Outcome::NotAcked && !piece.unwanted) {
            piece.step += 1;
            piece.below = radio.token();
            let frame = &mut piece.frame[..piece.octets];
            // it was read when its chain was chosen
            let _ = set_retry(frame, true);
            radio.request(piece.below, frame, &piece.how.series(one(next)));
            return None;
        }
        let told = Confirm {
            token: piece.above,
            attempts: piece.attempts,
            series: piece.step.min(MAX_SERIES - 1) as u8,
            ..*confirm
        };
        *place = None;
        Some(told)
    }

    /// The request below that stands for one of the protocol above, which it does not want any more.
    pub(super) fn unwanted(&mut self, token: Token) -> Token {
        let mut all = self.held.iter_mut().flatten();
        let Some(piece) = all.find(|p| p.above == token) else {
            return token;
        };
        piece.unwanted = true;
        piece.below
    }
}

/// What goes down first.
pub(super) enum First {
    /// All of it.
    Whole(SeriesList),
    /// The first series.
    Part(SeriesList),
}

fn one(series: &Series) -> SeriesList {
    SeriesList::one(series.rate, series.tries)
}

fn takes_one(adapter: AdapterId, radio: &dyn Radio) -> bool {
    let known = radio.get(adapter, AttributeName::Capabilities);
    matches!(known, Some(Attribute::Capabilities(c)) if c.series == 1)
}
