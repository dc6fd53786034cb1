//! Programs that the build needs, and the Debian packages that hold them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Program, and package.
pub type Tool = (&'static str, &'static str);

/// What compiles a kernel.
pub const BUILD: &[Tool] = &[
    ("gcc", "gcc"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// What gets the source package where none is at hand.
pub const FETCH: &[Tool] = &[("apt-get", "apt"), ("dpkg-deb", "dpkg")];

/// Those of `tools` that are not on this machine.
pub fn missing(tools: &[Tool]) -> Vec<Tool> {
    let absent = |tool: &&Tool| find(tool.0).is_none();
    tools.iter().filter(absent).copied().collect()
}

/// An executable file of this name in `$PATH`.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

/// `make` in this folder, as if nothing had started it.
pub fn make(folder: &Path) -> Command {
    let mut command = Command::new("make");
    command.current_dir(folder);
    // a build started from a makefile, or by cargo, is none of its parts
    for name in [
        "MAKEFLAGS",
        "MFLAGS",
        "MAKELEVEL",
        "CARGO_MAKEFLAGS",
        "CC",
        "CFLAGS",
        "LDFLAGS",
    ] {
        command.env_remove(name);
    }
    command
}

/// Whether this is a file that somebody may execute.
pub fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_and_missed() {
        assert!(find("sh").is_some_and(|sh| sh.is_absolute()));
        assert_eq!(
            missing(&[("sh", "dash"), ("no-such-program", "nowhere")]),
            [("no-such-program", "nowhere")]
        );
        assert!(!is_executable(Path::new("/")));
    }
}
