//! Two adapters as one, on two channels of the simulator: what gets lost, what it costs, and what happens when one of
//! them is pulled out.

#[path = "shared/ways.rs"]
mod ways;

use frame::{AccessCategory, EdcaParams, MacAddr, Phy, Rate, ppdu_us};
use lab::stats::Running;
use protocols::mac::data::{Identity, QOS_OVERHEAD_OCTETS, Role};
use protocols::mac::redundancy::{Primary, Redundancy, RedundancyConfig};
use protocols::mac::sender::{Sender, SenderConfig};
use radio::{AdapterId, Checked, Duration, TxHow};
use sim::fault::Incident;
use sim::medium::Process;
use sim::{AdapterConfig, LinkLoss, MediumConfig, NodeConfig, Pattern, Position, Traffic, World};
use ways::Ways;

type Node = Checked<Redundancy<Sender>>;

const MS: u64 = 1_000_000;
const CYCLE_NS: u64 = 4 * MS;
const FIRST: AdapterId = AdapterId(0);
const SECOND: AdapterId = AdapterId(1);

struct Run {
    sent: u64,
    lost: u64,
    /// Largest time from submission to delivery, ns.
    slowest_ns: u64,
    /// Frames on the air of each adapter of the sender, and of both, in each cycle.
    copies: [Running; 2],
    all: Running,
}

/// One frame in each cycle from one node to another. `losses` of data by channel.
fn run(config: RedundancyConfig, tries: u8, losses: [f64; 2], frames: u32, pulled: Option<(u64, u8)>) -> Run {
    let access = EdcaParams::dcf(&Phy::A);
    run_in(config, tries, losses, frames, pulled, CYCLE_NS, access)
}

fn run_in(
    config: RedundancyConfig,
    tries: u8,
    losses: [f64; 2],
    frames: u32,
    pulled: Option<(u64, u8)>,
    cycle_ns: u64,
    access: EdcaParams,
) -> Run {
    let mut world: World<Node> = World::new(&MediumConfig::default(), 1);
    let shown = Ways::default();
    let address = [MacAddr::local(1), MacAddr::local(2)];
    for (i, me) in address.into_iter().enumerate() {
        let adapter = |mhz| AdapterConfig {
            edca: [access; 5],
            ..AdapterConfig::station(me, Phy::A, mhz, false)
        };
        let node = NodeConfig {
            adapters: vec![adapter(5180), adapter(5745)],
            ..NodeConfig::ideal(Position::new(10.0 * i as f64, 0.0), adapter(5180))
        };
        let role = Role::Direct {
            bssid: MacAddr::local(9),
        };
        let mut sender = SenderConfig::new(Identity { me, role }, Rate::OFDM_24);
        sender.how = TxHow::multi_shot(Rate::OFDM_24, tries);
        let make = || Redundancy::new(config, Sender::new(sender));
        world.add_node(node, Checked::strict(make()).with_twin(make()));
    }
    for (adapter, loss) in losses.into_iter().enumerate() {
        let loss = LinkLoss {
            data: Some(Process::Fixed(loss)),
            ..LinkLoss::default()
        };
        world.set_adapter_loss((0, adapter as u8), (1, adapter as u8), loss);
    }
    if let Some((at_ns, adapter)) = pulled {
        world.plan_incident(at_ns, 0, Incident::AdapterGone { adapter });
    }
    let traffic = Traffic {
        to: address[1],
        category: AccessCategory::BestEffort,
        octets: 50,
        pattern: Pattern::Periodic {
            period_ns: cycle_ns,
            phase_ns: 0,
        },
        lifetime_ns: Some(cycle_ns),
        count: Some(frames),
    };
    world.add_traffic(0, traffic);
    world.set_observer(Box::new(shown.clone()));
    let (mut copies, mut all) = ([Running::default(); 2], Running::default());
    let mut before = [0; 2];
    for cycle in 1..=u64::from(frames) {
        world.run_until(cycle * cycle_ns - 1);
        let on_air = [0, 1].map(|adapter| world.counters(0, adapter).tx_frames);
        let in_cycle = [0, 1].map(|k| (on_air[k] - before[k]) as f64);
        copies.iter_mut().zip(in_cycle).for_each(|(c, n)| c.push(n));
        all.push(in_cycle[0] + in_cycle[1]);
        before = on_air;
    }
    world.run_until(u64::from(frames) * cycle_ns + 100 * MS);
    let ways = shown.0.borrow();
    assert!(ways.values().all(|w| w.again == 0), "delivered twice");
    let delays = ways.values().filter_map(|w| Some(w.up_ns? - w.down_ns));
    Run {
        sent: ways.len() as u64,
        lost: ways.values().filter(|w| w.up_ns.is_none()).count() as u64,
        slowest_ns: delays.max().unwrap_or(0),
        copies,
        all,
    }
}

fn deferred() -> RedundancyConfig {
    RedundancyConfig {
        primary: Primary::Fixed(0),
        ..RedundancyConfig::proactive(FIRST, SECOND, Duration::from_ms(1))
    }
}

/// Within four standard deviations of a binomial share.
fn about(count: u64, of: u64, share: f64) -> bool {
    let n = of as f64;
    (count as f64 - n * share).abs() < 4.0 * (n * share * (1.0 - share)).sqrt()
}

/// One-shots on channels that lose 10 and 20 %: 2 % are lost on both, whichever way the copies go.
#[test]
fn the_loss_is_the_product_of_both() {
    for config in [
        RedundancyConfig::parallel(FIRST, SECOND),
        RedundancyConfig::reactive(FIRST, SECOND),
        deferred(),
    ] {
        let r = run(config, 1, [0.1, 0.2], 20_000, None);
        assert_eq!(r.sent, 20_000);
        assert!(about(r.lost, r.sent, 0.1 * 0.2), "{config:?}: {} lost", r.lost);
    }
}

/// The time of a frame on the air, ns: 50 octets, 38 around them, the trailer of redundancy, and 24 Mb/s.
const DATA_NS: i64 =
    1_000 * ppdu_us(Rate::OFDM_24, (50 + QOS_OVERHEAD_OCTETS + 6) as u32, Phy::A.band) as i64;
/// From the end of a frame to that of its ACK, and on the way twice 10 m.
const ACK_NS: i64 = 16_000 + 28_000 + 66;
/// From the end of a frame whose ACK does not come to the first slot of the backoff.
const TIMEOUT_NS: i64 = 16_000 + 9_000 + 25_000;
const SLOT_NS: i64 = 9_000;
const TRIES: usize = 7;
/// Slots of a contention window that does not grow, less one. One that grows stays as wide for the next frame when a copy is taken back
/// (IEEE 802.11-2016, 10.3.3 narrows it after a success and at the retry limit), so that frames would depend on each other.
const WINDOW: u16 = 31;

/// When try 1, 2, ... of a frame begins after its first try: the part that is the same each time, ns, and how probable it is that 0, 1, 2,
/// ... slots of backoff come on top.
fn tries() -> Vec<(i64, Vec<f64>)> {
    let mut all = vec![(0, vec![1.0])];
    let window = usize::from(WINDOW) + 1;
    for failures in 1..TRIES {
        let (before, slots) = &all[failures - 1];
        let mut sums = vec![0.0; slots.len() + window - 1];
        for (slot, share) in slots.iter().enumerate() {
            (0..window).for_each(|more| sums[slot + more] += share / window as f64);
        }
        all.push((before + DATA_NS + TIMEOUT_NS, sums));
    }
    all
}

/// The probability that a try begins, `later` after the other channel's first one, before the ACK of that channel's try `other`.
fn begins_before(later: i64, own: &(i64, Vec<f64>), other: &(i64, Vec<f64>)) -> f64 {
    let up_to: Vec<f64> = (own.1.iter())
        .scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        })
        .collect();
    let space = other.0 + DATA_NS + ACK_NS - later - own.0;
    let shares = other.1.iter().zip(0..);
    let before = |slots: i64| {
        // slots of its own backoff that still end before
        let most = (space + slots * SLOT_NS - 1).div_euclid(SLOT_NS);
        match usize::try_from(most) {
            Ok(most) => up_to[most.min(up_to.len() - 1)],
            Err(_) => 0.0,
        }
    };
    shares.map(|(share, slots)| share * before(slots)).sum()
}

/// Frames on the air of each channel for one that is handed down, where the first channel begins at once and the second one
/// `defer_ns` later, each try of channel k fails with probability `losses[k]`, and an ACK takes the other copy back at once. A try begins
/// if all before it have failed and no try of the other channel was acknowledged before; both channels draw
/// their backoffs on their own.
fn predicted(losses: [f64; 2], defer_ns: i64) -> [f64; 2] {
    let tries = tries();
    [0, 1].map(|k| {
        let (own, other) = (losses[k], losses[1 - k]);
        let later = if k == 1 { defer_ns } else { -defer_ns };
        let begins = |try_: &(i64, Vec<f64>)| {
            let acked = |(t, n): (&(i64, Vec<f64>), i32)| {
                other.powi(n) * (1.0 - other) * begins_before(later, try_, t)
            };
            let never = other.powi(TRIES as i32);
            never + tries.iter().zip(0..).map(acked).sum::<f64>()
        };
        (tries.iter().zip(0..))
            .map(|(t, n): (_, i32)| own.powi(n) * begins(t))
            .sum()
    })
}

/// Within five standard errors of the mean.
fn fits(measured: &Running, predicted: f64) -> bool {
    let error = measured.sd().expect("some") / (measured.count() as f64).sqrt();
    (measured.mean().expect("some") - predicted).abs() <= 5.0 * error
}

/// Both copies at once cost two frames each. A second copy that waits for the fate of the first is sent when that
/// was lost: 1 + p.
#[test]
fn avoided_copies_of_one_shots_spare_the_air_that_the_rule_says() {
    let copies = |config| run(config, 1, [0.1, 0.2], 20_000, None).all;
    let parallel = copies(RedundancyConfig::parallel(FIRST, SECOND));
    assert_eq!((parallel.mean(), parallel.sd()), (Some(2.0), Some(0.0)));
    let once = copies(deferred());
    assert!(fits(&once, 1.1), "{:?}", once.mean());
}

/// 20,000 frames of up to seven tries each, one in 40 ms.
fn repeated(config: RedundancyConfig, losses: [f64; 2]) -> Run {
    let access = EdcaParams {
        cw_min: WINDOW,
        cw_max: WINDOW,
        ..EdcaParams::dcf(&Phy::A)
    };
    run_in(config, TRIES as u8, losses, 20_000, None, 40 * MS, access)
}

/// With retries the ACK of one copy spares what the other would have repeated. How much that is follows from when tries begin
/// and ACKs come on the two channels.
#[test]
fn reactive_copies_spare_the_air_that_the_rule_says() {
    for losses in [[0.1, 0.2], [0.3, 0.5], [0.5, 0.5], [0.2, 0.8]] {
        let apart = losses.map(|p: f64| (1.0 - p.powi(TRIES as i32)) / (1.0 - p));
        let all = repeated(RedundancyConfig::parallel(FIRST, SECOND), losses);
        let fewer = repeated(RedundancyConfig::reactive(FIRST, SECOND), losses);
        let rule = predicted(losses, 0);
        let [before, after] = [&all, &fewer].map(|r| r.all.mean().expect("some"));
        println!(
            "loss {losses:?}: {before:.4} copies, reactive {after:.4}, computed {:.4}; spared {:.2} %, computed {:.2} %",
            rule[0] + rule[1],
            100.0 * (1.0 - after / before),
            100.0 * (1.0 - (rule[0] + rule[1]) / (apart[0] + apart[1]))
        );
        for k in 0..2 {
            assert!(fits(&all.copies[k], apart[k]), "{losses:?}, parallel, {k}");
            assert!(
                fits(&fewer.copies[k], rule[k]),
                "{losses:?}, reactive, {k}: {rule:?}"
            );
        }
        assert!(fits(&fewer.all, rule[0] + rule[1]), "{losses:?}: {rule:?}");
        assert!(about(
            fewer.lost,
            fewer.sent,
            (losses[0] * losses[1]).powi(TRIES as i32)
        ));
    }
}

/// A second copy that waits for so long is never sent if the first one was acknowledged by then. An exchange takes 100.07 us.
#[test]
fn deferred_copies_spare_the_air_that_the_rule_says() {
    for (losses, defer_us) in [
        ([0.1, 0.2], 100),
        ([0.1, 0.2], 110),
        ([0.3, 0.5], 250),
        ([0.5, 0.5], 400),
        ([0.3, 0.3], 1_000),
    ] {
        let config = RedundancyConfig {
            primary: Primary::Fixed(0),
            ..RedundancyConfig::proactive(FIRST, SECOND, Duration::from_us(defer_us))
        };
        let r = repeated(config, losses);
        let rule = predicted(losses, defer_us as i64 * 1_000);
        println!(
            "loss {losses:?}, {defer_us} us: {:.4} copies, computed {:.4}",
            r.all.mean().expect("some"),
            rule[0] + rule[1]
        );
        for k in 0..2 {
            assert!(
                fits(&r.copies[k], rule[k]),
                "{losses:?}, {defer_us} us, {k}: {rule:?}"
            );
        }
    }
}

/// Nothing is lost, and nothing is later than its cycle, when either adapter is pulled out.
#[test]
fn one_adapter_pulled_out_costs_no_cycle() {
    for config in [
        RedundancyConfig::parallel(FIRST, SECOND),
        RedundancyConfig::reactive(FIRST, SECOND),
        RedundancyConfig::proactive(FIRST, SECOND, Duration::from_ms(1)),
        deferred(),
    ] {
        for (within_us, adapter) in [0, 20, 70, 2_000].into_iter().flat_map(|us| [(us, 0), (us, 1)]) {
            let pulled = 500 * CYCLE_NS + within_us * 1_000;
            let r = run(config, 3, [0.0, 0.0], 1_000, Some((pulled, adapter)));
            let what = format!("{config:?}, adapter {adapter}, {within_us} us");
            assert_eq!((r.sent, r.lost), (1_000, 0), "{what}");
            assert!(r.slowest_ns < CYCLE_NS, "{what}: {} ns", r.slowest_ns);
        }
    }
}

/// The one that is left loses a fifth of all frames. As many messages are lost as it loses in three tries, 0.008 of those behind the
/// moment; none is late, and none of before.
#[test]
fn what_is_left_when_one_is_pulled_out_is_as_good_as_the_other_one() {
    for config in [
        RedundancyConfig::parallel(FIRST, SECOND),
        RedundancyConfig::reactive(FIRST, SECOND),
        RedundancyConfig::proactive(FIRST, SECOND, Duration::from_ms(1)),
    ] {
        for adapter in [0, 1] {
            let losses = [0, 1].map(|other| if other == adapter { 0.0 } else { 0.2 });
            let r = run(config, 3, losses, 5_000, Some((1_000 * CYCLE_NS, adapter)));
            // 32 of 4,000 with a deviation of 5.6
            assert!(
                (10..=55).contains(&r.lost),
                "{config:?}, adapter {adapter}: {}",
                r.lost
            );
            assert!(r.slowest_ns < CYCLE_NS, "{config:?}: {} ns", r.slowest_ns);
        }
    }
}
