//! Overlays of scenario files on emulated AR9170 sticks, in the simulator's air: between each protocol and its adapter are a driver, a
//! USB on which a transfer takes 125 us, and a firmware. All laws hold, and what is handed down arrives. Slots on sticks are in
//! `tdma_on_sticks.rs`, ad hoc networks in `ibss/`.

use std::path::Path;

use ar9170::driver::Config;
use ar9170::emulated::Knobs;
use frame::{AccessCategory, MacAddr};
use lab::scenario::{Program, Scenario};
use lab::testbed::ar9170::{Computer, computer};
use radio::Checked;
use sim::traffic::FlowCounts;
use sim::{Pattern, Traffic, World};

type OnStick = Computer<Checked<Program>>;

const MS: u64 = 1_000_000;
const RUN_NS: u64 = 4_000 * MS;

/// A hub and three leaves of these protocols, a message for each other each 40 ms: what has become of those to the hub, and of its own.
fn run(hub: &str, leaf: &str, to_all: bool) -> [Vec<FlowCounts>; 2] {
    let text = format!(
        r#"
[run]
duration = "4s"
[medium]
loss.fixed_power_dbm = -50
[[group]]
name = "hub"
phy = "g"
channel = 1
edca = true
{hub}
[[group]]
name = "leaf"
count = 3
phy = "g"
channel = 1
edca = true
ap = "hub"
{leaf}
"#
    );
    let scenario = Scenario::parse(Path::new("sticks.toml"), &text, &[]).unwrap_or_else(|e| panic!("{e}"));
    let mut world: World<OnStick> = scenario.build_with(1, |node, config, program| {
        let adapter = &config.adapters[0];
        let stick = Config {
            mhz: adapter.mhz,
            address: Some(adapter.address),
            ..Config::default()
        };
        let knobs = Knobs {
            seed: node.into(),
            ..Knobs::default()
        };
        let program = computer(adapter.address, stick, knobs, Checked::strict(program));
        (config, program)
    });
    let mut flow = |from, to: MacAddr| {
        let traffic = Traffic {
            to,
            category: AccessCategory::Voice,
            octets: 40,
            pattern: Pattern::Periodic {
                period_ns: 40 * MS,
                phase_ns: (1_000 + 7 * u64::from(from)) * MS,
            },
            lifetime_ns: None,
            count: None,
        };
        world.add_traffic(from, traffic)
    };
    let address = |node| {
        if to_all {
            MacAddr::BROADCAST
        } else {
            MacAddr::local(node)
        }
    };
    let up: Vec<u32> = (1..4).map(|leaf| flow(leaf, address(0))).collect();
    let down: Vec<u32> = match to_all {
        true => vec![flow(0, MacAddr::BROADCAST)],
        false => (1..4).map(|leaf| flow(0, address(leaf))).collect(),
    };
    // what comes last has time to arrive
    world.count_flows(0..RUN_NS - 200 * MS);
    world.run_until(RUN_NS);
    for node in 0..4 {
        let stick = world.protocol(node);
        assert!(stick.is_up() && stick.counts().all_restarts() == 0, "{node}");
        assert_eq!(stick.protocol().violations(), 0, "{node}");
    }
    [up, down].map(|flows| flows.into_iter().map(|f| world.flow(f)).collect())
}

/// All but so many in a thousand have arrived, at so many receivers each.
fn arrived(flows: &[Vec<FlowCounts>; 2], receivers: u64, but: u64) {
    for counts in flows.iter().flatten() {
        let whole = counts.submitted * receivers;
        assert!(counts.submitted >= 60, "{flows:?}");
        assert!(counts.delivered <= whole, "{flows:?}");
        assert!(counts.delivered * 1_000 >= whole * (1_000 - but), "{flows:?}");
    }
}

#[test]
fn contention() {
    let sender = r#"protocol.sender = { rate = "24M" }"#;
    arrived(&run(sender, sender, false), 1, 0);
}

#[test]
fn earliest_deadline_first() {
    let edf = r#"protocol.edf = { cost = "1ms", deadline = "30ms", send = { rate = "24M" } }"#;
    arrived(&run(edf, edf, false), 1, 0);
}

/// The controller polls each device, which answers within what the ways over two USBs take.
#[test]
fn polls_and_answers() {
    let hub = r#"protocol.coordinator = { attempt = "2ms", answer = "2ms", deadline = "40ms", attempts = 20, send = { rate = "24M", tries = 1 } }"#;
    let leaf = r#"protocol.responder = { coordinator = "hub", within = "1500us", send = { rate = "24M", tries = 1 } }"#;
    arrived(&run(hub, leaf, false), 1, 0);
}

/// Hosts that agree on slots have the time of the simulator here, and hand a frame over early enough for the USB.
#[test]
fn slots_that_hosts_agree_on() {
    let host = r#"protocol.tbmac = { payload_octets = 60, release = { min = "125us", high = "400us" }, send = { rate = "6M" } }"#;
    arrived(&run(host, host, true), 3, 20);
}

#[test]
fn rates_by_their_outcomes() {
    for rule in ["rate_control = \"minstrel\"", "rate_control.rsin = {}"] {
        let leaf = format!("{rule}\nprotocol.sender = {{ rate = \"54M\", tries = 7 }}");
        let hub = r#"protocol.sender = { rate = "24M" }"#;
        arrived(&run(hub, &leaf, false), 1, 0);
    }
}
