//! What it takes to come into a schedule on the air: measured before the schedule is tried, by the same overlay on the same
//! hosts, clocks and links, with interference if there is any, but without messages. Every node begins to ask at a moment
//! of its own within two seconds.

use std::cell::RefCell;
use std::rc::Rc;

use super::bench::{Bench, Seat};
use super::question::{Link, Question, Scheme};
use super::tdma::{holdover, settling_ns};
use protocols::mac::sink::Sink;
use protocols::mac::sync::{Sync, SyncConfig};
use protocols::mac::tdma::join::wire::{ASK_OCTETS, Wish};
use protocols::mac::tdma::join::{Membership, Rules, Stay};
use protocols::mac::tdma::schedule::{LinkKind, PlanError, SlotCosts, TdmaPlan};
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{Duration, Event, Instant, Protocol, Queue, Radio};
use sim::rng::{Cause, Stream};

/// Worlds, each with other drifts and moments.
const WORLDS: u64 = 4;
/// Nodes begin to ask within this time, ns.
const COMING_NS: u64 = 2_000_000_000;
/// Who is not in so long after the last one began, ns, or so many cycles, is not let in.
const PATIENCE_NS: u64 = 10_000_000_000;
const PATIENCE_CYCLES: u64 = 1_000;
/// Cycles from a beacon until a change may begin, and beacons within them, at least.
const LEASE_CYCLES: u32 = 50;
const LEASE_BEACONS: u32 = 4;

/// What was measured, and what it costs the cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Joining {
    /// The slot in which anybody may ask, ns.
    pub ask_ns: u64,
    /// So much longer is the slot of the beacon, which has the list of members, ns.
    pub list_ns: u64,
    /// Nodes that began to ask.
    pub asked: u32,
    /// Nodes that came in.
    pub joined: u32,
    /// From the first ask to the first slot, ns, of half of those that came in. `null` if nobody did.
    pub p50_ns: Option<u64>,
    /// The longest, ns.
    pub max_ns: Option<u64>,
}

impl Joining {
    /// Whether everybody who asked came in.
    pub fn is_whole(&self) -> bool {
        self.joined == self.asked
    }
}

type Member = Tdma<Sink<16>, 4, 400, 128>;

/// A protocol that runs in a world while somebody else looks at it.
struct Open(Rc<RefCell<Member>>);

impl Protocol for Open {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.0.borrow_mut().handle(now, event, radio);
    }
    fn deadline(&self) -> Option<Instant> {
        self.0.borrow().deadline()
    }
}

impl Bench {
    /// Measures it for a scheme whose nodes join, at this cycle, with the costs of its slots.
    pub(super) fn measure_joining(&self, scheme: Scheme, cycle_ns: u64, costs: &SlotCosts) -> Joining {
        let (with, without) = (
            self.beacon(scheme, cycle_ns),
            self.beacon(
                Scheme {
                    joins: false,
                    ..scheme
                },
                cycle_ns,
            ),
        );
        let air = |octets: u16| costs.exchange(octets.into(), with.rate, false);
        let mut joining = Joining {
            ask_ns: costs
                .slot(costs.exchange(ASK_OCTETS as u32, with.rate, true))
                .as_ns(),
            list_ns: air(with.octets).less(air(without.octets)).as_ns(),
            asked: 0,
            joined: 0,
            p50_ns: None,
            max_ns: None,
        };
        let mut took: Vec<u64> = Vec::new();
        let open = TdmaPlan::open(Duration::from_ns(cycle_ns), with, costs);
        if let Ok(plan) = open {
            for world in 0..WORLDS {
                joining.asked += self.question.nodes;
                took.extend(self.let_in(scheme, world, &plan, cycle_ns));
            }
        }
        took.sort_unstable();
        joining.joined = took.len() as u32;
        joining.p50_ns = took.get(took.len().saturating_sub(1) / 2).copied();
        joining.max_ns = took.last().copied();
        joining
    }

    /// How long it took those who came in, in one world, ns.
    fn let_in(&self, scheme: Scheme, number: u64, plan: &TdmaPlan<128>, cycle_ns: u64) -> Vec<u64> {
        let q = &self.question;
        let seed = sim::rng::mix3(q.seed, number, 0x901_2e5);
        let mut random = Stream::new(seed, 1, Cause::Protocol);
        let settled_ns = settling_ns(cycle_ns);
        let begins: Vec<u64> = (0..=q.nodes)
            .map(|_| settled_ns + random.below(COMING_NS))
            .collect();
        let members: Vec<_> = (0..=q.nodes)
            .map(|n| Rc::new(RefCell::new(self.member(n, plan, begins[n as usize], cycle_ns))))
            .collect();
        let seat = |n: u32| Seat(Box::new(Open(members[n as usize].clone())));
        let (mut world, _) = self.nodes(seed, scheme, q.nodes, &seat);
        self.disturb(&mut world, scheme);
        let mut took = vec![None; members.len()];
        let end_ns = settled_ns + COMING_NS + PATIENCE_NS.max(PATIENCE_CYCLES * cycle_ns);
        while world.now_ns() < end_ns && took[1..].contains(&None) {
            world.run_until(world.now_ns() + cycle_ns);
            for (node, member) in members.iter().enumerate().skip(1) {
                // in the plan that holds
                let mut links = (member.borrow().plan())
                    .links(Question::address(node as u32))
                    .map(|(_, link)| link)
                    .collect::<Vec<_>>()
                    .into_iter();
                let is_in = links.any(|link| matches!(link, LinkKind::Transmit(_)));
                if is_in && took[node].is_none() {
                    took[node] = Some(world.now_ns().saturating_sub(begins[node]));
                }
            }
        }
        took.into_iter().flatten().collect()
    }

    fn member(&self, node: u32, plan: &TdmaPlan<128>, begins_ns: u64, cycle_ns: u64) -> Member {
        let q = &self.question;
        let every = plan.beacon().map_or(1, |b| b.every);
        let rules = Rules {
            lease: LEASE_CYCLES.max(LEASE_BEACONS * every),
            silent: 10 * LEASE_CYCLES.max(LEASE_BEACONS * every),
            confirm: Duration::from_ns(self.facts.indication.p99_99_ns),
            held: usize::MAX,
        };
        let (band, holdover) = (q.phy.band, holdover(cycle_ns));
        let (sync, membership) = match node {
            0 => (SyncConfig::own(band, holdover), Membership::Coordinator(rules)),
            _ => (
                SyncConfig::new(band, holdover),
                Membership::Station(Stay {
                    wish: self.wish(cycle_ns),
                    join_after: Duration::from_ns(begins_ns),
                    leave_after: None,
                    sign: (rules.silent / 4).max(1),
                    ask_again: rules.lease,
                }),
            ),
        };
        let (me, controller) = (Question::address(node), Question::address(0));
        let config = TdmaConfig {
            membership,
            ..TdmaConfig::new(me, plan.clone(), Sync::tracking(sync), controller, Queue::Voice)
        };
        Tdma::new(config, Sink::new(self.identity(node)))
    }

    /// What a node asks for: its messages, each of which is of use for two cycles, since it does not know when its slot will be.
    fn wish(&self, cycle_ns: u64) -> Wish {
        let q = &self.question;
        let octets = q.simulated_octets() as u16;
        let lost = match q.link {
            Link::Per { data, ack } => 1.0 - (1.0 - data) * (1.0 - ack),
            Link::SnrDb(db) => crate::scenario::overlay::loss(q.rate, db, u32::from(octets)),
        };
        let us = |ns: u64| (ns / 1_000).min(u32::MAX.into()) as u32;
        Wish {
            up_octets: octets,
            down_octets: octets,
            period_us: us(cycle_ns),
            deadline_us: us(2 * cycle_ns),
            per_ppm: (lost * 1e6) as u32,
            target_ppb: ((q.miss * 1e9) as u32).max(1),
        }
    }
}

/// The schedule with the slot in which anybody may ask.
pub(super) fn open_plan<const S: usize>(
    cycle: Duration,
    beacon: protocols::mac::tdma::schedule::BeaconSlot,
    flows: &[protocols::mac::tdma::schedule::Flow],
    costs: &SlotCosts,
) -> Result<TdmaPlan<S>, PlanError> {
    TdmaPlan::open(cycle, beacon, costs)?.with_flows(flows)
}
