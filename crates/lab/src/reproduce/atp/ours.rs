//! The variant `sdmac-atp` beside the transports of the thesis.

use super::plan::Measured;
use super::values::{average, unfairness_of};
use super::{Bed, LOSS, Outcome, Scene, THESIS, What};
use crate::mesh::Kind::{self, Sdmac};
use crate::mesh::metrics::unfairness;
use crate::report::html::{Align, Table};
use protocols::mac::sender::DEFAULT_TRIES;

/// It must not be worse than this share of the best other one.
pub const ENOUGH: f64 = 0.95;

/// One setting with one number of hops.
#[derive(Clone, PartialEq, Debug)]
pub struct Beside {
    /// What was run.
    pub setting: String,
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
        hops,
        goodput: goodput / best.0,
        unfairness,
        fairest,
        of_best: best.1,
    })
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
    for (tries, how) in [(1, ""), (DEFAULT_TRIES, ", 7 tries")] {
        let mut add = |name: String, what: What| {
            let of = |kind| {
                let runs = m.outcomes(Scene { what, tries, kind });
                let mean = |f: fn(&Outcome) -> f64| average(runs.iter().map(|o| f(o)));
                Some((mean(Outcome::total_kbps)?, mean(|o| unfairness(&o.kbps))?))
            };
            all.extend(point(&format!("{name}{how}"), None, of));
        };
        add("stack".into(), What::Stack);
        for flows in [1, 2, 4, 8, 16, 32] {
            add(format!("random files {flows}"), What::Files(flows));
            add(format!("random streams {flows}"), What::Streams(flows));
        }
    }
    all
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
}
