//! OLSR, Optimized Link State Routing (RFC 3626): HELLOs find the neighbours and their neighbours, each node chooses
//! relays among its neighbours, and relays tell the whole network by TCs who has chosen them. This is the core for
//! nodes with one interface: no MID, no HNA, no hysteresis, no news from the link layer.
//!
//! | module | what it is |
//! |---|---|
//! | [`wire`] | packets and messages |
//! | [`mpr`] | who relays |
//! | [`tables`] | what is known, and the routes that follow |
//!
//! A link ends when three HELLOs in a row are lost. HELLOs are broadcast and never repeated, so a busy channel takes
//! routes away: what the ATP thesis saw on its testbed (4.1).

pub mod mpr;
pub mod tables;
pub mod wire;

pub use tables::Route;

use crate::dice::{self, Dice};
use frame::MacAddr;
use radio::{Duration, Instant};
use tables::Tables;
use wire::{Head, Hello, Message, Writer};

/// Octets of the longest packet that a node makes.
pub const MAX_PACKET_OCTETS: usize = 1_024;
/// The port of OLSR.
pub const PORT: u16 = 698;
/// Octets of the longest message that is forwarded: a TC of 64 nodes.
const MAX_MESSAGE_OCTETS: usize = wire::MESSAGE_HEADER_OCTETS + 4 + 64 * 6;
/// Messages that wait to be forwarded.
const FORWARDS: usize = 16;

/// How a node routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OlsrConfig {
    /// Who it is.
    pub me: MacAddr,
    /// From one HELLO to the next; up to a quarter of it is subtracted from each interval at random.
    pub hello_interval: Duration,
    /// From one TC to the next.
    pub tc_interval: Duration,
    /// How willing it is to relay, 0 (never) to 7 (always).
    pub willingness: u8,
    /// What is random follows from it and from the address.
    pub seed: u64,
}

impl OlsrConfig {
    /// The constants of RFC 3626, 18.
    pub const fn standard(me: MacAddr, seed: u64) -> OlsrConfig {
        OlsrConfig {
            me,
            hello_interval: Duration::from_ms(2_000),
            tc_interval: Duration::from_ms(5_000),
            willingness: 3,
            seed,
        }
    }

    /// For how long its HELLOs count, and for how long it tells of a lost link: three HELLOs (RFC 3626, 18.3).
    fn valid(&self) -> Duration {
        self.hello_interval.times(3)
    }
}

/// What a node has counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OlsrCounters {
    /// HELLOs made.
    pub hellos: u64,
    /// TCs made.
    pub tcs: u64,
    /// Messages of others sent on.
    pub forwarded: u64,
    /// Packets and messages that do not add up.
    pub malformed: u64,
    /// Nodes, or messages to forward, for which there was no place.
    pub no_place: u64,
    /// Neighbours that were lost.
    pub lost_neighbours: u64,
    /// Routes that were withdrawn.
    pub withdrawn: u64,
}

#[derive(Clone, Copy, Debug)]
struct Forward {
    at: Instant,
    octets: [u8; MAX_MESSAGE_OCTETS],
    length: usize,
}

/// See the [module](self). Knows up to `N` nodes, itself among them, 64 at most.
#[derive(Clone, Debug)]
pub struct Olsr<const N: usize = 32> {
    config: OlsrConfig,
    tables: Tables<N>,
    forwards: [Option<Forward>; FORWARDS],
    hello_at: Instant,
    tc_at: Instant,
    /// TCs go on for a while after the last selector has left, so that all learn of it.
    tcs_until: Instant,
    ansn: u16,
    packet_number: u16,
    message_number: u16,
    dice: Dice,
    counters: OlsrCounters,
}

impl<const N: usize> Olsr<N> {
    /// A node that knows nobody; its first HELLO is due within an interval from the start.
    pub fn new(config: &OlsrConfig) -> Self {
        let [.., a, b, c, d] = config.me.0;
        let address = u64::from(u32::from_be_bytes([a, b, c, d]));
        let mut olsr = Olsr {
            config: *config,
            tables: Tables::new(config.me, config.valid()),
            forwards: [None; FORWARDS],
            hello_at: Instant::ZERO,
            tc_at: Instant::ZERO,
            tcs_until: Instant::ZERO,
            ansn: 0,
            packet_number: 0,
            message_number: 0,
            dice: Dice(config.seed ^ dice::mix(address)),
            counters: OlsrCounters::default(),
        };
        olsr.hello_at = Instant::ZERO + olsr.draw(config.hello_interval);
        olsr.tc_at = Instant::ZERO + olsr.draw(config.tc_interval);
        olsr
    }

    /// A time below `most`, all equally likely.
    fn draw(&mut self, most: Duration) -> Duration {
        Duration::from_ns(self.dice.below(most.as_ns()))
    }

    /// RFC 3626, 18.3: a quarter of the HELLO interval.
    fn jitter(&mut self) -> Duration {
        self.draw(Duration::from_ns(self.config.hello_interval.as_ns() / 4))
    }

    /// What it has counted.
    pub fn counters(&self) -> &OlsrCounters {
        &self.counters
    }

    /// The ways to all nodes that can be reached.
    pub fn routes(&self) -> impl Iterator<Item = Route> {
        self.tables.routes()
    }

    /// When [`Self::emit`] has something to do.
    pub fn deadline(&self) -> Instant {
        let forwards = self.forwards.iter().flatten().map(|f| f.at);
        let first = forwards.min().unwrap_or(Instant::MAX);
        first.min(self.hello_at).min(self.tc_at).min(self.tables.expiry())
    }

    /// How long a TC counts (RFC 3626, 18.3).
    fn top_hold(&self) -> Duration {
        self.config.tc_interval.times(3)
    }

    fn refresh(&mut self, now: Instant) {
        let before = (self.tables.neighbour_count(), self.tables.routes().count());
        if self.tables.refresh(now) {
            self.ansn = self.ansn.wrapping_add(1);
            self.tcs_until = now + self.top_hold();
        }
        let lost = before.0.saturating_sub(self.tables.neighbour_count());
        let withdrawn = before.1.saturating_sub(self.tables.routes().count());
        self.counters.lost_neighbours += u64::from(lost);
        self.counters.withdrawn += withdrawn as u64;
    }

    /// A packet of the node `from` has come.
    pub fn hear(&mut self, now: Instant, from: MacAddr, packet: &[u8]) {
        let Some(messages) = wire::messages(packet) else {
            self.counters.malformed += 1;
            return;
        };
        let me = self.config.me;
        for m in messages.filter(|m| m.ttl > 0 && m.originator != me) {
            self.message(now, from, &m);
        }
        self.refresh(now);
    }

    fn message(&mut self, now: Instant, from: MacAddr, m: &Message<'_>) {
        if m.kind == wire::HELLO {
            let hello = Hello::parse(m.body).filter(|_| m.originator == from);
            let Some(hello) = hello else {
                self.counters.malformed += 1;
                return;
            };
            let has_place = self.tables.hello(now, from, &hello, m.valid);
            self.counters.no_place += u64::from(!has_place);
            return;
        }
        // RFC 3626, 3.4.1 and 9.5: only what comes from symmetric neighbours counts, and only the first time
        if !self.tables.is_symmetric(from, now) || !self.tables.is_new(m, now) {
            return;
        }
        if m.kind == wire::TC {
            let Some((ansn, advertised)) = wire::tc(m.body) else {
                self.counters.malformed += 1;
                return;
            };
            let has_place = self.tables.tc(now, m.originator, ansn, advertised, m.valid);
            self.counters.no_place += u64::from(!has_place);
        }
        if m.ttl > 1 && self.tables.is_selector(from, now) {
            self.forward(now, m);
        }
    }

    fn forward(&mut self, now: Instant, m: &Message<'_>) {
        let at = now + self.jitter();
        let place = self.forwards.iter_mut().find(|f| f.is_none());
        let Some(place) = place.filter(|_| m.octets.len() <= MAX_MESSAGE_OCTETS) else {
            self.counters.no_place += 1;
            return;
        };
        let mut f = Forward {
            at,
            octets: [0; MAX_MESSAGE_OCTETS],
            length: m.octets.len(),
        };
        f.octets[..f.length].copy_from_slice(m.octets);
        f.octets[wire::TTL_AT] -= 1;
        f.octets[wire::TTL_AT + 1] = f.octets[wire::TTL_AT + 1].saturating_add(1);
        *place = Some(f);
    }

    fn head(&mut self, kind: u8, ttl: u8, valid: Duration) -> Head {
        self.message_number = self.message_number.wrapping_add(1);
        Head {
            kind,
            valid,
            originator: self.config.me,
            ttl,
            number: self.message_number,
        }
    }

    /// Writes what is due at `now` into one packet, which goes to all neighbours; `None` if nothing is.
    pub fn emit<'o>(&mut self, now: Instant, out: &'o mut [u8; MAX_PACKET_OCTETS]) -> Option<&'o [u8]> {
        self.refresh(now);
        let mut w = Writer::new(out);
        if self.hello_at <= now {
            let valid = self.config.valid();
            let head = self.head(wire::HELLO, 1, valid);
            let neighbours = self.tables.neighbours(now);
            let (interval, willingness) = (self.config.hello_interval, self.config.willingness);
            if w.hello(&head, interval, willingness, neighbours) {
                self.counters.hellos += 1;
            }
            let jitter = self.jitter();
            self.hello_at = now + interval.less(jitter);
        }
        if self.tc_at <= now {
            let jitter = self.jitter();
            self.tc_at = now + self.config.tc_interval.less(jitter);
            if self.tables.has_selectors() || now < self.tcs_until {
                let head = self.head(wire::TC, 255, self.top_hold());
                if w.tc(&head, self.ansn, self.tables.selectors()) {
                    self.counters.tcs += 1;
                }
            }
        }
        for f in &mut self.forwards {
            if let Some(m) = f.filter(|f| f.at <= now)
                && w.forward(&m.octets[..m.length])
            {
                self.counters.forwarded += 1;
                *f = None;
            }
        }
        let number = self.packet_number.wrapping_add(1);
        let packet = w.finish(number)?;
        self.packet_number = number;
        Some(packet)
    }
}

#[cfg(test)]
mod tests;
