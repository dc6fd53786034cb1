//! Probes by traps at instructions: perf_event_open(2), one ring for each CPU.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use radio::{Instant, Plane};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::places::{Key, Place};
use super::{BATCH, Error, Hit};
use crate::machine::Tree;
use crate::sys::perf::{Entry, Ring, identity, open_probe};

/// Where the kernel tells the number of its source of kprobes.
const SOURCE: &str = "/sys/bus/event_source/devices/kprobe/type";
/// Pages of each ring: about 4,000 hits, or 500 frames between two looks.
const PAGES: usize = 64;

/// The probes on all CPUs.
#[derive(Debug)]
pub(super) struct Kprobes {
    rings: Vec<Watched>,
    /// Probes that write to the ring of another.
    _others: Vec<OwnedFd>,
    pub functions: Vec<(Plane, &'static str)>,
    /// Hits that found no room.
    pub lost: u64,
}

/// The ring of one CPU, and the probes that write to it.
#[derive(Debug)]
struct Watched {
    ring: Ring,
    cpu: usize,
    ids: Vec<(u64, Place)>,
}

impl Kprobes {
    pub fn open(tree: &Tree, wanted: &[Place], cpus: &[usize]) -> Result<Kprobes, Error> {
        let kind = tree.number(SOURCE).and_then(|n| u32::try_from(n).ok());
        let kind = kind.ok_or_else(|| Error::NoProbes(SOURCE.into()))?;
        let descriptors = cpus.len() * wanted.len();
        allow_descriptors(descriptors);
        let mut probes = Kprobes {
            rings: Vec::with_capacity(cpus.len()),
            _others: Vec::with_capacity(descriptors),
            functions: Vec::new(),
            lost: 0,
        };
        for cpu in cpus {
            probes.watch(kind, wanted, *cpu, descriptors)?;
        }
        Ok(probes)
    }

    /// Puts all probes on one CPU.
    fn watch(&mut self, kind: u32, wanted: &[Place], cpu: usize, descriptors: usize) -> Result<(), Error> {
        let mut watched: Option<Watched> = None;
        for place in wanted {
            let Some((function, probe)) = probe(kind, place, cpu, descriptors)? else {
                continue;
            };
            let failed = |source| failed(function, source);
            let id = identity(probe.as_fd()).map_err(&failed)?;
            match &mut watched {
                Some(watched) => {
                    watched.ring.share(probe.as_fd()).map_err(&failed)?;
                    watched.ids.push((id, *place));
                    self._others.push(probe);
                }
                None => {
                    let ring = Ring::new(probe, PAGES).map_err(&failed)?;
                    let ids = vec![(id, *place)];
                    watched = Some(Watched { ring, cpu, ids });
                }
            }
            if !self.functions.contains(&(place.plane, function)) {
                self.functions.push((place.plane, function));
            }
        }
        self.rings.extend(watched);
        Ok(())
    }

    /// Reads what has come, as far as there is room. Does not allocate, and asks the kernel for nothing.
    pub fn read(&mut self, batch: &mut Vec<Hit>) {
        for watched in &mut self.rings {
            while batch.len() < BATCH
                && let Some(entry) = watched.ring.next()
            {
                let s = match entry {
                    Entry::Lost(hits) => {
                        self.lost += hits;
                        continue;
                    }
                    Entry::Sample(s) => s,
                };
                let Some((_, place)) = watched.ids.iter().find(|(id, _)| *id == s.id) else {
                    continue;
                };
                batch.push(Hit {
                    plane: place.plane,
                    key: place.key,
                    cpu: watched.cpu,
                    thread: s.thread,
                    at: Instant::from_ns(s.time_ns),
                    buffer: place.key.argument().map_or(0, |n| s.arguments[n]),
                });
            }
        }
    }
}

/// Puts a probe on the first of the place's functions that is there; `None` if none is.
fn probe(kind: u32, place: &Place, cpu: usize, all: usize) -> Result<Option<(&'static str, OwnedFd)>, Error> {
    for function in place.functions {
        let name = CString::new(*function).expect("names have no zeros");
        let error = match open_probe(kind, &name, place.key == Key::Return, cpu) {
            Ok(probe) => return Ok(Some((function, probe))),
            Err(error) => error,
        };
        match error.raw_os_error() {
            // Not there, more than one of that name, not to be probed, or no such CPU any more.
            Some(libc::ENOENT | libc::EINVAL | libc::EADDRNOTAVAIL | libc::EILSEQ | libc::ENODEV) => {}
            Some(libc::EMFILE | libc::ENFILE) => {
                return Err(Error::Descriptors(all));
            }
            _ => return Err(failed(function, error)),
        }
    }
    Ok(None)
}

fn failed(function: &str, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::NoPermission,
        _ if source.kind() == io::ErrorKind::Unsupported => Error::Processor,
        _ => Error::Kernel {
            function: function.to_owned(),
            source,
        },
    }
}

/// Raises the limit of descriptors by so many, as far as this user may.
fn allow_descriptors(more: usize) {
    let mut limit = getrlimit(Resource::Nofile);
    if let Some(current) = limit.current {
        let wanted = current + more as u64;
        limit.current = Some(limit.maximum.map_or(wanted, |maximum| wanted.min(maximum)));
        // When it is refused, opening says what is missing.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}
