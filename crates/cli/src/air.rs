//! `sdmac air`: a scenario as the air between the simulated radios of this kernel.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use lab::plan;
use lab::scenario::Scenario;
use lab::testbed::air::{self, Counts, Seating, Summary};
use serde::Serialize;

use crate::ui::{Failure, Ui};

/// Make a scenario the air between the radios of mac80211_hwsim, until Ctrl-C
///
/// Node k of the scenario is the k-th radio, or, where nodes have several adapters, adapter k. Positions, losses, interference, channel access, collisions and retries
/// are those of the simulator; what is sent is the affair of the kernel's stations, and the protocols and the traffic
/// of the scenario do not run. Needs CAP_NET_ADMIN, which a program in `sdmac lab run` has. Real radios are not touched.
/// When this ends, however it does, the kernel goes back to its own perfect air.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  sdmac air scenarios/hidden-nodes.toml
  sdmac air scenarios/gilbert-elliott.toml --seed 7 --json
  sdmac lab run --radios 3 -- sh -c 'sdmac air scenarios/hidden-nodes.toml & sleep 1; ...; kill -INT $!; wait'")]
pub struct Args {
    /// Scenario file, as for `sdmac run`
    scenario: PathBuf,
    /// Change a value: a short name that the scenario declares, or a dotted path
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    scenario: String,
    set: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    summary: &'a Summary,
    spare: &'a [String],
}

/// Runs the command.
pub fn main(args: &Args, ui: &Ui) -> Result<ExitCode, Failure> {
    let points = plan::grid(&args.set).map_err(Failure::input)?;
    let [changes] = &points[..] else {
        return Err(Failure::input(
            "--set has a list of values, and there is one air at a time: give one value",
        ));
    };
    let scenario = Scenario::open(&args.scenario, changes).map_err(Failure::input)?;
    let seed = args.seed.unwrap_or_else(|| scenario.seed());
    let mut spare = Vec::new();
    let ready = |seating: &Seating| {
        ui.tell(&seats(seating));
        spare.clone_from(&seating.spare);
    };
    let summary = air::run(&scenario, seed, ui.stop(), ready).map_err(Failure::on_the_way)?;
    ui.say(page(&summary))?;
    ui.answer(&Answer {
        scenario: args.scenario.display().to_string(),
        set: (changes.iter())
            .map(|c| (c.key.as_str(), c.value.as_str()))
            .collect(),
        summary: &summary,
        spare: &spare,
    })?;
    // Ctrl-C is how it ends
    Ok(ExitCode::SUCCESS)
}

/// Who is where, in a few sentences.
fn seats(seating: &Seating) -> String {
    let mut text = String::from("this is the air of the radios now; Ctrl-C ends it");
    for seat in &seating.nodes {
        let radio = match (&seat.radio, &seat.address) {
            (Some(radio), Some(address)) => format!("{radio} ({address})"),
            _ => "no radio: there are too few".to_owned(),
        };
        let _ = write!(text, "\n  {seat}: {radio}");
    }
    if !seating.spare.is_empty() {
        let spare = seating.spare.join(", ");
        let _ = write!(text, "\n  without a node, unheard and deaf: {spare}");
    }
    text
}

/// A title, and what stands below it.
type Column = (&'static str, fn(&Counts) -> u64);

fn page(summary: &Summary) -> String {
    let columns: [Column; 9] = [
        ("frames", |c| c.frames),
        ("acked", |c| c.acked),
        ("not acked", |c| c.not_acked),
        ("unasked", |c| c.unasked),
        ("refused", |c| c.refused),
        ("tries", |c| c.tries),
        ("overlapping", |c| c.overlapping),
        ("received", |c| c.received),
        ("not taken", |c| c.not_taken),
    ];
    let name = |n: &air::NodeSummary| match &n.seat.radio {
        Some(radio) => format!("{} ({radio})", n.seat),
        None => n.seat.to_string(),
    };
    let mut rows: Vec<(String, &Counts)> = summary.nodes.iter().map(|n| (name(n), &n.counts)).collect();
    rows.push(("all".to_owned(), &summary.total));
    let width = rows.iter().map(|r| r.0.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}", "");
    for (title, _) in columns {
        let _ = write!(text, "  {title:>11}");
    }
    for (name, counts) in rows {
        let _ = write!(text, "\n{name:width$}");
        for (_, of) in columns {
            let _ = write!(text, "  {:>11}", of(counts));
        }
    }
    let _ = write!(
        text,
        "\n{:.3} s with seed {}; {:.3} % of what the kernel was told came more than 100 us late, the latest {:.1} us",
        summary.seconds,
        summary.seed,
        summary.late_ratio * 100.0,
        summary.latest_us
    );
    if summary.total.refused > 0 {
        text += "\nRefused: a rate, channel or length that the scenario's adapter does not have (a phy of n2.4 or n5 has \
                 802.11n), or a full queue.";
    }
    if summary.overflows > 0 {
        let _ = write!(
            text,
            "\nThe kernel left frames out {} times because this computer was too slow.",
            summary.overflows
        );
    }
    if summary.strange_frames > 0 {
        let _ = write!(
            text,
            "\n{} frames came from radios without a node.",
            summary.strange_frames
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use air::{NodeSummary, Seat};

    fn seat(node: &str, radio: Option<&str>) -> Seat {
        Seat {
            node: node.into(),
            adapter: 0,
            radio: radio.map(str::to_owned),
            address: radio.map(|_| "02:00:00:00:00:00".into()),
        }
    }

    #[test]
    fn who_is_where() {
        let text = seats(&Seating {
            nodes: vec![seat("ap", Some("phy0")), seat("sta", None)],
            spare: vec!["phy1".into(), "phy2".into()],
        });
        assert!(text.contains("ap: phy0 (02:00:00:00:00:00)") && text.contains("sta: no radio"));
        assert!(text.contains("phy1, phy2"));
    }

    #[test]
    fn a_summary_says_what_went_wrong() {
        let counts = Counts {
            frames: 3,
            refused: 1,
            ..Counts::default()
        };
        let text = page(&Summary {
            seed: 7,
            seconds: 1.5,
            total: counts,
            nodes: vec![NodeSummary {
                seat: seat("ap", Some("phy0")),
                counts,
            }],
            strange_frames: 2,
            latest_us: 0.5,
            late_ratio: 0.0,
            overflows: 4,
        });
        assert!(text.contains("ap (phy0)") && text.contains("seed 7") && text.contains("Refused"));
        assert!(text.contains("4 times") && text.contains("2 frames came from"));
    }
}
