//! The host model against the rows of `papers/sdmac/claims.toml` that it can answer without a simulated channel.
//!
//! Nothing here is fitted: the profiles hold the published statistics of the parts, and what the sums of the parts
//! do is compared with the published statistics of the sums. Run with `--nocapture` for the values.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::Deserialize;
use sim::host::{Distribution, HostModel, Means, Outcome, Part, Profile, Random};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Deserialize)]
struct Claims {
    claim: Vec<Claim>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    id: String,
    #[serde(rename = "where")]
    place: String,
    kind: String,
    what: String,
    #[serde(default)]
    values: Vec<Value>,
    #[serde(default)]
    note: String,
    #[serde(default)]
    explained: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    name: String,
    paper: Option<f64>,
    unit: Option<String>,
    within: Option<f64>,
    within_percent: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    kind: Option<String>,
}

impl Value {
    /// `None` if the value is not judged.
    fn accepts(&self, ours: f64) -> Option<bool> {
        let paper = self.paper.unwrap_or(f64::NAN);
        // The paper's decimals have no exact binary form.
        let rounding = 1e-9 * paper.abs();
        let judgements = [
            self.within
                .map(|within| (ours - paper).abs() <= within + rounding),
            self.within_percent
                .map(|percent| (ours / paper - 1.0).abs() <= percent / 100.0),
            self.at_least.map(|least| ours >= least),
            self.at_most.map(|most| ours <= most),
        ];
        judgements.into_iter().flatten().reduce(|a, b| a && b)
    }
}

fn claims() -> Vec<Claim> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers/sdmac/claims.toml");
    let text = std::fs::read_to_string(path).unwrap();
    toml::from_str::<Claims>(&text).unwrap().claim
}

/// Our value for each name of one row.
type Row = BTreeMap<String, f64>;

fn row<const N: usize>(values: [(&str, f64); N]) -> Row {
    values.map(|(name, value)| (name.to_string(), value)).into()
}

/// Judges one row: every judged value must have an answer and lie in its tolerance, but for those explained, which
/// must not.
fn judge(claims: &[Claim], id: &str, ours: &Row) {
    let claim = claims
        .iter()
        .find(|claim| claim.id == id)
        .unwrap_or_else(|| panic!("no claim {id}"));
    let mut wrong = Vec::new();
    println!("{id} {} ({}), {}", claim.what, claim.place, claim.kind);
    for value in &claim.values {
        let our = ours.get(&value.name).copied();
        let verdict = our.and_then(|our| value.accepts(our));
        let explained = claim.explained.contains_key(&value.name);
        let word = match verdict {
            Some(true) => "ok",
            Some(false) if explained => "outside, explained",
            Some(false) => "WRONG",
            None => "not judged",
        };
        let (paper, shown) = (value.paper.unwrap_or(f64::NAN), our.unwrap_or(f64::NAN));
        println!(
            "    {:12} paper {paper:>11.3} ours {shown:>11.4} {word}",
            value.name
        );
        let judged = value.accepts(f64::NAN).is_some();
        if verdict == Some(false) && !explained || judged && our.is_none() {
            wrong.push(value.name.clone());
        }
    }
    assert!(
        wrong.is_empty(),
        "claim {id}: {wrong:?} out of tolerance or without a value"
    );
}

fn model(name: &str) -> HostModel {
    let model = HostModel::new(&Profile::built_in(name).unwrap()).unwrap();
    assert_eq!(model.residuals(), [], "{name} misses published statistics");
    model
}

/// Draws of one quantity, in us, sorted.
struct Draws(Vec<f64>);

impl Draws {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    fn sd(&self) -> f64 {
        let mean = self.mean();
        (self.0.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / self.0.len() as f64).sqrt()
    }

    fn quantile(&self, p: f64) -> f64 {
        self.0[(p * self.0.len() as f64) as usize]
    }

    /// Mean, sd, min, p99, p99.9, p99.99 and max, each with `prefix`, and later by `plus`.
    fn describe(&self, prefix: &str, plus: f64) -> Row {
        let values = [
            ("mean", self.mean() + plus),
            ("sd", self.sd()),
            ("min", self.0[0] + plus),
            ("p99", self.quantile(0.99) + plus),
            ("p99.9", self.quantile(0.999) + plus),
            ("p99.99", self.quantile(0.9999) + plus),
            ("max", self.0[self.0.len() - 1] + plus),
        ];
        values
            .map(|(name, value)| (format!("{prefix}{name}"), value))
            .into()
    }
}

/// The exact statistics of a distribution, in us, once the draws are found to follow it.
fn exact(distribution: &Distribution, draws: &Draws, prefix: &str) -> Row {
    let count = draws.0.len() as f64;
    for p in [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999] {
        let us = distribution.quantile_ns(p) / 1e3;
        // Whole nanoseconds: what is within half of one of the quantile may fall on either side.
        let share = |us: f64| draws.0.partition_point(|&draw| draw <= us) as f64 / count;
        let noise = 4.5 * (p * (1.0 - p) / count).sqrt();
        assert!(
            share(us - 0.0021) - noise < p && p < share(us + 0.0021) + noise,
            "{p}: {} {}",
            share(us),
            us
        );
    }
    let values = [
        ("mean", distribution.mean_ns()),
        ("sd", distribution.sd_ns()),
        ("min", distribution.min_ns()),
        ("p99", distribution.quantile_ns(0.99)),
        ("p99.9", distribution.quantile_ns(0.999)),
        ("p99.99", distribution.quantile_ns(0.9999)),
        ("max", distribution.max_ns()),
    ];
    values
        .map(|(name, ns)| (format!("{prefix}{name}"), ns / 1e3))
        .into()
}

/// Draws of whole transmissions: parts 0..=2 of the request, 3 hardware, 4..=7 of the confirm, in ns.
struct Campaign(Vec<[f32; 8]>);

const REQUEST: Range<usize> = 0..3;
const HARDWARE: Range<usize> = 3..4;
const CONFIRM: Range<usize> = 4..8;
const ALL: Range<usize> = 0..8;

impl Campaign {
    fn new(
        model: &HostModel,
        seed: u64,
        octets: usize,
        count: usize,
        outcome: impl Fn(u64) -> Outcome,
    ) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let one = |_| {
            let request = model.sample_request(&mut rng, octets);
            let outcome = outcome(Random::next_u64(&mut rng));
            let confirm = model.sample_confirm(&mut rng, request.load, outcome);
            // A corrupt ACK ends the exchange 35 us after the timeout would; the paper counts that as hardware.
            let late = if outcome == Outcome::AckCorrupt { 35_000 } else { 0 };
            [
                request.t1_t2_ns,
                request.t2_t3_ns,
                request.t3_t4_ns,
                request.hardware_ns + confirm.hardware_ns + late,
                confirm.t5_t6_ns,
                confirm.t6_t7_ns,
                confirm.t7_t8_ns,
                confirm.t8_t9_ns,
            ]
            .map(|ns| ns as f32)
        };
        Campaign((0..count).map(one).collect())
    }

    fn sum(&self, parts: Range<usize>) -> Draws {
        let sum = |all: &[f32; 8]| all[parts.clone()].iter().map(|&ns| f64::from(ns)).sum::<f64>() / 1e3;
        let mut draws: Vec<f64> = self.0.iter().map(sum).collect();
        draws.sort_unstable_by(f64::total_cmp);
        Draws(draws)
    }
}

#[test]
fn every_claim_is_well_formed() {
    let claims = claims();
    let numbers: Vec<u32> = claims
        .iter()
        .map(|claim| claim.id.strip_prefix("0-").unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, (1..=75).collect::<Vec<_>>());
    let kinds = [
        "exact",
        "calibrated",
        "emergent",
        "qualitative",
        "setup",
        "hardware",
    ];
    for claim in &claims {
        assert!(kinds.contains(&claim.kind.as_str()), "{}", claim.id);
        assert!(
            !claim.values.is_empty() || !claim.note.is_empty(),
            "{} says nothing",
            claim.id
        );
        let judged = !matches!(claim.kind.as_str(), "setup" | "hardware");
        for value in &claim.values {
            assert!(
                value
                    .kind
                    .as_ref()
                    .is_none_or(|kind| kinds.contains(&kind.as_str())),
                "{}",
                claim.id
            );
            assert!(
                value.unit.as_ref().is_none_or(|unit| !unit.is_empty()),
                "{}",
                claim.id
            );
            assert!(
                claim
                    .explained
                    .keys()
                    .all(|name| claim.values.iter().any(|value| value.name == *name))
            );
            assert!(
                judged || value.accepts(0.0).is_none(),
                "{} has a tolerance and is not judged",
                claim.id
            );
            // What the paper says satisfies its own claim.
            assert_ne!(
                value.paper.and_then(|paper| value.accepts(paper)),
                Some(false),
                "{} {}",
                claim.id,
                value.name
            );
        }
    }
}

/// Rows 0-21 to 0-39, 0-70 and 0-75.
#[test]
fn table_iv() {
    let claims = claims();
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
        let mut total = draws.sum(ALL).describe("", 0.0);
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

/// Rows 0-41 to 0-53, 0-57 to 0-63, 0-69 and 0-71.
#[test]
fn table_v() {
    let claims = claims();
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
        for ((prefix, campaign), plus) in sets.iter().zip(plus) {
            all.extend(campaign.sum(parts.clone()).describe(prefix, plus));
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
        let mut all = sets[2].1.sum(index..index + 1).describe("la.", 0.0);
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
    let mut rng = ChaCha8Rng::seed_from_u64(57);
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
    let claims = claims();
    let model = model("table4-optimised-idle");
    let payloads: Vec<usize> = (1..=30).map(|step| step * 50).collect();
    let one_hour = |octets: usize| Campaign::new(&model, octets as u64, octets, 72_000, |_| Outcome::Acked);
    let rows: Vec<Row> = payloads
        .iter()
        .map(|&octets| one_hour(octets).sum(ALL).describe("", 0.0))
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
    let claims = claims();
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
    let mut rng = ChaCha8Rng::seed_from_u64(68);
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
    let (mut one, mut other) = (ChaCha8Rng::seed_from_u64(1), ChaCha8Rng::seed_from_u64(1));
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
