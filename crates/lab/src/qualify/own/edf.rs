//! What EDF counts: the layer that orders requests by their deadlines, and the node that polls the others by theirs.

use super::super::text::count;
use super::{Counts, Tells};
use protocols::mac::edf::coordinator::Coordinator;
use protocols::mac::edf::responder::Responder;
use protocols::mac::edf::{Edf, EdfCounters};
use radio::Protocol;

/// What became of attempts and of requests, in all runs and with their warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct EdfNumbers {
    /// Attempts handed down.
    pub attempts: u64,
    /// Of these, failed: no ACK, no slot before the deadline, or a reset of the adapter.
    pub failed: u64,
    /// Requests acknowledged.
    pub acked: u64,
    /// Requests dropped, because another attempt could not have ended by their deadline.
    pub dropped: u64,
    /// Requests given up after their last attempt.
    pub exhausted: u64,
    /// Attempts whose confirm did not come in the time that others wait for it.
    pub silent: u64,
    /// Of the attempts, retries that the pool did not pay for; 0 where there is none.
    pub unpaid: u64,
}

/// What became of polls, in all runs and with their warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct PollNumbers {
    /// Exchanges that the controller opened: one for each node and cycle.
    pub exchanges: u64,
    /// Frames that it handed down: polls, data, and both in one.
    pub attempts: u64,
    /// Of these, polls whose answer did not come in time.
    pub timeouts: u64,
    /// Frames of the controller and answers of nodes whose confirm did not come in the time that is waited for it.
    pub silent: u64,
    /// Messages to nodes that were given up, because another attempt could not have ended by their deadline.
    pub down_dropped: u64,
    /// Answers that were given up for the same reason.
    pub up_dropped: u64,
    /// Exchanges that ended with an answer without a message.
    pub empty: u64,
    /// Answers that came again, or after their exchange had ended.
    pub late_or_again: u64,
    /// Polls that a node heard and left alone, because its answer before had no confirm yet.
    pub busy: u64,
    /// Messages of nodes that gave way to a fresher one ...
    pub replaced: u64,
    /// ... and that were too old when their turn came.
    pub expired: u64,
}

/// Sums of what polls count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Polls {
    exchanges: u64,
    attempts: u64,
    timeouts: u64,
    silent: u64,
    down_missed: u64,
    up_missed: u64,
    empty: u64,
    late_or_again: u64,
    busy: u64,
    replaced: u64,
    expired: u64,
}

impl Polls {
    pub(super) fn merge(&mut self, other: &Polls) {
        self.exchanges += other.exchanges;
        self.attempts += other.attempts;
        self.timeouts += other.timeouts;
        self.silent += other.silent;
        self.down_missed += other.down_missed;
        self.up_missed += other.up_missed;
        self.empty += other.empty;
        self.late_or_again += other.late_or_again;
        self.busy += other.busy;
        self.replaced += other.replaced;
        self.expired += other.expired;
    }
}

pub(super) fn add(sum: &mut EdfCounters, other: &EdfCounters) {
    sum.attempts += other.attempts;
    sum.failed += other.failed;
    sum.unpaid += other.unpaid;
    sum.acked += other.acked;
    sum.dropped += other.dropped;
    sum.exhausted += other.exhausted;
    sum.silent += other.silent;
}

impl<P: Protocol, const N: usize, const L: usize> Tells for Edf<P, N, L> {
    fn tell(&self, counts: &mut Counts) {
        add(&mut counts.ordered, self.counters());
    }
}

impl<const N: usize, const L: usize> Tells for Coordinator<N, L> {
    fn tell(&self, counts: &mut Counts) {
        let c = self.counters();
        counts.polls.merge(&Polls {
            exchanges: c.exchanges,
            attempts: c.confirms.total(),
            timeouts: c.timeouts,
            silent: c.silent,
            down_missed: c.down_missed,
            up_missed: c.up_missed,
            empty: c.up_empty,
            late_or_again: c.late_or_again,
            ..Polls::default()
        });
    }
}

impl<const L: usize> Tells for Responder<L> {
    fn tell(&self, counts: &mut Counts) {
        let c = self.counters();
        counts.polls.merge(&Polls {
            busy: c.busy,
            silent: c.silent,
            replaced: c.replaced,
            expired: c.expired,
            ..Polls::default()
        });
    }
}

/// `, 3 such and 4 such`: those that are not zero.
fn listed(all: &[(u64, &str)]) -> String {
    let some = all.iter().filter(|(n, _)| *n > 0);
    some.map(|(n, what)| format!(", {} {what}", count(*n))).collect()
}

impl EdfNumbers {
    pub(super) fn of(c: &EdfCounters) -> EdfNumbers {
        EdfNumbers {
            attempts: c.attempts,
            failed: c.failed,
            acked: c.acked,
            dropped: c.dropped,
            exhausted: c.exhausted,
            silent: c.silent,
            unpaid: c.unpaid,
        }
    }

    pub(super) fn sentence(&self) -> String {
        let attempts = listed(&[
            (self.failed, "failed"),
            (self.unpaid, "beyond the pool of retries"),
            (self.silent, "not waited for any longer"),
        ]);
        let requests = listed(&[
            (
                self.dropped,
                "dropped since no other attempt would have been in time",
            ),
            (self.exhausted, "given up after their last attempt"),
        ]);
        format!(
            "Attempts by deadline: {}{attempts}; messages acknowledged: {}{requests}.",
            count(self.attempts),
            count(self.acked)
        )
    }
}

impl PollNumbers {
    pub(super) fn of(p: &Polls) -> PollNumbers {
        PollNumbers {
            exchanges: p.exchanges,
            attempts: p.attempts,
            timeouts: p.timeouts,
            silent: p.silent,
            down_dropped: p.down_missed,
            up_dropped: p.up_missed,
            empty: p.empty,
            late_or_again: p.late_or_again,
            busy: p.busy,
            replaced: p.replaced,
            expired: p.expired,
        }
    }

    pub(super) fn sentence(&self) -> String {
        let polls = listed(&[
            (self.timeouts, "without an answer in time"),
            (self.silent, "without a status in time, answers included"),
            (self.busy, "that found a node busy"),
            (self.late_or_again, "answered twice or too late"),
        ]);
        let dropped = listed(&[
            (self.down_dropped, "messages to nodes dropped"),
            (self.up_dropped, "answers given up"),
            (self.empty, "answers without a message"),
            (self.replaced, "messages of nodes replaced by fresher ones"),
            (self.expired, "too old when their turn came"),
        ]);
        let (frames, exchanges) = (count(self.attempts), count(self.exchanges));
        format!("Polls and data of the controller: {frames} frames{polls}; {exchanges} exchanges{dropped}.")
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::question::Link;
    use super::super::tests::{CLEAN, told};

    /// Each message has an exchange; where a tenth is lost, about as many polls more.
    #[test]
    fn polls_are_counted_by_what_became_of_them() {
        let (o, t) = told("edf", CLEAN);
        let p = o.polls.unwrap();
        assert!(o.edf.is_none() && o.own_slots.is_none());
        assert!(p.exchanges > 0 && p.attempts >= p.exchanges, "{p:?}");
        assert_eq!((p.down_dropped, p.replaced, p.empty), (0, 0, 0), "{p:?} {t:?}");
        let lossy = told("edf", Link::Per { data: 0.1, ack: 0.0 }).0;
        let l = lossy.polls.unwrap();
        assert_eq!(l.exchanges, p.exchanges);
        let more = l.attempts as f64 / p.attempts as f64;
        assert!((1.1..1.4).contains(&more) && l.timeouts > 0, "{l:?}");
        let said = lossy.sentences().join(" ");
        assert!(said.contains("without an answer in time"), "{said}");
    }

    /// Each message is acknowledged or dropped, or under way at the end; and every failed attempt was another lost frame.
    #[test]
    fn attempts_by_deadline_are_counted_by_what_became_of_them() {
        let (o, _) = told("tdma+edf", CLEAN);
        let e = o.edf.unwrap();
        assert!(o.polls.is_none());
        assert!(e.acked > 2_000 && e.failed * 100 < e.attempts, "{e:?}");
        assert_eq!((e.exhausted, e.unpaid), (0, 0), "{e:?}");
        let lossy = told("tdma+edf", Link::Per { data: 0.1, ack: 0.0 }).0;
        let l = lossy.edf.unwrap();
        let failed = l.failed as f64 / l.attempts as f64;
        assert!((0.07..0.13).contains(&failed), "{l:?}");
        assert!(l.attempts >= l.acked + l.failed, "{l:?}");
        let said = lossy.sentences().join(" ");
        assert!(
            said.starts_with("Attempts by deadline: ") && said.contains(" failed"),
            "{said}"
        );
        assert!(told("tdma", CLEAN).0.edf.is_none());
    }
}
