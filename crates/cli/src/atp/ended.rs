//! What a receiver keeps of transfers that have ended. Strangers can make as many of them as they like.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// Transfers of which something is kept, for each of the two purposes.
const MOST: usize = 10_000;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// What is told in the end; `None`: nothing is.
    documents: Option<Vec<Value>>,
    left_out: u64,
    /// Names of what has not come through.
    missing: BTreeSet<String>,
    /// More has not come through than there is room for names.
    unnamed: bool,
}

impl Ended {
    /// None has. `json`: they are told in the end.
    pub fn new(json: bool) -> Ended {
        Ended {
            documents: json.then(Vec::new),
            ..Ended::default()
        }
    }

    /// One more has ended.
    pub fn add(&mut self, document: impl FnOnce() -> Value) {
        match &mut self.documents {
            None => {}
            Some(all) if all.len() < MOST => all.push(document()),
            Some(_) => self.left_out += 1,
        }
    }

    /// This one has come through: it is not missing, whatever was before.
    pub fn came(&mut self, name: &str) {
        self.missing.remove(name);
    }

    /// Nothing is missing any more.
    pub fn nothing_is_missing(&mut self) {
        (self.missing, self.unnamed) = (BTreeSet::new(), false);
    }

    /// This one has not come through.
    pub fn broke_off(&mut self, name: &str) {
        if self.missing.len() < MOST {
            self.missing.insert(name.to_owned());
        } else {
            self.unnamed |= !self.missing.contains(name);
        }
    }

    /// Whether something is missing.
    pub fn is_missing(&self) -> bool {
        self.unnamed || !self.missing.is_empty()
    }

    /// All that is told.
    pub fn document(self) -> Value {
        json!({ "transfers": self.documents, "left_out": self.left_out })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_fill_no_memory() {
        let mut ended = Ended::new(true);
        for n in 0..MOST + 2 {
            ended.add(|| n.into());
            ended.broke_off(&n.to_string());
        }
        assert_eq!(ended.missing.len(), MOST);
        // whose name is not kept stays missing
        (0..MOST).for_each(|n| ended.came(&n.to_string()));
        assert!(ended.missing.is_empty() && ended.is_missing());
        ended.nothing_is_missing();
        assert!(!ended.is_missing());
        let told = ended.document();
        assert_eq!(told["transfers"].as_array().map(Vec::len), Some(MOST));
        assert_eq!(told["left_out"], 2);
    }

    #[test]
    fn what_nobody_asks_for_is_not_kept() {
        let mut ended = Ended::new(false);
        ended.add(|| panic!("it is made"));
        assert!(ended.document()["transfers"].is_null());
    }

    #[test]
    fn what_has_come_is_not_missing() {
        let mut ended = Ended::new(false);
        for _ in 0..2 {
            ended.broke_off("x");
        }
        assert!(ended.is_missing());
        ended.came("x");
        assert!(!ended.is_missing());
    }
}
