//! The text of a scenario with what `--set` changes in it, and errors that point into it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::File;

/// Longest scenario file, octets.
pub const MAX_OCTETS: u64 = 1 << 20;
/// Changes at most.
pub const MAX_CHANGES: usize = 100;

/// A change of one value: `--set key=value`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// A dotted path, or a short name that the scenario declares.
    pub key: String,
    /// TOML; text needs no quotes.
    pub value: String,
}

impl Change {
    /// Reads `key=value`.
    pub fn parse(text: &str) -> Option<Change> {
        let (key, value) = text.split_once('=')?;
        let (key, value) = (key.trim(), value.trim());
        (!key.is_empty() && !value.is_empty()).then(|| Change {
            key: key.into(),
            value: value.into(),
        })
    }
}

/// What is wrong with a scenario: one sentence that says where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {what}")]
pub struct ScenarioError {
    /// File, line and column; or the change.
    pub place: String,
    /// What is wrong, and what is allowed.
    pub what: String,
}

/// A text and its changes. Places of changed values lie behind the end of the text.
pub(super) struct Source {
    path: PathBuf,
    text: String,
    changes: Vec<Change>,
}

impl Source {
    pub(super) fn open(path: &Path, changes: &[Change]) -> Result<Source, ScenarioError> {
        let wrong = |what: String| ScenarioError {
            place: path.display().to_string(),
            what,
        };
        let unreadable = |e: std::io::Error| wrong(format!("cannot read the scenario: {e}"));
        let text = sim::text::read_at_most(path, MAX_OCTETS).map_err(unreadable)?;
        let text = text.ok_or_else(|| {
            wrong(format!(
                "a scenario has at most {MAX_OCTETS} octets, this file has more"
            ))
        })?;
        Source::new(path, text, changes)
    }

    pub(super) fn new(path: &Path, text: String, changes: &[Change]) -> Result<Source, ScenarioError> {
        let source = Source {
            path: path.to_owned(),
            text,
            changes: changes.to_vec(),
        };
        if changes.len() > MAX_CHANGES {
            let place = MAX_CHANGES - 1;
            return Err(source.at_change(place, format!("at most {MAX_CHANGES} values can be changed")));
        }
        Ok(source)
    }

    /// The folder that file names in the scenario are relative to.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Reads the file, with the changes.
    pub(super) fn file(&self) -> Result<File, ScenarioError> {
        let file = self.read()?;
        self.parameters()?;
        Ok(file)
    }

    /// Short names lead somewhere, whether they are used or not.
    fn parameters(&self) -> Result<(), ScenarioError> {
        let table = || DeTable::parse(&self.text).map_err(|e| self.toml(&e));
        let Some(declared) = table()?.get_mut().remove("parameters") else {
            return Ok(());
        };
        let Some(declared) = declared.get_ref().as_table() else {
            return Ok(());
        };
        // where no value stands and no change: an error there is about the key
        let place = self.text.len() + self.changes.len()..self.text.len() + self.changes.len() + 1;
        for (name, path) in declared {
            let Some(key) = path.get_ref().as_str() else {
                continue;
            };
            let dead = |what: String| {
                let name = name.get_ref();
                self.at(
                    path.span(),
                    format!("the parameter `{name}` leads nowhere: {what}"),
                )
            };
            let mut root = DeValue::Table(std::mem::take(table()?.get_mut()));
            // no key takes such a value, but only unknown keys are unknown
            let probe = Spanned::new(place.clone(), DeValue::Table(DeTable::new()));
            put(&mut root, key, probe).map_err(dead)?;
            let DeValue::Table(root) = root else {
                unreachable!("the root was a table and nothing replaces it")
            };
            let root = Spanned::new(0..self.text.len(), root);
            if let Err(e) = File::deserialize(toml::Deserializer::from(root))
                && e.span().is_some_and(|s| s.start == place.start)
                && is_about_a_key(e.message())
            {
                return Err(dead(with_advice(e.message().trim_end())));
            }
        }
        Ok(())
    }

    /// The text as it stands in the file.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Reads whatever fits the file, with the changes.
    pub(super) fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        let mut table = DeTable::parse(&self.text).map_err(|e| self.toml(&e))?;
        for (n, change) in self.changes.iter().enumerate() {
            self.apply(&mut table, n, change)?;
        }
        T::deserialize(toml::Deserializer::from(table)).map_err(|e| self.toml(&e))
    }

    fn apply<'s>(
        &'s self,
        table: &mut Spanned<DeTable<'s>>,
        n: usize,
        change: &'s Change,
    ) -> Result<(), ScenarioError> {
        let names: Vec<String> = (table.get_ref().get("parameters"))
            .and_then(|p| p.get_ref().as_table())
            .map(|p| p.keys().map(|k| k.get_ref().to_string()).collect())
            .unwrap_or_default();
        let path = (table.get_ref().get("parameters"))
            .and_then(|p| p.get_ref().get(change.key.as_str()))
            .and_then(|path| path.get_ref().as_str())
            .unwrap_or(&change.key)
            .to_owned();
        if path == change.key && !path.contains('.') {
            let near = nearest(&path, names.iter().map(String::as_str));
            let near = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
            let known = match names.is_empty() {
                true => "this scenario declares no short names, use a path like `run.duration`".to_owned(),
                false => format!(
                    "it is none of {}, and no path like `run.duration`",
                    names.join(", ")
                ),
            };
            return Err(self.at_change(n, format!("there is no parameter `{path}`: {known}{near}")));
        }
        let place = self.text.len() + n..self.text.len() + n + 1;
        let mut root = DeValue::Table(std::mem::take(table.get_mut()));
        let done = put(&mut root, &path, value(&change.value, &place));
        let DeValue::Table(changed) = root else {
            unreachable!("the root was a table and nothing replaces it")
        };
        *table.get_mut() = changed;
        done.map_err(|what| self.at_change(n, what))
    }

    fn at_change(&self, n: usize, what: String) -> ScenarioError {
        let change = &self.changes[n];
        ScenarioError {
            place: format!("--set {}={}", change.key, change.value),
            what,
        }
    }

    /// Number of the line in which a place of the text begins, from 1.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        let before = &self.text[..self.text.floor_char_boundary(span.start)];
        before.matches('\n').count() + 1
    }

    /// An error at a place in the text, or at a change.
    pub(super) fn at(&self, span: Range<usize>, what: impl fmt::Display) -> ScenarioError {
        let what = what.to_string();
        if span.start >= self.text.len() && span.start - self.text.len() < self.changes.len() {
            return self.at_change(span.start - self.text.len(), what);
        }
        let line = self.line(&span);
        let before = &self.text[..self.text.floor_char_boundary(span.start)];
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        ScenarioError {
            place: format!("{}:{line}:{column}", self.path.display()),
            what,
        }
    }

    fn toml(&self, error: &toml::de::Error) -> ScenarioError {
        let span = error.span().unwrap_or(0..0);
        let message = error.message().trim_end().replace('\n', ", ");
        let message = match self.without_its_value(&message, &span) {
            Some(advice) => advice,
            None => with_advice(&message),
        };
        self.at(span, message)
    }

    /// A word of a choice that wants a value of its own, written without it.
    fn without_its_value(&self, message: &str, span: &Range<usize>) -> Option<String> {
        let wants = message.strip_prefix("invalid type: unit variant, expected ")?;
        let written = match span.start.checked_sub(self.text.len()) {
            Some(n) => self.changes.get(n)?.value.as_str(),
            None => self.text.get(span.clone())?,
        };
        let word = written.trim().trim_matches(['"', '\'']);
        Some(match wants {
            "struct variant" => {
                format!("`{word}` has keys of its own, which may all be left out: write {{ {word} = {{}} }}")
            }
            _ => format!("`{word}` wants a value of its own: write {{ {word} = ... }}"),
        })
    }
}

/// The value of a change: TOML if it is TOML, text otherwise.
fn value<'s>(text: &'s str, place: &Range<usize>) -> Spanned<DeValue<'s>> {
    let value = match DeValue::parse(text) {
        Ok(value) => value.into_inner(),
        Err(_) => DeValue::String(text.into()),
    };
    Spanned::new(place.clone(), moved(value, place))
}

/// With all places inside moved behind the end of the text.
fn moved<'s>(value: DeValue<'s>, place: &Range<usize>) -> DeValue<'s> {
    match value {
        DeValue::Array(list) => DeValue::Array(
            list.into_iter()
                .map(|v| Spanned::new(place.clone(), moved(v.into_inner(), place)))
                .collect(),
        ),
        DeValue::Table(table) => DeValue::Table(
            table
                .into_iter()
                .map(|(k, v)| {
                    (
                        Spanned::new(place.clone(), k.into_inner()),
                        Spanned::new(place.clone(), moved(v.into_inner(), place)),
                    )
                })
                .collect(),
        ),
        plain => plain,
    }
}

/// Replaces the value at a dotted path. The last part may be a new key, because keys may have been left out.
fn put<'s>(root: &mut DeValue<'s>, path: &str, value: Spanned<DeValue<'s>>) -> Result<(), String> {
    let (way, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = root;
    for part in way.split('.').filter(|p| !p.is_empty()) {
        if let DeValue::Table(table) = &mut *at
            && !table.contains_key(part)
        {
            // a section that the file leaves out; if there is no such section, reading the file says so
            let key = Spanned::new(value.span(), part.to_owned().into());
            table.insert(key, Spanned::new(value.span(), DeValue::Table(DeTable::new())));
        }
        at = child(at, part).ok_or_else(|| format!("there is no `{part}` on the way to `{path}`"))?;
    }
    if let DeValue::Table(table) = at {
        let key = table.keys().find(|k| k.get_ref() == last).cloned();
        let key = key.unwrap_or_else(|| Spanned::new(value.span(), last.to_owned().into()));
        table.insert(key, value);
        return Ok(());
    }
    let slot = child(at, last).ok_or_else(|| format!("there is no `{last}` at the end of `{path}`"))?;
    *slot = value.into_inner();
    Ok(())
}

/// What a part of a path leads to: a key of a table, an index of an array, or the name of an array's member.
fn child<'v, 's>(value: &'v mut DeValue<'s>, part: &str) -> Option<&'v mut DeValue<'s>> {
    match value {
        DeValue::Table(table) => table.get_mut(part).map(Spanned::get_mut),
        DeValue::Array(list) => {
            let named = |v: &Spanned<DeValue<'_>>| {
                v.get_ref().get("name").and_then(|n| n.get_ref().as_str()) == Some(part)
            };
            let index = match part.parse::<usize>() {
                Ok(index) => index,
                Err(_) => list.iter().position(named)?,
            };
            list.get_mut(index).map(Spanned::get_mut)
        }
        _ => None,
    }
}

/// A key is not known, whatever its value is.
fn is_about_a_key(message: &str) -> bool {
    message.starts_with("unknown field") || message.starts_with("unexpected keys")
}

/// "unknown field `x`, expected one of `a`, `b`" with the nearest of those that are allowed.
fn with_advice(message: &str) -> String {
    if let Some((wrong, allowed)) = (message.strip_prefix("unexpected keys in table: "))
        .and_then(|rest| rest.split_once(", available keys: "))
    {
        let wrong = wrong.split(", ").next().unwrap_or(wrong);
        let near = nearest(wrong, allowed.split(", "));
        let near = near.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default();
        return format!("unknown key `{wrong}`, expected one of {allowed}{near}");
    }
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (Some(wrong), true) = (words.first(), message.starts_with("unknown ")) else {
        return message.to_owned();
    };
    let message =
        message
            .replacen("unknown field", "unknown key", 1)
            .replacen("unknown variant", "unknown value", 1);
    match nearest(wrong, words[1..].iter().copied()) {
        Some(near) => format!("{message}; did you mean `{near}`?"),
        None => message,
    }
}

/// The allowed word that is nearest, if it is near.
pub(super) fn nearest<'w>(wrong: &str, allowed: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    allowed
        .map(|word| (distance(wrong, word), word))
        .min()
        .filter(|(d, word)| *d <= 1 + word.len().min(wrong.len()) / 4)
        .map(|(_, word)| word)
}

/// Insertions, deletions and replacements of letters (Levenshtein 1966).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(100).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(100).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
