//! Frames that are kept as they are.

use core::fmt;

use crate::error::{EmitError, ParseError};
use crate::mac::header::Header;
use crate::wire::{Wire, Writer};

/// A frame of protocol version 0 of which this crate reads the header alone: of a kind that it does not know, or a
/// management frame with an encrypted body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Opaque<'a> {
    /// The whole MPDU without FCS, at least its header.
    pub octets: &'a [u8],
}

impl<'a> Wire<'a> for Opaque<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        Header::parse(octets)?;
        Ok(Opaque { octets })
    }

    fn length(&self) -> usize {
        self.octets.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        Header::parse(self.octets).map_err(|_| EmitError::BadValue)?;
        let mut w = Writer::new(out, self.length())?;
        w.bytes(self.octets);
        Ok(w.finish())
    }
}

impl fmt::Display for Opaque<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ok(h) = Header::parse(self.octets) else {
            return write!(f, "no frame, {} octets", self.octets.len());
        };
        if let Some(transmitter) = h.transmitter() {
            write!(f, "{transmitter} ")?;
        }
        write!(
            f,
            "-> {} {}, Flags={}, {} octets",
            h.receiver(),
            h.kind(),
            h.flags(),
            self.octets.len()
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn kept_as_it_is() {
        let block_ack = [0x94, 0, 0, 0, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 5, 0, 9];
        let frame = Opaque::parse(&block_ack).unwrap();
        let mut out = [0; 19];
        assert_eq!(frame.emit(&mut out), Ok(19));
        assert_eq!(out, block_ack);
        assert_eq!(
            frame.to_string(),
            "02:00:00:00:00:02 -> 02:00:00:00:00:01 Block Ack, Flags=........, 19 octets"
        );
        assert_eq!(Opaque::parse(&block_ack[..15]), Err(ParseError::Truncated));
        let none = Opaque { octets: &[1, 2] };
        assert_eq!(none.emit(&mut out), Err(EmitError::BadValue));
        assert_eq!(none.to_string(), "no frame, 2 octets");
    }
}
