//! A link goes away for a while in the middle of a transfer, with and without notices of path failure (the book's page on
//! ATP shows the table).

use std::fmt::Write;
use std::sync::atomic::AtomicBool;

use frame::Rate;
use lab::mesh::chain::Chain;
use lab::mesh::{Demand, Kind, Net, Outage, Ran, Routing};
use sim::Position;

const KINDS: [Kind; 4] = [Kind::Default, Kind::Aggressive, Kind::Adaptive, Kind::Sdmac];
const OCTETS: u64 = 2_000_000;
const SEEDS: [u64; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
/// So many datagrams in a row that are not acknowledged, each after seven tries.
const GONE_AFTER: u8 = 3;
const SECOND_NS: u64 = 1_000_000_000;

/// Three hops at 24 Mb/s on static routes; the middle link is away for ten seconds.
fn chain(kind: Kind) -> Net {
    let chain = Chain {
        hops: 3,
        flows: 1,
        kind,
        rate: Rate::OFDM_24,
        tries: 7,
        tx_dbm: 10.0,
        spacing_m: 14.0,
        loss: 0.0,
        octets: OCTETS,
        most_seconds: 200,
    };
    let outage = Outage {
        between: (1, 2),
        from_s: 2,
        until_s: 12,
    };
    Net {
        outages: vec![outage],
        ..chain.net()
    }
}

/// The same at 6 Mb/s, where OLSR finds the way, loses it and finds it again: the link is away for twenty seconds.
fn meshed(kind: Kind) -> Net {
    let place = |n: u32| Position {
        x: 12.0 * f64::from(n),
        ..Position::default()
    };
    let outage = Outage {
        between: (1, 2),
        from_s: 32,
        until_s: 52,
    };
    Net {
        places: (0..4).map(place).collect(),
        routing: Routing::Olsr,
        outages: vec![outage],
        demands: vec![Demand {
            from: 0,
            to: 3,
            octets: OCTETS,
            start_ns: 30 * SECOND_NS,
        }],
        rate: Rate::OFDM_6,
        tx_dbm: 2.0,
        greetings: Vec::new(),
        most_seconds: 300,
        ..chain(kind)
    }
}

/// Means over the seeds.
struct Mean {
    seconds: f64,
    resent: f64,
    frames: f64,
    told: f64,
    withdrawn: f64,
}

fn run(net: &Net) -> Mean {
    let runs: Vec<Ran> = SEEDS.map(|seed| net.run(seed, &AtomicBool::new(false))).into();
    for ran in &runs {
        assert!(
            ran.flows[0].done,
            "{:?}: {} octets",
            net.kind, ran.flows[0].octets
        );
    }
    let mean = |of: fn(&Ran) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    Mean {
        seconds: mean(|r| r.flows[0].seconds),
        resent: mean(|r| r.flows[0].resent as f64),
        frames: mean(|r| r.frames as f64),
        told: mean(|r| r.told as f64),
        withdrawn: mean(|r| r.withdrawn as f64),
    }
}

/// What notices save: packets sent into nothing. Both with and without, all arrives.
#[test]
fn a_link_goes_away_and_comes_back() {
    let mut table =
        String::from("way     transport   notices  seconds  sent again  frames  told  withdrawn\n");
    for (way, net) in [("static", chain as fn(Kind) -> Net), ("OLSR", meshed)] {
        for kind in KINDS {
            let [off, on] = [None, Some(GONE_AFTER)].map(|gone_after| {
                let net = Net {
                    gone_after,
                    ..net(kind)
                };
                let m = run(&net);
                let notices = if gone_after.is_some() { "on" } else { "off" };
                let _ = writeln!(
                    table,
                    "{way:7} {:11} {notices:7} {:8.1} {:11.0} {:7.0} {:5.0} {:10.1}",
                    kind.word(),
                    m.seconds,
                    m.resent,
                    m.frames,
                    m.told,
                    m.withdrawn
                );
                m
            });
            assert!(on.told > 0.0, "{way} {kind:?}");
            if way == "static" {
                assert_eq!(off.told, 0.0, "{kind:?}: there is a route all the time");
            } else {
                assert!(on.withdrawn > 0.0 && off.withdrawn > 0.0, "{kind:?}");
            }
        }
    }
    insta::assert_snapshot!("outage", table);
}
