//! What is sent to compare the paths, and what each told of it.

use std::collections::BTreeMap;

use frame::{MacAddr, Rate};
use radio::Duration;

use super::Path;

/// How a frame is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Data, through a monitor interface, with rate and tries of its own: as a [`Host`](crate::wifi::Host) sends.
    Injected,
    /// Data, through an ordinary interface.
    Ordinary,
    /// An action frame, through nl80211.
    Management,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Injected, Kind::Ordinary, Kind::Management];

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Injected => "injected",
            Kind::Ordinary => "ordinary",
            Kind::Management => "management",
        }
    }

    /// The paths that tell of such frames.
    pub const fn paths(self) -> &'static [Path] {
        match self {
            Kind::Injected => &[Path::Monitor, Path::Device],
            Kind::Ordinary => &[Path::Monitor, Path::Status, Path::Device],
            Kind::Management => &[Path::Monitor, Path::Nl80211, Path::Device],
        }
    }
}

/// What to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The station that acknowledges, or does not.
    pub to: MacAddr,
    /// Frames, of all kinds together.
    pub count: u32,
    /// Rate of injected frames.
    pub rate: Rate,
    /// Tries of injected frames.
    pub tries: u8,
    /// Octets behind the headers, 16 to 1400.
    pub payload: usize,
    /// Time between two frames.
    pub period: Duration,
}

/// What a path has told of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// An ACK came.
    pub acked: bool,
    /// Frames on the air; `None` where the path does not tell.
    pub attempts: Option<u16>,
    /// Rate of the first series, where the path tells.
    pub rate: Option<Rate>,
    /// Tries of each series, where the path tells.
    pub series: Option<[u8; 4]>,
    /// It told more than once.
    pub again: bool,
}

/// One frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// How it was sent.
    pub kind: Kind,
    /// Which path was waited for.
    pub awaited: Path,
    /// From before the send until that path was read, ns; `None` if it did not tell in time.
    pub latency_ns: Option<u64>,
    /// What each path told, in the order of [`Path::ALL`].
    pub told: [Option<Told>; 4],
}

/// What came of it.
#[derive(Debug)]
pub struct Comparison {
    /// The frames, in the order in which they were sent.
    pub samples: Vec<Sample>,
    /// Why the device is not among the paths, if it is not.
    pub no_device: Option<String>,
    /// Frames that the kernel did not take, by kind and reason (`ordinary: Network is down (os error 100)`).
    pub refused: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monitor_is_there_for_all_and_nl80211_for_management_alone() {
        assert!(Kind::ALL.iter().all(|k| k.paths()[0] == Path::Monitor));
        let with = |path| {
            Kind::ALL
                .into_iter()
                .filter(|k| k.paths().contains(&path))
                .collect::<Vec<_>>()
        };
        assert_eq!(with(Path::Nl80211), [Kind::Management]);
        assert_eq!(with(Path::Status), [Kind::Ordinary]);
        assert_eq!(with(Path::Device), Kind::ALL);
    }
}
