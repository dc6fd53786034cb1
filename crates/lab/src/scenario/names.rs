//! Names of groups and nodes, and what they stand for.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::file::File;
use super::source::{ScenarioError, Source, nearest};

/// Longest name, in letters.
const LONGEST: usize = 64;

/// The group of a node; `None`: it is of none. Groups are in the order of their nodes.
pub(super) fn group_of(groups: &[Range<u32>], node: u32) -> Option<usize> {
    let of = groups.partition_point(|g| g.end <= node);
    (of < groups.len()).then_some(of)
}

/// Name of a node: that of its group, with its number there if it is not alone.
pub(super) fn of_node(file: &File, groups: &[Range<u32>], node: u32) -> Option<String> {
    let of = group_of(groups, node)?;
    let name = file.group[of].name.get_ref();
    Some(match groups[of].len() {
        1 => name.clone(),
        _ => format!("{name}.{}", node - groups[of].start),
    })
}

/// What a file may call a node: its name, and its number in its group.
pub(super) fn all_of_node(file: &File, groups: &[Range<u32>], node: u32) -> Vec<String> {
    let of = group_of(groups, node);
    let number = of.map(|of| format!("{}.{}", file.group[of].name.get_ref(), node - groups[of].start));
    of_node(file, groups, node).into_iter().chain(number).collect()
}

pub(super) struct Names<'s> {
    source: &'s Source,
    groups: BTreeMap<String, Range<u32>>,
    end: u32,
}

impl<'s> Names<'s> {
    pub(super) fn new(source: &'s Source) -> Names<'s> {
        Names {
            source,
            groups: BTreeMap::new(),
            end: 0,
        }
    }

    /// Adds a group and tells the numbers of its nodes.
    pub(super) fn add(&mut self, name: &Spanned<String>, count: u32) -> Result<Range<u32>, ScenarioError> {
        let wrong = |what: String| self.source.at(name.span(), what);
        let text = name.get_ref();
        let fine = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
        if text.is_empty() || text.chars().count() > LONGEST || !text.chars().all(fine) || text == "broadcast"
        {
            return Err(wrong(format!(
                "{text:?} cannot be a name: names have 1 to {LONGEST} letters, digits, - or _, and `broadcast` is taken"
            )));
        }
        if self.groups.contains_key(text) {
            return Err(wrong(format!(
                "there is another group {text:?}: names must differ"
            )));
        }
        let range = self.end..self.end + count;
        self.end = range.end;
        self.groups.insert(text.clone(), range.clone());
        Ok(range)
    }

    /// The nodes of a group, or one of them.
    pub(super) fn range(&self, name: &Spanned<String>) -> Result<Range<u32>, ScenarioError> {
        let text = name.get_ref();
        if let Some(range) = self.groups.get(text) {
            return Ok(range.clone());
        }
        if let Some((group, number)) = text.rsplit_once('.')
            && let Some(range) = self.groups.get(group)
        {
            if let Ok(n) = number.parse::<u32>()
                && n < range.end - range.start
            {
                return Ok(range.start + n..range.start + n + 1);
            }
            let last = range.end - range.start - 1;
            return Err(self.source.at(
                name.span(),
                format!(
                    "there is no node {text:?}: the nodes of {group:?} are `{group}.0` to `{group}.{last}`"
                ),
            ));
        }
        let near = nearest(text, self.groups.keys().map(String::as_str));
        let near = near.map(|n| format!("; did you mean {n:?}?")).unwrap_or_default();
        let known: Vec<&str> = self.groups.keys().map(String::as_str).collect();
        Err(self.source.at(
            name.span(),
            format!(
                "there is no node {text:?}, the groups are {}{near}",
                known.join(", ")
            ),
        ))
    }

    /// A single node.
    pub(super) fn node(&self, name: &Spanned<String>) -> Result<u32, ScenarioError> {
        let range = self.range(name)?;
        if range.len() == 1 {
            return Ok(range.start);
        }
        let (text, count) = (name.get_ref(), range.len());
        Err(self.source.at(
            name.span(),
            format!("{text:?} is a group of {count} nodes: name one of them, `{text}.0` for example"),
        ))
    }
}
