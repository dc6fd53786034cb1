//! The driver: a state machine without I/O between a [`Bus`] and a [`Protocol`].
//!
//! ```text
//! BusEvent --handle--> interrupt: responses and statuses at once, frames into buffers
//!             turn --> 1. what is owed to the protocol, its timer
//!                      2. one command
//!                      3. one frame out or one frame in, in turn
//!                      4. reads posted again
//! ```
//!
//! The order of a turn is fixed: commands go before frames. [`handle`](Driver::handle) is what belongs into an
//! interrupt; [`turn`](Driver::turn) is called from a loop until it says that there is nothing to do, and when
//! [`deadline`](Driver::deadline) has passed. Nothing is allocated.
//!
//! A request waits here until its time has come and the stick has room for it: so long it can be taken back and
//! expires in time. What the stick has, it sends. After a lost sequence number, a status that does not come, or
//! anything else that must not be, the stick is reset and brought up again: requests that it had end as unknown, those
//! that are here wait. While it does not come up, requests are refused.

mod buffers;
mod bus;
mod chain;
mod config;
mod desk;
mod flight;
mod link;
mod machine;
mod owed;
mod receive;
mod ring;
mod settings;
mod wish;

pub use buffers::{Buffers, Dynamic, Hybrid, Static};
pub use bus::{Bus, BusEvent, TransferId};
pub use config::{Config, Counts, Reason};
pub use settings::SHORTEST_BEACON_INTERVAL_TU;

use crate::codec::Firmware;
use crate::codec::stream::{Unit, Units};
use desk::Seat;
use frame::MacAddr;
use machine::{Machine, Phase};
use owed::Owed;
use radio::{Event, Instant, Msdu, Protocol};
use receive::{Duplicates, Untold};

/// Turns of one [`Driver::run`] at most.
const MAX_TURNS: usize = 1_000;

/// What is above the protocol.
pub trait Upper {
    /// An MSDU from the protocol.
    fn deliver(&mut self, now: Instant, msdu: Msdu<'_>);
}

/// Nobody receives.
impl Upper for () {
    fn deliver(&mut self, _: Instant, _: Msdu<'_>) {}
}

/// Drives the protocol `P` over a stick, with up to `N` requests at once (as far as the firmware has descriptors), each with `L` octets of memory: 32
/// more than the longest frame. `B` is the memory for received frames, `U` takes what the protocol delivers.
pub struct Driver<'f, P, U, B, const N: usize, const L: usize> {
    protocol: P,
    upper: U,
    buffers: B,
    machine: Machine<'f, N, L>,
    seen: Duplicates,
    started: bool,
    /// It is not to be started yet.
    holds: bool,
    /// Whose turn it is: a received frame's, or one's to be sent.
    receives: bool,
}

impl<'f, P: Protocol, U: Upper, B: Buffers, const N: usize, const L: usize> Driver<'f, P, U, B, N, L> {
    /// A driver that waits for [`BusEvent::Attached`]. The protocol starts when the stick is up for the first time.
    pub fn new(firmware: Firmware<'f>, config: Config, protocol: P, upper: U, buffers: B) -> Self {
        let mut driver = Driver::vacant(protocol, upper, buffers);
        driver.set_up(firmware, config);
        driver
    }

    /// A driver for a `static`, which is there before the program begins and so needs no stack: it brings no stick up before
    /// [`set_up`](Driver::set_up).
    pub const fn vacant(protocol: P, upper: U, buffers: B) -> Self {
        Driver {
            protocol,
            upper,
            buffers,
            machine: Machine::vacant(),
            seen: Duplicates::new(),
            started: false,
            holds: false,
            receives: false,
        }
    }

    /// Makes a driver that was [`vacant`](Driver::vacant) what [`new`](Driver::new) makes. Before its first event.
    pub fn set_up(&mut self, firmware: Firmware<'f>, config: Config) {
        self.machine.set_up(firmware, config);
    }

    /// The protocol.
    pub fn protocol(&self) -> &P {
        &self.protocol
    }

    /// The protocol. Whoever changes it knows what of it depends on its events.
    pub fn protocol_mut(&mut self) -> &mut P {
        &mut self.protocol
    }

    /// The protocol.
    pub fn into_protocol(self) -> P {
        self.protocol
    }

    /// The protocol, and what takes its deliveries.
    pub fn into_parts(self) -> (P, U) {
        (self.protocol, self.upper)
    }

    /// What takes the protocol's deliveries.
    pub fn upper(&self) -> &U {
        &self.upper
    }

    /// What takes the protocol's deliveries.
    pub fn upper_mut(&mut self) -> &mut U {
        &mut self.upper
    }

    /// Memory for received frames.
    pub fn buffers(&self) -> &B {
        &self.buffers
    }

    /// What it has counted.
    pub fn counts(&self) -> &Counts {
        &self.machine.counts
    }

    /// Whether the stick is up.
    pub fn is_up(&self) -> bool {
        self.machine.phase == Phase::Up
    }

    /// Whether the protocol has started.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// The stick's address; zero before it is known.
    pub fn address(&self) -> MacAddr {
        self.machine.settings.address
    }

    /// While it holds, a protocol that has not started yet does not: the stick comes up all the same.
    pub fn hold(&mut self, holds: bool) {
        self.holds = holds;
    }

    /// While it closes, requests are refused and the protocol's timer does not come; requests that wait here are taken back.
    /// Those that the stick has end as they do.
    pub fn close(&mut self, closes: bool) {
        self.machine.closing = closes;
        if closes {
            self.machine.abort_all();
        }
    }

    /// Whether a request is open, or an answer is to be told.
    pub fn owes(&self) -> bool {
        self.started && self.machine.owes()
    }

    /// Takes in what the USB says. `now` never decreases; a smaller one counts as the last.
    pub fn handle(&mut self, now: Instant, event: BusEvent<'_>, bus: &mut dyn Bus) {
        self.machine.tick(now);
        match event {
            BusEvent::Attached => {
                self.buffers.clear();
                self.machine.attached(bus);
            }
            BusEvent::Detached => {
                self.buffers.clear();
                self.machine.detached();
            }
            BusEvent::ControlDone(well) => self.machine.control_done(well, bus),
            BusEvent::Sent(id, well) => self.machine.sent(id, well),
            BusEvent::Received(transfer) | BusEvent::Cut(transfer) => {
                self.received(transfer, matches!(event, BusEvent::Cut(_)));
            }
            BusEvent::ReadFailed => {
                if self.machine.posted > 0 {
                    self.machine.posted -= 1;
                    self.buffers.transfer_ends();
                }
            }
        }
        self.repair(bus);
    }

    /// Hands an MSDU down to the protocol; false if that has not started yet.
    pub fn submit(&mut self, now: Instant, msdu: Msdu<'_>) -> bool {
        self.machine.tick(now);
        if self.started {
            self.tell(Event::Submit(msdu));
        }
        self.started
    }

    /// One turn; false if there was nothing to do.
    pub fn turn(&mut self, now: Instant, bus: &mut dyn Bus) -> bool {
        self.machine.tick(now);
        if self.machine.timeouts(bus) {
            self.buffers.clear();
            return true;
        }
        if self.starts() {
            self.started = true;
            self.tell(Event::Start);
            return true;
        }
        if self.started {
            if let Some(owed) = self.machine.owed() {
                self.tell(match owed {
                    Owed::Confirm(mut confirm) => {
                        if confirm.stamps.count() > 0 {
                            confirm.stamps.host(radio::Plane::T9, self.machine.now);
                        }
                        Event::Confirm(confirm)
                    }
                    Owed::Set(answer) => Event::Set(answer),
                });
                return true;
            }
            if self.timer().is_some_and(|t| t <= self.machine.now) {
                self.tell(Event::Timer);
                return true;
            }
        }
        if self.machine.dispatch_command(bus) {
            return true;
        }
        self.receives = !self.receives;
        let did = match self.receives {
            true => self.indicate() || self.machine.dispatch_frame(bus),
            false => self.machine.dispatch_frame(bus) || self.indicate(),
        };
        while self.machine.is_listening() && self.machine.posted < self.machine.config.reads && self.arm() {
            self.machine.posted += 1;
            bus.read();
        }
        did
    }

    /// Turns until there is nothing to do, up to a bound; then [`deadline`](Driver::deadline) is now.
    pub fn run(&mut self, now: Instant, bus: &mut dyn Bus) {
        let _left = (0..MAX_TURNS).find(|_| !self.turn(now, bus));
    }

    /// When to be called again, if the USB says nothing until then. May be in the past: there is something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let machine = &self.machine;
        let frames = self.started && self.buffers.first().is_some();
        let over = machine.flights.first_over().is_some() || machine.answers.first().is_some();
        let owes = self.started && over;
        let starts = self.starts();
        if machine.has_command() || machine.has_frame() || frames || owes || starts {
            return Some(machine.now);
        }
        [self.timer(), machine.deadline()].into_iter().flatten().min()
    }

    /// Whether the protocol is to be started.
    fn starts(&self) -> bool {
        self.is_up() && !self.started && !self.holds
    }

    /// The protocol's, if it is to come.
    fn timer(&self) -> Option<Instant> {
        let comes = self.started && !self.machine.closing;
        self.protocol.deadline().filter(|_| comes)
    }

    fn repair(&mut self, bus: &mut dyn Bus) {
        if self.machine.repair(bus) {
            self.buffers.clear();
        }
    }

    fn tell(&mut self, event: Event<'_>) {
        let now = self.machine.now;
        let seat = &mut Seat {
            machine: &mut self.machine,
            upper: &mut self.upper,
        };
        self.protocol.handle(now, event, seat);
    }

    /// Prepares for one more read. What is heard before the protocol starts waits for that; of it the oldest gives way if there were no
    /// read left for what the stick says.
    fn arm(&mut self) -> bool {
        while !self.buffers.arm() {
            if self.started || self.machine.posted > 0 || self.buffers.first().is_none() {
                return false;
            }
            self.buffers.release();
            self.machine.counts.overflows += 1;
        }
        true
    }

    /// The interrupt: everything that a transfer holds is taken in; of one that was cut, the units that are whole.
    fn received(&mut self, transfer: &[u8], is_cut: bool) {
        if !self.machine.is_listening() || self.machine.posted == 0 {
            return;
        }
        self.machine.posted -= 1;
        if is_cut {
            self.machine.counts.cut_transfers += 1;
        }
        for unit in Units::new(transfer) {
            match unit {
                Unit::Responses(mut block) => {
                    let goes_on = block.by_ref().all(|response| self.machine.response(&response));
                    self.machine.counts.damaged_octets += if goes_on { block.rest().len() as u64 } else { 0 };
                    if !goes_on {
                        break;
                    }
                }
                Unit::Frame(frame) if self.is_up() => {
                    self.machine.counts.overflows += u64::from(!self.buffers.keep(frame));
                }
                Unit::Frame(_) => {}
                // a unit without its end: looked through, a frame could speak for the firmware
                Unit::Damaged(_) if is_cut => break,
                Unit::Damaged(octets) => self.machine.counts.damaged_octets += octets.len() as u64,
            }
        }
        self.buffers.transfer_ends();
    }

    /// Tells the oldest frame in the buffers; false if there is none, or nobody to tell.
    fn indicate(&mut self) -> bool {
        let Some(unit) = self.buffers.first().filter(|_| self.started) else {
            return false;
        };
        let (now, noise) = (self.machine.now, self.machine.settings.noise_dbm);
        match receive::event(unit, now, noise, &mut self.seen) {
            Ok(event) => {
                self.machine.counts.indications += 1;
                let seat = &mut Seat {
                    machine: &mut self.machine,
                    upper: &mut self.upper,
                };
                self.protocol.handle(now, event, seat);
            }
            Err(Untold::Duplicate) => self.machine.counts.duplicates += 1,
            Err(Untold::Unreadable) => self.machine.counts.unreadable += 1,
        }
        self.buffers.release();
        true
    }
}
