//! Late ATIMs of our own stack: `Ibss` and the driver on emulated sticks, on slow hosts, with and without a receive filter, among what a
//! station on a campus hears besides its own network. What there is on the air and how slow the hosts are is assumed, in round numbers;
//! nothing is fitted.

use ar9170::driver::Config;
use ar9170::emulated::Knobs;
use frame::mac::{FrameControl, Kind};
use frame::{MacAddr, Rate};
use protocols::mac::ibss::{Ibss, IbssConfig};
use radio::{Duration, Event, Instant, Msdu, Protocol, Radio, TxHow};
use sim::World;
use sim::medium::{LossModel, MediumConfig, Position};
use sim::rng::{Cause, Stream};

use super::Measured;
use super::air::{BEACON_OCTETS, FOREIGN_INTERVAL_NS, LONG_PERCENT, NETWORKS, OCTETS};
use crate::report::html::{Align, Section, Table};
use crate::testbed::ar9170::{Computer, computer, node};

type Station = Ibss<16, 300>;

const MS: u64 = 1_000_000;

fn address(i: u32) -> MacAddr {
    MacAddr::local(i + 1)
}

/// Stations that are told of something in each interval, on hosts that are slow.
const RECEIVERS: u32 = 3;
/// Group-addressed data around comes in bursts: time between two (exponential) and frames of one (geometric), means.
const GAP_NS: f64 = 100e6;
const FRAMES: f64 = 4.0;
/// Of all networks, 100 TU.
const INTERVAL_NS: u64 = FOREIGN_INTERVAL_NS;
/// What slow hosts take for a turn of the driver: an answer, a command.
const TURN_NS: u64 = 100_000;

/// All that is around: one node sends it, in the names of many.
struct Campus {
    dice: Stream,
    burst: Instant,
    beacons: Vec<Instant>,
    sent: u64,
}

impl Campus {
    fn new(seed: u64) -> Campus {
        let mut dice = Stream::new(seed, 77, Cause::Traffic);
        let beacons = (0..NETWORKS).map(|_| Instant::from_ns(dice.below(INTERVAL_NS)));
        Campus {
            beacons: beacons.collect(),
            burst: Instant::ZERO,
            dice,
            sent: 0,
        }
    }

    fn send(&mut self, kind: Kind, from: u32, octets: u64, rate: Rate, radio: &mut dyn Radio) {
        let mut frame = vec![0; octets as usize];
        frame[..2].copy_from_slice(&FrameControl::new(kind, frame::mac::Flags::NONE).0);
        for (at, who) in [(4, MacAddr::BROADCAST), (10, address(from)), (16, address(from))] {
            frame[at..at + 6].copy_from_slice(&who.0);
        }
        self.sent += 1;
        frame[22..24].copy_from_slice(&((self.sent as u16) << 4).to_le_bytes());
        let token = radio.token();
        radio.request(token, &frame, &TxHow::one_shot(rate));
    }
}

impl Protocol for Campus {
    fn handle(&mut self, now: Instant, _: Event<'_>, radio: &mut dyn Radio) {
        for network in 0..self.beacons.len() {
            if self.beacons[network] <= now {
                // clocks differ by some 20 ppm: phases do not stay
                let next = INTERVAL_NS + self.dice.below(4_000);
                self.beacons[network] += Duration::from_ns(next);
                self.send(
                    Kind::BEACON,
                    100 + network as u32,
                    BEACON_OCTETS,
                    Rate::DSSS_1,
                    radio,
                );
            }
        }
        if self.burst <= now {
            loop {
                let long = self.dice.below(100) < LONG_PERCENT;
                let from = 200 + self.dice.below(20) as u32;
                self.send(Kind::DATA, from, OCTETS[usize::from(long)], Rate::OFDM_24, radio);
                if self.dice.chance(1.0 / FRAMES) {
                    break;
                }
            }
            self.burst = now + Duration::from_ns(self.dice.exponential(GAP_NS) as u64);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.beacons.iter().copied().chain([self.burst]).min()
    }
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// ATIMs that the sticks acknowledged, that the stations heard, and heard too late.
    pub acked: u64,
    /// See `acked`.
    pub heard: u64,
    /// See `acked`.
    pub late: u64,
    /// Messages, and those delivered.
    pub messages: u64,
    /// See `messages`.
    pub delivered: u64,
}

impl Fate {
    /// Adds what happened elsewhere.
    pub fn merge(&mut self, other: &Fate) {
        self.acked += other.acked;
        self.heard += other.heard;
        self.late += other.late;
        self.messages += other.messages;
        self.delivered += other.delivered;
    }
}

/// One experiment: a station on a fast host has a message for each of three on slow ones, in each interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slow {
    /// ATIM window, TU.
    pub window_tu: u16,
    /// Whether the slow ones filter.
    pub filter: bool,
    /// What they take for a received frame, us.
    pub frame_us: u64,
}

/// So many beacon intervals of 100 TU.
pub fn run(slow: Slow, intervals: u64, seed: u64) -> Fate {
    let station = |i: u32| {
        let config = IbssConfig {
            atim_window_tu: slow.window_tu,
            // stations that start together look for the network for times of their own
            scan: Duration::from_ms(300 + 250 * u64::from(i)),
            wake_ahead: Duration::from_tu(4),
            channel: Some(1),
            slot: Duration::from_us(400),
            receive_filter: slow.filter,
            ..IbssConfig::new(address(i), "robots", Rate::OFDM_24)
        };
        let knobs = Knobs {
            turn_ns: if i == 0 { 0 } else { TURN_NS },
            frame_ns: if i == 0 { 0 } else { 1_000 * slow.frame_us },
            seed: u64::from(i),
            ..Knobs::default()
        };
        computer(address(i), Config::default(), knobs, Station::new(config))
    };
    let mut computers: Vec<Computer<Station>> = (0..=RECEIVERS).map(station).collect();
    let mut campus = Campus::new(seed);
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    };
    let mut world: World<&mut dyn Protocol> = World::new(&medium, seed);
    for (i, computer) in (0..).zip(&mut computers) {
        world.add_node(node(address(i), Position::new(f64::from(i), 0.0)), computer);
    }
    world.add_node(node(address(99), Position::new(9.0, 0.0)), &mut campus);
    // the first creates the network, on a clock that begins with the world's: its TBTTs are multiples
    const FIRST: u64 = 40;
    for n in FIRST..FIRST + intervals {
        world.run_until(n * INTERVAL_NS - 2 * MS);
        for i in 1..=RECEIVERS {
            world.act(0, |protocol, now, radio| {
                protocol.handle(
                    now,
                    Event::Submit(Msdu::new(address(i), b"temperature 21")),
                    radio,
                );
            });
        }
    }
    world.run_until((FIRST + intervals + 3) * INTERVAL_NS);
    drop(world);
    let mut fate = Fate {
        acked: computers[0].protocol().counters().atims,
        messages: intervals * u64::from(RECEIVERS),
        ..Fate::default()
    };
    for computer in &computers[1..] {
        let c = computer.protocol().counters();
        fate.heard += c.atims_heard;
        fate.late += c.atims_late;
        fate.delivered += c.delivered;
    }
    fate
}

/// What slow hosts take for a received frame, and ATIM windows, of the table.
const FRAMES_US: [u64; 4] = [1_000, 2_000, 3_000, 4_000];
const WINDOWS_TU: [u16; 3] = [10, 20, 40];
/// Cells of the table.
pub const COUNT: usize = FRAMES_US.len() * WINDOWS_TU.len() * 2;

/// The cells: by time, window, filter.
pub fn cell(number: usize) -> Slow {
    Slow {
        frame_us: FRAMES_US[number / 6],
        window_tu: WINDOWS_TU[number / 2 % 3],
        filter: number % 2 == 1,
    }
}

/// The cells that are judged, without and with the filter: 2 ms for a frame, 10 TU. They are nearest to what Table II has without filter.
pub const JUDGED: [usize; 2] = [6, 7];

/// How many times more ATIMs are late without the filter.
pub fn fewer(cells: &[Fate; COUNT]) -> Option<f64> {
    let [open, filtered] = JUDGED.map(|number| cells[number]);
    let share = |fate: Fate| fate.late as f64 / fate.heard as f64;
    (filtered.late > 0).then(|| share(open) / share(filtered))
}

/// The table of the page.
pub fn section(measured: &Measured) -> Section {
    let windows = WINDOWS_TU.iter().flat_map(|tu| {
        let of = |what: &str| (format!("{tu} TU, {what}"), Align::Right);
        [of("no filter"), of("filter")]
    });
    let columns = std::iter::once(("a frame takes".to_string(), Align::Left)).chain(windows);
    let rows = FRAMES_US.iter().zip(measured.own.chunks(6));
    let table = rows.fold(Table::new(columns), |table, (us, cells)| {
        let shown = |f: &Fate| match f.heard {
            0 => "-".to_string(),
            heard => format!(
                "{:.2}; {}",
                100.0 * f.late as f64 / heard as f64,
                f.messages - f.delivered
            ),
        };
        table.row(std::iter::once(format!("{} ms", us / 1_000)).chain(cells.iter().map(shown)))
    });
    let of = measured.own[JUDGED[0]].messages;
    Section::new("Late ATIMs of our own stack")
        .paragraph(format!(
            "Per cent of the ATIMs that were dealt with when their window was over, and messages of {of} that were not delivered: our ad \
             hoc station and our driver on emulated sticks. Nothing is fitted. Behind the filter of the model for Table II data of others never \
             comes; here it does while a station has to hear all."
        ))
        .table(table)
}
