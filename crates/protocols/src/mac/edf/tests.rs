//! The overlay alone.

use super::Strategy;
use super::feasible::{Stream, pooled, retry_share_ppm};
use super::*;
use crate::mac::data::Identity;
use crate::mac::sender::{Sender, SenderConfig};
use crate::testing::{Delays, Dice, Fate, Probe, Room};
use frame::{MacAddr, Rate};
use proptest::prelude::*;
use radio::{Checked, Refusal};
use std::vec::Vec;

const AP: MacAddr = MacAddr::local(1);
const STA: MacAddr = MacAddr::local(2);
const ME: Identity = Identity::station(STA, AP);
const US: fn(u64) -> Duration = Duration::from_us;

fn config() -> EdfConfig {
    EdfConfig::new(CostEstimate::fixed(US(150)), Duration::from_ms(10))
}

fn sender(config: EdfConfig) -> (Room, usize) {
    let mut room = Room::new(1);
    let node = room.add(STA, move || -> Edf<Sender> {
        Edf::new(config.clone(), Sender::new(SenderConfig::new(ME, Rate::OFDM_54)))
    });
    (room, node)
}

/// Payloads in the order in which they were on the air.
fn order(room: &Room) -> Vec<u8> {
    room.flights.iter().map(|f| *f.frame.last().unwrap()).collect()
}

#[test]
fn the_earliest_deadline_goes_first() {
    let (mut room, node) = sender(config());
    for (name, deadline_us) in [
        (b'a', 9_000),
        (b'b', 3_000),
        (b'c', 1_000),
        (b'd', 1_000),
        (b'e', 500),
    ] {
        room.submit(0, node, AP, &[name], Some(deadline_us * 1_000));
    }
    room.run_until(10_000_000);
    // a is on its way when the others come, and is not preempted
    assert_eq!(order(&room), b"aecdb");
    let edf = room.protocol::<Edf<Sender>>(node);
    assert_eq!(
        (edf.counters().acked, edf.protocol().counters().confirms.acked),
        (5, 5)
    );
    room.close();
}

/// Where receivers have turns of their own a frame does not hold up one for somebody else.
#[test]
fn each_receiver_has_a_frame_below() {
    let order = |at_once| {
        let mut room = Room::new(1);
        let config = EdfConfig { at_once, ..config() };
        let node = room.add(AP, move || -> Edf<Sender> {
            let identity = Identity::access_point(AP);
            Edf::new(
                config.clone(),
                Sender::new(SenderConfig::new(identity, Rate::OFDM_54)),
            )
        });
        let other = MacAddr::local(3);
        for (to, name, deadline_ms) in [(STA, b'a', 9), (STA, b'b', 3), (other, b'c', 8), (other, b'd', 7)] {
            room.submit(0, node, to, &[name], Some(deadline_ms * 1_000_000));
        }
        room.run_until(10_000_000);
        assert_eq!(room.protocol::<Edf<Sender>>(node).counters().acked, 4);
        order(&room)
    };
    assert_eq!(order(AtOnce::One), b"abdc");
    assert_eq!(order(AtOnce::EachReceiver), b"acbd");
}

/// The host finds out after a long time that it has lost a status.
const LONG_NS: u64 = 100_000_000;

/// So long others wait for a confirm: four times 150 us.
const PATIENCE_NS: u64 = 600_000;

/// Loses the first confirm of the frames that end in `name`.
fn loses_confirm_of(room: &mut Room, name: u8) {
    let mut done = false;
    room.script(move |a| match a.frame.ends_with(&[name]) && !done {
        true => {
            done = true;
            Fate::ConfirmLost
        }
        false => Fate::Arrives,
    });
    room.delays.patience_ns = LONG_NS;
}

#[test]
fn a_confirm_that_stays_away_holds_the_others_up_for_a_while() {
    let (mut room, node) = sender(config());
    loses_confirm_of(&mut room, b'a');
    room.submit(0, node, AP, b"a", Some(300_000_000));
    room.submit(50_000, node, AP, b"b", Some(9_000_000));
    room.submit(60_000, node, AP, b"c", Some(8_000_000));
    room.run_until(LONG_NS);
    // a is not sent twice while it has no confirm
    assert_eq!(order(&room), b"acb");
    assert_eq!(room.flights[1].start_ns, PATIENCE_NS + 10_000);
    let counters = *room.protocol::<Edf<Sender>>(node).counters();
    assert_eq!((counters.silent, counters.acked, counters.failed), (1, 2, 0));
    // the host tells at last, and a still has time
    room.run_until(2 * LONG_NS);
    assert_eq!(order(&room), b"acba");
    assert!(room.flights[3].start_ns > LONG_NS);
    let edf = room.protocol::<Edf<Sender>>(node);
    let counters = edf.counters();
    assert_eq!((counters.silent, counters.acked, counters.failed), (1, 3, 1));
    let told = edf.protocol().counters().confirms;
    assert_eq!((told.acked, told.total()), (3, 3));
    room.close();
}

/// Nothing waits, so nothing wakes EDF up; it counts nevertheless, when the confirm comes.
#[test]
fn what_is_slow_is_counted_and_counts() {
    let (mut room, node) = sender(config());
    room.delays.confirm_ns = 2_000_000..=2_000_000;
    room.submit(0, node, AP, b"a", Some(9_000_000));
    room.run_until(10_000_000);
    assert_eq!(order(&room), b"a");
    let counters = *room.protocol::<Edf<Sender>>(node).counters();
    assert_eq!((counters.silent, counters.acked), (1, 1));
    // each has its own confirm, late as it is
    for (i, name) in (0..).zip(b"bcde") {
        room.submit(20_000_000 + i, node, AP, &[*name], Some(29_000_000));
    }
    room.run_until(40_000_000);
    assert_eq!(order(&room), b"abcde");
    let counters = *room.protocol::<Edf<Sender>>(node).counters();
    assert_eq!((counters.silent, counters.acked, counters.failed), (5, 5, 0));
    let starts: Vec<u64> = room.flights[1..].iter().map(|f| f.start_ns).collect();
    assert!(
        starts.windows(2).all(|w| w[1] - w[0] == PATIENCE_NS),
        "{starts:?}"
    );
    room.close();
}

/// A slot may come as long as the frame has not expired, so that is when the patience begins.
#[test]
fn for_slots_the_patience_begins_when_the_frame_expires() {
    let mut room = Room::new(1);
    let config = EdfConfig {
        at_once: AtOnce::EachReceiver,
        ..config()
    };
    let node = room.add(AP, move || -> Edf<Sender> {
        let identity = Identity::access_point(AP);
        Edf::new(
            config.clone(),
            Sender::new(SenderConfig::new(identity, Rate::OFDM_54)),
        )
    });
    loses_confirm_of(&mut room, b'a');
    let other = MacAddr::local(3);
    for (to, name, deadline_ms) in [(STA, b'a', 3), (STA, b'b', 9), (other, b'c', 8), (other, b'd', 9)] {
        room.submit(0, node, to, &[name], Some(deadline_ms * 1_000_000));
    }
    room.run_until(10_000_000);
    assert_eq!(order(&room), b"acdb");
    assert_eq!(room.flights[3].start_ns, 3_000_000 + PATIENCE_NS + 10_000);
    let counters = room.protocol::<Edf<Sender>>(node).counters();
    assert_eq!((counters.silent, counters.acked), (1, 3));
    room.close();
}

/// What goes again at once waits for what is below, and then it goes.
#[test]
fn at_once_is_when_the_channel_is_free() {
    let (mut room, node) = sender(EdfConfig {
        strategy: Strategy::Immediate,
        ..config()
    });
    loses_confirm_of(&mut room, b'a');
    // told while b is below
    room.delays.patience_ns = 560_000;
    room.submit(0, node, AP, b"a", Some(9_000_000));
    room.submit(50_000, node, AP, b"b", Some(3_000_000));
    room.submit(60_000, node, AP, b"c", Some(8_000_000));
    room.run_until(10_000_000);
    assert_eq!(order(&room), b"abac");
    let told = room
        .confirms
        .iter()
        .find(|c| c.2.outcome == Outcome::Unknown)
        .unwrap();
    let b = &room.flights[1];
    assert!((b.start_ns..b.end_ns + 20_000).contains(&told.1), "{told:?}");
    room.close();
}

/// A host that says nothing at all gets each message once, and EDF has room again when it speaks.
#[test]
fn a_host_that_says_nothing() {
    let (mut room, node) = sender(config());
    room.script(|_| Fate::Silent);
    room.delays.patience_ns = LONG_NS;
    for i in 0..40 {
        room.submit(i, node, AP, b"a", Some(90_000_000));
    }
    room.run_until(LONG_NS);
    let counters = *room.protocol::<Edf<Sender>>(node).counters();
    let held = super::DEFAULT_HELD as u64;
    // nothing waits behind the last one
    assert_eq!((counters.attempts, counters.silent), (held, held - 1));
    room.run_until(2 * LONG_NS);
    room.script(|_| Fate::Arrives);
    room.submit(2 * LONG_NS, node, AP, b"b", None);
    room.run_until(3 * LONG_NS);
    let counters = room.protocol::<Edf<Sender>>(node).counters();
    assert_eq!((counters.attempts, counters.silent), (held + 1, held));
    assert_eq!((counters.acked, order(&room).as_slice()), (1, &b"b"[..]));
    room.close();
}

#[test]
fn failed_frames_by_strategy() {
    for (strategy, expected) in [(Strategy::Queued, b"abaa"), (Strategy::Immediate, b"aaab")] {
        let (mut room, node) = sender(EdfConfig { strategy, ..config() });
        let mut losses = 0;
        room.script(move |a| {
            losses += u32::from(a.frame.ends_with(b"a"));
            match a.frame.ends_with(b"a") && losses <= 2 {
                true => Fate::DataLost,
                false => Fate::Arrives,
            }
        });
        room.submit(0, node, AP, b"a", Some(9_000_000));
        room.submit(50_000, node, AP, b"b", Some(3_000_000));
        room.run_until(10_000_000);
        assert_eq!(order(&room), expected, "{strategy:?}");
        // retries have the retry bit, and are one confirm
        let retries = room.flights.iter().filter(|f| f.frame[1] & 8 != 0).count();
        let c = room.protocol::<Edf<Sender>>(node).protocol().counters().confirms;
        assert_eq!((retries, c.acked, c.attempts), (2, 2, 4));
        room.close();
    }
}

#[test]
fn a_gap_lets_others_go_first_if_there_is_time() {
    let (mut room, node) = sender(EdfConfig {
        gap: US(1_000),
        ..config()
    });
    room.script(|a| {
        if a.at_ns < 50_000 {
            Fate::DataLost
        } else {
            Fate::Arrives
        }
    });
    room.submit(0, node, AP, b"a", Some(2_000_000));
    room.submit(50_000, node, AP, b"b", Some(9_000_000));
    room.run_until(10_000_000);
    assert_eq!(order(&room), b"aba");
    let [first, _, second] = [0, 1, 2].map(|i| room.flights[i].clone());
    // confirm of the failure: 25 us timeout and 20 us path after its end; request path 10 us
    assert_eq!(second.start_ns - first.end_ns, 1_055_000);
    room.close();

    let (mut room, node) = sender(EdfConfig {
        gap: US(1_000),
        ..config()
    });
    room.script(|a| {
        if a.at_ns < 50_000 {
            Fate::DataLost
        } else {
            Fate::Arrives
        }
    });
    room.submit(0, node, AP, b"a", Some(1_000_000));
    room.run_until(10_000_000);
    assert_eq!(
        room.flights[1].start_ns - room.flights[0].end_ns,
        55_000,
        "no time for a gap"
    );
    room.close();
}

#[test]
fn what_comes_too_late_is_dropped_before_it_is_sent() {
    let (mut room, node) = sender(config());
    room.submit(0, node, AP, b"a", Some(149_999));
    room.submit(1_000_000, node, AP, b"b", Some(1_150_000));
    // c waits for d, which loses its confirm, and is told in time
    room.script(|a| {
        if a.frame.ends_with(b"d") {
            Fate::ConfirmLost
        } else {
            Fate::Arrives
        }
    });
    room.submit(2_000_000, node, AP, b"d", None);
    room.submit(2_000_001, node, AP, b"c", Some(2_500_000));
    room.run_until(20_000_000);
    assert_eq!(order(&room)[..2], *b"bd");
    let edf = room.protocol::<Edf<Sender>>(node);
    let c = edf.protocol().counters().confirms;
    assert_eq!((edf.counters().dropped, c.expired, c.acked), (2, 2, 1));
    assert_eq!(c.unknown, 1, "seven tries, none confirmed");
    room.close();
}

#[test]
fn retries_that_the_pool_does_not_pay_for_go_last() {
    let pool = |attempts: u64| RetryPool {
        share_ppm: 0,
        depth: US(150 * attempts),
    };
    for (pool, expected, unpaid) in [
        (None, b"aaaab", 0),
        (Some(pool(3)), b"aaaab", 0),
        (Some(pool(1)), b"aabaa", 2),
        (Some(pool(0)), b"abaaa", 3),
    ] {
        for strategy in [Strategy::Queued, Strategy::Immediate] {
            let (mut room, node) = sender(EdfConfig {
                strategy,
                pool,
                ..config()
            });
            let mut losses = 0;
            room.script(move |a| {
                losses += u32::from(a.frame.ends_with(b"a"));
                match a.frame.ends_with(b"a") && losses <= 3 {
                    true => Fate::DataLost,
                    false => Fate::Arrives,
                }
            });
            room.submit(0, node, AP, b"a", Some(3_000_000));
            room.submit(50_000, node, AP, b"b", Some(9_000_000));
            room.run_until(10_000_000);
            assert_eq!(order(&room), expected);
            let c = room.protocol::<Edf<Sender>>(node).counters();
            assert_eq!((c.acked, c.failed, c.unpaid), (2, 3, unpaid));
            room.close();
        }
    }
}

#[test]
fn the_cost_is_learned() {
    let cost = CostEstimate::learned(US(100));
    let (mut room, node) = sender(EdfConfig { cost, ..config() });
    room.submit(0, node, AP, &[0; 50], None);
    room.run_until(10_000_000);
    // 10 us request, 36 data, 16 SIFS, 44 ACK, 20 confirm
    assert_eq!(room.protocol::<Edf<Sender>>(node).cost(), US(126));
    room.close();
}

/// Longest way of an attempt in the room with these frames: 10 us down, 34 - 30 to DIFS, 28 data, 60 SIFS and
/// ACK, 20 up.
const ATTEMPT_US: u64 = 122;

/// Runs streams of short frames over air that loses `lost` of 100, and counts those of which not one attempt was
/// made in time.
fn starved(streams: &[Stream], pool: Option<RetryPool>, seed: u64, lost: u64) -> usize {
    let mut room = Room::new(seed);
    let cost = CostEstimate::fixed(US(ATTEMPT_US));
    let config = EdfConfig {
        pool,
        ..EdfConfig::new(cost, US(1))
    };
    let node = room.add(STA, move || -> Edf<Sender, 32> {
        Edf::new(config.clone(), Sender::new(SenderConfig::new(ME, Rate::OFDM_54)))
    });
    let mut dice = Dice::new(seed);
    room.script(move |_| match dice.within(0..=99) < lost {
        true => Fate::DataLost,
        false => Fate::Arrives,
    });
    let mut made = Vec::new();
    for (i, s) in streams.iter().enumerate() {
        let phase = i as u64 * (seed % 97) * 1_000;
        for k in 0..40_000_000 / s.period_ns {
            let (at, name) = (phase + k * s.period_ns, [i as u8, k as u8]);
            room.submit(at, node, AP, &name, Some(at + s.deadline_ns));
            made.push(name);
        }
    }
    room.run_until(60_000_000);
    let tried: std::collections::BTreeSet<_> = room
        .flights
        .iter()
        .map(|f| *f.frame.last_chunk::<2>().unwrap())
        .collect();
    room.close();
    made.iter().filter(|name| !tried.contains(*name)).count()
}

fn stream(period_us: u64, deadline_us: u64) -> Stream {
    Stream {
        deadline_ns: deadline_us * 1_000,
        ..Stream::new(period_us * 1_000, ATTEMPT_US * 1_000, 0)
    }
}

/// Four streams that take half of the channel when nothing is lost. When most is lost, retries without a limit
/// starve first attempts; retries from a pool do not.
#[test]
fn the_pool_protects_first_attempts() {
    let set = [stream(1_000, 1_000); 4];
    let pool = RetryPool {
        share_ppm: retry_share_ppm(&[(set[0], 0.1); 4], 2.0),
        depth: US(ATTEMPT_US),
    };
    assert_eq!(pool.share_ppm, 97_600);
    assert_eq!(pooled(&set, &pool), Ok(()));
    assert_eq!(starved(&set, Some(pool), 1, 80), 0);
    assert!(starved(&set, None, 1, 80) > 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// What the test admits never starves, whatever is lost.
    #[test]
    fn admitted_streams_have_their_first_attempts(
        seed: u64,
        lost in 0u64..=100,
        share_ppm in 0u32..400_000,
        depth_us in 0u64..600,
        streams in proptest::collection::vec((300u64..3_000, 30u64..=100), 1..6),
    ) {
        let pool = RetryPool { share_ppm, depth: US(depth_us) };
        // slower until they are admitted
        let slowed = |by: u64| -> Vec<Stream> {
            streams.iter().map(|(t, d)| stream(t * by, t * by * d / 100)).collect()
        };
        let set = (1..100).map(slowed).find(|set| pooled(set, &pool).is_ok()).unwrap();
        prop_assert_eq!(starved(&set, Some(pool), seed, lost), 0);
    }
}

type Stack = Edf<Checked<Probe>, 4, 128>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Bursts, aborts, losses, lost confirms, resets, late timers: every token gets exactly one confirm, one
    /// attempt is on the air at a time, and none starts that its deadline does not allow.
    #[test]
    fn any_requests_in_any_air(
        seed: u64,
        immediate: bool,
        each: bool,
        gap_us in prop_oneof![Just(0u64), 1u64..2_000],
        bursts in proptest::collection::vec((0u64..3_000_000, proptest::collection::vec(any::<u8>(), 0..12)), 1..30),
    ) {
        let mut room = Room::new(seed);
        room.delays = Delays {
            confirm_ns: 5_000..=300_000,
            timer_ns: 0..=200_000,
            ..Delays::STEADY
        };
        let config = EdfConfig {
            at_once: if each { AtOnce::EachReceiver } else { AtOnce::One },
            strategy: if immediate { Strategy::Immediate } else { Strategy::Queued },
            gap: US(gap_us),
            ..config()
        };
        let node = room.add(STA, move || -> Stack {
            let probe = || Probe::new(ME, AP);
            Edf::new(config.clone(), Checked::strict(probe()).with_twin(probe()))
        });
        let mut dice = Dice::new(seed ^ 1);
        room.script(move |_| match dice.within(0..=19) {
            0..=9 => Fate::Arrives,
            10..=14 => Fate::DataLost,
            15..=16 => Fate::AckLost,
            17 => Fate::ConfirmLost,
            18 => Fate::Reset,
            _ => Fate::Refused(Refusal::QueueFull),
        });
        let mut t = 0;
        for (pause, burst) in &bursts {
            t += pause;
            room.submit(t, node, AP, burst, None);
        }
        room.run_until(t + 50_000_000);

        let stack = room.protocol::<Stack>(node);
        let probe = stack.protocol().inner();
        prop_assert_eq!(stack.protocol().open_tokens().len(), 0);
        prop_assert_eq!(probe.ended.len() as u32, probe.made());
        let mut attempts = std::collections::BTreeMap::new();
        for f in &room.flights {
            let (number, expires) = Probe::read(&f.frame).unwrap();
            // of the 150 us that must be left, 10 are the request path and 34 perhaps DIFS
            prop_assert!(f.start_ns + 106_000 <= expires.as_ns());
            *attempts.entry(number).or_insert(0) += u16::from(f.fate != Fate::ConfirmLost);
        }
        for pair in room.flights.windows(2) {
            prop_assert!(pair[1].start_ns > pair[0].end_ns);
        }
        for (number, expires, at, c) in &probe.ended {
            prop_assert_eq!(c.attempts, attempts.get(number).copied().unwrap_or(0), "{:?}", c);
            // the end is told when it is certain: at the deadline, or when the attempt below ends
            if let (Some(expires), Outcome::Expired) = (expires, c.outcome) {
                prop_assert!(*at <= *expires + US(1_500), "{:?} {:?}", at, expires);
            }
        }
        room.close();
    }
}
