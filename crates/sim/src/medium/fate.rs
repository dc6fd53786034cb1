//! Losses of a link that its signal-to-noise ratio does not explain: given error rates, bursts, traces, and losses
//! of data or of ACKs alone.

use super::steps::steps_from_csv;
use crate::rng::Stream;

/// How frames of one kind are lost on a link.
#[derive(Clone, PartialEq, Debug)]
pub enum Process {
    /// Each frame with the same probability.
    Fixed(f64),
    /// Two states with exponential sojourn times (Gilbert 1960, Elliott 1963).
    GilbertElliott {
        /// Mean time in the good state, ns.
        good_ns: f64,
        /// Mean time in the bad state, ns.
        bad_ns: f64,
        /// Loss probability in the good state.
        good_loss: f64,
        /// Loss probability in the bad state.
        bad_loss: f64,
    },
    /// A loss probability that changes at given times: (ns, probability) in rising order of time. Before the first
    /// entry nothing is lost; the last one holds on.
    Trace(Vec<(u64, f64)>),
}

impl Process {
    /// Reads lines `time_us,per` with `#` comments and an optional header line.
    ///
    /// # Errors
    /// A sentence with the number of the line that is wrong.
    pub fn trace_from_csv(text: &str) -> Result<Process, String> {
        steps_from_csv(text, "per", 0.0..=1.0).map(Process::Trace)
    }
}

/// What a link does to frames in one direction, besides noise and interference.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LinkLoss {
    /// For data and management frames; `None`: nothing.
    pub data: Option<Process>,
    /// For ACKs and CTSs; `None`: nothing.
    pub response: Option<Process>,
    /// Share of the lost frames whose preamble and header were heard, so that the receiver is busy until their end.
    /// The others leave no trace at the receiver.
    pub heard: f64,
}

/// What becomes of a frame at a receiver, as far as a [`LinkLoss`] decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Nothing happens to it.
    Received,
    /// Its preamble is missed.
    Missed,
    /// It is heard, and its checksum is wrong.
    Corrupt,
}

/// A [`LinkLoss`] with its state.
#[derive(Clone, Debug)]
pub struct LinkState {
    rule: LinkLoss,
    stream: Stream,
    data: ProcessState,
    response: ProcessState,
}

#[derive(Clone, Copy, Default, Debug)]
struct ProcessState {
    bad: bool,
    /// When the state changes next, ns.
    until: u64,
    at: usize,
}

impl LinkState {
    /// With its own random stream.
    pub fn new(rule: LinkLoss, stream: Stream) -> LinkState {
        LinkState {
            rule,
            stream,
            data: ProcessState::default(),
            response: ProcessState::default(),
        }
    }

    /// Decides the fate of a frame that arrives at `now` (ns, never decreasing).
    pub fn fate(&mut self, now: u64, is_response: bool) -> Fate {
        let (rule, state) = if is_response {
            (&self.rule.response, &mut self.response)
        } else {
            (&self.rule.data, &mut self.data)
        };
        let Some(process) = rule else {
            return Fate::Received;
        };
        let p = loss_now(process, state, now, &mut self.stream);
        if !self.stream.chance(p) {
            Fate::Received
        } else if self.stream.chance(self.rule.heard) {
            Fate::Corrupt
        } else {
            Fate::Missed
        }
    }
}

fn loss_now(process: &Process, state: &mut ProcessState, now: u64, stream: &mut Stream) -> f64 {
    match process {
        Process::Fixed(p) => *p,
        Process::GilbertElliott {
            good_ns,
            bad_ns,
            good_loss,
            bad_loss,
        } => {
            if state.until == 0 {
                // starts in the long run's proportion
                state.bad = stream.chance(bad_ns / (good_ns + bad_ns));
                state.until = 1 + stream.exponential(if state.bad { *bad_ns } else { *good_ns }) as u64;
            }
            while state.until <= now {
                state.bad = !state.bad;
                let mean = if state.bad { *bad_ns } else { *good_ns };
                state.until = state.until.saturating_add(1 + stream.exponential(mean) as u64);
            }
            if state.bad { *bad_loss } else { *good_loss }
        }
        Process::Trace(points) => {
            while points.get(state.at).is_some_and(|p| p.0 <= now) {
                state.at += 1;
            }
            state.at.checked_sub(1).map_or(0.0, |i| points[i].1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Cause;

    fn link(data: Process, heard: f64) -> LinkState {
        let rule = LinkLoss {
            data: Some(data),
            response: None,
            heard,
        };
        LinkState::new(rule, Stream::new(1, 2, Cause::Link))
    }

    fn share(l: &mut LinkState, what: Fate, step: u64) -> f64 {
        let n = 200_000;
        (0..n).filter(|i| l.fate(i * step, false) == what).count() as f64 / n as f64
    }

    #[test]
    fn fixed_and_heard() {
        let mut l = link(Process::Fixed(0.2), 0.25);
        assert!((share(&mut l, Fate::Corrupt, 1) - 0.05).abs() < 0.003);
        assert!((share(&mut l, Fate::Missed, 1) - 0.15).abs() < 0.004);
        assert_eq!(l.fate(0, true), Fate::Received, "responses are not touched");
    }

    #[test]
    fn bursts() {
        let p = Process::GilbertElliott {
            good_ns: 9e6,
            bad_ns: 1e6,
            good_loss: 0.0,
            bad_loss: 1.0,
        };
        let mut l = link(p, 1.0);
        let lost: Vec<bool> = (0..400_000)
            .map(|i| l.fate(i * 10_000, false) == Fate::Corrupt)
            .collect();
        let share = lost.iter().filter(|l| **l).count() as f64 / lost.len() as f64;
        assert!((share - 0.1).abs() < 0.02, "{share}");
        let runs = lost.windows(2).filter(|w| !w[0] && w[1]).count() as f64;
        let mean_run_ns = share * lost.len() as f64 / runs * 10_000.0;
        assert!((0.8e6..1.2e6).contains(&mean_run_ns), "{mean_run_ns}");
    }

    #[test]
    fn traces() {
        let p = Process::trace_from_csv("time_us,per\n10,1\n20,0 # good again\n").unwrap();
        let mut l = link(p, 1.0);
        let fates: Vec<Fate> = [0, 9_999, 10_000, 19_999, 20_000, 1 << 60]
            .map(|t| l.fate(t, false))
            .to_vec();
        use Fate::{Corrupt, Received};
        assert_eq!(fates, [Received, Received, Corrupt, Corrupt, Received, Received]);
        for bad in ["", "x,1", "5,2", "5,0\n5,0", "-1,0", "5"] {
            assert!(Process::trace_from_csv(bad).is_err(), "{bad}");
        }
    }
}
