//! HT capabilities and HT operation, of 802.11n.

use core::fmt;

use crate::element::{ElementType, body, start};
use crate::error::{EmitError, ParseError};
use crate::rate::Mcs;
use crate::wire::Wire;

/// HT capabilities (IEEE 802.11-2016, 9.4.2.56): 26 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct HtCapabilities {
    /// HT capability information: [`HtCapabilities::WIDTH_40`] and its neighbours are bits of it.
    pub info: u16,
    /// A-MPDU parameters: bits 0 and 1 the exponent of the longest A-MPDU, bits 2 to 4 the MPDU spacing.
    pub ampdu: u8,
    /// Supported MCS set; bit i of octets 0 to 9 says that MCS i can be received.
    pub mcs: [u8; 16],
    /// HT extended capabilities.
    pub extended: u16,
    /// Transmit beamforming.
    pub beamforming: u32,
    /// Antenna selection.
    pub antenna_selection: u8,
}

impl HtCapabilities {
    /// LDPC can be received.
    pub const LDPC: u16 = 0x0001;
    /// 20 and 40 MHz; without it 20 MHz only.
    pub const WIDTH_40: u16 = 0x0002;
    /// Greenfield preambles can be received.
    pub const GREENFIELD: u16 = 0x0010;
    /// Short guard interval at 20 MHz can be received.
    pub const SHORT_GI_20: u16 = 0x0020;
    /// Short guard interval at 40 MHz can be received.
    pub const SHORT_GI_40: u16 = 0x0040;
    /// A-MSDUs up to 7935 octets; without it 3839.
    pub const AMSDU_7935: u16 = 0x0800;

    /// Whether all bits of `mask` are set in `info`.
    pub const fn has(&self, mask: u16) -> bool {
        self.info & mask == mask
    }

    /// Whether frames at this MCS can be received.
    pub const fn receives(&self, mcs: Mcs) -> bool {
        let i = mcs.index();
        self.mcs[i as usize / 8] & 1 << (i % 8) != 0
    }

    /// Longest A-MPDU that can be received, in octets: 8191, 16383, 32767 or 65535.
    pub const fn max_ampdu_octets(&self) -> u32 {
        (1 << (13 + (self.ampdu & 3) as u32)) - 1
    }

    /// Longest A-MSDU that can be received, in octets.
    pub const fn max_amsdu_octets(&self) -> u32 {
        if self.has(HtCapabilities::AMSDU_7935) {
            7935
        } else {
            3839
        }
    }
}

impl<'a> Wire<'a> for HtCapabilities {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = body(octets, Self::ID)?;
        Ok(HtCapabilities {
            info: r.u16()?,
            ampdu: r.u8()?,
            mcs: r.array()?,
            extended: r.u16()?,
            beamforming: r.u32()?,
            antenna_selection: r.u8()?,
        })
    }

    fn length(&self) -> usize {
        28
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = start(out, Self::ID, self.length())?;
        w.u16(self.info);
        w.u8(self.ampdu);
        w.bytes(&self.mcs);
        w.u16(self.extended);
        w.u32(self.beamforming);
        w.u8(self.antenna_selection);
        Ok(w.finish())
    }
}

impl fmt::Display for HtCapabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.has(HtCapabilities::WIDTH_40) {
            40
        } else {
            20
        };
        write!(f, "HT capabilities={:#06x} ({width} MHz)", self.info)
    }
}

/// Where the second 20 MHz of a 40 MHz channel lie (IEEE 802.11-2016, Table 9-168).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SecondaryChannel {
    /// There are none.
    #[default]
    None,
    /// Above the primary channel: HT40+.
    Above,
    /// Below the primary channel: HT40-.
    Below,
}

/// HT operation (IEEE 802.11-2016, 9.4.2.57): 22 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct HtOperation {
    /// Number of the primary channel.
    pub primary_channel: u8,
    /// HT operation information, its 40 bits from the lowest on.
    pub info: [u8; 5],
    /// Basic HT-MCS set; bit i says that all members can receive MCS i.
    pub basic_mcs: [u8; 16],
}

impl HtOperation {
    /// Where the second 20 MHz lie; the reserved value 2 counts as none.
    pub const fn secondary(&self) -> SecondaryChannel {
        match self.info[0] & 3 {
            1 => SecondaryChannel::Above,
            3 => SecondaryChannel::Below,
            _ => SecondaryChannel::None,
        }
    }

    /// Stations may use any width they support, not 20 MHz alone.
    pub const fn any_width(&self) -> bool {
        self.info[0] & 4 != 0
    }

    /// HT protection, 0 to 3: none, non-member, 20 MHz, mixed mode (IEEE 802.11-2016, 10.26.3.1).
    pub const fn protection(&self) -> u8 {
        self.info[1] & 3
    }
}

impl<'a> Wire<'a> for HtOperation {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = body(octets, Self::ID)?;
        Ok(HtOperation {
            primary_channel: r.u8()?,
            info: r.array()?,
            basic_mcs: r.array()?,
        })
    }

    fn length(&self) -> usize {
        24
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = start(out, Self::ID, self.length())?;
        w.u8(self.primary_channel);
        w.bytes(&self.info);
        w.bytes(&self.basic_mcs);
        Ok(w.finish())
    }
}

impl fmt::Display for HtOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = match self.secondary() {
            SecondaryChannel::None => "HT20",
            SecondaryChannel::Above => "HT40+",
            SecondaryChannel::Below => "HT40-",
        };
        write!(f, "{width} on channel {}", self.primary_channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::tests::check;

    #[test]
    fn octets_of_the_standard() {
        let mut mcs = [0; 16];
        mcs[..2].copy_from_slice(&[0xff, 0xff]);
        let caps = HtCapabilities {
            info: 0x0862,
            ampdu: 0x17,
            mcs,
            extended: 0x0102,
            beamforming: 0x0403_0201,
            antenna_selection: 9,
        };
        #[rustfmt::skip]
        check(caps, &[
            45, 26, 0x62, 0x08, 0x17, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 1, 2, 3, 4, 9,
        ], "HT capabilities=0x0862 (40 MHz)");
        assert!(
            caps.has(HtCapabilities::WIDTH_40 | HtCapabilities::SHORT_GI_20 | HtCapabilities::SHORT_GI_40)
        );
        assert!(!caps.has(HtCapabilities::LDPC) && !caps.has(HtCapabilities::GREENFIELD));
        assert_eq!((caps.max_ampdu_octets(), caps.max_amsdu_octets()), (65_535, 7935));
        for i in 0..=31 {
            assert_eq!(caps.receives(Mcs::new(i).unwrap()), i < 16, "{i}");
        }
        let small = HtCapabilities::default();
        assert_eq!((small.max_ampdu_octets(), small.max_amsdu_octets()), (8191, 3839));

        let op = HtOperation {
            primary_channel: 36,
            info: [0x05, 0x03, 0, 0, 0],
            basic_mcs: [0; 16],
        };
        #[rustfmt::skip]
        check(op, &[
            61, 22, 36, 5, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ], "HT40+ on channel 36");
        assert!(op.any_width());
        assert_eq!((op.secondary(), op.protection()), (SecondaryChannel::Above, 3));
        let below = HtOperation {
            info: [3, 0, 0, 0, 0],
            ..op
        };
        assert_eq!(below.secondary(), SecondaryChannel::Below);
    }
}
