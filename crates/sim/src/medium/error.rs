//! From the signal-to-noise ratio of a frame to the probability that it is received.

use super::power::{db_to_ratio, ratio_to_db};
use frame::Rate;
use frame::rate::{DsssRate, OfdmRate};

/// How the reception of a frame is decided from its signal-to-interference-and-noise ratio.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum ErrorModel {
    /// Bit error rates of modulation and convolutional code over white noise: the "NIST" model (Pei and Henderson
    /// 2010) for OFDM and HT, the usual DSSS formulas below that.
    #[default]
    Nist,
    /// Every part of a frame is received if and only if its ratio is at or above this many dB.
    Threshold(f64),
    /// Frames are never lost to noise; overlaps are decided by the capture rule alone.
    Perfect,
    /// Packet error rate by ratio and rate, measured by somebody.
    Table(PerTable),
}

/// Packet error rates over the ratio in dB, per rate, for frames of a reference length.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PerTable {
    /// Octets of the frames that the table was measured with.
    pub reference_octets: u32,
    /// Per rate: points (dB, PER) in rising order of dB. Between points ln(1 - PER) is interpolated linearly; outside
    /// the nearest point holds.
    pub rates: Vec<(Rate, Vec<(f64, f64)>)>,
}

impl PerTable {
    /// Reads lines `rate,snr_db,per`, with `#` comments and an optional header line.
    ///
    /// # Errors
    /// A sentence with the number of the line that is wrong.
    pub fn from_csv(text: &str, reference_octets: u32) -> Result<PerTable, String> {
        let mut table = PerTable {
            reference_octets: reference_octets.max(1),
            rates: Vec::new(),
        };
        for (n, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() || (n == 0 && line.starts_with("rate")) {
                continue;
            }
            let fields: Vec<&str> = line.split(',').map(str::trim).collect();
            let [rate, db, per] = fields[..] else {
                return Err(format!(
                    "line {}: expected rate,snr_db,per but found '{line}'",
                    n + 1
                ));
            };
            let rate = Rate::parse(rate).ok_or(format!("line {}: '{rate}' is not a rate", n + 1))?;
            let number = |t: &str| t.parse::<f64>().ok().filter(|x| x.is_finite());
            let db = number(db).ok_or(format!("line {}: '{db}' is not a number of dB", n + 1))?;
            let per = number(per).filter(|p| (0.0..=1.0).contains(p));
            let per = per.ok_or(format!("line {}: a PER lies between 0 and 1", n + 1))?;
            match table.rates.iter_mut().find(|(r, _)| *r == rate) {
                Some((_, points)) if points.last().is_some_and(|l| l.0 >= db) => {
                    return Err(format!("line {}: the dB of a rate must rise", n + 1));
                }
                Some((_, points)) => points.push((db, per)),
                None => table.rates.push((rate, vec![(db, per)])),
            }
        }
        if table.rates.is_empty() {
            return Err("there is no line of the form rate,snr_db,per".into());
        }
        Ok(table)
    }

    /// -ln(success) per octet.
    fn loss_per_octet(&self, rate: Rate, db: f64) -> f64 {
        let Some((_, points)) = self.rates.iter().find(|(r, _)| *r == rate) else {
            return f64::INFINITY;
        };
        let loss = |per: f64| -libm::log((1.0 - per).max(1e-300));
        let at = points.partition_point(|p| p.0 < db);
        let whole = match (at.checked_sub(1).map(|i| points[i]), points.get(at)) {
            (Some((x0, p0)), Some(&(x1, p1))) => loss(p0) + (loss(p1) - loss(p0)) * (db - x0) / (x1 - x0),
            (Some((_, p)), None) | (None, Some(&(_, p))) => loss(p),
            (None, None) => f64::INFINITY,
        };
        whole / f64::from(self.reference_octets)
    }
}

/// The lookup tables cover ratios from 2^-4 to 2^14 (-12 to 42 dB), with 64 steps an octave; between the steps the
/// loss is interpolated. The step is in the leading bits of the ratio, so no logarithm is needed.
const LOWEST_OCTAVE: i32 = -4;
const OCTAVES: usize = 18;
const STEP_BITS: u32 = 6;
const STEPS: usize = OCTAVES << STEP_BITS;
/// Bits of an `f64` below the step.
const REST_BITS: u32 = 52 - STEP_BITS;

/// An error model made ready for the rates that are used.
#[derive(Clone, Debug)]
pub struct Reception {
    model: ErrorModel,
    tables: Vec<Table>,
    /// Of these, the one that was asked for last.
    last: usize,
}

/// One rate.
#[derive(Clone, Debug)]
struct Table {
    rate: Rate,
    /// The ratio (linear) from which on the longest frame is certainly received.
    safe_ratio: f64,
    /// -ln(success) per bit over the ratio, for the model that has formulas.
    per_bit: Vec<f32>,
}

/// Bits of the longest frame.
const MOST_BITS: f64 = 8.0 * 65_535.0;
/// -ln of a probability of success that is as good as 1: one frame in 10^9 would be decided otherwise.
pub const NEGLIGIBLE_LOSS: f64 = 1e-9;

impl Reception {
    /// Makes `model` ready.
    pub fn new(model: ErrorModel) -> Reception {
        Reception {
            model,
            tables: Vec::new(),
            last: 0,
        }
    }

    /// -ln of the probability that `bits` bits at the rate of `table` are received at the ratio `sinr` (linear).
    /// 0: certainly; infinite: certainly not. Those of the parts of a frame add up.
    pub fn loss(&self, table: u8, sinr: f64, bits: f64) -> f64 {
        let table = &self.tables[usize::from(table)];
        match &self.model {
            ErrorModel::Perfect => 0.0,
            ErrorModel::Threshold(db) if ratio_to_db(sinr) >= *db => 0.0,
            ErrorModel::Threshold(_) => f64::INFINITY,
            ErrorModel::Table(t) => t.loss_per_octet(table.rate, ratio_to_db(sinr)) * bits / 8.0,
            ErrorModel::Nist => {
                let first = i64::from(1_023 + LOWEST_OCTAVE) << STEP_BITS;
                let step = (sinr.max(0.0).to_bits() >> REST_BITS) as i64 - first;
                let (i, part) = match usize::try_from(step) {
                    Ok(i) if i >= STEPS => return 0.0,
                    Ok(i) => {
                        let rest = sinr.to_bits() & ((1 << REST_BITS) - 1);
                        (i, rest as f32 * (1.0 / (1u64 << REST_BITS) as f32))
                    }
                    Err(_) => (0, 0.0),
                };
                let t = &table.per_bit;
                f64::from(t[i] + (t[i + 1] - t[i]) * part) * bits
            }
        }
    }

    /// The ratio (linear) from which on a frame at `rate`, header included, is certainly received, whatever its length.
    #[inline]
    pub fn safe_ratio(&mut self, rate: Rate) -> f64 {
        let table = self.table(rate);
        self.tables[usize::from(table)].safe_ratio
    }

    /// Names the table of a rate, made if it is new.
    #[inline]
    pub fn table(&mut self, rate: Rate) -> u8 {
        if self.tables.get(self.last).is_none_or(|t| t.rate != rate) {
            self.last = match self.tables.iter().position(|t| t.rate == rate) {
                Some(at) => at,
                None => self.make_table(rate),
            };
        }
        self.last as u8
    }

    #[cold]
    fn make_table(&mut self, rate: Rate) -> usize {
        let entry = |i: usize| {
            let mantissa = 1.0 + (i & ((1 << STEP_BITS) - 1)) as f64 / (1 << STEP_BITS) as f64;
            let snr = mantissa * libm::exp2(f64::from(LOWEST_OCTAVE + (i >> STEP_BITS) as i32));
            // a certain loss is kept finite, so that it can be interpolated
            (-libm::log1p(-bit_error_rate(rate, snr))).min(700.0) as f32
        };
        let per_bit = match self.model {
            ErrorModel::Nist => (0..=STEPS).map(entry).collect(),
            _ => Vec::new(),
        };
        self.tables.push(Table {
            rate,
            safe_ratio: f64::INFINITY,
            per_bit,
        });
        let index = self.tables.len() - 1;
        let table = u8::try_from(index).expect("there are fewer rates than 256");
        let good = |db: f64| self.loss(table, db_to_ratio(db), MOST_BITS) <= NEGLIGIBLE_LOSS;
        // the loss falls with the ratio, so the first good step from above counts
        let steps = (0..=700).rev().map(|i| -10.0 + 0.1 * f64::from(i));
        let safe = steps.take_while(|db| good(*db)).last();
        self.tables[index].safe_ratio = safe.map_or(f64::INFINITY, db_to_ratio);
        index
    }
}

/// Probability that a decoded bit is wrong at the linear signal-to-noise ratio `snr` (in the channel's bandwidth),
/// after the convolutional code; at most 1.
pub fn bit_error_rate(rate: Rate, snr: f64) -> f64 {
    match rate {
        Rate::Dsss(r, _) => dsss_bit_error_rate(r, snr),
        Rate::Ofdm(r) => match r {
            OfdmRate::R6 => coded(bpsk(snr), Code::Half),
            OfdmRate::R9 => coded(bpsk(snr), Code::ThreeQuarters),
            OfdmRate::R12 => coded(qpsk(snr), Code::Half),
            OfdmRate::R18 => coded(qpsk(snr), Code::ThreeQuarters),
            OfdmRate::R24 => coded(qam(snr, 16.0), Code::Half),
            OfdmRate::R36 => coded(qam(snr, 16.0), Code::ThreeQuarters),
            OfdmRate::R48 => coded(qam(snr, 64.0), Code::TwoThirds),
            OfdmRate::R54 => coded(qam(snr, 64.0), Code::ThreeQuarters),
        },
        // streams share the transmit power; with as many receive antennas, per-stream SNR stays about the same
        Rate::Ht(mcs, ..) => match mcs.index() % 8 {
            0 => coded(bpsk(snr), Code::Half),
            1 => coded(qpsk(snr), Code::Half),
            2 => coded(qpsk(snr), Code::ThreeQuarters),
            3 => coded(qam(snr, 16.0), Code::Half),
            4 => coded(qam(snr, 16.0), Code::ThreeQuarters),
            5 => coded(qam(snr, 64.0), Code::TwoThirds),
            6 => coded(qam(snr, 64.0), Code::ThreeQuarters),
            _ => coded(qam(snr, 64.0), Code::FiveSixths),
        },
    }
}

fn bpsk(snr: f64) -> f64 {
    0.5 * libm::erfc(snr.sqrt())
}

fn qpsk(snr: f64) -> f64 {
    0.5 * libm::erfc((snr / 2.0).sqrt())
}

/// Square QAM with `m` points and Gray mapping.
fn qam(snr: f64, m: f64) -> f64 {
    let side = m.sqrt();
    (side - 1.0) / (side * libm::log2(m)) * libm::erfc((1.5 * snr / (m - 1.0)).sqrt())
}

enum Code {
    Half,
    TwoThirds,
    ThreeQuarters,
    FiveSixths,
}

/// Union bound for the punctured K = 7 code: first event error weights (Haccoun and Bégin 1989; 1/2 and 3/4 as in
/// Frenger et al. 1999), divided by the number of information bits per puncturing period.
fn coded(p: f64, code: Code) -> f64 {
    let d = (4.0 * p * (1.0 - p)).max(0.0).sqrt();
    let sum = |first: i32, step: i32, weights: &[f64]| -> f64 {
        weights
            .iter()
            .enumerate()
            .map(|(i, w)| w * d.powi(first + step * i as i32))
            .sum()
    };
    let bound = match code {
        Code::Half => {
            let w = [
                36.0,
                211.0,
                1404.0,
                11633.0,
                77433.0,
                502_690.0,
                3_322_763.0,
                21_292_910.0,
                134_365_911.0,
            ];
            sum(10, 2, &w) / 2.0
        }
        Code::TwoThirds => {
            let w = [
                3.0,
                70.0,
                285.0,
                1276.0,
                6160.0,
                27128.0,
                117_019.0,
                498_860.0,
                2_103_891.0,
                8_784_123.0,
            ];
            sum(6, 1, &w) / 4.0
        }
        Code::ThreeQuarters => {
            let w = [
                42.0,
                201.0,
                1492.0,
                10469.0,
                62935.0,
                379_644.0,
                2_253_373.0,
                13_073_811.0,
                75_152_755.0,
                428_005_675.0,
            ];
            sum(5, 1, &w) / 6.0
        }
        Code::FiveSixths => {
            let w = [
                92.0,
                528.0,
                8694.0,
                79453.0,
                792_114.0,
                7_375_573.0,
                67_884_974.0,
                610_875_423.0,
            ];
            sum(4, 1, &w) / 10.0
        }
    };
    bound.min(1.0)
}

/// DBPSK and DQPSK with the 11-chip Barker code; CCK by the same formula with the gain that its rate leaves.
fn dsss_bit_error_rate(rate: DsssRate, snr: f64) -> f64 {
    let dqpsk = |x: f64| {
        let r2 = std::f64::consts::SQRT_2;
        let p =
            ((r2 + 1.0) / (8.0 * std::f64::consts::PI * r2).sqrt()) / x.sqrt() * libm::exp(-(2.0 - r2) * x);
        p.min(0.5)
    };
    match rate {
        // 22 MHz of bandwidth over 1 Mb/s
        DsssRate::R1 => 0.5 * libm::exp(-22.0 * snr),
        DsssRate::R2 => dqpsk(11.0 * snr),
        DsssRate::R5_5 => dqpsk(4.0 * snr),
        DsssRate::R11 => dqpsk(2.0 * snr),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn per(rate: Rate, db: f64, octets: f64) -> f64 {
        let mut r = Reception::new(ErrorModel::Nist);
        let table = r.table(rate);
        1.0 - (-r.loss(table, 10f64.powf(db / 10.0), octets * 8.0)).exp()
    }

    /// 10 % packet error rate for 1000 octets over white noise, in dB, for 6, 12, 24, 36, 48, 54 Mb/s: where the
    /// union bound puts it, and in rising order.
    #[test]
    fn working_points() {
        let mut last = -10.0;
        for r in [
            OfdmRate::R6,
            OfdmRate::R12,
            OfdmRate::R24,
            OfdmRate::R36,
            OfdmRate::R48,
            OfdmRate::R54,
        ] {
            let rate = Rate::Ofdm(r);
            let point = (-200..600)
                .map(|i| f64::from(i) * 0.05)
                .find(|db| per(rate, *db, 1000.0) < 0.1)
                .unwrap();
            assert!(point > last, "{rate} at {point}");
            // far above it nothing is lost, far below everything
            assert!(per(rate, point + 5.0, 1500.0) < 1e-6 && per(rate, point - 5.0, 1500.0) > 0.999);
            last = point;
        }
        assert!((17.0..23.0).contains(&last), "54 Mb/s at {last} dB");
    }

    #[test]
    fn dsss_is_more_robust() {
        assert!(per(Rate::DSSS_1, -2.0, 100.0) < 1e-3);
        assert!(per(Rate::DSSS_1, 3.0, 100.0) <= per(Rate::DSSS_2, 3.0, 100.0));
        assert!(per(Rate::DSSS_2, 5.0, 100.0) <= per(Rate::DSSS_11, 5.0, 100.0));
    }

    #[test]
    fn thresholds_are_crisp() {
        let mut r = Reception::new(ErrorModel::Threshold(4.0));
        let table = r.table(Rate::OFDM_54);
        assert_eq!(r.loss(table, 10f64.powf(0.4001), 1.0), 0.0);
        assert_eq!(r.loss(table, 10f64.powf(0.3999), 1.0), f64::INFINITY);
    }

    #[test]
    fn tables_from_csv() {
        let t = PerTable::from_csv("rate,snr_db,per\n54M,20,0.5 # half\n54M, 22,0.1\n6M,3,0\n", 100).unwrap();
        let mut r = Reception::new(ErrorModel::Table(t));
        let table = r.table(Rate::OFDM_54);
        let p = |db: f64| 1.0 - (-r.loss(table, 10f64.powf(db / 10.0), 800.0)).exp();
        assert!((p(10.0) - 0.5).abs() < 1e-9 && (p(30.0) - 0.1).abs() < 1e-9);
        let mid = p(21.0);
        assert!((mid - (1.0 - (0.5f64 * 0.9).sqrt())).abs() < 1e-6, "{mid}");
        for (bad, line) in [
            ("54M,20", 1),
            ("54M,1,0\nxM,2,0", 2),
            ("54M,2,0\n54M,1,0", 2),
            ("54M,1,1.5", 1),
        ] {
            let e = PerTable::from_csv(bad, 100).unwrap_err();
            assert!(e.starts_with(&format!("line {line}:")), "{e}");
        }
        assert!(PerTable::from_csv("", 100).is_err());
    }
}
