//! The loop: what the USB says, what the driver does, what the application hands down; then a rest until something is due.

use std::boxed::Box;
use std::string::String;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};
use std::thread::Thread;
use std::time::Instant as Clock;

use frame::MacAddr;
use radio::{Application, Duration, Instant, MAX_FRAME_OCTETS, Msdu, Protocol};
use rustix::time::{ClockId, clock_gettime};

use super::bus::UsbBus;
use super::error::UsbError;
use crate::codec::Firmware;
use crate::driver::{Bus, BusEvent, Config, Counts, Driver, Hybrid, Upper};

/// Requests that may be open at once.
const REQUESTS: usize = 64;
/// Octets of memory for each: the longest frame of the protocols here, and its descriptors.
const OCTETS: usize = 2_400;
/// Memory for received frames: a whole transfer for each read that is posted.
type Buffers = Hybrid<16, 8_192>;
/// Longest rest without a look at the stop flag.
const LOOK: Duration = Duration::from_ms(100);

/// Wakes the thread that waits for transfers.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A waker of this thread.
fn unpark() -> Waker {
    Waker::from(Arc::new(Unpark(std::thread::current())))
}

/// Takes what the protocol delivers.
struct Above<A>(A);

impl<A: Application> Upper for Above<A> {
    fn deliver(&mut self, now: Instant, msdu: Msdu<'_>) {
        self.0.deliver(now, msdu);
    }
}

type Machine<'f, P, A> = Driver<'f, P, Above<A>, Buffers, REQUESTS, OCTETS>;

/// Drives the protocol `P` over a stick at this computer, below the application `A`. Its clock is `CLOCK_MONOTONIC`.
///
/// A stick that is unplugged is no error: requests that it had end as unknown, others are refused until one is plugged
/// in at the same place; then it is brought up again.
pub struct UsbHost<'f, P, A> {
    driver: Box<Machine<'f, P, A>>,
    bus: UsbBus,
    payload: Box<[u8; MAX_FRAME_OCTETS]>,
}

impl<'f, P: Protocol, A: Application> UsbHost<'f, P, A> {
    /// On the stick of this bus, with this firmware.
    pub fn new(bus: UsbBus, firmware: Firmware<'f>, config: Config, protocol: P, application: A) -> Self {
        let above = Above(application);
        UsbHost {
            driver: Box::new(Driver::new(firmware, config, protocol, above, Buffers::default())),
            bus,
            payload: Box::new([0; MAX_FRAME_OCTETS]),
        }
    }

    /// The host's clock: `CLOCK_MONOTONIC`.
    pub fn now() -> Instant {
        let time = clock_gettime(ClockId::Monotonic);
        Instant::from_ns(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
    }

    /// The protocol.
    pub fn protocol(&self) -> &P {
        self.driver.protocol()
    }

    /// The protocol.
    pub fn protocol_mut(&mut self) -> &mut P {
        self.driver.protocol_mut()
    }

    /// The application.
    pub fn application(&self) -> &A {
        &self.driver.upper().0
    }

    /// The application.
    pub fn application_mut(&mut self) -> &mut A {
        &mut self.driver.upper_mut().0
    }

    /// Protocol and application; the stick is given back.
    pub fn into_parts(self) -> (P, A) {
        let (protocol, above) = self.driver.into_parts();
        (protocol, above.0)
    }

    /// What it has counted.
    pub fn counts(&self) -> &Counts {
        self.driver.counts()
    }

    /// Where the stick is plugged in.
    pub fn place(&self) -> String {
        self.bus.place().into()
    }

    /// The stick's address.
    pub fn address(&self) -> MacAddr {
        self.driver.address()
    }

    /// Loads the stick and brings it up; the protocol is not started. It takes about a second.
    ///
    /// # Errors
    /// [`UsbError::Silent`] if it is not up after `patience`, or `stop` was set.
    pub fn bring_up(&mut self, patience: Duration, stop: &AtomicBool) -> Result<(), UsbError> {
        self.driver.hold(true);
        let waker = &unpark();
        let until = Self::now() + patience;
        while !self.driver.is_up() {
            let now = Self::now();
            if now >= until || stop.load(Ordering::Relaxed) {
                return Err(UsbError::Silent {
                    place: self.place(),
                    seconds: patience.as_ns() / 1_000_000_000,
                    restarts: self.counts().restarts.iter().sum(),
                });
            }
            self.step(until.min(now + LOOK), waker);
        }
        Ok(())
    }

    /// Runs until `until`, or until `stop` is set (by a signal handler, say), which is seen within 100 ms. Can be called
    /// again to go on. The protocol starts when the stick is up.
    pub fn run(&mut self, until: Option<Instant>, stop: &AtomicBool) {
        self.driver.hold(false);
        self.driver.close(false);
        let waker = &unpark();
        while !stop.load(Ordering::Relaxed) {
            let now = Self::now();
            if until.is_some_and(|t| now >= t) {
                break;
            }
            let look = now + LOOK;
            self.step(until.map_or(look, |t| t.min(look)), waker);
        }
    }

    /// Ends all requests and tells their confirms: those that are held back as aborted, the others as they end, or as
    /// unknown after `patience`. What the protocol asks for meanwhile is refused, and its timer does not come.
    pub fn finish(&mut self, patience: Duration) {
        self.driver.close(true);
        let waker = &unpark();
        let until = Self::now() + patience;
        while self.driver.owes() && Self::now() < until {
            self.step(until.min(Self::now() + LOOK), waker);
        }
        if self.driver.owes() {
            // nobody waits for what is left; the stick is brought up anew if this goes on
            let now = Self::now();
            self.driver.handle(now, BusEvent::Detached, &mut self.bus);
            self.driver.run(now, &mut self.bus);
            self.bus.reset();
        }
    }

    /// One round, and a rest until `until` if there was nothing to do.
    fn step(&mut self, until: Instant, waker: &Waker) {
        let context = &mut Context::from_waker(waker);
        let mut busy = self.listen(context);
        busy |= self.driver.turn(Self::now(), &mut self.bus);
        busy |= self.submit();
        // and whatever that has posted is listened to
        if busy || self.listen(context) {
            return;
        }
        let due = [self.driver.deadline(), self.application().due()];
        let first = due.into_iter().flatten().fold(until, Instant::min);
        let mut rest = std::time::Duration::from_nanos(first.since(Self::now()).as_ns());
        if let Some(look) = self.bus.next_look() {
            rest = rest.min(look.saturating_duration_since(Clock::now()));
        }
        std::thread::park_timeout(rest);
    }

    /// Tells the driver what has happened; false if nothing has.
    fn listen(&mut self, context: &mut Context<'_>) -> bool {
        let Some(happened) = self.bus.happened(context) else {
            return false;
        };
        self.driver.handle(Self::now(), happened.event(), &mut self.bus);
        self.bus.recycle(happened);
        true
    }

    /// Hands the application's next MSDU down; false if none is due.
    fn submit(&mut self) -> bool {
        let now = Self::now();
        if !self.driver.has_started() || self.application().due().is_none_or(|t| t > now) {
            return false;
        }
        let Some(msdu) = self.driver.upper_mut().0.take(now, &mut self.payload) else {
            return false;
        };
        let msdu = Msdu {
            peer: msdu.peer,
            category: msdu.category,
            deadline: msdu.deadline,
            payload: &self.payload[..msdu.octets.min(MAX_FRAME_OCTETS)],
        };
        self.driver.submit(now, msdu)
    }
}
