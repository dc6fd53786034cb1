//! Packets out of a stream of octets, in pieces of any size.

use super::body::suffices;
use super::{MAX_BODY_OCTETS, Packet};
use crate::codec::{array, u32_at};
use core::fmt;
use std::vec::Vec;

/// Why a stream cannot be read on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedirError {
    /// The first packet is no hello.
    NoHello(u32),
    /// The other side is older than this protocol as it is here: its capabilities.
    TooOld(u32),
    /// A body of more than [`MAX_BODY_OCTETS`]: its kind and octets.
    TooLong(u32, u32),
    /// A body that is too short for its kind, or that contradicts itself.
    Malformed(u32),
}

impl fmt::Display for RedirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RedirError::NoHello(kind) => {
                write!(
                    f,
                    "the first packet is of kind {kind} and no hello: this is not usbredir"
                )
            }
            RedirError::TooOld(capabilities) => write!(
                f,
                "the other side is capable of {capabilities:#x} only: take a QEMU of 2013 or later"
            ),
            RedirError::TooLong(kind, octets) => {
                write!(
                    f,
                    "a packet of kind {kind} has {octets} octets, more than any transfer here"
                )
            }
            RedirError::Malformed(kind) => write!(f, "a packet of kind {kind} is damaged"),
        }
    }
}

impl std::error::Error for RedirError {}

/// Octets of a header before the id.
const HEADER_OCTETS: usize = 8;

/// Reads packets. It holds one packet at most beyond what it was given last.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    buffer: Vec<u8>,
    greeted: bool,
}

impl Reader {
    /// Takes in what has come.
    pub fn push(&mut self, octets: &[u8]) {
        self.buffer.extend(octets);
    }

    /// The next whole packet with its id; `None` if more octets are needed.
    ///
    /// # Errors
    /// [`RedirError`]: nothing after that can be understood, and the same error comes again.
    pub fn packet(&mut self) -> Result<Option<(u64, Packet)>, RedirError> {
        let (Some(kind), Some(octets)) = (u32_at(&self.buffer, 0), u32_at(&self.buffer, 4)) else {
            return Ok(None);
        };
        if !self.greeted && kind != 0 {
            return Err(RedirError::NoHello(kind));
        }
        if octets as usize > MAX_BODY_OCTETS {
            return Err(RedirError::TooLong(kind, octets));
        }
        // a hello is written before anybody knows how long ids are
        let id_octets = if kind == 0 { 4 } else { 8 };
        let begin = HEADER_OCTETS + id_octets;
        let end = begin + octets as usize;
        let Some(body) = self.buffer.get(begin..end) else {
            return Ok(None);
        };
        let id = match kind {
            0 => u32_at(&self.buffer, HEADER_OCTETS).map(u64::from),
            _ => array(&self.buffer, HEADER_OCTETS).map(u64::from_le_bytes),
        };
        let packet = Packet::parse_body(kind, body).ok_or(RedirError::Malformed(kind))?;
        if let Packet::Hello(_, capabilities) = packet {
            if !suffices(capabilities) {
                return Err(RedirError::TooOld(capabilities));
            }
            self.greeted = true;
        }
        self.buffer.drain(..end);
        Ok(Some((id.unwrap_or_default(), packet)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Transfer, capability};
    use super::*;
    use std::vec;

    fn hello() -> Vec<u8> {
        let mut out = Vec::new();
        Packet::Hello(b"qemu usb-redir guest 7.2".to_vec(), capability::NEEDED | 0x8d).emit(0, &mut out);
        out
    }

    #[test]
    fn a_hello_has_the_layout_that_qemu_sends() {
        let octets = hello();
        // kind, length, id of 32 bits, text, capabilities
        assert_eq!(octets.len(), 4 + 4 + 4 + 64 + 4);
        assert_eq!(octets[..12], [0, 0, 0, 0, 68, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(octets[76..], [0xff, 0, 0, 0]);
    }

    #[test]
    fn packets_come_in_pieces() {
        let mut octets = hello();
        let transfer = Transfer {
            endpoint: 0x82,
            status: 0,
            length: 0x1_2000,
        };
        Packet::Bulk(transfer, Vec::new()).emit(0x1_0000_0001, &mut octets);
        let mut reader = Reader::default();
        let mut seen = Vec::new();
        for octet in octets {
            reader.push(&[octet]);
            seen.extend(reader.packet().unwrap());
        }
        assert!(matches!(&seen[0], (0, Packet::Hello(text, _)) if text.starts_with(b"qemu")));
        assert_eq!(seen[1], (0x1_0000_0001, Packet::Bulk(transfer, Vec::new())));
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn what_is_refused() {
        let refused = |octets: &[u8]| {
            let mut reader = Reader::default();
            reader.push(octets);
            let error = reader.packet().unwrap_err();
            assert_eq!(reader.packet(), Err(error), "it stays so");
            error
        };
        assert_eq!(refused(b"GET / HTTP/1.1"), RedirError::NoHello(0x2054_4547));
        let mut old = hello();
        old[76] = 0x12;
        assert_eq!(refused(&old), RedirError::TooOld(0x12));
        assert_eq!(
            refused(&[0, 0, 0, 0, 1, 0, 1, 0]),
            RedirError::TooLong(0, 0x1_0001)
        );
        let mut short = vec![0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0];
        short.extend([1, 2, 3]);
        assert_eq!(refused(&short), RedirError::Malformed(0));
    }
}
