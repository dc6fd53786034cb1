//! Basic rates, and the rule for the rate of a response.

use crate::rate::{DsssRate, Mcs, OfdmRate, Preamble, Rate};

/// A set of legacy rates, such as the BSSBasicRateSet (IEEE 802.11-2016, 10.7.6.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RateSet(u16);

impl RateSet {
    /// Nothing.
    pub const EMPTY: RateSet = RateSet(0);
    /// 6, 12, 24 Mb/s: what a standard access point at 5 GHz announces as basic.
    pub const OFDM_MANDATORY: RateSet = RateSet::EMPTY
        .with(Rate::OFDM_6)
        .with(Rate::OFDM_12)
        .with(Rate::OFDM_24);
    /// 1, 2 Mb/s.
    pub const DSSS_MANDATORY: RateSet = RateSet::EMPTY.with(Rate::DSSS_1).with(Rate::DSSS_2);
    /// 1, 2, 5.5, 11 Mb/s.
    pub const HR_DSSS: RateSet = RateSet::DSSS_MANDATORY.with(Rate::DSSS_5_5).with(Rate::DSSS_11);
    /// Only 6 Mb/s: what makes all acknowledgements go at 6 Mb/s (44 us).
    pub const OFDM_6_ONLY: RateSet = RateSet::EMPTY.with(Rate::OFDM_6);

    const fn bit(rate: Rate) -> u16 {
        match rate {
            Rate::Dsss(r, _) => 1 << r as u16,
            Rate::Ofdm(r) => 1 << (4 + r as u16),
            Rate::Ht(..) => 0,
        }
    }

    /// With `rate` added; HT rates are not legacy rates and add nothing.
    #[must_use]
    pub const fn with(self, rate: Rate) -> RateSet {
        RateSet(self.0 | RateSet::bit(rate))
    }

    /// Whether `rate` is in the set; the preamble of DSSS rates does not matter.
    pub const fn contains(self, rate: Rate) -> bool {
        self.0 & RateSet::bit(rate) != 0
    }

    /// True if there is nothing in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The legacy rate that governs the response to an HT frame: same modulation and coding as the first stream
/// (the non-HT reference rate, IEEE 802.11-2016, Table 10-7).
const fn reference_rate(mcs: Mcs) -> OfdmRate {
    match mcs.index() % 8 {
        0 => OfdmRate::R6,
        1 => OfdmRate::R12,
        2 => OfdmRate::R18,
        3 => OfdmRate::R24,
        4 => OfdmRate::R36,
        5 => OfdmRate::R48,
        _ => OfdmRate::R54,
    }
}

/// Rate of an ACK or CTS that answers a frame sent at `data` (IEEE 802.11-2016, 10.7.6.5.2): the highest rate
/// of `basic` that is not above the rate of the frame, of the same modulation class; if there is none, the
/// highest mandatory rate that is not above it. DSSS responses keep the preamble of the frame (long at 1 Mb/s).
pub const fn response_rate(data: Rate, basic: RateSet) -> Rate {
    match data {
        Rate::Dsss(r, preamble) => {
            let mut found: Option<DsssRate> = None;
            let mut i = 0;
            while i < DsssRate::ALL.len() {
                let c = DsssRate::ALL[i];
                if c.kbps100() <= r.kbps100() && basic.contains(Rate::Dsss(c, Preamble::Long)) {
                    found = Some(c);
                }
                i += 1;
            }
            // all four are mandatory for HR-DSSS
            let rate = match found {
                Some(c) => c,
                None => r,
            };
            match rate {
                DsssRate::R1 => Rate::DSSS_1,
                _ => Rate::Dsss(rate, preamble),
            }
        }
        Rate::Ofdm(r) => Rate::Ofdm(ofdm_response(r, basic)),
        Rate::Ht(mcs, ..) => Rate::Ofdm(ofdm_response(reference_rate(mcs), basic)),
    }
}

const fn ofdm_response(data: OfdmRate, basic: RateSet) -> OfdmRate {
    let mut found: Option<OfdmRate> = None;
    let mut mandatory = OfdmRate::R6;
    let mut i = 0;
    while i < OfdmRate::ALL.len() {
        let c = OfdmRate::ALL[i];
        if c.mbps() <= data.mbps() {
            if basic.contains(Rate::Ofdm(c)) {
                found = Some(c);
            }
            if matches!(c, OfdmRate::R6 | OfdmRate::R12 | OfdmRate::R24) {
                mandatory = c;
            }
        }
        i += 1;
    }
    match found {
        Some(c) => c,
        None => mandatory,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{GuardInterval, Width};

    #[test]
    fn responses() {
        let ofdm = |m| Rate::Ofdm(OfdmRate::ALL.into_iter().find(|r| r.mbps() == m).unwrap());
        let set = RateSet::OFDM_MANDATORY;
        for (data, ack) in [
            (6, 6),
            (9, 6),
            (12, 12),
            (18, 12),
            (24, 24),
            (36, 24),
            (48, 24),
            (54, 24),
        ] {
            assert_eq!(response_rate(ofdm(data), set), ofdm(ack));
            assert_eq!(
                response_rate(ofdm(data), RateSet::EMPTY),
                ofdm(ack),
                "mandatory rates"
            );
            assert_eq!(response_rate(ofdm(data), RateSet::OFDM_6_ONLY), ofdm(6));
        }
        // a basic set that has nothing at or below the data rate
        let high = RateSet::EMPTY.with(ofdm(54));
        assert_eq!(response_rate(ofdm(18), high), ofdm(12));
        assert_eq!(response_rate(ofdm(54), high), ofdm(54));
        // HT answers in legacy OFDM
        let mcs7 = Rate::ht(7, Width::Mhz40, GuardInterval::Short).unwrap();
        assert_eq!(response_rate(mcs7, set), ofdm(24));
        let mcs0 = Rate::ht(8, Width::Mhz20, GuardInterval::Long).unwrap();
        assert_eq!(response_rate(mcs0, set), ofdm(6));
        // where every rate is basic, the one of the same modulation and coding; 5/6 has none, and takes 3/4
        let all = OfdmRate::ALL.into_iter().map(Rate::Ofdm).fold(set, RateSet::with);
        for (mcs, ack) in (0..=31).zip([6, 12, 18, 24, 36, 48, 54, 54].into_iter().cycle()) {
            let ht = Rate::ht(mcs, Width::Mhz20, GuardInterval::Long).unwrap();
            assert_eq!(response_rate(ht, all), ofdm(ack), "MCS {mcs}");
        }
        // DSSS keeps its modulation class and preamble
        assert_eq!(
            response_rate(Rate::DSSS_11, RateSet::DSSS_MANDATORY),
            Rate::DSSS_2
        );
        let short = Rate::Dsss(DsssRate::R11, Preamble::Short);
        assert_eq!(response_rate(short, RateSet::HR_DSSS), short);
        assert_eq!(
            response_rate(short, RateSet::EMPTY.with(Rate::DSSS_1)),
            Rate::DSSS_1
        );
    }
}
