//! Whole questions, small enough for every day.

use lab::qualify::question::{Link, Offsets, Question, Scheme, Turn};
use lab::qualify::{Answer, Setting, qualify, table};
use lab::stats::{Proportion, Verdict};
use std::sync::atomic::{AtomicBool, Ordering};

/// No losses, one miss in a hundred is acceptable, little effort.
fn easy(nodes: u32, cycle_ms: u64) -> Question {
    Question {
        nodes,
        cycle_ns: cycle_ms * 1_000_000,
        miss: 1e-2,
        link: Link::Per { data: 0.0, ack: 0.0 },
        max_cycles: Some(4_000),
        quick: true,
        ..Question::example()
    }
}

fn ask(q: &Question, jobs: usize) -> Answer {
    let stop = AtomicBool::new(false);
    let setting = Setting {
        jobs,
        stop: &stop,
        progress: &|_| {},
    };
    qualify(q, &setting).unwrap()
}

#[test]
fn two_nodes_have_time_to_spare() {
    let a = ask(&easy(2, 20), 2);
    let verdicts: Vec<_> = a.schemes.iter().map(|r| (r.scheme, r.verdict)).collect();
    assert_eq!(verdicts, Scheme::USUAL.map(|s| (s, Verdict::Pass)));
    assert!(a.recommendation.contains("plain Wi-Fi"), "{}", a.recommendation);
    for r in &a.schemes {
        let (interval, p) = (r.interval.unwrap(), r.miss_probability.unwrap());
        assert!(interval.low <= p && p <= interval.high && interval.high <= 1e-2);
        assert_eq!(r.messages, r.cycles * 4);
        // what is on the air is about four frames of 36 us with ACKs of 28 us in 20 ms, EDCA repeats some
        assert!((0.006..0.03).contains(&r.air.data), "{r:?}");
        assert!(r.down.p50_ns < r.down.p99_ns, "{:?}", r.down);
        assert!(r.misses > 0 || r.down.p99_99_ns <= r.down.max_ns, "{:?}", r.down);
    }
    // polls and slots leave no doubt
    assert!(a.schemes[1..].iter().all(|r| r.misses == 0));
}

/// 2 x 40 exchanges of 80 us and a SIFS take 7.7 ms.
#[test]
fn more_than_the_air_can_carry_is_not_blamed_on_collisions() {
    let q = Question {
        schemes: vec![Scheme::EDCA],
        max_cycles: Some(400),
        ..easy(40, 5)
    };
    let a = ask(&q, 2);
    assert_eq!(a.schemes[0].verdict, Verdict::Fail);
    let why = &a.schemes[0].why;
    assert!(
        why.contains("the cycle is too short for their frames alone: 80 exchanges of"),
        "{why}"
    );
}

/// The waterfall of the paper's host: t1 to t4 and t5 to t9 together take 22 us on average (Table V).
#[test]
fn the_waterfall_is_that_of_the_profile() {
    let q = Question {
        schemes: vec![Scheme::TDMA],
        ..easy(2, 20)
    };
    let a = ask(&q, 2);
    let of = |name: &str| {
        let stretch = a.schemes[0].waterfall.iter().find(|s| s.name == name).unwrap();
        stretch.mean_ns.unwrap()
    };
    // data, SIFS, ACK, and 10 m there and back
    assert!(
        (of("air") - (36e3 + 16e3 + 28e3 + 2.0 * 33.0)).abs() < 1.0,
        "{}",
        of("air")
    );
    let software: f64 = ["t1-t2", "t2-t3", "t3-t4", "t5-t6", "t6-t7", "t7-t8", "t8-t9"]
        .map(of)
        .iter()
        .sum();
    let hardware = of("t4-air") + of("air-t5");
    assert!((21e3..23.5e3).contains(&software), "{software}");
    assert!(
        (20.0e3..20.7e3).contains(&hardware),
        "T_hw is 20.311 us: {hardware}"
    );
}

#[test]
fn sixty_nodes_do_not_fit_two_milliseconds_and_the_answer_says_what_does() {
    let q = Question {
        schemes: vec![Scheme::EDF, Scheme::TDMA],
        ..easy(60, 2)
    };
    let a = ask(&q, 2);
    for r in &a.schemes {
        assert_eq!(r.verdict, Verdict::Fail);
        if r.scheme.turn == Turn::Edf {
            let rest = r
                .causes
                .named()
                .iter()
                .filter(|(name, _)| *name != "not polled")
                .map(|(_, n)| n)
                .sum::<u64>();
            assert!(r.causes.not_polled > 9 * rest, "{:?}", r.causes);
        }
        let said = format!("{} {}", r.why, r.advice.join(" "));
        assert!(
            said.contains("60 exchanges") || said.contains("too many nodes"),
            "{said}"
        );
        assert!(
            said.contains("would hold") && said.contains("nodes per channel"),
            "{said}"
        );
        let cycle_ns = r.shortest.unwrap().cycle_ns;
        let again = Question {
            cycle_ns,
            schemes: vec![r.scheme],
            ..q.clone()
        };
        assert_eq!(ask(&again, 2).schemes[0].verdict, Verdict::Pass, "{cycle_ns} ns");
    }
    assert!(
        a.recommendation.starts_with("None of these holds"),
        "{}",
        a.recommendation
    );
}

/// One frame in ten is lost: without repetitions one message in ten would miss.
#[test]
fn repetitions_beat_losses_while_there_is_time() {
    let lossy = |cycle_ms| Question {
        link: Link::Per { data: 0.1, ack: 0.0 },
        schemes: vec![Scheme::EDF, Scheme::TDMA],
        ..easy(4, cycle_ms)
    };
    for r in &ask(&lossy(20), 2).schemes {
        assert_eq!(r.verdict, Verdict::Pass, "{:?}", r.why);
        assert!(r.air.frames_per_message > 1.1, "{:?}", r.air);
    }
    // a cycle with room for the first tries only
    for r in &ask(&lossy(1), 2).schemes {
        assert!(r.verdict == Verdict::Fail, "{:?}", r.why);
    }
}

/// The reason names what began it, in the words of the scheme: not the collisions that follow from it.
#[test]
fn the_reason_is_what_began_it() {
    let example = |scheme, link, interference: &str| {
        let q = Question {
            schemes: vec![scheme],
            link,
            interference: lab::qualify::question::parse_interference(interference).unwrap(),
            max_cycles: Some(4_000),
            quick: true,
            ..Question::example()
        };
        let r = ask(&q, 2).schemes.remove(0);
        assert_eq!(r.verdict, Verdict::Fail, "{}", r.why);
        let of_all = r.causes.named().iter().map(|(_, n)| n).sum::<u64>();
        assert_eq!(of_all, r.misses, "each miss has one cause");
        let said = format!("{} {}", r.why, r.advice.join(" "));
        (r, said)
    };
    let (no_loss, none) = (Link::Per { data: 0.0, ack: 0.0 }, "none");
    let lossy = Link::Per { data: 0.1, ack: 0.1 };

    // nobody collides before a frame was lost: the second chances do
    let (r, said) = example(Scheme::TDMA, lossy, none);
    assert_eq!((r.causes.collisions, r.causes.losses), (0, r.misses));
    assert!(
        said.contains("first frame was lost on the link") && said.contains("second chances"),
        "{said}"
    );
    assert!(
        r.air.repeats_collided > 0.0 && (r.air.lost_alone - 0.1).abs() < 0.01,
        "{:?}",
        r.air
    );
    // frames wait for others and then meet
    let (r, said) = example(Scheme::TDMA, no_loss, "load=20%");
    assert!(
        said.contains("others were on the air") && !said.contains("EDF and TDMA"),
        "{said}"
    );
    assert!(r.air.collided_frames > r.air.disturbed_frames, "{:?}", r.air);
    // even a frame that is alone does not arrive
    let (r, said) = example(Scheme::EDCA, Link::SnrDb(3.0), none);
    assert!(r.causes.collisions > r.causes.losses && r.air.lost_alone > 0.99);
    assert!(
        said.contains("the link fails") && said.contains("lower rate") && !said.contains("at once"),
        "{said}"
    );
}

/// Six nodes that speak one after the other collide less than six that speak at once, and those that are polled do
/// not mind. The table says which it was.
#[test]
fn offsets_spread_the_load() {
    let ask_with = |offsets| {
        let q = Question {
            offsets,
            schemes: vec![Scheme::EDCA, Scheme::EDF],
            ..easy(6, 6)
        };
        ask(&q, 2)
    };
    let [none, even, random] = [Offsets::None, Offsets::Even, Offsets::Random].map(ask_with);
    let collided = |a: &Answer| a.schemes[0].air.collided_frames;
    // the two messages of a node still meet
    for spread in [&even, &random] {
        assert!(collided(spread) < collided(&none), "{:?}", spread.schemes[0].air);
    }
    assert_eq!(even.schemes[0].verdict, Verdict::Pass);
    for a in [&none, &even, &random] {
        assert_eq!((a.schemes[1].verdict, a.schemes[1].misses), (Verdict::Pass, 0));
        assert!(table::table(a, 100).contains(a.question.offsets.words()));
    }
}

/// Without losses on the link every try is acknowledged; with 1 % of data frames and 2 % of ACKs lost, the shares
/// show.
#[test]
fn tries_are_split_by_outcome() {
    let with = |link| {
        let q = Question {
            link,
            schemes: vec![Scheme::TDMA],
            miss: 0.1,
            ..easy(4, 20)
        };
        ask(&q, 2).schemes[0].tries
    };
    let t = with(Link::Per { data: 0.0, ack: 0.0 });
    assert!(t.acked > 0 && (t.data_lost, t.ack_lost) == (0, 0), "{t:?}");
    let t = with(Link::Per {
        data: 0.01,
        ack: 0.02,
    });
    let share = |n: u64| n as f64 / t.count() as f64;
    // of the frames that arrive 2 % get no ACK; five deviations
    let near = |n, p: f64| (share(n) - p).abs() < 5.0 * (p / t.count() as f64).sqrt();
    assert!(near(t.data_lost, 0.01) && near(t.ack_lost, 0.0198), "{t:?}");
}

/// With one beacon in a cycle of more than a second, one that is lost does not make the clock untrusted.
#[test]
fn long_cycles_bear_lost_beacons() {
    let q = Question {
        link: Link::Per { data: 0.1, ack: 0.0 },
        schemes: vec![Scheme::TDMA],
        max_cycles: Some(1_000),
        ..easy(2, 1_100)
    };
    let r = &ask(&q, 2).schemes[0];
    assert_eq!((r.verdict, r.misses), (Verdict::Pass, 0), "{}", r.why);
}

/// Nodes that ask for their slots: what that takes from the cycle, and how long it takes, are in the answer.
#[test]
fn what_joining_costs() {
    let joining = Scheme {
        joins: true,
        ..Scheme::TDMA
    };
    let q = Question {
        schemes: vec![Scheme::TDMA, joining],
        ..easy(4, 10)
    };
    let a = ask(&q, 2);
    let [fixed, joined] = &a.schemes[..] else {
        panic!("two schemes")
    };
    assert_eq!((fixed.verdict, joined.verdict), (Verdict::Pass, Verdict::Pass));
    let (without, with) = (fixed.slots.unwrap(), joined.slots.unwrap());
    assert_eq!(without.joining, None);
    let j = with.joining.unwrap();
    assert_eq!(with.one_round_ns, without.one_round_ns + j.ask_ns + j.list_ns);
    // four worlds; a change waits for the lease of fifty cycles that has been told
    assert_eq!((j.asked, j.joined), (16, 16));
    let (p50, max) = (j.p50_ns.unwrap(), j.max_ns.unwrap());
    assert!((400_000_000..=max).contains(&p50) && max < 3_000_000_000, "{j:?}");
    let text = table::table(&a, 100).replace("\n      ", " ");
    println!("{text}");
    assert!(text.contains("16 of 16 nodes that asked came in"), "{text}");
    let many = Question { nodes: 17, ..q };
    let error = many.check().unwrap_err().to_string();
    assert!(error.contains("room for 16 nodes, these are 17"), "{error}");
}

/// Who could not decode a frame waits for EIFS, for which slots have room: where frames get lost on the way, those behind them are late no more
/// often than the guard leaves out. Of hosts of TBMAC, which speak to all, a quarter was late. (A decibel further away most frames are lost to somebody,
/// hosts cannot agree, and two that have the same slot for some rounds make each other late: no room helps there.)
#[test]
fn a_frame_that_is_lost_makes_nobody_late() {
    for (scheme, snr_db, p, bound, cycle_ms) in [
        ("tdma", 22.0, 0.9, 0.1, 10),
        ("tdma-acks", 22.0, 0.9999, 1e-4, 10),
        ("tdma-reception-carrier_sense-acks", 22.0, 0.9999, 1e-4, 10),
        ("tbmac", 21.0, 0.9999, 3e-4, 25),
    ] {
        let q = Question {
            link: Link::SnrDb(snr_db),
            guard_probability: p,
            schemes: vec![Scheme::parse(scheme).unwrap()],
            max_cycles: Some(200),
            ..easy(4, cycle_ms)
        };
        let a = ask(&q, 2);
        let r = &a.schemes[0];
        let cell = r.overlay.cell.map(|c| c.late_share);
        let late = r.slots.and_then(|s| s.late_share).or(cell).unwrap();
        println!(
            "{scheme}: {late} late of {}, {} lost, {} missed",
            r.messages, r.air.lost_alone, r.misses
        );
        // frames of TBMAC are for all, and are not asked whether they arrived
        let lost = match scheme {
            "tbmac" => r.misses as f64 / r.messages as f64,
            _ => r.air.lost_alone,
        };
        assert!(lost > 1e-3, "{scheme}: frames get lost");
        let frames = r.messages;
        let range = Proportion::new((late * frames as f64).round() as u64, frames).clopper_pearson(0.999);
        assert!(range.low <= bound, "{scheme}: {late} of {frames} are late");
    }
}

/// A network that some are not let into is none that holds, although those who are in miss nothing.
#[test]
fn who_is_not_let_in_has_no_loop_that_holds() {
    let joining = Scheme {
        joins: true,
        ..Scheme::TDMA
    };
    let q = Question {
        cycle_ns: 1_990_000,
        link: Question::example().link,
        schemes: vec![joining],
        ..easy(4, 2)
    };
    let a = ask(&q, 2);
    let r = &a.schemes[0];
    let slots = r.slots.unwrap();
    let j = slots.joining.unwrap();
    assert!(slots.rounds > 0 && j.joined < j.asked, "{j:?}");
    assert_eq!(r.verdict, Verdict::Fail);
    assert!(r.why.contains("were not given a slot"), "{}", r.why);
    // the cycle that is named lets all in
    let s = r.shortest.expect("a longer cycle helps");
    assert!(s.cycle_ns > q.cycle_ns);
    let longer = Question {
        cycle_ns: s.cycle_ns,
        ..q
    };
    let longer = ask(&longer, 2);
    let r = &longer.schemes[0];
    assert!(r.slots.unwrap().joining.unwrap().is_whole());
    assert_eq!(r.verdict, Verdict::Pass, "{}", r.why);
}

/// Foreign probe requests against slots: with reception and carrier sense on, frames wait for them; with both off, frames are
/// hit by them.
#[test]
fn what_is_left_on_costs() {
    let schemes = ["tdma", "tdma-reception-carrier_sense"].map(|s| Scheme::parse(s).unwrap());
    let q = Question {
        schemes: schemes.to_vec(),
        interference: lab::qualify::Interference {
            probes_per_s: 200.0,
            ..Default::default()
        },
        max_cycles: Some(2_000),
        ..easy(8, 4)
    };
    let a = ask(&q, 2);
    let of = |scheme| a.schemes.iter().find(|r| r.scheme == scheme).unwrap();
    let hit = |scheme| {
        let tries = of(scheme).tries;
        assert!(tries.count() > 30_000, "{tries:?}");
        tries.data_lost as f64 / tries.count() as f64
    };
    let [on, off] = schemes.map(hit);
    assert!(off > 1.5 * on && on > 0.0, "{on} {off}");
    assert!(table::table(&a, 100).contains("TDMA-RECEPTION-CARRIER_SENSE"));
}

#[test]
fn workers_do_not_show() {
    let q = Question {
        interference: lab::qualify::question::parse_interference("load=10%,probes=20/s,noise=1%").unwrap(),
        max_cycles: Some(1_500),
        ..easy(3, 4)
    };
    let json = |jobs| serde_json::to_string(&ask(&q, jobs)).unwrap();
    let one = json(1);
    assert_eq!(one, json(2));
    assert_eq!(one, json(1));
    let other = Question { seed: 2, ..q };
    assert_ne!(one, serde_json::to_string(&ask(&other, 1)).unwrap());
}

#[test]
fn a_stop_keeps_what_was_run() {
    let stop = AtomicBool::new(false);
    let progress = |p: lab::qualify::Progress| {
        if p.cycles > 0 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let setting = Setting {
        jobs: 1,
        stop: &stop,
        progress: &progress,
    };
    let q = Question::example();
    let a = qualify(&q, &setting).unwrap();
    assert!(a.interrupted);
    assert!(a.schemes[0].messages > 0 && a.schemes[0].verdict == Verdict::Undecided);
    assert!(
        a.schemes[0].why.starts_with("Stopped early"),
        "{}",
        a.schemes[0].why
    );
    assert_eq!(
        (a.schemes[2].messages, a.schemes[2].verdict),
        (0, Verdict::Undecided)
    );
    let text = table::table(&a, 100);
    assert!(text.contains("UNDECIDED") && text.contains("Stopped early"));
}

/// A change of behaviour is a difference that somebody reads.
#[test]
fn the_table() {
    let a = ask(&easy(4, 4), 2);
    insta::assert_snapshot!(table::table(&a, 100));
}

/// Nodes that walk: with one adapter each hand-over costs the loop a quarter of a second, with two a message now and then. The answer
/// tells it apart.
#[test]
fn nodes_that_walk_need_a_second_adapter() {
    let q = Question {
        miss: 5e-3,
        schemes: ["roam", "roam+second"]
            .map(|s| Scheme::parse(s).unwrap())
            .to_vec(),
        max_cycles: Some(100_000),
        ..easy(2, 20)
    };
    let a = ask(&q, 2);
    let [one, two] = &a.schemes[..] else {
        panic!("two schemes were asked for");
    };
    println!("{:?} {:?}", one.hand_overs, two.hand_overs);
    assert_eq!((one.verdict, two.verdict), (Verdict::Fail, Verdict::Pass));
    let [broken, made] = [one, two].map(|r| r.hand_overs.unwrap());
    assert!(
        made.count >= 20 && made.unharmed * 10 >= made.count * 9,
        "{made:?}"
    );
    assert!(made.max_ns <= Some(20_000_000), "{made:?}");
    assert!(
        broken.unharmed == 0 && broken.p50_ns > Some(200_000_000),
        "{broken:?}"
    );
    for r in [one, two] {
        let of_all = r.causes.named().iter().map(|(_, n)| n).sum::<u64>();
        assert_eq!(
            (of_all, r.causes.hand_over),
            (r.misses, r.hand_overs.unwrap().misses)
        );
        assert_eq!(r.shortest, None);
    }
    // and many are missed before, while the link fades
    assert!(broken.misses > 20 * made.misses.max(1), "{broken:?} {made:?}");
    let text = table::table(&a, 100);
    assert!(text.contains(&format!("{} hand-overs: ", made.count)), "{text}");
    let json = serde_json::to_value(&a).unwrap();
    assert_eq!(json["schemes"][1]["scheme"], "roam+second");
    assert_eq!(json["schemes"][1]["hand_overs"]["misses"], made.misses);
}

/// What comes down is acknowledged by the station's adapter, so nobody repeats it: behind a hand-over it must not be taken for
/// what the access point before had sent.
#[test]
fn nodes_that_walk_lose_nothing_that_was_acknowledged() {
    for seed in [1, 5] {
        let q = Question {
            schemes: vec![Scheme::parse("roam+second").unwrap()],
            host: lab::qualify::host("ideal").unwrap(),
            offsets: Offsets::Even,
            max_cycles: Some(4_500),
            seed,
            ..easy(2, 20)
        };
        let r = &ask(&q, 2).schemes[0];
        assert!(r.hand_overs.unwrap().count >= 2, "{:?}", r.hand_overs);
        assert_eq!(r.causes.host, 0, "seed {seed}: {:?}", r.causes);
    }
}
