//! One node alone: it hears messages made for it, and what it sends is noted.

use super::*;
use wire::LinkCode;

/// Who it is.
pub const ME: usize = 0;
const MS: u64 = 1_000_000;

/// A message that it has sent.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at_ms: u64,
    pub kind: u8,
    pub originator: MacAddr,
    pub number: u16,
    pub octets: Vec<u8>,
}

impl Sent {
    fn body(&self) -> &[u8] {
        &self.octets[wire::MESSAGE_HEADER_OCTETS..]
    }

    /// How a HELLO names the node.
    pub fn names(&self, n: usize) -> Option<LinkCode> {
        assert_eq!(self.kind, wire::HELLO);
        let hello = Hello::parse(self.body()).unwrap();
        hello.neighbours().find(|(_, a)| *a == node(n)).map(|(c, _)| c)
    }

    /// The ANSN of a TC, and whom it advertises.
    pub fn advertises(&self) -> (u16, Vec<MacAddr>) {
        assert_eq!(self.kind, wire::TC);
        let (ansn, advertised) = wire::tc(self.body()).unwrap();
        (ansn, advertised.collect())
    }
}

/// A TC to hear.
#[derive(Clone, Copy)]
pub struct Tc {
    pub of: usize,
    pub number: u16,
    pub ansn: u16,
    pub ttl: u8,
    pub advertised: &'static [usize],
}

impl Tc {
    pub fn write(&self, w: &mut Writer<'_>) {
        let head = Head {
            kind: wire::TC,
            valid: Duration::from_ms(15_000),
            originator: node(self.of),
            ttl: self.ttl,
            number: self.number,
        };
        let advertised = self.advertised.iter().map(|&n| node(n));
        assert!(w.tc(&head, self.ansn, advertised));
    }
}

/// A HELLO that counts for 6 s.
pub fn hello(w: &mut Writer<'_>, of: usize, willingness: u8, names: &[(LinkCode, usize)]) {
    let head = Head {
        kind: wire::HELLO,
        valid: Duration::from_ms(6_000),
        originator: node(of),
        ttl: 1,
        number: 1,
    };
    let groups = names.iter().map(|&(c, n)| (c, core::iter::once(node(n))));
    assert!(w.hello(&head, Duration::from_ms(2_000), willingness, groups));
}

pub struct Lone {
    pub olsr: Olsr<16>,
    pub sent: Vec<Sent>,
    /// Numbers of its packets.
    pub packets: Vec<u16>,
}

impl Lone {
    pub fn new() -> Lone {
        Lone::with(OlsrConfig::standard(node(ME), 1))
    }

    pub fn with(config: OlsrConfig) -> Lone {
        Lone {
            olsr: Olsr::new(&config),
            sent: Vec::new(),
            packets: Vec::new(),
        }
    }

    pub fn run_until(&mut self, ms: u64) {
        while self.olsr.deadline() <= Instant::from_ns(ms * MS) {
            let at = self.olsr.deadline();
            let mut out = [0; MAX_PACKET_OCTETS];
            let Some(packet) = self.olsr.emit(at, &mut out) else {
                continue;
            };
            self.packets.push(u16::from_be_bytes([packet[2], packet[3]]));
            self.sent.extend(wire::messages(packet).unwrap().map(|m| Sent {
                at_ms: at.as_ns() / MS,
                kind: m.kind,
                originator: m.originator,
                number: m.number,
                octets: m.octets.to_vec(),
            }));
        }
    }

    /// A packet of the neighbour `from`.
    pub fn hear(&mut self, ms: u64, from: usize, write: impl FnOnce(&mut Writer<'_>)) {
        self.run_until(ms);
        let mut out = [0; MAX_PACKET_OCTETS];
        let mut w = Writer::new(&mut out);
        write(&mut w);
        let packet = w.finish(0).unwrap();
        self.olsr.hear(Instant::from_ns(ms * MS), node(from), packet);
    }

    /// A HELLO of `from` that names these.
    pub fn hello(&mut self, ms: u64, from: usize, names: &[(LinkCode, usize)]) {
        self.hear(ms, from, |w| hello(w, from, 3, names));
    }

    /// A TC that comes from the neighbour `from`.
    pub fn tc(&mut self, ms: u64, from: usize, tc: Tc) {
        self.hear(ms, from, |w| tc.write(w));
    }

    /// To whom it has a way, over whom, and of how many hops.
    pub fn routes(&self) -> Vec<(usize, usize, u8)> {
        let number = |a: MacAddr| (0..16).find(|&n| node(n) == a).unwrap();
        let mut r: Vec<_> = self
            .olsr
            .routes()
            .map(|r| (number(r.to), number(r.next), r.hops))
            .collect();
        r.sort_unstable();
        r
    }

    /// Its own messages of this kind.
    pub fn own(&self, kind: u8) -> impl Iterator<Item = &Sent> {
        let own = self.sent.iter().filter(|s| s.originator == node(ME));
        own.filter(move |s| s.kind == kind)
    }

    /// How its next HELLO names the node; time goes on until then.
    pub fn names(&mut self, n: usize) -> Option<LinkCode> {
        let before = self.own(wire::HELLO).count();
        while self.own(wire::HELLO).count() == before {
            self.run_until(self.olsr.deadline().as_ns().div_ceil(MS));
        }
        self.own(wire::HELLO).last().unwrap().names(n)
    }

    /// What it has passed on.
    pub fn passed_on(&self) -> Vec<&Sent> {
        self.sent.iter().filter(|s| s.originator != node(ME)).collect()
    }
}
