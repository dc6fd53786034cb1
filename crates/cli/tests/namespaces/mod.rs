//! Scripts in namespaces of their own, for tests with several computers.

use std::process::Command;

/// What is said where they cannot be had: the test is skipped.
pub const CANNOT: [&str; 4] = ["unshare:", "mount:", "ip: not found", "Operation not supported"];

/// A shell with this script, in namespaces of networks, mounts and processes.
pub fn shell(script: &str) -> Command {
    // root needs no namespace of users, and gets none in the lab, where it lives in another root folder
    let user: &[&str] = if rustix::process::geteuid().is_root() {
        &[]
    } else {
        &["--user", "--map-root-user"]
    };
    let mut command = Command::new("unshare");
    command
        .args(user)
        .args(["--net", "--mount-proc", "--pid", "--fork", "--kill-child"])
        .args(["sh", "-c", script])
        .env("SDMAC", env!("CARGO_BIN_EXE_sdmac"));
    command
}
