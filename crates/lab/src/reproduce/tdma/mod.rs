//! TDMA on commodity hardware: a frame in each slot of 256 us, released by a timer of the host ([`link`]); the timers
//! themselves ([`timers`]). Calibrated on Table 1 alone ([`calibrate`]); Table 2 and test 3 are predicted.

pub mod calibrate;
pub mod link;
pub mod timers;
mod values;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use frame::{Phy, Rate};
use protocols::mac::slotted::LeftOn;
use rayon::prelude::*;
use sim::rng::mix3;

use super::claims::{Claim, parse};
use super::counts::Counts;
use super::rows::{Reproduction, Totals};
use crate::report::html::Report;
use calibrate::Model;
use link::{Arrivals, Beacons, Conditions, Foreign};
use timers::{Load, PHASES, RUNS, Timer};

/// Slots of one piece of work: a minute.
const PIECE: u64 = 234_375;
/// Pieces of test 1: an hour of 14,062,500 slots and 195 more, as the packet count says.
const HOUR: u64 = 60;
/// Loss of the three tests: lost of all that were sent.
pub const LOSS: [f64; 3] = [517.0 / 14_027_522.0, 17.0 / 233_955.0, 2_632.0 / 19_651.0];

/// The claims of the paper.
///
/// # Panics
/// Never: the file is part of the program, and its form is tested.
pub fn claims() -> Vec<Claim> {
    parse(include_str!("../../../../../papers/tdma/claims.toml")).expect("the file is part of the program")
}

/// What to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Everything random follows from it.
    pub seed: u64,
    /// A part of each experiment instead of all of it.
    pub quick: bool,
}

/// One thing left on, or nothing, with others on the channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ablation {
    /// Everything off, among probe requests and an exchange with RTS.
    Off,
    /// Reception, among probe requests at 6 Mb/s.
    Reception,
    /// Reception, among probe requests at 1 Mb/s.
    SlowReception,
    /// Carrier sense (and with it reception), among an exchange.
    CarrierSense,
    /// Virtual carrier sense (and with it reception), among an exchange with RTS.
    VirtualCarrierSense,
    /// The contention window.
    Backoff,
    /// RTS before each packet, with ACKs: without them there is none.
    Rts,
    /// ACKs and retries, with a tenth of the packets lost.
    Acks,
    /// As [`SlowReception`](Ablation::SlowReception), with beacons that go before data.
    BeaconsFirst,
    /// Everything off, and nobody else, but beacons by their own timer.
    OwnBeacons,
}

impl Ablation {
    const ALL: [Ablation; 10] = [
        Ablation::Off,
        Ablation::Reception,
        Ablation::SlowReception,
        Ablation::CarrierSense,
        Ablation::VirtualCarrierSense,
        Ablation::Backoff,
        Ablation::Rts,
        Ablation::Acks,
        Ablation::BeaconsFirst,
        Ablation::OwnBeacons,
    ];

    fn conditions(self) -> Conditions {
        let probes = Foreign::Probes(150, Rate::OFDM_6);
        let none = LeftOn::default();
        let hearing = LeftOn {
            reception: true,
            ..none
        };
        let (left_on, foreign) = match self {
            Ablation::Off => (none, probes),
            Ablation::Reception => (hearing, probes),
            Ablation::SlowReception | Ablation::BeaconsFirst => (hearing, Foreign::Probes(150, Rate::DSSS_1)),
            Ablation::CarrierSense => (
                LeftOn {
                    carrier_sense: true,
                    ..hearing
                },
                Foreign::Pair,
            ),
            Ablation::VirtualCarrierSense => (
                LeftOn {
                    virtual_carrier_sense: true,
                    ..hearing
                },
                Foreign::Pair,
            ),
            Ablation::Backoff => (
                LeftOn {
                    backoff: true,
                    ..none
                },
                Foreign::Nobody,
            ),
            Ablation::OwnBeacons => (none, Foreign::Nobody),
            // the CTS must be heard
            Ablation::Rts => (
                LeftOn {
                    rts: true,
                    acks: true,
                    ..hearing
                },
                Foreign::Nobody,
            ),
            Ablation::Acks => (
                LeftOn {
                    acks: true,
                    ..hearing
                },
                Foreign::Nobody,
            ),
        };
        Conditions {
            left_on,
            rts: true,
            model: None,
            loss: if self == Ablation::Acks { 0.1 } else { 0.0 },
            foreign,
            beacons: match self {
                Ablation::BeaconsFirst => Beacons::First,
                Ablation::OwnBeacons => Beacons::OwnTimer,
                _ => Beacons::InLine,
            },
            phy: match self {
                Ablation::SlowReception | Ablation::BeaconsFirst => Phy::N2_4,
                _ => Phy::N5,
            },
        }
    }
}

/// The runs of the timers: period, which timer, load, and number of runs.
const TIMERS: [(u64, Timer, Load, u64); 14] = [
    (250, Timer::Beacon, Load::Quiet, RUNS),
    (1_000, Timer::Beacon, Load::Quiet, RUNS),
    (250, Timer::Beacon, Load::TenTimers, RUNS),
    (1_000, Timer::Beacon, Load::TenTimers, RUNS),
    (250, Timer::High, Load::TenTimers, RUNS),
    (1_000, Timer::High, Load::TenTimers, RUNS),
    (1_000, Timer::High, Load::TenTimers, PHASES),
    (1_000, Timer::High, Load::Quiet, RUNS),
    (1_000, Timer::High, Load::Network, RUNS),
    // it comes at fixed times
    (1_000, Timer::High, Load::Printing, 1),
    // the kernels of 2-4
    (250, Timer::Wheel(100), Load::Quiet, RUNS),
    (250, Timer::Wheel(250), Load::Quiet, RUNS),
    (250, Timer::Wheel(300), Load::Quiet, RUNS),
    (250, Timer::Wheel(1_000), Load::Quiet, RUNS),
];

/// A piece of work.
#[derive(Clone, Copy)]
enum Work {
    Test(usize, u64, u64),
    Ablation(usize),
    Timer(usize),
}

/// What was measured.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Measured {
    tests: [Arrivals; 3],
    ablations: [Arrivals; Ablation::ALL.len()],
    timers: [Counts; TIMERS.len()],
    /// Share of an hour that test 1 stood for.
    share: f64,
    /// False if it was stopped early.
    pub complete: bool,
}

impl Plan {
    fn works(&self) -> Vec<Work> {
        let hour = if self.quick { 3 } else { HOUR };
        let mut works: Vec<Work> = (0..hour).map(|piece| Work::Test(0, piece, PIECE)).collect();
        // the paper counts 60 and 5 seconds
        works.push(Work::Test(1, 0, 234_542));
        works.push(Work::Test(2, 0, 19_701));
        works.extend((0..Ablation::ALL.len()).map(Work::Ablation));
        works.extend((0..TIMERS.len()).map(Work::Timer));
        works
    }

    /// Slots of the whole plan.
    pub fn transmissions(&self) -> u64 {
        let slots = |w: &Work| match w {
            Work::Test(_, _, slots) => *slots,
            Work::Ablation(_) => self.ablation_slots(),
            Work::Timer(_) => 0,
        };
        self.works().iter().map(slots).sum()
    }

    fn ablation_slots(&self) -> u64 {
        if self.quick { 8_000 } else { 80_000 }
    }

    fn samples(&self, timer: Timer, load: Load) -> u64 {
        match (self.quick, timer, load) {
            // outages are rare, and so are late timers on a quiet computer
            (_, Timer::High, Load::Printing | Load::Quiet) => timers::SAMPLES,
            // largest values are those of as many samples
            (false, Timer::High | Timer::Beacon, Load::TenTimers) => timers::SAMPLES,
            (true, ..) => 50_000,
            (false, ..) => 500_000,
        }
    }

    /// Runs everything on `jobs` threads (0: as many as there are processors); the numbers do not depend on how many.
    /// `progress` is told the slots done so far. When `stop` is set, what is there is returned.
    pub fn run(&self, jobs: usize, stop: &AtomicBool, progress: &(dyn Fn(u64) + Sync)) -> Measured {
        let works = self.works();
        let model = Model::of_table_1();
        let (done, measured) = (AtomicU64::new(0), Mutex::new(Measured::default()));
        let lock = || measured.lock().unwrap_or_else(|e| e.into_inner());
        let one = |work: &Work| {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let slots = match *work {
                Work::Test(test, piece, slots) => {
                    let conditions = Conditions {
                        model: Some(model.clone()),
                        loss: LOSS[test],
                        phy: if test == 2 { Phy::N2_4 } else { Phy::N5 },
                        foreign: Foreign::Nobody,
                        beacons: Beacons::InLine,
                        rts: false,
                        left_on: LeftOn::default(),
                    };
                    let found = link::run(&conditions, mix3(self.seed, test as u64, piece), slots);
                    let mut measured = lock();
                    measured.tests[test].merge(&found);
                    if test == 0 {
                        measured.share += 1.0 / HOUR as f64;
                    }
                    slots
                }
                Work::Ablation(i) => {
                    let slots = self.ablation_slots();
                    let found = link::run(
                        &Ablation::ALL[i].conditions(),
                        mix3(self.seed, 9, i as u64),
                        slots,
                    );
                    lock().ablations[i] = found;
                    slots
                }
                Work::Timer(i) => {
                    let (period, timer, load, runs) = TIMERS[i];
                    let seed = mix3(self.seed, 10, i as u64);
                    let found = timers::intervals(period, timer, load, runs, self.samples(timer, load), seed);
                    lock().timers[i] = found;
                    0
                }
            };
            progress(done.fetch_add(slots, Ordering::Relaxed) + slots);
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
        match pool {
            Ok(pool) => pool.install(|| works.par_iter().with_max_len(1).for_each(one)),
            // threads cannot be had: one after the other
            Err(_) => works.iter().for_each(one),
        }
        let mut measured = measured.into_inner().unwrap_or_else(|e| e.into_inner());
        measured.complete = !stop.load(Ordering::Relaxed);
        measured
    }
}

impl Measured {
    fn ablation(&self, which: Ablation) -> &Arrivals {
        let index = Ablation::ALL.iter().position(|a| *a == which);
        &self.ablations[index.expect("it is in the list")]
    }

    fn timer(&self, period_us: u64, timer: Timer, load: Load, runs: u64) -> &Counts {
        let wanted = (period_us, timer, load, runs);
        let index = TIMERS.iter().position(|t| *t == wanted);
        &self.timers[index.expect("it is in the list")]
    }

    /// The page of a reproduction.
    pub fn page(&self, reproduction: &Reproduction, time: &str) -> Report {
        let title = "Does the paper on TDMA with commodity hardware come out again?";
        reproduction.page_of(title, "Torfs, Blondia 2015", None, time)
    }

    /// Judges what was measured.
    pub fn judge(&self, plan: Plan) -> Reproduction {
        let all = self.tests.iter().chain(&self.ablations);
        let totals = Totals {
            paper: "tdma",
            complete: self.complete,
            quick: plan.quick,
            seed: plan.seed,
            transmissions: all.map(|a| a.received + a.lost + a.beacons).sum(),
        };
        let claims = claims();
        Reproduction::judged(totals, &claims, &values::of(self, &claims))
    }
}

#[cfg(test)]
mod tests;
