//! Medium access: who sends when.
//!
//! | module | what it is |
//! |---|---|
//! | [`sender`] | innermost: frames MSDUs and requests them at once; alone on an adapter it is plain CSMA/EDCA |
//! | [`oneshot`] | innermost: the measurement task of the SDMAC paper, one confirmed one-shot after each beacon |
//! | [`sink`] | innermost: receives, and remembers which of those one-shots arrived |
//! | [`beacon`] | overlay: sends beacons, passes everything else through |
//! | [`edf`] | overlay and polling pair: earliest deadline first over one-shots |
//! | [`tdma`] | overlay: a schedule of slots over one-shots, static or joined on the air |
//! | [`redundancy`] | overlay: two adapters as one, first copy wins |
//! | [`roam`] | overlay: from one access point to the next, with two adapters or one |
//! | [`rate`] | overlay: retry chains by Minstrel or RSIN |
//! | [`ibss`] | innermost: ad hoc networks, with beacons, merging clocks, and power save |
//! | `ccmp` | protection of data frames by a shared key (feature of the same name) |
//! | [`tbmac`] | overlay: slots that the hosts of a cell agree on among themselves |
//! | [`slotted`] | overlay: the leaky bucket, one frame at the start of each slot |
//! | [`overlay`] | what overlays that hold requests share |
//! | [`sync`] | the time base of everything with slots |
//! | [`data`] | MSDUs in data frames: addresses, LLC/SNAP, sequence numbers, duplicates |
//!
//! A new overlay is a file (or folder) beside these: it owns an [`overlay::Above`], tells the protocol above what
//! it hears, launches what is held, and pays the confirms. Transports and forwarding are
//! not medium access: they have folders of their own beside `mac`.

pub mod data;
pub mod overlay;
pub mod tally;

pub mod beacon;
#[cfg(feature = "ccmp")]
pub mod ccmp;
pub mod edf;
pub mod ibss;
pub mod oneshot;
pub mod rate;
pub mod redundancy;
pub mod roam;
pub mod sender;
pub mod sink;
pub mod slotted;
pub mod sync;
pub mod tbmac;
pub mod tdma;

pub use tally::Tally;
