//! The soft-beacon window: what is left of an interval for a station that is awake only because it sent the beacon (Contiki80211;
//! Vukadinovic, Glaropoulos, Mangold 2014).
//!
//! The standard has it listen all interval, to answer who asks for the network. Here it dozes, and wakes up now and then
//! to send the beacon once more, which tells the same without being asked for. It sends no data meanwhile.

use super::network::Network;
use super::{Ibss, Routing, Sent, network};
use radio::{Attribute, Duration, Instant, Radio, ReceiveFilter};

/// Soft beacons are at least so far apart.
const SHORTEST: Duration = Duration::from_ms(1);

impl<const Q: usize, const L: usize, W: Routing> Ibss<Q, L, W> {
    /// Behind an ATIM window: there is no reason to stay awake, but perhaps the beacon.
    pub(super) fn doze_behind_window(&mut self, now: Instant, radio: &mut dyn Radio) {
        match self.config.soft_beacon {
            _ if !self.sent_beacon => self.counters.intervals_dozed += 1,
            None => return,
            Some(period) => {
                self.counters.soft_windows += 1;
                self.soft = true;
                self.beacon_at = Some(now + period.max(SHORTEST));
            }
        }
        self.doze(now, radio);
    }

    /// There is a reason to stay awake until the next TBTT. On a slow host the ATIM window may be over by now.
    pub(super) fn stay_awake(&mut self, now: Instant, radio: &mut dyn Radio) {
        self.stays = true;
        if core::mem::take(&mut self.soft) {
            self.beacon_at = None;
        }
        if self.dozes {
            // first, so that it is awake for what is coming
            self.receive(ReceiveFilter::All, radio);
        }
        self.wake(now, radio);
    }

    fn doze(&mut self, now: Instant, radio: &mut dyn Radio) {
        self.dozes = true;
        self.ledger.dozes(now);
        self.dozing = Some(Self::set(radio, Attribute::Reception(false)));
    }

    /// The adapter has not gone to sleep: it is awake, and was.
    pub(super) fn cannot_doze(&mut self) {
        if core::mem::take(&mut self.dozes) {
            self.ledger.did_not_doze();
            self.counters.intervals_dozed -= u64::from(!self.sent_beacon);
        }
    }

    /// It is time for a soft beacon: it wakes up, since the medium has to be sensed, and sends it.
    pub(super) fn send_soft_beacon(&mut self, now: Instant, network: &Network, radio: &mut dyn Radio) {
        let end = self.tbtt - self.wake_ahead();
        let period = self.config.soft_beacon;
        self.beacon_at = period.map(|period| now + period.max(SHORTEST));
        if now >= end || self.beacon.is_some() {
            return;
        }
        self.wake(now, radio);
        let how = self.management(1).expires(end);
        self.beacon = Some(self.send_management(network::Kind::Beacon, network, &how, radio));
    }

    /// A request has ended. If it was a soft beacon, or the answer to somebody who asked meanwhile, the doze goes on, unless
    /// the next TBTT is near.
    pub(super) fn doze_on(&mut self, now: Instant, radio: &mut dyn Radio) {
        let is_open = |sent: &Option<Sent>| sent.is_some();
        let busy = [&self.beacon, &self.other].into_iter().any(is_open);
        if self.soft && !self.dozes && !busy && now < self.tbtt - self.wake_ahead() {
            self.doze(now, radio);
        }
    }
}
