//! One scenario file, the simulator and the real stack side by side.

use super::*;
use frame::{AccessCategory, Rate};
use lab::run;
use linux::wifi::Submission;
use protocols::mac::data::Identity;
use protocols::mac::sender::{QueueRule, Sender, SenderConfig};
use radio::{Duration, MAX_FRAME_OCTETS, Msdu, Queue, TxHow};
use sim::rng::{Cause, Stream};

/// Payload of scenarios/hidden-nodes.toml: 1000 octets less LLC and SNAP.
const PAYLOAD: usize = 992;
const MEAN_NS: f64 = 2e6;
const SECONDS: u64 = 10;
const SEEDS: u64 = 10;

/// What `pattern.poisson` and the latencies of a run are, for a station of the kernel.
struct Poisson {
    to: MacAddr,
    stream: Stream,
    next: Option<Instant>,
    until: Instant,
    submitted: u64,
    latencies_ns: Vec<u64>,
}

impl Application for Poisson {
    fn due(&self) -> Option<Instant> {
        self.next
    }

    fn take(&mut self, now: Instant, payload: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission> {
        let at = self.next.filter(|at| *at <= now)?;
        let next = at + Duration::from_ns(self.stream.exponential(MEAN_NS) as u64);
        self.next = (next < self.until).then_some(next);
        self.submitted += 1;
        payload[..PAYLOAD].fill(0);
        payload[..8].copy_from_slice(&now.as_ns().to_le_bytes());
        Some(Submission {
            peer: self.to,
            category: AccessCategory::BestEffort,
            deadline: None,
            octets: PAYLOAD,
        })
    }

    fn deliver(&mut self, now: Instant, msdu: Msdu<'_>) {
        let sent = u64::from_le_bytes(*msdu.payload.first_chunk().unwrap());
        self.latencies_ns.push(now.as_ns() - sent);
    }
}

/// Throughput in Mb/s, share lost, tries for each MSDU, median latency and its 99th percentile in us.
type Row = [f64; 5];
const NAMES: [&str; 5] = [
    "throughput, Mb/s",
    "lost",
    "tries for an MSDU",
    "latency p50, us",
    "latency p99, us",
];

fn simulated(scenario: &Scenario, seed: u64) -> Row {
    let run = run::run(scenario, seed, None, &AtomicBool::new(false), |_| ()).unwrap();
    let entry = &run.result.traffic[0];
    let latency = entry.latency_us.unwrap();
    let tries: u64 = run.counters.iter().flatten().map(|c| c.tx_frames).sum();
    [
        run.result.metrics["throughput_mbps"],
        1.0 - entry.delivered as f64 / entry.submitted as f64,
        tries as f64 / entry.submitted as f64,
        latency[0],
        latency[1],
    ]
}

fn real(scenario: &Scenario, seed: u64) -> Row {
    let (done, summary) = under(scenario, seed, || {
        let adapters = radios(3);
        let addresses = addresses(&adapters);
        let start = Host::now() + Duration::from_ms(20);
        let until = start + Duration::from_ms(1_000 * SECONDS);
        let station = |(i, adapter): (usize, Adapter)| {
            let identity = match i {
                0 => Identity::access_point(addresses[0]),
                _ => Identity::station(addresses[i], addresses[0]),
            };
            let mut config = SenderConfig::new(identity, Rate::OFDM_24);
            (config.how, config.qos) = (TxHow::multi_shot(Rate::OFDM_24, 7), false);
            config.queue = QueueRule::Fixed(Queue::BestEffort);
            let app = Poisson {
                to: addresses[0],
                stream: Stream::new(seed, i as u64, Cause::Traffic),
                next: (i > 0).then_some(start),
                until,
                submitted: 0,
                latencies_ns: Vec::new(),
            };
            (adapter, Sender::<32>::new(config), app)
        };
        all(
            adapters.into_iter().enumerate().map(station).collect(),
            until + Duration::from_ms(200),
        )
    });
    assert!(done.iter().all(|d| d.counters.refused + d.counters.unknown == 0));
    let submitted: u64 = done.iter().map(|d| d.app.submitted).sum();
    let mut latencies = done[0].app.latencies_ns.clone();
    latencies.sort_unstable();
    let quantile = |p: f64| latencies[((latencies.len() as f64 * p).ceil() as usize).max(1) - 1] as f64 / 1e3;
    let delivered = latencies.len() as f64;
    [
        delivered * (PAYLOAD + 8) as f64 * 8.0 / (SECONDS as f64 * 1e6),
        1.0 - delivered / submitted as f64,
        summary.total.tries as f64 / submitted as f64,
        quantile(0.5),
        quantile(0.99),
    ]
}

/// Two hidden stations, who collide a lot: each number of the kernel's run lies where one more run of the simulator
/// would, with a confidence of 99.9 %.
#[test]
fn simulator_against_the_real_stack() {
    let Some(_lab) = lab(3) else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/hidden-nodes.toml");
    let scenario = Scenario::open(&path, &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.duration_ns(), SECONDS * 1_000_000_000);
    let real = real(&scenario, 1);
    let runs: Vec<Row> = (1..=SEEDS).map(|seed| simulated(&scenario, seed)).collect();
    let n = SEEDS as f64;
    eprintln!("| scenarios/hidden-nodes.toml | real stack | simulator |\n| --- | --- | --- |");
    let mut outside = Vec::new();
    for (i, name) in NAMES.into_iter().enumerate() {
        let mean = runs.iter().map(|r| r[i]).sum::<f64>() / n;
        let variance = runs.iter().map(|r| (r[i] - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // Student's t with 9 degrees of freedom at 99.9 %, two-sided
        let half = 4.781 * (variance * (1.0 + 1.0 / n)).sqrt();
        eprintln!("| {name} | {:.4} | {mean:.4} +- {half:.4} |", real[i]);
        if (real[i] - mean).abs() > half {
            outside.push(name);
        }
    }
    assert!(outside.is_empty(), "outside their intervals: {outside:?}");
}
