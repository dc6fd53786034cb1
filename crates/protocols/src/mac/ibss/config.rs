//! How a station takes part, and what it has counted.

#[cfg(feature = "ccmp")]
use super::super::ccmp::Secret;
use super::super::data::ETHERTYPE_PAYLOAD;
use super::super::sender::DEFAULT_TRIES;
use super::super::tally::Tally;
use frame::{MacAddr, Phy, Rate};
use radio::Duration;

/// How a station takes part in a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IbssConfig {
    /// Its address.
    pub me: MacAddr,
    /// Name of the network; what is beyond 32 octets is cut off.
    pub ssid: &'static str,
    /// Channel as beacons tell it; `None`: they do not (5 GHz). Where the radio is, is the host's affair.
    pub channel: Option<u8>,
    /// Beacon interval of a network that it creates, in TU, 1 or more.
    pub interval_tu: u16,
    /// ATIM window of a network that it creates, in TU, below the interval; 0: no power save.
    pub atim_window_tu: u16,
    /// BSSID of its network, the only one that it joins or creates; `None`: whichever has the name, and a random one.
    pub bssid: Option<MacAddr>,
    /// EtherType of what it carries, such as 0x86dd for IPv6. Frames of another are not delivered.
    pub ethertype: u16,
    /// How long it looks for a network before it creates one.
    pub scan: Duration,
    /// It asks for the network instead of only listening.
    pub active_scan: bool,
    /// It looks for a network from the start on; otherwise when it is told to.
    pub autostart: bool,
    /// Whether it dozes where the network allows it.
    pub power_save: bool,
    /// How long before a TBTT it wakes up; what is beyond half of the interval behind the ATIM window is cut off
    /// ([`super::Network::longest_wake_ahead`]).
    pub wake_ahead: Duration,
    /// That time adapts itself to the host, between 2 and 16 TU; `wake_ahead`, in whole TU, is where it begins.
    pub adapt_wake_ahead: bool,
    /// A station that is awake only because it sent the beacon dozes all the same, and sends a beacon whenever so much has
    /// passed, 1 ms or more. `None`: it listens, as the standard has it.
    pub soft_beacon: Option<Duration>,
    /// Where the adapter can, what is told of received frames follows the part of the interval.
    /// Off by default: what a filter that is lifted late has dropped is lost without anybody knowing, see [`super::Ibss`] on slow hosts.
    pub receive_filter: bool,
    /// ATIMs name the final destination and are handed on ([`super::Routing`]), so that packets cross several hops in one
    /// interval. For all stations of a network, or none.
    pub multi_hop: bool,
    /// Rate of data to one station.
    pub rate: Rate,
    /// Rate of everything else; the basic rate.
    pub group_rate: Rate,
    /// Tries of frames to one station.
    pub tries: u8,
    /// Beacon intervals that a frame waits for its receiver at most.
    pub lifetime_intervals: u8,
    /// Slot time, and CWmin: the delay of a beacon is drawn from 0 to 2 CWmin slots. A slot should be longer than it takes
    /// until a station knows that another has sent its beacon: on a host with latencies much longer than that of the
    /// PHY, or everybody sends one in each interval and nobody dozes.
    pub slot: Duration,
    /// See `slot`.
    pub cw_min: u16,
    /// What is random follows from this and the address.
    pub seed: u64,
    /// Protect data with this key; networks without protection are then none of its own. `None`: plain data, and networks
    /// with protection are none.
    #[cfg(feature = "ccmp")]
    pub secret: Option<Secret>,
}

impl IbssConfig {
    /// A station that joins the network or creates it: 100 TU without power save, a scan of 7 s (what Contiki80211 and
    /// Linux wait), slots of 802.11a.
    pub const fn new(me: MacAddr, ssid: &'static str, rate: Rate) -> IbssConfig {
        IbssConfig {
            me,
            ssid,
            channel: None,
            interval_tu: 100,
            atim_window_tu: 0,
            bssid: None,
            ethertype: ETHERTYPE_PAYLOAD,
            scan: Duration::from_ms(7_000),
            active_scan: true,
            autostart: true,
            power_save: true,
            wake_ahead: Duration::from_tu(1),
            adapt_wake_ahead: false,
            soft_beacon: None,
            receive_filter: false,
            multi_hop: false,
            rate,
            group_rate: Rate::OFDM_6,
            tries: DEFAULT_TRIES,
            lifetime_intervals: 10,
            slot: Duration::from_us(Phy::A.slot_us as u64),
            cw_min: Phy::A.cw_min,
            seed: 1,
            #[cfg(feature = "ccmp")]
            secret: None,
        }
    }

    pub(super) fn ssid(&self) -> &[u8] {
        let name = self.ssid.as_bytes();
        &name[..name.len().min(32)]
    }
}

/// What a station has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IbssCounters {
    /// Beacons sent.
    pub beacons: u64,
    /// Beacons that another station's made unnecessary.
    pub beacons_spared: u64,
    /// Soft beacons sent, and intervals with some.
    pub soft_beacons: u64,
    /// See `soft_beacons`.
    pub soft_windows: u64,
    /// Beacons of the network that were heard.
    pub beacons_heard: u64,
    /// Times that a later timestamp was adopted.
    pub adoptions: u64,
    /// Times that another network of the name was joined, because its clock was ahead.
    pub merges: u64,
    /// Probe requests answered.
    pub probes_answered: u64,
    /// ATIMs sent: those acknowledged, and those to groups ...
    pub atims: u64,
    /// ... and those that nobody acknowledged.
    pub atims_failed: u64,
    /// ATIMs heard that were for it, and those of them that it was told of outside of the ATIM window: by then it may doze. A
    /// TBTT that is nearer than it wakes up before one counts as past.
    pub atims_heard: u64,
    /// See `atims_heard`.
    pub atims_late: u64,
    /// ATIMs sent because others had asked, with multi-hop power save, and those that had no way on.
    pub atims_asked_on: u64,
    /// See `atims_asked_on`.
    pub atims_unrouted: u64,
    /// Beacon intervals that it dozed through after the ATIM window, and all of them.
    pub intervals_dozed: u64,
    /// See `intervals_dozed`.
    pub intervals: u64,
    /// Times that it woke up for a TBTT, and of these, those at which the adapter was not awake by then.
    pub wakes: u64,
    /// See `wakes`.
    pub wakes_late: u64,
    /// MSDUs from above.
    pub submitted: u64,
    /// Of these, without room: too long, or the queue was full.
    pub no_room: u64,
    /// Of these, given up after their lifetime.
    pub expired: u64,
    /// Confirms of data frames.
    pub confirms: Tally,
    /// MSDUs that could not be protected, and were not sent.
    pub unprotected: u64,
    /// MSDUs delivered.
    pub delivered: u64,
    /// Frames that had been delivered before.
    pub duplicates: u64,
}
