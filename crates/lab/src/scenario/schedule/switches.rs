//! What stays on at the adapters of nodes with slots.

use protocols::mac::slotted::LeftOn;
use protocols::mac::tdma::schedule::{NO_RTS, SlotCosts};
use protocols::mac::tdma::switches::USUAL;
use radio::Queue;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Schedule;
use crate::scenario::check::Check;
use crate::scenario::file::{Preset, QueueName};
use crate::scenario::node::category;
use crate::scenario::source::ScenarioError;

/// What is not switched off at the adapters of nodes with slots.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlotSwitches {
    /// ACKs.
    pub acks: bool,
    /// RTS ahead of frames that ask for it: those beyond the threshold of an adapter of the schedule's groups (`rts_octets`), or all with
    /// `send.rts`.
    pub rts: bool,
    /// Duration fields of others are respected.
    pub virtual_carrier_sense: bool,
    /// The medium is sensed.
    pub carrier_sense: bool,
    /// The contention window: slots are longer by the longest backoff that a first attempt draws from it.
    pub backoff: bool,
    /// Frames are received in all slots; otherwise only where something may come for the node.
    pub reception: bool,
}

impl Default for SlotSwitches {
    fn default() -> SlotSwitches {
        let LeftOn {
            acks,
            rts,
            virtual_carrier_sense,
            carrier_sense,
            backoff,
            reception,
        } = USUAL;
        SlotSwitches {
            acks,
            rts,
            virtual_carrier_sense,
            carrier_sense,
            backoff,
            reception,
        }
    }
}

impl From<SlotSwitches> for LeftOn {
    fn from(s: SlotSwitches) -> LeftOn {
        LeftOn {
            acks: s.acks,
            rts: s.rts,
            virtual_carrier_sense: s.virtual_carrier_sense,
            carrier_sense: s.carrier_sense,
            backoff: s.backoff,
            reception: s.reception,
        }
    }
}

impl Check<'_> {
    /// Costs with the way to the channel that the frames of the groups `members` have in slots: the longest space and contention window
    /// of their queue if backoff is left on.
    pub(super) fn access(&self, schedule: &Schedule, members: &[usize], costs: SlotCosts) -> SlotCosts {
        let send = &schedule.send;
        let aifsn = schedule.aifsn.0;
        if !schedule.left_on.backoff {
            return SlotCosts { aifsn, ..costs };
        }
        let queue = Queue::from(category(send.queue.unwrap_or(QueueName::Voice))).index();
        let own = |g: &usize| {
            let adapter = self.file.group[*g].sending_adapter(send);
            adapter.config(Preset::Standard, 0).edca[queue]
        };
        let all = || members.iter().map(own);
        SlotCosts {
            aifsn: all().map(|own| own.aifsn).max().unwrap_or(aifsn),
            cw_min: all().map(|own| own.cw_min).max().unwrap_or(0),
            ..costs
        }
    }

    /// From how many octets on RTS goes ahead of frames in slots: what the groups `members` ask for, if it is left on.
    pub(super) fn rts_threshold(&self, schedule: &Schedule, members: &[usize]) -> Result<u16, ScenarioError> {
        let (on, send) = (schedule.left_on, &schedule.send);
        match (on.rts, send.rts) {
            (false, true) => {
                let what = format!(
                    "the frames of {:?} ask for RTS, which slots switch off: add left_on = {{ rts = true }}",
                    schedule.name.get_ref()
                );
                Err(self.source.at(schedule.name.span(), what))
            }
            // without ACKs nobody answers
            _ if !on.rts || !on.acks || !send.ack => Ok(NO_RTS),
            (_, true) => Ok(0),
            (_, false) => {
                let adapters = members.iter().flat_map(|g| self.file.group[*g].adapters());
                Ok(adapters.map(|a| a.rts_threshold()).min().unwrap_or(NO_RTS))
            }
        }
    }
}
