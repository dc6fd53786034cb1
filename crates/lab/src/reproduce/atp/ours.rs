//! The variant `sdmac-atp` beside the transports of the thesis.

use super::plan::Measured;
use super::values::{average, unfairness_of};
use super::{Bed, LOSS, Outcome, Scene, THESIS, What};
use crate::mesh::Kind::{self, Sdmac};
use crate::mesh::metrics::unfairness;
use crate::report::html::{Align, Table};
use crate::reproduce::estimate::Estimate;
use crate::reproduce::values::Values;
use protocols::mac::sender::DEFAULT_TRIES;

/// It must not be worse than this share of the best other one.
pub const ENOUGH: f64 = 0.95;

/// One setting with one number of hops.
#[derive(Clone, PartialEq, Debug)]
pub struct Beside {
    /// What was run.
    pub setting: String,
    /// The setting as the rows of our aims have it, which take all numbers of random flows together.
    pub judged_as: String,
    /// Hops of each flow; `None` where each has its own way.
    pub hops: Option<u32>,
    /// Goodput over that of the best other transport.
    pub goodput: f64,
    /// Unfairness index: ours. 0 of one flow.
    pub unfairness: f64,
    /// That of the fairest other, which may be the slowest.
    pub fairest: f64,
    /// That of the other with the most goodput.
    pub of_best: f64,
}

impl Beside {
    /// Not worse by more than 5 %, and no less fair.
    pub fn reached(&self) -> bool {
        self.goodput >= ENOUGH && self.unfairness <= self.fairest
    }
}

/// What one number of hops, or one scene, says.
fn point(setting: &str, hops: Option<u32>, of: impl Fn(Kind) -> Option<(f64, f64)>) -> Option<Beside> {
    let others: Vec<_> = THESIS.into_iter().filter_map(&of).collect();
    let best = others
        .iter()
        .copied()
        .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    let fairest = others.iter().map(|o| o.1).reduce(f64::min)?;
    let (goodput, unfairness) = of(Sdmac)?;
    Some(Beside {
        setting: setting.into(),
        judged_as: setting.into(),
        hops,
        goodput: goodput / best.0,
        unfairness,
        fairest,
        of_best: best.1,
    })
}

/// What a scene is called, and as what it is judged.
fn names(what: What, tries: u8) -> (String, String) {
    let (name, number) = match what {
        What::Stack => ("stack", String::new()),
        What::Files(flows) => ("random files", format!(" {flows}")),
        What::Streams(flows) => ("random streams", format!(" {flows}")),
        What::Idle => ("idle", String::new()),
    };
    let how = if tries == 1 { "" } else { ", 7 tries" };
    (format!("{name}{number}{how}"), format!("{name}{how}"))
}

/// All settings that were run, each with all its numbers of hops.
pub fn beside(m: &Measured) -> Vec<Beside> {
    let beds = [
        (Bed::A(LOSS), "A"),
        (Bed::B, "B"),
        (Bed::RetryingA, "A, 7 tries"),
        (Bed::RetryingB, "B, 7 tries"),
    ];
    let mut all = Vec::new();
    for (bed, name) in beds {
        for flows in [1, 2, 5] {
            let setting = format!("{name}: flows {flows}");
            let of = |hops: u32| {
                point(&setting, Some(hops), |kind| {
                    Some((
                        m.mean_kbps(bed, hops, flows, kind)?,
                        unfairness_of(m, bed, hops, flows, kind)?,
                    ))
                })
            };
            all.extend(m.hops(bed, flows).into_iter().filter_map(of));
        }
    }
    for tries in [1, DEFAULT_TRIES] {
        let mut add = |what: What| {
            let of = |kind| {
                let runs = m.outcomes(Scene { what, tries, kind });
                let mean = |f: fn(&Outcome) -> f64| average(runs.iter().map(|o| f(o)));
                Some((mean(Outcome::total_kbps)?, mean(|o| unfairness(&o.kbps))?))
            };
            let (setting, judged_as) = names(what, tries);
            let point = point(&setting, None, of);
            all.extend(point.map(|point| Beside { judged_as, ..point }));
        };
        add(What::Stack);
        for flows in [1, 2, 4, 8, 16, 32] {
            add(What::Files(flows));
            add(What::Streams(flows));
        }
    }
    all
}

impl Values {
    /// The rows of our aims: the worst point of each setting, and the share of points that reach both.
    pub(super) fn aims(&mut self, m: &Measured) {
        let points = beside(m);
        for p in &points {
            let all = points.iter().filter(|other| other.judged_as == p.judged_as);
            let goodput = all.clone().map(|p| p.goodput).reduce(f64::min);
            let unfairness = all.map(|p| p.unfairness - p.fairest).reduce(f64::max);
            self.put("ours-1", &p.judged_as, goodput.map(Estimate::exact));
            self.put("ours-2", &p.judged_as, unfairness.map(Estimate::exact));
        }
        let reached = points.iter().map(|p| f64::from(p.reached()) * 100.0);
        self.put("ours-3", "reached", average(reached).map(Estimate::exact));
    }
}

/// As a table of the page.
pub(super) fn table(lines: &[Beside]) -> Table {
    let columns = [
        ("setting", Align::Left),
        ("hops", Align::Right),
        ("goodput over the best other", Align::Right),
        ("unfairness", Align::Right),
        ("of the fairest other", Align::Right),
        ("of the best other", Align::Right),
        ("aim", Align::Left),
    ];
    let reached = lines.iter().filter(|l| l.reached()).count();
    let caption = format!(
        "sdmac-atp beside the transports of the thesis. Its aim, at least {ENOUGH} of the goodput of the best other and no less fair \
         than the fairest, is reached in {reached} of {} rows.",
        lines.len()
    );
    let table = Table::new(columns).caption(caption);
    lines.iter().fold(table, |table, l| {
        table.row([
            l.setting.clone(),
            l.hops.map_or_else(String::new, |hops| hops.to_string()),
            format!("{:.2}", l.goodput),
            format!("{:.3}", l.unfairness),
            format!("{:.3}", l.fairest),
            format!("{:.3}", l.of_best),
            if l.reached() { "reached" } else { "missed" }.into(),
        ])
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_best_and_the_fairest_need_not_be_the_same() {
        let of = |goodput, unfairness| {
            move |kind| match kind {
                Kind::Tahoe => Some((100.0, 0.4)),
                Kind::Default => Some((80.0, 0.1)),
                Sdmac => Some((goodput, unfairness)),
                _ => None,
            }
        };
        let p = point("x", Some(3), of(96.0, 0.2)).unwrap();
        assert_eq!(
            (p.hops, p.goodput, p.unfairness, p.fairest, p.of_best),
            (Some(3), 0.96, 0.2, 0.1, 0.4)
        );
        assert!(!p.reached(), "less fair than the fairest");
        assert!(!point("x", Some(3), of(94.0, 0.0)).unwrap().reached());
        assert!(point("x", Some(3), of(95.0, 0.1)).unwrap().reached());
        assert_eq!(point("x", None, |_| None), None);
    }
    /// Every value of the rows can be had, whatever is run of random flows.
    #[test]
    fn each_setting_has_its_value() {
        let scenes = [What::Stack, What::Files(8), What::Streams(32)];
        let of = |tries| scenes.map(|what| names(what, tries).1);
        let judged_as = [1, DEFAULT_TRIES].into_iter().flat_map(of);
        let beds = ["A", "B", "A, 7 tries", "B, 7 tries"];
        let chains = beds
            .iter()
            .flat_map(|bed| [1, 2, 5].map(|n| format!("{bed}: flows {n}")));
        let named: BTreeSet<String> = judged_as.chain(chains).collect();
        let aims = crate::reproduce::atp::aims();
        let stated: BTreeSet<String> = aims[0].values.iter().map(|v| v.name.clone()).collect();
        assert_eq!(stated, named);
        // one flow alone is fair
        let fair = aims[1]
            .values
            .iter()
            .all(|v| named.contains(&v.name) && !v.name.contains("flows 1"));
        assert!(fair && aims[1].values.len() == stated.len() - 4);
    }
}
