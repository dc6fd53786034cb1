//! The host model against the rows of `papers/sdmac/claims.toml` that it can answer without a simulated channel.
//!
//! Nothing here is fitted: the profiles hold the published statistics of the parts, and what the sums of the parts
//! do is compared with the published statistics of the sums. Run with `--nocapture` for the values.

mod draws;

use draws::{ALL, CONFIRM, Campaign, HARDWARE, REQUEST, Row, exact, judge, row};
use lab::reproduce::sdmac_claims;
use sim::host::{HostModel, Means, Outcome, Part, Profile};
use sim::rng::{Cause, Stream};
use std::ops::Range;

fn model(name: &str) -> HostModel {
    let model = HostModel::new(&Profile::built_in(name).unwrap()).unwrap();
    assert_eq!(model.residuals(), [], "{name} misses published statistics");
    model
}

/// Rows 0-21 to 0-39, 0-70 and 0-75.
#[test]
fn table_iv() {
    let claims = sdmac_claims();
    let conditions = [
        ("table4-baseline-idle", 21),
        ("table4-baseline-io", 25),
        ("table4-optimised-idle", 29),
        ("table4-optimised-io", 33),
    ];
    let mut totals = Vec::new();
    for (name, first) in conditions {
        let model = model(name);
        let draws = Campaign::new(&model, first, 50, 1_728_000, |_| Outcome::Acked);
        let means = model.means(Outcome::Acked, 50);
        let parts = [
            (Part::Request, REQUEST),
            (Part::Hardware, HARDWARE),
            (Part::Confirm, CONFIRM),
        ];
        for (id, (part, range)) in (first..).zip(parts) {
            let distribution = model.distribution(part, Outcome::Acked).unwrap();
            judge(
                &claims,
                &format!("0-{id}"),
                &exact(&distribution, &draws.sum(range), ""),
            );
        }
        let mut total = draws.sum(ALL).describe("", 0.0, usize::MAX);
        total.insert("mean".to_string(), means.total_ns() / 1e3);
        judge(&claims, &format!("0-{}", first + 3), &total);
        totals.push(total);
        if first == 21 {
            let ratios = [
                ("con_over_hw", means.confirm_ns / means.hardware_ns),
                ("hw_over_req", means.hardware_ns / means.request_ns),
            ];
            judge(&claims, "0-70", &row(ratios));
        }
    }
    let [base_idle, base_io, best_idle, best_io] = &totals[..] else {
        unreachable!()
    };
    judge(
        &claims,
        "0-37",
        &row([("increase", base_io["mean"] - base_idle["mean"])]),
    );
    judge(
        &claims,
        "0-38",
        &row([("ratio", base_io["p99.99"] / base_io["mean"])]),
    );
    judge(
        &claims,
        "0-39",
        &row([("ratio", base_idle["sd"] / best_idle["sd"])]),
    );
    let gains = ["mean", "min", "p99.99"].into_iter().flat_map(|name| {
        let gain = |base: &Row, best: &Row| base[name] - best[name];
        [
            (format!("{name}_idle"), gain(base_idle, best_idle)),
            (format!("{name}_io"), gain(base_io, best_io)),
        ]
    });
    judge(&claims, "0-75", &gains.collect());
}

/// How a lost ACK ends: P(heard | ACK lost) is the only number that goes in.
fn lost_ack(word: u64) -> Outcome {
    const HEARD: f64 = 0.013;
    if (word as f64) < HEARD * 2f64.powi(64) {
        Outcome::AckCorrupt
    } else {
        Outcome::Timeout
    }
}

/// Samples of the paper in the sets A, L_D and L_A (Table V): a maximum depends on their number.
const LIKE: [usize; 3] = [12_091_189, 529, 1_938];

/// Rows 0-41 to 0-53, 0-57 to 0-63, 0-69 and 0-71.
#[test]
fn table_v() {
    let claims = sdmac_claims();
    let model = model("table5");
    let sets = [
        ("a.", Campaign::new(&model, 41, 50, 3_000_000, |_| Outcome::Acked)),
        (
            "ld.",
            Campaign::new(&model, 42, 50, 1_000_000, |_| Outcome::Timeout),
        ),
        ("la.", Campaign::new(&model, 43, 50, 1_000_000, lost_ack)),
    ];
    let [acked, timeout] = [Outcome::Acked, Outcome::Timeout].map(|outcome| model.means(outcome, 50));
    // The means of A and L_D are exact, everything else is from the draws.
    let judge_sum = |id: &str, parts: Range<usize>, plus: [f64; 3], of: fn(&Means) -> f64| {
        let mut all = Row::new();
        for (((prefix, campaign), plus), like) in sets.iter().zip(plus).zip(LIKE) {
            all.extend(campaign.sum(parts.clone()).describe(prefix, plus, like));
        }
        all.insert("a.mean".to_string(), of(&acked) / 1e3 + plus[0]);
        all.insert("ld.mean".to_string(), of(&timeout) / 1e3 + plus[1]);
        judge(&claims, id, &all);
        all
    };
    let parts = [
        ("0-41", Part::RequestApi, 0),
        ("0-42", Part::RequestDriverIndependent, 1),
        ("0-43", Part::RequestDriverDependent, 2),
        ("0-45", Part::Hardware, 3),
        ("0-47", Part::Isr, 4),
        ("0-48", Part::ConfirmDriverDependent, 5),
        ("0-49", Part::ConfirmDriverIndependent, 6),
        ("0-50", Part::ConfirmApi, 7),
    ];
    for (id, part, index) in parts {
        let mut all = sets[2].1.sum(index..index + 1).describe("la.", 0.0, LIKE[2]);
        for ((prefix, campaign), outcome) in sets.iter().zip([Outcome::Acked, Outcome::Timeout]) {
            let distribution = model.distribution(part, outcome).unwrap();
            all.extend(exact(&distribution, &campaign.sum(index..index + 1), prefix));
        }
        judge(&claims, id, &all);
    }
    let air = [96.0, 61.0, 61.0];
    judge_sum("0-44", REQUEST, [0.0; 3], |means| means.request_ns);
    let on_air = judge_sum("0-46", HARDWARE, air, |means| means.hardware_ns);
    judge_sum("0-51", CONFIRM, [0.0; 3], |means| means.confirm_ns);
    let total = judge_sum("0-52", ALL, [0.0; 3], |means| means.total_ns());
    let path = judge_sum("0-53", ALL, air, |means| means.total_ns());

    // The smallest of a sample depends on its size: as many draws as the paper has acked frames.
    let mut rng = Stream::new(57, 0, Cause::Host);
    let smallest = (0..12_091_189).map(|_| {
        let request = model.sample_request(&mut rng, 50);
        request.total_ns()
            + model
                .sample_confirm(&mut rng, request.load, Outcome::Acked)
                .total_ns()
    });
    let range = [
        ("min", smallest.min().unwrap() as f64 / 1e3),
        ("p99.99", total["a.p99.99"]),
    ];
    judge(&claims, "0-57", &row(range));
    let difference = on_air["a.mean"] - on_air["ld.mean"];
    judge(
        &claims,
        "0-58",
        &row([("difference", difference), ("air", air[0] - air[1])]),
    );
    judge(
        &claims,
        "0-59",
        &row([("difference", on_air["a.p99"] - on_air["ld.p99"])]),
    );
    judge(
        &claims,
        "0-60",
        &row([("difference", (acked.hardware_ns - timeout.hardware_ns) / 1e3)]),
    );
    judge(
        &claims,
        "0-61",
        &row([("difference", path["a.mean"] - path["ld.mean"])]),
    );
    let driver = |set: usize| sets[set].1.sum(5..6).mean();
    judge(&claims, "0-62", &row([("difference", driver(0) - driver(1))]));
    let lost_acks = sets[2].1.sum(HARDWARE).0;
    let (fast, slow) = lost_acks.split_at(lost_acks.partition_point(|&us| us < 35.0));
    let modes = [
        ("fast_mode", fast[fast.len() / 2]),
        ("slow_mode", slow[slow.len() / 2]),
        ("slow_share", 100.0 * slow.len() as f64 / lost_acks.len() as f64),
    ];
    judge(&claims, "0-63", &row(modes));
    assert!(
        slow[0] - fast[fast.len() - 1] > 20.0,
        "nothing lies between the modes"
    );
    judge(
        &claims,
        "0-69",
        &row([("acked", total["a.mean"]), ("failed", total["ld.mean"])]),
    );
    judge(&claims, "0-71", &row([("mean", sets[0].1.sum(7..8).mean())]));
}

/// The deviations of the paths of Table V without any correlation, next to those of the paper.
#[test]
fn independent_parts_explain_all_but_the_request_path() {
    let mut profile = Profile::built_in("table5").unwrap();
    assert_eq!(profile.confirm.acked.total_sd_us, None);
    profile.request.total_sd_us = None;
    let draws = Campaign::new(&HostModel::new(&profile).unwrap(), 51, 50, 500_000, |_| {
        Outcome::Acked
    });
    let (request, confirm) = (draws.sum(REQUEST).sd(), draws.sum(CONFIRM).sd());
    println!("independent parts: request {request:.3} (paper 0.248), confirm {confirm:.3} (paper 0.386)");
    assert!((request - 0.175).abs() < 0.003 && (confirm - 0.371).abs() < 0.006);
}

/// Rows 0-54 and 0-55: one hour per payload, one transmission every 50 ms.
#[test]
fn figure_5() {
    let claims = sdmac_claims();
    let model = model("table4-optimised-idle");
    let payloads: Vec<usize> = (1..=30).map(|step| step * 50).collect();
    let one_hour = |octets: usize| Campaign::new(&model, octets as u64, octets, 72_000, |_| Outcome::Acked);
    let rows: Vec<Row> = payloads
        .iter()
        .map(|&octets| one_hour(octets).sum(ALL).describe("", 0.0, usize::MAX))
        .collect();
    let mean = |octets: usize| rows[octets / 50 - 1]["mean"];
    // Slope by least squares well below the knee; the knee is where that line meets the level well above it.
    let average = |from: usize, to: usize, f: &dyn Fn(usize) -> f64| {
        let inside: Vec<f64> = payloads
            .iter()
            .filter(|&&o| o >= from && o <= to)
            .map(|&o| f(o))
            .collect();
        inside.iter().sum::<f64>() / inside.len() as f64
    };
    let (x, y) = (average(50, 350, &|o| o as f64), average(50, 350, &mean));
    let covariance = average(50, 350, &|o| (o as f64 - x) * (mean(o) - y));
    let slope = covariance / average(50, 350, &|o| (o as f64 - x).powi(2));
    let plateau = average(750, 1500, &mean);
    let knee = x + (plateau - y) / slope;
    judge(
        &claims,
        "0-54",
        &row([("slope", slope), ("knee", knee), ("growth", plateau - mean(50))]),
    );
    // The paper reads the level off its figure; we take the median over the payloads above the knee.
    let median = |name: &str| {
        let mut values: Vec<f64> = rows[10..].iter().map(|row| row[name]).collect();
        values.sort_unstable_by(f64::total_cmp);
        println!(
            "{name} over payloads above the knee: {:.3} to {:.3}",
            values[0],
            values[values.len() - 1]
        );
        values[values.len() / 2]
    };
    judge(
        &claims,
        "0-55",
        &row([("min", median("min")), ("p99.9", median("p99.9"))]),
    );
}

/// Rows 0-65, 0-67 and 0-68: the margin as the paper adds it up, and what it is worth.
#[test]
fn guard_time() {
    let claims = sdmac_claims();
    let paper = |id: &str, name: &str| {
        let claim = claims.iter().find(|claim| claim.id == id).unwrap();
        claim
            .values
            .iter()
            .find(|value| value.name == name)
            .unwrap()
            .paper
            .unwrap()
    };
    let bound = |name: &str| paper("0-44", name) + paper("0-45", name);
    let jitter = bound("a.p99.9") - bound("a.min");
    judge(&claims, "0-65", &row([("margin", jitter)]));
    let sync = paper("0-66", "p99.9");
    let margin = jitter + sync;
    judge(&claims, "0-67", &row([("margin", margin)]));

    // A frame is out of its slot if T_rel - min(T_rel) + e exceeds the margin. T_rel is drawn. For e we assume a
    // normal law with |e| <= 7.110 us in 99.9 % (3.2905 deviations); for every draw its tail is integrated exactly.
    let model = model("table5");
    let mut rng = Stream::new(68, 0, Cause::Host);
    let draw = |_| model.sample_request(&mut rng, 50).total_ns() as f64 / 1e3;
    let release: Vec<f64> = (0..2_000_000).map(draw).collect();
    let min = release.iter().copied().fold(f64::MAX, f64::min);
    let sigma = sync / 3.290_526_731_491_926;
    let late = |us: f64| 0.5 * libm::erfc((margin - (us - min)) / sigma / std::f64::consts::SQRT_2);
    let violation = release.iter().map(|&us| late(us)).sum::<f64>() / release.len() as f64;
    println!("violation probability at {margin:.3} us: {violation:.2e}");
    judge(&claims, "0-68", &row([("probability", violation)]));
    let beyond = release.iter().filter(|&&us| us - min > jitter).count() as f64 / release.len() as f64;
    println!(
        "with perfect clocks, {beyond:.2e} of the releases come more than {jitter:.3} us after the earliest"
    );
    assert!(beyond < 1e-3);
}

/// Part of row 0-72: the request does not know the outcome, and with the same words an acked confirm always takes
/// longer than one after a timeout.
#[test]
fn the_outcome_changes_only_the_confirm() {
    let model = model("table5");
    let (mut one, mut other) = (Stream::new(1, 0, Cause::Host), Stream::new(1, 0, Cause::Host));
    for _ in 0..1000 {
        let (first, second) = (
            model.sample_request(&mut one, 50),
            model.sample_request(&mut other, 50),
        );
        assert_eq!(first, second);
        let slow = model.sample_confirm(&mut one, first.load, Outcome::Acked);
        let fast = model.sample_confirm(&mut other, second.load, Outcome::Timeout);
        assert!(slow.total_ns() > fast.total_ns());
    }
}
