//! Which slot is next, and what goes in it.

use super::join::wire::Ask;
use super::join::{Membership, Side};
use super::schedule::{LinkKind, NO_RTS, SlotCosts};
use super::{Tdma, TdmaConfig};
use crate::dice;
use crate::mac::sync::NetworkTime;
use frame::MacAddr;
use frame::mac::Header;
use radio::pending::Held;
use radio::{AckPolicy, Duration, Instant, Protocol, RtsPolicy};

/// What it may do in one of its slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Right {
    SendBeacon,
    To(MacAddr),
    /// Which one of the shared slots of a cycle it is, from 0 on, and how many of them there are.
    Shared(u64, u64),
    Ask,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    pub(super) index: u16,
    pub(super) start: Duration,
    pub(super) exchange: Duration,
    /// The longest exchange among those of its other slots to the same receiver that are shorter; zero if none is.
    pub(super) shorter: Duration,
    pub(super) right: Right,
}

/// A slot of its own in a certain cycle, on the host's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) cycle: u64,
    /// Index in `own`.
    pub(super) own: usize,
    pub(super) start: Instant,
    /// From `open` to `close` a frame may be handed down for it.
    pub(super) open: Instant,
    pub(super) close: Instant,
    pub(super) content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    Beacon,
    Held(usize),
    /// A wish to the coordinator.
    Ask(Ask),
    /// A frame that says that it is still there.
    Sign,
}

/// In the tags of held requests: tries in the low 16 bits, and these.
pub(super) const SEEN: u64 = 1 << 16;
/// It has gone on its way in a slot, whatever became of it there.
pub(super) const SENT: u64 = 1 << 18;
/// It has failed, or its slot was lost: it may go in shared slots, and before others.
pub(super) const BEHIND: u64 = 1 << 17;
/// It is in a shared slot although it is not [`BEHIND`], and is as before if it fails there.
pub(super) const RELIEVED: u64 = 1 << 19;

/// One of so many shared slots is left to what others were sent in place of, if nothing that failed goes there. With each of them failures
/// would meet such a frame wherever they go, fail again, and come back with the next ones.
const RELIEF: u64 = 4;

/// The slots in which a node may send, in the order of time.
pub(super) fn own_slots<const S: usize>(config: &TdmaConfig<S>) -> [Option<Own>; S] {
    let mut own = [None; S];
    let mut used = 0;
    let shared = config.plan.shared() as u64;
    let mut shared_before = 0;
    for (index, link) in config.plan.links(config.me) {
        let right = match link {
            LinkKind::SendBeacon => Right::SendBeacon,
            LinkKind::Transmit(peer) => Right::To(peer),
            LinkKind::Shared => {
                shared_before += 1;
                Right::Shared(shared_before - 1, shared)
            }
            LinkKind::Ask if matches!(config.membership, Membership::Station(_)) => Right::Ask,
            LinkKind::Receive(_) | LinkKind::HearBeacon | LinkKind::Ask => continue,
        };
        let slot = config.plan.slot(index).expect("a link has a slot");
        own[used] = Some(Own {
            index: index as u16,
            start: slot.start,
            exchange: slot.exchange,
            shorter: Duration::ZERO,
            right,
        });
        used += 1;
    }
    for i in 0..used {
        let shorter = own[..used].iter().flatten();
        let longest = own[i].map(|o| {
            let shorter = shorter.filter(|s| s.right == o.right && s.exchange < o.exchange);
            shorter.map(|s| s.exchange).max().unwrap_or_default()
        });
        if let (Some(own), Some(longest)) = (&mut own[i], longest) {
            own.shorter = longest;
        }
    }
    own
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Tdma<P, N, L, S> {
    /// How long the next try of a held frame takes, if it may go in a slot: to the right receiver, and short enough.
    pub(super) fn fits(&self, own: &Own, held: &Held<L>) -> Option<Duration> {
        let header = Header::parse(held.frame()).ok()?;
        let to_it = match own.right {
            Right::To(peer) => peer == header.receiver(),
            Right::Shared(..) => true,
            Right::SendBeacon | Right::Ask => false,
        };
        let (_, series) = held.how.series.at(held.tag as u16).filter(|_| to_it)?;
        let acked = self.config.left_on.acks && held.how.ack == AckPolicy::Normal && !header.is_group();
        let octets = held.frame().len() as u32 + 4;
        let costs = SlotCosts {
            rts_threshold: self.rts_threshold(held.how.rts),
            ..*self.config.plan.costs()
        };
        Some(costs.exchange(octets, series.rate, acked)).filter(|e| *e <= own.exchange)
    }

    /// RTS goes ahead of frames with such a policy that are longer than this.
    fn rts_threshold(&self, policy: RtsPolicy) -> u16 {
        match policy {
            _ if !self.config.left_on.rts => NO_RTS,
            RtsPolicy::Threshold => self.config.plan.costs().rts_threshold,
            RtsPolicy::Always => 0,
            RtsPolicy::Never => NO_RTS,
        }
    }

    /// Whether RTS goes ahead of a frame in a slot, with so many octets without FCS: the plan decides, and not the adapter.
    pub(super) fn rts(&self, policy: RtsPolicy, octets: usize) -> RtsPolicy {
        match octets + 4 > usize::from(self.rts_threshold(policy)) {
            true => RtsPolicy::Always,
            false => RtsPolicy::Never,
        }
    }

    /// How much later than a slot a frame in it may be on the air, and how much later it has to be at least.
    pub(super) fn latest(&self, own: &Own) -> Duration {
        let guard = self.config.plan.costs().guard();
        match own.right {
            Right::SendBeacon => guard,
            _ => guard.less(self.restraint.late),
        }
    }

    fn earliest(&self, own: &Own) -> Duration {
        match own.right {
            Right::SendBeacon => Duration::ZERO,
            _ => self.restraint.early,
        }
    }

    /// The first slot of its own that is not over and has something to send.
    pub(super) fn next_window(&self, now: Instant) -> Option<Window> {
        let sync = &self.config.sync;
        let fixed = matches!(self.side, Side::Fixed);
        let nothing = self.above.held.is_empty() && !self.is_master() && fixed;
        if nothing || !sync.is_good(now) {
            return None;
        }
        let costs = self.config.plan.costs();
        let cycle_ns = self.config.plan.cycle().as_ns();
        let on_air = sync.to_network(now + costs.release.min)?;
        let first = on_air.0 / cycle_ns;
        // every frame that has a slot at all has one in each cycle; beacons may be further apart
        let every = self.config.plan.beacon().map_or(1, |b| u64::from(b.every.max(1)));
        let last = first + if self.is_master() { every } else { 1 };
        // after a jump of the TSF the past may lie ahead
        let done = self.done.filter(|done| done.0 <= first + 1);
        for cycle in first..=last {
            // further on only the beacon, the first slot of all, is of interest
            let slots = if cycle > first + 1 { 1 } else { S };
            for (i, own) in self.own.iter().take(slots).map_while(Option::as_ref).enumerate() {
                // the slots of the beacon and of those who ask are in all plans the same
                let always = matches!(own.right, Right::SendBeacon | Right::Ask);
                if !always && (!self.holds_in(cycle) || self.restraint.silences(costs.guard())) {
                    continue;
                }
                let start = NetworkTime(cycle.saturating_mul(cycle_ns).saturating_add(own.start.as_ns()));
                let end = NetworkTime(start.0.saturating_add(self.latest(own).as_ns()));
                let start = NetworkTime(start.0.saturating_add(self.earliest(own).as_ns()));
                if end < on_air || done.is_some_and(|done| (cycle, i) <= done) {
                    continue;
                }
                let start = sync.to_local(start)?;
                let Some(content) = self.content(own, cycle, start) else {
                    continue;
                };
                return Some(Window {
                    cycle,
                    own: i,
                    start,
                    open: start - self.lead,
                    close: sync.to_local(end)? - costs.release.min,
                    content,
                });
            }
        }
        None
    }

    /// What goes in a slot that starts at `start`, as things are now. In one of a link, what no shorter slot of it has room for goes ahead of
    /// what one has, then what is in time whenever within the guard it begins, then the earliest deadline: so whatever has enough slots of its
    /// own, as [`admission`](super::admission) reckons, is in time, whatever else its node sends to the same receiver, and what comes too late
    /// anyhow takes no slot from what does not.
    pub(super) fn content(&self, own: &Own, cycle: u64, start: Instant) -> Option<Content> {
        let ready = |h: &Held<L>| {
            let exchange = self.fits(own, h)?;
            let in_time = h.how.expires.is_none_or(|t| start + exchange <= t);
            (in_time && h.how.not_before.is_none_or(|t| t <= start)).then_some(exchange)
        };
        match own.right {
            Right::SendBeacon => {
                let every = self.config.plan.beacon().map_or(1, |b| u64::from(b.every.max(1)));
                (cycle.is_multiple_of(every) && self.sending.is_none()).then_some(Content::Beacon)
            }
            Right::To(_) => {
                let latest = start + self.latest(own);
                let all = self.above.held.waiting();
                let rank = |(i, h): (usize, &Held<L>)| {
                    let exchange = ready(h)?;
                    let deadline = h.how.expires.unwrap_or(Instant::MAX);
                    let (has_shorter, may_be_late) = (exchange <= own.shorter, latest + exchange > deadline);
                    let in_line = h.tag & BEHIND == 0;
                    Some((has_shorter, may_be_late, deadline, in_line, h.order(), i))
                };
                let data = all.filter_map(rank).min().map(|(.., i)| Content::Held(i));
                data.or_else(|| self.errand(false, cycle))
            }
            Right::Ask => self.errand(true, cycle),
            Right::Shared(place, shared) => {
                let behind = || {
                    let waiting = self.above.held.waiting();
                    let behind = waiting.filter(|(_, h)| h.tag & BEHIND != 0 && ready(h).is_some());
                    behind.map(|(i, h)| (self.turn(h, cycle, shared), h.order(), i))
                };
                let due = behind().filter(|(turn, ..)| *turn == Some(place)).min();
                // one of the slots that are left for each frame that had its turn, all equally likely
                let over = || behind().filter(|(turn, ..)| turn.is_none_or(|t| t < place));
                let chosen = mix(cycle, self.config.me, own.index) % (shared - place) < over().count() as u64;
                let first = || over().min_by_key(|(_, order, _)| *order).filter(|_| chosen);
                let relieved = || {
                    let link = self.relieved(cycle.wrapping_mul(shared).wrapping_add(place))?;
                    let waiting = self.above.held.waiting();
                    let passed = waiting
                        .filter(|(_, h)| ready(h).is_some() && self.is_passed_over(own, h, link, start));
                    passed.min_by_key(|(_, h)| h.order()).map(|(i, _)| i)
                };
                let failed = due.or_else(first).map(|(.., i)| i);
                failed.or_else(relieved).map(Content::Held)
            }
        }
    }

    /// Which link of this node the `n`-th shared slot of all is left to, if nothing that failed goes there. All links have one in turn, so no two
    /// nodes meet: one that is in a slot less often than another has fewer of them.
    fn relieved(&self, n: u64) -> Option<Right> {
        let slots = self.config.plan.slots().count() as u64;
        let turn = (n / RELIEF)
            .checked_rem(slots)
            .filter(|_| n.is_multiple_of(RELIEF))?;
        let own = self.own.iter().flatten().find(|o| u64::from(o.index) == turn)?;
        Some(own.right).filter(|r| matches!(r, Right::To(_)))
    }

    /// Whether a frame of a link may go in a shared slot that starts at `start` although it has not failed: others went in all slots of a cycle in
    /// which it could have gone. Where each slot has its message, what is once late would stay so. A collision must leave it another try.
    fn is_passed_over(&self, shared: &Own, held: &Held<L>, link: Right, start: Instant) -> bool {
        let receiver = Header::parse(held.frame()).map(|h| Right::To(h.receiver()));
        let once_more = held.how.series.at(held.tag as u16 + 1).is_some();
        if held.tag & BEHIND != 0 || receiver != Ok(link) || !once_more {
            return false;
        }
        let cycle = self.config.plan.cycle();
        let links = self.own.iter().flatten().filter(|o| o.right == link);
        let links = links.filter(|o| self.fits(o, held).is_some());
        // how long ago the slots of the last cycle were
        let ago = links.map(|o| match shared.start < o.start {
            true => (shared.start + cycle).less(o.start),
            false => shared.start.less(o.start),
        });
        ago.max().is_some_and(|ago| held.since <= start - ago)
    }

    /// Which of the shared slots of a cycle is that of a frame before any other, `None` without slots for its receiver. Links whose slots
    /// are beside each other have different ones, so that frames that one thing on the air has held up do not meet there again.
    fn turn(&self, held: &Held<L>, cycle: u64, shared: u64) -> Option<u64> {
        let to = Header::parse(held.frame()).ok()?.receiver();
        let mut own = self.own.iter().flatten();
        let slot = own.find(|own| own.right == Right::To(to))?.index;
        Some((u64::from(slot) + mix(cycle, MacAddr::BROADCAST, 0) % shared) % shared)
    }
}

/// A number that looks random, the same for everybody who asks for the same.
pub(in crate::mac) fn mix(cycle: u64, node: MacAddr, slot: u16) -> u64 {
    let [a, b, c, d, e, f] = node.0;
    let [g, h] = slot.to_be_bytes();
    dice::mix(cycle.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}
