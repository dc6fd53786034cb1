//! Rates as the hardware names them: in the PHY control word of a frame to be sent, and in the PLCP header of a
//! received one.

use frame::Rate;
use frame::rate::{DsssRate, GuardInterval, OfdmRate, Preamble, Width};

/// Code of each OFDM rate, slowest first: that of the SIGNAL field (IEEE 802.11-2016, Table 17-6), bit order turned
/// round.
const OFDM: [u8; 8] = [0xb, 0xf, 0xa, 0xe, 0x9, 0xd, 0x8, 0xc];
/// SIGNAL field of each DSSS rate, slowest first (IEEE 802.11-2016, 16.2.3.4): units of 100 kb/s.
const DSSS: [u8; 4] = [0x0a, 0x14, 0x37, 0x6e];
/// The highest MCS of the two chains.
const MAX_MCS: u8 = 15;

/// Kind of modulation, as two bits say it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Modulation {
    /// DSSS and CCK.
    Cck,
    /// OFDM of 802.11a and g.
    Ofdm,
    /// 802.11n.
    Ht,
    /// Duplicated OFDM on 40 MHz.
    DuplicateOfdm,
}

impl Modulation {
    /// From the two lowest bits.
    pub const fn from_bits(bits: u8) -> Modulation {
        match bits & 3 {
            0 => Modulation::Cck,
            1 => Modulation::Ofdm,
            2 => Modulation::Ht,
            _ => Modulation::DuplicateOfdm,
        }
    }
}

/// The word that says how the PHY sends a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PhyControl(pub u32);

impl PhyControl {
    /// For a rate, with a power in half dBm (0 to 63), from the chains of `mask` (1 or 5). `None` for a rate that the
    /// hardware does not have.
    pub fn new(rate: Rate, half_dbm: u8, chains: u8) -> Option<PhyControl> {
        let (modulation, code, flags) = match rate {
            Rate::Dsss(r, preamble) => {
                let short = u32::from(preamble == Preamble::Short) << 2;
                (0, r as u8, short)
            }
            Rate::Ofdm(r) => (1, OFDM[r as usize], 0),
            Rate::Ht(mcs, width, guard) if mcs.index() <= MAX_MCS => {
                let wide = match width {
                    Width::Mhz20 => 0,
                    Width::Mhz40 => 2 << 3,
                };
                let short = u32::from(guard == GuardInterval::Short) << 31;
                (2, mcs.index(), wide | short)
            }
            Rate::Ht(..) => return None,
        };
        let power = u32::from(half_dbm & 0x3f) << 9;
        let chains = u32::from(chains & 7) << 15;
        Some(PhyControl(
            modulation | flags | power | chains | u32::from(code) << 18,
        ))
    }

    /// The rate; `None` if there is no such one.
    pub fn rate(self) -> Option<Rate> {
        let code = (self.0 >> 18 & 0x7f) as u8;
        match Modulation::from_bits(self.0 as u8) {
            Modulation::Cck => {
                let rate = *DsssRate::ALL.get(usize::from(code))?;
                Some(dsss(rate, self.0 & 1 << 2 != 0))
            }
            Modulation::Ofdm => ofdm(code),
            Modulation::Ht => {
                let wide = self.0 >> 3 & 3 != 0;
                ht(code, wide, self.0 >> 31 != 0)
            }
            Modulation::DuplicateOfdm => None,
        }
    }

    /// Power in half dBm.
    pub const fn half_dbm(self) -> u8 {
        (self.0 >> 9 & 0x3f) as u8
    }
}

fn dsss(rate: DsssRate, short: bool) -> Rate {
    match (rate, short) {
        (DsssRate::R1, _) => Rate::DSSS_1,
        (rate, true) => Rate::Dsss(rate, Preamble::Short),
        (rate, false) => Rate::Dsss(rate, Preamble::Long),
    }
}

fn ofdm(code: u8) -> Option<Rate> {
    let index = OFDM.iter().position(|c| *c == code)?;
    Some(Rate::Ofdm(OfdmRate::ALL[index]))
}

fn ht(mcs: u8, wide: bool, short: bool) -> Option<Rate> {
    let width = if wide { Width::Mhz40 } else { Width::Mhz20 };
    let guard = if short {
        GuardInterval::Short
    } else {
        GuardInterval::Long
    };
    (mcs <= MAX_MCS).then(|| Rate::ht(mcs, width, guard))?
}

/// The rate in the PLCP header of a received frame; `None` if there is no such one.
pub fn from_plcp(plcp: &[u8; 12], modulation: Modulation, short_preamble: bool) -> Option<Rate> {
    match modulation {
        Modulation::Cck => {
            let index = DSSS.iter().position(|s| *s == plcp[0])?;
            Some(dsss(DsssRate::ALL[index], short_preamble))
        }
        Modulation::Ofdm => ofdm(plcp[0] & 0xf),
        Modulation::Ht => ht(plcp[3] & 0x7f, plcp[3] & 0x80 != 0, plcp[6] & 0x80 != 0),
        Modulation::DuplicateOfdm => None,
    }
}

/// The PLCP header of a frame of `octets` with FCS, its modulation, and whether its preamble is short.
pub fn to_plcp(rate: Rate, octets: u16) -> ([u8; 12], Modulation, bool) {
    let mut plcp = [0; 12];
    let length = octets.to_le_bytes();
    match rate {
        Rate::Dsss(r, preamble) => {
            plcp[0] = DSSS[r as usize];
            plcp[2..4].copy_from_slice(&length);
            (plcp, Modulation::Cck, preamble == Preamble::Short)
        }
        Rate::Ofdm(r) => {
            plcp[0] = OFDM[r as usize];
            plcp[1..3].copy_from_slice(&length);
            (plcp, Modulation::Ofdm, false)
        }
        Rate::Ht(mcs, width, guard) => {
            plcp[3] = mcs.index() & 0x7f | u8::from(width == Width::Mhz40) << 7;
            plcp[6] = u8::from(guard == GuardInterval::Short) << 7;
            (plcp, Modulation::Ht, false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Words that Linux's driver was seen to send: 1 Mb/s on two chains, 36 Mb/s on one, at 18 dBm.
    #[test]
    fn golden_words() {
        assert_eq!(
            PhyControl::new(Rate::DSSS_1, 36, 5),
            Some(PhyControl(0x0002_c800))
        );
        let ofdm_36 = Rate::parse("36M").unwrap();
        assert_eq!(PhyControl::new(ofdm_36, 36, 1), Some(PhyControl(0x0034_c801)));
        assert_eq!(PhyControl(0x0034_c801).half_dbm(), 36);
    }

    fn rates() -> Vec<Rate> {
        let legacy = (0..=255).filter_map(Rate::from_500kbps);
        let short = DsssRate::ALL[1..].iter().map(|r| Rate::Dsss(*r, Preamble::Short));
        let ht = (0..=15).flat_map(|m| {
            [("20", ""), ("20", "s"), ("40", ""), ("40", "s")]
                .map(|(w, g)| Rate::parse(&std::format!("mcs{m}/{w}{g}")).unwrap())
        });
        legacy.chain(short).chain(ht).collect()
    }

    #[test]
    fn rates_there_and_back() {
        assert_eq!(rates().len(), 12 + 3 + 64);
        for rate in rates() {
            assert_eq!(PhyControl::new(rate, 20, 1).unwrap().rate(), Some(rate), "{rate}");
            let (plcp, modulation, short) = to_plcp(rate, 100);
            assert_eq!(from_plcp(&plcp, modulation, short), Some(rate), "{rate}");
        }
        assert_eq!(PhyControl::new(Rate::parse("mcs16/20").unwrap(), 0, 1), None);
    }

    #[test]
    fn words_that_name_no_rate() {
        for word in (0..=u32::MAX).step_by(65_521) {
            if let Some(rate) = PhyControl(word).rate() {
                assert!(PhyControl::new(rate, 0, 0).is_some(), "{word:x}");
            }
        }
        assert_eq!(PhyControl(3).rate(), None);
    }
}
