//! A way to share the channel, and the layers around it: `tdma`, `redundancy+tdma+edf`.

use std::fmt;

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

/// A way to share the channel. Written as its layers from the adapter upwards with `+` between them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Scheme {
    /// Who sends when.
    pub turn: Turn,
    /// Earliest deadline first within a node, above its slots.
    pub ordered: bool,
    /// Who chooses rates.
    pub rule: Rule,
    /// Two adapters as one.
    pub redundant: bool,
}

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
            redundant: false,
        }
    }

    /// Adapters of each node.
    pub const fn adapters(self) -> u32 {
        if self.redundant { 2 } else { 1 }
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
                "'{text}' is not a scheme: choose edca, edf, tdma, tdma+edf, tbmac, slotted, minstrel or rsin, with redundancy+ before edca, edf, tdma, minstrel and rsin, or alone"
            )
        };
        let (redundant, rest) = match text.strip_prefix("redundancy") {
            Some("") => (true, "edca"),
            Some(rest) => (true, rest.strip_prefix('+').ok_or_else(wrong)?),
            None => (false, text),
        };
        let scheme = match rest {
            "edca" => Scheme::EDCA,
            "edf" => Scheme::EDF,
            "tdma" => Scheme::TDMA,
            "tdma+edf" => Scheme {
                ordered: true,
                ..Scheme::TDMA
            },
            "minstrel" => Scheme {
                rule: Rule::Minstrel,
                ..Scheme::EDCA
            },
            "rsin" => Scheme {
                rule: Rule::Rsin,
                ..Scheme::EDCA
            },
            "tbmac" if !redundant => Scheme::plain(Turn::Tbmac),
            "slotted" if !redundant => Scheme::plain(Turn::Slotted),
            _ => return Err(wrong()),
        };
        Ok(Scheme { redundant, ..scheme })
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turn = match (self.rule, self.turn) {
            (Rule::Minstrel, _) => "minstrel",
            (Rule::Rsin, _) => "rsin",
            (_, Turn::Edca) => "edca",
            (_, Turn::Edf) => "edf",
            (_, Turn::Tdma) => "tdma",
            (_, Turn::Tbmac) => "tbmac",
            (_, Turn::Slotted) => "slotted",
        };
        let below = if self.redundant { "redundancy+" } else { "" };
        let above = if self.ordered { "+edf" } else { "" };
        write!(f, "{below}{turn}{above}")
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
            "redundancy+edca",
            "redundancy+edf",
            "redundancy+tdma",
            "redundancy+tdma+edf",
            "redundancy+minstrel",
            "redundancy+rsin",
        ] {
            assert_eq!(Scheme::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Scheme::parse("redundancy"), Scheme::parse("redundancy+edca"));
        for bad in [
            "",
            "x",
            "redundancy+",
            "redundancytdma",
            "redundancy+tbmac",
            "edf+tdma",
            "tdma+edf+edf",
        ] {
            assert!(
                Scheme::parse(bad).unwrap_err().contains("is not a scheme"),
                "{bad}"
            );
        }
    }
}
