//! A stick whose computer is somewhere else: behind a pipe, in another process.

use super::knobs::{Faults, Knobs};
use super::stick::Stick;
use super::usb::{Item, Usb};
use crate::codec::Eeprom;
use crate::driver::{Bus, BusEvent};
use radio::{Event, Instant, Protocol, Radio};

/// Things that one event leads to at most; what is left has its time now.
const MAX_STEPS: usize = 32;

/// A computer that drives a stick. It does all there is to do at `now` before it returns.
pub trait Far {
    /// Tells it what the USB says, or that its time has come. It tells when to be called again.
    fn tell(&mut self, now: Instant, event: Option<BusEvent<'_>>, bus: &mut dyn Bus) -> Option<Instant>;
}

/// A stick that is plugged into the computer `C` at the start. Towards the air it is a protocol.
pub struct Remote<C> {
    computer: C,
    stick: Stick,
    usb: Usb,
    /// When the computer wants to be called, and the stick's timer, as of the last event.
    due: Option<Instant>,
    stick_due: Option<Instant>,
}

impl<C: Far> Remote<C> {
    /// A stick with the identity of `eeprom`.
    pub fn new(eeprom: Eeprom, knobs: Knobs, computer: C) -> Self {
        Remote {
            computer,
            stick: Stick::new(eeprom, knobs),
            usb: Usb::new(knobs),
            due: None,
            stick_due: None,
        }
    }

    /// The computer.
    pub fn computer(&self) -> &C {
        &self.computer
    }

    /// The computer.
    pub fn computer_mut(&mut self) -> &mut C {
        &mut self.computer
    }

    /// What has gone wrong, because the knobs say so.
    pub fn faults(&self) -> Faults {
        self.stick.reports.faults.with(&self.usb.faults)
    }

    fn tell(&mut self, now: Instant, event: Option<BusEvent<'_>>) {
        self.due = self.computer.tell(now, event, &mut self.usb);
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
        match item {
            Item::Attach => self.tell(now, Some(BusEvent::Attached)),
            Item::Control(request, value, data) => {
                let taken = self.stick.control(request, value, &data);
                self.usb.control_taken(request, taken);
            }
            Item::Boot => self.stick.boot(),
            Item::Command(octets) => self.stick.command(&octets, radio),
            Item::Frame(octets) => self.stick.frame(&octets, radio),
            Item::Sent(id) => self.tell(now, Some(BusEvent::Sent(id, true))),
            Item::ControlDone(well) => self.tell(now, Some(BusEvent::ControlDone(well))),
            Item::Fill => {
                let transfer = self.stick.read();
                self.usb.fill(transfer);
            }
            Item::Received(transfer) => self.tell(now, Some(BusEvent::Received(&transfer))),
        }
        true
    }
}

impl<C: Far> Protocol for Remote<C> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.usb.now_ns = now.as_ns();
        match event {
            Event::Start => self.usb.put(0, Item::Attach),
            event => self.stick.air(event, radio),
        }
        if self.stick_due.is_some_and(|t| t <= now) {
            self.stick.tick(now, radio);
        }
        for _ in 0..MAX_STEPS {
            if self.due.is_some_and(|t| t <= now) {
                self.tell(now, None);
            }
            if self.stick.has_reports() {
                self.usb.offer();
            }
            if !self.step(now, radio) {
                break;
            }
        }
        self.stick_due = self.stick.deadline(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let usb = self.usb.next_ns().map(Instant::from_ns);
        [usb, self.due, self.stick_due].into_iter().flatten().min()
    }
}
