//! Transmission rates of 802.11a/b/g/n.
//!
//! A [`Rate`] names everything that fixes the duration of a PPDU besides its length and band: modulation,
//! coding, streams, channel width, guard interval, and the preamble for DSSS.

use core::fmt;

/// Preamble of a DSSS or HR-DSSS PPDU (IEEE 802.11-2016, 16.2.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Preamble {
    /// 144 + 48 bits at 1 Mb/s: 192 us. The only one at 1 Mb/s.
    Long,
    /// 72 bits at 1 Mb/s and 48 at 2 Mb/s: 96 us.
    Short,
}

/// DSSS and HR-DSSS rates (IEEE 802.11-2016, clauses 15 and 16).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum DsssRate {
    /// DBPSK, 1 Mb/s.
    R1,
    /// DQPSK, 2 Mb/s.
    R2,
    /// CCK, 5.5 Mb/s.
    R5_5,
    /// CCK, 11 Mb/s.
    R11,
}

impl DsssRate {
    /// All, slowest first.
    pub const ALL: [DsssRate; 4] = [DsssRate::R1, DsssRate::R2, DsssRate::R5_5, DsssRate::R11];

    /// In units of 100 kb/s: 10, 20, 55, 110.
    pub const fn kbps100(self) -> u32 {
        match self {
            DsssRate::R1 => 10,
            DsssRate::R2 => 20,
            DsssRate::R5_5 => 55,
            DsssRate::R11 => 110,
        }
    }
}

/// OFDM rates on 20 MHz (IEEE 802.11-2016, Table 17-4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum OfdmRate {
    /// BPSK 1/2, 6 Mb/s.
    R6,
    /// BPSK 3/4, 9 Mb/s.
    R9,
    /// QPSK 1/2, 12 Mb/s.
    R12,
    /// QPSK 3/4, 18 Mb/s.
    R18,
    /// 16-QAM 1/2, 24 Mb/s.
    R24,
    /// 16-QAM 3/4, 36 Mb/s.
    R36,
    /// 64-QAM 2/3, 48 Mb/s.
    R48,
    /// 64-QAM 3/4, 54 Mb/s.
    R54,
}

impl OfdmRate {
    /// All, slowest first.
    pub const ALL: [OfdmRate; 8] = [
        OfdmRate::R6,
        OfdmRate::R9,
        OfdmRate::R12,
        OfdmRate::R18,
        OfdmRate::R24,
        OfdmRate::R36,
        OfdmRate::R48,
        OfdmRate::R54,
    ];

    /// Rate in Mb/s.
    pub const fn mbps(self) -> u32 {
        match self {
            OfdmRate::R6 => 6,
            OfdmRate::R9 => 9,
            OfdmRate::R12 => 12,
            OfdmRate::R18 => 18,
            OfdmRate::R24 => 24,
            OfdmRate::R36 => 36,
            OfdmRate::R48 => 48,
            OfdmRate::R54 => 54,
        }
    }

    /// Data bits per OFDM symbol of 4 us, N_DBPS (IEEE 802.11-2016, Table 17-4).
    pub const fn data_bits_per_symbol(self) -> u32 {
        self.mbps() * 4
    }
}

/// Channel width of an HT PPDU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Width {
    /// 20 MHz.
    Mhz20,
    /// 40 MHz.
    Mhz40,
}

/// Guard interval of an HT PPDU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum GuardInterval {
    /// 800 ns: symbols of 4 us.
    Long,
    /// 400 ns: symbols of 3.6 us.
    Short,
}

/// An HT modulation and coding scheme with equal modulation on all streams: 0 to 31.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mcs(u8);

impl Mcs {
    /// `None` above 31 (MCS 32 and unequal modulations are not used here).
    pub const fn new(index: u8) -> Option<Mcs> {
        if index <= 31 { Some(Mcs(index)) } else { None }
    }

    /// 0 to 31.
    pub const fn index(self) -> u8 {
        self.0
    }

    /// Number of spatial streams, 1 to 4.
    pub const fn streams(self) -> u32 {
        (self.0 / 8) as u32 + 1
    }

    /// Data bits per symbol, N_DBPS (IEEE 802.11-2016, Tables 19-27 to 19-37).
    pub const fn data_bits_per_symbol(self, width: Width) -> u32 {
        let one = match self.0 % 8 {
            0 => 26,
            1 => 52,
            2 => 78,
            3 => 104,
            4 => 156,
            5 => 208,
            6 => 234,
            _ => 260,
        };
        let one = match width {
            Width::Mhz20 => one,
            // 108 data subcarriers instead of 52
            Width::Mhz40 => one * 108 / 52,
        };
        one * self.streams()
    }
}

/// The rate of one PPDU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Rate {
    /// 802.11b.
    Dsss(DsssRate, Preamble),
    /// 802.11a and g.
    Ofdm(OfdmRate),
    /// 802.11n, HT-mixed format, BCC, no STBC.
    Ht(Mcs, Width, GuardInterval),
}

impl Rate {
    /// 1 Mb/s.
    pub const DSSS_1: Rate = Rate::Dsss(DsssRate::R1, Preamble::Long);
    /// 2 Mb/s, long preamble.
    pub const DSSS_2: Rate = Rate::Dsss(DsssRate::R2, Preamble::Long);
    /// 5.5 Mb/s, long preamble.
    pub const DSSS_5_5: Rate = Rate::Dsss(DsssRate::R5_5, Preamble::Long);
    /// 11 Mb/s, long preamble.
    pub const DSSS_11: Rate = Rate::Dsss(DsssRate::R11, Preamble::Long);
    /// 6 Mb/s.
    pub const OFDM_6: Rate = Rate::Ofdm(OfdmRate::R6);
    /// 12 Mb/s.
    pub const OFDM_12: Rate = Rate::Ofdm(OfdmRate::R12);
    /// 24 Mb/s.
    pub const OFDM_24: Rate = Rate::Ofdm(OfdmRate::R24);
    /// 54 Mb/s.
    pub const OFDM_54: Rate = Rate::Ofdm(OfdmRate::R54);

    /// An HT rate; `None` if `mcs` is above 31.
    pub const fn ht(mcs: u8, width: Width, gi: GuardInterval) -> Option<Rate> {
        match Mcs::new(mcs) {
            Some(mcs) => Some(Rate::Ht(mcs, width, gi)),
            None => None,
        }
    }

    /// A legacy (DSSS or OFDM) rate from units of 500 kb/s, as beacons and radiotap carry it; DSSS gets the
    /// long preamble. `None` if there is no such rate. The basic-rate bit (0x80) must be masked off first.
    pub const fn from_500kbps(units: u8) -> Option<Rate> {
        Some(match units {
            2 => Rate::DSSS_1,
            4 => Rate::DSSS_2,
            11 => Rate::DSSS_5_5,
            22 => Rate::DSSS_11,
            12 => Rate::OFDM_6,
            18 => Rate::Ofdm(OfdmRate::R9),
            24 => Rate::OFDM_12,
            36 => Rate::Ofdm(OfdmRate::R18),
            48 => Rate::OFDM_24,
            72 => Rate::Ofdm(OfdmRate::R36),
            96 => Rate::Ofdm(OfdmRate::R48),
            108 => Rate::OFDM_54,
            _ => return None,
        })
    }

    /// A legacy rate in units of 500 kb/s; `None` for HT.
    pub const fn to_500kbps(self) -> Option<u8> {
        match self {
            Rate::Dsss(r, _) => Some((r.kbps100() / 5) as u8),
            Rate::Ofdm(r) => Some((r.mbps() * 2) as u8),
            Rate::Ht(..) => None,
        }
    }

    /// Nominal data rate in units of 100 kb/s, rounded to nearest (HT short GI: 72.2 Mb/s gives 722).
    pub const fn kbps100(self) -> u32 {
        match self {
            Rate::Dsss(r, _) => r.kbps100(),
            Rate::Ofdm(r) => r.mbps() * 10,
            Rate::Ht(mcs, width, gi) => {
                let bits = mcs.data_bits_per_symbol(width);
                match gi {
                    GuardInterval::Long => bits * 10 / 4,
                    // bits per 3.6 us, in 100 kb/s
                    GuardInterval::Short => (bits * 100 + 18) / 36,
                }
            }
        }
    }

    /// Channel width in MHz: 20 or 40 (DSSS counts as 20; its 22 MHz are the matter of the noise model).
    pub const fn width_mhz(self) -> u32 {
        match self {
            Rate::Ht(_, Width::Mhz40, _) => 40,
            _ => 20,
        }
    }
}

impl fmt::Display for Rate {
    /// `54M`, `5.5M`, `11Ms` (short preamble), `mcs7/20`, `mcs15/40s` (short guard interval).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Dsss(DsssRate::R5_5, p) => {
                write!(f, "5.5M{}", if *p == Preamble::Short { "s" } else { "" })
            }
            Rate::Dsss(r, p) => {
                write!(
                    f,
                    "{}M{}",
                    r.kbps100() / 10,
                    if *p == Preamble::Short { "s" } else { "" }
                )
            }
            Rate::Ofdm(r) => write!(f, "{}M", r.mbps()),
            Rate::Ht(mcs, w, gi) => {
                let w = if *w == Width::Mhz40 { 40 } else { 20 };
                write!(
                    f,
                    "mcs{}/{w}{}",
                    mcs.index(),
                    if *gi == GuardInterval::Short { "s" } else { "" }
                )
            }
        }
    }
}

impl Rate {
    /// Reads what [`Display`](fmt::Display) writes; `None` for anything else.
    pub fn parse(text: &str) -> Option<Rate> {
        if let Some(rest) = text.strip_prefix("mcs") {
            let (index, tail) = rest.split_once('/')?;
            let (width, gi) = match tail {
                "20" => (Width::Mhz20, GuardInterval::Long),
                "20s" => (Width::Mhz20, GuardInterval::Short),
                "40" => (Width::Mhz40, GuardInterval::Long),
                "40s" => (Width::Mhz40, GuardInterval::Short),
                _ => return None,
            };
            return Rate::ht(index.parse().ok()?, width, gi);
        }
        Some(match text {
            "1M" => Rate::DSSS_1,
            "2M" => Rate::DSSS_2,
            "5.5M" => Rate::DSSS_5_5,
            "11M" => Rate::DSSS_11,
            "2Ms" => Rate::Dsss(DsssRate::R2, Preamble::Short),
            "5.5Ms" => Rate::Dsss(DsssRate::R5_5, Preamble::Short),
            "11Ms" => Rate::Dsss(DsssRate::R11, Preamble::Short),
            _ => {
                let mbps: u8 = text.strip_suffix('M')?.parse().ok()?;
                if mbps < 6 {
                    return None;
                }
                match Rate::from_500kbps(mbps.checked_mul(2)?)? {
                    r @ Rate::Ofdm(_) => r,
                    _ => return None,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    fn every_rate() -> impl Iterator<Item = Rate> {
        let dsss = DsssRate::ALL.into_iter().flat_map(|r| {
            [Preamble::Long, Preamble::Short]
                .into_iter()
                .filter(move |p| r != DsssRate::R1 || *p == Preamble::Long)
                .map(move |p| Rate::Dsss(r, p))
        });
        let ofdm = OfdmRate::ALL.into_iter().map(Rate::Ofdm);
        let ht = (0..=31).flat_map(|m| {
            [Width::Mhz20, Width::Mhz40].into_iter().flat_map(move |w| {
                [GuardInterval::Long, GuardInterval::Short]
                    .into_iter()
                    .map(move |g| Rate::ht(m, w, g).unwrap())
            })
        });
        dsss.chain(ofdm).chain(ht)
    }

    #[test]
    fn text_round_trip() {
        for r in every_rate() {
            assert_eq!(Rate::parse(&r.to_string()), Some(r), "{r}");
        }
        for bad in [
            "", "M", "1Ms", "7M", "6m", "mcs32/20", "mcs7", "mcs7/80", "130M", "3M",
        ] {
            assert_eq!(Rate::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn units_of_500_kbps_round_trip() {
        for u in 0..=255 {
            if let Some(r) = Rate::from_500kbps(u) {
                assert_eq!(r.to_500kbps(), Some(u));
            }
        }
        assert_eq!(Rate::from_500kbps(108), Some(Rate::OFDM_54));
    }

    #[test]
    fn nominal_ht_rates() {
        // IEEE 802.11-2016, Tables 19-27 and 19-32
        let r = |m, w, g| Rate::ht(m, w, g).unwrap().kbps100();
        assert_eq!(r(7, Width::Mhz20, GuardInterval::Long), 650);
        assert_eq!(r(7, Width::Mhz20, GuardInterval::Short), 722);
        assert_eq!(r(15, Width::Mhz40, GuardInterval::Short), 3000);
        assert_eq!(r(31, Width::Mhz40, GuardInterval::Short), 6000);
        assert_eq!(r(5, Width::Mhz40, GuardInterval::Long), 1080);
    }
}
