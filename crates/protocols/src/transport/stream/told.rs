//! What is known of packets that were sent, and what feedback tells of their length.

use radio::{Duration, Instant};

/// What is known of a packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in super::super) enum Fate {
    /// Nothing.
    #[default]
    Unknown,
    /// The receiver misses it.
    Missing,
    /// It has arrived, behind a hole.
    Arrived,
}

/// The record of one packet. Its content is the transport's business; buffers of records start as
/// [`Sent::default`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    pub(super) start: u64,
    pub(super) octets: u16,
    /// Its first octet that is missing, counted from `start`: what is sent again begins there.
    pub(super) from: u16,
    /// Octets of the longest piece in which it went last.
    pub(super) piece: u16,
    /// It carries the end of the stream.
    pub(super) last: bool,
    pub(super) fate: Fate,
    pub(super) again: bool,
    /// A part of what is missing has gone again.
    pub(super) begun: bool,
    /// It is long, and in doubt it went short or whole in its turn.
    pub(super) short: Option<bool>,
    pub(super) at: Instant,
}

impl Sent {
    /// The offset behind it; the end of the stream counts as one more.
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.octets) + u64::from(self.last)
    }

    /// What is told when it is said to have arrived. When it was sent is not known if it was sent again less than `guard` ago: it may have come the first time.
    pub(super) fn arrives(&self, now: Instant, guard: Duration) -> Tally {
        let is_sure = !self.again || now.since(self.at) >= guard;
        Tally {
            arrived: u32::from(self.fate != Fate::Arrived),
            lost: 0,
            came: if is_sure { self.at } else { Instant::ZERO },
            maybe: self.at,
        }
    }

    /// Whether a packet is lost that has not come. Sent less than `guard` ago it may still be on its way; and so it may for half as long again, while nothing has
    /// come that was sent later. `came`: when the newest that has come was sent.
    ///
    /// Behind a queue that grows a round trip takes longer than any before, and what waits there would be sent again and again. The order of packets knows no
    /// time (RFC 8985, section 3.1).
    pub(super) fn is_lost(&self, now: Instant, guard: Duration, came: Instant) -> bool {
        let age = now.since(self.at);
        age >= guard && (self.at < came || age.times(2) >= guard.times(3))
    }

    /// The same of one behind which something has come: that was sent later, unless this one was sent again.
    pub(super) fn is_missed(&self, now: Instant, guard: Duration, came: Instant) -> bool {
        let is_late = !self.again && now.since(self.at) >= guard;
        is_late || self.is_lost(now, guard, came)
    }
}

/// Packets that are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Losses {
    pub packets: u32,
    /// Octets of the shortest.
    pub least: u16,
}

impl Losses {
    pub const NONE: Losses = Losses {
        packets: 0,
        least: u16::MAX,
    };

    pub fn add(&mut self, packets: u32, least: u16) {
        self.packets += packets;
        self.least = self.least.min(least);
    }
}

/// What feedback has told of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Tally {
    /// They have arrived, which was not known.
    pub arrived: u32,
    pub lost: u32,
    /// When the newest of those that have arrived was sent.
    pub came: Instant,
    /// The same, if all that was sent again has come by that.
    pub maybe: Instant,
}

impl Tally {
    pub const NONE: Tally = Tally {
        arrived: 0,
        lost: 0,
        came: Instant::ZERO,
        maybe: Instant::ZERO,
    };

    /// So many, the newest of which was sent then, and none of them again.
    #[cfg(test)]
    pub fn new(arrived: u32, lost: u32, came: Instant) -> Tally {
        Tally {
            arrived,
            lost,
            came,
            maybe: came,
        }
    }

    pub fn add(&mut self, more: Tally) {
        self.arrived += more.arrived;
        self.lost += more.lost;
        self.came = self.came.max(more.came);
        self.maybe = self.maybe.max(more.maybe);
    }
}

/// What was told of packets that were sent since the length of packets has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct News {
    /// Octets of the longest that has arrived.
    pub came: u16,
    /// How many have.
    pub arrived: u32,
    /// Those of these that went short in their turn.
    pub short: u32,
    /// Short ones that are lost, as far as can be known.
    pub lost: Losses,
    /// The same of longer ones.
    pub long: Losses,
}

impl News {
    pub const NONE: News = News {
        came: 0,
        arrived: 0,
        short: 0,
        lost: Losses::NONE,
        long: Losses::NONE,
    };
}

/// The length of packets, and which of them tell what passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    /// Packets sent again go in pieces of so many octets.
    pub octets: u16,
    /// Longer ones count as long.
    pub over: u16,
    /// Every other long one goes in pieces of `over` octets.
    pub doubts: bool,
    /// What was sent earlier tells nothing.
    pub since: Instant,
}

impl Watch {
    /// Whether a packet tells something. What is longer than packets are is about to be tried, and says nothing of this
    /// length.
    fn counts(&self, r: &Sent) -> bool {
        r.at > self.since && r.piece <= self.octets
    }

    /// It is lost.
    pub fn lost(&self, r: &Sent, news: &mut News) {
        if self.counts(r) {
            let losses = if r.piece > self.over {
                &mut news.long
            } else {
                &mut news.lost
            };
            losses.add(1, r.piece);
        }
    }

    /// It has arrived.
    pub fn came(&self, r: &Sent, news: &mut News) {
        if self.counts(r) {
            news.came = news.came.max(r.piece);
            news.arrived += 1;
            news.short += u32::from(r.short == Some(true));
        }
    }
}
