//! An ad hoc node on a Cortex-M3: link layer with power save, driver of the AR9170, IPv6, routes and CoAP. The stick is
//! behind a serial pipe, whose other end keeps the time ([`ar9170::pipe`]).
//!
//! One loop and no interrupt handlers: the core sleeps until there is an octet, and all work is done between a message and
//! the answer to it.
#![no_std]
#![no_main]

use ar9170::codec::Firmware;
use ar9170::driver::{BusEvent, Config, Driver, Dynamic};
use ar9170::pipe::{Act, DRIVER_OCTETS, Decoder, PipeBus, Tell};
use core::cell::Cell;
use cortex_m::interrupt::{self, Mutex};
use cortex_m_rt::entry;
use firmware::board::{self, Uart};
use node::{Board, Link, Memory, Setup, Station, Stick, Storage};
use radio::{Event, Instant, Protocol, Radio};
use static_cell::{ConstStaticCell, StaticCell};

/// Packets of a whole MTU that wait for their receivers.
const PACKETS: usize = 3;
/// Octets of a packet.
const PACKET: usize = node::net::MTU;
/// Requests of the link layer: a beacon, an ATIM, a data frame, an answer to a probe.
const REQUESTS: usize = 4;
/// Octets of one: a packet, LLC/SNAP, the header, the descriptors.
const REQUEST: usize = PACKET + 8 + 24 + 32;
/// Memory for received frames.
type Buffers = Dynamic<3_072>;

type Node = Station<'static, PACKETS, PACKET>;
type Machine = Driver<'static, Late, (), Buffers, REQUESTS, REQUEST>;

/// Link layer and driver alone, with the buffer of the USB.
const LINK: usize = size_of::<Driver<'static, Link<PACKETS, PACKET>, (), Buffers, REQUESTS, REQUEST>>()
    + size_of::<Decoder<DRIVER_OCTETS>>();
const _: () = assert!(
    LINK < 24 * 1_024,
    "the link layer with its driver is to fit into 24 KB"
);

/// Firmware of the stick.
static FIRMWARE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/stick.fw"));

/// What the driver has counted, as of the last message.
static STICK: Mutex<Cell<Stick>> = Mutex::new(Cell::new(Stick::NONE));

fn about() -> Board {
    let (stack_used, stack) = board::stack();
    let memory = Memory {
        link: LINK,
        fixed: board::fixed_octets(),
        stack_used,
        stack,
    };
    let stick = interrupt::free(|key| STICK.borrow(key).get());
    Board { memory, stick }
}

/// The node, from the first message on.
struct Late(Option<&'static mut Node>);

impl Protocol for Late {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if let Some(node) = &mut self.0 {
            node.handle(now, event, radio);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.0.as_ref()?.deadline()
    }
}

/// What a first message makes: a node that is who the message says. All that is large is in memory before: made here it
/// would be on the stack first, and more than once. The stack that the node takes here is free again afterwards.
#[inline(never)]
fn begin(setup: &Setup, now: Instant) -> Option<&'static mut Machine> {
    static STORAGE: ConstStaticCell<Storage<'static>> = ConstStaticCell::new(Storage::new());
    static NODE: StaticCell<Node> = StaticCell::new();
    static MACHINE: ConstStaticCell<Machine> =
        ConstStaticCell::new(Driver::vacant(Late(None), (), Buffers::new()));
    let firmware = Firmware::parse(FIRMWARE).ok()?;
    let (storage, machine) = (STORAGE.try_take()?, MACHINE.try_take()?);
    machine.set_up(firmware, Config::DEFAULT);
    machine.protocol_mut().0 = Some(NODE.try_init_with(|| Node::new(now, setup, storage, about))?);
    Some(machine)
}

#[entry]
fn main() -> ! {
    static DECODER: ConstStaticCell<Decoder<DRIVER_OCTETS>> = ConstStaticCell::new(Decoder::new());
    let decoder = DECODER.take();
    let mut uart = Uart::new();
    let mut machine: Option<&'static mut Machine> = None;
    // it listens from now on
    PipeBus(|octets: &[u8]| uart.write(octets)).act(Act::Rest(None));
    loop {
        decoder.feed(&[uart.read()]);
        while let Some(packet) = decoder.packet() {
            let mut bus = PipeBus(|octets: &[u8]| uart.write(octets));
            let Some((now, tell)) = Tell::parse(packet) else {
                bus.act(Act::Halt(b"a message that is none"));
                continue;
            };
            match (tell, &mut machine) {
                (Tell::Begin(setup), None) => {
                    machine = Setup::from_octets(setup).and_then(|setup| begin(&setup, now));
                    bus.act(match machine {
                        Some(_) => Act::Rest(None),
                        None => Act::Halt(b"a setup that is none"),
                    });
                }
                (Tell::Usb(event), Some(machine)) => work(machine, now, Some(event), &mut bus),
                (Tell::Timer, Some(machine)) => work(machine, now, None, &mut bus),
                (Tell::Begin(_), Some(_)) => bus.act(Act::Halt(b"it has begun already")),
                (_, None) => bus.act(Act::Halt(b"it has not begun yet")),
            }
        }
    }
}

fn work<W: FnMut(&[u8])>(
    machine: &mut Machine,
    now: Instant,
    event: Option<BusEvent<'_>>,
    bus: &mut PipeBus<W>,
) {
    if let Some(event) = event {
        machine.handle(now, event, bus);
    }
    let counts = machine.counts();
    let stick = Stick {
        cut_transfers: counts.cut_transfers,
        overflows: counts.overflows,
        lost_completions: counts.lost_completions,
        restarts: counts.all_restarts(),
    };
    interrupt::free(|key| STICK.borrow(key).set(stick));
    machine.run(now, bus);
    bus.act(Act::Rest(machine.deadline()));
}
