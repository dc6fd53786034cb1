//! One frame at a time: how long it takes, what is lost, and how many tries are told.

use super::stations::Shots;
use super::*;
use frame::Rate;
use protocols::mac::data::Identity;
use protocols::mac::oneshot::{Oneshot, OneshotConfig, Pace};
use radio::{Duration, Outcome, Plane, TxHow};

/// To the microsecond. It is spent with readings of the clock, of 256 ns each.
const TOLERANCE_NS: u64 = 1_000;

const PAIR: &str = r#"
[run]
duration = "1s"

[medium]
loss.fixed_power_dbm = -50
error = "perfect"

[[group]]
name = "ap"
protocol.sender = { rate = "54M" }

[[group]]
name = "sta"
protocol.sender = { rate = "54M" }
"#;

/// Station 1 sends to station 0, which does nothing but acknowledge.
fn pair(scenario: &Scenario, how: TxHow, count: u32) -> (Shots, HostCounters, Summary) {
    let (mut done, summary) = under(scenario, 1, |_| {
        let adapters = radios(2);
        let [ap, sta] = addresses(&adapters)[..] else {
            panic!("two radios")
        };
        let quiet = Shots::new(ap, sta, how, 0, 0);
        let protocols = [quiet, Shots::new(sta, ap, how, 1, count)];
        let stations = adapters.into_iter().zip(protocols).map(|(a, p)| (a, p, ()));
        all(stations.collect(), Host::now() + Duration::from_ms(2_000))
    });
    let sta = done.pop().unwrap();
    (sta.protocol, sta.counters, summary)
}

/// From request to confirm: each one-shot of a measurement task, one in every millisecond.
fn measured(task: &Oneshot<1000>) -> Vec<u64> {
    let ns = |m: &protocols::mac::oneshot::Measurement| {
        let [t1, t9] = [Plane::T1, Plane::T9].map(|p| m.confirm.stamps.get_host(p).unwrap());
        assert_eq!((m.confirm.outcome, m.confirm.attempts), (Outcome::Acked, 1));
        t9.since(t1).as_ns()
    };
    task.recent().map(ns).collect()
}

fn task(rate: Rate, me: MacAddr, peer: MacAddr, measurements: u32) -> Oneshot<1000> {
    Oneshot::new(OneshotConfig {
        how: TxHow::one_shot(rate),
        pace: Pace::Every {
            period: Duration::from_ms(1),
        },
        measurements,
        ..OneshotConfig::paper(Identity::station(me, peer))
    })
}

/// A thousand of them in the kernel, under whatever air there is.
fn paced(rate: Rate) -> Vec<u64> {
    let adapters = radios(2);
    let all_addresses = addresses(&adapters);
    let station = |(i, a): (usize, Adapter)| {
        let count = if i == 1 { 1_000 } else { 0 };
        (a, task(rate, all_addresses[i], all_addresses[1 - i], count), ())
    };
    let until = Host::now() + Duration::from_ms(1_100);
    let done = all(adapters.into_iter().enumerate().map(station).collect(), until);
    measured(&done[1].protocol)
}

/// On an idle medium a one-shot takes the frame, SIFS and the ACK, to the nanosecond in the simulator and to the microsecond
/// in the kernel: there each reading of the clock costs 256 ns. Under the kernel's own air, which takes no time, there is
/// one.
#[test]
fn a_one_shot_takes_what_the_scenario_says() {
    let Some(_lab) = lab(4) else { return };
    let scenario = scenario(PAIR);
    for (rate, air_ns) in [(Rate::OFDM_54, 80_000), (Rate::OFDM_6, 200_000)] {
        let nothing = paced(rate);
        let (real, summary) = under(&scenario, 1, |_| paced(rate));
        let mut world = scenario.build_with(1, |node, mut config, _| {
            let [me, peer] = [node, 1 - node].map(MacAddr::local);
            config.start_ns = 1_000_000;
            (config, task(rate, me, peer, 1_000 * node))
        });
        world.run_until(1_100_000_000);
        let sim = measured(world.protocol(1));
        let of = |v: &[u64]| {
            assert_eq!(v.len(), 1_000);
            let [least, most] = [v.iter().min(), v.iter().max()].map(|x| *x.unwrap());
            (least, v.iter().sum::<u64>() / 1_000, most)
        };
        let (nothing, real, sim) = (of(&nothing), of(&real), of(&sim));
        eprintln!(
            "1000 one-shots at {rate}, from request to confirm in ns (least, mean, most): {sim:?} in the simulator, {real:?} in the kernel, \
             {nothing:?} of it without an air; nothing was told later than {} us",
            summary.latest_us
        );
        assert_eq!(sim, (air_ns, air_ns, air_ns));
        assert!(real.0 > air_ns, "not before its time");
        assert!(real.1 - air_ns < TOLERANCE_NS, "{real:?} ns");
        assert!(summary.latest_us < 1.0);
        assert_eq!((summary.total.tries, summary.total.overlapping), (1_000, 0));
    }
}

/// Nothing arrives: not acknowledged, with all tries that were asked for and no more.
#[test]
fn a_lost_frame_is_not_acked_and_its_tries_are_those_of_the_air() {
    let Some(_lab) = lab(4) else { return };
    let dead = format!("{PAIR}\n[[link]]\nfrom = \"sta\"\nto = \"ap\"\ndata.fixed = 1\n");
    for tries in [1, 4, 7] {
        let (real, _, summary) = pair(&scenario(&dead), TxHow::multi_shot(Rate::OFDM_54, tries), 50);
        assert_eq!(real.ends.len(), 50);
        for (_, confirm) in &real.ends {
            assert_eq!(
                (confirm.outcome, confirm.attempts),
                (Outcome::NotAcked, tries.into())
            );
        }
        let sta = summary.nodes[1].counts;
        assert_eq!((sta.not_acked, sta.tries), (50, 50 * u64::from(tries)));
        assert_eq!(summary.nodes[0].counts.received, 0);
    }
}

/// Half of the frames and a fifth of the ACKs are lost: what the kernel tells is what the air has seen.
#[test]
fn tries_told_are_tries_made() {
    let Some(_lab) = lab(4) else { return };
    let link = "[[link]]\nfrom = \"sta\"\nto = \"ap\"\nboth_ways = true\ndata.fixed = 0.5\nack.fixed = 0.2\n";
    let text = format!("{PAIR}\n{link}");
    let how = TxHow::multi_shot(Rate::OFDM_54, 4);
    let (real, _, summary) = pair(&scenario(&text), how, 2_000);
    let sta = summary.nodes[1].counts;
    let sum = (
        real.acked(),
        real.ends.len() as u64 - real.acked(),
        real.attempts(),
    );
    assert_eq!(sum, (sta.acked, sta.not_acked, sta.tries));
    // each try is acknowledged with probability 0.4: 1 - 0.6^4 of the frames, within five standard deviations
    let expect = 2_000.0 * (1.0 - 0.6_f64.powi(4));
    assert!(
        (sta.acked as f64 - expect).abs() < 5.0 * (expect * 0.6_f64.powi(4)).sqrt(),
        "{sta:?}"
    );
    // data that arrived and whose ACK was lost arrived all the same, perhaps twice
    assert!(summary.nodes[0].counts.received > sta.acked, "{summary:?}");
}

/// Radios that are down, on another channel or without a node acknowledge nothing, whatever their address.
#[test]
fn nobody_acknowledges_who_does_not_listen() {
    let Some(_lab) = lab(4) else { return };
    let how = TxHow::multi_shot(Rate::OFDM_54, 3);
    let scenario = scenario(PAIR);
    let (ends, summary) = under(&scenario, 1, |_| {
        let adapter = radios(1).pop().unwrap();
        let elsewhere = Adapter::open(AdapterConfig::new("phy1", 5200)).unwrap();
        let spare = Adapter::open(AdapterConfig::new("phy2", CHANNEL)).unwrap();
        let me = adapter.address();
        let mut ends = Vec::new();
        let mut adapter = Some(adapter);
        for to in [elsewhere.address(), spare.address(), MacAddr([2, 0, 0, 0, 3, 0])] {
            let shots = Shots::new(me, to, how, 1, 5);
            let station = adapter.take().unwrap_or_else(|| radios(1).pop().unwrap());
            let done = all(vec![(station, shots, ())], Host::now() + Duration::from_ms(300));
            ends.extend(done[0].protocol.ends.iter().map(|e| (e.1.outcome, e.1.attempts)));
        }
        ends
    });
    assert_eq!(ends, [(Outcome::NotAcked, 3); 15]);
    assert_eq!(summary.total.received, 0, "{summary:?}");
}

/// There is one air at a time, and the second one learns who to look for.
#[test]
fn one_air_at_a_time() {
    let Some(_lab) = lab(4) else { return };
    let scenario = scenario(PAIR);
    let (second, _) = under(&scenario, 1, |_| {
        air::run(&scenario, 1, &AtomicBool::new(true), |_| {
            panic!("it is not the air")
        })
    });
    assert!(
        matches!(second, Err(air::AirError::Kernel(linux::hwsim::Error::Busy))),
        "{second:?}"
    );
    let third = air::run(&scenario, 1, &AtomicBool::new(true), |s| {
        assert_eq!(s.nodes.len(), 2)
    });
    assert!(third.is_ok(), "{third:?}");
}
