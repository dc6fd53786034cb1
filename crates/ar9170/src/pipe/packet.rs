//! Packets in a stream of octets: a mark, a kind, a length, the body, and a check sequence.
//!
//! | octets | 1 | 1 | 2 | 0 and more | 4 |
//! |---|---|---|---|---|---|
//! | | 0xd7 | kind | octets of the body | body | CRC-32 of kind, length and body |
//!
//! Numbers have their lowest octet first. A reader that finds something else looks for the next mark, so that it is in
//! step again behind whatever was lost or damaged.

/// First octet of each packet.
const MARK: u8 = 0xd7;
/// Octets before the body, and behind it.
const HEAD: usize = 4;
const TAIL: usize = 4;
/// Octets around a body.
pub const OVERHEAD_OCTETS: usize = HEAD + TAIL;

/// A packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// What it is.
    pub kind: u8,
    /// What it holds.
    pub body: &'a [u8],
}

/// CRC-32 of parts, bit by bit: pipes are slow.
fn check(parts: &[&[u8]]) -> u32 {
    let mut crc = !0_u32;
    for octet in parts.iter().copied().flatten() {
        crc ^= u32::from(*octet);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !crc
}

/// Writes a packet whose body is these parts, one behind the other. What is longer than a length can say is not written
/// at all, and no part of it: false.
pub fn write(kind: u8, body: [&[u8]; 3], out: &mut dyn FnMut(&[u8])) -> bool {
    let Ok(length) = u16::try_from(body.iter().map(|part| part.len()).sum::<usize>()) else {
        return false;
    };
    let [low, high] = length.to_le_bytes();
    let head = [MARK, kind, low, high];
    out(&head);
    body.into_iter()
        .filter(|part| !part.is_empty())
        .for_each(&mut *out);
    let [a, b, c] = body;
    out(&check(&[&head[1..], a, b, c]).to_le_bytes());
    true
}

/// Finds packets of up to `L` octets, with what is around them, in a stream.
#[derive(Clone, Debug)]
pub struct Decoder<const L: usize> {
    octets: [u8; L],
    len: usize,
    /// Of these, the first were told already.
    told: usize,
    damaged: u64,
}

impl<const L: usize> Default for Decoder<L> {
    fn default() -> Self {
        Decoder::new()
    }
}

impl<const L: usize> Decoder<L> {
    /// One that has read nothing.
    pub const fn new() -> Decoder<L> {
        Decoder {
            octets: [0; L],
            len: 0,
            told: 0,
            damaged: 0,
        }
    }

    /// Takes in as many of these octets as there is room for, and tells how many. There is room again when
    /// [`packet`](Decoder::packet) has told `None`.
    pub fn feed(&mut self, octets: &[u8]) -> usize {
        self.forget_told();
        let taken = octets.len().min(L - self.len);
        self.octets[self.len..self.len + taken].copy_from_slice(&octets[..taken]);
        self.len += taken;
        taken
    }

    /// Octets that belonged to no packet.
    pub fn damaged_octets(&self) -> u64 {
        self.damaged
    }

    fn forget_told(&mut self) {
        let told = core::mem::take(&mut self.told);
        self.forget(told);
    }

    fn forget(&mut self, octets: usize) {
        self.octets.copy_within(octets..self.len, 0);
        self.len -= octets;
    }

    /// Gives up what cannot be the start of a packet, up to the next mark behind the first octet.
    fn skip(&mut self) {
        let rest = &self.octets[1..self.len];
        let octets = 1 + rest.iter().position(|o| *o == MARK).unwrap_or(rest.len());
        self.damaged += octets as u64;
        self.forget(octets);
    }

    /// The next packet; `None`: not yet.
    pub fn packet(&mut self) -> Option<Packet<'_>> {
        self.forget_told();
        let all = loop {
            let [mark, _, low, high, ..] = self.octets[..self.len] else {
                if self.len > 0 && self.octets[0] != MARK {
                    self.skip();
                    continue;
                }
                return None;
            };
            let all = OVERHEAD_OCTETS + usize::from(u16::from_le_bytes([low, high]));
            if mark != MARK || all > L {
                self.skip();
                continue;
            }
            if self.len < all {
                return None;
            }
            let (head, tail) = self.octets[..all].split_at(all - TAIL);
            if check(&[&head[1..]]).to_le_bytes() == tail {
                break all;
            }
            self.skip();
        };
        self.told = all;
        Some(Packet {
            kind: self.octets[1],
            body: &self.octets[HEAD..all - TAIL],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn written(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        assert!(write(kind, [body, &[], &[]], &mut |part| out.extend(part)));
        out
    }

    /// Everything a decoder finds when the stream comes in pieces.
    fn read<const L: usize>(stream: &[u8], piece: usize) -> (Vec<(u8, Vec<u8>)>, u64) {
        let mut decoder = Decoder::<L>::new();
        let mut found = Vec::new();
        for mut octets in stream.chunks(piece.max(1)) {
            while !octets.is_empty() {
                octets = &octets[decoder.feed(octets)..];
                while let Some(packet) = decoder.packet() {
                    found.push((packet.kind, packet.body.to_vec()));
                }
            }
        }
        (found, decoder.damaged_octets())
    }

    #[test]
    fn the_octets_of_a_packet() {
        // CRC-32 of 05 02 00 61 62 by another program
        let expected = [0xd7, 5, 2, 0, b'a', b'b', 0x74, 0xea, 0x91, 0x7b];
        assert_eq!(written(5, b"ab"), expected);
        assert!(!write(5, [&[0; 0x1_0000], &[], &[]], &mut |_| unreachable!()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 300 }))]
        #[test]
        fn what_was_written_is_read(
            packets in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..56)), 0..12),
            piece in 1_usize..90,
        ) {
            let stream: Vec<u8> = packets.iter().flat_map(|(kind, body)| written(*kind, body)).collect();
            prop_assert_eq!(read::<64>(&stream, piece), (packets, 0));
        }

        #[test]
        fn behind_damage_it_is_in_step_again(
            before in proptest::collection::vec(any::<u8>(), 0..200),
            body in proptest::collection::vec(any::<u8>(), 0..56),
            piece in 1_usize..90,
        ) {
            let mut stream = before.clone();
            // what looked like the start of a packet has its end within so many octets
            stream.extend([0; 64]);
            stream.extend(written(9, &body));
            let (found, damaged) = read::<64>(&stream, piece);
            prop_assert_eq!(found.last(), Some(&(9, body)));
            prop_assert!(damaged >= 64 || found.len() > 1);
        }

        #[test]
        fn nothing_else_passes(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            prop_assert_eq!(read::<64>(&octets, 7).0.len(), 0);
        }
    }
}
