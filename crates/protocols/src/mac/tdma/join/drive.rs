//! Both sides within the overlay: lists become plans, and asks become frames.

use super::registrar::flows;
use super::wire::{ASK_OCTETS, Ask, List, MAX_BODY_OCTETS, MAX_LIST_OCTETS, ONE_REPORT_OCTETS, OUI, Word};
use super::{JoinCounters, Membership, Reason, Registrar, Ticket};
use crate::mac::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use crate::mac::sync::{NetworkTime, SHIFTS_OCTETS, Shifts};
use crate::mac::tdma::watch::{Verdict, judge};
use crate::mac::tdma::window::{Content, SEEN, Window, own_slots};
use crate::mac::tdma::{Tdma, TdmaConfig};
use frame::element::{Elements, Vendor};
use frame::mac::{AckPolicy, Flags, FrameControl, FrameType, Header, Kind, QosControl, SequenceControl};
use frame::{AccessCategory, MacAddr, Wire, mgmt};
use radio::{Beacon, Confirm, Indication, Instant, Outcome, Protocol, Queue, Radio, RtsPolicy, TxHow};

/// Octets of a Null frame.
const NULL_OCTETS: usize = 26;

/// What a node does beside the data of the protocol above.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "without an allocator there is nothing to box the larger ones in"
)]
pub(in crate::mac::tdma) enum Side {
    Fixed,
    Coordinator(Registrar),
    Station(Ticket),
}

impl Side {
    pub(in crate::mac::tdma) fn of<const S: usize>(config: &TdmaConfig<S>) -> Side {
        match config.membership {
            Membership::Fixed => Side::Fixed,
            Membership::Coordinator(rules) => Side::Coordinator(Registrar::new(rules, config.me)),
            Membership::Station(stay) => Side::Station(Ticket::new(stay, config.me)),
        }
    }
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Tdma<P, N, L, S> {
    /// What it has counted about joining; `None` if the plan is fixed.
    pub fn join_counters(&self) -> Option<&JoinCounters> {
        match &self.side {
            Side::Fixed => None,
            Side::Coordinator(r) => Some(r.counters()),
            Side::Station(t) => Some(t.counters()),
        }
    }

    /// Why this station was refused, if that was the last answer.
    pub fn refused(&self) -> Option<Reason> {
        match &self.side {
            Side::Station(t) => t.refused(),
            _ => None,
        }
    }

    /// Whether this station shall have slots from now on, whatever its [`Stay`](super::Stay) says. It acts on the
    /// next event.
    pub fn want_slots(&mut self, slots: bool) {
        if let Side::Station(t) = &mut self.side {
            t.want(slots);
        }
    }

    /// Whether the plan that it has holds in a cycle.
    pub fn holds_in(&self, cycle: u64) -> bool {
        match &self.side {
            Side::Fixed => true,
            Side::Coordinator(r) => match (self.list, r.newest()) {
                (Some((_, starts)), Some(n)) => cycle >= starts && (n.starts == starts || cycle < n.starts),
                _ => false,
            },
            Side::Station(t) => {
                let starts = t.current().map(|l| l.starts);
                starts.is_some_and(|s| cycle >= s) && cycle < t.until() && self.list.map(|l| l.1) == starts
            }
        }
    }

    fn every(&self) -> u64 {
        self.config.plan.beacon().map_or(1, |b| b.every.max(1).into())
    }

    /// The cycle in which a frame would be that was released now.
    fn cycle(&self, now: Instant) -> Option<u64> {
        let release = self.config.plan.costs().release.min;
        let sync = &self.config.sync;
        let at = sync.to_network(now + release).filter(|_| sync.is_good(now))?;
        Some(at.0 / self.config.plan.cycle().as_ns())
    }

    /// Takes the plan of the list that holds by now.
    pub(in crate::mac::tdma) fn follow_lists(&mut self, now: Instant) {
        let Some(cycle) = self.cycle(now) else {
            // without a clock no cycle begins
            self.wake = None;
            return;
        };
        let list = match &mut self.side {
            Side::Fixed => return,
            Side::Coordinator(r) => r.newest().filter(|n| n.starts <= cycle).copied(),
            Side::Station(t) => {
                t.tick(now, cycle);
                t.current().copied()
            }
        };
        if let Some(list) = list.filter(|l| self.list != Some((l.version, l.starts))) {
            self.take(&list);
        }
        self.wake = match &self.side {
            Side::Fixed => None,
            Side::Coordinator(r) => r.newest().map(|n| n.starts).filter(|s| *s > cycle),
            // one cycle ahead, because the slot may be an early one
            Side::Station(t) => t.next_errand(cycle).map(|c| c.max(cycle + 1)),
        }
        .and_then(|c| self.begins(c))
        .filter(|t| *t > now);
        if let Side::Station(t) = &self.side {
            let wish = t.next_wish(now);
            self.wake = [self.wake, wish].into_iter().flatten().min();
        }
    }

    /// When to wake up for the start of a cycle.
    fn begins(&self, cycle: u64) -> Option<Instant> {
        let at = cycle.checked_mul(self.config.plan.cycle().as_ns())?;
        let local = self.config.sync.to_local(NetworkTime(at))?;
        Some(local - self.config.plan.costs().release.min)
    }

    fn take(&mut self, list: &List) {
        let (flows, slots, count) = flows(&list.roster, self.config.follows);
        // a coordinator says nothing that does not fit; another one may
        let Ok(plan) = self.config.plan.with_slots(&flows[..count], &slots[..count]) else {
            return;
        };
        self.list = Some((list.version, list.starts));
        self.config.plan = plan;
        self.own = own_slots(&self.config);
        for i in 0..N {
            if let Some(held) = self.above.held.get_mut(i) {
                held.tag &= !SEEN;
            }
        }
    }

    /// Whether a frame to `receiver` may wait, though there is no slot for it.
    pub(in crate::mac::tdma) fn may_come(&self, receiver: MacAddr) -> bool {
        match &self.side {
            Side::Fixed => false,
            Side::Coordinator(r) => {
                let newest = r.newest().map(|n| (n.version, n.starts));
                r.knows(receiver) && (newest != self.list || r.newest().is_none_or(|n| !has(n, receiver)))
            }
            Side::Station(t) => {
                let holds = t.current().is_some_and(|l| has(l, self.config.me));
                t.hopes() && !holds
            }
        }
    }

    /// What a slot is for when there is no data.
    pub(in crate::mac::tdma) fn errand(&self, asks: bool, cycle: u64) -> Option<Content> {
        let Side::Station(t) = &self.side else {
            return None;
        };
        if self.errand_out.is_some() {
            return None;
        }
        match asks {
            true => t.asks(cycle).map(Content::Ask),
            false => t.owes_sign(cycle).then_some(Content::Sign),
        }
    }

    pub(in crate::mac::tdma) fn send_errand(
        &mut self,
        window: Window,
        expires: Instant,
        not_before: Option<Instant>,
        radio: &mut dyn Radio,
    ) {
        let (me, to) = (self.config.me, self.config.follows);
        let mut out = [0; ASK_OCTETS];
        self.sequence = (self.sequence + 1) & 0xfff;
        let queue = self.config.access.map_or(Queue::Voice, |a| a.queue);
        let (frame, rate): (&[u8], _) = match window.content {
            Content::Ask(ask) => {
                let rate = self.config.plan.beacon().map(|b| b.rate);
                (ask.emit(me, to, self.sequence, &mut out), rate)
            }
            _ => (null(me, to, self.sequence, queue, &mut out), None),
        };
        let rate = rate.unwrap_or(self.config.plan.costs().rate);
        let how = TxHow {
            rts: self.rts(RtsPolicy::Threshold, frame.len()),
            not_before,
            ..TxHow::one_shot(rate)
        };
        let how = how.queue(queue).expires(expires).adapter(self.config.adapter);
        let token = radio.token();
        self.errand_out = Some((token, window));
        radio.request(token, frame, &how);
    }

    pub(in crate::mac::tdma) fn errand_ended(&mut self, window: Window, confirm: &Confirm) {
        self.errand_out = None;
        let every = self.every();
        if let Side::Station(t) = &mut self.side {
            let acked = confirm.outcome == Outcome::Acked;
            match window.content {
                Content::Ask(_) => t.asked(confirm.attempts > 0, acked, window.cycle, every),
                _ if acked => t.was_heard(window.cycle),
                _ => {}
            }
        }
    }

    /// A frame of its own was acknowledged.
    pub(in crate::mac::tdma) fn was_heard(&mut self, now: Instant) {
        if let (Some(cycle), Side::Station(t)) = (self.cycle(now), &mut self.side) {
            t.was_heard(cycle);
        }
    }

    /// A frame that is not a beacon. True if it was for this layer alone.
    pub(in crate::mac::tdma) fn note_frame(
        &mut self,
        now: Instant,
        received: &Indication<'_>,
        radio: &dyn Radio,
    ) -> bool {
        self.check(now, received, radio);
        let cycle = self.cycle(now);
        let (Side::Coordinator(registrar), Some(cycle)) = (&mut self.side, cycle) else {
            return false;
        };
        let Ok(header) = Header::parse(received.frame) else {
            return false;
        };
        if let Some(from) = header.transmitter() {
            registrar.heard(from, cycle);
        }
        if header.receiver() == self.config.me
            && let Some((from, ask)) = Ask::parse(received.frame)
        {
            registrar.ask(from, ask, cycle, &self.config.plan);
            return true;
        }
        header.kind() == Kind::QOS_NULL
    }

    /// The word in a beacon of the coordinator.
    pub(in crate::mac::tdma) fn note_beacon(&mut self, now: Instant, beacon: &Beacon<'_>) {
        if let Ok(parsed) = mgmt::Beacon::parse(beacon.received.frame) {
            self.note_word(now, parsed.elements);
        }
    }

    /// The word among the elements of what the coordinator sends in the slot of the beacon.
    pub(in crate::mac::tdma) fn note_word(&mut self, now: Instant, elements: Elements<'_>) {
        let word = Word::find(elements).unwrap_or(Word::EMPTY);
        let mine = word
            .reports
            .iter()
            .flatten()
            .find(|r| r.address == self.config.me);
        let guard = self.config.plan.costs().guard();
        self.counters.told += u64::from(self.restraint.hear(mine, guard));
        let (cycle, every) = (self.cycle(now), self.every());
        if let (Some(cycle), Side::Station(t)) = (cycle, &mut self.side) {
            t.hear(&word, cycle, every);
        }
    }

    /// Holds a frame against the plan.
    fn check(&mut self, now: Instant, received: &Indication<'_>, radio: &dyn Radio) {
        if !self.config.watch || !self.config.sync.is_good(now) {
            return;
        }
        let Ok(header) = Header::parse(received.frame) else {
            return;
        };
        let (Some(from), true) = (header.transmitter(), header.frame_type() != FrameType::Control) else {
            return;
        };
        let costs = *self.config.plan.costs();
        let Some(on_air) = self.config.sync.on_air(now, received, costs.phy.band, radio) else {
            return;
        };
        // the exchange began with its RTS, if that was left on
        let octets = received.frame.len() as u32 + 4;
        let ahead = costs.ahead(octets, received.rate, header.wants_ack());
        let begun = NetworkTime(on_air.begun.0.saturating_sub(ahead.as_ns()));
        let cycle = begun.0 / self.config.plan.cycle().as_ns();
        if !self.holds_in(cycle) {
            return;
        }
        let tolerance = costs.sync_error + on_air.off_by;
        let off = match judge(&self.config.plan, from, begun, on_air.ended, tolerance) {
            Verdict::InSlot => return,
            Verdict::Outside(off) => off,
            // strangers that send to us have to do with us
            Verdict::NoSlot if header.receiver() == self.config.me => {
                self.counters.strays += 1;
                return;
            }
            Verdict::NoSlot => return,
        };
        self.counters.outside += 1;
        if self.is_master() {
            self.reports.note(from, off);
        }
    }

    /// The element of its next beacon and how long it may be.
    pub(in crate::mac::tdma) fn word(&mut self, cycle: Option<u64>, room: usize) -> Option<Word> {
        let every = self.every();
        if let (Side::Coordinator(r), Some(cycle)) = (&mut self.side, cycle) {
            return Some(Word {
                list: Some(r.publish(cycle, every, &self.config.plan)),
                refusals: r.refusals(),
                reports: self.reports.tell(usize::MAX),
            });
        }
        if room < ONE_REPORT_OCTETS || !self.config.watch {
            return None;
        }
        let word = Word {
            reports: self.reports.tell(1),
            ..Word::EMPTY
        };
        word.reports[0].is_some().then_some(word)
    }

    /// Writes a beacon with all that it has to say.
    pub(in crate::mac::tdma) fn write_beacon<'o>(
        &mut self,
        now: Instant,
        beacon: &BeaconFrame<'_>,
        cycle: Option<u64>,
        out: &'o mut [u8; MAX_BEACON_OCTETS + MAX_LIST_OCTETS + SHIFTS_OCTETS],
    ) -> &'o [u8] {
        let shifts = self.config.sync.shifts(now).map(|s| s.body());
        let clocks = shifts.as_ref().map(Shifts::element);
        let slot = self.config.plan.beacon().map_or(0, |b| usize::from(b.octets));
        let bare = beacon.emit_with(clocks.as_slice(), out).len() + 4;
        let Some(word) = self.word(cycle, slot.saturating_sub(bare)) else {
            return &out[..bare - 4];
        };
        let mut body = [0; MAX_BODY_OCTETS];
        let n = word.emit(&mut body);
        let word = Vendor {
            oui: OUI,
            body: &body[..n],
        };
        match clocks {
            Some(clocks) => beacon.emit_with(&[word, clocks], out),
            None => beacon.emit_with(&[word], out),
        }
    }
}

fn has(list: &List, address: MacAddr) -> bool {
    list.roster.iter().flatten().any(|m| m.address == address)
}

/// A QoS data frame with nothing in it, to the access point `to` (IEEE 802.11-2016, 9.3.2.1). Its traffic identifier says which
/// queue it goes into: some hosts know no other way.
fn null(me: MacAddr, to: MacAddr, sequence: u16, queue: Queue, out: &mut [u8; ASK_OCTETS]) -> &[u8] {
    let category = match queue {
        Queue::Background => AccessCategory::Background,
        Queue::BestEffort => AccessCategory::BestEffort,
        Queue::Video => AccessCategory::Video,
        Queue::Voice | Queue::Beacon => AccessCategory::Voice,
    };
    let qos = QosControl::new(category.tid(), AckPolicy::Normal);
    out[..2].copy_from_slice(&FrameControl::new(Kind::QOS_NULL, Flags::TO_DS).0);
    out[4..10].copy_from_slice(&to.0);
    out[10..16].copy_from_slice(&me.0);
    out[16..22].copy_from_slice(&to.0);
    out[22..24].copy_from_slice(&SequenceControl::new(sequence, 0).0.to_le_bytes());
    out[24..26].copy_from_slice(&qos.0.to_le_bytes());
    &out[..NULL_OCTETS]
}
