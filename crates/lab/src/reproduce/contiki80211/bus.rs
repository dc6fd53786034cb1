//! Tables I and III, Figs 7 and 8: the interrupt of the USB on the microcontroller. One read is posted at a time; what
//! comes until the interrupt has been dealt with is on the stick, and comes grouped with the next.
//!
//! ```text
//! stick: unit -> transfer -> interrupt: waits for others of higher priority, parses, posts the next read
//!              unit, unit ... ------------------------------------------------> next transfer, grouped
//! ```
//!
//! Transfers are the octets of the stick, read by the parsers themselves: [`FirstHeader`], [`Search`], [`Units`].

use std::ops::RangeInclusive;

use ar9170::codec::stream::{FirstHeader, RESPONSE_MARK, Search, Unit, Units, write_unit};
use ar9170::driver::Buffers;
use sim::rng::{Cause, Stream};

use super::air::{Air, INTERVAL_NS};
use super::queue::{self, Load};

/// Other interrupts that the USB has to wait for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OtherInterrupts {
    /// In a second, mean (exponential gaps).
    pub per_s: f64,
    /// How long each takes, mean (exponential), ns.
    pub ns: f64,
}

/// Commands in a beacon interval, each with a response 50 us after the stick has it. Assumed.
const COMMANDS: u64 = 8;
const ANSWER_NS: u64 = 50_000;
/// What the first parser takes for any transfer (Table I).
pub const FIRST_NS: u64 = 14_000;
/// Handling of the USB: posting a read, and taking memory. Assumed.
const POST_NS: u64 = 10_000;
const ALLOCATE_NS: u64 = 5_000;
/// Copying, per octet, 32 bits at once (II.A.7).
const COPY_NS: u64 = 10;
/// Octets of a read (II.A.1), and units of a transfer, its octets: what the stick groups.
const READ_OCTETS: usize = 2_048;
const UNITS: usize = 4;
const TRANSFER_OCTETS: usize = 8_192;

/// Which parser the interrupt runs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Parser {
    /// The one that looks at the head of a transfer.
    First,
    /// The one that searches all octets, at so many ns for each.
    Search(f64),
}

/// When memory is taken, as the paper has it; what is held then is told by the driver's own policies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Before.
    Static,
    /// In the interrupt, and the transfer is copied.
    Dynamic,
    /// After the interrupt; if the next comes before, as dynamic.
    Hybrid,
}

/// One experiment.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// Traffic and scheduler.
    pub load: Load,
    /// Networks around.
    pub networks: u64,
    /// What the USB has to wait for besides itself.
    pub others: Option<OtherInterrupts>,
    /// Chance that a command follows the one before when that is on the stick; the others begin at random.
    pub follows: f64,
    /// See [`Parser`].
    pub parser: Parser,
    /// See [`Policy`].
    pub policy: Policy,
    /// Only beacons in an ATIM window of so many ms pass.
    pub filter: Option<u64>,
}

/// Sums over all transfers.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Found {
    /// Transfers, and those with several units.
    pub transfers: u64,
    /// See `transfers`.
    pub grouped: u64,
    /// Responses and events, and those that the first parser, the search and our parser do not see.
    pub responses: u64,
    /// See `responses`.
    pub lost: [u64; 3],
    /// Octets of all transfers.
    pub octets: u64,
    /// Commands, and those whose completion fell together with an interrupt that waited.
    pub commands: u64,
    /// See `commands`.
    pub completions_lost: u64,
    /// Time in interrupts: all of it, and that of the parser, ns.
    pub isr_ns: f64,
    /// See `isr_ns`.
    pub parse_ns: f64,
    /// Transfers of responses alone, and what the parser takes for them; those with a frame.
    pub bare: [f64; 2],
    /// See `bare`.
    pub framed: [f64; 2],
    /// Time in the interrupts of transfers with a frame, ns.
    pub framed_isr_ns: f64,
    /// Octets held, on average over time, and at most.
    pub held: f64,
    /// See `held`.
    pub most: usize,
}

impl Found {
    /// Mean time of an interrupt, ns.
    pub fn mean_isr_ns(&self) -> f64 {
        self.isr_ns / self.transfers.max(1) as f64
    }
}

/// What the stick has to say.
struct Item {
    at: u64,
    octets: Vec<u8>,
    is_response: bool,
}

fn response(at: u64, code: u8, octets: usize) -> Item {
    let mut unit = [0; 64];
    let header = [octets as u8, code, 0, 0];
    let written = write_unit(&[&RESPONSE_MARK, &header, &[0; 16][..octets]], &mut unit);
    Item {
        at,
        octets: unit[..written.unwrap_or(0)].to_vec(),
        is_response: true,
    }
}

fn frame(at: u64, octets: u64) -> Item {
    let mut unit = [0; READ_OCTETS];
    // 12 octets of PLCP, 20 of status (a frame alone), FCS
    let payload = [0x0b; 1_600];
    let written = write_unit(&[&payload[..octets as usize + 36]], &mut unit);
    Item {
        at,
        octets: unit[..written.unwrap_or(0)].to_vec(),
        is_response: false,
    }
}

/// Responses that the paper's search finds in one read.
fn search(read: &[u8]) -> u64 {
    Search(read).map(|block| block.count() as u64).sum()
}

/// Responses that our parser finds in a transfer.
fn walk(transfer: &[u8]) -> u64 {
    let of = |unit| match unit {
        Unit::Responses(block) => block.count() as u64,
        _ => 0,
    };
    Units::new(transfer).map(of).sum()
}

/// Times in which other interrupts have the processor.
struct Others(Vec<(u64, u64)>);

impl Others {
    fn new(others: Option<OtherInterrupts>, end: u64, dice: &mut Stream) -> Others {
        let mut all = Vec::new();
        let mut at = 0;
        while let Some(other) = others.filter(|_| at < end) {
            let begin = at + dice.exponential(1e9 / other.per_s) as u64;
            at = begin + dice.exponential(other.ns) as u64;
            all.push((begin, at));
        }
        Others(all)
    }

    fn at(&self, t: u64) -> Option<(u64, u64)> {
        let next = self.0.partition_point(|b| b.0 <= t);
        let last = next.checked_sub(1).map(|i| self.0[i]);
        last.filter(|b| t < b.1)
    }
}

/// Commands: when each response is there, and in which time of others the completion fell.
fn commands(others: &Others, follows: f64, intervals: u64, dice: &mut Stream) -> Vec<(u64, Option<u64>)> {
    let mut all = Vec::new();
    for interval in 0..intervals {
        let mut wish = 0;
        for n in 0..COMMANDS {
            if n == 0 || !dice.chance(follows) {
                wish = interval * INTERVAL_NS + dice.below(INTERVAL_NS);
            }
            // the scheduler does not run while an interrupt does
            let begin = others.at(wish).map_or(wish, |b| b.1);
            let complete = begin + wire_ns(4 + dice.below(61) as usize);
            all.push((complete + ANSWER_NS, others.at(complete).map(|b| b.0)));
            wish = complete;
        }
    }
    all.sort_unstable();
    all
}

/// Kinds of transfers (Fig. 10), with their lengths in octets.
pub const KINDS: [(&str, RangeInclusive<usize>); 3] = [
    ("packets up to 2 KB", 1..=2_048),
    ("packets up to 400 octets", 1..=400),
    ("commands of 4 to 64 octets", 4..=64),
];

/// A transfer at 480 Mb/s, with a token and a handshake.
pub fn wire_ns(octets: usize) -> u64 {
    2_000 + octets as u64 * 8_000 / 480
}

/// So many beacon intervals. `buffers` keeps the frames until the scheduler has dealt with them.
pub fn run<B: Buffers>(setting: &Setting, mut buffers: B, intervals: u64, seed: u64) -> Found {
    let mut dice = Stream::new(seed, 3, Cause::Host);
    let end = intervals * INTERVAL_NS;
    let others = Others::new(setting.others, end, &mut dice);
    let commands = commands(&others, setting.follows, intervals, &mut dice);
    let passes = |at: u64, is_beacon: bool| {
        setting
            .filter
            .is_none_or(|ms| is_beacon && at % INTERVAL_NS < ms * 1_000_000)
    };
    let mut air = Air::new(setting.load.bursts, setting.networks, seed)
        .take_while(|h| h.at < end)
        .filter(|h| passes(h.at, h.is_beacon))
        .peekable();
    let (mut answers, mut events) = (commands.iter().peekable(), (1..=intervals).peekable());
    let mut next = |until: Option<u64>| {
        let heard = air.peek().map(|h| h.at);
        let answer = answers.peek().map(|a| a.0);
        // the event before a TBTT, 8 TU ahead
        let event = events.peek().map(|i| i * INTERVAL_NS - 8_192_000);
        let first = [heard, answer, event].into_iter().flatten().min()?;
        if until.is_some_and(|t| first > t) {
            return None;
        }
        if heard == Some(first) {
            air.next().map(|h| frame(h.at, h.octets))
        } else if answer == Some(first) {
            answers.next().map(|a| response(a.0, 4, 4))
        } else {
            events.next().map(|_| response(first, 0xc0, 4))
        }
    };
    let mut found = Found {
        commands: commands.len() as u64,
        ..Found::default()
    };
    let mut waiting: Vec<Item> = Vec::new();
    let (mut armed, mut allocated) = (0, 0);
    let mut scheduler = Held::default();
    let mut blocked: Vec<u64> = Vec::new();
    buffers.arm();
    loop {
        if waiting.is_empty() {
            match next(None) {
                Some(item) => waiting.push(item),
                None => break,
            }
        }
        let fills = waiting[0].at.max(armed);
        while let Some(item) = next(Some(fills)) {
            waiting.push(item);
        }
        let mut octets = 0;
        let fits = |i: &&Item| {
            octets += i.octets.len();
            octets <= TRANSFER_OCTETS
        };
        let units = waiting.iter().take(UNITS).take_while(fits).count();
        let group: Vec<Item> = waiting.drain(..units).collect();
        let transfer: Vec<u8> = group.iter().flat_map(|i| i.octets.iter().copied()).collect();
        let complete = fills + wire_ns(transfer.len());
        let block = others.at(complete);
        blocked.extend(block.map(|b| b.0));
        let begin = block.map_or(complete, |b| b.1);
        found.parse(&group, &transfer, setting.parser);
        let parse = match setting.parser {
            Parser::First => FIRST_NS,
            Parser::Search(ns) => FIRST_NS + (ns * transfer.len() as f64) as u64,
        };
        let copies = match setting.policy {
            Policy::Static => false,
            Policy::Dynamic => true,
            // memory that is not taken yet
            Policy::Hybrid => begin < allocated,
        };
        let copy = if copies {
            ALLOCATE_NS + COPY_NS * transfer.len() as u64
        } else {
            0
        };
        let isr = POST_NS + parse + copy;
        armed = begin + isr;
        // after the interrupt, when nothing else has the processor
        allocated = others.at(armed).map_or(armed, |b| b.1) + ALLOCATE_NS;
        found.isr_ns += isr as f64;
        if group.iter().any(|i| !i.is_response) {
            found.framed_isr_ns += isr as f64;
        }
        scheduler.keep(armed, setting.load.service_ns, &group, &mut buffers, &mut dice);
    }
    blocked.sort_unstable();
    let together = |out: &&(u64, Option<u64>)| out.1.is_some_and(|b| blocked.binary_search(&b).is_ok());
    found.completions_lost = commands.iter().filter(together).count() as u64;
    (found.held, found.most) = (scheduler.octet_ns / end as f64, scheduler.most);
    found
}

impl Found {
    fn parse(&mut self, group: &[Item], transfer: &[u8], parser: Parser) {
        let responses = group.iter().filter(|i| i.is_response).count() as u64;
        self.transfers += 1;
        self.grouped += u64::from(group.len() > 1);
        self.responses += responses;
        self.octets += transfer.len() as u64;
        let first = FirstHeader(transfer).response().map_or(0, |_| 1);
        let searched: u64 = transfer.chunks(READ_OCTETS).map(search).sum();
        for (lost, seen) in self.lost.iter_mut().zip([first, searched, walk(transfer)]) {
            *lost += responses - seen.min(responses);
        }
        let ns = match parser {
            Parser::First => FIRST_NS as f64,
            Parser::Search(ns) => FIRST_NS as f64 + ns * transfer.len() as f64,
        };
        self.parse_ns += ns;
        let kind = match group.iter().all(|i| i.is_response) {
            true => &mut self.bare,
            false => &mut self.framed,
        };
        kind[0] += 1.0;
        kind[1] += ns;
    }
}

/// Frames that wait for the scheduler, in the driver's own buffers.
#[derive(Default)]
struct Held {
    done: std::collections::VecDeque<u64>,
    at: u64,
    octet_ns: f64,
    most: usize,
}

impl Held {
    fn count(&mut self, until: u64, buffers: &dyn Buffers) {
        let until = until.max(self.at);
        self.octet_ns += buffers.used_octets() as f64 * (until - self.at) as f64;
        self.at = until;
        self.most = self.most.max(buffers.used_octets());
    }

    fn keep(
        &mut self,
        now: u64,
        service_ns: f64,
        group: &[Item],
        buffers: &mut dyn Buffers,
        dice: &mut Stream,
    ) {
        while let Some(done) = self.done.front().copied().filter(|t| *t <= now) {
            self.count(done, buffers);
            self.done.pop_front();
            buffers.release();
        }
        self.count(now, buffers);
        for item in group.iter().filter(|i| !i.is_response) {
            if buffers.keep(&item.octets) {
                let from = self.done.back().copied().unwrap_or(now).max(now);
                self.done.push_back(from + queue::service_ns(service_ns, dice));
            }
        }
        buffers.transfer_ends();
        buffers.arm();
        self.count(now, buffers);
    }
}
