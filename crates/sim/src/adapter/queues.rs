//! Requests in the queues of an adapter: they arrive, are taken back, and leave with a confirm; resets.

use super::NEVER;
use crate::core::Core;
use crate::host::Outcome as Ending;
use radio::Outcome;

impl Core {
    /// A request leaves the adapter; its confirm sets out.
    pub(crate) fn complete(
        &mut self,
        to: usize,
        q: usize,
        id: u32,
        outcome: Outcome,
        at: u64,
        ending: Ending,
    ) {
        self.adapters[to].dcu[q].frames.remove(id, &mut self.frames);
        self.trace.step(
            at,
            3,
            u64::from(self.frames[id].node),
            self.frames[id].token.0 << 3 | outcome_code(outcome),
        );
        self.confirm(id, outcome, at, Some(ending));
    }

    /// The head of a queue is gone: the next frame, if there is one, takes its turn.
    pub(crate) fn next_head(&mut self, to: usize, q: usize) {
        let a = &self.adapters[to];
        if a.has_frame(q) && (a.active & (1 << q) == 0 || a.dcu[q].expiry <= self.now) {
            self.head(to, q);
        } else {
            self.settle(to);
        }
    }

    /// A request has come through the host to its queue.
    pub(crate) fn arrive(&mut self, id: u32) {
        let f = &mut self.frames[id];
        f.arrived = true;
        let to = f.adapter as usize;
        let q = f.how.queue.index();
        if f.aborted || self.adapters[to].gone {
            return self.confirm(id, Outcome::Aborted, self.now, None);
        }
        if self.adapters[to].dcu[q].frames.len() >= usize::from(self.adapters[to].queue_limit) {
            return self.confirm(id, Outcome::Refused(radio::Refusal::QueueFull), self.now, None);
        }
        if !self.adapters[to].takes_back {
            if self.is_expired(id) {
                return self.confirm(id, Outcome::Expired, self.now, None);
            }
            self.frames[id].how.expires = None;
        }
        self.adapters[to].dcu[q].frames.push_back(id, &mut self.frames);
        if self.adapters[to].dcu[q].frames.len() == 1 {
            let busy_with_it = self.adapters[to]
                .exchange
                .is_some_and(|x| usize::from(x.queue) == q);
            if !busy_with_it {
                self.head(to, q);
            }
        }
    }

    /// Takes a request back: at once if it waits, after the attempt that is on the air if there is one, on its
    /// arrival if it is still on its way. An adapter that takes nothing back goes on with what it has.
    pub(crate) fn abort(&mut self, id: u32) {
        let f = &mut self.frames[id];
        if f.arrived && !self.adapters[f.adapter as usize].takes_back {
            return;
        }
        f.aborted = true;
        if !f.arrived {
            return;
        }
        let (to, q) = (f.adapter as usize, f.how.queue.index());
        let in_exchange = self.adapters[to].exchange.is_some_and(|x| x.frame == id);
        if !in_exchange && self.adapters[to].dcu[q].frames.contains(id, &self.frames) {
            self.complete(to, q, id, Outcome::Aborted, self.now, Ending::Timeout);
        }
    }

    /// A reset of the adapter: what is queued is aborted, what is being received is lost, the TSF starts at 0.
    pub(crate) fn reset(&mut self, to: usize) {
        self.stop_timeout(to);
        self.adapters[to].exchange = None;
        for q in 0..5 {
            while let Some(id) = self.adapters[to].dcu[q].frames.front() {
                self.complete(to, q, id, Outcome::Aborted, self.now, Ending::Timeout);
            }
            let d = &mut self.adapters[to].dcu[q];
            (d.cw, d.base, d.expiry, d.txop_end) = (d.params.cw_min, NEVER, NEVER, 0);
        }
        let now = self.now;
        self.stop_reception(to);
        let a = &mut self.adapters[to];
        a.active = 0;
        a.response = None;
        a.nav_until = 0;
        a.eifs_until = 0;
        a.seen.clear();
        a.set_tsf(now, 0);
    }
}

fn outcome_code(outcome: Outcome) -> u64 {
    match outcome {
        Outcome::Acked => 0,
        Outcome::NotAcked => 1,
        Outcome::Refused(_) => 2,
        Outcome::Aborted => 3,
        Outcome::Expired => 4,
        Outcome::Unknown => 5,
    }
}
