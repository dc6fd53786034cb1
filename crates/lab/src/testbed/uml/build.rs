//! Building the kernel: get, unpack, configure, compile, keep.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::config;
use super::source::{self, Sources};
use crate::testbed::cache::{CONFIG, Cache, Kernel, Machine, PROGRAM};
use crate::testbed::site::{BuildError, Progress, Site};
use crate::testbed::tools;

/// Lines that `make` prints for the whole kernel: those of linux 6.1.192 with our fragment. It only scales the
/// progress bar.
const LINES_OF_MAKE: u64 = 1_397;

/// What to build with.
#[derive(Clone, Debug)]
pub struct Options {
    /// This program, which also guards the build.
    pub sdmac: PathBuf,
    /// Files at hand.
    pub sources: Sources,
    /// Compilers at the same time, at least 1.
    pub jobs: usize,
}

/// Builds a kernel and adds it to the cache. All output goes to [`Cache::build_log`].
pub fn build(
    cache: &Cache,
    options: &Options,
    progress: Progress<'_>,
    stop: &AtomicBool,
) -> Result<Kernel, BuildError> {
    let missing = tools::missing(tools::BUILD);
    if !missing.is_empty() {
        return Err(BuildError::Tools(missing));
    }
    if options.sources.need_packages() && !tools::missing(tools::FETCH).is_empty() {
        return Err(BuildError::NoApt);
    }
    let files = |error| BuildError::Files {
        place: cache.root().display().to_string(),
        error,
    };
    let workshop = cache.workshop().map_err(files)?;
    let site = Site::new(
        cache,
        workshop.folder(),
        &options.sdmac,
        Machine::Uml,
        progress,
        stop,
    )
    .map_err(files)?;
    let tree = unpack(&site, &options.sources)?;
    let makefile = std::fs::read_to_string(tree.join("Makefile")).unwrap_or_default();
    let version = source::version(&makefile).ok_or_else(|| BuildError::Source {
        file: tree.display().to_string(),
        why: "is no source of Linux: its Makefile names no version".to_owned(),
    })?;
    configure(&site, &tree)?;
    compile(&site, &tree, options.jobs)?;
    let done = site.folder().join("done");
    let keep = || -> io::Result<Kernel> {
        std::fs::create_dir(&done)?;
        std::fs::copy(tree.join("linux"), done.join(PROGRAM))?;
        std::fs::copy(tree.join(".config"), done.join(CONFIG))?;
        cache.add(Machine::Uml, &version, &done)
    };
    let kernel = keep().map_err(files)?;
    progress("built", 1_000);
    Ok(kernel)
}

/// The unpacked source, with the table of countries in its place.
fn unpack(site: &Site<'_>, sources: &Sources) -> Result<PathBuf, BuildError> {
    site.progress("getting the source", 0);
    let tarball = match &sources.kernel {
        Some(file) => file.clone(),
        None => site.fetch(source::KERNEL_PACKAGE, source::KERNEL_TARBALL)?,
    };
    let regdb = match &sources.regdb {
        Some(file) => file.clone(),
        None => site.fetch(source::REGDB_PACKAGE, source::REGDB_FILE)?,
    };
    let wrong = |file: &Path, why: String| BuildError::Source {
        file: file.display().to_string(),
        why,
    };
    let table = std::fs::read(&regdb).map_err(|e| wrong(&regdb, format!("cannot be read ({e})")))?;
    if !source::is_regdb(&table) {
        return Err(wrong(&regdb, "is no regulatory.db".to_owned()));
    }
    site.progress("unpacking", 20);
    let into = site.folder().join("source");
    site.make_folder(&into)?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(&tarball).arg("-C").arg(&into);
    site.run("tar", &mut tar, &|_| {}).map_err(|e| match e {
        BuildError::Step { why, .. } => wrong(&tarball, format!("cannot be unpacked ({why})")),
        other => other,
    })?;
    let tree = source::only_folder(&into).ok_or_else(|| {
        wrong(
            &tarball,
            "does not hold one folder, as a kernel's source does".to_owned(),
        )
    })?;
    site.make_folder(&tree.join("regdb"))?;
    site.write(&tree.join("regdb/regulatory.db"), &table)?;
    let registers = tree.join(source::REGISTERS_FILE);
    let text = std::fs::read_to_string(&registers).unwrap_or_default();
    if let Some(wide) = source::with_wide_registers(&text) {
        site.write(&registers, wide.as_bytes())?;
    }
    Ok(tree)
}

fn configure(site: &Site<'_>, tree: &Path) -> Result<(), BuildError> {
    site.progress("configuring", 60);
    site.run("make defconfig", make(tree).arg("defconfig"), &|_| {})?;
    let path = tree.join(".config");
    let read = || {
        std::fs::read_to_string(&path).map_err(|error| BuildError::Files {
            place: path.display().to_string(),
            error,
        })
    };
    let config = read()? + config::FRAGMENT;
    site.write(&path, config.as_bytes())?;
    site.run("make olddefconfig", make(tree).arg("olddefconfig"), &|_| {})?;
    let options = config::not_followed(config::FRAGMENT, &read()?);
    if options.is_empty() {
        return Ok(());
    }
    Err(BuildError::Options {
        options: options.into_iter().map(str::to_owned).collect(),
        log: site.log_name(),
    })
}

fn compile(site: &Site<'_>, tree: &Path, jobs: usize) -> Result<(), BuildError> {
    const BEGIN: u64 = 80;
    let what = "compiling the kernel, about seven minutes of CPU time";
    let tell = |line: u64| {
        site.progress(
            what,
            BEGIN + line.min(LINES_OF_MAKE) * (990 - BEGIN) / LINES_OF_MAKE,
        )
    };
    tell(0);
    let mut command = make(tree);
    command.arg(format!("-j{}", jobs.max(1))).arg("linux");
    site.run("make", &mut command, &tell)
}

fn make(tree: &Path) -> Command {
    let mut command = tools::make(tree);
    command.arg("ARCH=um");
    command
}
