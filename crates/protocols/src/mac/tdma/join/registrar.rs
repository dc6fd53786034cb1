//! The coordinator's side: who is a member, and since when.

use super::wire::{Ask, Entry, List, MAX_REFUSALS, Roster, Wish};
use super::{JoinCounters, MAX_MEMBERS, Reason, Rules};
use crate::mac::tdma::admission::{Demand, Denied, judge};
use crate::mac::tdma::schedule::{Flow, TdmaPlan};
use frame::MacAddr;
use radio::Duration;

/// Flows that all members have together, at most.
pub(super) const MAX_FLOWS: usize = 2 * MAX_MEMBERS;
/// Beacons that say that somebody was refused.
pub(super) const REFUSED: u8 = 8;

/// The flows of a list: each member's to the coordinator, and behind it the coordinator's to the member.
pub(super) fn flows(roster: &Roster, coordinator: MacAddr) -> ([Flow; MAX_FLOWS], usize) {
    let nothing = Flow {
        from: coordinator,
        to: coordinator,
        payload_octets: 0,
    };
    let (mut all, mut count) = ([nothing; MAX_FLOWS], 0);
    for m in roster.iter().flatten() {
        all[count] = Flow {
            from: m.address,
            to: coordinator,
            payload_octets: m.up_octets,
        };
        count += 1;
        if m.down_octets > 0 {
            all[count] = Flow {
                from: coordinator,
                to: m.address,
                payload_octets: m.down_octets,
            };
            count += 1;
        }
    }
    (all, count)
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Member {
    address: MacAddr,
    wish: Wish,
    /// The last cycle in which it was heard, or the first in which it can be.
    heard: u64,
}

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
                    heard: cycle,
                });
                self.admit(&all, place, plan).map(|()| all)
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

    /// Whether all get what they want when the one at `new` is among them.
    fn admit<const S: usize>(
        &self,
        all: &[Option<Member>; MAX_MEMBERS],
        new: usize,
        plan: &TdmaPlan<S>,
    ) -> Result<(), Reason> {
        let roster = roster(all);
        let (flows, count) = flows(&roster, self.me);
        let before: usize = all[..new].iter().flatten().map(Member::flows).sum();
        let own = before..before + all[new].as_ref().map_or(0, Member::flows);
        let of = |d: Denied| Reason::of(d, own.clone());
        let plan = plan
            .with_flows(&flows[..count])
            .map_err(|e| of(Denied::Plan(e)))?;
        let wishes = all.iter().flatten().map(|m| &m.wish);
        let mut demands = [Demand {
            flow: flows[0],
            period: Duration::ZERO,
            deadline: Duration::ZERO,
            per: 0.0,
            target: 1.0,
        }; MAX_FLOWS];
        let mut n = 0;
        for wish in wishes {
            for _ in 0..1 + usize::from(wish.down_octets > 0) {
                demands[n] = Demand {
                    flow: flows[n],
                    period: Duration::from_us(wish.period_us.into()),
                    deadline: Duration::from_us(wish.deadline_us.into()),
                    per: f64::from(wish.per_ppm.min(1_000_000)) / 1e6,
                    target: f64::from(wish.target_ppb.clamp(1, 1_000_000_000)) / 1e9,
                };
                n += 1;
            }
        }
        judge(&plan, &demands[..n], self.rules.confirm).map_err(of)
    }

    /// What the beacon of `cycle` says; `every`: cycles from beacon to beacon.
    pub(in crate::mac::tdma) fn publish(&mut self, cycle: u64, every: u64) -> List {
        let lease = u64::from(self.rules.lease).max(every);
        self.drop_silent(cycle);
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
                m.heard = m.heard.max(list.starts);
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

    fn drop_silent(&mut self, cycle: u64) {
        for place in &mut self.members {
            if place.is_some_and(|m| m.heard.saturating_add(self.rules.silent.into()) < cycle) {
                *place = None;
                self.counters.lapsed += 1;
            }
        }
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
    });
    core::array::from_fn(|_| all.next())
}
