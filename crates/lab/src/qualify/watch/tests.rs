//! Hand-made events and what the watch makes of them.

use super::super::bench::Span;
use super::*;
use frame::element::Elements;
use frame::mac::Aid;
use frame::mac::header::set_duration;
use frame::mgmt::{AssociationResponse, Capability, MgmtHeader, StatusCode};
use frame::{MacAddr, Rate, Wire};
use protocols::mac::data::{ETHERTYPE_PAYLOAD, Framer, Identity};
use sim::clock::Clock;

/// Two nodes, cycles of 1 ms, one cycle of warm-up, two that count: those that start at 2 ms and 3 ms.
fn watch() -> Watch {
    Watch::new(about())
}

fn about() -> About {
    let span = Span {
        cycle_ns: 1_000_000,
        first_ns: 1_000_000,
        warm_up: 1,
        cycles: 2,
    };
    About {
        nodes: 2,
        owners: vec![0, 1, 2],
        roams: false,
        span,
        clocks: vec![Clock::default(); 3],
        offsets_ns: vec![0; 3],
        polled: false,
        phy: frame::Phy::A,
        wait_ns: None,
    }
}

fn payload(flow: u32, cycle: u32) -> Vec<u8> {
    let mut p = flow.to_le_bytes().to_vec();
    p.extend(cycle.to_le_bytes());
    p.extend([0; 12]);
    p
}

fn deliver(w: &mut Watch, at_ns: u64, node: u32, flow: u32, cycle: u32) {
    w.delivered(at_ns, node, &Msdu::new(MacAddr::local(9), &payload(flow, cycle)));
}

fn send(w: &mut Watch, start_ns: u64, node: u32, flow: u32, cycle: u32) {
    send_at(w, start_ns, node, flow, cycle, Rate::OFDM_54);
}

fn send_at(w: &mut Watch, start_ns: u64, node: u32, flow: u32, cycle: u32, rate: Rate) {
    let identity = match node {
        0 => Identity::access_point(MacAddr::local(1)),
        _ => Identity::station(MacAddr::local(node + 1), MacAddr::local(1)),
    };
    let to = MacAddr::local(if flow < 2 { flow + 2 } else { 1 });
    let mut f = Framer::new(identity, true, ETHERTYPE_PAYLOAD);
    let mut out = [0; 128];
    let frame = f
        .frame(
            to,
            Default::default(),
            false,
            &[],
            &payload(flow, cycle),
            &mut out,
        )
        .unwrap()
        .len();
    let frame = &mut out[..frame];
    set_duration(frame, 44).unwrap();
    w.transmission(&Transmission {
        start_ns,
        end_ns: start_ns + 36_000,
        adapter: node,
        node,
        what: OnAir::Frame,
        rate,
        mhz: 5180,
        frame,
        attempt: 1,
        octets: frame.len() as u32 + 4,
    });
}

fn disturb(w: &mut Watch, start_ns: u64, end_ns: u64) {
    w.transmission(&Transmission {
        start_ns,
        end_ns,
        adapter: 9,
        node: u32::MAX,
        what: OnAir::Noise,
        rate: Rate::OFDM_6,
        mhz: 5180,
        frame: &[],
        attempt: 0,
        octets: 0,
    });
}

fn receive(w: &mut Watch, at_ns: u64, from: u32, at: u32) {
    w.reception(&ReceptionEnd {
        at_ns,
        adapter: at,
        from,
        what: OnAir::Frame,
        ok: true,
        signal_dbm: -50,
    });
}

#[test]
fn a_message_is_met_until_the_end_of_its_cycle() {
    let mut w = watch();
    // cycle 1 of the application is the first that counts; it ends at 3 ms
    deliver(&mut w, 2_500_000, 1, 0, 1);
    deliver(&mut w, 3_000_000, 2, 1, 1);
    deliver(&mut w, 3_000_001, 0, 2, 1);
    // flow 3 of cycle 1 never arrives; cycle 2 arrives but for one that another node got
    deliver(&mut w, 3_100_000, 1, 0, 2);
    deliver(&mut w, 3_100_000, 1, 1, 2);
    deliver(&mut w, 3_200_000, 0, 2, 2);
    deliver(&mut w, 3_900_000, 0, 3, 2);
    // a copy changes nothing, cycles of the warm-up and after the end neither
    deliver(&mut w, 3_950_000, 0, 3, 2);
    deliver(&mut w, 1_100_000, 1, 0, 0);
    deliver(&mut w, 4_100_000, 1, 0, 3);
    let t = w.finish(1);
    assert_eq!(
        (t.batches.batches(), t.batches.trials(), t.batches.misses()),
        (2, 8, 3)
    );
    assert_eq!((t.late, t.down.lost(), t.up.lost()), (1, 1, 1));
    // within the 0.1 % of the histogram
    assert!(t.down.quantile_ns(0.5).unwrap().abs_diff(500_000) <= 500);
    assert_eq!(t.up.max_ns(), None, "one never came");
    assert_eq!(t.causes[Cause::NoTime as usize], 3);
}

#[test]
fn cycles_in_a_row_can_count_as_one() {
    let mut w = watch();
    deliver(&mut w, 2_500_000, 1, 0, 1);
    let t = w.finish(2);
    assert_eq!((t.batches.batches(), t.batches.misses()), (1, 7));
}

#[test]
fn causes_of_misses() {
    let mut w = watch();
    // two frames overlap
    send(&mut w, 2_000_000, 1, 2, 1);
    send(&mut w, 2_000_001, 2, 3, 1);
    // one is lost alone on the air
    send(&mut w, 2_100_000, 0, 0, 1);
    // one is received and its application sleeps
    send(&mut w, 2_200_000, 0, 1, 1);
    receive(&mut w, 2_236_000, 0, 2);
    deliver(&mut w, 3_500_000, 2, 1, 1);
    // one meets noise
    send(&mut w, 3_200_000, 0, 0, 2);
    disturb(&mut w, 3_210_000, 3_220_000);
    deliver(&mut w, 3_100_000, 2, 1, 2);
    deliver(&mut w, 3_100_000, 0, 3, 2);
    let t = w.finish(1);
    let of = |c: Cause| t.causes[c as usize];
    assert_eq!(of(Cause::Collisions), 2);
    assert_eq!(of(Cause::Losses), 1);
    assert_eq!(of(Cause::Host), 1);
    assert_eq!(of(Cause::Interference), 1);
    // nobody polls here: what goes down does not explain what never came up
    assert_eq!(of(Cause::NoTime), 1);
    assert_eq!(
        (t.alone, t.alone_lost),
        (2, 1),
        "one of those that met nobody arrived"
    );
    assert_eq!(
        (t.attempts, t.collided, t.disturbed),
        (5, 1, 0),
        "the later of the two meets the earlier"
    );
    assert_eq!((t.air.data_ns, t.air.foreign_ns), (5 * 36_000, 10_000));
}

#[test]
fn what_arrives_and_is_never_handed_up_is_no_fault_of_the_host() {
    let mut w = watch();
    send(&mut w, 2_200_000, 0, 1, 1);
    receive(&mut w, 2_236_000, 0, 2);
    let t = w.finish(1);
    assert_eq!(t.causes[Cause::NotHandedUp as usize], 1);
    assert_eq!(t.causes[Cause::Host as usize], 0);
}

/// Node 2 releases 0.6 ms after node 1: its messages have until 3.6 ms and 4.6 ms.
#[test]
fn a_deadline_is_one_cycle_after_the_release() {
    let mut w = Watch::new(About {
        offsets_ns: vec![0, 0, 600_000],
        ..about()
    });
    deliver(&mut w, 3_000_001, 1, 0, 1);
    deliver(&mut w, 3_600_000, 2, 1, 1);
    deliver(&mut w, 3_000_000, 0, 2, 1);
    deliver(&mut w, 3_600_001, 0, 3, 1);
    let t = w.finish(1);
    assert_eq!(t.late, 2);
    assert_eq!(t.down.max_ns(), None);
    // of the four of the first cycle, two came at the last moment; those of the second never
    assert_eq!(t.batches.misses(), 2 + 4);
    assert!(t.up.quantile_ns(0.25).unwrap().abs_diff(1_000_000) <= 1_000);
}

#[test]
fn a_node_that_was_never_polled_is_told_from_one_that_did_not_answer() {
    let mut w = Watch::new(About {
        polled: true,
        ..about()
    });
    // cycle 1: node 1 was polled, heard it and did not answer; node 2 was not polled
    send(&mut w, 2_100_000, 0, 0, 1);
    receive(&mut w, 2_136_000, 0, 1);
    deliver(&mut w, 2_200_000, 1, 0, 1);
    for flow in 0..4 {
        deliver(&mut w, 3_500_000, [1, 2, 0, 0][flow as usize], flow, 2);
    }
    let t = w.finish(1);
    let of = |c: Cause| t.causes[c as usize];
    assert_eq!((of(Cause::NoTime), of(Cause::NotPolled)), (1, 2));
    assert_eq!(t.batches.misses(), 3);
}

/// Time division, a foreign frame until 2.05 ms; nobody backs off.
fn after_a_stranger(wait_ns: Option<u64>) -> Watch {
    let mut w = Watch::new(About { wait_ns, ..about() });
    disturb(&mut w, 2_010_000, 2_050_000);
    w
}

#[test]
fn frames_that_waited_for_a_stranger_and_met_blame_him() {
    for (wait_ns, cause) in [
        (Some(34_000), Cause::Interference),
        (Some(33_000), Cause::Collisions),
        (None, Cause::Collisions),
    ] {
        let mut w = after_a_stranger(wait_ns);
        send(&mut w, 2_084_000, 1, 2, 1);
        send(&mut w, 2_084_033, 2, 3, 1);
        let t = w.finish(1);
        assert_eq!(t.causes[cause as usize], 2, "{wait_ns:?}: {:?}", t.causes);
    }
}

#[test]
fn what_a_stranger_kept_from_the_air_is_his() {
    for (since_ns, cause) in [(2_049_999, Cause::Interference), (2_050_000, Cause::NoTime)] {
        let mut w = after_a_stranger(Some(34_000));
        let mut all = vec![(0, 1, 1), (1, 2, 1), (3, 0, 1)];
        all.extend([(0, 1, 2), (1, 2, 2), (2, 0, 2), (3, 0, 2)]);
        for (flow, node, cycle) in all {
            deliver(
                &mut w,
                2_060_000 + u64::from(cycle - 1) * 1_000_000,
                node,
                flow,
                cycle,
            );
        }
        let mut out = [0; 128];
        let identity = Identity::station(MacAddr::local(2), MacAddr::local(1));
        let frame = Framer::new(identity, true, ETHERTYPE_PAYLOAD)
            .frame(
                MacAddr::local(1),
                Default::default(),
                false,
                &[],
                &payload(2, 1),
                &mut out,
            )
            .unwrap();
        w.requested(since_ns, 1, Token(7), frame);
        let expired = Confirm::without_air(Token(7), Outcome::Expired, Rate::OFDM_6);
        w.confirmed(2_080_000, 2, &expired, None);
        w.confirmed(2_080_000, 1, &expired, None);
        let t = w.finish(1);
        assert_eq!(
            (t.batches.misses(), t.causes[cause as usize]),
            (1, 1),
            "{:?}",
            t.causes
        );
    }
}

/// The first frame is lost alone, the second meets another one: the link is to blame, the rest is told.
#[test]
fn the_first_failure_counts_and_repetitions_are_told() {
    let mut w = watch();
    send(&mut w, 2_000_000, 1, 2, 1);
    send(&mut w, 2_200_000, 1, 2, 1);
    send(&mut w, 2_200_010, 2, 3, 1);
    let t = w.finish(1);
    let of = |c: Cause| t.causes[c as usize];
    assert_eq!((of(Cause::Losses), of(Cause::Collisions)), (1, 1));
    assert_eq!((t.repeats, t.repeats_collided), (1, 1));
    assert_eq!((t.alone, t.alone_lost), (1, 1));
}

/// The ACK to a frame at 6 Mb/s ends 16 + 44 us behind it, that to one at 54 Mb/s 16 + 28 us.
#[test]
fn an_ack_is_as_slow_as_its_frame() {
    let ack = |w: &mut Watch, at_ns| {
        w.reception(&ReceptionEnd {
            at_ns,
            adapter: 1,
            from: 0,
            what: OnAir::Ack,
            ok: true,
            signal_dbm: -50,
        });
    };
    let mut w = watch();
    for (start_ns, rate) in [(2_000_000, Rate::OFDM_6), (2_500_000, Rate::OFDM_54)] {
        send_at(&mut w, start_ns, 1, 2, 1, rate);
        receive(&mut w, start_ns + 36_033, 1, 0);
        ack(&mut w, start_ns + 36_033 + 60_033);
    }
    let t = w.finish(1).tries;
    assert_eq!((t.acked, t.data_lost, t.ack_lost), (1, 0, 1));
}

fn let_in(w: &mut Watch, at_ns: u64, ap: u32, node: u32) {
    let me = MacAddr::local(ap + 1);
    let response = AssociationResponse {
        header: MgmtHeader::new(MacAddr::local(node + 1), me, me),
        capability: Capability::ESS,
        status: StatusCode::SUCCESS,
        aid: Aid(0xc001),
        elements: Elements::new(&[]),
    };
    let mut out = [0; 64];
    let n = response.emit(&mut out).unwrap();
    w.transmission(&Transmission {
        start_ns: at_ns - 30_000,
        end_ns: at_ns,
        adapter: ap,
        node: ap,
        what: OnAir::Frame,
        rate: Rate::OFDM_24,
        mhz: 5180,
        frame: &out[..n],
        attempt: 1,
        octets: n as u32 + 4,
    });
    receive(w, at_ns, ap, node);
}

/// Node 1 goes from the access point of the controller to the second one, which is node 3 of the world, at 5.3 ms. Messages that missed without
/// a break up to then, or from then on, are of the hand-over; one that came is not, nor is what missed beyond it.
#[test]
fn hand_overs_take_what_misses_around_them() {
    let about = about();
    let mut w = Watch::new(About {
        owners: vec![0, 1, 2, 3],
        roams: true,
        clocks: vec![Clock::default(); 4],
        span: Span {
            cycles: 6,
            ..about.span
        },
        ..about
    });
    let_in(&mut w, 2_100_000, 0, 1);
    let_in(&mut w, 2_200_000, 0, 1);
    let_in(&mut w, 5_300_000, 3, 1);
    let at = |cycle: u32| u64::from(cycle) * 1_000_000 + 1_500_000;
    // from the first door, and the last but one from the second, whose flows are numbered behind all others
    deliver(&mut w, at(1), 1, 0, 1);
    deliver(&mut w, at(5), 1, 4, 5);
    // of those up that of the third cycle is missing, the one under way is saved at the second door
    for cycle in [1, 2, 5, 6] {
        deliver(&mut w, at(cycle), 0, 2, cycle);
    }
    deliver(&mut w, at(4), 3, 2, 4);
    for cycle in 1..=6 {
        deliver(&mut w, at(cycle), 2, 1, cycle);
        deliver(&mut w, at(cycle), 0, 3, cycle);
    }
    let t = w.finish(1);
    let of = |c: Cause| t.causes[c as usize];
    assert_eq!((of(Cause::HandOver), of(Cause::NoTime)), (4, 1), "{:?}", t.causes);
    assert_eq!((t.cut_off.count(), t.unharmed), (1, 0));
    assert_eq!(t.cut_off.max_ns(), Some(3_000_000));
}
