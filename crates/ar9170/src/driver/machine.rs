//! The state machine behind the radio: phases of the stick, its restarts, and what is owed to the protocol.
//!
//! ```text
//! Absent -> Resetting -> Loading -> Starting -> Greeting -> Rising -> Up
//!              ^  ^----------- restart ------------------------------+
//!              +-- Resting <- whatever takes too long on the way up
//! ```
//!
//! Every phase but `Absent` and `Up` has an end in time. In `Up` everything that is waited for has, and a stick that says
//! nothing for a while is asked something: so it is up again, or on its way, within a bounded time, whatever it says and if
//! nobody wants anything of it.

use super::bus::{Bus, TransferId};
use super::config::{Config, Counts, NO_FIRMWARE, Reason};
use super::flight::Flights;
use super::owed::{ANSWERS, Answer};
use super::ring::Ring;
use super::settings::Settings;
use super::wish::Wish;
use crate::codec::{Firmware, Order};
use core::cell::Cell;
use frame::MacAddr;
use radio::{Instant, Outcome, Refusal, SetError, Token};

/// Changes of attributes that may wait at once; more are answered as not supported.
pub(super) const WORKS: usize = 32;
/// Octets of a control transfer of the upload.
const CHUNK_OCTETS: usize = 4_096;
/// Control requests of the loader.
const WRITE_MEMORY: u8 = 0x30;
const START_IMAGE: u8 = 0x31;

/// What the stick is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// There is none.
    Absent,
    /// It was reset, and should be back by then.
    Resetting(Instant),
    /// The image goes there, from this octet on.
    Loading(usize, Instant),
    /// The image is to say that it runs.
    Starting(Instant),
    /// It is to give an ECHO back.
    Greeting,
    /// It is brought up: the step that is next.
    Rising(u8),
    /// It works.
    Up,
    /// It did not come up; there is another try then.
    Resting(Instant),
}

/// A change of an attribute: the command of it that is next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub token: Token,
    /// `None`: nobody can be told so, and in its turn it is answered like that.
    pub wish: Option<Wish>,
    pub part: u8,
}

/// What the command that is out was for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Aim {
    Greet,
    Eeprom,
    Step(u8),
    Work,
    Tsf,
    /// To be answered.
    Alive,
}

/// The command that is to be answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub order: Order,
    pub since: Instant,
    pub aim: Aim,
}

/// A transfer that is out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub id: TransferId,
    pub since: Instant,
    /// The request whose frame it carries.
    pub flight: usize,
}

pub(super) struct Machine<'f, const N: usize, const L: usize> {
    pub firmware: Firmware<'f>,
    pub config: Config,
    pub settings: Settings,
    pub flights: Flights<N, L>,
    pub counts: Counts,
    /// Time of the last event.
    pub now: Instant,
    pub phase: Phase,
    pub works: Ring<Change, WORKS>,
    /// The TSF is to be read.
    pub wants_tsf: Cell<bool>,
    pub waiting: Option<Waiting>,
    pub command_pipe: Option<Transfer>,
    pub frame_pipe: Option<Transfer>,
    /// Sequence number of the next response, once it is known.
    pub expected: Option<u8>,
    /// When the last response or event came.
    pub answered: Instant,
    /// Reads that are out.
    pub posted: u8,
    /// Why the stick must be restarted, found on the way.
    pub broken: Option<Reason>,
    /// Order of whatever comes next: requests and ends.
    pub order: u64,
    pub tokens: u64,
    pub answers: Ring<Answer, ANSWERS>,
    ids: TransferId,
    /// Restarts in a row that failed.
    failures: u8,
    /// Requests are refused, and those that wait here were taken back.
    pub closing: bool,
}

impl<'f, const N: usize, const L: usize> Machine<'f, N, L> {
    /// Without a firmware: no stick is brought up.
    pub(super) const fn vacant() -> Self {
        Machine {
            firmware: NO_FIRMWARE,
            config: Config::DEFAULT,
            settings: Settings::new(Config::DEFAULT.mhz),
            flights: Flights::new(),
            counts: Counts::NONE,
            now: Instant::ZERO,
            phase: Phase::Absent,
            works: Ring::new(),
            wants_tsf: Cell::new(false),
            waiting: None,
            command_pipe: None,
            frame_pipe: None,
            expected: None,
            answered: Instant::ZERO,
            posted: 0,
            broken: None,
            order: 0,
            tokens: 0,
            answers: Ring::new(),
            ids: 0,
            failures: 0,
            closing: false,
        }
    }

    /// Before the first event.
    pub(super) fn set_up(&mut self, firmware: Firmware<'f>, config: Config) {
        (self.firmware, self.config) = (firmware, config);
        self.settings = Settings {
            address: config.address.unwrap_or(MacAddr::ZERO),
            ..Settings::new(config.mhz)
        };
    }

    pub(super) fn next_id(&mut self) -> TransferId {
        self.ids = self.ids.wrapping_add(1);
        self.ids
    }

    pub(super) fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// True if requests are refused: there is no stick, or it does not come up.
    pub(super) fn is_down(&self) -> bool {
        matches!(self.phase, Phase::Absent | Phase::Resting(_))
            || self.failures > 0 && self.phase != Phase::Up
    }

    /// True from the first read to the end of what the stick says.
    pub(super) fn is_listening(&self) -> bool {
        !matches!(
            self.phase,
            Phase::Absent | Phase::Resetting(_) | Phase::Resting(_)
        )
    }

    pub(super) fn end(&mut self, index: usize, outcome: Outcome) {
        let order = self.next_order();
        self.flights.end(index, outcome, order);
    }

    /// A stick is there, with its loader: the upload begins.
    pub(super) fn attached(&mut self, bus: &mut dyn Bus) {
        self.forget_stick();
        if !self.firmware.image.is_empty() {
            self.load(0, bus);
        }
    }

    /// The next piece of the image, or the order to start it.
    fn load(&mut self, offset: usize, bus: &mut dyn Bus) {
        let rest = self.firmware.image.get(offset..).unwrap_or_default();
        if rest.is_empty() {
            bus.control(START_IMAGE, 0, &[]);
            self.phase = Phase::Starting(self.now + self.config.boot_timeout);
            return;
        }
        let piece = &rest[..rest.len().min(CHUNK_OCTETS)];
        let address = self.firmware.address + offset as u32;
        bus.control(WRITE_MEMORY, (address >> 8) as u16, piece);
        let end = self.now + self.config.control_timeout;
        self.phase = Phase::Loading(offset + piece.len(), end);
    }

    pub(super) fn control_done(&mut self, well: bool, bus: &mut dyn Bus) {
        match self.phase {
            Phase::Loading(next, _) if well => self.load(next, bus),
            Phase::Loading(..) | Phase::Starting(_) if !well => self.broken = Some(Reason::NoBoot),
            _ => {}
        }
    }

    /// The stick is up: restarts count from now on anew.
    pub(super) fn is_up(&mut self) {
        self.phase = Phase::Up;
        self.failures = 0;
    }

    /// When a stick that is up, and was asked nothing, is to be asked whether it is there.
    pub(super) fn next_question(&self) -> Option<Instant> {
        let idle = self.phase == Phase::Up && self.command_pipe.is_none() && self.waiting.is_none();
        idle.then(|| self.answered + self.config.keep_alive)
    }

    /// What the stick had is lost.
    fn forget_stick(&mut self) {
        for index in 0..N {
            if self.flights.get(index).is_some_and(|f| f.is_away()) {
                self.end(index, Outcome::Unknown);
            }
        }
        if let Some(change) = self.works.first_mut() {
            change.part = 0;
        }
        (self.waiting, self.expected, self.broken) = (None, None, None);
        (self.command_pipe, self.frame_pipe, self.posted) = (None, None, 0);
    }

    /// What waits here is taken back.
    pub(super) fn abort_all(&mut self) {
        for index in 0..N {
            if self.flights.get(index).is_some_and(|f| f.is_held()) {
                self.end(index, Outcome::Aborted);
            }
        }
    }

    /// Whether anything is open, or to be told.
    pub(super) fn owes(&self) -> bool {
        let open = self.flights.iter().any(|(_, f)| !f.is_free());
        open || self.works.first().is_some() || self.answers.first().is_some()
    }

    /// What waits here is refused: nobody knows when there will be a stick.
    fn refuse_all(&mut self) {
        for index in 0..N {
            if self.flights.get(index).is_some_and(|f| f.is_held()) {
                self.end(index, Outcome::Refused(Refusal::NoAdapter));
            }
        }
        while let Some(change) = self.works.pop() {
            // whoever wakes it does not ask again; a stick that comes is awake then
            self.settings.awake |= matches!(change.wish, Some(Wish::Reception(true)));
            self.answer_set(change.token, Err(SetError::NotFound));
        }
    }

    pub(super) fn detached(&mut self) {
        self.forget_stick();
        self.refuse_all();
        self.phase = Phase::Absent;
        self.failures = 0;
    }

    /// Does what was found to be necessary.
    pub(super) fn repair(&mut self, bus: &mut dyn Bus) -> bool {
        let Some(reason) = self.broken.take().filter(|_| self.is_listening()) else {
            return false;
        };
        self.counts.restarts[reason as usize] += 1;
        let was_up = self.phase == Phase::Up;
        self.forget_stick();
        if was_up {
            self.reset(bus);
        } else {
            self.rest();
        }
        true
    }

    fn reset(&mut self, bus: &mut dyn Bus) {
        self.phase = Phase::Resetting(self.now + self.config.reset_timeout);
        bus.reset();
    }

    fn rest(&mut self) {
        self.failures = self.failures.saturating_add(1);
        let times = 1 << self.failures.saturating_sub(1).min(6);
        self.phase = Phase::Resting(self.now + self.config.rest.times(times));
        self.refuse_all();
    }

    /// What is due at `now` in the life of the stick and its transfers.
    pub(super) fn timeouts(&mut self, bus: &mut dyn Bus) -> bool {
        let now = self.now;
        match self.phase {
            Phase::Resetting(until) if until <= now => {
                self.counts.restarts[Reason::NoBoot as usize] += 1;
                self.rest();
            }
            Phase::Loading(_, until) | Phase::Starting(until) if until <= now => {
                self.broken = Some(Reason::NoBoot);
            }
            Phase::Resting(until) if until <= now => self.reset(bus),
            _ => {}
        }
        let limit = self.config.completion_timeout;
        let late = |pipe: &mut Option<Transfer>| pipe.take_if(|t| t.since < now && t.since + limit <= now);
        if late(&mut self.command_pipe).is_some() {
            self.counts.lost_completions += 1;
        }
        if let Some(transfer) = late(&mut self.frame_pipe) {
            self.counts.lost_completions += 1;
            self.arrived(&transfer, false);
        }
        let since = |at: Instant, limit: radio::Duration| at + limit <= now;
        if self
            .waiting
            .is_some_and(|w| since(w.since, self.config.response_timeout))
        {
            self.broken = Some(Reason::NoResponse);
        }
        let status = self.config.status_timeout;
        let stuck = |f: &super::flight::Flight<L>| f.is_away() && since(f.since, status);
        if self.flights.iter().any(|(_, f)| stuck(f)) {
            self.broken = Some(Reason::NoStatus);
        }
        for index in 0..N {
            let expired =
                |f: &super::flight::Flight<L>| f.is_held() && f.how.expires.is_some_and(|t| t < now);
            if self.flights.get(index).is_some_and(expired) {
                self.end(index, Outcome::Expired);
            }
        }
        self.repair(bus)
    }

    /// When something of that is due next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let phase = match self.phase {
            Phase::Resetting(t) | Phase::Loading(_, t) | Phase::Starting(t) | Phase::Resting(t) => Some(t),
            _ => None,
        };
        let completion = |pipe: &Option<Transfer>| {
            let floor = radio::Duration::from_ns(1);
            pipe.map(|t| t.since + self.config.completion_timeout.max(floor))
        };
        let response = self.waiting.map(|w| w.since + self.config.response_timeout);
        let flights = self.flights.iter().filter_map(|(_, f)| {
            if f.is_away() {
                return Some(f.since + self.config.status_timeout);
            }
            let ready = (f.is_held() && f.ready_at() > self.now).then(|| f.ready_at());
            let expiry = f.how.expires.filter(|_| f.is_held());
            let expiry = expiry.map(|t| t + radio::Duration::from_ns(1));
            [ready, expiry].into_iter().flatten().min()
        });
        let pipes = [completion(&self.command_pipe), completion(&self.frame_pipe)];
        let own = [phase, response, self.next_question()].into_iter();
        let own = own.chain(pipes).flatten();
        own.chain(flights).min()
    }
}
