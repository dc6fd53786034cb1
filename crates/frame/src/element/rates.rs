//! Supported rates and extended supported rates.

use core::fmt;

use crate::element::{ElementType, body, start};
use crate::error::{EmitError, ParseError};
use crate::rate::{DsssRate, OfdmRate, Preamble, Rate};
use crate::response::RateSet;
use crate::wire::Wire;

/// Set in the octet of a rate that belongs to the BSSBasicRateSet.
const BASIC: u8 = 0x80;

/// Supported rates (IEEE 802.11-2016, 9.4.2.3): 1 to 8 octets, each a rate in units of 500 kb/s with bit 7 set for
/// basic rates. More than 8 are read too (some stations send them) but not written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SupportedRates<'a>(pub &'a [u8]);

/// Extended supported rates (IEEE 802.11-2016, 9.4.2.13): the rates after the eighth, 1 to 255 octets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExtendedRates<'a>(pub &'a [u8]);

macro_rules! rates {
    ($name:ident, $text:literal, $max:literal) => {
        impl $name<'_> {
            /// All rates named here that this crate knows. What is no rate but a demand on members (such as 127,
            /// "HT only") is left out.
            pub fn rates(&self) -> RateSet {
                set(self.0, 0)
            }

            /// The basic ones among them.
            pub fn basic(&self) -> RateSet {
                set(self.0, BASIC)
            }
        }

        impl<'a> Wire<'a> for $name<'a> {
            fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
                match body(octets, Self::ID)?.rest() {
                    [] => Err(ParseError::Truncated),
                    rates => Ok($name(rates)),
                }
            }

            fn length(&self) -> usize {
                2 + self.0.len()
            }

            fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
                if !(1..=$max).contains(&self.0.len()) {
                    return Err(EmitError::BadValue);
                }
                let mut w = start(out, Self::ID, self.length())?;
                w.bytes(self.0);
                Ok(w.finish())
            }
        }

        impl fmt::Display for $name<'_> {
            /// In Mb/s, basic ones with `(B)`.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($text)?;
                for (i, octet) in self.0.iter().enumerate() {
                    let units = octet & !BASIC;
                    write!(f, "{}{}", if i == 0 { "=" } else { " " }, units / 2)?;
                    f.write_str(if units % 2 == 1 { ".5" } else { "" })?;
                    f.write_str(if octet & BASIC != 0 { "(B)" } else { "" })?;
                }
                Ok(())
            }
        }
    };
}

rates!(SupportedRates, "Rates", 8);
rates!(ExtendedRates, "Extended rates", 255);

/// The rates of `octets` that have all bits of `mask`.
fn set(octets: &[u8], mask: u8) -> RateSet {
    octets
        .iter()
        .filter(|o| **o & mask == mask)
        .filter_map(|o| Rate::from_500kbps(o & !BASIC))
        .fold(RateSet::EMPTY, RateSet::with)
}

/// The octets of both rate elements for given rates.
///
/// ```
/// use frame::element::RateOctets;
/// use frame::{Rate, RateSet};
/// let rates = RateSet::HR_DSSS.with(Rate::OFDM_54);
/// let octets = RateOctets::new(rates, RateSet::DSSS_MANDATORY);
/// assert_eq!(octets.supported().0, [0x82, 0x84, 11, 22, 108]);
/// assert!(octets.extended().is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateOctets {
    octets: [u8; 12],
    used: usize,
}

impl RateOctets {
    /// The rates of `rates` and `basic` in ascending order, DSSS first; those of `basic` marked.
    pub fn new(rates: RateSet, basic: RateSet) -> RateOctets {
        let mut made = RateOctets {
            octets: [0; 12],
            used: 0,
        };
        let dsss = DsssRate::ALL.map(|r| Rate::Dsss(r, Preamble::Long)).into_iter();
        for rate in dsss.chain(OfdmRate::ALL.map(Rate::Ofdm)) {
            let mark = if basic.contains(rate) { BASIC } else { 0 };
            if let (true, Some(units)) = (mark != 0 || rates.contains(rate), rate.to_500kbps()) {
                made.octets[made.used] = units | mark;
                made.used += 1;
            }
        }
        made
    }

    /// The first eight.
    pub fn supported(&self) -> SupportedRates<'_> {
        SupportedRates(&self.octets[..self.used.min(8)])
    }

    /// The others, if there are any.
    pub fn extended(&self) -> Option<ExtendedRates<'_>> {
        (self.used > 8).then(|| ExtendedRates(&self.octets[8..self.used]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::tests::check;

    #[test]
    fn octets_of_the_standard() {
        let rates = [0x82, 0x84, 0x8b, 0x96, 12];
        check(
            SupportedRates(&rates),
            &[1, 5, 0x82, 0x84, 0x8b, 0x96, 12],
            "Rates=1(B) 2(B) 5.5(B) 11(B) 6",
        );
        check(
            ExtendedRates(&[0x30, 0xff]),
            &[50, 2, 0x30, 0xff],
            "Extended rates=24 63.5(B)",
        );
        assert_eq!(SupportedRates(&rates).basic(), RateSet::HR_DSSS);
        assert_eq!(
            SupportedRates(&rates).rates(),
            RateSet::HR_DSSS.with(Rate::OFDM_6)
        );
        assert_eq!(
            ExtendedRates(&[0xff]).rates(),
            RateSet::EMPTY,
            "a membership selector"
        );
        assert_eq!(SupportedRates::parse(&[1, 0]), Err(ParseError::Truncated));
        assert_eq!(
            SupportedRates(&[2; 9]).emit(&mut [0; 20]),
            Err(EmitError::BadValue)
        );
        assert_eq!(SupportedRates(&[]).emit(&mut [0; 20]), Err(EmitError::BadValue));
        assert!(SupportedRates::parse(&[1, 9, 2, 2, 2, 2, 2, 2, 2, 2, 2]).is_ok());
    }

    #[test]
    fn sets_round_trip() {
        let all = (0..=255)
            .filter_map(Rate::from_500kbps)
            .fold(RateSet::EMPTY, RateSet::with);
        let octets = RateOctets::new(all, RateSet::OFDM_MANDATORY);
        assert_eq!(octets.supported().0, [2, 4, 11, 22, 0x8c, 18, 0x98, 36]);
        let extended = octets.extended().unwrap();
        assert_eq!(extended.0, [0xb0, 72, 96, 108]);
        assert_eq!(extended.basic(), RateSet::EMPTY.with(Rate::OFDM_24));
        let only_basic = RateOctets::new(RateSet::EMPTY, RateSet::OFDM_6_ONLY);
        assert_eq!(only_basic.supported().0, [0x8c]);
    }
}
