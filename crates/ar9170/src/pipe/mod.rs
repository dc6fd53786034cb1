//! The USB over a pipe of octets: the driver on one side, the stick on the other, each in a computer of its own.
//!
//! ```text
//! driver  --Act--> pipe --> bus, stick        what the driver asks of the USB, and Rest behind it
//!         <-Tell-- pipe <--                   what the driver is told, and when that was
//! ```
//!
//! The side with the stick keeps the time: each [`Tell`] says what time it is, and the driver's side answers with any
//! number of [`Act`]s, the last of which is [`Act::Rest`]; one of these says at the start that it listens. So both keep step, however slow the pipe is, and what the
//! driver computes takes none of that time.
//!
//! What belongs here: messages and their octets. What does not: whatever the pipe is made of.

mod message;
mod packet;

pub use message::{Act, Tell};
pub use packet::{Decoder, Packet, write};

use crate::driver::{Bus, TransferId};

/// Octets of the longest transfer to the host that goes through a pipe: what Contiki80211 has room for. A longer one is cut, so that
/// what ends behind it is lost. A multiple of four, so that the cut never falls into the prefix of a unit.
pub const MAX_TRANSFER_OCTETS: usize = 2_048;
/// Octets that a [`Decoder`] on the driver's side needs.
pub const DRIVER_OCTETS: usize = packet::OVERHEAD_OCTETS + message::TIME_OCTETS + MAX_TRANSFER_OCTETS;
/// Octets that a [`Decoder`] on the stick's side needs: for a piece of the firmware.
pub const STICK_OCTETS: usize = packet::OVERHEAD_OCTETS + 4_096 + 8;

/// The driver's end of the pipe: every action becomes a message.
pub struct PipeBus<W>(pub W);

impl<W: FnMut(&[u8])> PipeBus<W> {
    /// Says something that is not for the bus.
    pub fn act(&mut self, act: Act<'_>) {
        act.write(&mut self.0);
    }
}

impl<W: FnMut(&[u8])> Bus for PipeBus<W> {
    fn reset(&mut self) {
        self.act(Act::Reset);
    }

    fn control(&mut self, request: u8, value: u16, data: &[u8]) {
        self.act(Act::Control { request, value, data });
    }

    fn command(&mut self, id: TransferId, octets: &[u8]) {
        self.act(Act::Command(id, octets));
    }

    fn frame(&mut self, id: TransferId, octets: &[u8]) {
        self.act(Act::Frame(id, octets));
    }

    fn read(&mut self) {
        self.act(Act::Read);
    }
}
