//! Which source to take: of those that miss fewest deadlines the one whose lateness has the shortest tail under the worst of the loads.
//! Where several are as good, the one that leaves the processor to others.

use super::Row;

/// Sources within this factor of the best one are as good: two runs differ by as much.
const AS_GOOD: f64 = 1.1;
/// And those that are less than this worse: what a clock and a call take, us.
const AS_GOOD_US: f64 = 1.0;
/// What hosts can do, as `--wait` names it.
const OF_HOSTS: [&str; 3] = ["sleep", "timerfd", "spin"];
/// Sources that wake a thread, from the one that leaves the processor most to others to the one that takes it.
const BY_COST: [&str; 6] = ["sleep", "timerfd", "posix", "epoll", "hybrid", "spin"];

/// The source to take at one interval, and why.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Choice {
    /// Interval, us.
    pub interval_us: u32,
    /// Source.
    pub source: &'static str,
    /// Scheduling.
    pub sched: &'static str,
    /// Its tail under the worst load, us: p99.9, or p99 if a series has too few samples.
    pub tail_us: f64,
    /// The load that is.
    pub load: &'static str,
    /// Why.
    pub reason: String,
}

/// One source with one scheduling at one interval, under the worst of the loads.
struct Candidate {
    source: &'static str,
    sched: &'static str,
    tail_us: f64,
    /// The share of wake-ups that are within it.
    share: &'static str,
    load: &'static str,
    missed: usize,
    deadlines: usize,
    rests: usize,
}

/// The choice for each interval that has rows. `etf` is not among the candidates: it sends frames and wakes nobody. Nor is a
/// source that lacks a load that others have.
pub fn choices(rows: &[Row]) -> Vec<Choice> {
    let mut intervals: Vec<u32> = rows.iter().map(|r| r.interval_us).collect();
    intervals.dedup();
    intervals.into_iter().filter_map(|us| choice(rows, us)).collect()
}

fn choice(rows: &[Row], interval_us: u32) -> Option<Choice> {
    let all = candidates(rows, interval_us);
    let (best, chosen) = of_these(&all, &BY_COST)?;
    let mut reason = format!(
        "{} of its wake-ups are less than {} us late under the worst load, {}",
        chosen.share,
        digits(chosen.tail_us),
        chosen.load
    );
    if chosen.source == best.source {
        let next = all
            .iter()
            .filter(|c| c.source != chosen.source && c.sched == chosen.sched);
        if let Some(next) = next.min_by(|a, b| a.tail_us.total_cmp(&b.tail_us)) {
            reason += &format!("; of the next one, {}, {} us", next.source, digits(next.tail_us));
        }
    } else {
        reason += &format!(
            ", no worse than {}, and it leaves the processor to others",
            best.source
        );
    }
    if matches!(chosen.source, "spin" | "hybrid") {
        reason += "; it keeps a processor busy while it spins";
    }
    if chosen.rests > 0 {
        reason += &format!(
            "; {} times it rested for up to 10 ms, and what would have been due then is not counted: who spins for ever does without",
            chosen.rests
        );
    }
    if chosen.missed > 0 {
        reason += &format!(
            "; {} of {} deadlines were missed by a whole interval",
            chosen.missed, chosen.deadlines
        );
    }
    if let Some((_, own)) = of_these(&all, &OF_HOSTS) {
        reason += &if own.source == chosen.source {
            format!("; for hosts of this program: --wait {}", own.source)
        } else {
            format!(
                "; hosts of this program do not wait by {}: the best that they have is less than {} us late, --wait {}",
                chosen.source,
                digits(own.tail_us),
                own.source
            )
        };
    }
    Some(Choice {
        interval_us,
        source: chosen.source,
        sched: chosen.sched,
        tail_us: chosen.tail_us,
        load: chosen.load,
        reason,
    })
}

/// The best of some sources, and of those that are as good the one that leaves the processor most to others.
fn of_these<'a>(all: &'a [Candidate], sources: &[&str]) -> Option<(&'a Candidate, &'a Candidate)> {
    let named = || all.iter().filter(|c| sources.contains(&c.source));
    // a lost slot is worse than a late one; counts of rare events differ by so much between two runs
    let share = |c: &Candidate| c.missed as f64 / c.deadlines.max(1) as f64;
    let fewest = named().min_by(|a, b| share(a).total_cmp(&share(b)))?;
    let bearable = |c: &&Candidate| {
        let expected = share(fewest) * c.deadlines as f64;
        c.missed as f64 <= expected + 3.0 * expected.sqrt() + 3.0
    };
    let these = || named().filter(bearable);
    let best = these().min_by(|a, b| a.tail_us.total_cmp(&b.tail_us))?;
    let enough = (AS_GOOD * best.tail_us).max(best.tail_us + AS_GOOD_US);
    let cost = |c: &&Candidate| BY_COST.iter().position(|name| *name == c.source);
    let chosen = these()
        .filter(|c| c.sched == best.sched && c.tail_us <= enough)
        .min_by_key(cost)?;
    Some((best, chosen))
}

/// Microseconds, with hundredths where there are few.
fn digits(us: f64) -> String {
    if us < 10.0 {
        format!("{us:.2}")
    } else {
        format!("{us:.1}")
    }
}

fn candidates(rows: &[Row], interval_us: u32) -> Vec<Candidate> {
    let here = || {
        rows.iter()
            .filter(|r| r.interval_us == interval_us && r.source != "etf")
    };
    let mut loads: Vec<&str> = here().map(|r| r.load).collect();
    loads.sort_unstable();
    loads.dedup();
    let mut all: Vec<Candidate> = Vec::new();
    for first in here() {
        let (source, sched) = (first.source, first.sched);
        let mine = || here().filter(move |r| (r.source, r.sched) == (source, sched));
        let worst = mine().filter_map(|r| Some((r, r.lateness?.tail_us())));
        let Some((row, tail_us)) = worst.max_by(|a, b| a.1.total_cmp(&b.1)) else {
            continue;
        };
        let known = all.iter().any(|c| (c.source, c.sched) == (source, sched));
        if !known && mine().count() == loads.len() {
            all.push(Candidate {
                source,
                sched,
                tail_us,
                share: match row.lateness.is_some_and(|s| s.p999_us.is_some()) {
                    true => "99.9 %",
                    false => "99 %",
                },
                load: row.load,
                missed: mine().map(|r| r.missed).sum(),
                deadlines: mine().map(|r| r.deadlines).sum(),
                rests: mine().map(|r| r.rests).sum(),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::Statistics;
    use super::*;

    fn row(source: &'static str, load: &'static str, sched: &'static str, p999_us: f64) -> Row {
        let statistics = Statistics {
            count: 10_000,
            min_us: 1.0,
            p50_us: 2.0,
            mean_us: 2.0,
            sd_us: 1.0,
            p99_us: 3.0,
            p999_us: Some(p999_us),
            max_us: 9_000.0,
        };
        Row {
            source,
            interval_us: 250,
            load,
            sched,
            deadlines: 10_000,
            missed: 3,
            rests: if source == "spin" { 7 } else { 0 },
            interrupted: false,
            lateness: Some(statistics),
            interval: Some(statistics),
        }
    }

    #[test]
    fn the_worst_load_decides_and_of_equals_the_cheapest() {
        let rows = [
            row("sleep", "idle", "fifo", 10.0),
            row("sleep", "io", "fifo", 52.0),
            row("spin", "idle", "fifo", 1.0),
            row("spin", "io", "fifo", 50.0),
            row("epoll", "idle", "fifo", 1.0),
            row("epoll", "io", "fifo", 80.0),
            row("timerfd", "idle", "fifo", 1.0),
            row("etf", "idle", "fifo", 0.1),
            row("etf", "io", "fifo", 0.1),
        ];
        let choice = &choices(&rows)[0];
        assert_eq!(
            (choice.source, choice.load, choice.tail_us),
            ("sleep", "io", 52.0)
        );
        assert!(choice.reason.contains("no worse than spin"), "{}", choice.reason);
        assert!(choice.reason.contains("6 of 20000"), "{}", choice.reason);
        assert!(choices(&[]).is_empty());
    }

    /// The tail says nothing of what is rarer, and a slot that is lost is.
    #[test]
    fn who_misses_more_is_not_taken() {
        let missed = |source, missed, p999_us| Row {
            missed,
            ..row(source, "idle", "fifo", p999_us)
        };
        let choose = |rows: &[Row]| choices(rows)[0].source;
        assert_eq!(
            choose(&[missed("sleep", 2, 60.0), missed("hybrid", 40, 5.0)]),
            "sleep"
        );
        // so much differs from run to run
        assert_eq!(
            choose(&[missed("sleep", 2, 60.0), missed("hybrid", 8, 5.0)]),
            "hybrid"
        );
    }

    #[test]
    fn a_better_source_that_spins_says_what_it_costs() {
        let rows = [
            row("sleep", "idle", "fifo", 60.0),
            row("hybrid", "idle", "fifo", 5.0),
        ];
        let choice = &choices(&rows)[0];
        assert_eq!(choice.source, "hybrid");
        assert!(
            choice.reason.contains("less than 5.00 us late") && choice.reason.contains("sleep, 60.0 us"),
            "{}",
            choice.reason
        );
        assert!(choice.reason.contains("busy"), "{}", choice.reason);
        let own = "hosts of this program do not wait by hybrid: the best that they have is less than 60.0 us late, --wait sleep";
        assert!(choice.reason.ends_with(own), "{}", choice.reason);
    }

    /// No deadline falls into a rest, so the best of tails says nothing of it.
    #[test]
    fn who_rests_says_so() {
        let rows = [
            row("spin", "idle", "fifo", 1.0),
            row("spin", "io", "fifo", 2.0),
            row("sleep", "idle", "fifo", 60.0),
            row("sleep", "io", "fifo", 60.0),
        ];
        let choice = &choices(&rows)[0];
        assert_eq!(choice.source, "spin");
        assert!(choice.reason.contains("14 times it rested"), "{}", choice.reason);
        let choice = &choices(&rows[2..])[0];
        assert!(!choice.reason.contains("rested"), "{}", choice.reason);
    }

    #[test]
    fn what_a_clock_takes_does_not_decide() {
        let rows = [
            row("spin", "idle", "fifo", 0.05),
            row("hybrid", "idle", "fifo", 0.9),
            row("sleep", "idle", "fifo", 12.9),
        ];
        // another source has too few samples for p99.9
        let mut few = row("etf", "idle", "fifo", 1.0);
        few.lateness = few.lateness.map(|s| Statistics { p999_us: None, ..s });
        let rows = [rows.as_slice(), &[few]].concat();
        let choice = &choices(&rows)[0];
        assert_eq!(choice.source, "hybrid");
        assert!(
            choice
                .reason
                .starts_with("99.9 % of its wake-ups are less than 0.90 us late"),
            "{}",
            choice.reason
        );
        assert!(choice.reason.ends_with("--wait spin"), "{}", choice.reason);
    }
}
