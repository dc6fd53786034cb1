//! How well a sender keeps the spacing that it was asked for.

use radio::Instant;

use crate::atp::atp;

/// A spacing, and how much is moved with it.
#[derive(Clone, Copy)]
pub struct Asked {
    pub spacing_us: u64,
    pub octets: usize,
}

/// As many packets as the processor takes: spacing is no limit.
pub const NONE: Asked = Asked {
    spacing_us: 1,
    octets: 256 << 20,
};
/// 100,000 packets/s.
pub const FAST: Asked = Asked {
    spacing_us: 10,
    octets: 256 << 20,
};
/// 10,000 packets/s, for about three seconds.
pub const ASKED: Asked = Asked {
    spacing_us: 100,
    octets: 30_000 * 1_448,
};

/// Longer times between two packets, in spacings, are pauses: this process did not run.
const PAUSE: f64 = 40.0;

impl Asked {
    /// The mean rate of what happened at these instants, two at least, over the one that was asked.
    pub fn reached(self, at: &[Instant]) -> f64 {
        let took = at
            .last()
            .zip(at.first())
            .map_or(0, |(last, first)| last.since(*first).as_ns());
        (at.len() - 1) as f64 * self.spacing_us as f64 * 1e3 / took as f64
    }

    /// Prints the times between them, in spacings.
    fn show(self, what: &str, at: &[Instant]) {
        let spacing_ns = self.spacing_us as f64 * 1e3;
        let mut gaps: Vec<f64> = at
            .windows(2)
            .map(|w| w[1].since(w[0]).as_ns() as f64 / spacing_ns)
            .collect();
        gaps.sort_unstable_by(f64::total_cmp);
        let share = |share: f64| gaps[((gaps.len() - 1) as f64 * share) as usize];
        let off = gaps.iter().map(|gap| (gap - 1.0).abs()).sum::<f64>() / gaps.len() as f64;
        let paused = gaps.iter().filter(|gap| **gap > PAUSE).sum::<f64>() / gaps.iter().sum::<f64>();
        print!("  {what:8} {:7.3} {paused:6.3} {off:6.2}", self.reached(at));
        for part in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            print!(" {:6.2}", share(part));
        }
        println!();
    }
}

/// One run at 10,000 packets/s: at the sender, and where they arrive.
pub fn pacing() {
    let seen = atp(ASKED.spacing_us, ASKED.octets, None);
    println!(
        "\n{} packets at 10,000/s: rate reached over asked, share of the time that went by in pauses of more than {PAUSE} spacings, and time \
         between two in spacings (`off`: mean distance from 1):",
        seen.sent.len()
    );
    println!(
        "  {:8} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "", "reached", "pauses", "off", "min", "1 %", "median", "90 %", "99 %", "99.9 %", "max"
    );
    ASKED.show("sent", &seen.sent);
    ASKED.show("arrived", &seen.came);
}
