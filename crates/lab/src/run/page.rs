//! A run as a page: what it has come to, latencies, confirms, the waterfall of the planes, counters, files, and all
//! that is needed to run it again.

mod measured;

use radio::Counters;

use measured::{confirms, latencies, waterfall};

use super::Run;
use super::counted::sum;
use crate::qualify::text::{count, percent};
use crate::record::{CONFIRMS, DELIVERIES};
use crate::report::folder::{AIR, RESULT, TIMELINE};
use crate::report::html::{Align, Report, Section, Table};
use crate::report::significant;
use crate::scenario::{Description, Scenario};

/// Entries of a table of nodes or traffic.
const ROWS: usize = 200;

/// What a page says besides the numbers.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The scenario file, as it was named.
    pub file: &'a str,
    /// How to get the page again.
    pub command: &'a str,
    /// What is in the scenario.
    pub description: &'a Description,
}

/// The page of one run.
pub fn page(about: &About<'_>, scenario: &Scenario, run: &Run) -> Report {
    let result = &run.result;
    let mut sections = vec![numbers(run)];
    sections.extend(parameters(about.description));
    sections.extend(latencies(run));
    sections.extend(confirms(run));
    sections.extend(waterfall(scenario, run));
    sections.push(counters(scenario, run));
    sections.push(files(run));
    sections.push(again(about));
    let shown = |ns: u64| crate::scenario::units::Time(ns).to_string();
    let mut subtitle = format!(
        "{}, {} nodes, {} simulated",
        about.file,
        count(scenario.nodes().into()),
        shown(scenario.duration_ns())
    );
    if scenario.warm_up_ns() > 0 {
        subtitle += &format!(", {} of it warm-up", shown(scenario.warm_up_ns()));
    }
    subtitle += &format!(", seed {}, sdmac {}", result.seed, env!("CARGO_PKG_VERSION"));
    Report {
        title: title(scenario, about),
        subtitle,
        banner: None,
        sections,
        footer: if result.interrupted {
            "The run was stopped early: the numbers cover the time until then.".into()
        } else {
            String::new()
        },
    }
}

/// What the scenario calls itself, or the name of its file.
pub fn title(scenario: &Scenario, about: &About<'_>) -> String {
    match scenario.file().title.as_str() {
        "" => about.file.to_owned(),
        title => title.to_owned(),
    }
}

fn numbers(run: &Run) -> Section {
    // confirms have a section of their own
    let metrics = run.result.metrics.iter();
    let metrics = metrics.filter(|(name, _)| !name.starts_with("confirms_"));
    let pairs = metrics.map(|(name, value)| ((*name).to_owned(), significant(*value)));
    let hash = [("trace_hash".to_owned(), run.result.trace_hash.clone())];
    let section = Section::new("Result").values(pairs.chain(hash));
    let clocks = run.result.clocks.iter();
    clocks.fold(section, |section, clocks| section.paragraph(format!("{clocks}.")))
}

/// The table of parameters, if there is one.
pub fn parameters(description: &Description) -> Option<Section> {
    if description.parameters.is_empty() {
        return None;
    }
    let mut table = Table::new(["name", "key", "value", ""].map(|c| (c, Align::Left)));
    for p in &description.parameters {
        table = table.row([
            p.name.clone(),
            p.key.clone(),
            p.value.clone().unwrap_or_else(|| "default".into()),
            if p.changed { "changed with --set" } else { "" }.into(),
        ]);
    }
    Some(Section::new("Parameters").table(table))
}

fn counters(scenario: &Scenario, run: &Run) -> Section {
    let columns = [
        "",
        "sent",
        "acked",
        "responses",
        "received",
        "with errors",
        "duplicates",
        "sending",
        "busy",
    ];
    let new = |caption: &str| {
        let head = columns.into_iter().enumerate().map(|(i, c)| (c, side(i, 1)));
        Table::new(head).caption(caption)
    };
    let mut table =
        new("By group; sending and busy are means over its adapters, in shares of the measured time");
    for (g, nodes) in run.result.groups.iter().zip(scenario.group_nodes()) {
        let own = &run.counters[nodes.start as usize..nodes.end as usize];
        let adapters = own.iter().map(Vec::len).sum();
        let name = match g.nodes {
            1 => g.name.clone(),
            n => format!("{} ({} nodes)", g.name, count(n.into())),
        };
        table = table.row(row(name, &sum(own.iter().flatten()), adapters, run.window_ns));
    }
    let mut section = Section::new("Counters").table(table);
    if run.counters.iter().map(Vec::len).sum::<usize>() == run.result.groups.len() {
        return section;
    }
    let mut table = new("By adapter");
    let mut rows = 0;
    for (node, own) in (0..).zip(&run.counters) {
        for (adapter, c) in own.iter().enumerate() {
            rows += 1;
            if rows <= ROWS {
                let name = match own.len() {
                    1 => scenario.node_name(node),
                    _ => format!("{}, adapter {adapter}", scenario.node_name(node)),
                };
                table = table.row(row(name, c, 1, run.window_ns));
            }
        }
    }
    section = section.table(table);
    left_out(section, rows)
}

fn row(name: String, c: &Counters, adapters: usize, window_ns: u64) -> Vec<String> {
    let whole_us = (window_ns as f64 / 1e3 * adapters as f64).max(1.0);
    vec![
        name,
        count(c.tx_frames),
        count(c.tx_acked),
        count(c.tx_responses),
        count(c.rx_frames),
        count(c.rx_errors),
        count(c.rx_duplicates),
        percent(c.tx_time_us as f64 / whole_us),
        percent(c.busy_time_us as f64 / whole_us),
    ]
}

fn files(run: &Run) -> Section {
    let mut list = vec![(RESULT, "all numbers, for programs".to_owned())];
    let section = Section::new("Files");
    match &run.recorded {
        Some(Ok(r)) => {
            let beyond = |n: u64| match n {
                0 => String::new(),
                n => format!("; {} more came after the limits of [output]", count(n)),
            };
            list.extend([
                (
                    AIR,
                    format!(
                        "{} frames on the air, for Wireshark{}",
                        count(r.frames),
                        beyond(r.frames_left_out)
                    ),
                ),
                (
                    TIMELINE,
                    format!(
                        "air, adapter, planes and protocol of each node, for ui.perfetto.dev{}",
                        beyond(r.items_left_out)
                    ),
                ),
                (
                    CONFIRMS,
                    format!("{} confirms with their stamps", count(r.confirms)),
                ),
                (
                    DELIVERIES,
                    format!("{} deliveries with their latency", count(r.deliveries)),
                ),
            ]);
            section.files(list)
        }
        Some(Err(e)) => section
            .files(list)
            .paragraph(format!("The recording is not complete: {e}.")),
        None => section.files(list),
    }
}

/// The command, and the scenario.
pub fn again(about: &About<'_>) -> Section {
    Section::new("Run it again")
        .verbatim(about.command)
        .paragraph(format!("{}, without the changes of --set:", about.file))
        .verbatim(about.description.text.trim_end())
}

/// The first columns hold words, the others numbers.
fn side(column: usize, words: usize) -> Align {
    if column < words { Align::Left } else { Align::Right }
}

fn left_out(section: Section, rows: usize) -> Section {
    if rows <= ROWS {
        return section;
    }
    let text = format!(
        "{} more rows are left out here; what was recorded of them is in the files.",
        count((rows - ROWS) as u64)
    );
    section.paragraph(text)
}
