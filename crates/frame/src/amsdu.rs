//! A-MSDU: several MSDUs in the body of one QoS data frame (IEEE 802.11-2016, 9.3.2.2).

use core::fmt;

use crate::addr::MacAddr;
use crate::error::{EmitError, ParseError};
use crate::wire::{Reader, Wire, Writer};

/// Longest MSDU in octets (IEEE 802.11-2016, Table 9-19).
pub const MAX_MSDU_OCTETS: usize = 2304;

/// One subframe: 14 octets of header and an MSDU, without padding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Subframe<'a> {
    /// Final destination, DA.
    pub destination: MacAddr,
    /// First source, SA.
    pub source: MacAddr,
    /// The MSDU, usually an LLC header and its payload: 0 to 2304 octets. Its length is big-endian on the air.
    pub msdu: &'a [u8],
}

impl<'a> Subframe<'a> {
    fn read(r: &mut Reader<'a>) -> Result<Subframe<'a>, ParseError> {
        let (destination, source) = (r.address()?, r.address()?);
        let length = usize::from(u16::from_be_bytes(r.array()?));
        if length > MAX_MSDU_OCTETS {
            return Err(ParseError::BadValue);
        }
        Ok(Subframe {
            destination,
            source,
            msdu: r.take(length)?,
        })
    }

    /// Octets between the end of this subframe and the next one: 0 to 3.
    fn padding(&self) -> usize {
        self.length().next_multiple_of(4) - self.length()
    }
}

impl<'a> Wire<'a> for Subframe<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(octets);
        let subframe = Subframe::read(&mut r)?;
        r.end()?;
        Ok(subframe)
    }

    fn length(&self) -> usize {
        14 + self.msdu.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        if self.msdu.len() > MAX_MSDU_OCTETS {
            return Err(EmitError::BadValue);
        }
        let mut w = Writer::new(out, self.length())?;
        w.address(self.destination);
        w.address(self.source);
        w.bytes(&(self.msdu.len() as u16).to_be_bytes());
        w.bytes(self.msdu);
        Ok(w.finish())
    }
}

impl fmt::Display for Subframe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} -> {}, {} octets",
            self.source,
            self.destination,
            self.msdu.len()
        )
    }
}

/// Iterator over the subframes of a body. After an error it ends. Each subframe but the last is padded to a
/// multiple of four octets; padding behind the last one is skipped if it is there.
#[derive(Clone, Debug)]
pub struct Subframes<'a> {
    rest: &'a [u8],
}

impl<'a> Subframes<'a> {
    /// Over the body of a frame whose QoS control [says](crate::mac::QosControl::is_amsdu) that it is an A-MSDU.
    pub const fn new(body: &'a [u8]) -> Subframes<'a> {
        Subframes { rest: body }
    }
}

impl<'a> Iterator for Subframes<'a> {
    type Item = Result<Subframe<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let octets = core::mem::take(&mut self.rest);
        if octets.is_empty() {
            return None;
        }
        let read = Subframe::read(&mut Reader::new(octets));
        if let Ok(subframe) = &read {
            let used = subframe.length() + subframe.padding();
            self.rest = octets.get(used..).unwrap_or_default();
        }
        Some(read)
    }
}

/// Writes subframes one after the other, with the padding between them.
#[derive(Debug)]
pub struct AmsduBuilder<'b> {
    out: &'b mut [u8],
    used: usize,
}

impl<'b> AmsduBuilder<'b> {
    /// Will fill `out` from its beginning.
    pub fn new(out: &'b mut [u8]) -> AmsduBuilder<'b> {
        AmsduBuilder { out, used: 0 }
    }

    /// Adds one subframe.
    ///
    /// # Errors
    /// Those of [`Wire::emit`]; then nothing is added.
    pub fn push(&mut self, subframe: &Subframe<'_>) -> Result<(), EmitError> {
        let start = self.used.next_multiple_of(4);
        let needed = start + subframe.length();
        if needed > self.out.len() {
            return Err(EmitError::NoRoom { needed });
        }
        let written = subframe.emit(&mut self.out[start..])?;
        self.out[self.used..start].fill(0);
        self.used = start + written;
        Ok(())
    }

    /// The body so far, and the end of building.
    pub fn finish(self) -> &'b [u8] {
        &self.out[..self.used]
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);

    fn subframe(msdu: &[u8]) -> Subframe<'_> {
        Subframe {
            destination: A,
            source: B,
            msdu,
        }
    }

    #[test]
    fn octets_of_the_standard() {
        let mut out = [0xee; 40];
        let mut builder = AmsduBuilder::new(&mut out);
        builder.push(&subframe(b"xyz")).unwrap();
        builder.push(&subframe(b"z")).unwrap();
        assert_eq!(
            builder.push(&subframe(b"no room")),
            Err(EmitError::NoRoom { needed: 57 })
        );
        #[rustfmt::skip]
        assert_eq!(builder.finish(), [
            2, 0, 0, 0, 0, 0xa, 2, 0, 0, 0, 0, 0xb, 0, 3, b'x', b'y', b'z', 0, 0, 0,
            2, 0, 0, 0, 0, 0xa, 2, 0, 0, 0, 0, 0xb, 0, 1, b'z',
        ]);
        assert_eq!(
            subframe(b"z").to_string(),
            "02:00:00:00:00:0b -> 02:00:00:00:00:0a, 1 octets"
        );
    }

    /// Lengths that read the same in both byte orders, lengths that do not, with and without padding at the end.
    #[test]
    fn round_trips() {
        let payload = [0x55; 2304];
        for lengths in [[0, 1], [100, 101], [257, 257], [1500, 3], [2304, 2303], [2, 2]] {
            let mut out = [0; 5000];
            let mut builder = AmsduBuilder::new(&mut out);
            for n in lengths {
                builder.push(&subframe(&payload[..n])).unwrap();
            }
            let n = builder.finish().len();
            for padded in [n, n.next_multiple_of(4)] {
                let got: Vec<_> = Subframes::new(&out[..padded]).collect();
                assert_eq!(got, lengths.map(|n| Ok(subframe(&payload[..n]))));
            }
            let cut: Vec<_> = Subframes::new(&out[..n - 1]).collect();
            assert_eq!(
                cut,
                [Ok(subframe(&payload[..lengths[0]])), Err(ParseError::Truncated)]
            );
        }
    }

    #[test]
    fn refusals() {
        let mut out = [0; 3000];
        assert_eq!(subframe(&[0; 2305]).emit(&mut out), Err(EmitError::BadValue));
        let n = subframe(&[0; 2304]).emit(&mut out).unwrap();
        assert_eq!(Subframe::parse(&out[..n + 1]), Err(ParseError::Trailing));
        out[12..14].copy_from_slice(&[0x09, 0x01]);
        assert_eq!(Subframe::parse(&out[..n + 1]), Err(ParseError::BadValue));
    }
}
