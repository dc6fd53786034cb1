//! IPv6 addresses that hold a MAC address (RFC 4291, appendix A): a node's address says where to send.
//!
//! All nodes of a network are in one prefix of unique local addresses (RFC 4193). There is no neighbour discovery: it would
//! cost every sleeping node frames to groups, to ask for what the address says.

use core::net::Ipv6Addr;
use frame::MacAddr;

/// Prefix of all nodes, /64.
const PREFIX: [u8; 8] = [0xfd, 0x5d, 0x80, 0x21, 0x11, 0x00, 0x00, 0x00];
/// Prefix of link-local addresses, /64.
const LINK: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];
/// All nodes on the link (RFC 4291, 2.7.1).
pub const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

fn with(prefix: [u8; 8], mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    let mut octets = [0; 16];
    octets[..8].copy_from_slice(&prefix);
    octets[8..].copy_from_slice(&[a ^ 2, b, c, 0xff, 0xfe, d, e, f]);
    Ipv6Addr::from(octets)
}

/// The address of a node in its network.
pub fn of(mac: MacAddr) -> Ipv6Addr {
    with(PREFIX, mac)
}

/// Its address on the link.
pub fn on_link(mac: MacAddr) -> Ipv6Addr {
    with(LINK, mac)
}

/// Whose address it is; `None` if it holds no MAC address of one station, or is of another network.
pub fn mac(address: Ipv6Addr) -> Option<MacAddr> {
    let octets = address.octets();
    let (prefix, interface) = octets.split_first_chunk::<8>()?;
    let [a, b, c, 0xff, 0xfe, d, e, f] = *interface else {
        return None;
    };
    let mac = MacAddr([a ^ 2, b, c, d, e, f]);
    ((*prefix == PREFIX || *prefix == LINK) && !mac.is_group()).then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;

    #[test]
    fn addresses_read_as_people_write_them() {
        assert_eq!(of(MacAddr::local(1)).to_string(), "fd5d:8021:1100::ff:fe00:1");
        assert_eq!(mac(ALL_NODES), None);
        assert_eq!(mac("2001:db8::ff:fe00:1".parse().unwrap()), None);
    }

    proptest! {
        #[test]
        fn the_mac_address_is_in_it(octets: [u8; 6]) {
            let station = MacAddr(octets);
            let expected = (!station.is_group()).then_some(station);
            prop_assert_eq!((mac(of(station)), mac(on_link(station))), (expected, expected));
        }
    }
}
