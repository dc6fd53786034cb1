//! What a host has learned from frames that came from other cells: in which cell their senders are, and which of them it
//! has had, so that a second copy is known as one.

use super::cell::Cell;
use frame::MacAddr;

/// Hosts of other cells whose cell is remembered.
const PLACES: usize = 16;
/// Rounds after which a place is not believed any more.
const PLACE_ROUNDS: u64 = 64;
/// Frames that are remembered.
const FRAMES: usize = 32;
/// Rounds for which they are. Names of frames repeat after 256.
const FRAME_ROUNDS: u64 = 128;

#[derive(Clone, Copy, Debug)]
struct Place {
    host: MacAddr,
    cell: Cell,
    round: u64,
}

/// Its sender, and when that one sent it.
#[derive(Clone, Copy, Debug)]
struct Had {
    host: MacAddr,
    born: u8,
    round: u64,
}

/// What is remembered.
#[derive(Clone, Debug)]
pub(super) struct Places {
    places: [Option<Place>; PLACES],
    had: [Option<Had>; FRAMES],
    next: usize,
}

impl Places {
    pub(super) const EMPTY: Places = Places {
        places: [None; PLACES],
        had: [None; FRAMES],
        next: 0,
    };

    /// A frame of `host` came from `cell`. Takes the room of the oldest place if there is none.
    pub(super) fn learn(&mut self, host: MacAddr, cell: Cell, round: u64) {
        self.forget(host);
        let oldest = self.places.iter_mut().min_by_key(|p| p.map(|p| p.round));
        *oldest.expect("there are places") = Some(Place { host, cell, round });
    }

    /// It is not there any more.
    pub(super) fn forget(&mut self, host: MacAddr) {
        for place in &mut self.places {
            *place = place.filter(|p| p.host != host);
        }
    }

    /// In which cell `host` was lately.
    pub(super) fn find(&self, host: MacAddr, round: u64) -> Option<Cell> {
        let young = |p: &&Place| p.host == host && round.saturating_sub(p.round) <= PLACE_ROUNDS;
        self.places.iter().flatten().find(young).map(|p| p.cell)
    }

    /// Remembers a frame; false if it was there before.
    pub(super) fn is_new(&mut self, host: MacAddr, born: u8, round: u64) -> bool {
        let same =
            |h: &Had| (h.host, h.born) == (host, born) && round.saturating_sub(h.round) <= FRAME_ROUNDS;
        let new = !self.had.iter().flatten().any(same);
        if new {
            self.had[self.next] = Some(Had { host, born, round });
            self.next = (self.next + 1) % FRAMES;
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: fn(u32) -> MacAddr = MacAddr::local;

    fn east(q: i16) -> Cell {
        Cell { q, r: 0 }
    }

    #[test]
    fn places_are_learned_and_forgotten() {
        let mut places = Places::EMPTY;
        assert_eq!(places.find(HOST(1), 0), None);
        places.learn(HOST(1), east(1), 10);
        places.learn(HOST(1), east(2), 12);
        assert_eq!(places.find(HOST(1), 12 + PLACE_ROUNDS), Some(east(2)));
        assert_eq!(places.find(HOST(1), 13 + PLACE_ROUNDS), None, "too old");
        places.learn(HOST(2), east(3), 12);
        places.forget(HOST(1));
        assert_eq!(
            (places.find(HOST(1), 12), places.find(HOST(2), 12)),
            (None, Some(east(3)))
        );
    }

    #[test]
    fn the_oldest_place_goes_first() {
        let mut places = Places::EMPTY;
        for i in 0..PLACES as u32 {
            places.learn(HOST(i), east(1), 20 + u64::from(i));
        }
        places.learn(HOST(0), east(1), 40);
        places.learn(HOST(99), east(1), 41);
        let known = |i| places.find(HOST(i), 41).is_some();
        assert_eq!(
            [known(0), known(1), known(2), known(99)],
            [true, false, true, true]
        );
    }

    #[test]
    fn a_second_copy_is_known() {
        let mut places = Places::EMPTY;
        assert!(places.is_new(HOST(1), 7, 7));
        assert!(!places.is_new(HOST(1), 7, 9));
        assert!(places.is_new(HOST(2), 7, 9) && places.is_new(HOST(1), 8, 9));
        // the same name, 256 rounds later
        assert!(places.is_new(HOST(1), 7, 263));
        for born in 0..FRAMES as u8 {
            places.is_new(HOST(3), born, 263);
        }
        assert!(places.is_new(HOST(1), 7, 264), "forgotten for want of room");
    }
}
