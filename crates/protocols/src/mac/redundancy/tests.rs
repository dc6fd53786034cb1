//! Two nodes with two adapters each, on two channels that do not disturb each other.

use super::*;
use crate::mac::data::Identity;
use crate::mac::edf::cost::CostEstimate;
use crate::mac::edf::{Edf, EdfConfig};
use crate::mac::sender::{Sender, SenderConfig};
use crate::testing::{Dice, Fate, Room};
use frame::{MacAddr, Rate};
use proptest::prelude::*;
use radio::{AdapterId, Duration};
use std::vec::Vec;

const A: MacAddr = MacAddr::local(1);
const B: MacAddr = MacAddr::local(2);
const ADAPTERS: [AdapterId; 2] = [AdapterId(0), AdapterId(1)];
const MS: u64 = 1_000_000;
type Pairwise = Redundancy<Sender>;

fn config(cancel: bool, defer_us: Option<u64>) -> RedundancyConfig {
    RedundancyConfig {
        cancel,
        defer: defer_us.map(Duration::from_us),
        ..RedundancyConfig::parallel(ADAPTERS[0], ADAPTERS[1])
    }
}

fn sender(me: MacAddr, tries: u8) -> Sender {
    let bssid = MacAddr::local(9);
    let identity = Identity {
        me,
        role: crate::mac::data::Role::Direct { bssid },
    };
    let mut sender = SenderConfig::new(identity, Rate::OFDM_24);
    sender.how = radio::TxHow::multi_shot(Rate::OFDM_24, tries);
    Sender::new(sender)
}

/// A sends to B; the indices are those of the nodes.
fn two(seed: u64, config: RedundancyConfig, tries: u8) -> (Room, usize, usize) {
    let mut room = Room::new(seed);
    let a = room.add(A, move || -> Pairwise {
        Redundancy::new(config, sender(A, tries))
    });
    let b = room.add(B, move || -> Pairwise {
        Redundancy::new(config, sender(B, tries))
    });
    (room, a, b)
}

fn counters(room: &Room, node: usize) -> RedundancyCounters {
    *room.protocol::<Pairwise>(node).counters()
}

fn payloads(room: &Room) -> Vec<u8> {
    room.delivered.iter().map(|d| d.payload[0]).collect()
}

#[test]
fn both_copies_go_and_one_arrives() {
    let (mut room, a, b) = two(1, config(false, None), 1);
    room.submit(0, a, B, &[7], None);
    room.run_until(10 * MS);
    assert_eq!(room.flights.len(), 2);
    assert!(room.collisions().next().is_none(), "they are on two channels");
    assert_eq!(room.flights[0].frame.len(), room.flights[1].frame.len());
    assert_eq!(payloads(&room), [7]);
    let (sent, heard) = (counters(&room, a), counters(&room, b));
    assert_eq!((sent.copies, sent.acked), ([1, 1], [1, 1]));
    assert_eq!((heard.first, heard.dropped), ([1, 0], 1));
    let tally = room.protocol::<Pairwise>(a).protocol().counters().confirms;
    assert_eq!((tally.acked, tally.total()), (1, 1));
    room.close();
}

#[test]
fn one_dead_channel_loses_nothing() {
    for dead in ADAPTERS {
        let (mut room, a, _) = two(1, config(false, None), 1);
        room.script(move |x| {
            if x.how.adapter == dead {
                Fate::DataLost
            } else {
                Fate::Arrives
            }
        });
        for i in 0..50 {
            room.submit(u64::from(i) * MS, a, B, &[i], None);
        }
        room.run_until(100 * MS);
        assert_eq!(payloads(&room), (0..50).collect::<Vec<_>>());
        assert_eq!(
            room.protocol::<Pairwise>(a).protocol().counters().confirms.acked,
            50
        );
        room.close();
    }
}

/// The confirm says what most of the way says: not acked only if both copies were sent and neither acknowledged.
#[test]
fn both_lost_is_not_acked_and_counts_all_attempts() {
    let (mut room, a, _) = two(1, config(true, None), 3);
    room.script(|_| Fate::DataLost);
    room.submit(0, a, B, &[1], None);
    room.run_until(20 * MS);
    let (_, _, last) = room.confirms.last().unwrap();
    assert_eq!(last.outcome, Outcome::NotAcked);
    let tally = room.protocol::<Pairwise>(a).protocol().counters().confirms;
    assert_eq!((tally.not_acked, tally.attempts), (1, 6));
    room.close();
}

/// The second copy has to be tried again and again; the ACK of the first one ends that.
#[test]
fn an_acknowledged_frame_takes_its_copy_back() {
    let flights = |cancel| {
        let (mut room, a, _) = two(1, config(cancel, None), 7);
        room.script(|x| {
            if x.how.adapter == ADAPTERS[1] {
                Fate::DataLost
            } else {
                Fate::Arrives
            }
        });
        room.submit(0, a, B, &[1], None);
        room.run_until(20 * MS);
        assert_eq!(payloads(&room), [1]);
        assert_eq!(counters(&room, a).cancelled, u64::from(cancel));
        room.close().flights.len()
    };
    assert_eq!(flights(false), 8);
    assert!((2..=3).contains(&flights(true)), "{}", flights(true));
}

#[test]
fn a_deferred_copy_is_sent_only_if_it_is_needed() {
    let (mut room, a, _) = two(1, config(true, Some(2_000)), 1);
    room.submit(0, a, B, &[1], None);
    room.run_until(5 * MS);
    assert_eq!((room.flights.len(), counters(&room, a).spared), (1, 1));
    // the first copy is lost: the second goes as soon as that is known
    let lost = room.flights[0].adapter;
    room.script(move |x| {
        if x.how.adapter == lost {
            Fate::DataLost
        } else {
            Fate::Arrives
        }
    });
    room.submit(10 * MS, a, B, &[2], None);
    room.run_until(15 * MS);
    assert_eq!((room.flights.len(), payloads(&room)), (3, [1, 2].to_vec()));
    assert!(room.flights[2].start_ns < 11 * MS, "not after the whole deferral");
    // now the other adapter goes first
    assert_eq!(room.protocol::<Pairwise>(a).primary(), 1);
    room.submit(20 * MS, a, B, &[3], None);
    room.run_until(25 * MS);
    assert_eq!((room.flights.len(), room.flights[3].adapter), (4, ADAPTERS[1]));
    room.close();
}

/// An adapter that does not even confirm costs the deferral for one frame, and nothing after that.
#[test]
fn a_silent_adapter_delays_one_frame() {
    let (mut room, a, _) = two(1, config(true, Some(500)), 1);
    room.script(|x| {
        if x.how.adapter == ADAPTERS[0] {
            Fate::Silent
        } else {
            Fate::Arrives
        }
    });
    for i in 0..20 {
        room.submit(u64::from(i) * 10 * MS, a, B, &[i], None);
    }
    room.run_until(300 * MS);
    assert_eq!(payloads(&room).len(), 20);
    let delays: Vec<u64> = room
        .delivered
        .iter()
        .enumerate()
        .map(|(i, d)| d.at_ns - i as u64 * 10 * MS)
        .collect();
    assert!(
        delays[0] > 500_000 && delays[1..].iter().all(|d| *d < 500_000),
        "{delays:?}"
    );
    room.close();
}

#[test]
fn groups_get_both_copies_at_once() {
    let (mut room, a, _) = two(1, config(true, Some(5_000)), 1);
    room.submit(0, a, MacAddr::BROADCAST, &[1], None);
    room.run_until(3 * MS);
    assert_eq!((room.flights.len(), payloads(&room)), (2, [1].to_vec()));
    room.close();
}

#[test]
fn what_has_no_trailer_passes() {
    let (mut room, _, b) = two(1, config(false, None), 1);
    let mut plain = Room::new(2);
    let alone = plain.add(A, || sender(A, 1));
    plain.submit(0, alone, B, &[5], None);
    plain.run_until(MS);
    let mut frame = plain.flights[0].frame.clone();
    room.hear(0, b, &frame, Rate::OFDM_24);
    frame::mac::header::set_retry(&mut frame, true).unwrap();
    room.hear(MS, b, &frame, Rate::OFDM_24);
    room.run_until(5 * MS);
    assert_eq!(payloads(&room), [5], "the sender above knows its own duplicates");
    assert_eq!(counters(&room, b).dropped, 0);
    room.close();
}

/// A layer of layers is a protocol like any other.
#[test]
fn it_nests() {
    type Stack = Redundancy<Edf<Sender, 4>, 4>;
    let mut room = Room::new(1);
    for me in [A, B] {
        room.add(me, move || -> Stack {
            let edf = EdfConfig::new(CostEstimate::fixed(Duration::from_us(300)), Duration::from_ms(10));
            Redundancy::new(config(true, Some(1_000)), Edf::new(edf, sender(me, 3)))
        });
    }
    room.script(|x| {
        if x.frame[x.frame.len() - 7] % 3 == x.how.adapter.0 {
            Fate::DataLost
        } else {
            Fate::Arrives
        }
    });
    for i in 0..40 {
        room.submit(
            u64::from(i) * 2 * MS,
            0,
            B,
            &[i],
            Some(u64::from(i) * 2 * MS + 10 * MS),
        );
    }
    room.run_until(200 * MS);
    let mut got = payloads(&room);
    got.sort_unstable();
    assert_eq!(got, (0..40).collect::<Vec<_>>());
    room.close();
}

/// The confirm of a copy whose frame has arrived by the other one is nobody else's: not that of the next frame, which has its place.
#[test]
fn a_late_confirm_is_of_its_own_frame() {
    for us in (19_000..21_000).step_by(100) {
        let (mut room, a, _) = two(1, config(false, None), 1);
        room.delays.confirm_ns = 500_000..=500_000;
        room.delays.patience_ns = 20 * MS;
        let mut sent = [0; 2];
        room.script(move |x| {
            let k = usize::from(x.how.adapter.0);
            sent[k] += 1;
            match (sent[k], k) {
                // the host finds out after 20 ms
                (1, 1) => Fate::ConfirmLost,
                // by then this one is under way, and only its other copy arrives
                (2, 0) => Fate::DataLost,
                _ => Fate::Arrives,
            }
        });
        room.submit(0, a, B, &[0], None);
        room.submit(us * 1_000, a, B, &[1], None);
        room.run_until(50 * MS);
        assert_eq!(payloads(&room), [0, 1]);
        let told = room.protocol::<Pairwise>(a).protocol().counters().confirms;
        assert_eq!((told.acked, told.total()), (2, 2), "{us}");
        room.close();
    }
}

/// A node that was restarted does not begin with numbers that others remember of it: what it sends would be taken for late copies.
#[test]
fn who_was_restarted_is_heard_at_once() {
    let frames = |payload: u8| {
        let (mut room, a, _) = two(1, config(false, None), 1);
        room.submit(u64::from(payload) * MS, a, B, &[payload], None);
        room.run_until(1_000 * MS);
        let of = room.flights.iter().map(|f| f.frame.clone());
        of.collect::<Vec<_>>()
    };
    let (mut room, _, b) = two(2, config(false, None), 1);
    for payload in [0, 200] {
        for frame in frames(payload) {
            room.hear(u64::from(payload) * MS, b, &frame, Rate::OFDM_24);
        }
    }
    room.run_until(1_000 * MS);
    assert_eq!(payloads(&room), [0, 200]);
    assert_eq!(counters(&room, b).dropped, 2, "the second copies");
    room.close();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever both channels do, in every mode: one confirm for each request, nothing delivered twice, and what was
    /// acknowledged was delivered. `close` checks the laws and replays the tapes.
    #[test]
    fn any_air(seed: u64, cancel: bool, defer in prop_oneof![Just(None), (0u64..3_000).prop_map(Some)],
        tries in 1u8..4, gaps in proptest::collection::vec(0u64..1_500_000, 1..40))
    {
        let (mut room, a, b) = two(seed, config(cancel, defer), tries);
        room.delays.confirm_ns = 5_000..=400_000;
        room.delays.indicate_ns = 0..=400_000;
        let mut dice = Dice::new(seed);
        room.script(move |_| match dice.within(0..=9) {
            0..=4 => Fate::Arrives,
            5 => Fate::DataLost,
            6 => Fate::AckLost,
            7 => Fate::ConfirmLost,
            8 => Fate::Reset,
            _ => Fate::Refused(Refusal::QueueFull),
        });
        let mut t = 0;
        for (i, gap) in gaps.iter().enumerate() {
            t += gap;
            let deadline = (i % 3 == 0).then_some(t + gap);
            let (from, to) = if i % 4 == 0 { (b, A) } else { (a, B) };
            room.submit(t, from, to, &[i as u8], deadline);
        }
        room.run_until(t + 100 * MS);
        let mut got = payloads(&room);
        let before = got.len();
        got.sort_unstable();
        got.dedup();
        prop_assert_eq!(got.len(), before, "delivered twice");
        let tallies = [a, b].map(|n| room.protocol::<Pairwise>(n).protocol().counters().confirms);
        prop_assert_eq!(tallies.iter().map(|c| c.total()).sum::<u64>(), gaps.len() as u64);
        prop_assert!(tallies.iter().map(|c| c.acked).sum::<u64>() <= before as u64);
        room.close();
    }
}
