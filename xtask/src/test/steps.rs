//! The steps of `cargo xtask test`, in the order they run.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Outcome;
use super::binaries::{Binaries, TESTS};
use super::lab::get;
pub(super) use super::lab::{lab, more as lab_more};
use super::lanes;
use super::tools::{
    Run, cargo_at_root, exists, install, nightly, nightly_at_root, run, run_and_read, rust_target, shown,
    with_tools,
};
use crate::tidy;
use crate::workspace::Workspace;

/// The microcontroller the no_std crates must build for.
pub(super) const THUMB: &str = "thumbv7m-none-eabi";
/// Rooms that firmware is made of.
const NO_STD: &[&str] = &[
    "sdmac-frame",
    "sdmac-radio",
    "sdmac-protocols",
    "sdmac-ar9170",
    "sdmac-node",
];
/// Test programs that take longest, to begin with.
const LONG: &[&str] = &["reproduce", "rate", "qualify", "miss_curves"];
/// Integration tests of this name compare trace hashes with those in the repository.
const GOLDEN: &str = "golden";
const CARGO_DENY: &str = "0.20.2";
const CARGO_FUZZ: &str = "0.13.2";
/// For each target. This finds what is new and shallow; long campaigns are run by hand.
const FUZZ_SECONDS: u32 = 5;

pub(super) fn fmt(workspace: &Workspace) -> Result<Outcome> {
    run(&mut cargo_at_root(workspace, "fmt --all --check"))?;
    done("")
}

pub(super) fn tidy(workspace: &Workspace) -> Result<Outcome> {
    ensure!(
        tidy::run(workspace, &tidy::Options::default())?,
        "the findings are listed above"
    );
    done("")
}

pub(super) fn typos(workspace: &Workspace) -> Result<Outcome> {
    if !exists("typos") {
        return skipped("no `typos`: `cargo install typos-cli`");
    }
    run(Command::new("typos").current_dir(&workspace.root))?;
    done("")
}

pub(super) fn build(workspace: &Workspace) -> Result<Outcome> {
    run(&mut cargo_at_root(workspace, TESTS))?;
    done("")
}

pub(super) fn clippy(workspace: &Workspace) -> Result<Outcome> {
    run(&mut cargo_at_root(
        workspace,
        "clippy --workspace --all-targets -- -D warnings",
    ))?;
    done("")
}

/// What `cargo test --workspace` runs, but several programs at once: most have a long test that leaves processors idle.
pub(super) fn test(workspace: &Workspace) -> Result<Outcome> {
    // some tests ask it, and pass where it is not there
    let tshark = get("tshark", &["tshark"]);
    let binaries = Binaries::build(workspace)?;
    let mut commands = binaries.commands(LONG);
    commands.push(cargo_at_root(workspace, "test --workspace --doc --no-fail-fast"));
    let names: Vec<String> = commands.iter().map(shown).collect();
    let runs: Result<Vec<Run>> = lanes::run(commands).into_iter().collect();
    partly(
        vec![Run::together(names.into_iter().zip(runs?).collect()).tests()?],
        untested(tshark),
    )
}

/// What tests have not shown that passed: those that ask a program which need not be there.
fn untested(tshark: Result<(), String>) -> Vec<String> {
    let what = "what Wireshark shows of ATP, and of captures of the air: there is no tshark";
    tshark
        .err()
        .map(|why| format!("{what}, {why}"))
        .into_iter()
        .collect()
}

/// What takes minutes, and runs apart from the other tests: a day under TDMA, an hour of overlays among faults, the deepest exploration, an
/// hour of random datagrams, ten thousand connections.
pub(super) fn long(workspace: &Workspace) -> Result<Outcome> {
    let lab = "test --workspace --test tdma_day --test overlay_swarm --test tbmac -- --ignored";
    let deep = "test --package sdmac-protocols --lib -- --ignored";
    let many = "test --package sdmac-transfer --test proxy -- --ignored";
    let [lab, deep, many] = [
        count(&mut cargo_at_root(workspace, lab))?,
        count(&mut cargo_at_root(workspace, deep))?,
        count(&mut cargo_at_root(workspace, many))?,
    ];
    done(format!(
        "a day and an hour: {lab}; explorations and random datagrams: {deep}; connections: {many}"
    ))
}

pub(super) fn doc(workspace: &Workspace) -> Result<Outcome> {
    run(cargo_at_root(workspace, "doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))?;
    done("")
}

pub(super) fn thumb(workspace: &Workspace) -> Result<Outcome> {
    if let Err(why) = rust_target(workspace, THUMB) {
        return skipped(why);
    }
    let packages = NO_STD.iter().flat_map(|name| ["--package", name]);
    run(cargo_at_root(workspace, "build --release --target")
        .arg(THUMB)
        .args(packages))?;
    done(NO_STD.join(", "))
}

/// The hashes do not depend on how the program was built: the step `test` compares them in debug, this one in release.
pub(super) fn golden(workspace: &Workspace) -> Result<Outcome> {
    let packages: Vec<&str> = workspace
        .with_test(GOLDEN)
        .flat_map(|package| ["--package", &package.name])
        .collect();
    if packages.is_empty() {
        return skipped("no package has a test `golden`");
    }
    let mut command = cargo_at_root(workspace, "test --release --no-fail-fast --test");
    count_tests(command.arg(GOLDEN).args(&packages))
}

/// Every `cargo run --release -- ...` of README.md ends well, and `qualify` answers for all schemes; with the program that the tests
/// are built with.
pub(super) fn readme(workspace: &Workspace) -> Result<Outcome> {
    run(&mut cargo_at_root(workspace, TESTS))?;
    of_readme(workspace, || {
        let mut command = Command::new(workspace.sdmac());
        command.current_dir(&workspace.root);
        command
    })
}

/// The same, optimized as README.md has it: building that takes longer than the tests of many rooms.
pub(super) fn release(workspace: &Workspace) -> Result<Outcome> {
    of_readme(workspace, || {
        cargo_at_root(workspace, RUN.trim_start_matches("cargo "))
    })
}

/// The commands of README.md, with this in place of what they begin with.
fn of_readme(workspace: &Workspace, program: impl Fn() -> Command) -> Result<Outcome> {
    let text = std::fs::read_to_string(workspace.root.join("README.md")).context("cannot read README.md")?;
    let commands = commands_of(&text);
    let qualifies = |c: &&str| c.split_whitespace().next() == Some("qualify");
    ensure!(
        commands.iter().any(qualifies),
        "README.md shows no `{RUN}qualify ...`"
    );
    for arguments in &commands {
        let run = run_and_read(program().args(arguments.split_whitespace()))?;
        if qualifies(arguments) {
            qualified(&run).with_context(|| format!("`{RUN}{arguments}`"))?;
        } else {
            ensure!(run.code == Some(0), "`{RUN}{arguments}` failed, see above");
        }
    }
    done(format!("commands: {}", commands.len()))
}

/// 20,000 packets of ATP a second through `sdmac hop`, in network namespaces of this computer; says what limits it.
pub(super) fn hop(workspace: &Workspace) -> Result<Outcome> {
    let command = "test --release --package sdmac --test hop twenty -- --ignored --nocapture";
    let run = run_and_read(&mut cargo_at_root(workspace, command))?;
    run.tests()?;
    measured(&run.stdout, &run.stderr)
}

/// What a measurement says of its limit, or why it was not made.
fn measured(stdout: &str, stderr: &str) -> Result<Outcome> {
    let line = |text: &str, begin: &str| {
        let found = text.lines().find_map(|line| line.split_once(begin));
        found.map(|(_, rest)| rest.trim().to_owned())
    };
    match (line(stdout, "LIMIT "), line(stderr, "skipped: ")) {
        (Some(limit), _) => done(limit),
        (None, Some(why)) => skipped(why),
        (None, None) => anyhow::bail!("the test has neither measured nor said why not"),
    }
}

pub(super) fn deny(workspace: &Workspace) -> Result<Outcome> {
    if let Err(why) = install(workspace, "cargo-deny", CARGO_DENY) {
        return skipped(why);
    }
    let mut command = cargo_at_root(workspace, "deny --locked check bans licenses sources");
    with_tools(&mut command, workspace);
    run(&mut command)?;
    done("")
}

pub(super) fn miri(workspace: &Workspace) -> Result<Outcome> {
    if let Err(why) = nightly(&["miri", "rust-src"]) {
        return skipped(why);
    }
    // Its standard library is built from sources, and these need crates from the registry.
    if run(&mut nightly_at_root(workspace, "miri setup")).is_err() {
        return skipped("miri cannot build its standard library, see above");
    }
    // Miri is about a thousand times slower than the machine: under `cfg(miri)` long loops take fewer steps.
    // Property tests look for the file of earlier failures, which isolation forbids.
    let command = "miri test --lib --package sdmac-frame --package sdmac-radio";
    count_tests(nightly_at_root(workspace, command).env("MIRIFLAGS", "-Zmiri-disable-isolation"))
}

pub(super) fn fuzz(workspace: &Workspace) -> Result<Outcome> {
    let Ok(manifest) = std::fs::read_to_string(workspace.root.join("fuzz/Cargo.toml")) else {
        return skipped("there is no folder fuzz/ yet");
    };
    if let Err(why) = nightly(&[]) {
        return skipped(why);
    }
    if !exists("c++") {
        return skipped("no C++ compiler, which libFuzzer needs");
    }
    if let Err(why) = install(workspace, "cargo-fuzz", CARGO_FUZZ) {
        return skipped(why);
    }
    let targets = fuzz_targets(&manifest)?;
    ensure!(!targets.is_empty(), "fuzz/Cargo.toml names no [[bin]]");
    run(&mut nightly_at_root(workspace, "fuzz build"))?;
    let limit = format!("-max_total_time={FUZZ_SECONDS}");
    let commands = targets.iter().map(|target| {
        let mut command = nightly_at_root(workspace, "fuzz run");
        command.args([target, "--", &limit]);
        command
    });
    let ends = lanes::run_unseen(commands.collect());
    let names = targets.iter().map(String::as_str);
    let fallen: Vec<&str> = (names.zip(ends))
        .filter_map(|(target, end)| (!fuzzed(target, end)).then_some(target))
        .collect();
    ensure!(fallen.is_empty(), "failed: {}", fallen.join(", "));
    done(format!("{FUZZ_SECONDS} s each: {}", targets.join(", ")))
}

/// Whether a fuzz target has passed. It tells one line if so, else all that it said.
fn fuzzed(target: &str, end: Result<Run>) -> bool {
    let said = match end {
        Ok(run) if run.code == Some(0) => {
            // libFuzzer's last word; what makes the corpus has none
            let done = run.stderr.lines().rev().find(|line| line.starts_with("Done "));
            println!("{target}: {}", done.unwrap_or("done"));
            return true;
        }
        Ok(run) => run.stderr + &run.stdout,
        Err(why) => format!("{why:#}"),
    };
    println!("{target} FAILED:\n{said}");
    false
}

/// Links, includes and the code of the book are checked by `tidy` and `test`; this looks at the rest.
pub(super) fn book(workspace: &Workspace) -> Result<Outcome> {
    if !exists("mdbook") {
        return skipped("no `mdbook`: `cargo install mdbook`");
    }
    run(Command::new("mdbook")
        .args(["build", "docs"])
        .current_dir(&workspace.root))?;
    done("")
}

pub(super) fn done(remark: impl Into<String>) -> Result<Outcome> {
    Ok(Outcome::Done(remark.into()))
}

/// Done, in part or not at all: what was, and what could not run here with the reason.
pub(super) fn partly(told: Vec<String>, missing: Vec<String>) -> Result<Outcome> {
    let (remark, skipped) = (told.join("; "), missing.join("; "));
    Ok(match (told.is_empty(), missing.is_empty()) {
        (_, true) => Outcome::Done(remark),
        (false, false) => Outcome::Partly { remark, skipped },
        (true, false) => Outcome::Skipped(skipped),
    })
}

pub(super) fn skipped(why: impl Into<String>) -> Result<Outcome> {
    Ok(Outcome::Skipped(why.into()))
}

pub(super) fn count_tests(command: &mut Command) -> Result<Outcome> {
    done(count(command)?)
}

/// Runs tests and says how many there were; an error if one failed.
pub(super) fn count(command: &mut Command) -> Result<String> {
    run_and_read(command)?.tests()
}

/// How README.md runs the program.
const RUN: &str = "cargo run --release -- ";

/// What stands behind [`RUN`] in the code blocks of a Markdown file.
fn commands_of(markdown: &str) -> Vec<&str> {
    markdown
        .lines()
        .filter_map(|line| line.trim().strip_prefix(RUN))
        .collect()
}

/// The schemes that `sdmac qualify` tries, as its table names them.
const SCHEMES: [&str; 3] = ["EDCA", "EDF", "TDMA"];

/// `sdmac qualify` ends with 0 if a scheme passes and with 1 if none does, and its table has a row with a verdict for
/// each scheme.
fn qualified(run: &Run) -> Result<()> {
    let verdict = |scheme: &str| {
        run.stdout.lines().find_map(|line| {
            let mut words = line.split(|c: char| !c.is_ascii_alphabetic());
            words
                .by_ref()
                .find(|word| !word.is_empty())
                .filter(|word| *word == scheme)?;
            words.find(|word| ["PASS", "FAIL", "UNDECIDED"].contains(word))
        })
    };
    let mut passed = false;
    for scheme in SCHEMES {
        let verdict = verdict(scheme).with_context(|| format!("shows no verdict for {scheme}"))?;
        passed |= verdict == "PASS";
    }
    let documented = if passed { 0 } else { 1 };
    ensure!(
        run.code == Some(documented),
        "ended with {:?} where its verdicts ask for {documented}",
        run.code
    );
    Ok(())
}

fn fuzz_targets(manifest: &str) -> Result<Vec<String>> {
    let table: toml::Table = manifest.parse().context("cannot read fuzz/Cargo.toml")?;
    let bins = table
        .get("bin")
        .and_then(toml::Value::as_array)
        .map_or(&[][..], Vec::as_slice);
    Ok(bins
        .iter()
        .filter_map(|bin| Some(bin.get("name")?.as_str()?.to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_the_readme() {
        let text = "Try it:\n```sh\ncargo run --release -- qualify --nodes 8\ncargo xtask test\n```\nor `cargo run --release -- x`\n";
        assert_eq!(commands_of(text), ["qualify --nodes 8"]);
    }

    #[test]
    fn qualify_answers_for_every_scheme_with_the_code_that_is_documented() {
        let ends = |stdout: &str, code| {
            let (stdout, stderr) = (stdout.to_owned(), String::new());
            qualified(&Run::new(stdout, stderr, code)).is_ok()
        };
        let one_passes = "scheme verdict\n EDCA   FAIL 1e-2\n EDF  PASS  0\n TDMA UNDECIDED\n\nEDCA: why\n";
        assert!(ends(one_passes, Some(0)));
        for code in [Some(1), Some(2), Some(101), None] {
            assert!(!ends(one_passes, code), "{code:?}");
        }
        let none = one_passes.replace("PASS", "FAIL");
        assert!(ends(&none, Some(1)) && !ends(&none, Some(0)));
        // an empty answer, a scheme without a row, a row without a verdict
        assert!(!ends("", Some(0)));
        assert!(!ends(&one_passes.replace("TDMA", "CSMA"), Some(0)));
        assert!(!ends(&one_passes.replace("UNDECIDED", "FAILURE"), Some(0)));
    }

    #[test]
    fn what_tests_could_not_show_is_said() {
        assert!(untested(Ok(())).is_empty());
        let outcome = partly(
            vec!["7 tests".to_owned()],
            untested(Err("which is gone".to_owned())),
        )
        .unwrap();
        assert!(
            matches!(outcome, Outcome::Partly { skipped, .. } if skipped.ends_with("no tshark, which is gone"))
        );
    }

    #[test]
    fn a_measurement_says_its_limit_or_why_there_is_none() {
        let ends = |out, err| match measured(out, err) {
            Ok(Outcome::Done(what)) => format!("done {what}"),
            Ok(Outcome::Skipped(why)) => format!("skipped {why}"),
            _ => "failed".to_owned(),
        };
        assert_eq!(
            ends("test x ... LIMIT 9/s, limited by y\nok", ""),
            "done 9/s, limited by y"
        );
        assert_eq!(ends("ok", "skipped: no unshare\n"), "skipped no unshare");
        assert_eq!(ends("ok", ""), "failed");
    }

    #[test]
    fn a_fuzz_target_has_passed_if_it_ends_well() {
        let ends = |stderr: &str, code| {
            let (stdout, stderr) = (String::new(), stderr.to_owned());
            fuzzed("x", Ok(Run::new(stdout, stderr, code)))
        };
        assert!(ends("#1 INITED\nDone 7 runs in 5 second(s)", Some(0)));
        assert!(ends("", Some(0)));
        assert!(!ends("Done 7 runs in 5 second(s)", Some(77)));
        assert!(!ends("Done 7 runs in 5 second(s)", None));
        assert!(!fuzzed("x", Err(anyhow::anyhow!("cannot run it"))));
    }

    #[test]
    fn fuzz_targets_are_read_from_the_manifest() {
        let manifest = "[package]\nname = \"f\"\n[[bin]]\nname = \"beacon\"\npath = \"a.rs\"\n[[bin]]\nname = \"radiotap\"\n";
        assert_eq!(fuzz_targets(manifest).unwrap(), ["beacon", "radiotap"]);
        assert!(fuzz_targets("[package]\n").unwrap().is_empty());
        assert!(fuzz_targets("[[bin").is_err());
    }
}
