//! RSIN: the retry chain with the least residual loss that fits before the deadline (Tramarin, Vitturi, Luvisotto: A
//! dynamic rate selection algorithm for IEEE 802.11 industrial WLAN, 2017).
//!
//! From the strength of ACKs follows the error probability of every rate; of all chains of non-increasing rates that
//! fit into the time left, the one whose tries fail all is looked for. There are few of them (6,434 for eight rates and
//! seven tries), and what cannot be better than the best so far is not looked at.

use super::{Algorithm, Ask, MAX_RATES, Rates, Sent};
use frame::{Phy, Rate, RateSet, ppdu_us};
use radio::tx::MAX_SERIES;
use radio::{Duration, Instant, Series, SeriesList};

/// Tries at most.
pub const MAX_TRIES: usize = 7;
/// Weight of a new signal strength in the average, of 8.
const NEW_OF_8: i32 = 1;

/// What a frame without any ACK takes off the average, dB. Not in the paper, whose receivers tell their ratio: without it a
/// link that has become weak would be believed to be as strong as its last ACK.
const LOST_DB: u8 = 1;

/// Probability (0 to 1) that a frame of so many octets (with FCS) at this rate is lost at this ratio of signal to noise
/// in dB.
pub type ErrorProbability = fn(Rate, f64, u32) -> f64;

/// RSIN for one receiver.
#[derive(Clone, Debug)]
pub struct Rsin {
    phy: Phy,
    basic: RateSet,
    aifs_us: u32,
    rates: Rates,
    noise_dbm: i8,
    error: ErrorProbability,
    /// Average strength of ACKs in 1/8 dBm.
    signal: Option<i32>,
    /// Taken off the ratio, dB: ACKs are strong, and the receiver may hear worse than they tell.
    margin_db: u8,
    /// Time for a frame whose request names no end.
    usual: Duration,
}

impl Rsin {
    /// With DIFS before every try, the basic rates of `phy`, and 10 ms for frames that name no end. `noise_dbm` is the
    /// noise of the receivers.
    pub fn new(phy: &Phy, noise_dbm: i8, margin_db: u8, error: ErrorProbability) -> Rsin {
        Rsin {
            phy: *phy,
            basic: phy.basic,
            aifs_us: phy.difs_us(),
            rates: Rates::of(phy),
            noise_dbm,
            error,
            signal: None,
            margin_db,
            usual: Duration::from_ms(10),
        }
    }

    /// Ratio of signal to noise that it reckons with, dB; `None` before the first ACK.
    pub fn ratio_db(&self) -> Option<f64> {
        let signal = f64::from(self.signal?) / 8.0;
        Some(signal - f64::from(self.noise_dbm) - f64::from(self.margin_db))
    }

    /// The chain for a frame of `octets` (with FCS) in `budget_us`, at most `tries`, and the probability that all fail.
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
            search.losses[i] = (self.error)(*rate, ratio_db, octets).clamp(0.0, 1.0);
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
            // of equals the one that takes less air
            if all < self.best_loss || all == self.best_loss && us < self.best_us {
                (self.best, self.best_len) = (self.chain, depth + 1);
                (self.best_loss, self.best_us) = (all, us);
            }
            if all > 0.0 {
                self.from(depth + 1, index, us, all, left_us - cost);
            }
        }
    }
}

impl Algorithm for Rsin {
    fn chain(&mut self, _: Instant, ask: &Ask) -> SeriesList {
        let Some(ratio_db) = self.ratio_db() else {
            // nothing heard yet: what is heard farthest
            return SeriesList::one(self.rates.as_slice()[0], MAX_TRIES as u8);
        };
        let budget = ask.left.unwrap_or(self.usual).as_us().min(u64::from(u32::MAX)) as u32;
        self.solve(ratio_db, ask.octets, usize::from(ask.tries), budget).0
    }

    fn learn(&mut self, _: Instant, sent: &Sent) {
        match (sent.acked, sent.ack_signal_dbm, self.signal) {
            (true, Some(dbm), None) => self.signal = Some(i32::from(dbm) * 8),
            (true, Some(dbm), Some(old)) => {
                self.signal = Some((old * (8 - NEW_OF_8) + i32::from(dbm) * 8 * NEW_OF_8) / 8);
            }
            (false, _, Some(old)) => self.signal = Some(old - i32::from(LOST_DB) * 8),
            _ => {}
        }
    }
}
