//! A stick that does as it is told, and nothing else: as much of one as it takes to bring a driver up.

use ar9170::codec::command::MAX_PAYLOAD_OCTETS;
use ar9170::codec::eeprom::Eeprom;
use ar9170::codec::stream::{RESPONSE_MARK, write_unit};
use ar9170::codec::{Code, register};
use ar9170::driver::{Buffers, Bus, BusEvent, Driver, TransferId, Upper};
use frame::MacAddr;
use radio::{Duration, Instant, Protocol};

/// Octets of the longest transfer of responses: one of 60 octets.
const OCTETS: usize = 80;
/// The event with which firmware begins.
const BOOT: u8 = 0xcf;

/// What it has to say: at most one of each at a time.
pub struct Stick {
    attached: bool,
    control: bool,
    started: bool,
    sent: Option<TransferId>,
    answer: [u8; OCTETS],
    answered: usize,
    sequence: u8,
    command_buffers: u8,
    reads: u32,
}

impl Stick {
    /// It was just plugged in. Responses are numbered modulo the command buffers of its firmware.
    pub const fn new(command_buffers: u8) -> Stick {
        Stick {
            command_buffers,
            attached: true,
            control: false,
            started: false,
            sent: None,
            answer: [0; OCTETS],
            answered: 0,
            sequence: 0,
            reads: 0,
        }
    }

    /// Number of the next response.
    pub fn next(&mut self) -> u8 {
        let sequence = self.sequence;
        self.sequence = (sequence + 1) % self.command_buffers.max(1);
        sequence
    }

    fn say(&mut self, code: u8, payload: &[u8]) {
        let header = [payload.len() as u8, code, self.next(), 0];
        let unit = write_unit(&[&RESPONSE_MARK, &header, payload], &mut self.answer);
        self.answered = unit.unwrap_or(0);
    }

    /// Lets it have and say what there is, until the driver is up and has nothing to ask, and tells when that is; `None` if it
    /// does not come so far.
    pub fn settle<P: Protocol, U: Upper, B: Buffers, const N: usize, const L: usize>(
        &mut self,
        now: Instant,
        driver: &mut Driver<'_, P, U, B, N, L>,
    ) -> Option<Instant> {
        (1..10_000).map(|us| now + Duration::from_us(us)).find(|now| {
            self.tell(*now, driver);
            driver.run(*now, self);
            driver.is_up() && self.is_quiet()
        })
    }

    fn is_quiet(&self) -> bool {
        !self.control && self.sent.is_none() && self.answered == 0
    }

    /// Tells one thing.
    fn tell<P: Protocol, U: Upper, B: Buffers, const N: usize, const L: usize>(
        &mut self,
        now: Instant,
        driver: &mut Driver<'_, P, U, B, N, L>,
    ) {
        if core::mem::take(&mut self.attached) {
            driver.handle(now, BusEvent::Attached, self);
        } else if core::mem::take(&mut self.control) {
            driver.handle(now, BusEvent::ControlDone(true), self);
            if core::mem::take(&mut self.started) {
                self.say(BOOT, &[]);
            }
        } else if let Some(id) = self.sent.take() {
            driver.handle(now, BusEvent::Sent(id, true), self);
        } else if self.answered > 0 && self.reads > 0 {
            self.reads -= 1;
            let (octets, transfer) = (core::mem::take(&mut self.answered), self.answer);
            driver.handle(now, BusEvent::Received(&transfer[..octets]), self);
        }
    }
}

/// What is at an address: the identity of the stick, and zeros.
fn register(address: &[u8]) -> [u8; 4] {
    let identity = Eeprom {
        ghz5: false,
        ghz2_4: true,
        domain: 0,
        address: MacAddr::local(1),
        receive_chains: 1,
        transmit_chains: 1,
    };
    let octets = identity.emit();
    let address = address.first_chunk().map_or(0, |a| u32::from_le_bytes(*a));
    let at = address.wrapping_sub(register::EEPROM) as usize;
    let word = octets.get(at..).and_then(|octets| octets.first_chunk());
    word.copied().unwrap_or_default()
}

impl Bus for Stick {
    fn reset(&mut self) {
        *self = Stick::new(self.command_buffers);
    }

    fn control(&mut self, _request: u8, _value: u16, data: &[u8]) {
        self.control = true;
        // without octets it is the order to start
        self.started = data.is_empty();
    }

    fn command(&mut self, id: TransferId, octets: &[u8]) {
        self.sent = Some(id);
        let [_, code, _, _, payload @ ..] = octets else {
            return;
        };
        match Code::from_octet(*code) {
            Some(Code::Echo) => self.say(*code, payload),
            Some(Code::ReadRegisters) => {
                let mut words = [0; MAX_PAYLOAD_OCTETS];
                let words = &mut words[..payload.len().min(MAX_PAYLOAD_OCTETS)];
                for (word, address) in words.chunks_exact_mut(4).zip(payload.chunks_exact(4)) {
                    word.copy_from_slice(&register(address));
                }
                self.say(*code, words);
            }
            Some(Code::ReadTsf) => self.say(*code, &[0; 8]),
            Some(Code::Frequency | Code::RfInit) => self.say(*code, &[0; 4]),
            _ => self.say(*code, &[]),
        }
    }

    fn frame(&mut self, id: TransferId, _octets: &[u8]) {
        self.sent = Some(id);
    }

    fn read(&mut self) {
        self.reads += 1;
    }
}
