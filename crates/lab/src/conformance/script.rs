//! A protocol that does what a list says, and keeps what it is told.

use frame::Rate;
use radio::{
    AdapterId, Attribute, AttributeName, Confirm, Duration, Event, Instant, Protocol, Radio, SeriesList,
    SetError, Token, Tsf, TxHow,
};

/// What a script does.
#[derive(Debug, Clone)]
pub enum Act {
    /// Sends a frame. Times in `TxHow` count from the script's start.
    Send(Vec<u8>, TxHow),
    /// Takes back its n-th request.
    Abort(usize),
    /// Sets an attribute.
    Set(Attribute),
    /// Reads one.
    Get(AttributeName),
    /// Reads the state of its n-th request.
    Look(usize),
    /// Gives its n-th request another series.
    Chain(usize, SeriesList),
    /// Nothing: the timer was all that mattered.
    Wake,
}

/// What a script was told.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// The first event came.
    pub started: bool,
    /// Tokens of its requests, in their order.
    pub tokens: Vec<Token>,
    /// Confirms, in theirs.
    pub confirms: Vec<Confirm>,
    /// Frames and rates that were heard.
    pub heard: Vec<(Vec<u8>, Rate)>,
    /// Timestamps and intervals of beacons.
    pub beacons: Vec<(Tsf, u16)>,
    /// Attributes that were set, and the answers.
    pub answers: Vec<(Attribute, Result<(), SetError>)>,
    /// Attributes that were read.
    pub got: Vec<(AttributeName, Option<Attribute>)>,
    /// States of requests that were read.
    pub looks: Vec<Option<Attribute>>,
    /// When timers were due after the start, and when they came.
    pub timers: Vec<(Duration, Duration)>,
    sets: Vec<(Token, Attribute)>,
}

impl Log {
    /// The confirm of the n-th request.
    pub fn confirm(&self, request: usize) -> Option<&Confirm> {
        let token = self.tokens.get(request)?;
        self.confirms.iter().find(|c| c.token == *token)
    }

    /// What was read of an attribute last.
    pub fn value(&self, name: AttributeName) -> Option<Attribute> {
        self.got.iter().rev().find(|(n, _)| *n == name)?.1
    }
}

/// Acts at given times, and keeps what it is told.
#[derive(Debug, Clone, Default)]
pub struct Script {
    plan: Vec<(Duration, Act)>,
    next: usize,
    start: Instant,
    log: Log,
}

impl Script {
    /// Does each at its time after the start; several at once in their order. The list is sorted by time.
    pub fn new(plan: Vec<(Duration, Act)>) -> Script {
        Script {
            plan,
            ..Script::default()
        }
    }

    /// What it was told.
    pub fn into_log(self) -> Log {
        self.log
    }

    fn set(&mut self, attribute: Attribute, radio: &mut dyn Radio) {
        let token = radio.token();
        self.log.sets.push((token, attribute));
        radio.set(token, AdapterId::FIRST, attribute);
    }

    fn act(&mut self, act: Act, radio: &mut dyn Radio) {
        let after_start = |t: Instant| self.start + t.since(Instant::ZERO);
        match act {
            Act::Send(frame, mut how) => {
                how.not_before = how.not_before.map(after_start);
                how.expires = how.expires.map(after_start);
                let token = radio.token();
                self.log.tokens.push(token);
                radio.request(token, &frame, &how);
            }
            Act::Abort(request) => radio.abort(self.log.tokens[request]),
            Act::Set(attribute) => self.set(attribute, radio),
            Act::Chain(request, series) => {
                self.set(Attribute::PacketSeries(self.log.tokens[request], series), radio);
            }
            Act::Look(request) => {
                let packet = AttributeName::Packet(self.log.tokens[request]);
                self.log.looks.push(radio.get(AdapterId::FIRST, packet));
            }
            Act::Get(name) => self.log.got.push((name, radio.get(AdapterId::FIRST, name))),
            Act::Wake => {}
        }
    }
}

impl Protocol for Script {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let log = &mut self.log;
        match event {
            Event::Start => (log.started, self.start) = (true, now),
            Event::Timer => {
                let due = self.plan.get(self.next).map_or(Duration::from_ns(0), |p| p.0);
                log.timers.push((due, now.since(self.start)));
            }
            Event::Confirm(c) => log.confirms.push(c),
            Event::Indication(i) => log.heard.push((i.frame.to_vec(), i.rate)),
            Event::Beacon(b) => log.beacons.push((b.timestamp, b.interval_tu)),
            Event::Set(answer) => {
                let set = log.sets.iter().find(|(token, _)| *token == answer.token);
                log.answers
                    .extend(set.map(|(_, attribute)| (*attribute, answer.result)));
            }
            Event::Submit(_) => {}
        }
        while let Some((_, act)) = self.plan.get(self.next).filter(|p| self.start + p.0 <= now) {
            let act = act.clone();
            self.next += 1;
            self.act(act, radio);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let (after, _) = self.plan.get(self.next)?;
        self.log.started.then(|| self.start + *after)
    }
}
