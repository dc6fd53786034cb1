//! How many deadlines are missed as the load grows: earliest deadline first, one queue in the order of arrival, and the
//! four queues of EDCA by the length of the deadline. One node sends, so that nothing but the order differs between the
//! first two; what many nodes do is in [`stations`].
//!
//! The table of the book: `cargo test -p sdmac-lab --test miss_curves -- --nocapture`. It is a snapshot, too.

#[path = "miss_curves/stations.rs"]
mod stations;
#[path = "shared/ways.rs"]
mod ways;

use frame::{AccessCategory, EdcaParams, MacAddr, Phy, Rate};
use proptest::prelude::*;
use protocols::mac::data::{Identity, QOS_OVERHEAD_OCTETS, Role};
use protocols::mac::edf::cost::{AttemptCosts, CostEstimate};
use protocols::mac::edf::feasible::{self, Stream};
use protocols::mac::edf::{Edf, EdfConfig};
use protocols::mac::sender::{QueueRule, Sender, SenderConfig};
use radio::{Checked, Duration, Protocol, Queue, TxHow};
use sim::rng::{self, Cause};
use sim::{AdapterConfig, MediumConfig, NodeConfig, Pattern, Position, Traffic, World};
use ways::{Way, Ways};

const FLOWS: usize = 8;
const SETS: u64 = 100;
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
    deadline_ns: u64,
    phase_ns: u64,
    cost_ns: u64,
}

impl Flow {
    fn stream(&self) -> Stream {
        Stream {
            deadline_ns: self.deadline_ns,
            ..Stream::new(self.period_ns, self.cost_ns, 0)
        }
    }
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
                deadline_ns: period_ns,
                phase_ns,
                cost_ns,
            }
        })
        .collect();
    flows.sort_by_key(|f| f.period_ns);
    flows
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
            category: CATEGORIES[i * 4 / flows.len()],
            octets: flow.octets,
            pattern: Pattern::Periodic {
                period_ns: flow.period_ns,
                phase_ns: flow.phase_ns,
            },
            lifetime_ns: Some(flow.deadline_ns),
            count: None,
        };
        world.add_traffic(0, traffic);
    }
    let ways = Ways::default();
    world.set_observer(Box::new(ways.clone()));
    world.run_until(RUN_NS);
    let ways = ways.0.borrow();
    let deadline_ns = |w: &Way| w.deadline.expect("all have one").as_ns();
    let over = ways.values().filter(|w| deadline_ns(w) < RUN_NS);
    let missed = over
        .clone()
        .filter(|w| w.up_ns.is_none_or(|t| t > deadline_ns(w)));
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

/// What came of all sets at one load.
#[derive(Default)]
struct Row {
    admitted: usize,
    /// By scheme: messages that missed, and sets without any.
    late: [u64; 3],
    clean: [usize; 3],
    messages: u64,
}

const SCHEMES: [Scheme; 3] = [Scheme::Edf, Scheme::Fifo, Scheme::Edca];

fn row(tenths: u32) -> Row {
    let mut row = Row::default();
    for set in 0..SETS {
        let flows = flows(f64::from(tenths) / 10.0, set);
        let streams: Vec<Stream> = flows.iter().map(Flow::stream).collect();
        let fits = feasible::sporadic(&streams).is_ok();
        row.admitted += usize::from(fits);
        for (i, scheme) in SCHEMES.into_iter().enumerate() {
            let (late, of) = missed(scheme, &flows);
            row.late[i] += late;
            row.clean[i] += usize::from(late == 0);
            row.messages += if i == 0 { of } else { 0 };
            assert!(
                scheme != Scheme::Edf || !fits || late == 0,
                "set {set} at {tenths}/10: {late} of {of} missed"
            );
        }
    }
    row
}

/// The order and the shape of the curves. At no load EDF misses more than one queue does, nor than EDCA up to a load of 1, and there is no
/// load at which another order carries more sets without a miss; what the feasibility test admits misses nothing; more load
/// is never better.
#[test]
fn edf_carries_most_sets_and_what_is_admitted_misses_nothing() {
    let rows: Vec<(u32, Row)> = (5..=11).map(|tenths| (tenths, row(tenths))).collect();
    let mut table =
        format!("of {SETS} sets: admitted, without a miss, and share of the messages that missed\n");
    table += "load  admitted   EDF FIFO EDCA      EDF     FIFO     EDCA\n";
    for (tenths, row) in &rows {
        let [edf, fifo, edca] = row.clean;
        let share = |i: usize| row.late[i] as f64 / row.messages as f64;
        table += &format!(
            "{:.1}   {:>8}  {edf:>4} {fifo:>4} {edca:>4}  {:.5}  {:.5}  {:.5}\n",
            f64::from(*tenths) / 10.0,
            row.admitted,
            share(0),
            share(1),
            share(2)
        );
        assert!(
            row.late[0] <= row.late[1],
            "load {tenths}/10: more than one queue"
        );
        assert!(
            row.admitted <= edf && fifo <= edf && edca <= edf,
            "load {tenths}/10"
        );
        assert!(*tenths <= 10 || row.admitted == 0, "more than there is");
    }
    for pair in rows.windows(2) {
        let [(_, less), (tenths, more)] = pair else {
            unreachable!()
        };
        assert!(more.admitted <= less.admitted, "admitted at {tenths}/10");
        for (i, scheme) in SCHEMES.iter().enumerate() {
            assert!(more.clean[i] <= less.clean[i], "{scheme:?} at {tenths}/10");
            assert!(more.late[i] >= less.late[i], "{scheme:?} at {tenths}/10");
        }
    }
    println!("{table}");
    insta::assert_snapshot!("curves", table);
}

/// Random flows: octets, weight of the period, deadline as a share of it, phase.
type Draw = (usize, f64, f64, f64);

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let one = (16..1_400_usize, -2.5..0.0_f64, 0.2..=1.0_f64, 0.0..1.0_f64);
    proptest::collection::vec(one, 1..9)
}

/// The flows with all periods times `scale`; with `critical` the most costly frame comes first, and all others a nanosecond later,
/// which is the worst that can happen to them.
fn scaled(draws: &[Draw], scale: f64, critical: bool) -> Vec<Flow> {
    let flow = |(octets, weight, deadline, phase): &Draw| {
        let cost_ns = cost_ns(*octets);
        let period_ns = (cost_ns as f64 * scale * 10.0_f64.powf(-weight)) as u64;
        Flow {
            octets: *octets,
            period_ns,
            deadline_ns: (period_ns as f64 * deadline) as u64,
            phase_ns: (period_ns as f64 * phase) as u64,
            cost_ns,
        }
    };
    let mut flows: Vec<Flow> = draws.iter().map(flow).collect();
    flows.sort_by_key(|f| f.period_ns);
    if critical {
        let longest = flows.iter().map(|f| f.cost_ns).max().unwrap_or(0);
        for f in &mut flows {
            f.phase_ns = u64::from(f.cost_ns < longest);
        }
    }
    flows
}

fn admits(flows: &[Flow]) -> bool {
    let streams: Vec<Stream> = flows.iter().map(Flow::stream).collect();
    feasible::constrained(&streams).is_ok()
}

/// The shortest periods with which these flows are admitted, to a thousandth.
fn just_admitted(draws: &[Draw]) -> f64 {
    let (mut denied, mut admitted) = (0.0, 1.0);
    while !admits(&scaled(draws, admitted, false)) {
        (denied, admitted) = (admitted, 2.0 * admitted);
    }
    while admitted - denied > 0.001 * admitted {
        let middle = (denied + admitted) / 2.0;
        match admits(&scaled(draws, middle, false)) {
            true => admitted = middle,
            false => denied = middle,
        }
    }
    admitted
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    /// Sets with any deadlines up to their periods that are just admitted, on the air: nothing is missed, in whatever order they come.
    #[test]
    fn what_is_just_admitted_misses_nothing(draws in draws(), critical: bool) {
        let scale = just_admitted(&draws);
        let flows = scaled(&draws, scale, critical);
        prop_assert!(admits(&flows));
        let (late, of) = missed(Scheme::Edf, &flows);
        prop_assert!(late == 0 && of > 0, "{late} of {of} at {scale}");
    }
}

/// The test is not only on the safe side: of sets that ask for 5 % more than is admitted, some miss.
#[test]
fn little_more_than_is_admitted_is_too_much() {
    let mut missing = 0;
    let mut dice = rng::Stream::new(3, 0, Cause::Fault);
    for _ in 0..40 {
        let draws: Vec<Draw> = (0..4)
            .map(|_| {
                (
                    16 + dice.below(1_384) as usize,
                    -2.5 * dice.unit(),
                    0.2 + 0.8 * dice.unit(),
                    0.0,
                )
            })
            .collect();
        let flows = scaled(&draws, just_admitted(&draws) / 1.05, true);
        assert!(!admits(&flows));
        missing += u32::from(missed(Scheme::Edf, &flows).0 > 0);
    }
    println!("{missing} of 40 sets miss");
    assert!(missing > 0);
}
