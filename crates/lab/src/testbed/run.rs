//! Running a program in a guest: start the kernel, pass on what the program writes, wait, clean up.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;

use super::cache::{Kernel, Machine};
use super::group::Group;
use super::guard::Guard;
use super::job::{self, End, How, Job};
use super::{qemu, tools, uml};

/// Least memory of a guest that boots and runs something, octets.
pub const MIN_MEMORY: u64 = 64 << 20;
/// Most radios that hwsim makes at boot.
pub const MAX_RADIOS: u32 = 100;
/// How often a running guest is looked after.
const GLANCE: Duration = Duration::from_millis(10);
/// Free space beyond the guest's memory that its folder needs.
const MARGIN: u64 = 16 << 20;

/// The guest's kind of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Computing takes no time; when all sleep, the clock jumps to the next timer.
    Virtual,
    /// The clock of the host.
    Real,
}

impl Time {
    /// Word for the program's environment.
    pub fn name(self) -> &'static str {
        match self {
            Time::Virtual => "virtual",
            Time::Real => "real",
        }
    }
}

/// What to run, and in what.
#[derive(Clone, Debug)]
pub struct Options {
    /// This program, which is also the guest's first process.
    pub sdmac: PathBuf,
    /// The guest's memory, octets.
    pub memory: u64,
    /// Its kind of time.
    pub time: Time,
    /// Let the CPU itself run a computer of QEMU, in place of an emulated one.
    pub kvm: bool,
    /// CPUs of a computer in QEMU.
    pub cpus: u32,
    /// Radios of hwsim at boot.
    pub radios: u32,
    /// Sockets of sticks to plug into a computer of QEMU.
    pub sticks: Vec<PathBuf>,
    /// Two letters, or `00` for the whole world.
    pub country: String,
    /// File of a kernel module to load before the program starts.
    pub module: Option<PathBuf>,
    /// Further kernel parameters, `NAME=VALUE`.
    pub parameters: Vec<String>,
    /// Folders that the program may write to, absolute.
    pub writable: Vec<PathBuf>,
    /// The program's environment.
    pub environment: BTreeMap<String, String>,
    /// Wall time after which the guest is killed.
    pub limit: Option<Duration>,
    /// File for the kernel's log.
    pub kernel_log: Option<PathBuf>,
    /// Path, or a name to look for in `$PATH`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// Why a program was not run to its end.
#[derive(Debug, Error)]
pub enum RunError {
    /// The program is not there.
    #[error("{0}: there is no such program")]
    NoProgram(String),
    /// A folder is not there.
    #[error("{folder}: {error}")]
    Folder {
        /// The folder.
        folder: String,
        /// The reason.
        error: io::Error,
    },
    /// Nobody serves a stick there.
    #[error("{0}: there is no socket of a stick, start one with `sdmac ar9170 serve {0}`")]
    NoStick(String),
    /// Neither place has room for the guest's memory.
    #[error("{needed} MB of memory fit neither in /dev/shm nor in {other}: give the guest less with --mem")]
    Room {
        /// In units of 2^20 octets.
        needed: u64,
        /// The second place.
        other: String,
    },
    /// Something of the host's.
    #[error("cannot {what}: {error}")]
    Host {
        /// What was tried.
        what: &'static str,
        /// The reason.
        error: io::Error,
    },
    /// The kernel has ended before the program.
    #[error("the guest's kernel stopped before the program ended: {0}")]
    Kernel(String),
    /// The guest could not run the program.
    #[error("in the guest: {0}")]
    Guest(String),
    /// Part of the output did not arrive.
    #[error("{lost} octets of the program's output were lost")]
    Lost {
        /// Octets.
        lost: u64,
    },
    /// It took too long.
    #[error(
        "the guest was killed after {0} s: a program that waits in a loop never ends in virtual time; more time with --limit"
    )]
    Limit(u64),
    /// The user has stopped it.
    #[error("stopped; the guest is gone")]
    Stopped,
}

/// Takes what the program writes: 0 is its standard output, 1 its standard error.
pub type Output<'a> = &'a mut dyn FnMut(usize, &[u8]) -> io::Result<()>;

/// Boots a guest, runs the program in it and waits for its end.
pub fn run(
    kernel: &Kernel,
    options: &Options,
    output: Output<'_>,
    stop: &AtomicBool,
) -> Result<End, RunError> {
    let job = options.job(kernel)?;
    let host = |what| move |error| RunError::Host { what, error };
    let folder = Folder::new(options.memory).map_err(|e| match e {
        NoFolder::Room { needed, other } => RunError::Room { needed, other },
        NoFolder::Host(error) => host("make a folder for the guest")(error),
    })?;
    let path = folder.path.as_path();
    let fill = || -> io::Result<(File, [File; 2])> {
        job::write(path, job::JOB, &job)?;
        std::os::unix::fs::symlink(&options.sdmac, path.join(job::INIT))?;
        let log = File::create(path.join(job::KERNEL_LOG))?;
        let [out, err] = job::STREAMS.map(|name| {
            File::create(path.join(name))?;
            File::open(path.join(name))
        });
        Ok((log, [out?, err?]))
    };
    let (log, files) = fill().map_err(host("fill the guest's folder"))?;
    let mut guard = Guard::start(&options.sdmac, path).map_err(host("start the guest's guard"))?;
    let mut command = match kernel.machine {
        Machine::Uml => uml::boot::command(options, kernel, path),
        Machine::Standard | Machine::Realtime => qemu::boot::command(options, kernel, path, &job.writable),
    };
    let errors = log.try_clone().map_err(host("fill the guest's folder"))?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    let mut guest = Group::spawn(&mut command).map_err(host("start the guest's kernel"))?;
    guard
        .watch(guest.child().id())
        .map_err(host("tell the guard about the guest"))?;

    let begun = Instant::now();
    let mut streams = Streams {
        files,
        passed: [0, 0],
        buffer: vec![0; 1 << 16],
    };
    let ended = loop {
        let ended = guest.try_wait().map_err(host("wait for the guest"))?;
        streams
            .pass_on(output)
            .map_err(host("pass on the program's output"))?;
        if let Some(status) = ended {
            break Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            break Err(RunError::Stopped);
        }
        if let Some(limit) = options.limit.filter(|limit| begun.elapsed() > *limit) {
            break Err(RunError::Limit(limit.as_secs()));
        }
        std::thread::sleep(GLANCE);
    };
    // an early end kills the guest here, and the guard has nothing to do
    drop(guest);
    drop(guard);
    if let Some(file) = &options.kernel_log {
        std::fs::copy(path.join(job::KERNEL_LOG), file).map_err(host("write the kernel's log"))?;
    }
    let status = ended?;
    let end: End = job::read(path, job::END).map_err(|_| {
        let log = std::fs::read(path.join(job::KERNEL_LOG)).unwrap_or_default();
        let last = last_words(&String::from_utf8_lossy(&log));
        RunError::Kernel(last.unwrap_or_else(|| status.to_string()))
    })?;
    if let How::NotStarted(why) = end.how {
        return Err(RunError::Guest(why));
    }
    let written: u64 = end.written.iter().sum();
    match written.saturating_sub(streams.passed.iter().sum()) {
        0 => Ok(end),
        lost => Err(RunError::Lost { lost }),
    }
}

impl Options {
    /// Parameters of the kernel and its modules.
    pub(super) fn settings(&self) -> Vec<String> {
        let mut all = vec![
            format!("mac80211_hwsim.radios={}", self.radios),
            format!("cfg80211.ieee80211_regdom={}", self.country),
        ];
        all.extend_from_slice(&self.parameters);
        all
    }

    /// Whether the clock of a computer in QEMU counts instructions. Not where sticks are, which live in the time of this
    /// computer; nor with several processors, each in a thread of its own: when they count instructions they take turns, and
    /// one that is idle holds the others up.
    pub fn counts_instructions(&self) -> bool {
        !self.kvm && self.sticks.is_empty() && self.cpus == 1
    }

    fn job(&self, kernel: &Kernel) -> Result<Job, RunError> {
        let folder = |path: &Path, error| RunError::Folder {
            folder: path.display().to_string(),
            error,
        };
        let directory = std::env::current_dir().map_err(|e| folder(Path::new("."), e))?;
        let found = if self.program.contains('/') {
            Some(directory.join(&self.program)).filter(|file| tools::is_executable(file))
        } else {
            tools::find(&self.program)
        };
        let mut writable = Vec::new();
        for path in &self.writable {
            let whole = path.canonicalize().map_err(|e| folder(path, e))?;
            if !whole.is_dir() {
                return Err(folder(path, io::ErrorKind::NotADirectory.into()));
            }
            writable.push(whole);
        }
        are_sockets(&self.sticks)?;
        let mut environment = self.environment.clone();
        if kernel.machine != Machine::Uml {
            let path = environment.entry("PATH".to_owned()).or_default();
            *path += &format!(":{}", kernel.tools().display());
        }
        environment.insert(job::TIME_VARIABLE.to_owned(), self.time.name().to_owned());
        environment.remove(job::CLOCK_VARIABLE);
        if kernel.machine != Machine::Uml && self.counts_instructions() {
            environment.insert(job::CLOCK_VARIABLE.to_owned(), "instructions".to_owned());
        }
        if let Some(module) = &self.module {
            environment.insert(job::MODULE_VARIABLE.to_owned(), module.display().to_string());
        }
        Ok(Job {
            program: found.ok_or_else(|| RunError::NoProgram(self.program.clone()))?,
            arguments: self.arguments.clone(),
            environment,
            directory,
            writable,
            radios: self.radios,
            sticks: self.sticks.len() as u32,
            module: self.module.clone(),
        })
    }
}

/// What the kernel said when it stopped.
fn last_words(log: &str) -> Option<String> {
    let line = |mark: &str| log.lines().rev().find(|line| line.contains(mark));
    let last = || log.lines().rev().find(|line| !line.trim().is_empty());
    let found = line("Kernel panic").or_else(|| line("VFS:")).or_else(last)?;
    Some(
        found
            .split_once("] ")
            .map_or(found, |(_, text)| text)
            .trim()
            .to_owned(),
    )
}

/// The two streams of the program, read as they grow.
struct Streams {
    files: [File; 2],
    passed: [u64; 2],
    buffer: Vec<u8>,
}

impl Streams {
    fn pass_on(&mut self, output: Output<'_>) -> io::Result<()> {
        for (stream, file) in self.files.iter_mut().enumerate() {
            loop {
                let length = file.read(&mut self.buffer)?;
                if length == 0 {
                    break;
                }
                self.passed[stream] += length as u64;
                output(stream, &self.buffer[..length])?;
            }
        }
        Ok(())
    }
}

/// A folder of this run, for its files and the guest's memory. It goes away with this value.
struct Folder {
    path: PathBuf,
}

enum NoFolder {
    Room { needed: u64, other: String },
    Host(io::Error),
}

impl Folder {
    /// In memory where there is room, else where temporary files are.
    fn new(memory: u64) -> Result<Folder, NoFolder> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let other = std::env::temp_dir();
        let needed = memory + MARGIN;
        let has_room = |place: &&Path| {
            rustix::fs::statvfs(*place).is_ok_and(|s| s.f_bavail.saturating_mul(s.f_frsize) >= needed)
        };
        let place = [Path::new("/dev/shm"), &other]
            .into_iter()
            .find(has_room)
            .ok_or_else(|| NoFolder::Room {
                needed: needed >> 20,
                other: other.display().to_string(),
            })?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("sdmac-lab-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(NoFolder::Host)?;
        Ok(Folder { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // nothing more can be done about it
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// An error names the first path that is no socket.
fn are_sockets(paths: &[PathBuf]) -> Result<(), RunError> {
    let is_socket = |path: &Path| path.metadata().is_ok_and(|there| there.file_type().is_socket());
    match paths.iter().find(|path| !is_socket(path)) {
        Some(path) => Err(RunError::NoStick(path.display().to_string())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stick_that_nobody_serves_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("stick0");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert!(are_sockets(std::slice::from_ref(&socket)).is_ok());
        let missing = folder.path().join("stick1");
        let said = are_sockets(&[socket, missing]).unwrap_err().to_string();
        assert!(said.contains("stick1: there is no socket of a stick"), "{said}");
    }
}
