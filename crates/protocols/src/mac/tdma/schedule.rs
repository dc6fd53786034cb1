//! The static schedule: which slot of the cycle is whose, and how long slots have to be.
//!
//! A cycle (superframe) starts with the slot of the beacon, if there is one. Then each flow has a slot, in the
//! order in which the flows are given. If a second round of slots for all flows fits in the rest of the cycle, it
//! follows, for what has failed or came late, and so on; what is left is cut into shared slots, in which a node
//! with a failed frame sends with a probability that leaves about one sender per slot. Where flows need different
//! numbers of slots, as [`admission`](super::admission) finds, these are spread over the cycle in place of rounds.
//!
//! A slot is `guard + T_DATA + SIFS + T_ACK + IFS`, with `guard = J + e`: the jitter of the release path and the
//! error of the clocks (SDMAC, Cena et al. 2018, section V.D.1; both as quantiles that one can live with). Where RTS is left on,
//! `T_RTS + SIFS + T_CTS + SIFS` go ahead of the data. IFS is
//! there because the adapters still sense the carrier: a frame goes on the air at once only if the medium has
//! been idle for AIFS before, and for EIFS if the last frame could not be decoded: where that is longer than the ACK and AIFS, a slot has
//! room for it ([`SlotCosts::exchange`]). With a backoff there has to be room for the contention window, too
//! ([`SlotCosts::cw_min`]), so slots are shorter [without](crate::mac::overlay::Access::without_backoff).

mod costs;
mod error;
mod room;
mod spread;

pub use costs::{NO_RTS, Release, SlotCosts};
pub use error::PlanError;

use super::join::wire::ASK_OCTETS;
use frame::{MacAddr, Rate};
use radio::Duration;
use room::Room;

/// Slots of a cycle at most, if nothing else is said.
pub const DEFAULT_SLOTS: usize = 128;

/// A payload that goes from one node to another, once per cycle if nothing else is said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Transmitter of the frames.
    pub from: MacAddr,
    /// Receiver of the frames: for uplinks of stations the access point, or a group.
    pub to: MacAddr,
    /// Octets of payload, without any header.
    pub payload_octets: u16,
}

/// The slot of the beacon, at the start of the cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeaconSlot {
    /// Who sends it.
    pub from: MacAddr,
    /// Octets of the beacon with header and FCS.
    pub octets: u16,
    /// Its rate.
    pub rate: Rate,
    /// It is sent in every n-th cycle; the slot is there in all. 0 counts as 1.
    pub every: u32,
}

/// Whose slot it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotUse {
    /// The beacon's.
    Beacon,
    /// A flow's: the first chance of its cycle (0), the second (1), and so on.
    Flow {
        /// Index of the flow.
        flow: u16,
        /// Which chance.
        chance: u16,
    },
    /// Anybody's whose frame has failed.
    Shared,
    /// Anybody's who wants to join or to leave.
    Ask,
}

/// A slot of the cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// Start, from the start of the cycle.
    pub start: Duration,
    /// Until the next slot may start.
    pub length: Duration,
    /// What an exchange in it may take ([`SlotCosts::exchange`]): T_DATA + SIFS + T_ACK, with RTS and CTS ahead where they are used.
    pub exchange: Duration,
    /// Whose it is.
    pub owner: SlotUse,
}

/// What a slot is to one station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkKind {
    /// It sends to this peer.
    Transmit(MacAddr),
    /// It receives from this peer.
    Receive(MacAddr),
    /// It may send what has failed.
    Shared,
    /// It may ask for slots of its own.
    Ask,
    /// It sends the beacon.
    SendBeacon,
    /// It hears the beacon.
    HearBeacon,
}

/// A schedule of up to `S` slots for up to `S` flows.
#[derive(Clone, Debug)]
pub struct TdmaPlan<const S: usize = DEFAULT_SLOTS> {
    cycle: Duration,
    costs: SlotCosts,
    beacon: Option<BeaconSlot>,
    ask: Option<Duration>,
    flows: [Option<Flow>; S],
    slots: [Option<Slot>; S],
    rounds: u32,
    spread: bool,
}

impl<const S: usize> TdmaPlan<S> {
    /// One slot per flow and cycle, and chances to repeat as the cycle has room for.
    ///
    /// # Errors
    /// [`PlanError`] says what does not fit.
    pub fn new(
        flows: &[Flow],
        cycle: Duration,
        beacon: Option<BeaconSlot>,
        costs: &SlotCosts,
    ) -> Result<TdmaPlan<S>, PlanError> {
        if flows.is_empty() {
            return Err(PlanError::NoFlows);
        }
        TdmaPlan::of(flows, None, cycle, beacon, None, costs)
    }

    /// A plan that stations join on the air: nothing but the beacon and a slot to ask in.
    ///
    /// # Errors
    /// [`PlanError`] if not even the first two fit.
    pub fn open(cycle: Duration, beacon: BeaconSlot, costs: &SlotCosts) -> Result<TdmaPlan<S>, PlanError> {
        let ask = costs.exchange(ASK_OCTETS as u32, beacon.rate, true);
        TdmaPlan::of(&[], None, cycle, Some(beacon), Some(ask), costs)
    }

    /// The same cycle with other flows.
    ///
    /// # Errors
    /// [`PlanError`] says what does not fit.
    pub fn with_flows(&self, flows: &[Flow]) -> Result<TdmaPlan<S>, PlanError> {
        TdmaPlan::of(flows, None, self.cycle, self.beacon, self.ask, &self.costs)
    }

    /// The same cycle with other flows, of which flow i has `slots[i]` slots (at least one, as many numbers as flows),
    /// spread over the cycle. Where all have one, there are rounds as in [`TdmaPlan::with_flows`].
    ///
    /// # Errors
    /// [`PlanError`] says what does not fit.
    pub fn with_slots(&self, flows: &[Flow], slots: &[u16]) -> Result<TdmaPlan<S>, PlanError> {
        debug_assert!(flows.len() == slots.len() && slots.iter().all(|n| *n > 0));
        let one_each = slots.iter().all(|n| *n == 1);
        let slots = (!one_each).then_some(slots);
        TdmaPlan::of(flows, slots, self.cycle, self.beacon, self.ask, &self.costs)
    }

    fn of(
        flows: &[Flow],
        spread: Option<&[u16]>,
        cycle: Duration,
        beacon: Option<BeaconSlot>,
        ask: Option<Duration>,
        costs: &SlotCosts,
    ) -> Result<TdmaPlan<S>, PlanError> {
        let times = |i: usize| spread.map_or(1, |n| n[i]);
        let own: usize = (0..flows.len()).map(|i| usize::from(times(i))).sum();
        let needed = own + usize::from(beacon.is_some()) + usize::from(ask.is_some());
        if needed > S || flows.len() > usize::from(u16::MAX) {
            return Err(PlanError::TooManySlots { needed });
        }
        let asking = ask.map_or(Duration::ZERO, |a| costs.slot(a));
        let more = flows.iter().enumerate();
        let more = more.map(|(i, f)| costs.slot(costs.of_flow(f)).times(u64::from(times(i)) - 1));
        let more = more.fold(asking, |a, b| a + b);
        let shortest_cycle = Self::shortest_cycle(flows, beacon, costs, 0) + more;
        if shortest_cycle > cycle {
            return Err(PlanError::DoesNotFit { shortest_cycle });
        }
        let mut plan = TdmaPlan {
            cycle,
            costs: *costs,
            beacon,
            ask,
            flows: core::array::from_fn(|i| flows.get(i).copied()),
            slots: [None; S],
            rounds: 0,
            spread: spread.is_some(),
        };
        let mut room = Room {
            slots: &mut plan.slots,
            used: 0,
            end: Duration::ZERO,
            cycle,
        };
        if let Some(beacon) = &beacon {
            room.add(costs, costs.of_beacon(beacon), SlotUse::Beacon);
        }
        if let Some(exchange) = ask {
            room.add(costs, exchange, SlotUse::Ask);
        }
        if let Some(slots) = spread {
            spread::lay_out(&mut room, flows, slots, &mut [0; S], costs)?;
        }
        let round: Duration = flows
            .iter()
            .map(|f| costs.slot(costs.of_flow(f)))
            .fold(Duration::ZERO, |a, b| a + b);
        let mut chance = 0;
        while !flows.is_empty() && spread.is_none() && room.has(round, flows.len()) {
            for (flow, f) in (0..).zip(flows) {
                room.add(costs, costs.of_flow(f), SlotUse::Flow { flow, chance });
            }
            chance += 1;
        }
        let longest = flows.iter().map(|f| costs.of_flow(f)).max();
        while let Some(longest) = longest.filter(|l| room.has(costs.slot(*l), 1)) {
            room.add(costs, longest, SlotUse::Shared);
        }
        plan.rounds = match spread {
            Some(slots) => slots.iter().copied().min().unwrap_or(0).into(),
            None => u32::from(chance),
        };
        Ok(plan)
    }

    /// The shortest cycle for `flows` with `chances` rounds of second chances.
    pub fn shortest_cycle(
        flows: &[Flow],
        beacon: Option<BeaconSlot>,
        costs: &SlotCosts,
        chances: u32,
    ) -> Duration {
        let one = |f: &Flow| costs.slot(costs.of_flow(f)).times(u64::from(chances) + 1);
        let beacon = beacon.map_or(Duration::ZERO, |b| costs.slot(costs.of_beacon(&b)));
        flows.iter().map(one).fold(beacon, |a, b| a + b)
    }

    /// Length of the cycle.
    pub fn cycle(&self) -> Duration {
        self.cycle
    }

    /// What it was computed from.
    pub fn costs(&self) -> &SlotCosts {
        &self.costs
    }

    /// The beacon's slot.
    pub fn beacon(&self) -> Option<&BeaconSlot> {
        self.beacon.as_ref()
    }

    /// Slots that each flow has in a cycle, at least: 1 without second chances.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Shared slots of a cycle.
    pub fn shared(&self) -> usize {
        self.slots().filter(|s| s.owner == SlotUse::Shared).count()
    }

    /// All slots, in the order of time.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().map_while(Option::as_ref)
    }

    /// A slot by its number.
    pub fn slot(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index)?.as_ref()
    }

    /// A flow by its number.
    pub fn flow(&self, flow: u16) -> Option<&Flow> {
        self.flows.get(usize::from(flow))?.as_ref()
    }

    /// The schedule as station `me` sees it: number of the slot, and what it does in it.
    pub fn links(&self, me: MacAddr) -> impl Iterator<Item = (usize, LinkKind)> {
        self.slots()
            .enumerate()
            .filter_map(move |(i, slot)| Some((i, self.link(slot, me)?)))
    }

    fn link(&self, slot: &Slot, me: MacAddr) -> Option<LinkKind> {
        match slot.owner {
            SlotUse::Beacon if self.beacon?.from == me => Some(LinkKind::SendBeacon),
            SlotUse::Beacon => Some(LinkKind::HearBeacon),
            SlotUse::Shared => Some(LinkKind::Shared),
            SlotUse::Ask => Some(LinkKind::Ask),
            SlotUse::Flow { flow, .. } => {
                let f = self.flow(flow)?;
                if f.from == me {
                    Some(LinkKind::Transmit(f.to))
                } else {
                    (f.to == me || f.to.is_group()).then_some(LinkKind::Receive(f.from))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::{Phy, RateSet};
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    const AP: MacAddr = MacAddr::local(0);
    const NS: fn(u64) -> Duration = Duration::from_ns;

    /// The paper's margin: 5.415 us of jitter (99.9 %) and 7.110 us between the clocks.
    fn paper() -> SlotCosts {
        let release = Release {
            min: NS(19_837),
            high: NS(25_252),
        };
        SlotCosts {
            basic: RateSet::OFDM_6_ONLY,
            overhead_octets: 36,
            ..SlotCosts::new(Phy::A, Rate::OFDM_54, release, NS(7_110))
        }
    }

    fn cell(nodes: u32) -> Vec<Flow> {
        let both = |i| {
            let flow = |from, to| Flow {
                from,
                to,
                payload_octets: 50,
            };
            [flow(AP, MacAddr::local(i)), flow(MacAddr::local(i), AP)]
        };
        (1..=nodes).flat_map(both).collect()
    }

    /// Section V.D.1: a margin of 12.525 us; with 36 us data, SIFS, 44 us ACK and DIFS a slot of 142.525 us.
    #[test]
    fn the_paper_s_slot() {
        assert_eq!(paper().guard(), NS(12_525));
        let plan: TdmaPlan = TdmaPlan::new(&cell(1), Duration::from_ms(1), None, &paper()).unwrap();
        let slot = plan.slot(0).unwrap();
        assert_eq!((slot.length, slot.exchange), (NS(142_525), Duration::from_us(96)));
    }

    #[test]
    fn eight_nodes_in_4_ms() {
        let beacon = BeaconSlot {
            from: AP,
            octets: 60,
            rate: Rate::OFDM_6,
            every: 25,
        };
        let plan: TdmaPlan = TdmaPlan::new(&cell(8), Duration::from_ms(4), Some(beacon), &paper()).unwrap();
        // 104 us of beacon and EIFS make a slot of 210.525 us; 16 slots of 142.525 us; the rest is 1509.075 us
        assert_eq!((plan.rounds(), plan.shared()), (1, 10));
        assert_eq!(plan.slots().count(), 27);
        let node = MacAddr::local(3);
        let mine: Vec<_> = plan.links(node).filter(|(_, l)| *l != LinkKind::Shared).collect();
        assert_eq!(
            mine,
            [
                (0, LinkKind::HearBeacon),
                (5, LinkKind::Receive(AP)),
                (6, LinkKind::Transmit(AP))
            ]
        );
        assert_eq!(
            plan.links(AP)
                .filter(|(_, l)| matches!(l, LinkKind::Transmit(_)))
                .count(),
            8
        );
        // with twice the cycle there is a second chance for everybody
        let plan: TdmaPlan = TdmaPlan::new(&cell(8), Duration::from_ms(8), Some(beacon), &paper()).unwrap();
        assert_eq!((plan.rounds(), plan.shared()), (3, 6));
    }

    #[test]
    fn what_does_not_fit() {
        let plan = |nodes, us| TdmaPlan::<64>::new(&cell(nodes), Duration::from_us(us), None, &paper());
        let shortest_cycle = NS(16 * 142_525);
        let e = plan(8, 2_280).unwrap_err();
        assert_eq!(e, PlanError::DoesNotFit { shortest_cycle });
        assert_eq!(
            e.to_string(),
            "the cycle is too short for one slot per flow, the shortest is 2281 us"
        );
        assert!(plan(8, 2_281).is_ok());
        assert_eq!(
            plan(33, 1_000_000).unwrap_err(),
            PlanError::TooManySlots { needed: 66 }
        );
        assert_eq!(plan(0, 1_000).unwrap_err(), PlanError::NoFlows);
        assert_eq!(
            TdmaPlan::<64>::shortest_cycle(&cell(8), None, &paper(), 1),
            NS(32 * 142_525)
        );
    }

    proptest! {
        /// Slots follow each other, each flow has one per round, and all lie within the cycle.
        #[test]
        fn slots_are_disjoint(nodes in 1u32..40, cycle_us in 0u64..40_000, payload in 0u16..1_500) {
            let flows: Vec<_> = cell(nodes).iter().map(|f| Flow { payload_octets: payload, ..*f }).collect();
            match TdmaPlan::<128>::new(&flows, Duration::from_us(cycle_us), None, &paper()) {
                Ok(plan) => {
                    let mut end = Duration::ZERO;
                    for s in plan.slots() {
                        prop_assert_eq!(s.start, end);
                        end = s.start + s.length;
                    }
                    prop_assert!(end <= plan.cycle());
                    for flow in 0..flows.len() as u16 {
                        let mine = plan.slots().filter(|s| matches!(s.owner, SlotUse::Flow { flow: f, .. } if f == flow));
                        prop_assert_eq!(mine.count() as u32, plan.rounds());
                    }
                    prop_assert!(plan.rounds() >= 1);
                }
                Err(PlanError::DoesNotFit { shortest_cycle }) => {
                    prop_assert!(shortest_cycle > Duration::from_us(cycle_us));
                    prop_assert!(TdmaPlan::<128>::new(&flows, shortest_cycle, None, &paper()).is_ok());
                }
                Err(e) => prop_assert!(false, "{}", e),
            }
        }
    }
}
