//! Frame exchanges of the originator: RTS, data, what is waited for, retries, and their end.

use super::{Exchange, Phase, Response, WindowOnDrop};
use crate::core::{Core, Decoding, Ev, NONE, Signal, gate};
use crate::host::Outcome as Ending;
use crate::trace::OnAir;
use frame::mac::Header;
use frame::phy::{ACK_OCTETS, RTS_OCTETS};
use frame::{Rate, airtime, ppdu_us};
use radio::{Outcome, RtsPolicy};
use std::rc::Rc;

/// The octets of an ACK, CTS or RTS without FCS.
pub(crate) fn control_octets(s: &Signal, transmitter: u64, out: &mut Vec<u8>) {
    let kind = match s.what {
        OnAir::Ack => 0xd4,
        OnAir::Cts => 0xc4,
        _ => 0xb4,
    };
    out.clear();
    out.extend_from_slice(&[kind, 0]);
    out.extend_from_slice(&(s.duration_us.min(32_767) as u16).to_le_bytes());
    out.extend_from_slice(&super::address(s.ra).0);
    if s.what == OnAir::Rts {
        out.extend_from_slice(&super::address(transmitter).0);
    }
}

impl Core {
    /// Channel access is won: the exchange of the head of queue `q` begins now.
    pub(crate) fn begin(&mut self, to: usize, q: usize) {
        let id = loop {
            match self.adapters[to].dcu[q].frames.front() {
                None => return self.settle(to),
                Some(id) if self.is_expired(id) => {
                    self.complete(to, q, id, Outcome::Expired, self.now, Ending::Timeout);
                }
                Some(id) => break id,
            }
        };
        let (start, now) = (self.now, self.now);
        let f = &self.frames[id];
        let (octets, rts, individual) = (f.octets.len() as u32 + 4, f.how.rts, f.awaits);
        let a = &mut self.adapters[to];
        a.active &= !(1 << q);
        a.dcu[q].immediate = false;
        let needs_rts = individual
            && match rts {
                RtsPolicy::Always => true,
                RtsPolicy::Never => false,
                RtsPolicy::Threshold => octets > u32::from(a.rts_threshold),
            };
        let limit = u64::from(a.dcu[q].params.txop_us) * 1_000;
        a.dcu[q].txop_end = now + limit;
        let phase = if needs_rts {
            Phase::SendingRts
        } else {
            Phase::Sending
        };
        a.exchange = Some(Exchange {
            queue: q as u8,
            frame: id,
            phase,
            timeout: None,
            start,
        });
        if needs_rts {
            self.send_rts(to, id)
        } else {
            self.send_frame(to, q, id)
        }
    }

    pub(crate) fn is_expired(&self, id: u32) -> bool {
        let f = &self.frames[id];
        let clock = &self.nodes[f.node as usize].clock;
        f.how.expires.is_some_and(|t| clock.show(self.now) > t.as_ns())
    }

    /// Rate of the next attempt and the duration of its PPDU, us.
    fn timing(&mut self, to: usize, id: u32) -> (Rate, u32) {
        let band = self.adapters[to].phy.band;
        let f = &mut self.frames[id];
        let rate = f.how.series.at(f.attempts).map_or(f.timing.0, |(_, s)| s.rate);
        if f.timing.0 != rate || f.timing.1 == 0 {
            f.timing = (rate, ppdu_us(rate, f.octets.len() as u32 + 4, band));
        }
        f.timing
    }

    fn send_rts(&mut self, to: usize, id: u32) {
        let (rate, us) = self.timing(to, id);
        let a = &mut self.adapters[to];
        let (_, ack_us) = a.ack(rate);
        let rts_rate = frame::response_rate(rate, a.basic);
        let band = a.phy.band;
        let cts_us = ppdu_us(rts_rate, ACK_OCTETS, band);
        let duration_us = 3 * a.phy.sifs_us + cts_us + us + ack_us;
        let end = self.now + u64::from(ppdu_us(rts_rate, RTS_OCTETS, band)) * 1_000;
        let ra = self.frames[id].ra;
        let s = self.signal(OnAir::Rts, to, NONE, rts_rate, end);
        self.emit(Signal {
            ra,
            duration_us,
            octets: RTS_OCTETS,
            solicits: true,
            awaits: true,
            ..s
        });
    }

    fn send_frame(&mut self, to: usize, q: usize, id: u32) {
        let (rate, us) = self.timing(to, id);
        let (now, sifs) = (self.now, self.adapters[to].phy.sifs_us);
        let (_, ack_us) = self.adapters[to].ack(rate);
        let f = &mut self.frames[id];
        // who repeats a frame as a new request sets the bit itself
        let retry = f.attempts > 0 || Header::parse(&f.octets).is_ok_and(|h| h.is_retry());
        f.attempts += 1;
        f.users += 1;
        let (ra, octets) = (f.ra, f.octets.len() as u32 + 4);
        let (solicits, awaits, is_beacon) = (f.solicits, f.awaits, f.is_beacon);
        let duration_us = if solicits { sifs + ack_us } else { 0 };
        let tsf_us = if is_beacon {
            self.adapters[to].tsf_us(now + airtime::timestamp_ns(rate))
        } else {
            0
        };
        let a = &mut self.adapters[to];
        a.counters.tx_frames += 1;
        if let Some(x) = &mut a.exchange {
            (x.phase, x.start) = (Phase::Sending, now);
        }
        debug_assert_eq!(a.exchange.map(|x| usize::from(x.queue)), Some(q));
        let s = self.signal(OnAir::Frame, to, id, rate, now + u64::from(us) * 1_000);
        self.emit(Signal {
            ra,
            duration_us,
            octets,
            retry,
            solicits,
            awaits,
            tsf_us,
            ..s
        });
    }

    fn signal(&self, what: OnAir, tx: usize, frame: u32, rate: Rate, end: u64) -> Signal {
        Signal {
            what,
            tx: tx as u32,
            frame,
            rate,
            channel: 0,
            start: self.now,
            end,
            ra: 0,
            duration_us: 0,
            octets: 0,
            retry: false,
            solicits: false,
            awaits: false,
            tsf_us: 0,
            decoding: Decoding::default(),
            links: Rc::clone(&self.no_links),
        }
    }

    /// A response after SIFS: ACK, or CTS if it has a duration.
    pub(crate) fn respond(&mut self, to: usize) {
        let Some(Response {
            rate,
            to: ra,
            cts_duration_us,
            ..
        }) = self.adapters[to].response.take_if(|r| r.at == self.now)
        else {
            return;
        };
        if self.ears[to].gate & gate::TRANSMITTING != 0 {
            return;
        }
        let us = ppdu_us(rate, ACK_OCTETS, self.adapters[to].phy.band);
        self.adapters[to].counters.tx_responses += 1;
        let what = if cts_duration_us.is_some() {
            OnAir::Cts
        } else {
            OnAir::Ack
        };
        let s = self.signal(what, to, NONE, rate, self.now + u64::from(us) * 1_000);
        let duration_us = cts_duration_us.unwrap_or(0);
        self.emit(Signal {
            ra,
            duration_us,
            octets: ACK_OCTETS,
            ..s
        });
    }

    /// A signal of this adapter has left it completely.
    pub(crate) fn sent(&mut self, to: usize, s: &Signal) {
        let Some(mut x) = self.adapters[to].exchange else {
            return self.settle(to);
        };
        let ours = match (s.what, x.phase) {
            (OnAir::Rts, Phase::SendingRts) => true,
            (OnAir::Frame, Phase::Sending) => s.frame == x.frame,
            _ => false,
        };
        if !ours {
            return self.settle(to);
        }
        if s.what == OnAir::Frame {
            self.frames[x.frame].exchange = Some((x.start, s.end));
        }
        if s.awaits {
            x.phase = if s.what == OnAir::Rts {
                Phase::AwaitCts
            } else {
                Phase::AwaitAck
            };
            x.timeout = Some(self.at(s.end + self.adapters[to].ack_timeout_ns, Ev::Timeout(to as u32)));
            self.adapters[to].exchange = Some(x);
        } else {
            self.adapters[to].exchange = None;
            let q = usize::from(x.queue);
            self.narrow(to, q, false);
            self.complete(to, q, x.frame, Outcome::NotAcked, s.end, Ending::Timeout);
            if !self.stay_in_txop(to, q, s.end) {
                self.draw(to, q, 0);
                self.next_head(to, q);
            }
        }
    }

    /// The ACK timeout: a failure, unless something is being received; then its end decides
    /// (IEEE 802.11-2016, 10.3.2.9).
    pub(crate) fn timeout(&mut self, to: usize) {
        let receiving = self.ears[to].gate & gate::RECEIVING != 0;
        let Some(x) = &mut self.adapters[to].exchange else {
            return;
        };
        x.timeout = None;
        if !receiving {
            self.fail(to, self.now, Ending::Timeout);
        }
    }

    /// What was awaited came: the CTS.
    pub(crate) fn cts_came(&mut self, to: usize, end: u64) {
        self.stop_timeout(to);
        let sifs = self.adapters[to].sifs_ns;
        if let Some(x) = &mut self.adapters[to].exchange {
            x.phase = Phase::Cleared;
        }
        self.at(end + sifs, Ev::Continue(to as u32));
    }

    /// SIFS after a CTS, or inside a TXOP, is over.
    pub(crate) fn go_on(&mut self, to: usize) {
        let Some(x) = self.adapters[to].exchange else {
            return;
        };
        let begins = x.phase == Phase::Pause;
        if !begins && x.phase != Phase::Cleared {
            return;
        }
        let q = usize::from(x.queue);
        // behind a CTS the exchange has begun with its RTS
        if begins && self.is_expired(x.frame) {
            self.adapters[to].exchange = None;
            self.complete(to, q, x.frame, Outcome::Expired, self.now, Ending::Timeout);
            self.draw(to, q, 0);
            return self.next_head(to, q);
        }
        self.send_frame(to, q, x.frame);
    }

    /// What was awaited came: the ACK, so strong.
    pub(crate) fn ack_came(&mut self, to: usize, end: u64, dbm: i8) {
        self.stop_timeout(to);
        let Some(x) = self.adapters[to].exchange.take() else {
            return;
        };
        let q = usize::from(x.queue);
        let f = &mut self.frames[x.frame];
        f.exchange = Some((x.start, end));
        f.ack_dbm = self.adapters[to].ack_signal.then_some(dbm);
        self.adapters[to].counters.tx_acked += 1;
        self.narrow(to, q, false);
        self.complete(to, q, x.frame, Outcome::Acked, end, Ending::Acked);
        if self.stay_in_txop(to, q, end) {
            return;
        }
        self.draw(to, q, 0);
        self.next_head(to, q);
    }

    /// Inside a TXOP the next frame follows after SIFS if its exchange still fits (IEEE 802.11-2016, 10.22.2.7).
    fn stay_in_txop(&mut self, to: usize, q: usize, end: u64) -> bool {
        let d = &self.adapters[to].dcu[q];
        let Some(id) = d.frames.front() else { return false };
        if d.params.txop_us == 0 || self.is_expired(id) {
            return false;
        }
        let (rate, us) = self.timing(to, id);
        let a = &mut self.adapters[to];
        let (_, ack_us) = a.ack(rate);
        let answer = if self.frames[id].solicits {
            u64::from(ack_us) * 1_000 + a.sifs_ns
        } else {
            0
        };
        let start = end + a.sifs_ns;
        if start + u64::from(us) * 1_000 + answer > a.dcu[q].txop_end {
            return false;
        }
        let phase = Phase::Pause;
        a.exchange = Some(Exchange {
            queue: q as u8,
            frame: id,
            phase,
            timeout: None,
            start,
        });
        a.active &= !(1 << q);
        self.at(start, Ev::Continue(to as u32));
        true
    }

    pub(crate) fn stop_timeout(&mut self, to: usize) {
        let timeout = self.adapters[to].exchange.as_mut().and_then(|x| x.timeout.take());
        if let Some(h) = timeout {
            self.queue.cancel(h);
        }
    }

    /// What was awaited did not come: known at `at`.
    pub(crate) fn fail(&mut self, to: usize, at: u64, ending: Ending) {
        self.stop_timeout(to);
        let Some(x) = self.adapters[to].exchange.take() else {
            return;
        };
        let q = usize::from(x.queue);
        let a = &mut self.adapters[to];
        a.dcu[q].txop_end = 0;
        a.dcu[q].failures += 1;
        if a.rules.space_after_timeout {
            a.idle_from = a.idle_from.max(at);
        }
        let keep = a.rules.window_on_drop == WindowOnDrop::Keep;
        let f = &mut self.frames[x.frame];
        if x.phase == Phase::AwaitCts {
            f.rts_failures += 1;
        } else {
            f.exchange = Some((x.start, at));
        }
        let tries = f.how.series.attempts();
        let used_up = f.attempts.max(f.rts_failures) >= tries;
        let over = used_up || f.aborted;
        // by count, CWmax is reached after log2((CWmax + 1) / (CWmin + 1)) failures and left one later
        let p = self.adapters[to].dcu[q].params;
        let doublings = (u32::from(p.cw_max) + 1).ilog2() - (u32::from(p.cw_min) + 1).ilog2();
        if keep && u32::from(self.adapters[to].dcu[q].failures) > doublings + 1 {
            self.narrow(to, q, false);
        } else if !over || keep {
            self.widen(to, q);
        }
        if over {
            self.narrow(to, q, true);
            let outcome = if used_up {
                Outcome::NotAcked
            } else {
                Outcome::Aborted
            };
            self.complete(to, q, x.frame, outcome, at, ending);
        }
        self.draw(to, q, at);
        if over {
            self.next_head(to, q)
        } else {
            self.settle(to)
        }
    }
}
