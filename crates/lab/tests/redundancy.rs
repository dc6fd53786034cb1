//! Two adapters as one, on two channels of the simulator: what gets lost, what it costs, and what happens when one of
//! them is pulled out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use frame::{AccessCategory, MacAddr, Phy, Rate};
use protocols::mac::data::{Identity, Role};
use protocols::mac::redundancy::{Primary, Redundancy, RedundancyConfig};
use protocols::mac::sender::{Sender, SenderConfig};
use radio::{AdapterId, Checked, Duration, Msdu, TxHow};
use sim::fault::Incident;
use sim::medium::Process;
use sim::{AdapterConfig, LinkLoss, MediumConfig, NodeConfig, Observer, Pattern, Position, Traffic, World};

type Node = Checked<Redundancy<Sender>>;

const MS: u64 = 1_000_000;
const CYCLE_NS: u64 = 4 * MS;
const FIRST: AdapterId = AdapterId(0);
const SECOND: AdapterId = AdapterId(1);

/// When a payload went down and came up, ns.
type Way = (u64, Option<u64>);

/// The way of each payload.
#[derive(Clone, Default)]
struct Ways(Rc<RefCell<BTreeMap<Vec<u8>, Way>>>);

impl Observer for Ways {
    fn submitted(&mut self, now_ns: u64, _: u32, msdu: &Msdu<'_>) {
        self.0.borrow_mut().insert(msdu.payload.to_vec(), (now_ns, None));
    }
    fn delivered(&mut self, now_ns: u64, _: u32, msdu: &Msdu<'_>) {
        let mut ways = self.0.borrow_mut();
        let way = ways.get_mut(msdu.payload).expect("it was handed down");
        assert!(way.1.replace(now_ns).is_none(), "delivered twice");
    }
}

struct Run {
    sent: u64,
    lost: u64,
    /// Largest time from submission to delivery, ns.
    slowest_ns: u64,
    /// Frames on the air of both adapters of the sender, for each that was handed down.
    copies: f64,
}

/// One frame in each cycle from one node to another. `losses` of data by channel.
fn run(config: RedundancyConfig, tries: u8, losses: [f64; 2], frames: u32, pulled_ns: Option<u64>) -> Run {
    let mut world: World<Node> = World::new(&MediumConfig::default(), 1);
    let shown = Ways::default();
    let address = [MacAddr::local(1), MacAddr::local(2)];
    for (i, me) in address.into_iter().enumerate() {
        let adapter = |mhz| AdapterConfig::station(me, Phy::A, mhz, false);
        let node = NodeConfig {
            adapters: vec![adapter(5180), adapter(5745)],
            ..NodeConfig::ideal(Position::new(10.0 * i as f64, 0.0), adapter(5180))
        };
        let role = Role::Direct {
            bssid: MacAddr::local(9),
        };
        let mut sender = SenderConfig::new(Identity { me, role }, Rate::OFDM_24);
        sender.how = TxHow::multi_shot(Rate::OFDM_24, tries);
        let make = || Redundancy::new(config, Sender::new(sender));
        world.add_node(node, Checked::strict(make()).with_twin(make()));
    }
    for (adapter, loss) in losses.into_iter().enumerate() {
        let loss = LinkLoss {
            data: Some(Process::Fixed(loss)),
            ..LinkLoss::default()
        };
        world.set_adapter_loss((0, adapter as u8), (1, adapter as u8), loss);
    }
    if let Some(at) = pulled_ns {
        world.plan_incident(at, 0, Incident::AdapterGone { adapter: 0 });
    }
    let traffic = Traffic {
        to: address[1],
        category: AccessCategory::BestEffort,
        octets: 50,
        pattern: Pattern::Periodic {
            period_ns: CYCLE_NS,
            phase_ns: 0,
        },
        lifetime_ns: Some(CYCLE_NS),
        count: Some(frames),
    };
    world.add_traffic(0, traffic);
    world.set_observer(Box::new(shown.clone()));
    world.run_until(u64::from(frames) * CYCLE_NS + 100 * MS);
    let ways = shown.0.borrow();
    let delays = ways.values().filter_map(|(down, up)| Some((*up)? - down));
    let on_air = world.counters(0, 0).tx_frames + world.counters(0, 1).tx_frames;
    Run {
        sent: ways.len() as u64,
        lost: ways.values().filter(|w| w.1.is_none()).count() as u64,
        slowest_ns: delays.max().unwrap_or(0),
        copies: on_air as f64 / ways.len() as f64,
    }
}

fn deferred() -> RedundancyConfig {
    RedundancyConfig {
        primary: Primary::Fixed(0),
        ..RedundancyConfig::proactive(FIRST, SECOND, Duration::from_ms(1))
    }
}

/// Within four standard deviations of a binomial share.
fn about(count: u64, of: u64, share: f64) -> bool {
    let n = of as f64;
    (count as f64 - n * share).abs() < 4.0 * (n * share * (1.0 - share)).sqrt()
}

/// One-shots on channels that lose 10 and 20 %: 2 % are lost on both, whichever way the copies go.
#[test]
fn the_loss_is_the_product_of_both() {
    for config in [
        RedundancyConfig::parallel(FIRST, SECOND),
        RedundancyConfig::reactive(FIRST, SECOND),
        deferred(),
    ] {
        let r = run(config, 1, [0.1, 0.2], 20_000, None);
        assert_eq!(r.sent, 20_000);
        assert!(about(r.lost, r.sent, 0.1 * 0.2), "{config:?}: {} lost", r.lost);
    }
}

/// Both copies at once cost two frames each. A second copy that waits for the fate of the first is sent when that
/// was lost: 1 + p. With the usual retries taking back spares most of what the worse channel repeats.
#[test]
fn avoided_copies_spare_the_air_that_the_rule_says() {
    let copies = |config, tries| run(config, tries, [0.1, 0.2], 20_000, None).copies;
    let parallel = RedundancyConfig::parallel(FIRST, SECOND);
    assert_eq!(copies(parallel, 1), 2.0);
    let once = copies(deferred(), 1);
    assert!((once - 1.1).abs() < 4.0 * (0.09 / 20_000.0_f64).sqrt(), "{once}");
    // up to seven tries each: 1/(1 - p) without, and fewer with the other's ACK
    let all = copies(parallel, 7);
    assert!((all - (1.0 / 0.9 + 1.0 / 0.8)).abs() < 0.02, "{all}");
    let fewer = copies(RedundancyConfig::reactive(FIRST, SECOND), 7);
    assert!(fewer < all - 0.1, "{fewer} against {all}");
}

/// Nothing is lost, and nothing is later than its cycle, when the adapter that goes first is pulled out.
#[test]
fn one_adapter_pulled_out_costs_no_cycle() {
    for config in [
        RedundancyConfig::parallel(FIRST, SECOND),
        RedundancyConfig::proactive(FIRST, SECOND, Duration::from_ms(1)),
        deferred(),
    ] {
        for within_us in [0, 20, 70, 2_000] {
            let pulled = 500 * CYCLE_NS + within_us * 1_000;
            let r = run(config, 3, [0.0, 0.0], 1_000, Some(pulled));
            assert_eq!((r.sent, r.lost), (1_000, 0), "{config:?}, {within_us} us");
            assert!(r.slowest_ns < CYCLE_NS, "{config:?}: {} ns", r.slowest_ns);
        }
    }
}
