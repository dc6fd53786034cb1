//! Contiki80211: an ad hoc station on a Cortex-M3 with an AR9170. What the interrupt of the USB loses ([`bus`]), what the
//! queue behind it loses and delays ([`queue`]), how late our own stack is ([`own_stack`]), and what power save costs over several hops
//! ([`psm`]). Fitted: the first parser of Table I, the row of Table II without filter, and the low priority of Table III; the rest is
//! predicted.

mod air;
pub mod bus;
mod figures;
mod hosts;
mod ieee802154;
mod instructions;
pub mod own_stack;
pub mod psm;
pub mod queue;
mod values;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ar9170::driver::{Dynamic, Hybrid, Static};
use rayon::prelude::*;
use sim::rng::mix3;

use super::claims::{Claim, parse};
use super::rows::{Reproduction, Totals};
use crate::report::html::{Report, Section};
use crate::report::plot::Figure;
use bus::{Found, OtherInterrupts, Parser, Policy, Setting};
use psm::{Saving, Seen};
use queue::{Fate, Load, WINDOWS_MS};

/// The claims of the paper.
///
/// # Panics
/// Never: the file is part of the program, and its form is tested.
pub fn claims() -> Vec<Claim> {
    parse(include_str!("../../../../../papers/contiki80211/claims.toml"))
        .expect("the file is part of the program")
}

/// Other interrupts at low priority: the clock of Contiki, assumed; how long they take is fitted to the share of grouped transfers
/// (Table III), together with [`FOLLOWS`].
pub const OTHERS: OtherInterrupts = OtherInterrupts {
    per_s: 128.0,
    ns: 3.0e6,
};
/// Chance that a command follows the one before at once: fitted to what the first parser loses (Table I).
pub const FOLLOWS: f64 = 0.25;
/// What the search takes for an octet, ns: fitted to its mean of 100 us (Table I).
pub const SEARCH_NS: f64 = 368.0;

/// What to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Everything random follows from it.
    pub seed: u64,
    /// A part of each experiment instead of all of it.
    pub quick: bool,
}

/// Settings of the interrupt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Bus {
    /// Low priority, the first parser.
    First,
    /// Low priority, the search: what the others differ from in one thing.
    Search,
    /// High priority.
    High,
    /// With the filter.
    Filter,
    /// Static buffers.
    Static,
    /// Hybrid buffers.
    Hybrid,
}

impl Bus {
    const ALL: [Bus; 6] = [
        Bus::First,
        Bus::Search,
        Bus::High,
        Bus::Filter,
        Bus::Static,
        Bus::Hybrid,
    ];

    fn run(self, intervals: u64, seed: u64) -> Found {
        let mut setting = Setting {
            load: Load::FITTED,
            networks: air::NETWORKS,
            others: Some(OTHERS),
            follows: FOLLOWS,
            parser: Parser::Search(SEARCH_NS),
            policy: Policy::Dynamic,
            filter: None,
        };
        match self {
            Bus::Search => {}
            Bus::First => setting.parser = Parser::First,
            Bus::High => setting.others = None,
            Bus::Filter => setting.filter = Some(WINDOWS_MS[1]),
            Bus::Static => setting.policy = Policy::Static,
            Bus::Hybrid => setting.policy = Policy::Hybrid,
        }
        match self {
            Bus::Static => bus::run(&setting, Static::<16, 2_048>::default(), intervals, seed),
            Bus::Hybrid => bus::run(&setting, Hybrid::<16, 2_048>::default(), intervals, seed),
            _ => bus::run(&setting, Dynamic::<32_768>::default(), intervals, seed),
        }
    }
}

/// A piece of work.
#[derive(Clone, Copy)]
enum Work {
    Bus(Bus),
    /// Networks around, and the window of [`WINDOWS_MS`] of the filter, if there is one; which piece.
    Queue(u64, Option<usize>, u64),
    /// A host that can be, by its number.
    Host(usize),
    /// A cell of our own stack, and which piece.
    Own(usize, u64),
    /// A chain of stations.
    Chain(Saving),
}

/// ATIM window of the chains, TU.
pub const CHAIN_WINDOW_TU: u16 = 10;
/// Pieces of the queue's run that are one piece of work: 20,000 intervals.
const QUEUE_PIECES: u64 = 20_000 / queue::TOGETHER;
/// Runs of each cell of our own stack, among others with other phases, and beacon intervals of one.
const OWN_PIECES: u64 = 4;
const OWN_INTERVALS: u64 = 500;
/// Other numbers of networks around, to see how much hangs on the one that is assumed.
const OTHER_NETWORKS: [u64; 2] = [2, 10];

/// What was measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    bus: [Found; Bus::ALL.len()],
    /// Without filter.
    open: Fate,
    /// With, by window; then the same for [`OTHER_NETWORKS`].
    filtered: [[Fate; 3]; 3],
    /// By [`Saving`].
    chains: [Seen; Saving::ALL.len()],
    hosts: [hosts::Tried; hosts::COUNT],
    own: [own_stack::Fate; own_stack::COUNT],
    /// False if it was stopped early.
    pub complete: bool,
}

impl Plan {
    /// Beacon intervals of a run of the interrupt: 120 min (paper, III).
    fn bus_intervals(&self) -> u64 {
        if self.quick { 3_000 } else { 35_156 }
    }

    fn queue_pieces(&self) -> u64 {
        if self.quick { 2 } else { 20 }
    }

    fn works(&self) -> Vec<Work> {
        let mut works: Vec<Work> = Bus::ALL.map(Work::Bus).to_vec();
        for piece in 0..self.queue_pieces() {
            works.push(Work::Queue(air::NETWORKS, None, piece));
            for window in 0..WINDOWS_MS.len() {
                let networks = [air::NETWORKS, OTHER_NETWORKS[0], OTHER_NETWORKS[1]];
                works.extend(networks.map(|n| Work::Queue(n, Some(window), piece)));
            }
        }
        works.extend(Saving::ALL.map(Work::Chain));
        works.extend((0..hosts::COUNT).map(Work::Host));
        for piece in 0..OWN_PIECES {
            let judged = |cell: &usize| !self.quick || own_stack::JUDGED.contains(cell);
            let cells = (0..own_stack::COUNT).filter(judged);
            works.extend(cells.map(|cell| Work::Own(cell, piece)));
        }
        works
    }

    fn messages(&self) -> u64 {
        if self.quick { 20 } else { 200 }
    }

    /// Pieces of work.
    pub fn pieces(&self) -> u64 {
        self.works().len() as u64
    }

    /// Runs everything on `jobs` threads (0: as many as there are processors); the numbers do not depend on how many.
    /// `progress` is told the pieces done so far. When `stop` is set, what is there is returned.
    pub fn run(&self, jobs: usize, stop: &AtomicBool, progress: &(dyn Fn(u64) + Sync)) -> Measured {
        let works = self.works();
        let (done, measured) = (AtomicU64::new(0), Mutex::new(Measured::default()));
        let one = |work: &Work| {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            self.work(*work, &measured);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        };
        match rayon::ThreadPoolBuilder::new().num_threads(jobs).build() {
            Ok(pool) => pool.install(|| works.par_iter().with_max_len(1).for_each(one)),
            // threads cannot be had: one after the other
            Err(_) => works.iter().for_each(one),
        }
        let mut measured = measured.into_inner().unwrap_or_else(|e| e.into_inner());
        measured.complete = !stop.load(Ordering::Relaxed);
        measured
    }

    fn work(&self, work: Work, measured: &Mutex<Measured>) {
        let lock = || measured.lock().unwrap_or_else(|e| e.into_inner());
        match work {
            Work::Bus(bus) => {
                // the same air for all of them
                let found = bus.run(self.bus_intervals(), mix3(self.seed, 1, 0));
                lock().bus[bus as usize] = found;
            }
            Work::Queue(networks, filter, piece) => {
                let window = filter.map(|i| WINDOWS_MS[i]);
                let seed = mix3(self.seed, 2, piece);
                let fate = queue::run(&Load::FITTED, networks, window, QUEUE_PIECES, seed);
                let mut measured = lock();
                let others = OTHER_NETWORKS.iter().position(|n| *n == networks);
                match filter {
                    Some(i) => measured.filtered[others.map_or(0, |o| o + 1)][i].merge(&fate),
                    None => measured.open.merge(&fate),
                }
            }
            Work::Host(number) => {
                let tried = hosts::run(number, self.bus_intervals(), mix3(self.seed, 1, 0));
                lock().hosts[number] = tried;
            }
            Work::Own(cell, piece) => {
                let seed = mix3(self.seed, 5, piece);
                let fate = own_stack::run(own_stack::cell(cell), OWN_INTERVALS, seed);
                lock().own[cell].merge(&fate);
            }
            Work::Chain(saving) => {
                let seen = psm::chain(saving, CHAIN_WINDOW_TU, self.messages(), mix3(self.seed, 3, 0));
                lock().chains[saving as usize] = seen;
            }
        }
    }
}

impl Measured {
    pub(crate) fn bus(&self, which: Bus) -> Option<&Found> {
        Some(&self.bus[which as usize]).filter(|f| f.transfers > 0)
    }

    /// Frames through the queue, and transfers.
    fn events(&self) -> u64 {
        let fates = self.filtered.iter().flatten().chain([&self.open]);
        fates.map(|f| f.frames).sum::<u64>() + self.bus.iter().map(|f| f.transfers).sum::<u64>()
    }

    /// Judges what was measured.
    pub fn judge(&self, plan: Plan) -> Reproduction {
        let totals = Totals {
            paper: "contiki80211",
            complete: self.complete,
            quick: plan.quick,
            seed: plan.seed,
            transmissions: self.events(),
        };
        Reproduction::judged(totals, &claims(), &values::of(self))
    }

    /// The plots, each with the name of its file; those without samples are left out.
    pub fn figures(&self) -> Vec<(&'static str, Figure)> {
        figures::figures(self)
    }

    /// The page of a reproduction.
    pub fn page(&self, reproduction: &Reproduction, time: &str) -> Report {
        let figures = self.figures().into_iter();
        let plots = figures.fold(Section::new("Figures"), |plots, (_, figure)| plots.figure(figure));
        let title = "Does the paper on Contiki80211 come out again?";
        let mut page = reproduction.page_of(title, "Glaropoulos, Vukadinovic, Mangold", Some(plots), time);
        page.sections.push(hosts::section(self));
        page.sections.push(own_stack::section(self));
        page.sections.push(instructions::section());
        page
    }
}

#[cfg(test)]
mod tests;
