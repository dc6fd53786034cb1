//! The header of a datagram in the mesh, 20 octets, as long as that of IPv4: version, hops left, two ports, two
//! addresses. Big-endian. It follows LLC and SNAP.

use frame::MacAddr;

/// Octets of the header.
pub const HEADER_OCTETS: usize = 20;
/// EtherType of datagrams in the mesh: Local Experimental 2 (IEEE 802-2014, 9.2.4), which protocols of this crate share.
pub const ETHERTYPE: u16 = crate::mac::data::ETHERTYPE_PROTOCOL;
/// The first octet; the polls of EDF begin with other ones.
const VERSION: u8 = 0x4d;

/// See the [module](self).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Header {
    /// Hops that it may still take.
    pub hops_left: u8,
    /// Which flow at the source.
    pub from_port: u16,
    /// Which flow at the destination.
    pub to_port: u16,
    /// Who made it.
    pub source: MacAddr,
    /// Whom it is for.
    pub destination: MacAddr,
}

impl Header {
    /// Reads a datagram: header and what follows. `None` if it is none.
    pub fn parse(octets: &[u8]) -> Option<(Header, &[u8])> {
        let (h, payload) = octets.split_first_chunk::<HEADER_OCTETS>()?;
        let address = |at: usize| MacAddr(core::array::from_fn(|i| h[at + i]));
        let header = Header {
            hops_left: h[1],
            from_port: u16::from_be_bytes([h[4], h[5]]),
            to_port: u16::from_be_bytes([h[6], h[7]]),
            source: address(8),
            destination: address(14),
        };
        (h[0] == VERSION).then_some((header, payload))
    }

    /// The octets of the header.
    pub fn octets(&self) -> [u8; HEADER_OCTETS] {
        let mut out = [0; HEADER_OCTETS];
        out[..2].copy_from_slice(&[VERSION, self.hops_left]);
        out[4..6].copy_from_slice(&self.from_port.to_be_bytes());
        out[6..8].copy_from_slice(&self.to_port.to_be_bytes());
        out[8..14].copy_from_slice(&self.source.0);
        out[14..].copy_from_slice(&self.destination.0);
        out
    }

    /// From the other end: ports and addresses swapped.
    #[must_use]
    pub const fn back(&self, hops_left: u8) -> Header {
        Header {
            hops_left,
            from_port: self.to_port,
            to_port: self.from_port,
            source: self.destination,
            destination: self.source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comes_back(hops_left: u8, from_port: u16, to_port: u16, a: [u8; 6], b: [u8; 6]) {
            let h = Header { hops_left, from_port, to_port, source: MacAddr(a), destination: MacAddr(b) };
            let octets = h.octets();
            prop_assert_eq!(Header::parse(&octets), Some((h, &[][..])));
            prop_assert_eq!(h.back(hops_left).back(hops_left), h);
            prop_assert_eq!(Header::parse(&octets[..19]), None);
        }

        #[test]
        fn any_octets(octets in proptest::collection::vec(any::<u8>(), 0..40)) {
            let read = Header::parse(&octets);
            prop_assert_eq!(read.is_some(), octets.len() >= 20 && octets[0] == VERSION);
        }
    }
}
