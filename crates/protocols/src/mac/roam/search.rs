//! Listening for access points, asking them, and changing from one to the next.

use super::Roam;
use super::link::{Candidate, Link, State};
use frame::element::Elements;
use frame::mac::{Header, Kind};
use frame::mgmt::{
    AssociationRequest, AssociationResponse, Authentication, Capability, MgmtHeader, StatusCode,
};
use frame::{MacAddr, Wire};
use radio::{
    Attribute, Beacon, Confirm, Duration, Indication, Instant, Protocol, Queue, Radio, SetAnswer, TxHow,
};

/// Questions to one access point before it counts as deaf.
const TRIES: u8 = 3;
/// How long a beacon may be on its way up when its channel has been left already.
const ON_ITS_WAY: Duration = Duration::from_ms(2);
/// Strength of a beacon where the adapter does not tell.
const UNKNOWN_DBM: i8 = -100;
impl<P: Protocol, const N: usize, const L: usize> Roam<P, N, L> {
    /// Tunes link `k` to a channel of the list.
    fn tune(&mut self, k: usize, channel: usize, radio: &mut dyn Radio) {
        if !self.links[k].tuning.has_room() {
            return;
        }
        let token = radio.token();
        self.links[k].tuning.add(token);
        let mhz = self.config.channels[channel];
        radio.set(token, self.links[k].adapter, Attribute::Channel(mhz));
    }

    fn listen(&mut self, k: usize, channel: usize, now: Instant, radio: &mut dyn Radio) {
        self.tune(k, channel, radio);
        self.links[k].state = State::Listening {
            channel,
            until: now + self.config.dwell,
        };
    }

    /// The channel to listen on after this one, of those in turn. While one adapter is in use, the other leaves its channel out: there both would
    /// acknowledge what comes for the station, at once. What beacons there are is heard by the one in use.
    fn after(&self, channel: usize) -> usize {
        let count = self.config.count.max(1);
        let next = (channel + 1) % count;
        let present = self.access_point().filter(|_| self.sides() == 2);
        let taken = present.and_then(|ap| self.candidates.get(ap)).map(|c| c.channel);
        if taken == Some(next) {
            (next + 1) % count
        } else {
            next
        }
    }

    /// Listens on the first channel in turn.
    fn look_around(&mut self, k: usize, now: Instant, radio: &mut dyn Radio) {
        let first = self.after(self.config.count.max(1) - 1);
        self.listen(k, first, now, radio);
    }

    fn ask(&mut self, k: usize, ap: MacAddr, (step, tries): (u8, u8), now: Instant, radio: &mut dyn Radio) {
        self.links[k].state = State::Asking {
            ap,
            step,
            tries,
            until: now + self.config.answer,
        };
        let header = MgmtHeader::new(ap, self.config.me, ap);
        let mut out = [0; 64];
        let n = match step {
            0 => Authentication {
                header,
                algorithm: 0,
                transaction: 1,
                status: StatusCode::SUCCESS,
                elements: Elements::new(&[]),
            }
            .emit(&mut out),
            _ => AssociationRequest {
                header,
                capability: Capability::ESS,
                listen_interval: 1,
                elements: Elements::new(&[]),
            }
            .emit(&mut out),
        };
        if let (Ok(n), true) = (n, self.links[k].asked.has_room()) {
            let how = TxHow::multi_shot(self.config.rate, 4)
                .queue(Queue::Voice)
                .adapter(self.links[k].adapter)
                .expires(now + self.config.answer);
            let token = radio.token();
            self.links[k].asked.add(token);
            radio.request(token, &out[..n], &how);
        }
    }

    /// Begins to be let in by the access point that was heard on this channel.
    fn go(&mut self, k: usize, ap: MacAddr, channel: usize, now: Instant, radio: &mut dyn Radio) {
        self.tune(k, channel, radio);
        self.ask(k, ap, (0, 1), now, radio);
    }

    /// What a link does next when its time is up, or when it has nothing to do.
    pub(super) fn step(&mut self, k: usize, now: Instant, radio: &mut dyn Radio) {
        let fresh = self.config.dwell.times(self.config.count as u64 + 2);
        let present = self.access_point();
        let shunned = self.shunned(now);
        match self.links[k].state {
            // the second one waits until the first has found somebody
            State::Idle if k == 0 || present.is_some() => self.look_around(k, now, radio),
            State::Listening { channel, until } if until <= now => {
                let again = self.after(channel);
                self.candidates
                    .compare((present, shunned), self.config.better_db, fresh, now);
                let round_over = again <= channel;
                let best = self.candidates.strongest((present, shunned), fresh, now);
                let due = |since: Instant| now.since(since) >= self.config.hold;
                match best {
                    Some(c) if present.is_none() && round_over => self.go(k, c.ap, c.channel, now, radio),
                    Some(c)
                        if present.is_some() && (c.better_since.is_some_and(due) || self.is_over(now)) =>
                    {
                        self.go(k, c.ap, c.channel, now, radio);
                    }
                    _ => self.listen(k, again, now, radio),
                }
            }
            State::Asking {
                ap,
                step,
                tries,
                until,
            } if until <= now => {
                self.counters.unanswered += 1;
                if tries < TRIES {
                    self.ask(k, ap, (step, tries + 1), now, radio);
                } else {
                    self.candidates.forget(ap);
                    self.look_around(k, now, radio);
                }
            }
            // the old link: until the new one has proved itself, and what is below would go on another channel
            State::Joined { .. }
                if k != self.primary && self.overlap_over(now) && self.links[k].flying == 0 =>
            {
                self.look_around(k, now, radio);
            }
            // as the only link, too
            State::Joined { ap, .. } if self.is_leaving(now) && self.links[k].flying == 0 => {
                self.leave(ap, now);
                self.look_around(k, now, radio);
            }
            _ => {}
        }
    }

    /// The new link has proved itself, or had its time for that.
    fn overlap_over(&self, now: Instant) -> bool {
        let new = &self.links[self.primary];
        match new.state {
            State::Joined { since, .. } => {
                new.acks >= self.config.acks || now.since(since) >= self.config.overlap
            }
            _ => true,
        }
    }

    /// The other link and its access point, while that serves besides the one that carries the traffic.
    pub(super) fn spare(&self, now: Instant) -> Option<(usize, MacAddr)> {
        let k = 1 - self.primary;
        let link = self.links[..self.sides()].get(k)?;
        let serves = link.tuning.is_empty() && !self.overlap_over(now);
        link.joined().filter(|_| serves).map(|ap| (k, ap))
    }

    /// No beacon of the present access point for too long.
    pub(super) fn is_lost(&self, now: Instant) -> bool {
        let heard = self
            .access_point()
            .and_then(|ap| self.candidates.get(ap))
            .map(|c| c.heard);
        heard.is_none_or(|heard| now.since(heard) >= self.config.lost)
    }

    /// Frames to the present access point fail, and nobody was left for that lately.
    fn fails(&self, now: Instant) -> bool {
        self.shunned(now).is_none() && self.links[self.primary].fails(self.config.failed)
    }

    /// The present access point is of no use any more.
    fn is_over(&self, now: Instant) -> bool {
        self.is_lost(now) || self.fails(now)
    }

    /// With one adapter: the present access point is left as soon as nothing is below.
    pub(super) fn is_leaving(&self, now: Instant) -> bool {
        self.sides() == 1 && self.is_over(now)
    }

    /// Who was left because frames failed, for as long as that counts.
    fn shunned(&self, now: Instant) -> Option<MacAddr> {
        self.left_for_failures
            .filter(|(_, until)| now < *until)
            .map(|(ap, _)| ap)
    }

    /// The present access point is left; notes whether for its failures.
    fn leave(&mut self, ap: MacAddr, now: Instant) {
        if self.fails(now) && !self.is_lost(now) {
            self.left_for_failures = Some((ap, now + self.config.rest));
            self.counters.given_up += 1;
        }
    }

    fn let_in(&mut self, k: usize, ap: MacAddr, now: Instant) {
        if let Some(old) = self.access_point() {
            self.leave(old, now);
        }
        self.links[k].join(ap, now);
        self.primary = k;
        self.counters.joined += 1;
        if self.last.replace(ap).is_some_and(|old| old != ap) {
            self.counters.handovers += 1;
            self.changed = true;
        }
        // its beacons will come; until then it is not lost
        if let Some(c) = self.candidates.get(ap).copied() {
            self.candidates.heard(ap, c.channel, self.level_of(ap), now);
        }
    }

    fn level_of(&self, ap: MacAddr) -> i8 {
        self.candidates.get(ap).map_or(UNKNOWN_DBM, Candidate::dbm)
    }

    /// Takes a management frame that answers a question; false if it is something else.
    pub(super) fn answered(&mut self, i: &Indication<'_>, now: Instant, radio: &mut dyn Radio) -> bool {
        let Ok(header) = Header::parse(i.frame) else {
            return false;
        };
        let asks = |l: &Link| match l.state {
            State::Asking { ap, step, .. } => Some((ap, step)),
            _ => None,
        };
        let sides = self.sides();
        let found =
            (0..sides).find(|k| self.links[*k].adapter == i.adapter && asks(&self.links[*k]).is_some());
        let Some((k, (ap, step))) = found.and_then(|k| Some((k, asks(&self.links[k])?))) else {
            return false;
        };
        if header.transmitter() != Some(ap) || header.receiver() != self.config.me {
            return false;
        }
        match (step, header.kind()) {
            (0, Kind::AUTHENTICATION) => {
                let good = Authentication::parse(i.frame)
                    .is_ok_and(|a| a.transaction == 2 && a.status == StatusCode::SUCCESS);
                if good {
                    self.ask(k, ap, (1, 1), now, radio);
                }
                true
            }
            (1, Kind::ASSOCIATION_RESPONSE) => {
                if AssociationResponse::parse(i.frame).is_ok_and(|a| a.status == StatusCode::SUCCESS) {
                    self.let_in(k, ap, now);
                }
                true
            }
            _ => false,
        }
    }

    pub(super) fn heard(&mut self, b: &Beacon<'_>, now: Instant) {
        let sides = self.sides();
        let on = |l: &Link| l.adapter == b.received.adapter;
        let Some(k) = (0..sides).find(|k| on(&self.links[*k])) else {
            return;
        };
        let known = |ap| self.candidates.get(ap).map(|c| c.channel);
        let channel = match self.links[k].state {
            // what comes up while the channel is being changed, or just after it, may have been on the old one
            State::Listening { channel, until } if self.links[k].tuning.is_empty() => {
                let settled = now + self.config.dwell >= until + ON_ITS_WAY;
                settled.then_some(channel).or(known(b.bssid))
            }
            // a neighbour on the channel that is in use
            State::Joined { ap, .. } => known(b.bssid).or(known(ap)),
            _ => known(b.bssid),
        };
        if let Some(channel) = channel {
            // where nobody tells, all are alike
            let dbm = b.received.signal_dbm.unwrap_or(UNKNOWN_DBM);
            self.candidates.heard(b.bssid, channel, dbm, now);
        }
    }

    /// Takes the answer to a change of channel; false if it is something else. However long it took, the link listens there for all
    /// of its time.
    pub(super) fn tuned(&mut self, answer: &SetAnswer, now: Instant) -> bool {
        let (sides, dwell) = (self.sides(), self.config.dwell);
        let mut links = self.links[..sides].iter_mut();
        let Some(link) = links.find_map(|l| l.tuning.take(answer.token).then_some(l)) else {
            return false;
        };
        if let (State::Listening { until, .. }, true) = (&mut link.state, link.tuning.is_empty()) {
            *until = now + dwell;
        }
        true
    }

    pub(super) fn asked(&mut self, confirm: &Confirm) -> bool {
        let sides = self.sides();
        self.links[..sides]
            .iter_mut()
            .any(|l| l.asked.take(confirm.token))
    }
}
