//! Every scenario of the project runs, for a short time, and gives the numbers of its snapshot.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use lab::scenario::{Change, Scenario};

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
    let short = Change::parse("duration=400ms").unwrap();
    let names: Vec<_> = scenarios();
    assert!(names.len() >= 10, "{names:?}");
    for path in names {
        let scenario = Scenario::open(&path, std::slice::from_ref(&short)).unwrap_or_else(|e| panic!("{e}"));
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
