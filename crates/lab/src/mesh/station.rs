//! A node of the mesh with the ends of its flows.

use std::collections::{BTreeMap, VecDeque};

use frame::MacAddr;
use protocols::mesh::forward::Counters;
use protocols::mesh::{Forwarder, Olsr, Router};
use protocols::transport::atp::Macroflow;
use protocols::transport::wire::MAX_PACKET_OCTETS;
use protocols::transport::{Event as End, Path};
use radio::{Event, Instant, Msdu, Protocol, Radio, Tap};

use super::flow::Flow;

/// Datagrams on their way down, with the flow that they are of.
#[derive(Default)]
struct Down(VecDeque<(usize, Vec<u8>)>, usize);

impl Path for Down {
    fn request(&mut self, datagram: &[u8]) {
        self.0.push_back((self.1, datagram.to_vec()));
    }
}

/// Datagrams on their way up, each with its peer.
type Up = VecDeque<(MacAddr, Vec<u8>)>;

/// What forwards.
enum Node {
    /// Along routes that were set.
    Static(Box<Forwarder>),
    /// Along routes that it finds.
    Routing(Box<Router>),
}

impl Node {
    fn get(&self) -> &dyn Protocol {
        match self {
            Node::Static(p) => &**p,
            Node::Routing(p) => &**p,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Protocol {
        match self {
            Node::Static(p) => &mut **p,
            Node::Routing(p) => &mut **p,
        }
    }

    /// What it delivers is put behind `up`, with the peer.
    fn tell(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio, up: &mut Up) {
        let keep = |msdu: Msdu<'_>, _: &mut dyn Radio| up.push_back((msdu.peer, msdu.payload.to_vec()));
        self.get_mut()
            .handle(now, event, &mut Tap::delivering(radio, keep));
    }
}

/// A node with its flows.
pub struct Station {
    node: Node,
    flows: Vec<Flow>,
    /// What those to the same peer share.
    macroflows: BTreeMap<MacAddr, Macroflow>,
    /// Datagrams for nobody, sent at an instant, so that the hops have something to measure.
    greetings: Vec<(Instant, MacAddr)>,
}

impl Station {
    /// A node without flows that has its routes.
    pub fn new(forwarder: Forwarder) -> Station {
        Station::of(Node::Static(Box::new(forwarder)))
    }

    /// A node without flows that finds its routes.
    pub fn routing(router: Router) -> Station {
        Station::of(Node::Routing(Box::new(router)))
    }

    fn of(node: Node) -> Station {
        Station {
            node,
            flows: Vec::new(),
            macroflows: BTreeMap::new(),
            greetings: Vec::new(),
        }
    }

    /// Adds a flow and tells its number at this node.
    pub fn add(&mut self, flow: Flow) -> usize {
        self.flows.push(flow);
        self.flows.len() - 1
    }

    /// Sends 64 octets to `to` at `at`. They are of no flow.
    pub fn greet(&mut self, at: Instant, to: MacAddr) {
        self.greetings.push((at, to));
    }

    /// Its flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// What finds its routes, if anything does.
    pub fn olsr(&self) -> Option<&Olsr> {
        match &self.node {
            Node::Static(_) => None,
            Node::Routing(router) => Some(router.olsr()),
        }
    }

    /// What it has counted of the datagrams that it sent and passed on.
    pub fn counters(&self) -> &Counters {
        match &self.node {
            Node::Static(forwarder) => forwarder.counters(),
            Node::Routing(router) => router.forwarder().counters(),
        }
    }

    fn tell(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let mut up = Up::new();
        let mut down = Down::default();
        self.node.tell(now, event, radio, &mut up);
        if let Event::Timer = event {
            self.timers(now, &mut down);
            self.greetings.retain(|(at, to)| {
                let due = *at <= now;
                if due {
                    let msdu = Msdu::new(*to, &[0; 68]);
                    self.node.tell(now, Event::Submit(msdu), radio, &mut up);
                }
                !due
            });
        }
        loop {
            if let Some((peer, payload)) = up.pop_front() {
                let port = |at: usize| u16::from_be_bytes([payload[at], payload[at + 1]]);
                let ports = (port(2), port(0));
                let flow = self
                    .flows
                    .iter_mut()
                    .position(|f| f.peer == peer && f.ports == ports);
                if let Some(n) = flow {
                    self.tell_flow(now, n, End::Indication(&payload[4..]), &mut down);
                }
            } else if let Some((n, datagram)) = down.0.pop_front() {
                let (own, other) = self.flows[n].ports;
                let mut payload = [0; 4 + MAX_PACKET_OCTETS];
                payload[..2].copy_from_slice(&own.to_be_bytes());
                payload[2..4].copy_from_slice(&other.to_be_bytes());
                payload[4..4 + datagram.len()].copy_from_slice(&datagram);
                let msdu = Msdu::new(self.flows[n].peer, &payload[..4 + datagram.len()]);
                self.node.tell(now, Event::Submit(msdu), radio, &mut up);
            } else {
                return;
            }
        }
    }

    fn tell_flow(&mut self, now: Instant, n: usize, event: End<'_>, down: &mut Down) {
        down.1 = n;
        let flow = &mut self.flows[n];
        let among = self.macroflows.entry(flow.peer).or_default();
        flow.handle(now, event, down, among);
    }

    fn timers(&mut self, now: Instant, down: &mut Down) {
        for n in 0..self.flows.len() {
            let flow = &mut self.flows[n];
            if flow.deadline().is_some_and(|t| t <= now) {
                let event = if flow.start.take().is_some() {
                    End::Start
                } else {
                    End::Timer
                };
                self.tell_flow(now, n, event, down);
            }
        }
    }
}

impl Protocol for Station {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.tell(now, event, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        let flows = self.flows.iter().filter_map(Flow::deadline);
        let greetings = self.greetings.iter().map(|g| g.0);
        flows.chain(greetings).chain(self.node.get().deadline()).min()
    }
}
