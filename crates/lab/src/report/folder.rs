//! The output folder of a run: `result.json` and whatever else the run writes, each file complete or absent.
//!
//! Files are written beside their place and renamed into it, so that a reader never sees half of one.
//! `result.json` exists from the first moment with the status `running`: a run that is killed leaves that, an
//! interrupted one leaves its numbers so far with the status `interrupted`. Where a complete result is to stay until there
//! is another one ([`Folder::keeping`]), the run writes beside it, to [`PARTIAL`].

use std::fs::{self, File, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the result inside the folder.
pub const RESULT: &str = "result.json";
/// Name of the capture inside the folder.
pub const AIR: &str = "air.pcapng";
/// Name of the trace inside the folder.
pub const TIMELINE: &str = "timeline.perfetto-trace";
/// Name of the page inside the folder.
pub const REPORT: &str = "report.html";
/// Name of the folder, inside the folder, for a run beside a complete result.
pub const PARTIAL: &str = "partial";
/// Extension of sample files.
pub const SAMPLES_EXTENSION: &str = "parquet";

/// First member of every `result.json`; the number grows when the meaning of a member changes.
const FORMAT: &str = "sdmac-result/1";
const FORMAT_FAMILY: &str = "sdmac-result/";

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It runs, or it was killed.
    Running,
    /// It was stopped early; the numbers cover what was done until then.
    Interrupted,
    /// It came to its end.
    Complete,
}

/// Why the folder or a file in it cannot be written. The text is one sentence for the command line.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The path names a file.
    #[error("{} is a file, not a folder: choose another folder", .0.display())]
    NotAFolder(PathBuf),
    /// There are files that no run of ours has left.
    #[error("{} has files that are not an older result: choose another folder, or add --force to write there", .0.display())]
    NotEmpty(PathBuf),
    /// Another process holds the folder.
    #[error("another run is writing to {}: wait for its end or choose another folder", .0.display())]
    InUse(PathBuf),
    /// The operating system refused.
    #[error("cannot write {}: {source}{}", .path.display(), advice(.source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

impl FolderError {
    /// An error of the operating system at `path`.
    pub fn io(path: impl Into<PathBuf>, source: io::Error) -> Self {
        FolderError::Io {
            path: path.into(),
            source,
        }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free some space, or choose a folder on another disk"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": choose a folder that you may write to"
        }
        _ => "",
    }
}

/// An output folder, held by this process alone.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Open for as long as the lock is held, and for the sync of renames.
    handle: File,
    /// It holds a complete result of another run, which is to stay.
    keeps: bool,
}

impl Folder {
    /// Creates the folder with its parents and writes a first `result.json` with the status `running`.
    ///
    /// A folder that exists must be empty or hold an older result, whose files are then removed; `force` allows
    /// any other as well, and removes nothing but files that are replaced.
    pub fn create(path: impl Into<PathBuf>, force: bool) -> Result<Self, FolderError> {
        Folder::open(path.into(), force, false)
    }

    /// As [`create`](Folder::create), but a complete result that is there stays as it is until there is
    /// another one: see [`keeps`](Folder::keeps).
    pub fn keeping(path: impl Into<PathBuf>, force: bool) -> Result<Self, FolderError> {
        Folder::open(path.into(), force, true)
    }

    fn open(path: PathBuf, force: bool, keeping: bool) -> Result<Self, FolderError> {
        let failed = |source| FolderError::io(&path, source);
        if path.is_file() {
            return Err(FolderError::NotAFolder(path));
        }
        fs::create_dir_all(&path).map_err(failed)?;
        let handle = File::open(&path).map_err(failed)?;
        match handle.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FolderError::InUse(path)),
            // file systems without locks: go on without
            Err(TryLockError::Error(_)) => {}
        }
        let names = entries(&path).map_err(failed)?;
        let head = head(&path.join(RESULT));
        if head.is_none() && !force && names.iter().any(|name| !is_temporary(name)) {
            return Err(FolderError::NotEmpty(path));
        }
        let keeps = keeping && head.as_ref().is_some_and(|h| h.status == Some(Status::Complete));
        let folder = Folder { path, handle, keeps };
        if !keeps {
            folder.begin(head)?;
        }
        Ok(folder)
    }

    /// Removes what belongs to an older result, and says that there is a run.
    fn begin(&self, older: Option<Head>) -> Result<(), FolderError> {
        if let Some(Head { figures, .. }) = older {
            let names = entries(&self.path).map_err(|source| FolderError::io(&self.path, source))?;
            for name in names.iter().filter(|n| is_ours(n) || figures.contains(n)) {
                let file = self.path.join(name);
                fs::remove_file(&file).map_err(|source| FolderError::io(file, source))?;
            }
        }
        #[derive(Serialize)]
        struct Nothing {}
        self.publish(Status::Running, &Nothing {})
    }

    /// Whether a complete result of another run is there, and stays: what is new belongs [`beside`](Folder::beside) it.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    /// The folder [`PARTIAL`] inside, for a run that may not come to its end.
    pub fn beside(&self) -> Result<Folder, FolderError> {
        Folder::create(self.path.join(PARTIAL), true)
    }

    /// Puts a complete result from [`beside`](Folder::beside) in the place of the older one, of which nothing stays.
    pub fn take(&self, whole: Folder) -> Result<(), FolderError> {
        self.begin(head(&self.path.join(RESULT)))?;
        let figures = head(&whole.path.join(RESULT)).map_or(Vec::new(), |h| h.figures);
        let names = entries(&whole.path).map_err(|source| FolderError::io(&whole.path, source))?;
        let is_new = |n: &String| n != RESULT && (is_ours(n) || figures.contains(n));
        for name in names
            .iter()
            .filter(|n| is_new(n))
            .map(String::as_str)
            .chain([RESULT])
        {
            let to = self.path.join(name);
            fs::rename(whole.path.join(name), &to).map_err(|source| FolderError::io(to, source))?;
        }
        // as in `commit`; what is not of the run stays
        let _ = self.handle.sync_all();
        let _ = fs::remove_dir(&whole.path);
        Ok(())
    }

    /// Where the folder is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces `result.json`: the members `format` and `status`, then those of `body`, which must be a struct or
    /// a map and have no such members itself.
    ///
    /// # Panics
    /// When `body` is not a struct or map.
    pub fn publish(&self, status: Status, body: &impl Serialize) -> Result<(), FolderError> {
        #[derive(Serialize)]
        struct Envelope<'a, T> {
            format: &'static str,
            status: Status,
            #[serde(flatten)]
            body: &'a T,
        }
        let envelope = Envelope {
            format: FORMAT,
            status,
            body,
        };
        let mut text = serde_json::to_vec_pretty(&envelope).expect("a result is a struct of plain values");
        text.push(b'\n');
        self.write(RESULT, &text)
    }

    /// Writes a whole file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let mut file = self.file(name)?;
        let written = file.write_all(bytes);
        written.map_err(|source| FolderError::io(self.path.join(name), source))?;
        self.commit(file)
    }

    /// Opens a file for writing piece by piece. It takes its place in [`Folder::commit`]; dropped before that, it
    /// vanishes.
    ///
    /// # Panics
    /// When `name` is not a plain file name.
    pub fn file(&self, name: &str) -> Result<AtomicFile, FolderError> {
        assert!(
            Path::new(name).file_name() == Some(name.as_ref()) && !name.starts_with('.'),
            "{name:?} is not a plain file name"
        );
        AtomicFile::create(self.path.join(name))
    }

    /// Puts a finished file in its place, safe against power loss.
    pub fn commit(&self, file: AtomicFile) -> Result<(), FolderError> {
        file.commit()?;
        // Some file systems cannot sync a folder; the file itself is safe by then.
        let _ = self.handle.sync_all();
        Ok(())
    }
}

/// A file that appears under its name only when it is complete. Buffered.
#[derive(Debug)]
pub struct AtomicFile {
    file: BufWriter<File>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Opens `.NAME.tmp` in the folder of `target`.
    pub fn create(target: impl Into<PathBuf>) -> Result<Self, FolderError> {
        let target = target.into();
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let temporary = target.with_file_name(format!(".{name}.tmp"));
        match File::create(&temporary) {
            Ok(file) => Ok(AtomicFile {
                file: BufWriter::with_capacity(1 << 16, file),
                temporary,
                target,
            }),
            Err(source) => Err(FolderError::io(target, source)),
        }
    }

    /// Writes what is buffered to the disk and renames the file to its name.
    pub fn commit(mut self) -> Result<(), FolderError> {
        let done = (self.file.flush())
            .and_then(|()| self.file.get_ref().sync_all())
            .and_then(|()| fs::rename(&self.temporary, &self.target));
        done.map_err(|source| FolderError::io(&self.target, source))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After a commit there is nothing left under this name.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Writes a whole file at any place, an older one stays as it is until the new one is complete. What is no ordinary
/// file, such as `/dev/stdout`, is written as it is; of a symbolic link the file behind it is replaced.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FolderError> {
    let failed = |source| FolderError::io(path, source);
    if fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        return fs::write(path, bytes).map_err(failed);
    }
    let behind = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut file = AtomicFile::create(behind)?;
    file.write_all(bytes).map_err(failed)?;
    file.commit()
}

fn entries(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn is_temporary(name: &str) -> bool {
    name.strip_prefix('.')
        .and_then(|n| n.strip_suffix(".tmp"))
        .is_some_and(is_ours)
}

fn is_ours(name: &str) -> bool {
    let samples = Path::new(name)
        .extension()
        .is_some_and(|e| e == SAMPLES_EXTENSION);
    [RESULT, AIR, TIMELINE, REPORT].contains(&name) || samples || is_temporary(name)
}

/// What of a `result.json` says what to do with it.
#[derive(Deserialize)]
struct Head {
    format: String,
    status: Option<Status>,
    /// Files beside it that have no fixed names.
    #[serde(default)]
    figures: Vec<String>,
}

/// That of a `result.json` of any version of ours; of another file none.
fn head(path: &Path) -> Option<Head> {
    let file = File::open(path).ok()?;
    let head: Head = serde_json::from_reader(io::BufReader::new(file)).ok()?;
    head.format.starts_with(FORMAT_FAMILY).then_some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Body {
        seed: u64,
    }

    fn result(folder: &Path) -> serde_json::Value {
        serde_json::from_slice(&fs::read(folder.join(RESULT)).unwrap()).unwrap()
    }

    #[test]
    fn running_until_published() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b");
        let folder = Folder::create(&path, false).unwrap();
        assert_eq!(result(&path)["status"], "running");
        folder.publish(Status::Interrupted, &Body { seed: 7 }).unwrap();
        assert_eq!(result(&path)["status"], "interrupted");
        assert_eq!(result(&path)["seed"], 7);
        assert_eq!(result(&path)["format"], FORMAT);
    }

    #[test]
    fn an_older_result_makes_room_and_strangers_stay() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(dir.path(), false).unwrap();
        folder.write("samples.parquet", b"old").unwrap();
        fs::write(dir.path().join("my notes.txt"), "keep").unwrap();
        drop(folder);
        Folder::create(dir.path(), false).unwrap();
        assert_eq!(entries(dir.path()).unwrap(), ["my notes.txt", RESULT]);
    }

    /// What is of the older one: its result, its page, and the figures that it names.
    fn older(path: &Path, status: Status) {
        #[derive(Serialize)]
        struct Figures {
            figures: [&'static str; 2],
        }
        let folder = Folder::create(path, true).unwrap();
        for name in [REPORT, "a.svg", "b.svg"] {
            folder.write(name, b"old").unwrap();
        }
        fs::write(path.join("mine.svg"), "keep").unwrap();
        let figures = ["a.svg", "b.svg"];
        folder.publish(status, &Figures { figures }).unwrap();
    }

    #[test]
    fn a_complete_result_stays_until_there_is_another_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        let all = ["a.svg", "b.svg", "mine.svg", REPORT, RESULT];
        older(path, Status::Complete);
        let folder = Folder::keeping(path, false).unwrap();
        assert!(folder.keeps());
        assert!(matches!(Folder::keeping(path, true), Err(FolderError::InUse(_))));
        assert_eq!(entries(path).unwrap(), all);
        for status in [Status::Interrupted, Status::Complete] {
            let beside = folder.beside().unwrap();
            beside.write(REPORT, b"new").unwrap();
            beside.publish(status, &Body { seed: 7 }).unwrap();
            assert_eq!(result(path)["status"], "complete");
            assert_eq!(fs::read(path.join(REPORT)).unwrap(), b"old");
            if status == Status::Complete {
                folder.take(beside).unwrap();
            }
        }
        assert_eq!(entries(path).unwrap(), ["mine.svg", REPORT, RESULT]);
        assert_eq!(result(path)["seed"], 7);
        assert_eq!(fs::read(path.join(REPORT)).unwrap(), b"new");
    }

    #[test]
    fn an_incomplete_result_gives_way_with_its_figures() {
        let dir = tempfile::tempdir().unwrap();
        older(dir.path(), Status::Interrupted);
        assert!(!Folder::keeping(dir.path(), false).unwrap().keeps());
        assert_eq!(entries(dir.path()).unwrap(), ["mine.svg", RESULT]);
        older(dir.path(), Status::Complete);
        assert!(!Folder::create(dir.path(), false).unwrap().keeps());
        assert_eq!(entries(dir.path()).unwrap(), ["mine.svg", RESULT]);
    }

    #[test]
    fn strangers_need_force() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("thesis.tex", "x"), (RESULT, "{\"format\": \"other\"}")] {
            let path = dir.path().join(name.replace('.', "-"));
            fs::create_dir(&path).unwrap();
            fs::write(path.join(name), text).unwrap();
            let error = Folder::create(&path, false).unwrap_err();
            assert!(matches!(error, FolderError::NotEmpty(_)), "{error}");
            // Of some commands the folder is that of --report.
            let text = error.to_string();
            assert!(text.contains("--force") && !text.contains("--out"), "{text}");
            Folder::create(&path, true).unwrap();
            assert!(path.join(name).exists());
        }
    }

    #[test]
    fn one_writer_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Folder::create(dir.path(), false).unwrap();
        assert!(matches!(
            Folder::create(dir.path(), true).unwrap_err(),
            FolderError::InUse(_)
        ));
        drop(first);
        Folder::create(dir.path(), false).unwrap();
    }

    #[test]
    fn unfinished_files_vanish() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(dir.path(), false).unwrap();
        let mut file = folder.file(AIR).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(entries(dir.path()).unwrap(), [RESULT]);
        let mut file = folder.file(AIR).unwrap();
        file.write_all(b"whole").unwrap();
        folder.commit(file).unwrap();
        assert_eq!(fs::read(dir.path().join(AIR)).unwrap(), b"whole");
    }

    #[test]
    #[should_panic(expected = "not a plain file name")]
    fn names_stay_inside() {
        let dir = tempfile::tempdir().unwrap();
        let _ = Folder::create(dir.path(), false).unwrap().file("../x");
    }

    #[test]
    fn unwritable_places() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = Folder::create(&file, true).unwrap_err();
        assert!(matches!(error, FolderError::NotAFolder(_)), "{error}");
        let error = Folder::create(file.join("below"), true).unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
        // holds for root as well
        let error = Folder::create("/proc/self/out", false).unwrap_err();
        assert!(matches!(error, FolderError::Io { .. }), "{error}");
    }

    #[test]
    fn replacing_keeps_links_and_devices() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        replace(&file, b"first").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        replace(&link, b"second").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"second");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(entries(dir.path()).unwrap(), ["file", "link"]);
        replace(Path::new("/dev/null"), b"gone").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let error = replace(&dir.path().join("no/file"), b"x").unwrap_err();
        assert!(error.to_string().starts_with("cannot write "), "{error}");
    }

    /// `/dev/full` answers every write with ENOSPC.
    #[test]
    fn a_full_disk_is_named() {
        let Ok(full) = File::options().write(true).open("/dev/full") else {
            eprintln!("skipped: no /dev/full here");
            return;
        };
        let dir = tempfile::tempdir().unwrap();
        let mut file = AtomicFile::create(dir.path().join(AIR)).unwrap();
        file.file = BufWriter::with_capacity(16, full);
        let error = file.write_all(&[0; 64]).unwrap_err();
        let text = FolderError::io(dir.path().join(AIR), error).to_string();
        assert!(
            text.contains("air.pcapng") && text.contains("free some space"),
            "{text}"
        );
        file.file = BufWriter::new(File::options().write(true).open("/dev/full").unwrap());
        file.write_all(b"small").unwrap();
        let text = file.commit().unwrap_err().to_string();
        assert!(
            text.contains("No space left") && text.contains("free some space"),
            "{text}"
        );
        assert!(entries(dir.path()).unwrap().is_empty());
    }
}
