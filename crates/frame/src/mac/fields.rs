//! The control fields: frame control, sequence control, QoS control.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// The four types of frames (IEEE 802.11-2016, Table 9-1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameType {
    /// Beacons, probes, association and so on.
    Management,
    /// ACK, RTS, CTS and so on.
    Control,
    /// Data and null frames.
    Data,
    /// Frames of other bands (60 GHz, below 1 GHz).
    Extension,
}

/// Type and subtype of a frame: the first octet of an MPDU of protocol version 0. It compares and matches like an
/// enumeration: `match header.kind() { Kind::BEACON => ..., _ => ... }`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(u8);

macro_rules! kinds {
    ($($name:ident = $octet:literal $text:literal),* $(,)?) => {
        /// The kinds that this crate knows by name (IEEE 802.11-2016, Table 9-1).
        impl Kind {
            $(#[doc = $text] pub const $name: Kind = Kind($octet);)*

            /// Name in plain words; `None` for reserved and obsolete kinds.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Kind::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    ASSOCIATION_REQUEST = 0x00 "Association Request",
    ASSOCIATION_RESPONSE = 0x10 "Association Response",
    REASSOCIATION_REQUEST = 0x20 "Reassociation Request",
    REASSOCIATION_RESPONSE = 0x30 "Reassociation Response",
    PROBE_REQUEST = 0x40 "Probe Request",
    PROBE_RESPONSE = 0x50 "Probe Response",
    TIMING_ADVERTISEMENT = 0x60 "Timing Advertisement",
    BEACON = 0x80 "Beacon",
    ATIM = 0x90 "ATIM",
    DISASSOCIATION = 0xa0 "Disassociation",
    AUTHENTICATION = 0xb0 "Authentication",
    DEAUTHENTICATION = 0xc0 "Deauthentication",
    ACTION = 0xd0 "Action",
    ACTION_NO_ACK = 0xe0 "Action No Ack",
    CONTROL_WRAPPER = 0x74 "Control Wrapper",
    BLOCK_ACK_REQUEST = 0x84 "Block Ack Request",
    BLOCK_ACK = 0x94 "Block Ack",
    PS_POLL = 0xa4 "PS-Poll",
    RTS = 0xb4 "RTS",
    CTS = 0xc4 "CTS",
    ACK = 0xd4 "ACK",
    CF_END = 0xe4 "CF-End",
    DATA = 0x08 "Data",
    NULL = 0x48 "Null",
    QOS_DATA = 0x88 "QoS Data",
    QOS_NULL = 0xc8 "QoS Null",
}

impl Kind {
    /// From type and subtype; of `subtype` only the four lowest bits count.
    pub const fn new(of: FrameType, subtype: u8) -> Kind {
        let of = match of {
            FrameType::Management => 0,
            FrameType::Control => 1,
            FrameType::Data => 2,
            FrameType::Extension => 3,
        };
        Kind(subtype << 4 | of << 2)
    }

    /// Type.
    pub const fn frame_type(self) -> FrameType {
        match self.0 >> 2 & 3 {
            0 => FrameType::Management,
            1 => FrameType::Control,
            2 => FrameType::Data,
            _ => FrameType::Extension,
        }
    }

    /// Subtype, 0 to 15.
    pub const fn subtype(self) -> u8 {
        self.0 >> 4
    }

    /// Whether the header has a QoS control field: data frames with bit 3 of the subtype.
    pub const fn is_qos(self) -> bool {
        self.0 & 0x8c == 0x88
    }

    /// The octet on the air.
    pub const fn octet(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Kind {
    /// The name, or `type 1 subtype 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "type {} subtype {}", self.0 >> 2 & 3, self.subtype()),
        }
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The second octet of the frame control field (IEEE 802.11-2016, 9.2.4.1.4 to 9.2.4.1.10).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// To DS: towards the access point. With [`FROM_DS`](Flags::FROM_DS): four addresses.
    pub const TO_DS: Flags = Flags(0x01);
    /// From DS: from the access point.
    pub const FROM_DS: Flags = Flags(0x02);
    /// More fragments of this MSDU follow.
    pub const MORE_FRAGMENTS: Flags = Flags(0x04);
    /// A repetition of an earlier frame.
    pub const RETRY: Flags = Flags(0x08);
    /// The sender will doze after this exchange.
    pub const POWER_MANAGEMENT: Flags = Flags(0x10);
    /// More frames for the receiver are buffered.
    pub const MORE_DATA: Flags = Flags(0x20);
    /// The body is encrypted.
    pub const PROTECTED: Flags = Flags(0x40);
    /// +HTC/Order: in QoS data and management frames, an HT Control field ends the header; elsewhere strictly
    /// ordered service (obsolete).
    pub const ORDER: Flags = Flags(0x80);

    /// Whether all flags of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the flags of `other` added.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// With the flags of `other` removed.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        self.with(other)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        *self = self.with(other);
    }
}

impl fmt::Display for Flags {
    /// Eight letters or dots, highest bit first, as Wireshark shows them without its FCS letter: `opmPRMFT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, letter) in "opmPRMFT".chars().enumerate() {
            let set = self.0 & 0x80 >> i != 0;
            fmt::Write::write_char(f, if set { letter } else { '.' })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The frame control field, little-endian on the air (IEEE 802.11-2016, 9.2.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameControl(pub [u8; 2]);

impl FrameControl {
    /// Protocol version 0 with this kind and these flags.
    pub const fn new(kind: Kind, flags: Flags) -> FrameControl {
        FrameControl([kind.0, flags.0])
    }

    /// Protocol version, 0 to 3; only 0 is known here.
    pub const fn version(self) -> u8 {
        self.0[0] & 3
    }

    /// Type and subtype.
    pub const fn kind(self) -> Kind {
        Kind(self.0[0] & !3)
    }

    /// Type.
    pub const fn frame_type(self) -> FrameType {
        self.kind().frame_type()
    }

    /// The eight flags.
    pub const fn flags(self) -> Flags {
        Flags(self.0[1])
    }

    /// Octets of the MAC header that belongs to this frame control field, up to the body. For control and
    /// extension frames that this crate does not know it is 10, which is what all of them have in common.
    pub const fn header_octets(self) -> usize {
        let kind = self.kind();
        let order = self.flags().contains(Flags::ORDER);
        match self.frame_type() {
            FrameType::Management => 24 + if order { 4 } else { 0 },
            FrameType::Data => {
                let four = self.flags().contains(Flags(0x03));
                let qos = match (kind.is_qos(), order) {
                    (false, _) => 0,
                    (true, false) => 2,
                    (true, true) => 6,
                };
                24 + qos + if four { 6 } else { 0 }
            }
            FrameType::Control => match kind {
                Kind::RTS | Kind::PS_POLL | Kind::BLOCK_ACK_REQUEST | Kind::BLOCK_ACK | Kind::CF_END => 16,
                _ => 10,
            },
            FrameType::Extension => 10,
        }
    }
}

impl fmt::Debug for FrameControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} v{} {}", self.kind(), self.version(), self.flags())
    }
}

/// The sequence control field (IEEE 802.11-2016, 9.2.4.4): number of the MSDU and of its fragment.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SequenceControl(pub u16);

impl SequenceControl {
    /// From sequence number (0 to 4095) and fragment number (0 to 15); higher bits are cut off.
    pub const fn new(number: u16, fragment: u8) -> SequenceControl {
        SequenceControl(number << 4 | (fragment & 0xf) as u16)
    }

    /// Sequence number of the MSDU, 0 to 4095.
    pub const fn number(self) -> u16 {
        self.0 >> 4
    }

    /// Fragment number, 0 to 15.
    pub const fn fragment(self) -> u8 {
        (self.0 & 0xf) as u8
    }
}

/// Which acknowledgement a QoS data frame asks for (IEEE 802.11-2016, Table 9-9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AckPolicy {
    /// Normal: an ACK after SIFS (or a block ack, if the frame is part of an A-MPDU).
    #[default]
    Normal,
    /// None.
    NoAck,
    /// No explicit acknowledgement (a poll or PSMP follows).
    NoExplicitAck,
    /// Later, in a block ack that is asked for separately.
    BlockAck,
}

/// The QoS control field (IEEE 802.11-2016, 9.2.4.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct QosControl(pub u16);

impl QosControl {
    /// With this traffic identifier (0 to 15, higher bits are cut off) and acknowledgement policy.
    pub const fn new(tid: u8, policy: AckPolicy) -> QosControl {
        QosControl((tid & 0xf) as u16 | (policy as u16) << 5)
    }

    /// The same for a body of A-MSDU subframes.
    #[must_use]
    pub const fn with_amsdu(self) -> QosControl {
        QosControl(self.0 | 0x80)
    }

    /// Traffic identifier: 0 to 7 are user priorities, 8 to 15 traffic streams.
    pub const fn tid(self) -> u8 {
        (self.0 & 0xf) as u8
    }

    /// End of service period.
    pub const fn eosp(self) -> bool {
        self.0 & 0x10 != 0
    }

    /// Acknowledgement policy.
    pub const fn ack_policy(self) -> AckPolicy {
        match self.0 >> 5 & 3 {
            0 => AckPolicy::Normal,
            1 => AckPolicy::NoAck,
            2 => AckPolicy::NoExplicitAck,
            _ => AckPolicy::BlockAck,
        }
    }

    /// The body holds A-MSDU subframes instead of one MSDU.
    pub const fn is_amsdu(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// The upper octet: TXOP limit, duration asked for, or queue size, depending on who sends to whom.
    pub const fn upper(self) -> u8 {
        (self.0 >> 8) as u8
    }
}

/// Association identifier as it stands in PS-Poll frames and association responses: with its two highest bits set
/// (IEEE 802.11-2016, 9.2.4.2 and 9.4.1.8).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Aid(pub u16);

impl Aid {
    /// From a number, 1 to 2007; `None` for others.
    pub const fn new(number: u16) -> Option<Aid> {
        if matches!(number, 1..=2007) {
            Some(Aid(number | 0xc000))
        } else {
            None
        }
    }

    /// The number, 1 to 2007; `None` if the field holds no association identifier.
    pub const fn number(self) -> Option<u16> {
        match self.0 {
            0xc001..=0xc7d7 => Some(self.0 & 0x3fff),
            _ => None,
        }
    }
}

impl fmt::Display for Aid {
    /// `AID=5`, or `no AID`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => write!(f, "AID={number}"),
            None => f.write_str("no AID"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::format;

    #[test]
    fn kinds_and_names() {
        for octet in (0..=255u8).filter(|o| o & 3 == 0) {
            let k = FrameControl([octet, 0]).kind();
            assert_eq!(Kind::new(k.frame_type(), k.subtype()), k);
            assert_eq!(k.octet(), octet);
        }
        assert_eq!(Kind::new(FrameType::Management, 8), Kind::BEACON);
        assert_eq!(Kind::new(FrameType::Control, 13), Kind::ACK);
        assert_eq!(
            format!("{} / {}", Kind::QOS_NULL, Kind::new(FrameType::Control, 3)),
            "QoS Null / type 1 subtype 3"
        );
        assert!(
            Kind::QOS_DATA.is_qos() && !Kind::DATA.is_qos() && !Kind::BEACON.is_qos() && !Kind::RTS.is_qos()
        );
    }

    #[test]
    fn flags() {
        assert_eq!(
            format!("{}", Flags::TO_DS | Flags::RETRY | Flags::ORDER),
            "o...R..T"
        );
        assert!(Flags(0x0b).contains(Flags::TO_DS | Flags::FROM_DS));
        assert_eq!(Flags(0x0b).without(Flags::RETRY), Flags(3));
    }

    #[test]
    fn header_lengths() {
        let n = |kind, flags| FrameControl::new(kind, Flags(flags)).header_octets();
        assert_eq!(
            [n(Kind::DATA, 0), n(Kind::DATA, 3), n(Kind::DATA, 0x80)],
            [24, 30, 24]
        );
        assert_eq!(
            [
                n(Kind::QOS_DATA, 1),
                n(Kind::QOS_DATA, 3),
                n(Kind::QOS_DATA, 0x83)
            ],
            [26, 32, 36]
        );
        assert_eq!([n(Kind::BEACON, 0), n(Kind::BEACON, 0x80)], [24, 28]);
        assert_eq!(
            [
                n(Kind::ACK, 0),
                n(Kind::CTS, 0),
                n(Kind::RTS, 0),
                n(Kind::PS_POLL, 0)
            ],
            [10, 10, 16, 16]
        );
    }

    #[test]
    fn sequence_and_qos() {
        let s = SequenceControl::new(4095, 3);
        assert_eq!((s.0, s.number(), s.fragment()), (0xfff3, 4095, 3));
        assert_eq!(
            SequenceControl::new(4096, 16),
            SequenceControl(0),
            "out-of-range bits are cut off"
        );
        for policy in [
            AckPolicy::Normal,
            AckPolicy::NoAck,
            AckPolicy::NoExplicitAck,
            AckPolicy::BlockAck,
        ] {
            let q = QosControl::new(6, policy);
            assert_eq!(
                (q.tid(), q.ack_policy(), q.is_amsdu(), q.eosp()),
                (6, policy, false, false)
            );
        }
        assert!(QosControl::new(6, AckPolicy::Normal).with_amsdu().is_amsdu());
        assert!(QosControl(0x0090).is_amsdu() && QosControl(0x0010).eosp());
        assert_eq!(QosControl(0x2a00).upper(), 0x2a);
    }

    #[test]
    fn association_identifiers() {
        // under miri few of them, but both sides of each limit
        let step = if cfg!(miri) { 669 } else { 1 };
        for n in (0..=u16::MAX).step_by(step).chain([1, 2007, 2008, u16::MAX]) {
            assert_eq!(Aid::new(n).is_some(), (1..=2007).contains(&n));
            assert_eq!(Aid::new(n).and_then(Aid::number), Aid::new(n).map(|_| n));
            assert!(
                Aid(n)
                    .number()
                    .is_none_or(|number| Aid::new(number) == Some(Aid(n)))
            );
        }
        assert_eq!(format!("{} {}", Aid(0xc005), Aid(5)), "AID=5 no AID");
    }
}
