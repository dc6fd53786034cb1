//! How a station roams, and what it counts.

use frame::{MacAddr, Rate};
use radio::{AdapterId, Duration};

/// Channels at most.
pub const MAX_CHANNELS: usize = 8;
/// How a [`Roam`](super::Roam) works.
#[derive(Clone, Copy, Debug)]
pub struct RoamConfig {
    /// Its own address.
    pub me: MacAddr,
    /// The access point that the protocol above knows.
    pub home: MacAddr,
    /// Channels of the network, MHz: what a neighbour report would list (IEEE 802.11-2016, 11.11). The first `count`
    /// count.
    pub channels: [u16; MAX_CHANNELS],
    /// How many of them there are, 1 to [`MAX_CHANNELS`].
    pub count: usize,
    /// Its adapters; the second one makes it roam without a break.
    pub adapters: (AdapterId, Option<AdapterId>),
    /// Rate of authentication and association.
    pub rate: Rate,
    /// Another one is better from so many dB on...
    pub better_db: u8,
    /// ...for so long.
    pub hold: Duration,
    /// The present one is lost after so long without a beacon.
    pub lost: Duration,
    /// The present one is left when so many of the last so many frames that went to it had no ACK, although its beacons are heard: 32 at
    /// most. 0 of any number: never.
    pub failed: (u8, u8),
    /// Who was left for that is gone to only if nobody else is heard for so long, and nobody is left for that in this time.
    pub rest: Duration,
    /// How long it listens on a channel: longer than the interval of beacons.
    pub dwell: Duration,
    /// How long it waits for an answer.
    pub answer: Duration,
    /// The old link ends this long after the new one began, or after `acks` acknowledged frames in a row.
    pub overlap: Duration,
    /// See `overlap`.
    pub acks: u16,
    /// While both links serve, each frame that asks for an ACK goes on both, and what comes down with a
    /// [trailer](crate::mac::redundancy::trailer) is handed up once, without it. `false`: a frame goes on the old link only when it has failed on the new one.
    pub copies: bool,
}

impl RoamConfig {
    /// 5 dB for 500 ms, lost after 350 ms or when 8 of 10 frames failed, with a rest of 5 s; 110 ms on each channel, 20 ms for an answer, overlap of
    /// 100 ms or 10 ACKs.
    pub fn new(
        me: MacAddr,
        home: MacAddr,
        channels: &[u16],
        adapters: (AdapterId, Option<AdapterId>),
        rate: Rate,
    ) -> RoamConfig {
        let count = channels.len().min(MAX_CHANNELS);
        let mut all = [0; MAX_CHANNELS];
        all[..count].copy_from_slice(&channels[..count]);
        RoamConfig {
            me,
            home,
            channels: all,
            count,
            adapters,
            rate,
            better_db: 5,
            hold: Duration::from_ms(500),
            lost: Duration::from_ms(350),
            failed: (8, 10),
            rest: Duration::from_ms(5_000),
            dwell: Duration::from_ms(110),
            answer: Duration::from_ms(20),
            overlap: Duration::from_ms(100),
            acks: 10,
            copies: false,
        }
    }
}

/// What a [`Roam`](super::Roam) has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoamCounters {
    /// Access points that it went to, the first one included.
    pub joined: u64,
    /// Of these, hand-overs from another one.
    pub handovers: u64,
    /// Access points that were left because frames failed, while their beacons were heard.
    pub given_up: u64,
    /// Questions that nobody answered.
    pub unanswered: u64,
    /// Frames that went again on the other link.
    pub second_chances: u64,
    /// Frames that went on both links at once.
    pub copies: u64,
    /// Of these, acknowledged on both: both access points have them.
    pub duplicates: u64,
    /// Frames that had come down through another access point before, and were dropped.
    pub repeated: u64,
    /// Requests that ended without an ACK while a hand-over was under way, or messages that were given up above then
    /// ([`Roam::count_by`](super::Roam::count_by)): it begins with the last frame acknowledged before it, and ends with the first one
    /// after it. So, too, while nobody lets the station in, although it may come back to where it was.
    pub missed_in_handover: u64,
    /// Others.
    pub missed_else: u64,
    /// Time between these two ACKs, all hand-overs together, ns; the last one may still be under way.
    pub gap_ns: u64,
    /// The longest of these times, ns.
    pub longest_gap_ns: u64,
}
