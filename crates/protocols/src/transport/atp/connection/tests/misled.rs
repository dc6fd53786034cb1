//! Hops that tell a delay by which nobody can go: a constant that is not what they measure, or of a way behind which there is a narrower one.

use super::*;

/// A path that takes a packet in `service_us`, with 50 in its queue; all that is known of it is a delay of `told_us`.
fn path(told_us: u32, service_us: u64, delay_us: u64) -> Link {
    Link {
        service_us: service_us..=service_us,
        delay_us: delay_us..=delay_us,
        measured: false,
        told_us,
        ..Link::good()
    }
}

/// Carries all of it; the time in microseconds, packets that were sent again, and what to say if that is too much.
fn carry(mut n: Network<End>, case: &dyn core::fmt::Debug) -> (u64, u64, std::string::String) {
    let over = n.run_until(200 * SECOND);
    let counters = n.end(0).counters();
    let told = format!("{case:?}: {} us, {counters:?}", n.now_us());
    assert!(over, "{told}");
    (n.now_us(), counters.resent, told)
}

/// A file of so many octets from end 0, over a link that is alike both ways.
fn network(link: &Link, octets: usize) -> Network<End> {
    alike(3, &Config::sdmac(), 1 << 20, link, [octets, 0])
}

/// What gets lost and comes late says more than what a hop tells: less than one packet of five goes again.
#[test]
fn little_is_lost_however_much_too_small_the_delay_is() {
    const OCTETS: usize = 10_000_000;
    let packets = (OCTETS / MAX_DATA_OCTETS) as u64;
    for case @ (told_us, service_us, delay_us) in [
        (1_000, 1_000, 20_000),
        (1_000, 3_000, 1_000),
        (500, 3_000, 20_000),
        (500, 10_000, 1_000),
        (2_000, 4_000, 50_000),
    ] {
        let n = network(&path(told_us, service_us, delay_us), OCTETS);
        let (us, resent, told) = carry(n, &case);
        assert!(us < packets * service_us * 5 / 4, "{told}");
        assert!(resent < packets / 5, "{told}");
    }
}

/// Of a short file most has gone before anything is known of it. That goes again once, and not slower than what the path carries.
#[test]
fn a_short_file_recovers_from_the_first_flood() {
    const OCTETS: usize = 1_500_000;
    let packets = (OCTETS / MAX_DATA_OCTETS) as u64;
    for told_us in [100, 200, 400] {
        for delay_us in [50, 200, 1_000, 20_000] {
            let n = network(&path(told_us, 3_000, delay_us), OCTETS);
            let (us, resent, told) = carry(n, &(told_us, delay_us));
            assert!(us < packets * 3_000 * 7 / 5, "{told}");
            assert!(resent < packets * 11 / 10, "{told}");
        }
    }
}

/// What was known of the path is not forgotten for an outage.
#[test]
fn an_outage_makes_no_second_flood() {
    const OCTETS: usize = 6_000_000;
    let packets = (OCTETS / MAX_DATA_OCTETS) as u64;
    for case @ (told_us, delay_us, loss, cut_ms) in [
        (100, 1_000, 0, 300),
        (100, 1_000, 30, 300),
        (100, 1_000, 30, 1_000),
        (500, 20_000, 0, 300),
        (500, 20_000, 30, 1_000),
    ] {
        let link = Link {
            loss,
            ..path(told_us, 3_000, delay_us)
        };
        let mut n = network(&link, OCTETS);
        let cut = 5 * SECOND..=5 * SECOND + cut_ms * 1_000;
        n.cut([cut.clone(), cut]);
        let (us, resent, told) = carry(n, &case);
        assert!(us < packets * 3_000 * 3 / 2, "{told}");
        assert!(resent < packets * 3 / 5, "{told}");
    }
}
