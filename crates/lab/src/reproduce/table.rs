//! The rows as a table: as text of at most 120 columns, and as a page.

use std::fmt::{self, Write as _};

use super::claims::Kind;
use super::plan::Measured;
use super::rows::{Number, Reproduction, Row, Verdict};
use crate::report::html::{Align, Banner, Cell, Report, Section, Table};
use crate::report::significant;
use crate::stats;

/// Columns of the text.
const WIDTH: usize = 120;

/// The table as text: all values that are judged, and those that disagree with the reason.
impl fmt::Display for Reproduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut place = "";
        for row in &self.rows {
            if row.claim.place != place {
                place = &row.claim.place;
                writeln!(f, "\n{place}")?;
            }
            write_row(f, row)?;
        }
        writeln!(f)?;
        write_wrapped(f, &self.summary())
    }
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
    let claim = &row.claim;
    let judged: Vec<&Number> = row.numbers.iter().filter(|n| !n.tolerance.is_empty()).collect();
    let title = format!("  {:5} {}", claim.id, claim.what);
    writeln!(
        f,
        "{}  {:<11} {}",
        fill(&title, WIDTH - 25),
        claim.kind.word(),
        row.verdict().word()
    )?;
    for n in judged {
        let [paper, ours] = [n.paper, n.ours.map(|o| o.value)].map(|x| x.map_or("-".into(), decimals));
        let name = format!("        {} {}", n.name, n.unit);
        writeln!(
            f,
            "{} {paper:>12} {ours:>12} {:<10} {:<14} {:<11} {}",
            fill(&name, 44),
            error(n),
            n.tolerance,
            n.kind.word(),
            n.verdict.word()
        )?;
    }
    for name in row.contradictions() {
        write_wrapped(
            f,
            &format!("{name}: the simulation rules out the value that was computed"),
        )?;
    }
    for (name, why) in row.explanations() {
        write_wrapped(f, &format!("{name}: {why}"))?;
    }
    // an aim that was missed is wrong without excuse, and says why
    if claim.kind == Kind::Ours && !row.verdict().is_ok() {
        write_wrapped(f, &claim.note)?;
    }
    if row.numbers.iter().all(|n| n.verdict == Verdict::NotJudged) {
        for n in &row.numbers {
            let ours = n.ours.map_or("-".into(), |o| decimals(o.value));
            let paper = n.paper.map_or("-".into(), decimals);
            let name = format!("        {} {}", n.name, n.unit);
            writeln!(f, "{} {paper:>12} {ours:>12}", fill(&name, 44))?;
        }
        write_wrapped(f, &claim.note)?;
    }
    Ok(())
}

/// Text with spaces up to a width; longer text goes on past it.
fn fill(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// Text in lines, indented below the values.
fn write_wrapped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH - 10 {
            writeln!(f, "        {line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if line.is_empty() {
        Ok(())
    } else {
        writeln!(f, "        {line}")
    }
}

/// Half of the interval of ours, "± 0.001"; empty if there is none or it has no width.
fn error(n: &Number) -> String {
    match n.ours {
        Some(o) if !o.is_bounded() => "unbounded".to_string(),
        Some(o) if o.high > o.low => format!("± {}", decimals((o.high - o.low) / 2.0)),
        _ => String::new(),
    }
}

/// A number with the decimals of the paper's tables; very small ones with their digits.
fn decimals(x: f64) -> String {
    if x == 0.0 || (x.fract() == 0.0 && x.abs() < 1e12) {
        format!("{x:.0}")
    } else if x.abs() < 0.000_5 {
        format!("{x:.1e}")
    } else if x.abs() < 0.1 {
        format!("{x:.5}")
    } else if x.abs() < 10_000.0 {
        format!("{x:.3}")
    } else {
        format!("{x:.0}")
    }
}

impl Reproduction {
    /// How many values came out how, those that were predicted first.
    pub fn summary(&self) -> String {
        let n = |v| self.count(v);
        let named = self.verdicts.named();
        let told: usize = named.iter().map(|(_, tally)| tally.told()).sum();
        let within: Vec<String> = named
            .iter()
            .filter(|(_, tally)| tally.told() > 0)
            .map(|(name, tally)| format!("{name} {} of {}", tally.within, tally.told()))
            .collect();
        let mut text = format!("{} rows, {told} values judged.", self.rows.len());
        if !within.is_empty() {
            let _ = write!(text, " Within tolerance: {}.", within.join(", "));
        }
        let _ = write!(
            text,
            " Outside: {} at the edge, {} explained, {} wrong. {} cannot be told from so few samples, {} are missing. \
             {} transmissions simulated.",
            n(Verdict::Edge),
            n(Verdict::Explained),
            n(Verdict::Wrong),
            n(Verdict::TooFew),
            n(Verdict::Missing),
            self.transmissions
        );
        if !self.complete {
            text.push_str(" Stopped early: what is missing was not run.");
        }
        text
    }

    /// The page: all rows with all values, notes and figures. `time` says how long it took.
    pub fn page(&self, measured: &Measured, time: &str) -> Report {
        let mut plots = Section::new("Figures 5 and 6");
        for (_, figure) in super::figures(measured) {
            plots = plots.figure(figure);
        }
        let paper = "Does the SDMAC paper come out again?";
        self.page_of(paper, "Cena, Scanzio, Valenzano 2018", Some(plots), time)
    }

    /// The page of a paper with this title and these plots.
    pub fn page_of(&self, title: &str, paper: &str, plots: Option<Section>, time: &str) -> Report {
        let verdict = match (self.ok, self.complete) {
            (true, _) => stats::Verdict::Pass,
            (false, true) => stats::Verdict::Fail,
            (false, false) => stats::Verdict::Undecided,
        };
        let mut sections = Vec::new();
        for rows in self.rows.chunk_by(|a, b| a.claim.place == b.claim.place) {
            let mut section = Section::new(rows[0].claim.place.as_str());
            section = section.table(page_table(rows));
            for row in rows {
                if !row.claim.note.is_empty() {
                    section = section.paragraph(format!("{}: {}", row.claim.id, row.claim.note));
                }
                for (name, why) in row.explanations() {
                    section = section.paragraph(format!("{} {name} disagrees: {why}", row.claim.id));
                }
            }
            sections.push(section);
        }
        sections.splice(0..0, plots);
        Report {
            title: title.into(),
            subtitle: format!(
                "{paper}; seed {}, {}; sdmac {}",
                self.seed,
                time,
                env!("CARGO_PKG_VERSION")
            ),
            banner: Some(Banner {
                verdict,
                text: self.summary(),
            }),
            sections,
            footer:
                "Intervals: 99.9 %, from the number of samples alone. A value is at the edge if it lies outside \
                     of the accepted range and its interval meets it. Predicted are the values of kind emergent. \
                     Sums without an interval were computed, and the simulation agrees with them."
                    .into(),
        }
    }
}

fn page_table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        ("row", Align::Left),
        ("claim", Align::Left),
        ("kind", Align::Left),
        ("unit", Align::Left),
        ("paper", Align::Right),
        ("ours", Align::Right),
        ("interval", Align::Left),
        ("tolerance", Align::Left),
        ("verdict", Align::Centre),
    ]);
    for row in rows {
        let what = &row.claim.what;
        if row.numbers.is_empty() {
            let mut cells: Vec<Cell> = vec![row.claim.id.as_str().into(), what.as_str().into()];
            cells.push(row.claim.kind.word().into());
            cells.extend((0..5).map(|_| Cell::from("")));
            cells.push(Verdict::NotJudged.word().into());
            table = table.row(cells);
        }
        for n in &row.numbers {
            let number = |x: Option<f64>| Cell::from(x.map_or("-".into(), decimals));
            let word = n.verdict.word();
            let cell = match n.verdict {
                Verdict::NotJudged => Cell::from("-"),
                Verdict::Ok => Cell::judged(word, stats::Verdict::Pass),
                Verdict::Edge | Verdict::Explained | Verdict::TooFew | Verdict::Missing => {
                    Cell::judged(word, stats::Verdict::Undecided)
                }
                Verdict::Wrong => Cell::judged(word, stats::Verdict::Fail),
            };
            let interval = match n.ours {
                Some(o) if o.high > o.low => format!("{} to {}", significant(o.low), significant(o.high)),
                _ => String::new(),
            };
            table = table.row([
                row.claim.id.as_str().into(),
                Cell::from(format!("{what}: {}", n.name)),
                n.kind.word().into(),
                n.unit.as_str().into(),
                number(n.paper),
                number(n.ours.map(|o| o.value)),
                interval.into(),
                n.tolerance.as_str().into(),
                cell,
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_decimals_of_the_paper() {
        let shown = [42.483, 96.0, 1.6e-4, 0.012_34, 12_091_189.4, -0.5, 0.0].map(decimals);
        assert_eq!(
            shown,
            ["42.483", "96", "1.6e-4", "0.01234", "12091189", "-0.500", "0"]
        );
    }
}
