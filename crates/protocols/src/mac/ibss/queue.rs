//! MSDUs that wait for their receiver: a queue of fixed length, with the octets of each.

use frame::{AccessCategory, MacAddr};
use radio::{Instant, Msdu, Token};

/// One MSDU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<const L: usize> {
    pub to: MacAddr,
    pub category: AccessCategory,
    pub deadline: Option<Instant>,
    /// It was announced in this interval, or tried to be.
    pub asked: bool,
    /// Its request, while it is below.
    pub sent: Option<Token>,
    /// Beacon intervals that it has waited.
    pub intervals: u8,
    /// Sequence number, once it has one: a frame keeps it.
    pub sequence: Option<u16>,
    /// It was on the air, and may have been heard: its next frame is a repetition.
    pub tried: bool,
    /// Those with smaller ones came before it; how many have been taken before it.
    pub order: u64,
    len: u16,
    payload: [u8; L],
}

impl<const L: usize> Waiting<L> {
    pub(super) fn payload(&self) -> &[u8] {
        &self.payload[..self.len.into()]
    }
}

/// Up to `Q` of them with up to `L` octets each.
#[derive(Clone, Debug)]
pub(super) struct Queue<const Q: usize, const L: usize> {
    slots: [Option<Waiting<L>>; Q],
    arrivals: u64,
}

impl<const Q: usize, const L: usize> Queue<Q, L> {
    pub(super) fn new() -> Queue<Q, L> {
        Queue {
            slots: [None; Q],
            arrivals: 0,
        }
    }

    /// False if there is no room.
    pub(super) fn push(&mut self, msdu: &Msdu<'_>) -> bool {
        let Some(place) = self.slots.iter_mut().find(|s| s.is_none()) else {
            return false;
        };
        let mut payload = [0; L];
        let (Some(start), Ok(len)) = (
            payload.get_mut(..msdu.payload.len()),
            u16::try_from(msdu.payload.len()),
        ) else {
            return false;
        };
        start.copy_from_slice(msdu.payload);
        *place = Some(Waiting {
            to: msdu.peer,
            category: msdu.category,
            deadline: msdu.deadline,
            asked: false,
            sent: None,
            intervals: 0,
            sequence: None,
            tried: false,
            order: self.arrivals,
            len,
            payload,
        });
        self.arrivals += 1;
        true
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting<L>> {
        self.slots.iter().flatten()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Waiting<L>> {
        self.slots.iter_mut().flatten()
    }

    /// The first to come for which this holds.
    pub(super) fn first(&mut self, holds: impl Fn(&Waiting<L>) -> bool) -> Option<&mut Waiting<L>> {
        self.slots
            .iter_mut()
            .flatten()
            .filter(|w| holds(w))
            .min_by_key(|w| w.order)
    }

    /// Takes out those for which this holds, says so of each by its number, and tells how many.
    pub(super) fn remove(
        &mut self,
        holds: impl Fn(&Waiting<L>) -> bool,
        mut ended: impl FnMut(u64, MacAddr),
    ) -> u64 {
        let mut removed = 0;
        for slot in &mut self.slots {
            if let Some((order, to)) = slot.as_ref().filter(|w| holds(w)).map(|w| (w.order, w.to)) {
                *slot = None;
                ended(order, to);
                removed += 1;
            }
        }
        removed
    }

    pub(super) fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn first_in_first_out_and_no_more_than_fits() {
        let mut q: Queue<2, 4> = Queue::new();
        assert!(q.push(&Msdu::new(MacAddr::local(1), b"one")));
        assert!(!q.push(&Msdu::new(MacAddr::local(1), b"three")));
        assert!(q.push(&Msdu::new(MacAddr::local(2), b"two")));
        assert!(!q.push(&Msdu::new(MacAddr::local(1), b"four")));
        assert_eq!(q.first(|_| true).unwrap().payload(), b"one");
        let mut ended = Vec::new();
        let one = q.remove(|w| w.payload() == b"one", |order, to| ended.push((order, to)));
        assert_eq!((one, ended), (1, vec![(0, MacAddr::local(1))]));
        assert!(q.push(&Msdu::new(MacAddr::local(1), b"last")));
        assert_eq!(q.first(|_| true).unwrap().payload(), b"two");
        assert_eq!(q.len(), 2);
    }
}
