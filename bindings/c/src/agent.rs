//! The protocol that acts for a C program, and the mailbox between the two.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use frame::mac::Header;
use radio::{AdapterId, Attribute, AttributeName, Event, Instant, Protocol, Radio, SetError, Token, TxHow};

use crate::types::{Beacon, Confirm, Indication, Name, Status, stamps};

/// Confirms, frames and beacons that wait for the program at most, each, for each interface; and open requests.
pub(crate) const ROOM: usize = 1_024;
/// Things done for the program in one event.
const AT_ONCE: usize = 16;

/// What the program asks for.
#[derive(Debug)]
pub(crate) enum Job {
    Request(u64, Vec<u8>, TxHow),
    Abort(u64),
    Set(Change, Attribute),
    Get(AttributeName),
}

/// A change of an attribute: its number, what the program asked for, and what came of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub number: u64,
    pub name: Name,
    pub id: u64,
    pub ac: u32,
    pub status: Status,
}

/// A received frame, until it is fetched.
#[derive(Debug)]
pub(crate) struct Heard<T> {
    pub about: T,
    pub octets: Vec<u8>,
}

/// One interface.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub jobs: VecDeque<Job>,
    /// Identifiers of open requests, with their tokens once they have one.
    pub open: BTreeMap<u64, Option<Token>>,
    pub confirms: VecDeque<Confirm>,
    pub frames: VecDeque<Heard<Indication>>,
    pub beacons: VecDeque<Heard<Beacon>>,
    /// Numbers of the last frame and beacon.
    counted: (u64, u64),
    /// Changes so far, those that are below, and those whose answers were not fetched.
    pub changes: u64,
    pub setting: Vec<(Token, Change)>,
    pub answers: VecDeque<Change>,
    /// Answer to the last question.
    pub got: Option<Option<Attribute>>,
}

impl Lane {
    /// Whether a change has no answer yet.
    pub fn is_changing(&self) -> bool {
        !self.setting.is_empty() || self.jobs.iter().any(|job| matches!(job, Job::Set(..)))
    }
}

/// All interfaces of a host.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub lanes: Vec<Lane>,
    requests: BTreeMap<(usize, Token), (u64, radio::Queue)>,
    /// Something has come for the program.
    pub stir: Rc<AtomicBool>,
}

/// Both sides hold it; they take turns.
pub(crate) type Shared = Rc<RefCell<Mailbox>>;

impl Mailbox {
    pub fn new(lanes: usize) -> Mailbox {
        Mailbox {
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            requests: BTreeMap::new(),
            stir: Rc::default(),
        }
    }
}

/// Acts for `count` interfaces, from the one with number `first` on: those are its adapters.
pub(crate) struct Agent {
    pub mailbox: Shared,
    pub first: usize,
    pub count: usize,
}

impl Agent {
    fn lanes(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.count
    }

    fn work(&self, radio: &mut dyn Radio) {
        let mut done = 0;
        for lane in self.lanes() {
            let adapter = AdapterId((lane - self.first) as u8);
            while done < AT_ONCE {
                // not held during a call into the host
                let Some(job) = self.mailbox.borrow_mut().lanes[lane].jobs.pop_front() else {
                    break;
                };
                self.act(lane, adapter, job, radio);
                done += 1;
            }
        }
    }

    fn act(&self, lane: usize, adapter: AdapterId, job: Job, radio: &mut dyn Radio) {
        match job {
            Job::Request(id, octets, how) => {
                let token = radio.token();
                let mut mailbox = self.mailbox.borrow_mut();
                mailbox.requests.insert((self.first, token), (id, how.queue));
                mailbox.lanes[lane].open.insert(id, Some(token));
                drop(mailbox);
                radio.request(token, &octets, &how);
            }
            Job::Abort(id) => {
                let token = self.mailbox.borrow().lanes[lane].open.get(&id).copied().flatten();
                if let Some(token) = token {
                    radio.abort(token);
                }
            }
            Job::Set(change, attribute) => {
                let token = radio.token();
                self.mailbox.borrow_mut().lanes[lane]
                    .setting
                    .push((token, change));
                radio.set(token, adapter, attribute);
            }
            Job::Get(name) => {
                let got = radio.get(adapter, name);
                let mut mailbox = self.mailbox.borrow_mut();
                mailbox.lanes[lane].got = Some(got);
                mailbox.stir.store(true, Ordering::Relaxed);
            }
        }
    }

    fn confirmed(&self, confirm: &radio::Confirm) {
        let mut mailbox = self.mailbox.borrow_mut();
        let Some((id, queue)) = mailbox.requests.remove(&(self.first, confirm.token)) else {
            return;
        };
        for lane in self.lanes() {
            let lane = &mut mailbox.lanes[lane];
            if lane.open.get(&id) == Some(&Some(confirm.token)) {
                lane.open.remove(&id);
                lane.confirms.push_back(Confirm::new(id, queue, confirm));
            }
        }
        mailbox.stir.store(true, Ordering::Relaxed);
    }

    fn heard(&self, now: Instant, received: &radio::Indication<'_>, beacon: Option<&radio::Beacon<'_>>) {
        let mut mailbox = self.mailbox.borrow_mut();
        let number = self.first + usize::from(received.adapter.0);
        let Some(lane) = mailbox.lanes.get_mut(number) else {
            return;
        };
        let category = Header::parse(received.frame).map(|h| h.access_category());
        let mut about = Indication {
            idr: 0,
            octets: received.frame.len(),
            at_ns: stamps(&received.stamps)
                .into_iter()
                .rfind(|ns| *ns > 0)
                .unwrap_or(now.as_ns()),
            tsf_us: received.tsf.map_or(0, |tsf| tsf.0),
            rate_100kbps: received.rate.kbps100(),
            ac: category.map_or(1, |ac| radio::Queue::from(ac).index() as u32),
            signal_dbm: received.signal_dbm.map_or(0, i32::from),
        };
        let octets = received.frame.to_vec();
        match beacon {
            None => {
                lane.counted.0 += 1;
                about.idr = lane.counted.0;
                lane.frames.push_back(Heard { about, octets });
                // what is not fetched is lost, the oldest first
                lane.frames.drain(..lane.frames.len().saturating_sub(ROOM));
            }
            Some(beacon) => {
                lane.counted.1 += 1;
                about.idr = lane.counted.1;
                let about = Beacon {
                    received: about,
                    bssid: beacon.bssid.0,
                    interval_tu: beacon.interval_tu,
                    timestamp_us: beacon.timestamp.0,
                };
                lane.beacons.push_back(Heard { about, octets });
                lane.beacons.drain(..lane.beacons.len().saturating_sub(ROOM));
            }
        }
        mailbox.stir.store(true, Ordering::Relaxed);
    }

    fn answered(&self, answer: &radio::SetAnswer) {
        let mut mailbox = self.mailbox.borrow_mut();
        for lane in self.lanes() {
            let lane = &mut mailbox.lanes[lane];
            let Some(place) = lane.setting.iter().position(|(token, _)| *token == answer.token) else {
                continue;
            };
            let (_, mut change) = lane.setting.remove(place);
            change.status = status(answer.result);
            lane.answers.push_back(change);
            lane.answers.drain(..lane.answers.len().saturating_sub(ROOM));
        }
        mailbox.stir.store(true, Ordering::Relaxed);
    }
}

fn status(answer: Result<(), SetError>) -> Status {
    match answer {
        Ok(()) => Status::Ok,
        Err(SetError::NotSupported) => Status::NotSupported,
        Err(SetError::OutOfRange) => Status::OutOfRange,
        Err(SetError::Forbidden) => Status::Forbidden,
        Err(SetError::NoPermission) => Status::NoPermission,
        Err(SetError::NotFound) => Status::NotFound,
    }
}

impl Protocol for Agent {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Timer => self.work(radio),
            Event::Confirm(confirm) => self.confirmed(&confirm),
            Event::Indication(received) => self.heard(now, &received, None),
            Event::Beacon(beacon) => self.heard(now, &beacon.received, Some(&beacon)),
            Event::Set(answer) => self.answered(&answer),
            Event::Start | Event::Submit(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let mailbox = self.mailbox.borrow();
        let works = mailbox.lanes[self.lanes()]
            .iter()
            .any(|lane| !lane.jobs.is_empty());
        works.then_some(Instant::ZERO)
    }
}
