//! Building the kernel: get, unpack, configure, compile, keep.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use thiserror::Error;

use super::cache::{CONFIG, Cache, Kernel, PROGRAM};
use super::group::Group;
use super::guard::Guard;
use super::source::{self, Sources};
use super::{config, tools};

/// Lines that `make` prints for the whole kernel: those of linux 6.1.192 with our fragment. It only scales the
/// progress bar.
const LINES_OF_MAKE: u64 = 1_357;
/// How often a running program is interrupted to see whether the user wants to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Why there is no kernel.
#[derive(Debug, Error)]
pub enum BuildError {
    /// Programs are missing.
    #[error("the lab's kernel cannot be built without {}; on Debian: sudo apt-get install {}", programs(.0), packages(.0))]
    Tools(Vec<tools::Tool>),
    /// There is no apt here, and no source at hand.
    #[error(
        "there is no apt-get here to get the kernel's source with: name a tarball of linux 6.1 with --source and a \
         regulatory.db with --regdb"
    )]
    NoApt,
    /// A package did not come.
    #[error(
        "apt-get cannot download {package}: {why}; try `apt-get update`, or name files with --source and --regdb"
    )]
    Package {
        /// Its name.
        package: &'static str,
        /// The last line that apt-get printed.
        why: String,
    },
    /// The source is not what it should be.
    #[error("{file}: {why}")]
    Source {
        /// The file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// Options of the fragment are not in the configuration.
    #[error("this source refuses {}: the lab is made for linux 6.1 (log: {log})", .options.join(", "))]
    Options {
        /// Lines of the fragment.
        options: Vec<String>,
        /// The log.
        log: String,
    },
    /// A program failed.
    #[error("{step} failed: {why} (log: {log})")]
    Step {
        /// What was done.
        step: &'static str,
        /// The last line with `error` in it, or the last one.
        why: String,
        /// The log.
        log: String,
    },
    /// Files cannot be written.
    #[error("{place}: {error}")]
    Files {
        /// The folder.
        place: String,
        /// The reason.
        error: io::Error,
    },
    /// The user has stopped it.
    #[error("stopped; nothing was kept")]
    Stopped,
}

fn programs(tools: &[tools::Tool]) -> String {
    tools.iter().map(|t| t.0).collect::<Vec<_>>().join(", ")
}

fn packages(tools: &[tools::Tool]) -> String {
    tools.iter().map(|t| t.1).collect::<Vec<_>>().join(" ")
}

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

/// How far it is: what is done now, and in thousandths of the whole.
pub type Progress<'a> = &'a dyn Fn(&'static str, u64);

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
    let site = Site {
        folder: workshop.folder(),
        guard: RefCell::new(Guard::start(&options.sdmac, workshop.folder()).map_err(files)?),
        log: File::create(cache.build_log()).map_err(files)?,
        log_name: cache.build_log().display().to_string(),
        progress,
        stop,
    };
    let tree = site.unpack(&options.sources)?;
    let makefile = std::fs::read_to_string(tree.join("Makefile")).unwrap_or_default();
    let version = source::version(&makefile).ok_or_else(|| BuildError::Source {
        file: tree.display().to_string(),
        why: "is no source of Linux: its Makefile names no version".to_owned(),
    })?;
    site.configure(&tree)?;
    site.compile(&tree, options.jobs)?;
    let done = site.folder.join("done");
    let keep = || -> io::Result<Kernel> {
        std::fs::create_dir(&done)?;
        std::fs::copy(tree.join("linux"), done.join(PROGRAM))?;
        std::fs::copy(tree.join(".config"), done.join(CONFIG))?;
        cache.add(&version, &done)
    };
    let kernel = keep().map_err(files)?;
    progress("built", 1_000);
    Ok(kernel)
}

/// Where a build happens, and what watches it.
struct Site<'a> {
    folder: &'a Path,
    guard: RefCell<Guard>,
    log: File,
    log_name: String,
    progress: Progress<'a>,
    stop: &'a AtomicBool,
}

impl Site<'_> {
    /// The unpacked source, with the table of countries in its place.
    fn unpack(&self, sources: &Sources) -> Result<PathBuf, BuildError> {
        (self.progress)("getting the source", 0);
        let tarball = match &sources.kernel {
            Some(file) => file.clone(),
            None => self.fetch(source::KERNEL_PACKAGE, source::KERNEL_TARBALL)?,
        };
        let regdb = match &sources.regdb {
            Some(file) => file.clone(),
            None => self.fetch(source::REGDB_PACKAGE, source::REGDB_FILE)?,
        };
        let wrong = |file: &Path, why: String| BuildError::Source {
            file: file.display().to_string(),
            why,
        };
        let table = std::fs::read(&regdb).map_err(|e| wrong(&regdb, format!("cannot be read ({e})")))?;
        if !source::is_regdb(&table) {
            return Err(wrong(&regdb, "is no regulatory.db".to_owned()));
        }
        (self.progress)("unpacking", 20);
        let into = self.folder.join("source");
        self.make_folder(&into)?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(&tarball).arg("-C").arg(&into);
        self.run("tar", &mut tar, &|_| {}).map_err(|e| match e {
            BuildError::Step { why, .. } => wrong(&tarball, format!("cannot be unpacked ({why})")),
            other => other,
        })?;
        let tree = source::only_folder(&into).ok_or_else(|| {
            wrong(
                &tarball,
                "does not hold one folder, as a kernel's source does".to_owned(),
            )
        })?;
        self.make_folder(&tree.join("regdb"))?;
        self.write(&tree.join("regdb/regulatory.db"), &table)?;
        Ok(tree)
    }

    /// Downloads a package, unpacks it and gives the path of one of its files.
    fn fetch(&self, package: &'static str, file: &str) -> Result<PathBuf, BuildError> {
        let failed = |why: String| BuildError::Package { package, why };
        let mut download = Command::new("apt-get");
        download.args(["download", package]).current_dir(self.folder);
        self.run("apt-get", &mut download, &|_| {}).map_err(|e| match e {
            BuildError::Step { why, .. } => failed(why),
            other => other,
        })?;
        let deb =
            source::package_file(self.folder, package).ok_or_else(|| failed("it left no file".to_owned()))?;
        let into = self.folder.join(package);
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(&deb).arg(&into);
        self.run("dpkg-deb", &mut unpack, &|_| {})?;
        Ok(into.join(file))
    }

    fn configure(&self, tree: &Path) -> Result<(), BuildError> {
        (self.progress)("configuring", 60);
        self.run("make defconfig", make(tree).arg("defconfig"), &|_| {})?;
        let path = tree.join(".config");
        let read = || {
            std::fs::read_to_string(&path).map_err(|error| BuildError::Files {
                place: path.display().to_string(),
                error,
            })
        };
        let config = read()? + config::FRAGMENT;
        self.write(&path, config.as_bytes())?;
        self.run("make olddefconfig", make(tree).arg("olddefconfig"), &|_| {})?;
        let options = config::not_followed(config::FRAGMENT, &read()?);
        if options.is_empty() {
            return Ok(());
        }
        Err(BuildError::Options {
            options: options.into_iter().map(str::to_owned).collect(),
            log: self.log_name.clone(),
        })
    }

    fn compile(&self, tree: &Path, jobs: usize) -> Result<(), BuildError> {
        const BEGIN: u64 = 80;
        let what = "compiling the kernel, about seven minutes of CPU time";
        let tell = |line: u64| {
            (self.progress)(
                what,
                BEGIN + line.min(LINES_OF_MAKE) * (990 - BEGIN) / LINES_OF_MAKE,
            )
        };
        tell(0);
        let mut command = make(tree);
        command.arg(format!("-j{}", jobs.max(1))).arg("linux");
        self.run("make", &mut command, &tell)
    }

    /// Runs a program: its output goes to the log, `on_line` gets the number of each line.
    fn run(
        &self,
        step: &'static str,
        command: &mut Command,
        on_line: &dyn Fn(u64),
    ) -> Result<(), BuildError> {
        let failed = |why: String| BuildError::Step {
            step,
            why,
            log: self.log_name.clone(),
        };
        let (reader, writer) = io::pipe().map_err(|e| failed(e.to_string()))?;
        let stderr = writer.try_clone().map_err(|e| failed(e.to_string()))?;
        command.stdin(Stdio::null()).stdout(writer).stderr(stderr);
        let mut group = Group::spawn(command).map_err(|e| failed(e.to_string()))?;
        let watched = self.guard.borrow_mut().watch(group.child().id());
        watched.map_err(|e| failed(e.to_string()))?;
        // the command holds the ends that we write to, and the reader waits until all of them are closed
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (send, lines) = channel();
        let reading = std::thread::spawn(move || {
            let split = BufReader::new(reader).split(b'\n').map_while(Result::ok);
            for line in split {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let (mut count, mut why) = (0, String::new());
        let mut log = &self.log;
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(BuildError::Stopped);
            }
            match lines.recv_timeout(GLANCE) {
                Ok(mut line) => {
                    count += 1;
                    on_line(count);
                    let text = String::from_utf8_lossy(&line).trim().to_owned();
                    if !text.is_empty() && (tells_why(&text) || !tells_why(&why)) {
                        why = text;
                    }
                    line.push(b'\n');
                    log.write_all(&line).map_err(|e| failed(e.to_string()))?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let status = group.wait().map_err(|e| failed(e.to_string()))?;
        // it has nothing to read any more
        let _ = reading.join();
        if status.success() {
            Ok(())
        } else if why.is_empty() {
            Err(failed(status.to_string()))
        } else {
            Err(failed(why))
        }
    }

    fn make_folder(&self, folder: &Path) -> Result<(), BuildError> {
        std::fs::create_dir_all(folder).map_err(|error| BuildError::Files {
            place: folder.display().to_string(),
            error,
        })
    }

    fn write(&self, file: &Path, octets: &[u8]) -> Result<(), BuildError> {
        std::fs::write(file, octets).map_err(|error| BuildError::Files {
            place: file.display().to_string(),
            error,
        })
    }
}

fn make(tree: &Path) -> Command {
    let mut command = Command::new("make");
    command.current_dir(tree).arg("ARCH=um");
    // a build started from a makefile, or by cargo, is none of its parts
    for name in [
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "CARGO_MAKEFLAGS",
        "CC",
        "CFLAGS",
        "LDFLAGS",
    ] {
        command.env_remove(name);
    }
    command
}

/// What compilers, make and apt write before a reason.
fn tells_why(line: &str) -> bool {
    ["error:", "Error ", "E: ", "***"]
        .iter()
        .any(|mark| line.contains(mark))
}
