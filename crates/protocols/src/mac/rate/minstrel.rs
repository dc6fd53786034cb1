//! Minstrel for legacy rates, as Linux has it (net/mac80211/rc80211_minstrel of Linux 4.x; constants in its header):
//! every 100 ms the share of acknowledged frames of each rate is averaged; what carries most goes first; one frame in
//! ten tries something else.

use super::{Algorithm, Ask, MAX_RATES, Rates, Sent};
use crate::dice::Dice;
use frame::{Phy, Rate, ppdu_us};
use radio::{Duration, Instant, Series, SeriesList};

/// Between two looks at the counts.
pub const INTERVAL: Duration = Duration::from_ms(100);
/// Share of frames that sample another rate, percent.
pub const LOOKAROUND_PERCENT: u32 = 10;
/// Octets of the frame that rates are compared with.
pub const REFERENCE_OCTETS: u32 = 1_200;
/// Tries of one rate at most.
pub const MAX_TRIES: u8 = 7;

/// All tries of one rate should take no longer than this, us.
const SEGMENT_US: u32 = 6_000;
/// Of 128 parts of the average the old value keeps 96.
const KEEP_OF_128: u32 = 96;
/// All, as a probability.
const ONE: u32 = 1 << 16;
const SAMPLE_COLUMNS: usize = 10;
/// Frames after which the counts of sampling begin anew.
const EPOCH: u32 = 10_000;
/// Looks without a frame after which a rate is tried as the first one, although it is slower than the best.
const SKIPPED: u8 = 20;

/// What is known of one rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateState {
    /// The rate.
    pub rate: Rate,
    /// Share of acknowledged frames, averaged; 2^16 is all.
    pub probability: u32,
    /// Duration of a frame of [`REFERENCE_OCTETS`], us.
    pub frame_us: u32,
    /// Tries that fit into 6 ms, backoff included.
    pub tries: u8,
    /// Tries at present: fewer if it nearly always works or nearly never.
    pub tries_now: u8,
    attempts: u32,
    successes: u32,
    known: bool,
    skipped: u8,
    /// Samples left in this interval; `None`: no limit.
    samples_left: Option<u8>,
}

impl RateState {
    fn new(rate: Rate, phy: &Phy) -> RateState {
        let ack_us = phy.sifs_us + phy.ack_us(rate, phy.basic);
        let frame_us = ppdu_us(rate, REFERENCE_OCTETS, phy.band);
        let mut cw = u32::from(phy.cw_min);
        let (mut tries, mut total_us) = (0, 0);
        while tries < MAX_TRIES {
            total_us += frame_us + ack_us + phy.slot_us * cw / 2;
            cw = (cw * 2 + 1).min(u32::from(phy.cw_max));
            if tries > 0 && total_us >= SEGMENT_US {
                break;
            }
            tries += 1;
        }
        RateState {
            rate,
            probability: 0,
            frame_us,
            tries,
            tries_now: tries,
            attempts: 0,
            successes: 0,
            known: false,
            skipped: 0,
            samples_left: None,
        }
    }

    /// What it carries, in frames of the reference length per second times 2^16; 0 below a probability of 10 %.
    pub fn throughput(&self) -> u64 {
        if self.probability < ONE / 10 {
            return 0;
        }
        u64::from(self.probability) * 1_000_000 / u64::from(self.frame_us)
    }

    fn look(&mut self) {
        if self.attempts == 0 {
            self.skipped = self.skipped.saturating_add(1);
        } else {
            self.skipped = 0;
            let now = (u64::from(self.successes) * u64::from(ONE) / u64::from(self.attempts)) as u32;
            self.probability = if self.known {
                (self.probability * KEEP_OF_128 + now * (128 - KEEP_OF_128)) / 128
            } else {
                now
            };
            self.known = true;
            (self.attempts, self.successes) = (0, 0);
        }
        let sure = self.probability > ONE / 100 * 95 || self.probability < ONE / 10;
        self.tries_now = if sure { (self.tries / 2).min(2) } else { self.tries };
        self.samples_left = sure.then_some(4);
        if self.tries_now == 0 {
            self.tries_now = 2;
        }
    }
}

/// Minstrel for one receiver.
#[derive(Clone, Debug)]
pub struct Minstrel {
    len: usize,
    rates: [RateState; MAX_RATES],
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
}

impl Minstrel {
    /// Nothing known. The order of samples follows from `seed`.
    pub fn new(phy: &Phy, seed: u64) -> Minstrel {
        let rates = Rates::of(phy);
        let list = rates.as_slice();
        let state = |i: usize| RateState::new(list[i.min(list.len() - 1)], phy);
        Minstrel {
            len: list.len(),
            rates: core::array::from_fn(state),
            best: [0; 3],
            next_look: None,
            table: permutations(list.len(), seed),
            row: 0,
            column: 0,
            frames: 0,
            samples: 0,
            deferred: 0,
            indirect: None,
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
        self.rates[..self.len].iter_mut().for_each(RateState::look);
        let rates = self.rates();
        // the faster one of equals
        let most = |not: Option<usize>| {
            (0..rates.len())
                .filter(|i| Some(*i) != not)
                .max_by_key(|i| rates[*i].throughput())
                .unwrap_or(0)
        };
        let first = most(None);
        let sure = |i: &usize| rates[*i].probability >= ONE / 100 * 95;
        let surest = (0..rates.len())
            .filter(sure)
            .max_by_key(|i| rates[*i].throughput());
        let likeliest = || (0..rates.len()).max_by_key(|i| rates[*i].probability);
        self.best = [first, most(Some(first)), surest.or_else(likeliest).unwrap_or(0)];
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

    fn series(&self, index: usize, tries: u8) -> Series {
        Series {
            rate: self.rates[index].rate,
            tries,
        }
    }
}

impl Algorithm for Minstrel {
    fn chain(&mut self, now: Instant, _: &Ask) -> SeriesList {
        self.look(now);
        let [best, second, surest] = self.best;
        let usual = |i: usize| self.series(i, self.rates[i].tries_now);
        let mut chain = [usual(best), usual(second), usual(surest), usual(0)];
        self.indirect = None;
        if let Some(index) = self.sample() {
            let slower = self.rates[index].frame_us > self.rates[best].frame_us;
            if slower && self.rates[index].skipped < SKIPPED {
                // only if the best one fails; counts as half until it is used
                chain[1] = self.series(index, self.rates[index].tries_now);
                self.indirect = Some(self.rates[index].rate);
                self.deferred += 1;
            } else if self.rates[index].samples_left != Some(0) {
                let left = &mut self.rates[index].samples_left;
                *left = left.map(|n| n - 1);
                self.samples += 1;
                chain[0] = self.series(index, 1);
                chain[1] = self.series(best, 2);
            }
        }
        SeriesList::new(&chain).unwrap_or_else(|| SeriesList::one(self.rates[0].rate, 1))
    }

    fn learn(&mut self, now: Instant, sent: &Sent) {
        let last = sent.last();
        for (i, (series, used)) in sent.chain.as_slice().iter().zip(sent.used).enumerate() {
            let known = &mut self.rates[..self.len];
            let Some(state) = known.iter_mut().find(|s| s.rate == series.rate) else {
                continue;
            };
            state.attempts += u32::from(used);
            if i == last && sent.acked {
                state.successes += 1;
            }
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
