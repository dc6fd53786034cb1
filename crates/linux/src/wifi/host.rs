//! Drives one protocol over the radios of this computer.
//!
//! One thread, one loop. In each turn it tells the protocol one thing: an answer that is owed, what is due by the
//! clock, or the oldest packet that has come in; then it waits. After the start nothing allocates on the way of a
//! frame. What asks the kernel and waits for it, changes of attributes and news of the radios, is done by a thread of its own, the
//! clerk, for which the loop never waits.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use radio::{Application, Duration, Event, Instant, MAX_FRAME_OCTETS, Outcome, Protocol};

use super::adapter::Adapter;
use super::clerk::Clerk;
use super::confirm::{Device, Path, Records};
use super::desk::{Desk, now};
use super::drive::Turn;
use super::error::Error;
use super::flight::State;
use super::packet::Duplicates;
use super::source::{Shows, Source};
use super::wait::{Wait, Waiter};
use crate::probe::{Probes, Way};

/// Answers at the end of a run that are told at most: a protocol that asks again at every refusal has no end.
const LAST_ANSWERS: usize = 100_000;

/// Longest rest at the end of a run: the clerk may have been busy when it was to be told of a change.
const PATIENCE: Duration = Duration::from_ms(1);

/// Names for the [`Waiter`]; sockets have their numbers among the sources.
pub(super) const NEWS: u64 = 1 << 32;
pub(super) const RECORDS: u64 = NEWS + 1;

/// How a host works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostConfig {
    /// Requests that may be open at once, 1 to 1024; more are refused.
    pub outstanding: u16,
    /// After this long without a status a request ends as unknown. Linux gives no guarantee of a status, and has
    /// no such limit itself. It should be longer than everything that may be queued takes on the air.
    pub confirm_timeout: Duration,
    /// How to wait.
    pub wait: Wait,
    /// Stamp the planes t2 to t8 of each frame by probes ([`crate::probe`]) of this way, which takes CAP_PERFMON and slows
    /// each frame down a little.
    pub probes: Option<Way>,
    /// By which way outcomes come up: [`Path::Monitor`], or [`Path::Device`], which tells tries by series and the planes t2
    /// to t8, and takes the kernel module; [`Path::Status`] of adapters that send through an ordinary interface
    /// ([`Carrier::Ordinary`](super::Carrier::Ordinary)).
    pub confirm: Path,
}

impl Default for HostConfig {
    /// 64 requests, one second, a timerfd, no probes, outcomes by the monitor.
    fn default() -> Self {
        HostConfig {
            outstanding: 64,
            confirm_timeout: Duration::from_ms(1_000),
            wait: Wait::Timerfd,
            probes: None,
            confirm: Path::Monitor,
        }
    }
}

/// What a host has counted since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Packets handed to the kernel.
    pub sent: u64,
    /// Requests by outcome: acked, ...
    pub acked: u64,
    /// ... not acked, ...
    pub not_acked: u64,
    /// ... refused, ...
    pub refused: u64,
    /// ... aborted, ...
    pub aborted: u64,
    /// ... expired, ...
    pub expired: u64,
    /// ... unknown.
    pub unknown: u64,
    /// Statuses that came after their request had ended as unknown.
    pub late_statuses: u64,
    /// Statuses of frames that are not ours: other programs use the radio.
    pub foreign_statuses: u64,
    /// Statuses that tell of more tries than were asked for: one shot is none with this driver.
    pub more_tries_than_asked: u64,
    /// Frames told as indications or beacons.
    pub indications: u64,
    /// Repetitions that were not told.
    pub duplicates: u64,
    /// Received packets that could not be read, or whose rate is not known here.
    pub unreadable: u64,
    /// Packets lost because we did not fetch them in time, statuses among them.
    pub lost_packets: u64,
    /// Times that a radio's state was read again because there was news about it, the rules, or its interfaces.
    pub news: u64,
    /// Times that netlink had to leave out news of interfaces and rules; all was read again.
    pub netlink_overflows: u64,
}

impl HostCounters {
    pub(super) fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Acked => &mut self.acked,
            Outcome::NotAcked => &mut self.not_acked,
            Outcome::Refused(_) => &mut self.refused,
            Outcome::Aborted => &mut self.aborted,
            Outcome::Expired => &mut self.expired,
            Outcome::Unknown => &mut self.unknown,
        } += 1;
    }
}

/// Why outcomes of so many adapters, of which so many send through an ordinary interface, do not come up by this way, if so.
fn no_path(path: Path, adapters: usize, ordinary: usize) -> Option<&'static str> {
    match path {
        Path::Monitor | Path::Device if ordinary > 0 => Some(
            "it tells of what is sent through a monitor interface, and an adapter sends through an ordinary one: choose status",
        ),
        Path::Status if ordinary < adapters => Some(
            "it tells of what is sent through an ordinary interface, and an adapter sends through a monitor: choose monitor or \
             device",
        ),
        Path::Nl80211 => Some(
            "it carries management frames alone, at the lowest rate: choose monitor or device, or status with an ordinary \
             interface",
        ),
        _ => None,
    }
}

/// Drives a protocol over adapters.
#[derive(Debug)]
pub struct Host {
    pub(super) desk: Desk,
    pub(super) sources: Vec<Source>,
    /// Where outcomes come up, if not through the monitors.
    pub(super) records: Option<Records>,
    pub(super) duplicates: Vec<Duplicates>,
    pub(super) waiter: Waiter,
    /// The clerk has done something.
    pub(super) has_news: bool,
    /// The time of the last event.
    pub(super) last: Instant,
    pub(super) turns: u32,
    pub(super) payload: Box<[u8; MAX_FRAME_OCTETS]>,
    prepared: bool,
    /// When it starts, if that was said.
    start: Option<Instant>,
    started: bool,
}

impl Host {
    /// A host with these adapters, numbered in their order from 0.
    ///
    /// # Errors
    /// [`Error::Config`] without an adapter, with more than 255, or with a number in `config` out of its range;
    /// [`Error::NoPath`] if outcomes of these adapters do not come up that way; [`Error::Probe`] if probes were asked for and
    /// cannot be had.
    pub fn new(mut adapters: Vec<Adapter>, config: HostConfig) -> Result<Host, Error> {
        if adapters.is_empty() || adapters.len() > 255 {
            return Err(Error::Config("a host has 1 to 255 adapters"));
        }
        if !(1..=1024).contains(&config.outstanding) {
            return Err(Error::Config(
                "outstanding: 1 to 1024 requests may be open at once",
            ));
        }
        let ordinary = adapters.iter().filter(|a| a.is_ordinary()).count();
        if let Some(why) = no_path(config.confirm, adapters.len(), ordinary) {
            let path = config.confirm.name();
            return Err(Error::NoPath { path, why });
        }
        if ordinary > 0 && config.probes.is_some() {
            return Err(Error::Config(
                "probes stamp what goes through a monitor interface: do without them on an ordinary one",
            ));
        }
        let records = match config.confirm {
            Path::Device => Some(Records::new(Device::open()?)),
            _ => None,
        };
        let wait = Error::control("wait for packets");
        let waiter = Waiter::new(config.wait).map_err(&wait)?;
        let all = 0..adapters.len() as u8;
        let tells = match config.confirm {
            Path::Status => Shows::Outcomes,
            _ => Shows::Sent,
        };
        let sources = all.flat_map(|a| [Shows::Received, tells].map(|shows| Source::new(a, shows)));
        let heard = |s: &Source| records.is_none() || s.shows == Shows::Received;
        let sources: Vec<_> = sources.filter(heard).collect();
        for (index, source) in (0..).zip(&sources) {
            let [received, sent] = adapters[usize::from(source.adapter)].sockets();
            let socket = match source.shows {
                Shows::Received => received,
                Shows::Sent | Shows::Outcomes => sent,
            };
            waiter.add_as(socket, index).map_err(&wait)?;
        }
        if records.is_some() {
            adapters.iter().try_for_each(Adapter::show_nothing_sent)?;
        }
        if let Some(records) = &records {
            waiter.add_as(records.as_fd(), RECORDS).map_err(&wait)?;
        }
        let drivers: Vec<&str> = adapters.iter().filter_map(Adapter::driver).collect();
        let room = usize::from(config.outstanding);
        let probes = config.probes.map(|way| Probes::open(way, drivers, room));
        let probes = probes.transpose()?;
        let duplicates = adapters.iter().map(|_| Duplicates::default()).collect();
        let keepers = adapters.iter_mut().filter_map(Adapter::give_keeper).collect();
        let clerk = Clerk::start(keepers).map_err(Error::control("start a thread"))?;
        waiter.add_as(clerk.as_fd(), NEWS).map_err(&wait)?;
        let mut desk = Desk::new(adapters, clerk, config.outstanding, config.confirm_timeout);
        desk.probes = probes;
        desk.tells_planes = records.is_some();
        Ok(Host {
            sources,
            records,
            duplicates,
            waiter,
            has_news: true,
            last: Instant::ZERO,
            turns: 0,
            payload: Box::new([0; MAX_FRAME_OCTETS]),
            prepared: false,
            start: None,
            started: false,
            desk,
        })
    }

    /// The host's clock: `CLOCK_MONOTONIC`.
    pub fn now() -> Instant {
        now()
    }

    /// What it has counted.
    pub fn counters(&self) -> &HostCounters {
        &self.desk.counters
    }

    /// The probes, if it was to have any.
    pub fn probes(&self) -> Option<&Probes> {
        self.desk.probes.as_ref()
    }

    /// Its adapters.
    pub fn adapters(&self) -> &[Adapter] {
        &self.desk.adapters
    }

    /// Reads the state of its radios, and waits for that: the one time that it waits for the clerk. The first
    /// [`run`](Self::run) does it otherwise, before the protocol starts; who has several hosts that are to start at one time
    /// prepares them before.
    pub fn prepare(&mut self) {
        if !std::mem::replace(&mut self.prepared, true) {
            // What it does not know yet would surprise the protocol.
            self.desk.changes.clerk.look();
            self.has_news = true;
            self.news();
        }
    }

    /// Lets adapter time that is the computer's begin at `start`. Without this it begins when the protocol starts, as that of an
    /// adapter that was just switched on.
    pub fn begin_at(&mut self, start: Instant) {
        self.start = Some(start);
    }

    /// Runs `protocol` until `until`, or until `stop` is set (by a signal handler, say), which is seen within 100 ms.
    /// Can be called again to go on.
    ///
    /// # Errors
    /// [`Error::Kernel`] if the kernel refuses to wait. A radio that goes down or away is no error: requests are then
    /// refused.
    pub fn run(
        &mut self,
        protocol: &mut impl Protocol,
        application: &mut impl Application,
        until: Option<Instant>,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        self.desk.closing = false;
        if let Some(probes) = &mut self.desk.probes {
            probes.use_this_thread();
        }
        if !self.started {
            self.prepare();
            self.started = true;
            let at = self.tick();
            let start = self.start.unwrap_or(at);
            self.desk.adapters.iter_mut().for_each(|a| a.begin(start));
            self.tell(at, protocol, application, Event::Start);
        }
        // Read no more often than needed: in the lab's virtual time, which all hosts share, each reading takes some. What
        // was read for an event that was told serves the turn after it, too, and no other one, so that time goes on.
        let mut read = None;
        while !stop.load(Ordering::Relaxed) {
            let again = read.take();
            let at = again.unwrap_or_else(now);
            if until.is_some_and(|t| at >= t) {
                break;
            }
            match self.turn(at, protocol, application) {
                Turn::Idle => self.rest(at, protocol, application, until)?,
                Turn::Told(t) if again.is_none_or(|old| t > old) => read = Some(t),
                Turn::Told(_) | Turn::Did => {}
            }
        }
        Ok(())
    }

    /// Ends all requests and tells their confirms: those that are held back as aborted, the others as they end, or as
    /// unknown after the timeout. What the protocol asks for meanwhile is refused, and its timer does not come.
    ///
    /// # Errors
    /// As [`Host::run`].
    pub fn finish(
        &mut self,
        protocol: &mut impl Protocol,
        application: &mut impl Application,
    ) -> Result<(), Error> {
        self.desk.closing = true;
        while let Some(index) = self.desk.flights.position(|f| f.state == State::Held) {
            self.desk.end(index, Outcome::Aborted);
        }
        for _ in 0..LAST_ANSWERS {
            if self.answer(protocol, application).is_some()
                || self.packet(protocol, application)
                || self.desk.do_due(now())
                || self.news()
            {
                continue;
            }
            let patience = self.desk.changes.are_open().then(|| now() + PATIENCE);
            match [self.desk.next_due(), patience].into_iter().flatten().min() {
                Some(due) => self.wait_until(due)?,
                None => break,
            }
            self.desk.changes.clerk.check();
        }
        Ok(())
    }
}
