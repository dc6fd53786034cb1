//! The pattern of all frames, and the two cursors that they are read and written with.

use core::fmt;

use crate::addr::MacAddr;
use crate::error::{EmitError, ParseError};

/// Something with a form on the air: a frame, an element, a header.
///
/// For every value `v` that can be emitted, `parse(emit(v)) == v`. Its [`Display`](fmt::Display) is one line.
pub trait Wire<'a>: Sized + fmt::Display {
    /// Reads a value that takes up all of `octets`. Nothing is copied but numbers and addresses; variable parts
    /// borrow from `octets`. The time it takes is bounded by the length.
    ///
    /// # Errors
    /// [`ParseError`] says what is wrong with the octets; nothing panics, whatever they are.
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError>;

    /// Octets that [`emit`](Wire::emit) writes.
    fn length(&self) -> usize;

    /// Writes the value at the beginning of `out` and returns its length. Reserved bits are written as 0.
    ///
    /// # Errors
    /// [`EmitError`]; the content of `out` is then unspecified.
    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError>;
}

/// Reads little-endian fields from the front of a slice.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn new(octets: &'a [u8]) -> Reader<'a> {
        Reader { rest: octets }
    }

    #[inline]
    pub(crate) fn take(&mut self, n: usize) -> Result<&'a [u8], ParseError> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(ParseError::Truncated)?;
        self.rest = tail;
        Ok(head)
    }

    #[inline]
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ParseError> {
        let (head, tail) = self.rest.split_first_chunk().ok_or(ParseError::Truncated)?;
        self.rest = tail;
        Ok(*head)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, ParseError> {
        self.array::<1>().map(|[octet]| octet)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, ParseError> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, ParseError> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, ParseError> {
        self.array().map(u64::from_le_bytes)
    }

    #[inline]
    pub(crate) fn address(&mut self) -> Result<MacAddr, ParseError> {
        self.array().map(MacAddr)
    }

    /// Everything that is left.
    #[inline]
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// Nothing may be left.
    #[inline]
    pub(crate) fn end(&self) -> Result<(), ParseError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(ParseError::Trailing)
        }
    }
}

/// Writes little-endian fields into a place of known length.
pub(crate) struct Writer<'o> {
    out: &'o mut [u8],
    at: usize,
}

impl<'o> Writer<'o> {
    /// Claims the first `length` octets of `out`; the fields written must fill them exactly.
    #[inline]
    pub(crate) fn new(out: &'o mut [u8], length: usize) -> Result<Writer<'o>, EmitError> {
        let out = out
            .get_mut(..length)
            .ok_or(EmitError::NoRoom { needed: length })?;
        Ok(Writer { out, at: 0 })
    }

    #[inline]
    pub(crate) fn bytes(&mut self, octets: &[u8]) {
        self.out[self.at..self.at + octets.len()].copy_from_slice(octets);
        self.at += octets.len();
    }

    #[inline]
    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    #[inline]
    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    #[inline]
    pub(crate) fn address(&mut self, address: MacAddr) {
        self.bytes(&address.0);
    }

    /// Writes zeroes up to the next multiple of `n` octets.
    #[inline]
    pub(crate) fn align(&mut self, n: usize) {
        let to = self.at.next_multiple_of(n);
        self.out[self.at..to].fill(0);
        self.at = to;
    }

    /// Octets written: all that were claimed.
    #[inline]
    pub(crate) fn finish(self) -> usize {
        assert_eq!(self.at, self.out.len(), "length() and emit() disagree");
        self.at
    }
}
