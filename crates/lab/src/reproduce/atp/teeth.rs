//! The saw-tooth of a sender's rate (thesis, section 5.4): it falls at once, and climbs in steps.

use crate::mesh::Trace;

/// A fall is a spacing that becomes so many times as long, in one step.
const FALL: f64 = 1.5;

/// What a rate did over a time.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Teeth {
    /// Falls by a third or more where a feedback was missed.
    pub missed: u64,
    /// Such falls at a feedback that allowed no more.
    pub told: u64,
    /// Steps up.
    pub rises: u64,
    /// Standard deviation over mean of the rate, by time.
    pub variation: f64,
}

impl Teeth {
    /// Of the sender of a flow, between two instants in ns; nothing if it had no rate then.
    pub fn of(sent: &Trace, from: u64, to: u64) -> Option<Teeth> {
        let mut teeth = Teeth::default();
        for step in sent.chosen_us.windows(2) {
            let ((_, before), (at, after)) = (step[0], step[1]);
            if !(from..to).contains(&at) {
                continue;
            }
            let heard = sent.feedback_us.binary_search_by_key(&at, |f| f.0).is_ok();
            match f64::from(after) / f64::from(before.max(1)) {
                ratio if ratio < 1.0 => teeth.rises += 1,
                ratio if ratio < FALL => {}
                _ if heard => teeth.told += 1,
                _ => teeth.missed += 1,
            }
        }
        teeth.variation = variation(&sent.chosen_us, from, to)?;
        Some(teeth)
    }

    /// Both kinds.
    pub fn falls(&self) -> u64 {
        self.missed + self.told
    }
}

/// Standard deviation over mean of the rate that follows from spacings, each of which holds until the next.
fn variation(chosen_us: &[(u64, u32)], from: u64, to: u64) -> Option<f64> {
    let ends = chosen_us.iter().skip(1).map(|c| c.0).chain([to]);
    let (mut time, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for ((at, us), end) in chosen_us.iter().zip(ends) {
        let held = end.min(to).saturating_sub((*at).max(from)) as f64;
        let hz = 1e6 / f64::from((*us).max(1));
        time += held;
        sum += held * hz;
        squares += held * hz * hz;
    }
    (time > 0.0).then(|| {
        let mean = sum / time;
        (squares / time - mean * mean).max(0.0).sqrt() / mean
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_and_rises() {
        let sent = Trace {
            chosen_us: vec![
                (0, 100),
                (10, 200),
                (20, 150),
                (30, 140),
                (40, 210),
                (50, 230),
                (90, 999),
            ],
            feedback_us: vec![(20, 1), (30, 1), (40, 1), (50, 1)],
            ..Trace::default()
        };
        let teeth = Teeth::of(&sent, 5, 60).unwrap();
        assert_eq!((teeth.missed, teeth.told, teeth.rises), (1, 1, 2));
        assert_eq!(teeth.falls(), 2);
        assert_eq!(Teeth::of(&sent, 15, 60).unwrap().missed, 0, "before");
        assert_eq!(Teeth::of(&Trace::default(), 0, 60), None);
    }

    #[test]
    fn a_rate_counts_as_long_as_it_holds() {
        // 2 packets per second for 30 ns, 1 for 10 ns: 1.75 on average
        let chosen = [(0, 500_000), (40, 1_000_000)];
        let hz = [2.0, 2.0, 2.0, 1.0];
        let deviation = (hz.iter().map(|x| (x - 1.75_f64).powi(2)).sum::<f64>() / 4.0).sqrt();
        let ours = variation(&chosen, 10, 50).unwrap();
        assert!((ours - deviation / 1.75).abs() < 1e-12, "{ours}");
        assert_eq!(variation(&chosen, 10, 40), Some(0.0));
    }
}
