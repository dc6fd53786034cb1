//! Sources of traffic: what applications would hand down.
//!
//! Each MSDU begins with its flow, its number and its time, so that whoever sees it arrive knows which one it is.

use crate::core::{Core, Ev};
use crate::rng::{Cause, Stream};
use crate::world::World;
use frame::mac::header::Header;
use frame::{AccessCategory, MacAddr};
use radio::{Instant, Msdu, Protocol};
use std::ops::Range;

/// Octets of the header of a payload: flow (4), number (4), time in ns (8), all little-endian.
pub const HEADER_OCTETS: usize = 16;

/// Octets of LLC/SNAP before a payload.
const LLC_OCTETS: usize = 8;

/// When a source hands down an MSDU.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pattern {
    /// Every `period_ns`, first at `phase_ns`.
    Periodic {
        /// Between two MSDUs, ns.
        period_ns: u64,
        /// Of the first one, ns.
        phase_ns: u64,
    },
    /// At random with exponential pauses of mean `mean_ns`.
    Poisson {
        /// Mean pause, ns.
        mean_ns: u64,
    },
    /// Always `backlog` MSDUs waiting, from `phase_ns` on: a new one for every confirm of a frame with one of its own, and
    /// 1 ms after a refusal.
    Saturated {
        /// MSDUs in the queue.
        backlog: u32,
        /// Start, ns.
        phase_ns: u64,
    },
}

/// A flow of MSDUs from one node.
#[derive(Clone, PartialEq, Debug)]
pub struct Traffic {
    /// Destination.
    pub to: MacAddr,
    /// Access category.
    pub category: AccessCategory,
    /// Octets of each payload, at most 2304; below 16 the header of the payload is cut off.
    pub octets: usize,
    /// When.
    pub pattern: Pattern,
    /// Time after the submission when it is of no use any more, ns.
    pub lifetime_ns: Option<u64>,
    /// MSDUs in all; `None`: no end.
    pub count: Option<u32>,
}

/// What a flow has come to in the time that counts, which is all unless [`World::count_flows`](crate::World::count_flows) says
/// something else.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounts {
    /// MSDUs handed down in that time.
    pub submitted: u64,
    /// Of these, handed up anywhere, whenever that was (a group-addressed one counts at each receiver).
    pub delivered: u64,
    /// MSDUs handed up since that time began, whenever they were handed down.
    pub arrived: u64,
    /// Octets of these.
    pub arrived_octets: u64,
}

pub(crate) struct Source {
    pub node: u32,
    pub traffic: Traffic,
    pub stream: Stream,
    /// MSDUs handed down so far: the number of the next one.
    pub next: u32,
    pub counts: FlowCounts,
    /// MSDUs still to come before a saturated source is full.
    pub fill: u32,
}

/// What the header of a payload says: flow, number, time in ns. `None` if it is too short.
pub fn parse_header(payload: &[u8]) -> Option<(u32, u32, u64)> {
    let word = |at: usize| {
        payload
            .get(at..at + 4)
            .and_then(|b| Some(u32::from_le_bytes(b.try_into().ok()?)))
    };
    let ns = payload
        .get(8..16)
        .and_then(|b| Some(u64::from_le_bytes(b.try_into().ok()?)))?;
    Some((word(0)?, word(4)?, ns))
}

impl<P: Protocol> World<P> {
    /// From now on [`FlowCounts`] are about the MSDUs that are handed down in this time, ns, with its first instant and without its
    /// last.
    pub fn count_flows(&mut self, time: Range<u64>) {
        self.core.flows_count = time;
    }

    /// What has become of a flow.
    pub fn flow(&self, flow: u32) -> FlowCounts {
        self.core.sources[flow as usize].counts
    }

    /// Number of flows.
    pub fn flows(&self) -> u32 {
        self.core.sources.len() as u32
    }
}

impl Core {
    /// Adds a source and plans its first MSDU.
    pub(crate) fn add_source(&mut self, node: u32, traffic: Traffic) -> u32 {
        let index = self.sources.len() as u32;
        let mut stream = Stream::new(self.seed, u64::from(index), Cause::Traffic);
        let first = match traffic.pattern {
            Pattern::Periodic { phase_ns, .. } | Pattern::Saturated { phase_ns, .. } => phase_ns,
            Pattern::Poisson { mean_ns } => stream.exponential(mean_ns as f64) as u64,
        };
        let fill = if let Pattern::Saturated { backlog, .. } = traffic.pattern {
            backlog
        } else {
            0
        };
        if fill > 0 {
            self.nodes[node as usize].saturated = Some(index);
        }
        self.sources.push(Source {
            node,
            traffic,
            stream,
            next: 0,
            counts: FlowCounts::default(),
            fill,
        });
        let at = (self.now + first).max(self.nodes[node as usize].start_ns);
        self.at(at, Ev::Traffic(index));
        index
    }

    /// Writes the next payload of a source and plans the one after; `None` if it is used up.
    pub(crate) fn next_payload(&mut self, index: u32, out: &mut Vec<u8>) -> Option<u32> {
        let (now, counts) = (self.now, self.flows_count.contains(&self.now));
        let s = &mut self.sources[index as usize];
        let number = s.next;
        if s.traffic.count.is_some_and(|n| number >= n) {
            return None;
        }
        s.next = s.next.wrapping_add(1);
        s.counts.submitted += u64::from(counts);
        out.clear();
        out.extend_from_slice(&index.to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&now.to_le_bytes());
        out.resize(s.traffic.octets, 0);
        let node = s.node;
        let next = match s.traffic.pattern {
            Pattern::Periodic { period_ns, .. } => Some(period_ns.max(1)),
            Pattern::Poisson { mean_ns } => Some((s.stream.exponential(mean_ns as f64) as u64).max(1)),
            Pattern::Saturated { .. } => {
                s.fill = s.fill.saturating_sub(1);
                (s.fill > 0).then_some(0)
            }
        };
        if let Some(pause) = next {
            self.at(now + pause, Ev::Traffic(index));
        }
        Some(node)
    }

    /// Which saturated source of a node hands down its next MSDU when the request with this frame ends: the one whose
    /// payload is in it. What a protocol wraps so that nobody knows it counts for the last saturated source of the node;
    /// beacons and other management frames count for none.
    pub(crate) fn refill(&self, node: u32, frame: &[u8]) -> Option<u32> {
        let any = self.nodes[node as usize].saturated?;
        let header = Header::parse(frame).ok().filter(|_| frame[0] & 0x0c == 0x08)?;
        let payload = frame.get(header.octets() + LLC_OCTETS..)?;
        let own = parse_header(payload).and_then(|(flow, number, _)| {
            let source = self.sources.get(flow as usize)?;
            let is_own = source.node == node && number < source.next;
            is_own.then_some((flow, source))
        });
        match own {
            Some((flow, s)) => matches!(s.traffic.pattern, Pattern::Saturated { .. }).then_some(flow),
            None => Some(any),
        }
    }

    /// The MSDU around a payload of source `index`.
    pub(crate) fn msdu<'a>(&self, index: u32, payload: &'a [u8]) -> Msdu<'a> {
        let s = &self.sources[index as usize];
        let shown = self.nodes[s.node as usize].clock.show(self.now);
        let deadline = s
            .traffic
            .lifetime_ns
            .map(|l| Instant::from_ns(shown.saturating_add(l)));
        Msdu {
            peer: s.traffic.to,
            category: s.traffic.category,
            deadline,
            payload,
        }
    }

    /// Notes a delivered payload for the counts of its flow.
    pub(crate) fn count_delivery(&mut self, _node: u32, payload: &[u8]) {
        let Some((flow, _, then_ns)) = parse_header(payload) else {
            return;
        };
        if let Some(s) = self.sources.get_mut(flow as usize) {
            s.counts.delivered += u64::from(self.flows_count.contains(&then_ns));
            if self.now >= self.flows_count.start {
                s.counts.arrived += 1;
                s.counts.arrived_octets += payload.len() as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let mut p = vec![0; 20];
        p[0] = 7;
        p[4] = 9;
        p[8..16].copy_from_slice(&123_456_789_012u64.to_le_bytes());
        assert_eq!(parse_header(&p), Some((7, 9, 123_456_789_012)));
        assert_eq!(parse_header(&p[..15]), None);
    }
}
