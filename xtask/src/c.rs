//! `cargo xtask c`: the headers of the C bindings from their crates, and their library put where C programs look for it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::test::binaries::library;
use crate::test::tools::{install, run, with_tools};
use crate::workspace::Workspace;

const CBINDGEN: &str = "0.29.4";
/// Crates with a header: folder, package, header.
const HEADERS: &[(&str, &str, &str)] = &[
    ("bindings/c", "sdmac-c", "sdmac.h"),
    ("bindings/ibss", "sdmac-ibss", "sdmac_ibss.h"),
];

/// What is to be done for C.
#[derive(clap::Subcommand)]
pub(crate) enum Do {
    /// Make the headers anew from the crates.
    Header,
    /// Build libsdmac and put library, header and pkg-config file below a folder.
    Install {
        /// Where to: there will be lib/, include/ and lib/pkgconfig/.
        #[arg(long, value_name = "FOLDER")]
        prefix: PathBuf,
        /// The unoptimised build.
        #[arg(long)]
        debug: bool,
    },
}

/// Options of `cargo xtask c`.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Do,
}

pub(crate) fn run_it(workspace: &Workspace, options: &Options) -> Result<bool> {
    match &options.what {
        Do::Header => {
            get_cbindgen(workspace).map_err(anyhow::Error::msg)?;
            for (folder, package, header) in HEADERS {
                make_header(
                    workspace,
                    folder,
                    package,
                    &workspace.root.join(folder).join(header),
                )?;
            }
        }
        Do::Install { prefix, debug } => {
            let release = if *debug { "" } else { " --release" };
            put(workspace, prefix, &format!("build --package sdmac-c{release}"))?;
        }
    }
    Ok(true)
}

/// Gets the program that makes headers. `Err` says why there is none.
pub(crate) fn get_cbindgen(workspace: &Workspace) -> Result<(), String> {
    install(workspace, "cbindgen", CBINDGEN)
}

/// Names of headers that are not what their crates say now.
pub(crate) fn stale_headers(workspace: &Workspace) -> Result<Vec<&'static str>> {
    let fresh = workspace.target.join("headers");
    fs::create_dir_all(&fresh)?;
    let mut stale = Vec::new();
    for (folder, package, header) in HEADERS {
        let made = fresh.join(header);
        make_header(workspace, folder, package, &made)?;
        let kept = workspace.root.join(folder).join(header);
        if fs::read(&made)? != fs::read(&kept).unwrap_or_default() {
            stale.push(*header);
        }
    }
    Ok(stale)
}

fn make_header(workspace: &Workspace, folder: &str, package: &str, to: &Path) -> Result<()> {
    let folder = workspace.root.join(folder);
    let mut command = Command::new("cbindgen");
    command
        .args(["--quiet", "--config"])
        .arg(folder.join("cbindgen.toml"));
    command
        .args(["--crate", package, "--output"])
        .arg(to)
        .arg(&folder);
    with_tools(&mut command, workspace);
    run(&mut command)
}

/// Builds the library with these arguments of cargo, and puts it below `prefix`.
pub(crate) fn put(workspace: &Workspace, prefix: &Path, arguments: &str) -> Result<()> {
    let files = library(workspace, arguments, HEADERS[0].0)?;
    let built = |ends: &str| {
        let found = files
            .iter()
            .find(|file| file.extension().is_some_and(|e| e == ends));
        found.with_context(|| format!("cargo has made no library of the kind `{ends}`"))
    };
    fs::create_dir_all(prefix.join("lib/pkgconfig")).context("cannot make the folder")?;
    fs::create_dir_all(prefix.join("include"))?;
    let prefix = fs::canonicalize(prefix)?;
    let header = workspace.root.join("bindings/c/sdmac.h");
    let from_to = [
        (built("a")?, "lib/libsdmac.a"),
        (built("so")?, "lib/libsdmac.so.0"),
        (&header, "include/sdmac.h"),
    ];
    for (from, to) in from_to {
        fs::copy(from, prefix.join(to)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    let link = prefix.join("lib/libsdmac.so");
    if link.symlink_metadata().is_ok() {
        fs::remove_file(&link)?;
    }
    symlink("libsdmac.so.0", &link)?;
    let template = fs::read_to_string(workspace.root.join("bindings/c/sdmac.pc.in"))?;
    let shown = prefix.to_str().context("the folder's name is not UTF-8")?;
    ensure!(
        !shown.contains(char::is_whitespace),
        "pkg-config cannot have spaces in the folder's name"
    );
    let text = template
        .replace("@PREFIX@", shown)
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    fs::write(prefix.join("lib/pkgconfig/sdmac.pc"), text)?;
    println!("installed below {shown}");
    Ok(())
}
