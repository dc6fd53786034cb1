//! TBMAC over several borders: frames go from cell to cell towards that of their receiver, in maps with rows, corners and
//! holes, with gateways that fall silent and with more frames than there is room for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use frame::{AccessCategory, MacAddr, Phy, Rate};
use proptest::prelude::*;
use protocols::mac::data::{Identity, Role};
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::tbmac::cell::Cell;
use protocols::mac::tbmac::rounds::{RoundCosts, Rounds};
use protocols::mac::tbmac::{Tbmac, TbmacConfig, TbmacCounters};
use protocols::mac::tdma::schedule::Release;
use radio::{Duration, Msdu};
use sim::traffic::parse_header;
use sim::{AdapterConfig, LossModel, MediumConfig, NodeConfig, Observer, Pattern, Position, Traffic, World};

const CHANNELS: [u16; 3] = [2_412, 2_437, 2_462];
const SLOTS: usize = 16;
/// Hosts of a cell: in its middle, and at the borders. The first one of the latter with a bit is the gateway there.
const HOSTS: u32 = 3;
/// Rounds until all hosts of a cell own slots.
const SETTLED: u64 = 100;

type Host = Tbmac<Sender<16>, SLOTS, 4, 128>;

fn rounds() -> Rounds {
    let costs = RoundCosts {
        phy: Phy::B,
        eifs: true,
        rate: Rate::DSSS_2,
        octets: 160,
        asks: 4,
        release: Release {
            min: Duration::ZERO,
            high: Duration::from_us(80),
        },
        sync_error: Duration::ZERO,
        heard: Duration::ZERO,
    };
    let rounds = Rounds::new(&costs, SLOTS as u8).unwrap();
    rounds.with_borders(Duration::from_us(200))
}

fn round_ns() -> u64 {
    rounds().length().as_ns()
}

fn cells(all: &[(i16, i16)]) -> Vec<Cell> {
    all.iter().map(|(q, r)| Cell { q: *q, r: *r }).collect()
}

fn steps(a: Cell, b: Cell) -> i32 {
    let (q, r) = (i32::from(b.q - a.q), i32::from(b.r - a.r));
    q.abs().max(r.abs()).max((q + r).abs())
}

/// The borders of a cell behind which there is another one of these, as bits.
fn populated(cells: &[Cell], cell: Cell) -> u8 {
    let there = |b: &u8| cells.contains(&cell.neighbour(*b));
    (0..6).filter(there).fold(0, |bits, b| bits | 1 << b)
}

/// Three hosts in each of `cells`, near these borders as far as there is somebody behind them, and near all of `always`; who is in the
/// same cell or in neighbours hears each other. (A gateway that knocks at an empty cell is heard too far here.)
fn map(seed: u64, cells: &[Cell], near: [u8; HOSTS as usize], always: u8) -> World<Host> {
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    };
    let mut world = World::new(&medium, seed);
    let count = cells.len() as u32 * HOSTS;
    let cell = |i: u32| cells[(i / HOSTS) as usize];
    for i in 0..count {
        let me = MacAddr::local(i);
        let config = TbmacConfig {
            channels: Some(CHANNELS),
            ..TbmacConfig::new(me, cell(i), rounds())
        };
        let role = Role::Direct {
            bssid: MacAddr::BROADCAST,
        };
        let sender = SenderConfig::new(Identity { me, role }, Rate::DSSS_2);
        let mut host = Tbmac::new(config, Sender::new(sender));
        host.set_near(near[(i % HOSTS) as usize] & (populated(cells, cell(i)) | always));
        let adapter = AdapterConfig::station(me, Phy::B, CHANNELS[0], false);
        world.add_node(NodeConfig::ideal(Position::default(), adapter), host);
    }
    for a in 0..count {
        for b in 0..count {
            if steps(cell(a), cell(b)) > 1 {
                world.plan_loss(0, a, b, f64::INFINITY);
            }
        }
    }
    world
}

/// One host at all borders, and one that takes its place.
const TOGETHER: [u8; 3] = [0, 0x3f, 0x3f];
/// One host in the north and east, one in the south and west.
const APART: [u8; 3] = [0, 0b000_111, 0b111_000];

/// The host in the middle of cell `index`.
fn middle(index: usize) -> u32 {
    index as u32 * HOSTS
}

/// `count` messages of `from` to `to`, one in `every` rounds.
fn flow(world: &mut World<Host>, from: u32, to: u32, every: u64, count: u32) {
    flow_that_lives(world, from, to, every, count, None);
}

/// The same, of messages with a lifetime.
fn flow_that_lives(
    world: &mut World<Host>,
    from: u32,
    to: u32,
    every: u64,
    count: u32,
    lifetime_ns: Option<u64>,
) {
    world.add_traffic(
        from,
        Traffic {
            to: MacAddr::local(to),
            category: AccessCategory::Voice,
            octets: 20,
            pattern: Pattern::Periodic {
                // at all times of a round, one after the other
                period_ns: every * round_ns() + 777_777,
                phase_ns: 1_000_000 + u64::from(from) * 1_234_567 % round_ns(),
            },
            lifetime_ns,
            count: Some(count),
        },
    );
}

/// What came to whom: how often each message, and after which time at most.
#[derive(Default)]
struct Arrivals {
    times: BTreeMap<(u32, u32), u32>,
    longest_ns: u64,
    total_ns: u64,
}

impl Arrivals {
    fn mean_rounds(&self) -> f64 {
        let all: u32 = self.times.values().sum();
        self.total_ns as f64 / f64::from(all) / round_ns() as f64
    }

    fn longest_rounds(&self) -> f64 {
        self.longest_ns as f64 / round_ns() as f64
    }
}

struct Watch(Rc<RefCell<Arrivals>>);

impl Observer for Watch {
    fn delivered(&mut self, at_ns: u64, _: u32, msdu: &Msdu<'_>) {
        let (flow, number, submitted_ns) = parse_header(msdu.payload).expect("a payload of a source");
        let arrivals = &mut *self.0.borrow_mut();
        *arrivals.times.entry((flow, number)).or_default() += 1;
        arrivals.longest_ns = arrivals.longest_ns.max(at_ns - submitted_ns);
        arrivals.total_ns += at_ns - submitted_ns;
    }
}

fn watch(world: &mut World<Host>) -> Rc<RefCell<Arrivals>> {
    let arrivals = Rc::new(RefCell::new(Arrivals::default()));
    world.set_observer(Box::new(Watch(Rc::clone(&arrivals))));
    arrivals
}

fn sum(world: &World<Host>, cells: usize, of: fn(&TbmacCounters) -> u64) -> u64 {
    (0..cells as u32 * HOSTS)
        .map(|i| of(world.protocol(i).counters()))
        .sum()
}

/// Runs two opposite flows of 100 messages between the first and the last cell, one in eight rounds each: all arrive, once.
fn both_ways(map_: &[Cell], near: [u8; 3], always: u8) -> (f64, f64, u64) {
    let mut world = map(1, map_, near, always);
    world.run_until(SETTLED * round_ns());
    let (a, b) = (middle(0), middle(map_.len() - 1));
    flow(&mut world, a, b, 8, 100);
    flow(&mut world, b, a, 8, 100);
    let arrivals = watch(&mut world);
    world.run_until((SETTLED + 900) * round_ns());
    let delivered = [0, 1].map(|f| world.flow(f).delivered);
    assert_eq!(delivered, [100; 2]);
    let arrivals = arrivals.borrow();
    assert!(arrivals.times.values().all(|n| *n == 1), "something came twice");
    let (lost, late) = (
        sum(&world, map_.len(), |c| c.uncrossed),
        sum(&world, map_.len(), |c| c.overruns),
    );
    assert_eq!((lost, late), (0, 0));
    let crossed = sum(&world, map_.len(), |c| c.crossed);
    let relayed = sum(&world, map_.len(), |c| c.relayed);
    // by its gateway there alone, unless that hands it on over another border itself
    let cells = if near == TOGETHER {
        1
    } else {
        map_.len() as u64 - 1
    };
    assert!(relayed <= 200 * cells, "{relayed} of {cells}");
    (arrivals.mean_rounds(), arrivals.longest_rounds(), crossed)
}

#[test]
fn through_cells_in_a_row() {
    for near in [TOGETHER, APART] {
        for n in 2..=6 {
            let row: Vec<(i16, i16)> = (0..n).map(|q| (q, 0)).collect();
            let (mean, longest, crossed) = both_ways(&cells(&row), near, 0);
            let borders = n as u64 - 1;
            eprintln!("{borders} borders, {near:?}: {mean:.2} rounds, at most {longest:.2}");
            assert_eq!(crossed, 200 * borders, "each border once");
            assert!(longest <= 2.0 + 2.0 * borders as f64, "{longest}");
        }
    }
}

/// There are gateways at the first border that leads nearer, too, and an empty cell behind it: nothing is sent that way.
#[test]
fn around_a_corner() {
    for near in [TOGETHER, APART] {
        let corner = cells(&[(0, 0), (1, 0), (2, 0), (2, 1), (2, 2)]);
        assert_eq!(both_ways(&corner, near, 0b10).2, 200 * 4);
        let corner = cells(&[(0, 0), (-1, 1), (-2, 2), (-3, 2)]);
        assert_eq!(both_ways(&corner, near, 0b1000).2, 200 * 3);
    }
}

/// In the middle cell the gateway to both sides falls silent, and the next one takes over.
#[test]
fn a_gateway_on_the_way_dies() {
    let row = cells(&[(0, 0), (1, 0), (2, 0)]);
    let mut world = map(2, &row, TOGETHER, 0);
    world.run_until(SETTLED * round_ns());
    flow(&mut world, middle(0), middle(2), 4, 100);
    let arrivals = watch(&mut world);
    let (dead, next) = (middle(1) + 1, middle(1) + 2);
    for other in (0..9).filter(|i| *i != dead) {
        world.plan_loss(200 * round_ns(), dead, other, f64::INFINITY);
        world.plan_loss(200 * round_ns(), other, dead, f64::INFINITY);
    }
    world.run_until(550 * round_ns());
    let delivered = world.flow(0).delivered;
    assert!((95..100).contains(&delivered), "{delivered}");
    assert!(world.protocol(next).counters().crossed >= 70);
    assert!(arrivals.borrow().times.values().all(|n| *n == 1));
}

/// A border carries one message in two rounds each way: of more, each either arrives or is counted.
#[test]
fn what_finds_no_room_is_counted() {
    let row = cells(&[(0, 0), (1, 0), (2, 0)]);
    for near in [TOGETHER, APART] {
        let mut world = map(3, &row, near, 0);
        world.run_until(SETTLED * round_ns());
        flow(&mut world, middle(0), middle(2), 1, 300);
        world.run_until((SETTLED + 340) * round_ns());
        let delivered = world.flow(0).delivered;
        let uncrossed = sum(&world, 3, |c| c.uncrossed);
        assert_eq!(delivered + uncrossed, 300, "{delivered} {uncrossed}");
        assert!((140..170).contains(&delivered), "{delivered}");
    }
}

/// Of a border that has more to carry than it can, messages come in their lifetime or not at all, and those are counted.
#[test]
fn nothing_comes_after_its_lifetime() {
    let row = cells(&[(0, 0), (1, 0), (2, 0)]);
    for near in [TOGETHER, APART] {
        let mut world = map(4, &row, near, 0);
        world.run_until(SETTLED * round_ns());
        let lifetime_ns = 11 * round_ns();
        flow_that_lives(&mut world, middle(0), middle(2), 1, 300, Some(lifetime_ns));
        let arrivals = watch(&mut world);
        world.run_until((SETTLED + 340) * round_ns());
        let delivered = world.flow(0).delivered;
        let longest = arrivals.borrow().longest_ns;
        // it began before the end of its life
        assert!(longest <= lifetime_ns + rounds().slot().as_ns(), "{longest}");
        assert!((90..170).contains(&delivered), "{delivered}");
        let (uncrossed, expired) = (sum(&world, 3, |c| c.uncrossed), sum(&world, 3, |c| c.expired));
        assert_eq!(
            delivered + uncrossed + expired,
            300,
            "{delivered} {uncrossed} {expired}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever the map, gateways and flows are: no message comes twice, none goes over more borders than there are cells, and
    /// when the sources end, so does all traffic between the cells.
    #[test]
    fn nothing_goes_in_circles(
        seed: u64,
        map_ in proptest::collection::btree_set((0i16..4, -2i16..3), 2..9),
        near: [u8; 3],
        ends in proptest::collection::vec((0usize..9, 0usize..9), 1..4),
    ) {
        let all: Vec<Cell> = cells(&map_.into_iter().collect::<Vec<_>>());
        let mut world = map(seed, &all, near.map(|n| n & 0x3f), 0x3f);
        world.run_until(SETTLED * round_ns());
        for (from, to) in &ends {
            let (from, to) = (from % all.len(), to % all.len());
            flow(&mut world, middle(from), middle(to) + 2, 6, 20);
        }
        let arrivals = watch(&mut world);
        let end = SETTLED + 130 + 4 * all.len() as u64;
        world.run_until(end * round_ns());
        let twice = arrivals.borrow().times.values().filter(|n| **n > 1).count();
        prop_assert_eq!(twice, 0);
        let crossed = sum(&world, all.len(), |c| c.crossed);
        // over each border of the map at most once
        let borders = all.iter().flat_map(|a| all.iter().map(|b| steps(*a, *b))).filter(|s| *s == 1).count();
        prop_assert!(crossed <= 20 * (ends.len() * borders / 2) as u64, "{} of {}", crossed, borders);
        world.run_until((end + 50) * round_ns());
        prop_assert_eq!(sum(&world, all.len(), |c| c.crossed), crossed);
    }
}
