//! The primitives, without C: what the border calls.

use radio::{AdapterId, Instant, MAX_FRAME_OCTETS, Token};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use crate::agent::{Change, Heard, Job, Lane, ROOM, Shared};
use crate::engine::Engine;
use crate::types::{self, Beacon, Confirm, How, Indication, Name, SetAnswer, Status};
use crate::value::{self, Unwritable, Value};

/// How long a question may take, ns of the host's clock: the host answers it by itself, but an emulated stick may first have to
/// come up.
const QUESTION_NS: u64 = 10_000_000_000;

/// A host with its interfaces.
pub struct Host {
    engine: Engine,
    mailbox: Shared,
    stir: Rc<AtomicBool>,
    /// Why it is broken; with the null octet that C wants.
    pub(crate) why: String,
}

/// A token that no request has.
const NO_TOKEN: Token = Token(u64::MAX);

impl Host {
    pub(crate) fn open(name: &str) -> Result<Host, String> {
        let (engine, mailbox) = Engine::open(name)?;
        let stir = Rc::clone(&mailbox.borrow().stir);
        Ok(Host {
            engine,
            mailbox,
            stir,
            why: "\0".to_owned(),
        })
    }

    pub(crate) fn interfaces(&self) -> usize {
        self.mailbox.borrow().lanes.len()
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.engine.now_ns()
    }

    /// Whether it has ended.
    pub(crate) fn is_broken(&self) -> bool {
        self.why.len() > 1
    }

    /// Remembers why it does not work any more.
    pub(crate) fn broken(&mut self, why: &str) -> Status {
        self.why = format!("{}\0", why.replace('\0', " "));
        Status::Broken
    }

    fn with_lane<T>(&self, interface: u32, f: impl FnOnce(&mut Lane) -> T) -> Result<T, Status> {
        let mut mailbox = self.mailbox.borrow_mut();
        let lane = mailbox.lanes.get_mut(interface as usize);
        lane.map(f).ok_or(Status::Argument)
    }

    /// Goes on until `take` takes something, for `wait_ns` at most. `may_come`: whether it is of any use to wait.
    fn until<T>(
        &mut self,
        interface: u32,
        wait_ns: u64,
        may_come: impl Fn(&Lane) -> bool,
        take: impl Fn(&mut Lane) -> Option<T>,
    ) -> Result<T, Status> {
        let until = self.now_ns().saturating_add(wait_ns).min(Instant::MAX.as_ns());
        loop {
            let (taken, waits) = self.with_lane(interface, |lane| (take(lane), may_come(lane)))?;
            if let Some(taken) = taken {
                return Ok(taken);
            }
            if !waits {
                return Err(Status::Nothing);
            }
            let goes_on = self
                .engine
                .go_on(until, &self.stir)
                .map_err(|why| self.broken(&why))?;
            if !goes_on || self.now_ns() >= until {
                let last = self.with_lane(interface, take)?;
                return last.ok_or(Status::Nothing);
            }
        }
    }

    pub(crate) fn request(
        &mut self,
        interface: u32,
        id: u64,
        frame: &[u8],
        ac: u32,
        how: &How,
    ) -> Result<(), Status> {
        if frame.len() > MAX_FRAME_OCTETS {
            return Err(Status::OutOfRange);
        }
        let adapter = self.adapter(interface)?;
        let how = types::how(how, ac, adapter).ok_or(Status::Argument)?;
        self.with_lane(interface, |lane| {
            if lane.open.contains_key(&id) {
                return Err(Status::IdInUse);
            }
            if lane.open.len() + lane.confirms.len() >= ROOM {
                return Err(Status::Full);
            }
            lane.open.insert(id, None);
            lane.jobs.push_back(Job::Request(id, frame.to_vec(), how));
            Ok(())
        })??;
        self.poke()
    }

    /// Which adapter of its node an interface is.
    fn adapter(&self, interface: u32) -> Result<AdapterId, Status> {
        let all = self.interfaces();
        match self.engine {
            _ if interface as usize >= all => Err(Status::Argument),
            Engine::Linux(..) => u8::try_from(interface)
                .map(AdapterId)
                .map_err(|_| Status::Argument),
            Engine::Simulator(_) | Engine::Ar9170(_) | Engine::Usb(_) => Ok(AdapterId::FIRST),
        }
    }

    /// Lets the host take what it was asked for, without waiting.
    fn poke(&mut self) -> Result<(), Status> {
        let now = self.now_ns();
        let done = self.engine.go_on(now, &self.stir);
        done.map(drop).map_err(|why| self.broken(&why))
    }

    pub(crate) fn abort(&mut self, interface: u32, id: u64) -> Result<(), Status> {
        self.with_lane(interface, |lane| {
            if !lane.open.contains_key(&id) {
                return Err(Status::NotFound);
            }
            // behind its request, which may still wait for a stick that is not up
            lane.jobs.push_back(Job::Abort(id));
            Ok(())
        })??;
        self.poke()
    }

    pub(crate) fn confirm(&mut self, interface: u32, wait_ns: u64) -> Result<Confirm, Status> {
        let open = |lane: &Lane| !lane.open.is_empty();
        self.until(interface, wait_ns, open, |lane| lane.confirms.pop_front())
    }

    pub(crate) fn indication(&mut self, interface: u32, wait_ns: u64) -> Result<Heard<Indication>, Status> {
        self.until(interface, wait_ns, |_| true, |lane| lane.frames.pop_front())
    }

    pub(crate) fn beacon(&mut self, interface: u32, wait_ns: u64) -> Result<Heard<Beacon>, Status> {
        self.until(interface, wait_ns, |_| true, |lane| lane.beacons.pop_front())
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, wait_ns: u64) -> Result<(), Status> {
        match self.until::<()>(0, wait_ns, |_| true, |_| None) {
            Err(Status::Nothing) => Ok(()),
            other => other,
        }
    }

    /// The token of an open request; one that nobody has if there is none.
    fn token(&self, interface: u32, id: u64) -> Result<Token, Status> {
        let token = self.with_lane(interface, |lane| lane.open.get(&id).copied().flatten())?;
        Ok(token.unwrap_or(NO_TOKEN))
    }

    pub(crate) fn set(
        &mut self,
        interface: u32,
        name: u32,
        value: &Value,
        id: u64,
        ac: u32,
        wait_ns: u64,
    ) -> Result<(), Status> {
        let name = value::name(name).ok_or(Status::Argument)?;
        let token = self.token(interface, id)?;
        if name == Name::PacketSeries && token == NO_TOKEN {
            return Err(Status::NotFound);
        }
        let attribute = value::writable(name, value, token, ac).map_err(|why| match why {
            Unwritable::ReadOnly => Status::NotSupported,
            Unwritable::Range => Status::OutOfRange,
        })?;
        let number = self.with_lane(interface, |lane| {
            lane.changes += 1;
            let change = Change {
                number: lane.changes,
                name,
                id,
                ac,
                status: Status::Nothing,
            };
            lane.jobs.push_back(Job::Set(change, attribute));
            change.number
        })?;
        // the host takes it now, however short the wait
        self.poke()?;
        let of_it = |lane: &mut Lane| {
            let place = lane.answers.iter().position(|change| change.number == number)?;
            lane.answers.remove(place)
        };
        let change = self.until(interface, wait_ns, |_| true, of_it)?;
        match change.status {
            Status::Ok => Ok(()),
            other => Err(other),
        }
    }

    /// The next answer to a change that was not waited for.
    pub(crate) fn set_answer(&mut self, interface: u32, wait_ns: u64) -> Result<SetAnswer, Status> {
        let change = self.until(interface, wait_ns, Lane::is_changing, |lane| {
            lane.answers.pop_front()
        })?;
        Ok(SetAnswer {
            name: change.name as u32,
            id: change.id,
            ac: change.ac,
            status: change.status as i32,
        })
    }

    pub(crate) fn get(&mut self, interface: u32, name: u32, id: u64, ac: u32) -> Result<Value, Status> {
        let name = value::name(name).ok_or(Status::Argument)?;
        let token = self.token(interface, id)?;
        let name = value::readable(name, token, ac).ok_or(Status::NotSupported)?;
        self.with_lane(interface, |lane| {
            lane.got = None;
            lane.jobs.push_back(Job::Get(name));
        })?;
        let got = self.until(interface, QUESTION_NS, |_| true, |lane| lane.got.take())?;
        let absent = match name {
            radio::AttributeName::Packet(_) => Status::NotFound,
            _ => Status::NotSupported,
        };
        got.map(|attribute| Value::of(&attribute)).ok_or(absent)
    }
}
