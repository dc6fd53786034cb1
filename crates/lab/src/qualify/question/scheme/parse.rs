//! Reads schemes: their layers from the adapter upwards, with `+` between them.

use super::{Copies, PAIRS, RULES, Roams, Rule, SWITCHES, Scheme, TURNS, Turn};

/// Where a word stands: each behind the ones before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Pair,
    Rule,
    Turn,
    Behind,
    Edf,
    Pool,
}

/// What has been read.
struct Reader {
    scheme: Scheme,
    /// Place of the last word.
    place: Option<Place>,
}

impl Scheme {
    /// Reads `edca`, `redundancy+tdma+edf` and the like. A layer without a turn is above plain Wi-Fi: `minstrel`,
    /// `redundancy`.
    ///
    /// # Errors
    /// One sentence that says which word is wrong, and why.
    pub fn parse(text: &str) -> Result<Scheme, String> {
        let mut reader = Reader {
            scheme: Scheme::EDCA,
            place: None,
        };
        let (mut sign, mut rest) = ('+', text);
        loop {
            let end = rest.find(['+', '-']).unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            reader.read(sign, word)?;
            let mut left = behind.chars();
            match left.next() {
                Some(next) => (sign, rest) = (next, left.as_str()),
                None => break,
            }
        }
        reader.checked()
    }
}

impl Reader {
    fn read(&mut self, sign: char, word: &str) -> Result<(), String> {
        let switch = SWITCHES.iter().find(|(name, _)| *name == word);
        if let Some((_, switch)) = switch {
            self.at(Place::Behind, word)?;
            let on = sign == '+';
            if std::mem::replace(switch(&mut self.scheme.left_on), on) == on {
                let is = if on { "on" } else { "off" };
                return Err(format!("'{word}' is {is} already"));
            }
            return Ok(());
        }
        if sign == '-' {
            return Err(format!(
                "nothing can be taken away by '-{word}': behind - stands {}",
                switches()
            ));
        }
        if let Some((_, copies)) = PAIRS.iter().find(|(name, _)| *name == word) {
            self.scheme.copies = Some(*copies);
            return self.at(Place::Pair, word);
        }
        if let Some((_, rule)) = RULES.iter().find(|(name, _)| *name == word) {
            self.scheme.rule = *rule;
            return self.at(Place::Rule, word);
        }
        // polling is a turn; above another turn EDF orders what a node has
        let above = self.place >= Some(Place::Rule);
        match TURNS.iter().find(|(name, _)| *name == word) {
            Some((_, Turn::Edf)) if above && self.scheme.turn == Turn::Edf => {
                return Err("'edf' polls by deadlines already, and needs no other above it".into());
            }
            Some((_, Turn::Edf)) if above && !self.scheme.ordered => {
                self.scheme.ordered = true;
                return self.at(Place::Edf, word);
            }
            Some((_, turn)) => {
                if self.scheme.roams != Roams::Never && *turn != Turn::Edca {
                    return Err(no_slots_there(word));
                }
                self.at(Place::Turn, word)?;
                self.scheme.turn = *turn;
                return Ok(());
            }
            None => {}
        }
        match word {
            "roam" if self.scheme.turn != Turn::Edca => {
                let turn = TURNS.iter().find(|(_, turn)| *turn == self.scheme.turn);
                Err(no_slots_there(turn.map_or("", |t| t.0)))
            }
            "roam" => {
                self.scheme.roams = Roams::BreaksFirst;
                self.at(Place::Turn, word)
            }
            "second" if self.scheme.roams == Roams::BreaksFirst => {
                self.scheme.roams = Roams::MakesFirst;
                self.at(Place::Behind, word)
            }
            "join" => {
                if self.scheme.joins {
                    return Err("'join' is said twice".into());
                }
                self.scheme.joins = true;
                self.at(Place::Behind, word)
            }
            "pool" if self.scheme.ordered => {
                self.scheme.pooled = true;
                self.at(Place::Pool, word)
            }
            "second" => Err("'second' has no roam before it".into()),
            "pool" => Err("'pool' has no +edf before it".into()),
            "" => Err("a layer is missing".into()),
            _ => Err(format!(
                "'{word}' is no layer: there are redundancy, reactive, proactive, minstrel, rsin, edca, edf, tdma, tbmac, slotted and roam (--help says what each is, and what goes behind it)"
            )),
        }
    }

    /// Takes a word of this place, if it may stand behind the last one.
    fn at(&mut self, place: Place, word: &str) -> Result<(), String> {
        // what is behind a turn has no order
        let fits = self.place < Some(place) || (self.place == Some(place) && place == Place::Behind);
        if !fits {
            return Err(format!(
                "'{word}' stands too late, or twice: layers go from the adapter upwards, such as redundancy+minstrel+edca+edf or tdma-acks+join+edf"
            ));
        }
        if place == Place::Behind && self.place < Some(Place::Turn) {
            return Err(format!("'{word}' has no layer before it that it could belong to"));
        }
        self.place = Some(place);
        Ok(())
    }

    /// The scheme, if its layers go together.
    fn checked(self) -> Result<Scheme, String> {
        let s = self.scheme;
        let has_slots = matches!(s.turn, Turn::Tdma | Turn::Tbmac | Turn::Slotted);
        let usual = Scheme::TDMA.left_on;
        let wrong = [
            (
                s.turn != Turn::Tdma && (s.joins || s.left_on != usual),
                "switches and +join are behind another layer than tdma",
            ),
            (
                s.left_on.rts && !s.left_on.acks,
                "+rts is with -acks: who is asked for no ACK is asked for no CTS",
            ),
            (
                s.copies.is_some() && s.roams != Roams::Never,
                "two adapters are one, and so cannot roam: roam+second uses both",
            ),
            (
                s.copies == Some(Copies::Proactive) && has_slots,
                "proactive is before a scheme with slots: that of the second copy would be over; redundancy and reactive are possible",
            ),
            (
                s.rule != Rule::Fixed && s.turn != Turn::Edca,
                "rate control is with polls or slots, which are as long as --rate needs: minstrel and rsin go with edca and roam",
            ),
            (
                s.pooled && has_slots,
                "+pool is with slots, which pay for retries themselves: it goes behind edca+edf, minstrel+edf, rsin+edf and roam+edf",
            ),
        ];
        match wrong.iter().find(|(is, _)| *is) {
            Some((_, why)) => Err((*why).into()),
            None => Ok(s),
        }
    }
}

/// Roaming beside another way to get turns.
fn no_slots_there(word: &str) -> String {
    format!(
        "'{word}' and roam do not go together: a station that moves to another access point contends there, and has neither slots nor polls; roam+edf orders what it has"
    )
}

fn switches() -> String {
    let names: Vec<&str> = SWITCHES.iter().map(|(name, _)| *name).collect();
    let (last, first) = names.split_last().expect("there are some");
    format!("{} and {last}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in [
            "edca",
            "edca+edf",
            "edca+edf+pool",
            "edf",
            "tdma",
            "tdma+edf",
            "tbmac",
            "tbmac+edf",
            "slotted",
            "slotted+edf",
            "minstrel",
            "minstrel+edf",
            "rsin",
            "rsin+edf+pool",
            "roam",
            "roam+second",
            "roam+edf",
            "minstrel+roam",
            "rsin+roam+second+edf",
            "tdma-reception-carrier_sense",
            "tdma-virtual_carrier_sense-acks+backoff",
            "tdma-reception+join+edf",
            "tdma-carrier_sense+rts",
            "redundancy+edca",
            "redundancy+edca+edf",
            "redundancy+edf",
            "redundancy+tdma",
            "redundancy+tdma+edf",
            "redundancy+slotted",
            "redundancy+minstrel",
            "redundancy+minstrel+edf",
            "redundancy+rsin",
            "redundancy+tbmac",
            "redundancy+tdma-reception+join",
            "reactive+tdma+edf",
            "reactive+tbmac",
            "reactive+slotted",
            "proactive+edf",
            "proactive+rsin+edf",
        ] {
            assert_eq!(Scheme::parse(text).unwrap().to_string(), text);
        }
        for word in ["redundancy", "reactive", "proactive", "minstrel"] {
            assert_eq!(Scheme::parse(word), Scheme::parse(&format!("{word}+edca")));
        }
        assert_eq!(Scheme::parse("tdma+join-acks"), Scheme::parse("tdma-acks+join"));
    }

    /// Every message says which word it is about, or which layers.
    #[test]
    fn what_is_wrong_is_said() {
        for (bad, said) in [
            ("", "a layer is missing"),
            ("x", "'x' is no layer"),
            ("redundancy+", "a layer is missing"),
            ("redundancytdma", "'redundancytdma' is no layer"),
            ("tdma.acks", "'tdma.acks' is no layer"),
            ("tdmaé", "'tdmaé' is no layer"),
            ("redundancy+roam", "cannot roam"),
            ("redundancy+reactive", "'reactive' stands too late"),
            ("proactive+tdma", "proactive is before"),
            ("proactive+tbmac", "proactive is before"),
            ("proactive+slotted", "proactive is before"),
            ("roam+tdma", "'tdma' and roam do not go together"),
            ("slotted+roam", "'slotted' and roam do not go together"),
            ("edca+roam", "'roam' stands too late"),
            ("roam+third", "'third' is no layer"),
            ("second", "'second' has no roam"),
            ("roam+second+second", "'second' has no roam"),
            ("edf+tdma", "'tdma' stands too late"),
            ("edf+edf", "'edf' polls"),
            ("tdma+minstrel", "'minstrel' stands too late"),
            ("minstrel+tdma", "rate control is with"),
            ("tdma+edf+edf", "'edf' stands too late"),
            ("tdma+edf+join", "'join' stands too late"),
            ("tdma+edf-acks", "'acks' stands too late"),
            ("tdma+edf+pool", "+pool is with slots"),
            ("edca+pool", "'pool' has no +edf"),
            ("tdma+reception", "'reception' is on already"),
            ("tdma-backoff", "'backoff' is off already"),
            ("tdma-", "'-'"),
            ("tdma-edf", "'-edf'"),
            ("tdma-acks-acks", "'acks' is off already"),
            ("tdma+join+join", "'join' is said twice"),
            ("tdma-acks+rts", "+rts is with -acks"),
            ("tdma-rts", "'rts' is off already"),
            ("edca-reception", "behind another layer than tdma"),
            ("-acks", "a layer is missing"),
            ("join", "'join' has no layer before it"),
            ("edca+join", "behind another layer than tdma"),
        ] {
            let why = Scheme::parse(bad).unwrap_err();
            assert!(why.contains(said), "{bad}: {why}");
            assert!(why.len() < 260, "{why}");
        }
    }
}
