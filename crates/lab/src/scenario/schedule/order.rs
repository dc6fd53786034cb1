//! What `edf` of a group takes from the answer of its schedule: the test knows slots, and not who else waits for them.

use protocols::mac::tdma::admission::{ANY_TIME, Demand};
use protocols::mac::tdma::schedule::SlotUse;
use radio::Duration;

use super::super::node::duration;
use super::super::overlay::Order;
use super::super::protocol::Protocol;
use super::super::units::Time;
use super::super::world::{Pattern, Traffic};
use super::{Group, Plan};

impl Group {
    /// The schedule that its nodes run.
    pub(in crate::scenario) fn schedule(&self) -> Option<&String> {
        match &self.protocol {
            Protocol::Tdma(p) => Some(p.schedule.get_ref()),
            _ => None,
        }
    }

    /// How its frames are ordered ahead of their slots, if they are.
    pub(super) fn order(&self) -> Option<&Order> {
        match &self.protocol {
            Protocol::Tdma(p) => p.edf.as_ref(),
            _ => None,
        }
    }
}

/// What a flow wants under an order: a message without a lifetime has its deadline.
pub(super) fn ordered(demand: Demand, order: Option<&Order>) -> Demand {
    match order {
        Some(order) if demand.deadline == ANY_TIME => Demand {
            deadline: duration(order.deadline),
            ..demand
        },
        _ => demand,
    }
}

/// The first flow for which the answer is not known though its slots are enough, and why. `of` tells the order of a flow. A node has one
/// frame below for each receiver, so the slots are what counts as long as no other one of its own waits for that.
pub(super) fn doubt<'a>(
    demands: &[Demand],
    of: impl Fn(usize) -> Option<&'a Order>,
    plan: &Plan,
) -> Option<(usize, String)> {
    demands.iter().enumerate().find_map(|(n, demand)| {
        let order = of(n)?;
        let link = |d: &Demand| (d.flow.from, d.flow.to);
        let alone = demands.iter().filter(|d| link(d) == link(demand)).count() == 1;
        let of_flows = plan.slots().filter(|s| matches!(s.owner, SlotUse::Flow { .. }));
        let shortest = of_flows.map(|s| s.length).min().unwrap_or(Duration::ZERO);
        let cost = duration(order.cost);
        let why = if !alone {
            "other messages to this receiver go first if their deadlines are earlier".to_owned()
        } else if demand.deadline > demand.period {
            format!(
                "a message may come while the one before waits for its slot: that is so with a lifetime of up to {}",
                Time(demand.period.as_ns())
            )
        } else if cost > shortest {
            format!(
                "edf drops what has less than {} left, and the shortest slot takes {}",
                order.cost,
                Time(shortest.as_ns())
            )
        } else {
            return None;
        };
        Some((n, format!("edf is above its slots, and {why}")))
    })
}

/// The first flow with a lifetime for which nothing can be promised since it, or another one of its node, comes at random, and why: such a queue
/// may fill what a node holds. Nodes and their flows.
pub(super) fn at_random<'t>(
    flows: impl Iterator<Item = (u32, &'t Traffic)> + Clone,
) -> Option<(usize, String)> {
    let random = |t: &Traffic| matches!(t.pattern, Pattern::Poisson { .. });
    flows.clone().enumerate().find_map(|(n, (from, t))| {
        let beside = || flows.clone().any(|(node, other)| node == from && random(other));
        let why = match t.lifetime {
            None => return None,
            Some(_) if random(t) => "its messages come at random, and its slots are for their mean",
            Some(_) if beside() => "other messages of its node come at random, and may leave no room to wait",
            Some(_) => return None,
        };
        Some((n, why.to_owned()))
    })
}
