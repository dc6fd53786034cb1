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
