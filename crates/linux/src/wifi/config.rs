//! How a radio is opened.

use frame::rate::Width;
use frame::{MacAddr, Rate};

use super::certify::Certificate;
use super::nl80211::Monitor;
use super::softmac::SoftMac;

/// Where adapter time comes from. Linux tells the time of reception and no more: it cannot be asked what time the
/// adapter has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TsfSource {
    /// From the adapter: indications carry it where the driver tells, and it can be neither read nor set.
    #[default]
    Adapter,
    /// From this computer, in place of the adapter's: it can be read and set, and is written into the beacons and
    /// probe responses that are sent, just before they go to the kernel; it counts from the start of the host. Indications
    /// carry none.
    Computer,
}

/// What carries the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// A monitor interface that is made for it, [`Monitor::Active`] or [`Monitor::Plain`]; `None`: an active one if the driver
    /// has them.
    Monitor(Option<Monitor>),
    /// The user's own interface, which Linux has put into an ad hoc network or which is an access point's; it is the one that
    /// [`AdapterConfig::radio`] names. Linux makes the header of each frame and chooses the tries; the rate is this one as
    /// long as the adapter is open. It has to be a basic rate of the network, of 802.11a, b or g.
    Ordinary(Rate),
}

/// How a radio is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterConfig {
    /// Its name (`phy0`), or that of one of its interfaces (`wlan0`).
    pub radio: String,
    /// Centre frequency, MHz. An ordinary interface has to be there.
    pub channel_mhz: u16,
    /// How wide the channel is. Of 40 MHz the given one is the primary half, and rates of 20 MHz go out as well.
    pub width: Width,
    /// Transmit power, dBm; `None` leaves it as it is, as it has to be with an ordinary interface.
    pub tx_power_dbm: Option<i8>,
    /// Its address; `None`: that of the radio. An ordinary interface has to have it.
    pub address: Option<MacAddr>,
    /// What carries the frames.
    pub carrier: Carrier,
    /// Where adapter time comes from.
    pub tsf: TsfSource,
    /// Tries per request at most. Drivers cut what is above their own limit without a word: 10 for ath9k, 11 for
    /// mac80211_hwsim.
    pub max_tries: u8,
    /// What the radio was seen to do through a monitor. Without it the host promises no one-shot; with it, it refuses what was
    /// seen not to hold. An ordinary interface takes no notice of it: no one-shot can be had there.
    pub certificate: Option<Certificate>,
    /// Switches that nl80211 does not have, where another way leads to them.
    pub softmac: Option<SoftMac>,
    /// Room for packets that wait for us, octets in each of two sockets. Beyond the system's limit
    /// (net.core.rmem_max) it needs CAP_NET_ADMIN.
    pub receive_octets: usize,
}

impl AdapterConfig {
    /// This radio on this channel, 20 MHz wide; an active monitor if there is one.
    pub fn new(radio: &str, channel_mhz: u16) -> AdapterConfig {
        AdapterConfig {
            radio: radio.into(),
            channel_mhz,
            width: Width::Mhz20,
            tx_power_dbm: None,
            address: None,
            carrier: Carrier::Monitor(None),
            tsf: TsfSource::Adapter,
            max_tries: 10,
            certificate: None,
            softmac: None,
            receive_octets: 1 << 20,
        }
    }
}
