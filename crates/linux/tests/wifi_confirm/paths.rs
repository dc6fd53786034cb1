//! The four paths on the same frames.

use std::collections::BTreeMap;

use linux::wifi::confirm::compare::{Kind, Sample, Task, compare};

use super::medium::{Fate, marked, with_fates};
use super::*;

/// What the medium has done is the truth for all four paths, on frames of three kinds.
#[test]
fn all_paths_tell_the_same_of_the_same_frames() {
    let Some(bench) = bench() else { return };
    let task = Task {
        to: TO,
        count: 180,
        rate: Rate::OFDM_24,
        tries: TRIES,
        payload: 50,
        period: Duration::from_us(500),
    };
    let config = AdapterConfig::new(&bench.radios.names[0], CHANNEL);
    let stop = AtomicBool::new(false);
    let compared = with_medium(|| compare(config, task, &|_| (), &stop).unwrap());
    assert_eq!(
        (compared.samples.len(), compared.refused, compared.no_device),
        (180, BTreeMap::new(), None)
    );
    for (n, s) in compared.samples.iter().enumerate() {
        let monitor = s.told[Path::Monitor as usize].unwrap_or_else(|| panic!("{n}: {s:?}"));
        for path in Path::ALL {
            let told = s.told[path as usize];
            assert_eq!(
                told.is_some(),
                s.kind.paths().contains(&path),
                "{n} {path:?}: {s:?}"
            );
            let Some(told) = told else { continue };
            assert_eq!(
                (told.acked, told.again),
                (monitor.acked, false),
                "{n} {path:?}: {s:?}"
            );
            assert!(
                told.attempts.is_none_or(|a| Some(a) == monitor.attempts),
                "{n} {path:?}: {s:?}"
            );
        }
        let device = s.told[Path::Device as usize].unwrap();
        let sum: u8 = device.series.unwrap().iter().sum();
        assert_eq!(
            (Some(u16::from(sum)), device.rate),
            (monitor.attempts, monitor.rate),
            "{n}"
        );
        assert!(s.latency_ns.is_some());
        if s.kind == Kind::Injected {
            // Their sequence numbers are ours, so it is known what became of them.
            let (tries, acked) = fate(n as u16);
            assert_eq!(
                (monitor.acked, monitor.attempts),
                (acked, Some(tries.into())),
                "{n}"
            );
        }
    }
    for kind in Kind::ALL {
        let acked = |s: &&Sample| s.told[0].unwrap().acked;
        let of: Vec<&Sample> = compared.samples.iter().filter(|s| s.kind == kind).collect();
        let count = of.iter().copied().filter(|s| acked(s)).count();
        assert!(
            (1..of.len()).contains(&count),
            "{kind:?}: some are lost and some are not, {count} of {}",
            of.len()
        );
    }
}

/// Of every nine frames of a kind three in a row are acknowledged, three are not, and of three nothing is ever told: so each
/// path is waited for in each case, of as many as three that take turns.
fn in_turn(frame: &[u8]) -> Fate {
    match marked(frame).map(|n| n / 9 % 3) {
        Some(0) | None => Some((2, true)),
        Some(1) => Some((TRIES, false)),
        Some(_) => None,
    }
}

/// Each path tells acked from not acked, and of a frame whose status is lost it tells nothing, however long one waits: there a
/// host says unknown. Needs no module; where there is one, it is held to the same.
#[test]
fn each_path_tells_what_the_medium_tells_and_nothing_of_what_is_lost() {
    let Some(radios) = simulated_radios(1) else { return };
    let task = Task {
        to: TO,
        count: 54,
        rate: Rate::OFDM_24,
        tries: TRIES,
        payload: 50,
        period: Duration::from_us(500),
    };
    let config = AdapterConfig::new(&radios.names[0], CHANNEL);
    let stop = AtomicBool::new(false);
    let compared = with_fates(in_turn, || compare(config, task, &|_| (), &stop).unwrap());
    assert_eq!((compared.samples.len(), compared.refused.is_empty()), (54, true));
    let has_device = compared.no_device.is_none();
    for (n, s) in compared.samples.iter().enumerate() {
        let expect = [Some(true), Some(false), None][n / 9 % 3];
        for path in s
            .kind
            .paths()
            .iter()
            .filter(|p| **p != Path::Device || has_device)
        {
            let told = s.told[*path as usize];
            assert_eq!(told.map(|t| t.acked), expect, "{n} {path:?}: {s:?}");
            let counts = told.and_then(|t| t.attempts);
            let tries = if expect == Some(true) { 2 } else { u16::from(TRIES) };
            assert!(counts.is_none_or(|c| c == tries), "{n} {path:?}: {s:?}");
        }
        assert_eq!(s.latency_ns.is_some(), expect.is_some(), "{n}: {s:?}");
    }
    let of = |path: &Path| {
        let awaited = compared.samples.iter().filter(|s| s.awaited == *path);
        awaited.filter(|s| s.latency_ns.is_none()).count()
    };
    let awaited = Path::ALL.iter().filter(|p| **p != Path::Device || has_device);
    assert!(awaited.clone().all(|p| of(p) > 0), "each was waited for in vain");
}

#[test]
fn paths_that_carry_no_requests_are_refused() {
    let Some(radios) = simulated_radios(1) else { return };
    for path in [Path::Status, Path::Nl80211] {
        let adapter = Adapter::open(AdapterConfig::new(&radios.names[0], CHANNEL)).unwrap();
        let config = HostConfig {
            confirm: path,
            ..HostConfig::default()
        };
        let error = Host::new(vec![adapter], config).unwrap_err().to_string();
        assert!(
            error.contains(path.name()) && error.contains("monitor or device"),
            "{error}"
        );
    }
}
