//! Packets of a monitor interface: requests on their way down, statuses and received frames on their way up.

use frame::mac::header::{Header, timestamp_us};
use frame::mac::{Kind, SequenceControl};
use frame::radiotap::{Packet, Radiotap};
use frame::{MacAddr, Rate, Wire};
use radio::{AdapterId, Beacon, Event, Indication, Instant, Plane, Stamps, Tsf};

/// Transmitters, with their traffic identifiers, of which the last sequence number is known.
const KNOWN: usize = 64;

/// The radiotap header that asks Linux for up to `tries` frames at `rate`, with the sequence number as it is.
///
/// DATA_RETRIES counts only together with a rate; NOACK takes the wish for an ACK back.
pub(super) fn radiotap(rate: Rate, tries: u8, expects_ack: bool) -> Radiotap {
    let no_ack = if expects_ack { 0 } else { Radiotap::TX_NO_ACK };
    let how = Radiotap {
        tx_flags: Some(Radiotap::TX_NO_SEQUENCE | no_ack),
        data_retries: Some(tries.saturating_sub(1)),
        ..Radiotap::default()
    };
    how.with_rate(rate)
}

/// Writes header and frame; gives the octets of the header and of both. `None` if there is no room.
pub(super) fn write(radiotap: Radiotap, frame: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
    let all = Packet { radiotap, frame }.emit(out).ok()?;
    Some((all - frame.len(), all))
}

/// A frame that came back because it was sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Status<'a> {
    pub frame: &'a [u8],
    /// No ACK came, as far as the kernel knows. Also of a frame that did not ask for one by NOACK; never of one to a
    /// group.
    pub failed: bool,
    /// Frames on the air, all series together; `None` if the driver does not count.
    pub attempts: Option<u16>,
    /// Rate of the first series.
    pub rate: Option<Rate>,
}

/// Reads a status. `None` if it is none.
pub(super) fn status(packet: &[u8]) -> Option<Status<'_>> {
    let packet = Packet::parse(packet).ok()?;
    Some(Status {
        frame: packet.mpdu().ok()?,
        failed: packet.radiotap.tx_flags? & Radiotap::TX_FAILED != 0,
        attempts: packet.radiotap.data_retries.map(|retries| u16::from(retries) + 1),
        rate: packet.radiotap.rate(),
    })
}

/// What is told of a received packet besides its octets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub adapter: AdapterId,
    /// When the kernel had it, and when we have.
    pub t8: Option<Instant>,
    pub t9: Instant,
    /// Whether TSFT is the time that the adapter's `Tsf` attribute has.
    pub tsft: bool,
}

/// Why a received packet is not told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Untold {
    /// It is not whole, or not a frame.
    Malformed,
    /// Its rate is none of those that this project knows (VHT, HE).
    UnknownRate,
    /// It came before, and this is a repetition.
    Duplicate,
}

/// The event that a received packet is.
pub(super) fn event<'a>(
    packet: &'a [u8],
    arrival: &Arrival,
    seen: &mut Duplicates,
) -> Result<Event<'a>, Untold> {
    let packet = Packet::parse(packet).map_err(|_| Untold::Malformed)?;
    let frame = packet.mpdu().map_err(|_| Untold::Malformed)?;
    let header = Header::parse(frame).map_err(|_| Untold::Malformed)?;
    let rate = packet.radiotap.rate().ok_or(Untold::UnknownRate)?;
    if seen.is_duplicate(&header) {
        return Err(Untold::Duplicate);
    }
    let mut stamps = Stamps::NONE;
    if let Some(t8) = arrival.t8.filter(|t8| *t8 <= arrival.t9) {
        stamps.host(Plane::T8, t8);
    }
    stamps.host(Plane::T9, arrival.t9);
    let received = Indication {
        frame,
        rate,
        signal_dbm: packet.radiotap.signal_dbm,
        tsf: packet.radiotap.tsft_us.filter(|_| arrival.tsft).map(Tsf),
        adapter: arrival.adapter,
        stamps,
    };
    let beacon = || {
        let (timestamp, rest) = (timestamp_us(frame)?, header.body().get(8..)?);
        let interval = rest.first_chunk()?;
        Some(Beacon {
            bssid: header.address3()?,
            timestamp: Tsf(timestamp),
            interval_tu: u16::from_le_bytes(*interval),
            received,
        })
    };
    match (header.kind() == Kind::BEACON).then(beacon).flatten() {
        Some(beacon) => Ok(Event::Beacon(beacon)),
        None => Ok(Event::Indication(received)),
    }
}

/// The last sequence number of each transmitter and traffic identifier (IEEE 802.11-2016, 10.3.2.11). An adapter
/// drops repetitions by itself; its monitor interface shows them.
#[derive(Debug)]
pub(super) struct Duplicates {
    known: [Option<(MacAddr, u8, SequenceControl)>; KNOWN],
    next: usize,
}

impl Default for Duplicates {
    fn default() -> Self {
        Duplicates {
            known: [None; KNOWN],
            next: 0,
        }
    }
}

impl Duplicates {
    fn is_duplicate(&mut self, header: &Header<'_>) -> bool {
        let (Some(from), Some(sequence)) = (header.transmitter(), header.sequence()) else {
            return false;
        };
        let tid = header.tid().unwrap_or(16);
        let known = self.known.iter_mut().flatten();
        match known.into_iter().find(|k| (k.0, k.1) == (from, tid)) {
            Some(last) => {
                let same = last.2 == sequence;
                last.2 = sequence;
                same && header.is_retry()
            }
            None => {
                self.known[self.next] = Some((from, tid, sequence));
                self.next = (self.next + 1) % KNOWN;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::mac::{Flags, FrameControl};

    const ARRIVAL: Arrival = Arrival {
        adapter: AdapterId(1),
        t8: Some(Instant::from_us(3)),
        t9: Instant::from_us(5),
        tsft: true,
    };

    fn mpdu(kind: Kind, flags: Flags, from: u32, sequence: u16) -> Vec<u8> {
        let mut m = vec![0; 24];
        m[..2].copy_from_slice(&FrameControl::new(kind, flags).0);
        m[4..10].copy_from_slice(&MacAddr::local(1).0);
        m[10..16].copy_from_slice(&MacAddr::local(from).0);
        m[16..22].copy_from_slice(&MacAddr::local(9).0);
        m[22..24].copy_from_slice(&SequenceControl::new(sequence, 0).0.to_le_bytes());
        m
    }

    fn received(frame: &[u8]) -> Vec<u8> {
        let header = Radiotap {
            tsft_us: Some(77),
            signal_dbm: Some(-60),
            ..Radiotap::default()
        };
        let mut out = vec![0; 4_000];
        let (_, all) = write(header.with_rate(Rate::OFDM_24), frame, &mut out).unwrap();
        out.truncate(all);
        out
    }

    /// One shot at 54 Mb/s; the octets that were tried on Linux 6.1.
    #[test]
    fn a_request_as_linux_reads_it() {
        let mut out = [0xee; 64];
        let (header, all) = write(radiotap(Rate::OFDM_54, 1, true), b"frame", &mut out).unwrap();
        assert_eq!((header, all), (13, 18));
        assert_eq!(
            out[..18],
            [
                0, 0, 13, 0, 0x04, 0x80, 0x02, 0, 108, 0, 0x10, 0, 0, b'f', b'r', b'a', b'm', b'e'
            ]
        );
        write(radiotap(Rate::OFDM_54, 7, false), b"", &mut out).unwrap();
        assert_eq!((out[10], out[12]), (0x18, 6), "no ACK, six repetitions");
        let mcs = Rate::parse("mcs7/20s").unwrap();
        let (header, _) = write(radiotap(mcs, 1, true), b"", &mut out).unwrap();
        assert!(header <= crate::wifi::flight::MAX_RADIOTAP_OCTETS);
        assert_eq!(Radiotap::parse(&out[..header]).unwrap().rate(), Some(mcs));
        assert!(write(radiotap(mcs, 1, true), &[0; 60], &mut out).is_none());
    }

    #[test]
    fn a_status_tells_outcome_attempts_and_rate() {
        let frame = mpdu(Kind::DATA, Flags::NONE, 2, 5);
        // 1 Mb/s, not acked, 7 frames; then without DATA_RETRIES; then what was received.
        let mut packet = vec![0, 0, 13, 0, 0x04, 0x80, 0x02, 0, 2, 0, 0x01, 0, 6];
        packet.extend(&frame);
        let expect = Status {
            frame: &frame,
            failed: true,
            attempts: Some(7),
            rate: Some(Rate::DSSS_1),
        };
        assert_eq!(status(&packet), Some(expect));
        let mut short = vec![0, 0, 10, 0, 0, 0x80, 0, 0, 0, 0];
        short.extend(&frame);
        let expect = Status {
            failed: false,
            attempts: None,
            rate: None,
            ..expect
        };
        assert_eq!(status(&short), Some(expect));
        assert_eq!(status(&received(&frame)), None);
        for end in 0..13 {
            assert_eq!(status(&packet[..end]), None);
        }
    }

    #[test]
    fn beacons_are_told_as_beacons() {
        let mut frame = mpdu(Kind::BEACON, Flags::NONE, 9, 1);
        let cut = received(&frame);
        frame.extend(0x0102_0304_u64.to_le_bytes());
        frame.extend(50_u16.to_le_bytes());
        let packet = received(&frame);
        match event(&packet, &ARRIVAL, &mut Duplicates::default()) {
            Ok(Event::Beacon(b)) => {
                assert_eq!(
                    (b.bssid, b.timestamp, b.interval_tu),
                    (MacAddr::local(9), Tsf(0x0102_0304), 50)
                );
                let r = b.received;
                assert_eq!(
                    (r.frame, r.rate, r.signal_dbm),
                    (&frame[..], Rate::OFDM_24, Some(-60))
                );
                assert_eq!((r.tsf, r.adapter), (Some(Tsf(77)), AdapterId(1)));
                assert_eq!(r.stamps.get_host(Plane::T8), ARRIVAL.t8);
                assert_eq!(r.stamps.get_host(Plane::T9), Some(ARRIVAL.t9));
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            event(&cut, &ARRIVAL, &mut Duplicates::default()),
            Ok(Event::Indication(_))
        ));
    }

    #[test]
    fn what_a_host_cannot_tell_it_leaves_out() {
        let packet = received(&mpdu(Kind::DATA, Flags::NONE, 2, 1));
        let arrival = Arrival {
            t8: Some(Instant::from_us(6)), // After t9: the clock was set in between.
            tsft: false,
            ..ARRIVAL
        };
        let Ok(Event::Indication(i)) = event(&packet, &arrival, &mut Duplicates::default()) else {
            panic!("an indication")
        };
        assert_eq!(
            (i.tsf, i.stamps.get(Plane::T8), i.stamps.count()),
            (None, None, 1)
        );
        let mut no_rate = vec![0, 0, 8, 0, 0, 0, 0, 0];
        no_rate.extend(mpdu(Kind::DATA, Flags::NONE, 2, 1));
        let told = |p: &[u8]| event(p, &ARRIVAL, &mut Duplicates::default()).map(|_| ());
        assert_eq!(told(&no_rate), Err(Untold::UnknownRate));
        for end in 0..packet.len() {
            assert_eq!(told(&packet[..end]), Err(Untold::Malformed));
        }
    }

    #[test]
    fn repetitions_are_dropped_and_equal_numbers_alone_are_not() {
        let mut seen = Duplicates::default();
        let mut told = |flags, from, sequence| {
            let packet = received(&mpdu(Kind::DATA, flags, from, sequence));
            event(&packet, &ARRIVAL, &mut seen).map(|_| ())
        };
        assert_eq!(told(Flags::NONE, 2, 5), Ok(()));
        assert_eq!(told(Flags::RETRY, 2, 5), Err(Untold::Duplicate));
        assert_eq!(told(Flags::NONE, 2, 5), Ok(()), "no repetition");
        assert_eq!(told(Flags::RETRY, 3, 5), Ok(()), "somebody else's");
        assert_eq!(told(Flags::RETRY, 2, 6), Ok(()), "the first one was lost");
        // A table that overflows forgets the oldest.
        for from in 100..100 + KNOWN as u32 {
            assert_eq!(told(Flags::NONE, from, 1), Ok(()));
        }
        assert_eq!(told(Flags::RETRY, 2, 6), Ok(()));
    }
}
