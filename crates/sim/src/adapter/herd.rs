//! Timers that one cause has set, kept together: the end of a frame starts the countdowns of all who heard it, and
//! most of these are frozen again before they are over, because the first one sends. One event for all of them, at
//! the first, saves the event queue the others.
//!
//! An entry holds as long as the adapter's timer (`Core::armed`) has its time; anything else is left over from
//! before.

/// A timer: its time in ns, and the adapter.
type Entry = (u64, u32);

/// The herds of a world.
#[derive(Default, Debug)]
pub(crate) struct Herds {
    herds: Vec<Vec<Entry>>,
    free: Vec<u32>,
    gathering: Vec<Entry>,
    is_gathering: bool,
}

/// What has been gathered.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Gathered {
    Nothing,
    /// One timer: its time and adapter. It needs no herd.
    One(u64, u32),
    /// A herd: the first time and its number.
    Herd(u64, u32),
}

impl Herds {
    /// Whether timers are being gathered now.
    #[inline]
    pub fn is_gathering(&self) -> bool {
        self.is_gathering
    }

    /// Begins to gather.
    pub fn open(&mut self) {
        debug_assert!(self.gathering.is_empty() && !self.is_gathering);
        self.is_gathering = true;
    }

    /// Adds a timer of `adapter` at `at`.
    #[inline]
    pub fn join(&mut self, at: u64, adapter: u32) {
        self.gathering.push((at, adapter));
    }

    /// Ends the gathering.
    pub fn close(&mut self) -> Gathered {
        self.is_gathering = false;
        match self.gathering[..] {
            [] => return Gathered::Nothing,
            [(at, adapter)] => {
                self.gathering.clear();
                return Gathered::One(at, adapter);
            }
            _ => {}
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.herds.push(Vec::new());
            self.herds.len() as u32 - 1
        });
        std::mem::swap(&mut self.herds[id as usize], &mut self.gathering);
        let next = first(&self.herds[id as usize]).expect("a herd has members");
        Gathered::Herd(next, id)
    }

    /// The entries of herd `id`, to be put back.
    pub fn take(&mut self, id: u32) -> Vec<Entry> {
        std::mem::take(&mut self.herds[id as usize])
    }

    /// Takes the entries back, without those that are not after `now` or hold no more, and tells when the next one is
    /// due; `None`: the herd has dissolved.
    pub fn put_back(&mut self, id: u32, mut entries: Vec<Entry>, now: u64, armed: &[u64]) -> Option<u64> {
        entries.retain(|&(at, adapter)| at > now && armed[adapter as usize] == at);
        let next = first(&entries);
        self.herds[id as usize] = entries;
        if next.is_none() {
            self.free.push(id);
        }
        next
    }
}

/// When the first of them is due.
fn first(entries: &[Entry]) -> Option<u64> {
    entries.iter().map(|e| e.0).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::NEVER;

    #[test]
    fn nothing_and_one_need_no_herd() {
        let mut h = Herds::default();
        h.open();
        assert_eq!(h.close(), Gathered::Nothing);
        h.open();
        h.join(7, 3);
        assert_eq!(h.close(), Gathered::One(7, 3));
        assert!(!h.is_gathering());
    }

    #[test]
    fn entries_go_in_order_and_stale_ones_are_dropped() {
        let mut h = Herds::default();
        h.open();
        for (at, adapter) in [(30, 0), (10, 1), (20, 2), (30, 3)] {
            h.join(at, adapter);
        }
        assert_eq!(h.close(), Gathered::Herd(10, 0));
        let mut armed = [30, NEVER, 25, 30];
        // 1 went off, 2 was set anew
        let entries = h.take(0);
        assert_eq!(h.put_back(0, entries, 10, &armed), Some(30));
        armed[3] = NEVER;
        let entries = h.take(0);
        assert_eq!(entries, [(30, 0), (30, 3)]);
        assert_eq!(h.put_back(0, entries, 30, &armed), None);
        // its place is used again
        h.open();
        h.join(50, 0);
        h.join(40, 1);
        assert_eq!(h.close(), Gathered::Herd(40, 0));
    }
}
