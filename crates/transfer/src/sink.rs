//! Where received octets go: a thread writes them, so that a slow disk or a full pipe slows the connection down and does
//! not stop it. Files are written under another name until they are whole.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;

use crate::message::Digest;

/// Blocks that wait to be written.
const BEHIND: usize = 16;

/// Where the content goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Into a folder, under the sender's name.
    Folder {
        /// The folder.
        path: PathBuf,
        /// Take the place of a file of that name.
        replace: bool,
    },
    /// To standard output.
    Stdout,
}

/// A name that is safe to use in a folder; `None` for one that leads elsewhere.
pub fn safe_name(name: &str) -> Option<&str> {
    let plain = !name.is_empty()
        && !matches!(name, "." | "..")
        && !name.contains(['/', '\\', '\0'])
        && !name.chars().any(char::is_control);
    plain.then_some(name)
}

/// The file of what has arrived so far.
fn part_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.sdmac-part"))
}

enum Task {
    Write(Vec<u8>),
    /// Everything is written: make it last, under its own name.
    Keep,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Sink {
    /// `None` when the sink is dropped.
    tasks: Option<SyncSender<Task>>,
    thread: Option<thread::JoinHandle<()>>,
    done: Receiver<io::Result<()>>,
    /// What did not find room.
    waiting: Option<Task>,
    /// Octets that were there before, and their digest so far.
    pub begun: (u64, blake3::Hasher),
}

impl std::fmt::Debug for Task {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Task::Write(_) => "Write",
            Task::Keep => "Keep",
        })
    }
}

impl Sink {
    /// Opens the place for content of this name. If a part of it is there, that is read and kept.
    ///
    /// # Errors
    /// One sentence for the sender.
    pub fn open(place: &Place, name: &str) -> Result<Sink, String> {
        match place {
            Place::Stdout => {
                let mut sink = Sink::new(io::stdout(), |out| out.flush(), 0, blake3::Hasher::new());
                // nobody knows when a pipe will be read
                sink.thread = None;
                Ok(sink)
            }
            Place::Folder { path, replace } => {
                let name = safe_name(name).ok_or("its name is not that of a file in a folder")?;
                let whole = path.join(name);
                if whole.exists() && !replace {
                    return Err(format!("there is a file '{name}' already"));
                }
                let part = part_of(path, name);
                let wrong = |e: io::Error| format!("{}: {e}", part.display());
                let mut file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&part)
                    .map_err(wrong)?;
                let mut hasher = blake3::Hasher::new();
                let there = digest_of(&mut file, u64::MAX, &mut hasher).map_err(wrong)?;
                let keep = move |file: &mut File| {
                    file.sync_all()?;
                    std::fs::rename(&part, &whole)
                };
                Ok(Sink::new(file, keep, there, hasher))
            }
        }
    }

    fn new<W: Write + Restart + Send + 'static>(
        mut to: W,
        mut keep: impl FnMut(&mut W) -> io::Result<()> + Send + 'static,
        there: u64,
        hasher: blake3::Hasher,
    ) -> Sink {
        let (tasks, take) = sync_channel::<Task>(BEHIND);
        let (tell, done) = sync_channel(1);
        let thread = thread::spawn(move || {
            for task in take {
                let result = match task {
                    Task::Write(octets) if octets.is_empty() => to.restart(),
                    Task::Write(octets) => to.write_all(&octets),
                    Task::Keep => {
                        let _ = tell.send(keep(&mut to));
                        return;
                    }
                };
                if result.is_err() {
                    let _ = tell.send(result);
                    return;
                }
            }
        });
        Sink {
            tasks: Some(tasks),
            thread: Some(thread),
            done,
            waiting: None,
            begun: (there, hasher),
        }
    }

    /// Throws away what was there before.
    pub fn restart(&mut self) {
        self.begun = (0, blake3::Hasher::new());
        self.give(Task::Write(Vec::new()));
    }

    /// Takes a block; true if there is room for another one.
    pub fn write(&mut self, block: &[u8]) -> bool {
        if !block.is_empty() {
            self.give(Task::Write(block.to_vec()));
        }
        self.has_room()
    }

    /// Asks for everything to be kept for good. To be called when there is room.
    pub fn keep(&mut self) {
        self.give(Task::Keep);
    }

    fn give(&mut self, task: Task) {
        debug_assert!(self.waiting.is_none(), "there is room");
        // if the thread has ended, `ended` says why
        if let Some(Err(TrySendError::Full(task))) = self.tasks.as_ref().map(|t| t.try_send(task)) {
            self.waiting = Some(task);
        }
    }

    /// Whether another block can be taken.
    pub fn has_room(&mut self) -> bool {
        if let Some(task) = self.waiting.take() {
            self.give(task);
        }
        self.waiting.is_none()
    }

    /// How writing ended, if it has: well after [`keep`](Sink::keep), or with an error at any time.
    pub fn ended(&mut self) -> Option<io::Result<()>> {
        self.has_room();
        match self.done.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(io::Error::other("the writing thread has ended"))),
        }
    }
}

impl Drop for Sink {
    /// What was taken is written.
    fn drop(&mut self) {
        if let (Some(task), Some(tasks)) = (self.waiting.take(), &self.tasks) {
            let _ = tasks.send(task);
        }
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What can begin anew.
trait Restart {
    fn restart(&mut self) -> io::Result<()>;
}

impl Restart for File {
    fn restart(&mut self) -> io::Result<()> {
        self.set_len(0)?;
        self.seek(SeekFrom::Start(0)).map(|_| ())
    }
}

impl Restart for io::Stdout {
    fn restart(&mut self) -> io::Result<()> {
        Ok(()) // nothing was there before
    }
}

/// Adds the next octets of a file, `most` at most, to a digest; tells how many there were.
///
/// # Errors
/// The file cannot be read.
pub fn digest_of(file: &mut File, most: u64, hasher: &mut blake3::Hasher) -> io::Result<u64> {
    let mut octets = vec![0; 1 << 16];
    let mut all = 0;
    while all < most {
        let wanted = usize::try_from(most - all)
            .unwrap_or(usize::MAX)
            .min(octets.len());
        let n = file.read(&mut octets[..wanted])?;
        if n == 0 {
            break;
        }
        hasher.update(&octets[..n]);
        all += n as u64;
    }
    Ok(all)
}

/// The digest so far.
pub fn digest(hasher: &blake3::Hasher) -> Digest {
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere() {
        for bad in ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", "a\0", "a\nb"] {
            assert_eq!(safe_name(bad), None, "{bad:?}");
        }
        for good in ["a", "a b.txt", "..a", "ä"] {
            assert_eq!(safe_name(good), Some(good));
        }
    }
}
