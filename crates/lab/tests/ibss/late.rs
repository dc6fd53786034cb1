//! ATIMs that a slow host hears when their window is over, with and without a receive filter: the same stations on emulated sticks, with what
//! a station on a campus hears besides its own network. What there is on the air and how slow the hosts are is assumed, in round numbers;
//! nothing is fitted.

use super::*;
use frame::mac::{FrameControl, Kind};
use radio::TxHow;
use sim::rng::{Cause, Stream};

/// Stations that are told of something in each interval, on hosts that are slow.
const SLOW: u32 = 3;
/// Other networks, each with a beacon in its interval of 100 TU.
const NETWORKS: u64 = 5;
/// Group-addressed data around comes in bursts: time between two (exponential) and frames of one (geometric), means.
const GAP_NS: f64 = 100e6;
const FRAMES: f64 = 4.0;
/// Octets of short and long frames of it, and the share of long ones in per cent; octets of a beacon.
const OCTETS: [usize; 2] = [100, 1_500];
const LONG_PERCENT: u64 = 40;
const BEACON_OCTETS: usize = 150;
const INTERVAL_NS: u64 = 102_400_000;
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

    fn send(&mut self, kind: Kind, from: u32, octets: usize, rate: Rate, radio: &mut dyn Radio) {
        let mut frame = vec![0; octets];
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
struct Fate {
    /// ATIMs that the sticks acknowledged, that the stations heard, and heard too late.
    acked: u64,
    heard: u64,
    late: u64,
    /// Messages, and those delivered.
    messages: u64,
    delivered: u64,
    /// Received frames that the drivers of the slow stations told.
    told: u64,
}

/// A station on a fast host has a message for each of three on slow ones, in each interval. `turn_us`: what these take for a turn of the
/// driver: one frame, one answer, one command.
fn run(window_tu: u16, receive_filter: bool, frame_us: u64, intervals: u64) -> Fate {
    let station = |i: u32| {
        let config = IbssConfig {
            wake_ahead: Duration::from_tu(4),
            channel: Some(1),
            slot: Duration::from_us(400),
            receive_filter,
            ..config(i, window_tu)
        };
        let knobs = Knobs {
            turn_ns: if i == 0 { 0 } else { TURN_NS },
            frame_ns: if i == 0 { 0 } else { 1_000 * frame_us },
            seed: u64::from(i),
            ..Knobs::default()
        };
        computer(address(i), Config::default(), knobs, Station::new(config))
    };
    let mut computers: Vec<Computer<Station>> = (0..=SLOW).map(station).collect();
    let mut campus = Campus::new(1);
    let mut world: World<&mut dyn Protocol> = World::new(&medium(), 5);
    for (i, computer) in (0..).zip(&mut computers) {
        world.add_node(node(address(i), Position::new(f64::from(i), 0.0)), computer);
    }
    world.add_node(node(address(99), Position::new(9.0, 0.0)), &mut campus);
    // the first creates the network, on a clock that begins with the world's: its TBTTs are multiples
    const FIRST: u64 = 40;
    for n in FIRST..FIRST + intervals {
        world.run_until(n * INTERVAL_NS - 2 * MS);
        for i in 1..=SLOW {
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
        messages: intervals * u64::from(SLOW),
        ..Fate::default()
    };
    for slow in &computers[1..] {
        let c = slow.protocol().counters();
        fate.heard += c.atims_heard;
        fate.late += c.atims_late;
        fate.delivered += c.delivered;
        fate.told += slow.counts().indications;
    }
    fate
}

/// Where a received frame takes 2 ms: the filter makes fewer of them late, and so does a longer window. What the sticks acknowledge is
/// heard, late or not.
#[test]
fn the_filter_makes_fewer_atims_late() {
    let late = [10, 20].map(|window_tu| {
        [false, true].map(|filter| {
            let fate = run(window_tu, filter, 2_000, 1_000);
            println!("window of {window_tu} TU, filter {filter}: {fate:?}");
            assert_eq!(fate.heard, fate.acked);
            assert!(fate.acked * 100 > fate.messages * 99);
            fate.late
        })
    });
    let [[short, short_filtered], [long, long_filtered]] = late;
    assert!(short > short_filtered && long > long_filtered, "{late:?}");
    assert!(short > long && short_filtered > long_filtered, "{late:?}");
}

/// The table of the book.
#[test]
#[ignore = "24 runs of 205 s of virtual time, for the table"]
fn late_atims() {
    for frame_ms in [1, 2, 3, 4] {
        for window_tu in [10, 20, 40] {
            for filter in [false, true] {
                let f = run(window_tu, filter, 1_000 * frame_ms, 2_000);
                let percent = 100.0 * f.late as f64 / f.heard as f64;
                println!("{frame_ms} ms, {window_tu} TU, filter {filter}: late {percent:.2} %, {f:?}");
            }
        }
    }
}
