//! From the rounds of [`Member`] to times and frames.

use super::borders::Borders;
use super::cell::Cell;
use super::message::{Between, Body, MAX_REPORT_OCTETS, Message, Report};
use super::{Member, OPEN, Tbmac};
use crate::mac::data::{ETHERTYPE_PROTOCOL, MAX_DATA_OCTETS, Received};
use crate::mac::sync::NetworkTime;
use crate::mac::tbmac::member::Chance;
use crate::mac::tdma::mix;
use frame::{AccessCategory, MacAddr};
use radio::{AckPolicy, Attribute, Event, Indication, Instant, Protocol, Queue, Radio, Token, TxHow};

/// What is next in a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// Its own slot.
    Slot,
    /// The slots of all members are over.
    Borders,
    /// It goes to the channel of the neighbour across a border, in a slot between cells.
    Visit(u8, u8),
    /// It sends there.
    Cross(u8, u8),
    /// It comes back.
    Return(u8, u8),
    /// The contention-free period is over and heard.
    CfpOver,
    /// The slot in which it asks.
    Ask,
    /// The round is over and heard.
    RoundOver,
}

/// What travels in a frame.
#[derive(Clone, Copy)]
pub(super) enum Inner {
    Nothing,
    /// A request from above.
    Held(usize),
    /// What came over a border.
    Relay,
    /// What goes over this border, or nothing.
    Crossing(u8),
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
        let retune = rounds.retune().unwrap_or_default();
        let offset = match self.mark {
            Mark::Slot => rounds.start(member.and_then(Member::slot).unwrap_or(0)),
            Mark::Borders => rounds.border(0),
            Mark::Visit(slot, _) => rounds.border(slot),
            Mark::Cross(slot, _) => rounds.border(slot) + retune,
            Mark::Return(slot, _) => rounds.border(slot) + retune + rounds.slot(),
            Mark::CfpOver => rounds.ask(0),
            Mark::Ask => rounds.ask(self.ask.map_or(0, |a| a.slot)),
            Mark::RoundOver => rounds.length(),
        };
        let start = self.round.saturating_mul(rounds.length().as_ns());
        let on_air = NetworkTime(start.saturating_add(offset.as_ns()));
        Some(self.config.sync.to_local(on_air)? - rounds.lead())
    }

    pub(super) fn pass_marks(&mut self, now: Instant, radio: &mut dyn Radio) {
        let away = matches!(self.mark, Mark::Cross(..) | Mark::Return(..));
        self.look_at_the_clock(now);
        if away && (self.member.is_none() || self.mark == Mark::CfpOver) {
            // it lost its clock on a visit
            self.mark = Mark::CfpOver;
            self.tune(self.config.cell, radio);
        }
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
            // nobody knows how old it is
            self.borders = Borders::new(self.borders.near());
            self.member = Some(Member::new(self.config.me, self.config.patience));
            (self.round, self.mark, self.ask) = (round + 1, Mark::CfpOver, None);
            self.spoke = None;
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
                self.mark = match self.config.rounds.retune() {
                    Some(_) => Mark::Borders,
                    None => Mark::CfpOver,
                };
            }
            Mark::Borders => self.mark = self.next_visit(0),
            Mark::Visit(slot, border) => {
                self.tune(self.config.cell.neighbour(border), radio);
                self.mark = Mark::Cross(slot, border);
            }
            Mark::Cross(slot, border) => {
                if late {
                    self.counters.overruns += 1;
                } else {
                    self.cross(slot, border, radio);
                }
                self.mark = Mark::Return(slot, border);
            }
            Mark::Return(slot, _) => {
                self.tune(self.config.cell, radio);
                self.mark = self.next_visit(slot + 1);
            }
            Mark::CfpOver => {
                self.borders.age();
                self.expire_ways(self.config.rounds.ask(0));
                let chance = self.chance();
                let member = self.member.as_mut().expect("in a cell");
                if self.spoke.is_none() {
                    member.was_silent();
                }
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
                    self.send(Body::Request(request), Inner::Nothing, radio);
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
        self.counters.without += u64::from(before.is_none());
        self.count(before, after);
        let told = self.leaving.filter(|_| after.is_none() || self.farewell);
        if let Some(cell) = told {
            self.look_back();
            self.config.cell = cell;
            self.leaving = None;
            self.member = Some(Member::new(self.config.me, self.config.patience));
            self.borders = Borders::new(self.borders.near());
            self.tune(cell, radio);
        }
        (self.farewell, self.spoke) = (false, None);
        let round = self.round as u32;
        let sends = self.member.as_ref().and_then(|m| m.sends(round)).is_some();
        self.mark = if sends { Mark::Slot } else { Mark::CfpOver };
    }

    fn count(&mut self, before: Option<u8>, after: Option<u8>) {
        self.counters.granted += u64::from(before.is_none() && after.is_some());
        self.counters.lost += u64::from(before.is_some() && after.is_none());
    }

    fn next_visit(&self, from: u8) -> Mark {
        let owner = self.member.as_ref().and_then(Member::slot).is_some();
        let (me, cell) = (self.config.me, self.config.cell);
        match self.borders.next_visit(me, cell, self.round, from) {
            Some((slot, border)) if owner => Mark::Visit(slot, border),
            _ => Mark::CfpOver,
        }
    }

    /// Tunes to the channel of a cell.
    pub(super) fn tune(&mut self, cell: Cell, radio: &mut dyn Radio) {
        let channel = self.config.channels.map(|c| c[cell.colour()]);
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
        self.expire_ways(self.config.rounds.start(report.slot));
        let waiting = self.above.held.waiting().filter(ready);
        let first = waiting.min_by_key(|(_, h)| h.order()).map(|(i, _)| i);
        let other = self.borders.relay().map(|(_, onward)| onward);
        // what comes from other cells and what the host has itself take turns
        let own = first.filter(|_| other.is_none() || self.was_relay);
        self.was_relay = other.is_some() && own.is_none();
        let (what, onward) = match (own, other) {
            (Some(index), _) => (Inner::Held(index), self.set_off(index)),
            (None, Some(_)) => (Inner::Relay, other),
            (None, None) => (Inner::Nothing, None),
        };
        let between = self.config.rounds.retune().map(|_| Between {
            open: self.borders.heard_lately(),
            onward,
        });
        let body = Body::Report(Report {
            near: self.borders.near(),
            between,
            ..report
        });
        self.spoke = self.send(body, what, radio);
        match what {
            Inner::Held(_) => self.counters.released += 1,
            Inner::Relay => {
                self.counters.relayed += 1;
                self.borders.relayed();
            }
            _ => {}
        }
    }

    /// Sends a message, with a frame in it or without; `None` if too many are not confirmed.
    pub(super) fn send(&mut self, body: Body, what: Inner, radio: &mut dyn Radio) -> Option<Token> {
        let cell = match what {
            Inner::Crossing(border) => self.config.cell.neighbour(border),
            _ => self.config.cell,
        };
        let message = Message {
            cell,
            round: self.round as u32,
            body,
        };
        let mut head = [0; MAX_REPORT_OCTETS];
        let head = message.emit(&mut head);
        let inner = match what {
            Inner::Nothing => &[],
            Inner::Held(index) => self.above.held.get(index).map_or(&[][..], |h| h.frame()),
            Inner::Relay => self.borders.relay().map_or(&[][..], |(frame, _)| frame),
            Inner::Crossing(border) => self.borders.crossing(border).map_or(&[][..], |(frame, _)| frame),
        };
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
        if let Inner::Held(index) = what {
            return Some(self.above.held.launch_as(index, mpdu, &how, radio));
        }
        // a host whose confirms do not come waits for them
        let place = (0..OPEN).find(|i| self.open[*i].is_none())?;
        let token = radio.token();
        self.open[place] = Some(token);
        radio.request(token, mpdu, &how);
        Some(token)
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
                Body::Report(report) => {
                    member.heard(from, report);
                    self.borders.heard(from, report);
                    self.places.forget(from);
                }
                Body::Request(request) => member.requested(from, request),
                Body::Crossing { .. } => {}
            }
            let after = member.slot();
            self.count(before, after);
        }
        let first = match message.body {
            Body::Crossing { from, way, .. } => return self.cross_in(from, way, inner, now, heard, radio),
            Body::Report(report) => self.passes(report.between.and_then(|b| b.onward), inner),
            Body::Request(_) => true,
        };
        if first && !inner.is_empty() {
            let inner = Indication {
                frame: inner,
                ..*heard
            };
            self.above.tell(now, Event::Indication(inner), radio);
        }
    }
}
