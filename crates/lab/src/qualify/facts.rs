//! What follows from the question before anything is simulated: what one exchange costs on this host at this rate,
//! drawn from the host model many times.

use super::question::{Link, Question};
use protocols::mac::edf::poll::POLL_OCTETS;
use sim::host::{HostModel, Outcome, Wait};
use sim::rng::{Cause, Stream};

/// Draws behind each quantile ...
const DRAWS: usize = 50_000;
/// ... and beyond that of the guard, at least.
const BEYOND: f64 = 5.0;
/// The quantile that protocols reckon with: rarer latencies count as lost and are tried again.
pub(super) const COST_QUANTILE: f64 = crate::guard::USUAL;

/// A length of time with its spread, ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Spread {
    /// Smallest of the draws.
    pub min_ns: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Standard deviation.
    pub sd_ns: f64,
    /// 99.9th percentile.
    pub p99_9_ns: u64,
    /// 99.99th percentile.
    pub p99_99_ns: u64,
    /// The quantile that the guard of slots covers ([`Question::guard_probability`]).
    pub guarded_ns: u64,
}

impl Spread {
    fn of(draws: Vec<u64>, guard: f64) -> Spread {
        let s = crate::stats::Sorted::new(draws);
        let q = |p| s.quantile(p).unwrap_or(0);
        Spread {
            min_ns: q(0.0),
            mean_ns: s.mean().unwrap_or(0.0),
            sd_ns: s.sd().unwrap_or(0.0),
            p99_9_ns: q(0.999),
            p99_99_ns: q(COST_QUANTILE),
            guarded_ns: q(guard),
        }
    }
}

/// What things cost.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// Airtime of a data frame of EDCA and TDMA, ns.
    pub data_ns: u64,
    /// SIFS and ACK, ns.
    pub ack_ns: u64,
    /// From the indication of a poll to the first bit of its answer.
    pub reply: Spread,
    /// From the moment for which a sleeping program set its timer to the first bit on an idle medium.
    pub wake: Spread,
    /// From the last bit of a frame to the program that waits for it.
    pub indication: Spread,
    /// An acknowledged poll, from request to confirm.
    pub attempt: Spread,
    /// From the confirm of a poll to its answer.
    pub answer: Spread,
    /// A poll with its answer, until the next poll can be requested.
    pub exchange: Spread,
    /// Probability that a data frame, and that its ACK, is lost on an idle channel; `None` if the SNR decides.
    pub losses: Option<(f64, f64)>,
}

impl Facts {
    pub(super) fn new(q: &Question, host: &HostModel) -> Facts {
        let us = |x: u32| u64::from(x) * 1_000;
        let (pifs, difs) = (us(q.phy.pifs_us()), us(q.phy.difs_us()));
        let octets = q.simulated_octets();
        let (data_ns, poll_ns, ack_ns) = (q.data_ns(0), q.data_ns(POLL_OCTETS), q.ack_ns());
        let mut random = Stream::new(q.seed, 0, Cause::Host);
        let count = DRAWS.max((BEYOND / (1.0 - q.guard_probability)) as usize);
        let mut draws: [Vec<u64>; 6] = std::array::from_fn(|_| Vec::with_capacity(count));
        for _ in 0..count {
            let poll = host.sample_request(&mut random, octets + POLL_OCTETS);
            let polled = poll.total_ns() + poll_ns;
            let acked = polled + ack_ns;
            let confirm = host.sample_confirm(&mut random, poll.load, Outcome::Acked);
            let confirmed = acked + confirm.total_ns();
            let heard = polled + host.sample_indication(&mut random).total_ns();
            let reply = host.sample_request(&mut random, octets + POLL_OCTETS);
            let answered = (heard + reply.total_ns()).max(acked + difs) + poll_ns;
            let indication = host.sample_indication(&mut random).total_ns();
            let known = (answered + indication).max(confirmed);
            // the ACK of the answer and PIFS may still be on the air when the next request arrives
            let wait = (answered + ack_ns + pifs).saturating_sub(known + poll.total_ns());
            let lateness = host.sample_lateness_ns(&mut random, Wait::Sleep);
            let values = [
                answered - poll_ns - heard,
                lateness + poll.total_ns(),
                indication,
                confirmed + wait,
                known - confirmed,
                known + wait,
            ];
            draws.iter_mut().zip(values).for_each(|(d, v)| d.push(v));
        }
        let [reply, wake, indication, attempt, answer, exchange] =
            draws.map(|d| Spread::of(d, q.guard_probability));
        Facts {
            data_ns,
            ack_ns,
            reply,
            wake,
            indication,
            attempt,
            answer,
            exchange,
            losses: match q.link {
                Link::Per { data, ack } => Some((data, ack)),
                Link::SnrDb(_) => None,
            },
        }
    }

    /// Failed exchanges in a cycle that are to be reckoned with: the smallest k such that more than k of `trials`
    /// fail with a probability of at most `target`. `also` is the probability of failures that are not losses.
    pub(super) fn retries(&self, trials: u32, target: f64, also: f64) -> u32 {
        let ok = self.losses.map_or(1.0, |(data, ack)| (1.0 - data) * (1.0 - ack));
        let p = 1.0 - ok * (1.0 - also);
        let mut term = libm::pow(1.0 - p, f64::from(trials));
        let mut sum = term;
        let mut k = 0;
        while 1.0 - sum > target && k < trials {
            term *= f64::from(trials - k) / f64::from(k + 1) * p / (1.0 - p);
            sum += term;
            k += 1;
        }
        k
    }

    /// Shortest cycle that EDF needs for `nodes` exchanges, ns: all of them on average, a normal quantile of their
    /// spread, the retries of [`Facts::retries`], and for the last one the time that it must have left to begin.
    pub(super) fn edf_cycle_ns(&self, nodes: u32, target: f64) -> u64 {
        let n = f64::from(nodes);
        // 4 deviations are passed once in 30,000
        let all = n * self.exchange.mean_ns + 4.0 * n.sqrt() * self.exchange.sd_ns;
        let give_up = (self.attempt.p99_99_ns + self.answer.p99_99_ns) as f64;
        let failed = f64::from(self.retries(2 * nodes, target, 0.0)) * give_up;
        (all + failed + (give_up - self.exchange.mean_ns).max(0.0)) as u64
    }

    /// Time on the air that no scheme can do without: all data frames with their ACKs and SIFS between them, ns.
    pub(super) fn least_cycle_ns(&self, nodes: u32) -> u64 {
        2 * u64::from(nodes) * (self.data_ns + self.ack_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(profile: &str) -> Facts {
        let q = Question {
            host: sim::host::Profile::built_in(profile).unwrap(),
            ..Question::example()
        };
        Facts::new(&q, &HostModel::new(&q.host).unwrap())
    }

    /// 50 octets at 54 Mb/s: 36 us, also with the six octets of a poll; ACK at 24 Mb/s 28 us after SIFS.
    #[test]
    fn an_ideal_host_costs_airtime_and_spaces() {
        let f = facts("ideal");
        assert_eq!((f.data_ns, f.ack_ns), (36_000, 44_000));
        // the answer waits for DIFS after the ACK, the next poll for PIFS after that of the answer
        assert_eq!(f.exchange.mean_ns, 36e3 + 44e3 + 34e3 + 36e3 + 44e3 + 25e3);
        assert_eq!((f.wake.p99_99_ns, f.reply.p99_99_ns), (0, 44_000 + 34_000));
        assert_eq!(f.least_cycle_ns(8), 16 * 80_000);
    }

    /// Table V: T_SDMAC has a mean of 42.483 us.
    #[test]
    fn the_paper_s_host_adds_its_latency() {
        let f = facts("table5");
        // 80 us on the air, and what is left of ACK and PIFS (69 us) when the next request arrives
        let latency = f.attempt.mean_ns - 80e3;
        assert!((42.4e3..42.6e3 + 69e3).contains(&latency), "{latency}");
        assert!(f.attempt.p99_99_ns > f.attempt.p99_9_ns);
        let n8 = f.edf_cycle_ns(8, 1e-4);
        assert!(n8 as f64 > 8.0 * f.exchange.mean_ns, "{n8}");
        assert!(f.edf_cycle_ns(16, 1e-4) > n8);
    }

    #[test]
    fn retries_cover_the_target() {
        let mut f = facts("ideal");
        f.losses = Some((0.1, 0.0));
        // scipy.stats.binom.sf(k, 16, 0.1): k = 7 gives 6.4e-5, k = 6 gives 5.0e-4
        assert_eq!(f.retries(16, 1e-4, 0.0), 7);
        f.losses = Some((0.0, 0.0));
        assert_eq!(f.retries(16, 1e-4, 0.0), 0);
        f.losses = None;
        assert_eq!(f.retries(16, 1e-4, 0.0), 0);
        assert_eq!(f.retries(16, 1e-4, 0.1), 7);
    }
}
