//! What a measurement over an adapter leaves in a folder: the samples, Fig. 6 of SDMAC, and a page with both tables.

use std::io::Write;

use radio::{Outcome, Plane};

use super::table::{CONFIRM, HARDWARE, REQUEST, Row, SDMAC, Sorting};
use super::{Set, Taken};
use crate::report::Axis;
use crate::report::html::{Align, Report, Section, Table};
use crate::report::plot::{Chart, Figure, Series, Xy};
use crate::report::samples::{Cell, Column, Kind, ROWS_PER_GROUP, SampleWriter, SamplesError};
use crate::stats::Sorted;

/// Points of a CCDF for each factor of ten.
const PER_DECADE: u32 = 60;

/// Fig. 6: complementary distribution functions by outcome, each with the name of its file. Those without samples are left
/// out.
pub fn figures(load: &str, sorting: &Sorting) -> Vec<(String, Figure)> {
    let panels = [
        ("request", REQUEST),
        ("hardware", HARDWARE),
        ("confirm", CONFIRM),
        ("sdmac", SDMAC),
    ];
    let mut figures = Vec::new();
    for (file, span) in panels {
        let mut any = false;
        let mut plot = Xy::new(
            Axis::linear(format!("{} (µs)", span.0)),
            Axis::log("share above").range(1e-7, 1.0),
        );
        for set in [Set::Acked, Set::DataLost, Set::AckLost, Set::NotAcked] {
            let samples = Sorted::new(sorting.span(set, span));
            if !samples.is_empty() {
                any = true;
                plot = plot.series(Series::ccdf(set.name(), &samples.ccdf(PER_DECADE), 1e3));
            }
        }
        if any {
            let title = format!("{} by outcome, {load}", span.0);
            let figure = Figure::new(title, Chart::Xy(plot))
                .how_to_read("A: acked; L_D: data lost; L_A: ACK lost; L: not acked, and nobody said which.");
            figures.push((format!("fig6-{load}-{file}.svg"), figure));
        }
    }
    figures
}

/// The page of a measurement: `facts` in pairs, then for each load its rows, and its figures.
pub fn page(
    title: &str,
    facts: &[(&str, String)],
    notes: &[String],
    conditions: &[(&str, &Sorting)],
) -> Report {
    let mut first = Section::new("What was measured").values(facts.iter().map(|(k, v)| (*k, v.clone())));
    for note in notes {
        first = first.paragraph(note);
    }
    let mut sections = vec![first];
    for (load, sorting) in conditions {
        let right = |name| (name, Align::Right);
        let mut table = Table::new([
            ("set", Align::Left),
            ("what", Align::Left),
            ("planes", Align::Left),
            right("samples"),
            right("mean"),
            right("s"),
            right("min"),
            right("p99"),
            right("p99.9"),
            right("p99.99"),
            right("max"),
        ])
        .caption("Times in µs; a percentile that fewer than ten samples are beyond is left out.");
        for row in sorting.rows() {
            table = table.row(cells(&row));
        }
        let mut section = Section::new(format!("Load: {load}")).table(table);
        for (_, figure) in figures(load, sorting) {
            section = section.figure(figure);
        }
        sections.push(section);
    }
    Report {
        title: title.to_owned(),
        sections,
        ..Report::default()
    }
}

fn cells(row: &Row) -> Vec<String> {
    let us = |us: f64| format!("{us:.3}");
    let some = |value: Option<f64>| value.map_or("-".to_owned(), us);
    vec![
        row.set.name().to_owned(),
        row.what.to_owned(),
        row.planes.clone(),
        row.samples.to_string(),
        us(row.mean_us),
        us(row.sd_us),
        us(row.min_us),
        some(row.p99_us),
        some(row.p99_9_us),
        some(row.p99_99_us),
        us(row.max_us),
    ]
}

/// Writes all shots, those left out of the statistics included.
///
/// # Errors
/// [`SamplesError`].
pub fn samples<W: Write + Send>(to: W, taken: &[(&str, &Taken)]) -> Result<W, SamplesError> {
    let mut columns = vec![
        Column::new("load", Kind::Word),
        Column::new("number", Kind::U32),
        Column::new("outcome", Kind::Word),
        Column::new("attempts", Kind::U32),
        Column::optional("heard", Kind::Bool),
    ];
    columns.extend(Plane::ALL.map(|p| Column::optional(format!("{p}_ns"), Kind::U64)));
    let mut writer = SampleWriter::new(to, columns, &[], ROWS_PER_GROUP)?;
    for (load, taken) in taken {
        for shot in &taken.shots {
            let heard = taken.heard.as_ref().map(|heard| heard.has(shot.number));
            let mut cells = vec![
                Cell::Word(load),
                Cell::U32(shot.number),
                Cell::Word(word(shot.outcome)),
                Cell::U32(shot.attempts.into()),
                heard.map_or(Cell::Empty, Cell::Bool),
            ];
            let at = |p: Plane| {
                shot.stamps
                    .get_host(p)
                    .map_or(Cell::Empty, |t| Cell::U64(t.as_ns()))
            };
            cells.extend(Plane::ALL.map(at));
            writer.row(&cells)?;
        }
    }
    let (to, _) = writer.finish()?;
    Ok(to)
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Acked => "acked",
        Outcome::NotAcked => "not acked",
        Outcome::Refused(_) => "refused",
        Outcome::Aborted => "aborted",
        Outcome::Expired => "expired",
        Outcome::Unknown => "unknown",
    }
}
