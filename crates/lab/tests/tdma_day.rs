//! TDMA for long: stations with drifting clocks join, leave and crash; and what foreign frames do to slots.

use frame::{Band, MacAddr, Phy, Rate};
use protocols::mac::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use protocols::mac::data::Identity;
use protocols::mac::overlay::Access;
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::sync::{Sync, SyncConfig};
use protocols::mac::tdma::join::wire::{MAX_LIST_OCTETS, Wish};
use protocols::mac::tdma::join::{Membership, Rules, Stay};
use protocols::mac::tdma::schedule::{BeaconSlot, Release, SlotCosts, SlotUse, TdmaPlan};
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{Checked, Duration, Event, Instant, Outcome, Protocol, Queue, Radio};
use sim::clock::Clock;
use sim::trace::{AirEnd, AirStart, Observer};
use sim::{AdapterConfig, MediumConfig, NodeConfig, Pattern, Position, Traffic, World};

const SECOND: u64 = 1_000_000_000;
const CYCLE_NS: u64 = 20_000_000;
const AP: MacAddr = MacAddr::local(0);
