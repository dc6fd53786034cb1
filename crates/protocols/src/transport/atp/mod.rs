//! ATP, the ad hoc transport protocol: the nodes on the way measure how long a packet takes through them, the
//! longest of these delays travels with the packets, the receiver averages it and feeds it back once per epoch, and
//! the sender spaces its packets by it (Sundaresan et al. 2003; the thesis that this project follows tried it on a
//! testbed and made the variants [`Config::aggressive`] and [`Config::adaptive`] of it).
//!
//! | module | what it is |
//! |---|---|
//! | [`connection`] | one end of a connection: both directions, from call to close |
//! | `pace` | the instants at which packets go, by a timer that may be late |
//! | [`rate`] | the sender's rate: quick-start, increase, decrease, maintain |
//! | [`macroflow`] | what flows of one node to the same other one share |
//! | [`meter`] | the receiver's average, its epochs, and what makes it speak earlier |
//! | [`size`] | how long packets may be, where the path drops what is too long |
//!
//! Reliability is the receiver's matter: its feedback names what is missing, and the sender repeats that before it
//! sends anything new. The book's page on ATP lists what was decided where the thesis is silent.

pub mod connection;
pub mod macroflow;
pub mod meter;
mod pace;
pub mod rate;
pub mod size;

pub use connection::{Connection, Counters};
pub use macroflow::Macroflow;

use super::wire::MAX_DATA_OCTETS;
use radio::Duration;

/// The constants of a connection. What is read from the other end (its epoch, whether it wants delays raw) need not
/// be the same on both sides.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// E: from one feedback to the next; 1 ms to 10 s. Told to the receiver in the call.
    pub epoch: Duration,
    /// Weight of the old value in the receiver's average, 0 to 1 (beta). None where the sender's epoch adjusts itself.
    pub memory: f64,
    /// How many times the rate must be exceeded by what is fed back before it is raised (phi).
    pub threshold: f64,
    /// Share of the difference by which the rate is raised, 0 to 1 (kappa). Of a sender whose epoch adjusts itself, over one hop; over more it
    /// is less.
    pub gain: f64,
    /// Share of the difference by which the rate is lowered, 0 to 1; 1 in the thesis.
    pub fall: f64,
    /// What a missed feedback multiplies the rate by; 1 for no penalty. Where the epoch adjusts itself, at least 0.8 if many packets get lost.
    pub miss_penalty: f64,
    /// Tell the receiver the spacing, so that it can speak early, and multiply the delay of quick-start by
    /// `3 + 0.5 (h - 1)` for h hops instead of letting idle hops multiply it.
    pub adaptive: bool,
    /// The epoch lasts as long as [`meter::EPOCH_PACKETS`] packets at the sender's spacing, from [`meter::LEAST_EPOCH`] to
    /// [`meter::MOST_EPOCH`], whatever `epoch` says; told to the receiver by an epoch of 0 in the call. The rate aims at
    /// [`meter::PACKETS`] in the slowest node. Needs `adaptive`.
    pub adjusting: bool,
    /// Octets of data in a packet, 1 to [`MAX_DATA_OCTETS`].
    pub packet_octets: usize,
    /// Send shorter packets where the path drops those, and give up where it drops all ([`size`]). Without it, as in the
    /// thesis, they have one length.
    pub fitting: bool,
    /// Spacing never gets below this.
    pub least_spacing: Duration,
    /// Spacing never gets above this.
    pub most_spacing: Duration,
    /// Spacing if no hop on the way knows its delay.
    pub unmeasured_spacing: Duration,
    /// Mean wait for the answer to a call; at most `call_wait`. Each further one is a sixteenth longer, up to `call_wait`. What is
    /// waited is 3/4 to 5/4 of it, drawn from `initial_number`, so that callers that began together do not stay together.
    pub first_call_wait: Duration,
    /// The longest mean wait for the answer to a call.
    pub call_wait: Duration,
    /// Calls before giving up.
    pub calls: u8,
    /// How long the other end may be silent. After half of that it is asked for a sign of life.
    pub patience: Duration,
    /// How long an ended connection repeats its last acknowledgement: longer than it takes to miss three feedbacks.
    pub linger: Duration,
    /// Number of the call on the wire. Should be drawn at random, so that strangers cannot guess it.
    pub initial_number: u32,
}

impl Config {
    /// ATP as its authors set it (thesis, Table 2.1).
    pub const fn standard() -> Config {
        Config {
            epoch: Duration::from_ms(1_000),
            memory: 0.85,
            threshold: 1.1,
            gain: 0.2,
            fall: 1.0,
            miss_penalty: 0.5,
            adaptive: false,
            adjusting: false,
            packet_octets: MAX_DATA_OCTETS,
            fitting: true,
            least_spacing: Duration::from_us(200),
            most_spacing: Duration::from_ms(1_000),
            unmeasured_spacing: Duration::from_ms(10),
            first_call_wait: Duration::from_ms(1_000),
            call_wait: Duration::from_ms(1_000),
            calls: 64,
            patience: Duration::from_ms(60_000),
            linger: Duration::from_ms(5_000),
            initial_number: 0,
        }
    }

    /// Short epochs and a high gain (thesis, section 5.1.2).
    pub const fn aggressive() -> Config {
        Config {
            epoch: Duration::from_ms(40),
            gain: 0.5,
            ..Config::standard()
        }
    }

    /// The aggressive constants, feedback on three events, and the number of hops in quick-start (thesis, section
    /// 5.1.3).
    pub const fn adaptive() -> Config {
        Config {
            adaptive: true,
            ..Config::aggressive()
        }
    }

    /// Ours: adaptive ATP whose epoch adjusts itself, which keeps [`meter::PACKETS`] in the slowest node, and whose rate goes up in small
    /// steps: one that overshoots fills a queue, in which feedback is late. It goes down gently, too, because a delay that its own queue has
    /// caused is gone as soon as it slows down. Where packets get lost, a missed feedback costs less. It calls as
    /// often as others probe: over six lossy hops few calls and answers get through, and who waits a second for each begins
    /// long after the others. The calls last as long as those of the others.
    pub const fn sdmac() -> Config {
        Config {
            adjusting: true,
            first_call_wait: Duration::from_ms(60),
            calls: 96,
            gain: 0.1,
            fall: 0.3,
            miss_penalty: 0.6,
            ..Config::adaptive()
        }
    }

    /// What a call says of the epoch, in microseconds.
    fn told_epoch_us(&self) -> u32 {
        if self.adjusting {
            0
        } else {
            self.epoch.as_us() as u32
        }
    }

    /// With every field in its range.
    fn bounded(mut self) -> Config {
        let share = |x: f64| if x.is_nan() { 0.0 } else { x.clamp(0.0, 1.0) };
        self.epoch = self.epoch.clamp(Duration::from_ms(1), Duration::from_ms(10_000));
        self.memory = share(self.memory);
        self.gain = share(self.gain);
        self.fall = share(self.fall);
        self.miss_penalty = share(self.miss_penalty);
        self.threshold = self.threshold.max(1.0);
        self.packet_octets = self.packet_octets.clamp(1, MAX_DATA_OCTETS);
        self.least_spacing = self.least_spacing.max(Duration::from_us(1));
        self.most_spacing = self.most_spacing.max(self.least_spacing);
        self.call_wait = self.call_wait.max(Duration::from_ms(1));
        self.first_call_wait = self.first_call_wait.clamp(Duration::from_ms(1), self.call_wait);
        self.calls = self.calls.max(1);
        self.patience = self.patience.max(Duration::from_ms(1));
        self
    }
}

/// The idle multiplier of adaptive ATP for a path of `hops` hops (thesis, section 5.1.3).
pub fn idle_multiplier(hops: u8) -> f64 {
    3.0 + 0.5 * f64::from(hops.saturating_sub(1))
}

/// What the gain of a sender whose epoch adjusts itself is multiplied by, over so many hops: 1 over one, 0.6 over three, 0.375 over six. The further
/// feedback comes the older it is, and the more of it is lost, each time for a part of the rate. Who makes up for that in great steps goes past
/// what the path carries.
fn gain_share(hops: u8) -> f64 {
    3.0 / (2.0 + f64::from(hops.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 2.1 and section 5.1 of the thesis.
    #[test]
    fn constants() {
        let s = Config::standard();
        assert_eq!(
            (s.epoch, s.memory, s.threshold, s.gain),
            (Duration::from_ms(1_000), 0.85, 1.1, 0.2)
        );
        let a = Config::aggressive();
        assert_eq!((a.epoch, a.gain, a.adaptive), (Duration::from_ms(40), 0.5, false));
        assert_eq!(Config::adaptive(), Config { adaptive: true, ..a });
        assert_eq!(
            [0, 1, 2, 5, 6].map(idle_multiplier),
            [3.0, 3.0, 3.5, 5.0, 5.5],
            "5 for paths of 5 hops, as the authors of ATP say"
        );
    }
}
