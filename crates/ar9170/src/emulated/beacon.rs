//! Beacons of the stick: the timer that its TSF is, the event before each TBTT, and the beacon that it sends there.

use super::registers::{set, tsf};
use super::stick::{PendingBeacon, Stick};
use crate::codec::command::SLEEP;
use crate::codec::register as reg;
use frame::Rate;
use radio::{Attribute, Duration, Instant, Queue, Radio, TxHow};
use std::vec::Vec;

/// Slots of the delay before a beacon of an IBSS: 0 to 2 CWmin, here of 802.11g (IEEE 802.11-2016, 11.1.3.5).
const BEACON_SLOTS: u64 = 2 * 15 + 1;

impl Stick {
    /// A beacon of our network: its clock counts if it is ahead, and ours stays away.
    pub(super) fn beacon_heard(&mut self, beacon: &radio::Beacon<'_>, radio: &mut dyn Radio) {
        if !self.registers.is_ibss() {
            return;
        }
        if let Some(token) = self.beacon.take_if(|b| b.sent.is_some()).and_then(|b| b.sent) {
            radio.abort(token);
        }
        let Some(first_bit) = beacon.received.tsf else {
            return;
        };
        let header_us = 24 * 8 * 10 / i64::from(beacon.received.rate.kbps100().max(1));
        let ahead = beacon.timestamp.minus(first_bit.plus(header_us));
        if ahead > 0 {
            let later = radio::Tsf(tsf(radio)).plus(ahead);
            set(radio, Attribute::Tsf(later));
            self.plan_beacons(radio);
        }
    }

    pub(super) fn take_beacon(&mut self, submit: bool, address: u32, octets: u32) {
        let length = (octets as usize).saturating_sub(4).min(508);
        let words =
            (0..length.div_ceil(4)).map(|i| self.registers.get((address & !3).wrapping_add(4 * i as u32)));
        let mut frame: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        frame.truncate(length);
        self.beacon = submit.then_some(PendingBeacon {
            octets: frame,
            sent: None,
        });
    }

    /// Works out from the TSF when what is due next.
    pub(super) fn plan_beacons(&mut self, radio: &dyn Radio) {
        let Some((period, before)) = self.registers.beacon_timing() else {
            (self.pre_tbtt, self.tbtt) = (None, None);
            return;
        };
        let now = tsf(radio);
        let (period_us, before_us) = (period * 1_024, before * 1_024);
        let last = now / period_us * period_us;
        self.tbtt = Some(last + period_us);
        let early = last + before_us;
        self.pre_tbtt = Some(if early > now { early } else { early + period_us });
    }

    /// Does what its beacon timer says at `now`.
    pub fn tick(&mut self, now: Instant, radio: &mut dyn Radio) {
        let us = tsf(radio);
        if self.pre_tbtt.is_some_and(|t| t <= us) {
            self.plan_beacons(radio);
            if let Some(left) = self.asleep.map(|n| n.saturating_sub(1)) {
                self.power_save(if left > 0 { SLEEP | left } else { 0 }, radio);
            }
            let left = self.asleep.unwrap_or_default();
            self.reports.say(0xc0, 0, 0, &left.to_le_bytes());
        }
        if self.tbtt.is_some_and(|t| t <= us) {
            self.plan_beacons(radio);
            let slots = self.random.below(BEACON_SLOTS);
            let slot_us = u64::from(self.registers.get(reg::SLOT_TIME) >> 10 & 0x3ff);
            if let Some(beacon) = self.beacon.as_mut().filter(|b| b.sent.is_none()) {
                let token = radio.token();
                beacon.sent = Some(token);
                let at = now + Duration::from_us(slots * slot_us);
                let how = TxHow::one_shot(Rate::DSSS_1).queue(Queue::Beacon).not_before(at);
                radio.request(token, &beacon.octets, &how);
            }
        }
    }

    /// When [`tick`](Stick::tick) is due, as far as the TSF tells at `now`.
    pub fn deadline(&self, now: Instant, radio: &dyn Radio) -> Option<Instant> {
        let next = [self.pre_tbtt, self.tbtt].into_iter().flatten().min()?;
        let us = next.saturating_sub(tsf(radio));
        Some(now + Duration::from_us(us.max(1)))
    }
}
