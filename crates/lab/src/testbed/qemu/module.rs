//! Builds a module for one of Debian's kernels out of a folder with its sources, as a user with the headers installed would:
//! the packages with the headers are downloaded and unpacked, not installed. What was built is kept by kernel and sources.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

use crate::testbed::cache::{Cache, Kernel, fingerprint};
use crate::testbed::site::{BuildError, Progress, Site};
use crate::testbed::tools::{self, Tool};

/// What compiles a module; gcc of the kernel's own version where it is there.
const BUILD: &[Tool] = &[("gcc", "gcc"), ("make", "make")];
const COMPILERS: [&str; 2] = ["gcc-12", "gcc"];
/// Endings of the files that a module is made of, besides its Makefile.
const ENDINGS: [&str; 2] = ["c", "h"];
const MAKEFILE: &str = "Makefile";

/// The module that the sources in `folder` make for `kernel`: from the cache, or built now.
///
/// # Errors
/// [`BuildError`]; nothing was kept.
pub fn module(
    cache: &Cache,
    kernel: &Kernel,
    folder: &Path,
    sdmac: &Path,
    progress: Progress<'_>,
    stop: &AtomicBool,
) -> Result<PathBuf, BuildError> {
    let sources = sources(folder).map_err(|error| BuildError::Files {
        place: folder.display().to_string(),
        error,
    })?;
    let wrong = |why: &str| BuildError::Source {
        file: folder.display().to_string(),
        why: why.to_owned(),
    };
    let makefile = sources.iter().find(|(name, _)| name == MAKEFILE);
    let name = makefile.and_then(|(_, octets)| target(std::str::from_utf8(octets).ok()?));
    let name = name.ok_or_else(|| {
        wrong("this is no folder of a kernel module: its Makefile has no `obj-m := NAME.o`")
    })?;
    let all = sources
        .iter()
        .flat_map(|(name, octets)| name.bytes().chain([0]).chain(octets.iter().copied()).chain([0]));
    let place = (cache.root()).join(format!("module-{}-{}", kernel.version, fingerprint(all)));
    let file = format!("{name}.ko");
    if place.join(&file).is_file() {
        return Ok(place.join(file));
    }
    if !tools::missing(tools::FETCH).is_empty() {
        return Err(BuildError::NoApt);
    }
    let missing = tools::missing(BUILD);
    if !missing.is_empty() {
        return Err(BuildError::Tools(missing));
    }
    let files = |error| BuildError::Files {
        place: cache.root().display().to_string(),
        error,
    };
    let workshop = cache.workshop().map_err(files)?;
    let site = Site::new(cache, workshop.folder(), sdmac, kernel.machine, progress, stop).map_err(files)?;
    site.progress("getting the kernel's headers", 50);
    let tree = headers(&site, &kernel.version)?;
    site.progress("compiling the module", 700);
    let work = site.folder().join("module");
    site.make_folder(&work)?;
    for (name, octets) in &sources {
        site.write(&work.join(name), octets)?;
    }
    let mut make = tools::make(&tree);
    make.arg(format!("M={}", work.display())).arg("modules");
    if let Some(compiler) = COMPILERS.iter().find(|c| tools::find(c).is_some()) {
        make.arg(format!("CC={compiler}"));
    }
    site.run("make", &mut make, &|_| {})?;
    let keep = || -> io::Result<()> {
        let done = site.folder().join("done");
        std::fs::create_dir(&done)?;
        std::fs::copy(work.join(&file), done.join(&file))?;
        match std::fs::rename(&done, &place) {
            // another build was faster
            Err(_) if place.join(&file).is_file() => Ok(()),
            other => other,
        }
    };
    keep().map_err(files)?;
    Ok(place.join(file))
}

/// Names and contents of the files, in order of their names.
fn sources(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()).map(str::to_owned) else {
            continue;
        };
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        // what a build by hand has left is made anew
        if path.is_file() && (name == MAKEFILE || ENDINGS.contains(&ending)) && !name.ends_with(".mod.c") {
            all.push((name, std::fs::read(&path)?));
        }
    }
    all.sort();
    Ok(all)
}

/// NAME of `obj-m := NAME.o`.
fn target(makefile: &str) -> Option<&str> {
    let mut pairs = makefile.lines().filter_map(|line| line.split_once(":="));
    let (_, value) = pairs.find(|(key, _)| key.trim() == "obj-m")?;
    value.trim().strip_suffix(".o")
}

/// The headers of this release, unpacked: the folder to compile in.
fn headers(site: &Site<'_>, release: &str) -> Result<PathBuf, BuildError> {
    let package = format!("linux-headers-{release}");
    let root = site.folder().join("headers");
    let output = Command::new("apt-cache").args(["depends", &package]).output();
    let text = output
        .map(|o| String::from_utf8_lossy(&o.stdout).into_owned())
        .unwrap_or_default();
    for package in std::iter::once(package.as_str()).chain(depends(&text)) {
        site.fetch_into(package, &root)?;
    }
    let tree = root.join("usr/src").join(&package);
    // it names the folder where it would be installed
    let makefile = tree.join(MAKEFILE);
    let read = std::fs::read_to_string(&makefile).map_err(|error| BuildError::Files {
        place: makefile.display().to_string(),
        error,
    })?;
    let moved = read.replace(" /usr/src/", &format!(" {}/", root.join("usr/src").display()));
    site.write(&makefile, moved.as_bytes())?;
    Ok(tree)
}

/// The headers and tools that a package with headers depends on. The compiler is the one that is there.
fn depends(text: &str) -> impl Iterator<Item = &str> {
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends:").map(str::trim));
    names.filter(|name| name.starts_with("linux-headers-") || name.starts_with("linux-kbuild-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_headers_need_without_the_compiler() {
        let text = "linux-headers-6.1.0-56-amd64\n  Depends: linux-headers-6.1.0-56-common\n  Depends: linux-kbuild-6.1\n  \
                    Depends: linux-compiler-gcc-12-x86\n";
        let names: Vec<&str> = depends(text).collect();
        assert_eq!(names, ["linux-headers-6.1.0-56-common", "linux-kbuild-6.1"]);
    }

    #[test]
    fn the_name_of_the_module_is_in_its_makefile() {
        assert_eq!(target("# x\nobj-m := some_thing.o\n"), Some("some_thing"));
        assert_eq!(target("all:\n\techo obj-m\n"), None);
        assert_eq!(target(""), None);
    }

    #[test]
    fn sources_are_what_is_compiled_and_not_what_was_made() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.c", "a.h", "Makefile", "b.o", "b.mod.c", "README.md", "b.ko"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        let names: Vec<String> = sources(dir.path())
            .unwrap()
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["Makefile", "a.h", "b.c"]);
    }

    #[test]
    fn a_folder_without_a_module_is_said_to_be_one() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let kernel = Kernel {
            machine: crate::testbed::cache::Machine::Standard,
            version: "6.1.0-56-amd64".to_owned(),
            hash: String::new(),
            folder: dir.path().to_owned(),
        };
        let build = |folder: &Path| {
            let stop = AtomicBool::new(false);
            module(&cache, &kernel, folder, Path::new("sdmac"), &|_, _| {}, &stop).map_err(|e| e.to_string())
        };
        assert!(build(dir.path()).unwrap_err().contains("obj-m"));
        assert!(
            build(&dir.path().join("nowhere"))
                .unwrap_err()
                .contains("nowhere")
        );
    }
}
