//! A stick that another computer has plugged in, over usbredir.

use super::descriptors;
use super::knobs::{Knobs, Random};
use super::stick::Stick;
use crate::codec::Eeprom;
use crate::codec::command::{ASYNCHRONOUS, Code};
use crate::usbredir::{Control, Packet, Reader, RedirError, Status, Transfer, capability};
use radio::{Duration, Event, Instant, Protocol, Radio};
use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

/// What we call ourselves.
const NAME: &[u8] = b"sdmac ar9170";
/// Requests of the loader: write to memory, and start.
const START: u8 = 0x31;
/// Requests to the device, of the vendor.
const VENDOR_OUT: u8 = 0x40;
/// Reads that are open at once at most; Linux has 16. What is more stalls.
const READS: usize = 64;

/// Endpoints.
const FRAMES: u8 = 0x01;
const REPORTS: u8 = 0x82;
const COMMANDS: u8 = 0x04;

/// What there is to be read, and whether it is late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Late {
    /// It is not known yet: the knobs tell.
    Unknown,
    /// Until then.
    Until(Instant),
    /// It has been.
    Over,
}

/// A stick at the far end of a connection. Towards the air it is a protocol; towards the connection it takes in octets
/// ([`receive`](Redirected::receive)) and has some to be sent ([`output`](Redirected::output)).
///
/// Times of the USB are those of the connection: of the [`Knobs`], those of transfers and lost completions count only in the model of
/// a bus. What the stick says can be late here, too; what it says meanwhile then comes in the same transfer.
#[derive(Debug)]
pub struct Redirected {
    stick: Stick,
    reader: Reader,
    output: Vec<u8>,
    connected: bool,
    configuration: u8,
    /// Reads that wait, as id and octets that are wanted.
    reads: VecDeque<(u64, u32)>,
    knobs: Knobs,
    random: Random,
    late: Late,
    /// When the image begins to run.
    boots: Option<Instant>,
    /// What the stick's timer says, as of the last event.
    stick_due: Option<Instant>,
    commands: BTreeMap<(Code, bool), u64>,
    /// Images that were started.
    starts: u64,
    resets: u64,
}

impl Redirected {
    /// A stick that nobody has plugged in yet.
    pub fn new(eeprom: Eeprom, knobs: Knobs) -> Redirected {
        Redirected {
            stick: Stick::new(eeprom, knobs),
            reader: Reader::default(),
            output: Vec::new(),
            connected: false,
            configuration: 0,
            reads: VecDeque::new(),
            knobs,
            random: Random::new(knobs.seed),
            late: Late::Unknown,
            boots: None,
            stick_due: None,
            commands: BTreeMap::new(),
            starts: 0,
            resets: 0,
        }
    }

    /// Somebody is at the other end: what has to be said first is in the output then.
    pub fn connect(&mut self) {
        self.say(0, &Packet::Hello(NAME.to_vec(), capability::NEEDED));
    }

    /// Nobody is there any more: the stick is unplugged, and may be plugged in again.
    pub fn disconnect(&mut self, now: Instant, radio: &mut dyn Radio) {
        self.reset(radio);
        (self.connected, self.configuration) = (false, 0);
        self.reader = Reader::default();
        self.output.clear();
        self.settle(now, radio);
    }

    /// Octets to be sent; whoever sends them takes them out.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Commands that the host has given, by their codes, and whether it waits for the answer.
    pub fn commands(&self) -> &BTreeMap<(Code, bool), u64> {
        &self.commands
    }

    /// Images that were started: bringing it up anew counts again.
    pub fn starts(&self) -> u64 {
        self.starts
    }

    /// Resets of the bus, among them those of the host when it finds the device.
    pub fn resets(&self) -> u64 {
        self.resets
    }

    /// Octets have come.
    ///
    /// # Errors
    /// [`RedirError`]: the connection is of no use any more.
    pub fn receive(&mut self, now: Instant, octets: &[u8], radio: &mut dyn Radio) -> Result<(), RedirError> {
        self.reader.push(octets);
        while let Some((id, packet)) = self.reader.packet()? {
            self.take(now, id, packet, radio);
        }
        self.settle(now, radio);
        Ok(())
    }

    fn say(&mut self, id: u64, packet: &Packet) {
        packet.emit(id, &mut self.output);
    }

    fn take(&mut self, now: Instant, id: u64, packet: Packet, radio: &mut dyn Radio) {
        let ok = Status::Success as u8;
        match packet {
            Packet::Hello(..) if !self.connected => {
                self.connected = true;
                self.describe();
                self.say(0, &Packet::DeviceConnect(descriptors::CONNECT));
            }
            Packet::Reset => {
                self.resets += 1;
                self.reset(radio);
            }
            Packet::SetConfiguration(n) => {
                let known = n <= 1;
                if known {
                    self.configuration = n;
                    self.describe();
                }
                let status = if known { ok } else { Status::Stall as u8 };
                self.say(id, &Packet::Configuration(status, self.configuration));
            }
            Packet::GetConfiguration => self.say(id, &Packet::Configuration(ok, self.configuration)),
            Packet::SetAlternative(0, 0) => self.say(id, &Packet::Alternative(ok, 0, 0)),
            Packet::SetAlternative(interface, _) => {
                self.say(id, &Packet::Alternative(Status::Stall as u8, interface, 0));
            }
            Packet::GetAlternative(interface) => self.say(id, &Packet::Alternative(ok, interface, 0)),
            // the firmware never uses that endpoint
            Packet::StartInterrupts(endpoint) | Packet::StopInterrupts(endpoint) => {
                self.say(id, &Packet::Interrupts(ok, endpoint));
            }
            Packet::Cancel => {
                if let Some(at) = self.reads.iter().position(|read| read.0 == id) {
                    self.reads.remove(at);
                    self.end_read(id, Status::Cancelled, Vec::new());
                }
            }
            Packet::Control(control, data) => self.control(now, id, control, &data),
            Packet::Bulk(t, data) => self.bulk(id, t, &data, radio),
            Packet::Interrupt(t, data) => {
                let good = t.endpoint == COMMANDS && t.length as usize == data.len();
                if good {
                    self.command(&data, radio);
                }
                let status = if good { Status::Success } else { Status::Stall };
                let end = Transfer {
                    status: status as u8,
                    ..t
                };
                self.say(id, &Packet::Interrupt(end, Vec::new()));
            }
            // answers are for the other side, and what we do not know we never said that we can
            _ => {}
        }
    }

    /// Interfaces and endpoints, as they are wanted before each configuration.
    fn describe(&mut self) {
        self.say(0, &Packet::Endpoints(descriptors::ENDPOINTS));
        self.say(0, &Packet::Interfaces(descriptors::interfaces()));
    }

    fn reset(&mut self, radio: &mut dyn Radio) {
        self.stick.reset(radio);
        (self.boots, self.late) = (None, Late::Unknown);
        for (id, _) in std::mem::take(&mut self.reads) {
            self.end_read(id, Status::Cancelled, Vec::new());
        }
    }

    fn control(&mut self, now: Instant, id: u64, control: Control, data: &[u8]) {
        let to_host = control.request_type & 0x80 != 0;
        let whole = to_host || data.len() == usize::from(control.length);
        let answer = match (control.request_type, control.request) {
            _ if !whole => None,
            (VENDOR_OUT, request) => {
                let taken = self.stick.control(request, control.value, data);
                if taken && request == START {
                    self.starts += 1;
                    self.boots = Some(now + Duration::from_ns(self.knobs.boot_ns));
                }
                taken.then(Vec::new)
            }
            (kind, request) => descriptors::standard(kind, request, control.value),
        };
        let status = if answer.is_some() {
            Status::Success
        } else {
            Status::Stall
        };
        let mut answer = answer.unwrap_or_default();
        answer.truncate(control.length.into());
        let length = match (status, to_host) {
            (Status::Success, false) => control.length,
            _ => answer.len() as u16,
        };
        let end = Control {
            status: status as u8,
            length,
            ..control
        };
        self.say(id, &Packet::Control(end, answer));
    }

    fn bulk(&mut self, id: u64, t: Transfer, data: &[u8], radio: &mut dyn Radio) {
        match t.endpoint {
            REPORTS if self.reads.len() < READS => self.reads.push_back((id, t.length)),
            REPORTS => self.end_read(id, Status::Stall, Vec::new()),
            _ => {
                let good = t.endpoint == FRAMES && t.length as usize == data.len();
                // the packet without octets, behind a transfer of whole packets
                if good && !data.is_empty() {
                    self.stick.frame(data, radio);
                }
                let status = if good { Status::Success } else { Status::Stall };
                let end = Transfer {
                    status: status as u8,
                    ..t
                };
                self.say(id, &Packet::Bulk(end, Vec::new()));
            }
        }
    }

    fn command(&mut self, octets: &[u8], radio: &mut dyn Radio) {
        if let Some(octet) = octets.get(1)
            && let Some(code) = Code::from_octet(octet & !ASYNCHRONOUS)
        {
            let waits = octet & ASYNCHRONOUS == 0;
            *self.commands.entry((code, waits)).or_default() += 1;
        }
        self.stick.command(octets, radio);
    }

    fn end_read(&mut self, id: u64, status: Status, data: Vec<u8>) {
        let end = Transfer {
            endpoint: REPORTS,
            status: status as u8,
            length: data.len() as u32,
        };
        self.say(id, &Packet::Bulk(end, data));
    }

    /// Whether the stick has something to say, and it is not late or has been.
    fn may_speak(&mut self, now: Instant) -> bool {
        if !self.stick.has_reports() {
            return false;
        }
        if self.late == Late::Unknown && self.random.chance(self.knobs.late_interrupt) {
            self.late = Late::Until(now + Duration::from_ns(self.knobs.late_ns));
        }
        !matches!(self.late, Late::Until(_))
    }

    /// Fills reads, and looks at the clock again.
    fn settle(&mut self, now: Instant, radio: &mut dyn Radio) {
        // whether or not somebody reads then
        if matches!(self.late, Late::Until(at) if at <= now) {
            self.late = Late::Over;
        }
        while let Some((id, wanted)) = self.reads.front().copied().filter(|_| self.may_speak(now)) {
            let Some(transfer) = self.stick.read() else {
                break;
            };
            self.reads.pop_front();
            self.late = Late::Unknown;
            if transfer.len() > wanted as usize {
                self.end_read(id, Status::Babble, Vec::new());
            } else {
                self.end_read(id, Status::Success, transfer);
            }
        }
        self.stick_due = self.stick.deadline(now, radio);
    }
}

impl Protocol for Redirected {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if self.boots.take_if(|at| *at <= now).is_some() {
            self.stick.boot();
        }
        if self.stick_due.is_some_and(|at| at <= now) {
            self.stick.tick(now, radio);
        }
        self.stick.air(event, radio);
        self.settle(now, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let late = match self.late {
            Late::Until(at) => Some(at),
            Late::Unknown | Late::Over => None,
        };
        [self.boots, late, self.stick_due].into_iter().flatten().min()
    }
}
