//! Broken scenarios and what is said about them; changes; the schema.

mod ad_hoc;
mod adapters;
mod admission;
mod backlog;
mod cells;
mod guard;
mod interrupts;
mod layers;
mod limits;
mod links;
mod ordered;
mod parameters;
mod paths;
mod promises;
mod roaming;
mod slots;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::run::{RunResult, run};

const GOOD: &str = r#"
[parameters]
nodes = "group.stations.count"

[run]
duration = "1s"

[[group]]
name = "ap"
protocol.beaconer = { interval = "100ms", rate = "6M", send = { rate = "24M" } }

[[group]]
name = "stations"
count = 3
placement.grid = { spacing_m = 5 }
channel = 36
ap = "ap"
protocol.sender = { rate = "24M", tries = 7 }

[[traffic]]
from = "stations"
to = "ap"
octets = 100
pattern.periodic = { period = "4ms" }

[[link]]
from = "stations.0"
to = "ap"
data.fixed = 0.1

[[incident]]
at = "100ms"
node = "ap"
what = "adapter_reset"
"#;

fn parse(text: &str, changes: &[&str]) -> Result<Scenario, ScenarioError> {
    let changes: Vec<Change> = changes.iter().map(|c| Change::parse(c).unwrap()).collect();
    Scenario::parse(Path::new("test.toml"), text, &changes)
}

/// What comes of a run of it with seed 1.
fn go(text: &str) -> RunResult {
    let scenario = parse(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1, None, &AtomicBool::new(false), |_| {})
        .unwrap()
        .result
}

/// The sentence about `good` with `from` replaced by `to`.
fn broken(good: &str, from: &str, to: &str) -> String {
    assert_eq!(good.matches(from).count(), 1, "{from:?} must be there once");
    match parse(&good.replacen(from, to, 1), &[]) {
        Ok(_) => panic!("{to:?} was accepted"),
        Err(e) => e.to_string(),
    }
}

/// What is replaced in a scenario, by what, and what the sentence about it says.
type Case<'c> = (&'c str, &'c str, &'c [&'c str]);

fn all_broken(good: &str, cases: &[Case<'_>]) {
    for (from, to, says) in cases {
        let sentence = broken(good, from, to);
        assert!(!sentence.contains('\n'), "{to}: {sentence}");
        assert!(sentence.starts_with("test.toml:"), "{to}: {sentence}");
        for part in *says {
            assert!(
                sentence.contains(part),
                "{to:?} gives {sentence:?}, without {part:?}"
            );
        }
    }
}

#[test]
fn a_good_one_is_accepted() {
    let s = parse(GOOD, &[]).unwrap();
    assert_eq!((s.nodes(), s.duration_ns(), s.flows()), (4, 1_000_000_000, 3));
    assert_eq!([s.node_name(0), s.node_name(2)], ["ap", "stations.1"]);
}

#[test]
fn broken_scenarios_get_one_sentence() {
    let cases: &[Case<'_>] = &[
        (
            "count = 3",
            "count = 0",
            &["test.toml:14:9", "0 is not a whole number from 1 to 10000"],
        ),
        (
            "count = 3",
            "count = 1_000_000_000",
            &["1000000000", "1 to 10000"],
        ),
        ("count = 3", "count = -1", &["-1 is not"]),
        ("count = 3", "count = 2.5", &["2.5 is not a whole number"]),
        ("count = 3", "count = \"three\"", &["14:9", "three"]),
        ("count = 3", "count = 10000", &["at most 10000 nodes", "10001"]),
        (
            "count = 3",
            "counts = 3",
            &["unknown key `counts`", "did you mean `count`"],
        ),
        (
            "duration = \"1s\"",
            "duration = \"-1s\"",
            &["test.toml:6:12", "\"-1s\" is not a duration"],
        ),
        (
            "duration = \"1s\"",
            "duration = \"1\"",
            &["\"1\" is not a duration", "ns, us, ms"],
        ),
        (
            "duration = \"1s\"",
            "duration = 1",
            &["6:12", "duration with its unit"],
        ),
        ("duration = \"1s\"", "duration = \"0s\"", &["longer than 0s"]),
        ("duration = \"1s\"", "duration = \"1e9h\"", &["to a year"]),
        (
            "duration = \"1s\"",
            "durration = \"1s\"",
            &["`durration`", "did you mean `duration`"],
        ),
        (
            "duration = \"1s\"",
            "duration = \"1s\"\nwarm_up = \"2s\"",
            &["within the warm-up of 2s"],
        ),
        (
            "duration = \"1s\"",
            "duration = \"50ms\"",
            &["100ms is after the end of the run, 50ms"],
        ),
        ("duration = \"1s\"", "", &["missing field `duration`"]),
        ("[run]", "[runs]", &["unknown key `runs`", "did you mean `run`"]),
        ("[run]", "[run", &["test.toml:5"]),
        (
            "channel = 36",
            "channel = 6",
            &["16:11", "802.11a has no channel 6", "32 to 177"],
        ),
        (
            "channel = 36",
            "channel = 36\nphy = \"c\"",
            &["unknown value `c`", "`g-long`"],
        ),
        ("channel = 36", "phy = \"b\"", &["802.11b has no rate 24M", "11M"]),
        (
            "channel = 36",
            "host = \"tabel5\"",
            &["no host profile \"tabel5\"", "table5"],
        ),
        (
            "channel = 36",
            "clock = { drift_ppm = 1, drift_within_ppm = 2 }",
            &["either"],
        ),
        (
            "channel = 36",
            "channel = 36\nrate_control = \"rsin\"",
            &["17:16", "`rsin` has keys of its own", "write { rsin = {} }"],
        ),
        (
            "channel = 36",
            "channel = 36\nredundancy.copies = 'proactive'",
            &["`proactive` wants a value of its own: write { proactive = ... }"],
        ),
        (
            "channel = 36",
            "queue.voic.aifsn = 2",
            &["unknown value `voic`", "`voice`"],
        ),
        (
            "channel = 36",
            "queue.voice.aifsn = 0",
            &["0 is not a whole number from 1 to 15"],
        ),
        (
            "rate = \"24M\", tries",
            "rate = \"25M\", tries",
            &["18:28", "\"25M\" is not a rate"],
        ),
        (
            "rate = \"24M\", tries",
            "rate = \"11M\", tries",
            &["802.11a has no rate 11M", "54M"],
        ),
        ("rate = \"24M\", tries", "rate = 24, tries", &["a rate"]),
        (
            "tries = 7",
            "tries = 0",
            &["0 is not a whole number from 1 to 255"],
        ),
        (
            "protocol.sender = ",
            "protocol.sendr = ",
            &["unknown value `sendr`", "did you mean `sender`"],
        ),
        ("ap = \"ap\"", "ap = \"pa\"", &["no node \"pa\"", "ap, stations"]),
        ("name = \"ap\"", "name = \"a.p\"", &["cannot be a name"]),
        ("name = \"ap\"", "name = \"stations\"", &["names must differ"]),
        (
            "interval = \"100ms\"",
            "interval = \"10us\"",
            &["10us is shorter than one frame", "6M"],
        ),
        (
            "period = \"4ms\"",
            "period = \"10us\"",
            &["24:31", "10us is shorter than one frame, which takes", "24M"],
        ),
        ("period = \"4ms\"", "period = \"\"", &["is not a duration"]),
        (
            "octets = 100",
            "octets = 10",
            &["10 is not a whole number from 24 to 2304"],
        ),
        ("octets = 100", "octets = 5000", &["24 to 2304"]),
        (
            "from = \"stations\"\n",
            "from = \"station\"\n",
            &["21:8", "did you mean \"stations\"?"],
        ),
        (
            "to = \"ap\"\noctets",
            "to = \"stations\"\noctets",
            &["is a group of 3 nodes", "`stations.0`"],
        ),
        (
            "to = \"ap\"\noctets",
            "to = \"stations.1\"\noctets",
            &["would send to itself"],
        ),
        (
            "to = \"ap\"\noctets",
            "to = \"stations.3\"\noctets",
            &["`stations.0` to `stations.2`"],
        ),
        (
            "to = \"ap\"\noctets",
            "to = \"neighbour:x\"\noctets",
            &["no salt"],
        ),
        (
            "from = \"stations.0\"",
            "from = \"stations.9\"",
            &["no node \"stations.9\""],
        ),
        (
            "data.fixed = 0.1",
            "data.fixed = 1.5",
            &["1.5 is not a number from 0 to 1"],
        ),
        (
            "data.fixed = 0.1",
            "data.trace = \"no.csv\"",
            &["cannot read no.csv"],
        ),
        (
            "data.fixed = 0.1",
            "data.gilbert_elliott = { good = \"0s\", bad = \"1s\" }",
            &["longer than 0s"],
        ),
        (
            "data.fixed = 0.1",
            "data.bernoulli = 0.1",
            &["unknown value `bernoulli`", "`fixed`"],
        ),
        (
            "what = \"adapter_reset\"",
            "what = \"reset\"",
            &["unknown value `reset`", "adapter_reset"],
        ),
        ("node = \"ap\"", "node = \"\"", &["no node \"\""]),
        (
            "grid = { spacing_m = 5 }",
            "grid = { spacing = 5 }",
            &["`spacing`", "did you mean `spacing_m`"],
        ),
        (
            "grid = { spacing_m = 5 }",
            "positions = [[0, 0]]",
            &["there are 1 positions for 3 nodes"],
        ),
        (
            "grid = { spacing_m = 5 }",
            "grid = { spacing_m = nan }",
            &["is not a number"],
        ),
    ];
    all_broken(GOOD, cases);
    assert!(
        parse("", &[])
            .unwrap_err()
            .to_string()
            .contains("missing field `run`")
    );
    let alone = parse("group = []\nrun.duration = \"1s\"", &[]).unwrap_err();
    assert!(alone.to_string().contains("no [[group]]"), "{alone}");
}

#[test]
fn changes_reach_any_value() {
    let count = |changes: &[&str]| parse(GOOD, changes).unwrap().nodes() - 1;
    assert_eq!(count(&["nodes=5"]), 5);
    assert_eq!(count(&["group.stations.count=6"]), 6);
    assert_eq!(count(&["group.1.count=7"]), 7);
    assert_eq!(count(&["nodes=5", "nodes=8"]), 8, "the last one counts");
    let s = parse(
        GOOD,
        &["run.duration=250ms", "group.ap.tx_dbm=10", "output.latency=false"],
    )
    .unwrap();
    assert_eq!(s.duration_ns(), 250_000_000);
    assert_eq!(s.file().group[0].tx_dbm, Some(units::Decibel(10.0)));
    let s = parse(GOOD, &["group.stations.placement={ line = { spacing_m = 2 } }"]).unwrap();
    assert!(matches!(
        s.file().group[1].placement,
        file::Placement::Line { .. }
    ));
    for (change, says) in [
        ("node=5", "did you mean `nodes`?"),
        ("nodes=none", "--set nodes=none: "),
        ("nodes=0", "from 1 to 10000"),
        ("run.durations=1s", "did you mean `duration`?"),
        ("grup.stations.count=1", "unknown key `grup`"),
        ("group.9.count=1", "there is no `9`"),
        ("group.stations.count.x=1", "there is no `x`"),
        ("traffic.0.to=nobody", "no node \"nobody\""),
    ] {
        let error = parse(GOOD, &[change]).unwrap_err().to_string();
        assert!(
            error.starts_with("--set ") && error.contains(says),
            "{change}: {error}"
        );
    }
}

#[test]
fn the_schema_knows_every_section() {
    let schema = schema();
    for section in [
        "run", "medium", "group", "schedule", "traffic", "link", "noise", "foreign", "incident", "output",
    ] {
        assert!(schema["properties"][section].is_object(), "{section}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn names_that_are_near() {
    use super::source::nearest;
    let words = ["duration", "warm_up", "seed"];
    let near = |w| nearest(w, words.iter().copied());
    assert_eq!(near("durration"), Some("duration"));
    assert_eq!(near("sed"), Some("seed"));
    assert_eq!(near("colour"), None);
}

/// A profile can be well-formed and still describe no host: the scenario says so, before it is run.
#[test]
fn host_profiles_without_a_model_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let good = sim::host::Profile::built_in("table5").unwrap().to_toml();
    let own = |component| {
        let mut profile = sim::host::Profile::built_in("table5").unwrap();
        profile.timer.sleep = component;
        profile.to_toml()
    };
    use sim::host::{Basis, Component, Knots, Source};
    let knots = |points| Component {
        basis: Basis::Assumed,
        source: Source::Knots(Knots {
            points,
            mean_ns: None,
        }),
    };
    let open = |profile: &str| {
        std::fs::write(dir.path().join("mine.toml"), profile).unwrap();
        let text = GOOD.replace("channel = 36", "channel = 36\nhost = \"mine.toml\"");
        Scenario::parse(&dir.path().join("test.toml"), &text, &[])
    };
    let line = 2 + GOOD[..GOOD.find("channel = 36").unwrap()].matches('\n').count();
    let mut share = sim::host::Profile::built_in("table4-baseline-io").unwrap();
    share.request.api.source = Source::Share(7.0);
    let huge = good.replacen("mean_us = 0.886", "mean_us = 1e30", 1);
    assert_ne!(huge, good);
    for (profile, says) in [
        (
            own(knots(vec![(0.0, -5.0), (1.0, 9.0)])),
            "timer.sleep: knot 1 is out of range",
        ),
        (
            own(knots(vec![(0.0, 9.0), (1.0, 5.0)])),
            "timer.sleep: knot 2 is below",
        ),
        (huge, "request.api: mean_us must be"),
        (share.to_toml(), "request: 7 is outside 0 to 1"),
    ] {
        let said = open(&profile).unwrap_err().to_string();
        assert!(said.contains(&format!("test.toml:{line}:8")), "{said}");
        assert!(said.contains("mine.toml: ") && said.contains(says), "{said}");
    }
    let measured = own(Component::measured(&mut [900, 1_000, 5_000]).unwrap());
    let scenario = open(&measured).unwrap();
    assert_eq!(scenario.hosts.iter().flatten().count(), 1);
    scenario.build(1);
}
