//! What a station on a campus hears: data in bursts, and the beacons of some networks. The paper says only that it was
//! much, so bursts are fitted ([`Bursts`]), and the rest is assumed here.

use sim::rng::{Cause, Stream};

/// Beacon interval of the networks around, and of ours (200 TU, published source), ns.
pub const FOREIGN_INTERVAL_NS: u64 = 102_400_000;
/// See [`FOREIGN_INTERVAL_NS`].
pub const INTERVAL_NS: u64 = 204_800_000;
/// Networks that are heard, each with a beacon in its interval. Assumed.
pub const NETWORKS: u64 = 5;

/// Octets of short and long frames, and the share of long ones in per cent: the two sizes of IP traffic. Assumed.
pub const OCTETS: [u64; 2] = [100, 1_500];
/// See [`OCTETS`].
pub const LONG_PERCENT: u64 = 40;
/// Octets of a beacon at 1 Mb/s. Assumed.
pub const BEACON_OCTETS: u64 = 150;
/// From frame to frame: SIFS, ACK, DIFS and preamble of 802.11g, ns; a backoff of 0 to 15 slots of 9 us comes on top, and
/// the octets at their rate.
const BETWEEN_NS: u64 = 10_000 + 28_000 + 28_000 + 20_000;

/// Bursts of data frames, one after the other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bursts {
    /// Time between two bursts, mean (exponential), ns.
    pub gap_ns: f64,
    /// Frames of one, mean (geometric, 1 or more).
    pub frames: f64,
    /// Rate at which they are sent, kb/s. Assumed.
    pub kbps: u64,
}

/// One frame that the card has received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Heard {
    /// When it ended, ns.
    pub at: u64,
    /// Without FCS.
    pub octets: u64,
    /// A beacon, and not data.
    pub is_beacon: bool,
}

/// All frames, one after the other: one is on the air at a time.
pub struct Air {
    dice: Stream,
    bursts: Bursts,
    /// When the next data frame may begin, and when the medium is free.
    next: u64,
    free: u64,
    beacons: Vec<u64>,
}

impl Air {
    /// Everything follows from the seed.
    pub fn new(bursts: Bursts, networks: u64, seed: u64) -> Air {
        let mut dice = Stream::new(seed, 0, Cause::Traffic);
        let beacons = (0..networks).map(|_| dice.below(FOREIGN_INTERVAL_NS)).collect();
        Air {
            next: dice.exponential(bursts.gap_ns) as u64,
            dice,
            bursts,
            free: 0,
            beacons,
        }
    }

    fn ends(&mut self, due: u64, octets: u64, kbps: u64, is_beacon: bool) -> Heard {
        let backoff = 9_000 * self.dice.below(16);
        let at = due.max(self.free) + BETWEEN_NS + backoff + octets * 8_000_000 / kbps;
        self.free = at;
        Heard {
            at,
            octets,
            is_beacon,
        }
    }
}

/// It never ends.
impl Iterator for Air {
    type Item = Heard;

    fn next(&mut self) -> Option<Heard> {
        let due = self.next.max(self.free);
        if let Some(beacon) = self.beacons.iter_mut().min()
            && *beacon <= due
        {
            let began = *beacon;
            // clocks differ by some 20 ppm: phases do not stay
            *beacon += FOREIGN_INTERVAL_NS + self.dice.below(4_000);
            return Some(self.ends(began, BEACON_OCTETS, 1_000, true));
        }
        let long = self.dice.below(100) < LONG_PERCENT;
        let heard = self.ends(due, OCTETS[usize::from(long)], self.bursts.kbps, false);
        self.next = heard.at;
        if self.dice.chance(1.0 / self.bursts.frames) {
            self.next += self.dice.exponential(self.bursts.gap_ns) as u64;
        }
        Some(heard)
    }
}
