//! What the two sides tell each other, and its octets.

use super::MAX_TRANSFER_OCTETS;
use super::packet::{Packet, write};
use crate::codec::u32_at;
use crate::driver::{BusEvent, TransferId};
use radio::Instant;

/// Octets of the time at the front of each [`Tell`].
pub const TIME_OCTETS: usize = 8;

/// What the driver's side is told. With each goes what time it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tell<'a> {
    /// Begin, as these octets say: what they mean is between the two sides.
    Begin(&'a [u8]),
    /// The USB says something.
    Usb(BusEvent<'a>),
    /// It is the time that the last [`Act::Rest`] named.
    Timer,
}

/// What the driver's side does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act<'a> {
    /// [`Bus::reset`](crate::driver::Bus::reset).
    Reset,
    /// [`Bus::control`](crate::driver::Bus::control).
    Control {
        /// The request.
        request: u8,
        /// Its value.
        value: u16,
        /// What goes to the device.
        data: &'a [u8],
    },
    /// [`Bus::command`](crate::driver::Bus::command).
    Command(TransferId, &'a [u8]),
    /// [`Bus::frame`](crate::driver::Bus::frame).
    Frame(TransferId, &'a [u8]),
    /// [`Bus::read`](crate::driver::Bus::read).
    Read,
    /// A last word: it goes on no more, and why.
    Halt(&'a [u8]),
    /// There is nothing more to do until then, or until the next [`Tell`].
    Rest(Option<Instant>),
}

/// No time.
const NEVER: u64 = u64::MAX;

impl<'a> Tell<'a> {
    /// Writes it as a packet; false if it is too long for one. Of a transfer for which the other side has no room it is told the
    /// front, as [`BusEvent::Cut`].
    pub fn write(&self, now: Instant, out: &mut dyn FnMut(&[u8])) -> bool {
        let time = now.as_ns().to_le_bytes();
        let id_octets;
        let (kind, body): (u8, &[u8]) = match self {
            Tell::Begin(octets) => (0x01, octets),
            Tell::Timer => (0x02, &[]),
            Tell::Usb(BusEvent::Attached) => (0x03, &[]),
            Tell::Usb(BusEvent::Detached) => (0x04, &[]),
            Tell::Usb(BusEvent::ControlDone(well)) => (0x05, if *well { &[1] } else { &[0] }),
            Tell::Usb(BusEvent::Sent(id, well)) => {
                let [a, b, c, d] = id.to_le_bytes();
                id_octets = [a, b, c, d, u8::from(*well)];
                (0x06, &id_octets)
            }
            Tell::Usb(BusEvent::Received(transfer)) => match transfer.get(..=MAX_TRANSFER_OCTETS) {
                None => (0x07, transfer),
                Some(_) => (0x09, &transfer[..MAX_TRANSFER_OCTETS]),
            },
            Tell::Usb(BusEvent::ReadFailed) => (0x08, &[]),
            Tell::Usb(BusEvent::Cut(transfer)) => {
                (0x09, &transfer[..transfer.len().min(MAX_TRANSFER_OCTETS)])
            }
        };
        write(kind, [&time, body, &[]], out)
    }

    /// Reads it, and what time it is; `None` if it is no such thing.
    pub fn parse(packet: Packet<'a>) -> Option<(Instant, Tell<'a>)> {
        let (time, body) = packet.body.split_first_chunk::<TIME_OCTETS>()?;
        let tell = match (packet.kind, body) {
            (0x01, _) => Tell::Begin(body),
            (0x02, []) => Tell::Timer,
            (0x03, []) => Tell::Usb(BusEvent::Attached),
            (0x04, []) => Tell::Usb(BusEvent::Detached),
            (0x05, [well @ 0..=1]) => Tell::Usb(BusEvent::ControlDone(*well == 1)),
            (0x06, [_, _, _, _, well @ 0..=1]) => Tell::Usb(BusEvent::Sent(u32_at(body, 0)?, *well == 1)),
            (0x07, _) => Tell::Usb(BusEvent::Received(body)),
            (0x08, []) => Tell::Usb(BusEvent::ReadFailed),
            (0x09, _) => Tell::Usb(BusEvent::Cut(body)),
            _ => return None,
        };
        Some((Instant::from_ns(u64::from_le_bytes(*time)), tell))
    }
}

impl<'a> Act<'a> {
    /// Writes it as a packet; false if it is too long for one.
    pub fn write(&self, out: &mut dyn FnMut(&[u8])) -> bool {
        match *self {
            Act::Reset => write(0x11, [&[]; 3], out),
            Act::Control { request, value, data } => {
                write(0x12, [&[request], &value.to_le_bytes(), data], out)
            }
            Act::Command(id, octets) => write(0x13, [&id.to_le_bytes(), octets, &[]], out),
            Act::Frame(id, octets) => write(0x14, [&id.to_le_bytes(), octets, &[]], out),
            Act::Read => write(0x15, [&[]; 3], out),
            Act::Halt(why) => write(0x16, [why, &[], &[]], out),
            Act::Rest(until) => {
                let ns = until.map_or(NEVER, Instant::as_ns);
                write(0x17, [&ns.to_le_bytes(), &[], &[]], out)
            }
        }
    }

    /// Reads it; `None` if it is no such thing.
    pub fn parse(packet: Packet<'a>) -> Option<Act<'a>> {
        let body = packet.body;
        let named = || Some((u32_at(body, 0)?, body.get(4..)?));
        Some(match (packet.kind, body) {
            (0x11, []) => Act::Reset,
            (0x12, [request, low, high, data @ ..]) => Act::Control {
                request: *request,
                value: u16::from_le_bytes([*low, *high]),
                data,
            },
            (0x13, _) => named().map(|(id, octets)| Act::Command(id, octets))?,
            (0x14, _) => named().map(|(id, octets)| Act::Frame(id, octets))?,
            (0x15, []) => Act::Read,
            (0x16, _) => Act::Halt(body),
            (0x17, _) => {
                let ns = u64::from_le_bytes(body.try_into().ok()?);
                Act::Rest((ns != NEVER).then(|| Instant::from_ns(ns)))
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DRIVER_OCTETS, Decoder};
    use super::*;
    use proptest::prelude::*;
    use std::boxed::Box;
    use std::vec;

    /// What is told of a transfer of so many octets, and of a timer behind it.
    fn told(octets: usize, as_cut: bool) -> (usize, bool) {
        let transfer = vec![0xd7; octets];
        let event = if as_cut {
            BusEvent::Cut(&transfer)
        } else {
            BusEvent::Received(&transfer)
        };
        let mut decoder = Box::<Decoder<DRIVER_OCTETS>>::default();
        let mut tell = |tell: Tell<'_>| {
            let took = tell.write(Instant::ZERO, &mut |part| {
                assert_eq!(decoder.feed(part), part.len())
            });
            assert!(took);
            let told = decoder
                .packet()
                .and_then(Tell::parse)
                .map(|(_, told)| match told {
                    Tell::Usb(BusEvent::Received(octets)) => (octets.len(), false),
                    Tell::Usb(BusEvent::Cut(octets)) => (octets.len(), true),
                    _ => (0, false),
                });
            told.expect("the other side has room for it")
        };
        let first = tell(Tell::Usb(event));
        assert_eq!(tell(Tell::Timer), (0, false));
        assert_eq!(decoder.damaged_octets(), 0);
        first
    }

    #[test]
    fn a_transfer_for_which_there_is_no_room_is_told_as_cut() {
        let most = MAX_TRANSFER_OCTETS;
        assert_eq!(told(most, false), (most, false));
        for octets in [most + 1, 8_192, 0x1_0000] {
            assert_eq!(told(octets, false), (most, true));
            assert_eq!(told(octets, true), (most, true));
        }
        assert_eq!(told(7, true), (7, true));
    }

    fn tells(octets: &[u8], id: u32, yes: bool) -> [Tell<'_>; 9] {
        [
            Tell::Begin(octets),
            Tell::Timer,
            Tell::Usb(BusEvent::Attached),
            Tell::Usb(BusEvent::Detached),
            Tell::Usb(BusEvent::ControlDone(yes)),
            Tell::Usb(BusEvent::Sent(id, yes)),
            Tell::Usb(BusEvent::Received(octets)),
            Tell::Usb(BusEvent::ReadFailed),
            Tell::Usb(BusEvent::Cut(octets)),
        ]
    }

    fn acts(data: &[u8], id: u32, yes: bool) -> [Act<'_>; 7] {
        let control = Act::Control {
            request: id as u8,
            value: id as u16,
            data,
        };
        let until = yes.then_some(Instant::from_ns(u64::from(id) << 20));
        [
            Act::Reset,
            control,
            Act::Command(id, data),
            Act::Frame(id, data),
            Act::Read,
            Act::Halt(data),
            Act::Rest(until),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else { 200 }))]
        #[test]
        fn both_sides_understand_each_other(
            octets in proptest::collection::vec(any::<u8>(), 0..80),
            id: u32,
            yes: bool,
            now in 0_u64..1 << 62,
        ) {
            let now = Instant::from_ns(now);
            let mut decoder = Decoder::<128>::new();
            for tell in tells(&octets, id, yes) {
                let took = tell.write(now, &mut |part| assert_eq!(decoder.feed(part), part.len()));
                prop_assert!(took);
                prop_assert_eq!(Tell::parse(decoder.packet().unwrap()), Some((now, tell)));
            }
            for act in acts(&octets, id, yes) {
                prop_assert!(act.write(&mut |part| assert_eq!(decoder.feed(part), part.len())));
                prop_assert_eq!(Act::parse(decoder.packet().unwrap()), Some(act));
            }
        }

        #[test]
        fn any_packet_is_read_or_refused(kind: u8, body in proptest::collection::vec(any::<u8>(), 0..40)) {
            let packet = Packet { kind, body: &body };
            let (tell, act) = (Tell::parse(packet), Act::parse(packet));
            prop_assert!(tell.is_none() || act.is_none());
        }
    }
}
