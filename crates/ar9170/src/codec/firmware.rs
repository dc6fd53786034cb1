//! The firmware's file: an image, and behind it a chain of descriptors that say what it is.
//!
//! ```text
//! descriptor = magic (4), length u16 of all of it, min_ver u8, cur_ver u8, body
//! image, OTAR, ..., LAST
//! ```

use super::register::{PROGRAM, SRAM};
use super::{u16_at, u32_at};
use core::fmt;
use frame::fcs;

/// Octets of a file.
const FILE_OCTETS: core::ops::RangeInclusive<usize> = 32..=16_384;
/// Octets of the chain at most.
const MAX_CHAIN_OCTETS: usize = 8_192;
/// Octets before a descriptor's body.
const HEAD_OCTETS: usize = 8;
/// Octets of an image below which checksums make no sense.
const MIN_IMAGE_OCTETS: usize = 256;

/// What a firmware can do; a bit each.
pub mod feature {
    /// Set in every one.
    pub const ALWAYS: u32 = 1 << 0;
    /// A loader of its own is at the head of the file, which is not uploaded.
    pub const MINIBOOT: u32 = 1 << 1;
    /// It sets up the USB itself.
    pub const USB_INIT: u32 = 1 << 2;
    /// Responses come on ep 2.
    pub const RESPONSES_ON_EP2: u32 = 1 << 3;
    /// Frames to be sent have a prefix.
    pub const TX_STREAM: u32 = 1 << 4;
    /// What comes on ep 2 has a prefix.
    pub const RX_STREAM: u32 = 1 << 5;
    /// It cannot be used.
    pub const UNUSABLE: u32 = 1 << 6;
    /// It has the commands of the PHY.
    pub const PHY: u32 = 1 << 7;
    /// It answers BlockAckReq.
    pub const BLOCK_ACK: u32 = 1 << 10;
    /// It has the command for power save.
    pub const POWER_SAVE: u32 = 1 << 12;
    /// It filters what is received.
    pub const RX_FILTER: u32 = 1 << 13;
    /// What this driver cannot do without.
    pub const NEEDED: u32 = ALWAYS | USB_INIT | RESPONSES_ON_EP2 | RX_STREAM | PHY | BLOCK_ACK | RX_FILTER;
    /// Their names, lowest bit first.
    pub const NAMES: [&str; 20] = [
        "always set",
        "MINIBOOT",
        "initialises USB",
        "responses on ep 2",
        "TX stream",
        "RX stream",
        "unusable",
        "PHY commands",
        "key commands",
        "multicast after beacons",
        "answers BlockAckReq",
        "GPIO events",
        "power save",
        "RX filter",
        "wake on WLAN",
        "power save at 5 GHz",
        "tally",
        "passes BlockAck",
        "writes memory",
        "patterns",
    ];
}

/// A file that was understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Firmware<'a> {
    /// What is uploaded.
    pub image: &'a [u8],
    /// Bits of [`feature`].
    pub features: u32,
    /// Where the image goes.
    pub address: u32,
    /// Where the beacon of the first interface is.
    pub beacon_address: u32,
    /// Octets of the memory for beacons.
    pub beacon_octets: u16,
    /// Octets of a block of the memory for frames.
    pub block_octets: u16,
    /// Octets of the longest transfer to the host.
    pub max_transfer_octets: u16,
    /// Frames that it holds at once.
    pub descriptors: u8,
    /// Responses that it holds at once: the modulus of their sequence numbers.
    pub command_buffers: u8,
    /// Interfaces.
    pub interfaces: u8,
    /// Date, release and name, as it says.
    pub date: Option<Date>,
    /// Whether its checksums were there; if they were, they are right.
    pub checked: bool,
}

/// When a firmware was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Date {
    /// From 2010 on.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// Why a file is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirmwareError {
    /// Octets outside of 32 to 16384.
    Size(usize),
    /// No descriptor at all.
    NoDescriptor,
    /// The chain of descriptors breaks off at this octet.
    BrokenChain(usize),
    /// The main descriptor is of another version, or too short.
    Version,
    /// These features are missing (bits of [`feature`]).
    Missing(u32),
    /// It says that it cannot be used.
    Unusable,
    /// A number in the main descriptor is out of its range.
    OutOfRange(&'static str),
    /// The checksum of the image (false) or of the descriptors (true) is wrong.
    Checksum(bool),
}

impl fmt::Display for FirmwareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FirmwareError::Size(n) => write!(
                f,
                "the firmware has {n} octets, not {} to {}",
                FILE_OCTETS.start(),
                FILE_OCTETS.end()
            ),
            FirmwareError::NoDescriptor => write!(f, "no descriptor OTAR: this is no firmware of carl9170"),
            FirmwareError::BrokenChain(at) => write!(f, "the chain of descriptors breaks off at octet {at}"),
            FirmwareError::Version => write!(
                f,
                "the main descriptor is of another version: take firmware 1.9.4 or later"
            ),
            FirmwareError::Missing(bits) => {
                write!(f, "the firmware lacks")?;
                let names = feature::NAMES.iter().enumerate();
                names
                    .filter(|(i, _)| bits >> i & 1 == 1)
                    .try_for_each(|(_, name)| write!(f, " [{name}]"))
            }
            FirmwareError::Unusable => write!(f, "the firmware says that it cannot be used"),
            FirmwareError::OutOfRange(what) => write!(f, "the main descriptor has {what} out of its range"),
            FirmwareError::Checksum(false) => {
                write!(f, "the checksum of the image is wrong: the file is damaged")
            }
            FirmwareError::Checksum(true) => {
                write!(f, "the checksum of the descriptors is wrong: the file is damaged")
            }
        }
    }
}

impl core::error::Error for FirmwareError {}

/// One descriptor: where it is, and its body.
struct Block<'a> {
    at: usize,
    magic: [u8; 4],
    versions: core::ops::RangeInclusive<u8>,
    body: &'a [u8],
}

impl Block<'_> {
    /// It can be read by whoever knows this version, and has this many octets of body at least.
    fn is_for(&self, magic: &[u8; 4], version: u8, octets: usize) -> bool {
        self.magic == *magic && self.versions.contains(&version) && self.body.len() >= octets
    }
}

/// The descriptors from `at` on; an error breaks the chain.
fn blocks(file: &[u8], at: usize) -> impl Iterator<Item = Result<Block<'_>, FirmwareError>> {
    let mut at = Some(at);
    let end = file.len();
    let begin = at.unwrap_or(end);
    core::iter::from_fn(move || {
        let here = at?;
        at = None;
        let broken = FirmwareError::BrokenChain(here);
        let block = || {
            let head: &[u8; HEAD_OCTETS] = file.get(here..)?.first_chunk()?;
            let length = usize::from(u16_at(head, 4)?);
            let next = here + length;
            (length >= HEAD_OCTETS && next <= end && next - begin <= MAX_CHAIN_OCTETS).then_some(())?;
            let magic = [head[0], head[1], head[2], head[3]];
            if magic != *b"LAST" {
                at = Some(next);
            }
            Some(Block {
                at: here,
                magic,
                versions: head[6]..=head[7],
                body: &file[here + HEAD_OCTETS..next],
            })
        };
        let mut block = block;
        Some(block().ok_or(broken))
    })
}

impl<'a> Firmware<'a> {
    /// Reads a file, with the rules of Linux's driver.
    ///
    /// # Errors
    /// [`FirmwareError`].
    pub fn parse(file: &'a [u8]) -> Result<Firmware<'a>, FirmwareError> {
        if !FILE_OCTETS.contains(&file.len()) {
            return Err(FirmwareError::Size(file.len()));
        }
        let start = file
            .windows(4)
            .position(|w| w == b"OTAR")
            .ok_or(FirmwareError::NoDescriptor)?;
        let (mut date, mut checked) = (None, false);
        for block in blocks(file, start) {
            let block = block?;
            if block.is_for(b"MOTD", 1, 48) {
                date = u32_at(block.body, 0).map(Date::from_word);
            }
            if block.is_for(b"CHK\0", 1, 8) {
                check(file, start, &block)?;
                checked = true;
            }
        }
        let main = blocks(file, start).next().ok_or(FirmwareError::NoDescriptor)??;
        if !main.is_for(b"OTAR", 6, 24) {
            return Err(FirmwareError::Version);
        }
        let firmware = Firmware::main(file, start, main.body).ok_or(FirmwareError::Version)?;
        Firmware {
            date,
            checked,
            ..firmware
        }
        .judge(main.body[22])
    }

    fn main(file: &'a [u8], start: usize, body: &[u8]) -> Option<Firmware<'a>> {
        let features = u32_at(body, 0)?;
        let miniboot = match features & feature::MINIBOOT {
            0 => 0,
            _ => usize::from(u16_at(body, 14)?),
        };
        Some(Firmware {
            image: file.get(miniboot..start).unwrap_or_default(),
            features,
            address: u32_at(body, 4)?,
            beacon_address: u32_at(body, 8)?,
            beacon_octets: u16_at(body, 12)?,
            block_octets: u16_at(body, 16)?,
            max_transfer_octets: u16_at(body, 18)?,
            descriptors: *body.get(20)?,
            command_buffers: *body.get(21)?,
            interfaces: *body.get(23)?,
            date: None,
            checked: false,
        })
    }

    fn judge(self, interface_version: u8) -> Result<Firmware<'a>, FirmwareError> {
        let missing = feature::NEEDED & !self.features;
        if self.features & feature::UNUSABLE != 0 {
            return Err(FirmwareError::Unusable);
        }
        if missing != 0 {
            return Err(FirmwareError::Missing(missing));
        }
        let in_memory = |a: u32| SRAM.contains(&a) || PROGRAM.contains(&a);
        let rules = [
            (interface_version == 1, "the version of its interface"),
            ((1..=6).contains(&self.interfaces), "the number of interfaces"),
            (self.descriptors >= 16, "the number of descriptors"),
            (self.command_buffers >= 1, "the number of command buffers"),
            ((64..=512).contains(&self.block_octets), "the octets of a block"),
            (
                (4_096..=32_768).contains(&self.max_transfer_octets),
                "the octets of a transfer",
            ),
            (in_memory(self.address), "its address"),
            (!self.image.is_empty(), "the octets of its loader"),
        ];
        match rules.iter().find(|(holds, _)| !holds) {
            Some((_, what)) => Err(FirmwareError::OutOfRange(what)),
            None => Ok(self),
        }
    }

    /// Frames that are given to it at once, at most.
    pub fn cookies(&self) -> u8 {
        self.descriptors.min(254)
    }
}

/// CRC-32 without the last inversion, of the file up to OTAR, and on to the descriptor with the sums.
fn check(file: &[u8], start: usize, sums: &Block<'_>) -> Result<(), FirmwareError> {
    let crc = |octets: &[u8]| !fcs::compute(octets);
    if start < MIN_IMAGE_OCTETS || u32_at(sums.body, 0) != Some(crc(&file[..start])) {
        return Err(FirmwareError::Checksum(false));
    }
    match u32_at(sums.body, 4) == Some(crc(&file[..sums.at])) {
        true => Ok(()),
        false => Err(FirmwareError::Checksum(true)),
    }
}

impl Date {
    fn from_word(word: u32) -> Date {
        Date {
            year: (2010 + word / 372).min(9_999) as u16,
            month: (word % 372 / 31 + 1) as u8,
            day: (word % 31 + 1) as u8,
        }
    }
}

#[cfg(any(test, feature = "emulated"))]
mod write {
    //! Files of our own, for a stick that does not run them.

    use super::feature;
    use frame::fcs;
    use std::vec;
    use std::vec::Vec;

    fn block(magic: &[u8; 4], versions: [u8; 2], body: &[u8]) -> Vec<u8> {
        let mut block = magic.to_vec();
        block.extend((super::HEAD_OCTETS as u16 + body.len() as u16).to_le_bytes());
        block.extend(versions);
        block.extend(body);
        block
    }

    /// A file with an empty image of 512 octets and the numbers of firmware 1.9.6, 636 octets in all. Linux's driver
    /// takes it, and so does this one.
    pub fn blank() -> Vec<u8> {
        with_features(0x0003_bfad)
    }

    /// The same with other features: bits of [`feature`].
    pub fn with_features(features: u32) -> Vec<u8> {
        with(features, 190)
    }

    /// The same with this many descriptors for frames.
    pub fn with_descriptors(descriptors: u8) -> Vec<u8> {
        with(0x0003_bfad, descriptors)
    }

    fn with(features: u32, descriptors: u8) -> Vec<u8> {
        let mut file = vec![0; 512];
        let image = !fcs::compute(&file);
        let mut main = Vec::new();
        for word in [features & !feature::MINIBOOT, 0x20_0000, 0x11_7d80] {
            main.extend(word.to_le_bytes());
        }
        for half in [960_u16, 0, 320, 8_192] {
            main.extend(half.to_le_bytes());
        }
        main.extend([descriptors, 16, 1, 2]);
        file.extend(block(b"OTAR", [6, 7], &main));
        file.extend(block(b"TXSQ", [1, 1], &0x20_2dc8_u32.to_le_bytes()));
        let mut about = (31 * 6 + 372 * 11_u32).to_le_bytes().to_vec();
        about.extend([0; 44]);
        file.extend(block(b"MOTD", [1, 2], &about));
        let descriptors = !fcs::compute(&file);
        let sums = [image.to_le_bytes(), descriptors.to_le_bytes()].concat();
        file.extend(block(b"CHK\0", [1, 2], &sums));
        file.extend(block(b"LAST", [1, 2], &[]));
        file
    }
}

#[cfg(any(test, feature = "emulated"))]
pub use write::{blank, with_descriptors, with_features};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read() {
        let file = blank();
        assert_eq!(file.len(), 636);
        let f = Firmware::parse(&file).unwrap();
        assert_eq!(
            (f.image.len(), f.address, f.features),
            (512, 0x20_0000, 0x0003_bfad)
        );
        assert_eq!(
            (f.descriptors, f.command_buffers, f.interfaces, f.checked),
            (190, 16, 2, true)
        );
        assert_eq!(
            (f.block_octets, f.max_transfer_octets, f.beacon_octets),
            (320, 8_192, 960)
        );
        assert_eq!(
            f.date,
            Some(Date {
                year: 2021,
                month: 7,
                day: 1
            })
        );
    }

    #[test]
    fn every_damaged_bit_is_found() {
        let file = blank();
        let last = file.len() - 8;
        for bit in 0..last * 8 {
            let mut bad = file.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            // no sum covers the head of the descriptor that holds them
            let in_head_of_sums = (last - 16..last - 8).contains(&(bit / 8));
            let found = Firmware::parse(&bad).is_err();
            assert!(found || in_head_of_sums, "bit {bit}");
        }
        for end in 0..file.len() {
            assert!(Firmware::parse(&file[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let file = with_features(0x0003_bfad & !feature::RX_FILTER);
        let error = Firmware::parse(&file).unwrap_err();
        assert_eq!(error, FirmwareError::Missing(feature::RX_FILTER));
        assert_eq!(std::format!("{error}"), "the firmware lacks [RX filter]");
        let file = with_features(0x0003_bfad | feature::UNUSABLE);
        assert_eq!(Firmware::parse(&file), Err(FirmwareError::Unusable));
        assert_eq!(Firmware::parse(&[0; 31]), Err(FirmwareError::Size(31)));
        assert_eq!(Firmware::parse(&[0; 99]), Err(FirmwareError::NoDescriptor));
    }

    /// Without its loader, as firmware 1.9.6 is uploaded.
    #[test]
    fn the_loader_is_left_out() {
        let mut file = blank();
        file[512 + 8] |= feature::MINIBOOT as u8;
        file[512 + 8 + 14] = 12;
        let at = file.len() - 24;
        file.truncate(at);
        file.extend([b'L', b'A', b'S', b'T', 8, 0, 1, 2]);
        let f = Firmware::parse(&file).unwrap();
        assert_eq!((f.image.len(), f.checked), (500, false));
    }
}
