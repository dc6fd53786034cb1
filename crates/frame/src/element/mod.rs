//! Information elements: the tagged parts of management frames (IEEE 802.11-2016, 9.4.2).
//!
//! [`Elements`] is a run of elements as it stands in a frame; nothing in it is ever lost, known or not. Ask it for
//! one element with [`get`](Elements::get), walk through all with [`iter`](Elements::iter), or fill a buffer with
//! an [`ElementsBuilder`]. Octets that an element has beyond those that its definition names are skipped
//! (IEEE 802.11-2016, 10.27.8: elements may grow in later editions).

mod basic;
mod channel;
mod ht;
mod list;
mod rates;
mod tim;
mod vendor;

pub use basic::{DsParameters, Erp, IbssParameters, Ssid};
pub use channel::{ChannelSwitch, Country, CountryTriplet};
pub use ht::{HtCapabilities, HtOperation, SecondaryChannel};
pub use list::{Elements, ElementsBuilder, ElementsIter};
pub use rates::{ExtendedRates, RateOctets, SupportedRates};
pub use tim::Tim;
pub use vendor::{AcParameters, Vendor, WmmInformation, WmmParameters};

use core::fmt;

use crate::error::{EmitError, ParseError};
use crate::wire::{Reader, Wire, Writer};

/// Longest body of an element: its length field is one octet.
pub const MAX_BODY_OCTETS: usize = 255;

/// An element type with an identifier of its own.
pub trait ElementType<'a>: Wire<'a> {
    /// Element ID (IEEE 802.11-2016, Table 9-77).
    const ID: u8;
}

/// The body of one element, which must fill `octets` and be of type `id`.
fn body(octets: &[u8], id: u8) -> Result<Reader<'_>, ParseError> {
    let any = Unknown::parse(octets)?;
    if any.id == id {
        Ok(Reader::new(any.body))
    } else {
        Err(ParseError::WrongKind)
    }
}

/// Starts an element of `length` octets with identifier and length.
fn start(out: &mut [u8], id: u8, length: usize) -> Result<Writer<'_>, EmitError> {
    let body = u8::try_from(length - 2).map_err(|_| EmitError::BadValue)?;
    let mut w = Writer::new(out, length)?;
    w.u8(id);
    w.u8(body);
    Ok(w)
}

/// An element as it stands: of a type that this crate does not know, or malformed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Unknown<'a> {
    /// Element ID.
    pub id: u8,
    /// Body, 0 to 255 octets.
    pub body: &'a [u8],
}

impl<'a> Wire<'a> for Unknown<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(octets);
        let (id, n) = (r.u8()?, r.u8()?);
        let body = r.take(usize::from(n))?;
        r.end()?;
        Ok(Unknown { id, body })
    }

    fn length(&self) -> usize {
        2 + self.body.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = start(out, self.id, self.length())?;
        w.bytes(self.body);
        Ok(w.finish())
    }
}

impl fmt::Display for Unknown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Element {} ({} octets)", self.id, self.body.len())
    }
}

macro_rules! elements {
    ($($(#[$doc:meta])* $variant:ident($type:ty) = $id:literal),* $(,)?) => {
        /// Any element.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Element<'a> {
            $($(#[$doc])* $variant($type),)*
            /// Any other, and malformed ones.
            Unknown(Unknown<'a>),
        }

        $(
            impl<'a> ElementType<'a> for $type {
                const ID: u8 = $id;
            }

            impl<'a> From<$type> for Element<'a> {
                fn from(element: $type) -> Element<'a> {
                    Element::$variant(element)
                }
            }
        )*

        impl<'a> From<Unknown<'a>> for Element<'a> {
            fn from(element: Unknown<'a>) -> Element<'a> {
                Element::Unknown(element)
            }
        }

        impl<'a> Wire<'a> for Element<'a> {
            /// Fails only where identifier, length and body do not fit `octets`; what is wrong inside a body makes
            /// the element [`Element::Unknown`].
            fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
                let any = Unknown::parse(octets)?;
                $(
                    if any.id == $id && let Ok(element) = <$type>::parse(octets) {
                        return Ok(Element::$variant(element));
                    }
                )*
                Ok(Element::Unknown(any))
            }

            fn length(&self) -> usize {
                match self {
                    $(Element::$variant(e) => e.length(),)*
                    Element::Unknown(e) => e.length(),
                }
            }

            fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
                match self {
                    $(Element::$variant(e) => e.emit(out),)*
                    Element::Unknown(e) => e.emit(out),
                }
            }
        }

        impl fmt::Display for Element<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Element::$variant(e) => e.fmt(f),)*
                    Element::Unknown(e) => e.fmt(f),
                }
            }
        }
    };
}

// The WMM elements stand before the general vendor element: the first that fits the octets wins.
elements! {
    /// Name of the network.
    Ssid(Ssid<'a>) = 0,
    /// The first eight rates.
    SupportedRates(SupportedRates<'a>) = 1,
    /// Channel that the frame was sent on.
    DsParameters(DsParameters) = 3,
    /// For whom an access point has traffic.
    Tim(Tim<'a>) = 5,
    /// ATIM window.
    IbssParameters(IbssParameters) = 6,
    /// Channels and powers allowed here.
    Country(Country<'a>) = 7,
    /// The network moves to another channel.
    ChannelSwitch(ChannelSwitch) = 37,
    /// 802.11b stations are about.
    Erp(Erp) = 42,
    /// What an 802.11n station can do.
    HtCapabilities(HtCapabilities) = 45,
    /// The rates after the eighth.
    ExtendedRates(ExtendedRates<'a>) = 50,
    /// How an 802.11n network is run.
    HtOperation(HtOperation) = 61,
    /// WMM without parameters.
    WmmInformation(WmmInformation) = 221,
    /// WMM with the channel access parameters for stations.
    WmmParameters(WmmParameters) = 221,
    /// Any other vendor's.
    Vendor(Vendor<'a>) = 221,
}

#[cfg(test)]
pub(crate) mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    /// Emits, compares with the octets of the standard, reads back, alone and as an [`Element`].
    pub(crate) fn check<'a, T>(value: T, octets: &'a [u8], text: &str)
    where
        T: ElementType<'a> + Into<Element<'a>> + Copy + PartialEq + fmt::Debug,
    {
        let mut out = [0xee; 300];
        assert_eq!(value.emit(&mut out), Ok(octets.len()));
        assert_eq!(&out[..octets.len()], octets);
        assert_eq!(
            value.emit(&mut out[..octets.len() - 1]),
            Err(EmitError::NoRoom { needed: octets.len() })
        );
        assert_eq!(T::parse(octets).unwrap(), value);
        assert_eq!(Element::parse(octets).unwrap(), value.into());
        assert_eq!(value.to_string(), text);
        assert_eq!(octets[0], T::ID);
        for n in 0..octets.len() {
            assert_eq!(T::parse(&octets[..n]).unwrap_err(), ParseError::Truncated);
        }
    }

    #[test]
    fn malformed_ones_are_kept() {
        let too_short = [37, 2, 1, 6];
        assert_eq!(ChannelSwitch::parse(&too_short), Err(ParseError::Truncated));
        let kept = Element::parse(&too_short).unwrap();
        assert_eq!(
            kept,
            Unknown {
                id: 37,
                body: &[1, 6]
            }
            .into()
        );
        let mut out = [0; 4];
        assert_eq!(kept.emit(&mut out), Ok(4));
        assert_eq!(out, too_short);
        assert_eq!(kept.to_string(), "Element 37 (2 octets)");
        assert_eq!(ChannelSwitch::parse(&[38, 0]), Err(ParseError::WrongKind));
    }

    #[test]
    fn octets_of_later_editions_are_skipped() {
        assert_eq!(
            DsParameters::parse(&[3, 3, 11, 0xff, 0xff]),
            Ok(DsParameters { channel: 11 })
        );
    }

    #[test]
    fn a_body_has_at_most_255_octets() {
        let long = Unknown {
            id: 200,
            body: &[7; 256],
        };
        assert_eq!(long.emit(&mut [0; 300]), Err(EmitError::BadValue));
        check_unknown(&[7; 255]);
        check_unknown(&[]);
    }

    fn check_unknown(body: &[u8]) {
        let mut out = [0; 257];
        let n = Unknown { id: 200, body }.emit(&mut out).unwrap();
        assert_eq!(Element::parse(&out[..n]), Ok(Unknown { id: 200, body }.into()));
    }
}
