//! The loop of a [`Host`]: what it does in one turn, and how it rests.

use frame::MacAddr;
use radio::{AdapterId, Application, Event, Instant, Msdu, Protocol};

use super::desk::{Seat, now};
use super::error::Error;
use super::host::{Host, NEWS, RECORDS};
use super::packet::{Arrival, Untold, event, status};
use super::source::{Shows, Source};

/// Longest rest without a look at the stop flag, ns.
const LOOK: radio::Duration = radio::Duration::from_ms(100);
/// Busy turns after which there is a look at news of interfaces all the same.
const BUSY_TURNS: u32 = 64;
/// After this time the clerk is asked again that could not be told of a change, ns.
const AGAIN: radio::Duration = radio::Duration::from_ms(1);

/// What a turn has done.
pub(super) enum Turn {
    /// Nothing.
    Idle,
    /// Something.
    Did,
    /// Told the protocol an event at this time.
    Told(Instant),
}

impl Host {
    /// One turn at `at`, the clock as it was just read.
    pub(super) fn turn(
        &mut self,
        at: Instant,
        protocol: &mut impl Protocol,
        application: &mut impl Application,
    ) -> Turn {
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(BUSY_TURNS) {
            self.news();
        }
        if let Some(told) = self.answer(protocol, application) {
            return Turn::Told(told);
        }
        // A host that was held up finds statuses that came in time.
        if let Some(due) = self.desk.gives_up(at)
            && self.packet_of(Some(due), protocol, application)
        {
            return Turn::Did;
        }
        if self.desk.do_due(at) {
            return Turn::Did;
        }
        let at = self.not_before_the_last(at);
        if protocol.deadline().is_some_and(|t| t <= at) {
            self.tell(at, protocol, application, Event::Timer);
            return Turn::Told(at);
        }
        let did = self.packet(protocol, application)
            || (application.due().is_some_and(|t| t <= at) && self.submit(at, protocol, application))
            || self.news();
        if did { Turn::Did } else { Turn::Idle }
    }

    /// Rests until something is due or comes. `at` is when the turn before it began, in which nothing was to do.
    pub(super) fn rest(
        &mut self,
        at: Instant,
        protocol: &impl Protocol,
        application: &impl Application,
        until: Option<Instant>,
    ) -> Result<(), Error> {
        let due = [
            protocol.deadline(),
            self.desk.next_due(),
            application.due(),
            self.desk.changes.wait().then(|| at + AGAIN),
            until,
        ];
        // at times that are the same for many rests, so that the timer need not be set for each
        let look = Instant::from_ns((at.as_ns() / LOOK.as_ns() + 1) * LOOK.as_ns());
        let first = due.into_iter().flatten().min().map_or(look, |t| t.min(look));
        self.wait_until(first)
    }

    /// Waits until a time, or until something comes.
    pub(super) fn wait_until(&mut self, until: Instant) -> Result<(), Error> {
        self.waiter
            .wait(until.as_ns())
            .map_err(Error::control("wait for packets"))
    }

    /// The time of the next event: now, and never before the last one.
    pub(super) fn tick(&mut self) -> Instant {
        self.not_before_the_last(now())
    }

    fn not_before_the_last(&mut self, at: Instant) -> Instant {
        self.last = self.last.max(at);
        self.last
    }

    pub(super) fn tell(
        &mut self,
        at: Instant,
        protocol: &mut impl Protocol,
        application: &mut impl Application,
        event: Event<'_>,
    ) {
        let seat = &mut Seat {
            desk: &mut self.desk,
            application,
            now: at,
        };
        protocol.handle(at, event, seat);
    }

    /// Tells one answer that is owed, and when; `None` if there is none.
    pub(super) fn answer(
        &mut self,
        protocol: &mut impl Protocol,
        application: &mut impl Application,
    ) -> Option<Instant> {
        self.desk.do_changes();
        let owed = self.desk.owed.pop_front()?;
        let at = self.tick();
        self.tell(at, protocol, application, owed.event());
        Some(at)
    }

    /// Finds out what has come; true if the module's device has.
    fn look(&mut self) -> bool {
        let (sources, has_news) = (&mut self.sources, &mut self.has_news);
        let mut records_came = false;
        let told = |name| match name {
            NEWS => *has_news = true,
            RECORDS => records_came = true,
            index => {
                if let Some(source) = sources.get_mut(index as usize) {
                    source.is_ready = true;
                }
            }
        };
        // What cannot be asked is not there; the rest after it tells the error.
        let _ = self.waiter.look(told);
        records_came
    }

    /// Takes in the oldest packet that has come; false if there is none.
    pub(super) fn packet(
        &mut self,
        protocol: &mut impl Protocol,
        application: &mut impl Application,
    ) -> bool {
        self.packet_of(None, protocol, application)
    }

    /// The same of those that the kernel had before `latest`.
    fn packet_of(
        &mut self,
        latest: Option<Instant>,
        protocol: &mut impl Protocol,
        application: &mut impl Application,
    ) -> bool {
        let records_came = self.look();
        for source in &mut self.sources {
            if !std::mem::take(&mut source.is_ready) {
                continue;
            }
            let [received, sent] = self.desk.adapters[usize::from(source.adapter)].sockets();
            let lost = source.fetch(match source.shows {
                Shows::Received => received,
                Shows::Sent | Shows::Outcomes => sent,
            });
            self.desk.counters.lost_packets += u64::from(lost);
        }
        // When an outcome came nobody has noted, so that it may have been in time.
        let may_be_first = |s: &Source| latest.is_some() && s.shows == Shows::Outcomes;
        let oldest = self
            .sources
            .iter_mut()
            .filter(|s| s.came().is_some())
            .min_by_key(|s| (!may_be_first(s), s.came()));
        if let Some(records) = &mut self.records {
            if records_came || records.has_more() {
                let (lost, unreadable) = records.fetch();
                self.desk.counters.lost_packets += u64::from(lost);
                self.desk.counters.unreadable += u64::from(unreadable);
            }
            let first = |came| {
                oldest
                    .as_ref()
                    .and_then(|s| s.came())
                    .is_none_or(|other| came <= other)
            };
            if records.came().is_some_and(first)
                && let Some((record, t9)) = records.take()
            {
                self.desk.record(&record, t9);
                return true; // Its confirm is owed now, if it was ours.
            }
        }
        let in_time =
            |s: &&mut Source| latest.is_none_or(|t| may_be_first(s) || s.came().is_some_and(|came| came < t));
        let Some(source) = oldest.filter(in_time) else {
            return false;
        };
        let (adapter, shows) = (source.adapter, source.shows);
        let Some((waiting, octets)) = source.take() else {
            return false;
        };
        let desk = &mut self.desk;
        let told = match (shows, waiting.acked) {
            (Shows::Received, _) => None,
            (Shows::Sent, _) => Some(status(octets).map(|status| {
                desk.status(adapter, &status, waiting.t8, waiting.t9);
            })),
            (Shows::Outcomes, acked) => {
                Some(acked.map(|acked| desk.outcome(adapter, octets, acked, waiting.t9)))
            }
        };
        if let Some(told) = told {
            desk.counters.unreadable += u64::from(told.is_none());
            return true; // Its confirm is owed now.
        }
        let arrival = Arrival {
            adapter: AdapterId(adapter),
            t8: waiting.t8,
            t9: waiting.t9,
            tsft: desk.adapters[usize::from(adapter)].tells_tsft(),
        };
        match event(octets, &arrival, &mut self.duplicates[usize::from(adapter)]) {
            Ok(event) => {
                let event = as_it_is_told(event, desk.adapters[usize::from(adapter)].bssid());
                desk.counters.indications += 1;
                self.last = self.last.max(now());
                let seat = &mut Seat {
                    desk,
                    application,
                    now: self.last,
                };
                protocol.handle(self.last, event, seat);
            }
            Err(Untold::Duplicate) => desk.counters.duplicates += 1,
            Err(Untold::Malformed | Untold::UnknownRate) => desk.counters.unreadable += 1,
        }
        true
    }

    fn submit(
        &mut self,
        at: Instant,
        protocol: &mut impl Protocol,
        application: &mut impl Application,
    ) -> bool {
        let Some(msdu) = application.take(at, &mut self.payload) else {
            return false;
        };
        let msdu = Msdu {
            peer: msdu.peer,
            category: msdu.category,
            deadline: msdu.deadline,
            payload: &self.payload[..msdu.octets.min(self.payload.len())],
        };
        let seat = &mut Seat {
            desk: &mut self.desk,
            application,
            now: at,
        };
        protocol.handle(at, Event::Submit(msdu), seat);
        true
    }

    /// Takes what the clerk has done: answers, and what has changed about interfaces and rules; false if there is nothing.
    pub(super) fn news(&mut self) -> bool {
        if let Some(probes) = &mut self.desk.probes {
            probes.drain(); // Others' frames fill the rings, too.
        }
        if !std::mem::take(&mut self.has_news) {
            return false;
        }
        match self.desk.take_done() {
            Some(any) => any,
            None => {
                // The clerk is just putting something there, and says so when it is done.
                self.has_news = true;
                false
            }
        }
    }
}

/// Beacons of another BSSID than ours are told as any other frame; all are beacons as long as we have none.
fn as_it_is_told(event: Event<'_>, bssid: MacAddr) -> Event<'_> {
    match event {
        Event::Beacon(beacon) if bssid != MacAddr::ZERO && beacon.bssid != bssid => {
            Event::Indication(beacon.received)
        }
        event => event,
    }
}
