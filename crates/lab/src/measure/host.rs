//! Samples of this computer become a host profile that the simulator takes, and a table for people.
//!
//! What a computer without a Wi-Fi adapter can tell replaces what a base profile says; the rest is carried over and
//! marked as assumed. `packet.send` is the way in (t1 to t4) as a whole; `packet.receive` stands for the hand-over of
//! an outcome to a blocked caller (t8 to t9), because both are a wake-up from the kernel; timers are timers.

use crate::stats::Sorted;
use linux::host::{EMULATED, Environment, Load, Measurement, Mechanism, Sched, Series, SeriesKind};
use sim::host::{Basis, Component, ConfirmPath, Dependence, HostModel, Profile, ProfileError, Source};
use std::fmt::Write as _;

/// Which of the measured conditions a profile describes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// The load beside.
    pub load: Load,
    /// How the measuring threads were scheduled.
    pub sched: Sched,
}

/// Samples of a series below which a percentile is a guess: 10 beyond p99.9.
pub const SAMPLES_FOR_P999: usize = 10_000;

impl Condition {
    /// The series of `what` in this condition, if it was measured.
    fn series<'a>(&self, m: &'a Measurement, what: SeriesKind) -> Option<&'a Series> {
        let mine = |s: &&Series| s.what == what && s.load == self.load && s.sched == self.sched;
        m.results.iter().find(mine).filter(|s| !s.samples_ns.is_empty())
    }

    /// Conditions that have samples, in the order of measurement.
    pub fn measured(m: &Measurement) -> Vec<Condition> {
        let mut all: Vec<Condition> = Vec::new();
        for s in m.results.iter().filter(|s| !s.samples_ns.is_empty()) {
            let c = Condition {
                load: s.load,
                sched: s.sched,
            };
            if !all.contains(&c) {
                all.push(c);
            }
        }
        all
    }

    /// `idle, other`, `io, fifo+mlock`.
    pub fn name(&self) -> String {
        format!("{}, {}", self.load, self.sched)
    }
}

/// A profile of a measured computer. It was read back from its text, and it has a model.
#[derive(Clone, PartialEq, Debug)]
pub struct Described {
    /// The profile.
    pub profile: Profile,
    /// One sentence if it holds less dependence between the two ways of a frame than there is.
    pub note: Option<String>,
}

/// The profile of this computer in one condition: what was measured replaces `base`, the rest of `base` is kept as
/// assumed. `None` if nothing was measured in that condition. The numbers of an emulated processor are marked as assumed, too:
/// nobody measured a computer.
///
/// # Errors
/// What is wrong with `base`; with a base that has a model, a mistake in here.
pub fn profile(
    m: &Measurement,
    condition: Condition,
    base: &Profile,
) -> Result<Option<Described>, ProfileError> {
    let emulated = m.environment.is_emulated();
    let basis = if emulated { Basis::Assumed } else { Basis::Measured };
    let measured = |what| {
        let mut samples = condition.series(m, what)?.samples_ns.clone();
        let found = Component::measured(&mut samples)?;
        Some(Component { basis, ..found })
    };
    let send = measured(SeriesKind::PacketSend);
    let receive = measured(SeriesKind::PacketReceive).or_else(|| measured(SeriesKind::WakeEventfd));
    let timer = |mechanism| measured(SeriesKind::Timer(mechanism));
    let timers = [Mechanism::Sleep, Mechanism::Timerfd, Mechanism::Spin].map(timer);
    if send.is_none() && receive.is_none() && timers.iter().all(Option::is_none) {
        return Ok(None);
    }
    let mut p = base.clone();
    assume_all(&mut p);
    let how = if emulated { "emulated" } else { "measured" };
    p.name = format!("{how}-{}-{}", condition.load, condition.sched);
    p.emulated |= emulated;
    p.provenance = provenance(m, condition, base);
    let carried = base.correlation.request_confirm;
    let mut dependence = Dependence::Paths(carried);
    let mut spread = 0.0;
    if let Some(total) = send {
        share_out(&mut p, base);
        p.request.total = Some(total);
        p.request.total_sd_us = None;
        p.correlation.request_confirm = 0.0;
        dependence = Dependence::Paths(0.0);
        // the two ways of one frame were measured together
        if let Some((r, n)) = correlation(m, condition) {
            dependence = Dependence::RequestApi(r);
            spread = 2.0 / (n as f64).sqrt();
        }
    }
    let mut note = None;
    if let Some(api) = receive {
        one_by_one(&mut p);
        for path in [
            &mut p.confirm.acked,
            &mut p.confirm.timeout,
            &mut p.confirm.ack_corrupt,
        ] {
            path.api = api.clone();
        }
        let reached = p.depend(base, dependence)?;
        note = shortfall(dependence, reached, spread);
    }
    let [sleep, timerfd, spin] = timers;
    for (place, found) in [
        (&mut p.timer.sleep, sleep),
        (&mut p.timer.timerfd, timerfd),
        (&mut p.timer.spin, spin),
    ] {
        if let Some(found) = found {
            *place = found;
        }
    }
    if let Some(note) = &note {
        p.provenance.push_str(note);
        p.provenance.push('\n');
    }
    let name = p.name.clone();
    let profile = Profile::parse(&p.to_toml(), &name)?;
    HostModel::new(&profile)?;
    Ok(Some(Described { profile, note }))
}

/// Gives each part of the confirm paths numbers of its own, where they are shares of a whole.
pub(super) fn one_by_one(p: &mut Profile) {
    let acked = p.confirm.acked.total.clone();
    let confirm = &mut p.confirm;
    for path in [&mut confirm.acked, &mut confirm.timeout, &mut confirm.ack_corrupt] {
        let Some(total) = path.total.take() else { continue };
        let (whole, longer_us) = match (&total.source, &acked) {
            (Source::AckedPlus(us), Some(acked)) => (acked, *us),
            _ => (&total, 0.0),
        };
        let ConfirmPath {
            isr,
            driver_dependent,
            driver_independent,
            api,
            ..
        } = path;
        for part in [isr, driver_dependent, driver_independent, api] {
            if let Source::Share(share) = part.source {
                *part = whole.portion(longer_us, share);
            }
        }
    }
}

/// What to say if the profile holds another correlation than is known; `spread` is what chance makes of none.
fn shortfall(known: Dependence, reached: f64, spread: f64) -> Option<String> {
    let (r, whose) = match known {
        Dependence::RequestApi(r) => (r, "of sending and receiving the same frame, as measured,"),
        Dependence::Paths(r) => (r, "of request and confirm in the base profile"),
    };
    let why = if r < -spread {
        "and a profile holds none below 0"
    } else if reached < r - 0.001 {
        "and the model cannot reach more with these latencies"
    } else {
        return None;
    };
    Some(format!(
        "The correlation {whose} is {r:.3}, the profile has {:.3}, {why}.",
        reached.max(0.0)
    ))
}

/// Marks everything as assumed: it was measured on another computer, if at all.
pub(super) fn assume_all(p: &mut Profile) {
    let mut mark = |c: &mut Component| c.basis = Basis::Assumed;
    for c in p.request.total.iter_mut() {
        mark(c);
    }
    for c in [
        &mut p.request.api,
        &mut p.request.driver_independent,
        &mut p.request.driver_dependent,
    ] {
        mark(c);
    }
    for path in [
        &mut p.confirm.acked,
        &mut p.confirm.timeout,
        &mut p.confirm.ack_corrupt,
    ] {
        path.total.iter_mut().for_each(&mut mark);
        for c in [
            &mut path.isr,
            &mut path.driver_dependent,
            &mut path.driver_independent,
            &mut path.api,
        ] {
            mark(c);
        }
    }
    for c in [&mut p.hardware.acked, &mut p.hardware.timeout] {
        mark(c);
    }
    for c in [&mut p.timer.sleep, &mut p.timer.timerfd, &mut p.timer.spin] {
        mark(c);
    }
}

/// Mean of a component in us, where it has one of its own.
pub(super) fn mean_us(c: &Component) -> Option<f64> {
    match &c.source {
        Source::Constant(us) => Some(*us),
        Source::Statistics(s) => Some(s.mean_us),
        Source::Share(share) => Some(*share),
        Source::Knots(_) | Source::AckedPlus(_) => None,
    }
}

/// Turns the parts of the request path into shares of the whole, in the proportions of the base profile.
fn share_out(p: &mut Profile, base: &Profile) {
    let parts = [
        &base.request.api,
        &base.request.driver_independent,
        &base.request.driver_dependent,
    ];
    let means = parts.map(|c| mean_us(c).unwrap_or(1.0).max(0.0));
    let sum: f64 = means.iter().sum();
    let round = |x: f64| (x * 1e4).round() / 1e4;
    let [a, b] = if sum > 0.0 {
        [round(means[0] / sum), round(means[1] / sum)]
    } else {
        [0.3333, 0.3333]
    };
    let shares = [a, b, round(1.0 - a - b)];
    let places = [
        &mut p.request.api,
        &mut p.request.driver_independent,
        &mut p.request.driver_dependent,
    ];
    for (place, share) in places.into_iter().zip(shares) {
        *place = Component {
            basis: Basis::Assumed,
            source: Source::Share(share),
        };
    }
}

/// Pearson correlation of the way in and the way out of the same frames, and their number.
fn correlation(m: &Measurement, condition: Condition) -> Option<(f64, usize)> {
    let a = &condition.series(m, SeriesKind::PacketSend)?.samples_ns;
    let b = &condition.series(m, SeriesKind::PacketReceive)?.samples_ns;
    pearson(a.iter().zip(b).map(|(x, y)| (*x as f64, *y as f64)))
}

/// Pearson correlation of pairs, and their number; `None` of fewer than 30, or where one of the two does not vary.
pub(super) fn pearson(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Option<(f64, usize)> {
    let n = pairs.clone().count();
    if n < 30 {
        return None;
    }
    let sums = pairs.clone().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let (ma, mb) = (sums.0 / n as f64, sums.1 / n as f64);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        let (dx, dy) = (x - ma, y - mb);
        ab += dx * dy;
        aa += dx * dx;
        bb += dy * dy;
    }
    let r = ab / (aa * bb).sqrt();
    r.is_finite().then_some((r, n))
}

fn provenance(m: &Measurement, condition: Condition, base: &Profile) -> String {
    let mut text = String::new();
    let samples = m.results.iter().map(|s| s.samples_ns.len()).max().unwrap_or(0);
    let _ = writeln!(
        text,
        "Measured with `sdmac measure --host`: {}, up to {samples} samples a series.",
        condition.name()
    );
    let _ = writeln!(text, "{}", computer(&m.environment));
    if m.environment.is_emulated() {
        let _ = writeln!(text, "All is marked as assumed: {EMULATED}.");
    }
    if let Some(path) = &m.packet_path {
        let path = format!("{path:?}").to_lowercase();
        let _ = writeln!(
            text,
            "Frames over {path}: request.total is the send call, confirm.*.api the way from the kernel to the reader. \
             Their correlation was measured; one load acts on all parts of the confirm path."
        );
    }
    for report in &m.load_reports {
        if let Some(why) = &report.failed {
            let _ = writeln!(text, "The {} load failed: {why}.", report.load.name());
        }
    }
    for l in &m.left_out {
        let _ = writeln!(text, "Left out: {}: {}.", l.part, l.why.trim_end_matches('.'));
    }
    let _ = writeln!(
        text,
        "Assumed, as nothing here can measure an adapter: everything else, from profile {}.",
        base.name
    );
    text
}

/// One line about the computer.
pub fn computer(e: &Environment) -> String {
    let mut line = format!(
        "{}, Linux {} ({:?})",
        e.cpu_model.as_deref().unwrap_or("unknown CPU"),
        e.kernel,
        e.preemption
    );
    let _ = write!(line, ", {} CPUs", e.cpus_online);
    if e.virtual_machine == Some(true) {
        line.push_str(", a virtual machine");
    }
    if let Some(governor) = &e.governor {
        let _ = write!(line, ", governor {governor}");
    }
    line
}

/// One line of the table: min, p50, p99, p99.9, max in us.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Row {
    /// What, such as `timer.sleep`.
    pub what: &'static str,
    /// Load beside.
    pub load: &'static str,
    /// `other`, `other+mlock`, `fifo` or `fifo+mlock`.
    pub sched: &'static str,
    /// Number of samples.
    pub samples: usize,
    /// True if it was cut short.
    pub interrupted: bool,
    /// Smallest, us.
    pub min_us: f64,
    /// Median, us.
    pub p50_us: f64,
    /// us.
    pub p99_us: f64,
    /// us; absent if there are too few samples to tell.
    pub p999_us: Option<f64>,
    /// Largest, us.
    pub max_us: f64,
}

/// The table of a measurement.
pub fn rows(m: &Measurement) -> Vec<Row> {
    let row = |s: &Series| {
        let sorted = Sorted::new(s.samples_ns.clone());
        let us = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e3;
        let quantile = |p| us(sorted.quantile(p));
        Row {
            what: s.what.name(),
            load: s.load.name(),
            sched: s.sched.name(),
            samples: sorted.len(),
            interrupted: s.interrupted,
            min_us: us(sorted.min()),
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            p999_us: (sorted.len() >= SAMPLES_FOR_P999).then(|| quantile(0.999)),
            max_us: us(sorted.max()),
        }
    };
    m.results
        .iter()
        .filter(|s| !s.samples_ns.is_empty())
        .map(row)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux::host::Cpus;

    const BASES: [&str; 6] = [
        "ideal",
        "table4-baseline-idle",
        "table4-baseline-io",
        "table4-optimised-idle",
        "table4-optimised-io",
        "table5",
    ];
    const IDLE: Condition = Condition {
        load: Load::Idle,
        sched: Sched::OTHER,
    };

    fn measurement(series: Vec<(SeriesKind, Vec<u64>)>) -> Measurement {
        let series = series.into_iter().map(|(what, samples_ns)| Series {
            what,
            load: IDLE.load,
            sched: IDLE.sched,
            samples_ns,
            gaps: Vec::new(),
            lost: 0,
            interrupted: false,
        });
        Measurement {
            environment: Environment::default(),
            cpus: Cpus {
                measured: 0,
                helper: 0,
            },
            packet_path: None,
            results: series.collect(),
            load_reports: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Numbers from 0 to 4095 that look random.
    fn noise(salt: u64) -> impl Iterator<Item = u64> {
        (0..2000u64).map(move |i| sim::rng::mix3(7, i, salt) % 4096)
    }

    /// Both ways of 2000 frames, `shared` parts of 8 of which are the same.
    fn frames(shared: u64) -> Vec<(SeriesKind, Vec<u64>)> {
        let way = |at: u64, salt| {
            let both = noise(1).zip(noise(salt));
            both.map(move |(common, own)| at + shared * common + (8 - shared) * own)
        };
        vec![
            (SeriesKind::PacketSend, way(9_000, 2).collect()),
            (SeriesKind::PacketReceive, way(20_000, 3).collect()),
        ]
    }

    fn described(series: Vec<(SeriesKind, Vec<u64>)>, base: &str) -> Described {
        let base = Profile::built_in(base).unwrap();
        let found = profile(&measurement(series), IDLE, &base);
        found.unwrap_or_else(|e| panic!("{}: {e}", base.name)).unwrap()
    }

    #[test]
    fn every_base_gives_a_profile_with_a_model() {
        for base in BASES {
            for series in [
                frames(8),
                frames(6),
                frames(0),
                vec![
                    (SeriesKind::PacketSend, vec![5_000; 40]),
                    (SeriesKind::PacketReceive, vec![7_000; 40]),
                ],
                vec![(SeriesKind::PacketSend, vec![5_000])],
                vec![(SeriesKind::WakeEventfd, noise(4).collect())],
                vec![(SeriesKind::PacketReceive, vec![0; 3])],
                vec![(SeriesKind::Timer(Mechanism::Sleep), vec![1, 9])],
            ] {
                let d = described(series, base);
                HostModel::new(&Profile::parse(&d.profile.to_toml(), "again").unwrap()).unwrap();
            }
        }
    }

    /// It may be a base for a computer later: what is left of it there is still no time of one.
    #[test]
    fn an_emulated_processor_measures_nothing() {
        let base = Profile::built_in("table5").unwrap();
        let on = |cpu: &str, base: &Profile| {
            let m = Measurement {
                environment: Environment {
                    cpu_model: Some(cpu.into()),
                    ..Environment::default()
                },
                ..measurement(frames(6))
            };
            profile(&m, IDLE, base).unwrap().unwrap().profile
        };
        let p = on("QEMU TCG CPU version 2.5+", &base);
        assert_eq!((p.name.as_str(), p.emulated), ("emulated-idle-other", true));
        assert_eq!(p.request.total.as_ref().unwrap().basis, Basis::Assumed);
        assert_eq!(p.confirm.acked.api.basis, Basis::Assumed);
        assert!(!p.to_toml().contains("\"measured\"") && p.provenance.contains("no times of a computer"));
        let real = on("Intel(R) Core(TM) i3-4150 CPU @ 3.50GHz", &base);
        assert_eq!(
            (real.name.as_str(), real.emulated),
            ("measured-idle-other", false)
        );
        assert_eq!(real.request.total.as_ref().unwrap().basis, Basis::Measured);
        assert!(on("Intel(R) Core(TM) i3-4150 CPU @ 3.50GHz", &p).emulated);
    }

    /// The model draws sending and receiving with the correlation that was measured.
    #[test]
    fn the_measured_correlation_comes_out_of_the_model() {
        use sim::host::Outcome;
        for base in BASES {
            for shared in [0, 4, 6] {
                let series = frames(shared);
                let (measured, _) = correlation(&measurement(series.clone()), IDLE).unwrap();
                let d = described(series, base);
                assert_eq!(d.note, None, "{base} {shared}");
                let model = HostModel::new(&d.profile).unwrap();
                let mut random = sim::rng::Stream::new(1, 1, sim::rng::Cause::Host);
                let draws = (0..100_000).map(|_| {
                    let request = model.sample_request(&mut random, 50);
                    let confirm = model.sample_confirm(&mut random, request.load, Outcome::Acked);
                    (request.software_ns(), confirm.t8_t9_ns)
                });
                let (send, receive) = draws.unzip();
                let drawn = vec![
                    (SeriesKind::PacketSend, send),
                    (SeriesKind::PacketReceive, receive),
                ];
                let (drawn, _) = correlation(&measurement(drawn), IDLE).unwrap();
                assert!(
                    (drawn - measured.max(0.0)).abs() < 0.02,
                    "{base}: {drawn} {measured}"
                );
            }
        }
    }

    #[test]
    fn a_correlation_that_no_profile_holds_is_said() {
        // the rare late frames of one way are those that are early on the other, or the usual ones
        let late = |on: u64| {
            (0..2000)
                .map(|i| if i % 100 < on { 900_000 } else { 1_000 + i % 7 })
                .collect()
        };
        let against = (0..2000)
            .map(|i| if i % 100 < 50 { 1_000 } else { 9_000 })
            .collect();
        let send = |samples| (SeriesKind::PacketSend, samples);
        let receive = |samples| (SeriesKind::PacketReceive, samples);
        let opposite = described(vec![send(late(50)), receive(against)], "table5");
        let note = opposite.note.unwrap();
        assert!(
            note.contains("is -1.000, the profile has 0.000") && note.contains("below 0"),
            "{note}"
        );
        assert_eq!(opposite.profile.correlation.request_confirm, 0.0);
        assert!(opposite.profile.provenance.contains(&note));
        let same = described(vec![send(late(2)), receive(late(2))], "table5");
        let note = same.note.unwrap();
        assert!(
            note.contains("is 1.000, the profile has 0.9") && note.contains("cannot reach"),
            "{note}"
        );
    }
}
