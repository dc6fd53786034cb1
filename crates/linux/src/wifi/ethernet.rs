//! Requests through an ordinary interface: which of them can go, and the Ethernet frame that each becomes.
//!
//! Linux makes the 802.11 header, so of the one in a request count receiver, transmitter and traffic identifier; BSSID,
//! sequence number and Duration are those of Linux, and whether it is a QoS frame follows from the station. The body goes
//! as it is: behind a length in place of an EtherType (IEEE 802.3-2018, 3.2.6) mac80211 puts nothing before it. What Linux
//! would send in another way is refused.

use frame::mac::header::Header;
use frame::mac::{Flags, Kind};
use frame::{MacAddr, Rate};
use radio::{AckPolicy, Queue, Refusal, RtsPolicy, TxHow};

/// Octets of an Ethernet header: two addresses, and a length.
const HEADER_OCTETS: usize = 14;
/// Octets of the longest body: what an interface takes unless its MTU is changed, and less than the least EtherType.
pub(super) const MAX_BODY_OCTETS: usize = 1_500;
/// Octets of the longest frame: QoS data (IEEE 802.11-2016, 9.2.4.1.1).
pub(super) const MAX_FRAME_OCTETS: u16 = 26 + MAX_BODY_OCTETS as u16;

/// What an ordinary interface sends, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ordinary {
    /// The one rate that it was given.
    pub rate: Rate,
    /// It is an access point's, and not in an ad hoc network.
    pub is_access_point: bool,
}

impl Ordinary {
    /// Why a request from the interface with address `me` cannot be sent as it is to be, if so. `is_its_queue`: it asks for the
    /// queue of its traffic identifier.
    pub fn refusal(
        &self,
        me: MacAddr,
        header: &Header<'_>,
        how: &TxHow,
        is_its_queue: bool,
    ) -> Option<Refusal> {
        if !self.carries(header) {
            return Some(Refusal::NotSupported);
        }
        if header.body().len() > MAX_BODY_OCTETS {
            return Some(Refusal::BadFrame);
        }
        if header.transmitter() != Some(me) {
            return Some(Refusal::AddressForbidden);
        }
        if how.series.as_slice().iter().any(|s| s.rate != self.rate) {
            return Some(Refusal::RateNotSupported);
        }
        if how.rts == RtsPolicy::Always || !is_its_queue {
            return Some(Refusal::NotSupported);
        }
        let as_asked = match header.is_group() {
            // Such a frame is no QoS frame here, and goes with best effort; there is one of it, whatever was asked.
            true => how.queue == Queue::BestEffort,
            // Linux asks for an ACK, and tries again without one.
            false => how.ack == AckPolicy::Normal && header.wants_ack() && how.series.attempts() > 1,
        };
        (!as_asked).then_some(Refusal::NotSupported)
    }

    /// Whether Linux makes such a frame of an Ethernet frame: data, whole, with nothing said in its header that Linux does not
    /// say. Frames of an access point may be addressed as those of an ad hoc network.
    fn carries(&self, header: &Header<'_>) -> bool {
        let from_access_point = self.is_access_point && header.flags() == Flags::FROM_DS;
        [Kind::DATA, Kind::QOS_DATA].contains(&header.kind())
            && (header.flags() == Flags::NONE || from_access_point)
            && header.sequence().is_none_or(|s| s.fragment() == 0)
            && header.qos().is_none_or(|qos| !qos.is_amsdu() && qos.tid() < 8)
    }
}

/// Writes the Ethernet frame; gives its octets. `None` if there is no room, or its body is too long.
pub(super) fn write(header: &Header<'_>, out: &mut [u8]) -> Option<usize> {
    let body = header.body();
    let source = match header.flags().contains(Flags::FROM_DS) {
        true => header.address3(),
        false => header.transmitter(),
    };
    let length = u16::try_from(body.len())
        .ok()
        .filter(|l| usize::from(*l) <= MAX_BODY_OCTETS)?;
    let (head, rest) = out.split_first_chunk_mut::<HEADER_OCTETS>()?;
    head[..6].copy_from_slice(&header.receiver().0);
    head[6..12].copy_from_slice(&source?.0);
    head[12..].copy_from_slice(&length.to_be_bytes());
    rest.get_mut(..body.len())?.copy_from_slice(body);
    Some(HEADER_OCTETS + body.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::mac::{self, FrameControl, QosControl, SequenceControl};

    const ME: MacAddr = MacAddr::local(1);
    const PEER: MacAddr = MacAddr::local(2);
    const BSSID: MacAddr = MacAddr::local(9);
    const RATE: Rate = Rate::OFDM_24;
    const HOW: TxHow = TxHow::multi_shot(RATE, 4);
    const STATION: Ordinary = Ordinary {
        rate: RATE,
        is_access_point: false,
    };

    fn frame(kind: Kind, flags: Flags, to: MacAddr, qos: QosControl, body: &[u8]) -> Vec<u8> {
        let mut m = vec![0; 24];
        m[..2].copy_from_slice(&FrameControl::new(kind, flags).0);
        m[4..10].copy_from_slice(&to.0);
        m[10..16].copy_from_slice(&ME.0);
        m[16..22].copy_from_slice(&BSSID.0);
        if kind.is_qos() {
            m.extend(qos.0.to_le_bytes());
        }
        m.extend(body);
        m
    }

    const BEST_EFFORT: QosControl = QosControl::new(0, mac::AckPolicy::Normal);

    fn ethernet(frame: &[u8]) -> Option<Vec<u8>> {
        let mut out = [0x77; 2_000];
        let octets = write(&Header::parse(frame).unwrap(), &mut out)?;
        Some(out[..octets].to_vec())
    }

    #[test]
    fn a_frame_becomes_addresses_length_and_body() {
        let expect = [&PEER.0[..], &ME.0, &[0, 3], b"abc"].concat();
        for kind in [Kind::DATA, Kind::QOS_DATA] {
            let of = frame(kind, Flags::NONE, PEER, BEST_EFFORT, b"abc");
            assert_eq!(ethernet(&of).unwrap(), expect, "{kind:?}");
        }
        let empty = frame(Kind::DATA, Flags::NONE, MacAddr::BROADCAST, BEST_EFFORT, b"");
        assert_eq!(
            ethernet(&empty).unwrap(),
            [&[0xff; 6][..], &ME.0, &[0, 0]].concat()
        );
        // From an access point the third address says who has sent it.
        let relayed = frame(Kind::DATA, Flags::FROM_DS, PEER, BEST_EFFORT, b"x");
        assert_eq!(ethernet(&relayed).unwrap()[6..12], BSSID.0);
        // Every length is less than the least EtherType, 0x600.
        let longest = frame(Kind::DATA, Flags::NONE, PEER, BEST_EFFORT, &[5; MAX_BODY_OCTETS]);
        assert_eq!(ethernet(&longest).unwrap()[12..14], [0x05, 0xdc]);
        let longer = frame(
            Kind::DATA,
            Flags::NONE,
            PEER,
            BEST_EFFORT,
            &[5; MAX_BODY_OCTETS + 1],
        );
        assert_eq!(ethernet(&longer), None);
        let short = frame(Kind::DATA, Flags::NONE, PEER, BEST_EFFORT, b"abc");
        for room in 0..HEADER_OCTETS + 3 {
            assert_eq!(
                write(&Header::parse(&short).unwrap(), &mut vec![0; room]),
                None,
                "{room}"
            );
        }
    }

    fn refusal(on: Ordinary, frame: &[u8], how: TxHow) -> Option<Refusal> {
        on.refusal(ME, &Header::parse(frame).unwrap(), &how, true)
    }

    #[test]
    fn what_linux_would_send_otherwise_is_refused() {
        use Refusal::{AddressForbidden, BadFrame, NotSupported, RateNotSupported};
        let data = |to| frame(Kind::DATA, Flags::NONE, to, BEST_EFFORT, b"abc");
        let plain = data(PEER);
        assert_eq!(refusal(STATION, &plain, HOW), None);
        let of = |how| refusal(STATION, &plain, how);
        assert_eq!(
            of(TxHow::one_shot(RATE)),
            Some(NotSupported),
            "one shot cannot be had"
        );
        assert_eq!(of(HOW.no_ack()), Some(NotSupported));
        assert_eq!(
            of(TxHow {
                rts: RtsPolicy::Always,
                ..HOW
            }),
            Some(NotSupported)
        );
        assert_eq!(
            of(TxHow::multi_shot(Rate::OFDM_6, 4)),
            Some(RateNotSupported),
            "another one"
        );
        let mixed = [RATE, Rate::OFDM_6].map(|rate| radio::Series { rate, tries: 2 });
        let mixed = radio::SeriesList::new(&mixed).unwrap();
        assert_eq!(of(HOW.series(mixed)), Some(RateNotSupported), "several");
        let other_queue = STATION.refusal(ME, &Header::parse(&plain).unwrap(), &HOW, false);
        assert_eq!(other_queue, Some(NotSupported));

        let mut foreign = plain.clone();
        foreign[10..16].copy_from_slice(&PEER.0);
        assert_eq!(refusal(STATION, &foreign, HOW), Some(AddressForbidden));
        let long = frame(
            Kind::DATA,
            Flags::NONE,
            PEER,
            BEST_EFFORT,
            &[0; MAX_BODY_OCTETS + 1],
        );
        assert_eq!(refusal(STATION, &long, HOW), Some(BadFrame));
        for kind in [Kind::BEACON, Kind::NULL, Kind::QOS_NULL, Kind::ACTION] {
            let other = frame(kind, Flags::NONE, PEER, BEST_EFFORT, b"");
            assert_eq!(refusal(STATION, &other, HOW), Some(NotSupported), "{kind:?}");
        }
        let ack = [&FrameControl::new(Kind::ACK, Flags::NONE).0[..], &[0; 8]].concat();
        assert_eq!(refusal(STATION, &ack, HOW), Some(NotSupported), "control");
        for flags in (0..8).map(|bit| Flags(1 << bit)) {
            let flagged = frame(Kind::DATA, flags, PEER, BEST_EFFORT, b"abc");
            assert_eq!(refusal(STATION, &flagged, HOW), Some(NotSupported), "{flags:?}");
        }
        let mut four = frame(Kind::DATA, Flags(3), PEER, BEST_EFFORT, b"abc");
        four.extend(PEER.0);
        assert_eq!(refusal(STATION, &four, HOW), Some(NotSupported), "four addresses");
        let mut fragment = plain.clone();
        fragment[22..24].copy_from_slice(&SequenceControl::new(7, 1).0.to_le_bytes());
        assert_eq!(refusal(STATION, &fragment, HOW), Some(NotSupported));
        for qos in [
            BEST_EFFORT.with_amsdu(),
            QosControl::new(8, mac::AckPolicy::Normal),
            QosControl::new(0, mac::AckPolicy::NoAck),
            QosControl::new(0, mac::AckPolicy::BlockAck),
        ] {
            let asked = frame(Kind::QOS_DATA, Flags::NONE, PEER, qos, b"abc");
            assert_eq!(refusal(STATION, &asked, HOW), Some(NotSupported), "{qos:?}");
        }

        // To a group there is one frame, with best effort.
        let group = data(MacAddr::BROADCAST);
        assert_eq!(refusal(STATION, &group, TxHow::one_shot(RATE)), None);
        assert_eq!(refusal(STATION, &group, HOW.no_ack()), None);
        assert_eq!(
            refusal(STATION, &group, HOW.queue(Queue::Voice)),
            Some(NotSupported)
        );

        // An access point takes the frames of its network as they are, and those of an ad hoc network.
        let point = Ordinary {
            is_access_point: true,
            ..STATION
        };
        let relayed = frame(Kind::DATA, Flags::FROM_DS, PEER, BEST_EFFORT, b"abc");
        assert_eq!(refusal(point, &relayed, HOW), None);
        assert_eq!(refusal(point, &plain, HOW), None);
    }
}
