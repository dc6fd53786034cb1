//! Our values for the rows that state constants, formulas and settings. Each is asked of what runs: of the constants of
//! [`Config`], of the function that the formula is in, of the meshes of a full run. The thesis' numbers are in its claims
//! alone.

use std::collections::BTreeSet;

use frame::Rate as PhyRate;
use protocols::transport::atp::meter::{Meter, Sample};
use protocols::transport::atp::rate::Rate;
use protocols::transport::hop::{Hop, HopConfig};
use radio::{Duration, Instant, Plane, Stamps};

use super::field::{self, Scene, What};
use super::figures::windows;
use super::plan::Plan;
use super::{Bed, Case, LOSS, Outcome};
use crate::mesh::Kind::{self, Adaptive, Aggressive, Default};
use crate::mesh::metrics::utility;
use crate::mesh::{Net, Routing};
use crate::reproduce::estimate::Estimate;
use crate::reproduce::values::Values;

/// Settings do not hang on the seed, and `--quick` changes some of them.
const FULL: Plan = Plan {
    seed: 0,
    quick: false,
};
/// Packets that the driver of row 1-53 sends until it asks for an interrupt, and that are queued at once under load. The
/// thesis tells neither.
const BATCH: u64 = 4;
const BURST: u64 = 20;

impl Values {
    /// All of them.
    pub(super) fn constants(&mut self) {
        let mut put = |id: &str, name: &str, value: f64| self.put(id, name, Estimate::exact(value));
        put("1-5", "silence", silence());
        put("1-5", "wait", wait());
        for (name, bed) in [("A", Bed::A(LOSS)), ("B", Bed::B)] {
            put("1-8", name, longest(bed));
        }
        put("1-11", "epoch", micros(config(Aggressive).epoch) / 1e6);
        put("1-11", "kappa", gain(Aggressive));
        put("1-12", "drops", packets_until_told(900, 1));
        put("1-12", "slower", packets_until_told(1_001, 0));
        put("1-12", "faster", packets_until_told(1, 0));
        put("1-12", "share", room());
        for hops in [1, 2, 5, 6] {
            let name = format!("h = {hops}");
            put("1-13", &name, quick_start_us(Adaptive, hops) / 1e3);
        }
        let starts = field::stack(Default).demands;
        for (name, n) in [("flow 2", 1), ("flow 3", 2)] {
            let after = starts[n].start_ns - starts[n - 1].start_ns;
            put("1-14", name, after as f64 / 1e9);
        }
        self.random_settings();
        self.measures();
    }

    /// Row 1-15.
    fn random_settings(&mut self) {
        let mut put = |name: &str, value: f64| self.put("1-15", name, Estimate::exact(value));
        let net = |what| {
            let (tries, kind) = (1, Default);
            Scene { what, tries, kind }.net(&FULL, FULL.seed)
        };
        let most = FULL.flows().iter().copied().max().unwrap_or(0);
        let (files, streams) = (net(What::Files(most)), net(What::Streams(most)));
        put("file", files.demands[0].octets as f64 / 1e6);
        let end_ns = streams.most_seconds * 1_000_000_000;
        let lengths = streams.demands.iter().map(|d| (end_ns - d.start_ns) as f64 / 1e9);
        put("stream", lengths.sum::<f64>() / streams.demands.len() as f64);
        if let PhyRate::Ofdm(rate) = files.rate {
            put("rate", f64::from(rate.mbps()));
        }
        put("power", files.tx_dbm);
        let found = files.routing == Routing::Olsr;
        let hops = field::longest_path(&files.places).filter(|_| found);
        put("path", f64::from(hops.unwrap_or(0)));
        put("runs", FULL.seeds() as f64);
        put("flows", files.demands.len() as f64);
    }

    /// Rows 1-16 to 1-18, and 1-53.
    fn measures(&mut self) {
        let mut put = |id: &str, name: &str, value: f64| self.put(id, name, Estimate::exact(value));
        let (window, step) = window_and_step();
        put("1-16", "window", window);
        put("1-16", "step", step);
        let kbps = |thousandths: u64| thousandths as f64 / 1e3;
        let enough = first(1_000_000, |n| outcome(kbps(n)).starved() == 0.0);
        put("1-17", "starved", kbps(enough));
        put("1-17", "instead", 10_f64.powf(utility(&[0.0])));
        let told = |ns: u64| {
            let mut hop = Hop::new(&HopConfig::default());
            hop.sample(Instant::ZERO, Duration::ZERO, Duration::from_ns(ns));
            hop.delay_us() > 0
        };
        put("1-18", "step", first(1_000_000, told) as f64 / 1e3);
        put("1-53", "load", inflation(BURST));
        put("1-53", "idle", inflation(1));
    }
}

/// In microseconds.
fn micros(time: Duration) -> f64 {
    time.as_ns() as f64 / 1e3
}

/// The constants of a variant.
fn config(kind: Kind) -> protocols::transport::atp::Config {
    kind.atp().expect("only asked of ATP")
}

/// The least number up to `most` of which it is so, if it is of all larger ones.
fn first(most: u64, is_so: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = low.midpoint(high);
        if is_so(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// A packet of a sender with a spacing of 1 ms.
fn sample(delay_us: u32, drops: u64) -> Sample {
    Sample {
        delay_us,
        spacing_us: 1_000,
        hops: 1,
        drops,
    }
}

/// The share of an epoch without data after which the receiver asks for all that is not acknowledged.
fn silence() -> f64 {
    let config = config(Default);
    let mut meter = Meter::new(&config);
    meter.data(Instant::ZERO, &sample(1_000, 0));
    let epoch_us = config.epoch.as_us();
    let quiet_us = first(epoch_us, |us| meter.is_quiet(Instant::from_us(us)));
    quiet_us as f64 / epoch_us as f64
}

/// The share of an epoch that the sender waits for feedback; a round trip is not known to it yet.
fn wait() -> f64 {
    let config = config(Default);
    let mut rate = Rate::new(&config);
    rate.quick_start(Instant::ZERO, 1_000, 1, false);
    rate.sent(Instant::ZERO, false);
    let until = rate.expect_at().unwrap_or(Instant::ZERO);
    micros(until.since(Instant::ZERO)) / micros(config.epoch)
}

/// Hops of the longest way through a testbed, along its routes.
fn longest(bed: Bed) -> f64 {
    let cases = FULL.cases();
    let all: BTreeSet<u32> = cases.iter().filter(|c| c.bed == bed).map(|c| c.hops).collect();
    let ways = all.into_iter().map(|hops| {
        let (flows, kind) = (1, Default);
        let case = Case {
            bed,
            hops,
            flows,
            kind,
        };
        way(&case.chain(FULL.octets(), 1).net())
    });
    ways.max().map_or(0.0, f64::from)
}

/// Hops of the first flow of a mesh with static routes.
fn way(net: &Net) -> u32 {
    let Routing::Static(next) = &net.routing else {
        return 0;
    };
    let (from, to) = (net.demands[0].from, net.demands[0].to);
    let steps = std::iter::successors(Some(from), |at| next[*at as usize][to as usize]);
    steps.skip(1).count() as u32
}

/// The share of the difference by which a feedback raises the rate.
fn gain(kind: Kind) -> f64 {
    let mut rate = Rate::new(&config(kind));
    rate.quick_start(Instant::ZERO, 10_000, 1, false);
    let before = rate.hz();
    rate.feedback(Instant::ZERO, 1_000, 1, false);
    (rate.hz() - before) / (1e6 / 1e3 - before)
}

/// Packets with this delay, and so many losses before each, until the receiver of adaptive ATP speaks; infinite if it does
/// not.
fn packets_until_told(delay_us: u32, drops: u64) -> f64 {
    let mut meter = Meter::new(&config(Adaptive));
    let spoke = (1_u32..=100).find(|_| meter.data(Instant::ZERO, &sample(delay_us, drops)));
    spoke.map_or(f64::INFINITY, f64::from)
}

/// Delays below this share of the spacing make it speak.
fn room() -> f64 {
    let least = first(1_000, |us| packets_until_told(us as u32, 0).is_infinite());
    least as f64 / f64::from(sample(0, 0).spacing_us)
}

/// The spacing after a probe whose way has a delay of 1 ms.
fn quick_start_us(kind: Kind, hops: u8) -> f64 {
    let mut rate = Rate::new(&config(kind));
    rate.quick_start(Instant::ZERO, 1_000, hops, false);
    1e6 / rate.hz()
}

/// For how long what was delivered shows in the plots of goodput, and from one of their points to the next, in ms.
fn window_and_step() -> (f64, f64) {
    let second = 1_000_000_000;
    let shown = windows(&[(second, 1)], (0, 3 * second));
    let step = (shown[1].0 - shown[0].0) as f64 / 1e6;
    let with = shown.iter().filter(|point| point.1 > 0.0).count();
    (with as f64 * step, step)
}

/// One flow.
fn outcome(kbps: f64) -> Outcome {
    Outcome {
        kbps: vec![kbps],
        starved_windows: Vec::new(),
        course: Vec::new(),
        withdrawn: 0,
        teeth: Vec::new(),
    }
}

/// D of a node that sends bursts of so many packets, if one interrupt stamps [`BATCH`] of them, or the last ones of its
/// queue, over D with an interrupt for each.
fn inflation(burst: u64) -> f64 {
    let delay_us = |batch: u64| {
        let mut hop = Hop::new(&HopConfig::default());
        let exchange = Duration::from_ms(1);
        let mut now = Instant::ZERO;
        for _ in 0..100 {
            let queued = now;
            for n in 0..burst {
                let last = ((n / batch + 1) * batch).min(burst);
                let told = queued + exchange.times(last);
                let mut stamps = Stamps::NONE;
                stamps.host(Plane::T4, queued);
                stamps.host(Plane::T5, told);
                hop.sent(told, queued, &stamps);
            }
            now = queued + exchange.times(2 * burst);
        }
        f64::from(hop.delay_us())
    };
    delay_us(BATCH) / delay_us(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_which_it_is_so() {
        assert_eq!(
            [0, 1, 7, 10].map(|least| first(10, |n| n >= least)),
            [0, 1, 7, 10]
        );
        assert_eq!(first(10, |_| false), 10);
    }

    #[test]
    fn what_the_receiver_says_nothing_of() {
        assert!(packets_until_told(950, 0).is_infinite());
        assert_eq!(packets_until_told(950, 2), 1.0);
    }

    /// Of a burst of five in batches of four the first four are late by 3, 2, 1 and 0 exchanges, the fifth is not.
    #[test]
    fn batches_make_delays_longer() {
        assert_eq!(inflation(1), 1.0);
        assert!(inflation(4) > 1.1, "{}", inflation(4));
        let (five, four) = (inflation(5), inflation(4));
        assert!(1.0 < five && five < four, "{five} {four}");
    }
}
