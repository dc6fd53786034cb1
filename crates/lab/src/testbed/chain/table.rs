//! The runs of each case side by side: real kernels, and the simulator.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Case, Outcome, Real};
use crate::stats::Running;

/// The mean goodput of the real kernels may be this share away from that of the simulator.
pub const TOLERANCE: f64 = 0.15;

/// Mean and standard deviation over the runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation; `None` of a single run.
    pub sd: Option<f64>,
}

/// The numbers of one side.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Side {
    /// Mean goodput of the flows of a run, kb/s.
    pub goodput_kbps: Spread,
    /// Standard deviation of the flows of a run over their mean.
    pub unfairness: Spread,
    /// Packets sent again in a run.
    pub resent: Spread,
    /// Flows whose content arrived as it was sent.
    pub whole: usize,
}

/// One case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// Which.
    #[serde(flatten)]
    pub case: Case,
    /// Runs, on each side.
    pub runs: usize,
    /// Real kernels.
    pub real: Side,
    /// The simulator; `None` of transports that it does not have.
    pub simulator: Option<Side>,
    /// Goodput of the first over that of the second.
    pub ratio: Option<f64>,
    /// Whether it is one, give or take [`TOLERANCE`].
    pub within: Option<bool>,
}

impl Row {
    /// Whether everything arrived as it was sent.
    pub fn is_whole(&self) -> bool {
        let all = self.runs * self.case.flows as usize;
        self.real.whole == all && self.simulator.is_none_or(|s| s.whole == all)
    }
}

fn spread(values: impl Iterator<Item = f64>) -> Spread {
    let all: Running = values.collect();
    Spread {
        mean: all.mean().unwrap_or(0.0),
        sd: all.sd(),
    }
}

fn side<'a>(runs: impl Iterator<Item = &'a Outcome> + Clone) -> Side {
    Side {
        goodput_kbps: spread(runs.clone().map(Outcome::goodput_kbps)),
        unfairness: spread(runs.clone().map(Outcome::unfairness)),
        resent: spread(runs.clone().map(|o| o.resent as f64)),
        whole: runs.map(Outcome::whole).sum(),
    }
}

/// One row for each case, in their order.
pub fn table(runs: &BTreeMap<Case, Vec<(Real, Option<Outcome>)>>) -> Vec<Row> {
    let row = |(case, runs): (&Case, &Vec<(Real, Option<Outcome>)>)| {
        let real = side(runs.iter().map(|r| &r.0.outcome));
        let simulated = runs.iter().filter_map(|r| r.1.as_ref());
        let simulator = simulated.clone().next().is_some().then(|| side(simulated));
        let ratio = simulator.map(|s| real.goodput_kbps.mean / s.goodput_kbps.mean);
        Row {
            case: *case,
            runs: runs.len(),
            real,
            simulator,
            ratio,
            within: ratio.map(|r| (r - 1.0).abs() <= TOLERANCE),
        }
    };
    runs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Transport;
    use super::*;

    fn outcome(goodputs: &[f64]) -> Outcome {
        Outcome {
            goodputs_kbps: goodputs.to_vec(),
            resent: 3,
            ..Outcome::default()
        }
    }

    fn real(goodputs: &[f64]) -> Real {
        Real {
            outcome: outcome(goodputs),
            hops: Vec::new(),
            failures: Vec::new(),
            tries: 0,
            overlapping: 0,
            not_acked: 0,
            refused: 0,
            latest_us: 0.0,
        }
    }

    #[test]
    fn within_or_not_and_whole_or_not() {
        let case = |transport| Case {
            transport,
            flows: 2,
            octets: 9,
        };
        let runs = BTreeMap::from([
            (
                case(Transport::Default),
                vec![
                    (real(&[100.0, 100.0]), Some(outcome(&[100.0, 110.0]))),
                    (real(&[120.0, 140.0]), Some(outcome(&[100.0, 110.0]))),
                ],
            ),
            (
                case(Transport::Adaptive),
                vec![(real(&[100.0, 0.0]), Some(outcome(&[100.0, 100.0])))],
            ),
            (case(Transport::Bbr), vec![(real(&[7.0, 7.0]), None)]),
        ]);
        let rows = table(&runs);
        let of = |n: usize| (rows[n].case.transport, rows[n].within, rows[n].is_whole());
        assert_eq!(of(0), (Transport::Default, Some(true), true));
        assert_eq!(of(1), (Transport::Adaptive, Some(false), false));
        assert_eq!(of(2), (Transport::Bbr, None, true));
        assert_eq!(
            (rows[0].real.goodput_kbps.mean, rows[0].real.resent.mean),
            (115.0, 3.0)
        );
        assert!((rows[0].ratio.unwrap() - 115.0 / 105.0).abs() < 1e-12);
        assert_eq!(rows[1].real.unfairness.mean, 1.0);
    }
}
