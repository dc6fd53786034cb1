//! The fields of radiotap: one table with bit, type, alignment and size of each.
//!
//! Source: radiotap.org, "Defined Fields". All numbers are little-endian; each field is aligned to its natural
//! boundary, counted from the first octet of the radiotap header.

use crate::error::ParseError;
use crate::phy::Band;
use crate::rate::Rate;
use crate::wire::{Reader, Writer};

/// Frequency and kind of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Channel {
    /// Centre frequency in MHz.
    pub mhz: u16,
    /// [`Channel::GHZ_5`] and so on.
    pub flags: u16,
}

impl Channel {
    /// DSSS or HR-DSSS.
    pub const CCK: u16 = 0x0020;
    /// OFDM.
    pub const OFDM: u16 = 0x0040;
    /// 2.4 GHz.
    pub const GHZ_2_4: u16 = 0x0080;
    /// 5 GHz.
    pub const GHZ_5: u16 = 0x0100;

    /// Channel `number` of a band (IEEE 802.11-2016, 15.4.4.3 and 17.3.8.4.2), with the flags for a frame at `rate`.
    /// `None` outside of 1 to 14 at 2.4 GHz, and of 32 to 177 at 5 GHz.
    pub const fn of(band: Band, number: u8, rate: Rate) -> Option<Channel> {
        let (mhz, spectrum) = match (band, number) {
            (Band::Ghz2_4, 1..=13) => (2407 + 5 * number as u16, Channel::GHZ_2_4),
            (Band::Ghz2_4, 14) => (2484, Channel::GHZ_2_4),
            (Band::Ghz5, 32..=177) => (5000 + 5 * number as u16, Channel::GHZ_5),
            _ => return None,
        };
        let modulation = match rate {
            Rate::Dsss(..) => Channel::CCK,
            Rate::Ofdm(_) | Rate::Ht(..) => Channel::OFDM,
        };
        Some(Channel {
            mhz,
            flags: spectrum | modulation,
        })
    }
}

/// Frequency hopping, obsolete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Fhss {
    /// Hop set.
    pub set: u8,
    /// Hop pattern.
    pub pattern: u8,
}

/// Extended channel, as some BSD drivers report it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct XChannel {
    /// Kind.
    pub flags: u32,
    /// Frequency in MHz.
    pub mhz: u16,
    /// Number.
    pub number: u8,
    /// Highest power in units of 0.5 dBm.
    pub max_power: u8,
}

/// HT rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Mcs {
    /// Which of the following bits mean something: [`Mcs::KNOWN_INDEX`] and so on.
    pub known: u8,
    /// Bits 0 and 1 the bandwidth (1: 40 MHz), then [`Mcs::SHORT_GI`] and so on.
    pub flags: u8,
    /// MCS index.
    pub index: u8,
}

impl Mcs {
    /// The bandwidth is known.
    pub const KNOWN_BANDWIDTH: u8 = 0x01;
    /// The index is known; without it Linux does not take the rate of a frame to send.
    pub const KNOWN_INDEX: u8 = 0x02;
    /// The guard interval is known.
    pub const KNOWN_GI: u8 = 0x04;
    /// Mixed or greenfield format is known.
    pub const KNOWN_FORMAT: u8 = 0x08;
    /// The coding is known.
    pub const KNOWN_CODING: u8 = 0x10;
    /// The STBC streams are known.
    pub const KNOWN_STBC: u8 = 0x20;
    /// Mask of the bandwidth: 0 is 20, 1 is 40, 2 and 3 are 20 MHz in the lower and upper half.
    pub const BANDWIDTH: u8 = 0x03;
    /// Short guard interval.
    pub const SHORT_GI: u8 = 0x04;
    /// Greenfield format.
    pub const GREENFIELD: u8 = 0x08;
    /// LDPC.
    pub const LDPC: u8 = 0x10;
    /// Mask of the number of STBC streams.
    pub const STBC: u8 = 0x60;
}

/// Which A-MPDU a frame came in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Ampdu {
    /// The same number for all frames of one A-MPDU.
    pub reference: u32,
    /// What is known.
    pub flags: u16,
    /// CRC of the delimiter.
    pub crc: u8,
}

/// VHT rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Vht {
    /// Which fields mean something: 0x0004 guard interval, 0x0040 bandwidth.
    pub known: u16,
    /// 0x01 STBC, 0x04 short guard interval.
    pub flags: u8,
    /// 0: 20 MHz, 1: 40, 4: 80, 11: 160.
    pub bandwidth: u8,
    /// For each of four users the MCS (upper four bits) and the number of streams (lower four bits; 0: no user).
    pub mcs_streams: [u8; 4],
    /// Bit i: user i has LDPC.
    pub coding: u8,
    /// Group ID.
    pub group_id: u8,
    /// Partial AID.
    pub partial_aid: u16,
}

/// A time with its unit and position, for frames whose time is not a TSF.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Timestamp {
    /// Time in the unit.
    pub value: u64,
    /// Accuracy in the unit.
    pub accuracy: u16,
    /// Lower four bits: unit (0: ms, 1: us, 2: ns); upper four bits: which point of the frame.
    pub unit_position: u8,
    /// 0x01: a 32 bit counter; 0x02: the accuracy is known.
    pub flags: u8,
}

/// A type with a place in radiotap.
trait Value: Sized {
    fn read(r: &mut Reader<'_>) -> Result<Self, ParseError>;
    fn write(&self, w: &mut Writer<'_>);
}

macro_rules! values {
    ($($type:ty: $read:expr, $write:expr;)*) => {
        $(
            impl Value for $type {
                fn read(r: &mut Reader<'_>) -> Result<Self, ParseError> {
                    $read(r)
                }

                fn write(&self, w: &mut Writer<'_>) {
                    $write(w, *self);
                }
            }
        )*
    };
    ($($type:ident { $($field:ident: $of:ty,)* } pad $pad:literal)*) => {
        $(
            impl Value for $type {
                fn read(r: &mut Reader<'_>) -> Result<Self, ParseError> {
                    Ok($type { $($field: <$of>::read(r)?,)* })
                }

                fn write(&self, w: &mut Writer<'_>) {
                    $(self.$field.write(w);)*
                    w.bytes(&[0; $pad]);
                }
            }
        )*
    };
}

values! {
    u8: Reader::u8, Writer::u8;
    u16: Reader::u16, Writer::u16;
    u32: Reader::u32, Writer::u32;
    u64: Reader::u64, Writer::u64;
    i8: |r: &mut Reader<'_>| r.u8().map(u8::cast_signed), |w: &mut Writer<'_>, v: i8| w.u8(v.cast_unsigned());
}

values! {
    Channel { mhz: u16, flags: u16, } pad 0
    Fhss { set: u8, pattern: u8, } pad 0
    XChannel { flags: u32, mhz: u16, number: u8, max_power: u8, } pad 0
    Mcs { known: u8, flags: u8, index: u8, } pad 0
    Ampdu { reference: u32, flags: u16, crc: u8, } pad 1
    Vht {
        known: u16,
        flags: u8,
        bandwidth: u8,
        mcs_streams: [u8; 4],
        coding: u8,
        group_id: u8,
        partial_aid: u16,
    } pad 0
    Timestamp { value: u64, accuracy: u16, unit_position: u8, flags: u8, } pad 0
}

impl<const N: usize> Value for [u8; N] {
    fn read(r: &mut Reader<'_>) -> Result<Self, ParseError> {
        r.array()
    }

    fn write(&self, w: &mut Writer<'_>) {
        w.bytes(self);
    }
}

macro_rules! table {
    ($($(#[$doc:meta])* $bit:literal $name:ident $variant:ident($type:ty) align $align:literal size $size:literal,)*) => {
        /// One field as it was found in a header.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Field {
            $($(#[$doc])* $variant($type),)*
        }

        /// The fields of one header, each at most once, in the order of the header.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct Radiotap {
            $($(#[$doc])* pub $name: Option<$type>,)*
        }

        impl Field {
            /// Reads the field of a present bit.
            pub(super) fn read(bit: u32, octets: &[u8]) -> Option<Field> {
                let r = &mut Reader::new(octets);
                match bit {
                    $($bit => <$type>::read(r).ok().map(Field::$variant),)*
                    _ => None,
                }
            }
        }

        /// Alignment and size of the field of a present bit; `None` for bits without a definition.
        pub(super) const fn align_and_size(bit: u32) -> Option<(usize, usize)> {
            match bit {
                $($bit => Some(($align, $size)),)*
                _ => None,
            }
        }

        impl Radiotap {
            /// The present word.
            pub(super) fn present(&self) -> u32 {
                0 $(| u32::from(self.$name.is_some()) << $bit)*
            }

            /// Takes over a field that was found, if it is the first of its kind.
            pub(super) fn take(&mut self, field: Field) {
                match field {
                    $(Field::$variant(value) => {
                        self.$name.get_or_insert(value);
                    })*
                }
            }

            /// Writes the fields that there are, each behind its padding.
            pub(super) fn write(&self, w: &mut Writer<'_>) {
                $(if let Some(value) = &self.$name {
                    w.align($align);
                    value.write(w);
                })*
            }
        }
    };
}

table! {
    /// TSF when the first bit of the MPDU arrived, in microseconds.
    0 tsft_us TsftUs(u64) align 8 size 8,
    /// Properties of the frame: [`Radiotap::FLAG_FCS`] and so on.
    1 flags Flags(u8) align 1 size 1,
    /// Legacy rate in units of 500 kb/s.
    2 rate_500kbps Rate500kbps(u8) align 1 size 1,
    /// Channel.
    3 channel Channel(Channel) align 2 size 4,
    /// Frequency hopping.
    4 fhss Fhss(Fhss) align 2 size 2,
    /// Signal power in dBm.
    5 signal_dbm SignalDbm(i8) align 1 size 1,
    /// Noise power in dBm.
    6 noise_dbm NoiseDbm(i8) align 1 size 1,
    /// Barker lock quality.
    7 lock_quality LockQuality(u16) align 2 size 2,
    /// Transmit power as distance from the maximum, without unit.
    8 tx_attenuation TxAttenuation(u16) align 2 size 2,
    /// Transmit power as distance from the maximum in dB.
    9 tx_attenuation_db TxAttenuationDb(u16) align 2 size 2,
    /// Transmit power in dBm.
    10 tx_power_dbm TxPowerDbm(i8) align 1 size 1,
    /// Number of the antenna, from 0.
    11 antenna Antenna(u8) align 1 size 1,
    /// Signal in dB from an arbitrary reference.
    12 signal_db SignalDb(u8) align 1 size 1,
    /// Noise in dB from an arbitrary reference.
    13 noise_db NoiseDb(u8) align 1 size 1,
    /// Properties of a received frame: [`Radiotap::RX_BAD_PLCP`].
    14 rx_flags RxFlags(u16) align 2 size 2,
    /// Properties of a sent frame or of one to send: [`Radiotap::TX_NO_ACK`] and so on.
    15 tx_flags TxFlags(u16) align 2 size 2,
    /// RTS frames sent in vain, or how many may be.
    16 rts_retries RtsRetries(u8) align 1 size 1,
    /// Transmissions after the first, or how many there may be.
    17 data_retries DataRetries(u8) align 1 size 1,
    /// Extended channel.
    18 xchannel XChannel(XChannel) align 4 size 8,
    /// HT rate.
    19 mcs Mcs(Mcs) align 1 size 3,
    /// A-MPDU status.
    20 ampdu Ampdu(Ampdu) align 4 size 8,
    /// VHT rate.
    21 vht Vht(Vht) align 2 size 12,
    /// Time with a unit.
    22 timestamp Timestamp(Timestamp) align 8 size 12,
    /// HE rate, six words of 16 bits.
    23 he He([u8; 12]) align 2 size 12,
    /// HE multi-user rate.
    24 he_mu HeMu([u8; 12]) align 2 size 12,
    /// The other users of an HE multi-user frame.
    25 he_other_user HeOtherUser([u8; 6]) align 2 size 6,
    /// Kind of a PPDU without a frame.
    26 zero_length_psdu ZeroLengthPsdu(u8) align 1 size 1,
    /// L-SIG: what is known, rate and length.
    27 l_sig LSig([u8; 4]) align 2 size 4,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table's sizes are those of the types.
    #[test]
    fn sizes_agree() {
        let octets = [0xa5; 16];
        for bit in 0..32 {
            let Some((align, size)) = align_and_size(bit) else {
                assert!(bit >= 28);
                continue;
            };
            assert!(align.is_power_of_two() && align <= 8);
            assert!(Field::read(bit, &octets[..size]).is_some(), "bit {bit}");
            let mut r = Radiotap::default();
            r.take(Field::read(bit, &octets).unwrap());
            assert_eq!(r.present(), 1 << bit);
            let mut out = [0; 16];
            let mut w = Writer::new(&mut out, size).unwrap();
            r.write(&mut w);
            assert_eq!(w.finish(), size);
            // only the reserved octet of the A-MPDU status is not copied
            let copied = if bit == 20 { 7 } else { size };
            assert_eq!(out[..copied], octets[..copied]);
            let fewer = if bit == 20 { size - 2 } else { size - 1 };
            assert!(Field::read(bit, &octets[..fewer]).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn channels() {
        let mhz = |band, n| Channel::of(band, n, Rate::OFDM_6).map(|c| c.mhz);
        assert_eq!(
            [mhz(Band::Ghz2_4, 1), mhz(Band::Ghz2_4, 13), mhz(Band::Ghz2_4, 14)],
            [Some(2412), Some(2472), Some(2484)]
        );
        assert_eq!(
            [mhz(Band::Ghz5, 36), mhz(Band::Ghz5, 165)],
            [Some(5180), Some(5825)]
        );
        assert_eq!(
            [mhz(Band::Ghz2_4, 0), mhz(Band::Ghz2_4, 15), mhz(Band::Ghz5, 6)],
            [None; 3]
        );
        assert_eq!(Channel::of(Band::Ghz2_4, 6, Rate::DSSS_1).unwrap().flags, 0x00a0);
        assert_eq!(Channel::of(Band::Ghz5, 36, Rate::OFDM_6).unwrap().flags, 0x0140);
    }
}
