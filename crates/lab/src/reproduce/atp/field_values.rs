//! Our values for the rows of sections 5.4 and 5.5.

use super::field::{Outcome, What};
use super::plan::Measured;
use super::values::{average, mean, percent};
use crate::mesh::Kind::{self, Adaptive, Aggressive, Default, Tahoe};
use crate::reproduce::estimate::Estimate;
use crate::reproduce::values::Values;

const ALL: [Kind; 4] = [Tahoe, Default, Aggressive, Adaptive];

impl Measured {
    /// The mean over the runs of a scene.
    fn over_runs(&self, what: What, kind: Kind, of: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
        let values: Vec<f64> = self.outcomes(what, kind).into_iter().map(of).collect();
        mean(&values)
    }

    /// The share of runs, of those that all transports have done, in which something is so, in per cent.
    fn share(&self, what: What, is_so: impl Fn(&[&Outcome; 4]) -> bool) -> Option<Estimate> {
        let runs = ALL.map(|kind| self.outcomes(what, kind));
        let seeds = runs.iter().map(Vec::len).min().unwrap_or(0);
        let of = |n: usize| f64::from(is_so(&[0, 1, 2, 3].map(|k| runs[k][n])));
        average((0..seeds).map(of)).map(|share| Estimate::exact(share * 100.0))
    }

    /// How much more of something one transport has than another, in per cent, over numbers of flows.
    fn field_gain(
        &self,
        scenes: &[What],
        one: Kind,
        other: Kind,
        of: impl Fn(&Outcome) -> f64 + Copy,
    ) -> Option<Estimate> {
        let gain = |what: &What| {
            let of = |kind| average(self.outcomes(*what, kind).into_iter().map(of));
            Some(percent(of(one)? / of(other)?))
        };
        let gains = scenes.iter().filter_map(gain);
        average(gains).map(Estimate::exact)
    }

    /// The difference of the utilities, mean over numbers of flows.
    fn utility_gain(&self, scenes: &[What], one: Kind, other: Kind) -> Option<Estimate> {
        let gain = |what: &What| {
            let of = |kind| average(self.outcomes(*what, kind).into_iter().map(Outcome::utility));
            Some(of(one)? - of(other)?)
        };
        average(scenes.iter().filter_map(gain)).map(Estimate::exact)
    }
}

impl Values {
    /// Section 5.4: three flows side by side; the third is in the middle.
    pub(super) fn stack(&mut self, m: &Measured) {
        let windows = |n: usize| m.over_runs(What::Stack, Tahoe, |o| o.starved_windows[n] * 100.0);
        for (n, name) in ["flow 1", "flow 2", "flow 3"].into_iter().enumerate() {
            self.put("1-37", name, windows(n));
        }
        let middle = |o: &Outcome| o.kbps[2] / ((o.kbps[0] + o.kbps[1]) / 2.0);
        self.put("1-38", "middle", m.over_runs(What::Stack, Default, middle));
        for (id, kind) in [
            ("1-39", Tahoe),
            ("1-40", Default),
            ("1-41", Aggressive),
            ("1-42", Adaptive),
        ] {
            for (n, name) in ["flow 1", "flow 2", "flow 3"].into_iter().enumerate() {
                self.put(id, name, m.over_runs(What::Stack, kind, |o| o.kbps[n]));
            }
            self.put(id, "middle over outer", m.over_runs(What::Stack, kind, middle));
        }
        let total = |o: &[&Outcome; 4]| {
            let t = o.map(Outcome::total_kbps);
            t[3] >= t[1] && t[1] > t[2] && t[2] > t[0]
        };
        self.put("1-44", "totals in order", m.share(What::Stack, total));
        let best = |o: &[&Outcome; 4]| {
            let u = o.map(Outcome::utility);
            u[..3].iter().all(|other| u[3] >= *other)
        };
        self.put(
            "1-44",
            "adaptive has the best utility",
            m.share(What::Stack, best),
        );
    }

    /// Section 5.5: flows between random nodes.
    pub(super) fn random_flows(&mut self, m: &Measured) {
        let starved = |flows: u32, kind| m.over_runs(What::Files(flows), kind, |o| o.starved() * 100.0);
        self.put("1-46", "tahoe", starved(32, Tahoe));
        for kind in [Default, Aggressive, Adaptive] {
            self.put("1-47", kind.word(), starved(32, kind));
            let few = [1, 2, 4, 8].map(|n| starved(n, kind).map(|e| e.value));
            let few = average(few.into_iter().flatten());
            self.put("1-48", kind.word(), few.map(Estimate::exact));
        }
        let several = [2, 4, 8, 16, 32].map(What::Files);
        let total = Outcome::total_kbps;
        for kind in [Default, Aggressive, Adaptive] {
            let gain = m.field_gain(&several, Tahoe, kind, total);
            self.put("1-49", &format!("goodput over {}", kind.word()), gain);
            let gain = m.utility_gain(&several, Tahoe, kind);
            self.put("1-49", &format!("utility over {}", kind.word()), gain);
        }
        let zero = m.over_runs(What::Files(32), Tahoe, Outcome::utility);
        self.put("1-49", "utility of tahoe, 32 flows", zero);
        for kind in [Default, Aggressive] {
            let gain = m.field_gain(&several, Adaptive, kind, total);
            self.put("1-50", &format!("goodput over {}", kind.word()), gain);
            let gain = m.utility_gain(&several, Adaptive, kind);
            self.put("1-50", &format!("utility over {}", kind.word()), gain);
        }
        let streams = [2, 4, 8, 16, 32].map(What::Streams);
        for kind in [Aggressive, Adaptive] {
            let gain = m.field_gain(&streams, Default, kind, total);
            self.put("1-51", &format!("goodput of default over {}", kind.word()), gain);
        }
        let many = m.utility_gain(&[What::Streams(32)], Adaptive, Default);
        self.put("1-51", "utility of adaptive over default, 32 flows", many);
        let withdrawn = |o: &Outcome| o.withdrawn as f64;
        self.put(
            "1-52",
            "saturated",
            m.over_runs(What::Streams(32), Tahoe, withdrawn),
        );
        self.put("1-52", "idle", m.over_runs(What::Idle, Default, withdrawn));
    }
}
