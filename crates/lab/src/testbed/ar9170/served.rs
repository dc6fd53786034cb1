//! Emulated sticks on one air, in the time of this computer, each behind a socket: QEMU plugs them into its guests.
//!
//! ```text
//! guest: carl9170 -> USB -> QEMU --usbredir--> stick -> adapter and medium of the simulator
//!                                              stick <- driver <- ad hoc network, of this project
//! ```
//!
//! The world is always played up to the present before anybody is heard or told anything.

mod seat;
mod seen;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Clock};

use ::ar9170::codec::Eeprom;
use ::ar9170::emulated::{Knobs, Redirected};
use frame::MacAddr;
use radio::{AdapterId, Attribute, AttributeName, Event, Instant, Msdu, Protocol, Radio};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sim::medium::{LossModel, MediumConfig};
use sim::trace::Observer;
use sim::{Position, World};
use thiserror::Error;

use super::{Computer, eeprom, node};
use seat::Seat;
use seen::{Network, STATION, seen, station};
pub use seen::{Served, StationSummary, StickSummary, address};

/// Most sticks on one air.
pub const MAX_STICKS: u32 = 8;
/// Between two looks at the stop flag.
const LOOK: Duration = Duration::from_millis(100);
/// All hear each other this well, dBm.
const POWER_DBM: f64 = -50.0;
/// The clock of the further station is so much ahead of those of the sticks when they start, so that one sees who takes over whose.
const AHEAD: radio::Duration = radio::Duration::from_ms(1_000_000);
/// Octets that a connection that does not read may owe us before it is closed: a second of reports.
const MAX_OWED: usize = 1 << 20;

/// What is on the air.
#[derive(Clone, Debug)]
pub struct Stage {
    /// A socket for each stick. One that nobody serves any more is replaced.
    pub sockets: Vec<PathBuf>,
    /// What goes wrong on each stick; its seed is that of the stage.
    pub knobs: Knobs,
    /// Name of the ad hoc network of a further station, on channel 1: our own driver on a stick of its own, and our own
    /// network, which sends back what it receives.
    pub station: Option<&'static str>,
    /// Seed of the air.
    pub seed: u64,
}

/// Why sticks are not served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// A socket cannot be made.
    #[error("{socket}: {error}")]
    Socket {
        /// Its path.
        socket: String,
        /// The reason.
        error: io::Error,
    },
    /// Waiting failed.
    #[error("cannot wait for the sticks' connections: {0}")]
    Wait(io::Error),
}

/// What is on a node.
enum Resident {
    Stick(Box<Redirected>),
    Station(Box<Computer<Network>>),
}

impl Protocol for Resident {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Resident::Stick(stick) => stick.handle(now, event, radio),
            Resident::Station(station) => station.handle(now, event, radio),
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self {
            Resident::Stick(stick) => stick.deadline(),
            Resident::Station(station) => station.deadline(),
        }
    }
}

/// What the station has been given: from whom, and what.
#[derive(Clone, Default)]
struct Inbox(Rc<RefCell<VecDeque<Payload>>>);

/// What came, and from whom.
type Payload = (MacAddr, Vec<u8>);

impl Observer for Inbox {
    fn delivered(&mut self, _: u64, _: u32, msdu: &Msdu<'_>) {
        self.0.borrow_mut().push_back((msdu.peer, msdu.payload.to_vec()));
    }
}

/// Serves sticks until `stop` is set, which is seen within 100 ms. `ready` is called when all sockets are there.
///
/// # Errors
/// [`ServeError`]. A connection that goes wrong is closed, and no error.
pub fn serve(stage: &Stage, stop: &AtomicBool, ready: impl FnOnce()) -> Result<Served, ServeError> {
    let seats: Result<Vec<Seat>, ServeError> = stage
        .sockets
        .iter()
        .map(|path| {
            Seat::new(path).map_err(|error| ServeError::Socket {
                socket: path.display().to_string(),
                error,
            })
        })
        .collect();
    let mut server = Server::new(stage, seats?);
    ready();
    while !stop.load(Ordering::Relaxed) {
        server.advance();
        for n in 0..server.seats.len() {
            server.attend(n);
        }
        server.wait().map_err(ServeError::Wait)?;
    }
    Ok(server.summary())
}

struct Server {
    world: World<Resident>,
    seats: Vec<Seat>,
    inbox: Inbox,
    /// Node of the station.
    station: Option<u32>,
    origin: Clock,
    latest_ns: u64,
    buffer: Vec<u8>,
}

impl Server {
    fn new(stage: &Stage, seats: Vec<Seat>) -> Server {
        let medium = MediumConfig {
            loss: LossModel::FixedPower(POWER_DBM),
            ..MediumConfig::default()
        };
        let mut world = World::new(&medium, stage.seed);
        let place = |n: u32| Position::new(f64::from(n), 0.0);
        for n in 0..seats.len() as u32 {
            let knobs = Knobs {
                seed: stage.seed ^ u64::from(n) << 32,
                ..stage.knobs
            };
            // 802.11g, so that is all it has to say of its bands
            let identity = Eeprom {
                ghz5: false,
                ..eeprom(address(n))
            };
            let stick = Redirected::new(identity, knobs);
            world.add_node(node(address(n), place(n)), Resident::Stick(Box::new(stick)));
        }
        let station = stage.station.map(|ssid| {
            let me = address(STATION);
            let resident = Resident::Station(Box::new(station(me, ssid, stage.seed)));
            let mut node = node(me, place(MAX_STICKS));
            node.adapters[0].tsf.offset_ns = AHEAD.as_ns();
            world.add_node(node, resident)
        });
        let inbox = Inbox::default();
        world.set_observer(Box::new(inbox.clone()));
        Server {
            world,
            seats,
            inbox,
            station,
            origin: Clock::now(),
            latest_ns: 0,
            buffer: vec![0; 1 << 16],
        }
    }

    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Plays until now.
    fn advance(&mut self) {
        let now = self.now_ns();
        if let Some(next) = self.world.next_ns().filter(|next| *next <= now) {
            self.latest_ns = self.latest_ns.max(now - next);
        }
        self.world.run_until(now);
        let Some(node) = self.station else { return };
        loop {
            let given = self.inbox.0.borrow_mut().pop_front();
            let Some((peer, payload)) = given else { break };
            self.world.act(node, |resident, now, radio| {
                resident.handle(now, Event::Submit(Msdu::new(peer, &payload)), radio);
            });
        }
    }

    fn stick<T>(&mut self, n: usize, act: impl FnOnce(&mut Redirected, Instant, &mut dyn Radio) -> T) -> T {
        self.world.act(n as u32, |resident, now, radio| match resident {
            Resident::Stick(stick) => act(stick, now, radio),
            Resident::Station(_) => unreachable!("stations have no socket"),
        })
    }

    /// Takes in what the other end of a socket has sent, and sends what it is owed.
    fn attend(&mut self, n: usize) {
        if self.seats[n].stream.is_none() {
            let Ok((stream, _)) = self.seats[n].listener.accept() else {
                return;
            };
            if stream.set_nonblocking(true).is_err() {
                return;
            }
            (self.seats[n].stream, self.seats[n].refused) = (Some(stream), None);
            self.seats[n].connections += 1;
            self.stick(n, |stick, _, _| stick.connect());
        }
        if !(self.hear(n) && self.tell(n)) {
            self.seats[n].stream = None;
            self.stick(n, |stick, now, radio| stick.disconnect(now, radio));
        }
    }

    /// False when the connection has ended.
    fn hear(&mut self, n: usize) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let lives = loop {
            let Some(stream) = &mut self.seats[n].stream else {
                break false;
            };
            match stream.read(&mut buffer) {
                Ok(0) => break false,
                Ok(octets) => {
                    let taken = self.stick(n, |stick, now, radio| {
                        stick.receive(now, &buffer[..octets], radio)
                    });
                    if let Err(error) = taken {
                        self.seats[n].refused = Some(error);
                        break false;
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break true,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        self.buffer = buffer;
        lives
    }

    /// False when the connection has ended.
    fn tell(&mut self, n: usize) -> bool {
        let mut owed = self.stick(n, |stick, _, _| std::mem::take(stick.output()));
        let mut sent = 0;
        let lives = loop {
            let Some(stream) = self.seats[n].stream.as_mut().filter(|_| sent < owed.len()) else {
                break true;
            };
            match stream.write(&owed[sent..]) {
                Ok(octets) => sent += octets,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break owed.len() - sent <= MAX_OWED,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        owed.drain(..sent);
        self.stick(n, |stick, _, _| *stick.output() = owed);
        lives
    }

    /// Until somebody says something, or something happens in the world.
    fn wait(&mut self) -> io::Result<()> {
        let next = self.world.next_ns().unwrap_or(u64::MAX);
        let time = Duration::from_nanos(next.saturating_sub(self.now_ns())).min(LOOK);
        let owes: Vec<bool> = (0..self.seats.len())
            .map(|n| self.stick(n, |stick, _, _| !stick.output().is_empty()))
            .collect();
        let watch = |(seat, owes): (&'_ Seat, bool)| -> PollFlags {
            match (&seat.stream, owes) {
                (Some(_), true) => PollFlags::IN | PollFlags::OUT,
                _ => PollFlags::IN,
            }
        };
        let mut all: Vec<PollFd<'_>> = self
            .seats
            .iter()
            .zip(owes)
            .map(|(seat, owes)| {
                let flags = watch((seat, owes));
                match &seat.stream {
                    Some(stream) => PollFd::new(stream, flags),
                    None => PollFd::new(&seat.listener, flags),
                }
            })
            .collect();
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        match poll(&mut all, Some(&time)) {
            Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// TSF of a node's adapter, us.
    fn tsf_us(&mut self, node: u32) -> u64 {
        self.world.act(node, |_, _, radio| {
            match radio.get(AdapterId::FIRST, AttributeName::Tsf) {
                Some(Attribute::Tsf(tsf)) => tsf.0,
                _ => 0,
            }
        })
    }

    fn summary(&mut self) -> Served {
        let tsfs: Vec<u64> = (0..self.seats.len()).map(|n| self.tsf_us(n as u32)).collect();
        let station = self.station.map(|node| (node, self.tsf_us(node)));
        let seconds = self.world.now_ns() as f64 / 1e9;
        let sticks = (0..self.seats.len()).map(|n| {
            let frames = self.world.counters(n as u32, 0).tx_frames;
            let Resident::Stick(stick) = self.world.protocol(n as u32) else {
                unreachable!("the first nodes are sticks")
            };
            let of = |waits| {
                let mine = stick.commands().iter().filter(move |(key, _)| key.1 == waits);
                mine.map(|((code, _), count)| (format!("{code:?}"), *count))
                    .collect()
            };
            let seat = &self.seats[n];
            StickSummary {
                socket: seat.path.display().to_string(),
                address: address(n as u32).to_string(),
                connections: seat.connections,
                refused: seat.refused.map(|e| e.to_string()),
                resets: stick.resets(),
                starts: stick.starts(),
                commands: of(true),
                asynchronous: of(false),
                frames,
                tsf_us: tsfs[n],
            }
        });
        let sticks = sticks.collect();
        let station = station.and_then(|(node, tsf_us)| match self.world.protocol(node) {
            Resident::Station(station) => Some(seen(station.protocol(), tsf_us)),
            Resident::Stick(_) => None,
        });
        Served {
            seconds,
            sticks,
            station,
            latest_us: self.latest_ns as f64 / 1e3,
        }
    }
}
