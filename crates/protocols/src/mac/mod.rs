//! Medium access: who sends when.
//!
//! | module | what it is |
//! |---|---|
//! | [`sender`] | innermost: frames MSDUs and requests them at once; alone on an adapter it is plain CSMA/EDCA |
//! | [`oneshot`] | innermost: the measurement task of the SDMAC paper, one confirmed one-shot after each beacon |
//! | [`sink`] | innermost: receives, and remembers which of those one-shots arrived |
//! | [`beacon`] | overlay: sends beacons, passes everything else through |
//! | [`edf`] | overlay and polling pair: earliest deadline first over one-shots |
//! | [`edf`] | overlay: earliest deadline first over one-shots |
//! | [`overlay`] | what overlays that hold requests share |
//! | [`data`] | MSDUs in data frames: addresses, LLC/SNAP, sequence numbers, duplicates |
//!
//! Redundancy over two adapters, rate control, IBSS with power save and roaming are overlays or innermost
//! protocols like these and go beside them. Transports and routing are not medium access: they get folders of
//! their own beside `mac`.

pub mod data;
pub mod overlay;
pub mod tally;

pub mod beacon;
pub mod edf;
pub mod oneshot;
pub mod sender;
pub mod sink;

pub use tally::Tally;
