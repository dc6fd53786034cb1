//! What every node on the way does for ATP, the sender's included: it averages how long packets take through it, and
//! raises the delay in passing packets to its own.
//!
//! A sample has two parts: Q, from the node's queue into the adapter's ring (plane t4), and T, from there to the
//! interrupt (plane t5). Failed transmissions count like others. The average is of the node, all flows together. A
//! host that stamps a batch of frames with the interrupt of the last one overestimates; so did the thesis' driver.

use super::micros;
use super::wire::{self, Header, OPTION_RAW_DELAY};
use radio::{Duration, Instant, Plane, Stamps};

/// A node's delay never counts as longer than this, in microseconds: a bound on what a faulty node can do.
pub const MOST_DELAY_US: u32 = 10_000_000;

/// The constants of a [`Hop`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HopConfig {
    /// Weight of the old value in the averages, 0 to 1 (alpha).
    pub memory: f64,
    /// What the delay is multiplied by when the channel is idle, because the packets of a flow will contend with each
    /// other on neighbouring hops (eta): 3, or 5 where paths have five hops and more.
    pub idle_multiplier: f64,
    /// How long there must have been nothing to send for the channel to count as idle. Ours: the thesis does not say.
    pub idle_after: Duration,
    /// And the share of that time for which the medium may have been busy. Ours.
    pub idle_share: f64,
}

impl Default for HopConfig {
    fn default() -> Self {
        HopConfig {
            memory: 0.75,
            idle_multiplier: 3.0,
            idle_after: Duration::from_ms(100),
            idle_share: 0.05,
        }
    }
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct Hop {
    config: HopConfig,
    queueing_us: f64,
    sending_us: f64,
    measured: bool,
    active_at: Option<Instant>,
    /// When a span of the busy counter began, and what the counter said.
    span: Option<(Instant, u64)>,
    busy_share: f64,
}

impl Hop {
    /// A node that has sent nothing yet.
    pub fn new(config: &HopConfig) -> Hop {
        Hop {
            config: *config,
            queueing_us: 0.0,
            sending_us: 0.0,
            measured: false,
            active_at: None,
            span: None,
            busy_share: 0.0,
        }
    }

    /// A packet that was queued at `queued` has gone, or failed, and the host has told so at `now`. Where it did not
    /// stamp t4 and t5, the whole time from queue to confirm counts: longer than it should by the way of the confirm.
    pub fn sent(&mut self, now: Instant, queued: Instant, stamps: &Stamps) {
        let planes = (stamps.get_host(Plane::T4), stamps.get_host(Plane::T5));
        match planes {
            (Some(t4), Some(t5)) => self.sample(now, t4.since(queued), t5.since(t4)),
            _ => self.sample(now, Duration::ZERO, now.since(queued)),
        }
    }

    /// A packet has waited and was then sent, or failed.
    pub fn sample(&mut self, now: Instant, queueing: Duration, sending: Duration) {
        let old = if self.measured { self.config.memory } else { 0.0 };
        self.queueing_us = old * self.queueing_us + (1.0 - old) * micros(queueing);
        self.sending_us = old * self.sending_us + (1.0 - old) * micros(sending);
        self.measured = true;
        self.active_at = Some(now);
    }

    /// What the adapter's counter of busy time says, for hosts that have one.
    pub fn busy(&mut self, now: Instant, busy_time_us: u64) {
        let Some((since, before)) = self.span else {
            self.span = Some((now, busy_time_us));
            return;
        };
        let length = now.since(since);
        if length >= self.config.idle_after {
            self.busy_share = busy_time_us.saturating_sub(before) as f64 / micros(length);
            self.span = Some((now, busy_time_us));
        }
    }

    /// Whether the channel counts as idle.
    pub fn is_idle(&self, now: Instant) -> bool {
        let own = self
            .active_at
            .is_some_and(|at| now.since(at) < self.config.idle_after);
        !own && self.busy_share < self.config.idle_share
    }

    /// The node's delay D = Q + T in microseconds; 0 before the first packet.
    pub fn delay_us(&self) -> u32 {
        ((self.queueing_us + self.sending_us) as u32).min(MOST_DELAY_US)
    }

    /// A packet passes on its way out: counts the hop and raises its delay, never lowers it. True if its octets
    /// have changed; a checksum around them must then be made anew.
    pub fn pass(&self, now: Instant, datagram: &mut [u8]) -> bool {
        wire::pass(datagram, |header| {
            let us = f64::from(self.delay_us()) * self.factor(now, header);
            (us as u32).min(MOST_DELAY_US)
        })
    }

    /// What this packet is told of the node's delay.
    fn factor(&self, now: Instant, header: &Header) -> f64 {
        let is_raw = header.options & OPTION_RAW_DELAY != 0;
        if !is_raw && self.is_idle(now) {
            self.config.idle_multiplier
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::wire::{Control, Header, ProtocolId};

    fn at(ms: u64) -> Instant {
        Instant::from_us(ms * 1_000)
    }

    fn through(hop: &Hop, now: Instant, options: u8, delay_us: u32) -> u32 {
        let header = Header {
            options,
            delay_us,
            ..Header::new(ProtocolId::Atp, Control::ACK)
        };
        let mut octets = header.octets();
        assert!(hop.pass(now, &mut octets));
        let (after, _) = Header::parse(&octets).unwrap();
        assert_eq!(after.hops, 1);
        after.delay_us
    }

    #[test]
    fn averages_and_raises() {
        let mut hop = Hop::new(&HopConfig::default());
        assert_eq!(
            through(&hop, at(0), 0, 9),
            9,
            "nothing is known, nothing is raised"
        );
        let mut stamps = Stamps::NONE;
        stamps.host(Plane::T4, Instant::from_us(400));
        stamps.host(Plane::T5, Instant::from_us(1_000));
        hop.sent(at(1), at(0), &stamps);
        assert_eq!(
            (hop.queueing_us, hop.sending_us),
            (400.0, 600.0),
            "the first sample counts whole"
        );
        hop.sample(at(2), Duration::from_us(800), Duration::from_us(1_400));
        assert_eq!(hop.delay_us(), 1_300, "500 + 800");
        assert_eq!(through(&hop, at(3), 0, 1_299), 1_300);
        assert_eq!(through(&hop, at(3), 0, 1_301), 1_301, "never lowered");
        let mut blind = Hop::new(&HopConfig::default());
        blind.sent(at(7), at(2), &Stamps::NONE);
        assert_eq!(blind.delay_us(), 5_000, "all there is to know");
    }

    #[test]
    fn idle_channels_multiply() {
        let mut hop = Hop::new(&HopConfig::default());
        hop.sample(at(0), Duration::ZERO, Duration::from_us(500));
        assert_eq!(through(&hop, at(99), 0, 0), 500);
        assert_eq!(through(&hop, at(100), 0, 0), 1_500);
        assert_eq!(
            through(&hop, at(100), OPTION_RAW_DELAY, 0),
            500,
            "the sender does it"
        );
        // the medium is busy with others
        hop.busy(at(100), 1_000);
        hop.busy(at(150), 9_000);
        assert!(hop.is_idle(at(150)), "too short to tell");
        hop.busy(at(200), 11_000);
        assert_eq!(through(&hop, at(200), 0, 0), 500);
        hop.busy(at(300), 15_000);
        assert!(hop.is_idle(at(300)));
    }

    #[test]
    fn a_stuck_node_is_bounded() {
        let mut hop = Hop::new(&HopConfig::default());
        hop.sample(at(0), Duration::from_ms(1 << 40), Duration::ZERO);
        assert_eq!(through(&hop, at(500), 0, 0), MOST_DELAY_US);
    }
}
