//! Makes flows that a hop holds up alike: who sends faster than their mean is told a longer delay than the others. Ours; the thesis tells
//! all the same.
//!
//! All flows of a hop see the same delay, and aim at the same rate. What keeps them apart is what each meets alone: a feedback that got
//! lost, a call that came late. They come together by their steps towards the rate that is fed back, and these have to be small, or all of
//! them together go past what the path carries. A delay that is longer for who is ahead brings them together faster, and does not make
//! their sum step any further.
//!
//! Senders tell their spacing in each packet (adaptive ATP). A packet that a hop before has held up for longer says nothing about this one:
//! its flow is slow because of that, and is no measure for others.

use super::super::micros;
use radio::Instant;

/// Flows that are told apart. Of more, that of which nothing was heard for longest gives way.
const MOST_FLOWS: usize = 32;
/// A flow counts until so many of its spacings after its last packet.
const COUNTS_FOR: f64 = 8.0;
/// Weight of a new spacing in the average of its flow.
const NEW: f64 = 0.5;
/// What a delay is multiplied by at most.
const MOST: f64 = 4.0;

#[derive(Clone, Copy, Debug)]
struct Flow {
    id: u64,
    /// Its average.
    spacing_us: f64,
    heard: Instant,
    /// No hop before this one has held its last packet up for longer.
    is_held_up_here: bool,
}

/// The flows of a hop.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows([Option<Flow>; MOST_FLOWS]);

impl Flows {
    /// Notes a packet of flow `id` that tells its sender's spacing, above 0 us, and gives what the delay is to be multiplied by in it, 1 to
    /// [`MOST`]: the eighth power of its rate over the mean rate of the flows that are held up here.
    pub(super) fn note(&mut self, now: Instant, id: u64, spacing_us: u32, is_held_up_here: bool) -> f64 {
        let place = self.place(id);
        let known = place.as_ref().filter(|flow| flow.id == id);
        let told_us = f64::from(spacing_us.max(1));
        let own_us = known.map_or(told_us, |flow| {
            flow.spacing_us + NEW * (told_us - flow.spacing_us)
        });
        *place = Some(Flow {
            id,
            spacing_us: own_us,
            heard: now,
            is_held_up_here,
        });
        if !is_held_up_here {
            return 1.0;
        }
        let counts = |flow: &&Flow| {
            flow.is_held_up_here && micros(now.since(flow.heard)) <= COUNTS_FOR * flow.spacing_us
        };
        let all = self.0.iter().flatten().filter(counts);
        let (flows, sum) = all.fold((0.0, 0.0), |(n, sum), flow| {
            (n + 1.0, sum + 1.0 / flow.spacing_us)
        });
        let ahead = (flows / (own_us * sum)).max(1.0);
        let squared = ahead * ahead;
        let fourth = squared * squared;
        (fourth * fourth).min(MOST)
    }

    /// Where a flow is, or is to be.
    fn place(&mut self, id: u64) -> &mut Option<Flow> {
        let known = self.0.iter().position(|f| f.is_some_and(|f| f.id == id));
        let oldest = || {
            (0..MOST_FLOWS)
                .min_by_key(|i| self.0[*i].map(|f| f.heard))
                .unwrap_or(0)
        };
        let index = known.unwrap_or_else(oldest);
        &mut self.0[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    #[test]
    fn who_is_ahead_is_told_more() {
        let mut flows = Flows::default();
        assert_eq!(flows.note(at(0), 7, 1_000, true), 1.0, "it is alone");
        assert_eq!(flows.note(at(1), 7, 500, true), 1.0, "whatever it does");
        assert_eq!(
            flows.note(at(1), 8, 1_000, true),
            1.0,
            "who is behind is told what there is"
        );
        // 750 us against 1 ms: 8/7 of the mean
        let factor = flows.note(at(2), 7, 750, true);
        assert!((factor - (8.0_f64 / 7.0).powi(8)).abs() < 1e-9, "{factor}");
        assert_eq!(flows.note(at(2), 9, 10, true), MOST);
        let mut alike = Flows::default();
        for i in 0..20 {
            assert_eq!(alike.note(at(i), i % 2, 1_000, true), 1.0);
        }
    }

    #[test]
    fn who_has_gone_or_is_held_up_elsewhere_does_not_count() {
        let pair = || {
            let mut flows = Flows::default();
            flows.note(at(0), 1, 4_000, true);
            flows
        };
        assert!(
            pair().note(at(32), 2, 1_000, true) > 1.0,
            "eight spacings have passed"
        );
        assert_eq!(pair().note(at(33), 2, 1_000, true), 1.0, "more than that");
        let mut flows = pair();
        flows.note(at(1), 1, 4_000, false);
        assert_eq!(flows.note(at(2), 2, 1_000, true), 1.0);
        assert_eq!(pair().note(at(1), 2, 1_000, false), 1.0);
    }

    /// The last ones that were heard are known, and nothing is lost but how old ones did.
    #[test]
    fn more_flows_than_room() {
        let mut flows = Flows::default();
        for id in 0..3 * MOST_FLOWS as u64 {
            let factor = flows.note(at(id), id, 1_000_000, true);
            assert!((factor - 1.0).abs() < 1e-9, "{factor}");
        }
        let known: std::vec::Vec<u64> = flows.0.iter().flatten().map(|f| f.id).collect();
        assert_eq!(known.len(), MOST_FLOWS);
        assert!(known.iter().all(|id| *id >= 2 * MOST_FLOWS as u64));
        assert_eq!(flows.note(at(99), 1, 0, true), MOST, "no spacing is none");
    }
}
