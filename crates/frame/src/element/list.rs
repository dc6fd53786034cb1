//! A run of elements: look up, walk, build.

use core::fmt;

use crate::element::{Element, ElementType};
use crate::error::EmitError;
use crate::wire::Wire;

/// The elements of a frame, in their order, as octets. Any octets are accepted: where the last element is cut
/// off, the walk ends and [`tail`](Elements::tail) has what is left.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// No element.
    pub const EMPTY: Elements<'static> = Elements(&[]);

    /// Takes octets as they are.
    pub const fn new(octets: &'a [u8]) -> Elements<'a> {
        Elements(octets)
    }

    /// The octets, with the tail.
    pub const fn octets(&self) -> &'a [u8] {
        self.0
    }

    /// All elements in order.
    pub fn iter(&self) -> ElementsIter<'a> {
        ElementsIter { rest: self.0 }
    }

    /// The first well-formed element of type `T`.
    ///
    /// ```
    /// use frame::element::{Elements, Ssid, Tim};
    /// let elements = Elements::new(b"\x00\x03net\xdd\x00");
    /// assert_eq!(elements.get::<Ssid>(), Some(Ssid(b"net")));
    /// assert_eq!(elements.get::<Tim>(), None);
    /// ```
    pub fn get<T: ElementType<'a>>(&self) -> Option<T> {
        let mut rest = self.0;
        while let Some((whole, tail)) = split_element(rest) {
            if whole[0] == T::ID
                && let Ok(element) = T::parse(whole)
            {
                return Some(element);
            }
            rest = tail;
        }
        None
    }

    /// What is left behind the last complete element; empty in a well-formed frame.
    pub fn tail(&self) -> &'a [u8] {
        let mut rest = self.0;
        while let Some((_, tail)) = split_element(rest) {
            rest = tail;
        }
        rest
    }
}

impl<'a> IntoIterator for Elements<'a> {
    type Item = Element<'a>;
    type IntoIter = ElementsIter<'a>;
    fn into_iter(self) -> ElementsIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Elements<'a> {
    type Item = Element<'a>;
    type IntoIter = ElementsIter<'a>;
    fn into_iter(self) -> ElementsIter<'a> {
        self.iter()
    }
}

impl fmt::Display for Elements<'_> {
    /// All elements, separated by commas.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, element) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{element}")?;
        }
        match self.tail().len() {
            0 => Ok(()),
            n => write!(f, " [{n} octets of a cut element]"),
        }
    }
}

impl fmt::Debug for Elements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()?;
        match self.tail() {
            [] => Ok(()),
            tail => write!(f, " + {tail:x?}"),
        }
    }
}

/// Iterator over the complete elements of an [`Elements`].
#[derive(Clone, Debug)]
pub struct ElementsIter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ElementsIter<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let (whole, tail) = split_element(self.rest)?;
        self.rest = tail;
        Element::parse(whole).ok()
    }
}

/// The first element with its identifier and length, and what follows it; `None` at the end and if it is cut.
#[inline]
fn split_element(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    match *octets {
        [_, n, ..] => octets.split_at_checked(2 + usize::from(n)),
        _ => None,
    }
}

/// Writes elements one after the other into a buffer.
///
/// ```
/// use frame::element::{DsParameters, ElementsBuilder, Ssid};
/// let mut buffer = [0; 256];
/// let mut elements = ElementsBuilder::new(&mut buffer);
/// elements.push(Ssid(b"net"))?;
/// elements.push(DsParameters { channel: 6 })?;
/// assert_eq!(elements.finish().octets(), b"\x00\x03net\x03\x01\x06");
/// # Ok::<(), frame::EmitError>(())
/// ```
#[derive(Debug)]
pub struct ElementsBuilder<'b> {
    out: &'b mut [u8],
    used: usize,
}

impl<'b> ElementsBuilder<'b> {
    /// Will fill `out` from its beginning.
    pub fn new(out: &'b mut [u8]) -> ElementsBuilder<'b> {
        ElementsBuilder { out, used: 0 }
    }

    /// Adds one element. The standard fixes an order for each frame (mostly by ascending ID); it is not checked.
    ///
    /// # Errors
    /// Those of [`Wire::emit`]; then nothing is added.
    pub fn push<'e>(&mut self, element: impl Into<Element<'e>>) -> Result<(), EmitError> {
        self.used += element
            .into()
            .emit(&mut self.out[self.used..])
            .map_err(|e| match e {
                EmitError::NoRoom { needed } => EmitError::NoRoom {
                    needed: self.used + needed,
                },
                other => other,
            })?;
        Ok(())
    }

    /// The elements so far, and the end of building.
    pub fn finish(self) -> Elements<'b> {
        Elements(&self.out[..self.used])
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::element::{DsParameters, Erp, Ssid, SupportedRates, Unknown};
    use std::format;
    use std::vec::Vec;

    #[test]
    fn unknown_ones_survive_in_their_place() {
        let octets = [0, 1, b'n', 255, 3, 9, 9, 9, 3, 1, 11, 252, 0, 3, 1, 12];
        let elements = Elements::new(&octets);
        let all: Vec<Element<'_>> = elements.iter().collect();
        assert_eq!(
            all,
            [
                Ssid(b"n").into(),
                Unknown {
                    id: 255,
                    body: &[9; 3]
                }
                .into(),
                DsParameters { channel: 11 }.into(),
                Unknown { id: 252, body: &[] }.into(),
                DsParameters { channel: 12 }.into()
            ]
        );
        let mut buffer = [0; 20];
        let mut again = ElementsBuilder::new(&mut buffer);
        for e in all {
            again.push(e).unwrap();
        }
        assert_eq!(again.finish().octets(), octets);
        assert_eq!(
            elements.get::<DsParameters>(),
            Some(DsParameters { channel: 11 }),
            "the first one"
        );
        assert_eq!(elements.get::<Erp>(), None);
        assert!(elements.tail().is_empty());
    }

    #[test]
    fn a_malformed_one_is_passed_over() {
        let octets = [3, 0, 3, 1, 6];
        assert_eq!(
            Elements::new(&octets).get::<DsParameters>(),
            Some(DsParameters { channel: 6 })
        );
    }

    #[test]
    fn cut_tails() {
        let octets = [0, 1, b'n', 1, 4, 2, 4, 11];
        for n in 0..=octets.len() {
            let elements = Elements::new(&octets[..n]);
            assert_eq!(elements.iter().count(), usize::from(n >= 3), "{n}");
            assert_eq!(elements.tail(), &octets[if n >= 3 { 3 } else { 0 }..n]);
            assert_eq!(elements.get::<SupportedRates<'_>>(), None);
        }
        assert_eq!(
            format!("{}", Elements::new(&octets)),
            "SSID=\"n\" [5 octets of a cut element]"
        );
        assert_eq!(
            format!("{:?}", Elements::new(&octets[..4])),
            "[Ssid(Ssid([110]))] + [1]"
        );
    }

    #[test]
    fn full_buffer() {
        let mut buffer = [0; 7];
        let mut b = ElementsBuilder::new(&mut buffer);
        b.push(Ssid(b"net")).unwrap();
        assert_eq!(
            b.push(DsParameters { channel: 1 }),
            Err(EmitError::NoRoom { needed: 8 })
        );
        assert_eq!(b.finish().octets(), b"\x00\x03net");
    }
}
