//! The host profile: a TOML file with what is known about one computer and its adapter.
//!
//! A profile says for every part of the way from plane t1 to plane t9 how long it takes, and whether that was
//! measured or assumed. Six profiles are built in; `sdmac measure --host` writes others.

use super::distribution::{Knots, KnotsError};
use super::statistics::{Statistics, StatisticsError};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The first line of every profile: `format = "sdmac-host-profile"`.
const FORMAT: &str = "sdmac-host-profile";
/// The version of the format that this program reads and writes.
const VERSION: i64 = 1;
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

/// The duration of one part, and how it is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Fields", into = "Fields")]
pub struct Component {
    /// How it is known.
    pub basis: Basis,
    /// The duration.
    pub source: Source,
}

/// How the numbers of a component are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Somebody measured them; the provenance says who.
    Measured,
    /// Nobody did: a guess, or carried over from another host.
    Assumed,
}

/// The duration of one part.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// `constant_us`: always the same, in us.
    Constant(f64),
    /// `mean_us`, `sd_us`, `min_us` and percentiles.
    Statistics(Statistics),
    /// `knots_p_ns`: pairs of probability and nanoseconds.
    Knots(Knots),
    /// `share`: this part of the path's total, 0 to 1.
    Share(f64),
    /// `acked_plus_us`: as in the acked case, and this much longer, in us.
    AckedPlus(f64),
}

/// A component as it stands in the file.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    basis: Option<Basis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constant_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acked_plus_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sd_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p999_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p9999_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_us: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    knots_p_ns: Option<Vec<(f64, f64)>>,
}

impl TryFrom<Fields> for Component {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let Fields {
            basis,
            constant_us,
            share,
            acked_plus_us,
            mean_us,
            knots_p_ns,
            ..
        } = fields;
        let basis = basis.ok_or("basis is missing: write basis = \"measured\" or basis = \"assumed\"")?;
        let rest = fields.sd_us.is_some()
            || fields.min_us.is_some()
            || fields
                .p99_us
                .or(fields.p999_us)
                .or(fields.p9999_us)
                .or(fields.max_us)
                .is_some()
            || fields.samples.is_some();
        let source = match (constant_us, share, acked_plus_us, knots_p_ns, mean_us, rest) {
            (Some(us), None, None, None, None, false) => Source::Constant(us),
            (None, Some(share), None, None, None, false) => Source::Share(share),
            (None, None, Some(us), None, None, false) => Source::AckedPlus(us),
            (None, None, None, Some(points), mean_us, false) => Source::Knots(Knots {
                points,
                mean_ns: mean_us.map(|us| us * 1e3),
            }),
            (None, None, None, None, Some(mean_us), _) => Source::Statistics(Statistics {
                mean_us,
                sd_us: fields.sd_us.ok_or("sd_us is missing beside mean_us")?,
                min_us: fields.min_us.ok_or("min_us is missing beside mean_us")?,
                p99_us: fields.p99_us,
                p999_us: fields.p999_us,
                p9999_us: fields.p9999_us,
                max_us: fields.max_us,
                samples: fields.samples,
            }),
            _ => {
                return Err(
                    "give one of constant_us, share, acked_plus_us, knots_p_ns, or mean_us with sd_us and min_us",
                );
            }
        };
        Ok(Component { basis, source })
    }
}

impl From<Component> for Fields {
    fn from(component: Component) -> Self {
        let fields = Fields {
            basis: Some(component.basis),
            ..Fields::default()
        };
        match component.source {
            Source::Constant(us) => Fields {
                constant_us: Some(us),
                ..fields
            },
            Source::Share(share) => Fields {
                share: Some(share),
                ..fields
            },
            Source::AckedPlus(us) => Fields {
                acked_plus_us: Some(us),
                ..fields
            },
            Source::Knots(Knots { points, mean_ns }) => Fields {
                knots_p_ns: Some(points),
                mean_us: mean_ns.map(|ns| ns / 1e3),
                ..fields
            },
            Source::Statistics(s) => Fields {
                mean_us: Some(s.mean_us),
                sd_us: Some(s.sd_us),
                min_us: Some(s.min_us),
                p99_us: s.p99_us,
                p999_us: s.p999_us,
                p9999_us: s.p9999_us,
                max_us: s.max_us,
                samples: s.samples,
                ..fields
            },
        }
    }
}

/// Why a profile cannot be used. Every message is one sentence: file, what is wrong, what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file cannot be read.
    #[error(
        "{file}: cannot be read ({cause}); check the path, or name a built-in profile: {}",
        Profile::names()
    )]
    Read {
        /// The path.
        file: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is longer than any profile.
    #[error("{file}: longer than 16 MiB, so it is not a host profile; write one with `sdmac measure --host`")]
    TooLong {
        /// The path.
        file: String,
    },
    /// The file is a TOML file of another kind.
    #[error(
        "{file}: not a host profile, because format = \"sdmac-host-profile\" is missing; write one with `sdmac measure --host`"
    )]
    Format {
        /// The path.
        file: String,
    },
    /// The file is a profile of another version of the format.
    #[error(
        "{file}: host profile of version {found}, and this program reads version {VERSION}; measure again with `sdmac measure --host` of this program"
    )]
    Version {
        /// The path.
        file: String,
        /// The version in the file, or "unknown".
        found: String,
    },
    /// The text is not TOML, or not of the profile's shape.
    #[error("{file}:{line}:{column}: {what}; correct this line")]
    Syntax {
        /// The path.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// A number is impossible, alone or beside the others.
    #[error("{file}: {component}: {problem}; correct the numbers there")]
    Component {
        /// The path.
        file: String,
        /// The component, as a TOML key such as `request.api`.
        component: String,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// What is wrong with a component.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The statistics contradict each other.
    #[error(transparent)]
    Statistics(#[from] StatisticsError),
    /// The knots are broken.
    #[error(transparent)]
    Knots(#[from] KnotsError),
    /// A number outside its range.
    #[error("{value} is outside {min} to {max}")]
    OutOfRange {
        /// The number.
        value: f64,
        /// The smallest allowed.
        min: f64,
        /// The largest allowed.
        max: f64,
    },
    /// `share` where the path has no total, or another source where it has one.
    #[error("parts are given as share exactly when the path has a total")]
    Share,
    /// The shares of a path do not add up to 1.
    #[error("the shares add up to {0} instead of 1")]
    Shares(f64),
    /// `acked_plus_us` in the acked case, or outside hardware and confirm path.
    #[error("acked_plus_us can only stand where there is an acked case to refer to")]
    NothingToShift,
    /// The standard deviation of a path's total that no correlation of its parts gives.
    #[error("total_sd_us is {stated_us}, but these parts allow {least_us:.3} to {most_us:.3}")]
    TotalSd {
        /// The stated one.
        stated_us: f64,
        /// With independent parts.
        least_us: f64,
        /// With fully dependent parts.
        most_us: f64,
    },
    /// A correlation of request and confirm path that the model cannot reach.
    #[error("request_confirm is {stated}, but these paths allow at most {most:.3}")]
    Correlation {
        /// The stated one.
        stated: f64,
        /// The largest possible.
        most: f64,
    },
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
        let read = || {
            if std::fs::metadata(path)?.len() > MAX_FILE_OCTETS {
                Ok(None)
            } else {
                std::fs::read_to_string(path).map(Some)
            }
        };
        match read() {
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

impl Component {
    /// Always `us` microseconds.
    pub fn constant(basis: Basis, us: f64) -> Self {
        Component {
            basis,
            source: Source::Constant(us),
        }
    }

    /// Measured samples; `None` if there are none. Sorts them.
    pub fn measured(samples_ns: &mut [u64]) -> Option<Self> {
        let knots = Knots::from_samples(samples_ns)?;
        Some(Component {
            basis: Basis::Measured,
            source: Source::Knots(knots),
        })
    }
}
