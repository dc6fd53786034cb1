//! Control frames: ACK, CTS, RTS, PS-Poll.

use core::fmt;

use crate::addr::MacAddr;
use crate::error::{EmitError, ParseError};
use crate::mac::fields::{Aid, Flags, FrameControl, Kind};
use crate::mac::header;
use crate::wire::{Reader, Wire, Writer};

/// Acknowledgement (IEEE 802.11-2016, 9.3.1.4): 10 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ack {
    /// Flags; normally none.
    pub flags: Flags,
    /// NAV in microseconds; 0 unless more fragments follow.
    pub duration_us: u16,
    /// Who sent the frame that is acknowledged.
    pub receiver: MacAddr,
}

/// Clear to send (IEEE 802.11-2016, 9.3.1.3): 10 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cts {
    /// Flags; normally none.
    pub flags: Flags,
    /// NAV in microseconds.
    pub duration_us: u16,
    /// Who sent the RTS; the sender itself in a CTS-to-self.
    pub receiver: MacAddr,
}

/// Request to send (IEEE 802.11-2016, 9.3.1.2): 16 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rts {
    /// Flags; normally none, or retry.
    pub flags: Flags,
    /// NAV in microseconds: up to the end of the ACK of the data frame.
    pub duration_us: u16,
    /// Who shall answer.
    pub receiver: MacAddr,
    /// Who asks.
    pub transmitter: MacAddr,
}

/// Power save poll (IEEE 802.11-2016, 9.3.1.5): 16 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PsPoll {
    /// Flags.
    pub flags: Flags,
    /// Association identifier of the sender.
    pub aid: Aid,
    /// The access point.
    pub bssid: MacAddr,
    /// Who asks for its buffered frame.
    pub transmitter: MacAddr,
}

/// Reads frame control, which must be of `kind`, and the Duration/ID field.
fn start(octets: &[u8], kind: Kind) -> Result<(Reader<'_>, Flags, u16), ParseError> {
    let control = header::control(octets)?;
    if control.kind() != kind {
        return Err(ParseError::WrongKind);
    }
    let mut r = Reader::new(&octets[2..]);
    let duration = r.u16()?;
    Ok((r, control.flags(), duration))
}

/// The frames with nothing but a receiver.
macro_rules! receiver_only {
    ($name:ident, $kind:expr) => {
        impl<'a> Wire<'a> for $name {
            fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
                let (mut r, flags, duration_us) = start(octets, $kind)?;
                let receiver = r.address()?;
                r.end()?;
                Ok($name {
                    flags,
                    duration_us,
                    receiver,
                })
            }

            fn length(&self) -> usize {
                10
            }

            fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
                let mut w = Writer::new(out, self.length())?;
                w.bytes(&FrameControl::new($kind, self.flags).0);
                w.u16(self.duration_us);
                w.address(self.receiver);
                Ok(w.finish())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "-> {} {}, Flags={}, NAV={} us",
                    self.receiver, $kind, self.flags, self.duration_us
                )
            }
        }
    };
}

receiver_only!(Ack, Kind::ACK);
receiver_only!(Cts, Kind::CTS);

impl<'a> Wire<'a> for Rts {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let (mut r, flags, duration_us) = start(octets, Kind::RTS)?;
        let (receiver, transmitter) = (r.address()?, r.address()?);
        r.end()?;
        Ok(Rts {
            flags,
            duration_us,
            receiver,
            transmitter,
        })
    }

    fn length(&self) -> usize {
        16
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = Writer::new(out, self.length())?;
        w.bytes(&FrameControl::new(Kind::RTS, self.flags).0);
        w.u16(self.duration_us);
        w.address(self.receiver);
        w.address(self.transmitter);
        Ok(w.finish())
    }
}

impl fmt::Display for Rts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rts {
            flags,
            duration_us,
            receiver,
            transmitter,
        } = self;
        write!(
            f,
            "{transmitter} -> {receiver} {}, Flags={flags}, NAV={duration_us} us",
            Kind::RTS
        )
    }
}

impl<'a> Wire<'a> for PsPoll {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let (mut r, flags, id) = start(octets, Kind::PS_POLL)?;
        let (bssid, transmitter) = (r.address()?, r.address()?);
        r.end()?;
        Ok(PsPoll {
            flags,
            aid: Aid(id),
            bssid,
            transmitter,
        })
    }

    fn length(&self) -> usize {
        16
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = Writer::new(out, self.length())?;
        w.bytes(&FrameControl::new(Kind::PS_POLL, self.flags).0);
        w.u16(self.aid.0);
        w.address(self.bssid);
        w.address(self.transmitter);
        Ok(w.finish())
    }
}

impl fmt::Display for PsPoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PsPoll {
            flags,
            aid,
            bssid,
            transmitter,
        } = self;
        write!(
            f,
            "{transmitter} -> {bssid} {}, Flags={flags}, {aid}",
            Kind::PS_POLL
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);

    /// Emits, compares with the octets of the standard, reads back.
    fn check<'a, T: Wire<'a> + PartialEq + core::fmt::Debug>(value: T, octets: &'a [u8], text: &str) {
        let mut out = [0xee; 40];
        assert_eq!(value.emit(&mut out), Ok(octets.len()));
        assert_eq!(&out[..octets.len()], octets);
        assert_eq!(T::parse(octets).unwrap(), value);
        assert_eq!(value.to_string(), text);
        assert_eq!(
            value.emit(&mut out[..octets.len() - 1]),
            Err(EmitError::NoRoom { needed: octets.len() })
        );
        for n in 0..octets.len() {
            assert_eq!(T::parse(&octets[..n]).unwrap_err(), ParseError::Truncated);
        }
    }

    #[test]
    fn octets_of_the_standard() {
        let ack = Ack {
            flags: Flags::NONE,
            duration_us: 0,
            receiver: A,
        };
        check(
            ack,
            &[0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 0xa],
            "-> 02:00:00:00:00:0a ACK, Flags=........, NAV=0 us",
        );
        let cts = Cts {
            flags: Flags::NONE,
            duration_us: 0x0123,
            receiver: A,
        };
        check(
            cts,
            &[0xc4, 0, 0x23, 0x01, 2, 0, 0, 0, 0, 0xa],
            "-> 02:00:00:00:00:0a CTS, Flags=........, NAV=291 us",
        );
        let rts = Rts {
            flags: Flags::RETRY,
            duration_us: 300,
            receiver: A,
            transmitter: B,
        };
        check(
            rts,
            &[0xb4, 8, 0x2c, 0x01, 2, 0, 0, 0, 0, 0xa, 2, 0, 0, 0, 0, 0xb],
            "02:00:00:00:00:0b -> 02:00:00:00:00:0a RTS, Flags=....R..., NAV=300 us",
        );
        let poll = PsPoll {
            flags: Flags::POWER_MANAGEMENT,
            aid: Aid::new(5).unwrap(),
            bssid: A,
            transmitter: B,
        };
        check(
            poll,
            &[0xa4, 0x10, 0x05, 0xc0, 2, 0, 0, 0, 0, 0xa, 2, 0, 0, 0, 0, 0xb],
            "02:00:00:00:00:0b -> 02:00:00:00:00:0a PS-Poll, Flags=...P...., AID=5",
        );
    }

    #[test]
    fn refusals() {
        let ack = [0xd4, 0, 0, 0, 2, 0, 0, 0, 0, 0xa, 1, 2, 3, 4];
        assert_eq!(Ack::parse(&ack), Err(ParseError::Trailing), "with its FCS");
        assert_eq!(Cts::parse(&ack[..10]), Err(ParseError::WrongKind));
    }
}
