//! Commands to the running firmware: a header of four octets (payload length, code, sequence, extra), and a payload
//! of at most 60.

use core::fmt;

/// Octets of the header of commands and responses.
pub const HEADER_OCTETS: usize = 4;
/// Octets of the longest payload.
pub const MAX_PAYLOAD_OCTETS: usize = 60;
/// Octets of the longest command.
pub const MAX_OCTETS: usize = HEADER_OCTETS + MAX_PAYLOAD_OCTETS;
/// Registers that one read can ask for.
pub const MAX_READS: usize = MAX_PAYLOAD_OCTETS / 4;
/// Registers that one write can set.
pub const MAX_WRITES: usize = MAX_PAYLOAD_OCTETS / 8;
/// In the code of a command: the host does not wait for the response, which comes all the same.
pub const ASYNCHRONOUS: u8 = 0x40;
/// Both bits are set in the code of an event, which answers no command.
pub const EVENT: u8 = 0xc0;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $octet:literal),* $(,)?) => {
        /// What a command asks for.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Code { $($(#[$doc])* $name = $octet),* }

        impl Code {
            /// All of them.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// From its octet, without [`ASYNCHRONOUS`]; `None` for one that the firmware does not know.
            pub const fn from_octet(octet: u8) -> Option<Code> {
                match octet {
                    $($octet => Some(Code::$name),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// Reads registers: addresses in, values out.
    ReadRegisters = 0x00,
    /// Writes registers: pairs of address and value.
    WriteRegisters = 0x01,
    /// Gives the payload back.
    Echo = 0x02,
    /// Resets the MAC.
    ResetMac = 0x03,
    /// Back to the ROM loader.
    Reboot = 0x04,
    /// Takes the beacon out of its memory: interface, mode, address, length.
    Beacon = 0x05,
    /// Reads the TSF.
    ReadTsf = 0x06,
    /// Sets which received frames are dropped.
    RxFilter = 0x07,
    /// Wake on wireless LAN.
    WakeOnWlan = 0x08,
    /// Reads and clears the counters.
    Tally = 0x09,
    /// Writes octets to memory.
    WriteMemory = 0x0a,
    /// Sets a key.
    EnableKey = 0x10,
    /// Takes a key away.
    DisableKey = 0x11,
    /// Changes the channel without a full initialisation.
    Frequency = 0x20,
    /// Initialises the RF part on a channel.
    RfInit = 0x21,
    /// Begins a change of channel.
    FrequencyStart = 0x23,
    /// Power save: sleep or wake.
    PowerSave = 0x24,
}

/// In the state of [`Order::power_save`]: power the radio down.
pub const SLEEP: u32 = 0x1000;

/// A command, ready to be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Order {
    octets: [u8; MAX_OCTETS],
    len: u8,
}

impl Order {
    /// Any command; what is beyond 60 octets of payload is cut off.
    pub fn new(code: Code, payload: &[u8]) -> Order {
        let payload = &payload[..payload.len().min(MAX_PAYLOAD_OCTETS)];
        let mut octets = [0; MAX_OCTETS];
        octets[0] = payload.len() as u8;
        octets[1] = code as u8;
        octets[HEADER_OCTETS..HEADER_OCTETS + payload.len()].copy_from_slice(payload);
        Order {
            octets,
            len: (HEADER_OCTETS + payload.len()) as u8,
        }
    }

    fn of_words(code: Code, words: impl Iterator<Item = u32>) -> Order {
        let mut payload = [0; MAX_PAYLOAD_OCTETS];
        let mut len = 0;
        for (place, word) in payload.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
            len += 4;
        }
        Order::new(code, &payload[..len])
    }

    /// Reads up to [`MAX_READS`] registers.
    pub fn read(addresses: &[u32]) -> Order {
        Order::of_words(Code::ReadRegisters, addresses.iter().copied())
    }

    /// Writes up to [`MAX_WRITES`] registers.
    pub fn write(pairs: &[(u32, u32)]) -> Order {
        let pairs = &pairs[..pairs.len().min(MAX_WRITES)];
        Order::of_words(Code::WriteRegisters, pairs.iter().flat_map(|p| [p.0, p.1]))
    }

    /// Asks for four octets back.
    pub fn echo(word: u32) -> Order {
        Order::of_words(Code::Echo, [word].into_iter())
    }

    /// A command without payload.
    pub fn bare(code: Code) -> Order {
        Order::new(code, &[])
    }

    /// Sets which received frames are dropped: bits of [`register::filter`](super::register::filter).
    pub fn rx_filter(mask: u32) -> Order {
        Order::of_words(Code::RxFilter, [mask].into_iter())
    }

    /// `n` alone: awake, and 0 ends power save. With [`SLEEP`]: asleep for `n` beacon intervals.
    pub fn power_save(state: u32) -> Order {
        Order::of_words(Code::PowerSave, [state].into_iter())
    }

    /// Initialises the RF part, 20 MHz without HT, at a centre frequency in MHz. The four words of the calibration
    /// slope follow from it; the loop count is Linux's.
    pub fn rf_init(mhz: u16) -> Order {
        let (exponent, mantissa) = slope(mhz, false);
        let (exponent_short, mantissa_short) = slope(mhz, true);
        let words = [
            u32::from(mhz) * 1_000,
            0,
            exponent,
            mantissa,
            exponent_short,
            mantissa_short,
            2_000,
        ];
        Order::of_words(Code::RfInit, words.into_iter())
    }

    /// Hands the beacon in memory over for the next TBTT (`submit`), or drains what waits behind beacons. The length is
    /// that with FCS.
    pub fn beacon(interface: u32, submit: bool, address: u32, octets: u32) -> Order {
        Order::of_words(
            Code::Beacon,
            [interface, submit.into(), address, octets].into_iter(),
        )
    }

    /// What it asks for.
    pub fn code(&self) -> Code {
        Code::from_octet(self.octets[1]).unwrap_or(Code::Echo)
    }

    /// What goes to the endpoint.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.len)]
    }

    /// The payload alone.
    pub fn payload(&self) -> &[u8] {
        &self.octets()[HEADER_OCTETS..]
    }

    /// Octets of payload that the response has. Any other length is none of this firmware's.
    pub fn response_octets(&self) -> usize {
        match self.code() {
            Code::ReadRegisters | Code::Echo => self.payload().len(),
            Code::ReadTsf => 8,
            Code::Tally => 24,
            Code::Frequency | Code::RfInit => 4,
            _ => 0,
        }
    }
}

impl fmt::Debug for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:02x?})", self.code(), self.payload())
    }
}

/// Exponent and mantissa of the pilot slope at a centre frequency, as the baseband of this family takes them:
/// 100 * 2^24 / MHz (with short guard nine tenths of it) = mantissa * 2^(8 - exponent), the mantissa with 15 bits.
fn slope(mhz: u16, short_guard: bool) -> (u32, u32) {
    let scaled = (100_u32 << 24) / u32::from(mhz.clamp(2_000, 8_000));
    let scaled = if short_guard {
        scaled / 10 * 9 + scaled % 10 * 9 / 10
    } else {
        scaled
    };
    let exponent = 14 + 24 - scaled.ilog2();
    let drop = 24 - exponent;
    (exponent - 16, (scaled + (1 << drop >> 1)) >> drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_of_commands() {
        assert_eq!(
            Order::echo(0x4a11_0123).octets(),
            [4, 2, 0, 0, 0x23, 0x01, 0x11, 0x4a]
        );
        assert_eq!(Order::bare(Code::ReadTsf).octets(), [0, 6, 0, 0]);
        assert_eq!(Order::read(&[0x1600]).octets(), [4, 0, 0, 0, 0, 0x16, 0, 0]);
        let write = Order::write(&[(0x1c_3d30, 0x100)]);
        assert_eq!(write.octets(), [8, 1, 0, 0, 0x30, 0x3d, 0x1c, 0, 0, 1, 0, 0]);
        assert_eq!(
            Order::power_save(SLEEP | 1).octets(),
            [4, 0x24, 0, 0, 1, 0x10, 0, 0]
        );
        let beacon = Order::beacon(0, true, 0x11_7d80, 60);
        assert_eq!(
            beacon.payload(),
            [0, 0, 0, 0, 1, 0, 0, 0, 0x80, 0x7d, 0x11, 0, 60, 0, 0, 0]
        );
    }

    /// What Linux sends on channel 1.
    #[test]
    fn a_channel_as_linux_sets_it() {
        let words: std::vec::Vec<u32> = Order::rf_init(2_412)
            .payload()
            .chunks_exact(4)
            .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
            .collect();
        assert_eq!(words, [2_412_000, 0, 3, 21_737, 3, 19_563, 2_000]);
        assert!((0..=u16::MAX).all(|mhz| Order::rf_init(mhz).octets().len() == 32));
    }

    #[test]
    fn what_is_too_much_is_cut_off() {
        assert_eq!(Order::read(&[1; 40]).octets().len(), MAX_OCTETS);
        assert_eq!(
            Order::write(&[(1, 2); 40]).octets().len(),
            HEADER_OCTETS + 8 * MAX_WRITES
        );
        assert_eq!(Order::new(Code::Echo, &[7; 99]).octets().len(), MAX_OCTETS);
        assert_eq!(Order::read(&[1; 15]).response_octets(), 60);
    }

    #[test]
    fn codes_there_and_back() {
        for octet in 0..=255 {
            let known = Code::ALL.iter().find(|c| **c as u8 == octet).copied();
            assert_eq!(Code::from_octet(octet), known);
        }
    }
}
