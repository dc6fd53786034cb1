//! A way to share the channel, and the layers around it: `tdma`, `redundancy+tdma+edf`.

mod parse;

use std::fmt;

use protocols::mac::redundancy::trailer;
use protocols::mac::slotted::LeftOn;
use protocols::mac::tdma::switches::USUAL;
use serde::{Serialize, Serializer};

/// Who sends when.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Turn {
    /// Voice queue, random backoff, retries by the adapter.
    Edca,
    /// The controller polls, earliest deadline first, one-shots.
    Edf,
    /// Static slots over one-shots.
    Tdma,
    /// Slots that the nodes agree on among themselves; they know the time.
    Tbmac,
    /// One frame at the start of each slot of its own; slots of different nodes know nothing of each other.
    Slotted,
}

/// Who chooses the rate of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Rule {
    /// The question.
    Fixed,
    /// Minstrel.
    Minstrel,
    /// RSIN.
    Rsin,
}

/// Whether nodes go from one access point to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Roams {
    /// They stay where they are.
    Never,
    /// With one adapter: they leave the one before they have the other.
    BreaksFirst,
    /// With two adapters: they have the other before they leave the one.
    MakesFirst,
}

/// When the two copies of a frame are sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Copies {
    /// Both at once, and none is taken back.
    Parallel,
    /// Both at once; the ACK of one takes the other back.
    Reactive,
    /// The second when the first has failed, or after a quarter of the cycle.
    Proactive,
}

/// Two adapters as one, by the word for it.
const PAIRS: [(&str, Copies); 3] = [
    ("redundancy", Copies::Parallel),
    ("reactive", Copies::Reactive),
    ("proactive", Copies::Proactive),
];

/// Rate control, by the word for it.
const RULES: [(&str, Rule); 2] = [("minstrel", Rule::Minstrel), ("rsin", Rule::Rsin)];

/// Turns, by the word for them.
const TURNS: [(&str, Turn); 5] = [
    ("edca", Turn::Edca),
    ("edf", Turn::Edf),
    ("tdma", Turn::Tdma),
    ("tbmac", Turn::Tbmac),
    ("slotted", Turn::Slotted),
];

/// A way to share the channel. Written as its layers from the adapter upwards with `+` between them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Scheme {
    /// Who sends when.
    pub turn: Turn,
    /// Earliest deadline first within a node, above its turns.
    pub ordered: bool,
    /// Of that order: retries are paid from a pool.
    pub pooled: bool,
    /// Who chooses rates.
    pub rule: Rule,
    /// Two adapters as one, if it has two.
    pub copies: Option<Copies>,
    /// From one access point to another; above plain Wi-Fi only.
    pub roams: Roams,
    /// Of slots: what is not switched off at the adapters.
    pub left_on: LeftOn,
    /// Of slots: nodes ask for theirs on the air.
    pub joins: bool,
}

/// Where a switch is.
type Switch = fn(&mut LeftOn) -> &mut bool;

/// What `tdma` can have switched off, or on, in the order in which it is written.
const SWITCHES: [(&str, Switch); 6] = [
    ("reception", |on| &mut on.reception),
    ("carrier_sense", |on| &mut on.carrier_sense),
    ("virtual_carrier_sense", |on| &mut on.virtual_carrier_sense),
    ("acks", |on| &mut on.acks),
    ("backoff", |on| &mut on.backoff),
    ("rts", |on| &mut on.rts),
];

impl Scheme {
    /// Plain Wi-Fi.
    pub const EDCA: Scheme = Scheme::plain(Turn::Edca);
    /// Polling.
    pub const EDF: Scheme = Scheme::plain(Turn::Edf);
    /// Slots.
    pub const TDMA: Scheme = Scheme::plain(Turn::Tdma);
    /// Those that are compared if nothing is said, in the order of reports.
    pub const USUAL: [Scheme; 3] = [Scheme::EDCA, Scheme::EDF, Scheme::TDMA];

    const fn plain(turn: Turn) -> Scheme {
        Scheme {
            turn,
            ordered: false,
            pooled: false,
            rule: Rule::Fixed,
            copies: None,
            roams: Roams::Never,
            left_on: USUAL,
            joins: false,
        }
    }

    /// Adapters of each node.
    pub fn adapters(self) -> u32 {
        let two = self.is_redundant() || self.roams == Roams::MakesFirst;
        1 + u32::from(two)
    }

    /// Whether two adapters are one.
    pub fn is_redundant(self) -> bool {
        self.copies.is_some()
    }

    /// Octets behind every data frame that tell copies.
    pub fn trailer_octets(self) -> usize {
        if self.is_redundant() { trailer::OCTETS } else { 0 }
    }

    /// Whether slots have a guard that is computed.
    pub fn has_guard(self) -> bool {
        self.turn == Turn::Tdma
    }

    /// Whether nodes walk from one access point to another.
    pub fn walks(self) -> bool {
        self.roams != Roams::Never
    }

    /// In capitals, for reports.
    pub fn word(self) -> String {
        self.to_string().to_uppercase()
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pair = PAIRS.iter().find(|(_, c)| Some(*c) == self.copies);
        let rule = RULES.iter().find(|(_, r)| *r == self.rule);
        let turn = match self.roams {
            Roams::Never => TURNS.iter().find(|(_, t)| *t == self.turn).map(|(word, _)| *word),
            Roams::BreaksFirst => Some("roam"),
            Roams::MakesFirst => Some("roam+second"),
        };
        // who has a rule needs no word for plain Wi-Fi
        let plain = rule.is_some() && turn == Some("edca");
        let words = [pair.map(|p| p.0), rule.map(|r| r.0), turn.filter(|_| !plain)];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        f.write_str(&words.join("+"))?;
        for (name, switch) in SWITCHES {
            let (mut on, mut usual) = (self.left_on, USUAL);
            match (*switch(&mut on), *switch(&mut usual)) {
                (true, false) => write!(f, "+{name}")?,
                (false, true) => write!(f, "-{name}")?,
                _ => {}
            }
        }
        for (is, word) in [(self.joins, "join"), (self.ordered, "edf"), (self.pooled, "pool")] {
            if is {
                write!(f, "+{word}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Scheme {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl schemars::JsonSchema for Scheme {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scheme".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "Layers from the adapter upwards, such as tdma or redundancy+tdma+edf" })
    }
}
