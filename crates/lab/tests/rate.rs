//! Minstrel against the best fixed rate on static links in the simulator, and on links that change.
//!
//! The table of the book: `cargo test -p sdmac-lab --test rate -- --nocapture`.

use frame::{AccessCategory, MacAddr, Phy, Rate};
use protocols::mac::data::{Identity, Role};
use protocols::mac::rate::minstrel::Minstrel;
use protocols::mac::rate::{RateControl, Rates};
use protocols::mac::sender::{Sender, SenderConfig};
use radio::{Checked, Event, Instant, Protocol, Radio, TxHow};
use sim::medium::PerTable;
use sim::{
    AdapterConfig, ErrorModel, LinkLoss, LossModel, MediumConfig, NodeConfig, Pattern, Position, Process,
    Traffic, World,
};

const S: u64 = 1_000_000_000;
const ADDRESSES: [MacAddr; 2] = [MacAddr::local(1), MacAddr::local(2)];

#[allow(clippy::large_enum_variant, reason = "two nodes")]
enum Node {
    Fixed(Checked<Sender>),
    Minstrel(Checked<RateControl<Sender, Minstrel>>),
}

impl Protocol for Node {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        match self {
            Node::Fixed(p) => p.handle(now, event, radio),
            Node::Minstrel(p) => p.handle(now, event, radio),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        match self {
            Node::Fixed(p) => p.deadline(),
            Node::Minstrel(p) => p.deadline(),
        }
    }
}

/// How the loss of a frame follows from its strength.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Errors {
    /// Modulation and code over white noise: within 2 dB a rate works or not.
    Noise,
    /// The same, and a fifth of all frames is lost besides.
    NoiseAndLosses,
    /// A rate gets better over 10 dB, as with a channel that fades from frame to frame; the next one is 3 dB away.
    Gentle,
    /// The same over 20 dB: nearly all rates lose something.
    Flat,
}

const ERRORS: [Errors; 4] = [
    Errors::Noise,
    Errors::NoiseAndLosses,
    Errors::Gentle,
    Errors::Flat,
];

/// A logistic curve of the loss of 1,200 octets, `width_db` wide: half of the frames at 3 dB and 3 dB more for each rate.
fn gradual(width_db: f64) -> ErrorModel {
    let rates = Rates::of(&Phy::A);
    let curve = |i: usize| {
        let middle = 3.0 + 3.0 * i as f64;
        (-40..=100)
            .map(|db| f64::from(db) / 2.0)
            .map(|db| (db, 1.0 / (1.0 + ((db - middle) * 6.0 / width_db).exp())))
            .collect()
    };
    ErrorModel::Table(PerTable {
        reference_octets: 1_200,
        rates: rates
            .as_slice()
            .iter()
            .enumerate()
            .map(|(i, r)| (*r, curve(i)))
            .collect(),
    })
}

fn world(errors: Errors, dbm: i32, rate: Option<Rate>, octets: usize) -> World<Node> {
    let medium = MediumConfig {
        loss: LossModel::FixedPower(dbm.into()),
        error: match errors {
            Errors::Noise | Errors::NoiseAndLosses => ErrorModel::Nist,
            Errors::Gentle => gradual(10.0),
            Errors::Flat => gradual(20.0),
        },
        // a receiver that hears what it can decode
        preamble_dbm: -100.0,
        ..MediumConfig::default()
    };
    let mut world = World::new(&medium, 1);
    for me in ADDRESSES {
        let role = Role::Direct {
            bssid: MacAddr::local(9),
        };
        let mut config = SenderConfig::new(Identity { me, role }, Rate::OFDM_6);
        config.how = TxHow::multi_shot(rate.unwrap_or(Rate::OFDM_6), 7);
        let sender = Sender::new(config);
        let node = match rate {
            Some(_) => Node::Fixed(Checked::strict(sender)),
            None => Node::Minstrel(Checked::strict(RateControl::new(
                Minstrel::new(&Phy::A, 1),
                sender,
            ))),
        };
        let adapter = AdapterConfig::station(me, Phy::A, 5180, false);
        world.add_node(NodeConfig::ideal(Position::default(), adapter), node);
    }
    if errors == Errors::NoiseAndLosses {
        let data = Some(Process::Fixed(0.2));
        world.set_link_loss(
            0,
            1,
            LinkLoss {
                data,
                ..LinkLoss::default()
            },
        );
    }
    world.add_traffic(
        0,
        Traffic {
            to: ADDRESSES[1],
            category: AccessCategory::BestEffort,
            octets,
            pattern: Pattern::Saturated {
                backlog: 2,
                phase_ns: 0,
            },
            lifetime_ns: None,
            count: None,
        },
    );
    world
}

/// What is delivered in so many seconds, Mb/s.
fn mbps(world: &mut World<Node>, seconds: u64) -> f64 {
    let before = world.flow(0).arrived_octets;
    world.run_until(world.now_ns() + seconds * S);
    (world.flow(0).arrived_octets - before) as f64 * 8e-6 / seconds as f64
}

/// The fixed rate that carries most, and what that is.
fn best_fixed(errors: Errors, dbm: i32, octets: usize) -> (Rate, f64) {
    let all = Rates::of(&Phy::A);
    let carried = all.as_slice().iter().map(|rate| {
        let mut world = world(errors, dbm, Some(*rate), octets);
        (*rate, mbps(&mut world, 6))
    });
    carried
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .expect("there are eight")
}

fn sweep(octets: usize) {
    println!("{octets} octets: strength, best fixed rate, what it carries, what Minstrel does");
    for errors in ERRORS {
        for dbm in (-88..=-60).rev().step_by(2) {
            let (rate, best) = best_fixed(errors, dbm, octets);
            let mut world = world(errors, dbm, None, octets);
            mbps(&mut world, 1);
            let ours = mbps(&mut world, 10);
            let rate = f64::from(rate.kbps100()) / 10.0;
            let share = ours / best;
            println!("{errors:?} {dbm} dBm {rate:>4} {best:5.2} {ours:5.2} Mb/s {share:.3}");
            assert!(
                share >= 0.95,
                "{errors:?} at {dbm} dBm, {octets} octets: {share:.3}"
            );
        }
    }
}

/// Within 5 % of the best fixed rate on every static link, whichever rates are dead on it.
#[test]
fn long_frames_on_static_links() {
    sweep(1_200);
}

/// The same with frames that are short, for which fast rates gain little.
#[test]
fn short_frames_on_static_links() {
    sweep(200);
}

/// A link that gets worse, better, is gone, and comes back: each time Minstrel carries nine tenths of what the best fixed
/// rate does, from the third second on.
#[test]
fn a_link_that_changes_is_followed() {
    const EACH: u64 = 8;
    const FOLLOWED: u64 = 2;
    let tx_dbm = AdapterConfig::station(MacAddr::ZERO, Phy::A, 5180, false).tx_dbm;
    for errors in ERRORS {
        let steps = [-60, -84, -72, -78, -66, -120, -80, -60, -88];
        let mut world = world(errors, steps[0], None, 1_200);
        for (i, dbm) in steps.iter().enumerate() {
            for (from, to) in [(0, 1), (1, 0)] {
                world.plan_loss(i as u64 * EACH * S, from, to, tx_dbm - f64::from(*dbm));
            }
        }
        for dbm in steps {
            let first = mbps(&mut world, FOLLOWED);
            let then = mbps(&mut world, EACH - FOLLOWED);
            let best = if dbm > -100 {
                best_fixed(errors, dbm, 1_200).1
            } else {
                0.0
            };
            println!("{errors:?} {dbm} dBm: {first:.2}, then {then:.2} of {best:.2} Mb/s");
            assert!(
                then >= 0.9 * best,
                "{errors:?} at {dbm} dBm: {then:.2} of {best:.2} Mb/s"
            );
        }
    }
}
