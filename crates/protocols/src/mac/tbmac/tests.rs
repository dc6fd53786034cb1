//! Whole cells, in a room without carrier sense: whoever leaves its slot is seen to collide.

use super::rounds::RoundCosts;
use super::*;
use crate::mac::sender::{Sender, SenderConfig};
use crate::mac::sync::{Sync, SyncConfig};
use crate::mac::tdma::schedule::Release;
use crate::testing::{Clock, Delays, Dice, Fate, Probe, Room};
use frame::{Band, Phy, Rate};
use proptest::prelude::*;
use radio::Checked;
use std::vec::Vec;

const US: fn(u64) -> Duration = Duration::from_us;
const HERE: Cell = Cell { q: 0, r: 0 };
const THERE: Cell = Cell { q: 1, r: 1 };

type Stack = Tbmac<Sender, 4, 8, 256>;

fn node(i: u32) -> MacAddr {
    MacAddr::local(i)
}

fn rounds() -> Rounds {
    let costs = RoundCosts {
        phy: Phy::A,
        eifs: true,
        rate: Rate::OFDM_24,
        octets: 240,
        asks: 4,
        release: Release {
            min: US(10),
            high: US(14),
        },
        sync_error: US(2),
        heard: US(20),
    };
    Rounds::new(&costs, 4).unwrap()
}

fn round_ns() -> u64 {
    rounds().length().as_ns()
}

fn identity(me: MacAddr) -> Identity {
    let role = Role::Direct {
        bssid: MacAddr::BROADCAST,
    };
    Identity { me, role }
}

fn stack(i: u32) -> Stack {
    let sender = Sender::new(SenderConfig::new(identity(node(i)), Rate::OFDM_24));
    Tbmac::new(TbmacConfig::new(node(i), HERE, rounds()), sender)
}

/// `hosts` hosts, all there from the start.
fn cell(seed: u64, hosts: u32) -> Room {
    let mut room = Room::new(seed);
    room.carrier_sense = false;
    room.delays.timer_ns = 0..=4_000;
    for i in 0..hosts {
        room.add(node(i), move || stack(i));
    }
    room
}

fn slots(room: &Room, hosts: u32) -> Vec<Option<u8>> {
    let slot = |i| room.protocol::<Stack>(i as usize).member().unwrap().slot();
    (0..hosts).map(slot).collect()
}

#[test]
fn all_come_to_slots_and_keep_them() {
    let mut room = cell(1, 4);
    room.run_until(80 * round_ns());
    let mut all = slots(&room, 4);
    let before = all.clone();
    all.sort_unstable();
    assert_eq!(all, [Some(0), Some(1), Some(2), Some(3)]);
    let (flights, collided) = (room.flights.len(), room.collisions().count());
    room.run_until(180 * round_ns());
    assert_eq!(
        (room.flights.len() - flights, room.collisions().count()),
        (400, collided)
    );
    assert_eq!(slots(&room, 4), before);
    for f in &room.flights[flights..] {
        let start = rounds().start(before[f.node].unwrap()).as_ns();
        let late = (f.start_ns - start) % round_ns();
        assert!(late <= 4_000, "{late} ns late");
    }
    room.close();
}

/// A payload to one host and one to all, each inside of a frame of the cell; no slot, no frame.
#[test]
fn what_is_submitted_arrives() {
    let mut room = cell(2, 3);
    let begin = 80 * round_ns();
    room.submit(0, 0, node(1), b"too early", Some(round_ns()));
    room.submit(begin, 0, node(1), b"to one", None);
    room.submit(begin + 1, 0, MacAddr::BROADCAST, b"to all", None);
    room.submit(begin + 2, 0, node(1), &[0; 200], None);
    room.run_until(begin + 5 * round_ns());
    let got: Vec<_> = room.delivered.iter().map(|d| (d.node, &d.payload[..])).collect();
    assert_eq!(got, [(1, &b"to one"[..]), (1, b"to all"), (2, b"to all")]);
    assert!(room.delivered[0].at_ns < begin + 2 * round_ns(), "within a round");
    let sender = room.protocol::<Stack>(0).protocol().counters().confirms;
    assert_eq!((sender.expired, sender.not_acked, sender.refused), (1, 2, 1));
    let counters = *room.protocol::<Stack>(0).counters();
    assert_eq!(
        (counters.released, counters.too_long, counters.expired),
        (2, 1, 1)
    );
    room.close();
}

/// A reset of the adapter may come when the frame is on the air already. Sent again, with another number, it would be handed up twice.
#[test]
fn what_was_on_the_air_before_a_reset_is_not_sent_again() {
    let mut room = cell(2, 3);
    let begin = 80 * round_ns();
    room.script(
        move |a| match a.node == 0 && a.at_ns > begin && a.frame.len() > 100 {
            true => Fate::ArrivesBeforeReset,
            false => Fate::Arrives,
        },
    );
    room.submit(begin, 0, MacAddr::BROADCAST, &[1; 80], None);
    room.run_until(begin + 5 * round_ns());
    let to: Vec<_> = room.delivered.iter().map(|d| d.node).collect();
    assert_eq!(to, [1, 2]);
    let sender = room.protocol::<Stack>(0).protocol().counters().confirms;
    assert_eq!((sender.aborted, sender.not_acked), (1, 0));
    room.close();
}

/// Who leaves frees its slot at once; who falls silent, after three rounds.
#[test]
fn a_cell_with_more_hosts_than_slots() {
    let mut room = cell(3, 5);
    room.run_until(120 * round_ns());
    let all = slots(&room, 5);
    assert_eq!(all.iter().flatten().count(), 4, "{all:?}");
    let without = all.iter().position(Option::is_none).unwrap();
    let silent = (without + 1) % 5;
    let from = 120 * round_ns();
    room.script(move |a| match a.node == silent && a.at_ns > from {
        true => Fate::DataLost,
        false => Fate::Arrives,
    });
    room.run_until(200 * round_ns());
    assert!(slots(&room, 5)[without].is_some(), "{all:?}");
    room.close();
}

/// Timers are late by more than a round, but frames wake it up, too: it never takes for empty a cell whose only other host is heard in all
/// rounds. (Nobody there hears it, so nobody promises it a slot.)
#[test]
fn a_host_whose_timers_are_late_hears_its_cell() {
    let mut owner = cell(7, 1);
    owner.run_until(200 * round_ns());
    let mut late = Room::new(8);
    late.delays.timer_ns = 0..=round_ns() * 3 / 2;
    late.add(node(1), || stack(1));
    let from = 100 * round_ns();
    for f in owner.flights.iter().filter(|f| f.start_ns > from) {
        late.hear(f.end_ns + 10_000, 0, &f.frame, Rate::OFDM_24);
    }
    // until then it has the cell for itself
    late.run_until(from);
    assert!(late.protocol::<Stack>(0).counters().granted > 0);
    let mut shared = 0;
    for round in 110..200 {
        late.run_until(round * round_ns());
        shared += u64::from(slots(&late, 1)[0].is_some());
    }
    assert_eq!(shared, 0, "of 90 rounds");
    late.close();
    owner.close();
}

/// Frames of other cells are nobody's business.
#[test]
fn cells_do_not_mix() {
    let mut room = Room::new(4);
    room.carrier_sense = false;
    for (i, cell) in [HERE, HERE, THERE].into_iter().enumerate() {
        let me = node(i as u32);
        room.add(me, move || -> Stack {
            let config = TbmacConfig {
                cell,
                // the third one is a quarter of a round behind, so that they do not collide
                sync: Sync::perfect(if cell == HERE { 0 } else { 300_000 }),
                ..TbmacConfig::new(me, cell, rounds())
            };
            Tbmac::new(
                config,
                Sender::new(SenderConfig::new(identity(me), Rate::OFDM_24)),
            )
        });
    }
    room.submit(90 * round_ns(), 2, MacAddr::BROADCAST, b"not for you", None);
    room.run_until(100 * round_ns());
    assert_eq!(slots(&room, 3)[2], Some(0), "alone in its cell");
    let mut here = slots(&room, 2);
    here.sort_unstable();
    assert_eq!(here, [Some(0), Some(1)]);
    assert!(room.delivered.is_empty());
    room.close();
}

/// A gateway's own frame that comes too late for its slot goes in the next one, and over the border once. (On one channel; in
/// their own slots the two hosts do not hear each other, and do not have to.)
#[test]
fn what_was_late_crosses_a_border_once() {
    let mut room = Room::new(6);
    room.carrier_sense = false;
    room.delays.request_ns = 10_000..=18_000;
    let cells = [HERE, HERE.neighbour(0)];
    for (i, cell) in cells.into_iter().enumerate() {
        let me = node(i as u32);
        room.add(me, move || -> Stack {
            let rounds = rounds().with_borders(US(50));
            let sender = Sender::new(SenderConfig::new(identity(me), Rate::OFDM_24));
            let mut host = Tbmac::new(TbmacConfig::new(me, cell, rounds), sender);
            host.set_near(0x3f);
            host
        });
    }
    let round = rounds().with_borders(US(50)).length().as_ns();
    for i in 0..50 {
        room.submit((100 + 4 * i) * round, 0, node(1), &[i as u8], None);
    }
    room.run_until(320 * round);
    assert!(room.protocol::<Stack>(0).counters().late >= 10);
    let mut got: Vec<u8> = room.delivered.iter().map(|d| d.payload[0]).collect();
    let all = got.len();
    got.sort_unstable();
    got.dedup();
    assert_eq!(got.len(), all, "something came twice");
    // every fourth release is late, and what is late for its meeting is lost
    assert!(all >= 15, "{all}");
    room.close();
}

#[test]
fn without_a_clock_nothing_is_sent() {
    let mut room = Room::new(5);
    let me = node(1);
    room.add(me, move || -> Stack {
        let config = TbmacConfig {
            sync: Sync::tracking(SyncConfig::new(Band::Ghz5, Duration::from_ms(500))),
            follows: Some(node(9)),
            ..TbmacConfig::new(me, HERE, rounds())
        };
        Tbmac::new(
            config,
            Sender::new(SenderConfig::new(identity(me), Rate::OFDM_24)),
        )
    });
    room.submit(0, 0, node(2), b"when?", Some(50_000_000));
    room.run_until(100 * round_ns());
    assert!(room.flights.is_empty());
    assert_eq!(room.protocol::<Stack>(0).counters().expired, 1);
    room.close();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Bursts, aborts, losses, lost confirms, resets, late timers, clocks that run fast or slow: every token gets
    /// exactly one confirm.
    #[test]
    fn any_requests_in_any_air(
        seed: u64,
        bursts in proptest::collection::vec((0u64..3_000_000, proptest::collection::vec(any::<u8>(), 0..12)), 1..12),
    ) {
        type Wild = Tbmac<Checked<Probe>, 2, 4, 128>;
        let mut room = Room::new(seed);
        room.carrier_sense = false;
        room.delays = Delays {
            request_ns: 10_000..=20_000,
            confirm_ns: 5_000..=300_000,
            timer_ns: 0..=20_000,
            ..Delays::STEADY
        };
        for i in 0..2u32 {
            let me = node(i);
            let ppb = if i == 0 { 0 } else { (seed % 40_000) as i64 - 20_000 };
            room.add_with_clocks(me, Clock { offset_ns: 0, ppb }, Clock::default(), || {
                let costs = RoundCosts {
                    phy: Phy::A,
                    eifs: true,
                    rate: Rate::OFDM_24,
                    octets: 220,
                    asks: 2,
                    release: Release { min: US(10), high: US(40) },
                    sync_error: US(2),
                    heard: US(20),
                };
                let probe = || Probe::new(identity(me), node(1 - i));
                let config = TbmacConfig::new(me, HERE, Rounds::new(&costs, 2).unwrap());
                Wild::new(config, Checked::strict(probe()).with_twin(probe()))
            });
        }
        let mut dice = Dice::new(seed ^ 1);
        room.script(move |_| match dice.within(0..=19) {
            0..=12 => Fate::Arrives,
            13..=15 => Fate::DataLost,
            16..=17 => Fate::ConfirmLost,
            18 => Fate::Reset,
            _ => Fate::Refused(radio::Refusal::QueueFull),
        });
        let mut t = 0;
        for (i, (pause, burst)) in bursts.iter().enumerate() {
            t += pause;
            room.submit(t, i % 2, node(9), burst, None);
        }
        room.run_until(t + 100_000_000);
        for host in 0..2 {
            let stack = room.protocol::<Wild>(host);
            let probe = stack.protocol().inner();
            prop_assert!(probe.ended.len() <= probe.made() as usize);
            let own = stack.counters().own.total();
            prop_assert!(own > 0);
        }
        room.close();
    }
}
