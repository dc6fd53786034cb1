//! Attributes at the three levels of SDMAC (Cena et al. 2018, section II.A.2): the adapter as a whole, one of
//! its queues, one packet in them.

use crate::event::Token;
use crate::stamp::{Plane, Stamps};
use crate::time::Tsf;
use crate::tx::{Queue, SeriesList};
use frame::{EdcaParams, MacAddr, RateSet};
use serde::{Deserialize, Serialize};

/// Names what can be read with [`get`](crate::Radio::get).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum AttributeName {
    /// What this host and adapter can do.
    Capabilities,
    /// The adapter's own address.
    Address,
    /// BSSID.
    Bssid,
    /// Centre frequency.
    Channel,
    /// ACK timeout.
    AckTimeout,
    /// Slot time.
    SlotTime,
    /// Adapter time.
    Tsf,
    /// Transmit power.
    TxPower,
    /// Basic rates: the rates of ACKs.
    BasicRates,
    /// RTS threshold.
    RtsThreshold,
    /// Physical carrier sense on or off.
    CarrierSense,
    /// Virtual carrier sense (NAV) on or off.
    VirtualCarrierSense,
    /// Receiver on or off.
    Reception,
    /// Whether this adapter answers with ACKs.
    AckGeneration,
    /// Whether frames for other stations are indicated too.
    Promiscuous,
    /// Counters since start.
    Counters,
    /// EDCA parameters of a queue.
    Edca(Queue),
    /// Requests waiting in a queue.
    QueueLength(Queue),
    /// State of a packet that is not confirmed yet.
    Packet(Token),
    /// Beacon timing of the ad hoc network whose clock the adapter follows.
    BeaconTiming,
    /// Which received frames are told.
    ReceiveFilter,
}

/// The value of an attribute. `set` takes those that can be written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Attribute {
    /// Read only.
    Capabilities(Capabilities),
    /// The adapter's own address.
    Address(MacAddr),
    /// BSSID: whose beacons are told as beacons, and whose address 3 is meant for us.
    Bssid(MacAddr),
    /// Centre frequency in MHz.
    Channel(u16),
    /// ACK timeout in microseconds, from the end of the frame to the start of the ACK at the latest.
    AckTimeout(u16),
    /// Slot time in microseconds.
    SlotTime(u16),
    /// Adapter time. Setting it makes the TSF jump.
    Tsf(Tsf),
    /// Transmit power in dBm.
    TxPower(i8),
    /// Basic rates.
    BasicRates(RateSet),
    /// Frames longer than this many octets are preceded by RTS/CTS; 2347 or more: none.
    RtsThreshold(u16),
    /// Physical carrier sense: off means the medium always counts as idle.
    CarrierSense(bool),
    /// Virtual carrier sense: off means that Duration fields are ignored.
    VirtualCarrierSense(bool),
    /// Receiver: off means that nothing is heard, ACKs excepted.
    Reception(bool),
    /// Whether this adapter answers frames for its address with ACKs.
    AckGeneration(bool),
    /// Whether frames for other stations are indicated too.
    Promiscuous(bool),
    /// Read only.
    Counters(Counters),
    /// EDCA parameters of a queue.
    Edca(Queue, EdcaParams),
    /// Read only: requests waiting in a queue.
    QueueLength(Queue, u16),
    /// Read only: state of a packet.
    Packet(Token, PacketState),
    /// Write only: another retry chain for a packet that is still queued and has had no attempt yet.
    PacketSeries(Token, SeriesList),
    /// Beacon timing of the ad hoc network that the station is in. An adapter that takes it follows the clock of the network
    /// by itself: it adopts later timestamps of the beacons of its BSSID (IEEE 802.11-2016, 11.1.3.7).
    BeaconTiming(BeaconTiming),
    /// Which received frames are told.
    ReceiveFilter(ReceiveFilter),
}

/// When the stations of an ad hoc network send beacons and announce what they have for each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct BeaconTiming {
    /// Beacon interval in TU: a TBTT is whenever the TSF is a multiple of it. 0: the station is in no network.
    pub interval_tu: u16,
    /// ATIM window in TU, below the interval; 0: none.
    pub atim_window_tu: u16,
}

/// Which received frames an adapter tells, of those that it tells otherwise: an interval of a network with power save has
/// parts in which a slow host had better not be told of all (Contiki80211; Glaropoulos et al. 2014, II.A). It concerns what is
/// heard from its setting on. What is not told is acknowledged all the same: a filter that is set too early, or lifted too
/// late, loses frames without anybody knowing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum ReceiveFilter {
    /// All.
    #[default]
    All,
    /// Management frames, and no data.
    Management,
    /// All but beacons and ATIMs.
    Data,
    /// Of these, what is for this station alone.
    Unicast,
}

/// What an adapter has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Frames sent, without responses (ACK, CTS).
    pub tx_frames: u64,
    /// Of these, frames that were acknowledged.
    pub tx_acked: u64,
    /// ACKs and CTSs sent.
    pub tx_responses: u64,
    /// Frames received without error, for whomever.
    pub rx_frames: u64,
    /// Frames whose reception began and failed.
    pub rx_errors: u64,
    /// Frames received again with the retry bit and dropped.
    pub rx_duplicates: u64,
    /// Time on the air by this adapter, in microseconds.
    pub tx_time_us: u64,
    /// Time in which the medium was sensed busy, in microseconds.
    pub busy_time_us: u64,
}

/// State of a packet between request and confirm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct PacketState {
    /// Frames of it that went on the air so far.
    pub attempts: u16,
    /// True while it is at the head of its queue.
    pub at_head: bool,
    /// Stamps so far.
    pub stamps: Stamps,
}

/// What a host can do with its adapter. A host refuses what it cannot do; it never pretends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Capabilities {
    /// Honours `not_before` by itself; otherwise such requests are refused.
    pub not_before: bool,
    /// Can take back a request that is queued.
    pub abort: bool,
    /// One try is one frame on the air, tried out on this adapter.
    pub one_shot: bool,
    /// Counts attempts.
    pub attempts: bool,
    /// Confirms tell adapter time.
    pub tsf: bool,
    /// Confirms of acknowledged frames tell how strong the ACK was.
    pub ack_signal: bool,
    /// Bit `i` is set if plane t(i+1) is stamped.
    pub planes: u16,
    /// Series of one request at most: with 1 all its tries have one rate.
    pub series: u8,
    /// Requests that may be outstanding at once.
    pub max_outstanding: u16,
    /// Octets of the longest frame without FCS.
    pub max_frame_octets: u16,
    /// Which attributes can be set; see [`Settable`].
    pub settable: Settable,
}

impl Capabilities {
    /// Whether plane `plane` is stamped.
    pub const fn sees(&self, plane: Plane) -> bool {
        self.planes & (1 << plane.index()) != 0
    }
}

/// A set of attributes that can be written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Settable(u32);

impl Settable {
    /// Nothing can be set.
    pub const NONE: Settable = Settable(0);
    /// Everything that has a settable value.
    pub const ALL: Settable = Settable(u32::MAX);

    const fn bit(attribute: &Attribute) -> u32 {
        match attribute {
            Attribute::Bssid(_) => 1 << 0,
            Attribute::Channel(_) => 1 << 1,
            Attribute::AckTimeout(_) => 1 << 2,
            Attribute::SlotTime(_) => 1 << 3,
            Attribute::Tsf(_) => 1 << 4,
            Attribute::TxPower(_) => 1 << 5,
            Attribute::BasicRates(_) => 1 << 6,
            Attribute::RtsThreshold(_) => 1 << 7,
            Attribute::CarrierSense(_) => 1 << 8,
            Attribute::VirtualCarrierSense(_) => 1 << 9,
            Attribute::Reception(_) => 1 << 10,
            Attribute::AckGeneration(_) => 1 << 11,
            Attribute::Promiscuous(_) => 1 << 12,
            Attribute::Edca(..) => 1 << 13,
            Attribute::PacketSeries(..) => 1 << 14,
            Attribute::Address(_) => 1 << 15,
            Attribute::BeaconTiming(_) => 1 << 17,
            Attribute::ReceiveFilter(_) => 1 << 16,
            Attribute::Capabilities(_)
            | Attribute::Counters(_)
            | Attribute::QueueLength(..)
            | Attribute::Packet(..) => 0,
        }
    }

    /// With attributes of the kind of `attribute` added.
    #[must_use]
    pub const fn with(self, attribute: &Attribute) -> Settable {
        Settable(self.0 | Settable::bit(attribute))
    }

    /// With attributes of the kind of `attribute` taken out.
    #[must_use]
    pub const fn without(self, attribute: &Attribute) -> Settable {
        Settable(self.0 & !Settable::bit(attribute))
    }

    /// With all of another set added.
    #[must_use]
    pub const fn and(self, other: Settable) -> Settable {
        Settable(self.0 | other.0)
    }

    /// Whether attributes of the kind of `attribute` can be set; never for those that are read only.
    pub const fn contains(self, attribute: &Attribute) -> bool {
        self.0 & Settable::bit(attribute) != 0
    }
}

/// Why an attribute was not set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum SetError {
    /// This host or adapter cannot change it.
    NotSupported,
    /// The value is outside of what the adapter takes.
    OutOfRange,
    /// The regulatory domain forbids it.
    Forbidden,
    /// The process lacks a permission.
    NoPermission,
    /// There is no such adapter, queue or packet.
    NotFound,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_attributes_are_never_settable() {
        assert!(!Settable::ALL.contains(&Attribute::Counters(Counters::default())));
        assert!(Settable::ALL.contains(&Attribute::Channel(5180)));
        let s = Settable::NONE.with(&Attribute::Channel(1));
        assert!(s.contains(&Attribute::Channel(5825)) && !s.contains(&Attribute::TxPower(3)));
        let none = BeaconTiming::default();
        let rest = Settable::ALL.without(&Attribute::BeaconTiming(none));
        assert!(!rest.contains(&Attribute::BeaconTiming(none)) && rest.contains(&Attribute::Channel(1)));
        let s = Settable::ALL.without(&Attribute::Channel(1));
        assert!(!s.contains(&Attribute::Channel(5825)) && s.contains(&Attribute::TxPower(3)));
    }
}
