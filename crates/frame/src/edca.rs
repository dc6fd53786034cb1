//! Access categories and their default channel access parameters.

use core::fmt;

use crate::phy::Phy;

/// One of the four priorities of EDCA (IEEE 802.11-2016, 10.2.4.2), lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum AccessCategory {
    /// AC_BK: below everything else.
    Background,
    /// AC_BE: what has no priority, and all data frames without QoS.
    #[default]
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO; management frames go here too.
    Voice,
}

impl AccessCategory {
    /// All, lowest priority first: `ALL[ac.index()] == ac`.
    pub const ALL: [AccessCategory; 4] = [
        AccessCategory::Background,
        AccessCategory::BestEffort,
        AccessCategory::Video,
        AccessCategory::Voice,
    ];

    /// Place in order of priority: 0 background, 1 best effort, 2 video, 3 voice.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Category of a traffic identifier (IEEE 802.11-2016, Table 10-1): 1, 2 BK; 0, 3 BE; 4, 5 VI; 6, 7 VO.
    /// TIDs 8 to 15 name traffic streams; they count as best effort.
    pub const fn from_tid(tid: u8) -> AccessCategory {
        match tid {
            1 | 2 => AccessCategory::Background,
            4 | 5 => AccessCategory::Video,
            6 | 7 => AccessCategory::Voice,
            _ => AccessCategory::BestEffort,
        }
    }

    /// The traffic identifier that stands for this category: 1, 0, 5, 6 (the more usual of each pair).
    pub const fn tid(self) -> u8 {
        match self {
            AccessCategory::Background => 1,
            AccessCategory::BestEffort => 0,
            AccessCategory::Video => 5,
            AccessCategory::Voice => 6,
        }
    }

    /// ACI: how elements on the air number the categories (IEEE 802.11-2016, Table 9-136): BE 0, BK 1, VI 2, VO 3.
    pub const fn aci(self) -> u8 {
        match self {
            AccessCategory::BestEffort => 0,
            AccessCategory::Background => 1,
            AccessCategory::Video => 2,
            AccessCategory::Voice => 3,
        }
    }

    /// Category of an ACI; only the two lowest bits count.
    pub const fn from_aci(aci: u8) -> AccessCategory {
        match aci & 3 {
            0 => AccessCategory::BestEffort,
            1 => AccessCategory::Background,
            2 => AccessCategory::Video,
            _ => AccessCategory::Voice,
        }
    }
}

impl fmt::Display for AccessCategory {
    /// `AC_BK`, `AC_BE`, `AC_VI`, `AC_VO`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessCategory::Background => "AC_BK",
            AccessCategory::BestEffort => "AC_BE",
            AccessCategory::Video => "AC_VI",
            AccessCategory::Voice => "AC_VO",
        })
    }
}

/// Channel access parameters of one access category.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EdcaParams {
    /// Slots after SIFS before the countdown starts: AIFS = SIFS + AIFSN slots. 2 to 15 for stations, 1 to 15
    /// for access points.
    pub aifsn: u8,
    /// First contention window, 2^n - 1 slots.
    pub cw_min: u16,
    /// Largest contention window, 2^n - 1 slots.
    pub cw_max: u16,
    /// TXOP limit in microseconds; 0 means one MSDU. On the air it goes in units of 32 us.
    pub txop_us: u32,
}

impl EdcaParams {
    /// What the basic DCF does: AIFSN 2 (that is DIFS), aCWmin, aCWmax, one MSDU (IEEE 802.11-2016, 10.3).
    pub const fn dcf(phy: &Phy) -> EdcaParams {
        EdcaParams {
            aifsn: 2,
            cw_min: phy.cw_min,
            cw_max: phy.cw_max,
            txop_us: 0,
        }
    }
}

/// Default parameters of a station (dot11EDCATable; IEEE 802.11-2012, Table 8-105). The TXOP limits are those of
/// that edition; the 2016 text has 2080 us for voice and 4096 us for video.
pub const fn edca_default(ac: AccessCategory, phy: &Phy) -> EdcaParams {
    // The DSSS PHYs are the ones with aCWmin = 31.
    let dsss = phy.cw_min >= 31;
    let half = phy.cw_min.div_ceil(2).saturating_sub(1);
    let quarter = phy.cw_min.div_ceil(4).saturating_sub(1);
    let (aifsn, cw_min, cw_max, txop_us) = match ac {
        AccessCategory::Background => (7, phy.cw_min, phy.cw_max, 0),
        AccessCategory::BestEffort => (3, phy.cw_min, phy.cw_max, 0),
        AccessCategory::Video => (2, half, phy.cw_min, if dsss { 6016 } else { 3008 }),
        AccessCategory::Voice => (2, quarter, half, if dsss { 3264 } else { 1504 }),
    };
    EdcaParams {
        aifsn,
        cw_min,
        cw_max,
        txop_us,
    }
}

/// Default parameters of an access point (dot11QAPEDCATable; IEEE 802.11-2012, annex C): one slot less for video
/// and voice, and best effort stops doubling at 4 (aCWmin + 1) - 1.
pub const fn edca_default_ap(ac: AccessCategory, phy: &Phy) -> EdcaParams {
    let station = edca_default(ac, phy);
    match ac {
        AccessCategory::Background => station,
        AccessCategory::BestEffort => EdcaParams {
            cw_max: 4 * (phy.cw_min + 1) - 1,
            ..station
        },
        AccessCategory::Video | AccessCategory::Voice => EdcaParams { aifsn: 1, ..station },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessCategory::{Background, BestEffort, Video, Voice};

    fn row(p: EdcaParams) -> (u8, u16, u16, u32) {
        (p.aifsn, p.cw_min, p.cw_max, p.txop_us)
    }

    #[test]
    fn defaults_of_stations() {
        assert_eq!(row(edca_default(Voice, &Phy::A)), (2, 3, 7, 1504));
        assert_eq!(row(edca_default(Video, &Phy::A)), (2, 7, 15, 3008));
        assert_eq!(row(edca_default(BestEffort, &Phy::A)), (3, 15, 1023, 0));
        assert_eq!(row(edca_default(Background, &Phy::A)), (7, 15, 1023, 0));
        assert_eq!(row(edca_default(Voice, &Phy::B)), (2, 7, 15, 3264));
        assert_eq!(row(edca_default(Video, &Phy::B)), (2, 15, 31, 6016));
        assert_eq!(row(edca_default(BestEffort, &Phy::B)), (3, 31, 1023, 0));
        for (ac, a_us, b_us) in [
            (Voice, 34, 50),
            (Video, 34, 50),
            (BestEffort, 43, 70),
            (Background, 79, 150),
        ] {
            assert_eq!(Phy::A.aifs_us(edca_default(ac, &Phy::A).aifsn), a_us);
            assert_eq!(Phy::B.aifs_us(edca_default(ac, &Phy::B).aifsn), b_us);
        }
    }

    #[test]
    fn defaults_of_access_points() {
        assert_eq!(row(edca_default_ap(Voice, &Phy::G)), (1, 3, 7, 1504));
        assert_eq!(row(edca_default_ap(Video, &Phy::G)), (1, 7, 15, 3008));
        assert_eq!(row(edca_default_ap(BestEffort, &Phy::G)), (3, 15, 63, 0));
        assert_eq!(
            edca_default_ap(Background, &Phy::G),
            edca_default(Background, &Phy::G)
        );
        assert_eq!(edca_default_ap(BestEffort, &Phy::B).cw_max, 127);
    }

    #[test]
    fn categories() {
        let by_tid = [
            BestEffort, Background, Background, BestEffort, Video, Video, Voice, Voice,
        ];
        for (tid, ac) in by_tid.into_iter().enumerate() {
            assert_eq!(AccessCategory::from_tid(tid as u8), ac);
        }
        for (i, ac) in AccessCategory::ALL.into_iter().enumerate() {
            assert_eq!(ac.index(), i);
            assert_eq!(AccessCategory::from_tid(ac.tid()), ac);
            assert_eq!(AccessCategory::from_aci(ac.aci()), ac);
        }
        assert!(Voice > Video && Video > BestEffort && BestEffort > Background);
    }
}
