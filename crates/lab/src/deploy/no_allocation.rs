//! A deployed node does not allocate once it runs: neither for what it sends, nor for what comes back, nor for what arrives.

use std::path::Path;

use radio::{
    Application, Confirm, Event, Instant, MAX_FRAME_OCTETS, Msdu, Outcome, Plane, Protocol, Refusal, Stamps,
};

use super::feed::Feed;
use super::watched::Watched;
use super::{Scenario, station};
use crate::counting::{Still, allocations};

/// Two nodes with each kind of traffic between them.
const TWO: &str = r#"
[run]
duration = "20s"
[[group]]
name = "a"
protocol.sender = { rate = "54M" }
[[group]]
name = "b"
protocol.sender = { rate = "54M" }
[[traffic]]
from = "a"
to = "b"
octets = 58
pattern.saturated = { backlog = 3 }
[[traffic]]
from = "a"
to = "b"
octets = 58
pattern.poisson = { mean = "2ms" }
[[traffic]]
from = "b"
to = "a"
octets = 58
pattern.periodic = { period = "1ms" }
[[traffic]]
from = "b"
to = "a"
octets = 58
pattern.poisson = { mean = "1ms" }
"#;
const ENDS: [Outcome; 12] = [
    Outcome::Acked,
    Outcome::NotAcked,
    Outcome::Unknown,
    Outcome::Expired,
    Outcome::Refused(Refusal::QueueFull),
    Outcome::Refused(Refusal::BadFrame),
    Outcome::Refused(Refusal::RateNotSupported),
    Outcome::Refused(Refusal::ChannelForbidden),
    Outcome::Refused(Refusal::AddressForbidden),
    Outcome::Refused(Refusal::NotSupported),
    Outcome::Refused(Refusal::NoAdapter),
    Outcome::Refused(Refusal::NoPermission),
];

/// A node with its application, as a host drives them.
struct Node {
    watched: Watched,
    feed: Feed,
    radio: Still,
    payload: [u8; MAX_FRAME_OCTETS],
    ended: u64,
}

impl Node {
    fn new() -> Node {
        let scenario = Scenario::parse(Path::new("two.toml"), TWO, &[]).unwrap_or_else(|e| panic!("{e}"));
        let station = station(&scenario, "a", 1).unwrap();
        let mut feed = Feed::new(station.flows, &station.room, 1, 64);
        feed.start(Instant::ZERO, Instant::ZERO, Instant::MAX);
        let watched = Watched::new(station.program, &feed.sources, 1 << 20);
        Node {
            watched,
            feed,
            radio: Still::new(),
            payload: [0; MAX_FRAME_OCTETS],
            ended: 0,
        }
    }

    fn handle(&mut self, now: Instant, event: Event<'_>) {
        self.watched.handle(now, event, &mut self.radio);
    }

    /// What is due goes out, and all of it comes back.
    fn send(&mut self, now: Instant) {
        let mut payload = self.payload;
        while let Some(s) = self.feed.take(now, &mut payload) {
            let msdu = Msdu {
                category: s.category,
                deadline: s.deadline,
                ..Msdu::new(s.peer, &payload[..s.octets])
            };
            self.handle(now, Event::Submit(msdu));
        }
        while self.watched.deadline().is_some_and(|at| at <= now) {
            self.handle(now, Event::Timer);
        }
        while let Some(token) = self.radio.take() {
            let end = ENDS[self.ended as usize % ENDS.len()];
            self.ended += 1;
            let mut confirm = Confirm::without_air(token, end, frame::Rate::OFDM_54);
            if !matches!(end, Outcome::Refused(_)) {
                let mut stamps = Stamps::NONE;
                Plane::ALL.into_iter().for_each(|p| stamps.host(p, now));
                (confirm.attempts, confirm.stamps) = (1, stamps);
            }
            self.handle(now, Event::Confirm(confirm));
        }
    }

    /// One of a flow arrives.
    fn arrive(&mut self, now: Instant, flow: u32, number: u32) {
        let mut payload = [0; 50];
        payload[..4].copy_from_slice(&flow.to_le_bytes());
        payload[4..8].copy_from_slice(&number.to_le_bytes());
        payload[8..16].copy_from_slice(&now.as_ns().to_le_bytes());
        self.feed
            .deliver(now, Msdu::new(frame::MacAddr::local(1), &payload));
    }
}

#[test]
fn a_running_node_allocates_nothing() {
    let mut node = Node::new();
    node.handle(Instant::ZERO, Event::Start);
    let count = allocations(|| {
        for ms in 0..20_000_u32 {
            let now = Instant::from_us(1_000 * u64::from(ms));
            node.send(now);
            // Those of the scenario, the last number that a flow can have, and what is none of its traffic.
            for (flow, number) in [(2, ms), (3, ms), (3, u32::MAX), (7, ms), (u32::MAX, ms)] {
                node.arrive(now, flow, number);
            }
            node.feed
                .deliver(now, Msdu::new(frame::MacAddr::local(1), b"short"));
        }
    });
    assert_eq!(count, 0);
    assert!(node.ended > 50_000, "{}", node.ended);
    assert_eq!(node.watched.refusals.iter().count(), 8);
    for flow in [2, 3] {
        assert_eq!(node.feed.arrived.count(flow, 0..20_000), 20_000, "{flow}");
    }
}
