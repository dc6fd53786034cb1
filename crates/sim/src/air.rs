//! Signals in time: they start, are detected, and end.
//!
//! Each transmission costs three passes over its own neighbours, whatever the number of nodes: at its start the
//! powers are added, after the CCA time those who can detect its preamble are asked, at its end the powers are
//! taken away and receptions are decided. Receivers are handled together in one event, each with its own times
//! (start and end plus its propagation delay), so the order of events does not blur the times.

use crate::adapter::Rx;
use crate::core::{Core, Ev, NONE, Signal, gate};
use crate::medium::Capture;
use crate::medium::error::NEGLIGIBLE_LOSS;
use crate::medium::fate::Fate;
use crate::medium::power;
use crate::trace::{OnAir, ReceptionEnd, Transmission};
use frame::{Rate, airtime};
use std::rc::Rc;

/// From the arrival of a preamble to its detection, ns: the upper bound of aCCATime for OFDM
/// (IEEE 802.11-2016, Table 17-21). DSSS takes longer, which [`AccessRules::sense_ns`](crate::adapter::AccessRules)
/// accounts for.
const DETECT_NS: u64 = 4_000;

/// Bits of the PHY header (SIGNAL field).
const HEADER_BITS: f64 = 24.0;

impl Core {
    /// Puts a signal on the air now. `signal.links`, `start` and `channel` are filled in here.
    pub fn emit(&mut self, mut signal: Signal) -> u32 {
        if self.links.is_stale() {
            self.links.refresh(&self.antennas);
        }
        let tx = signal.tx as usize;
        signal.start = self.now;
        signal.channel = self.gate[tx] & gate::CHANNEL;
        signal.links = Rc::clone(self.links.of(signal.tx));
        let (start, end, links) = (signal.start, signal.end, Rc::clone(&signal.links));
        self.trace.step(
            start,
            1,
            u64::from(signal.tx),
            u64::from(signal.octets) << 8 | signal.what as u64,
        );
        if self.trace.observer.is_some() {
            self.show_transmission(&signal);
        }
        if signal.what != OnAir::Noise {
            self.frames_on_air += 1;
            self.own_start(tx, end);
        }
        let channel = signal.channel;
        let id = self.signals.put(signal);
        self.on_air.push(id);
        for l in &links.near {
            let to = l.to as usize;
            if self.gate[to] & gate::CHANNEL == channel {
                self.power[to] += l.power;
                if self.gate[to] & gate::RECEIVING != 0 && self.power[to] > self.limit[to] {
                    self.interfere(to, start + u64::from(l.delay_ns));
                }
            }
        }
        for l in &links.far {
            let to = l.to as usize;
            if self.gate[to] & gate::CHANNEL == channel {
                self.power[to] += u64::from(l.power);
                if self.power[to] > self.limit[to] {
                    self.far_rises(to, start);
                }
            }
        }
        if !links.near.is_empty() {
            self.at(start + u64::from(links.min_delay_ns) + DETECT_NS, Ev::Detect(id));
        }
        self.at(end + u64::from(links.max_delay_ns), Ev::End(id));
        id
    }

    /// The transmitter itself: it stops receiving, and its medium is busy.
    fn own_start(&mut self, tx: usize, end: u64) {
        let now = self.now;
        if self.gate[tx] & gate::RECEIVING != 0 {
            self.adapters[tx].counters.rx_errors += 1;
            self.stop_reception(tx);
        }
        self.gate[tx] |= gate::TRANSMITTING;
        self.relimit(tx);
        let a = &mut self.adapters[tx];
        a.tx_until = end;
        a.counters.tx_time_us += (end - now) / 1_000;
        self.occupy(tx, now, end);
    }

    /// Forgets the frame that is being received.
    pub fn stop_reception(&mut self, to: usize) {
        self.gate[to] &= !(gate::RECEIVING | gate::RECORDING);
        self.adapters[to].rx = None;
        self.relimit(to);
    }

    /// Works out from which sum of powers on a receiver must be looked at: while it receives, the sum that may harm
    /// the frame; else the energy threshold.
    pub fn relimit(&mut self, to: usize) {
        let (g, a) = (self.gate[to], &self.adapters[to]);
        self.limit[to] = match &a.rx {
            Some(_) if g & gate::RECORDING != 0 => 0,
            Some(rx) => rx.harmless,
            None if g & (gate::TRANSMITTING | gate::ENERGY) != 0 || !a.carrier_sense => u64::MAX,
            None => self.levels.energy.saturating_sub(1),
        };
    }

    /// The sum of powers during a reception has risen above what is harmless, or has changed after it once had.
    #[cold]
    fn interfere(&mut self, to: usize, at: u64) {
        let total = self.power[to];
        let a = &mut self.adapters[to];
        if let Some(rx) = &mut a.rx {
            rx.peak = rx.peak.max(total);
            a.changes.push((at, total));
            self.gate[to] |= gate::RECORDING;
            self.limit[to] = 0;
        }
    }

    #[cold]
    fn far_rises(&mut self, to: usize, at: u64) {
        if self.gate[to] & gate::RECEIVING != 0 {
            self.interfere(to, at)
        } else {
            self.energy_rises(to, at)
        }
    }

    /// The sum of powers is above the energy threshold without a frame being received.
    fn energy_rises(&mut self, to: usize, arrival: u64) {
        let a = &self.adapters[to];
        if !a.carrier_sense || self.gate[to] & (gate::TRANSMITTING | gate::ENERGY) != 0 {
            return;
        }
        let onset = arrival + u64::from(a.rules.sense_ns);
        self.set_energy(to, true);
        self.occupy(to, onset, 0);
    }

    /// Notes whether the medium is busy by energy.
    pub fn set_energy(&mut self, to: usize, on: bool) {
        self.adapters[to].energy = on;
        if on {
            self.gate[to] |= gate::ENERGY;
        } else {
            self.gate[to] &= !gate::ENERGY;
        }
        self.relimit(to);
    }

    /// The preamble of a signal has been on the air for the CCA time.
    pub fn detect(&mut self, id: u32) {
        let s = &self.signals[id];
        let (channel, start, end, what) = (s.channel, s.start, s.end, s.what);
        let links = Rc::clone(&s.links);
        for l in &links.near {
            let to = l.to as usize;
            let g = self.gate[to];
            if g & gate::CHANNEL != channel || g & gate::TRANSMITTING != 0 {
                continue;
            }
            let arrival = start + u64::from(l.delay_ns);
            let total = self.power[to];
            let others = (total - l.power) as f64 + self.levels.noise_20;
            let ratio_ok =
                !self.levels.preamble_detection || l.power as f64 >= self.levels.preamble_ratio * others;
            let locked = what != OnAir::Noise
                && ratio_ok
                && self.may_lock(to, g, arrival, l.power, others)
                && self.lock(to, id, l.power, l.loss, arrival, end + u64::from(l.delay_ns));
            if !locked && g & gate::RECEIVING == 0 && total >= self.levels.energy {
                self.energy_rises(to, arrival);
            }
        }
    }

    /// Whether a receiver is free for a new frame, or turns to it.
    fn may_lock(&self, to: usize, g: u16, arrival: u64, power: u64, others: f64) -> bool {
        let a = &self.adapters[to];
        if a.tx_until > arrival || (g & gate::DEAF != 0 && a.exchange.is_none()) {
            return false;
        }
        match (&a.rx, self.levels.capture) {
            (None, _) => true,
            (Some(rx), Capture::MessageInMessage { by_db, window_us }) => {
                arrival.saturating_sub(rx.start) <= u64::from(window_us) * 1_000
                    && power as f64 >= power::db_to_ratio(by_db) * others
            }
            (Some(_), _) => false,
        }
    }

    /// Begins a reception; false if the preamble is lost on this link.
    fn lock(&mut self, to: usize, id: u32, power: u64, loss: u32, start: u64, end: u64) -> bool {
        let mut corrupt = false;
        if loss != 0 {
            let response = matches!(self.signals[id].what, OnAir::Ack | OnAir::Cts);
            match self.losses[loss as usize - 1].fate(self.now, response) {
                Fate::Received => {}
                Fate::Corrupt => corrupt = true,
                Fate::Missed => return false,
            }
        }
        let total = self.power[to];
        let harmless = self.harmless(self.signals[id].rate, power);
        let a = &mut self.adapters[to];
        if a.rx.is_some() {
            a.counters.rx_errors += 1;
        }
        a.rx = Some(Rx {
            signal: id,
            power,
            harmless,
            peak: power,
            start,
            end,
            corrupt,
        });
        a.changes.clear();
        let onset = start + u64::from(a.rules.sense_ns);
        let sensed = a.carrier_sense;
        self.gate[to] = (self.gate[to] | gate::RECEIVING) & !gate::RECORDING;
        self.limit[to] = harmless;
        if total > harmless {
            self.interfere(to, start);
        }
        if sensed {
            self.occupy(to, onset, end);
        }
        true
    }

    /// Sum of powers (the frame's own included) up to which a frame is certainly received.
    fn harmless(&mut self, rate: Rate, power: u64) -> u64 {
        let share = match self.levels.capture {
            Capture::None => 0.0,
            Capture::FirstWins(db) => power as f64 / power::db_to_ratio(db),
            _ => power as f64 / self.reception.safe_ratio(rate) - self.levels.noise(rate),
        };
        power.saturating_add(share.max(0.0) as u64)
    }

    /// A signal has ended at all its receivers.
    pub fn end(&mut self, id: u32) {
        let s = self.signals[id].clone();
        let at = self
            .on_air
            .iter()
            .position(|x| *x == id)
            .expect("a signal that ends was on the air");
        self.on_air.swap_remove(at);
        for l in &s.links.near {
            let to = l.to as usize;
            let g = self.gate[to];
            if g & gate::CHANNEL != s.channel {
                continue;
            }
            let end = s.end + u64::from(l.delay_ns);
            self.power[to] -= l.power;
            if g & gate::RECEIVING != 0 {
                if self.adapters[to].rx.is_some_and(|rx| rx.signal == id) {
                    self.finish_reception(to, &s, end);
                } else if g & gate::RECORDING != 0 {
                    self.interfere(to, end);
                }
            }
            if self.gate[to] & gate::ENERGY != 0 {
                self.energy_falls(to, end);
            }
        }
        for l in &s.links.far {
            let to = l.to as usize;
            let g = self.gate[to];
            if g & gate::CHANNEL == s.channel {
                self.power[to] -= u64::from(l.power);
                if g & (gate::RECORDING | gate::ENERGY) != 0 {
                    self.far_falls(to, s.end);
                }
            }
        }
        self.signals.release(id);
        if s.what != OnAir::Noise {
            self.own_end(&s);
        }
        if s.frame != NONE {
            self.drop_frame(s.frame);
        }
    }

    #[cold]
    fn far_falls(&mut self, to: usize, at: u64) {
        if self.gate[to] & gate::RECORDING != 0 {
            self.interfere(to, at);
        }
        if self.gate[to] & gate::ENERGY != 0 {
            self.energy_falls(to, at);
        }
    }

    /// The medium was busy by energy, and the sum of powers may have fallen below the threshold.
    fn energy_falls(&mut self, to: usize, at: u64) {
        if self.power[to] < self.levels.energy {
            self.set_energy(to, false);
            let a = &mut self.adapters[to];
            a.idle_from = a.idle_from.max(at);
            self.settle(to);
        }
    }

    /// The transmitter after its own signal.
    fn own_end(&mut self, s: &Signal) {
        let tx = s.tx as usize;
        self.gate[tx] &= !gate::TRANSMITTING;
        self.relimit(tx);
        if self.power[tx] > self.limit[tx] {
            self.set_energy(tx, true);
            self.occupy(tx, s.end, 0);
        }
        self.sent(tx, s);
    }

    /// Decides whether the frame that `to` has been receiving is right, and acts on it.
    fn finish_reception(&mut self, to: usize, s: &Signal, end: u64) {
        let rx = self.adapters[to].rx.expect("it was receiving");
        self.stop_reception(to);
        let ok = !rx.corrupt && self.survives(to, &rx, s, end);
        self.trace
            .step(end, 2, to as u64, u64::from(s.tx) << 1 | u64::from(ok));
        if let Some(o) = &mut self.trace.observer {
            let (adapter, from, what) = (to as u32, s.tx, s.what);
            let signal_dbm = signal_dbm(rx.power);
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
        if self.power[to] > self.limit[to] {
            self.set_energy(to, true);
        }
        let a = &mut self.adapters[to];
        a.counters.busy_time_us += (end - rx.start) / 1_000;
        a.after_error = !ok && a.rules.eifs;
        if ok {
            a.counters.rx_frames += 1;
            self.received(to, s, end, &rx);
        } else {
            a.counters.rx_errors += 1;
            self.failed_reception(to, end);
        }
        self.settle(to);
    }

    /// The error model and the capture rule.
    fn survives(&mut self, to: usize, rx: &Rx, s: &Signal, end: u64) -> bool {
        if rx.peak <= rx.harmless {
            return self.safe_from_noise(to, rx, s);
        }
        let overlap = rx.peak - rx.power;
        match self.levels.capture {
            Capture::None if overlap > 0 => return false,
            Capture::FirstWins(db) if (rx.power as f64) < power::db_to_ratio(db) * overlap as f64 => {
                return false;
            }
            _ => {}
        }
        if matches!(self.levels.capture, Capture::FirstWins(_)) {
            return self.safe_from_noise(to, rx, s);
        }
        let loss = self.loss_by_parts(to, rx, s, end);
        self.is_lucky(to, loss)
    }

    /// Whether a frame without harmful interference is received.
    fn safe_from_noise(&mut self, to: usize, rx: &Rx, s: &Signal) -> bool {
        let ratio = rx.power as f64 / self.levels.noise(s.rate);
        if ratio >= self.reception.safe_ratio(s.rate) {
            return true;
        }
        let loss = self.reception.loss(s.rate, ratio, f64::from(s.octets) * 8.0)
            + self.reception.loss(header_rate(s.rate), ratio, HEADER_BITS);
        self.is_lucky(to, loss)
    }

    fn is_lucky(&mut self, to: usize, loss: f64) -> bool {
        loss <= NEGLIGIBLE_LOSS
            || (loss < 700.0 && self.adapters[to].reception_stream.unit() < libm::exp(-loss))
    }

    /// -ln of the probability of success, added up over the parts of the frame between changes of interference.
    fn loss_by_parts(&mut self, to: usize, rx: &Rx, s: &Signal, end: u64) -> f64 {
        let noise = self.levels.noise(s.rate);
        let mut changes = std::mem::take(&mut self.adapters[to].changes);
        // delays differ, so two changes can be noted out of order
        changes.sort_by_key(|c| c.0);
        let body = rx.start + u64::from(airtime::preamble_us(s.rate)) * 1_000;
        let header = header_rate(s.rate);
        let bits_per_ns = f64::from(s.octets) * 8.0 / (end.saturating_sub(body).max(1)) as f64;
        let mut loss = 0.0;
        for (i, &(from, total)) in changes.iter().enumerate() {
            let until = changes.get(i + 1).map_or(end, |c| c.0).min(end);
            let from = from.max(rx.start);
            if until <= from {
                continue;
            }
            let sinr = rx.power as f64 / (total.saturating_sub(rx.power) as f64 + noise);
            let in_header = until.min(body).saturating_sub(from);
            if in_header > 0 {
                loss += self.reception.loss(
                    header,
                    sinr,
                    HEADER_BITS * in_header as f64 / (body - rx.start).max(1) as f64,
                );
            }
            let in_body = until.saturating_sub(from.max(body));
            if in_body > 0 {
                loss += self.reception.loss(s.rate, sinr, bits_per_ns * in_body as f64);
            }
        }
        changes.clear();
        self.adapters[to].changes = changes;
        loss
    }

    /// Retunes an adapter: what it was receiving is lost, and the powers of the new channel arrive.
    pub fn retune(&mut self, adapter: usize, mhz: u16) {
        let channel = self.channel_index(mhz);
        self.adapters[adapter].mhz = mhz;
        self.antennas[adapter].mhz = mhz;
        self.stop_reception(adapter);
        self.gate[adapter] = (self.gate[adapter] & !gate::CHANNEL) | channel;
        let mut sum = 0;
        for id in &self.on_air {
            let s = &self.signals[*id];
            if s.channel == channel {
                let to = adapter as u32;
                sum += s.links.near.iter().find(|l| l.to == to).map_or(0, |l| l.power);
                sum += s
                    .links
                    .far
                    .iter()
                    .find(|l| l.to == to)
                    .map_or(0, |l| u64::from(l.power));
            }
        }
        self.power[adapter] = sum;
        let (now, energy) = (self.now, self.levels.energy);
        let a = &mut self.adapters[adapter];
        a.nav_until = 0;
        a.after_error = false;
        let busy = a.carrier_sense && sum >= energy;
        a.idle_from = now.max(a.tx_until);
        self.set_energy(adapter, busy);
        self.links.touch();
        self.settle(adapter);
    }

    fn show_transmission(&mut self, s: &Signal) {
        let mut octets = Vec::new();
        let mut attempt = 0;
        match s.what {
            OnAir::Frame => {
                self.frame_on_air(s.frame, s.retry, s.duration_us, s.tsf_us, &mut octets);
                attempt = self.frames[s.frame].attempts;
            }
            OnAir::Noise => {}
            _ => {
                crate::adapter::exchange::control_octets(s, self.adapters[s.tx as usize].address, &mut octets)
            }
        }
        let a = &self.adapters[s.tx as usize];
        let t = Transmission {
            start_ns: s.start,
            end_ns: s.end,
            adapter: s.tx,
            node: a.node,
            what: s.what,
            rate: s.rate,
            mhz: a.mhz,
            frame: &octets,
            attempt,
            octets: s.octets,
        };
        if let Some(o) = &mut self.trace.observer {
            o.transmission(&t);
        }
    }
}

/// Rate of the PHY header, which must be right for anything else to be.
fn header_rate(rate: Rate) -> Rate {
    match rate {
        Rate::Dsss(..) => Rate::DSSS_1,
        _ => Rate::OFDM_6,
    }
}

/// A received power in whole dBm.
pub(crate) fn signal_dbm(power: u64) -> i8 {
    power::to_dbm(power).round().clamp(-128.0, 127.0) as i8
}
