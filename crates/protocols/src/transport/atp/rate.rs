//! The sender's rate S in packets per second, or its inverse, the spacing D_s.

use super::pace::Pace;
use super::{Config, idle_multiplier, meter};
use crate::transport::micros;
use radio::{Duration, Instant};

/// Missed feedbacks after which the rate is looked for anew (thesis, section 2.3).
pub const MISSES: u8 = 3;

/// Where no hop knows its delay, losses are the only news. Packets that must have been sent before they tell anything.
const TELLING: u32 = 8;
/// One of so many may be lost.
const BEARABLE: u32 = 16;
/// What more than that multiplies the rate by, and what less does.
const DOWN: f64 = 0.7;
const UP: f64 = 1.125;

/// Packets over which a sender whose epoch adjusts itself averages what is lost.
const REMEMBERED: f64 = 64.0;
/// Up to this share of packets lost a missed feedback says that the path is overloaded...
const FEW_LOST: f64 = 0.1;
/// ...and from this one on, that feedback gets lost like anything else. Between the two it says some of both.
const MANY_LOST: f64 = 0.2;
/// What it then multiplies the rate by.
const MISS_AMONG_LOSSES: f64 = 0.8;

/// What the gain of a sender whose epoch adjusts itself is multiplied by, over so many hops: 1 over one, 0.6 over three, 0.375 over six. The further
/// feedback comes the older it is, and the more of it is lost, each time for a part of the rate. Who makes up for that in great steps goes past
/// what the path carries.
fn gain_share(hops: u8) -> f64 {
    3.0 / (2.0 + f64::from(hops.max(1)))
}

/// From one packet to the next.
fn spacing(hz: f64) -> Duration {
    Duration::from_ns((1e9 / hz) as u64)
}

/// What the sender is doing about its rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Looks for it: data are held, and a probe is due at this instant.
    QuickStart { probe_at: Option<Instant> },
    /// Has one.
    Running,
}

/// The rate, the pacing that follows from it, and the watch over feedback.
#[derive(Clone, Debug)]
pub struct Rate {
    config: Config,
    hz: f64,
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
    /// Smoothed time from a packet to its acknowledgement.
    rtt: Duration,
    /// What that is at most, until one is measured.
    rtt_at_most: Duration,
    /// Packets since the last feedback that told something without a delay: all, and those that were lost before.
    packets: (u32, u32),
    /// Share of packets that were lost before, averaged over the last ones.
    lost: f64,
    /// Losses until then are of the rate before.
    lowered_until: Instant,
    /// Rates that the other end may still go by, where no hop knows its delay.
    older: Older,
}

/// The slowest rate of a stretch of time that ends now and is one to two times as long as asked for.
#[derive(Clone, Debug)]
struct Older {
    /// The slowest of this stretch, and of the one before.
    hz: [f64; 2],
    /// When this one began.
    since: Instant,
}

impl Older {
    const NONE: Older = Older {
        hz: [f64::INFINITY; 2],
        since: Instant::ZERO,
    };

    fn note(&mut self, now: Instant, hz: f64, stretch: Duration) {
        if now.since(self.since) >= stretch {
            *self = Older {
                hz: [hz, self.hz[0]],
                since: now,
            };
        } else {
            self.hz[0] = self.hz[0].min(hz);
        }
    }

    fn slowest(&self) -> f64 {
        self.hz[0].min(self.hz[1])
    }
}

impl Rate {
    /// Without a rate: data wait until [`quick_start`](Rate::quick_start).
    pub fn new(config: &Config) -> Rate {
        Rate {
            config: *config,
            hz: 1e6 / micros(config.unmeasured_spacing),
            gain: config.gain,
            phase: Phase::QuickStart { probe_at: None },
            pace: Pace::default(),
            expect_at: None,
            sent_at: Instant::ZERO,
            rested_until: Instant::ZERO,
            heard: true,
            missed: 0,
            rtt: Duration::ZERO,
            rtt_at_most: Duration::ZERO,
            packets: (0, 0),
            lost: 0.0,
            lowered_until: Instant::ZERO,
            older: Older::NONE,
        }
    }

    /// Packets per second.
    pub fn hz(&self) -> f64 {
        self.hz
    }

    /// From one packet to the next, in microseconds.
    pub fn spacing_us(&self) -> u32 {
        (1e6 / self.hz) as u32
    }

    fn spacing(&self) -> Duration {
        spacing(self.hz)
    }

    /// True while data are held.
    pub fn is_searching(&self) -> bool {
        self.phase != Phase::Running
    }

    fn set_hz(&mut self, now: Instant, hz: f64) {
        let least = 1e6 / micros(self.config.most_spacing);
        let most = 1e6 / micros(self.config.least_spacing);
        let before = core::mem::replace(&mut self.hz, hz.clamp(least, most));
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
        let us = match delay_us {
            0 => micros(self.config.unmeasured_spacing),
            us => f64::from(us) * factor,
        };
        self.set_hz(now, 1e6 / us);
        self.pace.idle();
        if self.config.adjusting {
            self.gain = self.config.gain * gain_share(hops);
        }
        self.phase = Phase::Running;
        self.missed = 0;
        self.expect_at = waiting.then(|| now + self.wait() + self.rtt);
    }

    /// A feedback with the delay of the path, 0 if nobody on the way knows it. `waiting`: more feedback is expected.
    pub fn feedback(&mut self, now: Instant, delay_us: u32, waiting: bool) {
        self.missed = 0;
        self.heard = true;
        // the next epoch is that of the packets that are on the way: before the rate changes
        let next = now + self.wait();
        // where nobody steers, what was sent after a rest has its round trip, even if feedback from before it is still coming
        let first = self.expect_at.filter(|_| delay_us == 0);
        let rested = next.max(self.rested_until);
        self.expect_at = waiting.then(|| first.map_or(rested, |f| f.max(rested)));
        if self.is_searching() {
            return;
        }
        if delay_us > 0 {
            let packets = if self.config.adjusting {
                meter::PACKETS
            } else {
                1.0
            };
            self.follow(now, packets * 1e6 / f64::from(delay_us));
            self.packets = (0, 0);
            self.older = Older::NONE;
        } else {
            self.follow_losses(now);
        }
    }

    /// Nobody on the way knows its delay: faster, unless too much gets lost. Never slower than what such a path was begun with.
    fn follow_losses(&mut self, now: Instant) {
        // packets at this rate are on the way, and the epoch that began with them lasts
        let stretch = self.reach() + self.epoch().times(2);
        self.older.note(now, self.hz, stretch);
        let least = 1e6 / micros(self.config.unmeasured_spacing);
        if self.hz < least {
            // a reader that was slow is so no more
            self.set_hz(now, least);
        }
        let (sent, again) = self.packets;
        if sent < TELLING {
            return;
        }
        self.packets = (0, 0);
        if again * BEARABLE <= sent {
            self.set_hz(now, self.hz * UP);
        } else if now >= self.lowered_until {
            self.set_hz(now, (self.hz * DOWN).max(least));
            self.lowered_until = now + self.wait() + self.rtt;
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

    /// The epoch of the other end.
    fn epoch(&self) -> Duration {
        self.epoch_at(self.hz)
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
        let hz = self.hz.min(self.older.slowest());
        Duration::from_ns(self.epoch_at(hz).as_ns() / 10 * 11)
    }

    /// Something was sent, so that feedback is expected. `again`: it was lost before.
    pub fn sent(&mut self, now: Instant, again: bool) {
        self.packets.0 = self.packets.0.saturating_add(1);
        self.packets.1 += u32::from(again);
        self.lost += (f64::from(u8::from(again)) - self.lost) / REMEMBERED;
        self.pace.sent(now, self.spacing());
        // the first one needs a round trip more
        let first = now + self.wait() + self.reach();
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
            Phase::Running => Some(self.pace.next(self.spacing())),
            Phase::QuickStart { .. } => None,
        }
    }

    /// When a probe is due, while data are held.
    pub fn probe_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::QuickStart { probe_at } => Some(probe_at.unwrap_or(Instant::ZERO)),
            Phase::Running => None,
        }
    }

    /// A probe was sent; the next one follows after an epoch.
    pub fn probed(&mut self, now: Instant) {
        if self.is_searching() {
            let probe_at = Some(now + self.epoch());
            self.phase = Phase::QuickStart { probe_at };
        }
    }

    /// The path has failed, or the rate is not to be trusted for another reason: data are held until a probe comes
    /// back.
    pub fn search(&mut self, now: Instant) {
        if !self.is_searching() {
            self.phase = Phase::QuickStart { probe_at: Some(now) };
        }
        self.expect_at = None;
    }

    /// When a feedback counts as missed.
    pub fn expect_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => self.expect_at,
            Phase::QuickStart { .. } => None,
        }
    }

    /// A feedback has not come. True if that is one too many, and a new rate is looked for.
    pub fn miss(&mut self, now: Instant) -> bool {
        self.missed += 1;
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

    /// All is acknowledged, so no feedback is expected.
    pub fn rest(&mut self) {
        self.expect_at = None;
        self.missed = 0;
    }

    /// A packet took this long to be acknowledged.
    pub fn round_trip(&mut self, age: Duration) {
        self.rtt = if self.rtt == Duration::ZERO {
            age
        } else {
            Duration::from_ns(self.rtt.as_ns() / 8 * 7 + age.as_ns() / 8)
        };
    }

    /// The time from a packet to its acknowledgement is not known, but that it is no longer than this.
    pub fn round_trip_at_most(&mut self, age: Duration) {
        self.rtt_at_most = age.min(meter::MOST_EPOCH);
    }

    /// What feedback for a packet takes beyond the epoch.
    fn reach(&self) -> Duration {
        match self.rtt {
            Duration::ZERO => self.rtt_at_most,
            rtt => rtt,
        }
    }

    /// How long a packet is left alone after it was sent, even if it is said to be missing.
    pub fn guard(&self) -> Duration {
        let half = Duration::from_ns(self.epoch().as_ns() / 2);
        half.max(self.rtt + self.spacing().times(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(config: &Config, delay_us: u32, hops: u8) -> Rate {
        let mut r = Rate::new(config);
        r.quick_start(Instant::ZERO, delay_us, hops, false);
        r
    }

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    /// Where packets get lost all the time, feedback does, and says less when it does not come.
    #[test]
    fn a_missed_feedback_costs_less_where_packets_get_lost() {
        let after_a_miss = |config: &Config, one_lost_of: u32| {
            let mut r = running(config, 15_000, 1);
            for i in 0..1_000 {
                r.sent(at(0), one_lost_of > 0 && i % one_lost_of == 0);
            }
            let before = r.hz();
            r.miss(at(0));
            r.hz() / before
        };
        let ours = Config::sdmac();
        assert_eq!(after_a_miss(&ours, 0), 0.6);
        assert_eq!(after_a_miss(&ours, 20), 0.6);
        let between = after_a_miss(&ours, 7);
        assert!((0.65..0.75).contains(&between), "{between}");
        assert_eq!(after_a_miss(&ours, 3), 0.8);
        assert_eq!(after_a_miss(&Config::adaptive(), 3), 0.5, "as in the thesis");
        let lenient = Config {
            miss_penalty: 1.0,
            ..ours
        };
        assert_eq!(after_a_miss(&lenient, 3), 1.0);
    }

    #[test]
    fn three_phases() {
        let mut r = running(&Config::standard(), 2_000, 4);
        assert_eq!(r.hz(), 500.0);
        r.feedback(at(0), 1_000, true);
        assert_eq!(r.hz(), 600.0, "increase by a fifth of the difference");
        r.feedback(at(0), 1_520, true);
        assert_eq!(r.hz(), 600.0, "maintain up to 1.1 times");
        r.feedback(at(0), 4_000, true);
        assert_eq!(r.hz(), 250.0, "decrease at once");
        r.feedback(at(0), 0, true);
        assert_eq!(r.hz(), 250.0, "no measurement");
    }

    /// A path that delivers 400 packets a second, of which nobody knows the delay.
    #[test]
    fn without_delays_losses_tell() {
        let mut r = running(&Config::adaptive(), 0, 0);
        assert_eq!(r.hz(), 100.0);
        let (mut most, mut sum) = (0.0_f64, 0.0);
        for n in 1..400_u64 {
            let sent = ((r.hz() / 25.0) as u32).max(1);
            let lost = (sent as f64 * (1.0 - 400.0 / r.hz()).max(0.0)) as u32;
            (0..sent).for_each(|i| r.sent(at(40 * n), i < lost));
            r.feedback(at(40 * n), 0, true);
            most = most.max(r.hz());
            sum += if n >= 200 { r.hz() } else { 0.0 };
        }
        assert!(most < 600.0, "{most}");
        assert!((300.0..450.0).contains(&(sum / 200.0)), "{}", sum / 200.0);
        // who knows the delay decides, and lost packets do not
        r.feedback(at(20_000), 1_000_000 / 200, true);
        assert_eq!(r.hz(), 200.0);
        r.feedback(at(20_040), 0, true);
        assert_eq!(r.hz(), 200.0, "nothing was sent since");
    }

    /// From a tenth of the fed back rate to where it is maintained: as many epochs as
    /// `ln(0.101) / ln(1 - kappa)` says.
    #[test]
    fn epochs_of_recovery() {
        for (config, epochs) in [(Config::standard(), 11), (Config::aggressive(), 4)] {
            let mut r = running(&config, 10_000, 1);
            let mut n = 0;
            loop {
                let before = r.hz();
                r.feedback(at(0), 1_000, true);
                if r.hz() == before {
                    break;
                }
                n += 1;
            }
            assert_eq!(n, epochs);
            assert!(
                (1_000.0 / 1.1..=1_000.0).contains(&r.hz()),
                "91 % of it at least: {}",
                r.hz()
            );
        }
    }

    #[test]
    fn down_gently() {
        let mut r = running(&Config::sdmac(), 10_000, 1);
        assert!(r.spacing_us().abs_diff(30_000) <= 1);
        // two and a half packets in 90 ms are 50/9 packets/s less
        r.feedback(at(0), 90_000, true);
        let lower = 1e6 / 30_000.0 - 0.3 * 50.0 / 9.0;
        assert!((r.hz() - lower).abs() < 1e-9, "{}", r.hz());
        // ten packets of the spacing until now, a tenth more
        let wait = r.expect_at().unwrap().since(at(0)).as_us();
        assert!(wait.abs_diff(330_000) < 100, "{wait}");
    }

    #[test]
    fn smaller_steps_over_more_hops() {
        // towards 250 packets/s, which is two and a half packets each 10 ms
        for (hops, share) in [(0, 0.1), (1, 0.1), (4, 0.05), (6, 0.0375)] {
            let mut r = running(&Config::sdmac(), 100_000, hops);
            let before = r.hz();
            r.feedback(at(0), 10_000, true);
            let step = (r.hz() - before) / (250.0 - before);
            assert!((step - share).abs() < 1e-9, "{hops}: {step}");
        }
        let mut r = running(&Config::adaptive(), 100_000, 6);
        let before = r.hz();
        r.feedback(at(0), 10_000, true);
        assert_eq!(
            r.hz(),
            before + 0.5 * (100.0 - before),
            "only where epochs adjust themselves"
        );
    }

    #[test]
    fn adaptive_quick_start_multiplies_by_hops() {
        assert_eq!(running(&Config::adaptive(), 1_000, 5).spacing_us(), 5_000);
        assert_eq!(running(&Config::adaptive(), 1_000, 1).spacing_us(), 3_000);
        assert_eq!(running(&Config::aggressive(), 1_000, 5).spacing_us(), 1_000);
        assert_eq!(
            running(&Config::adaptive(), 0, 5).spacing_us(),
            10_000,
            "nobody knew"
        );
        assert_eq!(running(&Config::standard(), 1, 1).spacing_us(), 200);
        assert_eq!(running(&Config::standard(), u32::MAX, 1).spacing_us(), 1_000_000);
    }

    #[test]
    fn three_misses_start_again() {
        let mut r = running(&Config::standard(), 1_000, 1);
        r.sent(at(0), false);
        assert_eq!(r.expect_at(), Some(at(1_100)));
        assert!(!r.miss(at(1_100)) && !r.miss(at(2_200)));
        assert_eq!((r.hz(), r.expect_at()), (250.0, Some(at(3_300))));
        let mut other = r.clone();
        other.feedback(at(3_000), 4_000, true);
        assert!(!other.miss(at(4_100)), "a feedback in between");
        assert!(r.miss(at(3_300)));
        assert_eq!(
            (r.send_at(), r.probe_at(), r.expect_at()),
            (None, Some(at(3_300)), None)
        );
        r.probed(at(3_300));
        assert_eq!(r.probe_at(), Some(at(4_300)), "every epoch");
        r.feedback(at(3_400), 9_000, true);
        assert!(r.is_searching(), "only the answer to the probe counts");
        r.quick_start(at(3_500), 2_000, 1, true);
        assert_eq!(
            (r.hz(), r.probe_at(), r.expect_at()),
            (500.0, None, Some(at(4_600)))
        );
    }

    /// Spacing is kept on average by a timer that is late, and no two packets go at once.
    /// Who sends so seldom that each packet comes after a rest finds out all the same that nobody answers.
    #[test]
    fn rests_hide_no_silence() {
        let mut r = running(&Config::sdmac(), 1_000, 1);
        r.round_trip(Duration::from_ms(200));
        let mut missed = None;
        for ms in (0..1_000).step_by(30) {
            if r.expect_at().is_some_and(|at_| at_ <= at(ms)) {
                missed = Some(ms);
                break;
            }
            r.sent(at(ms), false);
            if ms == 90 {
                r.feedback(at(ms), 1_000, true);
            }
        }
        // feedback for that at 120 is due a round trip and 1.1 epochs of 20 ms later, and in between all is well
        assert_eq!(missed, Some(360));
    }

    #[test]
    fn pacing() {
        let mut r = running(&Config::standard(), 1_000, 1);
        let mut dice = crate::testing::Dice::new(3);
        let (mut now, mut last) = (Instant::ZERO, None);
        for _ in 0..1_000 {
            now = now.max(r.send_at().unwrap()) + Duration::from_us(dice.within(0..=400));
            if let Some(last) = last {
                assert!(now.since(last) >= Duration::from_us(500));
            }
            last = Some(now);
            r.sent(now, false);
        }
        assert!((999_000_000..=1_000_500_000).contains(&now.as_ns()), "{now:?}");
        // a long pause is not made up for
        let late = now + Duration::from_ms(50);
        r.sent(late, false);
        assert_eq!(r.send_at(), Some(late + Duration::from_us(500)));
        // another rate counts from the last packet
        r.feedback(late, 10_000, true);
        assert_eq!(r.send_at(), Some(late + Duration::from_us(9_500)));
    }

    /// At a higher rate the next packet is due at once, which is no fault of a timer.
    #[test]
    fn a_rate_that_goes_up_is_no_debt() {
        let mut r = running(&Config::standard(), 10_000, 1);
        r.sent(at(0), false);
        r.sent(at(10), false);
        r.feedback(at(19), 100, true);
        let spacing = r.spacing();
        assert!(spacing < Duration::from_us(500));
        r.sent(at(19), false);
        let next = r.send_at().unwrap();
        r.sent(next, false);
        assert_eq!(r.send_at(), Some(next + spacing));
    }
}
