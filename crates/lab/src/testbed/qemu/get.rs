//! Makes a kernel for a computer in QEMU out of Debian's packages.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::cpio::Archive;
use super::{SCRIPT, boot, modules};
use crate::testbed::cache::{Cache, INITRAMFS, Kernel, Machine, PROGRAM, TOOLS};
use crate::testbed::site::{BuildError, Progress, Site};
use crate::testbed::tools::{self, Tool};

/// What runs the computer.
pub const RUN: &[Tool] = &[(boot::PROGRAM, "qemu-system-x86")];

/// The firmware of AR9170 sticks.
const FIRMWARE: &str = "carl9170-1.fw";
/// Where Debian has libraries.
const LIBRARIES: &str = "lib/x86_64-linux-gnu";
/// Starts iw with its libraries, wherever all of them are.
const IW: &str =
    "#!/bin/sh\nhere=${0%/*}\nLD_LIBRARY_PATH=$here/iw-libraries exec \"$here/iw-libraries/iw\" \"$@\"\n";

/// The package that depends on the newest kernel.
fn package(machine: Machine) -> &'static str {
    match machine {
        Machine::Realtime => "linux-image-rt-amd64",
        _ => "linux-image-amd64",
    }
}

/// Downloads the packages and makes a kernel of them.
///
/// # Errors
/// [`BuildError`]: nothing was kept.
pub fn get(
    cache: &Cache,
    machine: Machine,
    sdmac: &Path,
    progress: Progress<'_>,
    stop: &AtomicBool,
) -> Result<Kernel, BuildError> {
    if !tools::missing(tools::FETCH).is_empty() {
        return Err(BuildError::NoApt);
    }
    let files = |error| BuildError::Files {
        place: cache.root().display().to_string(),
        error,
    };
    let workshop = cache.workshop().map_err(files)?;
    let site = Site::new(cache, workshop.folder(), sdmac, machine, progress, stop).map_err(files)?;
    let name = newest(package(machine))?;
    let release = name.trim_start_matches("linux-image-").to_owned();
    site.progress("getting the kernel", 10);
    let image = site.fetch(&name, "")?;
    site.progress("getting busybox", 600);
    let busybox = site.fetch("busybox-static", "bin/busybox")?;
    let regdb = site.fetch("wireless-regdb", "lib/firmware")?;
    let firmware = site.fetch("firmware-linux-free", "lib/firmware")?.join(FIRMWARE);
    site.progress("getting iw", 750);
    let iw = site.fetch("iw", "sbin/iw")?;
    let libraries = [
        site.fetch("libnl-3-200", LIBRARIES)?.join("libnl-3.so.200"),
        site.fetch("libnl-genl-3-200", LIBRARIES)?
            .join("libnl-genl-3.so.200"),
    ];
    site.progress("making the first file system", 800);
    let done = site.folder().join("done");
    let keep = || -> io::Result<Kernel> {
        std::fs::create_dir(&done)?;
        std::fs::copy(
            image.join("boot").join(format!("vmlinuz-{release}")),
            done.join(PROGRAM),
        )?;
        let out = BufWriter::new(File::create(done.join(INITRAMFS))?);
        fill(
            out,
            &image.join("lib/modules").join(&release),
            &busybox,
            &regdb,
            &firmware,
        )?;
        let kept = done.join(boot::FIRMWARE);
        std::fs::create_dir(&kept)?;
        std::fs::copy(&firmware, kept.join(FIRMWARE))?;
        fill_tools(&done.join(TOOLS), &busybox, &iw, &libraries)?;
        cache.add(machine, &release, &done)
    };
    let kernel = keep().map_err(files)?;
    progress("made", 1_000);
    Ok(kernel)
}

/// The package that this one depends on: `linux-image-6.1.0-56-amd64`.
fn newest(package: &'static str) -> Result<String, BuildError> {
    let output = Command::new("apt-cache").args(["depends", package]).output();
    let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    text.ok()
        .and_then(|text| depends(&text))
        .ok_or_else(|| BuildError::NoKernel(package.into()))
}

fn depends(text: &str) -> Option<String> {
    let line = |line: &str| Some(line.trim().strip_prefix("Depends:")?.trim().to_owned());
    text.lines()
        .filter_map(line)
        .find(|n| n.starts_with("linux-image-"))
}

/// The first file system: busybox, the script, the modules in the order of their names, the table of countries, the
/// firmware of sticks.
fn fill(out: impl io::Write, tree: &Path, busybox: &Path, regdb: &Path, firmware: &Path) -> io::Result<()> {
    let mut archive = Archive::new(out);
    for folder in ["dev", "proc", "sys", "host", "modules", "lib", "lib/firmware"] {
        archive.folder(folder)?;
    }
    archive.device("dev/console", 5, 1)?;
    archive.file("init", SCRIPT.as_bytes())?;
    archive.file("busybox", &std::fs::read(busybox)?)?;
    let order = modules::in_order(modules::WANTED, &modules::all(tree)?)?;
    for (n, module) in order.iter().enumerate() {
        let name = format!("modules/{n:03}-{}.ko", module.name);
        archive.file(&name, &std::fs::read(&module.file)?)?;
    }
    // Debian's kernels know the keys of Debian and of the table's author: each has signed one of the two
    for file in ["regulatory.db", "regulatory.db.p7s"] {
        let found: PathBuf = regdb.join(format!("{file}-upstream"));
        archive.file(&format!("lib/firmware/{file}"), &std::fs::read(found)?)?;
    }
    archive.file(&format!("lib/firmware/{FIRMWARE}"), &std::fs::read(firmware)?)?;
    archive.finish()?;
    Ok(())
}

/// Programs for whoever has none: iw, and busybox, which also has a ping.
fn fill_tools(folder: &Path, busybox: &Path, iw: &Path, libraries: &[PathBuf]) -> io::Result<()> {
    let own = folder.join("iw-libraries");
    std::fs::create_dir_all(&own)?;
    std::fs::copy(busybox, folder.join("busybox"))?;
    std::fs::copy(iw, own.join("iw"))?;
    for library in libraries {
        let name = library.file_name().unwrap_or_default();
        std::fs::copy(library, own.join(name))?;
    }
    let script = folder.join("iw");
    std::fs::write(&script, IW)?;
    std::fs::set_permissions(script, Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_kernel_is_what_the_package_depends_on() {
        let text = "linux-image-amd64\n  Depends: linux-base\n  Depends: linux-image-6.1.0-56-amd64\n  Recommends: x\n";
        assert_eq!(depends(text).as_deref(), Some("linux-image-6.1.0-56-amd64"));
        assert_eq!(depends("linux-image-amd64\n"), None);
    }
}
