//! One beacon interval of a member: TBTT, its beacon, the end of the ATIM window, sleep.

use super::member::tbtt;
use super::network::{self, MAX_OCTETS, Network};
use super::queue::Waiting;
use super::{Ibss, Routing, Sent};
use frame::MacAddr;
use radio::{Attribute, Confirm, Duration, Instant, Outcome, Queue, Radio, Token, TxHow};

/// Who was not heard for so long is forgotten: what Linux does.
const FORGET: Duration = Duration::from_ms(60_000);

impl<const Q: usize, const L: usize, W: Routing> Ibss<Q, L, W> {
    pub(super) fn member_timer(&mut self, now: Instant, network: &Network, radio: &mut dyn Radio) {
        if self.dozes
            && self.tbtt - self.wake_ahead() <= now
            && let Some(token) = self.wake(now, radio)
        {
            self.ahead.wakes(token);
        }
        if self.tbtt <= now {
            self.begin_interval(now, network, radio);
        }
        self.filter_on_time(now, radio);
        if self.window_end.is_some_and(|t| t <= now) {
            self.end_window(now, radio);
        }
        if self.beacon_at.is_some_and(|t| t <= now) {
            self.beacon_at = None;
            match self.soft {
                true => self.send_soft_beacon(now, network, radio),
                false => self.send_beacon(network, radio),
            }
        }
    }

    /// Works out the next TBTT from the TSF.
    pub(super) fn plan(&mut self, now: Instant, radio: &mut dyn Radio) {
        let Some(network) = self.network().copied() else {
            return;
        };
        let interval = Duration::from_tu(network.interval_tu.into());
        let half = Duration::from_ns(interval.as_ns() / 2);
        let after = self.begun.is_some_and(|begun| now.since(begun) < half);
        self.tbtt = tbtt(now, Self::tsf(now, radio), &network, after);
    }

    fn begin_interval(&mut self, now: Instant, network: &Network, radio: &mut dyn Radio) {
        let begin = self.tbtt;
        self.counters.intervals += 1;
        if self.ahead.is_late() {
            self.woken(true);
        }
        self.begun = Some(now);
        self.plan(now, radio);
        let slots = self.draw(2 * u64::from(self.config.cw_min) + 1);
        self.beacon_at = Some(begin + self.config.slot.times(slots));
        let window = Duration::from_tu(network.atim_window_tu.into());
        self.window_end = (network.atim_window_tu > 0).then(|| begin + window);
        (self.sent_beacon, self.stays, self.soft, self.group_announced) = (false, false, false, false);
        (self.hears_group, self.calm) = (false, false);
        self.neighbours.erase_awake();
        self.neighbours.forget(now - FORGET);
        self.filter_window(now, radio);
        for waiting in self.queue.iter_mut() {
            waiting.asked = false;
            waiting.intervals = waiting.intervals.saturating_add(1);
        }
        let limit = self.config.lifetime_intervals;
        let is_over =
            |w: &Waiting<L>| w.sent.is_none() && (w.intervals > limit || w.deadline.is_some_and(|t| t < now));
        self.counters.expired += self.give_up(Outcome::Expired, is_over);
    }

    fn end_window(&mut self, now: Instant, radio: &mut dyn Radio) {
        // a beacon that was not sent by now is not sent
        (self.window_end, self.beacon_at) = (None, None);
        let below = [&self.beacon, &self.atim, &self.data, &self.other];
        let busy = below.into_iter().any(Option::is_some);
        let dozes = self.config.power_save && !self.stays && !busy;
        if dozes {
            self.filter_doze(radio);
            self.doze_behind_window(now, radio);
        }
    }

    /// The adapter is awake for a TBTT, or should be.
    pub(super) fn woken(&mut self, late: bool) {
        self.counters.wakes += 1;
        self.counters.wakes_late += u64::from(late);
        self.ahead.note(late);
    }

    /// Ends a doze, and tells by which request.
    pub(super) fn wake(&mut self, now: Instant, radio: &mut dyn Radio) -> Option<Token> {
        core::mem::take(&mut self.dozes).then(|| {
            self.dozing = None;
            self.ledger.wakes(now);
            Self::set(radio, Attribute::Reception(true))
        })
    }

    fn send_beacon(&mut self, network: &Network, radio: &mut dyn Radio) {
        if self.beacon.is_some() {
            return;
        }
        let until = self.window_end.unwrap_or(self.tbtt);
        let how = self.management(1).expires(until);
        self.beacon = Some(self.send_management(network::Kind::Beacon, network, &how, radio));
    }

    /// Another station's beacon came first.
    pub(super) fn spare_beacon(&mut self, radio: &mut dyn Radio) {
        self.sent_last_beacon = false;
        if self.soft {
            // who is near us and not near that one still has to find the network
            return;
        }
        if self.beacon_at.take().is_some() {
            self.counters.beacons_spared += 1;
        }
        if let Some(sent) = self.beacon {
            radio.abort(sent.token);
        }
    }

    pub(super) fn beacon_confirmed(&mut self, confirm: &Confirm) {
        if confirm.attempts > 0 && self.soft {
            self.counters.soft_beacons += 1;
        } else if confirm.attempts > 0 {
            self.counters.beacons += 1;
            (self.sent_last_beacon, self.sent_beacon) = (true, true);
        } else if confirm.outcome == Outcome::Aborted {
            self.counters.beacons_spared += 1;
        }
    }

    pub(super) fn send_probe_request(&mut self, radio: &mut dyn Radio) {
        let nowhere = Network {
            bssid: MacAddr::BROADCAST,
            interval_tu: 0,
            atim_window_tu: 0,
        };
        let how = self.management(1);
        self.other = Some(self.send_management(network::Kind::ProbeRequest, &nowhere, &how, radio));
    }

    /// Answers a probe request, unless an answer is on its way.
    pub(super) fn answer_probe(&mut self, from: MacAddr, radio: &mut dyn Radio) {
        let Some(network) = self.network().copied().filter(|_| self.other.is_none()) else {
            return;
        };
        self.counters.probes_answered += 1;
        let how = self.management(self.config.tries).expires(self.tbtt);
        let kind = network::Kind::ProbeResponse(from);
        self.other = Some(self.send_management(kind, &network, &how, radio));
    }

    /// Management frames go with voice (IEEE 802.11-2016, 10.2.4.2). Beacons of an IBSS, too: the queue for beacons knows
    /// no backoff, so that all who found the medium busy would send at once behind a collision.
    pub(super) fn management(&self, tries: u8) -> TxHow {
        TxHow::multi_shot(self.config.group_rate, tries).queue(Queue::Voice)
    }

    pub(super) fn send_management(
        &mut self,
        kind: network::Kind,
        network: &Network,
        how: &TxHow,
        radio: &mut dyn Radio,
    ) -> Sent {
        let sequence = self.next_sequence();
        let mut out = [0; MAX_OCTETS];
        let mpdu = network::emit(kind, &self.config, network, sequence, &mut out);
        let token = radio.token();
        radio.request(token, mpdu, how);
        let to = match kind {
            network::Kind::ProbeResponse(to) | network::Kind::Atim(to, _) => to,
            network::Kind::Beacon | network::Kind::ProbeRequest => MacAddr::BROADCAST,
        };
        Sent {
            token,
            to,
            octets: mpdu.len(),
        }
    }
}
