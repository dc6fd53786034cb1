//! Our value for every number of every row.

mod margin;

use std::collections::BTreeMap;

use frame::{Phy, Rate, RateSet};

use super::bed::{Set, Sets, Span, air_ns};
use super::claims::Claim;
use super::convolve::Density;
use super::counts::Counts;
use super::estimate::{ERRORS, Estimate};
use super::plan::{ACK_LOST, DATA_LOST, DAY, Measured, WEEK};
use super::retry::Repeats;

/// L_A is cut here into timeouts and corrupt ACKs: T_hw in ns, far from both modes.
const BETWEEN_MODES_NS: u64 = 35_000;

/// By id of the row and name of the value.
type ByName = BTreeMap<(String, String), Estimate>;

/// Values by id of the row and name of the value. A value that could not be had is not there.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Values {
    values: ByName,
    /// What the simulation says of a value that was computed.
    simulated: ByName,
}

impl Values {
    /// All that the measurements allow. `claims` gives the numbers of the paper to the rows that check its
    /// arithmetic, and to no other.
    pub fn of(measured: &Measured, claims: &[Claim]) -> Values {
        let mut values = Values::default();
        values.timing(measured);
        values.samples(measured);
        values.table_iv(measured);
        values.table_v(measured);
        values.failures(measured);
        values.payload(measured);
        values.arithmetic(claims);
        values.guard(measured);
        values.repeats(measured);
        values
    }

    /// One value.
    pub fn get(&self, id: &str, name: &str) -> Option<Estimate> {
        self.values.get(&(id.to_string(), name.to_string())).copied()
    }

    /// What was simulated of a value that was computed.
    pub fn simulated(&self, id: &str, name: &str) -> Option<Estimate> {
        self.simulated.get(&(id.to_string(), name.to_string())).copied()
    }

    /// Puts a computed value in the place of a simulated one, which stays beside it.
    pub(super) fn compute(&mut self, id: &str, name: &str, us: f64) {
        let key = (id.to_string(), name.to_string());
        if let Some(simulated) = self.values.insert(key.clone(), Estimate::exact(us)) {
            self.simulated.insert(key, simulated);
        }
    }

    /// Mean and percentiles of a computed sum, later by `plus_us`.
    fn compute_sum(&mut self, id: &str, prefix: &str, mean_ns: f64, sum: Option<&Density>, plus_us: f64) {
        let mut put = |name: &str, us: f64| self.compute(id, &format!("{prefix}{name}"), us);
        put("mean", mean_ns / 1e3 + plus_us);
        let Some(sum) = sum else { return };
        put("sd", sum.sd_us());
        put("p99", sum.quantile_us(0.99) + plus_us);
        put("p99.9", sum.quantile_us(0.999) + plus_us);
        put("p99.99", sum.quantile_us(0.9999) + plus_us);
    }

    pub(super) fn put(&mut self, id: &str, name: &str, value: impl Into<Option<Estimate>>) {
        if let Some(value) = value.into() {
            self.values.insert((id.to_string(), name.to_string()), value);
        }
    }

    fn exact(&mut self, id: &str, name: &str, value: f64) {
        self.put(id, name, Estimate::exact(value));
    }

    /// The usual statistics under `prefix`, later by `plus_us`; the extremes are those of `like` samples.
    fn describe(&mut self, id: &str, prefix: &str, counts: &Counts, plus_us: f64, like: u64) {
        let mut put = |name: &str, value: Option<Estimate>, plus: f64| {
            self.put(id, &format!("{prefix}{name}"), value.map(|v| v + plus));
        };
        put("mean", counts.mean(), plus_us);
        put("sd", counts.sd(), 0.0);
        put("min", counts.min(like), plus_us);
        put("p99", counts.quantile(0.99), plus_us);
        put("p99.9", counts.quantile(0.999), plus_us);
        put("p99.99", counts.quantile(0.9999), plus_us);
        put("max", counts.max(like), plus_us);
    }

    /// Rows 0-5 to 0-11 and 0-19: the standard's arithmetic, and the exchanges as they were simulated.
    fn timing(&mut self, measured: &Measured) {
        let phy = Phy::A;
        // MAC header 24, LLC/SNAP 8, FCS 4
        let data_us = frame::ppdu_us(Rate::OFDM_54, 50 + 24 + 8 + 4, phy.band);
        self.exact("0-5", "t_data", f64::from(data_us));
        self.exact("0-6", "t_sifs", f64::from(phy.sifs_us));
        self.exact("0-6", "t_slot", f64::from(phy.slot_us));
        self.exact("0-6", "t_difs", f64::from(phy.difs_us()));
        self.exact(
            "0-7",
            "t_ack",
            f64::from(phy.ack_us(Rate::OFDM_54, RateSet::OFDM_6_ONLY)),
        );
        let exchange = |set: &Set| set.of(Span::Exchange).mean();
        let (acked, timeout) = (
            exchange(&measured.week().acked),
            exchange(&measured.data_lost().data_lost),
        );
        self.put("0-8", "t_toa", acked);
        self.put("0-9", "t_toa_timeout", timeout);
        self.exact("0-10", "standard", f64::from(phy.ack_timeout_us()));
        self.exact("0-10", "ath9k", f64::from(phy.ath9k_ack_timeout_us));
        let by_default = data_us + phy.ack_timeout_us();
        self.put(
            "0-11",
            "difference",
            acked.map(|a| a - Estimate::exact(f64::from(by_default))),
        );
        if measured.week().periods > 0 {
            self.exact(
                "0-19",
                "tolerance",
                measured.week().sifs_deviation_ns as f64 / 1e3,
            );
        }
    }

    /// Rows 0-12 to 0-14: how many samples there are, of each outcome, in seven days.
    fn samples(&mut self, measured: &Measured) {
        let week = measured.week();
        if week.periods == 0 {
            return;
        }
        let days = (week.periods * super::bed::PERIOD_NS) as f64 / 86_400e9;
        self.exact("0-12", "samples", week.periods as f64 / days);
        let scale = WEEK as f64 / week.periods as f64;
        let counted = |n: u64| Estimate::counted(n).times(scale);
        self.put("0-13", "ld", counted(week.data_lost.count()));
        self.put("0-13", "la", counted(week.ack_lost.count()));
        // these are what is left of a fixed number
        let rest = |missing: u64| Estimate::exact(WEEK as f64) - counted(missing);
        self.put("0-13", "a", rest(week.periods - week.acked.count()));
        self.put("0-13", "total", rest(week.periods - week.samples()));
        let share = 100.0 / week.periods as f64;
        self.put(
            "0-14",
            "discarded",
            Estimate::counted(week.discarded).times(share),
        );
        self.put("0-14", "implied", self.get("0-14", "discarded"));
    }

    /// Rows 0-21 to 0-39, 0-70 and 0-75.
    fn table_iv(&mut self, measured: &Measured) {
        for (sets, first) in measured.table_iv().iter().zip([21, 25, 29, 33]) {
            let parts = [Span::Request, Span::Hardware, Span::Confirm, Span::Sdmac];
            for (id, span) in (first..).zip(parts) {
                self.describe(&format!("0-{id}"), "", sets.acked.of(span), 0.0, DAY);
            }
        }
        for (sum, id) in measured
            .computed_iv()
            .iter()
            .zip(["0-24", "0-28", "0-32", "0-36"])
        {
            if let Some(c) = sum {
                self.compute_sum(id, "", c.means.total_ns(), c.total.as_ref(), 0.0);
            }
        }
        let get = |id: &str, name: &str| self.get(id, name);
        let less = |a: &str, b: &str, name: &str| Some(get(a, name)? - get(b, name)?);
        let over = |a: Option<Estimate>, b: Option<Estimate>| Some(a?.over(b?));
        let (idle, io, best_idle, best_io) = ("0-24", "0-28", "0-32", "0-36");
        let mut found = vec![
            ("0-37", "increase".to_string(), less(io, idle, "mean")),
            (
                "0-38",
                "ratio".to_string(),
                over(get(io, "p99.99"), get(io, "mean")),
            ),
            (
                "0-39",
                "ratio".to_string(),
                over(get(idle, "sd"), get(best_idle, "sd")),
            ),
            (
                "0-70",
                "con_over_hw".to_string(),
                over(get("0-23", "mean"), get("0-22", "mean")),
            ),
            (
                "0-70",
                "hw_over_req".to_string(),
                over(get("0-22", "mean"), get("0-21", "mean")),
            ),
        ];
        for name in ["mean", "min", "p99.99"] {
            found.push(("0-75", format!("{name}_idle"), less(idle, best_idle, name)));
            found.push(("0-75", format!("{name}_io"), less(io, best_io, name)));
        }
        for (id, name, value) in found {
            self.put(id, &name, value);
        }
    }

    /// Rows 0-41 to 0-53, 0-56, 0-57, 0-69 and 0-71. A is from the seven days; L_D and L_A are from the beds in which
    /// every data frame, and every ACK, is lost.
    fn table_v(&mut self, measured: &Measured) {
        let sets = [
            ("a.", &measured.week().acked, air_ns(true, 50), WEEK),
            (
                "ld.",
                &measured.data_lost().data_lost,
                air_ns(false, 50),
                DATA_LOST,
            ),
            ("la.", &measured.ack_lost().ack_lost, air_ns(false, 50), ACK_LOST),
        ];
        let rows = [
            ("0-41", Span::RequestApi, false),
            ("0-42", Span::RequestIndependent, false),
            ("0-43", Span::RequestDependent, false),
            ("0-44", Span::Request, false),
            ("0-45", Span::Hardware, false),
            ("0-46", Span::Hardware, true),
            ("0-47", Span::Isr, false),
            ("0-48", Span::ConfirmDependent, false),
            ("0-49", Span::ConfirmIndependent, false),
            ("0-50", Span::ConfirmApi, false),
            ("0-51", Span::Confirm, false),
            ("0-52", Span::Sdmac, false),
            ("0-53", Span::Sdmac, true),
        ];
        for (id, span, with_air) in rows {
            for (prefix, set, air_ns, like) in sets {
                let plus_us = if with_air { air_ns as f64 / 1e3 } else { 0.0 };
                self.describe(id, prefix, set.of(span), plus_us, like);
            }
        }
        for (c, (prefix, acked)) in measured
            .computed_v()
            .into_iter()
            .zip([("a.", true), ("ld.", false)])
        {
            let Some(c) = c else { continue };
            let (means, air_us) = (c.means, air_ns(acked, 50) as f64 / 1e3);
            if acked {
                self.compute_sum("0-44", prefix, means.request_ns, Some(&c.request), 0.0);
            }
            self.compute_sum("0-46", prefix, means.hardware_ns, None, air_us);
            self.compute_sum("0-51", prefix, means.confirm_ns, Some(&c.confirm), 0.0);
            self.compute_sum("0-52", prefix, means.total_ns(), c.total.as_ref(), 0.0);
            self.compute_sum("0-53", prefix, means.total_ns(), c.total.as_ref(), air_us);
        }
        // T_path less the time on the air
        let air_us = air_ns(true, 50) as f64 / 1e3;
        let path = self.get("0-53", "a.p99.99");
        self.put("0-56", "p99.99", path.map(|t| t + -air_us));
        for name in ["min", "p99.99", "max"] {
            self.put("0-57", name, self.get("0-52", &format!("a.{name}")));
        }
        self.put("0-69", "acked", self.get("0-52", "a.mean"));
        self.put("0-69", "failed", self.get("0-52", "ld.mean"));
        self.put("0-71", "mean", self.get("0-50", "a.mean"));
    }

    /// Rows 0-58 to 0-63 and 0-72: what an exchange without ACK changes.
    fn failures(&mut self, measured: &Measured) {
        let difference = |values: &Values, id: &str, name: &str| {
            let of = |set: &str| values.get(id, &format!("{set}.{name}"));
            Some(of("a")? - of("ld")?)
        };
        self.put("0-58", "difference", difference(self, "0-46", "mean"));
        let air = Some(self.get("0-8", "t_toa"))
            .flatten()
            .zip(self.get("0-9", "t_toa_timeout"));
        self.put("0-58", "air", air.map(|(a, b)| a - b));
        self.put("0-59", "difference", difference(self, "0-46", "p99"));
        self.put("0-60", "difference", difference(self, "0-45", "mean"));
        self.put("0-61", "difference", difference(self, "0-53", "mean"));
        self.put("0-62", "difference", difference(self, "0-48", "mean"));
        let lost = &measured.ack_lost().ack_lost;
        let hardware = lost.of(Span::Hardware);
        let [fast, slow] = hardware.split(BETWEEN_MODES_NS);
        self.put("0-63", "fast_mode", fast.quantile(0.5));
        self.put("0-63", "slow_mode", slow.quantile(0.5));
        let share = hardware.share_above(BETWEEN_MODES_NS).map(|s| s.times(100.0));
        self.put("0-63", "slow_share", share);
        self.put("0-72", "la_knee", share);
        let requests =
            [&measured.week().acked, &measured.data_lost().data_lost, lost].map(|set| set.of(Span::Request));
        let distances = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| requests[a].distance(requests[b]));
        let largest = distances
            .into_iter()
            .flatten()
            .max_by(|a, b| a.value.total_cmp(&b.value));
        self.put("0-72", "request_distance", largest);
    }

    /// Rows 0-54 and 0-55: the slope by least squares well below the knee; the knee is where that line meets the
    /// level well above it.
    fn payload(&mut self, measured: &Measured) {
        let mean = |sets: &Sets| sets.acked.of(Span::Sdmac).mean();
        let means: Option<Vec<(f64, Estimate)>> = measured
            .by_payload()
            .map(|(octets, sets)| Some((f64::from(octets), mean(sets)?)))
            .collect();
        let Some(means) = means else { return };
        let between = |low: f64, high: f64| means.iter().filter(move |m| (low..=high).contains(&m.0));
        let rising: Vec<_> = between(50.0, 350.0).collect();
        let flat: Vec<_> = between(750.0, 1500.0).map(|m| m.1).collect();
        let n = rising.len() as f64;
        let x = rising.iter().map(|m| m.0).sum::<f64>() / n;
        let y = rising.iter().map(|m| m.1.value).sum::<f64>() / n;
        let spread: f64 = rising.iter().map(|m| (m.0 - x).powi(2)).sum();
        let slope = rising.iter().map(|m| (m.0 - x) * (m.1.value - y)).sum::<f64>() / spread;
        let standard_error = |e: &Estimate| (e.high - e.low) / (2.0 * ERRORS);
        let noise = rising.iter().map(|m| standard_error(&m.1)).fold(0.0, f64::max);
        let slope = Estimate::with_error(slope, noise / spread.sqrt());
        let level = flat.iter().map(|e| e.value).sum::<f64>() / flat.len() as f64;
        let level = Estimate::with_error(level, noise / (flat.len() as f64).sqrt());
        let rise = level - Estimate::with_error(y, noise / n.sqrt());
        self.put("0-54", "slope", slope);
        self.put("0-54", "knee", rise.over(slope) + x);
        self.put("0-54", "growth", level - rising[0].1);
        let above: Vec<&Counts> = measured
            .by_payload()
            .filter(|(octets, _)| *octets > 500)
            .map(|(_, sets)| sets.acked.of(Span::Sdmac))
            .collect();
        let median = |of: &dyn Fn(&Counts) -> Option<Estimate>| {
            Estimate::median(above.iter().filter_map(|c| of(c)).collect())
        };
        self.put("0-55", "min", median(&|c| c.min(DAY / 24)));
        self.put("0-55", "p99.9", median(&|c| c.quantile(0.999)));
    }

    /// Row 0-73: the cost of an attempt, and of repeating in software.
    fn repeats(&mut self, measured: &Measured) {
        let difs = f64::from(Phy::A.difs_us());
        let attempt = |set: &str| self.get("0-53", &format!("{set}.mean")).map(|t| t + difs);
        let (acked, failed) = (attempt("a"), attempt("ld"));
        self.put("0-73", "attempt_acked", acked);
        self.put("0-73", "attempt_failed", failed);
        let ratio = |backoff| {
            let hz = |repeats| measured.acknowledged_hz(repeats, backoff);
            Some(Estimate::exact(hz(Repeats::Host)? / hz(Repeats::Adapter)?))
        };
        self.put("0-73", "throughput_ratio", ratio(true));
        self.put("0-73", "without_backoff", ratio(false));
    }
}
