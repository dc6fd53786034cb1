//! When something was on the air, by what the adapter or the host has seen of it.

use super::tracker::Tracker;
use super::{Kind, NetworkTime, Sync, adapter_time, on_air_local, seen};
use frame::airtime::first_bit_ns;
use frame::{Band, ppdu_us};
use radio::{AdapterId, Confirm, Duration, Indication, Instant, Radio, Stamps};

/// When something was on the air.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mac) struct OnAir {
    /// Its first bit, preamble included.
    pub(in crate::mac) begun: NetworkTime,
    /// Its last bit.
    pub(in crate::mac) ended: NetworkTime,
    /// How far off both may be, but for the error of the clock.
    pub(in crate::mac) off_by: Duration,
}

/// Adapter time has steps of 1 us, and is read twice.
const READ_TWICE: Duration = Duration::from_us(2);

impl Sync {
    /// When a received PPDU was on the air, if the adapter tells or the host knows its own latency; at the event that tells of it.
    pub(in crate::mac) fn on_air(
        &self,
        now: Instant,
        received: &Indication<'_>,
        band: Band,
        radio: &dyn Radio,
    ) -> Option<OnAir> {
        let whole = ppdu_us(received.rate, received.frame.len() as u32 + 4, band);
        let lasted = Duration::from_us(whole.into());
        let (ended, off_by) = match on_air_local(now, received, radio) {
            Some(first_bit) => {
                let begun = first_bit - Duration::from_ns(first_bit_ns(received.rate));
                (begun + lasted, READ_TWICE)
            }
            None => self.seen_end(&received.stamps, now)?,
        };
        let ended = self.to_network(ended)?;
        Some(OnAir {
            begun: NetworkTime(ended.0.saturating_sub(lasted.as_ns())),
            ended,
            off_by,
        })
    }

    /// When an exchange of its own ended, by the host's clock, and how far off that may be; at its confirm.
    pub(in crate::mac) fn exchanged(
        &self,
        now: Instant,
        confirm: &Confirm,
        adapter: AdapterId,
        radio: &dyn Radio,
    ) -> Option<(Instant, Duration)> {
        let told = adapter_time(adapter, radio).zip(confirm.tsf);
        match told.map(|(tsf_now, end)| tsf_now.minus(end)) {
            Some(ago @ 0..) => Some((now - Duration::from_us(ago as u64), READ_TWICE)),
            _ => self.seen_end(&confirm.stamps, now),
        }
    }

    /// The end of something by the host's clock, and how far off that may be.
    fn seen_end(&self, stamps: &Stamps, now: Instant) -> Option<(Instant, Duration)> {
        let (latency, spread) = match &self.kind {
            Kind::Perfect { latency_spread, .. } => (Duration::ZERO, *latency_spread),
            Kind::Tracking(Tracker { config, .. }) => (config.latency, config.latency_spread),
        };
        Some((seen(stamps, now) - latency, spread?))
    }
}
