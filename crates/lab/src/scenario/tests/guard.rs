//! `guard_probability`: the guard follows from the hosts, and what it leaves out is counted.

use linux::host::{Cpus, Environment, Load, Measurement, Mechanism, Sched, Series, SeriesKind};

use super::*;
use crate::measure::host::{Condition, profile};
use crate::qualify::{self, Link, Question, Scheme, Setting};

/// Host clocks are network time and exact, so that the release is all there is in a guard.
const LOOP: &str = r#"
[run]
duration = "10s"

[medium]
loss.fixed_power_dbm = -50

[[schedule]]
name = "loop"
cycle = "2ms"
sync_error = "0us"
send = { rate = "24M", qos = true }

[[group]]
name = "controller"
host = "table5"
protocol.tdma.schedule = "loop"

[[group]]
name = "devices"
count = 4
host = "table5"
ap = "controller"
protocol.tdma.schedule = "loop"

[[traffic]]
from = "devices"
to = "controller"
octets = 58
lifetime = "4ms"
pattern.periodic = { period = "2ms" }
"#;

fn with(line: &str) -> String {
    LOOP.replace("sync_error", &format!("{line}\nsync_error"))
}

/// Guard in us, and the share of releases that miss it.
fn guard(text: &str) -> (f64, f64) {
    let scenario = parse(text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let guard = scenario.schedules[0].guard();
    let r = go(text);
    let [late, lost, released] =
        ["late", "lost", "released"].map(|n| r.metrics[format!("slots_{n}").as_str()]);
    let share = (late + lost) / (released + lost);
    (guard.as_ns() as f64 / 1e3, share)
}

#[test]
fn a_lower_probability_makes_a_smaller_guard_and_more_late_frames() {
    let all = [0.9, 0.99, 0.999].map(|p| (p, guard(&with(&format!("guard_probability = {p}")))));
    println!("probability, (guard in us, late): {all:?}");
    for pair in all.windows(2) {
        assert!(pair[0].1.0 < pair[1].1.0, "{all:?}");
    }
    // 20,000 releases or more
    for (p, (_, late)) in all {
        let promised = 1.0 - p;
        let sd = (promised / 20_000.0_f64).sqrt();
        assert!((late - promised).abs() < 0.1 * promised + 4.0 * sd, "{all:?}");
    }
    assert_eq!(guard(LOOP), guard(&with("guard_probability = 0.9999")));
}

#[test]
fn ideal_hosts_need_no_guard_and_what_is_told_counts() {
    let ideal = LOOP.replace("host = \"table5\"\n", "");
    // the slot in which a node starts may be gone already
    let (guard_us, late) = guard(&ideal);
    assert!(guard_us == 0.0 && late < 1e-4, "{guard_us} {late}");
    let told = with("release = { min = \"8.9us\", high = \"28.4us\" }");
    assert_eq!(guard(&told).0, 19.5);
    let both = told.replace("sync_error", "guard_probability = 0.9\nsync_error");
    let error = parse(&both, &[]).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("nothing to compute with guard_probability"),
        "{error}"
    );
    for wrong in ["1", "0.4"] {
        let error = parse(&with(&format!("guard_probability = {wrong}")), &[]);
        let error = error.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("from 0.5 to 0.99999"), "{error}");
    }
}

/// So many ns at least, up to 6 us more, and one in `rare` by 20 to 60 us more.
fn samples(at_least: u64, rare: u64, salt: u64) -> Vec<u64> {
    let one = |i| {
        let noise = |k| sim::rng::mix3(salt, i, k);
        let late = if noise(1) % rare == 0 {
            20_000 + noise(2) % 40_000
        } else {
            0
        };
        at_least + noise(0) % 6_000 + late
    };
    (0..2_000).map(one).collect()
}

/// What of all sums of one value of each is passed with 1 - `probability`, less the smallest of them; ns.
fn spread_of_sums(a: &[u64], b: &[u64], probability: f64) -> f64 {
    let mut sums: Vec<u64> = a.iter().flat_map(|x| b.iter().map(move |y| x + y)).collect();
    let rank = (probability * sums.len() as f64).ceil() as usize - 1;
    let high = *sums.select_nth_unstable(rank).1;
    (high - sums.iter().min().unwrap()) as f64
}

/// From samples through the file that `sdmac measure --host` writes to slots, in a scenario and in `sdmac qualify --host FILE`: the guard is the
/// quantile of the wake-up and the request together, by the samples themselves.
#[test]
fn a_profile_that_was_measured_makes_the_guard() {
    let sleep = samples(52_000, 50, 1);
    let timerfd = samples(30_000, 400, 2);
    let send = samples(3_000, 100, 3);
    let condition = Condition {
        load: Load::Idle,
        sched: Sched::OTHER,
    };
    let series = |what, samples_ns: &Vec<u64>| Series {
        what,
        load: condition.load,
        sched: condition.sched,
        samples_ns: samples_ns.clone(),
        gaps: Vec::new(),
        lost: 0,
        interrupted: false,
    };
    let measured = Measurement {
        environment: Environment::default(),
        cpus: Cpus {
            measured: 0,
            helper: 0,
        },
        packet_path: None,
        results: vec![
            series(SeriesKind::Timer(Mechanism::Sleep), &sleep),
            series(SeriesKind::Timer(Mechanism::Timerfd), &timerfd),
            series(SeriesKind::PacketSend, &send),
        ],
        load_reports: Vec::new(),
        left_out: Vec::new(),
    };
    // nothing else takes time
    let base = sim::host::Profile::built_in("ideal").unwrap();
    let found = profile(&measured, condition, &base).unwrap().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.toml");
    std::fs::write(&file, found.profile.to_toml()).unwrap();

    let in_scenario = |wait: &str, probability: f64| {
        let host = format!("host = \"host.toml\"\nwait = \"{wait}\"");
        let text = with(&format!("guard_probability = {probability}")).replace("host = \"table5\"", &host);
        let scenario = Scenario::parse(&folder.path().join("loop.toml"), &text, &[]);
        let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
        scenario.schedules[0].guard().as_ns() as f64
    };
    let in_qualify = |guard_probability: f64| {
        let question = Question {
            host: qualify::host(file.to_str().unwrap()).unwrap(),
            nodes: 1,
            cycle_ns: 20_000_000,
            guard_probability,
            schemes: vec![Scheme::TDMA],
            link: Link::Per { data: 0.0, ack: 0.0 },
            max_cycles: Some(20),
            quick: true,
            ..Question::example()
        };
        let setting = Setting {
            jobs: 1,
            stop: &AtomicBool::new(false),
            progress: &|_| {},
        };
        let answer = qualify::qualify(&question, &setting).unwrap();
        let slots = answer.schemes[0].slots.unwrap();
        assert_eq!(
            slots.guard_ns,
            slots.release_high_ns - slots.release_min_ns + slots.sync_error_ns
        );
        (slots.guard_ns - slots.sync_error_ns) as f64
    };
    // 50,000 draws of the release, and straight lines between the samples of the profile
    let agree = |guard: f64, expected: f64| (guard / expected - 1.0).abs() < 0.05;
    for probability in [0.9, 0.99, 0.999] {
        let expected = spread_of_sums(&sleep, &send, probability);
        let guards = [in_scenario("sleep", probability), in_qualify(probability)];
        println!("{probability}: {expected} {guards:?}");
        assert!(
            guards.iter().all(|guard| agree(*guard, expected)),
            "{probability}: {guards:?}, not {expected}"
        );
        // another timer of the same file, whose rare values are rarer
        let expected = spread_of_sums(&timerfd, &send, probability);
        let guard = in_scenario("timerfd", probability);
        println!("timerfd, {probability}: {expected} {guard}");
        assert!(agree(guard, expected), "{probability}: {guard}, not {expected}");
    }
}

/// Eight clocks that drift follow beacons, of their controller or of somebody else.
const BEACONS: &str = include_str!("../../../../../scenarios/tdma.toml");
const REFERENCE: &str = include_str!("../../../../../scenarios/reference.toml");

/// `sync_error` of a schedule, us.
fn sync_error(text: &str, changes: &[&str]) -> f64 {
    let scenario = parse(text, changes).unwrap_or_else(|e| panic!("{e}"));
    let clocks = scenario.timekeepers().next().unwrap();
    clocks.sync_error.as_ns() as f64 / 1e3
}

/// Adapter time has steps of 1 us at both ends.
#[test]
fn what_clocks_may_be_apart_follows_from_the_beacons_and_the_probability() {
    for text in [BEACONS, REFERENCE] {
        let usual = sync_error(text, &[]);
        let lower = sync_error(text, &["schedule.loop.guard_probability=0.9"]);
        println!("{usual} us, with 0.9 {lower} us");
        assert!((1.0..4.0).contains(&usual), "{usual}");
        assert!(lower < 0.7 * usual, "{lower} {usual}");
        assert_eq!(sync_error(text, &[]), usual, "the same text, the same error");
    }
    let lost = sync_error(BEACONS, &["loss=0.5"]);
    let usual = sync_error(BEACONS, &[]);
    assert!(
        lost > 1.3 * usual,
        "with every other beacon lost {lost}, not {usual}"
    );
}

/// In a run of its own, whose drifts are others, clocks are no further apart than was measured.
#[test]
fn clocks_keep_to_what_was_measured() {
    for text in [BEACONS, REFERENCE] {
        let scenario = parse(text, &["duration=3s"]).unwrap();
        for seed in 1..=3 {
            let run = run(&scenario, seed, None, &AtomicBool::new(false), |_| {}).unwrap();
            let clocks = &run.result.clocks[0];
            assert!(clocks.observed_us.is_some_and(|seen| seen > 0.0), "{clocks:?}");
            assert!(!clocks.is_beyond(), "{clocks:?}");
        }
    }
}

#[test]
fn what_is_told_of_clocks_counts() {
    assert_eq!(sync_error(BEACONS, &["schedule.loop.sync_error=7us"]), 7.0);
    let release = BEACONS.replace(
        "guard_probability = 0.9999",
        "release = { min = \"8.9us\", high = \"28.4us\" }",
    );
    // other slots, and beacons at other times
    let (told, usual) = (sync_error(&release, &[]), sync_error(BEACONS, &[]));
    assert!((told / usual - 1.0).abs() < 0.15, "{told} {usual}");
    let without_beacons = LOOP.replace("sync_error = \"0us\"\n", "");
    assert_eq!(sync_error(&without_beacons, &[]), 2.0);
}
