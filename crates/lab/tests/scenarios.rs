//! Every scenario of the project runs, for a short time, and gives the numbers of its snapshot.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lab::scenario::{Change, Scenario};
use serde_json::Value;

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn each_gives_the_numbers_of_its_snapshot() {
    let change = |text| Change::parse(text).unwrap();
    let short = [change("duration=400ms")];
    let shorter = [change("duration=400ms"), change("run.warm_up=200ms")];
    let names: Vec<_> = scenarios();
    assert!(names.len() >= 10, "{names:?}");
    for path in names {
        // some warm up for longer than that
        let scenario = Scenario::open(&path, &short).or_else(|_| Scenario::open(&path, &shorter));
        let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
        let go = || {
            lab::run::run(&scenario, 1, None, &AtomicBool::new(false), |_| {})
                .unwrap()
                .result
        };
        let result = go();
        assert_eq!(result, go(), "the same seed gives the same run");
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        // nine digits: the last ones of transcendental functions are nobody's promise
        let numbers: Vec<String> = (result.metrics.iter())
            .map(|(name, value)| format!("{name} = {value:.9}"))
            .collect();
        insta::assert_snapshot!(name, numbers.join("\n"));
    }
}

#[test]
fn each_opens_with_a_comment_that_teaches() {
    for path in scenarios() {
        let text = std::fs::read_to_string(&path).unwrap();
        let comment: String = text.lines().take_while(|l| l.starts_with('#')).collect();
        assert!(
            comment.contains("What to see:") && comment.contains("Try:"),
            "{} does not say what to see and what to try",
            path.display()
        );
    }
}

#[test]
fn each_fits_the_schema() {
    let schema = lab::scenario::schema();
    for path in scenarios() {
        let text = std::fs::read_to_string(&path).unwrap();
        let value: Value = toml::from_str(&text).unwrap();
        if let Err(e) = fits(&schema, &schema, &value) {
            panic!("{}: {e}", path.display());
        }
        let mut odd = value.clone();
        odd["run"]["duration"] = 5.into();
        assert!(fits(&schema, &schema, &odd).is_err(), "a number is no duration");
        odd["run"]["duration"] = "5s".into();
        odd["run"]["durations"] = "5s".into();
        assert!(fits(&schema, &schema, &odd).is_err(), "there is no such key");
    }
}

/// The part of JSON Schema (2020-12) that the schema of scenarios uses; other keywords than annotations are an error.
fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let Value::Object(schema) = schema else {
        return if schema == &Value::Bool(false) {
            Err(format!("{value} is not allowed"))
        } else {
            Ok(())
        };
    };
    for (keyword, rule) in schema {
        let list = || rule.as_array().unwrap();
        let fine = match keyword.as_str() {
            "$ref" => {
                let target = root
                    .pointer(rule.as_str().unwrap().trim_start_matches('#'))
                    .unwrap();
                fits(root, target, value)?;
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|t| is(t, value)),
                one => is(one, value),
            },
            "properties" => {
                for (key, part) in rule.as_object().unwrap() {
                    if let Some(inner) = value.get(key) {
                        fits(root, part, inner).map_err(|e| format!("{key}: {e}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Value::as_object);
                let others = value.as_object().into_iter().flatten();
                for (key, inner) in others.filter(|(k, _)| !known.is_some_and(|p| p.contains_key(*k))) {
                    fits(root, rule, inner).map_err(|e| format!("{key}: {e}"))?;
                }
                true
            }
            "required" => list().iter().all(|k| value.get(k.as_str().unwrap()).is_some()),
            "items" => {
                for inner in value.as_array().into_iter().flatten() {
                    fits(root, rule, inner)?;
                }
                true
            }
            "minItems" => value
                .as_array()
                .is_none_or(|a| a.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value
                .as_array()
                .is_none_or(|a| a.len() as u64 <= rule.as_u64().unwrap()),
            "oneOf" => list().iter().filter(|s| fits(root, s, value).is_ok()).count() == 1,
            "anyOf" => list().iter().any(|s| fits(root, s, value).is_ok()),
            "allOf" => list().iter().all(|s| fits(root, s, value).is_ok()),
            "enum" => list().contains(value),
            "const" => rule == value,
            "minimum" => value.as_f64().is_none_or(|x| x >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|x| x <= rule.as_f64().unwrap()),
            "pattern" | "format" => true, // patterns are for editors
            "$schema" | "$defs" | "title" | "description" | "default" => true,
            other => panic!("the schema uses {other}, which this test does not know"),
        };
        if !fine {
            return Err(format!("{value} breaks {keyword} {rule}"));
        }
    }
    Ok(())
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|x| x.fract() == 0.0),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("{other}"),
    }
}

/// A whole number, as pages have it.
fn count(n: f64) -> String {
    lab::qualify::count(n as u64)
}

/// Pages and comments tell of scenarios what `sdmac run` says of them.
#[test]
fn pages_tell_what_the_scenarios_give() {
    type Tell = fn(&dyn Fn(&str) -> f64) -> String;
    let all: [(&str, &str, Tell); 4] = [
        ("cells.toml", "docs/src/tbmac.md", |of| {
            format!(
                "In 40 s {} of {} messages are delivered, a message goes over a border {} times",
                count(of("delivered")),
                count(of("submitted")),
                count(of("cells_crossed"))
            )
        }),
        ("tbmac.toml", "docs/src/tbmac.md", |of| {
            format!(
                "{} of {} deliveries happen, none later than {:.2} ms",
                count(of("delivered")),
                count(9.0 * of("submitted")),
                of("latency_max_us") / 1_000.0
            )
        }),
        ("redundant-slots.toml", "scenarios/redundant-slots.toml", |of| {
            format!(
                "{} of {} messages arrive",
                count(of("delivered")),
                count(of("submitted"))
            )
        }),
        ("tdma.toml", "docs/src/tdma.md", |of| {
            format!(
                "all of {} messages arrive in 20 s, nothing collides, and no message takes longer than {:.2} ms",
                count(of("delivered")),
                of("latency_max_us") / 1_000.0
            )
        }),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut wrong = Vec::new();
    for (file, page, tell) in all {
        let scenario = Scenario::open(&root.join("scenarios").join(file), &[]).unwrap();
        let result = lab::run::run(&scenario, 1, None, &AtomicBool::new(false), |_| {}).unwrap();
        let metrics = result.result.metrics;
        let told = tell(&|name| metrics[name]);
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let words: Vec<_> = text.split_whitespace().filter(|word| *word != "#").collect();
        if !words.join(" ").contains(&told) {
            wrong.push(format!("{page} does not say: {told}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Claims of many hosts collide, and all of them found the cell. Each comes to a slot of its own all the same.
#[test]
fn hosts_that_start_together_agree() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tbmac.toml");
    for hosts in [2, 8, 13, 14, 15, 16_u32] {
        let changes: Vec<_> = [
            format!("hosts={hosts}"),
            "run.warm_up=4s".to_owned(),
            "duration=8s".to_owned(),
        ]
        .iter()
        .map(|change| Change::parse(change).unwrap())
        .collect();
        let scenario = Scenario::open(&path, &changes).unwrap();
        for seed in 1..=8 {
            let metrics = lab::run::run(&scenario, seed, None, &AtomicBool::new(false), |_| {})
                .unwrap()
                .result
                .metrics;
            let of = |name: &str| metrics[name];
            let (submitted, delivered) = (of("submitted"), of("delivered"));
            assert!(submitted >= 40.0 * f64::from(hosts), "{submitted}");
            // what is under way at the end is neither
            let missing = submitted * f64::from(hosts - 1) - delivered;
            assert!(
                missing <= f64::from(hosts * hosts),
                "{hosts}, seed {seed}: {submitted}, {delivered}"
            );
        }
    }
}
