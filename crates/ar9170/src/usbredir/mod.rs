//! Packets of usbredir, the protocol by which one computer lends a USB device to another: QEMU's device `usb-redir` is
//! the one that borrows.
//!
//! A packet is a header (kind, octets that follow, id) and a body; all numbers are little-endian. What stands in some
//! bodies depends on what both sides are capable of. Here a side has all of [`capability::NEEDED`], as everything since
//! 2013 does, or it is refused; so there is one layout of each packet.

mod body;
mod reader;

pub use body::{Control, DeviceConnect, Endpoints, Interfaces, Transfer, endpoint};
pub use reader::{Reader, RedirError};

use std::vec::Vec;

/// Octets of the version text of a hello.
pub const VERSION_OCTETS: usize = 64;
/// Octets of the longest body that is taken: more than the longest transfer of the stick.
pub const MAX_BODY_OCTETS: usize = 1 << 16;

/// Bits of the capabilities in a hello.
pub mod capability {
    /// The version of the device is told.
    pub const DEVICE_VERSION: u32 = 1 << 1;
    /// The largest packet of each endpoint is told.
    pub const MAX_PACKET: u32 = 1 << 4;
    /// Ids have 64 bits.
    pub const WIDE_IDS: u32 = 1 << 5;
    /// Lengths of bulk transfers have 32 bits.
    pub const WIDE_LENGTHS: u32 = 1 << 6;
    /// What both sides must have here.
    pub const NEEDED: u32 = DEVICE_VERSION | MAX_PACKET | WIDE_IDS | WIDE_LENGTHS;
}

/// How a transfer has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Status {
    /// Well.
    Success = 0,
    /// It was taken back.
    Cancelled = 1,
    /// The packet makes no sense.
    Invalid = 2,
    /// The device could not.
    Failed = 3,
    /// The endpoint is halted, or the request unknown.
    Stall = 4,
    /// It took too long.
    Timeout = 5,
    /// The device had more than was asked for.
    Babble = 6,
}

impl Status {
    /// All of them.
    pub const ALL: [Status; 7] = [
        Status::Success,
        Status::Cancelled,
        Status::Invalid,
        Status::Failed,
        Status::Stall,
        Status::Timeout,
        Status::Babble,
    ];
}

/// What one side tells the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet {
    /// The first packet of each side: what it is, up to 64 octets, and what it is capable of.
    Hello(Vec<u8>, u32),
    /// A device is there.
    DeviceConnect(DeviceConnect),
    /// It is gone.
    DeviceDisconnect,
    /// Reset the device.
    Reset,
    /// Its interfaces.
    Interfaces(Interfaces),
    /// Its endpoints.
    Endpoints(Endpoints),
    /// Choose a configuration.
    SetConfiguration(u8),
    /// Which one is it?
    GetConfiguration,
    /// Status, and the configuration that holds.
    Configuration(u8, u8),
    /// Choose an alternative: interface, alternative.
    SetAlternative(u8, u8),
    /// Which one is it, for this interface?
    GetAlternative(u8),
    /// Status, interface, and the alternative that holds.
    Alternative(u8, u8, u8),
    /// Read from this interrupt endpoint from now on.
    StartInterrupts(u8),
    /// No longer.
    StopInterrupts(u8),
    /// Status and endpoint.
    Interrupts(u8, u8),
    /// Take the transfer with this id back.
    Cancel,
    /// A control transfer, or its end.
    Control(Control, Vec<u8>),
    /// A bulk transfer, or its end.
    Bulk(Transfer, Vec<u8>),
    /// An interrupt transfer, or its end.
    Interrupt(Transfer, Vec<u8>),
    /// Something that we know nothing of, by its kind: streams, isochronous transfers, filters.
    Other(u32),
}

impl Packet {
    /// Appends the packet with its header. `id` names a transfer, else it is 0. [`Packet::Other`] has no body.
    pub fn emit(&self, id: u64, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let kind = self.emit_body(&mut body);
        out.extend(kind.to_le_bytes());
        out.extend((body.len() as u32).to_le_bytes());
        match self {
            Packet::Hello(..) => out.extend((id as u32).to_le_bytes()),
            _ => out.extend(id.to_le_bytes()),
        }
        out.extend(body);
    }
}
