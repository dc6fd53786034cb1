//! What is admitted, and why what is not.

use super::super::schedule::{Release, Slot};
use super::worst::{own, waiting};
use super::*;
use frame::{MacAddr, Phy, Rate};
use proptest::prelude::*;

const MS: fn(u64) -> Duration = Duration::from_ms;
const US: fn(u64) -> Duration = Duration::from_us;

fn costs() -> SlotCosts {
    let (min, high) = (US(10), US(30));
    SlotCosts::new(Phy::A, Rate::OFDM_24, Release { min, high }, US(5))
}

fn demand(node: u32) -> Demand {
    Demand {
        backlog: 0,
        flow: Flow {
            from: MacAddr::local(node),
            to: MacAddr::local(0),
            payload_octets: 50,
        },
        period: MS(5),
        deadline: MS(5),
        phase: None,
        per: 0.0,
        target: 1e-6,
    }
}

fn ask(demands: &[Demand], cycle: Duration) -> Result<TdmaPlan<16>, Denied> {
    admit(demands, cycle, None, &costs(), US(50), 64)
}

/// Without losses a message waits for a cycle at most, and then for its slot.
#[test]
fn one_attempt_takes_a_cycle_and_an_exchange() {
    // so long that no second round fits
    let demands = [demand(1), demand(2)];
    let shortest = TdmaPlan::<16>::shortest_cycle(&demands.map(|d| d.flow), None, &costs(), 0);
    let plan = ask(&demands, shortest).unwrap();
    let exchange = plan.slot(0).unwrap().exchange;
    let worst = shortest + costs().guard() + exchange + costs().release.high;
    let tight = demands.map(|d| Demand { deadline: worst, ..d });
    assert!(ask(&tight, shortest).is_ok());
    let late = Demand {
        deadline: worst.less(Duration::from_ns(1)),
        ..demands[1]
    };
    let denied = ask(&[demands[0], late], shortest).unwrap_err();
    assert_eq!(denied, Denied::NoRoom { flow: 1, slots: 2 });
    // no number of slots makes an exchange shorter
    let hopeless = Demand {
        deadline: exchange,
        ..demands[1]
    };
    let denied = ask(&[demands[0], hopeless], shortest).unwrap_err();
    let worst = costs().release.high + costs().guard() + exchange;
    assert_eq!(denied, Denied::TooSlow { flow: 1, worst });
    // messages may wait for each other if their deadline allows, but must not queue up without end
    let often = |period| Demand { period, ..demands[0] };
    assert!(ask(&[often(shortest), demands[1]], shortest).is_ok());
    let quicker = shortest.less(Duration::from_ns(1));
    assert_eq!(
        ask(&[often(quicker)], shortest).map(|p| p.rounds()),
        Ok(2),
        "alone it has two slots"
    );
    let denied = ask(&[often(quicker), demands[1]], shortest).unwrap_err();
    assert_eq!(denied, Denied::NoRoom { flow: 0, slots: 2 });
    let denied = ask(&[often(Duration::ZERO), demands[1]], shortest).unwrap_err();
    assert_eq!(denied, Denied::TooOften { flow: 0 });
}

/// Losses ask for more attempts, and these for time.
#[test]
fn losses_cost_time() {
    let lossy = |per, target| Demand {
        per,
        target,
        ..demand(1)
    };
    let cycle = US(175);
    let worst = |per, target| {
        let short = Demand {
            deadline: US(1),
            ..lossy(per, target)
        };
        match ask(&[short], cycle).unwrap_err() {
            Denied::TooSlow { worst, .. } => worst,
            other => panic!("{other:?}"),
        }
    };
    // a release, a guard and an exchange for each, and its outcome before the next one
    let one = worst(0.0, 0.02);
    assert_eq!(worst(0.1, 0.02).less(one), one + US(50));
    assert_eq!(worst(0.1, 0.002).less(worst(0.1, 0.02)), one + US(50));
    // one slot in a cycle, and in the next one the outcome is not known yet: every second one
    let in_time = |deadline| {
        ask(
            &[Demand {
                deadline,
                ..lossy(0.1, 0.02)
            }],
            cycle,
        )
        .is_ok()
    };
    assert!(in_time(one + cycle.times(3)) && !in_time(one + cycle.times(3).less(Duration::from_ns(1))));
    assert_eq!(
        ask(&[lossy(1.0, 0.5)], cycle).unwrap_err(),
        Denied::TooLossy { flow: 0 }
    );
}

/// Nodes join until no slot is left; when one leaves, there is room for another.
#[test]
fn joining_and_leaving() {
    let mut set = std::vec::Vec::new();
    while ask(&[&set[..], &[demand(set.len() as u32)]].concat(), MS(2)).is_ok() {
        set.push(demand(set.len() as u32));
    }
    assert!(set.len() > 4);
    let more = demand(99);
    let denied = ask(&[&set[..], &[more]].concat(), MS(2)).unwrap_err();
    assert!(matches!(denied, Denied::Plan(_)), "{denied:?}");
    set.remove(0);
    set.push(more);
    assert!(ask(&set, MS(2)).is_ok());
}

/// One flow that comes ten times in a cycle among 39 that come once: it has its slots, spread so that each message meets one
/// in time. One slot each, in rounds, would not do.
#[test]
fn a_fast_flow_has_more_slots() {
    let slow = |n| Demand {
        period: MS(20),
        deadline: MS(20),
        ..demand(n)
    };
    let fast = Demand {
        period: MS(2),
        deadline: MS(2),
        ..demand(40)
    };
    let mut demands: std::vec::Vec<_> = (1..40).map(slow).collect();
    demands.push(fast);
    let plan = admit::<128>(&demands, MS(20), None, &costs(), US(50), 64).unwrap();
    let starts: std::vec::Vec<_> = own(&plan, 39).map(|(_, s)| s.start).collect();
    assert!((11..=13).contains(&starts.len()), "{}", starts.len());
    let airtime = own(&plan, 39).next().unwrap().1.exchange;
    let next = starts.iter().skip(1).copied().chain([starts[0] + MS(20)]);
    for (a, b) in starts.iter().copied().zip(next) {
        assert!(b.less(a) + airtime <= fast.deadline, "{a:?} {b:?}");
    }
    // all the others have what a deadline of one cycle needs, too
    assert!((0..39).all(|i| plan.slots_of(i) == 2));
    // twice as often does not fit beside them any more, and it is said who that is
    let faster = Demand {
        period: US(250),
        deadline: US(250),
        ..fast
    };
    demands[39] = faster;
    let denied = admit::<128>(&demands, MS(20), None, &costs(), US(50), 64).unwrap_err();
    assert!(matches!(denied, Denied::NoRoom { .. }), "{denied:?}");
}

/// Of flows that are alike but for their losses, the lossy ones have the slots for their second chances.
#[test]
fn a_lossy_flow_has_more_slots() {
    let lossy = |node, per| Demand {
        period: MS(10),
        deadline: MS(10),
        per,
        target: 1e-4,
        ..demand(node)
    };
    let demands = [lossy(1, 0.1), lossy(2, 1e-4), lossy(3, 0.0)];
    // no room for a third round
    let cycle = US(1_210);
    let plan = |demands: &[Demand]| ask(demands, cycle).unwrap();
    let of = |plan: &TdmaPlan<16>| [0, 1, 2].map(|f| plan.slots_of(f));
    assert_eq!(of(&plan(&demands)), [2, 2, 2], "rounds, as there is time");
    let hurried = demands.map(|d| Demand {
        deadline: US(2_200),
        ..d
    });
    let got = of(&plan(&hurried));
    assert!(got[0] > got[1] && got[1] >= got[2], "{got:?}");
    // of one link all have what the lossy one needs: each other's slots may be taken
    let of_one = hurried.map(|d| Demand {
        flow: demand(1).flow,
        ..d
    });
    let denied = ask(&of_one, cycle).unwrap_err();
    assert!(matches!(denied, Denied::NoRoom { slots: 3.., .. }), "{denied:?}");
}

/// Messages that always come at the start of the cycle need no more than their slots in it.
#[test]
fn a_phase_that_is_known_saves_slots() {
    let demands = [demand(1), demand(2)];
    let shortest = TdmaPlan::<16>::shortest_cycle(&demands.map(|d| d.flow), None, &costs(), 0);
    let cycle = shortest + costs().release.high;
    let loops = |phase| {
        demands.map(|d| Demand {
            period: cycle,
            deadline: cycle + costs().release.high,
            phase,
            ..d
        })
    };
    assert!(ask(&loops(None), cycle).is_err());
    // the first slot begins before the message is ready for it
    assert!(ask(&loops(Some(Duration::ZERO)), cycle).is_err());
    let before = cycle.less(costs().release.high);
    assert!(ask(&loops(Some(before)), cycle).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// What is admitted holds: messages with all the losses that were reckoned with, from any instant on, meet their deadline.
    #[test]
    fn what_is_admitted_is_in_time(
        wants in proptest::collection::vec((1u64..20, 1u64..40, 0u16..600, 0usize..3), 1..6),
        cycle in 1u64..16,
        at in any::<u32>(),
    ) {
        let (cycle, confirm) = (US(cycle * 500), US(50));
        let demands: std::vec::Vec<_> = (1..).zip(&wants).map(|(n, (period, deadline, octets, losses))| {
            let mut d = demand(n);
            d.flow.payload_octets = *octets;
            (d.period, d.deadline) = (US(period * 400), US(deadline * 400));
            (d.per, d.target) = [(0.0, 1e-6), (0.01, 1e-3), (0.1, 2e-3)][*losses];
            d
        }).collect();
        if let Ok(plan) = admit::<64>(&demands, cycle, None, &costs(), confirm, 64) {
            let end = plan.slots().last().map(|s| s.start + s.length);
            prop_assert!(end.unwrap() <= cycle);
            for (a, b) in plan.slots().zip(plan.slots().skip(1)) {
                prop_assert!(a.start + a.length <= b.start);
            }
            for (i, d) in demands.iter().enumerate() {
                let attempts = [1, 2, 3][wants[i].3];
                let late = latest(&plan, i, d, attempts, confirm, Duration::from_ns(u64::from(at) % cycle.as_ns()));
                prop_assert!(late <= d.deadline, "{i}: {late:?} {d:?}");
            }
        }
    }
}

/// The longest latency of 200 messages from `at` on, slot by slot: each fails in all attempts but the last.
fn latest(
    plan: &TdmaPlan<64>,
    flow: usize,
    d: &Demand,
    attempts: u32,
    confirm: Duration,
    at: Duration,
) -> Duration {
    let (release, guard) = (costs().release.high, costs().guard());
    let (mut free, mut longest) = (Duration::ZERO, Duration::ZERO);
    for n in 0..200 {
        let came = at + d.period.times(n);
        let mut ready = free.max(came + release);
        for _ in 0..attempts {
            let starts =
                (0..).flat_map(|c| own(plan, flow).map(move |(_, s)| (plan.cycle().times(c) + s.start, s)));
            let (start, slot) = { starts }.find(|(start, _)| *start >= ready).unwrap();
            free = start + guard + slot.exchange;
            ready = free + confirm + release;
        }
        longest = longest.max(free.less(came));
    }
    longest
}

/// Two flows of a node with a message each 2 ms, 50 of each in a cycle: in slots behind each other more of them wait than the node holds, so
/// they are spread.
#[test]
fn no_more_wait_than_a_node_holds() {
    let often = Demand {
        period: MS(2),
        deadline: MS(300),
        ..demand(1)
    };
    let ask = |held: usize| admit::<128>(&[often; 2], MS(100), None, &costs(), US(50), held);
    let (loose, tight) = (ask(1_000).unwrap(), ask(64).unwrap());
    assert!(!loose.is_spread() && tight.is_spread());
    // one of each waits in any case
    let (flow, waiting, held) = (1, 2, 1);
    assert_eq!(ask(1).err(), Some(Denied::TooMany { flow, waiting, held }));
}

/// A beacon makes some gaps longer than the period, but not those of all flows at once: of fifty with two slots each in a cycle hardly more than
/// one message waits of each.
#[test]
fn gaps_are_not_all_at_once() {
    let demands: std::vec::Vec<Demand> = (1..=50)
        .map(|n| Demand {
            flow: Flow {
                from: MacAddr::local(0),
                to: MacAddr::local(n),
                payload_octets: 50,
            },
            period: MS(40),
            deadline: MS(80),
            ..demand(1)
        })
        .collect();
    let beacon = BeaconSlot {
        from: MacAddr::local(0),
        octets: 80,
        rate: Rate::OFDM_6,
        every: 1,
    };
    let plan = admit::<128>(&demands, MS(80), Some(beacon), &costs(), US(50), 64).unwrap();
    assert_eq!((0..50).map(|f| plan.slots_of(f)).sum::<usize>(), 100);
}

/// A message would have to be ready for its slots just when they begin: that can be reckoned with if it always comes at the same time of the
/// cycle, and else no number of slots does it.
#[test]
fn a_deadline_without_a_moment_to_wait_needs_a_phase() {
    let release = costs().release.high;
    let plan = ask(&[demand(1)], MS(5)).unwrap();
    let one = release + costs().guard() + plan.slot(0).unwrap().exchange;
    for (per, worst) in [(0.001, one.times(2) + US(50)), (0.0, one)] {
        let d = Demand {
            deadline: worst,
            per,
            ..demand(1)
        };
        assert_eq!(ask(&[d], MS(5)).err(), Some(Denied::TooSlow { flow: 0, worst }));
        let phase = Some(MS(5).less(release));
        assert_eq!(ask(&[Demand { phase, ..d }], MS(5)).is_ok(), per == 0.0);
    }
}

/// As many messages are told to wait as wait when all attempts fail that may: with retries more than without.
#[test]
fn retries_make_more_wait() {
    let long = Flow {
        payload_octets: 1_000,
        ..demand(2).flow
    };
    let flows = [demand(1).flow, long];
    let like = TdmaPlan::<64>::new(&flows, MS(4), None, &costs()).unwrap();
    // eight slots each 0.5 ms, but that the second is pushed to 0.658 ms by the long one
    let plan = like.with_slots(&flows, &[8, 1]).unwrap();
    let told = |period, attempts| {
        let ahead_of = |s: &Slot| waiting(&plan, 0, period, attempts, s.start);
        plan.slots().map(ahead_of).max().unwrap()
    };
    let cases = [(1, 1), (2, 1), (2, 2), (3, 2), (4, 2), (4, 4)];
    let got = cases.map(|(attempts, ms)| told(MS(ms), attempts));
    assert_eq!(got, [1, 2, 1, 1, 2, 1]);
    assert_eq!(got, cases.map(|(attempts, ms)| most(&plan, MS(ms), attempts)));
}

/// The most messages of flow 0 that wait at once, slot by slot: they come a period apart from just after one of its slots on, and fail in all
/// attempts but the last.
fn most(plan: &TdmaPlan<64>, period: Duration, attempts: u32) -> u64 {
    let cycles = |n| own(plan, 0).map(move |(_, s)| plan.cycle().times(n) + s.start);
    let from = |began: Duration| {
        let (mut made, mut most) = (0, 0);
        for start in (0..9).flat_map(cycles).filter(|s| *s > began) {
            let came = start.less(began).as_ns().div_ceil(period.as_ns());
            let waiting = came - made / u64::from(attempts);
            most = most.max(waiting);
            made += u64::from(waiting > 0);
        }
        most
    };
    cycles(0).map(from).max().unwrap()
}
