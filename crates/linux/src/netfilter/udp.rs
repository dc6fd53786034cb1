//! UDP within a packet of IPv4 or IPv6: where its payload is, and its checksum when that changes.

/// Octets of the header of UDP.
pub const HEADER_OCTETS: usize = 8;

const CHECKSUM_AT: usize = 6;
const UDP: u8 = libc::IPPROTO_UDP as u8;
const FRAGMENT: u8 = libc::IPPROTO_FRAGMENT as u8;
/// Extension headers of IPv6 that are passed over, at most.
const MOST_EXTENSIONS: usize = 8;

/// Where the datagram of UDP is within a packet: header and payload. `None` for what is no UDP, a fragment, or not whole.
fn find(packet: &[u8]) -> Option<std::ops::Range<usize>> {
    let begin = match packet.first()? >> 4 {
        4 => ipv4(packet)?,
        6 => ipv6(packet)?,
        _ => return None,
    };
    let header = packet.get(begin..)?.first_chunk::<HEADER_OCTETS>()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let end = begin + length;
    (length >= HEADER_OCTETS && end <= packet.len()).then_some(begin..end)
}

fn ipv4(packet: &[u8]) -> Option<usize> {
    let head = packet.first_chunk::<20>()?;
    let begin = usize::from(head[0] & 15) * 4;
    (begin >= 20 && !is_ipv4_fragment(head) && head[9] == UDP).then_some(begin)
}

/// There are more, or this is not the first one.
fn is_ipv4_fragment(head: &[u8; 20]) -> bool {
    u16::from_be_bytes([head[6], head[7]]) & 0x3fff != 0
}

fn ipv6(packet: &[u8]) -> Option<usize> {
    let (next, begin) = ipv6_end(packet)?;
    (next == UDP).then_some(begin)
}

/// What follows the headers of IPv6 that are passed over, and where it begins.
fn ipv6_end(packet: &[u8]) -> Option<(u8, usize)> {
    let (mut next, mut begin) = (packet.first_chunk::<40>()?[6], 40);
    for _ in 0..=MOST_EXTENSIONS {
        match next {
            // Hop by hop, routing, destination: next header, and octets beyond 8 in units of 8 (RFC 8200, 4.3 to 4.6).
            0 | 43 | 60 => {
                let head = packet.get(begin..)?.first_chunk::<2>()?;
                next = head[0];
                begin += (usize::from(head[1]) + 1) * 8;
            }
            _ => return Some((next, begin)),
        }
    }
    None
}

/// Whether a packet is a part of a datagram that somebody has cut.
pub fn is_fragment(packet: &[u8]) -> bool {
    match packet.first().map(|octet| octet >> 4) {
        Some(4) => packet.first_chunk().is_some_and(is_ipv4_fragment),
        Some(6) => ipv6_end(packet).is_some_and(|(next, _)| next == FRAGMENT),
        _ => false,
    }
}

/// The payload of the datagram in a packet.
pub fn payload(packet: &[u8]) -> Option<&[u8]> {
    packet[find(packet)?].get(HEADER_OCTETS..)
}

/// Lets `change` change the payload of the datagram in a packet, without its length; it tells whether it did. Then the
/// checksum changes by the difference (RFC 1624), so that what was damaged on the way stays recognisable as such. A
/// datagram without checksum stays one. Tells what `change` told; false for what holds no datagram.
pub fn change(packet: &mut [u8], change: impl FnOnce(&mut [u8]) -> bool) -> bool {
    let Some(range) = find(packet) else {
        return false;
    };
    let (header, payload) = packet[range].split_at_mut(HEADER_OCTETS);
    let before = sum(payload);
    if !change(payload) {
        return false;
    }
    let old = u16::from_be_bytes([header[CHECKSUM_AT], header[CHECKSUM_AT + 1]]);
    if old != 0 {
        // HC' = ~(~HC + ~m + m')
        let new = !fold(u64::from(!old) + u64::from(!before) + u64::from(sum(payload)));
        let new = if new == 0 { 0xffff } else { new };
        header[CHECKSUM_AT..].copy_from_slice(&new.to_be_bytes());
    }
    true
}

/// Sum of the words of 16 bits, in ones' complement (RFC 1071).
fn sum(octets: &[u8]) -> u16 {
    let (words, rest) = octets.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|w| u64::from(u32::from_be_bytes(*w))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum += u64::from(u32::from_be_bytes(last));
    fold(sum)
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet with a right checksum, and its pseudo header's sum.
    fn packet(v6: bool, extensions: usize, payload: &[u8]) -> Vec<u8> {
        let length = (HEADER_OCTETS + payload.len()) as u16;
        let (src, dst) = ([9; 16], [7; 16]);
        let mut packet = if v6 {
            let mut head = vec![0x60, 0, 0, 0];
            head.extend((length + 8 * extensions as u16).to_be_bytes());
            head.extend([if extensions > 0 { 60 } else { UDP }, 64]);
            head.extend(src);
            head.extend(dst);
            for n in 1..=extensions {
                head.extend([if n < extensions { 60 } else { UDP }, 0, 1, 4, 0, 0, 0, 0]);
            }
            head
        } else {
            let mut head = vec![0x45 + extensions as u8, 0];
            head.extend((length + 20 + 4 * extensions as u16).to_be_bytes());
            head.extend([0, 0, 0x40, 0, 64, UDP, 0, 0]);
            head.extend(&src[..4]);
            head.extend(&dst[..4]);
            head.extend(vec![1; 4 * extensions]);
            head
        };
        let mut udp = vec![0x1e, 0x78, 0x1e, 0x79];
        udp.extend(length.to_be_bytes());
        udp.extend([0, 0]);
        udp.extend(payload);
        let checksum = !whole(v6, &udp);
        udp[6..8].copy_from_slice(&if checksum == 0 { 0xffff } else { checksum }.to_be_bytes());
        packet.extend(udp);
        packet
    }

    /// The sum that a receiver forms, from scratch: 0xffff if the checksum is right.
    fn whole(v6: bool, udp: &[u8]) -> u16 {
        let n = if v6 { 16 } else { 4 };
        let mut all: u64 = 0;
        let mut octets = [
            &[9; 16][..n],
            &[7; 16][..n],
            &[0, UDP],
            &(udp.len() as u16).to_be_bytes(),
            udp,
        ]
        .concat();
        if octets.len() % 2 == 1 {
            octets.push(0);
        }
        for pair in octets.chunks(2) {
            all += u64::from(pair[0]) * 256 + u64::from(pair[1]);
        }
        while all > 0xffff {
            all = all % 0x10000 + all / 0x10000;
        }
        all as u16
    }

    proptest! {
        #[test]
        fn a_right_checksum_stays_right_and_a_wrong_one_wrong(
            v6: bool, extensions in 0usize..4, body in proptest::collection::vec(any::<u8>(), 1..100),
            new in proptest::collection::vec(any::<u8>(), 1..100), damage: u16,
        ) {
            let mut p = packet(v6, extensions, &body);
            let begin = p.len() - body.len() - HEADER_OCTETS;
            prop_assert_eq!(whole(v6, &p[begin..]), 0xffff);
            prop_assert_eq!(payload(&p), Some(&body[..]));
            let checksum = u16::from_be_bytes([p[begin + 6], p[begin + 7]]);
            let other = checksum ^ damage;
            p[begin + 6..begin + 8].copy_from_slice(&other.to_be_bytes());
            let was_right = whole(v6, &p[begin..]) == 0xffff;
            let n = new.len().min(body.len());
            let changed = change(&mut p, |payload| { payload[..n].copy_from_slice(&new[..n]); true });
            prop_assert!(changed);
            prop_assert_eq!(payload(&p).map(|p| &p[..n]), Some(&new[..n]));
            let now = u16::from_be_bytes([p[begin + 6], p[begin + 7]]);
            if other == 0 {
                prop_assert_eq!(now, 0, "no checksum stays none");
            } else {
                prop_assert_ne!(now, 0);
                prop_assert_eq!(whole(v6, &p[begin..]) == 0xffff, was_right);
            }
        }

        #[test]
        fn anything(octets: Vec<u8>) {
            let mut changed = octets.clone();
            prop_assert!(!change(&mut changed, |_| false));
            prop_assert_eq!(changed, octets);
        }

        #[test]
        fn a_packet_that_is_cut_off_is_left_alone(v6: bool, extensions in 0usize..3, at in 0usize..120) {
            let p = packet(v6, extensions, &[5; 40]);
            if at < p.len() {
                prop_assert_eq!(payload(&p[..at]), None);
            }
        }
    }

    #[test]
    fn other_things_are_left_alone() {
        let good = packet(false, 0, b"data");
        let changed = |at: usize, octet: u8| {
            let mut p = good.clone();
            p[at] = octet;
            p
        };
        let with = |at: usize, octet: u8| payload(&changed(at, octet)).is_some();
        assert!(with(6, 0x40), "don't fragment");
        assert!(!is_fragment(&changed(6, 0x40)));
        for (at, octet, which) in [(6, 0x20, "the first fragment of more"), (7, 1, "a later one")] {
            assert!(!with(at, octet) && is_fragment(&changed(at, octet)), "{which}");
        }
        assert!(!with(9, 6), "TCP");
        assert!(!with(0, 0x44), "a header shorter than any");
        assert!(!with(25, 7), "a datagram shorter than its header");
        let mut endless = packet(true, 12, b"data");
        assert_eq!(payload(&endless), None, "more extensions than anybody has");
        assert!(!is_fragment(&endless) && !is_fragment(b""));
        endless[6] = 44;
        assert!(payload(&endless).is_none() && is_fragment(&endless));
    }
}
