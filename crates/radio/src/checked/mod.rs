//! The seven laws of the contract, and a wrapper that watches both sides for them.
//!
//! 1. Every token gets exactly one confirm: refusal, abort and expiry are confirms too.
//! 2. No event arrives inside a [`Radio`] call.
//! 3. `now` never decreases.
//! 4. `Timer` is never early and never stale; it may be late.
//! 5. Events come in the order they became visible; at equal `now`, what happened first on the air comes first.
//! 6. Actions of one event are done in order, and their number is bounded by [`MAX_ACTIONS`].
//! 7. Same events, same actions.
//!
//! [`Checked`] wraps a protocol and says who broke which law: the host below it or the protocol in it. Law 7 is
//! checked by a twin: a second instance that gets the same events and must do the same.

mod listen;

use crate::event::{Event, Token};
use crate::time::{Instant, Tsf};
use crate::tx::AdapterId;
use crate::{Protocol, Radio};
use core::cell::{Cell, RefCell};
use core::fmt;
use listen::{Fnv, Log, Shadow, Watch};

/// Calls of [`Radio`] that a protocol may make in answer to one event.
pub const MAX_ACTIONS: usize = 64;

/// Timer events in a row at one and the same `now` before the protocol counts as stuck (law 6).
pub const MAX_TIMERS_AT_ONCE: u32 = 1_000;

/// One of the seven laws.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Law {
    /// Law 1.
    OneConfirm = 1,
    /// Law 2.
    NoReentry = 2,
    /// Law 3.
    TimeForward = 3,
    /// Law 4.
    HonestTimer = 4,
    /// Law 5.
    OrderOfEvents = 5,
    /// Law 6.
    BoundedActions = 6,
    /// Law 7.
    SameActions = 7,
}

/// Who broke it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Party {
    /// What is below: the simulator, a driver, an overlay.
    Host,
    /// The wrapped protocol.
    Protocol,
}

/// A law that was broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which one.
    pub law: Law,
    /// By whom.
    pub by: Party,
    /// When (host clock).
    pub at: Instant,
    /// The token it is about, if any.
    pub token: Option<Token>,
    /// In a few words.
    pub what: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = if self.by == Party::Host {
            "host"
        } else {
            "protocol"
        };
        write!(
            f,
            "law {} broken by the {by} at {:?}: {}",
            self.law as u8, self.at, self.what
        )?;
        match self.token {
            Some(t) => write!(f, " (token {})", t.0),
            None => Ok(()),
        }
    }
}

/// Watches the laws between a host and the protocol `P`, with up to `N` tokens open at once.
///
/// [`Checked::strict`] panics at the first violation, as tests want it; [`Checked::new`] counts them and keeps
/// the first.
#[derive(Debug)]
pub struct Checked<P, const N: usize = 256> {
    inner: P,
    twin: Option<P>,
    strict: bool,
    started: bool,
    busy: bool,
    now: Instant,
    timers_at_once: u32,
    open: [Token; N],
    open_len: usize,
    last_tsf: [Option<(Instant, Tsf)>; 4],
    log: RefCell<Log>,
    first: Option<Violation>,
    count: u64,
}

impl<P: Protocol, const N: usize> Checked<P, N> {
    /// Counts violations and keeps the first.
    pub fn new(inner: P) -> Self {
        Checked {
            inner,
            twin: None,
            strict: false,
            started: false,
            busy: false,
            now: Instant::ZERO,
            timers_at_once: 0,
            open: [Token(0); N],
            open_len: 0,
            last_tsf: [None; 4],
            log: RefCell::new(Log::default()),
            first: None,
            count: 0,
        }
    }

    /// Panics at the first violation.
    pub fn strict(inner: P) -> Self {
        Checked {
            strict: true,
            ..Checked::new(inner)
        }
    }

    /// With a twin that was built the same way as the protocol: both get the same events and must do the same
    /// (law 7). State outside of the object, clocks and random numbers show up here.
    #[must_use]
    pub fn with_twin(mut self, twin: P) -> Self {
        self.twin = Some(twin);
        self
    }

    /// The first violation, if there was one.
    pub fn violation(&self) -> Option<&Violation> {
        self.first.as_ref()
    }

    /// Number of violations.
    pub fn violations(&self) -> u64 {
        self.count
    }

    /// Tokens that have no confirm yet.
    pub fn open_tokens(&self) -> &[Token] {
        &self.open[..self.open_len]
    }

    /// To be called when the host has nothing more to say: a token that is still open breaks law 1.
    pub fn finish(&mut self) {
        if let Some(token) = self.open_tokens().first().copied() {
            self.broken(
                Law::OneConfirm,
                Party::Host,
                Some(token),
                "no confirm until the end",
            );
        }
    }

    /// The wrapped protocol.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The wrapped protocol.
    pub fn into_inner(self) -> P {
        self.inner
    }

    fn broken(&mut self, law: Law, by: Party, token: Option<Token>, what: &'static str) {
        let v = Violation {
            law,
            by,
            at: self.now,
            token,
            what,
        };
        assert!(!self.strict, "{v}");
        self.first.get_or_insert(v);
        self.count += 1;
    }

    fn close(&mut self, token: Token) {
        match self.open[..self.open_len].iter().position(|t| *t == token) {
            Some(i) => {
                self.open_len -= 1;
                self.open.swap(i, self.open_len);
            }
            None => self.broken(
                Law::OneConfirm,
                Party::Host,
                Some(token),
                "a confirm for no open token",
            ),
        }
    }

    /// What the host may have done wrong by sending this event now.
    fn check_event(&mut self, now: Instant, event: &Event<'_>) {
        if self.busy {
            self.broken(Law::NoReentry, Party::Host, None, "an event inside a call");
        }
        if now < self.now {
            self.broken(Law::TimeForward, Party::Host, None, "now went back");
        }
        let same_now = now == self.now;
        self.now = self.now.max(now);
        match (self.started, matches!(event, Event::Start)) {
            (false, false) => {
                self.broken(Law::OrderOfEvents, Party::Host, None, "an event before the start");
            }
            (true, true) => self.broken(Law::OrderOfEvents, Party::Host, None, "a second start"),
            _ => {}
        }
        self.started = true;
        if matches!(event, Event::Timer) {
            match self.inner.deadline() {
                None => self.broken(Law::HonestTimer, Party::Host, None, "a timer that was not set"),
                Some(d) if d > now => self.broken(Law::HonestTimer, Party::Host, None, "an early timer"),
                Some(_) => {}
            }
            self.timers_at_once = if same_now { self.timers_at_once + 1 } else { 0 };
            if self.timers_at_once == MAX_TIMERS_AT_ONCE {
                self.broken(
                    Law::BoundedActions,
                    Party::Protocol,
                    None,
                    "its deadline does not move on",
                );
            }
        } else {
            self.timers_at_once = 0;
        }
        match event {
            Event::Confirm(c) => {
                self.close(c.token);
                if !c.stamps.in_order() {
                    self.broken(
                        Law::OrderOfEvents,
                        Party::Host,
                        Some(c.token),
                        "stamps out of order",
                    );
                }
            }
            Event::Set(s) => self.close(s.token),
            Event::Indication(i) => self.check_air_order(now, i.adapter, i.tsf),
            Event::Beacon(b) => self.check_air_order(now, b.received.adapter, b.received.tsf),
            Event::Start | Event::Timer | Event::Submit(_) => {}
        }
    }

    /// Law 5 at equal `now`: two frames that one adapter heard come in the order they were on the air.
    fn check_air_order(&mut self, now: Instant, adapter: AdapterId, tsf: Option<Tsf>) {
        let (Some(tsf), Some(last)) = (tsf, self.last_tsf.get_mut(usize::from(adapter.0))) else {
            return;
        };
        let before = last.replace((now, tsf));
        if before.is_some_and(|(t, earlier)| t == now && tsf.minus(earlier) < 0) {
            self.broken(
                Law::OrderOfEvents,
                Party::Host,
                None,
                "two frames in the wrong order",
            );
        }
    }

    /// What the protocol may have done wrong while it handled the event.
    fn check_actions(&mut self) {
        if self.log.get_mut().calls > MAX_ACTIONS {
            self.broken(
                Law::BoundedActions,
                Party::Protocol,
                None,
                "too many actions for one event",
            );
        }
        for i in 0..self.log.get_mut().opened {
            let token = self.log.get_mut().tokens_opened[i];
            if self.open[..self.open_len].contains(&token) {
                self.broken(
                    Law::OneConfirm,
                    Party::Protocol,
                    Some(token),
                    "a token used twice",
                );
            } else if self.open_len == N {
                self.broken(
                    Law::BoundedActions,
                    Party::Protocol,
                    Some(token),
                    "too many requests open",
                );
            } else {
                self.open[self.open_len] = token;
                self.open_len += 1;
            }
        }
    }
}

impl<P: Protocol, const N: usize> Protocol for Checked<P, N> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.check_event(now, &event);
        self.busy = true;
        self.log.get_mut().clear();
        self.inner.handle(
            now,
            event,
            &mut Watch {
                radio,
                log: &self.log,
            },
        );
        if let Some(twin) = &mut self.twin {
            let log = self.log.get_mut();
            let mut shadow = Shadow {
                log,
                hash: Fnv::default(),
                tokens: 0,
                answers: Cell::new(0),
            };
            twin.handle(now, event, &mut shadow);
            let same = shadow.hash.0 == log.hash.0 && twin.deadline() == self.inner.deadline();
            if !same {
                self.broken(
                    Law::SameActions,
                    Party::Protocol,
                    None,
                    "its twin did something else",
                );
            }
        }
        self.busy = false;
        self.check_actions();
    }

    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
}

#[cfg(test)]
mod tests;
