//! How copies are sent.

use crate::mac::overlay::Access;
use radio::{AdapterId, Duration};

/// How copies are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RedundancyConfig {
    /// The two adapters.
    pub adapters: [AdapterId; 2],
    /// Take the other copy back when one is acknowledged.
    pub cancel: bool,
    /// The second copy begins this long after the first, or as soon as the first has failed; `None`: at once. A frame
    /// that expects no ACK is always sent twice at once.
    pub defer: Option<Duration>,
    /// Which adapter goes first, if one does.
    pub primary: Primary,
    /// Channel access to be set at the start on both adapters, whatever adapter it names.
    pub access: Option<Access>,
}

impl RedundancyConfig {
    /// Both copies at once, none taken back: PRP over Wi-Fi.
    pub const fn parallel(first: AdapterId, second: AdapterId) -> RedundancyConfig {
        RedundancyConfig {
            adapters: [first, second],
            cancel: false,
            defer: None,
            primary: Primary::Better,
            access: None,
        }
    }

    /// As [`parallel`](RedundancyConfig::parallel), and a copy that is not needed any more is taken back.
    pub const fn reactive(first: AdapterId, second: AdapterId) -> RedundancyConfig {
        RedundancyConfig {
            cancel: true,
            ..RedundancyConfig::parallel(first, second)
        }
    }

    /// As [`reactive`](RedundancyConfig::reactive), and the second copy waits for up to `defer`.
    pub const fn proactive(first: AdapterId, second: AdapterId, defer: Duration) -> RedundancyConfig {
        RedundancyConfig {
            defer: Some(defer),
            ..RedundancyConfig::reactive(first, second)
        }
    }
}

/// Which adapter sends the first copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Primary {
    /// Always this one of the two: 0 or 1.
    Fixed(u8),
    /// The one with more acknowledgements in time among its latest copies, each new one counting 1/64.
    Better,
}
