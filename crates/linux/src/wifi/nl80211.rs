//! nl80211: radios and their interfaces, created, set and removed through generic netlink.
//!
//! Numbers are those of linux/nl80211.h.

use std::io;
use std::os::fd::AsFd;

use frame::MacAddr;
use rustix::net::netlink;

use super::error::Error;
use super::filter;
use super::watch::Watch;
use super::wiphy::Wiphy;
use crate::generic::{Family, GENERIC_HEADER, family, family_request, generic};
use crate::netlink::{
    Part, Socket, attribute, find, flag, interface, message, number, set_mtu, set_up, text, text_of, u32_of,
};
use crate::sys::packet::{attach_filter, join_group};

/// Octets of `struct ifinfomsg`.
const LINK_HEADER: usize = 16;

/// A flag of an interface (linux/if.h).
const IFF_LOWER_UP: u32 = 1 << 16;

/// The permanent address in the news of an interface (linux/if_link.h).
const IFLA_PERM_ADDRESS: u16 = 54;

/// Commands.
pub(super) mod command {
    pub const GET_WIPHY: u8 = 1;
    pub const SET_WIPHY: u8 = 2;
    pub const GET_INTERFACE: u8 = 5;
    pub const SET_INTERFACE: u8 = 6;
    pub const NEW_INTERFACE: u8 = 7;
    pub const DEL_INTERFACE: u8 = 8;
    pub const GET_REG: u8 = 31;
    pub const JOIN_IBSS: u8 = 43;
    pub const LEAVE_IBSS: u8 = 44;
    pub const SET_WIPHY_NETNS: u8 = 49;
    pub const SET_TX_BITRATE_MASK: u8 = 57;
}

/// Attributes.
pub(super) mod attr {
    pub const WIPHY: u16 = 1;
    pub const WIPHY_NAME: u16 = 2;
    pub const IFINDEX: u16 = 3;
    pub const IFNAME: u16 = 4;
    pub const IFTYPE: u16 = 5;
    pub const MAC: u16 = 6;
    pub const WIPHY_BANDS: u16 = 22;
    pub const MNTR_FLAGS: u16 = 23;
    pub const SUPPORTED_IFTYPES: u16 = 32;
    pub const REG_ALPHA2: u16 = 33;
    pub const WIPHY_FREQ: u16 = 38;
    pub const SSID: u16 = 52;
    pub const FREQ_FIXED: u16 = 60;
    pub const PID: u16 = 82;
    pub const TX_RATES: u16 = 90;
    pub const TX_POWER_SETTING: u16 = 97;
    pub const TX_POWER_LEVEL: u16 = 98;
    pub const SOFTWARE_IFTYPES: u16 = 121;
    pub const FEATURE_FLAGS: u16 = 143;
    pub const CHANNEL_WIDTH: u16 = 159;
    pub const CENTER_FREQ1: u16 = 160;
    pub const SPLIT_WIPHY_DUMP: u16 = 174;
    pub const SOCKET_OWNER: u16 = 204;
}

/// NL80211_IFTYPE_ADHOC.
pub(super) const AD_HOC: u32 = 1;
/// NL80211_IFTYPE_AP.
pub(super) const ACCESS_POINT: u32 = 3;
/// NL80211_IFTYPE_MONITOR.
pub(super) const MONITOR: u32 = 6;
const TX_POWER_AUTOMATIC: u32 = 0;
const TX_POWER_FIXED: u32 = 2;

/// What a monitor interface is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Monitor {
    /// Acknowledges frames for its own address, and sends frames with any transmitter address.
    Active,
    /// Only listens; sends with any transmitter address while no other interface of the radio is up.
    Plain,
    /// Sees what was sent with a wish for its outcome, and little else.
    Cook,
}

/// How wide a channel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChannelKind {
    /// 20 MHz, without the rates of 802.11n.
    Legacy,
    /// 20 MHz.
    Mhz20,
    /// 40 MHz around this centre.
    Mhz40 {
        /// MHz.
        centre: u16,
    },
}

/// An interface of a radio.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Number of the radio that it belongs to.
    pub wiphy: u32,
    /// NL80211_IFTYPE: 1 ad hoc, 2 station, 3 access point, 6 monitor, ...
    pub kind: u32,
    /// Its address.
    pub address: MacAddr,
    /// Centre frequency of the channel that it is on, where it is known.
    pub mhz: Option<u16>,
    /// Transmit power in dBm, where it is known.
    pub tx_power_dbm: Option<i8>,
}

/// The state of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub is_up: bool,
    /// It is in a network, or has one.
    pub has_carrier: bool,
}

/// The connection through which radios are controlled. Interfaces that were made through it are removed by the
/// kernel when it closes, however the process ends.
#[derive(Debug)]
pub struct Control {
    generic: Socket,
    route: Socket,
    family: Family,
}

impl Control {
    /// Opens it. Needs no right; what changes something does.
    ///
    /// # Errors
    /// [`Error::NoStack`] if this kernel has no nl80211.
    pub fn open() -> Result<Control, Error> {
        let open = Error::control("open a netlink socket");
        let mut generic = Socket::open(Some(netlink::GENERIC)).map_err(&open)?;
        let route = Socket::open(None).map_err(&open)?;
        let ask = generic
            .ask(family_request("nl80211"))
            .map_err(|e| match e.raw_os_error() {
                Some(libc::ENOENT) => Error::NoStack,
                _ => Error::control("look for nl80211")(e),
            })?;
        let family = ask.iter().find_map(family).ok_or(Error::NoStack)?;
        Ok(Control {
            generic,
            route,
            family,
        })
    }

    /// All radios of this network namespace.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn wiphys(&mut self) -> Result<Vec<Wiphy>, Error> {
        let body = |m: &mut Vec<u8>| flag(m, attr::SPLIT_WIPHY_DUMP);
        let parts = self
            .ask(command::GET_WIPHY, libc::NLM_F_DUMP, body)
            .map_err(Error::control("list radios"))?;
        Ok(Wiphy::collect(
            parts.iter().filter_map(|p| p.body.get(GENERIC_HEADER..)),
        ))
    }

    /// The radio of that name (`phy0`), or that an interface of that name (`wlan0`) belongs to.
    ///
    /// # Errors
    /// [`Error::NoSuchRadio`], [`Error::Kernel`].
    pub fn wiphy(&mut self, name: &str) -> Result<Wiphy, Error> {
        let all = self.wiphys()?;
        let by_interface = self.interfaces()?.into_iter().find(|i| i.name == name);
        let found = all
            .iter()
            .find(|w| w.name == name || by_interface.as_ref().is_some_and(|i| i.wiphy == w.index));
        found.cloned().ok_or_else(|| Error::NoSuchRadio {
            name: name.into(),
            have: all.into_iter().map(|w| w.name).collect(),
        })
    }

    /// All 802.11 interfaces of this network namespace.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn interfaces(&mut self) -> Result<Vec<Interface>, Error> {
        let parts = self
            .ask(command::GET_INTERFACE, libc::NLM_F_DUMP, |_| ())
            .map_err(Error::control("list interfaces"))?;
        Ok(parts.iter().filter_map(interface_of).collect())
    }

    /// The country whose rules hold (ISO 3166, two letters); `00` is the world: what is allowed everywhere.
    ///
    /// # Errors
    /// [`Error::Kernel`].
    pub fn country(&mut self) -> Result<String, Error> {
        let parts = self
            .ask(command::GET_REG, libc::NLM_F_ACK, |_| ())
            .map_err(Error::control("read the regulatory domain"))?;
        let code = parts.iter().find_map(|p| {
            let attributes = p.body.get(GENERIC_HEADER..)?;
            find(attributes, attr::REG_ALPHA2)
                .and_then(text_of)
                .map(str::to_owned)
        });
        Ok(code.unwrap_or_else(|| "00".into()))
    }

    /// Makes a monitor interface that lives as long as this connection.
    pub(super) fn new_monitor(
        &mut self,
        wiphy: u32,
        name: &str,
        monitor: Monitor,
        address: Option<MacAddr>,
    ) -> io::Result<Interface> {
        self.make(|m| new_monitor(m, wiphy, name, monitor, address))
    }

    /// Makes an interface and tells what was made.
    pub(super) fn make(&mut self, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<Interface> {
        let parts = self.ask(command::NEW_INTERFACE, libc::NLM_F_ACK, body)?;
        let made = parts.iter().find_map(interface_of);
        made.ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the kernel does not tell what it made",
            )
        })
    }

    /// A command that answers with no more than its success.
    pub(super) fn tell(&mut self, command: u8, body: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.ask(command, libc::NLM_F_ACK, body).map(|_| ())
    }

    /// Removes an interface.
    pub(super) fn remove(&mut self, interface: u32) -> io::Result<()> {
        self.ask(command::DEL_INTERFACE, libc::NLM_F_ACK, |m| {
            number(m, attr::IFINDEX, interface)
        })?;
        Ok(())
    }

    /// Sets an interface up or down.
    pub(super) fn set_up(&mut self, interface: u32, up: bool) -> io::Result<()> {
        self.route.ask(set_up(interface, up))?;
        Ok(())
    }

    /// Sets how many octets a packet through an interface may have, less those of a link header.
    pub(super) fn set_mtu(&mut self, interface: u32, octets: u32) -> io::Result<()> {
        self.route.ask(set_mtu(interface, octets))?;
        Ok(())
    }

    /// Whether an interface is up; an error if there is none.
    pub(super) fn is_up(&mut self, index: u32) -> io::Result<bool> {
        self.link(index).map(|link| link.is_up)
    }

    /// The state of an interface; an error if there is none.
    pub(super) fn link(&mut self, index: u32) -> io::Result<Link> {
        let ask = message(libc::RTM_GETLINK, libc::NLM_F_ACK, |m| interface(m, index));
        let parts = self.route.ask(ask)?;
        let flags = parts.iter().find_map(|p| u32_of(p.body.get(8..LINK_HEADER)?));
        let link = |flags: u32| Link {
            is_up: flags & libc::IFF_UP as u32 != 0,
            has_carrier: flags & IFF_LOWER_UP != 0,
        };
        flags.map(link).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// The permanent address of a radio, as far as its interfaces tell: that of a monitor is the radio's, another's may be its
    /// own.
    pub(super) fn permanent_address(&mut self, wiphy: u32) -> Option<MacAddr> {
        let mut all = self.interfaces().ok()?;
        all.retain(|i| i.wiphy == wiphy);
        all.sort_by_key(|i| (i.kind != MONITOR, i.index));
        let index = all.first()?.index;
        let ask = message(libc::RTM_GETLINK, libc::NLM_F_ACK, |m| interface(m, index));
        let parts = self.route.ask(ask).ok()?;
        let address = |p: &Part| {
            find(p.body.get(LINK_HEADER..)?, IFLA_PERM_ADDRESS)?
                .first_chunk()
                .copied()
        };
        parts.iter().find_map(address).map(MacAddr)
    }

    /// Sets the channel of an interface.
    pub(super) fn set_channel(&mut self, interface: u32, mhz: u16, kind: ChannelKind) -> io::Result<()> {
        self.ask(command::SET_WIPHY, libc::NLM_F_ACK, |m| {
            number(m, attr::IFINDEX, interface);
            number(m, attr::WIPHY_FREQ, mhz.into());
            let width = match kind {
                ChannelKind::Legacy => 0, // NL80211_CHAN_WIDTH_20_NOHT, 20, 40
                ChannelKind::Mhz20 => 1,
                ChannelKind::Mhz40 { .. } => 2,
            };
            number(m, attr::CHANNEL_WIDTH, width);
            if let ChannelKind::Mhz40 { centre } = kind {
                number(m, attr::CENTER_FREQ1, centre.into());
            }
        })?;
        Ok(())
    }

    /// Sets the transmit power of a radio, for all its interfaces: a monitor has none of its own. `None` leaves it to
    /// the driver.
    pub(super) fn set_tx_power(&mut self, wiphy: u32, dbm: Option<i8>) -> io::Result<()> {
        self.ask(command::SET_WIPHY, libc::NLM_F_ACK, |m| {
            number(m, attr::WIPHY, wiphy);
            number(
                m,
                attr::TX_POWER_SETTING,
                dbm.map_or(TX_POWER_AUTOMATIC, |_| TX_POWER_FIXED),
            );
            if let Some(dbm) = dbm {
                number(m, attr::TX_POWER_LEVEL, (i32::from(dbm) * 100).cast_unsigned());
            }
        })?;
        Ok(())
    }

    /// Sockets that become readable when this radio or the rules have changed, and when an interface has: which ones, the
    /// second one is to be told ([`filter::links`]).
    pub(super) fn watch(&self, wiphy: u32) -> Result<[Watch; 2], Error> {
        let open = Error::control("watch interfaces");
        let generic = Socket::open(Some(netlink::GENERIC)).map_err(&open)?;
        attach_filter(generic.as_fd(), &filter::radio(attr::WIPHY, wiphy)).map_err(&open)?;
        for (name, id) in &self.family.groups {
            if matches!(name.as_str(), "config" | "regulatory") {
                join_group(generic.as_fd(), *id).map_err(&open)?;
            }
        }
        let route = Socket::open(None).map_err(&open)?;
        join_group(route.as_fd(), libc::RTNLGRP_LINK).map_err(&open)?;
        Ok([Watch(generic), Watch(route)])
    }

    pub(super) fn ask(
        &mut self,
        command: u8,
        flags: i32,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<Vec<Part>> {
        self.generic.ask(generic(self.family.id, command, flags, body))
    }
}

/// An interface that lives as long as the connection through which it was made.
pub(super) fn new_interface(m: &mut Vec<u8>, wiphy: u32, name: &str, kind: u32, address: Option<MacAddr>) {
    number(m, attr::WIPHY, wiphy);
    text(m, attr::IFNAME, name);
    number(m, attr::IFTYPE, kind);
    flag(m, attr::SOCKET_OWNER);
    if let Some(address) = address {
        attribute(m, attr::MAC, |m| m.extend(address.0));
    }
}

fn new_monitor(m: &mut Vec<u8>, wiphy: u32, name: &str, monitor: Monitor, address: Option<MacAddr>) {
    new_interface(m, wiphy, name, MONITOR, address);
    attribute(m, attr::MNTR_FLAGS, |m| match monitor {
        Monitor::Active => flag(m, 6),
        Monitor::Cook => flag(m, 5),
        Monitor::Plain => {}
    });
}

fn interface_of(part: &Part) -> Option<Interface> {
    let body = part.body.get(GENERIC_HEADER..)?;
    let word = |kind| find(body, kind).and_then(u32_of);
    let address = find(body, attr::MAC).and_then(|a| a.first_chunk().copied());
    Some(Interface {
        index: word(attr::IFINDEX)?,
        name: find(body, attr::IFNAME).and_then(text_of)?.to_owned(),
        wiphy: word(attr::WIPHY)?,
        kind: word(attr::IFTYPE)?,
        address: MacAddr(address.unwrap_or_default()),
        mhz: word(attr::WIPHY_FREQ).and_then(|mhz| u16::try_from(mhz).ok()),
        tx_power_dbm: word(attr::TX_POWER_LEVEL).map(|mbm| (mbm.cast_signed() / 100) as i8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The octets behind `struct nlmsghdr` that `iw phy phy3 interface add sdmac3a type monitor flags active` sends,
    /// and the wish that the kernel removes it.
    #[test]
    fn a_monitor_that_ends_with_its_maker() {
        let m = generic(0x1c, command::NEW_INTERFACE, libc::NLM_F_ACK, |m| {
            new_monitor(m, 3, "sdmac3a", Monitor::Active, None);
        });
        assert_eq!(m[4..6], 0x1c_u16.to_ne_bytes());
        if cfg!(target_endian = "little") {
            #[rustfmt::skip]
            let expect = [
                7, 1, 0, 0,
                8, 0, 1, 0, 3, 0, 0, 0,
                12, 0, 4, 0, b's', b'd', b'm', b'a', b'c', b'3', b'a', 0,
                8, 0, 5, 0, 6, 0, 0, 0,
                4, 0, 204, 0,
                8, 0, 23, 0, 4, 0, 6, 0,
            ];
            assert_eq!(m[16..], expect);
        }
    }

    #[test]
    fn an_interface_as_the_kernel_tells_it() {
        let mut body = vec![7, 1, 0, 0];
        number(&mut body, attr::IFINDEX, 4);
        text(&mut body, attr::IFNAME, "wlan0");
        number(&mut body, attr::WIPHY, 1);
        number(&mut body, attr::IFTYPE, 2);
        attribute(&mut body, attr::MAC, |m| m.extend([2, 0, 0, 0, 1, 0]));
        number(&mut body, attr::WIPHY_FREQ, 5180);
        number(&mut body, attr::TX_POWER_LEVEL, 2_000);
        let part = |body: &[u8]| Part {
            kind: 28,
            body: body.to_vec(),
        };
        let wlan0 = Interface {
            index: 4,
            name: "wlan0".into(),
            wiphy: 1,
            kind: 2,
            address: MacAddr([2, 0, 0, 0, 1, 0]),
            mhz: Some(5180),
            tx_power_dbm: Some(20),
        };
        assert_eq!(interface_of(&part(&body)), Some(wlan0));
        for end in 0..body.len() {
            let _ = interface_of(&part(&body[..end])); // Cut anywhere: no panic.
        }
    }

    /// Where this kernel has no 802.11, it is said so; where it has, its radios can be listed.
    #[test]
    fn the_kernel_at_hand() {
        match Control::open() {
            Err(Error::NoStack) => {}
            Err(error) => panic!("{error}"),
            Ok(mut control) => {
                let radios = control.wiphys().unwrap();
                assert!(
                    control
                        .interfaces()
                        .unwrap()
                        .iter()
                        .all(|i| radios.iter().any(|r| r.index == i.wiphy))
                );
            }
        }
    }
}
