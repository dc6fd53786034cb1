//! A computer with a stick: driver, USB and stick in one, above whatever is the air.

use super::knobs::{Faults, Knobs};
use super::stick::Stick;
use super::usb::{Item, Usb};
use crate::codec::{Eeprom, Firmware};
use crate::driver::{Buffers, BusEvent, Config, Driver, Upper};
use frame::{AccessCategory, MacAddr};
use radio::{Event, Instant, Msdu, Protocol, Radio};
use std::boxed::Box;
use std::vec::Vec;

/// Things that one event leads to at most; what is left has its time now.
const MAX_STEPS: usize = 32;

/// What the protocol has delivered, until it can be handed on.
#[derive(Debug, Default)]
struct Outbox(Vec<(MacAddr, AccessCategory, Option<Instant>, Vec<u8>)>);

impl Upper for Outbox {
    fn deliver(&mut self, _: Instant, msdu: Msdu<'_>) {
        self.0
            .push((msdu.peer, msdu.category, msdu.deadline, msdu.payload.to_vec()));
    }
}

/// The protocol `P` on a driver, on an emulated stick. Towards the air it is a protocol; `B`, `N` and `L` are those of
/// the [`Driver`].
pub struct Plugged<'f, P, B, const N: usize, const L: usize> {
    /// Apart, since it is as large as its buffers, and whoever makes one moves it.
    driver: Box<Driver<'f, P, Outbox, B, N, L>>,
    stick: Stick,
    usb: Usb,
    turn_ns: u64,
    frame_ns: u64,
    next_turn_ns: u64,
    /// What the stick's timer says, as of the last event.
    stick_due: Option<Instant>,
}

impl<'f, P: Protocol, B: Buffers, const N: usize, const L: usize> Plugged<'f, P, B, N, L> {
    /// A stick with the identity of `eeprom`, which is plugged in at the start.
    pub fn new(
        firmware: Firmware<'f>,
        config: Config,
        eeprom: Eeprom,
        knobs: Knobs,
        protocol: P,
        buffers: B,
    ) -> Self {
        Plugged {
            driver: Box::new(Driver::new(
                firmware,
                config,
                protocol,
                Outbox::default(),
                buffers,
            )),
            stick: Stick::new(eeprom, knobs),
            usb: Usb::new(knobs),
            turn_ns: knobs.turn_ns,
            frame_ns: knobs.frame_ns,
            next_turn_ns: 0,
            stick_due: None,
        }
    }

    /// The protocol.
    pub fn protocol(&self) -> &P {
        self.driver.protocol()
    }

    /// The protocol.
    pub fn into_protocol(self) -> P {
        self.driver.into_protocol()
    }

    /// Whether the stick is up.
    pub fn is_up(&self) -> bool {
        self.driver.is_up()
    }

    /// While it holds, a protocol that has not started yet does not, as in [`Driver::hold`].
    pub fn hold(&mut self, holds: bool) {
        self.driver.hold(holds);
    }

    /// What the driver has counted.
    pub fn counts(&self) -> &crate::driver::Counts {
        self.driver.counts()
    }

    /// What has gone wrong, because the knobs say so.
    pub fn faults(&self) -> Faults {
        self.stick.reports.faults.with(&self.usb.faults)
    }

    /// Memory for received frames.
    pub fn buffers(&self) -> &B {
        self.driver.buffers()
    }

    /// Tells the driver something that the bus never said. It is the driver's affair to be none the worse for it.
    pub fn disturb(&mut self, now: Instant, event: BusEvent<'_>) {
        self.usb.now_ns = self.usb.now_ns.max(now.as_ns());
        self.driver.handle(now, event, &mut self.usb);
    }

    /// What the driver has uploaded, as the stick has it.
    pub fn image(&self) -> &[u8] {
        self.stick.image()
    }

    /// The stick's firmware hangs: it takes everything, and says and sends nothing, until it is reset.
    pub fn hang(&mut self) {
        self.stick.hang();
    }

    fn turn(&mut self, now: Instant) {
        if self.turn_ns + self.frame_ns == 0 {
            return self.driver.run(now, &mut self.usb);
        }
        let told = self.driver.counts().indications;
        if self.next_turn_ns <= now.as_ns() && self.driver.turn(now, &mut self.usb) {
            let frames = self.driver.counts().indications - told;
            self.next_turn_ns = now.as_ns() + self.turn_ns + frames * self.frame_ns;
        }
    }

    /// Takes one thing off the bus; false if nothing is due.
    fn step(&mut self, now: Instant, radio: &mut dyn Radio) -> bool {
        if self.usb.reset {
            self.usb.clear();
            self.stick.reset(radio);
        }
        let Some(item) = self.usb.due() else {
            return false;
        };
        let (driver, usb) = (&mut self.driver, &mut self.usb);
        match item {
            Item::Attach => driver.handle(now, BusEvent::Attached, usb),
            Item::Control(request, value, data) => {
                usb.control_taken(request, self.stick.control(request, value, &data));
            }
            Item::Boot => self.stick.boot(),
            Item::Command(octets) => self.stick.command(&octets, radio),
            Item::Frame(octets) => self.stick.frame(&octets, radio),
            Item::Sent(id) => driver.handle(now, BusEvent::Sent(id, true), usb),
            Item::ControlDone(well) => driver.handle(now, BusEvent::ControlDone(well), usb),
            Item::Fill => {
                let transfer = self.stick.read();
                usb.fill(transfer);
            }
            Item::Received(transfer) => driver.handle(now, BusEvent::Received(&transfer), usb),
        }
        true
    }

    fn steps(&mut self, now: Instant, radio: &mut dyn Radio) {
        if self.stick_due.is_some_and(|t| t <= now) {
            self.stick.tick(now, radio);
        }
        for _ in 0..MAX_STEPS {
            self.turn(now);
            if self.stick.has_reports() {
                self.usb.offer();
            }
            if !self.step(now, radio) {
                break;
            }
        }
        for (peer, category, deadline, payload) in self.driver.upper_mut().0.drain(..) {
            radio.deliver(Msdu {
                peer,
                category,
                deadline,
                payload: &payload,
            });
        }
        self.stick_due = self.stick.deadline(now, radio);
    }
}

impl<P: Protocol, B: Buffers, const N: usize, const L: usize> Protocol for Plugged<'_, P, B, N, L> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.usb.now_ns = now.as_ns();
        match event {
            Event::Start => self.usb.put(0, Item::Attach),
            Event::Submit(msdu) => {
                self.driver.submit(now, msdu);
            }
            event => self.stick.air(event, radio),
        }
        self.steps(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let usb = self.usb.next_ns().map(Instant::from_ns);
        let driver = self
            .driver
            .deadline()
            .map(|t| t.max(Instant::from_ns(self.next_turn_ns)));
        [usb, driver, self.stick_due].into_iter().flatten().min()
    }
}
