//! What overlays count of their own in a run, its warm-up included: how long hosts of a cell waited for a slot, what came too late
//! for its slot, which copies were sent for nothing, which rates were chosen, and what became of attempts under EDF.

mod edf;
mod numbers;

pub use edf::{EdfNumbers, PollNumbers};
pub use numbers::{CellNumbers, CopyNumbers, OwnSlots, RateShare};

use super::air::share;
use super::bench::Bench;
use super::question::{Rule, Scheme, Turn};
use super::tally::{Spread, Tally};
use super::text::percent;
use frame::Rate;
use protocols::mac::edf::EdfCounters;
use protocols::mac::redundancy::{Redundancy, RedundancyCounters};
use protocols::mac::slotted::Slotted;
use protocols::mac::tbmac::Tbmac;
use protocols::mac::tdma::Tdma;
use radio::{Event, Instant, Protocol, Radio};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Sums over the nodes of a world, and over worlds.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Frames of messages that were to go in slots.
    pub due: u64,
    /// Of these, too late for theirs.
    pub late: u64,
    /// Of those that were late for slots of one node, sent in a later one.
    carried: u64,
    /// Rounds without a slot, of each host of a cell.
    without: Spread,
    /// Hosts that never had one.
    never: u64,
    /// Times that hosts asked for one ...
    asked: u64,
    /// ... and gave one up.
    given_up: u64,
    copies: RedundancyCounters,
    /// Of the layer that orders by deadline.
    pub ordered: EdfCounters,
    /// Of polling.
    polls: edf::Polls,
    /// Frames with messages at each rate.
    pub rates: BTreeMap<Rate, u64>,
}

impl Counts {
    pub(super) fn merge(&mut self, other: &Counts) {
        self.due += other.due;
        self.late += other.late;
        self.carried += other.carried;
        self.without.merge(&other.without);
        self.never += other.never;
        self.asked += other.asked;
        self.given_up += other.given_up;
        self.add(&other.copies);
        edf::add(&mut self.ordered, &other.ordered);
        self.polls.merge(&other.polls);
        for (rate, frames) in &other.rates {
            *self.rates.entry(*rate).or_default() += frames;
        }
    }

    fn add(&mut self, other: &RedundancyCounters) {
        let c = &mut self.copies;
        for adapter in 0..2 {
            c.copies[adapter] += other.copies[adapter];
            c.acked[adapter] += other.acked[adapter];
            c.first[adapter] += other.first[adapter];
        }
        c.spared += other.spared;
        c.cancelled += other.cancelled;
        c.no_room += other.no_room;
        c.dropped += other.dropped;
    }
}

/// Where the nodes of a world add theirs at its end.
pub(super) type Sum = Rc<RefCell<Counts>>;

/// An overlay that has numbers of its own.
pub(super) trait Tells: Protocol {
    /// Adds them.
    fn tell(&self, counts: &mut Counts);
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Tells for Tdma<P, N, L, S> {
    fn tell(&self, counts: &mut Counts) {
        let c = self.counters();
        counts.due += c.released + c.overruns;
        counts.late += c.late + c.overruns;
    }
}

impl<P: Protocol, const S: usize, const N: usize, const L: usize> Tells for Tbmac<P, S, N, L> {
    fn tell(&self, counts: &mut Counts) {
        let c = self.counters();
        counts.due += c.released + c.overruns;
        counts.late += c.late + c.overruns;
        counts.without.push(c.without);
        counts.never += u64::from(c.granted == 0);
        counts.asked += c.asked;
        counts.given_up += c.lost;
    }
}

impl<P: Protocol, const N: usize, const L: usize> Tells for Slotted<P, N, L> {
    fn tell(&self, counts: &mut Counts) {
        let c = self.counters();
        counts.due += c.released + c.overruns;
        counts.late += c.overruns;
        counts.carried += c.carried;
    }
}

impl<P: Protocol, const N: usize, const L: usize, const S: usize> Tells for Redundancy<P, N, L, S> {
    fn tell(&self, counts: &mut Counts) {
        counts.add(self.counters());
    }
}

/// A node that tells its numbers at its end.
pub(super) struct Counted<P: Tells> {
    pub inner: Box<P>,
    pub sum: Sum,
}

impl<P: Tells> Protocol for Counted<P> {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        self.inner.handle(now, event, radio);
    }
    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
}

impl<P: Tells> Drop for Counted<P> {
    fn drop(&mut self) {
        self.inner.tell(&mut self.sum.borrow_mut());
    }
}

/// Numbers of the overlays of a scheme; `null` where it has no such overlay, or nothing was run.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Overlay {
    /// Of TBMAC.
    pub cell: Option<CellNumbers>,
    /// Of slots of one node.
    pub own_slots: Option<OwnSlots>,
    /// Of two adapters.
    pub copies: Option<CopyNumbers>,
    /// Of EDF within a node.
    pub edf: Option<EdfNumbers>,
    /// Of EDF by polls.
    pub polls: Option<PollNumbers>,
    /// Of rate control: the rates of the frames with messages, the fastest first.
    pub rates: Option<Vec<RateShare>>,
}

impl Overlay {
    pub(super) fn of(bench: &Bench, scheme: Scheme, tally: &Tally) -> Overlay {
        let o = &tally.own;
        let late_share = share(o.late, o.due);
        let cell = (scheme.turn == Turn::Tbmac).then(|| {
            let rounds = bench.rounds(scheme);
            CellNumbers {
                round_ns: rounds.length().as_ns(),
                slots: rounds.slots(),
                hosts: o.without.count(),
                without_p50_rounds: o.without.quantile_ns(0.5).unwrap_or(0),
                without_max_rounds: o.without.max_ns().unwrap_or(0),
                never: o.never,
                asked: share(o.asked, o.without.count()),
                given_up: o.given_up,
                late_share,
            }
        });
        let own_slots = (scheme.turn == Turn::Slotted).then(|| OwnSlots {
            node_ns: bench.question.cycle_ns,
            controller_ns: bench.question.cycle_ns / u64::from(bench.question.nodes),
            late_share,
            carried_share: share(o.carried, o.late),
        });
        let c = &o.copies;
        let arrived = c.first[0] + c.first[1];
        let copies = scheme.is_redundant().then(|| CopyNumbers {
            sent: c.copies,
            acked: c.acked,
            cancelled: c.cancelled,
            spared: c.spared,
            no_room: c.no_room,
            first_share: c.first.map(|first| share(first, arrived)),
            dropped: c.dropped,
        });
        let frames = o.rates.values().sum();
        let rate = |(rate, n): (&Rate, &u64)| RateShare {
            rate: rate.to_string(),
            share: share(*n, frames),
        };
        let rates = || o.rates.iter().rev().map(rate).collect();
        let was_run = tally.cycles > 0;
        Overlay {
            cell: cell.filter(|_| was_run),
            own_slots: own_slots.filter(|_| was_run),
            copies: copies.filter(|_| was_run),
            edf: (was_run && scheme.ordered).then(|| EdfNumbers::of(&o.ordered)),
            polls: (was_run && scheme.turn == Turn::Edf).then(|| PollNumbers::of(&o.polls)),
            rates: (was_run && scheme.rule != Rule::Fixed).then(rates),
        }
    }

    /// Each in a sentence or two.
    pub(super) fn sentences(&self) -> Vec<String> {
        let cell = self.cell.map(|c| c.sentence());
        let slots = self.own_slots.map(|s| s.sentence());
        let copies = self.copies.map(|c| c.sentence());
        let edf = self.edf.map(|e| e.sentence());
        let polls = self.polls.map(|p| p.sentence());
        let rates = self.rates.as_ref().map(|all| {
            let mut all: Vec<_> = all.iter().collect();
            all.sort_by(|a, b| b.share.total_cmp(&a.share));
            let told = all
                .iter()
                .take(4)
                .map(|r| format!("{} {}", r.rate, percent(r.share)));
            format!(
                "Rates of frames with messages: {}.",
                told.collect::<Vec<_>>().join(", ")
            )
        });
        [cell, slots, copies, edf, polls, rates]
            .into_iter()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::replicate;
    use super::super::question::{Link, Question};
    use super::*;

    pub(super) fn told(scheme: &str, link: Link) -> (Overlay, Tally) {
        let scheme = Scheme::parse(scheme).unwrap();
        let q = Question {
            nodes: 4,
            cycle_ns: 20_000_000,
            link,
            schemes: vec![scheme],
            ..Question::example()
        };
        let bench = Bench::new(&q).unwrap();
        let mut tally = Tally::default();
        (0..3).for_each(|seed| tally.merge(&replicate(&bench, scheme, seed, q.cycle_ns, 100, 1)));
        (Overlay::of(&bench, scheme, &tally), tally)
    }

    pub(super) const CLEAN: Link = Link::Per { data: 0.0, ack: 0.0 };

    /// Five hosts in three worlds: a request takes two rounds at least, and who asked at once asks again. Those that found a cell
    /// together may have to give up what they took.
    #[test]
    fn hosts_of_a_cell_tell_how_long_they_waited() {
        let (o, _) = told("tbmac", CLEAN);
        let c = o.cell.unwrap();
        assert_eq!((c.hosts, c.slots, c.never), (15, 16, 0), "{c:?}");
        assert!(c.given_up < 15, "{c:?}");
        assert!((2..=100).contains(&c.without_p50_rounds), "{c:?}");
        assert!(
            c.without_max_rounds >= c.without_p50_rounds && c.without_max_rounds < 100,
            "{c:?}"
        );
        assert!(c.asked >= 0.8, "{c:?}");
        assert!(o.own_slots.is_none() && o.copies.is_none() && o.rates.is_none());
        let said = o.sentences().join(" ");
        assert!(
            said.starts_with("Rounds of ") && !said.contains("never"),
            "{said}"
        );
    }

    #[test]
    fn slots_of_one_node_tell_what_was_late() {
        let s = told("slotted", CLEAN).0.own_slots.unwrap();
        assert_eq!((s.node_ns, s.controller_ns), (20_000_000, 5_000_000));
        assert!((0.0..0.01).contains(&s.late_share), "{s:?}");
    }

    /// Each message has two copies, of which a tenth is lost; the second one to arrive is dropped. Who waits for an ACK sends few.
    #[test]
    fn copies_are_counted_by_what_became_of_them() {
        let lossy = || Link::Per { data: 0.1, ack: 0.0 };
        let (o, t) = told("redundancy", lossy());
        let c = o.copies.unwrap();
        let messages = t.batches.trials() + 3 * 2 * 4 * (4 + 1);
        assert_eq!(c.sent, [messages; 2], "{c:?}");
        assert!((c.first_share[0] + c.first_share[1] - 1.0).abs() < 1e-12, "{c:?}");
        assert!(c.dropped > messages * 8 / 10 && c.dropped <= messages, "{c:?}");
        let few = told("proactive", lossy()).0.copies.unwrap();
        assert!(
            few.sent[1] * 5 < few.sent[0] && few.spared > messages / 2,
            "{few:?}"
        );
        let back = told("reactive", lossy()).0.copies.unwrap();
        assert!(back.cancelled > 0 && c.cancelled == 0, "{back:?}");
    }

    /// Nobody acknowledges a frame of a cell, which is no failure; and above slots of its own an attempt takes a slot.
    #[test]
    fn deadlines_above_turns_repeat_nothing() {
        for scheme in ["tbmac", "slotted"] {
            let (_, plain) = told(scheme, CLEAN);
            let (o, ordered) = told(&format!("{scheme}+edf"), CLEAN);
            let c = o.edf.unwrap();
            assert_eq!(ordered.batches.misses(), plain.batches.misses(), "{scheme}");
            assert!(
                ordered.batches.trials() * 98 / 100 <= c.attempts,
                "{scheme}: {c:?}"
            );
            assert!(
                c.attempts <= ordered.batches.trials() * 13 / 10,
                "{scheme}: {c:?}"
            );
            assert_eq!((c.failed, c.silent), (0, 0), "{scheme}: {c:?}");
        }
    }

    /// On a weak link slow rates, on a strong one the fastest.
    #[test]
    fn rates_that_were_chosen_are_told() {
        for scheme in ["rsin", "minstrel"] {
            let share = |db, rate: &str| {
                let rates = told(scheme, Link::SnrDb(db)).0.rates.unwrap();
                let sum: f64 = rates.iter().map(|r| r.share).sum();
                assert!((sum - 1.0).abs() < 1e-9, "{rates:?}");
                rates.iter().find(|r| r.rate == rate).map_or(0.0, |r| r.share)
            };
            let (strong, weak) = (share(40.0, "54M"), share(14.0, "54M"));
            println!("{scheme}: {strong} {weak}");
            assert!(strong > 0.3 && weak < strong / 4.0, "{scheme}: {strong} {weak}");
        }
        assert!(told("edca", Link::SnrDb(40.0)).0.rates.is_none());
    }
}
