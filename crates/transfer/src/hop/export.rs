//! The delay as a file: one line, one number, microseconds, as a thesis had it in `/proc/ath5k/Da`.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use radio::{Duration, Instant};

/// It is written anew after this time at the latest, so that its age shows whether somebody still writes it.
const REFRESH: Duration = Duration::from_ms(1_000);
const LEAST: Duration = Duration::from_ms(100);

/// The file, which is gone when this is. Readers see the old number or the new one, and nothing between.
#[derive(Debug)]
pub struct Export {
    path: PathBuf,
    part: PathBuf,
    /// Locked, so that another one can tell that it is written.
    file: Option<File>,
    last: Option<(Instant, u32)>,
}

impl Export {
    /// At this place. A file that a killed process has left there is replaced.
    ///
    /// # Errors
    /// It cannot be written, there is something else, or another one writes it.
    pub fn new(path: &Path) -> io::Result<Export> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        if fs::symlink_metadata(path).is_ok() && !is_ours(path) {
            return Err(io::Error::other("is there already, and holds no delay"));
        }
        if File::open(path).is_ok_and(|f| matches!(f.try_lock(), Err(TryLockError::WouldBlock))) {
            return Err(io::Error::other("another hop writes it"));
        }
        let mut export = Export {
            path: path.to_owned(),
            part: folder.join(format!(".{}.new", name.to_string_lossy())),
            file: None,
            last: None,
        };
        export.write(0)?;
        Ok(export)
    }

    /// Writes the delay if it has changed, ten times a second at most.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn show(&mut self, now: Instant, delay_us: u32) -> io::Result<()> {
        let due = match self.last {
            None => true,
            Some((at, last)) => {
                let age = now.since(at);
                age >= REFRESH || (age >= LEAST && last != delay_us)
            }
        };
        if due {
            self.write(delay_us)?;
            self.last = Some((now, delay_us));
        }
        Ok(())
    }

    fn write(&mut self, delay_us: u32) -> io::Result<()> {
        // what a killed process has left there, or somebody has put there
        match fs::remove_file(&self.part) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = File::create_new(&self.part)?;
        // where there are no locks nobody is told
        let _ = file.try_lock();
        writeln!(file, "{delay_us}")?;
        fs::rename(&self.part, &self.path)?;
        self.file = Some(file);
        Ok(())
    }
}

/// Whether it is what an [`Export`] leaves behind: a small file with a number.
fn is_ours(path: &Path) -> bool {
    const LONGEST: u64 = 11;
    let small = fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.len() <= LONGEST);
    let number = |text: String| text.strip_suffix('\n').is_some_and(|n| n.parse::<u32>().is_ok());
    small && fs::read_to_string(path).is_ok_and(number)
}

impl Drop for Export {
    fn drop(&mut self) {
        for path in [&self.path, &self.part] {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_that_is_never_half_and_goes_in_the_end() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("run")).unwrap();
        let path = dir.path().join("run/delay");
        let read = || fs::read_to_string(&path).unwrap();
        let at = |ms: u64| Instant::from_us(ms * 1_000);
        let mut export = Export::new(&path).unwrap();
        assert_eq!(read(), "0\n");
        export.show(at(0), 700).unwrap();
        assert_eq!(read(), "700\n");
        export.show(at(99), 800).unwrap();
        assert_eq!(read(), "700\n", "ten times a second");
        export.show(at(100), 800).unwrap();
        assert_eq!(read(), "800\n");
        fs::remove_file(&path).unwrap();
        export.show(at(1_000), 800).unwrap();
        assert!(!path.exists(), "nothing new");
        export.show(at(1_100), 800).unwrap();
        assert_eq!(read(), "800\n", "still alive");
        assert_eq!(fs::read_dir(dir.path().join("run")).unwrap().count(), 1);
        let why = Export::new(&path).unwrap_err().to_string();
        assert_eq!(
            (why.as_str(), read().as_str()),
            ("another hop writes it", "800\n")
        );
        drop(export);
        assert_eq!(fs::read_dir(dir.path().join("run")).unwrap().count(), 0);
        assert!(Export::new(Path::new("/proc/version/x")).is_err());
    }

    /// It runs as root, and removes its file in the end.
    #[test]
    fn nothing_but_a_delay_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let [mine, left, link, missing] =
            ["mine", "left", "link", "no/delay"].map(|name| dir.path().join(name));
        for text in ["precious\n", "", "7", "7 apples\n", "123456789012\n"] {
            fs::write(&mine, text).unwrap();
            let why = Export::new(&mine).unwrap_err().to_string();
            assert!(why.contains("holds no delay"), "{why}");
            assert_eq!(fs::read_to_string(&mine).unwrap(), text);
        }
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        assert!(Export::new(&link).is_err() && Export::new(dir.path()).is_err());
        assert!(Export::new(&missing).is_err() && !dir.path().join("no").exists());
        fs::write(&left, "4294967295\n").unwrap();
        drop(Export::new(&left).unwrap());
        assert!(!left.exists());
        // what is half written goes through no link
        std::os::unix::fs::symlink(&mine, dir.path().join(".left.new")).unwrap();
        let precious = fs::read_to_string(&mine).unwrap();
        drop(Export::new(&left).unwrap());
        assert_eq!(fs::read_to_string(&mine).unwrap(), precious);
    }
}
