//! Every overlay of scenario files in random worlds in which everything goes wrong at once: confirms that are lost,
//! timers that are late, adapters that reset or are pulled out, clocks that jump, frames that get lost. All laws hold.
//!
//! No message comes after its lifetime, or more than once; of two adapters no copy counts twice. In one world of four only frames get lost and nodes walk. There is more to hold there: never a message twice; slots of a schedule
//! meet no more often than releases pass the guard; no two hosts of TBMAC that hear each other own one slot. EDF sends down the message whose
//! deadline is first, and none that cannot be finished; who decides attempt by attempt holds nothing up for long, whatever becomes of statuses; rate control asks for no more tries than it was asked for; who roams sends to nobody
//! that has not let it in, and on that one's channel.
//!
//! A failure prints the command that runs its seed alone, or all seeds where it is one of their sum, with the worst of them. An hour of
//! virtual time among all faults for each, and a third of an hour without those of hosts and adapters:
//! `cargo test --release -p sdmac-lab --test overlay_swarm -- --ignored`.

#[path = "overlay_swarm/laws.rs"]
mod laws;
#[path = "shared/meetings.rs"]
mod meetings;
#[path = "overlay_swarm/own.rs"]
mod own;
#[path = "overlay_swarm/progress.rs"]
mod progress;
#[path = "overlay_swarm/schemes.rs"]
mod schemes;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use frame::rate::Width;
use frame::{AccessCategory, MacAddr, Phy, Rate};
use lab::guard::USUAL;
use lab::scenario::{Program, Scenario};
use lab::stats::Proportion;
use radio::Checked;
use rayon::prelude::*;
use sim::rng::{Cause, Stream};
use sim::{Pattern, Traffic};

use laws::{Eye, Seen};
use own::Own;
use progress::{Kind, Progress};
use schemes::{SCHEDULED, SCHEMES};

/// A `sender` hands down all that comes, so up to 500 frames wait in each of the five queues of two adapters.
type Watched = Checked<Program, 5_100>;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

/// What goes wrong in a world, besides frames that get lost and nodes that walk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Fails {
    /// Nothing else. One world of four.
    Nothing,
    /// Confirms get lost and timers are late. One world of four.
    Hosts,
    /// Adapters, too: they are reset or pulled out, and clocks jump.
    Adapters,
}

impl Fails {
    fn of(seed: u64) -> Fails {
        match seed % 4 {
            0 => Fails::Nothing,
            1 => Fails::Hosts,
            _ => Fails::Adapters,
        }
    }
}

/// After a reset, or a jump of a clock, a node may be in slots of others for so long: until three beacons have told it the time, one in
/// 48 ms and each lost with this probability. Less is enough in 999 of 1,000 times.
/// A node that is deaf between its slots looks for them from ten beacons on that did not come.
fn astray_ns(loss: f64, deaf: bool) -> u64 {
    let arrives = 1.0 - loss;
    // of no more than two of `n`
    let too_few = |n: i32| {
        let others = |k: i32| loss.powi(n - k);
        let n = f64::from(n);
        others(0) + n * arrives * others(1) + n * (n - 1.0) / 2.0 * arrives * arrives * others(2)
    };
    let beacons = (3..).find(|n| too_few(*n) < 1e-3).expect("some arrive");
    (beacons as u64 + 1 + if deaf { 10 } else { 0 }) * 48 * MS
}

/// One random world for so long.
fn run(scheme: usize, seed: u64, run_ns: u64) -> Told {
    let (name, before, hub, leaf) = SCHEMES[scheme];
    let dice = &mut Stream::new(seed, scheme as u64, Cause::Fault);
    let mut below = |n: u64| dice.below(n);
    let second = if hub.contains("redundancy") {
        "[[group.adapter]]\nchannel = 149"
    } else {
        ""
    };
    let fails = Fails::of(seed);
    let (loss, ack) = (below(60) as f64 / 100.0, below(40) as f64 / 100.0);
    let (lost, late, late_us) = (
        below(30) as f64 / 100.0,
        below(30) as f64 / 100.0,
        1 + below(6_000),
    );
    let faults = match fails {
        Fails::Nothing => String::new(),
        Fails::Hosts | Fails::Adapters => {
            format!("faults = {{ lost_confirm = {lost}, late_timer = {late}, late_by = \"{late_us}us\" }}")
        }
    };
    let host = ["", "host = \"table5\""][below(2) as usize];
    let mut incidents = String::new();
    let (mut moved, mut astray) = (Vec::new(), Vec::new());
    for _ in 0..below(12) {
        let at = below(run_ns / MS);
        let node = ["hub", "leaf.0", "leaf.1", "leaf.2"][below(4) as usize];
        let kind = if fails < Fails::Adapters { 3 } else { below(5) };
        if kind != 3 {
            astray.push(at * MS..at * MS + astray_ns(loss, name == "switched off"));
        }
        let what = match kind {
            4 => format!(
                "{{ adapter_gone = {} }}",
                below(1 + u64::from(!second.is_empty()))
            ),
            0 => "\"adapter_reset\"".to_owned(),
            1 => format!("{{ clock_jump = \"{}us\" }}", below(9_000)),
            2 => format!("{{ tsf_jump = \"{}ms\" }}", below(90_000)),
            _ => {
                moved.push(node);
                format!("{{ move_to = [{}, 0] }}", below(90))
            }
        };
        incidents += &format!("[[incident]]\nat = \"{at}ms\"\nnode = \"{node}\"\nwhat = {what}\n");
    }
    let traffic = r#"
[[traffic]]
from = "hub"
to = "leaf"
octets = 58
lifetime = "4ms"
pattern.periodic = { period = "4ms" }
[[traffic]]
from = "leaf"
to = "hub"
octets = 58
lifetime = "4ms"
pattern.periodic = { period = "4ms" }
"#;
    let text = format!(
        r#"
[run]
duration = "{}ms"
{before}
[[group]]
name = "hub"
{host}
{faults}
{hub}
{second}
[[group]]
name = "leaf"
count = 3
placement.circle = {{ radius_m = 10 }}
{host}
{faults}
{leaf}
{second}
{traffic}
[[link]]
from = "leaf"
to = "hub"
both_ways = true
data.fixed = {loss}
ack.fixed = {ack}
{incidents}"#,
        run_ns / MS
    );
    let scenario =
        Scenario::parse(Path::new("swarm.toml"), &text, &[]).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut world =
        scenario.build_with::<Watched>(seed, |_, config, program| (config, Watched::strict(program)));
    let nodes: Vec<u32> = (0..scenario.nodes())
        .filter(|n| ["hub", "leaf"].contains(&scenario.node_name(*n).split('.').next().unwrap()))
        .collect();
    let (hub, leaves) = (nodes[0], &nodes[1..]);
    let keeps = own_law(name, &scenario, fails);
    let progress = progress_of(name, &nodes, fails);
    let seen = Rc::new(RefCell::new(Seen::new(keeps, progress, nodes.clone(), astray)));
    for (from, to) in leaves.iter().flat_map(|leaf| [(hub, *leaf), (*leaf, hub)]) {
        let traffic = Traffic {
            to: MacAddr::local(to),
            category: AccessCategory::Voice,
            octets: 16 + below(34) as usize,
            pattern: Pattern::Poisson {
                mean_ns: MS * (1 + below(8)),
            },
            lifetime_ns: (below(2) == 0).then(|| MS * (1 + below(20))),
            count: None,
        };
        let lifetime_ns = traffic.lifetime_ns;
        let flow = world.add_traffic(from, traffic);
        seen.borrow_mut()
            .lifetimes
            .extend(lifetime_ns.map(|ns| (flow, ns)));
    }
    world.set_observer(Box::new(Eye(seen.clone())));
    // leaves that stay in their circle are 17 m apart, and nothing is lost between them
    let stays = |n: &&u32| !moved.contains(&scenario.node_name(**n).as_str());
    let together: Vec<u32> = leaves.iter().filter(stays).copied().collect();
    for ms in 1..=run_ns / MS {
        world.run_until(ms * MS);
        seen.borrow_mut().look(&mut world, &together);
    }
    let broken: u64 = nodes.iter().map(|node| world.protocol(*node).violations()).sum();
    assert_eq!(broken, 0, "{name}");
    let seen = seen.borrow();
    assert_eq!(seen.wrong, None, "{name}");
    let [copies, acked, first, dropped] = laws::copies(nodes.iter().map(|n| world.protocol(*n).inner()));
    let told = Told {
        sent: nodes.iter().map(|node| world.counters(*node, 0).tx_frames).sum(),
        frames: seen.air.frames,
        overlaps: seen.overlaps,
        dropped,
        judged: match &seen.own {
            Own::Edf(edf) => edf.choices,
            Own::Roam(let_in) => let_in.frames,
            _ => 0,
        },
    };
    // nothing begins in a slot that would end too late; elsewhere a frame may be on the air, or on its way up
    let slots = ["tdma", "joined", "by reference"]
        .iter()
        .any(|s| name.contains(s));
    assert!(
        seen.stale_ns <= if slots { 0 } else { MS },
        "{name}: {} ns after its lifetime",
        seen.stale_ns
    );
    assert_eq!(seen.twice, 0, "{name}: a message was handed up again");
    // frames of TBMAC go to all
    let receivers = if name.contains("tbmac") {
        leaves.len() as u64
    } else {
        1
    };
    assert!(
        first + dropped <= copies * receivers,
        "{name}: {first} and {dropped} of {copies} copies"
    );
    if fails == Fails::Nothing {
        // requests for slots and their answers have copies, too, which count with none that arrived
        let asks = seen.air.asks;
        assert!(
            acked <= first + dropped + asks,
            "{name}: {acked} of {first}, {dropped} and {asks}"
        );
    }
    if fails < Fails::Adapters {
        // two who ask may each have heard another member only; with two adapters for two rounds in one of 1,440 worlds
        let most = if name == "redundancy+tbmac" { 2 } else { 1 };
        assert!(
            seen.shared <= most,
            "{name}: two that hear each other own one slot in {} rounds",
            seen.shared
        );
    }
    told
}

/// What came of one world.
struct Told {
    sent: u64,
    frames: u64,
    overlaps: u64,
    dropped: u64,
    /// Times that a law of its own could have been broken.
    judged: u64,
}

/// What a scheme alone has to keep. By clocks that jump no order of deadlines can be seen.
fn own_law(name: &str, scenario: &Scenario, fails: Fails) -> Own {
    match name {
        "edf" | "pooled" if fails < Fails::Adapters => {
            let hub = (0..scenario.nodes()).find(|n| scenario.node_name(*n) == "hub");
            Own::Edf(own::Edf::but(hub.filter(|_| name == "pooled")))
        }
        "minstrel" | "rsin" | "redundancy+rates" => Own::Rates(own::Tries::of(&Phy::A, Rate::OFDM_24)),
        "rates with MCS" => Own::Rates(own::Tries::of(&Phy::N5, own::mcs7(Width::Mhz20))),
        _ if name.starts_with("roam") => {
            let mut let_in = own::LetIn::default();
            for node in 0..scenario.nodes() {
                let mhz = match scenario.node_name(node).as_str() {
                    "hub" => 5180,
                    "far" => 5745,
                    _ => continue,
                };
                let_in.channels.insert(MacAddr::local(node), mhz);
            }
            Own::Roam(let_in)
        }
        _ => Own::Nothing,
    }
}

/// Who may not hold up messages for long, since it decides attempt by attempt. Adapters may do that, and clocks that jump.
fn progress_of(name: &str, nodes: &[u32], fails: Fails) -> Option<Progress> {
    let (kind, nodes) = match name {
        _ if fails == Fails::Adapters => return None,
        "edf" | "pooled" | "redundancy+edf" => (Kind::EDF, nodes),
        // leaves answer
        "polled" | "redundancy+polled" => (Kind::POLLS, &nodes[..1]),
        _ => return None,
    };
    Some(Progress::of(kind, nodes.to_vec()))
}

/// A number in the environment.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name}={text} is no number")),
    )
}

/// The command that runs these seeds of a scheme again.
fn again(test: &str, scheme: &str, start: u64, seeds: u64) -> String {
    format!(
        "again: SWARM_START={start} SWARM_SEEDS={seeds} SWARM_SCHEME={scheme:?} cargo test -p sdmac-lab --test overlay_swarm -- --include-ignored {test}"
    )
}

/// Seeds one after the other until so much virtual time has passed for each scheme. `SWARM_START` is the first seed, `SWARM_SEEDS` how
/// many there are, and `SWARM_SCHEME` the only scheme.
fn swarm(test: &str, seeds: u64, run_ns: u64) {
    let start = number("SWARM_START").unwrap_or(0);
    let seeds = number("SWARM_SEEDS").unwrap_or(seeds);
    let only = std::env::var("SWARM_SCHEME").ok();
    let chosen = |(_, s): &(usize, &(&str, &str, &str, &str))| only.as_ref().is_none_or(|only| only == s.0);
    let schemes: Vec<_> = SCHEMES.iter().enumerate().filter(chosen).collect();
    assert!(!schemes.is_empty(), "there is no SWARM_SCHEME={only:?}");
    for (scheme, (name, ..)) in schemes {
        // by scheme: frames, and those that met where nobody was astray
        let (mut frames, mut overlaps, mut dropped, mut judged) = (0, 0, 0, 0);
        // overlaps and seed
        let mut worst = (0, start);
        let one = |seed| {
            let told = std::panic::catch_unwind(|| run(scheme, seed, run_ns));
            let told = told.unwrap_or_else(|why| {
                eprintln!("{name} failed; {}", again(test, name, seed, 1));
                std::panic::resume_unwind(why);
            });
            (seed, told)
        };
        // they have nothing to do with each other
        let all: Vec<(u64, Told)> = (start..start + seeds).into_par_iter().map(one).collect();
        for (seed, told) in all {
            assert!(told.sent > 0, "{name}: nobody sent anything with seed {seed}");
            dropped += told.dropped;
            judged += told.judged;
            frames += told.frames;
            overlaps += told.overlaps;
            worst = worst.max((told.overlaps, seed));
        }
        assert!(
            seeds < 4 || !name.starts_with("redundancy") || dropped > 0,
            "{name}: no second copy was dropped with any seed; {}",
            again(test, name, start, seeds)
        );
        assert!(
            seeds < 4 || !(["edf", "pooled"].contains(name) || name.starts_with("roam")) || judged > 0,
            "{name}: its law was never put to the test; {}",
            again(test, name, start, seeds)
        );
        if SCHEDULED.contains(name) {
            let share = Proportion::new(overlaps, frames).clopper_pearson(SURE);
            assert!(
                share.low <= 1.0 - USUAL,
                "{name}: {overlaps} of {frames} frames met; {}, and {} of them with the worst seed; {}",
                again(test, name, start, seeds),
                worst.0,
                again(test, name, worst.1, 1)
            );
        }
    }
}

/// Of the bounds on what chance does: they are passed once in a million.
const SURE: f64 = 1.0 - 2e-6;

#[test]
fn all_laws_hold_in_random_worlds() {
    swarm("all_laws_hold_in_random_worlds", 4, SECOND);
}

/// An hour of virtual time among faults for each scheme: 360 seeds of 480, 10 s each, and worlds without them between those.
#[test]
#[ignore = "takes half an hour; an hour of virtual time for each overlay"]
fn an_hour_of_each() {
    swarm("an_hour_of_each", 480, 10 * SECOND);
}
