//! How many deadlines are missed as the load grows: earliest deadline first, one queue in the order of arrival, and the
//! four queues of EDCA by the length of the deadline. One node sends, so that nothing but the order differs between the
//! first two.
//!
//! The table of the book: `cargo test -p sdmac-lab --test miss_curves -- --nocapture`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use frame::{AccessCategory, EdcaParams, MacAddr, Phy, Rate};
use protocols::mac::data::{Identity, QOS_OVERHEAD_OCTETS, Role};
use protocols::mac::edf::cost::{AttemptCosts, CostEstimate};
use protocols::mac::edf::feasible::{self, Stream};
use protocols::mac::edf::{Edf, EdfConfig};
use protocols::mac::sender::{QueueRule, Sender, SenderConfig};
use radio::{Checked, Duration, Instant, Msdu, Protocol, Queue, TxHow};
use sim::rng::{self, Cause};
use sim::{AdapterConfig, MediumConfig, NodeConfig, Observer, Pattern, Position, Traffic, World};

const FLOWS: usize = 8;
const SETS: u64 = 20;
const RUN_NS: u64 = 500_000_000;
const RATE: Rate = Rate::OFDM_24;
/// Shortest deadlines first, two flows each.
const CATEGORIES: [AccessCategory; 4] = [
    AccessCategory::Voice,
    AccessCategory::Video,
    AccessCategory::BestEffort,
    AccessCategory::Background,
];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Scheme {
    Edf,
    Fifo,
    Edca,
}

struct Flow {
    octets: usize,
    period_ns: u64,
    phase_ns: u64,
    cost_ns: u64,
}

/// From the end of the frame before to its ACK, with AIFS and without backoff; 1 us for the way through the air.
fn cost_ns(octets: usize) -> u64 {
    let mpdu = (octets + QOS_OVERHEAD_OCTETS) as u32;
    let (phy, none) = (&Phy::A, (Duration::ZERO, Duration::ZERO));
    let costs = AttemptCosts::new(phy, RATE, phy.basic, mpdu, none, phy.difs_us(), 25);
    costs.success.as_ns() + 1_000
}

/// A random set of flows whose costs and periods (which are their deadlines, too) add up to `load`.
fn flows(load: f64, set: u64) -> Vec<Flow> {
    let mut dice = rng::Stream::new(set, 0, Cause::Fault);
    let all: Vec<_> = (0..FLOWS)
        .map(|_| {
            (
                50 + dice.below(1_350) as usize,
                0.01 + dice.unit().powi(4),
                dice.unit(),
            )
        })
        .collect();
    let weights: f64 = all.iter().map(|f| f.1).sum();
    let mut flows: Vec<Flow> = (all.into_iter())
        .map(|(octets, weight, phase)| {
            let cost_ns = cost_ns(octets);
            let period_ns = (cost_ns as f64 * weights / (load * weight)).ceil() as u64;
            let phase_ns = (phase * period_ns as f64) as u64;
            Flow {
                octets,
                period_ns,
                phase_ns,
                cost_ns,
            }
        })
        .collect();
    flows.sort_by_key(|f| f.period_ns);
    flows
}

/// Deadline and arrival, ns.
type Way = (Instant, Option<u64>);

/// The way of each payload.
#[derive(Clone, Default)]
struct Ways(Rc<RefCell<BTreeMap<Vec<u8>, Way>>>);

impl Observer for Ways {
    fn submitted(&mut self, _: u64, _: u32, msdu: &Msdu<'_>) {
        let deadline = msdu.deadline.expect("all have one");
        self.0
            .borrow_mut()
            .insert(msdu.payload.to_vec(), (deadline, None));
    }
    fn delivered(&mut self, now_ns: u64, _: u32, msdu: &Msdu<'_>) {
        if let Some(way) = self.0.borrow_mut().get_mut(msdu.payload) {
            way.1 = Some(now_ns);
        }
    }
}

/// How many of the messages with a deadline before the end missed it, and how many there were.
fn run<P: Protocol>(scheme: Scheme, flows: &[Flow], make: impl Fn(Sender) -> P) -> (u64, u64) {
    let mut world: World<Checked<P, 1_024>> = World::new(&MediumConfig::default(), 1);
    let address = [MacAddr::local(1), MacAddr::local(2)];
    for (i, me) in address.into_iter().enumerate() {
        let mut adapter = AdapterConfig::station(me, Phy::A, 5180, true);
        if scheme != Scheme::Edca {
            adapter.edca[Queue::Voice.index()] = EdcaParams {
                aifsn: 2,
                cw_min: 0,
                cw_max: 0,
                txop_us: 0,
            };
        }
        let bssid = MacAddr::local(9);
        let role = Role::Direct { bssid };
        let mut config = SenderConfig::new(Identity { me, role }, RATE);
        config.how = TxHow::multi_shot(RATE, 7);
        config.qos = true;
        if scheme != Scheme::Edca {
            config.queue = QueueRule::Fixed(Queue::Voice);
        }
        let node = NodeConfig::ideal(Position::new(10.0 * i as f64, 0.0), adapter);
        world.add_node(node, Checked::strict(make(Sender::new(config))));
    }
    for (i, flow) in flows.iter().enumerate() {
        let traffic = Traffic {
            to: address[1],
            category: CATEGORIES[i * 4 / FLOWS],
            octets: flow.octets,
            pattern: Pattern::Periodic {
                period_ns: flow.period_ns,
                phase_ns: flow.phase_ns,
            },
            lifetime_ns: Some(flow.period_ns),
            count: None,
        };
        world.add_traffic(0, traffic);
    }
    let ways = Ways::default();
    world.set_observer(Box::new(ways.clone()));
    world.run_until(RUN_NS);
    let ways = ways.0.borrow();
    let over = ways.values().filter(|w| w.0 < Instant::from_ns(RUN_NS));
    let missed = over
        .clone()
        .filter(|w| w.1.is_none_or(|t| Instant::from_ns(t) > w.0));
    (missed.count() as u64, over.count() as u64)
}

fn missed(scheme: Scheme, flows: &[Flow]) -> (u64, u64) {
    match scheme {
        Scheme::Fifo | Scheme::Edca => run(scheme, flows, |sender| sender),
        Scheme::Edf => {
            let shortest = flows.iter().map(|f| f.cost_ns).min().expect("there are some");
            let cost = CostEstimate::fixed(Duration::from_ns(shortest));
            let config = EdfConfig::new(cost, Duration::from_ms(1_000));
            run(scheme, flows, |sender| {
                Edf::<Sender, 32>::new(config.clone(), sender)
            })
        }
    }
}

/// At no load EDF misses more than one queue does, and what the feasibility test admits misses nothing.
#[test]
fn edf_misses_least_and_what_is_admitted_nothing() {
    println!("load   admitted  EDF      FIFO     EDCA    (share of the messages that missed)");
    for tenths in 5..=11_u32 {
        let mut shares = [(0, 0); 3];
        let mut admitted = 0;
        for set in 0..SETS {
            let flows = flows(f64::from(tenths) / 10.0, set);
            let streams: Vec<Stream> = (flows.iter())
                .map(|f| Stream::new(f.period_ns, f.cost_ns, 0))
                .collect();
            let fits = feasible::sporadic(&streams).is_ok();
            admitted += u32::from(fits);
            for (share, scheme) in shares.iter_mut().zip([Scheme::Edf, Scheme::Fifo, Scheme::Edca]) {
                let (late, of) = missed(scheme, &flows);
                *share = (share.0 + late, share.1 + of);
                assert!(
                    scheme != Scheme::Edf || !fits || late == 0,
                    "set {set} at {tenths}/10: {late} of {of} missed"
                );
            }
        }
        let [edf, fifo, edca] = shares.map(|(late, of)| late as f64 / of as f64);
        println!(
            "{:.1}    {admitted:>2} of {SETS}  {edf:.5}  {fifo:.5}  {edca:.5}",
            f64::from(tenths) / 10.0
        );
        assert!(edf <= fifo, "load {tenths}/10: {edf} against {fifo}");
        assert!(tenths > 5 || admitted > 0, "some sets are admitted");
        assert!(
            tenths <= 10 || admitted == 0,
            "more than there is is never admitted"
        );
    }
}
