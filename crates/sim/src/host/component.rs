//! One entry of a profile: how long a part takes, and how that is known.

use super::knots::Knots;
use super::statistics::Statistics;
use serde::{Deserialize, Serialize};

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
    knots_p_ns: Option<Vec<Pair>>,
}

/// One knot: `[probability, nanoseconds]`. A plain tuple would let a third number pass.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
struct Pair(f64, f64);

impl TryFrom<Vec<f64>> for Pair {
    type Error = &'static str;

    fn try_from(numbers: Vec<f64>) -> Result<Self, Self::Error> {
        match numbers[..] {
            [p, ns] => Ok(Pair(p, ns)),
            _ => Err("a knot is a pair of numbers: [probability, nanoseconds]"),
        }
    }
}

impl From<Pair> for Vec<f64> {
    fn from(Pair(p, ns): Pair) -> Self {
        vec![p, ns]
    }
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
            (None, None, None, Some(pairs), mean_us, false) => Source::Knots(Knots {
                points: pairs.into_iter().map(|Pair(p, ns)| (p, ns)).collect(),
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
                knots_p_ns: Some(points.into_iter().map(|(p, ns)| Pair(p, ns)).collect()),
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

impl Component {
    /// Always `us` microseconds.
    pub fn constant(basis: Basis, us: f64) -> Self {
        Component {
            basis,
            source: Source::Constant(us),
        }
    }

    /// A share of this duration, after making it longer by `us`, as numbers of its own; a share of a share stays one.
    pub fn portion(&self, us: f64, share: f64) -> Self {
        let scale = |value: f64| (value + us).max(0.0) * share;
        let source = match &self.source {
            Source::Constant(value) => Source::Constant(scale(*value)),
            Source::Statistics(s) => Source::Statistics(Statistics {
                mean_us: scale(s.mean_us),
                sd_us: s.sd_us * share,
                min_us: scale(s.min_us),
                p99_us: s.p99_us.map(scale),
                p999_us: s.p999_us.map(scale),
                p9999_us: s.p9999_us.map(scale),
                max_us: s.max_us.map(scale),
                samples: s.samples,
            }),
            Source::Knots(knots) => {
                let scale = |ns: f64| (ns + us * 1e3).max(0.0) * share;
                let first = knots.points.first().map_or(0.0, |&(_, ns)| ns);
                Source::Knots(Knots {
                    points: knots.points.iter().map(|&(p, ns)| (p, scale(ns))).collect(),
                    // cut off at 0, the samples would have another mean
                    mean_ns: knots.mean_ns.filter(|_| first + us * 1e3 >= 0.0).map(scale),
                })
            }
            Source::Share(of) => Source::Share(of * share),
            Source::AckedPlus(more) => Source::AckedPlus((more + us) * share),
        };
        Component {
            basis: self.basis,
            source,
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
