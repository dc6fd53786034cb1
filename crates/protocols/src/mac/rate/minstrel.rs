//! Minstrel: every 100 ms the share of acknowledged frames of each rate is averaged; what carries most
//! goes first; one frame in ten tries something else. Constants are those of Linux 4.x (header of rc80211_minstrel), which has
//! it for legacy rates; here it is the same for the MCS of one width, guard interval and number of spatial streams.
//!
//! Six things are not as Linux had them, since with them a static link can carry as little as a quarter of what its best
//! fixed rate does, and stations that send at one moment stay at the rate they began with:
//!
//! - What a rate carries is reckoned with all that a frame costs: DIFS, a backoff that doubles with each try, the ACK, and
//!   the length that frames had lately. Linux compares the time of 1,200 octets alone, by which fast rates that lose
//!   much look good.
//! - An average weighs each frame, not each interval: four samples do not outweigh what hundreds of frames have shown.
//!   Frames fade with time, and a rate that was dead and is not begins anew.
//! - A rate that would carry more than the best one, did it lose nothing, goes first when it is sampled, a slower one, too.
//!   One that would not is sampled behind the best one, and about once a second only as soon as a few frames have told of it.
//! - Where the share of later tries that arrive is higher by more than a half than that of first ones, which is the work of others who begin
//!   at the same moment, first tries tell nothing about rates: they are not counted, and samples go second.
//! - If it carries less than the best one in an interval in which it was sampled, it is left alone, for twice as long each
//!   time, up to [`PAUSE`] intervals. Linux tries it in each interval.
//! - What the best rate loses goes at others only if they are likelier to arrive. Linux goes on with the second best, the surest
//!   and the slowest, which costs air where all rates lose alike.

use super::costs::Costs;
use super::firsts::Places;
pub use super::known::{PAUSE, RateState};
use super::{Algorithm, Ask, MAX_RATES, Rates, Sent};
use crate::dice::Dice;
use frame::{Phy, Rate};
use radio::{Duration, Instant, Series, SeriesList};

/// Between two looks at the counts.
pub const INTERVAL: Duration = Duration::from_ms(100);
/// Share of frames that sample another rate, percent.
pub const LOOKAROUND_PERCENT: u32 = 10;
/// Octets of the frame that rates are compared with before any was asked for.
pub const REFERENCE_OCTETS: u32 = 1_200;
/// Tries of one rate at most.
pub const MAX_TRIES: u8 = 7;

/// All, as a probability.
pub(super) const ONE: u32 = 1 << 16;
const SAMPLE_COLUMNS: usize = 10;
/// Frames after which the counts of sampling begin anew.
const EPOCH: u32 = 10_000;
/// Looks without a frame after which a rate is tried as the first one, although it is slower than the best.
const SKIPPED: u8 = 20;
/// Tries of a rate at which no frame was acknowledged yet.
const UNPROVEN_TRIES: u8 = 2;

/// Minstrel for one receiver.
#[derive(Clone, Debug)]
pub struct Minstrel {
    len: usize,
    rates: [RateState; MAX_RATES],
    costs: Costs,
    seed: u64,
    /// Indices: best and second throughput, best probability.
    best: [usize; 3],
    next_look: Option<Instant>,
    table: [[u8; MAX_RATES]; SAMPLE_COLUMNS],
    row: usize,
    column: usize,
    frames: u32,
    samples: u32,
    deferred: u32,
    /// The sampled rate of chains that have it in second place.
    indirect: Option<Rate>,
    places: Places,
}

impl Minstrel {
    /// Nothing known: it begins with the rate of the first request, and the slowest like it behind that. The order of samples
    /// follows from `seed`. Before that request it has the legacy rates.
    pub fn new(phy: &Phy, seed: u64) -> Minstrel {
        Minstrel::among(&Rates::of(phy), Costs::new(phy), seed)
    }

    fn among(rates: &Rates, costs: Costs, seed: u64) -> Minstrel {
        let list = rates.as_slice();
        let state = |i: usize| {
            let rate = list[i.min(list.len() - 1)];
            RateState::new(rate, costs.tries(rate))
        };
        Minstrel {
            len: list.len(),
            rates: core::array::from_fn(state),
            costs,
            seed,
            best: [0; 3],
            next_look: None,
            table: permutations(list.len(), seed),
            row: 0,
            column: 0,
            frames: 0,
            samples: 0,
            deferred: 0,
            indirect: None,
            places: Places::default(),
        }
    }

    /// What is known of each rate, slowest first.
    pub fn rates(&self) -> &[RateState] {
        &self.rates[..self.len]
    }

    /// The rate that carries most.
    pub fn best(&self) -> Rate {
        self.rates[self.best[0]].rate
    }

    fn look(&mut self, now: Instant) {
        let due = self.next_look.is_none_or(|t| t <= now);
        if !due {
            return;
        }
        let first = self.next_look.is_none();
        self.next_look = Some(now.after(INTERVAL));
        if first {
            return;
        }
        let mut lately = [None; MAX_RATES];
        for (state, lately) in self.rates[..self.len].iter_mut().zip(&mut lately) {
            let now = state.average();
            *lately = now.map(|share| self.costs.throughput(state.rate, share));
            state.throughput = self.costs.throughput(state.rate, state.probability);
            state.tries = self.costs.tries(state.rate);
        }
        let rates = &self.rates[..self.len];
        // the faster one of equals; the slowest if none carries anything
        let most = |not: Option<usize>| {
            let others = (0..rates.len()).filter(|i| Some(*i) != not);
            let alive = others.filter(|i| rates[*i].throughput > 0);
            alive.max_by_key(|i| rates[*i].throughput).unwrap_or(0)
        };
        let first = most(None);
        let sure = |i: &usize| rates[*i].probability >= ONE / 100 * 95;
        let surest = (0..rates.len()).filter(sure).max_by_key(|i| rates[*i].throughput);
        let likeliest = || (0..rates.len()).max_by_key(|i| rates[*i].probability);
        self.best = [first, most(Some(first)), surest.or_else(likeliest).unwrap_or(0)];
        let most = rates[first].throughput;
        for (state, lately) in self.rates[..self.len].iter_mut().zip(lately) {
            state.may_win = self.costs.throughput(state.rate, ONE) > most;
            state.plan(lately.map(|carried| carried > 0 && carried >= most));
        }
    }

    /// The rate to be sampled next, if it is time for one.
    fn sample(&mut self) -> Option<usize> {
        self.frames += 1;
        let wanted = self.frames * LOOKAROUND_PERCENT / 100;
        let had = self.samples + self.deferred / 2;
        if self.frames >= EPOCH {
            (self.frames, self.samples, self.deferred) = (0, 0, 0);
        }
        let missing = wanted.checked_sub(had).filter(|n| *n > 0)?;
        // no more than two rounds are caught up with
        self.samples += missing.saturating_sub(2 * self.len as u32);
        let index = usize::from(self.table[self.column][self.row]);
        self.row += 1;
        if self.row >= self.len {
            self.row = 0;
            self.column = (self.column + 1) % SAMPLE_COLUMNS;
        }
        (index != self.best[0]).then_some(index)
    }

    /// Index of a rate, or of the next slower one; 0 if all are faster.
    fn at(&self, rate: Rate) -> usize {
        let slower = |s: &RateState| s.rate.kbps100() <= rate.kbps100();
        self.rates().iter().rposition(slower).unwrap_or(0)
    }

    fn series(&self, index: usize, tries: u8) -> Series {
        Series {
            rate: self.rates[index].rate,
            tries,
        }
    }
}

impl Algorithm for Minstrel {
    fn chain(&mut self, now: Instant, ask: &Ask) -> SeriesList {
        if self.next_look.is_none() {
            // nothing is known
            let rates = Rates::like(self.costs.phy(), ask.rate);
            *self = Minstrel::among(&rates, self.costs, self.seed);
            self.best[0] = self.at(ask.rate);
        }
        self.costs.note(ask.octets);
        self.look(now);
        let [best, second, surest] = self.best;
        // what has never worked gets few tries: hosts that take one rate for a frame then take another one
        let usual = |i: usize| {
            let state = &self.rates[i];
            let most = if state.is_proven() || i == 0 {
                MAX_TRIES
            } else {
                UNPROVEN_TRIES
            };
            self.series(i, state.tries_now.min(most))
        };
        // other rates help against a weak signal; where they do not, what follows the best one is that again
        let helps = |i: usize| self.rates[i].helps(&self.rates[best]);
        let after = |i: usize| usual(if helps(i) { i } else { best });
        let mut chain = [usual(best), after(second), after(surest), after(0)];
        self.indirect = None;
        if let Some(index) = self.sample() {
            let once = self.series(index, 1);
            let state = &mut self.rates[index];
            if state.is_known() {
                self.samples += 1;
            } else if !state.may_win && state.skipped < SKIPPED {
                // only if the best one fails; counts as half until it is used
                chain[1] = once;
                self.indirect = Some(once.rate);
                self.deferred += 1;
            } else if state.samples_left != Some(0) {
                state.samples_left = state.samples_left.map(|n| n - 1);
                if self.places.later_are_better() {
                    chain = [self.series(best, 1), once, chain[0], chain[3]];
                    self.indirect = Some(once.rate);
                    self.deferred += 1;
                } else {
                    self.samples += 1;
                    chain[0] = once;
                    chain[1] = self.series(best, 2);
                }
            }
        }
        SeriesList::new(&chain).unwrap_or_else(|| SeriesList::one(self.rates[0].rate, 1))
    }

    fn learn(&mut self, now: Instant, sent: &Sent) {
        let last = sent.last();
        let first_tell_nothing = self.places.later_are_better();
        if sent.chain.as_slice()[0].rate == self.best() && sent.used[0] > 0 {
            let acked_here = sent.acked && last == 0;
            self.places.note(0, 1, acked_here && sent.used[0] == 1);
            self.places
                .note(1, u32::from(sent.used[0]) - 1, acked_here && sent.used[0] > 1);
        }
        for (i, (series, used)) in sent.chain.as_slice().iter().zip(sent.used).enumerate() {
            let known = &mut self.rates[..self.len];
            let Some(state) = known.iter_mut().find(|s| s.rate == series.rate) else {
                continue;
            };
            let untold = u16::from(i == 0 && first_tell_nothing).min(used);
            state.count(used - untold, i == last && sent.acked);
            if i == 1 && used > 0 && self.indirect == Some(series.rate) {
                self.samples += 1;
                self.deferred = self.deferred.saturating_sub(1);
                self.indirect = None;
            }
        }
        self.look(now);
    }
}

/// Columns with all indices below `len`, each in an order of its own.
fn permutations(len: usize, seed: u64) -> [[u8; MAX_RATES]; SAMPLE_COLUMNS] {
    let mut dice = Dice(seed);
    let mut draw = |below: usize| (dice.roll() % below as u64) as usize;
    core::array::from_fn(|_| {
        let mut column: [u8; MAX_RATES] = core::array::from_fn(|i| i as u8);
        for i in (1..len).rev() {
            column.swap(i, draw(i + 1));
        }
        column
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While there is nothing to sample, what is missing does not pile up: no more than two rounds go in a row afterwards.
    #[test]
    fn what_was_not_sampled_is_not_made_up_for() {
        let mut minstrel = Minstrel::new(&Phy::A, 1);
        let two_rounds = 2 * minstrel.len as u32;
        for frames in 1..EPOCH {
            // as a rate that has had all samples of its interval: this one is not counted
            let _ = minstrel.sample();
            let missing = frames * LOOKAROUND_PERCENT / 100 - minstrel.samples;
            assert!(missing <= two_rounds, "{missing} after {frames}");
        }
        let in_a_row = (0..EPOCH).take_while(|_| {
            minstrel.samples += 1;
            minstrel.frames * LOOKAROUND_PERCENT / 100 > minstrel.samples
        });
        assert_eq!(in_a_row.count() as u32, two_rounds - 1);
    }
}
