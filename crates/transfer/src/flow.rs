//! The transport of one connection, by the name of its variant.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use protocols::transport::wire::{Control, HEADER_OCTETS, Header, ProtocolId};
use protocols::transport::{Buffers, Event, Path, Sent, State, Transport, atp, tahoe};
use radio::{Duration, Instant};

use crate::companions::{Atp, Companions};
use crate::memory::Memory;
use crate::secure::{Guard, Key, OVERHEAD_OCTETS};
use crate::socket::longest_packet;
use crate::{Progress, TransferError};

/// Octets for which there is one record of a packet on the way.
const RECORD_OCTETS: usize = 512;

/// The transports to choose from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Variant {
    /// ATP as its authors set it: epochs of 1 s.
    Default,
    /// Epochs of 40 ms and a high gain.
    Aggressive,
    /// As aggressive, with feedback on three events.
    Adaptive,
    /// Ours: adaptive, with an epoch that adjusts itself.
    #[default]
    Sdmac,
    /// TCP Tahoe, for comparison.
    Tahoe,
    /// TCP NewReno, for comparison.
    NewReno,
}

impl Variant {
    /// All of them.
    pub const ALL: [Variant; 6] = [
        Variant::Default,
        Variant::Aggressive,
        Variant::Adaptive,
        Variant::Sdmac,
        Variant::Tahoe,
        Variant::NewReno,
    ];

    /// Its name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Variant::Default => "default",
            Variant::Aggressive => "aggressive",
            Variant::Adaptive => "adaptive",
            Variant::Sdmac => "sdmac",
            Variant::Tahoe => "tahoe",
            Variant::NewReno => "newreno",
        }
    }

    /// What its packets begin with.
    const fn protocol(self) -> ProtocolId {
        match self {
            Variant::Tahoe | Variant::NewReno => ProtocolId::Tcp,
            _ => ProtocolId::Atp,
        }
    }

    /// Whether it finds out how long packets may be, so that none need be cut on the way.
    pub(crate) const fn finds_length(self) -> bool {
        matches!(self.protocol(), ProtocolId::Atp)
    }

    /// The answer to a call of a transport that this one cannot speak to: a reset that it understands. `None` for everything else.
    pub fn refusal(self, packet: &[u8]) -> Option<[u8; HEADER_OCTETS]> {
        let (call, body) = Header::parse(packet).ok()?;
        let c = call.control;
        let is_call = c.has(Control::SYN) && !c.has(Control::ACK);
        let is_other = is_call && call.protocol != self.protocol();
        Some(call.refusal(body).filter(|_| is_other)?.octets())
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Variant {
    type Err = String;
    fn from_str(text: &str) -> Result<Variant, String> {
        let names = || Variant::ALL.map(Variant::name).join(", ");
        Variant::ALL
            .into_iter()
            .find(|v| v.name() == text)
            .ok_or_else(|| format!("'{text}' is no variant: the variants are {}", names()))
    }
}

/// How a connection is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowConfig {
    /// Which transport.
    pub variant: Variant,
    /// Time between two packets while no hop on the way tells its delay (ATP only); `None`: that of the variant,
    /// 10 ms.
    pub spacing: Option<Duration>,
    /// How long the other end may be silent.
    pub patience: Duration,
    /// Shared with the other end: datagrams are sealed with it.
    pub key: Option<Key>,
    /// Octets that may be on the way, and as many that may wait to be read.
    pub buffer_octets: usize,
}

impl Default for FlowConfig {
    fn default() -> Self {
        FlowConfig {
            variant: Variant::default(),
            spacing: None,
            patience: Duration::from_ms(60_000),
            key: None,
            buffer_octets: 4 << 20,
        }
    }
}

impl FlowConfig {
    /// What the end that calls seals its datagrams with, if there is a key.
    pub(crate) fn guard(&self) -> Result<Option<Guard>, TransferError> {
        let guard = self.key.map(|key| Guard::caller(&key, self.patience));
        guard.transpose().map_err(|e| TransferError::Key(e.to_string()))
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Flow {
    variant: Variant,
    transport: Kind,
    /// Nodes that data have passed on their way to the other end, as its latest feedback says.
    hops: u8,
    /// Of the data that came last: time between two packets as their sender tells it, us, 0 if it does not.
    told_spacing_us: u32,
    /// Octets of the longest data that came.
    came_octets: u16,
    companions: Companions,
}

#[derive(Debug)]
enum Kind {
    Atp(Box<Atp>),
    /// Behind the same header.
    Tcp(Box<tahoe::Connection<Memory>>, u16),
}

impl Flow {
    /// The end that calls `peer`.
    pub fn caller(config: &FlowConfig, peer: SocketAddr) -> Flow {
        Flow::new(config, peer, true)
    }

    /// The end that `peer` calls.
    pub fn listener(config: &FlowConfig, peer: SocketAddr) -> Flow {
        Flow::new(config, peer, false)
    }

    /// As [`Variant::refusal`], while nobody has called: once there is a connection, a call of another transport is a stranger's, and
    /// [`handle`](Transport::handle) counts it as such.
    pub fn refusal(&self, packet: &[u8]) -> Option<[u8; HEADER_OCTETS]> {
        self.variant
            .refusal(packet)
            .filter(|_| self.state() == State::Listening)
    }

    /// In this time the other end repeats what it has not heard the answer to: four of its epochs, for it probes after three that it has missed, or four of the
    /// shortest timers of TCP; a second at least.
    pub fn repeats_within(&self) -> Duration {
        let epoch_us = match self.variant {
            Variant::Aggressive | Variant::Adaptive => 40_000,
            Variant::Sdmac if self.told_spacing_us > 0 => {
                self.told_spacing_us.saturating_mul(10).min(1_000_000)
            }
            Variant::Sdmac | Variant::Default | Variant::Tahoe | Variant::NewReno => 1_000_000,
        };
        Duration::from_us(u64::from(epoch_us) * 4).max(Duration::from_ms(1_000))
    }

    fn new(config: &FlowConfig, peer: SocketAddr, calls: bool) -> Flow {
        let overhead = HEADER_OCTETS + config.key.map_or(0, |_| OVERHEAD_OCTETS);
        Flow {
            variant: config.variant,
            transport: Flow::transport(config, longest_packet(peer) - overhead, calls),
            hops: 0,
            told_spacing_us: 0,
            came_octets: 0,
            companions: Companions::to(peer),
        }
    }

    fn transport(config: &FlowConfig, packet_octets: usize, calls: bool) -> Kind {
        let buffer = || Memory::new(config.buffer_octets);
        let records = config.buffer_octets / RECORD_OCTETS;
        let initial_number = random();
        let standard = match config.variant {
            Variant::Default => atp::Config::standard(),
            Variant::Aggressive => atp::Config::aggressive(),
            Variant::Adaptive => atp::Config::adaptive(),
            Variant::Sdmac => atp::Config::sdmac(),
            Variant::Tahoe | Variant::NewReno => {
                let recovery = match config.variant {
                    Variant::Tahoe => tahoe::Recovery::Tahoe,
                    _ => tahoe::Recovery::NewReno,
                };
                let config = tahoe::Config {
                    patience: config.patience,
                    initial_number,
                    segment_octets: packet_octets as u16,
                    ..tahoe::Config::new(recovery)
                };
                let buffers = Buffers {
                    send: buffer(),
                    receive: buffer(),
                    sent: [],
                };
                let connection = Box::new(if calls {
                    tahoe::Connection::caller(&config, buffers)
                } else {
                    tahoe::Connection::listener(&config, buffers)
                });
                return Kind::Tcp(connection, config.segment_octets);
            }
        };
        let spacing = config.spacing.unwrap_or(standard.unmeasured_spacing);
        let config = atp::Config {
            unmeasured_spacing: spacing,
            least_spacing: standard.least_spacing.min(spacing),
            patience: config.patience,
            initial_number,
            packet_octets,
            ..standard
        };
        let buffers = Buffers {
            send: buffer(),
            receive: buffer(),
            sent: vec![Sent::default(); records],
        };
        Kind::Atp(Box::new(if calls {
            Atp::caller(&config, buffers)
        } else {
            Atp::listener(&config, buffers)
        }))
    }

    /// What a packet of the other end tells beside its content.
    fn note(&mut self, header: &Header, body: &[u8]) {
        if header.is_feedback() {
            self.hops = header.hops;
        } else if !body.is_empty() {
            // in the header of TCP a time stamp stands there
            if header.protocol == ProtocolId::Atp {
                self.told_spacing_us = header.spacing_us;
            }
            self.came_octets = self.came_octets.max(body.len() as u16);
        }
    }

    fn inner(&mut self) -> &mut dyn Transport {
        match &mut self.transport {
            Kind::Atp(c) => &mut **c,
            Kind::Tcp(c, _) => &mut **c,
        }
    }

    fn inner_ref(&self) -> &dyn Transport {
        match &self.transport {
            Kind::Atp(c) => &**c,
            Kind::Tcp(c, _) => &**c,
        }
    }

    /// Octets that were written and that the other end has.
    pub fn acknowledged_octets(&self) -> u64 {
        match &self.transport {
            Kind::Atp(c) => c.acknowledged_octets(),
            Kind::Tcp(c, _) => c.acknowledged_octets(),
        }
    }

    /// What the transport knows of data that come: nothing of the other direction, which carries next to nothing.
    pub fn arriving(&self) -> Progress {
        let (delay_us, repeated) = match &self.transport {
            Kind::Atp(c) => (c.delay_us() as u32, Some(c.counters().repeated)),
            Kind::Tcp(..) => (0, None),
        };
        Progress {
            delay_us,
            spacing_us: self.told_spacing_us,
            packet_octets: self.came_octets,
            repeated,
            ..Progress::default()
        }
    }

    /// What the transport knows of data that are sent.
    pub fn progress(&self) -> Progress {
        match &self.transport {
            Kind::Atp(c) => {
                Progress {
                    // without hops what is fed back can only be the delay of the other end's reader
                    delay_us: if self.hops > 0 { c.fed_back_us() } else { 0 },
                    spacing_us: c.spacing_us(),
                    packet_octets: c.packet_octets(),
                    resent: c.counters().resent,
                    ..Progress::default()
                }
            }
            Kind::Tcp(c, segment_octets) => Progress {
                packet_octets: *segment_octets,
                resent: c.counters().resent,
                ..Progress::default()
            },
        }
    }
}

impl Transport for Flow {
    fn handle(&mut self, now: Instant, event: Event<'_>, path: &mut dyn Path) {
        if let Event::Indication(packet) = event
            && let Ok((header, body)) = Header::parse(packet)
        {
            self.note(&header, body);
        }
        match &mut self.transport {
            // those of the thesis share nothing
            Kind::Atp(c) if self.variant == Variant::Sdmac => self.companions.handle(now, event, path, c),
            _ => self.inner().handle(now, event, path),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.inner_ref().deadline()
    }
    fn write(&mut self, now: Instant, octets: &[u8]) -> usize {
        self.inner().write(now, octets)
    }
    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        self.inner().read(now, out)
    }
    fn is_exhausted(&self) -> bool {
        self.inner_ref().is_exhausted()
    }
    fn finish(&mut self, now: Instant) {
        self.inner().finish(now);
    }
    fn abort(&mut self, now: Instant) {
        self.inner().abort(now);
    }
    fn state(&self) -> State {
        self.inner_ref().state()
    }
}

/// A number that strangers cannot guess (RFC 6528).
fn random() -> u32 {
    let mut octets = [0; 4];
    // cannot fail for so few octets once the system is up (getrandom(2)); a fixed number is only easier to guess
    let _ = rustix::rand::getrandom(&mut octets, rustix::rand::GetRandomFlags::empty());
    u32::from_ne_bytes(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for v in Variant::ALL {
            assert_eq!(v.name().parse(), Ok(v));
        }
        assert!("reno".parse::<Variant>().unwrap_err().contains("newreno"));
    }

    /// Over IPv6 with 20 octets less, since its header is longer; with a key with those less that sealing takes.
    #[test]
    fn packets_fill_an_ethernet_in_both_families() {
        for (peer, key, octets) in [
            ("127.0.0.1:7800", None, 1_448),
            ("[::1]:7800", None, 1_428),
            ("[::1]:7800", Some(Key([7; 32])), 1_380),
        ] {
            let config = |variant| FlowConfig {
                key,
                variant,
                ..FlowConfig::default()
            };
            for variant in Variant::ALL {
                let flow = Flow::caller(&config(variant), peer.parse().unwrap());
                assert_eq!(flow.progress().packet_octets, octets, "{peer} {variant}");
            }
        }
    }

    /// No less than a second, however short the epochs are: an answer that was lost is asked for again after a moment only.
    #[test]
    fn who_repeats_has_a_second_at_least() {
        let repeats = |variant, told_spacing_us| {
            let config = FlowConfig {
                variant,
                ..FlowConfig::default()
            };
            let flow = Flow {
                told_spacing_us,
                ..Flow::listener(&config, ([127, 0, 0, 1], 7_800).into())
            };
            flow.repeats_within().as_ns() / 1_000_000
        };
        assert_eq!(repeats(Variant::Aggressive, 0), 1_000);
        assert_eq!(repeats(Variant::Sdmac, 200), 1_000);
        assert_eq!(repeats(Variant::Sdmac, 50_000), 2_000);
        assert_eq!(repeats(Variant::Sdmac, 0), 4_000);
        assert_eq!(repeats(Variant::NewReno, 0), 4_000);
    }

    /// Packets on their way to the other end.
    #[derive(Default)]
    struct Sheet(Vec<Vec<u8>>);

    impl Path for Sheet {
        fn request(&mut self, packet: &[u8]) {
            self.0.push(packet.to_vec());
        }
    }

    /// What a sender tells when a hop has told of this delay for five seconds.
    fn told_by_a_hop(spacing_us: u64, delay_us: u32) -> Progress {
        let peer = ([127, 0, 0, 1], 7_800).into();
        let config = FlowConfig {
            spacing: Some(Duration::from_us(spacing_us)),
            buffer_octets: 1 << 16,
            ..FlowConfig::default()
        };
        let mut ends = [Flow::caller(&config, peer), Flow::listener(&config, peer)];
        let mut sheet = Sheet::default();
        ends[0].handle(Instant::ZERO, Event::Start, &mut sheet);
        let mut sheets = [sheet, Sheet::default()];
        for step in 0..50_000 {
            let now = Instant::from_us(step * 100);
            ends[0].write(now, &[7; 4_096]);
            while ends[1].read(now, &mut [0; 4_096]) > 0 {}
            for end in [0, 1] {
                let (flow, back) = (&mut ends[end], &mut sheets[end]);
                if flow.deadline().is_some_and(|at| at <= now) {
                    flow.handle(now, Event::Timer, back);
                }
                for packet in std::mem::take(&mut sheets[end].0) {
                    let (mut header, body) = Header::parse(&packet).unwrap();
                    if end == 0 && !header.is_feedback() {
                        (header.hops, header.delay_us) = (1, delay_us);
                    }
                    let passed = [&header.octets(), body].concat();
                    ends[1 - end].handle(now, Event::Indication(&passed), &mut sheets[1 - end]);
                }
            }
        }
        ends[0].progress()
    }

    /// A hop that tells of next to nothing lets nobody flood the network.
    #[test]
    fn the_least_spacing_is_200_us_or_what_was_asked_for() {
        for (spacing_us, least_us) in [(10_000, 200), (50, 50)] {
            let told = told_by_a_hop(spacing_us, 1);
            assert_eq!(told.spacing_us, least_us, "{told:?}");
        }
        let told = told_by_a_hop(10_000, 5_000);
        assert_eq!(told.delay_us, 5_000);
        assert!(told.spacing_us >= 2_000, "{told:?}");
    }

    #[test]
    fn only_calls_of_another_protocol_are_refused() {
        let packet = |protocol, control| {
            let header = Header {
                sequence: u32::MAX,
                ..Header::new(protocol, control)
            };
            header.octets()
        };
        for (variant, other) in [
            (Variant::Sdmac, ProtocolId::Tcp),
            (Variant::Tahoe, ProtocolId::Atp),
        ] {
            let octets = variant.refusal(&packet(other, Control::SYN)).unwrap();
            let (reset, _) = Header::parse(&octets).unwrap();
            assert_eq!(
                (reset.protocol, reset.control, reset.acknowledgement),
                (other, Control::RST.with(Control::ACK), 0)
            );
            for control in [Control::ACK, Control::RST, Control::SYN.with(Control::ACK)] {
                assert_eq!(variant.refusal(&packet(other, control)), None);
            }
            assert_eq!(variant.refusal(&packet(variant.protocol(), Control::SYN)), None);
            assert_eq!(variant.refusal(b"anything"), None);
        }
    }
}
