//! How a sender comes back from a rate that is far too low (thesis, section 5.1.1): feedback by feedback, each a share of the way.

use crate::mesh::Trace;

/// A rate of no more than this share of what is fed back is far too low.
const FAR: f64 = 0.35;
/// From here on it is maintained: 1 / phi.
const MAINTAINED: f64 = 1.0 / 1.1;

/// Feedbacks of each recovery, from the first that found the rate far too low to the first that maintained it. One in which the rate
/// changed for another reason (a feedback that was missed, a probe), or was lowered, is none.
pub(super) fn recoveries(sender: &Trace) -> Vec<u32> {
    let mut all = Vec::new();
    let mut risen: Option<u32> = None;
    let mut before: Option<(u64, u32)> = None;
    for (&(at, delay_us), &(_, after_us)) in sender.feedback_us.iter().zip(&sender.spacings_us) {
        let Some((since, spacing_us)) = before.replace((at, after_us)) else {
            continue;
        };
        let from = sender.chosen_us.partition_point(|c| c.0 <= since);
        let by_itself = sender.chosen_us[from..].iter().any(|c| c.0 < at);
        if by_itself || delay_us == 0 || after_us > spacing_us {
            risen = None;
            continue;
        }
        let share = f64::from(delay_us) / f64::from(spacing_us);
        match risen {
            Some(n) if share >= MAINTAINED => {
                all.push(n);
                risen = None;
            }
            Some(n) => risen = Some(n + 1),
            None if share <= FAR => risen = Some(1),
            None => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocols::transport::atp::Config;
    use protocols::transport::atp::rate::Rate;
    use radio::Instant;

    /// What the sender's code does with feedback of one delay, from a tenth of it: ln(0.101) / ln(1 - kappa) is 10.3 and 3.3.
    fn trace(config: &Config, missed_at: Option<u64>) -> Trace {
        let mut rate = Rate::new(config);
        rate.quick_start(Instant::ZERO, 10_000, 1, false);
        let mut trace = Trace::default();
        for n in 0..20 {
            if missed_at == Some(n) {
                rate.miss(Instant::ZERO);
                trace.chosen_us.push((n * 10 - 5, rate.spacing_us()));
            }
            // the first only says where it begins
            if n > 0 {
                rate.feedback(Instant::ZERO, 1_000, 1, false);
            }
            trace.feedback_us.push((n * 10, 1_000));
            trace.spacings_us.push((n * 10, rate.spacing_us()));
            trace.chosen_us.push((n * 10, rate.spacing_us()));
        }
        trace
    }

    #[test]
    fn counted_from_far_to_maintained() {
        assert_eq!(recoveries(&trace(&Config::standard(), None)), [11]);
        assert_eq!(recoveries(&trace(&Config::aggressive(), None)), [4]);
        assert!(recoveries(&Trace::default()).is_empty());
    }

    #[test]
    fn a_missed_feedback_makes_it_none() {
        for (config, missed_at) in [
            (Config::aggressive(), 2),
            (Config::aggressive(), 3),
            (Config::standard(), 6),
        ] {
            let half = recoveries(&trace(&config, Some(missed_at)));
            assert!(half.is_empty(), "half of that is not that far down: {half:?}");
        }
    }
}
