//! Flows of one node to the same other one, over networks that nobody would build.

use super::*;
use crate::transport::atp::{Macroflow, idle_multiplier};

/// Octets of the stream that one flow carries before the next one does.
const TURN: usize = 3_000;

/// Connections that share a rate and carry one stream by turns. The last octet of a datagram says whose it is.
struct Several {
    ends: Vec<End>,
    flows: Macroflow,
    written: usize,
    read: usize,
    /// Answers that one of two who asked for a rate beside its data has brought into their mean.
    answers: u32,
}

struct Marked<'a>(&'a mut dyn Path, u8);

impl Path for Marked<'_> {
    fn request(&mut self, datagram: &[u8]) {
        self.0.request(&[datagram, &[self.1]].concat());
    }
}

impl Several {
    fn new(end: usize, seed: u64, count: usize) -> Several {
        let make = |n: usize| {
            let [caller, listener] = ends(seed.wrapping_add(n as u64), &Config::sdmac());
            [caller, listener].into_iter().nth(end).unwrap()
        };
        Several {
            ends: (0..count).map(make).collect(),
            flows: Macroflow::default(),
            written: 0,
            read: 0,
            answers: 0,
        }
    }

    fn turn(&mut self, n: usize, now: Instant, event: Event<'_>, path: &mut dyn Path) {
        let Some(end) = self.ends.get_mut(n) else {
            return;
        };
        let found_hz = match event {
            Event::Indication(datagram) if end.rate.probe_at().is_some() && !end.rate.is_searching() => {
                let answer = Header::parse(datagram).ok().map(|(header, _)| header);
                let answer =
                    answer.filter(|h| h.is_feedback() && h.control.has(Control::SACK_REQ) && h.delay_us > 0);
                answer.map(|h| 1e6 / (f64::from(h.delay_us) * idle_multiplier(h.hops)))
            }
            _ => None,
        };
        let before_hz = self.flows.hz;
        let path = &mut Marked(path, n as u8);
        end.handle_among(now, event, path, n as u64, &mut self.flows);
        let members = self.flows.members.iter().flatten().count();
        if let Some(found_hz) = found_hz.filter(|_| members == 2) {
            let mean_hz = f64::midpoint(before_hz, found_hz);
            self.answers += u32::from((self.flows.hz / mean_hz - 1.0).abs() < 1e-6);
        }
        assert!(members <= self.ends.len());
        assert!(members == 0 || self.flows.hz.is_normal() && self.flows.hz < 1e7);
    }
}

impl Transport for Several {
    fn handle(&mut self, now: Instant, event: Event<'_>, path: &mut dyn Path) {
        match event {
            Event::Start => (0..self.ends.len()).for_each(|n| self.turn(n, now, Event::Start, path)),
            Event::Indication(datagram) => {
                let (n, datagram) = datagram.split_last().unwrap();
                self.turn((*n).into(), now, Event::Indication(datagram), path);
            }
            Event::Timer => {
                let due = |n: &usize| self.ends[*n].deadline().is_some_and(|at| at <= now);
                if let Some(n) = (0..self.ends.len())
                    .filter(due)
                    .min_by_key(|n| self.ends[*n].deadline())
                {
                    self.turn(n, now, Event::Timer, path);
                }
            }
        }
        if matches!(self.state(), State::Failed(_)) {
            self.abort(now);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.ends.iter().filter_map(End::deadline).min()
    }

    fn write(&mut self, now: Instant, octets: &[u8]) -> usize {
        let (turn, n) = (TURN - self.written % TURN, self.written / TURN % self.ends.len());
        let taken = self.ends[n].write(now, &octets[..octets.len().min(turn)]);
        self.written += taken;
        taken
    }

    fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        let (turn, n) = (TURN - self.read % TURN, self.read / TURN % self.ends.len());
        let most = out.len().min(turn);
        let n = self.ends[n].read(now, &mut out[..most]);
        self.read += n;
        n
    }

    fn is_exhausted(&self) -> bool {
        self.ends.iter().all(End::is_exhausted)
    }

    fn finish(&mut self, now: Instant) {
        self.ends.iter_mut().for_each(|end| end.finish(now));
    }

    fn abort(&mut self, now: Instant) {
        self.ends.iter_mut().for_each(|end| end.abort(now));
    }

    fn state(&self) -> State {
        let states = || self.ends.iter().map(End::state);
        let failed = states().find(|s| matches!(s, State::Failed(_)));
        let all = |which: fn(&State) -> bool| states().all(|s| which(&s));
        match failed {
            Some(failed) => failed,
            None if all(|s| *s == State::Listening) => State::Listening,
            None if all(|s| *s == State::Closed) => State::Closed,
            None if all(|s| matches!(s, State::Closed | State::Lingering)) => State::Lingering,
            None => State::Open,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// As [`any_network`] for one flow: every octet once and in order, or a failure that is told, in bounded time.
    #[test]
    fn any_network_has_several(
        seed: u64,
        links in [any_link(300), any_link(300)],
        octets in [0usize..200_000, 0usize..20_000],
        count in 2usize..4,
        slow: bool,
        jump in 0..20 * SECOND,
    ) {
        let reads = slow.then_some((5_000, 3_000));
        let works = octets.map(|octets| Work { octets, reads });
        let [there, back] = links;
        let [first, second] = works;
        let end = |n| Several::new(n, seed, count);
        let mut n = Network::new(seed, [(end(0), there, first), (end(1), back, second)]);
        let mut over = n.run_until(4 * SECOND);
        n.jump(0, jump);
        over = over || n.run_until(3_000 * SECOND);
        let states = [0, 1].map(|end| n.end(end).ends.iter().map(End::state).collect::<Vec<_>>());
        prop_assert!(over, "{:?}", states);
        if states.iter().flatten().any(|s| matches!(s, State::Failed(_))) {
            let calls = n.end(0).ends.iter().any(|end| end.state() == State::Failed(Failure::NoAnswer));
            prop_assert!(calls, "only a call may fail: {:?}", states);
        } else {
            prop_assert_eq!((n.read(1), n.read(0)), (octets[0], octets[1]));
        }
    }
}

/// Two flows of whose feedback half gets lost: who misses three in a row asks beside its data, and takes up the rate that the answer tells.
#[test]
fn who_asks_takes_the_answer() {
    let back = Link {
        loss: 500,
        ..Link::good()
    };
    let end = |n| Several::new(n, 7, 2);
    let [first, second] = [work(1_000_000), work(0)];
    let mut n = Network::new(7, [(end(0), Link::good(), first), (end(1), back, second)]);
    assert!(n.run_until(600 * SECOND));
    assert_eq!(n.read(1), 1_000_000);
    assert!(n.end(0).answers > 0);
}
