//! What goes wrong, and that nothing is lost by it that need not be.

use ar9170::driver::{Config, Reason};
use ar9170::emulated::{Faults, Knobs};
use radio::{Attribute, BeaconTiming, Duration, Event, Instant, Outcome, Protocol};

use crate::air::{Air, ME, Sends, acked, computer, file, from_peer, indication};

const MS: fn(u64) -> Duration = Duration::from_ms;
const SECONDS: fn(u64) -> Instant = |s| Instant::from_us(1_000_000 * s);

/// One frame a millisecond for a second, under a fault: (acked, unknown, other), restarts by reason, completions that the driver
/// missed, and what the stick and its bus did wrong.
fn run(knobs: Knobs, config: Config) -> ([usize; 3], impl Fn(Reason) -> u64, u64, Faults) {
    let file = file();
    let mut computer = computer(&file, config, knobs, Sends::every(MS(1), 1_000));
    let mut air = Air::new(acked);
    air.run(&mut computer, SECONDS(30));
    assert!(computer.is_up(), "it comes back");
    let (counts, faults) = (*computer.counts(), computer.faults());
    let mut node = computer.into_protocol();
    node.finish();
    let sends = node.inner();
    assert_eq!(sends.confirms.len(), 1_000, "each request has its confirm");
    let [acked, unknown] = [Outcome::Acked, Outcome::Unknown].map(|o| sends.outcomes(o));
    let other = 1_000 - acked - unknown;
    println!("{acked} acked, {unknown} unknown, {other} other; {counts:?}");
    (
        [acked, unknown, other],
        move |r| counts.restarts_for(r),
        counts.lost_completions,
        faults,
    )
}

#[test]
fn lost_completions_cost_time_and_nothing_else() {
    let knobs = Knobs {
        lost_completion: 0.05,
        ..Knobs::default()
    };
    let ([acked, ..], restarts, lost, faults) = run(knobs, Config::default());
    assert_eq!((acked, restarts(Reason::NoStatus)), (1_000, 0));
    assert!(lost > 20, "{lost} lost");
    assert_eq!(lost, faults.lost_completions, "each is found out");
}

#[test]
fn late_interrupts_cost_nothing() {
    let knobs = Knobs {
        late_interrupt: 0.2,
        ..Knobs::default()
    };
    let ([acked, ..], restarts, _, faults) = run(knobs, Config::default());
    assert!(faults.late_interrupts > 200, "{faults:?}");
    assert_eq!(acked, 1_000);
    assert!(Reason::ALL.iter().all(|r| restarts(*r) == 0));
}

/// One read at a time, transfers of a millisecond, and two frames are heard for each that is sent: what the stick says is grouped.
/// Nothing of it is lost.
#[test]
fn grouped_transfers_cost_nothing() {
    let knobs = Knobs {
        transfer_ns: 900_000,
        ..Knobs::default()
    };
    let config = Config {
        reads: 1,
        window: 8,
        ..Config::default()
    };
    let file = file();
    let mut computer = computer(&file, config, knobs, Sends::every(MS(1), 1_000));
    let mut air = Air::new(acked);
    // until it is up
    while computer.protocol().inner().confirms.is_empty() {
        let next = air.now + MS(1);
        air.run(&mut computer, next);
    }
    for number in 0..1_000 {
        let next = air.now + Duration::from_us(500);
        let frame = from_peer(ME, number);
        computer.handle(air.now, Event::Indication(indication(&frame)), &mut air);
        air.run(&mut computer, next);
    }
    air.run(&mut computer, SECONDS(30));
    let (counts, faults) = (*computer.counts(), computer.faults());
    assert!(faults.grouped_transfers > 200, "{faults:?}");
    assert_eq!(counts.restarts.iter().sum::<u64>(), 0);
    let mut node = computer.into_protocol();
    node.finish();
    let sends = node.inner();
    assert_eq!(
        (sends.outcomes(Outcome::Acked), sends.heard.len()),
        (1_000, 1_000)
    );
}

/// The stick is restarted, and what it had is unknown: a few frames for each restart.
#[test]
fn after_a_skipped_sequence_number_it_starts_anew() {
    let knobs = Knobs {
        skipped_sequence: 0.01,
        ..Knobs::default()
    };
    let ([acked, unknown, other], restarts, _, faults) = run(knobs, Config::default());
    let lost = restarts(Reason::LostResponse);
    assert!(lost <= faults.skipped_sequences, "{faults:?}");
    assert!(lost >= 1 && acked + unknown > 0, "{lost} restarts");
    assert!(
        unknown as u64 <= 2 * lost,
        "two of a queue are on the stick at once"
    );
    // while it did not come up, requests were refused
    assert!(other == 0 || lost > 1);
}

#[test]
fn a_lost_status_is_unknown() {
    let knobs = Knobs {
        lost_status: 0.01,
        ..Knobs::default()
    };
    let config = Config {
        status_timeout: MS(50),
        ..Config::default()
    };
    let ([acked, unknown, _], restarts, _, faults) = run(knobs, config);
    let stuck = restarts(Reason::NoStatus);
    assert!(stuck <= faults.lost_statuses, "{faults:?}");
    assert!(
        stuck >= 1 && unknown as u64 >= stuck,
        "{stuck} restarts, {unknown} unknown"
    );
    assert!(acked > 800, "{acked}");
}

/// A protocol that only listens, on a stick that hangs: it hears again once the driver has asked whether the stick is there.
#[test]
fn a_silent_stick_is_found_out_by_who_only_listens() {
    let file = file();
    let beacons = Attribute::BeaconTiming(BeaconTiming {
        interval_tu: 100,
        atim_window_tu: 0,
    });
    for sets in [vec![], vec![Attribute::Reception(false)], vec![beacons]] {
        let dozes = sets.contains(&Attribute::Reception(false));
        let sends = Sends {
            sets,
            ..Sends::default()
        };
        let config = Config::default();
        let mut computer = computer(&file, config, Knobs::default(), sends);
        let mut air = Air::new(acked);
        air.run(&mut computer, SECONDS(60));
        assert_eq!(computer.counts().restarts.iter().sum::<u64>(), 0);
        computer.hang();
        let most = config.keep_alive + config.response_timeout + MS(100);
        air.run(&mut computer, SECONDS(60) + most);
        assert_eq!(computer.counts().restarts_for(Reason::NoResponse), 1);
        assert!(computer.is_up());
        let frame = from_peer(ME, 7);
        computer.handle(air.now, Event::Indication(indication(&frame)), &mut air);
        air.run(&mut computer, SECONDS(120));
        let heard = computer.protocol().inner().heard.len();
        assert_eq!(heard, usize::from(!dozes), "it is as it was before it hung");
        assert_eq!(computer.counts().restarts.iter().sum::<u64>(), 1);
        assert_eq!(computer.counts().lost_completions, 0);
    }
}

/// A stick that answers is asked once in a while, and no more often than that.
#[test]
fn a_stick_that_answers_is_left_alone() {
    let file = file();
    let config = Config::default();
    let mut computer = computer(&file, config, Knobs::default(), Sends::default());
    let mut air = Air::new(acked);
    air.run(&mut computer, SECONDS(1));
    let before = computer.counts().commands;
    air.run(&mut computer, SECONDS(3_601));
    let asked = computer.counts().commands - before;
    let most = Duration::from_ms(3_600_000).as_ns() / config.keep_alive.as_ns();
    assert!((most - 2..=most).contains(&asked), "{asked} in an hour");
    assert_eq!(computer.counts().restarts.iter().sum::<u64>(), 0);
}

/// What is heard before the start is told then: another station may have started a little earlier.
#[test]
fn what_is_heard_before_the_start_is_told_at_the_start() {
    let file = file();
    let mut computer = computer(&file, Config::default(), Knobs::default(), Sends::default());
    computer.hold(true);
    let mut air = Air::new(acked);
    air.run(&mut computer, SECONDS(1));
    let frame = from_peer(ME, 7);
    computer.handle(air.now, Event::Indication(indication(&frame)), &mut air);
    air.run(&mut computer, SECONDS(2));
    assert_eq!(computer.protocol().inner().heard.len(), 0);
    computer.hold(false);
    computer.handle(air.now, Event::Timer, &mut air);
    air.run(&mut computer, SECONDS(3));
    assert_eq!(computer.protocol().inner().heard.len(), 1);
}

/// What is heard while nobody may be told takes no room that answers need: the oldest gives way.
#[test]
fn a_stick_that_is_held_stays_up() {
    let file = file();
    let mut computer = computer(&file, Config::default(), Knobs::default(), Sends::default());
    computer.hold(true);
    let mut air = Air::new(acked);
    air.run(&mut computer, SECONDS(1));
    for number in 0..500 {
        if number == 490 {
            computer.hold(false);
            computer.handle(air.now, Event::Timer, &mut air);
        }
        let frame = from_peer(ME, number);
        computer.handle(air.now, Event::Indication(indication(&frame)), &mut air);
        let until = air.now + MS(100);
        air.run(&mut computer, until);
    }
    assert!(computer.is_up() && computer.counts().restarts.iter().sum::<u64>() == 0);
    // what had room, and the ten after the start: all but those that gave way
    let heard = computer.protocol().inner().heard.len() as u64;
    let gone = computer.counts().overflows;
    assert_eq!(heard + gone, 500);
    assert!(gone > 400 && heard > 10, "{heard} heard, {gone} gone");
}
