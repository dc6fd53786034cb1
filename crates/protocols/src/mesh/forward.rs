//! A node of the mesh: takes datagrams from above and from the air, and sends them to the next hop, one after the
//! other from one queue of bounded length. What is for this node is delivered.
//!
//! Towards the protocol above it is like any innermost protocol: MSDUs go down and come up, with the far end as their
//! peer. Their payload begins with the two ports ([`PORTS_OCTETS`]), own and other end's when submitted, the other
//! end's and own when delivered.
//!
//! On the way out each datagram passes the node's [`Hop`], which raises the delay in packets of ATP. A datagram of ATP
//! for which there is no route is answered with a notice of path failure, and, if [`ForwarderConfig::gone_after`] says so, one that
//! a neighbour does not hear any more.

use super::header::{ETHERTYPE, HEADER_OCTETS, Header};
use super::unheard::Unheard;
use crate::mac::data::{Duplicates, Framer, Identity, MAX_DATA_OCTETS, Received};
use crate::transport::hop::{Hop, HopConfig};
use crate::transport::wire::{
    Control, HEADER_OCTETS as PACKET_OCTETS, Header as Packet, MAX_PACKET_OCTETS, ProtocolId,
};
use frame::{AccessCategory, MacAddr};
use radio::{
    AdapterId, Attribute, AttributeName, Confirm, Event, Instant, Msdu, Outcome, Protocol, Radio, Token,
    TxHow,
};

/// Octets of the ports before a payload.
pub const PORTS_OCTETS: usize = 4;
/// Octets of the longest payload behind the ports.
pub const MAX_OCTETS: usize = MAX_PACKET_OCTETS;
/// Hops that a datagram may take.
pub const MOST_HOPS: u8 = 32;

/// How a node of the mesh works.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForwarderConfig {
    /// Who it is.
    pub identity: Identity,
    /// How each datagram is sent.
    pub how: TxHow,
    /// How datagrams to all neighbours are sent: once, at a rate that all of them can hear.
    pub group: TxHow,
    /// How its delay is averaged.
    pub hop: HopConfig,
    /// So many datagrams in a row that a neighbour has not acknowledged, and it is taken for gone, until it acknowledges one. `None`:
    /// never, as in the ATP thesis, which leaves notices of path failure out.
    pub gone_after: Option<u8>,
}

/// What a node has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Datagrams of its own.
    pub submitted: u64,
    /// Datagrams of others that it passed on.
    pub forwarded: u64,
    /// Datagrams for it.
    pub delivered: u64,
    /// Lost because the queue was full.
    pub overflowed: u64,
    /// Lost because there was no route, or too many hops.
    pub unroutable: u64,
    /// Sent and not acknowledged by the next hop.
    pub unheard: u64,
    /// Sources told that the path has failed.
    pub told: u64,
    /// Frames that are no datagrams, or are too long.
    pub foreign: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    octets: [u8; HEADER_OCTETS + MAX_OCTETS],
    length: usize,
    to: MacAddr,
    at: Instant,
}

/// The datagram that is being sent.
#[derive(Clone, Copy, Debug)]
struct Flying {
    token: Token,
    /// When it came to the queue.
    queued: Instant,
    to: MacAddr,
    /// What its source is told if the neighbour is gone.
    notice: Option<Notice>,
}

/// A notice of path failure, on its way to the source.
type Notice = (Header, [u8; PACKET_OCTETS]);

/// See the [module](self). Keeps up to `Q` datagrams in its queue and up to `N` routes.
#[derive(Clone, Debug)]
pub struct Forwarder<const Q: usize = 50, const N: usize = 32> {
    config: ForwarderConfig,
    framer: Framer,
    duplicates: Duplicates<16>,
    hop: Hop,
    routes: [Option<(MacAddr, MacAddr)>; N],
    queue: [Slot; Q],
    head: usize,
    count: usize,
    flying: Option<Flying>,
    unheard: Unheard,
    counters: Counters,
}

impl<const Q: usize, const N: usize> Forwarder<Q, N> {
    /// A node without routes.
    pub fn new(config: &ForwarderConfig) -> Self {
        let slot = Slot {
            octets: [0; HEADER_OCTETS + MAX_OCTETS],
            length: 0,
            to: MacAddr::ZERO,
            at: Instant::ZERO,
        };
        Forwarder {
            framer: Framer::new(config.identity, false, ETHERTYPE),
            hop: Hop::new(&config.hop),
            config: *config,
            duplicates: Duplicates::default(),
            routes: [None; N],
            queue: [slot; Q],
            head: 0,
            count: 0,
            flying: None,
            unheard: Unheard::default(),
            counters: Counters::default(),
        }
    }

    /// Datagrams for `destination` go to the neighbour `next` from now on. False if there is no place for another
    /// route.
    pub fn set_route(&mut self, destination: MacAddr, next: MacAddr) -> bool {
        self.clear_route(destination);
        let free = self.routes.iter_mut().find(|r| r.is_none());
        let has_place = free.is_some();
        if let Some(place) = free {
            *place = Some((destination, next));
        }
        has_place
    }

    /// Nothing but these routes counts from now on: destinations, each with its next hop, `N` of them at most.
    pub fn set_routes(&mut self, routes: impl IntoIterator<Item = (MacAddr, MacAddr)>) {
        let mut routes = routes.into_iter();
        self.routes.iter_mut().for_each(|r| *r = routes.next());
    }

    /// There is no way to `destination` any more.
    pub fn clear_route(&mut self, destination: MacAddr) {
        self.routes
            .iter_mut()
            .filter(|r| r.is_some_and(|(d, _)| d == destination))
            .for_each(|r| *r = None);
    }

    /// What it has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its delay.
    pub fn hop(&self) -> &Hop {
        &self.hop
    }

    /// Datagrams that wait.
    pub fn waiting(&self) -> usize {
        self.count
    }

    /// Sends `payload` to a port of all neighbours, who do not pass it on.
    ///
    /// # Panics
    /// If it is longer than [`MAX_OCTETS`].
    pub fn broadcast(&mut self, now: Instant, port: u16, payload: &[u8], radio: &mut dyn Radio) {
        let header = Header {
            hops_left: 1,
            from_port: port,
            to_port: port,
            source: self.config.identity.me,
            destination: MacAddr::BROADCAST,
        };
        self.counters.submitted += 1;
        self.put(now, &header, payload, radio);
        self.launch(radio);
    }

    fn next_hop(&self, destination: MacAddr) -> Option<MacAddr> {
        if destination.is_group() {
            return Some(destination);
        }
        let mut routes = self.routes.iter().flatten();
        routes.find(|(d, _)| *d == destination).map(|(_, next)| *next)
    }

    /// Puts a datagram into the queue; false if there is no route.
    fn put(&mut self, now: Instant, header: &Header, payload: &[u8], radio: &dyn Radio) -> bool {
        let Some(to) = self.next_hop(header.destination) else {
            self.counters.unroutable += 1;
            return false;
        };
        if self.count == Q {
            self.counters.overflowed += 1;
            return true;
        }
        if let Some(Attribute::Counters(c)) = radio.get(AdapterId(0), AttributeName::Counters) {
            self.hop.busy(now, c.busy_time_us);
        }
        let length = HEADER_OCTETS + payload.len();
        let slot = &mut self.queue[(self.head + self.count) % Q];
        slot.octets[..HEADER_OCTETS].copy_from_slice(&header.octets());
        slot.octets[HEADER_OCTETS..length].copy_from_slice(payload);
        self.hop.pass(now, &mut slot.octets[HEADER_OCTETS..length]);
        (slot.length, slot.to, slot.at) = (length, to, now);
        self.count += 1;
        true
    }

    /// Sends the head of the queue unless something is being sent.
    fn launch(&mut self, radio: &mut dyn Radio) {
        if self.flying.is_some() || self.count == 0 {
            return;
        }
        let slot = &self.queue[self.head];
        let mut out = [0; MAX_DATA_OCTETS];
        let frame = self.framer.frame(
            slot.to,
            AccessCategory::BestEffort,
            false,
            &[],
            &slot.octets[..slot.length],
            &mut out,
        );
        let token = radio.token();
        let to = slot.to;
        self.flying = Some(Flying {
            token,
            queued: slot.at,
            to,
            notice: self
                .config
                .gone_after
                .and_then(|_| notice(&slot.octets[..slot.length])),
        });
        self.head = (self.head + 1) % Q;
        self.count -= 1;
        let how = if to.is_group() {
            &self.config.group
        } else {
            &self.config.how
        };
        radio.request(token, frame.expect("its length was checked"), how);
    }

    fn submit(&mut self, now: Instant, msdu: &Msdu<'_>, radio: &mut dyn Radio) {
        let Some((ports, payload)) = msdu.payload.split_first_chunk::<PORTS_OCTETS>() else {
            self.counters.foreign += 1;
            return;
        };
        if payload.len() > MAX_OCTETS {
            self.counters.foreign += 1;
            return;
        }
        let header = Header {
            hops_left: MOST_HOPS,
            from_port: u16::from_be_bytes([ports[0], ports[1]]),
            to_port: u16::from_be_bytes([ports[2], ports[3]]),
            source: self.config.identity.me,
            destination: msdu.peer,
        };
        self.counters.submitted += 1;
        if !self.put(now, &header, payload, radio)
            && let Some(notice) = failure(payload)
        {
            self.counters.told += 1;
            deliver(&header.back(MOST_HOPS), &notice, radio);
        }
    }

    fn receive(&mut self, now: Instant, mpdu: &[u8], radio: &mut dyn Radio) {
        let me = self.config.identity.me;
        let received = Received::parse(mpdu).filter(|r| r.is_for(me) && r.ethertype == ETHERTYPE);
        let datagram = received.and_then(|r| Header::parse(r.payload).map(|d| (r, d)));
        let Some((r, (header, payload))) = datagram.filter(|(_, (_, p))| p.len() <= MAX_OCTETS) else {
            self.counters.foreign += 1;
            return;
        };
        if self.duplicates.is_duplicate(&r) {
            return;
        }
        if header.destination == me {
            self.counters.delivered += 1;
            return deliver(&header, payload, radio);
        }
        if header.destination.is_group() {
            self.counters.foreign += 1;
            return;
        }
        if header.hops_left <= 1 {
            self.counters.unroutable += 1;
            return;
        }
        let onwards = Header {
            hops_left: header.hops_left - 1,
            ..header
        };
        if self.put(now, &onwards, payload, radio) {
            self.counters.forwarded += 1;
        } else if let Some(notice) = failure(payload) {
            self.counters.told += 1;
            self.put(now, &header.back(MOST_HOPS), &notice, radio);
        }
    }

    fn confirm(&mut self, now: Instant, confirm: &Confirm, radio: &mut dyn Radio) {
        let Some(flying) = self.flying.take_if(|f| f.token == confirm.token) else {
            return;
        };
        if matches!(confirm.outcome, Outcome::Acked | Outcome::NotAcked) {
            self.hop.sent(now, flying.queued, &confirm.stamps);
        }
        if flying.to.is_group() {
            return;
        }
        if confirm.outcome == Outcome::Acked {
            return self.unheard.heard(flying.to);
        }
        self.counters.unheard += 1;
        let missed = self.unheard.missed(flying.to);
        if self.config.gone_after.is_some_and(|n| missed >= n)
            && let Some((back, notice)) = flying.notice
        {
            self.counters.told += 1;
            if back.destination == self.config.identity.me {
                deliver(&back, &notice, radio);
            } else {
                self.put(now, &back, &notice, radio);
            }
        }
    }
}

/// Hands a datagram up: the other end's port, then the own one, then the payload.
fn deliver(header: &Header, payload: &[u8], radio: &mut dyn Radio) {
    let mut out = [0; PORTS_OCTETS + MAX_OCTETS];
    out[..2].copy_from_slice(&header.from_port.to_be_bytes());
    out[2..4].copy_from_slice(&header.to_port.to_be_bytes());
    out[4..4 + payload.len()].copy_from_slice(payload);
    radio.deliver(Msdu::new(header.source, &out[..4 + payload.len()]));
}

/// What the source of a datagram is told when it cannot go on.
fn notice(datagram: &[u8]) -> Option<Notice> {
    let (header, payload) = Header::parse(datagram)?;
    Some((header.back(MOST_HOPS), failure(payload)?))
}

/// The notice for a packet of ATP that cannot go on; feedback and notices get none.
fn failure(payload: &[u8]) -> Option<[u8; PACKET_OCTETS]> {
    let (packet, _) = Packet::parse(payload).ok()?;
    let counts = packet.protocol == ProtocolId::Atp
        && !packet.is_feedback()
        && !packet.control.has(Control::PATH_FAILURE)
        && !packet.control.has(Control::RST);
    let notice = Packet {
        sequence: packet.sequence,
        acknowledgement: packet.acknowledgement,
        ..Packet::new(ProtocolId::Atp, Control::PATH_FAILURE)
    };
    counts.then(|| notice.octets())
}

impl<const Q: usize, const N: usize> Protocol for Forwarder<Q, N> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match event {
            Event::Submit(msdu) => self.submit(now, &msdu, radio),
            Event::Indication(i) => self.receive(now, i.frame, radio),
            Event::Confirm(c) => self.confirm(now, &c, radio),
            Event::Start | Event::Timer | Event::Beacon(_) | Event::Set(_) => {}
        }
        self.launch(radio);
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests;
