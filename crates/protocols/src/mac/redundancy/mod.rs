//! Two adapters as one: every data frame goes out on both, the first copy that arrives is the frame, the other one is
//! dropped. Parallel redundancy as PRP has it (IEC 62439-3), over Wi-Fi (Cena, Scanzio, Valenzano: Wi-Red, 2016).
//!
//! The adapters should be on channels that do not disturb each other; a frame is lost only if both copies are. Sent
//! twice is paid for twice, so there are two ways to save air, and both can be chosen:
//!
//! - *reactive* duplication avoidance ([`RedundancyConfig::cancel`]): when a copy is acknowledged, the other one is
//!   taken back, wherever it is;
//! - *proactive* ([`RedundancyConfig::defer`]): the second copy waits until the first has failed, or until a time has
//!   passed. The first goes on the adapter that has done better lately ([`Primary::Better`]), so a dead adapter
//!   delays a few frames by that time and none after that.
//!
//! The protocol above sees one radio: its request is acked when the first copy is, and not acked when both have
//! failed. It chooses everything about a request but the adapter. What it sets at one of the two adapters (carrier sense,
//! reception, channel access) is set at both, but for channel and clock; the answer is that of the one it named. Copies carry a [`trailer`]; frames without one, and
//! all that are not data, pass on their way up. Beacons, null frames and the like go down on both adapters without
//! one.
//!
//! Both adapters must own the transmitter address of the frames: on Linux, give them the same.

mod both;
mod config;
pub mod discard;
pub mod trailer;

pub(super) mod pair;
#[cfg(test)]
mod tests;

use super::data::MAX_DATA_OCTETS;
use super::overlay::{Above, Access, AccessSetting, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use both::{Both, Repeated};
pub use config::{Primary, RedundancyConfig};
use discard::Discard;
use frame::mac::{FrameType, Header};
use pair::{Copies, Pair, Side, keep_best};
use radio::checked::MAX_ACTIONS;
use radio::{AckPolicy, Confirm, Event, Indication, Instant, Outcome, Protocol, Radio, Refusal};
use trailer::Trailer;

/// Calls of this overlay for one event; what is left is done at a timer, at once. Together with those that the protocol
/// above makes itself they keep law 6.
const CALLS: usize = MAX_ACTIONS / 4;

/// What a [`Redundancy`] has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RedundancyCounters {
    /// Copies that went down, by adapter.
    pub copies: [u64; 2],
    /// Of these, acknowledged, by adapter.
    pub acked: [u64; 2],
    /// Second copies that were never needed, so never sent.
    pub spared: u64,
    /// Copies that were asked back because the other one had been acknowledged.
    pub cancelled: u64,
    /// Copies that were not sent because too many others of that adapter had no confirm yet.
    pub no_room: u64,
    /// First copies that arrived, by adapter.
    pub first: [u64; 2],
    /// Later copies that arrived, and were dropped.
    pub dropped: u64,
}

/// See the [module](self). Holds `N` requests with frames of up to `L` octets, and remembers what has arrived of `S`
/// sources.
#[derive(Clone, Debug)]
pub struct Redundancy<
    P,
    const N: usize = DEFAULT_HELD,
    const L: usize = DEFAULT_HELD_OCTETS,
    const S: usize = 32,
> {
    config: RedundancyConfig,
    above: Above<P, N, L>,
    access: [AccessSetting; 2],
    pairs: [Pair; N],
    copies: [Copies<N>; 2],
    discard: Discard<S>,
    /// Of the last frame.
    sequence: Option<u16>,
    repeated: Repeated,
    counters: RedundancyCounters,
    /// Calls that may still be made in answer to this event.
    left: usize,
    /// Something was left for later.
    unfinished: bool,
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Redundancy<P, N, L, S> {
    /// Nothing sent and heard yet.
    pub fn new(config: RedundancyConfig, protocol: P) -> Self {
        Redundancy {
            access: config
                .adapters
                .map(|adapter| AccessSetting::new(config.access.map(|access| Access { adapter, ..access }))),
            config,
            above: Above::new(protocol),
            pairs: [Pair::NEW; N],
            copies: [Copies::NEW; 2],
            discard: Discard::default(),
            sequence: None,
            repeated: Repeated::default(),
            counters: RedundancyCounters::default(),
            left: CALLS,
            unfinished: false,
        }
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        self.above.protocol()
    }

    /// What it has counted.
    pub fn counters(&self) -> &RedundancyCounters {
        &self.counters
    }

    /// Which of the two adapters sends the first copy of the next frame.
    pub fn primary(&self) -> usize {
        match self.config.primary {
            Primary::Fixed(k) => usize::from(k & 1),
            Primary::Better => usize::from(self.copies[1].score > self.copies[0].score),
        }
    }

    /// What is above, and the radio that it sees.
    fn above<'a>(&'a mut self, radio: &'a mut dyn Radio) -> (&'a mut Above<P, N, L>, Both<'a>) {
        let both = Both {
            radio,
            adapters: self.config.adapters,
            repeated: &mut self.repeated,
        };
        (&mut self.above, both)
    }

    /// Begins what is new, sends second copies that are due, and asks back what is not wanted any more.
    fn serve(&mut self, now: Instant, radio: &mut dyn Radio) {
        self.unfinished = false;
        while let Some(index) = self.above.held.first_by(|h| h.order()) {
            if self.left < 2 {
                self.unfinished = true;
                return;
            }
            self.begin(index, now, radio);
        }
        for index in 0..N {
            let Some(held) = self.above.held.get(index).filter(|h| h.is_flying()) else {
                continue;
            };
            let unwanted = held.is_unwanted();
            for k in 0..2 {
                match self.pairs[index].sides[k] {
                    Side::Due(_) if unwanted => self.pairs[index].sides[k] = Side::Over,
                    Side::Flying if unwanted && !self.pairs[index].recalled => {
                        // the first copy was asked back by the table already; twice does no harm
                        self.recall(k, index, radio);
                    }
                    Side::Due(at) if at <= now => {
                        // the first copy is late: that counts like a failure when the next primary is chosen
                        self.pairs[index].sides[k] = Side::Over;
                        self.copies[1 - k].judge(false);
                        self.pairs[index].judged[1 - k] = true;
                        self.copy(index, k, radio);
                    }
                    _ => {}
                }
            }
            if unwanted {
                self.pairs[index].recalled = true;
            }
            self.close(index);
        }
    }

    /// A new request: its first copy, and the second one now or later.
    fn begin(&mut self, index: usize, now: Instant, radio: &mut dyn Radio) {
        let Some(held) = self.above.held.get(index) else {
            return;
        };
        let header = Header::parse(held.frame()).ok();
        let answered = held.how.ack == AckPolicy::Normal && header.is_some_and(|h| h.wants_ack());
        let from = held.how.not_before.map_or(now, |t| t.max(now));
        let data = header.filter(|h| h.frame_type() == FrameType::Data && h.body().len() >= 8);
        let trailer = data.map(|_| {
            // who was restarted does not go on among the numbers that others remember of it
            let last = self.sequence.unwrap_or((now.as_ns() / 1_000) as u16);
            *self.sequence.insert(last.wrapping_add(1))
        });
        // the body of such a frame fits the length field of a trailer, too
        const { assert!(MAX_DATA_OCTETS + trailer::OCTETS < 1 << 12) };
        if held.frame().len() > MAX_DATA_OCTETS {
            return self.above.held.end(index, Outcome::Refused(Refusal::BadFrame));
        }
        let first = self.primary();
        self.pairs[index] = Pair {
            sequence: trailer,
            answered,
            ..Pair::NEW
        };
        self.copy(index, first, radio);
        let under_way = self.pairs[index].sides[first] == Side::Flying;
        match self.config.defer.filter(|_| answered && under_way) {
            Some(defer) => self.pairs[index].sides[1 - first] = Side::Due(from.after(defer)),
            None => self.copy(index, 1 - first, radio),
        }
        if self.above.held.get(index).is_some_and(|h| h.is_waiting()) {
            self.above.held.end(index, Outcome::Refused(Refusal::QueueFull));
        }
    }

    /// Sends the copy of request `index` on side `k`.
    fn copy(&mut self, index: usize, k: usize, radio: &mut dyn Radio) {
        let Some(held) = self.above.held.get(index) else {
            return;
        };
        if !self.copies[k].has_room() {
            self.counters.no_room += 1;
            self.pairs[index].sides[k] = Side::Over;
            return;
        }
        let mut how = held.how;
        how.adapter = self.config.adapters[k];
        let mut octets = [0; MAX_DATA_OCTETS + trailer::OCTETS];
        let mut n = held.frame().len();
        octets[..n].copy_from_slice(held.frame());
        if let Some(sequence) = self.pairs[index].sequence {
            let trailer = Trailer {
                sequence,
                lan: k as u8,
            };
            if let Some(t) = trailer.octets(body_octets(held.frame())) {
                octets[n..n + t.len()].copy_from_slice(&t);
                n += t.len();
            }
        }
        let token = if held.is_waiting() {
            self.above.held.launch_as(index, &octets[..n], &how, radio)
        } else {
            let token = radio.token();
            radio.request(token, &octets[..n], &how);
            token
        };
        self.left = self.left.saturating_sub(1);
        self.copies[k].add(token, index);
        self.counters.copies[k] += 1;
        self.pairs[index].sides[k] = Side::Flying;
    }

    fn recall(&mut self, k: usize, index: usize, radio: &mut dyn Radio) {
        if let Some(token) = self.copies[k].of(index) {
            self.left = self.left.saturating_sub(1);
            radio.abort(token);
        }
    }

    /// Takes the confirm of a copy; false if it is none.
    fn landed(&mut self, confirm: &Confirm, radio: &mut dyn Radio) -> bool {
        let taken = (0..2).find_map(|k| Some((k, self.copies[k].remove(confirm.token)?)));
        let Some((k, index)) = taken else { return false };
        let acked = confirm.outcome.is_acked();
        self.counters.acked[k] += u64::from(acked);
        // a copy whose sibling has arrived ended as it should
        let Some(index) = index else { return true };
        if self.pairs[index].answered && !self.pairs[index].judged[k] {
            self.copies[k].judge(acked);
        }
        if let Some(held) = self.above.held.get_mut(index) {
            held.attempts = held.attempts.saturating_add(confirm.attempts);
        }
        let pair = &mut self.pairs[index];
        pair.sides[k] = Side::Over;
        keep_best(&mut pair.best, confirm);
        match pair.sides[1 - k] {
            Side::Due(_) if acked => {
                self.counters.spared += 1;
                pair.sides[1 - k] = Side::Over;
            }
            Side::Due(_) => self.copy(index, 1 - k, radio),
            Side::Flying if acked => {
                pair.sides[1 - k] = Side::Over;
                if self.config.cancel {
                    self.counters.cancelled += 1;
                    self.recall(1 - k, index, radio);
                }
                self.copies[1 - k].release(index);
            }
            _ => {}
        }
        self.close(index);
        true
    }

    /// Ends a request both of whose copies are over.
    fn close(&mut self, index: usize) {
        let pair = &self.pairs[index];
        if pair.sides == [Side::Over; 2]
            && self.above.held.get(index).is_some_and(|h| h.is_flying())
            && let Some(best) = pair.best
        {
            self.above.held.finish(index, &best);
        }
    }

    /// A frame from the air: what of it goes up.
    fn sift<'a>(&mut self, now: Instant, i: &Indication<'a>) -> Option<Indication<'a>> {
        let found = Header::parse(i.frame)
            .ok()
            .filter(|h| h.frame_type() == FrameType::Data)
            .and_then(|h| Some((h.transmitter()?, Trailer::of(h.body())?)));
        let Some((source, trailer)) = found else {
            return Some(*i);
        };
        if !self.discard.is_first(source, trailer.sequence, now) {
            self.counters.dropped += 1;
            return None;
        }
        self.counters.first[usize::from(trailer.lan)] += 1;
        Some(Indication {
            frame: &i.frame[..i.frame.len() - trailer::OCTETS],
            ..*i
        })
    }
}

fn body_octets(mpdu: &[u8]) -> usize {
    Header::parse(mpdu).map_or(0, |h| h.body().len())
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Protocol for Redundancy<P, N, L, S> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.left = CALLS;
        match event {
            Event::Confirm(c) if self.landed(&c, radio) => {}
            Event::Set(answer)
                if self.repeated.is_answered_by(&answer)
                    || self.access.iter_mut().any(|a| a.is_answered_by(&answer)) => {}
            Event::Start => {
                for access in &mut self.access {
                    access.start(radio);
                }
                let (above, mut both) = self.above(radio);
                above.tell(now, event, &mut both);
            }
            Event::Indication(i) => {
                if let Some(i) = self.sift(now, &i) {
                    let (above, mut both) = self.above(radio);
                    above.tell(now, Event::Indication(i), &mut both);
                }
            }
            Event::Timer => {
                let (above, mut both) = self.above(radio);
                above.timer(now, &mut both);
            }
            other => {
                let (above, mut both) = self.above(radio);
                above.tell(now, other, &mut both);
            }
        }
        loop {
            self.serve(now, radio);
            let enough = self.left < 2;
            let (above, mut both) = self.above(radio);
            if enough || !above.pay(now, &mut both) {
                break;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if self.unfinished {
            return Some(Instant::ZERO);
        }
        let due = self.pairs.iter().enumerate().filter_map(|(i, p)| {
            self.above.held.get(i).filter(|h| h.is_flying())?;
            p.due()
        });
        [due.min(), self.above.deadline()].into_iter().flatten().min()
    }
}
