//! What a board is told when it begins: who it is, and which network it is to be in.

use frame::{MacAddr, Rate};
use protocols::mac::ibss::IbssConfig;
use radio::Duration;

/// EtherType of IPv6 (RFC 2464, 3).
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// Who a node is. Goes to a board in [`Setup::OCTETS`] octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Its address.
    pub address: MacAddr,
    /// How long it looks for a network before it creates one, ms.
    pub scan_ms: u16,
    /// Beacon interval of a network that it creates, TU, 15 or more.
    pub interval_tu: u16,
    /// ATIM window of such a network, TU; 0: no power save.
    pub window_tu: u16,
    /// ATIMs are handed on along the routes ([`IbssConfig::multi_hop`]): for all nodes of a network, or none.
    pub multi_hop: bool,
}

impl Setup {
    /// Octets of one.
    pub const OCTETS: usize = 13;

    /// As octets, numbers with their lowest octet first.
    pub fn to_octets(self) -> [u8; Self::OCTETS] {
        let mut octets = [0; Self::OCTETS];
        octets[..6].copy_from_slice(&self.address.0);
        octets[6..8].copy_from_slice(&self.scan_ms.to_le_bytes());
        octets[8..10].copy_from_slice(&self.interval_tu.to_le_bytes());
        octets[10..12].copy_from_slice(&self.window_tu.to_le_bytes());
        octets[12] = self.multi_hop.into();
        octets
    }

    /// From octets; `None` if there are more or less, the address is one of a group, the interval is too short, or the last
    /// one is neither 0 nor 1.
    pub fn from_octets(octets: &[u8]) -> Option<Setup> {
        let [a, b, c, d, e, f, rest @ ..] = <[u8; Self::OCTETS]>::try_from(octets).ok()?;
        let [s0, s1, i0, i1, w0, w1, multi_hop] = rest;
        let setup = Setup {
            address: MacAddr([a, b, c, d, e, f]),
            scan_ms: u16::from_le_bytes([s0, s1]),
            interval_tu: u16::from_le_bytes([i0, i1]),
            window_tu: u16::from_le_bytes([w0, w1]),
            multi_hop: multi_hop == 1,
        };
        (!setup.address.is_group() && setup.interval_tu >= 15 && multi_hop <= 1).then_some(setup)
    }

    /// How such a node takes part in the network, on an AR9170: a beacon is known to others after two USB transfers and
    /// its time on the air, which is why a slot is 400 us; and it takes some commands to wake the stick up.
    pub fn ibss(&self) -> IbssConfig {
        IbssConfig {
            channel: Some(1),
            ethertype: ETHERTYPE_IPV6,
            interval_tu: self.interval_tu,
            atim_window_tu: self.window_tu,
            multi_hop: self.multi_hop,
            scan: Duration::from_ms(self.scan_ms.into()),
            slot: Duration::from_us(400),
            wake_ahead: Duration::from_tu(4),
            ..IbssConfig::new(self.address, "sdmac nodes", Rate::OFDM_24)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn there_and_back(mut octets: [u8; Setup::OCTETS]) {
            octets[12] %= 3;
            let setup = Setup::from_octets(&octets);
            let good = octets[0] & 1 == 0 && u16::from_le_bytes([octets[8], octets[9]]) >= 15 && octets[12] < 2;
            prop_assert_eq!(setup.is_some(), good);
            prop_assert_eq!(setup.map(Setup::to_octets), good.then_some(octets));
            prop_assert_eq!(Setup::from_octets(&octets[1..]), None);
        }
    }
}
