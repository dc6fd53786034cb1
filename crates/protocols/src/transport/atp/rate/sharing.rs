//! A rate among those of a macroflow.

use super::Rate;
use crate::transport::atp::macroflow::{Macroflow, Member, Told, Was};
use radio::{Duration, Instant};

impl Rate {
    /// Shares its rate with the others of a macroflow; where that has no room for it, it is alone.
    pub fn join(&mut self, now: Instant, member: Member, flows: &mut Macroflow) {
        let told = flows.note(now, member, self.hz, self.was);
        let Some(Told { hz, share, flows }) = told else {
            return self.leave();
        };
        if flows > 1.0 {
            if share > self.share {
                self.pace.faster(now);
            }
            (self.share, self.flows) = (share, flows);
        } else {
            self.alone();
        }
        self.set_hz(now, hz);
        self.was = Was::Told(self.hz);
    }

    /// Shares it no longer.
    pub fn leave(&mut self) {
        self.alone();
        self.was = if self.is_searching() {
            Was::Found
        } else {
            Was::Resting
        };
    }

    /// Nothing was heard of who goes on at this rate after so long: it has ended.
    pub fn unheard(&self) -> Duration {
        self.epoch().times(2) + Duration::from_ms(1_000)
    }
}
