//! What a node knows of the network: links, two-hop neighbours, selectors, topology, numbers heard (RFC 3626, 3.4, 4,
//! 6 to 10), and the routes that follow. Nodes have indices; what one node says of another is a time until which it
//! counts.

use super::mpr::{bits, relays};
use super::wire::{Hello, LinkCode, Message};
use frame::MacAddr;
use radio::{Duration, Instant};

/// How long numbers are remembered (RFC 3626, 18.3).
const DUP_HOLD: Duration = Duration::from_ms(30_000);

/// A way to a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Route {
    /// The node.
    pub to: MacAddr,
    /// The neighbour that is next.
    pub next: MacAddr,
    /// How many hops it takes.
    pub hops: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    /// Heard until.
    asym: Instant,
    /// Both hear each other until.
    sym: Instant,
    /// Known until.
    known: Instant,
    /// It has chosen this node to relay, until.
    selector: Instant,
    willingness: u8,
}

/// Numbers of messages of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    newest: u16,
    /// Bit i: the number `newest - i`.
    window: u64,
    until: Instant,
}

/// See the [module](self). Index 0 is the node itself.
#[derive(Clone, Debug)]
pub struct Tables<const N: usize> {
    addresses: [MacAddr; N],
    used: u64,
    links: [Link; N],
    /// By neighbour, then by its neighbour.
    two_hop: [[Instant; N]; N],
    /// By the node that has advertised it, then by destination.
    topology: [[Instant; N]; N],
    ansn: [u16; N],
    heard: [Heard; N],
    /// How long a lost link is told.
    hold: Duration,
    // what follows from these
    symmetric: u64,
    relays: u64,
    selectors: u64,
    next: [u8; N],
    hops: [u8; N],
    expiry: Instant,
}

impl<const N: usize> Tables<N> {
    /// The node `me`, alone. A lost link is told for `hold` (NEIGHB_HOLD_TIME; RFC 3626, 18.3).
    pub fn new(me: MacAddr, hold: Duration) -> Self {
        const { assert!(N >= 1 && N <= 64, "sets of nodes have 64 bits") };
        Tables {
            addresses: [me; N],
            used: 1,
            links: [Link::default(); N],
            two_hop: [[Instant::ZERO; N]; N],
            topology: [[Instant::ZERO; N]; N],
            ansn: [0; N],
            heard: [Heard::default(); N],
            hold,
            symmetric: 0,
            relays: 0,
            selectors: 0,
            next: [0; N],
            hops: [0; N],
            expiry: Instant::MAX,
        }
    }

    fn find(&self, a: MacAddr) -> Option<usize> {
        bits(self.used).find(|&i| self.addresses[i] == a)
    }

    /// Nothing that is known of it counts any more.
    fn is_idle(&self, i: usize, now: Instant) -> bool {
        let told =
            |table: &[[Instant; N]; N]| bits(self.used).any(|j| table[i][j] > now || table[j][i] > now);
        self.links[i].known <= now
            && self.heard[i].until <= now
            && !told(&self.two_hop)
            && !told(&self.topology)
    }

    /// The index of a node; `None` if it is new and all places are taken.
    fn index(&mut self, a: MacAddr, now: Instant) -> Option<usize> {
        if let Some(i) = self.find(a) {
            return Some(i);
        }
        let free = (!self.used).trailing_zeros() as usize;
        let i = if free < N {
            free
        } else {
            (1..N).find(|&i| self.is_idle(i, now))?
        };
        self.used |= 1 << i;
        self.addresses[i] = a;
        self.links[i] = Link::default();
        self.heard[i] = Heard::default();
        Some(i)
    }

    /// Whether the node `a` and this one hear each other.
    pub fn is_symmetric(&self, a: MacAddr, now: Instant) -> bool {
        self.find(a).is_some_and(|i| self.links[i].sym > now)
    }

    /// Whether the neighbour `a` has chosen this node to relay.
    pub fn is_selector(&self, a: MacAddr, now: Instant) -> bool {
        self.find(a).is_some_and(|i| self.links[i].selector > now)
    }

    /// Neighbours that have chosen this node to relay.
    pub fn selectors(&self) -> impl Iterator<Item = MacAddr> {
        bits(self.selectors).map(|i| self.addresses[i])
    }

    /// How many neighbours there are with which it hears each other.
    pub fn neighbour_count(&self) -> u32 {
        self.symmetric.count_ones()
    }

    /// Whether there are selectors.
    pub fn has_selectors(&self) -> bool {
        self.selectors != 0
    }

    /// Remembers the message; true if it is new (RFC 3626, 3.4). When there is no place for its originator it is not.
    pub fn is_new(&mut self, m: &Message<'_>, now: Instant) -> bool {
        let Some(i) = self.index(m.originator, now) else {
            return false;
        };
        let heard = &mut self.heard[i];
        let (ahead, behind) = (
            m.number.wrapping_sub(heard.newest),
            heard.newest.wrapping_sub(m.number),
        );
        if heard.until <= now || (ahead >= 64 && behind >= 64) {
            (heard.newest, heard.window) = (m.number, 0);
        } else if ahead < 64 {
            (heard.newest, heard.window) = (m.number, heard.window << ahead);
        }
        heard.until = now + DUP_HOLD;
        let bit = 1 << heard.newest.wrapping_sub(m.number);
        let new = heard.window & bit == 0;
        heard.window |= bit;
        new
    }

    /// What the neighbour `from` says (RFC 3626, 7.1.1, 8.1.1, 8.2.1, 8.4.1). False if there is no place for it.
    pub fn hello(&mut self, now: Instant, from: MacAddr, hello: &Hello<'_>, valid: Duration) -> bool {
        let Some(i) = self.index(from, now).filter(|&i| i != 0) else {
            return false;
        };
        let me = self.addresses[0];
        let until = now + valid;
        let link = &mut self.links[i];
        link.asym = until;
        link.willingness = hello.willingness;
        let named = || hello.neighbours().filter(|(code, _)| code.is_valid());
        for (code, _) in named().filter(|(_, a)| *a == me) {
            if code.is_lost() {
                link.sym = now;
            } else if code.is_heard() {
                link.sym = until;
                link.known = link.known.max(until + self.hold);
            }
            if code.is_mpr() {
                link.selector = until;
            }
        }
        link.known = link.known.max(link.asym);
        if link.sym <= now {
            return true;
        }
        let mut has_place = true;
        for (code, a) in named().filter(|(_, a)| *a != me) {
            if code.is_sym_neighbour() {
                match self.index(a, now) {
                    Some(j) => self.two_hop[i][j] = until,
                    None => has_place = false,
                }
            } else if let Some(j) = self.find(a) {
                self.two_hop[i][j] = Instant::ZERO;
            }
        }
        has_place
    }

    /// What the node `last` advertises (RFC 3626, 9.5). False if there is no place for all of it.
    pub fn tc(
        &mut self,
        now: Instant,
        last: MacAddr,
        ansn: u16,
        advertised: impl Iterator<Item = MacAddr>,
        valid: Duration,
    ) -> bool {
        let Some(i) = self.index(last, now) else {
            return false;
        };
        if self.topology[i].iter().any(|t| *t > now) {
            let ahead = ansn.wrapping_sub(self.ansn[i]);
            if ahead > 0x8000 {
                return true;
            }
            if ahead > 0 {
                self.topology[i] = [Instant::ZERO; N];
            }
        }
        self.ansn[i] = ansn;
        let mut has_place = true;
        for a in advertised {
            match self.index(a, now) {
                Some(j) => self.topology[i][j] = now + valid,
                None => has_place = false,
            }
        }
        has_place
    }

    /// Neighbours as a HELLO tells them (RFC 3626, 6.2).
    pub fn neighbours(&self, now: Instant) -> [(LinkCode, impl Iterator<Item = MacAddr>); 4] {
        let heard = |i: usize| self.links[i].asym > now;
        let known = bits(self.used & !1).filter(|&i| self.links[i].known > now);
        let known = known.fold(0, |set: u64, i| set | 1 << i);
        let asym = bits(known & !self.symmetric).filter(|&i| heard(i));
        let asym = asym.fold(0, |set: u64, i| set | 1 << i);
        [
            (LinkCode::SYM, self.symmetric & !self.relays),
            (LinkCode::MPR, self.relays),
            (LinkCode::ASYM, asym),
            (LinkCode::LOST, known & !self.symmetric & !asym),
        ]
        .map(|(code, set)| (code, bits(set).map(|i| self.addresses[i])))
    }

    /// The ways to all nodes that can be reached.
    pub fn routes(&self) -> impl Iterator<Item = Route> {
        bits(self.used & !1).filter(|&i| self.hops[i] > 0).map(|i| Route {
            to: self.addresses[i],
            next: self.addresses[usize::from(self.next[i])],
            hops: self.hops[i],
        })
    }

    /// When something ceases to count.
    pub fn expiry(&self) -> Instant {
        self.expiry
    }

    /// Works out what follows from what counts at `now`; true if the selectors are others than before.
    pub fn refresh(&mut self, now: Instant) -> bool {
        self.symmetric = bits(self.used & !1)
            .filter(|&i| self.links[i].sym > now)
            .fold(0, |set, i| set | 1 << i);
        for i in bits(self.used & !1 & !self.symmetric) {
            // a lost neighbour takes with it what it has said (RFC 3626, 8.5)
            self.two_hop[i] = [Instant::ZERO; N];
            self.links[i].selector = Instant::ZERO;
        }
        let mut reach = [0; N];
        let mut willingness = [0; N];
        for i in bits(self.symmetric) {
            willingness[i] = self.links[i].willingness;
            let strict = bits(self.used & !1 & !self.symmetric).filter(|&j| self.two_hop[i][j] > now);
            reach[i] = strict.fold(0, |set, j| set | 1 << j);
        }
        self.relays = relays(self.symmetric, &willingness, &reach);
        let selectors = bits(self.symmetric)
            .filter(|&i| self.links[i].selector > now)
            .fold(0, |set, i| set | 1 << i);
        let changed = selectors != self.selectors;
        self.selectors = selectors;
        self.route(now, &reach);
        self.expiry = self.first_expiry(now);
        changed
    }

    /// Shortest paths (RFC 3626, 10).
    fn route(&mut self, now: Instant, reach: &[u64; N]) {
        self.hops = [0; N];
        let mut frontier = self.symmetric;
        for i in bits(self.symmetric) {
            (self.hops[i], self.next[i]) = (1, i as u8);
        }
        let (mut reached, mut depth) = (frontier, 1);
        while frontier != 0 {
            let mut found = 0;
            for i in bits(frontier) {
                let far = match depth {
                    1 if self.links[i].willingness == super::mpr::NEVER => 0,
                    1 => reach[i],
                    _ => bits(self.used)
                        .filter(|&j| self.topology[i][j] > now)
                        .fold(0, |set, j| set | 1 << j),
                };
                for j in bits(far & !1 & !reached) {
                    (self.hops[j], self.next[j]) = (depth + 1, self.next[i]);
                    found |= 1 << j;
                }
                reached |= found;
            }
            (frontier, depth) = (found, depth + 1);
        }
    }

    fn first_expiry(&self, now: Instant) -> Instant {
        let links = bits(self.used).flat_map(|i| {
            let l = &self.links[i];
            [l.asym, l.sym, l.known, l.selector]
        });
        let tables = bits(self.used)
            .flat_map(|i| bits(self.used).flat_map(move |j| [self.two_hop[i][j], self.topology[i][j]]));
        let later = links.chain(tables).filter(|t| *t > now);
        later.min().unwrap_or(Instant::MAX)
    }
}
