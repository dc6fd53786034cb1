//! Time division over one-shots: each node sends in its own slots of a static [`schedule`], on the time base of
//! [`sync`](super::sync) (SDMAC, Cena et al. 2018, section II.C.1; Wei et al. 2013 for links, shared slots and
//! retries out of the slot).
//!
//! The overlay holds the requests of the protocol above. For each slot of its own it wakes up early enough for the
//! frame to be on the air when the slot starts: earlier by the smallest latency of the release path, so that only
//! its jitter is left, for which the slot has its guard. A host that can hold frames back gets the frame earlier
//! and the start of the slot as `not_before`. What was not on the air by the end of the guard is not sent in this
//! slot; it waits for the next one. A failed frame goes in a later slot of the same cycle, before new data.
//!
//! Without a clock that is to be trusted the node is silent.

pub mod admission;
pub mod schedule;
mod window;

pub(super) use window::mix;

use super::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use super::overlay::{Above, Access, AccessSetting, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use super::sync::Sync;
use super::tally::Tally;
use frame::MacAddr;
use frame::mac::Header;
use frame::mac::header::set_retry;
use radio::pending::Held;
use radio::{
    AckPolicy, AdapterId, Attribute, AttributeName, Confirm, Duration, Event, Instant, Outcome, Protocol,
    Queue, Radio, Refusal, RtsPolicy, SeriesList, Token, TxHow,
};
use schedule::{DEFAULT_SLOTS, TdmaPlan};
use window::{BEHIND, Content, Own, Right, SEEN, Window, own_slots};

/// How a [`Tdma`] works.
#[derive(Clone, Debug)]
pub struct TdmaConfig<const S: usize = DEFAULT_SLOTS> {
    /// Its own address, as the flows of the plan have it.
    pub me: MacAddr,
    /// The schedule, the same in all nodes.
    pub plan: TdmaPlan<S>,
    /// The clock.
    pub sync: Sync,
    /// Whose TSF is network time: that of the node that sends the beacons, which may be this one.
    pub follows: MacAddr,
    /// Network name in beacons of its own.
    pub ssid: &'static str,
    /// Hand frames down early with `not_before`, if the host can hold them back.
    pub hold_back: bool,
    /// Which adapter.
    pub adapter: AdapterId,
    /// Channel access to be set at the start. With the usual contention window a frame may wait for longer than its
    /// slot: see [`Access::without_backoff`].
    pub access: Option<Access>,
}

impl<const S: usize> TdmaConfig<S> {
    /// Timers of its own (no `not_before`), first adapter, and no backoff in the queue `queue`.
    pub fn new(me: MacAddr, plan: TdmaPlan<S>, sync: Sync, follows: MacAddr, queue: Queue) -> TdmaConfig<S> {
        let access = Some(Access::without_backoff(queue, plan.costs().aifsn));
        TdmaConfig {
            me,
            plan,
            sync,
            follows,
            ssid: "sdmac",
            hold_back: false,
            adapter: AdapterId::FIRST,
            access,
        }
    }
}

/// What a [`Tdma`] has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TdmaCounters {
    /// Frames released in slots.
    pub released: u64,
    /// Of these, in shared slots.
    pub in_shared: u64,
    /// Releases that failed: no ACK, no status, too late for the slot, or a reset.
    pub failed: u64,
    /// Of these, not on the air by the end of the guard.
    pub late: u64,
    /// Slots lost because the timer came so late that less than a slot was left.
    pub overruns: u64,
    /// Requests dropped at their deadline.
    pub expired: u64,
    /// Requests refused: no slot to this receiver that is long enough.
    pub no_slot: u64,
    /// Outcomes of beacons of its own.
    pub beacons: Tally,
}

/// The overlay; see the [module](self). Holds up to `N` requests with frames of up to `L` octets; the plan has up to
/// `S` slots.
///
/// Of each request it honours `expires`, `not_before`, the rates of the series (try by try) and their number of
/// tries, the ack policy, queue and adapter. RTS is not used in slots; requests that insist on it are refused.
#[derive(Clone, Debug)]
pub struct Tdma<
    P,
    const N: usize = DEFAULT_HELD,
    const L: usize = DEFAULT_HELD_OCTETS,
    const S: usize = DEFAULT_SLOTS,
> {
    above: Above<P, N, L>,
    config: TdmaConfig<S>,
    access: AccessSetting,
    own: [Option<Own>; S],
    /// From waking up to the start of the slot.
    lead: Duration,
    holds_back: bool,
    /// The last slot that was used or lost: cycle and index in `own`.
    done: Option<(u64, usize)>,
    /// The next slot of its own with something to send.
    next: Option<Window>,
    sending: Option<Token>,
    /// When to send a beacon only to learn the TSF.
    first_beacon: Option<Instant>,
    sequence: u16,
    counters: TdmaCounters,
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Tdma<P, N, L, S> {
    /// TDMA below `protocol`.
    pub fn new(config: TdmaConfig<S>, protocol: P) -> Self {
        Tdma {
            above: Above::new(protocol),
            access: AccessSetting::new(config.access),
            own: own_slots(&config),
            lead: config.plan.costs().release.min,
            holds_back: false,
            done: None,
            next: None,
            sending: None,
            first_beacon: None,
            sequence: 0,
            counters: TdmaCounters::default(),
            config,
        }
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        self.above.protocol()
    }

    /// What it has counted.
    pub fn counters(&self) -> &TdmaCounters {
        &self.counters
    }

    /// The schedule.
    pub fn plan(&self) -> &TdmaPlan<S> {
        &self.config.plan
    }

    /// The clock.
    pub fn sync(&self) -> &Sync {
        &self.config.sync
    }

    /// Whether the host took the channel access parameters; `None` if it has not answered or none were asked for.
    pub fn access_taken(&self) -> Option<bool> {
        self.access.taken()
    }

    fn is_master(&self) -> bool {
        self.config.follows == self.config.me
    }

    fn start(&mut self, now: Instant, radio: &mut dyn Radio) {
        self.access.start(radio);
        let capabilities = radio.get(self.config.adapter, AttributeName::Capabilities);
        let able = matches!(capabilities, Some(Attribute::Capabilities(c)) if c.not_before);
        if self.config.hold_back && able {
            self.holds_back = true;
            self.lead = self.config.plan.costs().release.high;
        }
        if self.is_master() && !self.config.sync.look(now, radio) && self.config.plan.beacon().is_some() {
            self.first_beacon = Some(now);
        }
    }

    fn settle(&mut self, now: Instant, radio: &mut dyn Radio) {
        loop {
            self.counters.expired += self.above.held.expire(now) as u64;
            self.refuse_what_has_no_slot();
            self.note_lost_slot(now);
            self.learn_time(now, radio);
            self.next = self.next_window(now);
            if let Some(window) = self.next.filter(|w| w.open <= now) {
                self.use_slot(window, radio);
                self.next = self.next_window(now);
            }
            if !self.above.pay(now, radio) {
                return;
            }
        }
    }

    /// The node that others follow looks at its own TSF now and then; where the host cannot read it, it sends a
    /// beacon whose confirm tells.
    fn learn_time(&mut self, now: Instant, radio: &mut dyn Radio) {
        if self.is_master() && self.config.sync.is_stale(now) && self.first_beacon.is_none() {
            self.config.sync.look(now, radio);
        }
        if self.first_beacon.is_some_and(|t| t <= now) && self.sending.is_none() {
            self.first_beacon = None;
            self.send_beacon(now + self.config.plan.cycle(), None, radio);
        }
    }

    fn refuse_what_has_no_slot(&mut self) {
        for i in 0..N {
            let Some(held) = self.above.held.get(i).filter(|h| h.is_waiting() && h.tag == 0) else {
                continue;
            };
            let readable = Header::parse(held.frame()).is_ok();
            let mut to_peer = self
                .own
                .iter()
                .flatten()
                .filter(|o| matches!(o.right, Right::To(_)));
            if !readable {
                self.above.held.end(i, Outcome::Refused(Refusal::BadFrame));
            } else if held.how.rts == RtsPolicy::Always || !to_peer.any(|o| self.fits(o, held)) {
                self.counters.no_slot += 1;
                self.above.held.end(i, Outcome::Refused(Refusal::NotSupported));
            } else if let Some(held) = self.above.held.get_mut(i) {
                held.tag = SEEN;
            }
        }
    }

    /// The slot that was planned is over and nothing was sent: the timer came too late.
    fn note_lost_slot(&mut self, now: Instant) {
        let Some(lost) = self.next.filter(|w| w.close < now) else {
            return;
        };
        self.next = None;
        self.done = Some((lost.cycle, lost.own));
        let still_there = match lost.content {
            Content::Beacon => true,
            Content::Held(i) => self.above.held.get(i).is_some_and(Held::is_waiting),
        };
        self.counters.overruns += u64::from(still_there);
        if let (Content::Held(i), true) = (lost.content, still_there)
            && let Some(held) = self.above.held.get_mut(i)
        {
            held.tag |= BEHIND;
        }
    }

    fn use_slot(&mut self, window: Window, radio: &mut dyn Radio) {
        self.done = Some((window.cycle, window.own));
        let guard_ends = window.start + self.config.plan.costs().guard();
        let not_before = self.holds_back.then_some(window.start);
        let index = match window.content {
            Content::Beacon => return self.send_beacon(guard_ends, not_before, radio),
            Content::Held(index) => index,
        };
        let own = self.own[window.own].expect("its own slot");
        let held = self.above.held.get_mut(index).expect("it waits");
        let (_, series) = held.how.series.at(held.tag as u16).expect("it fits");
        let how = TxHow {
            series: SeriesList::one(series.rate, 1),
            rts: RtsPolicy::Never,
            not_before,
            expires: Some(held.how.expires.map_or(guard_ends, |t| t.min(guard_ends))),
            ..held.how
        };
        self.above.held.launch(index, &how, radio);
        self.counters.released += 1;
        self.counters.in_shared += u64::from(matches!(own.right, Right::Shared(_)));
    }

    fn send_beacon(&mut self, expires: Instant, not_before: Option<Instant>, radio: &mut dyn Radio) {
        let Some(slot) = self.config.plan.beacon() else {
            return;
        };
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
        let how = TxHow {
            not_before,
            ..TxHow::one_shot(slot.rate)
        };
        let how = how
            .queue(Queue::Beacon)
            .expires(expires)
            .adapter(self.config.adapter);
        let token = radio.token();
        self.sending = Some(token);
        radio.request(token, beacon.emit(&mut [0; MAX_BEACON_OCTETS]), &how);
    }

    fn beacon_ended(&mut self, now: Instant, confirm: &Confirm, radio: &mut dyn Radio) {
        self.sending = None;
        self.counters.beacons.note(confirm);
        if !self.config.sync.look(now, radio) {
            self.config.sync.sent(now, confirm);
        }
        if !self.config.sync.is_good(now) {
            self.first_beacon = Some(now + self.config.plan.cycle());
        }
    }

    fn land(&mut self, now: Instant, index: usize, confirm: &Confirm) {
        let held = self.above.held.get_mut(index).expect("it was in flight");
        let (series, _) = held.how.series.at(held.tag as u16).expect("it was launched");
        let to_group = Header::parse(held.frame()).is_ok_and(|h| h.is_group());
        let asks_for_ack = held.how.ack == AckPolicy::Normal && !to_group;
        let over = held.how.expires.is_some_and(|t| t < now);
        let (end, tried) = match confirm.outcome {
            Outcome::Acked | Outcome::Refused(_) => (true, false),
            Outcome::NotAcked => (!asks_for_ack, true),
            Outcome::Unknown => (false, true),
            // too late for its slot; it may have others
            Outcome::Expired => (over, false),
            Outcome::Aborted => (false, false),
        };
        self.counters.expired += u64::from(confirm.outcome == Outcome::Expired && over);
        if !end {
            self.counters.failed += 1;
            self.counters.late += u64::from(confirm.outcome == Outcome::Expired);
        }
        held.tag = (held.tag + u64::from(tried)) | BEHIND;
        if end || held.is_unwanted() {
            self.above.held.finish(index, &Confirm { series, ..*confirm });
            return;
        }
        if tried {
            // a frame without a header is not in the table
            let _ = set_retry(held.frame_mut(), true);
        }
        let held = self.above.held.get(index).expect("just there");
        if self.own.iter().flatten().any(|o| self.fits(o, held)) {
            self.above.held.wait_again(index);
        } else {
            // no tries left, or none that is short enough
            self.above.held.finish(index, &Confirm { series, ..*confirm });
        }
    }
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Protocol for Tdma<P, N, L, S> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Confirm(c) if self.sending == Some(c.token) => self.beacon_ended(now, &c, radio),
            Event::Confirm(c) => match self.above.held.landed(&c) {
                Some(index) => self.land(now, index, &c),
                None => self.above.tell(now, event, radio),
            },
            Event::Set(answer) if self.access.is_answered_by(&answer) => {}
            Event::Timer => self.above.timer(now, radio),
            Event::Start => {
                self.start(now, radio);
                self.above.tell(now, event, radio);
            }
            Event::Beacon(b) => {
                if b.bssid == self.config.follows && !self.is_master() {
                    self.config.sync.heard(now, &b, radio);
                }
                self.above.tell(now, event, radio);
            }
            _ => self.above.tell(now, event, radio),
        }
        self.settle(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let expiry = self.above.held.next_expiry().map(|t| t + Duration::from_ns(1));
        let slot = self.next.map(|w| w.open);
        let all = [slot, expiry, self.first_beacon, self.above.deadline()];
        all.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
