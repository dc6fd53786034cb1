//! Signals in time: they start, are detected, and end.
//!
//! Each transmission costs three passes over its own neighbours, whatever the number of nodes: at its start the
//! powers are added, after the CCA time those who can detect its preamble are asked, at its end the powers are
//! taken away and receptions are decided. Receivers are handled together in one event, each with its own times
//! (start and end plus its propagation delay), so the order of events does not blur the times.
//!
//! What belongs here: powers, detection, energy, channels. How one frame fares at one receiver is in [`reception`].

mod reception;

use crate::core::{Core, Ev, NONE, Signal, gate};
use crate::trace::{OnAir, Transmission};
use std::rc::Rc;

/// From the arrival of a preamble to its detection, ns: the upper bound of aCCATime for OFDM
/// (IEEE 802.11-2016, Table 17-21). DSSS takes longer, which [`AccessRules::sense_ns`](crate::adapter::AccessRules)
/// accounts for.
const DETECT_NS: u64 = 4_000;

impl Core {
    /// Puts a signal on the air now. `signal.links`, `start` and `channel` are filled in here.
    pub fn emit(&mut self, mut signal: Signal) -> u32 {
        if self.links.is_stale() {
            self.links.refresh(&self.antennas);
        }
        let tx = signal.tx as usize;
        signal.start = self.now;
        signal.channel = self.ears[tx].gate & gate::CHANNEL;
        signal.links = Rc::clone(self.links.of(signal.tx));
        signal.decoding = self.decoding(&signal);
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
            let ear = &mut self.ears[to];
            if ear.gate & gate::CHANNEL == channel {
                ear.power += l.power;
                if ear.gate & gate::RECEIVING != 0 && ear.power > ear.limit {
                    self.interfere(to, start + u64::from(l.delay_ns));
                }
            }
        }
        // the long list first adds up, and then looks after the few that it matters to
        let mut concerned = std::mem::take(&mut self.concerned);
        let ears = self.ears.as_mut_slice();
        for l in &links.far {
            let ear = &mut ears[l.to as usize];
            if ear.gate & gate::CHANNEL == channel {
                ear.power += u64::from(l.power);
                if ear.power > ear.limit {
                    concerned.push(l.to);
                }
            }
        }
        for to in concerned.drain(..) {
            self.far_rises(to as usize, start);
        }
        self.concerned = concerned;
        if !links.near.is_empty() {
            self.at(start + u64::from(links.min_delay_ns) + DETECT_NS, Ev::Detect(id));
        }
        self.at(end + u64::from(links.max_delay_ns), Ev::End(id));
        id
    }

    /// The transmitter itself: it stops receiving, and its medium is busy.
    fn own_start(&mut self, tx: usize, end: u64) {
        let now = self.now;
        if self.ears[tx].gate & gate::RECEIVING != 0 {
            self.adapters[tx].counters.rx_errors += 1;
            self.stop_reception(tx);
        }
        self.ears[tx].gate |= gate::TRANSMITTING;
        self.relimit(tx);
        let a = &mut self.adapters[tx];
        a.tx_until = end;
        a.counters.tx_time_us += (end - now) / 1_000;
        self.occupy(tx, now, end);
    }

    /// Works out from which sum of powers on an adapter that receives nothing must be looked at: the energy
    /// threshold.
    pub fn relimit(&mut self, to: usize) {
        let ear = &mut self.ears[to];
        let asleep = ear.gate & (gate::TRANSMITTING | gate::ENERGY) != 0 || !self.adapters[to].carrier_sense;
        if ear.gate & gate::RECEIVING == 0 {
            ear.limit = if asleep {
                u64::MAX
            } else {
                self.levels.energy.saturating_sub(1)
            };
        }
    }

    fn far_rises(&mut self, to: usize, at: u64) {
        if self.ears[to].gate & gate::RECEIVING != 0 {
            self.interfere(to, at)
        } else {
            self.energy_rises(to, at)
        }
    }

    /// The sum of powers is above the energy threshold without a frame being received.
    fn energy_rises(&mut self, to: usize, arrival: u64) {
        let a = &self.adapters[to];
        if !a.carrier_sense || self.ears[to].gate & (gate::TRANSMITTING | gate::ENERGY) != 0 {
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
            self.ears[to].gate |= gate::ENERGY;
        } else {
            self.ears[to].gate &= !gate::ENERGY;
        }
        self.relimit(to);
    }

    /// The preamble of a signal has been on the air for the CCA time.
    pub fn detect(&mut self, id: u32) {
        let s = &self.signals[id];
        let (channel, start, end, what, rate) = (s.channel, s.start, s.end, s.what, s.rate);
        let links = Rc::clone(&s.links);
        let noise = self.levels.noise_20;
        // receivers without preamble detection take what comes
        let least = if self.levels.preamble_detection {
            self.levels.preamble_ratio
        } else {
            0.0
        };
        let tolerance = self.tolerance(rate);
        for l in &links.near {
            let to = l.to as usize;
            let ear = self.ears[to];
            if ear.gate & gate::CHANNEL != channel || ear.gate & gate::TRANSMITTING != 0 {
                continue;
            }
            let arrival = start + u64::from(l.delay_ns);
            let others = (ear.power - l.power) as f64 + noise;
            let locked = what != OnAir::Noise
                && l.power as f64 >= least * others
                && self.may_lock(to, ear.gate, arrival, l.power, others)
                && self.lock(to, id, l, tolerance, arrival, end + u64::from(l.delay_ns));
            if !locked && ear.gate & gate::RECEIVING == 0 && ear.power >= self.levels.energy {
                self.energy_rises(to, arrival);
            }
        }
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
        self.open_herd();
        for l in &s.links.near {
            let to = l.to as usize;
            let ear = &mut self.ears[to];
            if ear.gate & gate::CHANNEL != s.channel {
                continue;
            }
            ear.power -= l.power;
            let g = ear.gate;
            if g & (gate::RECEIVING | gate::ENERGY) == 0 {
                continue;
            }
            let end = s.end + u64::from(l.delay_ns);
            if g & gate::RECEIVING != 0 {
                match self.adapters[to].rx {
                    Some(rx) if rx.signal == id => self.finish_reception(to, &s, end, rx),
                    _ if g & gate::RECORDING != 0 => self.interfere(to, end),
                    _ => {}
                }
            }
            if self.ears[to].gate & gate::ENERGY != 0 {
                self.energy_falls(to, end);
            }
        }
        let mut concerned = std::mem::take(&mut self.concerned);
        let ears = self.ears.as_mut_slice();
        for l in &s.links.far {
            let ear = &mut ears[l.to as usize];
            if ear.gate & gate::CHANNEL == s.channel {
                ear.power -= u64::from(l.power);
                if ear.gate & (gate::RECORDING | gate::ENERGY) != 0 {
                    concerned.push(l.to);
                }
            }
        }
        for to in concerned.drain(..) {
            self.far_falls(to as usize, s.end);
        }
        self.concerned = concerned;
        self.signals.release(id);
        if s.what != OnAir::Noise {
            self.own_end(&s);
        }
        self.close_herd();
        if s.frame != NONE {
            self.drop_frame(s.frame);
        }
    }

    fn far_falls(&mut self, to: usize, at: u64) {
        if self.ears[to].gate & gate::RECORDING != 0 {
            self.interfere(to, at);
        }
        if self.ears[to].gate & gate::ENERGY != 0 {
            self.energy_falls(to, at);
        }
    }

    /// The medium was busy by energy, and the sum of powers may have fallen below the threshold.
    fn energy_falls(&mut self, to: usize, at: u64) {
        if self.ears[to].power < self.levels.energy {
            self.set_energy(to, false);
            let a = &mut self.adapters[to];
            a.idle_from = a.idle_from.max(at);
            self.settle(to);
        }
    }

    /// The transmitter after its own signal.
    fn own_end(&mut self, s: &Signal) {
        let tx = s.tx as usize;
        self.ears[tx].gate &= !gate::TRANSMITTING;
        self.relimit(tx);
        if self.ears[tx].power > self.ears[tx].limit {
            self.set_energy(tx, true);
            self.occupy(tx, s.end, 0);
        }
        self.sent(tx, s);
    }

    /// Retunes an adapter: what it was receiving is lost, and the powers of the new channel arrive. A frame that
    /// it is sending ends on the old channel.
    pub fn retune(&mut self, adapter: usize, mhz: u16, channel: u16) {
        self.adapters[adapter].mhz = mhz;
        self.antennas[adapter].mhz = mhz;
        let to = adapter as u32;
        let mut sum = 0;
        for id in &self.on_air {
            let s = &self.signals[*id];
            if s.channel == channel {
                sum += s.links.near.iter().find(|l| l.to == to).map_or(0, |l| l.power);
                let far = s.links.far.iter().find(|l| l.to == to);
                sum += far.map_or(0, |l| u64::from(l.power));
            }
        }
        let ear = &mut self.ears[adapter];
        ear.gate = (ear.gate & !gate::CHANNEL) | channel;
        ear.power = sum;
        let (now, energy) = (self.now, self.levels.energy);
        let a = &mut self.adapters[adapter];
        a.nav_until = 0;
        a.eifs_until = 0;
        a.idle_from = now.max(a.tx_until);
        let (busy, idle_from) = (a.carrier_sense && sum >= energy, a.idle_from);
        // what was counted down was counted on the other channel
        self.occupy(adapter, now, idle_from);
        self.set_energy(adapter, busy && self.ears[adapter].gate & gate::TRANSMITTING == 0);
        self.links.touch_frequency(to);
        self.lose_reception(adapter);
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
