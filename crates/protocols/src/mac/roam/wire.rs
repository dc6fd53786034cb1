//! The wired end of a network with several access points: of the copies of a frame that come in through them one is the frame.
//!
//! A station that makes before it breaks sends each frame through two access points. The copies have its address and one sequence
//! number, whichever way they took.

use crate::mac::redundancy::discard::FORGET;
use frame::MacAddr;
use frame::mac::{FrameType, Header};
use radio::Instant;

/// Who sent it, its traffic identifier if it has one, and sequence control.
type Name = (MacAddr, Option<u8>, u16);

/// The last `N` data frames that came in. Two copies are told as long as less than `N` others, and less than [`FORGET`], lie between
/// them.
#[derive(Clone, Debug)]
pub struct Arrivals<const N: usize = 64> {
    seen: [Option<(Name, Instant)>; N],
    next: usize,
    dropped: u64,
}

impl<const N: usize> Default for Arrivals<N> {
    fn default() -> Self {
        Arrivals {
            seen: [None; N],
            next: 0,
            dropped: 0,
        }
    }
}

impl<const N: usize> Arrivals<N> {
    /// Notes a frame that an access point of the network has received at `now`. False if it is a data frame that has come in before,
    /// there or elsewhere.
    pub fn is_first(&mut self, mpdu: &[u8], now: Instant) -> bool {
        let data = Header::parse(mpdu)
            .ok()
            .filter(|h| h.frame_type() == FrameType::Data);
        let name = data.and_then(|h| Some((h.transmitter()?, h.tid(), h.sequence()?.0)));
        let Some(name) = name else { return true };
        let same = |(seen, at): &(Name, Instant)| *seen == name && now.since(*at) <= FORGET;
        if self.seen.iter().flatten().any(same) {
            self.dropped += 1;
            return false;
        }
        if let Some(place) = self.seen.get_mut(self.next) {
            *place = Some((name, now));
            self.next = (self.next + 1) % N;
        }
        true
    }

    /// Frames that had come in before.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::data::{ETHERTYPE_PAYLOAD, Framer, Identity};
    use frame::AccessCategory;
    use radio::Duration;
    use std::vec::Vec;

    const AP: MacAddr = MacAddr::local(1);
    const STATION: MacAddr = MacAddr::local(7);

    fn frames(from: MacAddr, qos: bool) -> impl FnMut(AccessCategory) -> Vec<u8> {
        let mut framer = Framer::new(Identity::station(from, AP), qos, ETHERTYPE_PAYLOAD);
        move |category| {
            let mut out = [0; 100];
            let frame = framer.frame(AP, category, false, &[], b"payload", &mut out);
            frame.unwrap().to_vec()
        }
    }

    #[test]
    fn of_two_copies_the_first_is_the_frame() {
        let mut wire = Arrivals::<8>::default();
        let mut next = frames(STATION, true);
        let (a, b) = (next(AccessCategory::Voice), next(AccessCategory::Voice));
        // the other access point's address is in the copy that came there
        let mut copy = a.clone();
        copy[4..10].copy_from_slice(&MacAddr::local(2).0);
        frame::mac::header::set_retry(&mut copy, true).unwrap();
        let now = Instant::from_us(5);
        assert!(wire.is_first(&a, now) && wire.is_first(&b, now));
        assert!(!wire.is_first(&copy, now + Duration::from_ms(100)));
        assert_eq!(wire.dropped(), 1);
        // the number comes again when all have been used, and later than that
        assert!(wire.is_first(&copy, now + Duration::from_ms(401)));
    }

    #[test]
    fn others_and_other_categories_count_for_themselves() {
        let mut wire = Arrivals::<8>::default();
        let now = Instant::ZERO;
        let mut next = frames(STATION, true);
        assert!(wire.is_first(&next(AccessCategory::Voice), now));
        assert!(wire.is_first(&next(AccessCategory::Background), now));
        assert!(wire.is_first(&frames(MacAddr::local(8), true)(AccessCategory::Voice), now));
        assert!(wire.is_first(&frames(STATION, false)(AccessCategory::Voice), now));
        // what has no number is no copy of anything
        for frame in [&[0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 1][..], &[], &[0x08; 9]] {
            assert!(wire.is_first(frame, now) && wire.is_first(frame, now));
        }
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut wire = Arrivals::<4>::default();
        let mut next = frames(STATION, true);
        let all: Vec<_> = (0..5).map(|_| next(AccessCategory::Voice)).collect();
        assert!(all.iter().all(|f| wire.is_first(f, Instant::ZERO)));
        assert!(!wire.is_first(&all[1], Instant::ZERO), "four are remembered");
        assert!(wire.is_first(&all[0], Instant::ZERO));
    }
}
