//! Power save in an ad hoc network of the simulator: how long a message takes over several hops, and how long radios
//! doze meanwhile. The network is [`Relay`] over `protocols::mac::ibss`.

use frame::{MacAddr, Phy, Rate};
use protocols::mac::ibss::{IbssConfig, PowerProfile};
use protocols::mesh::{Relay, RouteTable};
use radio::{Duration, Event, Instant, Msdu, Protocol, Radio};
use sim::adapter::AdapterConfig;
use sim::medium::{LossModel, MediumConfig, Position};
use sim::rng::{Cause, Stream};
use sim::{NodeConfig, World};

/// A station that remembers when it was given its last message.
struct Station {
    relay: Relay<16, 300, 4>,
    received: Option<Instant>,
}

impl Protocol for Station {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        let before = self.relay.link().counters().delivered;
        self.relay.handle(now, event, radio);
        if self.relay.link().counters().delivered > before {
            self.received = Some(now);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.relay.deadline()
    }
}

/// How stations save power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Saving {
    /// They do not.
    Awake,
    /// As the standard has it.
    Standard,
    /// ATIMs go on over all hops.
    MultiHop,
}

impl Saving {
    /// All of them.
    pub const ALL: [Saving; 3] = [Saving::Awake, Saving::Standard, Saving::MultiHop];
}

/// Hops of a message.
pub const HOPS: u32 = 4;
/// What a message is.
pub const PAYLOAD: &[u8] = b"temperature 21";
/// Beacon interval, TU, and its length.
const INTERVAL_TU: u16 = 100;
const INTERVAL_NS: f64 = 102.4e6;
const MS: u64 = 1_000_000;
/// From message to message: more than it takes.
const EVERY_MS: u64 = 1_500;
/// A message that is not there by then is lost, ms.
const LOST_MS: u64 = 1_300;
/// When the first one begins: the network is there.
const BEGIN_MS: u64 = 4_000;

/// What was seen.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seen {
    /// How long each message took over all hops, in beacon intervals.
    pub intervals: Vec<f64>,
    /// Messages.
    pub messages: u64,
    /// Share of time that stations dozed.
    pub doze: f64,
    /// Energy of a station, J, by the profile of round numbers.
    pub joules: f64,
    /// Length of the run, s.
    pub seconds: f64,
}

fn address(i: u32) -> MacAddr {
    MacAddr::local(i + 1)
}

/// Messages one after the other along a chain of stations with this ATIM window.
pub fn chain(saving: Saving, window_tu: u16, messages: u64, seed: u64) -> Seen {
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    };
    let mut world: World<Station> = World::new(&medium, seed);
    for i in 0..=HOPS {
        let adapter = AdapterConfig::station(address(i), Phy::A, 5_180, true);
        let config = IbssConfig {
            interval_tu: INTERVAL_TU,
            atim_window_tu: if saving == Saving::Awake { 0 } else { window_tu },
            multi_hop: saving == Saving::MultiHop,
            scan: Duration::from_ms(300 + 250 * u64::from(i)),
            seed,
            ..IbssConfig::new(address(i), "robots", Rate::OFDM_24)
        };
        // only one way: that is where all messages go
        let routes = (i < HOPS).then(|| (address(HOPS), address(i + 1)));
        let node = NodeConfig::ideal(Position::new(f64::from(i), 0.0), adapter);
        let station = Station {
            relay: Relay::new(config, RouteTable::new(routes)),
            received: None,
        };
        world.add_node(node, station);
    }
    let mut dice = Stream::new(seed, 4, Cause::Traffic);
    let mut seen = Seen {
        messages,
        ..Seen::default()
    };
    for n in 0..messages {
        let begin = (BEGIN_MS + n * EVERY_MS + dice.below(100)) * MS;
        world.run_until(begin);
        world.protocol_mut(HOPS).received = None;
        world.act(0, |station, now, radio| {
            let msdu = Msdu::new(address(HOPS), PAYLOAD);
            station.handle(now, Event::Submit(msdu), radio);
        });
        world.run_until(begin + LOST_MS * MS);
        if let Some(received) = world.protocol(HOPS).received {
            seen.intervals
                .push((received.as_ns() - begin) as f64 / INTERVAL_NS);
        }
    }
    let end = (BEGIN_MS + messages * EVERY_MS) * MS;
    world.run_until(end);
    seen.seconds = end as f64 / 1e9;
    let stations = f64::from(HOPS + 1);
    for i in 0..=HOPS {
        let energy = world.protocol(i).relay.link().energy(Instant::from_ns(end));
        seen.doze += energy.doze.as_ns() as f64 / end as f64 / stations;
        seen.joules += energy.microjoules(&PowerProfile::TYPICAL) as f64 / 1e6 / stations;
    }
    seen
}
