//! Any frame.

use core::fmt;

use crate::error::{EmitError, ParseError};
use crate::mac::{self, Kind, header};
use crate::mgmt;
use crate::wire::Wire;

macro_rules! frames {
    ($($variant:ident($type:ty) = $($kind:ident)|*,)*) => {
        /// A frame of any kind, without FCS.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Frame<'a> {
            $(
                #[doc = concat!("See [`", stringify!($type), "`].")]
                $variant($type),
            )*
            /// Any other kind, and management frames with an encrypted body.
            Opaque(mac::Opaque<'a>),
        }

        $(
            impl<'a> From<$type> for Frame<'a> {
                fn from(frame: $type) -> Frame<'a> {
                    Frame::$variant(frame)
                }
            }
        )*

        impl<'a> From<mac::Opaque<'a>> for Frame<'a> {
            fn from(frame: mac::Opaque<'a>) -> Frame<'a> {
                Frame::Opaque(frame)
            }
        }

        impl<'a> Wire<'a> for Frame<'a> {
            /// Looks at the kind and parses accordingly; a frame of a known kind that is malformed is an error.
            fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
                let parsed = match header::control(octets)?.kind() {
                    $($(Kind::$kind)|* => <$type>::parse(octets).map(Frame::$variant),)*
                    _ => mac::Opaque::parse(octets).map(Frame::Opaque),
                };
                match parsed {
                    Err(ParseError::Protected) => mac::Opaque::parse(octets).map(Frame::Opaque),
                    parsed => parsed,
                }
            }

            fn length(&self) -> usize {
                match self {
                    $(Frame::$variant(frame) => frame.length(),)*
                    Frame::Opaque(frame) => frame.length(),
                }
            }

            fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
                match self {
                    $(Frame::$variant(frame) => frame.emit(out),)*
                    Frame::Opaque(frame) => frame.emit(out),
                }
            }
        }

        impl fmt::Display for Frame<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Frame::$variant(frame) => frame.fmt(f),)*
                    Frame::Opaque(frame) => frame.fmt(f),
                }
            }
        }
    };
}

frames! {
    Data(mac::Data<'a>) = DATA | NULL | QOS_DATA | QOS_NULL,
    Ack(mac::Ack) = ACK,
    Cts(mac::Cts) = CTS,
    Rts(mac::Rts) = RTS,
    PsPoll(mac::PsPoll) = PS_POLL,
    Beacon(mgmt::Beacon<'a>) = BEACON,
    ProbeRequest(mgmt::ProbeRequest<'a>) = PROBE_REQUEST,
    ProbeResponse(mgmt::ProbeResponse<'a>) = PROBE_RESPONSE,
    Authentication(mgmt::Authentication<'a>) = AUTHENTICATION,
    Deauthentication(mgmt::Deauthentication<'a>) = DEAUTHENTICATION,
    AssociationRequest(mgmt::AssociationRequest<'a>) = ASSOCIATION_REQUEST,
    AssociationResponse(mgmt::AssociationResponse<'a>) = ASSOCIATION_RESPONSE,
    ReassociationRequest(mgmt::ReassociationRequest<'a>) = REASSOCIATION_REQUEST,
    ReassociationResponse(mgmt::ReassociationResponse<'a>) = REASSOCIATION_RESPONSE,
    Disassociation(mgmt::Disassociation<'a>) = DISASSOCIATION,
    Atim(mgmt::Atim<'a>) = ATIM,
    Action(mgmt::Action<'a>) = ACTION,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addr::MacAddr;
    use crate::mac::Flags;

    /// Every first octet leads to a frame or to a named error, and what was read is written again octet by octet.
    #[test]
    fn every_kind_is_covered() {
        let mut octets = [0; 60];
        octets[4..24].copy_from_slice(&[7; 20]);
        // under miri every kind with a few of the flags
        let step = if cfg!(miri) { 51 } else { 1 };
        for first in 0..=255u8 {
            for flags in (0..=255u8).step_by(step) {
                octets[0] = first;
                octets[1] = flags;
                for n in [10, 16, 24, 28, 60] {
                    match Frame::parse(&octets[..n]) {
                        Ok(frame) => {
                            let mut out = [0xee; 60];
                            assert_eq!(frame.emit(&mut out), Ok(n));
                            assert_eq!(out[..n], octets[..n]);
                        }
                        Err(ParseError::Version) => assert_ne!(first & 3, 0),
                        Err(e) => assert!(matches!(e, ParseError::Truncated | ParseError::Trailing), "{e}"),
                    }
                }
            }
        }
    }

    #[test]
    fn encrypted_management_frames_are_kept() {
        let mut octets = [9; 40];
        octets[..2].copy_from_slice(&[0xc0, 0x40]);
        assert_eq!(
            Frame::parse(&octets),
            Ok(Frame::Opaque(mac::Opaque { octets: &octets }))
        );
        octets[..2].copy_from_slice(&[0x94, 0]);
        assert!(matches!(Frame::parse(&octets), Ok(Frame::Opaque(_))), "block ack");
    }

    #[test]
    fn values_become_frames() {
        let ack = mac::Ack {
            flags: Flags::NONE,
            duration_us: 0,
            receiver: MacAddr::local(1),
        };
        let mut out = [0; 10];
        assert_eq!(Frame::from(ack).emit(&mut out), Ok(10));
        assert_eq!(Frame::parse(&out), Ok(Frame::Ack(ack)));
    }
}
