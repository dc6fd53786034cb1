//! Our values for the rows of sections 5.4 and 5.5.

use super::THESIS;
use super::field::{Outcome, Scene, What};
use super::plan::Measured;
use super::teeth::Teeth;
use super::values::{average, mean, percent};
use crate::mesh::Kind::{self, Adaptive, Aggressive, Default, Lenient, Tahoe};
use crate::reproduce::estimate::Estimate;
use crate::reproduce::values::Values;
use protocols::mac::sender::DEFAULT_TRIES;

const FLOWS: [&str; 3] = ["flow 1", "flow 2", "flow 3"];

/// The runs with adapters that try so often, and what their values are called besides.
struct View<'m> {
    measured: &'m Measured,
    tries: u8,
    how: &'static str,
}

impl View<'_> {
    /// As the thesis says, and with seven tries.
    fn both(measured: &Measured) -> [View<'_>; 2] {
        [(1, ""), (DEFAULT_TRIES, ", 7 tries")].map(|(tries, how)| View { measured, tries, how })
    }

    fn outcomes(&self, what: What, kind: Kind) -> Vec<&Outcome> {
        let tries = self.tries;
        self.measured.outcomes(Scene { what, tries, kind })
    }

    fn name(&self, name: &str) -> String {
        format!("{name}{}", self.how)
    }

    /// The mean over the runs of a scene.
    fn over_runs(&self, what: What, kind: Kind, of: impl Fn(&Outcome) -> f64) -> Option<Estimate> {
        let values: Vec<f64> = self.outcomes(what, kind).into_iter().map(of).collect();
        mean(&values)
    }

    /// The share of runs, of those that all transports have done, in which something is so, in per cent.
    fn share(&self, what: What, is_so: impl Fn(&[&Outcome; 4]) -> bool) -> Option<Estimate> {
        let runs = THESIS.map(|kind| self.outcomes(what, kind));
        let seeds = runs.iter().map(Vec::len).min().unwrap_or(0);
        let of = |n: usize| f64::from(is_so(&[0, 1, 2, 3].map(|k| runs[k][n])));
        average((0..seeds).map(of)).map(|share| Estimate::exact(share * 100.0))
    }

    /// How much more of the total one transport has than another, in per cent, over numbers of flows.
    fn total_gain(&self, scenes: &[What], one: Kind, other: Kind) -> Option<Estimate> {
        let gain = |what: &What| {
            let of = |kind| average(self.outcomes(*what, kind).into_iter().map(Outcome::total_kbps));
            Some(percent(of(one)? / of(other)?))
        };
        average(scenes.iter().filter_map(gain)).map(Estimate::exact)
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
        for v in View::both(m) {
            let mut put = |id: &str, name: &str, value| self.put(id, &v.name(name), value);
            for (n, name) in FLOWS.into_iter().enumerate() {
                let windows = |o: &Outcome| o.starved_windows[n] * 100.0;
                put("1-37", name, v.over_runs(What::Stack, Tahoe, windows));
            }
            let middle = |o: &Outcome| o.kbps[2] / ((o.kbps[0] + o.kbps[1]) / 2.0);
            put("1-38", "middle", v.over_runs(What::Stack, Default, middle));
            for (id, kind) in [
                ("1-39", Tahoe),
                ("1-40", Default),
                ("1-41", Aggressive),
                ("1-42", Adaptive),
            ] {
                for (n, name) in FLOWS.into_iter().enumerate() {
                    put(id, name, v.over_runs(What::Stack, kind, |o| o.kbps[n]));
                }
                put(id, "middle over outer", v.over_runs(What::Stack, kind, middle));
                let second = |o: &Outcome| o.kbps[1] / o.kbps[0];
                put(id, "flow 2 over flow 1", v.over_runs(What::Stack, kind, second));
                put(id, "total", v.over_runs(What::Stack, kind, Outcome::total_kbps));
            }
            self.saw_tooth(&v);
            let mut put = |id: &str, name: &str, value| self.put(id, &v.name(name), value);
            let total = |o: &[&Outcome; 4]| {
                let t = o.map(Outcome::total_kbps);
                t[3] >= t[1] && t[1] > t[2] && t[2] > t[0]
            };
            put("1-44", "totals in order", v.share(What::Stack, total));
            let best = |o: &[&Outcome; 4]| {
                let u = o.map(Outcome::utility);
                u[..3].iter().all(|other| u[3] >= *other)
            };
            let best = v.share(What::Stack, best);
            put("1-44", "adaptive has the best utility", best);
        }
    }

    /// Section 5.4: the rates of default ATP in the stack, and what they were without a penalty for missed feedback.
    fn saw_tooth(&mut self, v: &View<'_>) {
        let mut put = |name: &str, value| self.put("1-45", &v.name(name), value);
        let over_falls = |of: fn(&Teeth) -> u64| {
            let run = |o: &Outcome| {
                let sum = |of: fn(&Teeth) -> u64| o.teeth.iter().map(of).sum::<u64>() as f64;
                let falls = sum(Teeth::falls);
                (falls > 0.0).then(|| sum(of) / falls)
            };
            let runs = v.outcomes(What::Stack, Default).into_iter();
            mean(&runs.filter_map(run).collect::<Vec<_>>())
        };
        put(
            "at a miss",
            over_falls(|t| t.missed).map(|share| share.times(100.0)),
        );
        put("rises", over_falls(|t| t.rises));
        let with_over_without = |of: fn(&Teeth) -> f64| {
            let mean = |kind| {
                let runs = v.outcomes(What::Stack, kind).into_iter();
                average(runs.flat_map(|o| &o.teeth).map(of))
            };
            let ratio = mean(Default)? / mean(Lenient)?;
            Some(Estimate::exact(ratio)).filter(|_| ratio.is_finite())
        };
        put("falls", with_over_without(|t| t.falls() as f64));
        put("variation", with_over_without(|t| t.variation));
    }

    /// Section 5.5: flows between random nodes.
    pub(super) fn random_flows(&mut self, m: &Measured) {
        for v in View::both(m) {
            self.files(&v);
            self.streams(&v);
        }
        let idle = Scene {
            what: What::Idle,
            tries: 1,
            kind: Default,
        };
        let withdrawn: Vec<f64> = m.outcomes(idle).iter().map(|o| o.withdrawn as f64).collect();
        self.put("1-52", "idle", mean(&withdrawn));
    }

    fn files(&mut self, v: &View<'_>) {
        let mut put = |id: &str, name: &str, value| self.put(id, &v.name(name), value);
        let starved = |flows: u32, kind| v.over_runs(What::Files(flows), kind, |o| o.starved() * 100.0);
        put("1-46", "tahoe", starved(32, Tahoe));
        for kind in [Default, Aggressive, Adaptive] {
            put("1-47", kind.word(), starved(32, kind));
            let few = [1, 2, 4, 8].map(|n| starved(n, kind).map(|e| e.value));
            let few = average(few.into_iter().flatten());
            put("1-48", kind.word(), few.map(Estimate::exact));
        }
        for kind in [Default, Aggressive] {
            let pair = starved(32, Adaptive).zip(starved(32, kind));
            let less = pair.map(|(adaptive, other)| adaptive - other);
            put("1-47", &format!("adaptive less {}", kind.word()), less);
        }
        let several = [2, 4, 8, 16, 32].map(What::Files);
        for kind in [Default, Aggressive, Adaptive] {
            let gain = v.total_gain(&several, Tahoe, kind);
            put("1-49", &format!("goodput over {}", kind.word()), gain);
            let gain = v.utility_gain(&several, Tahoe, kind);
            put("1-49", &format!("utility over {}", kind.word()), gain);
        }
        let zero = v.over_runs(What::Files(32), Tahoe, Outcome::utility);
        put("1-49", "utility of tahoe, 32 flows", zero);
        for kind in [Default, Aggressive] {
            let gain = v.total_gain(&several, Adaptive, kind);
            put("1-50", &format!("goodput over {}", kind.word()), gain);
            let gain = v.utility_gain(&several, Adaptive, kind);
            put("1-50", &format!("utility over {}", kind.word()), gain);
        }
    }

    fn streams(&mut self, v: &View<'_>) {
        let mut put = |id: &str, name: &str, value| self.put(id, &v.name(name), value);
        let streams = [2, 4, 8, 16, 32].map(What::Streams);
        for kind in [Aggressive, Adaptive] {
            let gain = v.total_gain(&streams, Default, kind);
            put("1-51", &format!("goodput of default over {}", kind.word()), gain);
        }
        let many = v.utility_gain(&[What::Streams(32)], Adaptive, Default);
        put("1-51", "utility of adaptive over default, 32 flows", many);
        let withdrawn = |o: &Outcome| o.withdrawn as f64;
        let withdrawn = v.over_runs(What::Streams(32), Tahoe, withdrawn);
        put("1-52", "saturated", withdrawn);
    }
}
