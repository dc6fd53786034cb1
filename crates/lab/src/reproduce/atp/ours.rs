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

/// One setting, over its numbers of hops.
#[derive(Clone, PartialEq, Debug)]
pub struct Beside {
    /// What was run.
    pub setting: String,
    /// Goodput over that of the best other transport, mean over the numbers of hops.
    pub goodput: f64,
    /// The least of these.
    pub worst: f64,
    /// Unfairness index: ours.
    pub unfairness: f64,
    /// That of the fairest other, which may be the slowest.
    pub fairest: f64,
    /// That of the other with the most goodput.
    pub of_best: f64,
}

impl Beside {
    /// Nowhere worse by more than 5 %, and no less fair.
    pub fn reached(&self) -> bool {
        self.worst >= ENOUGH && self.unfairness <= self.fairest
    }
}

/// What one number of hops, or one scene, says: goodput ratio, unfairness of ours, of the fairest other, and of the
/// fastest.
fn point(of: impl Fn(Kind) -> Option<(f64, f64)>) -> Option<[f64; 4]> {
    let others: Vec<_> = THESIS.into_iter().filter_map(&of).collect();
    let best = others
        .iter()
        .copied()
        .reduce(|a, b| if b.0 > a.0 { b } else { a })?;
    let fairest = others.iter().map(|o| o.1).reduce(f64::min)?;
    let (goodput, unfairness) = of(Sdmac)?;
    Some([goodput / best.0, unfairness, fairest, best.1])
}

fn over(setting: String, points: &[[f64; 4]]) -> Option<Beside> {
    let mean = |n: usize| average(points.iter().map(|p| p[n]));
    Some(Beside {
        setting,
        goodput: mean(0)?,
        worst: points.iter().map(|p| p[0]).reduce(f64::min)?,
        unfairness: mean(1)?,
        fairest: mean(2)?,
        of_best: mean(3)?,
    })
}

/// All settings that were run.
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
            let of = |h: u32| {
                point(|kind| {
                    Some((
                        m.mean_kbps(bed, h, flows, kind)?,
                        unfairness_of(m, bed, h, flows, kind)?,
                    ))
                })
            };
            let points: Vec<_> = m.hops(bed, flows).into_iter().filter_map(of).collect();
            all.extend(over(format!("{name}: flows {flows}"), &points));
        }
    }
    for (tries, how) in [(1, ""), (DEFAULT_TRIES, ", 7 tries")] {
        let mut add = |name: String, what: What| {
            let of = |kind| {
                let runs = m.outcomes(Scene { what, tries, kind });
                let mean = |f: fn(&Outcome) -> f64| average(runs.iter().map(|o| f(o)));
                Some((mean(Outcome::total_kbps)?, mean(|o| unfairness(&o.kbps))?))
            };
            let points: Vec<_> = point(of).into_iter().collect();
            all.extend(over(format!("{name}{how}"), &points));
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
        ("goodput over the best other", Align::Right),
        ("least of it", Align::Right),
        ("unfairness", Align::Right),
        ("of the fairest other", Align::Right),
        ("of the best other", Align::Right),
        ("aim", Align::Left),
    ];
    let table = Table::new(columns).caption("sdmac-atp beside the transports of the thesis.");
    lines.iter().fold(table, |table, l| {
        let number = |x: f64| format!("{x:.2}");
        table.row([
            l.setting.clone(),
            number(l.goodput),
            number(l.worst),
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
        let of = |kind| match kind {
            Kind::Tahoe => Some((100.0, 0.4)),
            Kind::Default => Some((80.0, 0.1)),
            Sdmac => Some((96.0, 0.2)),
            _ => None,
        };
        let p = point(of).unwrap();
        assert_eq!(p, [0.96, 0.2, 0.1, 0.4]);
        let line = over("x".into(), &[p, [0.9, 0.0, 0.1, 0.2]]).unwrap();
        assert!((line.goodput - 0.93).abs() < 1e-9 && line.worst == 0.9);
        assert!(!line.reached() && line.unfairness <= line.fairest);
        assert!(over("x".into(), &[[0.95, 0.1, 0.1, 0.3]]).unwrap().reached());
        assert!(over("x".into(), &[]).is_none());
    }
}
