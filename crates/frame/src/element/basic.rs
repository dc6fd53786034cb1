//! SSID, channel, IBSS parameter set, ERP.

use core::fmt;

use crate::element::{ElementType, body, start};
use crate::error::{EmitError, ParseError};
use crate::wire::Wire;

/// Name of the network (IEEE 802.11-2016, 9.4.2.2): 0 to 32 octets of any value. Empty, it stands for any network
/// (in probe requests) or a hidden one (in beacons).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ssid<'a>(pub &'a [u8]);

impl<'a> Wire<'a> for Ssid<'a> {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let name = body(octets, Self::ID)?.rest();
        if name.len() > 32 {
            Err(ParseError::BadValue)
        } else {
            Ok(Ssid(name))
        }
    }

    fn length(&self) -> usize {
        2 + self.0.len()
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        if self.0.len() > 32 {
            return Err(EmitError::BadValue);
        }
        let mut w = start(out, Self::ID, self.length())?;
        w.bytes(self.0);
        Ok(w.finish())
    }
}

impl fmt::Display for Ssid<'_> {
    /// `SSID="net"`, other octets than printable ASCII escaped; `SSID=any` if it is empty.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("SSID=any"),
            name => write!(f, "SSID=\"{}\"", name.escape_ascii()),
        }
    }
}

/// DSSS parameter set (IEEE 802.11-2016, 9.4.2.4): the channel that the sender is on, 1 to 14 at 2.4 GHz. A
/// receiver needs it because frames are heard on neighbouring channels too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DsParameters {
    /// Number of the channel.
    pub channel: u8,
}

impl<'a> Wire<'a> for DsParameters {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let channel = body(octets, Self::ID)?.u8()?;
        Ok(DsParameters { channel })
    }

    fn length(&self) -> usize {
        3
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = start(out, Self::ID, self.length())?;
        w.u8(self.channel);
        Ok(w.finish())
    }
}

impl fmt::Display for DsParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Channel={}", self.channel)
    }
}

/// IBSS parameter set (IEEE 802.11-2016, 9.4.2.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IbssParameters {
    /// ATIM window in TU of 1024 us; 0 means no power save.
    pub atim_window_tu: u16,
}

impl<'a> Wire<'a> for IbssParameters {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        let atim_window_tu = body(octets, Self::ID)?.u16()?;
        Ok(IbssParameters { atim_window_tu })
    }

    fn length(&self) -> usize {
        4
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = start(out, Self::ID, self.length())?;
        w.u16(self.atim_window_tu);
        Ok(w.finish())
    }
}

impl fmt::Display for IbssParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ATIM window={} TU", self.atim_window_tu)
    }
}

/// ERP element (IEEE 802.11-2016, 9.4.2.12): whether 802.11g stations must mind 802.11b ones. Bit 0:
/// non-ERP present, bit 1: use protection, bit 2: no short preambles; the rest is reserved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Erp(pub u8);

impl Erp {
    /// A station that knows no OFDM is in the network; the slot is then 20 us.
    pub const fn non_erp_present(self) -> bool {
        self.0 & 1 != 0
    }

    /// OFDM frames must be announced by an RTS/CTS or CTS-to-self at a DSSS rate.
    pub const fn use_protection(self) -> bool {
        self.0 & 2 != 0
    }

    /// DSSS frames need the long preamble.
    pub const fn long_preamble(self) -> bool {
        self.0 & 4 != 0
    }
}

impl<'a> Wire<'a> for Erp {
    fn parse(octets: &'a [u8]) -> Result<Self, ParseError> {
        body(octets, Self::ID)?.u8().map(Erp)
    }

    fn length(&self) -> usize {
        3
    }

    fn emit(&self, out: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = start(out, Self::ID, self.length())?;
        w.u8(self.0);
        Ok(w.finish())
    }
}

impl fmt::Display for Erp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERP={:#04x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::tests::check;

    #[test]
    fn octets_of_the_standard() {
        check(Ssid(b"net\n"), b"\x00\x04net\n", "SSID=\"net\\n\"");
        check(Ssid(b""), &[0, 0], "SSID=any");
        check(DsParameters { channel: 11 }, &[3, 1, 11], "Channel=11");
        check(
            IbssParameters {
                atim_window_tu: 0x0102,
            },
            &[6, 2, 2, 1],
            "ATIM window=258 TU",
        );
        check(Erp(0x03), &[42, 1, 3], "ERP=0x03");
    }

    #[test]
    fn names_have_at_most_32_octets() {
        let mut octets = [0x41; 35];
        octets[..2].copy_from_slice(&[0, 33]);
        assert_eq!(Ssid::parse(&octets), Err(ParseError::BadValue));
        assert_eq!(Ssid(&[1; 33]).emit(&mut octets), Err(EmitError::BadValue));
        octets[1] = 32;
        assert_eq!(Ssid::parse(&octets[..34]), Ok(Ssid(&[0x41; 32])));
    }

    #[test]
    fn erp_bits() {
        let bits = |e: Erp| [e.non_erp_present(), e.use_protection(), e.long_preamble()];
        assert_eq!(bits(Erp(1)), [true, false, false]);
        assert_eq!(bits(Erp(2)), [false, true, false]);
        assert_eq!(bits(Erp(4)), [false, false, true]);
    }
}
