//! The small files in which the kernel says what it does, below a root: `/`, or a folder with the same layout in tests.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The small files of a computer: see the head of this file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    root: PathBuf,
}

impl Default for Tree {
    /// That of this computer.
    fn default() -> Self {
        Tree::at("/")
    }
}

impl Tree {
    /// Below this folder.
    pub fn at(root: impl Into<PathBuf>) -> Tree {
        Tree { root: root.into() }
    }

    /// Where a file is that the kernel has at `path`, which begins with `/`.
    pub fn place(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Whether it is this computer's.
    pub fn is_real(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The text of a small file, without white space and NULs around it; `None` if there is none or it is empty.
    pub fn read(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.place(path)).ok()?;
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A number in a small file.
    pub fn number(&self, path: &str) -> Option<i64> {
        self.read(path)?.parse().ok()
    }

    /// A list of CPUs in a small file; empty if there is none.
    pub fn cpus(&self, path: &str) -> Vec<usize> {
        self.read(path).map_or_else(Vec::new, |list| cpu_list(&list))
    }

    /// Names in a folder, in order; empty if there is none.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.place(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }

    /// Names in a folder that are numbers, in order.
    pub fn numbers(&self, path: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = (self.names(path).iter())
            .filter_map(|name| name.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// Writes to a file that the kernel has; does not create one.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        use std::io::Write as _;
        let mut file = fs::OpenOptions::new()
            .write(true)
            .truncate(!self.is_real())
            .open(self.place(path))?;
        file.write_all(text.as_bytes())
    }

    /// Makes a control group. The kernel puts its files into it; in a folder that stands for a computer we do.
    pub(super) fn make_group(&self, path: &str, files: &[&str]) -> io::Result<()> {
        let place = self.place(path);
        match fs::create_dir(&place) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            other => other?,
        }
        let mut missing = files.iter().filter(|_| !self.is_real());
        missing.try_for_each(|name| fs::write(place.join(name), ""))
    }

    /// Removes a control group, its files included.
    pub(super) fn remove_group(&self, path: &str) -> io::Result<()> {
        match self.is_real() {
            true => fs::remove_dir(self.place(path)),
            false => fs::remove_dir_all(self.place(path)),
        }
    }
}

/// A list such as `0-3,8`. What is not a number, and numbers from 4096 on, are skipped.
pub(crate) fn cpu_list(list: &str) -> Vec<usize> {
    let number = |text: &str| text.trim().parse().ok().filter(|&cpu: &usize| cpu < 4096);
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Some(first), Some(last)) = (number(first), number(last)) {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// The same list as the kernel writes it: `0-3,8`.
pub fn show_cpus(cpus: &[usize]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    let runs = cpus.chunk_by(|a, b| a + 1 == *b);
    let words: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    words.join(",")
}

/// CPUs as the kernel's masks have them: words of 32 bits in hexadecimal, the highest first, with commas between.
pub(super) fn mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(0, |last| last / 32) + 1;
    let word = |w: usize| {
        let bits = cpus.iter().filter(|&&cpu| cpu / 32 == w);
        bits.fold(0u32, |sum, cpu| sum | 1 << (cpu % 32))
    };
    let text: Vec<String> = (0..words).rev().map(|w| format!("{:08x}", word(w))).collect();
    text.join(",")
}

/// The CPUs of a mask; words that are no numbers count as none.
pub(super) fn of_mask(text: &str) -> Vec<usize> {
    let words = text.trim().split(',').rev().enumerate();
    let mut cpus = Vec::new();
    for (w, word) in words {
        let bits = u32::from_str_radix(word, 16).unwrap_or(0);
        cpus.extend((0..32).filter(|b| bits >> b & 1 == 1).map(|b| w * 32 + b));
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        assert_eq!(cpu_list("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list("5"), [5]);
        assert_eq!(cpu_list(""), []);
        assert_eq!(cpu_list("3-1,x,0-99999999999,-,7"), [7]);
        for list in ["", "0", "0-3,8", "1,3,5-6"] {
            assert_eq!(show_cpus(&cpu_list(list)), list);
        }
        assert_eq!(show_cpus(&[3, 1, 2, 2]), "1-3");
    }

    #[test]
    fn masks() {
        assert_eq!(mask(&[0, 1]), "00000003");
        assert_eq!(mask(&[]), "00000000");
        assert_eq!(mask(&[31, 32, 64]), "00000001,00000001,80000000");
        assert_eq!(of_mask("00000001,00000001,80000000"), [31, 32, 64]);
        assert_eq!(of_mask("f"), [0, 1, 2, 3]);
        assert_eq!(of_mask("f,x"), [32, 33, 34, 35]);
    }

    #[test]
    fn files_and_folders() {
        let dir = tempfile::tempdir().unwrap();
        let tree = Tree::at(dir.path());
        for name in ["10", "9", "x"] {
            fs::create_dir_all(tree.place("/proc").join(name)).unwrap();
        }
        fs::write(tree.place("/proc/10/comm"), "irq/9-ath\n").unwrap();
        assert_eq!(tree.numbers("/proc"), [9, 10]);
        assert_eq!(tree.read("/proc/10/comm").as_deref(), Some("irq/9-ath"));
        assert_eq!(
            (tree.read("/proc/9/comm"), tree.number("/proc/10/comm")),
            (None, None)
        );
        assert!(tree.names("/nowhere").is_empty());
        tree.write("/proc/10/comm", "7").unwrap();
        assert_eq!(tree.number("/proc/10/comm"), Some(7));
        assert!(tree.write("/proc/10/new", "7").is_err(), "no file is made");
        assert!(!tree.is_real() && Tree::default().is_real());
    }
}
