//! Watches a run: what became of every message, what was on the air, what the hosts took.
//!
//! A message is handed down once in every cycle. It **misses** when the application at the other end does not have it
//! one cycle later, in true time: never delivered, or delivered one nanosecond late, is a miss. Its cause is what became
//! of its first frame that did not arrive: with that it all began, whatever the repetitions met.

mod about;
mod flight;
mod handover;
mod shared;
mod tries;

use super::tally::{Cause, PLANES, Tally};
pub(super) use about::About;
use flight::{Flight, Load, Message};
use frame::MacAddr;
use frame::mac::{Header, Kind};
use handover::HandOvers;
use protocols::mac::data::{ETHERTYPE_PROTOCOL, Received};
use protocols::mac::edf::poll::PollHeader;
use protocols::mac::tbmac::message::Message as Told;
use radio::{Confirm, Msdu, Outcome, Plane, Token};
pub(super) use shared::Shared;
use sim::Observer;
use sim::trace::{OnAir, ReceptionEnd, Transmission};
use sim::traffic::parse_header;
use tries::Tries;

/// No time yet.
const NEVER: u64 = u64::MAX;

/// On its way to the receiver a frame loses less than this, ns.
const PROPAGATION_NS: u64 = 1_000;

/// A request that has not ended.
#[derive(Clone, Copy, Debug)]
struct Open {
    node: u32,
    token: Token,
    message: usize,
    since_ns: u64,
}

/// See the [module](self). Flows 0..nodes go down, the next `nodes` go up, and those behind them go down from a second access
/// point.
pub(super) struct Watch {
    about: About,
    messages: Vec<Message>,
    flying: Vec<Flight>,
    open: Vec<Open>,
    /// End of the last foreign transmission.
    foreign_end_ns: Option<u64>,
    tries: Tries,
    hand_overs: HandOvers,
    tally: Tally,
}

impl Watch {
    pub(super) fn new(about: About) -> Watch {
        Watch {
            messages: vec![Message::UNKNOWN; about.span.cycles as usize * 2 * about.nodes as usize],
            flying: Vec::new(),
            open: Vec::new(),
            foreign_end_ns: None,
            tries: Tries::new(about.owners.len()),
            hand_overs: HandOvers::new(about.nodes),
            tally: Tally::default(),
            about,
        }
    }

    /// Index of the message with this payload, if it counts.
    fn message(&self, payload: &[u8]) -> Option<usize> {
        let (flow, number, _) = parse_header(payload)?;
        let cycle = number.checked_sub(self.about.span.warm_up)?;
        let flows = 2 * self.about.nodes;
        let flow = if self.about.roams { flow % flows } else { flow };
        (flow < flows && cycle < self.about.span.cycles)
            .then(|| cycle as usize * flows as usize + flow as usize)
    }

    fn release_ns(&self, message: usize) -> u64 {
        let flows = 2 * self.about.nodes as usize;
        let (cycle, flow) = (message / flows, message % flows);
        let offset_ns = self.about.offsets_ns[flow % self.about.nodes as usize + 1];
        self.about.span.begin_ns() + cycle as u64 * self.about.span.cycle_ns + offset_ns
    }

    fn deadline_ns(&self, message: usize) -> u64 {
        self.release_ns(message) + self.about.span.cycle_ns
    }

    /// Node at which a message is to arrive.
    fn destination(&self, message: usize) -> u32 {
        let flow = (message % (2 * self.about.nodes as usize)) as u32;
        if flow < self.about.nodes { flow + 1 } else { 0 }
    }

    /// The message in a frame of the loop.
    fn message_in(&self, frame: &[u8]) -> Option<usize> {
        let r = Received::parse(frame)?;
        let payload = if r.ethertype == ETHERTYPE_PROTOCOL {
            match Told::parse(r.payload) {
                // a frame behind the report of its host
                Some((_, inner)) => Received::parse(inner)?.payload,
                None => PollHeader::parse(r.payload).filter(|(h, _)| h.data)?.1,
            }
        } else {
            r.payload
        };
        self.message(payload)
    }

    fn counts(&self, t: u64) -> bool {
        (self.about.span.begin_ns()..self.about.span.end_ns()).contains(&t)
    }

    /// Everything that was seen; `clusters` cycles in a row are taken to suffer together.
    pub(super) fn finish(mut self, clusters: u32) -> Tally {
        self.land(NEVER);
        self.blame_hand_overs();
        let flows = 2 * self.about.nodes as usize;
        for group in 0..self.about.span.cycles.div_ceil(clusters.max(1)) {
            let first = (group * clusters.max(1)) as usize * flows;
            let last = (first + clusters.max(1) as usize * flows).min(self.messages.len());
            let mut misses = 0;
            for m in first..last {
                misses += u64::from(self.settle(m));
            }
            self.tally.batches.push(misses, (last - first) as u64);
        }
        self.tally.tries = self.tries.finish();
        self.tally.cycles = u64::from(self.about.span.cycles);
        self.tally.span_ns = self.about.span.end_ns() - self.about.span.begin_ns();
        self.tally
    }

    /// Notes what has become of a message; true if it missed.
    fn settle(&mut self, m: usize) -> bool {
        let (message, release) = (self.messages[m], self.release_ns(m));
        let down = m % (2 * self.about.nodes as usize) < self.about.nodes as usize;
        let latency = (message.delivered_ns != NEVER).then(|| message.delivered_ns.saturating_sub(release));
        let side = if down {
            &mut self.tally.down
        } else {
            &mut self.tally.up
        };
        side.push(latency);
        let missed = message.delivered_ns > self.deadline_ns(m);
        if missed {
            self.tally.late += u64::from(latency.is_some());
            let cause = self.cause(m);
            self.tally.causes[cause as usize] += 1;
            self.tally.repeats += u64::from(message.attempts.saturating_sub(1));
            self.tally.repeats_collided += u64::from(message.repeats_collided);
        }
        missed
    }

    fn cause(&self, m: usize) -> Cause {
        let message = self.messages[m];
        if message.failure == Some(Cause::HandOver) {
            return Cause::HandOver;
        }
        if message.received_ns <= self.deadline_ns(m) {
            return match message.delivered_ns {
                NEVER => Cause::NotHandedUp,
                _ => Cause::Host,
            };
        }
        if message.failure.is_some() || message.attempts > 0 || !self.about.polled {
            return message.failure.unwrap_or(Cause::NoTime);
        }
        // an answer that was never sent: its poll may have failed
        let flows = 2 * self.about.nodes as usize;
        let n = self.about.nodes as usize;
        let poll = self.messages[m - m % flows + (m % flows + n) % flows];
        poll.failure.unwrap_or(match poll.attempts {
            0 => Cause::NotPolled,
            _ => Cause::NoTime,
        })
    }

    /// Settles what was over for good by this time.
    fn land(&mut self, now_ns: u64) {
        let Watch {
            flying,
            messages,
            tally,
            ..
        } = self;
        flying.retain(|f| {
            let over = f.end_ns.saturating_add(PROPAGATION_NS) <= now_ns;
            if over {
                f.settle(messages);
                if f.to.is_some() && f.counts && f.was_alone() {
                    tally.alone += 1;
                    tally.alone_lost += u64::from(!f.arrived);
                }
            }
            !over
        });
    }

    /// Somebody else has been on the air since this time.
    fn met_foreign(&self, since_ns: u64) -> bool {
        self.foreign_end_ns.is_some_and(|end| end > since_ns)
    }
}

impl Observer for Watch {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let foreign = t.what == OnAir::Noise || self.about.node(t.node).is_none();
        let ours = t.what == OnAir::Frame && !foreign;
        let message = if ours { self.message_in(t.frame) } else { None };
        self.land(t.start_ns);
        let header = Header::parse(t.frame).ok().filter(|_| ours);
        let to = (header.as_ref())
            .and_then(|h| node_of(h.receiver()))
            .and_then(|n| self.about.node(n));
        let lets_in = header.filter(|h| h.kind() == Kind::ASSOCIATION_RESPONSE);
        let waited = |wait_ns: u64| {
            let from = |end: u64| (end..=end + wait_ns).contains(&t.start_ns);
            self.foreign_end_ns.is_some_and(from)
        };
        let load = message.map(|message| Load {
            message,
            in_time: t.start_ns < self.deadline_ns(message),
            repeats: self.messages[message].attempts > 0,
        });
        let mut new = Flight {
            end_ns: t.end_ns,
            adapter: t.adapter,
            mhz: t.mhz,
            foreign,
            to,
            lets_in: lets_in.map(|_| t.node),
            load,
            counts: self.counts(t.start_ns),
            waited: ours && self.about.wait_ns.is_some_and(waited),
            arrived: false,
            collided: false,
            disturbed: false,
            pushed: false,
        };
        let same = |f: &Flight| f.mhz == t.mhz;
        for f in self
            .flying
            .iter_mut()
            .filter(|f| f.end_ns > t.start_ns && same(f))
        {
            f.meets(&mut new);
        }
        if foreign {
            self.foreign_end_ns = self.foreign_end_ns.max(Some(t.end_ns));
        }
        if let Some(load) = load.filter(|l| l.in_time) {
            self.messages[load.message].attempts += 1;
        }
        if self.counts(t.start_ns) {
            let took = t.end_ns - t.start_ns;
            let air = &mut self.tally.air;
            *match (foreign, t.what) {
                (true, _) => &mut air.foreign_ns,
                (_, OnAir::Ack) => &mut air.ack_ns,
                (_, OnAir::Frame) if message.is_some() => &mut air.data_ns,
                _ => &mut air.overhead_ns,
            } += took;
            if ours {
                self.tally.attempts += 1;
                self.tally.collided += u64::from(new.collided);
                self.tally.disturbed += u64::from(new.disturbed);
            }
            if message.is_some() {
                *self.tally.own.rates.entry(t.rate).or_default() += 1;
            }
        }
        if let Some(to) = to {
            // a frame whose NAV ends with it leaves no time for an ACK
            let asks = header.is_some_and(|h| h.duration() > 0);
            let ack_ns = asks.then(|| self.about.ack_ns(t.rate));
            self.tries.sent(t.adapter, to, ack_ns, self.counts(t.start_ns));
        }
        self.flying.push(new);
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        let (Some(at), Some(from)) = (self.about.at(r.adapter), self.about.at(r.from)) else {
            return;
        };
        match r.what {
            _ if !r.ok => return,
            OnAir::Frame => self.tries.arrived(r.from, at, r.at_ns),
            OnAir::Ack => return self.tries.acked(from, r.adapter, r.at_ns),
            _ => return,
        }
        let Some(flight) = self.flying.iter_mut().rev().find(|f| f.adapter == r.from) else {
            return;
        };
        flight.arrived |= flight.to == Some(at);
        if let Some(ap) = flight.lets_in.filter(|_| flight.to == Some(at)) {
            self.hand_overs.let_in(at, ap, r.at_ns);
        }
        let message = flight.load.map(|l| l.message);
        if let Some(m) = message.filter(|m| self.destination(*m) == at) {
            let seen = &mut self.messages[m].received_ns;
            *seen = (*seen).min(r.at_ns);
        }
    }

    fn requested(&mut self, now_ns: u64, node: u32, token: Token, frame: &[u8]) {
        if self.about.wait_ns.is_none() || self.about.node(node).is_none() {
            return;
        }
        if let Some(message) = self.message_in(frame) {
            self.open.push(Open {
                node,
                token,
                message,
                since_ns: now_ns,
            });
        }
    }

    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        if let Some(m) = self.message(msdu.payload)
            && Some(self.destination(m)) == self.about.node(node)
        {
            let seen = &mut self.messages[m].delivered_ns;
            *seen = (*seen).min(now_ns);
        }
    }

    fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm, exchange_ns: Option<(u64, u64)>) {
        let is_this = |o: &Open| (o.node, o.token) == (node, confirm.token);
        if let Some(i) = self.open.iter().position(is_this) {
            let open = self.open.swap_remove(i);
            // it waited for the channel until it was of no use, while others had it
            if confirm.outcome == Outcome::Expired && exchange_ns.is_none() && self.met_foreign(open.since_ns)
            {
                let failure = &mut self.messages[open.message].failure;
                failure.get_or_insert(Cause::Interference);
            }
        }
        if self.about.node(node).is_none() || !self.counts(now_ns) {
            return;
        }
        let Some((start, end)) = exchange_ns.filter(|_| confirm.outcome.is_acked()) else {
            return;
        };
        self.tally.acked += 1;
        let clock = self.about.clocks[node as usize];
        let stamp = |p: Plane| confirm.stamps.get_host(p).map(|t| t.as_ns());
        let points = [
            stamp(Plane::T1),
            stamp(Plane::T2),
            stamp(Plane::T3),
            stamp(Plane::T4),
            Some(clock.show(start)),
            Some(clock.show(end)),
            stamp(Plane::T5),
            stamp(Plane::T6),
            stamp(Plane::T7),
            stamp(Plane::T8),
            stamp(Plane::T9),
        ];
        for i in 0..PLANES {
            if let (Some(a), Some(b)) = (points[i], points[i + 1]) {
                self.tally.planes[i].push(b.saturating_sub(a));
            }
        }
    }
}

/// The node of the world with this address; `None` for groups.
pub(super) fn node_of(address: MacAddr) -> Option<u32> {
    let [0x02, 0x00, a, b, c, d] = address.0 else {
        return None;
    };
    u32::from_be_bytes([a, b, c, d]).checked_sub(1)
}

#[cfg(test)]
mod tests;
