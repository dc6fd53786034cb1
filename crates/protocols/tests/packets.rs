//! Packets from anywhere: damaged ones, and octets that never were one.

mod shared;

use proptest::prelude::*;
use protocols::transport::wire::{Control, Header, ProtocolId};

fn any_packet() -> impl Strategy<Value = Vec<u8>> {
    let numbers = (any::<[u32; 4]>(), any::<u16>(), any::<u8>(), 0u8..2);
    (
        numbers,
        any::<bool>(),
        proptest::collection::vec(any::<u8>(), 0..200),
    )
        .prop_map(|((numbers, control, hops, options), atp, mut body)| {
            let protocol = if atp { ProtocolId::Atp } else { ProtocolId::Tcp };
            let mut header = Header {
                hops,
                options,
                sequence: numbers[0] % 8_000,
                acknowledgement: numbers[1] % 8_000,
                delay_us: numbers[2],
                spacing_us: numbers[3],
                ..Header::new(protocol, Control(control))
            };
            if header.is_feedback() {
                body.truncate(body.len() / 8 * 8 % 168);
                header.size = body.len() as u16;
            }
            [&header.octets()[..], &body].concat()
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_octets(octets in proptest::collection::vec(any::<u8>(), 0..80)) {
        shared::try_packet(&octets);
    }

    #[test]
    fn damaged_packets(mut packet in any_packet(), damage in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..6)) {
        for (at, octet) in damage {
            let at = at % packet.len();
            packet[at] = octet;
        }
        shared::try_packet(&packet);
    }

    #[test]
    fn any_datagrams_in_a_connection(packets in proptest::collection::vec(any_packet(), 0..12)) {
        let mut octets = Vec::new();
        for packet in packets {
            octets.push(packet.len() as u8);
            octets.extend(packet);
        }
        shared::try_connection(&octets);
    }
}
