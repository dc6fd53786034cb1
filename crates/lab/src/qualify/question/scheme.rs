//! A way to share the channel, and the layers around it: `tdma`, `redundancy+tdma+edf`.

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

/// A way to share the channel. Written as its layers from the adapter upwards with `+` between them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Scheme {
    /// Who sends when.
    pub turn: Turn,
    /// Earliest deadline first within a node, above its slots.
    pub ordered: bool,
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
            rule: Rule::Fixed,
            copies: None,
            roams: Roams::Never,
            left_on: USUAL,
            joins: false,
        }
    }

    /// Reads what stands behind `tdma`: `-reception`, `+backoff`, `+join`, `+edf`, each once. RTS needs ACKs.
    fn slots(mut rest: &str) -> Option<Scheme> {
        let mut scheme = Scheme::TDMA;
        while !rest.is_empty() {
            let sign = rest.chars().next()?;
            let word = &rest[sign.len_utf8()..];
            let end = word.find(['+', '-']).unwrap_or(word.len());
            let (word, behind) = word.split_at(end);
            let (on, place) = match (sign, word) {
                ('+', "edf") => (true, &mut scheme.ordered),
                ('+', "join") => (true, &mut scheme.joins),
                _ => {
                    let (_, switch) = SWITCHES.iter().find(|(name, _)| *name == word)?;
                    (sign == '+', switch(&mut scheme.left_on))
                }
            };
            // what is so already was said twice, or need not be said
            if !matches!(sign, '+' | '-') || std::mem::replace(place, on) == on {
                return None;
            }
            rest = behind;
        }
        // who is asked for no ACK is asked for no CTS
        (scheme.left_on.acks || !scheme.left_on.rts).then_some(scheme)
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

    /// Reads `edca`, `redundancy+tdma+edf` and the like. A layer without a turn is above plain Wi-Fi: `minstrel`,
    /// `redundancy`.
    ///
    /// # Errors
    /// One sentence.
    pub fn parse(text: &str) -> Result<Scheme, String> {
        let wrong = || {
            format!(
                "'{text}' is not a scheme: choose edca, edf, tdma, tdma+edf, tbmac, slotted, minstrel, rsin, roam or roam+second, with redundancy+ or reactive+ before edca, edf, tdma, tbmac, minstrel and rsin, or alone, and proactive+ before those without slots; tdma may have +join, +backoff, +rts, -reception, -carrier_sense, -virtual_carrier_sense and -acks behind it, but +rts not with -acks"
            )
        };
        let pair = PAIRS
            .iter()
            .find_map(|(word, copies)| Some((*copies, text.strip_prefix(word)?)));
        let (copies, rest) = match pair {
            Some((copies, "")) => (Some(copies), "edca"),
            Some((copies, rest)) => (Some(copies), rest.strip_prefix('+').ok_or_else(wrong)?),
            None => (None, text),
        };
        let scheme = match rest {
            "edca" => Scheme::EDCA,
            "edf" => Scheme::EDF,
            "minstrel" => Scheme {
                rule: Rule::Minstrel,
                ..Scheme::EDCA
            },
            "rsin" => Scheme {
                rule: Rule::Rsin,
                ..Scheme::EDCA
            },
            "roam" | "roam+second" if copies.is_none() => Scheme {
                roams: match rest {
                    "roam" => Roams::BreaksFirst,
                    _ => Roams::MakesFirst,
                },
                ..Scheme::EDCA
            },
            "tbmac" => Scheme::plain(Turn::Tbmac),
            "slotted" if copies.is_none() => Scheme::plain(Turn::Slotted),
            _ => rest
                .strip_prefix("tdma")
                .and_then(Scheme::slots)
                .ok_or_else(wrong)?,
        };
        // a second copy that waits comes when the slot is over
        if copies == Some(Copies::Proactive) && matches!(scheme.turn, Turn::Tdma | Turn::Tbmac) {
            return Err(wrong());
        }
        Ok(Scheme { copies, ..scheme })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.roams {
            Roams::Never => {}
            Roams::BreaksFirst => return f.write_str("roam"),
            Roams::MakesFirst => return f.write_str("roam+second"),
        }
        let turn = match (self.rule, self.turn) {
            (Rule::Minstrel, _) => "minstrel",
            (Rule::Rsin, _) => "rsin",
            (_, Turn::Edca) => "edca",
            (_, Turn::Edf) => "edf",
            (_, Turn::Tdma) => "tdma",
            (_, Turn::Tbmac) => "tbmac",
            (_, Turn::Slotted) => "slotted",
        };
        if let Some((word, _)) = PAIRS.iter().find(|(_, c)| Some(*c) == self.copies) {
            write!(f, "{word}+")?;
        }
        f.write_str(turn)?;
        for (name, switch) in SWITCHES {
            let (mut on, mut usual) = (self.left_on, USUAL);
            match (*switch(&mut on), *switch(&mut usual)) {
                (true, false) => write!(f, "+{name}")?,
                (false, true) => write!(f, "-{name}")?,
                _ => {}
            }
        }
        let join = if self.joins { "+join" } else { "" };
        let above = if self.ordered { "+edf" } else { "" };
        write!(f, "{join}{above}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in [
            "edca",
            "edf",
            "tdma",
            "tdma+edf",
            "tbmac",
            "slotted",
            "minstrel",
            "rsin",
            "roam",
            "roam+second",
            "tdma-reception-carrier_sense",
            "tdma-virtual_carrier_sense-acks+backoff",
            "tdma-reception+join+edf",
            "tdma-carrier_sense+rts",
            "redundancy+edca",
            "redundancy+edf",
            "redundancy+tdma",
            "redundancy+tdma+edf",
            "redundancy+minstrel",
            "redundancy+rsin",
            "redundancy+tbmac",
            "redundancy+tdma-reception+join",
            "reactive+tdma+edf",
            "reactive+tbmac",
            "proactive+edf",
        ] {
            assert_eq!(Scheme::parse(text).unwrap().to_string(), text);
        }
        for word in ["redundancy", "reactive", "proactive"] {
            assert_eq!(Scheme::parse(word), Scheme::parse(&format!("{word}+edca")));
        }
        for bad in [
            "",
            "x",
            "redundancy+",
            "redundancytdma",
            "redundancy+roam",
            "reactive+slotted",
            "proactive+tdma",
            "proactive+tbmac",
            "roam+third",
            "edf+tdma",
            "tdma+edf+edf",
            "tdma+reception",
            "tdma-backoff",
            "tdma-",
            "tdma-edf",
            "tdma-acks-acks",
            "tdma-acks+rts",
            "tdma-rts",
            "tdma.acks",
            "tdmaé",
            "edca-reception",
        ] {
            assert!(
                Scheme::parse(bad).unwrap_err().contains("is not a scheme"),
                "{bad}"
            );
        }
    }
}
