//! The numbers of a run that are compared.

use serde::{Deserialize, Serialize};

/// Half an interval of a latency is at least this, us. From the submission to the delivery four hands take part: source,
/// sender, air, receiver. Each reads the clock of the lab twice, which has steps of 256 ns and goes on by one, and waits for a
/// timer that is late by one: 4 x 3 x 0.256.
pub const FINEST_LATENCY_US: f64 = 3.072;
/// Numbers that all scenarios have; the others are of some layers.
pub(super) const OF_ALL: usize = 7;

/// What is compared; after the warm-up, and `None` where nothing arrived.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Numbers {
    /// MSDUs with LLC/SNAP that arrived, Mb/s.
    pub throughput_mbps: Option<f64>,
    /// MSDUs that did not, of those submitted before the last tenth of the measured time: what is under way at the end is
    /// neither lost nor delivered.
    pub lost_ratio: Option<f64>,
    /// Frames on the air for each MSDU; beacons count.
    pub tries: Option<f64>,
    /// From submission to delivery, us.
    pub latency_p50_us: Option<f64>,
    /// The same at the quantile 0.99.
    pub latency_p99_us: Option<f64>,
    /// From the request to the confirm of frames that were on the air, us: the mean, ...
    pub confirm_mean_us: Option<f64>,
    /// ... and the standard deviation, which tells how punctual they were. Of nodes whose confirms `sdmac run` counts.
    pub confirm_sd_us: Option<f64>,
    /// Of slots of a schedule that had a frame: those that were over when the node woke up for them, and those whose frame was not on the air
    /// by the end of the guard.
    pub missed_slots: Option<f64>,
    /// Of nodes that roam: hand-overs, ...
    pub handovers: Option<f64>,
    /// ... requests without an ACK in them, ...
    pub missed_in_handover: Option<f64>,
    /// ... and the longest time without an ACK in one, us.
    pub gap_max_us: Option<f64>,
    /// Of hosts of cells: messages sent over a border.
    pub crossed: Option<f64>,
}

impl Numbers {
    /// Each with the least half of an interval that means something; the first [`OF_ALL`] are those of all scenarios.
    pub(super) fn all(&self) -> [(&'static str, Option<f64>, f64); 12] {
        [
            ("throughput, Mb/s", self.throughput_mbps, 0.0),
            ("MSDUs lost", self.lost_ratio, 0.0),
            ("tries for each MSDU", self.tries, 0.0),
            ("latency, median, us", self.latency_p50_us, FINEST_LATENCY_US),
            ("latency, p99, us", self.latency_p99_us, FINEST_LATENCY_US),
            (
                "request to confirm, mean, us",
                self.confirm_mean_us,
                FINEST_LATENCY_US,
            ),
            (
                "request to confirm, deviation, us",
                self.confirm_sd_us,
                FINEST_LATENCY_US,
            ),
            ("slots late or lost", self.missed_slots, 0.0),
            ("hand-overs", self.handovers, 0.0),
            ("missed in hand-overs", self.missed_in_handover, 0.0),
            ("longest gap, us", self.gap_max_us, FINEST_LATENCY_US),
            ("frames over borders", self.crossed, 0.0),
        ]
    }
}
