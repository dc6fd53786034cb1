//! Computers with emulated AR9170 sticks in a world of the simulator.
//!
//! ```text
//! protocol <-> driver <-> USB <-> stick <-> adapter and medium of the simulator
//! ```
//!
//! The stick is a user of the contract, so the simulator's adapter is its hardware below the firmware: channel access,
//! ACKs and retries are those of the simulator. What the stick adds is its USB, its queues and its firmware's rules.

pub mod served;

use std::sync::OnceLock;

use ::ar9170::codec::{Eeprom, Firmware, firmware};
use ::ar9170::driver::{Config, Hybrid};
pub use ::ar9170::emulated::Knobs;
use ::ar9170::emulated::Plugged;
use frame::{MacAddr, Phy};
use radio::Protocol;
use sim::adapter::AdapterConfig;
use sim::{NodeConfig, Position};

/// Requests that may be open at once.
pub const REQUESTS: usize = 64;
/// Octets of memory for each: the longest frame of the protocols here, and its descriptors.
const OCTETS: usize = 2_400;
/// Memory for received frames: eight transfers.
type Buffers = Hybrid<8, 8_192>;

/// A computer with a stick, and the protocol `P` on it. It is a protocol for the simulator.
pub type Computer<P> = Plugged<'static, P, Buffers, REQUESTS, OCTETS>;

/// The firmware of all sticks: one that the model does not run.
fn blank() -> Firmware<'static> {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    let file = FILE.get_or_init(firmware::blank);
    Firmware::parse(file).expect("the crate's own file")
}

/// The EEPROM of a stick with this address.
fn eeprom(address: MacAddr) -> Eeprom {
    Eeprom {
        ghz5: true,
        ghz2_4: true,
        domain: 0,
        address,
        receive_chains: 1,
        transmit_chains: 1,
    }
}

/// A computer whose stick has this address.
pub fn computer<P: Protocol>(address: MacAddr, config: Config, knobs: Knobs, protocol: P) -> Computer<P> {
    let eeprom = eeprom(address);
    Plugged::new(blank(), config, eeprom, knobs, protocol, Hybrid::default())
}

/// A node of the simulator for such a computer: an adapter of 802.11g on channel 1, no latencies but those of the USB.
pub fn node(address: MacAddr, position: Position) -> NodeConfig {
    let adapter = AdapterConfig::station(address, Phy::G, 2_412, true);
    NodeConfig::ideal(position, adapter)
}
