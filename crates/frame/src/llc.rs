//! LLC with SNAP: how an Ethernet protocol travels in the body of a data frame.

use core::fmt;

use crate::error::{EmitError, ParseError};
use crate::wire::{Reader, Wire, Writer};

/// DSAP and SSAP of SNAP and the control octet of unnumbered information (IEEE 802-2014, clause 9).
const LLC: [u8; 3] = [0xaa, 0xaa, 0x03];

/// LLC and SNAP header with its payload: 8 octets and the rest of the body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Snap<'a> {
    /// Organisation; zero for Ethernet protocols (RFC 1042).
    pub oui: [u8; 3],
    /// EtherType if `oui` is zero: 0x0800 IPv4, 0x0806 ARP, 0x86dd IPv6. Big-endian on the air.
    pub protocol: u16,
    /// Payload.
    pub payload: &'a [u8],
}

impl<'a> Snap<'a> {
    /// Octets of the LLC and SNAP headers.
    pub const HEADER_OCTETS: usize = 8;

    /// A payload of an Ethernet protocol.
    pub const fn ethernet(ethertype: u16, payload: &'a [u8]) -> Snap<'a> {
        Snap {
            oui: [0; 3],
            protocol: ethertype,
            payload,
        }
    }
}

impl<'a> Wire<'a> for Snap<'a> {
    /// [`ParseError::WrongKind`] for LLC frames that carry no SNAP header.
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(octets);
        if r.array()? != LLC {
            return Err(ParseError::WrongKind);
        }
        Ok(Snap {
            oui: r.array()?,
            protocol: u16::from_be_bytes(r.array()?),
            payload: r.rest(),
        })
    }

    fn length(&self) -> usize {
        Self::HEADER_OCTETS + self.payload.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = Writer::new(out, self.length())?;
        w.bytes(&LLC);
        w.bytes(&self.oui);
        w.bytes(&self.protocol.to_be_bytes());
        w.bytes(self.payload);
        Ok(w.finish())
    }
}

impl fmt::Display for Snap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.oui != [0; 3] {
            let [a, b, c] = self.oui;
            write!(f, "SNAP {a:02x}-{b:02x}-{c:02x} ")?;
        }
        write!(f, "{:#06x}, {} octets", self.protocol, self.payload.len())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn octets_of_the_standard() {
        let arp = Snap::ethernet(0x0806, b"who");
        let mut out = [0; 11];
        assert_eq!(arp.emit(&mut out), Ok(11));
        assert_eq!(&out, b"\xaa\xaa\x03\0\0\0\x08\x06who");
        assert_eq!(Snap::parse(&out), Ok(arp));
        assert_eq!(arp.emit(&mut out[..10]), Err(EmitError::NoRoom { needed: 11 }));
        for n in 0..8 {
            assert_eq!(Snap::parse(&out[..n]), Err(ParseError::Truncated));
        }
        assert_eq!(
            Snap::parse(b"\x42\x42\x03\0\0\0\0\0"),
            Err(ParseError::WrongKind),
            "spanning tree"
        );
        assert_eq!(arp.to_string(), "0x0806, 3 octets");
        let other = Snap {
            oui: [0x00, 0x00, 0xf8],
            ..arp
        };
        assert_eq!(other.to_string(), "SNAP 00-00-f8 0x0806, 3 octets");
    }
}
