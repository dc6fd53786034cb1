//! The adapters of a node: the first one by the keys of its group, further ones by `[[group.adapter]]`.

use std::collections::BTreeMap;
use std::ops::Range;

use frame::radiotap::Channel;
use frame::{Band, MacAddr, Rate, RateSet};
use radio::Queue;
use schemars::JsonSchema;
use serde::Deserialize;
use sim::adapter::NO_RTS;
use sim::{AccessRules, AdapterConfig};
use toml::Spanned;

use super::check::Check;
use super::file::{Group, PhyName, Preset, QueueEntry, QueueName};
use super::node::{category, phy};
use super::protocol::Sending;
use super::source::ScenarioError;
use super::units::*;
use super::world::{Incident, What};

/// Adapters of a node at most.
pub const MAX_ADAPTERS: usize = 8;

/// `[[group.adapter]]`: one more adapter of each node. It has the address of the node, so it needs a channel of its
/// own. Keys are those of the group.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Adapter {
    /// Number of the channel; no other adapter of the node is on it.
    #[schemars(with = "ChannelNumber")]
    pub channel: Spanned<ChannelNumber>,
    /// PHY and timing; as the group by default.
    pub phy: Option<PhyName>,
    /// Transmit power.
    pub tx_dbm: Option<Decibel>,
    /// Basic rates, which decide the rate of its ACKs; those of the PHY by default.
    #[schemars(with = "Option<Vec<RateText>>")]
    pub basic_rates: Option<Spanned<Vec<Spanned<RateText>>>>,
    /// Rules of channel access; as the group by default.
    pub rules: Option<Preset>,
    /// ACK timeout, from the end of the frame.
    pub ack_timeout: Option<Time>,
    /// EDCA defaults in the four queues instead of DCF.
    #[serde(default)]
    pub edca: bool,
    /// Access parameters of single queues.
    #[serde(default)]
    pub queue: BTreeMap<QueueName, QueueEntry>,
    /// Longer frames are preceded by RTS.
    pub rts_octets: Option<Small>,
    /// Frames a queue holds.
    pub queue_limit: Option<Small>,
}

/// What is said about one adapter, wherever it stands.
pub(super) struct View<'f> {
    pub(super) phy: PhyName,
    channel: Option<&'f Spanned<ChannelNumber>>,
    tx_dbm: Option<Decibel>,
    basic_rates: Option<&'f Spanned<Vec<Spanned<RateText>>>>,
    rules: Option<Preset>,
    ack_timeout: Option<Time>,
    edca: bool,
    queue: &'f BTreeMap<QueueName, QueueEntry>,
    rts_octets: Option<Small>,
    queue_limit: Option<Small>,
    takes_back: bool,
    ack_signal: bool,
}

impl Group {
    /// The adapters of each of its nodes.
    pub(super) fn adapters(&self) -> impl Iterator<Item = View<'_>> {
        let first = View {
            phy: self.phy,
            channel: self.channel.as_ref(),
            tx_dbm: self.tx_dbm,
            basic_rates: self.basic_rates.as_ref(),
            rules: self.rules,
            ack_timeout: self.ack_timeout,
            edca: self.edca,
            queue: &self.queue,
            rts_octets: self.rts_octets,
            queue_limit: self.queue_limit,
            takes_back: self.takes_back.unwrap_or(true),
            ack_signal: self.ack_signal.unwrap_or(true),
        };
        let further = self.adapter.iter().map(|a| View {
            phy: a.phy.unwrap_or(self.phy),
            channel: Some(&a.channel),
            tx_dbm: a.tx_dbm,
            basic_rates: a.basic_rates.as_ref(),
            rules: a.rules.or(self.rules),
            ack_timeout: a.ack_timeout,
            edca: a.edca,
            queue: &a.queue,
            rts_octets: a.rts_octets,
            queue_limit: a.queue_limit,
            takes_back: self.takes_back.unwrap_or(true),
            ack_signal: self.ack_signal.unwrap_or(true),
        });
        [first].into_iter().chain(further)
    }

    /// The adapter that its protocol sends on; the first one if there is none of that number.
    pub(super) fn sending_adapter(&self, send: &Sending) -> View<'_> {
        let number = usize::from(send.adapter.get_ref().0);
        let number = if number <= self.adapter.len() { number } else { 0 };
        self.adapters().nth(number).expect("a node has a first adapter")
    }

    /// Number of adapters of each of its nodes.
    pub(super) fn adapter_count(&self) -> usize {
        1 + self.adapter.len()
    }
}

impl Check<'_> {
    /// The adapter that an incident takes away from nodes of one group is there.
    pub(super) fn goes(
        &self,
        incident: &Incident,
        nodes: &Range<u32>,
        groups: &[Range<u32>],
    ) -> Result<(), ScenarioError> {
        let What::AdapterGone(gone) = &incident.what else {
            return Ok(());
        };
        let of = groups.iter().position(|g| g.contains(&nodes.start));
        let have = self.file.group[of.expect("every node is in a group")].adapter_count();
        if usize::from(gone.0) < have {
            return Ok(());
        }
        let what = format!(
            "there is no adapter {} of {:?}: it has {have}, the first is 0",
            gone.0,
            incident.node.get_ref()
        );
        Err(self.source.at(incident.node.span(), what))
    }
}

impl View<'_> {
    /// Centre frequency in MHz, if there is such a channel.
    fn channel_mhz(&self) -> Option<u16> {
        let phy = phy(self.phy);
        let usual = match phy.band {
            Band::Ghz2_4 => 1,
            Band::Ghz5 => 36,
        };
        let number = self.channel.map_or(usual, |c| c.get_ref().0);
        Channel::of(phy.band, number, phy.lowest).map(|c| c.mhz)
    }

    pub(super) fn mhz(&self) -> u16 {
        self.channel_mhz().expect("channels were checked")
    }

    /// The rates that decide the rate of its ACKs.
    pub(super) fn basic(&self) -> RateSet {
        let listed = self.basic_rates.map(|list| list.get_ref().iter());
        listed.map_or(phy(self.phy).basic, |rates| {
            rates.fold(RateSet::EMPTY, |set, rate| set.with(rate.get_ref().0))
        })
    }

    /// RTS goes ahead of frames with more octets than this.
    pub(super) fn rts_threshold(&self) -> u16 {
        self.rts_octets.map_or(NO_RTS, |octets| octets.0)
    }

    /// The adapter of a node; `preset`: rules if nothing else is said.
    pub(super) fn config(&self, preset: Preset, node: u32) -> AdapterConfig {
        let phy = phy(self.phy);
        let mut a = AdapterConfig::station(MacAddr::local(node), phy, self.mhz(), self.edca);
        a.basic = self.basic();
        if self.rules.unwrap_or(preset) == Preset::Ns3 {
            a.rules = AccessRules::ns3();
            // SIFS, slot, preamble and header of OFDM
            a.ack_timeout_us = phy.sifs_us + phy.slot_us + 20;
        }
        if let Some(timeout) = self.ack_timeout {
            a.ack_timeout_us = (timeout.0 / 1_000).min(u32::MAX.into()) as u32;
        }
        if let Some(dbm) = self.tx_dbm {
            a.tx_dbm = dbm.0;
        }
        a.rts_threshold = self.rts_threshold();
        if let Some(limit) = self.queue_limit {
            a.queue_limit = limit.0;
        }
        (a.takes_back, a.ack_signal) = (self.takes_back, self.ack_signal);
        for (name, entry) in self.queue {
            let params = &mut a.edca[Queue::from(category(*name)).index()];
            params.aifsn = entry.aifsn.map_or(params.aifsn, |x| x.0);
            params.cw_min = entry.cw_min.map_or(params.cw_min, |x| x.0);
            params.cw_max = entry.cw_max.map_or(params.cw_max, |x| x.0).max(params.cw_min);
            params.txop_us = entry.txop.map_or(params.txop_us, |x| (x.0 / 1_000) as u32);
        }
        a
    }
}

impl Check<'_> {
    /// Channels and basic rates of all adapters of a group.
    pub(super) fn adapters(&self, group: &Group) -> Result<(), ScenarioError> {
        if group.adapter_count() > MAX_ADAPTERS {
            let what = format!(
                "a node has at most {MAX_ADAPTERS} adapters, this group makes it {}",
                group.adapter_count()
            );
            return Err(self.source.at(group.name.span(), what));
        }
        let mut channels: Vec<u16> = Vec::new();
        for adapter in group.adapters() {
            let phy = phy(adapter.phy);
            let place = adapter.channel.map_or(group.name.span(), Spanned::span);
            let Some(mhz) = adapter.channel_mhz() else {
                let allowed = match phy.band {
                    Band::Ghz2_4 => "1 to 14",
                    Band::Ghz5 => "32 to 177",
                };
                let number = adapter.channel.map_or(0, |c| c.get_ref().0);
                let what = format!(
                    "802.11{} has no channel {number}: its channels are {allowed}",
                    phy.name
                );
                return Err(self.source.at(place, what));
            };
            if channels.contains(&mhz) {
                let what = format!(
                    "two adapters of {:?} are at {mhz} MHz: they share an address, so each needs a channel of its own",
                    group.name.get_ref()
                );
                return Err(self.source.at(place, what));
            }
            channels.push(mhz);
            let Some(rates) = adapter.basic_rates else {
                continue;
            };
            if rates.get_ref().is_empty() {
                let what = "there is no basic rate: list at least one, [\"6M\"] for example";
                return Err(self.source.at(rates.span(), what));
            }
            for rate in rates.get_ref() {
                self.rate(rate, &phy)?;
                if matches!(rate.get_ref().0, Rate::Ht(..)) {
                    let what = format!(
                        "{} cannot be a basic rate: ACKs go at rates of 1M to 54M",
                        rate.get_ref().0
                    );
                    return Err(self.source.at(rate.span(), what));
                }
            }
        }
        Ok(())
    }

    /// Whether the adapter that a protocol picks is there.
    pub(super) fn sends_on(&self, group: &Group, send: &Sending) -> Result<(), ScenarioError> {
        let (number, count) = (usize::from(send.adapter.get_ref().0), group.adapter_count());
        if number < count {
            return Ok(());
        }
        let have = match count {
            1 => "only adapter 0".to_owned(),
            n => format!("adapters 0 to {}", n - 1),
        };
        let what = format!(
            "there is no adapter {number}: the nodes of {:?} have {have}, add others with [[group.adapter]]",
            group.name.get_ref()
        );
        Err(self.source.at(send.adapter.span(), what))
    }
}
