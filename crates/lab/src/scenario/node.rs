//! The parts of a node: its adapter, its clock, its protocol.

use frame::{AccessCategory, MacAddr, Phy};
use protocols::mac::beacon::{Beaconer, BeaconerConfig};
use protocols::mac::data::{Identity, Role};
use protocols::mac::edf::coordinator::{Coordinator, CoordinatorConfig};
use protocols::mac::edf::cost::CostEstimate;
use protocols::mac::edf::responder::{Responder, ResponderConfig};
use protocols::mac::edf::{Edf, EdfConfig, PATIENCE, Strategy};
use protocols::mac::oneshot::{Oneshot, OneshotConfig, Pace};
use protocols::mac::overlay::Access;
use protocols::mac::roam::gate::Gate;
use protocols::mac::sender::{QueueRule, Sender, SenderConfig};
use protocols::mac::sink::Sink;
use protocols::mac::slotted::Slotted;
use radio::{AdapterId, Duration, RtsPolicy, TxHow};
use sim::clock::Clock;
use sim::rng::{Cause, Stream};

use super::Scenario;
use super::ad_hoc;
use super::build::position;
use super::cells;
use super::file::{Group, PhyName, QueueName};
use super::overlay::layered;
use super::program::Program;
use super::protocol::{self, Sending};
use super::roam::{roaming, way};
use super::schedule::scheduled;
use super::units::{Aifsn, Time};

/// Streams of clocks are named apart from those of nodes.
const CLOCKS: u64 = 1 << 40;

/// The PHY of a name.
pub(super) fn phy(name: PhyName) -> Phy {
    match name {
        PhyName::A => Phy::A,
        PhyName::B => Phy::B,
        PhyName::G => Phy::G,
        PhyName::GLong => Phy::G_LONG,
        PhyName::N24 => Phy::N2_4,
        PhyName::N5 => Phy::N5,
    }
}

pub(super) fn duration(time: Time) -> Duration {
    Duration::from_ns(time.0)
}

pub(super) fn clock(group: &Group, seed: u64, node: u32) -> Clock {
    let ppm = match (group.clock.drift_ppm, group.clock.drift_within_ppm) {
        (Some(fixed), _) => fixed.0,
        (None, Some(within)) => {
            let unit = Stream::new(seed, CLOCKS | u64::from(node), Cause::Place).unit();
            (2.0 * unit - 1.0) * within.0
        }
        (None, None) => 0.0,
    };
    Clock {
        offset_ns: group.clock.offset.0,
        drift_ppb: (ppm * 1e3).round() as i64,
    }
}

pub(super) fn category(name: QueueName) -> AccessCategory {
    match name {
        QueueName::Background => AccessCategory::Background,
        QueueName::BestEffort => AccessCategory::BestEffort,
        QueueName::Video => AccessCategory::Video,
        QueueName::Voice => AccessCategory::Voice,
    }
}

pub(super) fn identity(me: MacAddr, ap: Option<u32>) -> Identity {
    match ap {
        Some(ap) => Identity::station(me, MacAddr::local(ap)),
        None => Identity {
            me,
            role: Role::Direct { bssid: MacAddr::ZERO },
        },
    }
}

fn how(send: &Sending) -> TxHow {
    let mut how = TxHow::multi_shot(send.rate.get_ref().0, send.tries.0);
    if !send.ack {
        how = how.no_ack();
    }
    if send.rts {
        how.rts = RtsPolicy::Always;
    }
    if let Some(queue) = send.queue {
        how = how.queue(category(queue).into());
    }
    how.adapter(AdapterId(send.adapter.get_ref().0))
}

pub(super) fn sender<const D: usize>(identity: Identity, send: &Sending, phy: &Phy) -> Sender<D> {
    let mut config = SenderConfig::new(identity, send.rate.get_ref().0);
    config.how = how(send);
    config.qos = send.qos;
    config.group_rate = send.group_rate(phy);
    if let Some(queue) = send.queue {
        config.queue = QueueRule::Fixed(category(queue).into());
    }
    Sender::new(config)
}

pub(super) fn program(s: &Scenario, g: usize, node: u32, seed: u64) -> Program {
    let group = &s.file.group[g];
    let sending = s.file.sending(group);
    let phy = phy(sending.map_or(group.phy, |send| group.sending_adapter(send).phy));
    let me = MacAddr::local(node);
    let (peer, ap) = s.peers[g];
    let identity = identity(me, ap);
    let access = |aifsn: Option<Aifsn>, send: &Sending| {
        let how = how(send);
        aifsn.map(|n| Access {
            adapter: how.adapter,
            ..Access::without_backoff(how.queue, n.0)
        })
    };
    let bare = match &group.protocol {
        protocol::Protocol::Sender(send) => Program::Sender(sender(identity, send, &phy)),
        protocol::Protocol::Sink => Program::Sink(boxed(|| Sink::new(identity))),
        protocol::Protocol::Oneshot(p) => {
            let peer = MacAddr::local(peer.expect("a measurement task has a peer"));
            let config = OneshotConfig {
                identity,
                peer,
                payload_octets: p.payload_octets.0,
                how: how(&p.send),
                qos: p.send.qos,
                pace: match &p.pace {
                    protocol::Pace::AfterBeacon(wait) => Pace::AfterBeacon {
                        wait: duration(*wait.get_ref()),
                    },
                    protocol::Pace::Every(period) => Pace::Every {
                        period: duration(*period.get_ref()),
                    },
                },
                measurements: p.measurements.unwrap_or(u32::MAX),
            };
            Program::Oneshot(boxed(|| Oneshot::new(config)))
        }
        protocol::Protocol::Beaconer(p) => {
            let mut config = BeaconerConfig::new(me, duration(*p.interval.get_ref()), p.rate.get_ref().0);
            config.first = duration(p.first);
            let inner = sender(Identity::access_point(me), &p.send, &phy);
            let gate = Gate::new(me, p.send.rate.get_ref().0, inner);
            Program::Beaconer(boxed(|| Beaconer::new(config, gate)))
        }
        protocol::Protocol::Edf(p) => {
            let cost = match p.learn {
                true => CostEstimate::learned(duration(*p.cost.get_ref())),
                false => CostEstimate::fixed(duration(*p.cost.get_ref())),
            };
            let mut config = EdfConfig::new(cost, duration(p.deadline));
            if p.immediate {
                config.strategy = Strategy::Immediate;
            }
            config.max_attempts = p.attempts.map_or(config.max_attempts, |n| n.0);
            config.gap = duration(p.gap);
            config.pool = p.pool.map(Into::into);
            config.access = access(p.no_backoff_aifsn, &p.send);
            Program::Edf(boxed(|| Edf::new(config, sender(identity, &p.send, &phy))))
        }
        protocol::Protocol::Coordinator(p) => Program::Coordinator(boxed(|| {
            Coordinator::new(CoordinatorConfig {
                identity,
                how: how(&p.send),
                qos: p.send.qos,
                attempt: duration(*p.attempt.get_ref()),
                answer: duration(*p.answer.get_ref()),
                default_deadline: duration(p.deadline),
                max_attempts: p.attempts.0,
                gap: duration(p.gap),
                poll_again: p.poll_again.map(duration),
                patience: PATIENCE,
                access: access(p.no_backoff_aifsn, &p.send),
            })
        })),
        protocol::Protocol::Responder(p) => Program::Responder(boxed(|| {
            Responder::new(ResponderConfig {
                identity,
                coordinator: MacAddr::local(peer.expect("a responder has a coordinator")),
                how: how(&p.send),
                qos: p.send.qos,
                within: duration(p.within),
                patience: PATIENCE,
                access: access(p.no_backoff_aifsn, &p.send),
            })
        })),
        protocol::Protocol::Tbmac(p) => {
            let first = position(group, node - s.groups[g].start);
            let start = duration(group.start);
            let way = way(s, node, first);
            Program::Tbmac(boxed(|| {
                cells::host(p, (group, &phy), (node, seed), start, first, &way)
            }))
        }
        protocol::Protocol::Slotted(p) => {
            let inner = sender(identity, &p.send, &phy);
            Program::Slotted(boxed(|| Slotted::new(cells::slotted(p, node), inner)))
        }
        protocol::Protocol::Ibss(p) => ad_hoc::station(p, &phy, &s.groups[g], node, seed),
        protocol::Protocol::Tdma(_) => scheduled(s, group, node, identity),
    };
    let bare = match (&group.roam, ap) {
        (Some(roam), Some(home)) => {
            let lowest = self::phy(group.phy).lowest;
            roaming(
                roam,
                &s.channels[g],
                (node, home),
                group.adapter_count(),
                lowest,
                bare,
            )
        }
        _ => bare,
    };
    layered(group, node, sending, &phy, bare)
}

/// What is made on a part of the stack that only this takes: programs are large, and the threads of a run have 2 MiB.
#[inline(never)]
pub(super) fn boxed<T>(make: impl FnOnce() -> T) -> Box<T> {
    Box::new(make())
}
