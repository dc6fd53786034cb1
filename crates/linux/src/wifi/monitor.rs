//! The monitor interfaces of one radio: made, found again, and removed.
//!
//! Nothing stays behind. The kernel removes our interfaces when the netlink socket closes that made them, which it
//! does however a process ends (NL80211_ATTR_SOCKET_OWNER). Whoever opens a radio holds a Unix socket with an
//! abstract name, which belongs to the network namespace and ends with the process: if the name is free, nobody
//! lives who could own interfaces with our names, and those that are there all the same are removed. Transmit power, and the one
//! rate of an ordinary interface, are not ours and outlive the socket: a file in [`MARKS`] says that it was set, until it is
//! given back; the next one to open the radio gives back what a killed process could not.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use frame::rate::Width;
use frame::{MacAddr, Rate};

use super::error::Error;
use super::nl80211::{ChannelKind, Control, Interface, MONITOR, Monitor};
use super::wiphy::{Channel, RadioBand, Wiphy};

/// What mac80211 lets an interface have at most (IEEE80211_MAX_DATA_LEN); 1500 unless it is set.
const MTU_OCTETS: u32 = 2_304;
/// Where it is noted that a radio's power was set, or the rate of an interface; a new boot empties it.
const MARKS: &str = "/run/sdmac";
/// First octets of the names of our interfaces.
const PREFIX: &str = "sdmac";

/// The interfaces, and the right to have them.
#[derive(Debug)]
pub(super) struct Monitors {
    pub control: Control,
    /// Through which frames are sent and received.
    pub main: Interface,
    /// [`Monitor::Active`] or [`Monitor::Plain`].
    pub kind: Monitor,
    /// What shows what was sent; where the kernel has no such interfaces, `main` shows that too.
    pub cook: Option<Interface>,
    /// Left behind by a process that is gone, and removed.
    pub swept: u32,
    /// The power of the radio was set, and is to be the driver's choice again.
    restore_tx_power: bool,
    /// This ordinary interface was given one rate, and is to have all again.
    pinned: Option<u32>,
    _claim: UnixDatagram,
}

impl Monitors {
    /// Makes them and sets them up. `kind` is what `main` is to be; `None`: an active one if the radio can.
    pub fn open(
        mut control: Control,
        wiphy: &Wiphy,
        kind: Option<Monitor>,
        address: Option<MacAddr>,
    ) -> Result<Monitors, Error> {
        if !wiphy.has_monitor {
            let wiphy = wiphy.name.clone();
            return Err(Error::NoMonitor { wiphy });
        }
        let kind = match kind {
            None if wiphy.has_active_monitor => Monitor::Active,
            None | Some(Monitor::Plain) => Monitor::Plain,
            Some(Monitor::Active) if wiphy.has_active_monitor => Monitor::Active,
            Some(_) => {
                let wiphy = wiphy.name.clone();
                return Err(Error::NoActiveMonitor { wiphy });
            }
        };
        let claim = claim(wiphy)?;
        let swept = sweep(&mut control, wiphy.index)?;
        if mark(wiphy.index).exists() {
            give_power_back(&mut control, wiphy.index);
        }
        let noted = std::fs::read_to_string(rate_mark(wiphy.index)).unwrap_or_default();
        if let Ok(interface) = noted.trim().parse() {
            give_rates_back(&mut control, wiphy.index, interface);
        }
        let [main, cook] = names(wiphy.index);
        let create = Error::control("create a monitor interface");
        let main = control
            .new_monitor(wiphy.index, &main, kind, address)
            .map_err(&create)?;
        let mut monitors = Monitors {
            control,
            main,
            kind,
            cook: None,
            swept,
            restore_tx_power: false,
            pinned: None,
            _claim: claim,
        };
        // Kernels since 6.15 have none.
        let cook = monitors
            .control
            .new_monitor(wiphy.index, &cook, Monitor::Cook, None);
        monitors.cook = cook.ok();
        // A packet is radiotap header and frame, and what is longer than this the kernel does not take (EMSGSIZE). Where even
        // this is refused, frames of 1500 octets and more are.
        let _ = monitors.control.set_mtu(monitors.main.index, MTU_OCTETS);
        // The cook monitor comes up when the channel is set.
        let up = monitors.control.set_up(monitors.main.index, true);
        up.map_err(Error::control("set a monitor interface up"))?;
        Ok(monitors)
    }

    /// Sets the channel. Statuses that are on their way meanwhile are lost.
    ///
    /// mac80211 (seen in 6.1) takes a new channel only while all interfaces that are up are monitors that count. A
    /// cook monitor does not count, and while it is up the channel is ignored without a word. And what a plain monitor
    /// sends is judged by the channel that was set when it came up, so it has to come up anew.
    ///
    /// # Errors
    /// In a few words.
    pub fn set_channel(&mut self, mhz: u16, kind: ChannelKind) -> Result<(), &'static str> {
        let cook = self.cook.as_ref().map(|c| c.index);
        let main = self.main.index;
        let plain = self.kind == Monitor::Plain;
        let control = |m: &mut Monitors, index, up| {
            let set = m.control.set_up(index, up);
            set.map_err(|_| "its interface is gone or may not be up")
        };
        if let Some(cook) = cook {
            control(self, cook, false)?;
        }
        let result = self.tune(mhz, kind);
        if plain {
            control(self, main, false)?;
            control(self, main, true)?;
        }
        if let Some(cook) = cook {
            control(self, cook, true)?;
        }
        result
    }

    fn tune(&mut self, mhz: u16, kind: ChannelKind) -> Result<(), &'static str> {
        self.ask_for(mhz, kind)?;
        if !self.is_at(mhz)? {
            // mac80211 (seen in 6.1) does nothing if it is told what it was told last, though an ordinary interface has taken the
            // radio elsewhere since.
            let other = match kind {
                ChannelKind::Legacy => ChannelKind::Mhz20,
                ChannelKind::Mhz20 | ChannelKind::Mhz40 { .. } => ChannelKind::Legacy,
            };
            let _ = self.control.set_channel(self.main.index, mhz, other); // Or the next one fails, too.
            self.ask_for(mhz, kind)?;
        }
        let held = "another of its interfaces holds the channel; take that one down";
        if self.is_at(mhz)? { Ok(()) } else { Err(held) }
    }

    fn is_at(&mut self, mhz: u16) -> Result<bool, &'static str> {
        let all = self.control.interfaces();
        let all = all.map_err(|_| "its interfaces cannot be listed")?;
        let is_it = |i: &Interface| i.wiphy == self.main.wiphy && i.mhz == Some(mhz);
        Ok(all.iter().any(is_it))
    }

    fn ask_for(&mut self, mhz: u16, kind: ChannelKind) -> Result<(), &'static str> {
        let set = self.control.set_channel(self.main.index, mhz, kind);
        let code = set.as_ref().map_err(io::Error::raw_os_error);
        match code {
            Err(Some(libc::EBUSY)) if matches!(kind, ChannelKind::Mhz40 { .. }) => {
                return Err("another of its interfaces holds the channel, however wide; take that one down");
            }
            // Another interface owns the channel, which may be the one that is wanted.
            Ok(()) | Err(Some(libc::EBUSY)) => {}
            Err(Some(libc::EPERM)) => return Err("CAP_NET_ADMIN is missing"),
            Err(Some(libc::ENODEV | libc::ENETDOWN)) => return Err("its interface is down or gone"),
            Err(_) => return Err("the driver refuses it"),
        }
        Ok(())
    }

    /// Sets the transmit power of the radio in dBm, until these interfaces go.
    pub fn set_tx_power(&mut self, dbm: i8) -> io::Result<()> {
        // Before, so that a process that is killed in between has noted it. Without the right to write there, a power stays
        // that a killed process had set.
        let _ = std::fs::create_dir_all(MARKS);
        let _ = std::fs::write(mark(self.main.wiphy), "");
        self.restore_tx_power = true;
        self.control.set_tx_power(self.main.wiphy, Some(dbm))
    }

    /// Lets an ordinary interface of the radio have one rate, until these interfaces go.
    ///
    /// # Errors
    /// [`Error::Ordinary`] if it cannot have it.
    pub fn pin(&mut self, interface: &Interface, mhz: u16, rate: Rate) -> Result<(), Error> {
        let _ = std::fs::create_dir_all(MARKS);
        let _ = std::fs::write(rate_mark(interface.wiphy), interface.index.to_string());
        self.pinned = Some(interface.index);
        let why = match self.control.pin_rate(interface, mhz, rate) {
            Err(Error::Kernel { source, .. }) if source.raw_os_error() == Some(libc::EINVAL) => format!(
                "{rate} is no basic rate of its network: take one that is (usually 1, 2, 5.5 and 11 Mb/s at 2.4 GHz, and 6, 12 \
                 and 24 Mb/s at 5 GHz), or begin the network with other basic rates"
            ),
            Err(Error::Config(why)) => why.into(),
            other => return other,
        };
        Err(Error::Ordinary {
            interface: interface.name.clone(),
            why,
        })
    }

    fn indices(&self) -> impl Iterator<Item = u32> + use<> {
        [Some(self.main.index), self.cook.as_ref().map(|c| c.index)]
            .into_iter()
            .flatten()
    }
}

impl Drop for Monitors {
    fn drop(&mut self) {
        if self.restore_tx_power {
            give_power_back(&mut self.control, self.main.wiphy);
        }
        if let Some(interface) = self.pinned {
            give_rates_back(&mut self.control, self.main.wiphy, interface);
        }
        for index in self.indices() {
            // Gone already if the radio was removed; and the kernel does it when the socket closes, too.
            let _ = self.control.remove(index);
        }
    }
}

/// The kind of a channel that is to be so wide.
///
/// # Errors
/// In a few words.
pub(super) fn kind(band: &RadioBand, channel: &Channel, width: Width) -> Result<ChannelKind, &'static str> {
    match (width, band.ht) {
        (Width::Mhz20, None) => Ok(ChannelKind::Legacy),
        (Width::Mhz20, Some(_)) => Ok(ChannelKind::Mhz20),
        (Width::Mhz40, _) => {
            let centre = channel.centre_of_40().filter(|_| band.has_40());
            let centre = centre.ok_or("no channel of 40 MHz is possible or allowed there")?;
            Ok(ChannelKind::Mhz40 { centre })
        }
    }
}

/// Names of the interfaces of a radio: main, cook.
fn names(wiphy: u32) -> [String; 2] {
    ["a", "c"].map(|role| format!("{PREFIX}{wiphy}{role}"))
}

/// Names of what is beside them while a radio is certified: access point, ad hoc network.
pub(super) fn other_names(wiphy: u32) -> [String; 2] {
    ["p", "i"].map(|role| format!("{PREFIX}{wiphy}{role}"))
}

/// The file that says that the power of a radio was set.
fn mark(wiphy: u32) -> PathBuf {
    Path::new(MARKS).join(format!("power-{wiphy}"))
}

/// Makes the power of a radio the driver's choice again.
fn give_power_back(control: &mut Control, wiphy: u32) {
    if control.set_tx_power(wiphy, None).is_ok() {
        let _ = std::fs::remove_file(mark(wiphy));
    }
}

/// The file that says which interface of a radio was given one rate.
fn rate_mark(wiphy: u32) -> PathBuf {
    Path::new(MARKS).join(format!("rate-{wiphy}"))
}

/// Gives an interface all rates again; one that is gone takes its rate along. The kernel does it only while the interface is
/// up, so of one that is down the note stays.
fn give_rates_back(control: &mut Control, wiphy: u32, interface: u32) {
    let given = control.free_rates(interface);
    let is_gone =
        |e: &Error| matches!(e, Error::Kernel { source, .. } if source.raw_os_error() == Some(libc::ENODEV));
    if given.as_ref().err().is_none_or(is_gone) {
        let _ = std::fs::remove_file(rate_mark(wiphy));
    }
}

/// Claims a radio for this process.
fn claim(wiphy: &Wiphy) -> Result<UnixDatagram, Error> {
    let name = SocketAddr::from_abstract_name(format!("{PREFIX}/wiphy/{}", wiphy.index));
    name.and_then(|name| UnixDatagram::bind_addr(&name))
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => Error::InUse {
                wiphy: wiphy.name.clone(),
            },
            _ => Error::control("claim a radio")(source),
        })
}

/// Removes interfaces of ours that nobody owns any more. Whoever calls it has claimed the radio.
fn sweep(control: &mut Control, wiphy: u32) -> Result<u32, Error> {
    let (names, others) = (names(wiphy), other_names(wiphy));
    let all = control.interfaces()?;
    let is_ours = |i: &Interface| (i.kind == MONITOR && names.contains(&i.name)) || others.contains(&i.name);
    let left = all.iter().filter(|i| i.wiphy == wiphy && is_ours(i));
    let mut swept = 0;
    for interface in left {
        match control.remove(interface.index) {
            Ok(()) => swept += 1,
            // The kernel was just about to.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENODEV | libc::ENOENT)) => {}
            Err(e) => {
                return Err(Error::control("remove a monitor interface that was left behind")(
                    e,
                ));
            }
        }
    }
    Ok(swept)
}

#[cfg(test)]
mod tests {
    use super::super::wiphy::tests::example;
    use super::*;

    #[test]
    fn names_fit_whatever_the_number() {
        // IFNAMSIZ is 16, with a zero at the end.
        assert!(names(u32::MAX).iter().all(|name| name.len() <= 16));
        assert!(names(999_999).iter().all(|name| name.len() <= 15));
        assert_eq!(names(3), ["sdmac3a", "sdmac3c"]);
    }

    #[test]
    fn a_radio_is_claimed_once_and_free_again() {
        let mut wiphy = example();
        wiphy.index = 0xffff_0000 + std::process::id() % 0xffff; // No such radio, and no other test's.
        let first = claim(&wiphy).unwrap();
        assert!(matches!(claim(&wiphy), Err(Error::InUse { wiphy }) if wiphy == "radio"));
        drop(first);
        claim(&wiphy).unwrap();
    }
}
