//! What a path carries on which no hop knows its delay: what arrives in each round, and what gets lost.
//!
//! To begin with, each [round](super::round::Round) is half as fast again as the one before, until less arrives than was sent: then the first queue fills, and what
//! arrives is what the path carries. From then on an eighth is added while all of it arrives, and what gets lost takes some away.
//! Ours; the thesis has hops everywhere.

use super::round::Seen;

/// What a round in which too many get lost multiplies the rate by, at most this share of what has arrived.
const DOWN: f64 = 0.7;
const DOWN_TO: f64 = 0.85;
/// What another one does, to begin with and then.
const CLIMB: f64 = 1.5;
const UP: f64 = 1.125;
/// Of what was sent so much arrives where no queue fills, while the rate climbs, and then.
const CLIMBS: f64 = 0.8;
const ALL: f64 = 0.9;
/// No rate is above so many times what has arrived: a sender with little to send learns nothing of the path.
const SEEN: f64 = 2.0;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    climbs: bool,
    /// The rate was lowered with the last one, and what this one tells is still of the rate before.
    settles: bool,
}

impl Rounds {
    pub const NEW: Rounds = Rounds {
        climbs: true,
        settles: false,
    };

    /// Nothing is on its way, or something else decides about the rate: what is known of this round says nothing.
    pub fn rest(&mut self) {
        *self = Rounds {
            climbs: self.climbs,
            ..Rounds::NEW
        };
    }

    /// The rate to go on with, if the round says that `hz` is not the one.
    pub fn end(&mut self, seen: Seen, hz: f64) -> Option<f64> {
        if core::mem::take(&mut self.settles) {
            return None;
        }
        if seen.lossy {
            (self.climbs, self.settles) = (false, true);
            return Some((hz * DOWN).min(seen.carries_hz * DOWN_TO));
        }
        let share = seen.arrived_hz / seen.before_hz?;
        if self.climbs && share < CLIMBS {
            self.climbs = false;
            return Some(seen.arrived_hz.min(hz));
        }
        let step = if self.climbs { CLIMB } else { UP };
        let faster = (hz * step).min(seen.arrived_hz * SEEN);
        (share >= ALL || self.climbs).then_some(faster.max(hz))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::stream::Tally;
    use super::super::round::Round;
    use super::super::round::testing::Course;
    use super::*;
    use radio::Instant;

    const HZ: f64 = 1_000.0;

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn new() -> Course<Rounds> {
        Course::new(Rounds::NEW)
    }

    fn end(r: &mut Course<Rounds>, ms: u64) -> Option<f64> {
        let seen = r.round.end(at(ms), None)?;
        r.policy.end(seen, HZ)
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
            let (lost, came) = (0, at(came));
            r.round.told(Tally { arrived, lost, came });
            r.round.end(at(ms), None).and_then(|seen| r.policy.end(seen, HZ))
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
        r.round.told(Tally {
            arrived: 8,
            lost: 0,
            came: at(0),
        });
        let most = Some(radio::Duration::from_ms(50));
        assert!(r.round.clone().end(at(9_150), None).is_none());
        assert!(r.round.clone().end(at(9_149), most).is_none());
        assert!(r.round.end(at(9_150), most).is_some());
    }
}
