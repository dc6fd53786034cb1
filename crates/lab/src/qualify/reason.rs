//! Why a scheme holds or not, what would help, and what all numbers rest on: sentences made of the numbers.

use super::answer::Result;
use super::bench::Bench;
use super::question::{Offsets, Question, Roams, Rule, Turn};
use super::shortest::FoundBy;
use super::tally::Cause;
use super::text::{count, percent, probability, time};
use crate::stats::Verdict;

/// Why, and what would help.
pub(super) fn explain(bench: &Bench, r: &Result, interrupted: bool) -> (String, Vec<String>) {
    let q = &bench.question;
    let mut advice = Vec::new();
    if let (Some(s), Some(slots), true) = (r.shortest, r.slots, r.messages == 0) {
        let why = format!(
            "{} slots of {} need {}, more than the cycle: too many nodes for this cycle.",
            2 * q.nodes,
            time(slots.slot_ns as f64),
            time(slots.one_round_ns as f64)
        );
        advice.push(cycle_advice(s.cycle_ns, s.found_by));
        advice.push(fewer_nodes(q, s.cycle_ns));
        return (why, advice);
    }
    if r.messages == 0 {
        let why = match r.verdict {
            Verdict::Fail => "The slots do not fit the cycle.",
            _ => "Stopped before anything was run.",
        };
        return (why.into(), advice);
    }
    if let Some(j) = r.slots.and_then(|s| s.joining).filter(|j| !j.is_whole()) {
        let why = format!(
            "{} of {} nodes that asked were not given a slot: the coordinator keeps a slot for all to ask in and takes each node for its own \
             messages, their tries and their deadlines. {} among those that are in.",
            count((j.asked - j.joined).into()),
            count(j.asked.into()),
            misses(r)
        );
        advice.extend(
            r.shortest
                .filter(|s| s.cycle_ns > q.cycle_ns)
                .map(|s| cycle_advice(s.cycle_ns, s.found_by)),
        );
        advice.push("Or a schedule that is computed before, in which all have a slot (TDMA).".into());
        return (why, advice);
    }
    match r.verdict {
        Verdict::Pass => {
            let margin = r
                .shortest
                .map_or(String::new(), |s| match s.cycle_ns < q.cycle_ns {
                    true if s.cycle_ns * 20 > q.cycle_ns * 19 => format!(
                        "; a cycle of {} would still hold, which is next to no margin",
                        time(s.cycle_ns as f64)
                    ),
                    true => format!(
                        "; a cycle of {} would still hold, {:.1} times shorter",
                        time(s.cycle_ns as f64),
                        q.cycle_ns as f64 / s.cycle_ns as f64
                    ),
                    false => "; there is no margin, a slightly shorter cycle is not safe".into(),
                });
            (format!("{}{margin}.", misses(r)), advice)
        }
        Verdict::Undecided => {
            let more = match r.cycles_missing {
                Some(n) if n > 0 => format!("; about {} more cycles would decide", count(n)),
                _ => String::new(),
            };
            let stopped = if interrupted { "Stopped early: " } else { "" };
            if !interrupted {
                advice.push(match r.cycles_missing {
                    Some(n) => format!("Give --max-cycles {} for a verdict.", r.cycles + n),
                    None if r.misses == 0 => {
                        "No run is long enough to show so small a probability: give a larger --miss.".into()
                    }
                    None => "The miss probability is too close to the target for a verdict.".into(),
                });
            }
            (format!("{stopped}{}{more}.", misses(r)), advice)
        }
        Verdict::Fail => {
            let (cause, share) = main_cause(&bench.question, r);
            let why = format!(
                "{}, {} of them because {}.",
                misses(r),
                percent(share),
                because(bench, r, cause)
            );
            if let Some(s) = r.shortest.filter(|s| s.cycle_ns > q.cycle_ns) {
                advice.push(cycle_advice(s.cycle_ns, s.found_by));
            } else if r.shortest.is_none() && !interrupted && !q.quick && !r.scheme.walks() {
                advice.push("No longer cycle was found that helps, up to many times this one.".into());
            }
            advice.extend(what_helps(bench, r, cause));
            (why, advice)
        }
    }
}

fn misses(r: &Result) -> String {
    format!("{} of {} messages missed", count(r.misses), count(r.messages))
}

/// Of the frames that met nobody more than this were lost: then collisions are not what keeps the loop from working.
const DEAD_LINK: f64 = 0.5;

/// The cause to name, and how many of the misses it explains.
fn main_cause(q: &Question, r: &Result) -> (Cause, f64) {
    let c = &r.causes;
    if r.scheme.turn == Turn::Edca && needed_ns(q) > q.cycle_ns {
        // who waits for a full channel collides sooner or later, but would be late without that as well
        let n = c.no_time + c.collisions;
        return (Cause::NoTime, n as f64 / r.misses.max(1) as f64);
    }
    if r.air.lost_alone > DEAD_LINK && c.losses + c.collisions > 0 {
        // those that met another one would have been lost as well
        let n = c.losses + c.collisions;
        return (Cause::Losses, n as f64 / r.misses.max(1) as f64);
    }
    let of = c.named().map(|(_, n)| n);
    let first_most = |best: (Cause, u64), (cause, n)| if n > best.1 { (cause, n) } else { best };
    let (cause, n) = Cause::ALL
        .into_iter()
        .zip(of)
        .fold((Cause::NoTime, 0), first_most);
    (cause, n as f64 / r.misses.max(1) as f64)
}

/// The least time that the messages of a cycle take on the air, each way, ns.
fn needed_ns(q: &Question) -> u64 {
    2 * u64::from(q.nodes) * (q.exchange_ns() + u64::from(q.phy.sifs_us) * 1_000)
}

/// What to do about a cause, by scheme.
fn what_helps(bench: &Bench, r: &Result, cause: Cause) -> Vec<String> {
    let q = &bench.question;
    let longer = r.shortest.filter(|s| s.cycle_ns > q.cycle_ns);
    let admitted = r.admission.as_ref().is_some_and(|a| a.admitted);
    let say = |text: &str| vec![text.to_owned()];
    match (cause, r.scheme.turn) {
        (Cause::Host | Cause::NoTime, Turn::Tdma) if q.offsets != Offsets::None && !admitted => say(
            "The slots do not follow the offsets: release all messages at the start of the cycle (--offsets none).",
        ),
        (Cause::NoTime | Cause::NotPolled, _) => {
            longer.map_or(Vec::new(), |s| vec![fewer_nodes(q, s.cycle_ns)])
        }
        (Cause::HandOver, _) if r.scheme.roams == Roams::BreaksFirst => say(
            "A second adapter (--scheme roam+second) finds the next access point while the first one is in use.",
        ),
        (Cause::HandOver, _) => say("Let the cells overlap more, or the nodes walk more slowly."),
        (Cause::Collisions, Turn::Edca) if r.scheme.walks() => {
            say("Collisions are those of the access: ask about edca, where nodes stay where they are.")
        }
        (Cause::Collisions, Turn::Edca) => {
            let mut all = say("Let one node decide who sends: EDF and TDMA do not collide.");
            if q.offsets == Offsets::None {
                all.push("If the nodes need not release at once, ask again with --offsets even.".into());
            }
            all
        }
        (Cause::Collisions, _) => {
            say("Two turns overlapped: look at the timeline of a report (--out) to see whose.")
        }
        (Cause::Losses, _) => say("A better link or a lower rate (--rate) helps more than time."),
        (Cause::Interference, _) => say("Move to a channel that is free of others."),
        (Cause::Host, _) => {
            say("Shorten the tail of the host: see `sdmac measure --host` and a real-time kernel.")
        }
        (Cause::NotHandedUp, _) => {
            say("Look at the deliveries of a report (--out): a layer dropped them, as late or as a copy.")
        }
    }
}

fn because(bench: &Bench, r: &Result, cause: Cause) -> String {
    let q = &bench.question;
    match cause {
        Cause::NoTime => match r.scheme.turn {
            Turn::Edf => "their node was polled, but did not answer before the deadline".into(),
            Turn::Edca if needed_ns(q) > q.cycle_ns => format!(
                "the cycle is too short for their frames alone: {} exchanges of {} take {}, without backoff and collisions",
                2 * q.nodes,
                time(q.exchange_ns() as f64),
                time(needed_ns(q) as f64)
            ),
            Turn::Edca => format!(
                "the cycle was full: the channel was taken for {} of the time, backoff not counted, and {} frames waited in one queue",
                percent(r.air.data + r.air.ack + r.air.overhead + r.air.foreign),
                q.nodes
            ),
            Turn::Tbmac => format!(
                "each host has one slot in a round of {}, and the controller {} messages",
                time(bench.rounds(r.scheme).length().as_ns() as f64),
                q.nodes
            ),
            Turn::Slotted => "their slots had passed".into(),
            Turn::Tdma => format!(
                "their slots had passed: the release came too late, or the retries found no slot{}",
                waits_for_eifs(q, r)
            ),
        },
        Cause::NotPolled => format!(
            "the controller had not polled their node before the deadline: {} exchanges of {} take {} on average, without a retry",
            q.nodes,
            time(bench.facts.exchange.mean_ns),
            time(f64::from(q.nodes) * bench.facts.exchange.mean_ns)
        ),
        Cause::Collisions => {
            let release = match r.scheme.turn {
                Turn::Edca => format!(" ({})", q.offsets.words()),
                _ => String::new(),
            };
            format!(
                "frames collided{release}, and {} of the frames met another one",
                percent(r.air.collided_frames)
            )
        }
        Cause::Losses if r.air.lost_alone > DEAD_LINK => format!(
            "the link fails: {} of the frames that met no other one were lost",
            percent(r.air.lost_alone)
        ),
        Cause::Losses => {
            let repeats = match (r.air.repeats_collided > 0.0, r.scheme.turn) {
                (true, Turn::Tdma) => format!(
                    "; {} of their second chances, in slots that are shared, met another one",
                    percent(r.air.repeats_collided)
                ),
                (true, _) => format!(
                    "; {} of the repetitions met another frame",
                    percent(r.air.repeats_collided)
                ),
                (false, _) => ", and there was no time left to repeat it with success".into(),
            };
            format!("their first frame was lost on the link{repeats}")
        }
        Cause::Interference => {
            let what = match r.scheme.turn {
                Turn::Edca | Turn::Slotted => "",
                Turn::Tbmac => "; frames waited for them or were hit by them",
                Turn::Edf => "; polls and answers waited for them or were hit by them",
                Turn::Tdma => {
                    "; frames waited for them until their slot was over, or into the slot of another, or were hit by them"
                }
            };
            format!(
                "others were on the air, {} of the time{what}",
                percent(r.air.foreign)
            )
        }
        Cause::Host => "the frame arrived in time, but the host handed it up too late".into(),
        Cause::NotHandedUp => {
            "the frame arrived in time, but a layer of the protocol never handed it up".into()
        }
        Cause::HandOver => "their node was being handed over".into(),
    }
}

/// What makes more frames late for their slots than the guard leaves out, where frames get lost: slots have room for EIFS behind data, and for
/// none behind an ACK.
fn waits_for_eifs(q: &Question, r: &Result) -> &'static str {
    let late = r.slots.and_then(|s| s.late_share).unwrap_or(0.0);
    let often = late > 2.0 * (1.0 - q.guard_probability) && r.air.lost_alone > 0.0;
    match often && r.scheme.left_on.carrier_sense {
        true => "; who cannot decode an ACK, or a foreign frame, waits for EIFS into the next slot",
        false => "",
    }
}

fn cycle_advice(cycle_ns: u64, found_by: FoundBy) -> String {
    let how = match found_by {
        FoundBy::Analysis => "computed, and confirmed by a short run",
        FoundBy::Growth | FoundBy::Bisection => "found by short runs",
    };
    format!("A cycle of {} would hold ({how}).", time(cycle_ns as f64))
}

fn fewer_nodes(q: &Question, cycle_ns: u64) -> String {
    let fit = (f64::from(q.nodes) * q.cycle_ns as f64 / cycle_ns as f64) as u32;
    match fit {
        0 => "Not even one node fits this cycle.".into(),
        n => format!("About {n} nodes per channel would fit this cycle."),
    }
}

/// Which scheme to take: the first that passes in the order of what it asks of the hardware.
pub(super) fn recommend(q: &Question, all: &[Result]) -> String {
    let answer = of_all(q, all);
    match super::ground::emulated(&q.host) {
        Some(sentence) => format!("{answer} {sentence}"),
        None => answer,
    }
}

/// The same, if the times of the hosts are to be believed.
fn of_all(q: &Question, all: &[Result]) -> String {
    let target = format!(
        "{} at a cycle of {}",
        probability(q.miss),
        time(q.cycle_ns as f64)
    );
    let passed: Vec<_> = all.iter().filter(|r| r.verdict == Verdict::Pass).collect();
    let margin = |r: &Result| r.shortest.map_or(1.0, |s| q.cycle_ns as f64 / s.cycle_ns as f64);
    if let Some(first) = passed.first() {
        let widest = passed
            .iter()
            .copied()
            .max_by(|a, b| margin(a).total_cmp(&margin(b)));
        let plain = match first.scheme.turn {
            Turn::Edca => "plain Wi-Fi with the voice queue is enough",
            Turn::Edf => "let the controller poll (EDF)",
            Turn::Tdma => "give every message a slot (TDMA)",
            Turn::Tbmac => "let the nodes agree on slots (TBMAC)",
            Turn::Slotted => "a slot of its own for each node is enough",
        };
        let over = match (first.scheme.is_redundant(), first.scheme.rule) {
            _ if first.scheme.roams == Roams::MakesFirst => {
                ", also for nodes that walk between two access points with two adapters"
            }
            _ if first.scheme.walks() => ", also for nodes that walk between two access points",
            (true, _) => " over two adapters",
            (_, Rule::Fixed) => "",
            _ => " with rates that follow the link",
        };
        let wider = match widest {
            Some(w) if w.scheme != first.scheme && margin(w) > margin(first) * 1.05 => {
                format!("; {} has more margin", w.scheme.word())
            }
            _ => String::new(),
        };
        return format!("For {target}, {plain}{over}{wider}.");
    }
    let best = all
        .iter()
        .filter_map(|r| Some((r.scheme, r.shortest?.cycle_ns)))
        .min_by_key(|(_, c)| *c);
    match best {
        Some((scheme, cycle_ns)) if all.iter().all(|r| r.verdict == Verdict::Fail) => format!(
            "None of these holds {target}: {} would, from a cycle of {} on.",
            scheme.word(),
            time(cycle_ns as f64)
        ),
        _ if all.iter().all(|r| r.verdict == Verdict::Fail && r.scheme.walks()) => {
            format!("None of these holds {target}.")
        }
        _ if all.iter().all(|r| r.verdict == Verdict::Fail) => {
            format!("None of these holds {target}, and no longer cycle was found that helps.")
        }
        _ => format!("No verdict for {target}: more cycles are needed."),
    }
}
