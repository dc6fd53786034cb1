//! The tape of a deployed node in memory: room that is touched before the start, so that recording takes none later.

use radio::tape::Sink;

/// Takes the octets of a tape as far as there is room, and ends it between two events.
#[derive(Debug)]
pub(super) struct Strip {
    octets: Vec<u8>,
    room: usize,
    /// Where the last whole event ended.
    mark: usize,
    full: bool,
    left_out: u64,
}

impl Strip {
    /// With room for so many octets.
    pub fn new(room: usize) -> Strip {
        // Written once, so that the pages are there.
        let mut octets = vec![1; room];
        octets.clear();
        Strip {
            octets,
            room,
            mark: 0,
            full: false,
            left_out: 0,
        }
    }

    /// An event ends, with all that was done about it.
    pub fn mark(&mut self) {
        if self.full {
            self.left_out += 1;
        } else {
            self.mark = self.octets.len();
        }
    }

    /// The tape, and how many events found no room.
    pub fn into_parts(mut self) -> (Vec<u8>, u64) {
        self.octets.truncate(self.mark);
        (self.octets, self.left_out)
    }
}

impl Sink for Strip {
    fn append(&mut self, octets: &[u8]) {
        self.full |= self.octets.len() + octets.len() > self.room;
        if !self.full {
            self.octets.extend_from_slice(octets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_between_two_events() {
        let mut strip = Strip::new(10);
        for (piece, at) in [(&b"head"[..], 4), (b"abc", 7), (b"defg", 7), (b"h", 7)] {
            strip.append(piece);
            strip.mark();
            assert_eq!(strip.mark, at);
        }
        assert_eq!(strip.into_parts(), (b"headabc".to_vec(), 2));
        assert_eq!(Strip::new(0).into_parts(), (Vec::new(), 0));
    }
}
