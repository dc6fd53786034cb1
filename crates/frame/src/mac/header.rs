//! Quick reads and writes in the MAC header of a raw MPDU: what an adapter looks at for every frame.
//!
//! [`Header::parse`] checks once that the whole header is there; the accessors then only load octets.

use crate::addr::MacAddr;
use crate::edca::AccessCategory;
use crate::error::ParseError;
use crate::mac::fields::{AckPolicy, Flags, FrameControl, FrameType, Kind, QosControl, SequenceControl};

/// What the receiver of a frame owes its sender after SIFS.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Response {
    /// Nothing.
    None,
    /// An ACK.
    Ack,
    /// A CTS (the frame is an RTS).
    Cts,
    /// A block ack (the frame asks for one).
    BlockAck,
}

/// The MAC header of an MPDU that is complete as far as its frame control field says.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// The header alone, 10 to 36 octets.
    head: &'a [u8],
    body: &'a [u8],
}

impl<'a> Header<'a> {
    /// Looks at the first octets of `mpdu` (with or without FCS).
    ///
    /// # Errors
    /// [`ParseError::Version`] if the protocol version is not 0, [`ParseError::Truncated`] if the header is cut.
    #[inline]
    pub fn parse(mpdu: &'a [u8]) -> Result<Header<'a>, ParseError> {
        let control = control(mpdu)?;
        let (head, body) = mpdu
            .split_at_checked(control.header_octets())
            .ok_or(ParseError::Truncated)?;
        Ok(Header { head, body })
    }

    /// Frame control.
    #[inline]
    pub fn control(&self) -> FrameControl {
        FrameControl([self.head[0], self.head[1]])
    }

    /// Type and subtype.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.control().kind()
    }

    /// Type.
    #[inline]
    pub fn frame_type(&self) -> FrameType {
        self.control().frame_type()
    }

    /// Flags.
    #[inline]
    pub fn flags(&self) -> Flags {
        self.control().flags()
    }

    /// Whether the retry flag is set.
    #[inline]
    pub fn is_retry(&self) -> bool {
        self.flags().contains(Flags::RETRY)
    }

    /// Octets of the header, 10 to 36; the body starts after them.
    #[inline]
    pub fn octets(&self) -> usize {
        self.head.len()
    }

    /// Everything after the header.
    #[inline]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The Duration/ID field as it stands (IEEE 802.11-2016, 9.2.4.2): up to 32767 it is the NAV in microseconds
    /// after this frame; in a PS-Poll it is not a duration, see [`nav_us`](Header::nav_us).
    #[inline]
    pub fn duration(&self) -> u16 {
        u16::from_le_bytes([self.head[2], self.head[3]])
    }

    /// For how long after this frame other stations must keep off the medium, in microseconds, 0 to 32767; 0 if
    /// the Duration/ID field says nothing about that (PS-Poll, values of 32768 and above).
    #[inline]
    pub fn nav_us(&self) -> u16 {
        match self.duration() {
            d if d < 0x8000 => d,
            _ => 0,
        }
    }

    /// Receiver address (RA), which is address 1 in every frame.
    #[inline]
    pub fn receiver(&self) -> MacAddr {
        let h = self.head;
        MacAddr([h[4], h[5], h[6], h[7], h[8], h[9]])
    }

    /// Transmitter address (TA), address 2; `None` where there is none (ACK, CTS) or where this crate does not
    /// know the frame.
    #[inline]
    pub fn transmitter(&self) -> Option<MacAddr> {
        self.address_at(10)
    }

    /// Address 3 of data and management frames.
    #[inline]
    pub fn address3(&self) -> Option<MacAddr> {
        self.address_at(16)
    }

    /// Address 4 of data frames with both DS flags.
    #[inline]
    pub fn address4(&self) -> Option<MacAddr> {
        if self.has_four_addresses() {
            self.address_at(24)
        } else {
            None
        }
    }

    /// Whether the receiver is a group (multicast or broadcast).
    #[inline]
    pub fn is_group(&self) -> bool {
        self.head[4] & 1 != 0
    }

    /// Sequence control of data and management frames.
    #[inline]
    pub fn sequence(&self) -> Option<SequenceControl> {
        self.u16_at(22).map(SequenceControl)
    }

    /// QoS control of QoS data and QoS null frames.
    #[inline]
    pub fn qos(&self) -> Option<QosControl> {
        if !self.kind().is_qos() {
            return None;
        }
        let at = if self.has_four_addresses() { 30 } else { 24 };
        self.u16_at(at).map(QosControl)
    }

    /// HT Control field of QoS data and management frames with [`Flags::ORDER`].
    #[inline]
    pub fn ht_control(&self) -> Option<u32> {
        if !self.flags().contains(Flags::ORDER)
            || !(self.kind().is_qos() || self.frame_type() == FrameType::Management)
        {
            return None;
        }
        self.head.last_chunk().map(|octets| u32::from_le_bytes(*octets))
    }

    /// Traffic identifier of QoS data frames, 0 to 15.
    #[inline]
    pub fn tid(&self) -> Option<u8> {
        self.qos().map(QosControl::tid)
    }

    /// Acknowledgement policy of QoS data frames.
    #[inline]
    pub fn ack_policy(&self) -> Option<AckPolicy> {
        self.qos().map(QosControl::ack_policy)
    }

    /// Access category that this frame contends with: by TID for QoS data, best effort for other data, voice for
    /// management and control frames (IEEE 802.11-2016, 10.2.4.2).
    #[inline]
    pub fn access_category(&self) -> AccessCategory {
        match (self.frame_type(), self.tid()) {
            (FrameType::Data, Some(tid)) => AccessCategory::from_tid(tid),
            (FrameType::Data, None) => AccessCategory::BestEffort,
            _ => AccessCategory::Voice,
        }
    }

    /// What its receiver answers after SIFS if the frame arrives intact, outside of A-MPDUs
    /// (IEEE 802.11-2016, 10.3.2.9).
    #[inline]
    pub fn response(&self) -> Response {
        if self.is_group() {
            return Response::None;
        }
        match (self.frame_type(), self.kind()) {
            (_, Kind::ACTION_NO_ACK) => Response::None,
            (FrameType::Management, _) | (_, Kind::PS_POLL) => Response::Ack,
            (_, Kind::RTS) => Response::Cts,
            (_, Kind::BLOCK_ACK_REQUEST) => Response::BlockAck,
            (FrameType::Data, _) => match self.ack_policy() {
                None | Some(AckPolicy::Normal) => Response::Ack,
                Some(_) => Response::None,
            },
            _ => Response::None,
        }
    }

    /// Whether an ACK follows: [`response`](Header::response) is [`Response::Ack`].
    #[inline]
    pub fn wants_ack(&self) -> bool {
        self.response() == Response::Ack
    }

    #[inline]
    fn has_four_addresses(&self) -> bool {
        self.frame_type() == FrameType::Data && self.flags().contains(Flags(0x03))
    }

    #[inline]
    fn u16_at(&self, at: usize) -> Option<u16> {
        let octets = self.head.get(at..)?.first_chunk()?;
        Some(u16::from_le_bytes(*octets))
    }

    #[inline]
    fn address_at(&self, at: usize) -> Option<MacAddr> {
        let octets = self.head.get(at..)?.first_chunk()?;
        Some(MacAddr(*octets))
    }
}

/// Frame control of an MPDU.
///
/// # Errors
/// [`ParseError::Truncated`] below two octets, [`ParseError::Version`] if the protocol version is not 0.
#[inline]
pub fn control(mpdu: &[u8]) -> Result<FrameControl, ParseError> {
    match *mpdu {
        [first, second, ..] if first & 3 == 0 => Ok(FrameControl([first, second])),
        [_, _, ..] => Err(ParseError::Version),
        _ => Err(ParseError::Truncated),
    }
}

/// Writes the Duration/ID field; durations are 0 to 32767 us.
///
/// # Errors
/// Those of [`Header::parse`]; then nothing is changed.
#[inline]
pub fn set_duration(mpdu: &mut [u8], duration: u16) -> Result<(), ParseError> {
    Header::parse(mpdu)?;
    mpdu[2..4].copy_from_slice(&duration.to_le_bytes());
    Ok(())
}

/// Sets or clears the retry flag.
///
/// # Errors
/// Those of [`Header::parse`]; then nothing is changed.
#[inline]
pub fn set_retry(mpdu: &mut [u8], retry: bool) -> Result<(), ParseError> {
    let flags = Header::parse(mpdu)?.flags();
    mpdu[1] = if retry {
        flags.with(Flags::RETRY)
    } else {
        flags.without(Flags::RETRY)
    }
    .0;
    Ok(())
}

/// Writes the sequence control field.
///
/// # Errors
/// Those of [`Header::parse`], and [`ParseError::WrongKind`] if the frame has no such field (control frames); then
/// nothing is changed.
#[inline]
pub fn set_sequence(mpdu: &mut [u8], sequence: SequenceControl) -> Result<(), ParseError> {
    if Header::parse(mpdu)?.sequence().is_none() {
        return Err(ParseError::WrongKind);
    }
    mpdu[22..24].copy_from_slice(&sequence.0.to_le_bytes());
    Ok(())
}

/// Timestamp of a beacon or probe response: the TSF of its sender when its first bit was on the air, in
/// microseconds (IEEE 802.11-2016, 9.4.1.10). `None` for other and for cut frames.
#[inline]
pub fn timestamp_us(mpdu: &[u8]) -> Option<u64> {
    let at = timestamp_at(mpdu)?;
    mpdu.get(at..)?
        .first_chunk()
        .map(|octets| u64::from_le_bytes(*octets))
}

/// Writes the timestamp of a beacon or probe response, as the adapter does at the last moment.
///
/// # Errors
/// [`ParseError::WrongKind`] for other frames, [`ParseError::Truncated`] for cut ones.
#[inline]
pub fn set_timestamp_us(mpdu: &mut [u8], tsf_us: u64) -> Result<(), ParseError> {
    Header::parse(mpdu)?;
    let at = timestamp_at(mpdu).ok_or(ParseError::WrongKind)?;
    let place = mpdu[at..].first_chunk_mut().ok_or(ParseError::Truncated)?;
    *place = tsf_us.to_le_bytes();
    Ok(())
}

#[inline]
fn timestamp_at(mpdu: &[u8]) -> Option<usize> {
    let h = Header::parse(mpdu).ok()?;
    matches!(h.kind(), Kind::BEACON | Kind::PROBE_RESPONSE).then(|| h.octets())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RA: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const TA: [u8; 6] = [2, 0, 0, 0, 0, 2];

    /// A header of `octets` octets whose octet i, where nothing else is said, is i.
    fn mpdu(octets: usize, first: u8, flags: u8) -> ([u8; 40], usize) {
        let mut m = [0; 40];
        for (i, o) in m.iter_mut().enumerate() {
            *o = i as u8;
        }
        m[..4].copy_from_slice(&[first, flags, 0x2c, 0x01]);
        m[4..10].copy_from_slice(&RA);
        m[10..16].copy_from_slice(&TA);
        (m, octets)
    }

    #[test]
    fn qos_data_with_four_addresses() {
        let (mut m, n) = mpdu(40, 0x88, 0x0b);
        m[22..24].copy_from_slice(&[0x35, 0x12]);
        m[30..32].copy_from_slice(&[0x26, 0]);
        let h = Header::parse(&m[..n]).unwrap();
        assert_eq!(
            (h.kind(), h.octets(), h.duration(), h.nav_us()),
            (Kind::QOS_DATA, 32, 300, 300)
        );
        assert_eq!((h.receiver(), h.transmitter()), (MacAddr(RA), Some(MacAddr(TA))));
        assert_eq!(h.address3(), Some(MacAddr([16, 17, 18, 19, 20, 21])));
        assert_eq!(h.address4(), Some(MacAddr([24, 25, 26, 27, 28, 29])));
        assert_eq!(h.sequence(), Some(SequenceControl::new(0x123, 5)));
        assert_eq!((h.tid(), h.ack_policy()), (Some(6), Some(AckPolicy::NoAck)));
        assert_eq!(h.access_category(), AccessCategory::Voice);
        assert!(h.is_retry() && !h.is_group() && !h.wants_ack());
        assert_eq!(h.body(), &m[32..]);
    }

    #[test]
    fn what_is_answered() {
        let response = |first: u8, group: bool, qos: u8| {
            let (mut m, n) = mpdu(40, first, 0);
            m[4] |= u8::from(group);
            m[24] = qos;
            Header::parse(&m[..n]).unwrap().response()
        };
        for (first, expect) in [
            (0x08, Response::Ack),
            (0x48, Response::Ack),
            (0x88, Response::Ack),
            (0x80, Response::Ack),
            (0x90, Response::Ack),
            (0xd0, Response::Ack),
            (0xe0, Response::None),
            (0xa4, Response::Ack),
            (0xb4, Response::Cts),
            (0x84, Response::BlockAck),
            (0xc4, Response::None),
            (0xd4, Response::None),
            (0x0c, Response::None),
        ] {
            assert_eq!(response(first, false, 0), expect, "{first:#x}");
            assert_eq!(response(first, true, 0), Response::None, "{first:#x} to a group");
        }
        for (qos, expect) in [
            (0x20, Response::None),
            (0x40, Response::None),
            (0x60, Response::None),
        ] {
            assert_eq!(response(0x88, false, qos), expect);
            assert_eq!(
                response(0x08, false, qos),
                Response::Ack,
                "no QoS control in plain data"
            );
        }
    }

    #[test]
    fn lengths_and_versions() {
        // under miri every kind with a few of the flags
        let step = if cfg!(miri) { 51 } else { 1 };
        for first in (0..=255u8).filter(|o| o & 3 == 0) {
            for flags in (0..=255u8).step_by(step) {
                let (m, _) = mpdu(40, first, flags);
                let octets = Header::parse(&m).unwrap().octets();
                assert_eq!(
                    Header::parse(&m[..octets - 1]).unwrap_err(),
                    ParseError::Truncated
                );
                let h = Header::parse(&m[..octets]).unwrap();
                assert!(h.body().is_empty());
                // no accessor reaches past the header
                let _ = (
                    h.address3(),
                    h.address4(),
                    h.sequence(),
                    h.qos(),
                    h.response(),
                    h.access_category(),
                );
                assert_eq!(h.transmitter().is_some(), octets >= 16);
            }
        }
        assert_eq!(Header::parse(&[0x81, 0, 0, 0]).unwrap_err(), ParseError::Version);
        assert_eq!(Header::parse(&[0x80]).unwrap_err(), ParseError::Truncated);
    }

    #[test]
    fn setters() {
        let (mut m, n) = mpdu(26, 0x88, 0x01);
        set_duration(&mut m[..n], 44).unwrap();
        set_retry(&mut m[..n], true).unwrap();
        set_sequence(&mut m[..n], SequenceControl::new(77, 1)).unwrap();
        let h = Header::parse(&m[..n]).unwrap();
        assert_eq!(
            (h.duration(), h.flags(), h.sequence()),
            (44, Flags(0x09), Some(SequenceControl::new(77, 1)))
        );
        set_retry(&mut m[..n], false).unwrap();
        assert_eq!(m[1], 1);
        let (mut ack, _) = mpdu(10, 0xd4, 0);
        assert_eq!(
            set_sequence(&mut ack, SequenceControl(0)),
            Err(ParseError::WrongKind)
        );
        assert_eq!(set_duration(&mut [0; 9], 0), Err(ParseError::Truncated));
    }

    #[test]
    fn ps_poll_carries_no_duration() {
        let (mut m, _) = mpdu(16, 0xa4, 0);
        m[2..4].copy_from_slice(&[0x01, 0xc0]);
        let h = Header::parse(&m).unwrap();
        assert_eq!((h.duration(), h.nav_us()), (0xc001, 0));
        for (duration, nav_us) in [(32_767, 32_767), (32_768, 0)] {
            set_duration(&mut m, duration).unwrap();
            assert_eq!(Header::parse(&m).unwrap().nav_us(), nav_us);
        }
    }

    #[test]
    fn timestamps() {
        let (mut m, _) = mpdu(40, 0x80, 0);
        assert_eq!(timestamp_us(&m), Some(0x1f1e_1d1c_1b1a_1918));
        set_timestamp_us(&mut m, 0x0102_0304_0506_0708).unwrap();
        assert_eq!(timestamp_us(&m), Some(0x0102_0304_0506_0708));
        assert_eq!((m[23], m[24], m[31], m[32]), (23, 8, 1, 32));
        assert_eq!(timestamp_us(&m[..31]), None);
        assert_eq!(set_timestamp_us(&mut m[..31], 0), Err(ParseError::Truncated));
        m[0] = 0x40;
        assert_eq!(timestamp_us(&m), None);
        assert_eq!(set_timestamp_us(&mut m, 0), Err(ParseError::WrongKind));
    }
}
