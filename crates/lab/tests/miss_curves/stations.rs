//! Eight stations and a controller that exchange a message each way in each period: polled by their deadlines, and with EDCA, where
//! everybody contends. And what the admission of a coordinator is worth.

use std::path::Path;

use frame::{Phy, ppdu_us};
use lab::scenario::Scenario;
use proptest::prelude::*;
use protocols::mac::data::QOS_OVERHEAD_OCTETS;
use protocols::mac::edf::poll::POLL_OCTETS;
use sim::rng::{Cause, Stream};

use super::RATE;
use super::ways::{Way, Ways};

const STATIONS: u64 = 8;
const SETS: u64 = 40;
const RUN_MS: u64 = 500;
/// Octets of LLC/SNAP, which scenarios count to the message.
const LLC_SNAP: u32 = 8;

/// Messages of `octets` each way in each of these periods, released at these phases, us.
#[derive(Debug)]
struct Set {
    octets: u32,
    periods: Vec<(u64, u64)>,
}

impl Set {
    /// Periods in which the exchanges of so many stations on an ideal host take the share `load` of the time; of one station a
    /// hundred times as much as of another, at most.
    fn draw(load: f64, stations: u64, dice: &mut Stream) -> Set {
        let octets = 24 + dice.below(400) as u32;
        let weights: Vec<f64> = (0..stations).map(|_| 0.01 + dice.unit().powi(2)).collect();
        let sum: f64 = weights.iter().sum();
        let cost_us = (Set::attempt_us(octets) + Set::answer_us(octets)) as f64;
        let period = |weight: f64| (cost_us * sum / (load * weight)).ceil() as u64;
        let mut periods: Vec<_> = weights
            .into_iter()
            .map(period)
            .map(|p| (p, dice.below(p)))
            .collect();
        periods.sort_unstable();
        Set { octets, periods }
    }

    /// A frame with its ACK, and 1 us for the way through the air.
    fn exchange_us(octets: u32) -> u32 {
        let mpdu = octets - LLC_SNAP + (QOS_OVERHEAD_OCTETS + POLL_OCTETS) as u32;
        let phy = &Phy::A;
        ppdu_us(RATE, mpdu, phy.band) + phy.sifs_us + phy.ack_us(RATE, phy.basic) + 1
    }

    /// A poll: PIFS before it.
    fn attempt_us(octets: u32) -> u64 {
        (Phy::A.aifs_us(1) + Set::exchange_us(octets)).into()
    }

    /// An answer: DIFS before it.
    fn answer_us(octets: u32) -> u64 {
        (Phy::A.aifs_us(2) + Set::exchange_us(octets)).into()
    }

    /// As a scenario, polled or with EDCA.
    fn scenario(&self, polled: bool, host: &str) -> Scenario {
        let octets = self.octets;
        let (attempt, answer) = (Set::attempt_us(octets), Set::answer_us(octets));
        let host = format!("host = \"{host}\"");
        let edca = "edca = true\nprotocol.sender = { rate = \"24M\", qos = true }";
        let one_shot = "send = { rate = \"24M\", tries = 1, queue = \"voice\", qos = true }";
        let (controller, station) = match polled {
            false => (edca.to_owned(), edca.to_owned()),
            true => (
                format!(
                    "edca = true\nprotocol.coordinator = {{ attempt = \"{attempt}us\", answer = \"{answer}us\", deadline = \"1s\", attempts = 100, no_backoff_aifsn = 1, {one_shot} }}"
                ),
                format!(
                    "edca = true\nap = \"controller\"\nprotocol.responder = {{ coordinator = \"controller\", within = \"150us\", no_backoff_aifsn = 2, {one_shot} }}"
                ),
            ),
        };
        let mut text = format!(
            "[run]\nduration = \"{RUN_MS}ms\"\n[medium]\nloss.fixed_power_dbm = -50\n[[group]]\nname = \"controller\"\n{host}\n{controller}\n"
        );
        let categories = ["voice", "video", "best_effort", "background"];
        for (i, (period, phase)) in self.periods.iter().enumerate() {
            text += &format!("[[group]]\nname = \"n{i}\"\n{host}\n{station}\n");
            let category = categories[i * categories.len() / self.periods.len()];
            let own = format!("n{i}");
            // what a station has to say is there when it is polled
            for (from, to) in [(own.as_str(), "controller"), ("controller", own.as_str())] {
                text += &format!(
                    "[[traffic]]\nfrom = \"{from}\"\nto = \"{to}\"\noctets = {octets}\ncategory = \"{category}\"\nlifetime = \"{period}us\"\npattern.periodic = {{ period = \"{period}us\", phase.fixed = \"{phase}us\" }}\n"
                );
            }
        }
        Scenario::parse(Path::new("set.toml"), &text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"))
    }
}

/// Messages whose lifetime ended before the run that were not there by then, and all of them.
fn missed(scenario: &Scenario, seed: u64) -> (u64, u64) {
    let mut world = scenario.build(seed);
    let ways = Ways::default();
    world.set_observer(Box::new(ways.clone()));
    world.run_until(RUN_MS * 1_000_000);
    let ways = ways.0.borrow();
    let deadline_ns = |w: &Way| w.deadline.expect("all have one").as_ns();
    let over = ways.values().filter(|w| deadline_ns(w) < RUN_MS * 1_000_000);
    let late = |w: &&Way| w.up_ns.is_none_or(|t| t > deadline_ns(w));
    (over.clone().filter(late).count() as u64, over.count() as u64)
}

/// Whether the coordinator of a scenario is told that all messages are in time.
fn admitted(scenario: &Scenario) -> bool {
    let [one] = scenario.admission() else {
        panic!("one coordinator: {:?}", scenario.admission());
    };
    one.admitted == Some(true)
}

/// Polled stations miss less than contending ones at every load up to 1, and what is admitted misses nothing.
#[test]
fn polls_by_deadline_and_contention() {
    println!("of {SETS} sets: admitted, without a miss, and share of the messages that missed");
    println!("load  admitted   EDF EDCA      EDF     EDCA");
    let mut before = usize::MAX;
    for tenths in 5..=11 {
        let (mut accepted, mut clean, mut late, mut all) = (0, [0; 2], [0; 2], 0);
        for set in 0..SETS {
            let mut dice = Stream::new(set, 1, Cause::Fault);
            let set = Set::draw(f64::from(tenths) / 10.0, STATIONS, &mut dice);
            for (i, polled) in [true, false].into_iter().enumerate() {
                let scenario = set.scenario(polled, "ideal");
                let (missed, of) = missed(&scenario, 1);
                clean[i] += usize::from(missed == 0);
                late[i] += missed;
                if polled {
                    all += of;
                    let fits = admitted(&scenario);
                    accepted += usize::from(fits);
                    assert!(!fits || missed == 0, "{missed} of {of}: {set:?}");
                }
            }
        }
        let share = |i: usize| late[i] as f64 / all as f64;
        println!(
            "{:.1}   {accepted:>8}  {:>4} {:>4}  {:.5}  {:.5}",
            f64::from(tenths) / 10.0,
            clean[0],
            clean[1],
            share(0),
            share(1)
        );
        assert!(accepted <= clean[0] && clean[1] <= clean[0], "load {tenths}/10");
        assert!(tenths > 10 || late[0] <= late[1], "load {tenths}/10");
        assert!(
            accepted <= before && (tenths <= 10 || accepted == 0),
            "load {tenths}/10"
        );
        before = accepted;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]
    /// Whatever hosts take, and however many stations there are: what the coordinator admits misses nothing while nothing is lost.
    #[test]
    fn what_a_coordinator_admits_misses_nothing(
        seed: u64,
        stations in 1u64..=12,
        load in 0.3..1.1_f64,
        host in prop_oneof![Just("ideal"), Just("table5"), Just("table4-optimised-idle")],
    ) {
        let set = Set::draw(load, stations, &mut Stream::new(seed, 1, Cause::Fault));
        let scenario = set.scenario(true, host);
        if admitted(&scenario) {
            let (missed, of) = missed(&scenario, seed);
            prop_assert_eq!(missed, 0, "of {}: {:?}", of, set);
        }
    }
}
