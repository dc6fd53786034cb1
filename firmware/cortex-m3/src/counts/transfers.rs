//! Transfers as the stick writes them, to be counted over.

use ar9170::codec::RxFrame;
use ar9170::codec::rx::Position;
use ar9170::codec::stream::{RESPONSE_MARK, write_unit};
use frame::mac::{Flags, FrameControl, Kind};
use frame::{MacAddr, Rate};

/// Octets of the longest: a data frame of 1500 octets among others.
const OCTETS: usize = 2_048;
/// Octets of the longest frame.
const FRAME: usize = 1_500;
/// The event before a TBTT.
const PRE_TBTT: u8 = 0xc0;

/// A transfer that is being written.
#[repr(align(4))]
pub struct Transfer {
    octets: [u8; OCTETS],
    len: usize,
}

/// What can be in one.
#[derive(Clone, Copy)]
pub enum Unit {
    /// The event before a TBTT, with the next number.
    Event,
    /// A beacon of so many octets, FCS not counted.
    Beacon(usize),
    /// A data frame of so many octets, FCS not counted.
    Data(usize),
}

impl Unit {
    /// Whether it is a frame.
    pub fn is_frame(self) -> bool {
        !matches!(self, Unit::Event)
    }
}

/// What is counted over, by name.
pub const ALL: [(&str, &[Unit]); 6] = [
    ("event", &[Unit::Event]),
    ("beacon", &[Unit::Beacon(100)]),
    ("data100", &[Unit::Data(100)]),
    ("data500", &[Unit::Data(500)]),
    ("data1500", &[Unit::Data(FRAME)]),
    (
        "grouped",
        &[Unit::Event, Unit::Beacon(100), Unit::Data(FRAME), Unit::Event],
    ),
];

impl Transfer {
    /// Of these units; `next` numbers the events.
    pub fn new(units: &[Unit], next: &mut dyn FnMut() -> u8) -> Transfer {
        let mut transfer = Transfer {
            octets: [0; OCTETS],
            len: 0,
        };
        for unit in units {
            match *unit {
                Unit::Event => transfer.write(&[&RESPONSE_MARK, &[4, PRE_TBTT, next(), 0], &[0; 4]]),
                Unit::Beacon(octets) => transfer.frame(Kind::BEACON, octets),
                Unit::Data(octets) => transfer.frame(Kind::DATA, octets),
            }
        }
        transfer
    }

    /// Its octets.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..self.len]
    }

    fn write(&mut self, payload: &[&[u8]]) {
        self.len += write_unit(payload, &mut self.octets[self.len..]).unwrap_or(0);
    }

    fn frame(&mut self, kind: Kind, octets: usize) {
        let mut mpdu = [0x55; FRAME];
        let mpdu = &mut mpdu[..octets.min(FRAME)];
        mpdu[..24].fill(0);
        mpdu[..2].copy_from_slice(&FrameControl::new(kind, Flags::NONE).0);
        mpdu[4..10].fill(0xff);
        mpdu[10..16].copy_from_slice(&MacAddr::local(2).0);
        let frame = RxFrame {
            mpdu,
            rate: Some(Rate::OFDM_24),
            above_noise_db: Some(35),
            position: Position::Single,
        };
        let mut unit = [0; FRAME + 64];
        let written = frame.emit(false, &mut unit).unwrap_or(0);
        self.write(&[&unit[..written]]);
    }
}
