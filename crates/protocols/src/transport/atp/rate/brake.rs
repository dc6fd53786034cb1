//! What slows a sender down where the delay that hops tell is not that of the slowest one.
//!
//! Behind hops that know their delay there may be a way that does not, an uplink for example. A rate that follows the hops fills the queue there for good,
//! and what is too much of it gets lost. Three things together say so: what is sent does not arrive, more of it is lost than may be, and in a whole round
//! nothing has come back that did not take many times as long as all hops together can account for. Each of them alone is what a radio does; of the first
//! two, one is enough where the third is plain.
//!
//! From then on the rate goes by what arrives, until it would be above what the hops allow. Ours: the thesis has hops everywhere.

use super::round::Seen;
use radio::Duration;

/// A round trip may be longer than the shortest one by so many times what the hops tell. Twice, there and back, would do if what they tell were
/// of this packet; it is an average, and of the way back nothing is told.
const ACCOUNTED: u64 = 16;
/// By more than so many times it is plain.
const PLAIN: u64 = 32;
/// Where no queue fills, at least so much arrives of what was sent.
const CARRIED: f64 = 0.8;
/// What the rate becomes of what has arrived, where packets get lost and where they only wait.
const DOWN: f64 = 0.85;
const DRAIN: f64 = 0.95;
/// By what share of itself it grows with a round in which they do not; by twice as much with the next one, and so on, up to all of it.
const UP: f64 = 0.125;
/// It does not grow above so many times the rate of which is known what has become of it.
const KNOWN: f64 = 1.5;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Brake {
    /// By how much all round trips of this round were longer than the shortest of the path.
    longer: Option<Duration>,
    /// By how much the last two were.
    last: [Duration; 2],
    /// What the hops have told in this one, at most.
    hops_take: Duration,
    /// The rate goes by what arrives.
    on: bool,
    /// It was lowered with the last round, and what this one tells is still of the rate before.
    settles: bool,
    /// By what share it grows next.
    up: f64,
}

impl Brake {
    pub const NEW: Brake = Brake {
        longer: None,
        last: [Duration::ZERO; 2],
        hops_take: Duration::ZERO,
        on: false,
        settles: false,
        up: UP,
    };

    /// Nothing is on its way, or nobody tells a delay: what is known of this round says nothing.
    pub fn rest(&mut self) {
        *self = Brake {
            on: self.on,
            ..Brake::NEW
        };
    }

    /// The rate goes by what arrives.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// The rate is looked for anew, maybe over `another` path. Over the same one what was last told of round trips holds: after an outage nearly all that goes was lost
    /// before, and none is told for long.
    pub fn release(&mut self, another: bool) {
        *self = Brake {
            last: if another { Brake::NEW.last } else { self.last },
            ..Brake::NEW
        };
    }

    /// A round trip took so much longer than the shortest.
    pub fn took(&mut self, longer: Duration) {
        self.longer = Some(self.longer.map_or(longer, |least| least.min(longer)));
        self.last = [longer, self.last[0]];
    }

    /// The rate to go with instead of the `told_hz` that the hops allow, in all of which a packet takes `hops_take`. It was `hz` until now. `seen`: of a round that is over.
    pub fn rate(&mut self, seen: Option<Seen>, hz: f64, told_hz: f64, hops_take: Duration) -> Option<f64> {
        self.hops_take = self.hops_take.max(hops_take);
        let rate = seen.and_then(|seen| self.end(seen, hz)).unwrap_or(hz);
        self.on &= rate < told_hz;
        self.on.then_some(rate)
    }

    /// What a round that is over makes of the rate.
    fn end(&mut self, seen: Seen, hz: f64) -> Option<f64> {
        let before = seen.before_hz.unwrap_or(seen.sent_hz);
        let longer = match self.longer.take() {
            Some(least) => least,
            // packets that are missing leave none that could be told
            None if seen.lossy => self.last[0].min(self.last[1]),
            None => Duration::ZERO,
        };
        let hops_take = core::mem::take(&mut self.hops_take);
        let settles = core::mem::take(&mut self.settles);
        if longer <= hops_take.times(ACCOUNTED) {
            let up = self.up;
            self.up = (up * 2.0).min(1.0);
            return Some((hz * (1.0 + up)).min(seen.told_hz * KNOWN).max(hz));
        }
        self.up = UP;
        let fills = seen.arrived_hz < before * CARRIED;
        let is_plain = longer > hops_take.times(PLAIN);
        self.on |= (fills && seen.lossy) || (is_plain && (fills || seen.lossy));
        if settles || !self.on {
            return None;
        }
        self.settles = true;
        let share = if seen.lossy { DOWN } else { DRAIN };
        Some(seen.carries_hz * share)
    }
}

#[cfg(test)]
mod tests {
    use super::super::round::Round;
    use super::super::round::testing::Course;
    use super::*;
    use radio::Instant;

    const HZ: f64 = 1_000.0;
    const TOLD: f64 = 2_000.0;
    const HOPS_TAKE: Duration = Duration::from_ms(1);

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    /// A round of 100 ms that begins `ms` with packets that are sent, told as arrived and as lost, and one round trip; the rate it makes.
    fn round(b: &mut Course<Brake>, ms: u64, packets: (u32, u32, u32), longer_ms: u64) -> Option<f64> {
        b.pass(at(ms), packets);
        b.policy.took(Duration::from_ms(longer_ms));
        rate(b, ms + 100, TOLD, HOPS_TAKE)
    }

    fn rate(b: &mut Course<Brake>, ms: u64, told_hz: f64, hops_take: Duration) -> Option<f64> {
        let seen = b.round.end(at(ms), None);
        b.policy.rate(seen, HZ, told_hz, hops_take)
    }

    fn new() -> Course<Brake> {
        Course::new(Brake::NEW)
    }

    fn slowed() -> Course<Brake> {
        let mut b = new();
        assert_eq!(round(&mut b, 0, (100, 50, 50), 17), Some(425.0));
        assert_eq!(
            round(&mut b, 100, (100, 30, 70), 17),
            Some(HZ),
            "that was still of the rate before"
        );
        b
    }

    #[test]
    fn what_is_lost_and_late_slows_down() {
        slowed();
        let first = |packets, longer_ms| round(&mut new(), 0, packets, longer_ms);
        assert_eq!(first((100, 50, 50), 16), None, "as on a radio");
        assert_eq!(first((100, 100, 0), 500), None, "it arrives");
        assert_eq!(first((100, 95, 5), 500), None, "some may be lost");
        assert_eq!(first((100, 79, 0), 32), None, "it may still be on its way");
        assert_eq!(first((100, 79, 0), 33), Some(790.0 * 0.95), "so late it is not");
        assert_eq!(first((100, 85, 15), 32), None, "as much arrives as may");
        assert_eq!(first((100, 85, 15), 33), Some(850.0 * 0.85));
        assert_eq!(first((100, 7, 0), 500), None, "too few to tell");
    }

    /// One round trip that was short is enough.
    #[test]
    fn all_of_a_round_must_be_late() {
        let mut b = new();
        b.policy.took(Duration::from_ms(16));
        assert_eq!(round(&mut b, 0, (100, 50, 50), 500), None);
    }

    /// Where packets are missing no round trip can be told: then the last two count, both of them.
    #[test]
    fn a_round_without_any_goes_by_the_last_two() {
        let without = |b: &mut Course<Brake>| {
            b.pass(at(100), (100, 50, 50));
            rate(b, 200, TOLD, HOPS_TAKE)
        };
        let mut b = new();
        assert_eq!(round(&mut b, 0, (100, 50, 0), 17), None);
        assert_eq!(without(&mut b.clone()), None, "one is not enough");
        b.policy.took(Duration::from_ms(17));
        assert_eq!(without(&mut b.clone()), Some(425.0));
        b.policy.took(Duration::from_ms(16));
        assert_eq!(without(&mut b), None);
    }

    /// If nothing is missing, either, there was nothing but what went again, and that is not late.
    #[test]
    fn a_round_of_what_was_lost_before_is_not_late() {
        let mut b = slowed();
        b.pass(at(200), (100, 95, 5));
        assert_eq!(rate(&mut b, 300, TOLD, HOPS_TAKE), Some(HZ * 1.125));
    }

    /// In every other round the rate settles.
    #[test]
    fn what_arrives_is_that_of_two_rounds_at_most() {
        let mut b = slowed();
        let mut late = |ms, arrived, lost| round(&mut b, ms, (100, arrived, lost), 17);
        assert_eq!(late(200, 40, 60), Some(400.0 * DOWN));
        assert_eq!(late(300, 60, 40), Some(HZ));
        assert_eq!(late(400, 2, 50), Some(600.0 * DOWN), "the one before was better");
        assert_eq!(late(500, 2, 50), Some(HZ));
        assert_eq!(late(600, 2, 50), Some(20.0 * DOWN), "none was");
    }

    #[test]
    fn what_hops_tell_at_most_in_a_round_counts() {
        let mut b = new();
        assert_eq!(rate(&mut b, 0, TOLD, Duration::from_ms(2)), None);
        assert_eq!(round(&mut b, 0, (100, 50, 50), 32), None);
        assert_eq!(round(&mut b, 100, (100, 50, 50), 32), Some(425.0), "in that one");
    }

    #[test]
    fn then_the_queue_drains_and_the_rate_rises_to_what_hops_allow() {
        let mut b = slowed();
        assert_eq!(round(&mut b, 200, (100, 90, 0), 17), Some(855.0), "it waits");
        // and from here on it does not
        let up = [300, 400, 500].map(|ms| round(&mut b, ms, (100, 90, 0), 16));
        assert_eq!(
            up,
            [Some(1_125.0), Some(1_250.0), Some(1_350.0)],
            "at most 1.5 of 900"
        );
        assert_eq!(
            round(&mut b, 600, (100, 100, 0), 16),
            Some(1_500.0),
            "and of 1,000"
        );
        assert_eq!(round(&mut b, 700, (100, 10, 0), 16), Some(HZ), "not down");
        assert_eq!(round(&mut b, 800, (100, 100, 0), 17), Some(950.0), "waits again");
        assert_eq!(
            round(&mut b, 900, (100, 90, 0), 16),
            Some(1_125.0),
            "as to begin with"
        );
        let mut rate = |told_hz| rate(&mut b, 1_000, told_hz, HOPS_TAKE);
        assert_eq!(rate(1_001.0), Some(HZ));
        assert_eq!(rate(HZ), None);
        assert_eq!(rate(TOLD), None, "for good");
    }

    #[test]
    fn another_path_releases_it_and_a_rest_does_not() {
        let mut b = slowed();
        b.round = Round::NEW;
        b.policy.rest();
        assert_eq!(rate(&mut b, 300, TOLD, HOPS_TAKE), Some(HZ));
        b.policy.release(true);
        assert_eq!(rate(&mut b, 300, TOLD, HOPS_TAKE), None);
    }

    /// What goes then has all been lost before, and no round trip can be told.
    #[test]
    fn after_an_outage_the_last_round_trips_count() {
        for (another, hz) in [(false, Some(425.0)), (true, None)] {
            let mut b = slowed();
            b.policy.release(another);
            b.pass(at(200), (100, 50, 50));
            assert_eq!(rate(&mut b, 300, TOLD, HOPS_TAKE), hz);
        }
    }
}
