//! Where received octets go: a thread writes and reads them, so that a slow disk, a full pipe or a long file slows the connection
//! down and does not stop it. Files are written under another name until they are whole.

mod store;

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread;

use crate::message::Digest;
use crate::plain::is_plain;
use store::{Part, Standard, Store, part_of};

/// Tasks that wait to be done.
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

/// A name that is safe to use in a folder; `None` for one that leads elsewhere, and for hidden ones, which programs take for their
/// settings. Nor is one that does not show as what it is.
pub fn safe_name(name: &str) -> Option<&str> {
    let plain = !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(['/', '\\'])
        && name.chars().all(is_plain);
    plain.then_some(name)
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
    written: Arc<AtomicU64>,
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
                let mut sink = Sink::new(Standard::default());
                // nobody knows when a pipe will be read
                sink.thread = None;
                Ok(sink)
            }
            Place::Folder { path, replace } => {
                let name = safe_name(name)
                    .ok_or("its name is not that of a file in a folder, or begins with a dot: give another with --name")?;
                let whole = path.join(name);
                // a link that leads nowhere is there, too
                match whole.symlink_metadata() {
                    Ok(there) if there.is_dir() => return Err(format!("there is a folder '{name}'")),
                    Ok(_) if !replace => return Err(format!("there is a file '{name}' already")),
                    _ => {}
                }
                Ok(Sink::new(Part::open(part_of(path, name), whole, *replace)?))
            }
        }
    }

    fn new(mut store: impl Store) -> Sink {
        let (tasks, take) = sync_channel::<Task>(BEHIND);
        let (tell, told) = sync_channel(2);
        let written = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&written);
        let dropped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&dropped);
        let thread = thread::spawn(move || {
            // who does not hear it has gone
            if let Err(e) = work(&mut store, &take, &tell, &count, &stop) {
                let _ = tell.send(Err(e));
            }
        });
        Sink {
            tasks: Some(tasks),
            thread: Some(thread),
            told,
            written,
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

    /// Octets that are written, of those that were given. They are the last when the sink has been dropped; those for
    /// standard output may become more.
    pub fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
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
    written: &AtomicU64,
    stop: &AtomicBool,
) -> io::Result<()> {
    let (octets, digest) = store.begin(stop)?;
    let _ = tell.send(Ok(News::Begun(octets, digest)));
    for task in tasks {
        match task {
            Task::Write(octets) => write_all(store, &octets, written)?,
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

/// Writes all of it, and counts what is written even if not all can be.
fn write_all(store: &mut impl Store, octets: &[u8], written: &AtomicU64) -> io::Result<()> {
    let mut rest = octets;
    while !rest.is_empty() {
        match store.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                rest = &rest[n..];
                written.fetch_add(n as u64, Ordering::Relaxed);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
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

    #[test]
    fn what_is_in_the_way_is_told_before_anything_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("folder")).unwrap();
        std::fs::write(at("file"), "7").unwrap();
        std::os::unix::fs::symlink("nowhere", at("link")).unwrap();
        for (replace, name, why) in [
            (false, "folder", Some("there is a folder 'folder'")),
            (true, "folder", Some("there is a folder 'folder'")),
            (false, "file", Some("there is a file 'file' already")),
            (false, "link", Some("there is a file 'link' already")),
            (true, "file", None),
            (true, "link", None),
        ] {
            let path = folder.path().to_owned();
            let refused = open(&Place::Folder { path, replace }, name).err();
            assert_eq!(refused.as_deref(), why, "{name}");
        }
    }

    /// A disk for so many octets.
    struct Full(u64);

    impl Store for Full {
        fn begin(&mut self, _: &AtomicBool) -> io::Result<(u64, Digest)> {
            Ok((0, digest_of_all(b"")))
        }
        fn restart(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            let n = self.0.min(octets.len() as u64);
            self.0 -= n;
            if n == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Ok(n as usize)
        }
        fn keep(&mut self, _: &Digest, _: &AtomicBool) -> io::Result<bool> {
            Ok(true)
        }
    }

    /// A disk that is slow to read what was written, until somebody says that it has.
    struct Slow(Receiver<()>);

    impl Store for Slow {
        fn begin(&mut self, _: &AtomicBool) -> io::Result<(u64, Digest)> {
            Ok((0, digest_of_all(b"")))
        }
        fn restart(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            Ok(octets.len())
        }
        fn keep(&mut self, _: &Digest, stop: &AtomicBool) -> io::Result<bool> {
            while !stop.load(Ordering::Relaxed) {
                if self.0.recv_timeout(std::time::Duration::from_millis(1)).is_ok() {
                    return Ok(true);
                }
            }
            Err(io::Error::other("stopped"))
        }
    }

    impl Sink {
        /// A sink that has kept everything as soon as it is told so.
        pub fn verified_when(told: Receiver<()>) -> Sink {
            Sink::new(Slow(told))
        }

        /// A sink whose disk has room for so many octets.
        pub fn full_after(octets: u64) -> Sink {
            Sink::new(Full(octets))
        }
    }

    #[test]
    fn what_a_full_disk_has_taken_is_counted() {
        let mut sink = Sink::full_after(100);
        let written = sink.written();
        next(&mut sink).unwrap();
        sink.write(&[0; 64]);
        sink.write(&[0; 64]);
        assert_eq!(next(&mut sink).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(written.load(Ordering::Relaxed), 100);
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
