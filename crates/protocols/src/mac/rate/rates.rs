//! The rates that one choice is among.

use frame::rate::{GuardInterval, Width};
use frame::{Phy, Rate};

/// Rates of one kind at most: the legacy ones of 802.11b and g together.
pub const MAX_RATES: usize = 12;
/// MCS with the same number of spatial streams.
const MCS_PER_STREAMS: u8 = 8;

/// The rates to choose from, slowest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    len: u8,
    list: [Rate; MAX_RATES],
}

impl Rates {
    /// All legacy rates of a PHY (DSSS with the long preamble).
    pub fn of(phy: &Phy) -> Rates {
        // in units of 500 kb/s, ascending
        const UNITS: [u8; MAX_RATES] = [2, 4, 11, 12, 18, 22, 24, 36, 48, 72, 96, 108];
        Rates::those(phy, UNITS.into_iter().filter_map(Rate::from_500kbps))
    }

    /// All that are like this one: for an MCS of the PHY the eight with its spatial streams, width and guard interval, for any
    /// other rate the legacy ones.
    pub fn like(phy: &Phy, rate: Rate) -> Rates {
        match rate {
            Rate::Ht(mcs, width, gi) if phy.has(rate) => {
                let slowest = mcs.index() / MCS_PER_STREAMS * MCS_PER_STREAMS;
                let all = slowest..slowest + MCS_PER_STREAMS;
                Rates::those(phy, all.filter_map(|mcs| Rate::ht(mcs, width, gi)))
            }
            _ => Rates::of(phy),
        }
    }

    /// Those of the PHY among `all`, of which there are [`MAX_RATES`] at most.
    fn those(phy: &Phy, all: impl Iterator<Item = Rate>) -> Rates {
        let mut rates = Rates {
            len: 0,
            list: [phy.lowest; MAX_RATES],
        };
        for (place, rate) in rates.list.iter_mut().zip(all.filter(|r| phy.has(*r))) {
            *place = rate;
            rates.len += 1;
        }
        rates
    }

    /// The rates, slowest first; one at least.
    pub fn as_slice(&self) -> &[Rate] {
        &self.list[..usize::from(self.len).max(1)]
    }
}

/// What rates have in common that are [like](Rates::like) each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Legacy,
    /// Spatial streams, width and guard interval.
    Ht(u32, Width, GuardInterval),
}

impl Kind {
    pub(super) fn of(rate: Rate) -> Kind {
        match rate {
            Rate::Ht(mcs, width, gi) => Kind::Ht(mcs.streams(), width, gi),
            Rate::Dsss(..) | Rate::Ofdm(_) => Kind::Legacy,
        }
    }
}
