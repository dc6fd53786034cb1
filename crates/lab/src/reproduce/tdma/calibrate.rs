//! The release and the receiver's stamps, calibrated on Table 1 of the paper and on nothing else.
//!
//! The model has two parts. A frame is released on time or, with the probability of a class, late by a value of that
//! class; and the receiver's stamp is late by 3 us with one probability, because its clock moves in steps: the paper has no
//! deviation of 1 us and many of 3. An interval then deviates by the difference of two such values, and Table 1 says how
//! often it does by how much. The probabilities are those with which the model, convolved with itself, returns the table.

use sim::host::Late;

/// A bin of the tables: deviations in us, lower end included, upper excluded.
pub type Bin = (u32, u32);

/// The bins of both tables.
pub const BINS: [Bin; 12] = [
    (0, 1),
    (1, 2),
    (2, 4),
    (4, 6),
    (6, 8),
    (8, 10),
    (10, 20),
    (20, 30),
    (30, 40),
    (40, 50),
    (50, 100),
    (200, 300),
];
/// Packets received in test 1.
pub const RECEIVED: u64 = 14_027_005;
/// Table 1: how many of them deviated, by bin; the first bin is what is left.
const TABLE_1: [u64; 12] = [
    0, 0, 1_486_019, 23_279, 2_408, 1_046, 4_901, 7_010, 502, 40, 113, 1,
];
/// The bin of the coarse stamps.
const STAMPS: usize = 2;
/// By how much a stamp is late if it is, us.
pub const STEP_US: u64 = 3;

/// How much shorter an interval is on the station's clock, us: the mean is 255.995.
const SLIP: f64 = 0.005;

/// The two parts.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    /// Probability that a stamp is late.
    pub step: f64,
    /// Classes of late releases.
    pub late: Vec<Late>,
}

impl Model {
    /// Calibrated on Table 1.
    pub fn of_table_1() -> Model {
        let share = |i: usize| TABLE_1[i] as f64 / RECEIVED as f64;
        // one value in two intervals: a first guess, and then what the first guess has missed
        let mut p: [f64; 12] = std::array::from_fn(|i| if i < STAMPS { 0.0 } else { share(i) / 2.0 });
        for _ in 0..200 {
            let found = Model::with(&p).shares();
            for i in STAMPS..BINS.len() {
                p[i] *= share(i) / found[i];
            }
        }
        Model::with(&p)
    }

    fn with(p: &[f64; 12]) -> Model {
        let class = |i: usize| Late {
            probability: p[i],
            // stamps are whole numbers: the last one that is below the upper end
            from_ns: u64::from(BINS[i].0) * 1_000,
            to_ns: u64::from(BINS[i].1 - 1) * 1_000,
        };
        Model {
            step: p[STAMPS],
            late: (STAMPS + 1..BINS.len()).map(class).collect(),
        }
    }

    /// How often an interval deviates by a value of each bin.
    pub fn shares(&self) -> [f64; 12] {
        let one = self.lateness();
        let mut by_deviation = vec![0.0; one.len() + 1];
        for (a, p) in one.iter().enumerate().filter(|(_, p)| **p > 0.0) {
            for (b, q) in one.iter().enumerate() {
                // the station's clock is slower: one interval in two hundred is a microsecond shorter
                let (early, late) = (b + 1, a);
                by_deviation[a.abs_diff(b)] += p * q * (1.0 - SLIP);
                by_deviation[late.abs_diff(early)] += p * q * SLIP;
            }
        }
        BINS.map(|(from, to)| by_deviation[from as usize..to as usize].iter().sum())
    }

    /// Probability that a stamp is late by so many whole us, release and step together. Stamps are whole numbers of us, so
    /// what lies between two goes to either of them by where in its microsecond the frame arrives.
    fn lateness(&self) -> Vec<f64> {
        let mut release = vec![0.0; 310];
        release[0] = 1.0 - self.late.iter().map(|l| l.probability).sum::<f64>();
        for late in &self.late {
            let (from, to) = ((late.from_ns / 1_000) as usize, (late.to_ns / 1_000) as usize);
            let each = late.probability / (to - from) as f64;
            for us in from..to {
                release[us] += each / 2.0;
                release[us + 1] += each / 2.0;
            }
        }
        let step = STEP_US as usize;
        let late = |us: usize| {
            us.checked_sub(step)
                .map_or(0.0, |before| release[before] * self.step)
        };
        (0..release.len())
            .map(|us| release[us] * (1.0 - self.step) + late(us))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_returns_the_table_it_was_made_from() {
        let model = Model::of_table_1();
        for (i, found) in model.shares().into_iter().enumerate().skip(STAMPS) {
            let asked = TABLE_1[i] as f64 / RECEIVED as f64;
            assert!(
                (found / asked - 1.0).abs() < 0.01,
                "{:?}: {found} for {asked}",
                BINS[i]
            );
        }
        // 2 p (1 - p) = 10.6 %
        assert!((model.step - 0.056).abs() < 0.001, "{}", model.step);
        assert!(
            model
                .late
                .iter()
                .all(|l| l.probability > 0.0 && l.probability < 0.01)
        );
    }
}
