//! What was there before `tune` changed it: one line for each change, in the order of the changes. It is kept in a
//! folder that a new boot empties, as a new boot undoes the changes.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// First line: format and version.
const HEADER: &str = "sdmac-tune 1";

/// Where the journal is by default.
pub const DEFAULT_PATH: &str = "/run/sdmac/tune";

/// What something was before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Before {
    /// A file of the kernel and its text.
    File {
        /// Path below the root.
        path: String,
        /// Its text.
        text: String,
    },
    /// A thread and its scheduling.
    Thread {
        /// Process id.
        pid: u32,
        /// When it was started, in clock ticks: another thread with the same id has another one.
        started: u64,
        /// Policy as sched(7) numbers it.
        policy: i32,
        /// Priority.
        priority: i32,
    },
    /// There was no partition of CPUs.
    NoPartition {
        /// Control groups had cpusets all the same.
        delegated: bool,
    },
}

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Before::File { path, text } => write!(f, "{path} -> {text}"),
            Before::Thread {
                pid,
                policy,
                priority,
                ..
            } => {
                write!(
                    f,
                    "thread {pid} -> {}",
                    super::tune::show_policy(*policy, *priority)
                )
            }
            Before::NoPartition { .. } => write!(f, "{} -> none", super::partition::GROUP),
        }
    }
}

impl Before {
    fn line(&self) -> String {
        match self {
            Before::File { path, text } => format!("file\t{path}\t{text}"),
            Before::Thread {
                pid,
                started,
                policy,
                priority,
            } => {
                format!("thread\t{pid}\t{started}\t{policy}\t{priority}")
            }
            Before::NoPartition { delegated } => format!("no partition\t{delegated}"),
        }
    }

    fn parse(line: &str) -> Option<Before> {
        let mut parts = line.split('\t');
        match parts.next()? {
            "file" => {
                let (path, text) = (parts.next()?, parts.next()?);
                let plain = path.starts_with('/') && !path.split('/').any(|part| part == "..");
                (plain && parts.next().is_none()).then(|| Before::File {
                    path: path.into(),
                    text: text.into(),
                })
            }
            "thread" => {
                let before = Before::Thread {
                    pid: parts.next()?.parse().ok()?,
                    started: parts.next()?.parse().ok()?,
                    policy: parts.next()?.parse().ok()?,
                    priority: parts.next()?.parse().ok()?,
                };
                parts.next().is_none().then_some(before)
            }
            "no partition" => {
                let delegated = parts.next()?.parse().ok()?;
                let before = Before::NoPartition { delegated };
                parts.next().is_none().then_some(before)
            }
            _ => None,
        }
    }

    /// Both are about the same thing.
    fn is_about(&self, other: &Before) -> bool {
        match (self, other) {
            (Before::File { path: a, .. }, Before::File { path: b, .. }) => a == b,
            (
                Before::Thread {
                    pid: a, started: s, ..
                },
                Before::Thread {
                    pid: b, started: t, ..
                },
            ) => (a, s) == (b, t),
            (Before::NoPartition { .. }, Before::NoPartition { .. }) => true,
            _ => false,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Journal {
    path: PathBuf,
    entries: Vec<Before>,
}

impl Journal {
    /// Reads the journal at this place; one that is not there is empty.
    ///
    /// # Errors
    /// A file that cannot be read, or is something else.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Journal> {
        let path = path.into();
        let text = match fs::read_to_string(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            other => other?,
        };
        let wrong = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let mut lines = text.lines().enumerate();
        let mut entries = Vec::new();
        match lines.next() {
            None => {}
            Some((_, HEADER)) => {
                for (n, line) in lines {
                    let before = Before::parse(line)
                        .ok_or_else(|| wrong(format!("line {} is not of a journal", n + 1)))?;
                    entries.push(before);
                }
            }
            Some(_) => return Err(wrong(format!("it does not begin with `{HEADER}`"))),
        }
        Ok(Journal { path, entries })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it, the first change first.
    pub fn entries(&self) -> &[Before] {
        &self.entries
    }

    /// Notes what was there, on the disk, before it is changed. What is noted already stays: that is older.
    ///
    /// # Errors
    /// Those of the system; then nothing is to be changed.
    pub fn note(&mut self, before: Before) -> io::Result<()> {
        if self.entries.iter().any(|e| e.is_about(&before)) {
            return Ok(());
        }
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)?;
        if self.entries.is_empty() {
            writeln!(file, "{HEADER}")?;
        }
        writeln!(file, "{}", before.line())?;
        self.entries.push(before);
        Ok(())
    }

    /// Keeps only these, because the others are as before again; without any the file is removed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn keep(&mut self, entries: Vec<Before>) -> io::Result<()> {
        self.entries = entries;
        if self.entries.is_empty() {
            return match fs::remove_file(&self.path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                other => other,
            };
        }
        let lines: Vec<String> = self.entries.iter().map(Before::line).collect();
        fs::write(&self.path, format!("{HEADER}\n{}\n", lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Before {
        Before::File {
            path: "/proc/sys/kernel/watchdog".into(),
            text: text.into(),
        }
    }

    const THREAD: Before = Before::Thread {
        pid: 41,
        started: 1234,
        policy: 1,
        priority: 50,
    };

    #[test]
    fn what_was_first_is_kept_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/sdmac/tune");
        let mut journal = Journal::open(&path).unwrap();
        assert!(journal.entries().is_empty());
        journal.note(file("1")).unwrap();
        journal.note(THREAD).unwrap();
        journal.note(file("0")).unwrap();
        journal.note(Before::NoPartition { delegated: false }).unwrap();
        journal.note(Before::NoPartition { delegated: true }).unwrap();
        let again = Journal::open(&path).unwrap();
        let none = Before::NoPartition { delegated: false };
        assert_eq!(again.entries(), [file("1"), THREAD, none]);
        journal.keep(vec![THREAD]).unwrap();
        assert_eq!(Journal::open(&path).unwrap().entries(), [THREAD]);
        journal.keep(Vec::new()).unwrap();
        assert!(!path.exists());
        journal.keep(Vec::new()).unwrap();
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tune");
        for text in [
            "hello\n",
            "sdmac-tune 2\n",
            "sdmac-tune 1\nfile\t/x\n",
            "sdmac-tune 1\nfile\t/proc/../etc/passwd\tx\n",
            "sdmac-tune 1\nfile\tx\ty\n",
            "sdmac-tune 1\nthread\t1\t2\t3\tx\n",
            "sdmac-tune 1\nthread\t1\t2\t3\t4\t5\n",
            "sdmac-tune 1\nno partition\tperhaps\n",
            "sdmac-tune 1\n\n",
        ] {
            fs::write(&path, text).unwrap();
            let error = Journal::open(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text:?}");
        }
    }
}
