//! The bus between driver and stick: transfers that take their time, in virtual time.

use super::knobs::{Faults, Knobs, Random};
use crate::driver::{Bus, TransferId};
use std::collections::BTreeMap;
use std::vec::Vec;

/// What is on its way.
#[derive(Debug)]
pub(super) enum Item {
    /// The stick is there.
    Attach,
    /// A control transfer reaches the stick.
    Control(u8, u16, Vec<u8>),
    /// The image begins to run.
    Boot,
    /// A command reaches the stick.
    Command(Vec<u8>),
    /// A frame reaches the stick.
    Frame(Vec<u8>),
    /// The host learns that a transfer has ended.
    Sent(TransferId),
    /// The host learns that the control transfer has ended.
    ControlDone(bool),
    /// The stick fills a read.
    Fill,
    /// The host has it.
    Received(Vec<u8>),
}

/// All that is on its way, by the time when it gets there.
#[derive(Debug)]
pub(super) struct Usb {
    knobs: Knobs,
    random: Random,
    pub now_ns: u64,
    items: BTreeMap<(u64, u64), Item>,
    count: u64,
    /// Reads that wait, and whether the stick is about to fill one.
    posted: u32,
    filling: bool,
    /// The driver has asked for a reset.
    pub reset: bool,
    /// Until then the last transfer to the host is on its way: they do not overtake each other.
    last_in: u64,
    /// What the bus has done wrong.
    pub faults: Faults,
}

impl Usb {
    pub(super) fn new(knobs: Knobs) -> Usb {
        Usb {
            knobs,
            random: Random::new(knobs.seed),
            now_ns: 0,
            items: BTreeMap::new(),
            count: 0,
            posted: 0,
            filling: false,
            reset: false,
            last_in: 0,
            faults: Faults::default(),
        }
    }

    pub(super) fn put(&mut self, after_ns: u64, item: Item) {
        self.count += 1;
        self.items
            .insert((self.now_ns.saturating_add(after_ns), self.count), item);
    }

    /// Everything on its way is gone; the stick is there again after its time.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        (self.posted, self.filling, self.reset) = (0, false, false);
        self.put(self.knobs.reset_ns, Item::Attach);
    }

    pub(super) fn next_ns(&self) -> Option<u64> {
        self.items.keys().next().map(|k| k.0)
    }

    /// The first that is due.
    pub(super) fn due(&mut self) -> Option<Item> {
        let first = self.items.first_entry().filter(|e| e.key().0 <= self.now_ns)?;
        Some(first.remove())
    }

    /// The stick has something to say: a read that waits is filled after the time of a transfer.
    pub(super) fn offer(&mut self) {
        if self.posted > 0 && !self.filling {
            self.filling = true;
            self.put(self.knobs.transfer_ns, Item::Fill);
        }
    }

    /// The read is filled with this, if with anything.
    pub(super) fn fill(&mut self, transfer: Option<Vec<u8>>) {
        self.filling = false;
        let Some(transfer) = transfer else {
            return;
        };
        self.posted = self.posted.saturating_sub(1);
        let late = self.random.chance(self.knobs.late_interrupt);
        self.faults.late_interrupts += u64::from(late);
        let at = self.now_ns + if late { self.knobs.late_ns } else { 0 };
        self.last_in = self.last_in.max(at);
        let after = self.last_in - self.now_ns;
        self.put(after, Item::Received(transfer));
    }

    fn out(&mut self, id: TransferId, item: Item) {
        self.put(self.knobs.transfer_ns, item);
        match self.random.chance(self.knobs.lost_completion) {
            true => self.faults.lost_completions += 1,
            false => self.put(self.knobs.transfer_ns, Item::Sent(id)),
        }
    }

    /// A control transfer has reached the stick, which takes it or not.
    pub(super) fn control_taken(&mut self, request: u8, taken: bool) {
        self.put(0, Item::ControlDone(taken));
        if taken && request == 0x31 {
            self.put(self.knobs.boot_ns, Item::Boot);
        }
    }
}

impl Bus for Usb {
    fn reset(&mut self) {
        self.reset = true;
    }

    fn control(&mut self, request: u8, value: u16, data: &[u8]) {
        self.put(
            self.knobs.transfer_ns,
            Item::Control(request, value, data.to_vec()),
        );
    }

    fn command(&mut self, id: TransferId, octets: &[u8]) {
        self.out(id, Item::Command(octets.to_vec()));
    }

    fn frame(&mut self, id: TransferId, octets: &[u8]) {
        self.out(id, Item::Frame(octets.to_vec()));
    }

    fn read(&mut self) {
        self.posted += 1;
    }
}
