//! What a host learns of its cell from the frames of a contention-free period.

use super::{Member, Promised, Rule};
use crate::mac::tbmac::message::Report;
use crate::mac::tbmac::table::{Code, Entry, SILENT_ROUNDS};
use frame::MacAddr;

impl<const S: usize> Member<S> {
    /// A frame of `from` in the contention-free period of this round.
    pub fn heard(&mut self, from: MacAddr, report: &Report) {
        let slot = usize::from(report.slot);
        if slot >= S || from == self.me {
            return;
        }
        self.heard |= 1 << slot;
        if self.asked {
            let slot = report.promises.slot_of(self.me).filter(|i| usize::from(*i) < S);
            self.promised = match (self.promised, slot) {
                (Promised::Unheard, Some(i)) => Promised::Slot(i),
                (Promised::Slot(i), Some(j)) if i == j => Promised::Slot(i),
                (Promised::Slot(i), _) if !self.keeps(Rule::Unanimity) => Promised::Slot(i),
                (Promised::Unheard, None) if !self.keeps(Rule::Unanimity) => Promised::Unheard,
                _ => Promised::Differently,
            };
        }
        self.note_sender(slot, from, report.leave);
        if self.keeps(Rule::Merge) {
            self.merge(report);
        }
    }

    /// `from` was heard in `slot`.
    fn note_sender(&mut self, slot: usize, from: MacAddr, leave: bool) {
        if self.slot() == Some(slot as u8) {
            self.give_up();
        }
        let known = self.table[slot];
        self.table[slot] = match known {
            // whoever had it was heard lately, or was promised it
            Entry::Owned {
                host: Some(host),
                silent: 0..=1,
            }
            | Entry::Pending(host)
                if host != from =>
            {
                Entry::Conflict { told: false }
            }
            Entry::Conflict { .. } => known,
            _ if leave => Entry::Free,
            _ => Entry::of(from),
        };
        // a host has one slot
        for (i, entry) in self.table.iter_mut().enumerate() {
            if i != slot && entry.host() == Some(from) {
                *entry = Entry::Free;
                self.known &= !(1 << i);
            }
        }
    }

    fn merge(&mut self, report: &Report) {
        let mine = self.slot();
        for (i, entry) in self.table.iter_mut().enumerate() {
            let code = report.view.code(i);
            self.shown |= u16::from(code != Code::Free) << i;
            if *entry == Entry::Free && matches!(code, Code::Owned | Code::Pending) && i as u8 != report.slot
            {
                *entry = Entry::HEARSAY;
            }
        }
        let mut lost = mine.is_some_and(|i| report.view.code(usize::from(i)) == Code::Conflict);
        for &(host, slot) in report.promises.as_slice() {
            let Some(entry) = self.table.get_mut(usize::from(slot)) else {
                continue;
            };
            if mine == Some(slot) {
                lost |= host != self.me;
                continue;
            }
            *entry = match *entry {
                Entry::Free
                | Entry::Owned {
                    host: None,
                    silent: 0,
                } => Entry::Pending(host),
                Entry::Owned {
                    host: Some(other), ..
                } if other == host => Entry::Pending(host),
                Entry::Owned { silent, .. } if silent >= SILENT_ROUNDS => Entry::Pending(host),
                Entry::Pending(other) if other != host => Entry::Conflict { told: false },
                kept => kept,
            };
        }
        if lost {
            self.give_up();
        }
    }
}
