//! Power save in an ad hoc network of the simulator: how long a message takes over several hops, and how long radios
//! doze meanwhile. The network is [`Ibss`]; here is only what hands a message on.

use frame::{MacAddr, Phy, Rate};
use protocols::mac::ibss::{Ibss, IbssConfig, PowerProfile};
use radio::{Duration, Event, Instant, Msdu, Protocol};
use sim::adapter::AdapterConfig;
use sim::medium::{LossModel, MediumConfig, Position};
use sim::rng::{Cause, Stream};
use sim::{NodeConfig, World};

type Station = Ibss<16, 300>;

/// Hops of a message.
pub const HOPS: u32 = 4;
/// Beacon interval, TU, and its length.
const INTERVAL_TU: u16 = 100;
const INTERVAL_NS: f64 = 102.4e6;
const MS: u64 = 1_000_000;
/// From message to message: more than it takes.
const EVERY_MS: u64 = 1_500;
/// When the first one begins: the network is there.
const BEGIN_MS: u64 = 4_000;

/// What was seen.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seen {
    /// How long each message took over all hops, in beacon intervals, to a millisecond.
    pub intervals: Vec<f64>,
    /// Messages.
    pub messages: u64,
    /// Share of time that stations dozed.
    pub doze: f64,
    /// Energy of a station, J, by the profile of round numbers.
    pub joules: f64,
}

fn address(i: u32) -> MacAddr {
    MacAddr::local(i + 1)
}

/// Messages one after the other along a chain of stations with this ATIM window, 0 TU: without power save.
pub fn chain(window_tu: u16, messages: u64, seed: u64) -> Seen {
    let medium = MediumConfig {
        loss: LossModel::FixedPower(-50.0),
        ..MediumConfig::default()
    };
    let mut world: World<Station> = World::new(&medium, seed);
    for i in 0..=HOPS {
        let adapter = AdapterConfig::station(address(i), Phy::A, 5_180, true);
        let config = IbssConfig {
            interval_tu: INTERVAL_TU,
            atim_window_tu: window_tu,
            scan: Duration::from_ms(300 + 250 * u64::from(i)),
            seed,
            ..IbssConfig::new(address(i), "robots", Rate::OFDM_24)
        };
        let node = NodeConfig::ideal(Position::new(f64::from(i), 0.0), adapter);
        world.add_node(node, Station::new(config));
    }
    let mut dice = Stream::new(seed, 4, Cause::Traffic);
    let mut seen = Seen {
        messages,
        ..Seen::default()
    };
    let submit = |world: &mut World<Station>, from: u32| {
        world.act(from, |station, now, radio| {
            let msdu = Msdu::new(address(from + 1), b"temperature 21");
            station.handle(now, Event::Submit(msdu), radio);
        });
    };
    let delivered = |world: &World<Station>, at: u32| world.protocol(at).counters().delivered;
    for n in 0..messages {
        let begin = (BEGIN_MS + n * EVERY_MS + dice.below(100)) * MS;
        let mut now = begin;
        world.run_until(now);
        for hop in 0..HOPS {
            let before = delivered(&world, hop + 1);
            submit(&mut world, hop);
            while delivered(&world, hop + 1) == before && now < begin + 1_300 * MS {
                now += MS;
                world.run_until(now);
            }
        }
        if now < begin + 1_300 * MS {
            seen.intervals.push((now - begin) as f64 / INTERVAL_NS);
        }
    }
    let end = (BEGIN_MS + messages * EVERY_MS) * MS;
    world.run_until(end);
    let stations = f64::from(HOPS + 1);
    for i in 0..=HOPS {
        let energy = world.protocol(i).energy(Instant::from_ns(end));
        seen.doze += energy.doze.as_ns() as f64 / end as f64 / stations;
        seen.joules += energy.microjoules(&PowerProfile::TYPICAL) as f64 / 1e6 / stations;
    }
    seen
}
