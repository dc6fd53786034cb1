//! Received frames on their way to the protocol.

use crate::codec::RxFrame;
use frame::mac::header::timestamp_us;
use frame::mac::{Header, Kind, SequenceControl};
use frame::{MacAddr, Rate};
use radio::{AdapterId, Beacon, Event, Indication, Instant, Plane, Stamps, Tsf};

/// Transmitters, with their traffic identifiers, of which the last sequence number is known.
const KNOWN: usize = 16;
/// Stands for frames without traffic identifier.
const NO_TID: u8 = 16;

/// Why a received frame is not told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Untold {
    /// It is bad, or cannot be read.
    Unreadable,
    /// It came before, and this is a repetition.
    Duplicate,
}

/// The event that a unit is.
pub(super) fn event<'a>(
    unit: &'a [u8],
    now: Instant,
    noise_dbm: i16,
    seen: &mut Duplicates,
) -> Result<Event<'a>, Untold> {
    let received = RxFrame::parse(unit).map_err(|_| Untold::Unreadable)?;
    let header = Header::parse(received.mpdu).map_err(|_| Untold::Unreadable)?;
    let rate: Rate = received.rate.ok_or(Untold::Unreadable)?;
    if seen.is_duplicate(&header) {
        return Err(Untold::Duplicate);
    }
    let mut stamps = Stamps::NONE;
    stamps.host(Plane::T9, now);
    let frame = received.mpdu;
    let strength = received.above_noise_db.map(|db| noise_dbm + i16::from(db));
    let received = Indication {
        frame,
        rate,
        signal_dbm: strength.map(|s| s.clamp(-128, 127) as i8),
        tsf: None,
        adapter: AdapterId::FIRST,
        stamps,
    };
    let beacon = || {
        let (timestamp, rest) = (timestamp_us(frame)?, header.body().get(8..)?);
        Some(Beacon {
            bssid: header.address3()?,
            timestamp: Tsf(timestamp),
            interval_tu: u16::from_le_bytes(*rest.first_chunk()?),
            received,
        })
    };
    Ok(match (header.kind() == Kind::BEACON).then(beacon).flatten() {
        Some(beacon) => Event::Beacon(beacon),
        None => Event::Indication(received),
    })
}

/// The last sequence number of each transmitter and traffic identifier (IEEE 802.11-2016, 10.3.2.11). The stick
/// shows every repetition.
#[derive(Clone, Debug)]
pub(super) struct Duplicates {
    known: [Option<(MacAddr, u8, SequenceControl)>; KNOWN],
    next: usize,
}

impl Duplicates {
    pub(super) const fn new() -> Duplicates {
        Duplicates {
            known: [None; KNOWN],
            next: 0,
        }
    }

    fn is_duplicate(&mut self, header: &Header<'_>) -> bool {
        let (Some(from), Some(sequence)) = (header.transmitter(), header.sequence()) else {
            return false;
        };
        let tid = header.tid().unwrap_or(NO_TID);
        match self
            .known
            .iter_mut()
            .flatten()
            .find(|k| (k.0, k.1) == (from, tid))
        {
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
    use crate::codec::rx::Position;
    use frame::mac::{Flags, FrameControl};

    fn unit(kind: Kind, flags: Flags, from: u32, sequence: u16) -> std::vec::Vec<u8> {
        let mut mpdu = [0; 60];
        mpdu[..2].copy_from_slice(&FrameControl::new(kind, flags).0);
        mpdu[10..16].copy_from_slice(&MacAddr::local(from).0);
        mpdu[22..24].copy_from_slice(&SequenceControl::new(sequence, 0).0.to_le_bytes());
        mpdu[24..34].copy_from_slice(&[1, 2, 0, 0, 0, 0, 0, 0, 200, 0]);
        let frame = RxFrame {
            mpdu: &mpdu,
            rate: Some(Rate::DSSS_1),
            above_noise_db: Some(35),
            position: Position::Single,
        };
        let mut out = std::vec![0; 120];
        let n = frame.emit(false, &mut out).unwrap();
        out.truncate(n);
        out
    }

    #[test]
    fn beacons_and_others() {
        let mut seen = Duplicates::new();
        let data = unit(Kind::DATA, Flags::NONE, 1, 1);
        let Ok(Event::Indication(i)) = event(&data, Instant::from_us(3), -95, &mut seen) else {
            panic!()
        };
        assert_eq!(
            (i.frame.len(), i.rate, i.signal_dbm, i.tsf),
            (60, Rate::DSSS_1, Some(-60), None)
        );
        let beacon = unit(Kind::BEACON, Flags::NONE, 1, 2);
        let Ok(Event::Beacon(b)) = event(&beacon, Instant::from_us(3), -95, &mut seen) else {
            panic!()
        };
        assert_eq!((b.timestamp, b.interval_tu), (Tsf(513), 200));
    }

    #[test]
    fn repetitions_are_not_told() {
        let mut seen = Duplicates::new();
        let mut told = |kind, flags, from, sequence| {
            event(&unit(kind, flags, from, sequence), Instant::ZERO, -95, &mut seen).is_ok()
        };
        assert!(told(Kind::DATA, Flags::NONE, 1, 7));
        assert!(!told(Kind::DATA, Flags::RETRY, 1, 7));
        assert!(told(Kind::DATA, Flags::RETRY, 2, 7), "another transmitter");
        assert!(told(Kind::DATA, Flags::NONE, 1, 7), "not said to be a repetition");
        assert!(told(Kind::DATA, Flags::RETRY, 1, 8));
        for other in 10..60 {
            assert!(told(Kind::DATA, Flags::NONE, other, 1));
        }
        assert!(told(Kind::DATA, Flags::RETRY, 1, 8), "forgotten");
    }
}
