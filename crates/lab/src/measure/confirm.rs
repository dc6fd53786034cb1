//! The paths by which outcomes come up, compared: a row for each path and kind of frame.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use linux::host::environment;
use linux::wifi::confirm::Path;
use linux::wifi::confirm::compare::{Comparison, Kind, Sample, Task, Told, compare};
use linux::wifi::{AdapterConfig, Seat};
use radio::Duration;
use serde::Serialize;

use super::adapter::{MeasureError, Plan, channel};
use crate::stats::Sorted;

/// Tries of injected frames: more than one, so that there is something to be told.
const TRIES: u8 = 4;

/// How many of those that can be held against the monitor's word agree with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Right {
    /// Agree.
    pub right: u64,
    /// Were held against it.
    pub of: u64,
}

/// Times from before a send until the outcome was read, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    /// Least.
    pub min_ns: f64,
    /// Median.
    pub median_ns: f64,
    /// 99th percentile; `None` if fewer than ten samples are beyond it.
    pub p99_ns: Option<f64>,
}

/// A path with a kind of frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// How the frames were sent.
    pub frames: &'static str,
    /// Which path.
    pub path: &'static str,
    /// It can tell of such frames, and was there.
    pub carries: bool,
    /// Frames sent.
    pub sent: u64,
    /// Of them the path told of.
    pub told: u64,
    /// Of them it told of more than once.
    pub told_again: u64,
    /// Of them, frames that no ACK came for, as the path tells.
    pub not_acked: u64,
    /// Of them, frames with more than one try; `None` where the path does not tell tries.
    pub tried_again: Option<u64>,
    /// Frames for which this path was waited for.
    pub awaited: u64,
    /// Of these.
    pub latency: Option<Latency>,
    /// The same divided by that of the monitor with this kind of frame: least, median, 99th percentile.
    pub to_monitor: Option<[Option<f64>; 3]>,
    /// Whether an ACK came.
    pub acked: Option<Right>,
    /// How many frames were on the air.
    pub tries: Option<Right>,
    /// Which of them at which rate: the sum of all series, and the rate of the first.
    pub series: Option<Right>,
}

/// All that was compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// The processor is emulated: its times are good for order and ratios only.
    pub emulated: bool,
    /// Centre frequency.
    pub channel_mhz: u16,
    /// Frames sent.
    pub sent: u64,
    /// Frames that the kernel did not take.
    pub refused: u64,
    /// These by kind and reason.
    pub refusals: BTreeMap<String, u64>,
    /// Why the device is not among the paths, if it is not.
    pub no_device: Option<String>,
    /// One for each kind and path.
    pub rows: Vec<Row>,
}

/// Compares the paths; of the plan radio, channel, station, rate, payload, period, number of frames and seat count.
///
/// # Errors
/// [`MeasureError`].
pub fn confirms(plan: &Plan, progress: &dyn Fn(u32), stop: &AtomicBool) -> Result<Compared, MeasureError> {
    plan.check_numbers()?;
    let channel_mhz = plan.channel_mhz.map_or_else(|| channel(&plan.radio), Ok)?;
    let task = Task {
        to: plan.to,
        count: plan.count,
        rate: plan.rate,
        tries: TRIES,
        payload: plan.payload,
        period: Duration::from_us(plan.period_us.into()),
    };
    let config = AdapterConfig::new(&plan.radio, channel_mhz);
    let seat: Seat = plan.seat;
    // The seat is that of a thread of its own, so that the caller keeps his.
    let compared = std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel();
        let work = scope.spawn(move || {
            seat.take()?;
            let tell = |n| {
                let _ = send.send(n);
            };
            compare(config, task, &tell, stop)
        });
        while let Ok(n) = receive.recv() {
            progress(n);
        }
        work.join().expect("comparing does not panic")
    })?;
    Ok(Compared {
        emulated: environment().is_emulated(),
        channel_mhz,
        sent: compared.samples.len() as u64,
        refused: compared.refused.values().sum(),
        refusals: compared.refused.clone(),
        no_device: compared.no_device.clone(),
        rows: rows(&compared),
    })
}

/// The rows, each kind with the monitor first.
fn rows(compared: &Comparison) -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in Kind::ALL {
        let samples: Vec<&Sample> = compared.samples.iter().filter(|s| s.kind == kind).collect();
        let monitor = latency(&samples, Path::Monitor);
        for path in Path::ALL {
            let carries =
                kind.paths().contains(&path) && !(path == Path::Device && compared.no_device.is_some());
            rows.push(row(&samples, kind, path, carries, monitor));
        }
    }
    rows
}

fn row(samples: &[&Sample], kind: Kind, path: Path, carries: bool, monitor: Option<Latency>) -> Row {
    let told = |s: &&Sample| s.told[path as usize];
    let latency = latency(samples, path);
    let ratio = |own: Option<f64>, other: Option<f64>| Some(own? / other?);
    let to_monitor = latency.zip(monitor).map(|(own, other)| {
        [
            Some(own.min_ns / other.min_ns),
            Some(own.median_ns / other.median_ns),
            ratio(own.p99_ns, other.p99_ns),
        ]
    });
    let against = |agrees: &dyn Fn(&Told, &Told) -> Option<bool>| {
        let pairs = samples
            .iter()
            .filter_map(|s| told(s).zip(s.told[Path::Monitor as usize]));
        let verdicts: Vec<bool> = pairs
            .filter_map(|(own, monitor)| agrees(&own, &monitor))
            .collect();
        let right = verdicts.iter().filter(|v| **v).count() as u64;
        (path != Path::Monitor && !verdicts.is_empty()).then_some(Right {
            right,
            of: verdicts.len() as u64,
        })
    };
    Row {
        frames: kind.name(),
        path: path.name(),
        carries,
        sent: samples.len() as u64,
        told: samples.iter().filter(|s| told(s).is_some()).count() as u64,
        told_again: samples
            .iter()
            .filter(|s| told(s).is_some_and(|t| t.again))
            .count() as u64,
        not_acked: samples
            .iter()
            .filter(|s| told(s).is_some_and(|t| !t.acked))
            .count() as u64,
        tried_again: {
            let tries: Vec<u16> = samples.iter().filter_map(|s| told(s)?.attempts).collect();
            (!tries.is_empty()).then_some(tries.iter().filter(|tries| **tries > 1).count() as u64)
        },
        awaited: samples.iter().filter(|s| s.awaited == path).count() as u64,
        latency,
        to_monitor,
        acked: against(&|own, monitor| Some(own.acked == monitor.acked)),
        tries: against(&|own, monitor| Some(own.attempts? == monitor.attempts?)),
        series: against(&|own, monitor| {
            let sum: u16 = own.series?.iter().map(|tries| u16::from(*tries)).sum();
            Some(Some(sum) == monitor.attempts && own.rate == monitor.rate)
        }),
    }
}

fn latency(samples: &[&Sample], path: Path) -> Option<Latency> {
    let awaited = samples.iter().filter(|s| s.awaited == path);
    let ns: Vec<u64> = awaited.filter_map(|s| s.latency_ns).collect();
    let carries_p99 = ns.len() >= 1_000;
    let all = Sorted::new(ns).summary()?;
    Some(Latency {
        min_ns: all.min,
        median_ns: all.p50,
        p99_ns: carries_p99.then_some(all.p99),
    })
}

#[cfg(test)]
mod tests {
    use frame::Rate;

    use super::*;

    fn told(acked: bool, attempts: u16, series: Option<[u8; 4]>) -> Option<Told> {
        Some(Told {
            acked,
            attempts: Some(attempts),
            rate: Some(Rate::OFDM_6),
            series,
            again: false,
        })
    }

    fn sample(awaited: Path, ns: u64, told: [Option<Told>; 4]) -> Sample {
        Sample {
            kind: Kind::Injected,
            awaited,
            latency_ns: Some(ns),
            told,
        }
    }

    #[test]
    fn each_path_is_held_against_the_monitor_on_the_same_frames() {
        let samples = vec![
            sample(
                Path::Monitor,
                1_000,
                [told(true, 3, None), None, None, told(true, 3, Some([2, 1, 0, 0]))],
            ),
            sample(
                Path::Device,
                700,
                [
                    told(true, 3, None),
                    None,
                    None,
                    told(false, 2, Some([2, 0, 0, 0])),
                ],
            ),
            // what the monitor has lost cannot be held against it
            sample(
                Path::Device,
                900,
                [None, None, None, told(true, 3, Some([3, 0, 0, 0]))],
            ),
        ];
        let compared = Comparison {
            samples,
            no_device: None,
            refused: BTreeMap::new(),
        };
        let rows = rows(&compared);
        assert_eq!(rows.len(), 12);
        let of = |frames, path| {
            rows.iter()
                .find(|r| (r.frames, r.path) == (frames, path))
                .unwrap()
        };
        let device = of("injected", "device");
        assert_eq!((device.sent, device.told, device.awaited), (3, 3, 2));
        assert_eq!((device.not_acked, device.tried_again), (1, Some(3)));
        let half = Some(Right { right: 1, of: 2 });
        assert_eq!((device.acked, device.tries, device.series), (half, half, half));
        assert_eq!(device.to_monitor, Some([Some(0.7), Some(0.7), None]));
        let monitor = of("injected", "monitor");
        assert_eq!(
            (monitor.told, monitor.acked, monitor.to_monitor.unwrap()[0]),
            (2, None, Some(1.0))
        );
        assert!(!of("injected", "nl80211").carries && !of("ordinary", "nl80211").carries);
        let management = of("management", "nl80211");
        assert_eq!(
            (management.carries, management.told, management.latency),
            (true, 0, None)
        );
        assert_eq!((management.not_acked, management.tried_again), (0, None));
    }

    #[test]
    fn a_device_that_is_not_there_carries_nothing() {
        let compared = Comparison {
            samples: Vec::new(),
            no_device: Some("no module".to_owned()),
            refused: BTreeMap::new(),
        };
        assert!(rows(&compared).iter().all(|r| r.path != "device" || !r.carries));
    }
}
