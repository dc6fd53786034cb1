//! A received frame, with what the hardware wrote around it: PLCP header (12 octets), MPDU with FCS, PHY status (20),
//! MAC status (4). In an A-MPDU only the first has the header, and only the last the PHY status.

use super::phy::{Modulation, from_plcp, to_plcp};
use frame::Rate;
use frame::fcs::{self, FCS_OCTETS};

/// Octets of the PLCP header.
pub const HEAD_OCTETS: usize = 12;
/// Octets of the PHY status.
pub const PHY_OCTETS: usize = 20;
/// Octets of the MAC status.
pub const MAC_OCTETS: usize = 4;
/// Octets of the shortest MPDU with FCS: an ACK.
pub const MIN_MPDU_OCTETS: usize = 14;
/// Octets around an MPDU (without FCS) that came alone.
pub const OVERHEAD_OCTETS: usize = HEAD_OCTETS + FCS_OCTETS + PHY_OCTETS + MAC_OCTETS;
/// A strength that the hardware did not measure.
const NO_STRENGTH: u8 = 0x80;
/// Place of the combined strength in the PHY status.
const COMBINED: usize = 6;
/// What the hardware writes as index of source and destination if no key is known.
const NO_KEY: u8 = 0x3f;

/// Where an MPDU is in its PPDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Alone.
    Single,
    /// Last of an A-MPDU.
    Last,
    /// First of one.
    First,
    /// Between.
    Middle,
}

/// Why a unit is no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RxError {
    /// Too short for what its status says.
    TooShort,
    /// The hardware says that it was not received well: error octet of the MAC status.
    Bad(u8),
}

/// A received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RxFrame<'a> {
    /// The MPDU without FCS.
    pub mpdu: &'a [u8],
    /// Its rate; `None` where the hardware did not say it, or says nonsense.
    pub rate: Option<Rate>,
    /// Strength above the noise floor in dB, where it was measured.
    pub above_noise_db: Option<u8>,
    /// Where it was.
    pub position: Position,
}

/// Bits of the error octet.
pub mod error {
    /// It took too long.
    pub const TIMEOUT: u8 = 0x01;
    /// There was no room for it.
    pub const OVERRUN: u8 = 0x02;
    /// It could not be decrypted.
    pub const DECRYPT: u8 = 0x04;
    /// Its FCS is wrong.
    pub const FCS: u8 = 0x08;
    /// It is for another receiver.
    pub const OTHER_RECEIVER: u8 = 0x10;
    /// Its PLCP header is wrong.
    pub const PLCP: u8 = 0x20;
    /// Its integrity code is wrong.
    pub const MIC: u8 = 0x40;
}

impl<'a> RxFrame<'a> {
    /// Reads a unit that is no block of responses. A frame for another receiver is a frame.
    ///
    /// # Errors
    /// [`RxError`].
    pub fn parse(unit: &'a [u8]) -> Result<RxFrame<'a>, RxError> {
        let (rest, mac) = unit.split_last_chunk::<MAC_OCTETS>().ok_or(RxError::TooShort)?;
        let [_, _, wrong, status] = *mac;
        let position = match status >> 4 & 3 {
            0 => Position::Single,
            1 => Position::Last,
            2 => Position::First,
            _ => Position::Middle,
        };
        let (head, rest) = match position {
            Position::Single | Position::First => {
                let (head, rest) = rest.split_first_chunk::<HEAD_OCTETS>().ok_or(RxError::TooShort)?;
                (Some(head), rest)
            }
            Position::Last | Position::Middle => (None, rest),
        };
        let (mpdu, phy) = match position {
            Position::Single | Position::Last => {
                let (mpdu, phy) = rest.split_last_chunk::<PHY_OCTETS>().ok_or(RxError::TooShort)?;
                (mpdu, Some(phy))
            }
            Position::First | Position::Middle => (rest, None),
        };
        if mpdu.len() < MIN_MPDU_OCTETS {
            return Err(RxError::TooShort);
        }
        if wrong & !error::OTHER_RECEIVER != 0 {
            return Err(RxError::Bad(wrong));
        }
        let rate = |head| from_plcp(head, Modulation::from_bits(status), status & 8 != 0);
        Ok(RxFrame {
            mpdu: &mpdu[..mpdu.len() - FCS_OCTETS],
            rate: head.and_then(rate),
            above_noise_db: phy.map(|p| p[COMBINED]).filter(|s| *s != NO_STRENGTH),
            position,
        })
    }

    /// Writes it as one that came alone, with its FCS, and tells the octets; `None` without room or rate.
    pub fn emit(&self, other_receiver: bool, out: &mut [u8]) -> Option<usize> {
        let octets = self.mpdu.len() + FCS_OCTETS;
        let all = self.mpdu.len() + OVERHEAD_OCTETS;
        let out = out.get_mut(..all)?;
        let (head, modulation, short) = to_plcp(self.rate?, u16::try_from(octets).ok()?);
        out[..HEAD_OCTETS].copy_from_slice(&head);
        let end = HEAD_OCTETS + octets;
        out[HEAD_OCTETS..end - FCS_OCTETS].copy_from_slice(self.mpdu);
        fcs::append(&mut out[HEAD_OCTETS..end], self.mpdu.len()).ok()?;
        out[end..end + PHY_OCTETS].fill(0);
        out[end + COMBINED] = self.above_noise_db.unwrap_or(NO_STRENGTH);
        let wrong = if other_receiver { error::OTHER_RECEIVER } else { 0 };
        let status = modulation as u8 | u8::from(short) << 3;
        out[end + PHY_OCTETS..].copy_from_slice(&[NO_KEY, NO_KEY, wrong, status]);
        Some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MPDU: [u8; 30] = [0x08; 30];

    fn frame(rate: &str) -> RxFrame<'static> {
        RxFrame {
            mpdu: &MPDU,
            rate: Rate::parse(rate),
            above_noise_db: Some(45),
            position: Position::Single,
        }
    }

    #[test]
    fn there_and_back() {
        for rate in ["1M", "2Ms", "11M", "6M", "54M", "mcs7/20", "mcs15/40s"] {
            for above_noise_db in [None, Some(0), Some(70)] {
                let f = RxFrame {
                    above_noise_db,
                    ..frame(rate)
                };
                let mut out = [0xee; 100];
                let n = f.emit(false, &mut out).unwrap();
                assert_eq!(n, 30 + OVERHEAD_OCTETS);
                assert_eq!(RxFrame::parse(&out[..n]), Ok(f));
            }
        }
        assert_eq!(frame("1M").emit(false, &mut [0; 69]), None);
    }

    /// 54 Mb/s, 30 octets and FCS: each field where the hardware has it.
    #[test]
    fn golden_octets() {
        let mut out = [0; 70];
        frame("54M").emit(true, &mut out).unwrap();
        assert_eq!(out[..3], [0x0c, 34, 0]);
        assert_eq!(fcs::check(&out[12..46]), Ok(&MPDU[..]));
        assert_eq!(out[46 + 6], 45);
        assert_eq!(out[66..], [0x3f, 0x3f, 0x10, 0x01]);
    }

    #[test]
    fn parts_of_aggregates() {
        let mut out = [0; 70];
        let n = frame("mcs3/20").emit(false, &mut out).unwrap();
        let with = |range: core::ops::Range<usize>, position: u8| {
            let mut unit = out[range].to_vec();
            unit.extend([0x3f, 0x3f, 0, 2 | position << 4]);
            let f = RxFrame::parse(&unit).unwrap();
            (f.mpdu.len(), f.rate.is_some(), f.above_noise_db.is_some())
        };
        let (phy, mac) = (n - 24, n - 4);
        assert_eq!(with(0..phy, 2), (30, true, false), "first");
        assert_eq!(with(12..phy, 3), (30, false, false), "middle");
        assert_eq!(with(12..mac, 1), (30, false, true), "last");
    }

    #[test]
    fn what_is_no_frame() {
        let mut out = [0; 70];
        let n = frame("6M").emit(false, &mut out).unwrap();
        for short in 0..HEAD_OCTETS + MIN_MPDU_OCTETS + PHY_OCTETS + MAC_OCTETS {
            let octets = std::vec![0; short];
            assert_eq!(RxFrame::parse(&octets), Err(RxError::TooShort));
        }
        out[n - 2] = error::FCS | error::OTHER_RECEIVER;
        assert_eq!(RxFrame::parse(&out[..n]), Err(RxError::Bad(0x18)));
        out[n - 2] = 0;
        out[0] = 0xf0;
        assert_eq!(RxFrame::parse(&out[..n]).unwrap().rate, None);
    }
}
