//! Whole nodes in a chain, IPv6 and CoAP over routes that they find: how long an answer takes over four hops with the
//! standard's power save and with that over several hops.

use ::node::net::MTU;
use ::node::{Board, Setup, Station};
use ar9170::driver::Config;
use ar9170::emulated::Knobs;
use frame::{MacAddr, Phy};
use lab::testbed::ar9170::{computer, node as stick_at};
use radio::{Event, Instant, Msdu, Protocol};
use sim::adapter::AdapterConfig;
use sim::medium::Position;
use sim::{NodeConfig, World};

use super::{MS, S, medium};

type Node = Station<'static, 8, MTU>;

fn address(i: u32) -> MacAddr {
    MacAddr::local(i + 1)
}

/// They look for a network for times of their own.
fn node(i: u32, window_tu: u16, multi_hop: bool) -> Node {
    let setup = Setup {
        address: address(i),
        scan_ms: 300 + 400 * i as u16,
        interval_tu: 100,
        window_tu,
        multi_hop,
    };
    Node::new(Instant::ZERO, &setup, Box::leak(Box::default()), Board::default)
}

/// Stations in a line.
fn chain(stations: u32, window_tu: u16, multi_hop: bool) -> World<Node> {
    let mut world = World::new(&medium(), 7);
    for i in 0..stations {
        let adapter = AdapterConfig::station(address(i), Phy::A, 5_180, true);
        let config = NodeConfig::ideal(Position::new(f64::from(i), 0.0), adapter);
        world.add_node(config, node(i, window_tu, multi_hop));
    }
    apart(&mut world, stations);
    world
}

/// Each hears its neighbours only.
fn apart<P: Protocol>(world: &mut World<P>, stations: u32) {
    for (a, b) in (0..stations).flat_map(|a| (0..stations).map(move |b| (a, b))) {
        if a.abs_diff(b) > 1 {
            world.plan_loss(0, a, b, f64::INFINITY);
        }
    }
}

/// What each of ten answers of the far end took, in beacon intervals.
fn answers(multi_hop: bool) -> Vec<f64> {
    const STATIONS: u32 = 5;
    let mut world = chain(STATIONS, 20, multi_hop);
    world.run_until(40 * S);
    let far = address(STATIONS - 1);
    let route = world.protocol(0).net().routes().iter().find(|r| r.to == far);
    assert_eq!(route.map(|r| r.hops), Some(4), "multi-hop: {multi_hop}");
    let mut took = Vec::new();
    for n in 0..10 {
        // 89 intervals and a quarter further
        world.run_until(40 * S + n * 9_137 * MS);
        world.act(0, |node, now, radio| {
            node.handle(now, Event::Submit(Msdu::new(far, b"/link")), radio);
        });
        // a question that is lost is repeated after 2 s and more
        while world.protocol(0).net().answer().is_none() {
            world.run_until(world.now_ns() + 10 * MS);
        }
        let answer = world.protocol(0).net().answer().expect("just seen");
        assert_eq!(answer.code, Some(0x45), "question {n}, multi-hop: {multi_hop}");
        took.push(answer.took.as_ns() as f64 / 102.4e6);
    }
    took
}

#[test]
fn an_answer_over_four_hops() {
    let [standard, multi_hop] = [false, true].map(|multi_hop| {
        let mut took = answers(multi_hop);
        took.sort_by(f64::total_cmp);
        println!("multi-hop {multi_hop}: {took:.2?} intervals");
        took
    });
    let median = |took: &[f64]| (took[4] + took[5]) / 2.0;
    assert!(median(&standard) > 4.0);
    assert!(median(&multi_hop) < 1.25);
}

/// Nobody announces anything, and routes are found all the same: by three in a line on sticks, and by three that all hear each other and
/// come to the network by the same beacon.
#[test]
fn without_power_save() {
    for line in [true, false] {
        let mut world = World::new(&medium(), 7);
        for i in 0..3 {
            let stick = computer(address(i), Config::default(), Knobs::default(), node(i, 0, false));
            world.add_node(stick_at(address(i), Position::new(f64::from(i), 0.0)), stick);
        }
        if line {
            apart(&mut world, 3);
        }
        world.run_until(6 * S);
        for i in 0..3 {
            let routes = world.protocol(i).protocol().net().routes();
            let mut hops: Vec<_> = routes.iter().map(|r| r.hops).collect();
            hops.sort_unstable();
            let ends = line && i != 1;
            assert_eq!(hops, if ends { [1, 2] } else { [1, 1] }, "{i}, line: {line}");
        }
    }
}
