//! The leaky bucket: one frame in each slot, at the instant when the slot begins and at no other (TDMA on commodity
//! hardware; slots down to 256 us). One node owns all slots; every n-th is the beacon's.
//!
//! Everything is prepared when it is requested; the timer only lets one frame go. Data that come after the slot has begun
//! wait for the next one. A slot that the timer slept through is lost, and what was to go in it goes in the next. With a
//! guard the same holds for a slot in which the timer came so late that the frame would reach into the next one.
//!
//! So that the frame is on the air when it is released, the adapter must neither listen nor wait: [`LeftOn`] names what
//! is switched off at the start, each of which can be left as it is to see what it costs. Frames should say
//! themselves that nobody shall acknowledge them ([`AckPolicy::NoAck`] in the protocol above): a receiver that answers
//! a late frame is still sending its ACK when the next one begins.

use super::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use super::overlay::{Above, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use super::tally::Tally;
use frame::{EdcaParams, MacAddr, Rate};
use radio::{
    AckPolicy, AdapterId, Attribute, Confirm, Duration, Event, Instant, Outcome, Protocol, Queue, Radio,
    RtsPolicy, SeriesList, Token, TxHow,
};

/// What is not switched off: the five switches of SoftMAC (Neufeld et al. 2005), and reception.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LeftOn {
    /// ACKs are expected and sent, and frames without one are repeated.
    pub acks: bool,
    /// RTS goes before frames beyond the threshold.
    pub rts: bool,
    /// Duration fields of others are respected.
    pub virtual_carrier_sense: bool,
    /// The medium is sensed.
    pub carrier_sense: bool,
    /// There is a contention window.
    pub backoff: bool,
    /// Frames are received.
    pub reception: bool,
}

impl LeftOn {
    /// Nothing is switched off.
    pub const ALL: LeftOn = LeftOn {
        acks: true,
        rts: true,
        virtual_carrier_sense: true,
        carrier_sense: true,
        backoff: true,
        reception: true,
    };
}

/// The beacon of the node, in the first slot and every `every`-th after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotBeacon {
    /// Slots from one beacon to the next, 1 or more.
    pub every: u32,
    /// Its rate.
    pub rate: Rate,
    /// Network name, 32 octets at most.
    pub ssid: &'static str,
    /// Its queue. In [`Queue::Beacon`] it goes before data that are held up; in that of the data all go in their order. Linux has
    /// no beacons in the queue of best effort.
    pub queue: Queue,
}

/// How a [`Slotted`] works.
#[derive(Clone, Debug)]
pub struct SlottedConfig {
    /// Its own address, which is the BSSID of its beacons.
    pub me: MacAddr,
    /// Length of a slot.
    pub slot: Duration,
    /// When the first slot begins, on the host's clock.
    pub first: Instant,
    /// How long after the beginning of a slot a frame may still be released in it; later the slot is lost. `None`: at any time.
    pub guard: Option<Duration>,
    /// Its beacons.
    pub beacon: Option<SlotBeacon>,
    /// The queue of data.
    pub queue: Queue,
    /// Which adapter.
    pub adapter: AdapterId,
    /// What is left on.
    pub left_on: LeftOn,
}

impl SlottedConfig {
    /// Slots from the start of the clock on, no guard, no beacon, everything off.
    pub const fn new(me: MacAddr, slot: Duration) -> SlottedConfig {
        SlottedConfig {
            me,
            slot,
            first: Instant::ZERO,
            guard: None,
            beacon: None,
            queue: Queue::BestEffort,
            adapter: AdapterId::FIRST,
            left_on: LeftOn {
                acks: false,
                rts: false,
                virtual_carrier_sense: false,
                carrier_sense: false,
                backoff: false,
                reception: false,
            },
        }
    }
}

/// What a [`Slotted`] has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlottedCounters {
    /// Frames released.
    pub released: u64,
    /// Slots lost while something waited: the timer slept through them, or came after their guard.
    pub overruns: u64,
    /// Frames, beacons among them, that were due in a slot that was lost, and went in a later one.
    pub carried: u64,
    /// Switches that the host did not turn.
    pub not_switched: u32,
    /// Outcomes of beacons.
    pub beacons: Tally,
}

/// Attributes that are set at the start, at most.
const SETTINGS: usize = 5;

/// The overlay; see the [module](self). Holds up to `N` requests with frames of up to `L` octets.
#[derive(Clone, Debug)]
pub struct Slotted<P, const N: usize = DEFAULT_HELD, const L: usize = DEFAULT_HELD_OCTETS> {
    above: Above<P, N, L>,
    config: SlottedConfig,
    /// The first slot that has not been used.
    next: u64,
    /// Slots before this one are lost, though what was due in them still waits.
    lost: u64,
    settings: [Option<Token>; SETTINGS],
    beacon: Option<Token>,
    sequence: u16,
    counters: SlottedCounters,
}

impl<P: Protocol, const N: usize, const L: usize> Slotted<P, N, L> {
    /// Slots below `protocol`.
    pub fn new(config: SlottedConfig, protocol: P) -> Self {
        Slotted {
            above: Above::new(protocol),
            config,
            next: 0,
            lost: 0,
            settings: [None; SETTINGS],
            beacon: None,
            sequence: 0,
            counters: SlottedCounters::default(),
        }
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        self.above.protocol()
    }

    /// What it has counted.
    pub fn counters(&self) -> &SlottedCounters {
        &self.counters
    }

    fn switch_off(&mut self, radio: &mut dyn Radio) {
        let on = self.config.left_on;
        let no_backoff = EdcaParams {
            aifsn: 1,
            cw_min: 0,
            cw_max: 0,
            txop_us: 0,
        };
        let all = [
            (on.acks, Attribute::AckGeneration(false)),
            (on.virtual_carrier_sense, Attribute::VirtualCarrierSense(false)),
            (on.carrier_sense, Attribute::CarrierSense(false)),
            (on.backoff, Attribute::Edca(self.config.queue, no_backoff)),
            (on.reception, Attribute::Reception(false)),
        ];
        for (place, (stays, attribute)) in self.settings.iter_mut().zip(all) {
            if !stays {
                let token = radio.token();
                *place = Some(token);
                radio.set(token, self.config.adapter, attribute);
            }
        }
    }

    /// When slot `number` begins.
    fn begins(&self, number: u64) -> Instant {
        self.config.first + self.config.slot.times(number)
    }

    fn every(&self) -> Option<u64> {
        self.config.beacon.map(|b| u64::from(b.every.max(1)))
    }

    /// The slot that has begun.
    fn current(&self, now: Instant) -> Option<u64> {
        let since = now.since(self.config.first).as_ns();
        (now >= self.config.first).then(|| since / self.config.slot.as_ns().max(1))
    }

    /// The next slot in which there is something to send.
    fn next_used(&self) -> Option<u64> {
        let beacon = self.every().map(|every| self.next.next_multiple_of(every));
        let after_beacon = self.next + u64::from(beacon == Some(self.next));
        let data = self.above.held.waiting().next().map(|_| after_beacon);
        [beacon, data].into_iter().flatten().min()
    }

    /// A slot that has begun with nothing to send is over for what comes now.
    fn pass_unused(&mut self, now: Instant) {
        if let Some(current) = self.current(now)
            && self.next_used().is_none_or(|used| used > current)
        {
            self.next = self.next.max(current + 1);
        }
    }

    fn settle(&mut self, now: Instant, radio: &mut dyn Radio) {
        loop {
            self.above.held.expire(now);
            self.release(now, radio);
            if !self.above.pay(now, radio) {
                return;
            }
        }
    }

    fn release(&mut self, now: Instant, radio: &mut dyn Radio) {
        let (Some(current), Some(due)) = (self.current(now), self.next_used()) else {
            return;
        };
        let free = due.max(self.lost);
        if free > current {
            return;
        }
        if self.config.guard.is_some_and(|g| now > self.begins(current) + g) {
            self.counters.overruns += current + 1 - free;
            self.lost = current + 1;
            return;
        }
        self.counters.overruns += current - free;
        self.next = current + 1;
        // a beacon whose slot was lost goes first
        let every = self.every();
        let sent = match every.is_some_and(|every| due.next_multiple_of(every) <= current) {
            true => self.send_beacon(radio),
            false => self.send(now, radio),
        };
        self.counters.carried += u64::from(sent && due < current);
    }

    /// Releases what waits longest. False if nothing was ready.
    fn send(&mut self, now: Instant, radio: &mut dyn Radio) -> bool {
        let ready = |h: &radio::pending::Held<L>| h.how.not_before.is_none_or(|t| t <= now);
        let waiting = self.above.held.waiting().filter(|(_, h)| ready(h));
        let Some((index, how)) = waiting.min_by_key(|(_, h)| h.order()).map(|(i, h)| (i, h.how)) else {
            return false;
        };
        let on = self.config.left_on;
        let series = match on.acks {
            true => how.series,
            false => SeriesList::one(how.series.as_slice()[0].rate, 1),
        };
        let how = TxHow {
            series,
            ack: if on.acks { how.ack } else { AckPolicy::NoAck },
            rts: if on.rts { how.rts } else { RtsPolicy::Never },
            not_before: None,
            ..how
        };
        let how = how.queue(self.config.queue).adapter(self.config.adapter);
        self.above.held.launch(index, &how, radio);
        self.counters.released += 1;
        true
    }

    /// False if the one before is still under way.
    fn send_beacon(&mut self, radio: &mut dyn Radio) -> bool {
        let Some(beacon) = self.config.beacon.filter(|_| self.beacon.is_none()) else {
            return false;
        };
        let interval = self.config.slot.times(u64::from(beacon.every.max(1)));
        let frame = BeaconFrame {
            bssid: self.config.me,
            interval_tu: (interval.as_ns() / 1_024_000).clamp(1, u64::from(u16::MAX)) as u16,
            ssid: beacon.ssid.as_bytes(),
            basic: BeaconFrame::basic_for(beacon.rate),
            sequence: self.sequence,
        };
        self.sequence = (self.sequence + 1) & 0xfff;
        let how = TxHow::one_shot(beacon.rate)
            .queue(beacon.queue)
            .adapter(self.config.adapter);
        let token = radio.token();
        self.beacon = Some(token);
        radio.request(token, frame.emit(&mut [0; MAX_BEACON_OCTETS]), &how);
        true
    }

    fn land(&mut self, now: Instant, index: usize, confirm: &Confirm) {
        let held = self.above.held.get(index).expect("it was in flight");
        let over = held.is_unwanted() || held.how.expires.is_some_and(|t| t < now);
        // an adapter that was reset has not sent it, unless it was on the air by then
        if confirm.outcome == Outcome::Aborted && confirm.attempts == 0 && !over {
            self.above.held.wait_again(index);
        } else {
            self.above.held.finish(index, confirm);
        }
    }
}

impl<P: Protocol, const N: usize, const L: usize> Protocol for Slotted<P, N, L> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.pass_unused(now);
        match event {
            Event::Confirm(c) if self.beacon == Some(c.token) => {
                self.beacon = None;
                self.counters.beacons.note(&c);
            }
            Event::Confirm(c) => match self.above.held.landed(&c) {
                Some(index) => self.land(now, index, &c),
                None => self.above.tell(now, event, radio),
            },
            Event::Set(answer) if self.settings.contains(&Some(answer.token)) => {
                for place in self.settings.iter_mut().filter(|t| **t == Some(answer.token)) {
                    *place = None;
                }
                self.counters.not_switched += u32::from(answer.result.is_err());
            }
            Event::Start => {
                self.switch_off(radio);
                self.above.tell(now, event, radio);
            }
            Event::Timer => self.above.timer(now, radio),
            _ => self.above.tell(now, event, radio),
        }
        self.settle(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let slot = self.next_used().map(|n| self.begins(n.max(self.lost)));
        let expiry = self.above.held.next_expiry().map(|t| t + Duration::from_ns(1));
        [slot, expiry, self.above.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::data::{Identity, Role};
    use crate::mac::sender::{Sender, SenderConfig};
    use crate::testing::{Delays, Dice, Fate, Probe, Room};
    use proptest::prelude::*;
    use radio::Checked;
    use std::vec::Vec;

    const AP: MacAddr = MacAddr::local(1);
    const STA: MacAddr = MacAddr::local(2);
    const SLOT_NS: u64 = 256_000;

    type Stack = Slotted<Sender, 8, 256>;

    fn identity() -> Identity {
        let role = Role::Direct {
            bssid: MacAddr::BROADCAST,
        };
        Identity { me: AP, role }
    }

    fn config() -> SlottedConfig {
        SlottedConfig {
            beacon: Some(SlotBeacon {
                every: 10,
                rate: Rate::OFDM_24,
                ssid: "slots",
                queue: Queue::Beacon,
            }),
            ..SlottedConfig::new(AP, Duration::from_us(256))
        }
    }

    fn room(config: SlottedConfig) -> Room {
        let mut room = Room::new(1);
        room.carrier_sense = false;
        room.add(AP, move || {
            let sender = Sender::new(SenderConfig::new(identity(), Rate::OFDM_54));
            Stack::new(config.clone(), sender)
        });
        room
    }

    /// Number of the slot and how late, for each frame; beacons as negative numbers.
    fn slots(room: &Room) -> Vec<(i64, u64)> {
        let slot = |f: &crate::testing::Flight| {
            let at = f.start_ns - 10_000;
            let sign = if f.frame[0] == 0x80 { -1 } else { 1 };
            (sign * (at / SLOT_NS) as i64, at % SLOT_NS)
        };
        room.flights.iter().map(slot).collect()
    }

    #[test]
    fn one_frame_in_each_slot_and_the_beacon_in_every_tenth() {
        let mut room = room(config());
        for i in 0..3 {
            // in the middle of slot 18: they wait for the next ones, and the beacon has its own
            room.submit(18 * SLOT_NS + 100_000, 0, STA, &[i; 40], None);
        }
        room.run_until(31 * SLOT_NS);
        let expected = [(0, 0), (-10, 0), (19, 0), (-20, 0), (21, 0), (22, 0), (-30, 0)];
        assert_eq!(slots(&room), expected);
        let c = *room.protocol::<Stack>(0).counters();
        assert_eq!((c.released, c.overruns, c.beacons.not_acked), (3, 0, 4));
        assert_eq!(
            room.protocol::<Stack>(0).protocol().counters().confirms.not_acked,
            3
        );
        room.close();
    }

    /// A timer that comes two slots late: the frame goes at once, and the others in slots of their own.
    #[test]
    fn what_was_slept_through_goes_in_the_next_slot() {
        let mut room = room(SlottedConfig {
            beacon: None,
            ..config()
        });
        room.submit(SLOT_NS / 2, 0, STA, b"a", None);
        room.submit(SLOT_NS / 2, 0, STA, b"b", None);
        room.delays.timer_ns = 2 * SLOT_NS + 1_000..=2 * SLOT_NS + 1_000;
        room.run_until(2 * SLOT_NS);
        room.delays.timer_ns = 0..=0;
        room.run_until(10 * SLOT_NS);
        assert_eq!(slots(&room), [(3, 1_000), (4, 0)]);
        let c = *room.protocol::<Stack>(0).counters();
        assert_eq!((c.released, c.overruns, c.carried), (2, 2, 1));
        room.close();
    }

    /// The timer comes 100 us late in slot 2: without a guard the frame goes all the same; with a shorter one that slot is lost.
    #[test]
    fn after_its_guard_a_slot_is_lost() {
        let went = |guard| {
            let mut room = room(SlottedConfig {
                guard,
                beacon: None,
                ..config()
            });
            room.submit(SLOT_NS + SLOT_NS / 2, 0, STA, b"a", None);
            room.delays.timer_ns = 100_000..=100_000;
            room.run_until(2 * SLOT_NS);
            room.delays.timer_ns = 0..=0;
            room.run_until(6 * SLOT_NS);
            let c = *room.protocol::<Stack>(0).counters();
            (slots(&room.close())[0], c.overruns, c.carried)
        };
        let us = |guard| went(Some(Duration::from_us(guard)));
        assert_eq!(went(None), ((2, 100_000), 0, 0));
        assert_eq!((us(100), us(99)), (((2, 100_000), 0, 0), ((3, 0), 1, 1)));
    }

    /// Left on, the retries and ACKs of the request stay; off, it is one frame that nobody answers.
    #[test]
    fn what_is_left_on_stays_in_the_request() {
        for acks in [false, true] {
            let left_on = LeftOn {
                acks,
                ..LeftOn::default()
            };
            let mut room = room(SlottedConfig {
                beacon: None,
                left_on,
                ..config()
            });
            room.script(move |a| {
                let expected = (acks, if acks { 7 } else { 1 });
                assert_eq!(
                    (a.how.ack == AckPolicy::Normal, a.how.series.attempts()),
                    expected
                );
                Fate::DataLost
            });
            room.submit(0, 0, STA, b"x", None);
            room.run_until(20 * SLOT_NS);
            assert_eq!(room.flights.len(), if acks { 7 } else { 1 });
            room.close();
        }
    }

    #[test]
    fn a_host_that_switches_nothing_is_told_so() {
        let mut room = Room::new(1);
        room.settable = false;
        room.add(AP, || {
            Stack::new(
                config(),
                Sender::new(SenderConfig::new(identity(), Rate::OFDM_54)),
            )
        });
        room.run_until(5_000_000);
        assert_eq!(room.protocol::<Stack>(0).counters().not_switched, 5);
        room.close();
        let mut room = self::room(SlottedConfig {
            left_on: LeftOn::ALL,
            ..config()
        });
        room.settable = false;
        room.run_until(5_000_000);
        assert_eq!(
            room.protocol::<Stack>(0).counters().not_switched,
            0,
            "nothing was asked for"
        );
        room.close();
    }

    /// An adapter that is reset while a frame is on the air has sent it, and one that is reset before has not.
    #[test]
    fn what_was_on_the_air_before_a_reset_is_not_sent_again() {
        for (fate, flights, aborted) in [(Fate::ArrivesBeforeReset, 1, 1), (Fate::Reset, 1, 0)] {
            let mut room = room(SlottedConfig::new(AP, Duration::from_us(256)));
            let mut fates = Some(fate).into_iter();
            room.script(move |_| fates.next().unwrap_or(Fate::Arrives));
            room.submit(SLOT_NS, 0, MacAddr::BROADCAST, &[1; 40], None);
            room.run_until(10 * SLOT_NS);
            let sender = room.protocol::<Stack>(0).protocol().counters().confirms;
            assert_eq!(
                (room.flights.len(), sender.aborted),
                (flights, aborted),
                "{fate:?}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// Bursts, aborts, losses, lost confirms, resets, late timers: every token gets exactly one confirm, no two
        /// frames go in one slot, and none after its guard.
        #[test]
        fn any_requests_in_any_air(
            seed: u64,
            guard_us in proptest::option::of(50u64..150),
            bursts in proptest::collection::vec((0u64..2_000_000, proptest::collection::vec(any::<u8>(), 0..12)), 1..12),
        ) {
            type Wild = Slotted<Checked<Probe>, 4, 128>;
            let mut room = Room::new(seed);
            room.carrier_sense = false;
            room.delays = Delays {
                confirm_ns: 5_000..=300_000,
                timer_ns: 0..=200_000,
                ..Delays::STEADY
            };
            room.add(AP, || {
                let probe = || Probe::new(identity(), STA);
                let guarded = SlottedConfig { guard: guard_us.map(Duration::from_us), ..config() };
                Wild::new(guarded, Checked::strict(probe()).with_twin(probe()))
            });
            let mut dice = Dice::new(seed ^ 1);
            room.script(move |_| match dice.within(0..=19) {
                0..=12 => Fate::Arrives,
                13..=15 => Fate::DataLost,
                16..=17 => Fate::ConfirmLost,
                18 => Fate::Reset,
                _ => Fate::Refused(radio::Refusal::QueueFull),
            });
            let mut t = 0;
            for (pause, burst) in &bursts {
                t += pause;
                room.submit(t, 0, STA, burst, None);
            }
            room.run_until(t + 100_000_000);
            let stack = room.protocol::<Wild>(0);
            prop_assert_eq!(stack.protocol().open_tokens().len(), 0);
            let slots: Vec<u64> = room.flights.iter().map(|f| (f.start_ns - 10_000) / SLOT_NS).collect();
            prop_assert!(slots.is_sorted_by(|a, b| a < b), "{:?}", slots);
            let latest = room.flights.iter().map(|f| (f.start_ns - 10_000) % SLOT_NS).max().unwrap_or(0);
            prop_assert!(guard_us.is_none_or(|g| latest <= 1_000 * g), "{latest}");
            room.close();
        }
    }
}
