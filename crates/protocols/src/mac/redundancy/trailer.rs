//! The trailer of a copy: the redundancy control trailer (RCT) of PRP (IEC 62439-3:2016, 4.1.10.3), six octets behind
//! the frame body, big-endian.
//!
//! | octets | field |
//! |---|---|
//! | 0 and 1 | sequence number |
//! | 2, high four bits | LAN: 0xA or 0xB |
//! | 2, low four bits, and 3 | octets of the frame body, trailer included |
//! | 4 and 5 | 0x88fb |

/// Octets of a trailer.
pub const OCTETS: usize = 6;
const SUFFIX: [u8; 2] = [0x88, 0xfb];
const MAX_BODY: usize = 0xfff;

/// The trailer of one copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trailer {
    /// Sequence number of the frame that it is a copy of.
    pub sequence: u16,
    /// Which of the two ways it went: 0 or 1.
    pub lan: u8,
}

impl Trailer {
    /// The octets behind a body of `body` octets; `None` if it is too long for the field.
    pub fn octets(self, body: usize) -> Option<[u8; OCTETS]> {
        let size = body + OCTETS;
        if size > MAX_BODY {
            return None;
        }
        let [s0, s1] = self.sequence.to_be_bytes();
        let [z0, z1] = (size as u16 | (0xa + u16::from(self.lan & 1)) << 12).to_be_bytes();
        Some([s0, s1, z0, z1, SUFFIX[0], SUFFIX[1]])
    }

    /// The trailer at the end of a body, if there is one: suffix, LAN and size must be right.
    pub fn of(body: &[u8]) -> Option<Trailer> {
        let &[s0, s1, z0, z1, x0, x1] = body.last_chunk::<OCTETS>()?;
        let lan = z0 >> 4;
        let size = usize::from(u16::from_be_bytes([z0 & 0x0f, z1]));
        ([x0, x1] == SUFFIX && (lan == 0xa || lan == 0xb) && size == body.len()).then(|| Trailer {
            sequence: u16::from_be_bytes([s0, s1]),
            lan: lan - 0xa,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[test]
    fn golden() {
        let t = Trailer {
            sequence: 0x1234,
            lan: 1,
        };
        assert_eq!(t.octets(100), Some([0x12, 0x34, 0xb0, 106, 0x88, 0xfb]));
        assert_eq!(
            t.octets(4_089).map(|o| o[2..4].to_vec()),
            Some([0xbf, 0xff].to_vec())
        );
        assert_eq!(t.octets(4_090), None);
    }

    proptest! {
        #[test]
        fn there_and_back(mut body: Vec<u8>, sequence: u16, lan in 0u8..2) {
            let t = Trailer { sequence, lan };
            body.extend(t.octets(body.len()).unwrap());
            prop_assert_eq!(Trailer::of(&body), Some(t));
            body.push(0);
            prop_assert_eq!(Trailer::of(&body), None);
        }

        #[test]
        fn anything(body: Vec<u8>) {
            let _ = Trailer::of(&body);
        }
    }
}
