//! Datagrams over several hops of an ad hoc network: a node above [`Ibss`], which queues and announces them. Routes are set
//! by hand.
//!
//! Towards the protocol above it is like any innermost protocol: MSDUs go down and come up, with the far end as their
//! peer. In between a datagram has a [`Header`], and the table of routes tells the link layer whom it is for in the end: with
//! multi-hop power save the whole way is awake for it.

use super::forward::MOST_HOPS;
use super::header::{HEADER_OCTETS, Header};
use crate::mac::ibss::{Ibss, IbssConfig, Routing};
use frame::{AccessCategory, MacAddr};
use radio::{Event, Instant, Msdu, Protocol, Radio, Tap};

/// Up to `N` destinations, each with its next hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteTable<const N: usize = 32> {
    routes: [Option<(MacAddr, MacAddr)>; N],
}

impl<const N: usize> RouteTable<N> {
    /// These routes: destinations, each with its next hop. Those for which there is no room are left out.
    pub fn new(routes: impl IntoIterator<Item = (MacAddr, MacAddr)>) -> Self {
        let mut routes = routes.into_iter();
        RouteTable {
            routes: core::array::from_fn(|_| routes.next()),
        }
    }
}

impl<const N: usize> Routing for RouteTable<N> {
    fn destination(&self, next: MacAddr, payload: &[u8]) -> MacAddr {
        Header::parse(payload).map_or(next, |(header, _)| header.destination)
    }

    fn next_hop(&self, destination: MacAddr) -> Option<MacAddr> {
        let mut routes = self.routes.iter().flatten();
        routes.find(|(to, _)| *to == destination).map(|(_, next)| *next)
    }
}

/// What a node has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RelayCounters {
    /// Datagrams of others that it passed on.
    pub forwarded: u64,
    /// Lost because there was no route, or too many hops.
    pub unroutable: u64,
    /// MSDUs that are too long with the header.
    pub too_long: u64,
    /// What came and is no datagram.
    pub foreign: u64,
}

/// A datagram of somebody else's, on its way through this node.
#[derive(Clone, Debug)]
struct Transit<const L: usize> {
    destination: MacAddr,
    category: AccessCategory,
    octets: [u8; L],
    /// 0: there is none.
    length: usize,
}

impl<const L: usize> Transit<L> {
    /// Takes in a datagram that may go on. False: it has come too far.
    fn take(&mut self, category: AccessCategory, header: &Header, payload: &[u8]) -> bool {
        let Some(hops_left @ 1..) = header.hops_left.checked_sub(1) else {
            return false;
        };
        self.destination = header.destination;
        self.category = category;
        self.length = write(&Header { hops_left, ..*header }, payload, &mut self.octets).unwrap_or(0);
        true
    }
}

/// See the [module](self). The link layer has room for `Q` datagrams of up to `L` octets with their header, the table for `N`
/// routes.
#[derive(Clone, Debug)]
pub struct Relay<const Q: usize = 16, const L: usize = 1_500, const N: usize = 32> {
    me: MacAddr,
    link: Ibss<Q, L, RouteTable<N>>,
    transit: Transit<L>,
    counters: RelayCounters,
}

impl<const Q: usize, const L: usize, const N: usize> Relay<Q, L, N> {
    /// A node with these routes.
    pub fn new(config: IbssConfig, routes: RouteTable<N>) -> Self {
        Relay {
            me: config.me,
            link: Ibss::with_routing(config, routes),
            transit: Transit {
                destination: config.me,
                category: AccessCategory::BestEffort,
                octets: [0; L],
                length: 0,
            },
            counters: RelayCounters::default(),
        }
    }

    /// Its link layer.
    pub fn link(&self) -> &Ibss<Q, L, RouteTable<N>> {
        &self.link
    }

    /// Its link layer, to be told what is known later than its config.
    pub fn link_mut(&mut self) -> &mut Ibss<Q, L, RouteTable<N>> {
        &mut self.link
    }

    /// What it has counted.
    pub fn counters(&self) -> &RelayCounters {
        &self.counters
    }

    fn submit(&mut self, now: Instant, msdu: &Msdu<'_>, radio: &mut dyn Radio) {
        let next = match msdu.peer.is_group() {
            true => Some(msdu.peer),
            false => self.link.routing().next_hop(msdu.peer),
        };
        let Some(next) = next else {
            self.counters.unroutable += 1;
            return;
        };
        let header = Header {
            hops_left: MOST_HOPS,
            from_port: 0,
            to_port: 0,
            source: self.me,
            destination: msdu.peer,
        };
        let mut octets = [0; L];
        let Some(length) = write(&header, msdu.payload, &mut octets) else {
            self.counters.too_long += 1;
            return;
        };
        let down = Msdu {
            peer: next,
            payload: &octets[..length],
            ..*msdu
        };
        self.link.handle(now, Event::Submit(down), radio);
    }

    /// Sends what is on its way to its next hop.
    fn pass_on(&mut self, now: Instant, radio: &mut dyn Radio) {
        let Some(next) = self.link.routing().next_hop(self.transit.destination) else {
            self.counters.unroutable += 1;
            return;
        };
        self.counters.forwarded += 1;
        let msdu = Msdu {
            category: self.transit.category,
            ..Msdu::new(next, &self.transit.octets[..self.transit.length])
        };
        self.link.handle(now, Event::Submit(msdu), radio);
    }
}

/// Writes a datagram and tells its octets; `None`: it is too long.
fn write(header: &Header, payload: &[u8], out: &mut [u8]) -> Option<usize> {
    let length = HEADER_OCTETS + payload.len();
    let (head, rest) = out.get_mut(..length)?.split_at_mut(HEADER_OCTETS);
    head.copy_from_slice(&header.octets());
    rest.copy_from_slice(payload);
    Some(length)
}

impl<const Q: usize, const L: usize, const N: usize> Protocol for Relay<Q, L, N> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if let Event::Submit(msdu) = &event {
            return self.submit(now, msdu, radio);
        }
        let (me, transit, counters) = (self.me, &mut self.transit, &mut self.counters);
        transit.length = 0;
        let up = |msdu: Msdu<'_>, radio: &mut dyn Radio| {
            let Some((header, payload)) = Header::parse(msdu.payload) else {
                counters.foreign += 1;
                return;
            };
            if header.destination == me || header.destination.is_group() {
                let peer = header.source;
                radio.deliver(Msdu {
                    peer,
                    payload,
                    ..msdu
                });
            } else if !transit.take(msdu.category, &header, payload) {
                counters.unroutable += 1;
            }
        };
        self.link
            .handle(now, event, &mut Tap::delivering(&mut *radio, up));
        if self.transit.length > 0 {
            self.pass_on(now, radio);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.link.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Room;
    use frame::Rate;
    use radio::Duration;

    const MS: u64 = 1_000_000;
    type Node = Relay<4, 100, 8>;

    fn node(i: u32) -> MacAddr {
        MacAddr::local(i)
    }

    /// A line without power save; the last of them knows no way back, and the first one none to a node that does not exist.
    fn line() -> Room {
        let mut room = Room::new(1);
        for i in 0..4_u32 {
            let config = IbssConfig {
                scan: Duration::from_ms(100 + 200 * u64::from(i)),
                ..IbssConfig::new(node(i), "robots", Rate::OFDM_24)
            };
            let routes = (0..4).filter(move |to| *to != i && i != 3);
            let routes = routes.map(move |to| (node(to), node(if to > i { i + 1 } else { i - 1 })));
            room.add(node(i), || Node::new(config, RouteTable::new(routes.clone())));
        }
        room
    }

    #[test]
    fn datagrams_cross_the_line() {
        let mut room = line();
        room.submit(1_000 * MS, 0, node(3), b"far", None);
        room.submit(1_001 * MS, 2, node(0), b"back", None);
        room.submit(1_002 * MS, 1, MacAddr::BROADCAST, b"all", None);
        room.submit(1_003 * MS, 3, node(0), b"no way", None);
        room.submit(1_004 * MS, 0, node(9), b"nobody", None);
        room.submit(1_005 * MS, 0, node(1), &[7; 81], None);
        room.run_until(1_100 * MS);
        let got = room.delivered.iter();
        let got: std::vec::Vec<_> = got.map(|d| (d.node, d.peer, d.payload.as_slice())).collect();
        let all = |at| (at, node(1), &b"all"[..]);
        let expected = [
            (3, node(0), &b"far"[..]),
            (0, node(2), b"back"),
            all(0),
            all(2),
            all(3),
        ];
        assert_eq!(got, expected);
        let counters = |i: usize| *room.protocol::<Node>(i).counters();
        assert_eq!((0..4).map(|i| counters(i).forwarded).sum::<u64>(), 3);
        assert_eq!(
            (
                counters(3).unroutable,
                counters(0).unroutable,
                counters(0).too_long
            ),
            (1, 1, 1)
        );
        room.close();
    }

    /// Frames that are no datagrams, and datagrams that have come too far.
    #[test]
    fn what_is_no_datagram_goes_nowhere() {
        let mut room = line();
        room.add(node(7), || {
            Ibss::<4, 100>::new(IbssConfig {
                scan: Duration::from_ms(5_000),
                ..IbssConfig::new(node(7), "robots", Rate::OFDM_24)
            })
        });
        let header = Header {
            hops_left: 1,
            from_port: 0,
            to_port: 0,
            source: node(7),
            destination: node(3),
        };
        room.submit(2_000 * MS, 4, node(1), b"no datagram", None);
        room.submit(2_001 * MS, 4, node(1), &header.octets(), None);
        room.run_until(2_100 * MS);
        assert!(room.delivered.is_empty());
        let c = *room.protocol::<Node>(1).counters();
        assert_eq!((c.foreign, c.unroutable, c.forwarded), (1, 1, 0));
        room.close();
    }
}
