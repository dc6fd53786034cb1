//! What an attempt of `edf`, `coordinator` and `responder` takes, and who else sends on its channel.

use std::ops::Range;
use std::sync::Arc;

use frame::{Phy, ppdu_us};
use protocols::mac::edf::poll::POLL_OCTETS;
use protocols::mac::redundancy::trailer;
use radio::Duration;
use sim::host::{HostModel, Outcome};
use sim::rng::Stream;
use toml::Spanned;

use super::check::{Check, MPDU_OCTETS};
use super::file::Group;
use super::node::phy;
use super::protocol::{Protocol, Sending};
use super::source::ScenarioError;
use super::units::Time;
use super::{FlowPlan, To};
use crate::guard;

/// Of the draws behind a quantile of a host.
const SEED: u64 = 0xc057;
/// Octets of a QoS header beyond that of plain data.
const QOS_OCTETS: u32 = 2;
/// AIFSN and contention window of who does not say otherwise, as far as a test has to know: DCF.
const USUAL_AIFSN: u8 = 2;

/// What a scenario has besides its file.
#[derive(Clone, Copy)]
pub(super) struct Nodes<'a> {
    pub(super) groups: &'a [Range<u32>],
    pub(super) flows: &'a [FlowPlan],
    pub(super) hosts: &'a [Option<Arc<HostModel>>],
    /// For each group the node that its protocol talks to, and its access point.
    pub(super) peers: &'a [(Option<u32>, Option<u32>)],
}

impl Nodes<'_> {
    /// Whether frames of a flow from group `g` go to all: what a station has for all it sends to its access point.
    pub(super) fn goes_to_all(&self, flow: &FlowPlan, g: usize) -> bool {
        flow.to == To::Broadcast && self.peers[g].1.is_none()
    }
}

/// Whether some adapters of two groups are on the same channel.
pub(super) fn share_a_channel(a: &Group, b: &Group) -> bool {
    a.adapters().any(|a| b.adapters().any(|b| a.mhz() == b.mhz()))
}

/// Quantile [`guard::USUAL`] of some way through a host, ns; a host without a model takes no time.
fn quantile(host: Option<&HostModel>, draw: impl Fn(&HostModel, &mut Stream) -> u64) -> u64 {
    let draws = host.map(|host| guard::draws(SEED, guard::USUAL, |random| draw(host, random)));
    draws.and_then(|d| d.quantile(guard::USUAL)).unwrap_or(0)
}

/// What frames of one group take at most, ns.
#[derive(Clone, Copy, Debug)]
struct Longest {
    /// The frame.
    data_ns: u64,
    /// From its end to that of its ACK.
    ack_ns: u64,
    /// From the end of the frame before to its start, if it waits already.
    access_ns: u64,
    /// Payload, octets.
    octets: usize,
}

impl Longest {
    /// The frame with its ACK.
    fn exchange_ns(&self) -> u64 {
        self.data_ns + self.ack_ns
    }
}

impl Check<'_> {
    /// The longest frame of a group; one with no payload if it has no traffic.
    fn longest_frame(&self, g: usize, send: &Sending, aifsn: Option<u8>, nodes: &Nodes<'_>) -> Longest {
        let group = &self.file.group[g];
        let adapter = group.sending_adapter(send);
        let phy: Phy = phy(adapter.phy);
        let polls = match group.protocol {
            Protocol::Coordinator(_) | Protocol::Responder(_) => POLL_OCTETS as u32,
            _ => 0,
        };
        let around = MPDU_OCTETS
            + polls
            + if send.qos { QOS_OCTETS } else { 0 }
            + group.redundancy.as_ref().map_or(0, |_| trailer::OCTETS as u32);
        let exchange = |octets: u32, to_all: bool| {
            let rate = match to_all {
                false => send.rate.get_ref().0,
                true => send.group_rate(&phy),
            };
            let ack = match send.ack && !to_all {
                true => phy.sifs_us + phy.ack_us(rate, adapter.basic()),
                false => 0,
            };
            (ppdu_us(rate, around + octets, phy.band), ack, octets)
        };
        let theirs = self.file.traffic.iter().zip(nodes.flows);
        let theirs = theirs.filter(|(_, f)| nodes.groups[g].contains(&f.from.start));
        let all = theirs.map(|(t, f)| exchange(t.octets.0, nodes.goes_to_all(f, g)));
        let empty = exchange(super::build::LLC_SNAP_OCTETS, false);
        let (data, ack, octets) = all.max_by_key(|(data, ack, _)| data + ack).unwrap_or(empty);
        let window = match aifsn {
            Some(_) => 0,
            None => u32::from(phy.cw_min) * phy.slot_us,
        };
        Longest {
            data_ns: u64::from(data) * 1_000,
            ack_ns: u64::from(ack) * 1_000,
            access_ns: u64::from(phy.aifs_us(aifsn.unwrap_or(USUAL_AIFSN)) + window) * 1_000,
            octets: octets as usize,
        }
    }

    /// A cost that is told is not less than what the longest frames take on the air.
    fn covers(&self, told: &Spanned<Time>, least_ns: u64, what: &str) -> Result<(), ScenarioError> {
        if told.get_ref().0 >= least_ns {
            return Ok(());
        }
        let least = Time(least_ns);
        let what = format!("{told} is less than {what} takes on the air alone: the least is {least}");
        Err(self.source.at(told.span(), what))
    }

    /// Costs that nodes who schedule by deadlines are told are possible ones, and slots that are all one node's have room for its frames.
    pub(super) fn costs(&self, nodes: &Nodes<'_>) -> Result<(), ScenarioError> {
        for (g, group) in self.file.group.iter().enumerate() {
            match &group.protocol {
                Protocol::Edf(p) => {
                    let own = self.longest_frame(g, &p.send, None, nodes);
                    self.covers(&p.cost, own.exchange_ns(), "the longest frame with its ACK")?;
                }
                Protocol::Coordinator(p) => {
                    let own = self.longest_frame(g, &p.send, None, nodes);
                    self.covers(&p.attempt, own.exchange_ns(), "the longest poll with its ACK")?;
                    if let Some((answer, _)) = self.answers(g, nodes) {
                        self.covers(&p.answer, answer.data_ns, "the longest answer")?;
                    }
                }
                Protocol::Slotted(p) => {
                    let own = self.longest_frame(g, &p.send, None, nodes);
                    let ack_ns = if p.left_on.acks { own.ack_ns } else { 0 };
                    let least = Time(own.data_ns + ack_ns);
                    if *p.slot.get_ref() < least {
                        let what = format!(
                            "the longest frame does not fit a slot of {}: the shortest is {least}",
                            p.slot
                        );
                        return Err(self.source.at(p.slot.span(), what));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The longest answer to a coordinator, and the group it comes from.
    fn answers(&self, coordinator: usize, nodes: &Nodes<'_>) -> Option<(Longest, usize)> {
        let all = self.file.group.iter().enumerate().filter_map(|(g, group)| {
            let Protocol::Responder(p) = &group.protocol else {
                return None;
            };
            let peer = nodes.peers[g].0?;
            let own = nodes.groups[coordinator].contains(&peer);
            let aifsn = p.no_backoff_aifsn.map(|n| n.0);
            own.then(|| (self.longest_frame(g, &p.send, aifsn, nodes), g))
        });
        all.max_by_key(|(longest, _)| longest.data_ns)
    }

    /// From when a responder hears a poll of its coordinator to the first bit of its answer at most: the way of the request through the
    /// host, or the ACK of the poll and access after it, if that is more. And what it is told.
    pub(super) fn answer_begins(
        &self,
        responder: usize,
        coordinator: usize,
        nodes: &Nodes<'_>,
    ) -> Option<(Time, Time)> {
        let all = &self.file.group;
        let (Protocol::Responder(p), Protocol::Coordinator(polls)) =
            (&all[responder].protocol, &all[coordinator].protocol)
        else {
            return None;
        };
        let answer = self.longest_frame(responder, &p.send, p.no_backoff_aifsn.map(|n| n.0), nodes);
        let poll = self.longest_frame(coordinator, &polls.send, None, nodes);
        let request_ns = quantile(nodes.hosts[responder].as_deref(), |host, random| {
            host.sample_request(random, answer.octets).total_ns()
        });
        Some((Time(request_ns.max(poll.ack_ns + answer.access_ns)), p.within))
    }

    /// What an attempt of a group that schedules by deadlines takes of its channel when nothing fails: what it is told, or what
    /// access, frames and hosts take if that is more.
    pub(super) fn attempt(&self, g: usize, nodes: &Nodes<'_>) -> Option<Duration> {
        let host = |g: usize| nodes.hosts[g].as_deref();
        // the way back of one attempt and the way there of the next one
        let between = |g: usize, frame: &Longest| {
            let turn = quantile(host(g), |host, random| {
                let request = host.sample_request(random, frame.octets);
                let confirm = host.sample_confirm(random, request.load, Outcome::Acked);
                request.total_ns() + confirm.total_ns()
            });
            frame.access_ns.max(turn)
        };
        let ns = match &self.file.group[g].protocol {
            Protocol::Edf(p) => {
                let own = self.longest_frame(g, &p.send, p.no_backoff_aifsn.map(|n| n.0), nodes);
                (own.exchange_ns() + between(g, &own)).max(p.cost.get_ref().0)
            }
            Protocol::Coordinator(p) => {
                let own = self.longest_frame(g, &p.send, p.no_backoff_aifsn.map(|n| n.0), nodes);
                let poll_ns = own.exchange_ns() + between(g, &own);
                let answer_ns = self.answers(g, nodes).map_or(0, |(answer, of)| {
                    let turn = quantile(host(of), |host, random| {
                        let heard = host.sample_indication(random).total_ns();
                        heard + host.sample_request(random, answer.octets).total_ns()
                    });
                    // the next poll waits for its ACK
                    answer.access_ns.max(turn) + answer.exchange_ns()
                });
                poll_ns.max(p.attempt.get_ref().0) + answer_ns.max(p.answer.get_ref().0)
            }
            _ => return None,
        };
        Some(Duration::from_ns(ns))
    }

    /// Nodes of group `h` that may send at any time. Responders do not, for the coordinator in group `g`: it lets them.
    fn senders(&self, h: usize, g: usize, nodes: &Nodes<'_>) -> usize {
        let from = |node: &u32| {
            let all = nodes.flows.iter();
            all.flat_map(FlowPlan::pairs).any(|(from, _)| from == *node)
        };
        match &self.file.group[h].protocol {
            Protocol::Sink => 0,
            Protocol::Sender(_) | Protocol::Edf(_) | Protocol::Coordinator(_) => {
                nodes.groups[h].clone().filter(from).count()
            }
            Protocol::Responder(_) => {
                let ours = nodes.peers[h]
                    .0
                    .is_some_and(|peer| nodes.groups[g].contains(&peer));
                if ours { 0 } else { nodes.groups[h].len() }
            }
            _ => nodes.groups[h].len(),
        }
    }

    /// Who sends on a channel of the slots of these groups, and knows nothing of them; `None`: nobody. Those of other schedules are out of
    /// reach, or that is an error.
    pub(super) fn strangers(&self, members: &[usize], nodes: &Nodes<'_>) -> Option<String> {
        let all = &self.file.group;
        let first = *members.first()?;
        let meets = |h: usize| members.iter().any(|g| share_a_channel(&all[*g], &all[h]));
        let other = |h: &usize| all[*h].schedule().is_none() && self.senders(*h, *h, nodes) > 0 && meets(*h);
        let name = |h: usize| {
            format!(
                "{:?} sends on the same channel, and knows nothing of its slots",
                all[h].name.get_ref()
            )
        };
        let foreign = !self.file.foreign.is_empty() && share_a_channel(&all[first], &all[0]);
        let foreign = foreign.then(|| "strangers send on the same channel".to_owned());
        (0..all.len()).find(other).map(name).or(foreign)
    }

    /// Who else sends on a channel of the nodes of a group, or would be in the way; `None`: it is alone. Responders of a
    /// coordinator send when it lets them.
    pub(super) fn others(&self, g: usize, nodes: &Nodes<'_>) -> Option<String> {
        let all = &self.file.group;
        let meets = |h: usize| share_a_channel(&all[g], &all[h]);
        let senders = |h: usize| self.senders(h, g, nodes);
        let foreign = (self.file.foreign.first()).filter(|_| share_a_channel(&all[g], &all[0]));
        let other = (0..all.len()).find(|h| *h != g && senders(*h) > 0 && meets(*h));
        match (senders(g), other, foreign) {
            (2.., _, _) => Some("its nodes share a channel, and each has a queue of its own".to_owned()),
            (_, Some(h), _) => Some(format!(
                "{:?} sends on the same channel, too",
                all[h].name.get_ref()
            )),
            (_, None, Some(_)) => Some("strangers send on the same channel, too".to_owned()),
            _ => None,
        }
    }
}
