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
mod follow_up;
pub mod join;
mod release;
pub mod schedule;
pub mod switches;
pub mod watch;
mod window;

pub(super) use window::mix;

use super::data::{Gone, Newest};
use super::overlay::{Above, Access, AccessSetting, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use super::slotted::LeftOn;
use super::sync::Sync;
use super::sync::reference::References;
use super::tally::Tally;
use frame::MacAddr;
use frame::mac::Header;
use join::{Membership, Side};
use radio::pending::Held;
use radio::{
    AdapterId, Attribute, AttributeName, Duration, Event, Instant, Outcome, Protocol, Queue, Radio, Refusal,
    RtsPolicy, Token,
};
use schedule::{DEFAULT_SLOTS, TdmaPlan};
use switches::Switches;
use watch::{Reports, Restraint};
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
    /// Whose beacons the clocks are compared by, if not those of `follows`. Its host clock is network time then, which
    /// it tells in the slot of the beacon (see [`reference`](super::sync::reference)); the plan's [`BeaconSlot`](schedule::BeaconSlot)
    /// has to be as long as a follow-up, with [`ONE_REPORT_OCTETS`](join::wire::ONE_REPORT_OCTETS) more if overruns are told, and its own
    /// [`Sync`] perfect.
    pub reference: Option<MacAddr>,
    /// Network name in beacons of its own.
    pub ssid: &'static str,
    /// Whether it is in the schedule from the beginning, or joins on the air.
    pub membership: Membership,
    /// What is not switched off at the adapter; see [`USUAL`](switches::USUAL). Without ACKs no frame asks for one, and
    /// without backoff `access` says what there is instead.
    pub left_on: LeftOn,
    /// Hold each frame that is heard against the schedule. Costs a look at the adapter's time for each. The node that
    /// sends the beacons tells of overruns in them, if their slot has room for
    /// [`ONE_REPORT_OCTETS`](join::wire::ONE_REPORT_OCTETS) more.
    pub watch: bool,
    /// Hand frames down early with `not_before`, if the host can hold them back.
    pub hold_back: bool,
    /// Which adapter.
    pub adapter: AdapterId,
    /// Channel access to be set at the start. With the usual contention window a frame may wait for longer than its
    /// slot (see [`Access::without_backoff`]), unless the plan has room for it ([`cw_min`](schedule::SlotCosts::cw_min)).
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
            reference: None,
            ssid: "sdmac",
            membership: Membership::Fixed,
            left_on: switches::USUAL,
            watch: false,
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
    /// Requests that were not sent again because the receiver may have forgotten whether it has heard them.
    pub forgotten: u64,
    /// Requests refused: no slot to this receiver that is long enough.
    pub no_slot: u64,
    /// Where it watches: acknowledged frames of its own that had begun behind the guard. The adapter could not take them back.
    pub overran: u64,
    /// Frames of others that it heard outside of their slots.
    pub outside: u64,
    /// Frames to it from somebody who has no slot.
    pub strays: u64,
    /// Times that it was told of an overrun of its own.
    pub told: u64,
    /// Changes of the adapter that the host did not make.
    pub not_switched: u64,
    /// Outcomes of beacons of its own.
    pub beacons: Tally,
}

/// The overlay; see the [module](self). Holds up to `N` requests with frames of up to `L` octets; the plan has up to
/// `S` slots.
///
/// Of each request it honours `expires`, `not_before`, the rates of the series (try by try) and their number of
/// tries, the ack policy, queue and adapter. RTS is not used in slots unless it is left on, and requests that insist on it are
/// refused; left on, the plan's [`rts_threshold`](schedule::SlotCosts::rts_threshold) stands in for the adapter's.
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
    side: Side,
    /// Version and start of the list that its plan is from.
    list: Option<(u16, u64)>,
    /// When something begins that is not a slot.
    wake: Option<Instant>,
    errand_out: Option<(Token, Window)>,
    references: References,
    switches: Switches,
    reports: Reports,
    restraint: Restraint,
    newest: Newest,
    /// When what is held had gone on its way for the first time.
    gone: [Option<Gone>; N],
    /// When the slot starts that it was sent down for last.
    aimed: [Instant; N],
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
            side: Side::of(&config),
            list: None,
            wake: None,
            errand_out: None,
            references: References::default(),
            switches: Switches::default(),
            reports: Reports::default(),
            restraint: Restraint::default(),
            newest: Newest::NONE,
            gone: [None; N],
            aimed: [Instant::ZERO; N],
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
        self.switch_off(radio);
        if let Side::Station(ticket) = &mut self.side {
            ticket.start(now);
        }
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
            self.follow_lists(now);
            self.listen(now, radio);
            self.refuse_what_has_no_slot();
            self.give_up_what_is_forgotten();
            self.note_lost_slot(now);
            self.learn_time(now, radio);
            self.next = self.next_window(now);
            if let Some(window) = self.next.filter(|w| w.open <= now) {
                self.use_slot(now, window, radio);
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
            self.send_beacon(now, now + self.config.plan.cycle(), None, None, radio);
        }
    }

    fn insists_on_rts(&self, held: &Held<L>) -> bool {
        held.how.rts == RtsPolicy::Always && !self.config.left_on.rts
    }

    fn refuse_what_has_no_slot(&mut self) {
        for i in 0..N {
            let Some(held) = self.above.held.get(i).filter(|h| h.is_waiting() && h.tag == 0) else {
                continue;
            };
            let receiver = Header::parse(held.frame()).map(|h| h.receiver());
            let readable = receiver.is_ok();
            let mut to_peer = self
                .own
                .iter()
                .flatten()
                .filter(|o| matches!(o.right, Right::To(_)));
            if !readable {
                self.above.held.end(i, Outcome::Refused(Refusal::BadFrame));
            } else if self.insists_on_rts(held) || !to_peer.any(|o| self.fits(o, held).is_some()) {
                if !self.insists_on_rts(held) && receiver.is_ok_and(|r| self.may_come(r)) {
                    continue;
                }
                self.counters.no_slot += 1;
                self.above.held.end(i, Outcome::Refused(Refusal::NotSupported));
            } else {
                // above each try may be a request of its own: one that failed comes again as a repetition
                let again = Header::parse(held.frame()).is_ok_and(|h| h.is_retry());
                let held = self.above.held.get_mut(i).expect("just there");
                held.tag = SEEN | if again { BEHIND } else { 0 };
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
            Content::Ask(_) | Content::Sign => false,
        };
        self.counters.overruns += u64::from(still_there);
        let shared = self.own[lost.own].is_some_and(|o| matches!(o.right, Right::Shared(..)));
        if let (Content::Held(i), true) = (lost.content, still_there && !shared)
            && let Some(held) = self.above.held.get_mut(i)
        {
            held.tag |= BEHIND;
        }
    }
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Protocol for Tdma<P, N, L, S> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Confirm(c) if self.sending == Some(c.token) => self.beacon_ended(now, &c, radio),
            Event::Confirm(c) if self.errand_out.is_some_and(|e| e.0 == c.token) => {
                let (_, window) = self.errand_out.expect("just seen");
                self.errand_ended(window, &c);
            }
            Event::Confirm(c) => match self.above.held.landed(&c) {
                Some(index) => {
                    if c.outcome == Outcome::Acked {
                        self.was_heard(now);
                    }
                    self.land(now, index, &c, radio);
                }
                None => self.above.tell(now, event, radio),
            },
            Event::Set(answer) if self.access.is_answered_by(&answer) => {}
            Event::Set(answer) if self.switches.is_answered_by(&answer) => {
                self.counters.not_switched += u64::from(answer.result.is_err());
            }
            Event::Timer => self.above.timer(now, radio),
            Event::Start => {
                self.start(now, radio);
                self.above.tell(now, event, radio);
            }
            Event::Beacon(b) => {
                if self.config.reference == Some(b.bssid) {
                    self.references.heard(now, &b, radio);
                }
                if b.bssid == self.config.follows && !self.is_master() && self.config.reference.is_none() {
                    self.config.sync.heard(now, &b, radio);
                    self.note_beacon(now, &b);
                }
                self.above.tell(now, event, radio);
            }
            Event::Indication(i) if self.note_follow_up(now, &i) => {}
            Event::Indication(i) if self.note_frame(now, &i, radio) => {}
            _ => self.above.tell(now, event, radio),
        }
        self.settle(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let expiry = self.above.held.next_expiry().map(|t| t + Duration::from_ns(1));
        let slot = self.next.map(|w| w.open);
        let own = [slot, expiry, self.first_beacon, self.wake, self.switches.change];
        own.into_iter().chain([self.above.deadline()]).flatten().min()
    }
}

#[cfg(test)]
mod tests;
