//! Numbers and structs of C.

use core::ffi::c_char;
use frame::{GuardInterval, MacAddr, Rate, Width};
use protocols::mac::ibss::{Network, PowerProfile};
use radio::Duration;

/// How a request ended, or a payload.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// An ACK came.
    Acked = 0,
    /// No ACK came; frames that ask for none end like this, too.
    NotAcked = 1,
    /// The radio did not take it; a payload: it could not be protected.
    Refused = 2,
    /// Taken back, or lost in a reset; a payload: the network was left.
    Aborted = 3,
    /// Its time was over; a payload: nobody was there for it in so many beacon intervals.
    Expired = 4,
    /// Nobody knows.
    Unknown = 5,
}

/// What a radio draws by state, milliwatts.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Power {
    /// While it sends.
    pub transmit_mw: u32,
    /// While it receives a frame.
    pub receive_mw: u32,
    /// While it listens.
    pub listen_mw: u32,
    /// While it dozes.
    pub doze_mw: u32,
}

impl From<PowerProfile> for Power {
    fn from(p: PowerProfile) -> Power {
        Power {
            transmit_mw: p.transmit_mw,
            receive_mw: p.receive_mw,
            listen_mw: p.listen_mw,
            doze_mw: p.doze_mw,
        }
    }
}

impl From<Power> for PowerProfile {
    fn from(p: Power) -> PowerProfile {
        PowerProfile {
            transmit_mw: p.transmit_mw,
            receive_mw: p.receive_mw,
            listen_mw: p.listen_mw,
            doze_mw: p.doze_mw,
        }
    }
}

/// How a station takes part. SDMAC_IBSS_config() fills one in.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Config {
    /// Its address.
    pub address: [u8; 6],
    /// Name of the network: UTF-8, 32 octets at most; it must stay where it is for good.
    pub ssid: *const c_char,
    /// Octets of `ssid`.
    pub ssid_octets: usize,
    /// Channel as beacons tell it; 0: they do not (5 GHz).
    pub channel: u8,
    /// Beacon interval of a network that it creates, in units of 1024 us, 1 or more.
    pub interval_tu: u16,
    /// ATIM window of a network that it creates, in the same units, below the interval; 0: no power save.
    pub atim_window_tu: u16,
    /// BSSID of a network that it creates; all zero: random.
    pub bssid: [u8; 6],
    /// EtherType of what it carries, such as 0x86dd for IPv6.
    pub ethertype: u16,
    /// How long it looks for a network before it creates one, ms.
    pub scan_ms: u16,
    /// It asks for the network instead of only listening.
    pub active_scan: bool,
    /// Whether it dozes where the network allows it.
    pub power_save: bool,
    /// How long before a beacon is due it wakes up, us: with a window at most half of what that leaves of an interval, which is
    /// the time for payloads.
    pub wake_ahead_us: u32,
    /// That time adapts itself to the host, between 2 and 16 units of 1024 us; `wake_ahead_us` is where it begins.
    pub adapt_wake_ahead: bool,
    /// A station that is awake only because it sent the beacon dozes all the same, and sends a beacon whenever so much has passed,
    /// us, 1000 or more; 0: it listens, as the standard has it.
    pub soft_beacon_us: u32,
    /// ATIMs name the final destination and are handed on, so that packets cross several hops in one interval; the radio then has
    /// `destination` and `next_hop`. For all stations of a network, or none.
    pub multi_hop: bool,
    /// 16 octets: data frames are protected by CCMP-128 with this key, which all stations of the network have; it is copied. NULL: plain
    /// data.
    pub key: *const u8,
    /// Number of the key, 0 to 3.
    pub key_id: u8,
    /// Packet number of the first frame, below 2^48: above all that this station has used with the key, before a restart, too. Who
    /// has no memory for it takes a clock: seconds since 1970, times 2^16. 0 has no meaning with a key.
    pub first_packet: u64,
    /// Rate of data to one station: below 128 in units of 500 kb/s, 128 + MCS for HT.
    pub rate: u8,
    /// Rate of everything else; no HT rate.
    pub group_rate: u8,
    /// Tries of frames to one station, 1 or more.
    pub tries: u8,
    /// Beacon intervals that a frame waits for its receiver at most.
    pub lifetime_intervals: u8,
    /// The delay of a beacon is drawn from 0 to 2 `cw_min` slots of this length, us: longer than it takes until a station
    /// knows that another has sent its beacon. 2 `cw_min` of them end within the interval.
    pub slot_us: u32,
    /// See `slot_us`.
    pub cw_min: u16,
    /// What is random follows from this and the address.
    pub seed: u64,
    /// What the radio draws, for the energy in SDMAC_IBSS_Counters.
    pub power: Power,
}

impl Config {
    /// Whether its numbers have a meaning.
    pub(crate) fn has_meaning(&self) -> bool {
        let network = Network {
            bssid: MacAddr(self.bssid),
            interval_tu: self.interval_tu,
            atim_window_tu: self.atim_window_tu,
        };
        let ahead = Duration::from_us(self.wake_ahead_us.into());
        let slots_us = u64::from(self.slot_us) * 2 * u64::from(self.cw_min);
        self.interval_tu > 0
            && self.atim_window_tu < self.interval_tu
            && (self.atim_window_tu == 0 || ahead <= network.longest_wake_ahead())
            && slots_us <= u64::from(self.interval_tu) * 1_024
            && self.tries > 0
            && self.group_rate < FIRST_HT
            && self.address[0] & 1 == 0
            && self.bssid[0] & 1 == 0
            && !(1..1_000).contains(&self.soft_beacon_us)
            && self.ssid_octets <= 32
    }
}

/// What a station has counted since its start.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Counters {
    /// Beacons sent.
    pub beacons: u64,
    /// Beacons of the network that were heard.
    pub beacons_heard: u64,
    /// Times that another network of the name was joined, because its clock was ahead.
    pub merges: u64,
    /// ATIMs that were acknowledged, and those to groups.
    pub atims: u64,
    /// Beacon intervals, and those that it dozed through after the ATIM window.
    pub intervals: u64,
    /// See `intervals`.
    pub intervals_dozed: u64,
    /// Payloads from above.
    pub submitted: u64,
    /// Of these, without room.
    pub no_room: u64,
    /// Of these, given up.
    pub expired: u64,
    /// Of these, acknowledged.
    pub acked: u64,
    /// Payloads delivered.
    pub delivered: u64,
    /// ATIMs sent because others had asked, with `multi_hop`, and those that had no way on.
    pub atims_asked_on: u64,
    /// See `atims_asked_on`.
    pub atims_unrouted: u64,
    /// With a key: data frames protected, opened, and dropped (without protection, of another key, too old, changed).
    pub sealed: u64,
    /// See `sealed`.
    pub opened: u64,
    /// See `sealed`.
    pub dropped: u64,
    /// How long the radio sent, received for this station, listened and dozed, us; ACKs are in it.
    pub transmit_us: u64,
    /// See `transmit_us`.
    pub receive_us: u64,
    /// See `transmit_us`.
    pub listen_us: u64,
    /// See `transmit_us`.
    pub doze_us: u64,
    /// What that cost with `power` of the config, microjoules.
    pub microjoules: u64,
}

/// From here on it is 128 + MCS.
pub(crate) const FIRST_HT: u8 = 128;

/// A rate as C says it.
pub(crate) fn rate(octet: u8) -> Option<Rate> {
    match octet {
        FIRST_HT.. => Rate::ht(octet - FIRST_HT, Width::Mhz20, GuardInterval::Long),
        _ => Rate::from_500kbps(octet),
    }
}

/// The same, the other way round.
pub(crate) fn octet(rate: Rate) -> u8 {
    match rate {
        Rate::Ht(mcs, ..) => FIRST_HT + mcs.index(),
        other => other.to_500kbps().unwrap_or(0),
    }
}

/// The same, the other way round.
pub(crate) fn number(outcome: radio::Outcome) -> Outcome {
    match outcome {
        radio::Outcome::Acked => Outcome::Acked,
        radio::Outcome::NotAcked => Outcome::NotAcked,
        radio::Outcome::Refused(_) => Outcome::Refused,
        radio::Outcome::Aborted => Outcome::Aborted,
        radio::Outcome::Expired => Outcome::Expired,
        radio::Outcome::Unknown => Outcome::Unknown,
    }
}

pub(crate) fn outcome(number: u32) -> radio::Outcome {
    match number {
        0 => radio::Outcome::Acked,
        1 => radio::Outcome::NotAcked,
        2 => radio::Outcome::Refused(radio::Refusal::NotSupported),
        3 => radio::Outcome::Aborted,
        4 => radio::Outcome::Expired,
        _ => radio::Outcome::Unknown,
    }
}
