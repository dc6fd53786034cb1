//! What a frame costs at each rate, with all that belongs to it, and what a rate carries by that.

use super::minstrel::{MAX_TRIES, ONE, REFERENCE_OCTETS};
use frame::{Phy, Rate, ppdu_us};

/// All tries of one rate should take no longer than this, us.
const SEGMENT_US: u32 = 6_000;
/// Of 16 parts of the average length the old value keeps 15.
const LENGTH_PARTS: u32 = 16;

/// What frames cost at present.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    phy: Phy,
    /// Average length of the frames that were asked for, octets times [`LENGTH_PARTS`].
    length: u32,
}

impl Costs {
    pub(super) fn new(phy: &Phy) -> Costs {
        Costs {
            phy: *phy,
            length: REFERENCE_OCTETS * LENGTH_PARTS,
        }
    }

    pub(super) fn phy(&self) -> &Phy {
        &self.phy
    }

    pub(super) fn note(&mut self, octets: u32) {
        self.length = self.length - self.length / LENGTH_PARTS + octets.min(u32::from(u16::MAX));
    }

    /// One try without its backoff, us: DIFS, frame, SIFS, ACK (or the time in which it does not come).
    fn try_us(&self, rate: Rate) -> u32 {
        let phy = &self.phy;
        let octets = self.length / LENGTH_PARTS;
        phy.difs_us() + ppdu_us(rate, octets, phy.band) + phy.sifs_us + phy.ack_us(rate, phy.basic)
    }

    /// Mean backoff before each try, us.
    fn backoff_us(&self) -> impl Iterator<Item = u32> {
        let (most, slot_us) = (u32::from(self.phy.cw_max), self.phy.slot_us);
        let windows = core::iter::successors(Some(u32::from(self.phy.cw_min)), move |cw| {
            Some((cw * 2 + 1).min(most))
        });
        windows.map(move |cw| slot_us * cw / 2)
    }

    /// Tries that fit into a segment.
    pub(super) fn tries(&self, rate: Rate) -> u8 {
        let mut total_us = 0;
        let ends = self.backoff_us().map(|backoff_us| {
            total_us += self.try_us(rate) + backoff_us;
            total_us
        });
        let fit = ends.take(usize::from(MAX_TRIES)).take_while(|t| *t < SEGMENT_US);
        (fit.count() as u8).max(1)
    }

    /// Frames per second times 2^16 when each is tried up to [`MAX_TRIES`] times, and each try arrives with `probability`.
    pub(super) fn throughput(&self, rate: Rate, probability: u32) -> u64 {
        if probability < ONE / 10 {
            return 0;
        }
        let try_us = u64::from(self.try_us(rate));
        // the share of frames that come to a try, and the time of all, both times 2^16
        let (mut open, mut time) = (u64::from(ONE), 0);
        for backoff_us in self.backoff_us().take(usize::from(MAX_TRIES)) {
            time += open * (try_us + u64::from(backoff_us));
            open = open * u64::from(ONE - probability) / u64::from(ONE);
        }
        (u64::from(ONE) - open) * 1_000_000 * u64::from(ONE) / time.max(1)
    }
}
