//! The traffic indication map.

use core::fmt;

use crate::element::{ElementType, body, start};
use crate::error::{EmitError, ParseError};
use crate::wire::Wire;

/// Traffic indication map (IEEE 802.11-2016, 9.4.2.6): for whom an access point has buffered frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tim<'a> {
    /// Beacons until the next DTIM; 0: this beacon is one.
    pub dtim_count: u8,
    /// Beacons from DTIM to DTIM; 0 is reserved.
    pub dtim_period: u8,
    /// Group traffic follows this beacon.
    pub group_traffic: bool,
    /// Octets of zeroes left out before `bitmap`, in pairs: 0 to 127.
    pub offset: u8,
    /// One bit for each AID, starting with AID 16 `offset`, lowest bit first: 1 to 251 octets.
    pub bitmap: &'a [u8],
}

impl Tim<'_> {
    /// Whether frames wait for the station with this association identifier (1 to 2007).
    pub fn has_traffic(&self, aid: u16) -> bool {
        let octet = usize::from(aid / 8).checked_sub(2 * usize::from(self.offset));
        octet
            .and_then(|i| self.bitmap.get(i))
            .is_some_and(|bits| bits & 1 << (aid % 8) != 0)
    }
}

impl<'a> Wire<'a> for Tim<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = body(octets, Self::ID)?;
        let (dtim_count, dtim_period, control) = (r.u8()?, r.u8()?, r.u8()?);
        let bitmap = r.rest();
        match bitmap.len() {
            0 => Err(ParseError::Truncated),
            1..=251 => Ok(Tim {
                dtim_count,
                dtim_period,
                group_traffic: control & 1 != 0,
                offset: control >> 1,
                bitmap,
            }),
            _ => Err(ParseError::BadValue),
        }
    }

    fn length(&self) -> usize {
        5 + self.bitmap.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        if self.offset > 127 || !(1..=251).contains(&self.bitmap.len()) {
            return Err(EmitError::BadValue);
        }
        let mut w = start(out, Self::ID, self.length())?;
        w.u8(self.dtim_count);
        w.u8(self.dtim_period);
        w.u8(self.offset << 1 | u8::from(self.group_traffic));
        w.bytes(self.bitmap);
        Ok(w.finish())
    }
}

impl fmt::Display for Tim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = if self.group_traffic { ", group traffic" } else { "" };
        write!(f, "DTIM {} of {}{group}", self.dtim_count, self.dtim_period)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::element::tests::check;
    use std::{vec, vec::Vec};

    #[test]
    fn octets_of_the_standard() {
        // the maps of IEEE 802.11-2016, annex L
        let tim = Tim {
            dtim_count: 0,
            dtim_period: 3,
            group_traffic: false,
            offset: 0,
            bitmap: &[0x84],
        };
        let group = Tim {
            group_traffic: true,
            bitmap: &[0x84, 0, 0x40, 0x01],
            ..tim
        };
        let later = Tim {
            dtim_count: 1,
            offset: 1,
            bitmap: &[0, 1],
            ..tim
        };
        check(tim, &[5, 4, 0, 3, 0, 0x84], "DTIM 0 of 3");
        check(
            group,
            &[5, 7, 0, 3, 1, 0x84, 0, 0x40, 0x01],
            "DTIM 0 of 3, group traffic",
        );
        check(later, &[5, 5, 1, 3, 2, 0, 1], "DTIM 1 of 3");
        let aids = |t: Tim<'_>| (0..=2007).filter(|a| t.has_traffic(*a)).collect::<Vec<u16>>();
        assert_eq!(
            [aids(tim), aids(group), aids(later)],
            [vec![2, 7], vec![2, 7, 22, 24], vec![24]]
        );
    }

    #[test]
    fn refusals() {
        assert_eq!(Tim::parse(&[5, 3, 0, 1, 0]), Err(ParseError::Truncated));
        let mut long = [0; 257];
        long[..2].copy_from_slice(&[5, 255]);
        assert_eq!(Tim::parse(&long), Err(ParseError::BadValue));
        let tim = Tim {
            dtim_count: 0,
            dtim_period: 1,
            group_traffic: false,
            offset: 128,
            bitmap: &[0],
        };
        assert_eq!(tim.emit(&mut long), Err(EmitError::BadValue));
        let empty = Tim {
            offset: 0,
            bitmap: &[],
            ..tim
        };
        assert_eq!(empty.emit(&mut long), Err(EmitError::BadValue));
    }
}
