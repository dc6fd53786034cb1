//! The nodes of a schedule.

use frame::MacAddr;
use protocols::mac::data::Identity;
use protocols::mac::overlay::Access;
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{AdapterId, Duration, Queue};

use super::{Plan, Schedule};
use crate::scenario::Scenario;
use crate::scenario::beacons::clock;
use crate::scenario::file::{Group, QueueName};
use crate::scenario::join::membership;
use crate::scenario::node::{category, phy, sender};
use crate::scenario::overlay::ordered;
use crate::scenario::program::Program;
use crate::scenario::protocol::{Protocol, Tdma as Parameters};

/// What it runs.
pub(in crate::scenario) fn scheduled(s: &Scenario, group: &Group, node: u32, identity: Identity) -> Program {
    let named = |n: &Schedule| Some(n.name.get_ref()) == group.schedule();
    let n = s
        .file
        .schedule
        .iter()
        .position(named)
        .expect("schedules were checked");
    let (schedule, planned) = (&s.file.schedule[n], &s.schedules[n]);
    let band = phy(group.sending_adapter(&schedule.send).phy).band;
    let adapter = AdapterId(schedule.send.adapter.get_ref().0);
    let heard_by = match group.pair() {
        Some((_, [first, second])) => (first, Some(second)),
        None => (adapter, None),
    };
    let sync = clock(schedule, planned, node, band, heard_by);
    let mut send = schedule.send.clone();
    let queue = *send.queue.get_or_insert(QueueName::Voice);
    // What the slots leave out nobody above them may wait for.
    send.ack &= schedule.left_on.acks;
    let queue: Queue = category(queue).into();
    let Protocol::Tdma(Parameters {
        hold_back,
        edf: order,
        stay,
        ..
    }) = &group.protocol
    else {
        unreachable!("a node of a schedule runs tdma");
    };
    let membership = membership(schedule, planned, node, stay.as_ref());
    let config = TdmaConfig {
        hold_back: *hold_back,
        adapter,
        membership,
        left_on: schedule.left_on.into(),
        watch: schedule.watch,
        reference: planned.reference.map(MacAddr::local),
        access: (!schedule.left_on.backoff).then_some(Access {
            adapter,
            ..Access::without_backoff(queue, schedule.aifsn.0)
        }),
        ..TdmaConfig::new(
            MacAddr::local(node),
            planned.plan.clone(),
            sync,
            planned.master.map_or(MacAddr::ZERO, MacAddr::local),
            queue,
        )
    };
    let phy = phy(group.sending_adapter(&schedule.send).phy);
    let inner = sender(identity, &send, &phy);
    match order {
        None => Program::Tdma(Box::new(Tdma::new(config, inner))),
        Some(order) => Program::TdmaEdf(Box::new(Tdma::new(config, ordered(*order, inner)))),
    }
}

/// The clocks of a schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct Timekeepers<'a> {
    /// Its name.
    pub schedule: &'a str,
    /// How far two of its nodes may be apart.
    pub sync_error: Duration,
    /// Where that was measured: the probability of the quantiles at either end. `None` where it was told.
    pub probability: Option<f64>,
    /// Who runs it.
    pub nodes: Vec<u32>,
}

impl Scenario {
    /// The clocks of each schedule.
    pub fn timekeepers(&self) -> impl Iterator<Item = Timekeepers<'_>> {
        let all = self.file.schedule.iter().zip(&self.schedules);
        all.map(|(schedule, planned)| Timekeepers {
            schedule: schedule.name.get_ref(),
            sync_error: planned.plan.costs().sync_error,
            probability: schedule
                .told_sync_error()
                .is_none()
                .then(|| schedule.probability()),
            nodes: self.members(schedule),
        })
    }

    /// The slots of each schedule, by its name.
    pub(crate) fn plans(&self) -> impl Iterator<Item = (&str, &Plan)> {
        let all = self.file.schedule.iter().zip(&self.schedules);
        all.map(|(schedule, planned)| (schedule.name.get_ref().as_str(), &planned.plan))
    }

    /// The nodes that run a schedule.
    pub(in crate::scenario) fn members(&self, schedule: &Schedule) -> Vec<u32> {
        let own = self.file.group.iter().zip(&self.groups);
        let own = own.filter(|(g, _)| g.schedule() == Some(schedule.name.get_ref()));
        own.flat_map(|(_, nodes)| nodes.clone()).collect()
    }
}

#[cfg(test)]
impl super::Planned {
    /// The guard of its slots.
    pub(in crate::scenario) fn guard(&self) -> Duration {
        self.plan.costs().guard()
    }
}
