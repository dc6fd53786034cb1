//! The law of progress: where messages wait that can still be in time, a node hands frames down.

use std::collections::{BTreeMap, HashMap};

use frame::MacAddr;
use lab::scenario::Program;
use protocols::mac::edf::poll::POLL_OCTETS;
use radio::{Checked, Confirm, Duration, Instant, Msdu, Outcome, Token};
use sim::World;
use sim::traffic::parse_header;

use crate::own::{COST, DEADLINE, HELD, Key, PATIENCE, TRIES, message};

/// What a node holds up, and for how long it may.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The most time, all together, that messages wait from one frame that is handed down to the next.
    pub most: Duration,
    /// It gives up a message for a newer one to the same receiver; what becomes of one that has been below once is not known.
    pub polls: bool,
}

/// How late a timer is at most in the worlds, and besides it a host's own delays.
const LATE: Duration = Duration::from_us(6_500);

impl Kind {
    /// One that decides attempt by attempt: it waits for one confirm, for four times the cost of an attempt.
    pub const EDF: Kind = Kind {
        most: Duration::from_ns(PATIENCE.as_ns() + LATE.as_ns()),
        polls: false,
    };
    /// One that polls: it waits for a confirm, then for an answer.
    pub const POLLS: Kind = Kind {
        most: Duration::from_ns(Duration::from_us(4 * 220 + 250).as_ns() + 2 * LATE.as_ns()),
        polls: true,
    };
}

impl Kind {
    /// Octets in front of a message in a frame.
    fn before(self) -> usize {
        if self.polls { POLL_OCTETS } else { 0 }
    }
}

/// What nodes have to do, and what they have done.
pub struct Progress {
    kind: Kind,
    nodes: Vec<u32>,
    /// True time, node, and what happened there, since the last look.
    events: Vec<(u64, u32, Step)>,
    open: BTreeMap<Key, Open>,
    below: HashMap<(u32, Token), Key>,
    /// By node: until when it was looked at, and how long messages have waited since it handed a frame down.
    waited: HashMap<u32, (Instant, Duration)>,
}

enum Step {
    Submitted(Key, MacAddr, Option<Instant>),
    Launched(Token, Option<Key>),
    Ended(Token, Outcome),
    Looked,
}

/// A message that may still go.
struct Open {
    to: MacAddr,
    /// Another attempt makes sense until then.
    until: Instant,
    launches: u16,
    /// Whether it waits for sure: there was room for it, and it has tries left.
    held: bool,
}

impl Progress {
    /// Of these nodes.
    pub fn of(kind: Kind, nodes: Vec<u32>) -> Progress {
        Progress {
            kind,
            nodes,
            events: Vec::new(),
            open: BTreeMap::new(),
            below: HashMap::new(),
            waited: HashMap::new(),
        }
    }

    /// A message is handed down.
    pub fn submitted(&mut self, now_ns: u64, node: u32, msdu: &Msdu<'_>) {
        if let Some((flow, number, _)) = parse_header(msdu.payload) {
            let step = Step::Submitted((node, flow, number), msdu.peer, msdu.deadline);
            self.events.push((now_ns, node, step));
        }
    }

    /// A frame is sent down.
    pub fn requested(&mut self, now_ns: u64, node: u32, token: Token, mpdu: &[u8]) {
        let step = Step::Launched(token, message(node, mpdu, self.kind.before()));
        self.events.push((now_ns, node, step));
    }

    /// A request ends.
    pub fn confirmed(&mut self, now_ns: u64, node: u32, confirm: &Confirm) {
        let step = Step::Ended(confirm.token, confirm.outcome);
        self.events.push((now_ns, node, step));
    }

    /// A look at the world after a millisecond: who has held up what.
    pub fn look<const N: usize>(&mut self, world: &World<Checked<Program, N>>) -> Option<String> {
        let mut wrong = None;
        let looked = self
            .nodes
            .iter()
            .map(|node| (world.now_ns(), *node, Step::Looked));
        let events: Vec<_> = std::mem::take(&mut self.events)
            .into_iter()
            .chain(looked)
            .collect();
        for (at_ns, node, step) in events {
            if self.nodes.contains(&node) {
                let shown = world.host_clock(node) - Duration::from_ns(world.now_ns() - at_ns);
                wrong = wrong.or(self.step(node, shown, step));
            }
        }
        wrong
    }

    fn step(&mut self, node: u32, now: Instant, step: Step) -> Option<String> {
        let wrong = self.wait(node, now);
        let happened = !matches!(step, Step::Looked);
        match step {
            Step::Looked => {}
            Step::Submitted(key, to, deadline) => {
                if self.kind.polls {
                    self.open.retain(|k, m| k.0 != node || m.to != to);
                }
                let own = self.open.keys().filter(|k| k.0 == node).count();
                let below = self.below.iter();
                let others = below.filter(|((n, _), key)| *n == node && !self.open.contains_key(key));
                let new = Open {
                    to,
                    until: deadline.unwrap_or(now + DEADLINE) - COST,
                    launches: 0,
                    held: HELD > own + others.count(),
                };
                self.open.insert(key, new);
            }
            Step::Launched(token, key) => {
                self.waited.insert(node, (now, Duration::ZERO));
                if let Some(key) = key {
                    self.below.insert((node, token), key);
                    if let Some(own) = self.open.get_mut(&key) {
                        own.launches += 1;
                        // whether it may go again is not known: some have more tries
                        own.held = own.launches < TRIES;
                    }
                }
            }
            Step::Ended(token, outcome) => {
                let key = self.below.remove(&(node, token));
                let again = matches!(outcome, Outcome::NotAcked | Outcome::Unknown | Outcome::Aborted);
                if let Some(key) = key.filter(|_| !again || self.kind.polls) {
                    self.open.remove(&key);
                }
            }
        }
        // what came too late for a timer takes up room until something happens
        if happened {
            self.open.retain(|k, m| k.0 != node || m.until >= now);
        }
        wrong
    }

    /// Messages of this node have waited until now, if there are some: what is wrong with that.
    fn wait(&mut self, node: u32, now: Instant) -> Option<String> {
        let is_below = |key: &Key| self.below.values().any(|k| k == key);
        let of_node = self
            .open
            .iter()
            .filter(|(k, m)| k.0 == node && m.held && !is_below(k));
        let last = of_node.max_by_key(|(_, m)| m.until).map(|(k, m)| (*k, m.until));
        let (looked, waited) = self.waited.entry(node).or_insert((now, Duration::ZERO));
        let mut wrong = None;
        if let Some((key, until)) = last {
            *waited += until.min(now) - *looked;
            if *waited > self.kind.most {
                wrong = Some(format!(
                    "{key:?} and those before have waited for {waited:?}, and no frame is handed down"
                ));
            }
        }
        *looked = now;
        wrong
    }
}

mod broken {
    //! The law notices when it is broken.

    use super::*;

    const NODE: u32 = 1;

    fn us(us: u64) -> Instant {
        Instant::from_us(us)
    }

    /// A node that has messages with these deadlines, in us, from 0 on.
    fn waits(kind: Kind, deadlines: &[u64]) -> Progress {
        let mut progress = Progress::of(kind, vec![NODE]);
        for (i, deadline) in (0..).zip(deadlines) {
            let to = MacAddr::local(2 + i);
            let step = Step::Submitted((NODE, 0, i), to, Some(us(*deadline)));
            assert_eq!(progress.step(NODE, us(0), step), None);
        }
        progress
    }

    /// The first look, one every millisecond, at which something is wrong, in ms.
    fn wrong_after(progress: &mut Progress, from_ms: u64) -> Option<u64> {
        (from_ms..100).find(|ms| progress.step(NODE, us(ms * 1_000), Step::Looked).is_some())
    }

    #[test]
    fn nothing_goes() {
        for (kind, ms) in [(Kind::EDF, 8), (Kind::POLLS, 15)] {
            assert_eq!(wrong_after(&mut waits(kind, &[90_000]), 1), Some(ms));
            // the other one is below, and its confirm stays away
            let mut progress = waits(kind, &[90_000, 90_000]);
            let launched = Step::Launched(Token(0), Some((NODE, 0, 0)));
            assert_eq!(progress.step(NODE, us(0), launched), None);
            assert_eq!(wrong_after(&mut progress, 1), Some(ms));
        }
    }

    /// Nobody has to send what cannot be in time, or is below; but those that have waited count together.
    #[test]
    fn what_need_not_go() {
        assert_eq!(wrong_after(&mut waits(Kind::EDF, &[]), 1), None);
        assert_eq!(wrong_after(&mut waits(Kind::EDF, &[7_000, 5_000]), 1), None);
        let mut progress = waits(Kind::EDF, &[90_000]);
        let launched = Step::Launched(Token(0), Some((NODE, 0, 0)));
        assert_eq!(progress.step(NODE, us(0), launched), None);
        assert_eq!(wrong_after(&mut progress, 1), None);

        let mut progress = waits(Kind::EDF, &[5_200]);
        assert_eq!(progress.step(NODE, us(20_000), Step::Looked), None);
        let step = Step::Submitted((NODE, 0, 1), MacAddr::local(2), Some(us(90_000)));
        assert_eq!(progress.step(NODE, us(20_000), step), None);
        assert_eq!(wrong_after(&mut progress, 21), Some(23));
    }

    /// What has failed waits again, but for who polls, who may have had an answer.
    #[test]
    fn what_has_failed() {
        for (kind, outcome, ms) in [
            (Kind::EDF, Outcome::Unknown, Some(8)),
            (Kind::EDF, Outcome::Acked, None),
            (Kind::POLLS, Outcome::Unknown, None),
        ] {
            let mut progress = waits(kind, &[90_000]);
            let launched = Step::Launched(Token(0), Some((NODE, 0, 0)));
            assert_eq!(progress.step(NODE, us(0), launched), None);
            assert_eq!(progress.step(NODE, us(100), Step::Ended(Token(0), outcome)), None);
            assert_eq!(wrong_after(&mut progress, 1), ms, "{kind:?} {outcome:?}");
        }
    }

    /// A frame that is no message is one, too: a poll.
    #[test]
    fn each_frame_counts() {
        let mut progress = waits(Kind::POLLS, &[90_000]);
        for ms in 1..9 {
            let launched = Step::Launched(Token(ms), None);
            assert_eq!(progress.step(NODE, us(ms * 10_000), launched), None);
        }
    }
}
