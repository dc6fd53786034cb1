//! Responses to commands, and events: what the firmware says of its own accord.
//!
//! Both have the header of commands. Their sequence numbers are one running index, modulo the number of command
//! buffers of the firmware, so that a host sees when it has lost one.

use super::command::{ASYNCHRONOUS, Code, EVENT, HEADER_OCTETS};
use super::{array, u32_at};

/// One response or event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Response<'a> {
    /// Code of the command (perhaps with [`ASYNCHRONOUS`]), or of the event.
    pub code: u8,
    /// Running index.
    pub sequence: u8,
    /// Means something in events alone.
    pub extra: u8,
    /// Its payload.
    pub payload: &'a [u8],
}

/// An event, by what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice<'a> {
    /// The time before a TBTT at which the host may change the beacon. `asleep`: intervals of sleep that are left.
    PreTbtt {
        /// 0: the radio is awake.
        asleep: u32,
    },
    /// Frames have ended.
    Transmitted(TxStatuses<'a>),
    /// A beacon of ours went out.
    BeaconSent {
        /// Beacons so far.
        count: u32,
    },
    /// The ATIM window is over.
    AtimWindowEnd,
    /// The firmware's watchdog has bitten.
    Watchdog,
    /// A line for people.
    Text(&'a [u8]),
    /// Octets for people.
    Dump(&'a [u8]),
    /// A radar was seen.
    Radar,
    /// A pin has changed.
    Gpio(u32),
    /// The firmware has started.
    Boot,
    /// Nothing that this crate knows.
    Unknown,
}

impl<'a> Response<'a> {
    /// True for an event, false for the response to a command.
    pub const fn is_event(&self) -> bool {
        self.code & EVENT == EVENT
    }

    /// The command that it answers; `None` for events and codes that nobody knows.
    pub const fn answers(&self) -> Option<Code> {
        match self.is_event() {
            true => None,
            false => Code::from_octet(self.code & !ASYNCHRONOUS),
        }
    }

    /// What the event says; `None` for a response, or if the payload is too short for its code.
    pub fn notice(&self) -> Option<Notice<'a>> {
        if !self.is_event() {
            return None;
        }
        let word = || u32_at(self.payload, 0);
        Some(match self.code {
            0xc0 => Notice::PreTbtt { asleep: word()? },
            0xc1 => Notice::Transmitted(TxStatuses(
                self.payload.get(..usize::from(self.extra).checked_mul(2)?)?,
            )),
            0xc2 => Notice::BeaconSent { count: word()? },
            0xc3 => Notice::AtimWindowEnd,
            0xc6 => Notice::Watchdog,
            0xca => Notice::Text(self.payload.get(..self.extra.into())?),
            0xcc => Notice::Dump(self.payload),
            0xcd => Notice::Radar,
            0xce => Notice::Gpio(word()?),
            0xcf => Notice::Boot,
            _ => Notice::Unknown,
        })
    }

    /// Values of a response that is a list of words.
    pub fn words(&self) -> impl Iterator<Item = u32> + use<'a> {
        self.payload
            .chunks_exact(4)
            .map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]))
    }

    /// The TSF, if the response has exactly one.
    pub fn tsf(&self) -> Option<u64> {
        match self.payload.len() {
            8 => array(self.payload, 0).map(u64::from_le_bytes),
            _ => None,
        }
    }
}

/// Frames that have ended, in the order in which they did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxStatuses<'a>(&'a [u8]);

/// How one frame ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxStatus {
    /// The cookie of the frame.
    pub cookie: u8,
    /// Hardware queue, 0 to 3.
    pub queue: u8,
    /// Rate that was reached, 0 to 3.
    pub rate: u8,
    /// Tries at that rate, 0 to 7.
    pub tries: u8,
    /// An ACK came, or none was asked for.
    pub success: bool,
}

impl TxStatus {
    /// From its two octets.
    pub const fn from_octets([cookie, info]: [u8; 2]) -> TxStatus {
        TxStatus {
            cookie,
            queue: info & 3,
            rate: info >> 2 & 3,
            tries: info >> 4 & 7,
            success: info & 0x80 != 0,
        }
    }

    /// Its two octets.
    pub const fn octets(&self) -> [u8; 2] {
        let info = self.queue & 3 | (self.rate & 3) << 2 | (self.tries & 7) << 4;
        [self.cookie, info | (self.success as u8) << 7]
    }
}

impl<'a> TxStatuses<'a> {
    /// One by one.
    pub fn iter(&self) -> impl Iterator<Item = TxStatus> + use<'a> {
        self.0
            .chunks_exact(2)
            .map(|c| TxStatus::from_octets([c[0], c[1]]))
    }
}

/// The responses of one block, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Responses<'a> {
    rest: &'a [u8],
}

impl<'a> Responses<'a> {
    /// From what follows the twelve octets of 0xff.
    pub const fn new(octets: &'a [u8]) -> Responses<'a> {
        Responses { rest: octets }
    }

    /// Octets that no response was made of: the end of a block that is cut off.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Responses<'a> {
    type Item = Response<'a>;

    fn next(&mut self) -> Option<Response<'a>> {
        let (head, rest) = self.rest.split_first_chunk::<HEADER_OCTETS>()?;
        let (payload, rest) = rest.split_at_checked(head[0].into())?;
        self.rest = rest;
        Some(Response {
            code: head[1],
            sequence: head[2],
            extra: head[3],
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn the_first_words_of_a_stick() {
        let octets = [0, 0xcf, 0, 0, 4, 2, 1, 0, 0x23, 0x01, 0x11, 0x4a];
        let all: Vec<_> = Responses::new(&octets).collect();
        assert_eq!(all[0].notice(), Some(Notice::Boot));
        assert_eq!((all[1].answers(), all[1].sequence), (Some(Code::Echo), 1));
        assert_eq!(all[1].words().collect::<Vec<_>>(), [0x4a11_0123]);
        assert_eq!((all[1].notice(), all.len()), (None, 2));
    }

    #[test]
    fn statuses() {
        let status = TxStatus {
            cookie: 7,
            queue: 1,
            rate: 2,
            tries: 3,
            success: true,
        };
        assert_eq!(status.octets(), [7, 0xb9]);
        for info in 0..=255 {
            assert_eq!(TxStatus::from_octets([9, info]).octets(), [9, info]);
        }
        // three statuses, padded to four octets
        let octets = [8, 0xc1, 5, 3, 1, 0x91, 2, 0x11, 3, 0x99, 0, 0];
        let response = Responses::new(&octets).next().unwrap();
        let Some(Notice::Transmitted(list)) = response.notice() else {
            panic!("{response:?}")
        };
        assert_eq!(list.iter().map(|s| s.cookie).collect::<Vec<_>>(), [1, 2, 3]);
        let liar = Response { extra: 5, ..response };
        assert_eq!(liar.notice(), None, "more statuses than octets");
    }

    #[test]
    fn what_is_cut_off_is_left() {
        let octets = [4, 0xc0, 0, 0, 0, 0, 0, 0, 4, 0xc0, 1, 0, 0];
        let mut all = Responses::new(&octets);
        assert_eq!(all.next().unwrap().notice(), Some(Notice::PreTbtt { asleep: 0 }));
        assert_eq!((all.next(), all.rest().len()), (None, 5));
    }
}
