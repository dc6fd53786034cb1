//! MAC addresses.

use core::fmt;

/// A 48-bit MAC address, first octet on the air first (IEEE 802-2014, clause 8.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// All stations: `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// All zeroes: "no address".
    pub const ZERO: MacAddr = MacAddr([0; 6]);

    /// A locally administered address that carries `index` in its last four octets: `02:00:xx:xx:xx:xx`.
    pub const fn local(index: u32) -> MacAddr {
        let [a, b, c, d] = index.to_be_bytes();
        MacAddr([0x02, 0x00, a, b, c, d])
    }

    /// True for group addresses (the individual/group bit is set); the broadcast address is one of them.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// True for the broadcast address alone.
    pub const fn is_broadcast(self) -> bool {
        matches!(self.0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    }

    /// Reads `aa:bb:cc:dd:ee:ff` (also with `-`); `None` for anything else.
    pub fn parse(text: &str) -> Option<MacAddr> {
        let mut out = [0u8; 6];
        let mut parts = text.split([':', '-']);
        for octet in &mut out {
            let part = parts.next()?;
            if part.len() != 2 || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
                return None;
            }
            *octet = u8::from_str_radix(part, 16).ok()?;
        }
        parts.next().is_none().then_some(MacAddr(out))
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn text_round_trip() {
        let a = MacAddr([0x02, 0xab, 0, 1, 0x7f, 0xff]);
        assert_eq!(a.to_string(), "02:ab:00:01:7f:ff");
        assert_eq!(MacAddr::parse(&a.to_string()), Some(a));
        assert_eq!(MacAddr::parse("02-ab-00-01-7f-ff"), Some(a));
        for bad in [
            "",
            "02:ab",
            "02:ab:00:01:7f:ff:00",
            "02:ab:00:01:7f:+f",
            "2:ab:00:01:7f:ff",
        ] {
            assert_eq!(MacAddr::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn kinds() {
        assert!(MacAddr::BROADCAST.is_group() && MacAddr::BROADCAST.is_broadcast());
        assert!(MacAddr([1, 0, 0, 0, 0, 0]).is_group());
        assert!(!MacAddr::local(7).is_group());
        assert_eq!(MacAddr::local(0x0102_0304).0, [2, 0, 1, 2, 3, 4]);
    }
}
