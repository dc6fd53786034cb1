//! Where received octets go: a thread writes and reads them, so that a slow disk, a full pipe or a long file slows the connection
//! down and does not stop it. Files are written under another name until they are whole.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::message::{Digest, MAX_NAME_OCTETS};
use crate::plain::is_plain;

/// Tasks that wait to be done.
const BEHIND: usize = 16;
/// What the name of a part begins and ends with.
const PART: (&str, &str) = (".", ".sdmac-part");

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

/// A name that is safe to use in a folder; `None` for one that leads elsewhere, and for hidden ones, which programs take for their
/// settings. Nor is one that does not show as what it is.
pub fn safe_name(name: &str) -> Option<&str> {
    let plain = !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(['/', '\\'])
        && name.chars().all(is_plain);
    plain.then_some(name)
}

/// The file of what has arrived so far. A name that leaves no room for the rest is cut, and its digest stands for it.
fn part_of(folder: &Path, name: &str) -> PathBuf {
    let room = MAX_NAME_OCTETS - PART.0.len() - PART.1.len();
    let short = if name.len() <= room {
        name.to_owned()
    } else {
        let digest = blake3::hash(name.as_bytes()).to_hex();
        let end = name.floor_char_boundary(room - digest.len());
        format!("{}{digest}", &name[..end])
    };
    folder.join(format!("{}{short}{}", PART.0, PART.1))
}

#[derive(Debug)]
enum Task {
    Write(Vec<u8>),
    /// What was there before is thrown away.
    Restart,
    /// Everything is written, and has this digest: make it last, under its own name.
    Keep(Digest),
}

/// What a sink tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// The first news: octets that were there before, and their digest.
    Begun(u64, Digest),
    /// The last news, after [`Sink::keep`]: whether everything has the digest that it should have, and so was kept.
    Kept(bool),
}

/// See the [module](self).
#[derive(Debug)]
pub struct Sink {
    /// `None` when the sink is dropped.
    tasks: Option<SyncSender<Task>>,
    thread: Option<thread::JoinHandle<()>>,
    told: Receiver<io::Result<News>>,
    /// What did not find room.
    waiting: Option<Task>,
    /// Nobody waits for a digest any more.
    dropped: Arc<AtomicBool>,
}

impl Sink {
    /// Opens the place for content of this name. If a part of it is there, that is read and kept. Nobody else can open it until
    /// the sink is dropped.
    ///
    /// # Errors
    /// One sentence for the sender.
    pub fn open(place: &Place, name: &str) -> Result<Sink, String> {
        match place {
            Place::Stdout => {
                let mut sink = Sink::new(Standard(blake3::Hasher::new()));
                // nobody knows when a pipe will be read
                sink.thread = None;
                Ok(sink)
            }
            Place::Folder { path, replace } => {
                let name = safe_name(name)
                    .ok_or("its name is not that of a file in a folder, or begins with a dot: give another with --name")?;
                let whole = path.join(name);
                if whole.exists() && !replace {
                    return Err(format!("there is a file '{name}' already"));
                }
                Ok(Sink::new(Part::open(part_of(path, name), whole, *replace)?))
            }
        }
    }

    fn new(mut store: impl Store) -> Sink {
        let (tasks, take) = sync_channel::<Task>(BEHIND);
        let (tell, told) = sync_channel(2);
        let dropped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&dropped);
        let thread = thread::spawn(move || {
            // who does not hear it has gone
            if let Err(e) = work(&mut store, &take, &tell, &stop) {
                let _ = tell.send(Err(e));
            }
        });
        Sink {
            tasks: Some(tasks),
            thread: Some(thread),
            told,
            waiting: None,
            dropped,
        }
    }

    /// Throws away what was there before.
    pub fn restart(&mut self) {
        self.give(Task::Restart);
    }

    /// Takes a block; true if there is room for another one.
    pub fn write(&mut self, block: &[u8]) -> bool {
        if !block.is_empty() {
            self.give(Task::Write(block.to_vec()));
        }
        self.has_room()
    }

    /// Asks for everything to be kept for good, if it has this digest, and to be thrown away if not. To be called when there is
    /// room.
    pub fn keep(&mut self, digest: Digest) {
        self.give(Task::Keep(digest));
    }

    fn give(&mut self, task: Task) {
        debug_assert!(self.waiting.is_none(), "there is room");
        // if the thread has ended, `news` says why
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

    /// What there is to tell, once each.
    ///
    /// # Errors
    /// It cannot be read or written; nothing comes after that.
    pub fn news(&mut self) -> io::Result<Option<News>> {
        self.has_room();
        match self.told.try_recv() {
            Ok(news) => news.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(io::Error::other("the writing thread has ended")),
        }
    }
}

impl Drop for Sink {
    /// What was taken is written.
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
        if let (Some(task), Some(tasks)) = (self.waiting.take(), &self.tasks) {
            let _ = tasks.send(task);
        }
        self.tasks = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread does.
fn work(
    store: &mut impl Store,
    tasks: &Receiver<Task>,
    tell: &SyncSender<io::Result<News>>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let (octets, digest) = store.begin(stop)?;
    let _ = tell.send(Ok(News::Begun(octets, digest)));
    for task in tasks {
        match task {
            Task::Write(octets) => store.write(&octets)?,
            Task::Restart => store.restart()?,
            Task::Keep(digest) => {
                let kept = store.keep(&digest, stop)?;
                let _ = tell.send(Ok(News::Kept(kept)));
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What can be written to.
trait Store: Send + 'static {
    /// Octets that are there, and their digest.
    fn begin(&mut self, stop: &AtomicBool) -> io::Result<(u64, Digest)>;
    fn restart(&mut self) -> io::Result<()>;
    fn write(&mut self, octets: &[u8]) -> io::Result<()>;
    /// Makes it last, if it has this digest.
    fn keep(&mut self, digest: &Digest, stop: &AtomicBool) -> io::Result<bool>;
}

/// A file under another name; ours as long as it is open.
struct Part {
    file: File,
    path: PathBuf,
    whole: PathBuf,
    /// Whether it may take the place of a file.
    replace: bool,
}

impl Part {
    fn open(path: PathBuf, whole: PathBuf, replace: bool) -> Result<Part, String> {
        let wrong = |e: io::Error| format!("{}: {e}", path.display());
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(wrong)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(format!("another program writes {}", path.display()));
                }
                Err(TryLockError::Error(e)) => return Err(wrong(e)),
            }
            let ours = file.metadata().map_err(wrong)?;
            if !ours.is_file() {
                return Err(format!("{} is no file", path.display()));
            }
            // before it was locked, another one may have given it its last name
            let there = std::fs::metadata(&path);
            if there.is_ok_and(|there| (there.dev(), there.ino()) == (ours.dev(), ours.ino())) {
                return Ok(Part {
                    file,
                    path,
                    whole,
                    replace,
                });
            }
        }
    }

    /// Gives it its own name.
    fn rename(&self) -> io::Result<()> {
        if self.replace {
            return std::fs::rename(&self.path, &self.whole);
        }
        let taken = || {
            let (part, name) = (self.path.display(), self.whole.display());
            io::Error::other(format!(
                "{name} has come up meanwhile; what was sent is kept as {part}"
            ))
        };
        match renameat_with(CWD, &self.path, CWD, &self.whole, RenameFlags::NOREPLACE) {
            // a file system without such a thing
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if !self.whole.exists() => {
                std::fs::rename(&self.path, &self.whole)
            }
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(taken()),
            end => Ok(end?),
        }
    }

    fn digest(&mut self, stop: &AtomicBool) -> io::Result<(u64, Digest)> {
        let mut hasher = blake3::Hasher::new();
        self.file.seek(SeekFrom::Start(0))?;
        let octets = digest_of(&mut self.file, u64::MAX, &mut hasher, || {
            stop.load(Ordering::Relaxed)
        })?;
        Ok((octets, digest(&hasher)))
    }
}

impl Store for Part {
    fn begin(&mut self, stop: &AtomicBool) -> io::Result<(u64, Digest)> {
        self.digest(stop)
    }
    fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0)).map(|_| ())
    }
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.file.write_all(octets)
    }
    fn keep(&mut self, digest: &Digest, stop: &AtomicBool) -> io::Result<bool> {
        self.file.sync_all()?;
        if self.digest(stop)?.1 != *digest {
            // what is wrong must not be gone on from
            self.restart()?;
            return Ok(false);
        }
        self.rename()?;
        Ok(true)
    }
}

/// Standard output, and the digest of what has gone there.
struct Standard(blake3::Hasher);

impl Store for Standard {
    fn begin(&mut self, _: &AtomicBool) -> io::Result<(u64, Digest)> {
        Ok((0, digest(&self.0)))
    }
    fn restart(&mut self) -> io::Result<()> {
        Ok(()) // nothing was there before
    }
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        self.0.update(octets);
        // whoever reads it does not have to wait for the end of a line
        let mut out = io::stdout().lock();
        out.write_all(octets).and_then(|()| out.flush())
    }
    fn keep(&mut self, theirs: &Digest, _: &AtomicBool) -> io::Result<bool> {
        Ok(digest(&self.0) == *theirs)
    }
}

/// Adds the next octets of a file, `most` at most, to a digest; tells how many there were.
///
/// # Errors
/// The file cannot be read, or `stop` says that nobody waits for it any more.
pub(crate) fn digest_of(
    file: &mut File,
    most: u64,
    hasher: &mut blake3::Hasher,
    stop: impl Fn() -> bool,
) -> io::Result<u64> {
    let mut octets = vec![0; 1 << 16];
    let mut all = 0;
    while all < most {
        if stop() {
            return Err(io::Error::other("stopped"));
        }
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
pub(crate) fn digest(hasher: &blake3::Hasher) -> Digest {
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(place: &Place, name: &str) -> Result<Sink, String> {
        Sink::open(place, name)
    }

    fn next(sink: &mut Sink) -> io::Result<News> {
        loop {
            if let Some(news) = sink.news()? {
                return Ok(news);
            }
            thread::yield_now();
        }
    }

    fn digest_of_all(octets: &[u8]) -> Digest {
        *blake3::hash(octets).as_bytes()
    }

    fn folder(dir: &tempfile::TempDir) -> Place {
        Place::Folder {
            path: dir.path().to_owned(),
            replace: false,
        }
    }

    #[test]
    fn a_part_has_one_writer_and_is_gone_on_with() {
        let dir = tempfile::tempdir().unwrap();
        let place = folder(&dir);
        let mut first = open(&place, "x").unwrap();
        assert_eq!(next(&mut first).unwrap(), News::Begun(0, digest_of_all(b"")));
        first.write(b"abc");
        let refused = open(&place, "x").unwrap_err();
        assert!(refused.contains("another program writes"), "{refused}");
        open(&place, "y").unwrap();
        drop(first);
        let mut second = open(&place, "x").unwrap();
        assert_eq!(next(&mut second).unwrap(), News::Begun(3, digest_of_all(b"abc")));
        second.write(b"d");
        second.keep(digest_of_all(b"abcd"));
        assert_eq!(next(&mut second).unwrap(), News::Kept(true));
        assert_eq!(std::fs::read(dir.path().join("x")).unwrap(), b"abcd");
    }

    /// What somebody has put there while it came is theirs, and what came is not lost.
    #[test]
    fn a_file_that_comes_up_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let [name, part] = ["x", ".x.sdmac-part"].map(|name| dir.path().join(name));
        let receive = |place: &Place| {
            let mut sink = open(place, "x").unwrap();
            next(&mut sink).unwrap();
            sink.restart();
            sink.write(b"abc");
            std::fs::write(&name, b"my own work").unwrap();
            sink.keep(digest_of_all(b"abc"));
            next(&mut sink)
        };
        let why = receive(&folder(&dir)).unwrap_err().to_string();
        assert!(
            why.contains("has come up meanwhile") && why.contains(".x.sdmac-part"),
            "{why}"
        );
        assert_eq!(std::fs::read(&name).unwrap(), b"my own work");
        assert_eq!(std::fs::read(&part).unwrap(), b"abc");
        std::fs::remove_file(&name).unwrap();
        let place = Place::Folder {
            path: dir.path().to_owned(),
            replace: true,
        };
        assert_eq!(receive(&place).unwrap(), News::Kept(true));
        assert_eq!(std::fs::read(&name).unwrap(), b"abc", "it was asked for");
    }

    #[test]
    fn what_is_wrong_is_thrown_away() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = open(&folder(&dir), "x").unwrap();
        next(&mut sink).unwrap();
        sink.write(b"abc");
        sink.keep(digest_of_all(b"abd"));
        assert_eq!(next(&mut sink).unwrap(), News::Kept(false));
        assert_eq!(
            std::fs::metadata(dir.path().join(".x.sdmac-part")).unwrap().len(),
            0
        );
        assert!(!dir.path().join("x").exists());
    }

    /// Names as long as a file system allows have parts, too, each its own.
    #[test]
    fn parts_of_long_names() {
        let dir = tempfile::tempdir().unwrap();
        let place = folder(&dir);
        let names = [
            "a".repeat(243),
            "a".repeat(244),
            "a".repeat(255),
            format!("a{}", "ü".repeat(127)),
        ];
        let mut sinks = names.each_ref().map(|name| open(&place, name).unwrap());
        for (sink, name) in sinks.iter_mut().zip(&names) {
            next(sink).unwrap();
            sink.write(name.as_bytes());
            sink.keep(digest_of_all(name.as_bytes()));
            assert_eq!(next(sink).unwrap(), News::Kept(true));
            assert_eq!(std::fs::read(dir.path().join(name)).unwrap(), name.as_bytes());
        }
    }

    #[test]
    fn names_that_lead_elsewhere() {
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "a\0",
            "a\nb",
            "a\u{202e}b",
        ] {
            assert_eq!(safe_name(bad), None, "{bad:?}");
        }
        for hidden in [".bashrc", "..a", ".x.sdmac-part"] {
            assert_eq!(safe_name(hidden), None, "{hidden:?}");
        }
        for good in ["a", "a b.txt", "a..", "ä"] {
            assert_eq!(safe_name(good), Some(good));
        }
    }
}
