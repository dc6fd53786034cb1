//! Watches a run: what became of every message, what was on the air, what the hosts took.
//!
//! A message is handed down at the start of a cycle. It **misses** when the application at the other end does not
//! have it at the end of that cycle, in true time: never delivered, or delivered one nanosecond late, is a miss.

use super::bench::Span;
use super::tally::{Cause, PLANES, Tally};
use protocols::mac::data::{ETHERTYPE_PROTOCOL, Received};
use protocols::mac::edf::poll::PollHeader;
use radio::{Confirm, Msdu, Plane};
use sim::Observer;
use sim::clock::Clock;
use sim::trace::{OnAir, ReceptionEnd, Transmission};
use sim::traffic::parse_header;
use std::cell::RefCell;
use std::rc::Rc;

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

/// See the [module](self). Flows 0..nodes go down, the next `nodes` go up.
pub(super) struct Watch {
    nodes: u32,
    span: Span,
    clocks: Vec<Clock>,
    messages: Vec<Message>,
    flying: Vec<Flying>,
    tally: Tally,
}

impl Watch {
    pub(super) fn new(nodes: u32, span: Span, clocks: Vec<Clock>) -> Watch {
        Watch {
            nodes,
            span,
            clocks,
            messages: vec![UNKNOWN; span.cycles as usize * 2 * nodes as usize],
            flying: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Index of the message with this payload, if it counts.
    fn message(&self, payload: &[u8]) -> Option<usize> {
        let (flow, number, _) = parse_header(payload)?;
        let cycle = number.checked_sub(self.span.warm_up)?;
        let flows = 2 * self.nodes;
        (flow < flows && cycle < self.span.cycles).then(|| cycle as usize * flows as usize + flow as usize)
    }

    fn release_ns(&self, message: usize) -> u64 {
        let cycle = message / (2 * self.nodes as usize);
        self.span.begin_ns() + cycle as u64 * self.span.cycle_ns
    }

    fn deadline_ns(&self, message: usize) -> u64 {
        self.release_ns(message) + self.span.cycle_ns
    }

    /// Node at which a message is to arrive.
    fn destination(&self, message: usize) -> u32 {
        let flow = (message % (2 * self.nodes as usize)) as u32;
        if flow < self.nodes { flow + 1 } else { 0 }
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
        (self.span.begin_ns()..self.span.end_ns()).contains(&t)
    }

    /// Everything that was seen; `clusters` cycles in a row are taken to suffer together.
    pub(super) fn finish(mut self, clusters: u32) -> Tally {
        let flows = 2 * self.nodes as usize;
        for group in 0..self.span.cycles.div_ceil(clusters.max(1)) {
            let first = (group * clusters.max(1)) as usize * flows;
            let last = (first + clusters.max(1) as usize * flows).min(self.messages.len());
            let mut misses = 0;
            for m in first..last {
                misses += u64::from(self.settle(m));
            }
            self.tally.batches.push(misses, (last - first) as u64);
        }
        self.tally.cycles = u64::from(self.span.cycles);
        self.tally.span_ns = self.span.end_ns() - self.span.begin_ns();
        self.tally
    }

    /// Notes what has become of a message; true if it missed.
    fn settle(&mut self, m: usize) -> bool {
        let (message, release) = (self.messages[m], self.release_ns(m));
        let down = m % (2 * self.nodes as usize) < self.nodes as usize;
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
        let flows = 2 * self.nodes as usize;
        let n = self.nodes as usize;
        let other = m - m % flows + (m % flows + n) % flows;
        let lost_poll = || of(other).filter(|c| *c != Cause::Host);
        of(m).or_else(lost_poll).unwrap_or(Cause::NoTime)
    }
}

impl Observer for Watch {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let foreign = t.what == OnAir::Noise || t.node > self.nodes;
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
        self.flying.push(new);
    }

    fn reception(&mut self, r: &ReceptionEnd) {
        if !r.ok || r.what != OnAir::Frame || r.adapter > self.nodes {
            return;
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
        if node > self.nodes || !self.counts(now_ns) {
            return;
        }
        let Some((start, end)) = exchange_ns.filter(|_| confirm.outcome.is_acked()) else {
            return;
        };
        self.tally.acked += 1;
        let clock = self.clocks[node as usize];
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
mod tests {
    use super::*;
    use frame::{MacAddr, Rate};
    use protocols::mac::data::{ETHERTYPE_PAYLOAD, Framer, Identity};

    /// Two nodes, cycles of 1 ms, one cycle of warm-up, two that count: those that start at 2 ms and 3 ms.
    fn watch() -> Watch {
        let span = Span {
            cycle_ns: 1_000_000,
            first_ns: 1_000_000,
            warm_up: 1,
            cycles: 2,
        };
        Watch::new(2, span, vec![Clock::default(); 3])
    }

    fn payload(flow: u32, cycle: u32) -> Vec<u8> {
        let mut p = flow.to_le_bytes().to_vec();
        p.extend(cycle.to_le_bytes());
        p.extend([0; 12]);
        p
    }

    fn deliver(w: &mut Watch, at_ns: u64, node: u32, flow: u32, cycle: u32) {
        w.delivered(at_ns, node, &Msdu::new(MacAddr::local(9), &payload(flow, cycle)));
    }

    fn send(w: &mut Watch, start_ns: u64, node: u32, flow: u32, cycle: u32) {
        let identity = Identity::station(MacAddr::local(node + 1), MacAddr::local(1));
        let mut f = Framer::new(identity, true, ETHERTYPE_PAYLOAD);
        let mut out = [0; 128];
        let frame = f
            .frame(
                MacAddr::local(1),
                Default::default(),
                false,
                &[],
                &payload(flow, cycle),
                &mut out,
            )
            .unwrap();
        w.transmission(&Transmission {
            start_ns,
            end_ns: start_ns + 36_000,
            adapter: node,
            node,
            what: OnAir::Frame,
            rate: Rate::OFDM_54,
            mhz: 5180,
            frame,
            attempt: 1,
            octets: frame.len() as u32 + 4,
        });
    }

    fn receive(w: &mut Watch, at_ns: u64, from: u32, at: u32) {
        w.reception(&ReceptionEnd {
            at_ns,
            adapter: at,
            from,
            what: OnAir::Frame,
            ok: true,
            signal_dbm: -50,
        });
    }

    #[test]
    fn a_message_is_met_until_the_end_of_its_cycle() {
        let mut w = watch();
        // cycle 1 of the application is the first that counts; it ends at 3 ms
        deliver(&mut w, 2_500_000, 1, 0, 1);
        deliver(&mut w, 3_000_000, 2, 1, 1);
        deliver(&mut w, 3_000_001, 0, 2, 1);
        // flow 3 of cycle 1 never arrives; cycle 2 arrives but for one that another node got
        deliver(&mut w, 3_100_000, 1, 0, 2);
        deliver(&mut w, 3_100_000, 1, 1, 2);
        deliver(&mut w, 3_200_000, 0, 2, 2);
        deliver(&mut w, 3_900_000, 0, 3, 2);
        // a copy changes nothing, cycles of the warm-up and after the end neither
        deliver(&mut w, 3_950_000, 0, 3, 2);
        deliver(&mut w, 1_100_000, 1, 0, 0);
        deliver(&mut w, 4_100_000, 1, 0, 3);
        let t = w.finish(1);
        assert_eq!(
            (t.batches.batches(), t.batches.trials(), t.batches.misses()),
            (2, 8, 3)
        );
        assert_eq!((t.late, t.down.lost(), t.up.lost()), (1, 1, 1));
        // within the 0.1 % of the histogram
        assert!(t.down.quantile_ns(0.5).unwrap().abs_diff(500_000) <= 500);
        assert_eq!(t.up.max_ns(), None, "one never came");
        assert_eq!(t.causes[Cause::NoTime as usize], 3);
    }

    #[test]
    fn cycles_in_a_row_can_count_as_one() {
        let mut w = watch();
        deliver(&mut w, 2_500_000, 1, 0, 1);
        let t = w.finish(2);
        assert_eq!((t.batches.batches(), t.batches.misses()), (1, 7));
    }

    #[test]
    fn causes_of_misses() {
        let mut w = watch();
        // two frames overlap
        send(&mut w, 2_000_000, 1, 2, 1);
        send(&mut w, 2_000_001, 2, 3, 1);
        // one is lost alone on the air
        send(&mut w, 2_100_000, 0, 0, 1);
        // one is received and its application sleeps
        send(&mut w, 2_200_000, 0, 1, 1);
        receive(&mut w, 2_236_000, 0, 2);
        deliver(&mut w, 3_500_000, 2, 1, 1);
        // one meets noise
        send(&mut w, 3_200_000, 0, 0, 2);
        w.transmission(&Transmission {
            start_ns: 3_210_000,
            end_ns: 3_220_000,
            adapter: 9,
            node: u32::MAX,
            what: OnAir::Noise,
            rate: Rate::OFDM_6,
            mhz: 5180,
            frame: &[],
            attempt: 0,
            octets: 0,
        });
        deliver(&mut w, 3_100_000, 2, 1, 2);
        deliver(&mut w, 3_100_000, 0, 3, 2);
        let t = w.finish(1);
        let of = |c: Cause| t.causes[c as usize];
        assert_eq!(of(Cause::Collisions), 2);
        assert_eq!(of(Cause::Losses), 1);
        assert_eq!(of(Cause::Host), 1);
        // the poll was disturbed, so its answer could not come either
        assert_eq!(of(Cause::Interference), 2);
        assert_eq!(of(Cause::NoTime), 0);
        assert_eq!(
            (t.attempts, t.collided, t.disturbed),
            (5, 1, 0),
            "the later of the two meets the earlier"
        );
        assert_eq!((t.air.data_ns, t.air.foreign_ns), (5 * 36_000, 10_000));
    }
}
