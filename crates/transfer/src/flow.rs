//! The transport of one connection, by the name of its variant.

use std::fmt;
use std::str::FromStr;

use protocols::transport::wire::MAX_DATA_OCTETS;
use protocols::transport::{Buffers, Event, Path, Sent, State, Transport, atp, tahoe};
use radio::{Duration, Instant};

use crate::secure::{Key, OVERHEAD_OCTETS};

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
    #[default]
    Adaptive,
    /// Ours: adaptive, with an epoch that adjusts itself.
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

/// One end of a connection.
#[derive(Debug)]
pub enum Flow {
    /// ATP.
    Atp(Box<atp::Connection<Vec<u8>, Vec<Sent>>>),
    /// TCP behind the same header.
    Tcp(Box<tahoe::Connection<Vec<u8>>>),
}

impl Flow {
    /// The end that calls.
    pub fn caller(config: &FlowConfig) -> Flow {
        Flow::new(config, true)
    }

    /// The end that is called.
    pub fn listener(config: &FlowConfig) -> Flow {
        Flow::new(config, false)
    }

    fn new(config: &FlowConfig, calls: bool) -> Flow {
        let buffer = || vec![0; config.buffer_octets];
        let records = config.buffer_octets / RECORD_OCTETS;
        let initial_number = random();
        let packet_octets = MAX_DATA_OCTETS - config.key.map_or(0, |_| OVERHEAD_OCTETS);
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
                return Flow::Tcp(Box::new(if calls {
                    tahoe::Connection::caller(&config, buffers)
                } else {
                    tahoe::Connection::listener(&config, buffers)
                }));
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
        Flow::Atp(Box::new(if calls {
            atp::Connection::caller(&config, buffers)
        } else {
            atp::Connection::listener(&config, buffers)
        }))
    }

    fn inner(&mut self) -> &mut dyn Transport {
        match self {
            Flow::Atp(c) => &mut **c,
            Flow::Tcp(c) => &mut **c,
        }
    }

    fn inner_ref(&self) -> &dyn Transport {
        match self {
            Flow::Atp(c) => &**c,
            Flow::Tcp(c) => &**c,
        }
    }

    /// Delay of the path and time between two packets, us, and packets sent again.
    pub fn numbers(&self) -> (u32, u32, u64) {
        match self {
            Flow::Atp(c) => (
                c.fed_back_us().max(c.delay_us() as u32),
                c.spacing_us(),
                c.counters().resent,
            ),
            Flow::Tcp(c) => (0, 0, c.counters().resent),
        }
    }
}

impl Transport for Flow {
    fn handle(&mut self, now: Instant, event: Event<'_>, path: &mut dyn Path) {
        self.inner().handle(now, event, path);
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
}
