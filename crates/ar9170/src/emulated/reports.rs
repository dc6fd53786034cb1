//! What the stick has to say: responses with their sequence numbers, and received frames, until the host reads them.

use super::knobs::{Faults, Knobs, Random};
use crate::codec::response::TxStatus;
use crate::codec::stream::{MAX_TRANSFER_OCTETS, RESPONSE_MARK, write_unit};
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

/// Responses that the firmware holds; a further one takes the place of the oldest.
const RESPONSES: usize = 16;
/// Octets of a block of responses.
const BLOCK_OCTETS: usize = 320;
/// Statuses of one event at most.
const STATUSES: usize = 30;
/// Received frames that the memory holds.
const FRAMES: usize = 64;

#[derive(Debug)]
pub(super) struct Reports {
    responses: VecDeque<Vec<u8>>,
    statuses: Vec<TxStatus>,
    frames: VecDeque<Vec<u8>>,
    sequence: u8,
    /// Responses that were overwritten, and frames for which there was no memory.
    pub lost: u64,
    /// What the stick itself has done wrong.
    pub faults: Faults,
    skipped_sequence: f64,
    /// Responses until the one whose number is skipped; 0: it has been, or there is none.
    until_skip: u64,
    random: Random,
}

impl Reports {
    /// Skips the sequence numbers that the knobs say.
    pub(super) fn new(knobs: &Knobs, random: Random) -> Reports {
        Reports {
            responses: VecDeque::new(),
            statuses: Vec::new(),
            frames: VecDeque::new(),
            sequence: 0,
            lost: 0,
            faults: Faults::default(),
            skipped_sequence: knobs.skipped_sequence,
            until_skip: knobs.skip_response.unwrap_or_default(),
            random,
        }
    }

    /// Nothing is left to be said, and numbers begin anew.
    pub(super) fn restart(&mut self) {
        self.responses.clear();
        self.statuses.clear();
        self.frames.clear();
        (self.sequence, self.lost) = (0, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.responses.is_empty() && self.statuses.is_empty() && self.frames.is_empty()
    }

    fn next_number(&mut self) {
        self.sequence = (self.sequence + 1) % RESPONSES as u8;
    }

    /// A response or event.
    pub(super) fn say(&mut self, code: u8, sequence: u8, extra: u8, payload: &[u8]) {
        let skip = self.until_skip == 1;
        self.until_skip = self.until_skip.saturating_sub(1);
        if skip || self.random.chance(self.skipped_sequence) {
            self.next_number();
            self.faults.skipped_sequences += 1;
        }
        let mut response = vec![payload.len() as u8, code, self.sequence | sequence, extra];
        response.extend(payload);
        self.next_number();
        if self.responses.len() == RESPONSES {
            self.responses.pop_front();
            self.lost += 1;
        }
        self.responses.push_back(response);
    }

    pub(super) fn status(&mut self, status: TxStatus) {
        self.statuses.push(status);
    }

    /// Statuses become an event when the host reads.
    fn flush(&mut self) {
        while !self.statuses.is_empty() {
            let some = self.statuses.len().min(STATUSES);
            let mut payload: Vec<u8> = self.statuses.drain(..some).flat_map(|s| s.octets()).collect();
            payload.resize(payload.len().next_multiple_of(4), 0);
            self.say(0xc1, 0, some as u8, &payload);
        }
    }

    /// A received frame, as the hardware writes it.
    pub(super) fn heard(&mut self, unit: Vec<u8>) {
        if self.frames.len() == FRAMES {
            self.lost += 1;
        } else {
            self.frames.push_back(unit);
        }
    }

    /// What one read brings; `None` if there is nothing.
    pub(super) fn read(&mut self, units: usize) -> Option<Vec<u8>> {
        self.flush();
        let mut transfer = vec![0; MAX_TRANSFER_OCTETS];
        let (mut end, mut written_units) = (0, 0);
        for _ in 0..units.clamp(1, 4) {
            let written = match self.block() {
                Some(block) => write_unit(&[&RESPONSE_MARK, &block], &mut transfer[end..]),
                None => match self.frames.front() {
                    Some(frame) => {
                        let written = write_unit(&[frame], &mut transfer[end..]);
                        if written.is_some() {
                            self.frames.pop_front();
                        }
                        written
                    }
                    None => None,
                },
            };
            match written {
                Some(octets) => (end, written_units) = (end + octets, written_units + 1),
                None => break,
            }
        }
        self.faults.grouped_transfers += u64::from(written_units > 1);
        transfer.truncate(end);
        (end > 0).then_some(transfer)
    }

    /// As many responses as a block holds.
    fn block(&mut self) -> Option<Vec<u8>> {
        let mut block = Vec::new();
        let room = BLOCK_OCTETS - RESPONSE_MARK.len();
        while self
            .responses
            .front()
            .is_some_and(|r| block.len() + r.len() + 4 <= room)
        {
            block.extend(self.responses.pop_front()?);
        }
        (!block.is_empty()).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::stream::{Unit, Units};

    fn sequences(transfer: &[u8]) -> Vec<u8> {
        let responses = Units::new(transfer).filter_map(|u| match u {
            Unit::Responses(block) => Some(block),
            _ => None,
        });
        responses.flatten().map(|r| r.sequence).collect()
    }

    #[test]
    fn what_is_said_is_read_together() {
        let mut reports = Reports::new(&Knobs::default(), Random::new(1));
        assert_eq!(reports.read(4), None);
        (0..5).for_each(|_| reports.say(0xc0, 0, 0, &[0; 4]));
        reports.heard(vec![7; 60]);
        reports.status(TxStatus::from_octets([1, 0x91]));
        let transfer = reports.read(4).unwrap();
        assert_eq!(reports.faults.grouped_transfers, 1);
        assert_eq!(sequences(&transfer), [0, 1, 2, 3, 4, 5]);
        assert_eq!(Units::new(&transfer).count(), 2);
        assert!(reports.is_empty());
    }

    #[test]
    fn one_number_is_skipped_once() {
        let knobs = Knobs {
            skip_response: Some(3),
            ..Knobs::default()
        };
        let mut reports = Reports::new(&knobs, Random::new(1));
        (0..4).for_each(|_| reports.say(0xc0, 0, 0, &[]));
        assert_eq!(sequences(&reports.read(4).unwrap()), [0, 1, 3, 4]);
        reports.restart();
        assert_eq!(reports.faults.skipped_sequences, 1);
        (0..4).for_each(|_| reports.say(0xc0, 0, 0, &[]));
        assert_eq!(sequences(&reports.read(4).unwrap()), [0, 1, 2, 3]);
    }

    #[test]
    fn more_than_it_holds_is_overwritten() {
        let mut reports = Reports::new(&Knobs::default(), Random::new(1));
        (0..20).for_each(|_| reports.say(0xc0, 0, 0, &[0; 4]));
        assert_eq!(reports.lost, 4);
        assert_eq!(sequences(&reports.read(4).unwrap())[..2], [4, 5]);
    }
}
