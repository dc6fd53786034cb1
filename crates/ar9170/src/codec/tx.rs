//! A frame to be sent: descriptors for the firmware (24 octets) and for the hardware (8), and the MPDU without FCS. One
//! frame is one transfer.

use super::phy::PhyControl;
use super::{array, u16_at, u32_at};
use frame::fcs::FCS_OCTETS;

/// Octets before the MPDU.
pub const DESCRIPTOR_OCTETS: usize = 32;
/// Rates of a frame at most.
pub const MAX_RATES: usize = 4;
/// Tries at one rate at most.
pub const MAX_TRIES: u8 = 7;

/// What goes before a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protection {
    /// Nothing.
    #[default]
    None,
    /// RTS.
    Rts,
    /// CTS to oneself.
    Cts,
}

/// Tries at one rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RateTries {
    /// How it is sent.
    pub phy: PhyControl,
    /// 1 to [`MAX_TRIES`].
    pub tries: u8,
    /// What goes before it.
    pub protection: Protection,
}

/// A frame to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TxFrame<'a> {
    /// Names it in its status; 1 to the number of descriptors of the firmware.
    pub cookie: u8,
    /// Hardware queue, 0 (background) to 3 (voice).
    pub queue: u8,
    /// Interface, 0 to 7.
    pub interface: u8,
    /// The firmware writes the sequence number.
    pub assign_sequence: bool,
    /// The hardware writes the TSF into the timestamp.
    pub insert_tsf: bool,
    /// It waits for the next DTIM beacon.
    pub after_beacon: bool,
    /// No ACK is waited for.
    pub no_ack: bool,
    /// It draws a backoff.
    pub backoff: bool,
    /// The hardware writes the Duration field.
    pub duration: bool,
    /// One to four rates; the list ends at the first without tries.
    pub rates: [RateTries; MAX_RATES],
    /// The MPDU without FCS.
    pub mpdu: &'a [u8],
}

/// Bits of the firmware's flags.
mod misc {
    pub const QUEUE: u8 = 0x03;
    pub const ASSIGN_SEQUENCE: u8 = 0x04;
    pub const INTERFACE_SHIFT: u8 = 3;
    pub const INSERT_TSF: u8 = 0x40;
    pub const AFTER_BEACON: u8 = 0x80;
}

/// Bits of the hardware's control word.
mod mac {
    pub const RTS: u16 = 0x0001;
    pub const CTS: u16 = 0x0002;
    pub const NO_ACK: u16 = 0x0004;
    pub const BACKOFF: u16 = 0x0008;
    pub const DURATION: u16 = 0x0200;
    pub const QUEUE_SHIFT: u16 = 10;
}

impl<'a> TxFrame<'a> {
    /// Rates that are set.
    pub fn rates(&self) -> impl Iterator<Item = &RateTries> {
        self.rates.iter().take_while(|r| r.tries > 0)
    }

    /// Writes it and tells its octets; `None` without room.
    pub fn emit(&self, out: &mut [u8]) -> Option<usize> {
        let all = DESCRIPTOR_OCTETS + self.mpdu.len();
        let (head, mpdu) = out.get_mut(..all)?.split_at_mut(DESCRIPTOR_OCTETS);
        head.copy_from_slice(&self.descriptors()?);
        mpdu.copy_from_slice(self.mpdu);
        Some(all)
    }

    /// What goes before the MPDU; `None` if that is too long.
    pub fn descriptors(&self) -> Option<[u8; DESCRIPTOR_OCTETS]> {
        let all = u16::try_from(DESCRIPTOR_OCTETS + self.mpdu.len()).ok()?;
        let mut head = [0; DESCRIPTOR_OCTETS];
        head[..2].copy_from_slice(&all.to_le_bytes());
        head[4] = self.cookie;
        let mut flags = self.queue & misc::QUEUE | (self.interface & 7) << misc::INTERFACE_SHIFT;
        let set = |on: bool, bit: u8| if on { bit } else { 0 };
        flags |= set(self.assign_sequence, misc::ASSIGN_SEQUENCE);
        flags |= set(self.insert_tsf, misc::INSERT_TSF);
        flags |= set(self.after_beacon, misc::AFTER_BEACON);
        head[6] = flags;
        for (i, rate) in self.rates().enumerate() {
            let protection = match rate.protection {
                Protection::None => 0,
                Protection::Rts => 1,
                Protection::Cts => 2,
            };
            head[8 + i] = rate.tries.min(MAX_TRIES) | protection << 3;
            let at = if i == 0 { 28 } else { 8 + 4 * i };
            head[at..at + 4].copy_from_slice(&rate.phy.0.to_le_bytes());
        }
        let length = u16::try_from(self.mpdu.len() + FCS_OCTETS).ok()?;
        head[24..26].copy_from_slice(&length.to_le_bytes());
        let bit = |on: bool, bit: u16| if on { bit } else { 0 };
        let control = bit(self.no_ack, mac::NO_ACK)
            | bit(self.backoff, mac::BACKOFF)
            | bit(self.duration, mac::DURATION)
            | match self.rates[0].protection {
                Protection::None => 0,
                Protection::Rts => mac::RTS,
                Protection::Cts => mac::CTS,
            }
            | u16::from(self.queue & 3) << mac::QUEUE_SHIFT;
        head[26..28].copy_from_slice(&control.to_le_bytes());
        Some(head)
    }

    /// Reads a transfer; `None` if its lengths contradict each other or it has no try.
    pub fn parse(octets: &'a [u8]) -> Option<TxFrame<'a>> {
        let head: [u8; DESCRIPTOR_OCTETS] = array(octets, 0)?;
        let mpdu = &octets[DESCRIPTOR_OCTETS..];
        let total = usize::from(u16_at(&head, 0)?);
        let length = usize::from(u16_at(&head, 24)?);
        if total != octets.len() || length != mpdu.len() + FCS_OCTETS || head[8] & 7 == 0 {
            return None;
        }
        let control = u16_at(&head, 26)?;
        let mut rates = [RateTries::default(); MAX_RATES];
        for (i, rate) in rates.iter_mut().enumerate() {
            let (at, control) = (if i == 0 { 28 } else { 8 + 4 * i }, head[8 + i]);
            let phy = PhyControl(u32_at(&head, at)?);
            if i > 0 && phy.0 == 0 || control & 7 == 0 {
                break;
            }
            *rate = RateTries {
                phy,
                tries: control & 7,
                protection: match control >> 3 & 3 {
                    1 => Protection::Rts,
                    2 => Protection::Cts,
                    _ => Protection::None,
                },
            };
        }
        Some(TxFrame {
            cookie: head[4],
            queue: head[6] & misc::QUEUE,
            interface: head[6] >> misc::INTERFACE_SHIFT & 7,
            assign_sequence: head[6] & misc::ASSIGN_SEQUENCE != 0,
            insert_tsf: head[6] & misc::INSERT_TSF != 0,
            after_beacon: head[6] & misc::AFTER_BEACON != 0,
            no_ack: control & mac::NO_ACK != 0,
            backoff: control & mac::BACKOFF != 0,
            duration: control & mac::DURATION != 0,
            rates,
            mpdu,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Rate;

    fn rate(text: &str, tries: u8, protection: Protection, chains: u8) -> RateTries {
        RateTries {
            phy: PhyControl::new(Rate::parse(text).unwrap(), 36, chains).unwrap(),
            tries,
            protection,
        }
    }

    fn frame(mpdu: &[u8]) -> TxFrame<'_> {
        let none = RateTries::default();
        TxFrame {
            cookie: 3,
            queue: 1,
            interface: 0,
            assign_sequence: true,
            insert_tsf: false,
            after_beacon: false,
            no_ack: false,
            backoff: true,
            duration: true,
            rates: [rate("1M", 3, Protection::None, 5), none, none, none],
            mpdu,
        }
    }

    /// A probe request and a data frame as Linux's driver was seen to send them in an IBSS.
    #[test]
    fn golden_descriptors() {
        let mut out = [0; 200];
        let n = frame(&[0x40; 68]).emit(&mut out).unwrap();
        assert_eq!(n, 100);
        #[rustfmt::skip]
        assert_eq!(out[..32], [
            100, 0, 0, 0, 3, 0, 0x05, 0, 0x03, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 0, 0, 0, 72, 0, 0x08, 0x06, 0x00, 0xc8, 0x02, 0x00,
        ]);
        let one = rate("36M", 1, Protection::None, 1);
        let more = rate("11M", 3, Protection::Rts, 5);
        let data = TxFrame {
            assign_sequence: false,
            rates: [one, more, more, more],
            ..frame(&[0x88; 68])
        };
        data.emit(&mut out).unwrap();
        assert_eq!(out[6..12], [0x01, 0, 0x01, 0x0b, 0x0b, 0x0b]);
        assert_eq!(out[26..32], [0x08, 0x06, 0x01, 0xc8, 0x34, 0x00]);
        assert_eq!(TxFrame::parse(&out[..100]), Some(data));
        let group = TxFrame {
            no_ack: true,
            ..frame(&[0x08; 68])
        };
        group.emit(&mut out).unwrap();
        assert_eq!(out[26..28], [0x0c, 0x06]);
    }

    #[test]
    fn lengths_that_contradict_are_refused() {
        let mut out = [0; 100];
        let n = frame(&[7; 20]).emit(&mut out).unwrap();
        assert_eq!(TxFrame::parse(&out[..n]), Some(frame(&[7; 20])));
        assert_eq!(TxFrame::parse(&out[..n - 1]), None);
        assert_eq!(TxFrame::parse(&out[..n + 1]), None);
        for at in [0, 1, 24, 25] {
            let mut bad = out;
            bad[at] ^= 1;
            assert_eq!(TxFrame::parse(&bad[..n]), None);
        }
        out[8] = 0;
        assert_eq!(TxFrame::parse(&out[..n]), None, "without a try");
        assert_eq!(frame(&[7; 20]).emit(&mut [0; 51]), None);
    }
}
