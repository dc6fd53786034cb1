//! RSIN: the retry chain with the least residual loss that fits before the deadline (Tramarin, Vitturi, Luvisotto: A
//! dynamic rate selection algorithm for IEEE 802.11 industrial WLAN, 2017).
//!
//! From the ratio of signal to noise at the receiver follows the error probability of every rate; of all chains of
//! non-increasing rates that fit into the time left, the one whose tries are least likely to fail all is looked for. There are few of
//! them (6,434 for eight rates and seven tries), and those that cannot fit are not looked at.
//!
//! In the paper receivers tell the ratio. Here it is taken from the best of three [sources](Source) that the host has.

use super::{Algorithm, Ask, MAX_RATES, Rates, Sent};
use frame::{Phy, Rate, RateSet, ppdu_us};
use radio::tx::MAX_SERIES;
use radio::{Duration, Instant, Series, SeriesList};

/// Tries at most.
pub const MAX_TRIES: usize = 7;
/// Weight of a new signal strength in the average, of 8.
const NEW_OF_8: i32 = 1;

/// What a frame without any ACK takes off the estimate, dB. Not in the paper, whose receivers tell their ratio: without it a
/// link that has become weak would be believed to be as strong as its last ACK.
const LOST_DB: u8 = 1;
/// What a frame whose first try was acknowledged adds to an estimate that follows from no ACK, 1/8 dB. Beside [`LOST_DB`] it comes to
/// rest where a first rate fails once for four first tries that arrive.
const ARRIVED_8TH_DB: i32 = 2;
/// A frame is lost with this probability at least, whatever its ratio: the loss by noise of a strong signal is as good as none, and
/// what is lost in collisions does not depend on the rate. So retries that fit are never given up as useless.
const LEAST_LOSS: f64 = 1e-4;
/// A rate works if no more frames than this are lost.
const WORKS: f64 = 0.1;
/// Ratios among which rates begin to work, 1/8 dB: -10 to 50 dB.
const RATIOS_8TH_DB: core::ops::Range<i32> = -80..400;
/// What 40 MHz have more noise than 20 MHz, 1/8 dB.
const WIDE_8TH_DB: i32 = 24;
/// Octets of a frame before any was asked for.
const REFERENCE_OCTETS: u32 = 1_200;

/// Probability (0 to 1) that a frame of so many octets (with FCS) at this rate is lost at this ratio of signal to noise
/// in dB, both in the width of the rate.
pub type ErrorProbability = fn(Rate, f64, u32) -> f64;

/// Where the ratio comes from. Each takes the place of those behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The strength of ACKs, where the adapter tells it.
    Acks,
    /// The strength of what is heard from the receiver: as good, if both send equally strongly and hear the same noise.
    Heard,
    /// Which frames were acknowledged, where nothing tells a strength. It begins where the middle one of all rates works. When all tries at
    /// the first rate of a chain have failed that takes 1 dB off; a first try that arrives adds a quarter, up to one rate beyond
    /// its own. So a rate is found that is needed for a deadline, and not one that is not.
    Outcomes,
}

/// Chains that were chosen, by where the ratio came from.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RsinCounters {
    /// From [`Source::Acks`].
    pub acks: u64,
    /// From [`Source::Heard`].
    pub heard: u64,
    /// From [`Source::Outcomes`].
    pub outcomes: u64,
}

/// RSIN for one receiver.
#[derive(Clone, Debug)]
pub struct Rsin {
    phy: Phy,
    basic: RateSet,
    aifs_us: u32,
    /// Those like the last rate that was asked for; before that the legacy ones.
    rates: Rates,
    noise_dbm: i8,
    error: ErrorProbability,
    /// Strength that it reckons with in 1/8 dBm: an average, less what was lost.
    signal: Option<i32>,
    source: Source,
    /// Average strength of what is heard, in 1/8 dBm.
    heard: Option<i32>,
    /// Of the last frame that was asked for.
    octets: u32,
    counters: RsinCounters,
    /// Taken off the ratio, dB: ACKs are strong, and the receiver may hear worse than they tell.
    margin_db: u8,
    /// Time for a frame whose request names no end.
    usual: Duration,
}

impl Rsin {
    /// With DIFS before every try, the basic rates of `phy`, and 10 ms for frames that name no end. `noise_dbm` is the
    /// noise of the receivers in 20 MHz.
    pub fn new(phy: &Phy, noise_dbm: i8, margin_db: u8, error: ErrorProbability) -> Rsin {
        Rsin {
            phy: *phy,
            basic: phy.basic,
            aifs_us: phy.difs_us(),
            rates: Rates::of(phy),
            noise_dbm,
            error,
            signal: None,
            source: Source::Outcomes,
            heard: None,
            octets: REFERENCE_OCTETS,
            counters: RsinCounters::default(),
            margin_db,
            usual: Duration::from_ms(10),
        }
    }

    /// Ratio of signal to noise that it reckons with, dB, in the width of its rates; `None` before the first frame.
    pub fn ratio_db(&self) -> Option<f64> {
        Some(f64::from(self.signal? - self.offset()) / 8.0)
    }

    /// Where that comes from.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Where it came from so far.
    pub fn counters(&self) -> RsinCounters {
        self.counters
    }

    /// A strength less this is a ratio, 1/8 dB.
    fn offset(&self) -> i32 {
        let wide = self.rates.as_slice()[0].width_mhz() == 40;
        8 * (i32::from(self.noise_dbm) + i32::from(self.margin_db)) + i32::from(wide) * WIDE_8TH_DB
    }

    /// The least strength with which a rate works, 1/8 dBm.
    fn works_from(&self, rate: Rate) -> i32 {
        let (mut below, mut works) = (RATIOS_8TH_DB.start, RATIOS_8TH_DB.end);
        while works - below > 1 {
            let middle = (below + works) / 2;
            if (self.error)(rate, f64::from(middle) / 8.0, self.octets) <= WORKS {
                works = middle;
            } else {
                below = middle;
            }
        }
        works + self.offset()
    }

    /// Reckons with this strength, or with that at which the slowest rate works: below it all rates look alike.
    fn reckon(&mut self, signal: i32) {
        self.signal = Some(signal.max(self.works_from(self.rates.as_slice()[0])));
    }

    /// A strength was told.
    fn note(&mut self, source: Source, dbm: i8) {
        let old = self.signal.filter(|_| self.source == source);
        self.source = source;
        self.reckon(average(old, dbm));
    }

    /// A frame was acknowledged, and nobody tells how strongly.
    fn arrived(&mut self, sent: &Sent) {
        let Some(old) = self.signal else { return };
        let at_once = sent.used[0] == 1;
        let most = match self.source {
            Source::Acks => return,
            Source::Heard => self.heard.unwrap_or(old),
            Source::Outcomes if sent.last() > 0 => return self.lost(),
            Source::Outcomes if !at_once => return,
            Source::Outcomes => {
                let first = sent.chain.as_slice()[0].rate;
                let rates = self.rates.as_slice();
                let place = rates.iter().position(|r| *r == first).unwrap_or(0);
                self.works_from(rates[(place + 1).min(rates.len() - 1)])
            }
        };
        self.reckon(old.max(most.min(old + ARRIVED_8TH_DB)));
    }

    fn lost(&mut self) {
        if let Some(old) = self.signal {
            self.reckon(old - i32::from(LOST_DB) * 8);
        }
    }

    /// The chain for a frame of `octets` (with FCS) in `budget_us`, at most `tries`, and the probability that all fail. Of chains that are
    /// equally good it is that with the least air, so a strong signal has the fastest rate.
    pub fn solve(&self, ratio_db: f64, octets: u32, tries: usize, budget_us: u32) -> (SeriesList, f64) {
        let slowest = self.rates.as_slice()[0];
        let mut search = Search {
            costs: [0; MAX_RATES],
            losses: [1.0; MAX_RATES],
            count: 0,
            backoffs: [0; MAX_TRIES],
            tries: tries.clamp(1, MAX_TRIES),
            chain: [0; MAX_TRIES],
            best: [0; MAX_TRIES],
            best_len: 0,
            best_loss: f64::INFINITY,
            best_us: u32::MAX,
        };
        // fastest first: chains do not get faster
        let fastest_first = self.rates.as_slice().iter().rev();
        let mut list = [slowest; MAX_RATES];
        for (i, rate) in fastest_first.enumerate() {
            list[i] = *rate;
            let answer_us = self.phy.sifs_us + self.phy.ack_us(*rate, self.basic);
            search.costs[i] = self.aifs_us + ppdu_us(*rate, octets, self.phy.band) + answer_us;
            search.losses[i] = (self.error)(*rate, ratio_db, octets).clamp(LEAST_LOSS, 1.0);
            search.count = i + 1;
        }
        let mut cw = u32::from(self.phy.cw_min);
        for backoff in &mut search.backoffs {
            *backoff = cw * self.phy.slot_us / 2;
            cw = (cw * 2 + 1).min(u32::from(self.phy.cw_max));
        }
        search.from(0, 0, 0, 1.0, budget_us);
        if search.best_len == 0 {
            // nothing fits: one try at the fastest
            return (SeriesList::one(list[0], 1), search.losses[0]);
        }
        let mut series = [Series {
            rate: slowest,
            tries: 0,
        }; MAX_SERIES];
        let mut n = 0;
        for (k, index) in search.best[..search.best_len].iter().enumerate() {
            n += usize::from(k > 0 && search.best[k - 1] != *index);
            series[n].rate = list[usize::from(*index)];
            series[n].tries += 1;
        }
        let chain = SeriesList::new(&series[..=n]).unwrap_or_else(|| SeriesList::one(slowest, 1));
        (chain, search.best_loss)
    }
}

/// The search, depth first.
struct Search {
    /// One try without backoff, us, by rate.
    costs: [u32; MAX_RATES],
    losses: [f64; MAX_RATES],
    count: usize,
    /// Mean backoff before each try, us.
    backoffs: [u32; MAX_TRIES],
    tries: usize,
    chain: [u8; MAX_TRIES],
    best: [u8; MAX_TRIES],
    best_len: usize,
    best_loss: f64,
    best_us: u32,
}

impl Search {
    /// Adds try number `depth`, at rate `rate` or slower, after a chain that fails with `loss` and leaves `left_us`.
    fn from(&mut self, depth: usize, rate: usize, used_us: u32, loss: f64, left_us: u32) {
        if depth == self.tries {
            return;
        }
        let groups = (1..depth).filter(|k| self.chain[*k] != self.chain[k - 1]).count() + 1;
        for index in rate..self.count {
            let another = depth > 0 && usize::from(self.chain[depth - 1]) != index;
            if another && groups == MAX_SERIES {
                break;
            }
            let cost = self.costs[index] + self.backoffs[depth];
            if cost > left_us {
                continue;
            }
            self.chain[depth] = index as u8;
            let (all, us) = (loss * self.losses[index], used_us + cost);
            // of equals the one that takes less air; where nothing is to be hoped for, all tries at the slowest that there is time for:
            // the link may be better than the margin has it
            let hopeless = all == 1.0 && self.chain[..depth].iter().all(|i| usize::from(*i) == index);
            if all < self.best_loss || all == self.best_loss && (us < self.best_us || hopeless) {
                (self.best, self.best_len) = (self.chain, depth + 1);
                (self.best_loss, self.best_us) = (all, us);
            }
            self.from(depth + 1, index, us, all, left_us - cost);
        }
    }
}

impl Algorithm for Rsin {
    fn chain(&mut self, _: Instant, ask: &Ask) -> SeriesList {
        self.octets = ask.octets;
        self.rates = Rates::like(&self.phy, ask.rate);
        if self.signal.is_none() {
            let rates = self.rates.as_slice();
            self.reckon(self.works_from(rates[rates.len() / 2]));
        }
        let ratio_db = self.ratio_db().unwrap_or_default();
        *match self.source {
            Source::Acks => &mut self.counters.acks,
            Source::Heard => &mut self.counters.heard,
            Source::Outcomes => &mut self.counters.outcomes,
        } += 1;
        let budget = ask.left.unwrap_or(self.usual).as_us().min(u64::from(u32::MAX)) as u32;
        self.solve(ratio_db, ask.octets, usize::from(ask.tries), budget).0
    }

    fn learn(&mut self, _: Instant, sent: &Sent) {
        match (sent.acked, sent.ack_signal_dbm) {
            (true, Some(dbm)) => self.note(Source::Acks, dbm),
            (true, None) => self.arrived(sent),
            (false, _) => self.lost(),
        }
    }

    fn hear(&mut self, _: Instant, signal_dbm: i8) {
        if self.source != Source::Acks {
            self.heard = Some(average(self.heard, signal_dbm));
            self.note(Source::Heard, signal_dbm);
        }
    }
}

/// The average with one more strength, 1/8 dBm.
fn average(old: Option<i32>, dbm: i8) -> i32 {
    let new = i32::from(dbm) * 8;
    old.map_or(new, |old| (old * (8 - NEW_OF_8) + new * NEW_OF_8) / 8)
}
