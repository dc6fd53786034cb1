//! What an air has carried.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Serialize;
use sim::Observer;
use sim::trace::{OnAir, Transmission};

/// Counts of one radio, or of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Frames that the kernel handed over.
    pub frames: u64,
    /// Of these, acknowledged, ...
    pub acked: u64,
    /// ... not acknowledged, ...
    pub not_acked: u64,
    /// ... sent to nobody in particular, or without a wish for an ACK, ...
    pub unasked: u64,
    /// ... not sent: a rate, a channel or a length that the scenario's adapter does not have, or a full queue.
    pub refused: u64,
    /// Frames on the air: first tries and retries.
    pub tries: u64,
    /// Of these, tries that overlapped another frame on their channel, ACKs included: whether they were received all
    /// the same is a matter of capture.
    pub overlapping: u64,
    /// Frames of others that it received, and that the kernel took.
    pub received: u64,
    /// ... and that the kernel did not take: the radio was down or on another channel, or the frame below 24 octets.
    pub not_taken: u64,
    /// Frames that the kernel had given up when they ended.
    pub forgotten: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Counts) -> Counts {
        Counts {
            frames: self.frames + other.frames,
            acked: self.acked + other.acked,
            not_acked: self.not_acked + other.not_acked,
            unasked: self.unasked + other.unasked,
            refused: self.refused + other.refused,
            tries: self.tries + other.tries,
            overlapping: self.overlapping + other.overlapping,
            received: self.received + other.received,
            not_taken: self.not_taken + other.not_taken,
            forgotten: self.forgotten + other.forgotten,
        }
    }
}

/// Counts tries and those that overlap, by adapter.
#[derive(Debug, Default)]
pub(super) struct Tries {
    /// Tries, and tries that overlapped, of each adapter.
    pub of: Vec<(u64, u64)>,
    ongoing: Vec<Ongoing>,
}

#[derive(Debug)]
struct Ongoing {
    end_ns: u64,
    mhz: u16,
    /// The adapter, if it is a try of its own and has not overlapped yet.
    clean: Option<usize>,
}

impl Tries {
    pub fn of_adapters(adapters: usize) -> Tries {
        Tries {
            of: vec![(0, 0); adapters],
            ongoing: Vec::new(),
        }
    }
}

/// Watches a world.
pub(super) struct Watch(pub Rc<RefCell<Tries>>);

impl Observer for Watch {
    fn transmission(&mut self, t: &Transmission<'_>) {
        if t.what == OnAir::Noise {
            return;
        }
        let Tries { of, ongoing } = &mut *self.0.borrow_mut();
        let adapter = t.adapter as usize;
        let own = t.what == OnAir::Frame && adapter < of.len();
        ongoing.retain(|o| o.end_ns > t.start_ns);
        let mut overlaps = false;
        for o in ongoing.iter_mut().filter(|o| o.mhz == t.mhz) {
            overlaps = true;
            if let Some(other) = o.clean.take() {
                of[other].1 += 1;
            }
        }
        if own {
            of[adapter].0 += 1;
            of[adapter].1 += u64::from(overlaps);
        }
        ongoing.push(Ongoing {
            end_ns: t.end_ns,
            mhz: t.mhz,
            clean: (own && !overlaps).then_some(adapter),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Rate;

    fn show(watch: &mut Watch, start_ns: u64, end_ns: u64, node: u32, what: OnAir, mhz: u16) {
        watch.transmission(&Transmission {
            start_ns,
            end_ns,
            adapter: node,
            node,
            what,
            rate: Rate::OFDM_6,
            mhz,
            frame: &[],
            attempt: 1,
            octets: 0,
        });
    }

    #[test]
    fn overlaps_count_once_for_each_try() {
        let tries = Rc::new(RefCell::new(Tries::of_adapters(3)));
        let mut watch = Watch(Rc::clone(&tries));
        show(&mut watch, 0, 100, 0, OnAir::Frame, 5180);
        show(&mut watch, 50, 120, 1, OnAir::Frame, 5180);
        show(&mut watch, 60, 130, 2, OnAir::Frame, 5180);
        show(&mut watch, 70, 90, 2, OnAir::Frame, 5200); // another channel
        show(&mut watch, 130, 200, 0, OnAir::Frame, 5180); // begins where the last one ends
        show(&mut watch, 150, 160, 1, OnAir::Ack, 5180);
        show(&mut watch, 155, 158, 9, OnAir::Noise, 5180);
        assert_eq!(tries.borrow().of, [(2, 2), (1, 1), (2, 1)]);
    }
}
