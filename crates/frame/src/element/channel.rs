//! Country and channel switch announcement.

use core::fmt;

use crate::element::{ElementType, body, start};
use crate::error::{EmitError, ParseError};
use crate::wire::Wire;

/// Country (IEEE 802.11-2016, 9.4.2.9): which channels and powers the place allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Country<'a> {
    /// ISO 3166-1 code, such as `DE`.
    pub code: [u8; 2],
    /// `b' '` anywhere, `b'O'` outdoors, `b'I'` indoors; other values name tables of annex E.
    pub environment: u8,
    /// Triplets, and a padding octet if that makes the length of the body even; 3 to 252 octets.
    pub triplets: &'a [u8],
}

/// One triplet of a country element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CountryTriplet {
    /// `count` channels from `first` on, with at most `max_dbm`.
    Channels {
        /// Number of the lowest channel, 1 to 200.
        first: u8,
        /// How many channels.
        count: u8,
        /// Highest transmit power in dBm.
        max_dbm: u8,
    },
    /// The operating class that the channels after it belong to (first octet 201 and above).
    OperatingClass {
        /// Identifier, 201 to 255.
        extension: u8,
        /// Operating class (annex E).
        class: u8,
        /// Coverage class: air propagation time in units of 3 us.
        coverage: u8,
    },
}

impl<'a> Country<'a> {
    /// The triplets in order, without the padding.
    pub fn iter(&self) -> impl Iterator<Item = CountryTriplet> + 'a {
        self.triplets.as_chunks().0.iter().map(|[a, b, c]| match a {
            ..=200 => CountryTriplet::Channels {
                first: *a,
                count: *b,
                max_dbm: *c,
            },
            201.. => CountryTriplet::OperatingClass {
                extension: *a,
                class: *b,
                coverage: *c,
            },
        })
    }
}

impl<'a> Wire<'a> for Country<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = body(octets, Self::ID)?;
        let (code, environment, triplets) = (r.array()?, r.u8()?, r.rest());
        if triplets.len() < 3 {
            return Err(ParseError::Truncated);
        }
        Ok(Country {
            code,
            environment,
            triplets,
        })
    }

    fn length(&self) -> usize {
        5 + self.triplets.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        if self.triplets.len() < 3 {
            return Err(EmitError::BadValue);
        }
        let mut w = start(out, Self::ID, self.length())?;
        w.bytes(&self.code);
        w.u8(self.environment);
        w.bytes(self.triplets);
        Ok(w.finish())
    }
}

impl fmt::Display for Country<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Country={}", self.code.escape_ascii())
    }
}

/// Channel switch announcement (IEEE 802.11-2016, 9.4.2.19).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChannelSwitch {
    /// 1: do not transmit until the switch; 0: no restriction.
    pub mode: u8,
    /// Number of the new channel.
    pub channel: u8,
    /// Beacons until the switch: 1: just before the next one; 0: any time now.
    pub count: u8,
}

impl<'a> Wire<'a> for ChannelSwitch {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let [mode, channel, count] = body(octets, Self::ID)?.array()?;
        Ok(ChannelSwitch { mode, channel, count })
    }

    fn length(&self) -> usize {
        5
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = start(out, Self::ID, self.length())?;
        w.bytes(&[self.mode, self.channel, self.count]);
        Ok(w.finish())
    }
}

impl fmt::Display for ChannelSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quiet = if self.mode == 1 { ", quiet until then" } else { "" };
        write!(
            f,
            "Switch to channel {} in {} beacons{quiet}",
            self.channel, self.count
        )
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::element::tests::check;
    use std::vec::Vec;

    #[test]
    fn octets_of_the_standard() {
        let country = Country {
            code: *b"DE",
            environment: b' ',
            triplets: &[1, 13, 20],
        };
        check(country, b"\x07\x06DE \x01\x0d\x14", "Country=DE");
        let padded = Country {
            triplets: &[36, 4, 23, 201, 3, 1, 0],
            ..country
        };
        check(padded, b"\x07\x0aDE \x24\x04\x17\xc9\x03\x01\x00", "Country=DE");
        let channels = CountryTriplet::Channels {
            first: 36,
            count: 4,
            max_dbm: 23,
        };
        let class = CountryTriplet::OperatingClass {
            extension: 201,
            class: 3,
            coverage: 1,
        };
        assert_eq!(padded.iter().collect::<Vec<_>>(), [channels, class]);
        assert_eq!(Country::parse(b"\x07\x03DE "), Err(ParseError::Truncated));
        let switch = ChannelSwitch {
            mode: 1,
            channel: 44,
            count: 3,
        };
        check(
            switch,
            &[37, 3, 1, 44, 3],
            "Switch to channel 44 in 3 beacons, quiet until then",
        );
    }
}
