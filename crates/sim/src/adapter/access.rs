//! When to send: interframe spaces, backoff, freezing, immediate access, internal collisions
//! (IEEE 802.11-2016, 10.3.4 and 10.22.2).
//!
//! A queue counts down between `base` (the end of its interframe space) and `expiry`. When the medium turns busy
//! the slots that have passed are taken off; while it is busy both times follow from `idle_from`, the time from
//! which on the medium counts as idle by all that is known. The adapter has one timer; it may fire too early, never
//! too late, because busy periods only ever push an expiry back. `Core::armed` says when it fires. It is an event of
//! its own, or, after a signal whose end has set the timers of many, one entry of a herd.

use super::herd::Gathered;
use super::{Immediate, NEVER, WindowOnDrop};
use crate::core::{Core, Ev};

impl Core {
    /// The medium of adapter `to` is busy from `onset` until `until` at least. Slots that were counted before `onset`
    /// are taken off; a countdown that ends by `onset` is not stopped any more. The end of the busy period must call
    /// [`Core::settle`].
    pub(crate) fn occupy(&mut self, to: usize, onset: u64, until: u64) {
        let a = &mut self.adapters[to];
        if onset >= a.idle_from {
            (a.busy_from, a.idle_before) = (onset, a.idle_from);
        }
        a.idle_from = a.idle_from.max(until);
        let mut stays = false;
        let mut left = a.active;
        while left != 0 {
            let q = left.trailing_zeros() as usize;
            left &= left - 1;
            let slot = a.slot_ns;
            let d = &mut a.dcu[q];
            // what is past recall, or has not begun, keeps its timer
            stays |= d.expiry <= onset || onset <= d.base;
            if d.expiry <= onset {
                if d.frames.is_empty() {
                    // its backoff has run out before
                    a.active &= !(1 << q);
                }
                continue;
            }
            if d.immediate {
                d.immediate = false;
                if a.rules.immediate == Immediate::AtOnce {
                    d.backoff = a.backoff_stream.below(u64::from(d.cw) + 1) as u32;
                }
            } else if onset > d.base {
                let passed = onset - d.base;
                // a countdown rarely has more than 2^32 ns behind it, and short divisions are faster
                let passed = match u32::try_from(passed) {
                    Ok(passed) => passed / slot as u32,
                    Err(_) => (passed / slot) as u32,
                };
                d.backoff -= passed.min(d.backoff);
            }
            (d.base, d.expiry) = (NEVER, NEVER);
        }
        if !stays {
            self.armed[to] = NEVER;
        }
    }

    /// Works out anew when the countdowns that have not begun will begin and end, and sets the timer.
    pub(crate) fn settle(&mut self, to: usize) {
        let now = self.now;
        let a = &mut self.adapters[to];
        let idle_from = a.idle_from.max(a.eifs_until);
        let mut next = NEVER;
        let mut left = a.active;
        while left != 0 {
            let q = left.trailing_zeros() as usize;
            left &= left - 1;
            let d = &mut a.dcu[q];
            // neither begun nor past recall when the medium turned busy
            if d.base > now && d.expiry > a.busy_from {
                if a.energy {
                    (d.base, d.expiry) = (NEVER, NEVER);
                    continue;
                }
                let space = a.sifs_ns + u64::from(d.params.aifsn) * a.slot_ns;
                let mut base = (idle_from + space).max(d.from);
                if a.rules.countdown_at_space_end && d.backoff > 0 {
                    base -= a.slot_ns.min(base);
                }
                d.base = base;
                d.expiry = base + u64::from(d.backoff) * a.slot_ns;
            }
            if !d.frames.is_empty() {
                next = next.min(d.expiry);
            }
        }
        if next < self.armed[to] {
            self.set_timer(to, next);
        }
    }

    /// Sets the adapter's timer if it would fire too late.
    pub(crate) fn arm(&mut self, to: usize) {
        let a = &self.adapters[to];
        let mut next = NEVER;
        let mut left = a.active;
        while left != 0 {
            let d = &a.dcu[left.trailing_zeros() as usize];
            left &= left - 1;
            if !d.frames.is_empty() {
                next = next.min(d.expiry);
            }
        }
        if next < self.armed[to] {
            self.set_timer(to, next);
        }
    }

    fn set_timer(&mut self, to: usize, at: u64) {
        let a = &mut self.adapters[to];
        if a.exchange.is_some() {
            return;
        }
        if let Some(h) = a.timer.take() {
            self.queue.cancel(h);
        }
        // a countdown that was over before it was known goes off now
        let at = at.max(self.now);
        self.armed[to] = at;
        if self.herds.is_gathering() {
            self.herds.join(at, to as u32);
        } else {
            self.adapters[to].timer = Some(self.at(at, Ev::Access(to as u32)));
        }
    }

    /// The adapter's own timer.
    pub(crate) fn alarm(&mut self, to: usize) {
        self.adapters[to].timer = None;
        if self.armed[to] == self.now {
            self.access(to);
        }
    }

    /// From here on timers are gathered, until [`Core::close_herd`].
    pub(crate) fn open_herd(&mut self) {
        self.herds.open();
    }

    /// The timers that were gathered become one event at the first of them.
    pub(crate) fn close_herd(&mut self) {
        match self.herds.close() {
            Gathered::Nothing => {}
            Gathered::One(at, to) => self.adapters[to as usize].timer = Some(self.at(at, Ev::Access(to))),
            Gathered::Herd(at, id) => {
                self.at(at, Ev::Herd(id));
            }
        }
    }

    /// The first timers of a herd: those that still hold go off, the others are forgotten.
    pub(crate) fn herd(&mut self, id: u32) {
        let now = self.now;
        let members = self.herds.take(id);
        for &(at, to) in &members {
            if at == now && self.armed[to as usize] == now {
                self.access(to as usize);
            }
        }
        if let Some(next) = self.herds.put_back(id, members, now, &self.armed) {
            self.at(next, Ev::Herd(id));
        }
    }

    /// A timer of the adapter: sends if a countdown has ended.
    fn access(&mut self, to: usize) {
        let now = self.now;
        self.armed[to] = NEVER;
        let a = &mut self.adapters[to];
        if a.exchange.is_some() {
            return;
        }
        // a response goes first; without carrier sense a reception in progress is waited for
        let blocked = match (&a.response, &a.rx) {
            (Some(r), _) => r.at + u64::from(a.ack_memo.2) * 1_000,
            // it is over when its signal has ended at all receivers
            (None, Some(rx)) if !a.carrier_sense => {
                let s = &self.signals[rx.signal];
                s.end + u64::from(s.links.max_delay_ns)
            }
            _ => 0,
        }
        .max(a.tx_until);
        if blocked > now {
            let mut left = a.active;
            while left != 0 {
                let d = &mut a.dcu[left.trailing_zeros() as usize];
                left &= left - 1;
                if d.expiry < blocked {
                    d.expiry = blocked;
                }
            }
            return self.arm(to);
        }
        let ready = |q: &usize| a.active & (1 << q) != 0 && a.dcu[*q].expiry <= now && a.has_frame(*q);
        let Some(winner) = (0..5).rev().find(ready) else {
            return self.arm(to);
        };
        let losers: u8 = (0..winner).filter(ready).map(|q| 1 << q).sum();
        let mut left = losers;
        while left != 0 {
            let q = left.trailing_zeros() as usize;
            left &= left - 1;
            self.widen(to, q);
            self.draw(to, q, now);
        }
        self.begin(to, winner);
    }

    /// Doubles the contention window of a queue.
    pub(crate) fn widen(&mut self, to: usize, q: usize) {
        let d = &mut self.adapters[to].dcu[q];
        d.cw =
            d.cw.saturating_mul(2)
                .saturating_add(1)
                .min(d.params.cw_max.max(d.params.cw_min));
    }

    /// Draws a backoff; its countdown begins after the next interframe space, not before `from`.
    pub(crate) fn draw(&mut self, to: usize, q: usize, from: u64) {
        let a = &mut self.adapters[to];
        let d = &mut a.dcu[q];
        d.backoff = a.backoff_stream.below(u64::from(d.cw) + 1) as u32;
        d.immediate = false;
        d.from = from;
        d.base = NEVER;
        d.expiry = NEVER;
        a.active |= 1 << q;
    }

    /// Contention window after a success, or after a drop (`after_drop`).
    pub(crate) fn narrow(&mut self, to: usize, q: usize, after_drop: bool) {
        let a = &mut self.adapters[to];
        let keep = a.rules.window_on_drop == WindowOnDrop::Keep;
        let d = &mut a.dcu[q];
        if !after_drop || !keep {
            d.cw = d.params.cw_min;
            d.failures = 0;
        }
    }

    /// A frame has come to the head of queue `q`.
    pub(crate) fn head(&mut self, to: usize, q: usize) {
        let now = self.now;
        let a = &mut self.adapters[to];
        if a.active & (1 << q) != 0 && a.dcu[q].expiry > now {
            // the backoff after the last frame is still running
            return self.arm(to);
        }
        // a busy period that is detected but not yet noticed does not count
        let unnoticed = now < a.busy_from;
        let busy = a.carrier_sense && !unnoticed && (a.energy || now < a.idle_from)
            || now < a.nav_until
            || a.exchange.is_some()
            || a.tx_until > now;
        if busy {
            self.draw(to, q, now);
            return self.settle(to);
        }
        let space = a.sifs_ns + u64::from(a.dcu[q].params.aifsn) * a.slot_ns;
        let idle_from = if unnoticed { a.idle_before } else { a.idle_from };
        let idle_from = idle_from.max(a.eifs_until);
        let start = match a.rules.immediate {
            Immediate::AtOnce => now.max(idle_from + space),
            Immediate::AfterSpaceFromArrival => now.max(idle_from) + space,
        };
        let d = &mut a.dcu[q];
        d.backoff = 0;
        d.immediate = true;
        d.from = now;
        (d.base, d.expiry) = (start, start);
        a.active |= 1 << q;
        if start <= now {
            // no timer: it is now
            return if a.rx.is_some() && !a.carrier_sense || a.response.is_some() {
                self.arm(to)
            } else {
                self.begin(to, q)
            };
        }
        self.arm(to);
    }
}

#[cfg(test)]
mod tests {
    use crate::adapter::{Adapter, AdapterConfig, NEVER};
    use crate::core::{Core, Ear};
    use crate::medium::MediumConfig;
    use frame::{MacAddr, Phy};

    /// A core with one adapter that counts down 5 slots on queue 1 from t = 34 us on.
    fn counting() -> Core {
        let mut core = Core::new(&MediumConfig::default(), 1);
        let config = AdapterConfig::station(MacAddr::local(1), Phy::A, 5180, false);
        core.adapters.push(Adapter::new(&config, 0, 0, 0, 1));
        core.ears.push(Ear::default());
        core.armed.push(NEVER);
        let d = &mut core.adapters[0].dcu[1];
        d.backoff = 5;
        let id = core.frames.take(crate::node::blank_frame);
        d.frames.push_back(id, &mut core.frames);
        core.adapters[0].active = 2;
        core.settle(0);
        core
    }

    #[test]
    fn freezing_takes_off_whole_slots() {
        let mut core = counting();
        assert_eq!(
            (core.adapters[0].dcu[1].base, core.adapters[0].dcu[1].expiry),
            (34_000, 79_000)
        );
        core.now = 34_000 + 26_000;
        core.occupy(0, core.now, 100_000);
        core.settle(0);
        let d = &core.adapters[0].dcu[1];
        assert_eq!((d.backoff, d.base, d.expiry), (3, 134_000, 134_000 + 27_000));
        // busy again during the interframe space: nothing more is taken off
        core.now = 120_000;
        core.occupy(0, 120_000, 300_000);
        core.settle(0);
        assert_eq!(core.adapters[0].dcu[1].backoff, 3);
        assert_eq!(core.adapters[0].dcu[1].expiry, 334_000 + 27_000);
    }

    #[test]
    fn a_committed_countdown_is_not_stopped() {
        let mut core = counting();
        core.now = 75_000;
        core.occupy(0, 79_000, 200_000);
        core.settle(0);
        assert_eq!(core.adapters[0].dcu[1].expiry, 79_000);
        let mut core = counting();
        core.now = 75_000;
        core.occupy(0, 78_999, 200_000);
        core.settle(0);
        assert_eq!(core.adapters[0].dcu[1].expiry, 234_000 + 9_000);
    }

    #[test]
    fn energy_has_no_known_end() {
        let mut core = counting();
        core.now = 50_000;
        core.adapters[0].energy = true;
        core.occupy(0, 50_000, 0);
        core.settle(0);
        assert_eq!(core.adapters[0].dcu[1].expiry, NEVER);
        core.adapters[0].energy = false;
        core.adapters[0].idle_from = 70_000;
        core.now = 70_000;
        core.settle(0);
        assert_eq!(core.adapters[0].dcu[1].expiry, 104_000 + 4 * 9_000);
    }

    #[test]
    fn eifs_after_an_error() {
        let mut core = counting();
        core.now = 40_000;
        core.occupy(0, 40_000, 100_000);
        core.adapters[0].eifs_until = 100_000 + 60_000;
        core.settle(0);
        assert_eq!(core.adapters[0].dcu[1].base, 100_000 + 94_000);
        // EIFS runs from the end of the bad frame, whatever else keeps the medium busy
        core.adapters[0].idle_from = 400_000;
        core.settle(0);
        assert_eq!(core.adapters[0].dcu[1].base, 400_000 + 34_000);
    }

    /// A draw of zero is past recall too, although its countdown begins only now.
    #[test]
    fn a_committed_draw_of_zero_is_not_stopped() {
        let mut core = counting();
        core.adapters[0].dcu[1].backoff = 0;
        core.settle(0);
        core.now = 30_000;
        core.occupy(0, 34_000, 200_000);
        core.settle(0);
        assert_eq!(core.adapters[0].dcu[1].expiry, 34_000);
    }
}
