//! Roaming in real time: a station goes from one access point to the next, and counts what the hand-over costs.
//!
//! With **two adapters** it makes before it breaks: one carries the traffic, the other one listens on all other channels in
//! turn. When an access point has been stronger by [`RoamConfig::better_db`] for [`RoamConfig::hold`], or the present one
//! is lost, or frames to it fail ([`RoamConfig::failed`]), the second adapter is let in there, the traffic goes over it, and the
//! first one stays until the new link has proved itself. A frame that fails in between gets a second chance on the other link.
//!
//! With **one adapter** it breaks before it makes: when the beacons of the present one are lost, or frames to it fail, it listens on
//! all channels, and is let in by the strongest. Nothing is sent meanwhile; what is too late by then is dropped.
//!
//! The protocol above talks to one access point, [`RoamConfig::home`], for good: frames to that address go to
//! whichever it is at present, and those from there come back under that name. Beacons of others are not told. There
//! is no wire behind the access points here: what they do with a frame is theirs. [`gate::Gate`] lets stations in.

mod config;
mod copies;
pub mod gate;
mod link;
mod search;
#[cfg(test)]
mod tests;

use super::data::{Duplicates, MAX_DATA_OCTETS, Received};
use super::overlay::{Above, DEFAULT_HELD, DEFAULT_HELD_OCTETS};
use super::redundancy::discard::Discard;
pub use config::{MAX_CHANNELS, RoamConfig, RoamCounters};
use copies::{Launched, Seconds};
use frame::MacAddr;
use frame::mac::header::set_retry;
use frame::mac::{FrameType, Header};
use link::{Candidates, Link, State};
use radio::{Confirm, Duration, Event, Indication, Instant, Outcome, Protocol, Radio};

/// Launches and aborts for one event at most: a hand-over that ends finds many that wait.
const BURST: usize = 8;
/// Tag of a held frame: it has had its second chance.
const SECOND: u64 = 1;

/// See the [module](self). Holds up to `N` requests with frames of up to `L` octets.
#[derive(Clone, Debug)]
pub struct Roam<P, const N: usize = DEFAULT_HELD, const L: usize = DEFAULT_HELD_OCTETS> {
    config: RoamConfig,
    above: Above<P, N, L>,
    links: [Link; 2],
    /// Which of the links carries the traffic.
    primary: usize,
    candidates: Candidates,
    /// Who was left because frames failed, and until when that counts.
    left_for_failures: Option<(MacAddr, Instant)>,
    last: Option<MacAddr>,
    last_ack: Option<Instant>,
    /// Requests that missed since the last ACK, if nothing else counts them: see [`Roam::count_by`].
    missed: u64,
    /// What the protocol above has given up, ...
    given_up_above: Option<fn(&P) -> u64>,
    /// ... and how much of that was told until the last ACK.
    told_above: u64,
    /// Of the last event.
    now: Instant,
    /// There was a hand-over since the last ACK.
    changed: bool,
    launched: [Launched; N],
    seconds: Seconds<N>,
    /// Of these, what this event may still bring.
    left: usize,
    /// Of each access point.
    duplicates: Duplicates<4>,
    /// Of each source behind them.
    discard: Discard<4>,
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
            left_for_failures: None,
            last: None,
            last_ack: None,
            missed: 0,
            given_up_above: None,
            told_above: 0,
            now: Instant::ZERO,
            changed: false,
            launched: [Launched::NONE; N],
            seconds: Seconds::NONE,
            left: BURST,
            duplicates: Duplicates::default(),
            discard: Discard::default(),
            counters: RoamCounters::default(),
            config,
        }
    }

    /// Misses are what the protocol above has given up since its start, and not the requests that it made. For one that tries a
    /// message in several requests, or gives it up without any, as [`Edf`](super::edf::Edf) does.
    pub fn count_by(&mut self, given_up: fn(&P) -> u64) {
        self.given_up_above = Some(given_up);
    }

    /// The protocol above.
    pub fn protocol(&self) -> &P {
        self.above.protocol()
    }

    /// What it has counted. Misses behind which no ACK has come yet are of a hand-over if there is one, or nobody to go to; the
    /// time without an ACK until the last event is of this one, too.
    pub fn counters(&self) -> RoamCounters {
        let mut counters = self.counters;
        if self.changed || self.access_point().is_none() {
            self.count_gap(self.now, &mut counters);
        } else {
            counters.missed_else += self.missed();
        }
        counters
    }

    /// What was missed since the last ACK.
    fn missed(&self) -> u64 {
        let above = self.given_up_above;
        above.map_or(self.missed, |count| {
            count(self.above.protocol()) - self.told_above
        })
    }

    /// A hand-over lasts from the last ACK until `until`.
    fn count_gap(&self, until: Instant, counters: &mut RoamCounters) {
        let gap = self.last_ack.map_or(0, |t| until.since(t).as_ns());
        counters.gap_ns += gap;
        counters.longest_gap_ns = counters.longest_gap_ns.max(gap);
        counters.missed_in_handover += self.missed();
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
        self.missed += expired;
        self.recall(radio);
        // while the channel is being changed, or is about to be, nothing can go
        let Some(ap) = self
            .access_point()
            .filter(|_| self.links[self.primary].tuning.is_empty() && !self.is_leaving(now))
        else {
            return;
        };
        while self.left > 0
            && let Some(index) = self.above.held.first_by(|h| h.order())
        {
            let tag = self.above.held.get(index).expect("it waits").tag;
            let spare = self.spare(now);
            // what failed on the link that carries the traffic goes on the other one, and the other way round
            let failed_here = tag & SECOND != 0 && self.launched[index].side == self.primary;
            let (k, to) = spare.filter(|_| failed_here).unwrap_or((self.primary, ap));
            self.send(index, k, to, radio);
            let copy = self.config.copies && tag & SECOND == 0 && self.asks(index) && self.seconds.has_room();
            if let Some((k, to)) = spare.filter(|_| copy) {
                self.send(index, k, to, radio);
            }
        }
    }

    /// Sends request `index` on link `k`: for the first time, or a copy of it.
    fn send(&mut self, index: usize, k: usize, ap: MacAddr, radio: &mut dyn Radio) {
        let held = self.above.held.get(index).expect("it waits or flies");
        let mut how = held.how;
        how.adapter = self.links[k].adapter;
        let mut octets = [0; L];
        let n = held.frame().len();
        octets[..n].copy_from_slice(held.frame());
        rename(&mut octets[..n], self.config.home, ap);
        let second = held.is_flying();
        let token = if second {
            let token = radio.token();
            radio.request(token, &octets[..n], &how);
            token
        } else {
            self.above.held.launch_as(index, &octets[..n], &how, radio)
        };
        self.is_below(index, k, token, second);
    }

    /// Whether request `index` asks for an ACK.
    fn asks(&self, index: usize) -> bool {
        let held = self.above.held.get(index);
        held.and_then(|h| Header::parse(h.frame()).ok())
            .is_some_and(|h| h.wants_ack())
    }

    /// No copy of request `index` is below any more; `confirm` is the best one.
    fn ended(&mut self, index: usize, confirm: &Confirm, now: Instant) {
        let acked = confirm.outcome.is_acked();
        let asks = self.asks(index);
        let Launched { side, twice, .. } = self.launched[index];
        let other = match side == self.primary {
            true => self.spare(now).is_some(),
            false => self.access_point().is_some(),
        };
        let held = self.above.held.get_mut(index).expect("it was in flight");
        let in_time = held.how.expires.is_none_or(|t| now < t);
        let again = matches!(
            confirm.outcome,
            Outcome::NotAcked | Outcome::Aborted | Outcome::Unknown
        ) && asks
            && other
            && in_time
            && !twice
            && held.tag & SECOND == 0
            && !held.is_unwanted();
        if again {
            held.tag |= SECOND;
            // a frame without a header is not in the table
            let _ = set_retry(held.frame_mut(), true);
            self.counters.second_chances += 1;
            self.above.held.wait_again(index);
            return;
        }
        if !acked && asks {
            self.missed += 1;
        }
        self.above.held.finish(index, confirm);
    }

    /// A frame was acknowledged: a hand-over that was under way is over.
    fn alive(&mut self, now: Instant) {
        let mut counters = self.counters;
        if core::mem::take(&mut self.changed) {
            self.count_gap(now, &mut counters);
        } else {
            counters.missed_else += self.missed();
        }
        self.counters = counters;
        self.told_above += self.missed();
        self.missed = 0;
        self.last_ack = Some(now);
    }

    /// A frame for the protocol above: from the present access point under the name that it knows. Each access point counts its own
    /// frames, which only here can be told apart: above nothing is a repetition any more.
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
                let known = Received::parse(i.frame);
                if known.as_ref().is_some_and(|r| self.duplicates.is_duplicate(r)) {
                    return;
                }
                let frame = &mut octets[..i.frame.len()];
                frame.copy_from_slice(i.frame);
                if known.is_some() {
                    // it was parsed, so it has a header
                    let _ = set_retry(frame, false);
                }
                rename(frame, ap, self.config.home);
                let Some(n) = self.first(frame, now) else {
                    return;
                };
                let frame = &frame[..n];
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
        self.now = now;
        match event {
            Event::Confirm(c) if self.asked(&c) => {}
            Event::Confirm(c) if self.landed(&c, now, radio) => {}
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
            .filter(|_| self.sides() == 1 && self.links[self.primary].flying == 0)
            .map(|c| c.heard + self.config.lost);
        let over = links
            .iter()
            .enumerate()
            .filter(|(k, l)| *k != self.primary && l.joined().is_some() && l.flying == 0);
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
