//! RSIN in the simulator: what it makes of a deadline at several strengths, whoever tells it how strong the link is.
//!
//! The table of the book: `cargo test -p sdmac-lab --test rsin -- --nocapture`.

use std::cell::RefCell;
use std::rc::Rc;

use frame::{AccessCategory, MacAddr, Phy, Rate};
use protocols::mac::data::{Identity, Role};
use protocols::mac::rate::RateControl;
use protocols::mac::rate::rsin::{Rsin, RsinCounters};
use protocols::mac::sender::{Sender, SenderConfig};
use radio::{Checked, Msdu, TxHow};
use sim::medium::error::bit_error_rate;
use sim::trace::{OnAir, Transmission};
use sim::traffic::parse_header;
use sim::{AdapterConfig, LossModel, MediumConfig, NodeConfig, Observer, Pattern, Position, Traffic, World};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
const ADDRESSES: [MacAddr; 2] = [MacAddr::local(1), MacAddr::local(2)];
const PERIOD_NS: u64 = 5 * MS;
const DEADLINE_NS: u64 = 1_200_000;

type Node = Checked<RateControl<Sender, Rsin>>;

/// The loss of a frame over white noise.
fn loss(rate: Rate, ratio_db: f64, octets: u32) -> f64 {
    let errors = bit_error_rate(rate, 10_f64.powf(ratio_db / 10.0));
    1.0 - (1.0 - errors).powf(8.0 * f64::from(octets))
}

/// Who tells the strength of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    /// The adapter, of each ACK.
    Acks,
    /// The receiver's own frames: it sends 200 octets ten times a second.
    Heard,
    /// Nobody.
    Nothing,
}

/// Since the warm-up: first tries by rate, and messages that were handed up within the deadline.
#[derive(Default)]
struct Seen {
    from_ns: u64,
    first_tries: Vec<(Rate, u32)>,
    in_time: u32,
}

struct Watch(Rc<RefCell<Seen>>);

impl Observer for Watch {
    fn transmission(&mut self, t: &Transmission<'_>) {
        let mut seen = self.0.borrow_mut();
        if t.what != OnAir::Frame || t.node != 0 || t.attempt != 1 || t.start_ns < seen.from_ns {
            return;
        }
        match seen.first_tries.iter_mut().find(|(rate, _)| *rate == t.rate) {
            Some((_, count)) => *count += 1,
            None => seen.first_tries.push((t.rate, 1)),
        }
    }
    fn delivered(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        let mut seen = self.0.borrow_mut();
        let (_, _, since_ns) = parse_header(msdu.payload).expect("all traffic is the simulator's");
        let counts = node == 1 && since_ns >= seen.from_ns;
        seen.in_time += u32::from(counts && now_ns - since_ns <= DEADLINE_NS);
    }
}

struct Result {
    /// Share of the messages that met the deadline.
    in_time: f64,
    /// Rate of most first tries.
    usual: Rate,
    counters: RsinCounters,
}

/// Ten seconds after one: a message of 1,200 octets every 5 ms, of no use after 1.2 ms, up to seven tries.
fn run(told: Told, dbm: f64) -> Result {
    let medium = MediumConfig {
        loss: LossModel::FixedPower(dbm),
        // a receiver that hears what it can decode
        preamble_dbm: -100.0,
        ..MediumConfig::default()
    };
    let mut world: World<Node> = World::new(&medium, 1);
    for me in ADDRESSES {
        let role = Role::Direct {
            bssid: MacAddr::local(9),
        };
        let mut config = SenderConfig::new(Identity { me, role }, Rate::OFDM_6);
        config.how = TxHow::multi_shot(Rate::OFDM_6, 7);
        let rsin = Rsin::new(&Phy::A, -94, 3, loss);
        let adapter = AdapterConfig {
            ack_signal: told == Told::Acks,
            ..AdapterConfig::station(me, Phy::A, 5180, false)
        };
        let node = Checked::strict(RateControl::new(rsin, Sender::new(config)));
        world.add_node(NodeConfig::ideal(Position::default(), adapter), node);
    }
    let traffic = |to: usize, octets, period_ns, phase_ns, lifetime_ns| Traffic {
        to: ADDRESSES[to],
        category: AccessCategory::BestEffort,
        octets,
        pattern: Pattern::Periodic { period_ns, phase_ns },
        lifetime_ns,
        count: None,
    };
    world.add_traffic(0, traffic(1, 1_200, PERIOD_NS, 0, Some(DEADLINE_NS)));
    if told == Told::Heard {
        world.add_traffic(1, traffic(0, 200, 100 * MS, 3 * MS, None));
    }
    let seen = Rc::new(RefCell::new(Seen {
        from_ns: S,
        ..Seen::default()
    }));
    world.set_observer(Box::new(Watch(seen.clone())));
    world.run_until(11 * S);
    let seen = seen.borrow();
    let control = world.protocol(0).inner();
    Result {
        in_time: f64::from(seen.in_time) / (10 * S / PERIOD_NS) as f64,
        usual: seen
            .first_tries
            .iter()
            .max_by_key(|(_, n)| n)
            .expect("it sends")
            .0,
        counters: control.algorithm(ADDRESSES[1]).expect("it has sent").counters(),
    }
}

/// Every message meets the deadline, for which 12 Mb/s is the slowest rate that fits; where the link is told to be weak the rates are slower.
#[test]
fn a_deadline_is_met_at_all_strengths() {
    for told in [Told::Acks, Told::Heard, Told::Nothing] {
        println!("{told:?}: strength, messages in time, rate of most first tries");
        let results: Vec<_> = [-50, -60, -66, -70, -74, -78, -80, -82, -84]
            .map(|dbm| (dbm, run(told, f64::from(dbm))))
            .into();
        for (dbm, r) in &results {
            println!("{dbm} dBm {:.4} {} {:?}", r.in_time, r.usual, r.counters);
        }
        let at = |dbm: i32| &results.iter().find(|(d, _)| *d == dbm).expect("above").1;
        let kbps = |dbm: i32| at(dbm).usual.kbps100();
        assert!(at(-50).in_time >= 0.999, "{told:?}: {}", at(-50).in_time);
        assert!(at(-82).in_time >= 0.95, "{told:?}: {}", at(-82).in_time);
        // where nobody tells, nothing asks for a faster rate either
        let slower = told == Told::Nothing || kbps(-82) < kbps(-50);
        assert!(slower, "{told:?}: {} {}", kbps(-82), kbps(-50));
        for (_, r) in &results {
            let RsinCounters {
                acks,
                heard,
                outcomes,
            } = r.counters;
            let most = match told {
                Told::Acks => acks,
                Told::Heard => heard,
                Told::Nothing => outcomes,
            };
            assert!(
                most * 100 >= (acks + heard + outcomes) * 95,
                "{told:?}: {:?}",
                r.counters
            );
        }
    }
}
