//! The planes t2 to t8 of frames, by probes on the kernel as it is.
//!
//! ```text
//! frame  t1 Host  t2 mac80211  t3 driver  t4        t5 driver  t6  t7 mac80211  t8      t9 Host
//!            |         :           :       :            :       :       :        :          |
//!            |        kprobe     kprobe  kretprobe    kprobe  kprobe  kprobe   kprobe       |
//!            '----------------- rings of perf_event_open(2), one for each CPU --------------'
//! ```
//!
//! [`Probes`] puts a kprobe on each function that is a plane and reads from shared memory what they saw. A probe belongs to a
//! descriptor of this process: the kernel removes it when the process ends, however it does, and other users of probes are not
//! concerned. It needs CAP_PERFMON, neither a compiler nor type information. A plane that this driver or kernel does not
//! show stays empty.
//!
//! What belongs here: from a function of the kernel to a stamp of a frame. What does not: sending them; what the
//! stamps are good for.

mod error;
mod join;
mod places;

pub use error::Error;

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use radio::{Instant, Plane, Stamps};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::machine::Tree;
use crate::sys::perf::{Entry, Ring, identity, open_probe};
use join::{Hit, Tracks};
use places::{Key, Place, places};

/// Where the kernel tells the number of its source of kprobes.
const SOURCE: &str = "/sys/bus/event_source/devices/kprobe/type";
/// Pages of each ring: about 4,000 hits, or 500 frames between two looks.
const PAGES: usize = 64;
/// Hits that are brought in order at once.
const BATCH: usize = 8_192;

/// What the probes of this process see. They are removed when it is dropped.
#[derive(Debug)]
pub struct Probes {
    rings: Vec<Watched>,
    /// Probes that write to the ring of another.
    _others: Vec<OwnedFd>,
    functions: Vec<(Plane, &'static str)>,
    tracks: Tracks,
    batch: Vec<Hit>,
    thread: u32,
    lost: u64,
}

/// The ring of one CPU, and the probes that write to it.
#[derive(Debug)]
struct Watched {
    ring: Ring,
    cpu: usize,
    ids: Vec<(u64, Place)>,
}

impl Probes {
    /// Probes the functions of mac80211 and of these drivers. `room`: frames that may be on their way at once, numbered
    /// from 0.
    ///
    /// # Errors
    /// [`Error`]. Single functions that are not there are none: [`Probes::functions`] tells what is.
    pub fn open<'a>(drivers: impl IntoIterator<Item = &'a str>, room: usize) -> Result<Probes, Error> {
        let tree = Tree::default();
        let kind = tree.number(SOURCE).and_then(|n| u32::try_from(n).ok());
        let kind = kind.ok_or_else(|| Error::NoProbes(SOURCE.into()))?;
        let wanted = places(drivers.into_iter());
        let mut cpus = tree.cpus("/sys/devices/system/cpu/online");
        if cpus.is_empty() {
            cpus.push(0);
        }
        let descriptors = cpus.len() * wanted.len();
        allow_descriptors(descriptors);
        let mut probes = Probes {
            rings: Vec::with_capacity(cpus.len()),
            _others: Vec::with_capacity(descriptors),
            functions: Vec::new(),
            tracks: Tracks::new(room, cpus.iter().max().map_or(1, |last| last + 1)),
            batch: Vec::with_capacity(BATCH),
            thread: 0,
            lost: 0,
        };
        for cpu in cpus {
            probes.watch(kind, &wanted, cpu, descriptors)?;
        }
        probes.functions.sort_unstable();
        if probes.functions.is_empty() {
            let names: Vec<&str> = wanted.iter().flat_map(|p| p.functions).copied().collect();
            return Err(Error::NoFunction(names.join(", ")));
        }
        probes.use_this_thread();
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

    /// Which function is which plane, as far as there is one.
    pub fn functions(&self) -> &[(Plane, &'static str)] {
        &self.functions
    }

    /// Planes that can be stamped, as bits 0 (t1) to 8 (t9).
    pub fn planes(&self) -> u16 {
        let all: BTreeSet<usize> = self.functions.iter().map(|(p, _)| p.index()).collect();
        all.into_iter().fold(0, |planes, p| planes | 1 << p)
    }

    /// Hits that found no room in a ring.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Frames are sent by the calling thread from now on.
    pub fn use_this_thread(&mut self) {
        self.thread = rustix::thread::gettid().as_raw_nonzero().get() as u32;
    }

    /// Frame `index` is about to be handed to the kernel by this thread.
    ///
    /// # Panics
    /// If `index` is not below the room.
    pub fn begin(&mut self, index: usize, at: Instant) {
        self.tracks.begin(index, at);
    }

    /// The kernel has it.
    pub fn handed(&mut self, index: usize, at: Instant) {
        self.tracks.handed(index, at);
    }

    /// The stamps of a frame that has ended, from t2 to t8. What happens with it later is not noted.
    pub fn end(&mut self, index: usize) -> Stamps {
        self.drain();
        self.tracks.end(index)
    }

    /// Reads what has come. Does not allocate, and asks the kernel for nothing.
    pub fn drain(&mut self) {
        loop {
            self.batch.clear();
            for watched in &mut self.rings {
                while self.batch.len() < BATCH
                    && let Some(entry) = watched.ring.next()
                {
                    match entry {
                        Entry::Lost(hits) => self.lost += hits,
                        Entry::Sample(s) => {
                            let Some((_, place)) = watched.ids.iter().find(|(id, _)| *id == s.id) else {
                                continue;
                            };
                            let buffer = match place.key {
                                Key::Entry(n) | Key::Buffer(n) => s.arguments[n],
                                Key::Return | Key::Last => 0,
                            };
                            self.batch.push(Hit {
                                plane: place.plane,
                                key: place.key,
                                cpu: watched.cpu,
                                thread: s.thread,
                                at: Instant::from_ns(s.time_ns),
                                buffer,
                            });
                        }
                    }
                }
            }
            if self.rings.len() > 1 {
                // Those of one CPU are in order. Of equal ones the earlier plane came first.
                self.batch.sort_unstable_by_key(|h| (h.at, h.plane));
            }
            for hit in &self.batch {
                self.tracks.hit(hit, self.thread);
            }
            if self.batch.len() < BATCH {
                return;
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
