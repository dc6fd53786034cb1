//! Feedback on its way back (thesis, section 5.1.2 with figure 5.3b): how long it takes, and whether it comes in clusters.

use protocols::transport::atp::Config;

use crate::mesh::Ended;

/// The epoch of aggressive ATP, in ns.
const EPOCH_NS: u64 = Config::aggressive().epoch.as_ns();
/// Feedbacks that left one epoch apart are in a cluster if they come within half of one.
const TOGETHER_NS: u64 = EPOCH_NS / 2;

/// A feedback that came.
struct Feedback {
    sent: u64,
    came: u64,
    /// It left a whole epoch after the one before. Those that left earlier answer a probe, or a packet that asks.
    of_epoch: bool,
}

/// All of them, in ns. They are known by their marks, and none overtakes another.
fn all(flow: &Ended) -> Vec<Feedback> {
    let (said, heard) = (&flow.received, &flow.sent);
    let mut next = 0;
    let mut all = Vec::new();
    for ((came, _), mark) in heard.feedback_us.iter().zip(&heard.feedback_marks) {
        let Some(n) = said.feedback_marks[next..].iter().position(|m| m == mark) else {
            continue;
        };
        let at = |n: usize| said.feedback_us[n].0;
        let n = next + n;
        let of_epoch = n > 0 && at(n) - at(n - 1) >= EPOCH_NS;
        let (sent, came) = (at(n), *came);
        all.push(Feedback { sent, came, of_epoch });
        next = n + 1;
    }
    all
}

/// When the feedback that took longest was sent, and when it came, in ns.
pub(super) fn slowest(flow: &Ended) -> Option<(u64, u64)> {
    let slowest = all(flow).into_iter().max_by_key(|f| (f.came - f.sent, f.sent))?;
    Some((slowest.sent, slowest.came))
}

/// How many that left an epoch apart came together at most.
pub(super) fn most_together(flow: &Ended) -> Option<u64> {
    let of_epochs = all(flow).into_iter().filter(|f| f.of_epoch);
    let came: Vec<u64> = of_epochs.map(|f| f.came).collect();
    let together = |n: usize| came[n..].partition_point(|at| at - came[n] < TOGETHER_NS) as u64;
    (0..came.len()).map(together).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::Trace;
    use protocols::transport::State;

    /// Times in ms, and marks.
    fn flow(said: &[(u64, u64)], heard: &[(u64, u64)]) -> Ended {
        let trace = |feedback: &[(u64, u64)]| Trace {
            feedback_us: feedback.iter().map(|f| (f.0 * 1_000_000, 1)).collect(),
            feedback_marks: feedback.iter().map(|f| f.1).collect(),
            ..Trace::default()
        };
        Ended {
            octets: 0,
            seconds: 1.0,
            done: true,
            received: trace(said),
            sent: trace(heard),
            resent: 0,
            state: State::Open,
        }
    }

    #[test]
    fn feedback_is_known_again() {
        // 7 was lost
        let said = &[(10, 5), (20, 7), (30, 8), (40, 9), (50, 6)];
        let heard = &[(12, 5), (33, 8), (49, 9), (52, 6)];
        let ms = |at: u64| at * 1_000_000;
        assert_eq!(slowest(&flow(said, heard)), Some((ms(40), ms(49))));
        assert_eq!(slowest(&flow(said, &[])), None);
        assert_eq!(slowest(&flow(&[], heard)), None);
    }

    #[test]
    fn clusters() {
        let said = [(0, 1), (40, 2), (80, 3), (85, 4), (125, 5), (165, 6)];
        let heard = [(1, 1), (95, 2), (100, 3), (101, 4), (126, 5), (190, 6)];
        let together = |heard: &[(u64, u64)]| most_together(&flow(&said, heard));
        assert_eq!(together(&heard), Some(2), "2 and 3; 4 left early");
        assert_eq!(together(&heard[3..]), Some(1));
        assert_eq!(together(&heard[..1]), None, "the first belongs to no epoch");
        let late = [(1, 1), (127, 2), (128, 3), (128, 4), (129, 5), (190, 6)];
        assert_eq!(together(&late), Some(3));
    }
}
