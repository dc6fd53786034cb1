//! What all numbers of an answer rest on, in sentences.

use super::bench::Bench;
use super::question::{Link, Offsets, Turn};
use super::text::{count, probability, time};

/// What the numbers rest on.
pub(super) fn of(bench: &Bench) -> Vec<String> {
    let q = &bench.question;
    let link = match q.link {
        Link::Per { data, ack } => format!(
            "Each data frame is lost with {} and each ACK with {}, independently of all others.",
            probability(data),
            probability(ack)
        ),
        Link::SnrDb(db) if q.schemes.iter().all(|s| s.walks()) => {
            format!("The signal-to-noise ratio at halfway is {db} dB; there is no fading.")
        }
        Link::SnrDb(db) => {
            format!("All receivers have a signal-to-noise ratio of {db} dB; there is no fading.")
        }
    };
    let mut all = vec![
        "A message misses when the application at the other end does not have it one cycle after it was handed down.".into(),
        match q.offsets {
            Offsets::None => "All applications hand down their messages at the start of the cycle, the controller one for each node: the hardest case for EDCA.".into(),
            Offsets::Even => format!(
                "The messages of a node, its own and the controller's to it, are handed down together, those of the next node {} later. TDMA arranges its slots by that only where this guarantees all messages.",
                time(q.cycle_ns as f64 / f64::from(q.nodes))
            ),
            Offsets::Random => "The messages of a node, its own and the controller's to it, are handed down together at an instant of the cycle that was drawn from the seed and is the same in all cycles: other seeds are other plants. TDMA arranges its slots by that only where this guarantees all messages.".into(),
        },
        format!("All hosts have the latencies of the profile '{}', drawn anew for each frame: a host that is slow for a while is not modelled.", q.host.name),
        "Reception takes as long as the confirm of an acknowledged frame; no profile measures it.".into(),
        format!("Host clocks are off by up to {} ppm. The cycle is counted on the controller's adapter clock.", super::DRIFT_PPB / 1_000),
        link,
        "Messages that are older than their cycle are dropped before they are sent.".into(),
        "EDCA: default parameters of the voice category, those of access points at the controller; 7 tries.".into(),
        "EDF and TDMA: one-shots in the voice queue without backoff, carrier sense on.".into(),
    ];
    if q.schemes.iter().any(|s| !s.walks()) {
        all.push("All nodes hear each other at the same strength, 10 m from the controller; two frames at once are both lost.".into());
    }
    if q.schemes.iter().any(|s| s.walks()) {
        all.push(format!(
            "ROAM: every node walks 76 m at 2 m/s from one access point of the controller to another, 80 m away on another channel, once in {}; the wire between them takes no time. Beacons every 102.4 ms, {:.1} dB above the noise at halfway, without fading; plain Wi-Fi as EDCA has it. No shortest cycle is looked for.",
            time(super::roaming::WALK_NS as f64),
            bench.halfway_db()
        ));
    }
    let any = |check: &dyn Fn(Turn) -> bool| q.schemes.iter().any(|s| check(s.turn));
    if q.schemes.iter().any(|s| s.is_redundant()) {
        all.push("Two adapters (REDUNDANCY: both copies at once; REACTIVE: the ACK of one takes the other back; PROACTIVE: the second when the first failed, or after a quarter of the cycle) are on two channels with equal and independent losses; others are on the first channel only.".into());
    }
    if any(&|t| t == Turn::Tbmac) {
        all.push("TBMAC: one cell, all hosts know the time exactly, frames are not acknowledged, messages count from the 100th round on.".into());
    }
    if any(&|t| t == Turn::Slotted) {
        all.push("SLOTTED: the slots of a node begin by its own clock, the controller has one for each node in a cycle; all but backoff is left on.".into());
    }
    if q.schemes.iter().any(|s| s.joins) {
        all.push("TDMA+JOIN: it fails where a node that asks is not let in; else the verdict is that of nodes that are in, with what joining takes from the cycle; how long it takes to come in was measured in a run of its own without messages, four times, each node at a random moment of two seconds.".into());
    }
    all.extend(super::ground::sentences(&q.host));
    if let Some(e) = bench.clock_error {
        all.push(match e.comparisons {
            0 => "TDMA: no clock heard a beacon; the guard reckons with the resolution of adapter time.".into(),
            _ => format!(
                "TDMA: the guard covers {} between the slowest and the fastest clock, measured over {} beacons at probability {}. Reading the adapter's time takes no time.",
                time(e.spread_ns as f64),
                count(e.beacons),
                q.guard_probability
            ),
        });
    }
    if q.simulated_octets() != q.payload_octets as usize {
        all.push(format!(
            "Payloads are simulated with {} octets, the fewest that the simulator tells apart.",
            q.simulated_octets()
        ));
    }
    if q.interference.is_some() {
        all.push("The foreign network sends 1500-octet frames at random and obeys carrier sense; noise comes in bursts of 250 us.".into());
    }
    all
}
