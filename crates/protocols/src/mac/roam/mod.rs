//! Roaming in real time: a station goes from one access point to the next, and counts what the hand-over costs.
//!
//! With **two adapters** it makes before it breaks: one carries the traffic, the other one listens on all other channels in
//! turn. When an access point has been stronger by [`RoamConfig::better_db`] for [`RoamConfig::hold`], or the present one
//! is lost, the second adapter is let in there, and the first one stays until the new link has proved itself. In this time
//! each data frame goes on both links, as in [`redundancy`](super::redundancy): it is acked when the first copy is, and has failed when both
//! have. A frame that was sent before on one link and fails gets a second chance on the other. Copies have the same transmitter and sequence
//! number: by these the wired end of the network ([`wire`]) knows the second one.
//!
//! With **one adapter** it breaks before it makes: when the beacons of the present one are lost, it listens on all channels,
//! and is let in by the strongest. Nothing is sent meanwhile; what is too late by then is dropped.
//!
//! The protocol above talks to one access point, [`RoamConfig::home`], for good: frames to that address go to
//! whichever it is at present, and those from there come back under that name. Beacons of others are not told.
//! [`gate::Gate`] lets stations in. What comes down may come through both access points in that time, too, with the
//! [`trailer`] of a copy behind it: the second one is dropped.

mod config;
pub mod gate;
mod link;
mod search;
#[cfg(test)]
mod tests;
pub mod wire;

use super::data::MAX_DATA_OCTETS;
use super::overlay::{Above, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use super::redundancy::discard::Discard;
use super::redundancy::pair::{Copies, Pair, Side};
use super::redundancy::trailer::{self, Trailer};
pub use config::{MAX_CHANNELS, RoamConfig, RoamCounters};
use frame::MacAddr;
use frame::mac::header::set_retry;
use frame::mac::{FrameType, Header};
use link::{Candidates, Link, State};
use radio::pending::Held;
use radio::{Confirm, Duration, Event, Indication, Instant, Outcome, Protocol, Radio};

/// Requests that one event launches at most: a hand-over that ends finds many that wait.
const BURST: usize = 8;
/// Tag of a held frame that failed on this link: it has a second chance on the other one.
const FAILED: [u64; 2] = [1, 2];
/// Tag of one that went on both links.
const ON_BOTH: u64 = 3;

/// See the [module](self). Holds up to `N` requests with frames of up to `L` octets.
#[derive(Clone, Debug)]
pub struct Roam<P, const N: usize = DEFAULT_HELD, const L: usize = DEFAULT_HELD_OCTETS> {
    config: RoamConfig,
    above: Above<P, N, L>,
    links: [Link; 2],
    /// Which of the links carries the traffic.
    primary: usize,
    candidates: Candidates,
    last: Option<MacAddr>,
    last_ack: Option<Instant>,
    /// Requests that missed since the last ACK.
    missed: u64,
    /// There was a hand-over since the last ACK.
    changed: bool,
    /// The copies of each launched request, and those that have no confirm yet, by link.
    pairs: [Pair; N],
    copies: [Copies<N>; 2],
    /// Copies that came down.
    discard: Discard<1>,
    /// Requests that this event may still launch.
    left: usize,
    counters: RoamCounters,
}

impl<P: Protocol, const N: usize, const L: usize> Roam<P, N, L> {
    /// Knows nobody yet.
    pub fn new(config: RoamConfig, protocol: P) -> Self {
        let second = config.adapters.1.unwrap_or(config.adapters.0);
        Roam {
            above: Above::new(protocol),
            links: [Link::new(config.adapters.0), Link::new(second)],
            primary: 0,
            candidates: Candidates::NONE,
            last: None,
            last_ack: None,
            missed: 0,
            changed: false,
            pairs: [Pair::NEW; N],
            copies: [Copies::NEW; 2],
            discard: Discard::default(),
            left: BURST,
            counters: RoamCounters::default(),
            config,
        }
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        self.above.protocol()
    }

    /// What it has counted.
    pub fn counters(&self) -> &RoamCounters {
        &self.counters
    }

    /// The access point that carries the traffic.
    pub fn access_point(&self) -> Option<MacAddr> {
        self.links[self.primary].joined()
    }

    fn sides(&self) -> usize {
        1 + usize::from(self.config.adapters.1.is_some())
    }

    /// Launches what waits.
    fn serve(&mut self, now: Instant, radio: &mut dyn Radio) {
        let expired = self.above.held.expire(now) as u64;
        self.miss(expired);
        self.recall_unwanted(radio);
        // while the channel is being changed nothing can go
        let Some(ap) = self
            .access_point()
            .filter(|_| self.links[self.primary].tuning.is_empty())
        else {
            return;
        };
        let second = (1 - self.primary).min(self.sides() - 1);
        while let Some(index) = self.above.held.first_by(|h| h.order()) {
            let held = self.above.held.get(index).expect("it waits");
            let asks = Header::parse(held.frame()).is_ok_and(|h| h.wants_ack());
            let other = self.links[second]
                .joined()
                .filter(|_| second != self.primary && asks);
            let (first, other) = match other {
                // what failed on one link goes on the other one
                Some(other) if held.tag == FAILED[self.primary] => ((second, other), None),
                Some(other) if held.tag == 0 => ((self.primary, ap), Some((second, other))),
                _ => ((self.primary, ap), None),
            };
            let wanted = 1 + usize::from(other.is_some());
            if self.left < wanted {
                self.left = 0;
                break;
            }
            // what has no confirm yet on a link is no more than what it can hold
            if !self.copies[first.0].has_room() {
                break;
            }
            self.pairs[index] = Pair::NEW;
            self.copy(index, first, radio);
            if let Some(other) = other.filter(|(k, _)| self.copies[*k].has_room()) {
                self.copy(index, other, radio);
                self.counters.duplicated += 1;
                self.above.held.get_mut(index).expect("it flies").tag = ON_BOTH;
            }
        }
    }

    /// Sends a copy of request `index` to the access point of link `k`.
    fn copy(&mut self, index: usize, (k, ap): (usize, MacAddr), radio: &mut dyn Radio) {
        let Some(held) = self.above.held.get(index) else {
            return;
        };
        let mut how = held.how;
        how.adapter = self.links[k].adapter;
        let mut octets = [0; L];
        let n = held.frame().len();
        octets[..n].copy_from_slice(held.frame());
        rename(&mut octets[..n], self.config.home, ap);
        let token = if held.is_waiting() {
            self.above.held.launch_as(index, &octets[..n], &how, radio)
        } else {
            let token = radio.token();
            radio.request(token, &octets[..n], &how);
            token
        };
        self.left -= 1;
        self.copies[k].add(token, index);
        self.pairs[index].sides[k] = Side::Flying;
    }

    /// Asks back the copies of what the protocol above does not want any more.
    fn recall_unwanted(&mut self, radio: &mut dyn Radio) {
        for index in 0..N {
            let unwanted = |h: &Held<L>| h.is_flying() && h.is_unwanted();
            if self.pairs[index].recalled || !self.above.held.get(index).is_some_and(unwanted) {
                continue;
            }
            self.pairs[index].recalled = true;
            for copies in &self.copies {
                // the first one was asked back by the table already; twice does no harm
                if let Some(token) = copies.of(index) {
                    radio.abort(token);
                }
            }
        }
    }

    fn miss(&mut self, n: u64) {
        self.missed += n;
    }

    /// Takes the confirm of a copy; false if it is none.
    fn landed(&mut self, confirm: &Confirm, now: Instant) -> bool {
        let taken = (0..2).find_map(|k| Some((k, self.copies[k].remove(confirm.token)?)));
        let Some((k, index)) = taken else { return false };
        let acked = confirm.outcome.is_acked();
        if acked {
            self.links[k].acks = self.links[k].acks.saturating_add(1);
            self.alive(now);
        } else {
            self.links[k].acks = 0;
        }
        match index {
            Some(index) => self.land(index, k, confirm, now),
            // its other copy was acknowledged before
            None => self.counters.twice += u64::from(acked),
        }
        true
    }

    fn land(&mut self, index: usize, k: usize, confirm: &Confirm, now: Instant) {
        let acked = confirm.outcome.is_acked();
        let pair = &mut self.pairs[index];
        pair.sides[k] = Side::Over;
        pair.note(confirm);
        let other_flies = pair.sides[1 - k] == Side::Flying;
        let best = pair.best.unwrap_or(*confirm);
        let held = self.above.held.get_mut(index).expect("it was in flight");
        held.attempts = held.attempts.saturating_add(confirm.attempts);
        if other_flies && !acked {
            return;
        }
        self.copies[1 - k].release(index);
        let asks = Header::parse(held.frame()).is_ok_and(|h| h.wants_ack());
        let other = self.links[1 - k].joined().is_some();
        let in_time = held.how.expires.is_none_or(|t| now < t);
        let failed = matches!(
            best.outcome,
            Outcome::NotAcked | Outcome::Aborted | Outcome::Unknown
        );
        // the first chance, and on one link
        let first = held.tag == 0;
        if failed && asks && other && in_time && first && !held.is_unwanted() {
            held.tag = FAILED[k];
            // a frame without a header is not in the table
            let _ = set_retry(held.frame_mut(), true);
            self.counters.second_chances += 1;
            self.above.held.wait_again(index);
            return;
        }
        if !acked && asks {
            self.miss(1);
        }
        self.above.held.finish(index, &best);
    }

    /// A frame was acknowledged: a hand-over that was under way is over.
    fn alive(&mut self, now: Instant) {
        if core::mem::take(&mut self.changed) {
            let gap = self.last_ack.map_or(0, |t| now.since(t).as_ns());
            self.counters.gap_ns += gap;
            self.counters.longest_gap_ns = self.counters.longest_gap_ns.max(gap);
            self.counters.missed_in_handover += self.missed;
        } else {
            self.counters.missed_else += self.missed;
        }
        self.missed = 0;
        self.last_ack = Some(now);
    }

    /// A frame for the protocol above: from the present access point under the name that it knows.
    fn up(&mut self, i: &Indication<'_>, now: Instant, radio: &mut dyn Radio) {
        let sides = self.sides();
        let from = Header::parse(i.frame)
            .ok()
            .filter(|h| h.frame_type() == FrameType::Data);
        let from = from.and_then(|h| h.transmitter());
        let ap = (0..sides)
            .filter_map(|k| self.links[k].joined())
            .find(|ap| Some(*ap) == from);
        let mut octets = [0; MAX_DATA_OCTETS];
        match ap.filter(|_| i.frame.len() <= octets.len()) {
            None => self.above.tell(now, Event::Indication(*i), radio),
            Some(ap) => {
                let frame = &mut octets[..i.frame.len()];
                frame.copy_from_slice(i.frame);
                rename(frame, ap, self.config.home);
                let copy = Header::parse(frame).ok().and_then(|h| Trailer::of(h.body()));
                let mut frame = &frame[..];
                if let Some(copy) = copy {
                    if !self.discard.is_first(self.config.home, copy.sequence, now) {
                        self.counters.dropped += 1;
                        return;
                    }
                    frame = &frame[..frame.len() - trailer::OCTETS];
                }
                self.above
                    .tell(now, Event::Indication(Indication { frame, ..*i }), radio);
            }
        }
    }
}

/// In the three addresses of a data frame puts one name in the place of another.
fn rename(mpdu: &mut [u8], from: MacAddr, to: MacAddr) {
    if Header::parse(mpdu).is_ok_and(|h| h.frame_type() == FrameType::Data) {
        for at in [4, 10, 16] {
            if let Some(place) = mpdu.get_mut(at..at + 6).filter(|a| **a == from.0) {
                place.copy_from_slice(&to.0);
            }
        }
    }
}

impl<P: Protocol, const N: usize, const L: usize> Protocol for Roam<P, N, L> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Confirm(c) if self.asked(&c) || self.landed(&c, now) => {}
            Event::Set(answer) if self.tuned(&answer, now) => {}
            Event::Indication(i) => {
                if !self.answered(&i, now, radio) {
                    self.up(&i, now, radio);
                }
            }
            Event::Beacon(b) => {
                self.heard(&b, now);
                if self.access_point() == Some(b.bssid) {
                    self.above.tell(now, event, radio);
                }
            }
            Event::Timer => self.above.timer(now, radio),
            _ => self.above.tell(now, event, radio),
        }
        for k in 0..self.sides() {
            self.step(k, now, radio);
        }
        self.left = BURST;
        loop {
            self.serve(now, radio);
            if !self.above.pay(now, radio) {
                break;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let links = &self.links[..self.sides()];
        let lost = self
            .access_point()
            .and_then(|ap| self.candidates.get(ap))
            .filter(|_| self.sides() == 1)
            .map(|c| c.heard + self.config.lost);
        let over = links
            .iter()
            .enumerate()
            .filter(|(k, l)| *k != self.primary && l.joined().is_some());
        let overlap = over.filter_map(|_| match self.links[self.primary].state {
            State::Joined { since, .. } => Some(since + self.config.overlap),
            _ => None,
        });
        let own = links.iter().filter_map(Link::until).chain(overlap).chain(lost);
        let more = (self.left == 0).then_some(Instant::ZERO);
        let expiry = self.above.held.next_expiry().map(|t| t + Duration::from_ns(1));
        own.chain(expiry).chain(more).chain(self.above.deadline()).min()
    }
}
