//! What cargo knows about this workspace: its packages, their targets and how they depend on each other.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The workspace as `cargo metadata --no-deps` tells it, with paths relative to its root.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Workspace {
    /// Absolute path of the folder with the root `Cargo.toml`.
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    /// Absolute path of the build folder, `CARGO_TARGET_DIR` respected.
    #[serde(rename = "target_directory")]
    pub(crate) target: PathBuf,
    /// All members, in cargo's order.
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Package {
    /// Name as in its manifest, for example `sdmac-frame`.
    pub(crate) name: String,
    /// Its `Cargo.toml`, relative to the root, with `/` between folders.
    #[serde(rename = "manifest_path")]
    pub(crate) manifest: String,
    /// Libraries, binaries, examples, tests and benches.
    pub(crate) targets: Vec<Target>,
    /// Direct dependencies of all kinds.
    pub(crate) dependencies: Vec<Dependency>,
}

/// One crate that cargo compiles.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Target {
    /// Name of the target.
    pub(crate) name: String,
    /// `lib`, `bin`, `example`, `test`, `bench`, ...
    pub(crate) kind: Vec<String>,
    /// Its root file, relative to the workspace root.
    #[serde(rename = "src_path")]
    pub(crate) path: String,
}

/// One direct dependency.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Dependency {
    /// Package name (not the name it is renamed to).
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
    /// Set when the dependency is a folder and not a registry.
    pub(crate) path: Option<PathBuf>,
}

impl Workspace {
    /// Asks cargo. No network is needed.
    pub(crate) fn read() -> Result<Workspace> {
        let output = Command::new(cargo())
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .context("cannot run `cargo metadata`")?;
        ensure!(
            output.status.success(),
            "cargo metadata failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Workspace::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Takes the answer of `cargo metadata --no-deps --format-version 1`.
    pub(crate) fn parse(json: &str) -> Result<Workspace> {
        let mut workspace: Workspace =
            serde_json::from_str(json).context("cannot read the answer of cargo metadata")?;
        let root = workspace.root.clone();
        for package in &mut workspace.packages {
            package.manifest = relative(&root, &package.manifest);
            for target in &mut package.targets {
                target.path = relative(&root, &target.path);
            }
        }
        Ok(workspace)
    }

    /// The command line as the tests are built with.
    pub(crate) fn sdmac(&self) -> PathBuf {
        self.target.join("debug/sdmac")
    }

    /// Packages that have an integration test of this name.
    pub(crate) fn with_test<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Package> {
        let is_it =
            move |target: &Target| target.name == name && target.kind.iter().any(|kind| kind == "test");
        self.packages
            .iter()
            .filter(move |package| package.targets.iter().any(is_it))
    }
}

impl Package {
    /// The folder of the package, relative to the root: `crates/frame`.
    pub(crate) fn folder(&self) -> &str {
        self.manifest.strip_suffix("/Cargo.toml").unwrap_or("")
    }

    /// The last part of the folder, which is how people call it: `frame`.
    pub(crate) fn room(&self) -> &str {
        self.folder().rsplit('/').next().unwrap_or("")
    }
}

/// The cargo that runs us, so that the toolchain stays the same.
pub(crate) fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

fn relative(root: &Path, path: &str) -> String {
    Path::new(path)
        .strip_prefix(root)
        .map_or_else(|_| path.to_owned(), |p| p.to_string_lossy().replace('\\', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
        "workspace_root": "/w/sdmac", "target_directory": "/w/target",
        "packages": [{
            "name": "sdmac-sim", "manifest_path": "/w/sdmac/crates/sim/Cargo.toml",
            "targets": [{"name": "golden", "kind": ["test"], "src_path": "/w/sdmac/crates/sim/tests/golden.rs"}],
            "dependencies": [{"name": "serde", "kind": null, "path": null}]
        }]
    }"#;

    #[test]
    fn paths_become_relative() {
        let workspace = Workspace::parse(METADATA).unwrap();
        let sim = &workspace.packages[0];
        assert_eq!(sim.folder(), "crates/sim");
        assert_eq!(sim.room(), "sim");
        assert_eq!(sim.targets[0].path, "crates/sim/tests/golden.rs");
    }

    #[test]
    fn tests_are_found_by_name() {
        let workspace = Workspace::parse(METADATA).unwrap();
        assert_eq!(workspace.with_test("golden").count(), 1);
        assert_eq!(workspace.with_test("other").count(), 0);
    }

    #[test]
    fn this_workspace_can_be_read() {
        let workspace = Workspace::read().unwrap();
        assert!(
            workspace
                .packages
                .iter()
                .any(|package| package.name == "xtask" && package.folder() == "xtask")
        );
    }
}
