//! What runs on a node: one of the protocols of this project, or a stranger.

use frame::mac::{Flags, FrameControl, Kind, SequenceControl};
use frame::{MacAddr, Rate};
use protocols::mac::beacon::Beaconer;
use protocols::mac::edf::coordinator::{Coordinator, CoordinatorCounters};
use protocols::mac::edf::responder::Responder;
use protocols::mac::edf::{Edf, EdfCounters};
use protocols::mac::ibss::{Energy, IbssCounters};
use protocols::mac::oneshot::Oneshot;
use protocols::mac::overlay::DEFAULT_HELD_OCTETS;
use protocols::mac::rate::RateControl;
use protocols::mac::rate::minstrel::Minstrel;
use protocols::mac::rate::rsin::Rsin;
use protocols::mac::redundancy::{Redundancy, RedundancyCounters};
use protocols::mac::roam::Roam;
use protocols::mac::roam::gate::Gate;
use protocols::mac::sender::Sender;
use protocols::mac::sink::Sink;
use protocols::mac::slotted::{Slotted, SlottedCounters};
use protocols::mac::sync::Sync;
use protocols::mac::tbmac::{DEFAULT_SLOTS, Tbmac, TbmacCounters};
use protocols::mac::tdma::join::JoinCounters;
use protocols::mac::tdma::{Tdma, TdmaCounters};
use radio::{Duration, Event, Instant, Protocol, Radio, TxHow};

use super::ad_hoc::{LineStation, Station};
use super::schedule::{MAX_HELD, MAX_SLOTS};
use super::walking::Walking;

/// A node of a schedule: tells the duplicates of 64 transmitters, because between a frame and its repetition come
/// those of all others.
pub type Scheduled<P = Sender<64>> = Tdma<P, MAX_HELD, DEFAULT_HELD_OCTETS, MAX_SLOTS>;

/// A host in a cell.
pub type Celled = Tbmac<Sender<64>, DEFAULT_SLOTS, MAX_HELD, DEFAULT_HELD_OCTETS>;

/// Nodes whose copies one tells apart. More than hear each other in the largest cells that [`crate::qualify`] takes.
pub const SOURCES: usize = 256;

/// Nodes that one polls at most.
pub const POLLED: usize = 256;

/// A protocol on a node. Those with large state are boxed, so that a thousand senders stay small.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "most nodes are senders, and the largest worlds have nothing else"
)]
#[allow(missing_docs, reason = "each variant is named like what it holds")]
pub enum Program {
    Sender(Sender<8>),
    Sink(Box<Sink>),
    Oneshot(Box<Oneshot>),
    Beaconer(Box<Beaconer<Gate<Sender<8>>>>),
    Edf(Box<Edf<Sender<8>>>),
    Coordinator(Box<Coordinator<POLLED>>),
    Responder(Box<Responder>),
    Tdma(Box<Scheduled>),
    TdmaEdf(Box<Scheduled<Edf<Sender<64>, MAX_HELD>>>),
    Tbmac(Box<Walking>),
    Slotted(Box<Slotted<Sender<8>, MAX_HELD, DEFAULT_HELD_OCTETS>>),
    Ibss(Box<Station>),
    Relay(Box<LineStation>),
    Prober(Prober),
    Redundant(Box<Redundancy<Program, MAX_HELD, DEFAULT_HELD_OCTETS, SOURCES>>),
    Minstrel(Box<RateControl<Program, Minstrel, 64, MAX_HELD>>),
    Rsin(Box<RateControl<Program, Rsin, 64, MAX_HELD>>),
    Roaming(Box<Roam<Program, MAX_HELD>>),
}

impl Program {
    /// What it is an overlay of, where that is a program, too.
    pub(super) fn above(&self) -> Option<&Program> {
        match self {
            Program::Redundant(p) => Some(p.protocol()),
            Program::Minstrel(p) => Some(p.protocol()),
            Program::Rsin(p) => Some(p.protocol()),
            Program::Roaming(p) => Some(p.protocol()),
            _ => None,
        }
    }

    /// What a node with slots has counted of them, and of joining them if it does.
    pub fn slots(&self) -> Option<(&TdmaCounters, Option<&JoinCounters>)> {
        match self {
            Program::Tdma(p) => Some((p.counters(), p.join_counters())),
            Program::TdmaEdf(p) => Some((p.counters(), p.join_counters())),
            _ => self.above()?.slots(),
        }
    }

    /// The clock by which a node of a schedule finds its slots.
    pub fn network_clock(&self) -> Option<&Sync> {
        match self {
            Program::Tdma(p) => Some(p.sync()),
            Program::TdmaEdf(p) => Some(p.sync()),
            _ => self.above()?.network_clock(),
        }
    }

    /// What a node with slots by its own clock has counted of them.
    pub fn bucket(&self) -> Option<&SlottedCounters> {
        match self {
            Program::Slotted(p) => Some(p.counters()),
            _ => self.above()?.bucket(),
        }
    }

    /// What a node that sends earliest deadline first has counted.
    pub fn deadlines(&self) -> Option<&EdfCounters> {
        match self {
            Program::Edf(p) => Some(p.counters()),
            Program::TdmaEdf(p) => Some(p.protocol().counters()),
            _ => self.above()?.deadlines(),
        }
    }

    /// What a node that polls others has counted.
    pub fn polls(&self) -> Option<&CoordinatorCounters> {
        match self {
            Program::Coordinator(p) => Some(p.counters()),
            _ => self.above()?.polls(),
        }
    }

    /// What a host of a cell has counted.
    pub fn rounds(&self) -> Option<&TbmacCounters> {
        match self {
            Program::Tbmac(p) => Some(p.host().counters()),
            _ => self.above()?.rounds(),
        }
    }

    /// What a node that sends on two adapters has counted.
    pub fn copies(&self) -> Option<&RedundancyCounters> {
        match self {
            Program::Redundant(p) => Some(p.counters()),
            _ => self.above()?.copies(),
        }
    }

    /// What a station of an ad hoc network has counted until `now`, on its clock, and where its time went.
    pub fn ad_hoc(&self, now: Instant) -> Option<(IbssCounters, Energy)> {
        match self {
            Program::Ibss(p) => Some((*p.counters(), p.energy(now))),
            Program::Relay(p) => Some((*p.link().counters(), p.link().energy(now))),
            _ => None,
        }
    }

    /// The beacon interval of the network that a station of an ad hoc network creates, TU.
    pub fn beacon_interval_tu(&self) -> Option<u16> {
        match self {
            Program::Ibss(p) => Some(p.config().interval_tu),
            Program::Relay(p) => Some(p.link().config().interval_tu),
            _ => None,
        }
    }

    /// A station that protects what it sends numbers its packets from here on: each number once with a key.
    pub fn number_packets_from(&mut self, first_pn: u64) {
        match self {
            Program::Ibss(p) => p.number_packets_from(first_pn),
            Program::Relay(p) => p.link_mut().number_packets_from(first_pn),
            _ => {}
        }
    }

    /// A station of an ad hoc network draws the delay of its beacons in slots of this length.
    pub(super) fn set_beacon_slot(&mut self, slot: Duration) {
        match self {
            Program::Ibss(p) => p.set_beacon_slot(slot),
            Program::Relay(p) => p.link_mut().set_beacon_slot(slot),
            _ => {}
        }
    }

    fn inner(&mut self) -> &mut dyn Protocol {
        match self {
            Program::Sender(p) => p,
            Program::Sink(p) => &mut **p,
            Program::Oneshot(p) => &mut **p,
            Program::Beaconer(p) => &mut **p,
            Program::Edf(p) => &mut **p,
            Program::Coordinator(p) => &mut **p,
            Program::Responder(p) => &mut **p,
            Program::Tdma(p) => &mut **p,
            Program::Tbmac(p) => &mut **p,
            Program::Slotted(p) => &mut **p,
            Program::Ibss(p) => &mut **p,
            Program::Relay(p) => &mut **p,
            Program::Prober(p) => p,
            Program::TdmaEdf(p) => &mut **p,
            Program::Redundant(p) => &mut **p,
            Program::Minstrel(p) => &mut **p,
            Program::Rsin(p) => &mut **p,
            Program::Roaming(p) => &mut **p,
        }
    }
}

impl Protocol for Program {
    #[inline]
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Program::Sender(p) => p.handle(now, event, radio),
            other => other.inner().handle(now, event, radio),
        }
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        match self {
            Program::Sender(p) => p.deadline(),
            Program::Sink(p) => p.deadline(),
            Program::Oneshot(p) => p.deadline(),
            Program::Beaconer(p) => p.deadline(),
            Program::Edf(p) => p.deadline(),
            Program::Coordinator(p) => p.deadline(),
            Program::Responder(p) => p.deadline(),
            Program::Tdma(p) => p.deadline(),
            Program::Tbmac(p) => p.deadline(),
            Program::Slotted(p) => p.deadline(),
            Program::Ibss(p) => p.deadline(),
            Program::Relay(p) => p.deadline(),
            Program::Prober(p) => p.deadline(),
            Program::TdmaEdf(p) => p.deadline(),
            Program::Redundant(p) => p.deadline(),
            Program::Minstrel(p) => p.deadline(),
            Program::Rsin(p) => p.deadline(),
            Program::Roaming(p) => p.deadline(),
        }
    }
}

/// A stranger that looks for networks: bursts of probe requests to all, with the wildcard SSID and the rates of
/// 802.11a/g (IEEE 802.11-2016, 9.3.3.10), which nobody here answers.
#[derive(Clone, Debug)]
pub struct Prober {
    me: MacAddr,
    every: Duration,
    burst: u16,
    rate: Rate,
    next: Option<Instant>,
    number: u16,
}

impl Prober {
    /// One burst of `burst` frames in each `every`.
    pub fn new(me: MacAddr, every: Duration, burst: u16, rate: Rate) -> Prober {
        Prober {
            me,
            every,
            burst,
            rate,
            next: None,
            number: 0,
        }
    }
}

impl Protocol for Prober {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Start => self.next = Some(now.after(self.every)),
            Event::Timer => {
                for _ in 0..self.burst {
                    let mut frame = [0; 24 + 2 + 10];
                    frame[..2].copy_from_slice(&FrameControl::new(Kind::PROBE_REQUEST, Flags::NONE).0);
                    frame[4..10].copy_from_slice(&MacAddr::BROADCAST.0);
                    frame[10..16].copy_from_slice(&self.me.0);
                    frame[16..22].copy_from_slice(&MacAddr::BROADCAST.0);
                    frame[22..24].copy_from_slice(&SequenceControl::new(self.number, 0).0.to_le_bytes());
                    // SSID of length 0, then supported rates 6 to 54 Mb/s
                    frame[26..].copy_from_slice(&[1, 8, 0x8c, 0x12, 0x98, 0x24, 0xb0, 0x48, 0x60, 0x6c]);
                    self.number = (self.number + 1) & 0xfff;
                    let token = radio.token();
                    radio.request(token, &frame, &TxHow::one_shot(self.rate));
                }
                self.next = self.next.map(|t| t.after(self.every));
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }
}
