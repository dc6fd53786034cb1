//! What can be said of EDF and TDMA without a run: whether the messages of a cycle can be in time with all the retries that the
//! losses ask for. A verdict may be PASS where this says no: it reckons with the worst of all messages at once, and with nothing
//! that is left to chance, such as shared slots.

use super::bench::Bench;
use super::facts::COST_QUANTILE;
use super::question::{Link, Scheme, Turn};
use super::text::time;
use protocols::mac::edf::feasible::{Stream, retries_for, sporadic};
use protocols::mac::tdma::admission::{Demand, Denied, fit};
use protocols::mac::tdma::schedule::TdmaPlan;
use radio::Duration;

/// Why nothing is admitted on some links.
const TOO_LOSSY: &str = "no number of attempts reaches the acceptable miss probability";

/// The answer of a test.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Admission {
    /// `slots` for TDMA, `sporadic` for EDF (the test of Jeffay, Stanat and Martel 1991).
    pub test: &'static str,
    /// All messages are in time if none needs more than `attempts`.
    pub admitted: bool,
    /// Attempts of a message (of an exchange with a node under EDF) that are reckoned with; `null` if no number reaches the
    /// acceptable miss probability.
    pub attempts: Option<u32>,
    /// If it is not admitted: why.
    pub reason: Option<String>,
    /// There is Wi-Fi of others, whose frames may take attempts beyond those that the losses of the links ask for.
    pub others: bool,
}

impl Admission {
    /// As a sentence for reports.
    pub fn sentence(&self) -> String {
        match (&self.reason, self.attempts) {
            (Some(reason), _) => format!("No guarantee: {reason}."),
            (None, n) => format!(
                "Guaranteed if no message needs more than {} attempt{}{}.",
                n.unwrap_or(1),
                if n == Some(1) { "" } else { "s" },
                if self.others {
                    ", and what others send may take some"
                } else {
                    ""
                }
            ),
        }
    }
}

/// Slots of each flow in a cycle, spread over it; `None`: rounds. Or why there are not enough.
pub(super) type Share = Result<Option<Vec<u16>>, String>;

impl Bench {
    /// The answer for a scheme; `None` for those that promise nothing, and for nodes that join, which are asked one by one.
    pub(super) fn admission(&self, scheme: Scheme) -> Option<Admission> {
        let cycle_ns = self.question.cycle_ns;
        let miss = self.question.miss;
        let (test, attempts, says) = match scheme.turn {
            Turn::Edf => {
                let attempts = retries_for(self.exchange_loss(scheme), miss).map(|n| n + 1);
                ("sporadic", attempts, self.polls(cycle_ns, attempts))
            }
            Turn::Tdma if !scheme.joins => {
                let attempts = retries_for(self.slot_loss(scheme), miss).map(|n| n + 1);
                let attempts = if scheme.left_on.acks {
                    attempts
                } else {
                    attempts.filter(|n| *n == 1)
                };
                let says = match attempts {
                    None => Err(TOO_LOSSY.into()),
                    Some(_) => self.share(scheme, cycle_ns).map(|_| ()),
                };
                ("slots", attempts, says)
            }
            _ => return None,
        };
        Some(Admission {
            test,
            admitted: says.is_ok(),
            attempts,
            reason: says.err(),
            others: self.question.interference.is_some(),
        })
    }

    /// Probability that a frame or its ACK is lost on an idle channel, on each of the adapters.
    fn frame_loss(&self, scheme: Scheme) -> f64 {
        let q = &self.question;
        let one = match q.link {
            Link::Per { data, ack } => 1.0 - (1.0 - data) * (1.0 - ack),
            Link::SnrDb(db) => crate::scenario::overlay::loss(q.rate, db, q.simulated_octets() as u32),
        };
        one.powi(scheme.adapters() as i32)
    }

    /// Of a frame in a slot, which fails if the host is late, too.
    fn slot_loss(&self, scheme: Scheme) -> f64 {
        1.0 - (1.0 - self.frame_loss(scheme)) * self.question.guard_probability
    }

    /// Of a poll with its answer.
    fn exchange_loss(&self, scheme: Scheme) -> f64 {
        1.0 - (1.0 - self.frame_loss(scheme)).powi(2) * COST_QUANTILE
    }

    /// Whether the exchanges with all nodes fit the cycle.
    fn polls(&self, cycle_ns: u64, attempts: Option<u32>) -> Result<(), String> {
        let Some(attempts) = attempts else {
            return Err(TOO_LOSSY.into());
        };
        let f = &self.facts;
        let done = f.exchange.p99_99_ns + self.foreign_wait_ns();
        let given_up = f.attempt.p99_99_ns + f.answer.p99_99_ns + self.foreign_wait_ns();
        let cost_ns = done + u64::from(attempts - 1) * given_up;
        // a poll goes out only if there is time for its attempt and its answer at their slowest, which together are slower than the
        // slowest whole: that is left of the cycle behind the last one
        let spare_ns = given_up.saturating_sub(done);
        let period_ns = cycle_ns.saturating_sub(spare_ns);
        let stream = Stream {
            period_ns,
            deadline_ns: period_ns,
            cost_ns,
            attempt_ns: cost_ns.min(done.max(given_up)),
        };
        let nodes = self.question.nodes;
        sporadic(&vec![stream; nodes as usize]).map_err(|_| {
            let plural = |n: u32| if n == 1 { "" } else { "s" };
            format!(
                "{nodes} exchange{} of up to {attempts} attempt{} take{} up to {}, more than the cycle",
                plural(nodes),
                plural(attempts),
                if nodes == 1 { "s" } else { "" },
                time((u64::from(nodes) * cost_ns + spare_ns) as f64)
            )
        })
    }

    /// The slots of each flow in a cycle; worked out once.
    pub(super) fn share(&self, scheme: Scheme, cycle_ns: u64) -> Share {
        let key = (scheme, cycle_ns);
        if let Some(known) = self.shares().get(&key) {
            return known.clone();
        }
        let share = match self.question.nodes {
            ..=30 => self.share_of::<128>(scheme, cycle_ns),
            31..=120 => self.share_of::<512>(scheme, cycle_ns),
            _ => self.share_of::<1024>(scheme, cycle_ns),
        };
        self.shares().insert(key, share.clone());
        share
    }

    fn share_of<const S: usize>(&self, scheme: Scheme, cycle_ns: u64) -> Share {
        let plain: TdmaPlan<S> = self.rounds_only(scheme, cycle_ns).map_err(|e| e.to_string())?;
        let flows = self.flows();
        let cycle = Duration::from_ns(cycle_ns);
        let heard = Duration::from_ns(self.facts.indication.p99_99_ns);
        // without ACKs nobody knows what to repeat
        let per = if scheme.left_on.acks {
            self.slot_loss(scheme)
        } else {
            0.0
        };
        let demands: Vec<_> = (0u32..)
            .zip(&flows)
            .map(|(i, flow)| Demand {
                backlog: 0,
                flow: *flow,
                period: cycle,
                // the application has it once the host has handed it up
                deadline: cycle.less(heard),
                phase: Some(Duration::from_ns(self.question.offset_ns(i / 2 + 1, cycle_ns))),
                per,
                target: self.question.miss,
            })
            .collect();
        // one message of each flow in a cycle, and there is room for all of them
        match fit(&plain, &demands, heard, usize::MAX) {
            Ok(plan) if plan.is_spread() => {
                let slots = (0..flows.len() as u16).map(|f| plan.slots_of(f) as u16);
                Ok(Some(slots.collect()))
            }
            Ok(_) => Ok(None),
            Err(denied) => Err(self.words(denied)),
        }
    }

    fn words(&self, denied: Denied) -> String {
        let Some(flow) = denied.flow() else {
            return denied.to_string();
        };
        let node = flow / 2 + 1;
        match flow % 2 {
            0 => format!("controller to node {node}: {denied}"),
            _ => format!("node {node} to controller: {denied}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::replicate;
    use super::super::question::{Offsets, Question};
    use super::*;

    fn bench(nodes: u32, offsets: Offsets, data: f64) -> Bench {
        let q = Question {
            nodes,
            offsets,
            miss: 1e-3,
            host: sim::host::Profile::built_in("ideal").unwrap(),
            link: Link::Per { data, ack: 0.0 },
            ..Question::example()
        };
        Bench::new(&q).unwrap()
    }

    /// What fits by far is admitted, and what does not is not, with the numbers.
    #[test]
    fn few_nodes_are_admitted_and_many_are_not() {
        let none = Offsets::None;
        for (scheme, many) in [(Scheme::EDF, "exchanges"), (Scheme::TDMA, "no room")] {
            let few = bench(4, none, 0.0).admission(scheme).unwrap();
            assert_eq!(
                (few.admitted, few.attempts, few.reason),
                (true, Some(1), None),
                "{scheme}"
            );
            let lossy = bench(4, none, 0.05).admission(scheme).unwrap();
            assert!(lossy.attempts > few.attempts, "{lossy:?}");
            let denied = bench(14, none, 0.05).admission(scheme).unwrap();
            assert!(!denied.admitted && denied.reason.unwrap().contains(many));
        }
        assert_eq!(bench(4, none, 0.0).admission(Scheme::EDCA), None);
        let deaf = Scheme::parse("tdma-acks").unwrap();
        let denied = bench(2, none, 0.05).admission(deaf).unwrap();
        assert!(!denied.admitted, "nothing is repeated without ACKs: {denied:?}");
    }

    /// The shortest cycle that is admitted holds, with hosts that scatter, too: a poll goes out only if there is time for its attempt and its
    /// answer at their slowest, which is more than the whole at its slowest.
    #[test]
    fn polls_that_just_fit_are_made() {
        for (host, nodes, octets) in [
            ("table4-baseline-io", 1, 50),
            ("table4-optimised-idle", 2, 50),
            ("table5", 1, 1_500),
        ] {
            let q = Question {
                nodes,
                payload_octets: octets,
                miss: 1e-2,
                host: sim::host::Profile::built_in(host).unwrap(),
                link: Link::Per { data: 0.0, ack: 0.0 },
                ..Question::example()
            };
            let b = Bench::new(&q).unwrap();
            let admitted = |us: &u64| b.polls(1_000 * us, Some(1)).is_ok();
            let us = (200..2_000).find(admitted).unwrap();
            let t = replicate(&b, Scheme::EDF, 5, 1_000 * us, 1_000, 1);
            let (trials, misses) = (t.batches.trials(), t.batches.misses());
            assert_eq!(trials, 2_000 * u64::from(nodes), "{host}");
            // each of its parts is beyond its quantile once in 10,000
            assert!(
                misses * 1_000 <= trials,
                "{host}: {misses} of {trials} at {us} us"
            );
        }
    }

    /// Releases all over the cycle need slots that follow them, and get some where there is room: then none is missed.
    #[test]
    fn offsets_are_served() {
        let b = bench(6, Offsets::Even, 0.0);
        let admission = b.admission(Scheme::TDMA).unwrap();
        assert!(admission.admitted, "{admission:?}");
        let t = replicate(&b, Scheme::TDMA, 5, 4_000_000, 300, 1);
        assert_eq!(
            (t.batches.trials(), t.batches.misses()),
            (3_600, 0),
            "{:?}",
            t.causes
        );
    }
}
