//! How a station becomes a member of a network, and how it leaves.

use super::neighbours::Neighbours;
use super::network::Network;
use super::{Ibss, Phase, Routing};
use frame::MacAddr;
use radio::{
    AdapterId, Attribute, AttributeName, BeaconTiming, Duration, Instant, Outcome, Radio, ReceiveFilter, Tsf,
};

impl<const Q: usize, const L: usize, W: Routing> Ibss<Q, L, W> {
    /// Looks for the network, and creates it if there is none. Does nothing unless it is idle.
    pub fn begin(&mut self, now: Instant, radio: &mut dyn Radio) {
        if self.phase != Phase::Idle {
            return;
        }
        self.phase = Phase::Scanning(now + self.config.scan);
        if self.config.active_scan {
            self.send_probe_request(radio);
        }
    }

    /// Leaves the network: nothing more is sent, and what waits is given up.
    pub fn leave(&mut self, now: Instant, radio: &mut dyn Radio) {
        for sent in [self.beacon, self.atim, self.data, self.other]
            .into_iter()
            .flatten()
        {
            radio.abort(sent.token);
        }
        self.wake(now, radio);
        self.receive(ReceiveFilter::All, radio);
        let over = Outcome::Aborted;
        self.counters.expired += self.give_up(over, |w| w.sent.is_none());
        self.phase = Phase::Idle;
        (self.beacon_at, self.window_end) = (None, None);
        (self.sent_last_beacon, self.soft) = (false, false);
        self.neighbours = Neighbours::new();
        Self::follow(BeaconTiming::default(), radio);
    }

    /// Has the adapter follow the clock of a network with this timing, if it is one that can.
    fn follow(timing: BeaconTiming, radio: &mut dyn Radio) {
        if radio.get(AdapterId::FIRST, AttributeName::BeaconTiming).is_some() {
            Self::set(radio, Attribute::BeaconTiming(timing));
        }
    }

    /// Whether the adapter follows the clock of this network by itself.
    pub(super) fn is_followed(network: &Network, radio: &dyn Radio) -> bool {
        let timing = Some(Attribute::BeaconTiming(network.timing()));
        radio.get(AdapterId::FIRST, AttributeName::BeaconTiming) == timing
    }

    pub(super) fn create(&mut self, now: Instant, radio: &mut dyn Radio) {
        let random = self.draw(1 << 48).to_be_bytes();
        let [_, _, a, b, c, d, e, f] = random;
        // individual, and given out by nobody (IEEE 802.11-2016, 11.1.4.4)
        let random = MacAddr([a & 0xfc | 0x02, b, c, d, e, f]);
        let interval_tu = self.config.interval_tu.max(1);
        let window = self.config.atim_window_tu;
        let network = Network {
            bssid: self.config.bssid.unwrap_or(random),
            interval_tu,
            atim_window_tu: if window < interval_tu { window } else { 0 },
        };
        self.enter(now, network, 0, radio);
    }

    /// Becomes a member of a network whose clock is `ahead_us` ahead of ours (behind, if negative).
    pub(super) fn enter(&mut self, now: Instant, network: Network, ahead_us: i64, radio: &mut dyn Radio) {
        self.wake(now, radio);
        self.receive(ReceiveFilter::All, radio);
        self.phase = Phase::Member(network);
        Self::set(radio, Attribute::Bssid(network.bssid));
        let tsf = Self::tsf(now, radio).plus(ahead_us);
        if ahead_us != 0 {
            self.setting_tsf = Some(Self::set(radio, Attribute::Tsf(tsf)));
        }
        Self::follow(network.timing(), radio);
        self.begun = None;
        self.tbtt = tbtt(now, tsf, &network, false);
        (self.beacon_at, self.window_end) = (None, None);
        // until the first TBTT nobody knows who is awake
        (self.stays, self.soft, self.group_announced) = (true, false, false);
        self.neighbours.erase_awake();
    }
}

/// By how much a TBTT may seem to be yet to come that was just now, us: clocks differ by less since the last look, and what is
/// rounded off is less, too.
const ROUNDED_US: u64 = 1_024;

/// The first TBTT behind `now`, at which the TSF is `tsf`: when it is a multiple of the interval. `after`: the last one
/// was told of a moment ago, even if rounding says that it is yet to come.
pub(super) fn tbtt(now: Instant, tsf: Tsf, network: &Network, after: bool) -> Instant {
    let interval_us = u64::from(network.interval_tu.max(1)) * 1_024;
    let rounded_us = if after { ROUNDED_US.min(interval_us / 2) } else { 0 };
    let into = tsf.0.wrapping_add(rounded_us) % interval_us;
    now + Duration::from_us(interval_us - into + rounded_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_tbtt_is_at_most_an_interval_away() {
        let network = Network {
            bssid: MacAddr::BROADCAST,
            interval_tu: 100,
            atim_window_tu: 0,
        };
        let next_us = |tsf, after| {
            let now = Instant::from_us(7);
            tbtt(now, Tsf(tsf), &network, after).since(now).as_us()
        };
        for late in [0, 1, 51_199, 51_200, 60_000, 101_375] {
            // a host that is late by so much
            assert_eq!(next_us(5 * 102_400 + late, true), 102_400 - late);
        }
        // the TBTT has been told, and the clock says that it is 3 us ahead; or it has not
        assert_eq!(next_us(5 * 102_400 - 3, true), 102_403);
        assert_eq!(next_us(5 * 102_400 - 3, false), 3);
        assert_eq!(next_us(5 * 102_400, false), 102_400);
    }
}
