//! What is said when a node has run.

use std::fmt::Write as _;

use lab::deploy::Deployed;
use linux::host::EMULATED;

/// In lines, for people.
pub fn summary(d: &Deployed) -> String {
    let r = &d.requests;
    let mut t = format!(
        "{} ran {:.3} s: {} frames sent, {} acked, {} not acked, {} refused, {} aborted, {} expired, {} unknown; {} received",
        d.node,
        d.ran_ns as f64 / 1e9,
        r.sent,
        r.acked,
        r.not_acked,
        r.refused,
        r.aborted,
        r.expired,
        r.unknown,
        r.received
    );
    for (reason, count) in r.refusals.iter() {
        let _ = write!(t, "\nrefused, {reason:?}: {count}");
    }
    for (flow, count) in &d.submitted {
        let _ = write!(t, "\nflow {flow}: {count} handed to the protocol");
    }
    for (flow, count) in &d.delivered {
        let _ = write!(t, "\nflow {flow}: {count} delivered here");
    }
    if let Some(s) = &d.slots {
        let _ = write!(
            t,
            "\nslots: {} used, {} failed, {} of them late, {} overruns, {} expired, {} without a slot",
            s.released, s.failed, s.late, s.overruns, s.expired, s.no_slot
        );
    }
    if let Some(c) = &d.clock {
        let what = if c.own {
            "looks at its adapter's time"
        } else {
            "beacons"
        };
        let _ = write!(
            t,
            "\nclock: {} {what} taken, {} refused, started again {} times",
            c.samples, c.refused, c.restarts
        );
    }
    if let Some(c) = &d.cell {
        let slot = c
            .slot
            .map_or_else(|| "none at the end".to_owned(), |s| s.to_string());
        let _ = write!(
            t,
            "\nslot: {slot}; asked {} times, came to one {}, gave one up {}; {} used, {} of them late, {} overruns, {} expired",
            c.asked, c.granted, c.lost, c.released, c.late, c.overruns, c.expired
        );
    }
    if let Some(r) = &d.roamed {
        let _ = write!(
            t,
            "\nroaming: {} hand-overs; {} frames missed in them, {} else, {} went again on the other link; longest gap {:.1} ms",
            r.handovers,
            r.missed_in_handover,
            r.missed_else,
            r.second_chances,
            r.longest_gap_ns as f64 / 1e6
        );
        if r.copies > 0 || r.repeated > 0 {
            let _ = write!(
                t,
                "\ncopies: {} frames went on both links, {} of them were acknowledged on both; {} that came down had come before",
                r.copies, r.duplicates, r.repeated
            );
        }
    }
    if let Some(us) = &d.measured.latency_us {
        let _ = write!(
            t,
            "\nlatency of what arrived (from this computer): median {:.1}, p99 {:.1}, max {:.1} us",
            us.p50, us.p99, us.max
        );
    }
    if let Some(us) = &d.confirm_us {
        let _ = write!(
            t,
            "\nrequest to confirm: min {:.1}, median {:.1}, p99 {:.1}, max {:.1} us; {} with all nine planes",
            us.min, us.p50, us.p99, us.max, d.all_planes
        );
    }
    if d.emulated {
        let _ = write!(t, "\nnote: {EMULATED}");
    }
    if r.more_tries_than_asked > 0 {
        let _ = write!(
            t,
            "\nnote: {} frames were sent more often than asked, see `sdmac certify`",
            r.more_tries_than_asked
        );
    }
    if d.attributes_refused > 0 {
        let _ = write!(
            t,
            "\nnote: {} settings that the protocol asked for cannot be made on this radio (channel access, for example)",
            d.attributes_refused
        );
    }
    t
}
