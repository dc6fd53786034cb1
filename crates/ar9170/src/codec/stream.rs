//! What one transfer of ep 2 holds: a series of units, each a block of responses or one received frame.
//!
//! ```text
//! unit = length u16, tag 00 4e, payload, padding to a multiple of 4
//! payload = 12 x ff, responses      or      one received frame
//! ```
//!
//! [`Units`] walks the lengths. Where a length leads beyond the transfer or to something that has no tag, it looks for
//! the next block of responses by its pattern (a length below 256 with its tag, and twelve octets of 0xff) and goes on
//! there, so that damage costs what it hits and no more.
//!
//! A wrong length that happens to lead to the next tag but one, or to the end of the transfer, is believed: frames are not
//! searched for the pattern, or whoever sends one with the pattern in it could speak for the firmware. What is lost then
//! shows in the sequence numbers of the responses.
//!
//! What Contiki80211 did, for comparison: [`FirstHeader`] reads the response at the head of a transfer, and does not see those
//! that were grouped behind it; [`Search`] looks for the pattern at each octet of a read, and does not see what lies
//! across its end.

use super::response::{Response, Responses};
use super::{array, u16_at};

/// Octets before the payload of a unit.
pub const PREFIX_OCTETS: usize = 4;
/// The tag of a unit, as it is in the transfer.
pub const TAG: [u8; 2] = [0x00, 0x4e];
/// What a block of responses begins with.
pub const RESPONSE_MARK: [u8; 12] = [0xff; 12];
/// Octets of the longest transfer.
pub const MAX_TRANSFER_OCTETS: usize = 8_192;

/// One unit of a transfer.
#[derive(Clone, Copy, Debug)]
pub enum Unit<'a> {
    /// A block of responses.
    Responses(Responses<'a>),
    /// A received frame, with what the hardware wrote around it.
    Frame(&'a [u8]),
    /// Octets that are none of it; the walk has gone on behind them.
    Damaged(&'a [u8]),
}

/// The units of a transfer, one after the other.
#[derive(Clone, Debug)]
pub struct Units<'a> {
    rest: &'a [u8],
}

impl<'a> Units<'a> {
    /// Of a transfer of firmware that puts a prefix before each unit.
    pub const fn new(transfer: &'a [u8]) -> Units<'a> {
        Units { rest: transfer }
    }

    /// Where the pattern of a block of responses begins, at `from` or behind.
    fn find_block(&self, from: usize) -> Option<usize> {
        find_block(self.rest.get(from..)?).map(|at| from + at)
    }

    fn damaged(&mut self, until: Option<usize>) -> Unit<'a> {
        let (damaged, rest) = self.rest.split_at(until.unwrap_or(self.rest.len()));
        self.rest = rest;
        Unit::Damaged(damaged)
    }
}

/// Where the pattern of a block of responses begins. Blocks have up to 320 octets.
fn find_block(octets: &[u8]) -> Option<usize> {
    let is_block = |w: &[u8]| w[1] < 2 && w[2..4] == TAG && w[4..] == RESPONSE_MARK;
    octets
        .windows(PREFIX_OCTETS + RESPONSE_MARK.len())
        .position(is_block)
}

/// What a payload is.
fn unit(payload: &[u8]) -> Unit<'_> {
    match payload.strip_prefix(&RESPONSE_MARK) {
        Some(block) => Unit::Responses(Responses::new(block)),
        None => Unit::Frame(payload),
    }
}

impl<'a> Iterator for Units<'a> {
    type Item = Unit<'a>;

    fn next(&mut self) -> Option<Unit<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let length = u16_at(self.rest, 0).map(usize::from);
        let tagged = array(self.rest, 2) == Some(TAG);
        let Some(length) = length.filter(|n| tagged && *n > 0) else {
            let next = self.find_block(1);
            return Some(self.damaged(next));
        };
        let Some(payload) = self.rest.get(PREFIX_OCTETS..PREFIX_OCTETS + length) else {
            let next = self.find_block(1);
            return Some(self.damaged(next));
        };
        // a length that has swallowed a block behind it leads to no tag, or to no end
        let end = (PREFIX_OCTETS + length).next_multiple_of(4);
        let follows = self.rest.get(end..).unwrap_or_default();
        if !(follows.is_empty() || follows.get(2..4) == Some(&TAG[..]))
            && let Some(next) = self.find_block(PREFIX_OCTETS).filter(|next| *next < end)
        {
            return Some(self.damaged(Some(next)));
        }
        self.rest = follows;
        Some(unit(payload))
    }
}

/// Only the response at the head of a transfer; see the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct FirstHeader<'a>(pub &'a [u8]);

impl<'a> FirstHeader<'a> {
    /// The one response that it sees, if the transfer begins with any.
    pub fn response(&self) -> Option<Response<'a>> {
        let payload = self.0.get(PREFIX_OCTETS..)?;
        Responses::new(payload.strip_prefix(&RESPONSE_MARK)?).next()
    }
}

/// The blocks of responses that the pattern finds in a read, whatever is before them; see the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Search<'a>(pub &'a [u8]);

impl<'a> Iterator for Search<'a> {
    type Item = Responses<'a>;

    fn next(&mut self) -> Option<Responses<'a>> {
        loop {
            let found = self.0.get(find_block(self.0)?..)?;
            self.0 = found.get(1..)?;
            let length = u16_at(found, 0).map_or(0, usize::from);
            let block = found.get(PREFIX_OCTETS + RESPONSE_MARK.len()..PREFIX_OCTETS + length);
            if let Some(block) = block {
                return Some(Responses::new(block));
            }
        }
    }
}

/// Writes a unit at the beginning of `out` and tells its octets; `None` if there is no room, or nothing to write.
pub fn write_unit(payload: &[&[u8]], out: &mut [u8]) -> Option<usize> {
    let length: usize = payload.iter().map(|p| p.len()).sum();
    let end = (PREFIX_OCTETS + length).next_multiple_of(4);
    let out = out.get_mut(..end)?;
    out[..2].copy_from_slice(&u16::try_from(length).ok().filter(|n| *n > 0)?.to_le_bytes());
    out[2..4].copy_from_slice(&TAG);
    let mut at = PREFIX_OCTETS;
    for part in payload {
        out[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    out[at..].fill(0);
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn block(first: u8, count: u8) -> Vec<u8> {
        let mut body = Vec::new();
        (0..count).for_each(|i| body.extend([4, 0xc0, first + i, 0, 0, 0, 0, 0]));
        let mut out = [0; 320];
        let n = write_unit(&[&RESPONSE_MARK, &body], &mut out).unwrap();
        out[..n].to_vec()
    }

    fn frame(octets: usize) -> Vec<u8> {
        let mut out = [0; 320];
        let n = write_unit(&[&[0x0b; 200][..octets]], &mut out).unwrap();
        out[..n].to_vec()
    }

    fn sequences(transfer: &[u8]) -> Vec<u8> {
        let responses = Units::new(transfer).filter_map(|unit| match unit {
            Unit::Responses(block) => Some(block),
            _ => None,
        });
        responses.flatten().map(|r| r.sequence).collect()
    }

    /// The event that every stick begins with, and the answer to the first command.
    #[test]
    fn golden_transfers() {
        let mut boot = [0x10, 0, 0, 0x4e].to_vec();
        boot.extend([0xff; 12]);
        boot.extend([0, 0xcf, 0, 0]);
        let mut echo = [0x14, 0, 0, 0x4e].to_vec();
        echo.extend([0xff; 12]);
        echo.extend([4, 2, 1, 0, 0x23, 0x01, 0x11, 0x4a]);
        assert_eq!(sequences(&boot), [0]);
        assert_eq!(sequences(&echo), [1]);
        assert_eq!(sequences(&[boot.clone(), echo].concat()), [0, 1]);
        assert_eq!(FirstHeader(&boot).response().unwrap().code, 0xcf);
    }

    #[test]
    fn grouped_units_are_all_found() {
        let transfer = [
            block(0, 3),
            frame(41),
            block(3, 1),
            frame(50),
            frame(60),
            block(4, 2),
        ]
        .concat();
        assert_eq!(sequences(&transfer), [0, 1, 2, 3, 4, 5]);
        let frames = Units::new(&transfer).filter_map(|unit| match unit {
            Unit::Frame(f) => Some(f.len()),
            _ => None,
        });
        assert_eq!(frames.collect::<Vec<_>>(), [41, 50, 60]);
        assert_eq!(FirstHeader(&transfer).response().unwrap().sequence, 0);
        let searched = |read: &[u8]| Search(read).flatten().map(|r| r.sequence).collect::<Vec<_>>();
        assert_eq!(searched(&transfer), [0, 1, 2, 3, 4, 5]);
        assert_eq!(
            searched(&transfer[..transfer.len() - 1]),
            [0, 1, 2, 3],
            "across the end"
        );
        assert_eq!(searched(&transfer[1..]), [3, 4, 5]);
    }

    #[test]
    fn damage_costs_what_it_hits() {
        let parts = [block(0, 2), frame(61), block(2, 1), frame(44), block(3, 2)];
        let whole = parts.concat();
        let second = parts[0].len();
        for length in [0, 1, 7, 100, 200, 9_000_u16, 0xffff] {
            let mut transfer = whole.clone();
            transfer[second..second + 2].copy_from_slice(&length.to_le_bytes());
            assert_eq!(sequences(&transfer), [0, 1, 2, 3, 4], "the frame says {length}");
        }
        let mut no_tag = whole.clone();
        no_tag[second + 3] = 0;
        assert_eq!(sequences(&no_tag), [0, 1, 2, 3, 4]);
        let mut cut = whole.clone();
        cut.drain(second..second + 9);
        assert_eq!(sequences(&cut), [0, 1, 2, 3, 4]);
    }

    /// A block whose length takes two octets is found, too.
    #[test]
    fn a_long_block_behind_damage() {
        let mut transfer = [frame(61), block(0, 37), block(37, 1)].concat();
        assert!(block(0, 37).len() > 256);
        transfer[3] = 0;
        let all: Vec<u8> = (0..38).collect();
        assert_eq!(sequences(&transfer), all);
        let searched: Vec<_> = Search(&transfer).flatten().map(|r| r.sequence).collect();
        assert_eq!(searched, all);
    }

    /// A wrong length that leads exactly behind the next block swallows it, and the sequence numbers tell.
    #[test]
    fn a_length_that_leads_to_a_unit_is_believed() {
        let parts = [frame(61), block(0, 1), block(1, 1)];
        let mut transfer = parts.concat();
        let length = (parts[0].len() + parts[1].len() - PREFIX_OCTETS) as u16;
        transfer[..2].copy_from_slice(&length.to_le_bytes());
        assert_eq!(sequences(&transfer), [1]);
    }

    /// A frame with the pattern of a block in it is a frame, as long as lengths are right.
    #[test]
    fn a_frame_cannot_speak_for_the_firmware() {
        let mut unit = [0; 320];
        let octets = write_unit(&[&[8; 40], &block(0, 1), &[8; 40]], &mut unit).unwrap();
        let transfer = [&unit[..octets], &block(1, 1)].concat();
        assert_eq!(sequences(&transfer), [1]);
    }

    #[test]
    fn every_octet_is_in_one_unit() {
        let whole = [block(0, 2), frame(61), block(2, 1)].concat();
        for end in 0..whole.len() {
            let units = Units::new(&whole[..end]).count();
            assert!(units <= 3, "{units} units in {end} octets");
        }
    }

    #[test]
    fn no_room_and_nothing() {
        assert_eq!(write_unit(&[b"12345"], &mut [0; 11]), None);
        assert_eq!(write_unit(&[b"12345"], &mut [0; 12]), Some(12));
        assert_eq!(write_unit(&[], &mut [0; 12]), None);
    }
}
