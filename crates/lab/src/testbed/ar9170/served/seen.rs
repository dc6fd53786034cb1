//! What sticks and station have seen; and the station, a computer of our own.

use std::collections::BTreeMap;

use ::ar9170::driver::Config;
use ::ar9170::emulated::Knobs;
use frame::{MacAddr, Rate};
use protocols::mac::ibss::{Ibss, IbssConfig, IbssCounters};
use radio::Duration as Span;
use serde::Serialize;

use crate::testbed::ar9170::{Computer, computer};

/// The address of the station with our own driver: behind those of the sticks.
pub const STATION: u32 = 0x100;
/// Requests and octets of its network.
pub type Network = Ibss<16, 1_600>;

/// What a stick has seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StickSummary {
    /// Its socket.
    pub socket: String,
    /// Its address.
    pub address: String,
    /// Times that it was plugged in.
    pub connections: u64,
    /// Why the last connection was closed by us.
    pub refused: Option<String>,
    /// Resets of the bus.
    pub resets: u64,
    /// Images that were started.
    pub starts: u64,
    /// Commands for which the host waits, by name.
    pub commands: BTreeMap<String, u64>,
    /// Commands for which it does not wait.
    pub asynchronous: BTreeMap<String, u64>,
    /// Frames sent, without responses.
    pub frames: u64,
    /// Its TSF at the end, us.
    pub tsf_us: u64,
}

/// What our own station has seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StationSummary {
    /// Its address.
    pub address: String,
    /// BSSID of its network.
    pub bssid: Option<String>,
    /// Payloads that it received, and sent back.
    pub delivered: u64,
    /// Beacons that it sent.
    pub beacons: u64,
    /// Beacons of its network that it heard.
    pub beacons_heard: u64,
    /// Times that it took over the clock of another.
    pub adoptions: u64,
    /// Times that it left its network for one that is older.
    pub merges: u64,
    /// TSF of its stick at the end, us.
    pub tsf_us: u64,
}

/// What all have seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Served {
    /// How long, s.
    pub seconds: f64,
    /// Each stick.
    pub sticks: Vec<StickSummary>,
    /// The station.
    pub station: Option<StationSummary>,
    /// The longest time by which something in the world came late, us.
    pub latest_us: f64,
}

/// Address of the n-th stick.
pub fn address(n: u32) -> MacAddr {
    MacAddr::local(0x9170_0000 + n)
}

/// A computer with our own driver and our own network.
pub fn station(me: MacAddr, ssid: &'static str, seed: u64) -> Computer<Network> {
    let config = IbssConfig {
        channel: Some(1),
        // what the USB takes until a station knows of another's beacon
        slot: Span::from_us(400),
        seed,
        ..IbssConfig::new(me, ssid, Rate::OFDM_24)
    };
    let knobs = Knobs {
        seed,
        ..Knobs::default()
    };
    computer(me, Config::default(), knobs, Network::new(config))
}

pub fn seen(network: &Network, tsf_us: u64) -> StationSummary {
    let IbssCounters {
        delivered,
        beacons,
        beacons_heard,
        adoptions,
        merges,
        ..
    } = *network.counters();
    StationSummary {
        address: address(STATION).to_string(),
        bssid: network.network().map(|n| n.bssid.to_string()),
        delivered,
        beacons,
        beacons_heard,
        adoptions,
        merges,
        tsf_us,
    }
}
