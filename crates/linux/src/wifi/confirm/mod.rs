//! The ways by which the outcome of a frame comes up from the kernel, and what each can carry.
//!
//! | path | which frames | what it tells | how |
//! |---|---|---|---|
//! | [`Monitor`](Path::Monitor) | all | outcome, tries, rate of the first series | the frame comes back on a monitor interface |
//! | [`Status`](Path::Status) | of ordinary interfaces | outcome | the error queue of the socket that sent it (SO_WIFI_STATUS) |
//! | [`Nl80211`](Path::Nl80211) | management frames of ordinary interfaces | outcome | a netlink message with a cookie |
//! | [`Device`](Path::Device) | all | outcome, tries of each series, t2 to t8 | a record of `/dev/sdmac`, with the module of the folder `kernel/` |
//!
//! A [`Host`](super::Host) sends through a monitor interface, and of what is sent there only the first and the last tell; or
//! through an ordinary one, with the second ([`Carrier::Ordinary`](super::Carrier::Ordinary)). The third has no host: it takes
//! management frames alone and chooses rate and tries by itself. [`compare`](compare::compare) lets each tell of frames that it
//! can carry.

pub mod compare;
mod device;
mod management;
mod record;
mod sample;

pub use device::Device;
pub use record::{OCTETS, Record, RecordError, Tried, VERSION};

pub(super) use device::Records;
pub(super) use record::HEAD;

/// By which way outcomes come up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Path {
    /// The frame comes back on a monitor interface.
    #[default]
    Monitor,
    /// SO_WIFI_STATUS.
    Status,
    /// NL80211_CMD_FRAME_TX_STATUS.
    Nl80211,
    /// The character device of the kernel module.
    Device,
}

impl Path {
    /// All of them.
    pub const ALL: [Path; 4] = [Path::Monitor, Path::Status, Path::Nl80211, Path::Device];

    /// In a word.
    pub const fn name(self) -> &'static str {
        match self {
            Path::Monitor => "monitor",
            Path::Status => "status",
            Path::Nl80211 => "nl80211",
            Path::Device => "device",
        }
    }

    /// The path of this name.
    pub fn parse(name: &str) -> Option<Path> {
        Path::ALL.into_iter().find(|path| path.name() == name)
    }

    /// Whether it tells of frames that are sent through a monitor interface with rate and tries of their own.
    pub const fn carries_requests(self) -> bool {
        matches!(self, Path::Monitor | Path::Device)
    }
}
