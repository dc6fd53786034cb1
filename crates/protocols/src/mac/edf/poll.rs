//! What coordinator and responders exchange: six octets after LLC/SNAP with the EtherType
//! [`ETHERTYPE_PROTOCOL`](crate::mac::data::ETHERTYPE_PROTOCOL), then the payload.
//!
//! ```text
//! octet  0      1      2 3                       4 5
//!      | 0x01 | what | exchange, low octet first | number, low octet first | payload
//! ```
//!
//! Octet 0 names the protocol. `what`: bit 0, the payload is an MSDU; bit 1, answer at once (from the
//! coordinator); bit 2, this is the answer. `exchange` numbers the exchanges with one node; an answer repeats it.
//! `number` numbers the MSDUs of this sender to this receiver: equal numbers in a row are duplicates. The
//! sequence numbers of 802.11 do not do for this, because a repeated poll must not be dropped as a duplicate
//! by the adapter.

/// Octets of the header.
pub const POLL_OCTETS: usize = 6;

const PROTOCOL: u8 = 1;
const DATA: u8 = 1;
const POLL: u8 = 2;
const ANSWER: u8 = 4;

/// The header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollHeader {
    /// The payload is an MSDU.
    pub data: bool,
    /// Answer at once.
    pub poll: bool,
    /// This is the answer.
    pub answer: bool,
    /// Number of the exchange.
    pub exchange: u16,
    /// Number of the MSDU.
    pub number: u16,
}

impl PollHeader {
    /// The octets.
    pub fn emit(&self) -> [u8; POLL_OCTETS] {
        let flag = |set, bit| if set { bit } else { 0 };
        let what = flag(self.data, DATA) | flag(self.poll, POLL) | flag(self.answer, ANSWER);
        let ([e0, e1], [n0, n1]) = (self.exchange.to_le_bytes(), self.number.to_le_bytes());
        [PROTOCOL, what, e0, e1, n0, n1]
    }

    /// Header and payload; `None` if it is another protocol or cut off. Unknown flags are ignored.
    pub fn parse(octets: &[u8]) -> Option<(PollHeader, &[u8])> {
        let ([protocol, what, e0, e1, n0, n1], payload) = octets.split_first_chunk::<POLL_OCTETS>()?;
        (*protocol == PROTOCOL).then(|| {
            let header = PollHeader {
                data: what & DATA != 0,
                poll: what & POLL != 0,
                answer: what & ANSWER != 0,
                exchange: u16::from_le_bytes([*e0, *e1]),
                number: u16::from_le_bytes([*n0, *n1]),
            };
            (header, payload)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn octets() {
        let header = PollHeader {
            data: true,
            poll: true,
            answer: false,
            exchange: 0x0102,
            number: 0x0a0b,
        };
        assert_eq!(header.emit(), [1, 3, 2, 1, 0x0b, 0x0a]);
        assert_eq!(PollHeader::parse(&[2, 0, 0, 0, 0, 0]), None);
    }

    proptest! {
        #[test]
        fn round_trip(octets in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut octets = octets;
            if let Some(o) = octets.first_mut() {
                *o = PROTOCOL;
            }
            match PollHeader::parse(&octets) {
                Some((header, payload)) => {
                    let [protocol, what, ..] = header.emit();
                    prop_assert_eq!([protocol, what], [octets[0], octets[1] & 7]);
                    prop_assert_eq!(&octets[2..], &[&header.emit()[2..], payload].concat());
                }
                None => prop_assert!(octets.len() < POLL_OCTETS),
            }
        }
    }
}
