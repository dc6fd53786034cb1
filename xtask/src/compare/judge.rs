//! From the runs of both programs to verdicts.

use super::programs::Run;
use super::scenario::{Case, Tolerance};

/// A case and the runs it has had so far. `sdmac` has none where it could not be run.
pub(super) struct Outcome {
    /// What was run.
    pub case: Case,
    /// ns-3, by run number.
    pub ns3: Vec<Run>,
    /// `sdmac`, by run number.
    pub sdmac: Vec<Run>,
    /// Instructions of one run of `sdmac`.
    pub sdmac_instructions: Option<f64>,
    /// The simulator of `sdmac` with nothing around it, by run number.
    pub bare: Vec<Run>,
}

/// One metric of one case against one reference.
pub(super) struct Row {
    /// As [`Case::label`].
    pub case: String,
    /// Name of the metric.
    pub metric: &'static str,
    /// `ns-3`, or the name of a theory.
    pub reference: &'static str,
    /// The reference, by run; one value if it is a theory.
    pub theirs: Vec<f64>,
    /// `sdmac`, by run; empty if it was not run or did not report the metric each time.
    pub ours: Vec<f64>,
    /// How far they may differ.
    pub tolerance: Tolerance,
}

impl Row {
    /// How far `sdmac` is off, in the unit of the metric. A relative tolerance is for what scatters with the random numbers: the
    /// means are compared. An absolute one is for what follows from the traffic, which is the same in run k of both programs:
    /// of the differences run by run, the largest counts.
    pub(super) fn difference(&self) -> Option<f64> {
        let paired = self.ours.len() == self.theirs.len() && matches!(self.tolerance, Tolerance::Absolute(_));
        if !paired {
            return Some(mean(&self.ours)? - mean(&self.theirs)?);
        }
        let differences = self
            .ours
            .iter()
            .zip(&self.theirs)
            .map(|(ours, theirs)| ours - theirs);
        differences.max_by(|a, b| a.abs().total_cmp(&b.abs()))
    }

    fn is_within_spread(&self, share: f64) -> Option<bool> {
        let (ours, around) = (mean(&self.ours)?, share * mean(&self.theirs)?.abs());
        let (least, most) = least_and_most(&self.theirs);
        Some((least - around..=most + around).contains(&ours))
    }

    /// Whether that is near enough; none when the metric is not judged. What cannot be compared is not near.
    pub(super) fn ok(&self) -> Option<bool> {
        let allowed = match self.tolerance {
            Tolerance::Relative(share) => share * mean(&self.theirs).unwrap_or(f64::NAN).abs(),
            Tolerance::Absolute(allowed) => allowed,
            Tolerance::Spread(share) => return Some(self.is_within_spread(share).unwrap_or(false)),
            Tolerance::Shown => return None,
        };
        // half a unit in the tenth place: the means of equal values are equal
        Some(
            self.difference()
                .is_some_and(|difference| difference.abs() <= allowed + 5e-11),
        )
    }
}

/// Every metric of every case against ns-3, and against theory where there is one.
pub(super) fn rows(outcomes: &[Outcome]) -> Vec<Row> {
    let mut rows = Vec::new();
    for outcome in outcomes {
        for metric in outcome.case.scenario.metrics {
            let values = |runs: &[Run]| {
                runs.iter()
                    .map(|run| run.metric(metric.name))
                    .collect::<Option<Vec<f64>>>()
            };
            let ours = values(&outcome.sdmac).unwrap_or_default();
            let mut add = |reference, theirs, tolerance| {
                let case = outcome.case.label();
                rows.push(Row {
                    case,
                    metric: metric.name,
                    reference,
                    theirs,
                    ours: ours.clone(),
                    tolerance,
                });
            };
            add(
                "ns-3",
                values(&outcome.ns3).unwrap_or_default(),
                (metric.tolerance)(&outcome.case),
            );
            if let Some((name, value, tolerance)) = (metric.theory)(&outcome.case) {
                add(name, vec![value], tolerance);
            }
        }
    }
    rows
}

/// True if something was judged and nothing was refused.
pub(super) fn accepted(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.ok() != Some(false)) && rows.iter().any(|row| row.ok() == Some(true))
}

/// The ends of some values.
pub(super) fn least_and_most(values: &[f64]) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    values
        .iter()
        .fold(ends, |(least, most), x| (least.min(*x), most.max(*x)))
}

/// None of no values.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::scenario::SCENARIOS;
    use serde_json::json;

    fn outcome(ns3: &[f64], sdmac: &[f64]) -> Outcome {
        let runs = |values: &[f64]| {
            values
                .iter()
                .map(|mbps| Run::of(10.0, 1.0, 1000, json!({"throughput_mbps": mbps})))
                .collect()
        };
        Outcome {
            case: Case {
                scenario: &SCENARIOS[0],
                parameters: vec![("nodes", 10)],
                seconds: 10.0,
            },
            ns3: runs(ns3),
            sdmac: runs(sdmac),
            sdmac_instructions: None,
            bare: Vec::new(),
        }
    }

    fn row(tolerance: Tolerance, theirs: &[f64], ours: &[f64]) -> Row {
        let (theirs, ours) = (theirs.to_vec(), ours.to_vec());
        Row {
            case: String::new(),
            metric: "m",
            reference: "ns-3",
            theirs,
            ours,
            tolerance,
        }
    }

    #[test]
    fn means_are_compared_when_the_tolerance_is_relative() {
        let verdict = |ours: &[f64]| row(Tolerance::Relative(0.015), &[90.0, 110.0], ours).ok();
        assert_eq!(verdict(&[110.0, 93.0]), Some(true));
        assert_eq!(verdict(&[101.6, 101.6]), Some(false));
        assert_eq!(verdict(&[98.4]), Some(false));
        assert_eq!(verdict(&[f64::NAN]), Some(false));
    }

    #[test]
    fn runs_are_compared_one_by_one_when_it_is_absolute() {
        let verdict = |ours: &[f64]| row(Tolerance::Absolute(0.005), &[0.962, 0.984], ours).ok();
        assert_eq!(verdict(&[0.966, 0.980]), Some(true));
        // the same mean, but other runs
        assert_eq!(verdict(&[0.984, 0.962]), Some(false));
        assert_eq!(row(Tolerance::Absolute(0.0), &[34.0], &[34.0]).ok(), Some(true));
    }

    #[test]
    fn a_mean_lies_within_the_spread_of_the_others() {
        let verdict = |ours: &[f64]| row(Tolerance::Spread(0.01), &[90.0, 110.0], ours).ok();
        assert_eq!(verdict(&[80.0, 100.0]), Some(true));
        assert_eq!(verdict(&[89.1, 89.1]), Some(true));
        assert_eq!(verdict(&[111.0, 111.2]), Some(false));
        assert_eq!(verdict(&[]), Some(false));
        assert_eq!(verdict(&[f64::NAN]), Some(false));
    }

    #[test]
    fn what_is_only_shown_is_not_judged() {
        assert_eq!(row(Tolerance::Shown, &[1.0], &[2.0]).ok(), None);
        assert_eq!(row(Tolerance::Shown, &[1.0], &[2.0]).difference(), Some(1.0));
    }

    #[test]
    fn near_results_are_accepted() {
        let rows = rows(&[outcome(&[28.0, 28.1], &[28.2, 28.3])]);
        let verdicts: Vec<_> = rows.iter().map(|row| (row.reference, row.ok())).collect();
        // throughput, then collision probability, which these runs do not report and nobody judges
        assert_eq!(
            verdicts,
            [
                ("ns-3", Some(true)),
                ("Bianchi", Some(true)),
                ("ns-3", None),
                ("Bianchi", None)
            ]
        );
        assert!(accepted(&rows));
    }

    #[test]
    fn far_results_are_refused() {
        assert!(!accepted(&rows(&[outcome(&[28.0], &[27.5])])));
    }

    #[test]
    fn a_missing_program_or_metric_is_not_accepted() {
        assert!(!accepted(&rows(&[outcome(&[28.0], &[])])));
        let mut silent = outcome(&[28.0], &[28.0]);
        silent.sdmac.push(Run::of(10.0, 0.05, 2_048, json!({})));
        assert!(!accepted(&rows(&[silent])));
        assert!(!accepted(&rows(&[])));
    }
}
