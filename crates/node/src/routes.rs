//! Routes over several hops: destination-sequenced distance vectors (DSDV; Perkins and Bhagwat, SIGCOMM 1994).
//!
//! Every node tells its neighbours now and then whom it reaches over how many hops. Each destination numbers what it says of
//! itself, with even numbers; who loses the way to one tells so with the next odd number. A later number counts, and of
//! the same number the shorter way: so there are no loops.
//!
//! Why not RPL: it makes a tree for traffic with one root, and an ad hoc network has none: any two nodes talk, over the
//! shortest way and not over a root. smoltcp has RPL's octets and no working protocol; with DSDV what is told is one datagram of
//! 10 octets for each destination.

use frame::MacAddr;
use radio::{Duration, Instant};

/// Destinations that are known at most; further ones are not taken.
pub const DESTINATIONS: usize = 16;
/// What a node tells, whenever this has passed, and what it tells soon after a change.
pub const PERIOD: Duration = Duration::from_ms(3_000);
const SOON: Duration = Duration::from_ms(200);
/// By how much what is to be told is put off, or told sooner, at most.
const JITTER: Duration = Duration::from_ms(300);
/// A way of which nothing new was heard for so long is gone: three messages were lost.
const GONE: Duration = Duration::from_ms(10_500);
/// Hops of a way that is none.
const NO_WAY: u8 = u8::MAX;
/// Hops of the longest way.
const MAX_HOPS: u8 = 15;
/// Octets for each destination: address, number, hops, and one that is 0.
const ENTRY: usize = 10;
/// Octets of the longest message.
pub const MAX_OCTETS: usize = ENTRY * (DESTINATIONS + 1);

/// A way to a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Who is reached.
    pub to: MacAddr,
    /// The neighbour that is next.
    pub next: MacAddr,
    /// Hops, 1 or more.
    pub hops: u8,
    number: u16,
    heard: Instant,
}

/// Routes of one node.
#[derive(Clone, Debug)]
pub struct Routes {
    me: MacAddr,
    number: u16,
    known: [Option<Route>; DESTINATIONS],
    tell_at: Instant,
}

impl Routes {
    /// A node that knows nobody. It first tells of itself at `now`, or soon after it [joins](Routes::join).
    pub fn new(me: MacAddr, now: Instant) -> Routes {
        Routes {
            me,
            number: 0,
            known: [None; DESTINATIONS],
            tell_at: now,
        }
    }

    /// It has come to a network, perhaps by the same beacon as others: it tells of itself after a time of its own.
    pub fn join(&mut self, now: Instant) {
        self.tell_at = now + self.jitter();
    }

    /// All ways there are.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.known.iter().flatten().filter(|r| r.hops != NO_WAY)
    }

    /// The neighbour over which `to` is reached.
    pub fn next_hop(&self, to: MacAddr) -> Option<MacAddr> {
        self.iter().find(|r| r.to == to).map(|r| r.next)
    }

    /// When there is something to tell.
    pub fn deadline(&self) -> Instant {
        self.tell_at
    }

    /// Writes what is to be told to all neighbours, if it is time, and returns its octets.
    pub fn tell(&mut self, now: Instant, out: &mut [u8; MAX_OCTETS]) -> Option<usize> {
        if now < self.tell_at {
            return None;
        }
        self.lose(now);
        self.number = self.number.wrapping_add(2);
        self.tell_at = now + PERIOD - self.jitter();
        let own = (self.me, self.number, 0);
        let others = self.known.iter().flatten().map(|r| (r.to, r.number, r.hops));
        let mut octets = 0;
        for ((to, number, hops), entry) in core::iter::once(own)
            .chain(others)
            .zip(out.chunks_exact_mut(ENTRY))
        {
            let [low, high] = number.to_le_bytes();
            entry[..6].copy_from_slice(&to.0);
            entry[6..].copy_from_slice(&[low, high, hops, 0]);
            octets += ENTRY;
        }
        Some(octets)
    }

    /// Ways of which nothing was heard are none. So long as others may not know, that is remembered.
    fn lose(&mut self, now: Instant) {
        for place in &mut self.known {
            let Some(route) = place.as_mut().filter(|r| r.heard + GONE < now) else {
                continue;
            };
            if route.hops == NO_WAY {
                *place = None;
            } else {
                (route.hops, route.heard) = (NO_WAY, now);
                route.number |= 1;
            }
        }
    }

    /// What the neighbour `from` tells. What cannot be read is not.
    pub fn heard(&mut self, now: Instant, from: MacAddr, message: &[u8]) {
        if from == self.me || from.is_group() {
            return;
        }
        for entry in message.chunks_exact(ENTRY) {
            let [a, b, c, d, e, f, low, high, hops, _] = *entry else {
                continue;
            };
            let (to, number) = (MacAddr([a, b, c, d, e, f]), u16::from_le_bytes([low, high]));
            if to == self.me {
                // somebody believes that we are lost, or knows a number from before we were started anew: our next one is behind that
                if is_later(number, self.number) {
                    self.number = (number | 1).wrapping_add(1);
                    self.soon(now);
                }
            } else if !to.is_group() && (hops < MAX_HOPS || hops == NO_WAY) {
                let hops = if hops == NO_WAY { NO_WAY } else { hops + 1 };
                self.take(
                    now,
                    Route {
                        to,
                        next: from,
                        hops,
                        number,
                        heard: now,
                    },
                );
            }
        }
    }

    fn take(&mut self, now: Instant, told: Route) {
        let changes = match self.known.iter_mut().flatten().find(|r| r.to == told.to) {
            Some(known) => {
                let same_way = known.next == told.next;
                let later = is_later(told.number, known.number);
                // a loss concerns those whose way it is
                let better = match told.hops {
                    NO_WAY => later && same_way && known.hops != NO_WAY,
                    hops => later || told.number == known.number && hops < known.hops,
                };
                let changes = better && (known.hops, known.next) != (told.hops, told.next);
                if better {
                    *known = told;
                } else if same_way && told.hops == known.hops && told.hops != NO_WAY {
                    known.heard = told.heard;
                }
                changes
            }
            None if told.hops == NO_WAY => false,
            None => match self.known.iter_mut().find(|r| r.is_none()) {
                Some(place) => {
                    *place = Some(told);
                    true
                }
                None => false,
            },
        };
        if changes {
            self.soon(now);
        }
    }

    /// Tells of a change soon, each node after a time of its own.
    fn soon(&mut self, now: Instant) {
        self.tell_at = self.tell_at.min(now + SOON + self.jitter());
    }

    /// Up to [`JITTER`], another one for each node and each of its messages: those that nodes send at once are lost to all (RFC 5148, 5.1
    /// and 5.2).
    fn jitter(&self) -> Duration {
        let [_, _, c, d, e, f] = self.me.0;
        let mixed =
            (u32::from_be_bytes([c, d, e, f]) ^ u32::from(self.number) << 15).wrapping_mul(0x9e37_79b1);
        let mixed = (mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca6b);
        Duration::from_ns((u64::from(mixed >> 16) * JITTER.as_ns()) >> 16)
    }
}

/// Whether a number is later than another, which wraps around (RFC 1982).
fn is_later(a: u16, b: u16) -> bool {
    a != b && a.wrapping_sub(b) < 1 << 15
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const S: u64 = 1_000_000_000;

    fn at(s: u64) -> Instant {
        Instant::from_ns(s * S)
    }

    fn address(i: usize) -> MacAddr {
        MacAddr::local(i as u32 + 1)
    }

    #[test]
    fn nodes_that_begin_together_do_not_tell_together() {
        let mut nodes = [1, 2, 9].map(|i| Routes::new(address(i), at(5)));
        nodes.iter_mut().for_each(|node| node.join(at(5)));
        let mut told = [const { Vec::new() }; 3];
        for ms in 5_000..65_000 {
            for (node, told) in nodes.iter_mut().zip(&mut told) {
                if node
                    .tell(Instant::from_ns(ms * 1_000_000), &mut [0; MAX_OCTETS])
                    .is_some()
                {
                    told.push(ms);
                }
            }
        }
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            assert!(told[a].len() >= 20, "{told:?}");
            let near = |ms: &&u64| told[b].iter().any(|other| other.abs_diff(**ms) < 3);
            assert!(told[a].iter().filter(near).count() <= 2, "{told:?}");
        }
    }

    /// Nodes tell each other, second by second; `hears(a, b)`: `a` hears `b`.
    fn run(nodes: &mut [Routes], seconds: std::ops::Range<u64>, hears: impl Fn(usize, usize) -> bool) {
        for s in seconds {
            for from in 0..nodes.len() {
                let mut out = [0; MAX_OCTETS];
                let Some(octets) = nodes[from].tell(at(s), &mut out) else {
                    continue;
                };
                for to in (0..nodes.len()).filter(|to| *to != from && hears(*to, from)) {
                    nodes[to].heard(at(s), address(from), &out[..octets]);
                }
            }
        }
    }

    /// The way from one node to another, hop by hop.
    fn way(nodes: &[Routes], from: usize, to: usize) -> Option<Vec<usize>> {
        let mut way = std::vec![from];
        while *way.last()? != to {
            let next = nodes[*way.last()?].next_hop(address(to))?;
            way.push((0..nodes.len()).find(|i| address(*i) == next)?);
            assert!(way.len() <= nodes.len(), "a loop: {way:?}");
        }
        Some(way)
    }

    fn nodes(n: usize) -> Vec<Routes> {
        (0..n).map(|i| Routes::new(address(i), at(0))).collect()
    }

    #[test]
    fn a_chain_is_walked_both_ways() {
        let mut nodes = nodes(5);
        run(&mut nodes, 0..20, |a, b| a.abs_diff(b) == 1);
        assert_eq!(way(&nodes, 0, 4), Some(std::vec![0, 1, 2, 3, 4]));
        assert_eq!(way(&nodes, 3, 0), Some(std::vec![3, 2, 1, 0]));
        assert_eq!(nodes[0].iter().map(|r| r.hops).max(), Some(4));
    }

    #[test]
    fn a_broken_ring_is_walked_the_other_way() {
        let mut nodes = nodes(6);
        let ring = |a: usize, b: usize| matches!(a.abs_diff(b), 1 | 5);
        run(&mut nodes, 0..20, ring);
        assert_eq!(way(&nodes, 0, 1), Some(std::vec![0, 1]));
        run(&mut nodes, 20..80, |a, b| ring(a, b) && a + b != 1);
        assert_eq!(way(&nodes, 0, 1), Some(std::vec![0, 5, 4, 3, 2, 1]));
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let mut nodes = nodes(3);
        run(&mut nodes, 0..20, |a, b| a.abs_diff(b) == 1);
        run(&mut nodes, 20..80, |a, b| a + b == 1);
        assert_eq!(way(&nodes, 0, 1), Some(std::vec![0, 1]));
        assert_eq!((way(&nodes, 0, 2), nodes[2].iter().count()), (None, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// Links come and go; there is never a loop, and after a while without changes everybody reaches whom they can.
        #[test]
        fn there_are_no_loops(links in proptest::collection::vec(any::<[u8; 6]>(), 1..4)) {
            let mut nodes = nodes(6);
            let (mut from, mut last) = (0, links[0]);
            for links in links {
                let hears = |a: usize, b: usize| links[a.min(b)] >> a.max(b) & 1 == 1;
                for s in from..from + 40 {
                    run(&mut nodes, s..s + 1, hears);
                    (0..36).for_each(|i| drop(way(&nodes, i / 6, i % 6)));
                }
                (from, last) = (from + 40, links);
            }
            let hears = |a: usize, b: usize| last[a.min(b)] >> a.max(b) & 1 == 1;
            run(&mut nodes, from..from + 100, hears);
            for a in 0..6 {
                let mut reached = [false; 6];
                reached[a] = true;
                for _ in 0..6 {
                    for (b, c) in (0..36).map(|i| (i / 6, i % 6)) {
                        reached[c] |= reached[b] && b != c && hears(b, c);
                    }
                }
                for (b, expected) in reached.into_iter().enumerate() {
                    prop_assert_eq!(way(&nodes, a, b).is_some(), expected, "{} to {}", a, b);
                }
            }
        }

        #[test]
        fn any_message_is_taken(message in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut routes = Routes::new(address(0), at(0));
            routes.heard(at(1), address(1), &message);
            let mut out = [0; MAX_OCTETS];
            prop_assert!(routes.tell(at(1), &mut out).is_some());
        }
    }
}
