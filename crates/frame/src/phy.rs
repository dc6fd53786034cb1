//! Timing of the PHYs: slot, SIFS and what follows from them.

use crate::airtime::ppdu_us;
use crate::rate::Rate;
use crate::response::{RateSet, response_rate};

/// Frequency band. At 2.4 GHz every OFDM and HT PPDU is followed by 6 us of silence, the signal extension
/// (IEEE 802.11-2016, 18.3.2.4 and 19.3.2), which counts as part of its duration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Band {
    /// 2.4 GHz.
    Ghz2_4,
    /// 5 GHz.
    Ghz5,
}

/// Octets of an ACK or CTS with FCS (IEEE 802.11-2016, 9.3.1.3 and 9.3.1.4).
pub const ACK_OCTETS: u32 = 14;
/// Octets of an RTS with FCS (IEEE 802.11-2016, 9.3.1.2).
pub const RTS_OCTETS: u32 = 20;

/// Timing constants of one PHY in one band. All times in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Phy {
    /// Short name: `a`, `b`, `g`, `g-long`, `n2.4`, `n5`.
    pub name: &'static str,
    /// Band.
    pub band: Band,
    /// aSlotTime.
    pub slot_us: u32,
    /// aSIFSTime.
    pub sifs_us: u32,
    /// aCWmin.
    pub cw_min: u16,
    /// aCWmax.
    pub cw_max: u16,
    /// aPHY-RX-START-Delay as in the 2007 and 2012 texts.
    pub rx_start_us: u32,
    /// ACK timeout that ath9k programs: slot + SIFS at 5 GHz, 64 us on every 2.4 GHz channel.
    pub ath9k_ack_timeout_us: u32,
    /// aCCATime, upper bound: a frame that started less than this ago is not sensed yet.
    pub cca_us: u32,
    /// Time before a transmission from which it cannot be taken back: aRxTxTurnaroundTime and MAC processing.
    pub commit_us: u32,
    /// Slowest rate; EIFS is reckoned with an ACK at this rate.
    pub lowest: Rate,
    /// Basic rates of a usual network with this PHY.
    pub basic: RateSet,
}

impl Phy {
    /// 802.11a (IEEE 802.11-2016, Table 17-21).
    pub const A: Phy = Phy {
        name: "a",
        band: Band::Ghz5,
        slot_us: 9,
        sifs_us: 16,
        cw_min: 15,
        cw_max: 1023,
        rx_start_us: 25,
        ath9k_ack_timeout_us: 25,
        cca_us: 4,
        commit_us: 4,
        lowest: Rate::OFDM_6,
        basic: RateSet::OFDM_MANDATORY,
    };
    /// 802.11b with long preamble (IEEE 802.11-2016, Table 16-4).
    pub const B: Phy = Phy {
        name: "b",
        band: Band::Ghz2_4,
        slot_us: 20,
        sifs_us: 10,
        cw_min: 31,
        cw_max: 1023,
        rx_start_us: 192,
        ath9k_ack_timeout_us: 64,
        cca_us: 15,
        commit_us: 4,
        lowest: Rate::DSSS_1,
        basic: RateSet::DSSS_MANDATORY,
    };
    /// 802.11g with the short slot: no 802.11b station about (IEEE 802.11-2016, Table 18-5).
    pub const G: Phy = Phy {
        name: "g",
        band: Band::Ghz2_4,
        slot_us: 9,
        sifs_us: 10,
        cw_min: 15,
        cw_max: 1023,
        rx_start_us: 24,
        ath9k_ack_timeout_us: 64,
        cca_us: 4,
        commit_us: 4,
        lowest: Rate::OFDM_6,
        basic: RateSet::OFDM_MANDATORY,
    };
    /// 802.11g beside 802.11b stations: the slot is 20 us.
    pub const G_LONG: Phy = Phy {
        name: "g-long",
        slot_us: 20,
        ..Phy::G
    };
    /// 802.11n at 2.4 GHz, short slot.
    pub const N2_4: Phy = Phy {
        name: "n2.4",
        rx_start_us: 33,
        ..Phy::G
    };
    /// 802.11n at 5 GHz.
    pub const N5: Phy = Phy {
        name: "n5",
        rx_start_us: 33,
        ..Phy::A
    };
    /// All of them.
    pub const ALL: [Phy; 6] = [Phy::A, Phy::B, Phy::G, Phy::G_LONG, Phy::N2_4, Phy::N5];

    /// DIFS = SIFS + 2 slots (IEEE 802.11-2016, 10.3.7).
    pub const fn difs_us(&self) -> u32 {
        self.aifs_us(2)
    }

    /// PIFS = SIFS + 1 slot.
    pub const fn pifs_us(&self) -> u32 {
        self.aifs_us(1)
    }

    /// AIFS = SIFS + AIFSN slots (IEEE 802.11-2016, 10.22.2.4).
    pub const fn aifs_us(&self, aifsn: u8) -> u32 {
        self.sifs_us + aifsn as u32 * self.slot_us
    }

    /// EIFS = SIFS + ACK at the lowest basic rate + DIFS (IEEE 802.11-2016, 10.3.7).
    pub const fn eifs_us(&self) -> u32 {
        self.eifs_extra_us() + self.difs_us()
    }

    /// What EIFS adds to DIFS or AIFS: SIFS + ACK at the lowest basic rate.
    pub const fn eifs_extra_us(&self) -> u32 {
        self.sifs_us + ppdu_us(self.lowest, ACK_OCTETS, self.band)
    }

    /// ACKTimeout = SIFS + slot + aPHY-RX-START-Delay, counted from the end of the frame
    /// (IEEE 802.11-2012, 9.3.2.8).
    pub const fn ack_timeout_us(&self) -> u32 {
        self.sifs_us + self.slot_us + self.rx_start_us
    }

    /// Whether this PHY can send at `rate`: DSSS at 2.4 GHz alone, OFDM wherever it is not 802.11b, HT in 802.11n.
    pub fn has(&self, rate: Rate) -> bool {
        match rate {
            Rate::Dsss(..) => matches!(self.name, "b" | "g" | "g-long" | "n2.4"),
            Rate::Ofdm(_) => self.name != "b",
            Rate::Ht(..) => matches!(self.name, "n2.4" | "n5"),
        }
    }

    /// Duration of the ACK that answers a frame sent at `data`.
    pub const fn ack_us(&self, data: Rate, basic: RateSet) -> u32 {
        ppdu_us(response_rate(data, basic), ACK_OCTETS, self.band)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interframe_spaces() {
        assert_eq!(
            [
                Phy::A.difs_us(),
                Phy::B.difs_us(),
                Phy::G.difs_us(),
                Phy::G_LONG.difs_us()
            ],
            [34, 50, 28, 50]
        );
        assert_eq!(
            [Phy::A.pifs_us(), Phy::B.pifs_us(), Phy::G.pifs_us()],
            [25, 30, 19]
        );
        assert_eq!(Phy::A.eifs_us(), 94);
        assert_eq!(Phy::B.eifs_us(), 364);
        assert_eq!([2, 3, 7].map(|n| Phy::A.aifs_us(n)), [34, 43, 79]);
        assert_eq!([2, 3, 7].map(|n| Phy::B.aifs_us(n)), [50, 70, 150]);
    }

    #[test]
    fn ack_timeouts() {
        assert_eq!(Phy::A.ack_timeout_us(), 50);
        assert_eq!(Phy::B.ack_timeout_us(), 222);
        assert_eq!(Phy::A.ath9k_ack_timeout_us, Phy::A.slot_us + Phy::A.sifs_us);
    }

    #[test]
    fn every_phy_has_its_rates_and_no_others() {
        let mcs0 = Rate::ht(0, crate::rate::Width::Mhz20, crate::rate::GuardInterval::Long).unwrap();
        let of = |p: Phy| [Rate::DSSS_1, Rate::OFDM_6, mcs0].map(|r| p.has(r));
        assert_eq!(of(Phy::A), [false, true, false]);
        assert_eq!(of(Phy::B), [true, false, false]);
        assert_eq!(of(Phy::G), [true, true, false]);
        assert_eq!(of(Phy::G_LONG), [true, true, false]);
        assert_eq!(of(Phy::N2_4), [true, true, true]);
        assert_eq!(of(Phy::N5), [false, true, true]);
        assert!(Phy::ALL.iter().all(|p| p.has(p.lowest)));
    }

    /// A station must sense a frame that started one slot ago, or slotted backoff would not work.
    #[test]
    fn sensing_fits_a_slot() {
        for p in Phy::ALL {
            assert!(p.cca_us + p.commit_us < p.slot_us, "{}", p.name);
        }
    }
}
