//! A node of the mesh with the ends of its flows: one writes a stream of given length and ends it, the other reads
//! everything at once and checks each octet.

use std::collections::VecDeque;

use frame::MacAddr;
use protocols::mesh::Forwarder;
use protocols::transport::wire::{self, MAX_PACKET_OCTETS};
use protocols::transport::{Buffers, Event as End, Path, Sent, State, Transport, atp, tahoe};
use radio::{AdapterId, Attribute, AttributeName, Event, Instant, Msdu, Protocol, Radio, Token, TxHow};

/// Octets that may be on the way, or wait behind a hole: more than ATP sends in two of its longest epochs here.
const BUFFER_OCTETS: usize = 4 << 20;
/// Packets that may be.
const RECORDS: usize = 4_096;
/// The window of TCP Tahoe.
const WINDOW_OCTETS: usize = 65_535;

/// A transport.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// TCP Tahoe.
    Tahoe,
    /// TCP NewReno.
    NewReno,
    /// ATP as its authors set it.
    Default,
    /// Aggressive ATP.
    Aggressive,
    /// Adaptive ATP.
    Adaptive,
}

impl Kind {
    /// In lower case.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Tahoe => "tahoe",
            Kind::NewReno => "newreno",
            Kind::Default => "default",
            Kind::Aggressive => "aggressive",
            Kind::Adaptive => "adaptive",
        }
    }

    /// The constants of a variant of ATP.
    pub fn atp(self) -> Option<atp::Config> {
        match self {
            Kind::Default => Some(atp::Config::standard()),
            Kind::Aggressive => Some(atp::Config::aggressive()),
            Kind::Adaptive => Some(atp::Config::adaptive()),
            Kind::Tahoe | Kind::NewReno => None,
        }
    }
}

/// What was seen at one end of a flow, by time in ns.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Trace {
    /// Octets delivered in order.
    pub delivered: Vec<(u64, u32)>,
    /// At the receiver: D_max in each packet of data, us.
    pub delays_us: Vec<(u64, u32)>,
    /// At the sender: its spacing after each feedback, us.
    pub spacings_us: Vec<(u64, u32)>,
}

type Atp = atp::Connection<Vec<u8>, Vec<Sent>, 512>;
type Tcp = tahoe::Connection<Vec<u8>>;

enum Connection {
    Atp(Box<Atp>),
    Tcp(Box<Tcp>),
}

impl Connection {
    fn get(&self) -> &dyn Transport {
        match self {
            Connection::Atp(c) => &**c,
            Connection::Tcp(c) => &**c,
        }
    }

    fn get_mut(&mut self) -> &mut dyn Transport {
        match self {
            Connection::Atp(c) => &mut **c,
            Connection::Tcp(c) => &mut **c,
        }
    }
}

/// One end of a flow.
pub struct Flow {
    connection: Connection,
    peer: MacAddr,
    ports: (u16, u16),
    start: Option<Instant>,
    /// Octets still to be written, if it is the sender.
    left: Option<u64>,
    read: u64,
    trace: Trace,
}

/// The octet at a place of a stream.
fn octet(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl Flow {
    /// The end that sends `octets` to `peer`, from `start` on.
    pub fn sender(kind: Kind, peer: MacAddr, port: u16, octets: u64, start: Instant, number: u32) -> Flow {
        Flow {
            left: Some(octets),
            start: Some(start),
            ..Flow::new(kind, peer, (port, port), true, number)
        }
    }

    /// The end that waits to receive.
    pub fn receiver(kind: Kind, peer: MacAddr, port: u16, number: u32) -> Flow {
        Flow::new(kind, peer, (port, port), false, number)
    }

    fn new(kind: Kind, peer: MacAddr, ports: (u16, u16), calls: bool, number: u32) -> Flow {
        let connection = match kind.atp() {
            Some(config) => {
                let config = atp::Config {
                    initial_number: number,
                    ..config
                };
                let (to_send, to_read) = if calls {
                    (BUFFER_OCTETS, 0)
                } else {
                    (0, BUFFER_OCTETS)
                };
                let buffers = Buffers {
                    send: vec![0; to_send],
                    receive: vec![0; to_read],
                    sent: vec![Sent::default(); RECORDS],
                };
                Connection::Atp(Box::new(if calls {
                    Atp::caller(&config, buffers)
                } else {
                    Atp::listener(&config, buffers)
                }))
            }
            None => {
                let recovery = match kind {
                    Kind::NewReno => tahoe::Recovery::NewReno,
                    _ => tahoe::Recovery::Tahoe,
                };
                let config = tahoe::Config {
                    initial_number: number,
                    ..tahoe::Config::new(recovery)
                };
                let buffers = Buffers {
                    send: vec![0; 4 * WINDOW_OCTETS],
                    receive: vec![0; WINDOW_OCTETS],
                    sent: [],
                };
                Connection::Tcp(Box::new(if calls {
                    Tcp::caller(&config, buffers)
                } else {
                    Tcp::listener(&config, buffers)
                }))
            }
        };
        Flow {
            connection,
            peer,
            ports,
            start: None,
            left: None,
            read: 0,
            trace: Trace::default(),
        }
    }

    /// What was seen.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Octets delivered.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Where the connection is.
    pub fn state(&self) -> State {
        self.connection.get().state()
    }

    fn deadline(&self) -> Option<Instant> {
        self.start.or_else(|| self.connection.get().deadline())
    }

    fn handle(&mut self, now: Instant, event: End<'_>, path: &mut dyn Path) {
        self.connection.get_mut().handle(now, event, path);
        self.work(now);
        if let (End::Indication(d), Connection::Atp(c)) = (event, &self.connection)
            && let Ok((h, _)) = wire::Header::parse(d)
        {
            if h.is_feedback() {
                self.trace.spacings_us.push((now.as_ns(), c.spacing_us()));
            } else if self.left.is_none() {
                self.trace.delays_us.push((now.as_ns(), h.delay_us));
            }
        }
    }

    /// What the application does.
    fn work(&mut self, now: Instant) {
        let connection = self.connection.get_mut();
        if let Some(left) = &mut self.left {
            // the content counts from the end, so that only what is left need be known
            while *left > 0 {
                let n = (*left).min(4_096);
                let piece: Vec<u8> = (0..n).map(|i| octet(*left - i)).collect();
                let taken = connection.write(now, &piece) as u64;
                *left -= taken;
                if taken < n {
                    break;
                }
            }
            if *left == 0 {
                connection.finish(now);
            }
            return;
        }
        let mut out = [0; 4_096];
        loop {
            let n = connection.read(now, &mut out);
            if n == 0 {
                break;
            }
            self.read += n as u64;
            self.trace.delivered.push((now.as_ns(), n as u32));
        }
        if connection.is_exhausted() {
            connection.finish(now);
        }
    }
}

/// Datagrams on their way down, with the flow that they are of.
#[derive(Default)]
struct Down(VecDeque<(usize, Vec<u8>)>, usize);

impl Path for Down {
    fn request(&mut self, datagram: &[u8]) {
        self.0.push_back((self.1, datagram.to_vec()));
    }
}

/// A node with its flows.
pub struct Station {
    forwarder: Box<Forwarder>,
    flows: Vec<Flow>,
    /// Datagrams for nobody, sent at an instant, so that the hops have something to measure.
    greetings: Vec<(Instant, MacAddr)>,
}

impl Station {
    /// A node without flows.
    pub fn new(forwarder: Forwarder) -> Station {
        Station {
            forwarder: Box::new(forwarder),
            flows: Vec::new(),
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

    /// Its node of the mesh.
    pub fn forwarder(&self) -> &Forwarder {
        &self.forwarder
    }

    fn tell(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let mut up = VecDeque::new();
        let mut down = Down::default();
        self.forwarder
            .handle(now, event, &mut Desk { radio, up: &mut up });
        if let Event::Timer = event {
            self.timers(now, &mut down);
            self.greetings.retain(|(at, to)| {
                let due = *at <= now;
                if due {
                    let msdu = Msdu::new(*to, &[0; 68]);
                    let mut desk = Desk { radio, up: &mut up };
                    self.forwarder.handle(now, Event::Submit(msdu), &mut desk);
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
                    down.1 = n;
                    self.flows[n].handle(now, End::Indication(&payload[4..]), &mut down);
                }
            } else if let Some((n, datagram)) = down.0.pop_front() {
                let (own, other) = self.flows[n].ports;
                let mut payload = [0; 4 + MAX_PACKET_OCTETS];
                payload[..2].copy_from_slice(&own.to_be_bytes());
                payload[2..4].copy_from_slice(&other.to_be_bytes());
                payload[4..4 + datagram.len()].copy_from_slice(&datagram);
                let msdu = Msdu::new(self.flows[n].peer, &payload[..4 + datagram.len()]);
                let mut desk = Desk { radio, up: &mut up };
                self.forwarder.handle(now, Event::Submit(msdu), &mut desk);
            } else {
                return;
            }
        }
    }

    fn timers(&mut self, now: Instant, down: &mut Down) {
        for (n, flow) in self.flows.iter_mut().enumerate() {
            if flow.deadline().is_some_and(|t| t <= now) {
                down.1 = n;
                let event = if flow.start.take().is_some() {
                    End::Start
                } else {
                    End::Timer
                };
                flow.handle(now, event, down);
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
        flows.chain(self.greetings.iter().map(|g| g.0)).min()
    }
}

/// The radio of the forwarder: what it delivers stays here.
struct Desk<'a> {
    radio: &'a mut dyn Radio,
    up: &'a mut VecDeque<(MacAddr, Vec<u8>)>,
}

impl Radio for Desk<'_> {
    fn token(&mut self) -> Token {
        self.radio.token()
    }

    fn request(&mut self, token: Token, frame: &[u8], how: &TxHow) {
        self.radio.request(token, frame, how);
    }

    fn set(&mut self, token: Token, adapter: AdapterId, attribute: Attribute) {
        self.radio.set(token, adapter, attribute);
    }

    fn get(&self, adapter: AdapterId, name: AttributeName) -> Option<Attribute> {
        self.radio.get(adapter, name)
    }

    fn abort(&mut self, token: Token) {
        self.radio.abort(token);
    }

    fn deliver(&mut self, msdu: Msdu<'_>) {
        self.up.push_back((msdu.peer, msdu.payload.to_vec()));
    }
}
