//! Exact duration of a PPDU, in whole microseconds, as `const fn`.

use crate::phy::Band;
use crate::rate::{GuardInterval, Preamble, Rate};

/// Longest PSDU that [`ppdu_us`] reckons with; longer ones are clamped. 65,535 octets is the HT limit.
pub const MAX_PSDU_OCTETS: u32 = 65_535;

/// Duration of a PPDU that carries `octets` of PSDU (the MPDU with header and FCS) at `rate`, in microseconds:
/// TXTIME of IEEE 802.11-2016, 16.3.4 (HR-DSSS), 17.4.3 (OFDM), 18.5.3.2 (ERP) and 19.4.3 (HT-mixed).
pub const fn ppdu_us(rate: Rate, octets: u32, band: Band) -> u32 {
    let octets = if octets > MAX_PSDU_OCTETS {
        MAX_PSDU_OCTETS
    } else {
        octets
    };
    let extension = match (rate, band) {
        (Rate::Dsss(..), _) | (_, Band::Ghz5) => 0,
        (_, Band::Ghz2_4) => 6,
    };
    preamble_us(rate)
        + extension
        + match rate {
            // ceil(8 L / R) with R in Mb/s
            Rate::Dsss(r, _) => (octets * 80).div_ceil(r.kbps100()),
            // SERVICE 16 bits and tail 6 bits
            Rate::Ofdm(r) => 4 * (16 + 8 * octets + 6).div_ceil(r.data_bits_per_symbol()),
            Rate::Ht(mcs, width, gi) => {
                let bits = mcs.data_bits_per_symbol(width);
                // a second BCC encoder above 300 Mb/s (Tables 19-33 to 19-36)
                let encoders = if bits > 1200 { 2 } else { 1 };
                let symbols = (16 + 8 * octets + 6 * encoders).div_ceil(bits);
                match gi {
                    GuardInterval::Long => 4 * symbols,
                    // symbols of 3.6 us, the total rounded up to 4 us
                    GuardInterval::Short => 4 * (symbols * 9).div_ceil(10),
                }
            }
        }
}

/// Duration of preamble and PHY header, before the first bit of the PSDU, in microseconds.
pub const fn preamble_us(rate: Rate) -> u32 {
    match rate {
        Rate::Dsss(_, Preamble::Long) => 192,
        Rate::Dsss(_, Preamble::Short) => 96,
        Rate::Ofdm(_) => 20,
        // L-STF, L-LTF 16; L-SIG 4; HT-SIG 8; HT-STF 4; 1, 2, 4, 4 HT-LTFs of 4
        Rate::Ht(mcs, ..) => {
            32 + 4 * match mcs.streams() {
                1 => 1,
                2 => 2,
                _ => 4,
            }
        }
    }
}

/// From the start of a PPDU to the first bit of the MPDU in it, in nanoseconds: the preamble, and for OFDM the 16 bits
/// of the SERVICE field (IEEE 802.11-2016, 17.3.5.2).
pub const fn first_bit_ns(rate: Rate) -> u64 {
    let service = match rate {
        Rate::Dsss(..) => 0,
        Rate::Ofdm(_) | Rate::Ht(..) => octets_ns(2, rate),
    };
    1_000 * preamble_us(rate) as u64 + service
}

/// From the start of a PPDU to the timestamp in a beacon or probe response, in nanoseconds: the timestamp field comes 24 octets
/// after the first bit of the MPDU, and tells the TSF of that moment (IEEE 802.11-2016, 11.1.3).
pub const fn timestamp_ns(rate: Rate) -> u64 {
    first_bit_ns(rate) + octets_ns(24, rate)
}

/// Time that octets of the PSDU take, in nanoseconds, rounded down.
pub const fn octets_ns(octets: u64, rate: Rate) -> u64 {
    octets * 80_000 / rate.kbps100() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{DsssRate, OfdmRate, Width};

    fn ht(mcs: u8, w: Width, g: GuardInterval) -> Rate {
        Rate::ht(mcs, w, g).unwrap()
    }

    #[test]
    fn golden_dsss() {
        let short = |r| Rate::Dsss(r, Preamble::Short);
        assert_eq!(ppdu_us(short(DsssRate::R11), 1023, Band::Ghz2_4), 840);
        assert_eq!(ppdu_us(Rate::DSSS_11, 1023, Band::Ghz2_4), 936);
        assert_eq!(ppdu_us(Rate::DSSS_5_5, 1024, Band::Ghz2_4), 1682);
        for (rate, us) in [
            (Rate::DSSS_1, 304),
            (Rate::DSSS_2, 248),
            (Rate::DSSS_5_5, 213),
            (Rate::DSSS_11, 203),
        ] {
            assert_eq!(ppdu_us(rate, 14, Band::Ghz2_4), us);
        }
        // the two readings of a 74-octet packet at 2 Mb/s: the whole MPDU, or with 28 octets around it
        assert_eq!(ppdu_us(Rate::DSSS_2, 74, Band::Ghz2_4), 488);
        assert_eq!(ppdu_us(Rate::DSSS_2, 102, Band::Ghz2_4), 600);
        assert_eq!(ppdu_us(Rate::DSSS_1, 28, Band::Ghz2_4), 416);
    }

    #[test]
    fn golden_ofdm() {
        assert_eq!(ppdu_us(Rate::OFDM_54, 1536, Band::Ghz5), 248);
        assert_eq!(ppdu_us(Rate::OFDM_54, 1536, Band::Ghz2_4), 254);
        assert_eq!(ppdu_us(Rate::OFDM_54, 76, Band::Ghz5), 32);
        assert_eq!(ppdu_us(Rate::OFDM_54, 14, Band::Ghz5), 24);
        assert_eq!(ppdu_us(Rate::OFDM_24, 1536, Band::Ghz5), 536);
        assert_eq!(ppdu_us(Rate::OFDM_6, 1536, Band::Ghz5), 2072);
        let acks = [44, 36, 32, 28, 28, 24, 24, 24];
        for (r, us) in OfdmRate::ALL.into_iter().zip(acks) {
            assert_eq!(ppdu_us(Rate::Ofdm(r), 14, Band::Ghz5), us);
        }
        // 36 us at 54 Mb/s for every MPDU from 79 to 105 octets, and for no other
        for octets in 60..130 {
            let is36 = ppdu_us(Rate::OFDM_54, octets, Band::Ghz5) == 36;
            assert_eq!(is36, (79..=105).contains(&octets), "{octets}");
        }
    }

    #[test]
    fn golden_ht() {
        use GuardInterval::{Long, Short};
        use Width::{Mhz20, Mhz40};
        for (octets, us) in [(1536, 228), (76, 48), (14, 40)] {
            assert_eq!(ppdu_us(ht(7, Mhz20, Long), octets, Band::Ghz5), us);
        }
        // 1500 octets of payload at MCS5
        assert_eq!(ppdu_us(ht(5, Mhz20, Long), 1538, Band::Ghz5), 276);
        assert_eq!(ppdu_us(ht(5, Mhz20, Short), 1538, Band::Ghz5), 252);
        assert_eq!(ppdu_us(ht(5, Mhz40, Long), 1538, Band::Ghz5), 152);
        assert_eq!(ppdu_us(ht(5, Mhz40, Short), 1538, Band::Ghz5), 144);
        assert_eq!(ppdu_us(ht(5, Mhz40, Long), 250, Band::Ghz5), 56);
    }

    /// HT preambles by the number of streams, and the second encoder above 300 Mb/s.
    #[test]
    fn ht_streams() {
        use Width::Mhz40;
        for (mcs, us) in [(0, 36), (8, 40), (16, 48), (24, 48)] {
            assert_eq!(preamble_us(ht(mcs, Width::Mhz20, GuardInterval::Long)), us);
        }
        // MCS31 on 40 MHz: 2160 bits a symbol; 16 + 8*267 + 6 fits one symbol, with 12 tail bits it does not
        let r = ht(31, Mhz40, GuardInterval::Long);
        assert_eq!(ppdu_us(r, 266, Band::Ghz5), 48 + 4);
        assert_eq!(ppdu_us(r, 267, Band::Ghz5), 48 + 8);
        // around 300 Mb/s: MCS21 and MCS28 (324 Mb/s, 1296 bits) have two encoders, MCS15 (270, 1080) has one
        for mcs in [21, 28] {
            let r = ht(mcs, Mhz40, GuardInterval::Long);
            assert_eq!(ppdu_us(r, 158, Band::Ghz5), 48 + 4, "16 + 8*158 + 12 = 1292");
            assert_eq!(ppdu_us(r, 159, Band::Ghz5), 48 + 8, "16 + 8*159 + 12 = 1300");
        }
        let r = ht(15, Mhz40, GuardInterval::Long);
        assert_eq!(ppdu_us(r, 132, Band::Ghz5), 40 + 4, "16 + 8*132 + 6 = 1078");
        assert_eq!(ppdu_us(r, 133, Band::Ghz5), 40 + 8);
    }

    #[test]
    fn longer_is_never_shorter_and_nothing_overflows() {
        for mcs in 0..=31 {
            let r = ht(mcs, Width::Mhz20, GuardInterval::Short);
            let mut last = 0;
            for octets in (0..70_000).step_by(if cfg!(miri) { 9_700 } else { 97 }) {
                let t = ppdu_us(r, octets, Band::Ghz2_4);
                assert!(t >= last);
                last = t;
            }
        }
        assert_eq!(
            ppdu_us(Rate::DSSS_1, u32::MAX, Band::Ghz2_4),
            192 + 8 * MAX_PSDU_OCTETS
        );
    }
}
