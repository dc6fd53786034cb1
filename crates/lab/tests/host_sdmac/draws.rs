//! Draws from the host model, their statistics, and the verdict on a row of claims.

use lab::reproduce::claims::Claim;
use lab::reproduce::estimate::Estimate;
use sim::host::{Distribution, HostModel, Outcome, Random};
use sim::rng::{Cause, Stream};
use std::collections::BTreeMap;
use std::ops::Range;

/// Our value for each name of one row.
pub type Row = BTreeMap<String, f64>;

pub fn row<const N: usize>(values: [(&str, f64); N]) -> Row {
    values.map(|(name, value)| (name.to_string(), value)).into()
}

/// Judges one row: every judged value must have an answer and lie in its tolerance, but for those explained, which
/// must not.
pub fn judge(claims: &[Claim], id: &str, ours: &Row) {
    let claim = claims
        .iter()
        .find(|claim| claim.id == id)
        .unwrap_or_else(|| panic!("no claim {id}"));
    let mut wrong = Vec::new();
    println!("{id} {} ({}), {}", claim.what, claim.place, claim.kind.word());
    for value in &claim.values {
        let our = ours.get(&value.name).copied();
        let verdict = our.and_then(|our| value.accepts(&Estimate::exact(our)));
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
        let judged = value.accepted().is_some();
        if verdict == Some(false) && !explained || judged && our.is_none() {
            wrong.push(value.name.clone());
        }
    }
    assert!(
        wrong.is_empty(),
        "claim {id}: {wrong:?} out of tolerance or without a value"
    );
}

/// Draws of one quantity, in us, sorted.
pub struct Draws(pub Vec<f64>);

impl Draws {
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    pub fn sd(&self) -> f64 {
        let mean = self.mean();
        (self.0.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / self.0.len() as f64).sqrt()
    }

    pub fn quantile(&self, p: f64) -> f64 {
        self.0[(p * self.0.len() as f64) as usize]
    }

    /// The largest of as many draws as `like`: with more draws, the median of what that would be.
    fn max(&self, like: usize) -> f64 {
        let n = self.0.len();
        match n > like {
            true => self.quantile(1.0 - std::f64::consts::LN_2 / like as f64),
            false => self.0[n - 1],
        }
    }

    /// Mean, sd, min, p99, p99.9, p99.99 and max of `like` draws, each with `prefix`, and later by `plus`.
    pub fn describe(&self, prefix: &str, plus: f64, like: usize) -> Row {
        let values = [
            ("mean", self.mean() + plus),
            ("sd", self.sd()),
            ("min", self.0[0] + plus),
            ("p99", self.quantile(0.99) + plus),
            ("p99.9", self.quantile(0.999) + plus),
            ("p99.99", self.quantile(0.9999) + plus),
            ("max", self.max(like) + plus),
        ];
        values
            .map(|(name, value)| (format!("{prefix}{name}"), value))
            .into()
    }
}

/// The exact statistics of a distribution, in us, once the draws are found to follow it.
pub fn exact(distribution: &Distribution, draws: &Draws, prefix: &str) -> Row {
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
pub struct Campaign(pub Vec<[f32; 8]>);

pub const REQUEST: Range<usize> = 0..3;
pub const HARDWARE: Range<usize> = 3..4;
pub const CONFIRM: Range<usize> = 4..8;
pub const ALL: Range<usize> = 0..8;

impl Campaign {
    pub fn new(
        model: &HostModel,
        seed: u64,
        octets: usize,
        count: usize,
        outcome: impl Fn(u64) -> Outcome,
    ) -> Self {
        let mut rng = Stream::new(seed, 0, Cause::Host);
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

    pub fn sum(&self, parts: Range<usize>) -> Draws {
        let sum = |all: &[f32; 8]| all[parts.clone()].iter().map(|&ns| f64::from(ns)).sum::<f64>() / 1e3;
        let mut draws: Vec<f64> = self.0.iter().map(sum).collect();
        draws.sort_unstable_by(f64::total_cmp);
        Draws(draws)
    }
}
