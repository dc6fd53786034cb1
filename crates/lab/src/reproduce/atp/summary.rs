//! What is kept of one run.

use super::{feedback, recovery};
use crate::mesh::Ended;
use crate::mesh::metrics::{over_time, unfairness};

/// The window of instantaneous goodput (thesis, section 5.1.1).
const WINDOW_NS: u64 = 200_000_000;

/// What is kept of one run. Delays and rates are of its first flow.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Goodput of each flow, kb/s.
    pub kbps: Vec<f64>,
    /// Standard deviation over mean of the flows' goodputs.
    pub unfairness: f64,
    /// Longest D_max that the receiver saw, ms.
    pub most_delay_ms: Option<f64>,
    /// Lowest rate of the sender after its first feedback, Mb/s of octets of 1448.
    pub least_rate_mbps: Option<f64>,
    /// Rate of quick-start over the rate that was reached on average.
    pub start_ratio: Option<f64>,
    /// Standard deviation over mean of goodput in windows of 200 ms.
    pub goodput_variation: Option<f64>,
    /// The same of the sender's rate, feedback by feedback.
    pub rate_variation: Option<f64>,
    /// Longest time between two feedbacks at the sender, s.
    pub longest_gap_s: Option<f64>,
    /// Longest time that a feedback was on its way, s.
    pub slowest_feedback_s: Option<f64>,
    /// Feedbacks of each recovery from a rate that was far too low.
    pub recoveries: Vec<u32>,
    /// Most feedbacks that came to the sender in a cluster.
    pub feedback_together: Option<u64>,
}

/// Bits of content in a packet.
pub const PACKET_BITS: f64 = 1_448.0 * 8.0;

fn mbps(spacing_us: u32) -> f64 {
    PACKET_BITS / f64::from(spacing_us.max(1))
}

impl Summary {
    /// Of all flows of a run.
    pub fn of(ended: &[Ended]) -> Summary {
        let kbps: Vec<f64> = ended.iter().map(Ended::goodput_kbps).collect();
        let mut summary = Summary {
            unfairness: unfairness(&kbps),
            kbps,
            ..Summary::default()
        };
        let Some(first) = ended.first() else {
            return summary;
        };
        let most = first.received.delays_us.iter().map(|d| d.1).max();
        summary.most_delay_ms = most.map(|us| f64::from(us) / 1e3);
        let rates: Vec<f64> = first.sent.spacings_us.iter().map(|s| mbps(s.1)).collect();
        summary.least_rate_mbps = rates.iter().skip(1).copied().reduce(f64::min);
        let reached = first.goodput_kbps() / 1e3;
        summary.start_ratio = rates.first().filter(|_| reached > 0.0).map(|r| r / reached);
        // a last window that is not full says nothing
        let windows = over_time(&first.received.delivered, WINDOW_NS);
        if let [full @ .., _] = &windows[..]
            && full.len() > 1
        {
            summary.goodput_variation = Some(unfairness(full));
        }
        summary.rate_variation = (rates.len() > 2).then(|| unfairness(&rates[1..]));
        let gaps = first.sent.spacings_us.windows(2).map(|w| w[1].0 - w[0].0);
        summary.longest_gap_s = gaps.max().map(|ns| ns as f64 / 1e9);
        let slowest = feedback::slowest(first);
        summary.slowest_feedback_s = slowest.map(|(sent, came)| (came - sent) as f64 / 1e9);
        summary.recoveries = recovery::recoveries(&first.sent);
        summary.feedback_together = feedback::most_together(first);
        summary
    }

    /// Mean goodput of the flows, kb/s.
    pub fn mean_kbps(&self) -> f64 {
        self.kbps.iter().sum::<f64>() / self.kbps.len().max(1) as f64
    }
}
