//! Where kernels are kept: `$XDG_CACHE_HOME/sdmac/lab`, one folder for each.

use std::io;
use std::path::{Path, PathBuf};

use super::{qemu, uml};

/// The kernel in its folder.
pub const PROGRAM: &str = "linux";
/// What is beside it: the configuration it was built with, or ...
pub const CONFIG: &str = "config";
/// ... its first file system.
pub const INITRAMFS: &str = "initramfs";
/// Also beside it: programs for the guest, of QEMU's only.
pub const TOOLS: &str = "tools";
/// Prefix of the folders that something is built in; the number of the process follows.
const WORKSHOP: &str = "building-";

/// What a kernel runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Machine {
    /// It is a program itself: User-Mode Linux.
    Uml,
    /// A whole computer in QEMU, with Debian's kernel.
    Standard,
    /// The same with Debian's PREEMPT_RT kernel.
    Realtime,
}

impl Machine {
    /// All of them.
    pub const ALL: [Machine; 3] = [Machine::Uml, Machine::Standard, Machine::Realtime];

    /// What its folders begin with.
    const fn prefix(self) -> &'static str {
        match self {
            Machine::Uml => "linux-",
            Machine::Standard => "debian-",
            Machine::Realtime => "debian-rt-",
        }
    }

    /// What a kernel of this `sdmac` was made with.
    fn hash(self) -> String {
        match self {
            Machine::Uml => uml::config::hash(),
            Machine::Standard | Machine::Realtime => qemu::hash(),
        }
    }
}

/// FNV-1a of what a kernel is made of, as its folder has it.
pub(super) fn fingerprint(octets: impl Iterator<Item = u8>) -> String {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", octets.fold(0xcbf2_9ce4_8422_2325, step))
}

/// The folder of all kernels.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// A kernel in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// What it runs on.
    pub machine: Machine,
    /// Version of Linux, `6.1.192`; release of Debian's, `6.1.0-56-amd64`.
    pub version: String,
    /// Of what it was made with.
    pub hash: String,
    /// Its folder.
    pub folder: PathBuf,
}

impl Kernel {
    /// The program to run.
    pub fn program(&self) -> PathBuf {
        self.folder.join(PROGRAM)
    }

    /// Its first file system; of QEMU's only.
    pub fn initramfs(&self) -> PathBuf {
        self.folder.join(INITRAMFS)
    }

    /// Programs that the guest may need and this computer may not have.
    pub fn tools(&self) -> PathBuf {
        self.folder.join(TOOLS)
    }

    /// Whether it was made as this `sdmac` makes it.
    pub fn fits(&self) -> bool {
        self.hash == self.machine.hash()
    }

    fn parse(folder: PathBuf) -> Option<Kernel> {
        let name = folder.file_name()?.to_str()?;
        // the longer prefix first
        let of = |m: &Machine| Some((*m, name.strip_prefix(m.prefix())?));
        let (machine, rest) = Machine::ALL.iter().rev().find_map(of)?;
        let (version, hash) = rest.rsplit_once('-')?;
        let kernel = Kernel {
            machine,
            version: version.to_owned(),
            hash: hash.to_owned(),
            folder,
        };
        kernel.program().is_file().then_some(kernel)
    }

    fn order(&self) -> Vec<u32> {
        let number = |part: &str| part.parse().unwrap_or(0);
        self.version.split(['.', '-']).map(number).collect()
    }
}

impl Cache {
    /// The cache of this user; `None` where neither `$XDG_CACHE_HOME` nor `$HOME` is set.
    pub fn of_user() -> Option<Cache> {
        let absolute = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(Cache::at(base.join("sdmac").join("lab")))
    }

    /// A cache in this folder, which need not exist yet.
    pub fn at(root: PathBuf) -> Cache {
        Cache { root }
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What the last build of such a kernel said: several may be made at once.
    pub fn build_log(&self, machine: Machine) -> PathBuf {
        self.root.join(format!("{}build.log", machine.prefix()))
    }

    /// What the kernel of the last run that went wrong said.
    pub fn kernel_log(&self) -> PathBuf {
        self.root.join("kernel.log")
    }

    /// All kernels, the newest last.
    pub fn kernels(&self) -> Vec<Kernel> {
        let folders = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        let mut kernels: Vec<Kernel> = folders.filter_map(|entry| Kernel::parse(entry.path())).collect();
        kernels.sort_by_cached_key(|kernel| (kernel.machine, kernel.order(), kernel.hash.clone()));
        kernels
    }

    /// The newest kernel for this machine that fits this `sdmac`.
    pub fn kernel(&self, machine: Machine) -> Option<Kernel> {
        let suits = |kernel: &Kernel| kernel.machine == machine && kernel.fits();
        self.kernels().into_iter().rfind(suits)
    }

    /// A new folder to build in. What builds that were killed have left behind is removed.
    pub fn workshop(&self) -> io::Result<Workshop> {
        std::fs::create_dir_all(&self.root)?;
        for entry in std::fs::read_dir(&self.root)?.flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(WORKSHOP));
            if process.is_some_and(|id| !Path::new("/proc").join(id).exists()) {
                std::fs::remove_dir_all(entry.path())?;
            }
        }
        let folder = self.root.join(format!("{WORKSHOP}{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Workshop { folder })
    }

    /// Moves a finished folder to its place; another build may have been faster, then its kernel stays.
    pub fn add(&self, machine: Machine, version: &str, finished: &Path) -> io::Result<Kernel> {
        let name = format!("{}{version}-{}", machine.prefix(), machine.hash());
        let folder = self.root.join(name);
        let before = self
            .root
            .join(format!("{WORKSHOP}{}", std::process::id()))
            .join("before");
        if folder.exists() {
            std::fs::rename(&folder, before)?;
        }
        std::fs::rename(finished, &folder)?;
        Kernel::parse(folder).ok_or_else(|| io::Error::other("the kernel is not where it was put"))
    }

    /// Octets in the cache.
    pub fn size(&self) -> u64 {
        size(&self.root)
    }

    /// Removes everything.
    pub fn clean(&self) -> io::Result<()> {
        match std::fs::remove_dir_all(&self.root) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }
}

/// A folder that goes away with this value.
#[derive(Debug)]
pub struct Workshop {
    folder: PathBuf,
}

impl Workshop {
    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // the next build tries again
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn size(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(m) if m.is_dir() => size(&entry.path()),
            Ok(m) => m.len(),
            Err(_) => 0,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(cache: &Cache, name: &str) {
        let folder = cache.root().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(PROGRAM), "kernel").unwrap();
    }

    #[test]
    fn the_newest_that_fits() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("lab"));
        assert!(cache.kernel(Machine::Uml).is_none());
        let hash = Machine::Uml.hash();
        for version in ["6.1.99", "6.1.192", "6.1.20"] {
            put(&cache, &format!("linux-{version}-{hash}"));
        }
        put(&cache, "linux-6.12.1-0000000000000000");
        std::fs::create_dir(cache.root().join(format!("linux-7.0-{hash}"))).unwrap();
        assert_eq!(cache.kernel(Machine::Uml).unwrap().version, "6.1.192");
        let all: Vec<String> = cache.kernels().into_iter().map(|k| k.version).collect();
        assert_eq!(all, ["6.1.20", "6.1.99", "6.1.192", "6.12.1"]);
        assert_eq!(cache.size(), 24);
        let hash = Machine::Standard.hash();
        put(&cache, &format!("debian-6.1.0-56-amd64-{hash}"));
        put(&cache, &format!("debian-rt-6.1.0-56-rt-amd64-{hash}"));
        for (machine, version) in [
            (Machine::Standard, "6.1.0-56-amd64"),
            (Machine::Realtime, "6.1.0-56-rt-amd64"),
            (Machine::Uml, "6.1.192"),
        ] {
            assert_eq!(cache.kernel(machine).unwrap().version, version);
        }
        cache.clean().unwrap();
        assert!(!cache.root().exists());
        cache.clean().unwrap();
    }

    #[test]
    fn a_workshop_goes_and_so_does_that_of_a_dead_process() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().to_owned());
        // no process has this number: the limit of Linux is 2^22
        put(&cache, "building-99999999");
        let workshop = cache.workshop().unwrap();
        assert_eq!(std::fs::read_dir(cache.root()).unwrap().count(), 1);
        let done = workshop.folder().join("done");
        std::fs::create_dir(&done).unwrap();
        std::fs::write(done.join(PROGRAM), "kernel").unwrap();
        let kernel = cache.add(Machine::Uml, "6.1.192", &done).unwrap();
        assert!(kernel.fits());
        drop(workshop);
        assert_eq!(cache.kernels(), [kernel]);
        assert_eq!(std::fs::read_dir(cache.root()).unwrap().count(), 1);
    }
}
