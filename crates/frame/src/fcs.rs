//! The frame check sequence, a CRC-32 (IEEE 802.11-2016, 9.2.4.8).

use crate::error::{EmitError, ParseError};

/// Octets of an FCS.
pub const FCS_OCTETS: usize = 4;

/// The generator polynomial of the standard, x^32 + x^26 + ... + 1, with the bits in the order of the air.
const POLYNOMIAL: u32 = 0xedb8_8320;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ POLYNOMIAL
            } else {
                crc >> 1
            };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

/// FCS of an MPDU; it goes on the air little-endian.
pub const fn compute(mpdu: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut i = 0;
    while i < mpdu.len() {
        crc = crc >> 8 ^ TABLE[((crc ^ mpdu[i] as u32) & 0xff) as usize];
        i += 1;
    }
    !crc
}

/// Writes the FCS of the first `length` octets of `out` behind them and returns the length with it.
///
/// # Errors
/// [`EmitError::NoRoom`] if there is no place for it.
pub fn append(out: &mut [u8], length: usize) -> Result<usize, EmitError> {
    let needed = length.saturating_add(FCS_OCTETS);
    let (mpdu, place) = out
        .get_mut(..needed)
        .and_then(<[u8]>::split_last_chunk_mut)
        .ok_or(EmitError::NoRoom { needed })?;
    *place = compute(mpdu).to_le_bytes();
    Ok(needed)
}

/// Checks a frame that ends in its FCS, and returns it without.
///
/// # Errors
/// [`ParseError::Truncated`] below four octets, [`ParseError::BadFcs`] if the FCS does not fit.
pub fn check(frame: &[u8]) -> Result<&[u8], ParseError> {
    let (mpdu, fcs) = frame.split_last_chunk().ok_or(ParseError::Truncated)?;
    if compute(mpdu) == u32::from_le_bytes(*fcs) {
        Ok(mpdu)
    } else {
        Err(ParseError::BadFcs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(compute(b""), 0);
        // the check value of CRC-32/ISO-HDLC, the same code
        assert_eq!(compute(b"123456789"), 0xcbf4_3926);
        const AT_COMPILE_TIME: u32 = compute(&[0; 4]);
        assert_eq!(AT_COMPILE_TIME, 0x2144_df1c);
    }

    #[test]
    fn round_trip_and_every_bit_counts() {
        let mut ack = [0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(append(&mut ack, 10), Ok(14));
        assert_eq!(check(&ack), Ok(&ack[..10]));
        for bit in 0..14 * 8 {
            let mut bad = ack;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(check(&bad), Err(ParseError::BadFcs));
        }
        assert_eq!(check(&ack[..3]), Err(ParseError::Truncated));
        assert_eq!(append(&mut ack, 11), Err(EmitError::NoRoom { needed: 15 }));
        assert_eq!(
            append(&mut ack, usize::MAX),
            Err(EmitError::NoRoom { needed: usize::MAX })
        );
    }
}
