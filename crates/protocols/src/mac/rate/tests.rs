//! Minstrel on links whose losses are known, and the overlay in a room.

mod rsin;

use super::minstrel::Minstrel;
use super::*;
use crate::mac::data::{Identity, Role};
use crate::mac::sender::{Sender, SenderConfig};
use crate::testing::{Dice, Fate, Room};
use frame::{Phy, ppdu_us};
use proptest::prelude::*;
use std::format;
use std::vec::Vec;

const PHY: Phy = Phy::A;
/// The same with MCS.
const N: Phy = Phy::N5;
const OCTETS: u32 = 1_200;

fn kbps(rate: Rate) -> u32 {
    rate.kbps100()
}

fn rate(text: &str) -> Rate {
    Rate::parse(text).unwrap()
}

/// Time of one try that waits for nobody, us.
fn try_us(rate: Rate) -> u64 {
    let answer = PHY.sifs_us + PHY.ack_us(rate, PHY.basic);
    u64::from(PHY.difs_us() + 7 * PHY.slot_us + ppdu_us(rate, OCTETS, PHY.band) + answer)
}

/// Frames acknowledged per second in 60 s on a link that loses this share at each of the eight rates like the one that is asked for,
/// after 10 s.
fn goodput(algorithm: &mut dyn Algorithm, rate: Rate, losses: [f64; 8], seed: u64) -> f64 {
    let rates = Rates::like(&N, rate);
    let mut dice = Dice::new(seed);
    let (mut now_us, mut acked_frames) = (0, 0u64);
    while now_us < 70_000_000 {
        let now = Instant::from_us(now_us);
        let ask = Ask {
            octets: OCTETS,
            tries: 20,
            left: None,
            rate,
        };
        let chain = algorithm.chain(now, &ask);
        let mut sent = Sent {
            chain,
            used: [0; MAX_SERIES],
            acked: false,
            ack_signal_dbm: None,
        };
        'chain: for (i, series) in chain.as_slice().iter().enumerate() {
            let index = rates.as_slice().iter().position(|r| *r == series.rate).unwrap();
            for _ in 0..series.tries {
                sent.used[i] += 1;
                now_us += try_us(series.rate);
                if dice.within(0..=999_999) as f64 >= losses[index] * 1e6 {
                    sent.acked = true;
                    break 'chain;
                }
            }
        }
        acked_frames += u64::from(sent.acked && now_us >= 10_000_000);
        algorithm.learn(Instant::from_us(now_us), &sent);
    }
    acked_frames as f64 / 60.0
}

const SHORT: Ask = Ask {
    octets: 100,
    tries: 1,
    left: None,
    rate: Rate::OFDM_6,
};

struct Fixed(Rate);

impl Algorithm for Fixed {
    fn chain(&mut self, _: Instant, _: &Ask) -> SeriesList {
        SeriesList::one(self.0, 20)
    }
    fn learn(&mut self, _: Instant, _: &Sent) {}
}

#[test]
fn rates_of_phys() {
    let of = |phy: &Phy| {
        Rates::of(phy)
            .as_slice()
            .iter()
            .map(|r| kbps(*r))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&Phy::A), [60, 90, 120, 180, 240, 360, 480, 540]);
    assert_eq!(of(&Phy::B), [10, 20, 55, 110]);
    assert_eq!(
        of(&Phy::G),
        [10, 20, 55, 60, 90, 110, 120, 180, 240, 360, 480, 540]
    );
}

/// An MCS stands for the eight of its streams, width and guard interval.
#[test]
fn rates_like_another() {
    let named = |text: std::string::String| rate(&text);
    for phy in [Phy::N2_4, Phy::N5] {
        for width in ["20", "20s", "40", "40s"] {
            for (mcs, slowest) in [(0, 0), (7, 0), (9, 8), (31, 24)] {
                let like = Rates::like(&phy, named(format!("mcs{mcs}/{width}")));
                let all = (slowest..slowest + 8).map(|mcs| named(format!("mcs{mcs}/{width}")));
                assert_eq!(like.as_slice(), all.collect::<Vec<_>>());
                assert!(like.as_slice().is_sorted_by_key(|r| kbps(*r)));
            }
        }
    }
    for phy in Phy::ALL {
        for legacy in ["54M", "11Ms", "1M"].map(rate) {
            assert_eq!(Rates::like(&phy, legacy), Rates::of(&phy), "{}", phy.name);
        }
    }
    // a PHY without MCS
    assert_eq!(Rates::like(&Phy::A, rate("mcs7/20")), Rates::of(&Phy::A));
}

/// Looking around costs little, whether most rates work or half of them are dead.
#[test]
fn minstrel_carries_what_the_best_rate_carries() {
    let links = [
        [0.0; 8],
        [0.0, 0.0, 0.0, 0.0, 0.01, 0.05, 0.6, 0.95],
        [0.3; 8],
        [0.5; 8],
        [0.0, 0.0, 0.05, 0.6, 0.9, 1.0, 1.0, 1.0],
        [0.02, 0.3, 0.2, 0.7, 1.0, 1.0, 1.0, 1.0],
    ];
    for (i, losses) in links.into_iter().enumerate() {
        for first in ["6M", "mcs0/20", "mcs7/40s"].map(rate) {
            let fixed = |rate: &Rate| goodput(&mut Fixed(*rate), first, losses, 5);
            let rates = Rates::like(&N, first);
            let best = rates.as_slice().iter().map(fixed).fold(0.0, f64::max);
            let ours = goodput(&mut Minstrel::new(&N, 1), first, losses, 5);
            assert!(
                ours > 0.95 * best,
                "link {i}, {first}: {ours:.0} frames/s, {best:.0} at the best fixed rate"
            );
        }
    }
}

/// Minstrel after frames of 90 octets with so much time between them, each lost with `losses[n]` in its n-th try, at any rate.
fn among_others(every_ms: u64, frames: u64, losses: [f64; 7], seed: u64) -> Minstrel {
    let mut minstrel = Minstrel::new(&PHY, seed);
    let mut dice = Dice::new(seed);
    for i in 0..frames {
        let now = Instant::from_us(i * every_ms * 1_000);
        let ask = Ask {
            octets: 90,
            tries: 7,
            left: None,
            rate: Rate::OFDM_6,
        };
        let chain = cut(minstrel.chain(now, &ask), 7);
        let lost = |loss: &&f64| (dice.within(0..=999_999) as f64) < **loss * 1e6;
        let failed = losses.iter().take_while(lost).count() as u16;
        let confirm = Confirm {
            attempts: (failed + 1).min(chain.attempts()),
            ..Confirm::without_air(Token(i), Outcome::Acked, Rate::OFDM_6)
        };
        let outcome = if failed < chain.attempts() {
            Outcome::Acked
        } else {
            Outcome::NotAcked
        };
        let sent = Sent::of(chain, &Confirm { outcome, ..confirm }).unwrap();
        minstrel.learn(now, &sent);
    }
    minstrel
}

/// One frame in ten looks around, so few frames take long, but it comes to the fastest rate if no rate loses anything.
#[test]
fn minstrel_climbs_with_few_frames() {
    for every_ms in [1, 4, 20] {
        for seed in 0..10 {
            let minstrel = among_others(every_ms, 300, [0.0; 7], seed);
            assert_eq!(minstrel.best(), Rate::OFDM_54, "every {every_ms} ms, seed {seed}");
        }
    }
}

/// Stations that send at one moment collide at their first tries, at whatever rate: one that is sampled is not dead for that. With frames so
/// short 18 Mb/s carries 85 % of what 54 Mb/s does; 6 Mb/s, where it begins, 63 %.
#[test]
fn minstrel_climbs_where_first_tries_collide() {
    for first in [0.9, 1.0] {
        for every_ms in [4, 20] {
            let losses = [first, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1];
            let best = |seed| kbps(among_others(every_ms, 2_000, losses, seed).best());
            let bests: Vec<u32> = (0..20).map(best).collect();
            let fast = bests.iter().filter(|b| **b >= 180).count();
            assert!(fast >= 15, "{first}, every {every_ms} ms: {bests:?}");
        }
    }
}

#[test]
fn minstrel_finds_the_fastest_that_works() {
    let mut minstrel = Minstrel::new(&PHY, 3);
    goodput(&mut minstrel, Rate::OFDM_6, [0.0; 8], 1);
    assert_eq!(minstrel.best(), Rate::OFDM_54);
    let weak = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0];
    // `goodput` begins at 0 again, so this is a new one
    let mut later = Minstrel::new(&PHY, 3);
    goodput(&mut later, Rate::OFDM_6, weak, 1);
    assert_eq!(later.best(), Rate::OFDM_12);
}

/// Tries that fit into 6 ms with the frame of 1,200 octets: by hand for 6 and 54 Mb/s of 802.11a.
/// 6 Mb/s: 34 us of DIFS, 1624 of frame, 16 + 44 of answer; with half windows of 67, 139, 283 us three tries take 5.6 ms.
/// 54 Mb/s: 34, 200, and 16 + 28; five tries take 3.6 ms, and the sixth, with half a window of 2299 us, ends after 6.2.
#[test]
fn tries_of_minstrel() {
    let minstrel = Minstrel::new(&PHY, 1);
    let tries: Vec<u8> = minstrel.rates().iter().map(|r| r.tries).collect();
    assert_eq!((tries[0], tries[7]), (3, 5));
    assert!(tries.is_sorted());
}

/// Before anything is known the rate of the request goes first, or the next slower one, and the slowest behind it.
#[test]
fn minstrel_begins_where_the_request_is() {
    for (rate, first) in [
        (Rate::OFDM_54, 540),
        (Rate::OFDM_6, 60),
        (Rate::DSSS_11, 90),
        (Rate::DSSS_1, 60),
    ] {
        let ask = Ask { rate, ..SHORT };
        let chain = Minstrel::new(&PHY, 1).chain(Instant::ZERO, &ask);
        let rates: Vec<u32> = chain.as_slice().iter().map(|s| kbps(s.rate)).collect();
        assert_eq!((rates[0], rates.last()), (first, Some(&60)), "{rate}");
    }
    let ask = Ask {
        rate: rate("mcs5/40"),
        ..SHORT
    };
    let chain = Minstrel::new(&N, 1).chain(Instant::ZERO, &ask);
    let rates: Vec<u32> = chain.as_slice().iter().map(|s| kbps(s.rate)).collect();
    assert_eq!((rates[0], rates.last()), (1_080, Some(&135)));
}

/// A receiver of frames at legacy rates and of others at MCS: each kind stays among its own, and forgets nothing for the other.
#[test]
fn kinds_of_rates_are_kept_apart() {
    const DATA: [u8; 40] = {
        let mut octets = [0; 40];
        // to an access point, whose address the first one is
        (octets[0], octets[1], octets[4]) = (0x08, 0x01, 0x02);
        octets
    };
    let mut control = stack(MacAddr::local(1), 7).control;
    for i in 0..4_000 {
        let (now, token) = (Instant::from_us(i * 500), Token(i));
        let asked = rate(if i % 2 == 0 { "6M" } else { "mcs0/40" });
        let how = TxHow::multi_shot(asked, 7);
        let chain = control.choose(now, token, &DATA, &how).unwrap();
        let alike = Rates::like(&N, asked);
        for series in chain.as_slice() {
            assert!(
                alike.as_slice().contains(&series.rate),
                "{} for {asked}",
                series.rate
            );
        }
        let first = chain.as_slice()[0].rate;
        let confirm = Confirm {
            attempts: 1,
            ..Confirm::without_air(token, Outcome::Acked, first)
        };
        control.learn(now, &confirm);
    }
    let best: Vec<Rate> = control
        .peers
        .iter()
        .flatten()
        .map(|p| p.algorithm.best())
        .collect();
    assert_eq!(best, ["54M", "mcs7/40"].map(rate));
}

/// Every rate is tried now and then, the slow ones rarely as the first.
#[test]
fn minstrel_looks_around() {
    let mut minstrel = Minstrel::new(&PHY, 1);
    let mut seen = [0u32; 8];
    for i in 0..5_000 {
        let ask = Ask {
            octets: OCTETS,
            tries: 20,
            left: None,
            rate: Rate::OFDM_6,
        };
        let chain = minstrel.chain(Instant::from_us(i * 1_000), &ask);
        let first = chain.as_slice()[0].rate;
        let index = Rates::of(&PHY)
            .as_slice()
            .iter()
            .position(|r| *r == first)
            .unwrap();
        seen[index] += 1;
        let mut used = [0; MAX_SERIES];
        used[0] = 1;
        let sent = Sent {
            chain,
            used,
            acked: true,
            ack_signal_dbm: None,
        };
        minstrel.learn(Instant::from_us(i * 1_000 + 500), &sent);
    }
    assert!(seen[7] > 4_300, "{seen:?}");
    assert!(seen[..7].iter().all(|n| *n > 0), "{seen:?}");
}

#[test]
fn what_a_confirm_says_about_a_chain() {
    let s = |rate, tries| Series { rate, tries };
    let chain = SeriesList::new(&[s(Rate::OFDM_54, 2), s(Rate::OFDM_24, 3), s(Rate::OFDM_6, 1)]).unwrap();
    let confirm = |outcome, attempts| Confirm {
        attempts,
        ..Confirm::without_air(Token(1), outcome, Rate::OFDM_54)
    };
    let sent = Sent::of(chain, &confirm(Outcome::Acked, 4)).unwrap();
    assert_eq!((sent.used, sent.last(), sent.acked), ([2, 2, 0, 0], 1, true));
    let sent = Sent::of(chain, &confirm(Outcome::NotAcked, 6)).unwrap();
    assert_eq!((sent.used, sent.last(), sent.acked), ([2, 3, 1, 0], 2, false));
    assert_eq!(Sent::of(chain, &confirm(Outcome::Unknown, 0)), None);
    assert_eq!(Sent::of(chain, &confirm(Outcome::Expired, 0)), None);
    assert_eq!(
        cut(chain, 3).as_slice(),
        [s(Rate::OFDM_54, 2), s(Rate::OFDM_24, 1)]
    );
    assert_eq!(cut(chain, 9), chain);
}

type Stack = RateControl<Sender, Minstrel>;

fn stack(me: MacAddr, tries: u8) -> Stack {
    let role = Role::Direct {
        bssid: MacAddr::local(9),
    };
    let mut config = SenderConfig::new(Identity { me, role }, Rate::OFDM_6);
    config.how = TxHow::multi_shot(Rate::OFDM_6, tries);
    RateControl::new(Minstrel::new(&N, 1), Sender::new(config))
}

/// A link on which 36 Mb/s and more are lost: they are given up, for one receiver and not for the other.
#[test]
fn each_receiver_has_its_rates() {
    let address = [1, 2, 3].map(MacAddr::local);
    let mut room = Room::new(1);
    for me in address {
        room.add(me, move || stack(me, 7));
    }
    room.script(move |a| {
        let weak = Header::parse(a.frame).is_ok_and(|h| h.receiver() == address[2]);
        let (_, series) = a.how.series.at(a.before).unwrap();
        if weak && kbps(series.rate) >= 360 {
            Fate::DataLost
        } else {
            Fate::Arrives
        }
    });
    for i in 0..2_000_u64 {
        room.submit(i * 2_000_000, 0, address[1 + i as usize % 2], &[7; 200], None);
    }
    room.run_until(4_100_000_000);
    assert_eq!(room.delivered.len(), 2_000);
    let best = |i: usize| room.protocol::<Stack>(0).algorithm(address[i]).unwrap().best();
    assert_eq!((best(1), kbps(best(2))), (Rate::OFDM_54, 240));
    assert!(room.protocol::<Stack>(0).algorithm(address[0]).is_none());
    room.close();
}

/// A host that takes one rate for each request: what fails at the first goes on with the next, up to as many tries as were
/// asked for, and the protocol above has one confirm for it.
#[test]
fn chains_in_pieces() {
    let address = [1, 2].map(MacAddr::local);
    let mut room = Room::new(1);
    room.series = 1;
    for me in address {
        room.add(me, move || stack(me, 7));
    }
    // 36 Mb/s and more are lost, and every try of the last frames
    let count = std::rc::Rc::new(core::cell::Cell::new(0));
    let retried = count.clone();
    room.script(move |a| {
        let (_, series) = a.how.series.at(a.before).unwrap();
        let retry = Header::parse(a.frame)
            .unwrap()
            .flags()
            .contains(frame::mac::Flags::RETRY);
        count.set(count.get() + u32::from(retry && a.before == 0));
        if kbps(series.rate) >= 360 || a.frame.last() == Some(&9) {
            Fate::DataLost
        } else {
            Fate::Arrives
        }
    });
    for i in 0..1_000_u64 {
        let last = if i < 990 { 7 } else { 9 };
        room.submit(i * 2_000_000, 0, address[1], &[last; 200], None);
    }
    room.run_until(2_100_000_000);
    assert_eq!(room.delivered.len(), 990);
    assert!(retried.get() > 10, "{} went on", retried.get());
    let stack = room.protocol::<Stack>(0);
    assert_eq!(kbps(stack.algorithm(address[1]).unwrap().best()), 240);
    let confirms = &stack.protocol().counters().confirms;
    assert_eq!(
        (confirms.acked, confirms.not_acked, confirms.total()),
        (990, 10, 1_000)
    );
    room.close();
}

#[test]
fn a_one_shot_stays_one_and_groups_keep_their_rate() {
    let (a, b) = (MacAddr::local(1), MacAddr::local(2));
    let mut room = Room::new(1);
    room.add(a, move || stack(a, 1));
    room.script(|x| {
        assert_eq!(x.how.series.attempts(), 1);
        if Header::parse(x.frame).unwrap().is_group() {
            assert_eq!(x.how.series.as_slice()[0].rate, Rate::OFDM_6);
        }
        Fate::AckLost
    });
    for i in 0..300 {
        room.submit(
            i * 1_000_000,
            0,
            if i % 3 == 0 { MacAddr::BROADCAST } else { b },
            &[1],
            None,
        );
    }
    room.run_until(400_000_000);
    assert_eq!(room.flights.len(), 300);
    room.close();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Laws hold whatever happens; `close` replays the tapes.
    #[test]
    fn any_air(seed: u64, gaps in proptest::collection::vec(0u64..2_000_000, 1..60)) {
        let (a, b) = (MacAddr::local(1), MacAddr::local(2));
        let mut room = Room::new(seed);
        room.add(a, move || stack(a, 7));
        room.add(b, move || stack(b, 7));
        room.delays.confirm_ns = 5_000..=400_000;
        let mut dice = Dice::new(seed);
        room.script(move |_| match dice.within(0..=5) {
            0..=1 => Fate::Arrives,
            2 => Fate::DataLost,
            3 => Fate::AckLost,
            4 => Fate::ConfirmLost,
            _ => Fate::Reset,
        });
        let mut t = 0;
        for (i, gap) in gaps.iter().enumerate() {
            t += gap;
            room.submit(t, i % 2, if i % 2 == 0 { b } else { a }, &[1; 100], (i % 3 == 0).then_some(t + gap));
        }
        room.run_until(t + 100_000_000);
        let ended: u64 = [0, 1].map(|n| room.protocol::<Stack>(n).protocol().counters().confirms.total()).iter().sum();
        prop_assert_eq!(ended, gaps.len() as u64);
        room.close();
    }
}
