//! The traffic of a deployed node, as the simulator makes it, and what arrives there.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use frame::mac::Header;
use radio::checked::MAX_ACTIONS;
use radio::{Application, Duration, Instant, MAX_FRAME_OCTETS, Msdu, Outcome, Submission, Token};
use sim::rng::{Cause, Stream};
use sim::traffic::{HEADER_OCTETS, parse_header};
use sim::{Pattern, Traffic};

use super::arrived::Arrived;

/// Octets of LLC/SNAP before a payload.
const LLC_OCTETS: usize = 8;
/// After a refusal a saturated source waits this long, as in the simulator.
const REFUSED: Duration = Duration::from_ms(1);
/// Latencies that are kept.
pub(super) const MOST_LATENCIES: usize = 1 << 20;

/// One flow from here.
#[derive(Debug)]
pub(super) struct Source {
    pub flow: u32,
    pub traffic: Traffic,
    stream: Stream,
    pub count: u32,
    /// Of these, in the measured time.
    pub measured: u64,
    /// Numbers of those by which losses are judged.
    pub judged: Range<u32>,
    /// MSDUs that a saturated source has yet to hand down.
    fill: u32,
    next: Instant,
}

/// All flows from here, with the requests that saturated ones wait for.
#[derive(Debug)]
pub(super) struct Sources {
    pub all: Vec<Source>,
    open: Vec<(Token, usize)>,
}

impl Sources {
    fn new(flows: Vec<(u32, Traffic)>, seed: u64, outstanding: usize) -> Sources {
        let source = |(flow, traffic): (u32, Traffic)| Source {
            flow,
            fill: match traffic.pattern {
                Pattern::Saturated { backlog, .. } => backlog,
                _ => 0,
            },
            traffic,
            stream: Stream::new(seed, flow.into(), Cause::Traffic),
            count: 0,
            measured: 0,
            judged: 0..0,
            next: Instant::MAX,
        };
        Sources {
            all: flows.into_iter().map(source).collect(),
            // As many as the host answers to, refusals included.
            open: Vec::with_capacity(outstanding + 4 * MAX_ACTIONS),
        }
    }

    /// The protocol requests a frame: a saturated source whose payload is in it waits for its end. What nobody knows
    /// counts for the last saturated source, management frames for none.
    pub fn requested(&mut self, token: Token, frame: &[u8]) {
        let saturated = |s: &Source| matches!(s.traffic.pattern, Pattern::Saturated { .. });
        let Some(any) = self.all.iter().rposition(saturated) else {
            return;
        };
        let Some(header) = Header::parse(frame).ok().filter(|_| frame[0] & 0x0c == 0x08) else {
            return;
        };
        let Some(payload) = frame.get(header.octets() + LLC_OCTETS..) else {
            return;
        };
        let own = parse_header(payload).and_then(|(flow, number, _)| {
            let is_own = |s: &Source| s.flow == flow && number < s.count;
            self.all.iter().position(is_own)
        });
        let source = own.unwrap_or(any);
        if saturated(&self.all[source]) {
            self.open.push((token, source));
        }
    }

    /// A request has ended.
    pub fn ended(&mut self, now: Instant, token: Token, outcome: Outcome) {
        let Some(at) = self.open.iter().position(|(t, _)| *t == token) else {
            return;
        };
        let source = &mut self.all[self.open.swap_remove(at).1];
        let next = match outcome {
            Outcome::Refused(_) => now + REFUSED,
            _ => now,
        };
        source.next = if source.fill == 0 {
            next
        } else {
            source.next.min(next)
        };
        source.fill += 1;
    }
}

impl Source {
    fn due(&self) -> Option<Instant> {
        let used_up = self.traffic.count.is_some_and(|all| self.count >= all);
        let waits = matches!(self.traffic.pattern, Pattern::Saturated { .. }) && self.fill == 0;
        (!used_up && !waits && self.next < Instant::MAX).then_some(self.next)
    }

    fn go_on(&mut self) {
        self.count += 1;
        let pause = match self.traffic.pattern {
            Pattern::Poisson { mean_ns } => self.stream.exponential(mean_ns as f64) as u64,
            Pattern::Periodic { period_ns, .. } => period_ns,
            Pattern::Saturated { .. } => {
                self.fill = self.fill.saturating_sub(1);
                return;
            }
        };
        // Late or not, the next one is due by the plan.
        self.next += Duration::from_ns(pause.max(1));
    }
}

/// The application of a deployed node.
#[derive(Debug)]
pub(super) struct Feed {
    pub sources: Rc<RefCell<Sources>>,
    /// From here on it is measured.
    since: Instant,
    /// What is submitted later may be under way at the end: losses are judged by what came before.
    settle: Instant,
    /// What has come here, of the scenario's flows.
    pub arrived: Arrived,
    /// Payloads by the flow of the scenario that they name, ...
    delivered: Vec<u64>,
    /// ... and those that are none of its traffic.
    strange: u64,
    /// In the measured time: payloads, their octets, and latencies of those that were submitted in it.
    pub measured: u64,
    pub octets: u64,
    pub latencies_us: Vec<f64>,
}

impl Feed {
    /// `own` are the flows from here; `room` has one number for each flow of the scenario: how many MSDUs of it may come here.
    /// All that is kept has its place from here on, so that nothing is allocated later.
    pub fn new(own: Vec<(u32, Traffic)>, room: &[u32], seed: u64, outstanding: usize) -> Feed {
        Feed {
            sources: Rc::new(RefCell::new(Sources::new(own, seed, outstanding))),
            since: Instant::ZERO,
            settle: Instant::MAX,
            arrived: Arrived::new(room),
            delivered: vec![0; room.len()],
            strange: 0,
            measured: 0,
            octets: 0,
            latencies_us: Vec::with_capacity(MOST_LATENCIES),
        }
    }

    /// What has come here by the flow of the scenario that it names; what names none under `none`.
    pub fn delivered(&self) -> BTreeMap<String, u64> {
        let flows = (0..).zip(&self.delivered);
        let named = flows.map(|(flow, count): (u32, _)| (flow.to_string(), *count));
        let all = named.chain([("none".to_owned(), self.strange)]);
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The node begins at `now`, is measured from `since` on, and its losses up to `settle`.
    pub fn start(&mut self, now: Instant, since: Instant, settle: Instant) {
        (self.since, self.settle) = (since, settle);
        for s in &mut self.sources.borrow_mut().all {
            let first = match s.traffic.pattern {
                Pattern::Periodic { phase_ns, .. } | Pattern::Saturated { phase_ns, .. } => phase_ns,
                Pattern::Poisson { mean_ns } => s.stream.exponential(mean_ns as f64) as u64,
            };
            s.next = now + Duration::from_ns(first);
        }
    }
}

impl Application for Feed {
    fn due(&self) -> Option<Instant> {
        self.sources.borrow().all.iter().filter_map(Source::due).min()
    }

    fn take(&mut self, now: Instant, payload: &mut [u8; MAX_FRAME_OCTETS]) -> Option<Submission> {
        let mut sources = self.sources.borrow_mut();
        let due = sources.all.iter_mut().filter(|s| s.due().is_some());
        let s = due.min_by_key(|s| s.next).filter(|s| s.next <= now)?;
        let octets = s.traffic.octets.min(MAX_FRAME_OCTETS);
        payload[..octets.max(HEADER_OCTETS)].fill(0);
        payload[..4].copy_from_slice(&s.flow.to_le_bytes());
        payload[4..8].copy_from_slice(&s.count.to_le_bytes());
        // As in the simulator it was submitted when it was due; this host may be late, or have others to take first.
        let due = s.next;
        payload[8..HEADER_OCTETS].copy_from_slice(&due.as_ns().to_le_bytes());
        s.measured += u64::from(due >= self.since);
        let told = octets >= HEADER_OCTETS; // Nobody can tell which of the others arrive.
        if told && (self.since..self.settle).contains(&due) {
            let first = if s.judged.is_empty() {
                s.count
            } else {
                s.judged.start
            };
            s.judged = first..s.count + 1;
        }
        s.go_on();
        Some(Submission {
            peer: s.traffic.to,
            category: s.traffic.category,
            deadline: s.traffic.lifetime_ns.map(|ns| due + Duration::from_ns(ns)),
            octets,
        })
    }

    fn deliver(&mut self, now: Instant, msdu: Msdu<'_>) {
        // Other payloads look like headers, too.
        let known = self.delivered.len();
        let header = parse_header(msdu.payload).filter(|(flow, ..)| (*flow as usize) < known);
        match header {
            Some((flow, number, _)) => {
                self.delivered[flow as usize] += 1;
                self.arrived.insert(flow, number);
            }
            None => self.strange += 1,
        }
        if now < self.since {
            return;
        }
        self.measured += 1;
        self.octets += msdu.payload.len() as u64;
        if let Some((.., then_ns)) = header
            && (self.since.as_ns()..=now.as_ns()).contains(&then_ns)
            && self.latencies_us.len() < MOST_LATENCIES
        {
            self.latencies_us.push((now.as_ns() - then_ns) as f64 / 1e3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::mac::{Flags, FrameControl, Kind};
    use frame::{AccessCategory, MacAddr};
    use radio::Refusal;

    fn traffic(pattern: Pattern, count: Option<u32>) -> Traffic {
        Traffic {
            to: MacAddr::local(2),
            category: AccessCategory::Voice,
            octets: 50,
            pattern,
            lifetime_ns: Some(4_000_000),
            count,
        }
    }

    #[test]
    fn traffic_is_that_of_the_scenario_late_or_not() {
        let periodic = Pattern::Periodic {
            period_ns: 1_000_000,
            phase_ns: 500_000,
        };
        let mut feed = Feed::new(vec![(7, traffic(periodic, Some(3)))], &[9; 8], 1, 4);
        feed.start(
            Instant::from_us(10_000),
            Instant::from_us(12_001),
            Instant::from_us(13_000),
        );
        assert_eq!(feed.due(), Some(Instant::from_us(10_500)));
        let mut payload = [9; MAX_FRAME_OCTETS];
        assert!(feed.take(Instant::from_us(10_499), &mut payload).is_none());
        // Twice at once after a late look, and the third in its time.
        for (number, due, at) in [(0, 10_500, 12_000), (1, 11_500, 12_000), (2, 12_500, 12_505)] {
            let [due, now] = [due, at].map(Instant::from_us);
            let s = feed.take(now, &mut payload).unwrap();
            assert_eq!((s.octets, s.deadline), (50, Some(due + Duration::from_ms(4))));
            assert_eq!(parse_header(&payload[..s.octets]), Some((7, number, due.as_ns())));
        }
        assert_eq!(feed.due(), None, "three were asked for");
        assert_eq!(feed.sources.borrow().all[0].measured, 1, "the others came before");
        assert_eq!(feed.sources.borrow().all[0].judged, 2..3);
        feed.deliver(Instant::ZERO, Msdu::new(MacAddr::local(1), &payload[..50]));
        feed.deliver(Instant::ZERO, Msdu::new(MacAddr::local(1), &[1]));
        assert_eq!(
            feed.delivered(),
            BTreeMap::from([("7".into(), 1), ("none".into(), 1)])
        );
        assert_eq!((feed.measured, feed.latencies_us.len()), (0, 0));
        feed.deliver(
            Instant::from_us(12_700),
            Msdu::new(MacAddr::local(1), &payload[..50]),
        );
        assert_eq!(
            (feed.measured, feed.octets, &feed.latencies_us[..]),
            (1, 50, &[200.0][..])
        );
    }

    #[test]
    fn payloads_that_are_no_traffic_of_the_scenario_have_no_flow() {
        let mut feed = Feed::new(Vec::new(), &[9; 2], 1, 4);
        feed.start(Instant::ZERO, Instant::ZERO, Instant::MAX);
        let of = |flow: u32| {
            let mut payload = [0; 50];
            payload[..4].copy_from_slice(&flow.to_le_bytes());
            payload
        };
        let text = *b"a text of more than 16 octets";
        for payload in [&of(1)[..], &of(2), &of(u32::MAX), &text] {
            feed.deliver(Instant::from_us(5), Msdu::new(MacAddr::local(1), payload));
        }
        assert_eq!(
            feed.delivered(),
            BTreeMap::from([("1".into(), 1), ("none".into(), 3)])
        );
        assert_eq!(feed.latencies_us, [5.0], "what is no traffic has no time");
    }

    #[test]
    fn losses_are_judged_by_what_was_submitted_in_time() {
        let periodic = Pattern::Periodic {
            period_ns: 1_000_000,
            phase_ns: 0,
        };
        let at = |ms: u64| Instant::from_us(1_000 * ms);
        let mut feed = Feed::new(vec![(0, traffic(periodic, None))], &[9], 1, 4);
        feed.start(Instant::ZERO, at(2), at(5));
        let mut payload = [0; MAX_FRAME_OCTETS];
        for ms in 0..8 {
            feed.take(at(ms), &mut payload).unwrap();
            // All arrive here, the fourth twice.
            for _ in 0..1 + u8::from(ms == 3) {
                feed.deliver(at(ms), Msdu::new(MacAddr::local(1), &payload[..50]));
            }
        }
        let judged = feed.sources.borrow().all[0].judged.clone();
        assert_eq!(judged, 2..5);
        assert_eq!((feed.arrived.count(0, judged), feed.measured), (3, 7));
    }

    /// A data frame around a payload.
    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 24 + LLC_OCTETS];
        frame[..2].copy_from_slice(&FrameControl::new(Kind::DATA, Flags::NONE).0);
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn saturated_traffic_follows_the_confirms() {
        let saturated = Pattern::Saturated {
            backlog: 2,
            phase_ns: 1_000,
        };
        let mut feed = Feed::new(vec![(3, traffic(saturated, Some(5)))], &[9; 4], 1, 4);
        feed.start(Instant::ZERO, Instant::ZERO, Instant::MAX);
        assert_eq!(feed.due(), Some(Instant::from_us(1)));
        let mut payload = [0; MAX_FRAME_OCTETS];
        let now = Instant::from_us(2);
        for token in 0..2 {
            let s = feed.take(now, &mut payload).unwrap();
            let frame = frame(&payload[..s.octets]);
            feed.sources.borrow_mut().requested(Token(token), &frame);
        }
        assert_eq!(feed.due(), None, "two are on their way");
        feed.sources.borrow_mut().ended(now, Token(9), Outcome::Acked);
        assert_eq!(feed.due(), None, "that was another's");
        feed.sources
            .borrow_mut()
            .ended(now, Token(1), Outcome::Refused(Refusal::QueueFull));
        assert_eq!(feed.due(), Some(Instant::from_us(1_002)), "not at once");
        feed.sources
            .borrow_mut()
            .ended(Instant::from_us(30), Token(0), Outcome::NotAcked);
        assert_eq!(feed.due(), Some(Instant::from_us(30)));
        let (mut taken, later) = (2, Instant::from_us(2_000));
        while feed.take(later, &mut payload).is_some() {
            taken += 1;
        }
        assert_eq!(taken, 4, "one for each that has ended");
        // A beacon is nobody's.
        let beacon = [0x80; 60];
        feed.sources.borrow_mut().requested(Token(7), &beacon);
        feed.sources.borrow_mut().ended(later, Token(7), Outcome::Acked);
        assert_eq!(feed.due(), None);
    }
}
