//! How long before a TBTT a station wakes up, adapted to its host: an idea of Contiki80211 (Glaropoulos et al. 2014, II.A),
//! with numbers of ours.
//!
//! Waking up is a request to the adapter, and it is done in time if its answer is there by the TBTT. After [`ROUND`] times
//! the share of those in time decides: with less than 99 % it wakes up one TU earlier from then on, and after
//! [`CLEAN_ROUNDS`] rounds in a row without a late one it wakes up one TU later. Intervals in which it had not dozed say
//! nothing.

use super::config::IbssConfig;
use radio::{Duration, Token};

/// Times that are judged together.
const ROUND: u8 = 64;
/// Of 100 times, those that have to be in time.
const IN_TIME_PERCENT: u16 = 99;
/// Rounds in a row without a late one, until it wakes up later.
const CLEAN_ROUNDS: u8 = 4;
/// Shortest and longest time before a TBTT, TU.
const SHORTEST_TU: u8 = 2;
/// See [`SHORTEST_TU`].
const LONGEST_TU: u8 = 16;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    /// How long before, TU; `None`: as the config has it.
    tu: Option<u8>,
    /// Times in this round, those of them that were late, and rounds without a late one.
    times: u8,
    late: u8,
    clean: u8,
    /// The adapter is being woken.
    waking: Option<Token>,
}

impl Ahead {
    pub(super) fn new(config: &IbssConfig) -> Ahead {
        let tu = config.wake_ahead.as_ns().div_ceil(Duration::from_tu(1).as_ns());
        let tu = tu.clamp(SHORTEST_TU.into(), LONGEST_TU.into()) as u8;
        Ahead {
            tu: config.adapt_wake_ahead.then_some(tu),
            times: 0,
            late: 0,
            clean: 0,
            waking: None,
        }
    }

    /// How long before a TBTT it wakes up.
    pub(super) fn time(&self, config: &IbssConfig) -> Duration {
        self.tu
            .map_or(config.wake_ahead, |tu| Duration::from_tu(tu.into()))
    }

    /// The adapter is being woken for a TBTT, by this request.
    pub(super) fn wakes(&mut self, token: Token) {
        self.waking = Some(token);
    }

    /// A request was answered: true if it was that one.
    pub(super) fn is_awake(&mut self, token: Token) -> bool {
        self.waking.take_if(|t| *t == token).is_some()
    }

    /// It is the TBTT: true if the adapter is still being woken.
    pub(super) fn is_late(&mut self) -> bool {
        self.waking.take().is_some()
    }

    /// It was woken, in time or not.
    pub(super) fn note(&mut self, late: bool) {
        let Some(tu) = &mut self.tu else {
            return;
        };
        self.times += 1;
        self.late += u8::from(late);
        if self.times < ROUND {
            return;
        }
        let in_time = u16::from(self.times - self.late) * 100;
        self.clean = if self.late == 0 { self.clean + 1 } else { 0 };
        if in_time < IN_TIME_PERCENT * u16::from(self.times) {
            *tu = (*tu + 1).min(LONGEST_TU);
        } else if self.clean == CLEAN_ROUNDS {
            *tu = (*tu - 1).max(SHORTEST_TU);
            self.clean = 0;
        }
        (self.times, self.late) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::{MacAddr, Rate};
    use proptest::prelude::*;

    fn ahead(wake_ahead: Duration, adapt_wake_ahead: bool) -> (IbssConfig, Ahead) {
        let config = IbssConfig {
            wake_ahead,
            adapt_wake_ahead,
            ..IbssConfig::new(MacAddr::local(1), "robots", Rate::OFDM_24)
        };
        (config, Ahead::new(&config))
    }

    fn round(ahead: &mut Ahead, late: u8) {
        (0..64).for_each(|n| ahead.note(n < late));
    }

    #[test]
    fn a_late_one_in_64_is_too_many() {
        let tu = Duration::from_tu;
        let (config, mut a) = ahead(tu(3), true);
        round(&mut a, 1);
        assert_eq!(a.time(&config), tu(4));
        (0..3).for_each(|_| round(&mut a, 0));
        assert_eq!(a.time(&config), tu(4), "three rounds are not enough");
        round(&mut a, 0);
        assert_eq!(a.time(&config), tu(3));
        // a late one in between: four more
        (0..3).for_each(|_| round(&mut a, 0));
        round(&mut a, 64);
        (0..3).for_each(|_| round(&mut a, 0));
        assert_eq!(a.time(&config), tu(4));
    }

    #[test]
    fn it_begins_with_the_config_and_leaves_it_where_it_is_not_wanted() {
        let (config, mut a) = ahead(Duration::from_us(1_500), false);
        (0..20).for_each(|_| round(&mut a, 64));
        assert_eq!(a.time(&config), Duration::from_us(1_500));
        for (from_us, tu) in [(0, 2), (2_048, 2), (2_049, 3), (1_000_000, 16)] {
            let (config, a) = ahead(Duration::from_us(from_us), true);
            assert_eq!(a.time(&config), Duration::from_tu(tu));
        }
    }

    proptest! {
        /// Whatever happens, it stays between 2 and 16 TU, and goes one at a time.
        #[test]
        fn within_its_limits(lates in proptest::collection::vec(0_u8..3, 0..200)) {
            let (config, mut a) = ahead(Duration::from_tu(4), true);
            let mut before = a.time(&config).as_us() / 1_024;
            for late in lates {
                round(&mut a, late);
                let tu = a.time(&config).as_us() / 1_024;
                prop_assert!((2..=16).contains(&tu) && tu.abs_diff(before) <= 1);
                prop_assert!(late == 0 || tu == (before + 1).min(16));
                before = tu;
            }
        }
    }
}
