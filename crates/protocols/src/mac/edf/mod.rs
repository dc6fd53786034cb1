//! Earliest deadline first over confirmed one-shots (SDMAC, Cena et al. 2018, section II.C.2; Seno et al. 2017).
//!
//! The software decides about every single attempt: one is outstanding at a time, it is not preempted, and when
//! its confirm comes, the frame with the earliest absolute deadline goes next. A frame that cannot be finished in
//! time any more is dropped before it wastes the channel.
//!
//! | module | what it is |
//! |---|---|
//! | this one | [`Edf`], the overlay: one node schedules its own frames |
//! | [`coordinator`], [`responder`] | one node schedules everybody's: it polls, the others answer |
//! | [`poll`] | the octets that those two exchange |
//! | [`cost`] | what an attempt costs |
//! | [`feasible`] | whether all deadlines can be met, before anything is sent |

pub mod coordinator;
pub mod cost;
pub mod feasible;
pub mod poll;
pub mod responder;

use super::overlay::{Above, Access, AccessSetting, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use cost::CostEstimate;
use frame::mac::Header;
use frame::mac::header::set_retry;
use radio::pending::Held;
use radio::{AckPolicy, Confirm, Duration, Event, Instant, Outcome, Protocol, Radio, SeriesList, TxHow};

/// What happens to a frame whose attempt has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strategy {
    /// It goes again at once, whatever else waits.
    Immediate,
    /// It is queued again with its unchanged deadline, and the earliest deadline goes next.
    #[default]
    Queued,
}

/// How an [`Edf`] schedules.
#[derive(Clone, Debug)]
pub struct EdfConfig {
    /// What a successful attempt costs, from request to confirm. A frame is dropped as expired when less than
    /// this is left until its deadline.
    pub cost: CostEstimate,
    /// Relative deadline of requests without `expires`.
    pub default_deadline: Duration,
    /// What happens to a frame whose attempt has failed.
    pub strategy: Strategy,
    /// Attempts per frame at most, besides the limit that each request sets by its series.
    pub max_attempts: u16,
    /// After a failure the frame waits this long and lets others go first, because losses come in bursts; not if
    /// its deadline does not leave the time for it. Zero: no gap.
    pub gap: Duration,
    /// Channel access to be set at the start, if any.
    pub access: Option<Access>,
}

impl EdfConfig {
    /// Failed frames are queued again without a gap, as often as each request allows.
    pub const fn new(cost: CostEstimate, default_deadline: Duration) -> EdfConfig {
        EdfConfig {
            cost,
            default_deadline,
            strategy: Strategy::Queued,
            max_attempts: u16::MAX,
            gap: Duration::ZERO,
            access: None,
        }
    }
}

/// What an [`Edf`] has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EdfCounters {
    /// Attempts handed down.
    pub attempts: u64,
    /// Of these, failed: no ACK, no status, or a reset of the adapter.
    pub failed: u64,
    /// Requests acknowledged.
    pub acked: u64,
    /// Requests dropped because they could not be finished by their deadline.
    pub dropped: u64,
    /// Requests given up after their last attempt.
    pub exhausted: u64,
}

/// The overlay; see the [module](self). Holds up to `N` requests with frames of up to `L` octets.
///
/// Of each request it honours `expires` as the deadline, `not_before`, the rates of the series (attempt by
/// attempt) and their number of tries, the ack policy, RTS, queue and adapter. What goes down are one-shots; the
/// confirm that goes up adds up the attempts.
#[derive(Clone, Debug)]
pub struct Edf<P, const N: usize = DEFAULT_HELD, const L: usize = DEFAULT_HELD_OCTETS> {
    above: Above<P, N, L>,
    config: EdfConfig,
    access: AccessSetting,
    /// The index of the attempt that is below, and when it went there.
    flying: Option<(usize, Instant)>,
    /// Goes next, whatever its deadline is.
    again: Option<usize>,
    counters: EdfCounters,
}

impl<P: Protocol, const N: usize, const L: usize> Edf<P, N, L> {
    /// EDF below `protocol`.
    pub fn new(config: EdfConfig, protocol: P) -> Self {
        Edf {
            above: Above::new(protocol),
            access: AccessSetting::new(config.access),
            config,
            flying: None,
            again: None,
            counters: EdfCounters::default(),
        }
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        self.above.protocol()
    }

    /// What it has counted.
    pub fn counters(&self) -> &EdfCounters {
        &self.counters
    }

    /// What it reckons that an attempt costs.
    pub fn cost(&self) -> Duration {
        self.config.cost.get()
    }

    /// Whether the host took the channel access parameters; `None` if it has not answered or none were asked for.
    pub fn access_taken(&self) -> Option<bool> {
        self.access.taken()
    }

    fn deadline_of(&self, held: &Held<L>) -> Instant {
        held.how
            .expires
            .unwrap_or(held.since + self.config.default_deadline)
    }

    /// Whether an attempt that starts at `at` can be finished in time.
    fn makes_sense(&self, held: &Held<L>, at: Instant) -> bool {
        at + self.config.cost.get() <= self.deadline_of(held)
    }

    fn settle(&mut self, now: Instant, radio: &mut dyn Radio) {
        loop {
            self.drop_late(now);
            if self.flying.is_none() {
                self.launch_next(now, radio);
            }
            if !self.above.pay(now, radio) {
                return;
            }
        }
    }

    fn drop_late(&mut self, now: Instant) {
        for i in 0..N {
            let late = |h: &Held<L>| h.is_waiting() && !self.makes_sense(h, now);
            if self.above.held.get(i).is_some_and(late) {
                self.above.held.end(i, Outcome::Expired);
                self.counters.dropped += 1;
            }
        }
    }

    fn launch_next(&mut self, now: Instant, radio: &mut dyn Radio) {
        let ready = |h: &Held<L>| h.is_waiting() && h.how.not_before.is_none_or(|t| t <= now);
        let again = self
            .again
            .take()
            .filter(|i| self.above.held.get(*i).is_some_and(ready));
        let earliest = || {
            let all = self.above.held.waiting().filter(|(_, h)| ready(h));
            all.min_by_key(|(_, h)| (self.deadline_of(h), h.order()))
                .map(|(i, _)| i)
        };
        let Some(index) = again.or_else(earliest) else {
            return;
        };
        let held = self.above.held.get_mut(index).expect("it waits");
        let attempt = held.tag as u16;
        held.tag += 1;
        let (_, series) = held
            .how
            .series
            .at(attempt)
            .expect("no more attempts than the series has");
        let how = TxHow {
            series: SeriesList::one(series.rate, 1),
            not_before: None,
            expires: Some(
                held.how
                    .expires
                    .unwrap_or(held.since + self.config.default_deadline),
            ),
            ..held.how
        };
        self.above.held.launch(index, &how, radio);
        self.flying = Some((index, now));
        self.counters.attempts += 1;
    }

    fn land(&mut self, now: Instant, index: usize, since: Instant, confirm: &Confirm) {
        self.flying = None;
        let held = self.above.held.get(index).expect("it was in flight");
        let attempts = held.tag as u16;
        let (series, _) = held.how.series.at(attempts - 1).expect("it was launched");
        let limit = held.how.series.attempts().min(self.config.max_attempts);
        let to_group = Header::parse(held.frame()).is_ok_and(|h| h.is_group());
        let asks_for_ack = held.how.ack == AckPolicy::Normal && !to_group;
        let end = match confirm.outcome {
            Outcome::Acked | Outcome::Refused(_) | Outcome::Expired => true,
            Outcome::NotAcked => !asks_for_ack,
            Outcome::Unknown | Outcome::Aborted => false,
        };
        match confirm.outcome {
            Outcome::Acked => {
                self.counters.acked += 1;
                self.config.cost.learn(now - since);
            }
            Outcome::Expired => self.counters.dropped += 1,
            _ if !end => self.counters.failed += 1,
            _ => {}
        }
        if end || attempts >= limit || held.is_unwanted() {
            self.counters.exhausted += u64::from(!end && !held.is_unwanted());
            self.above.held.finish(index, &Confirm { series, ..*confirm });
            return;
        }
        self.retry(now, index);
    }

    fn retry(&mut self, now: Instant, index: usize) {
        let gap = self.config.gap;
        let held = self.above.held.get(index).expect("it was in flight");
        let patient = gap > Duration::ZERO && self.makes_sense(held, now + gap);
        self.above.held.wait_again(index);
        let held = self.above.held.get_mut(index).expect("just there");
        // a frame without a header has no such flag: it goes again as it is
        let _ = set_retry(held.frame_mut(), true);
        if patient {
            held.how.not_before = Some(now + gap);
        } else if self.config.strategy == Strategy::Immediate {
            self.again = Some(index);
        }
    }
}

impl<P: Protocol, const N: usize, const L: usize> Protocol for Edf<P, N, L> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Confirm(c) => match (self.above.held.landed(&c), self.flying) {
                (Some(index), Some((_, since))) => self.land(now, index, since, &c),
                _ => self.above.tell(now, event, radio),
            },
            Event::Timer => self.above.timer(now, radio),
            Event::Set(answer) if self.access.is_answered_by(&answer) => {}
            Event::Start => {
                self.access.start(radio);
                self.above.tell(now, event, radio);
            }
            _ => self.above.tell(now, event, radio),
        }
        self.settle(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let tick = Duration::from_ns(1);
        let of_waiting = self.above.held.waiting().map(|(_, h)| {
            let dropped = self.deadline_of(h) - self.config.cost.get() + tick;
            match h.how.not_before {
                Some(ready) if self.flying.is_none() => ready.min(dropped),
                _ => dropped,
            }
        });
        of_waiting.chain(self.above.deadline()).min()
    }
}

#[cfg(test)]
mod tests {
    use super::Strategy;
    use super::*;
    use crate::mac::data::Identity;
    use crate::mac::sender::{Sender, SenderConfig};
    use crate::testing::{Delays, Dice, Fate, Probe, Room};
    use frame::{MacAddr, Rate};
    use proptest::prelude::*;
    use radio::{Checked, Refusal};
    use std::vec::Vec;

    const AP: MacAddr = MacAddr::local(1);
    const STA: MacAddr = MacAddr::local(2);
    const ME: Identity = Identity::station(STA, AP);
    const US: fn(u64) -> Duration = Duration::from_us;

    fn config() -> EdfConfig {
        EdfConfig::new(CostEstimate::fixed(US(150)), Duration::from_ms(10))
    }

    fn sender(config: EdfConfig) -> (Room, usize) {
        let mut room = Room::new(1);
        let node = room.add(STA, move || -> Edf<Sender> {
            Edf::new(config.clone(), Sender::new(SenderConfig::new(ME, Rate::OFDM_54)))
        });
        (room, node)
    }

    /// Payloads in the order in which they were on the air.
    fn order(room: &Room) -> Vec<u8> {
        room.flights.iter().map(|f| *f.frame.last().unwrap()).collect()
    }

    #[test]
    fn the_earliest_deadline_goes_first() {
        let (mut room, node) = sender(config());
        for (name, deadline_us) in [
            (b'a', 9_000),
            (b'b', 3_000),
            (b'c', 1_000),
            (b'd', 1_000),
            (b'e', 500),
        ] {
            room.submit(0, node, AP, &[name], Some(deadline_us * 1_000));
        }
        room.run_until(10_000_000);
        // a is on its way when the others come, and is not preempted
        assert_eq!(order(&room), b"aecdb");
        let edf = room.protocol::<Edf<Sender>>(node);
        assert_eq!(
            (edf.counters().acked, edf.protocol().counters().confirms.acked),
            (5, 5)
        );
        room.close();
    }

    #[test]
    fn failed_frames_by_strategy() {
        for (strategy, expected) in [(Strategy::Queued, b"abaa"), (Strategy::Immediate, b"aaab")] {
            let (mut room, node) = sender(EdfConfig { strategy, ..config() });
            let mut losses = 0;
            room.script(move |a| {
                losses += u32::from(a.frame.ends_with(b"a"));
                match a.frame.ends_with(b"a") && losses <= 2 {
                    true => Fate::DataLost,
                    false => Fate::Arrives,
                }
            });
            room.submit(0, node, AP, b"a", Some(9_000_000));
            room.submit(50_000, node, AP, b"b", Some(3_000_000));
            room.run_until(10_000_000);
            assert_eq!(order(&room), expected, "{strategy:?}");
            // retries have the retry bit, and are one confirm
            let retries = room.flights.iter().filter(|f| f.frame[1] & 8 != 0).count();
            let c = room.protocol::<Edf<Sender>>(node).protocol().counters().confirms;
            assert_eq!((retries, c.acked, c.attempts), (2, 2, 4));
            room.close();
        }
    }

    #[test]
    fn a_gap_lets_others_go_first_if_there_is_time() {
        let (mut room, node) = sender(EdfConfig {
            gap: US(1_000),
            ..config()
        });
        room.script(|a| {
            if a.at_ns < 50_000 {
                Fate::DataLost
            } else {
                Fate::Arrives
            }
        });
        room.submit(0, node, AP, b"a", Some(2_000_000));
        room.submit(50_000, node, AP, b"b", Some(9_000_000));
        room.run_until(10_000_000);
        assert_eq!(order(&room), b"aba");
        let [first, _, second] = [0, 1, 2].map(|i| room.flights[i].clone());
        // confirm of the failure: 25 us timeout and 20 us path after its end; request path 10 us
        assert_eq!(second.start_ns - first.end_ns, 1_055_000);
        room.close();

        let (mut room, node) = sender(EdfConfig {
            gap: US(1_000),
            ..config()
        });
        room.script(|a| {
            if a.at_ns < 50_000 {
                Fate::DataLost
            } else {
                Fate::Arrives
            }
        });
        room.submit(0, node, AP, b"a", Some(1_000_000));
        room.run_until(10_000_000);
        assert_eq!(
            room.flights[1].start_ns - room.flights[0].end_ns,
            55_000,
            "no time for a gap"
        );
        room.close();
    }

    #[test]
    fn what_comes_too_late_is_dropped_before_it_is_sent() {
        let (mut room, node) = sender(config());
        room.submit(0, node, AP, b"a", Some(149_999));
        room.submit(1_000_000, node, AP, b"b", Some(1_150_000));
        // c waits for d, which loses its confirm, and is told in time
        room.script(|a| {
            if a.frame.ends_with(b"d") {
                Fate::ConfirmLost
            } else {
                Fate::Arrives
            }
        });
        room.submit(2_000_000, node, AP, b"d", None);
        room.submit(2_000_001, node, AP, b"c", Some(2_500_000));
        room.run_until(20_000_000);
        assert_eq!(order(&room)[..2], *b"bd");
        let edf = room.protocol::<Edf<Sender>>(node);
        let c = edf.protocol().counters().confirms;
        assert_eq!((edf.counters().dropped, c.expired, c.acked), (2, 2, 1));
        assert_eq!(c.unknown, 1, "seven tries, none confirmed");
        room.close();
    }

    #[test]
    fn the_cost_is_learned() {
        let cost = CostEstimate::learned(US(100));
        let (mut room, node) = sender(EdfConfig { cost, ..config() });
        room.submit(0, node, AP, &[0; 50], None);
        room.run_until(10_000_000);
        // 10 us request, 36 data, 16 SIFS, 44 ACK, 20 confirm
        assert_eq!(room.protocol::<Edf<Sender>>(node).cost(), US(126));
        room.close();
    }

    type Stack = Edf<Checked<Probe>, 4, 128>;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Bursts, aborts, losses, lost confirms, resets, late timers: every token gets exactly one confirm, one
        /// attempt is on the air at a time, and none starts that its deadline does not allow.
        #[test]
        fn any_requests_in_any_air(
            seed: u64,
            immediate: bool,
            gap_us in prop_oneof![Just(0u64), 1u64..2_000],
            bursts in proptest::collection::vec((0u64..3_000_000, proptest::collection::vec(any::<u8>(), 0..12)), 1..30),
        ) {
            let mut room = Room::new(seed);
            room.delays = Delays {
                confirm_ns: 5_000..=300_000,
                timer_ns: 0..=200_000,
                ..Delays::STEADY
            };
            let config = EdfConfig {
                strategy: if immediate { Strategy::Immediate } else { Strategy::Queued },
                gap: US(gap_us),
                ..config()
            };
            let node = room.add(STA, move || -> Stack {
                let probe = || Probe::new(ME, AP);
                Edf::new(config.clone(), Checked::strict(probe()).with_twin(probe()))
            });
            let mut dice = Dice::new(seed ^ 1);
            room.script(move |_| match dice.within(0..=19) {
                0..=9 => Fate::Arrives,
                10..=14 => Fate::DataLost,
                15..=16 => Fate::AckLost,
                17 => Fate::ConfirmLost,
                18 => Fate::Reset,
                _ => Fate::Refused(Refusal::QueueFull),
            });
            let mut t = 0;
            for (pause, burst) in &bursts {
                t += pause;
                room.submit(t, node, AP, burst, None);
            }
            room.run_until(t + 50_000_000);

            let stack = room.protocol::<Stack>(node);
            let probe = stack.protocol().inner();
            prop_assert_eq!(stack.protocol().open_tokens().len(), 0);
            prop_assert_eq!(probe.ended.len() as u32, probe.made());
            let mut attempts = std::collections::BTreeMap::new();
            for f in &room.flights {
                let (number, expires) = Probe::read(&f.frame).unwrap();
                // of the 150 us that must be left, 10 are the request path and 34 perhaps DIFS
                prop_assert!(f.start_ns + 106_000 <= expires.as_ns());
                *attempts.entry(number).or_insert(0) += u16::from(f.fate != Fate::ConfirmLost);
            }
            for pair in room.flights.windows(2) {
                prop_assert!(pair[1].start_ns > pair[0].end_ns);
            }
            for (number, expires, at, c) in &probe.ended {
                prop_assert_eq!(c.attempts, attempts.get(number).copied().unwrap_or(0), "{:?}", c);
                // the end is told when it is certain: at the deadline, or when the attempt below ends
                if let (Some(expires), Outcome::Expired) = (expires, c.outcome) {
                    prop_assert!(*at <= *expires + US(1_500), "{:?} {:?}", at, expires);
                }
            }
            room.close();
        }
    }
}
