//! The host profile: a TOML file with what is known about one computer and its adapter.
//!
//! A profile says for every part of the way from plane t1 to plane t9 how long it takes, and whether that was
//! measured or assumed. Six profiles are built in; `sdmac measure --host` writes others.

use super::component::Component;
use super::error::ProfileError;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The first line of every profile: `format = "sdmac-host-profile"`.
const FORMAT: &str = "sdmac-host-profile";
/// The version of the format that this program reads and writes.
pub(super) const VERSION: i64 = 1;
/// No profile file is longer than this, in octets.
const MAX_FILE_OCTETS: u64 = 16 << 20;

/// The built-in profiles, by name.
const BUILT_IN: [(&str, &str); 6] = [
    ("ideal", include_str!("profiles/ideal.toml")),
    (
        "table4-baseline-idle",
        include_str!("profiles/table4-baseline-idle.toml"),
    ),
    (
        "table4-baseline-io",
        include_str!("profiles/table4-baseline-io.toml"),
    ),
    (
        "table4-optimised-idle",
        include_str!("profiles/table4-optimised-idle.toml"),
    ),
    (
        "table4-optimised-io",
        include_str!("profiles/table4-optimised-io.toml"),
    ),
    ("table5", include_str!("profiles/table5.toml")),
];

/// What is known about the latencies of one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Where the profile came from: a path, or "built-in profile x". Only for error messages, not in the file.
    #[serde(skip)]
    pub origin: String,
    /// A short name.
    pub name: String,
    /// Where the numbers come from, for a reader.
    pub provenance: String,
    /// Numbers in it are of an emulated processor, or of virtual time: good for ratios among themselves, and no times of a
    /// computer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub emulated: bool,
    /// t1 to t4: from the call to the ring buffer.
    pub request: RequestPath,
    /// The adapter, both ways.
    pub hardware: Hardware,
    /// t5 to t9: from the interrupt to the caller, by what happened on the air.
    pub confirm: Confirm,
    /// Dependence between the two ways.
    #[serde(default)]
    pub correlation: Correlation,
    /// The part of a frame that the adapter fetches before it starts to send. Absent: no dependence on the length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dma: Option<Dma>,
    /// How late a program wakes up.
    pub timer: Timers,
}

/// The software part of the request path, t1 to t4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestPath {
    /// t1 to t4 as a whole. If given, the parts are shares of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Component>,
    /// t1 to t2: the call, down to the first instruction of the driver.
    pub api: Component,
    /// t2 to t3: the device-independent part of the driver.
    pub driver_independent: Component,
    /// t3 to t4: the device-dependent part of the driver.
    pub driver_dependent: Component,
    /// Standard deviation of the whole, in us. Sets the correlation of the parts; absent: independent parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_sd_us: Option<f64>,
}

/// The software part of the confirm path, t5 to t9.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmPath {
    /// t5 to t9 as a whole. If given, the parts are shares of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Component>,
    /// t5 to t6: the interrupt routine, until the tasklet starts.
    pub isr: Component,
    /// t6 to t7: the device-dependent part of the driver.
    pub driver_dependent: Component,
    /// t7 to t8: the device-independent part of the driver.
    pub driver_independent: Component,
    /// t8 to t9: handing the outcome to the caller.
    pub api: Component,
    /// Standard deviation of the whole, in us. Sets the correlation of the parts; absent: independent parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_sd_us: Option<f64>,
}

/// The confirm path for each outcome on the air.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Confirm {
    /// The ACK came (set A of the paper).
    pub acked: ConfirmPath,
    /// Nothing came until the ACK timeout (set L_D, and most of L_A).
    pub timeout: ConfirmPath,
    /// A frame came in time and was not a valid ACK (the slow part of L_A).
    pub ack_corrupt: ConfirmPath,
}

/// The time that the adapter takes, beyond the time on the air.
///
/// Only the sum of both ways can be measured from the host: t5 - t4 less the time on the air. How it splits is an
/// assumption, so both parameters of the split are in the profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hardware {
    /// Both ways together when the exchange ended with a frame, valid ACK or not.
    pub acked: Component,
    /// Both ways together when the exchange ended with the ACK timeout.
    pub timeout: Component,
    /// Mean of the request side, t4 to the first bit on the air, in us.
    pub request_mean_us: f64,
    /// Which part of the deviations from the mean arises on the request side, 0 to 1. With 1 the moment of
    /// release carries all the jitter of the adapter, which is what the paper assumes to be safe (section V.D.1).
    pub request_jitter_share: f64,
}

/// Dependence between request and confirm path of one transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Correlation {
    /// Pearson correlation of (t4 - t1) and (t9 - t5) for acked frames, 0 to 1.
    pub request_confirm: f64,
}

/// The adapter fetches a prefix of the frame from memory, then starts to send and fetches the rest meanwhile
/// (SDMAC, section V.B).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dma {
    /// The longest prefix, in octets of payload.
    pub prefix_octets: u32,
    /// Octets fetched per microsecond (that is, MB/s); above 0.
    pub octets_per_us: f64,
    /// The payload at which the statistics of the request side hold, in octets.
    pub reference_octets: u32,
}

/// How much later than asked for a program runs again, by the way it waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timers {
    /// `clock_nanosleep` with an absolute time.
    pub sleep: Component,
    /// A blocking read of a timerfd.
    pub timerfd: Component,
    /// A busy loop that reads the clock.
    pub spin: Component,
}

/// Only the two keys that every version of the format has.
#[derive(Deserialize)]
struct Header {
    format: Option<toml::Value>,
    version: Option<toml::Value>,
}

/// A file of this version: header and profile side by side.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: i64,
    name: String,
    provenance: String,
    #[serde(default)]
    emulated: bool,
    request: RequestPath,
    hardware: Hardware,
    confirm: Confirm,
    #[serde(default)]
    correlation: Correlation,
    dma: Option<Dma>,
    timer: Timers,
}

impl Profile {
    /// The names of the built-in profiles, separated by commas.
    pub fn names() -> String {
        BUILT_IN.map(|(name, _)| name).join(", ")
    }

    /// A built-in profile by name.
    pub fn built_in(name: &str) -> Option<Self> {
        let (name, text) = BUILT_IN.into_iter().find(|(known, _)| *known == name)?;
        let origin = format!("built-in profile {name}");
        Some(Self::parse(text, &origin).unwrap_or_else(|error| panic!("{error}")))
    }

    /// The built-in profile of that name; failing that, the profile in the file of that name.
    pub fn open(name_or_path: &str) -> Result<Self, ProfileError> {
        match Self::built_in(name_or_path) {
            Some(profile) => Ok(profile),
            None => Self::load(Path::new(name_or_path)),
        }
    }

    /// Reads a profile from a file.
    pub fn load(path: &Path) -> Result<Self, ProfileError> {
        let file = path.display().to_string();
        match crate::text::read_at_most(path, MAX_FILE_OCTETS) {
            Ok(Some(text)) => Self::parse(&text, &file),
            Ok(None) => Err(ProfileError::TooLong { file }),
            Err(cause) => Err(ProfileError::Read { file, cause }),
        }
    }

    /// Reads a profile from `text`; `origin` names it in errors.
    pub fn parse(text: &str, origin: &str) -> Result<Self, ProfileError> {
        let file = origin.to_string();
        let syntax = |error: toml::de::Error| {
            let (line, column) = position(text, error.span().map_or(0, |span| span.start));
            let what = error.message().lines().collect::<Vec<_>>().join(", ");
            ProfileError::Syntax {
                file: file.clone(),
                line,
                column,
                what,
            }
        };
        let header: Header = toml::from_str(text).map_err(syntax)?;
        if header.format.as_ref().and_then(toml::Value::as_str) != Some(FORMAT) {
            return Err(ProfileError::Format { file });
        }
        match header.version {
            Some(toml::Value::Integer(VERSION)) => {}
            found => {
                let found = found.map_or("unknown".to_string(), |value| value.to_string());
                return Err(ProfileError::Version { file, found });
            }
        }
        let File {
            name,
            provenance,
            emulated,
            request,
            hardware,
            confirm,
            correlation,
            dma,
            timer,
            ..
        } = toml::from_str(text).map_err(syntax)?;
        Ok(Profile {
            origin: file,
            name,
            provenance,
            emulated,
            request,
            hardware,
            confirm,
            correlation,
            dma,
            timer,
        })
    }

    /// The profile as the text of a file.
    pub fn to_toml(&self) -> String {
        let body = toml::to_string(self).expect("a profile has only tables, strings and finite numbers");
        format!("format = \"{FORMAT}\"\nversion = {VERSION}\n{body}")
    }
}

/// Line and column, from 1, of an offset into `text`.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Basis, HostModel, Source};
    use proptest::prelude::{ProptestConfig, prop, prop_assert, proptest};

    /// The message of the error that loading `text` and building a model from it gives.
    fn refusal(text: &str) -> String {
        let error = match Profile::parse(text, "host.toml") {
            Ok(profile) => match HostModel::new(&profile) {
                Ok(_) => return "accepted".to_string(),
                Err(error) => error,
            },
            Err(error) => error,
        };
        error.to_string()
    }

    fn table5() -> &'static str {
        BUILT_IN[5].1
    }

    #[test]
    fn built_in_profiles_survive_a_round_trip() {
        for (name, _) in BUILT_IN {
            let profile = Profile::open(name).unwrap();
            assert_eq!(profile.name, name);
            let again = Profile::parse(&profile.to_toml(), &profile.origin).unwrap();
            assert_eq!(again, profile);
        }
        assert_eq!(Profile::built_in("table6"), None);
    }

    #[test]
    fn measurements_survive_a_round_trip_through_a_file() {
        let mut profile = Profile::built_in("ideal").unwrap();
        let mut samples: Vec<u64> = (0..5000).map(|i| 1000 + i * i / 100).collect();
        profile.timer.sleep = Component::measured(&mut samples).unwrap();
        profile.timer.spin = Component::constant(Basis::Assumed, 1.25);
        assert!(!profile.emulated && !profile.to_toml().contains("emulated"));
        profile.emulated = true;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), profile.to_toml()).unwrap();
        let again = Profile::load(file.path()).unwrap();
        assert_eq!((&again.timer, again.emulated), (&profile.timer, true));
        assert_eq!(again.timer.sleep.basis, Basis::Measured);
        assert!(matches!(&again.timer.sleep.source, Source::Knots(knots) if knots.points.len() > 1024));
        HostModel::new(&again).unwrap();
    }

    #[test]
    fn what_cannot_be_read_says_so_in_one_sentence() {
        let missing = Profile::open("no/such/host.toml").unwrap_err().to_string();
        assert!(
            missing.starts_with("no/such/host.toml: cannot be read") && missing.contains("table5"),
            "{missing}"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MAX_FILE_OCTETS + 1).unwrap();
        assert!(
            Profile::load(file.path())
                .unwrap_err()
                .to_string()
                .contains("longer than 16 MiB")
        );
        std::fs::write(file.path(), [0xff, 0xfe, 0x00]).unwrap();
        assert!(
            Profile::load(file.path())
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }

    #[test]
    fn other_formats_and_versions_are_named() {
        assert!(refusal("").starts_with("host.toml: not a host profile"));
        assert!(refusal("format = \"something else\"\nversion = 1").contains("not a host profile"));
        assert!(
            refusal(&table5().replace("version = 1", "version = 2"))
                .contains("of version 2, and this program reads version 1")
        );
        assert!(refusal(&table5().replace("version = 1", "")).contains("of version unknown"));
    }

    #[test]
    fn each_kind_of_mistake_is_located() {
        let broken = [
            ("[dma]", "[dma", ":5: unclosed table"),
            (
                "prefix_octets = 500",
                "prefix_octets = -500",
                ":17: invalid value: integer `-500`",
            ),
            (
                "prefix_octets",
                "prefix_bytes",
                ":1: unknown field `prefix_bytes`",
            ),
            ("request_mean_us = 6.759", "", ": missing field `request_mean_us`"),
            (
                "request_mean_us = 6.759",
                "request_mean_us = 20",
                "hardware.request_mean_us: 20 is outside 0 to 13.518",
            ),
            (
                "octets_per_us = 150",
                "octets_per_us = 0",
                "dma.octets_per_us: 0 is outside 0.001 to 1000000",
            ),
            (
                "total_sd_us = 0.248",
                "total_sd_us = 0.1",
                "request: total_sd_us is 0.1, but these parts allow 0.175 to",
            ),
            (
                "total_sd_us = 0.248",
                "total_sd_us = nan",
                "request: total_sd_us is NaN, but",
            ),
            (
                "min_us = 0.652",
                "min_us = 1.0",
                "request.api: mean_us must not be below min_us",
            ),
            (
                "p999_us = 1.959",
                "p999_us = 1.0",
                "request.api: p999_us must not be below p99_us",
            ),
            (
                "mean_us = 0.886",
                "mean_us = inf",
                "request.api: mean_us must be a number from 0 to",
            ),
            (
                "constant_us = 4.726",
                "constant_us = -1",
                "confirm.ack_corrupt.driver_dependent: -1 is outside",
            ),
            (
                "constant_us = 4.726",
                "share = 0.5",
                "confirm.ack_corrupt: parts are given as share exactly when",
            ),
            ("constant_us = 4.726", "", "give one of constant_us, share"),
            (
                "constant_us = 4.726",
                "constant_us = 1, share = 1",
                "give one of constant_us, share",
            ),
            (
                "constant_us = 4.726",
                "mean_us = 1",
                "sd_us is missing beside mean_us",
            ),
            (
                "basis = \"measured\", mean_us = 0.886",
                "mean_us = 0.886",
                "basis is missing",
            ),
            (
                "basis = \"measured\", mean_us = 0.886",
                "basis = \"known\", mean_us = 0.886",
                "unknown variant `known`",
            ),
            (
                "[0, 20], [0.5, 40]",
                "[0, 50], [0.5, 40]",
                "timer.spin: knot 2 is below the one before it",
            ),
            (
                "[0, 20], [0.5, 40]",
                "[0, 20], [1.5, 40]",
                "timer.spin: knot 2 is out of range",
            ),
            ("[0, 20], [0.5, 40]", "[0, 20, 3], [0.5, 40]", "host.toml:"),
        ];
        for (from, to, expected) in broken {
            let line = table5()[..table5().find(from).expect(from)].matches('\n').count() + 1;
            let expected = match expected.strip_prefix(':') {
                Some(column) if column.starts_with(|c: char| c.is_ascii_digit()) => {
                    format!("host.toml:{line}:{column}")
                }
                _ => expected.to_string(),
            };
            let message = refusal(&table5().replacen(from, to, 1));
            assert!(
                message.starts_with("host.toml:") && message.contains(&expected),
                "{from} -> {to}: {message}"
            );
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn dependence_that_the_parts_cannot_have_is_refused() {
        let correlated = |value: &str| format!("{}\n[correlation]\nrequest_confirm = {value}\n", table5());
        assert!(refusal(&correlated("1.5")).contains("correlation.request_confirm: 1.5 is outside 0 to 1"));
        // The parts of the confirm path are independent, so there is no common load to couple.
        assert!(
            refusal(&correlated("0.3"))
                .contains("request_confirm is 0.3, but these paths allow at most 0.000")
        );
        let io = BUILT_IN[2].1;
        let message = refusal(&io.replace("request_confirm = 0.63", "request_confirm = 0.999"));
        assert!(message.contains("allow at most 0.8"), "{message}");
        assert!(
            refusal(&io.replace("share = 0.3676", "share = 0.4676")).contains("the shares add up to 1.1")
        );
        assert!(
            refusal(&io.replacen("share = 0.3676", "acked_plus_us = 1", 1))
                .contains("parts are given as share")
        );
        let shifted = table5().replacen(
            "basis = \"assumed\", constant_us = 4.726",
            "basis = \"assumed\", acked_plus_us = -1.6",
            1,
        );
        assert!(HostModel::new(&Profile::parse(&shifted, "host.toml").unwrap()).is_ok());
        let nothing = table5().replacen(
            "basis = \"assumed\", knots_p_ns = [[0, 20], [0.5, 40]",
            "basis = \"assumed\", acked_plus_us = 1 } #",
            1,
        );
        assert!(
            refusal(&nothing).contains("timer.spin: acked_plus_us can only stand"),
            "{}",
            refusal(&nothing)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Any text, also one that was a profile before somebody edited it, gives a model or a message.
        #[test]
        fn no_text_panics(
            edits in prop::collection::vec((0usize..4500, prop::sample::select(vec!["0", "9", "-", "e9", ".", "\"", "[", "=", "\n", "nan", "é"])), 1..4),
            which in 0usize..6,
        ) {
            let mut text = BUILT_IN[which].1.to_string();
            for (at, insert) in edits {
                let at = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap();
                text.insert_str(at, insert);
            }
            let outcome = Profile::parse(&text, "host.toml").and_then(|profile| HostModel::new(&profile).map(drop));
            if let Err(error) = outcome {
                let message = error.to_string();
                prop_assert!(message.starts_with("host.toml:") && message.lines().count() == 1, "{}", message);
            }
        }
    }
}
