//! A deployed node as a page: what it has come to, its files, and all that is needed to run it again.

use crate::record::{CONFIRMS, DELIVERIES, Recorded};
use crate::report::folder::{AIR, RESULT, TIMELINE};
use crate::report::html::{Report, Section};
use crate::report::significant;
use crate::run::page::{About, again, parameters, title};
use crate::scenario::Scenario;

use super::{Deployed, TAPE, Transcript};

/// The page of one node.
pub fn page(about: &About<'_>, scenario: &Scenario, done: &Deployed, transcript: &Transcript) -> Report {
    let mut sections = vec![numbers(done)];
    if let Some(sentence) = done.refusal() {
        let reasons = done.requests.refusals.iter();
        let pairs = reasons.map(|(reason, count)| (format!("{reason:?}"), count.to_string()));
        sections.push(
            Section::new("Refused")
                .paragraph(sentence)
                .values(pairs.collect::<Vec<_>>()),
        );
    }
    let of_slots = [
        done.distrust(),
        done.lateness(),
        done.unwatched.map(str::to_owned),
    ];
    let of_slots: Vec<String> = of_slots.into_iter().flatten().collect();
    if !of_slots.is_empty() {
        let section = Section::new("Slots");
        sections.push(of_slots.into_iter().fold(section, Section::paragraph));
    }
    sections.extend(parameters(about.description));
    sections.push(files(transcript));
    sections.push(again(about));
    Report {
        title: title(scenario, about),
        subtitle: format!(
            "{}, node {} on {}, {:.3} s, sdmac {}",
            about.file,
            done.node,
            done.addresses.join(", "),
            done.ran_ns as f64 / 1e9,
            env!("CARGO_PKG_VERSION")
        ),
        banner: None,
        sections,
        footer: if done.interrupted {
            "The run was stopped early: the numbers cover the time until then.".into()
        } else {
            String::new()
        },
    }
}

fn numbers(d: &Deployed) -> Section {
    let r = &d.requests;
    let mut pairs: Vec<(String, String)> = [
        ("sent", r.sent),
        ("acked", r.acked),
        ("not_acked", r.not_acked),
        ("refused", r.refused),
        ("aborted", r.aborted),
        ("expired", r.expired),
        ("unknown", r.unknown),
        ("received", r.received),
        ("submitted, measured", d.measured.submitted),
        ("delivered, measured", d.measured.delivered),
        ("confirms with all nine planes", d.all_planes),
    ]
    .map(|(name, n)| (name.to_owned(), n.to_string()))
    .into();
    if let Some(tries) = d.measured.tries {
        pairs.push(("tries, measured".to_owned(), tries.to_string()));
    }
    let times = [
        ("confirm", "us", &d.confirm_us),
        ("latency", "us", &d.measured.latency_us),
    ];
    for (name, unit, summary) in times {
        if let Some(s) = summary {
            for (which, value) in [("min", s.min), ("p50", s.p50), ("p99", s.p99), ("max", s.max)] {
                pairs.push((format!("{name}_{which}_{unit}"), significant(value)));
            }
        }
    }
    let mut section = Section::new("Result").values(pairs);
    if d.emulated {
        section = section.paragraph(linux::host::EMULATED);
    }
    match d.uncertified {
        Some(sentence) => section.paragraph(sentence),
        None => section,
    }
}

fn files(transcript: &Transcript) -> Section {
    let mut list = vec![(RESULT, "all numbers, for programs".to_owned())];
    let tape = match &transcript.replayed {
        Ok(r) => format!(
            "{} events, and {} actions that a fresh protocol repeats",
            r.events, r.actions
        ),
        Err(e) => format!("does not replay: {e}"),
    };
    list.push((TAPE, tape));
    let section = Section::new("Files");
    match &transcript.recorded {
        Some(Ok(Recorded {
            frames,
            confirms,
            deliveries,
            ..
        })) => {
            list.extend([
                (
                    AIR,
                    format!("{frames} frames that this node has sent or heard, for Wireshark"),
                ),
                (
                    TIMELINE,
                    "planes and protocol of this node, for ui.perfetto.dev".to_owned(),
                ),
                (CONFIRMS, format!("{confirms} confirms with their stamps")),
                (
                    DELIVERIES,
                    format!("{deliveries} deliveries, with their latency if the sender was on this computer"),
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
