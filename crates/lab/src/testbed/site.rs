//! Where a kernel is made: a folder of its own, a log, programs that run one after the other, a guard that cleans up.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use thiserror::Error;

use super::cache::{Cache, Machine};
use super::group::Group;
use super::guard::Guard;
use super::tools;

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
        package: String,
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
    /// No package has such a kernel.
    #[error("apt knows no {0}: the lab's computers are made of Debian's kernels; try `apt-get update`")]
    NoKernel(String),
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

/// How far it is: what is done now, and in thousandths of the whole.
pub type Progress<'a> = &'a dyn Fn(&'static str, u64);

/// Where a kernel is made, and what watches it.
pub struct Site<'a> {
    folder: &'a Path,
    guard: RefCell<Guard>,
    log: File,
    log_name: String,
    progress: Progress<'a>,
    stop: &'a AtomicBool,
}

impl<'a> Site<'a> {
    /// A site in `folder` for a kernel of `machine`; all output goes to [`Cache::build_log`].
    ///
    /// # Errors
    /// The guard cannot be started, or the log not be written.
    pub fn new(
        cache: &Cache,
        folder: &'a Path,
        sdmac: &Path,
        machine: Machine,
        progress: Progress<'a>,
        stop: &'a AtomicBool,
    ) -> io::Result<Site<'a>> {
        let log = cache.build_log(machine);
        Ok(Site {
            folder,
            guard: RefCell::new(Guard::start(sdmac, folder)?),
            log: File::create(&log)?,
            log_name: log.display().to_string(),
            progress,
            stop,
        })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder
    }

    /// Where the log is.
    pub fn log_name(&self) -> String {
        self.log_name.clone()
    }

    /// Tells how far it is, in thousandths of the whole.
    pub fn progress(&self, what: &'static str, thousandths: u64) {
        (self.progress)(what, thousandths);
    }

    /// Downloads a package, unpacks it and gives the path of one of its files.
    pub fn fetch(&self, package: &str, file: &str) -> Result<PathBuf, BuildError> {
        let into = self.folder.join(package);
        self.fetch_into(package, &into)?;
        Ok(into.join(file))
    }

    /// Downloads a package and unpacks it into a folder, beside what is in there.
    pub fn fetch_into(&self, package: &str, into: &Path) -> Result<(), BuildError> {
        let failed = |why: String| BuildError::Package {
            package: package.to_owned(),
            why,
        };
        let mut download = Command::new("apt-get");
        download.args(["download", package]).current_dir(self.folder);
        self.run("apt-get", &mut download, &|_| {}).map_err(|e| match e {
            BuildError::Step { why, .. } => failed(why),
            other => other,
        })?;
        let deb = package_file(self.folder, package).ok_or_else(|| failed("it left no file".to_owned()))?;
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(&deb).arg(into);
        self.run("dpkg-deb", &mut unpack, &|_| {})
    }

    /// Runs a program: its output goes to the log, `on_line` gets the number of each line.
    pub fn run(
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

    /// Makes a folder and those above it.
    pub fn make_folder(&self, folder: &Path) -> Result<(), BuildError> {
        std::fs::create_dir_all(folder).map_err(|error| BuildError::Files {
            place: folder.display().to_string(),
            error,
        })
    }

    /// Writes a file.
    pub fn write(&self, file: &Path, octets: &[u8]) -> Result<(), BuildError> {
        std::fs::write(file, octets).map_err(|error| BuildError::Files {
            place: file.display().to_string(),
            error,
        })
    }
}

/// What compilers, make and apt write before a reason.
fn tells_why(line: &str) -> bool {
    ["error:", "Error ", "E: ", "***"]
        .iter()
        .any(|mark| line.contains(mark))
}

/// The package file that `apt-get download` has left in `folder`.
fn package_file(folder: &Path, package: &str) -> Option<PathBuf> {
    let prefix = format!("{package}_");
    let files = std::fs::read_dir(folder).ok()?.flatten();
    files
        .filter(|file| {
            let name = file.file_name();
            name.to_str()
                .is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".deb"))
        })
        .map(|file| file.path())
        .next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_told_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("linux-source-6.1_6.1.192-2_all.deb"), "").unwrap();
        assert!(package_file(folder.path(), "linux-source-6.1").is_some());
        assert_eq!(package_file(folder.path(), "wireless-regdb"), None);
        assert_eq!(package_file(folder.path(), "linux-source"), None);
    }
}
