//! What is in the slot of the beacon with reference broadcasts: a follow-up, and who was outside of its slots.

use super::Tdma;
use super::join::wire::{MAX_BODY_OCTETS, OUI};
use crate::mac::sync::reference::{FOLLOW_UP_OCTETS, FollowUp, MAX_MORE};
use frame::element::Vendor;
use radio::{Indication, Instant, Protocol};

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Tdma<P, N, L, S> {
    /// What the clock that counts showed at an event. True if it was that.
    pub(super) fn note_follow_up(&mut self, now: Instant, received: &Indication<'_>) -> bool {
        let told = self
            .config
            .reference
            .and_then(|_| FollowUp::parse(received.frame));
        let Some((from, told, elements)) = told else {
            return false;
        };
        if from == self.config.follows && !self.is_master() {
            self.references.follow(&told, &mut self.config.sync);
            self.note_word(now, elements);
        }
        true
    }

    /// Writes what its clock showed, and who was outside of its slots.
    pub(super) fn write_follow_up<'o>(
        &mut self,
        told: FollowUp,
        cycle: Option<u64>,
        out: &'o mut [u8; FOLLOW_UP_OCTETS + MAX_MORE],
    ) -> &'o [u8] {
        let slot = self.config.plan.beacon().map_or(0, |b| usize::from(b.octets));
        let room = slot.saturating_sub(FOLLOW_UP_OCTETS).min(MAX_MORE);
        let mut body = [0; MAX_BODY_OCTETS];
        let word = self.word(cycle, room).map(|word| {
            let n = word.emit(&mut body);
            Vendor {
                oui: OUI,
                body: &body[..n],
            }
        });
        // lists of who has joined need a beacon
        let word = word.filter(|word| 5 + word.body.len() <= room);
        told.emit(self.config.me, self.sequence, word, out)
    }
}
