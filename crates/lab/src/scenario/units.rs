//! Values of a scenario file. Each type takes in only what makes sense, so nothing has to be checked later.
//!
//! Durations and rates are text with a unit: `"4ms"`, `"54M"`. Everything else is a plain number whose unit is in
//! the name of its key: `tx_dbm = 16`, `radius_m = 1`.

use std::fmt;

use frame::Rate;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};

/// Longest duration: a year.
pub const LONGEST_NS: u64 = 365 * 86_400 * 1_000_000_000;

const UNITS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("min", 60e9),
    ("s", 1e9),
    ("h", 3_600e9),
];

/// A duration in ns, written `"250us"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// Reads a number and its unit; `None` if it is no duration between 0 and a year.
    pub fn parse(text: &str) -> Option<Time> {
        let (number, scale) = UNITS
            .iter()
            .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?.trim_end(), *scale)))?;
        if !number.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        let ns = number.parse::<f64>().ok()? * scale;
        (0.0..=LONGEST_NS as f64)
            .contains(&ns)
            .then(|| Time(ns.round() as u64))
    }

    /// In seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Time {
    /// In the largest unit of which it is one or more, exact: `"102.4ms"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, 9, "s"), (1_000_000, 6, "ms"), (1_000, 3, "us")];
        let (scale, digits, unit) = match units.into_iter().find(|(scale, ..)| self.0 >= *scale) {
            Some(found) => found,
            None if self.0 == 0 => units[0],
            None => return write!(f, "{}ns", self.0),
        };
        write!(f, "{}", self.0 / scale)?;
        let rest = format!("{:0digits$}", self.0 % scale);
        match rest.trim_end_matches('0') {
            "" => write!(f, "{unit}"),
            rest => write!(f, ".{rest}{unit}"),
        }
    }
}

/// A rate, written as in the rest of the project: `"54M"`, `"5.5Ms"` (short preamble), `"mcs7/20s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateText(pub Rate);

/// Implements reading and the schema of a type that is written as text.
macro_rules! text {
    ($type:ty, $what:literal, $pattern:literal, $parse:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl Visitor<'_> for V {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                        let parse: fn(&str) -> Option<$type> = $parse;
                        parse(text).ok_or_else(|| E::custom(format!("{text:?} is not {}", $what)))
                    }
                }
                d.deserialize_str(V)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $what, "pattern": $pattern })
            }
        }
    };
}

text!(
    Time,
    "a duration with its unit, \"4ms\" for example (ns, us, ms, s, min, h; from 0 to a year)",
    r"^[0-9.]+(e[0-9]+)? *(ns|us|ms|s|min|h)$",
    Time::parse
);
text!(
    RateText,
    "a rate: \"1M\" to \"54M\" (\"11Ms\": short preamble) or \"mcs0/20\" to \"mcs31/40s\" (s: short guard interval)",
    r"^([0-9.]+Ms?|mcs[0-9]+/(20|40)s?)$",
    |text| Rate::parse(text).map(RateText)
);

/// Declares a number with its range.
macro_rules! number {
    ($(#[$doc:meta])* $type:ident($inner:ty), $low:expr, $high:expr, $json:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
        pub struct $type(pub $inner);

        impl $type {
            /// Smallest value.
            pub const LOW: $inner = $low;
            /// Largest value.
            pub const HIGH: $inner = $high;
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl Visitor<'_> for V {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} from {} to {}", article($json), <$type>::LOW, <$type>::HIGH)
                    }
                    fn visit_i64<E: Error>(self, x: i64) -> Result<$type, E> {
                        // every range lies within what a double holds exactly
                        if (<$type>::LOW as f64..=<$type>::HIGH as f64).contains(&(x as f64)) {
                            Ok($type(x as $inner))
                        } else {
                            Err(E::custom(format!("{x} is not {} from {} to {}", article($json), <$type>::LOW, <$type>::HIGH)))
                        }
                    }
                    fn visit_u64<E: Error>(self, x: u64) -> Result<$type, E> {
                        self.visit_i64(i64::try_from(x).unwrap_or(i64::MAX))
                    }
                    fn visit_f64<E: Error>(self, x: f64) -> Result<$type, E> {
                        let whole = $json == "number" || x.fract() == 0.0;
                        if whole && (<$type>::LOW as f64..=<$type>::HIGH as f64).contains(&x) {
                            Ok($type(x as $inner))
                        } else {
                            Err(E::custom(format!("{} is not {} from {} to {}", Short(x), article($json), <$type>::LOW, <$type>::HIGH)))
                        }
                    }
                }
                d.deserialize_any(V)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": $json, "minimum": <$type>::LOW, "maximum": <$type>::HIGH })
            }
        }
    };
}

/// A number as people write it: large and small ones with an exponent.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.abs() {
            0.0 | 1e-6..1e15 => self.0.fmt(f),
            _ => write!(f, "{:e}", self.0),
        }
    }
}

fn article(json: &str) -> &'static str {
    if json == "number" {
        "a number"
    } else {
        "a whole number"
    }
}

number!(
    /// Nodes of a group.
    Count(u32), 1, 10_000, "integer"
);
number!(
    /// A probability or a share.
    Share(f64), 0.0, 1.0, "number"
);
number!(
    /// The probability with which a guard covers what it is for.
    GuardProbability(f64), *crate::guard::PROBABILITIES.start(), *crate::guard::PROBABILITIES.end(), "number"
);
number!(
    /// A power in dBm, a ratio or a loss in dB.
    Decibel(f64), -300.0, 300.0, "number"
);
number!(
    /// A power in milliwatts.
    Milliwatts(u32), 0, 100_000, "integer"
);
number!(
    /// A coordinate in metres.
    Metres(f64), -1e6, 1e6, "number"
);

number!(
    /// A speed in metres per second.
    Speed(f64), 0.01, 1e3, "number"
);
number!(
    /// A distance in metres.
    Distance(f64), 0.0, 1e6, "number"
);

/// A place: `[x, y]` in metres, eastwards and northwards.
#[derive(Clone, Copy, PartialEq, Debug, JsonSchema)]
pub struct Point(pub [Metres; 2]);

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = Point;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a place in metres, [2, 0.5] for example")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Point, A::Error> {
                let mut place = [Metres(0.0); 2];
                for (n, x) in place.iter_mut().enumerate() {
                    *x = seq
                        .next_element()?
                        .ok_or_else(|| A::Error::invalid_length(n, &self))?;
                }
                match seq.next_element::<IgnoredAny>()? {
                    Some(_) => Err(A::Error::invalid_length(3, &self)),
                    None => Ok(Point(place)),
                }
            }
        }
        d.deserialize_any(V)
    }
}
number!(
    /// How many ppm a clock is fast.
    Ppm(f64), -100_000.0, 100_000.0, "number"
);
number!(
    /// Octets of an MSDU with the 8 octets of LLC/SNAP, as 802.11 counts them. The first 16 of the others are the
    /// header of the payload.
    Octets(u32), 24, 2_304, "integer"
);
number!(
    /// Tries of one frame.
    Tries(u8), 1, 255, "integer"
);
number!(
    /// A number of frames, or a threshold in octets.
    Small(u16), 1, 65_535, "integer"
);
number!(
    /// A number of time units of 1024 us, or none.
    TimeUnits(u16), 0, 65_535, "integer"
);
number!(
    /// AIFSN.
    Aifsn(u8), 1, 15, "integer"
);
number!(
    /// A contention window: 2^n - 1 up to 32767 by the standard; others are allowed.
    Window(u16), 0, 32_767, "integer"
);
number!(
    /// Number of a channel.
    ChannelNumber(u8), 1, 196, "integer"
);
number!(
    /// Number of an adapter of a node.
    AdapterNumber(u8), 0, 7, "integer"
);
number!(
    /// A path-loss exponent.
    Exponent(f64), 0.1, 10.0, "number"
);
number!(
    /// A seed: any whole number up to 2^53, because that is what JSON can hold.
    Seed(u64), 0, 9_007_199_254_740_992, "integer"
);
number!(
    /// Ticks in a second.
    Hertz(u32), 1, 10_000, "integer"
);
number!(
    /// A number of timers.
    Timers(u32), 0, 1_000_000, "integer"
);
number!(
    /// Size of a file in MiB.
    Mebibytes(u32), 0, 1_048_576, "integer"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ns) in [
            ("4ms", 4_000_000),
            ("250us", 250_000),
            ("0.5 s", 500_000_000),
            ("10s", 10_000_000_000),
            ("1min", 60_000_000_000),
            ("0ns", 0),
            ("51200ms", 51_200_000_000),
            ("1e3us", 1_000_000),
        ] {
            assert_eq!(Time::parse(text), Some(Time(ns)), "{text}");
        }
        for text in [
            "",
            "4",
            "ms",
            "-4ms",
            "4 parsecs",
            "nanms",
            "infs",
            "1e30h",
            "4mss",
            "4ms4",
            "366000000h",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
        assert_eq!(Time(250_000).to_string(), "250us");
        assert_eq!(Time(2_000_000_000).to_string(), "2s");
    }
}
