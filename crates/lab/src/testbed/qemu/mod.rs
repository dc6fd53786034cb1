//! A computer in QEMU with one of Debian's kernels, as it is installed on others: standard or PREEMPT_RT, with BTF, probes and
//! modules.
//!
//! The packages are downloaded and unpacked, not installed. [`get`] makes a kernel with its first file system of them:
//! [`module`] builds a module that is none of the kernel's own. [`modules`] says which modules go into it and in which order they are loaded, [`cpio`] writes it. [`boot`] starts it.
//! The files of this computer are shared by 9p.

pub mod boot;
pub mod cpio;
pub mod get;
pub mod module;
pub mod modules;

use super::cache::fingerprint;

/// The first program of the first file system: a script for busybox.
pub const SCRIPT: &str = include_str!("init.sh");

/// What else belongs to it, as a text that changes when that does.
const CONTENTS: &str = "firmware: carl9170-1.fw; tools: iw busybox";

/// FNV-1a of what a first file system is made of: another script or other modules are another kernel.
pub fn hash() -> String {
    let names = modules::WANTED
        .iter()
        .flat_map(|name| name.bytes().chain([b'\n']));
    let octets = SCRIPT.bytes().chain(names).chain(CONTENTS.bytes());
    fingerprint(octets)
}
