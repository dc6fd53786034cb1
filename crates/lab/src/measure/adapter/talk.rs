//! What two measuring stations say to each other: numbered shots, the question which of them arrived, and the answer.
//!
//! Frames are plain data between stations, with LLC/SNAP and the EtherType for local experiments (IEEE 802-2014, 9.2.3).
//! After them come four octets that name this protocol, one for the kind, the number of the run, and the number of the shot
//! or of the block of answers.

use frame::llc::Snap;
use frame::mac::{Data, SequenceControl};
use frame::{MacAddr, Wire};

/// Local Experimental EtherType 1.
const ETHERTYPE: u16 = 0x88b5;
const MARK: [u8; 4] = *b"SDMm";
/// In place of a BSSID: a local address that no access point has.
const NETWORK: MacAddr = MacAddr([0x02, b'S', b'D', b'M', b'A', b'C']);
/// Octets of a payload without anything else.
pub const LEAST_OCTETS: usize = 13;
/// Octets of the longest payload.
pub const MOST_OCTETS: usize = 1_500;
/// Shots that one answer tells about.
pub const BLOCK: u32 = 8_000;
/// Largest number of a shot and one, so that nobody is made to keep more than 2 MiB for a run.
pub const MOST_SHOTS: u32 = 1 << 24;

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk<'a> {
    /// A measured frame.
    Shot {
        /// Its number, from 0.
        number: u32,
    },
    /// Which shots of this block arrived?
    Ask {
        /// Shots from `block * BLOCK`.
        block: u32,
    },
    /// These.
    Heard {
        /// As asked.
        block: u32,
        /// One bit for each shot, the lowest first.
        bits: &'a [u8],
    },
}

/// Who says something, in which run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Said<'a> {
    /// Chosen by the station that shoots.
    pub run: u32,
    /// From whom.
    pub from: MacAddr,
    /// To whom.
    pub to: MacAddr,
    /// What.
    pub talk: Talk<'a>,
}

impl Said<'_> {
    /// Writes the frame, with a payload of `octets` at least and this sequence number; gives its length. `None` if there is
    /// no room.
    pub fn emit(&self, octets: usize, sequence: u16, out: &mut [u8]) -> Option<usize> {
        let (kind, number, bits): (u8, u32, &[u8]) = match self.talk {
            Talk::Shot { number } => (0, number, &[]),
            Talk::Ask { block } => (1, block, &[]),
            Talk::Heard { block, bits } => (2, block, bits),
        };
        let mut payload = [0; MOST_OCTETS];
        let length = octets.max(LEAST_OCTETS + bits.len());
        let payload = payload.get_mut(..length)?;
        payload[..4].copy_from_slice(&MARK);
        payload[4] = kind;
        payload[5..9].copy_from_slice(&self.run.to_be_bytes());
        payload[9..LEAST_OCTETS].copy_from_slice(&number.to_be_bytes());
        payload[LEAST_OCTETS..LEAST_OCTETS + bits.len()].copy_from_slice(bits);
        let mut body = [0; Snap::HEADER_OCTETS + MOST_OCTETS];
        let length = Snap::ethernet(ETHERTYPE, payload).emit(&mut body).ok()?;
        let data = Data {
            sequence: SequenceControl::new(sequence & 0xfff, 0),
            ..Data::direct(self.to, self.from, NETWORK, &body[..length])
        };
        data.emit(out).ok()
    }

    /// Reads a frame; `None` if it is not of this kind.
    pub fn parse(frame: &[u8]) -> Option<Said<'_>> {
        let data = Data::parse(frame).ok()?;
        let snap = Snap::parse(data.body).ok()?;
        if (snap.oui, snap.protocol) != ([0; 3], ETHERTYPE) {
            return None;
        }
        let (head, bits) = snap.payload.split_first_chunk::<LEAST_OCTETS>()?;
        let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let number = word(9);
        let talk = match head[4] {
            0 if number < MOST_SHOTS => Talk::Shot { number },
            1 if number <= MOST_SHOTS / BLOCK => Talk::Ask { block: number },
            2 if number <= MOST_SHOTS / BLOCK && bits.len() >= BLOCK as usize / 8 => Talk::Heard {
                block: number,
                bits: &bits[..BLOCK as usize / 8],
            },
            _ => return None,
        };
        (head[..4] == MARK).then_some(Said {
            run: word(5),
            from: data.transmitter,
            to: data.receiver,
            talk,
        })
    }
}

/// Which shots of a run arrived, with room from the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard(Vec<u8>);

impl Heard {
    /// Room for so many shots, and the rest of their last block.
    pub fn new(shots: u32) -> Heard {
        Heard(vec![0; (shots.div_ceil(BLOCK) * BLOCK / 8) as usize])
    }

    /// Notes a shot. Numbers for which there is no room are not.
    pub fn add(&mut self, number: u32) {
        if let Some(octet) = self.0.get_mut(number as usize / 8) {
            *octet |= 1 << (number % 8);
        }
    }

    /// Takes in what was told of a block, as far as there is room.
    pub fn take(&mut self, block: u32, bits: &[u8]) {
        let start = block as usize * BLOCK as usize / 8;
        let room = self.0.iter_mut().skip(start);
        room.zip(bits).for_each(|(octet, bits)| *octet = *bits);
    }

    /// Forgets all shots, and keeps the room.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }

    /// The bits of a block.
    pub fn block(&self, block: u32) -> [u8; BLOCK as usize / 8] {
        let mut bits = [0; BLOCK as usize / 8];
        let start = (block as usize * BLOCK as usize / 8).min(self.0.len());
        let known = &self.0[start..];
        let known = &known[..known.len().min(bits.len())];
        bits[..known.len()].copy_from_slice(known);
        bits
    }

    /// Whether a shot arrived.
    pub fn has(&self, number: u32) -> bool {
        let octet = self.0.get(number as usize / 8);
        octet.is_some_and(|bits| bits & 1 << (number % 8) != 0)
    }

    /// How many arrived.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|bits| bits.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(talk: Talk<'_>) -> Said<'_> {
        Said {
            run: 0x0102_0304,
            from: MacAddr::local(1),
            to: MacAddr::local(2),
            talk,
        }
    }

    #[test]
    fn what_is_said_is_understood() {
        let bits = [0x5a; BLOCK as usize / 8];
        for talk in [
            Talk::Shot { number: 7 },
            Talk::Ask { block: 3 },
            Talk::Heard {
                block: 3,
                bits: &bits,
            },
        ] {
            let mut frame = [0; 1_600];
            let length = said(talk).emit(50, 5, &mut frame).unwrap();
            assert!(length >= 24 + 8 + 50);
            assert_eq!(Said::parse(&frame[..length]), Some(said(talk)));
        }
        let mut frame = [0; 1_600];
        let length = said(Talk::Shot { number: 1 }).emit(50, 1, &mut frame).unwrap();
        assert_eq!(length, 24 + 8 + 50, "the payload is as long as asked for");
        assert_eq!(said(Talk::Shot { number: 1 }).emit(1_501, 1, &mut frame), None);
    }

    #[test]
    fn too_large_numbers_are_not_understood() {
        let mut frame = [0; 200];
        for talk in [
            Talk::Shot { number: MOST_SHOTS },
            Talk::Ask { block: u32::MAX },
            Talk::Heard { block: 0, bits: &[1] },
        ] {
            let length = said(talk).emit(20, 0, &mut frame).unwrap();
            assert_eq!(Said::parse(&frame[..length]), None, "{talk:?}");
        }
    }

    #[test]
    fn what_was_heard_is_told_block_by_block() {
        let (mut there, mut here) = (Heard::new(MOST_SHOTS), Heard::new(20_002));
        for number in [0, 7_999, 8_000, 20_001, u32::MAX] {
            there.add(number);
        }
        for block in 0..3 {
            here.take(block, &there.block(block));
        }
        assert_eq!((there.count(), here.count()), (4, 4));
        assert!(here.has(7_999) && here.has(20_001) && !here.has(1) && !here.has(u32::MAX));
        assert_eq!(there.block(1_000), [0; BLOCK as usize / 8]);
    }

    proptest! {
        #[test]
        fn nothing_makes_the_reader_panic(mut octets in proptest::collection::vec(any::<u8>(), 0..1_200), cut in 0_usize..1_200) {
            let _ = Said::parse(&octets);
            let bits = [1; BLOCK as usize / 8];
            let mut frame = [0; 1_600];
            let length = said(Talk::Heard { block: 1, bits: &bits }).emit(0, 0, &mut frame).unwrap();
            let _ = Said::parse(&frame[..cut.min(length)]);
            for (at, octet) in octets.drain(..).take(length).enumerate().step_by(37) {
                frame[at] ^= octet;
            }
            let _ = Said::parse(&frame[..length]);
        }
    }
}
