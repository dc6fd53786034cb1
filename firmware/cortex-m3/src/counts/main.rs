//! Counts instructions of the driver: of parsers, of the interrupt, of a turn behind it, of copies. In QEMU with
//! `-icount shift=6` each instruction takes 64 ns of the board's time, whatever it is; so what is counted is instructions and not
//! cycles, and the same in each run. A line for each count goes to the UART, and `end`.
#![no_std]
#![no_main]

mod stick;
mod transfers;

use core::fmt::Write;
use core::hint::black_box;

use ar9170::codec::Firmware;
use ar9170::codec::stream::{FirstHeader, Search, Unit, Units};
use ar9170::driver::{Buffers, BusEvent, Config, Driver, Dynamic, Hybrid, Static};
use cortex_m::asm;
use cortex_m_rt::entry;
use firmware::board::{Clock, Uart};
use radio::{Duration, Event, Instant, Protocol, Radio};
use stick::Stick;
use transfers::{ALL, Transfer};

/// Of an instruction, and of a period of the clock, ns.
const INSTRUCTION_NS: u32 = 64;
const PERIOD_NS: u32 = 40;

/// Firmware of the stick.
static FIRMWARE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/stick.fw"));

/// Counts instructions.
struct Counter {
    clock: Clock,
    uart: Uart,
    /// Periods of nothing.
    nothing: u32,
}

impl Counter {
    fn count(&mut self, what: &str, which: &str, work: &mut dyn FnMut()) {
        let periods = self.clock.periods(work).wrapping_sub(self.nothing);
        let instructions = (periods * PERIOD_NS + INSTRUCTION_NS / 2) / INSTRUCTION_NS;
        let _ = writeln!(self.uart, "{what} {which} {instructions}");
    }
}

/// Hears all, and does nothing.
struct Quiet {
    heard: u32,
}

impl Protocol for Quiet {
    fn handle(&mut self, _: Instant, event: Event<'_>, _: &mut dyn Radio) {
        self.heard += u32::from(matches!(event, Event::Indication(_) | Event::Beacon(_)));
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

/// Three parsers over the same transfers.
fn parsers(counter: &mut Counter) {
    for (name, units) in ALL {
        let mut sequence = 0..;
        let transfer = Transfer::new(units, &mut || sequence.next().unwrap_or(0));
        let octets = transfer.octets();
        let _ = writeln!(counter.uart, "octets {name} {}", octets.len());
        counter.count("first", name, &mut || {
            black_box(FirstHeader(black_box(octets)).response().map(|r| r.sequence));
        });
        counter.count("search", name, &mut || {
            black_box(Search(black_box(octets)).flatten().count());
        });
        counter.count("walk", name, &mut || {
            for unit in Units::new(black_box(octets)) {
                match unit {
                    Unit::Responses(block) => black_box(block.count()),
                    Unit::Frame(frame) => black_box(frame.len()),
                    Unit::Damaged(octets) => black_box(octets.len()),
                };
            }
        });
    }
}

/// The interrupt of a received transfer, and the turns that tell the protocol of it and post the next read.
#[inline(never)]
fn interrupts<B: Buffers>(counter: &mut Counter, [interrupt, turn]: [&str; 2], buffers: B) -> Option<()> {
    let firmware = Firmware::parse(FIRMWARE).ok()?;
    let mut stick = Stick::new(firmware.command_buffers);
    let config = Config {
        reads: 1,
        ..Config::DEFAULT
    };
    let mut driver = Driver::<_, _, _, 2, 256>::new(firmware, config, Quiet { heard: 0 }, (), buffers);
    let mut now = stick.settle(Instant::ZERO, &mut driver)?;
    // the second time, as each that follows
    for (name, units) in ALL.into_iter().flat_map(|all| [("", all.1), all]) {
        let transfer = Transfer::new(units, &mut || stick.next());
        now += Duration::from_us(1);
        let mut handle = || driver.handle(now, BusEvent::Received(transfer.octets()), &mut stick);
        match name {
            "" => handle(),
            _ => counter.count(interrupt, name, &mut handle),
        }
        let mut run = || driver.run(now, &mut stick);
        match name {
            "" => run(),
            _ => counter.count(turn, name, &mut run),
        }
        // what it asks of the stick meanwhile
        now = stick.settle(now, &mut driver)?;
    }
    let frames: usize = ALL.iter().flat_map(|all| all.1).filter(|u| u.is_frame()).count();
    let _ = writeln!(
        counter.uart,
        "heard {interrupt} {}",
        driver.protocol().heard as usize == 2 * frames
    );
    Some(())
}

/// Copies of 1000 octets: as the driver does it, and octet by octet.
fn copies(counter: &mut Counter) {
    #[repr(align(4))]
    struct Aligned([u8; 1_000]);
    let (from, mut to) = (Aligned([7; 1_000]), Aligned([0; 1_000]));
    counter.count("copy", "words", &mut || {
        black_box(&mut to.0).copy_from_slice(black_box(&from.0));
    });
    counter.count("copy", "octets", &mut || {
        for (to, from) in to.0.iter_mut().zip(&from.0) {
            *to = black_box(*from);
        }
    });
}

#[entry]
fn main() -> ! {
    if let Some(clock) = Clock::start() {
        let mut counter = Counter {
            clock,
            uart: Uart::new(),
            nothing: 0,
        };
        counter.nothing = counter.clock.periods(&mut || ());
        parsers(&mut counter);
        let policies = [
            interrupts(
                &mut counter,
                ["static", "static-turn"],
                Static::<2, 2_048>::default(),
            ),
            interrupts(&mut counter, ["dynamic", "dynamic-turn"], Dynamic::<4_096>::new()),
            interrupts(
                &mut counter,
                ["hybrid", "hybrid-turn"],
                Hybrid::<2, 2_048>::default(),
            ),
        ];
        copies(&mut counter);
        let complete = policies.iter().all(Option::is_some);
        let _ = writeln!(counter.uart, "end - {complete}");
    }
    loop {
        asm::wfi();
    }
}
