//! What a path carries on which no hop knows its delay: what arrives in each round, and what gets lost.
//!
//! To begin with, each [round](super::round::Round) is half as fast again as the one before, until less arrives than was sent: then the first queue fills, and what
//! arrives is what the path carries. From then on an eighth is added while all of it arrives, and what gets lost takes some away: where a
//! [queue fills](super::trip) a sixteenth is too much, and where none does a quarter, since it is not this sender that is in the way. Below what such a path is begun with
//! the rate goes only where a queue fills, and comes back by an eighth, a quarter and then half as much again in rounds in which none does: others that were in the way have ended. Ours;
//! the thesis has hops everywhere.

use super::round::Seen;
use super::trip::Least;
use radio::Instant;

/// What a round in which too many get lost multiplies the rate by, at most this share of what has arrived.
const DOWN: f64 = 0.7;
const DOWN_TO: f64 = 0.85;
/// What another one does, to begin with and then.
const CLIMB: f64 = 1.5;
const UP: f64 = 1.125;
/// Below what such a path is begun with, in the first round in which no queue fills, the second and the others.
const COMES_BACK: [f64; 3] = [UP, 1.25, 1.5];
/// Of what was sent so much arrives where no queue fills, while the rate climbs, and then.
const CLIMBS: f64 = 0.8;
const ALL: f64 = 0.9;
/// No rate is above so many times what has arrived: a sender with little to send learns nothing of the path.
const SEEN: f64 = 2.0;
/// Where no queue fills, so much may get lost: it is not this sender that is in the way.
const RADIO: f64 = 0.25;
/// Who has not lost more than that of a path whose queue fills goes no slower than at this share of what such a path is begun with: it may be a pause, or
/// a longer way.
const SHARE: f64 = 0.25;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    climbs: bool,
    /// The rate was lowered with the last one, and what this one tells is still of the rate before.
    settles: bool,
    /// The shortest way there and back of late.
    least: Least,
    /// The rate, where the path carries less than what such a path is begun with.
    narrow: Option<f64>,
    /// More than a quarter was lost of it once.
    flooded: bool,
    /// Rounds in a row in which no queue has filled and little was lost.
    clear: usize,
}

impl Rounds {
    pub const NEW: Rounds = Rounds {
        climbs: true,
        settles: false,
        least: Least::NONE,
        narrow: None,
        flooded: false,
        clear: 0,
    };

    /// Nothing is on its way, or something else decides about the rate: what is known of this round says nothing.
    pub fn rest(&mut self) {
        self.settles = false;
    }

    /// The rate is looked for anew, over another path.
    pub fn release(&mut self) {
        let Rounds { climbs, settles, .. } = *self;
        *self = Rounds {
            climbs,
            settles,
            ..Rounds::NEW
        };
    }

    /// The rate that the path was found to carry, if that is less than what such a path is begun with.
    pub fn narrow(&self) -> Option<f64> {
        self.narrow
    }

    /// The rate to go on with, if the round says that `hz` is not the one. Without a reason it is `least_hz` at least.
    pub fn end(&mut self, now: Instant, seen: Seen, hz: f64, least_hz: f64) -> Option<f64> {
        let fills = self.least.fills(now, seen.trip);
        if core::mem::take(&mut self.settles) {
            return None;
        }
        let is_clear = fills == Some(false) && !seen.lossy;
        self.clear = if is_clear { self.clear + 1 } else { 0 };
        let rate = self.rate(&seen, hz, fills != Some(false));
        let overflows = seen.lost > RADIO;
        let starves = seen
            .before_hz
            .is_some_and(|before| seen.arrived_hz < before * CLIMBS);
        let is_narrow = match fills {
            Some(true) => self.narrow.is_some() || seen.lossy || starves,
            // what gets lost without that does so at any rate
            _ => self.narrow.is_some() && !overflows,
        };
        self.flooded = is_narrow && (self.flooded || overflows);
        let least_narrow_hz = if self.flooded { 0.0 } else { least_hz * SHARE };
        let narrow = rate.or(self.narrow).map(|hz| hz.max(least_narrow_hz));
        self.narrow = narrow.filter(|hz| is_narrow && *hz < least_hz);
        rate.map(|hz| self.narrow.unwrap_or(hz.max(least_hz)))
    }

    fn rate(&mut self, seen: &Seen, hz: f64, fills: bool) -> Option<f64> {
        if seen.lossy && (fills || seen.lost > RADIO) {
            (self.climbs, self.settles) = (false, true);
            return Some((hz * DOWN).min(seen.carries_hz * DOWN_TO));
        }
        let through_hz = if fills { seen.arrived_hz } else { seen.told_hz };
        let share = through_hz / seen.before_hz?;
        if self.climbs && share < CLIMBS {
            self.climbs = false;
            return Some(through_hz.min(hz));
        }
        let back = COMES_BACK[self.clear.clamp(1, COMES_BACK.len()) - 1];
        let step = match self.narrow {
            _ if self.climbs => CLIMB,
            Some(_) => back,
            None => UP,
        };
        let faster = (hz * step).min(through_hz * SEEN);
        (share >= ALL || self.climbs).then_some(faster.max(hz))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::stream::Tally;
    use super::super::round::Round;
    use super::super::round::testing::Course;
    use super::super::trip::Trip;
    use super::*;
    use radio::Duration;

    const HZ: f64 = 1_000.0;
    const LEAST_HZ: f64 = 100.0;
    const QUIET: ((u32, u32, u32), u64) = ((10, 10, 0), 40);

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn new() -> Course<Rounds> {
        Course::new(Rounds::NEW)
    }

    fn end(r: &mut Course<Rounds>, ms: u64) -> Option<f64> {
        let seen = r.round.end(at(ms), None)?;
        r.policy.end(at(ms), seen, HZ, 0.0)
    }

    /// Rounds of 100 ms with so many packets each, and feedback about as many; what the last one tells.
    fn rounds(r: &mut Course<Rounds>, all: &[(u32, u32, u32)]) -> Option<f64> {
        let mut said = None;
        let begin = r.round.since.map_or(0, |since| since.as_ns() / 1_000_000);
        for (ms, &(sent, arrived, lost)) in (begin..).step_by(100).zip(all) {
            r.pass(at(ms), (sent, arrived, lost));
            said = end(r, ms + 100);
        }
        said
    }

    /// One that climbs no more.
    fn steady() -> Course<Rounds> {
        let mut r = new();
        assert_eq!(rounds(&mut r, &[(100, 100, 0), (100, 79, 0)]), Some(790.0));
        r
    }

    #[test]
    fn half_as_fast_again_until_less_arrives_than_was_sent() {
        let climb = |all: &[_]| rounds(&mut new(), all);
        assert_eq!(
            climb(&[(100, 100, 0)]),
            None,
            "nothing is known of what was sent before"
        );
        assert_eq!(climb(&[(100, 100, 0), (1, 80, 0)]), Some(1_500.0));
        assert_eq!(climb(&[(100, 100, 0), (1, 79, 0)]), Some(790.0));
        // what arrives now was sent in the round before
        assert_eq!(
            climb(&[(50, 100, 0), (100, 50, 0)]),
            Some(HZ),
            "twice of what arrives at most"
        );
        assert_eq!(climb(&[(70, 100, 0), (1, 70, 0)]), Some(1_400.0));
    }

    #[test]
    fn then_an_eighth_where_all_arrives() {
        assert_eq!(rounds(&mut steady(), &[(1, 90, 0)]), Some(1_125.0));
        assert_eq!(rounds(&mut steady(), &[(1, 89, 0)]), None);
        assert_eq!(
            rounds(&mut steady(), &[(10, 100, 0), (1, 10, 0)]),
            Some(HZ),
            "little was sent"
        );
    }

    #[test]
    fn one_of_sixteen_may_be_lost() {
        assert_eq!(rounds(&mut steady(), &[(1, 150, 10)]), Some(1_125.0));
        assert_eq!(rounds(&mut steady(), &[(1, 149, 10)]), Some(700.0));
        let little = (1, 20, 10);
        assert_eq!(
            rounds(&mut steady(), &[little]),
            Some(671.5),
            "of what arrived in the round before"
        );
        assert_eq!(
            rounds(&mut steady(), &[little; 3]),
            Some(170.0),
            "of what has arrived"
        );
        // the next round tells of the rate before, and the one after it does not
        let mut r = new();
        assert_eq!(rounds(&mut r, &[(100, 100, 0), (100, 90, 10)]), Some(700.0));
        assert_eq!(rounds(&mut r, &[(100, 50, 50)]), None);
        assert_eq!(
            rounds(&mut r, &[(1, 100, 0)]),
            Some(1_125.0),
            "and the climb is over"
        );
    }

    #[test]
    fn a_round_is_over_when_something_sent_in_it_has_come() {
        let mut r = new();
        let end = |r: &mut Course<Rounds>, ms, arrived, came| {
            r.round.told(Tally::new(arrived, 0, at(came)), Trip::UNKNOWN);
            r.round
                .end(at(ms), None)
                .and_then(|seen| r.policy.end(at(ms), seen, HZ, 0.0))
        };
        assert_eq!(end(&mut r, 0, 0, 0), None, "nothing was sent");
        rounds(&mut r, &[(100, 100, 0)]);
        r.round.sent(at(100));
        assert_eq!(end(&mut r, 150, 90, 99), None);
        assert_eq!(end(&mut r, 200, 10, 100), Some(1_500.0), "all of the round");
        assert_eq!(end(&mut r, 300, 7, 200), None, "too few");
        assert!(end(&mut r, 301, 1, 200).is_some());
        // after a rest the next packet begins one
        r.round = Round::NEW;
        r.policy.rest();
        r.round.sent(at(9_000));
        assert_eq!(end(&mut r, 9_100, 100, 9_000), None);
        // or when it must have come, if that is told
        r.round.told(Tally::new(8, 0, at(0)), Trip::UNKNOWN);
        let most = Some(radio::Duration::from_ms(50));
        assert!(r.round.clone().end(at(9_150), None).is_none());
        assert!(r.round.clone().end(at(9_149), most).is_none());
        assert!(r.round.end(at(9_150), most).is_some());
    }

    /// Rounds of 100 ms as above over a path of 40 ms, each with a way there and back of so many; what the last one makes of 100 packets a second, and the path was begun with
    /// as many.
    fn trips(r: &mut Course<Rounds>, all: &[((u32, u32, u32), u64)]) -> Option<f64> {
        trips_at(LEAST_HZ, r, all)
    }

    /// The same of `hz`.
    fn trips_at(hz: f64, r: &mut Course<Rounds>, all: &[((u32, u32, u32), u64)]) -> Option<f64> {
        let mut said = None;
        let begin = r.round.since.map_or(0, |since| since.as_ns() / 1_000_000);
        for (ms, &(packets, took)) in (begin..).step_by(100).zip(all) {
            let took = Trip::new(Duration::from_ms(took), true, Duration::ZERO);
            r.pass_in(at(ms), packets, took);
            let seen = r.round.end(at(ms + 100), None).unwrap();
            said = r.policy.end(at(ms + 100), seen, hz, LEAST_HZ);
        }
        said
    }

    /// One lost packet of sixteen tells nothing where packets do not wait.
    #[test]
    fn where_no_queue_fills_a_quarter_may_be_lost() {
        let then = |round| {
            let mut r = new();
            trips(&mut r, &[((20, 20, 0), 40), ((20, 15, 0), 40)]);
            assert_eq!(r.policy.narrow(), None);
            trips(&mut r, &[((20, 20, 0), 40), round])
        };
        assert_eq!(then(((20, 15, 5), 40)), Some(112.5), "all is known of");
        assert_eq!(then(((20, 14, 3), 40)), None, "and if not, more may wait");
        assert_eq!(then(((20, 14, 5), 40)), Some(LEAST_HZ), "more than a quarter");
        assert_eq!(then(((20, 19, 1), 46)), Some(112.5));
        assert_eq!(then(((20, 18, 2), 45)), Some(112.5));
        assert_eq!(then(((20, 18, 2), 46)), Some(70.0), "where one fills");
    }

    /// A path that carries less than what it was begun with.
    #[test]
    fn where_a_queue_overflows_it_goes_slower_than_it_began() {
        let mut r = new();
        assert_eq!(trips(&mut r, &[QUIET, ((10, 5, 5), 100)]), Some(70.0));
        assert_eq!(r.policy.narrow(), Some(70.0));
        assert_eq!(
            trips(&mut r, &[((10, 2, 8), 100)]),
            None,
            "that was still of the rate before"
        );
        // the next one goes by the better of two rounds
        assert_eq!(trips(&mut r, &[((10, 1, 9), 100)]), Some(20.0 * DOWN_TO));
        let mut slow = r.clone();
        assert_eq!(trips(&mut slow, &[QUIET, QUIET]), Some(112.5));
        assert_eq!(slow.policy.narrow(), None, "as fast as it began");
        // what gets lost without a queue does so at any rate
        assert_eq!(trips(&mut r, &[QUIET, ((10, 5, 5), 40)]), Some(LEAST_HZ));
        assert_eq!(r.policy.narrow(), None);
    }

    /// Others that were in the way have ended: half as much again in the third round without a queue.
    #[test]
    fn what_was_slowed_down_comes_back_faster_each_round() {
        let mut r = new();
        trips(&mut r, &[QUIET, ((10, 5, 5), 100), ((10, 2, 8), 100)]);
        let mut at_5_hz = |rounds: &[_]| trips_at(5.0, &mut r, rounds);
        assert_eq!(at_5_hz(&[QUIET]), Some(5.625));
        assert_eq!(at_5_hz(&[QUIET]), Some(6.25));
        assert_eq!(at_5_hz(&[QUIET]), Some(7.5));
        assert_eq!(at_5_hz(&[QUIET]), Some(7.5));
        // packets wait again
        assert_eq!(at_5_hz(&[((10, 10, 0), 100)]), Some(5.625));
        assert_eq!(at_5_hz(&[QUIET]), Some(5.625));
        // as fast as it began an eighth is enough
        assert_eq!(trips(&mut r, &[QUIET; 4]), Some(112.5));
        assert_eq!(r.policy.narrow(), None);
    }

    /// Little arrives, and late: that may be a pause, too.
    #[test]
    fn where_packets_only_wait_it_goes_at_a_quarter_at_least() {
        let mut r = new();
        assert_eq!(
            trips(&mut r, &[((100, 100, 0), 40), ((10, 40, 0), 100)]),
            Some(40.0 * 10.0 / 4.0)
        );
        let mut r = new();
        assert_eq!(
            trips(&mut r, &[((100, 100, 0), 40), ((10, 8, 0), 100)]),
            Some(80.0)
        );
        assert_eq!(r.policy.narrow(), Some(80.0));
        let lossy = [((10, 9, 1), 100)];
        assert_eq!(trips_at(30.0, &mut r.clone(), &lossy), Some(25.0));
        let flooded = [((10, 5, 5), 100), ((10, 5, 5), 100), ((10, 9, 1), 100)];
        assert_eq!(
            trips_at(30.0, &mut r.clone(), &flooded),
            Some(21.0),
            "more than a quarter was lost"
        );
        r.policy.release();
        assert_eq!(r.policy.narrow(), None, "of another path nothing is known");
    }
}
