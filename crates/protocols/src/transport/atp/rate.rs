//! The sender's rate S in packets per second, or its inverse, the spacing D_s.

mod brake;
mod carried;
mod follow;
mod lately;
mod phase;
mod round;
mod round_trip;
mod rounds;
mod sharing;
mod silence;
mod trip;

use super::super::stream::Tally;
use super::macroflow::Was;
use super::pace::Pace;
use super::{Config, gain_share, idle_multiplier, meter};
use crate::transport::micros;
use carried::Carried;
use lately::Lately;
use phase::Phase;
use radio::{Duration, Instant};
use round_trip::RoundTrip;
use silence::Silence;
use trip::Trip;

/// Missed feedbacks after which the rate is looked for anew (thesis, section 2.3).
pub const MISSES: u8 = 3;

/// Packets over which a sender whose epoch adjusts itself averages what is lost.
const REMEMBERED: f64 = 64.0;
/// Up to this share of packets lost a missed feedback says that the path is overloaded...
const FEW_LOST: f64 = 0.1;
/// ...and from this one on, that feedback gets lost like anything else. Between the two it says some of both.
const MANY_LOST: f64 = 0.2;
/// What it then multiplies the rate by.
const MISS_AMONG_LOSSES: f64 = 0.8;

/// Packets that may have come behind the last hole.
const BEHIND: u64 = 10;

/// From one packet to the next.
fn spacing(hz: f64) -> Duration {
    Duration::from_ns((1e9 / hz) as u64)
}

/// The rate, the pacing that follows from it, and the watch over feedback.
#[derive(Clone, Debug)]
pub struct Rate {
    config: Config,
    /// That of a macroflow is common to its flows.
    hz: f64,
    was: Was,
    /// What the rate is multiplied by, so that of a flow more goes of which less has arrived, and how many flows have it: 1 while it is alone.
    share: f64,
    flows: f64,
    /// Share of a difference by which the rate is raised.
    gain: f64,
    phase: Phase,
    pace: Pace,
    expect_at: Option<Instant>,
    /// When the last packet went.
    sent_at: Instant,
    /// Until then none is missed: that of what was sent after a rest is on its way.
    rested_until: Instant,
    /// One has come since that was set last.
    heard: bool,
    missed: u8,
    silence: Silence,
    round_trip: RoundTrip,
    carried: Carried,
    /// When the newest packet that has arrived was sent.
    came: Instant,
    /// Share of packets that were lost before, averaged over the last ones.
    lost: f64,
    /// Rates that the other end may still go by, where no hop knows its delay.
    older: Lately<f64>,
}

impl Rate {
    /// Without a rate: data wait until [`quick_start`](Rate::quick_start).
    pub fn new(config: &Config) -> Rate {
        Rate {
            config: *config,
            hz: 1e6 / micros(config.unmeasured_spacing),
            share: 1.0,
            flows: 1.0,
            was: Was::Found,
            gain: config.gain,
            phase: Phase::QuickStart {
                probe_at: None,
                told: false,
            },
            pace: Pace::default(),
            expect_at: None,
            sent_at: Instant::ZERO,
            rested_until: Instant::ZERO,
            heard: true,
            missed: 0,
            silence: Silence::new(config.initial_number),
            round_trip: RoundTrip::NEW,
            carried: Carried::NEW,
            came: Instant::ZERO,
            lost: 0.0,
            older: Lately::NONE,
        }
    }

    /// Packets per second.
    pub fn hz(&self) -> f64 {
        self.bounded(self.hz * self.share)
    }

    /// From one packet to the next, in microseconds.
    pub fn spacing_us(&self) -> u32 {
        (1e6 / self.hz()) as u32
    }

    fn spacing(&self) -> Duration {
        spacing(self.hz())
    }

    fn bounded(&self, hz: f64) -> f64 {
        let least = 1e6 / micros(self.config.most_spacing);
        let most = 1e6 / micros(self.config.least_spacing);
        hz.clamp(least, most)
    }

    fn set_hz(&mut self, now: Instant, hz: f64) {
        let hz = self.bounded(hz);
        let before = core::mem::replace(&mut self.hz, hz);
        if self.hz > before {
            self.pace.faster(now);
        }
    }

    /// The answer to a probe: the delay of the path, 0 if no hop knew its own, and the hops. `waiting`: more feedback
    /// is expected.
    pub fn quick_start(&mut self, now: Instant, delay_us: u32, hops: u8, waiting: bool) {
        let factor = if self.config.adaptive {
            idle_multiplier(hops)
        } else {
            1.0
        };
        let another = self.round_trip.over(hops);
        self.carried.anew(another, delay_us > 0);
        let us = match delay_us {
            0 => 1e6 / self.carried.narrow().unwrap_or(self.unmeasured_hz()),
            us => f64::from(us) * factor,
        };
        self.set_hz(now, 1e6 / us);
        self.pace.idle();
        if self.config.adjusting {
            self.gain = self.config.gain * gain_share(hops);
        }
        if matches!(self.phase, Phase::Asking { .. }) {
            self.was = Was::Found;
        }
        self.phase = Phase::Running;
        self.missed = 0;
        self.expect_at = waiting.then(|| now + self.wait() + self.round_trip.smooth);
    }

    /// What a feedback has told of packets. The newest that has arrived has `waited` so long for it, and is the newest of these unless it has `holes`, behind the last of
    /// which nothing is told.
    pub(in super::super) fn told(&mut self, now: Instant, told: Tally, waited: Duration, holes: bool) {
        let is_new = told.came > self.came && told.came >= told.maybe;
        self.came = told.came;
        let took = now.since(told.came).less(waited);
        let behind = self.spacing().times(BEHIND);
        let trip = is_new.then(|| Trip::new(took, !holes, behind));
        self.carried.told(told, trip.unwrap_or(Trip::UNKNOWN));
    }

    /// A feedback with the delay of the path, 0 if nobody on the way knows it, and its hops. `waiting`: more feedback is expected.
    pub fn feedback(&mut self, now: Instant, delay_us: u32, hops: u8, waiting: bool) {
        self.missed = 0;
        self.heard = true;
        if self.round_trip.over(hops) {
            self.carried.anew(true, false);
        }
        // the next epoch is that of the packets that are on the way: before the rate changes
        let next = now + self.wait();
        // where nobody steers, what was sent after a rest has its round trip, even if feedback from before it is still coming
        let first = self.expect_at.filter(|_| delay_us == 0);
        let rested = next.max(self.rested_until);
        self.expect_at = waiting.then(|| first.map_or(rested, |f| f.max(rested)));
        if self.is_searching() {
            return;
        }
        self.phase = Phase::Running;
        self.carried.turn(delay_us > 0);
        if delay_us > 0 {
            self.follow_hops(now, delay_us, hops);
        } else {
            self.follow_rounds(now);
        }
    }

    /// The epoch of the other end.
    fn epoch(&self) -> Duration {
        self.epoch_at(self.hz())
    }

    fn epoch_at(&self, hz: f64) -> Duration {
        if self.config.adjusting {
            meter::epoch(spacing(hz))
        } else {
            self.config.epoch
        }
    }

    /// How long a feedback may take: 1.1 E, and E is that of the slowest packets that the other end may still go by.
    fn wait(&self) -> Duration {
        let hz = self.older.least().map_or(self.hz(), |older| older.min(self.hz()));
        Duration::from_ns(self.epoch_at(hz).as_ns() / 10 * 11)
    }

    /// Something was sent, so that feedback is expected. `again`: it was lost before.
    pub fn sent(&mut self, now: Instant, again: bool) {
        self.carried.sent(now);
        self.lost += (f64::from(u8::from(again)) - self.lost) / REMEMBERED;
        self.pace.sent(now, self.spacing());
        // the first one needs a round trip more
        let first = now + self.wait() + self.round_trip.reach();
        // for as long the other end has heard nothing, and what is still coming from it is about packets before that; if nothing is, no
        // number of rests makes up for it
        let rested = now.since(self.sent_at) > self.epoch();
        if self.config.adjusting && rested && core::mem::take(&mut self.heard) {
            self.rested_until = first;
            self.expect_at = self.expect_at.map(|at| at.max(first));
        }
        self.sent_at = now;
        self.expect_at.get_or_insert(first);
    }

    /// There is nothing to send: what goes next is not late.
    pub fn idle(&mut self) {
        self.pace.idle();
    }

    /// When the next packet may go; none while data are held.
    pub fn send_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running | Phase::Asking { .. } => Some(self.pace.next(self.spacing())),
            Phase::QuickStart { .. } => None,
        }
    }

    /// When a feedback counts as missed.
    pub fn expect_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running | Phase::Asking { .. } => self.expect_at,
            Phase::QuickStart { .. } => None,
        }
    }

    /// A feedback has not come. True if that is one too many, and a new rate is looked for.
    pub fn miss(&mut self, now: Instant) -> bool {
        self.missed += 1;
        self.silence.missed();
        self.set_hz(now, self.hz * self.miss_penalty().max(1e-6));
        self.expect_at = Some(now + self.wait());
        let too_many = self.missed >= MISSES;
        if too_many {
            self.missed = 0;
            self.search(now);
        }
        too_many
    }

    /// What a missed feedback multiplies the rate by.
    fn miss_penalty(&self) -> f64 {
        let least = self.config.miss_penalty;
        if !self.config.adjusting {
            return least;
        }
        let lossy = ((self.lost - FEW_LOST) / (MANY_LOST - FEW_LOST)).clamp(0.0, 1.0);
        least + lossy * (MISS_AMONG_LOSSES - least).max(0.0)
    }

    /// All is acknowledged, so no feedback is expected. `more`: there is more to send.
    pub fn rest(&mut self, more: bool) {
        if !more {
            self.carried.rest();
        }
        self.expect_at = None;
        self.missed = 0;
    }

    /// A packet took this long to be acknowledged, or less if that is not `sure`.
    pub fn round_trip(&mut self, age: Duration, sure: bool) {
        self.round_trip.took(age);
        if sure {
            self.carried.took(self.round_trip.longer(age));
        }
    }

    /// The time from a packet to its acknowledgement is not known, but that it is no longer than this.
    pub fn round_trip_at_most(&mut self, age: Duration) {
        self.round_trip.took_at_most(age);
    }

    /// After so long a packet has arrived or is lost, and both ends know.
    fn known(&self) -> Duration {
        let guard = self.guard();
        guard + Duration::from_ns(guard.as_ns() / 2) + self.wait()
    }

    /// How long a packet is left alone after it was sent, even if it is said to be missing.
    pub fn guard(&self) -> Duration {
        let half = Duration::from_ns(self.epoch().as_ns() / 2);
        half.max(self.round_trip.smooth + self.spacing().times(2))
    }
}

#[cfg(test)]
mod tests;
