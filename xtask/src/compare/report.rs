//! What is printed: results side by side with their verdicts, and costs with their ratios.

use serde_json::{Value, json};

use super::judge::{Outcome, Row, accepted, least_and_most, mean};
use super::programs::Run;
use super::scenario::{Program, Tolerance};

/// The results as a table.
pub(super) fn results(rows: &[Row]) -> String {
    let lines = rows.iter().map(|row| {
        let allowed = match row.tolerance {
            Tolerance::Relative(share) => format!("{} %", number(share * 100.0)),
            Tolerance::Absolute(allowed) => number(allowed),
            Tolerance::Spread(share) => format!("spread + {} %", number(share * 100.0)),
            Tolerance::Shown => String::new(),
        };
        let verdict = match row.ok() {
            None => "",
            Some(true) => "ok",
            Some(false) if row.ours.is_empty() => "no value",
            Some(false) => "REFUSED",
        };
        vec![
            row.case.clone(),
            row.metric.to_owned(),
            row.reference.to_owned(),
            spread(&row.theirs),
            spread(&row.ours),
            difference(row),
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

/// Mean, least and greatest.
fn spread(values: &[f64]) -> String {
    let Some(mean) = mean(values) else {
        return "-".into();
    };
    let (least, most) = least_and_most(values);
    if least == most {
        number(mean)
    } else {
        format!("{} ({}..{})", number(mean), number(least), number(most))
    }
}

/// In per cent of the reference, unless the tolerance is absolute.
fn difference(row: &Row) -> String {
    match (row.difference(), row.tolerance, mean(&row.theirs)) {
        (None, _, _) => "-".into(),
        (
            Some(difference),
            Tolerance::Relative(_) | Tolerance::Spread(_) | Tolerance::Shown,
            Some(reference),
        ) if reference != 0.0 => {
            format!("{:+.2} %", 100.0 * difference / reference)
        }
        (Some(difference), _, _) => format!("{difference:+.4}"),
    }
}

/// What one simulated second costs in one program.
struct Cost {
    /// By run, sorted.
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

/// The costs of one simulated second as a table: for each case a line for `sdmac run` and one for the simulator alone.
pub(super) fn costs(outcomes: &[Outcome]) -> String {
    let mut lines = Vec::new();
    for outcome in outcomes {
        let Some(ns3) = Cost::of(&outcome.ns3, None) else {
            continue;
        };
        let whole = Cost::of(&outcome.sdmac, outcome.sdmac_instructions);
        let program = match outcome.case.scenario.program {
            Program::Sdmac => "sdmac run",
            Program::Example(name) => name,
        };
        lines.push(cost_line(outcome, program, &ns3, whole.as_ref()));
        if let Some(bare) = Cost::of(&outcome.bare, None) {
            lines.push(cost_line(outcome, "bare", &ns3, Some(&bare)));
        }
    }
    let header = [
        "case",
        "program",
        "CPU s, least",
        "CPU s, median",
        "CPU ratio, least",
        "CPU ratio, median",
        "instructions ratio",
        "MB",
        "memory ratio",
        "goal",
    ];
    table(&header, lines.into_iter())
}

fn cost_line(outcome: &Outcome, program: &str, ns3: &Cost, ours: Option<&Cost>) -> Vec<String> {
    let both = |value: fn(&Cost) -> f64| {
        let ours = ours.map_or_else(|| "-".into(), |ours| number(value(ours)));
        format!("{} / {ours}", number(value(ns3)))
    };
    let ratio = |value: fn(&Cost) -> Option<f64>| {
        let ratio = ours.and_then(|ours| Some(value(ns3)? / value(ours)?));
        ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{} x", number(ratio)))
    };
    // by the medians: the least of one program may have met a quieter moment than that of the other
    let reached = |value: fn(&Cost) -> f64, wanted: f64| {
        let met = ours.is_some_and(|ours| value(ns3) / value(ours) >= wanted);
        if met { "met" } else { "missed" }
    };
    let cpu = |wanted| format!("CPU {wanted} x {}", reached(Cost::median, wanted));
    let memory = |wanted| format!("memory {wanted} x {}", reached(|cost| cost.max_rss_mb, wanted));
    let goal = match outcome.case.goal() {
        None => String::new(),
        Some((c, None)) => cpu(c),
        Some((c, Some(m))) => format!("{}, {}", cpu(c), memory(m)),
    };
    vec![
        outcome.case.label(),
        program.to_owned(),
        both(Cost::least),
        both(Cost::median),
        ratio(|cost| Some(cost.least())),
        ratio(|cost| Some(cost.median())),
        ratio(|cost| cost.instructions),
        both(|cost| cost.max_rss_mb),
        ratio(|cost| Some(cost.max_rss_mb)),
        goal,
    ]
}

/// Everything, for programs.
pub(super) fn json(outcomes: &[Outcome], rows: &[Row], trouble: &[String], memory_floor_kb: u64) -> Value {
    let row = |row: &Row| {
        let tolerance = match row.tolerance {
            Tolerance::Relative(share) => json!({"relative": share}),
            Tolerance::Absolute(allowed) => json!({"absolute": allowed}),
            Tolerance::Spread(share) => json!({"spread": share}),
            Tolerance::Shown => Value::Null,
        };
        json!({
            "case": row.case, "metric": row.metric, "reference": row.reference, "value": row.theirs, "sdmac": row.ours,
            "difference": row.difference(), "tolerance": tolerance, "ok": row.ok(),
        })
    };
    let cost = |outcome: &Outcome| {
        json!({
            "case": outcome.case.label(), "seconds": outcome.case.seconds, "runs": outcome.ns3.len(),
            "ns3": Cost::of(&outcome.ns3, None).map(|cost| cost.json()),
            "sdmac": Cost::of(&outcome.sdmac, outcome.sdmac_instructions).map(|cost| cost.json()),
            "bare": Cost::of(&outcome.bare, None).map(|cost| cost.json()),
        })
    };
    json!({
        "peer": "ns3", "ok": trouble.is_empty() && accepted(rows), "trouble": trouble,
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
        "cost_of_one_simulated_second": outcomes.iter().map(cost).collect::<Vec<_>>(),
        "memory_floor_kb": memory_floor_kb,
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
    use crate::compare::judge::rows;
    use crate::compare::scenario::{Case, SCENARIOS};

    fn outcome(ns3: &[f64], sdmac: &[f64]) -> Outcome {
        let run = |mbps: &f64, cpu_s, kb| Run::of(10.0, cpu_s, kb, json!({"throughput_mbps": mbps}));
        Outcome {
            case: Case {
                scenario: &SCENARIOS[0],
                parameters: vec![("nodes", 10)],
                seconds: 10.0,
            },
            ns3: ns3.iter().map(|mbps| run(mbps, mbps - 3.0, 20_480)).collect(),
            sdmac: sdmac.iter().map(|mbps| run(mbps, 0.05, 2_048)).collect(),
            sdmac_instructions: None,
            bare: sdmac.iter().map(|mbps| run(mbps, 0.04, 1_024)).collect(),
        }
    }

    fn cells(table: &str, line: usize) -> Vec<&str> {
        table
            .lines()
            .nth(line)
            .unwrap()
            .trim_matches('|')
            .split('|')
            .map(str::trim)
            .collect()
    }

    #[test]
    fn results_and_verdicts() {
        let near = results(&rows(&[outcome(&[28.0, 28.1], &[28.2, 28.3])]));
        assert_eq!(
            cells(&near, 2)[1..],
            [
                "throughput_mbps",
                "ns-3",
                "28.05 (28..28.1)",
                "28.25 (28.2..28.3)",
                "+0.71 %",
                "1.5 %",
                "ok"
            ]
        );
        assert_eq!(
            cells(&near, 3)[2..],
            ["Bianchi", "28.215", "28.25 (28.2..28.3)", "+0.12 %", "2 %", "ok"]
        );
        assert_eq!(
            cells(&results(&rows(&[outcome(&[28.0], &[27.5])])), 2)[7],
            "REFUSED"
        );
        assert_eq!(
            cells(&results(&rows(&[outcome(&[28.0], &[])])), 2)[4..],
            ["-", "-", "1.5 %", "no value"]
        );
    }

    #[test]
    fn ratios_of_cost() {
        let table = costs(&[outcome(&[28.0, 23.0, 33.0], &[28.0, 28.0, 28.0])]);
        assert_eq!(
            cells(&table, 2),
            [
                "saturation nodes=10",
                "sdmac run",
                "2 / 0.005",
                "2.5 / 0.005",
                "400 x",
                "500 x",
                "-",
                "20 / 2",
                "10 x",
                "CPU 100 x met"
            ]
        );
        assert_eq!(
            cells(&table, 3)[1..5],
            ["bare", "2 / 0.004", "2.5 / 0.004", "500 x"]
        );
    }

    #[test]
    fn json_tells_the_trouble() {
        let outcomes = [outcome(&[28.0], &[28.0])];
        let rows = rows(&outcomes);
        assert_eq!(json(&outcomes, &rows, &[], 0)["ok"], true);
        let told = json(&outcomes, &rows, &["interrupted".into()], 0);
        assert_eq!(
            (&told["ok"], &told["trouble"]),
            (&json!(false), &json!(["interrupted"]))
        );
        assert_eq!(told["rows"][0]["tolerance"]["relative"], 0.015);
        assert_eq!(told["rows"][0]["sdmac"], json!([28.0]));
        assert_eq!(told["cost_of_one_simulated_second"][0]["ns3"]["cpu_s_least"], 2.5);
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
