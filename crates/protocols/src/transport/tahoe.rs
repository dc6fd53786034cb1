//! TCP Tahoe, the baseline of the ATP thesis, and NewReno: window-based, an acknowledgement for each segment, loss as
//! the signal of congestion. It travels behind the header of ATP, so that both cost the same octets.
//!
//! Rules: RFC 9293 (call, close), RFC 5681 (slow start, congestion avoidance, three duplicates), RFC 6582 (NewReno),
//! RFC 6298 with a time stamp in every segment (timers), an initial window of 4380 octets (RFC 3390), for NewReno limited transmit
//! (RFC 3042). Tahoe goes back to the oldest octet that is not acknowledged and sends everything from there again. No SACK.
//!
//! An end that has heard nothing for half of its patience asks for a sign of life, by a segment without data and with SACK-REQ,
//! which the other end acknowledges; after all of it the connection has failed.
//!
//! It is a baseline and no more: no authentication of resets beyond the window; no delayed acknowledgements.

mod config;
mod segments;
#[cfg(test)]
mod tests;
mod timer;

pub use config::{Config, Counters, Recovery};

use super::life::Life;
use super::stream::{Inbox, Numbers, Ring, Sent};
use super::wire::MAX_DATA_OCTETS;
use super::{Buffers, Event, Failure, Path, State, Transport, sooner};
use radio::Instant;
use timer::Timer;

/// Segments that one call sends at most.
const BURST: u8 = 2;
/// The longest window that the header can tell, octets.
const MOST_WINDOW: u64 = 65_535;

/// See the [module](self). The receive buffer keeps up to `H` stretches behind holes. Records of packets are not
/// used.
#[derive(Clone, Debug)]
pub struct Connection<O, const H: usize = 64> {
    config: Config,
    state: State,
    caller: bool,
    ring: Ring<O>,
    inbox: Inbox<O, H>,
    ours: Numbers,
    theirs: Numbers,
    calls: u8,
    /// Oldest number that is not acknowledged, next to be sent, and one more than the highest that was.
    una: u64,
    next: u64,
    highest: u64,
    written: u64,
    finished: bool,
    /// Send the oldest segment again, out of turn.
    again: bool,
    window: u64,
    threshold: u64,
    peer_window: u64,
    duplicates: u8,
    /// Octets that went beyond the window since the first duplicate.
    beyond: u64,
    /// The highest number when loss was last seen; NewReno is in recovery up to there.
    recover: u64,
    recovering: bool,
    timer: Timer,
    /// Of the last segment that came.
    echo: u32,
    life: Life,
    linger_until: Instant,
    /// An acknowledgement or a reset is due.
    speak_at: Option<Instant>,
    told_window: u64,
    counters: Counters,
}

impl<O: AsRef<[u8]> + AsMut<[u8]>, const H: usize> Connection<O, H> {
    /// The end that calls, at [`Event::Start`].
    pub fn caller<R: AsRef<[Sent]>>(config: &Config, buffers: Buffers<O, R>) -> Self {
        Connection::new(config, buffers.send, buffers.receive, true)
    }

    /// The end that waits to be called.
    pub fn listener<R: AsRef<[Sent]>>(config: &Config, buffers: Buffers<O, R>) -> Self {
        Connection::new(config, buffers.send, buffers.receive, false)
    }

    fn new(config: &Config, send: O, receive: O, caller: bool) -> Self {
        let mut config = *config;
        config.segment_octets = config.segment_octets.clamp(1, MAX_DATA_OCTETS as u16);
        let segment = u64::from(config.segment_octets);
        Connection {
            state: if caller { State::Opening } else { State::Listening },
            caller,
            ring: Ring::new(send),
            inbox: Inbox::new(receive),
            ours: Numbers {
                initial: config.initial_number,
            },
            theirs: Numbers { initial: 0 },
            calls: 0,
            una: 0,
            next: 0,
            highest: 0,
            written: 0,
            finished: false,
            again: false,
            window: (4 * segment).min((2 * segment).max(4_380)),
            threshold: MOST_WINDOW,
            peer_window: 0,
            duplicates: 0,
            beyond: 0,
            recover: 0,
            recovering: false,
            timer: Timer::default(),
            echo: 0,
            life: Life::new(config.patience),
            linger_until: Instant::ZERO,
            speak_at: None,
            told_window: 0,
            counters: Counters::default(),
            config,
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The congestion window in octets.
    pub fn window_octets(&self) -> u64 {
        self.window
    }

    fn segment(&self) -> u64 {
        self.config.segment_octets.into()
    }

    /// The end of what there is to send, the end of the stream included.
    fn end(&self) -> u64 {
        self.written + u64::from(self.finished)
    }

    /// Octets of the segment that begins there, the end counted as one: it goes alone.
    fn octets_at(&self, start: u64) -> u64 {
        match self.written.saturating_sub(start) {
            0 => self.end() - start,
            data => data.min(self.segment()),
        }
    }

    /// Octets of the next segment if it may go: whole segments within both windows.
    fn may_send(&self) -> Option<u64> {
        let octets = self.octets_at(self.next);
        let usable = (self.window + self.limited()).min(self.peer_window) / self.segment() * self.segment();
        let flight = self.next - self.una;
        (octets > 0 && flight + octets <= usable).then_some(octets)
    }

    /// Octets beyond the window: for each of the first two duplicates a new segment may go, so that a third one comes from small
    /// windows, too (limited transmit, RFC 3042).
    fn limited(&self) -> u64 {
        let is_new = self.next >= self.highest && !self.recovering;
        match self.config.recovery {
            Recovery::NewReno if is_new => u64::from(self.duplicates.min(2)) * self.segment(),
            _ => 0,
        }
    }

    /// A loss was seen: half of what is on the way is the new threshold, without what went beyond the window (RFC 5681, 3.2).
    fn halve(&mut self) {
        let flight = (self.highest - self.una).saturating_sub(self.beyond);
        self.threshold = (flight / 2).max(2 * self.segment());
        self.recover = self.highest;
        (self.duplicates, self.beyond) = (0, 0);
    }

    fn expired(&mut self, now: Instant) {
        self.counters.timeouts += 1;
        self.halve();
        self.window = self.segment();
        self.recovering = false;
        self.timer.back_off(now);
        self.next = self.una;
        // one segment, even into a closed window
        self.again = true;
    }

    /// Numbers up to `ack` are acknowledged for the first time.
    fn advance(&mut self, now: Instant, ack: u64) {
        let fresh = ack - self.una;
        self.una = ack;
        self.next = self.next.max(ack);
        (self.duplicates, self.beyond) = (0, 0);
        if self.recovering && ack < self.recover {
            // a partial one: the next hole
            self.again = true;
            self.window = self.window.saturating_sub(fresh) + self.segment();
        } else if self.recovering {
            self.recovering = false;
            self.window = self.threshold;
        } else if self.window <= self.threshold {
            self.window += self.segment();
        } else {
            self.window += (self.segment() * self.segment() / self.window).max(1);
        }
        self.window = self.window.min(1 << 30);
        self.timer.restart(now, self.una < self.highest);
    }

    /// The same acknowledgement again, while data are on the way.
    fn duplicate(&mut self, now: Instant) {
        self.duplicates = self.duplicates.saturating_add(1);
        if self.recovering {
            self.window += self.segment();
        } else if self.duplicates == 3 && (self.una > self.recover || self.recover == 0) {
            self.counters.fast += 1;
            self.halve();
            match self.config.recovery {
                Recovery::Tahoe => {
                    self.window = self.segment();
                    self.next = self.una;
                }
                Recovery::NewReno => {
                    self.window = self.threshold + 3 * self.segment();
                    self.recovering = true;
                    self.again = true;
                    self.timer.restart(now, true);
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.finished && self.una == self.end()
    }

    fn part(&mut self, now: Instant) {
        if self.state == State::Open && self.is_done() && self.inbox.is_complete() {
            self.state = State::Lingering;
            self.linger_until = now + self.config.linger;
        }
    }

    fn work(&mut self, now: Instant, path: &mut dyn Path) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.state == State::Lingering && now >= self.linger_until {
            self.state = State::Closed;
        }
        if due(self.speak_at) {
            self.speak_at = None;
            match self.state {
                State::Failed(_) => self.reset(now, path),
                _ => self.acknowledge(now, path),
            }
        }
        if self.state == State::Opening && self.caller && due(self.timer.at()) {
            self.call(now, path);
        }
        if now >= self.life.over_at() {
            match self.state {
                // the caller has given up before the connection was there
                State::Opening if !self.caller => self.state = State::Listening,
                State::Open => self.state = State::Failed(Failure::PeerSilent),
                _ => {}
            }
        }
        if self.state != State::Open {
            return;
        }
        if due(self.timer.at()) {
            self.expired(now);
        }
        if self.life.wants_to_ask(now) {
            self.life.asked(now);
            // what is on the way asks already
            if self.una == self.highest {
                self.ask(now, path);
            }
        }
        let mut burst = u8::from(self.again);
        if self.again {
            self.again = false;
            self.send(now, self.una, path);
            self.next = self.next.max(self.una + self.octets_at(self.una));
        }
        while burst < BURST
            && let Some(octets) = self.may_send()
        {
            let at = self.next;
            self.send(now, at, path);
            self.next += octets;
            if self.limited() > 0 && self.next - self.una > self.window {
                self.beyond += octets;
            }
            burst += 1;
        }
        self.highest = self.highest.max(self.next);
        // what waits for a window is watched, too
        if self.next < self.end() || self.una < self.highest {
            self.timer.start(now);
        }
    }
}

impl<O: AsRef<[u8]> + AsMut<[u8]>, const H: usize> Transport for Connection<O, H> {
    fn handle(&mut self, now: Instant, event: Event<'_>, path: &mut dyn Path) {
        match event {
            Event::Start if self.caller && self.calls == 0 => self.call(now, path),
            Event::Start | Event::Timer => {}
            Event::Indication(datagram) => self.receive(now, datagram, path),
        }
        self.work(now, path);
    }

    fn deadline(&self) -> Option<Instant> {
        let own = match self.state {
            State::Opening if self.caller => self.timer.at(),
            State::Open => {
                let more = self.may_send().is_some() || self.again;
                let unwatched = self.timer.at().is_none() && self.next < self.end();
                let now = (more || unwatched).then_some(Instant::ZERO);
                sooner(sooner(now, self.timer.at()), Some(self.life.deadline()))
            }
            State::Opening => Some(self.life.over_at()),
            State::Lingering => Some(self.linger_until),
            _ => None,
        };
        sooner(own, self.speak_at)
    }

    fn write(&mut self, _now: Instant, octets: &[u8]) -> usize {
        if self.finished || self.state.is_over() {
            return 0;
        }
        let room = self.ring.capacity() as u64 - (self.written - self.una.min(self.written));
        let n = octets.len().min(room as usize);
        self.ring.put(self.written, &octets[..n]);
        self.written += n as u64;
        n
    }

    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let octets = self.inbox.read(out);
        // the window has opened again, and the other end may not know
        let opened = self.told_window < 2 * self.segment() && self.free() >= self.inbox.capacity() as u64 / 2;
        if octets > 0 && opened && self.state == State::Open {
            self.speak_at = Some(now);
        }
        octets
    }

    fn is_exhausted(&self) -> bool {
        self.inbox.is_exhausted()
    }

    fn finish(&mut self, _now: Instant) {
        self.finished = true;
    }

    fn abort(&mut self, now: Instant) {
        if !self.state.is_over() {
            let known = matches!(self.state, State::Open | State::Lingering);
            self.speak_at = known.then_some(now);
            self.state = State::Failed(Failure::Aborted);
        }
    }

    fn state(&self) -> State {
        self.state
    }
}
