//! What a feedback makes of the rate.

use super::super::meter;
use super::Rate;
use super::lately::Lately;
use crate::transport::micros;
use radio::{Duration, Instant};

impl Rate {
    /// The hops tell a delay.
    pub(super) fn follow_hops(&mut self, now: Instant, delay_us: u32, hops: u8) {
        let mut told = 1e6 / f64::from(delay_us);
        let mut slowed = None;
        if self.config.adjusting {
            told *= meter::PACKETS;
            let hops_take = Duration::from_us(u64::from(delay_us) * u64::from(hops.max(1)));
            slowed = self.carried.slowed(now, self.hz(), told, hops_take, self.known());
        }
        if let Some(hz) = slowed {
            self.note_older(now);
            self.set_hz(now, hz / self.share);
        } else {
            self.older = Lately::NONE;
            self.follow(now, told);
        }
    }

    /// Packets at this rate are on the way, and the epoch that began with them lasts.
    fn note_older(&mut self, now: Instant) {
        let stretch = self.round_trip.reach() + self.epoch().times(2);
        self.older.note(now, Some(self.hz()), stretch);
    }

    /// What a path on which nobody knows a delay is begun with, or the part of it that one of several flows has.
    pub(super) fn unmeasured_hz(&self) -> f64 {
        1e6 / micros(self.config.unmeasured_spacing) / self.flows
    }

    /// Nobody on the way knows its delay.
    pub(super) fn follow_rounds(&mut self, now: Instant) {
        self.note_older(now);
        let least = self.carried.narrow().unwrap_or(self.unmeasured_hz());
        if self.hz < least && self.flows == 1.0 {
            // a reader that was slow is so no more
            self.set_hz(now, least);
        }
        let least = self.unmeasured_hz() * self.share;
        if let Some(hz) = self.carried.alone(now, self.hz(), least) {
            self.set_hz(now, hz / self.share);
        }
    }

    /// Towards the rate that is fed back.
    fn follow(&mut self, now: Instant, fed_back: f64) {
        let difference = fed_back - self.hz;
        if fed_back > self.config.threshold * self.hz {
            self.set_hz(now, self.hz + self.gain * difference);
        } else if fed_back < self.hz {
            self.set_hz(now, self.hz + self.config.fall * difference);
        }
    }
}
