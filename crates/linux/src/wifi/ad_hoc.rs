//! Ordinary interfaces of Linux's: in an ad hoc network, in another network namespace, at one rate.

use frame::{MacAddr, Rate};

use super::error::Error;
use super::nl80211::{AD_HOC, Control, Interface, attr, command};
use crate::netlink::{attribute, flag, number};

/// NL80211_TXRATE_LEGACY, in units of 500 kb/s; NL80211_TXRATE_HT, an MCS for each octet; NL80211_TXRATE_VHT.
const LEGACY_RATES: u16 = 1;
const HT_RATES: u16 = 2;
const VHT_RATES: u16 = 3;
/// `struct nl80211_txrate_vht` with no rate in it.
const NO_VHT: [u8; 16] = [0; 16];

/// An ad hoc network that an interface of Linux's is to be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdHoc<'a> {
    /// Its name, 1 to 32 octets.
    pub ssid: &'a str,
    /// Centre frequency of its channel, MHz; Linux does not look on others.
    pub mhz: u16,
    /// Its BSSID; `None`: that of the network that is found, or a random one, and networks of one name become one.
    pub bssid: Option<MacAddr>,
}

impl Control {
    /// Makes an ordinary interface of Linux's a member of an ad hoc network: it looks for the network, and creates it if
    /// there is none. It is down for a moment.
    ///
    /// # Errors
    /// [`Error::NoPermission`] without CAP_NET_ADMIN; [`Error::Kernel`] where driver or country do not allow it.
    pub fn join_ad_hoc(&mut self, interface: &Interface, network: &AdHoc<'_>) -> Result<(), Error> {
        let join = Error::control("join an ad hoc network");
        self.set_up(interface.index, false).map_err(&join)?;
        let kind = |m: &mut Vec<u8>| {
            number(m, attr::IFINDEX, interface.index);
            number(m, attr::IFTYPE, AD_HOC);
        };
        self.tell(command::SET_INTERFACE, kind).map_err(&join)?;
        self.set_up(interface.index, true).map_err(&join)?;
        let network = |m: &mut Vec<u8>| {
            number(m, attr::IFINDEX, interface.index);
            number(m, attr::WIPHY_FREQ, network.mhz.into());
            flag(m, attr::FREQ_FIXED);
            attribute(m, attr::SSID, |m| m.extend(network.ssid.as_bytes()));
            if let Some(bssid) = network.bssid {
                attribute(m, attr::MAC, |m| m.extend(bssid.0));
            }
        };
        self.tell(command::JOIN_IBSS, network).map_err(&join)
    }

    /// Takes an interface out of its ad hoc network; it stays up.
    ///
    /// # Errors
    /// [`Error::NoPermission`] without CAP_NET_ADMIN; [`Error::Kernel`] if it is in none.
    pub fn leave_ad_hoc(&mut self, interface: &Interface) -> Result<(), Error> {
        self.tell(command::LEAVE_IBSS, |m| number(m, attr::IFINDEX, interface.index))
            .map_err(Error::control("leave an ad hoc network"))
    }

    /// Gives a radio with all its interfaces to the network namespace that a thread of this computer is in.
    ///
    /// # Errors
    /// [`Error::NoPermission`] without CAP_NET_ADMIN; [`Error::Kernel`] where the driver does not allow it, or there is no such
    /// thread.
    pub fn give(&mut self, wiphy: u32, thread: u32) -> Result<(), Error> {
        self.tell(command::SET_WIPHY_NETNS, |m| {
            number(m, attr::WIPHY, wiphy);
            number(m, attr::PID, thread);
        })
        .map_err(Error::control("give a radio to another network namespace"))
    }

    /// Lets rate control choose no rate but this one of 802.11a, b or g for data, to groups too. It has to be a basic rate of the
    /// network: in an ad hoc network of Linux's 6, 12 or 24 Mb/s at 5 GHz.
    ///
    /// # Errors
    /// [`Error::NoPermission`] without CAP_NET_ADMIN; [`Error::Kernel`] for a rate that is not basic; [`Error::Config`] for one of
    /// 802.11n.
    pub fn pin_rate(&mut self, interface: &Interface, mhz: u16, rate: Rate) -> Result<(), Error> {
        let octets = rate.to_500kbps().ok_or(Error::Config(
            "only a rate of 802.11a, b or g can be the one of an interface",
        ))?;
        let band = u16::from(mhz > 3_000); // NL80211_BAND_2GHZ, _5GHZ
        let mut mask = |has_vht| {
            self.tell(command::SET_TX_BITRATE_MASK, |m| {
                number(m, attr::IFINDEX, interface.index);
                only(m, band, octets, has_vht);
            })
        };
        // A radio without VHT in this band is not asked to do without.
        mask(true)
            .or_else(|_| mask(false))
            .map_err(Error::control("let an interface have one rate"))
    }

    /// Lets rate control choose among all rates of an interface again, which is named by its number: it may be gone by now. That it
    /// may not stays with an interface when it goes down.
    ///
    /// # Errors
    /// [`Error::NoPermission`] without CAP_NET_ADMIN; [`Error::Kernel`], also if there is no such interface.
    pub fn free_rates(&mut self, interface: u32) -> Result<(), Error> {
        self.tell(command::SET_TX_BITRATE_MASK, |m| {
            number(m, attr::IFINDEX, interface)
        })
        .map_err(Error::control("let an interface have all rates"))
    }

    /// Sets an ordinary interface down; it is in no network then.
    ///
    /// # Errors
    /// [`Error::NoPermission`] without CAP_NET_ADMIN; [`Error::Kernel`].
    pub fn set_down(&mut self, interface: &Interface) -> Result<(), Error> {
        self.set_up(interface.index, false)
            .map_err(Error::control("set an interface down"))
    }
}

/// One rate of 802.11a, b or g in a band, and none of 802.11n; none of 802.11ac where the radio has them.
fn only(m: &mut Vec<u8>, band: u16, units: u8, has_vht: bool) {
    attribute(m, attr::TX_RATES, |m| {
        attribute(m, band, |m| {
            attribute(m, LEGACY_RATES, |m| m.push(units));
            attribute(m, HT_RATES, |_| ());
            if has_vht {
                attribute(m, VHT_RATES, |m| m.extend(NO_VHT));
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::find;

    /// A kind that is left out has all its rates (seen: with 802.11n left out, frames went out at MCS 8).
    #[test]
    fn a_mask_names_every_kind_of_rates() {
        for has_vht in [false, true] {
            let mut m = Vec::new();
            only(&mut m, 1, 48, has_vht);
            let band = find(&m, attr::TX_RATES).and_then(|bands| find(bands, 1)).unwrap();
            assert_eq!(find(band, LEGACY_RATES), Some(&[48][..]));
            assert_eq!(find(band, HT_RATES), Some(&[][..]));
            assert_eq!(find(band, VHT_RATES), has_vht.then_some(&NO_VHT[..]));
        }
    }
}
