//! The EEPROM, as far as a driver without calibration needs it: its first 20 octets.

use super::{array, u16_at, u32_at};
use frame::MacAddr;

/// Octets of the whole.
pub const OCTETS: usize = 2_368;
/// Octets that [`Eeprom::parse`] wants: eight registers, one command.
pub const HEAD_OCTETS: usize = 32;

/// Identity of a stick.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Eeprom {
    /// It can do 5 GHz.
    pub ghz5: bool,
    /// It can do 2.4 GHz.
    pub ghz2_4: bool,
    /// Regulatory domain.
    pub domain: u32,
    /// Its address.
    pub address: MacAddr,
    /// Antennas that receive, a bit each.
    pub receive_chains: u8,
    /// Antennas that transmit.
    pub transmit_chains: u8,
}

/// What a driver cannot work with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EepromError {
    /// Fewer than [`HEAD_OCTETS`].
    Truncated,
    /// Nothing was ever written to it.
    Blank,
    /// It has no band.
    NoBand,
    /// It has no antenna.
    NoChain,
    /// Its address is that of a group, or zero.
    Address,
}

impl Eeprom {
    /// Reads the beginning of it.
    ///
    /// # Errors
    /// [`EepromError`].
    pub fn parse(octets: &[u8]) -> Result<Eeprom, EepromError> {
        use EepromError::Truncated;
        let octets: [u8; HEAD_OCTETS] = array(octets, 0).ok_or(Truncated)?;
        if u16_at(&octets, 0) == Some(0xffff) {
            return Err(EepromError::Blank);
        }
        let eeprom = Eeprom {
            ghz5: octets[6] & 1 != 0,
            ghz2_4: octets[6] & 2 != 0,
            domain: u32_at(&octets, 8).ok_or(Truncated)?,
            address: MacAddr(array(&octets, 12).ok_or(Truncated)?),
            receive_chains: octets[18],
            transmit_chains: octets[19],
        };
        if !eeprom.ghz5 && !eeprom.ghz2_4 {
            return Err(EepromError::NoBand);
        }
        if eeprom.receive_chains == 0 || eeprom.transmit_chains == 0 {
            return Err(EepromError::NoChain);
        }
        match eeprom.address {
            a if a.is_group() || a == MacAddr::ZERO => Err(EepromError::Address),
            _ => Ok(eeprom),
        }
    }

    /// Writes the beginning; everything else is zero.
    pub fn emit(&self) -> [u8; HEAD_OCTETS] {
        let mut out = [0; HEAD_OCTETS];
        out[6] = u8::from(self.ghz5) | u8::from(self.ghz2_4) << 1;
        out[8..12].copy_from_slice(&self.domain.to_le_bytes());
        out[12..18].copy_from_slice(&self.address.0);
        (out[18], out[19]) = (self.receive_chains, self.transmit_chains);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STICK: Eeprom = Eeprom {
        ghz5: false,
        ghz2_4: true,
        domain: 0x3a,
        address: MacAddr([2, 1, 2, 3, 4, 5]),
        receive_chains: 1,
        transmit_chains: 1,
    };

    #[test]
    fn there_and_back() {
        let octets = STICK.emit();
        #[rustfmt::skip]
        assert_eq!(octets[..20], [0, 0, 0, 0, 0, 0, 2, 0, 0x3a, 0, 0, 0, 2, 1, 2, 3, 4, 5, 1, 1]);
        assert_eq!(Eeprom::parse(&octets), Ok(STICK));
    }

    #[test]
    fn what_cannot_be_worked_with() {
        let with = |e: Eeprom| Eeprom::parse(&e.emit());
        assert_eq!(Eeprom::parse(&[0xff; 32]), Err(EepromError::Blank));
        assert_eq!(Eeprom::parse(&[0; 31]), Err(EepromError::Truncated));
        assert_eq!(
            with(Eeprom {
                ghz2_4: false,
                ..STICK
            }),
            Err(EepromError::NoBand)
        );
        assert_eq!(
            with(Eeprom {
                transmit_chains: 0,
                ..STICK
            }),
            Err(EepromError::NoChain)
        );
        assert_eq!(
            with(Eeprom {
                address: MacAddr::BROADCAST,
                ..STICK
            }),
            Err(EepromError::Address)
        );
        assert_eq!(
            with(Eeprom {
                address: MacAddr::ZERO,
                ..STICK
            }),
            Err(EepromError::Address)
        );
    }
}
