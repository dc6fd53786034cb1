//! What a protocol acts through: requests become packets or refusals, and what is owed for them is kept until the
//! protocol has returned.

use std::collections::VecDeque;

use frame::mac::header::Header;
use radio::{
    AckPolicy, AdapterId, Application, Attribute, AttributeName, Confirm, Duration, Event, Instant,
    MAX_FRAME_OCTETS, Msdu, Outcome, PacketState, Plane, Radio, Refusal, SetAnswer, Stamps, Token, TxHow,
};

use super::adapter::Adapter;
use super::changes::{Changes, waits};
use super::clerk::Clerk;
use super::confirm::{Record, Tried};
use super::flight::{Flight, Flights, Match, Seen, State};
use super::host::HostCounters;
use super::packet::Status;
use crate::clock::monotonic_ns;
use crate::probe::Probes;

/// Answers to one event that are kept without allocating; more are kept, too.
const OWED: usize = 4 * radio::checked::MAX_ACTIONS;

/// What the protocol has yet to be told.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owed {
    Confirm(Confirm),
    Set(SetAnswer),
}

/// The state behind the radio of one protocol: its adapters, and what it has asked of them.
#[derive(Debug)]
pub(super) struct Desk {
    pub adapters: Vec<Adapter>,
    pub flights: Flights,
    pub owed: VecDeque<Owed>,
    /// Changes of attributes that are asked for, done after the protocol has returned.
    pub changes: Changes,
    pub counters: HostCounters,
    /// What stamps the planes t2 to t8.
    pub probes: Option<Probes>,
    /// Outcomes come with the planes t2 to t8.
    pub tells_planes: bool,
    /// Nothing more is sent.
    pub closing: bool,
    outstanding: u16,
    timeout: Duration,
    tokens: u64,
}

/// The host's clock: `CLOCK_MONOTONIC`.
pub(super) fn now() -> Instant {
    Instant::from_ns(monotonic_ns())
}

impl Desk {
    pub fn new(adapters: Vec<Adapter>, clerk: Clerk, outstanding: u16, timeout: Duration) -> Desk {
        Desk {
            adapters,
            flights: Flights::new(outstanding),
            owed: VecDeque::with_capacity(OWED + usize::from(outstanding)),
            changes: Changes::new(clerk),
            counters: HostCounters::default(),
            probes: None,
            tells_planes: false,
            closing: false,
            outstanding,
            timeout,
            tokens: 0,
        }
    }

    fn adapter(&self, id: AdapterId) -> Option<&Adapter> {
        self.adapters.get(usize::from(id.0))
    }

    fn owe(&mut self, confirm: Confirm) {
        self.counters.count(confirm.outcome);
        self.owed.push_back(Owed::Confirm(confirm));
    }

    fn request(&mut self, t1: Instant, token: Token, frame: &[u8], how: &TxHow) {
        match self.take_in(t1, token, frame, how) {
            Ok(index) => {
                let flight = self.flights.get(index);
                if flight.due <= t1 && !waits(&self.adapters, flight) {
                    self.launch(index, t1);
                }
            }
            Err(why) => {
                let rate = how.series.as_slice()[0].rate;
                self.owe(Confirm::without_air(token, Outcome::Refused(why), rate));
            }
        }
    }

    fn take_in(&mut self, t1: Instant, token: Token, frame: &[u8], how: &TxHow) -> Result<usize, Refusal> {
        let adapter = self.adapters.get(usize::from(how.adapter.0));
        let adapter = adapter.ok_or(Refusal::NoAdapter)?;
        if self.closing {
            return Err(Refusal::NoAdapter);
        }
        if frame.len() > MAX_FRAME_OCTETS {
            return Err(Refusal::BadFrame);
        }
        let header = Header::parse(frame).map_err(|_| Refusal::BadFrame)?;
        if let Some(why) = adapter.refusal(&header, how) {
            return Err(why);
        }
        let expects_ack = how.ack == AckPolicy::Normal && header.wants_ack();
        let write = |out: &mut [u8]| adapter.write(&header, frame, how, expects_ack, out);
        let index = self
            .flights
            .take(token, how, t1, write)
            .ok_or(Refusal::QueueFull)?;
        let flight = self.flights.get_mut(index);
        flight.expects_ack = expects_ack;
        flight.tid = header.tid().unwrap_or(0);
        Ok(index)
    }

    /// Hands a request to the kernel, unless its time is over.
    fn launch(&mut self, index: usize, now: Instant) {
        let flight = self.flights.get_mut(index);
        if flight.how.expires.is_some_and(|t| t < now) {
            return self.end(index, Outcome::Expired);
        }
        let Some(adapter) = self.adapters.get_mut(usize::from(flight.how.adapter.0)) else {
            return self.end(index, Outcome::Refused(Refusal::NoAdapter));
        };
        let rate = flight.how.series.as_slice()[0].rate;
        adapter.fill_in(flight.frame_mut(), rate);
        flight.state = State::Sent;
        flight.due = now + self.timeout;
        if let Some(probes) = &mut self.probes {
            probes.begin(index, now);
        }
        let sent = adapter.send(flight.packet(), flight.tid);
        if let Some(probes) = &mut self.probes {
            probes.handed(index, self::now());
        }
        match sent {
            Ok(()) => self.counters.sent += 1,
            Err(why) => self.end(index, Outcome::Refused(why)),
        }
    }

    /// Ends a request that was not on the air as far as we know.
    pub fn end(&mut self, index: usize, outcome: Outcome) {
        let confirm = self.flights.get(index).ends(outcome);
        self.flights.release(index);
        self.owe(confirm);
    }

    /// Whether a request is to be given up at `now` because its status has not come, and when the first of them was
    /// due.
    pub fn gives_up(&self, now: Instant) -> Option<Instant> {
        let due = self.flights.next_due(|f| f.state == State::Sent)?;
        (due <= now).then_some(due)
    }

    /// Does what is due at `now`: releases a request that was held back, or gives one up whose status did not come.
    /// False if nothing was.
    pub fn do_due(&mut self, now: Instant) -> bool {
        let adapters = &self.adapters;
        let due = |f: &Flight| f.due <= now && !waits(adapters, f);
        let Some(index) = self.flights.position(due) else {
            return false;
        };
        match self.flights.get(index).state {
            State::Held => self.launch(index, now),
            _ => {
                let mut confirm = self.flights.get(index).ends(Outcome::Unknown);
                // How far it came.
                self.probed(index, &mut confirm.stamps);
                self.flights.overdue(index, now + self.timeout);
                self.owe(confirm);
            }
        }
        true
    }

    /// Takes in a frame that came back from an adapter. `t8` is when the kernel had it.
    pub fn status(&mut self, adapter: u8, status: &Status<'_>, t8: Option<Instant>, t9: Instant) {
        let index = match self.flights.match_seen(adapter, Seen::Frame(status.frame), t9) {
            Match::Flight(index) => index,
            Match::Late => return self.counters.late_statuses += 1,
            Match::None => return self.counters.foreign_statuses += 1,
        };
        let flight = self.flights.get(index);
        let outcome = match flight.expects_ack && !status.failed {
            true => Outcome::Acked,
            false => Outcome::NotAcked,
        };
        // Without a count: one, which is what a request without retries gets.
        let attempts = status.attempts.unwrap_or(1);
        self.counters.more_tries_than_asked += u64::from(attempts > flight.how.series.attempts());
        let first = flight.how.series.as_slice()[0].rate;
        let series = flight
            .how
            .series
            .at(attempts.saturating_sub(1))
            .map_or(0, |(i, _)| i);
        let mut stamps = flight.stamps;
        let t1 = stamps.get_host(Plane::T1).unwrap_or(Instant::ZERO);
        if let Some(t8) = t8.filter(|t8| (t1..=t9).contains(t8)) {
            stamps.host(Plane::T8, t8);
        }
        stamps.host(Plane::T9, t9);
        self.probed(index, &mut stamps);
        let flight = self.flights.get(index);
        let confirm = Confirm {
            attempts,
            series,
            rate: status.rate.unwrap_or(first),
            stamps,
            ..flight.ends(outcome)
        };
        self.flights.release(index);
        self.owe(confirm);
    }

    /// Takes in an Ethernet frame that came back from an ordinary interface.
    pub fn outcome(&mut self, adapter: u8, frame: &[u8], acked: bool, t9: Instant) {
        let index = match self.flights.match_seen(adapter, Seen::Ethernet(frame), t9) {
            Match::Flight(index) => index,
            Match::Late => return self.counters.late_statuses += 1,
            Match::None => return self.counters.foreign_statuses += 1,
        };
        let ended = self.flights.get(index).ends(match acked {
            true => Outcome::Acked,
            false => Outcome::NotAcked,
        });
        let mut stamps = ended.stamps;
        stamps.host(Plane::T9, t9);
        let confirm = Confirm {
            attempts: 1, // at least; Linux does not tell how many
            stamps,
            ..ended
        };
        self.flights.release(index);
        self.owe(confirm);
    }

    /// Takes in what the kernel module tells of a frame that some radio has sent.
    pub fn record(&mut self, record: &Record, t9: Instant) {
        let adapter = self.adapters.iter().position(|a| record.is_of(a.wiphy_name()));
        let Some(adapter) = adapter else { return };
        let seen = Seen::Head(&record.head, record.length.into());
        let index = match self.flights.match_seen(adapter as u8, seen, t9) {
            Match::Flight(index) => index,
            Match::Late => return self.counters.late_statuses += 1,
            Match::None => return self.counters.foreign_statuses += 1,
        };
        let flight = self.flights.get(index);
        let outcome = match flight.expects_ack && record.acked {
            true => Outcome::Acked,
            false => Outcome::NotAcked,
        };
        let attempts = record.attempts();
        self.counters.more_tries_than_asked += u64::from(attempts > flight.how.series.attempts());
        let asked = flight.how.series.at(attempts.saturating_sub(1));
        let mut stamps = flight.stamps;
        let t1 = stamps.get_host(Plane::T1).unwrap_or(Instant::ZERO);
        let told = record.stamps();
        for plane in Plane::ALL {
            if let Some(at) = told.get_host(plane).filter(|at| (t1..=t9).contains(at)) {
                stamps.host(plane, at);
            }
        }
        stamps.host(Plane::T9, t9);
        self.probed(index, &mut stamps);
        let flight = self.flights.get(index);
        let ended = flight.ends(outcome);
        let confirm = Confirm {
            attempts,
            series: asked.map_or(0, |(i, _)| i),
            rate: record.last().and_then(Tried::rate).unwrap_or(ended.rate),
            stamps,
            ..ended
        };
        self.flights.release(index);
        self.owe(confirm);
    }

    /// Adds what the probes saw of a request that has ended.
    fn probed(&mut self, index: usize, stamps: &mut Stamps) {
        let Some(probes) = &mut self.probes else { return };
        let seen = probes.end(index);
        for plane in Plane::ALL {
            if let Some(at) = seen.get_host(plane) {
                stamps.host(plane, at);
            }
        }
    }

    fn get(&self, id: AdapterId, name: AttributeName) -> Option<Attribute> {
        let adapter = self.adapter(id)?;
        match name {
            AttributeName::Capabilities => {
                let mut all = adapter.capabilities(self.outstanding);
                all.planes |= self.probes.as_ref().map_or(0, Probes::planes);
                if self.tells_planes {
                    // of other drivers the module knows what mac80211 does
                    let known = adapter
                        .driver()
                        .is_some_and(|d| ["mac80211_hwsim", "ath9k"].contains(&d));
                    all.planes |= if known { 0x1ff } else { 0b1_1100_0011 };
                }
                Some(Attribute::Capabilities(all))
            }
            AttributeName::QueueLength(queue) => {
                let here = self
                    .flights
                    .count(|f| f.how.adapter == id && f.how.queue == queue);
                Some(Attribute::QueueLength(queue, here as u16))
            }
            AttributeName::Packet(token) => {
                let flight = self.flights.get(self.flights.find(token)?);
                let state = PacketState {
                    attempts: 0,
                    at_head: false,
                    stamps: flight.stamps,
                };
                (flight.how.adapter == id && flight.state == State::Held)
                    .then_some(Attribute::Packet(token, state))
            }
            name => adapter.get(name),
        }
    }

    fn abort(&mut self, token: Token) {
        // What the kernel has, it sends.
        let held = |i: &usize| self.flights.get(*i).state == State::Held;
        if let Some(index) = self.flights.find(token).filter(held) {
            self.end(index, Outcome::Aborted);
        }
    }
}

/// The radio of one event: the desk, and who takes what is delivered.
pub(super) struct Seat<'a> {
    pub desk: &'a mut Desk,
    pub application: &'a mut dyn Application,
    pub now: Instant,
}

impl Radio for Seat<'_> {
    fn token(&mut self) -> Token {
        self.desk.tokens += 1;
        Token(self.desk.tokens)
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.desk.request(now(), token, frame, how);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.desk.ask(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.desk.get(adapter, name)
    }

    fn abort(&mut self, token: Token) {
        self.desk.abort(token);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.application.deliver(self.now, msdu);
    }
}

impl Owed {
    /// The event that tells it.
    pub fn event(&self) -> Event<'static> {
        match self {
            Owed::Confirm(confirm) => Event::Confirm(*confirm),
            Owed::Set(answer) => Event::Set(*answer),
        }
    }
}
