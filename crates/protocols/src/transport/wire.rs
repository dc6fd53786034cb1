//! The header of ATP (thesis on ATP in mesh networks, Fig. 3.2; sizes and version are ours), 24 octets, big-endian.
//! The book's page on ATP shows it bit by bit.
//!
//! ATP and the TCP baselines share it. What differs is named in the fields of [`Header`].

use core::fmt;

/// Octets of the header.
pub const HEADER_OCTETS: usize = 24;
/// Octets of data in one packet at most: Ethernet's 1500 without IPv4, UDP and the header. The header of IPv6 is 20 octets longer, so
/// that the hosts of a connection over it must send shorter ones.
pub const MAX_DATA_OCTETS: usize = 1_500 - 20 - 8 - HEADER_OCTETS;
/// Octets of the longest packet.
pub const MAX_PACKET_OCTETS: usize = HEADER_OCTETS + MAX_DATA_OCTETS;
/// Blocks in one feedback at most (thesis, section 2.2).
pub const MAX_BLOCKS: usize = 20;
/// Octets of one block.
pub const BLOCK_OCTETS: usize = 8;
/// The version that is written and read.
pub const VERSION: u8 = 1;

const OPTIONS_AT: usize = 7;
const HOPS_AT: usize = 6;
const DELAY_AT: usize = 16;

/// The first octet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolId {
    /// TCP in this header: a baseline for comparison.
    Tcp = 1,
    /// ATP.
    Atp = 2,
}

/// Control flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Control(pub u16);

impl Control {
    /// Receiver: no data came for half an epoch; repeat all that is not acknowledged.
    pub const SACK_MORE: Control = Control(1 << 15);
    /// A feedback: the body is blocks, possibly none, and delay and hops are those of the other direction.
    pub const SACK_OPT: Control = Control(1 << 14);
    /// Sender: answer at once (quick-start). In a feedback: this is that answer.
    pub const SACK_REQ: Control = Control(1 << 13);
    /// A node on the way could not pass a packet on; the sequence number is that packet's. Ours: the thesis leaves
    /// path failure out.
    pub const PATH_FAILURE: Control = Control(1 << 12);
    /// The acknowledgement number counts.
    pub const ACK: Control = Control(1 << 4);
    /// The connection is over at once.
    pub const RST: Control = Control(1 << 2);
    /// The call; takes up one sequence number.
    pub const SYN: Control = Control(1 << 1);
    /// Nothing follows in this direction; takes up one sequence number.
    pub const FIN: Control = Control(1);
    const KNOWN: u16 = 0xf03f;

    /// True if all flags of `other` are set.
    pub const fn has(self, other: Control) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both.
    #[must_use]
    pub const fn with(self, other: Control) -> Control {
        Control(self.0 | other.0)
    }

    /// With `other` if `set`.
    #[must_use]
    pub const fn with_if(self, set: bool, other: Control) -> Control {
        if set { self.with(other) } else { self }
    }
}

/// The sender multiplies delays for idle hops itself; hops tell them as they are (adaptive ATP).
pub const OPTION_RAW_DELAY: u8 = 1;
/// In feedback: the delay is that of the reader at its end, and the path has a shorter one. Ours.
pub const OPTION_READER: u8 = 4;

/// The header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Whose packet it is.
    pub protocol: ProtocolId,
    /// Flags; unknown ones are dropped.
    pub control: Control,
    /// ATP: octets of blocks in the body. TCP: receive window in octets.
    pub size: u16,
    /// Nodes passed so far; in a feedback, on the way of the data.
    pub hops: u8,
    /// [`OPTION_RAW_DELAY`] and [`OPTION_READER`]; other bits are dropped.
    pub options: u8,
    /// Number of the first octet of the body.
    pub sequence: u32,
    /// Number of the next octet expected.
    pub acknowledgement: u32,
    /// ATP: the longest delay of the nodes passed, in microseconds; in a feedback the one fed back, 0 if there is
    /// none. TCP: time stamp in microseconds, wrapping.
    pub delay_us: u32,
    /// ATP: the sender's spacing in microseconds, 0 if not told; with SYN its epoch in microseconds; in a feedback
    /// the time since the newest packet of data came. TCP: time stamp that is echoed.
    pub spacing_us: u32,
}

/// Why octets are not a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketError {
    /// Shorter than the header.
    Truncated,
    /// The first octet is neither TCP nor ATP.
    Protocol(u8),
    /// Another version than [`VERSION`].
    Version(u8),
    /// A feedback whose blocks do not fill the body, or are more than [`MAX_BLOCKS`]; or blocks outside of one.
    Blocks,
    /// More than [`MAX_DATA_OCTETS`] of data.
    TooLong,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketError::Truncated => f.write_str("the packet is shorter than its header of 24 octets"),
            PacketError::Protocol(id) => write!(f, "protocol {id} is neither TCP (1) nor ATP (2)"),
            PacketError::Version(v) => write!(f, "header version {v}; this program speaks version {VERSION}"),
            PacketError::Blocks => f.write_str("the SACK length does not fit the body"),
            PacketError::TooLong => write!(f, "the packet holds more than {MAX_DATA_OCTETS} octets of data"),
        }
    }
}

impl core::error::Error for PacketError {}

impl Header {
    /// A header with everything but `control` zero.
    pub const fn new(protocol: ProtocolId, control: Control) -> Header {
        Header {
            protocol,
            control,
            size: 0,
            hops: 0,
            options: 0,
            sequence: 0,
            acknowledgement: 0,
            delay_us: 0,
            spacing_us: 0,
        }
    }

    /// True for a feedback of ATP.
    pub const fn is_feedback(&self) -> bool {
        matches!(self.protocol, ProtocolId::Atp) && self.control.has(Control::SACK_OPT)
    }

    /// Reads a datagram: header and body.
    ///
    /// # Errors
    /// [`PacketError`] says what is wrong; nothing panics, whatever the octets are.
    pub fn parse(datagram: &[u8]) -> Result<(Header, &[u8]), PacketError> {
        let (head, body) = datagram
            .split_first_chunk::<HEADER_OCTETS>()
            .ok_or(PacketError::Truncated)?;
        let u16_at = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let u32_at = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let protocol = match head[0] {
            1 => ProtocolId::Tcp,
            2 => ProtocolId::Atp,
            other => return Err(PacketError::Protocol(other)),
        };
        if head[1] != VERSION {
            return Err(PacketError::Version(head[1]));
        }
        let header = Header {
            protocol,
            control: Control(u16_at(2) & Control::KNOWN),
            size: u16_at(4),
            hops: head[HOPS_AT],
            options: head[OPTIONS_AT] & (OPTION_RAW_DELAY | OPTION_READER),
            sequence: u32_at(8),
            acknowledgement: u32_at(12),
            delay_us: u32_at(DELAY_AT),
            spacing_us: u32_at(20),
        };
        header.check(body)?;
        Ok((header, body))
    }

    fn check(&self, body: &[u8]) -> Result<(), PacketError> {
        let size = usize::from(self.size);
        if self.is_feedback() {
            let fits = size == body.len() && size.is_multiple_of(BLOCK_OCTETS);
            return if fits && size <= MAX_BLOCKS * BLOCK_OCTETS {
                Ok(())
            } else {
                Err(PacketError::Blocks)
            };
        }
        if self.protocol == ProtocolId::Atp && size != 0 {
            return Err(PacketError::Blocks);
        }
        if body.len() > MAX_DATA_OCTETS {
            return Err(PacketError::TooLong);
        }
        Ok(())
    }

    /// What is answered to a packet with `body` of a connection that is not there: a reset that the other end believes. None to a reset, nor
    /// to what a hop says of a path.
    pub fn refusal(&self, body: &[u8]) -> Option<Header> {
        let c = self.control;
        let taken = if self.is_feedback() { 0 } else { body.len() as u32 };
        let ends = u32::from(c.has(Control::SYN)) + u32::from(c.has(Control::FIN));
        let answered = !c.has(Control::RST) && !c.has(Control::PATH_FAILURE);
        answered.then(|| Header {
            sequence: self.acknowledgement,
            acknowledgement: self.sequence.wrapping_add(taken).wrapping_add(ends),
            ..Header::new(self.protocol, Control::RST.with(Control::ACK))
        })
    }

    /// The octets of the header. The body follows them.
    pub fn octets(&self) -> [u8; HEADER_OCTETS] {
        let mut out = [0; HEADER_OCTETS];
        out[0] = self.protocol as u8;
        out[1] = VERSION;
        out[2..4].copy_from_slice(&self.control.0.to_be_bytes());
        out[4..6].copy_from_slice(&self.size.to_be_bytes());
        out[HOPS_AT] = self.hops;
        out[OPTIONS_AT] = self.options;
        out[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        out[12..16].copy_from_slice(&self.acknowledgement.to_be_bytes());
        out[DELAY_AT..20].copy_from_slice(&self.delay_us.to_be_bytes());
        out[20..24].copy_from_slice(&self.spacing_us.to_be_bytes());
        out
    }
}

/// The blocks of a feedback: each a range of numbers, the first included, the second not, that is missing.
pub fn blocks(body: &[u8]) -> impl Iterator<Item = (u32, u32)> {
    body.as_chunks::<BLOCK_OCTETS>().0.iter().map(|b| {
        let [l0, l1, l2, l3, r0, r1, r2, r3] = *b;
        (
            u32::from_be_bytes([l0, l1, l2, l3]),
            u32::from_be_bytes([r0, r1, r2, r3]),
        )
    })
}

/// What a node does to a packet that passes it: counts itself, and raises the delay to its own if that is longer.
/// Feedback, TCP and what cannot be read stay as they are. True if the octets have changed.
pub fn pass(datagram: &mut [u8], delay_us: impl FnOnce(&Header) -> u32) -> bool {
    let Ok((header, _)) = Header::parse(datagram) else {
        return false;
    };
    if header.protocol != ProtocolId::Atp || header.is_feedback() {
        return false;
    }
    let delay_us = header.delay_us.max(delay_us(&header));
    datagram[HOPS_AT] = header.hops.saturating_add(1);
    datagram[DELAY_AT..DELAY_AT + 4].copy_from_slice(&delay_us.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn datagram(header: &Header, body: &[u8]) -> Vec<u8> {
        [&header.octets()[..], body].concat()
    }

    #[test]
    fn bit_by_bit() {
        let h = Header {
            size: 16,
            hops: 3,
            options: OPTION_RAW_DELAY,
            sequence: 0x0102_0304,
            acknowledgement: 0x0506_0708,
            delay_us: 0x090a_0b0c,
            spacing_us: 0x0d0e_0f10,
            ..Header::new(
                ProtocolId::Atp,
                Control::SACK_MORE.with(Control::SACK_OPT).with(Control::ACK),
            )
        };
        let body = [0, 0, 0, 1, 0, 0, 0, 2, 255, 255, 255, 255, 0, 0, 0, 9];
        let octets = datagram(&h, &body);
        let head = [
            2, 1, 0xc0, 0x10, 0, 16, 3, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        ];
        assert_eq!(octets[..24], head);
        assert_eq!(Header::parse(&octets), Ok((h, &body[..])));
        assert_eq!(blocks(&body).collect::<Vec<_>>(), [(1, 2), (u32::MAX, 9)]);
        assert_eq!(
            [HEADER_OCTETS, MAX_DATA_OCTETS, MAX_BLOCKS * BLOCK_OCTETS],
            [24, 1448, 160]
        );
    }

    #[test]
    fn what_is_no_packet() {
        let atp = Header::new(ProtocolId::Atp, Control::ACK);
        let good = datagram(&atp, b"data");
        for n in 0..HEADER_OCTETS {
            assert_eq!(Header::parse(&good[..n]), Err(PacketError::Truncated));
        }
        let with = |at: usize, octet: u8| {
            let mut octets = good.clone();
            octets[at] = octet;
            Header::parse(&octets).map(|(h, _)| h.control)
        };
        assert_eq!(with(0, 3), Err(PacketError::Protocol(3)));
        assert_eq!(with(1, 0), Err(PacketError::Version(0)));
        assert_eq!(
            with(5, 8),
            Err(PacketError::Blocks),
            "blocks outside of a feedback"
        );
        assert_eq!(with(2, 0x40), Err(PacketError::Blocks), "data in a feedback");
        assert_eq!(with(2, 0x0f), Ok(Control::ACK), "unknown flags are dropped");
        let long = datagram(&atp, &[0; MAX_DATA_OCTETS + 1]);
        assert_eq!(Header::parse(&long), Err(PacketError::TooLong));
        let many = Header {
            size: 168,
            ..Header::new(ProtocolId::Atp, Control::SACK_OPT)
        };
        assert_eq!(
            Header::parse(&datagram(&many, &[0; 168])),
            Err(PacketError::Blocks)
        );
    }

    #[test]
    fn hops_only_raise() {
        let h = Header {
            delay_us: 500,
            hops: 255,
            ..Header::new(ProtocolId::Atp, Control::SYN)
        };
        let mut octets = datagram(&h, b"");
        assert!(pass(&mut octets, |_| 400));
        assert_eq!(Header::parse(&octets), Ok((h, &[][..])), "255 hops and no more");
        assert!(pass(&mut octets, |_| 600));
        assert_eq!(Header::parse(&octets).unwrap().0.delay_us, 600);
        let feedback = Header::new(ProtocolId::Atp, Control::SACK_OPT);
        for mut octets in [
            datagram(&feedback, b""),
            datagram(&Header::new(ProtocolId::Tcp, Control::ACK), b"tcp"),
            std::vec![2, 1, 0],
        ] {
            let before = octets.clone();
            assert!(!pass(&mut octets, |_| 600) && octets == before);
        }
    }

    proptest! {
        #[test]
        fn any_header_comes_back(control: u16, hops: u8, options in (0u8..8).prop_map(|o| o & (OPTION_RAW_DELAY | OPTION_READER)), numbers: [u32; 4], n in 0usize..=20) {
            let control = Control(control & Control::KNOWN);
            let feedback = control.has(Control::SACK_OPT);
            let h = Header {
                size: if feedback { n as u16 * 8 } else { 0 },
                hops, options,
                sequence: numbers[0], acknowledgement: numbers[1], delay_us: numbers[2], spacing_us: numbers[3],
                ..Header::new(ProtocolId::Atp, control)
            };
            let octets = datagram(&h, &std::vec![9; n * 8]);
            prop_assert_eq!(Header::parse(&octets), Ok((h, &octets[24..])));
        }
    }
}
