//! How the kernel is started (kernel-parameters.txt; `linux --help` for those of User-Mode-Linux).

use std::path::Path;
use std::process::Command;

use crate::testbed::cache::Kernel;
use crate::testbed::run::{Options, Time};
use crate::testbed::{guest, job};

/// Where virtual time begins: the first of January 2026, ns since 1970. One start makes one run like the other.
const START_NS: u64 = 1_767_225_600_000_000_000;

/// The kernel with its parameters; `folder` is that of the job.
pub fn command(options: &Options, kernel: &Kernel, folder: &Path) -> Command {
    let mut command = Command::new(kernel.program());
    let place = folder.display();
    command
        .current_dir(folder)
        // where the guest's memory is: a file without a name
        .env("TMPDIR", folder)
        .arg(format!("mem={}M", options.memory >> 20))
        .arg(format!("uml_dir={place}/"))
        .args([
            "root=none",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            "devtmpfs.mount=0",
        ])
        .args(["con=null", "con0=null,fd:1", "ssl=null", "panic=-1"])
        .args(options.settings())
        .arg(format!("{}={place}", job::FOLDER_VARIABLE))
        .arg(format!("init={place}/{}", job::INIT));
    if options.time == Time::Virtual {
        command.args(["time-travel=inf-cpu", &format!("time-travel-start={START_NS}")]);
    }
    // a word that the kernel does not know is an argument of the first process; after `--` it would not be the last,
    // since User-Mode-Linux appends a word of its own
    command.arg(guest::COMMAND);
    command
}
