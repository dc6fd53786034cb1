//! The variant `sdmac-atp` beside the transports of the thesis.

use std::collections::BTreeMap;

use super::plan::Measured;
use super::room::room;
use super::summary::Summary;
use super::values::{average, mean};
use super::{Bed, Case, LOSS, Scene, THESIS, What};
use crate::mesh::Kind::{self, Sdmac, Unaided};
use crate::mesh::metrics::{unfairness, utility};
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
    /// Goodput over that of the best other transport. Its error is of the differences between runs on the same air.
    pub goodput: Estimate,
    /// Unfairness index: ours. 0 of one flow.
    pub unfairness: f64,
    /// That of the fairest other, which may be the slowest.
    pub fairest: f64,
    /// Ours less that of the fairest other, run by run.
    pub excess: Estimate,
    /// That of the other with the most goodput.
    pub of_best: f64,
    /// Geometric mean of the flows' goodputs over that of the other that has most of it, by the mean utility of the runs. The
    /// thesis judges goodput and fairness together by that utility, the sum of logarithms (section 5.4).
    pub utility: f64,
    /// What all flows together carried until the last of them was through, over the most of that of the others. Its error is of the differences, too.
    pub through: Estimate,
    /// The most that a mean goodput can be that is no less fair than the fairest other, over that of the best other, by what the path has carried of any of them, of one flow or of
    /// all together; `None` where each flow has its own way, or is alone. Below 0.95 the two aims contradict each other.
    pub room: Option<f64>,
    /// The others that reach what ours is to reach: they are the fairest, and within 5 % of the best.
    pub reached_by: Vec<Kind>,
}

/// Whether an aim is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// Not worse by more than 5 %, and no less fair.
    Reached,
    /// Not by these runs, but their number does not rule it out.
    Open,
    /// Ruled out.
    Missed,
}

impl Aim {
    fn word(self) -> &'static str {
        match self {
            Aim::Reached => "reached",
            Aim::Open => "open",
            Aim::Missed => "missed",
        }
    }
}

impl Beside {
    /// By the values, and where they miss by their intervals.
    pub fn aim(&self) -> Aim {
        let both = |goodput: f64, excess: f64| goodput >= ENOUGH && excess <= 0.0;
        match self {
            Beside { goodput, excess, .. } if both(goodput.value, excess.value) => Aim::Reached,
            Beside { goodput, excess, .. } if both(goodput.high, excess.low) => Aim::Open,
            _ => Aim::Missed,
        }
    }
}

/// What is compared of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Run {
    goodput: f64,
    /// Of all flows together until the last one is through, if their files are alike.
    through: f64,
    unfairness: f64,
    /// Utility over the number of flows.
    utility: f64,
}

impl Run {
    /// Of flows with these goodputs, in kb/s.
    fn of(kbps: &[f64]) -> Run {
        let flows = kbps.len().max(1) as f64;
        Run {
            goodput: kbps.iter().sum::<f64>() / flows,
            through: kbps.iter().copied().fold(f64::INFINITY, f64::min) * flows,
            unfairness: unfairness(kbps),
            utility: utility(kbps) / flows,
        }
    }
}

/// Those of a transport, by number.
type Runs = BTreeMap<u64, Run>;

/// Mean of something of some runs.
fn over_runs(runs: &Runs, of: fn(&Run) -> f64) -> Option<f64> {
    average(runs.values().map(of))
}

/// What one number of hops, or one scene, says of `ours`. `path`: so many flows share one, of which one alone has so much goodput at most, by any transport.
fn point(
    setting: &str,
    hops: Option<u32>,
    ours: Kind,
    path: Option<(u32, f64)>,
    of: impl Fn(Kind) -> Runs,
) -> Option<Beside> {
    let goodput = |runs: &Runs| over_runs(runs, |r| r.goodput);
    let unfairness = |runs: &Runs| over_runs(runs, |r| r.unfairness);
    let utility = |runs: &Runs| over_runs(runs, |r| r.utility);
    let others = THESIS.map(|kind| (kind, of(kind)));
    let (kinds, others): (Vec<Kind>, Vec<Runs>) =
        others.into_iter().filter(|(_, runs)| !runs.is_empty()).unzip();
    let by = |of: fn(&Run) -> f64| {
        move |a: &&Runs, b: &&Runs| {
            let mean = |runs: &Runs| over_runs(runs, of).unwrap_or(f64::NAN);
            mean(a).total_cmp(&mean(b))
        }
    };
    let best = others.iter().max_by(by(|r| r.goodput))?;
    let fairest = others.iter().min_by(by(|r| r.unfairness))?;
    let most_utility = others.iter().max_by(by(|r| r.utility))?;
    let ours = of(ours);
    // the runs of one number have the same seed
    let beside = |other: &Runs, difference: &dyn Fn(Run, Run) -> f64| {
        let both = ours.iter().filter_map(|(n, r)| Some((*r, *other.get(n)?)));
        mean(&both.map(|(a, b)| difference(a, b)).collect::<Vec<_>>())
    };
    let reaches = |other: &Runs| {
        let enough = goodput(other) >= goodput(best).map(|most| ENOUGH * most);
        enough && unfairness(other) <= unfairness(fairest)
    };
    // that of the ratio of two means
    let over = |other: &Runs, of: fn(&Run) -> f64| {
        let least = over_runs(other, of)?;
        let ratio = over_runs(&ours, of)? / least;
        let error = beside(other, &|a, b| (of(&a) - ratio * of(&b)) / least)?;
        Some(error + (ratio - error.value))
    };
    let first = others.iter().max_by(by(|r| r.through))?;
    let room_of = path.and_then(|(flows, alone)| {
        let through = others
            .iter()
            .chain([&ours])
            .filter_map(|runs| over_runs(runs, |r| r.through));
        let carried = through.fold(alone, f64::max);
        Some(room(flows, carried, unfairness(fairest)?) / goodput(best)?)
    });
    Some(Beside {
        setting: setting.into(),
        judged_as: setting.into(),
        hops,
        goodput: over(best, |r| r.goodput)?,
        unfairness: unfairness(&ours)?,
        fairest: unfairness(fairest)?,
        excess: beside(fairest, &|a, b| a.unfairness - b.unfairness)?,
        of_best: unfairness(best)?,
        utility: 10_f64.powf(utility(&ours)? - utility(most_utility)?),
        through: over(first, |r| r.through)?,
        room: room_of,
        reached_by: kinds
            .iter()
            .zip(&others)
            .filter(|(_, runs)| reaches(runs))
            .map(|(kind, _)| *kind)
            .collect(),
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

/// All settings that were run, each with all its numbers of hops: `ours` beside the transports of the thesis.
pub fn beside(m: &Measured, ours: Kind) -> Vec<Beside> {
    let beds = [
        (Bed::A(LOSS), "A"),
        (Bed::B, "B"),
        (Bed::RetryingA, "A, 7 tries"),
        (Bed::RetryingB, "B, 7 tries"),
        (Bed::CalibratedA, "A, calibrated"),
    ];
    let mut all = Vec::new();
    for (bed, name) in beds {
        for flows in [1, 2, 5] {
            let setting = format!("{name}: flows {flows}");
            let of = |hops: u32| {
                let case = |kind| Case {
                    bed,
                    hops,
                    flows,
                    kind,
                };
                let run = |s: &Summary| Run::of(&s.kbps);
                let runs = |case: Case| -> Runs {
                    let runs = (0..m.seeds()).filter_map(|n| Some((n, run(m.get(case, n)?))));
                    runs.collect()
                };
                let alone = |kind| {
                    let one = Case {
                        flows: 1,
                        ..case(kind)
                    };
                    over_runs(&runs(one), |r| r.goodput)
                };
                let alone = THESIS.into_iter().chain([ours]).filter_map(alone);
                let path = (flows > 1).then(|| (flows, alone.fold(0.0, f64::max)));
                point(&setting, Some(hops), ours, path, |kind| runs(case(kind)))
            };
            all.extend(m.hops(bed, flows).into_iter().filter_map(of));
        }
    }
    for tries in [1, DEFAULT_TRIES] {
        let mut add = |what: What| {
            let of = |kind| {
                let runs = m.runs_of(Scene { what, tries, kind });
                runs.map(|(n, outcome)| (n, Run::of(&outcome.kbps))).collect()
            };
            let (setting, judged_as) = names(what, tries);
            let point = point(&setting, None, ours, None, of);
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
        let points = beside(m, Sdmac);
        for p in &points {
            let all = || points.iter().filter(|other| other.judged_as == p.judged_as);
            let goodput = all().map(|p| p.goodput).reduce(|a, b| worst(a, b, f64::min));
            let excess = all().map(|p| p.excess).reduce(|a, b| worst(a, b, f64::max));
            self.put("ours-1", &p.judged_as, goodput);
            self.put("ours-2", &p.judged_as, excess);
            let through = all().map(|p| p.through).reduce(|a, b| worst(a, b, f64::min));
            // files of random flows take different ways, and streams have no end
            if p.hops.is_some() && !p.judged_as.ends_with("flows 1") {
                self.put("ours-4", &p.judged_as, through);
            }
        }
        self.put("ours-3", "reached", reached(&points));
        self.put("ours-3", "hops as in the thesis", reached(&beside(m, Unaided)));
    }
}

/// The share of points that reach both aims, %.
fn reached(points: &[Beside]) -> Option<Estimate> {
    let share = |of: &[Aim]| {
        let is = points.iter().map(|p| f64::from(of.contains(&p.aim())) * 100.0);
        average(is)
    };
    let (value, high) = share(&[Aim::Reached]).zip(share(&[Aim::Reached, Aim::Open]))?;
    Some(Estimate {
        value,
        low: value,
        high,
    })
}

/// The worse one of two values, with an interval that holds the worse one of the true ones.
fn worst(a: Estimate, b: Estimate, of: fn(f64, f64) -> f64) -> Estimate {
    Estimate {
        value: of(a.value, b.value),
        low: of(a.low, b.low),
        high: of(a.high, b.high),
    }
}

/// As a table of the page; `ours` is what is compared.
pub(super) fn table(lines: &[Beside], ours: &str) -> Table {
    let columns = [
        ("setting", Align::Left),
        ("hops", Align::Right),
        ("goodput over the best other", Align::Right),
        ("unfairness", Align::Right),
        ("of the fairest other", Align::Right),
        ("of the best other", Align::Right),
        ("geometric mean over the most of the others", Align::Right),
        ("room", Align::Right),
        ("aim", Align::Left),
    ];
    let count = |aim| lines.iter().filter(|l| l.aim() == aim).count();
    let without = lines
        .iter()
        .filter(|l| l.room.is_some_and(|room| room < ENOUGH))
        .count();
    let by = |kind: Kind| lines.iter().filter(|l| l.reached_by.contains(&kind)).count();
    let others: Vec<String> = THESIS.map(|kind| format!("{} {}", kind.word(), by(kind))).into();
    let caption = format!(
        "{ours} beside the transports of the thesis. Its aim, at least {ENOUGH} of the goodput of the best other and no less fair \
         than the fairest, is reached in {} of {} rows; in {} more it is not, but so few runs do not rule it out. In {} it cannot be: room is the most that the goodput can be over that of the best other, \
         if several flows over a chain are no less fair than the fairest other and together carry no more than any transport does there. Of the others, among themselves: {}.",
        count(Aim::Reached),
        lines.len(),
        count(Aim::Open),
        without,
        others.join(", ")
    );
    let table = Table::new(columns).caption(caption);
    lines.iter().fold(table, |table, l| {
        table.row([
            l.setting.clone(),
            l.hops.map_or_else(String::new, |hops| hops.to_string()),
            format!(
                "{:.2} ± {:.2}",
                l.goodput.value,
                (l.goodput.high - l.goodput.low) / 2.0
            ),
            format!("{:.3}", l.unfairness),
            format!("{:.3}", l.fairest),
            format!("{:.3}", l.of_best),
            format!("{:.2}", l.utility),
            l.room.map_or_else(String::new, |room| format!("{room:.2}")),
            l.aim().word().into(),
        ])
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::reproduce::estimate::ERRORS;

    /// Runs of a transport: with this goodput and unfairness on average, and so far from it by turns.
    fn runs(goodput: f64, unfairness: f64, off: f64) -> Runs {
        let run = |n| {
            let sign = if n % 2 == 0 { 1.0 } else { -1.0 };
            let run = Run {
                goodput: goodput + sign * off,
                through: 2.0 * goodput,
                unfairness: unfairness + sign * off / 1e3,
                utility: goodput.log10() - unfairness,
            };
            (n, run)
        };
        (0..10).map(run).collect()
    }

    #[test]
    fn the_best_and_the_fairest_need_not_be_the_same() {
        let of = |goodput, unfairness| {
            move |kind| match kind {
                Kind::Tahoe => runs(100.0, 0.4, 0.0),
                Kind::Default => runs(80.0, 0.1, 0.0),
                Sdmac => runs(goodput, unfairness, 0.0),
                _ => Runs::new(),
            }
        };
        let p = point("x", Some(3), Sdmac, None, of(96.0, 0.2)).unwrap();
        assert_eq!(p.hops, Some(3));
        let found = [
            p.goodput.value,
            p.unfairness,
            p.fairest,
            p.excess.value,
            p.of_best,
            p.utility,
            p.through.value,
        ];
        let utility = 96.0 / 80.0 * 10_f64.powf(0.1 - 0.2);
        for (found, expected) in found.into_iter().zip([0.96, 0.2, 0.1, 0.1, 0.4, utility, 0.96]) {
            assert!((found - expected).abs() < 1e-9, "{p:?}");
        }
        assert_eq!(p.aim(), Aim::Missed, "less fair than the fairest");
        assert_eq!(p.reached_by, [], "Tahoe is not fair, and Default not good");
        let aim = |goodput, unfairness| {
            point("x", Some(3), Sdmac, None, of(goodput, unfairness))
                .unwrap()
                .aim()
        };
        assert_eq!((aim(94.0, 0.0), aim(95.5, 0.1)), (Aim::Missed, Aim::Reached));
        assert_eq!(point("x", None, Sdmac, None, |_| Runs::new()), None);
    }

    /// Ups and downs that both have are of the air, and tell nothing of the difference between them.
    #[test]
    fn an_aim_that_so_few_runs_cannot_judge_is_open() {
        let of = |ours: Runs| {
            move |kind| match kind {
                Kind::Tahoe => runs(100.0, 0.1, 10.0),
                Sdmac => ours.clone(),
                _ => Runs::new(),
            }
        };
        let together = point("x", None, Sdmac, None, of(runs(90.0, 0.1, 9.0))).unwrap();
        assert_eq!(together.reached_by, [Kind::Tahoe]);
        assert!((together.goodput.value - 0.9).abs() < 1e-9, "{together:?}");
        assert!(
            together.goodput.high - together.goodput.low < 1e-9,
            "{together:?}"
        );
        assert_eq!(together.aim(), Aim::Missed);
        // apart by 19 in each run, which is an error of 0.19 / 3 for ten of them
        let apart = point("x", None, Sdmac, None, of(runs(90.0, 0.1, -10.0))).unwrap();
        assert!(
            (apart.goodput.high - 0.9 - ERRORS * 0.19 / 3.0).abs() < 1e-9,
            "{apart:?}"
        );
        assert_eq!(apart.aim(), Aim::Open);
        let few: Runs = runs(90.0, 0.1, 0.0).into_iter().take(3).collect();
        assert_eq!(point("x", None, Sdmac, None, of(few)).unwrap().aim(), Aim::Open);
    }

    /// Every value of the rows can be had, whatever is run of random flows.
    #[test]
    fn each_setting_has_its_value() {
        let scenes = [What::Stack, What::Files(8), What::Streams(32)];
        let of = |tries| scenes.map(|what| names(what, tries).1);
        let judged_as = [1, DEFAULT_TRIES].into_iter().flat_map(of);
        let beds = ["A", "B", "A, 7 tries", "B, 7 tries", "A, calibrated"];
        let chains = beds
            .iter()
            .flat_map(|bed| [1, 2, 5].map(|n| format!("{bed}: flows {n}")));
        let named: BTreeSet<String> = judged_as.chain(chains).collect();
        let aims = crate::reproduce::atp::aims();
        let stated: BTreeSet<String> = aims[0].values.iter().map(|v| v.name.clone()).collect();
        assert_eq!(stated, named);
        let several = |name: &&String| name.contains("flows 2") || name.contains("flows 5");
        let through: BTreeSet<&String> = aims[3].values.iter().map(|v| &v.name).collect();
        assert_eq!(through, stated.iter().filter(several).collect());
        // one flow alone is fair
        let fair = aims[1]
            .values
            .iter()
            .all(|v| named.contains(&v.name) && !v.name.contains("flows 1"));
        assert!(fair && aims[1].values.len() == stated.len() - beds.len());
    }
}
