//! Paths that drop what is too long for them, and what must not be taken for one.

use super::*;

/// From `from_us` on this way drops all datagrams of more octets than that, without a word.
fn hole(octets: usize, from_us: u64) -> Link {
    Link {
        narrow_us: from_us..=u64::MAX,
        narrow_octets: octets,
        ..Link::good()
    }
}

/// A path that drops what is too long for it, from the beginning or from the middle on: smaller packets go through.
#[test]
fn a_black_hole_for_long_packets() {
    for config in ALL {
        for octets in [1_400, 1_200, 1_000, 548] {
            for from_us in [0, 500_000] {
                let links = [hole(octets, from_us), Link::good()];
                let mut n = two(5, config(), links, [work(800_000), work(20_000)]);
                let over = n.run_until(400 * SECOND);
                let c = n.end(0).counters();
                assert!(over, "{octets} from {from_us}: {c:?}");
                assert_eq!((n.read(1), n.read(0)), (800_000, 20_000), "{c:?}");
                let found = HEADER_OCTETS + usize::from(n.end(0).packet_octets());
                assert!((octets - 32..=octets).contains(&found), "{found} of {octets}");
                assert_eq!(n.end(1).packet_octets(), 1_448, "its own way is wide");
            }
        }
    }
}

/// Packets of one length, as those of the thesis, never get through.
#[test]
fn packets_that_do_not_fit_and_may_not() {
    let config = Config {
        fitting: false,
        ..Config::adaptive()
    };
    let links = [hole(1_200, 0), Link::good()];
    let mut n = two(5, config, links, [work(800_000), work(0)]);
    assert!(!n.run_until(400 * SECOND));
    assert_eq!((n.end(0).packet_octets(), states(&n)), (1_448, [State::Open; 2]));
    assert!(n.read(1) < 1_448);
}

/// One that not even the shortest packets pass: who sends is told so, and the other end that it is over.
#[test]
fn a_black_hole_for_every_packet() {
    for config in ALL {
        for from_us in [0, SECOND] {
            let links = [hole(400, from_us), Link::good()];
            let mut n = two(5, config(), links, [work(5_000_000), work(0)]);
            let over = n.run_until(300 * SECOND);
            assert!(over, "{from_us}: {:?} {:?}", states(&n), n.end(0).counters());
            assert_eq!(
                states(&n),
                [Failure::TooNarrow, Failure::Reset].map(State::Failed)
            );
        }
    }
}

/// Short epochs find out exactly what is missing: little is sent again in vain.
#[test]
fn losses_cost_little_more_than_themselves() {
    for config in [Config::aggressive(), Config::adaptive()] {
        for loss in [0, 50, 100, 200, 300, 400] {
            let lossy = || Link { loss, ..Link::good() };
            let mut n = two(7, config, [lossy(), lossy()], [work(300_000), work(0)]);
            assert!(n.run_until(60 * SECOND), "{loss} {:?}", n.end(0).counters());
            assert_eq!(
                n.end(0).packet_octets(),
                1_448,
                "losses are no reason for shorter packets"
            );
            let (sent, vain) = (n.end(0).counters().sent, n.end(1).counters().repeated);
            assert!(vain <= sent / 6, "{loss}: {vain} of {sent}");
        }
    }
}

/// A path that loses most packets, whether its hops tell their delay or not, loses short ones as well.
#[test]
fn heavy_losses_are_not_taken_for_a_narrow_path() {
    for config in ALL {
        for (loss, measured) in [(500, true), (500, false), (600, false)] {
            for seed in 1..=8 {
                let lossy = || Link {
                    loss,
                    measured,
                    ..Link::good()
                };
                let mut n = two(seed, config(), [lossy(), lossy()], [work(300_000), work(0)]);
                let over = n.run_until(3_000 * SECOND);
                let told = format!("{loss} {seed} {:?} {:?}", states(&n), n.end(0).counters());
                assert!(over && n.read(1) == 300_000, "{told}");
                assert_eq!(n.end(0).packet_octets(), 1_448, "{told}");
            }
        }
    }
}

/// Nor does it hide one.
#[test]
fn a_black_hole_on_a_path_that_loses_every_other_packet() {
    for config in ALL {
        let lossy = Link {
            loss: 500,
            ..hole(1_200, 0)
        };
        let mut n = two(9, config(), [lossy, Link::good()], [work(300_000), work(0)]);
        let over = n.run_until(3_000 * SECOND);
        assert!(over && n.read(1) == 300_000, "{:?}", n.end(0).counters());
        let found = HEADER_OCTETS + usize::from(n.end(0).packet_octets());
        // losses of one length in a row may be chance, and it is not tried again for ten minutes
        assert!((548..=1_200).contains(&found), "{found}");
    }
}

/// Nobody reads for ten minutes, and what is sent finds no room: that is no black hole.
#[test]
fn a_reader_that_stops_is_not_taken_for_a_narrow_path() {
    for config in ALL {
        let reads = Work {
            octets: 0,
            reads: Some((600 * SECOND, 100_000)),
        };
        let mut n = two(6, config(), good(), [work(110_000), reads]);
        assert!(!n.run_until(590 * SECOND));
        assert_eq!((states(&n), n.end(0).packet_octets()), ([State::Open; 2], 1_448));
        assert!(n.end(1).counters().refused > 100, "{:?}", n.end(1).counters());
        assert!(n.run_until(1_900 * SECOND), "{:?}", n.end(0).counters());
        assert_eq!(n.read(1), 110_000);
    }
}

/// Both ways and all packets are gone for a while, again and again: nor is that one.
#[test]
fn a_path_that_is_down_is_not_taken_for_a_narrow_one() {
    for config in ALL {
        let mut n = two(8, config(), good(), [work(3_000_000), work(0)]);
        let mut over = false;
        for second in (1..).step_by(10).take_while(|s| *s < 400) {
            let cut = second * SECOND..=(second + 6) * SECOND;
            n.cut([cut.clone(), cut]);
            over = n.run_until((second + 9) * SECOND);
            assert_eq!(n.end(0).packet_octets(), 1_448, "{:?}", n.end(0).counters());
        }
        assert!(over && n.read(1) == 3_000_000, "{:?}", n.end(0).counters());
    }
}

/// The last six packets of a stream are too long by now: none of them goes whole for ever.
#[test]
fn a_black_hole_for_the_end_of_a_stream() {
    for seed in 1..=20 {
        for config in ALL {
            let lossy = Link {
                loss: 200,
                ..hole(593, 160_000)
            };
            let mut n = two(seed, config(), [lossy, Link::good()], [work(100_000), work(0)]);
            let over = n.run_until(400 * SECOND);
            assert!(over && n.read(1) == 100_000, "{seed}: {:?}", n.end(0).counters());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A black hole that comes at any time and for any length of packets, on a lossy path: all arrives, or who sends is
    /// told, in bounded time.
    #[test]
    fn any_black_hole(
        seed: u64,
        link in any_link(300),
        octets in 30usize..1_500,
        from_us in 0..10 * SECOND,
        file in 20_000usize..200_000,
        variant in 0..ALL.len(),
    ) {
        let link = Link { narrow_us: from_us..=u64::MAX, narrow_octets: octets, ..link };
        let back = Link { loss: link.loss, ..Link::good() };
        let mut n = two(seed, ALL[variant](), [link, back], [work(file), work(0)]);
        let over = n.run_until(3_000 * SECOND);
        let told = format!("{:?} {} {:?}", states(&n), n.now_us(), n.end(0).counters());
        prop_assert!(over, "{}", told);
        if n.end(0).state() == State::Failed(Failure::NoAnswer) {
            return Ok(());
        }
        if octets >= 548 || matches!(n.end(0).state(), State::Lingering | State::Closed) {
            prop_assert_eq!(n.read(1), file, "{}", told);
        } else {
            let why = State::Failed(Failure::TooNarrow);
            prop_assert!(n.end(0).state() == why, "{}", told);
        }
    }
}
