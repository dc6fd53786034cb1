//! Ad hoc networks in the simulator: stations contend for beacons, follow the fastest clock, doze and lose nothing by it;
//! and the same protocol on emulated AR9170 sticks.

mod late;
mod multi_hop;
mod nodes;

use ar9170::driver::{Config, Driver, Dynamic};
use ar9170::emulated::Knobs;
use frame::{MacAddr, Phy, Rate};
use lab::testbed::ar9170::{Computer, computer, node};
use protocols::mac::ibss::{Ibss, IbssConfig, PowerProfile};
use radio::{AdapterId, Attribute, AttributeName, Duration, Event, Instant, Msdu, Protocol, Radio};
use sim::adapter::AdapterConfig;
use sim::clock::Clock;
use sim::medium::{LossModel, MediumConfig, Position};
use sim::{NodeConfig, World};

type Station = Ibss<16, 300>;

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

fn address(i: u32) -> MacAddr {
    MacAddr::local(i + 1)
}

/// Stations that start together look for the network for times of their own.
fn config(i: u32, window_tu: u16) -> IbssConfig {
    IbssConfig {
        atim_window_tu: window_tu,
        scan: Duration::from_ms(300 + 250 * u64::from(i)),
        ..IbssConfig::new(address(i), "robots", Rate::OFDM_24)
    }
}

fn medium() -> MediumConfig {
    MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    }
}

/// Stations that all hear each other; `tsf` is the clock of each adapter.
fn world(stations: u32, window_tu: u16, tsf: impl Fn(u32) -> Clock, seed: u64) -> World<Station> {
    let mut world = World::new(&medium(), seed);
    for i in 0..stations {
        let adapter = AdapterConfig {
            tsf: tsf(i),
            ..AdapterConfig::station(address(i), Phy::A, 5_180, true)
        };
        let config = NodeConfig::ideal(Position::new(f64::from(i), 0.0), adapter);
        world.add_node(config, Station::new(self::config(i, window_tu)));
    }
    world
}

fn submit<P: Protocol>(world: &mut World<P>, from: u32, to: MacAddr, payload: &[u8]) {
    world.act(from, |protocol, now, radio| {
        protocol.handle(now, Event::Submit(Msdu::new(to, payload)), radio);
    });
}

fn tsf(radio: &dyn Radio) -> u64 {
    match radio.get(AdapterId::FIRST, AttributeName::Tsf) {
        Some(Attribute::Tsf(t)) => t.0,
        other => panic!("{other:?}"),
    }
}

fn spread_us(world: &mut World<Station>, stations: u32) -> u64 {
    let all = (0..stations).map(|i| world.act(i, |_, _, radio| tsf(radio)));
    let all: Vec<u64> = all.collect();
    all.iter().max().unwrap() - all.iter().min().unwrap()
}

/// Ten stations: one network, about one beacon in an interval, from everybody in turn.
#[test]
fn ten_stations_share_the_beacons() {
    let mut world = world(10, 0, |_| Clock::default(), 1);
    world.run_until(60 * S);
    let network = *world.protocol(0).network().unwrap();
    let counters: Vec<_> = (0..10).map(|i| *world.protocol(i).counters()).collect();
    assert!((0..10).all(|i| world.protocol(i).network() == Some(&network)));
    let intervals = counters[0].intervals;
    let beacons: u64 = counters.iter().map(|c| c.beacons).sum();
    let spared: u64 = counters.iter().map(|c| c.beacons_spared).sum();
    println!("{beacons} beacons in {intervals} intervals, {spared} spared");
    // who draws the same slot collides: both are sent, and somebody else's behind them
    assert!(
        beacons >= intervals && beacons < 2 * intervals,
        "{beacons} in {intervals}"
    );
    assert!(
        counters.iter().all(|c| c.beacons * 30 > beacons),
        "everybody sends some"
    );
    // a station whose medium was idle for a slot less than its neighbour's has heard it
    assert!(spared > 7 * intervals);
}

/// Crystals of up to 40 ppm: all follow the fastest, so a beacon interval of 102.4 ms costs 4 us or so, and some more
/// while the fastest does not get to send.
#[test]
fn the_network_follows_the_fastest_clock() {
    let clocks = |i: u32| Clock {
        offset_ns: u64::from(i) * 7 * MS,
        drift_ppb: 40_000 - 10_000 * i64::from(i),
    };
    let mut world = world(9, 0, clocks, 2);
    world.run_until(5 * S);
    let mut worst = 0;
    for second in 6..60 {
        world.run_until(second * S);
        worst = worst.max(spread_us(&mut world, 9));
    }
    let counters: Vec<_> = (0..9).map(|i| *world.protocol(i).counters()).collect();
    println!(
        "worst spread {worst} us; adoptions {:?}",
        counters.iter().map(|c| c.adoptions).collect::<Vec<_>>()
    );
    // 80 ppm apart: without adoption 4.3 ms within this time
    assert!(worst < 200, "{worst} us");
    assert!(counters[8].adoptions > 100 && counters[0].adoptions < counters[8].adoptions / 10);
    assert!(counters.iter().all(|c| c.merges <= 1));
}

/// Two networks of one name in places of their own come into reach of each other: the one that is behind joins.
#[test]
fn two_networks_become_one() {
    let clocks = |i: u32| Clock {
        offset_ns: if i < 2 { 0 } else { 3 * S },
        drift_ppb: 0,
    };
    let mut world = world(4, 10, clocks, 3);
    for (a, b) in [(0, 2), (0, 3), (1, 2), (1, 3)] {
        for (from, to) in [(a, b), (b, a)] {
            world.plan_loss(0, from, to, f64::INFINITY);
            world.plan_loss(10 * S, from, to, 90.0);
        }
    }
    world.run_until(9 * S);
    let bssid = |world: &World<Station>, i| world.protocol(i).network().unwrap().bssid;
    assert_eq!(bssid(&world, 0), bssid(&world, 1));
    assert_eq!(bssid(&world, 2), bssid(&world, 3));
    let later = bssid(&world, 2);
    assert_ne!(bssid(&world, 0), later);
    world.run_until(30 * S);
    assert!((0..4).all(|i| bssid(&world, i) == later));
    let merges: Vec<u64> = (0..4).map(|i| world.protocol(i).counters().merges).collect();
    assert_eq!(merges, [1, 1, 0, 0]);
}

struct Outcome {
    delivered: u64,
    failed: u64,
    doze_share: f64,
    joules: f64,
}

/// Ten stations, each with a message a second for the next one, for 40 s.
fn light_traffic(window_tu: u16) -> Outcome {
    const STATIONS: u32 = 10;
    let mut world = world(STATIONS, window_tu, |_| Clock::default(), 4);
    world.run_until(4 * S);
    let before: Vec<_> = (0..STATIONS)
        .map(|i| world.protocol(i).energy(Instant::from_ns(4 * S)))
        .collect();
    for round in 0..40 {
        for i in 0..STATIONS {
            world.run_until(4 * S + round * S + u64::from(i) * 97 * MS);
            submit(&mut world, i, address((i + 1) % STATIONS), b"temperature 21");
        }
    }
    world.run_until(46 * S);
    let end = Instant::from_ns(46 * S);
    let (mut delivered, mut failed, mut doze, mut joules) = (0, 0, 0.0, 0.0);
    for i in 0..STATIONS {
        let station = world.protocol(i);
        let (c, energy) = (station.counters(), station.energy(end));
        delivered += c.delivered;
        failed += c.confirms.not_acked + c.expired + c.no_room;
        doze += (energy.doze.as_ns() - before[i as usize].doze.as_ns()) as f64 / (42 * S) as f64;
        joules += energy.microjoules(&PowerProfile::TYPICAL) as f64 / 1e6;
        joules -= before[i as usize].microjoules(&PowerProfile::TYPICAL) as f64 / 1e6;
    }
    Outcome {
        delivered,
        failed,
        doze_share: doze / f64::from(STATIONS),
        joules: joules / f64::from(STATIONS),
    }
}

/// No frame is lost because its receiver dozes, and most of the time everybody does.
#[test]
fn power_save_loses_nothing() {
    let always_on = light_traffic(0);
    let saving = light_traffic(10);
    for o in [&always_on, &saving] {
        assert_eq!((o.delivered, o.failed), (400, 0));
    }
    println!(
        "always on {:.1} J, saving {:.1} J, dozing {:.1} % of the time",
        always_on.joules,
        saving.joules,
        100.0 * saving.doze_share
    );
    assert_eq!(always_on.doze_share, 0.0);
    assert!(saving.doze_share > 0.4, "{}", saving.doze_share);
    assert!(saving.joules < 0.7 * always_on.joules);
}

/// The same protocol on computers with sticks: it joins, and data goes both ways; the sticks are put to sleep and woken.
/// Their hardware follows the clock of the network, and the driver reads it before each TBTT. A beacon is known to others
/// after two transfers and its airtime, 380 us: so long is a slot here. The last time with all that goes beyond the standard.
#[test]
fn on_emulated_sticks() {
    for (window_tu, beyond) in [(0, false), (30, false), (30, true)] {
        let stick = |i: u32| {
            let config = config(i, window_tu);
            let config = IbssConfig {
                wake_ahead: Duration::from_tu(4),
                channel: Some(1),
                slot: Duration::from_us(400),
                soft_beacon: beyond.then_some(Duration::from_ms(20)),
                multi_hop: beyond,
                adapt_wake_ahead: beyond,
                ..config
            };
            computer(
                address(i),
                Config::default(),
                Knobs::default(),
                Station::new(config),
            )
        };
        let mut computers: Vec<Computer<Station>> = (0..3).map(stick).collect();
        let mut world = World::new(&medium(), 5);
        for (i, computer) in (0..).zip(&mut computers) {
            world.add_node(node(address(i), Position::new(f64::from(i), 0.0)), computer);
        }
        for n in 0..20 {
            world.run_until(3 * S + n * 400 * MS);
            submit(&mut world, 0, address(1), b"there");
            submit(&mut world, 1, address(0), b"and back");
        }
        world.run_until(14 * S);
        drop(world);
        let stations: Vec<&Station> = computers.iter().map(|c| c.protocol()).collect();
        assert!(stations[0].network().is_some());
        assert!(stations.iter().all(|s| s.network() == stations[0].network()));
        let delivered: Vec<u64> = stations.iter().map(|s| s.counters().delivered).collect();
        let dozed: Vec<u64> = stations.iter().map(|s| s.counters().intervals_dozed).collect();
        println!(
            "window {window_tu} TU: delivered {delivered:?}, dozed {dozed:?}, {:?}",
            computers[2].counts()
        );
        let beacons: Vec<u64> = stations.iter().map(|s| s.counters().beacons).collect();
        println!("beacons {beacons:?}");
        let soft: u64 = stations.iter().map(|s| s.counters().soft_beacons).sum();
        let late: u64 = stations.iter().map(|s| s.counters().wakes_late).sum();
        println!("{soft} soft beacons, {late} late to wake up");
        assert_eq!(soft > 100, beyond);
        assert_eq!(delivered, [20, 20, 0]);
        assert!(dozed.iter().all(|n| (*n > 20) == (window_tu > 0)), "{dozed:?}");
    }
}

/// Computers as `sdmac deploy` makes them: all are in the network from the beginning, and nobody tells their drivers of it but the
/// protocol. Their sticks were plugged in one after the other, and all clocks drift.
#[test]
fn on_sticks_whose_clocks_drift() {
    const MESSAGES: u64 = 67;
    let stick = |i: u32| {
        let config = IbssConfig {
            scan: Duration::from_ms(1),
            active_scan: false,
            bssid: Some(MacAddr::local(99)),
            wake_ahead: Duration::from_tu(4),
            slot: Duration::from_us(400),
            ..config(i, 20)
        };
        computer(
            address(i),
            Config::default(),
            Knobs::default(),
            Station::new(config),
        )
    };
    let mut computers: Vec<Computer<Station>> = (0..4).map(stick).collect();
    let mut world = World::new(&medium(), 8);
    let drifts = [(20_000, -20_000), (-20_000, 20_000), (0, 10_000), (10_000, 0)];
    for ((i, computer), (host, tsf)) in (0..).zip(&mut computers).zip(drifts) {
        let mut config = node(address(i), Position::new(f64::from(i), 0.0));
        let clock = |offset_ns, drift_ppb| Clock { offset_ns, drift_ppb };
        (config.clock, config.adapters[0].tsf) = (clock(0, host), clock(u64::from(i) * 17 * MS, tsf));
        world.add_node(config, computer);
    }
    for n in 0..MESSAGES {
        world.run_until(n * 300 * MS);
        for i in 0..4 {
            submit(&mut world, i, address(i ^ 1), b"there and back");
        }
    }
    world.run_until(21 * S);
    drop(world);
    let counters: Vec<_> = computers.iter().map(|c| *c.protocol().counters()).collect();
    for c in &counters {
        println!("{c:?}");
    }
    assert!(counters.iter().all(|c| c.intervals_dozed > 0), "{counters:?}");
    // the first is handed over before there is a stick
    assert!(
        counters
            .iter()
            .all(|c| c.delivered >= MESSAGES - 1 && c.expired == 0),
        "{counters:?}"
    );
}

/// What a microcontroller of 96 KB has to give: driver, receive buffers and network with room for eight requests and
/// eight messages of 300 octets. On this computer; words of 32 bits need no more.
#[test]
fn the_memory_of_a_small_station() {
    type Small = Ibss<8, 300>;
    let all = size_of::<Driver<'static, Small, (), Dynamic<4_096>, 8, 400>>();
    println!("{all} octets, of which the network {}", size_of::<Small>());
    assert!(all < 24 * 1_024, "{all}");
}

/// A station leaves: it is quiet, and what waits is given up. When it comes back it finds its network again.
#[test]
fn a_station_leaves_and_comes_back() {
    let mut world = world(3, 0, |_| Clock::default(), 6);
    world.run_until(5 * S);
    let network = *world.protocol(0).network().unwrap();
    world.act(1, |station, now, radio| station.leave(now, radio));
    let beacons = world.protocol(1).counters().beacons;
    submit(&mut world, 1, address(0), b"kept for later");
    world.run_until(8 * S);
    let station = world.protocol(1);
    assert_eq!((station.network(), station.waiting()), (None, 1));
    assert!(
        station.counters().beacons <= beacons + 1,
        "one may have been on its way"
    );
    assert_eq!(world.protocol(0).counters().delivered, 0);
    world.act(1, |station, now, radio| station.begin(now, radio));
    world.run_until(10 * S);
    assert_eq!(world.protocol(1).network(), Some(&network));
    assert_eq!(world.protocol(0).counters().delivered, 1);
}
