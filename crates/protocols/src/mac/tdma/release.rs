//! What goes down in a slot, and how it ends.

use super::Tdma;
use super::join::wire::MAX_LIST_OCTETS;
use super::window::{BEHIND, Content, RELIEVED, Right, SENT, Window};
use crate::mac::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use crate::mac::sync::SHIFTS_OCTETS;
use crate::mac::sync::reference::{FOLLOW_UP_OCTETS, MAX_MORE};
use frame::mac::Header;
use frame::mac::header::set_retry;
use radio::pending::Held;
use radio::{AckPolicy, Confirm, Instant, Outcome, Protocol, Queue, Radio, SeriesList, TxHow};

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Tdma<P, N, L, S> {
    pub(super) fn use_slot(&mut self, now: Instant, window: Window, radio: &mut dyn Radio) {
        self.done = Some((window.cycle, window.own));
        let guard_ends = window.close + self.config.plan.costs().release.min;
        let not_before = self.holds_back.then_some(window.start);
        let index = match window.content {
            Content::Beacon => {
                return self.send_beacon(now, guard_ends, not_before, Some(window.cycle), radio);
            }
            Content::Ask(_) | Content::Sign => {
                return self.send_errand(window, guard_ends, not_before, radio);
            }
            Content::Held(index) => index,
        };
        let own = self.own[window.own].expect("its own slot");
        let on = self.config.left_on;
        let held = self.above.held.get(index).expect("it waits");
        let (_, series) = held.how.series.at(held.tag as u16).expect("it fits");
        let exchange = self.fits(&own, held).expect("it is its content");
        // what begins later than that has its receiver too late
        let in_time = held.how.expires.map_or(guard_ends, |t| t - exchange);
        let how = TxHow {
            series: SeriesList::one(series.rate, 1),
            rts: self.rts(held.how.rts, held.frame().len()),
            ack: if on.acks { held.how.ack } else { AckPolicy::NoAck },
            not_before,
            expires: Some(in_time.min(guard_ends)),
            ..held.how
        };
        let gone = self.gone[index].filter(|_| held.tag & SENT != 0);
        self.aimed[index] = window.start;
        self.gone[index] = gone.or_else(|| self.newest.sent(held.frame()));
        let held = self.above.held.get_mut(index).expect("just there");
        let relieved = matches!(own.right, Right::Shared(..)) && held.tag & BEHIND == 0;
        held.tag |= SENT | if relieved { RELIEVED } else { 0 };
        self.above.held.launch(index, &how, radio);
        self.counters.released += 1;
        self.counters.in_shared += u64::from(matches!(own.right, Right::Shared(..)));
    }

    pub(super) fn send_beacon(
        &mut self,
        now: Instant,
        expires: Instant,
        not_before: Option<Instant>,
        cycle: Option<u64>,
        radio: &mut dyn Radio,
    ) {
        let Some(slot) = self.config.plan.beacon() else {
            return;
        };
        let how = TxHow {
            not_before,
            ..TxHow::one_shot(slot.rate)
        };
        let how = how
            .queue(Queue::Beacon)
            .expires(expires)
            .adapter(self.config.adapter);
        if self.config.reference.is_some() {
            self.sequence = (self.sequence + 1) & 0xfff;
            let Some(told) = self.references.follow_up() else {
                return;
            };
            let token = radio.token();
            self.sending = Some(token);
            let mut out = [0; FOLLOW_UP_OCTETS + MAX_MORE];
            return radio.request(token, self.write_follow_up(told, cycle, &mut out), &how);
        }
        let interval = self.config.plan.cycle().times(u64::from(slot.every.max(1)));
        let interval_tu = (interval.as_ns() / 1_024_000).clamp(1, u64::from(u16::MAX)) as u16;
        let beacon = BeaconFrame {
            bssid: self.config.me,
            interval_tu,
            ssid: self.config.ssid.as_bytes(),
            basic: BeaconFrame::basic_for(slot.rate),
            sequence: self.sequence,
        };
        self.sequence = (self.sequence + 1) & 0xfff;
        let token = radio.token();
        self.sending = Some(token);
        let mut out = [0; MAX_BEACON_OCTETS + MAX_LIST_OCTETS + SHIFTS_OCTETS];
        radio.request(token, self.write_beacon(now, &beacon, cycle, &mut out), &how);
    }

    pub(super) fn beacon_ended(&mut self, now: Instant, confirm: &Confirm, radio: &mut dyn Radio) {
        self.sending = None;
        self.counters.beacons.note(confirm);
        if !self.config.sync.look(now, radio) {
            self.config.sync.sent(now, confirm);
        }
        if !self.config.sync.is_good(now) {
            self.first_beacon = Some(now + self.config.plan.cycle());
        }
    }

    pub(super) fn land(&mut self, now: Instant, index: usize, confirm: &Confirm, radio: &dyn Radio) {
        self.look_back(now, index, confirm, radio);
        let acks = self.config.left_on.acks;
        let held = self.above.held.get_mut(index).expect("it was in flight");
        let (series, _) = held.how.series.at(held.tag as u16).expect("it was launched");
        let to_group = Header::parse(held.frame()).is_ok_and(|h| h.is_group());
        let asks_for_ack = acks && held.how.ack == AckPolicy::Normal && !to_group;
        let over = held.how.expires.is_some_and(|t| t < now);
        let (end, tried) = match confirm.outcome {
            Outcome::Acked | Outcome::Refused(_) => (true, false),
            Outcome::NotAcked => (!asks_for_ack, true),
            Outcome::Unknown => (false, true),
            // too late for its slot; it may have others
            Outcome::Expired => (over, false),
            Outcome::Aborted => (false, false),
        };
        // a reset may hide that it was heard
        let is_repeated = tried || confirm.outcome == Outcome::Aborted;
        self.counters.expired += u64::from(confirm.outcome == Outcome::Expired && over);
        if !end {
            self.counters.failed += 1;
            self.counters.late += u64::from(confirm.outcome == Outcome::Expired);
        }
        let behind = if held.tag & RELIEVED == 0 { BEHIND } else { 0 };
        held.tag = ((held.tag & !RELIEVED) + u64::from(tried)) | behind;
        if end || held.is_unwanted() {
            self.above.held.finish(index, &Confirm { series, ..*confirm });
            return;
        }
        if is_repeated {
            // a frame without a header is not in the table
            let _ = set_retry(held.frame_mut(), true);
        }
        let held = self.above.held.get(index).expect("just there");
        if self.own.iter().flatten().any(|o| self.fits(o, held).is_some()) {
            self.above.held.wait_again(index);
        } else {
            // no tries left, or none that is short enough
            self.above.held.finish(index, &Confirm { series, ..*confirm });
        }
    }

    /// Holds a frame of its own against its slot: what an adapter has once taken it may send whenever the medium is free. Only
    /// an acknowledged one counts; when one without an answer ended is known about, since its adapter has waited for the ACK.
    fn look_back(&mut self, now: Instant, index: usize, confirm: &Confirm, radio: &dyn Radio) {
        let on_air = matches!(confirm.outcome, Outcome::Acked | Outcome::NotAcked);
        if !self.config.watch || !on_air {
            return;
        }
        let held = self.above.held.get(index).expect("it was in flight");
        let costs = self.config.plan.costs();
        let lasted = costs.acked(held.frame().len() as u32 + 4, confirm.rate);
        let exchanged = self.config.sync.exchanged(now, confirm, held.how.adapter, radio);
        let Some((ended, off_by)) = exchanged else { return };
        let by = ended.since(self.aimed[index] + costs.guard() + lasted);
        if by > off_by {
            self.counters.overran += u64::from(confirm.outcome == Outcome::Acked);
            self.restraint.knows(by + off_by + costs.sync_error);
        }
    }

    /// What was heard perhaps, and so long ago that its receiver has forgotten: a status that is lost shows late.
    pub(super) fn give_up_what_is_forgotten(&mut self) {
        for i in 0..N {
            let repeats =
                |h: &&Held<L>| h.is_waiting() && Header::parse(h.frame()).is_ok_and(|h| h.is_retry());
            let repetition = self.above.held.get(i).filter(repeats);
            let gone = repetition.and_then(|_| self.gone[i]);
            if gone.is_some_and(|gone| self.newest.is_forgotten(gone)) {
                self.counters.forgotten += 1;
                self.above.held.end(i, Outcome::Unknown);
            }
        }
    }
}
