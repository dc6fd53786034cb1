//! The ground for nodes that roam: two access points on two channels, and nodes that walk from one to the other while their
//! loop runs.
//!
//! The access points stand 80 m apart and are two doors of one controller: the wire between them takes no time, and knows where a node was
//! let in last. Every node walks 76 m in a straight line, from 2 m beside one to 2 m beside the other, at 2 m/s, once in
//! 45 s; each begins at a moment of its own, and every other one goes the other way. All send so strongly that at halfway
//! frames at the rate of the question have a few dB to spare, and beside one access point the other one is out of reach; beacons go at that rate, too, so that an access point that
//! is heard can be sent to.

use super::bench::{Bench, Seat, Span};
use super::own::Sum;
use super::question::{Link, Question, Roams, Scheme};
use super::tally::Tally;
use super::watch::node_of;
use crate::scenario::overlay::loss;
use frame::Rate;
use frame::mac::{Header, Kind};
use frame::rate::OfdmRate;
use protocols::mac::beacon::{Beaconer, BeaconerConfig};
use protocols::mac::data::QOS_OVERHEAD_OCTETS;
use protocols::mac::roam::gate::Gate;
use protocols::mac::roam::{Roam, RoamConfig};
use radio::{AdapterId, Duration, Event, Instant, Protocol, Radio};
use sim::rng::{Cause, Stream};
use sim::{LossModel, MediumConfig, Position, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A walk, with the time before its beginning and after its end, ns.
pub const WALK_NS: u64 = 45_000_000_000;
/// Messages in a walk at most: each takes some 40 octets while it runs.
pub const MAX_MESSAGES: u64 = 4_000_000;
/// What happens to the loop within this time may have one reason, ns: a node with one adapter listens for 350 ms for its access
/// point, and for 110 ms on each channel, before it is let in somewhere else.
pub(super) const CLUSTER_NS: u64 = 1_000_000_000;
/// Until all nodes are let in somewhere, ns.
pub(super) const SETTLING_NS: u64 = 2_000_000_000;
/// From one access point to the other, m.
const APART_M: f64 = 80.0;
/// A walk begins and ends so far from the nearest one, m.
const BESIDE_M: f64 = 2.0;
/// Speed, m/s.
const SPEED_M_S: f64 = 2.0;
/// All begin within this time, ns.
const BEGIN_NS: u64 = 5_000_000_000;
/// Between two positions, ns.
const STEP_NS: u64 = 100_000_000;
/// Loss of a frame at which a link is taken to end.
const LOST: f64 = 1e-3;
/// What is left at halfway above that, dB. That the other access point is 5 dB stronger is known about 10 m behind, where 2 dB are left.
const SPARE_DB: f64 = 5.0;
/// Noise over 20 MHz with a noise figure of 7 dB, dBm.
const NOISE_DBM: f64 = -94.0;
/// Time between two beacons.
const BEACON: Duration = Duration::from_us(102_400);

/// Cycles of a walk.
pub(super) fn cycles(cycle_ns: u64) -> u32 {
    WALK_NS.div_ceil(cycle_ns) as u32
}

/// Messages of all nodes in a walk.
pub(super) fn messages(nodes: u32, cycle_ns: u64) -> u64 {
    2 * u64::from(nodes) * WALK_NS.div_ceil(cycle_ns.max(1))
}

/// What hand-overs cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct HandOvers {
    /// Times that a node was let in by another access point.
    pub count: u64,
    /// Of these, those in which no message missed.
    pub unharmed: u64,
    /// Messages that missed in hand-overs; the same number as `causes.hand_over`.
    pub misses: u64,
    /// For how long a hand-over cut its node off: the cycles in a row that missed in one direction, the longer one of the
    /// two, ns. Median; `null` without a hand-over.
    pub p50_ns: Option<u64>,
    /// The longest, ns; `null` without a hand-over.
    pub max_ns: Option<u64>,
}

impl HandOvers {
    pub(super) fn of(t: &Tally, misses: u64) -> HandOvers {
        HandOvers {
            count: t.cut_off.count(),
            unharmed: t.unharmed,
            misses,
            p50_ns: t.cut_off.quantile_ns(0.5),
            max_ns: t.cut_off.max_ns(),
        }
    }
}

/// The access point that let each node in, by numbers of the world: what the wire between them knows.
pub(super) type Whereabouts = Rc<RefCell<BTreeMap<u32, u32>>>;

/// An access point at one end of the wire: it sends what is for the nodes that it let in last.
struct Door {
    me: u32,
    inner: Beaconer<Gate<Seat>>,
    whereabouts: Whereabouts,
}

impl Protocol for Door {
    fn handle(&mut self, now: Instant, event: Event<'_>, radio: &mut dyn Radio) {
        if let Event::Submit(msdu) = &event {
            let at = node_of(msdu.peer).and_then(|n| self.whereabouts.borrow().get(&n).copied());
            if at != Some(self.me) {
                return;
            }
        }
        if let Event::Indication(i) = &event
            && let Ok(header) = Header::parse(i.frame)
            && header.kind() == Kind::ASSOCIATION_REQUEST
            && header.receiver() == Question::address(self.me)
            && let Some(node) = header.transmitter().and_then(node_of)
        {
            self.whereabouts.borrow_mut().insert(node, self.me);
        }
        self.inner.handle(now, event, radio);
    }

    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
}

impl Bench {
    /// Adapters of one node.
    pub(super) fn adapters(&self, scheme: Scheme, node: u32) -> u32 {
        let door = scheme.walks() && self.is_door(node);
        if door { 1 } else { scheme.adapters() }
    }

    /// The node that each adapter of the loop belongs to.
    pub(super) fn owners(&self, scheme: Scheme) -> Vec<u32> {
        let nodes = 0..=self.question.nodes + u32::from(scheme.walks());
        let own = |node| std::iter::repeat_n(node, self.adapters(scheme, node) as usize);
        nodes.flat_map(own).collect()
    }

    /// A node that roams, or one of the access points.
    pub(super) fn roaming(
        &self,
        scheme: Scheme,
        node: u32,
        cycle_ns: u64,
        whereabouts: &Whereabouts,
        sum: &Sum,
    ) -> Seat {
        let me = Question::address(node);
        let rate = self.beacon_rate();
        let inner = self.edca(scheme, node, cycle_ns, sum);
        if self.is_door(node) {
            let config = BeaconerConfig::new(me, BEACON, rate);
            let door = Seat(Box::new(Door {
                me: node,
                inner: Beaconer::new(config, Gate::new(me, rate, inner)),
                whereabouts: whereabouts.clone(),
            }));
            return self.rated(scheme, node, door);
        }
        let second = (scheme.roams == Roams::MakesFirst).then_some(AdapterId(1));
        let channels = [self.mhz(), self.second_mhz()];
        let config = RoamConfig::new(
            me,
            Question::address(0),
            &channels,
            (AdapterId::FIRST, second),
            rate,
        );
        let roam = Seat(Box::new(Roam::<_, 8, 1600>::new(config, inner)));
        self.rated(scheme, node, roam)
    }

    /// The controller hands its messages down at both ends of the wire.
    pub(super) fn add_second_door(&self, world: &mut World<Seat>, span: Span, offsets_ns: &[u64]) {
        let door = self.question.nodes + 1;
        for (node, offset_ns) in (1..).zip(&offsets_ns[1..]) {
            world.add_traffic(door, self.messages(span, node, *offset_ns));
        }
    }

    /// Where a node, or an access point, is at first.
    pub(super) fn door_step(&self, node: u32) -> Position {
        match node {
            0 => Position::default(),
            n if n > self.question.nodes => Position::new(APART_M, 0.0),
            n => self.on_the_way(n, 0.0),
        }
    }

    /// Where a node is when it has walked so far. Those with even numbers come from the second access point. All ways
    /// are within 5 m of each other.
    fn on_the_way(&self, node: u32, walked_m: f64) -> Position {
        let x = BESIDE_M + walked_m;
        let aside = f64::from(node) / f64::from(self.question.nodes + 1) - 0.5;
        Position::new(if node.is_multiple_of(2) { APART_M - x } else { x }, 5.0 * aside)
    }

    /// Plans the walks of all nodes.
    pub(super) fn walk(&self, world: &mut World<Seat>, seed: u64, span: Span) {
        let length_m = APART_M - 2.0 * BESIDE_M;
        for node in 1..=self.question.nodes {
            let begin_ns = span.begin_ns() + Stream::new(seed, node.into(), Cause::Traffic).below(BEGIN_NS);
            let mut walked_m = 0.0;
            let mut at_ns = begin_ns;
            while walked_m < length_m {
                at_ns += STEP_NS;
                walked_m = ((at_ns - begin_ns) as f64 / 1e9 * SPEED_M_S).min(length_m);
                world.plan_move(at_ns, node, self.on_the_way(node, walked_m));
            }
        }
    }

    /// Signal-to-noise ratio at halfway, dB.
    pub(super) fn halfway_db(&self) -> f64 {
        match self.question.link {
            Link::SnrDb(db) => db,
            Link::Per { .. } => self.needed_db(self.question.rate) + SPARE_DB,
        }
    }

    /// The ratio from which on a frame of the loop arrives at a rate, dB.
    fn needed_db(&self, rate: Rate) -> f64 {
        let octets = (self.question.simulated_octets() + QOS_OVERHEAD_OCTETS) as u32;
        let tenths = (-100..500).find(|tenths| loss(rate, f64::from(*tenths) / 10.0, octets) <= LOST);
        f64::from(tenths.unwrap_or(500)) / 10.0
    }

    /// Beacons go as far as data: at their rate, or at that of 802.11a that is next to it.
    fn beacon_rate(&self) -> Rate {
        let rate = self.question.rate;
        if !matches!(rate, Rate::Ht(..)) {
            return rate;
        }
        let needed = self.needed_db(rate);
        let all = OfdmRate::ALL.map(Rate::Ofdm);
        let fits = all.into_iter().filter(|r| self.needed_db(*r) <= needed);
        fits.last().unwrap_or(Rate::OFDM_6)
    }

    /// Power of all adapters, dBm.
    pub(super) fn cell_dbm(&self) -> f64 {
        let LossModel::LogDistance {
            at_1m_db, exponent, ..
        } = MediumConfig::default().loss
        else {
            unreachable!("the usual medium loses strength with distance");
        };
        let wide_db = 10.0 * libm::log10(f64::from(self.question.rate.width_mhz()) / 20.0);
        let path_db = at_1m_db + 10.0 * exponent * libm::log10(APART_M / 2.0);
        NOISE_DBM + wide_db + self.halfway_db() + path_db
    }
}

#[cfg(test)]
mod tests {
    use super::super::engine::replicate;
    use super::super::tally::{Cause, Tally};
    use super::*;

    fn run(scheme: &str, change: impl Fn(&mut Question)) -> Tally {
        let scheme = Scheme::parse(scheme).unwrap();
        let mut q = Question {
            nodes: 2,
            cycle_ns: 20_000_000,
            link: Link::Per { data: 0.0, ack: 0.0 },
            schemes: vec![scheme],
            ..Question::example()
        };
        change(&mut q);
        let bench = Bench::new(&q).unwrap();
        replicate(&bench, scheme, 5, q.cycle_ns, cycles(q.cycle_ns), 50)
    }

    /// Each node is handed over once. With two adapters nothing misses; with one all messages of the time in which it finds out,
    /// listens and asks, and each of these is told to be of the hand-over.
    #[test]
    fn one_adapter_breaks_and_two_do_not() {
        let two = run("roam+second", |_| ());
        assert_eq!((two.cut_off.count(), two.unharmed), (2, 2), "{:?}", two.causes);
        assert_eq!(
            (two.batches.trials(), two.batches.misses()),
            (9_000, 0),
            "{:?}",
            two.causes
        );
        let one = run("roam", |_| ());
        assert_eq!((one.cut_off.count(), one.unharmed), (2, 0), "{:?}", one.causes);
        let of = |c: Cause| one.causes[c as usize];
        let both_ways = 2 * one.cut_off.max_ns().unwrap() / 20_000_000;
        assert!(
            of(Cause::HandOver) > both_ways && of(Cause::HandOver) <= 2 * both_ways,
            "{:?}",
            one.causes
        );
        // it listens on two channels; beacons are lost before data, which go again
        let longest_ms = one.cut_off.max_ns().unwrap() / 1_000_000;
        assert!((200..1_500).contains(&longest_ms), "{longest_ms} ms");
        // what is missed besides is missed before, while the link fades
        assert!(one.batches.misses() >= of(Cause::HandOver));
    }

    /// Rate control goes along: slower rates reach farther, so fewer messages are lost between the cells, and the fast ones are used beside
    /// an access point.
    #[test]
    fn rates_follow_a_node_that_walks() {
        for (plain, rated) in [("roam", "minstrel+roam"), ("roam+second", "rsin+roam+second")] {
            let link = |q: &mut Question| q.link = Link::SnrDb(12.0);
            let (plain, rated) = (run(plain, link), run(rated, link));
            let (before, after) = (plain.batches.misses(), rated.batches.misses());
            assert!(after < before, "{after} of {before}: {:?}", rated.causes);
            let rates = &rated.own.rates;
            assert!(rates.len() > 3, "{rates:?}");
            assert!(rated.cut_off.count() >= 2, "{:?}", rated.cut_off);
        }
    }

    /// The cells are as large at every rate.
    #[test]
    fn rates_have_their_cells() {
        for rate in ["6M", "54M"] {
            let t = run("roam+second", |q| q.rate = Rate::parse(rate).unwrap());
            assert_eq!((t.unharmed, t.batches.misses()), (2, 0), "{rate}: {:?}", t.causes);
        }
        let ht = run("roam+second", |q| {
            q.phy = super::super::question::parse_phy("n").unwrap();
            q.rate = Rate::parse("mcs7/20").unwrap();
        });
        assert_eq!((ht.unharmed, ht.batches.misses()), (2, 0), "{:?}", ht.causes);
    }

    /// Losses of the question are there besides, at both access points and with both adapters. A message up and one down begin at one
    /// instant, so their first tries collide; what follows them is lost as often as the question says.
    #[test]
    fn links_lose_what_the_question_says() {
        let tries = |data| {
            run("roam+second", |q| q.link = Link::Per { data, ack: 0.0 })
                .tries
                .count() as f64
        };
        // 1 and 1 / (1 - 0.1) tries in place of 1 and 1
        let more = tries(0.1) / tries(0.0);
        assert!((1.03..1.09).contains(&more), "{more}");
    }
}
