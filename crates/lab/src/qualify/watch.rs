//! Watches a run: what became of every message, what was on the air, what the hosts took.
//!
//! A message is handed down once in every cycle. It **misses** when the application at the other end does not have it
//! one cycle later, in true time: never delivered, or delivered one nanosecond late, is a miss.

mod tries;

use super::bench::Span;
use super::tally::{Cause, PLANES, Tally};
use frame::MacAddr;
use frame::mac::Header;
use protocols::mac::data::{ETHERTYPE_PROTOCOL, Received};
use protocols::mac::edf::poll::PollHeader;
use radio::{Confirm, Msdu, Plane};
use sim::Observer;
use sim::clock::Clock;
use sim::trace::{OnAir, ReceptionEnd, Transmission};
use sim::traffic::parse_header;
use std::cell::RefCell;
use std::rc::Rc;
use tries::Tries;

/// No time yet.
const NEVER: u64 = u64::MAX;

/// What is known of one message.
#[derive(Clone, Copy, Debug)]
struct Message {
    /// Delivered to the application at the other end, true time.
    delivered_ns: u64,
    /// Its frame was received without error at the other end, first time.
    received_ns: u64,
    /// Frames with it on the air before its deadline.
    attempts: u16,
    /// Of these, overlapped by other frames of the loop.
    collided: u16,
    /// Of these, overlapped by somebody else.
    disturbed: u16,
}

const UNKNOWN: Message = Message {
    delivered_ns: NEVER,
    received_ns: NEVER,
    attempts: 0,
    collided: 0,
    disturbed: 0,
};

/// Something on the air.
#[derive(Clone, Copy, Debug)]
struct Flying {
    end_ns: u64,
    adapter: u32,
    foreign: bool,
    /// Of this message, if it has one.
    message: Option<usize>,
    collided: bool,
    disturbed: bool,
}

/// What a watch must know of its world.
pub(super) struct About {
    /// Nodes besides the controller.
    pub nodes: u32,
    /// Which part counts.
    pub span: Span,
    /// Host clocks, of the controller first.
    pub clocks: Vec<Clock>,
    /// Release of each node's messages after the start of the cycle, ns; the first is the controller's.
    pub offsets_ns: Vec<u64>,
    /// Nodes send only when the controller has polled them.
    pub polled: bool,
    /// SIFS and ACK, ns.
    pub ack_ns: u64,
}

/// See the [module](self). Flows 0..nodes go down, the next `nodes` go up.
pub(super) struct Watch {
    about: About,
    messages: Vec<Message>,
    flying: Vec<Flying>,
    tries: Tries,
    tally: Tally,
}

impl Watch {
    pub(super) fn new(about: About) -> Watch {
        Watch {
            messages: vec![UNKNOWN; about.span.cycles as usize * 2 * about.nodes as usize],
            flying: Vec::new(),
            tries: Tries::new(about.nodes, about.ack_ns),
            tally: Tally::default(),
            about,
        }
    }

    /// Index of the message with this payload, if it counts.
    fn message(&self, payload: &[u8]) -> Option<usize> {
        let (flow, number, _) = parse_header(payload)?;
        let cycle = number.checked_sub(self.about.span.warm_up)?;
        let flows = 2 * self.about.nodes;
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
            PollHeader::parse(r.payload).filter(|(h, _)| h.data)?.1
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
        }
        missed
    }

    fn cause(&self, m: usize) -> Cause {
        let of = |m: usize| {
            let message = self.messages[m];
            if message.received_ns <= self.deadline_ns(m) {
                Some(Cause::Host)
            } else if message.disturbed > 0 {
                Some(Cause::Interference)
            } else if message.collided > 0 {
                Some(Cause::Collisions)
            } else {
                (message.attempts > 0).then_some(Cause::Losses)
            }
        };
        // an answer that was never sent: its poll may have been lost
        let flows = 2 * self.about.nodes as usize;
        let n = self.about.nodes as usize;
        let other = m - m % flows + (m % flows + n) % flows;
        let lost_poll = || of(other).filter(|c| *c != Cause::Host);
        let never_sent = match self.about.polled && self.messages[other].attempts == 0 {
            true => Cause::NotPolled,
            false => Cause::NoTime,
        };
        of(m).or_else(lost_poll).unwrap_or(never_sent)
    }
}

impl Observer for Watch {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let foreign = t.what == OnAir::Noise || t.node > self.about.nodes;
        let ours = t.what == OnAir::Frame && !foreign;
        let message = if ours { self.message_in(t.frame) } else { None };
        self.flying.retain(|f| f.end_ns > t.start_ns);
        let mut new = Flying {
            end_ns: t.end_ns,
            adapter: t.adapter,
            foreign,
            message,
            collided: false,
            disturbed: false,
        };
        for i in 0..self.flying.len() {
            let mut f = self.flying[i];
            f.meets(&mut new, &mut self.messages);
            new.meets(&mut f, &mut self.messages);
            self.flying[i] = f;
        }
        if let Some(m) = message
            && t.start_ns < self.deadline_ns(m)
        {
            self.messages[m].attempts += 1;
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
        }
        if ours && let Some(to) = Header::parse(t.frame).ok().and_then(|h| node_of(h.receiver())) {
            self.tries.sent(t.node, to, self.counts(t.start_ns));
        }
        self.flying.push(new);
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        if !r.ok || r.adapter > self.about.nodes || r.from > self.about.nodes {
            return;
        }
        match r.what {
            OnAir::Frame => self.tries.arrived(r.from, r.adapter, r.at_ns),
            OnAir::Ack => return self.tries.acked(r.from, r.adapter, r.at_ns),
            _ => return,
        }
        let from = self.flying.iter().rev().find(|f| f.adapter == r.from);
        if let Some(m) = from.and_then(|f| f.message)
            && self.destination(m) == r.adapter
        {
            let seen = &mut self.messages[m].received_ns;
            *seen = (*seen).min(r.at_ns);
        }
    }

    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        if let Some(m) = self.message(msdu.payload)
            && self.destination(m) == node
        {
            let seen = &mut self.messages[m].delivered_ns;
            *seen = (*seen).min(now_ns);
        }
    }

    fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm, exchange_ns: Option<(u64, u64)>) {
        if node > self.about.nodes || !self.counts(now_ns) {
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

/// The node with this address; `None` for groups and foreign ones too.
fn node_of(address: MacAddr) -> Option<u32> {
    let [0x02, 0x00, a, b, c, d] = address.0 else {
        return None;
    };
    u32::from_be_bytes([a, b, c, d]).checked_sub(1)
}

impl Flying {
    /// Notes that `other` overlaps this one.
    fn meets(&mut self, other: &mut Flying, messages: &mut [Message]) {
        let first = if other.foreign {
            !self.disturbed
        } else {
            !self.collided
        };
        if other.foreign {
            self.disturbed = true;
        } else {
            self.collided = true;
        }
        if let Some(m) = self.message.filter(|_| first) {
            let message = &mut messages[m];
            *if other.foreign {
                &mut message.disturbed
            } else {
                &mut message.collided
            } += 1;
        }
    }
}

/// A [`Watch`] that the world holds while somebody else keeps a hand on it.
#[derive(Clone)]
pub(super) struct Shared(pub Rc<RefCell<Watch>>);

impl Observer for Shared {
    fn transmission(&mut self, t: &Transmission<'_>) {
        self.0.borrow_mut().transmission(t);
    }
    fn reception(&mut self, r: &ReceptionEnd) {
        self.0.borrow_mut().reception(r);
    }
    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        self.0.borrow_mut().delivered(now_ns, node, msdu);
    }
    fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm, exchange_ns: Option<(u64, u64)>) {
        self.0.borrow_mut().confirmed(now_ns, node, confirm, exchange_ns);
    }
}

#[cfg(test)]
mod tests;
