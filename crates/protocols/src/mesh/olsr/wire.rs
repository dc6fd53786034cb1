//! Packets of OLSR (RFC 3626, 3.3, 6.1, 9.1), with addresses of 6 octets in place of 4, so that they name nodes as the
//! rest of the mesh does. Big-endian. What does not add up in any place is no packet.

use frame::MacAddr;
use radio::Duration;

/// Octets of an address.
const ADDRESS_OCTETS: usize = 6;
/// Octets before the messages: length, number.
pub const PACKET_HEADER_OCTETS: usize = 4;
/// Octets before the body of a message: type, validity, size, originator, TTL, hops, number.
pub const MESSAGE_HEADER_OCTETS: usize = 14;
/// Where TTL and hops stand in a message.
pub const TTL_AT: usize = 10;

/// Type of a HELLO.
pub const HELLO: u8 = 1;
/// Type of a TC.
pub const TC: u8 = 2;

/// One sixteenth of C, C = 1/16 s (RFC 3626, 18.3).
const STEP_NS: u64 = 1_000_000_000 / 256;

/// A time as it is sent: `a << 4 | b` stands for C (1 + a/16) 2^b (RFC 3626, 3.3.2).
pub const fn time(octet: u8) -> Duration {
    Duration::from_ns((STEP_NS * (16 + (octet >> 4) as u64)) << (octet & 0xf))
}

/// The octet for the shortest time that can be sent and is not below `t`; the longest one (about 68 minutes) for all that are longer.
pub const fn octet(t: Duration) -> u8 {
    let mut exponent = 0;
    while exponent < 16 {
        let mut mantissa = 0;
        while mantissa < 16 {
            let o = mantissa << 4 | exponent;
            if time(o).as_ns() >= t.as_ns() {
                return o;
            }
            mantissa += 1;
        }
        exponent += 1;
    }
    0xff
}

fn address(octets: &[u8]) -> MacAddr {
    MacAddr(core::array::from_fn(|i| octets[i]))
}

fn addresses(octets: &[u8]) -> impl Iterator<Item = MacAddr> {
    octets.chunks_exact(ADDRESS_OCTETS).map(address)
}

fn u16_at(octets: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([octets[at], octets[at + 1]])
}

/// How a HELLO names a neighbour: bits 0-1 the link, bits 2-3 the neighbour (RFC 3626, 6.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkCode(pub u8);

impl LinkCode {
    /// Heard, not known to hear.
    pub const ASYM: LinkCode = LinkCode(1);
    /// Both hear each other.
    pub const SYM: LinkCode = LinkCode(2 | 1 << 2);
    /// As [`Self::SYM`], and chosen to relay.
    pub const MPR: LinkCode = LinkCode(2 | 2 << 2);
    /// Was heard.
    pub const LOST: LinkCode = LinkCode(3);

    /// Neither a symmetric link to no neighbour, nor a type of neighbour that there is not, nor above 15 (RFC 3626, 6.1.1).
    pub const fn is_valid(self) -> bool {
        self.0 < 12 && self.0 != 2
    }

    /// The link is heard in at least one direction.
    pub const fn is_heard(self) -> bool {
        matches!(self.0 & 3, 1 | 2)
    }

    /// The link is lost.
    pub const fn is_lost(self) -> bool {
        self.0 & 3 == 3
    }

    /// The neighbour is a symmetric one.
    pub const fn is_sym_neighbour(self) -> bool {
        matches!(self.0 >> 2 & 3, 1 | 2)
    }

    /// The neighbour is chosen to relay.
    pub const fn is_mpr(self) -> bool {
        self.0 >> 2 & 3 == 2
    }
}

/// A message in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message<'a> {
    /// [`HELLO`], [`TC`] or another one.
    pub kind: u8,
    /// For how long it counts.
    pub valid: Duration,
    /// Who made it.
    pub originator: MacAddr,
    /// Hops that it may still take.
    pub ttl: u8,
    /// Its number at the originator.
    pub number: u16,
    /// What follows its header.
    pub body: &'a [u8],
    /// All of it.
    pub octets: &'a [u8],
}

fn message(octets: &[u8]) -> Option<Message<'_>> {
    if octets.len() < MESSAGE_HEADER_OCTETS {
        return None;
    }
    let octets = octets.get(..usize::from(u16_at(octets, 2)))?;
    Some(Message {
        kind: octets[0],
        body: octets.get(MESSAGE_HEADER_OCTETS..)?,
        valid: time(octets[1]),
        originator: address(&octets[4..]),
        ttl: octets[TTL_AT],
        number: u16_at(octets, 12),
        octets,
    })
}

/// The messages of a packet, in order. `None` unless the packet is whole and so is each of them.
pub fn messages(packet: &[u8]) -> Option<impl Iterator<Item = Message<'_>>> {
    let rest = packet.get(PACKET_HEADER_OCTETS..)?;
    if usize::from(u16_at(packet, 0)) != packet.len() {
        return None;
    }
    let mut check = rest;
    while !check.is_empty() {
        let m = message(check)?;
        check = &check[m.octets.len()..];
    }
    let mut rest = rest;
    Some(core::iter::from_fn(move || {
        let m = message(rest)?;
        rest = &rest[m.octets.len()..];
        Some(m)
    }))
}

/// What a HELLO says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello<'a> {
    /// How willing the node is to relay: 0 never, 3 by default, 7 always.
    pub willingness: u8,
    groups: &'a [u8],
}

impl<'a> Hello<'a> {
    /// Reads the body of a HELLO.
    pub fn parse(body: &'a [u8]) -> Option<Hello<'a>> {
        let (head, groups) = body.split_at_checked(4)?;
        let mut rest = groups;
        while !rest.is_empty() {
            let size = usize::from(u16_at(rest.get(..4)?, 2));
            if size < 4 || !(size - 4).is_multiple_of(ADDRESS_OCTETS) {
                return None;
            }
            rest = rest.get(size..)?;
        }
        Some(Hello {
            willingness: head[3],
            groups,
        })
    }

    /// The neighbours that it names.
    pub fn neighbours(&self) -> impl Iterator<Item = (LinkCode, MacAddr)> + 'a {
        let mut rest = self.groups;
        let groups = core::iter::from_fn(move || {
            let size = usize::from(u16_at(rest.get(..4)?, 2));
            let (group, other) = rest.split_at(size);
            rest = other;
            Some(group)
        });
        groups.flat_map(|g| addresses(&g[4..]).map(|a| (LinkCode(g[0]), a)))
    }
}

/// Reads the body of a TC: its number, and the neighbours that it advertises.
pub fn tc(body: &[u8]) -> Option<(u16, impl Iterator<Item = MacAddr>)> {
    let (head, rest) = body.split_at_checked(4)?;
    rest.len()
        .is_multiple_of(ADDRESS_OCTETS)
        .then(|| (u16_at(head, 0), addresses(rest)))
}

/// Writes a packet, message by message. A message that does not fit is left out whole.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut [u8],
    length: usize,
}

impl<'o> Writer<'o> {
    /// An empty packet in `out`, which has room for the header at least.
    pub fn new(out: &'o mut [u8]) -> Self {
        Writer {
            out,
            length: PACKET_HEADER_OCTETS,
        }
    }

    fn put(&mut self, octets: &[u8]) -> Option<()> {
        let place = self.out.get_mut(self.length..self.length + octets.len())?;
        place.copy_from_slice(octets);
        self.length += octets.len();
        Some(())
    }

    /// All of `write`, or nothing of it.
    fn whole(&mut self, write: impl FnOnce(&mut Self) -> Option<()>) -> bool {
        let start = self.length;
        let fits = write(self).is_some();
        if !fits {
            self.length = start;
        }
        fits
    }

    fn size_at(&mut self, start: usize) -> Option<()> {
        let size = u16::try_from(self.length - start).ok()?;
        self.out[start + 2..start + 4].copy_from_slice(&size.to_be_bytes());
        Some(())
    }

    /// A message as it is.
    pub fn forward(&mut self, message: &[u8]) -> bool {
        self.whole(|w| w.put(message))
    }

    fn message(&mut self, head: &Head, body: impl FnOnce(&mut Self) -> Option<()>) -> bool {
        self.whole(|w| {
            let start = w.length;
            w.put(&[head.kind, octet(head.valid), 0, 0])?;
            w.put(&head.originator.0)?;
            w.put(&[head.ttl, 0])?;
            w.put(&head.number.to_be_bytes())?;
            body(w)?;
            w.size_at(start)
        })
    }

    /// A HELLO: for each code the neighbours that have it.
    pub fn hello<I: Iterator<Item = MacAddr>>(
        &mut self,
        head: &Head,
        interval: Duration,
        willingness: u8,
        groups: impl IntoIterator<Item = (LinkCode, I)>,
    ) -> bool {
        self.message(head, |w| {
            w.put(&[0, 0, octet(interval), willingness])?;
            for (code, neighbours) in groups {
                let start = w.length;
                w.put(&[code.0, 0, 0, 0])?;
                for a in neighbours {
                    w.put(&a.0)?;
                }
                if w.length == start + 4 {
                    w.length = start;
                } else {
                    w.size_at(start)?;
                }
            }
            Some(())
        })
    }

    /// A TC.
    pub fn tc(&mut self, head: &Head, ansn: u16, mut advertised: impl Iterator<Item = MacAddr>) -> bool {
        self.message(head, |w| {
            w.put(&ansn.to_be_bytes())?;
            w.put(&[0; 2])?;
            advertised.try_for_each(|a| w.put(&a.0))
        })
    }

    /// Closes the packet; `None` if it has no message.
    pub fn finish(self, number: u16) -> Option<&'o [u8]> {
        if self.length == PACKET_HEADER_OCTETS {
            return None;
        }
        let length = u16::try_from(self.length).ok()?;
        self.out[..2].copy_from_slice(&length.to_be_bytes());
        self.out[2..4].copy_from_slice(&number.to_be_bytes());
        Some(&self.out[..self.length])
    }
}

/// The header of a message to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// [`HELLO`] or [`TC`].
    pub kind: u8,
    /// For how long it counts.
    pub valid: Duration,
    /// Who makes it.
    pub originator: MacAddr,
    /// Hops that it may take.
    pub ttl: u8,
    /// Its number.
    pub number: u16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const HEAD: Head = Head {
        kind: HELLO,
        valid: Duration::from_ms(6_000),
        originator: MacAddr::local(1),
        ttl: 1,
        number: 0x1234,
    };

    /// RFC 3626, 18.3 and 18.1: what its constants are as octets.
    #[test]
    fn times_of_the_standard() {
        let octets = [2, 5, 6, 15, 30].map(|s| octet(Duration::from_ms(s * 1_000)));
        assert_eq!(octets, [0x05, 0x46, 0x86, 0xe7, 0xe8]);
        assert_eq!(octet(Duration::ZERO), 0);
        assert_eq!(octet(Duration::from_ms(10_000_000)), 0xff);
    }

    #[test]
    fn a_hello_octet_by_octet() {
        let mut out = [0xee; 60];
        let mut w = Writer::new(&mut out);
        let groups = [
            (LinkCode::MPR, vec![MacAddr::local(2)]),
            (LinkCode::LOST, vec![]),
            (LinkCode::ASYM, vec![MacAddr::local(3)]),
        ];
        let groups = groups.map(|(c, a)| (c, a.into_iter()));
        assert!(w.hello(&HEAD, Duration::from_ms(2_000), 3, groups));
        let packet = w.finish(7).unwrap();
        let [a, b, c] = [1, 2, 3].map(|n| MacAddr::local(n).0);
        let expected = [
            &[0, 42, 0, 7, 1, 0x86, 0, 38][..],
            &a,
            &[1, 0, 0x12, 0x34, 0, 0, 0x05, 3, 10, 0, 0, 10],
            &b,
            &[1, 0, 0, 10],
            &c,
        ];
        assert_eq!(packet, expected.concat());
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let mut out = [0; 30];
        let mut w = Writer::new(&mut out);
        assert!(w.tc(&Head { kind: TC, ..HEAD }, 1, [MacAddr::local(4)].into_iter()));
        assert!(!w.tc(&Head { kind: TC, ..HEAD }, 1, core::iter::empty()));
        assert!(!w.forward(&[0; 3]));
        let packet = w.finish(0).unwrap();
        assert_eq!(messages(packet).unwrap().count(), 1);
        assert_eq!(Writer::new(&mut [0; 8]).finish(0), None);
    }

    proptest! {
        #[test]
        fn times_come_back(o: u8) {
            prop_assert_eq!(time(octet(time(o))), time(o));
        }

        #[test]
        fn messages_come_back(named in proptest::collection::vec((0u8..16, 0u32..40), 0..12), ansn: u16, number: u16) {
            let mut out = [0; 500];
            let mut w = Writer::new(&mut out);
            let groups = named.iter().map(|&(c, a)| (LinkCode(c), core::iter::once(MacAddr::local(a))));
            prop_assert!(w.hello(&HEAD, Duration::from_ms(1), 6, groups));
            let advertised = || named.iter().map(|n| MacAddr::local(n.1));
            let head = Head { kind: TC, number, ttl: 255, ..HEAD };
            prop_assert!(w.tc(&head, ansn, advertised()));
            let packet = w.finish(9).unwrap();
            let read: Vec<_> = messages(packet).unwrap().collect();
            prop_assert_eq!(read.len(), 2);
            let hello = Hello::parse(read[0].body).unwrap();
            prop_assert_eq!(hello.willingness, 6);
            let neighbours: Vec<_> = hello.neighbours().map(|(c, a)| (c.0, a)).collect();
            let expected: Vec<_> = named.iter().map(|&(c, a)| (c, MacAddr::local(a))).collect();
            prop_assert_eq!(neighbours, expected);
            prop_assert_eq!((read[1].number, read[1].ttl, read[1].valid), (number, 255, Duration::from_ms(6_000)));
            let (n, told) = tc(read[1].body).unwrap();
            prop_assert_eq!((n, told.collect::<Vec<_>>()), (ansn, advertised().collect()));
            // cut anywhere it is none
            for cut in 0..packet.len() {
                prop_assert!(messages(&packet[..cut]).is_none());
            }
        }

        #[test]
        fn any_octets(octets in proptest::collection::vec(any::<u8>(), 0..60), fits: bool) {
            let mut octets = octets;
            if fits && octets.len() >= 8 {
                let n = octets.len() as u8;
                octets[..2].copy_from_slice(&[0, n]);
                octets[6..8].copy_from_slice(&[0, n - 4]);
            }
            for m in messages(&octets).into_iter().flatten() {
                if let Some(h) = Hello::parse(m.body) {
                    h.neighbours().for_each(drop);
                }
                if let Some((_, a)) = tc(m.body) {
                    a.for_each(drop);
                }
            }
        }
    }
}
