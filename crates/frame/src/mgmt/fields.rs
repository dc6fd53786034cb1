//! Fixed fields of management frames.

use core::fmt;

use crate::addr::MacAddr;
use crate::element::Elements;
use crate::error::ParseError;
use crate::mac::Aid;
use crate::wire::{Reader, Writer};

/// Capability information (IEEE 802.11-2016, 9.4.1.4): what the network is and can do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Capability(pub u16);

impl Capability {
    /// An access point sends this.
    pub const ESS: Capability = Capability(0x0001);
    /// A station of an ad hoc network sends this.
    pub const IBSS: Capability = Capability(0x0002);
    /// Data frames are encrypted.
    pub const PRIVACY: Capability = Capability(0x0010);
    /// Short DSSS preambles are allowed.
    pub const SHORT_PREAMBLE: Capability = Capability(0x0020);
    /// The short slot is in use (ERP).
    pub const SHORT_SLOT: Capability = Capability(0x0400);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Capability) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` added.
    #[must_use]
    pub const fn with(self, other: Capability) -> Capability {
        Capability(self.0 | other.0)
    }
}

/// Why a station was sent away or left (IEEE 802.11-2016, 9.4.1.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReasonCode(pub u16);

impl ReasonCode {
    /// No reason given.
    pub const UNSPECIFIED: ReasonCode = ReasonCode(1);
    /// The sender leaves the network (deauthentication).
    pub const LEAVING_NETWORK: ReasonCode = ReasonCode(3);
    /// The sender leaves the BSS (disassociation).
    pub const LEAVING_BSS: ReasonCode = ReasonCode(8);
}

impl fmt::Display for ReasonCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reason={}", self.0)
    }
}

/// Outcome of a request (IEEE 802.11-2016, 9.4.1.9).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StatusCode(pub u16);

impl StatusCode {
    /// Granted.
    pub const SUCCESS: StatusCode = StatusCode(0);
    /// Refused without a reason.
    pub const UNSPECIFIED: StatusCode = StatusCode(1);
    /// Refused: the access point is full.
    pub const TOO_MANY_STATIONS: StatusCode = StatusCode(17);
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Status={}", self.0)
    }
}

/// A part of the body of a management frame.
pub(crate) trait Field<'a>: Sized {
    fn read(r: &mut Reader<'a>) -> Result<Self, ParseError>;
    fn octets(&self) -> usize;
    fn write(&self, w: &mut Writer<'_>);
}

macro_rules! fixed {
    ($($type:ty: $octets:literal, $read:expr, $write:expr;)*) => {
        $(
            impl<'a> Field<'a> for $type {
                #[inline]
                fn read(r: &mut Reader<'a>) -> Result<Self, ParseError> {
                    $read(r)
                }

                #[inline]
                fn octets(&self) -> usize {
                    $octets
                }

                #[inline]
                fn write(&self, w: &mut Writer<'_>) {
                    $write(w, *self);
                }
            }
        )*
    };
}

fixed! {
    u8: 1, Reader::u8, Writer::u8;
    u16: 2, Reader::u16, Writer::u16;
    u64: 8, Reader::u64, Writer::u64;
    MacAddr: 6, Reader::address, Writer::address;
    Aid: 2, |r: &mut Reader<'a>| r.u16().map(Aid), |w: &mut Writer<'_>, v: Aid| w.u16(v.0);
    Capability: 2, |r: &mut Reader<'a>| r.u16().map(Capability), |w: &mut Writer<'_>, v: Capability| w.u16(v.0);
    ReasonCode: 2, |r: &mut Reader<'a>| r.u16().map(ReasonCode), |w: &mut Writer<'_>, v: ReasonCode| w.u16(v.0);
    StatusCode: 2, |r: &mut Reader<'a>| r.u16().map(StatusCode), |w: &mut Writer<'_>, v: StatusCode| w.u16(v.0);
}

impl<'a> Field<'a> for &'a [u8] {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(r.rest())
    }

    #[inline]
    fn octets(&self) -> usize {
        self.len()
    }

    #[inline]
    fn write(&self, w: &mut Writer<'_>) {
        w.bytes(self);
    }
}

impl<'a> Field<'a> for Elements<'a> {
    #[inline]
    fn read(r: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(Elements::new(r.rest()))
    }

    #[inline]
    fn octets(&self) -> usize {
        self.octets().len()
    }

    #[inline]
    fn write(&self, w: &mut Writer<'_>) {
        w.bytes(self.octets());
    }
}
