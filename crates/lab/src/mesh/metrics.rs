//! Numbers that judge several flows together, and one flow over time.

/// The goodput that stands for a flow that got nothing, in kb/s: one octet in a second (thesis, section 5.5.1).
pub const STARVED_KBPS: f64 = 0.008;

/// Sum of the decadic logarithms of the goodputs in kb/s (thesis, section 5.4).
pub fn utility(kbps: &[f64]) -> f64 {
    kbps.iter().map(|g| g.max(STARVED_KBPS).log10()).sum()
}

/// Standard deviation over mean, 0 if all are equal; the deviation of the population (thesis, section 5.2).
pub fn unfairness(values: &[f64]) -> f64 {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    if mean <= 0.0 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares / n).sqrt() / mean
}

/// Goodput in windows of `window_ns`, in kb/s, from the first delivery to the last. `delivered`: time in ns, octets.
pub fn over_time(delivered: &[(u64, u32)], window_ns: u64) -> Vec<f64> {
    let (Some(first), Some(last)) = (delivered.first(), delivered.last()) else {
        return Vec::new();
    };
    let windows = (last.0 - first.0) / window_ns + 1;
    let mut octets = vec![0_u64; windows as usize];
    for (at, n) in delivered {
        octets[((at - first.0) / window_ns) as usize] += u64::from(*n);
    }
    let seconds = window_ns as f64 / 1e9;
    octets.iter().map(|n| *n as f64 * 8.0 / 1e3 / seconds).collect()
}

/// Goodput in kb/s within `window_ns` before each instant from `from_ns + window_ns` to `to_ns`, `step_ns` apart; each with
/// its instant in ns. `delivered`: time in ns, octets, in order of time.
pub fn sliding(
    delivered: &[(u64, u32)],
    (from_ns, to_ns): (u64, u64),
    window_ns: u64,
    step_ns: u64,
) -> Vec<(u64, f64)> {
    let until = |at: u64| delivered.partition_point(|d| d.0 <= at);
    let mut all = Vec::new();
    let mut at = from_ns + window_ns;
    while at <= to_ns {
        let within = &delivered[until(at - window_ns)..until(at)];
        let octets: u64 = within.iter().map(|d| u64::from(d.1)).sum();
        all.push((at, octets as f64 * 8e6 / window_ns as f64));
        at += step_ns;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 5.1 of the thesis: Tahoe, default, aggressive and adaptive ATP on the stack topology.
    #[test]
    fn table_5_1() {
        let rows = [
            ([703.0, 1184.0, 480.0], 8.6015, 0.372),
            ([2246.0, 2483.0, 546.0], 9.4836, 0.491),
            ([966.0, 1992.0, 951.0], 9.2624, 0.374),
            ([2085.0, 2410.0, 875.0], 9.6431, 0.369),
        ];
        for (kbps, u, index) in rows {
            assert!((utility(&kbps) - u).abs() < 1e-4, "{}", utility(&kbps));
            assert!((unfairness(&kbps) - index).abs() < 5e-4, "{}", unfairness(&kbps));
        }
    }

    #[test]
    fn a_window_that_slides() {
        // 125 octets within 1 ms are 1 Mb/s
        let delivered = [(100, 125), (1_000_000, 125), (1_500_000, 250)];
        assert_eq!(
            sliding(&delivered, (0, 2_600_000), 1_000_000, 500_000),
            [
                (1_000_000, 2_000.0),
                (1_500_000, 3_000.0),
                (2_000_000, 2_000.0),
                (2_500_000, 0.0)
            ]
        );
        assert_eq!(sliding(&delivered, (0, 999_999), 1_000_000, 1), []);
    }

    #[test]
    fn edges() {
        assert_eq!(
            (unfairness(&[]), unfairness(&[0.0, 0.0]), unfairness(&[3.0, 3.0])),
            (0.0, 0.0, 0.0)
        );
        assert!((utility(&[0.0]) - 0.008_f64.log10()).abs() < 1e-12);
        assert_eq!(over_time(&[], 5), Vec::<f64>::new());
        assert_eq!(
            over_time(&[(10, 125), (11, 125), (30, 125)], 10),
            [200_000_000.0, 0.0, 100_000_000.0]
        );
    }
}
