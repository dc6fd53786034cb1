//! The other side of a [`Coordinator`](super::coordinator): a node that sends only when it is polled.
//!
//! It keeps the freshest MSDU that the application has submitted. A poll is answered at once, with one one-shot:
//! with that MSDU, or with an empty answer if there is none or its deadline is over. The MSDU stays until an
//! answer with it was acknowledged, or a fresher one comes.

use super::poll::{POLL_OCTETS, PollHeader};
use crate::mac::data::{ETHERTYPE_PROTOCOL, Framer, Identity, MAX_DATA_OCTETS, MAX_PAYLOAD_OCTETS, Received};
use crate::mac::overlay::{Access, AccessSetting};
use crate::mac::tally::Tally;
use frame::{AccessCategory, MacAddr};
use radio::{Confirm, Duration, Event, Instant, Msdu, Outcome, Protocol, Radio, Token, TxHow};

/// How a [`Responder`] answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResponderConfig {
    /// Who it is.
    pub identity: Identity,
    /// Whose polls it answers.
    pub coordinator: MacAddr,
    /// How answers are sent; should be one-shots.
    pub how: TxHow,
    /// QoS data instead of plain data.
    pub qos: bool,
    /// From the indication of a poll: an answer that has not started by then is not sent, because the coordinator
    /// has gone on. Should be a high quantile of the time to the first bit of the answer. That is the way of the
    /// request through the host, or the rest of the ACK of the poll and the interframe space after it where these
    /// take longer (the node may hear the poll while its adapter still answers it); and besides, where others use
    /// the channel too, the wait for their longest frame. [`CoordinatorConfig::answer`] covers the same time and
    /// the way of the answer up.
    ///
    /// [`CoordinatorConfig::answer`]: super::coordinator::CoordinatorConfig::answer
    pub within: Duration,
    /// So many times `within` after the poll the answer counts as gone, if it has no confirm then: the host may have lost it.
    /// Until then further polls are left alone, lest two answers be below. Usual is [`PATIENCE`](super::PATIENCE).
    pub patience: u32,
    /// Channel access to be set at the start. Answers follow the ACK of the poll closely, so without a backoff of
    /// zero most of them are late: see [`Access::without_backoff`].
    pub access: Option<Access>,
}

/// What a [`Responder`] has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResponderCounters {
    /// Polls heard.
    pub polls: u64,
    /// Of these, left unanswered because the answer before was not confirmed yet.
    pub busy: u64,
    /// Answers whose confirm had not come when there was another poll, and time enough for it. They count as
    /// [`Outcome::Unknown`] in `answers`, whatever comes later.
    pub silent: u64,
    /// Answers without an MSDU.
    pub empty: u64,
    /// Outcomes of all answers.
    pub answers: Tally,
    /// MSDUs submitted.
    pub submitted: u64,
    /// Of these, replaced by a fresher one before an answer with them was acknowledged.
    pub replaced: u64,
    /// Of these, not taken because they are longer than `L`.
    pub too_long: u64,
    /// Of these, too old when their turn came.
    pub expired: u64,
    /// MSDUs delivered.
    pub delivered: u64,
    /// MSDUs that had been delivered before.
    pub duplicates: u64,
}

/// See the [module](self). Keeps one MSDU of up to `L` octets.
#[derive(Clone, Debug)]
pub struct Responder<const L: usize = 1500> {
    config: ResponderConfig,
    framer: Framer,
    access: AccessSetting,
    fresh: Option<Fresh>,
    payload: [u8; L],
    next_number: u16,
    heard: Option<u16>,
    flying: Option<Answer>,
    counters: ResponderCounters,
}

/// The answer that is below.
#[derive(Clone, Copy, Debug)]
struct Answer {
    token: Token,
    /// Of the MSDU in it.
    number: Option<u16>,
    /// So long its confirm is awaited.
    until: Instant,
}

/// The freshest MSDU; its octets are in `payload`.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    number: u16,
    octets: usize,
    category: AccessCategory,
    deadline: Option<Instant>,
}

impl<const L: usize> Responder<L> {
    /// A node that has heard nothing yet.
    pub fn new(config: ResponderConfig) -> Self {
        Responder {
            framer: Framer::new(config.identity, config.qos, ETHERTYPE_PROTOCOL),
            access: AccessSetting::new(config.access),
            config,
            fresh: None,
            payload: [0; L],
            next_number: 0,
            heard: None,
            flying: None,
            counters: ResponderCounters::default(),
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> &ResponderCounters {
        &self.counters
    }

    /// Whether the host took the channel access parameters; `None` if it has not answered or none were asked for.
    pub fn access_taken(&self) -> Option<bool> {
        self.access.taken()
    }

    fn submit(&mut self, msdu: &Msdu<'_>) {
        self.counters.submitted += 1;
        let octets = msdu.payload.len();
        // what does not fit a frame would never go
        let fits = octets <= MAX_PAYLOAD_OCTETS - POLL_OCTETS;
        let Some(place) = self.payload.get_mut(..octets).filter(|_| fits) else {
            self.counters.too_long += 1;
            return;
        };
        place.copy_from_slice(msdu.payload);
        let fresh = Fresh {
            number: self.next_number,
            octets,
            category: msdu.category,
            deadline: msdu.deadline,
        };
        self.counters.replaced += u64::from(self.fresh.replace(fresh).is_some());
        self.next_number = self.next_number.wrapping_add(1);
    }

    fn receive(&mut self, now: Instant, mpdu: &[u8], radio: &mut dyn Radio) {
        let (me, coordinator) = (self.config.identity.me, self.config.coordinator);
        let mine = |r: &Received<'_>| {
            r.ethertype == ETHERTYPE_PROTOCOL && r.source == coordinator && r.destination == me
        };
        let Some(r) = Received::parse(mpdu).filter(mine) else {
            return;
        };
        let Some((header, payload)) = PollHeader::parse(r.payload).filter(|(h, _)| !h.answer) else {
            return;
        };
        if header.poll {
            self.answer(now, header.exchange, radio);
        }
        if header.data {
            if self.heard == Some(header.number) {
                self.counters.duplicates += 1;
                return;
            }
            self.heard = Some(header.number);
            self.counters.delivered += 1;
            radio.deliver(Msdu {
                peer: r.source,
                category: r.category(),
                deadline: None,
                payload,
            });
        }
    }

    fn answer(&mut self, now: Instant, exchange: u16, radio: &mut dyn Radio) {
        self.counters.polls += 1;
        match self.flying {
            Some(answer) if now < answer.until => {
                self.counters.busy += 1;
                return;
            }
            Some(lost) => {
                let rate = self.config.how.series.as_slice()[0].rate;
                let unknown = Confirm::without_air(lost.token, Outcome::Unknown, rate);
                self.counters.silent += 1;
                self.counters.answers.note(&unknown);
            }
            None => {}
        }
        let over = |f: &Fresh| f.deadline.is_some_and(|t| t < now);
        if self.fresh.as_ref().is_some_and(over) {
            self.fresh = None;
            self.counters.expired += 1;
        }
        self.counters.empty += u64::from(self.fresh.is_none());
        let header = PollHeader {
            data: self.fresh.is_some(),
            poll: false,
            answer: true,
            exchange,
            number: self.fresh.map_or(0, |f| f.number),
        };
        let payload = &self.payload[..self.fresh.map_or(0, |f| f.octets)];
        let category = self.fresh.map_or(AccessCategory::default(), |f| f.category);
        let mut out = [0; MAX_DATA_OCTETS];
        let to = self.config.coordinator;
        let mpdu = self
            .framer
            .frame(to, category, false, &header.emit(), payload, &mut out);
        let mpdu = mpdu.expect("what does not fit is not taken in");
        let latest = now + self.config.within;
        let deadline = self.fresh.and_then(|f| f.deadline);
        let how = self
            .config
            .how
            .expires(deadline.map_or(latest, |t| t.min(latest)));
        let token = radio.token();
        self.flying = Some(Answer {
            token,
            number: self.fresh.map(|f| f.number),
            until: now + self.config.within.times(self.config.patience.into()),
        });
        radio.request(token, mpdu, &how);
    }
}

impl<const L: usize> Protocol for Responder<L> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.access.start(radio),
            Event::Submit(msdu) => self.submit(&msdu),
            Event::Indication(i) => self.receive(now, i.frame, radio),
            Event::Confirm(c) => {
                if let Some(Answer { token, number, .. }) = self.flying
                    && token == c.token
                {
                    self.flying = None;
                    self.counters.answers.note(&c);
                    let done = c.outcome == Outcome::Acked && number.is_some();
                    if done && self.fresh.map(|f| f.number) == number {
                        self.fresh = None;
                    }
                }
            }
            Event::Set(answer) => {
                self.access.is_answered_by(&answer);
            }
            Event::Timer | Event::Beacon(_) => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
