//! RSIN on links whose losses are known.

use super::super::rsin::{Rsin, RsinCounters, Source};
use super::*;

/// Losses by a threshold of 5 dB more for each step of rate, softened over 4 dB.
fn by_threshold(rate: Rate, ratio_db: f64, _: u32) -> f64 {
    let rates = Rates::like(&N, rate);
    let index = rates.as_slice().iter().position(|r| *r == rate).unwrap() as f64;
    (0.5 - (ratio_db - 3.0 * index) / 8.0).clamp(1e-4, 1.0)
}

/// All non-increasing chains, the slow way; at most four different rates.
fn best_of_all(ratio_db: f64, octets: u32, tries: usize, budget_us: u32) -> f64 {
    fn from(
        rate: usize,
        k: usize,
        loss: f64,
        left: i64,
        chain: &mut Vec<usize>,
        ask: &(f64, u32, usize),
    ) -> f64 {
        let mut best = if k == 0 { f64::INFINITY } else { loss };
        if k == ask.2 {
            return best;
        }
        let backoff = ((16_u32 << k).min(1024) - 1) * PHY.slot_us / 2;
        for index in (0..=rate).rev() {
            let r = Rates::of(&PHY).as_slice()[index];
            let answer = PHY.sifs_us + PHY.ack_us(r, PHY.basic);
            let cost = PHY.difs_us() + backoff + ppdu_us(r, ask.1, PHY.band) + answer;
            chain.push(index);
            let mut kinds = chain.clone();
            kinds.dedup();
            if i64::from(cost) <= left && kinds.len() <= MAX_SERIES {
                let all = loss * by_threshold(r, ask.0, ask.1);
                best = best.min(from(index, k + 1, all, left - i64::from(cost), chain, ask));
            }
            chain.pop();
        }
        best
    }
    from(
        7,
        0,
        1.0,
        budget_us.into(),
        &mut Vec::new(),
        &(ratio_db, octets, tries),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn rsin_finds_the_best_chain(ratio in -5.0..40.0, octets in 40u32..1_500, tries in 1usize..5, budget in 200u32..6_000) {
        let rsin = Rsin::new(&PHY, -94, 0, by_threshold);
        let best = best_of_all(ratio, octets, tries, budget);
        let (chain, loss) = rsin.solve(ratio, octets, tries, budget);
        let attempts = chain.attempts();
        if best.is_finite() {
            prop_assert!((loss - best).abs() <= 1e-12 * best, "{loss} {best}");
            prop_assert!(usize::from(attempts) <= tries);
            let rates: Vec<u32> = chain.as_slice().iter().map(|s| kbps(s.rate)).collect();
            prop_assert!(rates.is_sorted_by(|a, b| a > b), "{rates:?}");
        } else {
            prop_assert_eq!((attempts, chain.as_slice()[0].rate), (1, Rate::OFDM_54));
        }
    }
}

/// Where no rate is worth anything by the margin, all tries go at the slowest that there is time for: the link may be better than that.
#[test]
fn without_hope_rsin_is_slow() {
    let rsin = Rsin::new(&PHY, -94, 0, |_, _, _| 1.0);
    for (octets, budget, slowest) in [(1_500, 20_000, "6M"), (1_500, 1_000, "18M"), (1_500, 700, "24M")] {
        let (chain, loss) = rsin.solve(5.0, octets, 3, budget);
        let rates: Vec<Rate> = chain.as_slice().iter().map(|s| s.rate).collect();
        assert_eq!((rates, loss), (std::vec![rate(slowest)], 1.0), "{budget}");
    }
    let (chain, _) = rsin.solve(5.0, 1_500, 3, 20_000);
    assert_eq!(chain.attempts(), 3);
}

/// Noise takes nothing from a strong signal, but something else may: a frame is tried for as long as there is time.
#[test]
fn without_noise_rsin_still_retries() {
    let rsin = Rsin::new(&PHY, -94, 0, |_, _, _| 0.0);
    for (tries, budget, attempts) in [(7, 20_000, 7), (3, 20_000, 3), (7, 400, 1)] {
        let (chain, _) = rsin.solve(40.0, 1_500, tries, budget);
        let rates: Vec<Rate> = chain.as_slice().iter().map(|s| s.rate).collect();
        assert_eq!(
            (chain.attempts(), rates),
            (attempts, std::vec![Rate::OFDM_54]),
            "{budget}"
        );
    }
}

/// What became of a frame whose first try was the last one.
fn outcome(chain: SeriesList, acked: bool, ack_signal_dbm: Option<i8>) -> Sent {
    let mut used = [0; MAX_SERIES];
    used[0] = 1;
    Sent {
        chain,
        used,
        acked,
        ack_signal_dbm,
    }
}

#[test]
fn rsin_listens_to_acks() {
    let mut rsin = Rsin::new(&PHY, -94, 3, by_threshold);
    let first = rsin.chain(Instant::ZERO, &SHORT);
    // 24 Mb/s works from 15.2 dB; there 18 Mb/s and less lose as little as anything does
    assert!((rsin.ratio_db().unwrap() - 15.2).abs() < 0.13);
    assert_eq!(kbps(first.as_slice()[0].rate), 180);
    rsin.learn(Instant::ZERO, &outcome(first, true, Some(-50)));
    assert_eq!(rsin.ratio_db(), Some(41.0));
    // strong: the fastest loses as little as all others and takes least
    assert_eq!(
        rsin.chain(Instant::ZERO, &SHORT).as_slice()[0].rate,
        Rate::OFDM_54
    );
    rsin.learn(Instant::ZERO, &outcome(first, true, Some(-58)));
    assert_eq!(rsin.ratio_db(), Some(40.0));
    rsin.learn(Instant::ZERO, &outcome(first, false, None));
    assert_eq!(rsin.ratio_db(), Some(39.0));
}

/// The same strength is a ratio of 3 dB less in 40 MHz, and the chains are of MCS.
#[test]
fn rsin_reckons_with_the_width() {
    for (text, ratio_db, strong, weak) in [("mcs0/20", 41.0, 650, 260), ("mcs0/40", 38.0, 1_350, 405)] {
        let mut rsin = Rsin::new(&N, -94, 3, by_threshold);
        let ask = Ask {
            rate: rate(text),
            ..SHORT
        };
        let first = |rsin: &mut Rsin| {
            let chain = rsin.chain(Instant::ZERO, &ask);
            (kbps(chain.as_slice()[0].rate), chain)
        };
        let (_, chain) = first(&mut rsin);
        rsin.learn(Instant::ZERO, &outcome(chain, true, Some(-50)));
        assert_eq!((rsin.ratio_db(), first(&mut rsin).0), (Some(ratio_db), strong));
        let mut rsin = Rsin::new(&N, -94, 3, by_threshold);
        let _ = first(&mut rsin);
        rsin.hear(Instant::ZERO, -77);
        assert_eq!(first(&mut rsin).0, weak, "{text}");
    }
}

/// Without the strength of ACKs that of the receiver's own frames stands in for it; with it, it says nothing.
#[test]
fn rsin_hears_where_acks_tell_nothing() {
    let mut rsin = Rsin::new(&PHY, -94, 3, by_threshold);
    let chain = rsin.chain(Instant::ZERO, &SHORT);
    rsin.hear(Instant::ZERO, -70);
    assert_eq!((rsin.source(), rsin.ratio_db()), (Source::Heard, Some(21.0)));
    rsin.learn(Instant::ZERO, &outcome(chain, false, None));
    assert_eq!(rsin.ratio_db(), Some(20.0));
    // what arrives takes that back, and no more
    for quarters in [81, 82, 83, 84, 84] {
        rsin.learn(Instant::ZERO, &outcome(chain, true, None));
        assert_eq!(rsin.ratio_db(), Some(f64::from(quarters) / 4.0));
    }
    rsin.chain(Instant::ZERO, &SHORT);
    rsin.learn(Instant::ZERO, &outcome(chain, true, Some(-60)));
    rsin.hear(Instant::ZERO, -80);
    assert_eq!((rsin.source(), rsin.ratio_db()), (Source::Acks, Some(31.0)));
    rsin.chain(Instant::ZERO, &SHORT);
    let [acks, heard, outcomes] = [1, 1, 1];
    assert_eq!(
        rsin.counters(),
        RsinCounters {
            acks,
            heard,
            outcomes
        }
    );
}

/// A receiver that was away for 200 frames is found again: the estimate does not fall below what the slowest rate needs, where all rates
/// would look alike.
#[test]
fn rsin_finds_who_was_away() {
    for source in [Source::Acks, Source::Heard, Source::Outcomes] {
        let mut rsin = Rsin::new(&PHY, -94, 3, by_threshold);
        let chain = rsin.chain(Instant::ZERO, &SHORT);
        match source {
            Source::Acks => rsin.learn(Instant::ZERO, &outcome(chain, true, Some(-60))),
            Source::Heard => rsin.hear(Instant::ZERO, -60),
            Source::Outcomes => {}
        }
        for _ in 0..200 {
            rsin.learn(Instant::ZERO, &outcome(chain, false, None));
        }
        assert_eq!(rsin.source(), source);
        assert_eq!(rsin.chain(Instant::ZERO, &SHORT).as_slice()[0].rate, Rate::OFDM_6);
    }
}

/// Frames that are acknowledged before a deadline, of the last 1,000 of 2,000; nothing tells a strength.
fn in_time(ratio_db: f64, left_us: u64) -> u32 {
    let mut rsin = Rsin::new(&PHY, -94, 3, by_threshold);
    let mut dice = Dice::new(1);
    let mut acked = 0;
    for i in 0..2_000 {
        let ask = Ask {
            octets: OCTETS,
            tries: 7,
            left: Some(Duration::from_us(left_us)),
            rate: Rate::OFDM_6,
        };
        let chain = rsin.chain(Instant::ZERO, &ask);
        let mut sent = outcome(chain, false, None);
        (sent.used[0], sent.acked) = (0, false);
        let mut took_us = 0;
        'chain: for (i, series) in chain.as_slice().iter().enumerate() {
            for _ in 0..series.tries {
                took_us += try_us(series.rate);
                if took_us > left_us {
                    break 'chain;
                }
                sent.used[i] += 1;
                let lost = by_threshold(series.rate, ratio_db, OCTETS);
                if f64::from(dice.within(0..=999_999) as u32) >= lost * 1e6 {
                    sent.acked = true;
                    break 'chain;
                }
            }
        }
        acked += u32::from(sent.acked && i >= 1_000);
        rsin.learn(Instant::ZERO, &sent);
    }
    assert_eq!(rsin.counters().outcomes, 2_000);
    acked
}

/// The slowest rates cannot meet the deadline: 6 Mb/s takes 1.8 ms with its ACK. Each rate that can is found where the link bears it.
#[test]
fn rsin_probes_where_nothing_tells_a_strength() {
    for ratio_db in [15.0, 20.0, 25.0, 30.0, 40.0] {
        let acked = in_time(ratio_db, 1_200);
        assert!(acked > 950, "{acked} of 1,000 at {ratio_db} dB");
    }
    // 0.4 ms are enough for 54 Mb/s only, which works from 24 dB
    assert!(in_time(40.0, 400) > 950);
}
