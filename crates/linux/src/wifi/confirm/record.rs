//! A record of `/dev/sdmac`: what the kernel module tells of a frame. Its layout is that of `struct sdmac_record` in
//! `kernel/sdmac_confirm.h`, in the byte order of the computer.

use frame::Rate;
use frame::rate::{DsssRate, GuardInterval, Preamble, Width};
use radio::{Instant, Plane, Stamps};

/// The version that is read here.
pub const VERSION: u16 = 1;
/// Octets of a record.
pub const OCTETS: usize = 160;
/// Octets of a frame that are told: all addresses but the fourth, and the sequence number.
pub(in crate::wifi) const HEAD: usize = 24;
const SERIES: usize = 4;
const NAME: usize = 16;
const PLANES: usize = 7;

const ACKED: u16 = 1;
const NOACK_SENT: u16 = 2;
const MARKED: u16 = 4;

/// Bits of `flags` of a series (enum mac80211_rate_control_flags in net/mac80211.h).
const SHORT_PREAMBLE: u16 = 1 << 2;
const MCS: u16 = 1 << 3;
const GREENFIELD: u16 = 1 << 4;
const MHZ_40: u16 = 1 << 5;
const SHORT_GUARD: u16 = 1 << 7;
const VHT: u16 = 1 << 8;

/// A rate, and how often it was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// Index in the band's list of rates, or MCS.
    pub index: u8,
    /// Frames on the air.
    pub tries: u8,
    /// As mac80211 has them.
    pub flags: u16,
    /// Of a legacy rate, in 100 kb/s; else 0.
    pub rate_100k: u16,
}

impl Tried {
    /// The rate; `None` if it is none that this project knows (VHT, greenfield).
    pub fn rate(&self) -> Option<Rate> {
        let has = |bit| self.flags & bit != 0;
        if has(VHT) || has(GREENFIELD) {
            return None;
        }
        if has(MCS) {
            let width = if has(MHZ_40) { Width::Mhz40 } else { Width::Mhz20 };
            let guard = if has(SHORT_GUARD) {
                GuardInterval::Short
            } else {
                GuardInterval::Long
            };
            return Rate::ht(self.index, width, guard);
        }
        let units = u8::try_from(self.rate_100k / 5).ok()?;
        match Rate::from_500kbps(units)? {
            Rate::Dsss(rate, _) if has(SHORT_PREAMBLE) && rate != DsssRate::R1 => {
                Some(Rate::Dsss(rate, Preamble::Short))
            }
            rate => Some(rate),
        }
    }
}

/// What the module tells of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Records that the ring of this open file had no room for, so far, wrapping.
    pub lost: u32,
    /// Number among the frames that the module has followed, from 1.
    pub number: u64,
    /// SO_MARK of the socket that sent it; `None` if it was not seen on its way from one.
    pub mark: Option<u32>,
    /// An ACK came.
    pub acked: bool,
    /// It was sent without asking for one.
    pub sent_without_ack: bool,
    /// Octets of the frame without FCS.
    pub length: u16,
    /// Rates and tries, in order.
    pub series: [Option<Tried>; SERIES],
    /// The frame's first octets; zeroes behind a shorter one.
    pub head: [u8; HEAD],
    wiphy: [u8; NAME],
    planes_ns: [u64; PLANES],
}

/// Why octets are no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// Too few.
    #[error("{0} octets of /dev/sdmac are no whole record of {OCTETS}")]
    Short(usize),
    /// Another version, or another size.
    #[error(
        "the module sdmac_confirm that is loaded tells records of version {version} with {size} octets, and this sdmac \
         reads version {VERSION} with {OCTETS}: load the module that belongs to it"
    )]
    Version {
        /// Of the record.
        version: u16,
        /// Its octets.
        size: u16,
    },
}

impl Record {
    /// Reads a record from the first [`OCTETS`].
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn parse(octets: &[u8]) -> Result<Record, RecordError> {
        let mut read = Fields(octets.get(..OCTETS).ok_or(RecordError::Short(octets.len()))?);
        let (version, size) = (read.u16(), read.u16());
        if (version, usize::from(size)) != (VERSION, OCTETS) {
            return Err(RecordError::Version { version, size });
        }
        let (lost, number, mark) = (read.u32(), read.u64(), read.u32());
        let (flags, length) = (read.u16(), read.u16());
        let wiphy = read.take();
        let mut series = [None; SERIES];
        let mut ended = false;
        for one in &mut series {
            let [index, tries] = read.take();
            let (flags, rate_100k, _) = (read.u16(), read.u16(), read.u16());
            ended |= index.cast_signed() < 0 || tries == 0;
            if !ended {
                *one = Some(Tried {
                    index,
                    tries,
                    flags,
                    rate_100k,
                });
            }
        }
        Ok(Record {
            lost,
            number,
            mark: (flags & MARKED != 0).then_some(mark),
            acked: flags & ACKED != 0,
            sent_without_ack: flags & NOACK_SENT != 0,
            length,
            series,
            wiphy,
            head: read.take(),
            planes_ns: std::array::from_fn(|_| read.u64()),
        })
    }

    /// Writes it as the module does.
    pub fn emit(&self) -> [u8; OCTETS] {
        let mut octets = Vec::with_capacity(OCTETS);
        octets.extend(VERSION.to_ne_bytes());
        octets.extend((OCTETS as u16).to_ne_bytes());
        octets.extend(self.lost.to_ne_bytes());
        octets.extend(self.number.to_ne_bytes());
        octets.extend(self.mark.unwrap_or(0).to_ne_bytes());
        let bits = [
            (self.acked, ACKED),
            (self.sent_without_ack, NOACK_SENT),
            (self.mark.is_some(), MARKED),
        ];
        let flags = bits
            .iter()
            .filter(|(set, _)| *set)
            .fold(0, |all, (_, bit)| all | bit);
        octets.extend(flags.to_ne_bytes());
        octets.extend(self.length.to_ne_bytes());
        octets.extend(self.wiphy);
        for series in self.series {
            octets.extend(series.map_or([0xff, 0], |s| [s.index, s.tries]));
            octets.extend(series.map_or(0, |s| s.flags).to_ne_bytes());
            octets.extend(series.map_or(0, |s| s.rate_100k).to_ne_bytes());
            octets.extend([0; 2]);
        }
        octets.extend(self.head);
        octets.extend(self.planes_ns.iter().flat_map(|ns| ns.to_ne_bytes()));
        octets.resize(OCTETS, 0);
        octets.try_into().expect("it has this length now")
    }

    /// Whether it is about a frame of the radio with this name. Of longer names the first 15 octets are compared.
    pub fn is_of(&self, radio: &str) -> bool {
        let told = self.wiphy.split(|octet| *octet == 0).next().unwrap_or_default();
        let name = radio.as_bytes();
        told == &name[..name.len().min(NAME - 1)]
    }

    /// Frames on the air, all series together.
    pub fn attempts(&self) -> u16 {
        self.series.iter().flatten().map(|s| u16::from(s.tries)).sum()
    }

    /// The series of the last attempt, if there was one.
    pub fn last(&self) -> Option<&Tried> {
        self.series.iter().flatten().last()
    }

    /// The planes that were seen.
    pub fn stamps(&self) -> Stamps {
        let mut stamps = Stamps::NONE;
        for (plane, ns) in Plane::ALL[1..=PLANES].iter().zip(self.planes_ns) {
            if ns > 0 {
                stamps.host(*plane, Instant::from_ns(ns));
            }
        }
        stamps
    }
}

/// What is left to read of a record; there is enough.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("the layout has OCTETS octets");
        self.0 = rest;
        *first
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

#[cfg(test)]
pub(in crate::wifi) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in crate::wifi) fn example() -> Record {
        let series = |index, tries, rate_100k| {
            Some(Tried {
                index,
                tries,
                flags: 0,
                rate_100k,
            })
        };
        let mut wiphy = [0; NAME];
        wiphy[..4].copy_from_slice(b"phy1");
        Record {
            lost: 3,
            number: 77,
            mark: Some(0xdead_beef),
            acked: true,
            sent_without_ack: false,
            length: 31,
            series: [series(4, 3, 60), series(0, 2, 10), None, None],
            head: std::array::from_fn(|i| i as u8),
            wiphy,
            planes_ns: [1_000, 2_000, 0, 4_000, 5_000, 6_000, 7_000],
        }
    }

    #[test]
    fn a_record_as_the_module_writes_it() {
        let record = example();
        let octets = record.emit();
        if cfg!(target_endian = "little") {
            assert_eq!(octets[..8], [1, 0, 160, 0, 3, 0, 0, 0]);
            assert_eq!(octets[16..24], [0xef, 0xbe, 0xad, 0xde, 5, 0, 31, 0]);
            assert_eq!(&octets[24..29], b"phy1\0");
            assert_eq!(octets[40..48], [4, 3, 0, 0, 60, 0, 0, 0]);
            assert_eq!(octets[56..58], [0xff, 0]);
            assert_eq!(octets[96..104], 1_000_u64.to_le_bytes());
        }
        assert_eq!(Record::parse(&octets), Ok(record));
        assert_eq!(
            (record.attempts(), record.last().unwrap().rate()),
            (5, Some(Rate::DSSS_1))
        );
        let stamps = record.stamps();
        assert_eq!((stamps.count(), stamps.get_host(Plane::T4)), (6, None));
        assert_eq!(stamps.get_host(Plane::T8), Some(Instant::from_ns(7_000)));
        assert!(record.is_of("phy1") && !record.is_of("phy10") && !record.is_of("phy"));
    }

    #[test]
    fn rates_are_those_that_mac80211_means() {
        let of = |index, flags, rate_100k| {
            Tried {
                index,
                tries: 1,
                flags,
                rate_100k,
            }
            .rate()
        };
        assert_eq!(of(11, 0, 540), Some(Rate::OFDM_54));
        assert_eq!(of(2, 0, 55), Rate::parse("5.5M"));
        assert_eq!(of(7, MCS | SHORT_GUARD, 0), Rate::parse("mcs7/20s"));
        assert_eq!(of(7, MCS | MHZ_40, 0), Rate::parse("mcs7/40"));
        assert_eq!((of(7, VHT, 0), of(90, MCS, 0), of(0, 0, 0)), (None, None, None));
    }

    #[test]
    fn another_version_is_told_from_a_short_read() {
        let mut octets = example().emit();
        assert_eq!(
            Record::parse(&octets[..OCTETS - 1]),
            Err(RecordError::Short(OCTETS - 1))
        );
        octets[..2].copy_from_slice(&2_u16.to_ne_bytes());
        let error = Record::parse(&octets).unwrap_err();
        assert!(error.to_string().contains("version 2"), "{error}");
    }

    proptest! {
        /// No panic, and what is read is written again but for what means nothing.
        #[test]
        fn any_octets_are_read_and_come_back(mut octets in proptest::collection::vec(any::<u8>(), 0..200), whole: bool) {
            if whole && octets.len() >= OCTETS {
                octets[..2].copy_from_slice(&VERSION.to_ne_bytes());
                octets[2..4].copy_from_slice(&(OCTETS as u16).to_ne_bytes());
                prop_assert!(Record::parse(&octets).is_ok());
            }
            if let Ok(record) = Record::parse(&octets) {
                prop_assert_eq!(Record::parse(&record.emit()), Ok(record));
                let _ = (record.attempts(), record.stamps(), record.is_of("phy0"), record.last().map(Tried::rate));
            }
        }
    }
}
