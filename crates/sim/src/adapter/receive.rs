//! What comes in: NAV, responses, duplicates, indications.

use super::{Phase, Response, Rx, key};
use crate::core::{Core, Ev, NONE, Signal, gate};
use crate::host::Outcome as Ending;
use crate::trace::OnAir;
use frame::MacAddr;
use frame::mac::header::Header;

/// Entries of the table of received sequence numbers, per adapter.
const SEEN_LIMIT: usize = 64;

impl Core {
    /// A frame was received without error; it ended at `end`.
    pub(crate) fn received(&mut self, to: usize, s: &Signal, end: u64, rx: &Rx) {
        let a = &self.adapters[to];
        let for_us = a.answers_to(s.ra);
        let waiting = a.exchange.map(|x| x.phase);
        match (s.what, waiting) {
            (OnAir::Ack, Some(Phase::AwaitAck)) if for_us => return self.ack_came(to, end, rx.dbm),
            (OnAir::Cts, Some(Phase::AwaitCts)) if for_us => return self.cts_came(to, end),
            // anything else in place of the awaited response is a failure (IEEE 802.11-2016, 10.3.2.9)
            (_, Some(Phase::AwaitAck | Phase::AwaitCts)) => self.fail(to, end, Ending::AckCorrupt),
            _ => {}
        }
        match s.what {
            OnAir::Rts if for_us => self.answer_rts(to, s, end),
            OnAir::Frame => {
                let group = is_group(s.ra);
                if for_us && s.solicits && self.adapters[to].ack_generation {
                    self.plan_ack(to, s, end);
                }
                if for_us || group || self.adapters[to].promiscuous {
                    self.take_in(to, s, end, rx, for_us || group);
                }
                if !for_us && !group {
                    self.set_nav(to, s, end);
                }
            }
            OnAir::Ack | OnAir::Cts | OnAir::Rts if !for_us => self.set_nav(to, s, end),
            _ => {}
        }
    }

    /// A reception ended in an error at `end`.
    pub(crate) fn failed_reception(&mut self, to: usize, end: u64) {
        if let Some(x) = self.adapters[to].exchange
            && matches!(x.phase, Phase::AwaitAck | Phase::AwaitCts)
        {
            self.fail(to, end, Ending::AckCorrupt);
        }
    }

    #[inline]
    fn set_nav(&mut self, to: usize, s: &Signal, end: u64) {
        if s.duration_us == 0 {
            return;
        }
        let until = end + u64::from(s.duration_us) * 1_000;
        let a = &mut self.adapters[to];
        if a.virtual_carrier_sense && until > a.nav_until {
            a.nav_until = until;
            if a.carrier_sense {
                // the medium has been busy until now
                a.idle_from = a.idle_from.max(until);
            } else {
                self.occupy(to, end, until);
            }
            if s.what == OnAir::Rts {
                self.doubt_nav(to, s, end, until);
            }
        }
    }

    /// A NAV that an RTS has set may be given up if no frame begins within 2 SIFS + CTS + aPHY-RX-START-Delay +
    /// 2 slots (IEEE 802.11-2012, 9.3.2.4): the CTS or the frame behind it has failed.
    fn doubt_nav(&mut self, to: usize, s: &Signal, end: u64, until: u64) {
        let a = &mut self.adapters[to];
        let cts_us = frame::ppdu_us(
            frame::response_rate(s.rate, a.basic),
            frame::phy::ACK_OCTETS,
            a.phy.band,
        );
        let window_ns = 2 * (a.sifs_ns + a.slot_ns) + u64::from(cts_us + a.phy.rx_start_us) * 1_000;
        let at = end + window_ns;
        if at < until {
            a.rts_nav = (until, at);
            a.rts_heard = a.rx_start;
            self.at(at, Ev::NavReset(to as u32));
        }
    }

    /// The time of [`Core::doubt_nav`] has come.
    pub(crate) fn reset_nav(&mut self, to: usize) {
        let a = &self.adapters[to];
        let (until, at) = a.rts_nav;
        // what the RTS announced has begun, or something else has set the NAV or the doubt anew
        if at == self.now && a.nav_until == until && a.rts_heard == a.rx_start {
            self.forget_nav(to);
        }
    }

    /// The NAV is over now; the medium is idle unless something else holds it.
    pub(crate) fn forget_nav(&mut self, to: usize) {
        let now = self.now;
        let a = &mut self.adapters[to];
        let receiving = a.rx.map_or(0, |rx| if a.carrier_sense { rx.end } else { 0 });
        if a.idle_from == a.nav_until {
            a.idle_from = a.idle_from.min(now.max(a.tx_until).max(receiving));
        }
        a.nav_until = a.nav_until.min(now);
        self.settle(to);
    }

    fn plan_ack(&mut self, to: usize, s: &Signal, end: u64) {
        let from = self.adapters[s.tx as usize].address;
        let transmitter = self.transmitter(s).unwrap_or(from);
        let a = &mut self.adapters[to];
        let (rate, _) = a.ack(s.rate);
        let at = end + a.sifs_ns;
        a.response = Some(Response {
            at,
            rate,
            to: transmitter,
            cts_duration_us: None,
        });
        self.at(at, Ev::Respond(to as u32));
    }

    /// The transmitter address in the frame, which need not be the adapter's own.
    fn transmitter(&self, s: &Signal) -> Option<u64> {
        if s.frame == NONE {
            return None;
        }
        let octets = self.frames[s.frame].octets.get(10..16)?;
        Some(key(MacAddr(octets.try_into().ok()?)))
    }

    fn answer_rts(&mut self, to: usize, s: &Signal, end: u64) {
        let from = self.adapters[s.tx as usize].address;
        let a = &mut self.adapters[to];
        if a.nav_until > end {
            return;
        }
        let rate = frame::response_rate(s.rate, a.basic);
        let cts_us = frame::ppdu_us(rate, frame::phy::ACK_OCTETS, a.phy.band);
        let left = s.duration_us.saturating_sub(a.phy.sifs_us + cts_us);
        let at = end + a.sifs_ns;
        a.response = Some(Response {
            at,
            rate,
            to: from,
            cts_duration_us: Some(left),
        });
        self.at(at, Ev::Respond(to as u32));
    }

    /// Hands a frame to the host, unless it was received before and the host wants each only once.
    fn take_in(&mut self, to: usize, s: &Signal, end: u64, rx: &Rx, check: bool) {
        if check && s.retry && !self.adapters[to].repetitions && self.is_duplicate(to, s.frame) {
            self.adapters[to].counters.rx_duplicates += 1;
            return;
        }
        if check {
            self.remember(to, s.frame);
        }
        self.indicate(to, s, end, rx.start, rx.dbm);
    }

    fn sequence_key(&self, frame: u32) -> Option<(u64, u8, u16)> {
        let header = Header::parse(&self.frames[frame].octets).ok()?;
        Some((
            key(header.transmitter()?),
            header.tid().unwrap_or(16),
            header.sequence()?.0,
        ))
    }

    fn is_duplicate(&self, to: usize, frame: u32) -> bool {
        self.sequence_key(frame)
            .is_some_and(|k| self.adapters[to].seen.contains(&k))
    }

    /// Keeps the last sequence number per transmitter and TID (IEEE 802.11-2016, 10.3.2.11).
    fn remember(&mut self, to: usize, frame: u32) {
        let Some(k) = self.sequence_key(frame) else { return };
        let seen = &mut self.adapters[to].seen;
        match seen.iter_mut().find(|s| (s.0, s.1) == (k.0, k.1)) {
            Some(entry) => *entry = k,
            None => {
                if seen.len() == SEEN_LIMIT {
                    seen.remove(0);
                }
                seen.push(k);
            }
        }
    }

    /// Switches the receiver on or off.
    pub(crate) fn switch_reception(&mut self, to: usize, on: bool) {
        self.adapters[to].reception = on;
        if on {
            self.ears[to].gate &= !gate::DEAF;
        } else {
            self.ears[to].gate |= gate::DEAF;
            self.lose_reception(to);
        }
    }

    /// Switches physical carrier sense on or off.
    pub(crate) fn switch_carrier_sense(&mut self, to: usize, on: bool) {
        let now = self.now;
        let a = &mut self.adapters[to];
        a.carrier_sense = on;
        let transmitting = self.ears[to].gate & gate::TRANSMITTING != 0;
        let busy = on && !transmitting && self.ears[to].power >= self.levels.energy;
        if on {
            let until = a.rx.map_or(0, |rx| rx.end);
            if busy || until > now {
                self.occupy(to, now, until);
            }
        } else {
            a.idle_from = a.idle_from.min(now.max(a.tx_until).max(a.nav_until));
        }
        self.set_energy(to, busy);
        self.settle(to);
    }
}

fn is_group(ra: u64) -> bool {
    ra >> 40 & 1 != 0
}
