//! Nodes that hear each other as a matrix says, without air between them.

use super::*;
use proptest::prelude::*;
use std::vec;
use std::vec::Vec;

mod hellos;
mod lone;
mod tcs;

const SECOND_NS: u64 = 1_000_000_000;

struct Network {
    nodes: Vec<Olsr<16>>,
    /// Who hears whom: by sender, then receiver.
    hears: Vec<Vec<bool>>,
    packets: u64,
}

const fn node(i: usize) -> MacAddr {
    MacAddr::local(i as u32 + 1)
}

impl Network {
    fn new(n: usize, seed: u64, links: impl IntoIterator<Item = (usize, usize)>) -> Network {
        let olsr = |i| Olsr::new(&OlsrConfig::standard(node(i), seed));
        let mut net = Network {
            nodes: (0..n).map(olsr).collect(),
            hears: vec![vec![false; n]; n],
            packets: 0,
        };
        for (a, b) in links {
            net.link(a, b, true);
        }
        net
    }

    fn chain(n: usize) -> Network {
        Network::new(n, 1, (1..n).map(|i| (i - 1, i)))
    }

    fn link(&mut self, a: usize, b: usize, is_up: bool) {
        self.hears[a][b] = is_up;
        self.hears[b][a] = is_up;
    }

    fn run_until(&mut self, seconds: u64) {
        let end = Instant::from_ns(seconds * SECOND_NS);
        loop {
            let next = self.nodes.iter().map(Olsr::deadline).enumerate();
            let (i, at) = next.min_by_key(|n| (n.1, n.0)).unwrap();
            if at > end {
                return;
            }
            let mut out = [0; MAX_PACKET_OCTETS];
            if let Some(packet) = self.nodes[i].emit(at, &mut out) {
                self.packets += 1;
                let hearers = (0..self.nodes.len()).filter(|&j| self.hears[i][j]);
                for j in hearers {
                    self.nodes[j].hear(at, node(i), packet);
                }
            }
            assert!(self.nodes[i].deadline() > at, "it does what is due");
        }
    }

    fn routes(&self, i: usize) -> Vec<(MacAddr, MacAddr, u8)> {
        let mut r: Vec<_> = self.nodes[i].routes().map(|r| (r.to, r.next, r.hops)).collect();
        r.sort();
        r
    }

    /// Hops from `i` to all, by breadth.
    fn distances(&self, i: usize) -> Vec<Option<u8>> {
        let mut d = vec![None; self.nodes.len()];
        d[i] = Some(0);
        for h in 0..self.nodes.len() as u8 {
            for a in 0..d.len() {
                for b in 0..d.len() {
                    if d[a] == Some(h) && self.hears[a][b] && self.hears[b][a] && d[b].is_none() {
                        d[b] = Some(h + 1);
                    }
                }
            }
        }
        d
    }
}

#[test]
fn a_chain_finds_its_ends() {
    let mut net = Network::chain(7);
    net.run_until(40);
    let expected: Vec<_> = (1..7).map(|i| (node(i), node(1), i as u8)).collect();
    assert_eq!(net.routes(0), expected);
    assert!((1..6).all(|i| net.nodes[i].counters().tcs > 0));
    assert_eq!(net.nodes[0].counters().tcs, 0, "the end relays for nobody");
    assert!(
        net.nodes
            .iter()
            .all(|n| n.counters().malformed == 0 && n.counters().no_place == 0)
    );
}

#[test]
fn a_link_is_lost_after_three_hellos_and_comes_back() {
    let mut net = Network::chain(4);
    net.run_until(40);
    net.link(1, 2, false);
    net.run_until(43);
    assert_eq!(net.routes(0).len(), 3, "not yet");
    net.run_until(47);
    let near = [(node(0), node(0), 1)];
    assert_eq!(net.routes(1), near, "its own link first");
    // the TC of the far side counts for 15 s
    net.run_until(70);
    assert_eq!(net.routes(0).len(), 1);
    let c = net.nodes[1].counters();
    assert_eq!((c.lost_neighbours, c.withdrawn), (1, 2));
    net.link(1, 2, true);
    net.run_until(110);
    assert_eq!(net.routes(0).len(), 3);
}

#[test]
fn who_hears_only_one_way_is_no_neighbour() {
    let mut net = Network::chain(3);
    net.hears[0][2] = true;
    net.run_until(40);
    assert_eq!(net.routes(2), [(node(0), node(1), 2), (node(1), node(1), 1)]);
}

/// In a full room nobody needs a relay, and there is nothing to flood.
#[test]
fn a_room_has_no_relays() {
    let mut net = Network::new(8, 3, (0..8).flat_map(|a| (0..a).map(move |b| (a, b))));
    let flooded = |net: &Network| -> u64 {
        net.nodes
            .iter()
            .map(|n| n.counters().tcs + n.counters().forwarded)
            .sum()
    };
    // while not all have heard of all, some believe that they need one, and what they have said counts on
    net.run_until(40);
    let at_first = flooded(&net);
    net.run_until(60);
    assert_eq!(flooded(&net), at_first);
    assert!(net.routes(5).iter().all(|r| r.2 == 1));
    let hellos: u64 = net.nodes.iter().map(|n| n.counters().hellos).sum();
    // 8 nodes, from 1.5 to 2 s
    assert!((8 * 28..8 * 41).contains(&hellos), "{hellos}");
}

#[test]
fn more_nodes_than_places_are_counted() {
    let mut net = Network::new(20, 1, (1..20).map(|i| (0, i)));
    net.run_until(30);
    assert_eq!(net.routes(0).len(), 15);
    assert!(net.nodes[0].counters().no_place > 0);
    // places are free again when nothing counts any more
    (1..20).for_each(|i| net.link(0, i, i > 4));
    net.run_until(90);
    assert!(net.routes(0).len() == 15, "{:?}", net.routes(0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_find_shortest_paths(n in 2usize..12, links in proptest::collection::vec((0usize..12, 0usize..12), 1..30), seed: u64) {
        let links = links.into_iter().map(|(a, b)| (a % n, b % n)).filter(|(a, b)| a != b);
        let mut net = Network::new(n, seed, links);
        net.run_until(60);
        for i in 0..n {
            let expected: Vec<_> = net.distances(i).into_iter().enumerate().filter_map(|(j, d)| Some((node(j), d.filter(|d| *d > 0)?))).collect();
            let found: Vec<_> = net.routes(i).into_iter().map(|(to, _, hops)| (to, hops)).collect();
            prop_assert_eq!(found, expected, "node {}", i);
            for (to, next, hops) in net.routes(i) {
                let next = (0..n).find(|&j| node(j) == next).unwrap();
                let to = (0..n).find(|&j| node(j) == to).unwrap();
                prop_assert!(net.hears[i][next] && net.distances(next)[to] == Some(hops - 1));
            }
        }
    }

    #[test]
    fn any_packets(packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..20)) {
        let mut olsr = Olsr::<4>::new(&OlsrConfig::standard(node(0), 1));
        let mut out = [0; MAX_PACKET_OCTETS];
        for (i, p) in packets.into_iter().enumerate() {
            let mut p = p;
            if p.len() > 18 {
                let n = p.len() as u8;
                p[..8].copy_from_slice(&[0, n, 0, 0, 1 + n % 2, 0x86, 0, n - 4]);
                p[8..14].copy_from_slice(&node(i % 3).0);
            }
            let now = Instant::from_ns(i as u64 * SECOND_NS);
            olsr.hear(now, node(i % 3), &p);
            olsr.emit(now, &mut out);
            prop_assert!(olsr.deadline() > now);
        }
    }
}
