//! Probes by programs at the entry and the return of functions (fentry, fexit): bpf(2), one ring for all CPUs.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use radio::{Instant, Plane};

use super::btf::Btf;
use super::places::{Key, Place};
use super::{BATCH, Error, Hit};
use crate::sys::bpf::{CallRing, Counter, Target, attach, types_of};

/// Where the kernel tells its types.
const TYPES: &str = "/sys/kernel/btf";
/// Pages of the ring for each CPU, about 6,500 hits; a power of two in all.
const PAGES: usize = 64;
/// What a place's argument is the address of.
const BUFFER: &str = "sk_buff";

/// The programs, and what they write to.
#[derive(Debug)]
pub(super) struct Fentry {
    ring: CallRing,
    lost: Counter,
    /// Each with its place; their numbers are the marks of the calls.
    programs: Vec<(Place, &'static str, OwnedFd)>,
}

impl Fentry {
    pub fn open(drivers: &[&str], wanted: &[Place], cpus: usize) -> Result<Fentry, Error> {
        let failed = |source: io::Error| failed("its ring", source);
        let ring = CallRing::new((PAGES * cpus).next_power_of_two()).map_err(failed)?;
        let lost = Counter::new().map_err(failed)?;
        let mut all = Fentry {
            ring,
            lost,
            programs: Vec::new(),
        };
        let kernel = types("vmlinux")?;
        let base = Btf::parse(&kernel, None).map_err(|e| Error::Types("vmlinux".into(), e))?;
        for module in ["mac80211"].iter().chain(drivers) {
            // What is in no module of its own is in the kernel.
            let (octets, loaded) = match types(module) {
                Ok(octets) => (octets, types_of(module).map_err(failed)?),
                Err(_) if is_built_in(module) => (Vec::new(), None),
                Err(error) => return Err(error),
            };
            let own = if octets.is_empty() {
                base
            } else {
                Btf::parse(&octets, Some(&base)).map_err(|e| Error::Types((*module).into(), e))?
            };
            all.put(&own, loaded.as_ref(), wanted)?;
        }
        Ok(all)
    }

    /// Puts programs at those functions that are in one module.
    fn put(&mut self, types: &Btf<'_>, loaded: Option<&OwnedFd>, wanted: &[Place]) -> Result<(), Error> {
        for place in wanted {
            if self.programs.iter().any(|(p, ..)| p == place) {
                continue;
            }
            let Some((name, function)) = find(types, place) else {
                continue;
            };
            let target = Target {
                types: loaded.map(AsFd::as_fd),
                function,
                at_return: place.key == Key::Return,
            };
            let mark = self.programs.len() as u32;
            match attach(target, place.key.argument(), mark, &self.ring, &self.lost) {
                Ok(link) => self.programs.push((*place, name, link)),
                Err(error) => return Err(failed(name, error)),
            }
        }
        Ok(())
    }

    pub fn functions(&self) -> impl Iterator<Item = (Plane, &'static str)> + '_ {
        self.programs.iter().map(|(place, name, _)| (place.plane, *name))
    }

    /// Hits that found no room.
    pub fn lost(&self) -> u64 {
        self.lost.value()
    }

    /// Reads what has come, as far as there is room. Does not allocate, and asks the kernel for nothing.
    pub fn read(&mut self, batch: &mut Vec<Hit>) {
        while batch.len() < BATCH
            && let Some(call) = self.ring.next()
        {
            let Some((place, ..)) = self.programs.get(call.mark as usize) else {
                continue;
            };
            batch.push(Hit {
                plane: place.plane,
                key: place.key,
                cpu: call.cpu as usize,
                thread: call.thread,
                at: Instant::from_ns(call.time_ns),
                buffer: call.argument,
            });
        }
    }
}

/// The first function of a place that is among the types, and that has the argument that the place wants.
pub(super) fn find(types: &Btf<'_>, place: &Place) -> Option<(&'static str, u32)> {
    let fits = |name: &&'static str| {
        let function = types.function(name)?;
        match place.key.argument() {
            Some(n) if types.argument(function, n) != Some(BUFFER) => None,
            _ => Some((*name, function)),
        }
    };
    place.functions.iter().find_map(fits)
}

/// The types of a module, or of the kernel (`vmlinux`).
pub(super) fn types(module: &str) -> Result<Vec<u8>, Error> {
    let path = format!("{TYPES}/{module}");
    std::fs::read(&path).map_err(|_| Error::NoTypes(path))
}

fn is_built_in(module: &str) -> bool {
    let path = format!("/sys/module/{module}");
    // A module that was loaded has sections, or at least a state of its own.
    std::path::Path::new(&path).exists() && !std::path::Path::new(&format!("{path}/initstate")).exists()
}

fn failed(function: &str, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::NoBpf,
        Some(libc::ENOSYS) => Error::NoTypes("bpf(2)".into()),
        _ => Error::Kernel {
            function: function.to_owned(),
            source,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::places;
    use super::super::tests::is_debian_in_the_lab;
    use super::*;

    /// On a kernel with these drivers loaded: each place is one of its functions, with the argument that is wanted. Debian's
    /// kernels in the lab have to have them.
    #[test]
    fn every_place_is_there() {
        let mut looked = 0;
        for driver in ["mac80211_hwsim", "ath9k"] {
            let Ok(own) = types(driver) else {
                assert!(!is_debian_in_the_lab(), "{driver} is not loaded");
                eprintln!("skipped: {driver} is not loaded, or this kernel tells no types");
                continue;
            };
            let all = [types("vmlinux").unwrap(), types("mac80211").unwrap(), own];
            let base = Btf::parse(&all[0], None).unwrap();
            let modules = [&all[1], &all[2]].map(|m| Btf::parse(m, Some(&base)).unwrap());
            for place in places([driver].into_iter()) {
                let found = modules.iter().find_map(|types| find(types, &place));
                assert!(found.is_some(), "{driver}: {place:?}");
                looked += 1;
            }
        }
        eprintln!("{looked} places are there");
    }
}
