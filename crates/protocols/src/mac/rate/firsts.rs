//! Whether first tries fare worse than later ones, as they do among stations that begin at one moment.

/// First and later tries that must have been seen before they are compared; twice as many are remembered.
const PLACE_TRIES: u32 = 16;

/// First tries of the best rate against its later ones.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Places {
    /// Tries and acknowledged ones, first and later.
    tries: [u32; 2],
    acked: [u32; 2],
}

impl Places {
    pub fn note(&mut self, place: usize, tries: u32, acked: bool) {
        self.tries[place] += tries;
        self.acked[place] += u32::from(acked);
        if self.tries[place] >= 2 * PLACE_TRIES {
            self.tries[place] /= 2;
            self.acked[place] /= 2;
        }
    }

    /// The share of later tries that are acknowledged is higher by more than a half. With 16 tries each, chance makes so much of equal
    /// shares once in a thousand times.
    pub fn later_are_better(&self) -> bool {
        let [first, later] = self.acked;
        let [firsts, laters] = self.tries;
        let enough = firsts.min(laters) >= PLACE_TRIES;
        enough && 2 * later * firsts > 2 * first * laters + firsts * laters
    }
}
