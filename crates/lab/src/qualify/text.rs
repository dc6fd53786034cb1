//! Numbers as people read them.

/// A time in ns with a unit that suits, three digits: `138 us`, `4.00 ms`.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        a if a >= 1e9 => (ns / 1e9, "s"),
        a if a >= 1e6 => (ns / 1e6, "ms"),
        a if a >= 1e3 => (ns / 1e3, "us"),
        _ => (ns, "ns"),
    };
    let digits = match value.abs() {
        a if a >= 100.0 || unit == "ns" => 0,
        a if a >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// A probability: `1.2e-4`, `0.031`, `0`.
pub fn probability(p: f64) -> String {
    if p == 0.0 {
        "0".into()
    } else if p < 0.001 {
        format!("{p:.1e}")
    } else {
        let digits = if p < 0.01 { 4 } else { 3 };
        format!("{p:.digits$}")
    }
}

/// A share in percent: `12.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A count with thousands: `46,000`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Rounds up to two significant digits, so that a recommended cycle can be said aloud.
pub fn round_up(ns: u64) -> u64 {
    let mut unit = 1;
    while ns / unit >= 100 {
        unit *= 10;
    }
    ns.div_ceil(unit) * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_well() {
        let times = [0.0, 950.0, 34_000.0, 138_483.0, 4e6, 12.345e9].map(time);
        assert_eq!(
            times,
            ["0 ns", "950 ns", "34.0 us", "138 us", "4.00 ms", "12.3 s"]
        );
        assert_eq!(
            [0.0, 1.234e-4, 0.0012, 0.25].map(probability),
            ["0", "1.2e-4", "0.0012", "0.250"]
        );
        assert_eq!(
            [0, 999, 46_000, 1_234_567].map(count),
            ["0", "999", "46,000", "1,234,567"]
        );
        assert_eq!(
            [7, 99, 101, 4_370_001, 4_400_000].map(round_up),
            [7, 99, 110, 4_400_000, 4_400_000]
        );
    }
}
