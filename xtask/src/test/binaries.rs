//! Test programs of the workspace as cargo has built them, so that a step can run some of them in its own way without
//! compiling anything again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::tools::cargo_at_root;
use crate::workspace::Workspace;

/// Arguments of cargo that build the workspace and its tests. Others give packages other features, and build them anew.
pub(crate) const TESTS: &str = "test --workspace --no-run";

/// Argument of test programs with which tests that pass are heard, too.
pub(super) const SHOW: &str = "--show-output";

/// What cargo says about one thing that it has built.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds, and gives what cargo says of it.
fn messages(workspace: &Workspace, arguments: &str) -> Result<String> {
    let output = cargo_at_root(workspace, arguments)
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo failed, see above");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Builds with these arguments of cargo; gives the files of the library of the package in `folder` (relative to the root).
pub(crate) fn library(workspace: &Workspace, arguments: &str, folder: &str) -> Result<Vec<PathBuf>> {
    let files = files(&messages(workspace, arguments)?, folder);
    files.with_context(|| format!("`cargo {arguments}` built no library in {folder}"))
}

fn files(messages: &str, folder: &str) -> Option<Vec<PathBuf>> {
    let library = |line: &str| {
        let m: Message = serde_json::from_str(line).ok()?;
        let (is_test, place) = (m.profile?.test, m.manifest_path?);
        let is_it = !is_test && m.target?.kind.iter().any(|kind| kind.ends_with("lib"));
        (is_it && place.parent()?.ends_with(folder)).then_some(m.filenames)
    };
    messages.lines().find_map(library)
}

/// One test program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Binary {
    /// Folder of its package, where cargo would run it.
    folder: PathBuf,
    /// Name of an integration test; `lib` for the unit tests of a library, `bin` for those of a program.
    name: String,
    path: PathBuf,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Binaries(Vec<Binary>);

impl Binaries {
    /// Builds what `cargo test --workspace` would build.
    pub(super) fn build(workspace: &Workspace) -> Result<Binaries> {
        Ok(Binaries::parse(&messages(workspace, TESTS)?))
    }

    fn parse(messages: &str) -> Binaries {
        let binary = |line: &str| {
            let m: Message = serde_json::from_str(line).ok()?;
            let (target, tests) = (m.target?, m.profile?.test);
            let name = match target.kind.first()?.as_str() {
                "test" => target.name,
                "bin" => "bin".to_owned(),
                _ => "lib".to_owned(),
            };
            (m.reason == "compiler-artifact" && tests).then_some(Binary {
                folder: m.manifest_path?.parent()?.to_owned(),
                name,
                path: m.executable?,
            })
        };
        Binaries(messages.lines().filter_map(binary).collect())
    }

    /// The program with the tests `name` of the package in `folder` (relative to the root), to be started by `runner` if
    /// there is one.
    pub(super) fn command(&self, folder: &str, name: &str, runner: Option<&mut Command>) -> Result<Command> {
        let mine = |b: &&Binary| b.name == name && b.folder.ends_with(folder);
        let binary = self
            .0
            .iter()
            .find(mine)
            .with_context(|| format!("cargo built no tests `{name}` in {folder}"))?;
        let Some(runner) = runner else {
            return Ok(binary.command());
        };
        let mut command = Command::new(runner.get_program());
        command.args(runner.get_args()).arg(&binary.path);
        command.current_dir(Path::new(&binary.folder));
        Ok(command)
    }

    /// Each alone, with what tests say that pass: integration tests of the names `first` in this order, then all others.
    pub(super) fn commands(&self, first: &[&str]) -> Vec<Command> {
        let mut all: Vec<&Binary> = self.0.iter().collect();
        all.sort_by_key(|binary| {
            let place = first.iter().position(|name| *name == binary.name);
            place.unwrap_or(first.len())
        });
        let whole = |binary: &Binary| {
            let mut command = binary.command();
            command.arg(SHOW);
            command
        };
        all.into_iter().map(whole).collect()
    }
}

impl Binary {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.folder);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_found_among_what_cargo_says() {
        let artifact = |kind: &str, name: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/linux/Cargo.toml","target":{{"name":"{name}","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let text = [
            artifact("lib", "linux", false, "null"),
            artifact("lib", "linux", true, r#""/w/t/linux-1""#),
            artifact("test", "wifi", true, r#""/w/t/wifi-2""#),
            artifact("bin", "sdmac", false, r#""/w/t/sdmac""#),
            artifact("bin", "sdmac", true, r#""/w/t/sdmac-3""#),
            artifact("cdylib", "sdmac_c", true, r#""/w/t/sdmac_c-4""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ]
        .join("\n");
        let parts = |line: String| line.replace("null}", r#"null,"filenames":["/w/t/l.a"]}"#);
        let of = |folder| files(&parts(text.clone()), folder);
        assert_eq!(of("crates/linux"), Some(vec![PathBuf::from("/w/t/l.a")]));
        assert_eq!(of("crates/sim"), None);
        let binaries = Binaries::parse(&text);
        assert_eq!(binaries.0.len(), 4);
        let words = |c: &Command| {
            let args = c.get_args().map(|a| a.to_string_lossy().into_owned());
            [c.get_program().to_string_lossy().into_owned()]
                .into_iter()
                .chain(args)
                .collect::<Vec<_>>()
        };
        let alone = binaries.command("crates/linux", "lib", None).unwrap();
        assert_eq!(words(&alone), ["/w/t/linux-1"]);
        assert_eq!(alone.get_current_dir(), Some(Path::new("/w/crates/linux")));
        let mut runner = Command::new("sdmac");
        runner.args(["lab", "run", "--"]);
        let inside = binaries
            .command("crates/linux", "wifi", Some(&mut runner))
            .unwrap();
        assert_eq!(words(&inside), ["sdmac", "lab", "run", "--", "/w/t/wifi-2"]);
        assert!(binaries.command("crates/sim", "wifi", None).is_err());
        let all: Vec<Vec<String>> = binaries.commands(&["day", "wifi"]).iter().map(words).collect();
        let paths = ["/w/t/wifi-2", "/w/t/linux-1", "/w/t/sdmac-3", "/w/t/sdmac_c-4"];
        assert_eq!(all, paths.map(|path| vec![path.to_owned(), SHOW.to_owned()]));
    }
}
