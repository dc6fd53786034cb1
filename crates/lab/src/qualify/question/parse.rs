//! The parts of a question as text, as they stand on the command line.

use super::{Interference, Link, Offsets, Phy, Rate, per_split};

/// Reads `4ms`, `500us`, `1.5s`, `2000000ns` as ns.
///
/// # Errors
/// One sentence.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a time: write for example 4ms, 500us or 1s");
    let text = text.trim();
    let digits = text
        .find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E')
        .ok_or_else(wrong)?;
    let unit = match &text[digits..] {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        _ => return Err(wrong()),
    };
    let value: f64 = text[..digits].trim().parse().map_err(|_| wrong())?;
    let ns = value * unit;
    if !(1.0..=1e18).contains(&ns) {
        return Err(format!(
            "'{text}' is not between 1 ns and 1e9 s: write for example 4ms"
        ));
    }
    Ok(ns.round() as u64)
}

/// Reads `a`, `b`, `g`, `n` (5 GHz) or `n2.4`.
///
/// # Errors
/// One sentence.
pub fn parse_phy(text: &str) -> Result<Phy, String> {
    match text {
        "a" => Ok(Phy::A),
        "b" => Ok(Phy::B),
        "g" => Ok(Phy::G),
        "n" | "n5" => Ok(Phy::N5),
        "n2.4" => Ok(Phy::N2_4),
        _ => Err(format!(
            "'{text}' is not a PHY: choose a, b, g, n (5 GHz) or n2.4"
        )),
    }
}

/// Reads `none`, `even` or `random`.
///
/// # Errors
/// One sentence.
pub fn parse_offsets(text: &str) -> Result<Offsets, String> {
    match text {
        "none" => Ok(Offsets::None),
        "even" => Ok(Offsets::Even),
        "random" => Ok(Offsets::Random),
        _ => Err(format!(
            "'{text}' is not a set of offsets: choose none, even or random"
        )),
    }
}

/// Reads a rate as reports write it.
///
/// # Errors
/// One sentence.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    Rate::parse(text).ok_or_else(|| format!("'{text}' is not a rate: write for example 54M, 11M or mcs7/20"))
}

/// Reads `2e-4` (split as in the paper) or `1e-3,1e-4` (data, ACK).
///
/// # Errors
/// One sentence.
pub fn parse_per(text: &str) -> Result<Link, String> {
    let wrong = || {
        format!("'{text}' is not a loss probability: write for example 2e-4, or 1e-3,1e-4 for data and ACK")
    };
    let number = |t: &str| {
        let x = t.trim().parse::<f64>().ok();
        x.filter(|x| (0.0..1.0).contains(x)).ok_or_else(wrong)
    };
    match text.split_once(',') {
        None => Ok(per_split(number(text)?)),
        Some((data, ack)) => Ok(Link::Per {
            data: number(data)?,
            ack: number(ack)?,
        }),
    }
}

/// Reads a ratio in dB, 0 to 60.
///
/// # Errors
/// One sentence.
pub fn parse_snr(text: &str) -> Result<Link, String> {
    let db = text.trim_end_matches("dB").trim().parse::<f64>().ok();
    match db.filter(|x| (0.0..=60.0).contains(x)) {
        Some(db) => Ok(Link::SnrDb(db)),
        None => Err(format!(
            "'{text}' is not a signal-to-noise ratio: write 0 to 60, in dB"
        )),
    }
}

/// Reads `none`, or one or more of `load=20%`, `probes=50/s`, `noise=5%`, separated by commas.
///
/// # Errors
/// One sentence.
pub fn parse_interference(text: &str) -> Result<Interference, String> {
    let mut all = Interference::default();
    if text == "none" {
        return Ok(all);
    }
    for part in text.split(',') {
        let wrong = || {
            format!(
                "'{part}' is not an interference: write none, load=20%, probes=50/s or noise=5%, several with commas"
            )
        };
        let (name, value) = part.split_once('=').ok_or_else(wrong)?;
        let number = |t: &str| {
            t.trim()
                .parse::<f64>()
                .ok()
                .filter(|x| x.is_finite() && *x >= 0.0)
        };
        let percent = || -> Result<f64, String> {
            let share = number(value.trim_end_matches('%')).ok_or_else(wrong)? / 100.0;
            if share > 0.95 {
                return Err(format!("'{part}': at most 95% can be taken by others"));
            }
            Ok(share)
        };
        match name.trim() {
            "load" => all.load = percent()?,
            "noise" => all.noise = percent()?,
            "probes" => {
                let rate = number(value.trim_end_matches("/s")).ok_or_else(wrong)?;
                if rate > 10_000.0 {
                    return Err(format!("'{part}': at most 10000 probe requests per second"));
                }
                all.probes_per_s = rate;
            }
            _ => return Err(wrong()),
        }
    }
    Ok(all)
}
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times() {
        for (text, ns) in [
            ("4ms", 4_000_000),
            ("500us", 500_000),
            ("1.5s", 1_500_000_000),
            ("7 ns", 7),
            ("1e3us", 1_000_000),
        ] {
            assert_eq!(parse_time(text), Ok(ns));
        }
        for bad in ["", "4", "ms", "-4ms", "0ms", "4 min", "1e30s", "nanms", "infs"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn offsets() {
        assert_eq!(parse_offsets("even"), Ok(Offsets::Even));
        assert!(
            parse_offsets("Even")
                .unwrap_err()
                .contains("none, even or random")
        );
    }

    #[test]
    fn links_and_interference() {
        let Link::Per { data, ack } = parse_per("2.04e-4").unwrap() else {
            panic!("a PER")
        };
        // Table V: 4.37e-5 and 1.60e-4
        assert!((data - 4.37e-5).abs() < 1e-7 && (ack - 1.60e-4).abs() < 1e-6);
        assert_eq!(parse_per("0.1,0"), Ok(Link::Per { data: 0.1, ack: 0.0 }));
        assert_eq!(parse_snr("20dB"), Ok(Link::SnrDb(20.0)));
        for bad in ["1", "-1", "x", "0.1,2", ""] {
            assert!(parse_per(bad).is_err(), "{bad}");
        }
        assert!(parse_snr("61").is_err() && parse_snr("nan").is_err());
        let i = parse_interference("load=20%,probes=50/s,noise=5%").unwrap();
        assert_eq!((i.load, i.probes_per_s, i.noise), (0.2, 50.0, 0.05));
        assert!(!parse_interference("none").unwrap().is_some());
        for bad in [
            "",
            "load",
            "load=x%",
            "load=99%",
            "probes=1e9/s",
            "rain=3",
            "noise=-1%",
        ] {
            assert!(parse_interference(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text(text in "\\PC{0,12}") {
            let _ = (parse_time(&text), parse_per(&text), parse_snr(&text), parse_interference(&text));
            let _ = (parse_rate(&text), parse_phy(&text), parse_offsets(&text));
        }
    }
}
