//! Walks through the fields of a header: several present words, several antennas, foreign namespaces.

use crate::error::ParseError;
use crate::radiotap::field::{Field, align_and_size};
use crate::wire::Reader;

/// Octets of a header without any field: version, padding, length, one present word.
pub const MIN_HEADER_OCTETS: usize = 8;

/// Present bits with a meaning of their own.
const RADIOTAP_NAMESPACE: u32 = 29;
const VENDOR_NAMESPACE: u32 = 30;
const MORE_WORDS: u32 = 31;

/// Iterator over the fields of a radiotap header, in their order.
///
/// A header may repeat fields behind further present words, usually once for each antenna; they all come. The
/// data of vendor namespaces is skipped. At a bit without a definition the walk ends, since nobody can know the
/// size of what follows. A field that reaches beyond the header gives [`ParseError::Truncated`], and the walk ends.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// The whole header.
    header: &'a [u8],
    /// Present words that were not looked at yet.
    words: &'a [[u8; 4]],
    /// Bits of the current word that were not looked at yet.
    bits: u32,
    /// Where the data of the next field starts, before alignment.
    at: usize,
    /// Within a vendor namespace, whose data was skipped already.
    vendor: bool,
    /// What the next present word starts with.
    next: Next,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Next {
    /// Bits 32 and up of the same namespace.
    Continue,
    /// Bit 0 of the radiotap namespace.
    Radiotap,
    /// Bit 0 of a vendor namespace.
    Vendor,
}

/// Length of the radiotap header at the beginning of `packet`, which may go on after it.
///
/// # Errors
/// [`ParseError::Version`] if the first octet is not 0, [`ParseError::Truncated`] if the header is not all there,
/// [`ParseError::BadValue`] if its length has no room for its first 8 octets.
pub fn header_octets(packet: &[u8]) -> Result<usize, ParseError> {
    let mut r = Reader::new(packet);
    let [version, _padding] = r.array()?;
    if version != 0 {
        return Err(ParseError::Version);
    }
    let octets = usize::from(r.u16()?);
    if octets < MIN_HEADER_OCTETS {
        return Err(ParseError::BadValue);
    }
    if packet.len() < octets {
        return Err(ParseError::Truncated);
    }
    Ok(octets)
}

impl<'a> Fields<'a> {
    /// The fields of the header at the beginning of `packet`, which may go on after it.
    ///
    /// # Errors
    /// Those of [`header_octets`], and [`ParseError::Truncated`] if the present words do not end in the header.
    pub fn new(packet: &'a [u8]) -> Result<Fields<'a>, ParseError> {
        let header = &packet[..header_octets(packet)?];
        let all = header[4..].as_chunks::<4>().0;
        let last = all.iter().position(|w| u32::from_le_bytes(*w) >> MORE_WORDS == 0);
        let (words, _) = all.split_at(last.ok_or(ParseError::Truncated)? + 1);
        Ok(Fields {
            header,
            words,
            bits: 0,
            at: 4 + 4 * words.len(),
            vendor: false,
            next: Next::Radiotap,
        })
    }

    /// Takes the next present word; false if there is none or nothing in it can be known.
    fn next_word(&mut self) -> bool {
        let Some((word, rest)) = self.words.split_first() else {
            return false;
        };
        self.words = rest;
        self.bits = u32::from_le_bytes(*word);
        match self.next {
            // No field is defined there; in a vendor namespace all data was skipped.
            Next::Continue if !self.vendor => {
                let fields = self.bits & ((1 << RADIOTAP_NAMESPACE) - 1);
                if fields != 0 {
                    return false;
                }
            }
            Next::Continue => {}
            Next::Radiotap => self.vendor = false,
            Next::Vendor => self.vendor = true,
        }
        self.next = Next::Continue;
        true
    }

    /// The octets of the next field, aligned.
    fn data(&mut self, align: usize, size: usize) -> Result<&'a [u8], ParseError> {
        let start = self.at.next_multiple_of(align);
        self.at = start + size;
        self.header.get(start..self.at).ok_or(ParseError::Truncated)
    }

    /// Nothing comes any more.
    fn stop(&mut self) {
        self.words = &[];
        self.bits = 0;
    }

    fn enter_vendor_namespace(&mut self) -> Result<(), ParseError> {
        // organisation, its own namespace number, length of the data that follows
        let &[_, _, _, _, low, high] = self.data(2, 6)? else {
            return Err(ParseError::Truncated);
        };
        self.data(1, usize::from(u16::from_le_bytes([low, high])))?;
        self.next = Next::Vendor;
        Ok(())
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.bits == 0 {
                if !self.next_word() {
                    self.stop();
                    return None;
                }
                continue;
            }
            let bit = self.bits.trailing_zeros();
            self.bits &= self.bits - 1;
            let found = match bit {
                MORE_WORDS => continue,
                RADIOTAP_NAMESPACE => {
                    self.next = Next::Radiotap;
                    continue;
                }
                VENDOR_NAMESPACE => match self.enter_vendor_namespace() {
                    Ok(()) => continue,
                    Err(e) => Err(e),
                },
                _ if self.vendor => continue,
                _ => match align_and_size(bit) {
                    Some((align, size)) => self.data(align, size).map(|octets| Field::read(bit, octets)),
                    None => Ok(None),
                },
            };
            match found {
                Ok(Some(field)) => return Some(Ok(field)),
                Ok(None) => {
                    self.stop();
                    return None;
                }
                Err(e) => {
                    self.stop();
                    return Some(Err(e));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::radiotap::Channel;
    use std::vec::Vec;

    /// A header of present words and data; the length is filled in.
    fn header(words: &[u32], data: &[u8]) -> Vec<u8> {
        let octets = 4 + 4 * words.len() + data.len();
        let mut h = std::vec![0, 0, octets as u8, 0];
        for w in words {
            h.extend(w.to_le_bytes());
        }
        h.extend(data);
        h
    }

    fn fields(octets: &[u8]) -> Vec<Result<Field, ParseError>> {
        Fields::new(octets).unwrap().collect()
    }

    /// Two antennas behind three present words, as many Linux drivers report them.
    #[test]
    fn several_antennas() {
        let first = 0x2000_0000 | 1 << 31 | 1 << 1 | 1 << 3 | 1 << 5;
        let second = 0x2000_0000 | 1 << 31 | 1 << 5 | 1 << 11;
        let third = 1 << 5 | 1 << 11;
        let data = [0x10, 0, 0x3c, 0x14, 0x40, 0x01, 0xd0, 0xcf, 0, 0xce, 1];
        let mut h = header(&[first, second, third], &data);
        h.extend([0xff; 10]);
        let channel = Channel {
            mhz: 5180,
            flags: 0x0140,
        };
        assert_eq!(
            fields(&h),
            [
                Ok(Field::Flags(0x10)),
                Ok(Field::Channel(channel)),
                Ok(Field::SignalDbm(-48)),
                Ok(Field::SignalDbm(-49)),
                Ok(Field::Antenna(0)),
                Ok(Field::SignalDbm(-50)),
                Ok(Field::Antenna(1)),
            ]
        );
    }

    #[test]
    fn vendor_namespaces_are_skipped() {
        // rate; then a vendor's two words with 5 octets of data; then radiotap again with the antenna
        let words = [
            1 << 2 | 1 << 30 | 1 << 31,
            1 << 0 | 1 << 5 | 1 << 31,
            1 << 3 | 1 << 29 | 1 << 31,
            1 << 11,
        ];
        let data = [108, 0, 0x00, 0x50, 0xf2, 7, 5, 0, 9, 9, 9, 9, 9, 3];
        assert_eq!(
            fields(&header(&words, &data)),
            [Ok(Field::Rate500kbps(108)), Ok(Field::Antenna(3))]
        );
        // the vendor's data ends the header early
        let cut = header(&words, &data[..11]);
        assert_eq!(
            fields(&cut),
            [Ok(Field::Rate500kbps(108)), Err(ParseError::Truncated)]
        );
        // two vendors in a row
        let words = [
            1 << 30 | 1 << 31,
            1 << 1 | 1 << 30 | 1 << 31,
            1 << 29 | 1 << 31,
            1 << 11,
        ];
        let data = [1, 2, 3, 0, 1, 0, 9, 0, 4, 5, 6, 0, 0, 0, 2];
        assert_eq!(fields(&header(&words, &data)), [Ok(Field::Antenna(2))]);
    }

    #[test]
    fn unknown_bits_end_the_walk() {
        assert_eq!(
            fields(&header(&[1 << 2 | 1 << 28], &[12, 0, 0, 0])),
            [Ok(Field::Rate500kbps(12))]
        );
        // bit 33: the second word continues the first
        assert_eq!(
            fields(&header(&[1 << 2 | 1 << 31, 1 << 1], &[12, 7])),
            [Ok(Field::Rate500kbps(12))]
        );
        // an empty second word, and then the namespace again
        let words = [1 << 31, 1 << 29 | 1 << 31, 1 << 2];
        assert_eq!(fields(&header(&words, &[12])), [Ok(Field::Rate500kbps(12))]);
    }

    #[test]
    fn alignment_counts_from_the_header() {
        // TSFT behind two present words: 12 octets, padding to 16
        let words = [1 << 0 | 1 << 29 | 1 << 31, 1 << 15];
        let data = [0xee, 0xee, 0xee, 0xee, 8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0];
        assert_eq!(
            fields(&header(&words, &data)),
            [Ok(Field::TsftUs(0x0102_0304_0506_0708)), Ok(Field::TxFlags(0x18))]
        );
    }

    #[test]
    fn refusals() {
        let good = header(&[1 << 2], &[12]);
        for n in 0..good.len() {
            assert_eq!(Fields::new(&good[..n]).unwrap_err(), ParseError::Truncated);
        }
        let mut bad = good.clone();
        bad[0] = 1;
        assert_eq!(Fields::new(&bad).unwrap_err(), ParseError::Version);
        bad = good.clone();
        bad[2] = 7;
        assert_eq!(Fields::new(&bad).unwrap_err(), ParseError::BadValue);
        bad[2] = 8;
        assert_eq!(fields(&bad), [Err(ParseError::Truncated)]);
        bad[7] = 0x80;
        assert_eq!(
            Fields::new(&bad).unwrap_err(),
            ParseError::Truncated,
            "no last present word"
        );
    }
}
