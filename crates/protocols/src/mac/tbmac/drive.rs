//! From the rounds of [`Member`] to times and frames.

use super::message::{Body, MAX_REPORT_OCTETS, Message};
use super::{Member, OPEN, Tbmac};
use crate::mac::data::{ETHERTYPE_PROTOCOL, MAX_DATA_OCTETS, Received};
use crate::mac::sync::NetworkTime;
use crate::mac::tbmac::member::Chance;
use crate::mac::tdma::mix;
use frame::{AccessCategory, MacAddr};
use radio::{AckPolicy, Attribute, Event, Indication, Instant, Protocol, Queue, Radio, TxHow};

/// What is next in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// Its own slot.
    Slot,
    /// The contention-free period is over and heard.
    CfpOver,
    /// The slot in which it asks.
    Ask,
    /// The round is over and heard.
    RoundOver,
}

/// Rounds that it may sleep through; after more, what it believes is too old.
const TOO_OLD: u64 = 2;

/// What a frame says of its queue; that of beacons has no name of its own.
fn category(queue: Queue) -> AccessCategory {
    match queue {
        Queue::Background => AccessCategory::Background,
        Queue::BestEffort => AccessCategory::BestEffort,
        Queue::Video => AccessCategory::Video,
        Queue::Voice | Queue::Beacon => AccessCategory::Voice,
    }
}

impl<P: Protocol, const S: usize, const N: usize, const L: usize> Tbmac<P, S, N, L> {
    /// When the mark is due: earlier than on the air by the release path. `None` without a clock.
    pub(super) fn due(&self) -> Option<Instant> {
        let rounds = &self.config.rounds;
        let member = self.member.as_ref();
        let offset = match self.mark {
            Mark::Slot => rounds.start(member.and_then(Member::slot).unwrap_or(0)),
            Mark::CfpOver => rounds.ask(0),
            Mark::Ask => rounds.ask(self.ask.map_or(0, |a| a.slot)),
            Mark::RoundOver => rounds.length(),
        };
        let start = self.round.saturating_mul(rounds.length().as_ns());
        let on_air = NetworkTime(start.saturating_add(offset.as_ns()));
        Some(self.config.sync.to_local(on_air)? - rounds.lead())
    }

    pub(super) fn pass_marks(&mut self, now: Instant, radio: &mut dyn Radio) {
        self.look_at_the_clock(now);
        while self.member.is_some() && self.due().is_some_and(|t| t <= now) {
            self.pass(now, radio);
        }
    }

    /// Without a clock it is in no cell. With one it begins with the next round.
    fn look_at_the_clock(&mut self, now: Instant) {
        let length = self.config.rounds.length();
        let lead = self.config.rounds.lead();
        let good = self.config.sync.is_good(now);
        let network = self.config.sync.to_network(now + lead).filter(|_| good);
        let Some(round) = network.map(|t| t.0 / length.as_ns()) else {
            self.member = None;
            return;
        };
        let jumped = round > self.round + TOO_OLD || round + TOO_OLD < self.round;
        if self.member.is_none() || jumped {
            self.member = Some(Member::new(self.config.me, self.config.halvings));
            (self.round, self.mark, self.ask) = (round + 1, Mark::CfpOver, None);
        }
    }

    fn pass(&mut self, now: Instant, radio: &mut dyn Radio) {
        let late = self.due().is_some_and(|t| now > t + self.config.rounds.guard());
        match self.mark {
            Mark::Slot => {
                if late {
                    self.counters.overruns += 1;
                } else {
                    self.use_slot(radio);
                }
                self.mark = Mark::CfpOver;
            }
            Mark::CfpOver => {
                let chance = self.chance();
                let member = self.member.as_mut().expect("in a cell");
                let before = member.slot();
                self.ask = member.cfp_over(chance);
                let after = member.slot();
                self.count(before, after);
                self.mark = match self.ask {
                    Some(_) => Mark::Ask,
                    None => Mark::RoundOver,
                };
            }
            Mark::Ask => {
                if late {
                    self.counters.overruns += 1;
                } else if let Some(request) = self.ask {
                    self.counters.asked += 1;
                    self.send(Body::Request(request), None, radio);
                }
                self.mark = Mark::RoundOver;
            }
            Mark::RoundOver => self.next_round(radio),
        }
    }

    fn next_round(&mut self, radio: &mut dyn Radio) {
        self.round += 1;
        self.ask = None;
        let member = self.member.as_mut().expect("in a cell");
        let before = member.slot();
        member.round_over();
        let after = member.slot();
        self.count(before, after);
        let told = self.leaving.filter(|_| after.is_none() || self.farewell);
        if let Some(cell) = told {
            self.config.cell = cell;
            self.leaving = None;
            self.member = Some(Member::new(self.config.me, self.config.halvings));
            self.tune(radio);
        }
        self.farewell = false;
        let round = self.round as u32;
        let sends = self.member.as_ref().and_then(|m| m.sends(round)).is_some();
        self.mark = if sends { Mark::Slot } else { Mark::CfpOver };
    }

    fn count(&mut self, before: Option<u8>, after: Option<u8>) {
        self.counters.granted += u64::from(before.is_none() && after.is_some());
        self.counters.lost += u64::from(before.is_some() && after.is_none());
    }

    /// Tunes to the channel of the cell.
    pub(super) fn tune(&mut self, radio: &mut dyn Radio) {
        let channel = self.config.channels.map(|c| c[self.config.cell.colour()]);
        if let (Some(mhz), Some(place)) = (channel, self.open.iter().position(Option::is_none)) {
            let token = radio.token();
            self.open[place] = Some(token);
            radio.set(token, self.config.adapter, Attribute::Channel(mhz));
        }
    }

    fn chance(&self) -> Chance {
        let number = mix(self.round, self.config.me, 1);
        Chance {
            slot: (number % u64::from(self.config.rounds.asks())) as u8,
            luck: (number >> 56) as u8,
        }
    }

    fn use_slot(&mut self, radio: &mut dyn Radio) {
        let leave = self.leaving.is_some();
        let Some(report) = self.member.as_ref().and_then(|m| m.report(leave)) else {
            return;
        };
        self.farewell = leave;
        let start = self.due().map(|t| t + self.config.rounds.lead());
        let ready = |(_, h): &(usize, &radio::pending::Held<L>)| {
            let from = h.how.not_before.is_none_or(|t| start.is_some_and(|s| t <= s));
            from && h.how.expires.is_none_or(|t| start.is_some_and(|s| s <= t))
        };
        let waiting = self.above.held.waiting().filter(ready);
        let first = waiting.min_by_key(|(_, h)| h.order()).map(|(i, _)| i);
        self.counters.released += u64::from(first.is_some());
        self.send(Body::Report(report), first, radio);
    }

    /// Sends a message, with a held request in it or without.
    fn send(&mut self, body: Body, held: Option<usize>, radio: &mut dyn Radio) {
        let message = Message {
            cell: self.config.cell,
            round: self.round as u32,
            body,
        };
        let mut head = [0; MAX_REPORT_OCTETS];
        let head = message.emit(&mut head);
        let inner = held
            .and_then(|i| self.above.held.get(i))
            .map_or(&[][..], |h| h.frame());
        let mut out = [0; MAX_DATA_OCTETS];
        let to = MacAddr::BROADCAST;
        let framed = self
            .framer
            .frame(to, category(self.config.queue), true, head, inner, &mut out);
        let mpdu = framed.expect("what is too long was refused");
        let expires = self
            .due()
            .map(|t| t + self.config.rounds.lead() + self.config.rounds.guard());
        let how = TxHow {
            ack: AckPolicy::NoAck,
            expires,
            ..TxHow::one_shot(self.config.rounds.rate())
        };
        let how = how.queue(self.config.queue).adapter(self.config.adapter);
        if let Some(index) = held {
            self.above.held.launch_as(index, mpdu, &how, radio);
            return;
        }
        // a host whose confirms do not come waits for them
        if let Some(place) = (0..OPEN).find(|i| self.open[*i].is_none()) {
            let token = radio.token();
            self.open[place] = Some(token);
            radio.request(token, mpdu, &how);
        }
    }

    /// A frame from the air: what members say, what is in it, or somebody else's.
    pub(super) fn hear(&mut self, now: Instant, heard: &Indication<'_>, radio: &mut dyn Radio) {
        let received = Received::parse(heard.frame).filter(|r| r.ethertype == ETHERTYPE_PROTOCOL);
        let message = received.and_then(|r| Some((r.transmitter, Message::parse(r.payload)?)));
        let Some((from, (message, inner))) = message else {
            return self.above.tell(now, Event::Indication(*heard), radio);
        };
        let mine = message.cell == self.config.cell && message.round == self.round as u32;
        if !mine {
            return;
        }
        if let Some(member) = &mut self.member {
            let before = member.slot();
            match &message.body {
                Body::Report(report) => member.heard(from, report),
                Body::Request(request) => member.requested(from, request),
            }
            let after = member.slot();
            self.count(before, after);
        }
        if !inner.is_empty() {
            let inner = Indication {
                frame: inner,
                ..*heard
            };
            self.above.tell(now, Event::Indication(inner), radio);
        }
    }
}
