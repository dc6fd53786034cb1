//! One end of a flow: one writes a stream of given length and ends it, the other reads everything at once.

use frame::MacAddr;
use protocols::transport::atp::Macroflow;
use protocols::transport::wire;
use protocols::transport::{Buffers, Event as End, Path, Sent, State, Transport, atp, tahoe};
use radio::Instant;

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
    /// Ours, with an epoch that adjusts itself.
    Sdmac,
    /// The same over hops that give no notices of path failure, as in the thesis.
    Unaided,
    /// Default ATP whose rate stays as it is when a feedback is missed: what the penalty does is what is different without it.
    Lenient,
}

impl Kind {
    /// After how many datagrams in a row that a neighbour has not acknowledged, each tried `tries` times, hops give a notice of path failure: those of our variant, where
    /// adapters try again. Where frames are sent once a loss says nothing about the path.
    pub fn gone_after(self, tries: u8) -> Option<u8> {
        (self == Kind::Sdmac && tries > 1).then_some(3)
    }

    /// In lower case.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Tahoe => "tahoe",
            Kind::NewReno => "newreno",
            Kind::Default => "default",
            Kind::Aggressive => "aggressive",
            Kind::Adaptive => "adaptive",
            Kind::Sdmac => "sdmac-atp",
            Kind::Unaided => "sdmac-atp unaided",
            Kind::Lenient => "lenient",
        }
    }

    /// The constants of a variant of ATP.
    pub fn atp(self) -> Option<atp::Config> {
        match self {
            Kind::Default => Some(atp::Config::standard()),
            Kind::Aggressive => Some(atp::Config::aggressive()),
            Kind::Adaptive => Some(atp::Config::adaptive()),
            Kind::Sdmac | Kind::Unaided => Some(atp::Config::sdmac()),
            Kind::Lenient => Some(atp::Config {
                miss_penalty: 1.0,
                ..atp::Config::standard()
            }),
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
    /// At the sender: its spacing whenever that has changed, us.
    pub chosen_us: Vec<(u64, u32)>,
    /// D in each feedback, us: at the receiver when it was sent, at the sender when it came.
    pub feedback_us: Vec<(u64, u32)>,
    /// What each of these feedbacks is known by at both ends: what it acknowledges, and how old its news was.
    pub feedback_marks: Vec<u64>,
}

/// The path of a receiver, and what it feeds back along it.
struct Watched<'a> {
    path: &'a mut dyn Path,
    now: Instant,
    feedback_us: &'a mut Vec<(u64, u32)>,
    feedback_marks: &'a mut Vec<u64>,
}

/// What a feedback is known by; hops leave these fields alone.
fn mark(h: &wire::Header) -> u64 {
    u64::from(h.acknowledgement) << 32 | u64::from(h.spacing_us)
}

impl Path for Watched<'_> {
    fn request(&mut self, datagram: &[u8]) {
        if let Ok((h, _)) = wire::Header::parse(datagram)
            && h.is_feedback()
        {
            self.feedback_us.push((self.now.as_ns(), h.delay_us));
            self.feedback_marks.push(mark(&h));
        }
        self.path.request(datagram);
    }
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
    pub(super) peer: MacAddr,
    pub(super) ports: (u16, u16),
    /// When it calls; `None` once it has, and at the receiver.
    pub(super) start: Option<Instant>,
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
                    // no link here drops packets for their length, and those of the thesis have one
                    fitting: false,
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

    /// Its port, the same at both ends.
    pub fn port(&self) -> u16 {
        self.ports.0
    }

    /// What was seen.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Octets delivered.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Packets that it has sent again.
    pub fn resent(&self) -> u64 {
        match &self.connection {
            Connection::Atp(c) => c.counters().resent,
            Connection::Tcp(c) => c.counters().resent,
        }
    }

    /// Where the connection is.
    pub fn state(&self) -> State {
        self.connection.get().state()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.start.or_else(|| self.connection.get().deadline())
    }

    /// `among` the flows of this node to the same peer.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        event: End<'_>,
        path: &mut dyn Path,
        among: &mut Macroflow,
    ) {
        if self.left.is_some() {
            match &mut self.connection {
                Connection::Atp(c) => c.handle_among(now, event, path, self.ports.0.into(), among),
                Connection::Tcp(c) => c.handle(now, event, path),
            }
        } else {
            let trace = &mut self.trace;
            let mut path = Watched {
                path,
                now,
                feedback_us: &mut trace.feedback_us,
                feedback_marks: &mut trace.feedback_marks,
            };
            self.connection.get_mut().handle(now, event, &mut path);
        }
        self.work(now);
        let Connection::Atp(c) = &self.connection else {
            return;
        };
        let (trace, at, spacing_us) = (&mut self.trace, now.as_ns(), c.spacing_us());
        if let End::Indication(d) = event
            && let Ok((h, _)) = wire::Header::parse(d)
        {
            match (h.is_feedback(), self.left) {
                (true, sender) => {
                    trace.spacings_us.push((at, spacing_us));
                    if sender.is_some() {
                        trace.feedback_us.push((at, h.delay_us));
                        trace.feedback_marks.push(mark(&h));
                    }
                }
                (false, None) => trace.delays_us.push((at, h.delay_us)),
                (false, Some(_)) => {}
            }
        }
        let open = self.left.is_some() && c.state() == State::Open;
        if open && trace.chosen_us.last().is_none_or(|c| c.1 != spacing_us) {
            trace.chosen_us.push((at, spacing_us));
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
