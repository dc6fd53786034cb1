//! RT-WLAN: a real-time way from the application to an 802.11b card, measured phase by phase between two hosts and among three
//! ([`bed`]). What is put in stands in [`path`]; TBMAC, for which the paper was written, runs over the same hosts, and how soon
//! it gives a host a slot is in [`acquisition`].

pub mod acquisition;
pub mod bed;
mod figures;
pub mod path;
mod values;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use sim::rng::mix3;

use super::claims::{Claim, parse};
use super::rows::{Reproduction, Totals};
use crate::report::html::{Report, Section};
use crate::report::plot::Figure;
use acquisition::{Acquired, Contention};
use bed::{Access, Conditions, Found};
use path::{Firmware, SOFTWARE_US};

/// The claims of the paper.
///
/// # Panics
/// Never: the file is part of the program, and its form is tested.
pub fn claims() -> Vec<Claim> {
    parse(include_str!("../../../../../papers/rtwlan/claims.toml")).expect("the file is part of the program")
}

/// Share of packets in the office that take longer than the paper's bound (3.2).
const OFFICE: f64 = 0.025;

/// What to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Everything random follows from it.
    pub seed: u64,
    /// A part of each experiment instead of all of it.
    pub quick: bool,
}

/// The experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Experiment {
    /// Two hosts, every 20 ms, open space, where something once delayed one packet of a thousand.
    Benchmark,
    /// Every 5 ms, nobody else on the channel.
    Every5,
    /// Every 3 ms, nobody else on the channel.
    Every3,
    /// Every 3 ms in the office: there the others on the channel are fitted.
    Office,
    /// Every 1.5 ms, which is less than a round trip.
    Every1500,
    /// Three hosts.
    Three,
    /// Three hosts, answers only after a backoff.
    ThreeBackoff,
    /// Three hosts whose answers are equally strong.
    ThreeNoCapture,
    /// Three hosts with the widest firmware that the paper allows.
    ThreeWide,
    /// Three hosts in slots of TBMAC.
    ThreeTbmac,
    /// Every 5 ms in the office, with the others that were fitted at 3 ms.
    Office5,
}

impl Experiment {
    const ALL: [Experiment; 11] = [
        Experiment::Benchmark,
        Experiment::Every5,
        Experiment::Every3,
        Experiment::Office,
        Experiment::Every1500,
        Experiment::Three,
        Experiment::ThreeBackoff,
        Experiment::ThreeNoCapture,
        Experiment::ThreeWide,
        Experiment::ThreeTbmac,
        Experiment::Office5,
    ];

    /// Whether two hosts answer, and not one.
    fn is_three(self) -> bool {
        use Experiment::{Three, ThreeBackoff, ThreeNoCapture, ThreeTbmac, ThreeWide};
        matches!(
            self,
            Three | ThreeBackoff | ThreeNoCapture | ThreeWide | ThreeTbmac
        )
    }

    /// How it is run; in the office frames of others begin as if they alone were to delay the share `office` (0 to 1).
    fn conditions(self, office: f64) -> Conditions {
        let two = Conditions {
            period_ns: 20_000_000,
            answering_us: vec![SOFTWARE_US],
            firmware: Firmware::Steady,
            access: Access::Immediate,
            first_stronger: None,
            delayed: 0.0,
        };
        let three = Conditions {
            // Table 3, T_queued
            answering_us: vec![393.0, 397.0],
            // Table 3: of the lost answers 76 of 80 are B's
            first_stronger: Some(76.0 / 80.0),
            ..two.clone()
        };
        match self {
            Experiment::Benchmark => Conditions {
                delayed: 0.001,
                ..two
            },
            Experiment::Every5 => Conditions {
                period_ns: 5_000_000,
                ..two
            },
            Experiment::Every3 => Conditions {
                period_ns: 3_000_000,
                ..two
            },
            Experiment::Office => Conditions {
                period_ns: 3_000_000,
                delayed: office,
                ..two
            },
            Experiment::Office5 => Conditions {
                period_ns: 5_000_000,
                delayed: office,
                ..two
            },
            Experiment::Every1500 => Conditions {
                period_ns: 1_500_000,
                ..two
            },
            Experiment::Three => three,
            Experiment::ThreeBackoff => Conditions {
                access: Access::Backoff,
                ..three
            },
            Experiment::ThreeNoCapture => Conditions {
                first_stronger: None,
                ..three
            },
            Experiment::ThreeWide => Conditions {
                firmware: Firmware::Wide,
                ..three
            },
            Experiment::ThreeTbmac => Conditions {
                access: Access::Tbmac,
                ..three
            },
        }
    }

    /// Packets of one run of the paper.
    fn packets(self) -> u64 {
        if self.is_three() { 100 } else { 1_000 }
    }
}

/// What was measured.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Measured {
    experiments: [Found; Experiment::ALL.len()],
    /// By [`Contention::ALL`].
    acquired: [Acquired; Contention::ALL.len()],
    /// False if it was stopped early.
    pub complete: bool,
}

impl Plan {
    /// Runs of each experiment: as many packets in all, whether there are two hosts or three.
    fn runs(&self, experiment: Experiment) -> u64 {
        let packets = if self.quick { 3_000 } else { 50_000 };
        packets / experiment.packets()
    }

    /// Moves of a host into a cell of TBMAC, for each [`Contention`].
    fn tries(&self) -> u64 {
        if self.quick { 5_000 } else { 50_000 }
    }

    /// Packets and moves of the whole plan.
    pub fn pieces(&self) -> u64 {
        let packets: u64 = Experiment::ALL.iter().map(|e| self.runs(*e) * e.packets()).sum();
        packets + self.tries() * Contention::ALL.len() as u64
    }

    /// The share of packets that frames of others alone are to delay so that [`OFFICE`] are delayed: who is delayed at a
    /// period of 3 ms answers so late that the next packet waits for the answer. From a trial run of the model itself.
    fn office(&self) -> f64 {
        const RUNS: u64 = 5;
        let mut trial = Found::default();
        for run in 0..RUNS {
            let conditions = Experiment::Office.conditions(OFFICE);
            let seed = mix3(self.seed, 1 << 32, run);
            trial.merge(bed::run(&conditions, seed, Experiment::Office.packets()));
        }
        let all = &trial.hosts[0].communication;
        let late = all.iter().filter(|ns| **ns as f64 / 1e3 > path::BOUND_US).count();
        OFFICE * OFFICE * all.len() as f64 / late.max(1) as f64
    }

    /// Runs everything on `jobs` threads (0: as many as there are processors); the numbers do not depend on how many.
    /// `progress` is told the pieces done so far. When `stop` is set, what is there is returned.
    pub fn run(&self, jobs: usize, stop: &AtomicBool, progress: &(dyn Fn(u64) + Sync)) -> Measured {
        let works = self.works();
        let office = if stop.load(Ordering::Relaxed) {
            OFFICE
        } else {
            self.office()
        };
        let done = AtomicU64::new(0);
        let one = |work: &Work| {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let (result, pieces) = match *work {
                Work::Packets(i, experiment, run) => {
                    let (seed, packets) = (mix3(self.seed, i as u64, run), experiment.packets());
                    let found = bed::run(&experiment.conditions(office), seed, packets);
                    (Done::Packets(i, found), packets)
                }
                Work::Moves(i, contention, run) => {
                    let seed = mix3(self.seed, (2 << 32) + i as u64, run);
                    (Done::Moves(i, contention.run(seed, MOVES)), MOVES)
                }
            };
            progress(done.fetch_add(pieces, Ordering::Relaxed) + pieces);
            Some(result)
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
        let all: Vec<_> = match pool {
            Ok(pool) => pool.install(|| works.par_iter().map(one).collect()),
            // threads cannot be had: one after the other
            Err(_) => works.iter().map(one).collect(),
        };
        let mut measured = Measured {
            complete: all.iter().all(Option::is_some),
            ..Measured::default()
        };
        for result in all.into_iter().flatten() {
            match result {
                Done::Packets(i, found) => measured.experiments[i].merge(found),
                Done::Moves(i, acquired) => measured.acquired[i].merge(acquired),
            }
        }
        measured
    }

    /// What there is to do, the longest pieces first.
    fn works(&self) -> Vec<Work> {
        let contentions = Contention::ALL.into_iter().enumerate();
        let moves =
            contentions.flat_map(|(i, c)| (0..self.tries() / MOVES).map(move |run| Work::Moves(i, c, run)));
        let each = Experiment::ALL.into_iter().enumerate();
        let packets = each.flat_map(|(i, e)| (0..self.runs(e)).map(move |run| Work::Packets(i, e, run)));
        moves.chain(packets).collect()
    }
}

/// Moves into a cell of one run.
const MOVES: u64 = 1_000;

/// One run, with the index of what it belongs to.
enum Work {
    Packets(usize, Experiment, u64),
    Moves(usize, Contention, u64),
}

/// Its result.
enum Done {
    Packets(usize, Found),
    Moves(usize, Acquired),
}

impl Measured {
    fn of(&self, experiment: Experiment) -> &Found {
        let index = Experiment::ALL.iter().position(|e| *e == experiment);
        &self.experiments[index.expect("it is in the list")]
    }

    /// Figures 8 to 10 of the paper, and what TBMAC changes; each with the name of its file.
    pub fn figures(&self) -> Vec<(&'static str, Figure)> {
        figures::figures(self)
    }

    /// The page of a reproduction.
    pub fn page(&self, reproduction: &Reproduction, time: &str) -> Report {
        let figures = self.figures().into_iter();
        let plots = figures.fold(Section::new("Figures"), |plots, (_, figure)| plots.figure(figure));
        let title = "Does the paper on RT-WLAN come out again?";
        reproduction.page_of(title, "Hughes, Cahill: RT-WLAN", Some(plots), time)
    }

    /// Judges what was measured.
    pub fn judge(&self, plan: Plan) -> Reproduction {
        let frames = |found: &Found| found.hosts.iter().map(|h| h.total.len() as u64).sum::<u64>();
        let totals = Totals {
            paper: "rtwlan",
            complete: self.complete,
            quick: plan.quick,
            seed: plan.seed,
            transmissions: self.experiments.iter().map(frames).sum(),
        };
        let claims = claims();
        Reproduction::judged(totals, &claims, &values::of(self, &claims))
    }
}

#[cfg(test)]
mod tests;
