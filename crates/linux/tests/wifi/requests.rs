//! What becomes of requests, and what is heard of them.

use frame::mac::Kind;
use linux::wifi::TsfSource;
use radio::{Queue, Refusal, RtsPolicy, Series, SeriesList};

use super::*;

#[test]
fn acked_and_not_acked() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let peer = open(&second);
    let to = peer.address();
    let confirms = outcomes(&first, |me| {
        let frame = |to, sequence| data(Kind::DATA, to, me, sequence, 0);
        vec![
            (frame(to, 1), HOW),
            (frame(ABSENT, 2), HOW),
            (frame(ABSENT, 3), TxHow::multi_shot(Rate::OFDM_54, 7)),
            (frame(to, 4), HOW.no_ack()),
            (frame(MacAddr::BROADCAST, 5), HOW),
            (data(Kind::QOS_DATA, to, me, 6, 6), HOW.queue(Queue::Voice)),
            (
                data(Kind::QOS_DATA, ABSENT, me, 7, 1),
                TxHow::multi_shot(Rate::DSSS_1, 2).queue(Queue::Background),
            ),
        ]
    });
    let found: Vec<(Outcome, u16, Rate)> = confirms.iter().map(|c| (c.outcome, c.attempts, c.rate)).collect();
    let expect = [
        (Outcome::Acked, 1, Rate::OFDM_6),
        (Outcome::NotAcked, 1, Rate::OFDM_6),
        (Outcome::NotAcked, 1, Rate::OFDM_54), // hwsim's own medium tries once, and says so.
        (Outcome::NotAcked, 1, Rate::OFDM_6),
        (Outcome::NotAcked, 1, Rate::OFDM_6),
        (Outcome::Acked, 1, Rate::OFDM_6),
        (Outcome::NotAcked, 1, Rate::DSSS_1),
    ];
    assert_eq!(found, expect);
    for c in confirms {
        let [t1, t8, t9] = [Plane::T1, Plane::T8, Plane::T9].map(|p| c.stamps.get_host(p).unwrap());
        assert!(t1 <= t8 && t8 <= t9, "{:?}", c.stamps);
        assert_eq!(c.stamps.count(), 3);
    }
}

#[test]
fn what_is_refused() {
    let Some((_lab, [first, _])) = lab() else { return };
    let mixed = |a, b| {
        let s = |rate| Series { rate, tries: 1 };
        HOW.series(SeriesList::new(&[s(a), s(b)]).unwrap())
    };
    let confirms = outcomes(&first, |me| {
        let frame = data(Kind::DATA, ABSENT, me, 1, 0);
        let qos = data(Kind::QOS_DATA, ABSENT, me, 2, 6);
        vec![
            (frame.clone(), TxHow::one_shot(Rate::parse("mcs7/40").unwrap())),
            (frame.clone(), TxHow::one_shot(Rate::parse("11Ms").unwrap())),
            (frame.clone(), mixed(Rate::OFDM_54, Rate::OFDM_6)),
            (frame.clone(), TxHow::multi_shot(Rate::OFDM_54, 11)),
            (
                frame.clone(),
                TxHow {
                    rts: RtsPolicy::Always,
                    ..HOW
                },
            ),
            (frame.clone(), HOW.queue(Queue::Voice)),
            (qos, HOW),
            (frame.clone(), HOW.adapter(AdapterId(1))),
            (frame[..20].to_vec(), HOW),
            (vec![8; 4_000], HOW),
            (frame, mixed(Rate::OFDM_54, Rate::OFDM_54)),
        ]
    });
    use Refusal::*;
    let expect = [
        RateNotSupported,
        RateNotSupported,
        NotSupported,
        NotSupported,
        NotSupported,
        NotSupported,
        NotSupported,
        NoAdapter,
        BadFrame,
        BadFrame,
    ];
    let (last, refused) = confirms.split_last().unwrap();
    let found: Vec<Outcome> = refused.iter().map(|c| c.outcome).collect();
    assert_eq!(found, expect.map(Outcome::Refused));
    assert_eq!(last.outcome, Outcome::NotAcked, "one rate is one series");
}

#[test]
fn expired_aborted_held_and_full() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let peer = open(&second);
    let to = peer.address();
    let adapter = open(&first);
    let me = adapter.address();
    let frame = |sequence| data(Kind::DATA, to, me, sequence, 0);
    let at = |us| Instant::from_us(us);
    let config = HostConfig {
        outstanding: 4,
        ..HostConfig::default()
    };
    let requests = vec![
        (frame(1), HOW.not_before(at(5_000))),
        (frame(2), HOW.not_before(at(5_000)).expires(at(4_999))),
        (frame(3), HOW.not_before(at(9_000))),
        (frame(4), HOW.not_before(at(60_000_000))),
        (frame(5), HOW),
    ];
    let script = Script {
        requests,
        abort: Some(2),
        ..Script::default()
    };
    let start = Host::now();
    let mut host = host(adapter, config);
    let script = run(&mut host, script);
    let of = |i: usize| {
        script
            .confirms
            .iter()
            .find(|c| c.token == script.tokens[i])
            .unwrap()
    };
    assert_eq!(of(0).outcome, Outcome::Acked);
    assert!(of(0).stamps.get_host(Plane::T8).unwrap() >= start + Duration::from_us(5_000));
    assert_eq!((of(1).outcome, of(1).attempts), (Outcome::Expired, 0));
    assert_eq!(of(2).outcome, Outcome::Aborted, "by the protocol");
    assert_eq!(of(3).outcome, Outcome::Aborted, "at the end");
    assert_eq!(of(4).outcome, Outcome::Refused(Refusal::QueueFull));
    let c = host.counters();
    assert_eq!(
        (c.acked, c.expired, c.aborted, c.refused, c.sent),
        (1, 1, 2, 1, 1)
    );
}

/// With no patience at all every status is late: unknown, and nothing else.

#[test]
fn a_status_that_comes_too_late_is_unknown() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let peer = open(&second);
    let to = peer.address();
    let adapter = open(&first);
    let me = adapter.address();
    let requests = (0..3).map(|i| (data(Kind::DATA, to, me, i, 0), HOW)).collect();
    let config = HostConfig {
        confirm_timeout: Duration::from_ns(0),
        ..HostConfig::default()
    };
    let mut host = host(adapter, config);
    let script = run(
        &mut host,
        Script {
            requests,
            ..Script::default()
        },
    );
    assert!(script.confirms.iter().all(|c| c.outcome == Outcome::Unknown));
    let c = host.counters();
    assert_eq!((script.confirms.len(), c.unknown, c.acked), (3, 3, 0));
    assert_eq!(c.late_statuses + c.foreign_statuses, 3, "{c:?}");
}

/// However the thread waits, and with SCHED_FIFO or without: nothing goes before its time, and all of it goes.
#[test]
fn every_way_to_wait_and_to_sit_keeps_the_times() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let ways = [
        (Wait::Timerfd, Seat::default()),
        (Wait::Sleep, Seat::default()),
        // With SCHED_FIFO only on a CPU of its own, below: the kernel's own threads need the one that there is here.
        (Wait::Spin, Seat::default()),
        (
            Wait::Timerfd,
            Seat {
                cpu: Some(0),
                fifo: Some(10),
                lock_memory: false,
            },
        ),
        (
            Wait::Sleep,
            Seat {
                cpu: None,
                fifo: Some(99),
                lock_memory: false,
            },
        ),
    ];
    for (wait, seat) in ways {
        keeps_the_times(&first, &second, wait, seat);
    }
}

/// The last CPU is the host's, which leaves it to no ordinary thread and does not rest.
#[test]
fn a_host_that_spins_with_sched_fifo_on_a_cpu_of_its_own_keeps_the_times() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let last = cpus() - 1;
    if last == 0 {
        return eprintln!("skipped: there is one CPU (sdmac lab run --qemu standard --cpus 2)");
    }
    for priority in [10, 60] {
        let seat = Seat {
            cpu: Some(last),
            fifo: Some(priority),
            lock_memory: true,
        };
        keeps_the_times(&first, &second, Wait::Spin, seat);
    }
}

/// A host that waits and sits like this sends twenty frames, each at its time.
fn keeps_the_times(first: &str, second: &str, wait: Wait, seat: Seat) {
    let peer = open(second);
    let adapter = open(first);
    let (to, me) = (peer.address(), adapter.address());
    // From the start of the script on.
    let time = |n: u16| Instant::from_us(1_000 * u64::from(n));
    let requests = (0..20).map(|n| (data(Kind::DATA, to, me, n, 0), HOW.not_before(time(n))));
    let script = Script {
        requests: requests.collect(),
        ..Script::default()
    };
    let config = HostConfig {
        wait,
        ..HostConfig::default()
    };
    let before = Host::now();
    let script = std::thread::scope(|scope| {
        let seated = scope.spawn(|| {
            let mut host = host(adapter, config);
            seat.take().unwrap();
            run_until_confirmed(&mut host, script)
        });
        seated.join().unwrap()
    });
    assert_eq!(script.confirms.len(), 20, "{wait:?} {seat:?}");
    for (n, confirm) in (0..).zip(&script.confirms) {
        assert_eq!(confirm.outcome, Outcome::Acked, "{wait:?} {seat:?}");
        let t9 = confirm.stamps.get_host(Plane::T9).unwrap();
        let least = before + time(n).since(Instant::ZERO);
        assert!(t9 > least, "{wait:?} {seat:?}: {t9:?}, not before {least:?}");
    }
}

#[test]
fn many_at_once_are_all_confirmed_in_order() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let peer = open(&second);
    let to = peer.address();
    let adapter = open(&first);
    let me = adapter.address();
    // The bound on the actions of one event counts; beyond it a host still answers all.
    let requests: Vec<_> = (0..60).map(|i| (data(Kind::DATA, to, me, i, 0), HOW)).collect();
    let script = run(
        &mut host(adapter, HostConfig::default()),
        Script {
            requests,
            ..Script::default()
        },
    );
    let order: Vec<Token> = script.confirms.iter().map(|c| c.token).collect();
    assert_eq!(order, script.tokens);
    assert!(script.confirms.iter().all(|c| c.outcome == Outcome::Acked));
}

#[test]
fn what_was_sent_is_heard_with_its_times() {
    let Some((_lab, [first, second])) = lab() else {
        return;
    };
    let ear = open(&second);
    let to = ear.address();
    let mut ear = host(ear, HostConfig::default());
    let mouth = Adapter::open(AdapterConfig {
        tsf: TsfSource::Computer,
        ..AdapterConfig::new(&first, CHANNEL)
    });
    let mouth = mouth.unwrap();
    let me = mouth.address();
    let mut beacon = data(Kind::BEACON, MacAddr::BROADCAST, me, 1, 0);
    beacon.truncate(24);
    beacon.extend([0; 8]);
    beacon.extend([100, 0, 1, 0, 0, 0]);
    let frames = [
        data(Kind::DATA, to, me, 2, 0),
        data(Kind::DATA, MacAddr::BROADCAST, me, 3, 0),
    ];
    let requests = vec![
        (beacon, HOW.queue(Queue::Beacon)),
        (frames[0].clone(), HOW),
        (data(Kind::DATA, ABSENT, me, 4, 0), HOW),
        (frames[1].clone(), TxHow::one_shot(Rate::OFDM_24)),
    ];
    let mut mouth = host(mouth, HostConfig::default());
    let before = Host::now();
    run(
        &mut mouth,
        Script {
            requests,
            ..Script::default()
        },
    );
    let heard = run(&mut ear, Script::default());
    assert_eq!(heard.beacons.len(), 1);
    let tsf_us = heard.beacons[0].1.0;
    let ago = Host::now().since(before);
    assert!(
        Duration::from_us(tsf_us) <= ago,
        "the computer's, from the host's start: {tsf_us}"
    );
    let same = |a: &[u8], b: &[u8]| a[..2] == b[..2] && a[4..] == b[4..]; // Duration is the kernel's.
    assert_eq!(heard.heard.len(), 2, "not what is for others");
    assert!(heard.heard.iter().zip(&frames).all(|(h, f)| same(&h.frame, f)));
    assert_eq!(
        [heard.heard[0].rate, heard.heard[1].rate],
        [Rate::OFDM_6, Rate::OFDM_24]
    );
    for h in &heard.heard {
        assert!(h.tsf.is_some(), "hwsim tells it");
        assert!((before..=Host::now()).contains(&h.t8.expect("the kernel stamps")));
    }
}

#[test]
fn a_stop_ends_a_run() {
    let Some((_lab, [first, _])) = lab() else { return };
    let mut host = host(open(&first), HostConfig::default());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            stop.store(true, Ordering::Relaxed);
        });
        // Without the flag it would never end.
        host.run(&mut Script::default(), &mut (), None, &stop).unwrap();
    });
    drop(host);
    assert!(our_interfaces().is_empty());
}
