//! Paths on which no hop knows its delay.

use super::*;

const BUFFER: usize = 4 << 20;

/// A path that takes a packet in `service_us`, with so many in its queue, and `delay_us` each way.
fn path(service_us: u64, queue: usize, delay_us: u64) -> Link {
    Link {
        service_us: service_us..=service_us,
        queue,
        delay_us: delay_us..=delay_us,
        measured: false,
        ..Link::good()
    }
}

/// What the path carries is found in about a second, and little is lost for it, over short ways and long ones, and queues of each length.
#[test]
fn a_bottleneck_is_found_out() {
    const OCTETS: usize = 3_000_000;
    let packets = (OCTETS / MAX_DATA_OCTETS) as u64;
    for config in [Config::aggressive(), Config::adaptive(), Config::sdmac()] {
        for (service_us, queue, delay_us) in [
            (3_000, 50, 1_000),
            (3_000, 50, 20_000),
            (3_000, 20, 20_000),
            (1_000, 100, 20_000),
            (200, 1_000, 50),
        ] {
            let link = path(service_us, queue, delay_us);
            let mut n = alike(1, &config, BUFFER, &link, [OCTETS, 0]);
            let over = n.run_until(60 * SECOND);
            let counters = n.end(0).counters();
            let told = format!("{service_us} {queue} {delay_us}: {} us, {counters:?}", n.now_us());
            assert!(over, "{told}");
            let least = packets * service_us;
            assert!(n.now_us() < least * 6 / 5 + SECOND, "{told}");
            assert!(counters.resent < packets / 8, "{told}");
        }
    }
}

/// Two find out together what a path carries for both: there and back are paths of their own, and feedback waits in the same queues.
#[test]
fn both_ways_at_once() {
    for config in [Config::aggressive(), Config::adaptive(), Config::sdmac()] {
        let link = path(3_000, 50, 20_000);
        let mut n = alike(2, &config, BUFFER, &link, [1_000_000; 2]);
        assert!(n.run_until(60 * SECOND), "{:?}", n.end(0).counters());
        assert!(
            n.now_us() < 5 * SECOND,
            "{} us, {:?}",
            n.now_us(),
            n.end(0).counters()
        );
    }
}

/// Where many are lost at once a feedback names 20 of them, and what it does not tell has not been lost.
#[test]
fn a_full_queue_on_a_long_way_costs_few_rounds() {
    for (service_us, octets, percent) in [(300, 40_000_000, 230), (1_000, 12_000_000, 140)] {
        let packets = (octets / MAX_DATA_OCTETS) as u64;
        let link = path(service_us, 200, 50_000);
        let mut n = alike(3, &Config::sdmac(), BUFFER, &link, [octets, 0]);
        let over = n.run_until(60 * SECOND);
        let counters = n.end(0).counters();
        let told = format!("{service_us}: {} us, {counters:?}", n.now_us());
        assert!(over, "{told}");
        assert!(n.now_us() < packets * service_us * percent / 100, "{told}");
        assert!(counters.resent < packets / 8, "{told}");
    }
}

/// So many seconds, and packets again of a hundred, over this path; the mean of three runs.
fn mean(config: &Config, link: &Link, octets: usize) -> (f64, f64) {
    let packets = (octets / MAX_DATA_OCTETS) as f64;
    let (mut seconds, mut again) = (0.0, 0.0);
    for seed in 1..=3 {
        let mut n = alike(seed, config, BUFFER, link, [octets, 0]);
        assert!(n.run_until(400 * SECOND), "{link:?}: {:?}", n.end(0).counters());
        seconds += n.now_us() as f64 / 3e6;
        again += n.end(0).counters().resent as f64 / packets * 100.0 / 3.0;
    }
    (seconds, again)
}

/// A path that carries less than what the sender begins with. Until its queue is found to be full most of what goes is lost.
#[test]
fn a_narrow_link_is_not_flooded() {
    for (ms, queue, octets, again_percent) in [
        (16, 20, 400_000, 20.0),
        (24, 20, 400_000, 40.0),
        (38, 20, 3_000_000, 20.0),
        (38, 50, 5_000_000, 20.0),
        (24, 100, 1_000_000, 10.0),
    ] {
        let link = path(ms * 1_000, queue, 20_000);
        let (seconds, again) = mean(&Config::sdmac(), &link, octets);
        let told = format!("{ms} ms, {queue}: {seconds} s, {again} %");
        std::println!("{told}");
        let least = (octets / MAX_DATA_OCTETS) as f64 * ms as f64 / 1e3;
        assert!(seconds < least * 1.05 + 1.0, "{told}");
        assert!(again < again_percent, "{told}");
    }
}

/// Where no queue fills, what gets lost or overtaken on the way is not taken for one, and nobody goes slower than he began.
#[test]
fn losses_and_overtaking_are_no_full_queue() {
    let octets = 3_000_000;
    let lossy = |loss| Link {
        loss,
        ..path(1_000, 100, 20_000)
    };
    let overtaken = |us: u64| Link {
        delay_us: 20_000..=20_000 + us,
        ..path(500, 100, 20_000)
    };
    for (link, most_s) in [
        (lossy(20), 5.0),
        (lossy(40), 8.0),
        (lossy(100), 20.0),
        (lossy(400), 50.0),
        (overtaken(10_000), 5.0),
        (overtaken(20_000), 8.0),
    ] {
        let (seconds, _) = mean(&Config::sdmac(), &link, octets);
        assert!(seconds < most_s, "{link:?}: {seconds} s");
    }
}
