//! A channel as nl80211 describes it.

use crate::netlink::{find, u32_of};

/// Attributes of a channel (NL80211_FREQUENCY_ATTR).
pub(super) mod attr {
    pub const MHZ: u16 = 1;
    pub const DISABLED: u16 = 2;
    pub const NO_IR: u16 = 3;
    pub const RADAR: u16 = 5;
    pub const MAX_POWER: u16 = 6;
    pub const DFS_STATE: u16 = 7;
    pub const NO_HT40_MINUS: u16 = 9;
    pub const NO_HT40_PLUS: u16 = 10;
}

/// NL80211_DFS_AVAILABLE: no radar was found.
const DFS_AVAILABLE: u32 = 2;

/// A channel of a radio under the rules that hold now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// Centre frequency.
    pub mhz: u16,
    /// Not to be used at all.
    pub is_disabled: bool,
    /// Only to be listened to, until somebody else was heard there.
    pub is_passive: bool,
    /// Only to be used after it was searched for radar, which it was not.
    pub needs_radar_check: bool,
    /// Whether it may be 40 MHz wide, with its other half below and above.
    pub wide: [bool; 2],
    /// Most power allowed.
    pub max_dbm: Option<i8>,
}

impl Channel {
    /// Whether frames may be sent there. mac80211 drops frames made elsewhere, without a word, wherever it would
    /// not let an access point begin to send beacons.
    pub fn may_send(&self) -> bool {
        !self.is_disabled && !self.is_passive && !self.needs_radar_check
    }

    /// Centre of the channel of 40 MHz of which this is the primary half: the usual one, or else the other one that the
    /// rules allow.
    pub fn centre_of_40(&self) -> Option<u16> {
        // 36 and 40 are a pair, and so on (IEEE 802.11-2016, E.1); at 2.4 GHz the other half is where there is room.
        let above = match self.mhz {
            ..3_000 => self.mhz <= 2_442,
            mhz @ 5_745.. => (mhz - 5_745) / 20 % 2 == 0,
            mhz => (mhz.max(5_000) - 5_000) / 20 % 2 == 1,
        };
        let [below, beyond] = self.wide;
        match (above, below, beyond) {
            (true, _, true) | (false, false, true) => Some(self.mhz + 10),
            (false, true, _) | (true, true, false) => Some(self.mhz - 10),
            _ => None,
        }
    }
}

/// From the attributes of one; `None` if it has no frequency.
pub(super) fn channel_of(octets: &[u8]) -> Option<Channel> {
    let word = |kind| find(octets, kind).and_then(u32_of);
    let has = |kind| find(octets, kind).is_some();
    Some(Channel {
        mhz: u16::try_from(word(attr::MHZ)?).ok()?,
        is_disabled: has(attr::DISABLED),
        is_passive: has(attr::NO_IR),
        needs_radar_check: has(attr::RADAR) && word(attr::DFS_STATE) != Some(DFS_AVAILABLE),
        wide: [attr::NO_HT40_MINUS, attr::NO_HT40_PLUS].map(|no| !has(no)),
        max_dbm: word(attr::MAX_POWER).and_then(|mbm| i8::try_from(mbm.cast_signed() / 100).ok()),
    })
}
