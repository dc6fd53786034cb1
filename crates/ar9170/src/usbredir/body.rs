//! The bodies of packets.

use super::{Packet, VERSION_OCTETS, capability};
use crate::codec::{array, u16_at, u32_at};
use std::vec::Vec;

/// Endpoints of a device: 0 to 15 out, and as many in.
const ENDPOINTS: usize = 32;

/// What a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceConnect {
    /// 0 low, 1 full, 2 high, 3 super.
    pub speed: u8,
    /// Class, subclass, protocol.
    pub class: [u8; 3],
    /// Vendor.
    pub vendor: u16,
    /// Product.
    pub product: u16,
    /// Version, in binary coded decimals.
    pub version: u16,
}

/// Interfaces of a configuration; each has a number, and class, subclass and protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interfaces(pub Vec<(u8, [u8; 3])>);

/// Types of endpoints.
pub mod endpoint {
    /// Control.
    pub const CONTROL: u8 = 0;
    /// Bulk.
    pub const BULK: u8 = 2;
    /// Interrupt.
    pub const INTERRUPT: u8 = 3;
    /// There is none.
    pub const ABSENT: u8 = 255;
}

/// The endpoints, each at its number, and those to the host at 16 and more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Endpoints {
    /// Types: see [`endpoint`].
    pub types: [u8; ENDPOINTS],
    /// Intervals of the interrupt endpoints.
    pub intervals: [u8; ENDPOINTS],
    /// Interfaces.
    pub interfaces: [u8; ENDPOINTS],
    /// Octets of the largest packet.
    pub max_packet: [u16; ENDPOINTS],
}

impl Endpoints {
    /// Only the two of control transfers.
    pub const fn none() -> Endpoints {
        let mut types = [endpoint::ABSENT; ENDPOINTS];
        (types[0], types[16]) = (endpoint::CONTROL, endpoint::CONTROL);
        Endpoints {
            types,
            intervals: [0; ENDPOINTS],
            interfaces: [0; ENDPOINTS],
            max_packet: [0; ENDPOINTS],
        }
    }

    /// With a further one: its address, type, interval and largest packet; all are of interface 0.
    pub const fn with(mut self, address: u8, kind: u8, interval: u8, max_packet: u16) -> Endpoints {
        let at = (address & 15 | address >> 3 & 16) as usize;
        self.types[at] = kind;
        self.intervals[at] = interval;
        self.max_packet[at] = max_packet;
        self
    }
}

/// A control transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Control {
    /// 0x00 or 0x80.
    pub endpoint: u8,
    /// Which request.
    pub request: u8,
    /// Direction, type and recipient.
    pub request_type: u8,
    /// How it has ended.
    pub status: u8,
    /// A parameter.
    pub value: u16,
    /// Another.
    pub index: u16,
    /// Octets that are wanted, or that came.
    pub length: u16,
}

/// A bulk or interrupt transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Address of the endpoint; bit 7 is set towards the host.
    pub endpoint: u8,
    /// How it has ended.
    pub status: u8,
    /// Octets that are wanted, or that came. 16 bits for an interrupt transfer.
    pub length: u32,
}

impl Packet {
    /// Writes the body and tells the kind.
    pub(super) fn emit_body(&self, out: &mut Vec<u8>) -> u32 {
        match self {
            Packet::Hello(version, capabilities) => {
                out.extend(version.iter().take(VERSION_OCTETS));
                out.resize(VERSION_OCTETS, 0);
                out.extend(capabilities.to_le_bytes());
                0
            }
            Packet::DeviceConnect(device) => {
                out.push(device.speed);
                out.extend(device.class);
                let numbers = [device.vendor, device.product, device.version];
                numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
                1
            }
            Packet::DeviceDisconnect => 2,
            Packet::Reset => 3,
            Packet::Interfaces(interfaces) => {
                let all = &interfaces.0[..interfaces.0.len().min(ENDPOINTS)];
                out.extend((all.len() as u32).to_le_bytes());
                // numbers of all, then their classes, subclasses and protocols
                for column in 0..4 {
                    let end = out.len() + ENDPOINTS;
                    out.extend(
                        all.iter()
                            .map(|(number, class)| [*number, class[0], class[1], class[2]][column]),
                    );
                    out.resize(end, 0);
                }
                4
            }
            Packet::Endpoints(e) => {
                let columns = [e.types, e.intervals, e.interfaces];
                columns.iter().for_each(|column| out.extend(column));
                e.max_packet.iter().for_each(|n| out.extend(n.to_le_bytes()));
                5
            }
            Packet::SetConfiguration(n) => octets(6, &[*n], out),
            Packet::GetConfiguration => 7,
            Packet::Configuration(status, n) => octets(8, &[*status, *n], out),
            Packet::SetAlternative(interface, n) => octets(9, &[*interface, *n], out),
            Packet::GetAlternative(interface) => octets(10, &[*interface], out),
            Packet::Alternative(status, interface, n) => octets(11, &[*status, *interface, *n], out),
            Packet::StartInterrupts(endpoint) => octets(15, &[*endpoint], out),
            Packet::StopInterrupts(endpoint) => octets(16, &[*endpoint], out),
            Packet::Interrupts(status, endpoint) => octets(17, &[*status, *endpoint], out),
            Packet::Cancel => 21,
            Packet::Control(c, data) => {
                out.extend([c.endpoint, c.request, c.request_type, c.status]);
                let numbers = [c.value, c.index, c.length];
                numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
                out.extend(data);
                100
            }
            Packet::Bulk(t, data) => {
                out.extend([t.endpoint, t.status]);
                out.extend((t.length as u16).to_le_bytes());
                // the stream: none
                out.extend([0; 4]);
                out.extend(((t.length >> 16) as u16).to_le_bytes());
                out.extend(data);
                101
            }
            Packet::Interrupt(t, data) => {
                out.extend([t.endpoint, t.status]);
                out.extend((t.length as u16).to_le_bytes());
                out.extend(data);
                103
            }
            Packet::Other(kind) => *kind,
        }
    }

    /// Reads a body; `None` if it is too short. Octets behind what is known belong to later versions, and are skipped.
    pub(super) fn parse_body(kind: u32, body: &[u8]) -> Option<Packet> {
        let at = |n: usize| body.get(n).copied();
        Some(match kind {
            0 => {
                let version: [u8; VERSION_OCTETS] = array(body, 0)?;
                let end = version.iter().rposition(|octet| *octet != 0).map_or(0, |n| n + 1);
                let capabilities = u32_at(body, VERSION_OCTETS).unwrap_or_default();
                Packet::Hello(version[..end].to_vec(), capabilities)
            }
            1 => Packet::DeviceConnect(DeviceConnect {
                speed: at(0)?,
                class: array(body, 1)?,
                vendor: u16_at(body, 4)?,
                product: u16_at(body, 6)?,
                version: u16_at(body, 8)?,
            }),
            2 => Packet::DeviceDisconnect,
            3 => Packet::Reset,
            4 => {
                let count = u32_at(body, 0)? as usize;
                let columns = body.get(4..4 + 4 * ENDPOINTS).filter(|_| count <= ENDPOINTS)?;
                let of = |n: usize| {
                    let class = [1, 2, 3].map(|column| columns[column * ENDPOINTS + n]);
                    (columns[n], class)
                };
                Packet::Interfaces(Interfaces((0..count).map(of).collect()))
            }
            5 => {
                let mut max_packet = [0; ENDPOINTS];
                for (n, octets) in max_packet.iter_mut().enumerate() {
                    *octets = u16_at(body, 3 * ENDPOINTS + 2 * n)?;
                }
                Packet::Endpoints(Endpoints {
                    types: array(body, 0)?,
                    intervals: array(body, ENDPOINTS)?,
                    interfaces: array(body, 2 * ENDPOINTS)?,
                    max_packet,
                })
            }
            6 => Packet::SetConfiguration(at(0)?),
            7 => Packet::GetConfiguration,
            8 => Packet::Configuration(at(0)?, at(1)?),
            9 => Packet::SetAlternative(at(0)?, at(1)?),
            10 => Packet::GetAlternative(at(0)?),
            11 => Packet::Alternative(at(0)?, at(1)?, at(2)?),
            15 => Packet::StartInterrupts(at(0)?),
            16 => Packet::StopInterrupts(at(0)?),
            17 => Packet::Interrupts(at(0)?, at(1)?),
            21 => Packet::Cancel,
            100 => {
                let control = Control {
                    endpoint: at(0)?,
                    request: at(1)?,
                    request_type: at(2)?,
                    status: at(3)?,
                    value: u16_at(body, 4)?,
                    index: u16_at(body, 6)?,
                    length: u16_at(body, 8)?,
                };
                Packet::Control(control, body[10..].to_vec())
            }
            101 => {
                let transfer = Transfer {
                    endpoint: at(0)?,
                    status: at(1)?,
                    length: u32::from(u16_at(body, 2)?) | u32::from(u16_at(body, 8)?) << 16,
                };
                Packet::Bulk(transfer, body[10..].to_vec())
            }
            103 => {
                let transfer = Transfer {
                    endpoint: at(0)?,
                    status: at(1)?,
                    length: u16_at(body, 2)?.into(),
                };
                Packet::Interrupt(transfer, body[4..].to_vec())
            }
            kind => Packet::Other(kind),
        })
    }
}

fn octets(kind: u32, body: &[u8], out: &mut Vec<u8>) -> u32 {
    out.extend(body);
    kind
}

/// Whether the other side can be talked to.
pub(super) const fn suffices(capabilities: u32) -> bool {
    capabilities & capability::NEEDED == capability::NEEDED
}
