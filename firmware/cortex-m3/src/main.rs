//! An ad hoc node on a Cortex-M3: link layer with power save, driver of the AR9170, IPv6, routes and CoAP. The stick is
//! behind a serial pipe, whose other end keeps the time ([`ar9170::pipe`]).
//!
//! One loop and no interrupt handlers: the core sleeps until there is an octet, and all work is done between a message and
//! the answer to it.
#![no_std]
#![no_main]

mod board;

use ar9170::codec::Firmware;
use ar9170::driver::{BeaconTiming, BusEvent, Config, Driver, Dynamic};
use ar9170::pipe::{Act, DRIVER_OCTETS, Decoder, PipeBus, Tell};
use board::Uart;
use cortex_m_rt::entry;
use node::{Memory, Setup, Station, Storage};
use protocols::mac::ibss::Ibss;
use static_cell::StaticCell;

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
type Machine = Driver<'static, Node, (), Buffers, REQUESTS, REQUEST>;

/// Link layer and driver alone, with the buffer of the USB.
const LINK: usize = size_of::<Driver<'static, Ibss<PACKETS, PACKET>, (), Buffers, REQUESTS, REQUEST>>()
    + size_of::<Decoder<DRIVER_OCTETS>>();
const _: () = assert!(
    LINK < 24 * 1_024,
    "the link layer with its driver is to fit into 24 KB"
);

/// Firmware of the stick.
static FIRMWARE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/stick.fw"));

fn memory() -> Memory {
    let (stack_used, stack) = board::stack();
    Memory {
        link: LINK,
        fixed: board::fixed_octets(),
        stack_used,
        stack,
    }
}

/// What a first message makes: a node that is who the message says.
fn begin(setup: &Setup, now: radio::Instant) -> Option<&'static mut Machine> {
    static STORAGE: StaticCell<Storage<'static>> = StaticCell::new();
    static MACHINE: StaticCell<Machine> = StaticCell::new();
    let firmware = Firmware::parse(FIRMWARE).ok()?;
    let storage = STORAGE.try_init_with(Storage::new)?;
    let beacon = BeaconTiming {
        interval_tu: setup.interval_tu,
        before_tu: 8,
        atim_window_tu: setup.window_tu,
    };
    let config = Config {
        beacon: Some(beacon),
        ..Config::default()
    };
    MACHINE.try_init_with(|| {
        let node = Node::new(now, setup, storage, memory);
        Driver::new(firmware, config, node, (), Buffers::default())
    })
}

#[entry]
fn main() -> ! {
    static DECODER: StaticCell<Decoder<DRIVER_OCTETS>> = StaticCell::new();
    let decoder = DECODER.init_with(Decoder::new);
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
    now: radio::Instant,
    event: Option<BusEvent<'_>>,
    bus: &mut PipeBus<W>,
) {
    if let Some(event) = event {
        machine.handle(now, event, bus);
    }
    machine.run(now, bus);
    bus.act(Act::Rest(machine.deadline()));
}
