//! Confidence intervals and safety margins: the paper's own arithmetic, and what its margin is worth.

use super::super::bed::Span;
use super::super::claims::Claim;
use super::super::estimate::{ERRORS, Estimate};
use super::super::plan::Measured;
use super::Values;

impl Values {
    /// Rows 0-64, 0-65 and 0-67: the paper's arithmetic on its own numbers.
    pub(super) fn arithmetic(&mut self, claims: &[Claim]) {
        let paper = |id: &str, name: &str| -> Option<f64> {
            let claim = claims.iter().find(|c| c.id == id)?;
            claim.values.iter().find(|v| v.name == name)?.paper
        };
        let exact = |x: Option<f64>| x.map(Estimate::exact);
        for set in ["a", "ld", "la"] {
            let (sd, n) = (paper("0-52", &format!("{set}.sd")), paper("0-13", set));
            let half = sd.zip(n).map(|(sd, n)| 1.96 * sd / n.sqrt());
            self.put("0-64", set, exact(half));
        }
        let bound = |name: &str| Some(paper("0-44", name)? + paper("0-45", name)?);
        let jitter = bound("a.p99.9").zip(bound("a.min")).map(|(high, low)| high - low);
        self.put("0-65", "margin", exact(jitter));
        let total = jitter.zip(paper("0-66", "p99.9")).map(|(j, s)| j + s);
        self.put("0-67", "margin", exact(total));
    }

    /// Rows 0-65 to 0-68: what the margin is worth.
    pub(super) fn guard(&mut self, measured: &Measured) {
        if let Some(sync) = &measured.sync {
            self.put("0-66", "p99.9", sync.interrupt.quantile(0.999));
            self.put("0-66", "application", sync.application.quantile(0.999));
        }
        let release = measured.week().acked.of(Span::Release);
        let Some(earliest) = release.min(release.count()) else {
            return;
        };
        let late = release.quantile(0.999).map(|p| p - earliest);
        self.put("0-65", "simulated", late);
        let Some(margin) = self.get("0-67", "margin") else {
            return;
        };
        let sync_us = margin - self.get("0-65", "margin").unwrap_or(margin);
        // a normal law of which 99.9 % lie within that
        let sigma = sync_us.value / ERRORS;
        let out = |ns: u64| {
            let left = margin.value - (ns as f64 / 1e3 - earliest.value);
            0.5 * libm::erfc(left / sigma / std::f64::consts::SQRT_2)
        };
        let n = release.count() as f64;
        let sum: f64 = release.iter().map(|(ns, k)| out(ns) * k as f64).sum();
        let squares: f64 = release.iter().map(|(ns, k)| out(ns).powi(2) * k as f64).sum();
        let p = sum / n;
        let error = ((squares / n - p * p).max(0.0) / n).sqrt();
        let p = Estimate::with_error(p, error);
        self.put(
            "0-68",
            "probability",
            Estimate {
                low: p.low.max(0.0),
                high: p.high.min(1.0),
                ..p
            },
        );
    }
}
