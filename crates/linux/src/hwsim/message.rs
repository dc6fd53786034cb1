//! The messages between mac80211_hwsim and its medium: generic netlink, read and written.
//!
//! Numbers and layouts are those of drivers/net/wireless/mac80211_hwsim.h of Linux 6.1.

use frame::MacAddr;

use super::{Delivery, Event, MAX_SERIES, Radio, Sent, Series, Status};
use crate::generic::{GENERIC_HEADER, generic};
use crate::netlink::{attribute, attributes, find, number, text_of, u32_of};

/// Name of the family.
pub(super) const FAMILY: &str = "MAC80211_HWSIM";

/// Commands.
pub(super) mod command {
    pub const REGISTER: u8 = 1;
    pub const FRAME: u8 = 2;
    pub const TX_INFO_FRAME: u8 = 3;
    pub const NEW_RADIO: u8 = 4;
    pub const DEL_RADIO: u8 = 5;
    pub const GET_RADIO: u8 = 6;
    pub const ADD_MAC_ADDR: u8 = 7;
    pub const DEL_MAC_ADDR: u8 = 8;
}

/// Attributes.
mod attr {
    pub const ADDR_RECEIVER: u16 = 1;
    pub const ADDR_TRANSMITTER: u16 = 2;
    pub const FRAME: u16 = 3;
    pub const FLAGS: u16 = 4;
    pub const RX_RATE: u16 = 5;
    pub const SIGNAL: u16 = 6;
    pub const TX_INFO: u16 = 7;
    pub const COOKIE: u16 = 8;
    pub const RADIO_ID: u16 = 10;
    pub const RADIO_NAME: u16 = 17;
    pub const FREQ: u16 = 19;
    pub const TX_INFO_FLAGS: u16 = 21;
}

/// `HWSIM_TX_CTL_NO_ACK`: no ACK is awaited.
const NO_ACK: u32 = 2;
/// `HWSIM_TX_STAT_ACK`: the frame was acknowledged.
const ACKED: u32 = 4;
/// Octets of `struct hwsim_tx_rate` and `struct hwsim_tx_rate_flag`.
const RATE_OCTETS: usize = 2;
const RATE_FLAG_OCTETS: usize = 3;

/// What the body of a message of the family says; `None` if it is of a kind that a medium does not get, or makes no
/// sense.
pub(super) fn event(body: &[u8]) -> Option<Event> {
    let (head, octets) = body.split_at_checked(GENERIC_HEADER)?;
    match head[0] {
        command::FRAME => sent(octets).map(Event::Sent),
        command::ADD_MAC_ADDR | command::DEL_MAC_ADDR => Some(Event::Address {
            radio: address(octets, attr::ADDR_TRANSMITTER)?,
            address: address(octets, attr::ADDR_RECEIVER)?,
            added: head[0] == command::ADD_MAC_ADDR,
        }),
        _ => None,
    }
}

fn sent(octets: &[u8]) -> Option<Sent> {
    let mut s = Sent {
        radio: MacAddr::ZERO,
        frame: Vec::new(),
        mhz: None,
        cookie: 0,
        flags: 0,
        plan: [Series::NONE; MAX_SERIES],
    };
    let (mut from, mut named) = (false, false);
    for (kind, value) in attributes(octets) {
        match kind {
            attr::ADDR_TRANSMITTER => {
                s.radio = MacAddr(*value.first_chunk()?);
                from = true;
            }
            attr::FRAME => s.frame = value.to_vec(),
            attr::FREQ => s.mhz = u32_of(value).and_then(|mhz| u16::try_from(mhz).ok()),
            attr::FLAGS => s.flags = u32_of(value)?,
            attr::COOKIE => {
                s.cookie = u64::from_ne_bytes(*value.first_chunk()?);
                named = true;
            }
            attr::TX_INFO => {
                for (series, octets) in s.plan.iter_mut().zip(value.chunks_exact(RATE_OCTETS)) {
                    (series.index, series.tries) = (octets[0].cast_signed(), octets[1]);
                }
            }
            attr::TX_INFO_FLAGS => {
                for (series, octets) in s.plan.iter_mut().zip(value.chunks_exact(RATE_FLAG_OCTETS)) {
                    series.flags = u16::from_ne_bytes([octets[1], octets[2]]);
                }
            }
            _ => {}
        }
    }
    (from && named && !s.frame.is_empty()).then_some(s)
}

fn address(octets: &[u8], kind: u16) -> Option<MacAddr> {
    find(octets, kind)?.first_chunk().map(|a| MacAddr(*a))
}

impl Sent {
    /// Whether no ACK is awaited.
    pub fn no_ack(&self) -> bool {
        self.flags & NO_ACK != 0
    }
}

/// Number and name in a part of the answer to GET_RADIO.
pub(super) fn radio(body: &[u8]) -> Option<Radio> {
    let octets = body.get(GENERIC_HEADER..)?;
    let id = find(octets, attr::RADIO_ID).and_then(u32_of)?;
    let name = find(octets, attr::RADIO_NAME).and_then(text_of);
    let [_, _, high, low] = id.to_be_bytes();
    Some(Radio {
        id,
        name: name.map_or_else(|| format!("radio {id}"), str::to_owned),
        // as the module numbers them, unless they were made with another address
        address: MacAddr([2, 0, 0, high, low, 0]),
    })
}

/// The DEL_RADIO of a number.
pub(super) fn removal(family: u16, id: u32) -> Vec<u8> {
    generic(family, command::DEL_RADIO, libc::NLM_F_ACK, |m| {
        number(m, attr::RADIO_ID, id)
    })
}

/// The FRAME that a radio receives.
pub(super) fn delivery(family: u16, to: MacAddr, d: &Delivery<'_>) -> Vec<u8> {
    generic(family, command::FRAME, 0, |m| {
        attribute(m, attr::ADDR_RECEIVER, |m| m.extend(to.0));
        attribute(m, attr::FRAME, |m| m.extend(d.frame));
        number(m, attr::RX_RATE, d.rate_index);
        number(m, attr::SIGNAL, i32::from(d.signal_dbm).cast_unsigned());
        number(m, attr::FREQ, d.mhz.into());
    })
}

/// The TX_INFO_FRAME that ends a frame.
pub(super) fn status(family: u16, s: &Status) -> Vec<u8> {
    generic(family, command::TX_INFO_FRAME, 0, |m| {
        attribute(m, attr::ADDR_TRANSMITTER, |m| m.extend(s.radio.0));
        number(m, attr::FLAGS, s.flags | if s.acked { ACKED } else { 0 });
        attribute(m, attr::COOKIE, |m| m.extend(s.cookie.to_ne_bytes()));
        number(m, attr::SIGNAL, i32::from(s.signal_dbm).cast_unsigned());
        attribute(m, attr::TX_INFO, |m| {
            for series in &s.done {
                m.extend([series.index.cast_unsigned(), series.tries]);
            }
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{messages, text};
    use proptest::prelude::*;

    const RADIO: MacAddr = MacAddr([0x42, 0, 0, 0, 3, 0]);

    fn frame_message() -> Vec<u8> {
        let mut m = vec![command::FRAME, 1, 0, 0];
        attribute(&mut m, attr::ADDR_TRANSMITTER, |m| m.extend(RADIO.0));
        attribute(&mut m, attr::FRAME, |m| m.extend([0x08, 0, 1, 2, 3]));
        number(&mut m, attr::FLAGS, 3);
        number(&mut m, attr::FREQ, 5180);
        attribute(&mut m, attr::TX_INFO, |m| {
            m.extend([7, 2, 4, 3, 0xff, 0, 0xff, 0])
        });
        attribute(&mut m, attr::TX_INFO_FLAGS, |m| {
            for (index, flags) in [(7, 1u16), (4, 0x108), (0xff, 0), (0xff, 0)] {
                m.push(index);
                m.extend(flags.to_ne_bytes());
            }
        });
        attribute(&mut m, attr::COOKIE, |m| {
            m.extend(0x1234_5678_9abc_u64.to_ne_bytes())
        });
        m
    }

    #[test]
    fn a_frame_with_its_plan() {
        let Some(Event::Sent(s)) = event(&frame_message()) else {
            panic!("no frame");
        };
        assert_eq!((s.radio, s.mhz, s.cookie), (RADIO, Some(5180), 0x1234_5678_9abc));
        assert_eq!(
            (&s.frame[..], s.flags, s.no_ack()),
            (&[8, 0, 1, 2, 3][..], 3, true)
        );
        let plan: Vec<_> = s.plan.iter().map(|p| (p.index, p.tries, p.flags)).collect();
        assert_eq!(plan, [(7, 2, 1), (4, 3, 0x108), (-1, 0, 0), (-1, 0, 0)]);
    }

    #[test]
    fn an_interface_has_an_address() {
        for (command, added) in [(command::ADD_MAC_ADDR, true), (command::DEL_MAC_ADDR, false)] {
            let mut m = vec![command, 1, 0, 0];
            attribute(&mut m, attr::ADDR_TRANSMITTER, |m| m.extend(RADIO.0));
            attribute(&mut m, attr::ADDR_RECEIVER, |m| m.extend([2, 0, 0, 0, 3, 0]));
            let address = MacAddr([2, 0, 0, 0, 3, 0]);
            let radio = RADIO;
            assert_eq!(
                event(&m),
                Some(Event::Address {
                    radio,
                    address,
                    added
                })
            );
        }
    }

    #[test]
    fn radios_with_and_without_a_name() {
        let mut m = vec![command::GET_RADIO, 1, 0, 0];
        number(&mut m, attr::RADIO_ID, 0x102);
        assert_eq!(radio(&m).unwrap().name, "radio 258");
        assert_eq!(radio(&m).unwrap().address, MacAddr([2, 0, 0, 1, 2, 0]));
        text(&mut m, attr::RADIO_NAME, "phy7");
        assert_eq!(radio(&m).unwrap().name, "phy7");
    }

    /// What we tell the kernel is what it would read: the same parser, and the octets by hand.
    #[test]
    fn what_the_kernel_is_told() {
        let done = [(7, 2), (4, 1), (-1, 0), (-1, 0)].map(|(index, tries)| Series {
            index,
            tries,
            flags: 0,
        });
        let told = status(
            0x1d,
            &Status {
                radio: RADIO,
                cookie: 9,
                flags: 1,
                acked: true,
                signal_dbm: -40,
                done,
            },
        );
        let (kind, _, body) = messages(&told).next().unwrap();
        assert_eq!((kind, body[0]), (0x1d, command::TX_INFO_FRAME));
        let find = |kind| find(&body[GENERIC_HEADER..], kind).unwrap();
        assert_eq!(find(attr::TX_INFO), [7, 2, 4, 1, 0xff, 0, 0xff, 0]);
        assert_eq!(u32_of(find(attr::FLAGS)), Some(5));
        assert_eq!(find(attr::SIGNAL), (-40_i32).to_ne_bytes());
        assert_eq!(find(attr::COOKIE), 9_u64.to_ne_bytes());
        let heard = Delivery {
            frame: &[1, 2, 3],
            rate_index: 7,
            signal_dbm: -30,
            mhz: 5180,
        };
        let told = delivery(0x1d, RADIO, &heard);
        let (_, _, body) = messages(&told).next().unwrap();
        let octets = &body[GENERIC_HEADER..];
        assert_eq!(address(octets, attr::ADDR_RECEIVER), Some(RADIO));
        assert_eq!(super::find(octets, attr::FRAME), Some(&[1, 2, 3][..]));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            for (_, _, body) in messages(&octets) {
                let _ = (event(body), radio(body));
            }
            let _ = (event(&octets), radio(&octets));
        }

        /// A real message, cut anywhere and with one octet changed.
        #[test]
        fn damaged_messages_are_read_without_panic(at in 0usize..200, octet: u8, end in 0usize..200) {
            let mut m = frame_message();
            let at = at % m.len();
            m[at] = octet;
            let _ = event(&m);
            let _ = event(&m[..end.min(m.len())]);
        }

        #[test]
        fn plans_come_back(plan in proptest::collection::vec((any::<i8>(), any::<u8>()), 0..8)) {
            let mut m = vec![command::FRAME, 1, 0, 0];
            attribute(&mut m, attr::ADDR_TRANSMITTER, |m| m.extend(RADIO.0));
            attribute(&mut m, attr::FRAME, |m| m.push(1));
            attribute(&mut m, attr::COOKIE, |m| m.extend(1_u64.to_ne_bytes()));
            attribute(&mut m, attr::TX_INFO, |m| {
                plan.iter().for_each(|(index, tries)| m.extend([index.cast_unsigned(), *tries]));
            });
            let Some(Event::Sent(s)) = event(&m) else { panic!("no frame") };
            for (read, written) in s.plan.iter().zip(&plan) {
                prop_assert_eq!((read.index, read.tries), *written);
            }
        }
    }
}
