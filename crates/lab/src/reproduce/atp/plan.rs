//! The runs of the thesis, and how they are done on any number of processors.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use protocols::mac::sender::DEFAULT_TRIES;
use rayon::prelude::*;
use sim::rng::mix3;

use super::summary::Summary;
use super::{ALL, Bed, Case, KINDS, LOSS, Outcome, Scene, What};
use crate::mesh::{Ended, Kind};

/// What to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Everything random follows from it.
    pub seed: u64,
    /// Shorter files, fewer seeds, and not every number of hops.
    pub quick: bool,
}

impl Plan {
    /// Runs of each case (thesis, section 4.2: at least 10).
    pub fn seeds(&self) -> u64 {
        if self.quick { 5 } else { 10 }
    }

    /// Octets of a file (thesis, section 4.2: 2 MB).
    pub fn octets(&self) -> u64 {
        if self.quick { 300_000 } else { 2_000_000 }
    }

    /// Numbers of hops.
    pub fn hops(&self) -> &'static [u32] {
        if self.quick {
            &[1, 3, 6]
        } else {
            &[1, 2, 3, 4, 5, 6]
        }
    }

    /// Other losses of testbed A, of 1000 frames.
    pub fn losses(&self) -> &'static [u16] {
        if self.quick { &[] } else { &[0, 20, 100] }
    }

    /// All points of the figures.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        let mut add = |bed, flows, kinds: &[Kind]| {
            for &hops in self.hops() {
                cases.extend(kinds.iter().map(|kind| Case {
                    bed,
                    hops,
                    flows,
                    kind: *kind,
                }));
            }
        };
        for bed in [
            Bed::A(LOSS),
            Bed::B,
            Bed::RetryingA,
            Bed::RetryingB,
            Bed::CalibratedA,
        ] {
            [1, 2, 5].into_iter().for_each(|flows| add(bed, flows, &ALL));
        }
        for loss in self.losses() {
            add(Bed::A(*loss), 1, &KINDS);
        }
        cases
    }

    /// Numbers of random flows (thesis, section 5.5: up to 32).
    pub fn flows(&self) -> &'static [u32] {
        if self.quick {
            &[8, 32]
        } else {
            &[1, 2, 4, 8, 16, 32]
        }
    }

    /// Octets of a file between random nodes (thesis, section 5.5: 1 MB).
    pub(super) fn random_octets(&self) -> u64 {
        if self.quick { 200_000 } else { 1_000_000 }
    }

    /// Numbers of random streams.
    fn streams(&self) -> &'static [u32] {
        if self.quick { &[32] } else { self.flows() }
    }

    /// Seconds of a stream (thesis, section 5.5.2: 30).
    pub(super) fn stream_seconds(&self) -> u64 {
        if self.quick { 10 } else { 30 }
    }

    /// The meshes that are no chains. The thesis says that its adapters did not try again; beside that stands what
    /// comes of it if they did.
    pub fn scenes(&self) -> Vec<Scene> {
        let files = self.flows().iter().map(|n| What::Files(*n));
        let streams = self.streams().iter().map(|n| What::Streams(*n));
        let all: Vec<What> = files.chain(streams).chain([What::Stack]).collect();
        let idle = Scene {
            what: What::Idle,
            tries: 1,
            kind: Kind::Default,
        };
        let of = |tries| {
            let scenes = move |&what: &What| ALL.map(|kind| Scene { what, tries, kind });
            all.iter().flat_map(scenes)
        };
        // what the penalty for missed feedback does to the stack
        let lenient = [1, DEFAULT_TRIES].map(|tries| Scene {
            what: What::Stack,
            tries,
            kind: Kind::Lenient,
        });
        of(1)
            .chain(of(DEFAULT_TRIES))
            .chain(lenient)
            .chain([idle])
            .collect()
    }

    /// Number of runs.
    pub fn runs(&self) -> u64 {
        (self.cases().len() + self.scenes().len()) as u64 * self.seeds()
    }

    /// Runs everything on `jobs` threads (0: as many as there are processors); the numbers do not depend on how many.
    /// `progress` is told the runs done so far. When `stop` is set, what is there is returned.
    pub fn run(&self, jobs: usize, stop: &AtomicBool, progress: &(dyn Fn(u64) + Sync)) -> Measured {
        self.run_some(&self.cases(), &self.scenes(), jobs, stop, progress)
    }

    pub(super) fn run_some(
        &self,
        cases: &[Case],
        scenes: &[Scene],
        jobs: usize,
        stop: &AtomicBool,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Measured {
        let done = AtomicU64::new(0);
        let frames = AtomicU64::new(0);
        let all = Mutex::new(BTreeMap::new());
        let traced = Mutex::new(BTreeMap::new());
        let fields = Mutex::new(BTreeMap::new());
        let chain = |case: Case, n: u64| {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let plan = case.chain(self.octets(), 60 + 60 * u64::from(case.flows));
            // the same seeds for all transports, so that differences are of the same air
            let seed = mix3(self.seed, u64::from(case.hops) << 8 | u64::from(case.flows), n);
            let (mut ended, on_air) = plan.run(seed, stop);
            if stop.load(Ordering::Relaxed) {
                return;
            }
            frames.fetch_add(on_air, Ordering::Relaxed);
            let summary = Summary::of(&ended);
            all.lock()
                .unwrap_or_else(|e| e.into_inner())
                .insert((case, n), summary);
            if case.is_shown() {
                traced
                    .lock()
                    .unwrap_or_else(|e| e.into_inner())
                    .insert((case, n), ended.swap_remove(0));
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        };
        let field = |scene: Scene, n: u64| {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            // here too: the same nodes and the same ends for all transports
            let seed = mix3(self.seed, 0xf1e1d, n);
            let (outcome, on_air) = scene.run(self, seed, stop);
            if stop.load(Ordering::Relaxed) {
                return;
            }
            frames.fetch_add(on_air, Ordering::Relaxed);
            fields
                .lock()
                .unwrap_or_else(|e| e.into_inner())
                .insert((scene, n), outcome);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        };
        let one = |work: &(Work, u64)| match work.0 {
            Work::Chain(case) => chain(case, work.1),
            Work::Field(scene) => field(scene, work.1),
        };
        let works: Vec<_> = (0..self.seeds())
            .flat_map(|n| {
                let chains = cases.iter().map(|case| Work::Chain(*case));
                let fields = scenes.iter().map(|scene| Work::Field(*scene));
                chains.chain(fields).map(move |work| (work, n))
            })
            .collect();
        match rayon::ThreadPoolBuilder::new().num_threads(jobs).build() {
            Ok(pool) => pool.install(|| works.par_iter().with_max_len(1).for_each(one)),
            // threads cannot be had: one after the other
            Err(_) => works.iter().for_each(one),
        }
        Measured {
            runs: all.into_inner().unwrap_or_else(|e| e.into_inner()),
            traced: traced.into_inner().unwrap_or_else(|e| e.into_inner()),
            fields: fields.into_inner().unwrap_or_else(|e| e.into_inner()),
            frames: frames.into_inner(),
            complete: !stop.load(Ordering::Relaxed),
        }
    }
}

#[derive(Clone, Copy)]
enum Work {
    Chain(Case),
    Field(Scene),
}

/// What all runs have measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    runs: BTreeMap<(Case, u64), Summary>,
    traced: BTreeMap<(Case, u64), Ended>,
    fields: BTreeMap<(Scene, u64), Outcome>,
    /// Frames on the air.
    pub frames: u64,
    /// False if it was stopped early.
    pub complete: bool,
}

impl Measured {
    /// Runs that nobody has run.
    #[cfg(test)]
    pub(super) fn of_runs(runs: impl IntoIterator<Item = ((Case, u64), Summary)>) -> Measured {
        Measured {
            runs: runs.into_iter().collect(),
            traced: BTreeMap::new(),
            fields: BTreeMap::new(),
            frames: 0,
            complete: true,
        }
    }

    /// A run of a case, if it was done.
    pub fn get(&self, case: Case, n: u64) -> Option<&Summary> {
        self.runs.get(&(case, n))
    }

    /// The flow of a run of a case that is shown over time, if it was done.
    pub fn traced(&self, case: Case, n: u64) -> Option<&Ended> {
        self.traced.get(&(case, n))
    }

    /// What came of the runs of a scene.
    pub fn outcomes(&self, scene: Scene) -> Vec<&Outcome> {
        self.runs_of(scene).map(|(_, outcome)| outcome).collect()
    }

    /// The same, with the number of each run.
    pub(super) fn runs_of(&self, scene: Scene) -> impl Iterator<Item = (u64, &Outcome)> {
        let of = self.fields.range((scene, 0)..=(scene, u64::MAX));
        of.map(|((_, n), outcome)| (*n, outcome))
    }

    /// Numbers of the runs of a case, 0 up to this.
    pub fn seeds(&self) -> u64 {
        self.runs.keys().map(|(_, n)| n + 1).max().unwrap_or(0)
    }

    /// Numbers of hops of a testbed with so many flows.
    pub fn hops(&self, bed: Bed, flows: u32) -> Vec<u32> {
        let mut hops: Vec<u32> = self.cases(bed, flows, Kind::Default).map(|c| c.hops).collect();
        hops.dedup();
        hops
    }

    fn cases(&self, bed: Bed, flows: u32, kind: Kind) -> impl Iterator<Item = Case> {
        let of = move |c: &Case| c.bed == bed && c.flows == flows && c.kind == kind;
        self.runs.keys().map(|(case, _)| *case).filter(of)
    }
}
