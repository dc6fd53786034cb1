//! What a sink writes to: a file under another name until it is whole, or standard output.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::{digest, digest_of};
use crate::message::{Digest, MAX_NAME_OCTETS};

/// What the name of a part begins and ends with.
const PART: (&str, &str) = (".", ".sdmac-part");

/// The file of what has arrived so far. A name that leaves no room for the rest is cut, and its digest stands for it.
pub(super) fn part_of(folder: &Path, name: &str) -> PathBuf {
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

/// What can be written to.
pub(super) trait Store: Send + 'static {
    /// Octets that are there, and their digest.
    fn begin(&mut self, stop: &AtomicBool) -> io::Result<(u64, Digest)>;
    fn restart(&mut self) -> io::Result<()>;
    /// Writes the first of these octets; tells how many.
    fn write(&mut self, octets: &[u8]) -> io::Result<usize>;
    /// Makes it last, if it has this digest.
    fn keep(&mut self, digest: &Digest, stop: &AtomicBool) -> io::Result<bool>;
}

/// A file under another name; ours as long as it is open.
pub(super) struct Part {
    file: File,
    path: PathBuf,
    whole: PathBuf,
    /// Whether it may take the place of a file.
    replace: bool,
}

impl Part {
    pub fn open(path: PathBuf, whole: PathBuf, replace: bool) -> Result<Part, String> {
        let leads_elsewhere = |what: &str| format!("{} {what}: remove it", path.display());
        let wrong = |e: io::Error| match Errno::from_io_error(&e) {
            Some(Errno::LOOP) => leads_elsewhere("is a symbolic link"),
            _ => format!("{}: {e}", path.display()),
        };
        loop {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                // whoever may put one there could have any file written that we may write
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
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
            if ours.nlink() > 1 {
                return Err(leads_elsewhere("is a file that has other names, too"));
            }
            // before it was locked, another one may have given it its last name
            let there = std::fs::symlink_metadata(&path);
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
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
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
#[derive(Default)]
pub(super) struct Standard(blake3::Hasher);

impl Store for Standard {
    fn begin(&mut self, _: &AtomicBool) -> io::Result<(u64, Digest)> {
        Ok((0, digest(&self.0)))
    }
    fn restart(&mut self) -> io::Result<()> {
        Ok(()) // nothing was there before
    }
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        // whoever reads it does not have to wait for the end of a line
        let mut out = io::stdout().lock();
        out.write_all(octets).and_then(|()| out.flush())?;
        self.0.update(octets);
        Ok(octets.len())
    }
    fn keep(&mut self, theirs: &Digest, _: &AtomicBool) -> io::Result<bool> {
        Ok(digest(&self.0) == *theirs)
    }
}
