//! The answer for the terminal: read in ten seconds, verdicts first.

use super::answer::{Answer, Latency};
use super::joining::Joining;
use super::question::Interference;
use super::roaming::HandOvers;
use super::text::{count, percent, probability, time};

/// The whole text, without a line break at its end. `width` is that of the terminal in columns.
pub fn table(a: &Answer, width: usize) -> String {
    let q = &a.question;
    let mut out = format!(
        "{} node{}, cycle {}, {} octets each way, 802.11{} at {}, host {}: at most {} missed?\n",
        q.nodes,
        if q.nodes == 1 { "" } else { "s" },
        time(q.cycle_ns as f64),
        q.payload_octets,
        q.phy,
        q.rate,
        q.host,
        probability(q.miss)
    );
    if q.interference != Interference::default() {
        let i = &q.interference;
        let (load, noise) = (percent(i.load), percent(i.noise));
        out += &format!(
            "with foreign load {load}, {} probe requests/s, noise {noise}\n",
            i.probes_per_s
        );
    }
    out += &format!("{}, deadline one cycle later\n\n", q.offsets.words());
    out += &rows(a);
    out.push('\n');
    out += &tries(a);
    out.push('\n');
    for r in &a.schemes {
        let mut text = format!("{:<5} {}", r.scheme.word(), r.why);
        if let Some(s) = &r.slots {
            text += &format!(
                " Slots of {} with a guard of {}: {} for the jitter of the release and {} for the clocks, measured over {} beacons, both at p{}.",
                time(s.slot_ns as f64),
                time(s.guard_ns as f64),
                time((s.release_high_ns - s.release_min_ns) as f64),
                time(s.sync_error_ns as f64),
                count(s.sync_beacons),
                (s.quantile * 1e11).round() / 1e9,
            );
            let told_ns = s.release_high_ns - s.release_min_ns + s.sync_error_ns;
            if s.guard_ns > told_ns {
                let backoff = time((s.guard_ns - told_ns) as f64);
                text += &format!(" The other {backoff} of the guard are for the backoff.");
            }
            if let Some(late) = s.late_share {
                text += &format!(" Too late for their slot: {} of the frames.", probability(late));
            }
        }
        if let Some(j) = r.slots.as_ref().and_then(|s| s.joining) {
            text += &format!(" {}", joining(&j));
        }
        for sentence in r.overlay.sentences() {
            text += &format!(" {sentence}");
        }
        if let Some(h) = &r.hand_overs {
            text += &format!(" {}", hand_overs(h, r.misses));
        }
        if let Some(admission) = &r.admission {
            text += &format!(" {}", admission.sentence());
        }
        for advice in &r.advice {
            text += &format!(" {advice}");
        }
        out += &wrap(&text, width, 6);
    }
    out.push('\n');
    if a.interrupted {
        out += "Stopped early: what is above is true for the cycles that were run.\n";
    }
    out += &wrap(&format!("=> {}", a.recommendation), width, 3);
    out.pop();
    out
}

/// What hand-overs cost, in sentences.
pub(super) fn hand_overs(h: &HandOvers, misses: u64) -> String {
    let (Some(p50), Some(max)) = (h.p50_ns, h.max_ns) else {
        return "No node was handed over.".into();
    };
    let cost = match max {
        0 => "no message missed in any of them".into(),
        _ => format!(
            "in {} of them nothing missed, and in the others {} message{}; a node was cut off for {} at the median, {} at most",
            count(h.unharmed),
            count(h.misses),
            if h.misses == 1 { "" } else { "s" },
            time(p50 as f64),
            time(max as f64)
        ),
    };
    format!(
        "{} hand-overs: {cost}; {} other messages missed.",
        count(h.count),
        count(misses - h.misses)
    )
}

/// What joining costs, in sentences.
pub(super) fn joining(j: &Joining) -> String {
    let cost = format!(
        "Joining costs {} of each cycle for a slot to ask in, and {} more for a beacon with the list of members.",
        time(j.ask_ns as f64),
        time(j.list_ns as f64)
    );
    match (j.p50_ns, j.max_ns) {
        (Some(p50), Some(max)) => format!(
            "{cost} {} of {} nodes that asked came in, half of them within {}, the last after {}.",
            j.joined,
            j.asked,
            time(p50 as f64),
            time(max as f64)
        ),
        _ => format!("{cost} None of {} nodes that asked came in.", j.asked),
    }
}

fn rows(a: &Answer) -> String {
    let header = [
        "",
        "verdict",
        "missed",
        "95 % interval",
        "cycles",
        "p50",
        "p99",
        "p99.9",
        "p99.99",
        "max",
        "air",
        "shortest",
    ];
    let mut rows = vec![header.map(String::from)];
    for r in &a.schemes {
        let interval = r.interval.map_or("not run".into(), |i| {
            format!("{} to {}", probability(i.low), probability(i.high))
        });
        let worst = |f: fn(&Latency) -> Option<u64>| match (f(&r.down), f(&r.up)) {
            (Some(down), Some(up)) => time(down.max(up) as f64),
            _ if r.messages == 0 => "-".into(),
            _ => "lost".into(),
        };
        rows.push([
            r.scheme.word(),
            r.verdict.word().into(),
            r.miss_probability.map_or("-".into(), probability),
            interval,
            count(r.cycles),
            worst(|l| l.p50_ns),
            worst(|l| l.p99_ns),
            worst(|l| l.p99_9_ns),
            worst(|l| l.p99_99_ns),
            worst(|l| l.max_ns),
            percent(r.air.data + r.air.ack + r.air.overhead),
            r.shortest.map_or("-".into(), |s| time(s.cycle_ns as f64)),
        ]);
    }
    columns(&rows)
}

/// Whether a try asked for no ACK: otherwise there is nothing to tell of those.
pub(super) fn has_unasked(a: &Answer) -> bool {
    a.schemes.iter().any(|r| r.tries.unasked > 0)
}

/// What became of the tries on the air.
fn tries(a: &Answer) -> String {
    let header = [
        "",
        "tries",
        "acked (A)",
        "data lost (L_D)",
        "ACK lost (L_A)",
        "arrived, no ACK asked for",
    ];
    let shown = header.len() - usize::from(!has_unasked(a));
    let mut rows = vec![
        header[..shown]
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    ];
    for r in a.schemes.iter().filter(|r| r.messages > 0) {
        let share = |n: u64| match r.tries.count() {
            0 => "-".into(),
            all => probability(n as f64 / all as f64),
        };
        let cells = [
            r.scheme.word(),
            count(r.tries.count()),
            share(r.tries.acked),
            share(r.tries.data_lost),
            share(r.tries.ack_lost),
            share(r.tries.unasked),
        ];
        rows.push(cells.into_iter().take(shown).collect());
    }
    columns(&rows)
}

/// Cells side by side, each column as wide as it must be.
fn columns(rows: &[impl AsRef<[String]>]) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(row.as_ref().len().max(widths.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row.as_ref()) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut out = String::new();
    for row in rows {
        let cells = row.as_ref().iter().zip(&widths);
        let cells: Vec<_> = cells.map(|(c, w)| format!("{c:<w$}")).collect();
        out += cells.join("  ").trim_end();
        out.push('\n');
    }
    out
}

/// Breaks a text at spaces; lines after the first are indented.
fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width.max(40) {
            out.push('\n');
            out += &" ".repeat(indent);
            used = indent;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out += word;
        used += length;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_to_the_width() {
        let text = wrap(&"word ".repeat(60), 50, 6);
        assert!(text.lines().all(|l| l.chars().count() <= 50));
        assert!(text.lines().skip(1).all(|l| l.starts_with("      word")));
    }
}
