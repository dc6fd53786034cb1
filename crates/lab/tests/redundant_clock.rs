//! Slots over two adapters in the simulator: whichever adapter dies, at either end, nobody loses the time.

#[path = "shared/ways.rs"]
mod ways;

use std::collections::BTreeMap;

use frame::{AccessCategory, MacAddr, Phy, Rate};
use protocols::mac::beacon::{BeaconFrame, MAX_BEACON_OCTETS};
use protocols::mac::data::{Identity, QOS_OVERHEAD_OCTETS};
use protocols::mac::edf::cost::CostEstimate;
use protocols::mac::edf::{Edf, EdfConfig};
use protocols::mac::redundancy::{Redundancy, RedundancyConfig, trailer};
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::sync::{SHIFTS_OCTETS, Sync, SyncConfig};
use protocols::mac::tdma::join::wire::ONE_REPORT_OCTETS;
use protocols::mac::tdma::schedule::{BeaconSlot, Flow, Release, SlotCosts, TdmaPlan};
use protocols::mac::tdma::{Tdma, TdmaConfig};
use radio::{AdapterId, Checked, Duration, Instant, Queue};
use sim::clock::Clock;
use sim::fault::Incident;
use sim::rng::{Cause, Stream};
use sim::traffic::parse_header;
use sim::{AdapterConfig, LinkLoss, MediumConfig, NodeConfig, Pattern, Position, Process, Traffic, World};
use ways::{Way, Ways};

type Overlay = Tdma<Sender<16>, 16, 400, 32>;
type Node = Checked<Redundancy<Overlay, 16, 400, 16>>;

const MS: u64 = 1_000_000;
const DEVICES: u32 = 4;
const CYCLE_NS: u64 = 4 * MS;
const HOLDOVER: Duration = Duration::from_ms(500);
const PAYLOAD: u16 = 50;
/// What the guard allows.
const SYNC_ERROR: Duration = Duration::from_us(4);
/// An adapter dies after two seconds, and the run goes on for six times the holdover.
const DIES_NS: u64 = 2_000 * MS;
const END_NS: u64 = 5_000 * MS;

fn address(node: u32) -> MacAddr {
    MacAddr::local(node)
}

fn plan<const S: usize>() -> TdmaPlan<S> {
    let release = Release {
        min: Duration::ZERO,
        high: Duration::ZERO,
    };
    let costs = SlotCosts::new(Phy::A, Rate::OFDM_24, release, SYNC_ERROR);
    let costs = SlotCosts {
        overhead_octets: (QOS_OVERHEAD_OCTETS + trailer::OCTETS) as u16,
        ..costs
    };
    let frame = BeaconFrame {
        bssid: address(0),
        interval_tu: 100,
        ssid: b"sdmac",
        basic: BeaconFrame::basic_for(Rate::OFDM_6),
        sequence: 0,
    };
    let bare = frame.emit(&mut [0; MAX_BEACON_OCTETS]).len() + 4;
    let beacon = BeaconSlot {
        from: address(0),
        octets: (bare + SHIFTS_OCTETS + ONE_REPORT_OCTETS) as u16,
        rate: Rate::OFDM_6,
        every: 12,
    };
    let flow = |from, to| Flow {
        from,
        to,
        payload_octets: PAYLOAD,
    };
    let flows: Vec<_> = (1..=DEVICES)
        .flat_map(|n| [flow(address(0), address(n)), flow(address(n), address(0))])
        .collect();
    TdmaPlan::new(&flows, Duration::from_ns(CYCLE_NS), Some(beacon), &costs).unwrap()
}

fn overlay(node: u32) -> Redundancy<Overlay, 16, 400, 16> {
    let (config, sender, pair) = configs(node);
    Redundancy::new(pair, Tdma::new(config, Sender::new(sender)))
}

fn configs<const S: usize>(node: u32) -> (TdmaConfig<S>, SenderConfig, RedundancyConfig) {
    let band = Phy::A.band;
    let sync = match node {
        0 => SyncConfig::own(band, HOLDOVER),
        _ => SyncConfig::new(band, HOLDOVER),
    };
    let sync = SyncConfig {
        second: Some(AdapterId(1)),
        ..sync
    };
    let (me, ap) = (address(node), address(0));
    let config = TdmaConfig {
        watch: true,
        ..TdmaConfig::new(me, plan(), Sync::tracking(sync), ap, Queue::Voice)
    };
    let identity = match node {
        0 => Identity::access_point(ap),
        _ => Identity::station(me, ap),
    };
    let mut sender = SenderConfig::new(identity, Rate::OFDM_24);
    sender.qos = true;
    let pair = RedundancyConfig {
        access: config.access,
        ..RedundancyConfig::parallel(AdapterId(0), AdapterId(1))
    };
    (config, sender, pair)
}

struct Run {
    world: World<Node>,
    clocks: Vec<Clock>,
    ways: Ways,
}

/// All adapters and hosts have clocks that are up to 20 ppm off; a message each way for each device in every cycle. `loss` of
/// everything, on both channels.
fn cell(seed: u64, loss: f64, node: u32, incident: Incident) -> Run {
    let mut world: World<Node> = World::new(&MediumConfig::default(), seed);
    let mut dice = Stream::new(seed, 0, Cause::Clock);
    let mut clock = || Clock {
        offset_ns: dice.below(1_000_000_000),
        drift_ppb: dice.below(40_001) as i64 - 20_000,
    };
    let mut clocks = Vec::new();
    for node in 0..=DEVICES {
        let mut adapter = |mhz| AdapterConfig {
            tsf: clock(),
            ..AdapterConfig::station(address(node), Phy::A, mhz, true)
        };
        let adapters = vec![adapter(5180), adapter(5745)];
        let place = Position::new(f64::from(node), 0.0);
        let config = NodeConfig {
            clock: clock(),
            adapters,
            ..NodeConfig::ideal(place, AdapterConfig::station(address(node), Phy::A, 5180, true))
        };
        clocks.push(config.clock);
        world.add_node(config, Checked::strict(overlay(node)));
    }
    for (a, b) in (1..=DEVICES).flat_map(|n| [(0, n), (n, 0)]) {
        for adapter in 0..2 {
            let data = Some(Process::Fixed(loss));
            world.set_adapter_loss(
                (a, adapter),
                (b, adapter),
                LinkLoss {
                    data,
                    ..LinkLoss::default()
                },
            );
        }
        let traffic = Traffic {
            to: address(b),
            category: AccessCategory::Voice,
            octets: usize::from(PAYLOAD) + 8,
            pattern: Pattern::Periodic {
                period_ns: CYCLE_NS,
                phase_ns: 700 * MS,
            },
            lifetime_ns: Some(2 * CYCLE_NS),
            count: None,
        };
        world.add_traffic(a, traffic);
    }
    world.plan_incident(DIES_NS, node, incident);
    let ways = Ways::default();
    world.set_observer(Box::new(ways.clone()));
    Run { world, clocks, ways }
}

impl Run {
    fn overlay(&self, node: u32) -> &Overlay {
        self.world.protocol(node).inner().protocol()
    }

    /// Messages that were not there within two cycles, and how many there were; the last cycles do not count.
    fn missed(&self) -> (usize, usize) {
        let ways = self.ways.0.borrow();
        let all = ways.values().filter(|w| w.down_ns < END_NS - 2 * CYCLE_NS);
        let late = |w: &&Way| w.up_ns.is_none_or(|up| up > w.down_ns + 2 * CYCLE_NS);
        (all.clone().filter(late).count(), all.count())
    }

    /// How far network time of the devices is from that of the coordinator at most, now, ns. All know it.
    fn apart_ns(&self) -> u64 {
        let network = |node: u32| {
            let local = Instant::from_ns(self.clocks[node as usize].show(self.world.now_ns()));
            let sync = self.overlay(node).sync();
            assert!(sync.is_good(local), "node {node} is silent");
            sync.to_network(local).expect("it is good").0
        };
        let master = network(0);
        let apart = (1..=DEVICES).map(|n| network(n).abs_diff(master));
        apart.max().expect("there are devices")
    }

    /// To the end, with many looks at the clocks within the holdover after the incident.
    fn go(&mut self) {
        self.world.run_until(DIES_NS);
        while self.world.now_ns() < DIES_NS + 2 * HOLDOVER.as_ns() {
            self.world.run_until(self.world.now_ns() + 1_700_000);
            let apart = self.apart_ns();
            assert!(
                apart < SYNC_ERROR.as_ns(),
                "{apart} ns at {}",
                self.world.now_ns()
            );
        }
        self.world.run_until(END_NS);
        assert!(self.apart_ns() < SYNC_ERROR.as_ns());
        let outside = (0..=DEVICES).map(|n| self.overlay(n).counters().outside);
        assert_eq!(outside.sum::<u64>(), 0, "frames outside of their slots");
    }
}

/// Whatever happens to one adapter, at either end: the clocks stay together, and no flow misses more than one message.
#[test]
fn the_time_outlives_each_adapter() {
    let mut all = (0, 0, 0);
    for seed in 1..4 {
        for (node, adapter) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for incident in [
                Incident::AdapterGone { adapter },
                Incident::AdapterReset { adapter },
                Incident::TsfJump {
                    adapter,
                    to_us: 77_000_000,
                },
            ] {
                let mut run = cell(seed, 0.0, node, incident);
                run.go();
                let (missed, of) = run.missed();
                assert!(of > 8 * 1_000, "{of}");
                assert!(
                    missed <= 2 * DEVICES as usize,
                    "{incident:?} at node {node}: {missed} of {of} missed"
                );
                all = (all.0 + 1, all.1 + missed, all.2 + of);
            }
        }
    }
    eprintln!("{} runs: {} of {} messages missed", all.0, all.1, all.2);
}

/// With a third of all frames lost on each channel, beacons too, the clocks stay together all the same.
#[test]
fn beacons_that_get_lost_tear_nothing_apart() {
    for seed in 1..4 {
        for node in [0, 1] {
            cell(seed, 0.33, node, Incident::AdapterGone { adapter: 0 }).go();
        }
    }
}

/// The type of the book, as it is written there: deadlines over slots over two adapters. The first channel loses everything, so all comes
/// over the second; and of two messages that wait behind a third the later one goes first, whose deadline is earlier.
#[test]
fn the_layers_of_the_book() {
    type Nested = Redundancy<Tdma<Edf<Sender>>>;
    let nested = |node| -> Nested {
        let (config, sender, pair) = configs(node);
        let edf = EdfConfig::new(
            CostEstimate::fixed(Duration::from_us(120)),
            Duration::from_ms(100),
        );
        Redundancy::new(pair, Tdma::new(config, Edf::new(edf, Sender::new(sender))))
    };
    let mut world: World<Checked<Nested>> = World::new(&MediumConfig::default(), 1);
    for node in 0..=DEVICES {
        let place = Position::new(f64::from(node), 0.0);
        let [first, second] =
            [5180, 5745].map(|mhz| AdapterConfig::station(address(node), Phy::A, mhz, true));
        let mut config = NodeConfig::ideal(place, first);
        config.adapters.push(second);
        world.add_node(config, Checked::strict(nested(node)));
    }
    let nothing = || LinkLoss {
        data: Some(Process::Fixed(1.0)),
        ..LinkLoss::default()
    };
    for node in 1..=DEVICES {
        world.set_adapter_loss((0, 0), (node, 0), nothing());
        world.set_adapter_loss((node, 0), (0, 0), nothing());
        let traffic = |cycles, lifetime_cycles| Traffic {
            to: address(0),
            category: AccessCategory::Voice,
            octets: usize::from(PAYLOAD) + 8,
            pattern: Pattern::Periodic {
                period_ns: cycles * CYCLE_NS,
                phase_ns: 700 * MS,
            },
            lifetime_ns: Some(lifetime_cycles * CYCLE_NS),
            count: None,
        };
        // at one moment: the first goes down to its slot at once, and of the others the last is urgent
        world.add_traffic(node, traffic(10, 20));
        world.add_traffic(node, traffic(10, 20));
        world.add_traffic(node, traffic(5, 3));
    }
    let ways = Ways::default();
    world.set_observer(Box::new(ways.clone()));
    world.run_until(1_700 * MS);
    let ways = ways.0.borrow();
    // by device and moment: when the calm messages arrived, and the urgent one
    let mut all: BTreeMap<(u32, u64), [Option<u64>; 3]> = BTreeMap::new();
    for (payload, way) in ways.iter().filter(|(_, way)| way.down_ns < 1_600 * MS) {
        let (flow, ..) = parse_header(payload).expect("all traffic is the simulator's");
        let down = way.down_ns;
        let up = way
            .up_ns
            .unwrap_or_else(|| panic!("flow {flow}, handed down at {down}, did not arrive"));
        assert!(up - down <= 3 * CYCLE_NS, "flow {flow}, {} ns", up - down);
        all.entry((flow / 3, down)).or_default()[flow as usize % 3] = Some(up);
    }
    let mut waited = 0;
    for arrived in all.values() {
        if let [_, Some(calm), Some(urgent)] = arrived {
            assert!(urgent < calm, "{urgent} {calm}");
            waited += 1;
        }
    }
    // in 900 ms 45 urgent messages of each device, and calm ones with every other
    assert_eq!((all.len() as u32, waited), (45 * DEVICES, 23 * DEVICES));
}
