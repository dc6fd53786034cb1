//! What the board is: a UART of Arm's CMSDK (DDI 0479, 4.3) as in QEMU's mps2-an385, and the memory. All that touches
//! addresses is here.
#![allow(unsafe_code)]

use core::fmt::Write;
use core::panic::PanicInfo;
use core::ptr::{addr_of, read_volatile, write_volatile};

use ar9170::pipe::Act;
use cortex_m::asm;
use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m::peripheral::{NVIC, Peripherals, SYST};
use cortex_m_rt::STACK_PAINT_VALUE;

/// The first UART.
const UART: usize = 0x4000_4000;
const DATA: usize = UART;
const STATE: usize = UART + 0x4;
const CONTROL: usize = UART + 0x8;
const INTERRUPTS: usize = UART + 0xc;
const BAUD_DIVIDER: usize = UART + 0x10;
/// Bits of the state: no room for an octet to send, an octet is there.
const SENDING: u32 = 1;
const RECEIVED: u32 = 2;
/// Bits of control: sender, receiver, and an interrupt when an octet is there.
const ON: u32 = 1 | 2 | 8;
/// The bit of that interrupt.
const RECEIVE_INTERRUPT: u32 = 2;

/// Its number.
#[derive(Clone, Copy)]
struct Receive;

// SAFETY: interrupt 0 of the board is the receive interrupt of its first UART, and there is no other value of the type.
unsafe impl InterruptNumber for Receive {
    fn number(self) -> u16 {
        0
    }
}

fn get(register: usize) -> u32 {
    // SAFETY: `register` is one of those above, which the board has, aligned.
    unsafe { read_volatile(register as *const u32) }
}

fn set(register: usize, value: u32) {
    // SAFETY: as for `get`; nothing in memory changes by it.
    unsafe { write_volatile(register as *mut u32, value) }
}

/// The serial pipe.
pub struct Uart(());

impl Default for Uart {
    fn default() -> Self {
        Uart::new()
    }
}

impl Uart {
    /// Switches it on. Interrupts are not taken: they end the sleep of the core, and nothing else.
    pub fn new() -> Uart {
        cortex_m::interrupt::disable();
        set(BAUD_DIVIDER, 16);
        set(CONTROL, ON);
        // whatever came too early; QEMU looks for more after this, and not after the line above
        get(DATA);
        // SAFETY: interrupts are masked, so that no handler is called for it.
        unsafe { NVIC::unmask(Receive) };
        Uart(())
    }

    /// The next octet; the core sleeps until there is one.
    pub fn read(&mut self) -> u8 {
        while get(STATE) & RECEIVED == 0 {
            asm::wfi();
            set(INTERRUPTS, RECEIVE_INTERRUPT);
            NVIC::unpend(Receive);
        }
        get(DATA) as u8
    }

    /// Sends octets; returns when the last has room.
    pub fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            while get(STATE) & SENDING != 0 {}
            set(DATA, u32::from(*octet));
        }
    }
}

/// The system timer of the core, which counts its clock down: 25 MHz.
pub struct Clock(SYST);

/// What it counts to.
const CLOCK_MASK: u32 = 0xff_ffff;

impl Clock {
    /// Starts it; `None` if it was started before.
    pub fn start() -> Option<Clock> {
        let mut timer = Peripherals::take()?.SYST;
        timer.set_clock_source(SystClkSource::Core);
        timer.set_reload(CLOCK_MASK);
        timer.clear_current();
        timer.enable_counter();
        Some(Clock(timer))
    }

    /// Its periods while `work` is done, and reading it, up to 2^24.
    #[inline(never)]
    pub fn periods(&mut self, work: &mut dyn FnMut()) -> u32 {
        let begin = SYST::get_current();
        work();
        begin.wrapping_sub(SYST::get_current()) & CLOCK_MASK
    }
}

unsafe extern "C" {
    static _stack_end: u32;
    static _stack_start: u32;
    static __sdata: u32;
    static __sheap: u32;
}

/// Octets of stack that were ever used, and those there are. The stack was painted before the program began.
pub fn stack() -> (usize, usize) {
    let (end, start) = (addr_of!(_stack_end), addr_of!(_stack_start));
    let octets = start as usize - end as usize;
    let painted = (0..octets / 4)
        // SAFETY: from the linker's first word of the stack to its last; words of it are read while others are in use.
        .take_while(|i| unsafe { read_volatile(end.add(*i)) } == STACK_PAINT_VALUE)
        .count();
    (octets - 4 * painted, octets)
}

/// Octets of RAM that are not stack.
pub fn fixed_octets() -> usize {
    addr_of!(__sheap) as usize - addr_of!(__sdata) as usize
}

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        Uart::write(self, text.as_bytes());
        Ok(())
    }
}

/// Writes into a buffer what fits.
struct Text {
    octets: [u8; 160],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for (place, octet) in self.octets[self.len..].iter_mut().zip(text.bytes()) {
            *place = octet;
            self.len += 1;
        }
        Ok(())
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let mut text = Text {
        octets: [0; 160],
        len: 0,
    };
    let _ = write!(text, "{info}");
    Act::Halt(&text.octets[..text.len]).write(&mut |octets| Uart(()).write(octets));
    loop {
        asm::wfi();
    }
}
