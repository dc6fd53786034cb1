//! One frame at one receiver: whether it is locked on, what interference does to it, and its end.

use crate::adapter::Rx;
use crate::core::{Core, Decoding, Signal, gate};
use crate::host::Outcome as Ending;
use crate::medium::Capture;
use crate::medium::error::NEGLIGIBLE_LOSS;
use crate::medium::fate::Fate;
use crate::medium::links::Near;
use crate::trace::{OnAir, ReceptionEnd};
use frame::{Rate, airtime};

/// Bits of the PHY header (SIGNAL field).
const HEADER_BITS: f64 = 24.0;
/// A frame whose loss (-ln of the probability of success) has come to this is lost for certain.
const HOPELESS: f64 = 700.0;

/// How much interference a frame of one rate bears, as a share of its power and a constant.
#[derive(Clone, Copy)]
pub(super) struct Tolerance {
    share: f64,
    noise: f64,
}

impl Core {
    /// What the error rate of a signal depends on.
    pub(super) fn decoding(&mut self, s: &Signal) -> Decoding {
        let header_ns = u64::from(airtime::preamble_us(s.rate)) * 1_000;
        let body_ns = (s.end - s.start).saturating_sub(header_ns).max(1);
        Decoding {
            header_ns,
            header_density: HEADER_BITS / header_ns as f64,
            body_density: f64::from(s.octets) * 8.0 / body_ns as f64,
            noise: self.levels.noise(s.rate),
            tables: (
                self.reception.table(header_rate(s.rate)),
                self.reception.table(s.rate),
            ),
        }
    }

    /// What frames at `rate` bear without harm under the capture rule.
    pub(super) fn tolerance(&mut self, rate: Rate) -> Tolerance {
        match self.levels.capture {
            Capture::None => Tolerance {
                share: 0.0,
                noise: 0.0,
            },
            Capture::FirstWins(_) => Tolerance {
                share: 1.0 / self.levels.capture_ratio,
                noise: 0.0,
            },
            Capture::Sinr | Capture::MessageInMessage { .. } => Tolerance {
                share: 1.0 / self.reception.safe_ratio(rate),
                noise: self.levels.noise(rate),
            },
        }
    }

    /// Whether a receiver is free for a new frame, or turns to it.
    pub(super) fn may_lock(&self, to: usize, g: u16, arrival: u64, power: u64, others: f64) -> bool {
        let a = &self.adapters[to];
        if a.tx_until > arrival || (g & gate::DEAF != 0 && a.exchange.is_none()) {
            return false;
        }
        match (&a.rx, self.levels.capture) {
            (None, _) => true,
            (Some(rx), Capture::MessageInMessage { window_us, .. }) => {
                arrival.saturating_sub(rx.start) <= u64::from(window_us) * 1_000
                    && power as f64 >= self.levels.capture_ratio * others
            }
            (Some(_), _) => false,
        }
    }

    /// Begins a reception; false if the preamble is lost on this link.
    pub(super) fn lock(&mut self, to: usize, id: u32, l: &Near, t: Tolerance, start: u64, end: u64) -> bool {
        let mut corrupt = false;
        if l.loss != 0 {
            let response = matches!(self.signals[id].what, OnAir::Ack | OnAir::Cts);
            match self.losses[l.loss as usize - 1].fate(self.now, response) {
                Fate::Received => {}
                Fate::Corrupt => corrupt = true,
                Fate::Missed => return false,
            }
        }
        let power = l.power;
        let harmless = power.saturating_add((power as f64 * t.share - t.noise).max(0.0) as u64);
        let ear = &mut self.ears[to];
        ear.gate = (ear.gate | gate::RECEIVING) & !gate::RECORDING;
        ear.limit = harmless;
        let total = ear.power;
        let a = &mut self.adapters[to];
        if a.rx.is_some() {
            a.counters.rx_errors += 1;
        }
        a.rx = Some(Rx {
            signal: id,
            power,
            harmless,
            total: power,
            since: start,
            loss: 0.0,
            start,
            end,
            corrupt,
            dbm: l.dbm,
        });
        a.rx_start = start;
        let onset = start + u64::from(a.rules.sense_ns);
        if a.carrier_sense {
            self.occupy(to, onset, end);
        }
        // a frame that is weak even without interference is reckoned from its start on
        if total > harmless || harmless == power {
            self.interfere(to, start);
        }
        true
    }

    /// The sum of powers at a receiver has changed, and it was or is above what is harmless: the part of the frame
    /// until `at` is reckoned with the power until now.
    pub(super) fn interfere(&mut self, to: usize, at: u64) {
        let recording = self.ears[to].gate & gate::RECORDING != 0;
        let total = self.ears[to].power;
        let Some(mut rx) = self.adapters[to].rx else {
            return;
        };
        if recording {
            self.account(&mut rx, at);
        }
        rx.since = rx.since.max(at);
        rx.total = total;
        match self.levels.capture {
            // who overlaps at all, or by too much, is lost
            Capture::None | Capture::FirstWins(_) if total > rx.harmless => rx.loss = f64::INFINITY,
            _ => {}
        }
        let matters = total > rx.harmless || rx.harmless == rx.power;
        let ear = &mut self.ears[to];
        if rx.loss >= HOPELESS {
            ear.gate &= !gate::RECORDING;
            ear.limit = u64::MAX;
        } else if matters && !matches!(self.levels.capture, Capture::None | Capture::FirstWins(_)) {
            ear.gate |= gate::RECORDING;
            ear.limit = 0;
        } else {
            ear.gate &= !gate::RECORDING;
            ear.limit = rx.harmless;
        }
        self.adapters[to].rx = Some(rx);
    }

    /// Adds the loss of the part of a frame from `rx.since` to `until`. Delays differ, so a change can be noted a
    /// little before the one that was noted last: then the part is empty.
    fn account(&mut self, rx: &mut Rx, until: u64) {
        let until = until.min(rx.end);
        if until <= rx.since {
            return;
        }
        let d = &self.signals[rx.signal].decoding;
        let body = rx.start + d.header_ns;
        let sinr = rx.power as f64 / (rx.total.saturating_sub(rx.power) as f64 + d.noise);
        let in_header = until.min(body).saturating_sub(rx.since);
        if in_header > 0 {
            let bits = d.header_density * in_header as f64;
            rx.loss += self.reception.loss(d.tables.0, sinr, bits);
        }
        let in_body = until.saturating_sub(rx.since.max(body));
        if in_body > 0 {
            let bits = d.body_density * in_body as f64;
            rx.loss += self.reception.loss(d.tables.1, sinr, bits);
        }
    }

    /// Forgets the frame that is being received.
    pub(crate) fn stop_reception(&mut self, to: usize) {
        self.ears[to].gate &= !(gate::RECEIVING | gate::RECORDING);
        self.adapters[to].rx = None;
        self.relimit(to);
    }

    /// The frame that is being received is lost because the receiver turns away; if it stood where a response
    /// was awaited, that has failed.
    pub(crate) fn lose_reception(&mut self, to: usize) {
        if self.ears[to].gate & gate::RECEIVING == 0 {
            return;
        }
        self.adapters[to].counters.rx_errors += 1;
        self.stop_reception(to);
        if self.adapters[to]
            .exchange
            .is_some_and(|x| x.is_waiting() && x.timeout.is_none())
        {
            self.fail(to, self.now, Ending::AckCorrupt);
        }
    }

    /// Decides whether the frame that `to` has been receiving is right, and acts on it.
    pub(super) fn finish_reception(&mut self, to: usize, s: &Signal, end: u64, mut rx: Rx) {
        let ok = !rx.corrupt && self.survives(to, &mut rx, s, end);
        self.stop_reception(to);
        self.trace
            .step(end, 2, to as u64, u64::from(s.tx) << 1 | u64::from(ok));
        if let Some(o) = &mut self.trace.observer {
            let (adapter, from, what) = (to as u32, s.tx, s.what);
            let signal_dbm = rx.dbm;
            o.reception(&ReceptionEnd {
                at_ns: end,
                adapter,
                from,
                what,
                ok,
                signal_dbm,
            });
        }
        // the rest of an overlap may hold the medium busy
        if self.ears[to].power > self.ears[to].limit {
            self.set_energy(to, true);
        }
        let a = &mut self.adapters[to];
        a.counters.busy_time_us += (end - rx.start) / 1_000;
        if ok {
            a.eifs_until = 0;
            a.counters.rx_frames += 1;
            self.received(to, s, end, &rx);
        } else {
            // without carrier sense the medium is idle all the time
            if a.rules.eifs && a.carrier_sense {
                a.eifs_until = end + a.eifs_extra_ns;
            }
            a.counters.rx_errors += 1;
            self.failed_reception(to, end);
        }
        self.settle(to);
    }

    /// The error model and the capture rule.
    fn survives(&mut self, to: usize, rx: &mut Rx, s: &Signal, end: u64) -> bool {
        if self.ears[to].gate & gate::RECORDING != 0 {
            self.account(rx, end);
        }
        if matches!(self.levels.capture, Capture::None | Capture::FirstWins(_)) && rx.loss == 0.0 {
            // only the noise is left
            let (header, body) = s.decoding.tables;
            let ratio = rx.power as f64 / s.decoding.noise;
            rx.loss = self.reception.loss(body, ratio, f64::from(s.octets) * 8.0)
                + self.reception.loss(header, ratio, HEADER_BITS);
        }
        rx.loss <= NEGLIGIBLE_LOSS
            || (rx.loss < HOPELESS && self.adapters[to].reception_stream.unit() < libm::exp(-rx.loss))
    }
}

/// Rate of the PHY header, which must be right for anything else to be.
fn header_rate(rate: Rate) -> Rate {
    match rate {
        Rate::Dsss(..) => Rate::DSSS_1,
        _ => Rate::OFDM_6,
    }
}
