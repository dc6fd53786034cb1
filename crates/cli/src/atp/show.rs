//! How transfers are shown: to people while they go on and when they have ended, and to machines.

use serde_json::json;
use transfer::Progress;

use crate::ui::Ui;

/// One sentence on a transfer that went well.
pub(super) fn summary(what: &str, name: &str, p: &Progress, seconds: f64) -> String {
    let new = p.done - p.resumed.min(p.done);
    let resumed = match p.resumed {
        0 => String::new(),
        n => format!(", {} of them were there before", octets(n)),
    };
    format!(
        "{what} {name}: {}{resumed}, {:.2} s, {:.2} Mb/s, {} packets repeated",
        octets(p.done),
        seconds,
        new as f64 * 8.0 / 1e6 / seconds.max(1e-6),
        p.resent
    )
}

/// A transfer for machines.
pub(super) fn document(name: &str, p: &Progress, seconds: f64, failed: Option<&str>) -> serde_json::Value {
    json!({
        "name": name,
        "octets": p.done,
        "resumed_octets": p.resumed,
        "seconds": seconds,
        "delay_us": p.delay_us,
        "spacing_us": p.spacing_us,
        "packet_octets": p.packet_octets,
        "resent": p.resent,
        "failed": failed,
    })
}

/// Octets as people read them.
fn octets(n: u64) -> String {
    match n {
        0..10_000 => format!("{n} octets"),
        10_000..10_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.2} GB", n as f64 / 1e9),
    }
}

/// The live line: how much, how fast, D and the rate of the transport.
pub(super) struct Line {
    bar: crate::ui::Live,
}

impl Line {
    pub fn new(ui: &Ui) -> Line {
        Line { bar: ui.live() }
    }

    pub fn show(&self, name: &str, seconds: f64, p: &Progress) {
        let new = p.done - p.resumed.min(p.done);
        let of = p
            .total
            .map_or(String::new(), |total| format!(" of {}", octets(total)));
        let d = match (p.delay_us, p.spacing_us) {
            (0, 0) => String::new(),
            (0, s) => format!(", a packet of {} every {s} us", p.packet_octets),
            (d, s) => format!(", D {d} us, a packet of {} every {s} us", p.packet_octets),
        };
        self.bar.set(&format!(
            "{name}: {}{of}, {:.2} Mb/s{d}, {} repeated",
            octets(p.done),
            new as f64 * 8.0 / 1e6 / seconds.max(1e-3),
            p.resent
        ));
    }

    pub fn clear(&self) {
        self.bar.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(
            [9_999, 10_000, 10_000_000, 10_000_000_000].map(octets),
            ["9999 octets", "10.0 kB", "10.0 MB", "10.00 GB"]
        );
    }
}
