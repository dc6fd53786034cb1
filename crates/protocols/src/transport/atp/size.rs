//! How long packets may be. A path can drop what is too long for it without a word (a *black hole*, RFC 8899, section
//! 4.3), while short packets, and so feedback, get through. That long packets are lost tells nothing by itself: a bad
//! path loses all alike. So when many were lost in a row, the sender is in doubt: every other packet goes short. It goes
//! down to [`BASE`] when short ones arrive and no long one does, and from there it tries longer packets until it knows
//! what passes.
//!
//! Nothing is added to the wire: what is tried are packets of data, and the feedback tells what became of them.

use crate::transport::stream::{Fate, Losses, News, Piece};
use crate::transport::wire::HEADER_OCTETS;
use radio::{Duration, Instant};

/// Octets of data in a packet to which the sender goes down: those of packets of 576 octets, which every host takes (RFC
/// 1122, section 3.3.2), without the headers of IPv4 and UDP. With IPv6 they have 596, of 1280 that every link carries (RFC 8200,
/// section 5).
pub const BASE: u16 = 576 - 28 - HEADER_OCTETS as u16;
/// Long packets that are lost in a row before the sender is in doubt. Of one feedback at most [`AT_ONCE`] count, so that
/// a path that is down for a moment raises none.
const LOSSES: u32 = 8;
/// Short packets that arrive in doubt, with no long one among them, before the sender goes down. They take turns, so on
/// a path that loses all alike that is a coin which falls on one side so often.
const PASSES: u32 = 8;
/// Short packets that are lost in a row before the connection ends, and not before half of its patience: a path whose
/// delay has grown seems to lose everything for a while.
const LAST_LOSSES: u32 = 24;
const AT_ONCE: u32 = 3;
/// Longer packets that are lost before their length counts as too long (`MAX_PROBES` in RFC 8899, section 5.1.2), and
/// more where others are lost, too: until so many losses have at most this chance.
const TRIES: u32 = 3;
const CHANCE: f64 = 1.0 / 256.0;
/// Packets that the share of losses is of; older ones count half.
const MEMORY: u32 = 256;
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
    /// Short packets lost since one at least as long as the shortest of them has arrived; and since when.
    lost: Losses,
    since: Option<Instant>,
    /// The same of longer ones.
    long: Losses,
    /// Short packets that have arrived in doubt.
    passed: u32,
    probe: Option<Probe>,
    /// Longer packets of one length that were lost, and the chance of that on a path that loses all alike.
    tries: u32,
    chance: f64,
    /// Packets that have arrived, and that were lost.
    told: [u32; 2],
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
            passed: 0,
            probe: None,
            tries: 0,
            chance: 1.0,
            told: [0; 2],
            raise_at: None,
        }
    }

    /// Octets of data in a packet.
    pub fn octets(&self) -> u16 {
        self.octets
    }

    /// Octets of a short one.
    pub fn short(&self) -> u16 {
        BASE.min(self.octets)
    }

    /// Whether long packets may be too long, so that every other one is to go short.
    pub fn doubts(&self) -> bool {
        self.long.packets >= LOSSES
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
        self.count(news);
        if let Some(probe) = self.probe {
            match fate {
                Fate::Unknown => {}
                Fate::Arrived => {
                    self.set(probe.octets);
                    self.proven = true;
                    return Ok(true);
                }
                Fate::Missing => self.missed(probe.octets),
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
        self.passed = if self.doubts() {
            self.passed + news.short
        } else {
            0
        };
        if self.passed >= PASSES {
            self.fails = self.octets;
            self.set(self.short());
            return Ok(true);
        }
        let since = self.since.unwrap_or(now);
        if self.lost.packets >= LAST_LOSSES && now.since(since).times(2) >= patience {
            return Err(TooNarrow);
        }
        Ok(false)
    }

    fn count(&mut self, news: News) {
        let lost = news.lost.packets + news.long.packets;
        for (all, new) in self.told.iter_mut().zip([news.arrived, lost]) {
            *all = all.saturating_add(new);
        }
        if self.told[0].saturating_add(self.told[1]) > MEMORY {
            self.told = self.told.map(|n| n / 2);
        }
    }

    /// A longer packet was lost.
    fn missed(&mut self, octets: u16) {
        let [arrived, lost] = self.told.map(f64::from);
        self.probe = None;
        self.tries += 1;
        self.chance *= lost / (arrived + lost).max(1.0);
        if self.tries >= TRIES && self.chance <= CHANCE {
            (self.fails, self.tries, self.chance) = (octets, 0, 1.0);
        }
    }

    fn set(&mut self, octets: u16) {
        *self = Size {
            octets,
            fails: self.fails,
            told: self.told,
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

    fn lost(octets: u16) -> News {
        let all = Losses {
            packets: 9,
            least: octets,
        };
        let (lost, long) = if octets > BASE {
            (Losses::NONE, all)
        } else {
            (all, Losses::NONE)
        };
        News {
            lost,
            long,
            ..News::NONE
        }
    }

    fn came(octets: u16) -> News {
        News {
            came: octets,
            arrived: 1,
            ..News::NONE
        }
    }

    /// Short ones that went in their turn.
    fn passed(short: u32) -> News {
        News {
            short,
            ..came(if short > 0 { BASE } else { 0 })
        }
    }

    fn learn(size: &mut Size, news: News) -> Result<bool, TooNarrow> {
        size.learn(at(0), PATIENCE, news, Fate::Unknown)
    }

    /// Loses packets of so many octets, once a second, until their length changes or that is not enough; tells after how
    /// many seconds. In doubt so many short ones arrive, or are lost if none does.
    fn until_changed(size: &mut Size, octets: u16, short: u32) -> Result<u64, u64> {
        let mut second = |s| {
            let News { mut lost, long, .. } = lost(octets);
            let passed = passed(if size.doubts() { short } else { 0 });
            if size.doubts() && short == 0 {
                lost.add(9, BASE);
            }
            let news = News { lost, long, ..passed };
            match size.learn(at(s * 1_000), PATIENCE, news, Fate::Unknown) {
                Ok(false) => None,
                Ok(true) => Some(Ok(s)),
                Err(TooNarrow) => Some(Err(s)),
            }
        };
        (0..).find_map(&mut second).expect("an end")
    }

    #[test]
    fn down_and_out() {
        let mut size = Size::new(1_448);
        assert_eq!((size.octets(), size.short()), (1_448, 524));
        // three feedbacks, not one, until there is doubt, and two more
        assert_eq!(until_changed(&mut size, 1_448, 4), Ok(4));
        assert_eq!((size.octets(), size.short()), (524, 524));
        assert_eq!(until_changed(&mut size, 524, 4), Err(30));
        assert_eq!(
            until_changed(&mut Size::new(1_448), 1_448, 0),
            Err(33),
            "nothing passes"
        );
        // packets that are short from the beginning, or the last of a stream
        assert_eq!(until_changed(&mut Size::new(100), 100, 4), Err(30));
        assert_eq!(until_changed(&mut Size::new(1_448), 7, 4), Err(30));
        assert_eq!(until_changed(&mut Size::new(1_448), 525, 4), Ok(4));
    }

    /// Random losses are no black hole, and the arrival of something shorter is no proof against one.
    #[test]
    fn what_arrives_counts_if_it_is_long_enough() {
        let mut size = Size::new(1_448);
        for _ in 0..100 {
            assert_eq!(learn(&mut size, lost(1_400)), Ok(false));
            assert_eq!(learn(&mut size, lost(1_400)), Ok(false));
            assert_eq!(learn(&mut size, came(1_400)), Ok(false));
        }
        for _ in 0..2 {
            assert_eq!(learn(&mut size, lost(1_400)), Ok(false));
            assert_eq!(learn(&mut size, came(1_399)), Ok(false));
        }
        assert!(!size.doubts());
        assert_eq!(learn(&mut size, lost(1_448)), Ok(false));
        assert!(size.doubts());
        // one long one among the short ones
        assert_eq!(learn(&mut size, passed(7)), Ok(false));
        assert_eq!(learn(&mut size, came(1_400)), Ok(false));
        assert!(!size.doubts());
        for _ in 0..3 {
            assert_eq!(learn(&mut size, lost(1_448)), Ok(false));
        }
        assert_eq!(learn(&mut size, passed(7)), Ok(false), "counted anew");
        assert_eq!(learn(&mut size, passed(1)), Ok(true));
        assert_eq!(size.octets(), 524);
    }

    /// Up again to what passes, with three losses for each length that does not; and all of it again after ten minutes.
    #[test]
    fn the_length_that_passes_is_found() {
        for passes in [524, 525, 1_000, 1_180, 1_300, 1_416, 1_447] {
            let mut size = Size::new(1_448);
            until_changed(&mut size, 1_448, 4).unwrap();
            size.told = [0; 2]; // of the black hole
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

    /// How many packets of one length are lost, where so many have arrived and been lost before, until it is known not to pass.
    fn tries(told: [u32; 2]) -> u64 {
        let mut size = Size::new(1_448);
        until_changed(&mut size, 1_448, 4).unwrap();
        size.told = told;
        learn(&mut size, came(524)).unwrap();
        let now = at(0);
        let octets = size.wanted(now);
        let mut tried = 0;
        while size.wanted(now) == octets {
            tried += 1;
            size.sent(&Piece {
                start: tried,
                octets: octets.into(),
                last: false,
                again: false,
            });
            size.learn(now, PATIENCE, News::NONE, Fate::Missing).unwrap();
        }
        tried
    }

    #[test]
    fn three_longer_packets_are_tried_where_nothing_else_is_lost() {
        assert_eq!(tries([0; 2]), 3);
        assert_eq!(tries([200, 2]), 3);
    }

    /// Where every other packet is lost, three longer ones that are lost are no news.
    #[test]
    fn losses_make_it_try_more_often() {
        assert_eq!(tries([100; 2]), 8);
    }
}
