//! What can go wrong when octets are read or written.

use core::fmt;

/// Why octets could not be read as the kind of frame, element or header that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ParseError {
    /// The octets end before the last field that has to be there.
    Truncated,
    /// The protocol version in the frame control field is not 0 (IEEE 802.11-2016, 9.2.4.1.2).
    Version,
    /// These octets are something else than what was asked for.
    WrongKind,
    /// Octets are left over after the last field; the usual cause is an FCS that was not cut off.
    Trailing,
    /// The body is encrypted, so its fields cannot be read.
    Protected,
    /// The frame check sequence does not fit the octets before it.
    BadFcs,
    /// A field holds a value that its definition does not allow.
    BadValue,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParseError::Truncated => "the octets end before the last field",
            ParseError::Version => "the protocol version is not 0",
            ParseError::WrongKind => "the octets are of another kind",
            ParseError::Trailing => "octets are left over after the last field (is the FCS still there?)",
            ParseError::Protected => "the body is encrypted",
            ParseError::BadFcs => "the FCS does not fit the frame",
            ParseError::BadValue => "a field holds a value that its definition does not allow",
        })
    }
}

impl core::error::Error for ParseError {}

/// Why a value could not be written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EmitError {
    /// The buffer is too short.
    NoRoom {
        /// Octets that the value takes.
        needed: usize,
    },
    /// A field does not fit its place on the air: a number out of range, or an element over 255 octets.
    BadValue,
    /// Two fields say different things, for example a fourth address without both DS flags.
    Contradiction,
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmitError::NoRoom { needed } => write!(f, "the buffer is too short, {needed} octets are needed"),
            EmitError::BadValue => f.write_str("a field does not fit its place on the air"),
            EmitError::Contradiction => f.write_str("two fields contradict each other"),
        }
    }
}

impl core::error::Error for EmitError {}
