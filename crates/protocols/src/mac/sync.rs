//! The common time base: the TSF of the node that sends the beacons, in nanoseconds, called *network time* here.
//!
//! Every node tracks how its host clock runs against it. Each beacon is one sample; a line through the last
//! [`WINDOW`] of them gives offset and rate, with outliers left out. The sender of the beacons tracks its own TSF
//! in the same way. Samples come from the best source that the host has:
//!
//! 1. the adapter's time of the beacon, and the adapter's time now: no latency of the host is in it;
//! 2. the host's first stamp of it, less the latency that the configuration names: of the interrupt (t5), or of
//!    its way up (t6 to t8);
//! 3. the time of the event, less the same.
//!
//! Propagation (3.3 ns per metre) is not compensated.
//!
//! With two adapters ([`SyncConfig::second`]) there are two TSFs at each end. Network time is that of the first adapter of the
//! node that sends the beacons, and its beacons say how far that is ahead of either TSF ([`Shifts`]). Each node tracks
//! both. If one of them is silent for an eighth of the holdover, it goes by the other; at the node that sends the
//! beacons network time then goes on without a step and at the pace that it had.

mod fit;
mod on_air;
pub mod reference;
mod shifts;
mod tracker;

use fit::Fit;
use frame::airtime::{first_bit_ns, octets_ns};
use frame::{Band, ppdu_us};
use radio::{
    AdapterId, Attribute, AttributeName, Beacon, Confirm, Duration, Indication, Instant, Plane, Radio,
    Stamps, Tsf,
};

pub use shifts::{SHIFTS_OCTETS, Shifts};
use tracker::Tracker;

/// Samples that the line goes through.
pub const WINDOW: usize = 8;

/// A point in network time, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct NetworkTime(pub u64);

/// How a clock follows the beacons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SyncConfig {
    /// Band, for the airtime of beacons.
    pub band: Band,
    /// Which adapter's beacons count.
    pub adapter: AdapterId,
    /// A second adapter, if the nodes have two on the same two channels, in the same order: its beacons count when the first
    /// one's stay away.
    pub second: Option<AdapterId>,
    /// Latency from the end of a frame to its first stamp of t5 to t8 (or to the event, if there is none): the usual or the
    /// smallest value. Only hosts whose adapter time cannot be read need it.
    pub latency: Duration,
    /// How far from `latency` that may be. Where the adapter's time cannot be read, it decides what can be said of when a frame was on
    /// the air; `None`: nothing.
    pub latency_spread: Option<Duration>,
    /// Samples before the clock is trusted, at least 1; they all have to be within a hundred times `jump` of one line. Until they are within
    /// one, the clock goes by the last so many, and refuses none.
    pub min_samples: usize,
    /// How long the clock is trusted after the last sample.
    pub holdover: Duration,
    /// A sample that is further off than this is not taken. Three in a row mean that the TSF has jumped, and the
    /// clock starts again.
    pub jump: Duration,
}

impl SyncConfig {
    /// Trusted after 3 samples and for `holdover`; jumps are 100 us.
    pub const fn new(band: Band, holdover: Duration) -> SyncConfig {
        SyncConfig {
            band,
            adapter: AdapterId::FIRST,
            second: None,
            latency: Duration::ZERO,
            latency_spread: None,
            min_samples: 3,
            holdover,
            jump: Duration::from_us(100),
        }
    }

    /// For the node that sends the beacons: its own adapter time is trusted from the first look on.
    pub const fn own(band: Band, holdover: Duration) -> SyncConfig {
        SyncConfig {
            min_samples: 1,
            ..SyncConfig::new(band, holdover)
        }
    }
}

/// What a clock has counted since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SyncCounters {
    /// Samples taken.
    pub samples: u64,
    /// Samples refused because they were further off than a jump; before the clock is trusted, than a hundred.
    pub refused: u64,
    /// Times that it started again after a jump of the TSF.
    pub restarts: u64,
    /// Times that it turned from one adapter to the other.
    pub switched: u64,
    /// Samples after which the clock was to be trusted.
    pub trusted: u64,
}

/// A host clock that knows network time.
#[derive(Clone, Debug)]
pub struct Sync {
    kind: Kind,
    counters: SyncCounters,
}

// without an allocator there is nothing to box the larger one in
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug)]
enum Kind {
    Perfect {
        offset_ns: i64,
        /// As that of [`SyncConfig`].
        latency_spread: Option<Duration>,
    },
    Tracking(Tracker),
}

impl Sync {
    /// For experiments with ideal clocks: network time is the host clock plus `offset_ns`, always.
    pub const fn perfect(offset_ns: i64) -> Sync {
        Sync {
            kind: Kind::Perfect {
                offset_ns,
                latency_spread: None,
            },
            counters: SyncCounters {
                samples: 0,
                refused: 0,
                restarts: 0,
                switched: 0,
                trusted: 0,
            },
        }
    }

    /// An ideal clock at a host that has seen what it hears and sends within this of its end: [`SyncConfig::latency_spread`] with a latency of zero.
    #[must_use]
    pub const fn seeing_within(mut self, spread: Option<Duration>) -> Sync {
        if let Kind::Perfect { latency_spread, .. } = &mut self.kind {
            *latency_spread = spread;
        }
        self
    }

    /// A clock that follows beacons and has heard none.
    pub const fn tracking(config: SyncConfig) -> Sync {
        Sync {
            kind: Kind::Tracking(Tracker::new(config)),
            ..Sync::perfect(0)
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> &SyncCounters {
        &self.counters
    }

    /// Takes in a beacon of the node that it follows, at the event that tells of it.
    pub fn heard(&mut self, now: Instant, beacon: &Beacon<'_>, radio: &dyn Radio) {
        let Kind::Tracking(tracker) = &self.kind else {
            return;
        };
        let config = tracker.config;
        let received = &beacon.received;
        let rate = received.rate;
        let mine = |a: &Option<AdapterId>| *a == Some(received.adapter);
        let Some(k) = tracker.adapters().iter().position(mine) else {
            return;
        };
        let told = config.second.and_then(|_| Shifts::find(received.frame));
        // who tells nothing has one adapter
        let Some(shift) = told.map_or((k == 0).then_some(0), |t| t.0[k]) else {
            return;
        };
        // the timestamp field comes 24 octets after the first bit of the MPDU
        let to_timestamp = octets_ns(24, rate);
        let network = beacon.timestamp.0.wrapping_mul(1_000).wrapping_add_signed(shift);
        match (received.tsf, adapter_time(received.adapter, radio)) {
            (Some(first_bit), Some(tsf_now)) if tsf_now.minus(first_bit) >= 0 => {
                let ago = Duration::from_us(tsf_now.minus(first_bit) as u64);
                self.take(k, now - ago, network.saturating_sub(to_timestamp), false);
            }
            _ => {
                let octets = received.frame.len() as u32 + 4;
                let whole = 1_000 * u64::from(ppdu_us(rate, octets, config.band));
                let before = first_bit_ns(rate) + to_timestamp;
                let end = network.saturating_add(whole.saturating_sub(before));
                let seen = seen(&received.stamps, now);
                self.take(k, seen - config.latency, end, false);
            }
        }
    }

    /// For the node that sends the beacons: looks at the time of its own adapters. False if the host cannot tell.
    pub fn look(&mut self, now: Instant, radio: &dyn Radio) -> bool {
        let Kind::Tracking(tracker) = &self.kind else {
            return true;
        };
        let mut told = false;
        for (k, adapter) in tracker.adapters().into_iter().enumerate() {
            if let Some(tsf) = adapter.and_then(|a| adapter_time(a, radio)) {
                self.take_own(k, now, tsf);
                told = true;
            }
        }
        told
    }

    /// For the node that sends the beacons, where the adapter time cannot be read: the confirm of a beacon. It does not say
    /// which adapter it is from, so where there are two it says nothing.
    pub fn sent(&mut self, now: Instant, confirm: &Confirm) {
        if let (Kind::Tracking(Tracker { config, .. }), Some(end)) = (&self.kind, confirm.tsf)
            && config.second.is_none()
        {
            let seen = seen(&confirm.stamps, now);
            self.take_own(0, seen - config.latency, end);
        }
    }

    /// For the node that sends the beacons: what they have to say about its clocks. `None` if it has one adapter.
    pub fn shifts(&self, now: Instant) -> Option<Shifts> {
        match &self.kind {
            Kind::Tracking(t) if t.config.second.is_some() => {
                Some(Shifts([0, 1].map(|k| t.shift_now(k, now))))
            }
            _ => None,
        }
    }

    /// Takes in that the host clock showed `local` at `network`.
    pub fn sample(&mut self, local: Instant, network: NetworkTime) {
        self.take(0, local, network.0, false);
    }

    fn take_own(&mut self, k: usize, local: Instant, tsf: Tsf) {
        if let Kind::Tracking(t) = &self.kind {
            let network = tsf.0.wrapping_mul(1_000).wrapping_add_signed(t.shift(k, local));
            self.take(k, local, network, true);
        }
    }

    fn take(&mut self, k: usize, local: Instant, network: u64, own: bool) {
        if let Kind::Tracking(t) = &mut self.kind {
            t.take(k, local, network, own, &mut self.counters);
        }
    }

    /// Whether the clock is to be trusted at `now`: enough samples, and the last one not too long ago.
    pub fn is_good(&self, now: Instant) -> bool {
        match &self.kind {
            Kind::Perfect { .. } => true,
            Kind::Tracking(t) => t.is_good(now),
        }
    }

    /// Whether the clock was to be trusted at any time since its start.
    pub fn was_good(&self) -> bool {
        matches!(self.kind, Kind::Perfect { .. }) || self.counters.trusted > 0
    }

    /// Whether a new sample would be welcome: so much of the holdover is over that the window would not reach back
    /// further than that.
    pub fn is_stale(&self, now: Instant) -> bool {
        match &self.kind {
            Kind::Perfect { .. } => false,
            Kind::Tracking(t) => t.is_stale(now),
        }
    }

    /// How long ago the last sample was taken; one that is refused does not count. `None` without any, and for an ideal clock.
    pub fn since_sample(&self, now: Instant) -> Option<Duration> {
        match &self.kind {
            Kind::Perfect { .. } => None,
            Kind::Tracking(t) => t.lead().last().map(|last| now.since(last)),
        }
    }

    /// Network time when the host clock shows `local`; `None` without any sample.
    pub fn to_network(&self, local: Instant) -> Option<NetworkTime> {
        let local = local.as_ns();
        let ahead = match &self.kind {
            Kind::Perfect { offset_ns, .. } => *offset_ns,
            Kind::Tracking(t) => t.lead().fit.as_ref()?.ahead(local),
        };
        Some(NetworkTime(local.saturating_add_signed(ahead)))
    }

    /// What the host clock shows at `network`, rounded up: `to_network` of the result is not before `network`
    /// (within the range of both clocks). `None` without any sample.
    pub fn to_local(&self, network: NetworkTime) -> Option<Instant> {
        let fit = match &self.kind {
            Kind::Perfect {
                offset_ns: offset, ..
            } => {
                return Some(Instant::from_ns(
                    network.0.saturating_add_signed(offset.saturating_neg()),
                ));
            }
            Kind::Tracking(t) => t.lead().fit.as_ref()?,
        };
        let mut local = network.0;
        // the rate is a small correction: three steps are exact to the nanosecond
        for _ in 0..3 {
            let next = network.0.saturating_add_signed(fit.ahead(local).saturating_neg());
            if next == local {
                break;
            }
            local = next;
        }
        for _ in 0..4 {
            if local.saturating_add_signed(fit.ahead(local)) >= network.0 {
                break;
            }
            local = local.saturating_add(1);
        }
        Some(Instant::from_ns(local))
    }

    /// How far off network time can be at `now`, by what the samples show: the largest deviation of a sample
    /// from the line, 1 us of resolution, and the uncertainty of the rate since the last sample. No guarantee: a
    /// host that stamps all beacons late by the same amount does not show. `None` without any sample.
    pub fn error_bound(&self, now: Instant) -> Option<Duration> {
        match &self.kind {
            Kind::Perfect { .. } => Some(Duration::ZERO),
            Kind::Tracking(t) => {
                let (fit, last) = (t.lead().fit.as_ref()?, t.lead().last()?);
                Some(Duration::from_ns(fit.error_ns(now.since(last).as_ns())))
            }
        }
    }

    /// Rate of network time against the host clock, in parts per 10^9 above 1; 0 without two samples.
    pub fn rate_ppb(&self) -> i64 {
        match &self.kind {
            Kind::Perfect { .. } => 0,
            Kind::Tracking(t) => t.lead().fit.as_ref().map_or(0, Fit::rate_ppb),
        }
    }
}

/// When the host had what an event tells of: its first stamp on the way up. The event itself may have waited for others.
pub(super) fn seen(stamps: &Stamps, now: Instant) -> Instant {
    let way_up = [Plane::T5, Plane::T6, Plane::T7, Plane::T8];
    way_up.into_iter().find_map(|p| stamps.get_host(p)).unwrap_or(now)
}

/// When the first bit of a received MPDU came, on the host's clock, if the adapter tells; at the event that tells of it.
fn on_air_local(now: Instant, received: &Indication<'_>, radio: &dyn Radio) -> Option<Instant> {
    let ago = adapter_time(received.adapter, radio)?.minus(received.tsf?);
    Some(now - Duration::from_us(u64::try_from(ago).ok()?))
}

fn adapter_time(adapter: AdapterId, radio: &dyn Radio) -> Option<Tsf> {
    match radio.get(adapter, AttributeName::Tsf) {
        Some(Attribute::Tsf(t)) => Some(t),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn tracking() -> Sync {
        Sync::tracking(SyncConfig::new(Band::Ghz5, Duration::from_ms(500)))
    }

    /// A host clock that starts 3 s behind network time and loses 20 us per second against it.
    fn network_at(local: u64) -> NetworkTime {
        NetworkTime(local + 3_000_000_000 + local / 50_000)
    }

    fn fed(n: u64) -> Sync {
        let mut s = tracking();
        for i in 1..=n {
            s.sample(Instant::from_ns(i * 100 * MS), network_at(i * 100 * MS));
        }
        s
    }

    #[test]
    fn what_waited_for_others_was_seen_when_it_was_first_stamped() {
        let [t7, t8, now] = [10, 20, 90].map(Instant::from_us);
        let mut stamps = Stamps::default();
        assert_eq!(seen(&stamps, now), now);
        stamps.host(Plane::T9, now);
        assert_eq!(seen(&stamps, now), now);
        stamps.host(Plane::T8, t8);
        assert_eq!(seen(&stamps, now), t8);
        stamps.host(Plane::T7, t7);
        assert_eq!(seen(&stamps, now), t7);
    }

    #[test]
    fn trusted_after_three_samples_and_for_the_holdover() {
        let at = |ms: u64| Instant::from_ns(ms * MS);
        assert!(!fed(2).is_good(at(201)) && fed(3).is_good(at(301)));
        assert!(fed(3).is_good(at(800)) && !fed(3).is_good(at(801)));
        assert!(tracking().to_network(at(1)).is_none());
        assert!(tracking().to_local(NetworkTime(5)).is_none() && tracking().error_bound(at(1)).is_none());
        assert!(Sync::perfect(-5).is_good(Instant::MAX));
    }

    #[test]
    fn rate_and_bound() {
        let s = fed(8);
        assert_eq!(s.rate_ppb(), 20_000);
        let at = Instant::from_ns(900 * MS);
        assert_eq!(s.to_network(at), Some(network_at(900 * MS)));
        assert!(s.error_bound(at).unwrap() < Duration::from_us(2));
        let mut one = tracking();
        one.sample(Instant::from_ns(MS), network_at(MS));
        // nothing is known about the rate: 40 ppm for 100 ms, and the resolution
        assert_eq!(
            one.error_bound(Instant::from_ns(101 * MS)),
            Some(Duration::from_ns(4_000 + 1_000))
        );
    }

    #[test]
    fn a_late_stamp_is_refused_and_a_jump_is_followed() {
        let mut s = fed(8);
        let late = |s: &mut Sync, i: u64| s.sample(Instant::from_ns(i * 100 * MS), NetworkTime(i));
        late(&mut s, 9);
        late(&mut s, 10);
        assert_eq!(
            s.to_network(Instant::from_ns(900 * MS)),
            Some(network_at(900 * MS))
        );
        late(&mut s, 11);
        assert_eq!(
            *s.counters(),
            SyncCounters {
                samples: 9,
                refused: 3,
                restarts: 1,
                switched: 0,
                trusted: 6,
            }
        );
        assert!(!s.is_good(Instant::from_ns(1_100 * MS)), "it starts again");
        assert!(s.was_good() && !fed(2).was_good() && Sync::perfect(0).was_good());
    }

    /// The TSF jumps before the clock is trusted: what was before that is given up, not mixed with what comes after it.
    #[test]
    fn samples_that_do_not_go_together_are_not_trusted() {
        for jump_at in [2, 3] {
            let mut s = tracking();
            for i in 1..=jump_at + 2 {
                let jumped = if i < jump_at { 0 } else { 40 * MS };
                let local = Instant::from_ns(i * 100 * MS);
                s.sample(local, NetworkTime(network_at(i * 100 * MS).0 + jumped));
                assert_eq!(s.is_good(local), i == jump_at + 2, "{jump_at}: {i}");
            }
            let now = (jump_at + 2) * 100 * MS;
            let network = s.to_network(Instant::from_ns(now)).unwrap().0;
            assert!(network.abs_diff(network_at(now).0 + 40 * MS) < 1_000, "{jump_at}");
        }
    }

    /// A small jump then is left behind as soon as there are enough samples after it, and a host that stamps badly is trusted all the same.
    #[test]
    fn samples_that_scatter_are_followed() {
        let mut s = tracking();
        for i in 1..=5 {
            let jumped = if i < 3 { 0 } else { 4 * MS };
            let local = Instant::from_ns(i * 100 * MS);
            s.sample(local, NetworkTime(network_at(i * 100 * MS).0 + jumped));
            assert_eq!(s.is_good(local), i >= 3, "{i}");
        }
        let network = s.to_network(Instant::from_ns(500 * MS)).unwrap().0;
        assert!(network.abs_diff(network_at(500 * MS).0 + 4 * MS) < 1_000);
        assert_eq!(s.counters().refused, 0);

        let mut s = tracking();
        for i in 1..=40 {
            // 0 to 2 ms late
            let late = (i * 7 % 5) * MS / 2;
            s.sample(Instant::from_ns(i * 100 * MS + late), network_at(i * 100 * MS));
            assert_eq!(s.is_good(Instant::from_ns(i * 100 * MS + late)), i >= 3, "{i}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(n in 1u64..9, local in 0u64..1 << 50) {
            let s = fed(n);
            let network = s.to_network(Instant::from_ns(local)).unwrap();
            let back = s.to_local(network).unwrap();
            prop_assert!(s.to_network(back).unwrap() >= network);
            prop_assert!(back.as_ns().abs_diff(local) <= 1);
        }

        #[test]
        fn any_samples(samples in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..30), q: u64) {
            let mut s = tracking();
            for (local, network) in samples {
                s.sample(Instant::from_ns(local), NetworkTime(network));
            }
            let at = Instant::from_ns(q);
            let _ = (s.to_network(at), s.to_local(NetworkTime(q)), s.error_bound(at), s.is_good(at));
        }
    }
}
