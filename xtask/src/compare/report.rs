//! From the runs to what is printed: results side by side with a verdict, and the ratios of cost.

use serde_json::{Value, json};

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
}

/// One metric of one case against one reference.
pub(super) struct Row {
    case: String,
    metric: &'static str,
    reference: &'static str,
    theirs: Spread,
    ours: Option<Spread>,
    tolerance: Tolerance,
    /// None when the metric is not judged.
    ok: Option<bool>,
}

/// Least, mean and greatest of several values.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    mean: f64,
    most: f64,
}

impl Spread {
    /// None of no values.
    fn of(values: &[f64]) -> Option<Spread> {
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        Some(Spread {
            least,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            most,
        })
    }

    fn text(&self) -> String {
        if self.least == self.most {
            number(self.mean)
        } else {
            format!(
                "{} ({}..{})",
                number(self.mean),
                number(self.least),
                number(self.most)
            )
        }
    }

    fn json(&self) -> Value {
        json!({"least": self.least, "mean": self.mean, "most": self.most})
    }
}

/// Compares the means over the runs. A judged metric that `sdmac` does not report is not ok.
pub(super) fn rows(outcomes: &[Outcome]) -> Vec<Row> {
    let mut rows = Vec::new();
    for outcome in outcomes {
        for metric in outcome.case.scenario.metrics {
            let values = |runs: &[Run]| -> Vec<f64> {
                runs.iter().filter_map(|run| run.metric(metric.name)).collect()
            };
            let ours = values(&outcome.sdmac);
            let ours = if ours.len() == outcome.sdmac.len() {
                Spread::of(&ours)
            } else {
                None
            };
            let mut add = |reference, theirs: Spread, tolerance: Tolerance| {
                let ok = match ours {
                    Some(ours) => tolerance.accepts(ours.mean, theirs.mean),
                    None => (tolerance != Tolerance::Shown).then_some(false),
                };
                let case = outcome.case.label();
                rows.push(Row {
                    case,
                    metric: metric.name,
                    reference,
                    theirs,
                    ours,
                    tolerance,
                    ok,
                });
            };
            if let Some(theirs) = Spread::of(&values(&outcome.ns3)) {
                add("ns-3", theirs, (metric.tolerance)(&outcome.case));
            }
            if let Some((name, value, tolerance)) = (metric.theory)(&outcome.case) {
                add(
                    name,
                    Spread {
                        least: value,
                        mean: value,
                        most: value,
                    },
                    tolerance,
                );
            }
        }
    }
    rows
}

/// True if something was judged and nothing was refused.
pub(super) fn accepted(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.ok != Some(false)) && rows.iter().any(|row| row.ok == Some(true))
}

/// The results as a table.
pub(super) fn results(rows: &[Row]) -> String {
    let lines = rows.iter().map(|row| {
        let (ours, difference) = match row.ours {
            Some(ours) => (ours.text(), row.difference(ours.mean)),
            None => ("-".into(), "-".into()),
        };
        let allowed = match row.tolerance {
            Tolerance::Relative(share) => format!("{} %", number(share * 100.0)),
            Tolerance::Absolute(allowed) => number(allowed),
            Tolerance::Shown => String::new(),
        };
        let verdict = match (row.ok, row.ours) {
            (None, _) => "",
            (Some(true), _) => "ok",
            (Some(false), Some(_)) => "REFUSED",
            (Some(false), None) => "no value",
        };
        let reference = row.reference.to_owned();
        vec![
            row.case.clone(),
            row.metric.to_owned(),
            reference,
            row.theirs.text(),
            ours,
            difference,
            allowed,
            verdict.to_owned(),
        ]
    });
    table(
        &[
            "case",
            "metric",
            "reference",
            "value",
            "sdmac",
            "difference",
            "allowed",
            "verdict",
        ],
        lines,
    )
}

impl Row {
    fn difference(&self, ours: f64) -> String {
        let difference = ours - self.theirs.mean;
        match self.tolerance {
            Tolerance::Absolute(_) => format!("{difference:+.4}"),
            _ if self.theirs.mean == 0.0 => format!("{difference:+.4}"),
            _ => format!("{:+.2} %", 100.0 * difference / self.theirs.mean),
        }
    }

    fn json(&self) -> Value {
        let tolerance = match self.tolerance {
            Tolerance::Relative(share) => json!({"relative": share}),
            Tolerance::Absolute(allowed) => json!({"absolute": allowed}),
            Tolerance::Shown => Value::Null,
        };
        json!({
            "case": self.case, "metric": self.metric, "reference": self.reference, "value": self.theirs.json(),
            "sdmac": self.ours.map(|ours| ours.json()), "tolerance": tolerance, "ok": self.ok,
        })
    }
}

/// What one simulated second costs in one program.
struct Cost {
    cpu_s: Vec<f64>,
    instructions: Option<f64>,
    max_rss_mb: f64,
}

impl Cost {
    /// None of no runs.
    fn of(runs: &[Run], instructions: Option<f64>) -> Option<Cost> {
        let first = runs.first()?;
        let mut cpu_s: Vec<f64> = runs.iter().map(|run| run.cpu_s / run.simulated_s).collect();
        cpu_s.sort_by(f64::total_cmp);
        Some(Cost {
            cpu_s,
            instructions: instructions
                .or(first.instructions)
                .map(|count| count / first.simulated_s),
            max_rss_mb: runs.iter().map(|run| run.max_rss_kb).max()? as f64 / 1024.0,
        })
    }

    fn least(&self) -> f64 {
        self.cpu_s[0]
    }

    fn median(&self) -> f64 {
        let n = self.cpu_s.len();
        (self.cpu_s[(n - 1) / 2] + self.cpu_s[n / 2]) / 2.0
    }

    fn json(&self) -> Value {
        json!({
            "cpu_s_least": self.least(), "cpu_s_median": self.median(),
            "instructions": self.instructions, "max_rss_mb": self.max_rss_mb,
        })
    }
}

/// The costs of one simulated second as a table.
pub(super) fn costs(outcomes: &[Outcome]) -> String {
    let lines = outcomes.iter().filter_map(|outcome| {
        let ns3 = Cost::of(&outcome.ns3, None)?;
        let sdmac = Cost::of(&outcome.sdmac, outcome.sdmac_instructions);
        let both = |value: fn(&Cost) -> f64| match &sdmac {
            Some(sdmac) => format!("{} / {}", number(value(&ns3)), number(value(sdmac))),
            None => format!("{} / -", number(value(&ns3))),
        };
        let ratio = |value: fn(&Cost) -> Option<f64>| {
            let ratio = sdmac
                .as_ref()
                .and_then(|sdmac| Some(value(&ns3)? / value(sdmac)?));
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{} x", number(ratio)))
        };
        let goal = outcome.case.goal().map_or_else(String::new, |(cpu, memory)| {
            if memory > 1.0 {
                format!("CPU {cpu} x, memory {memory} x")
            } else {
                format!("CPU {cpu} x")
            }
        });
        Some(vec![
            outcome.case.label(),
            both(Cost::least),
            both(Cost::median),
            ratio(|cost| Some(cost.least())),
            ratio(|cost| Some(cost.median())),
            ratio(|cost| cost.instructions),
            both(|cost| cost.max_rss_mb),
            ratio(|cost| Some(cost.max_rss_mb)),
            goal,
        ])
    });
    let header = [
        "case",
        "CPU s, least",
        "CPU s, median",
        "CPU ratio, least",
        "median",
        "instructions ratio",
        "MB",
        "memory ratio",
        "goal",
    ];
    table(&header, lines)
}

/// Everything, for programs.
pub(super) fn json(outcomes: &[Outcome], rows: &[Row], trouble: Option<&str>, memory_floor_kb: u64) -> Value {
    let costs: Vec<Value> = outcomes
        .iter()
        .map(|outcome| {
            json!({
                "case": outcome.case.label(), "seconds": outcome.case.seconds, "runs": outcome.ns3.len(),
                "ns3": Cost::of(&outcome.ns3, None).map(|cost| cost.json()),
                "sdmac": Cost::of(&outcome.sdmac, outcome.sdmac_instructions).map(|cost| cost.json()),
            })
        })
        .collect();
    json!({
        "peer": "ns3", "ok": trouble.is_none() && accepted(rows), "trouble": trouble,
        "rows": rows.iter().map(Row::json).collect::<Vec<_>>(),
        "cost_of_one_simulated_second": costs, "memory_floor_kb": memory_floor_kb,
    })
}

/// Five digits, no zeros at the end.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let digits = 4 - value.abs().log10().floor().clamp(-8.0, 4.0) as i32;
    let text = format!("{value:.*}", digits.unsigned_abs() as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A Markdown table with aligned columns.
fn table(header: &[&str], lines: impl Iterator<Item = Vec<String>>) -> String {
    let mut lines: Vec<Vec<String>> = lines.collect();
    lines.insert(0, header.iter().map(|name| (*name).to_owned()).collect());
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    lines.insert(1, widths.iter().map(|&width| "-".repeat(width)).collect());
    let mut text = String::new();
    for line in lines {
        for (cell, width) in line.iter().zip(&widths) {
            text += &format!("| {cell:width$} ");
        }
        text += "|\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::scenario::SCENARIOS;

    fn outcome(ns3: &[f64], sdmac: &[f64]) -> Outcome {
        let run = |mbps: &f64, cpu_s, kb| Run::of(10.0, cpu_s, kb, json!({"throughput_mbps": mbps}));
        Outcome {
            case: Case {
                scenario: &SCENARIOS[0],
                parameters: vec![("nodes", 10)],
                seconds: 10.0,
            },
            ns3: ns3.iter().map(|mbps| run(mbps, 5.0 + mbps, 20_480)).collect(),
            sdmac: sdmac.iter().map(|mbps| run(mbps, 0.05, 2_048)).collect(),
            sdmac_instructions: None,
        }
    }

    #[test]
    fn near_results_are_accepted() {
        let rows = rows(&[outcome(&[28.0, 28.1], &[28.2, 28.3])]);
        // ns-3 and Bianchi for the throughput, Bianchi for the collision probability
        assert_eq!(
            rows.iter().map(|row| row.ok).collect::<Vec<_>>(),
            [Some(true), Some(true), None]
        );
        assert!(accepted(&rows));
        assert!(results(&rows).contains("| +0.71 %"), "{}", results(&rows));
    }

    #[test]
    fn far_results_are_refused() {
        let rows = rows(&[outcome(&[28.0], &[27.5])]);
        assert!(!accepted(&rows));
        assert!(results(&rows).contains("| REFUSED"));
    }

    #[test]
    fn a_missing_program_or_metric_is_not_accepted() {
        let absent = rows(&[outcome(&[28.0], &[])]);
        assert!(!accepted(&absent));
        assert!(results(&absent).contains("| no value"));
        let mut silent = outcome(&[28.0], &[28.0]);
        silent.sdmac.push(Run::of(10.0, 0.05, 2_048, json!({})));
        assert!(!accepted(&rows(&[silent])));
        assert!(!accepted(&rows(&[])));
    }

    #[test]
    fn ratios_of_cost() {
        let table = costs(&[outcome(&[20.0, 15.0, 25.0], &[20.0, 20.0, 20.0])]);
        let line: Vec<&str> = table.lines().nth(2).unwrap().split('|').map(str::trim).collect();
        assert_eq!(
            line[1..9],
            [
                "saturation nodes=10",
                "2 / 0.005",
                "2.5 / 0.005",
                "400 x",
                "500 x",
                "-",
                "20 / 2",
                "10 x"
            ]
        );
    }

    #[test]
    fn json_tells_the_trouble() {
        let outcomes = [outcome(&[28.0], &[28.0])];
        let rows = rows(&outcomes);
        assert_eq!(json(&outcomes, &rows, None, 0)["ok"], true);
        let told = json(&outcomes, &rows, Some("interrupted"), 0);
        assert_eq!(
            (&told["ok"], &told["trouble"]),
            (&json!(false), &json!("interrupted"))
        );
        assert_eq!(told["rows"][0]["tolerance"]["relative"], 0.015);
    }

    #[test]
    fn numbers_have_five_digits() {
        for (value, text) in [
            (0.0, "0"),
            (28.076_4, "28.076"),
            (103_804.7, "103805"),
            (0.999_712_34, "0.99971"),
            (0.000_123_456, "0.00012346"),
            (-1.5, "-1.5"),
            (10.0, "10"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
