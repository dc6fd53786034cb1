//! Who talks to whom: the flows of `[[traffic]]`.

use std::ops::Range;

use toml::Spanned;

use super::check::Check;
use super::file::Group;
use super::names::Names;
use super::source::ScenarioError;

/// `[[traffic]]` with its nodes.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct FlowPlan {
    pub from: Range<u32>,
    pub to: To,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum To {
    Node(u32),
    /// From a single node to each of these.
    Each(Range<u32>),
    Broadcast,
    /// By a hash with this salt, in a grid of so many columns.
    Neighbour {
        salt: u64,
        columns: u32,
    },
}

impl FlowPlan {
    /// Number of flows.
    pub fn count(&self) -> usize {
        match &self.to {
            To::Each(nodes) => nodes.len(),
            _ => self.from.len(),
        }
    }

    /// Transmitter and receiver of each flow.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, To)> + '_ {
        (0..self.count() as u32).map(|i| match &self.to {
            To::Each(nodes) => (self.from.start, To::Node(nodes.start + i)),
            to => (self.from.start + i, to.clone()),
        })
    }
}

impl Check<'_> {
    /// What a station sends goes to its access point, which relays nothing.
    pub(super) fn reaches(
        &self,
        names: &Names<'_>,
        from: &Group,
        to: &Range<u32>,
        told: &Spanned<String>,
    ) -> Result<(), ScenarioError> {
        let Some(ap) = from.ap.as_ref().filter(|_| from.roam.is_none()) else {
            return Ok(());
        };
        if *to == names.range(ap)? {
            return Ok(());
        }
        let what = format!(
            "what {:?} sends goes to its access point {:?}, which relays nothing to {:?}: send to {:?}, or leave out `ap`",
            from.name.get_ref(),
            ap.get_ref(),
            told.get_ref(),
            ap.get_ref()
        );
        Err(self.source.at(told.span(), what))
    }
}
