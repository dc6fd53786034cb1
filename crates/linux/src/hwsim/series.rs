//! Rates and tries of a frame, as the kernel plans them and as a medium reports them.

/// Series of rates in a plan (`IEEE80211_TX_MAX_RATES`).
pub const MAX_SERIES: usize = 4;

/// One step of a retry chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// Rate: legacy index in the band, MCS, or streams and MCS; -1: none, and the chain ends.
    pub index: i8,
    /// Tries.
    pub tries: u8,
    /// Bits of [`flag`].
    pub flags: u16,
}

impl Series {
    /// The end of a chain.
    pub const NONE: Series = Series {
        index: -1,
        tries: 0,
        flags: 0,
    };
}

/// Bits of [`Series::flags`].
pub mod flag {
    /// RTS goes first.
    pub const RTS: u16 = 0x1;
    /// Short preamble.
    pub const SHORT_PREAMBLE: u16 = 0x4;
    /// The index is an MCS of 802.11n.
    pub const HT: u16 = 0x8;
    /// 40 MHz.
    pub const MHZ_40: u16 = 0x20;
    /// Short guard interval.
    pub const SHORT_GUARD: u16 = 0x80;
    /// The index is streams - 1 (upper 4 bits) and MCS of 802.11ac.
    pub const VHT: u16 = 0x100;
    /// 80 or 160 MHz.
    pub const WIDER: u16 = 0x200 | 0x400;
}
