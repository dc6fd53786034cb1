//! Minstrel against the best fixed rate on static links in the simulator, of 802.11a and n, and on links that change.
//!
//! The tables of the book: `cargo test -p sdmac-lab --test rate -- --nocapture`.

use frame::rate::{GuardInterval, Width};
use frame::{AccessCategory, Band, MacAddr, Phy, Rate};
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
    /// The same, and so many percent of all frames are lost besides.
    NoiseAndLosses(u8),
    /// A rate gets better over 10 dB, as with a channel that fades from frame to frame; the next one is 3 dB away.
    Gentle,
    /// The same over 20 dB: nearly all rates lose something.
    Flat,
}

const ERRORS: [Errors; 4] = [
    Errors::Noise,
    Errors::NoiseAndLosses(20),
    Errors::Gentle,
    Errors::Flat,
];

/// A PHY, and the rates that are chosen among on it: those like the one that is asked for.
#[derive(Clone, Copy, Debug)]
struct Choice {
    phy: Phy,
    asked: Rate,
    /// Strength of the strongest link, dBm.
    strongest: i32,
}

const A: Choice = Choice {
    phy: Phy::A,
    asked: Rate::OFDM_6,
    strongest: -60,
};

impl Choice {
    /// 802.11n at 5 GHz, asked for the slowest MCS of this width; 40 MHz have twice the noise.
    fn n(width: Width) -> Choice {
        Choice {
            phy: Phy::N5,
            asked: Rate::ht(0, width, GuardInterval::Long).expect("below 32"),
            strongest: if width == Width::Mhz40 { -57 } else { -60 },
        }
    }

    fn rates(&self) -> Rates {
        Rates::like(&self.phy, self.asked)
    }
}

/// A logistic curve of the loss of 1,200 octets, `width_db` wide: half of the frames at 3 dB and 3 dB more for each rate, of legacy
/// rates, which ACKs have, and of those that are chosen among.
fn gradual(width_db: f64, rates: &Rates) -> ErrorModel {
    let curve = |i: usize| {
        let middle = 3.0 + 3.0 * i as f64;
        (-40..=100)
            .map(|db| f64::from(db) / 2.0)
            .map(|db| (db, 1.0 / (1.0 + ((db - middle) * 6.0 / width_db).exp())))
            .collect()
    };
    ErrorModel::Table(PerTable {
        reference_octets: 1_200,
        rates: [Rates::of(&Phy::A), *rates]
            .iter()
            .flat_map(|kind| kind.as_slice().iter().enumerate())
            .map(|(i, r)| (*r, curve(i)))
            .collect(),
    })
}

/// A saturated link at one rate, or with Minstrel.
fn world(choice: Choice, errors: Errors, dbm: i32, rate: Option<Rate>, octets: usize) -> World<Node> {
    let Choice { phy, asked, .. } = choice;
    let (mhz, slowest) = match phy.band {
        Band::Ghz2_4 => (2412, Rate::DSSS_1),
        Band::Ghz5 => (5180, Rate::OFDM_6),
    };
    let medium = MediumConfig {
        loss: LossModel::FixedPower(dbm.into()),
        error: match errors {
            Errors::Noise | Errors::NoiseAndLosses(_) => ErrorModel::Nist,
            Errors::Gentle => gradual(10.0, &choice.rates()),
            Errors::Flat => gradual(20.0, &choice.rates()),
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
        let mut config = SenderConfig::new(Identity { me, role }, slowest);
        config.how = TxHow::multi_shot(rate.unwrap_or(asked), 7);
        let sender = Sender::new(config);
        let node = match rate {
            Some(_) => Node::Fixed(Checked::strict(sender)),
            None => Node::Minstrel(Checked::strict(RateControl::new(Minstrel::new(&phy, 1), sender))),
        };
        let adapter = AdapterConfig::station(me, phy, mhz, false);
        world.add_node(NodeConfig::ideal(Position::default(), adapter), node);
    }
    if let Errors::NoiseAndLosses(percent) = errors {
        let data = Some(Process::Fixed(f64::from(percent) / 100.0));
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

/// So many seconds, or more where the link is weak or much is lost: frames are few there, and chance makes more of them.
fn seconds(usual: u64, errors: Errors, dbm: i32) -> u64 {
    match errors {
        Errors::NoiseAndLosses(30..) => 6 * usual,
        _ if dbm < -82 => 4 * usual,
        _ => usual,
    }
}

/// The fixed rate that carries most, and what that is.
fn best_fixed(choice: Choice, errors: Errors, dbm: i32, octets: usize) -> (Rate, f64) {
    let all = choice.rates();
    let carried = all.as_slice().iter().map(|rate| {
        let mut world = world(choice, errors, dbm, Some(*rate), octets);
        (*rate, mbps(&mut world, seconds(6, errors, dbm)))
    });
    carried
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .expect("there are eight")
}

fn sweep(choice: Choice, octets: usize, step_db: usize) {
    links(choice, octets, step_db, &ERRORS, 0.95);
}

/// Minstrel carries this share of what the best fixed rate does, at least.
fn links(choice: Choice, octets: usize, step_db: usize, errors: &[Errors], least: f64) {
    let (name, asked) = (choice.phy.name, choice.asked);
    println!(
        "{name} {asked}, {octets} octets: strength, best fixed rate, what it carries, what Minstrel does"
    );
    let mut behind = Vec::new();
    for errors in errors.iter().copied() {
        let strengths = choice.strongest - 28..=choice.strongest;
        for dbm in strengths.rev().step_by(step_db) {
            let (rate, best) = best_fixed(choice, errors, dbm, octets);
            let mut world = world(choice, errors, dbm, None, octets);
            mbps(&mut world, 1);
            let ours = mbps(&mut world, seconds(10, errors, dbm));
            let rate = f64::from(rate.kbps100()) / 10.0;
            let share = ours / best;
            println!("{errors:?} {dbm} dBm {rate:>4} {best:5.2} {ours:5.2} Mb/s {share:.3}");
            if share < least {
                behind.push(format!("{errors:?} at {dbm} dBm: {share:.3}"));
            }
        }
    }
    assert!(behind.is_empty(), "{name}, {octets} octets: {behind:?}");
}

/// Within 5 % of the best fixed rate on every static link, whichever rates are dead on it.
#[test]
fn long_frames_on_static_links() {
    sweep(A, 1_200, 2);
}

/// The same with frames that are short, for which fast rates gain little.
#[test]
fn short_frames_on_static_links() {
    sweep(A, 200, 2);
}

/// The same where much is lost at all rates alike, which none of them avoids: what slow ones cost when they are sampled weighs more then.
#[test]
fn losses_that_no_rate_avoids() {
    let b = Choice {
        phy: Phy::B,
        asked: Rate::DSSS_1,
        ..A
    };
    for (percent, least) in [(40, 0.95), (60, 0.92)] {
        for octets in [200, 1_500, 2_000] {
            links(A, octets, 8, &[Errors::NoiseAndLosses(percent)], least);
            links(b, octets, 14, &[Errors::NoiseAndLosses(percent)], least);
        }
    }
}

/// The same with MCS, which a request for one of them asks for.
#[test]
fn mcs_in_20_mhz_on_static_links() {
    sweep(Choice::n(Width::Mhz20), 1_200, 4);
    sweep(Choice::n(Width::Mhz20), 200, 4);
}

/// The same in 40 MHz, at the same ratios of signal to noise.
#[test]
fn mcs_in_40_mhz_on_static_links() {
    sweep(Choice::n(Width::Mhz40), 1_200, 4);
    sweep(Choice::n(Width::Mhz40), 200, 4);
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
        let mut world = world(A, errors, steps[0], None, 1_200);
        for (i, dbm) in steps.iter().enumerate() {
            for (from, to) in [(0, 1), (1, 0)] {
                world.plan_loss(i as u64 * EACH * S, from, to, tx_dbm - f64::from(*dbm));
            }
        }
        for dbm in steps {
            let first = mbps(&mut world, FOLLOWED);
            let then = mbps(&mut world, EACH - FOLLOWED);
            let best = if dbm > -100 {
                best_fixed(A, errors, dbm, 1_200).1
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
