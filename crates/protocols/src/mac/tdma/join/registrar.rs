//! The coordinator's side: who is a member, and since when.

use super::wire::{Ask, Entry, List, MAX_OCTETS, MAX_REFUSALS, MAX_SLOTS_EACH, Roster, Wish};
use super::{JoinCounters, MAX_MEMBERS, Reason, Rules};
use crate::mac::tdma::admission::{Demand, Denied, fit};
use crate::mac::tdma::schedule::{Flow, TdmaPlan};
use frame::MacAddr;
use radio::Duration;

/// Flows that all members have together, at most.
pub(super) const MAX_FLOWS: usize = 2 * MAX_MEMBERS;
/// Beacons that say that somebody was refused.
pub(super) const REFUSED: u8 = 8;

/// The flows of a list, how many slots each has in a cycle, and how many flows there are: each member's to the coordinator, and
/// behind it the coordinator's to the member.
pub(super) fn flows(roster: &Roster, coordinator: MacAddr) -> ([Flow; MAX_FLOWS], [u16; MAX_FLOWS], usize) {
    let nothing = Flow {
        from: coordinator,
        to: coordinator,
        payload_octets: 0,
    };
    let (mut all, mut slots, mut count) = ([nothing; MAX_FLOWS], [1; MAX_FLOWS], 0);
    for m in roster.iter().flatten() {
        all[count] = Flow {
            from: m.address,
            to: coordinator,
            payload_octets: m.up_octets,
        };
        slots[count] = m.up_slots.into();
        count += 1;
        if m.down_octets > 0 {
            all[count] = Flow {
                from: coordinator,
                to: m.address,
                payload_octets: m.down_octets,
            };
            slots[count] = m.down_slots.into();
            count += 1;
        }
    }
    (all, slots, count)
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Member {
    address: MacAddr,
    wish: Wish,
    /// Slots in a cycle, to the coordinator and from it.
    slots: [u8; 2],
    /// The last cycle in which it was heard, or the first in which it can be; [`NOT_YET`] before a list tells.
    heard: u64,
}

/// Who is in no list so far may not speak, and is not silent.
const NOT_YET: u64 = u64::MAX;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(in crate::mac::tdma) struct Registrar {
    rules: Rules,
    me: MacAddr,
    /// As they should be from the next change on.
    members: [Option<Member>; MAX_MEMBERS],
    /// The newest list that beacons have told of.
    newest: Option<List>,
    refusals: [Option<(MacAddr, Reason, u8)>; MAX_REFUSALS],
    counters: JoinCounters,
}

impl Registrar {
    pub(in crate::mac::tdma) const fn new(rules: Rules, me: MacAddr) -> Registrar {
        Registrar {
            rules,
            me,
            members: [None; MAX_MEMBERS],
            newest: None,
            refusals: [None; MAX_REFUSALS],
            counters: JoinCounters {
                asked: 0,
                joined: 0,
                refused: 0,
                left: 0,
                lapsed: 0,
                changes: 0,
            },
        }
    }

    pub(in crate::mac::tdma) fn counters(&self) -> &JoinCounters {
        &self.counters
    }

    /// The newest list.
    pub(in crate::mac::tdma) fn newest(&self) -> Option<&List> {
        self.newest.as_ref()
    }

    /// Whether somebody is a member, or will be one with the next change.
    pub(in crate::mac::tdma) fn knows(&self, address: MacAddr) -> bool {
        self.members.iter().flatten().any(|m| m.address == address)
    }

    /// A frame of `address` was heard.
    pub(in crate::mac::tdma) fn heard(&mut self, address: MacAddr, cycle: u64) {
        if let Some(m) = self.members.iter_mut().flatten().find(|m| m.address == address) {
            m.heard = m.heard.max(cycle);
        }
    }

    /// Somebody asks. `plan` is any plan with the same cycle.
    pub(in crate::mac::tdma) fn ask<const S: usize>(
        &mut self,
        from: MacAddr,
        ask: Ask,
        cycle: u64,
        plan: &TdmaPlan<S>,
    ) {
        for place in self
            .refusals
            .iter_mut()
            .filter(|r| r.is_some_and(|r| r.0 == from))
        {
            *place = None;
        }
        let place = self
            .members
            .iter()
            .position(|m| m.is_some_and(|m| m.address == from));
        let wish = match (ask, place) {
            (Ask::Leave, Some(place)) => {
                self.members[place] = None;
                self.counters.left += 1;
                self.share_again(plan);
                return;
            }
            (Ask::Leave, None) => return,
            (Ask::Join(wish), Some(place)) if self.members[place].is_some_and(|m| m.wish == wish) => {
                return self.heard(from, cycle);
            }
            (Ask::Join(wish), _) => wish,
        };
        let free = place.or_else(|| self.members.iter().position(Option::is_none));
        let verdict = match free {
            None => Err(Reason::Full),
            Some(place) => {
                let mut all = self.members;
                all[place] = Some(Member {
                    address: from,
                    wish,
                    slots: [1; 2],
                    heard: NOT_YET,
                });
                self.admit(&mut all, place, plan).map(|()| all)
            }
        };
        match verdict {
            Ok(all) => {
                self.members = all;
                self.counters.joined += u64::from(place.is_none());
            }
            Err(reason) => {
                self.counters.refused += 1;
                // the oldest gives way
                self.refusals.rotate_right(1);
                self.refusals[0] = Some((from, reason, REFUSED));
            }
        }
    }

    /// Whether all get what they want when the one at `new` is among them; if so, they have their numbers of slots.
    fn admit<const S: usize>(
        &self,
        all: &mut [Option<Member>; MAX_MEMBERS],
        new: usize,
        plan: &TdmaPlan<S>,
    ) -> Result<(), Reason> {
        let wishes = all.iter().flatten().map(|m| &m.wish);
        if { wishes }.any(|w| w.up_octets.max(w.down_octets) > MAX_OCTETS) {
            return Err(Reason::NoRoom);
        }
        let before: usize = all[..new].iter().flatten().map(Member::flows).sum();
        let own = before..before + all[new].as_ref().map_or(0, Member::flows);
        self.share(all, plan).map_err(|d| match d {
            Some(denied) => Reason::of(denied, own),
            None => Reason::NoRoom,
        })
    }

    /// Gives each member the slots that it needs, or tells why there is no such schedule; `None`: a list cannot say it.
    fn share<const S: usize>(
        &self,
        all: &mut [Option<Member>; MAX_MEMBERS],
        plan: &TdmaPlan<S>,
    ) -> Result<(), Option<Denied>> {
        let (flows, _, count) = flows(&roster(all), self.me);
        let mut demands = [Demand {
            backlog: 0,
            flow: flows[0],
            period: Duration::ZERO,
            deadline: Duration::ZERO,
            phase: None,
            per: 0.0,
            target: 1.0,
        }; MAX_FLOWS];
        let wishes = all.iter().flatten();
        let each = wishes.flat_map(|m| core::iter::repeat_n(&m.wish, m.flows()));
        for ((demand, flow), wish) in demands.iter_mut().zip(flows).zip(each) {
            let period = Duration::from_us(wish.period_us.into());
            *demand = Demand {
                backlog: 0,
                flow,
                period,
                // nobody knows how many messages a station can hold, so the last one has to be gone when the next comes
                deadline: Duration::from_us(wish.deadline_us.into()).min(period),
                phase: None,
                per: f64::from(wish.per_ppm.min(1_000_000)) / 1e6,
                target: f64::from(wish.target_ppb.clamp(1, 1_000_000_000)) / 1e9,
            };
        }
        let plan = fit(plan, &demands[..count], self.rules.confirm, self.rules.held).map_err(Some)?;
        let mut number = 0;
        for member in all.iter_mut().flatten() {
            for n in 0..member.flows() {
                // how many rounds there are follows from the list
                let slots = if plan.is_spread() {
                    plan.slots_of(number)
                } else {
                    1
                };
                member.slots[n] = u8::try_from(slots)
                    .ok()
                    .filter(|n| *n <= MAX_SLOTS_EACH)
                    .ok_or(None)?;
                number += 1;
            }
        }
        Ok(())
    }

    /// Somebody has gone: the others share the cycle anew, or keep what they have.
    fn share_again<const S: usize>(&mut self, plan: &TdmaPlan<S>) {
        let mut all = self.members;
        if self.share(&mut all, plan).is_ok() {
            self.members = all;
        }
    }

    /// What the beacon of `cycle` says; `every`: cycles from beacon to beacon; `plan`: any plan with the same cycle.
    pub(in crate::mac::tdma) fn publish<const S: usize>(
        &mut self,
        cycle: u64,
        every: u64,
        plan: &TdmaPlan<S>,
    ) -> List {
        let lease = u64::from(self.rules.lease).max(every);
        if self.drop_silent(cycle) {
            self.share_again(plan);
        }
        // a jump of the clock: nobody has promised anything for then
        let known = self.newest.filter(|n| n.starts <= cycle + 2 * (lease + every));
        let roster = roster(&self.members);
        let mut list = match known {
            None => List {
                version: self.newest.map_or(0, |n| n.version.wrapping_add(1)),
                starts: cycle + lease + every,
                until: 0,
                roster,
            },
            Some(n) if n.roster != roster && cycle >= n.starts => List {
                version: n.version.wrapping_add(1),
                starts: n.until.max(cycle + 1),
                until: 0,
                roster,
            },
            Some(n) => n,
        };
        if self.newest.is_none_or(|n| n.version != list.version) {
            self.counters.changes += 1;
            // who is new cannot be heard before it starts
            for m in self.members.iter_mut().flatten() {
                m.heard = match m.heard {
                    NOT_YET => list.starts,
                    heard => heard.max(list.starts),
                };
            }
        }
        list.until = list.until.max(cycle + lease).max(list.starts + every);
        self.newest = Some(list);
        list
    }

    /// Who was refused lately, for one more beacon.
    pub(in crate::mac::tdma) fn refusals(&mut self) -> [Option<(MacAddr, Reason)>; MAX_REFUSALS] {
        self.refusals.each_mut().map(|place| {
            let (address, reason, left) = (*place)?;
            *place = (left > 1).then_some((address, reason, left - 1));
            Some((address, reason))
        })
    }

    /// Whether there was anybody to drop.
    fn drop_silent(&mut self, cycle: u64) -> bool {
        let before = self.counters.lapsed;
        for place in &mut self.members {
            if place.is_some_and(|m| m.heard.saturating_add(self.rules.silent.into()) < cycle) {
                *place = None;
                self.counters.lapsed += 1;
            }
        }
        self.counters.lapsed > before
    }
}

impl Member {
    fn flows(&self) -> usize {
        1 + usize::from(self.wish.down_octets > 0)
    }
}

fn roster(members: &[Option<Member>; MAX_MEMBERS]) -> Roster {
    let mut all = members.iter().flatten().map(|m| Entry {
        address: m.address,
        up_octets: m.wish.up_octets,
        down_octets: m.wish.down_octets,
        up_slots: m.slots[0],
        down_slots: m.slots[1],
    });
    core::array::from_fn(|_| all.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::tdma::schedule::{BeaconSlot, Release, SlotCosts};
    use frame::{Phy, Rate};
    use radio::Duration;

    const US: fn(u64) -> Duration = Duration::from_us;

    /// Who asks while a list is valid has to wait for the next one, however long that takes, and is not silent meanwhile.
    #[test]
    fn who_waits_for_a_list_is_not_silent() {
        let release = Release {
            min: US(10),
            high: US(14),
        };
        let beacon = BeaconSlot {
            from: MacAddr::local(0),
            octets: 400,
            rate: Rate::OFDM_6,
            every: 1,
        };
        let costs = SlotCosts::new(Phy::A, Rate::OFDM_54, release, US(3));
        let plan = TdmaPlan::<64>::open(US(4_000), beacon, &costs).unwrap();
        let rules = Rules {
            lease: 50,
            silent: 3,
            confirm: US(100),
            held: 64,
        };
        let wish = Wish {
            up_octets: 50,
            down_octets: 0,
            period_us: 8_000,
            deadline_us: 8_000,
            per_ppm: 0,
            target_ppb: 0,
        };
        let mut registrar = Registrar::new(rules, MacAddr::local(0));
        for cycle in 0..200 {
            if [0, 10, 70].contains(&cycle) {
                registrar.ask(MacAddr::local(1 + cycle as u32), Ask::Join(wish), cycle, &plan);
            }
            let list = registrar.publish(cycle, 1, &plan);
            for entry in list.roster.iter().flatten().filter(|_| cycle >= list.starts) {
                registrar.heard(entry.address, cycle);
            }
        }
        let inside = registrar.newest().unwrap().roster.iter().flatten().count();
        assert_eq!((inside, registrar.counters().lapsed), (3, 0));
    }
}
