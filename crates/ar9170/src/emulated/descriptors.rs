//! What the stick says of itself on the USB: its descriptors (USB 2.0, 9.6), and the requests that every device answers.

use crate::usbredir::{DeviceConnect, Endpoints, Interfaces, endpoint};
use std::vec;
use std::vec::Vec;

/// Of the reference design.
const VENDOR: u16 = 0x0cf3;
const PRODUCT: u16 = 0x9170;
const VERSION: u16 = 0x0106;
/// Of the vendor; the class of a device that leaves it to its interface would be 0.
const CLASS: [u8; 3] = [0xff, 0xff, 0x00];
/// Its endpoints: address, type, octets of a packet at high speed. The intervals of the two interrupt ones are 1.
const PIPES: [(u8, u8, u16); 4] = [
    (0x01, endpoint::BULK, 512),
    (0x82, endpoint::BULK, 512),
    (0x83, endpoint::INTERRUPT, 64),
    (0x04, endpoint::INTERRUPT, 64),
];

/// As usbredir tells them.
pub(super) const ENDPOINTS: Endpoints = {
    let mut all = Endpoints::none();
    let mut n = 0;
    while n < PIPES.len() {
        let (address, kind, octets) = PIPES[n];
        all = all.with(address, kind, interval(kind), octets);
        n += 1;
    }
    all
};

/// As usbredir tells it: high speed.
pub(super) const CONNECT: DeviceConnect = DeviceConnect {
    speed: 2,
    class: CLASS,
    vendor: VENDOR,
    product: PRODUCT,
    version: VERSION,
};

/// As usbredir tells it.
pub(super) fn interfaces() -> Interfaces {
    Interfaces(vec![(0, CLASS)])
}

const fn interval(kind: u8) -> u8 {
    (kind == endpoint::INTERRUPT) as u8
}

/// The answer to a request of the standard (USB 2.0, 9.4); `None`: it stalls. Addresses and configurations are the
/// affair of the other side.
pub(super) fn standard(request_type: u8, request: u8, value: u16) -> Option<Vec<u8>> {
    match (request_type, request) {
        (0x80, 6) => descriptor((value >> 8) as u8, value as u8),
        // status of device, interface, endpoint: nothing to tell
        (0x80..=0x82, 0) => Some(vec![0, 0]),
        // features are cleared and set
        (0x00..=0x02, 1 | 3) => Some(Vec::new()),
        _ => None,
    }
}

fn descriptor(kind: u8, index: u8) -> Option<Vec<u8>> {
    match (kind, index) {
        (1, 0) => {
            // USB 2.0, class, 64 octets at endpoint 0
            let mut out = vec![18, 1, 0x00, 0x02, CLASS[0], CLASS[1], CLASS[2], 64];
            let numbers = [VENDOR, PRODUCT, VERSION];
            numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
            // three texts, one configuration
            out.extend([0x10, 0x20, 0x30, 1]);
            Some(out)
        }
        (2, 0) => {
            // one interface, number 1, no text, from the bus, 500 mA
            let mut out = vec![9, 2, 46, 0, 1, 1, 0, 0x80, 250];
            out.extend([9, 4, 0, 0, PIPES.len() as u8, CLASS[0], CLASS[1], CLASS[2], 0]);
            for (address, kind, octets) in PIPES {
                out.extend([7, 5, address, kind]);
                out.extend(octets.to_le_bytes());
                out.push(interval(kind));
            }
            Some(out)
        }
        // English
        (3, 0x00) => Some(vec![4, 3, 0x09, 0x04]),
        (3, 0x10) => Some(text("sdmac")),
        (3, 0x20) => Some(text("emulated AR9170")),
        (3, 0x30) => Some(text("1")),
        _ => None,
    }
}

fn text(of: &str) -> Vec<u8> {
    let mut out = vec![2 + 2 * of.len() as u8, 3];
    of.encode_utf16().for_each(|unit| out.extend(unit.to_le_bytes()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_what_they_say() {
        for (value, octets) in [(0x0100, 18), (0x0300, 4), (0x0310, 12), (0x0320, 32)] {
            let found = standard(0x80, 6, value).unwrap();
            assert_eq!((found.len(), usize::from(found[0])), (octets, octets));
        }
        let configuration = standard(0x80, 6, 0x0200).unwrap();
        assert_eq!((configuration.len(), configuration[2]), (46, 46));
        let mut at = 0;
        while at < configuration.len() {
            at += usize::from(configuration[at]);
        }
        assert_eq!(at, 46);
        // no other speed, no other text, no such request
        assert_eq!(
            [0x0600, 0x0311, 0x0201].map(|v| standard(0x80, 6, v)),
            [const { None }; 3]
        );
        assert_eq!(standard(0x21, 9, 0), None);
    }

    #[test]
    fn endpoints_have_their_places() {
        let e = &ENDPOINTS;
        assert_eq!((e.types[1], e.max_packet[1]), (endpoint::BULK, 512));
        assert_eq!((e.types[18], e.max_packet[18]), (endpoint::BULK, 512));
        assert_eq!((e.types[19], e.intervals[19]), (endpoint::INTERRUPT, 1));
        assert_eq!((e.types[4], e.max_packet[4]), (endpoint::INTERRUPT, 64));
        assert_eq!(e.types.iter().filter(|t| **t != endpoint::ABSENT).count(), 6);
    }
}
