//! What a paper states, row by row, and how a value of ours is judged by it. The file's own head explains its terms.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::estimate::Estimate;

/// What a statement rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Arithmetic from the paper or the standard.
    Exact,
    /// Put into the model, which must return it.
    Calibrated,
    /// Follows from other numbers.
    Emergent,
    /// An order or a trend.
    Qualitative,
    /// What this project set out to reach, and no paper states.
    Ours,
    /// Describes the experiment; not judged.
    Setup,
    /// A property of that machine; not judged.
    Hardware,
}

impl Kind {
    /// Whether a reproduction has a row for it.
    pub fn has_row(self) -> bool {
        !matches!(self, Kind::Setup | Kind::Hardware)
    }

    /// As it is written in the file.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Calibrated => "calibrated",
            Kind::Emergent => "emergent",
            Kind::Qualitative => "qualitative",
            Kind::Ours => "ours",
            Kind::Setup => "setup",
            Kind::Hardware => "hardware",
        }
    }
}

/// One statement.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name for ever.
    pub id: String,
    /// Section or table of the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// What it rests on.
    pub kind: Kind,
    /// What it is about.
    pub what: String,
    /// Its numbers.
    #[serde(default)]
    pub values: Vec<Value>,
    /// What has to be known to judge it.
    #[serde(default)]
    pub note: String,
    /// Why a value of ours lies outside, by name of the value.
    #[serde(default)]
    pub explained: BTreeMap<String, Explanation>,
}

/// Why a value of ours lies outside.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// Between what it must lie for the reason to hold, both included, in the unit of the value.
    pub between: [f64; 2],
    /// The reason.
    pub why: String,
}

impl Explanation {
    /// Whether it explains `ours`.
    pub fn covers(&self, ours: f64) -> bool {
        let [least, most] = self.between;
        (least..=most).contains(&ours)
    }
}

/// One number of a statement.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// Its name within the statement.
    pub name: String,
    /// The paper's; `None` where it gives none.
    pub paper: Option<f64>,
    /// Its unit; `None` for a pure number.
    pub unit: Option<String>,
    within: Option<f64>,
    within_percent: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    /// What it rests on, if not what the whole statement rests on.
    pub kind: Option<Kind>,
}

impl Value {
    /// The values that are accepted, ends included; `None` if it is not judged.
    pub fn accepted(&self) -> Option<(f64, f64)> {
        let paper = self.paper.unwrap_or(f64::NAN);
        // the paper's decimals have no exact binary form
        let rounding = 1e-9 * paper.abs();
        let within = self
            .within
            .or(self.within_percent.map(|percent| paper.abs() * percent / 100.0));
        let judged = within.is_some() || self.at_least.is_some() || self.at_most.is_some();
        let (low, high) = within.map_or((f64::NEG_INFINITY, f64::INFINITY), |w| {
            (paper - w - rounding, paper + w + rounding)
        });
        judged.then(|| {
            (
                low.max(self.at_least.unwrap_or(low)),
                high.min(self.at_most.unwrap_or(high)),
            )
        })
    }

    /// Whether a value of ours may be the true one and be accepted: its interval and ours meet. `None` if it is not
    /// judged, or if the samples are too few to bound it.
    pub fn accepts(&self, ours: &Estimate) -> Option<bool> {
        let (low, high) = self.accepted()?;
        ours.is_bounded().then_some(ours.low <= high && low <= ours.high)
    }

    /// The tolerance in words.
    pub fn tolerance(&self) -> String {
        let mut words = Vec::new();
        words.extend(self.within.map(|w| format!("± {w}")));
        words.extend(self.within_percent.map(|w| format!("± {w} %")));
        words.extend(self.at_least.map(|w| format!(">= {w}")));
        words.extend(self.at_most.map(|w| format!("<= {w}")));
        words.join(", ")
    }
}

/// Reads a file of claims.
///
/// # Errors
/// What the TOML reader says: line, column and what was expected there.
pub fn parse(text: &str) -> Result<Vec<Claim>, toml::de::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[serde(rename = "paper")]
        _paper: String,
        claim: Vec<Claim>,
    }
    Ok(toml::from_str::<File>(text)?.claim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        toml::from_str(&format!("name = 'x'\n{text}")).unwrap()
    }

    fn accepts(text: &str, value_of_ours: f64) -> Option<bool> {
        value(text).accepts(&Estimate::exact(value_of_ours))
    }

    #[test]
    fn tolerances() {
        assert_eq!(accepts("paper = 10", 99.0), None);
        assert_eq!(accepts("paper = 0.1\nwithin = 0", 0.1), Some(true));
        assert_eq!(accepts("paper = 10\nwithin = 1", 11.1), Some(false));
        assert_eq!(accepts("paper = 10\nwithin_percent = 5", 10.5), Some(true));
        assert_eq!(accepts("paper = 10\nwithin_percent = 5", 9.4), Some(false));
        assert_eq!(accepts("at_least = 2\nat_most = 8", 9.0), Some(false));
        assert_eq!(accepts("at_least = 2\nat_most = 8", 8.0), Some(true));
        assert_eq!(
            value("paper = 3\nwithin_percent = 5\nat_most = 4").tolerance(),
            "± 5 %, <= 4"
        );
    }

    #[test]
    fn an_uncertain_value_is_accepted_if_it_may_be_right() {
        let v = value("paper = 10\nwithin = 1");
        assert_eq!(v.accepts(&Estimate::with_error(11.5, 0.2)), Some(true));
        assert_eq!(v.accepts(&Estimate::with_error(11.5, 0.1)), Some(false));
        let open = Estimate {
            value: 10.0,
            low: 9.0,
            high: f64::INFINITY,
        };
        assert_eq!(v.accepts(&open), None, "too few samples");
    }

    /// What is accepted and what is explained together leave room on both sides, or between: a value that has neither
    /// can be wrong in no way that it could come out.
    #[test]
    fn a_value_that_is_explained_can_be_wrong() {
        let (mut explained, mut open) = (0, Vec::new());
        for (paper, text) in [
            ("sdmac", include_str!("../../../../papers/sdmac/claims.toml")),
            ("tdma", include_str!("../../../../papers/tdma/claims.toml")),
            ("rtwlan", include_str!("../../../../papers/rtwlan/claims.toml")),
            ("atp", include_str!("../../../../papers/atp/claims.toml")),
            (
                "contiki80211",
                include_str!("../../../../papers/contiki80211/claims.toml"),
            ),
        ] {
            for claim in parse(text).unwrap() {
                for (name, Explanation { between, .. }) in &claim.explained {
                    let value = claim.values.iter().find(|v| v.name == *name).unwrap();
                    let (low, high) = value.accepted().unwrap();
                    explained += 1;
                    let apart = between[1] < low || high < between[0];
                    if !(apart || low.is_finite() && high.is_finite()) {
                        open.push(format!("{paper} {} {name}", claim.id));
                    }
                }
            }
        }
        assert!(explained > 30, "{explained}");
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn mistakes_in_the_file_are_named() {
        let wrong = "paper = 'x'\n[[claim]]\nid = '0-1'\nwhere = 'I'\nkind = 'emergend'\nwhat = 'y'\n";
        let message = parse(wrong).unwrap_err().to_string();
        assert!(
            message.contains("line 5") && message.contains("emergend"),
            "{message}"
        );
    }
}
