//! What the host and the guest tell each other: JSON files in a folder that both see.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The first process of the guest: a link to `sdmac`.
pub const INIT: &str = "init";
/// The job, from host to guest.
pub const JOB: &str = "job.json";
/// The end, from guest to host.
pub const END: &str = "end.json";
/// What the program writes to its two streams.
pub const STREAMS: [&str; 2] = ["stdout", "stderr"];
/// What the kernel says.
pub const KERNEL_LOG: &str = "kernel.log";
/// Environment variable of the guest's first process: the folder.
pub const FOLDER_VARIABLE: &str = "SDMAC_LAB_FOLDER";
/// Environment variable of the guest's first process: how files of the host are shared, where it is not hostfs.
pub const SHARE_VARIABLE: &str = "SDMAC_LAB_SHARE";
/// Environment variable of the program: `virtual` or `real`, the guest's kind of time.
pub const TIME_VARIABLE: &str = "SDMAC_LAB";
/// Environment variable of the program: `instructions` where the guest's clock counts them.
pub const CLOCK_VARIABLE: &str = "SDMAC_LAB_CLOCK";
/// Environment variable of the program: file of the module that was loaded for it.
pub const MODULE_VARIABLE: &str = "SDMAC_LAB_MODULE";

/// What to run in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Absolute path.
    pub program: PathBuf,
    /// Without the program itself.
    pub arguments: Vec<String>,
    /// All of it, nothing else is added.
    pub environment: BTreeMap<String, String>,
    /// Where the program starts.
    pub directory: PathBuf,
    /// Folders of the host that the program may write to. Elsewhere it writes to memory.
    pub writable: Vec<PathBuf>,
    /// Radios that the kernel was asked for.
    pub radios: u32,
    /// Sticks on its USB, which are radios, too.
    pub sticks: u32,
    /// A kernel module to load before the program starts; its path is in the program's environment, too.
    #[serde(default)]
    pub module: Option<PathBuf>,
}

/// How the job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// What became of the program.
    pub how: How,
    /// Guest time from the start of the program to its end, ns.
    pub took_ns: u64,
    /// Guest time since boot when all was over, ns.
    pub uptime_ns: u64,
    /// Octets in the two streams, so that nothing gets lost unseen.
    pub written: [u64; 2],
}

/// What became of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It ended with this code.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// It was not started, and why.
    NotStarted(String),
}

/// Reads a file of the folder.
pub fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> io::Result<T> {
    let octets = std::fs::read(folder.join(name))?;
    serde_json::from_slice(&octets).map_err(io::Error::other)
}

/// Writes a file of the folder.
pub fn write(folder: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    let octets = serde_json::to_vec(value).map_err(io::Error::other)?;
    std::fs::write(folder.join(name), octets)
}

/// Whether a file lies in the memory of a guest, and is gone with it: so it is with all that is in no writable folder.
pub fn goes_with_the_guest(file: &Path) -> bool {
    const MEMORY: [i64; 2] = [0x794c_7630, 0x0102_1994]; // overlay, tmpfs (linux/magic.h)
    let is_guest = std::env::var_os(TIME_VARIABLE).is_some();
    is_guest && rustix::fs::statfs(file).is_ok_and(|s| MEMORY.contains(&s.f_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let end = End {
            how: How::Exited(3),
            took_ns: 100_000_000_000,
            uptime_ns: 100_100_000_000,
            written: [4, 0],
        };
        write(folder.path(), END, &end).unwrap();
        assert_eq!(read::<End>(folder.path(), END).unwrap(), end);
        assert!(read::<Job>(folder.path(), END).is_err());
        assert!(read::<Job>(folder.path(), JOB).is_err());
    }
}
