//! What a node runs by its scheme: plain Wi-Fi, cells of TBMAC, slots of one node, and the layers around a turn.

use super::bench::{Bench, Seat};
use super::own::{Counted, Sum, Tells};
use super::question::{Copies, Question, Rule, Scheme, Turn};
use protocols::mac::data::{Identity, QOS_OVERHEAD_OCTETS, Role};
use protocols::mac::edf::cost::CostEstimate;
use protocols::mac::edf::pool::{RetryPool, WHOLE_PPM};
use protocols::mac::edf::{AtOnce, Edf, EdfConfig};
use protocols::mac::rate::minstrel::Minstrel;
use protocols::mac::rate::rsin::Rsin;
use protocols::mac::rate::{Algorithm, RateControl};
use protocols::mac::redundancy::{Redundancy, RedundancyConfig};
use protocols::mac::sender::{Sender, SenderConfig};
use protocols::mac::slotted::{LeftOn, Slotted, SlottedConfig};
use protocols::mac::sync::Sync;
use protocols::mac::tbmac::cell::Cell;
use protocols::mac::tbmac::rounds::{RoundCosts, Rounds, mpdu_octets};
use protocols::mac::tbmac::{DEFAULT_SLOTS, Tbmac, TbmacConfig};
use protocols::mac::tdma::schedule::Release;
use radio::{AdapterId, Duration, Queue};
use sim::rng::{Cause, Stream};

/// Slots in which hosts of a cell ask.
const ASKS: u8 = 4;
/// Noise that RSIN reckons with: that of the medium in 20 MHz, dBm.
const NOISE_DBM: i8 = -94;
/// Margin of RSIN, dB.
const MARGIN_DB: u8 = 3;

impl Bench {
    /// A node without turns.
    pub(super) fn edca(&self, scheme: Scheme, node: u32, cycle_ns: u64, own: &Sum) -> Seat {
        let config = SenderConfig::new(self.identity(node), self.question.rate);
        // a controller remembers all nodes to tell duplicates, a node only its controller
        let seat = Seat(match (self.is_door(node), self.question.nodes) {
            (true, 17..) => Box::new(Sender::<256>::new(config)),
            (true, _) => Box::new(Sender::<16>::new(config)),
            _ => Box::new(Sender::<1>::new(config)),
        });
        let cost = Duration::from_ns(self.facts.attempt.p99_99_ns);
        self.ordered(scheme, node, cycle_ns, cost, seat, own)
    }

    /// The times of a round; every frame of a cell has room for a payload.
    pub(super) fn rounds(&self, scheme: Scheme) -> Rounds {
        let q = &self.question;
        let inner = q.simulated_octets() + QOS_OVERHEAD_OCTETS - 4 + scheme.trailer_octets();
        let wake = &self.facts.wake;
        let costs = RoundCosts {
            phy: q.phy,
            eifs: true,
            rate: q.rate,
            octets: mpdu_octets(inner, ASKS) as u16,
            asks: ASKS,
            release: Release {
                min: Duration::from_ns(wake.min_ns),
                high: Duration::from_ns(wake.p99_99_ns),
            },
            sync_error: Duration::ZERO,
            heard: Duration::from_ns(self.facts.indication.p99_99_ns),
        };
        Rounds::new(&costs, DEFAULT_SLOTS as u8).expect("a payload and a report fit a frame")
    }

    /// A host of the cell; the controller sends to each node by itself. All know the same time, and rounds begin anywhere
    /// in a cycle.
    pub(super) fn celled(&self, scheme: Scheme, node: u32, seed: u64, sum: &Sum) -> Seat {
        let me = Question::address(node);
        let identity = Identity {
            me,
            role: Role::Direct {
                bssid: frame::MacAddr::ZERO,
            },
        };
        let rounds = self.rounds(scheme);
        let mut sender = SenderConfig::new(identity, self.question.rate);
        // frames go to all at once: nobody acknowledges one, and "not acked" is no failure
        sender.how = sender.how.no_ack();
        let sender = Seat(Box::new(Sender::<16>::new(sender)));
        let sender = self.ordered(scheme, node, self.question.cycle_ns, rounds.slot(), sender, sum);
        let now = Stream::new(seed, 0, Cause::Protocol).below(1 << 40);
        let config = TbmacConfig {
            sync: Sync::perfect(now as i64),
            ..TbmacConfig::new(me, Cell::default(), rounds)
        };
        counted(
            Box::new(Tbmac::<_, DEFAULT_SLOTS, 16, 1600>::new(config, sender)),
            sum,
        )
    }

    /// A node with slots of its own: the controller has as many in a cycle as there are nodes. All but backoff is left on,
    /// since every node has to hear.
    pub(super) fn slotted(&self, scheme: Scheme, node: u32, cycle_ns: u64, sum: &Sum) -> Seat {
        let slots = if node == 0 { self.question.nodes } else { 1 };
        let slot = Duration::from_ns((cycle_ns / u64::from(slots)).max(1));
        let config = SlottedConfig {
            queue: Queue::Voice,
            left_on: LeftOn {
                acks: true,
                rts: true,
                virtual_carrier_sense: true,
                carrier_sense: true,
                backoff: false,
                reception: true,
            },
            ..SlottedConfig::new(Question::address(node), slot)
        };
        let sender = SenderConfig::new(self.identity(node), self.question.rate);
        let sender = Seat(Box::new(Sender::<16>::new(sender)));
        // each attempt waits for a slot
        let sender = self.ordered(scheme, node, cycle_ns, slot, sender, sum);
        match (node, self.question.nodes) {
            (0, 17..) => slotted_of::<256>(config, sender, sum),
            (0, _) => slotted_of::<32>(config, sender, sum),
            _ => slotted_of::<4>(config, sender, sum),
        }
    }

    /// Earliest deadline first, if the scheme has it, above `seat`'s turns. An attempt costs `cost`; retries have a tenth of the
    /// channel if there is a pool for them.
    pub(super) fn ordered(
        &self,
        scheme: Scheme,
        node: u32,
        cycle_ns: u64,
        cost: Duration,
        seat: Seat,
        sum: &Sum,
    ) -> Seat {
        if !scheme.ordered {
            return seat;
        }
        let mut config = EdfConfig::new(CostEstimate::fixed(cost), Duration::from_ns(cycle_ns));
        if matches!(scheme.turn, Turn::Tdma | Turn::Tbmac) {
            config.at_once = AtOnce::EachReceiver;
        }
        if scheme.pooled {
            config.pool = Some(RetryPool {
                share_ppm: WHOLE_PPM / 10,
                depth: cost.times(2),
            });
        }
        let short = self.question.simulated_octets() <= 300;
        match (self.is_door(node), self.question.nodes, short) {
            (false, ..) => ordered_of::<8, 1600>(config, seat, sum),
            (_, ..=16, _) => ordered_of::<32, 1600>(config, seat, sum),
            (_, _, true) => ordered_of::<256, 400>(config, seat, sum),
            (_, _, false) => ordered_of::<256, 1600>(config, seat, sum),
        }
    }

    /// Rate control, if the scheme has it, below `seat`.
    pub(super) fn rated(&self, scheme: Scheme, node: u32, seat: Seat) -> Seat {
        let phy = &self.question.phy;
        let many = self.is_door(node);
        match scheme.rule {
            Rule::Fixed => seat,
            Rule::Minstrel => rated(many, Minstrel::new(phy, node.into()), seat),
            Rule::Rsin => {
                let fresh = Rsin::new(phy, NOISE_DBM, MARGIN_DB, crate::scenario::overlay::loss);
                rated(many, fresh, seat)
            }
        }
    }

    /// What a scheme has below the protocol of a node.
    pub(super) fn layered(&self, scheme: Scheme, node: u32, cycle_ns: u64, seat: Seat, sum: &Sum) -> Seat {
        let seat = self.rated(scheme, node, seat);
        let (one, two) = (AdapterId(0), AdapterId(1));
        let config = match scheme.copies {
            None => return seat,
            Some(Copies::Parallel) => RedundancyConfig::parallel(one, two),
            Some(Copies::Reactive) => RedundancyConfig::reactive(one, two),
            Some(Copies::Proactive) => RedundancyConfig::proactive(one, two, Duration::from_ns(cycle_ns / 4)),
        };
        // whom a node has to tell apart: in a cell every host hears all others
        let peers = if node == 0 || scheme.turn == Turn::Tbmac {
            self.question.nodes
        } else {
            1
        };
        match peers {
            17.. => counted(Box::new(Redundancy::<_, 256, 1600, 256>::new(config, seat)), sum),
            2..=16 => counted(Box::new(Redundancy::<_, 32, 1600, 32>::new(config, seat)), sum),
            _ => counted(Box::new(Redundancy::<_, 4, 1600, 1>::new(config, seat)), sum),
        }
    }
}

// by value, protocols with room for 256 frames would have their place on the stack more than once
pub(super) fn counted<P: Tells + 'static>(inner: Box<P>, sum: &Sum) -> Seat {
    let sum = sum.clone();
    Seat(Box::new(Counted { inner, sum }))
}

// inlined, these have their places on one stack at once: more than 2 MB
#[inline(never)]
fn slotted_of<const N: usize>(config: SlottedConfig, seat: Seat, sum: &Sum) -> Seat {
    counted(Box::new(Slotted::<_, N, 1600>::new(config, seat)), sum)
}

#[inline(never)]
fn ordered_of<const N: usize, const L: usize>(config: EdfConfig, seat: Seat, sum: &Sum) -> Seat {
    counted(Box::new(Edf::<_, N, L>::new(config, seat)), sum)
}

fn rated<A: Algorithm + Clone + 'static>(many: bool, fresh: A, seat: Seat) -> Seat {
    match many {
        true => rated_of::<A, 256, 256>(fresh, seat),
        // who roams has one access point behind it and one before it, and other rates for data than for management
        false => rated_of::<A, 4, 8>(fresh, seat),
    }
}

#[inline(never)]
fn rated_of<A: Algorithm + Clone + 'static, const PEERS: usize, const N: usize>(
    fresh: A,
    seat: Seat,
) -> Seat {
    Seat(Box::new(RateControl::<_, A, PEERS, N>::new(fresh, seat)))
}

#[cfg(test)]
mod tests {
    use super::super::engine::replicate;
    use super::super::question::{Link, Offsets};
    use super::*;

    fn run(scheme: &str, link: Link, nodes: u32, cycle_ns: u64, cycles: u32) -> super::super::tally::Tally {
        let scheme = Scheme::parse(scheme).unwrap();
        let q = Question {
            nodes,
            cycle_ns,
            link,
            schemes: vec![scheme],
            ..Question::example()
        };
        replicate(&Bench::new(&q).unwrap(), scheme, 5, cycle_ns, cycles, 1)
    }

    /// A quarter of the frames is lost on each channel, a sixteenth of the messages on both, and there is hardly a
    /// second chance in the cycle.
    #[test]
    fn two_adapters_miss_less_with_every_scheme() {
        let link = Link::Per { data: 0.25, ack: 0.0 };
        for (one, two) in [
            ("tdma", "redundancy+tdma"),
            ("edf", "redundancy+edf"),
            ("slotted", "redundancy+slotted"),
        ] {
            let misses = |scheme| run(scheme, link, 2, 2_000_000, 400).batches.misses();
            let (one, two) = (misses(one), misses(two));
            assert!(one > 0 && two * 4 < one, "{two} against {one}");
        }
        let t = run("redundancy+tdma+edf", link, 2, 4_000_000, 400);
        assert_eq!(t.batches.trials(), 4 * 400);
        assert!(t.batches.misses() < 160, "{:?} {:?}", t.batches, t.causes);
    }

    /// Copies that are not needed are taken back, or not sent at all, and nothing more is missed. Slots hold with switches, with
    /// joining and in a cell, over two adapters.
    #[test]
    fn copies_are_saved_and_slots_have_two_adapters() {
        let link = || Link::Per { data: 0.1, ack: 0.0 };
        let tries = |scheme| {
            let t = run(scheme, link(), 4, 10_000_000, 300);
            assert_eq!(t.batches.misses(), 0, "{scheme}: {:?}", t.causes);
            t.tries.count()
        };
        let (parallel, reactive, proactive) = (tries("redundancy"), tries("reactive"), tries("proactive"));
        assert!(
            proactive * 3 < reactive * 2 && reactive * 10 < parallel * 9,
            "{parallel} {reactive} {proactive}"
        );
        for scheme in ["redundancy+tdma-reception-carrier_sense", "redundancy+tdma+join"] {
            let t = run(scheme, link(), 4, 10_000_000, 300);
            assert!(
                t.batches.misses() * 100 < t.batches.trials(),
                "{scheme}: {:?}",
                t.causes
            );
        }
        // frames of a cell have one try
        let missed = |scheme| run(scheme, link(), 2, 20_000_000, 300).batches.misses();
        let (one, two) = (missed("tbmac"), missed("redundancy+tbmac"));
        assert!(two * 4 < one, "{two} against {one}");
    }

    /// Whoever's turn it is, a node has one frame under way, and what cannot be in time any more is not sent.
    #[test]
    fn deadlines_order_what_a_node_has() {
        let run = |scheme, data, nodes, cycle_ns| {
            let scheme = Scheme::parse(scheme).unwrap();
            let q = Question {
                nodes,
                cycle_ns,
                link: Link::Per { data, ack: 0.0 },
                schemes: vec![scheme],
                ..Question::example()
            };
            replicate(&Bench::new(&q).unwrap(), scheme, 5, cycle_ns, 300, 1)
        };
        for scheme in [
            "edca+edf",
            "slotted+edf",
            "minstrel+edf",
            "rsin+edf",
            "redundancy+edca+edf",
            "edca+edf+pool",
        ] {
            let t = run(scheme, 0.1, 4, 10_000_000);
            let (o, misses) = (t.own.ordered, t.batches.misses());
            println!(
                "{scheme}: {misses} of {} {:?} {o:?}",
                t.batches.trials(),
                t.causes
            );
            // four nodes and the controller, each way, and the cycles before
            let ended = o.acked + o.dropped + o.exhausted;
            assert!(ended > 8 * 300 && o.failed > 100, "{scheme}: {o:?}");
            assert!(o.attempts >= o.acked + o.failed, "{scheme}: {o:?}");
            // a one-shot that finds the channel idle goes at once: those that collide are repeated together, and collide again
            if scheme.starts_with("edca") {
                assert!(misses * 4 > t.batches.trials(), "{scheme}: {misses}");
            }
        }
        // nobody acknowledges anything in a cell
        let o = run("tbmac+edf", 0.0, 2, 20_000_000).own.ordered;
        assert!(o.attempts > 4 * 300 && o.acked == 0, "{o:?}");
        // the pool is empty when most attempts fail, and nothing is unpaid where there is none
        let unpaid = |scheme| run(scheme, 0.8, 8, 4_000_000).own.ordered.unpaid;
        let (with, without) = (unpaid("edca+edf+pool"), unpaid("edca+edf"));
        assert!(with > 300 && without == 0, "{with} {without}");
    }

    /// The slots of thirteen nodes whose messages come at any time: that a frame waits for its slot holds up no other one.
    #[test]
    fn deadlines_above_slots_hold_nothing_up() {
        let misses = |scheme| {
            let scheme = Scheme::parse(scheme).unwrap();
            let q = Question {
                nodes: 13,
                cycle_ns: 8_000_000,
                link: Link::Per { data: 0.0, ack: 0.0 },
                offsets: Offsets::Random,
                rate: frame::Rate::OFDM_54,
                schemes: vec![scheme],
                ..Question::example()
            };
            replicate(&Bench::new(&q).unwrap(), scheme, 0, q.cycle_ns, 300, 1)
                .batches
                .misses()
        };
        assert_eq!((misses("tdma"), misses("tdma+edf")), (0, 0));
    }

    /// A node and the controller release at one moment, so both first tries collide, always. Minstrel does not take that for a property of
    /// the rates: it comes away from a slow one, and stays near a fast one.
    #[test]
    fn minstrel_is_not_misled_by_first_tries() {
        let p50 = |scheme, rate| {
            let scheme = Scheme::parse(scheme).unwrap();
            let q = Question {
                nodes: 1,
                link: Link::SnrDb(40.0),
                rate,
                schemes: vec![scheme],
                ..Question::example()
            };
            let t = replicate(&Bench::new(&q).unwrap(), scheme, 5, q.cycle_ns, 1_000, 1);
            assert!(t.tries.data_lost > 1_800, "{:?}", t.tries);
            t.up.quantile_ns(0.5).unwrap()
        };
        let of = |rate| (p50("edca", rate), p50("minstrel", rate));
        let (slow, from_slow) = of(frame::Rate::OFDM_6);
        let (fast, from_fast) = of(frame::Rate::OFDM_54);
        println!("{slow} {from_slow}, {fast} {from_fast}");
        assert!(from_slow < (slow + fast) / 2, "{from_slow} of {slow} and {fast}");
        assert!(
            from_fast < fast + (slow - fast) / 4,
            "{from_fast} of {slow} and {fast}"
        );
    }

    /// At 12 dB 54 Mb/s hardly arrives; who chooses finds a rate that does.
    #[test]
    fn rates_are_chosen_where_the_link_is_weak() {
        let missed = |scheme| {
            run(scheme, Link::SnrDb(14.0), 2, 20_000_000, 300)
                .batches
                .estimate()
                .unwrap()
        };
        let (fixed, minstrel, rsin) = (missed("edca"), missed("minstrel"), missed("rsin"));
        assert!(
            fixed > 0.2 && minstrel < fixed / 2.0 && rsin < fixed / 2.0,
            "{fixed} {minstrel} {rsin}"
        );
    }

    /// A cell has 16 slots and the controller one of them, so two nodes take three rounds at most.
    #[test]
    fn a_cell_holds_when_its_rounds_fit() {
        let link = Link::Per { data: 0.0, ack: 0.0 };
        let t = run("tbmac", link, 2, 20_000_000, 300);
        assert_eq!(
            (t.batches.trials(), t.batches.misses(), t.collided),
            (1_200, 0, 0),
            "{:?}",
            t.causes
        );
        let short = run("tbmac", link, 2, 2_000_000, 300);
        assert!(short.batches.misses() > 300);
    }

    /// Slots that know nothing of each other drift through each other: most hold, and some collide.
    #[test]
    fn slots_without_agreement_are_slots() {
        let link = Link::Per { data: 0.0, ack: 0.0 };
        let t = run("slotted", link, 4, 4_000_000, 400);
        assert!(t.batches.misses() * 2 < t.batches.trials(), "{:?}", t.causes);
        assert!(t.up.quantile_ns(0.5).unwrap() > 100_000);
    }
}
