//! Earliest deadline first over confirmed one-shots (SDMAC, Cena et al. 2018, section II.C.2; Seno et al. 2017).
//!
//! The software decides about every single attempt: one is outstanding at a time, it is not preempted, and when
//! its confirm comes, the frame with the earliest absolute deadline goes next. A frame that cannot be finished in
//! time any more is dropped before it wastes the channel. Above an overlay that has turns for each receiver there is one attempt
//! outstanding for each: see [`AtOnce`]. A confirm that stays away holds the others up for a while only: see [`EdfConfig::patience`].
//!
//! | module | what it is |
//! |---|---|
//! | this one | [`Edf`], the overlay: one node schedules its own frames |
//! | [`coordinator`], [`responder`] | one node schedules everybody's: it polls, the others answer |
//! | [`poll`] | the octets that those two exchange |
//! | [`cost`] | what an attempt costs |
//! | [`pool`] | channel time for retries that all streams share |
//! | [`feasible`] | whether all deadlines can be met, before anything is sent |

pub mod coordinator;
pub mod cost;
pub mod feasible;
mod flights;
pub mod poll;
pub mod pool;
pub mod responder;

use super::overlay::{Above, Access, AccessSetting, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use cost::CostEstimate;
use flights::{Flight, Flights};
use frame::MacAddr;
use frame::mac::Header;
use frame::mac::header::set_retry;
use pool::{RetryAccount, RetryPool};
use radio::checked::MAX_ACTIONS;
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

/// How many attempts are outstanding at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AtOnce {
    /// One: the frames of a node compete for one channel.
    #[default]
    One,
    /// One for each receiver: below are slots of links, and one that has nothing to send passes empty.
    EachReceiver,
}

/// How an [`Edf`] schedules.
#[derive(Clone, Debug)]
pub struct EdfConfig {
    /// How many attempts are outstanding.
    pub at_once: AtOnce,
    /// What a successful attempt with the longest frame costs, from request to confirm. A frame is dropped as
    /// expired when less than this is left until its deadline.
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
    /// Time for retries that all frames share; `None`: retries compete with first attempts without a limit.
    pub pool: Option<RetryPool>,
    /// So many times `cost` the others wait for the confirm of an attempt; then they go, as if it were not below. From its
    /// request on, or with [`AtOnce::EachReceiver`] from the `expires` that it has: until then its turn may come. Nothing else
    /// becomes of it: it is not repeated before it has a confirm. A host that loses a status tells so late, often after 100 ms.
    /// If the confirm was merely slow, there are two frames in the adapter, and the second was chosen early; so a small number will do.
    pub patience: u32,
    /// Channel access to be set at the start, if any.
    pub access: Option<Access>,
}

/// [`EdfConfig::patience`] if nothing else is said, and that of those who poll: four times what nearly all attempts take.
pub const PATIENCE: u32 = 4;

impl EdfConfig {
    /// Failed frames are queued again without a gap, as often as each request allows.
    pub const fn new(cost: CostEstimate, default_deadline: Duration) -> EdfConfig {
        EdfConfig {
            at_once: AtOnce::One,
            cost,
            default_deadline,
            strategy: Strategy::Queued,
            max_attempts: u16::MAX,
            gap: Duration::ZERO,
            pool: None,
            patience: PATIENCE,
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
    /// Of these, retries that the pool did not pay for.
    pub unpaid: u64,
    /// Requests acknowledged.
    pub acked: u64,
    /// Requests dropped because they could not be finished by their deadline.
    pub dropped: u64,
    /// Requests given up after their last attempt.
    pub exhausted: u64,
    /// Attempts whose confirm did not come in the time that others wait for it.
    pub silent: u64,
}

/// Attempts that go down in answer to one event; others follow at a timer, at once. Together with the calls of the protocol above
/// they keep law 6.
const LAUNCHES: usize = MAX_ACTIONS / 4;

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
    flights: Flights<N>,
    /// Attempts that may still go down in answer to this event.
    left: usize,
    /// The one that came at this place in their order goes next, whatever its deadline is.
    again: Option<u64>,
    account: Option<RetryAccount>,
    counters: EdfCounters,
}

impl<P: Protocol, const N: usize, const L: usize> Edf<P, N, L> {
    /// EDF below `protocol`.
    pub fn new(config: EdfConfig, protocol: P) -> Self {
        Edf {
            above: Above::new(protocol),
            access: AccessSetting::new(config.access),
            account: config.pool.map(RetryAccount::new),
            config,
            flights: Flights::new(),
            left: LAUNCHES,
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
            while self.left > 0 && self.launch_next(now, radio) {
                self.left -= 1;
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

    /// Until when this frame has to wait for the confirm of another one.
    fn busy_until(&self, held: &Held<L>) -> Option<Instant> {
        self.flights.busy_until(match self.config.at_once {
            AtOnce::One => None,
            AtOnce::EachReceiver => Some(receiver(held)),
        })
    }

    /// Until when others wait for the confirm of an attempt that starts now.
    fn patience(&self, now: Instant, expires: Instant) -> Instant {
        let patience = self.config.cost.get().times(self.config.patience.into());
        match self.config.at_once {
            AtOnce::One => now + patience,
            AtOnce::EachReceiver => now.max(expires) + patience,
        }
    }

    /// The earliest deadline goes down; false if nothing may.
    fn launch_next(&mut self, now: Instant, radio: &mut dyn Radio) -> bool {
        if self.config.at_once == AtOnce::One && self.flights.busy_until(None).is_some() {
            return false;
        }
        let cost = self.config.cost.get();
        let covered = self.account.is_none_or(|a| a.covers(now, cost));
        let ready = |h: &Held<L>| h.how.not_before.is_none_or(|t| t <= now) && self.busy_until(h).is_none();
        let unpaid = |h: &Held<L>| h.tag > 0 && !covered;
        let at_once = |h: &Held<L>| self.again == Some(h.order()) && !unpaid(h);
        let all = self.above.held.waiting().filter(|(_, h)| ready(h));
        // what is to go again at once goes first if it is paid for
        let first = all.min_by_key(|(_, h)| (unpaid(h), !at_once(h), self.deadline_of(h), h.order()));
        let Some((index, _)) = first else {
            return false;
        };
        self.again = None;
        if let Some(account) = &mut self.account
            && self.above.held.get(index).is_some_and(|h| h.tag > 0)
        {
            self.counters.unpaid += u64::from(!covered);
            if covered {
                account.pay(now, cost);
            }
        }
        let held = self.above.held.get_mut(index).expect("it waits");
        let attempt = held.tag as u16;
        held.tag += 1;
        let (_, series) = held
            .how
            .series
            .at(attempt)
            .expect("no more attempts than the series has");
        let expires = held
            .how
            .expires
            .unwrap_or(held.since + self.config.default_deadline);
        let how = TxHow {
            series: SeriesList::one(series.rate, 1),
            not_before: None,
            expires: Some(expires),
            ..held.how
        };
        let to = receiver(held);
        let until = self.patience(now, expires);
        self.flights.add(Flight::new(index, to, now, until));
        self.above.held.launch(index, &how, radio);
        self.counters.attempts += 1;
        true
    }

    fn land(&mut self, now: Instant, flight: Flight, confirm: &Confirm) {
        let Flight { index, since, .. } = flight;
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
            self.again = Some(held.order());
        }
    }
}

impl<P: Protocol, const N: usize, const L: usize> Protocol for Edf<P, N, L> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.left = LAUNCHES;
        self.counters.silent += self.flights.give_up(now);
        match event {
            Event::Confirm(c) => {
                let landed = self.above.held.landed(&c);
                match landed.and_then(|index| self.flights.came_back(index)) {
                    Some(flight) => self.land(now, flight, &c),
                    None => self.above.tell(now, event, radio),
                }
            }
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
        // what was not done is done at once, if there is something
        let more = self.left == 0;
        let of_waiting = self.above.held.waiting().map(|(_, h)| {
            let dropped = self.deadline_of(h) - self.config.cost.get() + tick;
            match self.busy_until(h).max(h.how.not_before) {
                Some(ready) => ready.min(dropped),
                None if more => Instant::ZERO,
                None => dropped,
            }
        });
        of_waiting.chain(self.above.deadline()).min()
    }
}

fn receiver<const L: usize>(held: &Held<L>) -> MacAddr {
    Header::parse(held.frame()).map_or(MacAddr::ZERO, |h| h.receiver())
}

#[cfg(test)]
mod tests;
