//! For tests of transports: two ends and a network between them, in virtual time. All chance comes from one seed.
//!
//! Each direction is a queue with a rate, which is a hop of ATP, and behind it a wire that delays, loses, repeats and
//! damages. This is not a model of a radio; the simulator has the physics.

use super::hop::{Hop, HopConfig};
use super::{Event, Path, State, Transport};
use crate::testing::Dice;
use radio::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::vec::Vec;

/// One direction of the network.
#[derive(Clone, Debug)]
pub struct Link {
    /// Time of each packet on the bottleneck.
    pub service_us: RangeInclusive<u64>,
    /// Packets that wait at most; more are lost.
    pub queue: usize,
    /// Delay behind the bottleneck. A wide range reorders.
    pub delay_us: RangeInclusive<u64>,
    /// Of 1000 packets so many are lost.
    pub loss: u64,
    /// So many arrive twice.
    pub repeat: u64,
    /// So many arrive with octets changed.
    pub damage: u64,
    /// Nothing passes in this stretch of time.
    pub cut_us: RangeInclusive<u64>,
    /// In this stretch everything takes [`LONG_WAY_US`] longer.
    pub long_us: RangeInclusive<u64>,
    /// In this stretch only datagrams of up to `narrow_octets` pass, and nobody says so.
    pub narrow_us: RangeInclusive<u64>,
    /// How long those are.
    pub narrow_octets: usize,
    /// The bottleneck tells its delay.
    pub measured: bool,
    /// A hop before it tells this delay, whatever it is: 0 for none.
    pub told_us: u32,
}

/// By how much the delay of a link jumps.
pub const LONG_WAY_US: u64 = 3_000_000;

impl Link {
    /// A packet each 2 ms, 50 in the queue, 1 ms of delay, and nothing bad.
    pub fn good() -> Link {
        Link {
            service_us: 2_000..=2_000,
            queue: 50,
            delay_us: 1_000..=1_000,
            loss: 0,
            repeat: 0,
            damage: 0,
            cut_us: u64::MAX..=u64::MAX,
            long_us: u64::MAX..=u64::MAX,
            narrow_us: u64::MAX..=u64::MAX,
            narrow_octets: 576,
            measured: true,
            told_us: 0,
        }
    }
}

/// What the application of one end does: writes a stream as fast as it can, ends it, and reads.
#[derive(Clone, Debug)]
pub struct Work {
    /// Octets to write.
    pub octets: usize,
    /// Time from one read to the next, and octets for each; `None` reads everything at once.
    pub reads: Option<(u64, usize)>,
}

/// The octet at a place of the stream of end `end`.
fn octet(end: usize, at: usize) -> u8 {
    (at as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(9 + end as u32) as u8
}

struct Side<T> {
    transport: T,
    link: Link,
    hop: Hop,
    /// Packets in the queue: when each came in.
    waiting: VecDeque<(u64, Vec<u8>)>,
    work: Work,
    written: usize,
    finished: bool,
    read: usize,
    read_at: u64,
    /// Its clock is ahead by so much.
    ahead_us: u64,
    /// Timer calls without time going on.
    hurried: u32,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Ev {
    Served(usize),
    Arrives(usize, Vec<u8>),
}

/// See the [module](self).
pub struct Network<T> {
    sides: [Side<T>; 2],
    events: BTreeMap<(u64, u64), Ev>,
    order: u64,
    dice: Dice,
    now_us: u64,
    /// Datagrams that were sent by each end.
    pub datagrams: [u64; 2],
    /// When each datagram of data reached the queue of end 0, in microseconds.
    pub sent_us: Vec<u64>,
}

struct Sent<'a>(&'a mut Vec<Vec<u8>>);

impl Path for Sent<'_> {
    fn request(&mut self, datagram: &[u8]) {
        self.0.push(datagram.to_vec());
    }
}

impl<T: Transport> Network<T> {
    /// Two ends; each with the link away from it and with what its application does. End 0 is started first.
    pub fn new(seed: u64, ends: [(T, Link, Work); 2]) -> Network<T> {
        let sides = ends.map(|(transport, link, work)| Side {
            transport,
            link,
            hop: Hop::new(&HopConfig::default()),
            waiting: VecDeque::new(),
            work,
            written: 0,
            finished: false,
            read: 0,
            read_at: 0,
            ahead_us: 0,
            hurried: 0,
        });
        let mut network = Network {
            sides,
            events: BTreeMap::new(),
            order: 0,
            dice: Dice::new(seed),
            now_us: 0,
            datagrams: [0; 2],
            sent_us: Vec::new(),
        };
        for side in &mut network.sides {
            // something was sent before, so that the delay is known
            side.hop
                .sample(Instant::ZERO, Duration::ZERO, Duration::from_us(500));
        }
        network.handle(1, Event::Start);
        network.handle(0, Event::Start);
        network
    }

    /// The transport of an end.
    pub fn end(&self, end: usize) -> &T {
        &self.sides[end].transport
    }

    /// The same, to do something to it. Its deadline is read anew.
    pub fn end_mut(&mut self, end: usize) -> &mut T {
        &mut self.sides[end].transport
    }

    /// Octets of its peer that an end has read, all of them right.
    pub fn read(&self, end: usize) -> usize {
        self.sides[end].read
    }

    /// Virtual time in microseconds.
    pub fn now_us(&self) -> u64 {
        self.now_us
    }

    /// Puts a datagram before an end, as if it had come over the network.
    pub fn inject(&mut self, end: usize, datagram: &[u8]) {
        self.handle(end, Event::Indication(datagram));
    }

    /// Nothing passes the links away from the two ends in these stretches of time.
    pub fn cut(&mut self, stretches: [RangeInclusive<u64>; 2]) {
        for (side, cut_us) in self.sides.iter_mut().zip(stretches) {
            side.link.cut_us = cut_us;
        }
    }

    /// The clock of an end jumps forward.
    pub fn jump(&mut self, end: usize, us: u64) {
        self.sides[end].ahead_us += us;
    }

    fn at(&mut self, us: u64, ev: Ev) {
        self.order += 1;
        self.events.insert((us, self.order), ev);
    }

    fn handle(&mut self, end: usize, event: Event<'_>) {
        let now = Instant::from_us(self.now_us + self.sides[end].ahead_us);
        let mut sent = Vec::new();
        self.sides[end].transport.handle(now, event, &mut Sent(&mut sent));
        assert!(sent.len() <= 3, "the number of datagrams in one call is bounded");
        for datagram in sent {
            self.datagrams[end] += 1;
            self.send(end, datagram);
        }
        self.applications();
    }

    fn send(&mut self, end: usize, mut datagram: Vec<u8>) {
        let now = Instant::from_us(self.now_us);
        if end == 0 && datagram.len() > super::wire::HEADER_OCTETS {
            self.sent_us.push(self.now_us);
        }
        let side = &mut self.sides[end];
        if side.waiting.len() > side.link.queue {
            return;
        }
        if side.link.measured {
            side.hop.pass(now, &mut datagram);
        }
        if side.link.told_us > 0 {
            super::wire::pass(&mut datagram, |_| side.link.told_us);
        }
        side.waiting.push_back((self.now_us, datagram));
        if side.waiting.len() == 1 {
            self.serve(end);
        }
    }

    fn serve(&mut self, end: usize) {
        let us = self.dice.within(self.sides[end].link.service_us.clone());
        self.at(self.now_us + us, Ev::Served(end));
    }

    fn served(&mut self, end: usize) {
        let now = Instant::from_us(self.now_us);
        let side = &mut self.sides[end];
        let (since, datagram) = side.waiting.pop_front().expect("one was served");
        let spent = Duration::from_us(self.now_us - since);
        side.hop.sample(now, spent, Duration::ZERO);
        let more = !side.waiting.is_empty();
        let link = side.link.clone();
        if more {
            self.serve(end);
        }
        let narrow = link.narrow_us.contains(&self.now_us) && datagram.len() > link.narrow_octets;
        if narrow || link.cut_us.contains(&self.now_us) || self.dice.chance(link.loss) {
            return;
        }
        let copies = if self.dice.chance(link.repeat) { 2 } else { 1 };
        for _ in 0..copies {
            let mut datagram = datagram.clone();
            if self.dice.chance(link.damage) {
                // what a checksum would not find is not the transport's work: the version shows the damage
                let at = self.dice.within(0..=datagram.len() as u64 - 1) as usize;
                datagram[at] ^= 1 << self.dice.within(0..=7);
                datagram[1] = 0xff;
            }
            let long = u64::from(link.long_us.contains(&self.now_us)) * LONG_WAY_US;
            let us = self.dice.within(link.delay_us.clone()) + long;
            self.at(self.now_us + us, Ev::Arrives(1 - end, datagram));
        }
    }

    fn applications(&mut self) {
        for (end, side) in self.sides.iter_mut().enumerate() {
            let now = Instant::from_us(self.now_us + side.ahead_us);
            while side.written < side.work.octets {
                let n = (side.work.octets - side.written).min(777);
                let piece: Vec<u8> = (0..n).map(|i| octet(end, side.written + i)).collect();
                let taken = side.transport.write(now, &piece);
                side.written += taken;
                if taken < n {
                    break;
                }
            }
            if side.written == side.work.octets && !side.finished {
                side.transport.finish(now);
                side.finished = true;
            }
            let (every, most) = side.work.reads.unwrap_or((0, usize::MAX));
            let mut left = most;
            while left > 0 && self.now_us >= side.read_at {
                let mut out = [0; 512];
                let n = side.transport.read(now, &mut out[..left.min(512)]);
                if n == 0 {
                    break;
                }
                for (i, got) in out[..n].iter().enumerate() {
                    assert_eq!(
                        *got,
                        octet(1 - end, side.read + i),
                        "each octet once and in order"
                    );
                }
                side.read += n;
                left -= n;
            }
            if every > 0 && self.now_us >= side.read_at {
                side.read_at = self.now_us + every;
            }
        }
    }

    /// Runs up to an instant, or until both ends are over and all is read. True in the second case.
    pub fn run_until(&mut self, until_us: u64) -> bool {
        loop {
            let failed = matches!(self.sides[0].transport.state(), State::Failed(_));
            let over = self.sides.iter().all(|s| {
                let state = s.transport.state();
                let lingers = matches!(state, State::Lingering);
                (lingers && s.transport.is_exhausted())
                    || state.is_over()
                    || (state == State::Listening && failed)
            });
            let waits = |s: &Side<T>| s.work.reads.is_some() && !s.transport.is_exhausted();
            let reading = self
                .sides
                .iter()
                .any(|s| waits(s) && matches!(s.transport.state(), State::Lingering | State::Closed));
            if over && !reading {
                return true;
            }
            let timer = |s: &Side<T>| {
                let own = s.transport.deadline()?.as_ns().div_ceil(1_000);
                Some(own.saturating_sub(s.ahead_us))
            };
            let reads = self.sides.iter().filter(|s| waits(s)).map(|s| s.read_at).min();
            let event = self.events.first_key_value().map(|(at, _)| at.0);
            let timers = self.sides.iter().filter_map(timer).min();
            let Some(at) = [event, timers, reads].into_iter().flatten().min() else {
                return over;
            };
            if at > until_us {
                self.now_us = until_us;
                return false;
            }
            if at > self.now_us {
                self.sides.iter_mut().for_each(|s| s.hurried = 0);
            }
            self.now_us = self.now_us.max(at);
            if event.is_some_and(|t| t <= self.now_us) {
                let (_, ev) = self.events.pop_first().expect("just seen");
                match ev {
                    Ev::Served(end) => self.served(end),
                    Ev::Arrives(end, datagram) => self.handle(end, Event::Indication(&datagram)),
                }
                continue;
            }
            for end in 0..2 {
                if timer(&self.sides[end]).is_some_and(|t| t <= self.now_us) {
                    self.sides[end].hurried += 1;
                    assert!(self.sides[end].hurried < 100, "a timer that leads nowhere");
                    self.handle(end, Event::Timer);
                }
            }
            self.applications();
        }
    }
}
