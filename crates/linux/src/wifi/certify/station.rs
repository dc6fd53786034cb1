//! An access point of our own beside the monitor, with a station that is not there: drivers with a rate table look up
//! what they add to a request by the station that it is for. And an ad hoc network of our own: what shows adapter time
//! is a file of such interfaces.

use std::io;
use std::path::PathBuf;

use frame::mac::{Flags, FrameControl, Kind};
use frame::{Band, MacAddr};

use super::super::nl80211::{ACCESS_POINT, AD_HOC, Control, attr, new_interface};
use super::super::wiphy::Wiphy;
use crate::netlink::{attribute, flag, number};

const START_AP: u8 = 15;
const NEW_STATION: u8 = 19;
const BEACON_INTERVAL: u16 = 12;
const DTIM_PERIOD: u16 = 13;
const BEACON_HEAD: u16 = 14;
const STATION_AID: u16 = 16;
const STATION_LISTEN_INTERVAL: u16 = 18;
const STATION_RATES: u16 = 19;
const SSID: u16 = 52;
const STATION_FLAGS: u16 = 67;
/// Bit of NL80211_STA_FLAG_AUTHORIZED.
const AUTHORIZED: u32 = 1 << 1;

const JOIN_IBSS: u8 = 43;
const FREQUENCY_FIXED: u16 = 60;
const BSSID: MacAddr = MacAddr::local(0x00ad_40c0);

const NAME: &[u8] = b"sdmac-certify";
/// Octets of units of 500 kb/s: 6, 12, 24, 54 Mb/s, and 1, 2 Mb/s where there is DSSS. The upper bit says basic.
const OFDM: &[u8] = &[0x80 | 12, 0x80 | 24, 0x80 | 48, 108];
const DSSS: &[u8] = &[0x80 | 2, 0x80 | 4, 12, 24, 48, 108];

/// Time between two of its beacons, TU.
pub(super) const INTERVAL_TU: u16 = 50;

/// An access point that is up until this is dropped.
pub(in crate::wifi) struct AccessPoint {
    control: Control,
    index: u32,
    /// Its address.
    pub address: MacAddr,
}

impl AccessPoint {
    /// Starts one on a channel where its monitor is already.
    pub fn start(wiphy: &Wiphy, mhz: u16) -> io::Result<AccessPoint> {
        let [name, _] = super::super::monitor::other_names(wiphy.index);
        AccessPoint::start_as(wiphy, mhz, &name)
    }

    /// The same with an interface of this name.
    pub fn start_as(wiphy: &Wiphy, mhz: u16, name: &str) -> io::Result<AccessPoint> {
        let mut control = Control::open().map_err(|e| io::Error::other(e.to_string()))?;
        let interface = control.make(|m| new_interface(m, wiphy.index, name, ACCESS_POINT, None))?;
        let mut point = AccessPoint {
            control,
            index: interface.index,
            address: interface.address,
        };
        point.control.set_up(interface.index, true)?;
        let rates = match wiphy.channel(mhz) {
            Some((band, _)) if band.band == Band::Ghz2_4 => DSSS,
            _ => OFDM,
        };
        let head = beacon(interface.address, rates);
        point.control.tell(START_AP, |m| {
            number(m, attr::IFINDEX, interface.index);
            attribute(m, BEACON_HEAD, |m| m.extend(head));
            number(m, BEACON_INTERVAL, INTERVAL_TU.into());
            number(m, DTIM_PERIOD, 1);
            attribute(m, SSID, |m| m.extend(NAME));
            number(m, attr::WIPHY_FREQ, mhz.into());
            number(m, attr::CHANNEL_WIDTH, 0); // 20 MHz, no HT
        })?;
        Ok(point)
    }

    /// Number of its interface.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Says which rates all its stations have, in units of 500 kb/s, as hostapd does; without that there are none.
    #[cfg(test)]
    pub fn set_basic_rates(&mut self, rates: &[u8]) -> io::Result<()> {
        const SET_BSS: u8 = 25;
        const BASIC_RATES: u16 = 36;
        let index = self.index;
        self.control.tell(SET_BSS, |m| {
            number(m, attr::IFINDEX, index);
            attribute(m, BASIC_RATES, |m| m.extend(rates));
        })
    }

    /// Makes Linux know a station, as if it had associated.
    pub fn know(&mut self, station: MacAddr) -> io::Result<()> {
        let index = self.index;
        self.control.tell(NEW_STATION, |m| {
            number(m, attr::IFINDEX, index);
            attribute(m, attr::MAC, |m| m.extend(station.0));
            attribute(m, STATION_AID, |m| m.extend(1_u16.to_ne_bytes()));
            attribute(m, STATION_LISTEN_INTERVAL, |m| m.extend(1_u16.to_ne_bytes()));
            attribute(m, STATION_RATES, |m| {
                m.extend(OFDM.iter().map(|rate| rate & 0x7f))
            });
            attribute(m, STATION_FLAGS, |m| {
                m.extend(AUTHORIZED.to_ne_bytes()); // Which to change,
                m.extend(AUTHORIZED.to_ne_bytes()); // and to what.
            });
        })
    }
}

impl Drop for AccessPoint {
    fn drop(&mut self) {
        // The kernel does it when the socket closes, too.
        let _ = self.control.remove(self.index);
    }
}

/// A network of one, until this is dropped.
pub(super) struct AdHoc {
    control: Control,
    index: u32,
    /// File that shows its adapter time, where the kernel was built for that.
    pub tsf: PathBuf,
}

impl AdHoc {
    /// Begins one on a channel where its monitor is already.
    pub fn join(wiphy: &Wiphy, mhz: u16) -> io::Result<AdHoc> {
        let mut control = Control::open().map_err(|e| io::Error::other(e.to_string()))?;
        let [_, name] = super::super::monitor::other_names(wiphy.index);
        let interface = control.make(|m| new_interface(m, wiphy.index, &name, AD_HOC, None))?;
        let tsf = format!("/sys/kernel/debug/ieee80211/{}/netdev:{name}/tsf", wiphy.name);
        let mut network = AdHoc {
            control,
            index: interface.index,
            tsf: tsf.into(),
        };
        network.control.set_up(interface.index, true)?;
        // With address and channel given it begins at once, and searches for nobody.
        network.control.tell(JOIN_IBSS, |m| {
            number(m, attr::IFINDEX, interface.index);
            number(m, attr::WIPHY_FREQ, mhz.into());
            flag(m, FREQUENCY_FIXED);
            attribute(m, SSID, |m| m.extend(NAME));
            attribute(m, attr::MAC, |m| m.extend(BSSID.0));
        })?;
        // The kernel does it in a thread of its own.
        std::thread::sleep(std::time::Duration::from_millis(200));
        Ok(network)
    }
}

impl Drop for AdHoc {
    fn drop(&mut self) {
        let _ = self.control.remove(self.index);
    }
}

/// The frame that the kernel sends as its beacon (IEEE 802.11-2016, 9.3.3.3).
fn beacon(address: MacAddr, rates: &[u8]) -> Vec<u8> {
    let mut m = vec![0; 24];
    m[..2].copy_from_slice(&FrameControl::new(Kind::BEACON, Flags::NONE).0);
    m[4..10].copy_from_slice(&MacAddr::BROADCAST.0);
    m[10..16].copy_from_slice(&address.0);
    m[16..22].copy_from_slice(&address.0);
    m.extend([0; 8]); // Timestamp: the adapter's.
    m.extend(INTERVAL_TU.to_le_bytes());
    m.extend(1_u16.to_le_bytes()); // Capabilities: a network with an access point.
    m.extend([0, NAME.len() as u8]);
    m.extend(NAME);
    m.extend([1, rates.len() as u8]);
    m.extend(rates);
    m
}
