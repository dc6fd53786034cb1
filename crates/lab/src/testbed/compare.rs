//! One scenario in the simulator, and on real 802.11 stacks with the simulator as their air: the same numbers of both.

mod numbers;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

use linux::hwsim::Switches;
use linux::wifi::certify::Certificate;
use linux::wifi::{Host, Wait};
use radio::{Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::deploy::{DeployError, Deployed, Roamed, Run, Site, Slots, deploy};
use crate::record::RecordError;
use crate::run::{self, Judged};
use crate::scenario::Scenario;
use crate::stats::{Running, Sorted};

use super::air::{self, AirError, Begins};
use numbers::OF_ALL;
pub use numbers::{FINEST_LATENCY_US, Numbers};

/// How sure an interval is that holds the next run.
const CONFIDENCE: f64 = 0.999;
/// From the moment in which all are ready to the one in which they begin: longer than the kernel lets no air through after an
/// interface was set up (20 ms were seen).
const BEGIN: Duration = Duration::from_ms(50);
/// How often progress is told.
const LOOK: std::time::Duration = std::time::Duration::from_millis(100);
/// Half an interval is at least this share of its mean: runs that have no chance in them are all alike, and the real one
/// ends some microseconds later.
const FINEST: f64 = 1e-3;
/// An air that tells the kernel of something later than this is not the scenario's, us.
const LATE_US: f64 = 100.0;
/// Octets of LLC/SNAP, which count as throughput, as in the simulator.
const LLC_SNAP_OCTETS: u64 = 8;

/// What the real stacks have done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Real {
    /// All nodes together.
    pub numbers: Numbers,
    /// Requests without a status, or refused by a host.
    pub unknown: u64,
    /// See there.
    pub refused: u64,
    /// The longest time by which the kernel was told of something late, us.
    pub latest_us: f64,
    /// Frames that overlapped another, of all frames on the air.
    pub overlapping: u64,
    /// Frames on the air in all.
    pub tries: u64,
    /// Radios that took part, ...
    pub radios: u64,
    /// ... and those among them that had a certificate.
    pub certified: u64,
    /// Sentences about nodes whose requests were refused.
    pub refusals: Vec<String>,
    /// Sentences about nodes that were too late for their slots.
    pub lateness: Vec<String>,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What, with its unit.
    pub name: &'static str,
    /// Mean of the runs of the real stacks.
    pub real: Option<f64>,
    /// Mean of the simulator's runs.
    pub simulator: Option<f64>,
    /// Half the interval in which the mean of as many more runs of the simulator lies with 99.9 %; at least a thousandth of the
    /// mean, and [`FINEST_LATENCY_US`] for latencies.
    pub plus_minus: Option<f64>,
    /// The mean of the real runs lies in it.
    pub within: Option<bool>,
}

/// Why a scenario cannot run on the radios of this kernel.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The air.
    #[error(transparent)]
    Air(#[from] AirError),
    /// A node.
    #[error("{node}: {error}")]
    Node {
        /// Which.
        node: String,
        /// Why.
        error: DeployError,
    },
    /// Fewer radios than adapters.
    #[error("the scenario has {adapters} adapters, and this kernel has {radios} radios of mac80211_hwsim")]
    Radios {
        /// What is needed.
        adapters: u32,
        /// What is there.
        radios: usize,
    },
}

/// Tells what a radio was seen to do, by its name.
pub type Certificates<'a> = &'a (dyn Fn(&str) -> Option<Certificate> + Sync);

/// Runs every node of the scenario on a radio of this kernel, with the scenario as their air. A thread beside them tells `progress`
/// for how long they have run, ns.
///
/// # Errors
/// [`CompareError`].
///
/// # Panics
/// If a thread panics.
pub fn real(
    scenario: &Scenario,
    seed: u64,
    certificates: Certificates<'_>,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<Real, CompareError> {
    let ((radios, nodes), summary) = air::beside(scenario, seed, Begins::WithHosts, |seating, switches| {
        let radios: Vec<_> = seating.nodes.iter().filter_map(|s| s.radio.clone()).collect();
        if radios.len() < seating.nodes.len() {
            return Err(CompareError::Radios {
                adapters: scenario.radios(),
                radios: radios.len(),
            });
        }
        let (ran_ns, over) = (AtomicU64::new(0), AtomicBool::new(false));
        let nodes = std::thread::scope(|scope| {
            let tell = || {
                while !over.load(Ordering::Relaxed) {
                    progress(ran_ns.load(Ordering::Relaxed));
                    std::thread::park_timeout(LOOK);
                }
            };
            let teller = scope.spawn(tell);
            let nodes = stations(scenario, seed, (&radios, switches), certificates, &ran_ns, stop);
            over.store(true, Ordering::Relaxed);
            teller.thread().unpark();
            nodes
        })?;
        Ok((radios, nodes))
    })?;
    let sum = |of: fn(&Deployed) -> u64| nodes.iter().map(|n| of(&n.done)).sum::<u64>();
    let submitted = sum(|d| d.measured.submitted) as f64;
    let delivered = sum(|d| d.measured.delivered);
    let window_ns = nodes.iter().map(|n| n.done.measured.window_ns).max().unwrap_or(0);
    let octets = sum(|d| d.measured.delivered_octets) + LLC_SNAP_OCTETS * delivered;
    let latencies: Vec<f64> = nodes
        .iter()
        .flat_map(|n| n.latencies_us.iter().copied())
        .collect();
    let latency = Sorted::new(latencies).summary();
    let mut confirms = Running::default();
    for (node, run) in (0..).zip(&nodes) {
        if scenario.confirming_group(node).is_some() {
            confirms.merge(&run.confirm_us);
        }
    }
    let ratio = |a: f64| (submitted > 0.0).then(|| a / submitted);
    let roamed: Vec<Roamed> = nodes.iter().filter_map(|n| n.done.roamed).collect();
    let of_roaming = |of: fn(&mut dyn Iterator<Item = &Roamed>) -> u64| {
        (!roamed.is_empty()).then(|| of(&mut roamed.iter()) as f64)
    };
    Ok(Real {
        numbers: Numbers {
            throughput_mbps: (window_ns > 0).then(|| octets as f64 * 8e3 / window_ns as f64),
            lost_ratio: lost_ratio(scenario, judged(&nodes)),
            tries: ratio(sum(|d| d.measured.tries.unwrap_or(0)) as f64), // Through a monitor they are told.
            latency_p50_us: latency.as_ref().map(|s| s.p50),
            latency_p99_us: latency.as_ref().map(|s| s.p99),
            confirm_mean_us: confirms.mean(),
            confirm_sd_us: confirms.sd(),
            missed_slots: missed_slots(nodes.iter().filter_map(|n| n.done.slots)),
            handovers: of_roaming(|all| all.map(|r| r.handovers).sum()),
            missed_in_handover: of_roaming(|all| all.map(|r| r.missed_in_handover).sum()),
            gap_max_us: of_roaming(|all| all.map(|r| r.longest_gap_ns).max().unwrap_or(0)).map(|ns| ns / 1e3),
            crossed: scenario.file().has_borders().then(|| {
                nodes
                    .iter()
                    .filter_map(|n| n.done.cell)
                    .map(|c| c.crossed)
                    .sum::<u64>() as f64
            }),
        },
        unknown: sum(|d| d.requests.unknown),
        refused: sum(|d| d.requests.refused),
        latest_us: summary.latest_us,
        overlapping: summary.total.overlapping,
        tries: summary.total.tries,
        radios: radios.len() as u64,
        certified: radios
            .iter()
            .filter(|radio| certificates(radio).is_some())
            .count() as u64,
        refusals: nodes.iter().filter_map(|n| n.done.refusal()).collect(),
        lateness: nodes.iter().filter_map(|n| n.done.lateness()).collect(),
    })
}

/// The share of slots that were late or lost, of those of all nodes.
fn missed_slots(of_nodes: impl Iterator<Item = Slots>) -> Option<f64> {
    let (late, lost, released) = of_nodes.fold((0, 0, 0), |(late, lost, released), s| {
        (
            late + s.late + s.overran,
            lost + s.overruns,
            released + s.released,
        )
    });
    missed_share(late as f64, lost as f64, released as f64)
}

/// Of released slots so many were late, whether the frame was taken back or not, and others were lost.
fn missed_share(late: f64, lost: f64, released: f64) -> Option<f64> {
    let all = released + lost;
    (all > 0.0).then(|| (late + lost) / all)
}

/// What the nodes have submitted, and what of it has arrived anywhere, by flow.
fn judged(nodes: &[Run]) -> impl Iterator<Item = (u32, Judged)> {
    let flows = nodes.iter().flat_map(|n| &n.judged);
    flows.map(|(flow, numbers)| {
        let judged = Judged {
            submitted: numbers.len() as u64,
            delivered: nodes
                .iter()
                .map(|n| n.arrived.count(*flow, numbers.clone()))
                .sum(),
        };
        (*flow, judged)
    })
}

/// MSDUs that did not arrive; those for all should arrive at all other nodes.
fn lost_ratio(scenario: &Scenario, flows: impl Iterator<Item = (u32, Judged)>) -> Option<f64> {
    let (mut submitted, mut delivered) = (0, 0.0);
    for (flow, judged) in flows {
        let receivers = match scenario.flow_is_broadcast(flow as usize) {
            true => scenario.nodes().saturating_sub(1).max(1),
            false => 1,
        };
        submitted += judged.submitted;
        delivered += judged.delivered as f64 / f64::from(receivers);
    }
    (submitted > 0).then(|| 1.0 - delivered / submitted as f64)
}

/// All nodes, which begin at one time when the last one is ready. Their radios stay until all have ended. `ran_ns` is how long the first has
/// run.
///
/// # Errors
/// The first node that cannot run.
///
/// # Panics
/// If a thread panics, or there are fewer radios than adapters.
pub fn stations(
    scenario: &Scenario,
    seed: u64,
    (radios, switches): (&[String], &Switches),
    certificates: Certificates<'_>,
    ran_ns: &AtomicU64,
    stop: &AtomicBool,
) -> Result<Vec<Run>, CompareError> {
    let given_up = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        let mut rest = radios;
        let mut port = 0;
        let (gates, threads): (Vec<_>, Vec<_>) = (0..scenario.nodes())
            .map(|node| {
                let (own, others) = rest.split_at(scenario.adapters(node).into());
                rest = others;
                let softmac = (port..).take(own.len()).map(|n| Some(switches.of(n))).collect();
                port += own.len() as u32;
                let (gate, wait) = mpsc::channel::<Instant>();
                let (tell, given_up) = (tell.clone(), &given_up);
                let thread = scope.spawn(move || {
                    let site = Site {
                        radios: own.to_vec(),
                        certificates: own.iter().map(|radio| certificates(radio)).collect(),
                        softmac,
                        // Hosts are left out of the comparison: the way to wait that costs least, whatever the scenario's do.
                        wait: Some(Wait::Timerfd),
                        ..Site::default()
                    };
                    let name = scenario.node_name(node);
                    let ready = |_: &[frame::MacAddr]| {
                        let _ = tell.send(true);
                        // without an answer the run is given up
                        wait.recv().unwrap_or(Instant::ZERO)
                    };
                    let look = |ns| {
                        if node == 0 {
                            ran_ns.store(ns, Ordering::Relaxed);
                        }
                        if stop.load(Ordering::Relaxed) {
                            given_up.store(true, Ordering::Relaxed);
                        }
                    };
                    let done = deploy(scenario, &name, seed, &site, ready, &look, given_up);
                    if done.is_err() {
                        let _ = tell.send(false);
                    }
                    done.map_err(|error| CompareError::Node { node: name, error })
                });
                (gate, thread)
            })
            .unzip();
        let all_ready = told.iter().take(gates.len()).all(|ready| ready);
        given_up.fetch_or(!all_ready, Ordering::Relaxed);
        // By then each has been told, and waits for it.
        let begin = Host::now() + BEGIN;
        switches.begin_at(begin.as_ns());
        gates.iter().for_each(|gate| {
            let _ = gate.send(begin);
        });
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .collect()
    })
}

/// One run of the simulator, without what is a model of Linux and of this computer.
///
/// # Errors
/// As [`run::run`].
pub fn simulated(scenario: &Scenario, seed: u64, stop: &AtomicBool) -> Result<Numbers, RecordError> {
    let run = run::run(&scenario.clone().without_hosts(), seed, None, stop, |_| ())?;
    let metric = |name: &str| run.result.metrics.get(name).copied();
    // leaky buckets have slots, too
    let of_schedule = |name| metric(name).filter(|_| !scenario.file().schedule.is_empty());
    // A world goes on up to and with its last instant; on radios nothing is submitted at the end.
    let told = run.measured.as_ref().filter(|_| scenario.flows_are_told());
    let counted = told.filter(|m| m.from_since_to_end > 0);
    Ok(Numbers {
        throughput_mbps: metric("throughput_mbps"),
        lost_ratio: run
            .measured
            .as_ref()
            .and_then(|m| lost_ratio(scenario, m.judged())),
        tries: counted.map(|m| m.tries as f64 / m.from_since_to_end as f64),
        latency_p50_us: metric("latency_p50_us"),
        latency_p99_us: metric("latency_p99_us"),
        confirm_mean_us: metric("confirm_mean_us"),
        confirm_sd_us: metric("confirm_sd_us"),
        missed_slots: of_schedule("slots_released").and_then(|released| {
            let [late, overran, lost] =
                ["slots_late", "slots_overran", "slots_lost"].map(|name| metric(name).unwrap_or(0.0));
            missed_share(late + overran, lost, released)
        }),
        handovers: metric("roam_handovers"),
        missed_in_handover: metric("roam_missed_in_handover"),
        gap_max_us: metric("roam_gap_max_us"),
        crossed: metric("cells_crossed"),
    })
}

/// Whether the two agree: there is something to compare, no row is outside its interval or there on one side alone, no request was
/// refused or without a status, and the air was in time.
pub fn agree(real: &[Real], rows: &[Row]) -> bool {
    let whole = |run: &Real| run.refused == 0 && run.unknown == 0 && run.latest_us < LATE_US;
    let holds = |row: &Row| row.within != Some(false) && row.real.is_some() == row.simulator.is_some();
    real.iter().all(whole) && rows.iter().all(holds) && rows.iter().any(|row| row.within.is_some())
}

/// The table: runs of the real stacks, and several of the simulator; of layers that the scenario does not have there is no row.
pub fn table(real: &[Numbers], runs: &[Numbers]) -> Vec<Row> {
    let of = |all: &[Numbers], i: usize| -> Running { all.iter().filter_map(|r| r.all()[i].1).collect() };
    let row = |(i, (name, _, least)): (usize, (&'static str, Option<f64>, f64))| {
        let (real, all) = (of(real, i), of(runs, i));
        let simulator = all.mean();
        let finest = simulator.map_or(0.0, |mean| least.max(mean.abs() * FINEST));
        let half = all.next_mean(real.count(), CONFIDENCE);
        let (real, plus_minus) = (real.mean(), half.map(|half| half.max(finest)));
        let within = |(x, (mean, half)): (f64, (f64, f64))| (x - mean).abs() <= half;
        Row {
            name,
            real,
            simulator,
            plus_minus,
            within: real.zip(simulator.zip(plus_minus)).map(within),
        }
    };
    let rows = Numbers::default().all().into_iter().enumerate();
    let is_there = |(i, row): &(usize, Row)| *i < OF_ALL || row.real.is_some() || row.simulator.is_some();
    let rows = rows.map(|(i, of)| (i, row((i, of)))).filter(is_there);
    rows.map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_within_or_without() {
        let of = |x: f64| Numbers {
            throughput_mbps: Some(x),
            tries: Some(1.0),
            ..Numbers::default()
        };
        let runs: Vec<_> = [9.0, 10.0, 11.0].map(of).into();
        let row = |real: f64| table(&[of(real)], &runs)[0].clone();
        // Student's t with 2 degrees of freedom at 99.9 %: 31.599, times sqrt(1 + 1/3).
        let near = row(10.5);
        assert_eq!((near.simulator, near.within), (Some(10.0), Some(true)));
        assert!((near.plus_minus.unwrap() - 36.487).abs() < 0.01, "{near:?}");
        assert_eq!(row(50.0).within, Some(false));
        // The mean of three lies closer: times sqrt(1/3 + 1/3).
        let mean = table(&[9.5, 10.5, 11.5].map(of), &runs)[0].clone();
        assert_eq!(mean.real, Some(10.5));
        assert!((mean.plus_minus.unwrap() - 25.800).abs() < 0.01, "{mean:?}");
        let alike = [4.0, 4.0, 4.0].map(of);
        let row = |real: f64| table(&[of(real)], &alike)[0].clone();
        assert_eq!([4.003, 4.005].map(|x| row(x).within), [Some(true), Some(false)]);
        let slow = |us: f64| Numbers {
            latency_p50_us: Some(us),
            ..Numbers::default()
        };
        let row = |real: f64| table(&[slow(real)], &[slow(81.0), slow(81.0)])[3].clone();
        assert_eq!([84.0, 84.1].map(|us| row(us).within), [Some(true), Some(false)]);
        let rows = table(&[of(1.0)], &runs);
        assert_eq!((rows[1].within, rows[2].within), (None, Some(true)), "{rows:?}");
        assert_eq!(
            table(&[of(1.0)], &runs[..1])[0].plus_minus,
            None,
            "one run has no interval"
        );
    }

    #[test]
    fn refusals_and_rows_outside_are_no_agreement() {
        let of = |x: f64| Numbers {
            throughput_mbps: Some(x),
            ..Numbers::default()
        };
        let runs = [4.0, 4.0].map(of);
        let mut real = Real {
            numbers: of(4.0),
            unknown: 0,
            refused: 0,
            latest_us: 0.0,
            overlapping: 0,
            tries: 0,
            radios: 0,
            certified: 0,
            refusals: Vec::new(),
            lateness: Vec::new(),
        };
        let row = |x| table(&[of(x)], &runs);
        assert!(agree(&[real.clone()], &row(4.0)));
        assert!(!agree(&[real.clone()], &row(5.0)));
        let others = real.clone();
        real.refused = 1;
        assert!(!agree(&[others.clone(), real], &row(4.0)));
        let silent = Real {
            unknown: 1,
            ..others.clone()
        };
        assert!(!agree(&[silent], &row(4.0)));
        let late = Real {
            latest_us: 7_000.0,
            ..others.clone()
        };
        assert!(!agree(&[late], &row(4.0)));
        // What only one of the two has is no agreement, nor is nothing at all.
        let alone = table(&[of(4.0)], &[Numbers::default(), Numbers::default()]);
        assert!(!agree(std::slice::from_ref(&others), &alone));
        let nothing = table(&[Numbers::default()], &[Numbers::default(), Numbers::default()]);
        assert!(!agree(&[others], &nothing));
    }

    /// What foreign stations lose is not ours, and what is submitted as the run ends has no try.
    #[test]
    fn strangers_and_the_last_instant_do_not_count() {
        let alone = "[run]\nduration = \"100ms\"\n[medium]\nloss.fixed_power_dbm = -50\nerror = \"perfect\"\n\
             [output]\nlatency = true\n\
             [[group]]\nname = \"a\"\nprotocol.sender = { rate = \"6M\" }\n\
             [[group]]\nname = \"b\"\nprotocol.sender = { rate = \"6M\" }\n\
             [[traffic]]\nfrom = \"a\"\nto = \"b\"\noctets = 50\npattern.periodic = { period = \"10ms\" }\n";
        let strangers =
            "[[foreign]]\nat = [10, 10]\nwhat.load = { octets = 1500, mean = \"2070us\", rate = \"6M\" }\n";
        let of = |text: &str| {
            let scenario =
                Scenario::parse(std::path::Path::new("t.toml"), text, &[]).unwrap_or_else(|e| panic!("{e}"));
            simulated(&scenario, 1, &AtomicBool::new(false)).unwrap()
        };
        let (first, second) = (of(alone), of(&format!("{alone}{strangers}")));
        assert_eq!(
            (first.lost_ratio, first.tries),
            (Some(0.0), Some(1.0)),
            "{first:?}"
        );
        assert_eq!(second.lost_ratio, Some(0.0), "{second:?}");
    }

    /// A saturated sender has something under way at every end; what is for all arrives at each.
    #[test]
    fn what_is_under_way_at_the_end_is_not_lost() {
        let text = |to: &str, pattern: &str| {
            format!(
                "[run]\nduration = \"500ms\"\nwarm_up = \"20ms\"\n[medium]\nloss.fixed_power_dbm = -50\nerror = \"perfect\"\n\
                 [output]\nlatency = true\n\
                 [[group]]\nname = \"a\"\nprotocol.sender = {{ rate = \"6M\" }}\n\
                 [[group]]\nname = \"b\"\ncount = 2\nprotocol.sender = {{ rate = \"6M\" }}\n\
                 [[traffic]]\nfrom = \"a\"\nto = \"{to}\"\noctets = 1000\npattern.{pattern}\n"
            )
        };
        for (to, pattern) in [
            ("b.0", "saturated = { backlog = 8 }"),
            ("broadcast", "periodic = { period = \"5ms\" }"),
        ] {
            let text = text(to, pattern);
            let scenario =
                Scenario::parse(std::path::Path::new("t.toml"), &text, &[]).unwrap_or_else(|e| panic!("{e}"));
            let run = simulated(&scenario, 1, &AtomicBool::new(false)).unwrap();
            assert_eq!(run.lost_ratio, Some(0.0), "to {to}: {run:?}");
        }
    }
}
