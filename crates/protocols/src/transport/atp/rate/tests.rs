//! Rates, missed feedback, and when packets go.

use super::*;

fn running(config: &Config, delay_us: u32, hops: u8) -> Rate {
    let mut r = Rate::new(config);
    r.quick_start(Instant::ZERO, delay_us, hops, false);
    r
}

fn at(ms: u64) -> Instant {
    Instant::from_us(ms * 1_000)
}

/// Where packets get lost all the time, feedback does, and says less when it does not come.
#[test]
fn a_missed_feedback_costs_less_where_packets_get_lost() {
    let after_a_miss = |config: &Config, one_lost_of: u32| {
        let mut r = running(config, 15_000, 1);
        for i in 0..1_000 {
            r.sent(at(0), one_lost_of > 0 && i % one_lost_of == 0);
        }
        let before = r.hz();
        r.miss(at(0));
        r.hz() / before
    };
    let ours = Config::sdmac();
    assert_eq!(after_a_miss(&ours, 0), 0.6);
    assert_eq!(after_a_miss(&ours, 20), 0.6);
    let between = after_a_miss(&ours, 7);
    assert!((0.65..0.75).contains(&between), "{between}");
    assert_eq!(after_a_miss(&ours, 3), 0.8);
    assert_eq!(after_a_miss(&Config::adaptive(), 3), 0.5, "as in the thesis");
    let lenient = Config {
        miss_penalty: 1.0,
        ..ours
    };
    assert_eq!(after_a_miss(&lenient, 3), 1.0);
}

#[test]
fn three_phases() {
    let mut r = running(&Config::standard(), 2_000, 4);
    assert_eq!(r.hz(), 500.0);
    r.feedback(at(0), 1_000, 1, true);
    assert_eq!(r.hz(), 600.0, "increase by a fifth of the difference");
    r.feedback(at(0), 1_520, 1, true);
    assert_eq!(r.hz(), 600.0, "maintain up to 1.1 times");
    r.feedback(at(0), 4_000, 1, true);
    assert_eq!(r.hz(), 250.0, "decrease at once");
    r.feedback(at(0), 0, 1, true);
    assert_eq!(r.hz(), 250.0, "no measurement");
}

fn tell(r: &mut Rate, arrived: u32, lost: u32, came: Instant) {
    r.told(came, Tally::new(arrived, lost, came), Duration::ZERO, lost > 0);
}

/// So many packets go now, and feedback without a delay tells what has become of them.
fn after(r: &mut Rate, now: Instant, arrived: u32, lost: u32) -> f64 {
    (0..arrived + lost).for_each(|_| r.sent(now, false));
    tell(r, arrived, lost, now);
    r.feedback(now, 0, 1, true);
    r.hz()
}

/// A path without a queue that delivers 400 packets a second, of which nobody knows the delay.
#[test]
fn without_delays_losses_tell() {
    let mut r = running(&Config::adaptive(), 0, 0);
    assert_eq!(r.hz(), 100.0);
    let (mut most, mut sum) = (0.0_f64, 0.0);
    for n in 1..400_u64 {
        let sent = ((r.hz() / 25.0) as u32).max(1);
        after(&mut r, at(40 * n), sent.min(16), sent.saturating_sub(16));
        most = most.max(r.hz());
        sum += if n >= 200 { r.hz() } else { 0.0 };
    }
    assert!(most < 650.0, "{most}");
    assert!((300.0..450.0).contains(&(sum / 200.0)), "{}", sum / 200.0);
    // who knows the delay decides, and lost packets do not
    r.feedback(at(20_000), 1_000_000 / 200, 1, true);
    assert_eq!(r.hz(), 200.0);
    tell(&mut r, 10, 10, at(20_040));
    r.feedback(at(20_040), 0, 1, true);
    assert_eq!(r.hz(), 200.0, "nothing was sent since");
    assert_eq!(after(&mut r, at(20_080), 10, 10), 140.0);
}

/// Neither losses nor a reader that was slow keep a sender below the rate that it begins with where nobody knows the delay.
#[test]
fn never_slower_than_it_began_without_delays() {
    let mut r = running(&Config::adaptive(), 0, 0);
    r.set_hz(at(0), 110.0);
    assert_eq!(after(&mut r, at(40), 10, 10), 100.0);
    r.feedback(at(80), 50_000, 1, true);
    assert_eq!(r.hz(), 20.0, "a slow reader");
    assert_eq!(after(&mut r, at(120), 0, 0), 100.0, "is so no more");
}

/// Half an epoch, or a round trip and two spacings if those are longer.
#[test]
fn what_has_just_gone_is_left_alone() {
    let guard_ms = |config: &Config, rtt_ms| {
        let mut r = running(config, 10_000, 1);
        r.round_trip(Duration::from_ms(rtt_ms), true);
        r.guard().as_us() / 1_000
    };
    assert_eq!([0, 100].map(|ms| guard_ms(&Config::standard(), ms)), [500; 2]);
    let short = [0, 5, 100].map(|ms| guard_ms(&Config::aggressive(), ms));
    assert_eq!(short, [20, 25, 120]);
}

/// From a tenth of the fed back rate to where it is maintained: as many epochs as
/// `ln(0.101) / ln(1 - kappa)` says.
#[test]
fn epochs_of_recovery() {
    for (config, epochs) in [(Config::standard(), 11), (Config::aggressive(), 4)] {
        let mut r = running(&config, 10_000, 1);
        let mut n = 0;
        loop {
            let before = r.hz();
            r.feedback(at(0), 1_000, 1, true);
            if r.hz() == before {
                break;
            }
            n += 1;
        }
        assert_eq!(n, epochs);
        assert!(
            (1_000.0 / 1.1..=1_000.0).contains(&r.hz()),
            "91 % of it at least: {}",
            r.hz()
        );
    }
}

#[test]
fn down_gently() {
    let mut r = running(&Config::sdmac(), 10_000, 1);
    assert!(r.spacing_us().abs_diff(30_000) <= 1);
    // two and a half packets in 90 ms are 50/9 packets/s less
    r.feedback(at(0), 90_000, 1, true);
    let lower = 1e6 / 30_000.0 - 0.3 * 50.0 / 9.0;
    assert!((r.hz() - lower).abs() < 1e-9, "{}", r.hz());
    // ten packets of the spacing until now, a tenth more
    let wait = r.expect_at().unwrap().since(at(0)).as_us();
    assert!(wait.abs_diff(330_000) < 100, "{wait}");
}

#[test]
fn smaller_steps_over_more_hops() {
    // towards 250 packets/s, which is two and a half packets each 10 ms
    for (hops, share) in [(0, 0.1), (1, 0.1), (4, 0.05), (6, 0.0375)] {
        let mut r = running(&Config::sdmac(), 100_000, hops);
        let before = r.hz();
        r.feedback(at(0), 10_000, 1, true);
        let step = (r.hz() - before) / (250.0 - before);
        assert!((step - share).abs() < 1e-9, "{hops}: {step}");
    }
    let mut r = running(&Config::adaptive(), 100_000, 6);
    let before = r.hz();
    r.feedback(at(0), 10_000, 1, true);
    assert_eq!(
        r.hz(),
        before + 0.5 * (100.0 - before),
        "only where epochs adjust themselves"
    );
}

#[test]
fn adaptive_quick_start_multiplies_by_hops() {
    assert_eq!(running(&Config::adaptive(), 1_000, 5).spacing_us(), 5_000);
    assert_eq!(running(&Config::adaptive(), 1_000, 1).spacing_us(), 3_000);
    assert_eq!(running(&Config::aggressive(), 1_000, 5).spacing_us(), 1_000);
    assert_eq!(
        running(&Config::adaptive(), 0, 5).spacing_us(),
        10_000,
        "nobody knew"
    );
    assert_eq!(running(&Config::standard(), 1, 1).spacing_us(), 200);
    assert_eq!(running(&Config::standard(), u32::MAX, 1).spacing_us(), 1_000_000);
}

#[test]
fn three_misses_start_again() {
    let mut r = running(&Config::standard(), 1_000, 1);
    r.sent(at(0), false);
    assert_eq!(r.expect_at(), Some(at(1_100)));
    assert!(!r.miss(at(1_100)) && !r.miss(at(2_200)));
    assert_eq!((r.hz(), r.expect_at()), (250.0, Some(at(3_300))));
    let mut other = r.clone();
    other.feedback(at(3_000), 4_000, 1, true);
    assert!(!other.miss(at(4_100)), "a feedback in between");
    assert!(r.miss(at(3_300)));
    assert_eq!(
        (r.send_at(), r.probe_at(), r.expect_at()),
        (None, Some(at(3_300)), None)
    );
    r.probed(at(3_300));
    assert_eq!(r.probe_at(), Some(at(4_300)), "every epoch");
    r.feedback(at(3_400), 9_000, 1, true);
    assert!(r.is_searching(), "only the answer to the probe counts");
    r.quick_start(at(3_500), 2_000, 1, true);
    assert_eq!(
        (r.hz(), r.probe_at(), r.expect_at()),
        (500.0, None, Some(at(4_600)))
    );
}

/// Who is told that the path has failed is silent before each probe; that of the thesis probes at once, and then every epoch.
#[test]
fn a_notice_silences() {
    let mut thesis = running(&Config::adaptive(), 1_000, 1);
    thesis.path_failed(at(10));
    assert_eq!(thesis.probe_at(), Some(at(10)));
    thesis.probed(at(10));
    assert_eq!(thesis.probe_at(), Some(at(50)));

    let mut r = running(&Config::sdmac(), 1_000, 1);
    let silent = |r: &Rate, since: u64| r.probe_at().unwrap().since(at(since)).as_us() / 1_000;
    r.path_failed(at(10));
    assert_eq!((r.send_at(), r.expect_at()), (None, None));
    assert!((100..300).contains(&silent(&r, 10)), "{:?}", r.probe_at());
    let first = r.probe_at();
    r.path_failed(at(11));
    assert_eq!(r.probe_at(), first, "it is silent already");
    r.probed(at(400));
    assert!((200..600).contains(&silent(&r, 400)), "{:?}", r.probe_at());
    for _ in 0..4 {
        r.came_through();
    }
    r.quick_start(at(900), 2_000, 1, true);
    assert!(!r.is_searching());
    r.path_failed(at(1_000));
    assert!(
        (200..600).contains(&silent(&r, 1_000)),
        "neither what still comes in a silence nor the answer to a probe makes anything forgotten"
    );
    r.probed(at(2_000));
    r.quick_start(at(3_000), 2_000, 1, true);
    for _ in 0..4 {
        r.came_through();
    }
    r.path_failed(at(4_000));
    assert!((100..300).contains(&silent(&r, 4_000)), "the path has held");
    // missed feedback is another matter
    let mut missed = running(&Config::sdmac(), 1_000, 1);
    missed.sent(at(0), false);
    for n in 1..=3 {
        missed.miss(at(n * 1_000));
    }
    assert_eq!(missed.probe_at(), Some(at(3_000)));
    missed.probed(at(3_000));
    assert!(missed.probe_at() <= Some(at(3_200)), "{:?}", missed.probe_at());
    missed.path_failed(at(3_010));
    assert!(
        (100..300).contains(&silent(&missed, 3_010)),
        "told while it looked for a rate"
    );
}

/// Who sends so seldom that each packet comes after a rest finds out all the same that nobody answers.
#[test]
fn rests_hide_no_silence() {
    let mut r = running(&Config::sdmac(), 1_000, 1);
    r.round_trip(Duration::from_ms(200), true);
    let mut missed = None;
    for ms in (0..1_000).step_by(30) {
        if r.expect_at().is_some_and(|at_| at_ <= at(ms)) {
            missed = Some(ms);
            break;
        }
        r.sent(at(ms), false);
        if ms == 90 {
            r.feedback(at(ms), 1_000, 1, true);
        }
    }
    // feedback for that at 120 is due a round trip and 1.1 epochs of 20 ms later, and in between all is well
    assert_eq!(missed, Some(360));
}

/// Spacing is kept on average by a timer that is late, and no two packets go at once.
#[test]
fn pacing() {
    let mut r = running(&Config::standard(), 1_000, 1);
    let mut dice = crate::testing::Dice::new(3);
    let (mut now, mut last) = (Instant::ZERO, None);
    for _ in 0..1_000 {
        now = now.max(r.send_at().unwrap()) + Duration::from_us(dice.within(0..=400));
        if let Some(last) = last {
            assert!(now.since(last) >= Duration::from_us(500));
        }
        last = Some(now);
        r.sent(now, false);
    }
    assert!((999_000_000..=1_000_500_000).contains(&now.as_ns()), "{now:?}");
    // a long pause is not made up for
    let late = now + Duration::from_ms(50);
    r.sent(late, false);
    assert_eq!(r.send_at(), Some(late + Duration::from_us(500)));
    // another rate counts from the last packet
    r.feedback(late, 10_000, 1, true);
    assert_eq!(r.send_at(), Some(late + Duration::from_us(9_500)));
}

/// At a higher rate the next packet is due at once, which is no fault of a timer.
#[test]
fn a_rate_that_goes_up_is_no_debt() {
    let mut r = running(&Config::standard(), 10_000, 1);
    r.sent(at(0), false);
    r.sent(at(10), false);
    r.feedback(at(19), 100, 1, true);
    let spacing = r.spacing();
    assert!(spacing < Duration::from_us(500));
    r.sent(at(19), false);
    let next = r.send_at().unwrap();
    r.sent(next, false);
    assert_eq!(r.send_at(), Some(next + spacing));
}

/// Behind hops that tell too little the rate goes by what arrives; when it is looked for anew, the hops say again what it is.
#[test]
fn a_rate_that_is_looked_for_anew_is_not_slowed_down() {
    let mut r = running(&Config::sdmac(), 1_000, 1);
    let hz = r.hz();
    for n in 0..4 {
        (0..100).for_each(|_| r.sent(at(n * 100), false));
        r.round_trip(Duration::from_ms(if n == 0 { 10 } else { 200 }), true);
        tell(&mut r, 50, 50, at(n * 100));
        r.feedback(at(n * 100 + 100), 1_000, 1, true);
    }
    let slowed = r.hz();
    assert!(slowed < 600.0, "{slowed}");
    r.feedback(at(500), 1_000, 1, true);
    assert_eq!(r.hz(), slowed, "until a round says something else");
    (0..MISSES).for_each(|n| {
        r.miss(at(1_000 + u64::from(n)));
    });
    r.quick_start(at(2_000), 1_000, 1, false);
    assert_eq!(r.hz(), hz);
    r.feedback(at(2_100), 1_000, 1, true);
    assert!(r.hz() > hz, "{}", r.hz());
    // the variants of the thesis do not look at losses
    let mut other = running(&Config::adaptive(), 1_000, 1);
    (0..100).for_each(|_| other.sent(at(0), false));
    other.round_trip(Duration::from_ms(200), true);
    tell(&mut other, 10, 90, at(0));
    other.feedback(at(100), 1_000, 1, true);
    assert!(other.hz() > hz, "{}", other.hz());
}
