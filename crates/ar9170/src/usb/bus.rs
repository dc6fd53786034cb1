//! The USB of Linux as the driver's bus: a stick that was opened, or the wait for one.
//!
//! Transfers go to the kernel at once and come back in their order; up to sixteen reads and several transfers each way are
//! under way. What takes longer, a reset or the search for a stick, is done between two events, and the loop stands
//! meanwhile.

use std::boxed::Box;
use std::format;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::string::{String, ToString};
use std::task::{Context, Poll};
use std::time::{Duration, Instant as Clock};
use std::vec::Vec;

use nusb::transfer::{
    Buffer, Bulk, Completion, ControlOut, ControlType, In, Interrupt, Out, Recipient, TransferError,
};
use nusb::{Device, ErrorKind, Interface, MaybeFuture};

use super::error::UsbError;
use super::pipe::{End, Pipe};
use super::stick::{Stick, named};
use crate::codec::stream::MAX_TRANSFER_OCTETS;
use crate::driver::{Bus, BusEvent, TransferId};

/// Endpoints.
const FRAMES: u8 = 0x01;
const REPORTS: u8 = 0x82;
const COMMANDS: u8 = 0x04;
/// The only interface, of the only configuration.
const INTERFACE: u8 = 0;
const CONFIGURATION: u8 = 1;
/// How long the kernel is to wait for a control transfer; the driver does not wait so long.
const CONTROL: Duration = Duration::from_secs(1);
/// Between two looks for a stick that was unplugged.
const LOOK: Duration = Duration::from_millis(500);
/// Reads that may fail in a row before the stick is reset.
const FAILURES: u32 = 16;
/// What the kernel calls a program that has an interface.
const PROGRAM: &str = "usbfs";

type Control = Pin<Box<dyn Future<Output = Result<(), TransferError>> + Send>>;

/// Commands: the endpoint is of another type at full speed.
enum Commands {
    Interrupt(Pipe<Interrupt, Out, TransferId>),
    Bulk(Pipe<Bulk, Out, TransferId>),
}

impl Commands {
    fn submit(&mut self, id: TransferId, octets: &[u8]) {
        match self {
            Commands::Interrupt(pipe) => pipe.submit(id, octets.into()),
            Commands::Bulk(pipe) => pipe.submit(id, octets.into()),
        }
    }

    fn ended(&mut self, context: &mut Context<'_>) -> Option<(TransferId, Completion)> {
        match self {
            Commands::Interrupt(pipe) => pipe.ended(context),
            Commands::Bulk(pipe) => pipe.ended(context),
        }
    }

    fn drain(&mut self) {
        match self {
            Commands::Interrupt(pipe) => pipe.drain(),
            Commands::Bulk(pipe) => pipe.drain(),
        }
    }
}

/// A stick that is ours. Fields are dropped in this order: transfers, the claim, the device.
struct Open {
    commands: Commands,
    /// `None`: the packet without octets behind a transfer.
    frames: Pipe<Bulk, Out, Option<TransferId>>,
    reports: Pipe<Bulk, In, ()>,
    control: Option<Control>,
    interface: Interface,
    device: Device,
}

/// What has happened.
pub(super) enum Happened {
    Attached,
    Detached,
    ControlDone(bool),
    Sent(TransferId, bool),
    Received(Buffer),
    ReadFailed,
}

impl Happened {
    pub(super) fn event(&self) -> BusEvent<'_> {
        match self {
            Happened::Attached => BusEvent::Attached,
            Happened::Detached => BusEvent::Detached,
            Happened::ControlDone(well) => BusEvent::ControlDone(*well),
            Happened::Sent(id, well) => BusEvent::Sent(*id, *well),
            Happened::Received(buffer) => BusEvent::Received(buffer),
            Happened::ReadFailed => BusEvent::ReadFailed,
        }
    }
}

/// The bus of one stick.
pub struct UsbBus {
    open: Option<Open>,
    place: String,
    /// A kernel driver had it before.
    had_driver: bool,
    wants_reset: bool,
    /// Reads that failed in a row.
    failures: u32,
    next_look: Clock,
    buffers: Vec<Buffer>,
}

impl UsbBus {
    /// Takes the stick of this name from the kernel's driver, if that has it, until it is dropped. The first event says
    /// that it is there.
    ///
    /// # Errors
    /// [`UsbError`].
    pub fn open(name: &str) -> Result<UsbBus, UsbError> {
        let stick = named(name)?;
        let place = stick.place();
        let (open, had_driver) = Open::new(&stick)?;
        Ok(UsbBus {
            open: Some(open),
            place,
            had_driver,
            // whoever had it before has left it running
            wants_reset: true,
            failures: 0,
            next_look: Clock::now(),
            buffers: Vec::new(),
        })
    }

    /// Where it is plugged in.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The next thing that has happened, if anything has; else the waker is called when it does, but for a stick that is
    /// plugged in anew: for that, look again after [`next_look`](UsbBus::next_look).
    pub(super) fn happened(&mut self, context: &mut Context<'_>) -> Option<Happened> {
        if self.open.is_none() {
            return self.look();
        }
        if std::mem::take(&mut self.wants_reset) {
            return Some(self.carry_out_reset());
        }
        let open = self.open.as_mut()?;
        if let Some(control) = &mut open.control
            && let Poll::Ready(status) = control.as_mut().poll(context)
        {
            open.control = None;
            return Some(match End::of(status) {
                End::Gone => self.gone(),
                other => Happened::ControlDone(matches!(other, End::Well)),
            });
        }
        if let Some((id, done)) = open.commands.ended(context) {
            return Some(self.sent(id, done.status));
        }
        while let Some((name, done)) = open.frames.ended(context) {
            if let Some(id) = name {
                return Some(self.sent(id, done.status));
            }
        }
        let ((), done) = open.reports.ended(context)?;
        match End::of(done.status) {
            End::Well => {
                self.failures = 0;
                Some(Happened::Received(done.buffer))
            }
            End::Badly => {
                self.buffers.push(done.buffer);
                self.failures += 1;
                self.wants_reset |= self.failures >= FAILURES;
                Some(Happened::ReadFailed)
            }
            End::Gone => Some(self.gone()),
        }
    }

    /// When to look for a stick again; `None` if there is one.
    pub(super) fn next_look(&self) -> Option<Clock> {
        self.open.is_none().then_some(self.next_look)
    }

    /// Takes the memory of an event back.
    pub(super) fn recycle(&mut self, happened: Happened) {
        if let Happened::Received(buffer) = happened {
            self.buffers.push(buffer);
        }
    }

    fn sent(&mut self, id: TransferId, status: Result<(), TransferError>) -> Happened {
        match End::of(status) {
            End::Gone => self.gone(),
            other => Happened::Sent(id, matches!(other, End::Well)),
        }
    }

    fn gone(&mut self) -> Happened {
        self.open = None;
        self.next_look = Clock::now() + LOOK;
        Happened::Detached
    }

    /// Whether a stick is there again, at the same place.
    fn look(&mut self) -> Option<Happened> {
        let now = Clock::now();
        if now < self.next_look {
            return None;
        }
        self.next_look = now + LOOK;
        // what is wrong with it may be over at the next look
        let (open, had_driver) = named(&self.place).and_then(|stick| Open::new(&stick)).ok()?;
        self.open = Some(open);
        self.had_driver |= had_driver;
        // the kernel's driver may have loaded it
        Some(self.carry_out_reset())
    }

    /// Resets the stick, and opens it anew: the kernel takes a claim away at a reset.
    fn carry_out_reset(&mut self) -> Happened {
        (self.wants_reset, self.failures) = (false, 0);
        let Some(device) = self.open.take().map(Open::release) else {
            return self.gone();
        };
        if device.reset().wait().is_err() {
            return self.gone();
        }
        drop(device);
        match named(&self.place).and_then(|stick| Open::new(&stick)) {
            Ok((open, had_driver)) => {
                self.open = Some(open);
                self.had_driver |= had_driver;
                Happened::Attached
            }
            Err(_) => self.gone(),
        }
    }
}

impl Drop for UsbBus {
    /// Gives the stick back as it was: with its loader, and to the driver that had it.
    fn drop(&mut self) {
        let Some(device) = self.open.take().map(Open::release) else {
            return;
        };
        // nothing more can be done about it
        let _ = device.reset().wait();
        if self.had_driver {
            let _ = device.attach_kernel_driver(INTERFACE);
        }
    }
}

/// The driver that has the stick's interface.
fn driver(place: &str) -> Option<String> {
    let link = format!("/sys/bus/usb/devices/{place}/{place}:{CONFIGURATION}.{INTERFACE}/driver");
    let driver = std::fs::read_link(link).ok()?;
    Some(driver.file_name()?.to_string_lossy().into_owned())
}

impl Open {
    /// Takes a stick; true if it was a driver's.
    fn new(stick: &Stick) -> Result<(Open, bool), UsbError> {
        let place = stick.place();
        let failed = |what: &'static str| {
            let (place, file) = (place.clone(), stick.file());
            move |error: nusb::Error| match error.kind() {
                ErrorKind::PermissionDenied => UsbError::NoPermission { place, file },
                ErrorKind::Busy => UsbError::InUse(place),
                _ => UsbError::Kernel { what, place, error },
            }
        };
        let device = stick.info.open().wait().map_err(failed("open"))?;
        if device.active_configuration().is_err() {
            let configured = device.set_configuration(CONFIGURATION).wait();
            configured.map_err(failed("configure"))?;
        }
        let had_driver = match driver(&place).as_deref() {
            Some(PROGRAM) => return Err(UsbError::InUse(place)),
            Some(_) => {
                let detached = device.detach_kernel_driver(INTERFACE);
                detached.map_err(failed("take the kernel's driver from"))?;
                true
            }
            None => false,
        };
        let interface = device.claim_interface(INTERFACE).wait();
        let interface = interface.map_err(failed("claim"))?;
        let no = |why: &'static str| UsbError::NotOne {
            place: place.to_string(),
            why,
        };
        let commands = match Pipe::open(&interface, COMMANDS) {
            Ok(pipe) => Commands::Interrupt(pipe),
            Err(_) => {
                let bulk = Pipe::open(&interface, COMMANDS);
                Commands::Bulk(bulk.map_err(|_| no("it has no endpoint 4 for commands"))?)
            }
        };
        let frames =
            Pipe::open(&interface, FRAMES).map_err(|_| no("it has no bulk endpoint 1 for frames"))?;
        let reports =
            Pipe::open(&interface, REPORTS).map_err(|_| no("it has no bulk endpoint 2 for reports"))?;
        if !MAX_TRANSFER_OCTETS.is_multiple_of(reports.packet_octets().max(1)) {
            return Err(no("the packets of its endpoint 2 do not fill a transfer"));
        }
        let open = Open {
            commands,
            frames,
            reports,
            control: None,
            interface,
            device,
        };
        Ok((open, had_driver))
    }

    /// Ends all transfers, and gives the claim back.
    fn release(mut self) -> Device {
        self.control = None;
        self.commands.drain();
        self.frames.drain();
        self.reports.drain();
        let Open {
            commands,
            frames,
            reports,
            interface,
            device,
            ..
        } = self;
        drop((commands, frames, reports));
        // if a transfer still has it, the reset ends that
        let _ = interface.release().wait();
        device
    }
}

impl Bus for UsbBus {
    fn reset(&mut self) {
        self.wants_reset = true;
    }

    fn control(&mut self, request: u8, value: u16, data: &[u8]) {
        if let Some(open) = &mut self.open {
            let transfer = ControlOut {
                control_type: ControlType::Vendor,
                recipient: Recipient::Device,
                request,
                value,
                index: 0,
                data,
            };
            let future = open.device.control_out(transfer, CONTROL).into_future();
            open.control = Some(Box::pin(future));
        }
    }

    fn command(&mut self, id: TransferId, octets: &[u8]) {
        if let Some(open) = &mut self.open {
            open.commands.submit(id, octets);
        }
    }

    fn frame(&mut self, id: TransferId, octets: &[u8]) {
        if let Some(open) = &mut self.open {
            let whole = octets.len().is_multiple_of(open.frames.packet_octets().max(1));
            open.frames.submit(Some(id), octets.into());
            if whole {
                open.frames.submit(None, Buffer::new(0));
            }
        }
    }

    fn read(&mut self) {
        if let Some(open) = &mut self.open {
            let buffer = self.buffers.pop();
            open.reports
                .submit((), buffer.unwrap_or_else(|| Buffer::new(MAX_TRANSFER_OCTETS)));
        }
    }
}
