//! The sending end of a stream: the octets that are not acknowledged yet, and what is known of each packet.

use super::super::wire::MAX_DATA_OCTETS;
use super::ring::Ring;
use super::told::{Fate, News, Sent, Tally, Watch};
use radio::{Duration, Instant};

/// A packet to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) struct Piece {
    pub start: u64,
    pub octets: usize,
    pub last: bool,
    /// It was sent before.
    pub again: bool,
}

/// What an acknowledgement was good for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in super::super) struct Acknowledged {
    /// Numbers that it acknowledges for the first time.
    pub octets: u64,
    /// Since the last packet of them was sent, if that was sent once only.
    pub age: Option<Duration>,
    /// One of them was sent again: then that may be what has come last.
    pub again: bool,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(in super::super) struct Outbox<O, R> {
    ring: Ring<O>,
    records: R,
    /// The oldest record, and how many there are.
    head: usize,
    count: usize,
    /// All before is acknowledged; the end of the stream counts as one more.
    acknowledged: u64,
    /// All before was sent.
    sent: u64,
    /// All before was written.
    written: u64,
    finished: bool,
    end_sent: bool,
    missing: usize,
    watch: Watch,
    /// In doubt the next long packet goes short.
    short_next: bool,
    news: News,
    tally: Tally,
}

impl<O: AsRef<[u8]> + AsMut<[u8]>, R: AsRef<[Sent]> + AsMut<[Sent]>> Outbox<O, R> {
    pub fn new(store: O, records: R) -> Self {
        Outbox {
            ring: Ring::new(store),
            records,
            head: 0,
            count: 0,
            acknowledged: 0,
            sent: 0,
            written: 0,
            finished: false,
            end_sent: false,
            missing: 0,
            watch: Watch {
                octets: MAX_DATA_OCTETS as u16,
                over: MAX_DATA_OCTETS as u16,
                doubts: false,
                since: Instant::ZERO,
            },
            short_next: true,
            news: News::NONE,
            tally: Tally::NONE,
        }
    }

    /// From now on packets that are sent again go in pieces of at most `octets`, and those of more than `over` count as
    /// long.
    pub fn cut(&mut self, now: Instant, octets: u16, over: u16) {
        self.watch = Watch {
            octets,
            over,
            doubts: false,
            since: now,
        };
        self.news = News::NONE;
    }

    /// In doubt every other long packet goes short.
    pub fn doubt(&mut self, doubts: bool) {
        self.watch.doubts = doubts;
    }

    /// What was told since it was last asked.
    pub fn news(&mut self) -> News {
        core::mem::replace(&mut self.news, News::NONE)
    }

    /// What feedback has told of packets since it was last asked.
    pub fn tally(&mut self) -> Tally {
        let Tally { came, maybe, .. } = self.tally;
        let none = Tally {
            came,
            maybe,
            ..Tally::NONE
        };
        core::mem::replace(&mut self.tally, none)
    }

    /// What is known of the packet that was first sent with the octet at `start`.
    pub fn fate(&mut self, start: u64) -> Fate {
        self.iter_mut()
            .find(|r| r.start == start && !r.last)
            .map_or(Fate::Arrived, |r| r.fate)
    }

    /// Takes octets, as many as there is room for.
    pub fn write(&mut self, octets: &[u8]) -> usize {
        if self.finished {
            return 0;
        }
        let room = self.ring.capacity() as u64 - (self.written - self.acknowledged);
        let n = octets.len().min(room as usize);
        self.ring.put(self.written, &octets[..n]);
        self.written += n as u64;
        n
    }

    /// Octets that can be on the way.
    pub fn capacity(&self) -> u64 {
        self.ring.capacity() as u64
    }

    /// Nothing more will be written.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// True if the stream, its end included, is acknowledged.
    pub fn is_done(&self) -> bool {
        self.end_sent && self.acknowledged == self.written + 1
    }

    /// The number that follows all that was sent.
    pub fn next(&self) -> u64 {
        self.sent + u64::from(self.end_sent)
    }

    /// The oldest number that is not acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// True if something was sent and is not acknowledged.
    pub fn is_waiting(&self) -> bool {
        self.count > 0
    }

    /// True if there is something to send now.
    pub fn has_more(&self) -> bool {
        self.missing > 0
            || (self.count < self.records.as_ref().len() && (self.sent < self.written || self.may_end()))
    }

    /// The end goes out when everything before it has arrived.
    fn may_end(&self) -> bool {
        self.finished && !self.end_sent && self.acknowledged == self.written
    }

    /// The next packet: what is missing first, oldest first, then at most `most` new octets, then the end. What is missing
    /// and longer than packets may be by now goes in pieces.
    pub fn take(&mut self, now: Instant, most: usize) -> Option<Piece> {
        if !self.has_more() {
            return None;
        }
        let Watch {
            octets: whole,
            over,
            doubts,
            ..
        } = self.watch;
        if self.missing > 0 {
            let (acknowledged, in_turn) = (self.acknowledged, self.short_next);
            let record = self.iter_mut().find(|r| r.fate == Fate::Missing)?;
            // what is behind the newest acknowledgement has arrived
            let from = acknowledged.saturating_sub(record.start).max(record.from.into()) as u16;
            let left = record.octets - from;
            let mut first_turn = false;
            if !record.begun {
                let takes_turn = doubts && left > over;
                first_turn = takes_turn && record.short.is_none();
                // one that has had a turn has another one each time, so that none goes whole for ever
                record.short = takes_turn.then_some(record.short.map_or(in_turn, |short| !short));
                record.piece = 0;
            }
            let is_short = record.short == Some(true);
            let octets = left.min(if is_short { over } else { whole });
            let piece = Piece {
                start: record.start + u64::from(from),
                octets: usize::from(octets),
                last: record.last,
                again: true,
            };
            (record.again, record.begun, record.at) = (true, true, now);
            record.piece = record.piece.max(octets);
            record.from = from + octets;
            if record.from == record.octets {
                record.fate = Fate::Unknown;
                self.missing -= 1;
            }
            self.short_next ^= first_turn;
            return Some(piece);
        }
        let most = (self.written - self.sent).min(most.min(MAX_DATA_OCTETS) as u64) as u16;
        let takes_turn = doubts && most > over;
        let short = takes_turn.then_some(self.short_next);
        self.short_next ^= takes_turn;
        let octets = if short == Some(true) { over } else { most };
        let record = Sent {
            start: self.sent,
            octets,
            piece: octets,
            last: octets == 0,
            short,
            at: now,
            ..Sent::default()
        };
        let records = self.records.as_mut();
        let at = (self.head + self.count) % records.len();
        records[at] = record;
        self.count += 1;
        self.sent += u64::from(octets);
        self.end_sent |= record.last;
        Some(Piece {
            start: record.start,
            octets: usize::from(octets),
            last: record.last,
            again: false,
        })
    }

    /// The octets of a piece.
    pub fn copy(&self, piece: &Piece, out: &mut [u8]) {
        self.ring.get(piece.start, &mut out[..piece.octets]);
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sent> {
        let (head, count) = (self.head, self.count);
        let (tail, front) = self.records.as_mut().split_at_mut(head);
        front.iter_mut().chain(tail).take(count)
    }

    /// Everything before `offset` has arrived. Beyond what was sent it says nothing. What was sent again less than `guard` ago may have come
    /// the first time.
    pub fn acknowledge(&mut self, now: Instant, offset: u64, guard: Duration) -> Acknowledged {
        let mut done = Acknowledged::default();
        if offset <= self.acknowledged || offset > self.next() {
            return done;
        }
        done.octets = offset - self.acknowledged;
        self.acknowledged = offset;
        let records = self.records.as_mut();
        while self.count > 0 && records[self.head].end() <= offset {
            let r = records[self.head];
            if r.fate != Fate::Arrived {
                self.watch.came(&r, &mut self.news);
            }
            self.missing -= usize::from(r.fate == Fate::Missing);
            self.tally.add(r.arrives(now, guard));
            done.again |= r.again;
            done.age = (!r.again).then(|| now.since(r.at));
            self.head = (self.head + 1) % records.len();
            self.count -= 1;
        }
        done
    }

    /// The receiver misses what lies between two offsets. What [may still be on its way](Sent::is_missed) is left alone.
    pub fn miss(&mut self, now: Instant, between: (u64, u64), guard: Duration) {
        let (watch, came, mut news, mut found) = (self.watch, self.tally.came, self.news, 0);
        for r in self
            .iter_mut()
            .filter(|r| r.start < between.1 && between.0 < r.end())
        {
            if r.fate != Fate::Missing && r.is_missed(now, guard, came) {
                watch.lost(r, &mut news);
                (r.fate, r.begun) = (Fate::Missing, false);
                r.from = between.0.saturating_sub(r.start) as u16;
                found += 1;
            }
        }
        self.news = news;
        self.tally.lost += found as u32;
        self.missing += found;
    }

    /// What lies between two offsets has arrived, as [acknowledged](Self::acknowledge).
    pub fn arrive(&mut self, now: Instant, between: (u64, u64), guard: Duration) {
        let (watch, mut tally, mut news, mut found) = (self.watch, self.tally, self.news, 0);
        for r in self
            .iter_mut()
            .filter(|r| between.0 <= r.start && r.end() <= between.1)
        {
            if r.fate != Fate::Arrived {
                watch.came(r, &mut news);
            }
            found += usize::from(r.fate == Fate::Missing);
            tally.add(r.arrives(now, guard));
            r.fate = Fate::Arrived;
        }
        (self.tally, self.news) = (tally, news);
        self.missing -= found;
    }

    /// Everything that is not acknowledged is to be sent again, but for what has arrived behind a hole and what
    /// [may still be on its way](Sent::is_lost). What was sent after `heard` is lost, since nothing has come since then. The rest may
    /// have found no room.
    pub fn miss_all(&mut self, now: Instant, guard: Duration, heard: Instant) {
        let (watch, came, mut news) = (self.watch, self.tally.came, self.news);
        let (mut found, mut lost) = (0, 0);
        for r in self.iter_mut() {
            if r.fate == Fate::Unknown && r.is_lost(now, guard, came) {
                if r.at > heard {
                    watch.lost(r, &mut news);
                    lost += 1;
                }
                (r.fate, r.begun, r.from) = (Fate::Missing, false, 0);
                found += 1;
            }
        }
        self.news = news;
        self.tally.lost += lost;
        self.missing += found;
    }
}

#[cfg(test)]
mod tests {
    use super::super::told::Losses;
    use super::*;
    use std::vec::Vec;

    const NO: Duration = Duration::ZERO;
    const GUARD: Duration = Duration::from_ms(6);

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn outbox(octets: usize, records: usize) -> Outbox<Vec<u8>, Vec<Sent>> {
        Outbox::new(std::vec![0; octets], std::vec![Sent::default(); records])
    }

    fn starts(o: &mut Outbox<Vec<u8>, Vec<Sent>>, ms: u64) -> Vec<(u64, bool)> {
        core::iter::from_fn(|| o.take(at(ms), 2))
            .map(|p| (p.start, p.again))
            .collect()
    }

    #[test]
    fn missing_before_new() {
        let mut o = outbox(12, 4);
        assert_eq!(o.write(b"abcdefghijklmn"), 12);
        let first: Vec<_> = (0..4).map(|n| (n * 2, false)).collect();
        assert_eq!(starts(&mut o, 0), first, "no more records than that");
        o.miss(at(5), (2, 4), Duration::from_ms(6));
        assert!(!o.has_more(), "too young");
        o.miss(at(6), (2, 4), Duration::from_ms(6));
        o.miss(at(6), (2, 4), Duration::from_ms(6));
        let done = o.acknowledge(at(7), 2, NO);
        assert_eq!((done.octets, done.age), (2, Some(Duration::from_ms(7))));
        assert_eq!(starts(&mut o, 7), [(2, true), (8, false)]);
        o.arrive(at(8), (4, 8), NO);
        o.miss_all(at(8), NO, at(8));
        assert_eq!(starts(&mut o, 8), [(2, true), (8, true)]);
        let done = o.acknowledge(at(9), 10, NO);
        assert_eq!((done.octets, done.age), (8, None), "sent twice");
        assert_eq!(
            o.acknowledge(at(9), 11, NO),
            Acknowledged::default(),
            "not sent yet"
        );
    }

    /// What was sent again may wait behind a queue; what is sent later comes later.
    #[test]
    fn sent_again_it_is_missed_when_something_later_has_come() {
        let sent_again = || {
            let mut o = outbox(14, 8);
            o.write(b"abcd");
            assert_eq!(starts(&mut o, 0), [(0, false), (2, false)]);
            o.arrive(at(6), (2, 4), GUARD);
            o.miss(at(6), (0, 2), GUARD);
            assert_eq!(starts(&mut o, 10), [(0, true)]);
            o.write(b"ef");
            assert_eq!(starts(&mut o, 11), [(4, false)]);
            o
        };
        let missed = |o: &mut Outbox<Vec<u8>, Vec<Sent>>, ms| {
            o.miss(at(ms), (0, 2), GUARD);
            o.has_more()
        };
        let mut o = sent_again();
        assert!(
            !missed(&mut o, 18) && missed(&mut o, 19),
            "one and a half of the guard"
        );
        let mut o = sent_again();
        o.arrive(at(14), (4, 6), GUARD);
        assert!(!missed(&mut o, 15) && missed(&mut o, 16), "the guard");
        // what was sent twice may have come the first time
        for (ms, lost) in [(25, false), (26, true)] {
            let mut o = sent_again();
            assert!(missed(&mut o, 19));
            assert_eq!(starts(&mut o, 19), [(0, true)]);
            o.miss(at(20), (4, 6), GUARD);
            assert_eq!(starts(&mut o, 20), [(4, true)]);
            o.arrive(at(ms), (4, 6), GUARD);
            assert_eq!(missed(&mut o, 26), lost, "{ms}");
        }
    }

    /// What is too long by now goes in pieces, from its first hole on; what was acknowledged of it does not.
    #[test]
    fn long_packets_are_cut() {
        let mut o = outbox(20, 4);
        o.write(b"abcdefghijklmnopqrst");
        let pieces = |o: &mut Outbox<Vec<u8>, Vec<Sent>>, ms| -> Vec<(u64, usize)> {
            core::iter::from_fn(|| o.take(at(ms), 10))
                .map(|p| (p.start, p.octets))
                .collect()
        };
        assert_eq!(pieces(&mut o, 1), [(0, 10), (10, 10)]);
        o.cut(at(2), 4, 0);
        o.miss_all(at(3), NO, at(0));
        assert_eq!(o.news(), News::NONE, "sent before the cut");
        assert_eq!(
            pieces(&mut o, 4),
            [(0, 4), (4, 4), (8, 2), (10, 4), (14, 4), (18, 2)]
        );
        o.acknowledge(at(5), 5, NO);
        o.miss(at(5), (8, 10), NO);
        o.miss(at(5), (14, 18), NO);
        let news = o.news();
        assert_eq!((news.came, news.long.packets, news.long.least), (0, 2, 4));
        assert_eq!(news.lost, Losses::NONE, "everything is long");
        assert_eq!(pieces(&mut o, 6), [(8, 2), (14, 4), (18, 2)]);
        o.miss(at(7), (5, 10), NO);
        assert_eq!(o.fate(0), Fate::Missing);
        assert_eq!(o.take(at(8), 4).map(|p| (p.start, p.octets)), Some((5, 4)));
        o.acknowledge(at(9), 20, NO);
        assert_eq!((o.news().came, o.missing, o.fate(0)), (4, 0, Fate::Arrived));
        // a longer one is tried: it says nothing of those that are shorter
        o.write(b"abcdef");
        assert_eq!(pieces(&mut o, 10), [(20, 6)]);
        o.miss_all(at(11), NO, at(0));
        assert_eq!((o.news(), o.fate(20)), (News::NONE, Fate::Missing));
    }

    /// In doubt long packets take turns: whole, and in short pieces. What came in short pieces is counted as such, and what
    /// is left of one is not long.
    #[test]
    fn in_doubt_every_other_one_goes_short() {
        let mut o = outbox(64, 8);
        o.write(&[7; 64]);
        let take = |o: &mut Outbox<Vec<u8>, Vec<Sent>>, ms| o.take(at(ms), 10).map(|p| (p.start, p.octets));
        o.cut(at(0), 10, 4);
        assert_eq!(take(&mut o, 1), Some((0, 10)));
        o.doubt(true);
        assert_eq!(
            [2, 3].map(|ms| take(&mut o, ms)),
            [Some((10, 4)), Some((14, 10))],
            "new ones"
        );
        o.miss_all(at(4), NO, at(0));
        let news = o.news();
        assert_eq!((news.lost.packets, news.lost.least), (1, 4));
        assert_eq!((news.long.packets, news.long.least), (2, 10));
        // the middle one is short anyhow, and takes no turn; the last one has its second
        assert_eq!(
            [5; 7].map(|ms| take(&mut o, ms).unwrap()),
            [(0, 4), (4, 4), (8, 2), (10, 4), (14, 4), (18, 4), (22, 2)]
        );
        o.miss(at(6), (4, 10), NO);
        o.arrive(at(8), (14, 24), NO);
        let news = o.news();
        assert_eq!((news.came, news.arrived, news.short), (4, 1, 1));
        assert_eq!((news.lost.packets, news.long.packets), (1, 0), "it went short");
        // the rest of the first one is long, and its second turn is a whole one's
        assert_eq!(take(&mut o, 7), Some((4, 6)));
        o.acknowledge(at(9), 10, NO);
        let news = o.news();
        assert_eq!((news.came, news.arrived, news.short), (6, 1, 0));
    }

    #[test]
    fn the_end_comes_last() {
        let mut o = outbox(4, 4);
        o.write(b"ab");
        o.finish();
        assert_eq!(o.write(b"c"), 0);
        assert_eq!(starts(&mut o, 0), [(0, false)], "first all must have arrived");
        o.acknowledge(at(1), 2, NO);
        let end = o.take(at(1), 2).unwrap();
        assert_eq!((end.start, end.octets, end.last), (2, 0, true));
        assert!(!o.is_done() && o.next() == 3);
        o.miss_all(at(2), NO, at(2));
        assert!(o.take(at(2), 2).is_some_and(|p| p.last && p.again));
        o.acknowledge(at(3), 3, NO);
        assert!(o.is_done() && !o.is_waiting() && !o.has_more());
    }

    #[test]
    fn octets_stay_until_they_are_acknowledged() {
        let mut o = outbox(4, 8);
        let mut got = Vec::new();
        for round in 0..10u8 {
            assert_eq!(o.write(&[round, round + 100, 7, 8, 9]), 4);
            while let Some(p) = o.take(at(0), 3) {
                let mut out = [0; 3];
                o.copy(&p, &mut out);
                got.extend_from_slice(&out[..p.octets]);
            }
            assert_eq!(o.write(&[1]), 0, "full");
            o.acknowledge(at(0), o.next(), NO);
        }
        let all: Vec<u8> = (0..10).flat_map(|n| [n, n + 100, 7, 8]).collect();
        assert_eq!(got, all);
    }
}
