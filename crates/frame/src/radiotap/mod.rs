//! radiotap: what a driver tells about a received frame, and is told about one to send (radiotap.org).
//!
//! [`Packet`] is a header with its frame, as monitor interfaces and pcap files have it. [`Fields`] walks through a
//! header that may repeat fields, for example once for each antenna.
//!
//! ```
//! use frame::radiotap::{Packet, Radiotap};
//! use frame::{Rate, Wire};
//!
//! // One shot at 54 Mb/s, for a Linux monitor interface.
//! let how = Radiotap {
//!     tx_flags: Some(Radiotap::TX_NO_SEQUENCE),
//!     data_retries: Some(0),
//!     ..Radiotap::default()
//! };
//! let packet = Packet { radiotap: how.with_rate(Rate::OFDM_54), frame: b"..." };
//! let mut out = [0; 64];
//! let n = packet.emit(&mut out)?;
//! assert_eq!(Packet::parse(&out[..n]).unwrap().radiotap.rate(), Some(Rate::OFDM_54));
//! # Ok::<(), frame::EmitError>(())
//! ```

mod field;
mod fields;

pub use field::{Ampdu, Channel, Fhss, Field, Mcs, Radiotap, Timestamp, Vht, XChannel};
pub use fields::{Fields, MIN_HEADER_OCTETS, header_octets};

use core::fmt;

use crate::any::Frame;
use crate::error::{EmitError, ParseError};
use crate::fcs::FCS_OCTETS;
use crate::rate::{GuardInterval, Preamble, Rate, Width};
use crate::wire::{Wire, Writer};

impl Radiotap {
    /// `flags`: short DSSS preamble.
    pub const FLAG_SHORT_PREAMBLE: u8 = 0x02;
    /// `flags`: encrypted with WEP; of a frame to send: encrypt it.
    pub const FLAG_WEP: u8 = 0x04;
    /// `flags`: a fragment; of a frame to send: fragment it.
    pub const FLAG_FRAGMENT: u8 = 0x08;
    /// `flags`: the frame ends with its FCS.
    pub const FLAG_FCS: u8 = 0x10;
    /// `flags`: padding between MAC header and body, to a multiple of four octets.
    pub const FLAG_DATA_PADDING: u8 = 0x20;
    /// `flags`: the FCS was wrong.
    pub const FLAG_BAD_FCS: u8 = 0x40;
    /// `flags`: short guard interval.
    pub const FLAG_SHORT_GI: u8 = 0x80;
    /// `rx_flags`: the PLCP header failed its check.
    pub const RX_BAD_PLCP: u16 = 0x0002;
    /// `tx_flags`: no ACK came (of a frame that asked for none, too).
    pub const TX_FAILED: u16 = 0x0001;
    /// `tx_flags`: with CTS-to-self.
    pub const TX_CTS: u16 = 0x0002;
    /// `tx_flags`: with RTS/CTS.
    pub const TX_RTS: u16 = 0x0004;
    /// `tx_flags`: do not wait for an ACK.
    pub const TX_NO_ACK: u16 = 0x0008;
    /// `tx_flags`: leave the sequence number as it is.
    pub const TX_NO_SEQUENCE: u16 = 0x0010;
    /// `tx_flags`: do not reorder with other frames.
    pub const TX_ORDER: u16 = 0x0020;

    /// The fields of a header; of fields that come several times the first.
    ///
    /// # Errors
    /// Those of [`Fields`].
    pub fn collect(fields: Fields<'_>) -> Result<Radiotap, ParseError> {
        let mut all = Radiotap::default();
        for field in fields {
            all.take(field?);
        }
        Ok(all)
    }

    /// With the fields that name `rate`: RATE, the preamble in FLAGS, or MCS.
    #[must_use]
    pub const fn with_rate(mut self, rate: Rate) -> Radiotap {
        self.rate_500kbps = rate.to_500kbps();
        self.mcs = None;
        let flags = match self.flags {
            Some(flags) => flags & !Radiotap::FLAG_SHORT_PREAMBLE,
            None => 0,
        };
        match rate {
            Rate::Dsss(_, Preamble::Short) => self.flags = Some(flags | Radiotap::FLAG_SHORT_PREAMBLE),
            _ if self.flags.is_some() => self.flags = Some(flags),
            _ => {}
        }
        if let Rate::Ht(mcs, width, gi) = rate {
            let width = match width {
                Width::Mhz20 => 0,
                Width::Mhz40 => 1,
            };
            let gi = match gi {
                GuardInterval::Long => 0,
                GuardInterval::Short => Mcs::SHORT_GI,
            };
            self.mcs = Some(Mcs {
                known: Mcs::KNOWN_BANDWIDTH | Mcs::KNOWN_INDEX | Mcs::KNOWN_GI | Mcs::KNOWN_FORMAT,
                flags: width | gi,
                index: mcs.index(),
            });
        }
        self
    }

    /// The rate, if it is one of [`Rate`]: legacy or HT-mixed with BCC and without STBC. What the header leaves
    /// open counts as long preamble, 20 MHz, long guard interval.
    pub fn rate(&self) -> Option<Rate> {
        if let Some(mcs) = self.mcs
            && mcs.known & Mcs::KNOWN_INDEX != 0
        {
            let has = |known, flags| mcs.known & known != 0 && mcs.flags & flags != 0;
            if has(Mcs::KNOWN_FORMAT, Mcs::GREENFIELD)
                || has(Mcs::KNOWN_CODING, Mcs::LDPC)
                || has(Mcs::KNOWN_STBC, Mcs::STBC)
            {
                return None;
            }
            let forty = mcs.known & Mcs::KNOWN_BANDWIDTH != 0 && mcs.flags & Mcs::BANDWIDTH == 1;
            let width = if forty { Width::Mhz40 } else { Width::Mhz20 };
            let short = has(Mcs::KNOWN_GI, Mcs::SHORT_GI);
            return Rate::ht(
                mcs.index,
                width,
                if short {
                    GuardInterval::Short
                } else {
                    GuardInterval::Long
                },
            );
        }
        let short = self.flags.is_some_and(|f| f & Radiotap::FLAG_SHORT_PREAMBLE != 0);
        match Rate::from_500kbps(self.rate_500kbps?)? {
            Rate::DSSS_1 => Some(Rate::DSSS_1),
            Rate::Dsss(r, _) if short => Some(Rate::Dsss(r, Preamble::Short)),
            rate => Some(rate),
        }
    }

    fn has_flag(&self, flag: u8) -> bool {
        self.flags.is_some_and(|f| f & flag != 0)
    }
}

impl<'a> Wire<'a> for Radiotap {
    /// A header alone, without the frame.
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        if header_octets(octets)? != octets.len() {
            return Err(ParseError::Trailing);
        }
        Radiotap::collect(Fields::new(octets)?)
    }

    fn length(&self) -> usize {
        octets_of(self.present())
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let present = self.present();
        let length = octets_of(present);
        let mut w = Writer::new(out, length)?;
        w.u16(0);
        w.u16(length as u16);
        w.u32(present);
        self.write(&mut w);
        Ok(w.finish())
    }
}

/// Octets of a header with these fields. It is on the way of each frame that Linux sends, so it looks at no others.
fn octets_of(present: u32) -> usize {
    let (mut at, mut left) = (MIN_HEADER_OCTETS, present);
    while left != 0 {
        if let Some((align, size)) = field::align_and_size(left.trailing_zeros()) {
            // alignments are powers of two
            at = ((at + align - 1) & !(align - 1)) + size;
        }
        left &= left - 1;
    }
    at
}

impl fmt::Display for Radiotap {
    /// What is there of: rate, channel, signal, TSF, retries, "not acked" or "bad FCS".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("radiotap")?;
        match (self.rate(), self.mcs, self.vht) {
            (Some(rate), ..) => write!(f, " {rate}")?,
            (None, Some(mcs), _) => write!(f, " mcs{}", mcs.index)?,
            (None, None, Some(vht)) => write!(f, " vht{}", vht.mcs_streams[0] >> 4)?,
            (None, None, None) => {}
        }
        if let Some(channel) = self.channel {
            write!(f, " {} MHz", channel.mhz)?;
        }
        if let Some(signal_dbm) = self.signal_dbm {
            write!(f, " {signal_dbm} dBm")?;
        }
        if let Some(tsft_us) = self.tsft_us {
            write!(f, " TSF={tsft_us}")?;
        }
        if let Some(retries) = self.data_retries {
            write!(f, " retries={retries}")?;
        }
        if self.tx_flags.is_some_and(|t| t & Radiotap::TX_FAILED != 0) {
            f.write_str(" not acked")?;
        }
        if self.has_flag(Radiotap::FLAG_BAD_FCS) {
            f.write_str(" bad FCS")?;
        }
        Ok(())
    }
}

/// A radiotap header and the frame behind it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Packet<'a> {
    /// Header.
    pub radiotap: Radiotap,
    /// Everything behind it: an MPDU, with its FCS if [`Radiotap::FLAG_FCS`] is set.
    pub frame: &'a [u8],
}

impl<'a> Packet<'a> {
    /// The MPDU without FCS. Padding of the body ([`Radiotap::FLAG_DATA_PADDING`]) stays in.
    ///
    /// # Errors
    /// [`ParseError::BadFcs`] if the driver says that the FCS was wrong (it is not computed here),
    /// [`ParseError::Truncated`] if there should be an FCS and is not.
    pub fn mpdu(&self) -> Result<&'a [u8], ParseError> {
        if self.radiotap.has_flag(Radiotap::FLAG_BAD_FCS) {
            return Err(ParseError::BadFcs);
        }
        if !self.radiotap.has_flag(Radiotap::FLAG_FCS) {
            return Ok(self.frame);
        }
        let (mpdu, _fcs) = self
            .frame
            .split_last_chunk::<FCS_OCTETS>()
            .ok_or(ParseError::Truncated)?;
        Ok(mpdu)
    }
}

impl<'a> Wire<'a> for Packet<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let (header, frame) = octets.split_at(header_octets(octets)?);
        Ok(Packet {
            radiotap: Radiotap::parse(header)?,
            frame,
        })
    }

    fn length(&self) -> usize {
        self.radiotap.length() + self.frame.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let no_room = || EmitError::NoRoom {
            needed: self.length(),
        };
        let header = self.radiotap.emit(out).map_err(|_| no_room())?;
        let length = header + self.frame.len();
        let rest = out.get_mut(header..length).ok_or_else(no_room)?;
        rest.copy_from_slice(self.frame);
        Ok(length)
    }
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.radiotap)?;
        match self.mpdu().and_then(Frame::parse) {
            Ok(frame) => write!(f, "{frame}"),
            Err(e) => write!(f, "{} octets, {e}", self.frame.len()),
        }
    }
}

#[cfg(test)]
mod tests;
