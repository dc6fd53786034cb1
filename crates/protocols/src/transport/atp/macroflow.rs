//! Flows of one node to the same other one: a macroflow, as RFC 3124 (the Congestion Manager) calls it. Ours; in the thesis each flow is alone.
//!
//! They take the same path, so that what one of them learns of it holds for all, and what one of them meets alone, such as a feedback that
//! got lost, should not set it apart:
//!
//! - they have **one rate**, the mean of theirs. What a feedback, or one that is missing, changes about the rate of one of `n` flows changes the
//!   common one by an `n`-th part of that;
//! - of their sum each gets a **share** by what of it has lately arrived: who had less, since more of its packets were lost, has more now. The square of
//!   the mean over its own, from a half to twice the common rate before it is made sure that the sum is what it was.
//!
//! Each flow is a [`Member`] while it has data to send and a rate that goes by the path, not by the reader at the other end:
//! [`Connection::handle_among`](super::Connection::handle_among).

use radio::{Duration, Instant};

/// Flows that share a rate. Of more, some are alone.
pub const MOST_FLOWS: usize = 128;
/// A share before the sum is what it was: at most, and the other way round at least.
const MOST: f64 = 2.0;
/// What has arrived is counted for so long...
const COUNTED: Duration = Duration::from_ms(500);
/// ...and averaged over so long.
const AVERAGED: Duration = Duration::from_ms(5_000);

/// A flow with a rate and data to send.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Member {
    /// Who it is: no two have the same.
    pub id: u64,
    /// It is one no longer if nothing was heard of it until then: its computer, or its program, has ended without a word.
    pub until: Instant,
    /// Octets per second that have lately arrived, if it always had something to send.
    pub goodput: Option<f64>,
}

/// See the [module](self). Where flows are of several processes it is kept where all of these can read and write it.
#[derive(Clone, PartialEq, Debug)]
pub struct Macroflow {
    /// The common rate, in packets per second and flow; of no meaning without members.
    pub hz: f64,
    /// The flows.
    pub members: [Option<Member>; MOST_FLOWS],
}

impl Default for Macroflow {
    fn default() -> Self {
        Macroflow {
            hz: 0.0,
            members: [None; MOST_FLOWS],
        }
    }
}

/// Where the rate of a member is from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Was {
    /// It was told this common rate last.
    Told(f64),
    /// It has found one of its own.
    Found,
    /// It sent nothing, or as fast as a reader takes it: it knows nothing of the path.
    Resting,
}

/// What a member is to do.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Told {
    /// The common rate.
    pub hz: f64,
    /// What it multiplies that by.
    pub share: f64,
    /// How many there are.
    pub flows: f64,
}

impl Told {
    /// What there is to know of the rate of one that is alone.
    pub const fn alone(hz: f64) -> Told {
        Told {
            hz,
            share: 1.0,
            flows: 1.0,
        }
    }
}

impl Macroflow {
    /// Notes a member, whose rate before its share is now `hz`. `None` if there is no room.
    pub(super) fn note(&mut self, now: Instant, member: Member, hz: f64, was: Was) -> Option<Told> {
        for other in &mut self.members {
            *other = other.filter(|m| m.until >= now || m.id == member.id);
        }
        let is_it = |m: &Option<Member>| m.is_some_and(|m| m.id == member.id);
        let known = self.members.iter().position(is_it);
        let place = known.or_else(|| self.members.iter().position(Option::is_none))?;
        self.members[place] = Some(member);
        let flows = self.members.iter().flatten().count() as f64;
        if flows <= 1.0 || !(self.hz.is_finite() && self.hz > 0.0) {
            self.hz = hz;
            return Some(Told::alone(hz));
        }
        match was {
            Was::Told(before) if known.is_some() => self.hz *= 1.0 + (hz / before - 1.0) / flows,
            Was::Told(_) | Was::Found => self.hz += (hz - self.hz) / flows,
            Was::Resting => {}
        }
        Some(Told {
            hz: self.hz,
            share: self.share(&member, flows),
            flows,
        })
    }

    /// It has no rate, or nothing to send.
    pub(super) fn leave(&mut self, id: u64) {
        for member in &mut self.members {
            *member = member.filter(|m| m.id != id);
        }
    }

    fn share(&self, own: &Member, flows: f64) -> f64 {
        let goodputs = || self.members.iter().flatten().filter_map(|m| m.goodput);
        let mean = goodputs().sum::<f64>() / (goodputs().count() as f64).max(1.0);
        let weight = |m: &Member| match m.goodput {
            Some(goodput) if mean > 0.0 => {
                let behind = mean / goodput.max(mean * 1e-3);
                (behind * behind).clamp(1.0 / MOST, MOST)
            }
            _ => 1.0,
        };
        let sum: f64 = self.members.iter().flatten().map(weight).sum();
        weight(own) * flows / sum
    }
}

/// What has lately arrived of a flow that always has something to send. While it looks for its rate it counts, too: what it has lost by that is made up for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrived {
    /// Since when is counted, and what had arrived then.
    since: Option<(Instant, u64)>,
    /// So many seconds were counted before that, up to [`AVERAGED`].
    seconds: f64,
    goodput: Option<f64>,
}

impl Arrived {
    /// Octets per second, once it is known. `octets` have arrived until now.
    pub fn note(&mut self, now: Instant, octets: u64) -> Option<f64> {
        let (since, had) = *self.since.get_or_insert((now, octets));
        let time = now.since(since);
        if time < COUNTED {
            return self.goodput;
        }
        let seconds = time.as_ns() as f64 / 1e9;
        let all = (self.seconds + seconds).min(AVERAGED.as_ns() as f64 / 1e9);
        let old = self.goodput.unwrap_or(0.0);
        let new = (octets - had) as f64 / seconds;
        self.goodput = Some(old + (seconds / all).min(1.0) * (new - old));
        (self.since, self.seconds) = (Some((now, octets)), all);
        self.goodput
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn member(id: u64, goodput: Option<f64>) -> Member {
        Member {
            id,
            until: at(10_000),
            goodput,
        }
    }

    /// Flows 1 to `n` at the same rate.
    fn alike(n: u64, hz: f64) -> Macroflow {
        let mut flows = Macroflow::default();
        for id in 1..=n {
            flows.note(at(0), member(id, None), hz, Was::Found).unwrap();
        }
        flows
    }

    #[test]
    fn who_is_alone_has_the_rate_that_it_wants() {
        let mut flows = Macroflow::default();
        for (hz, was) in [
            (100.0, Was::Found),
            (40.0, Was::Told(100.0)),
            (41.3, Was::Resting),
        ] {
            let told = flows.note(at(0), member(1, Some(5.0)), hz, was);
            assert_eq!(told, Some(Told::alone(hz)));
        }
    }

    #[test]
    fn what_one_of_four_learns_is_a_fourth_of_it_for_all() {
        let mut flows = alike(4, 100.0);
        let told = flows
            .note(at(1), member(2, None), 60.0, Was::Told(100.0))
            .unwrap();
        assert_eq!((told.hz, told.share, told.flows), (90.0, 1.0, 4.0));
        // the others have learnt nothing themselves, and are told it
        let told = flows
            .note(at(2), member(3, None), 100.0, Was::Told(100.0))
            .unwrap();
        assert_eq!(told.hz, 90.0);
        // what flow 4 changes is in proportion, although it has not been told yet
        let told = flows
            .note(at(2), member(4, None), 200.0, Was::Told(100.0))
            .unwrap();
        assert!((told.hz - 90.0 * 1.25).abs() < 1e-9, "{told:?}");
    }

    #[test]
    fn who_comes_brings_its_rate_into_the_mean() {
        let mut flows = alike(3, 100.0);
        let told = flows.note(at(1), member(9, None), 500.0, Was::Found).unwrap();
        assert_eq!(told.hz, 200.0);
        // what it was told while it was one before means nothing
        flows.leave(9);
        let told = flows
            .note(at(1), member(9, None), 100.0, Was::Told(200.0))
            .unwrap();
        assert_eq!(told.hz, 175.0);
        // nor does the rate of one that rested
        flows.leave(9);
        let told = flows.note(at(1), member(9, None), 2_000.0, Was::Resting).unwrap();
        assert_eq!((told.hz, told.flows), (175.0, 4.0));
    }

    #[test]
    fn of_whom_less_has_arrived_sends_more_and_all_together_as_much() {
        let mut flows = alike(4, 100.0);
        let goodputs = [Some(50.0), Some(100.0), Some(1e-6), None];
        let mut shares = |goodputs: [Option<f64>; 4]| {
            let mut round = || {
                let told = |(id, goodput): (u64, &Option<f64>)| {
                    let member = member(id, *goodput);
                    flows.note(at(1), member, 100.0, Was::Told(100.0)).unwrap().share
                };
                let shares: std::vec::Vec<f64> = (1..).zip(&goodputs).map(told).collect();
                shares
            };
            round();
            round()
        };
        let found = shares(goodputs);
        assert!((found.iter().sum::<f64>() - 4.0).abs() < 1e-9, "{found:?}");
        // the mean of those that tell is 50: 1, a quarter and more than twice before they are bounded
        let all = 1.0 + 0.5 + 2.0 + 1.0;
        for (found, weight) in found.iter().zip([1.0, 0.5, 2.0, 1.0]) {
            assert!((found - weight * 4.0 / all).abs() < 1e-6, "{found}");
        }
        assert_eq!(shares([Some(0.0); 4]), [1.0; 4], "nothing arrives of anybody");
        assert_eq!(shares([None; 4]), [1.0; 4]);
    }

    #[test]
    fn who_ended_without_a_word_counts_no_longer() {
        let mut flows = alike(2, 100.0);
        let late = Member {
            until: at(99_999),
            ..member(2, None)
        };
        let told = flows.note(at(10_001), late, 60.0, Was::Told(100.0)).unwrap();
        assert_eq!(told, Told::alone(60.0));
    }

    #[test]
    fn no_room() {
        let most = MOST_FLOWS as u64;
        let mut flows = alike(most, 100.0);
        let full = flows.clone();
        assert_eq!(flows.note(at(1), member(most + 1, None), 1.0, Was::Found), None);
        assert_eq!(flows, full);
        assert!(
            flows
                .note(at(1), member(most, None), 100.0, Was::Told(100.0))
                .is_some()
        );
    }

    /// Whatever another process has written.
    #[test]
    fn a_rate_that_is_none_is_begun_anew() {
        for hz in [f64::NAN, 0.0, -1.0, f64::INFINITY] {
            let mut flows = alike(2, 100.0);
            flows.hz = hz;
            let told = flows
                .note(at(1), member(1, None), 70.0, Was::Told(100.0))
                .unwrap();
            assert_eq!(told, Told::alone(70.0));
        }
    }

    /// The mean of all until five seconds are over, then old ones are forgotten.
    #[test]
    fn what_arrives_is_averaged() {
        let mut arrived = Arrived::default();
        assert_eq!(
            arrived.note(at(0), 7_000),
            None,
            "of what came before nothing is known"
        );
        assert_eq!(arrived.note(at(499), 8_000), None);
        assert_eq!(arrived.note(at(500), 8_000), Some(2_000.0));
        assert_eq!(arrived.note(at(900), 9_999), Some(2_000.0));
        let third = arrived.note(at(1_500), 8_000).unwrap();
        assert!((third - 2_000.0 / 3.0).abs() < 1e-9, "{third}");
        let steady = (4..=40).map(|half| arrived.note(at(500 * half), 8_000 + 500 * (half - 3)));
        let last = steady.last().flatten().unwrap();
        assert!((900.0..1_000.0).contains(&last), "{last}");
    }
}
