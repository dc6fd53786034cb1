//! How a frame is to be sent: [`TxHow`], part of every request.

use crate::time::Instant;
use frame::{AccessCategory, Rate};
use serde::{Deserialize, Serialize};

/// Which adapter of a node, counted from 0. A node with one adapter uses [`AdapterId::FIRST`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct AdapterId(pub u8);

impl AdapterId {
    /// Adapter 0.
    pub const FIRST: AdapterId = AdapterId(0);
}

/// One step of a multi-rate retry chain: up to `tries` frames at `rate`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Series {
    /// Rate of these attempts.
    pub rate: Rate,
    /// Frames at most, 1 or more.
    pub tries: u8,
}

/// Series at most: what the descriptors of Atheros adapters hold (SDMAC, Cena et al. 2018, section III).
pub const MAX_SERIES: usize = 4;

/// One to four series, run in order until an ACK comes or all tries are used up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SeriesList {
    len: u8,
    list: [Series; MAX_SERIES],
}

impl SeriesList {
    /// A single series; `tries` of 0 count as 1.
    pub const fn one(rate: Rate, tries: u8) -> SeriesList {
        let s = Series {
            rate,
            tries: if tries == 0 { 1 } else { tries },
        };
        SeriesList {
            len: 1,
            list: [s; MAX_SERIES],
        }
    }

    /// From a slice of one to four series with at least one try each; `None` otherwise.
    pub fn new(series: &[Series]) -> Option<SeriesList> {
        let first = *series.first()?;
        if series.len() > MAX_SERIES || series.iter().any(|s| s.tries == 0) {
            return None;
        }
        let mut list = [first; MAX_SERIES];
        list[..series.len()].copy_from_slice(series);
        Some(SeriesList {
            len: series.len() as u8,
            list,
        })
    }

    /// The series, first one first.
    pub fn as_slice(&self) -> &[Series] {
        &self.list[..usize::from(self.len).clamp(1, MAX_SERIES)]
    }

    /// All tries together: frames on the air at most.
    pub fn attempts(&self) -> u16 {
        self.as_slice().iter().map(|s| u16::from(s.tries)).sum()
    }

    /// Series (index and content) of the attempt number `attempt`, counted from 0; `None` after the last one.
    pub fn at(&self, attempt: u16) -> Option<(u8, Series)> {
        let mut left = attempt;
        for (i, s) in self.as_slice().iter().enumerate() {
            if left < u16::from(s.tries) {
                return Some((i as u8, *s));
            }
            left -= u16::from(s.tries);
        }
        None
    }
}

/// Whether the receiver is asked for an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum AckPolicy {
    /// An ACK is expected from an individual receiver. Group-addressed frames never get one.
    #[default]
    Normal,
    /// None is expected and none is sent: QoS No-Ack (IEEE 802.11-2016, 9.2.4.5.4), or a frame whose ACK
    /// nobody waits for. Such a frame is sent once.
    NoAck,
}

/// Whether RTS/CTS goes before the frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum RtsPolicy {
    /// As the adapter's RTS threshold says.
    #[default]
    Threshold,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// A transmit queue of the adapter: one per access category, and the beacon queue, which goes before all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Queue {
    /// AC_BK.
    Background,
    /// AC_BE; also where plain DCF frames go.
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
    /// Beacons, sent after PIFS with no backoff.
    Beacon,
}

impl Queue {
    /// All, lowest priority first.
    pub const ALL: [Queue; 5] = [
        Queue::Background,
        Queue::BestEffort,
        Queue::Video,
        Queue::Voice,
        Queue::Beacon,
    ];

    /// 0 (background) to 4 (beacon): higher goes first in an internal collision.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl From<AccessCategory> for Queue {
    fn from(ac: AccessCategory) -> Queue {
        match ac {
            AccessCategory::Background => Queue::Background,
            AccessCategory::BestEffort => Queue::BestEffort,
            AccessCategory::Video => Queue::Video,
            AccessCategory::Voice => Queue::Voice,
        }
    }
}

/// How one frame is to be sent. Every host honours all of it or refuses the request with a reason.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct TxHow {
    /// Rates and numbers of tries. One series of one try is a one-shot: exactly one frame on the air.
    pub series: SeriesList,
    /// Whether an ACK is expected.
    pub ack: AckPolicy,
    /// Whether RTS/CTS goes first.
    pub rts: RtsPolicy,
    /// Which queue of the adapter.
    pub queue: Queue,
    /// The frame does not start on the air before this time (host clock). A host that cannot hold a frame back
    /// says so in its [`Capabilities`](crate::Capabilities) and refuses.
    pub not_before: Option<Instant>,
    /// No attempt starts after this time; the request then ends as expired (host clock). An attempt starts with the first
    /// frame of its exchange, which is the RTS where one goes ahead: what has begun in time goes on to its end.
    pub expires: Option<Instant>,
    /// Which adapter of the node.
    pub adapter: AdapterId,
}

impl TxHow {
    /// One frame on the air and no more, with an ACK expected, best effort: a confirmed one-shot
    /// (SDMAC, Cena et al. 2018, section I).
    pub const fn one_shot(rate: Rate) -> TxHow {
        TxHow::multi_shot(rate, 1)
    }

    /// Up to `tries` frames at one rate.
    pub const fn multi_shot(rate: Rate, tries: u8) -> TxHow {
        TxHow {
            series: SeriesList::one(rate, tries),
            ack: AckPolicy::Normal,
            rts: RtsPolicy::Threshold,
            queue: Queue::BestEffort,
            not_before: None,
            expires: None,
            adapter: AdapterId::FIRST,
        }
    }

    /// With another retry chain.
    #[must_use]
    pub const fn series(mut self, series: SeriesList) -> TxHow {
        self.series = series;
        self
    }

    /// Into another queue.
    #[must_use]
    pub const fn queue(mut self, queue: Queue) -> TxHow {
        self.queue = queue;
        self
    }

    /// Without ACK.
    #[must_use]
    pub const fn no_ack(mut self) -> TxHow {
        self.ack = AckPolicy::NoAck;
        self
    }

    /// Not on the air before `t`.
    #[must_use]
    pub const fn not_before(mut self, t: Instant) -> TxHow {
        self.not_before = Some(t);
        self
    }

    /// No attempt starts after `t`.
    #[must_use]
    pub const fn expires(mut self, t: Instant) -> TxHow {
        self.expires = Some(t);
        self
    }

    /// On another adapter.
    #[must_use]
    pub const fn adapter(mut self, adapter: AdapterId) -> TxHow {
        self.adapter = adapter;
        self
    }

    /// True if exactly one frame goes on the air.
    pub fn is_one_shot(&self) -> bool {
        self.series.attempts() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_walked_in_order() {
        let s = |rate, tries| Series { rate, tries };
        let list = SeriesList::new(&[s(Rate::OFDM_54, 2), s(Rate::OFDM_24, 1), s(Rate::OFDM_6, 3)]).unwrap();
        assert_eq!(list.attempts(), 6);
        let index: [Option<u8>; 8] = core::array::from_fn(|i| list.at(i as u16).map(|(n, _)| n));
        assert_eq!(
            index,
            [Some(0), Some(0), Some(1), Some(2), Some(2), Some(2), None, None]
        );
        assert_eq!(list.at(3).unwrap().1.rate, Rate::OFDM_6);
    }

    #[test]
    fn series_are_bounded() {
        let s = Series {
            rate: Rate::OFDM_6,
            tries: 1,
        };
        assert!(SeriesList::new(&[]).is_none());
        assert!(SeriesList::new(&[s; 5]).is_none());
        assert!(SeriesList::new(&[Series { tries: 0, ..s }]).is_none());
        assert_eq!(SeriesList::one(Rate::OFDM_6, 0).attempts(), 1);
        let long = SeriesList::new(&[Series { tries: 255, ..s }; 4]).unwrap();
        assert_eq!(long.attempts(), 1020);
        assert_eq!(long.at(1019).unwrap().0, 3);
        assert_eq!(long.at(1020), None);
    }

    #[test]
    fn one_shot() {
        assert!(TxHow::one_shot(Rate::OFDM_54).is_one_shot());
        assert!(!TxHow::multi_shot(Rate::OFDM_54, 2).is_one_shot());
    }
}
