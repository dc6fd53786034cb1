//! What became of every single try on the air: acknowledged (A), data lost (L_D), ACK lost (L_A); or
//! arrived where nobody asked for an ACK.

use super::super::tally::Tries as Counts;

/// A frame to one receiver.
#[derive(Clone, Copy)]
struct Try {
    to: u32,
    /// SIFS and the ACK to a frame at its rate, ns; `None` if it asks for none.
    ack_ns: Option<u64>,
    /// End of its reception, ns of true time.
    arrived_ns: Option<u64>,
    acked: bool,
}

/// See the [module](self). An adapter has one try at a time.
pub(super) struct Tries {
    open: Vec<Option<Try>>,
    counts: Counts,
}

impl Tries {
    /// For so many adapters.
    pub(super) fn new(adapters: usize) -> Tries {
        Tries {
            open: vec![None; adapters],
            counts: Counts::default(),
        }
    }

    /// The adapter `from` starts to send to the node `to`: its last try is over. SIFS and the ACK to this frame take `ack_ns`,
    /// if it asks for one.
    pub(super) fn sent(&mut self, from: u32, to: u32, ack_ns: Option<u64>, counts: bool) {
        self.settle(from as usize);
        let new = Try {
            to,
            ack_ns,
            arrived_ns: None,
            acked: false,
        };
        self.open[from as usize] = counts.then_some(new);
    }

    /// The node `to` has received a frame of the adapter `from` without error.
    pub(super) fn arrived(&mut self, from: u32, to: u32, at_ns: u64) {
        if let Some(t) = self.open[from as usize].as_mut().filter(|t| t.to == to) {
            t.arrived_ns.get_or_insert(at_ns);
        }
    }

    /// The adapter `to` has received an ACK of the node `from` without error; it may be meant for somebody else.
    pub(super) fn acked(&mut self, from: u32, to: u32, at_ns: u64) {
        // on its way there and back a frame loses less than this
        const PROPAGATION_NS: u64 = 1_000;
        let in_time = |t: &Try, arrived_ns: u64| {
            t.ack_ns
                .is_some_and(|ack| at_ns - arrived_ns <= ack + PROPAGATION_NS)
        };
        let mine = |t: &&mut Try| t.to == from && t.arrived_ns.is_some_and(|a| in_time(t, a));
        if let Some(t) = self.open[to as usize].as_mut().filter(mine) {
            t.acked = true;
        }
    }

    /// All tries are over.
    pub(super) fn finish(&mut self) -> Counts {
        (0..self.open.len()).for_each(|adapter| self.settle(adapter));
        self.counts
    }

    fn settle(&mut self, adapter: usize) {
        match self.open[adapter].take() {
            Some(t) if t.acked => self.counts.acked += 1,
            Some(t) if t.arrived_ns.is_some() && t.ack_ns.is_none() => self.counts.unasked += 1,
            Some(t) if t.arrived_ns.is_some() => self.counts.ack_lost += 1,
            Some(_) => self.counts.data_lost += 1,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_try_falls_into_one_set() {
        let mut tries = Tries::new(3);
        // A: heard by all, acknowledged
        tries.sent(1, 0, Some(44_000), true);
        tries.arrived(1, 2, 36_000);
        tries.arrived(1, 0, 36_033);
        tries.acked(0, 1, 80_066);
        // L_D: only a bystander heard it, and the ACK of somebody else's frame is not its own
        tries.sent(1, 0, Some(44_000), true);
        tries.arrived(1, 2, 136_000);
        tries.acked(0, 1, 180_066);
        // L_A: the ACK that comes is too late to be its own
        tries.sent(2, 0, Some(44_000), true);
        tries.arrived(2, 0, 236_033);
        tries.acked(0, 2, 360_000);
        // nobody asked for an ACK: one arrives, one does not
        tries.sent(2, 0, None, true);
        tries.arrived(2, 0, 436_033);
        tries.sent(2, 0, None, true);
        // does not count, but ends the one before
        tries.sent(1, 0, Some(44_000), false);
        tries.acked(0, 1, 500_000);
        let all = Counts {
            acked: 1,
            data_lost: 2,
            ack_lost: 1,
            unasked: 1,
        };
        assert_eq!(tries.finish(), all);
        assert_eq!(tries.finish(), all, "nothing is counted twice");
    }
}
