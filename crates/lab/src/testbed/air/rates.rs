//! Rates as the kernel names them and as the simulator does.
//!
//! The kernel counts legacy rates from the slowest of the band, in the order of mac80211_hwsim: at 2.4 GHz those of
//! 802.11b come before those of OFDM.

use frame::rate::{DsssRate, GuardInterval, OfdmRate, Preamble, Width};
use frame::{Band, Rate};
use linux::hwsim::{MAX_SERIES, Series, flag};
use radio::SeriesList;

/// The band of a centre frequency; `None` where the simulator has no band.
pub fn band(mhz: u16) -> Option<Band> {
    match mhz {
        2_400..3_000 => Some(Band::Ghz2_4),
        4_900..6_000 => Some(Band::Ghz5),
        _ => None,
    }
}

/// The rate of a series; `None` if the simulator has no such rate.
///
/// A rate of 802.11ac up to MCS 7 and 40 MHz counts as that of 802.11n with the same modulation and streams: data bits
/// and symbols are equal, preambles differ by 4 us with one stream.
pub fn rate(series: &Series, band: Band) -> Option<Rate> {
    let index = u8::try_from(series.index).ok()?;
    let has = |bit| series.flags & bit != 0;
    if has(flag::HT | flag::VHT) {
        let mcs = match has(flag::VHT) {
            true if index & 0xf > 7 || has(flag::WIDER) => return None,
            true => (index >> 4).checked_mul(8)? + (index & 0xf),
            false => index,
        };
        let width = match has(flag::MHZ_40) {
            true => Width::Mhz40,
            false => Width::Mhz20,
        };
        let guard = match has(flag::SHORT_GUARD) {
            true => GuardInterval::Short,
            false => GuardInterval::Long,
        };
        return Rate::ht(mcs, width, guard);
    }
    let index = usize::from(index);
    let slow = slow_rates(band);
    match slow.get(index) {
        Some(DsssRate::R1) => Some(Rate::DSSS_1),
        Some(dsss) if has(flag::SHORT_PREAMBLE) => Some(Rate::Dsss(*dsss, Preamble::Short)),
        Some(dsss) => Some(Rate::Dsss(*dsss, Preamble::Long)),
        None => OfdmRate::ALL.get(index - slow.len()).map(|r| Rate::Ofdm(*r)),
    }
}

fn slow_rates(band: Band) -> &'static [DsssRate] {
    match band {
        Band::Ghz2_4 => &DsssRate::ALL,
        Band::Ghz5 => &[],
    }
}

/// The chain as far as the simulator has its rates; `None` if it has not even the first.
pub fn chain(plan: &[Series; MAX_SERIES], band: Band) -> Option<SeriesList> {
    let known = plan.iter().map_while(|s| {
        let tries = s.tries;
        (tries > 0).then_some(radio::Series {
            rate: rate(s, band)?,
            tries,
        })
    });
    SeriesList::new(&known.collect::<Vec<_>>())
}

/// The plan with the tries that were made, first series first. A frame without a try keeps its first series, with none.
pub fn done(plan: &[Series; MAX_SERIES], attempts: u16) -> [Series; MAX_SERIES] {
    let mut left = attempts;
    let mut done = [Series::NONE; MAX_SERIES];
    for (i, (done, planned)) in done.iter_mut().zip(plan).enumerate() {
        if planned.index < 0 || (left == 0 && i > 0) {
            break;
        }
        let tries = left.min(planned.tries.into());
        left -= tries;
        *done = Series {
            tries: tries as u8,
            ..*planned
        };
    }
    done
}

/// Index of a legacy rate, the only kind in which the kernel takes received frames: of a rate of 802.11n, the fastest
/// that is not faster.
pub fn legacy_index(rate: Rate, band: Band) -> u32 {
    let slow = slow_rates(band);
    match rate {
        Rate::Dsss(r, _) => slow.iter().position(|s| *s == r).unwrap_or(0) as u32,
        Rate::Ofdm(_) | Rate::Ht(..) => {
            let kbps100 = rate.kbps100();
            let not_faster = OfdmRate::ALL.iter().filter(|r| r.mbps() * 10 <= kbps100).count();
            (slow.len() + not_faster.max(1) - 1) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(index: i8, tries: u8, flags: u16) -> Series {
        Series { index, tries, flags }
    }

    #[test]
    fn legacy_rates_there_and_back() {
        for (band, count) in [(Band::Ghz2_4, 12), (Band::Ghz5, 8)] {
            for index in 0..count {
                let rate = rate(&series(index, 1, 0), band).unwrap();
                assert_eq!(legacy_index(rate, band), index as u32, "{rate}");
            }
            assert_eq!(rate(&series(count, 1, 0), band), None);
            assert_eq!(rate(&series(-1, 1, 0), band), None);
        }
        assert_eq!(rate(&series(7, 1, 0), Band::Ghz5), Some(Rate::OFDM_54));
        assert_eq!(rate(&series(3, 1, 0), Band::Ghz2_4), Some(Rate::DSSS_11));
        let short = Rate::Dsss(DsssRate::R11, Preamble::Short);
        assert_eq!(
            rate(&series(3, 1, flag::SHORT_PREAMBLE), Band::Ghz2_4),
            Some(short)
        );
    }

    #[test]
    fn rates_of_n_and_ac() {
        let ht = |mcs, width, guard| Rate::ht(mcs, width, guard);
        let of = |index, flags| rate(&series(index, 1, flags), Band::Ghz5);
        assert_eq!(of(7, flag::HT), ht(7, Width::Mhz20, GuardInterval::Long));
        let both = flag::HT | flag::MHZ_40 | flag::SHORT_GUARD;
        assert_eq!(of(15, both), ht(15, Width::Mhz40, GuardInterval::Short));
        assert_eq!(of(0x17, flag::VHT), ht(15, Width::Mhz20, GuardInterval::Long));
        assert_eq!(of(0x08, flag::VHT), None, "256-QAM");
        assert_eq!(of(7, flag::VHT | flag::WIDER), None);
        assert_eq!(legacy_index(of(7, flag::HT).unwrap(), Band::Ghz5), 7);
        assert_eq!(
            legacy_index(of(0, flag::HT).unwrap(), Band::Ghz5),
            0,
            "6.5 is not below 6"
        );
    }

    #[test]
    fn chains_and_what_is_left_of_them() {
        let plan = [series(7, 2, 0), series(4, 3, 0), series(0, 1, 0), Series::NONE];
        let chain = chain(&plan, Band::Ghz5).unwrap();
        assert_eq!((chain.as_slice().len(), chain.attempts()), (3, 6));
        let tries = |attempts| done(&plan, attempts).map(|s| (s.index, s.tries));
        let none = (-1, 0);
        assert_eq!(tries(1), [(7, 1), none, none, none]);
        assert_eq!(tries(2), [(7, 2), none, none, none]);
        assert_eq!(tries(6), [(7, 2), (4, 3), (0, 1), none]);
        assert_eq!(tries(0), [(7, 0), none, none, none]);
        let strange = [
            series(7, 2, 0),
            series(9, 1, flag::VHT),
            series(0, 1, 0),
            Series::NONE,
        ];
        assert_eq!(super::chain(&strange, Band::Ghz5).unwrap().attempts(), 2);
        assert_eq!(super::chain(&[Series::NONE; 4], Band::Ghz5), None);
    }
}
