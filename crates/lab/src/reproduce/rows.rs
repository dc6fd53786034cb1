//! The answer: each row of the claims with its verdict.

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use super::claims::{Claim, Kind};
use super::convolve::agrees;
use super::estimate::Estimate;
use super::plan::{Measured, Plan};
use super::values::Values;

/// What is said of a value, or of a row: the worst of its values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// There is no number to meet, or it is only shown.
    NotJudged,
    /// Within the tolerance.
    Ok,
    /// Outside, and only its interval reaches the tolerance: more samples may decide.
    Edge,
    /// Outside, and the claims say why.
    Explained,
    /// The samples are too few to judge it: what only shows in as many samples as the paper has.
    TooFew,
    /// There is no value of ours.
    Missing,
    /// Outside.
    Wrong,
}

impl Verdict {
    /// One or two words.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::NotJudged => "not judged",
            Verdict::Ok => "ok",
            Verdict::Edge => "at the edge",
            Verdict::Explained => "explained",
            Verdict::TooFew => "too few",
            Verdict::Missing => "missing",
            Verdict::Wrong => "WRONG",
        }
    }

    /// Whether a reproduction with it is a success.
    pub fn is_ok(self) -> bool {
        self < Verdict::Missing
    }
}

/// One value of a row.
#[derive(Clone, PartialEq, Debug)]
pub struct Number {
    /// Its name within the row.
    pub name: String,
    /// Unit, empty for a pure number.
    pub unit: String,
    /// What it rests on.
    pub kind: Kind,
    /// The paper's, if it gives one.
    pub paper: Option<f64>,
    /// Ours, if there is one.
    pub ours: Option<Estimate>,
    /// What the simulation says, where ours was computed and not simulated.
    pub simulated: Option<Estimate>,
    /// The tolerance in words, empty if it is not judged.
    pub tolerance: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// One row.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The claim.
    pub claim: Claim,
    /// Its values, in the order of the claim.
    pub numbers: Vec<Number>,
}

impl Number {
    /// Whether the simulation rules out the value that was computed: one of the two is a mistake.
    pub fn is_contradicted(&self) -> bool {
        let both = self.ours.zip(self.simulated);
        both.is_some_and(|(ours, simulated)| !agrees(ours.value, &simulated))
    }
}

impl Row {
    fn new(claim: &Claim, values: &Values) -> Row {
        let number = |v: &super::claims::Value| {
            let ours = values.get(&claim.id, &v.name);
            let judged = v.accepted().is_some();
            let explained = claim
                .explained
                .get(&v.name)
                .zip(ours)
                .is_some_and(|(e, o)| e.covers(o.value));
            let kind = v.kind.unwrap_or(claim.kind);
            // arithmetic has no sampling error to be excused by
            let at = |o: Estimate| match kind {
                Kind::Exact => Estimate::exact(o.value),
                _ => o,
            };
            let inside = ours.and_then(|o| v.accepts(&Estimate::exact(o.value)));
            let verdict = match ours.and_then(|o| v.accepts(&at(o))) {
                Some(true) if inside == Some(true) => Verdict::Ok,
                Some(true) => Verdict::Edge,
                Some(false) if explained => Verdict::Explained,
                Some(false) => Verdict::Wrong,
                None if judged && ours.is_some() => Verdict::TooFew,
                None if judged => Verdict::Missing,
                None => Verdict::NotJudged,
            };
            let mut number = Number {
                name: v.name.clone(),
                unit: v.unit.clone().unwrap_or_default(),
                kind,
                paper: v.paper,
                ours,
                simulated: values.simulated(&claim.id, &v.name),
                tolerance: v.tolerance(),
                verdict,
            };
            if number.is_contradicted() {
                number.verdict = Verdict::Wrong;
            }
            number
        };
        Row {
            claim: claim.clone(),
            numbers: claim.values.iter().map(number).collect(),
        }
    }

    /// The worst verdict of its values.
    pub fn verdict(&self) -> Verdict {
        let all = self.numbers.iter().map(|n| n.verdict);
        // one value that cannot be told leaves the others what they are
        let told = all.clone().filter(|v| *v != Verdict::TooFew);
        let untold = all.max().unwrap_or(Verdict::NotJudged);
        told.max().filter(|v| *v > Verdict::NotJudged).unwrap_or(untold)
    }

    /// Why values lie outside, by name, for those that do.
    pub fn explanations(&self) -> impl Iterator<Item = (&str, &str)> {
        let outside = self.numbers.iter().filter(|n| n.verdict == Verdict::Explained);
        outside.map(|n| (n.name.as_str(), self.claim.explained[&n.name].why.as_str()))
    }

    /// Values that were computed and that the simulation rules out.
    pub fn contradictions(&self) -> impl Iterator<Item = &str> {
        let wrong = self.numbers.iter().filter(|n| n.is_contradicted());
        wrong.map(|n| n.name.as_str())
    }

    /// The note of the claim, and the explanations.
    fn note(&self) -> String {
        let mut note = self.claim.note.clone();
        for name in self.contradictions() {
            note = format!("{note} {name}: the simulation rules out the value that was computed.");
        }
        for (name, why) in self.explanations() {
            note = format!("{note} {name}: {why}").trim_start().to_string();
        }
        note
    }

    /// Something of each value: by name, or bare if there is only one; null if there is none.
    fn each(&self, of: impl Fn(&Number) -> Json) -> Json {
        match &self.numbers[..] {
            [] => Json::Null,
            [one] => of(one),
            several => Json::Object(
                several
                    .iter()
                    .map(|n| (n.name.clone(), of(n)))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let claim = &self.claim;
        let tolerance = |n: &Number| (!n.tolerance.is_empty()).then(|| n.tolerance.clone());
        let interval = |n: &Number| n.ours.map(|o| [o.low, o.high]);
        let mut row = serializer.serialize_struct("Row", 13)?;
        row.serialize_field("id", &claim.id)?;
        row.serialize_field("where", &claim.place)?;
        row.serialize_field("what", &claim.what)?;
        row.serialize_field("kind", &claim.kind)?;
        row.serialize_field("unit", &self.each(|n| json!(n.unit)))?;
        row.serialize_field("paper", &self.each(|n| json!(n.paper)))?;
        row.serialize_field("ours", &self.each(|n| json!(n.ours.map(|o| o.value))))?;
        row.serialize_field("interval", &self.each(|n| json!(interval(n))))?;
        row.serialize_field(
            "simulated",
            &self.each(|n| json!(n.simulated.map(|s| [s.low, s.high]))),
        )?;
        row.serialize_field("tolerance", &self.each(|n| json!(tolerance(n))))?;
        row.serialize_field("verdict", self.verdict().word())?;
        row.serialize_field("ok", &self.verdict().is_ok())?;
        row.serialize_field("note", &self.note())?;
        row.end()
    }
}

/// How many values have which verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// See [`Verdict::Ok`], and so on.
    pub within: usize,
    /// See [`Verdict::Edge`].
    pub at_the_edge: usize,
    /// See [`Verdict::Explained`].
    pub explained: usize,
    /// See [`Verdict::Wrong`].
    pub wrong: usize,
    /// See [`Verdict::TooFew`].
    pub too_few: usize,
    /// See [`Verdict::Missing`].
    pub missing: usize,
}

impl Tally {
    fn add(&mut self, verdict: Verdict) {
        let count = match verdict {
            Verdict::NotJudged => return,
            Verdict::Ok => &mut self.within,
            Verdict::Edge => &mut self.at_the_edge,
            Verdict::Explained => &mut self.explained,
            Verdict::Wrong => &mut self.wrong,
            Verdict::TooFew => &mut self.too_few,
            Verdict::Missing => &mut self.missing,
        };
        *count += 1;
    }

    /// Values that could be held against a tolerance.
    pub fn told(&self) -> usize {
        self.within + self.at_the_edge + self.explained + self.wrong
    }
}

/// Verdicts by what values rest on: what was put in comes out again, and says nothing of what is predicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tallies {
    /// [`Kind::Emergent`].
    pub predicted: Tally,
    /// [`Kind::Calibrated`].
    pub fitted: Tally,
    /// [`Kind::Exact`].
    pub exact: Tally,
    /// [`Kind::Qualitative`].
    pub qualitative: Tally,
    /// [`Kind::Ours`].
    pub ours: Tally,
}

impl Tallies {
    fn of(rows: &[Row]) -> Tallies {
        let mut all = Tallies::default();
        for n in rows.iter().flat_map(|r| &r.numbers) {
            let tally = match n.kind {
                Kind::Emergent => &mut all.predicted,
                Kind::Calibrated => &mut all.fitted,
                Kind::Exact => &mut all.exact,
                Kind::Qualitative => &mut all.qualitative,
                Kind::Ours => &mut all.ours,
                Kind::Setup | Kind::Hardware => continue,
            };
            tally.add(n.verdict);
        }
        all
    }

    /// Each with its name, predictions first.
    pub fn named(&self) -> [(&'static str, Tally); 5] {
        [
            ("predicted", self.predicted),
            ("fitted", self.fitted),
            ("exact", self.exact),
            ("orders and trends", self.qualitative),
            ("aims of ours", self.ours),
        ]
    }
}

/// All rows of one paper.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Reproduction {
    /// Name of the paper.
    pub paper: &'static str,
    /// Whether no row is wrong or missing.
    pub ok: bool,
    /// False if it was stopped early.
    pub complete: bool,
    /// Whether a part of each experiment stood for all of it.
    pub quick: bool,
    /// Everything random followed from it.
    pub seed: u64,
    /// Measurement frames simulated.
    pub transmissions: u64,
    /// Verdicts by what values rest on.
    pub verdicts: Tallies,
    /// The rows.
    pub rows: Vec<Row>,
}

/// What a reproduction says of itself.
pub(super) struct Totals {
    pub(super) paper: &'static str,
    pub(super) complete: bool,
    pub(super) quick: bool,
    pub(super) seed: u64,
    pub(super) transmissions: u64,
}

impl Reproduction {
    /// Judges what was measured.
    pub fn new(plan: Plan, measured: &Measured) -> Reproduction {
        let claims = super::sdmac_claims();
        let values = Values::of(measured, &claims);
        let totals = Totals {
            paper: "sdmac",
            complete: measured.complete,
            quick: plan.quick,
            seed: plan.seed,
            transmissions: measured.transmissions(),
        };
        Reproduction::judged(totals, &claims, &values)
    }

    /// Judges `values` by `claims`.
    pub(super) fn judged(totals: Totals, claims: &[Claim], values: &Values) -> Reproduction {
        let rows: Vec<Row> = claims
            .iter()
            .filter(|c| c.kind.has_row())
            .map(|c| Row::new(c, values))
            .collect();
        Reproduction {
            paper: totals.paper,
            ok: rows.iter().all(|r| r.verdict().is_ok()),
            complete: totals.complete,
            quick: totals.quick,
            seed: totals.seed,
            transmissions: totals.transmissions,
            verdicts: Tallies::of(&rows),
            rows,
        }
    }

    /// How many values have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let numbers = self.rows.iter().flat_map(|r| &r.numbers);
        numbers.filter(|n| n.verdict == verdict).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row of kind exact: 10 within 0.1.
    fn row(values: &Values) -> Row {
        let text = "paper = 'x'\n[[claim]]\nid = '0-1'\nwhere = 'I'\nkind = 'exact'\nwhat = 'y'\n\
                    values = [{ name = 'v', paper = 10, within = 0.1 }]\n";
        Row::new(&super::super::claims::parse(text).unwrap()[0], values)
    }

    #[test]
    fn what_is_exact_is_not_excused_by_its_interval() {
        let mut values = Values::default();
        values.put("0-1", "v", Estimate::with_error(10.2, 0.1));
        assert_eq!(row(&values).verdict(), Verdict::Wrong);
        values.put("0-1", "v", Estimate::with_error(10.1, 0.1));
        assert_eq!(row(&values).verdict(), Verdict::Ok);
    }

    /// A whole run of a paper with these claims.
    fn judged(claims: &str, values: &Values) -> Reproduction {
        let totals = Totals {
            paper: "x",
            complete: true,
            quick: false,
            seed: 1,
            transmissions: 0,
        };
        let claims = super::super::claims::parse(claims).unwrap();
        Reproduction::judged(totals, &claims, values)
    }

    /// What was put in must not hide what was predicted.
    #[test]
    fn verdicts_are_counted_by_what_values_rest_on() {
        let text = "paper = 'x'\n[[claim]]\nid = '0-1'\nwhere = 'I'\nkind = 'emergent'\nwhat = 'y'\nvalues = [\
                    { name = 'in', at_most = 1 }, { name = 'edge', at_most = 1 }, { name = 'out', at_most = 1 },\
                    { name = 'none', at_most = 1 }, { name = 'put in', at_most = 1, kind = 'calibrated' }]\n";
        let mut values = Values::default();
        for (name, value) in [("in", 0.9), ("edge", 1.1), ("out", 1.4), ("put in", 0.9)] {
            values.put("0-1", name, Estimate::with_error(value, 0.05));
        }
        let reproduction = judged(text, &values);
        let verdicts: Vec<_> = reproduction.rows[0].numbers.iter().map(|n| n.verdict).collect();
        assert_eq!(
            verdicts,
            [
                Verdict::Ok,
                Verdict::Edge,
                Verdict::Wrong,
                Verdict::Missing,
                Verdict::Ok
            ]
        );
        let predicted = Tally {
            within: 1,
            at_the_edge: 1,
            wrong: 1,
            missing: 1,
            ..Tally::default()
        };
        assert_eq!(
            (reproduction.verdicts.predicted, predicted.told()),
            (predicted, 3)
        );
        assert_eq!(reproduction.verdicts.fitted.within, 1);
        let summary = reproduction.summary();
        let said = "Within tolerance: predicted 1 of 3, fitted 1 of 1. Outside: 1 at the edge, 0 explained, 1 wrong.";
        assert!(summary.contains(said), "{summary}");
        let json = serde_json::to_value(&reproduction).unwrap();
        assert_eq!(json["verdicts"]["predicted"]["at_the_edge"], 1);
    }

    /// An aim that was missed is wrong, is counted apart, and the text says why.
    #[test]
    fn aims_of_ours() {
        let text = "paper = 'x'\n[[claim]]\nid = 'ours-1'\nwhere = 'z'\nkind = 'ours'\nwhat = 'y'\nnote = 'Because.'\n\
                    values = [{ name = 'missed', at_most = 1 }, { name = 'reached', at_least = 1 }]\n";
        let mut values = Values::default();
        for name in ["missed", "reached"] {
            values.put("ours-1", name, Estimate::exact(2.0));
        }
        let reproduction = judged(text, &values);
        let aims = reproduction.verdicts.ours;
        assert_eq!((aims.within, aims.wrong, reproduction.ok), (1, 1, false));
        let text = reproduction.to_string();
        assert!(
            text.contains("aims of ours 1 of 2") && text.contains("Because."),
            "{text}"
        );
    }

    #[test]
    fn a_computed_value_must_agree_with_the_simulation() {
        for (simulated, verdict) in [(10.0, Verdict::Ok), (11.0, Verdict::Wrong)] {
            let mut values = Values::default();
            values.put("0-1", "v", Estimate::with_error(simulated, 0.01));
            values.compute("0-1", "v", 10.05);
            let row = row(&values);
            assert_eq!(row.verdict(), verdict);
            assert_eq!(
                row.contradictions().count(),
                usize::from(verdict == Verdict::Wrong)
            );
            assert_eq!(row.numbers[0].ours, Some(Estimate::exact(10.05)));
        }
    }
}
