//! Table II: the queue of received frames between the interrupt and the scheduler, with and without the filter that
//! knows the state of the interval; and whether an ATIM gets through it before the window ends.

use std::collections::VecDeque;

use frame::{Band, Rate, ppdu_us};
use sim::rng::{Cause, Stream, mix3};

use super::air::{Air, Bursts, INTERVAL_NS};

/// Frames that the queue holds (published source).
const ROOM: usize = 8;
/// Before each TBTT nothing is taken from the queue for so long: 8 TU (published source).
const PRE_TBTT_NS: u64 = 8_192_000;
/// ATIM windows, ms.
pub const WINDOWS_MS: [u64; 3] = [10, 20, 40];

/// Beacon intervals with the same networks around. Their phases hardly move in hours, and most of what is late is late for where
/// they are: so they are drawn anew often. The queue begins empty, and forgets that within one interval.
pub const TOGETHER: u64 = 20;

/// What the scheduler takes for a frame is the sum of so many exponential parts: a spread of a third of the mean. Of 1, 2,
/// 3 and 10 parts this is what meets the fitted row best.
const PARTS: u32 = 10;

/// What is fitted to the row of Table II without filter, and to nothing else.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Data around.
    pub bursts: Bursts,
    /// What the scheduler takes for one frame on average, ns.
    pub service_ns: f64,
}

impl Load {
    /// What meets the three numbers of the row without filter best (least squares of their logarithms, by search).
    pub const FITTED: Load = Load {
        bursts: Bursts {
            gap_ns: 170.2e6,
            frames: 3.445,
            kbps: 24_000,
        },
        service_ns: 2.67e6,
    };
}

/// What the scheduler takes for one frame.
pub fn service_ns(mean: f64, dice: &mut Stream) -> u64 {
    let part = mean / f64::from(PARTS);
    (0..PARTS).map(|_| dice.exponential(part)).sum::<f64>() as u64
}

/// What happened to the frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// Frames that the card passed on, and those for which there was no room.
    pub frames: u64,
    /// See `frames`.
    pub lost: u64,
    /// ATIMs that the queue took: an ATIM that is lost is not late, or as many would be late in a window of 40 ms as are lost.
    pub atims: u64,
    /// ATIMs that the scheduler had not dealt with when a window of [`WINDOWS_MS`] ended.
    pub late: [u64; 3],
    /// The squares of `late` of each [`TOGETHER`] intervals, and how many of these there were.
    pub late_squares: [u64; 3],
    /// See `late_squares`.
    pub pieces: u64,
}

impl Fate {
    /// Adds what happened elsewhere.
    pub fn merge(&mut self, other: &Fate) {
        self.frames += other.frames;
        self.lost += other.lost;
        self.atims += other.atims;
        self.late.iter_mut().zip(other.late).for_each(|(a, b)| *a += b);
        let squares = self.late_squares.iter_mut().zip(other.late_squares);
        squares.for_each(|(a, b)| *a += b);
        self.pieces += other.pieces;
    }

    /// Share of late ATIMs by the window of this number, and its standard error. The phases of others are the same within a piece, so
    /// that late ones come together: what counts is how pieces differ.
    pub fn late_share(&self, window: usize) -> Option<(f64, f64)> {
        let (late, pieces) = (self.late[window] as f64, self.pieces as f64);
        let squares = self.late_squares[window] as f64 - late * late / pieces;
        let error = (squares.max(0.0) * pieces / (pieces - 1.0)).sqrt();
        (self.pieces > 1 && self.atims > 0).then(|| (late / self.atims as f64, error / self.atims as f64))
    }
}

/// From the TBTT to the end of an ATIM: beacon after its delay, then DIFS, backoff and the ATIM, all at 1 Mb/s of 802.11b.
fn atim_after(dice: &mut Stream) -> u64 {
    let us = |octets| u64::from(ppdu_us(Rate::DSSS_1, octets, Band::Ghz2_4));
    let slots = dice.below(2 * 31 + 1) + dice.below(32);
    1_000 * (20 * slots + us(80) + 50 + us(28))
}

struct Scheduler {
    dice: Stream,
    service_ns: f64,
    /// Frames that wait, the one that is dealt with among them: the end of the window it must meet, if it is an ATIM.
    waiting: VecDeque<Option<u64>>,
    /// When the first is done.
    done: u64,
    fate: Fate,
}

impl Scheduler {
    fn service(&mut self, from: u64) {
        // the scheduler rests before a TBTT
        let into = from % INTERVAL_NS;
        let begin = if into >= INTERVAL_NS - PRE_TBTT_NS {
            from - into + INTERVAL_NS
        } else {
            from
        };
        self.done = begin + service_ns(self.service_ns, &mut self.dice);
    }

    fn run_until(&mut self, now: u64) {
        while !self.waiting.is_empty() && self.done <= now {
            if let Some(Some(tbtt)) = self.waiting.pop_front() {
                self.judge(tbtt, self.done);
            }
            let at = self.done;
            if !self.waiting.is_empty() {
                self.service(at);
            }
        }
    }

    fn judge(&mut self, tbtt: u64, done: u64) {
        for (late, window) in self.fate.late.iter_mut().zip(WINDOWS_MS) {
            *late += u64::from(done > tbtt + window * 1_000_000);
        }
    }

    fn arrives(&mut self, now: u64, atim: Option<u64>) {
        self.run_until(now);
        self.fate.frames += 1;
        if self.waiting.len() == ROOM {
            self.fate.lost += 1;
            return;
        }
        self.fate.atims += u64::from(atim.is_some());
        self.waiting.push_back(atim);
        if self.waiting.len() == 1 {
            self.service(now);
        }
    }
}

/// So many times [`TOGETHER`] beacon intervals; see `piece`.
pub fn run(load: &Load, networks: u64, filter: Option<u64>, pieces: u64, seed: u64) -> Fate {
    let mut all = Fate::default();
    for n in 0..pieces {
        let mut fate = piece(load, networks, filter, TOGETHER, mix3(seed, 4, n));
        fate.late_squares = fate.late.map(|late| late * late);
        fate.pieces = 1;
        all.merge(&fate);
    }
    all
}

/// So many beacon intervals with one ATIM each. `filter`: the ATIM window in ms of a station that filters; in it only
/// management passes, and outside of it neither beacons nor data of others.
fn piece(load: &Load, networks: u64, filter: Option<u64>, intervals: u64, seed: u64) -> Fate {
    let mut dice = Stream::new(seed, 1, Cause::Protocol);
    let mut scheduler = Scheduler {
        dice: Stream::new(seed, 2, Cause::Host),
        service_ns: load.service_ns,
        waiting: VecDeque::with_capacity(ROOM),
        done: 0,
        fate: Fate::default(),
    };
    let mut air = Air::new(load.bursts, networks, seed).peekable();
    for interval in 1..=intervals {
        let tbtt = interval * INTERVAL_NS;
        let atim = tbtt + atim_after(&mut dice);
        let mut announced = false;
        while let Some(heard) = air.next_if(|h| h.at < tbtt + INTERVAL_NS / 2) {
            if !announced && heard.at >= atim {
                scheduler.arrives(atim, Some(tbtt));
                announced = true;
            }
            let in_window = |ms: u64| heard.at % INTERVAL_NS < ms * 1_000_000 && heard.at >= INTERVAL_NS;
            if filter.is_none_or(|ms| in_window(ms) && heard.is_beacon) {
                scheduler.arrives(heard.at, None);
            }
        }
        if !announced {
            scheduler.arrives(atim, Some(tbtt));
        }
    }
    scheduler.run_until(u64::MAX);
    scheduler.fate
}
