//! Retry chains: what the contract asks for, in the rates and tries that the hardware has.

use crate::codec::PhyControl;
use crate::codec::tx::{MAX_RATES, MAX_TRIES, Protection, RateTries};
use frame::{Band, Rate};
use radio::{Refusal, SeriesList};

/// Antennas that transmit: the first.
const CHAINS: u8 = 1;

/// A chain for the hardware.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub rates: [RateTries; MAX_RATES],
    /// Which series each rate belongs to.
    series: [u8; MAX_RATES],
}

/// Whether a rate can be sent on this band. 802.11n is left out: the radio is set up without it.
fn has(rate: Rate, band: Band) -> bool {
    match rate {
        Rate::Dsss(..) => band == Band::Ghz2_4,
        Rate::Ofdm(_) => true,
        Rate::Ht(..) => false,
    }
}

impl Chain {
    /// Without a try.
    pub(super) const fn none() -> Chain {
        let none = RateTries {
            phy: PhyControl(0),
            tries: 0,
            protection: Protection::None,
        };
        Chain {
            rates: [none; MAX_RATES],
            series: [0; MAX_RATES],
        }
    }

    /// Of a request. A series of more than seven tries takes several of the hardware's four. Without an ACK there is
    /// one try.
    pub(super) fn new(
        list: &SeriesList,
        expects_ack: bool,
        protection: Protection,
        half_dbm: u8,
        band: Band,
    ) -> Result<Chain, Refusal> {
        let mut chain = Chain::none();
        let mut used = 0;
        for (index, series) in list.as_slice().iter().enumerate() {
            let phy = PhyControl::new(series.rate, half_dbm, CHAINS).filter(|_| has(series.rate, band));
            let phy = phy.ok_or(Refusal::RateNotSupported)?;
            let mut left = if expects_ack { series.tries } else { 1 };
            while left > 0 && (expects_ack || used == 0) {
                let tries = left.min(MAX_TRIES);
                let place = chain.rates.get_mut(used).ok_or(Refusal::NotSupported)?;
                *place = RateTries {
                    phy,
                    tries,
                    protection,
                };
                chain.series[used] = index as u8;
                left -= tries;
                used += 1;
            }
        }
        Ok(chain)
    }

    /// Attempts on the air, and the series of the last one, from the rate that was reached and the tries at it.
    pub(super) fn attempts(&self, rate: u8, tries: u8) -> (u16, u8) {
        let rate = usize::from(rate).min(MAX_RATES - 1);
        let before: u16 = self.rates[..rate].iter().map(|r| u16::from(r.tries)).sum();
        let here = tries.min(self.rates[rate].tries);
        (before + u16::from(here), self.series[rate])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use radio::Series;
    use std::vec::Vec;

    fn chain(series: &[(&str, u8)]) -> Result<Chain, Refusal> {
        let list: Vec<_> = series
            .iter()
            .map(|(rate, tries)| Series {
                rate: Rate::parse(rate).unwrap(),
                tries: *tries,
            })
            .collect();
        let list = SeriesList::new(&list).unwrap();
        Chain::new(&list, true, Protection::None, 30, Band::Ghz2_4)
    }

    #[test]
    fn long_series_take_several_rates() {
        let tries = |c: &Chain| c.rates.map(|r| r.tries);
        let two = chain(&[("54M", 9), ("6M", 3)]).unwrap();
        assert_eq!((tries(&two), two.series), ([7, 2, 3, 0], [0, 0, 1, 0]));
        assert_eq!(two.attempts(0, 1), (1, 0));
        assert_eq!(two.attempts(1, 2), (9, 0));
        assert_eq!(two.attempts(2, 3), (12, 1));
        assert_eq!(two.attempts(3, 7), (12, 0), "nonsense is bounded");
        assert_eq!(tries(&chain(&[("1M", 28)]).unwrap()), [7; 4]);
        assert_eq!(chain(&[("1M", 29)]).unwrap_err(), Refusal::NotSupported);
        assert_eq!(chain(&[("mcs3/20", 1)]).unwrap_err(), Refusal::RateNotSupported);
    }

    #[test]
    fn without_an_ack_there_is_one_try() {
        let list = SeriesList::one(Rate::OFDM_6, 200);
        let one = Chain::new(&list, false, Protection::None, 30, Band::Ghz5).unwrap();
        assert_eq!(one.rates.map(|r| r.tries), [1, 0, 0, 0]);
        let cck = SeriesList::one(Rate::DSSS_1, 1);
        let refused = Chain::new(&cck, false, Protection::None, 30, Band::Ghz5);
        assert_eq!(refused.unwrap_err(), Refusal::RateNotSupported);
    }
}
