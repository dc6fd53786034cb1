//! How long packets may be. A path can drop what is too long for it without a word (a *black hole*, RFC 8899, section
//! 4.3), while short packets, and so feedback, get through. The sender then goes down in [`STEPS`], and from there it
//! tries longer packets until it knows what passes.
//!
//! Nothing is added to the wire: what is tried are packets of data, and the feedback tells what became of them.

use crate::transport::stream::{Fate, Losses, News, Piece};
use crate::transport::wire::HEADER_OCTETS;
use radio::{Duration, Instant};

/// Octets of data in a packet to which the sender goes down: those of datagrams of 1200 octets (`BASE_PLPMTU` in RFC
/// 8899, section 5.1.2), then of packets of 576, which every host takes (RFC 1122, section 3.3.2), with the headers of
/// IPv4 and UDP.
pub const STEPS: [u16; 2] = [1_200 - HEADER_OCTETS as u16, 576 - 28 - HEADER_OCTETS as u16];
/// Packets that are lost in a row before shorter ones are sent. Of one feedback at most [`AT_ONCE`] count, so that a
/// path that is down for a moment is not taken for narrow.
const LOSSES: u32 = 8;
/// Before the connection ends, and not before half of its patience: a path whose delay has grown seems to lose
/// everything for a while.
const LAST_LOSSES: u32 = 24;
const AT_ONCE: u32 = 3;
/// Longer packets that are lost before their length counts as too long (`MAX_PROBES` in RFC 8899, section 5.1.2).
const TRIES: u8 = 3;
/// What passes need not be known better than to so many octets.
const GRAIN: u16 = 32;
/// When longer packets are tried again (`PMTU_RAISE_TIMER` in RFC 8899, section 5.1.1).
const RAISE: Duration = Duration::from_ms(600_000);

/// No packet with data passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooNarrow;

/// A longer packet on its way.
#[derive(Clone, Copy, Debug)]
struct Probe {
    start: u64,
    octets: u16,
}

/// The next step below `octets`; 0 if there is none.
fn below(octets: u16) -> u16 {
    STEPS.into_iter().find(|s| *s < octets).unwrap_or(0)
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Size {
    most: u16,
    /// What packets have now.
    octets: u16,
    /// Whether one of that length has arrived.
    proven: bool,
    /// What is known not to pass; more than `most` if nothing is.
    fails: u16,
    /// Packets lost, of any length, since one at least as long as the shortest of them has arrived; and since when.
    lost: Losses,
    since: Option<Instant>,
    /// The same of packets longer than the next step.
    long: Losses,
    probe: Option<Probe>,
    tries: u8,
    raise_at: Option<Instant>,
}

impl Size {
    /// Packets of `most` octets of data, as long as these pass.
    pub fn new(most: usize) -> Size {
        let most = u16::try_from(most).unwrap_or(u16::MAX - 1);
        Size {
            most,
            octets: most,
            proven: false,
            fails: most + 1,
            lost: Losses::NONE,
            since: None,
            long: Losses::NONE,
            probe: None,
            tries: 0,
            raise_at: None,
        }
    }

    /// Octets of data in a packet.
    pub fn octets(&self) -> u16 {
        self.octets
    }

    /// The next step down; 0 if there is none.
    pub fn below(&self) -> u16 {
        below(self.octets)
    }

    /// Octets of the next packet with new data: more than [`octets`](Size::octets) if longer ones are to be tried.
    pub fn wanted(&mut self, now: Instant) -> u16 {
        if self.raise_at.is_some_and(|at| at <= now) {
            (self.raise_at, self.fails) = (None, self.most + 1);
        }
        if self.octets == self.most || !self.proven || self.probe.is_some() {
            return self.octets;
        }
        if self.fails > self.most {
            return self.most;
        }
        let apart = self.fails - self.octets;
        if apart > GRAIN {
            return self.octets + apart / 2;
        }
        self.raise_at.get_or_insert(now + RAISE);
        self.octets
    }

    /// A packet goes out.
    pub(in super::super) fn sent(&mut self, piece: &Piece) {
        let octets = piece.octets as u16;
        if !piece.again && octets > self.octets {
            let start = piece.start;
            self.probe = Some(Probe { start, octets });
        }
    }

    /// Where the longer packet begins whose fate is to be told.
    pub fn probe(&self) -> Option<u64> {
        self.probe.map(|p| p.start)
    }

    /// What a datagram from the other end has told: of the packets, and of the longer one. True if the length has
    /// changed.
    pub(in super::super) fn learn(
        &mut self,
        now: Instant,
        patience: Duration,
        news: News,
        fate: Fate,
    ) -> Result<bool, TooNarrow> {
        if let Some(probe) = self.probe {
            match fate {
                Fate::Unknown => {}
                Fate::Arrived => {
                    self.set(probe.octets);
                    self.proven = true;
                    return Ok(true);
                }
                Fate::Missing => {
                    self.probe = None;
                    self.tries += 1;
                    if self.tries >= TRIES {
                        (self.fails, self.tries) = (probe.octets, 0);
                    }
                }
            }
        }
        self.proven |= news.came >= self.octets;
        for (all, new) in [(&mut self.lost, news.lost), (&mut self.long, news.long)] {
            if news.came >= all.least.min(new.least) {
                *all = Losses::NONE;
            } else {
                all.add(new.packets.min(AT_ONCE), new.least);
            }
        }
        if self.lost.packets == 0 {
            self.since = None;
        } else {
            self.since.get_or_insert(now);
        }
        let since = self.since.unwrap_or(now);
        let enough = |all: Losses| (all.packets >= LOSSES).then_some(all.least.min(self.octets));
        // what is left of a stream may be short, and too long all the same
        let step = enough(self.long).or(enough(self.lost)).map_or(0, below);
        if step > 0 {
            self.fails = self.octets;
            self.set(step);
            return Ok(true);
        }
        if self.lost.packets >= LAST_LOSSES && now.since(since).times(2) >= patience {
            return Err(TooNarrow);
        }
        Ok(false)
    }

    fn set(&mut self, octets: u16) {
        *self = Size {
            octets,
            fails: self.fails,
            ..Size::new(self.most.into())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_ms(60_000);

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn lost(octets: u16, below: u16) -> News {
        let lost = Losses {
            packets: 9,
            least: octets,
        };
        News {
            came: 0,
            lost,
            long: if octets > below { lost } else { Losses::NONE },
        }
    }

    fn came(octets: u16) -> News {
        News {
            came: octets,
            ..News::NONE
        }
    }

    fn learn(size: &mut Size, news: News) -> Result<bool, TooNarrow> {
        size.learn(at(0), PATIENCE, news, Fate::Unknown)
    }

    /// Loses packets of so many octets, once a second, until their length changes or that is not enough; tells after how
    /// many seconds.
    fn until_changed(size: &mut Size, octets: u16) -> Result<u64, u64> {
        let news = lost(octets, size.below());
        let told = |ms| (ms, size.learn(at(ms), PATIENCE, news, Fate::Unknown));
        let (ms, last) = (0..)
            .map(|s| s * 1_000)
            .map(told)
            .find(|t| t.1 != Ok(false))
            .unwrap();
        last.map(|_| ms / 1_000).map_err(|_| ms / 1_000)
    }

    #[test]
    fn down_the_steps_and_out() {
        let mut size = Size::new(1_448);
        assert_eq!((size.octets(), size.below()), (1_448, 1_176));
        assert_eq!(until_changed(&mut size, 1_448), Ok(2), "three feedbacks, not one");
        assert_eq!((size.octets(), size.below()), (1_176, 524));
        assert_eq!(until_changed(&mut size, 1_176), Ok(2));
        assert_eq!((size.octets(), size.below()), (524, 0));
        assert_eq!(until_changed(&mut size, 524), Err(30));
        // packets that are short from the beginning, or the last of a stream, have no steps
        assert_eq!(until_changed(&mut Size::new(100), 100), Err(30));
        assert_eq!(until_changed(&mut Size::new(1_448), 7), Err(30));
        let mut size = Size::new(1_448);
        assert_eq!(until_changed(&mut size, 525), Ok(2));
        assert_eq!(size.octets(), 524, "1176 would not help");
    }

    /// Random losses are no black hole, and the arrival of something shorter is no proof against one.
    #[test]
    fn what_arrives_counts_if_it_is_long_enough() {
        let mut size = Size::new(1_448);
        for _ in 0..100 {
            assert_eq!(learn(&mut size, lost(1_400, 1_176)), Ok(false));
            assert_eq!(learn(&mut size, lost(1_400, 1_176)), Ok(false));
            assert_eq!(learn(&mut size, came(1_400)), Ok(false));
        }
        for _ in 0..2 {
            assert_eq!(learn(&mut size, lost(1_400, 1_176)), Ok(false));
            assert_eq!(learn(&mut size, came(1_399)), Ok(false));
        }
        assert_eq!(learn(&mut size, lost(1_448, 1_176)), Ok(true));
        assert_eq!(size.octets(), 1_176);
    }

    /// Up again to what passes, with three losses for each length that does not; and all of it again after ten minutes.
    #[test]
    fn the_length_that_passes_is_found() {
        for passes in [524, 525, 1_000, 1_180, 1_300, 1_416, 1_447] {
            let mut size = Size::new(1_448);
            until_changed(&mut size, 1_448).unwrap();
            if passes < 1_176 {
                until_changed(&mut size, 1_176).unwrap();
            }
            let now = Instant::from_us(1);
            assert_eq!(size.wanted(now), size.octets(), "first it must be known to pass");
            let octets = size.octets();
            learn(&mut size, came(octets)).unwrap();
            let mut tried = 0;
            loop {
                let octets = size.wanted(now);
                if octets == size.octets() {
                    break;
                }
                tried += 1;
                size.sent(&Piece {
                    start: tried,
                    octets: octets.into(),
                    last: false,
                    again: false,
                });
                assert_eq!((size.probe(), size.wanted(now)), (Some(tried), size.octets()));
                let fate = if octets > passes {
                    Fate::Missing
                } else {
                    Fate::Arrived
                };
                size.learn(now, PATIENCE, News::NONE, fate).unwrap();
            }
            let known = size.octets();
            assert!(
                tried <= 15 && known <= passes && passes < known + GRAIN,
                "{passes}: {known}"
            );
            assert_eq!(size.wanted(now + Duration::from_ms(599_000)), known);
            assert_eq!(size.wanted(now + Duration::from_ms(600_000)), 1_448);
        }
    }
}
