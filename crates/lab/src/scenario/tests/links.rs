//! Several flows from one node to one other: they share the slots of their link, and what is said before a run holds.

use proptest::prelude::*;

use super::*;

/// A flow between the controller and node `n`.
#[derive(Clone, Copy, Debug)]
struct Flow {
    n: usize,
    up: bool,
    octets: u32,
    period_us: u64,
    lifetime_us: u64,
    /// At random, up to this.
    phase_us: u64,
}

const CYCLE_US: u64 = 8_000;

fn loop_of(flows: &[Flow], seconds: u32, per: f64, miss: f64) -> String {
    let mut text = format!(
        r#"
[run]
duration = "{seconds}s"
warm_up = "400ms"
[medium]
loss.fixed_power_dbm = -50
[[schedule]]
name = "loop"
cycle = "{CYCLE_US}us"
beacon = {{ from = "c", rate = "6M", every = 4 }}
release = {{ min = "10us", high = "20us" }}
sync_error = "2us"
send = {{ rate = "24M", qos = true }}
[[group]]
name = "c"
protocol.tdma.schedule = "loop"
"#
    );
    for n in 0..8 {
        text += &format!(
            "[[group]]\nname = \"n{n}\"\nap = \"c\"\nprotocol.tdma.schedule = \"loop\"\n\
             [[link]]\nfrom = \"n{n}\"\nto = \"c\"\nboth_ways = true\ndata.fixed = {per}\n"
        );
    }
    for f in flows {
        let node = format!("n{}", f.n);
        let (from, to) = if f.up { (&*node, "c") } else { ("c", &*node) };
        text += &format!(
            "[[traffic]]\nfrom = {from:?}\nto = {to:?}\noctets = {}\nlifetime = \"{}us\"\nper = {per}\nmiss = {miss}\n\
             pattern.periodic = {{ period = \"{}us\", phase = {{ random = \"{}us\" }} }}\n",
            f.octets, f.lifetime_us, f.period_us, f.phase_us
        );
    }
    text
}

/// Messages of each flow, and how many of them were not in time; the last ones may still be on their way.
fn missed(scenario: &Scenario, seed: u64, flows: &[Flow]) -> Vec<(u64, u64)> {
    let result = run(scenario, seed, None, &AtomicBool::new(false), |_| {})
        .unwrap()
        .result;
    let all = result.traffic.iter().zip(flows);
    all.map(|(t, f)| {
        let open = f.lifetime_us.div_ceil(f.period_us);
        (t.submitted, (t.submitted - t.delivered).saturating_sub(open))
    })
    .collect()
}

fn is_admitted(scenario: &Scenario) -> bool {
    scenario.admission()[0].admitted == Some(true)
}

/// A short message that came first took the slot of the long one, which does not fit in the short message's.
#[test]
fn a_long_message_has_its_slot() {
    let flow = |n, octets, lifetime_us| Flow {
        n,
        up: true,
        octets,
        period_us: 8_000,
        lifetime_us,
        phase_us: 8_000,
    };
    // so many that there is no slot too much
    let of = |n| [flow(n, 300, 4_000), flow(n, 58, 16_000)];
    let flows: Vec<_> = (0..8).flat_map(of).collect();
    let text = loop_of(&flows, 2, 0.0, 1e-3);
    let scenario = parse(&text, &[]).unwrap();
    assert!(is_admitted(&scenario), "{:?}", scenario.admission());
    for seed in 0..8 {
        let missed = missed(&scenario, seed, &flows);
        assert!(
            missed.iter().all(|(_, missed)| *missed == 0),
            "seed {seed}: {missed:?}"
        );
    }
}

fn flows() -> impl Strategy<Value = Vec<Flow>> {
    let octets = prop::sample::select(vec![58, 58, 100, 300, 800]);
    let quarter = CYCLE_US / 4;
    let one = (0usize..2, any::<bool>(), octets, 1u64..9, 1u64..9, 1u64..9);
    let flow = move |(n, up, octets, period, lifetime, phase)| Flow {
        n,
        up,
        octets,
        period_us: period * quarter,
        lifetime_us: lifetime * quarter,
        phase_us: phase * quarter,
    };
    prop::collection::vec(one.prop_map(flow), 2..7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    /// What is admitted misses nothing without losses, at whatever moments messages come ...
    #[test]
    fn flows_of_one_link_miss_nothing(flows in flows(), seed: u64) {
        let text = loop_of(&flows, 2, 0.0, 1e-3);
        let Some(scenario) = parse(&text, &[]).ok().filter(is_admitted) else {
            return Ok(());
        };
        let missed = missed(&scenario, seed, &flows);
        prop_assert!(missed.iter().all(|(_, missed)| *missed == 0), "{:?}\n{}", missed, text);
    }

    /// ... and no more than was asked for with them.
    #[test]
    fn flows_of_one_link_miss_no_more_than_was_asked_for(flows in flows(), seed: u64, per in 0.05f64..0.4) {
        const MISS: f64 = 0.02;
        let text = loop_of(&flows, 3, per, MISS);
        let Some(scenario) = parse(&text, &[]).ok().filter(is_admitted) else {
            return Ok(());
        };
        for (messages, missed) in missed(&scenario, seed, &flows) {
            let mean = MISS * messages as f64;
            prop_assert!(missed as f64 <= 2.0 + mean + 5.0 * mean.sqrt(), "{} of {}\n{}", missed, messages, text);
        }
    }
}

/// Frames to all go at a rate of their own, and their slots have room for them.
#[test]
fn slots_have_room_for_frames_to_all() {
    let flow = Flow {
        n: 0,
        up: false,
        octets: 300,
        period_us: 8_000,
        lifetime_us: 8_000,
        phase_us: 8_000,
    };
    let usual = loop_of(&[flow], 1, 0.0, 1e-3).replace("to = \"n0\"\noctets", "to = \"broadcast\"\noctets");
    for rate in ["", ", broadcast_rate = \"24M\""] {
        let text = usual.replace(", qos = true }", &format!(", qos = true{rate} }}"));
        let scenario = parse(&text, &[]).unwrap();
        assert!(is_admitted(&scenario), "{:?}", scenario.admission());
        let result = run(&scenario, 1, None, &AtomicBool::new(false), |_| {})
            .unwrap()
            .result;
        let all = &result.traffic[0];
        // each of eight nodes has it
        assert!(
            all.submitted > 50 && all.delivered >= 8 * (all.submitted - 1),
            "{rate}: {all:?}"
        );
    }
}

/// An access point relays nothing.
#[test]
fn a_station_reaches_its_access_point_only() {
    let flow = Flow {
        n: 0,
        up: true,
        octets: 58,
        period_us: 8_000,
        lifetime_us: 8_000,
        phase_us: 8_000,
    };
    let text = loop_of(&[flow], 1, 0.0, 1e-3).replace("to = \"c\"\noctets", "to = \"n1\"\noctets");
    let sentence = parse(&text, &[]).map(|_| ()).unwrap_err().to_string();
    let says = "what \"n0\" sends goes to its access point \"c\", which relays nothing to \"n1\": send to \"c\", or leave out `ap`";
    assert!(sentence.contains(says), "{sentence}");
}
