//! The planes t2 to t8 of frames, by probes on the kernel as it is.
//!
//! ```text
//! frame  t1 Host  t2 mac80211  t3 driver  t4        t5 driver  t6  t7 mac80211  t8      t9 Host
//!            |         :           :       :            :       :       :        :          |
//!            |       entry       entry   return       entry   entry   entry    entry        |
//!            '---- rings of perf_event_open(2), one for each CPU, or one ring of bpf(2) ----'
//! ```
//!
//! [`Probes`] puts a probe on each function that is a plane and reads from shared memory what they saw. There are two
//! ways. `fentry`: a small program of the kernel's own machine at the function, found by the type information of its
//! module. `kprobes`: ftrace or an instruction that traps, which needs neither types nor root, only CAP_PERFMON. Neither
//! needs a compiler. A probe belongs to a descriptor of this process: the kernel removes it when the process ends, however it
//! does, and other users of probes are not concerned. A plane that this driver or kernel does not show stays empty.
//!
//! What belongs here: from a function of the kernel to a stamp of a frame. What does not: sending them; what the
//! stamps are good for.

pub mod btf;
mod error;
mod fentry;
mod join;
mod kprobes;
mod places;

pub use error::Error;

use radio::{Instant, Plane, Stamps};

use crate::machine::Tree;
use fentry::Fentry;
use join::{Hit, Tracks};
use kprobes::Kprobes;
use places::places;

/// Hits that are brought in order at once.
const BATCH: usize = 8_192;

/// How to probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// [`Way::Fentry`] where that can be had, [`Way::Kprobe`] elsewhere.
    #[default]
    Auto,
    /// By perf_event_open(2): four to five times as many instructions for each hit as [`Way::Fentry`].
    Kprobe,
    /// Programs at the entry and the return of functions, by bpf(2): CAP_SYS_ADMIN, and types of the modules
    /// (CONFIG_DEBUG_INFO_BTF_MODULES). The probed modules cannot be unloaded meanwhile.
    Fentry,
}

/// What sees the calls.
#[derive(Debug)]
enum Source {
    Kprobes(Kprobes),
    Fentry(Fentry),
}

/// What the probes of this process see. They are removed when it is dropped.
#[derive(Debug)]
pub struct Probes {
    source: Source,
    functions: Vec<(Plane, &'static str)>,
    tracks: Tracks,
    batch: Vec<Hit>,
    thread: u32,
}

impl Probes {
    /// Probes the functions of mac80211 and of these drivers. `room`: frames that may be on their way at once, numbered
    /// from 0.
    ///
    /// # Errors
    /// [`Error`]. Single functions that are not there are none: [`Probes::functions`] tells what is.
    pub fn open<'a>(
        way: Way,
        drivers: impl IntoIterator<Item = &'a str>,
        room: usize,
    ) -> Result<Probes, Error> {
        let tree = Tree::default();
        let drivers: Vec<&str> = drivers.into_iter().collect();
        let wanted = places(drivers.iter().copied());
        let mut cpus = tree.cpus("/sys/devices/system/cpu/online");
        if cpus.is_empty() {
            cpus.push(0);
        }
        let last = cpus.iter().max().map_or(1, |last| last + 1);
        let fentry = |cpus: usize| Fentry::open(&drivers, &wanted, cpus);
        let (source, mut functions) = match way {
            Way::Fentry => of_fentry(fentry(cpus.len())?),
            Way::Kprobe => of_kprobes(Kprobes::open(&tree, &wanted, &cpus)?),
            // What is missing for the first way is not missing for the second.
            Way::Auto => match fentry(cpus.len()) {
                Ok(found) => of_fentry(found),
                Err(_) => of_kprobes(Kprobes::open(&tree, &wanted, &cpus)?),
            },
        };
        functions.sort_unstable();
        if functions.is_empty() {
            let names: Vec<&str> = wanted.iter().flat_map(|p| p.functions).copied().collect();
            return Err(Error::NoFunction(names.join(", ")));
        }
        let mut probes = Probes {
            source,
            functions,
            tracks: Tracks::new(room, last),
            batch: Vec::with_capacity(BATCH),
            thread: 0,
        };
        probes.use_this_thread();
        Ok(probes)
    }

    /// The way that was taken: [`Way::Kprobe`] or [`Way::Fentry`].
    pub fn way(&self) -> Way {
        match self.source {
            Source::Kprobes(_) => Way::Kprobe,
            Source::Fentry(_) => Way::Fentry,
        }
    }

    /// Which function is which plane, as far as there is one.
    pub fn functions(&self) -> &[(Plane, &'static str)] {
        &self.functions
    }

    /// Planes that can be stamped, as bits 0 (t1) to 8 (t9). Does not allocate.
    pub fn planes(&self) -> u16 {
        let all = self.functions.iter().map(|(p, _)| 1 << p.index());
        all.fold(0, |planes, plane| planes | plane)
    }

    /// Hits that found no room in a ring.
    pub fn lost(&self) -> u64 {
        match &self.source {
            Source::Kprobes(k) => k.lost,
            Source::Fentry(f) => f.lost(),
        }
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
            match &mut self.source {
                Source::Kprobes(k) => k.read(&mut self.batch),
                Source::Fentry(f) => f.read(&mut self.batch),
            }
            // Those of one CPU are in order. Of equal ones the earlier plane came first.
            self.batch.sort_unstable_by_key(|h| (h.at, h.plane));
            for hit in &self.batch {
                self.tracks.hit(hit, self.thread);
            }
            if self.batch.len() < BATCH {
                return;
            }
        }
    }
}

fn of_fentry(f: Fentry) -> (Source, Vec<(Plane, &'static str)>) {
    let functions = f.functions().collect();
    (Source::Fentry(f), functions)
}

fn of_kprobes(k: Kprobes) -> (Source, Vec<(Plane, &'static str)>) {
    let functions = k.functions.clone();
    (Source::Kprobes(k), functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this is one of Debian's kernels, in the lab: there the drivers are loaded, and types and probes can be had.
    pub(super) fn is_debian_in_the_lab() -> bool {
        std::env::var_os("SDMAC_LAB").is_some_and(|time| time == "real")
    }

    /// The kernel takes a probe at each place, for all planes from t2 to t8.
    #[test]
    fn each_driver_is_probed_in_both_ways() {
        if !is_debian_in_the_lab() {
            return eprintln!("skipped: not on Debian's kernel in the lab");
        }
        for driver in ["mac80211_hwsim", "ath9k"] {
            for way in [Way::Fentry, Way::Kprobe] {
                let probes = Probes::open(way, [driver], 1).unwrap();
                let found = probes.functions();
                let planes: Vec<Plane> = found.iter().map(|(plane, _)| *plane).collect();
                assert_eq!(planes, Plane::ALL[1..8], "{driver}, {way:?}: {found:?}");
            }
        }
    }
}
