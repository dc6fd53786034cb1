//! How long slots and rounds are.
//!
//! ```text
//! | slot 0 | slot 1 | ... | slot S-1 | hear | slot 0 | ... | slot P-1 | hear |
//! |<------ contention-free period ------->|<-------- contention period ------->|
//! ```
//!
//! Between cells there may be six slots more before the first "hear", one for each border ([`Rounds::with_borders`]), each
//! with time to change the channel before and after it.
//!
//! A slot is `T_DATA + EIFS + guard`: the adapters still sense the carrier, and who could not decode a frame waits for EIFS in place of
//! DIFS (IEEE 802.11-2016, 10.3.2.3.7). After each period there is time for the
//! last frame to be heard by the protocol and for the next one to be released.

use super::cell::BORDERS;
use super::message::{BETWEEN_OCTETS, report_octets};
use super::table::MAX_REQUESTS;
use super::way::PARTS;
use crate::mac::tdma::schedule::Release;
use frame::{Phy, Rate, ppdu_us};
use radio::Duration;

/// Octets of the header of QoS data, LLC/SNAP and FCS around a message.
const AROUND: usize = crate::mac::data::QOS_OVERHEAD_OCTETS;

/// What rounds are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundCosts {
    /// PHY timing.
    pub phy: Phy,
    /// Whether slots have room for EIFS. With DIFS only, a frame that somebody could not decode makes that host late for the next slot.
    pub eifs: bool,
    /// Rate of all frames; should be a basic rate.
    pub rate: Rate,
    /// Octets of the longest MPDU, FCS included: a slot has room for it.
    pub octets: u16,
    /// Slots of a contention period.
    pub asks: u8,
    /// The release path: from waking up for a slot to the first bit on the air.
    pub release: Release,
    /// How far the clocks of two hosts may be apart, as a quantile.
    pub sync_error: Duration,
    /// How long a frame takes from its end on the air to the protocol, as a quantile.
    pub heard: Duration,
}

/// The times of a round, the same in all hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounds {
    phy: Phy,
    eifs: bool,
    rate: Rate,
    octets: u16,
    slots: u8,
    asks: u8,
    guard: Duration,
    slot: Duration,
    lead: Duration,
    hear: Duration,
    /// Change of channel, if there are slots between cells.
    retune: Option<Duration>,
}

/// Why there are no such rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoundsError {
    /// A contention period has 1 to 8 slots.
    Asks,
    /// A frame must have room for what hosts tell each other.
    TooShort {
        /// Octets of the shortest MPDU.
        least: u16,
    },
}

impl core::fmt::Display for RoundsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RoundsError::Asks => write!(f, "a contention period has 1 to {MAX_REQUESTS} slots"),
            RoundsError::TooShort { least } => {
                write!(f, "a slot must have room for an MPDU of {least} octets")
            }
        }
    }
}

/// Octets of the MPDU, FCS included, in which a frame of `inner` octets travels, if there are `asks` slots to ask in.
pub const fn mpdu_octets(inner: usize, asks: u8) -> usize {
    AROUND + report_octets(asks as usize) + inner
}

fn slot((phy, eifs): (Phy, bool), rate: Rate, octets: u16, guard: Duration) -> Duration {
    let space = if eifs { phy.eifs_us() } else { phy.difs_us() };
    let data = ppdu_us(rate, octets.into(), phy.band) + space;
    guard + Duration::from_us(data.into())
}

impl Rounds {
    /// Rounds with `slots` slots in the contention-free period.
    ///
    /// # Errors
    /// [`RoundsError`].
    pub fn new(costs: &RoundCosts, slots: u8) -> Result<Rounds, RoundsError> {
        let RoundCosts {
            phy,
            eifs,
            rate,
            octets,
            asks,
            release,
            sync_error,
            heard,
        } = *costs;
        if !(1..=MAX_REQUESTS as u8).contains(&asks) {
            return Err(RoundsError::Asks);
        }
        let least = mpdu_octets(0, asks) as u16;
        if octets < least {
            return Err(RoundsError::TooShort { least });
        }
        let guard = release.jitter() + sync_error;
        Ok(Rounds {
            phy,
            eifs,
            rate,
            octets,
            slots,
            asks,
            guard,
            slot: slot((phy, eifs), rate, octets, guard),
            lead: release.min,
            hear: heard + release.min,
            retune: None,
        })
    }

    /// The same with slots between cells; changing the channel takes `retune`, as a quantile. Reports are longer by
    /// [`BETWEEN_OCTETS`], and so are all slots: there is as much room in them.
    pub fn with_borders(self, retune: Duration) -> Rounds {
        let more = match self.retune {
            Some(_) => 0,
            None => BETWEEN_OCTETS as u16,
        };
        let octets = self.octets.saturating_add(more);
        Rounds {
            octets,
            slot: slot((self.phy, self.eifs), self.rate, octets, self.guard),
            retune: Some(retune),
            ..self
        }
    }

    /// What a change of channel takes, if there are slots between cells.
    pub const fn retune(&self) -> Option<Duration> {
        self.retune
    }

    /// When slot `index` between cells begins: with the change of channel; that of [`BORDERS`] is the end of the last one.
    pub fn border(&self, index: u8) -> Duration {
        let length = self.retune.map(|t| self.slot + t.times(2));
        self.start(self.slots) + length.unwrap_or_default().times(index.into())
    }

    /// Rate of all frames.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Octets of a request from above that still fit behind a report.
    pub fn room(&self) -> usize {
        let between = if self.retune.is_some() { BETWEEN_OCTETS } else { 0 };
        usize::from(self.octets) - mpdu_octets(between, self.asks)
    }

    /// Slots of a contention-free period.
    pub const fn slots(&self) -> u8 {
        self.slots
    }

    /// Slots of a contention period.
    pub const fn asks(&self) -> u8 {
        self.asks
    }

    /// Length of a slot.
    pub const fn slot(&self) -> Duration {
        self.slot
    }

    /// How late a frame may be on the air.
    pub const fn guard(&self) -> Duration {
        self.guard
    }

    /// From waking up to the slot.
    pub const fn lead(&self) -> Duration {
        self.lead
    }

    /// When slot `index` of the contention-free period begins, from the start of the round.
    pub const fn start(&self, index: u8) -> Duration {
        self.slot.times(index as u64)
    }

    /// What part of a round `time` is, in [`PARTS`], rounded down.
    pub fn parts(&self, time: Duration) -> u64 {
        let parts = u128::from(time.as_ns()) * u128::from(PARTS) / u128::from(self.length().as_ns());
        parts.try_into().unwrap_or(u64::MAX)
    }

    /// When slot `index` of the contention period begins; of index 0, when all of the contention-free period was heard.
    pub fn ask(&self, index: u8) -> Duration {
        self.border(BORDERS) + self.slot.times(index.into()) + self.hear
    }

    /// Length of a round: how long the owner of a slot waits at most.
    pub fn length(&self) -> Duration {
        self.ask(self.asks) + self.hear
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(octets: u16, asks: u8) -> Result<Rounds, RoundsError> {
        rounds_with(false, octets, asks)
    }

    fn rounds_with(eifs: bool, octets: u16, asks: u8) -> Result<Rounds, RoundsError> {
        let costs = RoundCosts {
            phy: Phy::B,
            eifs,
            rate: Rate::DSSS_2,
            octets,
            asks,
            release: Release {
                min: Duration::ZERO,
                high: Duration::from_us(80),
            },
            sync_error: Duration::ZERO,
            heard: Duration::ZERO,
        };
        Rounds::new(&costs, 16)
    }

    /// 802.11b at 2 Mb/s with long preambles, DIFS 50 us, 80 us of jitter: 102 octets take 600 us.
    #[test]
    fn golden_lengths() {
        let r = rounds(102, 4).unwrap();
        assert_eq!(r.slot(), Duration::from_us(730));
        assert_eq!(r.length(), Duration::from_us(14_600));
        assert_eq!(
            (r.start(3), r.ask(1)),
            (Duration::from_us(2_190), Duration::from_us(17 * 730))
        );
        assert_eq!(r.room(), 102 - 38 - 16 - 28);
        assert_eq!(mpdu_octets(r.room(), 4), 102);
    }

    /// SIFS and an ACK at 1 Mb/s, 10 and 304 us, are what EIFS is longer than DIFS.
    #[test]
    fn eifs_makes_all_slots_longer() {
        let [short, long] = [false, true].map(|eifs| rounds_with(eifs, 102, 4).unwrap());
        assert_eq!(long.slot(), short.slot() + Duration::from_us(314));
        assert_eq!(long.length(), short.length() + Duration::from_us(20 * 314));
        let [short, long] = [short, long].map(|r| r.with_borders(Duration::ZERO));
        assert_eq!(long.slot(), short.slot() + Duration::from_us(314));
    }

    /// 14 octets more take 56 us, and the room stays the same.
    #[test]
    fn slots_between_cells_come_before_those_to_ask_in() {
        let r = rounds(102, 4).unwrap().with_borders(Duration::from_us(200));
        assert_eq!(r.slot(), Duration::from_us(786));
        assert_eq!(r.room(), rounds(102, 4).unwrap().room());
        assert_eq!(r.border(0), Duration::from_us(16 * 786));
        assert_eq!(r.border(2), Duration::from_us(16 * 786 + 2 * 1_186));
        assert_eq!(r.ask(0), Duration::from_us(16 * 786 + 6 * 1_186));
        assert_eq!(r.length(), Duration::from_us(20 * 786 + 6 * 1_186));
        let half = Duration::from_ns(r.length().as_ns() / 2);
        assert_eq!((r.parts(half), r.parts(r.length())), (128, 256));
        let again = r.with_borders(Duration::from_us(100));
        assert_eq!((again.slot(), again.room()), (r.slot(), r.room()));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert_eq!(rounds(81, 4), Err(RoundsError::TooShort { least: 82 }));
        assert_eq!(rounds(500, 9), Err(RoundsError::Asks));
        assert_eq!(rounds(500, 0), Err(RoundsError::Asks));
    }
}
